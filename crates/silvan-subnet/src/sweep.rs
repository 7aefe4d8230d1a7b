//! Sweeps of the counters of many ports: a [`SweepPlan`] keeps attributes' bytes, which a [`CounterSource`] reads.

use silvan_core::growth::CounterValue;
use silvan_core::{Guid, Lid, MonotonicTime, PortCounter, PortNumber, Span};
use silvan_mad::performance::{
    PerformanceAttribute, PortCounters, PortCountersExtended, PortRcvConCtrl, PortXmitConCtrl,
};
use silvan_mad::smp::NodeInfo;
use silvan_mad::{Body, CounterCapabilities, FieldLocation, Method};

use crate::client::{Answer, Client, Query, RequestResult};
use crate::transport::{Transport, TransportError};

/// An attribute that a sweep reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweptAttribute {
    /// PortCounters.
    Counters,
    /// PortCountersExtended.
    Extended,
    /// PortXmitConCtrl: time in the congestion state.
    Congestion,
    /// PortRcvConCtrl: notifications received.
    Notifications,
}

impl SweptAttribute {
    fn request(self, port_select: PortNumber) -> Body {
        let attribute: PerformanceAttribute = match self {
            Self::Counters => PortCounters {
                port_select,
                ..PortCounters::default()
            }
            .into(),
            Self::Extended => PortCountersExtended {
                port_select,
                ..PortCountersExtended::default()
            }
            .into(),
            Self::Congestion => PortXmitConCtrl {
                port_select,
                ..PortXmitConCtrl::default()
            }
            .into(),
            Self::Notifications => PortRcvConCtrl {
                port_select,
                ..PortRcvConCtrl::default()
            }
            .into(),
        };
        Body::Performance(attribute)
    }
}

/// The fields that carry a counter, by attribute.
#[derive(Clone, Copy, Debug)]
pub struct CounterSource {
    counters: Option<FieldLocation>,
    extended: Option<FieldLocation>,
    congestion: Option<FieldLocation>,
    notifications: Option<FieldLocation>,
}

impl CounterSource {
    /// The fields of this name, by the names that `silvan-mad` has for them.
    pub const fn of_field(name: &str) -> Self {
        Self {
            counters: PerformanceAttribute::find_field("PortCounters", name),
            extended: PerformanceAttribute::find_field("PortCountersExtended", name),
            congestion: PerformanceAttribute::find_field("PortXmitConCtrl", name),
            notifications: PerformanceAttribute::find_field("PortRcvConCtrl", name),
        }
    }

    /// The fields that the declaration of a counter names.
    pub fn of_counter(counter: &PortCounter) -> Self {
        let find = |attribute, fields: &[FieldLocation]| {
            let location = |location: &&FieldLocation| counter.is_in(attribute, location.name);
            fields.iter().find(location).copied()
        };
        Self {
            counters: find("PortCounters", PortCounters::FIELDS),
            extended: find("PortCountersExtended", PortCountersExtended::FIELDS),
            congestion: find("PortXmitConCtrl", PortXmitConCtrl::FIELDS),
            notifications: find("PortRcvConCtrl", PortRcvConCtrl::FIELDS),
        }
    }

    /// The field of PortCounters alone.
    #[must_use]
    pub const fn narrow(self) -> Self {
        Self {
            extended: None,
            ..self
        }
    }

    /// The bit of CounterSelect (from 16 on of CounterSelect2) that selects the counter in an attribute.
    pub fn select(&self, attribute: SweptAttribute) -> Option<u8> {
        self.location(attribute)?.select
    }

    fn location(&self, attribute: SweptAttribute) -> Option<FieldLocation> {
        match attribute {
            SweptAttribute::Counters => self.counters,
            SweptAttribute::Extended => self.extended,
            SweptAttribute::Congestion => self.congestion,
            SweptAttribute::Notifications => self.notifications,
        }
    }

    fn is_wait(&self) -> bool {
        const WAIT: &str = "xmit_wait";
        self.counters.is_some_and(|location| location.name == WAIT)
    }

    fn is_additional(&self) -> bool {
        /// The bit of CounterSelect2 that selects the first additional counter of PortCountersExtended.
        const FIRST_ADDITIONAL: u8 = 16;
        self.extended
            .is_some_and(|location| location.select >= Some(FIRST_ADDITIONAL))
    }
}

#[derive(Clone, Copy, Debug)]
struct AttributeAnswer<const N: usize> {
    sent: MonotonicTime,
    at: MonotonicTime,
    bytes: [u8; N],
}

