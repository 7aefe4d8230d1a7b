//! Service levels that paths have, beside the forwarding tables.

use silvan_scenario::Scenario;
use silvan_units::{HostId, PortNumber, SwitchId};

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
            let port = scenario.tables().get(switch, silvan_units::Lid::new(lid));
            format!("{:02x}", port.map_or(255, PortNumber::as_u8))
        });
        let digits: String = ports.collect();
        format!("{} = \"{digits}\"", fabric.switch(switch).name)
    });
    let rows: Vec<String> = rows.collect();
    format!(
        "{RING}routing = \"explicit\"\nlinear-tables = {{ {} }}\npath-levels = {{ {levels} }}\n{rest}",
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

/// All paths across the ring make a circle; without the one of the last switch they do not.
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
    assert_eq!(paths.path(SwitchId::new(3), HostId::new(2)), 1);
    assert_eq!(paths.path(SwitchId::new(1), HostId::new(7)), 0);
    // Classes of traffic share the lanes unless they are told otherwise.
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
            "",
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
            "fabric.path-levels.switch-00: these are not hexadecimal digits (hint: write a hexadecimal digit",
        ),
        (
            "switch-00 = \"0\u{e9}\"".to_owned(),
            "",
            "fabric.path-levels.switch-00: these are not hexadecimal digits",
        ),
        (
            beyond,
            "",
            "fabric.path-levels.switch-00: there is a level for LID ",
        ),
        (
            "swich-00 = \"0\"".to_owned(),
            "",
            "fabric.path-levels.swich-00",
        ),
    ] {
        let refused = message(&ring(&levels, rest));
        assert!(refused.contains(expected), "{refused}\n{expected}");
    }
    let refused = message(&format!("{RING}path-levels = {{ {} }}\n", across('1')));
    assert!(
        refused.contains("fabric.path-levels: levels of paths are given, but the routing computes"),
        "{refused}"
    );
}
