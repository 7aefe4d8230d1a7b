//! Aggregation nodes and trees of programs with the algorithm `sharp`.

use std::sync::Arc;

use silvan_core::{Bytes, HostId, Rate, SwitchId};
use silvan_fabric::{AggregationTree, Fabric, FabricError, LinkKind};
use silvan_workload::programs::collective::{Algorithm, Collective, Operation};
use silvan_workload::programs::section::ProgramEntry;
use silvan_workload::programs::trace::TraceSettings;
use silvan_workload::programs::{Placement, Sharp, SharpNode, SharpPlan, Work};

use super::programs::{Surroundings, check_algorithm, rounds, size, span};
use super::{at, refused_in, switch_named};
use crate::parsed::{LinkSection, TrafficSection};
use crate::{KeyPath, ScenarioError};

/// Most segments that a host has under way.
const MOST_TRANSACTIONS: u32 = 1 << 16;

/// The keys of aggregation trees, if a program has any.
pub(crate) fn section_of(traffic: &TrafficSection) -> Option<Sharp> {
    let mut programs = traffic.program.iter();
    let is_used = programs.any(|program| program.algorithm == Some(Algorithm::Sharp));
    is_used.then(|| traffic.sharp.clone().unwrap_or_default())
}

/// Adds aggregation nodes if a program reduces in switches.
pub(crate) fn add_nodes(
    fabric: Fabric,
    traffic: &TrafficSection,
    link: &LinkSection,
) -> Result<Fabric, ScenarioError> {
    let Some(section) = section_of(traffic) else {
        return Ok(fabric);
    };
    let key = at("traffic.sharp").key("switches");
    let switches: Vec<SwitchId> = match &section.switches {
        None => fabric.switch_ids().collect(),
        Some(names) => {
            let names = names.iter().enumerate();
            let mut switches = names
                .map(|(place, name)| switch_named(&fabric, name, key.index(place)))
                .collect::<Result<Vec<_>, _>>()?;
            switches.sort_unstable();
            switches.dedup();
            switches
        }
    };
    let kind = |switch: SwitchId| LinkKind {
        rate: section
            .rate
            .or_else(|| Rate::from_bits_per_sec(fabric.cabled_rate(switch))),
        length: silvan_core::Length::ZERO,
        latency: None,
        ..link.kind()
    };
    let nodes: Vec<_> = switches
        .into_iter()
        .map(|switch| (switch, kind(switch)))
        .collect();
    fabric
        .with_aggregation(&nodes)
        .map_err(|error| match error {
            FabricError::PortCount { name, .. } => {
                let message = format!("{name:?} has no port left for an aggregation node");
                ScenarioError::new(key, message).with_hint("name the switches that have one")
            }
            _ => refused_in(&at("fabric"), &error),
        })
}

pub(super) fn check_sharp(section: Option<&Sharp>, mtu: Bytes) -> Result<(), ScenarioError> {
    let Some(section) = section else {
        return Ok(());
    };
    let key = at("traffic.sharp");
    let zero = [
        ("payload", section.payload, "\"1 KiB\""),
        ("segment", section.segment.unwrap_or(mtu), "\"4 KiB\""),
        ("window", section.window, "\"256 KiB\""),
    ];
    if let Some((name, _, example)) = zero.iter().find(|(_, bytes, _)| bytes.is_zero()) {
        let error = ScenarioError::new(key.key(name), "it is zero");
        return Err(error.with_hint(format!("write e.g. {example}")));
    }
    if !(1..=MOST_TRANSACTIONS).contains(&section.transactions) {
        let message = format!(
            "{} transactions: 1 to {MOST_TRANSACTIONS} are supported",
            section.transactions
        );
        let error = ScenarioError::new(key.key("transactions"), message);
        return Err(error.with_hint("write e.g. 16"));
    }
    if section.payload > mtu {
        let message = format!("{} is more than a packet, {mtu}", section.payload);
        let error = ScenarioError::new(key.key("payload"), message);
        return Err(error.with_hint("write at most packet.mtu"));
    }
    let segment = section.segment.unwrap_or(mtu);
    if section.window < segment {
        let message = format!("{} is less than a segment, {segment}", section.window);
        let error = ScenarioError::new(key.key("window"), message);
        return Err(error.with_hint("write a multiple of segment, e.g. \"256 KiB\""));
    }
    span(Some(section.latency), &key.key("latency"))?;
    Ok(())
}

