//! Fabrics and tables from files of real tools.

use std::fs;
use std::path::Path;

use silvan_core::Lid;
use silvan_scenario::{Override, Scenario};

/// A scenario next to the samples of the import crate.
fn read(fabric: &str) -> Result<Scenario, silvan_scenario::ScenarioError> {
    let text = format!("[fabric]\n{fabric}\n[run]\nduration = \"1 ms\"\n");
    Scenario::from_toml(&text, "../silvan-fabric/tests/samples/test.toml", &[])
}

fn message(fabric: &str) -> String {
    read(fabric).unwrap_err().to_string()
}

const ALL: &str =
    "file = \"ibnetdiscover.txt\"\nrouting = \"lfts\"\nrouting-file = \"dump_lfts.txt\"";

#[test]
fn fabric_and_tables_are_those_of_the_files() {
    let scenario = read(ALL).unwrap();
    let fabric = scenario.fabric();
    assert_eq!(
        (
            fabric.host_count(),
            fabric.switch_count(),
            fabric.links.len()
        ),
        (4, 3, 8)
    );
    let spine = fabric.nodes[fabric.node_by_name("spine").unwrap()]
        .as_switch()
        .unwrap();
    assert_eq!(fabric.switch(spine).lid, Lid::new(7));
    // The line of LID 4 in the spine's table in dump_lfts.txt.
    let port = scenario.tables().get(spine, Lid::new(4)).unwrap();
    assert_eq!(port.as_u8(), 3);
}

/// Oracle: the written scenario, which has the lists of the files as its own.
#[test]
fn lists_from_files_change_as_the_written_ones_do() {
    let scenario = read(ALL).unwrap();
    let written = Scenario::from_toml(&scenario.to_toml(), "elsewhere", &[]).unwrap();
    let tables = [
        ("fabric.cable.0.length", "\"3 m\"", true),
        ("fabric.cable.99.length", "\"3 m\"", false),
        ("fabric.switch", "[]", false),
        ("fabric.host.0.lid", "40", false),
        ("fabric.linear-tables", "{}", false),
        ("switch.latency", "\"90 ns\"", true),
        ("fabric.routing", "\"min-hop\"", false),
    ];
    for (key, value, accepted) in tables {
        let change = [Override::new(key, value)];
        let outcome = |scenario: &Scenario| {
            let changed = scenario.with_overrides(&change);
            changed.map(|changed| changed.hash()).ok()
        };
        let expected = outcome(&written);
        assert_eq!(expected.is_some(), accepted, "{key}");
        assert_eq!(outcome(&scenario), expected, "{key}");
    }
    // Files and their lists in one call, in either order.
    let text = format!("[fabric]\n{ALL}\n[run]\nduration = \"1 ms\"\n");
    let changes = [("fabric.cable.0.length", "\"3 m\""), ("run.seed", "3")];
    let changes = changes.map(|(key, value)| Override::new(key, value));
    let at_once =
        Scenario::from_toml(&text, "../silvan-fabric/tests/samples/test.toml", &changes).unwrap();
    assert_eq!(
        at_once.hash(),
        scenario.with_overrides(&changes).unwrap().hash()
    );
    assert_ne!(at_once.hash(), scenario.hash());
}

/// The effective scenario needs the files no more and runs equally: same text, same hash.
#[test]
fn the_effective_scenario_stands_alone() {
    for fabric in [
        ALL,
        "file = \"ibnetdiscover-p.txt\"\nformat = \"ibnetdiscover-ports\"\nrouting = \"min-hop\"",
        "file = \"ibsim.net\"\nformat = \"ibsim\"\nrouting = \"min-hop\"",
    ] {
        let scenario = read(fabric).unwrap();
        let again = Scenario::from_toml(scenario.effective_toml(), "elsewhere", &[]).unwrap();
        assert_eq!(again.effective_toml(), scenario.effective_toml());
        assert_eq!(again.hash(), scenario.hash());
        assert_eq!(again.tables(), scenario.tables());
        for (a, b) in again
            .fabric()
            .nodes
            .iter()
            .zip(scenario.fabric().nodes.iter())
        {
            assert_eq!(a, b);
        }
    }
}

