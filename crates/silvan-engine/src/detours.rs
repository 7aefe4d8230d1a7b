//! Paths over a waypoint, a drawn switch, by the tables; the packet carries it.
//!
//! The source's switch decides by its queues, which are known within a lookahead window. `ugal-g` reads other switches,
//! so its runs have no windows.

mod distances;

use std::ops::Range;
use std::sync::Arc;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;
use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_fabric::Fabric;
use silvan_fabric::routing::{PathChoice, Waypoints};

use crate::engine::Engine;
use crate::events::Head;
use crate::packet::{NONE, Packet};
use crate::plane::{NO_ROUTE, Plane};
use crate::records::{Element, Next, Sender};
use crate::routing::CHOOSE;
use crate::table::Table;
use crate::variant::EngineVariant;
use crate::workload::Workload;
use distances::Distances;

#[derive(Clone, Debug)]
pub(crate) struct Detours {
    choice: PathChoice,
    tables: Table<u8>,
    leaves: Vec<u32>,
    waypoints: Vec<u32>,
    starts: Vec<u32>,
    groups: Vec<u32>,
    streams: Vec<SplitMix64>,
    /// Cables from each switch to that of each host by the tables, where a choice depends on them and no entry has changed.
    distances: Option<Arc<Distances>>,
}

impl Detours {
    pub fn table_port(&self, entry: usize) -> u8 {
        self.tables[entry]
    }

    pub fn set_table_port(&mut self, entry: usize, local: u8) {
        self.tables[entry] = local;
        self.distances = None;
    }

    pub fn take_tables(&mut self) -> Table<u8> {
        std::mem::take(&mut self.tables)
    }

    pub fn keep_tables(&mut self, all: &Table<u8>, entries: Range<usize>) {
        self.tables.extend_from_slice(&all[entries]);
    }

    pub fn is_local(&self) -> bool {
        self.choice != PathChoice::UgalG
    }

    pub fn bytes(&self) -> usize {
        self.tables.capacity()
            + (self.leaves.capacity() + self.waypoints.capacity()) * 4
            + (self.starts.capacity() + self.groups.capacity()) * 4
            + self.streams.capacity() * size_of::<SplitMix64>()
            + self
                .distances
                .as_ref()
                .map_or(0, |distances| distances.bytes())
    }

    /// Draws a random waypoint between two elements. Without `valiant`, the groups of the two have none: paths over
    /// them avoid no cable between the groups.
    fn draw(&mut self, element: u32, to: u32) -> Option<u32> {
        let group = |element: u32| {
            let group = self.groups[element as usize] as usize;
            (self.starts[group], self.starts[group + 1])
        };
        let (a, b) = match self.choice {
            PathChoice::Valiant => ((0, 0), (0, 0)),
            _ => (group(element), group(to)),
        };
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        let excluded = (low.1 - low.0) + if a == b { 0 } else { high.1 - high.0 };
        let open = self.waypoints.len() as u32 - excluded;
        if open == 0 {
            return None;
        }
        let random = self.streams[element as usize].next_u64();
        let mut index = ((u128::from(random) * u128::from(open)) >> 64) as u32;
        if index >= low.0 {
            index += low.1 - low.0;
        }
        if a != b && index >= high.0 {
            index += high.1 - high.0;
        }
        Some(index)
    }
}

#[derive(Clone, Copy)]
struct Paths {
    minimal: u64,
    detour: u64,
    straight: u32,
    aside: u32,
}

impl Plane {
    pub fn add_detours(
        &mut self,
        fabric: &Fabric,
        waypoints: &Waypoints,
        choice: PathChoice,
        seed: u64,
    ) {
        let mut groups = vec![0; self.elements.len()];
        for switch in fabric.switch_ids() {
            groups[fabric.node_of_switch(switch).index()] = waypoints.group(switch);
        }
        let leaf = |host| {
            let (switch, _) = fabric.host_attachment(host);
            fabric.node_of_switch(switch).index() as u32
        };
        let leaves: Vec<_> = fabric.host_ids().map(leaf).collect();
        let mut seeds = SplitMix64::seed_from_u64(seed);
        let hosts = waypoints.hosts().iter();
        let compares = matches!(choice, PathChoice::UgalL | PathChoice::Par);
        let distances = compares.then(|| Arc::new(Distances::new(self, &leaves)));
        self.mark_alternatives(choice, &leaves);
        self.routing.detours = Some(Box::new(Detours {
            choice,
            tables: self.tables.clone(),
            leaves,
            waypoints: hosts.map(|host| host.index() as u32).collect(),
            starts: waypoints.starts().to_vec(),
            groups,
            streams: (0..self.elements.len())
                .map(|_| SplitMix64::seed_from_u64(seeds.next_u64()))
                .collect(),
            distances,
        }));
        for entry in self.tables.iter_mut().filter(|entry| **entry != NO_ROUTE) {
            *entry = CHOOSE;
        }
    }

