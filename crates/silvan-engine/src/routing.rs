//! Routing beyond forwarding tables: virtual lanes that change along the path, and choices of switches.
//!
//! A packet's virtual lane is that of the buffer that holds it or that it travels to. If lanes change, a packet waits
//! in the queue of its next lane while it occupies space on its last lane, and changes its lane when it starts.

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

/// A table entry that leaves the choice to the switch. No switch has a port of this number.
pub(crate) const CHOOSE: u8 = 0xfe;

/// First entry of the lanes of an element whose lanes go up along the way.
const STEPS: u32 = NONE - 1;

/// The lane of a packet for which the scheme chooses one.
pub(crate) const BY_SCHEME: usize = usize::MAX;

/// Everything about lanes and choices; empty unless the routes have them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routing {
    /// Paths over other switches, and who chooses them.
    pub detours: Option<Box<Detours>>,
    /// Lanes that go up along the way.
    steps: Steps,
    /// True if virtual lanes change along the path.
    pub changes_lanes: bool,
    /// Number of low bits of the service level that encode the kind of path of a packet.
    path_bits: u8,
    /// First entry of `paths` for packets of each host; hosts may share a row. Empty if no service level depends on the
    /// path.
    rows: Vec<u32>,
    /// Row by row, the service level of a path for traffic of class 0, by destination. Its low
    /// `path_bits` encode the kind of path.
    paths: Vec<u8>,
    /// Entries of `paths` that are in shared rows; rows of single hosts are behind them.
    shared: u32,
    /// First entry of `lanes`, by element; `NONE` for one that keeps lanes, `STEPS` for one where they go up. Empty
    /// if no lane changes, or the scheme chooses them.
    mappings: Vec<u32>,
    /// Virtual lane by input port, output port and service level.
    lanes: Vec<u8>,
    /// Virtual lane of a host's own link by service level of its traffic, by host; empty as long as
    /// all have those of the configuration.
    host_lanes: Vec<[u8; 16]>,
    /// Ports to choose from.
    pub choices: Choices,
}

/// Lanes that go up at each switch where the kind of the cable does not increase.
#[derive(Clone, Debug, Default)]
struct Steps {
    /// By port: the kind of the cable out of it, and in the high four bits that of the cable into it.
    kinds: Vec<u8>,
    /// First port, by element.
    bases: Vec<u32>,
    /// First and last lane by service level.
    first: [u8; 16],
    last: [u8; 16],
}

impl Steps {
    /// The lane of a packet behind an output that it came to by an input.
    fn next(&self, input: u32, output: u32, packet: &Packet) -> usize {
        let entered = self.kinds[input as usize] >> 4;
        let out = self.kinds[output as usize] & 15;
        let steps = usize::from(entered != 0 && out != 0 && out <= entered);
        let last = self.last[usize::from(packet.sl_bits())];
        (packet.vl() + steps).min(usize::from(last))
    }
}

impl Routing {
    /// The service level in a packet's header, from that of its traffic.
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

    /// The service level of the traffic, from that in the header of a packet. A packet whose path had
    /// another level when it was sent may be taken for one of another class.
    #[inline(always)]
    pub fn class_of(&self, source: u32, destination: u32, service_level: u8) -> u8 {
        if service_level == self.service_level(source, destination, 0) {
            return 0;
        }
        self.class_bits(service_level)
    }

    /// The bits of a service level that encode the class.
    #[inline(always)]
    pub fn class_bits(&self, service_level: u8) -> u8 {
        service_level >> self.path_bits
    }

    /// Sets the service level of the path from one host to another, for traffic of class 0. Returns
    /// `false` if it had it already.
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

    /// The virtual lane of a packet behind a local output of the element that it came into by a
    /// local input; [`BY_SCHEME`] where the scheme chooses.
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

    /// Returns true if a packet on the first lane has come by a cable of the first kind: inside the group of its
    /// source.
    pub fn is_second_switch(&self, input: u32, packet: &Packet) -> bool {
        let first = self.steps.first[usize::from(packet.sl_bits())];
        let kind = self.steps.kinds.get(input as usize);
        kind.is_some_and(|kinds| kinds >> 4 == 1) && packet.vl() == usize::from(first)
    }

