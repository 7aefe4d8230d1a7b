//! Ports among which a switch chooses for each packet, in a group for each leaf; the table's port wins ties.

use std::ops::Range;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;
use silvan_cc::hooks::{Candidate, SourceControl, SwitchControl};
use silvan_core::{PortId, PortNumber};
use silvan_fabric::routing::{Alternatives, PathChoice};
use silvan_fabric::{Fabric, Node};
use silvan_model::InvariantError;

use crate::engine::Engine;
use crate::events::Head;
use crate::feedback::flow_of;
use crate::packet::{NONE, Packet};
use crate::plane::{NO_ROUTE, Plane, time};
use crate::records::{Element, Next};
use crate::routing::CHOOSE;
use crate::variant::EngineVariant;
use crate::workload::Workload;

#[derive(Clone, Debug, Default)]
pub(crate) struct Choices {
    by_switch: ChoiceTables,
    rows: Vec<u32>,
    columns: Vec<u32>,
    leaves: usize,
    members: Vec<u8>,
    alternatives: Vec<bool>,
    pub policy: PathChoice,
    turns: Vec<u8>,
    /// Random numbers of each element; the first one is its salt.
    streams: Vec<SplitMix64>,
    salts: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ChoiceTables {
    groups: Vec<Group>,
    ports: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Group {
    first: u32,
    count: u8,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    group: Group,
    default_port: u8,
}

impl Choices {
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns true if a switch may choose this output; for `NONE`, if it may choose at all.
    #[inline(always)]
    pub fn is_alternative(&self, output: u32) -> bool {
        let alternative = self.alternatives.get(output as usize);
        alternative.copied().unwrap_or(output == NONE)
    }

    pub fn set_alternatives(&mut self, alternatives: Vec<bool>) {
        self.alternatives = alternatives;
    }

    pub fn table_port(&self, entry: usize) -> u8 {
        self.by_switch.ports[entry]
    }

    pub fn take_tables(&mut self) -> ChoiceTables {
        std::mem::take(&mut self.by_switch)
    }

    pub fn keep_tables(&mut self, all: &ChoiceTables, element: usize, entries: Range<usize>) {
        if self.is_empty() {
            return;
        }
        self.by_switch.ports.extend_from_slice(&all.ports[entries]);
        let row = &mut self.rows[element];
        let groups = &all.groups[*row as usize..][..self.leaves];
        *row = self.by_switch.groups.len() as u32;
        self.by_switch.groups.extend_from_slice(groups);
    }

    fn members(&self, group: Group) -> &[u8] {
        &self.members[group.first as usize..][..usize::from(group.count)]
    }

    pub fn bytes(&self) -> usize {
        self.by_switch.groups.capacity() * size_of::<Group>()
            + self.by_switch.ports.capacity()
            + self.rows.capacity() * 4
            + self.columns.capacity() * 4
            + self.members.capacity()
            + self.alternatives.capacity()
            + self.turns.capacity()
            + self.salts.capacity() * 8
            + self.streams.capacity() * size_of::<SplitMix64>()
    }
}

impl Plane {
    pub(crate) fn add_choices(
        &mut self,
        fabric: &Fabric,
        alternatives: &Alternatives,
        policy: PathChoice,
        seed: u64,
    ) {
        let mut seeds = SplitMix64::seed_from_u64(seed);
        let salts: Vec<_> = (0..self.elements.len()).map(|_| seeds.next_u64()).collect();
        let streams = salts.iter().map(|salt| SplitMix64::seed_from_u64(*salt));
        let leaves = alternatives.leaves();
        let mut choices = Choices {
            by_switch: ChoiceTables {
                groups: vec![Group::default(); leaves * fabric.switch_count()],
                ports: vec![NO_ROUTE; self.tables.len()],
            },
            rows: vec![NONE; self.elements.len()],
            columns: alternatives.columns().to_vec(),
            leaves,
            policy,
            streams: streams.collect(),
            salts,
            alternatives: vec![false; self.outs.len()],
            ..Choices::default()
        };
        let mut known: Vec<(&[PortNumber], Group)> = Vec::new();
        for (index, switch) in fabric.switch_ids().enumerate() {
            known.clear();
            let node = fabric.switch(switch);
            let element = fabric.node_of_switch(switch).index();
            let Element { base, table, .. } = self.elements[element];
            let row = index * leaves;
            choices.rows[element] = row as u32;
            for column in 0..leaves {
                let ports = alternatives.of_leaf(switch, column);
                if ports.is_empty() {
                    continue;
                }
                let found = known.iter().find(|(group, _)| *group == ports);
                let group = found.map(|(_, group)| *group).unwrap_or_else(|| {
                    let first = choices.members.len() as u32;
                    let members = ports.iter().map(|port| local(node, *port));
                    choices.members.extend(members);
                    let count = ports.len() as u8;
                    let group = Group { first, count };
                    known.push((ports, group));
                    group
                });
                choices.by_switch.groups[row + column] = group;
                for port in ports {
                    let output = base + u32::from(local(node, *port));
                    choices.alternatives[output as usize] = true;
                }
            }
            for (host, column) in choices.columns.iter().enumerate() {
                let entry = table as usize + host;
                let group = choices.by_switch.groups[row + *column as usize];
                if group.count > 0 && self.tables[entry] != NO_ROUTE {
                    choices.by_switch.ports[entry] = self.tables[entry];
                    self.tables[entry] = CHOOSE;
                }
            }
        }
        choices.turns = vec![0; choices.members.len()];
        self.routing.choices = choices;
    }

    fn choice(&self, port: u32, destination: u32) -> Choice {
        let element = self.ins[port as usize].element as usize;
        let choices = &self.routing.choices;
        let group = choices.rows[element] + choices.columns[destination as usize];
        let entry = self.elements[element].table + destination;
        Choice {
            group: choices.by_switch.groups[group as usize],
            default_port: choices.by_switch.ports[entry as usize],
        }
    }

    /// The port with the fewest bytes ahead on its lane. The table's port wins ties, then the lowest port. `None` if
    /// all are closed.
    fn choose(&mut self, now: u64, base: u32, choice: Choice, vl: usize) -> Option<u8> {
        let Group { first, count } = choice.group;
        let mut best = u64::MAX;
        for place in first..first + u32::from(count) {
            let local = self.routing.choices.members[place as usize];
            let output = base + u32::from(local);
            if self.is_closed(output as usize) {
                continue;
            }
            let lane = self.lane(output, vl);
            let credits = &mut self.credits[lane];
            // The next packet need not check collected credits again.
            credits.collect_arrived(&mut self.overflow, now);
            let in_hand = credits.in_hand;
            let occupied = (self.capacity(output) - in_hand).max(0);
            let ahead = u64::from(self.waiting_bytes(lane)) + occupied as u64 * 64;
            // Bytes, preference and port form one number, which is compared without branches.
            let is_other = local != choice.default_port;
            let rank = ahead << 9 | u64::from(is_other) << 8 | u64::from(local);
            best = best.min(rank);
        }
        (best != u64::MAX).then_some(best as u8)
    }

    /// A random port without waiting packets on its lane; without one, the port with the fewest waiting bytes, on a tie
    /// the lowest. `None` if all are closed.
    fn choose_free(&mut self, element: u32, base: u32, group: Group, vl: usize) -> Option<u8> {
        let (mut free, mut best) = (0_u64, u64::MAX);
        for place in group.first..group.first + u32::from(group.count) {
            let local = self.routing.choices.members[place as usize];
            let output = base + u32::from(local);
            if self.is_closed(output as usize) {
                continue;
            }
            let waiting = u64::from(self.waiting_bytes(self.lane(output, vl)));
            free += u64::from(waiting == 0);
            best = best.min(waiting << 8 | u64::from(local));
        }
        if free < 2 {
            return (best != u64::MAX).then_some(best as u8);
        }
        let random = self.routing.choices.streams[element as usize].next_u64();
        let nth = (u128::from(random) * u128::from(free)) >> 64;
        let is_free = |local: &u8| self.waiting_bytes(self.lane(base + u32::from(*local), vl)) == 0;
        let mut members = self.open_members(base, group).filter(is_free);
        members.nth(nth as usize)
    }

    fn choose_blindly(
        &mut self,
        element: u32,
        base: u32,
        group: Group,
        packet: &Packet,
    ) -> Option<u8> {
        let open = self.open_members(base, group).count() as u64;
        if open == 0 {
            return None;
        }
        let choices = &mut self.routing.choices;
        let scaled = |random: u64| (u128::from(random) * u128::from(open)) >> 64;
        let index = match choices.policy {
            PathChoice::Ecmp => {
                let ends = u64::from(packet.destination()) << 32 | u64::from(packet.source());
                let class = u64::from(packet.class()) << 48;
                let salt = choices.salts[element as usize];
                scaled(SplitMix64::seed_from_u64(ends ^ class ^ salt).next_u64()) as usize
            }
            PathChoice::SprayRoundRobin => {
                let turn = &mut choices.turns[group.first as usize];
                let index = u64::from(*turn) % open;
                *turn = (index + 1) as u8;
                index as usize
            }
            _ => scaled(choices.streams[element as usize].next_u64()) as usize,
        };
        self.open_members(base, group).nth(index)
    }

    fn open_members(&self, base: u32, group: Group) -> impl Iterator<Item = u8> + '_ {
        let is_open = move |local: &u8| !self.is_closed((base + u32::from(*local)) as usize);
        self.routing
            .choices
            .members(group)
            .iter()
            .copied()
            .filter(is_open)
    }

    /// By how much the serialisation time of a packet at the input exceeds that of its fastest alternative.
    pub fn head_start(&self, head: &Head) -> u64 {
        let Element { base, ports, .. } = self.element_of(head.port);
        let wire = head.packet.wire();
        let upstream = self.ins[head.port as usize].upstream;
        let from = self.serialisation(&self.outs[upstream as usize], wire);
        let time = |output: u32| self.serialisation(&self.outs[output as usize], wire);
        let fastest = if self.routing.detours.is_some() {
            let cabled = |output: &u32| self.outs[*output as usize].kind != Next::Nowhere;
            (base..base + ports).filter(cabled).map(time).min()
        } else {
            let choice = self.choice(head.port, head.packet.destination());
            let members = self.routing.choices.members(choice.group).iter();
            members.map(|&local| time(base + u32::from(local))).min()
        };
        fastest.map_or(0, |to| from.saturating_sub(to))
    }
}

fn local(node: &Node, port: PortNumber) -> u8 {
    debug_assert!(
        node.port(port).is_some(),
        "alternatives are ports of their switch"
    );
    port.as_u8() - 1
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// The alternative of a head, as a local output: that of the scheme at the switch, then of the path chosen at the
    /// host, then the output with the fewest bytes ahead.
    pub(crate) fn select(&mut self, head: &Head, base: u32) -> Option<u8> {
        let vl = head.packet.vl();
        let choice = self.plane.choice(head.port, head.packet.destination());
        let Group { first, count } = choice.group;
        if F::LOOKAHEAD && self.compares_outputs() {
            self.catch_up_alternatives(head.time, base, choice.group);
        }
        if S::ACTIVE && self.needs.select_output {
            if let Some(chosen) = self.query_switch(head, base, choice.group) {
                return Some(chosen);
            }
        }
        let plane = &mut self.plane;
        let next = plane
            .extensions
            .next_on_path(&head.packet, u32::from(count));
        if let Some(next) = next {
            let local = plane.routing.choices.members[(first + next) as usize];
            if !plane.is_closed((base + u32::from(local)) as usize) {
                return Some(local);
            }
        }
        if plane.routing.choices.policy == PathChoice::Adaptive {
            return plane.choose(head.time, base, choice, vl);
        }
        let element = plane.ins[head.port as usize].element;
        if plane.routing.choices.policy == PathChoice::AdaptiveFree {
            return plane.choose_free(element, base, choice.group, vl);
        }
        plane.choose_blindly(element, base, choice.group, &head.packet)
    }

    fn compares_outputs(&self) -> bool {
        self.plane.routing.choices.policy.compares() || S::ACTIVE && self.needs.select_output
    }

    fn catch_up_alternatives(&mut self, now: u64, base: u32, group: Group) {
        for place in group.first..group.first + u32::from(group.count) {
            let local = self.plane.routing.choices.members[place as usize];
            self.catch_up(now, base + u32::from(local));
        }
    }

    fn query_switch(&mut self, head: &Head, base: u32, group: Group) -> Option<u8> {
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        let plane = &self.plane;
        let open = plane.open_members(base, group).map(|local| Candidate {
            output: PortId::new((base + u32::from(local)) as usize),
            bytes_ahead: plane.bytes_ahead(head.time, base + u32::from(local), head.packet.vl()),
        });
        candidates.extend(open);
        let flow = flow_of(&head.packet);
        let input = PortId::new(head.port as usize);
        let chosen = self
            .switch
            .select_output(time(head.time), input, flow, &candidates);
        let local = chosen.and_then(|chosen| {
            let Some(candidate) = candidates.get(chosen as usize) else {
                let candidates = candidates.len();
                let error = InvariantError::ChosenOutput { chosen, candidates };
                self.broken(head.time, error);
                return None;
            };
            Some((candidate.output.index() as u32 - base) as u8)
        });
        self.candidates = candidates;
        local
    }
}
