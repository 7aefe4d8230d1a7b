//! A host of a mock engine: injection pace, random congestion control, credits that come and go.

use std::collections::{BTreeMap, BTreeSet};

use silvan_cc::workload::{Gate, Offer, Poll, Workload};
use silvan_core::{Bytes, HostId, Rate, Sl, Span, Time, Vl};
use silvan_workload::traffic::{
    Environment, Flow, HostRef, Hotspots, Nodes, RoleShare, Selection, Traffic, TrafficSection,
};

pub const MTU: u64 = 2048;

/// Injection rate of every host of these tests.
pub fn injection() -> Rate {
    Rate::from_bits_per_sec(13_500_000_000).unwrap()
}

pub fn environment(hosts: usize, seed: u64) -> Environment {
    Environment::unnamed(vec![injection(); hosts], Bytes::from_bytes(MTU), seed)
}

pub fn host(index: usize) -> HostId {
    HostId::new(index)
}

/// The span in which a host injects `bytes` bytes.
pub fn injection_time(bytes: u64) -> Span {
    injection().span_for(Bytes::from_bytes(bytes))
}

/// Nodes by fractions of all hosts, 8 hotspots that stay, everything else at its default.
pub fn nodes(v: f64, c: f64, b: f64, p: f64) -> Nodes {
    Nodes {
        v: RoleShare::Fraction(v),
        c: RoleShare::Fraction(c),
        b: RoleShare::Fraction(b),
        p: p * 100.0,
        hotspots: Hotspots::Random(8),
        ..Nodes::default()
    }
}

/// Returns hosts as references of an entry.
pub fn refs(hosts: impl IntoIterator<Item = usize>) -> Vec<HostRef> {
    hosts.into_iter().map(|index| host(index).into()).collect()
}

pub fn given(hosts: impl IntoIterator<Item = usize>) -> Selection {
    Selection::Given(refs(hosts))
}

pub fn only_nodes(nodes: Nodes) -> TrafficSection {
    TrafficSection {
        nodes: Some(nodes),
        ..TrafficSection::default()
    }
}

/// A saturating flow without end.
pub fn flow(from: usize, to: usize) -> Flow {
    Flow::new(host(from).into(), host(to).into())
}

pub fn flows(flow: Vec<Flow>) -> TrafficSection {
    TrafficSection {
        flow,
        ..TrafficSection::default()
    }
}

/// A packet that a host started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub at: Time,
    pub offer: Offer,
}

/// Random numbers of the mock, apart from those under test (an LCG of Knuth's, upper half).
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Behaviour of the mock's congestion control and credits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// Percentage of packets that throttle their own flow.
    pub throttle_percent: u64,
    /// Longest throttling.
    pub throttle: Span,
    /// Percentage of packets that are followed by a time without credits.
    pub close_percent: u64,
    /// Longest time without credits.
    pub close: Span,
    /// Percentage of packets that are followed by the release of all throttled flows.
    pub amnesty_percent: u64,
    /// Percentage of packets that are followed by the release of one throttled flow.
    pub pardon_percent: u64,
    /// Percentage of packets that leave the lane of their flow without credits. Equally many other packets give credits
    /// to all lanes.
    pub dry_percent: u64,
}

/// A host and its gate.
pub struct MockHost {
    host: HostId,
    pub now: Time,
    /// The last change of the traffic that was applied.
    changed: Time,
    /// Flows throttled until an instant.
    pub throttled: BTreeMap<(HostId, Sl), Time>,
    /// Service levels without credits until an instant.
    pub closed: BTreeMap<Sl, Time>,
    /// Lanes without credits; see [`lane_of`].
    pub dry: BTreeSet<Vl>,
    /// True if the gate names the lane that a flow waits for. No flow may be throttled then.
    pub keeps_lanes: bool,
    /// True if notifications name the flow that may send earlier, or the lanes with credits; otherwise they only say
    /// that there is a change.
    pub tells_what: bool,
    weather: Weather,
    random: Random,
    pub log: Vec<Sent>,
}

struct MockGate<'a> {
    now: Time,
    throttled: &'a BTreeMap<(HostId, Sl), Time>,
    closed: &'a BTreeMap<Sl, Time>,
    dry: &'a BTreeSet<Vl>,
    keeps_lanes: bool,
    awaited: Option<Vl>,
}

fn lane_of(dst: HostId) -> Vl {
    Vl::try_new((dst.index() % 8) as u8).unwrap()
}

impl Gate for MockGate<'_> {
    fn release(&mut self, dst: HostId, sl: Sl) -> Time {
        let release = self.throttled.get(&(dst, sl)).copied().unwrap_or(self.now);
        let waits = release <= self.now && self.dry.contains(&lane_of(dst));
        self.awaited = waits.then(|| lane_of(dst));
        if waits { Time::MAX } else { release }
    }

    fn lacks_credits(&self) -> bool {
        self.awaited.is_some()
    }

    fn awaited_lane(&self) -> Option<Vl> {
        self.awaited.filter(|_| self.keeps_lanes)
    }

    fn awaits(&mut self, lane: Vl) -> bool {
        self.dry.contains(&lane)
    }

    fn lane_open(&mut self, sl: Sl, bytes: u32) -> bool {
        assert!(bytes > 0 && u64::from(bytes) <= MTU);
        self.closed.get(&sl).is_none_or(|&until| until <= self.now)
    }
}

