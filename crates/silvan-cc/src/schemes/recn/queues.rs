//! The set-aside queues of all outputs, those of hosts included.

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
use crate::schemes::Setup;

mod tokens;

use tokens::fits;

/// What an output knows of a lane behind it.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// Bytes that wait for it.
    bytes: u32,
    /// Packets of its line; of lines that have ended, the [`Output`] knows.
    passed: Passed,
}

/// Packets that came to an output on a lane by an input.
#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    /// Those that wait, and those that have left.
    waiting: u32,
    left: u32,
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
    /// By port.
    outputs: Vec<Output>,
    /// By port and lane.
    lanes: Vec<Lane>,
    /// By output, where its `waiting` and `arrived` begin, and how many inputs it has.
    places: Vec<(usize, usize)>,
    /// By output, lane and input, the packets that wait.
    waiting: Vec<u32>,
    /// By output, input and the lane on which they came.
    arrived: Vec<Arrived>,
    /// The packet whose lane has been chosen last: its output, input and destination.
    joining: Option<(PortId, PortId, HostId)>,
    notifications: u64,
    refused: u64,
    /// Outputs that expect messages, by the time when one arrives.
    expecting: BinaryHeap<Reverse<(Time, PortId)>>,
    /// When to receive messages of outputs to which nothing else happens.
    receive_at: Time,
    /// Messages that are to be exchanged, where there are several parts of the fabric.
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
            // Also of a host, whose position is not known.
            if let Some(peer) = port.peer {
                peers[peer.index()] = Some(PortId::new(index));
                peers[index] = Some(peer);
            }
            let switch = port.switch.index();
            inputs.resize(inputs.len().max(switch + 1), 0);
            inputs[switch] = usize::from(port.number.as_u8()).max(inputs[switch]);
        }
        let mut first = 0;
        let places = setup.ports.iter().map(|port| {
            let inputs = port.map_or(0, |port| inputs[port.switch.index()]);
            let place = (first, inputs);
            first += vls * inputs;
            place
        });
        let places: Vec<_> = places.collect();
        let outputs = setup.ports.iter().zip(peers);
        Self {
            variant: scheme.variant,
            detection: bytes(scheme.detection),
            propagation: bytes(scheme.propagation),
            message_delay: scheme.message_delay,
            idle: scheme.idle,
            vls,
            hosts: setup.hosts,
            paths: Paths::new(setup.ports, setup.hosts),
            outputs: outputs
                .map(|(port, peer)| Output::new(port.as_ref(), peer))
                .collect(),
            lanes: vec![Lane::default(); setup.ports.len() * vls],
            places,
            waiting: vec![0; first],
            arrived: vec![Arrived::default(); first],
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

    /// The port and lane of a dense index.
    #[inline]
    fn split(&self, output: PortVl) -> (PortId, usize) {
        let place = output.0 as usize;
        (PortId::new(place / self.vls), place % self.vls)
    }

    /// The place of an output, lane and input in `waiting` and `arrived`.
    #[inline]
    fn place(&self, port: PortId, lane: usize, input: u8) -> usize {
        let (first, inputs) = self.places[port.index()];
        first + lane * inputs + usize::from(input)
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
            let input = hop.input.map(|input| self.outputs[input.index()].number);
            let (first, inputs) = self.places[place];
            let waiting = &self.waiting;
            let waiting = |lane: usize| {
                let input = usize::from(input.unwrap_or(0));
                waiting[first + lane * inputs + input]
            };
            self.outputs[place].take(now, lane, input, waiting);
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
            let number = self.outputs[input.index()].number;
            self.outputs[port.index()].is_held(lane, number)
        }
    }

    fn on_queued(&mut self, now: Time, output: PortVl, queue: QueueView, packet: PacketView) {
        let (port, lane) = self.split(output);
        self.reach(now, port);
        let number = self.outputs[packet.input.index()].number;
        let waiting = self.place(port, lane, number);
        self.waiting[waiting] += 1;
        self.lanes[output.0 as usize].bytes = queue.queued_bytes;
        let before = packet.vl.index();
        if before != NORMAL {
            let place = self.place(port, before, number);
            self.arrived[place].waiting += 1;
        }
        let Some((_, input, to)) = self.joining.take() else {
            return;
        };
        let congests = match lane {
            // An output without credits waits for another switch.
            NORMAL => {
                let is_root = self.outputs[port.index()].to_host || queue.has_credit;
                is_root && queue.queued_bytes >= self.detection
            }
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
        let number = self.outputs[packet.input.index()].number;
        let waiting = self.place(port, lane, number);
        self.waiting[waiting] = self.waiting[waiting].saturating_sub(1);
        self.outputs[port.index()].leave(lane, number);
        let record = &mut self.lanes[output.0 as usize];
        record.bytes = queue.queued_bytes.saturating_sub(packet.wire_bytes);
        record.send();
        let before = packet.vl.index();
        if before != NORMAL {
            self.leave(now, port, before, packet.input);
        }
        false
    }

    fn message_delay(&self) -> Option<Span> {
        // Outputs of hosts send messages, too.
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
        self.outputs[port.index()].discard(lane);
        let (first, inputs) = self.places[port.index()];
        self.waiting[first + lane * inputs..][..inputs].fill(0);
        // On which lanes they came is not known before all of an input have been discarded.
        for input in 0..inputs {
            let mut places = (0..self.vls).map(|lane| first + lane * inputs + input);
            if places.any(|place| self.waiting[place] > 0) {
                continue;
            }
            let first_port = port.index() - usize::from(self.outputs[port.index()].number);
            for before in NORMAL + 1..self.vls {
                let arrived = &mut self.arrived[first + before * inputs + input];
                if arrived.waiting > 0 {
                    arrived.left = arrived.left.wrapping_add(arrived.waiting - 1);
                    arrived.waiting = 1;
                    self.leave(now, port, before, PortId::new(first_port + input));
                }
            }
        }
    }
}

/// Nothing of it changes during a run.
impl Settings for SetAside {}

/// An output changes by the packets of its switch, and by messages that have arrived.
impl PerPortVl for SetAside {}