#[test]
fn what_is_wrong_is_named_with_its_file() {
    for (fabric, expected) in [
        (
            "file = \"nowhere.txt\"",
            "../silvan-fabric/tests/samples/test.toml:2: fabric.file: \
             ../silvan-fabric/tests/samples/nowhere.txt cannot be read: ",
        ),
        (
            "file = \"dump_lfts.txt\"",
            "../silvan-fabric/tests/samples/dump_lfts.txt:1: ",
        ),
        (
            "file = \"ibnetdiscover.txt\"\ngenerator = \"fat-tree-648\"",
            "../silvan-fabric/tests/samples/test.toml:2: fabric.file: a file is given together with a \
             generator or lists (hint: use either of them)",
        ),
        (
            "format = \"ibsim\"",
            "../silvan-fabric/tests/samples/test.toml:2: fabric.format: there is no file of this format",
        ),
        (
            "routing = \"lfts\"",
            "../silvan-fabric/tests/samples/test.toml:2: fabric.routing: lfts needs routing-file",
        ),
        (
            "routing-file = \"dump_lfts.txt\"",
            "../silvan-fabric/tests/samples/test.toml:2: fabric.routing-file: there is a file of tables",
        ),
        (
            "routing = \"lfts\"\nrouting-file = \"dump_lfts.txt\"",
            "../silvan-fabric/tests/samples/dump_lfts.txt:1: a table for switch \
             0x0002c90200423e70 (leaf-2), which the fabric does not have",
        ),
        (
            "routing = \"explicit\"\nlinear-tables = { switch-0000 = \"0g\" }",
            "../silvan-fabric/tests/samples/test.toml:3: fabric.linear-tables",
        ),
        (
            "path-sl = { switch-0000 = \"01\" }",
            "../silvan-fabric/tests/samples/test.toml:2: fabric.path-sl: levels of paths are given",
        ),
        (
            "linear-tables = { switch-0000 = \"00\" }",
            "../silvan-fabric/tests/samples/test.toml:2: fabric.linear-tables: forwarding tables are given",
        ),
    ] {
        let message = message(fabric);
        assert!(message.starts_with(expected), "{message}\n{expected}");
        assert!(message.contains(" (hint: "), "{message}");
    }
}

/// The table of the switch `spine` has no line for `Hca2`, as in a network that was cut off.
#[test]
fn a_missing_entry_is_an_error_unless_packets_may_be_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let samples = Path::new("../silvan-fabric/tests/samples");
    fs::copy(
        samples.join("ibnetdiscover.txt"),
        folder.path().join("net.txt"),
    )
    .unwrap();
    let dump = fs::read_to_string(samples.join("dump_lfts.txt")).unwrap();
    let mut in_spine = false;
    let lines = dump.lines().filter(|line| {
        if line.starts_with("Unicast") {
            in_spine = line.contains("(spine)") || line.contains("('spine')");
        }
        !(in_spine && line.starts_with("0x0004"))
    });
    let cut: Vec<&str> = lines.collect();
    assert_eq!(cut.len() + 1, dump.lines().count());
    fs::write(folder.path().join("tables.txt"), cut.join("\n")).unwrap();
    let name = folder.path().join("test.toml").display().to_string();
    let text = |more: &str| {
        format!(
            "[fabric]\nfile = \"net.txt\"\nrouting = \"lfts\"\nrouting-file = \"tables.txt\"\n{more}"
        )
    };

    let error = Scenario::from_toml(&text(""), &name, &[])
        .unwrap_err()
        .to_string();
    let start = format!("{name}:4: fabric.routing-file: no route from ");
    assert!(error.starts_with(&start), "{error}");
    let end = "to \"Hca2\": \"spine\" has no entry for it (hint: set fabric.unreachable to \"drop\" to \
               discard and count such packets, or collect the tables again)";
    assert!(error.ends_with(end), "{error}");

    let scenario = Scenario::from_toml(&text("unreachable = \"drop\"\n"), &name, &[]).unwrap();
    // The three other hosts are at another switch, and the way leads over the spine.
    assert_eq!(scenario.routes().unreachable, 3);
    assert_eq!(scenario.warnings().len(), 1);
    assert!(
        scenario.warnings()[0].starts_with("3 of 12 pairs of hosts have no route"),
        "{:?}",
        scenario.warnings()
    );
    // The effective scenario is self-contained and equal.
    let again = Scenario::from_toml(scenario.effective_toml(), "elsewhere", &[]).unwrap();
    assert_eq!(again.hash(), scenario.hash());
    assert_eq!(again.routes().unreachable, 3);
}

