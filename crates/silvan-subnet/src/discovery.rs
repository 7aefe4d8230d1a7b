//! Discovery by directed routes, which need no forwarding tables. Answers are untrusted: bounded, without
//! contradictions.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use silvan_core::{DeviceId, Guid, Lid, PortNumber};
use silvan_mad::smp::{NodeDescription, NodeInfo, NodeType, PortInfo, PortState};

use crate::client::{Answer, Client, Query, RequestResult};
use crate::transport::{Transport, TransportError};

/// LIDs for more would not fit with one host each.
const MOST_SWITCHES: usize = 24_000;

/// Other end of a switch port's cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Nothing, or something that has not answered.
    Unknown,
    /// An adapter or a router, by its NodeGUID.
    Host(Guid),
    /// A port of a switch, by its NodeGUID.
    Switch(Guid, PortNumber),
}

/// A port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchPort {
    /// True if the port carries data: its state is Active.
    pub is_active: bool,
    /// Words of four bytes that its link can carry, per second.
    pub words_per_second: u64,
    /// Other end of the port's cable.
    pub peer: Peer,
    /// Answer of the port; all zeros without an answer.
    pub info: PortInfo,
}

/// A port of an adapter or router, by the switch port that it is cabled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdapterPort {
    /// NodeGUID of the switch, and the port there.
    pub switch: (Guid, PortNumber),
    /// NodeGUID of the adapter.
    pub guid: Guid,
    /// PortGUID.
    pub port_guid: Guid,
    /// Number of the port on the adapter.
    pub number: PortNumber,
    /// Vendor and device of the adapter.
    pub device: DeviceId,
    /// The node is a router.
    pub is_router: bool,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// NodeGUID.
    pub guid: Guid,
    /// LID of its management port; `None` if it has none yet, or one that another switch has, too.
    pub lid: Option<Lid>,
    /// Vendor and device.
    pub device: DeviceId,
    /// NodeDescription.
    pub name: String,
    /// Ports by which a directed route leads to it.
    pub path: Vec<u8>,
    /// Ports from number 1 on.
    pub ports: Vec<SwitchPort>,
}

/// The port that everything goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalPort {
    /// LID of the port.
    pub lid: Lid,
    /// LID of the master subnet manager, as it knows.
    pub sm_lid: Lid,
    /// True if the port carries data.
    pub is_active: bool,
    /// Data that its link carries, in bytes per second.
    pub bytes_per_second: u64,
}

/// A subnet as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// The port that everything goes through.
    pub local: LocalPort,
    /// Switches, by their GUIDs.
    pub switches: Vec<Switch>,
    /// NodeDescriptions of adapters and routers.
    pub hosts: BTreeMap<Guid, String>,
    /// Ports of adapters and routers, by the switch ports that they are cabled to.
    pub adapters: Vec<AdapterPort>,
    /// True if all queried nodes have answered, without contradictions.
    pub is_complete: bool,
}

struct Probe {
    from: Option<usize>,
    port: PortNumber,
    path: Vec<u8>,
}

struct Discovery {
    switches: Vec<Switch>,
    location: BTreeMap<Guid, usize>,
    hosts: BTreeMap<Guid, String>,
    adapters: BTreeMap<(Guid, PortNumber), AdapterPort>,
    is_complete: bool,
}

/// Queries the state of the local port. Errors: [`TransportError::Lost`].
pub fn local_port<T: Transport>(
    client: &mut Client<T>,
) -> Result<Option<LocalPort>, TransportError> {
    let Some(query) = Query::directed(0, &[], PortInfo::default(), 0) else {
        return Ok(None);
    };
    let outcome = client.query_one(query)?;
    Ok(outcome.ok().map(|answer| {
        let info = PortInfo::parse(&answer.data());
        LocalPort {
            lid: info.lid,
            sm_lid: info.master_sm_lid,
            is_active: info.port_state == PortState::ACTIVE,
            bytes_per_second: data_bytes_per_second(&info),
        }
    }))
}

/// Finds all switches and their neighbours; `None` if not even the local node answers.
pub fn discover<T: Transport>(client: &mut Client<T>) -> Result<Option<Subnet>, TransportError> {
    let Some(local) = local_port(client)? else {
        return Ok(None);
    };
    let Some(query) = Query::directed(0, &[], NodeInfo::default(), 0) else {
        return Ok(None);
    };
    let Ok(answer) = client.query_one(query)? else {
        return Ok(None);
    };
    let info = NodeInfo::parse(&answer.data());
    let mut discovery = Discovery {
        switches: Vec::new(),
        location: BTreeMap::new(),
        hosts: BTreeMap::new(),
        adapters: BTreeMap::new(),
        is_complete: true,
    };
    let mut probes = if info.node_type == NodeType::SWITCH {
        let first = discovery.add(&info, Vec::new());
        let new: Vec<usize> = first.into_iter().collect();
        discovery.inspect(client, &new)?
    } else {
        vec![Probe {
            from: None,
            port: info.local_port,
            path: vec![info.local_port.as_u8()],
        }]
    };
    while !probes.is_empty() {
        probes = discovery.follow(client, probes)?;
    }
    Ok(Some(discovery.finish(local)))
}

