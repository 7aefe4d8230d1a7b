use silvan_cc::workload::{Gate, Offer};
use silvan_core::{HostId, Sl, Time};

use crate::traffic::arrivals::Arrivals;
use crate::traffic::on_off::OnOff;
use crate::traffic::pace::Pace;
use crate::traffic::spec::Window;

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) dst: HostId,
    pub(crate) sl: Sl,
    pub(crate) class: u16,
    pub(crate) message: u32,
    pub(crate) mtu: u32,
    pub(crate) window: Window,
}

#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    /// Unsent bytes of the message; 0 without one.
    left: u32,
    /// Bytes without a message yet; without end, more than any run sends.
    remaining: u64,
    release: Time,
    pace: Option<Box<Pace>>,
    on_off: Option<Box<OnOff>>,
    plan: Plan,
}

impl Fixed {
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
                Some(_) => self.left,
                None => Offer::cut_off(self.remaining.saturating_add(u64::from(self.left))),
            },
            number: 0,
            queue: 0,
        }
    }

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

    pub(crate) fn message_and_mtu(&self) -> (u32, u32) {
        (self.plan.message, self.plan.mtu)
    }

    pub(crate) fn destination(&self) -> HostId {
        self.plan.dst
    }

    pub(crate) fn arrivals(&self, from: Time, to: Time) -> Option<Arrivals> {
        let pace = self.pace.as_ref()?;
        let to = to.min(self.plan.window.end.unwrap_or(Time::MAX));
        let message = u64::from(self.plan.message);
        Some(Arrivals::of_pace(pace, (from, to), message, self.remaining))
    }

    pub(crate) fn window(&self) -> Window {
        self.plan.window
    }

    /// `u64::MAX` without end.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.remaining
    }

    pub(crate) fn start(&self) -> Time {
        self.plan.window.start
    }

    pub(crate) fn resume(&mut self, now: Time) {
        if let Some(pace) = &mut self.pace {
            pace.skip_to(now);
        }
    }

    pub(crate) fn invalidate_releases(&mut self) {
        self.release = Time::ZERO;
    }

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
