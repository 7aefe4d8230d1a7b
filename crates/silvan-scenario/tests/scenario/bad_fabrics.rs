//! Fabrics that cannot be built, and routes that do not work.

use crate::{SHIPPED, message, read, read_with};

/// The two-switch fabric of the example, whose tables are given.
const EXPLICIT: &str = SHIPPED[3].1;

fn explicit(key: &str, value: &str) -> String {
    let error = read_with(EXPLICIT, &[(key, value)])
        .unwrap_err()
        .to_string();
    let source = format!("--set {key}={value}: ");
    error.strip_prefix(&source).unwrap_or(&error).to_owned()
}

#[test]
fn generator_parameters_are_exactly_those_of_the_generator() {
    assert_eq!(
        message("[fabric]\ngenerator = \"fat-tree-648\"\nhosts = 3"),
        "file.toml:3: fabric.hosts: fat-tree-648 has no such parameter (hint: fat-tree-648 has no \
         parameters)"
    );
    assert_eq!(
        message("[fabric]\ngenerator = \"xgft\"\nchildren = [2]"),
        "file.toml:1: fabric.parents: missing key (hint: xgft needs children, parents)"
    );
    assert_eq!(
        message("[fabric]\ngenerator = \"single-switch\"\nhosts = 0"),
        "file.toml:2: fabric.generator: single-switch: 1 switches with 0 hosts each, both numbers \
         must be positive (hint: change the \
         numbers of the generator in [fabric])"
    );
    assert_eq!(
        message("[fabric]\ngenerator = \"fat-tree-684\""),
        "file.toml:2: fabric.generator: unknown value \"fat-tree-684\" (hint: did you mean \
         \"fat-tree-648\"?)"
    );
    assert_eq!(
        message("[fabric]\ngenerator = \"ring\"\n[[fabric.host]]\nname = \"a\""),
        "file.toml:2: fabric.generator: there is a generator (ring) beside lists of switches, hosts \
         or cables (hint: use either of them)"
    );
    assert_eq!(
        message("[fabric]\nhosts = 2\n[[fabric.host]]\nname = \"a\""),
        "file.toml:2: fabric.hosts: this is a parameter of a generator, and there is none (hint: \
         add fabric.generator, e.g. \"single-switch\")"
    );
}

#[test]
fn lists_name_the_entry_at_fault() {
    assert_eq!(
        explicit("fabric.cable.0.to", "left:9"),
        "file.toml:28: fabric.cable.0: \"left\" has ports 1 to 4, not 9 (hint: ports count from \
         1; choose a free one, or give the switch more)"
    );
    assert_eq!(
        explicit("fabric.cable.1.to", "left:1"),
        "file.toml:32: fabric.cable.1: two cables are plugged into left:1 (hint: move one cable \
         to a free port)"
    );
    assert_eq!(
        explicit("fabric.cable.0.to", "lefd:1"),
        "fabric.cable.0.to: there is no node named \"lefd\" (hint: did you mean \"left\"?)"
    );
    assert_eq!(
        explicit("fabric.cable.0.to", "left"),
        "fabric.cable.0.to: \"left\" is not a port (hint: write e.g. \"leaf-03:19\"; a host has only \
         port 1)"
    );
    assert_eq!(
        explicit("fabric.switch.0.ports", "0"),
        "fabric.switch.0.ports: switch \"left\" has 0 ports, it must have 1 to 254 (hint: write \
         e.g. 36)"
    );
    assert_eq!(
        explicit("fabric.host.1.name", "client-1"),
        "fabric.host.1.name: there are two nodes named \"client-1\" (hint: rename one; switches \
         and hosts share their names)"
    );
    assert_eq!(
        explicit("fabric.cable.0.from", "client-2"),
        "file.toml:32: fabric.cable.1: two cables are plugged into client-2:1 (hint: move one \
         cable to a free port)"
    );
}

