//! Virtual lanes that change along the path, and choices of switches.
//!
//! A packet's lane is that of its present or next buffer. If lanes change, it queues for the next lane and changes when
//! it starts.

use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::{HostId, PortNumber};
use silvan_fabric::Fabric;
use silvan_fabric::routing::{LaneSteps, PathLanes, Routes};

use crate::choices::Choices;
use crate::detours::Detours;
use crate::engine::Engine;
use crate::events::Head;
use crate::packet::{NONE, Packet};
use crate::plane::{NO_ROUTE, Plane};
use crate::records::Element;
use crate::variant::EngineVariant;
use crate::workload::Workload;
use silvan_model::EngineConfig;

/// The switch chooses. No switch has a port of this number.
pub(crate) const CHOOSE: u8 = 0xfe;

const STEPS: u32 = NONE - 1;

pub(crate) const BY_SCHEME: usize = usize::MAX;

#[derive(Clone, Debug, Default)]
pub(crate) struct Routing {
    pub detours: Option<Box<Detours>>,
    steps: Steps,
    pub changes_lanes: bool,
    /// Low bits of the service level that encode the kind of path.
    path_bits: u8,
    /// First entry of `paths` by source host; hosts may share a row. Empty if no service level depends on the path.
    rows: Vec<u32>,
    paths: Vec<u8>,
    /// Entries of `paths` in shared rows; rows of single hosts follow.
    shared: u32,
    /// First entry of `lanes`, by element; `NONE` if lanes stay, `STEPS` if they go up. Empty if no lane changes, or
    /// the scheme chooses lanes.
    mappings: Vec<u32>,
    lanes: Vec<u8>,
    host_lanes: Vec<[u8; 16]>,
    pub choices: Choices,
}

#[derive(Clone, Debug, Default)]
struct Steps {
    kinds: Vec<u8>,
    bases: Vec<u32>,
    first: [u8; 16],
    last: [u8; 16],
}

impl Steps {
    fn next(&self, input: u32, output: u32, packet: &Packet) -> usize {
        let entered = self.kinds[input as usize] >> 4;
        let out = self.kinds[output as usize] & 15;
        let steps = usize::from(entered != 0 && out != 0 && out <= entered);
        let last = self.last[usize::from(packet.sl_bits())];
        (packet.vl() + steps).min(usize::from(last))
    }
}

impl Routing {
    #[inline(always)]
    pub fn service_level(&self, source: u32, destination: u32, class: u8) -> u8 {
        if self.rows.is_empty() {
            return class;
        }
        let path = self.paths[(self.rows[source as usize] + destination) as usize];
        if class == 0 {
            return path;
        }
        class << self.path_bits | path & ((1 << self.path_bits) - 1)
    }

    /// The service level of the traffic, as far as the path's level has not changed meanwhile.
    #[inline(always)]
    pub fn class_of(&self, source: u32, destination: u32, service_level: u8) -> u8 {
        if service_level == self.service_level(source, destination, 0) {
            return 0;
        }
        self.class_bits(service_level)
    }

    #[inline(always)]
    pub fn class_bits(&self, service_level: u8) -> u8 {
        service_level >> self.path_bits
    }

    /// For traffic of class 0. Returns false if the path already has the level.
    fn set_path(&mut self, (source, destination): (u32, u32), hosts: usize, level: u8) -> bool {
        if self.service_level(source, destination, 0) == level {
            return false;
        }
        if self.rows.is_empty() {
            self.rows = vec![0; hosts];
            self.paths = vec![0; hosts];
            self.shared = hosts as u32;
        }
        let row = self.rows[source as usize];
        if row < self.shared {
            let first = row as usize;
            self.rows[source as usize] = self.paths.len() as u32;
            self.paths.extend_from_within(first..first + hosts);
        }
        let entry = self.rows[source as usize] + destination;
        self.paths[entry as usize] = level;
        true
    }

    #[inline]
    pub fn next_vl(
        &self,
        element: u32,
        ports: u32,
        input: u32,
        output: u32,
        packet: &Packet,
    ) -> usize {
        let Some(&first) = self.mappings.get(element as usize) else {
            return BY_SCHEME;
        };
        if first >= STEPS {
            return match first {
                NONE => packet.vl(),
                _ => {
                    let base = self.steps.bases[element as usize];
                    self.steps.next(base + input, base + output, packet)
                }
            };
        }
        let pair = input * ports + output;
        let entry = (first + pair * 16) as usize + usize::from(packet.sl_bits());
        usize::from(self.lanes[entry])
    }

