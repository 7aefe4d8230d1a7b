//! Service levels that paths have, in addition to the forwarding tables.

use silvan_core::{HostId, PortNumber, SwitchId};
use silvan_scenario::Scenario;

use super::{message, read};

const RING: &str = "[fabric]\ngenerator = \"ring\"\nswitches = 4\nhosts-per-switch = 2\n";

fn by_min_hop() -> Scenario {
    read(&format!(
        "{RING}allow-credit-loops = true\nrouting = \"min-hop\"\n"
    ))
    .unwrap()
}

/// A ring with the tables of min-hop as linear ones, and these levels from its last switch.
fn ring(levels: &str, rest: &str) -> String {
    let scenario = by_min_hop();
    let fabric = scenario.fabric();
    let rows = fabric.switch_ids().map(|switch| {
        let ports = (0..=fabric.max_lid().as_u16()).map(|lid| {
            let port = scenario.tables().get(switch, silvan_core::Lid::new(lid));
            format!("{:02x}", port.map_or(255, PortNumber::as_u8))
        });
        let digits: String = ports.collect();
        format!("{} = \"{digits}\"", fabric.switch(switch).name)
    });
    let rows: Vec<String> = rows.collect();
    format!(
        "{RING}routing = \"explicit\"\nlinear-tables = {{ {} }}\npath-sl = {{ {levels} }}\n{rest}",
        rows.join(", ")
    )
}

/// The row of levels of the ring's last switch, `level` for the hosts across.
fn across(level: char) -> String {
    let scenario = by_min_hop();
    let fabric = scenario.fabric();
    let lids = 0..=fabric.max_lid().as_u16();
    let there = |lid| {
        let mut hosts = [2, 3]
            .map(|host| fabric.host(HostId::new(host)).lid.as_u16())
            .into_iter();
        hosts.any(|host| host == lid)
    };
    let digit = |lid| if there(lid) { level } else { '0' };
    let digits: String = lids.map(digit).collect();
    format!("{} = \"{digits}\"", fabric.switch(SwitchId::new(3)).name)
}

/// All paths across the ring make a cycle; without the one of the last switch they do not.
#[test]
fn levels_decide_whether_a_ring_can_deadlock() {
    let lanes = "[vl]\ndata-vls = 2\n";
    for none in [String::new(), across('0')] {
        let refused = message(&ring(&none, lanes));
        assert!(refused.contains("the routes can deadlock"), "{refused}");
    }
    let text = ring(&across('1'), lanes);
    let scenario = read(&text).unwrap();
    let paths = scenario.forwarding().lanes.unwrap();
    assert_eq!((paths.lanes(), paths.classes()), (2, 8));
    let level = |from, to| paths.levels().level(HostId::new(from), HostId::new(to));
    assert_eq!((level(6, 2), level(7, 2), level(2, 7)), (1, 1, 0));
    // Classes of traffic share the lanes by default.
    assert_eq!(scenario.engine_config().sl_to_vl, [0; 16]);
    let again = Scenario::from_toml(scenario.effective_toml(), "elsewhere", &[]).unwrap();
    assert_eq!(again.effective_toml(), scenario.effective_toml());
    assert_eq!(again.forwarding().lanes, scenario.forwarding().lanes);
}

#[test]
fn classes_of_traffic_have_lanes_of_their_own_if_wanted() {
    let apart = "[vl]\ndata-vls = 4\nsl-to-vl = [0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2]\n";
    assert!(read(&ring(&across('1'), apart)).is_ok());
    let traffic = "[vl]\ndata-vls = 2\n[[traffic.uniform]]\nload = \"saturating\"\n";
    assert!(read(&ring(&across('1'), &format!("{traffic}sl = 7\n"))).is_ok());
    let refused = message(&ring(&across('1'), &format!("{traffic}sl = 8\n")));
    assert!(
        refused.contains("take 1 of the 4 bits of a service level, which leaves 0 to 7, not 8"),
        "{refused}"
    );
}

