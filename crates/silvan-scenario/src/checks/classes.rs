use silvan_core::Sl;
use silvan_fabric::routing::PathLanes;

use super::at;
use crate::parsed::ScenarioFile;
use crate::{KeyPath, ScenarioError};

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

pub(super) fn asked_for(file: &ScenarioFile) -> impl Iterator<Item = (KeyPath, Sl)> + '_ {
    let traffic = &file.traffic;
    let entries = traffic.levels().into_iter();
    let entries = entries.map(|(entry, key, sl)| (entry.key().key(key), sl));
    let programs = traffic.program.iter().enumerate();
    let programs =
        programs.map(|(index, entry)| (at("traffic.program").index(index).key("sl"), entry.sl));
    let gpcnet = traffic.gpcnet.iter().flat_map(|section| {
        [
            (at("traffic.gpcnet.sl"), section.sl),
            (at("traffic.gpcnet.congestor-sl"), section.congestor_sl),
        ]
    });
    let hpcc = traffic.hpcc.iter();
    let feedback = file.control.feedback.sl;
    entries
        .chain(programs)
        .chain(hpcc.map(|section| (at("traffic.hpcc.sl"), section.sl)))
        .chain(gpcnet)
        .chain(feedback.map(|sl| (at("control.feedback.sl"), sl)))
}
