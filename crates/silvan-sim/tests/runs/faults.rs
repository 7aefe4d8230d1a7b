//! Faults of cables, hosts and switches, from the start and during the run.

use std::ops::ControlFlow;

use silvan_instances::{Fastest, Shared};
use silvan_model::Engines;
use silvan_scenario::Scenario;
use silvan_sim::{RunOutput, run};

/// Two leaves with two hosts each, and two spines. d-mod-k sends to host 2 by port 3 of leaf 0, over spine 0.
const TREE: &str = r#"
    [fabric]
    generator = "k-ary-n-tree"
    k = 2
    n = 2
    [link]
    width = "4x"
    speed = "DDR"
    [packet]
    mtu = "2 KiB"
    header = "26 B"
    [switch]
    buffer = "64 KiB"
    [host]
    receive-buffer = "16 KiB"
    [[traffic.flow]]
    from = "host-0000"
    to = "host-0002"
    [run]
    duration = "1 ms"
"#;

/// Payload that a link of 4x DDR carries in a second, in bytes.
const PAYLOAD: f64 = 16e9 / 8.0 * 2048.0 / 2074.0;

fn output(engines: &dyn Engines, faults: &str) -> RunOutput {
    let text = format!("{TREE}{faults}");
    let scenario = Scenario::from_toml(&text, "faults.toml", &[]).unwrap();
    run(engines, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn delivered(output: &RunOutput) -> f64 {
    let hosts = output.table("hosts").unwrap();
    hosts.u64_column("delivered_bytes").unwrap()[2] as f64
}

/// Packets that were on a cable that was cut, and packets that switches discarded.
fn lost(output: &RunOutput) -> (u64, u64) {
    let ports = output.table("ports").unwrap();
    let sum = |name: &str| ports.u64_column(name).unwrap().iter().sum();
    (sum("rcv_errors"), sum("xmit_discards"))
}

#[track_caller]
fn assert_close(measured: f64, expected: f64) {
    assert!(
        (measured / expected - 1.0).abs() < 0.02,
        "{measured}, not {expected}"
    );
}

/// Packets that leaf 0 has sent to a spine.
fn sent_to(output: &RunOutput, spine: &str) -> u64 {
    let ports = output.table("ports").unwrap();
    let nodes = ports.text_column("node").unwrap();
    let peers = ports.text_column("peer").unwrap();
    let packets = ports.u64_column("xmit_pkts").unwrap();
    let rows = (0..packets.len())
        .filter(|&row| nodes[row] == "leaf-00" && peers[row].starts_with(&format!("{spine}:")));
    rows.map(|row| packets[row]).sum()
}

#[test]
fn cable_that_is_cut_from_the_start_is_avoided_by_the_routes() {
    let whole = output(&Fastest, "");
    assert_eq!(sent_to(&whole, "spine-01"), 0);
    let cut = output(&Fastest, "[[fault]]\ndo = \"cut\"\nport = \"leaf-00:3\"\n");
    assert_eq!(sent_to(&cut, "spine-00"), 0);
    assert!(sent_to(&cut, "spine-01") > 900);
    assert_eq!(delivered(&cut), delivered(&whole));
    // The run has one cable less, and nothing that could lose a packet.
    let rows = |output: &RunOutput| {
        output
            .table("ports")
            .unwrap()
            .text_column("node")
            .unwrap()
            .len()
    };
    assert_eq!(rows(&cut), rows(&whole) - 2);
    assert!(cut.table("ports").unwrap().column("rcv_errors").is_none());
}

/// Oracle: a quarter of the rate, with one lane of four.
#[test]
fn degraded_cable_carries_what_its_lanes_carry() {
    let degrade = |times: &str| {
        let fault =
            format!("[[fault]]\ndo = \"degrade\"\nport = \"host-0000\"\nwidth = \"1x\"\n{times}");
        output(&Fastest, &fault)
    };
    assert_close(delivered(&degrade("")), 0.25 * PAYLOAD * 1e-3);
    let half = degrade("at = \"500 us\"");
    assert_close(delivered(&half), (0.5 + 0.25 * 0.5) * PAYLOAD * 1e-3);
    let between = degrade("at = \"200 us\"\nfor = \"400 us\"");
    assert_close(delivered(&between), (0.6 + 0.25 * 0.4) * PAYLOAD * 1e-3);
}

#[test]
fn slow_receiver_takes_its_rate() {
    let slow =
        "[[fault]]\ndo = \"slow\"\nhost = \"host-0002\"\nrate = \"2 Gbit/s\"\nat = \"500 us\"\n";
    let slow = output(&Fastest, slow);
    assert_close(delivered(&slow), 0.5e-3 * PAYLOAD + 0.5e-3 * 2e9 / 8.0);
}

/// A host keeps what it has to send, so a cable that is down for a quarter of the time carries three quarters.
#[test]
fn host_waits_while_its_flapping_cable_is_down() {
    let flap = "[[fault]]\ndo = \"cut\"\nport = \"host-0000\"\nat = \"100 us\"\nfor = \"50 us\"\nevery = \"200 us\"\n";
    let flap = output(&Fastest, flap);
    assert_close(delivered(&flap), 0.75 * PAYLOAD * 1e-3);
    // At most the packet on the cable is lost each time.
    let (on_wire, discarded) = lost(&flap);
    assert!(on_wire <= 5, "{on_wire}");
    assert_eq!(discarded, 0);
}

/// The table entries of leaf 0 stay, so it discards all that comes meanwhile. The packets that the host sends, without
/// credits that hold it back, are delivered or lost: as many in all as without the fault.
#[test]
fn switch_discards_what_it_has_for_a_cable_that_is_cut_during_the_run() {
    let whole = output(&Fastest, "");
    for (fault, share) in [
        ("do = \"cut\"\nport = \"leaf-00:3\"\nat = \"400 us\"", 0.4),
        (
            "do = \"cut\"\nport = \"spine-00:1\"\nat = \"400 us\"\nfor = \"200 us\"",
            0.8,
        ),
        (
            "do = \"reboot\"\nswitch = \"spine-00\"\nat = \"400 us\"\nfor = \"200 us\"",
            0.8,
        ),
    ] {
        let cut = output(&Fastest, &format!("[[fault]]\n{fault}\n"));
        assert_close(delivered(&cut), share * PAYLOAD * 1e-3);
        let (on_wire, discarded) = lost(&cut);
        assert!(on_wire <= 2 && discarded > 100, "{on_wire}, {discarded}");
        let packets = delivered(&cut) / 2048.0 + (on_wire + discarded) as f64;
        assert!(
            (packets - delivered(&whole) / 2048.0).abs() <= 3.0,
            "{packets}"
        );
    }
}

/// Faults overlap: the cable is up again when the last of them ends.
#[test]
fn cable_stays_down_until_all_its_faults_have_ended() {
    let faults = "[[fault]]\ndo = \"cut\"\nport = \"host-0000\"\nat = \"100 us\"\nfor = \"200 us\"\n\
        [[fault]]\ndo = \"cut\"\nport = \"leaf-00:1\"\nat = \"200 us\"\nfor = \"300 us\"\n\
        [[fault]]\ndo = \"reboot\"\nswitch = \"leaf-00\"\nat = \"250 us\"\nfor = \"50 us\"\n";
    assert_close(delivered(&output(&Fastest, faults)), 0.6 * PAYLOAD * 1e-3);
}

/// Oracle: the engine that serves everything, and the run itself.
#[test]
fn runs_with_faults_are_equal_on_all_engines() {
    let faults = "[[traffic.uniform]]\nload = 0.4\n[[fault]]\ndo = \"cut\"\nport = \"leaf-01:4\"\nat = \"33 us\"\n\
        for = \"7 us\"\nevery = \"41 us\"\n[[fault]]\ndo = \"degrade\"\nport = \"spine-00:2\"\nspeed = \"SDR\"\n\
        at = \"100 us\"\nfor = \"300 us\"\n[[fault]]\ndo = \"slow\"\nhost = \"host-0003\"\nrate = \"1 Gbit/s\"\n";
    let one = output(&Fastest, faults);
    assert!(lost(&one).1 > 0);
    assert_eq!(one.tables, output(&Shared, faults).tables);
    assert_eq!(one.tables, output(&Fastest, faults).tables);
}
