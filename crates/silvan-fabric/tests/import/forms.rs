//! Forms in which tools, terminals and editors hand over one small network.

use silvan_core::DeviceId;
use silvan_fabric::import::{ImportedFabric, NodeKind, ports, topology};

use crate::{build, view};

/// A switch with three hosts, two of them ports of one adapter.
const PLAIN: &str = "vendid=0x2c9\n\
    devid=0xd2f2\n\
    sysimgguid=0xa0\n\
    switchguid=0xa1(a1)\n\
    Switch\t65 \"S-00000000000000a1\"\t\t# \"leaf\" enhanced port 0 lid 1 lmc 0\n\
    [1]\t\"H-00000000000000b1\"[1](b1) \t\t# \"one\" lid 2 4xNDR\n\
    [2]\t\"H-00000000000000b2\"[1](b3) \t\t# \"two\" lid 3 1xSDR\n\
    [3]\t\"H-00000000000000b2\"[2](b4) \t\t# \"two\" lid 4 2xHDR\n\
    \n\
    vendid=0x2c9\n\
    devid=0x1021\n\
    caguid=0xb1\n\
    Ca\t1 \"H-00000000000000b1\"\t\t# \"one\"\n\
    [1](b1) \t\"S-00000000000000a1\"[1]\t\t# lid 2 lmc 0 \"leaf\" lid 1 4xNDR\n\
    \n\
    vendid=0x2c9\n\
    devid=0x1021\n\
    caguid=0xb2\n\
    Ca\t2 \"H-00000000000000b2\"\t\t# \"two\"\n\
    [1](b3) \t\"S-00000000000000a1\"[2]\t\t# lid 3 lmc 0 \"leaf\" lid 1 1xSDR\n\
    [2](b4) \t\"S-00000000000000a1\"[3]\t\t# lid 4 lmc 0 \"leaf\" lid 1 2xHDR\n";

const CABLES: [&str; 3] = [
    "leaf:1 - one:1 4xNDR",
    "leaf:2 - two/P1:1 1xSDR",
    "leaf:3 - two/P2:1 2xHDR",
];

fn cables(import: &ImportedFabric) -> Vec<String> {
    view(&build(import), true).1
}

fn warnings(import: &ImportedFabric) -> Vec<String> {
    let texts = import.warnings.iter();
    texts
        .map(|warning| format!("{}: {}", warning.line, warning.message))
        .collect()
}

/// Oracle: the plain form.
#[test]
fn captures_are_the_plain_network() {
    let plain = topology(PLAIN).unwrap();
    assert_eq!(cables(&plain), CABLES);
    assert_eq!(warnings(&plain), [""; 0]);
    let windows = PLAIN.replace('\n', "\r\n");
    for (text, left_out) in [
        (format!("\u{feff}{PLAIN}"), vec![]),
        (format!("\u{feff}{windows}"), vec![]),
        (windows.replace("\n\r\n", "\n\r\r\n"), vec![]),
        (PLAIN.replace("\t", ""), vec![]),
        (PLAIN.replace("\t", "    "), vec![]),
        (
            format!(
                "=~=~=~= PuTTY log 2031.05.06 12:06:05 =~=~=~=\r\n{windows}\r\nn1 [ mgmt ] (config) # "
            ),
            vec![
                "1: the line \"=~=~=~= PuTTY log 2031.05.06 12:06:05 =~=~=~=\" is left out",
                "24: the line \"n1 [ mgmt ] (config) #\" is left out",
            ],
        ),
        (
            format!(
                "Script started on 2031-05-06\n\x1b[?2004h\x1b]0;n1\x07root@n1:~# ibnetdiscover\n{PLAIN}\nScript done on 2031\n"
            ),
            vec![
                "1: the line \"Script started on 2031-05-06\" is left out",
                "2: the line \"root@n1:~# ibnetdiscover\" is left out",
                "25: the line \"Script done on 2031\" is left out",
            ],
        ),
        (
            format!("Welcome to node 1\nAuthorised users only.\n\n{PLAIN}exit\n"),
            vec![
                "1: the line \"Welcome to node 1\" is left out",
                "2: the line \"Authorised users only.\" is left out",
                "25: the line \"exit\" is left out",
            ],
        ),
    ] {
        let import = topology(&text).unwrap();
        assert_eq!(warnings(&import), left_out, "{text}");
        assert_eq!(import.cables, plain.cables, "{text}");
        let names = |import: &ImportedFabric| -> Vec<String> {
            import.nodes.iter().map(|node| node.name.clone()).collect()
        };
        assert_eq!(names(&import), names(&plain));
    }
}

