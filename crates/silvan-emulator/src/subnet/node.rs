use std::collections::BTreeMap;

use silvan_core::{DeviceId, Guid, Lid, NodeId, PortNumber, SwitchId, Time};
use silvan_fabric::{CableLimit, HostRole, LinkKind, NodeKind, Speed, Width};
use silvan_mad::Bits;
use silvan_mad::smp::{
    Mtu, NodeDescription, NodeInfo, NodeType, PhysicalState, PortInfo, PortState, SwitchInfo,
    VlArbitrationTable, capability, link_speed, link_speed_ext, link_speed_ext2, link_width,
};
use silvan_scenario::Scenario;

use super::adapters::{Adapters, own_number};
use super::devices::SwitchDevices;
use crate::agent::congestion::KeyState;

const LINEAR_CAP: u16 = 0xbfff;
const MULTICAST_CAP: u16 = 1024;
const P_KEYS: u16 = 128;
const ENFORCED_P_KEYS: u16 = 32;
const DEFAULT_P_KEY: u16 = 0xffff;
const VL_ARBITRATION_ENTRIES: u8 = 8;
/// The link-local prefix that every subnet starts with.
const GID_PREFIX: u64 = 0xfe80_0000_0000_0000;
/// IsCommunicationManagementSupported, IsVendorClassSupported, IsCapabilityMaskNoticeSupported,
/// IsClientRegistrationSupported.
const ADAPTER_CAPABILITIES: u32 = 1 << 16 | 1 << 21 | 1 << 22 | 1 << 25;
/// IsVendorClassSupported, IsCapabilityMaskNoticeSupported.
const SWITCH_CAPABILITIES: u32 = 1 << 21 | 1 << 22;

#[derive(Clone, Debug)]
pub(crate) struct NodeState {
    pub info: NodeInfo,
    pub description: NodeDescription,
    /// By port number. A switch's port 0 is its management port; an adapter's is unused.
    pub ports: Vec<PortRecord>,
    pub switch: Option<Box<SwitchRecord>>,
    pub key: KeyState,
}

#[derive(Clone, Debug)]
pub(crate) struct SwitchRecord {
    pub info: SwitchInfo,
    pub linear: Vec<u8>,
    pub multicast: BTreeMap<(u32, u32), [u16; 32]>,
    pub own_sl_to_vl: BTreeMap<(u8, u8), [u8; 16]>,
    pub first_sl_to_vl: BTreeMap<(PortNumber, PortNumber), [u8; 16]>,
}

#[derive(Clone, Debug)]
pub(crate) struct PortRecord {
    pub info: PortInfo,
    pub cut: bool,
    pub cable_limit: CableLimit,
    pub symbol_errors: SymbolErrors,
    pub disabled: bool,
    pub p_keys: Vec<u16>,
    pub vl_arbitration: BTreeMap<u8, VlArbitrationTable>,
    /// Of an adapter's port, or initially between a switch's port 0 and this port.
    pub sl_to_vl: [u8; 16],
    pub link_downed: u64,
    pub bases: BTreeMap<(u16, u8), u64>,
    pub is_sm: bool,
}

/// Bad symbols at a constant rate since an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SymbolErrors {
    since: Time,
    before: f64,
    per_second: f64,
}

impl Default for SymbolErrors {
    fn default() -> Self {
        Self {
            since: Time::ZERO,
            before: 0.0,
            per_second: 0.0,
        }
    }
}

impl SymbolErrors {
    fn exact(&self, now: Time) -> f64 {
        self.before + now.since(self.since).as_secs_f64() * self.per_second
    }

    pub fn count(&self, now: Time) -> u64 {
        self.exact(now) as u64
    }

    pub fn at_rate(&self, now: Time, per_second: f64) -> Self {
        Self {
            since: now,
            before: self.exact(now),
            per_second,
        }
    }
}

