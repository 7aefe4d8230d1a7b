use silvan_cc::workload::{Chosen, Gate, Offer, Poll, Transit, Workload};
use silvan_core::prefetch::{prefetch, prefetch_item};
use silvan_core::{HostId, Time};

use crate::traffic::build::build;
use crate::traffic::closed_loop::{ClosedLoop, SequenceState};
use crate::traffic::error::TrafficError;
use crate::traffic::finite::FiniteFlow;
use crate::traffic::fixed::Fixed;
use crate::traffic::flow_list::{FlowList, FlowRecord};
use crate::traffic::hotspots::HotspotTable;
use crate::traffic::kinds::TrafficSection;
use crate::traffic::offered::OfferedLoad;
use crate::traffic::roles::Role;
use crate::traffic::scatter::{Common, Scatter};
use crate::traffic::send_queue::{OpenGate, SendQueue};
use crate::traffic::spec::Environment;

#[derive(Clone, Debug)]
pub(crate) enum Source {
    Scatter(Scatter),
    Fixed(Fixed),
    ClosedLoop(Box<ClosedLoop>),
    Flows(Box<FlowList>),
}

impl Source {
    /// `Ok` if a packet can start now, else the earliest start. Separate from [`emit`](Self::emit), so that answers
    /// stay in registers: copying a packet through memory costs more than all the rest.
    #[inline]
    fn ready<G: Gate>(
        &mut self,
        now: Time,
        commons: &[Common],
        hotspots: &mut HotspotTable,
        gate: &mut G,
    ) -> Result<(), Time> {
        match self {
            Self::Scatter(scatter) => scatter.ready(now, commons, hotspots, gate),
            Self::Fixed(fixed) => fixed.ready(now, gate),
            Self::ClosedLoop(sequence) => sequence.ready(now, gate),
            Self::Flows(flows) => flows.ready(now, gate),
        }
    }

