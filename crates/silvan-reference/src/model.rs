use std::collections::{BTreeMap, BTreeSet};
use std::ops::Add;

use silvan_core::{Bytes, Credits, HostId, IdVec, PortId, Rate, Span, Time, Vl};

use crate::crossbar::{Crossbar, CrossbarId, Pick};
use crate::event::{Agenda, Event};
use crate::host::{FlowState, Host};
use crate::link::{
    Location, Outcome, Packet, PacketId, Receiver, ReceiverId, Thresholds, Transmission,
    Transmitter, TransmitterId,
};
use crate::params::{HostArbitration, Sink};
use crate::report::{Delivery, Loss, Occupancy, PortReport};

/// A fabric and its traffic, moved flit by flit.
///
/// Panics at the first event that a lossless fabric excludes: a flit sent early, an overflow, lost credits, or a packet
/// lost, doubled or out of order.
#[derive(Debug)]
pub struct FlitModel {
    pub(crate) now: Time,
    pub(crate) agenda: Agenda,
    pub(crate) header: Bytes,
    pub(crate) injection_rate: Option<Rate>,
    pub(crate) sink_rate: Option<Rate>,
    pub(crate) sink: Sink,
    pub(crate) host_arbitration: HostArbitration,
    pub(crate) packets: IdVec<PacketId, Packet>,
    pub(crate) transmitters: IdVec<TransmitterId, Transmitter>,
    pub(crate) receivers: IdVec<ReceiverId, Receiver>,
    pub(crate) crossbars: IdVec<CrossbarId, Crossbar>,
    pub(crate) hosts: IdVec<HostId, Host>,
    pub(crate) flows: Vec<FlowState>,
    pub(crate) ports: IdVec<PortId, Option<(TransmitterId, ReceiverId)>>,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) loss: Option<Loss>,
    pub(crate) at_arrivals: Vec<Occupancy>,
    pub(crate) at_departures: Vec<Occupancy>,
}

impl FlitModel {
    /// Lets everything happen that happens strictly before `end`.
    pub fn run_until(&mut self, end: Time) {
        while let Some((time, event)) = self.agenda.next_before(end) {
            assert!(time >= self.now, "time runs forwards");
            self.now = time;
            match event {
                Event::Arrive {
                    at,
                    packet,
                    boundary,
                } => self.arrive(at, packet, boundary),
                Event::Leave {
                    from,
                    packet,
                    boundary,
                } => self.leave(from, packet, boundary),
                Event::Deliver { host, packet } => self.deliver(host, packet),
                Event::Credit { to, packet } => self.credit(to, packet),
                Event::Resume { to, vl } => self.set_paused(to, vl, false),
                Event::Compare { at } => self.compare(at),
                Event::Pause { to, vl } => self.set_paused(to, vl, true),
                Event::Eligible { at, packet } => self.become_eligible(at, packet),
                Event::ReadEnd { at, .. } => self.read_end(at),
                Event::Arbitrate { output } => self.arbitrate(output),
                Event::Inject { host } => self.inject(host),
            }
        }
        self.now = end;
        self.audit();
    }

    /// The end of the last run.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// All packets delivered so far, in the order of their delivery.
    #[must_use]
    pub fn deliveries(&self) -> &[Delivery] {
        &self.deliveries
    }

    /// The first time that a buffer held more than its size under PFC. The packets are delivered all the same.
    #[must_use]
    pub fn first_loss(&self) -> Option<Loss> {
        self.loss
    }

    /// Payload of a flow delivered at `from` or later and before `to`.
    #[must_use]
    pub fn delivered_bytes(&self, flow: usize, from: Time, to: Time) -> Bytes {
        self.deliveries
            .iter()
            .filter(|delivery| delivery.flow == flow && (from..to).contains(&delivery.done))
            .map(|delivery| delivery.payload)
            .sum()
    }

    /// Packets that a flow has started.
    #[must_use]
    pub fn injected_packets(&self, flow: usize) -> u64 {
        self.flows[flow].injected
    }

