use silvan_core::{PortId, Time, Vl};

use crate::hooks::{PacketView, PortVl, QueueView, Resident, SwitchControl};

/// Marks all packets of a full input buffer (santos2003, section IV-A, "naive"); spares those in other buffers.
#[derive(Clone, Copy, Debug, Default)]
pub struct NaiveMarking;

impl SwitchControl for NaiveMarking {
    #[inline]
    fn needs_buffer_full(&self) -> bool {
        true
    }

    #[inline]
    fn on_queued(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) {}

    #[inline]
    fn on_departure(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) -> bool {
        false
    }

    fn on_buffer_full<R: Resident>(&mut self, _: Time, input: PortId, vl: Vl, resident: &mut R) {
        resident.mark_input(input, vl);
    }
}
