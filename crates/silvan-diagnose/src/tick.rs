//! The tick of PortXmitWait by device ([`TickRule`] of a switch) or PortSamplesControl.Tick (adapters); else the next
//! switch's.

use std::collections::BTreeMap;

use silvan_core::{DeviceId, GivenTicks, IdVec, NodeId, PortId, Span, SwitchId, TickRule};
use silvan_fabric::import::ImportedFabric;
use silvan_fabric::{Fabric, LinkKind, Speed, Width};
use silvan_subnet::client::Client;
use silvan_subnet::ticks::{TickQuery, read_ticks};
use silvan_subnet::transport::{Transport, TransportError};

/// Facts that determine the tick of PortXmitWait of each port.
#[derive(Clone, Debug)]
pub struct TickFacts {
    /// The device of each node, where it is known.
    pub devices: IdVec<NodeId, Option<DeviceId>>,
    codes: IdVec<PortId, Option<u8>>,
}

fn kind(fabric: &Fabric, port: PortId) -> Option<LinkKind> {
    Some(fabric.links[fabric.ports[port].link?].kind)
}

/// The fastest link is no proof: Switch-IB and Quantum both have EDR.
fn rule_of_fastest(speed: Speed) -> Option<TickRule> {
    match speed {
        Speed::Hdr | Speed::Ndr | Speed::Xdr => Some(TickRule::Port),
        Speed::Fdr | Speed::Fdr10 => Some(TickRule::Lane),
        _ => None,
    }
}

impl TickFacts {
    pub(crate) fn of_files(fabric: &Fabric, imported: &ImportedFabric) -> Self {
        Self {
            devices: devices(fabric, imported),
            codes: IdVec::filled(None, fabric.ports.len()),
        }
    }

    pub(crate) fn read<T: Transport>(
        client: &mut Client<T>,
        fabric: &Fabric,
        imported: &ImportedFabric,
    ) -> Result<Self, TransportError> {
        Ok(Self {
            devices: devices(fabric, imported),
            codes: read_codes(client, fabric)?,
        })
    }

    /// The tick of each port; `None` without a cable, and where neither user nor device nor Tick nor speed says it.
    pub fn ticks(&self, fabric: &Fabric, given: &GivenTicks) -> IdVec<PortId, Option<Span>> {
        let rules = self.rules(fabric);
        let tick = |port: PortId| {
            let by_device = || {
                let rule = self.rule(fabric, &rules, port)?;
                let kind = kind(fabric, port)?;
                let (rate, lanes) = (kind.data_rate().bits_per_sec(), kind.width.lanes());
                let code = self.codes[port].unwrap_or_else(|| rule.code(rate, lanes));
                Some(rule.tick(code, rate, lanes))
            };
            self.given(fabric, given, port).or_else(by_device)
        };
        fabric.ports.ids().map(tick).collect()
    }

    /// Stated for the device, for the adapter's switch, or for all.
    fn given(&self, fabric: &Fabric, given: &GivenTicks, port: PortId) -> Option<Span> {
        let node = fabric.ports[port].node;
        let own = self.devices[node];
        let by_switch = || {
            let is_host = fabric.nodes[node].as_host().is_some();
            let peer = fabric.ports[port].peer.filter(|_| is_host)?;
            given.of_device(self.devices[fabric.ports[peer].node])
        };
        given
            .of_device(own)
            .or_else(by_switch)
            .or_else(|| given.of(own))
    }

    fn rules(&self, fabric: &Fabric) -> IdVec<SwitchId, Option<TickRule>> {
        let rule = |switch| {
            let device = self.devices[fabric.node_of_switch(switch)];
            let by_code = || {
                let mut ports = fabric.switch(switch).ports();
                ports
                    .find_map(|port| self.codes[port])
                    .map(TickRule::of_code)
            };
            let by_speed = || {
                let ports = fabric.switch(switch).ports();
                let speeds = ports.filter_map(|port| Some(kind(fabric, port)?.speed));
                rule_of_fastest(speeds.max()?)
            };
            let by_device = device.and_then(TickRule::of_device);
            by_device.or_else(by_code).or_else(by_speed)
        };
        fabric.switch_ids().map(rule).collect()
    }

    fn rule(
        &self,
        fabric: &Fabric,
        rules: &IdVec<SwitchId, Option<TickRule>>,
        port: PortId,
    ) -> Option<TickRule> {
        let of_switch = |port: PortId| rules[fabric.nodes[fabric.ports[port].node].as_switch()?];
        let is_host = fabric.nodes[fabric.ports[port].node].as_host().is_some();
        let own = match is_host {
            true => self.codes[port].map(TickRule::of_code),
            false => of_switch(port),
        };
        own.or_else(|| of_switch(fabric.ports[port].peer?))
    }
}

fn devices(fabric: &Fabric, imported: &ImportedFabric) -> IdVec<NodeId, Option<DeviceId>> {
    let mut devices = IdVec::filled(None, fabric.nodes.len());
    for node in &imported.nodes {
        if let Some(id) = fabric.node_by_name(&node.name) {
            devices[id] = node.device;
        }
    }
    devices
}

fn read_codes<T: Transport>(
    client: &mut Client<T>,
    fabric: &Fabric,
) -> Result<IdVec<PortId, Option<u8>>, TransportError> {
    let key = |port: PortId| -> Option<(NodeId, Width, Speed)> {
        let kind = kind(fabric, port)?;
        Some((fabric.ports[port].node, kind.width, kind.speed))
    };
    let query = |port: PortId| {
        let key = key(port)?;
        let node = &fabric.nodes[key.0];
        let query = TickQuery {
            node: key.0.index() as u32,
            lid: node.lid,
            port: node.adapter_port.unwrap_or(fabric.ports[port].number),
        };
        Some((key, query))
    };
    let read: BTreeMap<_, _> = read_ticks(client, fabric.ports.ids().filter_map(query))?;
    let code = |port| read.get(&key(port)?)?.ok();
    Ok(fabric.ports.ids().map(code).collect())
}
