use silvan_core::HostId;

use crate::traffic::rng::{Purpose, shuffle, stream};

/// Role of a host, in the terms of gran2012, section III.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Sends nothing as a node; it may still take part in other entries.
    #[default]
    Idle,
    /// A potential victim: sends to all other hosts uniformly.
    V,
    /// A contributor to congestion: sends to its hotspot only.
    C,
    /// Sends a share p of its traffic to its hotspot, the rest uniformly.
    B,
}

/// Whole parts of fraction * hosts, then the largest remainders, ties to the earlier.
pub(crate) fn largest_remainder<const N: usize>(fractions: [f64; N], hosts: usize) -> [usize; N] {
    let quotas = fractions.map(|fraction| fraction * hosts as f64);
    let mut counts = quotas.map(|quota| quota.floor() as usize);
    let mut order: [usize; N] = std::array::from_fn(|index| index);
    order.sort_by(|&a, &b| {
        let remainder = |index: usize| quotas[index] - quotas[index].floor();
        remainder(b).total_cmp(&remainder(a))
    });
    let left = hosts.saturating_sub(counts.iter().sum());
    for &index in order.iter().take(left) {
        counts[index] += 1;
    }
    counts
}

/// Random order: V nodes, then C, then B, so a seed's V nodes do not depend on C nodes.
pub(crate) fn placement_order(hosts: usize, placement_seed: u64) -> Vec<HostId> {
    let mut order: Vec<HostId> = (0..hosts).map(HostId::new).collect();
    shuffle(&mut stream(placement_seed, Purpose::Roles, 0), &mut order);
    order
}

pub(crate) fn deal(members: &mut [HostId], hotspots: &[u32]) {
    let subsets = hotspots.len();
    if subsets < 2 || members.len() < 2 {
        return;
    }
    for place in 0..members.len() {
        let subset = place % subsets;
        if members[place].index() != hotspots[subset] as usize {
            continue;
        }
        let next = (place + 1) % members.len();
        // Past the end of the list the next place may be in the same subset.
        let other = if next % subsets == subset { 1 } else { next };
        members.swap(place, other);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_of_the_papers_mixes() {
        // 20 % V, 80 % C of 648: 129.6 and 518.4.
        assert_eq!(
            largest_remainder([0.2, 0.8, 0.0, 0.0], 648),
            [130, 518, 0, 0]
        );
        // 25 % B, the rest 80 % C and 20 % V: 97.2, 388.8, 162.
        assert_eq!(
            largest_remainder([0.15, 0.6, 0.25, 0.0], 648),
            [97, 389, 162, 0]
        );
    }

    proptest! {
        #[test]
        fn counts_sum_to_all_and_are_within_one_of_the_quota(
            weights in proptest::array::uniform4(0_u32..1000), hosts in 1_usize..12_000,
        ) {
            let sum: u32 = weights.iter().sum();
            prop_assume!(sum > 0);
            let fractions = weights.map(|weight| f64::from(weight) / f64::from(sum));
            let counts = largest_remainder(fractions, hosts);
            prop_assert_eq!(counts.iter().sum::<usize>(), hosts);
            for (count, fraction) in counts.iter().zip(fractions) {
                prop_assert!((*count as f64 - fraction * hosts as f64).abs() < 1.0 + 1e-6);
            }
        }

        #[test]
        fn dealing_is_even_and_never_gives_a_hotspot_its_own_subset(
            seed: u64, hosts in 2_usize..60, count in 2_usize..12, members in 2_usize..60,
        ) {
            let count = count.min(hosts);
            let mut dealt = placement_order(hosts, seed);
            dealt.truncate(members);
            let hotspots: Vec<u32> = placement_order(hosts, seed ^ 1)
                .iter().take(count).map(|host| host.index() as u32).collect();
            let mut before = dealt.clone();
            deal(&mut dealt, &hotspots);
            for (place, host) in dealt.iter().enumerate() {
                prop_assert_ne!(host.index() as u32, hotspots[place % count]);
            }
            before.sort_unstable();
            dealt.sort_unstable();
            prop_assert_eq!(before, dealt);
        }
    }
}
