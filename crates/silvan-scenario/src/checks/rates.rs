use std::collections::BTreeSet;

use silvan_core::Rate;
use silvan_fabric::{Fabric, Link};

use crate::parsed::ScenarioFile;

pub(crate) fn cable_rates(fabric: &Fabric) -> BTreeSet<Rate> {
    fabric.links.iter().map(Link::data_rate).collect()
}

pub(crate) fn warn_of_rate(file: &ScenarioFile, fabric: &Fabric) -> Option<String> {
    let assumed = file.link.kind().data_rate();
    let rates = cable_rates(fabric);
    let is_met = rates.is_empty() || rates.contains(&assumed);
    if is_met || !file.control.scheme.scheme().takes_link_rate() {
        return None;
    }
    let rates: Vec<_> = rates.iter().map(Rate::to_string).collect();
    Some(format!(
        "link.speed: {} is set up for cables of {assumed}, and no cable has this rate: set the rate of the cables that limit flows ({})",
        file.control.scheme.name(),
        rates.join(", ")
    ))
}
