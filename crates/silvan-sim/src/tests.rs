#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::ops::ControlFlow;

use silvan_cc::hooks::{Controller, FlowLimit, SettingChange};
use silvan_cc::schemes::Control;
use silvan_cc::schemes::ib_cc::{PortSetting, ThresholdWeight};
use silvan_core::{Bytes, HostId, PortCounters, PortId, Rate, Span, Time, Vl};
use silvan_instances::Fastest;
use silvan_model::meter::{MeteredAdapter, MeteredSwitch};
use silvan_model::{ClassTotals, FabricChange, LiveSimulation, Network};
use silvan_model::{FlowProgress, Forest, HostCounters, InvariantError};
use silvan_workload::programs::{Load, Programs};
use silvan_workload::traffic::Traffic;

use super::*;
use crate::{Column, ColumnData};
use silvan_scenario::Override;

const MINIMAL: &str = include_str!("../../../examples/incast.toml");
const PARKING_LOT: &str = include_str!("../../../examples/parking-lot.toml");
const TWO_VL: &str = include_str!("../../../examples/two-vl.toml");
const EXPLICIT: &str = include_str!("../../../examples/explicit-fabric.toml");

/// The scenario with packets of 2 KiB, and links of 4x DDR where it states none: the oracles compute with them.
fn scenario(text: &str, overrides: &[(&str, &str)]) -> Scenario {
    let packets = [
        ("packet.mtu", "2 KiB"),
        ("switch.buffer", "64 KiB"),
        ("host.receive-buffer", "16 KiB"),
    ];
    let link = [("link.speed", "DDR")];
    let link = if text.contains("[link]") {
        &[]
    } else {
        link.as_slice()
    };
    let all = packets.iter().chain(link).chain(overrides);
    let overrides: Vec<Override> = all
        .map(|(key, value)| Override::new(*key, *value))
        .collect();
    Scenario::from_toml(text, "test.toml", &overrides).unwrap()
}