impl PortRecord {
    fn new(info: PortInfo, sl_to_vl: [u8; 16]) -> Self {
        let mut p_keys = vec![0; 32];
        p_keys[0] = DEFAULT_P_KEY;
        Self {
            info,
            cut: false,
            cable_limit: CableLimit::default(),
            symbol_errors: SymbolErrors::default(),
            disabled: false,
            p_keys,
            vl_arbitration: BTreeMap::new(),
            sl_to_vl,
            link_downed: 0,
            bases: BTreeMap::new(),
            is_sm: false,
        }
    }

    pub fn sends(&self) -> bool {
        self.info.port_state == PortState::ACTIVE
    }

    pub fn receives(&self) -> bool {
        matches!(self.info.port_state, PortState::ACTIVE | PortState::ARMED)
    }

    pub fn is_linked(&self) -> bool {
        self.receives() || self.info.port_state == PortState::INITIALIZE
    }
}

impl SwitchRecord {
    pub fn route(&self, lid: Lid) -> Option<PortNumber> {
        if lid.as_u16() > self.info.linear_fdb_top {
            return None;
        }
        let number = *self.linear.get(lid.index())?;
        (number != u8::MAX).then(|| PortNumber::new(number))
    }
}

impl NodeState {
    pub fn p_keys_of(&self, number: usize) -> usize {
        usize::from(match &self.switch {
            Some(switch) if number > 0 => switch.info.partition_enforcement_cap,
            _ => self.info.partition_cap,
        })
    }

    /// Set up by the scenario if `configured`.
    pub fn new(
        scenario: &Scenario,
        id: NodeId,
        (adapters, devices): (&Adapters, SwitchDevices),
        configured: bool,
    ) -> Self {
        let fabric = scenario.fabric();
        let node = &fabric.nodes[id];
        let device = match node.kind {
            NodeKind::Switch(switch) => devices.of(fabric, switch),
            // An adapter counts as the switch at its cable.
            NodeKind::Host(_) => {
                let first = &fabric.nodes[adapters.first(node.guid).unwrap_or(id)];
                let peer = fabric.peer_switch(first.first_port);
                peer.map_or(DeviceId::EMULATED, |(switch, _)| devices.of(fabric, switch))
            }
        };
        // A host's one port may be any port of its adapter.
        let own_port = own_number(node);
        let (name, port_count) = match node.kind {
            NodeKind::Switch(_) => (node.name.as_str(), node.port_count),
            NodeKind::Host(_) => (adapters.name(node), adapters.port_count(node.guid)),
        };
        let config = scenario.engine_config();
        let lanes = vl_code(config.data_vls);
        let base = PortInfo {
            link_down_default_state: PhysicalState::POLLING,
            mtu_cap: mtu_code(config.packet.mtu.as_u64()),
            neighbor_mtu: mtu_code(config.packet.mtu.as_u64()),
            vl_cap: lanes,
            operational_vls: lanes,
            vl_arbitration_high_cap: VL_ARBITRATION_ENTRIES,
            vl_arbitration_low_cap: VL_ARBITRATION_ENTRIES,
            hoq_life: Bits::saturating(18),
            subnet_timeout: Bits::saturating(18),
            response_time: Bits::saturating(16),
            local_phy_errors: Bits::saturating(8),
            overrun_errors: Bits::saturating(8),
            ..PortInfo::default()
        };
        let lid = if configured { node.lid } else { Lid::new(0) };
        let own = |info: &mut PortInfo, capabilities: u32| {
            info.gid_prefix = GID_PREFIX;
            info.lid = lid;
            info.guid_cap = 32;
            info.capability_mask = capability::IS_SL_MAPPING_SUPPORTED
                | capability::IS_SYSTEM_IMAGE_GUID_SUPPORTED
                | capability::IS_EXTENDED_SPEEDS_SUPPORTED
                | capabilities;
        };
        let port_info = |number: u8| {
            let mut info = base;
            let port = match node.kind {
                NodeKind::Switch(_) => node.port(PortNumber::new(number)),
                NodeKind::Host(_) => (number == own_port.as_u8()).then_some(node.first_port),
            };
            let link = port.and_then(|port| fabric.ports[port].link);
            match link {
                Some(link) => {
                    let kind = fabric.links[link].kind;
                    describe_link(&mut info, &scenario.intact_cable(link));
                    set_active(&mut info, kind.width, kind.speed);
                    info.port_state = if configured {
                        PortState::ACTIVE
                    } else {
                        PortState::INITIALIZE
                    };
                    info.physical_state = PhysicalState::LINK_UP;
                }
                None => {
                    describe_fastest(&mut info);
                    info.port_state = PortState::DOWN;
                    info.physical_state = PhysicalState::POLLING;
                }
            }
            info
        };
        let mut ports: Vec<PortRecord> = (0..=port_count)
            .map(|number| PortRecord::new(port_info(number), config.sl_to_vl))
            .collect();
        let switch = match node.kind {
            NodeKind::Switch(switch) => {
                let info = &mut ports[0].info;
                own(info, SWITCH_CAPABILITIES | capability::IS_TRAP_SUPPORTED);
                info.port_state = PortState::ACTIVE;
                info.physical_state = PhysicalState::LINK_UP;
                Some(Box::new(SwitchRecord::new(scenario, switch, configured)))
            }
            NodeKind::Host(_) => {
                own(
                    &mut ports[usize::from(own_port.as_u8())].info,
                    ADAPTER_CAPABILITIES | capability::IS_AUTOMATIC_MIGRATION_SUPPORTED,
                );
                None
            }
        };
        Self {
            info: NodeInfo {
                base_version: 1,
                class_version: 1,
                node_type: match node.kind {
                    NodeKind::Switch(_) => NodeType::SWITCH,
                    NodeKind::Host(_) if node.role == Some(HostRole::Router) => NodeType::ROUTER,
                    NodeKind::Host(_) => NodeType::CHANNEL_ADAPTER,
                },
                num_ports: port_count,
                system_image_guid: node.guid,
                node_guid: node.guid,
                port_guid: port_guid(scenario, id),
                partition_cap: P_KEYS,
                vendor_id: Bits::saturating(device.vendor.into()),
                device_id: device.device as u16,
                ..NodeInfo::default()
            },
            description: description(name),
            ports,
            switch,
            key: KeyState::default(),
        }
    }
}