    /// Packets started and not yet delivered.
    #[must_use]
    pub fn packets_under_way(&self) -> usize {
        self.packets.len() - self.deliveries.len()
    }

    /// Returns the report of a port; `None` for a port without a cable.
    #[must_use]
    pub fn port(&self, port: PortId) -> Option<PortReport> {
        let transmitter = &self.transmitters[self.ports[port]?.0];
        let open = transmitter
            .waiting_since
            .map_or(Span::ZERO, |since| self.now.since(since));
        let lanes = transmitter.paused.iter().flatten().flatten();
        let paused: Span = lanes.map(|&since| self.now.since(since)).sum();
        Some(PortReport {
            xmit_bytes: transmitter.xmit_bytes,
            xmit_packets: transmitter.xmit_packets,
            xmit_wait: transmitter.waited + open,
            pause_frames: transmitter.pause_frames,
            pause_time: transmitter.pause_time + paused,
        })
    }

    /// Blocks taken in the input buffer of a port and virtual lane now; `None` without a cable.
    #[must_use]
    pub fn occupancy(&self, port: PortId, vl: Vl) -> Option<Credits> {
        Some(self.receivers[self.ports[port]?.1].reserved(vl))
    }

    /// Most blocks that were ever taken in the input buffer of a port and virtual lane; `None` without a cable.
    #[must_use]
    pub fn max_occupancy(&self, port: PortId, vl: Vl) -> Option<Credits> {
        Some(self.receivers[self.ports[port]?.1].largest(vl))
    }

    /// Occupancy of input buffers when packets became eligible, these included.
    #[must_use]
    pub fn occupancy_at_arrivals(&self) -> &[Occupancy] {
        &self.at_arrivals
    }

    /// Occupancy of input buffers when packets began to leave, these included.
    #[must_use]
    pub fn occupancy_at_departures(&self) -> &[Occupancy] {
        &self.at_departures
    }

    fn known_occupancy(&self, at: ReceiverId, id: PacketId) -> Option<Occupancy> {
        let mut ports = self.ports.iter_enumerated();
        let (port, _) = ports.find(|(_, ends)| ends.is_some_and(|ends| ends.1 == at))?;
        let receiver = &self.receivers[at];
        let vl = self.packets[id].lane(receiver.upstream);
        let packets = receiver.eligible_packets().map(|id| &self.packets[id]);
        let of_lane = packets.filter(|packet| packet.lane(receiver.upstream) == vl);
        Some(Occupancy {
            at: self.now,
            port,
            vl,
            blocks: of_lane.map(Packet::blocks).fold(Credits::ZERO, Add::add),
        })
    }

    fn inject(&mut self, host_id: HostId) {
        let host = &self.hosts[host_id];
        let transmitter = &self.transmitters[host.transmitter];
        if transmitter.current.is_some() || self.now < host.paced_until {
            return;
        }
        let count = host.flows.len();
        let ready: Vec<usize> = (0..count)
            .map(|step| (host.first + step) % count)
            .filter(|&location| self.flows[host.flows[location]].is_ready(self.now))
            .collect();
        let mut waiting = host.chosen.clone();
        let is_chosen = |location: &usize| waiting.values().any(|other| other == location);
        let others = ready
            .iter()
            .copied()
            .filter(|location| !is_chosen(location));
        let order: Vec<usize> = waiting.values().copied().chain(others).collect();
        let mut held = BTreeSet::new();
        let chosen = order.into_iter().find(|&location| {
            let packet = self.next_packet(host.flows[location], host.transmitter);
            let lane = packet.lane(host.transmitter);
            if held.contains(&lane) {
                return false;
            }
            if transmitter.has_credits_for(&packet, lane) {
                if waiting.get(&lane) == Some(&location) {
                    waiting.remove(&lane);
                }
                return true;
            }
            if self.host_arbitration == HostArbitration::HeadOfLine {
                held.insert(lane);
                waiting.insert(lane, location);
            }
            false
        });
        let waits = chosen.is_none() && !ready.is_empty();
        self.hosts[host_id].chosen = waiting;
        let host = &self.hosts[host_id];
        let (output, flow_of) = (host.transmitter, host.flows.clone());
        self.transmitters[output].note_wait(self.now, waits);
        let Some(location) = chosen else { return };

        let packet = self.next_packet(flow_of[location], output);
        let flow = &mut self.flows[flow_of[location]];
        flow.injected += 1;
        flow.ready = self.now + flow.gap;
        let host = &mut self.hosts[host_id];
        host.first = (location + 1) % count;
        let pace = self
            .injection_rate
            .map_or(Span::ZERO, |rate| rate.span_for(packet.payload));
        host.paced_until = self.now + pace;
        for again in [flow.ready, host.paced_until] {
            self.agenda.add(again, Event::Inject { host: host_id });
        }
        let packet = self.packets.push(packet);
        self.start(output, packet, None, None);
    }