/// Oracle: the scenario that names the switch and the hosts of the GUIDs.
#[test]
fn roots_and_compute_nodes_are_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let roots = file("roots", "# the spine\n0x2c90200423e71\n");
    let compute = file("compute", "0x100004\n0x100001 Hca1\n0x99\n");
    let network = "file = \"ibnetdiscover.txt\"";
    let roots = format!("{network}\nroot-guid-file = \"{roots}\"");
    let both = format!("{roots}\ncn-guid-file = \"{compute}\"");
    let named = |routing: &str| {
        read(&format!(
            "{network}\nrouting = \"{routing}\"\nroots = [\"spine\"]"
        ))
        .unwrap()
    };
    for (text, expected) in [
        (roots.clone(), named("fat-tree")),
        (
            format!("{roots}\nrouting = \"up-down\""),
            named("up-down"),
        ),
        (
            both.clone(),
            read(&format!(
                "{network}\nrouting = \"fat-tree\"\nroots = [\"spine\"]\ncompute-nodes = [\"Hca2\", \"Hca1/P1\"]"
            ))
            .unwrap(),
        ),
    ] {
        let scenario = read(&text).unwrap();
        assert_eq!(scenario.hash(), expected.hash(), "{text}");
        assert_eq!(scenario.tables(), expected.tables());
        let again = Scenario::from_toml(scenario.effective_toml(), "elsewhere", &[]).unwrap();
        assert_eq!(again.hash(), scenario.hash());
        let written = Scenario::from_toml(&scenario.to_toml(), "elsewhere", &[]).unwrap();
        assert_eq!(written.hash(), scenario.hash());
    }
    let warnings = read(&both).unwrap();
    let [warning] = warnings.warnings() else {
        panic!("{:?}", warnings.warnings());
    };
    let end = "compute:3: 0x0000000000000099 is the GUID of no host's port, left out";
    assert!(warning.ends_with(end), "{warning}");
    for (fabric, expected) in [
        (
            format!("{roots}\nrouting = \"d-mod-k\""),
            "fabric.root-guid-file: there is a file of roots, but the routing \"d-mod-k\" reads no file (hint: ",
        ),
        (
            format!("{both}\nrouting = \"up-down\""),
            "fabric.cn-guid-file: there is a file of compute nodes, but the routing \"up-down\" reads no file (hint: ",
        ),
        (
            format!("{roots}\nrouting = \"up-down\"\nroots = [\"spine\"]"),
            "fabric.root-guid-file: a file of roots is given together with a list (hint: ",
        ),
        (
            format!("{network}\nroot-guid-file = \"nowhere\""),
            "fabric.root-guid-file: ../silvan-fabric/tests/samples/nowhere cannot be read: ",
        ),
        (
            format!("{network}\nroot-guid-file = \"dump_lfts.txt\""),
            "dump_lfts.txt:1: \"Unicast\" is no GUID (hint: write one GUID in each line",
        ),
    ] {
        let message = message(&fabric);
        assert!(message.contains(expected), "{message}");
    }
    // A scenario without routes needs no file of roots.
    read(&format!(
        "{network}\nrouting = \"none\"\nroot-guid-file = \"nowhere\""
    ))
    .unwrap();
}

