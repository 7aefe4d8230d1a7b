//! Comparison of parking with a plain list of queues.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{Append, Kind, Message, Parking};
use silvan_cc::workload::Gate;
use silvan_core::{HostId, Sl, Span, Time, Vl};

/// A throttled queue pair of [`QueueList`].
#[derive(Clone, Copy, Debug)]
struct Queue {
    /// Earliest instant at which congestion control may let it send, as it last said; zero if it is to be asked again.
    release: Time,
    /// Time until which congestion control's answer is known without a query.
    known: Time,
    dst: HostId,
    /// Rest of a message that has started, in bytes; it goes first.
    started: u32,
    /// Whole messages behind it.
    whole: u16,
    kind: Kind,
    /// The lane for whose credits it waits, if it takes no other one.
    lane: Option<Vl>,
}

impl Queue {
    /// Returns true if the queue may send now. Queries congestion control if the answer may have changed.
    fn may_go<G: Gate>(&mut self, now: Time, sl: Sl, gate: &mut G) -> bool {
        if self.known > now {
            self.release = self.known;
            return false;
        }
        if self.lane.is_some_and(|lane| gate.awaits(lane)) {
            self.release = Time::MAX;
            return false;
        }
        self.release = gate.release(self.dst, sl);
        if self.release <= now {
            return true;
        }
        let lacks = gate.lacks_credits();
        self.known = if lacks { Time::ZERO } else { self.release };
        self.lane = gate.awaited_lane();
        false
    }
}

/// The oracle: looks at all queues, one after the other.
#[derive(Clone, Debug)]
struct QueueList {
    /// No queue is released before this instant.
    next_release: Time,
    queues: Vec<Queue>,
}

impl QueueList {
    fn new() -> Self {
        Self {
            next_release: Time::MAX,
            queues: Vec::new(),
        }
    }

    /// Holds a whole message to `dst` back if others to it are held already, at most `limit`.
    fn append(&mut self, dst: HostId, limit: u16) -> Append {
        match self.find(dst, Kind::Uniform) {
            None => Append::NoQueue,
            Some(queue) if queue.whole >= limit => Append::Full,
            Some(queue) => {
                queue.whole += 1;
                Append::Held
            }
        }
    }

    /// Returns the end of the throttling of the queue pair to `dst`, if messages are held back on it.
    fn release_of(&mut self, dst: HostId, kind: Kind) -> Option<Time> {
        self.find(dst, kind).map(|queue| queue.release)
    }

    /// Holds the first message to `dst`, a whole one, back until `release`.
    fn hold(&mut self, dst: HostId, release: Time) {
        self.insert(Queue {
            release,
            known: Time::ZERO,
            dst,
            started: 0,
            whole: 1,
            kind: Kind::Uniform,
            lane: None,
        });
    }

    /// Holds the rest of a started message back until `release`, before all others of its queue.
    fn hold_started(&mut self, message: Message, release: Time) {
        if let Some(queue) = self.find(message.dst, message.kind) {
            queue.started = message.left;
            queue.release = release;
            queue.known = Time::ZERO;
            self.next_release = self.next_release.min(release);
            return;
        }
        self.insert(Queue {
            release,
            known: Time::ZERO,
            dst: message.dst,
            started: message.left,
            whole: 0,
            kind: message.kind,
            lane: None,
        });
    }

    /// Takes the next message of the queue that was released first, `whole_bytes` long if it has
    /// not started. All are on one service level.
    fn take_released<G: Gate>(
        &mut self,
        now: Time,
        whole_bytes: u32,
        sl: Sl,
        gate: &mut G,
    ) -> Option<Message> {
        loop {
            // Queues to query again come first, then the earliest throttled queue.
            let mut first: Option<(Time, usize)> = None;
            for place in 0..self.queues.len() {
                let queue = &mut self.queues[place];
                if queue.release == Time::ZERO && queue.may_go(now, sl, gate) {
                    self.next_release = Time::ZERO;
                    return Some(self.take(place, whole_bytes));
                }
                if first.is_none_or(|(release, _)| queue.release < release) {
                    first = Some((queue.release, place));
                }
            }
            let (release, place) = first?;
            self.next_release = release;
            if release > now {
                return None;
            }
            if self.queues[place].may_go(now, sl, gate) {
                return Some(self.take(place, whole_bytes));
            }
        }
    }

