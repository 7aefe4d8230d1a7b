mod places;
#[cfg(test)]
mod tests;

use silvan_cc::workload::Gate;
use silvan_core::{HostId, Sl, Time, Vl};

use places::Places;

/// Most queue pairs with held messages; beyond, no uniform messages are drawn. Bounds a source to some 8 KB.
const MAX_QUEUES: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Uniform,
    Hot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) dst: HostId,
    /// Unsent payload; 0 without a message.
    pub(crate) left: u32,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Append {
    NoQueue,
    Held,
    Full,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    release: Time,
    known: Time,
    /// Rest of a started message in bytes; it goes first.
    started: u32,
    whole: u16,
    /// The lane for whose credits it waits, if it takes no other.
    lane: Option<Vl>,
}

#[derive(Clone, Debug)]
pub(crate) struct Parking {
    /// Lower bound of all releases.
    next_release: Time,
    /// Bit `dst` modulo 64 is set for every queue: a clear bit answers most queries.
    filter: u64,
    held: Box<Held>,
}

/// Throttled queues, by time: a source may have hundreds and be polled for each packet, so a poll checks sets. Each
/// place is in one of the first three.
#[derive(Clone, Debug, Default)]
struct Held {
    again: Places,
    timed: Places,
    /// Queues that wait for an event: their release is [`Time::MAX`].
    asleep: Places,
    waiting: Vec<(Vl, Places)>,
    dry: Places,
    keys: Vec<u32>,
    queues: Vec<Queue>,
}

impl Held {
    fn release(&self, place: usize) -> Time {
        if self.again.contains(place) {
            Time::ZERO
        } else if self.asleep.contains(place) {
            Time::MAX
        } else {
            self.queues[place].release
        }
    }

    fn set_release(&mut self, place: usize, release: Time) {
        self.queues[place].release = release;
        for places in [&mut self.again, &mut self.timed, &mut self.asleep] {
            places.remove(place);
        }
        match release {
            Time::ZERO => self.again.insert(place),
            Time::MAX => self.asleep.insert(place),
            _ => self.timed.insert(place),
        }
    }

    fn set_lane(&mut self, place: usize, lane: Option<Vl>) {
        let before = std::mem::replace(&mut self.queues[place].lane, lane);
        if before == lane {
            return;
        }
        let mut waiting = self.waiting.iter_mut();
        if let Some((_, places)) = waiting.find(|(vl, _)| Some(*vl) == before) {
            places.remove(place);
        }
        let Some(lane) = lane else { return };
        let mut waiting = self.waiting.iter_mut();
        if let Some((_, places)) = waiting.find(|(vl, _)| *vl == lane) {
            places.insert(place);
        } else {
            let mut places = Places::default();
            places.insert(place);
            self.waiting.push((lane, places));
        }
    }

    fn may_go<G: Gate>(&mut self, place: usize, now: Time, sl: Sl, gate: &mut G) -> bool {
        let queue = &self.queues[place];
        if queue.known > now {
            self.set_release(place, queue.known);
            return false;
        }
        if queue.lane.is_some_and(|lane| gate.awaits(lane)) {
            self.set_release(place, Time::MAX);
            return false;
        }
        let release = gate.release(destination(self.keys[place]), sl);
        self.set_release(place, release);
        if release <= now {
            return true;
        }
        let lacks = gate.lacks_credits();
        self.queues[place].known = if lacks { Time::ZERO } else { release };
        self.set_lane(place, gate.awaited_lane());
        false
    }

    fn next_again<G: Gate>(&mut self, now: Time, sl: Sl, gate: &mut G) -> Option<usize> {
        let mut dry = std::mem::take(&mut self.dry);
        dry.clear();
        for (lane, waiting) in &self.waiting {
            if waiting.meets(&self.again) && gate.awaits(*lane) {
                dry.add(waiting);
            }
        }
        let mut from = 0;
        let mut found = None;
        while let Some(place) = self.again.next_outside(&dry, from) {
            if self.may_go(place, now, sl, gate) {
                found = Some(place);
                break;
            }
            from = place + 1;
        }
        let end = found.unwrap_or(self.queues.len());
        self.again.transfer(&mut self.asleep, &dry, end);
        self.dry = dry;
        found
    }

    fn earliest(&self) -> Option<(Time, usize)> {
        if let Some(first) = self.again.next(0) {
            return Some((Time::ZERO, first));
        }
        let mut earliest: Option<(Time, usize)> = None;
        let mut from = 0;
        while let Some(place) = self.timed.next(from) {
            let release = self.queues[place].release;
            if earliest.is_none_or(|(first, _)| release < first) {
                earliest = Some((release, place));
            }
            from = place + 1;
        }
        earliest.or_else(|| self.asleep.next(0).map(|first| (Time::MAX, first)))
    }

    fn find(&self, dst: HostId, kind: Kind) -> Option<usize> {
        let wanted = key(dst, kind);
        // Eight at a time, without a branch for each.
        let chunks = self.keys.chunks(8).enumerate();
        let mut found = chunks.filter(|(_, keys)| {
            let equal = |all, key: &u32| all | u32::from(*key == wanted);
            keys.iter().fold(0, equal) != 0
        });
        let (chunk, keys) = found.next()?;
        let within = keys.iter().position(|&key| key == wanted)?;
        Some(8 * chunk + within)
    }

    fn insert(&mut self, key: u32, release: Time, started: u32, whole: u16) {
        self.keys.push(key);
        self.queues.push(Queue {
            release,
            known: Time::ZERO,
            started,
            whole,
            lane: None,
        });
        self.set_release(self.queues.len() - 1, release);
    }