fn run_through(scenario: &Scenario) -> RunOutput {
    run(&Fastest, scenario, scenario.seed(), &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap()
}

fn class_bytes(output: &RunOutput, name: &str) -> u64 {
    let classes = output.table("classes").unwrap();
    let names = classes.text_column("name").unwrap();
    let row = names.iter().position(|class| class == name).unwrap();
    classes.u64_column("delivered_bytes").unwrap()[row]
}

fn sum(output: &RunOutput, table: &str, column: &str) -> u64 {
    let table = output.table(table).unwrap();
    table.u64_column(column).unwrap().iter().sum()
}

/// Payload that a link carries in `span` in packets of MTU size: 2048 of 2074 bytes.
fn link_payload(rate: &str, span: Span) -> f64 {
    let rate: Rate = rate.parse().unwrap();
    let packet = rate.span_for(Bytes::from_bytes(2_074));
    span.as_ps() as f64 / packet.as_ps() as f64 * 2_048.0
}

/// The receiver's link is the only bottleneck: 16 Gbit/s of 4x DDR.
#[test]
fn an_incast_fills_the_receivers_link() {
    let output = run_through(&scenario(MINIMAL, &[]));
    let expected = link_payload("16 Gbit/s", Span::from_ms(1));
    let delivered = class_bytes(&output, "incast-1") as f64;
    // The first packet needs a microsecond or two to arrive.
    assert!(
        (0.995..=1.0).contains(&(delivered / expected)),
        "{delivered} of {expected}"
    );
    let hosts = output.table("hosts").unwrap();
    let bytes = hosts.u64_column("delivered_bytes").unwrap();
    assert_eq!(bytes[0] as f64, delivered);
    assert!(bytes[1..].iter().all(|bytes| *bytes == 0));
}

/// Round robin gives each input of a switch the same share: 1/2, 1/4, 1/8, 1/8.
#[test]
fn the_parking_lot_shares() {
    let output = run_through(&scenario(PARKING_LOT, &[]));
    let total = sum(&output, "classes", "delivered_bytes") as f64;
    for (name, share) in [
        ("from switch 0", 0.125),
        ("from switch 1", 0.125),
        ("from switch 2", 0.25),
        ("from switch 3", 0.5),
    ] {
        let measured = class_bytes(&output, name) as f64 / total;
        assert!((measured / share - 1.0).abs() < 0.01, "{name}: {measured}");
    }
    let expected = link_payload("16 Gbit/s", Span::from_ms(2));
    assert!(
        (total / expected - 1.0).abs() < 0.005,
        "{total} of {expected}"
    );
}

/// On a separate lane the victim gets half of the link between the switches. The arbitration weights the lanes equally,
/// and the contributors could use the whole link. On the contributors' lane the victim waits behind their packets.
#[test]
fn a_lane_of_its_own_saves_the_victim() {
    let half = link_payload("8 Gbit/s", Span::from_ms(2)) / 2.0;
    let apart = run_through(&scenario(TWO_VL, &[]));
    assert!(class_bytes(&apart, "victim") as f64 > half * 0.98);
    let together = run_through(&scenario(TWO_VL, &[("traffic.flow.0.sl", "0")]));
    assert!((class_bytes(&together, "victim") as f64) < half);
}

#[test]
fn explicit_tables_decide_the_cable() {
    let output = run_through(&scenario(EXPLICIT, &[]));
    let ports = output.table("ports").unwrap();
    let (nodes, bytes) = (
        ports.text_column("node").unwrap(),
        ports.u64_column("xmit_bytes").unwrap(),
    );
    let ColumnData::U32(numbers) = ports.column("port").unwrap() else {
        panic!("port numbers are u32");
    };
    let sent = |node: &str, number: u32| {
        let mut rows = 0..nodes.len();
        bytes[rows
            .find(|&row| nodes[row] == node && numbers[row] == number)
            .unwrap()]
    };
    // 1 MiB in 512 packets of 2048 + 26 bytes over the slow cable, and nothing else.
    assert_eq!(sent("left", 4), 512 * 2_074);
    assert_eq!(class_bytes(&output, "copy"), 1 << 20);
    assert!(sent("left", 3) > 0);
    assert_eq!(sent("right", 3), 0);
}

/// Invariants between the tables of one run.
#[test]
fn tables_agree_with_each_other() {
    let overrides = [("probe.ports", "true"), ("probe.latency", "host")];
    let scenario = scenario(TWO_VL, &overrides);
    let output = run_through(&scenario);
    let delivered = sum(&output, "hosts", "delivered_bytes");
    assert_eq!(delivered, sum(&output, "classes", "delivered_bytes"));
    assert_eq!(delivered, output.summary.delivered_bytes);
    assert_eq!(output.summary.simulated_ps, 3_000_000_000);

    let series = output.table("host_series").unwrap();
    assert_eq!(series.rows(), 30 * scenario.fabric().host_count());
    let times = series.u64_column("time_ps").unwrap();
    let bytes = series.u64_column("delivered_bytes").unwrap();
    let warm_up = Span::from_ms(1).as_ps();
    let late = times.iter().zip(bytes).filter(|(time, _)| **time > warm_up);
    assert_eq!(late.map(|(_, bytes)| bytes).sum::<u64>(), delivered);

    let ports = output.table("ports").unwrap();
    let samples = output.table("port_series").unwrap();
    assert_eq!(samples.rows(), 30 * ports.rows());
    let times = samples.u64_column("time_ps").unwrap();
    let sent = samples.u64_column("xmit_bytes").unwrap();
    let late = times.iter().zip(sent).filter(|(time, _)| **time > warm_up);
    assert_eq!(
        late.map(|(_, bytes)| bytes).sum::<u64>(),
        sum(&output, "ports", "xmit_bytes")
    );
    for table in &output.tables {
        assert!(
            table
                .columns
                .iter()
                .all(|column| column.data.len() == table.rows())
        );
    }
}

#[test]
fn a_seed_repeats_a_run_and_another_one_does_not() {
    let text = "[[traffic.uniform]]\nload = 0.7\n[run]\nduration = \"200 us\"";
    let scenario = scenario(text, &[]);
    let tables = |seed| {
        run(
            &Fastest,
            &scenario,
            seed,
            &mut |_| ControlFlow::Continue(()),
        )
        .unwrap()
        .tables
    };
    assert_eq!(tables(1), tables(1));
    assert_ne!(tables(1), tables(2));
}

/// The probe interval and the observer's steps only look: they change nothing.
#[test]
fn sampling_changes_nothing() {
    let base = [("control.scheme", "ib-cc"), ("run.duration", "1 ms")];
    let coarse = run_through(&scenario(MINIMAL, &base));
    let fine = [base.as_slice(), &[("probe.interval", "1 us")]].concat();
    let fine = run_through(&scenario(MINIMAL, &fine));
    assert_eq!(fine.table("host_series").unwrap().rows(), 8 * 1_000);
    for table in ["hosts", "classes", "ports"] {
        assert_eq!(coarse.table(table), fine.table(table));
    }
}

/// An allreduce that ends long before the duration, whose intervals are whole numbers of picoseconds at many levels.
const EARLY: &str = r#"
[fabric]
generator = "single-switch"
hosts = 8
[link]
speed = "DDR"
[[traffic.program]]
kind = "allreduce"
bytes = "256 KiB"
[[traffic.incast]]
to = "host-0000"
[control]
scheme = "dcqcn"
[probe]
ports = true
classes = true
flow-limits = true
latency = "host"
[run]
duration = "1048576 us"
"#;

/// Instants of the host series, each once.
fn instants(output: &RunOutput) -> Vec<u64> {
    let mut times = column(output, "host_series", "time_ps").to_vec();
    times.dedup();
    times
}

fn column<'a>(output: &'a RunOutput, table: &str, column: &str) -> &'a [u64] {
    output.table(table).unwrap().u64_column(column).unwrap()
}

