//! Components that are set aside, and how they run alone up to the time of the others.

use std::cmp::Reverse;

use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::HostId;

use super::{Leaps, Members, WORTH};
use crate::engine::Engine;
use crate::events::Head;
use crate::variant::EngineVariant;
use crate::windows::OpenWindow;
use crate::workload::Workload;

/// A component's events, which the event queue does not have.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// All earlier events have been processed.
    pub(super) at: u64,
    heads: Vec<Head>,
    /// Times of scheduled events of its ports, then of its senders.
    wakes: Vec<u64>,
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Sets the components of `leaps.leaving` aside, if it is worth it.
    pub(super) fn set_components_aside(&mut self, leaps: &mut Leaps) {
        if leaps.leaving.is_empty()
            || leaps.effort > self.simulated_events()
            || !self.may_leave(leaps)
        {
            return;
        }
        let now = self.now;
        let calendar = &self.plane.events.calendar;
        let next_window = calendar.start_of(calendar.window_of(now) + 1);
        let mut any = false;
        for number in std::mem::take(&mut leaps.leaving) {
            let Some(component) = leaps.components[number as usize].as_mut() else {
                continue;
            };
            if component.aside.is_some() {
                continue;
            }
            let until = self.undisturbed_until(&component.members, &component.search, now);
            let packet = component.members.senders.first();
            let packet = packet.map_or(0, |&host| self.packet_time(host));
            let is_notified = !self.is_quiet(&component.members);
            if is_notified || until < (now + WORTH * packet).max(next_window) {
                leaps.dissolve(number, until.min(now + WORTH * packet) + WORTH * packet);
                continue;
            }
            // Once now, and once when it joins the others.
            leaps.effort += 2 * component.members.ports.len() as u64;
            self.set_aside(leaps, number, until);
            any = true;
        }
        if !any {
            return;
        }
        let Leaps {
            owners, components, ..
        } = leaps;
        let plane = &mut self.plane;
        let ins = &plane.ins;
        leaps.effort += plane.events.calendar.extract_heads(|head| {
            let owner = owners[ins[head.port as usize].upstream as usize];
            let component = components.get_mut(owner as usize)?.as_mut()?;
            let aside = component.aside.as_mut()?;
            aside.heads.push(*head);
            Some(())
        });
    }

    /// Notifications that take time on links or in adapters are at places that no component knows.
    pub(super) fn may_leave(&self, leaps: &Leaps) -> bool {
        !leaps.paths.has_answers() || self.notifications.are_all_received()
    }

    /// True if no notification is on its way to a component.
    pub(super) fn is_quiet(&self, members: &Members) -> bool {
        !C::ACTIVE || self.notifications.are_received_by(&members.senders)
    }

    /// Takes a component's scheduled events, but not its heads, from the event queue.
    pub(super) fn set_aside(&mut self, leaps: &mut Leaps, number: u32, until: u64) {
        let Some(component) = leaps.components[number as usize].as_mut() else {
            return;
        };
        leaps.turns += 1;
        component.turn = leaps.turns;
        component.search.resume(self.now);
        leaps.wakes.push(Reverse((until, number, component.turn)));
        let mut aside = Aside {
            at: self.now,
            ..Aside::default()
        };
        for &port in &component.members.ports {
            let wake_at = &mut self.plane.outs[port as usize].wake_at;
            aside.wakes.push(std::mem::replace(wake_at, u64::MAX));
        }
        for &host in &component.members.senders {
            let wake_at = &mut self.plane.hosts[host as usize].wake_at;
            aside.wakes.push(std::mem::replace(wake_at, u64::MAX));
        }
        component.aside = Some(aside);
    }

    /// Runs a component alone up to now; then it runs with the others.
    pub(super) fn rejoin(&mut self, leaps: &mut Leaps, number: u32) {
        let Some(mut component) = leaps.components[number as usize].take() else {
            return;
        };
        if let Some(aside) = component.aside.take() {
            let solo = component.solo.take();
            let sender = solo.map(|solo| HostId::new(solo.from as usize));
            let members = &component.members;
            let mut wakes = aside.wakes.into_iter();
            for (&port, wake_at) in members.ports.iter().zip(&mut wakes) {
                self.plane.outs[port as usize].wake_at = wake_at;
            }
            for (&host, wake_at) in members.senders.iter().zip(&mut wakes) {
                self.plane.hosts[host as usize].wake_at = wake_at;
            }
            let now = self.now;
            let (change_at, timer_at) = (self.change_at, self.timer_at);
            std::mem::swap(&mut self.plane.events, &mut leaps.events);
            self.plane.events.restart(aside.at);
            self.add_events(members, aside.heads);
            self.now = aside.at;
            self.change_at = u64::MAX;
            self.timer_at = u64::MAX;
            self.begin_search(&mut component.search);
            while self.fault.is_none() && self.now < now {
                // A solo may have been sent completely.
                let is_sent = |host| self.workload.packets_before_last(host).is_none();
                if sender.is_some_and(is_sent) {
                    self.now = self.run_window(now);
                    continue;
                }
                let heads = &mut leaps.heads;
                // Congestion control changes periods.
                let hints = if C::ACTIVE { &[] } else { &leaps.hints[..] };
                self.look_for_leap(members, &mut component.search, heads, hints, now);
                if self.now < now {
                    self.now = self.run_window(now.min(component.search.cut));
                }
            }
            self.end_search(&mut component.search);
            if let Some((host, period)) = component.search.period() {
                leaps.hints[host as usize] = period;
            }
            let mut heads = Vec::new();
            self.plane.events.calendar.take_heads(&mut heads);
            std::mem::swap(&mut self.plane.events, &mut leaps.events);
            if (S::ACTIVE || C::ACTIVE) && !self.notifications.are_all_received() {
                self.plane.events.take_notifications(&mut leaps.events);
            }
            if sender.is_some() {
                self.plane.events.take_deliveries(&mut leaps.events);
            }
            self.now = now;
            self.change_at = change_at;
            self.timer_at = timer_at;
            self.plane.events.calendar.open(now);
            self.add_events(members, heads);
        }
        leaps.components[number as usize] = Some(component);
    }

    fn add_events(&mut self, members: &Members, heads: Vec<Head>) {
        for head in heads {
            self.plane.events.calendar.add_head(head);
        }
        self.plane.note_wakes(members);
    }

    /// Processes events of ports that joined an open window after its other ports.
    pub(super) fn window_of_switch_ports(&mut self, window: OpenWindow) {
        self.window_of_heads(window.limit);
        self.window_of_outputs(window.limit, window.end);
        self.fill_window(window.end);
    }
}
