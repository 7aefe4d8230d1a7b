//! Topology of a live subnet: nodes, cables, forwarding tables, rates and settings.

use std::collections::{BTreeMap, BTreeSet};

use silvan_core::{Guid, IdVec, Length, Lid, NodeId, PortId, PortNumber, Rate};
use silvan_fabric::import::{ImportedCable, ImportedFabric, ImportedNode, NodeKind};
use silvan_fabric::{Fabric, ForwardingTables, LinkKind, Node, Speed, Width};
use silvan_mad::congestion::{
    CaCongestionEntry, CaCongestionSetting, CongestionKeyInfo, ManagementAttribute,
    SwitchCongestionSetting,
};
use silvan_mad::performance::PerformanceAttribute;
use silvan_mad::smp::{
    LinearForwardingTable, PortInfo, SmInfo, link_speed, link_speed_ext, link_speed_ext2,
    link_width,
};
use silvan_mad::{Body, ClassPortInfo, CounterCapabilities, Method};
use silvan_subnet::client::{Answer, Client, Failure, Query};
use silvan_subnet::discovery::{LocalPort, Peer, Subnet, SwitchPort, discover};
use silvan_subnet::tables::{HostLids, SwitchTable, host_lids, read_tables};
use silvan_subnet::transport::{Transport, TransportError};

use crate::dumps::assumed;
use crate::observation::data_rate;
use crate::survey::{AdapterControl, ManagerState, SurveyError, SwitchControl};
use crate::tick::TickFacts;

/// A subnet without its counters.
#[derive(Clone, Debug)]
pub struct LiveSubnet {
    /// Switches, hosts and cables.
    pub fabric: Fabric,
    /// Forwarding tables; without entries where they could not be read.
    pub tables: ForwardingTables,
    /// Shortest paths, if no table could be read.
    pub assumed: ForwardingTables,
    /// The rate that both ends of each link support.
    pub capable: IdVec<PortId, Option<Rate>>,
    /// Fewest data lanes in use at a switch port; `None` if no port states them.
    pub data_vls: Option<u8>,
    /// The subnet manager.
    pub manager: ManagerState,
    /// By switch name.
    pub control: BTreeMap<String, SwitchControl>,
    /// By host name, if a switch marks packets.
    pub adapters: BTreeMap<String, Result<BTreeSet<AdapterControl>, Failure>>,
    /// True if discovery got all answers, without contradictions.
    pub is_complete: bool,
    /// Switches whose forwarding table could not be read in full.
    pub without_table: Vec<String>,
    /// Counters of each node.
    pub counters: IdVec<NodeId, CounterCapabilities>,
    /// Facts that determine the tick of PortXmitWait of each port.
    pub tick_facts: TickFacts,
    /// Data rate of the local port's link.
    pub local_rate: Option<Rate>,
}

impl LiveSubnet {
    /// Reads a subnet. Errors: [`SurveyError`].
    pub fn read<T: Transport>(client: &mut Client<T>) -> Result<Self, SurveyError> {
        let subnet = discover(client)?.ok_or(SurveyError::NoAnswer)?;
        let blocks = read_tables(client, &subnet)?;
        let lids = host_lids(client, &subnet, &blocks)?;
        let imported = import(&subnet, Some(&lids));
        let link = LinkKind::new(Width::X4, Speed::Sdr, Length::ZERO);
        let fabric = imported.build(link)?;
        let tables = tables(&fabric, &blocks);
        let is_read = |guid: &Guid| blocks.get(guid).is_some_and(|table| table.is_complete);
        let without_table: Vec<String> = subnet
            .switches
            .iter()
            .filter(|switch| !is_read(&switch.guid))
            .map(|switch| switch.name.clone())
            .collect();
        let has_tables = without_table.len() < fabric.switch_count();
        // Each would cost all retries before the first sweep, and is found again by each reading.
        client.remember_silent(match without_table.is_empty() {
            true => unreachable(&fabric, &tables, subnet.local.lid),
            false => BTreeSet::new(),
        });
        let control = control(client, &fabric)?;
        let adapters = match is_marking(&control) {
            true => adapters(client, &fabric)?,
            false => BTreeMap::new(),
        };
        Ok(Self {
            assumed: assumed(&fabric, Some(&tables).filter(|_| has_tables))?,
            capable: capable(client, &fabric, &subnet)?,
            data_vls: data_vls(&subnet),
            manager: manager_state(client, subnet.local.sm_lid)?,
            control,
            adapters,
            is_complete: subnet.is_complete && lids.len() == subnet.adapters.len(),
            counters: counters(client, &fabric)?,
            tick_facts: TickFacts::read(client, &fabric, &imported)?,
            local_rate: rate_of(&subnet.local),
            without_table,
            tables,
            fabric,
        })
    }

