//! Packet spraying: the packets of a host use all paths alternately.

use silvan_cc::hooks::{Flow, Settings, SourceControl};
use silvan_core::Time;

use super::PerFlow;

/// Packets sent, kept with the flow of each host to itself.
#[derive(Clone)]
pub struct Spraying(pub PerFlow<1>);

impl Settings for Spraying {}
impl SourceControl for Spraying {
    fn needs_select_path(&self) -> bool {
        true
    }
    fn select_path(&mut self, _: Time, flow: Flow) -> Option<u32> {
        let [sent] = &mut self.0[Flow {
            destination: flow.source,
            ..flow
        }];
        *sent += 1.0;
        Some(*sent as u32 - 1)
    }
}
