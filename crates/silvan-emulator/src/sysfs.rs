//! A node's files of `/sys/class/infiniband`, `infiniband_mad` and `infiniband_verbs` (kernel ABI documentation), at
//! the instant of reading.

use std::fmt::Write;

use silvan_core::{Guid, NodeId, PortNumber};
use silvan_mad::performance::{PortCounters, PortCountersExtended, PortRcvConCtrl};
use silvan_mad::smp::{
    PortInfo, capability, link_speed, link_speed_ext, link_speed_ext2, link_width,
};
use silvan_mad::{ATTRIBUTE_BYTE, Class, FieldLocation, MAD_LEN, Method, Packet, Status};

use crate::subnet::{Arrival, Subnet};
use crate::verbs::{self, Provider};

const DEVICE: &str = "silvan0";
const VERBS_DEVICE: &str = "uverbs0";
const GIDS: usize = 8;
/// In words and packets.
const COUNTERS: &[(&str, u16, FieldLocation)] = &[
    (
        "VL15_dropped",
        PortCounters::ID,
        PortCounters::location("vl15_dropped"),
    ),
    (
        "excessive_buffer_overrun_errors",
        PortCounters::ID,
        PortCounters::location("excessive_buffer_overrun_errors"),
    ),
    (
        "link_downed",
        PortCounters::ID,
        PortCounters::location("link_downed"),
    ),
    (
        "link_error_recovery",
        PortCounters::ID,
        PortCounters::location("link_error_recovery"),
    ),
    (
        "local_link_integrity_errors",
        PortCounters::ID,
        PortCounters::location("local_link_integrity_errors"),
    ),
    (
        "multicast_rcv_packets",
        PortCountersExtended::ID,
        PortCountersExtended::location("multicast_rcv_pkts"),
    ),
    (
        "multicast_xmit_packets",
        PortCountersExtended::ID,
        PortCountersExtended::location("multicast_xmit_pkts"),
    ),
    (
        "port_rcv_constraint_errors",
        PortCounters::ID,
        PortCounters::location("rcv_constraint_errors"),
    ),
    (
        "port_rcv_data",
        PortCountersExtended::ID,
        PortCountersExtended::location("rcv_data"),
    ),
    (
        "port_rcv_errors",
        PortCounters::ID,
        PortCounters::location("rcv_errors"),
    ),
    (
        "port_rcv_packets",
        PortCountersExtended::ID,
        PortCountersExtended::location("rcv_pkts"),
    ),
    (
        "port_rcv_remote_physical_errors",
        PortCounters::ID,
        PortCounters::location("rcv_remote_physical_errors"),
    ),
    (
        "port_rcv_switch_relay_errors",
        PortCounters::ID,
        PortCounters::location("rcv_switch_relay_errors"),
    ),
    (
        "port_xmit_constraint_errors",
        PortCounters::ID,
        PortCounters::location("xmit_constraint_errors"),
    ),
    (
        "port_xmit_data",
        PortCountersExtended::ID,
        PortCountersExtended::location("xmit_data"),
    ),
    (
        "port_xmit_discards",
        PortCounters::ID,
        PortCounters::location("xmit_discards"),
    ),
    (
        "port_xmit_packets",
        PortCountersExtended::ID,
        PortCountersExtended::location("xmit_pkts"),
    ),
    (
        "port_xmit_wait",
        PortCounters::ID,
        PortCounters::location("xmit_wait"),
    ),
    (
        "symbol_error",
        PortCounters::ID,
        PortCounters::location("symbol_errors"),
    ),
    (
        "unicast_rcv_packets",
        PortCountersExtended::ID,
        PortCountersExtended::location("unicast_rcv_pkts"),
    ),
    (
        "unicast_xmit_packets",
        PortCountersExtended::ID,
        PortCountersExtended::location("unicast_xmit_pkts"),
    ),
];
/// Names of a current adapter driver: received FECNs, handled notifications.
const HARDWARE_COUNTERS: &[(&str, u16, FieldLocation)] = &[
    (
        "np_ecn_marked_roce_packets",
        PortRcvConCtrl::ID,
        PortRcvConCtrl::location("fecn"),
    ),
    (
        "rp_cnp_handled",
        PortRcvConCtrl::ID,
        PortRcvConCtrl::location("becn"),
    ),
];

pub(crate) struct Sysfs<'a> {
    pub subnet: &'a mut Subnet,
    pub node: NodeId,
}

