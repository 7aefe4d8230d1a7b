//! HPCC's messages: how many bytes go where, and that all tests end.

use silvan_core::{Bytes, HostId, Span};
use silvan_workload::programs::Placement;
use silvan_workload::programs::hpcc::{BANDWIDTH_LOOPS, Hpcc, LATENCY_LOOPS};
use silvan_workload::programs::section::HpccSection;

use crate::common::{messaging, run};

fn hpcc(hosts: usize, ranks_per_host: u32) -> Hpcc {
    Hpcc {
        hosts: (0..hosts).map(HostId::new).collect(),
        keys: HpccSection {
            ranks_per_host,
            settle: Span::from_us(1),
            latency_rings: 2,
            bandwidth_rings: 1,
            bandwidth_bytes: Bytes::from_bytes(10_000),
            ptrans_rows: 60,
            access_rounds: 5,
            fft_length: 1024,
            ..HpccSection::default()
        },
    }
}

/// Oracle: a matrix of 12 x 12 blocks dealt to the grid, transposed block by block.
#[test]
fn ptrans_sends_what_the_blocks_say() {
    for (ranks, rows, columns) in [(2, 1, 2), (4, 2, 2), (6, 2, 3), (12, 3, 4)] {
        let mut spec = hpcc(ranks, 1);
        spec.keys.ptrans_rows = 144;
        let blocks = 144;
        let share = 144 * 144 * 8 / (blocks * blocks);
        let mut expected = vec![vec![0; ranks]; ranks];
        for i in 0..blocks as usize {
            for j in 0..blocks as usize {
                let from = (i % rows) * columns + j % columns;
                let to = (j % rows) * columns + i % columns;
                expected[from][to] += if from == to { 0 } else { share };
            }
        }
        for (me, expected) in (0..).zip(&expected) {
            assert_eq!(&spec.transposed(me), expected, "rank {me} of {ranks}");
        }
    }
}

/// Every pair and every ring is measured as often as it should be, on any number of ranks.
#[test]
fn all_tests_end() {
    for (hosts, per_host) in [(2, 1), (2, 2), (3, 1)] {
        let spec = hpcc(hosts, per_host);
        let n = spec.ranks();
        let outcome = run(hosts, vec![spec.job(3, 0)], messaging());
        assert_eq!(outcome.fault, None);
        assert!(outcome.finished, "{n} ranks");
        let pairs = n * (n - 1) * (LATENCY_LOOPS.1 + BANDWIDTH_LOOPS.1);
        let rings = n * 2 * (3 * LATENCY_LOOPS.1 + 2 * BANDWIDTH_LOOPS.1);
        assert_eq!(outcome.marks.len() as u32, pairs + rings + 3 * n);
    }
}

/// HPL on a grid of 2 x 2 ranks: one end on each rank, and as many bytes between hosts as the panels say.
#[test]
fn hpl_sends_its_panels() {
    let mut spec = hpcc(4, 1);
    spec.keys = HpccSection {
        settle: Span::from_us(1),
        latency_rings: 0,
        bandwidth_rings: 0,
        bandwidth_bytes: Bytes::from_bytes(8),
        ptrans_rows: 0,
        access_rounds: 0,
        fft_length: 0,
        ..spec.keys
    };
    let without = run(4, vec![spec.job(3, 0)], messaging());
    (spec.keys.hpl_rows, spec.keys.hpl_block) = (50, 20);
    let outcome = run(4, vec![spec.job(3, 0)], messaging());
    assert_eq!(outcome.fault, None);
    assert_eq!(outcome.marks.len(), without.marks.len() + 4);
    // Panels of 20, 20 and 10 columns, of 50, 30 and 10 rows: candidates of both ranks of a column for each pivot, the
    // halves of the panel along both rows of the grid, and U in both columns.
    let panels = [(50, 20), (30, 20), (10, 10)];
    let bytes = |(left, block): (u64, u64)| {
        let pivots = 2 * block * (2 * block + 4) * 8;
        let passed = 2 * (left / 2 * block * 8);
        let exchanged = 4 * (block * ((left - block) / 2) * 8);
        pivots + passed + exchanged
    };
    let sent: u64 = panels.into_iter().map(bytes).sum();
    assert_eq!(outcome.delivered_bytes - without.delivered_bytes, sent);
}

/// Computing for the panels of HPL adds up to the whole, and that of the other tests is in their times.
#[test]
fn computing_counts() {
    let mut spec = hpcc(2, 1);
    (spec.keys.hpl_rows, spec.keys.hpl_block) = (40, 10);
    let times = |spec: &Hpcc| {
        let outcome = run(2, vec![spec.job(3, 0)], messaging());
        assert_eq!(outcome.fault, None);
        let last = outcome.marks.len() - 8;
        let mut marks: Vec<Span> = outcome.marks[last..].iter().map(|mark| mark.2).collect();
        // Both ranks end a test at one barrier.
        marks = marks.chunks(2).map(|pair| pair[0].max(pair[1])).collect();
        marks
    };
    let without = times(&spec);
    spec.keys.ptrans_compute = Span::from_us(11);
    spec.keys.access_compute = Span::from_us(2);
    spec.keys.fft_compute = Span::from_us(30);
    spec.keys.hpl_compute = Span::from_us(100);
    let with = times(&spec);
    let rounds = u64::from(spec.keys.access_rounds);
    let computed = [11, 2 * rounds, 30, 100].map(Span::from_us);
    for ((with, without), computed) in with.iter().zip(&without).zip(computed) {
        let more = with.as_ps() - without.as_ps();
        assert!(
            more.abs_diff(computed.as_ps()) < 1000,
            "{more} {computed:?}"
        );
    }
}

/// Ranks that are dealt in turn send every message of the natural ring to another host.
#[test]
fn ranks_are_dealt_in_turn() {
    let ranks = |placement| {
        let mut spec = hpcc(2, 2);
        spec.keys.placement = placement;
        let job = spec.job(3, 0);
        let hosts: Vec<usize> = job.ranks.iter().map(|(host, _)| host.index()).collect();
        hosts
    };
    assert_eq!(ranks(Placement::Block), [0, 0, 1, 1]);
    assert_eq!(ranks(Placement::Cyclic), [0, 1, 0, 1]);
}
