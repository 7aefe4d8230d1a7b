//! Links: their state machine, and how it reaches data plane and subnet manager.
//!
//! ```text
//!            cable there, both ends enabled                  Set Armed          Set Active
//!   Down ─────────────────────────────────────▶ Initialize ───────────▶ Armed ────────────▶ Active
//!    ▲                                              │                      │                  │
//!    └──────────────────────────────────────────────┴──────────────────────┴──────────────────┘
//!                     cable cut, an end disabled, or Set Down (then trained again)
//! ```
//!
//! A link that comes up runs at the highest width and speed that both ends have enabled; without one in
//! common it stays down.
//!
//! Data leaves a port that is Active, for a neighbour that is Armed or Active; for everything else
//! a switch discards it and a host keeps it. Management packets pass from Initialize on.

use silvan_core::{NodeId, PortId};
use silvan_fabric::{CableLimit, LinkKind, Width};
use silvan_mad::smp::{PhysicalState, PortState};
use silvan_model::OnWire;

use super::Subnet;
use super::node::{fastest_speed, set_active, width_bit};

impl Subnet {
    pub fn set_cable(&mut self, port: PortId, cut: bool) -> bool {
        let Some(peer) = self.peer(port) else {
            return false;
        };
        for end in [port, peer] {
            self.record_mut(end).cut = cut;
        }
        self.train(port);
        true
    }

    pub fn limit_cable(&mut self, port: PortId, limit: CableLimit) {
        for end in [Some(port), self.peer(port)].into_iter().flatten() {
            self.record_mut(end).cable_limit = limit;
        }
        self.retrain(port);
    }

    pub fn set_symbol_errors(&mut self, port: PortId, per_second: f64) {
        let now = self.now();
        let errors = &mut self.record_mut(port).symbol_errors;
        *errors = errors.at_rate(now, per_second);
    }

    pub fn activate(&mut self, port: PortId) {
        let ends = [Some(port), self.peer(port)];
        for end in ends.into_iter().flatten() {
            let info = &mut self.record_mut(end).info;
            if info.port_state == PortState::INITIALIZE {
                info.port_state = PortState::ACTIVE;
            }
        }
        self.sync_port(port, OnWire::Arrive);
        self.sync_neighbour(port);
    }

    fn negotiate(&self, port: PortId) -> Option<LinkKind> {
        let peer = self.peer(port)?;
        let cable = self.fabric.links[self.fabric.ports[port].link?].kind;
        let [a, b] = [port, peer].map(|end| &self.record(end).info);
        let widths = a.link_width_enabled & b.link_width_enabled;
        let most = self.record(port).cable_limit;
        let possible = Width::ALL.iter().rev();
        let possible = possible.filter(|width| most.width.is_none_or(|most| **width <= most));
        let mut possible = possible.filter(|width| widths & width_bit(**width) != 0);
        let speeds = (
            a.link_speed_enabled.get() & b.link_speed_enabled.get(),
            a.link_speed_ext_enabled.get() & b.link_speed_ext_enabled.get(),
            a.link_speed_ext2_enabled.get() & b.link_speed_ext2_enabled.get(),
        );
        let fastest = most.speed.map_or(cable.speed, |most| most.min(cable.speed));
        let (width, speed) = (*possible.next()?, fastest_speed(speeds, fastest)?);
        let unchanged = (width, speed) == (cable.width, cable.speed);
        let kind = LinkKind {
            width,
            speed,
            rate: cable.rate.filter(|_| unchanged),
            ..cable
        };
        let capped = CableLimit {
            rate: most.rate,
            ..CableLimit::default()
        };
        Some(capped.of(kind))
    }

    fn run_as_enabled(&mut self, port: PortId) {
        let Some(kind) = self.negotiate(port) else {
            return;
        };
        for end in [Some(port), self.peer(port)].into_iter().flatten() {
            self.keep_counters(end, |subnet| {
                set_active(&mut subnet.record_mut(end).info, kind.width, kind.speed);
            });
            self.plane.engine.set_link_rate(end, kind.data_rate());
        }
    }

    fn can_link(&self, port: PortId) -> bool {
        let Some(peer) = self.peer(port) else {
            return false;
        };
        [port, peer].iter().all(|&end| {
            let record = self.record(end);
            !record.cut && !record.disabled && !self.is_off(self.location(end).0)
        }) && self.negotiate(port).is_some()
    }

    pub fn train(&mut self, port: PortId) {
        let up = self.can_link(port);
        if up {
            self.run_as_enabled(port);
            self.came_up.push(port);
        }
        let ends = [Some(port), self.peer(port)];
        for end in ends.into_iter().flatten() {
            let record = self.record_mut(end);
            let was_up = record.is_linked();
            record.info.physical_state = match (up, record.disabled) {
                (true, _) => PhysicalState::LINK_UP,
                (false, true) => PhysicalState::DISABLED,
                (false, false) => PhysicalState::POLLING,
            };
            if was_up == up {
                continue;
            }
            record.info.port_state = if up {
                PortState::INITIALIZE
            } else {
                PortState::DOWN
            };
            record.link_downed += u64::from(!up);
            self.notify_change(self.location(end).0);
        }
        for end in ends.into_iter().flatten() {
            self.sync_port(end, OnWire::Lost);
        }
    }

    /// Sets a port down; the link comes up again if its ends share a width and a speed. Both switches report it.
    pub fn retrain(&mut self, port: PortId) {
        let ends = [Some(port), self.peer(port)];
        if !self.record(port).is_linked() {
            return;
        }
        if !self.can_link(port) {
            self.train(port);
            return;
        }
        self.run_as_enabled(port);
        self.came_up.push(port);
        for end in ends.into_iter().flatten() {
            self.record_mut(end).link_downed += 1;
            self.record_mut(end).info.port_state = PortState::INITIALIZE;
            self.notify_change(self.location(end).0);
        }
        for end in ends.into_iter().flatten() {
            self.sync_port(end, OnWire::Lost);
        }
    }

    pub fn sync_port(&mut self, port: PortId, on_wire: OnWire) {
        let Some(peer) = self.peer(port) else {
            return;
        };
        let open = self.record(port).sends() && self.record(peer).receives();
        self.plane.set_open(port, open, on_wire);
    }

    pub fn sync_neighbour(&mut self, port: PortId) {
        if let Some(peer) = self.peer(port) {
            self.sync_port(peer, OnWire::Arrive);
        }
    }

    fn notify_change(&mut self, node: NodeId) {
        if let Some(switch) = &mut self.state_mut(node).switch {
            switch.info.port_state_change = true;
            if !self.traps.contains(&node) {
                self.traps.push(node);
            }
        }
    }
}