impl Sysfs<'_> {
    /// 0 of a switch, from 1 of an adapter.
    fn ports(&self) -> Vec<u8> {
        let state = self.subnet.state(self.node);
        match state.switch {
            Some(_) => vec![0],
            None => (1..=state.info.num_ports).collect(),
        }
    }

    fn info(&self, port: u8) -> PortInfo {
        let node = self.subnet.node_with_port(self.node, PortNumber::new(port));
        let record = &self.subnet.state(node).ports[usize::from(port)];
        let mut info = record.info;
        if record.is_sm {
            info.capability_mask |= capability::IS_SM;
        }
        info
    }

    fn p_keys(&self, port: u8) -> usize {
        self.subnet.state(self.node).p_keys_of(usize::from(port))
    }

    pub fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let device = format!("infiniband/{DEVICE}");
        let names = [
            "board_id",
            "fw_ver",
            "hca_type",
            "hw_rev",
            "node_desc",
            "node_guid",
            "node_type",
            "sys_image_guid",
        ];
        files.extend(names.map(|name| format!("{device}/{name}")));
        for port in self.ports() {
            let folder = format!("{device}/ports/{port}");
            let names = [
                "cap_mask",
                "lid",
                "lid_mask_count",
                "link_layer",
                "phys_state",
                "rate",
                "sm_lid",
                "sm_sl",
                "state",
            ];
            files.extend(names.map(|name| format!("{folder}/{name}")));
            files.extend((0..GIDS).map(|gid| format!("{folder}/gids/{gid}")));
            files.extend((0..GIDS).map(|gid| format!("{folder}/gid_attrs/types/{gid}")));
            files.extend((0..self.p_keys(port)).map(|key| format!("{folder}/pkeys/{key}")));
            let counters = COUNTERS.iter();
            files.extend(counters.map(|(name, ..)| format!("{folder}/counters/{name}")));
            let counters = HARDWARE_COUNTERS.iter().map(|(name, ..)| *name);
            let counters = counters.chain(["lifespan"]);
            files.extend(counters.map(|name| format!("{folder}/hw_counters/{name}")));
        }
        files.push("infiniband_mad/abi_version".to_owned());
        files.push("infiniband_verbs/abi_version".to_owned());
        if self.has_verbs() {
            files.push(format!("{device}/device/modalias"));
            let names = ["abi_version", "dev", "device/modalias", "ibdev"];
            files.extend(names.map(|name| format!("infiniband_verbs/{VERBS_DEVICE}/{name}")));
        }
        for (number, _) in self.ports().iter().enumerate() {
            for kind in ["umad", "issm"] {
                let names = ["dev", "ibdev", "port"];
                files.extend(names.map(|name| format!("infiniband_mad/{kind}{number}/{name}")));
            }
        }
        files
    }

    pub fn has_verbs(&self) -> bool {
        self.subnet.state(self.node).switch.is_none()
    }

    pub fn port_of_device(&self, number: u8) -> Option<u8> {
        self.ports().get(usize::from(number)).copied()
    }

    pub fn text(&mut self, path: &str) -> Option<String> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let mut text = match parts.as_slice() {
            ["infiniband", device, rest @ ..] if *device == DEVICE => match rest {
                [name] => self.of_device(name)?,
                ["device", "modalias"] if self.has_verbs() => {
                    Provider::of_machine().modalias().to_owned()
                }
                ["ports", port, rest @ ..] => {
                    let port: u8 = port.parse().ok()?;
                    self.ports().contains(&port).then_some(())?;
                    self.of_port(port, rest)?
                }
                _ => return None,
            },
            ["infiniband_mad", "abi_version"] => "5".to_owned(),
            ["infiniband_verbs", "abi_version"] => verbs::VERBS_ABI.to_owned(),
            ["infiniband_verbs", device, rest @ ..] if *device == VERBS_DEVICE => {
                self.has_verbs().then_some(())?;
                match rest {
                    ["abi_version"] => verbs::PROVIDER_ABI.to_owned(),
                    ["dev"] => format!("231:{}", verbs::MINOR),
                    ["device", "modalias"] => Provider::of_machine().modalias().to_owned(),
                    ["ibdev"] => DEVICE.to_owned(),
                    _ => return None,
                }
            }
            ["infiniband_mad", device, name] => self.of_mad_device(device, name)?,
            _ => return None,
        };
        text.push('\n');
        Some(text)
    }

    fn of_device(&self, name: &str) -> Option<String> {
        let state = self.subnet.state(self.node);
        Some(match name {
            "node_type" if state.switch.is_some() => "2: SWITCH".to_owned(),
            "node_type" => "1: CA".to_owned(),
            "node_guid" => groups(&[state.info.node_guid]),
            "sys_image_guid" => groups(&[state.info.system_image_guid]),
            "fw_ver" => "1.0.0".to_owned(),
            "hw_rev" => format!("{:x}", state.info.revision),
            "hca_type" => "silvan".to_owned(),
            "board_id" => "silvan".to_owned(),
            "node_desc" => state.description.text().into_owned(),
            _ => return None,
        })
    }

    fn of_port(&mut self, port: u8, rest: &[&str]) -> Option<String> {
        let info = self.info(port);
        Some(match rest {
            ["state"] => {
                let code = info.port_state.code();
                let names = ["NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"];
                format!("{code}: {}", names.get(code as usize)?)
            }
            ["phys_state"] => {
                let code = info.physical_state.code();
                let names = [
                    "<unknown>",
                    "Sleep",
                    "Polling",
                    "Disabled",
                    "PortConfigurationTraining",
                    "LinkUp",
                    "LinkErrorRecovery",
                    "Phy Test",
                ];
                format!("{code}: {}", names.get(code as usize)?)
            }
            ["rate"] => rate(&info),
            ["link_layer"] => "InfiniBand".to_owned(),
            ["lid"] => format!("0x{:x}", info.lid.as_u16()),
            ["lid_mask_count"] => info.lmc.get().to_string(),
            ["sm_lid"] => format!("0x{:x}", info.master_sm_lid.as_u16()),
            ["sm_sl"] => info.master_sm_sl.as_u8().to_string(),
            ["cap_mask"] => format!("0x{:08x}", info.capability_mask),
            ["gids", index] => {
                let index: usize = index.parse().ok()?;
                let node = self.subnet.node_with_port(self.node, PortNumber::new(port));
                let guid = self.subnet.state(node).info.port_guid;
                match index {
                    0 => groups(&[Guid::new(info.gid_prefix), guid]),
                    1..GIDS => groups(&[Guid::new(0); 2]),
                    _ => return None,
                }
            }
            ["gid_attrs", "types", index] => {
                let index: usize = index.parse().ok()?;
                (index < GIDS).then_some("IB/RoCE v1")?.to_owned()
            }
            ["pkeys", index] => {
                let index: usize = index.parse().ok()?;
                (index < self.p_keys(port)).then_some(())?;
                let node = self.subnet.node_with_port(self.node, PortNumber::new(port));
                let keys = &self.subnet.state(node).ports[usize::from(port)].p_keys;
                format!("0x{:04x}", keys.get(index).copied().unwrap_or(0))
            }
            ["hw_counters", "lifespan"] => "10".to_owned(),
            ["counters", name] => self.counter(port, COUNTERS, name)?,
            ["hw_counters", name] => self.counter(port, HARDWARE_COUNTERS, name)?,
            _ => return None,
        })
    }

    fn of_mad_device(&self, device: &str, name: &str) -> Option<String> {
        let (number, minor) = match device.strip_prefix("umad") {
            Some(number) => (number, 0),
            None => (device.strip_prefix("issm")?, 64),
        };
        let number: u8 = number.parse().ok()?;
        let port = self.port_of_device(number)?;
        Some(match name {
            "dev" => format!("231:{}", minor + u32::from(number)),
            "ibdev" => DEVICE.to_owned(),
            "port" => port.to_string(),
            _ => return None,
        })
    }

    fn counter(
        &mut self,
        port: u8,
        counters: &[(&str, u16, FieldLocation)],
        name: &str,
    ) -> Option<String> {
        let (_, attribute, location) = counters.iter().find(|counter| counter.0 == name)?;
        let mut mad = [0; MAD_LEN];
        mad[..4].copy_from_slice(&[
            1,
            Class::PERFORMANCE.code() as u8,
            1,
            Method::GET.code() as u8,
        ]);
        mad[16..18].copy_from_slice(&attribute.to_be_bytes());
        mad[ATTRIBUTE_BYTE + 1] = port;
        let at = Arrival {
            node: self.subnet.node_with_port(self.node, PortNumber::new(port)),
            port: PortNumber::new(port),
        };
        self.subnet.react(at, &mut mad);
        (Packet::new(mad).status() == Status::OK).then_some(())?;
        Some(location.read(&mad[ATTRIBUTE_BYTE..], 0).to_string())
    }
}

