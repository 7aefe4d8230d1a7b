use silvan_core::{HostId, PortId, Time};

use super::super::expected::Expected;
use super::NORMAL;
use super::inputs::Inputs;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Packets whose path behind this output leads through these outputs, the last of which is the root.
    Path(Vec<PortId>),
    Destination(HostId),
}

impl Group {
    pub fn length(&self) -> usize {
        match self {
            Self::Path(path) => path.len(),
            Self::Destination(_) => 1,
        }
    }

    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Path(path), Self::Path(shorter)) => {
                shorter.len() < path.len() && path.starts_with(shorter)
            }
            _ => false,
        }
    }
}

/// Sender of a message upstream: a line of an output, or the output itself as a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sender {
    pub output: PortId,
    pub lane: u8,
    pub input: u8,
    pub destination: HostId,
}

impl Sender {
    pub fn is_same(&self, other: &Self) -> bool {
        (self.output, self.lane) == (other.output, other.lane)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Line {
    pub group: Group,
    pub only: Option<HostId>,
    pub lane: usize,
    pub used: Time,
    pub is_taken: bool,
    pub sender: Sender,
    pub branches: Inputs,
    pub seen: Inputs,
}

#[derive(Clone, Debug)]
struct Root {
    destination: Option<HostId>,
    branches: Inputs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    pub sent: u32,
    pub gone: u32,
}

#[derive(Clone, Debug)]
struct Hold {
    lane: usize,
    input: u8,
    before: usize,
    packets: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    waiting: u32,
    left: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Output {
    pub to_host: bool,
    pub peer: Option<PortId>,
    pub lines: Vec<Line>,
    pub chosen: Vec<u8>,
    pub version: u64,
    roots: Vec<Root>,
    holds: Vec<Hold>,
    /// Numbers of lanes and inputs, and packets by both; empty before the first packet.
    lanes: usize,
    inputs: usize,
    waiting: Vec<u32>,
    arrived: Vec<Arrived>,
    totals: Vec<(usize, PortId, Passed)>,
    pub expected: Expected,
    pub check_at: Time,
}

impl Output {
    pub fn new(to_host: bool, peer: Option<PortId>, lanes: usize, inputs: usize) -> Self {
        Self {
            to_host,
            peer,
            lines: Vec::new(),
            chosen: Vec::new(),
            version: 0,
            roots: Vec::new(),
            holds: Vec::new(),
            lanes,
            inputs,
            waiting: Vec::new(),
            arrived: Vec::new(),
            totals: Vec::new(),
            expected: Expected::new(),
            check_at: Time::ZERO,
        }
    }

    #[inline]
    pub fn lane_to(&self, to: HostId) -> usize {
        self.chosen
            .get(to.index())
            .map_or(NORMAL, |&lane| usize::from(lane))
    }

    pub fn line(&mut self, lane: usize) -> Option<&mut Line> {
        self.lines.iter_mut().find(|line| line.lane == lane)
    }

    pub fn has_line(&self, group: &Group) -> bool {
        self.lines.iter().any(|line| line.group == *group)
    }

    pub fn free_lane(&self, lanes: usize) -> Option<usize> {
        (NORMAL + 1..lanes).find(|&lane| self.lines.iter().all(|line| line.lane != lane))
    }

    pub fn branch(&mut self, lane: usize, destination: Option<HostId>, input: u8) -> bool {
        if let Some(line) = self.line(lane) {
            return line.branches.insert(input);
        }
        let mut roots = self.roots.iter_mut();
        if let Some(root) = roots.find(|root| root.destination == destination) {
            return root.branches.insert(input);
        }
        let mut branches = Inputs::default();
        branches.insert(input);
        self.roots.push(Root {
            destination,
            branches,
        });
        true
    }

    pub fn cut(&mut self, lane: usize, destination: Option<HostId>, input: u8) {
        if let Some(line) = self.line(lane) {
            line.branches.remove(input);
        } else if lane == NORMAL {
            self.roots.retain_mut(|root| {
                if root.destination == destination {
                    root.branches.remove(input);
                }
                !root.branches.is_empty()
            });
        }
    }

    pub fn passed(&mut self, lane: usize, to: PortId) -> &mut Passed {
        let known = (self.totals.iter()).position(|known| (known.0, known.1) == (lane, to));
        let place = known.unwrap_or_else(|| {
            self.totals.push((lane, to, Passed::default()));
            self.totals.len() - 1
        });
        &mut self.totals[place].2
    }

    #[inline]
    const fn place(&self, lane: usize, input: u8) -> usize {
        lane * self.inputs + input as usize
    }

    #[inline]
    pub fn join(&mut self, lane: usize, input: u8) {
        let place = self.place(lane, input);
        if self.waiting.is_empty() {
            self.waiting = vec![0; self.lanes * self.inputs];
        }
        self.waiting[place] += 1;
    }

    #[inline]
    pub fn arrive(&mut self, on: usize, input: u8) {
        let place = self.place(on, input);
        if self.arrived.is_empty() {
            self.arrived = vec![Arrived::default(); self.lanes * self.inputs];
        }
        self.arrived[place].waiting += 1;
    }

    pub fn depart(&mut self, on: usize, input: u8) -> Option<u32> {
        let place = self.place(on, input);
        let arrived = self.arrived.get_mut(place)?;
        arrived.waiting = arrived.waiting.saturating_sub(1);
        arrived.left = arrived.left.wrapping_add(1);
        (arrived.waiting == 0).then_some(arrived.left)
    }

    /// Removes a lane's packets; returns input, lane of arrival and packets that have left.
    pub fn discard(&mut self, lane: usize) -> Vec<(u8, u8, u32)> {
        self.holds
            .retain(|hold| hold.before != lane && hold.lane != lane);
        let Self {
            lanes,
            inputs,
            waiting,
            arrived,
            ..
        } = self;
        if let Some(waiting) = waiting.get_mut(lane * *inputs..(lane + 1) * *inputs) {
            waiting.fill(0);
        }
        let mut gone = Vec::new();
        for input in 0..*inputs {
            let places = || (0..*lanes).map(|lane| lane * *inputs + input);
            if places().any(|place| waiting.get(place).is_some_and(|&count| count > 0)) {
                continue;
            }
            for (lane, place) in places().enumerate() {
                if let Some(arrived) = arrived.get_mut(place).filter(|all| all.waiting > 0) {
                    arrived.left = arrived.left.wrapping_add(arrived.waiting);
                    arrived.waiting = 0;
                    gone.push((input as u8, lane as u8, arrived.left));
                }
            }
        }
        gone
    }

    /// Records a packet on the lane of a line, and holds it for the line's packets on other lanes.
    pub fn take(&mut self, now: Time, lane: usize, input: Option<u8>) {
        let Some(place) = self.lines.iter().position(|line| line.lane == lane) else {
            return;
        };
        let line = &mut self.lines[place];
        line.used = now;
        line.is_taken = true;
        let Some(input) = input.filter(|&input| line.seen.insert(input)) else {
            return;
        };
        let group = &self.lines[place].group;
        let shorter = self
            .lines
            .iter()
            .filter(|line| group.is_within(&line.group));
        let before = std::iter::once(NORMAL).chain(shorter.map(|line| line.lane));
        let holds = before.map(|before| Hold {
            lane,
            input,
            before,
            packets: self
                .waiting
                .get(self.place(before, input))
                .map_or(0, |&all| all),
        });
        let holds: Vec<_> = holds.filter(|hold| hold.packets > 0).collect();
        self.holds.extend(holds);
    }

    #[inline]
    pub fn is_held(&self, lane: usize, input: u8) -> bool {
        let mut holds = self.holds.iter();
        holds.any(|hold| hold.lane == lane && hold.input == input)
    }

    #[inline]
    pub fn leave(&mut self, lane: usize, input: u8) {
        let place = self.place(lane, input);
        if let Some(waiting) = self.waiting.get_mut(place) {
            *waiting = waiting.saturating_sub(1);
        }
        if self.holds.is_empty() {
            return;
        }
        self.holds.retain_mut(|hold| {
            if hold.before == lane && hold.input == input {
                hold.packets -= 1;
            }
            hold.packets > 0
        });
    }

    pub fn remove(&mut self, lane: usize, fits: impl Fn(&Group, HostId) -> bool) -> Option<Line> {
        let place = self.lines.iter().position(|line| line.lane == lane)?;
        let line = self.lines.remove(place);
        self.version += 1;
        self.holds.retain(|hold| hold.lane != lane);
        if self.lines.is_empty() {
            self.chosen = Vec::new();
            return Some(line);
        }
        let destinations = match line.only {
            Some(only) => only.index()..only.index() + 1,
            None => 0..self.chosen.len(),
        };
        for host in destinations {
            if usize::from(self.chosen[host]) == lane {
                let host = HostId::new(host);
                self.chosen[host.index()] = longest(&self.lines, |group| fits(group, host));
            }
        }
        Some(line)
    }

    pub fn add(&mut self, line: Line, hosts: usize, to: impl Iterator<Item = HostId>) {
        self.version += 1;
        self.chosen.resize(hosts, NORMAL as u8);
        let length = line.group.length();
        let longer = |lane: u8| {
            let mut lines = self.lines.iter();
            let other = lines.find(|other| other.lane == usize::from(lane));
            other.is_some_and(|other| other.group.length() > length)
        };
        for host in to {
            let chosen = &mut self.chosen[host.index()];
            if !longer(*chosen) {
                *chosen = line.lane as u8;
            }
        }
        self.lines.push(line);
    }

    pub fn choose_again(&mut self, fits: impl Fn(&Group, HostId) -> bool) {
        self.version += 1;
        for (host, chosen) in self.chosen.iter_mut().enumerate() {
            *chosen = longest(&self.lines, |group| fits(group, HostId::new(host)));
        }
    }
}

fn longest(lines: &[Line], fits: impl Fn(&Group) -> bool) -> u8 {
    let fitting = lines.iter().filter(|line| fits(&line.group));
    let longest = fitting.max_by_key(|line| line.group.length());
    longest.map_or(NORMAL, |line| line.lane) as u8
}
