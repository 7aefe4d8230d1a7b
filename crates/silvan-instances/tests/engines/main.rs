//! Compiled engines against each other, and with schemes from outside. One binary, because each links all engines.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod hook_schemes;
mod leaps;
mod metered;
mod same_results;
