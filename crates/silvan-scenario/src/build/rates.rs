//! The rates of cables, and the one that control takes theirs to be.

use std::collections::BTreeSet;

use silvan_core::Rate;
use silvan_fabric::{Fabric, Link};

use crate::parsed::ScenarioFile;

/// The data rates that cables have, each once.
pub(crate) fn cable_rates(fabric: &Fabric) -> BTreeSet<Rate> {
    fabric.links.iter().map(Link::data_rate).collect()
}

/// Says so where control computes windows, thresholds and rates for cables that do not exist.
pub(crate) fn warn_of_rate(file: &ScenarioFile, fabric: &Fabric) -> Option<String> {
    let assumed = file.link.kind().data_rate();
    let rates = cable_rates(fabric);
    let is_met = rates.is_empty() || rates.contains(&assumed);
    if is_met || !file.control.scheme.takes_link_rate() {
        return None;
    }
    let rates: Vec<_> = rates.iter().map(Rate::to_string).collect();
    Some(format!(
        "link.speed: {} takes cables to have {assumed}, and none has: set in [link] the rate of those that limit flows, of {}",
        file.control.scheme.as_str(),
        rates.join(", ")
    ))
}
