//! Sources with changing destinations: V, C and B nodes and uniform entries.

use silvan_cc::workload::{Gate, Offer};
use silvan_core::{HostId, Sl, Time};

use crate::traffic::arrivals::Arrivals;
use crate::traffic::hotspots::HotspotTable;
use crate::traffic::parking::Kind;
use crate::traffic::spec::Window;
use crate::traffic::supply::{Spread, Supply};

#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) hosts: u32,
    pub(crate) loopback: bool,
    pub(crate) message: u32,
    pub(crate) mtu: u32,
    pub(crate) sl: Sl,
    pub(crate) backlog: u16,
    pub(crate) window: Window,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Classes {
    pub(crate) uniform: u16,
    pub(crate) hot: u16,
}

#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    classes: Classes,
    common: u32,
    start: Time,
    spread: Spread,
    supply: Supply,
}

impl Scatter {
    pub(crate) fn common<'a>(&self, commons: &'a [Common]) -> &'a Common {
        &commons[self.common as usize]
    }

    pub(crate) fn new(
        common: u32,
        classes: Classes,
        start: Time,
        spread: Spread,
        supply: Supply,
    ) -> Self {
        Self {
            classes,
            common,
            start,
            spread,
            supply,
        }
    }

    #[inline]
    pub(crate) fn ready<G: Gate>(
        &mut self,
        now: Time,
        commons: &[Common],
        hotspots: &mut HotspotTable,
        gate: &mut G,
    ) -> Result<(), Time> {
        let common = &commons[self.common as usize];
        let Spread {
            current, parking, ..
        } = &mut self.spread;
        if current.left > 0 {
            let release = gate.release(current.dst, common.sl);
            if release <= now {
                return lane_open(current.left, common, gate);
            }
            parking.hold_started(*current, release);
            current.left = 0;
        }
        if parking.next_release() <= now {
            let released = parking.take_released(now, common.message, common.sl, gate);
            if let Some(message) = released {
                *current = message;
                return lane_open(message.left, common, gate);
            }
        }
        // Before a draw, so that lack of credits does not fill the queues.
        lane_open(common.message, common, gate)?;
        self.draw(now, common, hotspots, gate)
    }

    #[inline]
    pub(crate) fn emit(&mut self, commons: &[Common]) -> Offer {
        let common = &commons[self.common as usize];
        let current = &mut self.spread.current;
        let bytes = current.left.min(common.mtu);
        current.left -= bytes;
        Offer {
            dst: current.dst,
            bytes,
            sl: common.sl,
            class: match current.kind {
                Kind::Uniform => self.classes.uniform,
                Kind::Hot => self.classes.hot,
            },
            last: current.left == 0,
            behind: current.left,
            number: 0,
            queue: 0,
        }
    }

    pub(crate) fn has_class(&self, class: u16) -> bool {
        self.classes.uniform == class || self.classes.hot == class
    }

    pub(crate) fn arrivals(&self, commons: &[Common], from: Time, to: Time) -> Option<Arrivals> {
        let common = &commons[self.common as usize];
        let to = to.min(common.window.end.unwrap_or(Time::MAX));
        match &self.supply {
            Supply::Paced(pace) => {
                let message = u64::from(common.message);
                Some(Arrivals::of_pace(pace, (from, to), message, u64::MAX))
            }
            Supply::Uniform | Supply::Hot { .. } | Supply::Mixed(_) => None,
        }
    }

    pub(crate) fn resume(&mut self, now: Time) {
        if let Supply::Paced(pace) = &mut self.supply {
            pace.skip_to(now);
        }
    }

    pub(crate) fn invalidate_releases(&mut self) {
        self.spread.parking.invalidate_releases();
    }

    pub(crate) fn invalidate_releases_to(&mut self, dst: HostId) {
        self.spread.parking.invalidate_releases_to(dst);
    }

    pub(crate) fn invalidate_lanes(&mut self) {
        self.spread.parking.invalidate_lanes();
    }

    #[inline]
    fn draw<G: Gate>(
        &mut self,
        now: Time,
        common: &Common,
        hotspots: &mut HotspotTable,
        gate: &mut G,
    ) -> Result<(), Time> {
        let wait = if now < self.start {
            self.start
        } else if common.window.end.is_some_and(|end| now >= end) {
            Time::MAX
        } else {
            match self
                .supply
                .draw(&mut self.spread, now, common, hotspots, gate)
            {
                Ok(()) => return Ok(()),
                Err(wait) => wait,
            }
        };
        Err(wait.min(self.spread.parking.next_release()))
    }
}

/// Credits for the next packet of a message with `left` bytes; the engine polls again when credits come.
#[inline]
fn lane_open<G: Gate>(left: u32, common: &Common, gate: &mut G) -> Result<(), Time> {
    if gate.lane_open(common.sl, left.min(common.mtu)) {
        Ok(())
    } else {
        Err(Time::MAX)
    }
}
