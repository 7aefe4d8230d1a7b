//! Subnet management packets (volume 1, chapter 14): attributes, and the two ways to route them.

mod node;
mod notice;
mod port_info;
mod tables;

use std::borrow::Borrow;

use silvan_core::Lid;

use crate::field::attributes;
use crate::packet::field;
use crate::{Field, MAD_LEN, Packet};

pub use node::{DescriptionTooLong, NodeDescription, NodeInfo, NodeType, SwitchInfo};
pub use notice::{Notice, NoticeType, SmInfo, SmState};
pub use port_info::{
    ActiveLink, Mtu, PhysicalState, PortInfo, PortState, capability, link_speed, link_speed_ext,
    link_speed_ext2, link_width,
};
pub use tables::{
    GuidInfo, LinearForwardingTable, MulticastBlock, MulticastForwardingTable, PKeyBlock,
    PKeyTable, PortPair, SlToVlMappingTable, VlArbitrationBlock, VlArbitrationEntry,
    VlArbitrationTable,
};

attributes! {
    /// The attribute of a subnet management packet (volume 1, section 14.2.5).
    pub enum SmpAttribute[64] {
        Notice,
        NodeDescription,
        NodeInfo,
        SwitchInfo,
        GuidInfo,
        PortInfo,
        PKeyTable,
        SlToVlMappingTable,
        VlArbitrationTable,
        LinearForwardingTable,
        MulticastForwardingTable,
        SmInfo,
    }
}

/// A subnet management packet (volume 1, section 14.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smp {
    /// M_Key: must match that of the port for what changes it.
    pub m_key: u64,
    /// Route of the packet.
    pub route: SmpRoute,
    /// Attribute of the packet.
    pub attribute: SmpAttribute,
}

/// Route of a subnet management packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmpRoute {
    /// By forwarding tables, class 0x01.
    Lid,
    /// By the ports that it names, class 0x81; works before there are tables.
    Directed(DirectedRoute),
}

/// The ports of a directed route (volume 1, section 14.2.2): entry `n`, from 1 on, is the exit of the `n`-th node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectedRoute {
    /// Direction bit: on its way back.
    pub returning: bool,
    /// HopPointer: the position in the path.
    pub hop_pointer: u8,
    hop_count: u8,
    /// DrSLID: where the directed part starts, [`PERMISSIVE`](Self::PERMISSIVE) at the sender.
    pub source_lid: Lid,
    /// DrDLID: where the directed part ends, [`PERMISSIVE`](Self::PERMISSIVE) at the receiver.
    pub destination_lid: Lid,
    /// InitialPath: ports out.
    pub initial_path: [u8; 64],
    /// ReturnPath: ports back, filled in on the way out.
    pub return_path: [u8; 64],
}

impl DirectedRoute {
    /// The LID that any port takes for its own.
    pub const PERMISSIVE: Lid = Lid::new(0xffff);
    /// The most hops of a path: entry 0 is not used.
    pub const MAX_HOPS: usize = 63;

    /// A request directed all the way by these ports; `None` beyond [`MAX_HOPS`](Self::MAX_HOPS).
    pub fn request(ports: &[u8]) -> Option<Self> {
        let mut initial_path = [0; 64];
        initial_path
            .get_mut(1..=ports.len())?
            .copy_from_slice(ports);
        Some(Self {
            returning: false,
            hop_pointer: 0,
            hop_count: ports.len() as u8,
            source_lid: Self::PERMISSIVE,
            destination_lid: Self::PERMISSIVE,
            initial_path,
            return_path: [0; 64],
        })
    }

    /// HopCount, at most [`MAX_HOPS`](Self::MAX_HOPS).
    pub const fn hop_count(&self) -> u8 {
        self.hop_count
    }

    /// The ports by which a request leaves its sender and each node on its way.
    pub fn ports(&self) -> &[u8] {
        &self.initial_path[1..=usize::from(self.hop_count)]
    }

    /// Reads the route of a datagram of class 0x81; `None` if its hop count is too large.
    pub fn of(bytes: &[u8; MAD_LEN]) -> Option<Self> {
        Self::parse(&Packet::new(bytes))
    }

    /// Reads the route of a packet; `None` if its hop count is too large.
    pub(crate) fn parse<B: Borrow<[u8; MAD_LEN]>>(packet: &Packet<B>) -> Option<Self> {
        let bytes = packet.bytes();
        let hop_count = packet.hop_count();
        (usize::from(hop_count) <= Self::MAX_HOPS).then(|| Self {
            returning: packet.is_returning(),
            hop_pointer: packet.hop_pointer(),
            hop_count,
            source_lid: Field::read(bytes, field::DR_SLID),
            destination_lid: Field::read(bytes, field::DR_DLID),
            initial_path: Field::read(bytes, field::INITIAL_PATH),
            return_path: Field::read(bytes, field::RETURN_PATH),
        })
    }

    pub(crate) fn emit(&self, bytes: &mut [u8; MAD_LEN]) {
        self.returning.write(bytes, field::DIRECTION);
        self.hop_pointer.write(bytes, field::HOP_POINTER);
        self.hop_count.write(bytes, field::HOP_COUNT);
        self.source_lid.write(bytes, field::DR_SLID);
        self.destination_lid.write(bytes, field::DR_DLID);
        self.initial_path.write(bytes, field::INITIAL_PATH);
        self.return_path.write(bytes, field::RETURN_PATH);
    }
}
