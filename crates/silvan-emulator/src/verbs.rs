use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use silvan_core::{NodeId, PortNumber, Time};
use silvan_mad::smp::{PortInfo, link_speed, link_speed_ext, link_speed_ext2};
use silvan_verbs::{DeviceAttributes, PortAttributes, PortState};
use silvan_workload::programs::{Driver, Request};

use crate::subnet::Subnet;

/// A provider of rdma-core that sends all commands by `write()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provider {
    Ipath,
    Hfi1,
}

impl Provider {
    const ALL: [Self; 2] = [Self::Ipath, Self::Hfi1];

    /// The one that the machine has. `RDMAV_DRIVERS` names another one, as for libibverbs.
    pub fn of_machine() -> Self {
        let named = ["RDMAV_DRIVERS", "IBV_DRIVERS"].map(|name| std::env::var(name).ok());
        let named = named.into_iter().flatten().next().unwrap_or_default();
        let listed = |name: &str| {
            Path::new("/etc/libibverbs.d")
                .join(format!("{name}.driver"))
                .exists()
        };
        Self::chosen(&named, listed)
    }

    fn chosen(named: &str, listed: impl Fn(&str) -> bool) -> Self {
        let is_named = |one: &&Self| named.split([':', ';']).any(|name| name == one.name());
        let by_name = Self::ALL.iter().find(is_named);
        let chosen = by_name.or_else(|| Self::ALL.iter().find(|one| listed(one.name())));
        chosen.copied().unwrap_or(Self::Ipath)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ipath => "ipathverbs",
            Self::Hfi1 => "hfi1verbs",
        }
    }

    /// PCI vendor and device, by which libibverbs finds the provider.
    pub fn modalias(self) -> &'static str {
        match self {
            Self::Ipath => "pci:v00001077d00007322sv00001077sd00007322bc0Csc06i00",
            Self::Hfi1 => "pci:v00008086d000024F0sv00008086sd000024F0bc02sc08i00",
        }
    }
}

/// Provider interface without memory shared with the kernel.
pub(crate) const PROVIDER_ABI: &str = "1";
pub(crate) const VERBS_ABI: &str = "6";
pub(crate) const MINOR: u32 = 192;

/// Time in which programs exchanged data.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub wall_s: f64,
    pub simulated_s: f64,
    pub since: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrived(u32),
    /// A packet of it is lost, and one of the other message has arrived.
    Gap {
        token: u32,
        index: u64,
        next: u32,
    },
    Ended(u32),
    Departed(u32),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Fates(Arc<Mutex<Vec<Fate>>>);

impl Fates {
    fn lock(&self) -> MutexGuard<'_, Vec<Fate>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self) -> Vec<Fate> {
        std::mem::take(&mut *self.lock())
    }
}

/// Each arrival ends a step, so that the answer starts at this instant.
impl Driver for Fates {
    fn notify(&mut self, token: u32, _now: Time, requests: &mut Vec<Request>) {
        self.lock().push(Fate::Arrived(token));
        requests.push(Request::Stop);
    }

    fn departed(&mut self, token: u32, _now: Time, _requests: &mut Vec<Request>) {
        self.lock().push(Fate::Departed(token));
    }

    fn gap(&mut self, token: u32, index: u64, next: u32, _now: Time, requests: &mut Vec<Request>) {
        self.lock().push(Fate::Gap { token, index, next });
        requests.push(Request::Stop);
    }

    fn lost(&mut self, token: u32, _now: Time, _requests: &mut Vec<Request>) {
        self.lock().push(Fate::Ended(token));
    }
}

pub(crate) fn device(subnet: &Subnet, node: NodeId) -> DeviceAttributes {
    let info = &subnet.state(node).info;
    // Programs take no vendor for an error: the emulated device has that of its GUID.
    let vendor = match info.vendor_id.get() {
        0 => (info.node_guid.as_u64() >> 40) as u32,
        vendor => vendor,
    };
    DeviceAttributes {
        node_guid: info.node_guid,
        system_guid: info.system_image_guid,
        vendor_id: vendor,
        vendor_part_id: info.device_id.into(),
        hw_version: info.revision,
        firmware: (1, 0, 0),
    }
}

pub(crate) fn port(subnet: &Subnet, node: NodeId) -> PortAttributes {
    let record = subnet.own(node);
    let info = &record.info;
    let guid = subnet.state(node).info.port_guid.as_u64();
    let gid = u128::from(info.gid_prefix) << 64 | u128::from(guid);
    let number = subnet.own_port(node);
    PortAttributes {
        state: match info.port_state.code() {
            2 => PortState::Initialize,
            3 => PortState::Armed,
            4 => PortState::Active,
            _ => PortState::Down,
        },
        physical_state: info.physical_state.code() as u8,
        lid: info.lid,
        lmc: info.lmc.get() as u8,
        sm_lid: info.master_sm_lid,
        sm_sl: info.master_sm_sl.as_u8(),
        max_mtu: info.mtu_cap.code() as u8,
        active_mtu: info.neighbor_mtu.code() as u8,
        max_vl: info.vl_cap.get() as u8,
        active_width: info.link_width_active,
        active_speed: speed(info),
        capabilities: info.capability_mask,
        subnet_timeout: info.subnet_timeout.get() as u8,
        pkeys: p_keys(subnet, node, number),
        gids: vec![gid.to_be_bytes()],
    }
}

fn p_keys(subnet: &Subnet, node: NodeId, number: PortNumber) -> Vec<u16> {
    let number = usize::from(number.as_u8());
    let mut keys = subnet.state(node).ports[number].p_keys.clone();
    keys.resize(subnet.state(node).p_keys_of(number), 0);
    keys
}

fn speed(info: &PortInfo) -> u8 {
    match (
        info.link_speed_ext2_active.get(),
        info.link_speed_ext_active.get(),
        info.link_speed_active.get(),
    ) {
        (link_speed_ext2::XDR, ..) | (_, link_speed_ext::NDR, _) => 128,
        (_, link_speed_ext::HDR, _) => 64,
        (_, link_speed_ext::EDR, _) => 32,
        (_, link_speed_ext::FDR, _) => 16,
        (.., link_speed::QDR) => 4,
        (.., link_speed::DDR) => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::Provider;

    /// Oracle: by hand.
    #[test]
    fn a_machine_shows_the_provider_that_it_has() {
        let cases = [
            ("", vec!["hfi1verbs", "ipathverbs"], Provider::Ipath),
            ("", vec!["hfi1verbs"], Provider::Hfi1),
            ("", vec![], Provider::Ipath),
            ("mlx5;hfi1verbs", vec!["ipathverbs"], Provider::Hfi1),
            ("mlx5", vec!["hfi1verbs"], Provider::Hfi1),
        ];
        for (named, listed, expected) in cases {
            let chosen = Provider::chosen(named, |name| listed.contains(&name));
            assert_eq!(chosen, expected, "{named:?} {listed:?}");
        }
    }
}