    fn mark_alternatives(&mut self, choice: PathChoice, leaves: &[u32]) {
        let mut decides = vec![choice == PathChoice::Par; self.elements.len()];
        for &leaf in leaves {
            decides[leaf as usize] = true;
        }
        let outs = self.outs.iter().zip(self.ins.iter());
        let is_marked = outs
            .map(|(out, port)| out.kind == Next::Input && decides[port.element as usize])
            .collect();
        self.routing.choices.set_alternatives(is_marked);
    }

    /// `None` if the head's switch decides nothing; the source's or the next one does.
    fn bias_of(&self, detours: &Detours, head: &Head) -> Option<u64> {
        let input = &self.ins[head.port as usize];
        let packet = &head.packet;
        if detours.leaves[packet.destination() as usize] == input.element {
            return None;
        }
        if input.sender == Sender::Host {
            return Some(0);
        }
        // Queues of cables between groups are long under uniform load, too: a buffer's content is no reason to turn
        // away.
        let decides_again = detours.choice == PathChoice::Par
            && packet.waypoint() == 0
            && self.routing.is_second_switch(head.port, packet);
        decides_again.then(|| self.input_capacity(head.port) as u64 * 64)
    }

    fn paths(&self, detours: &Detours, element: u32, to: u32, over: u32) -> Option<Paths> {
        let middle = detours.leaves[over as usize];
        let minimal = self.cables(detours, element, to);
        let before = self.cables(detours, element, over);
        let behind = self.cables(detours, middle, to);
        let is_whole = minimal > 0
            && (before > 0 || middle == element)
            && (behind > 0 || middle == detours.leaves[to as usize]);
        let towards = if middle == element { to } else { over };
        is_whole.then(|| Paths {
            minimal,
            detour: before + behind,
            straight: self.tabled_output(detours, element, to),
            aside: self.tabled_output(detours, element, towards),
        })
    }

    fn tabled_output(&self, detours: &Detours, element: u32, host: u32) -> u32 {
        let Element { base, table, .. } = self.elements[element as usize];
        base + u32::from(detours.tables[(table + host) as usize])
    }

    fn cables(&self, detours: &Detours, element: u32, host: u32) -> u64 {
        match &detours.distances {
            Some(distances) => distances.get(element, host),
            None => self.cables_by_tables(
                &detours.tables,
                element,
                detours.leaves[host as usize],
                host,
            ),
        }
    }

    fn bytes_on_path(&self, detours: &Detours, now: u64, mut element: u32, host: u32) -> u64 {
        let (mut all, mut cables) = (0, 0);
        let end = detours.leaves[host as usize];
        while let Some((output, next)) = self.step_towards(&detours.tables, element, host) {
            if element == end || cables > distances::MOST {
                break;
            }
            all += (0..self.vls)
                .map(|vl| self.bytes_ahead(now, output, vl))
                .sum::<u64>();
            cables += 1;
            element = next;
        }
        all
    }

    fn bytes_ahead_on_lanes(&mut self, now: u64, output: u32) -> u64 {
        let lanes = self.lane(output, 0)..self.lane(output, self.vls);
        if self.pauses.is_some() {
            let ahead = |vl| self.bytes_ahead(now, output, vl);
            return (0..self.vls).map(ahead).sum();
        }
        let capacity = self.capacity(output);
        let mut bytes = 0;
        for lane in lanes {
            let credits = &mut self.credits[lane];
            credits.collect_arrived(&mut self.overflow, now);
            let occupied = (capacity - credits.in_hand).max(0);
            bytes += u64::from(self.waiting_bytes(lane)) + occupied as u64 * 64;
        }
        bytes
    }

