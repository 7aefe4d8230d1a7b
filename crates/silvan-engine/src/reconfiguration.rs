//! Runtime reconfiguration without code in the hot loop: closed ports have entries [`NO_ROUTE`] and no credits.

mod discarding;

use std::collections::BTreeMap;

use silvan_cc::hooks::{PortVl, RouteView, SourceControl, SwitchControl};
use silvan_core::{HostId, NodeId, PortId, PortNumber, Rate};

use crate::engine::Engine;
use crate::packet::{CONTROL, EXTENDED, NONE, Packet, service_level};
use crate::plane::{NO_ROUTE, Plane, time};
use crate::records::{Element, Next};
use crate::routing::CHOOSE;
use crate::variant::{EngineVariant, General};
use crate::vlarb::VlTables;
use crate::workload::Workload;
use silvan_model::{BuildError, EngineError, LostPackets, OnWire, VlArbitration};

/// Credits that a closed port lacks: more than any buffer has.
const WITHHELD: i32 = 1 << 28;
const EVERY_HOST: u32 = u32::MAX - 1;
const NO_HOST: u32 = u32::MAX;

/// Packets that a port did not pass on (IBA 16.1.3.5), since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Discards {
    pub xmit: u64,
    pub stale: u64,
    /// Packets that were on the cable to this port when it was cut, or had bit errors.
    pub rcv_errors: u64,
    pub relay_errors: u64,
    pub downed: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Reconfiguration {
    /// True if packets without a route are discarded; otherwise they end the run.
    discards: bool,
    tables: Vec<u8>,
    closed: Vec<bool>,
    /// Switches with ports that were closed or opened since packets moved, in order.
    stale: Vec<u32>,
    /// Host whose packets may leave by each port, [`EVERY_HOST`] or [`NO_HOST`]; empty until a route is set.
    hosts_behind: Vec<u32>,
    counts: Vec<Discards>,
    pub payload: u64,
    /// Discarded data packets that the workload does not know of, if discards do not end the run.
    lost: Vec<Packet>,
    /// Lost packets by message, if packets have its number.
    lost_messages: Option<BTreeMap<LostMessage, u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LostMessage {
    source: u32,
    destination: u32,
    sl: u8,
    class: u16,
    number: u16,
}

impl Reconfiguration {
    /// Returns true if the workload does not know of all discarded packets.
    #[inline]
    pub fn has_losses(&self) -> bool {
        !self.lost.is_empty()
    }

    /// `sent` is the start of its injection.
    pub fn note_lost(&mut self, packet: &Packet, sent: u64) {
        if let Some(messages) = &mut self.lost_messages {
            let key = LostMessage {
                source: packet.source(),
                destination: packet.destination(),
                sl: packet.sl_bits(),
                class: packet.class(),
                number: packet.waypoint(),
            };
            *messages.entry(key).or_insert(0) += 1;
        } else if self.discards {
            let mut packet = *packet;
            packet.clear(EXTENDED);
            packet.set_sent(sent);
            self.lost.push(packet);
        }
    }
}

struct SetRoutes<'a>(&'a Plane);

impl RouteView for SetRoutes<'_> {
    fn output(&self, port: PortId, to: HostId) -> Option<PortId> {
        let plane = self.0;
        let element = plane.ins[port.index()].element;
        let record = plane.elements[element as usize];
        let kept = record.table as usize + to.index();
        let output = match plane.reconfiguration.tables.get(kept) {
            Some(&NO_ROUTE) => return None,
            Some(&local) if local != CHOOSE => record.base + u32::from(local),
            _ => plane.output_of(element, plane.known_host(to)),
        };
        (output != NONE).then(|| PortId::new(output as usize))
    }
}

impl Plane {
    pub(crate) fn notify_routes<S: SwitchControl>(&self, switch: &mut S) {
        if !S::ACTIVE || !switch.needs_routes() {
            return;
        }
        for element in self.elements.iter().filter(|element| element.table != NONE) {
            switch.on_routes(PortId::new(element.base as usize), &SetRoutes(self));
        }
    }

