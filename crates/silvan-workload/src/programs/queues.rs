//! What hosts have to send, and what is on its way between them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use silvan_cc::workload::{Gate, Offer, Poll};
use silvan_core::{HostId, Sl, Time};

use crate::programs::message::{Messages, NONE};

/// Messages from one rank to another, one after the other: a queue pair.
#[derive(Clone, Copy, Debug)]
struct Pair {
    head: u32,
    tail: u32,
    flow: u32,
    /// Earliest instant at which congestion control lets it send, as it last said.
    release: Time,
    class: u16,
    /// Bytes to send of all its messages.
    left: u64,
}

/// Packets from one host to another on one service level: they arrive in order.
///
/// Where packets may overtake each other (adaptive routing), a message counts as complete
/// when as many packets have arrived as had been sent with its last one.
#[derive(Clone, Debug)]
struct Flow {
    to: HostId,
    sl: Sl,
    sent: u64,
    delivered: u64,
    /// Messages sent completely, each with the number of packets sent by then.
    whole: VecDeque<(u64, u32)>,
}

/// The queue pairs of one host that have something to send, by rank and rank.
#[derive(Clone, Debug, Default)]
struct HostQueue {
    pairs: BTreeMap<(u32, u32), Pair>,
    /// The pair that sent last.
    last: (u32, u32),
}

/// Where a message goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub from: HostId,
    pub to: HostId,
    pub sl: Sl,
    pub class: u16,
}

/// All queues of all hosts.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    hosts: Vec<HostQueue>,
    flows: Vec<Flow>,
    /// Flows by destination: sending host and service level, in order.
    by_target: Vec<Vec<(u64, u32)>>,
    mtu: u64,
}

fn flow_key(from: HostId, sl: Sl) -> u64 {
    (from.index() as u64) << 4 | u64::from(sl.as_u8())
}

/// Takes a packet of a pair's first message, and says whether the pair has no more.
fn emit(messages: &mut Messages, flows: &mut [Flow], pair: &mut Pair, bytes: u32) -> (Offer, bool) {
    let flow = &mut flows[pair.flow as usize];
    let slot = pair.head;
    let message = messages.at_mut(slot);
    message.left -= u64::from(bytes);
    pair.left -= u64::from(bytes);
    flow.sent += 1;
    let last = message.left == 0;
    let offer = Offer {
        dst: flow.to,
        bytes,
        sl: flow.sl,
        class: pair.class,
        last,
        behind: Offer::cut_off(pair.left),
    };
    if last {
        flow.whole.push_back((flow.sent, slot));
        pair.head = message.next;
    }
    (offer, pair.head == NONE)
}