    fn next_packet(&self, index: usize, output: TransmitterId) -> Packet {
        let flow = &self.flows[index];
        Packet {
            flow: index,
            sequence: flow.injected,
            destination: flow.destination,
            sl: flow.sl,
            lanes: BTreeMap::from([(output, flow.vl)]),
            payload: flow.payload,
            wire: flow.payload + self.header,
            injected: self.now,
            passes: BTreeMap::new(),
        }
    }

    fn arbitrate(&mut self, output: TransmitterId) {
        let transmitter = &self.transmitters[output];
        let Location::Crossbar(crossbar_id, index) = transmitter.location else {
            unreachable!("a host does not arbitrate");
        };
        if transmitter.current.is_some() {
            return;
        }
        let crossbar = &mut self.crossbars[crossbar_id];
        let may_leave = |input: usize, location: usize, packet: PacketId| {
            let reads = self.receivers[crossbar.inputs[input]].reads;
            let may_read = crossbar.read_limit.is_none_or(|limit| reads < limit);
            may_read && crossbar.is_first(input, location, packet)
        };
        let picks: Vec<Option<Pick>> = crossbar.outputs[index]
            .lanes
            .iter()
            .map(|lane| lane.pick(crossbar.arbitration, may_leave))
            .collect();
        let available: Vec<Option<Credits>> = picks
            .iter()
            .map(|pick| {
                let packet = &self.packets[(*pick)?.packet];
                let has_credits = transmitter.has_credits_for(packet, packet.lane(output));
                has_credits.then(|| packet.blocks())
            })
            .collect();
        let chosen = crossbar.outputs[index].vl_arbiter.choose(&available);
        let mut lanes = crossbar.outputs[index].lanes.iter();
        let is_first = |input, location, packet| crossbar.is_first(input, location, packet);
        let waits = chosen.is_none() && lanes.any(|lane| lane.waits(is_first));
        self.transmitters[output].note_wait(self.now, waits);
        let Some(vl) = chosen else { return };

        let pick = picks[vl.index()].expect("only a lane with a packet is chosen");
        crossbar.outputs[index].lanes[vl.index()].grant(pick);
        crossbar.leaves(pick.input, pick.packet);
        let from = crossbar.inputs[pick.input];
        let cuts_through = crossbar.outputs[index].paces != output;
        let arriving = cuts_through.then(|| {
            let upstream = self.receivers[from].upstream;
            let head = self.packets[pick.packet].passes[&output];
            (head, self.transmitters[upstream].rate)
        });
        self.start(output, pick.packet, Some(from), arriving);
    }

    /// With a limit on reads, waiting outputs are tried in turn, so that none starves.
    fn read_end(&mut self, at: ReceiverId) {
        self.receivers[at].reads -= 1;
        let Location::Crossbar(crossbar_id, input) = self.receivers[at].location else {
            unreachable!("only crossbars read their inputs");
        };
        let crossbar = &self.crossbars[crossbar_id];
        let Some(limit) = crossbar.read_limit else {
            return;
        };
        let count = crossbar.outputs.len();
        let first = crossbar.read_turns[input];
        for location in (0..count).map(|step| (first + step) % count) {
            let crossbar = &self.crossbars[crossbar_id];
            let output = &crossbar.outputs[location];
            let mut lanes = output.lanes.iter();
            let is_first = |input, location, packet| crossbar.is_first(input, location, packet);
            if !lanes.any(|lane| lane.waits_for(input, is_first)) {
                continue;
            }
            self.arbitrate(output.transmitter);
            if self.receivers[at].reads == limit {
                self.crossbars[crossbar_id].read_turns[input] = (location + 1) % count;
                return;
            }
        }
    }

