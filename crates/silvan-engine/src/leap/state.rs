use std::ops::ControlFlow;

use crate::events::Head;
use crate::packet::Packet;
use crate::plane::{Host, Plane};
use crate::records::{Credits, OutLane, OutPort};

/// The word behind a list: neither an address nor a time.
const END: u64 = u64::MAX;

#[inline]
fn ahead(at: u64, now: u64) -> u64 {
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

    /// Passes all words of the state to `word`: equal words mean equal futures, if the traffic's are. Excludes
    /// counters, constant records, and starts of waiting.
    pub(super) fn describe(
        &self,
        now: u64,
        heads: &mut Vec<Head>,
        word: &mut impl FnMut(u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for host in self.hosts.iter() {
            let &Host {
                port: _,
                notifications,
                wake_at,
                next_start,
                sink_free,
                delivered: _,
                delivered_packets: _,
                injected: _,
                data_sent_last,
                charges,
                fecn_received: _,
                becn_received: _,
            } = host;
            word(ahead(wake_at, now))?;
            word(ahead(next_start, now))?;
            word(ahead(sink_free, now))?;
            word(
                u64::from(data_sent_last) << 63
                    | u64::from(charges) << 31
                    | u64::from(notifications),
            )?;
        }
        for out in self.outs.iter() {
            let &OutPort {
                free_at,
                wake_at,
                xmit_bytes: _,
                xmit_packets: _,
                wait_since: _,
                wait_total: _,
                next: _,
                next_element: _,
                waiting,
                rate: _,
                head_queue: _,
                kind: _,
                marks: _,
            } = out;
            word(ahead(free_at, now))?;
            word(ahead(wake_at, now))?;
            word(u64::from(waiting))?;
        }
        for credits in self.credits.iter() {
            credits.describe(&self.overflow, now, word)?;
            word(END)?;
        }
        for lane in self.lanes.iter() {
            let &OutLane {
                inputs,
                queued_bytes,
                queues,
                base: _,
                words,
            } = lane;
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
        for state in &self.vl_states {
            for each in state.words() {
                word(each)?;
            }
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

    pub(super) fn shift(&mut self, now: u64, by: u64) {
        for host in self.hosts.iter_mut() {
            shift(&mut host.wake_at, now, by);
            shift(&mut host.next_start, now, by);
            shift(&mut host.sink_free, now, by);
        }
        for out in self.outs.iter_mut() {
            shift(&mut out.free_at, now, by);
            shift(&mut out.wake_at, now, by);
        }
        for credits in self.credits.iter_mut() {
            credits.shift(by);
        }
        self.overflow.shift(by);
        for lane in self.lanes.iter() {
            for (index, &bits) in lane.inputs[..usize::from(lane.words)].iter().enumerate() {
                for input in set_bits(bits) {
                    let queue = self.queues[lane.queues as usize + index * 64 + input];
                    self.pool.shift(queue, by);
                }
            }
        }
        self.events.shift(now, by);
        let outs = self.outs.iter().enumerate();
        for (output, out) in outs.filter(|(_, out)| out.wake_at != u64::MAX) {
            self.events.note_output(out.wake_at, output as u32);
        }
        let hosts = self.hosts.iter().enumerate();
        for (number, host) in hosts.filter(|(_, host)| host.wake_at != u64::MAX) {
            self.events.note_host(host.wake_at, number as u32);
        }
    }

    /// The latest time at which a packet on its way to a sink, or from a host to itself, is received.
    pub(super) fn received_by(&self) -> u64 {
        let ends = self
            .hosts
            .iter()
            .map(|host| host.sink_free.max(host.next_start));
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

/// Ports that wait all the time between two otherwise equal states: such a port keeps its start of waiting.
pub(super) fn ports_that_wait_on(
    earlier: &[u64],
    then: u64,
    outs: &[OutPort],
    now: u64,
) -> Option<Vec<u32>> {
    let mut waiting_on = Vec::new();
    for (port, (&before, out)) in earlier.iter().zip(outs).enumerate() {
        let after = out.wait_since;
        if before == after {
            if before != u64::MAX {
                waiting_on.push(port as u32);
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