    /// Returns true if a packet on the first lane has come by a cable of the first kind: inside its source's group.
    pub fn is_second_switch(&self, input: u32, packet: &Packet) -> bool {
        let first = self.steps.first[usize::from(packet.sl_bits())];
        let kind = self.steps.kinds.get(input as usize);
        kind.is_some_and(|kinds| kinds >> 4 == 1) && packet.vl() == usize::from(first)
    }

    pub fn table_entries(&self) -> usize {
        self.lanes.len()
    }

    pub fn leave_lanes_to_scheme(&mut self) {
        self.changes_lanes |= self.mappings.is_empty();
    }

    pub fn scheme_chooses_lanes(&self) -> bool {
        self.changes_lanes && self.mappings.is_empty()
    }

    pub fn keep_lanes(&self) -> bool {
        !self.changes_lanes && self.rows.is_empty() && self.host_lanes.is_empty()
    }

    pub fn has_choices(&self) -> bool {
        !self.choices.is_empty() || self.detours.is_some()
    }

    pub fn bytes(&self) -> usize {
        self.rows.capacity() * 4
            + self.paths.capacity()
            + self.mappings.capacity() * 4
            + self.lanes.capacity()
            + self.host_lanes.capacity() * 16
            + self.steps.kinds.capacity()
            + self.steps.bases.capacity() * 4
            + self.detours.as_ref().map_or(0, |detours| detours.bytes())
            + self.choices.bytes()
    }
}

impl Plane {
    /// The tables and all elements must exist.
    pub fn add_routing(&mut self, fabric: &Fabric, routes: Routes<'_>, config: &EngineConfig) {
        if let Some(lanes) = routes.lanes {
            self.add_lanes(fabric, lanes, config);
        }
        if let Some(steps) = routes.steps {
            self.add_steps(fabric, steps, config);
        }
        if let Some(alternatives) = routes.alternatives {
            self.add_choices(fabric, alternatives, routes.choice, config.seed);
        }
        if let Some(waypoints) = routes.waypoints {
            self.add_detours(fabric, waypoints, routes.choice, config.seed);
        }
    }

    fn add_steps(&mut self, fabric: &Fabric, steps: &LaneSteps, config: &EngineConfig) {
        let routing = &mut self.routing;
        routing.changes_lanes = steps.lanes() > 1;
        routing.mappings = vec![NONE; self.elements.len()];
        for switch in fabric.switch_ids() {
            routing.mappings[fabric.node_of_switch(switch).index()] = STEPS;
        }
        let kinds = fabric.ports.ids().map(|port| {
            let entered = fabric.ports[port].peer.map_or(0, |peer| steps.kind(peer));
            steps.kind(port) | entered << 4
        });
        routing.steps = Steps {
            kinds: kinds.collect(),
            bases: self.elements.iter().map(|element| element.base).collect(),
            first: config.sl_to_vl,
            last: config.sl_to_vl.map(|first| first + steps.lanes() - 1),
        };
    }

    fn add_lanes(&mut self, fabric: &Fabric, lanes: &PathLanes, config: &EngineConfig) {
        let routing = &mut self.routing;
        routing.changes_lanes = true;
        routing.path_bits = lanes.path_bits();
        let levels = lanes.levels();
        routing.paths = levels.levels().to_vec();
        routing.shared = routing.paths.len() as u32;
        let hosts = fabric.host_count() as u32;
        let row = |host: HostId| levels.row_of(host) * hosts;
        routing.rows = fabric.host_ids().map(row).collect();
        if let Some(vls) = lanes.host_vls() {
            routing.host_lanes = vls.iter().copied().collect();
        }
        routing.mappings = vec![NONE; self.elements.len()];
        for switch in fabric.switch_ids() {
            let element = fabric.node_of_switch(switch).index();
            routing.mappings[element] = routing.lanes.len() as u32;
            let ports = 1..=fabric.switch(switch).port_count;
            for input in ports.clone() {
                for output in ports.clone() {
                    let (input, output) = (PortNumber::new(input), PortNumber::new(output));
                    routing
                        .lanes
                        .extend(lanes.vls(switch, input, output, &config.sl_to_vl));
                }
            }
        }
    }

    #[inline(always)]
    pub fn host_lanes(&self, host: u32) -> &[u8; 16] {
        let custom = self.routing.host_lanes.get(host as usize);
        custom.unwrap_or(&self.config.sl_to_vl)
    }