    fn remove(&mut self, place: usize) {
        self.keys.remove(place);
        self.queues.remove(place);
        let sets = [&mut self.again, &mut self.timed, &mut self.asleep];
        let waiting = self.waiting.iter_mut().map(|(_, places)| places);
        for places in sets.into_iter().chain(waiting) {
            places.close(place);
        }
    }

    fn reconsider_all(&mut self) {
        self.again.fill(self.queues.len());
        self.timed.clear();
        self.asleep.clear();
    }

    fn invalidate(&mut self, place: usize) {
        self.queues[place].known = Time::ZERO;
        self.set_lane(place, None);
    }
}

impl Parking {
    pub(crate) fn new() -> Self {
        Self {
            next_release: Time::MAX,
            filter: 0,
            held: Box::default(),
        }
    }

    /// [`Time::MAX`] if none is known.
    #[inline]
    pub(crate) fn next_release(&self) -> Time {
        self.next_release
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        // A clear filter answers without reading the number of queues from memory.
        self.filter != 0 && self.held.queues.len() >= MAX_QUEUES
    }

    #[inline]
    pub(crate) fn append(&mut self, dst: HostId, limit: u16) -> Append {
        let Some(place) = self.place_of(dst, Kind::Uniform) else {
            return Append::NoQueue;
        };
        let queue = &mut self.held.queues[place];
        if queue.whole >= limit {
            return Append::Full;
        }
        queue.whole += 1;
        Append::Held
    }

    #[inline]
    pub(crate) fn release_of(&self, dst: HostId, kind: Kind) -> Option<Time> {
        let place = self.place_of(dst, kind)?;
        Some(self.held.release(place))
    }

    #[inline]
    fn place_of(&self, dst: HostId, kind: Kind) -> Option<usize> {
        if self.filter & bit(dst) == 0 {
            return None;
        }
        self.held.find(dst, kind)
    }

    pub(crate) fn hold(&mut self, dst: HostId, release: Time) {
        self.insert(key(dst, Kind::Uniform), release, 0, 1);
    }

    /// Holds the rest of a started message, before all others of its queue.
    pub(crate) fn hold_started(&mut self, message: Message, release: Time) {
        let Some(place) = self.place_of(message.dst, message.kind) else {
            self.insert(key(message.dst, message.kind), release, message.left, 0);
            return;
        };
        let queue = &mut self.held.queues[place];
        queue.started = message.left;
        queue.known = Time::ZERO;
        self.held.set_release(place, release);
        self.next_release = self.next_release.min(release);
    }

    /// Next message of the queue that was released first, `whole_bytes` long unless started.
    pub(crate) fn take_released<G: Gate>(
        &mut self,
        now: Time,
        whole_bytes: u32,
        sl: Sl,
        gate: &mut G,
    ) -> Option<Message> {
        loop {
            // Queues to query again come first, then the earliest throttled queue.
            if let Some(place) = self.held.next_again(now, sl, gate) {
                self.next_release = Time::ZERO;
                return Some(self.take(place, whole_bytes));
            }
            let (release, place) = self.held.earliest()?;
            self.next_release = release;
            if release > now {
                return None;
            }
            if self.held.may_go(place, now, sl, gate) {
                return Some(self.take(place, whole_bytes));
            }
        }
    }

    fn take(&mut self, place: usize, whole_bytes: u32) -> Message {
        let (dst, kind) = (
            destination(self.held.keys[place]),
            kind(self.held.keys[place]),
        );
        let queue = &mut self.held.queues[place];
        let left = if queue.started > 0 {
            std::mem::take(&mut queue.started)
        } else {
            queue.whole -= 1;
            whole_bytes
        };
        if queue.whole == 0 {
            self.held.remove(place);
            let others = self.held.keys.iter();
            if others.fold(0, |all, &key| {
                all | u32::from(bit(destination(key)) == bit(dst))
            }) == 0
            {
                self.filter &= !bit(dst);
            }
            let earliest = self.held.earliest();
            self.next_release = earliest.map_or(Time::MAX, |(release, _)| release);
        }
        Message { dst, left, kind }
    }

    fn insert(&mut self, key: u32, release: Time, started: u32, whole: u16) {
        self.next_release = self.next_release.min(release);
        self.filter |= bit(destination(key));
        self.held.insert(key, release, started, whole);
    }

    pub(crate) fn invalidate_releases(&mut self) {
        for place in 0..self.held.queues.len() {
            self.held.invalidate(place);
        }
        self.reconsider_all();
    }

    pub(crate) fn invalidate_releases_to(&mut self, dst: HostId) {
        for kind in [Kind::Uniform, Kind::Hot] {
            if let Some(place) = self.place_of(dst, kind) {
                self.held.invalidate(place);
            }
        }
        self.reconsider_all();
    }

    pub(crate) fn invalidate_lanes(&mut self) {
        self.reconsider_all();
    }

    fn reconsider_all(&mut self) {
        if !self.held.queues.is_empty() {
            self.held.reconsider_all();
            self.next_release = Time::ZERO;
        }
    }
}

#[inline]
fn key(dst: HostId, kind: Kind) -> u32 {
    (dst.index() as u32) << 1 | u32::from(kind == Kind::Hot)
}

#[inline]
fn destination(key: u32) -> HostId {
    HostId::new((key >> 1) as usize)
}

#[inline]
fn kind(key: u32) -> Kind {
    if key & 1 == 0 {
        Kind::Uniform
    } else {
        Kind::Hot
    }
}

#[inline]
fn bit(dst: HostId) -> u64 {
    1 << (dst.index() % 64)
}
