//! Records asked for before their event comes up.
//!
//! The events of a lane stand in the order in which they will happen, so it is known some events ahead
//! which records will be touched. One record tells where the next one stands (an input its upstream
//! port, an output the queue whose turn it is, a queue its first packet), so they are asked for in
//! stages, some events apart: each looks only at what an earlier one has asked for.

use crate::events::EventQueue;
use crate::form::Form;
use crate::packet::Queue;
use crate::plane::{Plane, UNREAD};
use crate::records::{Credits, Next, OutLane, OutPort};
use silvan_interface::prefetch;

/// How far away the records of a fabric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// They fit into the first cache: asking for them costs more than it saves.
    Near,
    /// They fit into the second cache.
    Middle,
    /// They do not.
    Far,
}

/// First stage of a head: what tells where its records stand.
const HEAD_TELLS: usize = 14;
/// Second stage: the records of its output.
const HEAD_RECORDS: usize = 7;
/// Last stage: what they lead to.
const HEAD_LAST: usize = 2;
/// First stage of a host that injects: its record, and where its traffic stands.
pub(crate) const HOST_FIRST: usize = 6;
/// Last stage: its port, and its traffic.
pub(crate) const HOST_LAST: usize = 3;

impl Plane {
    /// How far away the records are, once they have been made. It must not matter to what happens:
    /// with debug assertions, with which all Rust tests run, small fabrics take all the ways.
    pub fn measure_reach(&self) -> Reach {
        if cfg!(debug_assertions) && self.fabric_ports % 3 != 0 {
            return [Reach::Middle, Reach::Far][self.fabric_ports % 2];
        }
        let ports = size_of::<OutPort>() + size_of::<Credits>() + size_of::<OutLane>();
        let ports = self.fabric_ports * ports;
        let all = ports + self.queues.len() * size_of::<Queue>() + self.tables.len();
        // A quarter of a megabyte of ports' records, to which the other tables, packets and hosts come;
        // caches of the second level have one or two megabytes. An index of `UNREAD` and above could
        // not be noted with a head.
        match (ports, all) {
            (_, 0x20_0000..) if self.tables.len() < 1 << 30 => Reach::Far,
            (0x4_0000.., _) => Reach::Middle,
            _ => Reach::Near,
        }
    }

    /// Asks for the records of heads that follow in a lane.
    #[inline(always)]
    pub fn prefetch_heads<F: Form>(&mut self, lane: usize) {
        if self.reach == Reach::Far {
            self.prefetch_far_heads::<F>(lane);
        } else if let Some(head) = self.events.coming_head(lane, 5) {
            let (port, output, vl) = (head.port, head.output, head.packet.vl());
            self.prefetch_hop::<F>(port, output, vl);
        }
    }

    #[inline(always)]
    fn prefetch_far_heads<F: Form>(&mut self, lane: usize) {
        if let Some(head) = self.events.coming_head(lane, HEAD_TELLS) {
            prefetch(&self.ins, head.port as usize);
            prefetch(&self.tables, (head.output & !UNREAD) as usize);
        }
        if let Some(&head) = self.events.coming_head(lane, HEAD_RECORDS) {
            let output = self.resolve(head.port, head.output);
            self.events.set_coming_output(lane, HEAD_RECORDS, output);
            self.prefetch_hop::<F>(head.port, output, head.packet.vl());
        }
        if let Some(head) = self.events.coming_head(lane, HEAD_LAST) {
            if head.output >= UNREAD {
                return;
            }
            let (port, vl) = (head.port, head.packet.vl());
            let out = &self.outs[head.output as usize];
            if out.waiting > 0 {
                let local = u32::from(self.ins[port as usize].local);
                let first = self.lanes[self.lane_in::<F>(head.output, vl)].queues;
                prefetch(&self.queues, (first + local) as usize);
            }
            self.prefetch_sink::<F>(out, head.output);
        }
    }

    /// Asks for what a head needs that goes from an input port to an output.
    #[inline(always)]
    fn prefetch_hop<F: Form>(&self, port: u32, output: u32, vl: usize) {
        let lane = self.lane_in::<F>(output, vl);
        prefetch(&self.outs, output as usize);
        prefetch(&self.credits, lane);
        prefetch(&self.lanes, lane);
        let upstream = self.ins[port as usize].upstream;
        prefetch(&self.credits, self.lane_in::<F>(upstream, vl));
    }

    /// Asks for what a delivery needs, if the output leads to a host.
    #[inline(always)]
    fn prefetch_sink<F: Form>(&self, out: &OutPort, output: u32) {
        if out.kind == Next::Host {
            prefetch(&self.propagation, output as usize);
            prefetch(&self.hosts, out.next as usize);
            self.credits[self.lane_in::<F>(output, 0)].prefetch_spilled(&self.spill);
        }
    }

    /// Asks for the records of the outputs that will arbitrate soon, `coming` giving them by how
    /// many events they are away: first for the lane, then for the first packet of the queue whose
    /// turn it is and for the credits that it gives back.
    #[inline(always)]
    pub fn prefetch_outputs<F: Form>(&self, coming: impl Fn(&EventQueue, usize) -> Option<u32>) {
        let far = self.reach == Reach::Far;
        if let Some(output) = coming(&self.events, if far { 9 } else { 6 }) {
            let lane = self.lane_in::<F>(output, 0);
            prefetch(&self.outs, output as usize);
            prefetch(&self.credits, lane);
            prefetch(&self.lanes, lane);
        }
        if far {
            if let Some(output) = coming(&self.events, 5) {
                if let Some((queue, input)) = self.queue_in_turn::<F>(output) {
                    prefetch(&self.queues, queue);
                    prefetch(&self.ins, input);
                }
                self.prefetch_sink::<F>(&self.outs[output as usize], output);
            }
        }
        if let Some(output) = coming(&self.events, if far { 2 } else { 3 }) {
            if let Some((queue, input)) = self.queue_in_turn::<F>(output) {
                self.pool.prefetch(self.queues[queue]);
                let upstream = self.ins[input].upstream;
                prefetch(&self.credits, self.lane_in::<F>(upstream, 0));
            }
        }
    }

    /// The queue that a round-robin output is likely to serve next, and its input port.
    #[inline(always)]
    fn queue_in_turn<F: Form>(&self, output: u32) -> Option<(usize, usize)> {
        let lane = self.lane_in::<F>(output, 0);
        let record = &self.lanes[lane];
        let local = record.pick::<F>(self.credits[lane].turn, None)?;
        Some((
            (record.queues + local) as usize,
            (record.base + local) as usize,
        ))
    }

    /// Asks for the records of a host that will inject soon.
    #[inline(always)]
    pub fn prefetch_hosts<F: Form>(&self) {
        if let Some(host) = self.events.coming_host(HOST_FIRST) {
            prefetch(&self.hosts, host as usize);
        }
        if let Some(host) = self.events.coming_host(HOST_LAST) {
            let port = self.hosts[host as usize].port;
            prefetch(&self.outs, port as usize);
            prefetch(&self.credits, self.lane_in::<F>(port, 0));
        }
    }
}
