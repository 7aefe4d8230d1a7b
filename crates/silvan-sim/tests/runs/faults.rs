//! Faults of cables, hosts and switches, from the start and during the run.

use std::ops::ControlFlow;

use silvan_core::Span;
use silvan_instances::{Fastest, Shared};
use silvan_model::Engines;
use silvan_scenario::{Override, Scenario};
use silvan_sim::{ColumnData, RunError, RunOutput, run};

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

fn sum(output: &RunOutput, column: &str) -> u64 {
    let ports = output.table("ports").unwrap();
    ports.u64_column(column).unwrap().iter().sum()
}

/// 4x DDR discards bad packets by default. Oracle: 1 - (1 - p)^n of packets of n bits, p bits of all the time.
#[test]
fn bit_errors_lose_packets_and_are_counted() {
    let errors = "[[fault]]\ndo = \"bit-errors\"\nport = \"spine-00:1\"\nbit-error-rate = 1e-5\n";
    let (whole, bad) = (output(&Fastest, ""), output(&Fastest, errors));
    let (lost, discarded) = lost(&bad);
    let packets = delivered(&whole) / 2048.0;
    let share = 1.0 - (1.0 - 1e-5_f64).powi(2074 * 8);
    let deviation = (packets * share * (1.0 - share)).sqrt();
    assert!(
        (lost as f64 - packets * share).abs() < 4.0 * deviation,
        "{lost}"
    );
    assert_eq!(discarded, 0);
    assert!((delivered(&bad) / 2048.0 + lost as f64 - packets).abs() <= 2.0);
    let expected = 16e9 * 1e-3 * 1e-5_f64;
    let counted = sum(&bad, "symbol_errors") as f64;
    assert!(
        (counted - expected).abs() < 4.0 * expected.sqrt(),
        "{counted}"
    );
    assert_eq!(sum(&bad, "link_replays"), 0);
    assert!(
        whole
            .table("ports")
            .unwrap()
            .column("symbol_errors")
            .is_none()
    );
}

/// Oracle: the run without errors. The host has half of the link's rate, so replays delay packets and lose none.
#[test]
fn link_replays_bad_packets_where_its_speed_has_it() {
    let text = |speed: &str, errors: &str| {
        let tree = TREE.replace("\"DDR\"", speed);
        let text = format!("{tree}{errors}").replace(
            "to = \"host-0002\"",
            "to = \"host-0002\"\nload = \"8 Gbit/s\"",
        );
        let scenario = Scenario::from_toml(&text, "faults.toml", &[]).unwrap();
        run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap()
    };
    let errors = "[[fault]]\ndo = \"bit-errors\"\nport = \"spine-00:1\"\nbit-error-rate = 1e-5\n";
    for (speed, replays) in [("\"QDR\"", false), ("\"FDR\"", true), ("\"NDR\"", true)] {
        let output = text(speed, errors);
        assert_eq!(sum(&output, "link_replays") > 10, replays, "{speed}");
        assert_eq!(sum(&output, "rcv_errors") == 0, replays, "{speed}");
        if replays {
            let whole = delivered(&text(speed, ""));
            assert!((delivered(&output) / whole - 1.0).abs() < 0.01, "{speed}");
        }
    }
}

/// Oracle: the engine that serves everything, and other numbers of threads.
#[test]
fn runs_with_bit_errors_are_equal_on_all_engines_and_threads() {
    let errors = "threads = THREADS\n[[traffic.uniform]]\nload = 0.4\n\
        [[fault]]\ndo = \"bit-errors\"\nport = \"leaf-01:4\"\nbit-error-rate = 1e-5\n\
        [[fault]]\ndo = \"bit-errors\"\nport = \"spine-00:1\"\nbit-error-rate = 1e-5\nretransmission = true\n\
        [[fault]]\ndo = \"bit-errors\"\nport = \"host-0002\"\nburst-bit-error-rate = 1e-4\nburst-length = \"5 us\"\n\
        burst-spacing = \"50 us\"\nat = \"100 us\"\nfor = \"200 us\"\nevery = \"300 us\"\n";
    let on = |engines: &dyn Engines, threads: &str| {
        output(engines, &errors.replace("THREADS", threads)).tables
    };
    let one = on(&Fastest, "1");
    assert_eq!(one, on(&Shared, "1"));
    for threads in ["2", "3"] {
        assert_eq!(one, on(&Fastest, threads), "{threads} threads");
    }
    let other = {
        let text = format!("{TREE}{}", errors.replace("THREADS", "1"));
        let scenario = Scenario::from_toml(&text, "faults.toml", &[]).unwrap();
        run(&Fastest, &scenario, 2, &mut |_| ControlFlow::Continue(())).unwrap()
    };
    assert_ne!(one, other.tables);
}

