use std::collections::BTreeSet;

use silvan_core::{IdVec, NodeId, PortId};
use silvan_fabric::Fabric;
use silvan_mad::CounterCapabilities;
use silvan_subnet::client::Client;
use silvan_subnet::sweep::{CounterSource, Identity, PortAnswers, SweepPlan, SweptPort};
use silvan_subnet::transport::{Transport, TransportError};

use crate::counters::TrafficReading;
use crate::logs::Logs;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadingOptions<'a> {
    /// Their logs are read, and those of hosts.
    pub marking: &'a [NodeId],
    pub counters: &'a IdVec<NodeId, CounterCapabilities>,
    pub before: Option<&'a Logs>,
    /// Reads counters beyond the diagnosis's, such as time congested.
    pub all: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct SubnetReadings {
    pub readings: IdVec<PortId, TrafficReading>,
    pub answers: Option<IdVec<PortId, PortAnswers>>,
    pub silent: Vec<NodeId>,
    /// Nodes whose LID has moved; their readings are empty.
    pub moved: Vec<NodeId>,
    pub logs: Logs,
}

impl SubnetReadings {
    pub fn take<T: Transport>(
        client: &mut Client<T>,
        fabric: &Fabric,
        options: ReadingOptions<'_>,
    ) -> Result<Self, TransportError> {
        let marks = !options.marking.is_empty();
        let mut plan = SweepPlan::default();
        let mut swept = Vec::with_capacity(fabric.ports.len());
        for (id, node) in fabric.nodes.iter_enumerated() {
            plan.add_node(id.index() as u32, node.lid, node.guid);
            for port in node
                .ports()
                .filter(|&port| fabric.ports[port].link.is_some())
            {
                swept.push(port);
                plan.add_port(SweptPort {
                    number: node.adapter_port.unwrap_or(fabric.ports[port].number),
                    extended: true,
                    congestion: marks && options.all && node.as_switch().is_some(),
                    notifications: marks && node.as_host().is_some(),
                    capabilities: options.counters[id],
                });
            }
        }
        let logs = Logs::read(client, fabric, options.marking, options.before)?;
        let sweep = plan.sweep(client, None)?;
        let mut answers: IdVec<PortId, PortAnswers> =
            IdVec::filled(PortAnswers::default(), fabric.ports.len());
        let (mut silent, mut moved) = (Vec::new(), Vec::new());
        for (place, (id, node)) in fabric.nodes.ids().zip(&sweep.nodes).enumerate() {
            if !node.has_answered {
                silent.push(id);
            }
            if node.identity == Identity::Moved {
                moved.push(id);
                continue;
            }
            for port in plan.ports_of(place) {
                answers[swept[port]] = sweep.ports[port];
            }
        }
        Ok(Self {
            readings: answers.iter().map(reading).collect(),
            answers: options.all.then_some(answers),
            silent,
            moved,
            logs,
        })
    }

    /// Silent nodes, nodes with another LID, and nodes with a link that went down since `before`.
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
}

fn reading(answers: &PortAnswers) -> TrafficReading {
    macro_rules! read {
        ($field:ident) => {{
            const SOURCE: CounterSource = CounterSource::of_field(stringify!($field));
            answers.counter(&SOURCE)
        }};
    }
    const LINK_DOWNED: CounterSource = CounterSource::of_field("link_downed").narrow();
    TrafficReading {
        at: answers.middle(),
        xmit_data: read!(xmit_data),
        rcv_data: read!(rcv_data),
        xmit_wait: read!(xmit_wait),
        xmit_cong: read!(time_cong),
        fecn: read!(fecn),
        becn: read!(becn),
        link_downed: answers.counter(&LINK_DOWNED),
        symbol_errors: read!(symbol_errors),
        rcv_errors: read!(rcv_errors),
        link_error_recovery: read!(link_error_recovery),
    }
}