/// A program over aggregation trees.
pub(super) fn reduced(
    entry: &ProgramEntry,
    operation: Operation,
    settings: &TraceSettings,
    hosts: &[HostId],
    around: &Surroundings<'_>,
    key: &KeyPath,
) -> Result<Work, ScenarioError> {
    let fail = |name: &str, message: String, hint: &str| {
        Err(ScenarioError::new(key.key(name), message).with_hint(hint))
    };
    check_algorithm(operation, Algorithm::Sharp, &key.key("algorithm"))?;
    let (ranks, local) = (settings.places, settings.local);
    if ranks < 2 {
        let message = "one rank has no other to send to".to_owned();
        return fail("hosts", message, "add hosts, or more ranks per host");
    }
    if entry.rails > 1 {
        let message = "aggregation trees have one adapter for each rank".to_owned();
        return fail("rails", message, "give each adapter ranks of its own");
    }
    for (name, given) in [
        ("channels", entry.channels.is_some()),
        ("chunk", entry.chunk.is_some()),
        ("burst", entry.burst.is_some()),
        ("pause", entry.pause.is_some()),
    ] {
        if given {
            let message = "aggregation trees have no such key".to_owned();
            return fail(
                name,
                message,
                "leave it out; traffic.sharp has the sizes of segments",
            );
        }
    }
    if ranks % local > 0 {
        let message = format!("servers of {local} ranks do not divide {ranks} ranks");
        return fail("server-ranks", message, "write a divisor of the ranks");
    }
    let section = around.file.traffic.sharp.clone().unwrap_or_default();
    let bytes = size(entry.bytes.unwrap_or_default(), &key.key("bytes"))?;
    let (iterations, compute, start) = rounds(entry, key)?;
    let (segment, window) =
        section.pieces(bytes.div_ceil(u64::from(local)), around.file.packet.mtu);
    let of_rank = |rank: u32| match entry.placement {
        Placement::Cyclic => hosts[rank as usize % hosts.len()],
        _ => hosts[(rank / entry.ranks_per_host) as usize],
    };
    let mut trees = Vec::new();
    for place in 0..local {
        let members = || (0..ranks).filter(|rank| rank % local == place);
        let switch = |rank: u32| around.fabric.host_attachment(of_rank(rank)).0;
        let mut leaves: Vec<SwitchId> = members().map(switch).collect();
        leaves.sort_unstable();
        leaves.dedup();
        let turn = around.number + place as usize;
        let Some(tree) = AggregationTree::over(around.fabric, &leaves, turn) else {
            let error = ScenarioError::new(
                at("traffic.sharp").key("switches"),
                "no switches with aggregation nodes connect the program's hosts",
            );
            return Err(error.with_hint("name more switches, or leave it out"));
        };
        let nodes = tree.nodes.iter().map(|node| SharpNode {
            host: node.host,
            parent: node.parent,
            ranks: members()
                .filter(|rank| switch(*rank) == node.switch)
                .collect(),
        });
        trees.push(nodes.collect());
    }
    Ok(Work::Sharp {
        plan: Arc::new(SharpPlan {
            collective: Collective {
                algorithm: Algorithm::Sharp,
                local,
                ..Collective::new(operation, bytes)
            },
            trees,
            ranks,
            segment,
            window,
            overhead: around.file.traffic.messaging.unwrap_or_default().overhead,
            latency: section.latency,
            compute,
            iterations,
        }),
        start,
    })
}
