//! The list of all settings of switch ports and adapter ports; see [`declare`](super::declare).

use silvan_core::document::KeyPath;
use silvan_core::{Bytes, schema};

use super::cct::CctEntry;
use super::declare::{FromKey, key_of};
use super::sections::CctSection;
use super::settings::{ControlLevel, MarkingMode, PortSelection};
use super::threshold::ThresholdWeight;
use crate::schemes::{SchemeError, Search};

settings! {
    $
    /// Detection and marking at the switches.
    section SwitchSection at "switch" {
        /// Conditions for a port to mark packets.
        group Marking marking: MarkingSetting {
            /// Threshold weight, 0 (never marks) to 15 (marks earliest).
            Threshold threshold: u8 as ThresholdWeight {
                default: 15,
                max: 15,
                datagrams: threshold by THRESHOLD, threshold,
                search: Search::whole(1, 15),
            }
            /// Smallest packet that is marked; 0 marks all.
            // gran2010's value 8 is the 512 bytes that vendors' manuals give as the default.
            PacketSize packet_size: u8 as u8 {
                default: 0,
                unit: "64 B",
                datagrams: packet_size by THRESHOLD, packet_size,
            }
            /// Mean number of packets left unmarked between two marked ones.
            MarkingRate marking_rate: u16 as u16 {
                default: 0,
                unit: "packets",
                datagrams: marking_rate by MARKING_RATE, marking_rate,
                search: Search::choices(&[0, 1, 3, 7, 10, 15, 31, 63, 127, 255]),
            }
        }
        /// Conditions and amount of a port's credit starvation of its neighbour.
        ///
        /// Public sources (OpenSM's option file, the attribute layouts) name the fields and say that the delay has the
        /// form of a [`CctEntry`]. The rest is this model's reading. Starvation is meant for adapters that do not take
        /// part in congestion control. If the input buffer of a Port VL is as full as the threshold, every credit that
        /// it returns is late. The delay is that of a throttled flow behind the same packet.
        ///
        /// The fill level of the buffer is measured when the packet starts to leave, with this packet included. Packets
        /// that the neighbour has not sent for lack of credits do not count, so credits are not late any more once the
        /// buffer empties.
        group Starvation starvation: StarvationSetting {
            /// Fill level of a Port VL's input buffer for late credits (CS_Threshold), 0 (never) to 15 (soonest).
            /// The weight is as many bytes as the same `threshold`.
            CreditThreshold credit_threshold: u8 as ThresholdWeight {
                default: 15,
                max: 15,
                datagrams: cs_threshold by CREDIT_STARVATION, threshold,
            }
            /// Delay of late credits (CS_ReturnDelay), relative to the packet's time on the link.
            /// Rounded to the nearest entry that a Congestion Control Table could have.
            CreditReturnDelay credit_return_delay: f64 as CctEntry {
                default: 0.0,
                unit: "packet times",
                datagrams: cs_return_delay by CREDIT_STARVATION, marking_rate,
            }
        }
        masks {
            /// Ports that enter the congestion state even without credits (Victim_Mask).
            VictimMask victim_mask as victim {
                default: PortSelection::ToHosts,
                of_port: "True to let the port enter the congestion state even without credits.",
                datagrams: victim_mask by VICTIM_MASK,
            }
            /// Ports that starve their neighbour of credits (Credit_Mask).
            /// When a packet leaves an input buffer that is at least as full as `credit-threshold`, the switch delays
            /// its credits by `credit-return-delay`. This is the model's reading of a setting that public sources only
            /// name. The packets in the buffer count, including the leaving packet.
            CreditMask credit_mask as credit {
                default: PortSelection::None,
                of_port: "True to let the port starve its neighbour of credits.",
                datagrams: credit_mask by CREDIT_MASK,
            }
        }
        others {
            /// Selection of the packets that stay unmarked.
            marking: MarkingMode = MarkingMode::default();
            /// Bytes queued for a Port VL at weight 15; the weights between are evenly spaced.
            /// Default: three packets of MTU size with their headers.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(with = "Option<schema::BytesText>")]
            threshold_lowest: Option<Bytes> = None;
            /// Bytes queued for a Port VL at weight 1. Default: the input buffer of a port, or
            /// `threshold-lowest` if that is more.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(with = "Option<schema::BytesText>")]
            threshold_highest: Option<Bytes> = None;
            /// Bytes queued for a Port VL at the weights 1 to 15, instead of evenly spaced ones.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(with = "Option<Vec<schema::BytesText>>")]
            threshold_table: Option<Vec<Bytes>> = None;
            /// Bytes by which the queue of a Port VL must fall below its threshold before the Port VL leaves the congestion state; less
            /// than the threshold at weight 15.
            #[schemars(with = "schema::BytesText")]
            threshold_hysteresis: Bytes = Bytes::ZERO;
        }
    }
    /// Reaction of the channel adapters.
    section AdapterSection at "adapter" {
        /// Settings of an adapter's port on one SL (an entry of CACongestionSetting).
        group CongestionEntry {
            /// Steps by which each BECN raises the index into the table (CCTI).
            CctiIncrease ccti_increase: u8 as u8 {
                default: 1,
                datagrams: ccti_increase,
                search: Search::whole(1, 16).log().late(),
            }
            /// Smallest index; one above 0 delays every packet.
            // Not even a flow that has never seen a BECN is below it (OpenSM's option file: it "imposes a minimum
            // rate"). Linux's hfi1 driver starts flows at 0 instead; at the papers' value 0 the two are the same.
            CctiMin ccti_min: u8 as u8 {
                default: 0,
                datagrams: ccti_min,
            }
            /// Time between two steps down of the index; 0 stops the timer.
            CctiTimer ccti_timer: u16 as u16 {
                default: 150,
                unit: "1.024 us",
                datagrams: ccti_timer,
                search: Search::whole(10, 600).log(),
            }
            /// Index from which on the adapter logs a congestion event; 0 logs nothing.
            // Source: Linux's hfi1 driver, `process_becn`.
            TriggerThreshold trigger_threshold: u8 as u8 {
                default: 0,
                datagrams: trigger_threshold,
            }
        }
        others {
            /// Largest index.
            ccti_limit: u16 = 127;
            /// Unit of throttling.
            level: ControlLevel = ControlLevel::default();
            /// The table of delays: `{ shape = "linear", slope = 0.95 }`.
            cct: CctSection = CctSection::default();
        }
    }
}

impl PortSetting {
    pub(crate) fn concerns_credits(self) -> bool {
        self.group() == PortGroup::Starvation || matches!(self, Self::CreditMask(_))
    }
}
