//! Prefetching of records before their event is processed.
//!
//! A fixed-delay queue is in the order of time, so the engine knows some events in advance which records they access.
//! Each record has the index of the next record: an input has that of its upstream port, an output that of its next
//! queue, a queue that of its first packet. So the engine prefetches in stages, some events apart: each stage reads
//! only records that an earlier stage has prefetched.

use silvan_cc::hooks::{PortVl, SourceControl, SwitchControl};
use silvan_core::HostId;

use crate::engine::Engine;
use crate::events::{Event, Head, phase};
use crate::feedback::notified_flow;
use crate::packet::Queue;
use crate::plane::{Plane, UNREAD};
use crate::records::{Credits, Next, OutLane, OutPort};
use crate::variant::EngineVariant;
use crate::workload::Workload;
use silvan_core::prefetch::{prefetch, prefetch_item};

/// Size of a fabric's records, compared with the processor's caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkingSet {
    /// Records fit into the first-level cache: prefetching costs more than it saves.
    FitsFirstCache,
    FitsSecondCache,
    /// Records fit into neither.
    ExceedsCaches,
}

/// First stage of a head in a large fabric: the table entries that index its records.
const HEAD_TABLES: usize = 14;
/// Stage of every head: the records of its output.
const HEAD_RECORDS: usize = 7;
/// Last stage in a large fabric: the records that they refer to.
const HEAD_LAST: usize = 2;
/// First stage of an output that arbitrates, or of another event of the wheel: its records.
const EVENT_FIRST: usize = 9;
/// Second stage: the next queue; what a notification changes.
const EVENT_SECOND: usize = 5;
/// Last stage: the first packet of that queue, and the credits that it returns; what else a notification changes.
const EVENT_LAST: usize = 2;
/// First stage of an output with several lanes: which of them have packets, and which sent last.
const LANES_FIRST: usize = 13;
/// First stage of a host that injects: its record, and the index of its traffic.
const HOST_FIRST: usize = 6;
/// Last stage: its port, its traffic and its congestion control.
const HOST_LAST: usize = 3;

impl Plane {
    /// The working set of the records, once they have been built. It must not change results: with debug
    /// assertions, with which all Rust tests run, small fabrics use all three.
    pub fn classify_working_set(&self) -> WorkingSet {
        if self.rule.is_some() {
            return WorkingSet::ExceedsCaches;
        }
        if cfg!(debug_assertions) && self.fabric_ports % 3 != 0 {
            return [WorkingSet::FitsSecondCache, WorkingSet::ExceedsCaches][self.fabric_ports % 2];
        }
        let of_lane = size_of::<Credits>() + size_of::<OutLane>();
        let ports = self.fabric_ports * (size_of::<OutPort>() + self.vls * of_lane);
        let all = ports + self.queues.len() * size_of::<Queue>() + self.tables.len();
        // A quarter of a megabyte of ports' records, to which the other tables, packets and hosts come; caches of the
        // second level have one or two megabytes. An index of `UNREAD` and above could not be stored with a head.
        match (ports, all) {
            (_, 0x20_0000..) if self.tables.len() < 1 << 30 => WorkingSet::ExceedsCaches,
            (0x4_0000.., _) => WorkingSet::FitsSecondCache,
            _ => WorkingSet::FitsFirstCache,
        }
    }

    /// Prefetches the records of a head that goes from an input port to an output.
    #[inline(always)]
    fn prefetch_hop<F: EngineVariant>(&self, port: u32, output: u32, vl: usize) {
        let lane = self.lane_in::<F>(output, vl);
        prefetch(&self.outs, output as usize);
        prefetch(&self.credits, lane);
        prefetch(&self.lanes, lane);
        if F::LOOKAHEAD && self.vls_in::<F>() > 1 {
            self.prefetch_state_of_lanes(output);
        }
        if self.working_set != WorkingSet::ExceedsCaches {
            let upstream = self.ins[port as usize].upstream;
            prefetch(&self.credits, self.lane_in::<F>(upstream, vl));
        }
    }

    /// Prefetches the data that an output's arbitration among its lanes needs in addition to their records.
    #[inline(always)]
    fn prefetch_state_of_lanes(&self, output: u32) {
        prefetch(&self.busy_lanes, output as usize);
        prefetch(&self.vl_states, output as usize);
    }

