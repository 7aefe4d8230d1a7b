//! A run is a function of its inputs.

use silvan_core::{Bytes, HostId, Span};
use silvan_workload::programs::gpcnet::{Gpcnet, Part, Test};
use silvan_workload::programs::section::GpcnetSection;

use crate::common::{messaging, run};

fn gpcnet(part: Part) -> Gpcnet {
    Gpcnet {
        hosts: (0..12).map(HostId::new).collect(),
        keys: GpcnetSection {
            ranks_per_host: 2,
            part,
            settle: Span::from_us(20),
            tests: Test::ALL.to_vec(),
            rings: 2,
            warm_up: 1,
            latency_iterations: 3,
            bandwidth_iterations: 1,
            allreduce_iterations: 3,
            alltoall_iterations: 2,
            bandwidth_bytes: Bytes::from_bytes(16 << 10),
            ..GpcnetSection::default()
        },
    }
}

#[test]
fn gpcnet_ends_and_is_the_same_every_time() {
    for part in [Part::Isolated, Part::Congested] {
        let once = || run(12, gpcnet(part).jobs(7, 0), messaging());
        let (one, other) = (once(), once());
        assert_eq!(one.fault, None);
        assert!(one.finished);
        assert_eq!(one.marks, other.marks);
        assert_eq!(one.delivered_bytes, other.delivered_bytes);
        // 3 hosts measure, on 6 ranks: 2 latency tests with 2 rings of 3 iterations, 4 bandwidth
        // tests with 2 rings of 1 iteration, 3 allreduces and 2 all-to-alls.
        assert_eq!(one.marks.len(), 6 * (2 * 2 * 3 + 4 * 2 + 3 + 2));
    }
}

/// 9 of 12 hosts congest, in groups as equal as can be; no host is in two places.
#[test]
fn gpcnet_splits_the_hosts() {
    for seed in 0..20 {
        let (congestors, tests) = gpcnet(Part::Congested).split(seed);
        let mut sizes: Vec<usize> = congestors.iter().map(Vec::len).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [2, 2, 2, 3]);
        assert_eq!(tests.len(), 3);
        let mut all: Vec<usize> = congestors
            .iter()
            .flatten()
            .chain(&tests)
            .map(|host| host.index())
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..12).collect::<Vec<_>>());
    }
}
