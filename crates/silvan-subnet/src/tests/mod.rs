//! Requests, the endpoint, and the subnet in memory.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod client;
mod endpoint;
mod key;
mod sweep;