impl<const N: usize> AttributeAnswer<N> {
    /// The answer, if it is about the port that was asked for.
    fn of(answer: &Answer, select: FieldLocation, port: PortNumber) -> Option<Self> {
        let bytes = answer.data();
        let is_of_port = select.read(&bytes, 0) == u64::from(port.as_u8());
        is_of_port.then_some(Self {
            sent: answer.sent,
            at: answer.at,
            bytes,
        })
    }

    /// The device reads its counters at about this time.
    fn middle(&self) -> MonotonicTime {
        let took = self.at.checked_since(self.sent).unwrap_or(Span::ZERO);
        self.sent.saturating_add(Span::from_ps(took.as_ps() / 2))
    }
}

/// The answers of a port, as they came.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortAnswers {
    capabilities: CounterCapabilities,
    counters: Option<AttributeAnswer<{ PortCounters::LEN }>>,
    extended: Option<AttributeAnswer<{ PortCountersExtended::LEN }>>,
    congestion: Option<AttributeAnswer<{ PortXmitConCtrl::LEN }>>,
    notifications: Option<AttributeAnswer<{ PortRcvConCtrl::LEN }>>,
}

impl PortAnswers {
    /// A port of a device with these counters that has answered nothing yet.
    pub fn new(capabilities: CounterCapabilities) -> Self {
        Self {
            capabilities,
            ..Self::default()
        }
    }

    /// Takes an answer, unless it is about another port.
    pub fn insert(&mut self, attribute: SweptAttribute, port: PortNumber, answer: &Answer) {
        const SELECT: &str = "port_select";
        match attribute {
            SweptAttribute::Counters => {
                let select = const { PortCounters::location(SELECT) };
                self.counters = AttributeAnswer::of(answer, select, port);
            }
            SweptAttribute::Extended => {
                let select = const { PortCountersExtended::location(SELECT) };
                self.extended = AttributeAnswer::of(answer, select, port);
            }
            SweptAttribute::Congestion => {
                let select = const { PortXmitConCtrl::location(SELECT) };
                self.congestion = AttributeAnswer::of(answer, select, port);
            }
            SweptAttribute::Notifications => {
                let select = const { PortRcvConCtrl::location(SELECT) };
                self.notifications = AttributeAnswer::of(answer, select, port);
            }
        }
    }

    /// Reads a counter from its widest answered attribute.
    ///
    /// Additional counters of PortCountersExtended come from there only on devices that have them: a change between
    /// attributes would seem a reset.
    pub fn counter(&self, source: &CounterSource) -> Option<CounterValue> {
        fn read<const N: usize>(
            location: Option<FieldLocation>,
            answer: &Option<AttributeAnswer<N>>,
        ) -> Option<CounterValue> {
            let (location, answer) = location.zip(answer.as_ref())?;
            let value = location.read(&answer.bytes, 0);
            Some(CounterValue::new(value, location.width as u8))
        }
        let is_counted =
            |value: &CounterValue| self.capabilities.wait || !source.is_wait() || value.value > 0;
        let wide = || read(source.extended, &self.extended);
        let narrow = || read(source.counters, &self.counters).filter(is_counted);
        let first = match source.is_additional() {
            true if self.capabilities.additional => wide(),
            true => narrow(),
            false => wide().or_else(narrow),
        };
        first
            .or_else(|| read(source.congestion, &self.congestion))
            .or_else(|| read(source.notifications, &self.notifications))
    }

    /// The arrival of PortCounters.
    pub fn arrived(&self) -> Option<MonotonicTime> {
        Some(self.counters?.at)
    }

    /// The time at which the counters of data were read: half-way between request and arrival.
    pub fn middle(&self) -> Option<MonotonicTime> {
        let extended = self.extended.as_ref().map(AttributeAnswer::middle);
        extended.or_else(|| Some(self.counters?.middle()))
    }

    /// The answers without those that arrived more than `most` before or after PortCounters.
    #[must_use]
    pub fn near(self, most: Span) -> Self {
        let arrived = self.arrived();
        let is_near = |at: MonotonicTime| {
            arrived.is_some_and(|arrived| {
                let apart = at
                    .checked_since(arrived)
                    .or_else(|| arrived.checked_since(at));
                apart.is_some_and(|apart| apart <= most)
            })
        };
        Self {
            extended: self.extended.filter(|answer| is_near(answer.at)),
            congestion: self.congestion.filter(|answer| is_near(answer.at)),
            notifications: self.notifications.filter(|answer| is_near(answer.at)),
            ..self
        }
    }
}

/// A port whose counters are read.
#[derive(Clone, Copy, Debug)]
pub struct SweptPort {
    /// Number of the port on its node.
    pub number: PortNumber,
    /// True to read PortCountersExtended, in addition to PortCounters.
    pub extended: bool,
    /// Reads PortXmitConCtrl.
    pub congestion: bool,
    /// Reads PortRcvConCtrl.
    pub notifications: bool,
    /// Counters of the device.
    pub capabilities: CounterCapabilities,
}

