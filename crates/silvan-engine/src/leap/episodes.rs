//! Messages that have the ports of their path for themselves: all of one shape take the same time and leave the same
//! state. The first is simulated and recorded, the others are counted when they arrive.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use silvan_cc::hooks::{Flow, PortVl, SourceControl, SwitchControl};
use silvan_core::{HostId, Rate};

use super::Leaps;
use super::paths::Members;
use super::state::ahead;
use crate::engine::Engine;
use crate::events::{Event, phase};
use crate::packet::{Kind, LAST, NONE, Packet, service_level};
use crate::plane::{Plane, time};
use crate::records::{Next, OutPort};
use crate::stats::Delivery;
use crate::switch::advance_pointer;
use crate::variant::{EngineVariant, General};
use crate::vlarb::VlState;
use crate::workload::{WholeMessage, Workload};

/// Packet-hops of the shortest message that is worth it.
const WORTH: u64 = 32;
/// Messages that are recorded at the same time.
const MOST_RECORDED: usize = 8;
/// Episodes that are kept, of about 1 KiB each.
const MOST_KNOWN: usize = 1 << 15;
const END: u64 = u64::MAX;

/// Deliveries that differ in their times only.
#[derive(Debug)]
struct Alike {
    latency: u64,
    payload: u32,
    hops: u8,
    times: u64,
}

#[derive(Debug)]
struct LaneEnd {
    in_hand: i32,
    starved: bool,
    pointer: u8,
    /// Times from the message's start, and blocks.
    coming: Vec<(u64, u64)>,
}

#[derive(Debug)]
struct PortEnd {
    grown: [u64; 3],
    free_at: u64,
    lanes: Vec<LaneEnd>,
    vl_state: Option<VlState>,
}

/// Counts and final state of a message; times are from its start.
#[derive(Debug)]
pub(super) struct Episode {
    ports: Vec<PortEnd>,
    next_start: u64,
    sink_free: u64,
    deliveries: Vec<Alike>,
    last: Delivery,
}

/// A message on a path of its own, from its first packet's start.
#[derive(Debug)]
pub(super) struct Solo {
    pub from: u32,
    pub to: u32,
    start: u64,
    message: WholeMessage,
    pub stage: Stage,
}

#[derive(Debug)]
pub(super) enum Stage {
    Known(Arc<Episode>),
    Recorded {
        shape: Box<[u64]>,
        counters: Vec<[u64; 3]>,
        /// Changes that the scheme notes at the path's switches.
        changes: u64,
    },
}

#[derive(Debug, Default)]
pub(super) struct Episodes {
    /// By shape.
    known: HashMap<Box<[u64]>, Arc<Episode>>,
    recorded: BTreeSet<Box<[u64]>>,
    classes: BTreeMap<Vec<u64>, u32>,
    words: Vec<u64>,
}

impl Episodes {
    /// Forgets all episodes: what acts on them may have changed.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// Paths with equal constants have one number.
    fn class(&mut self, constants: Vec<u64>) -> u32 {
        let next = self.classes.len() as u32;
        *self.classes.entry(constants).or_insert(next)
    }
}

impl Solo {
    /// Arrival of the last packet, if it is known.
    pub fn ends_at(&self) -> Option<u64> {
        match &self.stage {
            Stage::Known(episode) => Some(self.start + episode.last.done),
            Stage::Recorded { .. } => None,
        }
    }

    pub fn is_recorded(&self) -> bool {
        matches!(self.stage, Stage::Recorded { .. })
    }
}

fn rate_word(rate: Option<Rate>) -> u64 {
    rate.map_or(END, Rate::bits_per_sec)
}

impl Plane {
    /// All that is constant on a path and acts on a message's times.
    fn path_constants(&self, path: &[u32], to: u32) -> Vec<u64> {
        let mut words = Vec::new();
        for &port in path {
            let OutPort {
                rate,
                head_queue,
                kind,
                marks,
                next,
                ..
            } = self.outs[port as usize];
            let rate = self.rates[usize::from(rate)];
            words.extend([
                rate.rate.bits_per_sec(),
                rate.ser_mtu,
                self.propagation[port as usize],
                self.head_delay[port as usize],
                u64::from(head_queue) << 8 | u64::from(marks),
            ]);
            if kind == Next::Input {
                let input = self.ins[next as usize];
                words.push(self.credit_delays[usize::from(input.credit_delay)]);
                words.push(u64::from(self.elements[input.element as usize].mixed));
            }
        }
        words.push(rate_word(self.own_sink_rate(to)));
        words.push(self.sink_time::<General>(to, self.mtu_wire - self.header));
        words
    }