    pub(crate) fn no_destination(&self) -> u32 {
        self.hosts.len() as u32
    }

    pub fn is_closed(&self, port: usize) -> bool {
        self.reconfiguration
            .closed
            .get(port)
            .copied()
            .unwrap_or(false)
    }

    pub fn withheld_credits(&self, lane: usize) -> i32 {
        let out = lane / self.vls;
        // Behind an output buffer the link belongs to the stage, which only its crossbar output knows.
        let port = if out < self.fabric_ports {
            out
        } else {
            self.ins[out].upstream as usize
        };
        let holds =
            out >= self.fabric_ports || self.elements[self.element_index(out)].table == NONE;
        if holds && self.is_closed(port) {
            WITHHELD
        } else {
            0
        }
    }

    fn element_index(&self, port: usize) -> usize {
        self.ins[port].element as usize
    }

    pub(crate) fn table_range(&self, element: usize) -> Option<std::ops::Range<usize>> {
        let first = self.elements.get(element)?.table;
        (first != NONE).then(|| first as usize..first as usize + self.hosts.len())
    }

    fn mark_stale(&mut self, element: usize) {
        let element = element as u32;
        if let Err(place) = self.reconfiguration.stale.binary_search(&element) {
            self.reconfiguration.stale.insert(place, element);
        }
        self.redirect = true;
    }

    /// Removes closed ports from forwarding tables, and restores opened ports, switch by switch.
    pub(crate) fn refresh_tables(&mut self) {
        for index in std::mem::take(&mut self.reconfiguration.stale) {
            let Element { base, ports, .. } = self.elements[index as usize];
            let Some(range) = self.table_range(index as usize) else {
                continue;
            };
            let closed = &self.reconfiguration.closed[base as usize..(base + ports) as usize];
            let set = &self.reconfiguration.tables[range.clone()];
            for (entry, &local) in self.tables[range].iter_mut().zip(set) {
                let is_closed = closed.get(usize::from(local)).copied().unwrap_or(false);
                *entry = if is_closed { NO_ROUTE } else { local };
            }
        }
    }

    /// See [`CompiledFabric::follow_messages`](crate::CompiledFabric::follow_messages).
    pub(crate) fn follow_messages(&mut self) {
        self.number_packets();
        if self.numbers {
            self.reconfiguration.lost_messages = Some(BTreeMap::new());
        }
    }

    /// See [`CompiledFabric::number_packets`](crate::CompiledFabric::number_packets).
    pub(crate) fn number_packets(&mut self) {
        self.numbers = self.transport.is_none() && self.routing.detours.is_none();
    }