/// Oracle: the period. The link goes down at 100, 300, 500, 700 and 900 us.
#[test]
fn flapping_cable_goes_down_once_in_each_period() {
    let flap = "[[fault]]\ndo = \"cut\"\nport = \"host-0000\"\nat = \"100 us\"\nfor = \"50 us\"\nevery = \"200 us\"\n";
    let flap = output(&Fastest, flap);
    // Each end counts it.
    assert_eq!(sum(&flap, "link_downed"), 10);
}

/// A lost packet takes its place in the window for good. Oracle: of a window of W packets, W are lost in the end, and
/// W (1 - b) / b arrive before on average, with the standard deviation of the negative binomial distribution.
#[test]
fn window_is_used_up_by_lost_packets() {
    const WINDOW: f64 = 8.0;
    let text = format!(
        "{TREE}[control]\nscheme = \"pair-backpressure\"\n[control.pair-backpressure]\nwindow = \"16 KiB\"\nthreshold = \"1 MB\"\n\
         [[fault]]\ndo = \"bit-errors\"\nport = \"spine-00:1\"\nbit-error-rate = 1e-5\n"
    );
    let scenario = Scenario::from_toml(&text, "faults.toml", &[]).unwrap();
    let bad = 1.0 - (1.0 - 1e-5_f64).powi(2074 * 8);
    let seeds = 40;
    let mut arrived = 0.0;
    for seed in 1..=seeds {
        let output = run(
            &Fastest,
            &scenario,
            seed,
            &mut |_| ControlFlow::Continue(()),
        )
        .unwrap();
        assert_eq!(lost(&output), (WINDOW as u64, 0), "seed {seed}");
        arrived += delivered(&output) / 2048.0;
    }
    let expected = WINDOW * (1.0 - bad) / bad;
    let deviation = (WINDOW * (1.0 - bad) / seeds as f64).sqrt() / bad;
    let mean = arrived / seeds as f64;
    assert!(
        (mean - expected).abs() < 4.0 * deviation,
        "{mean}, {expected}"
    );
}

/// A message that has lost a packet, not only the last one, never completes, so its sequence ends. Oracle: messages of 32
/// packets are whole with the probability (1 - b)^32, and their number up to the first that is not is geometric.
#[test]
fn sequence_ends_with_a_message_that_has_lost_a_packet() {
    let flow = "[[traffic.flow]]\n    from = \"host-0000\"\n    to = \"host-0002\"";
    let sequence = "[[traffic.sequence]]\n    from = \"host-0000\"\n    to = [\"host-0002\"]\n    message = \"64 KiB\"\n    iterations = 1000";
    let text = format!(
        "{}[[fault]]\ndo = \"bit-errors\"\nport = \"spine-00:1\"\nbit-error-rate = 2e-6\n",
        TREE.replace(flow, sequence)
    );
    let scenario = Scenario::from_toml(&text, "faults.toml", &[]).unwrap();
    let bad = 1.0 - (1.0 - 2e-6_f64).powi(2074 * 8);
    let broken = 1.0 - (1.0 - bad).powi(32);
    let seeds = 40;
    let mut messages = 0.0;
    for seed in 1..=seeds {
        let output = run(
            &Fastest,
            &scenario,
            seed,
            &mut |_| ControlFlow::Continue(()),
        )
        .unwrap();
        let packets = delivered(&output) / 2048.0 + lost(&output).0 as f64;
        assert_eq!(packets % 32.0, 0.0, "seed {seed}");
        messages += packets / 32.0;
    }
    let mean = messages / seeds as f64;
    let deviation = ((1.0 - broken) / seeds as f64).sqrt() / broken;
    assert!(
        (mean - 1.0 / broken).abs() < 4.0 * deviation,
        "{mean}, {}",
        1.0 / broken
    );
}