    /// State of an idle path at the start of its next message; `None` if it is not idle.
    fn idle_words(&self, members: &Members, at: u64, words: &mut Vec<u64>) -> Option<()> {
        for &host in &members.senders {
            let host = &self.hosts[host as usize];
            if host.notifications > 0 || host.charges > 0 {
                return None;
            }
            words.push(ahead(host.next_start, at));
        }
        for &host in &members.sinks {
            words.push(ahead(self.hosts[host as usize].sink_free, at));
        }
        for &port in &members.ports {
            let out = &self.outs[port as usize];
            if out.waiting > 0 || out.wait_since != u64::MAX || out.wake_at != u64::MAX {
                return None;
            }
            words.push(ahead(out.free_at, at));
            for lane in self.lanes_of(port as usize) {
                let credits = &self.credits[lane];
                let (held, coming) = credits.split_at(&self.overflow, at);
                words.push(u64::from(held as u32) << 1 | u64::from(credits.starved));
                // The only lane serves only this message's input: its pointer changes nothing.
                words.extend((self.vls > 1).then_some(u64::from(credits.pointer)));
                for (due, blocks) in coming {
                    words.extend([due - at, blocks]);
                }
                words.push(END);
            }
            if let Some(state) = self.vl_states.get(port as usize) {
                words.extend(state.words());
            }
        }
        Some(())
    }

    fn port_end(&self, port: u32, start: u64, before: [u64; 3]) -> PortEnd {
        let out = &self.outs[port as usize];
        let lane_end = |lane: usize| {
            let credits = &self.credits[lane];
            let (in_hand, coming) = credits.split_at(&self.overflow, start);
            LaneEnd {
                in_hand,
                starved: credits.starved,
                pointer: credits.pointer,
                coming: coming.map(|(due, blocks)| (due - start, blocks)).collect(),
            }
        };
        let now = counters(out);
        PortEnd {
            grown: [0, 1, 2].map(|index| now[index] - before[index]),
            free_at: out.free_at - start,
            lanes: self.lanes_of(port as usize).map(lane_end).collect(),
            vl_state: self.vl_states.get(port as usize).cloned(),
        }
    }

    fn end_port(&mut self, port: u32, input: Option<u32>, end: &PortEnd, start: u64) {
        let out = &mut self.outs[port as usize];
        let [bytes, packets, wait] = end.grown;
        out.xmit_bytes += bytes;
        out.xmit_packets += packets;
        out.wait_total += wait;
        out.free_at = start + end.free_at;
        for (lane, end) in self.lanes_of(port as usize).zip(&end.lanes) {
            let coming = end.coming.iter();
            let coming = coming.map(|&(due, blocks)| (start + due, blocks));
            let credits = &mut self.credits[lane];
            credits.restore(&mut self.overflow, end.in_hand, coming);
            credits.starved = end.starved;
            if self.vls > 1 {
                credits.pointer = end.pointer;
            } else if let Some(input) = input {
                credits.pointer = advance_pointer(input);
            }
        }
        if let (Some(state), Some(end)) = (self.vl_states.get_mut(port as usize), &end.vl_state) {
            state.clone_from(end);
        }
    }
}

