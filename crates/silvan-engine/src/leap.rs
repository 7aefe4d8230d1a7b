//! Leaps over repeating states: exact fast-forward.
//!
//! A component is a closed part of the fabric: no packet of another message passes its ports. Until one of its messages
//! starts or is sent completely, it is set aside and runs alone, later. If its state repeats, the engine adds the
//! period's counts as often as they fit.

mod alone;
mod episodes;
mod paths;
mod period;
mod search;
mod state;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::HostId;
use silvan_model::FastForward;

use crate::engine::Engine;
use crate::events::{EventQueue, Head, phase};
use crate::packet::{NONE, Packet};
use crate::plane::Plane;
use crate::variant::EngineVariant;
use crate::windows::{OpenWindow, Point};
use crate::workload::{MessageChange, Workload};
use alone::Aside;
use episodes::{Episodes, Solo};
use paths::{Members, Paths};
pub(crate) use period::Starts;
use search::Search;

/// Packets before a message's last one for which a component is set aside.
const WORTH: u64 = 8;
/// Packets after which a component with packets of a completely sent message is looked at again.
const SETTLES: u64 = 4;

#[derive(Debug)]
struct Component {
    members: Members,
    search: Search,
    /// `None` if it runs with the others.
    aside: Option<Aside>,
    /// Entries of `Leaps::wakes` with other turns are old.
    turn: u64,
    /// If it is one message on a path of its own, which was idle.
    solo: Option<Solo>,
}

#[derive(Debug)]
pub(crate) struct Leaps {
    paths: Paths,
    components: Vec<Option<Box<Component>>>,
    free: Vec<u32>,
    /// By port.
    owners: Vec<u32>,
    /// Hosts whose component may be worth setting aside, with times.
    candidates: BinaryHeap<Reverse<(u64, u32)>>,
    /// By host: its time in `candidates`; `u64::MAX` for none.
    candidate_at: Vec<u64>,
    /// Components that are set aside: time, number, turn.
    wakes: BinaryHeap<Reverse<(u64, u32, u64)>>,
    turns: u64,
    /// Components that wait to be set aside.
    leaving: Vec<u32>,
    /// By host: the last period of which it was the marker; 0 for none.
    hints: Vec<u64>,
    /// Of a component that runs alone.
    events: EventQueue,
    heads: Vec<Head>,
    changes: Vec<MessageChange>,
    delivered: Vec<(u32, u32, u64)>,
    /// Components that have been disturbed in the window.
    disturbed: Vec<u32>,
    episodes: Episodes,
    /// Steps of searches and extractions; these follow the simulated events.
    effort: u64,
}

impl Leaps {
    /// If a message has `answers`, they take its path back.
    fn new(plane: &Plane, answers: bool) -> Self {
        Self {
            paths: Paths::new(plane, answers),
            components: Vec::new(),
            free: Vec::new(),
            owners: vec![NONE; plane.outs.len()],
            candidates: BinaryHeap::new(),
            candidate_at: vec![u64::MAX; plane.hosts.len()],
            wakes: BinaryHeap::new(),
            turns: 0,
            leaving: Vec::new(),
            hints: vec![0; plane.hosts.len()],
            events: plane.events.clone(),
            heads: Vec::new(),
            changes: Vec::new(),
            delivered: Vec::new(),
            disturbed: Vec::new(),
            episodes: Episodes::default(),
            effort: 0,
        }
    }

    fn nominate(&mut self, host: u32, at: u64) {
        let known = &mut self.candidate_at[host as usize];
        if at < *known {
            *known = at;
            self.candidates.push(Reverse((at, host)));
        }
    }

    fn next_candidate(&mut self, now: u64) -> Option<u32> {
        loop {
            let &Reverse((at, host)) = self.candidates.peek()?;
            if at > now {
                return None;
            }
            self.candidates.pop();
            let known = &mut self.candidate_at[host as usize];
            if *known == at {
                *known = u64::MAX;
                return Some(host);
            }
        }
    }

    fn postpone(&mut self, hosts: &[u32], at: u64) {
        for &host in hosts {
            self.candidate_at[host as usize] = u64::MAX;
            self.nominate(host, at);
        }
    }

