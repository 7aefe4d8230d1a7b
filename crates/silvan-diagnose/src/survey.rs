//! A live subnet, read by management datagrams.
//!
//! Everything is a Get: of subnet management (topology, forwarding tables, links), of performance management
//! (counters) and of congestion control (settings). Nothing is set, and CongestionLog is not read, because
//! reading it starts its count of events again.

use std::collections::{BTreeMap, BTreeSet};

use silvan_core::{
    Guid, IdVec, Length, Lid, MonotonicTime, NodeId, PortId, PortNumber, Rate, Span,
};
use silvan_dcms::client::{Answer, Client, Failure, Limits, Query, RequestResult, Statistics};
use silvan_dcms::discovery::{Peer, Subnet, SwitchPort, discover};
use silvan_dcms::transport::{Transport, TransportError};
use silvan_fabric::import::{ImportedCable, ImportedFabric, ImportedNode};
use silvan_fabric::routing::RoutingError;
use silvan_fabric::{Fabric, FabricError, ForwardingTables, LinkKind, Speed, Width};
use silvan_mad::congestion::{
    CongestionControl, CongestionKeyInfo, ManagementAttribute, SwitchCongestionSetting,
};
use silvan_mad::performance::{PortCounters, PortCountersExtended, PortRcvConCtrl};
use silvan_mad::smp::{
    LinearForwardingTable, NodeInfo, PortInfo, SmInfo, SmState, Smp, SmpAttribute, SmpRoute,
    SwitchInfo, link_speed, link_speed_ext, link_speed_ext2, link_width,
};
use silvan_mad::{Body, Method};
use thiserror::Error;

use crate::counters::{Counter, PortReading};
use crate::dumps::assumed;
use crate::observation::Observation;
use crate::report::{Input, Report};

/// Requests in flight at most, those to one node, and how patiently they are sent again.
pub const LIMITS: Limits = Limits {
    in_flight: 64,
    per_node: 4,
    timeout: Span::from_ms(100),
    retries: 3,
};

/// LIDs in a block of a forwarding table.
const BLOCK: u16 = 64;

/// Why there is no survey.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SurveyError {
    /// No datagrams can be exchanged.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// Not even the own port answers.
    #[error("the local port does not answer")]
    NoAnswer,
    /// What was found is no fabric.
    #[error("what the subnet says of itself contradicts itself: {0}")]
    Fabric(#[from] FabricError),
    /// Neither tables nor shortest paths.
    #[error("no paths: {0}")]
    Routes(#[from] RoutingError),
}

impl SurveyError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Transport(error) => error.hint(),
            Self::NoAnswer => "see the port's state with ibstat; is the port Active?",
            Self::Fabric(_) | Self::Routes(_) => {
                "wait until the subnet manager has set the subnet up, and try again"
            }
        }
    }
}

/// The subnet manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagerState {
    /// The local port knows none.
    Unknown,
    /// It does not answer.
    Silent(Lid),
    /// It has answered with this state.
    Answers(Lid, SmState),
}

/// The congestion control of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchControl {
    /// Its settings, or why they are not known.
    pub setting: Result<SwitchCongestionSetting, Failure>,
    /// Whether a CC_Key protects them.
    pub is_protected: Option<bool>,
}

/// What a survey has found besides topology and counters.
#[derive(Clone, Debug)]
pub struct SurveyFacts {
    /// The subnet manager.
    pub manager: ManagerState,
    /// By switch name.
    pub control: BTreeMap<String, SwitchControl>,
    /// Nodes that answered no request for counters in one of the sweeps.
    pub silent: Vec<String>,
    /// Nodes whose LID belonged to another node in a sweep; their counters are not used.
    pub moved: Vec<String>,
    /// Whether discovery got all answers, without contradictions.
    pub is_complete: bool,
    /// Switches whose forwarding table could not be read in full.
    pub without_table: Vec<String>,
    /// Datagrams.
    pub statistics: Statistics,
    /// Time that the second sweep took.
    pub sweep_time: Span,
}

/// Topology, forwarding tables and two sweeps.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Switches, hosts and cables.
    pub fabric: Fabric,
    /// Forwarding tables; without entries where they could not be read.
    pub tables: ForwardingTables,
    /// The rate that both ends of each link support.
    pub capable: IdVec<PortId, Option<Rate>>,
    /// The first sweep.
    pub before: IdVec<PortId, PortReading>,
    /// The second sweep.
    pub now: IdVec<PortId, PortReading>,
    /// Everything else.
    pub facts: SurveyFacts,
}

