use std::ops::{ControlFlow, Range};

use super::paths::Members;
use crate::events::Head;
use crate::packet::Packet;
use crate::plane::{Host, Plane};
use crate::records::{Credits, OutLane, OutPort};

/// The word behind a list: neither an address nor a time.
const END: u64 = u64::MAX;

#[inline]
pub(super) fn ahead(at: u64, now: u64) -> u64 {
    match at.checked_sub(now) {
        _ if at == u64::MAX => u64::MAX,
        Some(ahead) => ahead + 1,
        None => 0,
    }
}

#[inline]
fn shift(at: &mut u64, now: u64, by: u64) {
    if *at >= now && *at != u64::MAX {
        *at += by;
    }
}

impl Plane {
    pub(super) fn hidden_state(&self) -> Option<&'static str> {
        if self.remote.is_part() {
            return Some("the run has several threads");
        }
        if self.pauses.is_some() {
            return Some("links have PFC");
        }
        if !self.bad_links.is_empty() {
            return Some("links have bit errors");
        }
        if self.routing.has_choices() || self.reordering.is_some() {
            return Some("switches choose among paths");
        }
        let is_ordered = self.orders_ports() || self.buffers.is_some();
        is_ordered.then_some("outputs of a switch depend on each other")
    }

    /// Passes all words of a component's state to `word`: equal words mean equal futures, if its traffic's are. Excludes
    /// counters, constant records, and starts of waiting.
    pub(super) fn describe(
        &self,
        members: &Members,
        now: u64,
        heads: &mut Vec<Head>,
        word: &mut impl FnMut(u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for &host in &members.senders {
            let &Host {
                port: _,
                notifications,
                wake_at,
                next_start,
                sink_free: _,
                delivered: _,
                delivered_packets: _,
                injected: _,
                data_sent_last,
                charges,
                fecn_received: _,
                becn_received: _,
            } = &self.hosts[host as usize];
            word(ahead(wake_at, now))?;
            word(ahead(next_start, now))?;
            word(
                u64::from(data_sent_last) << 63
                    | u64::from(charges) << 31
                    | u64::from(notifications),
            )?;
        }
        for &host in &members.sinks {
            word(ahead(self.hosts[host as usize].sink_free, now))?;
        }
        for &port in &members.ports {
            self.describe_port(port as usize, now, word)?;
        }
        heads.clear();
        heads.extend(self.events.calendar.heads_in_flight());
        // An input has one head per instant.
        heads.sort_unstable_by_key(|head| (head.time, head.port));
        for &Head {
            time,
            port,
            output: _,
            packet,
        } in heads.iter()
        {
            word(time - now)?;
            word(u64::from(port))?;
            describe_packet(&packet, now, word)?;
        }
        word(END)
    }

    fn describe_port(
        &self,
        port: usize,
        now: u64,
        word: &mut impl FnMut(u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // Counters and constants have no effect on later events.
        let &OutPort {
            free_at,
            wake_at,
            waiting,
            ..
        } = &self.outs[port];
        word(ahead(free_at, now))?;
        word(ahead(wake_at, now))?;
        word(u64::from(waiting))?;
        for index in self.lanes_of(port) {
            self.credits[index].describe(&self.overflow, now, word)?;
            word(END)?;
            let &OutLane {
                inputs,
                queued_bytes,
                queues,
                base: _,
                words,
            } = &self.lanes[index];
            word(u64::from(queued_bytes))?;
            for (index, &bits) in inputs[..usize::from(words)].iter().enumerate() {
                word(bits)?;
                for input in set_bits(bits) {
                    let queue = self.queues[queues as usize + index * 64 + input];
                    self.pool.try_for_each(queue, |packet, since| {
                        describe_packet(packet, now, word)?;
                        word(since.map_or(0, |since| now - since))
                    })?;
                    word(END)?;
                }
            }
        }
        if let Some(state) = self.vl_states.get(port) {
            for each in state.words() {
                word(each)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// A number that equal states have in common.
    pub(super) fn looks(&self, members: &Members, now: u64) -> u64 {
        let mut looks = self.events.calendar.heads_in_flight().count() as u64;
        for &port in &members.ports {
            looks = looks.wrapping_mul(31) ^ u64::from(self.outs[port as usize].waiting);
            for lane in self.lanes_of(port as usize) {
                let credits = self.credits[lane].at(&self.overflow, now);
                looks = looks.wrapping_mul(31) ^ credits as u64;
            }
        }
        looks
    }

    pub(super) fn lanes_of(&self, port: usize) -> Range<usize> {
        port * self.vls..(port + 1) * self.vls
    }

    pub(super) fn shift(&mut self, members: &Members, now: u64, by: u64) {
        for &host in &members.senders {
            let host = &mut self.hosts[host as usize];
            shift(&mut host.wake_at, now, by);
            shift(&mut host.next_start, now, by);
        }
        for &host in &members.sinks {
            shift(&mut self.hosts[host as usize].sink_free, now, by);
        }
        for &port in &members.ports {
            let out = &mut self.outs[port as usize];
            shift(&mut out.free_at, now, by);
            shift(&mut out.wake_at, now, by);
            for lane in self.lanes_of(port as usize) {
                self.credits[lane].shift(&mut self.overflow, by);
                let lane = &self.lanes[lane];
                for (index, &bits) in lane.inputs[..usize::from(lane.words)].iter().enumerate() {
                    for input in set_bits(bits) {
                        let queue = self.queues[lane.queues as usize + index * 64 + input];
                        self.pool.shift(queue, by);
                    }
                }
            }
        }
        self.events.shift(now, by);
        self.note_wakes(members);
    }

    /// Notes the scheduled events of a component's ports and hosts.
    pub(super) fn note_wakes(&mut self, members: &Members) {
        for &port in &members.ports {
            let at = self.outs[port as usize].wake_at;
            if at != u64::MAX {
                self.events.note_output(at, port);
            }
        }
        for &host in &members.senders {
            let at = self.hosts[host as usize].wake_at;
            if at != u64::MAX {
                self.events.note_host(at, host);
            }
        }
    }

    /// The latest time at which a component's packet on its way to a sink is received.
    pub(super) fn received_by(&self, members: &Members) -> u64 {
        let sinks = members.sinks.iter();
        let ends = sinks.map(|&host| self.hosts[host as usize].sink_free);
        ends.max().unwrap_or(0)
    }
}

fn describe_packet(
    packet: &Packet,
    now: u64,
    word: &mut impl FnMut(u64) -> ControlFlow<()>,
) -> ControlFlow<()> {
    word(packet.ends())?;
    word(packet.rest())?;
    word(packet.age(now))
}

fn set_bits(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}

/// Places in `members.ports` of ports that wait all the time between two otherwise equal states: such a port keeps its
/// start of waiting.
pub(super) fn ports_that_wait_on(
    members: &Members,
    earlier: &[u64],
    then: u64,
    outs: &[OutPort],
    now: u64,
) -> Option<Vec<u32>> {
    let mut waiting_on = Vec::new();
    let waits = members
        .ports
        .iter()
        .map(|&port| outs[port as usize].wait_since);
    for (place, (&before, after)) in earlier.iter().zip(waits).enumerate() {
        if before == after {
            if before != u64::MAX {
                waiting_on.push(place as u32);
            }
        } else if before == u64::MAX
            || after == u64::MAX
            || after.wrapping_sub(now) != before.wrapping_sub(then)
        {
            return None;
        }
    }
    Some(waiting_on)
}

impl Credits {
    fn describe(
        &self,
        overflow: &crate::records::Overflow,
        now: u64,
        word: &mut impl FnMut(u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // Credits that arrive now are still on their way.
        let (held, coming) = self.split_at(overflow, now);
        word(
            u64::from(held as u32) << 32 | u64::from(self.starved) << 8 | u64::from(self.pointer),
        )?;
        for (due, blocks) in coming {
            word(due - now)?;
            word(blocks)?;
        }
        ControlFlow::Continue(())
    }
}
