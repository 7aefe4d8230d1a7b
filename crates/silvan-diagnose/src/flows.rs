//! Estimates of flows between hosts from the loads of ports, which are sums of flows along the paths.
//!
//! The estimate has the largest entropy (Vardi, "Network Tomography: Estimating Source-Destination Traffic Intensities
//! from Link Data", JASA 91(433), 1996). Hosts' notifications of marked packets restrict the flows through marking
//! ports.

mod fit;
mod spread;

use std::collections::BTreeMap;

use silvan_core::stream::SplitMix64;
use silvan_core::{HostId, IdVec, PortId};
use silvan_fabric::{Fabric, ForwardingTables};

use crate::evidence::{Marks, Waiting};
use crate::exchange::{Candidates, Set};
use crate::observation::{Observation, data_rate};
use crate::peel::Peeling;
use spread::Turns;

/// Paths that are followed at most. If there are more pairs of hosts, only those to hosts behind busy ports are.
const MOST_PATHS: usize = 8_000_000;
/// Flows that are estimated at most, and from how many on only those through busy ports are.
const MOST_FLOWS: usize = 1_000_000;
const MANY_FLOWS: usize = 100_000;
/// Steps of paths that all iterations together visit.
const WORK: usize = 30_000_000;
/// Loads below this part of a link count as none.
const IDLE: f64 = 0.002;
/// Links on a path, at most; longer ones are loops.
const MOST_HOPS: usize = 64;
/// Up to so many steps of all possible flows, sets of them are searched for.
const FEW_STEPS: usize = 100_000;
const SEARCHES: usize = 32;
/// A set is about as likely as the likeliest if its cost is larger by no more than this.
const NEARLY_AS_LIKELY: f64 = 2.0;
/// A host sends nothing past the ports that mark if so much of what it sends goes through them.
const NEARLY_ALL: f64 = 0.85;
/// Part of all loads that an additional flow must explain.
const PARSIMONY: f64 = 0.0005;
/// Weight of a port that waits without a reason, in the same unit; a partial reason reduces it.
const REASON: f64 = 0.005;
/// Results of guesses that are worse by no more than this count as well as the best.
const NEARLY_BEST: f64 = 0.002;

/// A flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// The sender.
    pub source: HostId,
    /// The receiver.
    pub destination: HostId,
    /// Data on the wire in bit/s.
    pub bits_per_s: f64,
    /// True if the loads determine the flow.
    pub is_exact: bool,
    prior: f64,
    start: u32,
    end: u32,
}

struct Peeled {
    residual: IdVec<PortId, Option<f64>>,
    open: Vec<bool>,
    known: Vec<(usize, f64)>,
    turns: Option<Turns>,
}

/// All flows with their paths.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    flows: Vec<Flow>,
    steps: Vec<PortId>,
    /// True if pairs were omitted because there are too many.
    pub is_partial: bool,
    /// Pairs whose path ends or loops.
    pub unroutable: usize,
    complete: Option<IdVec<PortId, bool>>,
    waiting: Waiting,
    /// Rates above 0 by flow, for each result that counts.
    results: Vec<Vec<(usize, f64)>>,
}