/// Reads topology and tables, then the counters twice, `interval` apart.
///
/// # Errors
///
/// [`SurveyError`].
pub fn survey<T: Transport>(client: &mut Client<T>, interval: Span) -> Result<Survey, SurveyError> {
    let subnet = discover(client)?.ok_or(SurveyError::NoAnswer)?;
    let blocks = read_tables(client, &subnet)?;
    let imported = import(&subnet, &blocks);
    let link = LinkKind::new(Width::X4, Speed::Sdr, Length::ZERO);
    let fabric = imported.build(link)?;
    let tables = tables(&fabric, &blocks);
    let capable = capable(client, &fabric, &subnet)?;
    let manager = manager_state(client, subnet.local.sm_lid)?;
    let control = control(client, &fabric)?;
    let is_marking = control.values().any(|control| {
        control
            .setting
            .is_ok_and(|setting| setting.threshold.get() > 0)
    });
    let mut silent = BTreeSet::new();
    let mut moved = BTreeSet::new();
    let mut sweep = |client: &mut Client<T>| {
        let swept = Sweep::take(client, &fabric, is_marking)?;
        silent.extend(swept.silent);
        moved.extend(swept.moved);
        Ok::<_, TransportError>(swept.readings)
    };
    let began = client.now();
    let before = sweep(client)?;
    let took = client.now().checked_since(began).unwrap_or(Span::ZERO);
    client.transport().pause(interval.saturating_sub(took));
    let began = client.now();
    let now = sweep(client)?;
    let sweep_time = client.now().checked_since(began).unwrap_or(Span::ZERO);
    let name = |node: NodeId| fabric.nodes[node].name.clone();
    let is_read = |(guid, _): &(&Guid, _)| blocks.get(guid).is_none_or(|table| !table.is_complete);
    let without = subnet
        .switches
        .iter()
        .map(|switch| (&switch.guid, &switch.name));
    let facts = SurveyFacts {
        manager,
        control,
        silent: silent.into_iter().map(name).collect(),
        moved: moved.into_iter().map(name).collect(),
        is_complete: subnet.is_complete,
        without_table: without
            .filter(is_read)
            .map(|(_, name)| name.clone())
            .collect(),
        statistics: client.statistics(),
        sweep_time,
    };
    Ok(Survey {
        tables,
        capable,
        before,
        now,
        facts,
        fabric,
    })
}

