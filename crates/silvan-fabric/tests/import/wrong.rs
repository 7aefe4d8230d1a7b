//! Files with oddities: read if they have one meaning, else named with line and hint.

use silvan_fabric::import::{ports, routes, topology};

use crate::{NETWORK, build};

const HEAD: &str = "Switch 4 \"S-1\" # \"leaf\" base port 0 lid 1 lmc 0\n";

fn message(text: &str) -> String {
    topology(text).unwrap_err().to_string()
}

#[test]
fn errors_have_line_and_hint() {
    for (body, expected) in [
        (
            "[1] \"H-2\"[1] # \"a\" lid 2 4xSDR\n",
            "line 2: \"S-1\" is cabled to \"H-2\", which the file does not describe (hint: is the file \
             cut off? import the whole output)",
        ),
        (
            "[1] \"H-2\"[1",
            "line 2: \"[1] \\\"H-2\\\"[1\" is not a port and what it is cabled to",
        ),
        (
            "[9] \"H-2\"[1]\n\nCa 1 \"H-2\"\n",
            "line 2: \"S-1\" has ports 1 to 4, not 9",
        ),
        (
            "[1] \"H-2\"[1] # \"a\" lid 2 4xWDR\n",
            "line 2: \"4xWDR\" is no known width and speed",
        ),
        (
            "[1] \"H-2\"[1] v=4\n",
            "line 2: \"v=4\" behind a port is not understood",
        ),
        (
            "\n[1] \"H-2\"[1]\n",
            "line 3: a port without a node before it",
        ),
        (
            "\nPrinter 1 \"P\"\n",
            "line 3: unknown kind of node \"Printer\"",
        ),
        (
            "\nSwitch 4 \"S-1\"\n",
            "line 3: \"S-1\" is described a second time, first in line 1",
        ),
        ("\nSwitch 0 \"S-2\"\n", "line 3: \"S-2\" has 0 ports"),
        (
            "\nswitchguid=\n",
            "line 3: switchguid is not followed by a GUID",
        ),
        (
            "\nfoo bar\n",
            "line 3: \"foo bar\" is neither node, port nor attribute",
        ),
        (
            "[1] \"H-2\"[1]\n[2] \"H-2\"[1]\n\nCa 1 \"H-2\"\n",
            "line 3: S-1[2] and H-2[1] cannot be cabled: line 2 has another cable for one of them",
        ),
        (
            "\nCa 1 \"H-2\"\n[1] \"H-3\"[1]\n\nCa 1 \"H-3\"\n",
            "line 4: a cable connects the adapters \"H-2\" and \"H-3\"",
        ),
        (
            "\nCA    24  1 0x0002c9030010e0ba 4x QDR\n",
            "line 3: \"CA    24  1 0x0002c9030010e0ba 4x QDR\" is neither node, port nor attribute (hint: this is what ibnetdiscover -p writes",
        ),
        (
            "\n> Switch 8 \"S-2\"\n",
            "line 3: \"> Switch 8 \\\"S-2\\\"\" is neither node, port nor attribute (hint: the text is quoted, as mail does",
        ),
        (
            "\n\"host-0012\" lid 21 1xHDR\n",
            "line 3: \"\\\"host-0012\\\" lid 21 1xHDR\" is neither node, port nor attribute (hint: nodes are written as e.g.",
        ),
    ] {
        let error = message(&format!("{HEAD}{body}"));
        assert!(
            error.starts_with(expected),
            "{body:?}\n {error}\n {expected}"
        );
        assert!(
            error.contains(" (hint: ") && !error.contains('\n'),
            "{error}"
        );
    }
    assert!(message("").starts_with("there is no node in the file (hint: "));
}

