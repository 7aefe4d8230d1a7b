use std::cmp::Reverse;

use silvan_core::{HostId, PortId, Span, Time};

use super::super::inputs::Inputs;
use super::super::lines::{Group, Line, Sender};
use super::super::messages::Content;
use super::super::routes::Paths;
use super::super::{NORMAL, Variant};
use super::{Lane, SetAside};
use crate::hooks::PortMessage;

impl SetAside {
    pub(super) fn send(&mut self, now: Time, to: PortId, content: Content) {
        let message = content.message(now.saturating_add(self.message_delay), to);
        match &mut self.sent {
            Some(sent) => sent.push(message),
            None => self.expect(message),
        }
    }

    pub(super) fn expect(&mut self, message: PortMessage) {
        self.outputs[message.to.index()].expected.add(message);
        self.expecting.push(Reverse((message.arrives, message.to)));
        self.plan();
    }

    fn plan(&mut self) {
        let half = Span::from_ps(self.message_delay.as_ps() / 2);
        let first = self.expecting.peek().filter(|_| self.sent.is_none());
        self.receive_at = first.map_or(Time::MAX, |first| first.0.0.saturating_add(half));
    }

    #[cold]
    #[inline(never)]
    pub(in super::super) fn receive_all(&mut self, before: Time) {
        while let Some(&Reverse((arrives, port))) = self.expecting.peek() {
            if arrives >= before {
                break;
            }
            self.expecting.pop();
            self.receive(arrives, port);
        }
        self.plan();
    }

    #[inline(always)]
    pub(super) fn reach(&mut self, now: Time, port: PortId) {
        if now > self.receive_at {
            let half = self.message_delay.as_ps() / 2;
            self.receive_all(Time::from_ps(now.as_ps() - half));
        }
        if self.outputs[port.index()].expected.is_due(now) {
            self.receive(now, port);
        }
    }

    #[cold]
    #[inline(never)]
    fn receive(&mut self, now: Time, port: PortId) {
        while let Some(message) = self.outputs[port.index()].expected.receive(now) {
            let at = message.arrives;
            match Content::of(&message) {
                Some(Content::SetAside { sender, root }) => self.set_aside(at, port, sender, root),
                Some(Content::Freed(sender)) => {
                    let lane = usize::from(sender.lane);
                    let root = self.variant.root_of(sender.destination);
                    self.outputs[port.index()].cut(lane, root, sender.input);
                    self.free(at, port, lane);
                }
                Some(Content::FreeUnused(sender)) => {
                    let mut lines = self.outputs[port.index()].lines.iter();
                    let line = lines.find(|line| line.sender.is_same(&sender));
                    if let Some(lane) = line.map(|line| line.lane) {
                        self.free_unused(at, port, lane);
                    }
                }
                Some(Content::Emptied {
                    output,
                    lane,
                    packets,
                }) => {
                    let lane = usize::from(lane);
                    let mut lines = self.outputs[port.index()].lines.iter();
                    let line = lines.find(|line| line.lane == lane);
                    if line.is_some_and(|line| line.sender.output == output) {
                        self.lanes[port.index() * self.vls + lane].passed.gone = packets;
                        self.free(at, port, lane);
                    } else {
                        self.outputs[port.index()].passed(lane, output).gone = packets;
                    }
                }
                None => {}
            }
        }
    }

    pub(in super::super) fn notify(
        &mut self,
        now: Time,
        output: PortId,
        lane: usize,
        input: PortId,
        to: HostId,
    ) {
        let Some(upstream) = self.outputs[input.index()].peer else {
            return;
        };
        let record = &self.outputs[output.index()];
        let line = record.lines.iter().find(|line| line.lane == lane);
        let root = match line.map(|line| &line.group) {
            Some(Group::Path(path)) => path.last().copied(),
            _ => None,
        };
        let sender = Sender {
            output,
            lane: lane as u8,
            input: self.numbers[input.index()],
            destination: to,
        };
        let destination = self.variant.root_of(to);
        if self.outputs[output.index()].branch(lane, destination, sender.input) {
            let root = root.unwrap_or(output);
            self.send(now, upstream, Content::SetAside { sender, root });
        }
    }