    /// The lowest rate among the local port's link and cables between switches.
    pub fn slowest_shared_rate(&self) -> Option<Rate> {
        let fabric = &self.fabric;
        let between = fabric
            .switch_ids()
            .flat_map(|switch| fabric.switch(switch).ports());
        let between = between.filter(|&port| fabric.peer_switch(port).is_some());
        let rates = between.filter_map(|port| data_rate(fabric, port));
        rates.chain(self.local_rate).min()
    }

    /// The forwarding tables, if at least one could be read.
    pub fn known_tables(&self) -> Option<&ForwardingTables> {
        let is_known = self.without_table.len() < self.fabric.switch_count();
        Some(&self.tables).filter(|_| is_known)
    }

    /// Switches that mark packets.
    pub fn marking(&self) -> Vec<NodeId> {
        let is_marking = |name: &str| {
            let setting = self.control.get(name).map(|control| control.setting);
            matches!(setting, Some(Ok(setting)) if setting.threshold.get() > 0)
        };
        let nodes = self.fabric.nodes.iter_enumerated();
        nodes
            .filter(|(_, node)| node.as_switch().is_some() && is_marking(&node.name))
            .map(|(id, _)| id)
            .collect()
    }

    /// Returns true if nodes, LIDs and cables equal those of another reading.
    pub fn is_same_fabric(&self, other: &Self) -> bool {
        let (own, other) = (&self.fabric, &other.fabric);
        own.nodes.iter().eq(other.nodes.iter()) && own.ports.iter().eq(other.ports.iter())
    }
}

pub(crate) fn rate_of(local: &LocalPort) -> Option<Rate> {
    Rate::from_bits_per_sec(local.bytes_per_second * 8)
}

/// Hosts have no LIDs, as their switches' tables were not read.
pub(crate) fn import_without_tables(subnet: &Subnet) -> ImportedFabric {
    import(subnet, None)
}