impl Queues {
    pub fn new(hosts: usize, mtu: u64) -> Self {
        Self {
            hosts: vec![HostQueue::default(); hosts],
            flows: Vec::new(),
            by_target: vec![Vec::new(); hosts],
            mtu,
        }
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    fn flow(&mut self, way: Way) -> u32 {
        let key = flow_key(way.from, way.sl);
        let known = &mut self.by_target[way.to.index()];
        match known.binary_search_by_key(&key, |entry| entry.0) {
            Ok(place) => known[place].1,
            Err(place) => {
                let flow = self.flows.len() as u32;
                known.insert(place, (key, flow));
                self.flows.push(Flow {
                    to: way.to,
                    sl: way.sl,
                    sent: 0,
                    delivered: 0,
                    whole: VecDeque::new(),
                });
                flow
            }
        }
    }

    /// Queues a message behind the others of its two ranks.
    pub fn push(&mut self, messages: &mut Messages, slot: u32, way: Way) {
        let flow = self.flow(way);
        let key = messages.at(slot).way();
        messages.at_mut(slot).next = NONE;
        let pair = self.hosts[way.from.index()]
            .pairs
            .entry(key)
            .or_insert(Pair {
                head: NONE,
                tail: NONE,
                flow,
                release: Time::ZERO,
                class: way.class,
                left: 0,
            });
        pair.left += messages.at(slot).left;
        if pair.tail == NONE {
            pair.head = slot;
        } else {
            messages.at_mut(pair.tail).next = slot;
        }
        pair.tail = slot;
    }

    /// The next packet of a host. Queue pairs take turns, packet by packet; one that congestion control
    /// holds back steps aside.
    pub fn poll<G: Gate>(
        &mut self,
        messages: &mut Messages,
        host: HostId,
        now: Time,
        gate: &mut G,
    ) -> Poll {
        let Self {
            hosts, flows, mtu, ..
        } = self;
        let queue = &mut hosts[host.index()];
        let mut wait = Time::MAX;
        let mut payload = |pair: &mut Pair| {
            let flow = &flows[pair.flow as usize];
            if pair.release <= now {
                pair.release = gate.release(flow.to, flow.sl);
            }
            if pair.release > now {
                wait = wait.min(pair.release);
                return None;
            }
            let bytes = messages.at(pair.head).left.min(*mtu) as u32;
            gate.lane_open(flow.sl, bytes).then_some(bytes)
        };
        // Most hosts have one pair at a time, which is found without a search.
        if queue.pairs.len() == 1
            && let Some((key, pair)) = queue.pairs.iter_mut().next()
        {
            if let Some(bytes) = payload(pair) {
                queue.last = *key;
                let (offer, is_empty) = emit(messages, flows, pair, bytes);
                if is_empty {
                    queue.pairs.clear();
                }
                return Poll::Send(offer);
            }
        } else {
            // First those after the one that sent last, then those up to it.
            let after = (Bound::Excluded(queue.last), Bound::Unbounded);
            let mut chosen = None;
            for (key, pair) in queue.pairs.range_mut(after) {
                if let Some(bytes) = payload(pair) {
                    chosen = Some((*key, bytes));
                    break;
                }
            }
            if chosen.is_none() {
                for (key, pair) in queue.pairs.range_mut(..=queue.last) {
                    if let Some(bytes) = payload(pair) {
                        chosen = Some((*key, bytes));
                        break;
                    }
                }
            }
            if let Some((key, bytes)) = chosen {
                queue.last = key;
                // The key comes from this very map.
                let pair = queue.pairs.get_mut(&key).expect("a pair just found");
                let (offer, is_empty) = emit(messages, flows, pair, bytes);
                if is_empty {
                    queue.pairs.remove(&key);
                }
                return Poll::Send(offer);
            }
        }
        if wait == Time::MAX {
            Poll::Idle
        } else {
            Poll::WaitUntil(wait)
        }
    }

    /// Counts a packet that has arrived, with all before it if it completes a message.
    pub fn delivered(&mut self, from: HostId, offer: &Offer, completes: bool) -> Option<u32> {
        let known = &self.by_target[offer.dst.index()];
        let place = known.binary_search_by_key(&flow_key(from, offer.sl), |entry| entry.0);
        let flow = known[place.ok()?].1;
        let flow_state = &mut self.flows[flow as usize];
        flow_state.delivered = match flow_state.whole.front() {
            Some((packets, _)) if completes => *packets,
            _ => flow_state.delivered + 1,
        };
        Some(flow)
    }

    /// Takes the next message of a flow that has arrived completely.
    pub fn take_whole(&mut self, flow: u32) -> Option<u32> {
        let flow = &mut self.flows[flow as usize];
        let (packets, slot) = *flow.whole.front()?;
        if packets > flow.delivered {
            return None;
        }
        flow.whole.pop_front();
        Some(slot)
    }

    /// Congestion control may let flows of the host send earlier than it said.
    pub fn invalidate_releases(&mut self, host: HostId) {
        for pair in self.hosts[host.index()].pairs.values_mut() {
            pair.release = Time::ZERO;
        }
    }
}
