//! One network in every file format.

use silvan_core::{Lid, PortNumber};
use silvan_fabric::check::{CheckOptions, check};

use crate::{NETWORK, build, view};

/// Written down from `ibsim.net`, which the network was made of, and the LIDs of OpenSM's log.
#[test]
fn ibnetdiscover() {
    let fabric = build(&silvan_fabric::import::topology(NETWORK).unwrap());
    let (nodes, cables) = view(&fabric, true);
    assert_eq!(
        nodes,
        [
            "Hca1/P1 0x0000000000100001 Some(PortNumber(1)) 1 1",
            "Hca1/P2 0x0000000000100002 Some(PortNumber(2)) 1 3",
            "Hca2 0x0000000000100004 Some(PortNumber(1)) 1 4",
            "Switch comment 0x0000000000200000 None 36 2",
            "it's number 2 (old) 0x0000000000100006 Some(PortNumber(1)) 1 5",
            "leaf-2 0x0002c90200423e70 None 36 6",
            "spine 0x0002c90200423e71 None 36 7",
        ]
    );
    assert_eq!(
        cables,
        [
            "Hca1/P1:1 - Switch comment:1 4xSDR",
            "Hca1/P2:1 - Switch comment:2 4xSDR",
            "Hca2:1 - leaf-2:1 4xSDR",
            "Switch comment:3 - it's number 2 (old):1 4xSDR",
            "Switch comment:35 - spine:1 4xSDR",
            "Switch comment:36 - spine:2 4xSDR",
            "leaf-2:35 - spine:3 4xSDR",
            "leaf-2:36 - spine:4 4xDDR",
        ]
    );
    let adapters = [1, 3].map(|lid| fabric.node_by_lid(Lid::new(lid)).unwrap());
    assert_eq!(
        fabric.nodes[adapters[0]].guid, fabric.nodes[adapters[1]].guid,
        "one adapter"
    );
}

#[test]
fn grouped_by_chassis_and_with_the_line_ends_of_windows() {
    let expected = silvan_fabric::import::topology(NETWORK).unwrap();
    let grouped = include_str!("../samples/ibnetdiscover-g.txt");
    let mut grouped = silvan_fabric::import::topology(grouped).unwrap();
    // The headings move the lines.
    for (node, other) in grouped.nodes.iter_mut().zip(&expected.nodes) {
        node.line = other.line;
    }
    assert_eq!(grouped, expected);
    let windows = NETWORK.replace('\n', "\r\n");
    assert_eq!(silvan_fabric::import::topology(&windows).unwrap(), expected);
}

