//! Allreduces over aggregation trees against closed forms.

use std::ops::ControlFlow;

use silvan_instances::Fastest;
use silvan_scenario::{Override, Scenario};
use silvan_sim::{ColumnData, RunOutput, run};

/// Leaves of 4 hosts below two spines. Links of 200 Gbit/s have packets of 4 KiB, which take 164.88 ns with their header.
const TREE: &str = r#"
[fabric]
generator = "leaf-spine"
leaf-hosts = [4, 4, 4]
spine-cables = [4, 4]
[link]
speed = "HDR"
length = "1 m"
[packet]
mtu = "4 KiB"
header = "26 B"
[switch]
latency = "100 ns"
buffer = "256 KiB"
[host]
receive-buffer = "256 KiB"
[traffic.messaging]
overhead = "200 ns"
[[traffic.program]]
kind = "allreduce"
algorithm = "sharp"
bytes = "1 MiB"
"#;

const RATE: f64 = 200e9;

fn output(overrides: &[(&str, &str)]) -> RunOutput {
    let mut all = vec![Override::new("run.duration", "1 s")];
    all.extend(
        overrides
            .iter()
            .map(|(key, value)| Override::new(*key, *value)),
    );
    let scenario = Scenario::from_toml(TREE, "sharp.toml", &all).unwrap();
    assert!(scenario.estimate(1).unwrap().packet_hops > 0.0);
    run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Duration of an operation, in ns.
fn time(overrides: &[(&str, &str)]) -> f64 {
    let output = output(overrides);
    match output
        .table("programs")
        .unwrap()
        .column("iteration_mean_ps")
    {
        Some(ColumnData::OptionalF64(values)) => values[0].unwrap() / 1e3,
        _ => panic!("a program has a mean"),
    }
}

fn wire(bytes: f64) -> f64 {
    (bytes + 26.0) * 8e9 / RATE
}

/// Ways of a packet to the root and back, in ns: links, switches and reductions, without times of bytes on links of hosts.
fn latency(levels: f64) -> f64 {
    let (link, switch, node) = (5.0, 100.0, 300.0);
    // A host's link and a switch at either end; two switches and a link between aggregation nodes, up and down.
    let at_leaf = 2.0 * (link + switch);
    let between = (levels - 1.0) * 2.0 * (link + 2.0 * switch);
    at_leaf + between + (2.0 * levels - 1.0) * node
}

/// A small allreduce takes overheads and hops: the more levels, the longer, whatever the number of hosts.
#[test]
fn small_allreduce_takes_the_time_of_its_hops() {
    for (hosts, levels) in [(4, 1.0), (12, 2.0)] {
        let list = (0..hosts).map(|host| format!("\"host-{host:04}\""));
        let list = format!("[{}]", list.collect::<Vec<_>>().join(", "));
        let found = time(&[
            ("traffic.program.0.hosts", &list),
            ("traffic.program.0.bytes", "8 B"),
        ]);
        // Bytes on cables, and on the ports of aggregation nodes, which are as fast as all cables together.
        let cables = 2.0 * levels * wire(8.0);
        let model = 2.0 * 200.0 + latency(levels) + cables;
        let nodes = 4.0 * levels * wire(8.0);
        assert!(
            (model..model + nodes).contains(&found),
            "{hosts} hosts: {found} ns, model {model} ns"
        );
    }
}

/// Streaming takes S / rate and the way through the tree; a ring needs 2 (n - 1) / n S / rate.
#[test]
fn streaming_is_as_fast_as_a_link() {
    let segment = wire(4096.0);
    for (mebibytes, levels) in [(1.0, 2.0), (4.0, 2.0)] {
        let bytes = format!("{mebibytes} MiB");
        let found = time(&[("traffic.program.0.bytes", &bytes)]);
        let segments = mebibytes * 256.0;
        // Each cable and each port of an aggregation node on the way passes whole packets on.
        let least = 400.0 + latency(levels) + (segments - 1.0 + 2.0 * levels) * segment;
        let most = least + 4.0 * levels * segment;
        assert!(
            (least..most).contains(&found),
            "{found} ns, {least} to {most} ns"
        );
        let ring = time(&[
            ("traffic.program.0.bytes", &bytes),
            ("traffic.program.0.algorithm", "ring"),
        ]);
        let model = 2.0 * 11.0 / 12.0 * segments * segment;
        assert!(
            ring > model && ring > 1.7 * found,
            "{ring} ns, streaming {found} ns"
        );
    }
}

/// Low latency takes a packet for each kilobyte, at most as many at once as there are transactions.
#[test]
fn low_latency_operations_take_turns() {
    let few = |transactions: &str| {
        time(&[
            ("traffic.program.0.bytes", "16 KiB"),
            ("traffic.sharp.mode", "low-latency"),
            ("traffic.sharp.transactions", transactions),
        ])
    };
    let way = latency(2.0) + 4.0 * wire(1024.0);
    let (one, all) = (few("1"), few("16"));
    // Ports of aggregation nodes take up to a packet time at each node.
    assert!(
        (16.0 * way..16.0 * (way + 8.0 * wire(1024.0)) + 400.0).contains(&one),
        "{one} ns"
    );
    let least = way + 15.0 * wire(1024.0);
    assert!(
        (least..least + 400.0 + 8.0 * wire(1024.0)).contains(&all),
        "{all} ns"
    );
}

/// Several ranks of a host first reduce their parts among each other; each place on a server has a tree.
#[test]
fn ranks_of_a_host_share_its_link() {
    let found = output(&[
        ("traffic.program.0.ranks-per-host", "2"),
        ("traffic.messaging.local-rate", "1 Tbit/s"),
    ]);
    let ranks = found.table("ranks").unwrap();
    assert_eq!(ranks.rows(), 24);
    // Half of the vector within the host, and half to the tree.
    let sent = ranks.u64_column("sent_bytes").unwrap();
    assert_eq!(sent, vec![3 << 19; 24]);
}

/// The 2016 paper measured 2.83 us for 8 bytes on 128 hosts of a two-level tree with switches of 90 ns: 0.6 us are those of
/// adapters.
#[test]
fn default_latency_is_that_of_the_paper() {
    let found = time(&[
        ("fabric.leaf-hosts", "[16, 16, 16, 16, 16, 16, 16, 16]"),
        ("fabric.spine-cables", "[8, 8]"),
        ("link.speed", "EDR"),
        ("switch.latency", "90 ns"),
        ("traffic.messaging.latency", "600 ns"),
        ("traffic.program.0.bytes", "8 B"),
    ]);
    assert!((2400.0..3000.0).contains(&found), "{found} ns");
}

/// nccl-tests' bandwidths: bytes per time, and that by 2 (n - 1) / n, whatever moves the bytes.
#[test]
fn bandwidths_are_those_of_nccl_tests() {
    for algorithm in ["sharp", "nccl", "ring"] {
        let output = output(&[("traffic.program.0.algorithm", algorithm)]);
        let table = output.table("programs").unwrap();
        let number = |name: &str| match table.column(name).unwrap() {
            ColumnData::OptionalF64(values) => values[0].unwrap(),
            _ => panic!("{name} is a number"),
        };
        let rate = f64::from(1 << 20) * 1e3 / number("iteration_mean_ps");
        assert!(
            (number("algbw_gb_per_s") / rate - 1.0).abs() < 1e-9,
            "{algorithm}"
        );
        let bus = number("busbw_gb_per_s") / number("algbw_gb_per_s");
        assert!((bus - 2.0 * 11.0 / 12.0).abs() < 1e-9, "{algorithm}");
    }
}

/// A ring with the protocol Simple: launch, and 22 steps of 14 us, of which the fabric takes the simulated part.
#[test]
fn nccl_takes_its_latencies_and_the_bytes() {
    let found = time(&[
        ("traffic.program.0.algorithm", "nccl"),
        ("traffic.program.0.bytes", "24 MiB"),
        ("traffic.nccl.protocols", "[\"Simple\"]"),
        ("traffic.nccl.algorithms", "[\"ring\"]"),
        ("traffic.nccl.channels", "1"),
    ]);
    let bytes = 2.0 * 11.0 / 12.0 * 24.0 * 256.0 * wire(4096.0);
    let least = 8_400.0 + 22.0 * 13_000.0 + bytes;
    assert!(
        (least..least + 22.0 * 4_000.0).contains(&found),
        "{found} ns, {least} ns"
    );
}

/// Switches and hosts in several parts of the fabric, each on a thread.
#[test]
fn threads_do_not_matter() {
    let all = [
        ("traffic.program.0.bytes", "64 KiB"),
        ("traffic.program.0.iterations", "3"),
    ];
    let one = output(&all);
    let three = output(&[all[0], all[1], ("run.threads", "3")]);
    assert_eq!(one.tables, three.tables);
}
