//! Congestion trees, found in the state of the data plane at one instant. What they are is defined
//! where [`Forest`] is.

mod grow;

use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::Bytes;
use silvan_model::Forest;

use crate::engine::Engine;
use crate::plane::time;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Finds the congestion trees of this instant. A Port VL is a root only if at least `threshold`
    /// bytes, and at least one packet, wait for it.
    ///
    /// Reads every Port VL, and every packet that waits in a tree; changes nothing.
    pub fn forest(&self, threshold: Bytes) -> Forest {
        Forest {
            at: time(self.now),
            trees: grow::trees(&self.plane, self.now, threshold),
            waiting: (0..self.plane.lanes.len())
                .map(|lane| Bytes::from_bytes(u64::from(self.plane.waiting_bytes(lane))))
                .sum(),
        }
    }
}