/// Without retries, a flow with a lost packet never ends, and each later one ends by its own packets. Oracle: the bytes
/// that flows miss are those of the lost packets, and no finished flow misses any.
#[test]
fn flow_with_a_lost_packet_never_ends() {
    let flow = "[[traffic.flow]]\n    from = \"host-0000\"\n    to = \"host-0002\"";
    let many = "[[traffic.flows]]\n    load = 0.5\n    sizes = { fixed = \"8 KiB\" }\n    end = \"900 us\"";
    for threads in ["1", "2"] {
        let text = format!(
            "{}threads = {threads}\n[[fault]]\ndo = \"bit-errors\"\nport = \"spine-00:1\"\nbit-error-rate = 2e-6\n",
            TREE.replace(flow, many)
        );
        let scenario = Scenario::from_toml(&text, "faults.toml", &[]).unwrap();
        let output = run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap();
        let flows = output.table("flows").unwrap();
        let bytes = flows.u64_column("bytes").unwrap();
        let arrived = flows.u64_column("delivered_bytes").unwrap();
        let missing = bytes.iter().zip(arrived).map(|(all, part)| all - part);
        let missing: Vec<u64> = missing.filter(|missing| *missing > 0).collect();
        assert!(missing.len() > 5, "{missing:?}");
        assert_eq!(missing.iter().sum::<u64>(), lost(&output).0 * 2048);
    }
}

/// Oracle: all messages of a sequence, whatever its cable loses; the time of a timeout for each packet that is lost again.
#[test]
fn hosts_send_lost_packets_again() {
    let flow = "[[traffic.flow]]\n    from = \"host-0000\"\n    to = \"host-0002\"";
    let sequence =
        "[[traffic.flow]]\n    from = \"host-0000\"\n    to = \"host-0002\"\n    bytes = \"4 MiB\"";
    let fault = "[[fault]]\ndo = \"bit-errors\"\nport = \"spine-00:1\"\nbit-error-rate = 2e-6\n";
    let run_with = |host: &str, threads: &str| {
        let text = TREE.replace(flow, sequence).replace("1 ms", "8 ms");
        let text = text.replace("[host]", &format!("[host]\n    {host}"));
        let text = format!("{text}threads = {threads}\n{fault}");
        let scenario = Scenario::from_toml(&text, "faults.toml", &[]).unwrap();
        run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap()
    };
    let lossy = run_with("", "1");
    let bytes = |output: &RunOutput| {
        output
            .table("flows")
            .unwrap()
            .u64_column("delivered_bytes")
            .unwrap()[0]
    };
    assert!(bytes(&lossy) < 4 << 20);
    let retry = "retry = { timeout = 3, retry-count = 7 }";
    let output = run_with(retry, "1");
    assert_eq!(bytes(&output), 4 << 20);
    let flows = output.table("flows").unwrap();
    let retries = match flows.column("retries").unwrap() {
        ColumnData::OptionalU64(values) => values[0].unwrap(),
        _ => panic!("retries are no numbers"),
    };
    let lost = lost(&output).0;
    assert!(
        lost > 10 && (1..=lost).contains(&retries),
        "{lost}, {retries}"
    );
    let hosts = output.table("hosts").unwrap();
    assert_eq!(hosts.u64_column("retries").unwrap()[0], retries);
    assert_eq!(output.tables, run_with(retry, "3").tables);
}

