//! The switch's part: congestion state of Port VLs, and marking of packets.
//!
//! A Port VL enters the state with `queued >= threshold` and credits or Victim_Mask, and leaves it with `queued <
//! threshold - hysteresis` or neither. Without credits it is a victim, whose marks would throttle the wrong flows; a
//! slow adapter never marks, hence Victim_Mask (gran2012, section II.1 and footnote 2).
//!
//! The state is checked as packets join or leave; a leaving packet counts for its own mark.

use silvan_core::{PortId, Span, SwitchId, Time};

use super::error::ParameterError;
use super::list::{EffectivePortSetting, MarkingSetting, StarvationSetting};
use super::settings::{MarkingMode, PortMask, PortSelection, SwitchCongestionSetting};
use super::threshold::{ThresholdMap, ThresholdWeight};
use crate::hooks::{PacketView, PerPortVl, PortVl, QueueView, SwitchControl};
use crate::schemes::SwitchPort;
use silvan_core::prefetch::prefetch;

mod changes;
mod gaps;
mod record;

use gaps::Gaps;
use record::{PortVlRecord, StarvationRecord};

/// Everything about the switches that must be known before the fabric is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchParameters {
    /// Threshold, Packet_Size and Marking_Rate of every switch.
    pub marking: MarkingSetting,
    /// CS_Threshold and CS_ReturnDelay of every switch.
    pub starvation: StarvationSetting,
    /// The ports whose bit is set in Victim_Mask.
    pub victim_ports: PortSelection,
    /// The ports whose bit is set in Credit_Mask.
    pub credit_ports: PortSelection,
    /// Map from threshold weights to bytes.
    pub threshold_map: ThresholdMap,
    /// Bytes by which a queue must fall below its threshold to end the congestion state.
    pub hysteresis_bytes: u32,
    /// Selection of packets by Marking_Rate.
    pub marking_mode: MarkingMode,
}

impl SwitchParameters {
    /// Checks thresholds and hysteresis: [`ThresholdMap::validate`], [`ParameterError::HysteresisTooLarge`].
    pub fn validate(&self) -> Result<(), ParameterError> {
        self.threshold_map.validate()?;
        let (hysteresis, lowest) = (
            self.hysteresis_bytes,
            self.threshold_map.limit(ThresholdWeight::MAX),
        );
        if hysteresis >= lowest {
            return Err(ParameterError::HysteresisTooLarge { hysteresis, lowest });
        }
        Ok(())
    }
}

/// Marking counters of a Port VL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkingCounters {
    /// Packets that left in the congestion state and were large enough to be marked.
    pub eligible: u64,
    /// Chosen packets among them, including packets that an earlier switch had marked.
    pub marked: u64,
}

/// InfiniBand congestion control at all switches of a fabric.
#[derive(Clone, Debug)]
pub struct IbSwitch {
    port_vls: Vec<PortVlRecord>,
    counters: Vec<MarkingCounters>,
    gaps: Gaps,
    starvation: Vec<StarvationRecord>,
    starving: usize,
    ports: Vec<Option<PortRecord>>,
    switches: Vec<SwitchCongestionSetting>,
    threshold_map: ThresholdMap,
    hysteresis_bytes: u32,
    data_vls: usize,
}

#[derive(Clone, Copy, Debug)]
struct PortRecord {
    at: SwitchPort,
    marking: Option<MarkingSetting>,
    starvation: Option<StarvationSetting>,
}

impl IbSwitch {
    /// Switches for ports by [`PortId`]; `None` is a host's. Panics beyond 2^32 Port VLs, `port * data_vls + vl`.
    pub fn new(
        parameters: &SwitchParameters,
        ports: &[Option<SwitchPort>],
        data_vls: u8,
        seed: u64,
    ) -> Result<Self, ParameterError> {
        parameters.validate()?;
        let data_vls = usize::from(data_vls);
        let port_vls = ports.len() * data_vls;
        assert!(u32::try_from(port_vls).is_ok(), "more than 2^32 Port VLs");
        let mut switch = Self {
            port_vls: vec![PortVlRecord::IDLE; port_vls],
            counters: vec![MarkingCounters::default(); port_vls],
            gaps: Gaps::new(parameters.marking_mode, port_vls, seed),
            starvation: vec![StarvationRecord::NEVER; ports.len()],
            starving: 0,
            ports: ports
                .iter()
                .map(|port| {
                    port.map(|at| PortRecord {
                        at,
                        marking: None,
                        starvation: None,
                    })
                })
                .collect(),
            switches: initial_switches(parameters, ports),
            threshold_map: parameters.threshold_map.clone(),
            hysteresis_bytes: parameters.hysteresis_bytes,
            data_vls,
        };
        for port in 0..ports.len() {
            switch.refresh(port);
        }
        for (index, record) in switch.port_vls.iter_mut().enumerate() {
            record.gap = switch.gaps.after(index, 0);
        }
        Ok(switch)
    }