    fn set_aside(&mut self, now: Time, port: PortId, sender: Sender, root: PortId) {
        let group = self.group(port, sender.destination, root);
        let group = group.filter(|group| !self.outputs[port.index()].has_line(group));
        let Some(group) = group else {
            self.send(now, sender.output, Content::Freed(sender));
            return;
        };
        let record = &mut self.outputs[port.index()];
        if record.free_lane(self.vls).is_none() && now >= record.check_at {
            record.check_at = now.saturating_add(self.message_delay);
            for lane in NORMAL + 1..self.vls {
                self.free_unused(now, port, lane);
            }
        }
        let is_for_one = self.variant == Variant::Fbicm || self.outputs[root.index()].to_host;
        let record = &mut self.outputs[port.index()];
        let Some(lane) = record.free_lane(self.vls) else {
            self.refused += 1;
            self.send(now, sender.output, Content::Freed(sender));
            return;
        };
        self.notifications += 1;
        let line = Line {
            group,
            only: is_for_one.then_some(sender.destination),
            lane,
            used: now,
            is_taken: false,
            sender,
            branches: Inputs::default(),
            seen: Inputs::default(),
        };
        self.lanes[port.index() * self.vls + lane].passed = *record.passed(lane, sender.output);
        match (line.only, &line.group) {
            (None, Group::Path(path)) => {
                let all = self.paths.destinations(path);
                record.add(line, self.hosts, all);
            }
            _ => record.add(line, self.hosts, std::iter::once(sender.destination)),
        }
    }

    /// Packets through a root on the path to this destination.
    fn group(&self, port: PortId, to: HostId, root: PortId) -> Option<Group> {
        if self.variant == Variant::Fbicm {
            return Some(Group::Destination(to));
        }
        let peer = |port: PortId| self.outputs[port.index()].peer;
        let path = self.paths.to_root(peer(port)?, to, root, peer)?;
        Some(Group::Path(path))
    }

    fn free(&mut self, now: Time, port: PortId, lane: usize) {
        let Lane { bytes, passed } = self.lanes[port.index() * self.vls + lane];
        let record = &mut self.outputs[port.index()];
        let Some(line) = record.line(lane) else {
            return;
        };
        let is_over = line.is_taken && passed.sent == passed.gone;
        let is_unused = now >= line.used.saturating_add(self.idle);
        if bytes > 0 || !line.branches.is_empty() || !(is_over || is_unused) {
            return;
        }
        let paths = &self.paths;
        let line = record.remove(lane, |group, to| fits(paths, group, to));
        if let Some(Line { sender, .. }) = line {
            *record.passed(lane, sender.output) = passed;
            self.send(now, sender.output, Content::Freed(sender));
        }
    }

    fn free_unused(&mut self, now: Time, port: PortId, lane: usize) {
        let record = &mut self.outputs[port.index()];
        let Some(line) = record.line(lane) else {
            return;
        };
        if now < line.used.saturating_add(self.idle) {
            return;
        }
        let (branches, destination) = (line.branches, line.sender.destination);
        for input in branches.iter() {
            let first = port.index() - usize::from(self.numbers[port.index()]);
            let upstream = self.outputs[first + usize::from(input)].peer;
            let sender = Sender {
                output: port,
                lane: lane as u8,
                input,
                destination,
            };
            if let Some(upstream) = upstream {
                self.send(now, upstream, Content::FreeUnused(sender));
            }
        }
        self.free(now, port, lane);
    }

    pub(super) fn notify_emptied(
        &mut self,
        now: Time,
        output: PortId,
        input: PortId,
        lane: u8,
        packets: u32,
    ) {
        if let Some(upstream) = self.outputs[input.index()].peer {
            let emptied = Content::Emptied {
                output,
                lane,
                packets,
            };
            self.send(now, upstream, emptied);
        }
    }
}

impl Variant {
    const fn root_of(self, destination: HostId) -> Option<HostId> {
        match self {
            Self::Recn => None,
            Self::Fbicm => Some(destination),
        }
    }
}

pub(super) fn fits(paths: &Paths, group: &Group, to: HostId) -> bool {
    match group {
        Group::Path(path) => paths.are_taken(path, to),
        Group::Destination(host) => *host == to,
    }
}
