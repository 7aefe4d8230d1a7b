//! Additions of the pages on extending silvan, in the copy of the sources that has them.
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use silvan_cc::hooks::{Feedback, Flow, SettingChange, Settings, SourceControl};
use silvan_cc::schemes::half::BLOCKED;
use silvan_cc::schemes::ib_cc::{AdapterSetting, IbParameters, ThresholdMap};
use silvan_cc::workload::{Gate, Poll, Workload};
use silvan_core::{HostId, Sl, Span, Time};
use silvan_instances::Fastest;
use silvan_scenario::{Scenario, reference_markdown};
use silvan_sim::{ColumnData, RunOutput, run, table_reference};
use silvan_workload::traffic::Traffic;

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::from_toml(text, "added.toml", &[]).map_err(|error| error.to_string())
}

fn outcome(text: &str) -> RunOutput {
    let scenario = parse(text).unwrap();
    run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap()
}

struct Open;

impl Gate for Open {
    fn release(&mut self, _: HostId, _: Sl) -> Time {
        Time::ZERO
    }

    fn lane_open(&mut self, _: Sl, _: u32) -> bool {
        true
    }
}

const NEIGHBOURS: &str = r#"
[fabric]
generator = "dumbbell"
hosts-per-switch = 3
trunks = 2
[[traffic.neighbours]]
reach = 2
load = 1
"#;

/// Oracle: closed forms of the topology and the traffic.
#[test]
fn topology_and_traffic() {
    let scenario = parse(NEIGHBOURS).unwrap();
    let fabric = scenario.fabric();
    assert_eq!((fabric.switch_count(), fabric.host_count()), (2, 6));
    assert_eq!(fabric.links.len(), 6 + 2);
    // Of the 30 pairs, 12 are at one switch, and 18 are apart by one cable more.
    let routes = scenario.routes();
    assert_eq!(routes.pairs, 30);
    let nearest = f64::from(routes.max_hops) - 1.0;
    assert!((routes.mean_hops - (nearest + 18.0 / 30.0)).abs() < 1e-9);

    let mut traffic = Traffic::new(scenario.traffic(), &scenario.environment(1)).unwrap();
    assert_eq!(traffic.classes(), ["neighbours-1"]);
    let mut receivers = Vec::new();
    for _ in 0..8 {
        let now = Time::from_ps(1_000_000);
        let Poll::Send(offer) = traffic.poll(HostId::new(5), now, &mut Open) else {
            panic!("it saturates");
        };
        receivers.push(offer.dst.index());
    }
    receivers.sort_unstable();
    receivers.dedup();
    assert_eq!(receivers, [0, 1]);

    let reference = reference_markdown();
    for key in ["hosts-per-switch", "trunks", "reach"] {
        assert!(reference.contains(&format!("| `{key}` |")), "{key}");
    }
    assert_eq!(
        parse(&NEIGHBOURS.replace("trunks", "trunk")).unwrap_err(),
        "added.toml:5: fabric.trunk: unknown key (hint: did you mean \"trunks\"?)"
    );
    let error = parse(&NEIGHBOURS.replace("reach = 2", "reach = 6")).unwrap_err();
    assert!(
        error.starts_with("added.toml:7: traffic.neighbours.0.reach: "),
        "{error}"
    );
}

const ROUTED: &str = r#"
[fabric]
generator = "leaf-spine"
leaf-hosts = [4, 4, 4]
spine-cables = [1, 1, 1, 1]
routing = "hashed-min-hop"
hash-seed = 3
"#;