    #[inline]
    fn emit(&mut self, commons: &[Common]) -> Offer {
        match self {
            Self::Scatter(scatter) => scatter.emit(commons),
            Self::Fixed(fixed) => fixed.emit(),
            Self::ClosedLoop(sequence) => sequence.emit(),
            Self::Flows(flows) => flows.emit(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct HostSources {
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) stopped: u32,
    pub(crate) turn: u32,
}

/// The traffic of all hosts, in any combination of entries.
///
/// A host serves its entries round robin by packet; one that cannot send loses its turn, or keeps a packet without
/// credits if the gate holds the lane. Memory is some 200 bytes per host and entry, and up to 6 KB for throttled queue
/// pairs. A host's traffic depends on the seed and its own gate.
#[derive(Clone, Debug)]
pub struct Traffic {
    pub(crate) hosts: Vec<HostSources>,
    pub(crate) sources: Vec<Source>,
    pub(crate) commons: Vec<Common>,
    pub(crate) hotspots: HotspotTable,
    pub(crate) followers: Vec<HostId>,
    pub(crate) roles: Vec<Role>,
    pub(crate) receives: Vec<bool>,
    pub(crate) targets: Vec<HostId>,
    pub(crate) finite: Vec<FiniteFlow>,
    pub(crate) needs_delivery: bool,
    pub(crate) comes_back: bool,
    pub(crate) classes: Vec<String>,
    pub(crate) offered: OfferedLoad,
    pub(crate) send_queues: Vec<SendQueue>,
    pub(crate) chosen: Vec<Chosen<u32>>,
}

impl Traffic {
    /// Checks the description and builds the traffic. Errors: [`TrafficError`] names the first entry and key at fault.
    pub fn new(spec: &TrafficSection, environment: &Environment) -> Result<Self, TrafficError> {
        build(spec, environment)
    }

    /// Names of the classes, by [`Offer::class`]: `v`, `c-hot`, `b-hot`, `b-uniform`, other entries, programs.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// A host's role; panics without such a host.
    ///
    /// Fractions become counts by largest remainder, ties in the order V, C, B, idle: of 648 hosts, 20 % and 80 % are
    /// 130 and 518. The placement seed places them; V nodes do not depend on C and B nodes.
    pub fn role(&self, host: HostId) -> Role {
        self.roles[host.index()]
    }

    /// The hotspots at an instant, one per subset of the C and of the B nodes; empty if there are none.
    pub fn hotspots(&self, at: Time) -> Vec<HostId> {
        let hotspots = self.hotspots.at(at).into_iter();
        hotspots.map(|host| HostId::new(host as usize)).collect()
    }

    /// The hosts that many others are meant to send to, such as the receivers of incasts, each once.
    pub fn targets(&self) -> &[HostId] {
        &self.targets
    }

    /// The flows of the description that have a given number of bytes, as they are at the start.
    pub fn finite_flows(&self) -> &[FiniteFlow] {
        &self.finite
    }

    fn sources_of(&self, host: HostId) -> &[Source] {
        let record = &self.hosts[host.index()];
        let first = record.first as usize;
        &self.sources[first..first + (record.count + record.stopped) as usize]
    }

    /// The sequences of a host. Panics if the fabric has no such host.
    pub fn sequences_of(&self, host: HostId) -> impl Iterator<Item = SequenceState> {
        let sources = self.sources_of(host).iter();
        sources.filter_map(move |source| match source {
            Source::ClosedLoop(sequence) => Some(sequence.state(host)),
            _ => None,
        })
    }

    /// About how many flows of entries of many start before `end`.
    pub fn expected_flows(&self, end: Time) -> u64 {
        let of_source = |source: &Source| match source {
            Source::Flows(flows) => flows.expected(end),
            _ => 0,
        };
        self.sources
            .iter()
            .map(of_source)
            .fold(0, u64::saturating_add)
    }

    /// A host's flows of entries of many up to `now`, with classes. Panics without such a host.
    pub fn flows_of(&self, host: HostId, now: Time) -> Vec<(u16, FlowRecord)> {
        let mut all = Vec::new();
        for source in self.sources_of(host) {
            if let Source::Flows(flows) = source {
                let records = flows.records(now).into_iter();
                all.extend(records.map(|record| (flows.class(), record)));
            }
        }
        all
    }

    /// Returns true if a host is a destination of some traffic at some time. Panics if the fabric has no such host.
    pub fn receives(&self, host: HostId) -> bool {
        self.receives[host.index()]
    }

    /// A host's offered load [bit/s of payload]: its sources', each at most the injection rate. Panics without such a
    /// host.
    ///
    /// Flows count until their end, sequences as zero, because they offer as much as is delivered.
    pub fn offered_load(&self, host: HostId, at: Time) -> f64 {
        self.offered.of(host, at)
    }

    /// `tmax` of gran2012, section V-B, at `at` [bit/s of payload]: "the maximum average receive rate the non-hotspots
    /// could possibly achieve if the hotspots were not present".
    ///
    /// With injection rates R(s), uniform shares u(s) (1 for a V node, 1 - p for a B node, 0 for a C node, a uniform
    /// entry's load), n hosts and hotspots H: tmax = sum over d not in H, sum over s other than d, of u(s) R(s) / (n -
    /// 1), over (n - |H|). At R = 13.5 Gbit/s, 20 % V nodes give 2.7 (Table II). 0 if every host is a hotspot.
    pub fn tmax(&self, at: Time) -> f64 {
        self.offered.tmax(&self.hotspots.at(at), at)
    }
}

impl Traffic {
    #[inline]
    fn ready_source<G: Gate>(
        &mut self,
        host: HostId,
        now: Time,
        gate: &mut G,
    ) -> Result<usize, Time> {
        let HostSources {
            first, count, turn, ..
        } = self.hosts[host.index()];
        let sources = &mut self.sources[first as usize..(first + count) as usize];
        if let [only] = sources {
            let ready = only.ready(now, &self.commons, &mut self.hotspots, gate);
            return ready.map(|()| first as usize);
        }
        let mut wait = Time::MAX;
        let before = self.chosen[host.index()];
        for (lane, place) in before.iter() {
            let chosen = &mut self.chosen[host.index()];
            let Some(source) = sources.get_mut(place as usize) else {
                chosen.remove(lane);
                continue;
            };
            match source.ready(now, &self.commons, &mut self.hotspots, gate) {
                Ok(()) => {
                    chosen.remove(lane);
                    self.hosts[host.index()].turn = (place + 1) % count;
                    return Ok((first + place) as usize);
                }
                Err(instant) => {
                    if gate.held_lanes() >> lane & 1 == 0 {
                        chosen.remove(lane);
                    }
                    wait = wait.min(instant);
                }
            }
        }
        for step in 0..count {
            let place = if turn + step < count {
                turn + step
            } else {
                turn + step - count
            };
            if !before.is_empty() && before.contains(place) {
                continue;
            }
            let held = gate.held_lanes();
            let source = &mut sources[place as usize];
            match source.ready(now, &self.commons, &mut self.hotspots, gate) {
                Ok(()) => {
                    self.hosts[host.index()].turn = (place + 1) % count;
                    return Ok((first + place) as usize);
                }
                Err(instant) => {
                    self.chosen[host.index()].note(held, gate.held_lanes(), place);
                    wait = wait.min(instant);
                }
            }
        }
        Err(wait)
    }

    fn invalidate_releases(&mut self, host: HostId, of_scatter: impl Fn(&mut Scatter)) {
        let HostSources { first, count, .. } = self.hosts[host.index()];
        for source in &mut self.sources[first as usize..(first + count) as usize] {
            match source {
                Source::Scatter(scatter) => of_scatter(scatter),
                Source::Fixed(fixed) => fixed.invalidate_releases(),
                Source::ClosedLoop(sequence) => sequence.invalidate_releases(),
                Source::Flows(flows) => flows.invalidate_releases(),
            }
        }
    }

    /// Next packet of a host's only queue; makes a message if it is empty.
    fn poll_queue<G: Gate>(&mut self, host: HostId, now: Time, gate: &mut G) -> Poll {
        if self.send_queues[host.index()].is_empty() {
            let mut open = OpenGate { gate, now };
            let source = match self.ready_source(host, now, &mut open) {
                Ok(source) => &mut self.sources[source],
                Err(wait) => return waiting(now, wait),
            };
            let first = source.emit(&self.commons);
            let (mut bytes, mut last) = (u64::from(first.bytes), first.last);
            while !last
                && source
                    .ready(now, &self.commons, &mut self.hotspots, &mut open)
                    .is_ok()
            {
                let packet = source.emit(&self.commons);
                bytes += u64::from(packet.bytes);
                last = packet.last;
            }
            self.send_queues[host.index()].push(first, bytes);
        }
        self.send_queues[host.index()].poll(now, gate)
    }
}

#[inline]
fn waiting(now: Time, wait: Time) -> Poll {
    if wait == Time::MAX {
        return Poll::Idle;
    }
    debug_assert!(wait > now, "a source waits for the past");
    Poll::WaitUntil(wait)
}

impl Workload for Traffic {
    #[inline]
    fn needs_delivery(&self) -> bool {
        self.needs_delivery
    }

    #[inline]
    fn prefetch_poll(&self, host: HostId) {
        prefetch(&self.hosts, host.index());
    }

    #[inline]
    fn prefetch_poll_data(&self, host: HostId) {
        let first = self.hosts[host.index()].first as usize;
        if let Some(source) = self.sources.get(first) {
            prefetch_item(source);
        }
    }

    #[inline]
    fn poll<G: Gate>(&mut self, host: HostId, now: Time, gate: &mut G) -> Poll {
        if !self.send_queues.is_empty() {
            return self.poll_queue(host, now, gate);
        }
        match self.ready_source(host, now, gate) {
            Ok(source) => Poll::Send(self.sources[source].emit(&self.commons)),
            Err(wait) => waiting(now, wait),
        }
    }

    fn next_change(&self, now: Time) -> Option<Time> {
        if self.followers.is_empty() {
            return None;
        }
        self.hotspots.next_move(now)
    }

    fn apply_change(&mut self, now: Time, wake: &mut Vec<HostId>) {
        self.hotspots.advance(now);
        wake.extend_from_slice(&self.followers);
    }

    fn on_release_moved(&mut self, host: HostId) {
        self.invalidate_releases(host, Scatter::invalidate_releases);
    }

    fn on_flow_release_moved(&mut self, host: HostId, dst: HostId) {
        self.invalidate_releases(host, |scatter| scatter.invalidate_releases_to(dst));
    }

    fn on_lanes_opened(&mut self, host: HostId) {
        self.invalidate_releases(host, Scatter::invalidate_lanes);
    }

    fn on_delivered(
        &mut self,
        src: HostId,
        offer: &Offer,
        transit: Transit,
        now: Time,
        wake: &mut Vec<HostId>,
    ) {
        let record = &self.hosts[src.index()];
        let first = record.first as usize;
        let end = first + (record.count + record.stopped) as usize;
        for source in &mut self.sources[first..end] {
            let wakes = match source {
                Source::ClosedLoop(sequence) if sequence.class() == offer.class => {
                    sequence.deliver(offer.bytes, now)
                }
                Source::Flows(flows) if flows.class() == offer.class => {
                    flows.deliver(offer, transit, now)
                }
                _ => continue,
            };
            if wakes {
                wake.push(src);
            }
            return;
        }
    }
}
