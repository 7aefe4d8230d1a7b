use silvan_core::Time;

use crate::hooks::{PortVl, Settings, SwitchControl};

#[derive(Clone, Copy, Debug)]
pub struct Stamping;

impl SwitchControl for Stamping {
    fn watches_queues(&self) -> bool {
        false
    }

    fn needs_stamps(&self) -> bool {
        true
    }

    #[inline]
    fn stamps(&mut self, _: Time, _: PortVl) -> bool {
        true
    }
}

impl Settings for Stamping {}
