//! The subnet as management sees it: state of nodes and ports, and of links. Settings for data go to the data plane.

mod adapters;
mod devices;
mod links;
mod locations;
mod node;
mod power;
mod routes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use silvan_core::{HostId, Lid, NodeId, PortId, PortNumber, SwitchId, Time};
use silvan_fabric::Fabric;
use silvan_model::Engines;
use silvan_scenario::Scenario;
use silvan_workload::programs::Driver;

use crate::agent::congestion::{AdapterSetting, SwitchSetting};
use crate::error::EmulatorError;
use crate::plane::{DataPlane, with_control};
use adapters::Adapters;
use locations::Locations;

pub use devices::{SwitchDevices, UnknownDevices};
pub(crate) use node::{NodeState, PortRecord, SwitchRecord};
pub(crate) use routes::Needs;

/// Initial state of a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Configured by the scenario, as if a subnet manager had run and left: LIDs, tables, active ports.
    Configured,
    /// Without LIDs and tables; ports wait for a subnet manager.
    Blank,
}

/// State of a fabric before the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Configured, or as after power-on.
    pub start: Start,
    /// The devices that its switches show.
    pub devices: SwitchDevices,
}

impl From<Start> for Setup {
    fn from(start: Start) -> Self {
        Self {
            start,
            devices: SwitchDevices::default(),
        }
    }
}

/// Hosts whose paths are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sources {
    /// The first host of every switch, for all its hosts.
    Switches,
    /// Every host.
    Hosts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub node: NodeId,
    pub port: PortNumber,
}

#[derive(Debug)]
pub(crate) struct Subnet {
    pub fabric: Arc<Fabric>,
    pub nodes: Vec<NodeState>,
    pub plane: DataPlane,
    adapters: Adapters,
    locations: Locations,
    scenario: Scenario,
    off: BTreeMap<NodeId, Duration>,
    lids: Vec<Option<NodeId>>,
    host_lids: Vec<Option<HostId>>,
    has_tables: bool,
    /// Incremented by changes of routes to hosts, from 1.
    pub routes_version: u64,
    pub came_up: Vec<PortId>,
    /// Hosts with RDMA programs that must register again.
    pub reregistered: BTreeSet<NodeId>,
    pub traps: Vec<NodeId>,
    pub switch_settings: Vec<SwitchSetting>,
    pub adapter_settings: BTreeMap<HostId, AdapterSetting>,
    pub first_switch_settings: Vec<SwitchSetting>,
    pub start: Start,
    devices: SwitchDevices,
    pub uptime: Duration,
    ways_changed: Option<Duration>,
    forgot_paths: Vec<Duration>,
}

impl Subnet {
    pub fn new(
        engines: &dyn Engines,
        scenario: &Scenario,
        setup: impl Into<Setup>,
        driver: Option<Box<dyn Driver>>,
    ) -> Result<Self, EmulatorError> {
        let Setup { start, devices } = setup.into();
        scenario.fabric().require_lids()?;
        let scenario = with_control(scenario)?;
        let configured = start == Start::Configured;
        let plane = DataPlane::new(engines, &scenario, configured, driver)?;
        let fabric = Arc::clone(scenario.fabric());
        let adapters = Adapters::of(&fabric);
        let nodes = fabric
            .nodes
            .ids()
            .map(|node| NodeState::new(&scenario, node, (&adapters, devices), configured))
            .collect();
        let mut subnet = Self {
            switch_settings: Vec::new(),
            adapter_settings: BTreeMap::new(),
            first_switch_settings: Vec::new(),
            off: BTreeMap::new(),
            lids: vec![None; usize::from(u16::MAX) + 1],
            host_lids: vec![None; usize::from(u16::MAX) + 1],
            has_tables: configured,
            routes_version: 1,
            came_up: Vec::new(),
            reregistered: BTreeSet::new(),
            traps: Vec::new(),
            start,
            devices,
            uptime: Duration::ZERO,
            ways_changed: None,
            forgot_paths: vec![Duration::ZERO; fabric.host_count()],
            locations: Locations::of(&fabric),
            adapters,
            fabric,
            nodes,
            plane,
            scenario,
        };
        for host in subnet.fabric.host_ids() {
            let lanes = subnet.plane.engine.host_sl_to_vl(host);
            let node = subnet.fabric.node_of_host(host);
            let own = usize::from(subnet.own_port(node).as_u8());
            subnet.state_mut(node).ports[own].sl_to_vl = lanes;
        }
        subnet.switch_settings = (0..subnet.fabric.switch_count())
            .map(|switch| SwitchSetting::of(&subnet, SwitchId::new(switch)))
            .collect();
        subnet.first_switch_settings = subnet.switch_settings.clone();
        if configured {
            for node in subnet.fabric.nodes.ids() {
                let lid = subnet.fabric.nodes[node].lid.index();
                subnet.lids[lid] = Some(node);
                subnet.host_lids[lid] = subnet.fabric.nodes[node].as_host();
            }
        } else {
            for port in subnet.fabric.ports.ids() {
                subnet.sync_port(port, silvan_model::OnWire::Arrive);
            }
        }
        Ok(subnet)
    }