#[test]
fn wrong_levels_are_named() {
    let fitting = |row: &str| row.replace('"', "").len() - "switch-00 = ".len();
    let long = fitting(&across('0'));
    let beyond = format!("switch-00 = \"{}1\"", "0".repeat(long));
    for (levels, rest, expected) in [
        (
            across('1'),
            "[vl]\ndata-vls = 1\n",
            "class 0 starts at VL 0, but its routes need 2 VLs",
        ),
        (
            across('2'),
            "[vl]\ndata-vls = 2\n",
            "need 3 VLs from a multiple of 3 on, and there are 2 data VLs (hint: leave vl.sl-to-vl \
             out, and set vl.data-vls to 3)",
        ),
        (
            "switch-00 = \"0g\"".to_owned(),
            "",
            "fabric.path-sl.switch-00: these are not hexadecimal digits (hint: write a hexadecimal digit",
        ),
        (
            "switch-00 = \"0\u{e9}\"".to_owned(),
            "",
            "fabric.path-sl.switch-00: these are not hexadecimal digits",
        ),
        (
            beyond,
            "",
            "fabric.path-sl.switch-00: there is a level for LID ",
        ),
        ("swich-00 = \"0\"".to_owned(), "", "fabric.path-sl.swich-00"),
    ] {
        let refused = message(&ring(&levels, rest));
        assert!(refused.contains(expected), "{refused}\n{expected}");
    }
    let refused = message(&format!("{RING}path-sl = {{ {} }}\n", across('1')));
    assert!(
        refused.contains("fabric.path-sl: levels of paths are given, but the routing computes"),
        "{refused}"
    );
}

/// Maps level 1 at every switch, for inputs 1 to 4.
fn mapped(digits: &str) -> String {
    let rows = (0..4).map(|switch| format!("switch-{switch:02} = [\"1-4 1,2-4 {digits}\"]"));
    let rows: Vec<String> = rows.collect();
    format!("sl-to-vl = {{ {} }}\n", rows.join(", "))
}

#[test]
fn tables_decide_which_lane_a_level_is_on() {
    let lanes = "[vl]\ndata-vls = 2\n";
    let refused = message(&ring(&across('1'), &(mapped("0000000000000000") + lanes)));
    assert!(refused.contains("the routes can deadlock"), "{refused}");
    // Lanes are named, for those of the tables are in force.
    assert!(refused.contains("(lane 0)"), "{refused}");
    // Level 9 would need ten lanes by itself.
    let tables = mapped("0000000001000000");
    let scenario = read(&ring(&across('9'), &(tables.clone() + lanes))).unwrap();
    let paths = scenario.forwarding().lanes.unwrap();
    assert_eq!((paths.lanes(), paths.classes()), (2, 16));
    let port = PortNumber::new;
    assert_eq!(paths.lane(SwitchId::new(2), port(3), port(4), 9), 1);
    let again = Scenario::from_toml(scenario.effective_toml(), "elsewhere", &[]).unwrap();
    assert_eq!(again.effective_toml(), scenario.effective_toml());
    assert_eq!(again.forwarding().lanes, scenario.forwarding().lanes);
    // Without a table, levels are mapped by vl.sl-to-vl: to 1 by default.
    let some = tables
        .replace("switch-01 =", "host-0007 =")
        .replace("1-4 1,2-4 ", "");
    let some = some.replacen("switch-00 = [\"", "switch-00 = [\"1-4 1-4 ", 1);
    let some = some.replace("switch-02 = [\"", "host-0001 = [\"");
    let some = some.replace("switch-03 = [\"", "host-0002 = [\"");
    let scenario = read(&ring(&across('9'), &(some + lanes))).unwrap();
    let paths = scenario.forwarding().lanes.unwrap();
    assert_eq!(paths.lane(SwitchId::new(2), port(3), port(4), 9), 1);
    assert_eq!(paths.lane(SwitchId::new(0), port(3), port(4), 7), 0);
    assert_eq!(paths.lane(SwitchId::new(2), port(3), port(4), 7), 1);
    let hosts = paths.host_vls().unwrap();
    assert_eq!((hosts[HostId::new(7)][7], hosts[HostId::new(6)][7]), (0, 1));
}

/// With tables, traffic with an explicit level has that level on all paths.
#[test]
fn traffic_of_a_level_of_its_own_is_checked_too() {
    let text = |sl: u8| {
        let traffic = format!("[[traffic.uniform]]\nload = \"saturating\"\nsl = {sl}\n");
        let lanes = mapped("0122222222222222");
        ring(
            &across('1'),
            &format!("{lanes}[vl]\ndata-vls = 3\n{traffic}"),
        )
    };
    assert!(read(&text(0)).is_ok());
    let refused = message(&text(2));
    assert!(refused.contains("(lane 2)"), "{refused}");
}

