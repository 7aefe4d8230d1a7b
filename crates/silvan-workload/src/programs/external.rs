//! Messages that a driver requests at run time: puts, in an additional job with a rank per host.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::num::NonZeroU32;

use silvan_cc::hooks::Flow;
use silvan_core::{HostId, Sl, Span, Time};

use crate::programs::ranks::{Programs, TimerKind};
use crate::programs::senders::QueuePair;
use crate::programs::spec::{Helpers, JobSpec, Script};

/// Bytes of a driver's largest message: 64 bits count those of all that are pending.
pub const LARGEST_MESSAGE: u64 = 1 << 48;

/// A host's queue to one other host, sent in order; queues take turns, packet by packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SendQueue {
    /// Number that tells queues between two hosts apart.
    pub number: u32,
    /// True for answers, which do not wait for requests of the same number.
    pub responds: bool,
    /// Most payload of a packet in bytes, if it is less than the fabric's.
    pub mtu: Option<NonZeroU32>,
    /// Discarded packets are told one by one: see [`Driver::gap`].
    pub tells_gaps: bool,
}

impl SendQueue {
    /// [`Flow::queue`] of its packets; 0 has none.
    pub(crate) fn of_flow(self) -> u16 {
        match self.number {
            0 => 0,
            number => (number % u32::from(Flow::QUEUES - 2)) as u16 + 1,
        }
    }

    /// Returns true if it has the same number and direction.
    pub(crate) fn is(self, other: Self) -> bool {
        (self.number, self.responds) == (other.number, other.responds)
    }
}

/// Request of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A message, which starts now.
    Send {
        /// The sending host.
        from: HostId,
        /// The receiving host; the sending one is possible.
        to: HostId,
        /// Size in bytes; a message of 0 bytes takes a packet without payload.
        bytes: u64,
        /// Its service level; `None` for the driver's.
        sl: Option<Sl>,
        /// The queue that it waits in.
        queue: SendQueue,
        /// Number by which the driver knows the message.
        token: u32,
    },
    /// The end of all messages that wait in a host's queues with a number, of the part that has not left.
    Withdraw {
        /// The sending host.
        from: HostId,
        /// The queues, to all hosts.
        queue: SendQueue,
    },
    /// Gaps in these queues, as far as packets have left, are not told later.
    Forget {
        /// The sending host.
        from: HostId,
        /// The queues, to all hosts.
        queue: SendQueue,
    },
    /// A notification after a time.
    Timer {
        /// The time from now; zero is possible.
        delay: Span,
        /// Number by which the driver knows the timer.
        token: u32,
    },
    /// The end of the call that runs the simulation. Later calls go on from here.
    Stop,
}

/// Decides at run time, outside the simulation, which messages are sent, on one thread.
pub trait Driver: Debug + Send {
    /// A message has arrived or a timer expired at `now`; new work goes to `requests`.
    fn notify(&mut self, token: u32, now: Time, requests: &mut Vec<Request>);

    /// The last packet of a message has left its host, by `now`: this is noticed with the arrival of any packet of the host.
    fn departed(&mut self, token: u32, now: Time, requests: &mut Vec<Request>) {
        let _ = (token, now, requests);
    }

    /// Packet `index` of message `token` was discarded, and one behind it in the queue has arrived, of message `next`.
    ///
    /// The message is notified if its last packet arrives. Only in a live fabric, in queues that tell gaps.
    fn gap(&mut self, token: u32, index: u64, next: u32, now: Time, requests: &mut Vec<Request>) {
        let _ = (token, index, next, now, requests);
    }

    /// A message does not arrive: it was withdrawn, or packets were discarded, the last one where the queue tells gaps.
    fn lost(&mut self, token: u32, now: Time, requests: &mut Vec<Request>) {
        let _ = (token, now, requests);
    }
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    flow: u32,
    token: u32,
    queue_pair: QueuePair,
    is_lost: bool,
}

/// A discarded packet, which its receiver does not miss yet.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// Place and token of its message.
    place: u32,
    token: u32,
    flow: u32,
    number: u16,
    sent: Time,
}

#[derive(Debug)]
pub(crate) struct External {
    driver: Box<dyn Driver>,
    job: usize,
    requests: Vec<Request>,
    in_flight: BTreeMap<u32, InFlight>,
    gaps: BTreeMap<QueuePair, Vec<Gap>>,
    pauses_when_idle: bool,
    is_stopped: bool,
}

