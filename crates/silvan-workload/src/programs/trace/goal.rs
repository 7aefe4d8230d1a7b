//! GOAL schedules.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::decode_text;

use super::{TraceError, TraceFormat, TraceSettings, binary_goal, only};
use crate::programs::goal;
use crate::programs::schedule::Schedule;

/// GOAL schedules, as text or as `txt2bin` writes them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Goal {}

impl TraceFormat for Goal {
    fn import(&self, files: Vec<Vec<u8>>, _groups: Option<&str>) -> Result<String, TraceError> {
        let bytes = only(files);
        match binary_goal::is_binary(&bytes) {
            true => Ok(goal::write(&binary_goal::parse(&bytes)?)),
            false => Ok(decode_text(bytes)),
        }
    }

    fn schedules(
        &self,
        text: &str,
        _settings: &TraceSettings,
    ) -> Result<Vec<Arc<Schedule>>, TraceError> {
        goal::parse(text)
    }
}
