//! Sources with one destination: flows, permutations and incasts.

use silvan_cc::workload::{Gate, Offer};
use silvan_core::{HostId, Sl, Time};

use crate::traffic::arrivals::Arrivals;
use crate::traffic::on_off::OnOff;
use crate::traffic::pace::Pace;
use crate::traffic::spec::Window;

/// Messages of a [`Fixed`] source, and their times.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) dst: HostId,
    pub(crate) sl: Sl,
    pub(crate) class: u16,
    /// Payload bytes of a message.
    pub(crate) message: u32,
    /// Largest payload of a packet in bytes.
    pub(crate) mtu: u32,
    pub(crate) window: Window,
}

/// A source of a host with one destination.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    /// Bytes of the current message still to send; 0: there is none.
    left: u32,
    /// Bytes not yet made into messages; a source without end starts with more than any run sends.
    remaining: u64,
    /// Earliest instant at which congestion control lets the flow send, as it last said.
    release: Time,
    /// Arrivals; `None`: there always is a message.
    pace: Option<Box<Pace>>,
    /// Times on and off; `None` is always on.
    on_off: Option<Box<OnOff>>,
    plan: Plan,
}

impl Fixed {
    /// `bytes` is how much to send in all, `None` without end.
    pub(crate) fn new(
        plan: Plan,
        bytes: Option<u64>,
        pace: Option<Pace>,
        on_off: Option<OnOff>,
    ) -> Self {
        Self {
            left: 0,
            remaining: bytes.unwrap_or(u64::MAX),
            release: Time::ZERO,
            pace: pace.map(Box::new),
            on_off: on_off.map(Box::new),
            plan,
        }
    }

    /// Returns `Ok` if [`emit`](Self::emit) has a packet to start now, else the earliest instant at
    /// which it may have a packet.
    #[inline]
    pub(crate) fn ready<G: Gate>(&mut self, now: Time, gate: &mut G) -> Result<(), Time> {
        if self.left == 0 {
            if let Some(on_off) = &mut self.on_off {
                on_off.advance(now)?;
                if on_off.take_start() {
                    gate.begin(self.plan.dst, self.plan.sl);
                    self.release = Time::ZERO;
                }
            }
            self.next_message_at(now)?;
        }
        if self.release <= now {
            self.release = gate.release(self.plan.dst, self.plan.sl);
        }
        if self.release > now {
            return Err(self.release);
        }
        let bytes = self.next_left().min(self.plan.mtu);
        if gate.lane_open(self.plan.sl, bytes) {
            Ok(())
        } else {
            Err(Time::MAX)
        }
    }

    /// The next packet. Only after [`ready`](Self::ready) said so.
    #[inline]
    pub(crate) fn emit(&mut self) -> Offer {
        let left = self.next_left();
        if self.left == 0 {
            self.remaining -= u64::from(left);
            if let Some(pace) = &mut self.pace {
                pace.advance();
            }
        }
        let bytes = left.min(self.plan.mtu);
        self.left = left - bytes;
        Offer {
            dst: self.plan.dst,
            bytes,
            sl: self.plan.sl,
            class: self.plan.class,
            last: self.left == 0,
            behind: match self.pace {
                // The next messages have not arrived.
                Some(_) => self.left,
                None => Offer::cut_off(self.remaining.saturating_add(u64::from(self.left))),
            },
        }
    }

    /// Bytes to send of the current message, or of the next one if there is none.
    fn next_left(&self) -> u32 {
        if self.left > 0 {
            self.left
        } else {
            u64::from(self.plan.message).min(self.remaining) as u32
        }
    }

    pub(crate) fn class(&self) -> u16 {
        self.plan.class
    }

    /// Payload of a message, and the largest payload of a packet, in bytes.
    pub(crate) fn message_and_mtu(&self) -> (u32, u32) {
        (self.plan.message, self.plan.mtu)
    }

    /// The receiver.
    pub(crate) fn destination(&self) -> HostId {
        self.plan.dst
    }

    /// Returns the arrivals in a time, see
    /// [`Traffic::arrivals`](crate::traffic::Traffic::arrivals).
    pub(crate) fn arrivals(&self, from: Time, to: Time) -> Option<Arrivals> {
        let pace = self.pace.as_ref()?;
        let to = to.min(self.plan.window.end.unwrap_or(Time::MAX));
        let message = u64::from(self.plan.message);
        Some(Arrivals::of_pace(pace, (from, to), message, self.remaining))
    }

    /// Returns the time in which the source may send.
    pub(crate) fn window(&self) -> Window {
        self.plan.window
    }

    /// Bytes not yet made into messages; `u64::MAX` if there is no end.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.remaining
    }

    /// The first instant at which it may send.
    pub(crate) fn start(&self) -> Time {
        self.plan.window.start
    }

    /// Goes on after a stop: messages that would have come meanwhile do not.
    pub(crate) fn resume(&mut self, now: Time) {
        if let Some(pace) = &mut self.pace {
            pace.skip_to(now);
        }
    }

    /// Congestion control may let the flow send earlier than it said.
    pub(crate) fn invalidate_releases(&mut self) {
        self.release = Time::ZERO;
    }

    /// Returns `Ok` if a message is ready now, else the time of the next message.
    fn next_message_at(&self, now: Time) -> Result<(), Time> {
        let Window { start, end } = self.plan.window;
        let end = end.unwrap_or(Time::MAX);
        if self.remaining == 0 || now >= end {
            return Err(Time::MAX);
        }
        let due = match &self.pace {
            Some(pace) if pace.ready(now) => return Ok(()),
            Some(pace) => pace.due(),
            None if now >= start => return Ok(()),
            None => start,
        };
        Err(if due < end { due } else { Time::MAX })
    }
}
