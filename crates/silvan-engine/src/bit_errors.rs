//! Links with bit errors: bad packets are discarded by their receiver, or replayed by the link.
//!
//! Heads of a bad link have a queue number without a queue ([`BAD_LINK`]), the path of rare delays. The sender draws
//! errors when a packet starts, so they do not depend on the number of threads.

use std::collections::BTreeMap;

use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::{PortId, Rate};
use silvan_model::bit_errors::{BitErrors, ErrorProcess, ErrorTimes, PlannedBitErrors};

use crate::engine::Engine;
use crate::events::Head;
use crate::packet::{CONTROL, Packet};
use crate::partition::REMOTE;
use crate::plane::{Plane, time};
use crate::records::FARTHEST;
use crate::variant::EngineVariant;
use crate::workload::Workload;

/// The `head_queue` of an output whose link has bit errors.
pub(crate) const BAD_LINK: u8 = REMOTE - 1;

const MOST_REPLAYS: u64 = 8;

/// Bad packets, less good ones, that a port tolerates: LocalPhyErrors as OpenSM sets it.
const LOCAL_PHY_ERRORS: u32 = 8;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ErrorCounts {
    pub symbol_errors: u64,
    pub recoveries: u64,
    pub replays: u64,
}

#[derive(Clone, Debug)]
struct BadLink {
    processes: Vec<ErrorProcess>,
    drawn: usize,
    /// Time from the end of a bad packet to its replay, in ps; `None` if the receiver discards it.
    replay: Option<u64>,
    retraining: u64,
    head_queue: u8,
    counts: ErrorCounts,
    /// Bad packets, less good ones.
    level: u32,
}

#[derive(Clone, Copy, Debug)]
struct Passage {
    /// Time that replays take, in ps.
    delay: u64,
    /// Time after it in which the link is retrained, in ps.
    retraining: u64,
    is_lost: bool,
}

impl BadLink {
    fn count_until(&mut self, now: u64) -> u64 {
        let processes = self.processes.iter_mut();
        let errors: u64 = processes.map(|process| process.count_until(now)).sum();
        self.counts.symbol_errors += errors;
        errors
    }