/// Two switches, each with a port of one adapter, do not reach each other.
#[test]
fn planes_are_to_be_simulated_apart() {
    let folder = tempfile::tempdir().unwrap();
    let plane = |switch: usize| {
        format!(
            "switchguid=0xa{switch}\nSwitch 8 \"S-00000000000000a{switch}\" # \"plane-{switch}\" base port 0 lid {switch} lmc 0\n\
             [1] \"H-00000000000000b0\"[{switch}](b{switch}) # \"node-1\" lid 1{switch} 4xHDR\n\
             [2] \"H-00000000000000c0\"[{switch}](c{switch}) # \"node-2\" lid 2{switch} 4xHDR\n\n"
        )
    };
    let node = |node: &str, name: &str, lid: u8| {
        format!(
            "caguid=0x{node}0\nCa 2 \"H-00000000000000{node}0\" # \"{name}\"\n\
             [1]({node}1) \"S-00000000000000a1\"[{lid}] # lid {lid}1 lmc 0 \"plane-1\" lid 1 4xHDR\n\
             [2]({node}2) \"S-00000000000000a2\"[{lid}] # lid {lid}2 lmc 0 \"plane-2\" lid 2 4xHDR\n\n"
        )
    };
    let text = plane(1) + &plane(2) + &node("b", "node-1", 1) + &node("c", "node-2", 2);
    fs::write(folder.path().join("net.txt"), text).unwrap();
    let place = folder.path().join("test.toml");
    let scenario = "[fabric]\nfile = \"net.txt\"\n[run]\nduration = \"1 ms\"\n";
    let error = Scenario::from_toml(scenario, place.to_str().unwrap(), &[]).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("no path of cables leads from \"plane-2\" to \"plane-1\""),
        "{error}"
    );
    let hint =
        "the switches form 2 planes that share only adapters: simulate each alone, from a file";
    assert!(error.contains(hint), "{error}");
}

/// Oracle: shapes by hand. Two leaves of two hosts and two spines, whole; with a cable missing; with a cable between the leaves.
#[test]
fn the_default_is_the_first_routing_that_suits() {
    let routing = |cables: &[(&str, &str)]| {
        let mut text = "switch = [".to_owned();
        for name in ["leaf-1", "leaf-2", "spine-1", "spine-2"] {
            text += &format!("{{ name = \"{name}\", ports = 8 }}, ");
        }
        text += "]\nhost = [";
        for host in 1..=4 {
            text += &format!("{{ name = \"h{host}\" }}, ");
        }
        text += "]\ncable = [";
        for host in 1..=4 {
            let leaf = (host + 1) / 2;
            text += &format!("{{ from = \"h{host}\", to = \"leaf-{leaf}:{host}\" }}, ");
        }
        for (index, (from, to)) in cables.iter().enumerate() {
            let port = index % 4 + 5;
            text += &format!("{{ from = \"{from}:{port}\", to = \"{to}:{port}\" }}, ");
        }
        let scenario = read(&(text + "]")).unwrap();
        let name = scenario.file().fabric.routing().name().name();
        (name, scenario.routing_reason().to_owned())
    };
    let whole = [
        ("leaf-1", "spine-1"),
        ("leaf-1", "spine-2"),
        ("leaf-2", "spine-1"),
        ("leaf-2", "spine-2"),
    ];
    let tree = "the switches form a fat tree";
    assert_eq!(routing(&whole), ("d-mod-k", tree.to_owned()));
    let (name, reason) = routing(&whole[..3]);
    assert_eq!(name, "fat-tree");
    let expected = format!("{tree} that is not regular; d-mod-k needs a fat tree: ");
    assert!(reason.starts_with(&expected), "{reason}");
    let (name, reason) = routing(&[whole[0], whole[2], whole[3], ("leaf-1", "leaf-2")]);
    assert_eq!(name, "up-down");
    let expected = "the switches form no fat tree; fat-tree needs a tree: \"leaf-1:";
    assert!(reason.starts_with(expected), "{reason}");
}

#[test]
fn no_routing_needs_no_tables_and_no_file_of_them() {
    let scenario = read("routing = \"none\"\nrouting-file = \"nowhere.txt\"").unwrap();
    assert_eq!(scenario.routes().unreachable, scenario.routes().pairs);
    assert!(scenario.warnings().is_empty());
    assert!(scenario.discards_unroutable());
}

#[test]
fn warnings_name_the_file() {
    let scenario = read("file = \"worn.txt\"\nrouting = \"min-hop\"").unwrap();
    assert_eq!(scenario.warnings().len(), 6);
    for warning in scenario.warnings() {
        assert!(
            warning.starts_with("../silvan-fabric/tests/samples/worn.txt:"),
            "{warning}"
        );
    }
}

