//! Fabrics and tables from files of real tools.

use silvan_scenario::Scenario;
use silvan_units::Lid;

/// A scenario beside the samples of the import crate.
fn read(fabric: &str) -> Result<Scenario, silvan_scenario::ScenarioError> {
    let text = format!("[fabric]\n{fabric}\n[run]\nduration = \"1 ms\"\n");
    Scenario::from_toml(&text, "../silvan-import/tests/samples/test.toml", &[])
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
            "../silvan-import/tests/samples/test.toml:2: fabric.file: \
             ../silvan-import/tests/samples/nowhere.txt cannot be read: ",
        ),
        (
            "file = \"dump_lfts.txt\"",
            "../silvan-import/tests/samples/dump_lfts.txt:1: ",
        ),
        (
            "file = \"ibnetdiscover.txt\"\ngenerator = \"fat-tree-648\"",
            "../silvan-import/tests/samples/test.toml:2: fabric.file: there is a file beside a \
             generator or lists (hint: use either of them)",
        ),
        (
            "format = \"ibsim\"",
            "../silvan-import/tests/samples/test.toml:2: fabric.format: there is no file of this format",
        ),
        (
            "routing = \"lfts\"",
            "../silvan-import/tests/samples/test.toml:2: fabric.routing: lfts needs routing-file",
        ),
        (
            "routing-file = \"dump_lfts.txt\"",
            "../silvan-import/tests/samples/test.toml:2: fabric.routing-file: there is a file of tables",
        ),
        (
            "routing = \"lfts\"\nrouting-file = \"dump_lfts.txt\"",
            "../silvan-import/tests/samples/dump_lfts.txt:1: a table for switch \
             0x0002c90200423e70 (leaf-2), which the fabric does not have",
        ),
        (
            "routing = \"explicit\"\nlinear-tables = { switch-0000 = \"0g\" }",
            "../silvan-import/tests/samples/test.toml:3: fabric.linear-tables",
        ),
        (
            "path-levels = { switch-0000 = \"01\" }",
            "../silvan-import/tests/samples/test.toml:2: fabric.path-levels: levels of paths are given",
        ),
        (
            "linear-tables = { switch-0000 = \"00\" }",
            "../silvan-import/tests/samples/test.toml:2: fabric.linear-tables: forwarding tables are given",
        ),
    ] {
        let message = message(fabric);
        assert!(message.starts_with(expected), "{message}\n{expected}");
        assert!(message.contains(" (hint: "), "{message}");
    }
}