/// Oracle: lengths of the paths of another algorithm, and the check of routes, which each scenario passes.
#[test]
fn routing() {
    let scenario = parse(ROUTED).unwrap();
    let other = ROUTED
        .replace("hash-seed = 3\n", "")
        .replace("hashed-min-hop", "min-hop");
    let shortest = parse(&other).unwrap();
    assert_eq!(scenario.routes().mean_hops, shortest.routes().mean_hops);
    let ports = |scenario: &Scenario| -> Vec<_> {
        let fabric = scenario.fabric();
        let tables = scenario.forwarding().tables;
        let pairs = fabric
            .switch_ids()
            .flat_map(|at| fabric.host_ids().map(move |to| (at, to)));
        pairs.map(|(at, to)| tables.to_host(at, to)).collect()
    };
    let seeds = [1, 2, 3].map(|seed| {
        let text = ROUTED.replace("hash-seed = 3", &format!("hash-seed = {seed}"));
        ports(&parse(&text).unwrap())
    });
    assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2]);
    assert_eq!(seeds[2], ports(&scenario));
    // The default of the key, and the effective scenario, which spells it out.
    let plain = parse(&ROUTED.replace("hash-seed = 3\n", "")).unwrap();
    assert_eq!(ports(&plain), seeds[0]);
    assert!(
        plain.to_toml().contains("hash-seed = 1"),
        "{}",
        plain.to_toml()
    );

    assert!(reference_markdown().contains("| `hash-seed` |"));
    for (from, to, expected) in [
        (
            "hash-seed = 3",
            "hash-seed = 0",
            "added.toml:7: fabric.hash-seed: a seed of 0 hashes all switches alike (hint: write 1 or more)",
        ),
        (
            "hash-seed = 3",
            "hash-sed = 3",
            "added.toml:7: fabric.hash-sed: unknown key (hint: did you mean \"hash-seed\"?)",
        ),
        (
            "hashed-min-hop",
            "min-hop",
            "added.toml:7: fabric.hash-seed: min-hop has no such parameter (hint: min-hop has no parameters)",
        ),
        (
            "routing = \"hashed-min-hop\"\n",
            "",
            "added.toml:6: fabric.hash-seed: this is a parameter of the routing \"hashed-min-hop\" \
             (hint: add fabric.routing = \"hashed-min-hop\")",
        ),
    ] {
        assert_eq!(parse(&ROUTED.replace(from, to)).unwrap_err(), expected);
    }
}

const MESSAGES: &str = r#"
[fabric]
generator = "single-switch"
hosts = 3
[[traffic.program]]
kind = "message-list"
trace = """
0, 1, 4096
0, 2, 1000
2, 1, 8192"""
format.message-list.scale = 2
[run]
duration = "1 ms"
"#;

/// Oracle: the sums of the list.
#[test]
fn trace_format() {
    let delivered = |text: &str| {
        let output = outcome(text);
        output
            .table("hosts")
            .unwrap()
            .u64_column("delivered_bytes")
            .unwrap()
            .to_vec()
    };
    assert_eq!(delivered(MESSAGES), [0, 2 * (4096 + 8192), 2 * 1000]);
    let plain = MESSAGES.replace("format.message-list.scale = 2\n", "");
    assert_eq!(delivered(&plain), [0, 4096 + 8192, 1000]);

    assert!(reference_markdown().contains("| `scale` |"));
    assert_eq!(
        parse(&MESSAGES.replace("2, 1, 8192", "2, 2, 8192")).unwrap_err(),
        "added.toml:7: traffic.program.0.trace: line 3: 16384 bytes from 2 to 2 cannot be sent \
         (hint: write e.g. 0, 1, 4096)"
    );
    let error = parse(&MESSAGES.replace("scale", "scal")).unwrap_err();
    assert!(error.contains("did you mean \"scale\"?"), "{error}");
    let barrier = "[[traffic.program]]\nkind = \"barrier\"\nformat.message-list.scale = 2\n";
    let error = parse(&NEIGHBOURS.replace(
        "[[traffic.neighbours]]",
        &format!("{barrier}[[traffic.neighbours]]"),
    ));
    let error = error.unwrap_err();
    assert!(
        error.contains("traffic.program.0.format.message-list: these are keys of another kind"),
        "{error}"
    );
}