    /// The setting of a switch, `None` if there is no such switch.
    pub fn switch_setting(&self, switch: SwitchId) -> Option<&SwitchCongestionSetting> {
        self.switches.get(switch.index())
    }

    /// Replaces a switch's setting, except at ports with their own, or [`ParameterError::NoSuchSwitch`].
    pub fn set_switch(
        &mut self,
        switch: SwitchId,
        setting: SwitchCongestionSetting,
    ) -> Result<(), ParameterError> {
        *self
            .switches
            .get_mut(switch.index())
            .ok_or(ParameterError::NoSuchSwitch { switch })? = setting;
        for port in 0..self.ports.len() {
            if self.ports[port].is_some_and(|record| record.at.switch == switch) {
                self.refresh(port);
            }
        }
        Ok(())
    }

    /// A port's own marking parameters, or `None` (SwitchPortCongestionSetting, Control_Type 0);
    /// [`ParameterError::NotASwitchPort`].
    pub fn set_port_marking(
        &mut self,
        port: PortId,
        setting: Option<MarkingSetting>,
    ) -> Result<(), ParameterError> {
        self.port_mut(port)?.marking = setting;
        self.refresh(port.index());
        Ok(())
    }

    /// A port's own credit-starvation parameters, or `None` (SwitchPortCongestionSetting, Control_Type 1);
    /// [`ParameterError::NotASwitchPort`].
    pub fn set_port_starvation(
        &mut self,
        port: PortId,
        setting: Option<StarvationSetting>,
    ) -> Result<(), ParameterError> {
        self.port_mut(port)?.starvation = setting;
        self.refresh(port.index());
        Ok(())
    }

    /// The marking parameters that the port has of its own, if it has any.
    pub fn port_marking(&self, port: PortId) -> Option<MarkingSetting> {
        self.ports.get(port.index()).copied().flatten()?.marking
    }

    /// The credit-starvation parameters that the port has of its own, if it has any.
    pub fn port_starvation(&self, port: PortId) -> Option<StarvationSetting> {
        self.ports.get(port.index()).copied().flatten()?.starvation
    }

    /// Returns the settings in force at a port; `None` if it is not a switch port.
    pub fn effective(&self, port: PortId) -> Option<EffectivePortSetting> {
        let record = self.ports.get(port.index()).copied().flatten()?;
        let switch = &self.switches[record.at.switch.index()];
        Some(EffectivePortSetting {
            marking: record.marking.unwrap_or(switch.marking),
            starvation: record.starvation.unwrap_or(switch.starvation),
            victim: switch.victim_mask.contains(record.at.number),
            credit: switch.credit_mask.contains(record.at.number),
        })
    }

    /// Returns true if this Port VL is in the congestion state.
    pub fn in_congestion(&self, output: PortVl) -> bool {
        self.port_vls[output.0 as usize].in_congestion
    }

    /// Returns how often this Port VL has entered the congestion state since the start, modulo 2^32.
    pub fn congestion_events(&self, output: PortVl) -> u32 {
        self.port_vls[output.0 as usize].entries
    }

    /// Returns the marking counters of this Port VL since the start.
    pub fn counters(&self, output: PortVl) -> MarkingCounters {
        self.counters[output.0 as usize]
    }

    fn refresh(&mut self, port: usize) {
        let Some(effective) = self.effective(PortId::new(port)) else {
            return;
        };
        let first = port * self.data_vls;
        for index in first..first + self.data_vls {
            let record = &mut self.port_vls[index];
            record.configure(&effective, &self.threshold_map, self.hysteresis_bytes);
            let (marks, rate) = (self.counters[index].marked, effective.marking.marking_rate);
            record.gap = self.gaps.set_rate(index, marks, rate, record.gap);
        }
        let record = StarvationRecord::new(&effective, &self.threshold_map);
        let before = std::mem::replace(&mut self.starvation[port], record);
        self.starving = self.starving + usize::from(record.acts()) - usize::from(before.acts());
    }

