//! Switches that reboot: off for a while, then as shipped.

use std::time::Duration;

use silvan_core::{NodeId, SwitchId};
use silvan_mad::smp::{PhysicalState, PortState};

use super::{NodeState, Subnet};

impl Subnet {
    pub fn is_off(&self, node: NodeId) -> bool {
        self.off.contains_key(&node)
    }

    pub fn switches_off(&self) -> impl Iterator<Item = NodeId> {
        self.off.keys().copied()
    }

    pub fn power_off(&mut self, switch: SwitchId, span: Duration) -> bool {
        let node = self.fabric.node_of_switch(switch);
        if self.is_off(node) {
            return false;
        }
        self.off.insert(node, self.uptime.saturating_add(span));
        self.train_all(switch);
        true
    }

    pub fn power_on_due(&mut self) {
        let uptime = self.uptime;
        let due = self.off.iter().filter(|(_, back)| **back <= uptime);
        let due: Vec<NodeId> = due.map(|(&node, _)| node).collect();
        for node in due {
            self.off.remove(&node);
            if let Some(switch) = self.fabric.nodes[node].as_switch() {
                self.power_on(node, switch);
            }
        }
    }

    fn power_on(&mut self, node: NodeId, switch: SwitchId) {
        let info = &self.own(node).info;
        let lids = (info.lid, info.lmc.get());
        let mut fresh = NodeState::new(&self.scenario, node, (&self.adapters, self.devices), false);
        let old = self.state(node);
        for (port, old) in fresh.ports.iter_mut().zip(&old.ports).skip(1) {
            port.cut = old.cut;
            port.cable_limit = old.cable_limit;
            port.symbol_errors = old.symbol_errors;
            port.info.port_state = PortState::DOWN;
            port.info.physical_state = PhysicalState::POLLING;
        }
        fresh.ports[0].is_sm = old.ports[0].is_sm;
        let old = std::mem::replace(self.state_mut(node), fresh);
        self.move_lid(node, lids);
        let nowhere: Vec<_> = self.fabric.host_ids().map(|host| (host, None)).collect();
        self.set_routes(node, &nowhere);
        let engine = &mut self.plane.engine;
        let lanes = old.switch.map(|switch| switch.first_sl_to_vl);
        for ((input, output), lanes) in lanes.into_iter().flatten() {
            engine.set_sl_to_vl(node, input, output, &lanes);
        }
        let arbitration = &self.scenario.engine_config().vl_arbitration;
        for port in self.fabric.switch(switch).ports() {
            // Cannot fail: the engine has accepted the scenario's tables before.
            let _ = engine.set_vl_arbitration(port, arbitration);
        }
        self.reset_switch_setting(switch);
        self.clear_counters(node);
        let waiting = self.came_up.len();
        self.train_all(switch);
        self.came_up.truncate(waiting);
    }

    fn train_all(&mut self, switch: SwitchId) {
        let fabric = std::sync::Arc::clone(&self.fabric);
        for port in fabric.switch(switch).ports() {
            if fabric.ports[port].peer.is_some() {
                self.train(port);
            }
        }
    }
}
