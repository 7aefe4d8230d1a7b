//! Sweeps of the counters, and what they have grown by.

use silvan_core::{MonotonicTime, PortId, PortNumber, Span, SwitchId};
use silvan_mad::performance::{PortCounters, PortCountersExtended, PortXmitConCtrl};
use silvan_mad::smp::{NodeInfo, Smp, SmpRoute};
use silvan_mad::{Body, FieldLocation, Method};

use crate::client::{Answer, Client, Query, RequestResult};
use crate::machine::{CounterGrowth, CounterTracker, RawCounter, RawReading};
use crate::settings::DataCounter;
use crate::transport::{Transport, TransportError};
use crate::watch::WatchedPort;

/// The part of an interval by which readings of one port may lie apart in time, and which an answer
/// may take.
const SKEW_SHARE: u64 = 10;
/// Skew that is always allowed.
const LEAST_SKEW: Span = Span::from_ms(100);

/// What a port has answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortReading {
    /// PortCounters, and when they came.
    pub counters: Option<(MonotonicTime, PortCounters)>,
    /// PortCountersExtended, and when they came.
    pub extended: Option<(MonotonicTime, PortCountersExtended)>,
    /// PortXmitConCtrl, and when it came.
    pub congestion: Option<(MonotonicTime, PortXmitConCtrl)>,
}

#[derive(Clone, Copy)]
enum QueryKind {
    /// Whether the switch is still the one that had this LID.
    Identity,
    Counters,
    Extended,
    Congestion,
}

/// What a sweep has brought.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// What each port has answered, in the order of the ports.
    pub readings: Vec<PortReading>,
    /// Switches whose LID belongs to another node by now, and of which nothing is taken.
    pub moved: Vec<SwitchId>,
    /// Switches of which no port has answered.
    pub silent: Vec<SwitchId>,
}

/// Reads the counters of watched ports, those of one switch after the other.
///
/// # Errors
///
/// [`TransportError::Lost`].
pub fn sweep<T: Transport>(
    client: &mut Client<T>,
    watched: &[WatchedPort],
    data: DataCounter,
    wants_time_cong: impl Fn(PortId) -> bool,
    interval: Span,
) -> Result<Sweep, TransportError> {
    let mut queries = Vec::with_capacity(watched.len() * 3);
    let mut meanings = Vec::with_capacity(watched.len() * 3);
    let mut asked = None;
    for (location, port) in watched.iter().enumerate() {
        let select = PortNumber::new(port.number);
        let mut ask = |body, kind| {
            let node = port.switch.index() as u32;
            queries.push(Query::new(node, port.lid, Method::GET, body, 0));
            meanings.push((location, kind));
        };
        if asked.replace(port.switch) != Some(port.switch) {
            ask(node_info(), QueryKind::Identity);
        }
        let counters = PortCounters {
            port_select: select,
            ..PortCounters::default()
        };
        ask(Body::Performance(counters.into()), QueryKind::Counters);
        if data == DataCounter::Wide && port.abilities.extended {
            let extended = PortCountersExtended {
                port_select: select,
                ..PortCountersExtended::default()
            };
            ask(Body::Performance(extended.into()), QueryKind::Extended);
        }
        if port.abilities.time_cong && wants_time_cong(port.id) {
            let control = PortXmitConCtrl {
                port_select: select,
                ..PortXmitConCtrl::default()
            };
            ask(Body::Performance(control.into()), QueryKind::Congestion);
        }
    }
    let slowest = skew(interval);
    let mut readings = vec![PortReading::default(); watched.len()];
    let mut moved = Vec::new();
    let mut unidentified = Vec::new();
    for ((location, kind), outcome) in meanings.into_iter().zip(client.ask(&queries)?) {
        let Some(answer) = prompt(outcome, slowest) else {
            if matches!(kind, QueryKind::Identity) {
                unidentified.push(watched[location].switch);
            }
            continue;
        };
        let reading = &mut readings[location];
        let port = watched[location].number;
        match kind {
            QueryKind::Identity => {
                let guid = NodeInfo::parse(&answer.data()).node_guid;
                if guid != watched[location].guid {
                    moved.push(watched[location].switch);
                }
            }
            QueryKind::Counters => {
                let counters = PortCounters::parse(&answer.data());
                if counters.port_select.as_u8() == port {
                    reading.counters = Some((answer.at, counters));
                }
            }
            QueryKind::Extended => {
                let counters = PortCountersExtended::parse(&answer.data());
                if counters.port_select.as_u8() == port {
                    reading.extended = Some((answer.at, counters));
                }
            }
            QueryKind::Congestion => {
                let control = PortXmitConCtrl::parse(&answer.data());
                if control.port_select.as_u8() == port {
                    reading.congestion = Some((answer.at, control));
                }
            }
        }
    }
    let mut silent = Vec::new();
    for (ports, readings) in by_switch(watched, &mut readings) {
        let switch = ports[0].switch;
        if readings.iter().all(|reading| reading.counters.is_none()) {
            silent.push(switch);
        }
        if moved.contains(&switch) || unidentified.contains(&switch) {
            readings.fill(PortReading::default());
        }
    }
    Ok(Sweep {
        readings,
        moved,
        silent,
    })
}