/// Hosts without LID cannot be asked and are left out if LIDs are given.
fn import(subnet: &Subnet, lids: Option<&HostLids>) -> ImportedFabric {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let switch_names = subnet.switches.iter().map(|switch| switch.name.as_str());
    let hosts_cabled: BTreeMap<Guid, usize> =
        subnet
            .adapters
            .iter()
            .fold(BTreeMap::new(), |mut counts, adapter| {
                *counts.entry(adapter.guid).or_default() += 1;
                counts
            });
    for name in switch_names.chain(hosts_cabled.keys().map(|guid| host_name(subnet, *guid))) {
        *names.entry(name).or_default() += 1;
    }
    let unique = |name: &str, guid: Guid| match (name, names.get(name)) {
        ("", _) => guid.to_string(),
        (_, Some(1)) => name.to_owned(),
        _ => format!("{name} ({guid})"),
    };
    let mut fabric = ImportedFabric::default();
    let mut positions = BTreeMap::new();
    for switch in &subnet.switches {
        positions.insert(switch.guid, fabric.nodes.len());
        fabric.nodes.push(ImportedNode {
            name: unique(&switch.name, switch.guid),
            kind: NodeKind::Switch,
            device: Some(switch.device),
            line: 0,
            switch_ports: Some(switch.ports.len() as u8),
            guid: Some(switch.guid),
            port_guid: None,
            lid: switch.lid,
            adapter_port: None,
        });
    }
    let adapters: BTreeMap<_, _> = subnet
        .adapters
        .iter()
        .map(|adapter| (adapter.switch, adapter))
        .collect();
    let mut seen = BTreeSet::new();
    for switch in &subnet.switches {
        for (port, number) in switch.ports.iter().zip(1_u8..) {
            if !port.is_active {
                continue;
            }
            let from = (positions[&switch.guid], number);
            let to = match port.peer {
                Peer::Unknown => continue,
                Peer::Switch(guid, far) if (switch.guid, number) < (guid, far.as_u8()) => {
                    match positions.get(&guid) {
                        Some(&position) => (position, far.as_u8()),
                        None => continue,
                    }
                }
                Peer::Switch(..) => continue,
                Peer::Host(_) => {
                    let Some(adapter) = adapters.get(&(switch.guid, PortNumber::new(number)))
                    else {
                        continue;
                    };
                    if !seen.insert((adapter.guid, adapter.number)) {
                        continue;
                    }
                    let lid = lids.and_then(|lids| lids.get(&adapter.switch).copied());
                    if lids.is_some() && lid.is_none() {
                        continue;
                    }
                    let description = host_name(subnet, adapter.guid);
                    let name = unique(description, adapter.guid);
                    let is_one = hosts_cabled.get(&adapter.guid) == Some(&1);
                    fabric.nodes.push(ImportedNode {
                        name: match is_one {
                            true => name,
                            false => format!("{name}/P{}", adapter.number),
                        },
                        kind: NodeKind::of_adapter(
                            adapter.is_router,
                            description,
                            Some(adapter.device),
                        ),
                        device: Some(adapter.device),
                        line: 0,
                        switch_ports: None,
                        guid: Some(adapter.guid),
                        port_guid: Some(adapter.port_guid),
                        lid,
                        adapter_port: Some(adapter.number),
                    });
                    (fabric.nodes.len() - 1, 1)
                }
            };
            let (width, speed) = active(port);
            fabric.cables.push(ImportedCable {
                from,
                to,
                width: Some(width),
                speed: Some(speed),
            });
        }
    }
    fabric
}

fn host_name(subnet: &Subnet, guid: Guid) -> &str {
    subnet.hosts.get(&guid).map_or("", String::as_str)
}

fn tables(fabric: &Fabric, blocks: &BTreeMap<Guid, SwitchTable>) -> ForwardingTables {
    let mut tables = ForwardingTables::new(fabric);
    let max = fabric.max_lid();
    for switch in fabric.switch_ids() {
        let node = fabric.switch(switch);
        let Some(table) = blocks.get(&node.guid) else {
            continue;
        };
        for (lid, &port) in (0..=max.as_u16()).map(Lid::new).zip(&table.ports) {
            let is_route =
                port != LinearForwardingTable::NO_ROUTE && port.as_u8() <= node.port_count;
            if is_route && lid.is_unicast() && lid != node.lid {
                tables.set(switch, lid, Some(port));
            }
        }
    }
    tables
}

/// LIDs that requests of the local port, or their answers, do not reach.
fn unreachable(fabric: &Fabric, tables: &ForwardingTables, local: Lid) -> BTreeSet<Lid> {
    let Some(own) = fabric.node_by_lid(local) else {
        return BTreeSet::new();
    };
    let is_cut =
        |node: NodeId| !leads(fabric, tables, own, node) || !leads(fabric, tables, node, own);
    let nodes = fabric.nodes.iter_enumerated();
    nodes
        .filter(|&(id, _)| is_cut(id))
        .map(|(_, node)| node.lid)
        .collect()
}

fn leads(fabric: &Fabric, tables: &ForwardingTables, from: NodeId, to: NodeId) -> bool {
    let lid = fabric.nodes[to].lid;
    let mut at = from;
    // A path with more hops than nodes is a loop.
    for _ in 0..=fabric.nodes.len() {
        if at == to {
            return true;
        }
        let node = &fabric.nodes[at];
        let out = match node.as_switch() {
            Some(switch) => tables
                .get(switch, lid)
                .and_then(|number| fabric.port(at, number)),
            None => Some(node.first_port).filter(|_| at == from),
        };
        match out.and_then(|out| fabric.ports[out].peer) {
            Some(peer) => at = fabric.ports[peer].node,
            None => return false,
        }
    }
    false
}

