//! Lookahead windows in which hosts depend on each other: a message that arrives at one, or a timer of a program, may
//! give others something to send at the same instant.
//!
//! Everything that happens at hosts is in order then, as in an engine without windows. Switches come first in a window all the
//! same, because what a host sends reaches none within it. Most windows have neither a message that arrives nor a timer; in
//! those each host is on its own.
//!
//! Where a fabric is in several parts, one thread does this for the hosts of all parts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::DerefMut;

use silvan_cc::hooks::{SourceControl, SwitchControl};

use crate::engine::Engine;
use crate::events::{Event, phase};
use crate::variant::EngineVariant;
use crate::windows::OpenWindow;
use crate::workload::Workload;

/// What comes next at the hosts of a part: when, its phase, and its host. Simultaneous events have the order of their phases.
type NextAtHosts = (u64, u32, u32);

/// How far the hosts of a part have come in the open window, and room for what they do.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkedHosts {
    /// Injections by time and host.
    injections: BinaryHeap<Reverse<(u64, u32)>>,
    /// Hosts that inject after `limit`.
    later: Vec<u32>,
    /// How many of the events that reach hosts have happened, and how many do in this window.
    happened: usize,
    due: usize,
    /// How many of the hosts that the calendar notes have been seen.
    noted: usize,
}

impl LinkedHosts {
    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.injections.capacity() * 16 + self.later.capacity() * 4
    }
}

/// What happens in the open window at the hosts of all parts of a fabric, in order.
pub(crate) fn window_of_linked_hosts<'a, P, S, C, W, F>(parts: &mut [P], window: OpenWindow)
where
    P: DerefMut<Target = &'a mut Engine<S, C, W, F>>,
    S: SwitchControl + 'a,
    C: SourceControl + 'a,
    W: Workload + 'a,
    F: EngineVariant + 'a,
{
    for part in parts.iter_mut() {
        part.begin_linked(window.limit);
    }
    loop {
        let each = parts.iter_mut().enumerate();
        let next = each.map(|(place, part)| (part.next_at_hosts(window), place));
        let Some((next, place)) = next.min().filter(|(next, _)| next.0 < window.limit) else {
            break;
        };
        parts[place].happen_at_host(next);
        if parts.len() > 1 {
            wake_others(parts, place, next.0);
        }
    }
    for part in parts.iter_mut() {
        part.end_linked();
    }
}

/// Wakes the hosts of other parts that something at a host of this one wakes. When the workload changes next is the same for
/// all parts.
fn wake_others<'a, P, S, C, W, F>(parts: &mut [P], place: usize, now: u64)
where
    P: DerefMut<Target = &'a mut Engine<S, C, W, F>>,
    S: SwitchControl + 'a,
    C: SourceControl + 'a,
    W: Workload + 'a,
    F: EngineVariant + 'a,
{
    while let Some(host) = parts[place].woken.pop() {
        let plane = &parts[place].plane;
        let host = plane.known_host(host);
        let part = plane.remote.part_of_host(host);
        parts[part].wake_host(host, now);
    }
    let change_at = parts[place].change_at;
    for part in parts {
        part.change_at = change_at;
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Whether the workload is notified of something in the open window before `limit`.
    #[inline]
    pub(crate) fn are_hosts_linked(&mut self, limit: u64) -> bool {
        let tells = |event: &Event| event.phase() == phase::DELIVERED && event.time < limit;
        self.change_at < limit || self.plane.events.calendar.for_hosts().iter().any(tells)
    }

    fn begin_linked(&mut self, limit: u64) {
        let calendar = &mut self.plane.events.calendar;
        let mut events = std::mem::take(calendar.for_hosts());
        for (place, post) in calendar.posted().iter().enumerate() {
            let place = place as u32;
            events.push(Event::new(post.at, phase::ARBITRATE, post.host, place));
        }
        events.sort_unstable();
        let linked = calendar.linked();
        linked.due = events.partition_point(|event| event.time < limit);
        (linked.happened, linked.noted) = (0, 0);
        *calendar.for_hosts() = events;
    }

    fn next_at_hosts(&mut self, window: OpenWindow) -> NextAtHosts {
        // What has happened may have woken further hosts.
        let calendar = &mut self.plane.events.calendar;
        while let Some(&host) = {
            let noted = calendar.linked().noted;
            calendar.hosts().get(noted)
        } {
            let linked = calendar.linked();
            linked.noted += 1;
            let at = self.plane.hosts[host as usize].wake_at;
            if at < window.limit {
                linked.injections.push(Reverse((at, host)));
            } else if at < window.end {
                linked.later.push(host);
            }
        }
        let LinkedHosts { happened, due, .. } = *calendar.linked();
        let event = calendar.for_hosts()[..due].get(happened);
        let event = event.map(|event| (event.time, event.phase(), event.id()));
        let injection = calendar.linked().injections.peek();
        let injection = injection.map(|&Reverse((at, host))| (at, phase::HOST, host));
        let change = (self.change_at, phase::CHANGE, 0);
        [event, injection]
            .into_iter()
            .flatten()
            .fold(change, Ord::min)
    }

    fn happen_at_host(&mut self, (now, phase, host): NextAtHosts) {
        let calendar = &mut self.plane.events.calendar;
        match phase {
            phase::CHANGE => {
                self.events += 1;
                self.traffic_change(now);
            }
            phase::HOST => {
                calendar.linked().injections.pop();
                self.host_event(now, host);
            }
            _ => {
                self.events += 1;
                let happened = calendar.linked().happened;
                calendar.linked().happened += 1;
                let argument = calendar.for_hosts()[happened].argument();
                match phase {
                    phase::DELIVERED => self.delivered(now, host, argument),
                    phase::FEEDBACK => self.feedback_event(now, host, argument),
                    _ => {
                        let post = calendar.posted()[argument as usize];
                        if self.plane.credits[post.lane as usize].starved {
                            self.wake_host(host, post.due);
                        }
                    }
                }
            }
        }
    }

    fn end_linked(&mut self) {
        let calendar = &mut self.plane.events.calendar;
        let LinkedHosts { due, noted, .. } = *calendar.linked();
        self.events += noted as u64;
        calendar.for_hosts().drain(..due);
        calendar.posted().clear();
        let mut later = std::mem::take(&mut calendar.linked().later);
        calendar.hosts().clear();
        calendar.hosts().append(&mut later);
        calendar.linked().later = later;
    }
}
