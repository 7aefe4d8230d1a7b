//! Fabrics that cannot be built, and routes that do not work.

use silvan_core::LinkId;
use silvan_scenario::Scenario;

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
        "file.toml:1: fabric.parents: missing key (hint: xgft needs children, parents, and \
         may have links)"
    );
    assert_eq!(
        message("[fabric]\ngenerator = \"single-switch\"\nhosts = 0"),
        "file.toml:3: fabric.hosts: single-switch: hosts is 0 (hint: write 1 or more)"
    );
    assert_eq!(
        message(
            "[fabric]\ngenerator = \"hyper-x\"\nsizes = [2, 2]\nhosts-per-switch = 1\ncables = [1]"
        ),
        "file.toml:5: fabric.cables: hyper-x: 1 entries for 2 dimensions (hint: give 2, one for \
         each dimension)"
    );
    assert_eq!(
        message("[fabric]\ngenerator = \"fat-tree-684\""),
        "file.toml:2: fabric.generator: unknown value \"fat-tree-684\" (hint: did you mean \
         \"fat-tree-648\"?)"
    );
    assert_eq!(
        message("[fabric]\ngenerator = \"single-switch\"\n[[fabric.host]]\nname = \"a\""),
        "file.toml:2: fabric.generator: a generator (single-switch) is given together with lists of switches, hosts \
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
        "file.toml:29: fabric.cable.0: \"left\" has ports 1 to 4, not 9 (hint: ports count from \
         1; choose a free one, or give the switch more)"
    );
    assert_eq!(
        explicit("fabric.cable.1.to", "left:1"),
        "file.toml:33: fabric.cable.1: two cables are plugged into left:1 (hint: move one cable \
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
        "file.toml:33: fabric.cable.1: two cables are plugged into client-2:1 (hint: move one \
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
        "file.toml:60: fabric.tables.left.backup: packets from \"client-1\" to \"backup\" go \
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
        "file.toml:56: fabric.tables.left: no route from \"client-1\" to \"server\": \"left\" has \
         no entry for it (hint: add server = 1, or another port, to [fabric.tables.left])"
    );
    assert_eq!(
        explicit("fabric.routing", "min-hop"),
        "file.toml:56: fabric.tables: forwarding tables are given, but the routing computes them \
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
        refused.ends_with("or set fabric.allow-credit-loops to true to study the deadlock)"),
        "{refused}"
    );
    assert!(read(&format!("{ring}allow-credit-loops = true\n")).is_ok());
}

#[test]
fn d_mod_k_wants_a_fat_tree() {
    let chain = "[fabric]\ngenerator = \"ring\"\nswitches = 5\nhosts-per-switch = 1\n\
                 routing = \"d-mod-k\"\n";
    let refused = message(chain);
    assert!(
        refused.starts_with("file.toml:5: fabric.routing: d-mod-k needs a fat tree: "),
        "{refused}"
    );
    assert!(
        refused.ends_with(" (hint: use min-hop instead)"),
        "{refused}"
    );
}

const TORUS: &str = "[fabric]\ngenerator = \"torus\"\nsizes = [5, 3]\nhosts-per-switch = 1\n\
                     routing = \"dimension-order\"\n";

/// Without lanes for the datelines the error names the cycle, and the hint the remedy.
#[test]
fn a_torus_needs_lanes() {
    let refused = message(&format!("{TORUS}[vl]\ndata-vls = 1\n"));
    assert!(
        refused.starts_with("file.toml:5: fabric.routing: the routes can deadlock"),
        "{refused}"
    );
    assert!(
        refused.contains("(hint: set vl.data-vls to 2 for datelines"),
        "{refused}"
    );
    let written = read(&format!("{TORUS}[vl]\ndata-vls = 2\n")).unwrap();
    let by_default = read(TORUS).unwrap();
    assert_eq!(written.effective_toml(), by_default.effective_toml());
    let loops = read(&format!("{TORUS}allow-credit-loops = true\n")).unwrap();
    assert_eq!(loops.engine_config().data_vls, 1);
    let short = TORUS.replace("[5, 3]", "[4, 3]");
    assert_eq!(read(&short).unwrap().engine_config().data_vls, 1);
}

