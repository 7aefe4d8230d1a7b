//! Prefetching of records before their event: each has the index of the next, so stages read what earlier ones
//! prefetched.

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkingSet {
    FitsFirstCache,
    FitsSecondCache,
    ExceedsCaches,
}

const HEAD_TABLES: usize = 14;
const HEAD_RECORDS: usize = 7;
const HEAD_LAST: usize = 2;
const EVENT_FIRST: usize = 9;
const EVENT_SECOND: usize = 5;
const EVENT_LAST: usize = 2;
const LANES_FIRST: usize = 13;
const HOST_FIRST: usize = 6;
const HOST_LAST: usize = 3;

impl Plane {
    /// Classifies built records. Results do not change: with debug assertions, small fabrics use all three classes.
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
        // A quarter of a megabyte of port records, to which tables, packets and hosts come; second-level caches have
        // one or two megabytes. A head cannot store an index of `UNREAD` and above.
        match (ports, all) {
            (_, 0x20_0000..) if self.tables.len() < 1 << 30 => WorkingSet::ExceedsCaches,
            (0x4_0000.., _) => WorkingSet::FitsSecondCache,
            _ => WorkingSet::FitsFirstCache,
        }
    }

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

    #[inline(always)]
    fn prefetch_state_of_lanes(&self, output: u32) {
        prefetch(&self.busy_lanes, output as usize);
        prefetch(&self.vl_states, output as usize);
    }

    #[inline(always)]
    fn probable_lane<F: EngineVariant>(&self, output: u32) -> usize {
        if !F::LOOKAHEAD || self.vls_in::<F>() == 1 {
            return self.lane_in::<F>(output, 0);
        }
        let busy = self.busy_lanes[output as usize];
        let vl = self.vl_states[output as usize].probable(busy);
        self.lane_in::<F>(output, vl)
    }

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

    #[inline(always)]
    fn prefetch_sink(&self, out: &OutPort, output: u32, lane: usize) {
        if out.kind == Next::Host {
            prefetch(&self.propagation, output as usize);
            prefetch(&self.hosts, out.next as usize);
            self.credits[lane].prefetch_overflow(&self.overflow);
        }
    }

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

    #[inline(always)]
    fn prefetch_head_target(&self, lane: usize) {
        if let Some(head) = self.plane.events.upcoming_head(lane, HEAD_LAST) {
            self.plane.prefetch_target::<F>(head);
        }
    }

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

    #[inline(always)]
    pub(crate) fn prefetch_hosts(&self) {
        if let Some(host) = self.plane.events.upcoming_host(HOST_FIRST) {
            self.prefetch_host(host);
        }
        if let Some(host) = self.plane.events.upcoming_host(HOST_LAST) {
            self.prefetch_host_data(host);
        }
    }

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

    #[inline(always)]
    pub(crate) fn prefetch_first_heads(&self, heads: &[Head]) {
        if self.plane.working_set != WorkingSet::FitsFirstCache {
            for head in heads.iter().take(HEAD_RECORDS) {
                self.prefetch_head(head);
            }
        }
    }

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
