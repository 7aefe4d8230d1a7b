//! Conversion of the parsed form to the types of the crates below. The caller adds the place in the text to errors.

mod benchmarks;
pub(crate) mod buffers;
mod choices;
pub(crate) mod classes;
pub(crate) mod control;
pub(crate) mod dcms;
pub(crate) mod engine;
pub(crate) mod fabric;
pub(crate) mod faults;
pub(crate) mod import;
pub(crate) mod kept;
pub(crate) mod levels;
pub(crate) mod limits;
mod linear;
pub(crate) mod packets;
pub(crate) mod pfc;
pub(crate) mod programs;
pub(crate) mod python;
pub(crate) mod rates;
pub(crate) mod run;
pub(crate) mod sharp;
pub(crate) mod sweep;
pub(crate) mod traces;
pub(crate) mod traffic;

use silvan_core::document::{Refusal, suggest};
use silvan_core::{HostId, SwitchId};
use silvan_fabric::{Fabric, HostRole, Node, NodeKind, import as files};

use crate::{KeyPath, ScenarioError};

pub(crate) fn at(path: &str) -> KeyPath {
    KeyPath::from(path)
}

pub(crate) fn refused(error: impl Into<Refusal>) -> ScenarioError {
    refused_in(&KeyPath::ROOT, error)
}

/// An error of a crate below whose keys start at `section`.
pub(crate) fn refused_in(section: &KeyPath, error: impl Into<Refusal>) -> ScenarioError {
    error.into().within(section).into()
}

pub(crate) fn host_named(
    fabric: &Fabric,
    name: &str,
    key: KeyPath,
) -> Result<HostId, ScenarioError> {
    let host = node_named(fabric, name, key.clone(), "host", Node::as_host)?;
    if fabric.host(host).role == Some(HostRole::Aggregation) {
        let message = format!("{name:?} is the aggregation node of a switch");
        return Err(ScenarioError::new(key, message).with_hint("give the name of a host"));
    }
    Ok(host)
}

pub(crate) fn switch_named(
    fabric: &Fabric,
    name: &str,
    key: KeyPath,
) -> Result<SwitchId, ScenarioError> {
    node_named(fabric, name, key, "switch", Node::as_switch)
}

fn node_named<T>(
    fabric: &Fabric,
    name: &str,
    key: KeyPath,
    kind: &str,
    of_kind: impl Fn(&Node) -> Option<T>,
) -> Result<T, ScenarioError> {
    match fabric.node_by_name(name) {
        Some(node) => of_kind(&fabric.nodes[node]).ok_or_else(|| {
            let other = match fabric.nodes[node].kind {
                NodeKind::Switch(_) => "switch",
                NodeKind::Host(_) => "host",
            };
            let error = ScenarioError::new(key, format!("{name:?} is a {other}, not a {kind}"));
            error.with_hint(format!("give the name of a {kind}"))
        }),
        None if name.starts_with(files::NodeKind::AGGREGATION_NAME) => {
            let message = format!(
                "{name:?} is an aggregation node (SHARP), which carries no traffic of hosts"
            );
            let hint = "a file's aggregation nodes are left out; give the name of a host";
            Err(ScenarioError::new(key, message).with_hint(hint))
        }
        None => {
            let nodes = fabric.nodes.iter();
            let known = nodes.filter(|node| of_kind(node).is_some());
            let known = known.map(|node| node.name.as_str());
            let first = known.clone().next().unwrap_or_default();
            let hint = suggest(name, known);
            let hint = hint.unwrap_or_else(|| format!("names look like {first:?}"));
            let message = format!("there is no {kind} named {name:?}");
            Err(ScenarioError::new(key, message).with_hint(hint))
        }
    }
}
