//! No congestion control.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Scheme, SchemeError, Setup};
use crate::hooks::NoControl;

/// No congestion control. It has no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct None {}

impl Scheme for None {
    type Switch = NoControl;
    type Source = NoControl;

    fn check(&self) -> Result<(), SchemeError> {
        Ok(())
    }

    fn build(&self, _: &Setup<'_>) -> Result<(NoControl, NoControl), SchemeError> {
        Ok((NoControl, NoControl))
    }
}
