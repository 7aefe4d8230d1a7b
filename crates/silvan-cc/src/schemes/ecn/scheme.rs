use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::document::{KeyPath, Parameter, check_choice};

use super::error::EcnError;
use super::marking::{EcnSwitch, Marking};
use super::response::{
    Aimd, Fimd, Fixed, Increase, Lipd, MIN_RATE, MOST_FACTOR, RateTables, Response,
};
use super::source::{EcnSource, RateModel, SourceParameters, WindowLimit};
use crate::parameters;
use crate::schemes::variant::{Cost, FabricFacts, Family, Variant};
use crate::schemes::{Bounds, Declared, Defaults, Scheme, SchemeError, Search, Setup};

/// Response of a source's rate to acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseKind {
    /// The rate is constant; only the window limits the flow.
    Fixed,
    /// Additive increase, multiplicative decrease.
    Aimd,
    /// Fast increase, multiplicative decrease.
    Fimd,
    /// Linear inter-packet delay.
    #[default]
    Lipd,
    /// The rates of the given tables.
    Given,
}

/// Possible rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RatesKind {
    /// Any.
    #[default]
    Continuous,
    /// The rate of the link over 1 + ipd, with an inter-packet delay ipd of 0 to 255 packet times.
    Discrete,
}

parameters! {
    /// Explicit congestion notification with rate control and a window limit (santos2003).
    pub struct Ecn {
        /// Selection of packets to mark.
        marking: Marking {
            default: Marking::default(),
        }
        /// Number of packets that wait for an output when it triggers marking (`output-triggered`,
        /// `input-output-triggered`).
        output_threshold: u16 {
            default: OUTPUT_THRESHOLD,
            unit: "packets",
            bounds: Bounds::Whole(1, u16::MAX as u64),
        }
        /// Reaction of rates to marks.
        response: ResponseKind {
            default: ResponseKind::default(),
        }
        /// Divisor of the rate at a mark (`aimd`, `fimd`), above 1.
        decrease_factor: f64 {
            default: 2.0,
            bounds: Bounds::Above(1.0, MOST_FACTOR),
            source: "m of santos2003 is above 1",
            search: Search::numbers(1.05, 8.0).log().late(),
        }
        /// Possible rates; tables are always discrete.
        rates: RatesKind {
            default: RatesKind::default(),
        }
        /// Smallest rate of a flow as a fraction of its link's. With discrete rates it is 1/256.
        min_rate: f64 {
            default: MIN_RATE,
            bounds: Bounds::Between(0.0, 1.0),
            source: "the rates of santos2003 go from Rmin to Rmax, that of the link",
        }
        /// First rate of a flow as a fraction of its link's.
        initial_rate: f64 {
            default: 1.0,
            bounds: Bounds::From(MIN_RATE, 1.0),
            source: "the rates of santos2003 go from Rmin to Rmax, that of the link",
            search: Search::numbers(0.02, 1.0).log().late(),
        }
        /// True to start a flow with the last rate of the previous flow between its two hosts, instead of the first
        /// rate.
        persistent: bool {
            default: true,
        }
        /// Maximum number of packets of a flow in flight.
        window: u16 {
            default: 1,
            unit: "packets",
            bounds: Bounds::Whole(1, u16::MAX as u64),
            search: Search::whole(1, 512).log(),
        }
        /// Largest window. Above `window`, the window follows the rate: it opens at full rate, and marks halve it
        /// before they lower the rate. Default: `window`.
        #[serde(skip_serializing_if = "Option::is_none")]
        window_max: Option<u16> {
            default: None,
            unit: "packets",
        }
        /// For each inter-packet delay the packets acknowledged without a mark until the next step up, and
        /// the delay after it: 256 pairs (`given`).
        #[serde(skip_serializing_if = "Option::is_none")]
        increase_table: Option<Vec<(u16, u8)>> {
            default: None,
        }
        /// For each inter-packet delay that after a mark: 256 entries (`given`).
        #[serde(skip_serializing_if = "Option::is_none")]
        decrease_table: Option<Vec<u8>> {
            default: None,
        }
    }
}

/// Two full input buffers of the switch of santos2003, Table I.
const OUTPUT_THRESHOLD: u16 = 8;

