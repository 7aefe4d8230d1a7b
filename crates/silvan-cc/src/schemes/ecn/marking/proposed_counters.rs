use silvan_core::{PortId, Time, Vl};

use crate::hooks::{PacketView, PortVl, QueueView, Resident, SwitchControl};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    waiting: u32,
    /// cnt2: number of the next packets that are marked.
    to_mark: u32,
}

/// santos2003, section IV-A, without a scan.
///
/// Each output counts its waiting packets (cnt1). A full input buffer copies cnt1 to cnt2 at the outputs of its
/// packets; each packet sent is marked while cnt2 lasts. Overtaking packets may be marked, so the source learns
/// earlier.
///
/// An output can also trigger marking by its waiting packets (Santos, Turner and Janakiraman, "Evaluation of Congestion
/// Detection Mechanisms for InfiniBand Switches", Globecom 2002).
#[derive(Clone, Debug)]
pub struct ProposedCounters {
    counters: Vec<Counters>,
    data_vls: u32,
    by_input: bool,
    /// Waiting packets from which on an output triggers marking; 0 for never.
    output_threshold: u32,
}

impl ProposedCounters {
    /// Zero at every Port VL of a fabric of that many ports with that many data virtual lanes.
    pub fn new(ports: usize, data_vls: u8) -> Self {
        Self {
            counters: vec![Counters::default(); ports * usize::from(data_vls)],
            data_vls: u32::from(data_vls),
            by_input: true,
            output_threshold: 0,
        }
    }

    /// Triggers marking also at an output for which the number of waiting packets reaches `threshold`, at least 1.
    #[must_use]
    pub fn with_output_trigger(mut self, threshold: u32) -> Self {
        self.output_threshold = threshold;
        self
    }

    /// Triggers no marking at full input buffers.
    #[must_use]
    pub fn without_input_trigger(mut self) -> Self {
        self.by_input = false;
        self
    }

    /// cnt1 of an output: packets that wait for it.
    pub fn cnt1(&self, output: PortVl) -> u32 {
        self.counters[output.0 as usize].waiting
    }

    /// cnt2 of an output: how many of the next packets that it sends are marked.
    pub fn cnt2(&self, output: PortVl) -> u32 {
        self.counters[output.0 as usize].to_mark
    }
}

impl SwitchControl for ProposedCounters {
    #[inline]
    fn needs_buffer_full(&self) -> bool {
        self.by_input
    }

    #[inline]
    fn on_queued(&mut self, _: Time, output: PortVl, _: QueueView, _: PacketView) {
        let counters = &mut self.counters[output.0 as usize];
        counters.waiting += 1;
        if counters.waiting == self.output_threshold {
            counters.to_mark = counters.waiting;
        }
    }

    #[inline]
    fn on_departure(&mut self, _: Time, output: PortVl, _: QueueView, _: PacketView) -> bool {
        let counters = &mut self.counters[output.0 as usize];
        counters.waiting = counters.waiting.saturating_sub(1);
        let mark = counters.to_mark > 0;
        counters.to_mark -= u32::from(mark);
        mark
    }

    fn on_discarded(&mut self, _: Time, output: PortVl) {
        self.counters[output.0 as usize] = Counters::default();
    }

    fn on_buffer_full<R: Resident>(&mut self, _: Time, input: PortId, vl: Vl, resident: &mut R) {
        resident.outputs_of(input, vl, &mut |output| {
            let index = output.index() * self.data_vls as usize + vl.index();
            let counters = &mut self.counters[index];
            counters.to_mark = counters.waiting;
        });
    }
}
