//! Settings of switches and adapters, field by field as the management attributes have them
//! (annex A10: SwitchCongestionSetting, SwitchPortCongestionSetting, CACongestionSetting).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::PortNumber;

use super::cct::CctEntry;
use super::threshold::ThresholdWeight;

/// When a port marks packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkingSetting {
    /// Threshold: how full the queues for a Port VL must be.
    pub threshold: ThresholdWeight,
    /// Packet_Size, in units of 64 bytes: smaller packets are never marked; 0 marks all sizes.
    /// (gran2010's value 8 is the 512 bytes that vendors' manuals give as the default.)
    pub packet_size: u8,
    /// Marking_Rate: the mean number of eligible packets between two that are marked; 0 marks all.
    pub marking_rate: u16,
}

/// When and by how much a port starves its neighbour of credits.
///
/// Public sources (OpenSM's option file, the attribute layouts) name the fields and say that the
/// delay has the form of a [`CctEntry`]; what follows is this model's reading of them. It is meant
/// for adapters that do not take part in congestion control: once the input buffer of a Port VL
/// is as full as the threshold stands for, every credit that it returns is late by the delay that
/// a throttled flow would wait behind the same packet.
///
/// How full the buffer is, is judged when the packet starts to leave, by the neighbour's credits:
/// full is what it has no credits for, including the packet that leaves and the credits that are
/// on their way back. Late credits thus keep the buffer filled for longer, and a neighbour that
/// sends all it can stays starved; it sends a full buffer per round trip of a credit, delay
/// included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StarvationSetting {
    /// CS_Threshold: how full the input buffer must be; mapped to bytes as Threshold is.
    pub threshold: ThresholdWeight,
    /// CS_ReturnDelay: how much later credits return.
    pub return_delay: CctEntry,
}

/// What a switch does at all ports that have no setting of their own (SwitchCongestionSetting).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCongestionSetting {
    /// Threshold, Packet_Size and Marking_Rate.
    pub marking: MarkingSetting,
    /// CS_Threshold and CS_ReturnDelay.
    pub starvation: StarvationSetting,
    /// Victim_Mask: ports that may be in the congestion state without credits. Set for ports
    /// that lead to adapters, as an adapter never detects congestion itself (gran2012, footnote
    /// 2).
    pub victim_mask: PortMask,
    /// Credit_Mask: ports that apply credit starvation.
    pub credit_mask: PortMask,
}

/// The settings that hold at one port: its own where it has any, its switch's otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectivePortSetting {
    /// Threshold, Packet_Size and Marking_Rate.
    pub marking: MarkingSetting,
    /// CS_Threshold and CS_ReturnDelay.
    pub starvation: StarvationSetting,
    /// The port's bit of Victim_Mask.
    pub victim: bool,
    /// The port's bit of Credit_Mask.
    pub credit: bool,
}

/// A set of ports of one switch, one bit each, as in Victim_Mask and Credit_Mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortMask([u64; 4]);

impl PortMask {
    /// No port.
    pub const NONE: Self = Self([0; 4]);
    /// Every port.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// Whether the bit of this port is set.
    pub const fn contains(&self, port: PortNumber) -> bool {
        let number = port.as_u8() as usize;
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    /// Sets or clears the bit of this port.
    pub const fn set(&mut self, port: PortNumber, to: bool) {
        let number = port.as_u8() as usize;
        let bit = 1 << (number % 64);
        if to {
            self.0[number / 64] |= bit;
        } else {
            self.0[number / 64] &= !bit;
        }
    }
}

impl FromIterator<PortNumber> for PortMask {
    fn from_iter<I: IntoIterator<Item = PortNumber>>(ports: I) -> Self {
        let mut mask = Self::NONE;
        for port in ports {
            mask.set(port, true);
        }
        mask
    }
}

/// Ports to set in a mask of every switch, said without knowing the fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortSelection {
    /// No port.
    #[default]
    None,
    /// The ports that lead to hosts.
    ToHosts,
    /// Every port.
    All,
}

/// How Marking_Rate chooses the packets that stay unmarked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkingMode {
    // The count goes on over the times between congestion; the first packet to be marked is number
    // Marking_Rate + 1.
    /// Exactly that many between two marked ones, counted per Port VL.
    #[default]
    Counter,
    // Each is marked with probability 1 / (Marking_Rate + 1), so the gaps are geometric. Every Port VL
    // draws from a stream of its own.
    /// At random, with that mean.
    Random,
}

/// What an adapter's port does on one SL (an entry of CACongestionSetting).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CongestionEntry {
    /// CCTI_Timer, in units of 1.024 us: every expiry lowers the CCTI of each flow by one; 0
    /// stops the timer.
    pub ccti_timer: u16,
    /// CCTI_Increase: steps up per BECN.
    pub ccti_increase: u8,
    /// Trigger_Threshold: a BECN that leaves the CCTI at or above this is logged; 0 logs nothing
    /// (as in Linux's hfi1 driver, `process_becn`).
    pub trigger_threshold: u8,
    /// CCTI_Min: no CCTI is ever lower, not even that of a flow that has never seen a BECN, so it
    /// is a floor under the delay of every flow on the SL (OpenSM's option file: it "imposes a
    /// minimum rate"). Linux's hfi1 driver starts flows at 0 instead; at the papers' value 0 the
    /// two are the same.
    pub ccti_min: u8,
}

/// What a BECN throttles (Port_Control of CACongestionSetting).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ControlLevel {
    /// Each queue pair: a source, a destination and a service level.
    #[default]
    #[serde(rename = "qp")]
    QueuePair,
    /// Each service level of a host: its flows share one CCTI and one delay.
    #[serde(rename = "sl")]
    ServiceLevel,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_hold_every_port_number_by_itself() {
        let all = || (0..=u8::MAX).map(PortNumber::new);
        for port in all() {
            let mask: PortMask = [port].into_iter().collect();
            assert!(all().all(|other| mask.contains(other) == (other == port)));
            let mut rest = PortMask::ALL;
            rest.set(port, false);
            assert!(all().all(|other| rest.contains(other) == (other != port)));
        }
    }
}
