use std::str::FromStr;

use silvan_core::{DeviceId, PortId, Span, SwitchId, TickRule};
use silvan_fabric::{Fabric, Speed};
use silvan_mad::smp::ActiveLink;

use super::Subnet;

/// Devices that the switches of a fabric show in NodeInfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchDevices {
    /// One device at all switches.
    Same(DeviceId),
    /// The device that has the speed of the switch's fastest link; up to QDR the emulated one.
    BySpeed,
}

impl Default for SwitchDevices {
    fn default() -> Self {
        Self::Same(DeviceId::EMULATED)
    }
}

impl SwitchDevices {
    const BY_SPEED: &str = "by-speed";

    pub(super) fn of(self, fabric: &Fabric, switch: SwitchId) -> DeviceId {
        let fastest = || {
            let links = fabric.switch(switch).ports();
            let links = links.filter_map(|port| fabric.ports[port].link);
            links.map(|link| fabric.links[link].kind.speed).max()
        };
        match (self, fastest()) {
            (Self::Same(device), _) => device,
            (Self::BySpeed, Some(Speed::Xdr)) => DeviceId::QUANTUM_3,
            (Self::BySpeed, Some(Speed::Ndr)) => DeviceId::QUANTUM_2,
            (Self::BySpeed, Some(Speed::Hdr)) => DeviceId::QUANTUM,
            (Self::BySpeed, Some(Speed::Edr)) => DeviceId::SWITCH_IB_2,
            (Self::BySpeed, Some(Speed::Fdr | Speed::Fdr10)) => DeviceId::SWITCH_X,
            (Self::BySpeed, _) => DeviceId::EMULATED,
        }
    }
}

/// A text that names no devices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are no devices {text:?}: by-speed, {known} are supported")]
pub struct UnknownDevices {
    text: String,
    known: String,
}

impl FromStr for SwitchDevices {
    type Err = UnknownDevices;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == Self::BY_SPEED {
            return Ok(Self::BySpeed);
        }
        let found = DeviceId::named(text);
        found.map(Self::Same).ok_or_else(|| UnknownDevices {
            text: text.to_owned(),
            known: DeviceId::NAMES.map(|(name, _)| name).join(", "),
        })
    }
}

impl Subnet {
    fn tick_rule(&self, port: PortId) -> TickRule {
        let ends = [Some(port), self.fabric.ports[port].peer];
        let mut nodes = ends
            .into_iter()
            .flatten()
            .map(|end| self.fabric.ports[end].node);
        let switch = nodes.find(|&node| self.fabric.nodes[node].as_switch().is_some());
        let device = switch.map(|node| self.state(node).info.device());
        device
            .and_then(TickRule::of_device)
            .unwrap_or(TickRule::Emulated)
    }

    fn active_link(&self, port: PortId) -> ActiveLink {
        self.record(port).info.active_link()
    }

    pub fn tick_code(&self, port: PortId) -> u8 {
        let link = self.active_link(port);
        self.tick_rule(port)
            .code(link.data_bits_per_second(), link.lanes)
    }

    pub fn tick(&self, port: PortId) -> Span {
        let link = self.active_link(port);
        let rate = link.data_bits_per_second();
        self.tick_rule(port)
            .tick(self.tick_code(port), rate, link.lanes)
    }
}