/// Two counters of an output; the tables of 256 rates; rate, acknowledged packets, window, packets in progress.
const COST: Cost = Cost::new(4, 1024, 7, "acknowledgements");

/// Time of packets in flight that bounds the window: a few round trips of a three-stage fabric.
const WINDOW_S: f64 = 4e-6;

impl Scheme for Ecn {
    type Switch = EcnSwitch;
    type Source = EcnSource;

    const DEFAULTS: Defaults = Defaults {
        carrier_required: Some(
            "the scheme ecn counts the packets in progress by their acknowledgements",
        ),
        ..Defaults::ACK_PER_PACKET
    };

    const FAMILY: Family = Family::Threshold;

    fn variants(facts: &FabricFacts<'_>) -> Vec<Variant> {
        let bytes = WINDOW_S * facts.link_gbps() * 1e9 / 8.0;
        let window = ((bytes / facts.mtu.as_u64() as f64).ceil() as u64).max(2);
        let variant = |name, response| {
            let summary = format!("two counters per output, a window of {window} packets");
            Variant::new(name, summary, COST)
                .own("response", response)
                .own("marking", "proposed-counters")
                .own("window", window)
        };
        vec![variant("ecn+lipd", "lipd"), variant("ecn+fimd", "fimd")]
    }

    fn check(&self) -> Result<(), SchemeError> {
        let parameters = [
            ("increase-table", self.increase_table.is_some()),
            ("decrease-table", self.decrease_table.is_some()),
        ];
        let wanted = self.response == ResponseKind::Given;
        let name = if wanted { "given" } else { "this response" };
        let parameters = parameters.map(|(key, given)| Parameter { key, given, wanted });
        check_choice(&KeyPath::ROOT, name, &parameters)?;
        if self.output_threshold == 0 {
            return self.check_bounds();
        }
        self.source(0).map(|_| ())
    }

    fn idle_reason(&self) -> Option<String> {
        Some("no packet left through a full input buffer".to_owned())
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(EcnSwitch, EcnSource), SchemeError> {
        let switch = EcnSwitch::new(
            self.marking,
            self.output_threshold,
            setup.ports.len(),
            setup.data_vls,
        );
        let source = EcnSource::new(self.source(setup.mtu)?, setup.hosts);
        Ok((switch, source.map_err(|error| refused(&error))?))
    }
}

impl Ecn {
    fn source(&self, mtu: u32) -> Result<SourceParameters, SchemeError> {
        let source = SourceParameters {
            rates: self.rates().map_err(|error| refused(&error))?,
            window: WindowLimit {
                min: self.window,
                max: self.window_max.unwrap_or(self.window),
            },
            initial_rate: self.initial_rate,
            persistent: self.persistent,
            mtu,
        };
        source.validate().map_err(|error| refused(&error))?;
        Ok(source)
    }

    fn rates(&self) -> Result<RateModel, EcnError> {
        let is_discrete = self.rates == RatesKind::Discrete;
        let min_rate = if is_discrete { MIN_RATE } else { self.min_rate };
        let factor = self.decrease_factor;
        let aimd = Aimd::new(factor, min_rate)?;
        let response = match self.response {
            ResponseKind::Fixed => Response::Fixed(Fixed),
            ResponseKind::Aimd => Response::Aimd(aimd),
            ResponseKind::Fimd => Response::Fimd(Fimd::new(factor, min_rate)?),
            ResponseKind::Lipd => Response::Lipd(Lipd::new(min_rate)?),
            ResponseKind::Given => {
                let increase = self.increase_table.iter().flatten();
                let increase: Vec<Increase> = increase
                    .map(|&(packets, next)| Increase { packets, next })
                    .collect();
                let decrease = self.decrease_table.as_deref().unwrap_or_default();
                return RateTables::from_entries(&increase, decrease).map(RateModel::Discrete);
            }
        };
        Ok(if is_discrete {
            RateModel::Discrete(RateTables::compute(&response))
        } else {
            RateModel::Continuous(response)
        })
    }
}

fn refused(error: &EcnError) -> SchemeError {
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
        EcnError::TooManyHosts(_) => ("response", "use a smaller fabric"),
    };
    SchemeError::new(key, error.to_string(), hint)
}