impl Flows {
    /// Estimates the flows between all hosts that send and receive; with too many pairs, those through `busy` ports.
    pub fn estimate(
        fabric: &Fabric,
        tables: &ForwardingTables,
        observation: &Observation,
        waiting: Waiting,
    ) -> Self {
        let rates = rates(fabric, observation);
        let is_idle = |port: PortId| observation.ports[port].load.is_some_and(|load| load < IDLE);
        let sources: Vec<HostId> = fabric
            .host_ids()
            .filter(|&host| !is_idle(fabric.host_port(host)))
            .collect();
        let destinations: Vec<HostId> = fabric
            .host_ids()
            .filter(|&host| !is_idle(fabric.host_attachment(host).1))
            .collect();
        let is_busy = &waiting.busy;
        let is_partial = sources.len() * destinations.len() > MOST_PATHS;
        let destinations = match is_partial {
            true => behind(fabric, tables, is_busy, &destinations),
            false => destinations,
        };
        let mut flows = Self {
            is_partial,
            ..Self::default()
        };
        let received: f64 = destinations
            .iter()
            .filter_map(|&host| rates[fabric.host_attachment(host).1])
            .sum();
        let mut path = Vec::with_capacity(MOST_HOPS);
        let mut paths = 0;
        'all: for &destination in &destinations {
            let target = rates[fabric.host_attachment(destination).1];
            for &source in &sources {
                if source == destination {
                    continue;
                }
                if paths == MOST_PATHS || flows.flows.len() == MOST_FLOWS {
                    flows.is_partial = true;
                    break 'all;
                }
                paths += 1;
                if !trace(fabric, tables, source, destination, &mut path) {
                    flows.unroutable += 1;
                    continue;
                }
                let is_needless = flows.is_partial && !path.iter().any(|&port| is_busy[port]);
                if is_needless || path.iter().any(|&port| is_idle(port)) {
                    continue;
                }
                let sent = rates[path[0]].or(target).unwrap_or(1.0);
                let prior = sent * target.or(rates[path[0]]).unwrap_or(1.0) / received.max(1.0);
                let start = flows.steps.len() as u32;
                flows.steps.extend_from_slice(&path);
                flows.flows.push(Flow {
                    source,
                    destination,
                    bits_per_s: 0.0,
                    is_exact: false,
                    prior: prior.max(1.0),
                    start,
                    end: flows.steps.len() as u32,
                });
            }
        }
        if flows.flows.len() > MANY_FLOWS {
            flows.retain(|path| path.iter().any(|&port| is_busy[port]));
        }
        if flows.is_partial {
            flows.complete = Some(is_busy.clone());
        }
        flows.waiting = waiting;
        flows.solve(fabric, &rates, None);
        flows
    }

    fn retain(&mut self, keep: impl Fn(&[PortId]) -> bool) {
        let all = std::mem::take(&mut self.flows);
        let old = std::mem::take(&mut self.steps);
        for flow in all {
            let path = &old[flow.start as usize..flow.end as usize];
            if !keep(path) {
                self.is_partial = true;
                continue;
            }
            let start = self.steps.len() as u32;
            self.steps.extend_from_slice(path);
            let end = self.steps.len() as u32;
            self.flows.push(Flow { start, end, ..flow });
        }
    }

    /// Solves for the flows again where notifications say more about those through `marking` ports.
    pub fn refine(&mut self, fabric: &Fabric, observation: &Observation, marks: &Marks<'_>) {
        self.solve(fabric, &rates(fabric, observation), Some(marks));
    }

    /// Part of all loads that the flows do not explain, or exceed.
    pub fn unexplained(&self, fabric: &Fabric, observation: &Observation) -> f64 {
        let rates = rates(fabric, observation);
        let mut sums = IdVec::filled(0.0, rates.len());
        for flow in &self.flows {
            for &port in self.path(flow) {
                sums[port] += flow.bits_per_s;
            }
        }
        let (mut unexplained, mut total) = (0.0, 1.0);
        for (port, &rate) in rates.iter_enumerated() {
            let is_complete = self.complete.as_ref().is_none_or(|complete| complete[port]);
            if let Some(rate) = rate.filter(|_| is_complete) {
                unexplained += f64::abs(rate - sums[port]);
                total += rate;
            }
        }
        unexplained / total
    }

    fn solve(
        &mut self,
        fabric: &Fabric,
        rates: &IdVec<PortId, Option<f64>>,
        marks: Option<&Marks<'_>>,
    ) {
        let (flows, steps) = (&self.flows, &self.steps);
        let path = |flow: usize| &steps[flows[flow].start as usize..flows[flow].end as usize];
        let excluded = |flow: usize| {
            let Some(marks) = marks.filter(|marks| marks.are_complete) else {
                return false;
            };
            let (source, destination) = (flows[flow].source, flows[flow].destination);
            let path = path(flow);
            let is_marked = path.iter().any(|&port| (marks.is_marking)(port));
            if is_marked && marks.seen.excludes(source, destination) {
                return true;
            }
            let ends = [
                (marks.through[flows[flow].source], path.first()),
                (marks.arriving[flows[flow].destination], path.last()),
            ];
            ends.into_iter().any(|(known, end)| {
                let all = end.and_then(|&port| rates[port]);
                match (known, is_marked) {
                    (Some(known), true) => known < marks.least,
                    (Some(known), false) => all.is_some_and(|all| known >= NEARLY_ALL * all),
                    (None, _) => false,
                }
            })
        };
        // An output that a sender waits for is on the path of its flows; a seen flow exists.
        let likelihood = |flow: usize| {
            let Flow {
                source,
                destination,
                ..
            } = flows[flow];
            let path = path(flow);
            let is_seen = marks.is_some_and(|marks| marks.seen.is_only(source, destination));
            let has_reason = !self.waiting.held_up[path[0]]
                || path[1..].iter().any(|&port| self.waiting.busy[port]);
            u32::from(is_seen) + u32::from(has_reason)
        };
        // If flows are omitted, the loads are no sums of the remaining flows.
        let can_peel = self.complete.is_none();
        let mut certain = Peeling::new(rates.clone(), flows.len(), &path, excluded);
        if can_peel {
            certain.run();
        }
        let exact: Vec<usize> = certain.known.iter().map(|(flow, _)| *flow).collect();
        let attempts = match steps.len() {
            _ if !can_peel => 1,
            0..FEW_STEPS => 128,
            _ => 2,
        };
        let total: f64 = rates.iter().flatten().sum::<f64>().max(1.0);
        let mut random = SplitMix64::new(1);
        let mut results: Vec<(f64, Peeled)> = Vec::new();
        for _ in 0..attempts {
            let mut peeling = certain.clone();
            let mut work = 0;
            while can_peel && work < WORK && peeling.guess(likelihood, &mut || random.next()) {
                peeling.run();
                work += steps.len();
            }
            let cost = peeling.unexplained() / total
                + PARSIMONY * peeling.known.len() as f64
                + REASON * self.without_reason(&peeling.known);
            let is_done = peeling.known.len() == exact.len();
            results.push((
                cost,
                Peeled {
                    residual: peeling.residual,
                    open: peeling.open,
                    known: peeling.known,
                    turns: None,
                },
            ));
            if is_done {
                break;
            }
        }
        let least = results
            .iter()
            .map(|(cost, _)| *cost)
            .fold(f64::INFINITY, f64::min);
        let mut results: Vec<Peeled> = results
            .into_iter()
            .filter(|(cost, _)| *cost <= least + NEARLY_BEST)
            .map(|(_, result)| result)
            .collect();
        if can_peel && steps.len() < FEW_STEPS && certain.open.contains(&true) {
            let ends = flows.iter().map(|flow| (flow.source, flow.destination));
            let candidates = Candidates::new(fabric, &self.waiting, ends, &certain.open, &path);
            let guesses = results.iter().map(|result| &result.known[exact.len()..]);
            let sets = self.search(&candidates, &certain, guesses.cycle(), &mut random);
            // As many flows as loads can explain any loads.
            if sets.iter().all(|set| set.len() < candidates.loads()) {
                let set = |set: Set| Peeled {
                    residual: IdVec::filled(None, rates.len()),
                    open: vec![false; flows.len()],
                    known: certain.known.iter().copied().chain(set).collect(),
                    turns: None,
                };
                results = sets.into_iter().map(set).collect();
            } else {
                let (residual, open) = (certain.residual.clone(), certain.open.clone());
                let known = certain.known.clone();
                let spread = self.clone();
                results = vec![spread.spread(&self.waiting, residual, open, known, marks)];
            }
        }
        let mut sums = vec![0.0; self.flows.len()];
        self.results.clear();
        for result in &results {
            for (flow, &open) in self.flows.iter_mut().zip(&result.open) {
                flow.bits_per_s = if open { flow.prior } else { 0.0 };
            }
            self.fit(&result.residual, &result.open, marks, result.turns.as_ref());
            for &(flow, bits_per_s) in &result.known {
                self.flows[flow].bits_per_s = bits_per_s;
            }
            for (sum, flow) in sums.iter_mut().zip(&self.flows) {
                *sum += flow.bits_per_s / results.len() as f64;
            }
            let rates = self.flows.iter().map(|flow| flow.bits_per_s).enumerate();
            self.results
                .push(rates.filter(|(_, rate)| *rate > 0.0).collect());
        }
        for (flow, sum) in self.flows.iter_mut().zip(sums) {
            flow.bits_per_s = sum;
            flow.is_exact = false;
        }
        for flow in exact {
            self.flows[flow].is_exact = true;
        }
    }

    fn search<'g>(
        &self,
        candidates: &Candidates<'_>,
        certain: &Peeling<'_>,
        guesses: impl Iterator<Item = &'g [(usize, f64)]>,
        random: &mut SplitMix64,
    ) -> Vec<Set> {
        let exchanges = candidates.exchanges(WORK / 8);
        let mut found = Vec::new();
        for guess in guesses.take(SEARCHES) {
            let mut random = || random.next();
            let left = certain.residual.clone();
            let start = candidates.start(left, &certain.known, guess, &mut random);
            found.extend(candidates.search(start, exchanges, &mut random));
        }
        let costs = found.iter().map(|(cost, _)| *cost);
        let least = costs.fold(f64::INFINITY, f64::min);
        let likely = found
            .into_iter()
            .filter(|(cost, _)| *cost <= least + NEARLY_AS_LIKELY);
        likely.map(|(_, set)| set).collect()
    }

    /// Missing part of waiting ports' reasons. Switches serve inputs in turn, so an input with packets waits for an
    /// output that other inputs delay, too, and of which none gets more.
    fn without_reason(&self, known: &[(usize, f64)]) -> f64 {
        let mut turns: BTreeMap<(PortId, PortId), f64> = BTreeMap::new();
        for &(flow, bits_per_s) in known {
            for pair in self.path(&self.flows[flow]).windows(2) {
                *turns.entry((pair[0], pair[1])).or_default() += bits_per_s;
            }
        }
        let mut largest: BTreeMap<PortId, f64> = BTreeMap::new();
        for (&(_, output), &turn) in &turns {
            let largest = largest.entry(output).or_default();
            *largest = largest.max(turn);
        }
        let mut lacks: BTreeMap<PortId, f64> = BTreeMap::new();
        for (&(input, output), &turn) in &turns {
            if self.waiting.held_up[input] {
                let lack = match self.waiting.busy[output] {
                    true => 1.0 - turn / largest[&output].max(1.0),
                    false => 1.0,
                };
                let least = lacks.entry(input).or_insert(1.0);
                *least = least.min(lack);
            }
        }
        lacks.values().sum()
    }

    /// All flows.
    pub fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.flows.iter()
    }

    /// Results that explain the loads about equally well: flows with their rates.
    pub fn results(&self) -> impl Iterator<Item = impl Iterator<Item = (&Flow, f64)>> {
        let flow = |&(flow, rate): &(usize, f64)| (&self.flows[flow], rate);
        self.results
            .iter()
            .map(move |result| result.iter().map(flow))
    }

    /// The ports that a flow leaves by, that of its host first.
    pub fn path(&self, flow: &Flow) -> &[PortId] {
        &self.steps[flow.start as usize..flow.end as usize]
    }
}