#[test]
fn captures_of_ports_are_read() {
    let text = "\u{feff}[root@n1 ~]# ibnetdiscover -p\r\n\
        SW 1 1 0x00000000000000a1 4x NDR - CA 2 1 0x00000000000000b1 ( 'a@leaf # 1' - 'one' )\r\n\
        CA 2 1 0x00000000000000b1 4x NDR - SW 1 1 0x00000000000000a1 ( 'one' - 'a@leaf # 1' )\r\n\
        \r\n[root@n1 ~]#";
    let import = ports(text).unwrap();
    assert_eq!(cables(&import), ["a@leaf # 1:1 - one:1 4xNDR"]);
    assert_eq!(
        warnings(&import),
        [
            "1: the line \"[root@n1 ~]# ibnetdiscover -p\" is left out",
            "5: the line \"[root@n1 ~]#\" is left out",
        ]
    );
}

/// Oracle: the plain form.
#[test]
fn full_form_has_the_same_rates() {
    let full = PLAIN
        .replace("4xNDR", "4xNDR s=4 w=2 v=4")
        .replace("1xSDR", "1xSDR s=1 w=1 v=4")
        .replace("2xHDR", "2xHDR s=4 w=16 v=4");
    assert_eq!(topology(&full).unwrap(), topology(PLAIN).unwrap());
}

#[test]
fn unknown_width_or_speed_is_named() {
    let import = topology(&PLAIN.replace("4xNDR", "4x???").replace("2xHDR", "??HDR")).unwrap();
    assert_eq!(
        warnings(&import),
        [
            "6: width and speed of the cable at port 1 of \"S-00000000000000a1\" are not known: the default of the link is taken",
            "8: width and speed of the cable at port 3 of \"S-00000000000000a1\" are not known: the default of the link is taken",
        ]
    );
    // Width and speed of the default are 12x and EDR.
    assert_eq!(
        cables(&import),
        [
            "leaf:1 - one:1 4xEDR",
            "leaf:2 - two/P1:1 1xSDR",
            "leaf:3 - two/P2:1 12xHDR"
        ]
    );
    // The other end says it.
    let one = topology(&PLAIN.replacen("4xNDR", "?????", 1)).unwrap();
    assert_eq!(
        (cables(&one), warnings(&one)),
        (CABLES.map(str::to_owned).to_vec(), vec![])
    );
    let missing = topology(&PLAIN.replace(" 4xNDR", "")).unwrap();
    assert_eq!(missing.warnings.len(), 1);
    let text = "SW 1 1 0x00000000000000a1 ?? NDR - CA 2 1 0x00000000000000b1 ( 'leaf' - 'one' )\n\
        CA 2 1 0x00000000000000b1 ?? NDR - SW 1 1 0x00000000000000a1 ( 'one' - 'leaf' )\n";
    assert_eq!(ports(text).unwrap().warnings.len(), 1);
}

/// Oracle: ibdiagnet's form of a director, whose boards share the GUID of the system.
#[test]
fn node_guids_of_ibdiagnet_are_those_of_the_ids() {
    let text = "switchguid=0xa0(a1)\n\
        Switch  41 \"S-00000000000000a1\"      # \"director/L01\" base port 0 lid 1 lmc 0\n\
        [1](1) \"S-00000000000000a2\"[2]      # \"director/S01\" lid 2 4xHDR\n\
        [2](2) \"H-00000000000000b1\"[1](b1)      # \"one\" lid 3 4xEDR\n\
        \n\n\
        switchguid=0xa0(a2)\n\
        Switch  41 \"S-00000000000000a2\"      # \"director/S01\" base port 0 lid 2 lmc 0\n\
        [2](2) \"S-00000000000000a1\"[1]      # \"director/L01\" lid 1 4xHDR\n\
        \n\n\
        caguid=0xb1\n\
        Ca  1 \"H-00000000000000b1\"      # \"one\"\n\
        [1](b1) \"S-00000000000000a1\"[2] # lid 3 lmc 0 \"director/L01\" lid 1 4xEDR\n";
    let import = topology(text).unwrap();
    let guids: Vec<_> = import
        .nodes
        .iter()
        .map(|node| node.guid.map(|guid| guid.as_u64()))
        .collect();
    assert_eq!(guids, [Some(0xa1), Some(0xa2), Some(0xb1)]);
    assert_eq!(
        cables(&import),
        [
            "director/L01:1 - director/S01:2 4xHDR",
            "director/L01:2 - one:1 4xEDR"
        ]
    );
    // ibsim's net files have the GUID in this attribute.
    let net = topology("switchguid=0xa7\nSwitch 4 \"S-00000000000000a1\"\n[1] \"Hca\"[1]\n\nHca 1 \"Hca\"\n[1] \"S-00000000000000a1\"[1]\n").unwrap();
    assert_eq!(net.nodes[0].guid.map(|guid| guid.as_u64()), Some(0xa7));
}

#[test]
fn ports_of_an_adapter_without_guid_share_one() {
    let net = "Switch 4 \"leaf\"\n[1] \"Hca\"[1]\n[2] \"Hca\"[2]\n\nHca 2 \"Hca\"\n[1] \"leaf\"[1]\n[2] \"leaf\"[2]\n";
    let fabric = build(&topology(net).unwrap());
    let [one, two] = ["Hca/P1", "Hca/P2"].map(|name| fabric.node_by_name(name).unwrap());
    assert_eq!(fabric.nodes[one].guid, fabric.nodes[two].guid);
}

