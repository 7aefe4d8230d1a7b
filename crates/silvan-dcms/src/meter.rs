//! Growth of the counters of watched ports from one sweep to the next.

use silvan_core::growth::{CounterGrowth, CounterReading, CounterTracker};
use silvan_core::{MonotonicTime, PortId, PortNumber, Span, SwitchId};
use silvan_mad::performance::{PerformanceAttribute, PortCounters, PortXmitConCtrl};
use silvan_mad::{Body, CounterCapabilities, Method};
use silvan_subnet::client::{Client, Query};
use silvan_subnet::sweep::{
    CounterSource, CounterSweep, Identity, PortAnswers, SweepPlan, SweptAttribute, SweptPort,
};
use silvan_subnet::transport::{Transport, TransportError};

use crate::settings::DataCounter;
use crate::watch::WatchedPort;

/// Part of an interval by which a port's readings may lie apart, and which an answer may take.
const SKEW_SHARE: u64 = 10;
const LEAST_SKEW: Span = Span::from_ms(100);

/// A sweep of watched ports.
#[derive(Clone, Debug)]
pub struct WatchedSweep {
    /// Answers in the order of ports; a switch with a wrong identity has none.
    pub answers: Vec<PortAnswers>,
    /// Switches whose LID belongs to another node by now.
    pub moved: Vec<SwitchId>,
    /// Switches of which no port has answered.
    pub silent: Vec<SwitchId>,
}

/// Reads the counters of watched ports, those of one switch after the other. Errors: [`TransportError::Lost`].
pub fn sweep<T: Transport>(
    client: &mut Client<T>,
    watched: &[WatchedPort],
    data: DataCounter,
    wants_time_cong: impl Fn(PortId) -> bool,
    interval: Span,
) -> Result<WatchedSweep, TransportError> {
    let mut plan = SweepPlan::default();
    let mut switches: Vec<SwitchId> = Vec::new();
    for port in watched {
        if switches.last() != Some(&port.switch) {
            switches.push(port.switch);
            plan.add_node(port.switch.index() as u32, port.lid, port.guid);
        }
        plan.add_port(SweptPort {
            number: PortNumber::new(port.number),
            extended: data == DataCounter::Wide && port.abilities.counters.extended,
            congestion: port.abilities.time_cong && wants_time_cong(port.id),
            notifications: false,
            capabilities: CounterCapabilities {
                additional: data == DataCounter::Wide && port.abilities.counters.additional,
                ..port.abilities.counters
            },
        });
    }
    let CounterSweep {
        nodes,
        ports: mut answers,
    } = plan.sweep(client, Some(skew(interval)))?;
    let (mut moved, mut silent) = (Vec::new(), Vec::new());
    for (place, (node, &switch)) in nodes.iter().zip(&switches).enumerate() {
        let own = &mut answers[plan.ports_of(place)];
        if own.iter().all(|port| port.arrived().is_none()) {
            silent.push(switch);
        }
        if node.identity == Identity::Moved {
            moved.push(switch);
        }
        if node.identity != Identity::Same {
            own.fill(PortAnswers::default());
        }
    }
    Ok(WatchedSweep {
        answers,
        moved,
        silent,
    })
}

fn skew(interval: Span) -> Span {
    Span::from_ps(interval.as_ps() / SKEW_SHARE).max(LEAST_SKEW)
}

/// Result of a port's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all of them are of the largest variant"
)]
pub enum Observed {
    /// The port has not answered, or too slowly.
    Nothing,
    /// The first reading, or one that cannot be compared with the last: counters were reset.
    Unknown,
    /// The link has been down since the last reading.
    Flapped,
    /// Growth since the last reading.
    Growth(CounterGrowth),
}

#[derive(Clone, Copy, Debug)]
struct MeteredCounter {
    index: usize,
    source: CounterSource,
}

/// Bits of CounterSelect, and of CounterSelect2 from bit 16 on.
fn selection(counters: &[MeteredCounter], attribute: SweptAttribute) -> u32 {
    let bits = counters
        .iter()
        .filter_map(|counter| counter.source.select(attribute));
    bits.fold(0, |selection, bit| selection | 1 << bit)
}

