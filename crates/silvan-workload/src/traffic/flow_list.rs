use std::collections::VecDeque;
use std::sync::Arc;

use silvan_cc::workload::{Gate, Offer, Transit};
use silvan_core::{Bytes, HostId, Sl, Span, Time};

use crate::traffic::arrivals::Arrivals;
use crate::traffic::flow_targets::{Incasts, Targets};
use crate::traffic::pace::Pace;
use crate::traffic::rng::Stream;
use crate::traffic::sizes::Sizes;
use crate::traffic::spec::Window;

#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowListPlan {
    pub(crate) sl: Sl,
    pub(crate) class: u16,
    pub(crate) mtu: u32,
    pub(crate) window: Window,
    pub(crate) count: u64,
    pub(crate) whole: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Starts {
    Open(Box<Pace>),
    Closed { due: VecDeque<Time>, pause: Span },
    Incasts(Box<Incasts>),
}

pub(crate) type ListedFlow = (Time, HostId, u64);

#[derive(Clone, Debug)]
pub(crate) enum FlowSupply {
    Drawn {
        starts: Starts,
        targets: Targets,
        sizes: Sizes,
        draws: Stream,
    },
    Listed(Arc<[ListedFlow]>, usize),
}

impl FlowSupply {
    /// [`Time::MAX`] without another flow.
    fn due(&self) -> Time {
        match self {
            Self::Drawn { starts, .. } => match starts {
                Starts::Open(pace) => pace.due(),
                Starts::Closed { due, .. } => due.front().copied().unwrap_or(Time::MAX),
                Starts::Incasts(incasts) => incasts.due(),
            },
            Self::Listed(flows, next) => flows.get(*next).map_or(Time::MAX, |(start, ..)| *start),
        }
    }

    fn take(&mut self, host: HostId, end: Time) -> Option<(HostId, u64)> {
        match self {
            Self::Drawn {
                starts,
                targets,
                sizes,
                draws,
            } => {
                let receiver = match starts {
                    Starts::Open(pace) => {
                        pace.advance();
                        targets.draw(draws)
                    }
                    Starts::Closed { due, .. } => {
                        due.pop_front();
                        targets.draw(draws)
                    }
                    Starts::Incasts(incasts) => {
                        let receiver = incasts.receiver();
                        incasts.advance(host, end);
                        receiver
                    }
                };
                Some((receiver, sizes.draw(draws)))
            }
            Self::Listed(flows, next) => {
                let &(_, receiver, bytes) = flows.get(*next)?;
                *next += 1;
                Some((receiver, bytes))
            }
        }
    }
}

/// A flow as it has come so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// The receiver.
    pub destination: HostId,
    /// Size of the flow in bytes.
    pub bytes: u64,
    /// Start of the flow; its first packet may have waited.
    pub start: Time,
    /// Delivery time of the last byte, if it was delivered.
    pub end: Option<Time>,
    /// Payload delivered.
    pub delivered: u64,
    /// Packets delivered with FECN.
    pub marks: u32,
    /// Links on the longest path of its packets; 0 if none was delivered.
    pub hops: u8,
}

#[derive(Clone, Debug)]
struct Pair {
    dst: HostId,
    flows: VecDeque<u32>,
    sent: usize,
    sending: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sending {
    dst: HostId,
    /// Number of its flow at the host.
    flow: u32,
    left: u64,
    release: Time,
}

#[derive(Clone, Debug)]
pub(crate) struct FlowList {
    host: HostId,
    plan: FlowListPlan,
    supply: FlowSupply,
    records: Vec<FlowRecord>,
    pairs: Vec<Pair>,
    sending: VecDeque<Sending>,
}

impl FlowList {
    pub(crate) fn new(host: HostId, plan: FlowListPlan, supply: FlowSupply) -> Self {
        Self {
            host,
            plan,
            supply,
            records: Vec::new(),
            pairs: Vec::new(),
            sending: VecDeque::new(),
        }
    }

    pub(crate) fn class(&self) -> u16 {
        self.plan.class
    }

    /// Flows that start before `end`, or of a closed loop are in flight, about.
    pub(crate) fn expected(&self, end: Time) -> u64 {
        let window = self.plan.window;
        let end = window.end.unwrap_or(end).min(end);
        let span = end.since(window.start.min(end));
        let flows = match &self.supply {
            FlowSupply::Drawn { starts, .. } => match starts {
                Starts::Open(pace) => pace.expected(span),
                Starts::Incasts(incasts) => incasts.expected(span),
                Starts::Closed { due, .. } => due.len() as u64,
            },
            FlowSupply::Listed(flows, _) => {
                flows.partition_point(|(start, ..)| *start < end) as u64
            }
        };
        flows.min(self.plan.count)
    }

    pub(crate) fn records(&self, now: Time) -> Vec<FlowRecord> {
        let mut all = self.clone();
        all.start_flows(now);
        all.records
    }

    pub(crate) fn arrivals(&self, from: Time, to: Time) -> Option<Arrivals> {
        if self.is_closed() {
            return None;
        }
        let flows = self.records(to).into_iter();
        let flows = flows.filter(|flow| flow.start >= from && flow.start < to);
        Some(flows.fold(Arrivals::default(), |sum, flow| Arrivals {
            count: sum.count + 1,
            bytes: sum.bytes + Bytes::from_bytes(flow.bytes),
        }))
    }

    pub(crate) fn mtu(&self) -> u32 {
        self.plan.mtu
    }

    pub(crate) fn listed(&self) -> Option<&[ListedFlow]> {
        match &self.supply {
            FlowSupply::Listed(flows, _) => Some(flows),
            FlowSupply::Drawn { .. } => None,
        }
    }

