//! One reading of all counters of a live subnet.

use std::collections::BTreeSet;

use silvan_core::{IdVec, MonotonicTime, NodeId, PortId, Span};
use silvan_dcms::client::{Answer, Client, Query, RequestResult};
use silvan_dcms::transport::{Transport, TransportError};
use silvan_fabric::Fabric;
use silvan_mad::performance::{
    PortCounters, PortCountersExtended, PortRcvConCtrl, PortXmitConCtrl,
};
use silvan_mad::smp::NodeInfo;
use silvan_mad::{Body, Method};

use crate::counters::{Counter, PortReading};
use crate::logs::Logs;
use crate::topology::subnet_get;

/// What a port has answered, with all its counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct RawPort {
    /// PortCounters.
    pub counters: Option<PortCounters>,
    /// Whether PortCountersExtended has PortXmitWait and the counters of errors.
    pub has_additional: bool,
    /// PortCountersExtended.
    pub extended: Option<PortCountersExtended>,
    /// PortXmitConCtrl.
    pub congestion: Option<PortXmitConCtrl>,
    /// PortRcvConCtrl.
    pub notifications: Option<PortRcvConCtrl>,
}

/// What a sweep reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Switches that mark packets, whose logs are read. If there are any, so are the logs of hosts, and the
    /// notifications that they have received.
    pub marking: &'a [NodeId],
    /// Nodes whose PortCountersExtended has PortXmitWait.
    pub has_additional: &'a IdVec<NodeId, bool>,
    /// What the logs had in the sweep before.
    pub before: Option<&'a Logs>,
    /// All counters, not only those that the diagnosis uses: among them the time that switch ports were congested.
    pub all: bool,
}

/// A sweep of the counters of all cabled ports.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    /// By port; empty where nothing was read.
    pub readings: IdVec<PortId, PortReading>,
    /// By port, if all counters are wanted.
    pub raw: Option<IdVec<PortId, RawPort>>,
    /// Nodes that answered no request for counters.
    pub silent: Vec<NodeId>,
    /// Nodes whose LID belongs to another node; their readings are empty.
    pub moved: Vec<NodeId>,
    /// What the logs of the switches have.
    pub logs: Logs,
}

#[derive(Clone, Copy)]
enum Asked {
    Identity(NodeId),
    Counters(PortId),
    Extended(PortId),
    Congestion(PortId),
    Notifications(PortId),
}

impl Sweep {
    /// Reads the logs, and the counters of all cabled ports.
    pub fn take<T: Transport>(
        client: &mut Client<T>,
        fabric: &Fabric,
        wanted: Wanted<'_>,
    ) -> Result<Self, TransportError> {
        let marks = !wanted.marking.is_empty();
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
                if marks && wanted.all && node.as_switch().is_some() {
                    let control = PortXmitConCtrl {
                        port_select,
                        ..PortXmitConCtrl::default()
                    };
                    ask(Body::Performance(control.into()), Asked::Congestion(port));
                }
                if marks && node.as_host().is_some() {
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
            logs: Logs::read(client, fabric, wanted.marking, wanted.before)?,
            readings: IdVec::filled(PortReading::default(), fabric.ports.len()),
            raw: wanted
                .all
                .then(|| IdVec::filled(RawPort::default(), fabric.ports.len())),
            silent: Vec::new(),
            moved: Vec::new(),
        };
        let mut answered: IdVec<NodeId, bool> = IdVec::filled(false, fabric.nodes.len());
        for (meaning, result) in meanings.into_iter().zip(client.ask(&queries)?) {
            sweep.learn(fabric, wanted, meaning, result, &mut answered);
        }
        for (id, node) in fabric.nodes.iter_enumerated() {
            if !answered[id] {
                sweep.silent.push(id);
            }
            if sweep.moved.contains(&id) {
                for port in node.ports() {
                    sweep.readings[port] = PortReading::default();
                    if let Some(raw) = &mut sweep.raw {
                        raw[port] = RawPort::default();
                    }
                }
            }
        }
        Ok(sweep)
    }

    /// Nodes that do not fit the topology: silent, with another LID, or with a link that went down since an
    /// earlier sweep.
    pub fn odd(&self, fabric: &Fabric, before: Option<&Self>) -> BTreeSet<NodeId> {
        let downed = |port: &PortId| {
            let at = |sweep: &Self| Some(sweep.readings[*port].link_downed?.value);
            let counts = before.and_then(at).zip(at(self));
            counts.is_some_and(|(before, now)| before != now)
        };
        let flapped = fabric.ports.ids().filter(downed);
        let flapped = flapped.map(|port| fabric.ports[port].node);
        let others = self.silent.iter().chain(&self.moved).copied();
        flapped.chain(others).collect()
    }

    fn learn(
        &mut self,
        fabric: &Fabric,
        wanted: Wanted<'_>,
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
            Asked::Counters(port)
            | Asked::Extended(port)
            | Asked::Congestion(port)
            | Asked::Notifications(port) => {
                let node = &fabric.nodes[fabric.ports[port].node];
                (port, node.adapter_port.unwrap_or(fabric.ports[port].number))
            }
        };
        let node = fabric.ports[port].node;
        answered[node] = true;
        let reading = &mut self.readings[port];
        let mut unused = RawPort::default();
        let raw = self.raw.as_mut().map_or(&mut unused, |raw| &mut raw[port]);
        raw.has_additional = wanted.has_additional[node];
        let narrow = |value: u32| Some(Counter::new(value.into(), 32));
        let wide = |value: u64| Some(Counter::new(value, 64));
        match meaning {
            Asked::Identity(_) => {}
            Asked::Counters(_) => {
                let counters = PortCounters::parse(&answer.data());
                if counters.port_select != select {
                    return;
                }
                raw.counters = Some(counters);
                reading.at.get_or_insert(middle(&answer));
                // 32 bits are full after 17 s of waiting, at a tick of 4 ns.
                if !wanted.has_additional[node] {
                    reading.xmit_wait = narrow(counters.xmit_wait);
                }
                reading.link_downed = Some(Counter::new(counters.link_downed.into(), 8));
                reading.xmit_data = reading.xmit_data.or(narrow(counters.xmit_data));
                reading.rcv_data = reading.rcv_data.or(narrow(counters.rcv_data));
            }
            Asked::Extended(_) => {
                let counters = PortCountersExtended::parse(&answer.data());
                if counters.port_select != select {
                    return;
                }
                raw.extended = Some(counters);
                reading.at = Some(middle(&answer));
                reading.xmit_data = wide(counters.xmit_data);
                reading.rcv_data = wide(counters.rcv_data);
                if wanted.has_additional[node] {
                    reading.xmit_wait = wide(counters.xmit_wait);
                }
            }
            Asked::Congestion(_) => {
                let control = PortXmitConCtrl::parse(&answer.data());
                if control.port_select == select {
                    raw.congestion = Some(control);
                    reading.xmit_cong = narrow(control.time_cong);
                }
            }
            Asked::Notifications(_) => {
                let control = PortRcvConCtrl::parse(&answer.data());
                if control.port_select == select {
                    raw.notifications = Some(control);
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