    fn output_on_path(&self, detours: &Detours, element: u32, packet: &mut Packet) -> Option<u32> {
        let Element { base, table, .. } = self.elements[element as usize];
        let mut towards = packet.destination();
        let waypoint = packet.waypoint();
        if waypoint != 0 {
            let over = detours.waypoints[usize::from(waypoint) - 1];
            if [over, towards]
                .map(|host| detours.leaves[host as usize])
                .contains(&element)
            {
                packet.set_waypoint(0);
            } else {
                towards = over;
            }
        }
        let local = detours.tables[(table + towards) as usize];
        let output = base + u32::from(local);
        (local != NO_ROUTE && !self.is_closed(output as usize)).then_some(output)
    }

    pub fn direct_heads(&self, heads: &mut [Head]) {
        let Some(detours) = self.routing.detours.as_deref() else {
            return;
        };
        for head in heads.iter_mut().filter(|head| head.output == NONE) {
            let element = self.ins[head.port as usize].element;
            let entry = self.elements[element as usize].table + head.packet.destination();
            if self.tables[entry as usize] == CHOOSE && self.bias_of(detours, head).is_none() {
                let output = self.output_on_path(detours, element, &mut head.packet);
                head.output = output.unwrap_or(NONE);
            }
        }
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    pub(crate) fn output_towards_waypoint(&mut self, head: &mut Head) -> Option<u32> {
        let element = self.plane.ins[head.port as usize].element;
        let detours = self.plane.routing.detours.as_deref()?;
        if let Some(bias) = self.plane.bias_of(detours, head) {
            self.decide(element, head, bias);
        }
        let detours = self.plane.routing.detours.as_deref()?;
        let output = self
            .plane
            .output_on_path(detours, element, &mut head.packet);
        if output.is_none() {
            self.unroutable(*head);
        }
        output
    }

    fn decide(&mut self, element: u32, head: &mut Head, bias: u64) {
        let plane = &mut self.plane;
        let Some(detours) = plane.routing.detours.as_deref_mut() else {
            return;
        };
        let (now, to) = (head.time, head.packet.destination());
        let Some(waypoint) = detours.draw(element, detours.leaves[to as usize]) else {
            return;
        };
        let over = detours.waypoints[waypoint as usize];
        let choice = detours.choice;
        let is_longer = match choice {
            PathChoice::Valiant => true,
            PathChoice::UgalG => plane.is_emptier_aside(now, element, to, over),
            _ => self.is_shorter_aside(now, element, (to, over), bias),
        };
        if is_longer {
            head.packet.set_waypoint(waypoint as u16 + 1);
        }
    }

    /// Compares the products of bytes ahead at the first output and number of cables (UGAL).
    fn is_shorter_aside(
        &mut self,
        now: u64,
        element: u32,
        (to, over): (u32, u32),
        bias: u64,
    ) -> bool {
        let plane = &self.plane;
        let detours = plane.routing.detours.as_deref();
        let paths = detours.and_then(|detours| plane.paths(detours, element, to, over));
        let Some(paths) =
            paths.filter(|paths| paths.straight != paths.aside || paths.detour < paths.minimal)
        else {
            return false;
        };
        if F::LOOKAHEAD {
            self.catch_up(now, paths.straight);
        }
        let straight = self.plane.bytes_ahead_on_lanes(now, paths.straight);
        let behind = straight.saturating_sub(bias) * paths.minimal;
        if behind == 0 {
            return false;
        }
        if F::LOOKAHEAD {
            self.catch_up(now, paths.aside);
        }
        self.plane.bytes_ahead_on_lanes(now, paths.aside) * paths.detour < behind
    }
}

impl Plane {
    fn is_emptier_aside(&self, now: u64, element: u32, to: u32, over: u32) -> bool {
        let Some(detours) = self.routing.detours.as_deref() else {
            return false;
        };
        let middle = detours.leaves[over as usize];
        let aside = self.bytes_on_path(detours, now, element, over)
            + self.bytes_on_path(detours, now, middle, to);
        aside < self.bytes_on_path(detours, now, element, to)
    }
}
