use silvan_core::counters::DATA_WORD;
use silvan_core::growth::CongestionGrowth;
use silvan_core::{PortCounters, PortId, Span, Time};

use super::{Action, Dcms, Decision};
use crate::hooks::{Controller, SettingChange};
use crate::schemes::ib_cc::PortSetting;

/// A [`Dcms`] that reads the simulated ports' own counters, which never saturate, and changes settings at once.
#[derive(Debug, Clone)]
pub struct DcmsController {
    machine: Dcms,
    swept: Time,
    last: Vec<PortCounters>,
    growth: Vec<Option<CongestionGrowth>>,
    log: Vec<Decision>,
}

impl DcmsController {
    /// Drives a machine, whose topology must have port scope on all switches.
    pub fn new(machine: Dcms) -> Self {
        Self {
            machine,
            swept: Time::ZERO,
            last: Vec::new(),
            growth: Vec::new(),
            log: Vec::new(),
        }
    }

    /// The machine.
    pub fn machine(&self) -> &Dcms {
        &self.machine
    }

    /// All decisions so far, in order.
    pub fn log(&self) -> &[Decision] {
        &self.log
    }

    fn growth_of(&mut self, span: Span, port: PortId, reading: PortCounters) -> CongestionGrowth {
        let index = port.index();
        if self.last.len() <= index {
            self.last.resize(index + 1, PortCounters::default());
        }
        let before = std::mem::replace(&mut self.last[index], reading);
        let tick = self.machine.parameters().tick.as_ps();
        let ticks = |now: Span, before: Span| now.as_ps() / tick - before.as_ps() / tick;
        let wants = self.machine.wants_congestion_time(port);
        CongestionGrowth {
            span,
            xmit_wait: Some(ticks(reading.xmit_wait, before.xmit_wait)),
            xmit_data: Some(reading.xmit_bytes / DATA_WORD - before.xmit_bytes / DATA_WORD),
            xmit_time_cong: wants.then(|| ticks(reading.xmit_cong, before.xmit_cong)),
        }
    }
}

impl Controller for DcmsController {
    fn interval(&self) -> Span {
        self.machine.next_interval()
    }

    fn step(
        &mut self,
        now: Time,
        readings: &[(PortId, PortCounters)],
        changes: &mut Vec<SettingChange>,
    ) {
        let span = now.since(self.swept);
        self.swept = now;
        for &(port, reading) in readings {
            let growth = self.growth_of(span, port, reading);
            let index = port.index();
            if self.growth.len() <= index {
                self.growth.resize(index + 1, None);
            }
            self.growth[index] = Some(growth);
        }
        let decisions = self.machine.step(now, &self.growth);
        self.log.extend_from_slice(decisions);
        changes.extend(decisions.iter().filter_map(|decision| {
            let Action {
                port, marking_rate, ..
            } = decision.action?;
            let port = port.unwrap_or(decision.port);
            Some(SettingChange::Port {
                port,
                setting: PortSetting::MarkingRate(marking_rate),
            })
        }));
    }
}