    fn start(
        &mut self,
        output: TransmitterId,
        id: PacketId,
        from: Option<ReceiverId>,
        arriving: Option<(Time, Rate)>,
    ) {
        let occupancy = from.and_then(|from| self.known_occupancy(from, id));
        self.at_departures.extend(occupancy);
        let packet = &self.packets[id];
        let (lane, blocks) = (packet.lane(output).index(), packet.blocks());
        let transmitter = &mut self.transmitters[output];
        assert!(transmitter.current.is_none(), "one packet at a time");
        if let Some(paused) = &transmitter.paused {
            assert!(paused[lane].is_none(), "no packet starts in a pause");
        } else {
            transmitter.credits[lane] = transmitter.credits[lane]
                .checked_sub(blocks)
                .expect("credits never fall below zero");
            transmitter.ahead[lane] += blocks;
        }
        let transmission = Transmission {
            packet: id,
            start: self.now,
            from,
            arriving,
        };
        let tail = transmission.passes_at(transmitter.rate, packet, packet.flits());
        transmitter.current = Some(transmission);
        if let Some(from) = from {
            self.receivers[from].reads += 1;
            // If this was the last read, other outputs may pick another input now.
            if let Location::Crossbar(crossbar, _) = self.receivers[from].location {
                let percent = self.crossbars[crossbar].read_speedup_percent;
                let whole = tail.since(self.now).as_ps() * 100;
                let read = Span::from_ps(whole.div_ceil(percent));
                let end = Event::ReadEnd {
                    at: from,
                    packet: id,
                };
                self.agenda.add(self.now + read, end);
                self.arbitrate_outputs(crossbar);
            }
        }
        self.leave(output, id, 0);
    }

    fn leave(&mut self, output: TransmitterId, id: PacketId, boundary: u32) {
        let packet = &self.packets[id];
        let transmitter = &mut self.transmitters[output];
        let transmission = transmitter.current.expect("a packet is being sent");
        assert_eq!(transmission.packet, id, "one packet at a time");
        if let Some(from) = transmission.from {
            self.receivers[from].boundary_leaves(id, packet, boundary);
        }
        if boundary > 0 {
            let flit = packet
                .bytes_before(boundary)
                .saturating_sub(packet.bytes_before(boundary - 1));
            transmitter.xmit_bytes += flit;
        }
        self.agenda.add(
            self.now + transmitter.propagation,
            Event::Arrive {
                at: transmitter.peer,
                packet: id,
                boundary,
            },
        );
        if boundary == packet.flits() {
            self.finish(output, id);
        } else {
            self.agenda.add(
                transmission.passes_at(transmitter.rate, packet, boundary + 1),
                Event::Leave {
                    from: output,
                    packet: id,
                    boundary: boundary + 1,
                },
            );
        }
    }

    fn finish(&mut self, output: TransmitterId, id: PacketId) {
        let transmitter = &mut self.transmitters[output];
        let transmission = transmitter.current.take().expect("a packet was being sent");
        transmitter.xmit_packets += 1;
        transmitter.idle_since = Some(self.now);
        let location = transmitter.location;
        if let Some(from) = transmission.from {
            self.free_space(from, id);
        }
        match location {
            Location::Host(host) => self.agenda.add(self.now, Event::Inject { host }),
            Location::Crossbar(crossbar, _) => self.arbitrate_outputs(crossbar),
        }
    }

    fn free_space(&mut self, at: ReceiverId, id: PacketId) {
        let packet = &self.packets[id];
        let receiver = &mut self.receivers[at];
        receiver.release(id, packet);
        if receiver.thresholds.is_some() {
            self.agenda.add(self.now, Event::Compare { at });
            return;
        }
        let upstream = receiver.upstream;
        self.transmitters[upstream].returning[packet.lane(upstream).index()] += packet.blocks();
        self.agenda.add(
            self.now + receiver.credit_delay,
            Event::Credit {
                to: upstream,
                packet: id,
            },
        );
    }