/// Groups of 16 bits, as the kernel prints GUIDs and GIDs.
fn groups(numbers: &[Guid]) -> String {
    let mut text = String::new();
    for bytes in numbers.iter().flat_map(|guid| {
        let bytes = guid.as_u64().to_be_bytes();
        [0, 2, 4, 6].map(|at| [bytes[at], bytes[at + 1]])
    }) {
        if !text.is_empty() {
            text.push(':');
        }
        let _ = write!(text, "{:02x}{:02x}", bytes[0], bytes[1]);
    }
    text
}

/// In Gbit/s, with width and lane speed.
fn rate(info: &PortInfo) -> String {
    // Tenths of Gbit/s per lane.
    let (lane, name) = match (
        info.link_speed_ext2_active.get(),
        info.link_speed_ext_active.get(),
        info.link_speed_active.get(),
    ) {
        (link_speed_ext2::XDR, ..) => (2000, "XDR"),
        (_, link_speed_ext::NDR, _) => (1000, "NDR"),
        (_, link_speed_ext::HDR, _) => (500, "HDR"),
        (_, link_speed_ext::EDR, _) => (250, "EDR"),
        (_, link_speed_ext::FDR, _) => (140, "FDR"),
        (.., link_speed::QDR) => (100, "QDR"),
        (.., link_speed::DDR) => (50, "DDR"),
        _ => (25, "SDR"),
    };
    let width = match info.link_width_active {
        link_width::X1 => 1,
        link_width::X2 => 2,
        link_width::X8 => 8,
        link_width::X12 => 12,
        _ => 4,
    };
    let tenths = lane * width;
    let half = if tenths % 10 == 5 { ".5" } else { "" };
    format!("{}{half} Gb/sec ({width}X {name})", tenths / 10)
}
