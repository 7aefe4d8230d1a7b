//! Proactive flow throttling.

use silvan_cc::schemes::pft::{PftError, PftParameters, Sending, Shift, Spell, Threshold};
use silvan_core::Bytes;

use super::at;
use crate::ScenarioError;
use crate::parsed::{PftInterval, PftThreshold, ScenarioFile, Scheme};

/// Checks the section, and gives what it amounts to if the scheme is in force.
pub(crate) fn build_pft(file: &ScenarioFile) -> Result<Option<PftParameters>, ScenarioError> {
    let section = &file.control.pft;
    let parameters = PftParameters {
        threshold: match section.threshold {
            PftThreshold::Fixed => Threshold::Fixed,
            PftThreshold::Average => Threshold::Average {
                enter: Spell {
                    window: section.enter_window,
                    count: section.enter_count,
                },
                escape: Spell {
                    window: section.escape_window,
                    count: section.escape_count,
                },
            },
        },
        enter: section.enter,
        escape: section.escape,
        shift: Shift {
            m: section.m,
            n: section.n,
            k: section.k,
        },
        sending: match section.interval {
            PftInterval::Fixed => Sending::Interval,
            PftInterval::Random => Sending::Random {
                bits: section.random_bits,
            },
        },
        flit_time: file.link.kind().data_rate().span_for(section.flit),
        credit_bytes: credit_bytes(section.credit)?,
    };
    parameters
        .validate()
        .map_err(|error| refused(error, &parameters))?;
    let in_force = matches!(file.control.scheme, Scheme::Pft | Scheme::IbCcPft);
    Ok(in_force.then_some(parameters))
}

fn credit_bytes(credit: Bytes) -> Result<u32, ScenarioError> {
    u32::try_from(credit.as_u64()).map_err(|_| {
        let message = format!("{credit} is not below 4 GiB");
        ScenarioError::new(at("control.pft.credit"), message).with_hint("write e.g. \"64 B\"")
    })
}

/// A parameter that the scheme refuses, at its key.
fn refused(error: PftError, parameters: &PftParameters) -> ScenarioError {
    let (key, hint) = match error {
        PftError::Shift(bits) if bits == parameters.shift.m => ("m", "write e.g. 18"),
        PftError::Shift(_) => ("n", "write e.g. 8"),
        PftError::RandomBits(_) => ("random-bits", "write 32"),
        PftError::EscapeAboveEnter { .. } => (
            "escape",
            "lower it to enter or less, or write threshold = \"average\"",
        ),
        PftError::Spell(spell) => match parameters.threshold {
            Threshold::Average { enter, .. } if enter == spell => {
                ("enter-count", "write a number from 1 to enter-window")
            }
            _ => ("escape-count", "write a number from 1 to escape-window"),
        },
        PftError::NoCredit => ("credit", "write e.g. \"64 B\""),
        _ => ("flit", "write e.g. \"16 B\""),
    };
    ScenarioError::new(at("control.pft").key(key), error.to_string()).with_hint(hint)
}
