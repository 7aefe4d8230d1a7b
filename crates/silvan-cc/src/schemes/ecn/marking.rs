use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{PortId, Time, Vl};

use crate::hooks::{
    PacketView, PortVl, QueueView, Resident, SettingChange, Settings, SwitchControl, UnknownSetting,
};

mod naive;
mod proposed_counters;
mod proposed_scan;
mod resident_counters;

pub use naive::NaiveMarking;
pub use proposed_counters::ProposedCounters;
pub use proposed_scan::ProposedScan;
pub use resident_counters::ResidentCounters;

/// Selection of packets to mark as an input buffer becomes full (santos2003, section IV-A), or as packets wait for an output
/// (Santos, Turner and Janakiraman, Globecom 2002).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Marking {
    /// Packets in the full buffer.
    Naive,
    /// All in the switch that wait for an output that the full buffer has a packet for.
    ProposedScan,
    /// The next packets that such an output sends, as many as wait for it.
    #[default]
    ProposedCounters,
    /// As `proposed-counters`, and the packets being sent, which make their outputs congested, too.
    ResidentCounters,
    /// The next packets that an output sends, as many as wait for it when they reach `output-threshold`.
    OutputTriggered,
    /// `proposed-counters` and `output-triggered` together.
    InputOutputTriggered,
}

#[derive(Clone, Debug)]
enum Scheme {
    Naive(NaiveMarking),
    ProposedScan(ProposedScan),
    ProposedCounters(ProposedCounters),
    ResidentCounters(ResidentCounters),
}

/// A marking scheme at all switches, with a count of departing marked packets; one type for one compiled engine.
#[derive(Clone, Debug)]
pub struct EcnSwitch {
    scheme: Scheme,
    marked: Vec<u64>,
}

impl EcnSwitch {
    /// The scheme at that many ports and lanes; outputs trigger marking at `output_threshold` waiting packets.
    pub fn new(marking: Marking, output_threshold: u16, ports: usize, data_vls: u8) -> Self {
        let counters = || ProposedCounters::new(ports, data_vls);
        let by_output = || counters().with_output_trigger(u32::from(output_threshold));
        Self {
            scheme: match marking {
                Marking::Naive => Scheme::Naive(NaiveMarking),
                Marking::ProposedScan => Scheme::ProposedScan(ProposedScan),
                Marking::ProposedCounters => Scheme::ProposedCounters(counters()),
                Marking::ResidentCounters => {
                    Scheme::ResidentCounters(ResidentCounters::new(ports, data_vls))
                }
                Marking::OutputTriggered => {
                    Scheme::ProposedCounters(by_output().without_input_trigger())
                }
                Marking::InputOutputTriggered => Scheme::ProposedCounters(by_output()),
            },
            marked: vec![0; ports * usize::from(data_vls)],
        }
    }
}

impl SwitchControl for EcnSwitch {
    #[inline]
    fn needs_buffer_full(&self) -> bool {
        match &self.scheme {
            Scheme::ProposedCounters(scheme) => scheme.needs_buffer_full(),
            Scheme::Naive(_) | Scheme::ProposedScan(_) | Scheme::ResidentCounters(_) => true,
        }
    }

    #[inline]
    fn on_queued(&mut self, now: Time, output: PortVl, queue: QueueView, packet: PacketView) {
        match &mut self.scheme {
            Scheme::Naive(scheme) => scheme.on_queued(now, output, queue, packet),
            Scheme::ProposedScan(scheme) => scheme.on_queued(now, output, queue, packet),
            Scheme::ProposedCounters(scheme) => scheme.on_queued(now, output, queue, packet),
            Scheme::ResidentCounters(scheme) => scheme.on_queued(now, output, queue, packet),
        }
    }

    #[inline]
    fn on_departure(
        &mut self,
        now: Time,
        output: PortVl,
        queue: QueueView,
        packet: PacketView,
    ) -> bool {
        let mark = match &mut self.scheme {
            Scheme::Naive(scheme) => scheme.on_departure(now, output, queue, packet),
            Scheme::ProposedScan(scheme) => scheme.on_departure(now, output, queue, packet),
            Scheme::ProposedCounters(scheme) => scheme.on_departure(now, output, queue, packet),
            Scheme::ResidentCounters(scheme) => scheme.on_departure(now, output, queue, packet),
        };
        if mark || packet.marked {
            self.marked[output.0 as usize] += 1;
        }
        mark
    }

    fn marked(&self, output: PortVl) -> u64 {
        self.marked.get(output.0 as usize).copied().unwrap_or(0)
    }

    fn on_discarded(&mut self, now: Time, output: PortVl) {
        match &mut self.scheme {
            Scheme::ProposedCounters(scheme) => scheme.on_discarded(now, output),
            Scheme::ResidentCounters(scheme) => scheme.on_discarded(now, output),
            Scheme::Naive(_) | Scheme::ProposedScan(_) => {}
        }
    }

    fn on_buffer_full<R: Resident>(&mut self, now: Time, input: PortId, vl: Vl, resident: &mut R) {
        match &mut self.scheme {
            Scheme::Naive(scheme) => scheme.on_buffer_full(now, input, vl, resident),
            Scheme::ProposedScan(scheme) => scheme.on_buffer_full(now, input, vl, resident),
            Scheme::ProposedCounters(scheme) => scheme.on_buffer_full(now, input, vl, resident),
            Scheme::ResidentCounters(scheme) => scheme.on_buffer_full(now, input, vl, resident),
        }
    }
}

impl Settings for EcnSwitch {
    fn apply(&mut self, _: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        Err(UnknownSetting(change.clone()))
    }
}

#[cfg(test)]
mod tests;
