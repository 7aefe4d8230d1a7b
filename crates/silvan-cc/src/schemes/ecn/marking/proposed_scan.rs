use silvan_core::{PortId, Time, Vl};

use crate::hooks::{PacketView, PortVl, QueueView, Resident, SwitchControl};

/// Marks all packets for the outputs of a full input buffer's packets (santos2003, section IV-A, the three steps).
#[derive(Clone, Copy, Debug, Default)]
pub struct ProposedScan;

const BATCH: usize = 32;

impl SwitchControl for ProposedScan {
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
        // Outputs are noted first, in batches: marking needs the packets exclusively, and the hot loop must not
        // allocate.
        let mut done = 0;
        loop {
            let mut outputs = [input; BATCH];
            let mut seen = 0;
            resident.outputs_of(input, vl, &mut |output| {
                if (done..done + BATCH).contains(&seen) {
                    outputs[seen - done] = output;
                }
                seen += 1;
            });
            for &output in &outputs[..(seen - done).min(BATCH)] {
                resident.mark_output(output, vl);
            }
            done += BATCH;
            if done >= seen {
                return;
            }
        }
    }
}
