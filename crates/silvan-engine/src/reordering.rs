//! Packets of a flow that arrive after later ones, where paths differ from packet to packet.
//!
//! A flow is what one host sends to another in one traffic class. A packet is reordered if one of its flow that was sent
//! later has arrived before it (RFC 4737, section 3.3). A destination that delivers in order holds packets until all
//! earlier ones of their flow have arrived, beyond its receive buffer, whose credits it returns on arrival.

use std::collections::VecDeque;

use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::HostId;

use crate::engine::Engine;
use crate::packet::{CONTROL, Packet};
use crate::stats::Delivery;
use crate::variant::EngineVariant;
use crate::workload::Workload;

/// The order in which packets arrive, at all hosts.
#[derive(Clone, Debug)]
pub(crate) struct Reordering {
    hosts: Vec<Receiver>,
    /// Whether packets are delivered in order.
    in_order: bool,
    /// Those that the last arrival has released.
    ready: Vec<(Delivery, Packet)>,
}

/// What one host receives.
#[derive(Clone, Debug, Default)]
struct Receiver {
    /// Class and source of each flow, in order, and when the latest packet that has arrived was sent.
    newest: Vec<(u64, u64)>,
    /// By flow, where packets are delivered in order.
    flows: Vec<FlowOrder>,
    reordered: u64,
    /// Payload held at present, and the most so far.
    held: u64,
    most_held: u64,
}

/// One flow at its destination.
#[derive(Clone, Debug, Default)]
struct FlowOrder {
    /// When the last packet was delivered in order.
    delivered: u64,
    /// When the packets were sent that have not been delivered in order.
    outstanding: VecDeque<u64>,
    held: Vec<(u64, Delivery, Packet)>,
}

impl Receiver {
    /// Place of a flow among those of this host; it may be a new one.
    fn place(&mut self, class: u16, source: u32, in_order: bool) -> usize {
        let key = u64::from(class) << 32 | u64::from(source);
        let place = self.search(key);
        if self.newest.get(place).is_none_or(|flow| flow.0 != key) {
            self.newest.insert(place, (key, 0));
            if in_order {
                self.flows.insert(place, FlowOrder::default());
            }
        }
        place
    }

    /// Where a key is or belongs. Sources are spread evenly as a rule, so the search begins where an even spread
    /// has the key, and reads few lines of memory.
    fn search(&self, key: u64) -> usize {
        let flows = &self.newest;
        let (Some(first), Some(last)) = (flows.first(), flows.last()) else {
            return 0;
        };
        if key <= first.0 {
            return 0;
        }
        if key > last.0 {
            return flows.len();
        }
        let share = (key - first.0) as f64 / (last.0 - first.0) as f64;
        let guess = (share * (flows.len() - 1) as f64) as usize;
        let mut step = 2;
        let (mut low, mut high) = (guess, guess);
        while flows[low].0 >= key && low > 0 {
            high = low;
            low = low.saturating_sub(step);
            step *= 2;
        }
        while flows[high].0 < key {
            low = high;
            high = (high + step).min(flows.len() - 1);
            step *= 2;
        }
        low + flows[low..=high].partition_point(|flow| flow.0 < key)
    }
}

impl Reordering {
    pub fn new(hosts: usize, in_order: bool) -> Self {
        Self {
            hosts: vec![Receiver::default(); hosts],
            in_order,
            ready: Vec::new(),
        }
    }

    /// Packets that arrived at a host after later ones of their flow.
    pub fn reordered(&self, host: HostId) -> u64 {
        self.hosts[host.index()].reordered
    }

    /// Most payload that a host has held at once, in bytes.
    pub fn most_held(&self, host: HostId) -> u64 {
        self.hosts[host.index()].most_held
    }

    /// Payload that all hosts hold.
    pub fn held(&self) -> u64 {
        self.hosts.iter().map(|host| host.held).sum()
    }

    /// A data packet is sent.
    pub fn sent(&mut self, now: u64, packet: &Packet) {
        if self.in_order {
            let receiver = &mut self.hosts[packet.destination() as usize];
            let place = receiver.place(packet.class(), packet.source(), true);
            receiver.flows[place].outstanding.push_back(now);
        }
    }

    /// A data packet that was sent at `born` will not arrive.
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

    /// A data packet has arrived: whether a later one of its flow has before. Returns the place of the flow.
    #[inline]
    fn note(&mut self, delivery: &Delivery) -> usize {
        let receiver = &mut self.hosts[delivery.host as usize];
        let place = receiver.place(delivery.class, delivery.source, self.in_order);
        let newest = &mut receiver.newest[place].1;
        let sent = delivery.done - delivery.latency;
        receiver.reordered += u64::from(sent < *newest);
        *newest = sent.max(*newest);
        place
    }

    /// The packet is to be delivered in order. `ready` has what is delivered then.
    fn bring_into_order(&mut self, place: usize, delivery: Delivery, packet: Packet) {
        let receiver = &mut self.hosts[delivery.host as usize];
        let sent = delivery.done - delivery.latency;
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
        // What is delivered at once is not held.
        receiver.held += u64::from(delivery.payload);
        receiver.held -= released;
        receiver.most_held = receiver.most_held.max(receiver.held);
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let of_flow = |flow: &FlowOrder| {
            flow.outstanding.capacity() * 8
                + flow.held.capacity() * size_of::<(u64, Delivery, Packet)>()
        };
        let of_host = |host: &Receiver| {
            host.newest.capacity() * size_of::<(u64, u64)>()
                + host.flows.capacity() * size_of::<FlowOrder>()
                + host.flows.iter().map(of_flow).sum::<usize>()
        };
        self.hosts.capacity() * size_of::<Receiver>()
            + self.hosts.iter().map(of_host).sum::<usize>()
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Counts an arrival, and delivers what need not wait for earlier packets.
    #[inline(never)]
    pub(crate) fn arrive(&mut self, delivery: Delivery, packet: Packet) {
        debug_assert!(!packet.is(CONTROL), "notifications have no order");
        let Some(reordering) = &mut self.plane.reordering else {
            return;
        };
        let place = reordering.note(&delivery);
        if !reordering.in_order {
            self.hand_over(delivery, packet);
            return;
        }
        let Some(mut reordering) = self.plane.reordering.take() else {
            return;
        };
        reordering.bring_into_order(place, delivery, packet);
        for (delivery, packet) in reordering.ready.drain(..) {
            self.hand_over(delivery, packet);
        }
        self.plane.reordering = Some(reordering);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: a search from the first to the last.
    #[test]
    fn flows_are_found_however_they_are_spread() {
        for spread in [1, 3, 1 << 20, 1 << 32] {
            for count in 0..40 {
                let keys: Vec<u64> = (0..count).map(|index| 5 + index * index * spread).collect();
                let receiver = Receiver {
                    newest: keys.iter().map(|&key| (key, 0)).collect(),
                    ..Receiver::default()
                };
                let near = keys.iter().flat_map(|&key| [key - 1, key, key + 1]);
                for key in near.chain([0, u64::MAX]) {
                    let expected = keys.iter().filter(|&&known| known < key).count();
                    assert_eq!(receiver.search(key), expected);
                }
            }
        }
    }
}
