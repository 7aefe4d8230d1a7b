use silvan_core::{PortId, Time, Vl};

use crate::hooks::{PacketView, PortVl, QueueView, Resident, SwitchControl};

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    waiting: u32,
    found_sending: Option<Time>,
    /// cnt2: number of the next packets that are marked.
    to_mark: u32,
}

#[derive(Clone, Copy, Debug)]
struct Started {
    input: PortId,
    vl: Vl,
    output: PortVl,
}

/// The counters of santos2003, section IV-A: a packet counts until its tail has left.
#[derive(Clone, Debug)]
pub struct ResidentCounters {
    counters: Vec<Counters>,
    started: Vec<Option<Started>>,
    data_vls: usize,
}

impl ResidentCounters {
    /// Zero at every Port VL of a fabric of that many ports with that many data virtual lanes.
    pub fn new(ports: usize, data_vls: u8) -> Self {
        Self {
            counters: vec![Counters::default(); ports * usize::from(data_vls)],
            started: vec![None; ports],
            data_vls: usize::from(data_vls),
        }
    }

    /// cnt2 of an output: how many of the next packets that it sends are marked.
    pub fn cnt2(&self, output: PortVl) -> u32 {
        self.counters[output.0 as usize].to_mark
    }
}

impl SwitchControl for ResidentCounters {
    #[inline]
    fn needs_buffer_full(&self) -> bool {
        true
    }

    #[inline]
    fn on_queued(&mut self, _: Time, output: PortVl, _: QueueView, _: PacketView) {
        self.counters[output.0 as usize].waiting += 1;
    }

    #[inline]
    fn on_departure(&mut self, _: Time, output: PortVl, _: QueueView, packet: PacketView) -> bool {
        self.started[output.0 as usize / self.data_vls] = Some(Started {
            input: packet.input,
            vl: packet.vl,
            output,
        });
        let counters = &mut self.counters[output.0 as usize];
        counters.waiting = counters.waiting.saturating_sub(1);
        let mark = counters.to_mark > 0;
        counters.to_mark -= u32::from(mark);
        mark
    }

    fn on_discarded(&mut self, _: Time, output: PortVl) {
        self.counters[output.0 as usize] = Counters::default();
    }

    fn on_buffer_full<R: Resident>(&mut self, now: Time, input: PortId, vl: Vl, resident: &mut R) {
        let Self {
            counters,
            started,
            data_vls,
        } = self;
        resident.sending_outputs(input, &mut |output| {
            let Some(packet) = started[output.index()] else {
                return;
            };
            let counters = &mut counters[packet.output.0 as usize];
            counters.found_sending = Some(now);
            if (packet.input, packet.vl) == (input, vl) {
                counters.to_mark = counters.waiting + 1;
            }
        });
        resident.outputs_of(input, vl, &mut |output| {
            let counters = &mut counters[output.index() * *data_vls + vl.index()];
            let sending = counters.found_sending == Some(now);
            counters.to_mark = counters.waiting + u32::from(sending);
        });
    }
}