    /// Entries of all tables from service levels to lanes.
    pub fn table_entries(&self) -> usize {
        self.lanes.len()
    }

    /// Makes the scheme choose lanes, unless the routing has lanes of its own.
    pub fn leave_lanes_to_scheme(&mut self) {
        self.changes_lanes |= self.mappings.is_empty();
    }

    /// Returns true if the scheme chooses lanes at the switches.
    pub fn scheme_chooses_lanes(&self) -> bool {
        self.changes_lanes && self.mappings.is_empty()
    }

    /// Returns true if packets keep their virtual lane and their service level on the whole path.
    pub fn keep_lanes(&self) -> bool {
        !self.changes_lanes && self.rows.is_empty() && self.host_lanes.is_empty()
    }

    /// Returns true if switches choose among ports.
    pub fn has_choices(&self) -> bool {
        !self.choices.is_empty() || self.detours.is_some()
    }

    /// Heap bytes held.
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
    /// Compiles lanes and alternatives; the tables and all elements are there already.
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

    /// Virtual lanes of a host's own link, by service level of its traffic.
    #[inline(always)]
    pub fn host_lanes(&self, host: u32) -> &[u8; 16] {
        let custom = self.routing.host_lanes.get(host as usize);
        custom.unwrap_or(&self.config.sl_to_vl)
    }

    /// Sets them; `lanes` is by service level of the packet's header.
    pub fn set_host_lanes(&mut self, host: u32, lanes: &[u8; 16]) {
        if self.routing.host_lanes.is_empty() {
            self.routing.host_lanes = vec![self.config.sl_to_vl; self.hosts.len()];
        }
        let bits = self.routing.path_bits;
        self.routing.host_lanes[host as usize] =
            std::array::from_fn(|class| lanes[(class << bits) & 15]);
    }

    /// First entry of the lanes behind a pair of local ports; `None` where packets keep their lane.
    fn first_of_pair(&self, element: usize, input: u32, output: u32) -> Option<usize> {
        let first = *self.routing.mappings.get(element)?;
        let pair = input * self.elements[element].ports + output;
        (first < STEPS).then(|| first as usize + pair as usize * 16)
    }

    /// Virtual lanes behind a pair of a switch's local ports, by service level.
    pub fn pair_lanes(&self, element: usize, input: u32, output: u32) -> [u8; 16] {
        match self.first_of_pair(element, input, output) {
            Some(first) => std::array::from_fn(|sl| self.routing.lanes[first + sl]),
            None => self.config.sl_to_vl,
        }
    }

    /// Adds the mapping of the configuration to a switch that kept lanes.
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

    /// Sets the service level of a path, for traffic of class 0. All switches map it to a lane then.
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

    /// Sets them. The other pairs of a switch that kept lanes have those of the configuration then.
    pub fn set_pair_lanes(&mut self, element: usize, input: u32, output: u32, lanes: &[u8; 16]) {
        let pairs = self.elements[element].ports.pow(2);
        self.map_lanes(element, pairs);
        if let Some(first) = self.first_of_pair(element, input, output) {
            self.routing.lanes[first..first + 16].copy_from_slice(lanes);
        }
    }

    /// Returns the bytes ahead of a packet on its lane of an output.
    ///
    /// They wait here, or are in the buffer behind the cable or on their way there, by the credits.
    pub fn bytes_ahead(&self, now: u64, output: u32, vl: usize) -> u64 {
        let lane = self.lane(output, vl);
        let occupied = match self.is_under_pfc(lane) {
            // A sender knows of the buffer only whether it is paused.
            true => match self.credits_at(now, lane) {
                0 => self.room_behind(now, lane).0,
                _ => 0,
            },
            false => self.capacity(output) - self.credits_at(now, lane),
        };
        u64::from(self.waiting_bytes(lane)) + occupied.max(0) as u64 * 64
    }

    /// The local port by which a switch sends packets to a host by its table, also where switches choose.
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
    /// The output of a head whose table entry is no port: a choice, or none. `None` if the head
    /// goes nowhere now. The packet may be given a waypoint, or have reached it.
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
            // Whichever port is chosen then, it does not run dry before the tail has arrived.
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