    pub fn set_host_lanes(&mut self, host: u32, lanes: &[u8; 16]) {
        if self.routing.host_lanes.is_empty() {
            self.routing.host_lanes = vec![self.config.sl_to_vl; self.hosts.len()];
        }
        let bits = self.routing.path_bits;
        self.routing.host_lanes[host as usize] =
            std::array::from_fn(|class| lanes[(class << bits) & 15]);
    }

    /// `None` where packets keep their lane.
    fn first_of_pair(&self, element: usize, input: u32, output: u32) -> Option<usize> {
        let first = *self.routing.mappings.get(element)?;
        let pair = input * self.elements[element].ports + output;
        (first < STEPS).then(|| first as usize + pair as usize * 16)
    }

    pub fn pair_lanes(&self, element: usize, input: u32, output: u32) -> [u8; 16] {
        match self.first_of_pair(element, input, output) {
            Some(first) => std::array::from_fn(|sl| self.routing.lanes[first + sl]),
            None => self.config.sl_to_vl,
        }
    }

    fn map_lanes(&mut self, element: usize, pairs: u32) {
        let routing = &mut self.routing;
        if routing.scheme_chooses_lanes() {
            return;
        }
        routing.changes_lanes = true;
        routing.mappings.resize(self.elements.len(), NONE);
        if routing.mappings[element] == NONE {
            routing.mappings[element] = routing.lanes.len() as u32;
            for _ in 0..pairs {
                routing.lanes.extend(self.config.sl_to_vl);
            }
        }
    }

    /// For traffic of class 0.
    pub fn set_path_sl(&mut self, source: u32, destination: u32, level: u8) {
        let hosts = self.hosts.len();
        if !self.routing.set_path((source, destination), hosts, level) {
            return;
        }
        for element in 0..self.elements.len() {
            if self.table_range(element).is_some() {
                let pairs = self.elements[element].ports.pow(2);
                self.map_lanes(element, pairs);
            }
        }
    }

    /// Other pairs of a switch that kept lanes get the configuration's mapping.
    pub fn set_pair_lanes(&mut self, element: usize, input: u32, output: u32, lanes: &[u8; 16]) {
        let pairs = self.elements[element].ports.pow(2);
        self.map_lanes(element, pairs);
        if let Some(first) = self.first_of_pair(element, input, output) {
            self.routing.lanes[first..first + 16].copy_from_slice(lanes);
        }
    }

    /// Bytes ahead of a packet on its lane of an output: here, behind the cable or on their way.
    pub fn bytes_ahead(&self, now: u64, output: u32, vl: usize) -> u64 {
        let lane = self.lane(output, vl);
        let occupied = match self.is_under_pfc(lane) {
            // Under PFC, a sender knows only if the buffer pauses it.
            true => match self.credits_at(now, lane) {
                0 => self.room_behind(now, lane).0,
                _ => 0,
            },
            false => self.capacity(output) - self.credits_at(now, lane),
        };
        u64::from(self.waiting_bytes(lane)) + occupied.max(0) as u64 * 64
    }

    pub fn table_port(&self, switch: usize, host: u32) -> u8 {
        if let Some(rule) = &self.rule {
            let host = host as usize;
            return rule.read(rule.entry(switch, host), host).wrapping_sub(1);
        }
        let entry = (self.elements[switch].table + host) as usize;
        match (self.tables[entry], &self.routing.detours) {
            (CHOOSE, Some(detours)) => detours.table_port(entry),
            (CHOOSE, None) => self.routing.choices.table_port(entry),
            (port, _) => port,
        }
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// The output of a head whose table entry is no port; `None` if it goes nowhere now.
    #[inline(never)]
    pub(crate) fn special_output(&mut self, head: &mut Head, deferred: u8) -> Option<u32> {
        let plane = &mut self.plane;
        let Element {
            base, table, mixed, ..
        } = plane.element_of(head.port);
        let entry = (table + head.packet.destination()) as usize;
        if plane.tables[entry] == NO_ROUTE {
            self.unroutable(*head);
            return None;
        }
        if !F::LOOKAHEAD && mixed && !head.packet.is(deferred) {
            let wait = plane.head_start(head);
            if wait > 0 {
                head.packet.set(deferred);
                plane.events.push_head_at(Head {
                    time: head.time + wait,
                    ..*head
                });
                return None;
            }
        }
        if plane.routing.detours.is_some() {
            return self.output_towards_waypoint(head);
        }
        let chosen = self.select(head, base);
        if chosen.is_none() {
            self.unroutable(*head);
        }
        chosen.map(|local| base + u32::from(local))
    }
}
