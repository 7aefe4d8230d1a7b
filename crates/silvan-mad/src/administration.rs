//! Subnet administration (volume 1, chapter 15): what anybody may ask the subnet manager.

use std::borrow::Borrow;

use silvan_core::{Lid, Sl};

use crate::field::{attribute, attributes};
use crate::packet::field;
use crate::{Bits, Field, MAD_LEN, Packet};

/// A datagram of subnet administration (section 15.2.1) with its RMPP header; answers of several datagrams stay apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubnetAdministration {
    /// The RMPP header (section 13.6.2.1): all zero for a transaction of one datagram.
    pub rmpp: [u8; 12],
    /// SM_Key: 0 but for subnet managers.
    pub sm_key: u64,
    /// AttributeOffset: length of a record in answers of several, in units of 8 bytes.
    pub attribute_offset: u16,
    /// ComponentMask: which components of the attribute count, the first one at bit 0.
    pub component_mask: u64,
    /// Attribute of the datagram.
    pub attribute: AdministrationAttribute,
}

attribute! {
    /// PathRecord: how to reach a port from another one (section 15.2.5.16).
    pub struct PathRecord[64] = 0x35 {
        /// ServiceID.
        pub service_id: u64 = 0 hex,
        /// DGID.
        pub destination_gid: [u8; 16] = 64 hex,
        /// SGID.
        pub source_gid: [u8; 16] = 192 hex,
        /// DLID.
        pub destination: Lid = 320,
        /// SLID.
        pub source: Lid = 336,
        /// RawTraffic.
        pub raw_traffic: bool = 352,
        /// FlowLabel.
        pub flow_label: Bits<20> = 356 hex,
        /// HopLimit.
        pub hop_limit: u8 = 376,
        /// TClass.
        pub traffic_class: u8 = 384,
        /// Reversible: the way back is the same.
        pub reversible: bool = 392,
        /// NumbPath: most records wanted.
        pub numb_path: Bits<7> = 393,
        /// P_Key.
        pub p_key: u16 = 400 hex,
        /// QoSClass.
        pub qos_class: Bits<12> = 416,
        /// SL: the service level to use on the path.
        pub sl: Sl = 428,
        /// MtuSelector.
        pub mtu_selector: Bits<2> = 432,
        /// Mtu, in the coding of PortInfo.
        pub mtu: Bits<6> = 434,
        /// RateSelector.
        pub rate_selector: Bits<2> = 440,
        /// Rate (table 224).
        pub rate: Bits<6> = 442,
        /// PacketLifeTimeSelector.
        pub packet_life_time_selector: Bits<2> = 448,
        /// PacketLifeTime: 4.096 µs times 2 to this.
        pub packet_life_time: Bits<6> = 450,
        /// Preference, 0 the highest.
        pub preference: u8 = 456,
    }
}

impl PathRecord {
    /// DLID counts.
    pub const MASK_DESTINATION: u64 = 1 << 4;
    /// SLID counts.
    pub const MASK_SOURCE: u64 = 1 << 5;
}

attributes! {
    /// An attribute in a datagram of subnet administration.
    pub enum AdministrationAttribute[200] {
        PathRecord,
    }
}

impl SubnetAdministration {
    /// The question for the path between two ports.
    pub fn path(source: Lid, destination: Lid) -> Self {
        Self {
            rmpp: [0; 12],
            sm_key: 0,
            attribute_offset: 0,
            component_mask: PathRecord::MASK_SOURCE | PathRecord::MASK_DESTINATION,
            attribute: PathRecord {
                source,
                destination,
                ..PathRecord::default()
            }
            .into(),
        }
    }

    pub(crate) fn parse<B: Borrow<[u8; MAD_LEN]>>(packet: &Packet<B>) -> Self {
        let bytes = packet.bytes();
        Self {
            rmpp: Field::read(bytes, field::PAYLOAD),
            sm_key: Field::read(bytes, field::SM_KEY),
            attribute_offset: Field::read(bytes, field::ATTRIBUTE_OFFSET),
            component_mask: Field::read(bytes, field::COMPONENT_MASK),
            attribute: AdministrationAttribute::parse(
                packet.attribute_id(),
                &Field::read(bytes, field::RECORD),
            ),
        }
    }

    pub(crate) fn emit(&self, bytes: &mut [u8; MAD_LEN]) {
        self.rmpp.write(bytes, field::PAYLOAD);
        self.sm_key.write(bytes, field::SM_KEY);
        self.attribute_offset.write(bytes, field::ATTRIBUTE_OFFSET);
        self.component_mask.write(bytes, field::COMPONENT_MASK);
        let mut data = [0; AdministrationAttribute::DATA_LEN];
        self.attribute.emit(&mut data);
        data.write(bytes, field::RECORD);
    }
}