/// Fabrics and routes of scenarios that were read before are taken again where all that they follow from is equal.
#[test]
fn what_was_read_before_has_no_influence() {
    let torus = |more: &str| format!("{TORUS}{more}[run]\nduration = \"1 ms\"\n");
    let lanes = torus("[vl]\ndata-vls = 2\n");
    let one_lane = torus("[vl]\ndata-vls = 1\n");
    let refused = message(&one_lane);
    for _ in 0..2 {
        let first = read(&lanes).unwrap();
        assert_eq!(message(&one_lane), refused);
        let by_default = read(&torus("")).unwrap();
        assert_eq!(by_default.effective_toml(), first.effective_toml());
        let faster = read(&format!("{lanes}[link]\nspeed = \"XDR\"\n")).unwrap();
        let rates =
            [&first, &faster].map(|one| one.fabric().links[LinkId::new(0)].kind.data_rate());
        assert!(rates[0] < rates[1]);
        let loops = read(&torus("allow-credit-loops = true\n")).unwrap();
        assert!(loops.routes().dependency_cycle.is_some());
        assert!(first.routes().dependency_cycle.is_none());
        let other = read(&lanes.replace("[5, 3]", "[3, 5]")).unwrap();
        assert_eq!(first.fabric().host_count(), other.fabric().host_count());
        let tables = |one: &Scenario| format!("{:?}", one.forwarding().tables);
        assert_ne!(tables(&first), tables(&other));
        assert_eq!(tables(&first), tables(&read(&lanes).unwrap()));
    }
}

#[test]
fn lanes_of_a_torus_come_in_pairs() {
    assert_eq!(
        message(&format!(
            "{TORUS}[vl]\ndata-vls = 3\nsl-to-vl = {:?}",
            [2; 16]
        )),
        "file.toml:8: vl.sl-to-vl.0: class 0 starts at VL 2, but its routes need 2 VLs from a \
         multiple of 2 on, and there are 3 data VLs (hint: leave vl.sl-to-vl out, and set \
         vl.data-vls to 4)"
    );
    // Two dimensions take two bits.
    let incast = "[vl]\ndata-vls = 4\n[[traffic.incast]]\nto = \"host-0000\"\n";
    assert!(read(&format!("{TORUS}{incast}sl = 3\n")).is_ok());
    assert_eq!(
        message(&format!("{TORUS}{incast}sl = 4\n")),
        "file.toml:10: traffic.incast.0.sl: the routes take 2 of the 4 bits of a service level, \
         which leaves 0 to 3, not 4 (hint: lower it, or use routes that take fewer bits)"
    );
}

#[test]
fn dimension_order_wants_a_grid() {
    assert_eq!(
        message("[fabric]\nrouting = \"dimension-order\""),
        "file.toml:2: fabric.routing: dimension order needs a generator of a grid, such as mesh or \
         torus (hint: use \
         min-hop instead)"
    );
    assert_eq!(
        message("[fabric]\ngenerator = \"torus\"\nsizes = [2]\nhosts-per-switch = 1"),
        "file.toml:3: fabric.sizes: torus: a dimension of 2 switches, it must have 3 or more \
         (hint: write 3 or more)"
    );
}

#[test]
fn adaptive_routing_wants_a_fat_tree() {
    let mesh = "[fabric]\ngenerator = \"mesh\"\nsizes = [3, 3]\nhosts-per-switch = 1\n";
    let refused = message(&format!(
        "{mesh}routing = \"dimension-order\"\npath-choice = \"adaptive\""
    ));
    assert_eq!(
        refused,
        "file.toml:6: fabric.path-choice: dimension-order routes leave nothing to choose (hint: set \
         fabric.routing to \"min-hop\", or leave it out)"
    );
    let ring = "[fabric]\ngenerator = \"ring\"\nswitches = 4\nhosts-per-switch = 1\n\
                routing = \"min-hop\"\npath-choice = \"adaptive\"\nallow-credit-loops = ";
    let refused = message(&format!("{ring}false\n[vl]\ndata-vls = 1\n"));
    assert!(refused.contains("the routes can deadlock"), "{refused}");
    assert!(
        read(&format!("{ring}false"))
            .unwrap()
            .engine_config()
            .data_vls
            > 1
    );
    assert!(read(&format!("{ring}true")).is_ok());
    let tree = "[fabric]\ngenerator = \"k-ary-n-tree\"\nk = 2\nn = 2\npath-choice = \"adaptive\"\n";
    assert!(read(tree).is_ok());
    assert_eq!(
        message(&format!(
            "{tree}[control.feedback]\ncarrier = \"ack-per-message\""
        )),
        "file.toml:7: control.feedback.carrier: one ACK per message needs packets in order, which \
         adaptive routing does not keep (hint: use ack-per-packet, or leave fabric.path-choice out)"
    );
}