    fn credit(&mut self, to: TransmitterId, id: PacketId) {
        let packet = &self.packets[id];
        let lane = packet.lane(to).index();
        let transmitter = &mut self.transmitters[to];
        transmitter.returning[lane] -= packet.blocks();
        transmitter.credits[lane] += packet.blocks();
        match transmitter.location {
            Location::Host(host) => self.agenda.add(self.now, Event::Inject { host }),
            Location::Crossbar(crossbar, _) => self.arbitrate_outputs(crossbar),
        }
    }

    fn compare(&mut self, at: ReceiverId) {
        let receiver = &mut self.receivers[at];
        let to = receiver.upstream;
        let Some(Thresholds { delay, .. }) = receiver.thresholds else {
            return;
        };
        for outcome in receiver.compare() {
            match outcome {
                Outcome::Pause(vl) => self.agenda.add(self.now + delay, Event::Pause { to, vl }),
                Outcome::Resume(vl) => self.agenda.add(self.now + delay, Event::Resume { to, vl }),
                Outcome::Overflow(vl, over) => {
                    let mut ports = self.ports.iter_enumerated();
                    let port = ports.find(|(_, ends)| ends.is_some_and(|ends| ends.1 == at));
                    let (port, _) = port.expect("PFC is on cables alone");
                    let first = (self.loss.is_none()).then_some(Loss {
                        at: self.now,
                        port,
                        vl,
                        over,
                    });
                    self.loss = self.loss.or(first);
                }
            }
        }
    }

    fn set_paused(&mut self, to: TransmitterId, vl: Vl, is_paused: bool) {
        let transmitter = &mut self.transmitters[to];
        let lanes = transmitter.paused.as_mut();
        let lane = &mut lanes.expect("only links with PFC pause")[vl.index()];
        let since = std::mem::replace(lane, is_paused.then_some(self.now));
        assert_eq!(since.is_none(), is_paused, "pauses begin and end in turn");
        transmitter.pause_frames += 1;
        transmitter.pause_time += since.map_or(Span::ZERO, |since| self.now.since(since));
        match transmitter.location {
            _ if is_paused => {}
            Location::Host(host) => self.agenda.add(self.now, Event::Inject { host }),
            Location::Crossbar(crossbar, _) => self.arbitrate_outputs(crossbar),
        }
    }

    fn arrive(&mut self, at: ReceiverId, id: PacketId, boundary: u32) {
        let packet = &self.packets[id];
        let receiver = &mut self.receivers[at];
        if boundary == 0 {
            receiver.reserve(id, packet);
            let upstream = receiver.upstream;
            if receiver.thresholds.is_some() {
                self.agenda.add(self.now, Event::Compare { at });
            } else {
                let lane = packet.lane(upstream).index();
                self.transmitters[upstream].ahead[lane] -= packet.blocks();
            }
        } else {
            receiver.flit_arrives(id, packet, boundary);
        }
        match receiver.location {
            Location::Crossbar(crossbar, input) if boundary == 0 => self.queue(crossbar, input, id),
            Location::Crossbar(..) => {}
            Location::Host(host) => self.sink(host, id, boundary),
        }
    }

    fn queue(&mut self, crossbar_id: CrossbarId, input: usize, id: PacketId) {
        let packet = &mut self.packets[id];
        let crossbar = &mut self.crossbars[crossbar_id];
        let (at, crossbar_latency) = (crossbar.inputs[input], crossbar.latency);
        let upstream = self.receivers[at].upstream;
        let lane = crossbar.lane_to(packet.destination, input, packet.sl);
        let lane = lane.unwrap_or_else(|| packet.lane(upstream));
        let buffer = packet.lane(upstream).index();
        crossbar.arrived[input][buffer].push_back(id);
        let output = crossbar.output_to(packet.destination);
        packet.lanes.insert(output.transmitter, lane);
        packet
            .passes
            .insert(output.transmitter, self.now + crossbar_latency);
        output.lanes[lane.index()].queue(input, id);
        let time_in = self.transmitters[upstream].rate.span_for(packet.wire);
        let time_out = self.transmitters[output.paces].rate.span_for(packet.wire);
        // A faster output must wait, or it would run out of flits before the tail has arrived.
        let wait = crossbar_latency + time_in.saturating_sub(time_out);
        self.agenda
            .add(self.now + wait, Event::Eligible { at, packet: id });
    }