#[test]
fn lids_that_are_none_are_named() {
    for (lid, shown) in [
        ("65535", "65535"),
        ("-1", "-1"),
        ("", ""),
        ("61111", "61111"),
    ] {
        let text = PLAIN
            .replace("# lid 2 lmc", &format!("# lid {lid} lmc"))
            .replace("# lid 3 lmc", &format!("# lid {lid} lmc"));
        let import = topology(&text).unwrap();
        assert_eq!(
            warnings(&import),
            [format!(
                "14: {shown:?} is no unicast LID, and 1 more LIDs are not: these ports get the smallest free LIDs"
            )]
        );
        let lids: Vec<_> = import
            .nodes
            .iter()
            .map(|node| node.lid.map(|lid| lid.as_u16()))
            .collect();
        assert_eq!(lids, [Some(1), None, None, Some(4)]);
    }
    // Tools print 0 for ports that have none.
    let zero = topology(&PLAIN.replace("# lid 2 lmc", "# lid 0 lmc")).unwrap();
    assert_eq!((zero.nodes[1].lid, zero.warnings.len()), (None, 0));
    let text = "SW 1 1 0x00000000000000a1 4x NDR - CA -1 1 0x00000000000000b1 ( 'leaf' - 'one' )\n\
        CA -1 1 0x00000000000000b1 4x NDR - SW 1 1 0x00000000000000a1 ( 'one' - 'leaf' )\n";
    assert_eq!(
        warnings(&ports(text).unwrap()),
        ["2: \"-1\" is no unicast LID: the port gets the smallest free LID"]
    );
}

#[test]
fn output_of_other_tools_is_named() {
    for (text, tool) in [
        (
            "CA: one HCA-1:\n      0x00000000000000b1      2    1[  ] ==( 4X 106.25 Gbps Active/  LinkUp)==>       1    1[  ] \"leaf\" ( )\n",
            "iblinkinfo",
        ),
        (
            "Switch\t: 0x00000000000000a1 ports 65 \"leaf\" enhanced port 0 lid 1 lmc 0\n",
            "ibswitches, ibhosts or ibnetdiscover -l",
        ),
        ("CA 'mlx5_0'\n\tCA type: MT4129\n", "ibstat"),
        (
            "# Port counters: Lid 6 port 1 (CapMask: 0x5300)\nPortSelect:....1\n",
            "perfquery",
        ),
        (
            "Unicast lids [0x0-0x7] of switch Lid 6 guid 0xa1 (leaf):\n",
            "dump_lfts",
        ),
        ("START_NODES\nNodeDesc,NumPorts\n", "ibdiagnet (db_csv)"),
    ] {
        for (error, wanted) in [
            (topology(text).unwrap_err(), "ibnetdiscover"),
            (ports(text).unwrap_err(), "ibnetdiscover -p"),
        ] {
            assert_eq!(error.message(), format!("this is the output of {tool}"));
            assert_eq!(error.hint(), format!("give the output of {wanted}"));
        }
    }
}

#[test]
fn aggregation_nodes_are_known_and_left_out() {
    let text = PLAIN.replacen("\n\nvendid", "\n[65]\t\"H-00000000000000c1\"[1](c1) \t\t# \"Mellanox Technologies Aggregation Node\" lid 9 4xNDR\n\nvendid", 1)
        .replacen("\n\nvendid=0x2c9\ndevid=0x1021\ncaguid=0xb2", "\n\nvendid=0x2c9\ndevid=0xcf09\ncaguid=0xc1\nCa\t1 \"H-00000000000000c1\"\t\t# \"Mellanox Technologies Aggregation Node\"\n[1](c1) \t\"S-00000000000000a1\"[65]\t\t# lid 9 lmc 0 \"leaf\" lid 1 4xNDR\n\nvendid=0x2c9\ndevid=0x1021\ncaguid=0xb2", 1);
    let import = topology(&text).unwrap();
    let kinds: Vec<_> = import.nodes.iter().map(|node| node.kind).collect();
    assert_eq!(
        kinds,
        [
            NodeKind::Switch,
            NodeKind::Adapter,
            NodeKind::Aggregation,
            NodeKind::Adapter,
            NodeKind::Adapter
        ]
    );
    let quantum = DeviceId {
        vendor: DeviceId::MELLANOX,
        device: 0xd2f2,
    };
    assert_eq!(import.nodes[0].device, Some(quantum));
    assert_eq!(import.cables.len(), 4);
    let without = import.without_aggregation();
    assert_eq!(cables(&without), CABLES);
    assert_eq!(
        warnings(&without),
        ["20: 1 aggregation node of a switch (SHARP) is left out"]
    );
    // A renamed one is known by its device; an adapter is not.
    let renamed =
        topology(&text.replace("Mellanox Technologies Aggregation Node", "an-1")).unwrap();
    assert_eq!(renamed.nodes[2].kind, NodeKind::Aggregation);
}
