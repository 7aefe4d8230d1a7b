//! Packets of a flow (source, destination, class) that arrive after later ones (RFC 4737, section 3.3).

use std::collections::VecDeque;

use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::HostId;
use silvan_core::prefetch::prefetch;

use crate::engine::Engine;
use crate::packet::{CONTROL, Packet};
use crate::stats::Delivery;
use crate::variant::EngineVariant;
use crate::workload::Workload;

#[derive(Clone, Debug)]
pub(crate) struct Reordering {
    hosts: Vec<Receiver>,
    in_order: bool,
    /// The last arrival; not counted while its flow is prefetched, unless packets are delivered in order.
    last: Option<Arrival>,
    ready: Vec<(Delivery, Packet)>,
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    host: u32,
    class: u16,
    source: u32,
    sent: u64,
}

impl Arrival {
    fn of(delivery: &Delivery) -> Self {
        Self {
            host: delivery.host,
            class: delivery.class,
            source: delivery.source,
            sent: delivery.done - delivery.latency,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Receiver {
    /// A hash table of a power of two of places: an arrival reads one line of memory.
    newest: Vec<Newest>,
    known: usize,
    flows: Vec<FlowOrder>,
    reordered: u64,
    held: u64,
    most_held: u64,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    key: u64,
    sent: u64,
}

const NO_FLOW: u64 = u64::MAX;
const FREE: Newest = Newest {
    key: NO_FLOW,
    sent: 0,
};
const FIRST_PLACES: usize = 8;

#[derive(Clone, Debug, Default)]
struct FlowOrder {
    delivered: u64,
    outstanding: VecDeque<u64>,
    held: Vec<(u64, Delivery, Packet)>,
}

impl Receiver {
    #[inline]
    fn place(&mut self, class: u16, source: u32, in_order: bool) -> usize {
        let key = key_of(class, source);
        // A quarter stays free, so that probing is short.
        if self.known * 4 >= self.newest.len() * 3 {
            self.grow(in_order);
        }
        let place = self.search(key);
        if self.newest[place].key == NO_FLOW {
            self.newest[place].key = key;
            self.known += 1;
        }
        place
    }

    #[inline]
    fn count(&mut self, arrival: &Arrival, in_order: bool) -> usize {
        let place = self.place(arrival.class, arrival.source, in_order);
        let newest = &mut self.newest[place].sent;
        self.reordered += u64::from(arrival.sent < *newest);
        *newest = arrival.sent.max(*newest);
        place
    }

    fn is_reordered(&self, arrival: &Arrival) -> bool {
        let key = key_of(arrival.class, arrival.source);
        !self.newest.is_empty() && arrival.sent < self.newest[self.search(key)].sent
    }

    #[inline]
    fn search(&self, key: u64) -> usize {
        let last = self.newest.len() - 1;
        let mut place = first_place(key, self.newest.len());
        while self.newest[place].key != key && self.newest[place].key != NO_FLOW {
            place = (place + 1) & last;
        }
        place
    }

    #[cold]
    fn grow(&mut self, in_order: bool) {
        let places = (self.newest.len() * 2).max(FIRST_PLACES);
        let newest = std::mem::replace(&mut self.newest, vec![FREE; places]);
        let mut flows = std::mem::take(&mut self.flows);
        if in_order {
            self.flows.resize_with(places, FlowOrder::default);
        }
        for (old, flow) in newest.into_iter().enumerate() {
            if flow.key == NO_FLOW {
                continue;
            }
            let place = self.search(flow.key);
            self.newest[place] = flow;
            if in_order {
                self.flows[place] = std::mem::take(&mut flows[old]);
            }
        }
    }
}

#[inline]
fn key_of(class: u16, source: u32) -> u64 {
    u64::from(class) << 32 | u64::from(source)
}

/// Home of a key: the high bits of its product with 2^64 over the golden ratio spread sources evenly for any distance
/// (Knuth, The Art of Computer Programming, 6.4).
#[inline]
fn first_place(key: u64, places: usize) -> usize {
    let spread = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    ((spread * places as u64) >> 32) as usize
}

impl Reordering {
    pub fn new(hosts: usize, in_order: bool) -> Self {
        Self {
            hosts: vec![Receiver::default(); hosts],
            in_order,
            last: None,
            ready: Vec::new(),
        }
    }

    pub fn reordered(&self, host: HostId) -> u64 {
        let receiver = &self.hosts[host.index()];
        let last = self.last.filter(|last| last.host as usize == host.index());
        receiver.reordered + u64::from(last.is_some_and(|last| receiver.is_reordered(&last)))
    }

    /// In bytes.
    pub fn most_held(&self, host: HostId) -> u64 {
        self.hosts[host.index()].most_held
    }

    pub fn held(&self) -> u64 {
        self.hosts.iter().map(|host| host.held).sum()
    }

    pub fn sent(&mut self, now: u64, packet: &Packet) {
        if self.in_order {
            let receiver = &mut self.hosts[packet.destination() as usize];
            let place = receiver.place(packet.class(), packet.source(), true);
            receiver.flows[place].outstanding.push_back(now);
        }
    }

    pub fn lost(&mut self, born: u64, packet: &Packet) {
        let Some(receiver) = self.hosts.get_mut(packet.destination() as usize) else {
            return;
        };
        if self.in_order {
            let place = receiver.place(packet.class(), packet.source(), true);
            let flow = &mut receiver.flows[place];
            flow.outstanding.retain(|sent| *sent != born);
        }
    }

    /// Counts an arrival when the next one comes, so that its flow can be prefetched.
    #[inline]
    fn count_later(&mut self, arrival: Arrival) {
        let newest = &self.hosts[arrival.host as usize].newest;
        let key = key_of(arrival.class, arrival.source);
        prefetch(newest, first_place(key, newest.len()));
        if let Some(last) = self.last.replace(arrival) {
            self.hosts[last.host as usize].count(&last, false);
        }
    }

    fn bring_into_order(&mut self, delivery: Delivery, packet: Packet) {
        let receiver = &mut self.hosts[delivery.host as usize];
        let arrival = Arrival::of(&delivery);
        let (place, sent) = (receiver.count(&arrival, true), arrival.sent);
        let flow = &mut receiver.flows[place];
        flow.held.push((sent, delivery, packet));
        let mut released = 0;
        while let Some(&next) = flow.outstanding.front() {
            let Some(place) = flow.held.iter().position(|(born, ..)| *born == next) else {
                break;
            };
            flow.outstanding.pop_front();
            let (_, mut delivery, packet) = flow.held.swap_remove(place);
            // Events of one instant have no order: packets released together are delivered a picosecond apart.
            let done = delivery.done.max(flow.delivered + 1);
            flow.delivered = done;
            delivery.latency += done - delivery.done;
            delivery.done = done;
            released += u64::from(delivery.payload);
            self.ready.push((delivery, packet));
        }
        receiver.held += u64::from(delivery.payload);
        receiver.held -= released;
        receiver.most_held = receiver.most_held.max(receiver.held);
    }

    pub fn bytes(&self) -> usize {
        let of_flow = |flow: &FlowOrder| {
            flow.outstanding.capacity() * 8
                + flow.held.capacity() * size_of::<(u64, Delivery, Packet)>()
        };
        let of_host = |host: &Receiver| {
            host.newest.capacity() * size_of::<Newest>()
                + host.flows.capacity() * size_of::<FlowOrder>()
                + host.flows.iter().map(of_flow).sum::<usize>()
        };
        self.hosts.capacity() * size_of::<Receiver>()
            + self.hosts.iter().map(of_host).sum::<usize>()
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    #[inline(never)]
    pub(crate) fn arrive(&mut self, delivery: Delivery, packet: Packet) {
        debug_assert!(!packet.is(CONTROL), "notifications have no order");
        let Some(reordering) = &mut self.plane.reordering else {
            return;
        };
        if !reordering.in_order {
            reordering.count_later(Arrival::of(&delivery));
            self.hand_over(delivery, packet);
            return;
        }
        let Some(mut reordering) = self.plane.reordering.take() else {
            return;
        };
        reordering.bring_into_order(delivery, packet);
        for (delivery, packet) in reordering.ready.drain(..) {
            self.hand_over(delivery, packet);
        }
        self.plane.reordering = Some(reordering);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: places differ, and stay with their flows while others come.
    #[test]
    fn flows_are_found_however_they_are_spread() {
        for spread in [1, 3, 16, 648, 1 << 20] {
            for count in 0..200_u32 {
                let flows: Vec<(u16, u32)> = (0..count)
                    .map(|index| ((index % 3) as u16, index * spread))
                    .collect();
                let mut receiver = Receiver::default();
                for &(class, source) in &flows {
                    let place = receiver.place(class, source, true);
                    receiver.newest[place].sent = key_of(class, source) + 1;
                    receiver.flows[place].delivered = key_of(class, source) + 1;
                }
                assert_eq!(receiver.known, flows.len());
                let mut places: Vec<usize> = Vec::new();
                for &(class, source) in &flows {
                    let place = receiver.place(class, source, true);
                    assert_eq!(receiver.newest[place].sent, key_of(class, source) + 1);
                    assert_eq!(receiver.flows[place].delivered, key_of(class, source) + 1);
                    places.push(place);
                }
                places.sort_unstable();
                places.dedup();
                assert_eq!(places.len(), flows.len());
            }
        }
    }
}
