use std::collections::BTreeMap;

use silvan_core::{HostId, PortId};

use super::Trees;
use super::facts::{BLOCKED, is_blocked};
use crate::flows::Flows;
use crate::observation::PortLoad;

/// Packets that a full input buffer holds.
const BUFFER: f64 = 14.0;
/// An input whose buffer is not full makes use of no more than this part of its turns.
const MOST_USED: f64 = 0.95;

impl Trees<'_> {
    /// Branches that a flow shares although it leads through no root, without the host's own port.
    pub(super) fn shared<'p>(&'p self, path: &'p [PortId]) -> impl Iterator<Item = PortId> + 'p {
        let is_root = |port: &PortId| self.members[*port].is_some_and(|member| member.depth == 0);
        let count = if path.iter().any(is_root) {
            0
        } else {
            path.len()
        };
        let others = path.iter().copied().take(count).skip(1);
        others.filter(|&port| self.members[port].is_some())
    }

    /// Mean of all results for the flows.
    pub(super) fn part_of_victims(&self, flows: &Flows) -> BTreeMap<HostId, f64> {
        let mut sums: BTreeMap<HostId, f64> = BTreeMap::new();
        let mut results = 0;
        for result in flows.results() {
            results += 1;
            let mut held_up: BTreeMap<(PortId, PortId, HostId), f64> = BTreeMap::new();
            for (flow, bits_per_s) in result {
                let path = flows.path(flow);
                for branch in self.shared(path) {
                    let input = path
                        .iter()
                        .zip(&path[1..])
                        .find(|(_, next)| **next == branch);
                    let input = input.map_or(branch, |(input, _)| *input);
                    *held_up.entry((branch, input, flow.source)).or_default() += bits_per_s;
                }
            }
            let mut free: BTreeMap<HostId, f64> = BTreeMap::new();
            for ((branch, input, host), bits_per_s) in held_up {
                let waits = self.part_with_packets(branch, input, bits_per_s);
                *free.entry(host).or_insert(1.0) *= 1.0 - waits;
            }
            for (host, free) in free {
                *sums.entry(host).or_default() += 1.0 - free;
            }
        }
        let mean = |sum: f64| sum / f64::from(results);
        sums.into_iter()
            .map(|(host, sum)| (host, mean(sum)))
            .collect()
    }

    /// Time for which an input at this rate has packets for a branch.
    fn part_with_packets(&self, branch: PortId, input: PortId, bits_per_s: f64) -> f64 {
        let PortLoad { load, wait, .. } = self.facts.observation.ports[branch];
        let wait = wait.unwrap_or(0.0);
        // A port that waits has no credits while it sends the packet for which it had the last one, either.
        let blocked = match wait >= BLOCKED {
            true => (wait + load.unwrap_or(1.0)).min(1.0),
            false => wait,
        };
        let turn = self.turn(input, branch).max(1.0);
        // Part of the traffic from the input to the branch.
        let part = (bits_per_s / turn).min(1.0);
        let waits = match is_blocked(&self.facts, input) {
            // The buffer is full.
            true => 1.0 - (-BUFFER * part).exp(),
            // In turn with the full inputs, it could send this part; it has packets for the used fraction of that time.
            false => {
                let full = self.blocked_inputs(branch).filter(|&other| other != input);
                let could = self.sent(branch).max(1.0) / (full.count() as f64 + 1.0);
                part_with_one_of((turn / could).min(MOST_USED), part)
            }
        };
        blocked * waits
    }
}

/// Time for which a queue used for `used`, of M/M/1 length, holds one of `part` of its packets.
fn part_with_one_of(used: f64, part: f64) -> f64 {
    used * part / (1.0 - used + used * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_holds_a_packet_of_some_as_often_as_the_sum_over_its_lengths_says() {
        for (used, part) in [(0.3, 1.0), (0.5, 0.25), (0.9, 0.1), (0.95, 0.5)] {
            let with_one = |length: i32| {
                (1.0 - used) * f64::powi(used, length) * (1.0 - f64::powi(1.0 - part, length))
            };
            let sum: f64 = (0..2000).map(with_one).sum();
            assert!((part_with_one_of(used, part) - sum).abs() < 1e-9);
        }
    }
}
