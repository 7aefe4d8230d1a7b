//! The diagnosis of a subnet: what `silvan diagnose` runs.
//!
//! Nothing here is set: the diagnosis reads counters twice and compares.
//!
//! - [`counters`]: what a port has counted between two sweeps, and why that may be unknown.
//! - [`observation`]: the load of each port and the part of the time for which it waited.
//! - [`logs`]: which ports mark packets of which flows.
//! - [`evidence`]: what is known of flows besides the loads of ports.
//! - [`flows`]: which host sends how much to which other, estimated from loads and forwarding tables.
//! - [`verdict`]: congestion trees with root, kind of cause, contributors and victims.
//! - [`health`]: findings about links, routes and congestion control, each with what to do.
//! - [`topology`] and [`survey`] read a live subnet by management datagrams, [`dumps`] reads files of the common tools.
//! - [`report`]: all of it as plain values; [`map`]: the subnet and its loads, as the browser page shows them;
//!   [`managed`]: the same from the sweeps of the congestion manager.
//! - [`exporter`]: all of it as metrics for Prometheus.
//!
//! All but [`topology`] and [`survey`] takes values and returns values: no socket, file or clock.

pub mod counters;
pub mod dumps;
pub mod evidence;
mod exchange;
pub mod exporter;
pub mod flows;
pub mod health;
pub mod logs;
pub mod managed;
pub mod map;
pub mod observation;
mod peel;
mod readings;
pub mod report;
pub mod survey;
pub mod tick;
pub mod topology;
pub mod verdict;