    /// The lane that an output will probably serve next; without windows the first one, as that costs nothing to find out.
    #[inline(always)]
    fn probable_lane<F: EngineVariant>(&self, output: u32) -> usize {
        if !F::LOOKAHEAD || self.vls_in::<F>() == 1 {
            return self.lane_in::<F>(output, 0);
        }
        let busy = self.busy_lanes[output as usize];
        let vl = self.vl_states[output as usize].probable(busy);
        self.lane_in::<F>(output, vl)
    }

    /// Prefetches the queue that a head will probably join, or the records that it needs to cut through.
    #[inline(always)]
    fn prefetch_target<F: EngineVariant>(&self, head: &Head) {
        if head.output >= UNREAD {
            return;
        }
        let (port, vl) = (head.port, head.packet.vl());
        let out = &self.outs[head.output as usize];
        let input = &self.ins[port as usize];
        if out.waiting > 0 || out.free_at >= head.time {
            let first = self.lanes[self.lane_in::<F>(head.output, vl)].queues;
            prefetch(&self.queues, first as usize + usize::from(input.local));
        } else {
            prefetch(&self.credits, self.lane_in::<F>(input.upstream, vl));
            self.prefetch_sink(out, head.output, self.lane_in::<F>(head.output, vl));
        }
    }

    /// Prefetches the records of a delivery, if the output leads to a host.
    #[inline(always)]
    fn prefetch_sink(&self, out: &OutPort, output: u32, lane: usize) {
        if out.kind == Next::Host {
            prefetch(&self.propagation, output as usize);
            prefetch(&self.hosts, out.next as usize);
            self.credits[lane].prefetch_overflow(&self.overflow);
        }
    }

    /// Prefetches the next queue of an output, in a large fabric also the records of a delivery.
    #[inline(always)]
    fn prefetch_next_queue<F: EngineVariant>(&self, output: u32) {
        if let Some((queue, input)) = self.next_queue::<F>(output) {
            prefetch(&self.queues, queue);
            prefetch(&self.ins, input);
        }
        if self.working_set != WorkingSet::ExceedsCaches {
            return;
        }
        let lane = self.probable_lane::<F>(output);
        self.prefetch_sink(&self.outs[output as usize], output, lane);
    }

    /// Prefetches the first packet of that queue, and the credits that it returns.
    #[inline(always)]
    fn prefetch_packet<F: EngineVariant>(&self, output: u32) {
        if let Some((queue, input)) = self.next_queue::<F>(output) {
            self.pool.prefetch(self.queues[queue]);
            let upstream = self.ins[input].upstream;
            let lane = self.probable_lane::<F>(output);
            let vl = lane - self.lane_in::<F>(output, 0);
            prefetch(&self.credits, self.lane_in::<F>(upstream, vl));
        }
    }

