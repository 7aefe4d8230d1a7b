//! Messages held back on throttled queue pairs, so that the host goes on with others.

use silvan_cc::workload::Gate;
use silvan_core::{HostId, Sl, Time, Vl};

/// Most queue pairs that one source holds messages back on; with so many throttled, it draws no
/// uniform messages until one is released. Bounds the memory of a source to some 8 KB.
const MAX_QUEUES: usize = 256;

/// Which of a source's classes a message belongs to. The two are independent, each has queue
/// pairs of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To a destination drawn from all other hosts.
    Uniform,
    /// To the hotspot.
    Hot,
}

/// A message, or what is left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) dst: HostId,
    /// Payload bytes still to send; 0: there is no message.
    pub(crate) left: u32,
    pub(crate) kind: Kind,
}

/// What became of a message offered to [`Parking::append`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Append {
    /// Nothing is held back on its queue pair, the message neither.
    NoQueue,
    /// Held back behind the others.
    Held,
    /// The queue pair holds as many as it may.
    Full,
}

/// One throttled queue pair.
#[derive(Clone, Copy, Debug)]
struct Queue {
    /// Earliest instant at which congestion control may let it send, as it last said; zero if it is to be asked again.
    release: Time,
    /// What it would answer until then, without being asked.
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
    /// Whether it may send now. Asks congestion control where that may say something else than before.
    #[inline]
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

/// The throttled queue pairs of one source that hold messages.
#[derive(Clone, Debug)]
pub(crate) struct Parking {
    /// No queue is released before this instant.
    next_release: Time,
    /// Bit `dst` modulo 64 is set for every queue: a clear bit answers the common question at once.
    filter: u64,
    queues: Vec<Queue>,
}

impl Parking {
    pub(crate) fn new() -> Self {
        Self {
            next_release: Time::MAX,
            filter: 0,
            queues: Vec::new(),
        }
    }

    /// The earliest instant at which a queue may be released, [`Time::MAX`] if none is known.
    #[inline]
    pub(crate) fn next_release(&self) -> Time {
        self.next_release
    }

    /// Whether no further queue pair should be throttled.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.queues.len() >= MAX_QUEUES
    }

    /// Holds a whole message to `dst` back if others to it are held already, at most `limit`.
    #[inline]
    pub(crate) fn append(&mut self, dst: HostId, limit: u16) -> Append {
        if self.filter & bit(dst) == 0 {
            return Append::NoQueue;
        }
        match self.find(dst, Kind::Uniform) {
            None => Append::NoQueue,
            Some(queue) if queue.whole >= limit => Append::Full,
            Some(queue) => {
                queue.whole += 1;
                Append::Held
            }
        }
    }

    /// Until when the queue pair to `dst` is throttled, if messages are held back on it.
    #[inline]
    pub(crate) fn release_of(&mut self, dst: HostId, kind: Kind) -> Option<Time> {
        if self.filter & bit(dst) == 0 {
            return None;
        }
        self.find(dst, kind).map(|queue| queue.release)
    }

    /// Holds the first message to `dst`, a whole one, back until `release`.
    pub(crate) fn hold(&mut self, dst: HostId, release: Time) {
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
    pub(crate) fn hold_started(&mut self, message: Message, release: Time) {
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
    pub(crate) fn take_released<G: Gate>(
        &mut self,
        now: Time,
        whole_bytes: u32,
        sl: Sl,
        gate: &mut G,
    ) -> Option<Message> {
        loop {
            // Those that are to be asked again go before all others, then the one that was throttled earliest.
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

    /// Forgets all remembered instants; every queue is asked about again.
    pub(crate) fn invalidate_releases(&mut self) {
        self.invalidate_where(|_| true);
    }

    /// Forgets what is remembered of queues to a destination.
    pub(crate) fn invalidate_releases_to(&mut self, dst: HostId) {
        self.invalidate_where(|queue| queue.dst == dst);
    }

    /// Forgets what is remembered of queues whose lane lacked credits.
    pub(crate) fn invalidate_lanes(&mut self) {
        self.invalidate_where(|_| false);
    }

    /// Lets all queues take part in the next choice, whose order is that in which they were throttled; of those that
    /// are `moved`, nothing is known any more.
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
        self.filter |= bit(queue.dst);
        self.queues.push(queue);
    }

    fn remove(&mut self, place: usize) {
        self.queues.remove(place);
        self.filter = self
            .queues
            .iter()
            .fold(0, |all, queue| all | bit(queue.dst));
        let earliest = self.queues.iter().map(|queue| queue.release).min();
        self.next_release = earliest.unwrap_or(Time::MAX);
    }
}

#[inline]
fn bit(dst: HostId) -> u64 {
    1 << (dst.index() % 64)
}