#[test]
fn hosts_must_be_connected() {
    assert_eq!(
        message(
            "[[fabric.switch]]\nname = \"S\"\nports = 2\n[[fabric.host]]\nname = \"a\"\n\
             [[fabric.host]]\nname = \"b\"\n[[fabric.cable]]\nfrom = \"a\"\nto = \"S:1\""
        ),
        "file.toml:6: fabric.host.1: host \"b\" is not connected to a switch (hint: add a \
         [[fabric.cable]] from \"b:1\" to a port of a switch)"
    );
    assert_eq!(
        message("[[fabric.switch]]\nname = \"S\"\nports = 2"),
        "file.toml:1: fabric: the fabric has no host (hint: add a [[fabric.host]] with a \
         [[fabric.cable]])"
    );
    let two_islands = "[fabric]\nrouting = \"min-hop\"\n\
        switch = [{ name = \"S\", ports = 2 }, { name = \"T\", ports = 2 }]\n\
        host = [{ name = \"a\" }, { name = \"b\" }]\n\
        cable = [{ from = \"a\", to = \"S:1\" }, { from = \"b\", to = \"T:1\" }]";
    assert_eq!(
        message(two_islands),
        "file.toml:1: fabric: no path of cables leads from \"T\" to \"S\" (hint: add a \
         [[fabric.cable]] from \"T\" towards it)"
    );
}

#[test]
fn given_tables_must_lead_there() {
    assert_eq!(
        explicit("fabric.tables.left.backup", "2"),
        "fabric.tables.left.backup: no route from \"client-1\" to \"backup\": \"left\" sends it \
         out of port 2, which leads to \"client-2\" (hint: name a port that leads towards it)"
    );
    assert_eq!(
        explicit("fabric.tables.left.backup", "7"),
        "fabric.tables.left.backup: table of \"left\": \"backup\" leaves by port 7, which has no \
         cable (hint: name a port that a [[fabric.cable]] is plugged into)"
    );
    assert_eq!(
        explicit("fabric.tables.right.backup", "4"),
        "file.toml:59: fabric.tables.left.backup: packets from \"client-1\" to \"backup\" go \
         round in a loop: left -> right -> left (hint: change the port in one of these tables to \
         one that leads closer)"
    );
    assert_eq!(
        explicit("fabric.tables.lefd.backup", "4"),
        "fabric.tables.lefd: there is no switch named \"lefd\" (hint: did you mean \"left\"?)"
    );
    assert_eq!(
        explicit("fabric.tables.left.bakup", "4"),
        "fabric.tables.left.bakup: table of \"left\": \"bakup\" is no node's name or LID (hint: did \
         you mean \"backup\"?)"
    );
    let without = EXPLICIT.replacen("server = 3\n", "", 1);
    assert_eq!(
        message(&without),
        "file.toml:55: fabric.tables.left: no route from \"client-1\" to \"server\": \"left\" has \
         no entry for it (hint: add server = 1, or another port, to [fabric.tables.left])"
    );
    assert_eq!(
        explicit("fabric.routing", "min-hop"),
        "file.toml:55: fabric.tables: forwarding tables are given, but the routing computes them \
         (hint: set fabric.routing to \"explicit\")"
    );
}

#[test]
fn credit_loops_are_refused_unless_asked_for() {
    let ring = "[fabric]\ngenerator = \"ring\"\nswitches = 5\nhosts-per-switch = 1\n\
                routing = \"min-hop\"\n";
    let refused = message(ring);
    assert!(
        refused.starts_with(
            "file.toml:5: fabric.routing: the routes can deadlock, their channels depend on each \
             other in a cycle: switch-"
        ),
        "{refused}"
    );
    assert!(
        refused.ends_with(" (hint: set fabric.allow-credit-loops to true to study the deadlock)"),
        "{refused}"
    );
    assert!(read(&format!("{ring}allow-credit-loops = true\n")).is_ok());
}

#[test]
fn d_mod_k_wants_a_fat_tree() {
    let chain = "[fabric]\ngenerator = \"ring\"\nswitches = 5\nhosts-per-switch = 1\n";
    let refused = message(chain);
    assert!(
        refused.starts_with("file.toml:1: fabric.routing: d-mod-k needs a fat tree: "),
        "{refused}"
    );
    assert!(
        refused.ends_with(" (hint: use min-hop instead)"),
        "{refused}"
    );
}
