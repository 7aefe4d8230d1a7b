//! Current schemes, each in at most 60 lines, against bounds that follow from the scheme and the fabric. Their Python
//! versions (`tests/hook_schemes`) must give the same tables, which are stored next to them.

mod grants;
mod hpcc;
mod spraying;
mod swift;

use std::fmt::Write;
use std::ops::{ControlFlow, Index, IndexMut};

use silvan_cc::hooks::{Flow, NoControl};
use silvan_core::Time;
use silvan_instances::{Custom, Fastest};
use silvan_model::Engines;
use silvan_scenario::Scenario;
use silvan_sim::{ColumnData, RunOutput, run};

const INCAST: &str = include_str!("../../../../../tests/hook_schemes/incast.toml");
const TRANSPOSE: &str = include_str!("../../../../../tests/hook_schemes/transpose.toml");

/// Hosts of the largest scenario.
pub const HOSTS: usize = 16;

/// Payload of a full packet over its bytes on the wire, and the data rate of EDR in bytes in a microsecond.
const PAYLOAD_PART: f64 = 2048.0 / 2074.0;
const BYTES_PER_US: f64 = 100_000.0 / 8.0;

/// The numbers that a scheme keeps of each flow.
#[derive(Clone)]
pub struct PerFlow<const N: usize>(Vec<[f64; N]>);

impl<const N: usize> PerFlow<N> {
    /// All flows begin with the same numbers, 0 where none are given.
    fn new(first: &[f64]) -> Self {
        let numbers = std::array::from_fn(|at| first.get(at).copied().unwrap_or(0.0));
        Self(vec![numbers; HOSTS * HOSTS])
    }
}

impl<const N: usize> Index<Flow> for PerFlow<N> {
    type Output = [f64; N];
    fn index(&self, flow: Flow) -> &[f64; N] {
        &self.0[flow.source.index() * HOSTS + flow.destination.index()]
    }
}

impl<const N: usize> IndexMut<Flow> for PerFlow<N> {
    fn index_mut(&mut self, flow: Flow) -> &mut [f64; N] {
        &mut self.0[flow.source.index() * HOSTS + flow.destination.index()]
    }
}

/// Picoseconds.
pub fn ps(time: Time) -> f64 {
    time.as_ps() as f64
}