const BROADCAST: &str = r#"
[fabric]
generator = "single-switch"
hosts = 4
[[traffic.program]]
kind = "broadcast"
algorithm = "linear"
bytes = "64 KiB"
[run]
duration = "1 ms"
"#;

/// Oracle: what each rank sends and receives.
#[test]
fn collective() {
    let output = outcome(BROADCAST);
    let ranks = output.table("ranks").unwrap();
    assert_eq!(ranks.u64_column("sends").unwrap(), [3, 0, 0, 0]);
    assert_eq!(ranks.u64_column("receives").unwrap(), [0, 1, 1, 1]);
    let output = outcome(&BROADCAST.replace("broadcast", "reduce"));
    let ranks = output.table("ranks").unwrap();
    assert_eq!(ranks.u64_column("sends").unwrap(), [0, 1, 1, 1]);
    let error = parse(&BROADCAST.replace("broadcast", "allreduce")).unwrap_err();
    assert!(
        error.contains("\"linear\" is no algorithm of this operation"),
        "{error}"
    );
}

/// Oracle: the sums of the same table.
#[test]
fn result_column() {
    let output = outcome(FLOWS);
    let hosts = output.table("hosts").unwrap();
    let column = |name| hosts.u64_column(name).unwrap();
    let (bytes, packets) = (column("delivered_bytes"), column("delivered_packets"));
    let expected: Vec<Option<f64>> = { bytes.iter().zip(packets) }
        .map(|(bytes, packets)| (*packets > 0).then(|| *bytes as f64 / *packets as f64))
        .collect();
    assert_eq!(expected.len(), 3);
    assert_eq!(expected[0], Some(4096.0));
    let means = hosts.column("mean_packet_bytes").unwrap();
    assert_eq!(*means, ColumnData::OptionalF64(expected));
    assert!(table_reference().contains("| `mean_packet_bytes` |"));
}

const FLOWS: &str = r#"
[fabric]
generator = "single-switch"
hosts = 3
[probe]
interval = "50 us"
ports = true
[[traffic.flow]]
from = "host-0001"
to = "host-0000"
bytes = "64 KiB"
[[traffic.flow]]
from = "host-0002"
to = "host-0000"
bytes = "40 KiB"
[run]
duration = "500 us"
"#;

/// Oracle: once all traffic is delivered, what a switch has received has left its input buffers.
#[test]
fn port_counter() {
    let output = outcome(FLOWS);
    let ports = output.table("ports").unwrap();
    let nodes = ports.text_column("node").unwrap();
    let column = |name| ports.u64_column(name).unwrap();
    let (sent, received) = (column("xmit_flow_pkts"), column("rcv_pkts"));
    let rows = (0..ports.rows()).filter(|&row| !nodes[row].starts_with("host"));
    let pairs: Vec<_> = rows.map(|row| (sent[row], received[row])).collect();
    assert_eq!(pairs.len(), 3);
    assert!(
        pairs.iter().all(|(sent, received)| sent == received),
        "{pairs:?}"
    );
    let total: u64 = pairs.iter().map(|(sent, _)| sent).sum();
    assert_eq!(total, 16 + 10);
    let series = output.table("port_series").unwrap();
    assert!(
        series
            .u64_column("xmit_flow_pkts")
            .unwrap()
            .iter()
            .sum::<u64>()
            >= total
    );
}

/// Oracle: the run of the installed package, whose sources have the scheme.
#[test]
fn scheme() {
    let output = outcome(include_str!("half.toml"));
    let hosts = output.table("hosts").unwrap();
    let delivered: u64 = hosts.u64_column("delivered_bytes").unwrap().iter().sum();
    assert_eq!(
        delivered,
        include_str!("half.delivered").parse::<u64>().unwrap()
    );
}

