//! The tick of PortXmitWait of each port, by its device and its PortSamplesControl.Tick.
//!
//! The list of devices, [`TickRule`], has switches only. An adapter's Tick decides for its port; where it is not known, the
//! port counts as the switch at the other end of its cable.

use std::collections::BTreeMap;

use silvan_core::{IdVec, NodeId, PortId, Span, SwitchId, TickRule};
use silvan_fabric::import::ImportedFabric;
use silvan_fabric::{Fabric, LinkKind, Speed, Width};
use silvan_subnet::client::Client;
use silvan_subnet::ticks::{TickQuery, read_ticks};
use silvan_subnet::transport::{Transport, TransportError};

/// PortSamplesControl.Tick by port; `None` where it is not known.
pub(crate) type TickCodes = IdVec<PortId, Option<u8>>;

fn kind(fabric: &Fabric, port: PortId) -> Option<LinkKind> {
    Some(fabric.links[fabric.ports[port].link?].kind)
}

/// The rule of a switch of which only its fastest link is known. Switch-IB and Quantum both have EDR.
fn rule_of_fastest(speed: Speed) -> Option<TickRule> {
    match speed {
        Speed::Hdr | Speed::Ndr | Speed::Xdr => Some(TickRule::Port),
        Speed::Fdr | Speed::Fdr10 => Some(TickRule::Lane),
        _ => None,
    }
}

/// The tick of each port; `None` without a cable, and where neither device nor Tick nor speed says it.
pub(crate) fn ticks(
    fabric: &Fabric,
    imported: &ImportedFabric,
    codes: &TickCodes,
) -> IdVec<PortId, Option<Span>> {
    let mut rules: IdVec<SwitchId, Option<TickRule>> = fabric
        .switch_ids()
        .map(|switch| {
            let ports = || fabric.switch(switch).ports();
            let code = ports().find_map(|port| codes[port]).map(TickRule::of_code);
            let fastest = ports().filter_map(|port| Some(kind(fabric, port)?.speed));
            code.or_else(|| rule_of_fastest(fastest.max()?))
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
    let rule_of_switch = |port: PortId| rules[fabric.nodes[fabric.ports[port].node].as_switch()?];
    let tick = |port: PortId| {
        let is_host = fabric.nodes[fabric.ports[port].node].as_host().is_some();
        let own = match (is_host, codes[port]) {
            (true, code) => code.map(TickRule::of_code),
            (false, _) => rule_of_switch(port),
        };
        let rule = own.or_else(|| rule_of_switch(fabric.ports[port].peer?))?;
        let kind = kind(fabric, port)?;
        let (rate, lanes) = (kind.data_rate().bits_per_sec(), kind.width.lanes());
        let code = codes[port].unwrap_or_else(|| rule.code(rate, lanes));
        Some(rule.tick(code, rate, lanes))
    };
    fabric.ports.ids().map(tick).collect()
}

/// Reads the Tick of one port for each node, width and speed.
pub(crate) fn read_codes<T: Transport>(
    client: &mut Client<T>,
    fabric: &Fabric,
) -> Result<TickCodes, TransportError> {
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