/// Hosts that packets through these ports go to, adjacent ones first.
fn behind(
    fabric: &Fabric,
    tables: &ForwardingTables,
    is_busy: &IdVec<PortId, bool>,
    hosts: &[HostId],
) -> Vec<HostId> {
    let ports: Vec<PortId> = fabric.ports.ids().filter(|&port| is_busy[port]).collect();
    let is_next = |host: HostId| is_busy[fabric.host_attachment(host).1];
    let is_behind = |host: HostId| {
        let lid = fabric.host(host).lid;
        ports.iter().any(|&port| {
            let port = &fabric.ports[port];
            let switch = fabric.nodes[port.node].as_switch();
            switch.is_some_and(|switch| tables.get(switch, lid) == Some(port.number))
        })
    };
    let mut behind: Vec<HostId> = hosts
        .iter()
        .copied()
        .filter(|&host| is_next(host))
        .collect();
    let rest = hosts
        .iter()
        .copied()
        .filter(|&host| !is_next(host) && is_behind(host));
    behind.extend(rest);
    behind
}

/// Returns the sent rate of each port, in bit/s.
fn rates(fabric: &Fabric, observation: &Observation) -> IdVec<PortId, Option<f64>> {
    let rate = |port: PortId| {
        let rate = data_rate(fabric, port)?.bits_per_sec() as f64;
        Some(observation.ports[port].load? * rate)
    };
    fabric.ports.ids().map(rate).collect()
}

/// Returns `false` for packets that do not arrive.
fn trace(
    fabric: &Fabric,
    tables: &ForwardingTables,
    source: HostId,
    destination: HostId,
    path: &mut Vec<PortId>,
) -> bool {
    path.clear();
    path.push(fabric.host_port(source));
    let (mut switch, _) = fabric.host_attachment(source);
    let (_, last) = fabric.host_attachment(destination);
    let lid = fabric.host(destination).lid;
    while path.len() < MOST_HOPS {
        let node = fabric.switch(switch);
        let Some(port) = tables.get(switch, lid).and_then(|number| node.port(number)) else {
            return false;
        };
        path.push(port);
        if port == last {
            return true;
        }
        match fabric.peer_switch(port) {
            Some((next, _)) => switch = next,
            None => return false,
        }
    }
    false
}