    /// Mean of drawn sizes in bytes.
    pub(crate) fn mean_size(&self) -> f64 {
        match &self.supply {
            FlowSupply::Drawn { sizes, .. } => sizes.mean(),
            FlowSupply::Listed(..) => 0.0,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        let FlowSupply::Drawn { starts, .. } = &self.supply else {
            return false;
        };
        matches!(starts, Starts::Closed { .. })
    }

    pub(crate) fn ready<G: Gate>(&mut self, now: Time, gate: &mut G) -> Result<(), Time> {
        let mut wait = self.start_flows(now);
        for _ in 0..self.sending.len() {
            let first = &mut self.sending[0];
            if first.release <= now {
                first.release = gate.release(first.dst, self.plan.sl);
            }
            if first.release <= now {
                let bytes = first.left.min(u64::from(self.plan.mtu)) as u32;
                return match gate.lane_open(self.plan.sl, bytes) {
                    true => Ok(()),
                    false => Err(Time::MAX),
                };
            }
            wait = wait.min(first.release);
            self.sending.rotate_left(1);
        }
        Err(wait)
    }

    pub(crate) fn emit(&mut self) -> Offer {
        let mtu = u64::from(self.plan.mtu);
        let first = &mut self.sending[0];
        let bytes = first.left.min(mtu);
        first.left -= bytes;
        let (dst, flow, left) = (first.dst, first.flow, first.left);
        if left == 0 {
            self.sending.pop_front();
            self.sent(dst);
        } else if !self.plan.whole {
            self.sending.rotate_left(1);
        }
        Offer {
            dst,
            bytes: bytes as u32,
            sl: self.plan.sl,
            class: self.plan.class,
            last: left == 0,
            behind: Offer::cut_off(left),
            number: flow as u16,
            queue: 0,
        }
    }

    pub(crate) fn deliver(&mut self, offer: &Offer, transit: Transit, now: Time) -> bool {
        let Ok(place) = self.pairs.binary_search_by_key(&offer.dst, |pair| pair.dst) else {
            return false;
        };
        let pair = &mut self.pairs[place];
        let mut bytes = u64::from(offer.bytes);
        let mut ended = false;
        // Flows before this one may have lost packets, and never end.
        let first = transit.number.map_or(Some(0), |number| {
            pair.flows.iter().position(|&flow| flow as u16 == number)
        });
        let Some(first) = first else {
            return false;
        };
        // Packets may overtake each other, so bytes count.
        while let Some(&flow) = pair.flows.get(first).filter(|_| bytes > 0) {
            let record = &mut self.records[flow as usize];
            let part = bytes.min(record.bytes - record.delivered);
            bytes -= part;
            record.delivered += part;
            record.hops = record.hops.max(transit.hops);
            record.marks += u32::from(transit.marked && bytes == 0);
            if record.delivered < record.bytes {
                break;
            }
            record.end = Some(now);
            pair.flows.remove(first);
            pair.sent -= 1;
            if let FlowSupply::Drawn {
                starts: Starts::Closed { due, pause },
                ..
            } = &mut self.supply
            {
                due.push_back(now.saturating_add(*pause));
                ended = true;
            }
        }
        if pair.flows.is_empty() {
            self.pairs.remove(place);
        }
        ended
    }

    pub(crate) fn invalidate_releases(&mut self) {
        for sending in &mut self.sending {
            sending.release = Time::ZERO;
        }
    }

    pub(crate) fn resume(&mut self, now: Time) {
        match &mut self.supply {
            FlowSupply::Drawn { starts, .. } => match starts {
                Starts::Open(pace) => pace.skip_to(now),
                Starts::Incasts(incasts) => incasts.skip_to(now),
                Starts::Closed { due, .. } => {
                    due.iter_mut().for_each(|due| *due = (*due).max(now));
                }
            },
            FlowSupply::Listed(flows, next) => {
                let skipped = flows.partition_point(|(start, ..)| *start < now);
                *next = (*next).max(skipped);
            }
        }
    }

    fn start_flows(&mut self, now: Time) -> Time {
        let end = self.plan.window.end.unwrap_or(Time::MAX);
        loop {
            if self.records.len() as u64 >= self.plan.count {
                return Time::MAX;
            }
            let due = self.supply.due();
            if due >= end {
                return Time::MAX;
            }
            if due > now {
                return due;
            }
            if let Some((receiver, bytes)) = self.supply.take(self.host, end) {
                self.start_flow(receiver, bytes, due);
            }
        }
    }

    fn start_flow(&mut self, dst: HostId, bytes: u64, start: Time) {
        let number = self.records.len() as u32;
        self.records.push(FlowRecord {
            destination: dst,
            bytes,
            start,
            end: None,
            delivered: 0,
            marks: 0,
            hops: 0,
        });
        let place = match self.pairs.binary_search_by_key(&dst, |pair| pair.dst) {
            Ok(place) => place,
            Err(place) => {
                let pair = Pair {
                    dst,
                    flows: VecDeque::new(),
                    sent: 0,
                    sending: false,
                };
                self.pairs.insert(place, pair);
                place
            }
        };
        self.pairs[place].flows.push_back(number);
        self.send_next(place);
    }

    fn sent(&mut self, dst: HostId) {
        if let Ok(place) = self.pairs.binary_search_by_key(&dst, |pair| pair.dst) {
            self.pairs[place].sent += 1;
            self.pairs[place].sending = false;
            self.send_next(place);
        }
    }

    fn send_next(&mut self, place: usize) {
        let pair = &mut self.pairs[place];
        if pair.sending {
            return;
        }
        if let Some(&flow) = pair.flows.get(pair.sent) {
            pair.sending = true;
            self.sending.push_back(Sending {
                dst: pair.dst,
                flow,
                left: self.records[flow as usize].bytes,
                release: Time::ZERO,
            });
        }
    }
}