    /// Lost packets by message.
    pub(crate) fn lost(&self) -> impl Iterator<Item = LostPackets> + '_ {
        let messages = self.reconfiguration.lost_messages.iter().flatten();
        messages.map(|(message, &packets)| {
            let &LostMessage {
                source,
                destination,
                sl,
                class,
                number,
            } = message;
            let level = self.routing.class_of(source, destination, sl);
            LostPackets {
                source: HostId::new(source as usize),
                destination: HostId::new(destination as usize),
                sl: service_level(level),
                class,
                number,
                packets,
            }
        })
    }

    fn prepare_reconfiguration(&mut self) {
        if self.reconfiguration.closed.is_empty() {
            self.tabulate();
            self.reconfiguration.tables = self.tables.to_vec();
            self.reconfiguration.closed = vec![false; self.fabric_ports];
        }
    }

    fn discards_at(&mut self, port: usize) -> &mut Discards {
        let counts = &mut self.reconfiguration.counts;
        counts.resize(self.fabric_ports, Discards::default());
        &mut counts[port]
    }

    pub(crate) fn count(
        &mut self,
        now: u64,
        port: u32,
        packet: &Packet,
        one: impl FnOnce(&mut Discards),
    ) {
        one(self.discards_at(port as usize));
        let born = self.extensions.sent(now, packet);
        self.extensions.discard(packet);
        if !packet.is(CONTROL) {
            if let Some(reordering) = &mut self.reordering {
                reordering.lost(born, packet);
            }
            let is_recorded = packet.destination() == self.no_destination();
            if !is_recorded {
                self.reconfiguration.note_lost(packet, born);
            }
            self.reconfiguration.payload += u64::from(packet.wire()) - u64::from(self.header);
        }
    }

    /// One dense table, because every route is checked.
    fn record_hosts_behind_ports(&mut self) {
        if self.reconfiguration.hosts_behind.is_empty() {
            let ports = (0..self.fabric_ports).map(|port| {
                let link = &self.outs[self.link_port(PortId::new(port))];
                match link.kind {
                    Next::Nowhere => NO_HOST,
                    Next::Input => EVERY_HOST,
                    Next::Host => link.next,
                }
            });
            self.reconfiguration.hosts_behind = ports.collect();
        }
    }

    fn withhold_credits(&mut self, output: usize, withhold: bool) {
        for lane in output * self.vls..(output + 1) * self.vls {
            self.credits[lane].in_hand += if withhold { -WITHHELD } else { WITHHELD };
        }
    }

    fn divert_heads(&mut self, now: u64, input: u32) {
        let no_destination = self.no_destination();
        let (reconfiguration, extensions) = (&mut self.reconfiguration, &self.extensions);
        self.events.for_each_head_mut(|port, packet| {
            if port == input {
                if !packet.is(CONTROL) && packet.destination() != no_destination {
                    reconfiguration.note_lost(packet, extensions.sent(now, packet));
                }
                packet.divert(no_destination);
            }
        });
        self.redirect = true;
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// True discards and counts packets without a forwarding entry; otherwise they end the run.
    pub fn discard_unroutable(&mut self, discard: bool) {
        self.note_fabric_change();
        self.plane.reconfiguration.discards = discard;
    }

    /// Tells the workload which packets were discarded, before it learns of any behind them.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell_losses(&mut self, now: u64) {
        for packet in std::mem::take(&mut self.plane.reconfiguration.lost) {
            let offer = self.plane.offer_of(&packet);
            let transit = self.transit_of(now, &packet);
            self.workload.on_lost(
                HostId::new(packet.source() as usize),
                &offer,
                transit,
                time(now),
                &mut self.woken,
            );
        }
    }

    /// Tells the workload which packets were discarded.
    pub fn settle_losses(&mut self) {
        if self.plane.reconfiguration.lost.is_empty() {
            return;
        }
        let now = self.now;
        self.tell_losses(now);
        self.wake_all(now);
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload> Engine<S, C, W> {
    /// Sets or removes a forwarding entry; waiting packets keep their output. A port without a cable or to another host
    /// is none. Panics without such a node or host.
    pub fn set_route(&mut self, switch: NodeId, destination: HostId, port: Option<PortNumber>) {
        self.note_fabric_change();
        self.set_routes(switch, &[(destination, port)]);
    }

    /// Sets the routes to several hosts at once. Panics if there is no such node or host.
    pub fn set_routes(&mut self, switch: NodeId, routes: &[(HostId, Option<PortNumber>)]) {
        self.note_fabric_change();
        let plane = &mut self.plane;
        plane.tabulate();
        let Some(range) = plane.table_range(switch.index()) else {
            return;
        };
        plane.record_hosts_behind_ports();
        plane.redirect |= !routes.is_empty();
        let element = plane.elements[switch.index()];
        let ports = element.base as usize..(element.base + element.ports) as usize;
        for &(destination, port) in routes {
            let host = plane.known_host(destination);
            let entry = range.start + host as usize;
            let reconfiguration = &mut plane.reconfiguration;
            let hosts_behind = &reconfiguration.hosts_behind[ports.clone()];
            let local = port
                .and_then(|number| number.as_u8().checked_sub(1))
                .filter(|&local| {
                    let to = hosts_behind.get(usize::from(local));
                    to.is_some_and(|&to| to == EVERY_HOST || to == host)
                })
                .unwrap_or(NO_ROUTE);
            if let Some(detours) = &mut plane.routing.detours {
                detours.set_table_port(entry, local);
                plane.tables[entry] = CHOOSE;
                continue;
            }
            if let Some(kept) = reconfiguration.tables.get_mut(entry) {
                *kept = local;
            }
            let closed = local != NO_ROUTE && plane.is_closed(ports.start + usize::from(local));
            plane.tables[entry] = if closed { NO_ROUTE } else { local };
        }
        if S::ACTIVE && self.switch.needs_routes() {
            let port = PortId::new(ports.start);
            self.switch.on_routes(port, &SetRoutes(&self.plane));
        }
    }

    /// Sets an output port's arbitration tables: lanes in neither never send. [`BuildError::VlArbitration`] for an
    /// absent lane; panics without such a port.
    pub fn set_vl_arbitration(
        &mut self,
        port: PortId,
        tables: &VlArbitration,
    ) -> Result<(), BuildError> {
        self.note_fabric_change();
        let data_vls = self.plane.config.data_vls;
        tables.check_lanes(data_vls)?;
        let plane = &mut self.plane;
        plane.known_port(port);
        let wanted = VlTables::new(tables, data_vls);
        let known = plane.vl_tables.iter().position(|known| *known == wanted);
        let index = known.unwrap_or(plane.vl_tables.len());
        let number = u16::try_from(index).map_err(|_| BuildError::TooMany {
            which: "different VL arbitration tables",
            found: index as u64 + 1,
            most: 1 << 16,
        })?;
        if known.is_none() {
            plane.vl_tables.push(wanted);
        }
        let output = plane.link_port(port);
        plane.vl_states[output] = plane.vl_tables[index].start(number);
        if plane.outs[output].waiting > 0 {
            self.wake_output(output as u32, self.now);
        }
        Ok(())
    }

    /// Closes an output port: a switch discards packets for it, a host keeps them. Panics without such a port.
    pub fn close_port(&mut self, port: PortId, on_wire: OnWire) {
        self.note_fabric_change();
        let now = self.now;
        let plane = &mut self.plane;
        plane.known_port(port);
        if plane.outs[port.index()].kind == Next::Nowhere {
            return;
        }
        plane.prepare_reconfiguration();
        if on_wire == OnWire::Lost {
            let link = &plane.outs[plane.link_port(port)];
            if link.kind == Next::Input {
                let input = link.next;
                plane.divert_heads(now, input);
            }
        }
        if std::mem::replace(&mut plane.reconfiguration.closed[port.index()], true) {
            return;
        }
        plane.discards_at(port.index()).downed += 1;
        let element = plane.element_index(port.index());
        if plane.table_range(element).is_none() {
            plane.withhold_credits(port.index(), true);
            return;
        }
        plane.mark_stale(element);
        let stage = plane.link_port(port);
        self.discard_waiting(port.index() as u32, port.index() as u32);
        if stage != port.index() {
            self.plane.withhold_credits(stage, true);
            self.discard_waiting(stage as u32, port.index() as u32);
        }
    }

    /// Opens a port again.
    pub fn open_port(&mut self, port: PortId) {
        self.note_fabric_change();
        let plane = &mut self.plane;
        if !plane.is_closed(port.index()) {
            return;
        }
        plane.reconfiguration.closed[port.index()] = false;
        let element = plane.element_index(port.index());
        if plane.table_range(element).is_none() {
            plane.withhold_credits(port.index(), false);
            let out = &mut plane.outs[port.index()];
            out.wait_since = u64::MAX;
            self.wake_host_of(port.index() as u32, self.now);
            return;
        }
        plane.mark_stale(element);
        let stage = plane.link_port(port);
        if stage != port.index() {
            plane.withhold_credits(stage, false);
            if plane.outs[stage].waiting > 0 {
                self.wake_output(stage as u32, self.now);
            }
        }
    }

    /// Changes the rate out of a port; started packets keep their time. Panics without such a port.
    pub fn set_link_rate(&mut self, port: PortId, rate: Rate) {
        self.note_fabric_change();
        self.plane.known_port(port);
        self.plane.set_link_rate(self.now, port, rate);
    }

    /// Changes a host's payload rate; `None` is the configured rate. Panics without such a host.
    pub fn set_sink_rate(&mut self, host: HostId, rate: Option<Rate>) {
        self.note_fabric_change();
        self.plane.known_host(host);
        self.plane.set_sink_rate(host, rate);
    }

    /// Returns true if a port is closed.
    pub fn is_closed(&self, port: PortId) -> bool {
        self.plane.is_closed(port.index())
    }

    /// Payload of all discarded packets, in bytes.
    pub fn discarded_bytes(&self) -> u64 {
        self.plane.reconfiguration.payload
    }

    /// Ends a deadlock by discarding the cycle's packets, as after HOQLife (IBA 18.2.5.4); returns their number.
    pub fn break_deadlock(&mut self) -> usize {
        self.note_fabric_change();
        let Some(EngineError::Deadlock(deadlock)) = self.fault.take() else {
            return 0;
        };
        let ports = deadlock.cycle.iter().map(|(port, _)| port.index() as u32);
        ports
            .collect::<Vec<_>>()
            .into_iter()
            .map(|port| {
                let discarded = self.discard_waiting(port, port);
                if let Some(counts) = self.plane.reconfiguration.counts.get_mut(port as usize) {
                    counts.stale += discarded as u64;
                }
                discarded
            })
            .sum()
    }

    fn discard_waiting(&mut self, output: u32, port: u32) -> usize {
        let now = self.now;
        let mut discarded = 0;
        for (input, packet) in self.pop_held_back(output) {
            self.plane
                .count(now, port, &packet, |counts| counts.xmit += 1);
            self.return_discarded(now, input, &packet);
            discarded += 1;
        }
        for vl in 0..self.plane.vls {
            let lane = self.plane.lane(output, vl);
            let (base, words) = {
                let record = &self.plane.lanes[lane];
                (record.base, u32::from(record.words))
            };
            for local in 0..words * 64 {
                while self.plane.lanes[lane].has_input(local) {
                    let packet = self.pop_waiting(output, lane, local);
                    self.plane
                        .count(now, port, &packet, |counts| counts.xmit += 1);
                    self.return_discarded(now, base + local, &packet);
                    self.move_up(now, base + local, packet.vl());
                    discarded += 1;
                }
            }
            if S::ACTIVE && self.plane.outs[output as usize].marks {
                self.switch.on_discarded(time(now), PortVl(lane as u32));
            }
        }
        let out = &mut self.plane.outs[output as usize];
        if out.wait_since != u64::MAX {
            out.wait_total += now.saturating_sub(out.wait_since);
            out.wait_since = u64::MAX;
        }
        self.invalidate_overtaken(now, output);
        discarded
    }

    fn pop_waiting(&mut self, output: u32, lane: usize, local: u32) -> Packet {
        let plane = &mut self.plane;
        let record = &mut plane.lanes[lane];
        let (packet, empty) = plane
            .pool
            .pop(&mut plane.queues[(record.queues + local) as usize]);
        if empty {
            record.clear_input(local);
        }
        record.queued_bytes -= u32::from(packet.wire());
        plane.note_left::<General>(output, lane);
        plane.outs[output as usize].waiting -= 1;
        packet
    }
}
