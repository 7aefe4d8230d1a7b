//! The diagnosis of a subnet: what `silvan diagnose` runs.
//!
//! The diagnosis changes no setting: it reads counters twice and compares.
//!
//! - [`counters`]: growth of a port's counters between two sweeps, and reasons for unknown growth.
//! - [`observation`]: the load of each port and the part of the time for which it waited.
//! - [`logs`]: marking ports and the flows of their packets.
//! - [`evidence`]: evidence about flows in addition to the loads of ports.
//! - [`flows`]: flows between hosts, estimated from loads and forwarding tables.
//! - [`verdict`]: congestion trees with root, kind of cause, contributors and victims.
//! - [`health`]: findings about links, routes and congestion control, each with advice.
//! - [`topology`] and [`survey`] read a live subnet by management datagrams, [`dumps`] reads files of the common tools.
//! - [`report`]: all of it as plain values; [`map`]: the subnet and its loads for the browser page; [`managed`]: subnet
//!   and loads from the sweeps of the congestion manager.
//! - [`exporter`]: all of it as metrics for Prometheus.
//!
//! All modules except [`topology`] and [`survey`] are pure: no socket, file or clock.

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
