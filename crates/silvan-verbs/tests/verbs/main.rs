//! Tests of the crate by its public interface.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod chaos;
mod connections;
mod datagrams;
mod header;
mod hostile;
mod law;
mod lifetimes;
mod objects;
mod packets;
mod reliable;
mod states;
mod wire;
mod world;
