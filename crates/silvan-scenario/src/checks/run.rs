use silvan_core::Span;

use super::at;
use crate::ScenarioError;
use crate::parsed::ScenarioFile;

/// The longest run, 50 days: the engine's clock ends after 2^62 ps, about 53.
const LONGEST: Span = Span::from_secs(50 * 24 * 3_600);

pub(crate) fn check_run(file: &ScenarioFile) -> Result<(), ScenarioError> {
    let (warm_up, duration) = (file.run.warm_up, file.run.duration);
    if duration.is_zero() {
        let error = ScenarioError::new(at("run.duration"), "it is zero");
        return Err(error.with_hint("write e.g. \"10 ms\""));
    }
    if duration > LONGEST {
        let message = format!("{duration} is longer than the clock runs, {LONGEST}");
        let error = ScenarioError::new(at("run.duration"), message);
        return Err(error.with_hint("write e.g. \"10 ms\""));
    }
    if warm_up >= duration {
        let message = format!("{warm_up} is not shorter than the duration, {duration}");
        let error = ScenarioError::new(at("run.warm-up"), message);
        return Err(error.with_hint("shorten it, or lengthen run.duration"));
    }
    if let Some(interval) = file.probe.interval {
        check_interval(interval, warm_up, duration)?;
    }
    let trees = file.probe.trees.as_ref();
    if let Some(interval) = trees.and_then(|trees| trees.interval) {
        if interval.is_zero() || interval > duration {
            let message = match interval.is_zero() {
                true => "it is zero".to_owned(),
                false => format!("{interval} is longer than the duration, {duration}"),
            };
            let error = ScenarioError::new(at("probe.trees.interval"), message);
            return Err(error.with_hint("write e.g. \"100 us\", or leave it out"));
        }
    }
    if let Some(reads) = trees.and_then(|trees| trees.reads_per_hop) {
        if !(reads > 0.0 && reads.is_finite()) {
            let message = format!("{reads} is not a number above 0");
            let error = ScenarioError::new(at("probe.trees.reads-per-hop"), message);
            return Err(error.with_hint("write e.g. 0.2, or leave it out"));
        }
    }
    Ok(())
}

fn check_interval(interval: Span, warm_up: Span, duration: Span) -> Result<(), ScenarioError> {
    if interval.is_zero() {
        let error = ScenarioError::new(at("probe.interval"), "it is zero");
        return Err(error.with_hint("write e.g. \"100 us\", or leave it out"));
    }
    for (what, span) in [("duration", duration), ("warm-up", warm_up)] {
        if span.as_ps() % interval.as_ps() != 0 {
            let message = format!("{interval} does not divide the {what}, {span}");
            let error = ScenarioError::new(at("probe.interval"), message);
            return Err(error.with_hint("leave it out for 100 to 1,000 samples"));
        }
    }
    Ok(())
}