#[derive(Clone, Copy, Debug)]
struct SweptNode {
    number: u32,
    lid: Lid,
    guid: Guid,
}

/// The identity of a node, as it answered in a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The LID belongs to the node.
    Same,
    /// The LID belongs to another node by now.
    Moved,
    /// The node did not answer NodeInfo.
    Unknown,
}

/// The answers of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeAnswers {
    /// Identity of the node.
    pub identity: Identity,
    /// The node has answered a request for counters.
    pub has_answered: bool,
}

#[derive(Clone, Copy)]
enum Request {
    Identity,
    Attribute(usize, SweptAttribute),
}

/// The nodes and ports of a sweep.
#[derive(Clone, Debug, Default)]
pub struct SweepPlan {
    nodes: Vec<SweptNode>,
    ports: Vec<(usize, SweptPort)>,
}

/// The answers to a sweep.
#[derive(Clone, Debug)]
pub struct CounterSweep {
    /// Answers of nodes, in the order of the plan.
    pub nodes: Vec<NodeAnswers>,
    /// Answers of ports, in the order of the plan.
    pub ports: Vec<PortAnswers>,
}

impl SweepPlan {
    /// Adds a node. `number` represents it at the client.
    pub fn add_node(&mut self, number: u32, lid: Lid, guid: Guid) {
        self.nodes.push(SweptNode { number, lid, guid });
    }

    /// Adds a port of the node that was added last. Panics: Without a node.
    pub fn add_port(&mut self, port: SweptPort) {
        self.ports.push((self.nodes.len() - 1, port));
    }

    /// Queries identities, then counters. Answers slower than `slowest` are dropped: their time is unknown.
    pub fn sweep<T: Transport>(
        &self,
        client: &mut Client<T>,
        slowest: Option<Span>,
    ) -> Result<CounterSweep, TransportError> {
        let mut queries = Vec::with_capacity(self.nodes.len() + self.ports.len() * 2);
        let mut requests = Vec::with_capacity(queries.capacity());
        let mut ports = self.ports.iter().enumerate().peekable();
        for (place, node) in self.nodes.iter().enumerate() {
            queries.push(Query::subnet_get(
                node.number,
                node.lid,
                NodeInfo::default(),
                0,
            ));
            requests.push((place, Request::Identity));
            while let Some((port, (_, swept))) = ports.next_if(|(_, (node, _))| *node == place) {
                let attributes = [
                    (SweptAttribute::Counters, true),
                    (SweptAttribute::Extended, swept.extended),
                    (SweptAttribute::Congestion, swept.congestion),
                    (SweptAttribute::Notifications, swept.notifications),
                ];
                for (attribute, _) in attributes.into_iter().filter(|(_, is_read)| *is_read) {
                    let body = attribute.request(swept.number);
                    queries.push(Query::new(node.number, node.lid, Method::GET, body, 0));
                    requests.push((place, Request::Attribute(port, attribute)));
                }
            }
        }
        let unanswered = NodeAnswers {
            identity: Identity::Unknown,
            has_answered: false,
        };
        let mut sweep = CounterSweep {
            nodes: vec![unanswered; self.nodes.len()],
            ports: self
                .ports
                .iter()
                .map(|(_, port)| PortAnswers::new(port.capabilities))
                .collect(),
        };
        for ((place, request), result) in requests.into_iter().zip(client.ask(&queries)?) {
            let Some(answer) = in_time(result, slowest) else {
                continue;
            };
            let node = &mut sweep.nodes[place];
            match request {
                Request::Identity => {
                    let guid = NodeInfo::parse(&answer.data()).node_guid;
                    node.identity = match guid == self.nodes[place].guid {
                        true => Identity::Same,
                        false => Identity::Moved,
                    };
                }
                Request::Attribute(port, attribute) => {
                    node.has_answered = true;
                    let number = self.ports[port].1.number;
                    sweep.ports[port].insert(attribute, number, &answer);
                }
            }
        }
        Ok(sweep)
    }

    /// The ports' places in the plan, by the place of their node.
    pub fn ports_of(&self, node: usize) -> std::ops::Range<usize> {
        let first = self.ports.partition_point(|(of, _)| *of < node);
        let end = self.ports.partition_point(|(of, _)| *of <= node);
        first..end
    }
}

/// `None` if slower than `slowest`.
fn in_time(result: RequestResult, slowest: Option<Span>) -> Option<Answer> {
    let answer = result.ok()?;
    let Some(slowest) = slowest else {
        return Some(answer);
    };
    let took = answer.at.checked_since(answer.sent)?;
    (took <= slowest).then_some(answer)
}
