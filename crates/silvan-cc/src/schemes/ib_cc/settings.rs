//! Annex A10's SwitchCongestionSetting and CACongestionSetting; settings of single ports are in [`list`](super::list).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::PortNumber;

use super::list::{MarkingSetting, StarvationSetting};

/// Setting of a switch for all ports without a separate setting (SwitchCongestionSetting).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCongestionSetting {
    /// Threshold, Packet_Size and Marking_Rate.
    pub marking: MarkingSetting,
    /// CS_Threshold and CS_ReturnDelay.
    pub starvation: StarvationSetting,
    /// Victim_Mask: ports that may be congested without credits, those to adapters (gran2012, footnote 2).
    pub victim_mask: PortMask,
    /// Credit_Mask: ports that apply credit starvation.
    pub credit_mask: PortMask,
}

/// A set of ports of one switch, one bit each, as in Victim_Mask and Credit_Mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortMask([u64; 4]);

impl PortMask {
    /// No port.
    pub const NONE: Self = Self([0; 4]);
    /// Every port.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// Returns true if the bit of this port is set.
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

/// Ports to set in a mask of every switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortSelection {
    /// No port.
    #[default]
    None,
    /// The ports that lead to hosts.
    #[serde(rename = "hosts")]
    ToHosts,
    /// Every port.
    All,
}

/// Selection of the packets that stay unmarked, with mean Marking_Rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkingMode {
    /// Gaps of geometric length from a shuffled table, counted per Port VL: Marking_Rate is their mean. No input that is
    /// served in turn gets all marks, as with `counter`, and nothing is drawn while the run goes on.
    #[default]
    Dithered,
    // The count goes on over the times between congestion; the first packet to be marked is number
    // Marking_Rate + 1.
    /// Exactly Marking_Rate packets between two marked packets, counted per Port VL. With inputs served in turn, all
    /// marks can fall on one input.
    Counter,
    // Each is marked with probability 1 / (Marking_Rate + 1), so the gaps are geometric. Every Port VL
    // draws from a stream of its own.
    /// Random gaps with the mean Marking_Rate.
    Random,
}

/// Unit that a BECN throttles (Port_Control of CACongestionSetting).
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
