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
    /// Arrivals of each class in `from..to`, by description and seed; `None` for saturating or closed-loop sources.
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

    /// Payload that each class offers in `from..to` by mean rates [bytes].
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
