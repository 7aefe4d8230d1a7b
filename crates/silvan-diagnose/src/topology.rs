//! What a live subnet consists of: nodes, cables, forwarding tables, what its links support, and its settings.

use std::collections::{BTreeMap, BTreeSet};

use silvan_core::{Guid, IdVec, Length, Lid, NodeId, PortId, PortNumber, Rate};
use silvan_dcms::client::{Answer, Client, Failure, Query};
use silvan_dcms::discovery::{LocalPort, Peer, Subnet, SwitchPort, discover};
use silvan_dcms::transport::{Transport, TransportError};
use silvan_fabric::import::{ImportedCable, ImportedFabric, ImportedNode};
use silvan_fabric::{Fabric, ForwardingTables, LinkKind, Node, Speed, Width};
use silvan_mad::congestion::{
    CaCongestionEntry, CaCongestionSetting, CongestionControl, CongestionKeyInfo,
    ManagementAttribute, SwitchCongestionSetting,
};
use silvan_mad::performance::PerformanceAttribute;
use silvan_mad::smp::{
    LinearForwardingTable, PortInfo, SmInfo, Smp, SmpAttribute, SmpRoute, SwitchInfo, link_speed,
    link_speed_ext, link_speed_ext2, link_width,
};
use silvan_mad::{Body, ClassPortInfo, Method, performance_capability2};

use crate::dumps::assumed;
use crate::observation::data_rate;
use crate::survey::{AdapterControl, ManagerState, SurveyError, SwitchControl};

/// LIDs in a block of a forwarding table.
const BLOCK: u16 = 64;

/// A subnet without its counters.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Switches, hosts and cables.
    pub fabric: Fabric,
    /// Forwarding tables; without entries where they could not be read.
    pub tables: ForwardingTables,
    /// Shortest paths, if no table could be read.
    pub assumed: ForwardingTables,
    /// The rate that both ends of each link support.
    pub capable: IdVec<PortId, Option<Rate>>,
    /// The subnet manager.
    pub manager: ManagerState,
    /// By switch name.
    pub control: BTreeMap<String, SwitchControl>,
    /// By host name, if a switch marks packets.
    pub adapters: BTreeMap<String, Result<BTreeSet<AdapterControl>, Failure>>,
    /// Whether discovery got all answers, without contradictions.
    pub is_complete: bool,
    /// Switches whose forwarding table could not be read in full.
    pub without_table: Vec<String>,
    /// Nodes whose PortCountersExtended has PortXmitWait and the counters of errors.
    pub has_additional: IdVec<NodeId, bool>,
    /// Data rate of the local port's link.
    pub local_rate: Option<Rate>,
}

impl Topology {
    /// Reads a subnet.
    ///
    /// # Errors
    ///
    /// [`SurveyError`].
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
            manager: manager_state(client, subnet.local.sm_lid)?,
            control,
            adapters,
            is_complete: subnet.is_complete && lids.len() == subnet.adapters.len(),
            has_additional: additional(client, &fabric)?,
            local_rate: rate_of(&subnet.local),
            without_table,
            tables,
            fabric,
        })
    }

    /// The lowest rate of the local port's link and the cables between switches: those that datagrams to many nodes
    /// share.
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

    /// Whether nodes, LIDs and cables are the same as those of another reading.
    pub fn is_same_fabric(&self, other: &Self) -> bool {
        let (own, other) = (&self.fabric, &other.fabric);
        own.nodes.iter().eq(other.nodes.iter()) && own.ports.iter().eq(other.ports.iter())
    }
}

/// Data rate of the link of a local port.
pub(crate) fn rate_of(local: &LocalPort) -> Option<Rate> {
    Rate::from_bits_per_sec(local.bytes_per_second * 8)
}

/// A Get to a node with a LID.
pub(crate) fn subnet_get(
    node: u32,
    lid: Lid,
    attribute: impl Into<SmpAttribute>,
    modifier: u32,
) -> Query {
    let body = Body::Smp(Smp {
        m_key: 0,
        route: SmpRoute::Lid,
        attribute: attribute.into(),
    });
    Query::new(node, lid, Method::GET, body, modifier)
}