impl Programs {
    /// Adds a driver, whose packets have this class and service level. Panics if there is a driver already.
    #[must_use]
    pub fn driven(mut self, driver: Box<dyn Driver>, name: String, class: u16, sl: Sl) -> Self {
        assert!(self.external.is_none(), "a run has one driver");
        let job = self.jobs.len();
        let hosts = (0..self.flows.hosts()).map(HostId::new);
        self.add(JobSpec {
            name,
            class,
            sl,
            start: Time::ZERO,
            background: true,
            stragglers: Vec::new(),
            ranks: hosts.map(|host| (host, Script::External)).collect(),
            rails: Vec::new(),
            helpers: Helpers::default(),
            labels: Vec::new(),
        });
        self.jobs[job].pending = 1;
        self.external = Some(Box::new(External {
            driver,
            job,
            requests: Vec::new(),
            in_flight: BTreeMap::new(),
            gaps: BTreeMap::new(),
            pauses_when_idle: false,
            is_stopped: false,
        }));
        self
    }

    /// Takes requests of the driver at `now`, outside a notification. Without a driver they have no effect.
    pub fn request(&mut self, requests: &mut Vec<Request>, now: Time) {
        self.take_requests(requests, now);
    }

    /// Messages of the driver that have not arrived and its timers that have not gone off.
    pub fn requests_pending(&self) -> u32 {
        let job = self.external.as_ref().map(|external| external.job);
        job.map_or(0, |job| self.jobs[job].pending - 1)
    }

    /// Starts a call that runs the simulation until the driver stops it or, with `when_idle`, nothing is pending.
    pub fn start_call(&mut self, when_idle: bool) {
        if let Some(external) = &mut self.external {
            external.pauses_when_idle = when_idle;
            external.is_stopped = false;
        }
    }

    /// Returns true if the call that runs the simulation ends now.
    #[inline]
    pub fn pauses(&self) -> bool {
        self.external.as_ref().is_some_and(|external| {
            let is_idle = external.pauses_when_idle && self.jobs[external.job].pending == 1;
            is_idle || external.is_stopped
        })
    }

    /// Returns true if there is a driver.
    pub fn is_driven(&self) -> bool {
        self.external.is_some()
    }

