//! Priority-based flow control (PFC, IEEE 802.1Qbb) instead of credits.
//!
//! A receiver pauses its sender above `xoff` bytes and resumes it at `xon`, with effect after a constant delay: a
//! started frame, the pause frame, cable, interfaces and response. Wire bytes count from the first byte's arrival until
//! the tail leaves.
//!
//! A buffer's sender learns of departures at their start and replays the buffer's state of one delay before, without
//! events.

mod lanes;

use std::collections::VecDeque;

use silvan_fabric::Fabric;
use silvan_model::{BuildError, EngineConfig, PfcLimits};

use crate::plane::Plane;

const OPEN: i32 = 1 << 20;

#[derive(Clone, Copy, Debug)]
struct Link {
    xoff: i64,
    xon: i64,
    buffer: i64,
    /// From a change of the buffer to its effect at the sender, in ps.
    delay: u64,
    /// From the start of a packet to its effect at the sender.
    round_trip: u64,
    limits: PfcLimits,
}

#[derive(Clone, Copy, Debug)]
struct Change {
    due: u64,
    bytes: u32,
}

#[derive(Clone, Debug)]
struct Lane {
    next: u64,
    replayed: Replayed,
    entering: VecDeque<Change>,
    leaving: VecDeque<Change>,
    frames: u64,
    paused_since: u64,
    paused: u64,
    /// Effect time of the first packet without room, and overflow in bytes.
    lost: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Replayed {
    bytes: i64,
    paused: bool,
    entered: usize,
    left: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Pauses {
    links: Vec<Option<Link>>,
    lanes: Vec<Lane>,
    vls: usize,
    lost: Option<(u64, usize)>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PauseCounts {
    pub frames: u64,
    pub paused: u64,
}

impl Lane {
    const fn new() -> Self {
        Self {
            next: u64::MAX,
            replayed: Replayed {
                bytes: 0,
                paused: false,
                entered: 0,
                left: 0,
            },
            entering: VecDeque::new(),
            leaving: VecDeque::new(),
            frames: 0,
            paused_since: 0,
            paused: 0,
            lost: None,
        }
    }

    fn enter(&mut self, change: Change) {
        self.next = self.next.min(change.due);
        self.entering.push_back(change);
    }

    fn leave(&mut self, change: Change) {
        self.next = self.next.min(change.due);
        match self.leaving.back() {
            Some(last) if last.due > change.due => {
                let at = self
                    .leaving
                    .partition_point(|other| other.due <= change.due);
                self.leaving.insert(at, change);
            }
            _ => self.leaving.push_back(change),
        }
    }

    #[inline]
    fn step(&self, link: &Link, state: &mut Replayed, until: u64) -> Option<u64> {
        let entering = self.entering.get(state.entered).map(|change| change.due);
        let leaving = self.leaving.get(state.left).map(|change| change.due);
        let next = match (entering, leaving) {
            (Some(entering), Some(leaving)) => entering.min(leaving),
            (one, other) => one.or(other)?,
        };
        if next > until {
            return None;
        }
        while let Some(change) = self.leaving.get(state.left).filter(|it| it.due == next) {
            state.bytes -= i64::from(change.bytes);
            state.left += 1;
        }
        while let Some(change) = self.entering.get(state.entered).filter(|it| it.due == next) {
            state.bytes += i64::from(change.bytes);
            state.entered += 1;
        }
        if state.bytes > link.xoff {
            state.paused = true;
        } else if state.bytes <= link.xon {
            state.paused = false;
        }
        Some(next)
    }

    #[inline]
    fn advance(&mut self, link: &Link, until: u64) -> bool {
        self.next <= until && self.replay(link, until)
    }

    fn replay(&mut self, link: &Link, until: u64) -> bool {
        let mut state = self.replayed;
        let mut overflows = false;
        while let Some(at) = self.step(link, &mut state, until) {
            if state.bytes > link.buffer && self.lost.is_none() {
                self.lost = Some((at, (state.bytes - link.buffer) as u64));
                overflows = true;
            }
            if state.paused != self.replayed.paused {
                self.replayed.paused = state.paused;
                self.frames += 1;
                match state.paused {
                    true => self.paused_since = at,
                    false => self.paused += at - self.paused_since,
                }
            }
        }
        self.entering.drain(..state.entered);
        self.leaving.drain(..state.left);
        (state.entered, state.left) = (0, 0);
        self.replayed = state;
        let due = |changes: &VecDeque<Change>| changes.front().map_or(u64::MAX, |first| first.due);
        self.next = due(&self.entering).min(due(&self.leaving));
        overflows
    }

    /// Returns true if the lane is paused for a packet that starts now, and true if a packet was lost.
    #[inline]
    fn update(&mut self, link: &Link, now: u64) -> (bool, bool) {
        let mut lost = self.advance(link, now.saturating_sub(1));
        if self.replayed.paused {
            lost |= self.advance(link, now);
        }
        (self.replayed.paused, lost)
    }

    fn replayed_until(&self, link: &Link, until: u64) -> Replayed {
        let mut state = self.replayed;
        while self.step(link, &mut state, until).is_some() {}
        state
    }

    fn is_paused(&self, link: &Link, now: u64) -> bool {
        self.replayed_until(link, now.saturating_sub(1)).paused
            && self.replayed_until(link, now).paused
    }

    fn resumes(&self, link: &Link) -> Option<u64> {
        let mut state = self.replayed;
        if !state.paused {
            return None;
        }
        while let Some(at) = self.step(link, &mut state, u64::MAX) {
            if !state.paused {
                return Some(at);
            }
        }
        None
    }

    fn lost_until(&self, link: &Link, until: u64) -> Option<(u64, u64)> {
        let mut state = self.replayed;
        let mut lost = self.lost;
        while lost.is_none() {
            let at = self.step(link, &mut state, until)?;
            lost = (state.bytes > link.buffer).then(|| (at, (state.bytes - link.buffer) as u64));
        }
        lost
    }

    fn counts(&self, link: &Link, now: u64) -> PauseCounts {
        let (mut frames, mut total, mut since) = (self.frames, self.paused, self.paused_since);
        let mut state = self.replayed;
        loop {
            let paused = state.paused;
            let Some(at) = self.step(link, &mut state, now.saturating_sub(1)) else {
                break;
            };
            if state.paused != paused {
                frames += 1;
                match state.paused {
                    true => since = at,
                    false => total += at - since,
                }
            }
        }
        if state.paused {
            total += now.saturating_sub(since);
        }
        PauseCounts {
            frames,
            paused: total,
        }
    }

    fn outstanding(&self) -> i64 {
        let sum = |changes: &VecDeque<Change>| {
            let bytes = changes.iter().map(|change| i64::from(change.bytes));
            bytes.sum::<i64>()
        };
        self.replayed.bytes + sum(&self.entering) - sum(&self.leaving)
    }
}

impl Pauses {
    pub fn new(
        plane: &Plane,
        fabric: &Fabric,
        config: &EngineConfig,
    ) -> Result<Option<Box<Self>>, BuildError> {
        if config.pfc.is_none() {
            return Ok(None);
        }
        let mut links = vec![None; plane.outs.len()];
        for link in &fabric.links {
            let Some(limits) = config.pfc_limits(link)? else {
                continue;
            };
            let delay = limits.delay.as_ps();
            let bytes = |bytes: silvan_core::Bytes| bytes.as_u64() as i64;
            for port in [link.a, link.b] {
                links[plane.link_port(port)] = Some(Link {
                    xoff: bytes(limits.xoff),
                    xon: bytes(limits.xon),
                    buffer: bytes(limits.buffer),
                    delay,
                    round_trip: delay + link.propagation().as_ps(),
                    limits,
                });
            }
        }
        Ok(Some(Box::new(Self {
            lanes: vec![Lane::new(); plane.lanes.len()],
            links,
            vls: plane.vls,
            lost: None,
        })))
    }

    fn link(&self, lane: usize) -> Option<&Link> {
        self.links[lane / self.vls].as_ref()
    }

    fn lane(&self, lane: usize) -> Option<(&Link, &Lane)> {
        Some((self.link(lane)?, &self.lanes[lane]))
    }

    #[cold]
    fn note_loss(&mut self, lane: usize) {
        if let (None, Some((at, _))) = (self.lost, self.lanes[lane].lost) {
            self.lost = Some((at, lane));
        }
    }

    pub fn bytes(&self) -> usize {
        let changes = |lane: &Lane| lane.entering.capacity() + lane.leaving.capacity();
        let changes: usize = self.lanes.iter().map(changes).sum();
        self.lanes.capacity() * size_of::<Lane>()
            + self.links.capacity() * size_of::<Option<Link>>()
            + changes * size_of::<Change>()
    }
}
