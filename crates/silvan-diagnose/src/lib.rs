//! The diagnosis of a subnet: what `silvan diagnose` runs. It changes no setting: it reads counters twice and compares.
//!
//! - [`topology`] and [`survey`] read a live subnet, [`dumps`] files of the common tools.
//! - [`counters`], [`observation`], [`logs`], [`evidence`] and [`flows`] turn readings into loads, waits and flows.
//! - [`verdict`] finds congestion trees, [`health`] faults of links, routes and congestion control.
//! - [`report`], [`map`], [`managed`] and [`exporter`] show it: values, browser page, manager's sweeps, Prometheus.
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
