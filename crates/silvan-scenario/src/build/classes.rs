//! Service levels where the routes take some of their bits.

use silvan_core::Sl;
use silvan_fabric::routing::PathLanes;

use super::at;
use crate::parsed::ScenarioFile;
use crate::{KeyPath, ScenarioError};

/// Checks that every service level that is asked for fits beside the bits of the path.
pub(crate) fn check_classes(
    file: &ScenarioFile,
    lanes: Option<&PathLanes>,
) -> Result<(), ScenarioError> {
    let Some(lanes) = lanes else {
        return Ok(());
    };
    let (classes, bits) = (lanes.classes(), lanes.path_bits());
    let misfit = asked_for(file).find(|(_, sl)| sl.as_u8() >= classes);
    misfit.map_or(Ok(()), |(key, sl)| {
        let message = format!(
            "the routes take {bits} of the 4 bits of a service level, which leaves 0 to {}, not {sl}",
            classes - 1
        );
        let hint = "lower it, or use routes that take fewer bits";
        Err(ScenarioError::new(key, message).with_hint(hint))
    })
}

/// All service levels in a scenario, each with its key.
pub(super) fn asked_for(file: &ScenarioFile) -> impl Iterator<Item = (KeyPath, Sl)> + '_ {
    let traffic = &file.traffic;
    let list = |kind: &'static str, levels: Vec<Sl>| {
        let entries = levels.into_iter().enumerate();
        entries.map(move |(index, sl)| (at("traffic").key(kind).index(index).key("sl"), sl))
    };
    let nodes = traffic.nodes.iter();
    let gpcnet = traffic.gpcnet.iter();
    let hpcc = traffic.hpcc.iter();
    let feedback = file.control.feedback.sl;
    nodes
        .map(|nodes| (at("traffic.nodes.sl"), nodes.sl))
        .chain(list(
            "uniform",
            traffic.uniform.iter().map(|entry| entry.sl).collect(),
        ))
        .chain(list(
            "permutation",
            traffic.permutation.iter().map(|entry| entry.sl).collect(),
        ))
        .chain(list(
            "incast",
            traffic.incast.iter().map(|entry| entry.sl).collect(),
        ))
        .chain(list(
            "flow",
            traffic.flow.iter().map(|entry| entry.sl).collect(),
        ))
        .chain(list(
            "sequence",
            traffic.sequence.iter().map(|entry| entry.sl).collect(),
        ))
        .chain(list(
            "program",
            traffic.program.iter().map(|entry| entry.sl).collect(),
        ))
        .chain(hpcc.map(|section| (at("traffic.hpcc.sl"), section.sl)))
        .chain(
            gpcnet
                .clone()
                .map(|section| (at("traffic.gpcnet.sl"), section.sl)),
        )
        .chain(gpcnet.map(|section| (at("traffic.gpcnet.congestor-sl"), section.congestor_sl)))
        .chain(feedback.map(|sl| (at("control.feedback.sl"), sl)))
}