/// The columns of a table up to an instant, as text.
fn until(output: &RunOutput, table: &str, end: u64) -> Vec<String> {
    let times = column(output, table, "time_ps").iter();
    let rows = times.filter(|time| **time <= end).count();
    assert!(rows > 0, "{table}");
    let columns = output.table(table).unwrap().columns.iter();
    let text = |column: &Column| match &column.data {
        ColumnData::U32(values) => format!("{:?}", &values[..rows]),
        ColumnData::U64(values) => format!("{:?}", &values[..rows]),
        ColumnData::F64(values) => format!("{:?}", &values[..rows]),
        ColumnData::OptionalU64(values) => format!("{:?}", &values[..rows]),
        other => panic!("{}: {other:?}", column.name),
    };
    columns.map(text).collect()
}

/// Oracle: the run with the interval that the default came to, written.
#[test]
fn a_run_that_ends_early_has_enough_samples() {
    let by_default = run_through(&scenario(EARLY, &[]));
    let times = instants(&by_default);
    assert!((50..=100).contains(&times.len()), "{} samples", times.len());
    let (last, whole) = (*times.last().unwrap(), times[times.len() - 2]);
    assert_eq!(last, by_default.summary.simulated_ps);
    let interval = times[0];
    assert!(last - whole < 2 * interval);
    let written = format!("{interval} ps");
    let written = run_through(&scenario(EARLY, &[("probe.interval", &written)]));
    for table in [
        "host_series",
        "class_series",
        "port_series",
        "latency_series",
        "flow_limits",
    ] {
        let expected = until(&written, table, whole);
        assert_eq!(until(&by_default, table, whole), expected, "{table}");
    }
    for ((series, in_series), (totals, counter)) in [
        (
            ("host_series", "delivered_bytes"),
            ("hosts", "delivered_bytes"),
        ),
        (
            ("class_series", "delivered_bytes"),
            ("classes", "delivered_bytes"),
        ),
        (("port_series", "xmit_bytes"), ("ports", "xmit_bytes")),
        (
            ("latency_series", "packets"),
            ("classes", "delivered_packets"),
        ),
    ] {
        let total = sum(&by_default, totals, counter);
        assert_eq!(sum(&by_default, series, in_series), total, "{series}");
    }
}

/// The default interval only looks: totals and the end of the run are those of a run without samples.
#[test]
fn default_samples_change_nothing() {
    let by_default = run_through(&scenario(EARLY, &[]));
    let without = run_through(&scenario(EARLY, &[("probe.interval", "1048576 us")]));
    assert_eq!(without.table("host_series").unwrap().rows(), 0);
    for table in ["hosts", "classes", "ports", "programs", "ranks"] {
        assert_eq!(by_default.table(table), without.table(table));
    }
}

