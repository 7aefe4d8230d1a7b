use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schemes::{Bounds, Declared, ParameterInfo, Search};

use super::list::{AdapterSection, PortOverride, SettingChangeEntry, SwitchSection};

/// InfiniBand congestion control (IBA annex A10).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct IbCc {
    /// Detection and marking at the switches.
    pub switch: SwitchSection,
    /// Reaction of the channel adapters.
    pub adapter: AdapterSection,
    /// Ports with settings of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub port: Vec<PortOverride>,
    /// Settings that change during the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub change: Vec<SettingChangeEntry>,
}

impl Declared for IbCc {
    fn parameters() -> Vec<ParameterInfo> {
        let mut parameters = SwitchSection::parameters();
        parameters.extend(AdapterSection::parameters());
        parameters.push(SLOPE);
        parameters
    }
}

const SLOPE: ParameterInfo = ParameterInfo {
    key: "adapter.cct.slope",
    bounds: Bounds::Any,
    source: None,
    search: Some(
        Search::numbers(0.05, 4.0)
            .log()
            .late()
            .beside("adapter.cct.shape"),
    ),
};

/// Shape of the Congestion Control Table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CctShape {
    /// Entry i delays by `slope` times i packet times.
    Linear,
    /// Entry 1 delays by `first` packet times, each further one by `ratio` times the one before.
    Geometric,
    /// The entries are in `entries`.
    Given,
}

/// The Congestion Control Table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CctSection {
    /// Shape of the table.
    pub shape: CctShape,
    /// Delay that each step of the index adds (`linear`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packet times"))]
    pub slope: Option<f64>,
    /// Delay of entry 1 (`geometric`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packet times"))]
    pub first: Option<f64>,
    /// Delay of an entry over that of the one before (`geometric`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// All entries from index 0 on as pairs `[shift, multiplier]`: shift 0 to 3, multiplier 0 to
    /// 16383, the delay being multiplier / 2^shift packet times (`given`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<Vec<(u8, u16)>>,
}

impl Default for CctSection {
    fn default() -> Self {
        Self {
            shape: CctShape::Linear,
            slope: Some(1.0),
            first: None,
            ratio: None,
            entries: None,
        }
    }
}