    pub fn now(&self) -> Time {
        self.plane.now()
    }

    /// The driver may stop earlier. Agents adopt settings that the scenario changes.
    pub fn step(&mut self, end: Time) -> Result<(), EmulatorError> {
        for change in self.plane.step(end)? {
            self.read_setting(&change);
        }
        Ok(())
    }

    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    pub fn state(&self, node: NodeId) -> &NodeState {
        &self.nodes[node.index()]
    }

    pub fn state_mut(&mut self, node: NodeId) -> &mut NodeState {
        &mut self.nodes[node.index()]
    }

    pub fn record(&self, port: PortId) -> &PortRecord {
        let (node, number) = self.location(port);
        &self.state(node).ports[usize::from(number.as_u8())]
    }

    pub fn record_mut(&mut self, port: PortId) -> &mut PortRecord {
        let (node, number) = self.location(port);
        &mut self.state_mut(node).ports[usize::from(number.as_u8())]
    }

    pub fn own(&self, node: NodeId) -> &PortRecord {
        let number = self.own_port(node);
        &self.state(node).ports[usize::from(number.as_u8())]
    }

    pub fn lid(&self, node: NodeId) -> Lid {
        self.own(node).info.lid
    }

    pub fn senders(&self, sources: Sources) -> BTreeMap<SwitchId, Vec<HostId>> {
        let mut senders: BTreeMap<SwitchId, Vec<HostId>> = BTreeMap::new();
        for host in self.fabric.host_ids() {
            let hosts = senders.entry(self.fabric.host_attachment(host).0);
            let hosts = hosts.or_default();
            if hosts.is_empty() || sources == Sources::Hosts {
                hosts.push(host);
            }
        }
        senders
    }

    pub fn host_lid(&self, host: HostId) -> Lid {
        self.lid(self.fabric.node_of_host(host))
    }

    pub fn node_of_lid(&self, lid: Lid) -> Option<NodeId> {
        self.lids[lid.index()]
    }

    pub fn move_lid(&mut self, node: NodeId, before: (Lid, u32)) {
        let info = &self.own(node).info;
        let after = (info.lid, info.lmc.get());
        if after == before {
            return;
        }
        let range = |(lid, lmc): (Lid, u32)| {
            let first = lid.index();
            let last = (first + (1usize << lmc)).min(usize::from(u16::MAX) + 1);
            first..if first == 0 { 0 } else { last }
        };
        for lid in range(before) {
            if self.lids[lid] == Some(node) {
                self.lids[lid] = None;
                self.host_lids[lid] = None;
            }
        }
        for lid in range(after) {
            self.lids[lid] = Some(node);
            self.host_lids[lid] = None;
        }
        if let Some(host) = self.fabric.nodes[node].as_host() {
            if !range(after).is_empty() {
                self.host_lids[after.0.index()] = Some(host);
            }
            self.route_host(host);
        }
    }

    /// Names longer than a client can send match by prefix.
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        const LONGEST: usize = 31;
        self.fabric.node_by_name(name).or_else(|| {
            let mut nodes = self.fabric.nodes.iter_enumerated();
            let cut =
                |node: &str| node.len() > LONGEST && node.as_bytes()[..LONGEST] == *name.as_bytes();
            nodes.find(|(_, node)| cut(&node.name)).map(|(id, _)| id)
        })
    }
}
