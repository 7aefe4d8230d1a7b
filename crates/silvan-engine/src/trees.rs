//! Congestion trees, found in the state of the data plane at one instant. [`Forest`] has their definition.

mod grow;
mod waiting;

use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::Bytes;
use silvan_model::Forest;

use crate::engine::Engine;
use crate::partition::Whole;
use crate::plane::time;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Finds this instant's congestion trees, with roots of at least `threshold` waiting bytes.
    pub fn forest(&self, threshold: Bytes) -> Forest {
        self.whole().forest(self.now, threshold)
    }
}

impl Whole<'_> {
    pub(crate) fn forest(&self, now: u64, threshold: Bytes) -> Forest {
        let lanes = 0..self.any().lanes.len();
        Forest {
            at: time(now),
            trees: grow::trees(self, now, threshold),
            waiting: lanes
                .map(|lane| self.of_lane(lane).waiting_bytes(lane))
                .map(|bytes| Bytes::from_bytes(u64::from(bytes)))
                .sum(),
        }
    }
}
