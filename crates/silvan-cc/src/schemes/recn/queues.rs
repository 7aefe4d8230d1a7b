use std::cmp::Reverse;
use std::collections::BinaryHeap;

use silvan_core::{Bytes, HostId, PortId, Span, Time, Vl};

use super::lines::{Output, Passed};
use super::routes::Paths;
use super::{NORMAL, Recn, Variant};
use crate::hooks::{
    Flow, LaneView, Messages, PacketView, PerPortVl, PortMessage, PortVl, QueueView, RouteView,
    Settings, SwitchControl,
};
use crate::schemes::{Setup, SwitchPort};

mod tokens;

use tokens::fits;

/// Knowledge of an output about a lane behind it.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    bytes: u32,
    /// Packets of its line; [`Output`] has those of ended lines.
    passed: Passed,
}

/// The switches, and the lines of hosts.
#[derive(Clone, Debug)]
pub struct SetAside {
    variant: Variant,
    detection: u32,
    propagation: u32,
    message_delay: Span,
    idle: Span,
    vls: usize,
    hosts: usize,
    paths: Paths,
    outputs: Vec<Output>,
    lanes: Vec<Lane>,
    /// Index of the port in its switch, from 0.
    numbers: Vec<u8>,
    joining: Option<(PortId, PortId, HostId)>,
    notifications: u64,
    refused: u64,
    expecting: BinaryHeap<Reverse<(Time, PortId)>>,
    receive_at: Time,
    sent: Option<Vec<PortMessage>>,
}

impl SetAside {
    pub(super) fn new(scheme: &Recn, setup: &Setup<'_>) -> Self {
        let bytes = |bytes: Option<Bytes>| {
            let bytes = bytes.map_or(u64::MAX, Bytes::as_u64);
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        let vls = usize::from(setup.data_vls);
        let mut peers = vec![None; setup.ports.len()];
        let mut inputs = Vec::new();
        for (index, port) in setup.ports.iter().enumerate() {
            let Some(port) = port else { continue };
            if let Some(peer) = port.peer {
                peers[peer.index()] = Some(PortId::new(index));
                peers[index] = Some(peer);
            }
            let switch = port.switch.index();
            inputs.resize(inputs.len().max(switch + 1), 0);
            inputs[switch] = usize::from(port.number.as_u8()).max(inputs[switch]);
        }
        let outputs = setup.ports.iter().zip(peers).map(|(port, peer)| {
            let inputs = port.map_or(0, |port| inputs[port.switch.index()]);
            let to_host = port.is_some_and(|port| port.to_host);
            Output::new(to_host, peer, vls, inputs)
        });
        let number = |port: &Option<SwitchPort>| port.map_or(0, |port| port.number.as_u8() - 1);
        Self {
            variant: scheme.variant,
            detection: bytes(scheme.detection),
            propagation: bytes(scheme.propagation),
            message_delay: scheme.message_delay,
            idle: scheme.idle,
            vls,
            hosts: setup.hosts,
            paths: Paths::new(setup.ports, setup.hosts),
            outputs: outputs.collect(),
            lanes: vec![Lane::default(); setup.ports.len() * vls],
            numbers: setup.ports.iter().map(number).collect(),
            joining: None,
            notifications: 0,
            refused: 0,
            expecting: BinaryHeap::new(),
            receive_at: Time::MAX,
            sent: None,
        }
    }

    /// Notifications that made a neighbour set a queue aside.
    pub const fn notifications(&self) -> u64 {
        self.notifications
    }

    /// Notifications to neighbours whose queues were all in use.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Set-aside queues in use at a port.
    pub fn in_use(&self, port: PortId) -> usize {
        self.outputs[port.index()].lines.len()
    }

    #[inline]
    fn split(&self, output: PortVl) -> (PortId, usize) {
        let place = output.0 as usize;
        (PortId::new(place / self.vls), place % self.vls)
    }
}

impl Lane {
    #[inline]
    fn send(&mut self) {
        self.passed.sent = self.passed.sent.wrapping_add(1);
    }
}

impl SwitchControl for SetAside {
    fn needs_select_next_vl(&self) -> bool {
        true
    }

    fn needs_holds_head(&self) -> bool {
        true
    }

    fn needs_host_vl(&self) -> bool {
        true
    }

    fn needs_routes(&self) -> bool {
        self.variant == Variant::Recn
    }

