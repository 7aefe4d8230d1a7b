//! Lookahead windows with linked hosts: before a window, one thread passes arrivals and timers to the ranks.

use std::ops::DerefMut;

use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::Time;

use crate::engine::Engine;
use crate::events::{Event, phase};
use crate::plane::time;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    #[inline]
    pub(crate) fn are_hosts_linked(&mut self, limit: u64) -> bool {
        let mut deliveries = self.plane.events.calendar.deliveries().iter();
        self.timer_at < limit || deliveries.any(|event| event.time < limit)
    }
}

pub(crate) fn link_hosts<'a, P, S, C, W, F>(parts: &mut [P], limit: u64)
where
    P: DerefMut<Target = &'a mut Engine<S, C, W, F>>,
    S: SwitchControl + 'a,
    C: SourceControl + 'a,
    W: Workload + 'a,
    F: EngineVariant + 'a,
{
    let mut deliveries = Vec::new();
    for part in parts.iter_mut() {
        let own = part.plane.events.calendar.deliveries();
        match deliveries.is_empty() {
            true => std::mem::swap(&mut deliveries, own),
            false => deliveries.append(own),
        }
    }
    deliveries.sort_unstable();
    let due = deliveries.partition_point(|event| event.time < limit);
    let part_of = |parts: &[P], host| parts[0].plane.remote.part_of_host(host);
    let mut timer_at = parts[0].timer_at;
    let mut coming = deliveries[..due].iter().copied().peekable();
    loop {
        let delivery = coming.next_if(|event| event.time < limit && event.time <= timer_at);
        let (now, place) = match delivery {
            Some(event) => (event.time, part_of(parts, event.id())),
            None if timer_at < limit => (timer_at, 0),
            None => break,
        };
        let part = &mut parts[place];
        part.events += 1;
        match delivery {
            Some(event) => {
                let packet = part.plane.events.remove_packet(event.argument());
                part.notify_workload(now, &packet);
            }
            None => {
                let part = &mut **part;
                part.workload.on_timer(time(now), &mut part.woken);
            }
        }
        timer_at = part.workload.next_timer().map_or(u64::MAX, Time::as_ps);
        while let Some(host) = parts[place].woken.pop() {
            let host = parts[place].plane.known_host(host);
            let to = part_of(parts, host);
            let woken = Event::new(now, phase::DELIVERED, host, 0);
            parts[to].plane.events.calendar.for_hosts().push(woken);
        }
    }
    for event in deliveries.drain(due..) {
        let place = part_of(parts, event.id());
        parts[place].plane.events.calendar.deliveries().push(event);
    }
    for part in parts.iter_mut() {
        part.timer_at = timer_at;
    }
    deliveries.clear();
    let room = parts[0].plane.events.calendar.deliveries();
    if room.is_empty() {
        *room = deliveries;
    }
}
