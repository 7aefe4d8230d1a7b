//! Sets of flows that explain loads and waiting ports, found by exchanges of two senders' receivers.
//!
//! Worse sets are accepted ever more seldom (Kirkpatrick, Gelatt, Vecchi: Optimization by simulated annealing, Science
//! 220, 1983). At the end sets are drawn about as often as they are likely.

use std::collections::{HashMap, HashSet};

use silvan_core::{HostId, IdVec, PortId};
use silvan_fabric::Fabric;

use crate::evidence::Waiting;
use crate::observation::data_rate;

/// Loads within this part of their link are equal: sweeps read ports at different instants.
const SAME: f64 = 0.002;
/// Load below this part of a link counts as none.
const IDLE: f64 = 0.003;
/// Rates below this part of a link are what is left of an exchange.
const NONE: f64 = 0.0005;
/// Cost, the negative logarithm of likelihood: of a flow, of a wait without a reason, of an unexplained load of a link.
const FLOW: f64 = 3.0;
const REASON: f64 = 8.0;
const UNEXPLAINED: f64 = 100.0;
/// First and last divisor of costs, and the part of the exchanges from which the last one holds.
const HOT: f64 = 4.0;
const COLD: f64 = 0.7;
const COOLED: f64 = 0.7;
const DRAWN: usize = 4;
const MOST_EXCHANGES: usize = 4000;
/// Links that an exchange changes, about.
const LINKS: usize = 16;

/// Flows with their rates in bit/s, by number.
pub(crate) type Set = Vec<(usize, f64)>;

pub(crate) struct Candidates<'a> {
    paths: &'a dyn Fn(usize) -> &'a [PortId],
    ends: Vec<(HostId, HostId)>,
    pairs: HashMap<(HostId, HostId), usize>,
    links: IdVec<PortId, f64>,
    switches: Vec<Switch>,
    owner: IdVec<PortId, usize>,
    /// Start of a port's row in its switch's table, and an output's column.
    row: IdVec<PortId, usize>,
    column: IdVec<PortId, usize>,
    cells: usize,
}

/// A table of a switch: a row for each input, a column for each output.
struct Switch {
    start: usize,
    columns: usize,
    waiting: Vec<usize>,
    busy: Vec<usize>,
}

pub(crate) struct State {
    rates: Vec<f64>,
    active: Vec<usize>,
    place: Vec<usize>,
    left: IdVec<PortId, Option<f64>>,
    turns: Vec<f64>,
    /// Missing parts of the reasons of each switch's waiting ports.
    lacks: Vec<f64>,
    unexplained: f64,
}

impl<'a> Candidates<'a> {
    pub fn new(
        fabric: &Fabric,
        waiting: &Waiting,
        ends: impl Iterator<Item = (HostId, HostId)>,
        open: &[bool],
        paths: &'a dyn Fn(usize) -> &'a [PortId],
    ) -> Self {
        let ports = fabric.ports.len();
        let ends: Vec<(HostId, HostId)> = ends.collect();
        let possible = ends
            .iter()
            .zip(open)
            .enumerate()
            .filter(|(_, (_, open))| **open);
        let link = |port| data_rate(fabric, port).map_or(1.0, |rate| rate.bits_per_sec() as f64);
        let mut all = Self {
            paths,
            pairs: possible.map(|(flow, (&pair, _))| (pair, flow)).collect(),
            ends,
            links: fabric.ports.ids().map(link).collect(),
            switches: Vec::new(),
            owner: IdVec::filled(0, ports),
            row: IdVec::filled(0, ports),
            column: IdVec::filled(0, ports),
            cells: 0,
        };
        let nodes = fabric.nodes.iter();
        for node in nodes.filter(|node| node.as_switch().is_some()) {
            let ports: Vec<PortId> = node.ports().collect();
            let mut switch = Switch {
                start: all.cells,
                columns: ports.len(),
                waiting: Vec::new(),
                busy: Vec::new(),
            };
            for (number, &port) in ports.iter().enumerate() {
                all.owner[port] = all.switches.len();
                all.column[port] = number;
                if waiting.busy[port] {
                    switch.busy.push(number);
                }
                let Some(input) = fabric.ports[port].peer else {
                    continue;
                };
                all.row[input] = all.cells + number * ports.len();
                if waiting.held_up[input] {
                    switch.waiting.push(all.row[input]);
                }
            }
            all.cells += ports.len() * ports.len();
            all.switches.push(switch);
        }
        all
    }

