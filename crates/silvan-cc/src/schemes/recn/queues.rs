//! The set-aside queues of all outputs, those of hosts included.

use std::collections::BTreeMap;

use silvan_core::{Bytes, HostId, PortId, Span, Time, Vl};

use super::lines::{Chosen, Group, Input, Lane, Line, Output};
use super::{NORMAL, Recn, Variant};
use crate::hooks::{
    Flow, LaneView, LinkView, PacketView, PortVl, QueueView, Settings, SwitchControl,
};
use crate::schemes::{Setup, SwitchPort};

/// The switches, and the lines of hosts.
#[derive(Clone, Debug)]
pub struct SetAside {
    variant: Variant,
    detection: u32,
    propagation: u32,
    message_delay: Span,
    idle: Span,
    vls: u32,
    /// By port.
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    /// By switch, its ports.
    ports: Vec<Vec<PortId>>,
    /// By switch and destination, the output that packets have taken, and since when. RECN's packets carry their whole
    /// path; here a destination is known to lead through a root as soon as a packet has taken each turn.
    turns: Vec<Vec<Option<(PortId, Time)>>>,
    /// How often a turn was new.
    learned: u64,
    hosts: usize,
    /// The packet whose lane has been chosen last: its output, input and destination.
    joining: Option<(PortId, PortId, HostId)>,
    notifications: u64,
    refused: u64,
}