#[derive(Default)]
struct Table {
    ports: Vec<PortNumber>,
    is_complete: bool,
}

/// The forwarding table of each switch, by NodeGUID.
fn read_tables<T: Transport>(
    client: &mut Client<T>,
    subnet: &Subnet,
) -> Result<BTreeMap<Guid, Table>, TransportError> {
    let switches: Vec<(Guid, Lid)> = subnet
        .switches
        .iter()
        .filter_map(|switch| Some((switch.guid, switch.lid?)))
        .collect();
    let queries: Vec<Query> = (0..)
        .zip(&switches)
        .map(|(node, (_, lid))| subnet_get(node, *lid, SwitchInfo::default(), 0))
        .collect();
    let mut queries_of_blocks = Vec::new();
    let mut meanings = Vec::new();
    let mut tables: BTreeMap<Guid, Table> = BTreeMap::new();
    for ((node, (guid, lid)), result) in (0..).zip(&switches).zip(client.ask(&queries)?) {
        let Ok(answer) = result else { continue };
        let top = SwitchInfo::parse(&answer.data()).linear_fdb_top.min(0xbfff);
        let blocks = top / BLOCK + 1;
        tables.insert(
            *guid,
            Table {
                ports: vec![LinearForwardingTable::NO_ROUTE; usize::from(blocks * BLOCK)],
                is_complete: true,
            },
        );
        for block in 0..blocks {
            let table = LinearForwardingTable {
                ports: [LinearForwardingTable::NO_ROUTE; BLOCK as usize],
            };
            queries_of_blocks.push(subnet_get(node, *lid, table, u32::from(block)));
            meanings.push((*guid, usize::from(block * BLOCK)));
        }
    }
    for ((guid, first), result) in meanings.into_iter().zip(client.ask(&queries_of_blocks)?) {
        let Some(table) = tables.get_mut(&guid) else {
            continue;
        };
        match result {
            Ok(answer) => {
                let block = LinearForwardingTable::parse(&answer.data());
                table.ports[first..first + usize::from(BLOCK)].copy_from_slice(&block.ports);
            }
            Err(_) => table.is_complete = false,
        }
    }
    Ok(tables)
}

/// LIDs of ports of adapters and routers, by the switch ports that they are cabled to.
type HostLids = BTreeMap<(Guid, PortNumber), Lid>;

/// The LID of each host: the lowest that its switch sends to it. Where the switch's table does not say, the host is asked
/// by a directed route; one that does not answer either has none.
fn host_lids<T: Transport>(
    client: &mut Client<T>,
    subnet: &Subnet,
    tables: &BTreeMap<Guid, Table>,
) -> Result<HostLids, TransportError> {
    let paths: BTreeMap<Guid, &[u8]> = subnet
        .switches
        .iter()
        .map(|switch| (switch.guid, &switch.path[..]))
        .collect();
    let mut lids = HostLids::new();
    let mut asked = Vec::new();
    let mut queries = Vec::new();
    for adapter in &subnet.adapters {
        let (switch, number) = adapter.switch;
        let table = tables.get(&switch);
        if let Some(lid) = table.and_then(|table| lid_behind(table, number.as_u8())) {
            lids.insert(adapter.switch, lid);
            continue;
        }
        let mut path = paths[&switch].to_vec();
        path.push(number.as_u8());
        let port = u32::from(adapter.number.as_u8());
        let node = asked.len() as u32;
        if let Some(query) = Query::directed(node, &path, PortInfo::default(), port) {
            asked.push(adapter.switch);
            queries.push(query);
        }
    }
    for (location, result) in asked.into_iter().zip(client.ask(&queries)?) {
        let lid = result.map(|answer| PortInfo::parse(&answer.data()).lid);
        if let Some(lid) = lid.ok().filter(|lid| lid.is_unicast()) {
            lids.insert(location, lid);
        }
    }
    Ok(lids)
}

