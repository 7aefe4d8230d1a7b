//! Lookahead windows in which hosts depend on each other: a message that arrives at one, or a timer of a program, may
//! give others something to send at the same instant.
//!
//! Everything that happens at hosts is in order then, as in an engine without windows. Switches come first in a window all the
//! same, because what a host sends reaches none within it. Most windows have neither a message that arrives nor a timer; in
//! those each host is on its own.

use std::cmp::Reverse;

use silvan_cc::hooks::{SourceControl, SwitchControl};

use crate::engine::Engine;
use crate::events::{Event, phase};
use crate::variant::EngineVariant;
use crate::workload::Workload;

/// What comes next at hosts.
enum NextAtHosts {
    /// The next of the events that reach hosts.
    Reaches,
    /// A change of the workload.
    Change,
    /// A host may inject.
    Injection,
    /// Nothing in this window.
    Nothing,
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Whether the workload is notified of something in the open window before `limit`.
    #[inline]
    pub(crate) fn are_hosts_linked(&mut self, limit: u64) -> bool {
        let tells = |event: &Event| event.phase() == phase::DELIVERED && event.time < limit;
        self.change_at < limit || self.plane.events.calendar.for_hosts().iter().any(tells)
    }

    /// What happens at hosts in the open window before `limit`, in order.
    pub(crate) fn window_of_linked_hosts(&mut self, limit: u64, window_end: u64) {
        let posted = std::mem::take(self.plane.events.calendar.posted());
        let mut events = std::mem::take(self.plane.events.calendar.for_hosts());
        for (place, post) in posted.iter().enumerate() {
            let place = place as u32;
            events.push(Event::new(post.at, phase::ARBITRATE, post.host, place));
        }
        events.sort_unstable();
        let due = events.partition_point(|event| event.time < limit);
        let mut injections = std::mem::take(self.plane.events.calendar.injections());
        let mut later = Vec::new();
        let (mut done, mut noted) = (0, 0);
        loop {
            // What has happened may have woken further hosts.
            while let Some(&host) = self.plane.events.calendar.hosts().get(noted) {
                noted += 1;
                let at = self.plane.hosts[host as usize].wake_at;
                if at < limit {
                    injections.push(Reverse((at, host)));
                } else if at < window_end {
                    later.push(host);
                }
            }
            let event = events[..due].get(done);
            let injection = injections.peek().map(|&Reverse((at, _))| at);
            match self.next_at_hosts(event, injection, limit) {
                NextAtHosts::Reaches => {
                    let Event { time: now, .. } = events[done];
                    let (host, argument) = (events[done].id(), events[done].argument());
                    match events[done].phase() {
                        phase::DELIVERED => self.delivered(now, host, argument),
                        phase::FEEDBACK => self.feedback_event(now, host, argument),
                        _ => {
                            let post = posted[argument as usize];
                            if self.plane.credits[post.lane as usize].starved {
                                self.wake_host(host, post.due);
                            }
                        }
                    }
                    self.events += 1;
                    done += 1;
                }
                NextAtHosts::Change => {
                    self.events += 1;
                    self.traffic_change(self.change_at);
                }
                NextAtHosts::Injection => {
                    if let Some(Reverse((at, host))) = injections.pop() {
                        self.host_event(at, host);
                    }
                }
                NextAtHosts::Nothing => break,
            }
        }
        self.events += noted as u64;
        events.drain(..due);
        let calendar = &mut self.plane.events.calendar;
        *calendar.for_hosts() = events;
        *calendar.injections() = injections;
        *calendar.posted() = posted;
        calendar.posted().clear();
        calendar.hosts().clear();
        calendar.hosts().append(&mut later);
    }

    /// Simultaneous events have the order of their phases.
    #[inline]
    fn next_at_hosts(
        &self,
        event: Option<&Event>,
        injection: Option<u64>,
        limit: u64,
    ) -> NextAtHosts {
        let event = event.map_or((u64::MAX, 0), |event| (event.time, event.phase()));
        let change = (self.change_at, phase::CHANGE);
        let injection = (injection.unwrap_or(u64::MAX), phase::HOST);
        let first = event.min(change).min(injection);
        if first.0 >= limit {
            NextAtHosts::Nothing
        } else if first == event {
            NextAtHosts::Reaches
        } else if first == change {
            NextAtHosts::Change
        } else {
            NextAtHosts::Injection
        }
    }
}
