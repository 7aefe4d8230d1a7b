//! Supply of messages of V, C and B nodes and uniform entries; hotspot messages are made when they can start.

use rand_core::RngCore;
use silvan_cc::workload::Gate;
use silvan_core::{HostId, Span, Time};

use crate::traffic::hotspots::HotspotTable;
use crate::traffic::pace::Pace;
use crate::traffic::parking::{Append, Kind, Message, Parking};
use crate::traffic::rng::{Stream, below};
use crate::traffic::scatter::Common;
use crate::traffic::share::{CapLimits, ShareCap, WHOLE};

/// Draws per poll; with 8 hotspots among 648 hosts, all fail once in 10^15 polls.
const MAX_DRAWS: u32 = 8;

#[derive(Clone, Debug)]
pub(crate) struct Spread {
    host: HostId,
    stream: Stream,
    pub(crate) current: Message,
    pub(crate) parking: Parking,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drawn {
    Start,
    Held,
    Refused,
}

impl Spread {
    pub(crate) fn new(host: HostId, stream: Stream) -> Self {
        Self {
            host,
            stream,
            current: Message {
                dst: host,
                left: 0,
                kind: Kind::Uniform,
            },
            parking: Parking::new(),
        }
    }

    #[inline]
    fn draw<G: Gate>(&mut self, now: Time, common: &Common, gate: &mut G) -> Drawn {
        if self.parking.is_full() {
            return Drawn::Refused;
        }
        let own = u32::from(!common.loopback);
        let drawn = below(&mut self.stream, common.hosts - own) as usize;
        let above = !common.loopback && drawn >= self.host.index();
        let dst = HostId::new(drawn + usize::from(above));
        match self.parking.append(dst, common.backlog) {
            Append::Held => return Drawn::Held,
            Append::Full => return Drawn::Refused,
            Append::NoQueue => {}
        }
        let release = gate.release(dst, common.sl);
        if release <= now {
            self.start(dst, Kind::Uniform, common);
            return Drawn::Start;
        }
        self.parking.hold(dst, release);
        Drawn::Held
    }

    /// Makes a message to a hotspot the current one, or returns the end of its throttling.
    fn start_hot<G: Gate>(
        &mut self,
        hotspot: HostId,
        now: Time,
        common: &Common,
        gate: &mut G,
    ) -> Result<(), Time> {
        let release = match self.parking.release_of(hotspot, Kind::Hot) {
            Some(release) => release,
            None => gate.release(hotspot, common.sl),
        };
        if release > now {
            return Err(release);
        }
        self.start(hotspot, Kind::Hot, common);
        Ok(())
    }

    #[inline]
    fn start(&mut self, dst: HostId, kind: Kind, common: &Common) {
        self.current.dst = dst;
        self.current.left = common.message;
        self.current.kind = kind;
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Supply {
    Uniform,
    Hot {
        subset: u32,
    },
    Mixed(Box<Mixed>),
    /// A message to a random host at each arrival.
    Paced(Box<Pace>),
}

impl Supply {
    /// Makes a new message the current one, or returns the earliest instant of one, without the queues of `spread`.
    #[inline]
    pub(crate) fn draw<G: Gate>(
        &mut self,
        spread: &mut Spread,
        now: Time,
        common: &Common,
        hotspots: &mut HotspotTable,
        gate: &mut G,
    ) -> Result<(), Time> {
        match self {
            Self::Uniform => {
                for _ in 0..MAX_DRAWS {
                    if spread.draw(now, common, gate) == Drawn::Start {
                        return Ok(());
                    }
                }
                Err(Time::MAX)
            }
            Self::Hot { subset } => {
                hotspots.advance(now);
                let target = hotspots.target(spread.host, *subset).ok_or(Time::MAX)?;
                spread.start_hot(target, now, common, gate)
            }
            Self::Mixed(mixed) => {
                hotspots.advance(now);
                let target = hotspots.target(spread.host, mixed.subset);
                mixed.draw(spread, target, now, common, gate)
            }
            Self::Paced(pace) => {
                for _ in 0..MAX_DRAWS {
                    if !pace.ready(now) {
                        return Err(pace.due());
                    }
                    let drawn = spread.draw(now, common, gate);
                    if drawn != Drawn::Refused {
                        pace.advance();
                    }
                    if drawn == Drawn::Start {
                        return Ok(());
                    }
                }
                Err(Time::MAX)
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Mixed {
    subset: u32,
    /// Probability of a hotspot message, in units of 1 / [`WHOLE`].
    probability: u64,
    message_time: Span,
    limits: CapLimits,
    hot: ShareCap,
    uniform: ShareCap,
}

impl Mixed {
    pub(crate) fn new(
        subset: u32,
        probability: u64,
        message_time: Span,
        limits: CapLimits,
    ) -> Self {
        Self {
            subset,
            probability,
            message_time,
            limits,
            hot: ShareCap::new(probability),
            uniform: ShareCap::new(WHOLE - probability),
        }
    }

    /// A message of a random class within its share of time; of the other class if that is throttled.
    fn draw<G: Gate>(
        &mut self,
        spread: &mut Spread,
        mut target: Option<HostId>,
        now: Time,
        common: &Common,
        gate: &mut G,
    ) -> Result<(), Time> {
        let limits = &self.limits;
        let mut hot_release = Time::MAX;
        let mut draws_left = MAX_DRAWS;
        loop {
            let hot_ready = target.filter(|_| self.hot.ready(now, limits));
            let uniform_ready = draws_left > 0 && self.uniform.ready(now, limits);
            match hot_ready {
                Some(hotspot)
                    if !uniform_ready || u64::from(spread.stream.next_u32()) < self.probability =>
                {
                    match spread.start_hot(hotspot, now, common, gate) {
                        Ok(()) => {
                            self.hot.charge(now, self.message_time, limits);
                            return Ok(());
                        }
                        Err(release) => {
                            hot_release = release;
                            target = None;
                        }
                    }
                }
                _ if uniform_ready => {
                    draws_left -= 1;
                    let drawn = spread.draw(now, common, gate);
                    if drawn != Drawn::Refused {
                        self.uniform.charge(now, self.message_time, limits);
                    }
                    if drawn == Drawn::Start {
                        return Ok(());
                    }
                }
                _ => break,
            }
        }
        let mut wait = hot_release;
        if target.is_some() {
            wait = wait.min(self.hot.due(limits));
        }
        if !self.uniform.ready(now, limits) {
            wait = wait.min(self.uniform.due(limits));
        }
        Err(wait)
    }
}