impl SwitchRecord {
    fn new(scenario: &Scenario, id: SwitchId, configured: bool) -> Self {
        let mut linear = Vec::new();
        let mut top = 0;
        if configured {
            for (lid, port) in scenario.tables().routes(id) {
                if linear.len() <= lid.index() {
                    linear.resize((lid.index() / 64 + 1) * 64, u8::MAX);
                }
                linear[lid.index()] = port.as_u8();
                top = lid.as_u16();
            }
        }
        Self {
            info: SwitchInfo {
                linear_fdb_cap: LINEAR_CAP,
                multicast_fdb_cap: MULTICAST_CAP,
                linear_fdb_top: top,
                life_time: Bits::saturating(18),
                lids_per_port: 1,
                partition_enforcement_cap: ENFORCED_P_KEYS,
                ..SwitchInfo::default()
            },
            linear,
            multicast: BTreeMap::new(),
            own_sl_to_vl: BTreeMap::new(),
            first_sl_to_vl: BTreeMap::new(),
        }
    }
}

fn port_guid(scenario: &Scenario, id: NodeId) -> Guid {
    let fabric = scenario.fabric();
    let node = &fabric.nodes[id];
    match node.kind {
        NodeKind::Switch(_) => node.guid,
        NodeKind::Host(_) => fabric.ports[node.first_port].guid,
    }
}

fn description(name: &str) -> NodeDescription {
    let mut end = name.len().min(NodeDescription::LEN);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let mut bytes = [0; NodeDescription::LEN];
    bytes[..end].copy_from_slice(&name.as_bytes()[..end]);
    NodeDescription::parse(&bytes)
}

/// Code of the largest of 1, 2, 4, 8 and 15 lanes up to `data_vls`.
fn vl_code(data_vls: u8) -> Bits<4> {
    Bits::saturating(match data_vls {
        0 | 1 => 1,
        2 | 3 => 2,
        4..=7 => 3,
        8..=14 => 4,
        _ => 5,
    })
}

