//! Explicit congestion notification with rate control and a window limit.

use silvan_cc::schemes::ecn::{
    Aimd, EcnError, Fimd, Fixed, Increase, Lipd, MIN_RATE, Marking, RateTables, Rates, Response,
    SourceParameters, WindowLimit,
};

use super::{Parameter, at, check_parameters};
use crate::parsed::{Carrier, EcnMarking, EcnRates, EcnResponse, EcnSection, ScenarioFile, Scheme};
use crate::{KeyPath, ScenarioError};

/// The scheme as a scenario sets it up.
#[derive(Debug, Clone)]
pub struct EcnControl {
    /// Which packets are marked.
    pub marking: Marking,
    /// The sources.
    pub source: SourceParameters,
}

/// Checks the section, and gives what it amounts to if the scheme is in force.
pub(crate) fn build_ecn(file: &ScenarioFile) -> Result<Option<EcnControl>, ScenarioError> {
    let section = &file.control.ecn;
    let key = at("control.ecn");
    let parameters = [
        ("increase-table", section.increase_table.is_some()),
        ("decrease-table", section.decrease_table.is_some()),
    ];
    let wanted = section.response == EcnResponse::Given;
    let name = if wanted { "given" } else { "this response" };
    let parameters = parameters.map(|(key, given)| Parameter { key, given, wanted });
    check_parameters(&key, name, &parameters)?;
    let source = SourceParameters {
        rates: rates(section).map_err(|error| refused(&key, &error))?,
        window: WindowLimit {
            min: section.window,
            max: section.window_max.unwrap_or(section.window),
        },
        initial_rate: section.initial_rate,
        persistent: section.persistent,
        // The engine has checked that it is at most 4 KiB.
        mtu: file.packet.mtu.as_u64() as u32,
    };
    source.validate().map_err(|error| refused(&key, &error))?;
    if file.control.scheme != Scheme::Ecn {
        return Ok(None);
    }
    if file.control.feedback.carrier != Some(Carrier::AckPerPacket) {
        let message = "the scheme ecn counts the packets under way by their acknowledgements";
        let error = ScenarioError::new(at("control.feedback.carrier"), message);
        return Err(error.with_hint("write \"ack-per-packet\", or leave it out"));
    }
    Ok(Some(EcnControl {
        marking: match section.marking {
            EcnMarking::Naive => Marking::Naive,
            EcnMarking::ProposedScan => Marking::ProposedScan,
            EcnMarking::ProposedCounters => Marking::ProposedCounters,
        },
        source,
    }))
}

fn rates(section: &EcnSection) -> Result<Rates, EcnError> {
    let is_discrete = section.rates == EcnRates::Discrete;
    let min_rate = if is_discrete {
        MIN_RATE
    } else {
        section.min_rate
    };
    let factor = section.decrease_factor;
    let aimd = Aimd::new(factor, min_rate)?;
    let response = match section.response {
        EcnResponse::Fixed => Response::Fixed(Fixed),
        EcnResponse::Aimd => Response::Aimd(aimd),
        EcnResponse::Fimd => Response::Fimd(Fimd::new(factor, min_rate)?),
        EcnResponse::Lipd => Response::Lipd(Lipd::new(min_rate)?),
        EcnResponse::Given => {
            let increase = section.increase_table.iter().flatten();
            let increase: Vec<Increase> = increase
                .map(|&(packets, next)| Increase { packets, next })
                .collect();
            let decrease = section.decrease_table.as_deref().unwrap_or_default();
            return RateTables::from_entries(&increase, decrease).map(Rates::Discrete);
        }
    };
    Ok(if is_discrete {
        Rates::Discrete(RateTables::compute(&response))
    } else {
        Rates::Continuous(response)
    })
}

/// A parameter that the scheme refuses, at its key.
fn refused(section: &KeyPath, error: &EcnError) -> ScenarioError {
    let (key, hint) = match error {
        EcnError::DecreaseFactor(_) => ("decrease-factor", "write e.g. 2"),
        EcnError::MinRate(_) => ("min-rate", "1/256 is 0.00390625"),
        EcnError::InitialRate { .. } => ("initial-rate", "write 1 for the rate of the link"),
        EcnError::Window { min: 0, .. } => ("window", "write e.g. 1"),
        EcnError::Window { .. } => ("window-max", "leave it out for a window that stays"),
        EcnError::TableLength { table, .. } | EcnError::TableEntry { table, .. } => {
            let key = match *table {
                "increase" => "increase-table",
                _ => "decrease-table",
            };
            (
                key,
                "silvan.Response(...).tables() in Python computes such tables",
            )
        }
        _ => ("response", "use a smaller fabric"),
    };
    ScenarioError::new(section.key(key), error.to_string()).with_hint(hint)
}