    /// Returns true if the driver has stopped the call that runs the simulation.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        let external = self.external.as_ref();
        external.is_some_and(|external| external.is_stopped)
    }

    pub(crate) fn notify_driver(&mut self, token: u32, now: Time) {
        self.with_driver(now, |driver, requests| driver.notify(token, now, requests));
    }

    pub(crate) fn is_of_driver(&self, class: u16) -> bool {
        let external = self.external.as_ref();
        external.is_some_and(|external| self.jobs[external.job].class == class)
    }

    pub(crate) fn note_launched(&mut self, place: u32, flow: u32, queue_pair: QueuePair) {
        let token = self.message(place).source_token;
        if let Some(external) = &mut self.external {
            let message = InFlight {
                flow,
                token,
                queue_pair,
                is_lost: false,
            };
            external.in_flight.insert(place, message);
        }
    }

    fn in_flight(&self, place: u32) -> Option<InFlight> {
        let external = self.external.as_ref()?;
        external.in_flight.get(&place).copied()
    }

    pub(crate) fn note_departed(&mut self, place: u32, now: Time) {
        if let Some(InFlight { token, .. }) = self.in_flight(place) {
            self.with_driver(now, |driver, requests| {
                driver.departed(token, now, requests)
            });
        }
    }

    /// All messages of a flow in flight are lost: which one a packet is of is not known.
    pub(crate) fn lose_flow(&mut self, flow: u32) {
        let messages = self.external.iter_mut();
        let messages = messages.flat_map(|external| external.in_flight.values_mut());
        for message in messages.filter(|message| message.flow == flow) {
            message.is_lost = true;
        }
    }

    /// Notes a discarded packet of a message, which was `sent` at this time. Returns true if its gap is not told.
    pub(crate) fn note_gap(&mut self, place: u32, (flow, number): (u32, u16), sent: Time) -> bool {
        let Some(external) = &mut self.external else {
            return false;
        };
        let Some(message) = external.in_flight.get_mut(&place) else {
            return false;
        };
        let queue_pair = message.queue_pair;
        if !queue_pair.queue.tells_gaps {
            message.is_lost = true;
            return true;
        }
        let gap = Gap {
            place,
            token: message.token,
            flow,
            number,
            sent,
        };
        external.gaps.entry(queue_pair).or_default().push(gap);
        false
    }

    /// Returns true if a receiver may notice a gap.
    #[inline]
    pub(crate) fn has_gaps(&self) -> bool {
        let external = self.external.as_ref();
        external.is_some_and(|external| !external.gaps.is_empty())
    }

    /// Tells gaps before a packet that arrives, which was `sent` at this time, of the message in `place`.
    pub(crate) fn tell_gaps(&mut self, place: u32, sent: Time, now: Time) {
        let Some(next) = self.in_flight(place) else {
            return;
        };
        let Some(external) = &mut self.external else {
            return;
        };
        let Some(gaps) = external.gaps.get_mut(&next.queue_pair) else {
            return;
        };
        gaps.sort_by_key(|gap| gap.sent);
        let later = gaps.split_off(gaps.partition_point(|gap| gap.sent < sent));
        let known = std::mem::replace(gaps, later);
        if gaps.is_empty() {
            external.gaps.remove(&next.queue_pair);
        }
        for gap in known {
            let index = self.flows.arrived_of(gap.flow, gap.number);
            self.with_driver(now, |driver, requests| {
                driver.gap(gap.token, index, next.token, now, requests);
            });
            self.count_lost(gap.flow, gap.number, now);
        }
    }

    /// Ends a message that was withdrawn, and its gaps.
    pub(crate) fn note_withdrawn(&mut self, place: u32, now: Time) {
        let Some(message) = self.in_flight(place) else {
            return;
        };
        if let Some(external) = &mut self.external
            && let Some(gaps) = external.gaps.get_mut(&message.queue_pair)
        {
            gaps.retain(|gap| gap.place != place);
            if gaps.is_empty() {
                external.gaps.remove(&message.queue_pair);
            }
        }
        self.end_message(place, now);
    }

    pub(crate) fn tell_lost(&mut self, place: u32, now: Time) {
        if let Some(InFlight { token, .. }) = self.in_flight(place) {
            self.with_driver(now, |driver, requests| driver.lost(token, now, requests));
        }
    }

    pub(crate) fn take_lost(&mut self, place: u32) -> bool {
        let external = self.external.as_mut();
        let message = external.and_then(|external| external.in_flight.remove(&place));
        message.is_some_and(|message| message.is_lost)
    }

    pub(crate) fn is_lost(&self, place: u32) -> bool {
        self.in_flight(place).is_some_and(|message| message.is_lost)
    }

    /// Ends messages that have left, and whose gaps no receiver will notice.
    fn forget_gaps(&mut self, from: u32, queue: SendQueue, now: Time) {
        let Some(external) = &mut self.external else {
            return;
        };
        let mut forgotten = Vec::new();
        external.gaps.retain(|pair, gaps| {
            let ends = pair.from == from && pair.queue.is(queue);
            if ends {
                forgotten.append(gaps);
            }
            !ends
        });
        for gap in forgotten {
            if self.flows.sent_of(gap.flow, gap.number) == Some(gap.place) {
                self.flows.end(gap.flow, gap.number);
                self.end_message(gap.place, now);
            }
        }
    }

    fn with_driver(&mut self, now: Time, notify: impl FnOnce(&mut dyn Driver, &mut Vec<Request>)) {
        let Some(external) = &mut self.external else {
            return;
        };
        let mut requests = std::mem::take(&mut external.requests);
        notify(&mut *external.driver, &mut requests);
        self.take_requests(&mut requests, now);
        if let Some(external) = &mut self.external {
            external.requests = requests;
        }
    }

    fn take_requests(&mut self, requests: &mut Vec<Request>, now: Time) {
        let Some(job) = self.external.as_ref().map(|external| external.job) else {
            requests.clear();
            return;
        };
        let first = self.jobs[job].first;
        for request in requests.drain(..) {
            match request {
                Request::Send {
                    from,
                    to,
                    bytes,
                    sl,
                    queue,
                    token,
                } => {
                    let ranks = (first + from.index() as u32, first + to.index() as u32);
                    self.put(ranks, token, bytes, Some((sl, queue)), now);
                }
                Request::Withdraw { from, queue } => {
                    self.withdraw(first + from.index() as u32, queue, now);
                }
                Request::Forget { from, queue } => {
                    self.forget_gaps(first + from.index() as u32, queue, now);
                }
                Request::Timer { delay, token } => {
                    let at = now.saturating_add(delay);
                    self.set_timer(first, at, TimerKind::External(token));
                }
                Request::Stop => {
                    if let Some(external) = &mut self.external {
                        external.is_stopped = true;
                    }
                }
            }
        }
    }
}