impl Discovery {
    fn add(&mut self, info: &NodeInfo, path: Vec<u8>) -> Option<usize> {
        if self.switches.len() >= MOST_SWITCHES {
            self.is_complete = false;
            return None;
        }
        let number = self.switches.len();
        let port = SwitchPort {
            is_active: false,
            words_per_second: 0,
            peer: Peer::Unknown,
            info: PortInfo::default(),
        };
        // Port 255 means all ports, and is none.
        let ports = usize::from(info.num_ports.min(254));
        self.switches.push(Switch {
            guid: info.node_guid,
            lid: None,
            device: info.device(),
            name: String::new(),
            path,
            ports: vec![port; ports],
        });
        self.location.insert(info.node_guid, number);
        Some(number)
    }

    fn follow<T: Transport>(
        &mut self,
        client: &mut Client<T>,
        probes: Vec<Probe>,
    ) -> Result<Vec<Probe>, TransportError> {
        let mut known = Vec::new();
        let mut queries = Vec::new();
        // Each probe may lead to a node of its own.
        for (node, probe) in (0..).zip(&probes) {
            if !self.is_open(probe) {
                continue;
            }
            match Query::directed(node, &probe.path, NodeInfo::default(), 0) {
                Some(query) => {
                    known.push(probe);
                    queries.push(query);
                }
                // The path is too long for a datagram.
                None => self.is_complete = false,
            }
        }
        let outcomes = client.ask(&queries)?;
        let mut new = Vec::new();
        let mut hosts = Vec::new();
        for (probe, outcome) in known.into_iter().zip(outcomes) {
            let Ok(answer) = outcome else {
                self.is_complete = false;
                continue;
            };
            let info = NodeInfo::parse(&answer.data());
            if info.node_type != NodeType::SWITCH {
                self.connect(probe.from, probe.port, Peer::Host(info.node_guid));
                if let Some(from) = probe.from {
                    let switch = (self.switches[from].guid, probe.port);
                    let adapter = AdapterPort {
                        switch,
                        guid: info.node_guid,
                        port_guid: info.port_guid,
                        number: info.local_port,
                        device: info.device(),
                        is_router: info.node_type == NodeType::ROUTER,
                    };
                    self.adapters.insert(switch, adapter);
                }
                if let Entry::Vacant(location) = self.hosts.entry(info.node_guid) {
                    location.insert(String::new());
                    hosts.push((info.node_guid, probe.path.clone()));
                }
                continue;
            }
            let peer = match self.location.get(&info.node_guid) {
                Some(&number) => Some(number),
                None => {
                    let number = self.add(&info, probe.path.clone());
                    new.extend(number);
                    number
                }
            };
            let Some(peer) = peer else {
                continue;
            };
            let end = Peer::Switch(info.node_guid, info.local_port);
            self.connect(probe.from, probe.port, end);
            if let Some(from) = probe.from {
                let back = Peer::Switch(self.switches[from].guid, probe.port);
                self.connect(Some(peer), info.local_port, back);
            }
        }
        self.name_hosts(client, &hosts)?;
        self.inspect(client, &new)
    }

    fn is_open(&self, probe: &Probe) -> bool {
        let Some(from) = probe.from else {
            return true;
        };
        let port = usize::from(probe.port.as_u8()) - 1;
        self.switches[from].ports[port].peer == Peer::Unknown
    }

    fn connect(&mut self, from: Option<usize>, port: PortNumber, peer: Peer) {
        let Some(from) = from else {
            return;
        };
        let location = usize::from(port.as_u8()).checked_sub(1);
        match location.and_then(|location| self.switches[from].ports.get_mut(location)) {
            Some(port) => port.peer = peer,
            // The switch has said that it lacks the port.
            None => self.is_complete = false,
        }
    }

    fn name_hosts<T: Transport>(
        &mut self,
        client: &mut Client<T>,
        hosts: &[(Guid, Vec<u8>)],
    ) -> Result<(), TransportError> {
        let queries: Vec<Query> = hosts
            .iter()
            .zip(0..)
            .filter_map(|((_, path), node)| {
                Query::directed(node, path, NodeDescription::parse(&[0; 64]), 0)
            })
            .collect();
        for ((guid, _), outcome) in hosts.iter().zip(client.ask(&queries)?) {
            if let Ok(answer) = outcome {
                self.hosts.insert(*guid, description(&answer));
            }
        }
        Ok(())
    }