/// A Get to a node with a LID.
fn subnet_get(node: u32, lid: Lid, attribute: impl Into<SmpAttribute>, modifier: u32) -> Query {
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

/// The fabric as files of the common tools would describe it. The LID of a host is the lowest that its switch
/// sends to it.
fn import(subnet: &Subnet, tables: &BTreeMap<Guid, Table>) -> ImportedFabric {
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
                        lid: tables
                            .get(&switch.guid)
                            .and_then(|table| lid_behind(table, number)),
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

fn control<T: Transport>(
    client: &mut Client<T>,
    fabric: &Fabric,
) -> Result<BTreeMap<String, SwitchControl>, TransportError> {
    let get = |node: u32, lid: Lid, attribute: ManagementAttribute| {
        let body = Body::CongestionControl(CongestionControl {
            cc_key: 0,
            attribute: attribute.into(),
        });
        Query::new(node, lid, Method::GET, body, 0)
    };
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

/// A sweep of the counters of all cabled ports.
struct Sweep {
    readings: IdVec<PortId, PortReading>,
    silent: Vec<NodeId>,
    moved: Vec<NodeId>,
}

#[derive(Clone, Copy)]
enum Asked {
    Identity(NodeId),
    Counters(PortId),
    Extended(PortId),
    Notifications(PortId),
}

impl Sweep {
    fn take<T: Transport>(
        client: &mut Client<T>,
        fabric: &Fabric,
        is_marking: bool,
    ) -> Result<Self, TransportError> {
        let mut queries = Vec::with_capacity(fabric.ports.len() * 2);
        let mut meanings = Vec::with_capacity(fabric.ports.len() * 2);
        for (id, node) in fabric.nodes.iter_enumerated() {
            let number = id.index() as u32;
            queries.push(subnet_get(number, node.lid, NodeInfo::default(), 0));
            meanings.push(Asked::Identity(id));
            for port in node
                .ports()
                .filter(|&port| fabric.ports[port].link.is_some())
            {
                let port_select = node.adapter_port.unwrap_or(fabric.ports[port].number);
                let mut ask = |body, meaning| {
                    queries.push(Query::new(number, node.lid, Method::GET, body, 0));
                    meanings.push(meaning);
                };
                let counters = PortCounters {
                    port_select,
                    ..PortCounters::default()
                };
                ask(Body::Performance(counters.into()), Asked::Counters(port));
                let extended = PortCountersExtended {
                    port_select,
                    ..PortCountersExtended::default()
                };
                ask(Body::Performance(extended.into()), Asked::Extended(port));
                if is_marking && node.as_host().is_some() {
                    let control = PortRcvConCtrl {
                        port_select,
                        ..PortRcvConCtrl::default()
                    };
                    ask(
                        Body::Performance(control.into()),
                        Asked::Notifications(port),
                    );
                }
            }
        }
        let mut sweep = Self {
            readings: IdVec::filled(PortReading::default(), fabric.ports.len()),
            silent: Vec::new(),
            moved: Vec::new(),
        };
        let mut answered: IdVec<NodeId, bool> = IdVec::filled(false, fabric.nodes.len());
        for (meaning, result) in meanings.into_iter().zip(client.ask(&queries)?) {
            sweep.learn(fabric, meaning, result, &mut answered);
        }
        for (id, node) in fabric.nodes.iter_enumerated() {
            if !answered[id] {
                sweep.silent.push(id);
            }
            if sweep.moved.contains(&id) {
                for port in node.ports() {
                    sweep.readings[port] = PortReading::default();
                }
            }
        }
        Ok(sweep)
    }

    fn learn(
        &mut self,
        fabric: &Fabric,
        meaning: Asked,
        result: RequestResult,
        answered: &mut IdVec<NodeId, bool>,
    ) {
        let Ok(answer) = result else { return };
        let (port, select) = match meaning {
            Asked::Identity(node) => {
                let guid = NodeInfo::parse(&answer.data()).node_guid;
                if guid != fabric.nodes[node].guid {
                    self.moved.push(node);
                }
                return;
            }
            Asked::Counters(port) | Asked::Extended(port) | Asked::Notifications(port) => {
                let node = &fabric.nodes[fabric.ports[port].node];
                (port, node.adapter_port.unwrap_or(fabric.ports[port].number))
            }
        };
        answered[fabric.ports[port].node] = true;
        let reading = &mut self.readings[port];
        let narrow = |value: u32| Some(Counter::new(value.into(), 32));
        let wide = |value: u64| Some(Counter::new(value, 64));
        match meaning {
            Asked::Identity(_) => {}
            Asked::Counters(_) => {
                let counters = PortCounters::parse(&answer.data());
                if counters.port_select != select {
                    return;
                }
                reading.at.get_or_insert(middle(&answer));
                reading.xmit_wait = narrow(counters.xmit_wait);
                reading.link_downed = Some(Counter::new(counters.link_downed.into(), 8));
                reading.xmit_data = reading.xmit_data.or(narrow(counters.xmit_data));
                reading.rcv_data = reading.rcv_data.or(narrow(counters.rcv_data));
            }
            Asked::Extended(_) => {
                let counters = PortCountersExtended::parse(&answer.data());
                if counters.port_select != select {
                    return;
                }
                reading.at = Some(middle(&answer));
                reading.xmit_data = wide(counters.xmit_data);
                reading.rcv_data = wide(counters.rcv_data);
            }
            Asked::Notifications(_) => {
                let control = PortRcvConCtrl::parse(&answer.data());
                if control.port_select == select {
                    reading.fecn = narrow(control.fecn);
                    reading.becn = narrow(control.becn);
                }
            }
        }
    }
}

/// The instant at which an answer was made, as far as its sender knows.
fn middle(answer: &Answer) -> MonotonicTime {
    let took = answer.at.checked_since(answer.sent).unwrap_or(Span::ZERO);
    answer.sent.saturating_add(Span::from_ps(took.as_ps() / 2))
}

/// Reads a subnet and diagnoses it. `time_scale` is that of an emulated fabric, 1 of a real one.
///
/// # Errors
///
/// [`SurveyError`].
pub fn diagnose_live<T: Transport>(
    client: &mut Client<T>,
    interval: Span,
    tick: Span,
    time_scale: f64,
) -> Result<Report, SurveyError> {
    let mut found = survey(client, interval)?;
    for readings in [&mut found.before, &mut found.now] {
        for reading in readings.iter_mut() {
            let scale =
                |at: MonotonicTime| MonotonicTime::from_ns((at.as_ns() as f64 * time_scale) as u64);
            reading.at = reading.at.map(scale);
        }
    }
    let observation = Observation::new(&found.fabric, &found.before, &found.now, tick);
    let has_tables = found.facts.without_table.len() < found.fabric.switch_count();
    let tables = Some(&found.tables).filter(|_| has_tables);
    let assumed = assumed(&found.fabric, tables)?;
    let began = client.now();
    let mut report = Report::new(Input {
        fabric: &found.fabric,
        tables,
        assumed: &assumed,
        capable: &found.capable,
        observation: &observation,
        facts: Some(&found.facts),
    });
    let took = client.now().checked_since(began).unwrap_or(Span::ZERO);
    report.analysis_s = Some(took.as_ps() as f64 / 1e12);
    Ok(report)
}