    pub fn loads(&self) -> usize {
        let ends = self.pairs.values().flat_map(|&flow| self.ports_of(flow));
        ends.collect::<HashSet<PortId>>().len().saturating_sub(1)
    }

    pub fn exchanges(&self, steps: usize) -> usize {
        let cells = |switch: &Switch| switch.busy.len() * (switch.columns + switch.waiting.len());
        let all: usize = self.switches.iter().map(cells).sum();
        let mean = 1 + all / self.switches.len().max(1);
        (steps / (LINKS * mean)).min(MOST_EXCHANGES)
    }

    fn ports_of(&self, flow: usize) -> [PortId; 2] {
        let path = (self.paths)(flow);
        [path[0], path[path.len() - 1]]
    }

    /// The guessed flows, and others that explain what hosts send and receive; equal loads come first.
    pub fn start(
        &self,
        left: IdVec<PortId, Option<f64>>,
        certain: &[(usize, f64)],
        guessed: &[(usize, f64)],
        random: &mut dyn FnMut() -> u64,
    ) -> State {
        let unexplained = left.iter_enumerated();
        let unexplained =
            unexplained.filter_map(|(port, left)| Some(self.unexplained(port, (*left)?)));
        let mut state = State {
            unexplained: unexplained.sum(),
            rates: vec![0.0; self.ends.len()],
            active: Vec::new(),
            place: vec![0; self.ends.len()],
            left,
            turns: vec![0.0; self.cells],
            lacks: Vec::new(),
        };
        for &(flow, rate) in certain {
            for pair in (self.paths)(flow).windows(2) {
                state.turns[self.row[pair[0]] + self.column[pair[1]]] += rate;
            }
        }
        for &(flow, rate) in guessed {
            self.add(&mut state, flow, rate);
        }
        let mut flows: Vec<usize> = self.pairs.values().copied().collect();
        flows.sort_unstable();
        for last in (1..flows.len()).rev() {
            flows.swap(last, (random() % (last as u64 + 1)) as usize);
        }
        for only_equal in [true, false] {
            for &flow in &flows {
                let [first, last] = self.ports_of(flow);
                let (Some(sent), Some(received)) = (state.left[first], state.left[last]) else {
                    continue;
                };
                let is_equal = (sent - received).abs() <= SAME * self.links[first];
                let rate = sent.min(received);
                if rate > IDLE * self.links[first] && (is_equal || !only_equal) {
                    self.add(&mut state, flow, rate);
                }
            }
        }
        let lacks = (0..self.switches.len()).map(|switch| self.lack(&state, switch));
        state.lacks = lacks.collect();
        state
    }

    fn unexplained(&self, port: PortId, left: f64) -> f64 {
        (left.abs() / self.links[port] - SAME).max(0.0)
    }

    fn add(&self, state: &mut State, flow: usize, change: f64) {
        let path = (self.paths)(flow);
        for &port in path {
            if let Some(left) = &mut state.left[port] {
                let before = self.unexplained(port, *left);
                *left -= change;
                state.unexplained += self.unexplained(port, *left) - before;
            }
        }
        for pair in path.windows(2) {
            state.turns[self.row[pair[0]] + self.column[pair[1]]] += change;
        }
        let was_active = state.rates[flow] > 0.0;
        let rate = state.rates[flow] + change;
        let is_active = rate > NONE * self.links[path[0]];
        state.rates[flow] = if is_active { rate } else { 0.0 };
        if is_active && !was_active {
            state.place[flow] = state.active.len();
            state.active.push(flow);
        } else if was_active && !is_active {
            let place = state.place[flow];
            state.active.swap_remove(place);
            if let Some(&moved) = state.active.get(place) {
                state.place[moved] = place;
            }
        }
    }