    fn inspect<T: Transport>(
        &mut self,
        client: &mut Client<T>,
        new: &[usize],
    ) -> Result<Vec<Probe>, TransportError> {
        let mut queries = Vec::new();
        let mut meanings = Vec::new();
        for &number in new {
            let path = &self.switches[number].path;
            let name = NodeDescription::parse(&[0; 64]);
            let asked = Query::directed(number as u32, path, name, 0);
            let mut all = vec![(asked, None)];
            all.extend((0..=self.switches[number].ports.len()).map(|port| {
                let info = PortInfo::default();
                let asked = Query::directed(number as u32, path, info, port as u32);
                (asked, Some(port))
            }));
            for (query, port) in all {
                if let Some(query) = query {
                    queries.push(query);
                    meanings.push((number, port));
                }
            }
        }
        let outcomes = client.ask(&queries)?;
        let mut probes = Vec::new();
        for ((number, port), outcome) in meanings.into_iter().zip(outcomes) {
            probes.extend(self.learn(number, port, outcome));
        }
        Ok(probes)
    }

    fn learn(
        &mut self,
        number: usize,
        port: Option<usize>,
        outcome: RequestResult,
    ) -> Option<Probe> {
        let Ok(answer) = outcome else {
            self.is_complete = false;
            return None;
        };
        let switch = &mut self.switches[number];
        let Some(port) = port else {
            switch.name = description(&answer);
            return None;
        };
        let info = PortInfo::parse(&answer.data());
        let Some(location) = port.checked_sub(1) else {
            switch.lid = Some(info.lid).filter(|lid| lid.is_unicast());
            self.is_complete &= switch.lid.is_some();
            return None;
        };
        let record = &mut switch.ports[location];
        record.is_active = info.port_state == PortState::ACTIVE;
        record.words_per_second = words_per_second(&info);
        record.info = info;
        if info.port_state == PortState::DOWN {
            return None;
        }
        // A subnet manager is at work.
        self.is_complete &= record.is_active;
        let mut path = switch.path.clone();
        path.push(port as u8);
        Some(Probe {
            from: Some(number),
            port: PortNumber::new(port as u8),
            path,
        })
    }

    fn finish(mut self, local: LocalPort) -> Subnet {
        let ends: BTreeSet<(Guid, PortNumber, Guid, PortNumber)> = self
            .switches
            .iter()
            .flat_map(|switch| {
                let ports = switch.ports.iter().zip(1..);
                ports.filter_map(|(port, number)| match port.peer {
                    Peer::Switch(guid, far) => {
                        Some((switch.guid, PortNumber::new(number), guid, far))
                    }
                    Peer::Unknown | Peer::Host(_) => None,
                })
            })
            .collect();
        let mut owners: BTreeMap<Lid, u32> = BTreeMap::new();
        for lid in self.switches.iter().filter_map(|switch| switch.lid) {
            *owners.entry(lid).or_default() += 1;
        }
        for switch in &mut self.switches {
            for (port, number) in switch.ports.iter_mut().zip(1..) {
                if let Peer::Switch(guid, far) = port.peer {
                    if !ends.contains(&(guid, far, switch.guid, PortNumber::new(number))) {
                        port.peer = Peer::Unknown;
                        self.is_complete = false;
                    }
                }
            }
            if switch.lid.is_some_and(|lid| owners[&lid] > 1) {
                switch.lid = None;
                self.is_complete = false;
            }
        }
        self.switches.sort_by_key(|switch| switch.guid);
        Subnet {
            local,
            switches: self.switches,
            hosts: self.hosts,
            adapters: self.adapters.into_values().collect(),
            is_complete: self.is_complete,
        }
    }
}

/// Control characters would reach a terminal or a log's reader.
fn description(answer: &Answer) -> String {
    let description = NodeDescription::parse(&answer.data());
    let text = description.text();
    text.chars()
        .map(|char| if char.is_control() { '\u{fffd}' } else { char })
        .collect()
}

/// Most words of four bytes per second on a link: those of its signalling rate, which is above its data rate.
fn words_per_second(info: &PortInfo) -> u64 {
    const WORD_BITS: u64 = 32;
    info.active_link().signalling_bits_per_second() / WORD_BITS
}

/// The data that a link carries, in bytes per second: its signalling rate without the line code.
pub fn data_bytes_per_second(info: &PortInfo) -> u64 {
    info.active_link().data_bits_per_second() / 8
}