fn program(host: &str, fault: &str) -> Result<RunOutput, RunError> {
    let flow = "[[traffic.flow]]\n    from = \"host-0000\"\n    to = \"host-0002\"";
    let ops = |op: &str, other: &str| {
        let line = |tag: u32| format!("{op} 8192b {other} tag {tag}\n");
        (1..=40).map(line).collect::<String>()
    };
    let goal = format!(
        "num_ranks 2\nrank 0 {{\n{}}}\nrank 1 {{\n{}}}\n",
        ops("send", "to 1"),
        ops("recv", "from 0")
    );
    let goal = format!(
        "[[traffic.program]]\nname = \"trace\"\nkind = \"goal\"\nhosts = [\"host-0000\", \"host-0002\"]\ntrace = '''\n{goal}'''"
    );
    let text = TREE.replace(flow, &goal);
    let text = text.replace("[host]", &format!("[host]\n    {host}"));
    let scenario = Scenario::from_toml(&format!("{text}{fault}"), "faults.toml", &[]).unwrap();
    run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(()))
}

/// Messages with packets that a switch discards never arrive, and those behind them do.
#[test]
fn program_names_its_lost_messages() {
    let cut = "[[fault]]\ndo = \"cut\"\nport = \"leaf-00:3\"\nat = \"60 us\"\nfor = \"10 us\"\n";
    let error = program("", cut).unwrap_err().to_string();
    let start = "program \"trace\" has not ended after 1 ms: ";
    assert!(error.starts_with(start), "{error}");
    // 4 packets of 1.037 us each, from 60 us on.
    let tags = 60.0 / (4.0 * 1.037) + 1.0;
    let named = format!(
        " of 8192 bytes with tag {} from rank 0 to rank 1; 4 of 8192 bytes",
        tags as u32
    );
    assert!(
        error.contains(". Lost packets: ") && error.contains(&named),
        "{error}"
    );
    let retrying = program("retry = { timeout = 3 }", cut).unwrap();
    let programs = retrying.table("programs").unwrap();
    assert_eq!(programs.u64_column("lost_messages").unwrap(), [0]);
    let (plain, late) = (program("", "").unwrap(), retrying);
    let end = |output: &RunOutput| match output.table("programs").unwrap().column("end_ps").unwrap()
    {
        ColumnData::OptionalU64(values) => values[0].unwrap(),
        _ => panic!("ends are no times"),
    };
    // The cable is down for 10 us, and the NAK takes the time of some packets more.
    let added = end(&late) - end(&plain);
    assert!((10_000_000..25_000_000).contains(&added), "{added}");
}

#[test]
fn program_names_the_message_that_its_connection_gives_up() {
    let cut = "[[fault]]\ndo = \"cut\"\nport = \"spine-00:2\"\nat = \"60 us\"\n";
    let error = program("retry = { timeout = 1, retry-count = 3 }", cut).unwrap_err();
    let error = error.to_string();
    let start = "program \"trace\" lost its connection at ";
    assert!(error.starts_with(start), "{error}");
    let ending = "from rank 0 to rank 1 were not acknowledged after the last retry";
    assert!(
        error.contains("8192 bytes with tag 1") && error.ends_with(ending),
        "{error}"
    );
}