/// Without an explicit routing, a grid chooses among all shortest paths.
#[test]
fn switches_of_grids_choose_among_shortest_paths() {
    for grid in ["mesh", "torus", "hyper-x"] {
        for choice in ["ecmp", "adaptive", "spray-random", "spray-round-robin"] {
            let text = format!(
                "[fabric]\ngenerator = \"{grid}\"\nsizes = [3, 3]\nhosts-per-switch = 1\n\
                 path-choice = \"{choice}\"\n[vl]\ndata-vls = 4\n"
            );
            assert!(read(&text).is_ok(), "{text}");
        }
    }
}

/// With too few lanes for the paths, the error names the cycle, and the hint the sufficient number.
#[test]
fn layered_routes_say_how_many_lanes_suffice() {
    let dragonfly = "[fabric]\ngenerator = \"dragonfly\"\nswitches-per-group = 4\n\
                     hosts-per-switch = 1\nglobal-per-switch = 2\nrouting = \"layered-min-hop\"\n";
    let refused = message(&format!("{dragonfly}[vl]\ndata-vls = 1\n"));
    assert!(
        refused.starts_with(
            "file.toml:6: fabric.routing: the routes can deadlock, their channels depend on each \
             other in a cycle: group-"
        ),
        "{refused}"
    );
    let (_, hint) = refused.split_once("(hint: set vl.data-vls to ").unwrap();
    let lanes: u8 = hint.split(',').next().unwrap().parse().unwrap();
    let with = |lanes: u8| read(&format!("{dragonfly}[vl]\ndata-vls = {lanes}\n"));
    assert!(with(lanes).is_ok() && with(lanes + 1).is_ok());
    assert!(with(lanes - 1).is_err());
    assert!(
        read(&format!(
            "{dragonfly}allow-credit-loops = true\n[vl]\ndata-vls = 1\n"
        ))
        .is_ok()
    );
    assert_eq!(read(dragonfly).unwrap().engine_config().data_vls, lanes);
    for choice in ["adaptive", "spray-random", "spray-round-robin", "ecmp"] {
        let with = |lanes: u8| {
            format!("{dragonfly}path-choice = \"{choice}\"\n[vl]\ndata-vls = {lanes}\n")
        };
        let refused = message(&with(1));
        assert!(refused.contains("set vl.data-vls to 3,"), "{refused}");
        assert!(read(&with(3)).is_ok());
    }
}

/// The lanes that suffice are in the hint, as many as the tests of `silvan-fabric` count for these paths.
#[test]
fn paths_over_other_switches_say_how_many_lanes_suffice() {
    let dragonfly = "[fabric]\ngenerator = \"dragonfly\"\nswitches-per-group = 4\n\
                     hosts-per-switch = 1\nglobal-per-switch = 2\n";
    for (keys, place, lanes) in [
        ("routing = \"group-minimal\"\n", "6: fabric.routing", 2),
        ("path-choice = \"valiant\"\n", "6: fabric.path-choice", 4),
        ("path-choice = \"ugal-g\"\n", "6: fabric.path-choice", 4),
        ("path-choice = \"par\"\n", "6: fabric.path-choice", 5),
    ] {
        let with = |lanes: u8| format!("{dragonfly}{keys}[vl]\ndata-vls = {lanes}\n");
        let refused = message(&with(lanes - 1));
        let start = format!("file.toml:{place}: the routes can deadlock");
        assert!(refused.starts_with(&start), "{refused}");
        let hint = format!("(hint: set vl.data-vls to {lanes},");
        assert!(refused.contains(&hint), "{refused}");
        assert!(refused.contains(":4 (lane "), "{refused}");
        assert!(read(&with(lanes)).is_ok() && read(&with(lanes + 1)).is_ok());
        assert!(read(&format!("{dragonfly}{keys}allow-credit-loops = true\n")).is_ok());
    }
    let torus = "[fabric]\ngenerator = \"torus\"\nsizes = [12]\nhosts-per-switch = 1\n\
                 path-choice = \"valiant\"\n";
    let refused = message(&format!("{torus}[vl]\ndata-vls = 2\n"));
    assert!(refused.contains("set vl.data-vls to 12,"), "{refused}");
    let chain = "[fabric]\ngenerator = \"mesh\"\nsizes = [3]\nhosts-per-switch = 1\n\
                 routing = \"group-minimal\"\n";
    assert!(message(chain).contains("group-minimal routes need a generator with groups"));
}