fn run_with(engines: &dyn Engines, text: &str) -> RunOutput {
    let scenario = Scenario::from_toml(text, "test", &[]).unwrap();
    run(engines, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn column(output: &RunOutput, table: &str, column: &str) -> Vec<u64> {
    let table = output
        .tables
        .iter()
        .find(|known| known.name == table)
        .unwrap();
    let found = table
        .columns
        .iter()
        .find(|known| known.name == column)
        .unwrap();
    match &found.data {
        ColumnData::U32(values) => values.iter().map(|&value| u64::from(value)).collect(),
        ColumnData::U64(values) => values.clone(),
        other => panic!("{other:?}"),
    }
}

/// Compares the tables of a run with those of the same scheme in Python.
fn equals_python(output: &RunOutput, name: &str) {
    let mut text = String::new();
    for (table, names) in [
        (
            "hosts",
            &["delivered_bytes", "injected_bytes", "fecn_received"][..],
        ),
        ("classes", &["delivered_bytes", "delivered_packets"]),
        ("ports", &["xmit_bytes", "xmit_wait_ps"]),
        ("port_series", &["queued_bytes"]),
    ] {
        for &name in names {
            let values = column(output, table, name);
            // Sums of values and of their products with their places distinguish all tables of these tests.
            let sum: u64 = values.iter().sum();
            let places = (1..).zip(&values).map(|(place, &value)| place * value);
            let places: u64 = places.fold(0, u64::wrapping_add);
            writeln!(text, "{table}.{name} {} {sum} {places}", values.len()).unwrap();
        }
    }
    let path = format!(
        "{}/../../tests/hook_schemes/{name}.txt",
        env!("CARGO_MANIFEST_DIR")
    );
    assert_eq!(text, std::fs::read_to_string(path).unwrap());
}

/// Bytes that wait for the receiver's port of an incast at each sample after the warm-up.
fn incast_queue(output: &RunOutput) -> Vec<u64> {
    let (rows, queued) = (
        column(output, "port_series", "ports_row"),
        column(output, "port_series", "queued_bytes"),
    );
    let of_receiver = rows.iter().zip(queued).filter(|(row, _)| **row == 0);
    of_receiver.map(|(_, queued)| queued).skip(100).collect()
}

/// Payload that the receiver of an incast has received, as a part of what its link can carry.
fn incast_goodput(output: &RunOutput) -> f64 {
    let delivered = column(output, "hosts", "delivered_bytes")[0] as f64;
    delivered / (2_000.0 * BYTES_PER_US * PAYLOAD_PART)
}

/// Bytes on the wire of a full packet.
const WIRE: u64 = 2074;

/// Without control the receiver's queue fills the senders' buffers; the bounds of the schemes below are far less.
#[test]
fn without_control_buffers_are_full() {
    let output = run_with(&Fastest, INCAST);
    let least = incast_queue(&output).into_iter().min().unwrap();
    assert!(least > 4 * 120 * 1024, "{least}");
    assert!(incast_goodput(&output) > 0.999);
}

/// HPCC keeps its windows at eta of what the link can carry in a round trip. So no queue stays; what the schemes
/// of four senders let start at once is at most a packet of each.
#[test]
fn hpcc_keeps_the_link_at_its_aim_and_the_queue_at_a_packet_of_each_sender() {
    let custom = Custom {
        switch: hpcc::Hpcc(PerFlow::new(&[])),
        source: hpcc::Hpcc(PerFlow::new(&[hpcc::LINK, hpcc::LINK])),
    };
    let output = run_with(&custom, INCAST);
    let queue = incast_queue(&output);
    assert!(queue.iter().all(|&bytes| bytes <= 4 * WIRE), "{queue:?}");
    let goodput = incast_goodput(&output);
    assert!((0.92..0.97).contains(&goodput), "{goodput}");
    equals_python(&output, "hpcc");
}

/// Swift keeps the round trip near its target of 10 us. Of that, 2 us are for the acknowledgement, and a window
/// over the target shrinks by at most a half, once in a round trip.
#[test]
fn swift_keeps_the_round_trip_at_its_target() {
    let custom = Custom {
        switch: NoControl,
        source: swift::Swift(PerFlow::new(&[16.0 * 2048.0])),
    };
    let output = run_with(&custom, INCAST);
    let queue = incast_queue(&output);
    let mean = queue.iter().sum::<u64>() as f64 / queue.len() as f64;
    // Time in the queue, with what two cables, the switch and the acknowledgement take.
    let round_trip = mean / BYTES_PER_US + 2.0 + 2.0 * WIRE as f64 / BYTES_PER_US + 0.2;
    assert!((8.0..11.0).contains(&round_trip), "{round_trip}");
    assert!(incast_goodput(&output) > 0.99);
    equals_python(&output, "swift");
}

/// The receiver's queue never exceeds its grants, and the link is always busy. The limit is more than the link carries
/// while a grant and its packet are in progress.
#[test]
fn a_receiver_gets_what_it_grants_at_the_rate_of_its_link() {
    let custom = Custom {
        switch: NoControl,
        source: grants::Granted {
            flows: PerFlow::new(&[2048.0]),
            receivers: [(0.0, 0); HOSTS],
        },
    };
    let output = run_with(&custom, INCAST);
    let granted = (grants::LIMIT / 2048.0) as u64 * WIRE;
    assert!(incast_queue(&output).iter().all(|&bytes| bytes <= granted));
    let goodput = incast_goodput(&output);
    assert!((0.999..1.001).contains(&goodput), "{goodput}");
    let delivered = column(&output, "hosts", "injected_bytes");
    let (most, least) = (delivered[1..].iter().max(), delivered[1..].iter().min());
    assert!(most.unwrap() - least.unwrap() <= 2 * 2048, "{delivered:?}");
    equals_python(&output, "grants");
}

/// By destination, three flows of each leaf share a way up and get a third of their link. Sprayed, they take all
/// ways to the same extent, and get it whole.
#[test]
fn spraying_uses_all_paths_alike() {
    let spraying = Custom {
        switch: NoControl,
        source: spraying::Spraying(PerFlow::new(&[])),
    };
    let fixed = TRANSPOSE.replace("path-choice = \"adaptive\"\n", "");
    let fixed = column(&run_with(&Fastest, &fixed), "hosts", "delivered_bytes");
    let output = run_with(&spraying, TRANSPOSE);
    let sprayed = column(&output, "hosts", "delivered_bytes");
    // 900 us at 16 Gbit/s.
    let link = 900.0 * 16_000.0 / 8.0 * PAYLOAD_PART;
    for host in 0..HOSTS {
        let is_to_itself = host % 4 == host / 4;
        let expected = if is_to_itself { 0.0 } else { 1.0 };
        assert!((fixed[host] as f64 / link - expected / 3.0).abs() < 0.01);
        assert!(
            (sprayed[host] as f64 / link - expected).abs() < 0.02,
            "{sprayed:?}"
        );
    }
    equals_python(&output, "spraying");
}

/// Counts the lines that an author writes.
#[test]
fn each_scheme_has_at_most_60_lines() {
    for text in [
        include_str!("grants.rs"),
        include_str!("hpcc.rs"),
        include_str!("spraying.rs"),
        include_str!("swift.rs"),
    ] {
        assert!(text.lines().count() <= 60);
    }
}
