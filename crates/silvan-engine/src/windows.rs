//! Events taken window by window instead of one by one.
//!
//! Without congestion control, ports are strangers to each other: what happens at an output changes that output,
//! the packets on their way from it, and the credits on their way to the port upstream. Both are on their
//! way for some time. Within a window no longer than the shortest of these times, outputs and
//! hosts can therefore be taken one after the other, each with all of its own events in their order,
//! and nobody has to find out which of all events is the next, nor to keep them in order (conservative
//! synchronisation: Chandy and Misra, "Distributed simulation", 1979; here it serves one core).
//!
//! Heads come first. An output at which an arbitration is due before its head has it then. Those that share
//! an output are put in order. Then come the outputs that are still to arbitrate, then the hosts. A
//! sender may find credits noted that in the order of time were not noted yet; they arrive after
//! the window all the same.

use silvan_cc::hooks::{SourceControl, SwitchControl};

use crate::ahead::Reach;
use crate::engine::Engine;
use crate::events::{Calendar, HEAD_WINDOWS, Head};
use crate::form::Form;
use crate::packet::NONE;
use crate::plane::{Plane, UNREAD};
use crate::records::Next;
use crate::workload::Workload;
use silvan_core::prefetch::prefetch;

/// Shortest window that is worth opening, 2^14 ps.
const SHORTEST: u32 = 14;
/// How many heads ahead tables are asked for.
const TABLES_AHEAD: usize = 16;

impl Plane {
    /// The longest window, as a power of two in ps, and the longest way of a head; `None` if there are no
    /// windows worth opening.
    pub fn window(&self) -> Option<(u32, u64)> {
        let outs = self.outs.iter().zip(self.head_delay.iter());
        let delays = || {
            let to_switches = outs.clone().filter(|(out, _)| out.kind == Next::Input);
            to_switches.map(|(_, &delay)| delay)
        };
        let cabled = self.ins.iter().filter(|port| port.upstream != NONE);
        let credit_delay = cabled.map(|port| self.credit_delays[usize::from(port.credit_delay)]);
        let shift = delays().chain(credit_delay).min()?.checked_ilog2()?;
        let longest = delays().max().unwrap_or(0);
        (shift >= SHORTEST && longest >> shift < HEAD_WINDOWS).then_some((shift, longest))
    }

    /// Looks up the outputs of heads, and asks for what [`Calendar::see`] needs.
    fn resolve_heads(&self, heads: &mut [Head]) {
        for index in 0..heads.len() {
            if let Some(head) = heads.get(index + TABLES_AHEAD) {
                prefetch(&self.ins, head.port as usize);
                prefetch(&self.tables, (head.output & !UNREAD) as usize);
            }
            let head = &mut heads[index];
            head.output = self.resolve(head.port, head.output);
            self.events.calendar.prefetch_seen(head.output);
        }
    }

    /// Makes the calendar.
    pub fn make_windows(&mut self) {
        if let Some((shift, longest)) = self.window() {
            self.events.calendar = Calendar::new(shift, longest, self.outs.len());
        }
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: Form> Engine<S, C, W, F> {
    /// Processes every event before `end`. Meanwhile `now` is where the window begins: what comes before it
    /// has happened everywhere.
    pub(crate) fn run_windows(&mut self, end: u64) {
        while self.fault.is_none() && self.now < end {
            if self.change_at == self.now {
                self.events += 1;
                self.traffic_change(self.now);
            }
            let window_end = self.plane.events.calendar.open(self.now);
            self.plane.events.fill_window(window_end);
            let last = end.min(self.change_at);
            if self.plane.events.calendar.is_empty() {
                self.now = self.plane.events.next_window(last);
                continue;
            }
            let limit = window_end.min(last);
            self.window_of_heads(limit);
            self.window_of_outputs(limit, window_end);
            self.window_of_hosts(limit, window_end);
            self.now = limit;
        }
    }

    fn window_of_heads(&mut self, limit: u64) {
        let mut heads = std::mem::take(self.plane.events.calendar.heads());
        self.look_at(&mut heads);
        let (mut together, mut later) = (Vec::new(), Vec::new());
        for index in 0..heads.len() {
            self.plane.foresee_window_head::<F>(&heads, index);
            let head = heads[index];
            if head.time >= limit {
                later.push(head);
            } else if self.plane.events.calendar.is_contended(head.output) {
                together.push(head);
            } else {
                self.window_head(head);
            }
        }
        together.sort_unstable_by_key(|head| (head.time, head.port));
        for head in together {
            self.window_head(head);
        }
        heads.clear();
        heads.append(&mut later);
        *self.plane.events.calendar.heads() = heads;
    }

    /// Finds the outputs of heads, and those that several of them want.
    fn look_at(&mut self, heads: &mut [Head]) {
        let plane = &mut self.plane;
        if plane.reach == Reach::Far {
            plane.resolve_heads(heads);
        }
        let calendar = &mut plane.events.calendar;
        calendar.begin_heads();
        for head in heads {
            calendar.see(head.output);
        }
    }

    /// A head, after what its output has to do before.
    #[inline(always)]
    fn window_head(&mut self, head: Head) {
        self.events += 1;
        if head.output != NONE {
            loop {
                let at = self.plane.outs[head.output as usize].wake_at;
                if at >= head.time {
                    break;
                }
                self.output_event(at, head.output);
            }
        }
        self.head(head);
    }

    fn window_of_outputs(&mut self, limit: u64, window_end: u64) {
        let mut index = 0;
        let mut later = Vec::new();
        while let Some(&output) = self.plane.events.calendar.outputs().get(index) {
            index += 1;
            self.foresee_window_output(index);
            let at = self.plane.outs[output as usize].wake_at;
            if at < limit {
                self.output_event(at, output);
            } else if at < window_end {
                later.push(output);
            }
        }
        self.events += index as u64;
        let outputs = self.plane.events.calendar.outputs();
        outputs.clear();
        outputs.append(&mut later);
    }

    fn window_of_hosts(&mut self, limit: u64, window_end: u64) {
        let mut index = 0;
        let mut later = Vec::new();
        while let Some(&host) = self.plane.events.calendar.hosts().get(index) {
            index += 1;
            self.foresee_window_host(index);
            let at = self.plane.hosts[host as usize].wake_at;
            if at < limit {
                self.host_event(at, host);
            } else if at < window_end {
                later.push(host);
            }
        }
        self.events += index as u64;
        let hosts = self.plane.events.calendar.hosts();
        hosts.clear();
        hosts.append(&mut later);
    }
}