impl MockHost {
    pub fn new(host: usize, weather: Weather, seed: u64) -> Self {
        Self {
            host: HostId::new(host),
            now: Time::ZERO,
            changed: Time::ZERO,
            throttled: BTreeMap::new(),
            closed: BTreeMap::new(),
            dry: BTreeSet::new(),
            keeps_lanes: false,
            tells_what: false,
            weather,
            random: Random::new(seed),
            log: Vec::new(),
        }
    }

    /// A host whose gate never closes.
    pub fn unthrottled(host: usize) -> Self {
        Self::new(host, Weather::default(), 0)
    }

    /// Polls until `end` as the engine does, or until the host has nothing more to do.
    pub fn run(&mut self, traffic: &mut Traffic, end: Time) {
        while self.now < end && self.step(traffic) {}
    }

    /// Sends `count` packets, waiting as long as it takes.
    pub fn send_packets(&mut self, traffic: &mut Traffic, count: usize) {
        let wanted = self.log.len() + count;
        while self.log.len() < wanted {
            assert!(self.step(traffic), "nothing left to send");
        }
    }

    /// Polls once and advances to the next poll; returns false if there is none.
    pub fn step(&mut self, traffic: &mut Traffic) -> bool {
        while let Some(at) = traffic
            .next_change(self.changed)
            .filter(|&at| at <= self.now)
        {
            let mut wake = Vec::new();
            traffic.apply_change(at, &mut wake);
            assert!(wake.is_sorted_by(|a, b| a < b), "no host is woken twice");
            self.changed = at;
        }
        let mut gate = MockGate {
            now: self.now,
            throttled: &self.throttled,
            closed: &self.closed,
            dry: &self.dry,
            keeps_lanes: self.keeps_lanes,
            awaited: None,
        };
        let reopens = self
            .closed
            .values()
            .filter(|&&until| until > self.now)
            .min();
        let moves = traffic.next_change(self.now);
        let woken = reopens.copied().into_iter().chain(moves).min();
        let next = match traffic.poll(self.host, self.now, &mut gate) {
            Poll::Send(offer) => {
                self.check(&offer, &mut gate);
                self.log.push(Sent {
                    at: self.now,
                    offer,
                });
                let next = self.now + injection_time(u64::from(offer.bytes));
                self.change_weather(&offer, next, traffic);
                next
            }
            Poll::WaitUntil(until) => {
                assert!(until > self.now, "waits for the past");
                woken.map_or(until, |woken| woken.min(until))
            }
            Poll::Idle => match woken {
                Some(woken) => woken,
                None => return false,
            },
        };
        self.now = next;
        true
    }

    fn check(&self, offer: &Offer, gate: &mut MockGate) {
        assert_ne!(offer.dst, self.host);
        assert!(offer.bytes > 0 && u64::from(offer.bytes) <= MTU);
        assert!(gate.release(offer.dst, offer.sl) <= self.now, "throttled");
        assert!(gate.lane_open(offer.sl, offer.bytes), "no credits");
    }

    fn change_weather(&mut self, offer: &Offer, next: Time, traffic: &mut Traffic) {
        let weather = self.weather;
        if self.random.below(100) < weather.throttle_percent {
            let throttled = Span::from_ps(self.random.below(weather.throttle.as_ps()) + 1);
            self.throttled
                .insert((offer.dst, offer.sl), next + throttled);
        }
        if self.random.below(100) < weather.close_percent {
            let closed = Span::from_ps(self.random.below(weather.close.as_ps()) + 1);
            self.closed.insert(offer.sl, next + closed);
        }
        if self.random.below(100) < weather.amnesty_percent {
            self.throttled.clear();
            traffic.on_release_moved(self.host);
        }
        if self.random.below(100) < weather.pardon_percent && !self.throttled.is_empty() {
            let place = self.random.below(self.throttled.len() as u64) as usize;
            let flow = self.throttled.keys().nth(place).copied();
            if let Some((dst, sl)) = flow {
                self.throttled.remove(&(dst, sl));
                match self.tells_what {
                    true => traffic.on_flow_release_moved(self.host, dst),
                    false => traffic.on_release_moved(self.host),
                }
            }
        }
        if self.random.below(100) < weather.dry_percent {
            self.dry.insert(lane_of(offer.dst));
        }
        if self.random.below(100) < weather.dry_percent {
            self.fill_lanes(traffic);
        }
    }

    /// Gives credits to all lanes.
    pub fn fill_lanes(&mut self, traffic: &mut Traffic) {
        self.dry.clear();
        match self.tells_what {
            true => traffic.on_lanes_opened(self.host),
            false => traffic.on_release_moved(self.host),
        }
    }

    pub fn bytes_of_class(&self, class: u16) -> u64 {
        let of_class = self.log.iter().filter(|sent| sent.offer.class == class);
        of_class.map(|sent| u64::from(sent.offer.bytes)).sum()
    }
}

pub fn class(traffic: &Traffic, name: &str) -> u16 {
    let found = traffic.classes().iter().position(|class| class == name);
    found.unwrap() as u16
}
