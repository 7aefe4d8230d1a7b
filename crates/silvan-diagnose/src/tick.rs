//! The tick of PortXmitWait of each port, by its device.
//!
//! | device | tick |
//! |---|---|
//! | Quantum, Quantum-2, Quantum-3 | 8 bytes at the data rate of the port |
//! | SwitchX, Switch-IB, Switch-IB 2 | 32 bytes at the data rate of a lane |
//!
//! NVIDIA's ibdiagnet manual 2.13, "Congestion Assessment on InfiniBand Links". It lists switches only: the port of a
//! host counts as the switch at the other end of its cable.

use silvan_core::counters::EMULATED_TICK;
use silvan_core::{IdVec, PortId, Rate, Span, SwitchId};
use silvan_fabric::import::{DeviceId, ImportedFabric};
use silvan_fabric::{Fabric, Speed};

/// The device that emulated fabrics name.
const EMULATED: DeviceId = DeviceId {
    vendor: 0,
    device: 1,
};

/// Rule for the tick of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TickRule {
    /// 8 bytes at the data rate of the port.
    Port,
    /// 32 bytes at the data rate of a lane.
    Lane,
    /// A time that does not depend on the link.
    Fixed(Span),
}

impl TickRule {
    /// The rule of a switch, by its DeviceID.
    fn of_device(id: DeviceId) -> Option<Self> {
        Some(match id.device {
            // Quantum, Quantum-2, Quantum-3.
            0xd2f0 | 0xd2f2 | 0xd2f4 => Self::Port,
            // SwitchX, Switch-IB, Switch-IB 2.
            0xc738 | 0xcb20 | 0xcf08 => Self::Lane,
            _ if id == EMULATED => Self::Fixed(EMULATED_TICK),
            _ => return None,
        })
    }

    /// The rule of a switch of which only its fastest link is known. Switch-IB and Quantum both have EDR.
    fn of_fastest(speed: Speed) -> Option<Self> {
        match speed {
            Speed::Hdr | Speed::Ndr | Speed::Xdr => Some(Self::Port),
            Speed::Fdr | Speed::Fdr10 => Some(Self::Lane),
            _ => None,
        }
    }

    fn tick(self, rate: Rate, lanes: u64) -> Span {
        let at_rate = |bytes: u64, rate: u64| {
            let ps = u128::from(bytes) * 8 * 1_000_000_000_000 / u128::from(rate.max(1));
            Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
        };
        match self {
            Self::Port => at_rate(8, rate.bits_per_sec()),
            Self::Lane => at_rate(32, rate.bits_per_sec() / lanes.max(1)),
            Self::Fixed(tick) => tick,
        }
    }
}

/// The tick of each port; `None` without a cable, and where neither device nor speed says it.
pub(crate) fn ticks(fabric: &Fabric, imported: &ImportedFabric) -> IdVec<PortId, Option<Span>> {
    let kind = |port: PortId| Some(fabric.links[fabric.ports[port].link?].kind);
    let mut rules: IdVec<SwitchId, Option<TickRule>> = fabric
        .switch_ids()
        .map(|switch| {
            let ports = fabric.switch(switch).ports();
            let fastest = ports.filter_map(|port| Some(kind(port)?.speed)).max();
            fastest.and_then(TickRule::of_fastest)
        })
        .collect();
    for node in &imported.nodes {
        let switch = fabric
            .node_by_name(&node.name)
            .and_then(|id| fabric.nodes[id].as_switch());
        let rule = node.device.and_then(TickRule::of_device);
        if let Some((switch, rule)) = switch.zip(rule) {
            rules[switch] = Some(rule);
        }
    }
    let tick = |port: PortId| {
        let ends = [Some(port), fabric.ports[port].peer];
        let switch = ends
            .into_iter()
            .flatten()
            .find_map(|end| fabric.nodes[fabric.ports[end].node].as_switch())?;
        let kind = kind(port)?;
        Some(rules[switch]?.tick(kind.data_rate(), kind.width.lanes()))
    };
    fabric.ports.ids().map(tick).collect()
}