    fn port_mut(&mut self, port: PortId) -> Result<&mut PortRecord, ParameterError> {
        self.ports
            .get_mut(port.index())
            .and_then(Option::as_mut)
            .ok_or(ParameterError::NotASwitchPort { port })
    }

    fn marks(&mut self, index: usize, wire_bytes: u32) -> bool {
        let record = &mut self.port_vls[index];
        if wire_bytes < u32::from(record.packet_bytes) {
            return false;
        }
        let counters = &mut self.counters[index];
        let marked = match self.gaps.draw(index) {
            Some(marked) => marked,
            None => record.gap == 0,
        };
        counters.eligible += 1;
        counters.marked += u64::from(marked);
        record.gap = match marked {
            true => self.gaps.after(index, counters.marked),
            false => record.gap.saturating_sub(1),
        };
        marked
    }
}

impl SwitchControl for IbSwitch {
    fn recurs(&self) -> bool {
        true
    }

    fn changes(&self, output: PortVl) -> u64 {
        let record = &self.port_vls[output.0 as usize];
        let states = 2 * u64::from(record.entries) - u64::from(record.in_congestion);
        states + self.counters(output).eligible
    }

    fn may_mark(&self, output: PortVl) -> bool {
        self.port_vls[output.0 as usize].in_congestion
    }

    #[inline]
    fn prefetch_packet(&self, output: PortVl) {
        prefetch(&self.port_vls, output.0 as usize);
        prefetch(&self.counters, output.0 as usize);
    }

    #[inline]
    fn on_queued(&mut self, now: Time, output: PortVl, queue: QueueView, _: PacketView) {
        let record = &mut self.port_vls[output.0 as usize];
        let congested = record.is_congested(queue.queued_bytes, queue.has_credit);
        record.enter(now, congested, self.hysteresis_bytes);
    }

    #[inline]
    fn on_departure(
        &mut self,
        now: Time,
        output: PortVl,
        queue: QueueView,
        packet: PacketView,
    ) -> bool {
        let (index, hysteresis) = (output.0 as usize, self.hysteresis_bytes);
        let record = &mut self.port_vls[index];
        let eligible = record.is_congested(queue.queued_bytes, queue.has_credit);
        let mut left = queue.queued_bytes.saturating_sub(packet.wire_bytes);
        if eligible && !record.in_congestion {
            left = left.saturating_add(hysteresis);
        }
        let congested = record.is_congested(left, queue.has_credit);
        record.enter(now, congested, hysteresis);
        eligible && self.marks(index, packet.wire_bytes)
    }

    fn on_discarded(&mut self, now: Time, output: PortVl) {
        self.port_vls[output.0 as usize].enter(now, false, self.hysteresis_bytes);
    }

    #[inline]
    fn delays_credits(&self) -> bool {
        self.starving > 0
    }

    fn credit_return_delay(&self, input: PortId, occupied_bytes: u32, packet_time: Span) -> Span {
        let record = &self.starvation[input.index()];
        if occupied_bytes < record.threshold_bytes {
            return Span::ZERO;
        }
        record.return_delay.delay(packet_time)
    }

    fn marked(&self, output: PortVl) -> u64 {
        self.counters(output).marked
    }

    fn congested_time(&self, now: Time, output: PortVl) -> Span {
        let record = &self.port_vls[output.0 as usize];
        if record.in_congestion {
            record.congested + now.since(record.since)
        } else {
            record.congested
        }
    }
}

impl PerPortVl for IbSwitch {}

fn initial_switches(
    parameters: &SwitchParameters,
    ports: &[Option<SwitchPort>],
) -> Vec<SwitchCongestionSetting> {
    let ports = || ports.iter().flatten();
    let count = ports()
        .map(|port| port.switch.index() + 1)
        .max()
        .unwrap_or(0);
    let base = |selection| match selection {
        PortSelection::None | PortSelection::ToHosts => PortMask::NONE,
        PortSelection::All => PortMask::ALL,
    };
    let setting = SwitchCongestionSetting {
        marking: parameters.marking,
        starvation: parameters.starvation,
        victim_mask: base(parameters.victim_ports),
        credit_mask: base(parameters.credit_ports),
    };
    let mut switches = vec![setting; count];
    for port in ports().filter(|port| port.to_host) {
        let switch = &mut switches[port.switch.index()];
        if parameters.victim_ports == PortSelection::ToHosts {
            switch.victim_mask.set(port.number, true);
        }
        if parameters.credit_ports == PortSelection::ToHosts {
            switch.credit_mask.set(port.number, true);
        }
    }
    switches
}

#[cfg(test)]
mod tests;
