use silvan_core::{Guid, Lid};

use super::node::NodeType;
use crate::field::{attribute, code_points};
use crate::{Bits, Field};

code_points! {
    /// The state of a subnet manager (SMInfo.SMState).
    pub struct SmState: 4 {
        /// Not managing, not watching.
        NOT_ACTIVE = 0 "not-active",
        /// Looking for others.
        DISCOVERING = 1 "discovering",
        /// Watching the master.
        STANDBY = 2 "standby",
        /// Managing.
        MASTER = 3 "master",
    }
}

attribute! {
    /// SMInfo: the subnet manager at a port (volume 1, section 14.2.5.13).
    pub struct SmInfo[21] = 0x20 {
        /// GUID of the port.
        pub guid: Guid = 0,
        /// SM_Key.
        pub sm_key: u64 = 64 hex,
        /// ActCount: grows while the manager is alive.
        pub activity: u32 = 128,
        /// Priority, 15 the highest.
        pub priority: Bits<4> = 160,
        /// SMState.
        pub state: SmState = 164,
    }
}

code_points! {
    /// Severity of a notice (Notice.Type).
    pub struct NoticeType: 7 {
        /// Fatal.
        FATAL = 0 "fatal",
        /// Urgent.
        URGENT = 1 "urgent",
        /// Security.
        SECURITY = 2 "security",
        /// Subnet management.
        SUBNET_MANAGEMENT = 3 "subnet-management",
        /// For information.
        INFORMATIONAL = 4 "informational",
        /// No notice.
        EMPTY = 127 "empty",
    }
}

attribute! {
    /// Notice (volume 1, sections 13.4.8.2 and 14.2.5.1): what a trap carries.
    pub struct Notice[64] = 0x02 {
        /// IsGeneric: the specification's notice, not a vendor's.
        pub is_generic: bool = 0,
        /// Type.
        pub notice_type: NoticeType = 1,
        /// ProducerType of a generic notice, VendorID of a vendor's.
        pub producer: Bits<24> = 8 hex,
        /// TrapNumber of a generic notice, DeviceID of a vendor's.
        pub trap_number: u16 = 32,
        /// IssuerLID.
        pub issuer_lid: Lid = 48,
        /// NoticeToggle.
        pub toggle: bool = 64,
        /// NoticeCount.
        pub count: Bits<15> = 65,
        /// DataDetails, their layout depending on the trap number.
        pub details: [u8; 54] = 80 hex,
    }
}

impl Notice {
    /// Trap number 128: the state of a link of a switch has changed.
    pub const LINK_STATE_CHANGE: u16 = 128;
    /// Trap number 144: something of a node has changed, e.g. its CapabilityMask.
    pub const LOCAL_CHANGES: u16 = 144;

    /// Notice 128 of a switch with a link that changed its state (section 14.2.5.1: DataDetails are its LID).
    pub fn link_state_change(switch: Lid) -> Self {
        let mut notice = Self {
            is_generic: true,
            notice_type: NoticeType::URGENT,
            producer: Bits::saturating(u64::from(NodeType::SWITCH.code())),
            trap_number: Self::LINK_STATE_CHANGE,
            issuer_lid: switch,
            ..Self::default()
        };
        switch.write(&mut notice.details, 0);
        notice
    }

    /// Notice 144 of a changed CapabilityMask (section 14.2.5.1: 16 reserved bits, LID, 16 reserved bits, the mask).
    pub fn capability_change(producer: NodeType, port: Lid, capability_mask: u32) -> Self {
        let mut notice = Self {
            is_generic: true,
            notice_type: NoticeType::INFORMATIONAL,
            producer: Bits::saturating(u64::from(producer.code())),
            trap_number: Self::LOCAL_CHANGES,
            issuer_lid: port,
            ..Self::default()
        };
        port.write(&mut notice.details, 16);
        capability_mask.write(&mut notice.details, 48);
        notice
    }
}