fn mtu_code(bytes: u64) -> Mtu {
    match bytes {
        0..=256 => Mtu::B256,
        257..=512 => Mtu::B512,
        513..=1024 => Mtu::B1024,
        1025..=2048 => Mtu::B2048,
        _ => Mtu::B4096,
    }
}

pub(super) fn width_bit(width: Width) -> u8 {
    match width {
        Width::X1 => link_width::X1,
        Width::X2 => link_width::X2,
        Width::X4 => link_width::X4,
        Width::X8 => link_width::X8,
        Width::X12 => link_width::X12,
    }
}

/// Bits of LinkSpeedActive, LinkSpeedExtActive and LinkSpeedExtActive2. FDR10 is a vendor's and shows as QDR.
fn speed_bits(speed: Speed) -> (u32, u32, u32) {
    match speed {
        Speed::Sdr => (link_speed::SDR, 0, 0),
        Speed::Ddr => (link_speed::DDR, 0, 0),
        Speed::Qdr | Speed::Fdr10 => (link_speed::QDR, 0, 0),
        Speed::Fdr => (link_speed::QDR, link_speed_ext::FDR, 0),
        Speed::Edr => (link_speed::QDR, link_speed_ext::EDR, 0),
        Speed::Hdr => (link_speed::QDR, link_speed_ext::HDR, 0),
        Speed::Ndr => (link_speed::QDR, link_speed_ext::NDR, 0),
        // Tools without LinkSpeedExtActive2 see NDR.
        Speed::Xdr => (link_speed::QDR, link_speed_ext::NDR, link_speed_ext2::XDR),
    }
}

/// Fastest speed, up to the cable's, that both ends have enabled.
pub(super) fn fastest_speed(enabled: (u32, u32, u32), cable: Speed) -> Option<Speed> {
    let (base, extended, extended2) = enabled;
    let possible = Speed::ALL.iter().rev().copied();
    let mut possible = possible
        .filter(|speed| *speed <= cable && (*speed != Speed::Fdr10 || cable == Speed::Fdr10));
    possible.find(|speed| match speed_bits(*speed) {
        (_, _, bit @ 1..) => extended2 & bit != 0,
        (_, bit @ 1.., _) => extended & bit != 0,
        (bit, _, _) => base & bit != 0,
    })
}

pub(super) fn set_active(info: &mut PortInfo, width: Width, speed: Speed) {
    let (speed, extended, extended2) = speed_bits(speed);
    info.link_width_active = width_bit(width);
    info.link_speed_active = Bits::saturating(u64::from(speed));
    info.link_speed_ext_active = Bits::saturating(u64::from(extended));
    info.link_speed_ext2_active = Bits::saturating(u64::from(extended2));
}

fn describe_link(info: &mut PortInfo, kind: &LinkKind) {
    let width = width_bit(kind.width);
    let (speed, extended, extended2) = speed_bits(kind.speed);
    let and_below = |bit: u32| u64::from((bit << 1).saturating_sub(1));
    set_active(info, kind.width, kind.speed);
    info.link_width_supported = width | link_width::X1;
    info.link_width_enabled = info.link_width_supported;
    info.link_speed_supported = Bits::saturating(and_below(speed));
    info.link_speed_enabled = info.link_speed_supported;
    info.link_speed_ext_supported = Bits::saturating(and_below(extended));
    info.link_speed_ext_enabled = Bits::saturating(and_below(extended));
    info.link_speed_ext2_supported = Bits::saturating(u64::from(extended2));
    info.link_speed_ext2_enabled = Bits::saturating(u64::from(extended2));
}

fn describe_fastest(info: &mut PortInfo) {
    let all = u64::from(link_speed::QDR * 2 - 1);
    info.link_width_active = link_width::X4;
    info.link_width_supported = link_width::X1 | link_width::X4;
    info.link_width_enabled = info.link_width_supported;
    info.link_speed_active = Bits::saturating(u64::from(link_speed::SDR));
    info.link_speed_supported = Bits::saturating(all);
    info.link_speed_enabled = Bits::saturating(all);
}