#[test]
fn port_by_port() {
    let text = include_str!("../samples/ibnetdiscover-p.txt");
    let fabric = build(&silvan_fabric::import::ports(text).unwrap());
    let (nodes, cables) = view(&fabric, true);
    let (expected_nodes, expected_cables) = view(
        &build(&silvan_fabric::import::topology(NETWORK).unwrap()),
        true,
    );
    // Each port of an adapter is a node there; names cannot tell two ports of one adapter apart.
    let rename = |lines: Vec<String>| -> Vec<String> {
        let mut lines: Vec<String> = lines
            .iter()
            .map(|line| {
                line.replace("Hca1 (0x0000000000100001)", "Hca1/P1")
                    .replace("Hca1 (0x0000000000100002)", "Hca1/P2")
            })
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(rename(nodes), expected_nodes);
    assert_eq!(rename(cables), expected_cables);
}

#[test]
fn net_file_of_ibsim() {
    let text = include_str!("../samples/ibsim.net");
    let fabric = build(&silvan_fabric::import::topology(text).unwrap());
    let (_, cables) = view(&fabric, false);
    assert_eq!(cables.len(), 8);
    assert!(
        cables.contains(&"leaf-2:36 - spine:4 12xDDR".to_owned()),
        "{cables:?}"
    );
    assert!(
        cables.contains(&"Hca1/P2:1 - leaf one:2 12xEDR".to_owned()),
        "{cables:?}"
    );
    let leaf = fabric.node_by_name("leaf-2").unwrap();
    assert_eq!(fabric.nodes[leaf].guid.to_string(), "0x0002c90200423e70");
}

/// All forms of the tables are equal, lead everywhere, and say what OpenSM's log says.
#[test]
fn tables() {
    let fabric = build(&silvan_fabric::import::topology(NETWORK).unwrap());
    let tables = |text| silvan_fabric::import::routes(text, &fabric).unwrap().tables;
    let dumped = tables(include_str!("../samples/dump_lfts.txt"));
    for other in [
        include_str!("../samples/opensm-lfts.dump"),
        include_str!("../samples/opensm.fdbs"),
        include_str!("../samples/dump_fts_n.txt"),
    ] {
        assert_eq!(tables(other), dumped);
    }
    let report = check(&fabric, &dumped, CheckOptions::default()).unwrap();
    assert_eq!(report.pairs, 4 * 3);
    let leaf = fabric.node_by_name("leaf-2").unwrap();
    let leaf = fabric.nodes[leaf].as_switch().unwrap();
    let routes: Vec<(u16, u8)> = dumped
        .routes(leaf)
        .map(|(lid, port)| (lid.as_u16(), port.as_u8()))
        .collect();
    assert_eq!(
        routes,
        [(1, 35), (2, 36), (3, 36), (4, 1), (5, 35), (6, 0), (7, 36)]
    );
}

/// Levels of paths are behind what is in parentheses, whose names may look like one.
#[test]
fn levels_of_paths() {
    let fabric = build(&silvan_fabric::import::topology(NETWORK).unwrap());
    let dumped = include_str!("../samples/dump_lfts.txt");
    let plain = silvan_fabric::import::routes(dumped, &fabric).unwrap();
    assert_eq!(plain.levels.highest(), 0);
    let mut switches = 0;
    let lines = dumped.lines().map(|line| {
        switches += u16::from(line.starts_with("Unicast"));
        match line.get(..6) {
            Some("0x0001") => format!("{line} sl {switches}\n"),
            // Another level for the host at port 2.
            Some("0x0004") if switches == 3 => format!("{line} sl 5 2:6\n"),
            Some("0x0002") => format!("{}\n", line.replace("'", "') sl 9'")),
            _ => format!("{line}\n"),
        }
    });
    let text: String = lines.collect();
    let leveled = silvan_fabric::import::routes(&text, &fabric).unwrap();
    assert_eq!(leveled.tables, plain.tables);
    let host = |name| {
        let node = fabric.node_by_name(name).unwrap();
        fabric.nodes[node].as_host().unwrap()
    };
    let [first, second, old, far] = ["Hca1/P1", "Hca1/P2", "it's number 2 (old)", "Hca2"].map(host);
    let level = |from, to| leveled.levels.level(from, to);
    // LID 1, in the first table from "leaf-2" and in the third from the others' switch.
    assert_eq!([far, second, old].map(|from| level(from, first)), [1, 3, 3]);
    assert_eq!([first, second, old].map(|from| level(from, far)), [5, 6, 5]);
    assert_eq!(level(old, second), 0);
}

/// OpenSM's own tables, in one file with the forwarding tables, from `qos_sl2vl 0,1,0,1,0,1,0,1,2,3,2,3,2,3,2,15` for
/// all.
#[test]
fn sl_to_vl_tables() {
    let fabric = build(&silvan_fabric::import::topology(NETWORK).unwrap());
    let dumped = include_str!("../samples/dump_lfts.txt");
    let lanes = include_str!("../samples/opensm-sl2vl.dump");
    let wanted = [0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 15];
    for text in [format!("{dumped}{lanes}"), format!("{lanes}\n{dumped}")] {
        let routes = silvan_fabric::import::routes(&text, &fabric).unwrap();
        let plain = silvan_fabric::import::routes(dumped, &fabric).unwrap();
        assert_eq!(routes.tables, plain.tables);
        assert!(plain.lanes.is_empty());
        for host in fabric.host_ids() {
            assert_eq!(routes.lanes.host(host), Some(&wanted));
        }
        // OpenSM names every input, and the outputs that have a cable.
        for switch in fabric.switch_ids() {
            for output in fabric.switch(switch).ports() {
                let cabled = fabric.ports[output].peer.is_some();
                let expected = cabled.then_some(&wanted);
                for input in 1..=36 {
                    let (input, output) = (PortNumber::new(input), fabric.ports[output].number);
                    assert_eq!(routes.lanes.switch(switch, input, output), expected);
                }
            }
            assert_eq!(routes.lanes.groups(switch).len(), 1);
        }
    }
}

/// A fabric whose LIDs are not those of the file: ibsim's net file has none.
#[test]
fn tables_by_name_and_place() {
    let net = include_str!("../samples/ibsim.net").replace("leaf one", "Switch comment");
    let fabric = build(&silvan_fabric::import::topology(&net).unwrap());
    for text in [
        include_str!("../samples/dump_lfts.txt"),
        include_str!("../samples/dump_fts_n.txt"),
    ] {
        let tables = silvan_fabric::import::routes(text, &fabric).unwrap().tables;
        check(&fabric, &tables, CheckOptions::default()).unwrap();
        let host = fabric.node_by_name("Hca2").unwrap();
        let leaf = fabric.nodes[fabric.node_by_name("leaf-2").unwrap()]
            .as_switch()
            .unwrap();
        let port = tables.get(leaf, fabric.nodes[host].lid);
        assert_eq!(port, Some(PortNumber::new(1)));
    }
}

/// Messages of the tools between the lines, cables from a switch to itself, links whose ends differ, and
/// XDR, as they are in files of real networks.
#[test]
fn a_worn_network_is_read_with_warnings() {
    let import = silvan_fabric::import::topology(include_str!("../samples/worn.txt")).unwrap();
    let warnings: Vec<String> = import
        .warnings
        .iter()
        .map(|warning| format!("{}: {}", warning.line, warning.message))
        .collect();
    assert_eq!(
        warnings,
        [
            "1: the message \"src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1,1,31 ...\" is left out",
            "12: the cable from port 1 of \"S-0000000000200001\" to its own port 2 is left out",
            "15: the message \"ibwarn: [4711] _do_madrpc: recv failed: Connection timed out...\" is left out",
            "26: the cable at port 2 of \"S-0000000000200002\" is 1xHDR here and 4xHDR in line 16: 1xHDR \
             is taken",
            "28: the message \"../libibnetdisc/ibnetdisc.c:457; Query remote node (DR path ...\" is left out",
            "40: the cable at port 2 of \"H-0000000000100003\" is 2xFDR here and 4xEDR in line 19: 2xFDR \
             is taken",
        ]
    );
    let (_, cables) = view(&build(&import), true);
    let (one, two) = (
        "Quantum Mellanox Technologies (0x0000000000200001)",
        "Quantum Mellanox Technologies (0x0000000000200002)",
    );
    assert_eq!(
        cables,
        [
            format!("{one}:3 - {two}:1 4xXDR"),
            format!("{one}:4 - {two}:2 1xHDR"),
            format!("{one}:5 - node-1 HCA-1:1 4xXDR"),
            format!("{one}:6 - node-2 HCA-1/P1:1 4xEDR"),
            format!("{one}:7 - node-2 HCA-1/P2:1 2xFDR"),
            format!("{two}:3 - node-3 HCA-1:1 4xSDR"),
        ]
    );
}

/// The output of `ibnetdiscover -p` follows the same rules.
#[test]
fn a_worn_network_port_by_port() {
    let import = silvan_fabric::import::ports(
        "ibwarn: [4711] _do_madrpc: recv failed: Connection timed out\n\
         SW     6  1 0x0000000000200001 4x XDR - CA     4  1 0x0000000000100002 ( 'leaf' - 'node-1' )\n\
         CA     4  1 0x0000000000100002 2x XDR - SW     6  1 0x0000000000200001 ( 'node-1' - 'leaf' )\n",
    )
    .unwrap();
    assert_eq!(import.warnings.len(), 2);
    let (_, cables) = view(&build(&import), true);
    assert_eq!(cables, ["leaf:1 - node-1:1 2xXDR"]);
}
