//! A subnet as the congestion manager's sweeps show it: switch ports only, no hosts' loads and no routes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use silvan_core::counters::DATA_WORD;
use silvan_core::growth::CongestionGrowth;
use silvan_core::{Guid, IdVec, Length, NodeId, PortId, Span};
use silvan_fabric::{Fabric, FabricError, LinkKind, Speed, Width};
use silvan_subnet::discovery::Subnet;
use silvan_subnet::observer::{PortKey, Round};

use crate::counters::TrafficGrowth;
use crate::logs::Logs;
use crate::map::SubnetMap;
use crate::observation::{Observation, PortLoad, data_rate};
use crate::topology::import_without_tables;

/// A managed subnet, laid out once.
#[derive(Debug)]
pub struct ManagedSubnet {
    subnet: Arc<Subnet>,
    fabric: Fabric,
    switches: BTreeMap<Guid, NodeId>,
    /// Nodes and ports. Hosts have no LIDs, as only forwarding tables show them.
    pub map: SubnetMap,
}

/// Activity of the manager, with names instead of numbers.
#[derive(Clone, Debug, Serialize)]
pub struct ManagerReport {
    /// True if the manager changes Marking_Rates.
    pub act: bool,
    /// Number of switch ports that it reads.
    pub ports: usize,
    /// Ports among them whose counters are unknown in this sweep.
    pub unknown_ports: usize,
    /// Mean seconds between two readings of a port.
    pub interval_s: f64,
    /// Ports whose Marking_Rate is low, or would be if it acted.
    pub low: Vec<LowPort>,
}

/// A port whose Marking_Rate is low.
#[derive(Clone, Debug, Serialize)]
pub struct LowPort {
    /// The port.
    pub port: String,
    /// The port at the other end of its cable.
    pub peer: String,
    /// The ports that wait for it, and the part of the time for which they do.
    pub victims: Vec<(String, Option<f64>)>,
    /// Seconds since the Marking_Rate was lowered.
    pub low_for_s: f64,
    /// Bytes that the victims' links could have carried in this time while the victims waited.
    pub victims_lost_bytes: f64,
}

impl ManagedSubnet {
    /// Lays out a subnet. Errors: [`FabricError`] if what it says of itself contradicts itself.
    pub fn new(subnet: Arc<Subnet>) -> Result<Self, FabricError> {
        let imported = import_without_tables(&subnet);
        let fabric = imported.build(LinkKind::new(Width::X4, Speed::Sdr, Length::ZERO))?;
        let unknown = IdVec::filled(None, fabric.ports.len());
        let mut map = SubnetMap::new(&fabric, None, &unknown);
        let without_lid: BTreeSet<&str> = imported
            .nodes
            .iter()
            .filter(|node| node.lid.is_none())
            .map(|node| node.name.as_str())
            .collect();
        for node in &mut map.nodes {
            if without_lid.contains(node.name.as_str()) {
                node.lid = 0;
            }
        }
        let switches = fabric.switch_ids().map(|switch| {
            let guid = fabric.switch(switch).guid;
            (guid, fabric.node_of_switch(switch))
        });
        Ok(Self {
            switches: switches.collect(),
            subnet,
            fabric,
            map,
        })
    }

    /// Returns true if a round is of this subnet.
    pub fn is_of(&self, round: &Round) -> bool {
        Arc::ptr_eq(&self.subnet, &round.subnet)
    }

    fn port(&self, (switch, number): PortKey) -> Option<PortId> {
        let node = &self.fabric.nodes[*self.switches.get(&switch)?];
        node.ports().nth(usize::from(number).checked_sub(1)?)
    }

    /// GUID and number for a port that has left the subnet.
    fn name(&self, key: PortKey) -> String {
        self.port(key).map_or_else(
            || format!("{}:{}", key.0, key.1),
            |port| self.port_name(port),
        )
    }

    fn port_name(&self, port: PortId) -> String {
        let port = &self.fabric.ports[port];
        format!("{}:{}", self.fabric.nodes[port.node].name, port.number)
    }

    /// The manager's activity and the loads as [`SubnetMap::loads`] writes them; the time scale of a real subnet is 1.
    pub fn report(&self, round: &Round, time_scale: f64) -> (ManagerReport, Vec<u8>) {
        let mut loads = IdVec::filled(PortLoad::default(), self.fabric.ports.len());
        let mut known = BTreeMap::new();
        for &(key, growth) in &round.ports {
            if let Some((port, growth)) = self.port(key).zip(growth) {
                loads[port] = self.load(port, &growth, round.tick, time_scale);
                known.insert(key, (loads[port].wait, growth.span));
            }
        }
        let spans: f64 = known.values().map(|(_, span)| span.as_secs_f64()).sum();
        let observation = Observation {
            ports: loads,
            growth: IdVec::filled(TrafficGrowth::UNREAD, self.fabric.ports.len()),
            span: Span::ZERO,
            logs: Logs::default(),
            ticks: IdVec::filled(None, self.fabric.ports.len()),
        };
        let low = round.low.iter().map(|low| LowPort {
            port: self.name(low.port),
            peer: self
                .port(low.port)
                .and_then(|port| self.fabric.ports[port].peer)
                .map_or_else(String::new, |peer| self.port_name(peer)),
            victims: low
                .victims
                .iter()
                .map(|&key| (self.name(key), known.get(&key).and_then(|(wait, _)| *wait)))
                .collect(),
            low_for_s: low.low_for.as_secs_f64(),
            victims_lost_bytes: low.victims_lost_bytes,
        });
        let report = ManagerReport {
            act: round.act,
            ports: round.ports.len(),
            unknown_ports: round.ports.len() - known.len(),
            interval_s: spans / known.len().max(1) as f64,
            low: low.collect(),
        };
        (report, self.map.loads(&observation))
    }

    fn load(
        &self,
        port: PortId,
        growth: &CongestionGrowth,
        tick: Span,
        time_scale: f64,
    ) -> PortLoad {
        let seconds = growth.span.as_secs_f64();
        let part = |ticks: u64| ticks as f64 * tick.as_secs_f64() / seconds;
        let share = |words: u64| {
            let rate = data_rate(&self.fabric, port)?.bits_per_sec() as f64;
            Some((words * DATA_WORD * 8) as f64 / (rate * seconds * time_scale))
        };
        PortLoad {
            load: growth.xmit_data.and_then(share),
            wait: growth.xmit_wait.map(part),
            congested: growth.xmit_time_cong.map(part),
            ..PortLoad::default()
        }
    }
}