#[test]
fn retries_that_no_run_can_have_are_refused() {
    for (host, words) in [
        (
            "retry = { timeout = 32 }",
            "timeout of 32: 0 to 31 are supported",
        ),
        (
            "retry = { retry-count = 8 }",
            "retry-count of 8: 0 to 7 are supported",
        ),
        (
            "retry = { window = 0 }",
            "window of 0: 1 to 16384 are supported",
        ),
    ] {
        let text = TREE.replace("[host]", &format!("[host]\n    {host}"));
        let error = Scenario::from_toml(&text, "faults.toml", &[]).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    let text = TREE.replace("[host]", "[host]\n    retry = {}");
    let text = text.replace("n = 2", "n = 2\n    path-choice = \"spray-random\"");
    let error = Scenario::from_toml(&text, "faults.toml", &[]).unwrap_err();
    assert!(error.to_string().contains("packets in order"), "{error}");
}

/// A host keeps what it has to send until the link is trained. Oracle: the share of time that the cable is up.
#[test]
fn cable_comes_up_after_its_retraining() {
    let flap = "[[fault]]\ndo = \"cut\"\nport = \"host-0000\"\nat = \"100 us\"\nfor = \"20 us\"\nretraining = \"30 us\"\nevery = \"200 us\"\n";
    assert_close(delivered(&output(&Fastest, flap)), 0.75 * PAYLOAD * 1e-3);
    let reboot = "[[fault]]\ndo = \"reboot\"\nswitch = \"leaf-00\"\nat = \"100 us\"\nretraining = \"300 us\"\n";
    assert_close(delivered(&output(&Fastest, reboot)), 0.7 * PAYLOAD * 1e-3);
    for (times, words) in [
        (
            "retraining = \"1 us\"",
            "a cable that stays cut does not come up",
        ),
        (
            "for = \"1 us\"\nevery = \"3 us\"\nretraining = \"2 us\"",
            "comes again before it has ended",
        ),
        (
            "for = \"1 us\"\nretraining = \"61 s\"",
            "a link comes up after at most",
        ),
    ] {
        let fault = format!(
            "{TREE}[[fault]]\ndo = \"cut\"\nport = \"host-0000\"\nat = \"1 us\"\n{times}\n"
        );
        let error = Scenario::from_toml(&fault, "faults.toml", &[]).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// Ranks alternate between two leaves, so that each message of a ring crosses a spine, and each leaf sends two at a time.
const RING: &str = r#"
    [fabric]
    generator = "leaf-spine"
    leaf-hosts = [2, 2]
    spine-cables = [1, 1]
    [link]
    speed = "DDR"
    [packet]
    mtu = "2 KiB"
    [[traffic.program]]
    kind = "allreduce"
    hosts = ["host-0000", "host-0002", "host-0001", "host-0003"]
    bytes = "16 MiB"
    [run]
    duration = "1 s"
"#;

fn ring(choice: &str, seed: u64, faults: &str) -> f64 {
    let text = format!("{RING}{faults}");
    let choice = Override::new("fabric.path-choice", choice);
    let scenario = Scenario::from_toml(&text, "faults.toml", &[choice]).unwrap();
    let output = run(
        &Fastest,
        &scenario,
        seed,
        &mut |_| ControlFlow::Continue(()),
    )
    .unwrap();
    let programs = output.table("programs").unwrap();
    match programs.column("completion_ps").unwrap() {
        ColumnData::OptionalU64(values) => values[0].unwrap() as f64 / 1e12,
        _ => panic!("times are numbers"),
    }
}

/// 2 (n - 1) / n of the vector at the rate of a cable; at half of it where the routes of both flows of a leaf share one.
#[test]
fn ring_over_half_of_the_cables_takes_twice_as_long() {
    let model = 1.5 * f64::from(16 << 20) / PAYLOAD;
    assert_close(ring("table", 1, ""), model);
    let cut = "[[fault]]\ndo = \"cut\"\nport = \"leaf-00:3\"\n";
    assert_close(ring("table", 1, cut), 2.0 * model);
}

/// A spine that fails in the middle of a ring leaves the flows half of their rate for the rest; hosts send lost packets again.
#[test]
fn ring_goes_on_over_the_spine_that_is_left() {
    let model = 1.5 * f64::from(16 << 20) / PAYLOAD;
    let retry = "[host.retry]\ntimeout = 3\n";
    let mut seeds = (1..20).filter(|seed| ring("ecmp", *seed, retry) < 1.02 * model);
    let seed = seeds.next().unwrap();
    let half = Span::from_ps((model / 2.0 * 1e12) as u64);
    let fault = format!(
        "{retry}[[fault]]\ndo = \"reboot\"\nswitch = \"spine-00\"\nat = \"{half}\"\nfor = \"1 s\"\n"
    );
    let found = ring("ecmp", seed, &fault);
    assert!(
        (1.5 * model..1.55 * model).contains(&found),
        "{found} s, model {} s",
        1.5 * model
    );
}