const WIDTHS: [(u8, Width); 5] = [
    (link_width::X12, Width::X12),
    (link_width::X8, Width::X8),
    (link_width::X4, Width::X4),
    (link_width::X2, Width::X2),
    (link_width::X1, Width::X1),
];

fn width(bits: u8) -> Width {
    let mut known = WIDTHS.iter();
    known
        .find(|(bit, _)| bits & bit != 0)
        .map_or(Width::X1, |(_, width)| *width)
}

fn speed(bits: u32, extended: u32, extended2: u32) -> Speed {
    const SPEEDS: [(usize, u32, Speed); 8] = [
        (2, link_speed_ext2::XDR, Speed::Xdr),
        (1, link_speed_ext::NDR, Speed::Ndr),
        (1, link_speed_ext::HDR, Speed::Hdr),
        (1, link_speed_ext::EDR, Speed::Edr),
        (1, link_speed_ext::FDR, Speed::Fdr),
        (0, link_speed::QDR, Speed::Qdr),
        (0, link_speed::DDR, Speed::Ddr),
        (0, link_speed::SDR, Speed::Sdr),
    ];
    let fields = [bits, extended, extended2];
    let mut known = SPEEDS.iter();
    known
        .find(|(field, bit, _)| fields[*field] & bit != 0)
        .map_or(Speed::Sdr, |(_, _, speed)| *speed)
}

fn active(port: &SwitchPort) -> (Width, Speed) {
    let info = &port.info;
    let speed = speed(
        info.link_speed_active.get(),
        info.link_speed_ext_active.get(),
        info.link_speed_ext2_active.get(),
    );
    (width(info.link_width_active), speed)
}

/// The fewest data lanes in use at an Active switch port (OperationalVLs, IBA 14.2.5.6).
fn data_vls(subnet: &Subnet) -> Option<u8> {
    let ports = subnet.switches.iter().flat_map(|switch| &switch.ports);
    let active = ports.filter(|port| port.is_active);
    let lanes = active.filter_map(|port| match port.info.operational_vls.get() {
        code @ 1..=4 => Some(1 << (code - 1)),
        5 => Some(15),
        _ => None,
    });
    lanes.min()
}

fn capable<T: Transport>(
    client: &mut Client<T>,
    fabric: &Fabric,
    subnet: &Subnet,
) -> Result<IdVec<PortId, Option<Rate>>, TransportError> {
    let mut infos: IdVec<PortId, Option<PortInfo>> = IdVec::filled(None, fabric.ports.len());
    let switches: BTreeMap<Guid, _> = subnet
        .switches
        .iter()
        .map(|switch| (switch.guid, switch))
        .collect();
    for switch in fabric.switch_ids() {
        let node = fabric.switch(switch);
        let Some(found) = switches.get(&node.guid) else {
            continue;
        };
        for (port, found) in node.ports().zip(&found.ports) {
            infos[port] = Some(found.info);
        }
    }
    let queries: Vec<Query> = (0..)
        .zip(fabric.host_ids())
        .map(|(number, host)| {
            let node = fabric.host(host);
            let port = node.adapter_port.map_or(0, |port| u32::from(port.as_u8()));
            Query::subnet_get(number, node.lid, PortInfo::default(), port)
        })
        .collect();
    for (host, result) in fabric.host_ids().zip(client.ask(&queries)?) {
        infos[fabric.host_port(host)] = result.ok().map(|answer| PortInfo::parse(&answer.data()));
    }
    let capable = |port: PortId| {
        let peer = fabric.ports[port].peer?;
        let (a, b) = (infos[port]?, infos[peer]?);
        let widths = a.link_width_supported & b.link_width_supported;
        let speed = speed(
            a.link_speed_supported.get() & b.link_speed_supported.get(),
            a.link_speed_ext_supported.get() & b.link_speed_ext_supported.get(),
            a.link_speed_ext2_supported.get() & b.link_speed_ext2_supported.get(),
        );
        (widths != 0).then(|| LinkKind::new(width(widths), speed, Length::ZERO).data_rate())
    };
    Ok(fabric.ports.ids().map(capable).collect())
}