/// Oracle: the totals, which count from the end of the warm-up. No interval divides both times here.
#[test]
fn samples_of_unequal_intervals_meet_the_warm_up() {
    let times = [("run.warm-up", "333333 ns"), ("run.duration", "1000001 ns")];
    let output = run_through(&scenario(MINIMAL, &times));
    let instants = instants(&output);
    assert_eq!(instants.len(), 100);
    assert!(instants.contains(&333_333_000));
    assert_eq!(instants.last(), Some(&1_000_001_000));
    let ends = column(&output, "host_series", "time_ps").iter();
    let rows = ends.zip(column(&output, "host_series", "delivered_bytes"));
    let later = rows.filter(|(end, _)| **end > 333_333_000);
    let received: u64 = later.map(|(_, bytes)| bytes).sum();
    assert_eq!(received, sum(&output, "hosts", "delivered_bytes"));
}

#[test]
fn congestion_control_marks_and_throttles() {
    let off = run_through(&scenario(MINIMAL, &[]));
    assert_eq!(sum(&off, "ports", "fecn_marked"), 0);
    assert_eq!(sum(&off, "ports", "xmit_cong_ps"), 0);
    let on = run_through(&scenario(MINIMAL, &[("control.scheme", "ib-cc")]));
    let marked = sum(&on, "ports", "fecn_marked");
    assert!(marked > 0);
    // With one switch, its marked packets are those that arrive marked, except for packets still on their way.
    let received = sum(&on, "hosts", "fecn_received");
    assert!(
        received <= marked && marked - received < 10,
        "{received} of {marked}"
    );
    assert!(sum(&on, "hosts", "becn_received") > 0);
}

/// Threshold 0 marks nothing (gran2012, section II.1): from the start, or from a change on.
#[test]
fn settings_change_during_the_run() {
    let on = [
        ("control.scheme", "ib-cc"),
        ("run.duration", "1 ms"),
        ("probe.ports", "true"),
        ("probe.interval", "100 us"),
    ];
    let marked_by = |change: &str| -> Vec<u64> {
        let overrides = [on.as_slice(), &[("control.ib-cc.change", change)]].concat();
        let output = run_through(&scenario(MINIMAL, &overrides));
        let series = output.table("port_series").unwrap();
        let rows = output.table("ports").unwrap().rows();
        let marked = series.u64_column("fecn_marked").unwrap();
        marked
            .chunks(rows)
            .map(|sample| sample.iter().sum())
            .collect()
    };
    let off = marked_by("[{ at = \"500 us\", switch = \"switch-00\", threshold = 0 }]");
    assert!(off[..5].iter().sum::<u64>() > 0);
    assert_eq!(off[5..].iter().sum::<u64>(), 0);
    let never = marked_by("[{ at = \"0 s\", threshold = 0 }]");
    assert_eq!(never.iter().sum::<u64>(), 0);
    let port = run_through(&scenario(
        MINIMAL,
        &[
            on.as_slice(),
            &[(
                "control.ib-cc.port",
                "[{ switch = \"switch-00\", port = 1, threshold = 0 }]",
            )],
        ]
        .concat(),
    ));
    // The only congested port is that of host-0000, port 1.
    assert_eq!(sum(&port, "ports", "fecn_marked"), 0);
}

/// Notes its sweeps, and asks for one change at the first.
struct Watcher {
    sweeps: Vec<(u64, u64)>,
    change: SettingChange,
}

impl Controller for Watcher {
    fn interval(&self) -> Span {
        Span::from_us(100)
    }

    fn step(
        &mut self,
        now: Time,
        readings: &[(PortId, PortCounters)],
        changes: &mut Vec<SettingChange>,
    ) {
        let sent = readings
            .iter()
            .map(|(_, counters)| counters.xmit_bytes)
            .sum();
        self.sweeps.push((now.as_ps(), sent));
        if self.sweeps.len() == 1 {
            changes.push(self.change.clone());
        }
    }
}