    /// The queue that a round-robin output is likely to serve next, and its input port.
    #[inline(always)]
    fn next_queue<F: EngineVariant>(&self, output: u32) -> Option<(usize, usize)> {
        let lane = self.probable_lane::<F>(output);
        let record = &self.lanes[lane];
        let local = record.pick::<F>(self.credits[lane].pointer, None)?;
        Some((
            (record.queues + local) as usize,
            (record.base + local) as usize,
        ))
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Prefetches the records of the following heads of a fixed-delay queue.
    #[inline(always)]
    pub(crate) fn prefetch_heads(&mut self, lane: usize) {
        let plane = &mut self.plane;
        let far = plane.working_set == WorkingSet::ExceedsCaches;
        if far {
            if let Some(head) = plane.events.upcoming_head(lane, HEAD_TABLES) {
                prefetch(&plane.ins, head.port as usize);
                plane.prefetch_entry(head.output);
            }
        }
        if let Some(&head) = plane.events.upcoming_head(lane, HEAD_RECORDS) {
            let output = plane.resolve(head.port, head.output, &head.packet);
            if far {
                plane.events.set_upcoming_output(lane, HEAD_RECORDS, output);
            }
            let vl = head.packet.vl();
            plane.prefetch_hop::<F>(head.port, output, vl);
            let lane = plane.lane_in::<F>(output, vl);
            self.prefetch_control(lane);
        }
        if far {
            self.prefetch_head_target(lane);
        }
    }

    /// Last stage of a head: the queue that it may have to join, or the host that it goes to.
    #[inline(always)]
    fn prefetch_head_target(&self, lane: usize) {
        if let Some(head) = self.plane.events.upcoming_head(lane, HEAD_LAST) {
            self.plane.prefetch_target::<F>(head);
        }
    }

    /// Prefetches the records of the outputs that will arbitrate soon.
    #[inline(always)]
    pub(crate) fn prefetch_outputs(&self) {
        let events = &self.plane.events;
        if let Some(output) = events.upcoming_output(EVENT_FIRST) {
            self.prefetch_output(output);
        }
        if let Some(output) = events.upcoming_output(EVENT_SECOND) {
            self.plane.prefetch_next_queue::<F>(output);
        }
        if let Some(output) = events.upcoming_output(EVENT_LAST) {
            self.plane.prefetch_packet::<F>(output);
        }
    }

    /// Prefetches the records of the hosts that will inject soon.
    #[inline(always)]
    pub(crate) fn prefetch_hosts(&self) {
        if let Some(host) = self.plane.events.upcoming_host(HOST_FIRST) {
            self.prefetch_host(host);
        }
        if let Some(host) = self.plane.events.upcoming_host(HOST_LAST) {
            self.prefetch_host_data(host);
        }
    }

    /// Prefetches the records of the next events of the wheel, of any kind.
    #[inline(always)]
    pub(crate) fn prefetch_wheel(&self) {
        let events = &self.plane.events;
        if let Some(event) = events.upcoming_in_wheel(EVENT_FIRST) {
            let id = event.id();
            match event.phase() {
                phase::ARBITRATE => self.prefetch_output(id),
                phase::HOST => self.prefetch_host(id),
                phase::FEEDBACK => {
                    prefetch_item(&self.plane.hosts[id as usize]);
                    events.prefetch_stored(event.argument() >> 1);
                }
                _ => {}
            }
        }
        if let Some(event) = events.upcoming_in_wheel(EVENT_SECOND) {
            let id = event.id();
            match event.phase() {
                phase::ARBITRATE => self.plane.prefetch_next_queue::<F>(id),
                phase::HOST => self.prefetch_host_data(id),
                phase::FEEDBACK if C::ACTIVE => {
                    let packet = events.stored_packet(event.argument() >> 1);
                    self.source.prefetch_feedback(notified_flow(packet));
                }
                _ => {}
            }
        }
        if let Some(event) = events.upcoming_in_wheel(EVENT_LAST) {
            match event.phase() {
                phase::ARBITRATE => self.plane.prefetch_packet::<F>(event.id()),
                phase::FEEDBACK if C::ACTIVE => {
                    let packet = events.stored_packet(event.argument() >> 1);
                    self.source.prefetch_feedback_data(notified_flow(packet));
                }
                _ => {}
            }
        }
    }

    /// Prefetches the records of an output, and of the lane that it will probably serve.
    #[inline(always)]
    fn prefetch_output(&self, output: u32) {
        let plane = &self.plane;
        let lane = plane.probable_lane::<F>(output);
        prefetch(&plane.outs, output as usize);
        prefetch(&plane.credits, lane);
        prefetch(&plane.lanes, lane);
        self.prefetch_control(lane);
    }

    #[inline(always)]
    fn prefetch_control(&self, lane: usize) {
        if S::ACTIVE {
            self.switch.prefetch_packet(PortVl(lane as u32));
        }
    }

    #[inline(always)]
    fn prefetch_host(&self, host: u32) {
        prefetch(&self.plane.hosts, host as usize);
        self.workload.prefetch_poll(HostId::new(host as usize));
    }

    #[inline(always)]
    fn prefetch_host_data(&self, host: u32) {
        let plane = &self.plane;
        let port = plane.hosts[host as usize].port;
        prefetch(&plane.outs, port as usize);
        prefetch(&plane.credits, plane.lane_in::<F>(port, 0));
        let host = HostId::new(host as usize);
        self.workload.prefetch_poll_data(host);
        if C::ACTIVE {
            self.source.prefetch_release(host);
        }
    }

    /// Prefetches the records of the first outputs of the open window, which are too near its beginning for
    /// [`prefetch_window_output`](Self::prefetch_window_output).
    #[inline(always)]
    pub(crate) fn prefetch_first_outputs(&mut self) {
        if self.plane.working_set == WorkingSet::FitsFirstCache {
            return;
        }
        for index in 0..EVENT_FIRST {
            let outputs = self.plane.events.calendar.outputs();
            let Some(&output) = outputs.get(index) else {
                return;
            };
            self.prefetch_output(output);
        }
    }

    /// Prefetches the records of the following outputs of the open window.
    #[inline(always)]
    pub(crate) fn prefetch_window_output(&mut self, index: usize) {
        if self.plane.working_set == WorkingSet::FitsFirstCache {
            return;
        }
        let has_lanes = self.plane.vls_in::<F>() > 1;
        let outputs = self.plane.events.calendar.outputs();
        let [state, first, second, last] = [LANES_FIRST, EVENT_FIRST, EVENT_SECOND, EVENT_LAST]
            .map(|distance| outputs.get(index + distance).copied());
        if let Some(output) = state.filter(|_| has_lanes) {
            prefetch(&self.plane.outs, output as usize);
            self.plane.prefetch_state_of_lanes(output);
        }
        if let Some(output) = first {
            self.prefetch_output(output);
        }
        if let Some(output) = second {
            self.plane.prefetch_next_queue::<F>(output);
        }
        if let Some(output) = last {
            self.plane.prefetch_packet::<F>(output);
        }
    }

    /// Prefetches the records of the first heads of a window, once their outputs are known.
    #[inline(always)]
    pub(crate) fn prefetch_first_heads(&self, heads: &[Head]) {
        if self.plane.working_set != WorkingSet::FitsFirstCache {
            for head in heads.iter().take(HEAD_RECORDS) {
                self.prefetch_head(head);
            }
        }
    }

    /// Prefetches the records of the following heads of a window.
    #[inline(always)]
    pub(crate) fn prefetch_window_head(&self, heads: &[Head], index: usize) {
        let plane = &self.plane;
        if plane.working_set == WorkingSet::FitsFirstCache {
            return;
        }
        if let Some(head) = heads.get(index + HEAD_RECORDS) {
            self.prefetch_head(head);
        }
        if plane.working_set == WorkingSet::ExceedsCaches {
            if let Some(head) = heads.get(index + HEAD_LAST) {
                plane.prefetch_target::<F>(head);
            }
        }
    }

    #[inline(always)]
    fn prefetch_head(&self, head: &Head) {
        let (plane, vl) = (&self.plane, head.packet.vl());
        plane.prefetch_hop::<F>(head.port, head.output, vl);
        if head.output < UNREAD {
            self.prefetch_control(plane.lane_in::<F>(head.output, vl));
        }
    }

    /// Prefetches the records of the following feedback events of the open window.
    #[inline(always)]
    pub(crate) fn prefetch_window_feedback(&self, feedback: &[Event], index: usize) {
        let events = &self.plane.events;
        if self.plane.working_set == WorkingSet::FitsFirstCache {
            return;
        }
        let is_feedback = |event: &&Event| event.phase() == phase::FEEDBACK;
        if let Some(event) = feedback.get(index + EVENT_FIRST).filter(is_feedback) {
            prefetch_item(&self.plane.hosts[event.id() as usize]);
            events.prefetch_stored(event.argument() >> 1);
        }
        if let Some(event) = feedback.get(index + EVENT_SECOND).filter(is_feedback) {
            let packet = events.stored_packet(event.argument() >> 1);
            self.source.prefetch_feedback(notified_flow(packet));
        }
        if let Some(event) = feedback.get(index + EVENT_LAST).filter(is_feedback) {
            let packet = events.stored_packet(event.argument() >> 1);
            self.source.prefetch_feedback_data(notified_flow(packet));
        }
    }

    /// Prefetches the records of the first hosts of the open window, each stage of all before the next one.
    #[inline(always)]
    pub(crate) fn prefetch_first_hosts(&mut self) {
        if self.plane.working_set == WorkingSet::FitsFirstCache {
            return;
        }
        for (count, last) in [(HOST_FIRST, false), (HOST_LAST, true)] {
            for index in 0..count {
                let hosts = self.plane.events.calendar.hosts();
                let Some(&host) = hosts.get(index) else {
                    break;
                };
                if last {
                    self.prefetch_host_data(host);
                } else {
                    self.prefetch_host(host);
                }
            }
        }
    }

    /// Prefetches the records of the following hosts of the open window.
    #[inline(always)]
    pub(crate) fn prefetch_window_host(&mut self, index: usize) {
        if self.plane.working_set == WorkingSet::FitsFirstCache {
            return;
        }
        let hosts = self.plane.events.calendar.hosts();
        let [first, last] =
            [HOST_FIRST, HOST_LAST].map(|distance| hosts.get(index + distance).copied());
        if let Some(host) = first {
            self.prefetch_host(host);
        }
        if let Some(host) = last {
            self.prefetch_host_data(host);
        }
    }
}