    fn pass(&mut self, start: u64, length: u64) -> Passage {
        let (mut delay, mut retraining) = (0, 0);
        for replay in 0..=MOST_REPLAYS {
            self.count_until(start + delay);
            if self.count_until(start + delay + length) == 0 {
                self.level = self.level.saturating_sub(1);
                return Passage {
                    delay,
                    retraining,
                    is_lost: false,
                };
            }
            self.level += 1;
            if self.level > LOCAL_PHY_ERRORS {
                self.level = 0;
                self.counts.recoveries += 1;
                retraining += self.retraining;
            }
            match self.replay {
                Some(latency) if replay < MOST_REPLAYS => {
                    self.counts.replays += 1;
                    delay += length + latency;
                }
                _ => break,
            }
        }
        Passage {
            delay,
            retraining,
            is_lost: true,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct BadLinks(BTreeMap<u32, BadLink>);

impl BadLinks {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn bytes(&self) -> usize {
        let processes = self.0.values().map(|link| link.processes.capacity());
        self.0.len() * size_of::<BadLink>() + processes.sum::<usize>() * size_of::<ErrorProcess>()
    }
}

impl Plane {
    pub(crate) fn add_bit_errors(&mut self, planned: &[PlannedBitErrors]) {
        for entry in planned {
            self.add_process(entry.port, &entry.errors, entry.times);
        }
    }

    fn add_process(&mut self, port: PortId, errors: &BitErrors, times: ErrorTimes) {
        let Some(output) = self.sender_to(port) else {
            return;
        };
        let out = &mut self.outs[output];
        let rate = self.rates[usize::from(out.rate)].rate;
        let head_queue = out.head_queue;
        out.head_queue = BAD_LINK;
        let link = self
            .bad_links
            .0
            .entry(output as u32)
            .or_insert_with(|| BadLink {
                processes: Vec::new(),
                drawn: 0,
                replay: None,
                retraining: 0,
                head_queue,
                counts: ErrorCounts::default(),
                level: 0,
            });
        let number = (self.config.seed, port, link.drawn);
        let process = ErrorProcess::new(errors, times, rate, number);
        link.processes.push(process);
        link.drawn += 1;
        link.retraining = link.retraining.max(errors.retraining.as_ps());
        if errors.retransmits {
            let latency = errors.replay_latency.map_or_else(
                || 2 * self.propagation[output] + self.config.switch.credit_delay.as_ps(),
                |latency| latency.as_ps(),
            );
            link.replay = link.replay.max(Some(latency));
        }
    }

    /// Notes that the cable of an output leads to another part. Returns false if the link has no errors.
    pub(crate) fn mark_remote_bad_link(&mut self, output: usize) -> bool {
        let link = self.bad_links.0.get_mut(&(output as u32));
        link.map(|link| link.head_queue = REMOTE).is_some()
    }

    pub(crate) fn longest_replays(&self) -> u64 {
        let links = self.bad_links.0.iter();
        let delays = links.filter_map(|(&output, link)| {
            let rate = &self.rates[usize::from(self.outs[output as usize].rate)];
            Some(MOST_REPLAYS * (rate.ser_mtu + link.replay?))
        });
        delays.max().unwrap_or(0)
    }

    /// The counts of the link to a port as of `now`; zero if it never had errors.
    pub(crate) fn errors_to(&self, port: PortId, now: u64) -> ErrorCounts {
        if self.bad_links.is_empty() {
            return ErrorCounts::default();
        }
        let output = self.sender_to(port).map(|output| output as u32);
        let link = output.and_then(|output| self.bad_links.0.get(&output));
        let link = link.map(|link| {
            let mut link = link.clone();
            link.count_until(now);
            link.counts
        });
        link.unwrap_or_default()
    }

    pub(crate) fn change_error_rate(&mut self, now: u64, output: usize, from: Rate, to: Rate) {
        if let Some(link) = self.bad_links.0.get_mut(&(output as u32)) {
            link.count_until(now);
            let processes = link.processes.iter_mut();
            processes.for_each(|process| process.change_rate(now, from, to));
        }
    }

    fn pass_bad_link(&mut self, now: u64, output: u32, length: u64) -> Option<Passage> {
        let passage = self.bad_links.0.get_mut(&output)?.pass(now, length);
        self.outs[output as usize].free_at += passage.delay + passage.retraining;
        Some(passage)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn push_bad_link_head<F: EngineVariant>(
        &mut self,
        now: u64,
        output: u32,
        mut packet: Packet,
    ) {
        let length = self.serialisation(&self.outs[output as usize], packet.wire());
        let Some(passage) = self.pass_bad_link(now, output, length) else {
            return;
        };
        if passage.is_lost {
            self.divert_bad_packet(now, &mut packet);
        }
        let now = now + passage.delay;
        let queue = self.bad_links.0.get(&output).map(|link| link.head_queue);
        if F::LOOKAHEAD && queue == Some(REMOTE) {
            self.send_remote_head(now, output, packet);
            return;
        }
        let out = &self.outs[output as usize];
        let head = Head {
            time: now + self.head_delay[output as usize],
            port: out.next,
            output: self.noted_output(out.next_element, &packet),
            packet,
        };
        if F::LOOKAHEAD {
            self.add_head::<F>(head);
        } else {
            self.events.push_head_at(head);
        }
    }

    fn divert_bad_packet(&mut self, now: u64, packet: &mut Packet) {
        if !packet.is(CONTROL) {
            let born = self.extensions.sent(now, packet);
            if let Some(reordering) = &mut self.reordering {
                reordering.lost(born, packet);
            }
            self.reconfiguration.note_lost(packet, born);
        }
        packet.divert(self.no_destination());
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Sends a packet over a bad link to its host; returns the time of replays, `None` if it is discarded.
    #[cold]
    #[inline(never)]
    pub(crate) fn pass_last_link(
        &mut self,
        (now, tail): (u64, u64),
        output: u32,
        lane: usize,
        packet: &Packet,
    ) -> Option<u64> {
        let plane = &mut self.plane;
        let passage = plane.pass_bad_link(now, output, tail - now)?;
        if !passage.is_lost {
            return Some(passage.delay);
        }
        let propagation = plane.propagation[output as usize];
        let arrives = tail + passage.delay + propagation;
        let due = arrives + propagation + plane.config.host.credit_delay.as_ps();
        if F::PFC && plane.is_under_pfc(lane) {
            plane.record_departure(arrives, lane, packet.wire());
        } else {
            let due = due.min(now + FARTHEST);
            plane.credits[lane].post(&mut plane.overflow, now, due, packet.blocks());
        }
        let host = plane.outs[output as usize].next;
        let port = plane.hosts[host as usize].port;
        plane.count(now, port, packet, |counts| counts.rcv_errors += 1);
        None
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload> Engine<S, C, W> {
    /// Adds bit errors to what a port receives from now on; `None` ends all of them.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn set_bit_errors(&mut self, port: PortId, errors: Option<&BitErrors>) {
        let now = self.now;
        let plane = &mut self.plane;
        plane.known_port(port);
        if let Some(errors) = errors {
            plane.tabulate();
            let times = ErrorTimes {
                at: time(now),
                lasts: None,
                every: None,
            };
            plane.add_process(port, errors, times);
            return;
        }
        let output = plane.sender_to(port);
        let output = output.map(|output| output as u32);
        let Some(link) = output.and_then(|output| plane.bad_links.0.get_mut(&output)) else {
            return;
        };
        link.count_until(now);
        link.processes.clear();
        link.replay = None;
        link.level = 0;
        let head_queue = link.head_queue;
        if let Some(output) = output {
            plane.outs[output as usize].head_queue = head_queue;
        }
    }
}
