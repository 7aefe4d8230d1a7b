//! Open-loop messages in a time, independent of delivery.

use silvan_core::{Bytes, Time};

use crate::traffic::hosts::{Source, Traffic};
use crate::traffic::pace::Pace;

/// Messages or flows that arrive at their senders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Number of messages or flows.
    pub count: u64,
    /// Payload of the messages.
    pub bytes: Bytes,
}

impl Arrivals {
    /// Messages of `message` bytes, `most` bytes in total.
    pub(crate) fn of_pace(pace: &Pace, (from, to): (Time, Time), message: u64, most: u64) -> Self {
        let (mut pace, mut left) = (pace.clone(), most);
        let mut arrivals = Self::default();
        while left > 0 && pace.due() < to {
            let bytes = message.min(left);
            left -= bytes;
            if pace.due() >= from {
                arrivals.count += 1;
                arrivals.bytes += Bytes::from_bytes(bytes);
            }
            pace.advance();
        }
        arrivals
    }

    fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl Traffic {
    /// Returns the arrivals at the sources of each class from `from` on and before `to`, for traffic whose run has not
    /// begun.
    ///
    /// They depend only on the description of the traffic and the seed. `None` means a class with sources that make
    /// messages when they can send them: saturating or in a closed loop.
    pub fn arrivals(&self, from: Time, to: Time) -> Vec<Option<Arrivals>> {
        let mut all = vec![Some(Arrivals::default()); self.classes.len()];
        for source in &self.sources {
            let of_source = match source {
                Source::Scatter(scatter) => scatter.arrivals(&self.commons, from, to),
                Source::Fixed(fixed) => fixed.arrivals(from, to),
                Source::ClosedLoop(_) => None,
                Source::Flows(flows) => flows.arrivals(from, to),
            };
            for (class, sum) in all.iter_mut().enumerate() {
                if source.has_class(class as u16) {
                    *sum = sum.zip(of_source).map(|(sum, more)| sum.and(more));
                }
            }
        }
        all
    }

    /// The payload that the sources of each class offer from `from` on and before `to` [bytes]: their mean rates, by
    /// definition of the traffic.
    pub fn offered_bytes(&self, from: Time, to: Time) -> Vec<f64> {
        let mut all = vec![0.0; self.classes.len()];
        for (source, bits) in self.sources.iter().zip(self.offered.bits(from, to)) {
            let class = (0..all.len()).find(|&class| source.has_class(class as u16));
            if let Some(sum) = class.and_then(|class| all.get_mut(class)) {
                *sum += bits / 8.0;
            }
        }
        all
    }
}
