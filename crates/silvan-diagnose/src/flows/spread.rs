//! Many small flows: shares of inputs at switches, and hosts with a single destination among others.
//!
//! Inputs that always have packets for an output get equal shares. Some hosts have one flow, others send equally to
//! all; the choice leaves the least lack at outputs.

use std::collections::{BTreeMap, BTreeSet};

use silvan_core::{HostId, IdVec, PortId};

use super::{Flows, Peeled};
use crate::evidence::{Marks, Waiting};

const MOST_CHOICES: usize = 100_000;
/// A flow has room on its way if it can have at least this part of its rate.
const ROOM: f64 = 0.9;

#[derive(Clone, Debug)]
pub(super) struct Turns {
    ends: Vec<(PortId, PortId)>,
    of_flow: Vec<Vec<u32>>,
    /// Turns of inputs that always have packets.
    of_full: Vec<Vec<u32>>,
    known: Vec<f64>,
}

impl Turns {
    fn new(flows: &Flows, waiting: &Waiting, known: &[(usize, f64)]) -> Self {
        let mut numbers: BTreeMap<(PortId, PortId), u32> = BTreeMap::new();
        let mut ends = Vec::new();
        let mut of_flow = Vec::with_capacity(flows.flows.len());
        for flow in &flows.flows {
            let steps = flows.path(flow).windows(2);
            let steps = steps.filter(|pair| waiting.busy[pair[1]]);
            let number = |pair: &[PortId]| {
                *numbers.entry((pair[0], pair[1])).or_insert_with(|| {
                    ends.push((pair[0], pair[1]));
                    ends.len() as u32 - 1
                })
            };
            of_flow.push(steps.map(number).collect());
        }
        let mut of_full: BTreeMap<PortId, Vec<u32>> = BTreeMap::new();
        for (&(input, _), &number) in &numbers {
            if waiting.full[input] {
                of_full.entry(input).or_default().push(number);
            }
        }
        let mut turns = Self {
            known: vec![0.0; ends.len()],
            ends,
            of_flow,
            of_full: of_full.into_values().collect(),
        };
        for &(flow, rate) in known {
            turns.add(flow, rate);
        }
        turns
    }

    fn add(&mut self, flow: usize, rate: f64) {
        for &turn in &self.of_flow[flow] {
            self.known[turn as usize] += rate;
        }
    }

    pub(super) fn of(&self, flow: usize) -> &[u32] {
        &self.of_flow[flow]
    }

    fn rates(&self, flows: &Flows, open: &[bool]) -> Vec<f64> {
        let mut rates = self.known.clone();
        for ((flow, turns), _) in flows
            .flows
            .iter()
            .zip(&self.of_flow)
            .zip(open)
            .filter(|(_, open)| **open)
        {
            for &turn in turns {
                rates[turn as usize] += flow.bits_per_s;
            }
        }
        rates
    }

    /// The share of each output for inputs that always have packets, and the turns that wait for it.
    fn shares(&self, rates: &[f64]) -> (BTreeMap<PortId, f64>, Vec<bool>) {
        let mean = |of: &dyn Fn(u32) -> bool| {
            let mut sums: BTreeMap<PortId, (f64, f64)> = BTreeMap::new();
            for &turn in self.of_full.iter().flatten().filter(|turn| of(**turn)) {
                let sum = sums.entry(self.ends[turn as usize].1).or_default();
                *sum = (sum.0 + rates[turn as usize], sum.1 + 1.0);
            }
            let mean = |(output, (sum, count)): (PortId, (f64, f64))| (output, sum / count);
            sums.into_iter().map(mean).collect::<BTreeMap<_, _>>()
        };
        let all = mean(&|_| true);
        let part = |turn: &u32| {
            let turn = *turn as usize;
            rates[turn] / all[&self.ends[turn].1].max(1.0)
        };
        let mut waits = vec![false; self.ends.len()];
        for turns in &self.of_full {
            let reason = turns.iter().max_by(|a, b| part(a).total_cmp(&part(b)));
            if let Some(&reason) = reason {
                waits[reason as usize] = true;
            }
        }
        (mean(&|turn| waits[turn as usize]), waits)
    }

    /// Logarithm of a turn's lack to its share; 0 without one.
    pub(super) fn factors(&self, flows: &Flows, open: &[bool]) -> Vec<f64> {
        let rates = self.rates(flows, open);
        let (shares, waits) = self.shares(&rates);
        let factor = |(turn, (_, output)): (usize, &(PortId, PortId))| {
            let Some(share) = shares
                .get(output)
                .filter(|_| rates[turn] > self.known[turn])
            else {
                return 0.0;
            };
            match waits[turn] || rates[turn] > *share {
                true => (share.max(1.0) / rates[turn].max(1.0))
                    .ln()
                    .clamp(-3.0, 3.0),
                false => 0.0,
            }
        };
        self.ends.iter().enumerate().map(factor).collect()
    }
}