    fn become_eligible(&mut self, at: ReceiverId, id: PacketId) {
        self.receivers[at].make_eligible(id);
        self.at_arrivals.extend(self.known_occupancy(at, id));
        let packet = &self.packets[id];
        let Location::Crossbar(crossbar, input) = self.receivers[at].location else {
            unreachable!("only crossbars send packets on");
        };
        let output = self.crossbars[crossbar].output_to(packet.destination);
        let lane = packet.lane(output.transmitter).index();
        output.lanes[lane].make_eligible(input, id, self.now);
        let transmitter = output.transmitter;
        if self.crossbars[crossbar].is_behind(input, id) {
            // Another packet leaves its buffer first; then all outputs arbitrate.
        } else if self.transmitters[transmitter].was_idle_before(self.now) {
            self.arbitrate(transmitter);
        } else {
            self.agenda.add(
                self.now,
                Event::Arbitrate {
                    output: transmitter,
                },
            );
        }
    }

    fn sink(&mut self, host_id: HostId, id: PacketId, boundary: u32) {
        let packet = &self.packets[id];
        assert_eq!(packet.destination, host_id, "delivered where it was sent");
        let host = &mut self.hosts[host_id];
        let rate = self.sink_rate;
        let work = |bytes| rate.map_or(Span::ZERO, |rate| rate.span_for(bytes));
        let begins = match self.sink {
            Sink::StoreAndForward => packet.flits(),
            Sink::CutThrough => 1,
        };
        if boundary == begins {
            host.sink_free = host.sink_free.max(self.now) + work(packet.payload);
        }
        if boundary < packet.flits() {
            return;
        }
        if self.sink == Sink::CutThrough {
            let last = packet
                .wire
                .saturating_sub(packet.bytes_before(boundary - 1));
            let last = last.min(packet.payload);
            host.sink_free = host.sink_free.max(self.now + work(last));
        }
        self.agenda.add(
            host.sink_free,
            Event::Deliver {
                host: host_id,
                packet: id,
            },
        );
    }

    fn deliver(&mut self, host: HostId, id: PacketId) {
        let packet = &self.packets[id];
        let at = self.hosts[host].receiver;
        self.receivers[at].receive(id, packet);
        self.deliveries.push(Delivery {
            flow: packet.flow,
            sequence: packet.sequence,
            payload: packet.payload,
            injected: packet.injected,
            done: self.now,
        });
        self.free_space(at, id);
    }

    fn arbitrate_outputs(&mut self, crossbar: CrossbarId) {
        for output in &self.crossbars[crossbar].outputs {
            self.agenda.add(
                self.now,
                Event::Arbitrate {
                    output: output.transmitter,
                },
            );
        }
    }

    fn audit(&self) {
        for transmitter in &self.transmitters {
            let peer = &self.receivers[transmitter.peer];
            if transmitter.paused.is_some() {
                continue;
            }
            for vl in Vl::all().take(transmitter.credits.len()) {
                let lane = vl.index();
                let all = transmitter.credits[lane]
                    + transmitter.ahead[lane]
                    + peer.reserved(vl)
                    + transmitter.returning[lane];
                assert_eq!(all, peer.capacity, "credits of a link and lane add up");
            }
        }
        let mut somewhere: BTreeSet<PacketId> = self.agenda.moving_packets().collect();
        somewhere.extend(self.receivers.iter().flat_map(Receiver::packets));
        assert_eq!(
            somewhere.len(),
            self.packets_under_way(),
            "every packet is either delivered or somewhere"
        );
    }
}