#[test]
fn oddities_are_read() {
    let text = "# a comment\n\
        switchguid=0x10(10)\n\
        Switch\t36 \"S-0000000000000010\"\t\t# \"MF0;sw-1:MSB7700/U1 \"new\"\" enhanced port 0 lid 17 lmc 1\n\
        # between\n\
        [1][ext 19](0) \"H-0000000000000020\"[1](21) # \"localhost HCA-1\" lid 2 4xHDR\n\
        [2]\t\"H-0000000000000030\"[2](32)\t\t# \"localhost HCA-1\" lid 3 2xHDR\n\
        [3]\t\"R-0000000000000040\"[1]\t\t# \"gateway\" lid 9 1xSDR\n\
        \n\
        Chassis 1 (guid 0x99)\n\
        Ca\t2 \"H-0000000000000020\"\t\t# \"localhost HCA-1\"\n\
        \n\
        Ca\t2 \"H-0000000000000030\"\t\t# \"localhost HCA-1\"\n\
        [2](32) \t\"S-0000000000000010\"[2]\t\t# lid 3 lmc 1 \"sw-1\" lid 17 2xHDR\n\
        \n\
        Rt\t1 \"R-0000000000000040\"\t\t# \"\"\n\
        [1](41) \t\"S-0000000000000010\"[3]\t\t# lid 0 lmc 0 \"sw-1\" lid 17 1xSDR\n";
    let import = topology(text).unwrap();
    let names: Vec<&str> = import.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "MF0;sw-1:MSB7700/U1 \"new\"",
            // The file lacks this side of the cable, and with it the port GUID.
            "localhost HCA-1 (0x0000000000000020)",
            "localhost HCA-1 (0x0000000000000032)",
            "R-0000000000000040",
        ]
    );
    let lids: Vec<_> = import
        .nodes
        .iter()
        .map(|node| node.lid.map(|lid| lid.as_u16()))
        .collect();
    assert_eq!(lids, [Some(17), None, Some(3), None]);
    assert_eq!(import.cables.len(), 3);
    let fabric = build(&import);
    assert_eq!(fabric.host_count(), 3);
}

#[test]
fn every_cut_of_a_real_file_is_read_or_named() {
    for end in (0..NETWORK.len()).filter(|&end| NETWORK.is_char_boundary(end)) {
        if let Err(error) = topology(&NETWORK[..end]) {
            assert!(!error.hint().is_empty());
            let lines = NETWORK[..end].lines().count();
            assert!(
                error.line().is_none_or(|line| (1..=lines).contains(&line)),
                "{error}"
            );
        }
    }
}