fn counters(out: &OutPort) -> [u64; 3] {
    [out.xmit_bytes, out.xmit_packets, out.wait_total]
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Sets a message that starts in the open window aside until it arrives, or records it, if it has its path for
    /// itself.
    pub(super) fn begin_solo(&mut self, leaps: &mut Leaps, from: u32, to: u32) {
        let start = self.plane.hosts[from as usize].wake_at;
        let message = self.workload.whole_message(HostId::new(from as usize));
        let Some(message) = message.filter(|_| start != u64::MAX && start > 0) else {
            return;
        };
        let Some((number, members)) = leaps.paths.alone(from, to, start) else {
            return;
        };
        let hops = message.packets * members.ports.len() as u64;
        let is_free = |&port: &u32| leaps.owners[port as usize] == NONE;
        if hops < WORTH || !members.ports.iter().all(is_free) {
            return;
        }
        let is_controlled = S::ACTIVE || C::ACTIVE;
        if is_controlled
            && (leaps.paths.has_answers() || !self.is_unnoticed(&members, start, &message))
        {
            return;
        }
        let changes = self.changes_at(&members);
        let plane = &self.plane;
        let episodes = &mut leaps.episodes;
        let class = leaps.paths.class(number, |path| {
            let mut constants = plane.path_constants(path, to);
            // Lanes may follow from inputs and service levels, and marks from a port's settings.
            let is_special = plane.vls > 1 || is_controlled;
            constants.extend(is_special.then_some(u64::from(number)));
            episodes.class(constants)
        });
        let mut words = std::mem::take(&mut episodes.words);
        words.clear();
        words.extend([
            u64::from(class) << 8 | u64::from(message.sl.as_u8()),
            message.bytes,
        ]);
        let is_idle = plane.idle_words(&members, start, &mut words).is_some();
        let found = episodes.known.get(&*words);
        let found = found.filter(|_| is_idle).cloned();
        let may_record = is_idle
            && episodes.recorded.len() < MOST_RECORDED
            && !episodes.recorded.contains(&*words);
        let stage = match found {
            Some(episode) => Some(Stage::Known(episode)),
            None if may_record => {
                let outs = members.ports.iter().map(|&port| &plane.outs[port as usize]);
                let shape = Box::from(&*words);
                episodes.recorded.insert(Box::clone(&shape));
                self.stats.record_between(from, to);
                Some(Stage::Recorded {
                    shape,
                    counters: outs.map(counters).collect(),
                    changes,
                })
            }
            None => None,
        };
        episodes.words = words;
        let Some(stage) = stage else {
            return;
        };
        let solo = Solo {
            from,
            to,
            start,
            message,
            stage,
        };
        let ends_at = solo.ends_at();
        let number = leaps.form(members);
        if let Some(component) = leaps.components[number as usize].as_mut() {
            component.solo = Some(solo);
        }
        if let Some(ends_at) = ends_at {
            self.set_aside(leaps, number, ends_at);
        }
    }

    /// True if congestion control does not delay a message, unless it is marked on its way.
    fn is_unnoticed(&self, members: &Members, at: u64, message: &WholeMessage) -> bool {
        let (&[from], &[to]) = (&members.senders[..], &members.sinks[..]) else {
            return false;
        };
        let level = self
            .plane
            .routing
            .service_level(from, to, message.sl.as_u8());
        let flow = Flow {
            source: HostId::new(from as usize),
            destination: HostId::new(to as usize),
            sl: service_level(level),
            queue: 0,
        };
        let mut lanes = members.ports.iter();
        let may_mark = S::ACTIVE
            && lanes.any(|&port| {
                let mut lanes = self.plane.lanes_of(port as usize);
                lanes.any(|lane| self.switch.may_mark(PortVl(lane as u32)))
            });
        let rests = !C::ACTIVE || self.source.flow_rests(time(at), flow);
        rests && !may_mark && self.is_quiet(members)
    }

    /// Counts a message that arrives in the window that opens. Returns false if it must be simulated.
    pub(super) fn end_solo(&mut self, leaps: &Leaps, number: u32) -> bool {
        let component = leaps.components[number as usize].as_ref();
        let Some((members, solo)) =
            component.and_then(|component| Some((&component.members, component.solo.as_ref()?)))
        else {
            return false;
        };
        let Stage::Known(episode) = &solo.stage else {
            return false;
        };
        let &Solo {
            from, to, start, ..
        } = solo;
        let done = start + episode.last.done;
        if done >= self.stats.boundary() {
            return false;
        }
        let WholeMessage {
            bytes,
            packets,
            sl,
            class,
        } = solo.message;
        let mut input = None;
        for (&port, end) in members.ports.iter().zip(&episode.ports) {
            self.plane.end_port(port, input, end, start);
            let out = &self.plane.outs[port as usize];
            let next = (out.kind == Next::Input).then_some(out.next as usize);
            input = next.map(|next| u32::from(self.plane.ins[next].local));
        }
        let sender = &mut self.plane.hosts[from as usize];
        sender.next_start = start + episode.next_start;
        sender.injected += bytes;
        sender.data_sent_last = true;
        let receiver = &mut self.plane.hosts[to as usize];
        receiver.sink_free = start + episode.sink_free;
        let of_message = Delivery {
            done,
            host: to,
            source: from,
            class,
            ..episode.last
        };
        for alike in &episode.deliveries {
            let delivery = Delivery {
                latency: alike.latency,
                payload: alike.payload,
                hops: alike.hops,
                ..of_message
            };
            self.stats.count_times(&delivery, alike.times, receiver);
        }
        self.stats.note_last(&of_message);
        let events = packets * members.ports.len() as u64;
        self.events += events;
        self.leapt_events += events;
        self.workload.send_whole_message(HostId::new(from as usize));
        let plane = &mut self.plane;
        let vl = plane.host_lanes(from)[sl.index()];
        let level = plane.routing.service_level(from, to, sl.as_u8());
        let kind = Kind {
            wire: (of_message.payload + plane.header) as u16,
            class,
            lane: vl << 4 | level,
            flags: LAST,
        };
        let mut packet = Packet::new(done - of_message.latency, from, to, kind);
        for _ in 0..of_message.hops {
            packet.count_hop();
        }
        let slot = plane.events.store_packet(packet);
        plane
            .events
            .push(Event::new(done, phase::DELIVERED, to, slot));
        true
    }

    /// Keeps what a recorded message has done, now that it has arrived.
    pub(super) fn end_recording(&mut self, leaps: &mut Leaps, number: u32) {
        let Some(component) = leaps.components[number as usize].as_mut() else {
            return;
        };
        let Some(solo) = component.solo.take() else {
            return;
        };
        let Stage::Recorded {
            shape,
            counters,
            changes,
        } = solo.stage
        else {
            return;
        };
        let deliveries = self.stats.take_recorded(solo.from, solo.to);
        leaps.episodes.recorded.remove(&shape);
        let (members, start) = (&component.members, solo.start);
        let is_unnoticed = self.changes_at(members) == changes
            && self.is_unnoticed(members, self.now, &solo.message);
        let plane = &self.plane;
        let packets = solo.message.packets;
        let is_whole = members.ports.iter().zip(&counters).all(|(&port, before)| {
            let out = &plane.outs[port as usize];
            let is_idle = out.waiting == 0 && out.wait_since == u64::MAX;
            is_idle && out.xmit_packets - before[1] == packets
        });
        let last = deliveries.last().copied();
        let are_all = deliveries.len() as u64 == packets;
        let Some(last) = last.filter(|_| is_whole && is_unnoticed && are_all) else {
            return;
        };
        let ports = members.ports.iter().zip(&counters);
        let mut alike = BTreeMap::new();
        for delivery in &deliveries {
            *alike
                .entry((delivery.latency, delivery.payload, delivery.hops))
                .or_insert(0) += 1;
        }
        let episode = Episode {
            ports: ports
                .map(|(&port, &before)| plane.port_end(port, start, before))
                .collect(),
            next_start: plane.hosts[solo.from as usize].next_start - start,
            sink_free: plane.hosts[solo.to as usize].sink_free - start,
            deliveries: alike
                .into_iter()
                .map(|((latency, payload, hops), times)| Alike {
                    latency,
                    payload,
                    hops,
                    times,
                })
                .collect(),
            last: Delivery {
                done: last.done - start,
                ..last
            },
        };
        if leaps.episodes.known.len() == MOST_KNOWN {
            leaps.episodes.forget();
        }
        leaps.episodes.known.insert(shape, Arc::new(episode));
    }

    /// Another message disturbs a recorded one.
    pub(super) fn stop_recording(&mut self, leaps: &mut Leaps, number: u32) {
        let component = leaps.components[number as usize].as_mut();
        let Some(solo) = component.and_then(|component| component.solo.take()) else {
            return;
        };
        if let Stage::Recorded { shape, .. } = &solo.stage {
            self.stats.take_recorded(solo.from, solo.to);
            leaps.episodes.recorded.remove(shape);
        }
    }
}