/// The last readings of all ports.
pub struct Meter {
    counters: Vec<MeteredCounter>,
    tracker: CounterTracker<MonotonicTime>,
    links_downed: Vec<Option<u64>>,
    tick: Span,
    interval: Span,
}

impl Meter {
    /// A meter read at about this interval; time counters grow in `tick`s, independent of the port's own.
    pub fn new(tick: Span, interval: Span) -> Self {
        let declared = silvan_core::PortCounters::ALL.iter().enumerate();
        let exported = declared.filter(|(_, counter)| counter.metric.is_some());
        let counters = exported.map(|(index, counter)| MeteredCounter {
            index,
            source: CounterSource::of_counter(counter),
        });
        Self {
            counters: counters.collect(),
            tracker: CounterTracker::default(),
            links_downed: Vec::new(),
            tick,
            interval,
        }
    }

    /// Takes the answers of a port.
    pub fn observe(&mut self, port: &WatchedPort, answers: &PortAnswers) -> Observed {
        const LINK_DOWNED: CounterSource = CounterSource::of_field("link_downed").narrow();
        let Some((at, downed)) = answers.arrived().zip(answers.counter(&LINK_DOWNED)) else {
            return Observed::Nothing;
        };
        if self.links_downed.len() <= port.id.index() {
            self.links_downed.resize(port.id.index() + 1, None);
        }
        let before = self.links_downed[port.id.index()].replace(downed.value);
        if before.is_some_and(|before| before < downed.value) {
            self.tracker.invalidate(port.id);
            return Observed::Flapped;
        }
        let near = answers.near(skew(self.interval));
        let mut reading = CounterReading {
            at,
            counters: [None; silvan_core::PortCounters::COUNT],
        };
        for counter in &self.counters {
            reading.counters[counter.index] = near.counter(&counter.source);
        }
        match self
            .tracker
            .observe(port.id, reading, port.words_per_second, port.tick)
        {
            Some(growth) => Observed::Growth(growth.in_ticks(port.tick, self.tick)),
            None => Observed::Unknown,
        }
    }

    /// Forgets a port.
    pub fn invalidate(&mut self, port: PortId) {
        self.tracker.invalidate(port);
        if let Some(downed) = self.links_downed.get_mut(port.index()) {
            *downed = None;
        }
    }

    /// Resets 32-bit counters that are about to stop, and returns their ports.
    pub fn reset_full<T: Transport>(
        &mut self,
        client: &mut Client<T>,
        watched: &[WatchedPort],
    ) -> Result<Vec<PortId>, TransportError> {
        let filling = watched
            .iter()
            .filter(|port| self.tracker.is_filling(port.id));
        let filling: Vec<&WatchedPort> = filling.collect();
        let select = selection(&self.counters, SweptAttribute::Counters);
        let select_congestion = selection(&self.counters, SweptAttribute::Congestion);
        let mut queries = Vec::new();
        for port in &filling {
            let port_select = PortNumber::new(port.number);
            let counters = PortCounters {
                port_select,
                counter_select: select as u16,
                counter_select2: (select >> 16) as u8,
                ..PortCounters::default()
            };
            let mut attributes: Vec<PerformanceAttribute> = vec![counters.into()];
            if port.abilities.time_cong {
                let control = PortXmitConCtrl {
                    port_select,
                    counter_select: select_congestion as u16,
                    ..PortXmitConCtrl::default()
                };
                attributes.push(control.into());
            }
            let node = port.switch.index() as u32;
            queries.extend(attributes.into_iter().map(|attribute| {
                let body = Body::Performance(attribute);
                Query::new(node, port.lid, Method::SET, body, 0)
            }));
        }
        client.ask(&queries)?;
        for port in &filling {
            self.tracker.invalidate(port.id);
        }
        Ok(filling.into_iter().map(|port| port.id).collect())
    }
}