const BLOCKING: &str = r#"
[fabric]
generator = "single-switch"
hosts = 4
[[traffic.flow]]
from = "host-0001"
to = "host-0000"
[[traffic.flow]]
from = "host-0002"
to = "host-0000"
[[traffic.flow]]
from = "host-0000"
to = "host-0003"
[control]
scheme = "half"
[control.half]
threshold = "1 GiB"
[run]
duration = "200 us"
"#;

/// Oracle: a host whose port has waited for credits, and no other, has been blocked.
#[test]
fn hook() {
    let before: Vec<u32> = BLOCKED
        .iter()
        .map(|calls| calls.load(Ordering::Relaxed))
        .collect();
    let output = outcome(BLOCKING);
    let ports = output.table("ports").unwrap();
    let (nodes, waits) = (
        ports.text_column("node").unwrap(),
        ports.u64_column("xmit_wait_ps").unwrap(),
    );
    let mut blocked = 0;
    for host in 0..4 {
        let name = format!("host-{host:04}");
        let row = nodes.iter().position(|node| *node == name).unwrap();
        let calls = BLOCKED[host].load(Ordering::Relaxed) - before[host];
        assert_eq!(
            calls > 0,
            waits[row] > 0,
            "{name}: {calls} calls, {} ps",
            waits[row]
        );
        blocked += u32::from(calls > 0);
    }
    assert_eq!(
        blocked, 2,
        "both senders to one host, whose link they share"
    );
}

const SETTING: &str = r#"
[fabric]
generator = "single-switch"
hosts = 3
[[traffic.incast]]
to = "host-0000"
[control]
scheme = "ib-cc"
[control.ib-cc.adapter]
ccti-extra-decrease = 2
[[control.ib-cc.change]]
at = "50 us"
ccti-extra-decrease = 0
[run]
duration = "100 us"
"#;

/// Oracle: at the end of `n` periods the timer has expired `n` times, whatever its phase, and the table
/// delays by as many packet times as the index says.
#[test]
fn setting() {
    let map = ThresholdMap::Linear {
        lowest_bytes: 1,
        highest_bytes: 100_000,
    };
    let mut parameters = IbParameters::gran2012(1.0, map).unwrap();
    for entry in &mut parameters.adapter.entries {
        entry.ccti_timer = 1;
        entry.ccti_increase = 10;
    }
    let period = Span::from_ps(1_024_000);
    let packet = Span::from_ns(500);
    let flow = Flow {
        source: HostId::new(0),
        destination: HostId::new(1),
        sl: Sl::ZERO,
        queue: 0,
    };
    for (extra, periods, index) in [(0, 2, 8), (2, 1, 7), (2, 2, 4), (2, 3, 1), (2, 4, 0)] {
        let mut adapter = parameters.build_adapter(2, 1).unwrap();
        let change = SettingChange::Adapter {
            sl: Sl::ZERO,
            setting: AdapterSetting::CctiExtraDecrease(extra),
        };
        adapter.apply(Time::ZERO, &change).unwrap();
        adapter.on_feedback(Time::ZERO, flow, Feedback::Cnp);
        let now = Time::ZERO + period * periods;
        adapter.on_send(now, flow, packet, 1);
        let release = adapter.release(now, flow).max(now + packet);
        assert_eq!(release, now + packet + packet * index, "{extra} {periods}");
    }

    outcome(SETTING);
    let reference = reference_markdown();
    let rows = reference
        .lines()
        .filter(|line| line.starts_with("| `ccti-extra-decrease` |"));
    assert_eq!(rows.count(), 2);
    assert_eq!(
        parse(&SETTING.replace("ccti-extra-decrease = 0", "ccti-extra-decreas = 0")).unwrap_err(),
        "added.toml:13: control.ib-cc.change.0.ccti-extra-decreas: unknown key (hint: did you mean \
         \"ccti-extra-decrease\"?)"
    );
    let error = parse(&SETTING.replace("ccti-extra-decrease = 0", "")).unwrap_err();
    assert!(
        error.contains("trigger-threshold or ccti-extra-decrease"),
        "{error}"
    );
}
