//! HPCC's messages: how many bytes go where, and that all tests end.

use silvan_core::{Bytes, HostId, Span};
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