/// The fabric with hosts without LIDs, as their switches' forwarding tables were not read.
pub(crate) fn import_without_tables(subnet: &Subnet) -> ImportedFabric {
    import(subnet, None)
}

/// The fabric as files of the common tools would describe it. Without its LID a host cannot be asked: it is left out,
/// if LIDs are given.
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
                    let name = unique(host_name(subnet, adapter.guid), adapter.guid);
                    let is_one = hosts_cabled.get(&adapter.guid) == Some(&1);
                    fabric.nodes.push(ImportedNode {
                        name: match is_one {
                            true => name,
                            false => format!("{name}/P{}", adapter.number),
                        },
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

fn lid_behind(table: &Table, number: u8) -> Option<Lid> {
    let first = table.ports.iter().position(|port| port.as_u8() == number)?;
    Some(Lid::new(first as u16)).filter(|lid| lid.is_unicast())
}

fn tables(fabric: &Fabric, blocks: &BTreeMap<Guid, Table>) -> ForwardingTables {
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

/// LIDs of nodes that requests of the local port do not reach, or whose answers do not come back, by the tables.
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

/// Whether the tables lead from a node to another.
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

/// The largest width among these bits.
fn width(bits: u8) -> Width {
    let mut known = WIDTHS.iter();
    known
        .find(|(bit, _)| bits & bit != 0)
        .map_or(Width::X1, |(_, width)| *width)
}

/// The highest speed among these bits.
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

/// The rate that both ends of each link support.
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
            subnet_get(number, node.lid, PortInfo::default(), port)
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

/// Nodes whose PortCountersExtended has the additional counters. Those that do not answer have none.
fn additional<T: Transport>(
    client: &mut Client<T>,
    fabric: &Fabric,
) -> Result<IdVec<NodeId, bool>, TransportError> {
    let query = |(id, node): (NodeId, &Node)| {
        let info = PerformanceAttribute::from(ClassPortInfo::default());
        let number = id.index() as u32;
        Query::new(number, node.lid, Method::GET, Body::Performance(info), 0)
    };
    let queries: Vec<Query> = fabric.nodes.iter_enumerated().map(query).collect();
    let has = |answer: Answer| {
        let info = ClassPortInfo::parse(&answer.data());
        info.capability_mask2.get() & performance_capability2::ADDITIONAL_EXTENDED != 0
    };
    let answers = client.ask(&queries)?.into_iter();
    Ok(answers.map(|result| result.is_ok_and(has)).collect())
}

fn manager_state<T: Transport>(
    client: &mut Client<T>,
    lid: Lid,
) -> Result<ManagerState, TransportError> {
    if !lid.is_unicast() {
        return Ok(ManagerState::Unknown);
    }
    let answer = client.query_one(subnet_get(0, lid, SmInfo::default(), 0))?;
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

/// A Get of congestion control without a key.
fn congestion_get(node: u32, lid: Lid, attribute: ManagementAttribute) -> Query {
    let body = Body::CongestionControl(CongestionControl {
        cc_key: 0,
        attribute: attribute.into(),
    });
    Query::new(node, lid, Method::GET, body, 0)
}

/// How hosts react to notifications.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use std::collections::VecDeque;

    use silvan_core::{MonotonicTime, Span};
    use silvan_dcms::discovery::{AdapterPort, Switch};
    use silvan_dcms::transport::{Incoming, Outgoing};
    use silvan_mad::{Mad, Packet};

    use super::*;
    use crate::survey::LIMITS;

    /// Hosts behind a switch that only directed routes reach: their LIDs, by the switch's port. LID 0 does not answer.
    struct Hosts {
        lids: BTreeMap<u8, u16>,
        arrived: VecDeque<Incoming>,
        now: MonotonicTime,
        sent: usize,
    }

    impl Transport for Hosts {
        fn now(&mut self) -> MonotonicTime {
            self.now
        }

        fn unix_time(&mut self) -> u64 {
            0
        }

        fn send(&mut self, outgoing: Outgoing<'_>) -> Result<(), TransportError> {
            self.sent += 1;
            let asked = Packet::new(*outgoing.mad);
            let Ok(Mad {
                body:
                    Body::Smp(Smp {
                        route: SmpRoute::Directed(route),
                        ..
                    }),
                ..
            }) = Mad::parse(&asked)
            else {
                return Ok(());
            };
            let path = &route.initial_path[1..=usize::from(asked.hop_count())];
            let lid = self.lids.get(path.last().unwrap()).filter(|lid| **lid > 0);
            if let (Some(&lid), [1, _]) = (lid, path) {
                let info = PortInfo {
                    lid: Lid::new(lid),
                    ..PortInfo::default()
                };
                let modifier = asked.attribute_modifier();
                let answer = Query::directed(0, path, info, modifier).unwrap();
                let mut packet = Packet::new(answer.mad);
                packet.set_method(Method::GET_RESPONSE);
                packet.set_transaction_id(asked.transaction_id());
                self.arrived.push_back(Incoming {
                    source: outgoing.destination,
                    unanswered: false,
                    mad: *packet.bytes(),
                });
            }
            Ok(())
        }

        fn receive(&mut self, limit: Span) -> Result<Option<Incoming>, TransportError> {
            let arrived = self.arrived.pop_front();
            if arrived.is_none() {
                self.now = self.now.saturating_add(limit);
            }
            Ok(arrived)
        }

        fn pause(&mut self, span: Span) {
            self.now = self.now.saturating_add(span);
        }
    }

    /// Oracle: the hosts' LIDs, which leave out 17, and a table, which has two LIDs for a port.
    #[test]
    fn hosts_have_the_lids_of_a_table_or_their_own_and_none_that_is_invented() {
        let switch = |guid: u64, path: &[u8]| Switch {
            guid: Guid::new(guid),
            lid: Some(Lid::new(guid as u16)),
            name: format!("switch {guid}"),
            path: path.to_vec(),
            ports: Vec::new(),
        };
        let adapter = |switch: u64, port: u8| AdapterPort {
            switch: (Guid::new(switch), PortNumber::new(port)),
            guid: Guid::new(0x100 * switch + u64::from(port)),
            port_guid: Guid::new(0x1000 * switch + u64::from(port)),
            number: PortNumber::new(1),
        };
        let subnet = Subnet {
            local: LocalPort {
                lid: Lid::new(9),
                sm_lid: Lid::new(1),
                is_active: true,
                bytes_per_second: 1_000_000_000,
            },
            switches: vec![switch(2, &[1]), switch(3, &[1, 7])],
            hosts: BTreeMap::new(),
            adapters: vec![adapter(2, 2), adapter(2, 3), adapter(2, 4), adapter(3, 1)],
            is_complete: true,
        };
        let mut ports = vec![LinearForwardingTable::NO_ROUTE; 64];
        (ports[10], ports[11]) = (PortNumber::new(1), PortNumber::new(1));
        let table = Table {
            ports,
            is_complete: true,
        };
        let hosts = Hosts {
            lids: BTreeMap::from([(2, 18), (3, 19), (4, 0)]),
            arrived: VecDeque::new(),
            now: MonotonicTime::ZERO,
            sent: 0,
        };
        let mut client = Client::new(hosts, LIMITS);
        let tables = BTreeMap::from([(Guid::new(3), table)]);
        let lids = host_lids(&mut client, &subnet, &tables).unwrap();
        let at = |switch: u64, port| (Guid::new(switch), PortNumber::new(port));
        let wanted = [(at(2, 2), 18), (at(2, 3), 19), (at(3, 1), 10)];
        assert_eq!(lids, wanted.map(|(at, lid)| (at, Lid::new(lid))).into());
        // One each for 18 and 19, and all attempts for the host that does not answer.
        assert_eq!(client.transport().sent, 2 + 1 + LIMITS.retries as usize);
    }
}