/// What asks a node who it is, by its LID.
pub(crate) fn node_info() -> Body {
    Body::Smp(Smp {
        m_key: 0,
        route: SmpRoute::Lid,
        attribute: NodeInfo::default().into(),
    })
}

/// Ports with their readings, switch by switch.
fn by_switch<'a>(
    mut watched: &'a [WatchedPort],
    mut readings: &'a mut [PortReading],
) -> Vec<(&'a [WatchedPort], &'a mut [PortReading])> {
    let mut parts = Vec::new();
    while let Some(first) = watched.first() {
        let same = watched
            .iter()
            .take_while(|port| port.switch == first.switch);
        let count = same.count();
        let (ports, more_ports) = watched.split_at(count);
        let (own, more) = readings.split_at_mut(count);
        parts.push((ports, own));
        (watched, readings) = (more_ports, more);
    }
    parts
}

fn skew(interval: Span) -> Span {
    Span::from_ps(interval.as_ps() / SKEW_SHARE).max(LEAST_SKEW)
}

/// An answer that came soon enough to say when the counters were read.
fn prompt(outcome: RequestResult, slowest: Span) -> Option<Answer> {
    let answer = outcome.ok()?;
    let took = answer.at.checked_since(answer.sent)?;
    (took <= slowest).then_some(answer)
}

/// What a port's reading has told.
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

/// Where a sweep finds a counter.
#[derive(Clone, Copy, Debug)]
struct Sources {
    /// Its place in [`silvan_core::PortCounters::ALL`].
    index: usize,
    counters: Option<FieldLocation>,
    extended: Option<FieldLocation>,
    congestion: Option<FieldLocation>,
}

impl Sources {
    /// Those of all counters that are exported.
    fn all() -> Vec<Self> {
        let declared = silvan_core::PortCounters::ALL.iter().enumerate();
        let exported = declared.filter(|(_, counter)| counter.metric.is_some());
        let sources = exported.map(|(index, counter)| {
            let find = |attribute, fields: &[FieldLocation]| {
                let location = |location: &&FieldLocation| counter.is_in(attribute, location.name);
                fields.iter().find(location).copied()
            };
            // Only some switches have the additional counters; the others of 32 bits are reset in time.
            let is_everywhere = |location: &FieldLocation| location.select < Some(FIRST_ADDITIONAL);
            Self {
                index,
                counters: find("PortCounters", PortCounters::FIELDS),
                extended: find("PortCountersExtended", PortCountersExtended::FIELDS)
                    .filter(is_everywhere),
                congestion: find("PortXmitConCtrl", PortXmitConCtrl::FIELDS),
            }
        });
        sources.collect()
    }
}

/// The bit of CounterSelect2 that selects the first additional counter of PortCountersExtended.
const FIRST_ADDITIONAL: u8 = 16;

/// The bits of CounterSelect, and of CounterSelect2 from bit 16 on, that select these fields.
fn selection(fields: impl Iterator<Item = Option<FieldLocation>>) -> u32 {
    let bits = fields.flatten().filter_map(|location| location.select);
    bits.fold(0, |selection, bit| selection | 1 << bit)
}

