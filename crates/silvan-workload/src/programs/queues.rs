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

impl Queues {
    pub fn new(hosts: usize, mtu: u64) -> Self {
        Self {
            hosts: vec![HostQueue::default(); hosts],
            flows: Vec::new(),
            by_target: vec![Vec::new(); hosts],
            mtu,
        }
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
            });
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
        let queue = &mut self.hosts[host.index()];
        let mut wait = Time::MAX;
        let after = (Bound::Excluded(queue.last), Bound::Unbounded);
        let mut chosen = None;
        // First those after the one that sent last, then those up to it.
        for round in 0..2 {
            let range = if round == 0 {
                queue.pairs.range_mut(after)
            } else {
                queue.pairs.range_mut(..=queue.last)
            };
            for (key, pair) in range {
                if pair.release > now {
                    wait = wait.min(pair.release);
                    continue;
                }
                let flow = &self.flows[pair.flow as usize];
                pair.release = gate.release(flow.to, flow.sl);
                if pair.release > now {
                    wait = wait.min(pair.release);
                    continue;
                }
                let bytes = messages.at(pair.head).left.min(self.mtu) as u32;
                if gate.lane_open(flow.sl, bytes) {
                    chosen = Some((*key, bytes));
                    break;
                }
            }
            if chosen.is_some() {
                break;
            }
        }
        let Some((key, bytes)) = chosen else {
            return if wait == Time::MAX {
                Poll::Idle
            } else {
                Poll::WaitUntil(wait)
            };
        };
        queue.last = key;
        Poll::Send(self.emit(messages, host, key, bytes))
    }

    fn emit(
        &mut self,
        messages: &mut Messages,
        host: HostId,
        key: (u32, u32),
        bytes: u32,
    ) -> Offer {
        let pairs = &mut self.hosts[host.index()].pairs;
        // The key comes from this very map.
        let pair = pairs.get_mut(&key).expect("a pair that was just found");
        let flow = &mut self.flows[pair.flow as usize];
        let slot = pair.head;
        let message = messages.at_mut(slot);
        message.left -= u64::from(bytes);
        flow.sent += 1;
        let last = message.left == 0;
        let offer = Offer {
            dst: flow.to,
            bytes,
            sl: flow.sl,
            class: pair.class,
            last,
        };
        if last {
            flow.whole.push_back((flow.sent, slot));
            pair.head = message.next;
            if pair.head == NONE {
                pairs.remove(&key);
            }
        }
        offer
    }

    /// Counts a packet that has arrived.
    pub fn delivered(&mut self, from: HostId, to: HostId, sl: Sl) -> Option<u32> {
        let known = &self.by_target[to.index()];
        let place = known.binary_search_by_key(&flow_key(from, sl), |entry| entry.0);
        let flow = known[place.ok()?].1;
        let flow_state = &mut self.flows[flow as usize];
        flow_state.delivered += 1;
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