impl SetAside {
    pub(super) fn new(scheme: &Recn, setup: &Setup<'_>) -> Self {
        let bytes = |bytes: Option<Bytes>| {
            let bytes = bytes.map_or(u64::MAX, Bytes::as_u64);
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        let of_switches = setup.ports.iter().flatten();
        let switches = of_switches.map(|port| port.switch.index() + 1).max();
        let switches = switches.unwrap_or(0);
        let mut ports = vec![Vec::new(); switches];
        let mut inputs = vec![0; switches];
        for (index, port) in setup.ports.iter().enumerate() {
            let Some(port) = port else { continue };
            let switch = port.switch.index();
            ports[switch].push(PortId::new(index));
            inputs[switch] = usize::from(port.number.as_u8()).max(inputs[switch]);
        }
        let input = |port: &Option<SwitchPort>| Input {
            number: port.map_or(0, |port| port.number.as_u8() - 1),
            upstream: None,
        };
        let output = |port: &Option<SwitchPort>| {
            let inputs = port.map_or(0, |port| inputs[port.switch.index()]);
            let lane = Lane {
                joined: vec![0; inputs],
                left: vec![0; inputs],
                ..Lane::default()
            };
            Output {
                switch: port.map(|port| port.switch),
                to_host: port.is_some_and(|port| port.to_host),
                lanes: vec![lane; usize::from(setup.data_vls)],
                lines: Vec::new(),
                chosen: Chosen::default(),
                check_at: Time::ZERO,
            }
        };
        Self {
            variant: scheme.variant,
            detection: bytes(scheme.detection),
            propagation: bytes(scheme.propagation),
            message_delay: scheme.message_delay,
            idle: scheme.idle,
            vls: u32::from(setup.data_vls),
            inputs: setup.ports.iter().map(input).collect(),
            outputs: setup.ports.iter().map(output).collect(),
            ports,
            turns: vec![Vec::new(); switches],
            learned: 0,
            hosts: setup.hosts,
            joining: None,
            notifications: 0,
            refused: 0,
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

    /// The lane of a packet behind an output: that of the line with the longest path that it takes.
    fn lane(&mut self, now: Time, output: PortId, next: Option<PortId>, to: HostId) -> usize {
        let record = &mut self.outputs[output.index()];
        if record.lines.is_empty() {
            return NORMAL;
        }
        if record.switch.is_some() {
            return self.find_lane(now, output, next, to);
        }
        // A host is asked about each of its flows, whenever it may start a packet.
        if let Some(lane) = record.chosen.lane(now, self.learned, to) {
            return lane;
        }
        let later = record.lines.iter().map(|line| line.from);
        let until = later.filter(|&from| from > now).min();
        let lane = self.find_lane(now, output, next, to);
        let chosen = &mut self.outputs[output.index()].chosen;
        chosen.note(
            self.hosts,
            self.learned,
            until.unwrap_or(Time::MAX),
            to,
            lane,
        );
        lane
    }

    fn find_lane(&self, now: Time, output: PortId, next: Option<PortId>, to: HostId) -> usize {
        let Output { switch, lines, .. } = &self.outputs[output.index()];
        let is_host = switch.is_none();
        let known = lines.iter().filter(|line| line.from <= now);
        let fitting = known.filter(|line| self.fits(line, is_host, next, to));
        let longest = fitting.max_by_key(|line| line.group.length());
        longest.map_or(NORMAL, |line| line.lane)
    }

    /// Whether a packet is one of a line's. A switch looks up the next output, and must know since before the line what
    /// leads from there to the root, so that no destination joins the line later than its packets. A host, whose packets
    /// all go one after the other, knows the turns of packets before.
    fn fits(&self, line: &Line, is_host: bool, next: Option<PortId>, to: HostId) -> bool {
        let path = match &line.group {
            Group::Destination(host) => return *host == to,
            Group::Path(path) => &path[..],
        };
        let known = if is_host { path } else { &path[1..] };
        (is_host || next == Some(path[0]))
            && known.iter().all(|&output| {
                let switch = self.outputs[output.index()].switch;
                let turns = switch.and_then(|switch| self.turns.get(switch.index()));
                let turn = turns.and_then(|turns| *turns.get(to.index())?);
                turn.is_some_and(|(taken, since)| {
                    taken == output && (is_host || since <= line.from)
                })
            })
    }

    /// Notes by which output a switch sends packets to a host.
    fn learn(&mut self, now: Time, output: PortId, to: HostId) {
        let Some(switch) = self.outputs[output.index()].switch else {
            return;
        };
        let turns = &mut self.turns[switch.index()];
        if turns.is_empty() {
            turns.resize(self.hosts, None);
        }
        let turn = &mut turns[to.index()];
        if turn.is_none_or(|(taken, _)| taken != output) {
            *turn = Some((output, now));
            self.learned += 1;
        }
    }

    /// Notifies the output upstream of an input: it sets a queue aside for these packets, if it has one.
    pub(super) fn notify(
        &mut self,
        now: Time,
        input: PortId,
        group: Group,
        downstream: Option<PortId>,
    ) {
        let Some(upstream) = self.inputs[input.index()].upstream else {
            return;
        };
        if self.outputs[upstream.index()].lane_of(&group).is_some() {
            return;
        }
        let record = &mut self.outputs[upstream.index()];
        if record.free_lane().is_none() && now >= record.check_at {
            record.check_at = now.saturating_add(self.message_delay);
            self.free_unused(now, upstream);
        }
        let output = &mut self.outputs[upstream.index()];
        let Some(lane) = output.free_lane() else {
            self.refused += 1;
            return;
        };
        self.notifications += 1;
        let line = Line {
            lane,
            from: now.saturating_add(self.message_delay),
            used: None,
            downstream,
            branches: 0,
            before: BTreeMap::new(),
            group,
        };
        let below = line.group.downstream();
        output.lines.push(line);
        output.chosen.invalidate();
        if let Some(line) = downstream.zip(below).and_then(|(port, group)| {
            let output = &mut self.outputs[port.index()];
            output.lines.iter_mut().find(|line| line.group == group)
        }) {
            line.branches += 1;
        }
    }

    /// Removes a line whose queue is empty and that has no branches, and then those downstream for which this holds, too.
    fn free(&mut self, now: Time, port: PortId, lane: usize) {
        let mut next = Some((port, lane));
        while let Some((port, lane)) = next.take() {
            let output = &mut self.outputs[port.index()];
            let Some(place) = output.lines.iter().position(|line| line.lane == lane) else {
                return;
            };
            let line = &output.lines[place];
            let Lane { bytes, ahead, .. } = output.lanes[lane];
            let last = line.used.unwrap_or(line.from);
            let is_over = line.used.is_some() && ahead == 0;
            let is_unused = now >= last.saturating_add(self.idle);
            if line.branches > 0 || bytes > 0 || !(is_over || is_unused) {
                return;
            }
            let line = output.lines.remove(place);
            output.chosen.invalidate();
            let downstream = line.downstream.zip(line.group.downstream());
            next = downstream.and_then(|(port, group)| {
                let below = &mut self.outputs[port.index()].lines;
                let below = below.iter_mut().find(|line| line.group == group)?;
                below.branches -= 1;
                Some((port, below.lane))
            });
        }
    }

    /// Removes lines of an output, and their branches, that no packet has taken for the idle time.
    fn free_unused(&mut self, now: Time, port: PortId) {
        let output = &self.outputs[port.index()];
        let lines = output.lines.iter();
        let lines: Vec<(usize, Group)> = lines
            .map(|line| (line.lane, line.group.upstream_of(port)))
            .collect();
        let ports = output.switch.map(|switch| &self.ports[switch.index()]);
        let upstream = ports.into_iter().flatten();
        let upstream: Vec<PortId> = upstream
            .filter_map(|port| self.inputs[port.index()].upstream)
            .collect();
        for (lane, group) in lines {
            for &branch in &upstream {
                let branches = self.outputs[branch.index()].lines.iter();
                let mut of_this =
                    branches.filter(|line| line.group == group && line.downstream == Some(port));
                if of_this.next().is_some() {
                    self.free_unused(now, branch);
                }
            }
            self.free(now, port, lane);
        }
    }

    /// The port and lane of a dense index.
    fn split(&self, output: PortVl) -> (PortId, usize) {
        let port = PortId::new((output.0 / self.vls) as usize);
        (port, (output.0 % self.vls) as usize)
    }
}

impl SwitchControl for SetAside {
    fn needs_link(&self) -> bool {
        true
    }

    fn needs_select_next_vl(&self) -> bool {
        true
    }

    fn needs_holds_head(&self) -> bool {
        true
    }

    fn needs_host_vl(&self) -> bool {
        true
    }

    fn select_next_vl(&mut self, now: Time, hop: LaneView, flow: Flow, _: Vl) -> Option<Vl> {
        let to = flow.destination;
        if let Some(next) = hop.next_input {
            self.inputs[next.index()].upstream = Some(hop.output);
        }
        if hop.input.is_some() && self.variant == Variant::Recn {
            self.learn(now, hop.output, to);
        }
        self.joining = hop.input.map(|input| (hop.output, input, to));
        let lane = self.lane(now, hop.output, hop.next_output, to);
        if lane != NORMAL {
            let input = hop.input.map(|input| self.inputs[input.index()].number);
            self.outputs[hop.output.index()].take(now, lane, input);
        }
        Vl::try_new(lane as u8).ok()
    }

    fn host_vl(&mut self, now: Time, output: PortId, flow: Flow, _: Vl) -> Option<Vl> {
        let to = flow.destination;
        let lane = self.lane(now, output, None, to);
        Vl::try_new(lane as u8).ok()
    }

    fn holds_head(&mut self, _: Time, output: PortVl, input: PortId, _: Flow) -> bool {
        let (port, lane) = self.split(output);
        let number = self.inputs[input.index()].number;
        lane != NORMAL && self.outputs[port.index()].holds(lane, number)
    }

    fn on_queued(&mut self, now: Time, output: PortVl, queue: QueueView, packet: PacketView) {
        let (port, lane) = self.split(output);
        let number = self.inputs[packet.input.index()].number;
        let record = &mut self.outputs[port.index()];
        record.lanes[lane].bytes = queue.queued_bytes;
        record.lanes[lane].joined[usize::from(number)] += 1;
        let Some((_, input, to)) = self.joining.take() else {
            return;
        };
        if lane != NORMAL {
            let line = record.line(lane);
            let group = line.filter(|_| queue.queued_bytes >= self.propagation);
            if let Some(group) = group.map(|line| line.group.upstream_of(port)) {
                self.notify(now, input, group, Some(port));
            }
            return;
        }
        // An output without credits waits for another switch.
        if queue.queued_bytes >= self.detection && (record.to_host || queue.has_credit) {
            let group = match self.variant {
                Variant::Recn => Group::Path(vec![port]),
                Variant::Fbicm => Group::Destination(to),
            };
            self.notify(now, input, group, None);
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
        let Input { number, upstream } = self.inputs[packet.input.index()];
        let record = &mut self.outputs[port.index()].lanes[lane];
        record.bytes = queue.queued_bytes.saturating_sub(packet.wire_bytes);
        record.left[usize::from(number)] += 1;
        record.ahead += u64::from(packet.wire_bytes);
        if let Some(upstream) = upstream {
            let before = packet.vl.index();
            let ahead = &mut self.outputs[upstream.index()].lanes[before].ahead;
            *ahead = ahead.saturating_sub(u64::from(packet.wire_bytes));
            if *ahead == 0 && before != NORMAL {
                self.free(now, upstream, before);
            }
        }
        false
    }

    fn on_link(&mut self, _: Time, output: PortVl, packet: LinkView) {
        let (port, lane) = self.split(output);
        let output = &mut self.outputs[port.index()];
        // What leaves a switch is counted as it departs.
        if output.switch.is_none() {
            output.lanes[lane].ahead += u64::from(packet.wire_bytes);
        }
    }

    fn on_discarded(&mut self, _: Time, output: PortVl) {
        let (port, lane) = self.split(output);
        let record = &mut self.outputs[port.index()].lanes[lane];
        record.bytes = 0;
        record.left.clone_from(&record.joined);
    }
}

/// Nothing of it changes during a run.
impl Settings for SetAside {}