#[test]
fn a_controller_sweeps_and_changes_settings() {
    let scenario = scenario(MINIMAL, &[("control.scheme", "ib-cc")]);
    let port = PortId::new(0);
    let mut watcher = Watcher {
        sweeps: Vec::new(),
        change: SettingChange::Port {
            port,
            setting: PortSetting::Threshold(ThresholdWeight::OFF),
        },
    };
    let output = run_controlled(&Fastest, &scenario, 1, Some(&mut watcher), &mut |_| {
        ControlFlow::Continue(())
    });
    let controlled = sum(&output.unwrap(), "ports", "fecn_marked");
    let times: Vec<u64> = watcher
        .sweeps
        .iter()
        .map(|(time, _)| time / 100_000_000)
        .collect();
    assert_eq!(times, (1..=10).collect::<Vec<_>>());
    assert!(watcher.sweeps.windows(2).all(|pair| pair[0].1 < pair[1].1));
    assert!(controlled < sum(&run_through(&scenario), "ports", "fecn_marked"));

    watcher.change = SettingChange::Port {
        port,
        setting: PortSetting::MarkingRate(1),
    };
    watcher.sweeps.clear();
    let off = self::scenario(MINIMAL, &[]);
    let result = run_controlled(&Fastest, &off, 1, Some(&mut watcher), &mut |_| {
        ControlFlow::Continue(())
    });
    assert!(matches!(result, Err(RunError::Setting(_))));
}