    /// Missing parts of the reasons of a switch's waits. A reason is a busy output of which no other input gets more.
    fn lack(&self, state: &State, number: usize) -> f64 {
        let switch = &self.switches[number];
        let mut lacks = vec![1.0_f64; switch.waiting.len()];
        if lacks.is_empty() {
            return 0.0;
        }
        let end = switch.start + switch.columns * switch.columns;
        for &output in &switch.busy {
            let turn = |row: usize| state.turns[row + output];
            let rows = (switch.start..end).step_by(switch.columns);
            let largest = rows.map(turn).fold(1.0, f64::max);
            for (lack, &row) in lacks.iter_mut().zip(&switch.waiting) {
                *lack = lack.min(1.0 - turn(row) / largest);
            }
        }
        lacks.iter().sum()
    }

    fn cost(&self, state: &State) -> f64 {
        FLOW * state.active.len() as f64
            + REASON * state.lacks.iter().sum::<f64>()
            + UNEXPLAINED * state.unexplained
    }

    pub fn search(
        &self,
        mut state: State,
        exchanges: usize,
        random: &mut dyn FnMut() -> u64,
    ) -> Vec<(f64, Set)> {
        let mut cost = self.cost(&state);
        let mut drawn = Vec::new();
        let cooled = (COOLED * exchanges as f64) as usize;
        let pause = (exchanges - cooled).div_ceil(DRAWN).max(1);
        for step in 0..exchanges {
            if let Some(changes) = self.draw(&state, random) {
                let part = (step as f64 / cooled.max(1) as f64).min(1.0);
                let heat = HOT * (COLD / HOT).powf(part);
                let before = self.apply(&mut state, changes);
                let next = self.cost(&state);
                let odds = (random() >> 11) as f64 / (1_u64 << 53) as f64;
                if odds < ((cost - next) / heat).exp() {
                    cost = next;
                } else {
                    for (flow, change) in changes.into_iter().rev() {
                        self.add(&mut state, flow, -change);
                    }
                    for (switch, lack) in before {
                        state.lacks[switch] = lack;
                    }
                }
            }
            if step >= cooled && (step - cooled) % pause == pause - 1 {
                drawn.push((cost, state.set()));
            }
        }
        if drawn.is_empty() {
            drawn.push((cost, state.set()));
        }
        drawn
    }

    /// Rates of two flows and of those between their ends the other way round, half of the time an existing one.
    fn draw(&self, state: &State, random: &mut dyn FnMut() -> u64) -> Option<[(usize, f64); 4]> {
        let count = state.active.len();
        let mut number = || (random() % count.max(1) as u64) as usize;
        let first = *state.active.get(number())?;
        let (source, destination) = self.ends[first];
        let is_there = |flow: &&usize| {
            let (other, to) = self.ends[**flow];
            let known = self.pairs.get(&(other, destination));
            other != source
                && to != destination
                && known.is_some_and(|&flow| state.rates[flow] > 0.0)
        };
        let start = number();
        let second = match number() % 2 {
            0 => state.active.get(start),
            _ => {
                let (before, after) = state.active.split_at(start);
                after.iter().chain(before).find(is_there)
            }
        };
        let second = *second?;
        let (other, to) = self.ends[second];
        if other == source || to == destination {
            return None;
        }
        let third = *self.pairs.get(&(source, to))?;
        let fourth = *self.pairs.get(&(other, destination))?;
        let (one, two) = (state.rates[first], state.rates[second]);
        let link = self.links[self.ports_of(first)[0]].min(self.links[self.ports_of(second)[0]]);
        let (one, two) = match (one - two).abs() <= SAME * link {
            true => (one, two),
            false => (one.min(two), one.min(two)),
        };
        Some([(first, -one), (second, -two), (third, one), (fourth, two)])
    }

    /// Returns the former lack of the switches on the way.
    fn apply(&self, state: &mut State, changes: [(usize, f64); 4]) -> Vec<(usize, f64)> {
        let mut before: Vec<(usize, f64)> = Vec::new();
        for (flow, change) in changes {
            self.add(state, flow, change);
            for &port in &(self.paths)(flow)[1..] {
                let switch = self.owner[port];
                if before.iter().all(|&(known, _)| known != switch) {
                    before.push((switch, state.lacks[switch]));
                }
            }
        }
        for &(switch, _) in &before {
            state.lacks[switch] = self.lack(state, switch);
        }
        before
    }
}

impl State {
    fn set(&self) -> Set {
        let rate = |&flow: &usize| (flow, self.rates[flow]);
        self.active.iter().map(rate).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests;
