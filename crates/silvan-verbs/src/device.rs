use std::collections::BTreeMap;

use silvan_core::{Guid, Lid};

use crate::abi::structures::{QueryDeviceResponse, QueryPortResponse};
use crate::abi::values::device_capabilities as capabilities;
use crate::objects::{QpKey, completion, memory, queue_pair, receive};
use crate::transport::sending::LONGEST;

/// Attributes of an adapter that do not change.
#[derive(Clone, Debug)]
pub struct DeviceAttributes {
    /// GUID of the node.
    pub node_guid: Guid,
    /// GUID of the system.
    pub system_guid: Guid,
    /// Vendor of the PCI device.
    pub vendor_id: u32,
    /// PCI device.
    pub vendor_part_id: u32,
    /// Revision of the hardware.
    pub hw_version: u32,
    /// Version of the firmware: major, minor, subminor.
    pub firmware: (u16, u16, u16),
}

/// State of a port's logical link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PortState {
    /// No physical link.
    Down = 1,
    /// Physical link; only management packets pass.
    Initialize = 2,
    /// Configured, not yet in use.
    Armed = 3,
    /// In use.
    Active = 4,
}

/// Attributes of an adapter's port that the subnet manager sets, as QUERY_PORT shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortAttributes {
    /// State of the link.
    pub state: PortState,
    /// Physical state: 2 polling, 3 disabled, 5 link up.
    pub physical_state: u8,
    /// Base LID; 0 before a subnet manager assigns one.
    pub lid: Lid,
    /// LID mask control: the port answers to 2^lmc LIDs.
    pub lmc: u8,
    /// LID of the subnet manager.
    pub sm_lid: Lid,
    /// Service level to reach the subnet manager.
    pub sm_sl: u8,
    /// Largest MTU of the port: 1 to 5 for 256 to 4096 bytes.
    pub max_mtu: u8,
    /// MTU in use, in the code of `max_mtu`.
    pub active_mtu: u8,
    /// VLs of the port, as a code: 1 to 5 for 1, 2, 4, 8 and 15.
    pub max_vl: u8,
    /// Width in use: 1, 2, 4, 8 for 1x, 4x, 8x, 12x.
    pub active_width: u8,
    /// Speed in use, in the code of the header `ib_user_verbs.h`.
    pub active_speed: u8,
    /// CapabilityMask.
    pub capabilities: u32,
    /// SubnetTimeOut.
    pub subnet_timeout: u8,
    /// Table of P_Keys; 0 is an empty entry.
    pub pkeys: Vec<u16>,
    /// Table of GIDs.
    pub gids: Vec<[u8; 16]>,
}

/// Bound of each kind except regions and queue pairs.
const MOST_OBJECTS: u32 = 65_536;
const MOST_QUEUE_PAIRS: u32 = 16_384;
const MOST_MEMBERS: u32 = 1024;

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) pd: u32,
    pub(crate) cq: u32,
    pub(crate) srq: u32,
    pub(crate) qp: u32,
    pub(crate) ah: u32,
}

#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) attributes: DeviceAttributes,
    pub(crate) port: PortAttributes,
    pub(crate) groups: BTreeMap<[u8; 16], Vec<QpKey>>,
    pub(crate) bad_pkeys: u32,
    pub(crate) bad_qkeys: u32,
    pub(crate) counts: Counts,
}

impl Device {
    pub(crate) fn new(attributes: DeviceAttributes, port: PortAttributes) -> Self {
        Self {
            attributes,
            port,
            groups: BTreeMap::new(),
            bad_pkeys: 0,
            bad_qkeys: 0,
            counts: Counts::default(),
        }
    }

    pub(crate) fn has_room(count: u32) -> bool {
        count < MOST_OBJECTS
    }

    pub(crate) fn has_room_for_queue_pair(&self) -> bool {
        self.counts.qp < MOST_QUEUE_PAIRS
    }

    pub(crate) fn has_room_in(&self, group: &[u8; 16]) -> bool {
        self.groups
            .get(group)
            .is_none_or(|members| (members.len() as u32) < MOST_MEMBERS)
            && self.groups.len() < MOST_OBJECTS as usize
    }

    pub(crate) fn query(&self) -> QueryDeviceResponse {
        let own = &self.attributes;
        let (major, minor, patch) = own.firmware;
        QueryDeviceResponse {
            fw_ver: u64::from(major) << 32 | u64::from(minor) << 16 | u64::from(patch),
            node_guid: own.node_guid.as_u64().to_be_bytes(),
            sys_image_guid: own.system_guid.as_u64().to_be_bytes(),
            max_mr_size: u64::MAX,
            page_size_cap: 0xffff_f000,
            vendor_id: own.vendor_id,
            vendor_part_id: own.vendor_part_id,
            hw_ver: own.hw_version,
            max_qp: MOST_QUEUE_PAIRS,
            max_qp_wr: queue_pair::MOST_SENDS,
            device_cap_flags: capabilities::BAD_PKEY_CNTR
                | capabilities::BAD_QKEY_CNTR
                | capabilities::CURR_QP_STATE_MOD
                | capabilities::PORT_ACTIVE_EVENT
                | capabilities::SYS_IMAGE_GUID
                | capabilities::RC_RNR_NAK_GEN
                | capabilities::SRQ_RESIZE,
            max_sge: queue_pair::MOST_ELEMENTS,
            max_sge_rd: queue_pair::MOST_ELEMENTS,
            max_cq: MOST_OBJECTS,
            max_cqe: completion::MOST_COMPLETIONS,
            max_mr: memory::MOST_REGIONS as u32,
            max_pd: MOST_OBJECTS,
            max_qp_rd_atom: u32::from(queue_pair::MOST_READS),
            max_res_rd_atom: u32::from(queue_pair::MOST_READS) * MOST_QUEUE_PAIRS,
            max_qp_init_rd_atom: u32::from(queue_pair::MOST_READS),
            // Atomic among all operations of the fabric's adapters.
            atomic_cap: 1,
            max_mcast_grp: MOST_OBJECTS,
            max_mcast_qp_attach: MOST_MEMBERS,
            max_total_mcast_qp_attach: MOST_OBJECTS,
            max_ah: MOST_OBJECTS,
            max_srq: MOST_OBJECTS,
            max_srq_wr: receive::MOST_REQUESTS,
            max_srq_sge: receive::MOST_ELEMENTS,
            max_pkeys: self.port.pkeys.len() as u16,
            // The model acknowledges at once.
            local_ca_ack_delay: 0,
            phys_port_cnt: 1,
            ..QueryDeviceResponse::default()
        }
    }

    pub(crate) fn query_port(&self) -> QueryPortResponse {
        let own = &self.port;
        QueryPortResponse {
            port_cap_flags: own.capabilities,
            max_msg_sz: LONGEST as u32,
            bad_pkey_cntr: self.bad_pkeys,
            qkey_viol_cntr: self.bad_qkeys,
            gid_tbl_len: own.gids.len() as u32,
            pkey_tbl_len: own.pkeys.len() as u16,
            lid: own.lid.as_u16(),
            sm_lid: own.sm_lid.as_u16(),
            state: own.state as u8,
            max_mtu: own.max_mtu,
            active_mtu: own.active_mtu,
            lmc: own.lmc,
            max_vl_num: own.max_vl,
            sm_sl: own.sm_sl,
            subnet_timeout: own.subnet_timeout,
            init_type_reply: 0,
            active_width: own.active_width,
            active_speed: own.active_speed,
            phys_state: own.physical_state,
            // 1 is InfiniBand.
            link_layer: 1,
            flags: 0,
            reserved: 0,
        }
    }
}