#[test]
fn the_observer_sees_progress_and_stops_the_run() {
    let written = [("run.duration", "100 ms"), ("probe.interval", "100 ms")];
    let scenario = scenario(MINIMAL, &written);
    let mut seen = Vec::new();
    let result = run(&Fastest, &scenario, 1, &mut |progress| {
        seen.push(progress);
        match seen.len() {
            5 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    // 8 hosts: a sample every 128 ms / 8, the first at the start.
    let at = Time::ZERO + Span::from_ms(64);
    assert_eq!(result, Err(RunError::Interrupted { at }));
    assert_eq!(seen.len(), 5);
    assert!(
        seen.iter()
            .all(|progress| progress.total == Span::from_ms(100))
    );
    assert!(
        seen.windows(2)
            .all(|pair| pair[0].simulated < pair[1].simulated
                && pair[0].packet_hops < pair[1].packet_hops)
    );
}

/// Minimal routes around a ring of five, every host sending two switches on: each trunk waits for
/// the next.
#[test]
fn a_credit_loop_ends_as_an_error_that_names_it() {
    let text = r#"
        [fabric]
        generator = "ring"
        switches = 5
        hosts-per-switch = 1
        routing = "min-hop"
        allow-credit-loops = true
        [[traffic.permutation]]
        pattern = "shift"
        shift = 2
        [run]
        duration = "5 ms"
    "#;
    let scenario = scenario(text, &[("switch.buffer", "2112 B")]);
    assert!(scenario.routes().dependency_cycle.is_some());
    let error = run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap_err();
    let RunError::Deadlock { cycle, description } = error else {
        panic!("{error}");
    };
    assert_eq!(cycle.len(), 5, "{description}");
    for switch in 0..5 {
        let name = format!("switch-0{switch}:");
        assert!(
            cycle.iter().any(|port| port.starts_with(&name)),
            "{description}"
        );
    }
}

/// An incast across a torus with congestion control: every mark becomes a notification for its flow, whose service
/// level encodes the path. All senders are throttled, as much as on the torus without datelines, whose service levels
/// have no such meaning.
#[test]
fn congestion_control_works_on_service_levels_that_tell_the_path() {
    let text = r#"
        [fabric]
        generator = "torus"
        sizes = [5, 3]
        hosts-per-switch = 1
        routing = "dimension-order"
        allow-credit-loops = true
        [[traffic.incast]]
        to = "host-0007"
        [control]
        scheme = "ib-cc"
        [control.ib-cc.switch]
        victim-mask = "hosts"
        [control.feedback]
        path = "in-band"
        [run]
        duration = "4 ms"
    "#;
    for level in ["qp", "sl"] {
        let delivered = ["1", "2"].map(|data_vls| {
            let settings = [
                ("control.ib-cc.adapter.level", level),
                ("vl.data-vls", data_vls),
            ];
            let scenario = scenario(text, &settings);
            assert_eq!(scenario.forwarding().lanes.is_some(), data_vls == "2");
            let output = run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap();
            let hosts = output.table("hosts").unwrap();
            let marks = hosts.u64_column("fecn_received").unwrap()[7];
            let becn = hosts.u64_column("becn_received").unwrap();
            let notices: u64 = becn.iter().sum();
            assert!(marks > 100 && notices <= marks && notices + 20 >= marks);
            let told = becn.iter().filter(|count| **count > 0).count();
            assert_eq!(told, 14, "{level}, {data_vls} VLs");
            hosts.u64_column("delivered_bytes").unwrap()[7]
        });
        let ratio = delivered[1] as f64 / delivered[0] as f64;
        assert!((ratio - 1.0).abs() < 0.1, "{level}: {delivered:?}");
    }
}

/// Functions in Python are for the Python package; a run without them must not pass for one with no control.
#[test]
fn a_scheme_in_python_is_not_left_out_silently() {
    let text = "[control]\nscheme = \"python\"\npython = { source = \"\" }";
    let scenario = scenario(text, &[("run.duration", "1 us")]);
    let refused = run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap_err();
    let message = "the scheme is in Python, which this program does not run";
    assert_eq!(refused.to_string(), message);
}

/// A run that ends as it should, but for the check at its end.
struct Unsound(Box<dyn Simulation>);

macro_rules! forward {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> $result {
            self.0.$name($($argument),*)
        })*
    };
}

impl Simulation for Unsound {
    fn change_fabric(&mut self, change: FabricChange) {
        self.0.change_fabric(change);
    }

    fn run_until(&mut self, end: Time) -> Result<(), EngineError> {
        self.0.run_until(end)
    }

    fn step_until(&mut self, end: Time) -> Result<(), EngineError> {
        self.0.step_until(end)
    }

    fn apply(&mut self, change: &SettingChange) -> Result<(), UnknownSetting> {
        self.0.apply(change)
    }

    fn track_flows(&mut self, flows: &[(u16, HostId)]) {
        self.0.track_flows(flows);
    }

    fn reset_latency(&mut self) {
        self.0.reset_latency();
    }

    fn add_latency_counts(&self, class: u16, counts: &mut Vec<u64>) {
        self.0.add_latency_counts(class, counts);
    }

    fn audit(&self) -> Result<(), InvariantError> {
        self.0.audit()?;
        Err(InvariantError::Queue { lane: 7 })
    }

    forward! {
        now() -> Time;
        events() -> u64;
        packet_hops() -> u64;
        control_acted() -> bool;
        delivered_packets() -> u64;
        memory_bytes() -> usize;
        port_counters(port: PortId) -> PortCounters;
        queued(output: PortId, vl: Vl) -> Bytes;
        host_counters(host: HostId) -> HostCounters;
        flow_limits(host: HostId) -> Vec<FlowLimit>;
        class(class: u16) -> ClassTotals;
        latency_of_class(class: u16) -> Option<Latencies>;
        latency_of_host(host: HostId) -> Option<Latencies>;
        flow(class: u16, source: HostId) -> FlowProgress;
        forest(threshold: Bytes) -> Forest;
        traffic() -> &Traffic;
        classes() -> &[String];
        programs() -> Option<&Programs>;
    }
}

struct UnsoundEngines;

impl Engines for UnsoundEngines {
    fn start(
        &self,
        network: Network<'_>,
        control: Control,
        load: Load,
    ) -> Result<Box<dyn Simulation>, BuildError> {
        let sound = Fastest.start(network, control, load)?;
        Ok(Box::new(Unsound(sound)))
    }

    fn start_live(
        &self,
        network: Network<'_>,
        switch: MeteredSwitch,
        adapter: MeteredAdapter,
        load: Load,
    ) -> Result<Box<dyn LiveSimulation>, BuildError> {
        Fastest.start_live(network, switch, adapter, load)
    }
}

/// Every run is checked at its end, and has no result if an invariant does not hold.
#[test]
fn a_run_whose_invariants_do_not_hold_has_no_result() {
    let scenario = scenario(MINIMAL, &[]);
    let mut go_on = |_| ControlFlow::Continue(());
    let error = run(&UnsoundEngines, &scenario, 1, &mut go_on).unwrap_err();
    assert_eq!(
        error.to_string(),
        "internal error at 1 ms: lane 7: the count of waiting bytes disagrees with the packets that wait"
    );
}
