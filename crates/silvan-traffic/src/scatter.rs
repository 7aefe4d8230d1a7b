//! Sources whose destination changes from message to message: V, C and B nodes and uniform
//! entries.
//!
//! A poll goes through three steps and takes the first packet it finds:
//!
//! 1. the message in progress, unless its queue pair got throttled: then its rest is held back;
//! 2. messages held back on queue pairs that are released;
//! 3. a new message. A drawn destination that is throttled takes the message into its queue,
//!    and another is drawn.

use silvan_engine::workload::{Gate, Offer};
use silvan_units::{HostId, Sl, Time};

use crate::hotspots::HotspotTable;
use crate::parking::{Kind, Message};
use crate::spec::Window;
use crate::supply::{Spread, Supply};

/// What the sources of one entry have in common.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    /// Number of hosts of the fabric.
    pub(crate) hosts: u32,
    /// Payload bytes of a message.
    pub(crate) message: u32,
    /// Largest payload of a packet in bytes.
    pub(crate) mtu: u32,
    pub(crate) sl: Sl,
    /// Messages that one throttled queue pair holds.
    pub(crate) backlog: u16,
    pub(crate) window: Window,
}

/// The statistics classes of a source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Classes {
    pub(crate) uniform: u16,
    pub(crate) hot: u16,
}

/// One source of one host.
#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    current: Message,
    classes: Classes,
    /// Index of the [`Common`] of its entry.
    common: u32,
    spread: Spread,
    supply: Supply,
}

impl Scatter {
    pub(crate) fn new(common: u32, classes: Classes, spread: Spread, supply: Supply) -> Self {
        Self {
            current: Message {
                dst: HostId::new(0),
                left: 0,
                kind: Kind::Uniform,
            },
            classes,
            common,
            spread,
            supply,
        }
    }

    /// The next packet, or the earliest instant at which there may be one. `commons` are those of
    /// all entries.
    #[inline]
    pub(crate) fn poll<G: Gate>(
        &mut self,
        now: Time,
        commons: &[Common],
        hotspots: &mut HotspotTable,
        gate: &mut G,
    ) -> Result<Offer, Time> {
        let common = &commons[self.common as usize];
        let parking = &mut self.spread.parking;
        if self.current.left > 0 {
            let release = gate.release(self.current.dst, common.sl);
            if release <= now {
                return self.send(common, gate);
            }
            parking.hold_started(self.current, release);
            self.current.left = 0;
        }
        if parking.next_release() <= now {
            let released =
                parking.take_released(now, common.message, |dst| gate.release(dst, common.sl));
            if let Some(message) = released {
                self.current = message;
                return self.send(common, gate);
            }
        }
        // Before a destination is drawn, so that want of credits does not fill the queues.
        if !gate.lane_open(common.sl, common.message.min(common.mtu)) {
            return Err(Time::MAX);
        }
        self.current = self.draw(now, common, hotspots, gate)?;
        Ok(self.emit(common))
    }

    /// Congestion control may let some flow send earlier than it said.
    pub(crate) fn forget_releases(&mut self) {
        self.spread.parking.forget_releases();
    }

    /// A new message that can start now, or the earliest instant at which there may be a packet.
    #[inline]
    fn draw<G: Gate>(
        &mut self,
        now: Time,
        common: &Common,
        hotspots: &mut HotspotTable,
        gate: &mut G,
    ) -> Result<Message, Time> {
        let wait = if now < common.window.start {
            common.window.start
        } else if common.window.end.is_some_and(|end| now >= end) {
            Time::MAX
        } else {
            match self
                .supply
                .draw(&mut self.spread, now, common, hotspots, gate)
            {
                Ok(message) => return Ok(message),
                Err(wait) => wait,
            }
        };
        Err(wait.min(self.spread.parking.next_release()))
    }

    /// The next packet of the current message, which congestion control lets pass.
    fn send<G: Gate>(&mut self, common: &Common, gate: &mut G) -> Result<Offer, Time> {
        if gate.lane_open(common.sl, self.current.left.min(common.mtu)) {
            Ok(self.emit(common))
        } else {
            Err(Time::MAX)
        }
    }

    #[inline]
    fn emit(&mut self, common: &Common) -> Offer {
        let bytes = self.current.left.min(common.mtu);
        self.current.left -= bytes;
        Offer {
            dst: self.current.dst,
            bytes,
            sl: common.sl,
            class: match self.current.kind {
                Kind::Uniform => self.classes.uniform,
                Kind::Hot => self.classes.hot,
            },
            last: self.current.left == 0,
        }
    }
}