/// The last readings of all ports.
pub struct Meter {
    sources: Vec<Sources>,
    tracker: CounterTracker<MonotonicTime>,
    links_downed: Vec<Option<u8>>,
    interval: Span,
}

impl Meter {
    /// A meter for counters of time with this tick, read at about this interval.
    pub fn new(tick: Span, interval: Span) -> Self {
        Self {
            sources: Sources::all(),
            tracker: CounterTracker::new(tick),
            links_downed: Vec::new(),
            interval,
        }
    }

    /// Takes the reading of a port.
    pub fn observe(&mut self, port: &WatchedPort, reading: &PortReading) -> Observed {
        let Some((at, counters)) = reading.counters else {
            return Observed::Nothing;
        };
        if self.links_downed.len() <= port.id.index() {
            self.links_downed.resize(port.id.index() + 1, None);
        }
        let downed = self.links_downed[port.id.index()].replace(counters.link_downed);
        if downed.is_some_and(|before| before < counters.link_downed) {
            self.tracker.invalidate(port.id);
            return Observed::Flapped;
        }
        let nearest = skew(self.interval);
        let is_near = |other: MonotonicTime| {
            let apart = other.checked_since(at).or_else(|| at.checked_since(other));
            apart.is_some_and(|apart| apart <= nearest)
        };
        let extended = reading.extended.filter(|(at, _)| is_near(*at));
        let extended = extended.map(|(_, attribute)| attribute.emit());
        let congestion = reading.congestion.filter(|(at, _)| is_near(*at));
        let congestion = congestion.map(|(_, attribute)| attribute.emit());
        let counters = counters.emit();
        let mut raw = RawReading {
            at,
            counters: [None; silvan_core::PortCounters::COUNT],
        };
        for sources in &self.sources {
            let read = |location: FieldLocation, bytes: &[u8]| {
                RawCounter::of_width(location.read(bytes, 0), location.width)
            };
            let wide = sources.extended.zip(extended.as_ref());
            let wide = wide.map(|(location, bytes)| read(location, bytes));
            let narrow = || sources.counters.map(|location| read(location, &counters));
            let of_congestion = || {
                let (location, bytes) = sources.congestion.zip(congestion.as_ref())?;
                Some(read(location, bytes))
            };
            raw.counters[sources.index] = wide.or_else(narrow).or_else(of_congestion);
        }
        match self.tracker.observe(port.id, raw, port.words_per_second) {
            Some(growth) => Observed::Growth(growth),
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

    /// Sets the counters of 32 bits that are about to stop to 0. Gives the ports whose counters were
    /// reset.
    ///
    /// # Errors
    ///
    /// [`TransportError::Lost`].
    pub fn reset_full<T: Transport>(
        &mut self,
        client: &mut Client<T>,
        watched: &[WatchedPort],
    ) -> Result<Vec<PortId>, TransportError> {
        let filling = watched
            .iter()
            .filter(|port| self.tracker.is_filling(port.id));
        let filling: Vec<&WatchedPort> = filling.collect();
        let select = selection(self.sources.iter().map(|sources| sources.counters));
        let select_congestion = selection(self.sources.iter().map(|sources| sources.congestion));
        let mut queries = Vec::new();
        for port in &filling {
            let node = port.switch.index() as u32;
            let counters = PortCounters {
                port_select: PortNumber::new(port.number),
                counter_select: select as u16,
                counter_select2: (select >> 16) as u8,
                ..PortCounters::default()
            };
            let mut bodies = vec![Body::Performance(counters.into())];
            if port.abilities.time_cong {
                let control = PortXmitConCtrl {
                    port_select: PortNumber::new(port.number),
                    counter_select: select_congestion as u16,
                    ..PortXmitConCtrl::default()
                };
                bodies.push(Body::Performance(control.into()));
            }
            let queries_of_port = bodies
                .into_iter()
                .map(|body| Query::new(node, port.lid, Method::SET, body, 0));
            queries.extend(queries_of_port);
        }
        // Whether it worked is seen at the next sweep.
        client.ask(&queries)?;
        for port in &filling {
            self.tracker.invalidate(port.id);
        }
        Ok(filling.into_iter().map(|port| port.id).collect())
    }
}
