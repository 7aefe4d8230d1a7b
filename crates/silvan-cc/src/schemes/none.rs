//! No congestion control.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::variant::{Cost, FabricFacts, Family, Variant};
use super::{Declared, Scheme, SchemeError, Setup};
use crate::hooks::NoControl;

/// No congestion control. It has no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct None {}

impl Declared for None {}

impl Scheme for None {
    type Switch = NoControl;
    type Source = NoControl;

    const FAMILY: Family = Family::Threshold;

    fn variants(_: &FabricFacts<'_>) -> Vec<Variant> {
        let cost = Cost::new(0, 0, 0, "none");
        vec![Variant::new("none", "no control", cost)]
    }

    fn build(&self, _: &Setup<'_>) -> Result<(NoControl, NoControl), SchemeError> {
        Ok((NoControl, NoControl))
    }
}
