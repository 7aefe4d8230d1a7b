//! Paths over other switches: a packet goes by the tables to a switch that was drawn for it, its waypoint, and from
//! there by the tables to its destination.
//!
//! The source's switch decides, and the packet carries the number of its waypoint until it is there. Every switch
//! draws from a stream of its own. What an estimate reads of other switches is their state at this instant, so such a run
//! uses one thread.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;
use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::PortId;
use silvan_fabric::Fabric;
use silvan_fabric::routing::{PathChoice, Waypoints};

use crate::engine::Engine;
use crate::events::Head;
use crate::packet::Packet;
use crate::plane::{NO_ROUTE, Plane};
use crate::records::{Element, Next, Sender};
use crate::routing::CHOOSE;
use crate::table::Table;
use crate::variant::EngineVariant;
use crate::workload::Workload;

/// Paths over waypoints, and who chooses them.
#[derive(Clone, Debug)]
pub(crate) struct Detours {
    choice: PathChoice,
    /// The forwarding tables, with the same indices as those of the plane.
    tables: Table<u8>,
    /// Element that each host is cabled to.
    leaves: Vec<u32>,
    /// Hosts that stand for waypoints, group by group, and where each group begins.
    waypoints: Vec<u32>,
    starts: Vec<u32>,
    /// Group and stream of random numbers of each element.
    groups: Vec<u32>,
    streams: Vec<SplitMix64>,
}

impl Detours {
    /// The port of a forwarding table's entry.
    pub fn table_port(&self, entry: usize) -> u8 {
        self.tables[entry]
    }

    /// Sets the port of a forwarding table's entry.
    pub fn set_table_port(&mut self, entry: usize, local: u8) {
        self.tables[entry] = local;
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.tables.capacity()
            + (self.leaves.capacity() + self.waypoints.capacity()) * 4
            + (self.starts.capacity() + self.groups.capacity()) * 4
            + self.streams.capacity() * size_of::<SplitMix64>()
    }

    /// A random waypoint for packets between two elements; `None` if there is none. All are as likely with `valiant`;
    /// otherwise those in the groups of the two are none, because paths over them are no way around a cable between the groups.
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

/// A path to a host as an estimate sees it.
#[derive(Clone, Copy, Default)]
struct Estimate {
    /// Cables between switches.
    cables: u64,
    /// Bytes ahead at the first output, and at all outputs.
    first: u64,
    all: u64,
}

impl Estimate {
    /// This path, then another.
    fn then(self, other: Self) -> Self {
        Self {
            cables: self.cables + other.cables,
            first: if self.cables == 0 {
                other.first
            } else {
                self.first
            },
            all: self.all + other.all,
        }
    }
}

impl Plane {
    /// Compiles the paths over waypoints: from now on every table entry with a port is a choice.
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
        let mut seeds = SplitMix64::seed_from_u64(seed);
        let hosts = waypoints.hosts().iter();
        self.routing.detours = Some(Box::new(Detours {
            choice,
            tables: self.tables.clone(),
            leaves: fabric.host_ids().map(leaf).collect(),
            waypoints: hosts.map(|host| host.index() as u32).collect(),
            starts: waypoints.starts().to_vec(),
            groups,
            streams: (0..self.elements.len())
                .map(|_| SplitMix64::seed_from_u64(seeds.next_u64()))
                .collect(),
        }));
        for entry in self.tables.iter_mut().filter(|entry| **entry != NO_ROUTE) {
            *entry = CHOOSE;
        }
    }

    /// Decides at the source's switch, or the next one, over which waypoint a packet goes. The path by the tables may
    /// have so many bytes more ahead of it.
    fn decide(&mut self, now: u64, element: u32, packet: &mut Packet, bias: u64) {
        let Some(mut detours) = self.routing.detours.take() else {
            return;
        };
        let destination = packet.destination();
        let end = detours.leaves[destination as usize];
        let drawn = if element == end {
            None
        } else {
            detours.draw(element, end)
        };
        if let Some(waypoint) = drawn {
            let over = detours.waypoints[waypoint as usize];
            let is_longer = detours.choice == PathChoice::Valiant || {
                let minimal = self.estimate(&detours, now, element, destination);
                let middle = detours.leaves[over as usize];
                let detour = self
                    .estimate(&detours, now, element, over)
                    .then(self.estimate(&detours, now, middle, destination));
                match detours.choice {
                    PathChoice::UgalG => detour.all < minimal.all,
                    _ => {
                        let behind = minimal.first.saturating_sub(bias);
                        detour.first * detour.cables < behind * minimal.cables
                    }
                }
            };
            if is_longer {
                packet.set_waypoint(waypoint as u16 + 1);
            }
        }
        self.routing.detours = Some(detours);
    }

    /// The path from a switch to that of a host by the tables.
    fn estimate(&self, detours: &Detours, now: u64, mut element: u32, host: u32) -> Estimate {
        let mut path = Estimate::default();
        let end = detours.leaves[host as usize];
        while element != end {
            let Element { base, table, .. } = self.elements[element as usize];
            let local = detours.tables[(table + host) as usize];
            let output = base + u32::from(local);
            let link = &self.outs[self.link_port(PortId::new(output as usize))];
            if local == NO_ROUTE || link.kind != Next::Input || path.cables > 64 {
                // No route, or a loop of tables that change: the packet will find out.
                return path;
            }
            let lanes = 0..self.vls;
            let ahead = lanes.map(|vl| self.bytes_ahead(now, output, vl)).sum();
            if path.cables == 0 {
                path.first = ahead;
            }
            path.all += ahead;
            path.cables += 1;
            element = link.next_element;
        }
        path
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// The output of a head where packets go over waypoints; `None` if it goes nowhere now.
    pub(crate) fn output_towards_waypoint(&mut self, head: &mut Head) -> Option<u32> {
        let plane = &mut self.plane;
        let input = &plane.ins[head.port as usize];
        let (element, from_host) = (input.element, input.sender == Sender::Host);
        let Element { base, table, .. } = plane.elements[element as usize];
        let packet = &mut head.packet;
        if from_host {
            plane.decide(head.time, element, packet, 0);
        } else if plane.decides_again(head.port, packet) {
            // The queues of cables between groups are long under uniform load, too: what a buffer can hold is no reason to
            // turn away from one.
            let bias = plane.input_blocks as u64 * 64;
            plane.decide(head.time, element, packet, bias);
        }
        let detours = plane.routing.detours.as_deref()?;
        let mut towards = packet.destination();
        let waypoint = packet.waypoint();
        if waypoint != 0 {
            let over = detours.waypoints[usize::from(waypoint) - 1];
            // Its path can lead past its destination.
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
        if local == NO_ROUTE || plane.is_closed(output as usize) {
            self.unroutable(*head);
            return None;
        }
        Some(output)
    }
}

impl Plane {
    /// Whether a packet without a waypoint has come to the second switch of its path, which decides again.
    fn decides_again(&self, port: u32, packet: &Packet) -> bool {
        let detours = self.routing.detours.as_deref();
        detours.is_some_and(|detours| detours.choice == PathChoice::Par)
            && packet.waypoint() == 0
            && self.routing.is_second_switch(port, packet)
    }
}