    fn on_routes<R: RouteView>(&mut self, port: PortId, routes: &R) {
        self.paths.set(port, routes);
        let paths = &self.paths;
        let used = self
            .outputs
            .iter_mut()
            .filter(|output| !output.lines.is_empty());
        used.for_each(|output| output.choose_again(|group, to| fits(paths, group, to)));
    }

    fn select_next_vl(&mut self, now: Time, hop: LaneView, flow: Flow, _: Vl) -> Option<Vl> {
        let to = flow.destination;
        self.reach(now, hop.output);
        self.joining = hop.input.map(|input| (hop.output, input, to));
        let place = hop.output.index();
        let lane = self.outputs[place].lane_to(to);
        if hop.input.is_none() {
            self.lanes[place * self.vls + lane].send();
        }
        if lane != NORMAL {
            let input = hop.input.map(|input| self.numbers[input.index()]);
            self.outputs[place].take(now, lane, input);
        }
        Vl::try_new(lane as u8).ok()
    }

    fn host_vl(&mut self, now: Time, output: PortId, flow: Flow, _: Vl) -> Option<Vl> {
        self.reach(now, output);
        let lane = self.outputs[output.index()].lane_to(flow.destination);
        Vl::try_new(lane as u8).ok()
    }

    fn holds_head(&mut self, _: Time, output: PortVl, input: PortId, _: Flow) -> bool {
        let (port, lane) = self.split(output);
        lane != NORMAL && {
            let number = self.numbers[input.index()];
            self.outputs[port.index()].is_held(lane, number)
        }
    }

    fn on_queued(&mut self, now: Time, output: PortVl, queue: QueueView, packet: PacketView) {
        let (port, lane) = self.split(output);
        self.reach(now, port);
        let number = self.numbers[packet.input.index()];
        let record = &mut self.outputs[port.index()];
        record.join(lane, number);
        let before = packet.vl.index();
        if before != NORMAL {
            record.arrive(before, number);
        }
        let to_host = record.to_host;
        self.lanes[output.0 as usize].bytes = queue.queued_bytes;
        let Some((_, input, to)) = self.joining.take() else {
            return;
        };
        let congests = match lane {
            // An output without credits waits for another switch.
            NORMAL => queue.queued_bytes >= self.detection && (to_host || queue.has_credit),
            _ => queue.queued_bytes >= self.propagation,
        };
        if congests {
            self.notify(now, port, lane, input, to);
        }
    }

    fn on_departure(
        &mut self,
        now: Time,
        output: PortVl,
        queue: QueueView,
        packet: PacketView,
    ) -> bool {
        let (port, lane) = self.split(output);
        self.reach(now, port);
        let number = self.numbers[packet.input.index()];
        let record = &mut self.outputs[port.index()];
        record.leave(lane, number);
        let before = packet.vl.index();
        let gone = match before {
            NORMAL => None,
            _ => record.depart(before, number),
        };
        let record = &mut self.lanes[output.0 as usize];
        record.bytes = queue.queued_bytes.saturating_sub(packet.wire_bytes);
        record.send();
        if let Some(packets) = gone {
            self.notify_emptied(now, port, packet.input, before as u8, packets);
        }
        false
    }

    fn host_vl_version(&self, now: Time, output: PortId) -> Option<u64> {
        let record = &self.outputs[output.index()];
        // Messages that arrived here or elsewhere may change the answer.
        let has_received = now <= self.receive_at && !record.expected.is_due(now);
        has_received.then_some(record.version)
    }

    fn message_delay(&self) -> Option<Span> {
        Some(Span::from_ps(self.message_delay.as_ps() / 2))
    }

    fn needs_exchange(&self) -> bool {
        true
    }

    fn exchange<M: Messages>(&mut self, done: Time, messages: &mut M) -> bool {
        self.sent.get_or_insert_default();
        self.receive_all(done);
        for message in self.sent.iter_mut().flat_map(|sent| sent.drain(..)) {
            messages.send(message);
        }
        while let Some(message) = messages.receive() {
            self.expect(message);
        }
        !self.expecting.is_empty()
    }

    fn on_discarded(&mut self, now: Time, output: PortVl) {
        let (port, lane) = self.split(output);
        self.reach(now, port);
        self.lanes[output.0 as usize].bytes = 0;
        let first = port.index() - usize::from(self.numbers[port.index()]);
        for (input, lane, packets) in self.outputs[port.index()].discard(lane) {
            let input = PortId::new(first + usize::from(input));
            self.notify_emptied(now, port, input, lane, packets);
        }
    }
}

impl Settings for SetAside {}

impl PerPortVl for SetAside {}
