//! Links: their state machine, and how it reaches data plane and subnet manager.
//!
//! ```text
//!            cable there, both ends enabled                  Set Armed          Set Active
//!   Down ─────────────────────────────────────▶ Initialize ───────────▶ Armed ────────────▶ Active
//!    ▲                                              │                      │                  │
//!    └──────────────────────────────────────────────┴──────────────────────┴──────────────────┘
//!                     cable cut, an end disabled, or Set Down (then trained anew)
//! ```
//!
//! Data leaves a port that is Active, for a neighbour that is Armed or Active; for everything else
//! a switch discards it and a host keeps it. Management packets pass from Initialize on.

use silvan_interface::OnWire;
use silvan_mad::smp::{PhysicalState, PortState};
use silvan_units::{NodeId, PortId};

use super::Subnet;

impl Subnet {
    /// Cuts or restores the cable in a port. Gives `false` if there is none.
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

    /// Makes a link that is up ready for data, as a subnet manager does.
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

    /// Whether the link of a port can be up.
    fn can_link(&self, port: PortId) -> bool {
        let Some(peer) = self.peer(port) else {
            return false;
        };
        [port, peer].iter().all(|&end| {
            let record = self.record(end);
            !record.cut && !record.disabled && !self.is_off(self.place(end).0)
        })
    }

    /// Brings the link of a port down, or up to Initialize, as its ends now allow.
    pub fn train(&mut self, port: PortId) {
        let up = self.can_link(port);
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
            self.tell_change(self.place(end).0);
        }
        for end in ends.into_iter().flatten() {
            self.sync_port(end, OnWire::Lost);
        }
    }

    /// A subnet manager has told a port to go down: its link is lost and comes up again at once.
    pub fn retrain(&mut self, port: PortId) {
        let ends = [Some(port), self.peer(port)];
        if !self.record(port).is_linked() {
            return;
        }
        for end in ends.into_iter().flatten() {
            self.record_mut(end).link_downed += 1;
            self.record_mut(end).info.port_state = PortState::INITIALIZE;
            // The other end sees a link that goes down by itself.
            if end != port {
                self.tell_change(self.place(end).0);
            }
        }
        for end in ends.into_iter().flatten() {
            self.sync_port(end, OnWire::Lost);
        }
    }

    /// Lets data through a port or not, as its state and that of its neighbour say.
    pub fn sync_port(&mut self, port: PortId, on_wire: OnWire) {
        let Some(peer) = self.peer(port) else {
            return;
        };
        let open = self.record(port).sends() && self.record(peer).receives();
        self.plane.set_open(port, open, on_wire);
    }

    /// The same for the port at the other end, as this one can receive now.
    pub fn sync_neighbour(&mut self, port: PortId) {
        if let Some(peer) = self.peer(port) {
            self.sync_port(peer, OnWire::Arrive);
        }
    }

    /// A switch notes that a port has changed, and has a trap to send.
    fn tell_change(&mut self, node: NodeId) {
        if let Some(switch) = &mut self.state_mut(node).switch {
            switch.info.port_state_change = true;
            if !self.traps.contains(&node) {
                self.traps.push(node);
            }
        }
    }
}