#[test]
fn ports_errors() {
    for (text, expected) in [
        ("", "there is no node in the file"),
        (
            "SW 6 36",
            "line 1: \"SW 6 36\" is not a port as ibnetdiscover -p prints them",
        ),
        (
            "SW 6 36 0x1 4x ZDR - SW 7 4 0x2 ( 'a' - 'b' )\n",
            "line 1: \"4xZDR\" is no known width and speed",
        ),
        (
            "SW 6 36 0x1 4x DDR - SW 7 4 0x2 ( 'a' - 'b' )\n",
            "line 1: \"S-0000000000000001\" is cabled to \"S-0000000000000002\"",
        ),
    ] {
        let error = ports(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn tables_errors() {
    let fabric = build(&topology(NETWORK).unwrap());
    let switch = "Unicast lids [0-7] of switch Lid 6 guid 0x0002c90200423e70 ('leaf-2'):\n";
    for (text, expected) in [
        (String::new(), "there is no forwarding table in the file"),
        (
            "0x0001 001\n".into(),
            "line 1: a route without a switch before it",
        ),
        (
            format!("{switch}0x0001\n"),
            "line 2: \"0x0001\" is not a LID and a port",
        ),
        (
            format!("{switch}0x0001 009 : (Channel Adapter portguid 0x0000000000100001: 'Hca1')\n"),
            "line 2: \"leaf-2\" sends LID 1 to port 9, which has no cable",
        ),
        (
            format!("{switch}0x0001 035 : (Channel Adapter portguid 0x100001: 'Hca1') sl 16\n"),
            "line 2: \"16\" is not a service level",
        ),
        (
            format!("{switch}0x0001 035 : (Channel Adapter portguid 0x100001: 'Hca1') sl\n"),
            "line 2: \"\" is not a service level",
        ),
        (
            format!("{switch}0x0001 035 : (Channel Adapter portguid 0x100001: 'Hca1') sl 1 2\n"),
            "line 2: \"2\" is not a port and a service level",
        ),
        (
            format!("{switch}0x0001 035 : (Channel Adapter portguid 0x100001: 'Hca1') sl 1 1:16\n"),
            "line 2: \"16\" is not a service level",
        ),
        (
            format!("{switch}0x0001 035 : (Channel Adapter portguid 0x100001: 'Hca1') sl 1 35:1\n"),
            "line 2: port \"35\" of \"leaf-2\" leads to no host",
        ),
        (
            format!("{switch}{switch}"),
            "line 2: a second table for \"leaf-2\"",
        ),
        (
            switch.replace("70", "77").replace("leaf-2", "leaf-9"),
            "line 1: a table for switch 0x0002c90200423e77 (leaf-9), which the fabric does not have",
        ),
    ] {
        let error = routes(&text, &fabric).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn sl_to_vl_errors() {
    let fabric = build(&topology(NETWORK).unwrap());
    let tables = include_str!("../samples/dump_lfts.txt");
    let aggregation = "Channel Adapter 0x0000000000100099, base LID 9, \"Mellanox Technologies Aggregation Node\"\n0 0 : 0 1\n";
    let both = routes(&format!("{tables}{aggregation}"), &fabric).unwrap();
    assert_eq!(both.tables, routes(tables, &fabric).unwrap().tables);
    let switch = "Switch 0x0002c90200423e70, base LID 6, \"leaf-2\"\n";
    let host = "Channel Adapter 0x0000000000100006, base LID 5, \"it's \"2\"\"\n";
    let vls = "0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 15";
    for (text, expected) in [
        (
            format!("{switch}1-3 3-1 : {vls}\n"),
            "line 2: \"1-3 3-1 : 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 15\" is not ports and the VLs of 16 \
             service levels (hint: lines look like '1-4 3 : 0 1 0 1 ...', with VLs of 0 to 15",
        ),
        (format!("{switch}1 2 {vls}\n"), "line 2: \"1 2 0 1 2"),
        (format!("{switch}1 2 3 : {vls}\n"), "line 2: \"1 2 3 : "),
        (format!("{switch}1 2 : {vls} 0\n"), "line 2: \"1 2 : "),
        (
            format!("{switch}1 2 : {}\n", vls.replace("15", "16")),
            "line 2: \"1 2 : ",
        ),
        (
            format!("{switch}#in out\n0-37 36 : {vls}\n"),
            "line 3: \"leaf-2\" has no port 37",
        ),
        (
            format!("{switch}0,1,3 1 : {vls}\n2-4 1 : {vls}\n"),
            "line 3: a second SL to VL table of \"leaf-2\" from port 3 to port 1",
        ),
        (
            format!("{host}0 0 : {vls}\n0 0 : {vls}\n"),
            "line 3: a second SL to VL table for \"it's number 2 (old)\"",
        ),
        (
            host.replace("06,", "07,"),
            "line 1: SL to VL tables for host 0x0000000000100007 (it's \"2\"), which the fabric",
        ),
        (
            switch.replace("70,", "77,").replace("leaf-2", "leaf-9"),
            "line 1: SL to VL tables for switch 0x0002c90200423e77 (leaf-9), which the fabric",
        ),
        (
            format!("{switch}0x0001 001\n"),
            "line 2: a route without a switch before it",
        ),
        (
            format!("{switch}1 2 : {vls}\n"),
            "there is no forwarding table in the file",
        ),
    ] {
        let error = routes(&text, &fabric).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