    /// Takes the next message of a queue, and removes a queue that has no other.
    fn take(&mut self, place: usize, whole_bytes: u32) -> Message {
        let queue = &mut self.queues[place];
        let (dst, kind) = (queue.dst, queue.kind);
        let left = if queue.started > 0 {
            std::mem::take(&mut queue.started)
        } else {
            queue.whole -= 1;
            whole_bytes
        };
        if queue.started == 0 && queue.whole == 0 {
            self.remove(place);
        }
        Message { dst, left, kind }
    }

    /// Forgets all known instants; every queue is queried again.
    fn invalidate_releases(&mut self) {
        self.invalidate_where(|_| true);
    }

    /// Forgets what is remembered of queues to a destination.
    fn invalidate_releases_to(&mut self, dst: HostId) {
        self.invalidate_where(|queue| queue.dst == dst);
    }

    /// Forgets what is remembered of queues whose lane lacked credits.
    fn invalidate_lanes(&mut self) {
        self.invalidate_where(|_| false);
    }

    /// Lets all queues take part in the next choice, in the order of their throttling, and discards answers of `moved`
    /// queues.
    fn invalidate_where(&mut self, moved: impl Fn(&Queue) -> bool) {
        for queue in &mut self.queues {
            queue.release = Time::ZERO;
            if moved(queue) {
                queue.known = Time::ZERO;
                queue.lane = None;
            }
        }
        if !self.queues.is_empty() {
            self.next_release = Time::ZERO;
        }
    }

    fn find(&mut self, dst: HostId, kind: Kind) -> Option<&mut Queue> {
        self.queues
            .iter_mut()
            .find(|queue| queue.dst == dst && queue.kind == kind)
    }

    fn insert(&mut self, queue: Queue) {
        self.next_release = self.next_release.min(queue.release);
        self.queues.push(queue);
    }

    fn remove(&mut self, place: usize) {
        self.queues.remove(place);
        let earliest = self.queues.iter().map(|queue| queue.release).min();
        self.next_release = earliest.unwrap_or(Time::MAX);
    }
}

/// A host whose congestion control throttles some flows, and some of whose lanes have no credits.
#[derive(Clone, Debug, Default)]
struct Host {
    now: Time,
    throttled: BTreeMap<HostId, Time>,
    dry: BTreeSet<Vl>,
    keeps_lanes: bool,
    awaited: Option<Vl>,
    /// Lanes that were found to have no credits.
    starved: BTreeSet<Vl>,
}

impl Gate for Host {
    fn release(&mut self, dst: HostId, _: Sl) -> Time {
        let release = self.throttled.get(&dst).copied().unwrap_or(self.now);
        let lane = Vl::try_new((dst.index() % 5) as u8).unwrap();
        self.awaited = (release <= self.now && self.awaits(lane)).then_some(lane);
        if self.awaited.is_some() {
            Time::MAX
        } else {
            release
        }
    }

    fn lacks_credits(&self) -> bool {
        self.awaited.is_some()
    }

    fn awaited_lane(&self) -> Option<Vl> {
        self.awaited.filter(|_| self.keeps_lanes)
    }

    fn awaits(&mut self, lane: Vl) -> bool {
        let is_dry = self.dry.contains(&lane);
        if is_dry {
            self.starved.insert(lane);
        }
        is_dry
    }

