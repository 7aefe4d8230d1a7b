//! What an output keeps: the bytes on its lanes, and the lines of its set-aside queues.

use std::collections::BTreeMap;

use silvan_core::{HostId, PortId, SwitchId, Time};

use super::NORMAL;

/// Which packets a line is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Those whose way behind this output goes by these outputs; the last one is the root.
    Path(Vec<PortId>),
    /// Those to a host.
    Destination(HostId),
}

impl Group {
    /// The same packets, as the outputs upstream of `output` see them.
    pub fn upstream_of(&self, output: PortId) -> Self {
        match self {
            Self::Path(path) => Self::Path([&[output], &path[..]].concat()),
            Self::Destination(host) => Self::Destination(*host),
        }
    }

    /// The same packets, as the output downstream sees them whose message made the line. `None` if that is the root.
    pub fn downstream(&self) -> Option<Self> {
        match self {
            Self::Path(path) => (path.len() > 1).then(|| Self::Path(path[1..].to_vec())),
            Self::Destination(host) => Some(Self::Destination(*host)),
        }
    }

    /// Outputs on the path to the root.
    pub fn length(&self) -> usize {
        match self {
            Self::Path(path) => path.len(),
            Self::Destination(_) => 1,
        }
    }

    /// Whether its packets are among those of another one, a shorter path.
    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Path(path), Self::Path(shorter)) => {
                shorter.len() < path.len() && path.starts_with(shorter)
            }
            _ => false,
        }
    }
}

/// A set-aside queue in use.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub group: Group,
    pub lane: usize,
    /// When the output knows of it.
    pub from: Time,
    /// When a packet took it last; `None` if none has.
    pub used: Option<Time>,
    /// The output downstream whose line sent the message; `None` if a root did.
    pub downstream: Option<PortId>,
    /// Lines upstream that its messages have made.
    pub branches: u16,
    /// By input, from its first packet on: the lanes on which its packets were before, and how many had joined them.
    pub before: BTreeMap<u8, Vec<(usize, u64)>>,
}

/// What waits for an output on a lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    pub bytes: u32,
    /// Bytes on the link and in the buffer at its end.
    pub ahead: u64,
    /// By input: packets that have come to wait, and those of them that do no longer. Empty at a host.
    pub joined: Vec<u64>,
    pub left: Vec<u64>,
}

/// A destination whose lane is not known.
const UNKNOWN: u8 = u8::MAX;

/// The lanes that a host has chosen, as long as nothing that they depend on changes: its lines, those that it knows of, and the
/// turns that switches have learned.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    /// By destination; empty if none is known.
    lanes: Vec<u8>,
    learned: u64,
    until: Time,
}

impl Chosen {
    pub fn lane(&self, now: Time, learned: u64, to: HostId) -> Option<usize> {
        let lane = *self.lanes.get(to.index())?;
        let holds = lane != UNKNOWN && learned == self.learned && now < self.until;
        holds.then_some(usize::from(lane))
    }

    /// Notes a lane that holds until an instant; nothing else that is known holds longer.
    pub fn note(&mut self, hosts: usize, learned: u64, until: Time, to: HostId, lane: usize) {
        if self.lanes.is_empty() || (learned, until) != (self.learned, self.until) {
            self.lanes.clear();
            self.lanes.resize(hosts, UNKNOWN);
            (self.learned, self.until) = (learned, until);
        }
        self.lanes[to.index()] = lane as u8;
    }

    pub fn invalidate(&mut self) {
        self.lanes.clear();
    }
}

/// What the packets that come in by a port have in common; apart from its output, of which most calls need nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    /// The place of its port among those of the switch, from 0.
    pub number: u8,
    /// The output at the other end of the cable that leads into this port, as soon as a packet has come by it.
    pub upstream: Option<PortId>,
}

/// An output of a switch or a host.
#[derive(Clone, Debug)]
pub(super) struct Output {
    /// Its switch; `None` at a host.
    pub switch: Option<SwitchId>,
    /// Whether its cable leads to a host.
    pub to_host: bool,
    pub lanes: Vec<Lane>,
    /// At most one for each lane besides lane 0.
    pub lines: Vec<Line>,
    /// Of a host.
    pub chosen: Chosen,
    /// When to look again for lines that are not used.
    pub check_at: Time,
}

impl Output {
    pub fn line(&self, lane: usize) -> Option<&Line> {
        self.lines.iter().find(|line| line.lane == lane)
    }

    pub fn lane_of(&self, group: &Group) -> Option<usize> {
        let line = self.lines.iter().find(|line| line.group == *group);
        line.map(|line| line.lane)
    }

    /// A lane without a line.
    pub fn free_lane(&self) -> Option<usize> {
        (NORMAL + 1..self.lanes.len()).find(|&lane| self.line(lane).is_none())
    }

    /// A packet takes the lane of a line; `input` is where it came from, unless this is a host.
    pub fn take(&mut self, now: Time, lane: usize, input: Option<u8>) {
        let Self { lanes, lines, .. } = self;
        let Some(place) = lines.iter().position(|line| line.lane == lane) else {
            return;
        };
        lines[place].used = Some(now);
        let Some(input) = input else { return };
        if lines[place].before.contains_key(&input) {
            return;
        }
        let joined = |lane: usize| (lane, lanes[lane].joined[usize::from(input)]);
        let group = &lines[place].group;
        let shorter = lines.iter().filter(|line| group.is_within(&line.group));
        let mut before = vec![joined(NORMAL)];
        before.extend(shorter.map(|line| joined(line.lane)));
        lines[place].before.insert(input, before);
    }

    /// Whether packets of a line that came before those on its lane wait on another one.
    pub fn holds(&mut self, lane: usize, input: u8) -> bool {
        let Self { lanes, lines, .. } = self;
        let line = lines.iter_mut().find(|line| line.lane == lane);
        let Some(before) = line.and_then(|line| line.before.get_mut(&input)) else {
            return false;
        };
        before.retain(|&(lane, joined)| lanes[lane].left[usize::from(input)] < joined);
        !before.is_empty()
    }
}