#[test]
fn a_host_may_have_levels_of_its_own() {
    let lanes = "[vl]\ndata-vls = 2\n";
    let of_host = |host: &str| across('1').replace("switch-03", host);
    let both = format!("{}, {}", of_host("host-0006"), of_host("host-0007"));
    let scenario = read(&ring(&both, lanes)).unwrap();
    let by_switch = read(&ring(&across('1'), lanes)).unwrap();
    assert_eq!(scenario.forwarding().lanes, by_switch.forwarding().lanes);
    // The other host of the switch closes the cycle.
    let refused = message(&ring(&of_host("host-0006"), lanes));
    assert!(refused.contains("the routes can deadlock"), "{refused}");
    // The host's levels override those of its switch.
    let all = format!("{}, host-0007 = \"0\"", across('1'));
    let refused = message(&ring(&all, lanes));
    assert!(refused.contains("the routes can deadlock"), "{refused}");
}

#[test]
fn wrong_tables_are_named() {
    let fine = "0101010101010101";
    for (tables, expected) in [
        (
            format!("switch-00 = [\"1 2 {fine}0\"]"),
            "fabric.sl-to-vl.switch-00.0: the lanes are not 16 hexadecimal digits (hint: write input",
        ),
        (
            format!("switch-00 = [\"1 2 {fine}\", \"2 {fine}\"]"),
            "fabric.sl-to-vl.switch-00.1: these are not three words (hint: write input ports, output",
        ),
        (
            format!("switch-00 = [\"1 4-2 {fine}\"]"),
            "fabric.sl-to-vl.switch-00.0: \"4-2\" are not ports such as 1-4,7 (hint: ",
        ),
        (
            format!("switch-00 = [\"1 4-5 {fine}\"]"),
            "fabric.sl-to-vl.switch-00.0: there is no port 5, only 1 to 4 (hint: ",
        ),
        (
            format!("switch-00 = [\"0 4 {fine}\"]"),
            "fabric.sl-to-vl.switch-00.0: there is no port 0, only 1 to 4 (hint: ",
        ),
        (
            format!("switch-00 = [\"1-3 4 {fine}\", \"2 3-4 {fine}\"]"),
            "fabric.sl-to-vl.switch-00.1: there are lanes from port 2 to port 4 already (hint: ",
        ),
        (
            format!("host-0000 = [\"1 2 {fine}\"]"),
            "fabric.sl-to-vl.host-0000.0: these are not 16 hexadecimal digits (hint: write a VL for",
        ),
        (
            format!("host-0000 = [\"{fine}\", \"{fine}\"]"),
            "fabric.sl-to-vl.host-0000.1: a host has one table (hint: keep one of them)",
        ),
        (
            format!("host-000 = [\"{fine}\"]"),
            "fabric.sl-to-vl.host-000: there is no switch or host named \"host-000\" (hint: did you",
        ),
        (
            "host-0003 = [\"2000000000000000\"]".to_owned(),
            "fabric.sl-to-vl.host-0003: service level 0 is mapped to VL 2, and there are 2 data VLs \
             (hint: set vl.data-vls to 3)",
        ),
        (
            "host-0003 = [\"f000000000000000\"]".to_owned(),
            "VL 15, and there are 2 data VLs (hint: VL 15 carries no data",
        ),
        (
            "switch-03 = [\"1-2 3-4 0700000000000000\"]".to_owned(),
            "fabric.sl-to-vl.switch-03: packets from \"host-0006\" to \"host-0002\" on service level 1 \
             have no lane at \"switch-03\": from port 1 to port 3 it is mapped to VL 7 (hint: set \
             vl.data-vls to 8)",
        ),
    ] {
        let rest = format!("sl-to-vl = {{ {tables} }}\n[vl]\ndata-vls = 2\n");
        let refused = message(&ring(&across('1'), &rest));
        assert!(refused.contains(expected), "{refused}\n{expected}");
    }
    let refused = message(&format!("{RING}{}", mapped(fine)));
    assert!(
        refused.contains("fabric.sl-to-vl: SL to VL tables are given, but the routing computes"),
        "{refused}"
    );
}