    fn lane_open(&mut self, _: Sl, _: u32) -> bool {
        true
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A new message, held back for some time if none to its destination is.
    Hold(usize, u64),
    /// The rest of a message.
    HoldStarted(usize, bool, u64),
    Take,
    Wait(u64),
    Throttle(usize, u64),
    /// Lanes without credits from now on, and true if the source is notified.
    Dry(u8, bool),
    Moved,
    MovedTo(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (dst, after) = (
        || 0_usize..90,
        || prop_oneof![3 => 0_u64..40, 1 => Just(u64::MAX)],
    );
    let step = prop_oneof![
        4 => (dst(), after()).prop_map(|(dst, after)| Step::Hold(dst, after)),
        2 => (dst(), any::<bool>(), after()).prop_map(|(dst, hot, after)| Step::HoldStarted(dst, hot, after)),
        6 => Just(Step::Take),
        1 => (1_u64..20).prop_map(Step::Wait),
        2 => (dst(), after()).prop_map(|(dst, after)| Step::Throttle(dst, after)),
        3 => (0_u8..32, any::<bool>()).prop_map(|(lanes, told)| Step::Dry(lanes, told)),
        1 => Just(Step::Moved),
        1 => dst().prop_map(Step::MovedTo),
    ];
    proptest::collection::vec(step, 1..400)
}

proptest! {
    #[test]
    fn the_same_messages_are_taken_as_from_a_plain_list(steps in steps(), keeps_lanes: bool) {
        let (mut parking, mut plain) = (Parking::new(), QueueList::new());
        let mut host = Host { keeps_lanes, ..Host::default() };
        let sl = Sl::ZERO;
        for step in steps {
            let at = |host: &Host, after: u64| host.now.saturating_add(Span::from_ps(after));
            match step {
                Step::Hold(dst, after) => {
                    let dst = HostId::new(dst);
                    let appended = parking.append(dst, 3);
                    prop_assert_eq!(appended, plain.append(dst, 3));
                    if appended == Append::NoQueue {
                        parking.hold(dst, at(&host, after));
                        plain.hold(dst, at(&host, after));
                    }
                }
                Step::HoldStarted(dst, hot, after) => {
                    let kind = if hot { Kind::Hot } else { Kind::Uniform };
                    let message = Message { dst: HostId::new(dst), left: 100, kind };
                    parking.hold_started(message, at(&host, after));
                    plain.hold_started(message, at(&host, after));
                }
                Step::Take => {
                    let mut other = host.clone();
                    let taken = parking.take_released(host.now, 2048, sl, &mut host);
                    prop_assert_eq!(taken, plain.take_released(other.now, 2048, sl, &mut other));
                    // Only where nothing may go, the host waits for credits.
                    if taken.is_none() {
                        prop_assert_eq!(&host.starved, &other.starved);
                    }
                    host.starved.clear();
                }
                Step::Wait(after) => host.now = at(&host, after),
                Step::Throttle(dst, after) => {
                    host.throttled.insert(HostId::new(dst), at(&host, after));
                }
                Step::Dry(lanes, told) => {
                    let lanes = (0..5).filter(|lane| lanes >> lane & 1 != 0);
                    host.dry = lanes.map(|lane| Vl::try_new(lane).unwrap()).collect();
                    if told {
                        parking.invalidate_lanes();
                        plain.invalidate_lanes();
                    }
                }
                Step::Moved => {
                    parking.invalidate_releases();
                    plain.invalidate_releases();
                }
                Step::MovedTo(dst) => {
                    parking.invalidate_releases_to(HostId::new(dst));
                    plain.invalidate_releases_to(HostId::new(dst));
                }
            }
            prop_assert_eq!(parking.next_release(), plain.next_release);
            for dst in (0..90).map(HostId::new) {
                for kind in [Kind::Uniform, Kind::Hot] {
                    prop_assert_eq!(parking.release_of(dst, kind), plain.release_of(dst, kind));
                }
            }
        }
    }
}