impl Flows {
    pub(super) fn spread(
        mut self,
        waiting: &Waiting,
        mut residual: IdVec<PortId, Option<f64>>,
        mut open: Vec<bool>,
        mut known: Vec<(usize, f64)>,
        marks: Option<&Marks<'_>>,
    ) -> Peeled {
        let mut turns = Turns::new(&self, waiting, &known);
        for (flow, &open) in self.flows.iter_mut().zip(&open) {
            flow.bits_per_s = if open { flow.prior } else { 0.0 };
        }
        self.fit(&residual, &open, marks, Some(&turns));
        for (flow, rate) in self.single(waiting, &residual, &open) {
            let path = self.path(&self.flows[flow]);
            let room = path.iter().filter_map(|&port| residual[port]);
            let room = room.fold(rate, f64::min);
            if room < ROOM * rate {
                continue;
            }
            for &port in path {
                if let Some(left) = &mut residual[port] {
                    *left = (*left - room).max(0.0);
                }
            }
            let source = self.flows[flow].source;
            for (other, open) in self.flows.iter().zip(&mut open) {
                *open &= other.source != source;
            }
            turns.add(flow, room);
            known.push((flow, room));
        }
        Peeled {
            residual,
            open,
            known,
            turns: Some(turns),
        }
    }

    /// Flows of hosts with one destination, found by the outputs of their switch.
    fn single(
        &self,
        waiting: &Waiting,
        left: &IdVec<PortId, Option<f64>>,
        open: &[bool],
    ) -> Vec<(usize, f64)> {
        let mut senders: BTreeMap<HostId, Sender> = BTreeMap::new();
        // Outputs that packets of other switches leave by, too.
        let mut shared: BTreeSet<PortId> = BTreeSet::new();
        for (number, flow) in self.flows.iter().enumerate() {
            let path = self.path(flow);
            let Some(rate) = left[path[0]].filter(|_| open[number]) else {
                continue;
            };
            let sender = senders.entry(flow.source).or_insert_with(|| Sender {
                rate,
                count: 0.0,
                outputs: BTreeMap::new(),
                largest: BTreeMap::new(),
                is_full: waiting.full[path[0]],
            });
            shared.extend(&path[2..]);
            sender.count += 1.0;
            *sender.outputs.entry(path[1]).or_default() += 1.0;
            // A root is busy and does not wait, or faces a host.
            let is_root = |(at, &port): (usize, &PortId)| {
                waiting.busy[port] && (!waiting.held_up[port] || at + 1 == path.len())
            };
            if path.iter().enumerate().skip(1).any(is_root) {
                let largest = sender.largest.entry(path[1]).or_insert(number);
                if self.flows[*largest].bits_per_s < flow.bits_per_s {
                    *largest = number;
                }
            }
        }
        // Hosts that share an output are at one switch.
        let mut switches: Vec<(BTreeSet<PortId>, Vec<&Sender>)> = Vec::new();
        for sender in senders.values() {
            let is_here = |(outputs, _): &&mut (BTreeSet<PortId>, _)| {
                sender.outputs.keys().any(|output| outputs.contains(output))
            };
            let outputs = sender.outputs.keys().copied();
            match switches.iter_mut().find(is_here) {
                Some(switch) => {
                    switch.0.extend(outputs);
                    switch.1.push(sender);
                }
                None => switches.push((outputs.collect(), vec![sender])),
            }
        }
        let mut found = Vec::new();
        for (_, senders) in switches {
            let (full, rest): (Vec<&Sender>, Vec<&Sender>) =
                senders.into_iter().partition(|sender| sender.is_full);
            let mut lacks: BTreeMap<PortId, f64> = BTreeMap::new();
            for sender in rest.iter().chain(&full) {
                for (&output, count) in &sender.outputs {
                    let lack = lacks
                        .entry(output)
                        .or_insert_with(|| left[output].unwrap_or(0.0));
                    *lack -= sender.rate * count / sender.count;
                }
            }
            let choices: usize = full.iter().map(|sender| 1 + sender.largest.len()).product();
            if choices > MOST_CHOICES {
                continue;
            }
            let mut best = (f64::INFINITY, Vec::new());
            choose(&full, &shared, &lacks, &mut Vec::new(), &mut best);
            let chosen = full.iter().zip(best.1);
            found.extend(chosen.filter_map(|(sender, flow)| Some((flow?, sender.rate))));
        }
        found
    }
}

/// Tries all choices of the one flow that senders have, or none; keeps the one with which outputs lack least squares.
fn choose(
    senders: &[&Sender],
    shared: &BTreeSet<PortId>,
    lacks: &BTreeMap<PortId, f64>,
    chosen: &mut Vec<Option<usize>>,
    best: &mut (f64, Vec<Option<usize>>),
) {
    let Some(sender) = senders.get(chosen.len()) else {
        // Others may send what an output lacks that they share.
        let counts = |(output, lack): &(&PortId, &f64)| **lack < 0.0 || !shared.contains(*output);
        let lacks = lacks.iter().filter(counts);
        let sum = lacks.map(|(_, lack)| lack * lack).sum::<f64>();
        if sum < best.0 {
            *best = (sum, chosen.clone());
        }
        return;
    };
    chosen.push(None);
    choose(senders, shared, lacks, chosen, best);
    chosen.pop();
    for (&output, &flow) in &sender.largest {
        let mut changed = lacks.clone();
        for (&other, count) in &sender.outputs {
            if let Some(lack) = changed.get_mut(&other) {
                *lack += sender.rate * count / sender.count;
            }
        }
        if let Some(lack) = changed.get_mut(&output) {
            *lack -= sender.rate;
        }
        chosen.push(Some(flow));
        choose(senders, shared, &changed, chosen, best);
        chosen.pop();
    }
}

struct Sender {
    rate: f64,
    count: f64,
    outputs: BTreeMap<PortId, f64>,
    /// By output, the largest of its flows through a root.
    largest: BTreeMap<PortId, usize>,
    is_full: bool,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests;