fn counters<T: Transport>(
    client: &mut Client<T>,
    fabric: &Fabric,
) -> Result<IdVec<NodeId, CounterCapabilities>, TransportError> {
    let query = |(id, node): (NodeId, &Node)| {
        let info = PerformanceAttribute::from(ClassPortInfo::default());
        let number = id.index() as u32;
        Query::new(number, node.lid, Method::GET, Body::Performance(info), 0)
    };
    let queries: Vec<Query> = fabric.nodes.iter_enumerated().map(query).collect();
    let counters = |answer: Answer| (&ClassPortInfo::parse(&answer.data())).into();
    let answers = client.ask(&queries)?.into_iter();
    Ok(answers
        .map(|result| result.map_or(CounterCapabilities::UNKNOWN, counters))
        .collect())
}

fn manager_state<T: Transport>(
    client: &mut Client<T>,
    lid: Lid,
) -> Result<ManagerState, TransportError> {
    if !lid.is_unicast() {
        return Ok(ManagerState::Unknown);
    }
    let answer = client.query_one(Query::subnet_get(0, lid, SmInfo::default(), 0))?;
    Ok(match answer {
        Ok(answer) => ManagerState::Answers(lid, SmInfo::parse(&answer.data()).state),
        Err(_) => ManagerState::Silent(lid),
    })
}

fn is_marking(control: &BTreeMap<String, SwitchControl>) -> bool {
    let marks = |control: &SwitchControl| {
        let setting = control.setting;
        setting.is_ok_and(|setting| setting.threshold.get() > 0)
    };
    control.values().any(marks)
}

fn congestion_get(node: u32, lid: Lid, attribute: ManagementAttribute) -> Query {
    Query::congestion(node, lid, Method::GET, 0, attribute, 0)
}

fn adapters<T: Transport>(
    client: &mut Client<T>,
    fabric: &Fabric,
) -> Result<BTreeMap<String, Result<BTreeSet<AdapterControl>, Failure>>, TransportError> {
    let hosts = || (0..).zip(fabric.host_ids());
    let queries: Vec<Query> = hosts()
        .map(|(number, host)| {
            let lid = fabric.host(host).lid;
            congestion_get(number, lid, CaCongestionSetting::default().into())
        })
        .collect();
    let read = |answer: Answer| {
        let setting = CaCongestionSetting::parse(&answer.data());
        let entry = |entry: &CaCongestionEntry| AdapterControl {
            ccti_timer: entry.ccti_timer,
            ccti_increase: entry.ccti_increase,
            ccti_min: entry.ccti_min,
        };
        setting.entries.iter().map(entry).collect()
    };
    let results = hosts().zip(client.ask(&queries)?);
    Ok(results
        .map(|((_, host), result)| (fabric.host(host).name.clone(), result.map(read)))
        .collect())
}

fn control<T: Transport>(
    client: &mut Client<T>,
    fabric: &Fabric,
) -> Result<BTreeMap<String, SwitchControl>, TransportError> {
    let get = congestion_get;
    let mut queries = Vec::new();
    for (number, switch) in (0..).zip(fabric.switch_ids()) {
        let lid = fabric.switch(switch).lid;
        queries.push(get(number, lid, SwitchCongestionSetting::default().into()));
        queries.push(get(number, lid, CongestionKeyInfo::default().into()));
    }
    let results = client.ask(&queries)?;
    let switches = fabric.switch_ids().zip(results.chunks_exact(2));
    Ok(switches
        .map(|(switch, results)| {
            let setting = results[0].map(|answer| SwitchCongestionSetting::parse(&answer.data()));
            let key = results[1].map(|answer| CongestionKeyInfo::parse(&answer.data()));
            let control = SwitchControl {
                setting,
                is_protected: key.ok().map(|key| key.protect || key.cc_key != 0),
            };
            (fabric.switch(switch).name.clone(), control)
        })
        .collect())
}
