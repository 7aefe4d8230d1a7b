use std::collections::BTreeMap;
use std::ops::Bound;

use silvan_cc::workload::{Chosen, Gate, MessageChange, Offer, Poll, Progress, WholeMessage};
use silvan_core::{Bytes, HostId, Sl, Span, Time};

use crate::programs::external::SendQueue;
use crate::programs::flows::{Part, Sent};

const NONE: u32 = u32::MAX;

const TURN: usize = 3;

/// Payload of packets.
#[derive(Clone, Copy, Debug)]
pub struct Payload {
    least: u64,
    most: u64,
}

impl Payload {
    /// Without a header, empty packets (IBA, volume 1, chapter 9) carry a byte.
    pub fn new(mtu: Bytes, header: Bytes) -> Self {
        Self {
            least: u64::from(header.is_zero()),
            most: mtu.as_u64(),
        }
    }

    /// Returns the largest payload of a packet.
    pub(crate) fn most(self) -> u64 {
        self.most
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueuePair {
    pub from: u32,
    pub to: u32,
    /// Number and direction: a responder does not wait for its requester.
    pub queue: SendQueue,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    pub at: Time,
    pub message: u32,
    pub queue_pair: QueuePair,
    pub bytes: u64,
    /// Over all hosts.
    pub flow: u32,
    pub to: HostId,
    pub sl: Sl,
    pub class: u16,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    message: u32,
    /// Payload without a packet.
    left: u64,
    /// Packets of the message.
    packets: u64,
    /// Most payload of one of them.
    most: u64,
    number: u16,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    head: u32,
    tail: u32,
    /// Index among the host's flows.
    flow: u32,
    /// Congestion control's last answer.
    release: Time,
    class: u16,
    /// [`silvan_cc::hooks::Flow::queue`] of its packets.
    queue: u16,
    left: u64,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    number: u32,
    to: HostId,
    sl: Sl,
    sent: u64,
    /// Messages so far.
    messages: u16,
    class: u16,
}

impl Waiting {
    /// Notes that the last packet of this message, on `flow`, has left.
    fn sent(&self, host: HostId, flow: &Flow, changes: &mut Option<Vec<MessageChange>>) -> Sent {
        if let Some(changes) = changes {
            changes.push(MessageChange {
                from: host,
                to: flow.to,
                starts: false,
            });
        }
        Sent {
            flow: flow.number,
            packets: flow.sent,
            message: self.message,
            number: self.number,
            own_packets: self.packets,
            part: Part::Whole,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct HostQueue {
    pairs: BTreeMap<QueuePair, Pair>,
    last: QueuePair,
    chosen: Chosen<QueuePair>,
    flows: Vec<Flow>,
    /// By flow and number of a message, if it has one: [`silvan_cc::hooks::Flow::queue`] of the last such message.
    queues: Vec<Vec<u16>>,
    by_number: Vec<(u32, u32)>,
}

impl HostQueue {
    fn flow(&mut self, launch: &Launch) -> u32 {
        let number = launch.flow;
        match self
            .by_number
            .binary_search_by_key(&number, |entry| entry.0)
        {
            Ok(place) => self.by_number[place].1,
            Err(place) => {
                let flow = self.flows.len() as u32;
                self.by_number.insert(place, (number, flow));
                self.flows.push(Flow {
                    number,
                    to: launch.to,
                    sl: launch.sl,
                    sent: 0,
                    messages: 0,
                    class: launch.class,
                });
                flow
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Senders {
    hosts: Vec<HostQueue>,
    waiting: Vec<Waiting>,
    free: Vec<u32>,
    payload: Payload,
    changes: Option<Vec<MessageChange>>,
}

impl Senders {
    pub fn new(hosts: usize, payload: Payload) -> Self {
        Self {
            hosts: vec![HostQueue::default(); hosts],
            waiting: Vec::new(),
            free: Vec::new(),
            payload,
            changes: None,
        }
    }

    pub fn push(&mut self, host: HostId, launch: &Launch) {
        if let Some(changes) = &mut self.changes {
            changes.push(MessageChange {
                from: host,
                to: launch.to,
                starts: true,
            });
        }
        let left = launch.bytes.max(self.payload.least);
        let queue = &mut self.hosts[host.index()];
        let known = queue.pairs.get(&launch.queue_pair).map(|pair| pair.flow);
        let flow_place = known.unwrap_or_else(|| queue.flow(launch));
        let flow = &mut queue.flows[flow_place as usize];
        let mtu = launch.queue_pair.queue.mtu;
        let mtu = mtu.map_or(u64::MAX, |mtu| u64::from(mtu.get()));
        let most = self.payload.most.min(mtu);
        let waiting = Waiting {
            message: launch.message,
            left,
            packets: left.div_ceil(most).max(1),
            most,
            number: flow.messages,
            next: NONE,
        };
        flow.messages = flow.messages.wrapping_add(1);
        let of_flow = launch.queue_pair.queue.of_flow();
        if of_flow != 0 {
            let queues = &mut queue.queues;
            queues.resize_with(queues.len().max(flow_place as usize + 1), Vec::new);
            let queues = &mut queues[flow_place as usize];
            let number = usize::from(waiting.number);
            queues.resize(queues.len().max(number + 1), 0);
            queues[number] = of_flow;
        }

        let place = match self.free.pop() {
            Some(place) => {
                self.waiting[place as usize] = waiting;
                place
            }
            None => {
                self.waiting.push(waiting);
                self.waiting.len() as u32 - 1
            }
        };
        if let Some(pair) = queue.pairs.get_mut(&launch.queue_pair) {
            self.waiting[pair.tail as usize].next = place;
            pair.tail = place;
            pair.left += left;
            return;
        }
        let pair = Pair {
            head: place,
            tail: place,
            flow: flow_place,
            release: Time::ZERO,
            class: launch.class,
            queue: launch.queue_pair.queue.of_flow(),
            left,
        };
        queue.pairs.insert(launch.queue_pair, pair);
    }

    /// Removes what waits in a rank's queues with this number, with any MTU. Calls `withdrawn` for each message.
    pub fn withdraw(
        &mut self,
        host: HostId,
        from: u32,
        queue: SendQueue,
        mut withdrawn: impl FnMut(Sent),
    ) {
        let HostQueue {
            pairs,
            chosen,
            flows,
            ..
        } = &mut self.hosts[host.index()];
        let is_meant = |key: &QueuePair| key.from == from && key.queue.is(queue);
        let keys: Vec<QueuePair> = pairs.keys().copied().filter(is_meant).collect();
        for key in keys {
            let Some(pair) = pairs.remove(&key) else {
                continue;
            };
            chosen.clear();
            let flow = &flows[pair.flow as usize];
            let mut place = pair.head;
            while place != NONE {
                let waiting = &self.waiting[place as usize];
                let has_started = waiting.left.div_ceil(waiting.most).max(1) < waiting.packets;
                let part = if has_started { Part::Some } else { Part::None };
                withdrawn(Sent {
                    part,
                    ..waiting.sent(host, flow, &mut self.changes)
                });
                self.free.push(place);
                place = waiting.next;
            }
        }
    }

    /// Calls `complete` for the last packet of a message.
    pub fn poll<G: Gate>(
        &mut self,
        host: HostId,
        now: Time,
        gate: &mut G,
        complete: impl FnOnce(Sent),
    ) -> Poll {
        let Self {
            hosts,
            waiting,
            free,
            changes,
            ..
        } = self;
        let HostQueue {
            pairs,
            last,
            chosen: waiting_pairs,
            flows,
            ..
        } = &mut hosts[host.index()];
        let mut wait = Time::MAX;
        let mut payload = |pair: &mut Pair, gate: &mut G| {
            let flow = &flows[pair.flow as usize];
            if pair.release <= now {
                pair.release = gate.release_queue(flow.to, flow.sl, pair.queue);
            }
            if pair.release > now {
                wait = wait.min(pair.release);
                return None;
            }
            let Waiting { left, most, .. } = waiting[pair.head as usize];
            let bytes = left.min(most) as u32;
            gate.lane_open(flow.sl, bytes).then_some(bytes)
        };
        let chosen = if pairs.len() == 1 {
            waiting_pairs.clear();
            let only = pairs.iter_mut().next();
            only.and_then(|(key, pair)| {
                let held = gate.held_lanes();
                let bytes = payload(pair, gate);
                waiting_pairs.note(held, gate.held_lanes(), *key);
                Some((*key, bytes?))
            })
        } else {
            let before = *waiting_pairs;
            let found = before.iter().find_map(|(lane, key)| {
                let bytes = pairs.get_mut(&key).and_then(|pair| payload(pair, gate));
                if bytes.is_some() || gate.held_lanes() >> lane & 1 == 0 {
                    waiting_pairs.remove(lane);
                }
                Some((key, bytes?))
            });
            let mut find = |pairs: &mut BTreeMap<_, _>, range: (Bound<_>, Bound<_>)| {
                let mut pairs = pairs.range_mut(range);
                pairs.find_map(|(key, pair)| {
                    if !before.is_empty() && before.contains(*key) {
                        return None;
                    }
                    let held = gate.held_lanes();
                    let bytes = payload(pair, gate);
                    waiting_pairs.note(held, gate.held_lanes(), *key);
                    Some((*key, bytes?))
                })
            };
            found
                .or_else(|| find(pairs, (Bound::Excluded(*last), Bound::Unbounded)))
                .or_else(|| find(pairs, (Bound::Unbounded, Bound::Included(*last))))
        };
        let Some((key, bytes)) = chosen else {
            return match wait {
                Time::MAX => Poll::Idle,
                wait => Poll::WaitUntil(wait),
            };
        };
        *last = key;
        let pair = pairs.get_mut(&key).expect("a pair just found");
        let flow = &mut flows[pair.flow as usize];
        let message = &mut waiting[pair.head as usize];
        message.left -= u64::from(bytes);
        pair.left -= u64::from(bytes);
        flow.sent += 1;
        let ends = message.left == 0;
        let offer = Offer {
            dst: flow.to,
            bytes,
            sl: flow.sl,
            class: pair.class,
            last: ends,
            behind: Offer::cut_off(pair.left),
            number: message.number,
            queue: pair.queue,
        };
        if ends {
            complete(message.sent(host, flow, changes));
            free.push(pair.head);
            pair.head = message.next;
            if pair.head == NONE {
                pairs.remove(&key);
            }
        }
        Poll::Send(offer)
    }

    /// Congestion control may allow earlier sends.
    pub fn invalidate_releases(&mut self, host: HostId) {
        for pair in self.hosts[host.index()].pairs.values_mut() {
            pair.release = Time::ZERO;
        }
    }

    /// The message with this number that a host is sending on a flow, if it has one.
    pub fn under_way(&self, host: HostId, flow: u32, number: u16) -> Option<u32> {
        let HostQueue { pairs, flows, .. } = &self.hosts[host.index()];
        let pairs = pairs.values();
        let pairs = pairs.filter(|pair| flows[pair.flow as usize].number == flow);
        let mut first = pairs.map(|pair| &self.waiting[pair.head as usize]);
        let found = first.find(|waiting| waiting.number == number);
        found.map(|waiting| waiting.message)
    }

    /// [`silvan_cc::hooks::Flow::queue`] of a packet that `host` has sent.
    pub fn queue_of(&self, host: HostId, offer: &Offer) -> u16 {
        let HostQueue { flows, queues, .. } = &self.hosts[host.index()];
        let is_meant =
            |flow: &Flow| (flow.to, flow.sl, flow.class) == (offer.dst, offer.sl, offer.class);
        let place = flows.iter().position(is_meant);
        let queues = place.and_then(|place| queues.get(place));
        let queue = queues.and_then(|queues| queues.get(usize::from(offer.number)));
        queue.copied().unwrap_or(0)
    }

    pub fn keep_changes(&mut self) {
        self.changes = Some(Vec::new());
    }

    pub fn take_changes(&mut self, changes: &mut Vec<MessageChange>) {
        if let Some(own) = &mut self.changes {
            changes.append(own);
        }
    }

    /// The least over all messages that are first in their pairs.
    pub fn packets_before_last(&self, host: HostId) -> Option<u64> {
        let pairs = self.hosts[host.index()].pairs.values();
        let packets = pairs.map(|pair| {
            let Waiting { left, most, .. } = self.waiting[pair.head as usize];
            left.saturating_sub(1) / most
        });
        packets.min()
    }

    pub fn whole_message(&self, host: HostId) -> Option<WholeMessage> {
        let HostQueue { pairs, flows, .. } = &self.hosts[host.index()];
        let (_, only) = pairs.first_key_value().filter(|_| pairs.len() == 1)?;
        let &Waiting {
            left,
            packets,
            most,
            next,
            ..
        } = &self.waiting[only.head as usize];
        let is_whole = next == NONE && left.div_ceil(most).max(1) == packets;
        is_whole.then_some(WholeMessage {
            bytes: left,
            packets,
            sl: flows[only.flow as usize].sl,
            class: only.class,
        })
    }

    /// Calls `complete`, as its last packet would.
    pub fn send_whole_message(&mut self, host: HostId, complete: impl FnOnce(Sent)) {
        let HostQueue {
            pairs,
            last,
            chosen,
            flows,
            ..
        } = &mut self.hosts[host.index()];
        let Some((key, only)) = pairs.pop_first() else {
            return;
        };
        *last = key;
        chosen.clear();
        let message = &self.waiting[only.head as usize];
        let flow = &mut flows[only.flow as usize];
        flow.sent += message.packets;
        complete(message.sent(host, flow, &mut self.changes));
        self.free.push(only.head);
    }

    pub fn progress(&self, hosts: &[u32], now: Time) -> Progress {
        let mut progress = Progress::default();
        for &host in hosts {
            let queue = &self.hosts[host as usize];
            if queue.pairs.is_empty() {
                continue;
            }
            let host = u64::from(host);
            let number = |pair: QueuePair| {
                let ranks = u64::from(pair.from) << 32 | u64::from(pair.to);
                let SendQueue {
                    number, responds, ..
                } = pair.queue;
                [ranks, u64::from(number) << 1 | u64::from(responds)]
            };
            progress.turns.push(host);
            progress.turns.extend(number(queue.last));
            for (lane, pair) in queue.chosen.iter() {
                progress.waiting.extend([host, lane as u64]);
                progress.waiting.extend(number(pair));
            }
            let releases = queue.pairs.values().map(|pair| pair.release);
            let ahead = releases.map(|release| release.checked_since(now).map_or(0, Span::as_ps));
            progress.waiting.extend(ahead);
            let left = |pair: &Pair| self.waiting[pair.head as usize].left;
            progress.payload.extend(queue.pairs.values().map(left));
        }
        progress
    }

    /// Most repetitions of a period before a message's last packet, which may be shorter.
    pub fn most_periods(&self, period: &Progress) -> u64 {
        let mut sent = period.payload.iter();
        let mut most = u64::MAX;
        for turn in period.turns.chunks(TURN) {
            for (pair, &sent) in self.hosts[turn[0] as usize].pairs.values().zip(&mut sent) {
                let head = &self.waiting[pair.head as usize];
                let full = head.left.saturating_sub(head.most);
                most = most.min(full.checked_div(sent).unwrap_or(u64::MAX));
            }
        }
        most
    }

    /// Counts `periods` periods; all packets have the largest size.
    pub fn skip_periods(&mut self, period: &Progress, periods: u64, now: Time, by: Span) {
        let mut sent = period.payload.iter();
        for turn in period.turns.chunks(TURN) {
            let HostQueue { pairs, flows, .. } = &mut self.hosts[turn[0] as usize];
            for (pair, &sent) in pairs.values_mut().zip(&mut sent) {
                let bytes = sent * periods;
                let head = &mut self.waiting[pair.head as usize];
                head.left -= bytes;
                pair.left -= bytes;
                if pair.release > now {
                    pair.release = pair.release.saturating_add(by);
                }
                flows[pair.flow as usize].sent += bytes / head.most;
            }
        }
    }
}