    /// Makes a component of these ports and hosts.
    fn form(&mut self, members: Members) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.components.push(None);
            self.components.len() as u32 - 1
        });
        for &port in &members.ports {
            self.owners[port as usize] = number;
        }
        self.components[number as usize] = Some(Box::new(Component {
            members,
            search: Search::new(),
            aside: None,
            turn: 0,
            solo: None,
        }));
        number
    }

    /// Forgets a component that runs with the others; looks for others of its hosts from `at` on.
    fn dissolve(&mut self, number: u32, at: u64) {
        if let Some(component) = self.forget(number) {
            for &host in &component.members.senders {
                self.nominate(host, at);
            }
        }
    }

    fn forget(&mut self, number: u32) -> Option<Box<Component>> {
        let component = self.components[number as usize].take()?;
        for &port in &component.members.ports {
            self.owners[port as usize] = NONE;
        }
        self.free.push(number);
        Some(component)
    }

    /// Time of the first component to wake; `u64::MAX` for none.
    fn next_wake(&mut self) -> u64 {
        while let Some(&Reverse((at, number, turn))) = self.wakes.peek() {
            let component = self.components[number as usize].as_ref();
            if component
                .is_some_and(|component| component.aside.is_some() && component.turn == turn)
            {
                return at;
            }
            self.wakes.pop();
        }
        u64::MAX
    }

    fn component(&self, number: u32) -> Option<&Component> {
        self.components.get(number as usize)?.as_deref()
    }

    fn is_aside(&self, number: u32) -> bool {
        self.set_aside_at(number).is_some()
    }

    fn set_aside_at(&self, number: u32) -> Option<u64> {
        Some(self.component(number)?.aside.as_ref()?.at)
    }

    fn is_solo(&self, number: u32) -> bool {
        self.component(number)
            .is_some_and(|component| component.solo.is_some())
    }

    fn is_recorded(&self, number: u32) -> bool {
        let solo = self
            .component(number)
            .and_then(|component| component.solo.as_ref());
        solo.is_some_and(Solo::is_recorded)
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    #[inline(always)]
    pub(crate) fn has_leaps() -> bool {
        let by_scheme = (!S::ACTIVE || S::IS_DISPATCHED) && (!C::ACTIVE || C::IS_DISPATCHED);
        W::RECURS && F::LOOKAHEAD && by_scheme
    }

    pub(crate) fn prepare_leaps(&mut self) {
        if Self::has_leaps() && self.no_leaps().is_none() {
            self.workload.keep_message_changes();
            let answers = (S::ACTIVE || C::ACTIVE) && self.notifications.take_time(&self.plane);
            self.leaps = Some(Box::new(Leaps::new(&self.plane, answers)));
            self.delivered_messages = Some(Vec::new());
        }
    }

    /// Reason for a run without leaps; `None` if it may leap.
    pub fn no_leaps(&self) -> Option<&'static str> {
        if self.plane.config.fast_forward == FastForward::Off {
            return Some("fast-forward is off");
        }
        if !F::LOOKAHEAD {
            return Some("the run is simulated event by event");
        }
        let recurs = (!S::ACTIVE || self.switch.recurs()) && (!C::ACTIVE || self.source.recurs());
        if !recurs {
            return Some("the run has congestion control other than ib-cc");
        }
        if self.notifications.has_acknowledgements() || self.extends_packets() {
            return Some("packets are acknowledged");
        }
        if S::ACTIVE && self.switch.delays_credits() {
            return Some("switches delay credits");
        }
        if !W::RECURS || !self.workload.can_recur() {
            return Some("the traffic is not programs alone");
        }
        let hidden = self.plane.hidden_state();
        hidden
            .or_else(|| (!self.whole_messages).then_some("the traffic is notified of each packet"))
    }

    /// The traffic has changed between two calls.
    pub(crate) fn note_change(&mut self) {
        if let Some(mut leaps) = self.leaps.take() {
            for number in 0..leaps.components.len() as u32 {
                self.disturb(&mut leaps, number);
            }
            leaps.episodes.forget();
            self.leaps = Some(leaps);
        }
    }

    /// The fabric or its settings have changed between two calls.
    pub(crate) fn note_fabric_change(&mut self) {
        self.note_change();
        if let Some(leaps) = &mut self.leaps {
            leaps.paths.forget(&self.plane);
        }
    }

    #[inline(always)]
    pub(crate) fn note_start(&mut self, now: u64, host: u32, destination: u32) {
        if Self::has_leaps() && host == self.watched {
            self.starts.note(now, destination);
        }
    }

    #[inline]
    pub(crate) fn note_delivered_message(&mut self, now: u64, packet: &Packet) {
        if Self::has_leaps() {
            if let Some(delivered) = &mut self.delivered_messages {
                delivered.push((packet.source(), packet.destination(), now));
            }
        }
    }

    #[inline(never)]
    /// If it `lags`, components that are set aside stay there.
    pub(crate) fn run_windows_with_leaps(&mut self, mut leaps: Box<Leaps>, end: u64, lags: bool) {
        while self.fault.is_none() && self.now < end {
            self.note_messages(&mut leaps, false);
            self.wake_components(&mut leaps);
            self.look_for_components(&mut leaps);
            self.set_components_aside(&mut leaps);
            let calendar = &self.plane.events.calendar;
            let wake = leaps.next_wake();
            let end = match wake < end {
                true => end.min(calendar.start_of(calendar.window_of(wake))),
                false => end,
            };
            self.now = self.run_window_then(end, |engine, window, point| match point {
                Point::Linked => engine.rejoin_woken(&mut leaps, window),
                Point::Started => engine.note_messages(&mut leaps, true),
            });
        }
        self.note_messages(&mut leaps, false);
        for component in leaps.components.iter_mut().flatten() {
            component.search.interrupt();
        }
        if !lags {
            self.rejoin_all(&mut leaps);
        }
        self.leaps = Some(leaps);
    }

    fn rejoin_all(&mut self, leaps: &mut Leaps) {
        for number in 0..leaps.components.len() as u32 {
            if leaps.is_aside(number) {
                self.rejoin_for_now(leaps, number);
                if let Some(component) = &mut leaps.components[number as usize] {
                    component.search.interrupt();
                }
            }
        }
    }

    /// Lets everything reach the end of the last call.
    pub fn settle(&mut self) {
        if let Some(mut leaps) = self.leaps.take() {
            self.rejoin_all(&mut leaps);
            self.leaps = Some(leaps);
            self.stats.count_batch();
        }
    }

    pub(crate) fn is_settled(&self) -> bool {
        let leaps = self.leaps.as_deref();
        leaps.is_none_or(|leaps| {
            (0..leaps.components.len() as u32).all(|number| !leaps.is_aside(number))
        })
    }

    /// Hosts that are about to start messages must not be set aside: their components join the open window.
    fn rejoin_woken(&mut self, leaps: &mut Leaps, window: OpenWindow) {
        let woken = self.plane.events.calendar.events_for_hosts();
        let woken = woken.filter(|event| event.phase() == phase::DELIVERED);
        let owner = |host: u32| leaps.owners[self.plane.hosts[host as usize].port as usize];
        let mut owners: Vec<u32> = woken.map(|event| owner(event.id())).collect();
        owners.sort_unstable();
        owners.dedup();
        let mut rejoins = false;
        for number in owners {
            if leaps.is_aside(number) {
                self.rejoin(leaps, number);
                rejoins = true;
            }
            if number != NONE && !leaps.is_recorded(number) {
                leaps.dissolve(number, self.now);
            }
        }
        if rejoins {
            self.window_of_switch_ports(window);
        }
    }

    /// Runs a component up to now, if it is set aside, and forgets it.
    fn disturb(&mut self, leaps: &mut Leaps, number: u32) {
        if leaps.is_aside(number) {
            self.rejoin(leaps, number);
        }
        self.stop_recording(leaps, number);
        leaps.dissolve(number, self.now);
    }

    /// In an open window, between the starts of messages and of packets, or between two windows.
    fn note_messages(&mut self, leaps: &mut Leaps, in_window: bool) {
        self.note_deliveries(leaps);
        if !in_window {
            for number in std::mem::take(&mut leaps.disturbed) {
                self.disturb(leaps, number);
            }
        }
        let mut changes = std::mem::take(&mut leaps.changes);
        self.workload.take_message_changes(&mut changes);
        for MessageChange { from, to, starts } in changes.drain(..) {
            let (from, to) = (from.index() as u32, to.index() as u32);
            let port = [self.plane.hosts[from as usize].port];
            let ports = match starts {
                true => leaps.paths.start(&self.plane, from, to),
                false => {
                    leaps.paths.sent(&self.plane, from, to);
                    &port
                }
            };
            let owners = ports.iter().map(|&port| leaps.owners[port as usize]);
            let mut touched: Vec<u32> = owners.filter(|&owner| owner != NONE).collect();
            touched.sort_unstable();
            touched.dedup();
            for number in touched {
                if !starts && leaps.is_recorded(number) {
                    continue;
                }
                // A solo that has begun in this window has no events in it yet.
                let begins = leaps.set_aside_at(number) == Some(self.now) && leaps.is_solo(number);
                if in_window && leaps.is_aside(number) && !begins {
                    leaps.disturbed.push(number);
                } else {
                    self.disturb(leaps, number);
                }
            }
            if in_window && starts {
                self.begin_solo(leaps, from, to);
            }
            leaps.nominate(from, self.now);
        }
        leaps.changes = changes;
    }

    fn note_deliveries(&mut self, leaps: &mut Leaps) {
        let mut delivered = std::mem::take(&mut leaps.delivered);
        if let Some(own) = &mut self.delivered_messages {
            std::mem::swap(own, &mut delivered);
        }
        for (from, to, now) in delivered.drain(..) {
            let owner = leaps.owners[self.plane.hosts[from as usize].port as usize];
            if leaps.is_recorded(owner) {
                self.end_recording(leaps, owner);
                leaps.dissolve(owner, self.now);
            }
            leaps.paths.delivered(&self.plane, from, to, now);
        }
        leaps.delivered = delivered;
    }

    /// Runs a component up to now; it may be set aside again.
    fn rejoin_for_now(&mut self, leaps: &mut Leaps, number: u32) {
        let is_solo = leaps.is_solo(number);
        self.rejoin(leaps, number);
        match is_solo {
            true => leaps.dissolve(number, self.now),
            false => leaps.leaving.push(number),
        }
    }

    /// Components in which a message may end in the window that opens.
    fn wake_components(&mut self, leaps: &mut Leaps) {
        let calendar = &self.plane.events.calendar;
        let limit = calendar.start_of(calendar.window_of(self.now) + 1);
        while leaps.next_wake() < limit {
            let Some(Reverse((_, number, _))) = leaps.wakes.pop() else {
                return;
            };
            if self.end_solo(leaps, number) {
                leaps.forget(number);
            } else {
                self.rejoin_for_now(leaps, number);
            }
        }
    }

    fn look_for_components(&mut self, leaps: &mut Leaps) {
        if !self.may_leave(leaps) {
            return;
        }
        while leaps.effort <= self.simulated_events() {
            let Some(host) = leaps.next_candidate(self.now) else {
                return;
            };
            let record = &self.plane.hosts[host as usize];
            let packet = self.packet_time(host);
            let packets = self
                .workload
                .packets_before_last(HostId::new(host as usize));
            if leaps.owners[record.port as usize] != NONE || packets.is_none_or(|left| left < WORTH)
            {
                continue;
            }
            let (component, visited) = leaps.paths.component(record.port);
            leaps.effort += visited;
            let Some((members, all_unsent)) = component else {
                leaps.nominate(host, self.now + WORTH * packet);
                continue;
            };
            let before_last = |&host: &u32| {
                let host = HostId::new(host as usize);
                self.workload.packets_before_last(host)
            };
            let least = members.senders.iter().filter_map(before_last).min();
            let least = least.unwrap_or(0);
            if least < WORTH {
                leaps.postpone(&members.senders, self.now + (least + SETTLES) * packet);
            } else if !all_unsent || !self.is_quiet(&members) {
                leaps.postpone(&members.senders, self.now + SETTLES * packet);
            } else {
                let number = leaps.form(members);
                leaps.leaving.push(number);
            }
        }
    }

    pub(crate) fn simulated_events(&self) -> u64 {
        self.events - self.leapt_events
    }

    /// In ps, of a full packet at the host's port.
    fn packet_time(&self, host: u32) -> u64 {
        let port = self.plane.hosts[host as usize].port;
        let rate = self.plane.outs[port as usize].rate;
        self.plane.rates[usize::from(rate)].ser_mtu
    }
}