/// Oracle: the network without its aggregation nodes, a fat tree of two leaves and two spines.
#[test]
fn aggregation_nodes_leave_the_shape_of_a_tree_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    let mut adapters = String::new();
    let mut host = |switch: usize, port: usize, name: &str| {
        let id = format!("H-00000000000000{switch}{port:x}");
        adapters += &format!(
            "Ca 1 \"{id}\" # \"{name}\"\n[1] \"S-000000000000000{switch}\"[{port}] # lid 0 lmc 0 \"s\" lid 0 4xHDR\n\n"
        );
        format!("[{port}] \"{id}\"[1] # \"{name}\" lid 0 4xHDR\n")
    };
    for switch in 1..=4 {
        text += &format!(
            "Switch 9 \"S-000000000000000{switch}\" # \"s{switch}\" base port 0 lid 0 lmc 0\n"
        );
        for port in [1, 2] {
            // Port `port + 2` of a leaf leads to the spine of this number, whose port has the leaf's.
            let near = if switch < 3 { port + 2 } else { port };
            let (peer, far) = (near, switch);
            text += &format!("[{near}] \"S-000000000000000{peer}\"[{far}] # \"s\" lid 0 4xHDR\n");
            if switch < 3 {
                text += &host(switch, port, &format!("host-{switch}{port}"));
            }
        }
        text += &host(switch, 9, "Mellanox Technologies Aggregation Node");
        text += "\n";
    }
    fs::write(folder.path().join("net.txt"), text + &adapters).unwrap();
    let scenario =
        "[fabric]\nfile = \"net.txt\"\nrouting = \"d-mod-k\"\n[run]\nduration = \"1 ms\"\n";
    let place = folder.path().join("test.toml");
    let read = Scenario::from_toml(scenario, place.to_str().unwrap(), &[]).unwrap();
    assert_eq!(
        (read.fabric().host_count(), read.fabric().links.len()),
        (4, 8)
    );
    let [warning] = read.warnings() else {
        panic!("{:?}", read.warnings());
    };
    assert!(
        warning.ends_with("4 aggregation nodes of switches (SHARP) are left out"),
        "{warning}"
    );
    let named =
        "[[traffic.flow]]\nfrom = \"host-11\"\nto = \"Mellanox Technologies Aggregation Node\"\n";
    let error = Scenario::from_toml(&format!("{scenario}{named}"), place.to_str().unwrap(), &[]);
    let error = error.unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("is an aggregation node (SHARP), which carries no traffic of hosts"),
        "{message}"
    );
    assert_eq!(error.line(), Some(8));
    assert_eq!(
        error.hint(),
        Some("a file's aggregation nodes are left out; give the name of a host")
    );
}

/// Oracle: the same files in UTF-8.
#[test]
fn captures_of_powershell_are_read() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/real-fabric");
    let folder = tempfile::tempdir().unwrap();
    let toml = "[fabric]\nfile = \"ibnetdiscover.txt\"\nrouting = \"lfts\"\nrouting-file = \"dump_lfts.txt\"\n";
    for file in ["ibnetdiscover.txt", "dump_lfts.txt"] {
        let text = fs::read_to_string(format!("{samples}/{file}")).unwrap();
        let text = text.replace('\n', "\r\n");
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        let bytes: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
        fs::write(folder.path().join(file), bytes).unwrap();
    }
    let read = |folder: &str| {
        let scenario = Scenario::from_toml(toml, &format!("{folder}/test.toml"), &[]).unwrap();
        scenario.to_toml()
    };
    assert_eq!(read(folder.path().to_str().unwrap()), read(samples));
}

#[test]
fn compressed_files_are_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("net.xz"), b"\xfd7zXZ\0\0\x04").unwrap();
    let name = folder.path().join("test.toml").display().to_string();
    let error = Scenario::from_toml("[fabric]\nfile = \"net.xz\"\n", &name, &[]).unwrap_err();
    assert_eq!(
        error.hint(),
        Some("unpack it first, e.g. with unxz, gunzip or unzstd")
    );
    assert_eq!(error.line(), Some(2));
}
