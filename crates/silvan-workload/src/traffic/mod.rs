//! Traffic of hosts: [`Traffic::new`] checks a [`TrafficSection`] and builds the
//! [`Workload`](silvan_cc::workload::Workload) to poll.
//!
//! | entry | destination of a message | offered load |
//! |---|---|---|
//! | V node | any other host, uniformly | saturating |
//! | C node | the hotspot of its subset | saturating |
//! | B node | its hotspot with probability p, else any other host | saturating, each class capped by its share of time
//! |
//! | uniform | any other host, uniformly | saturating, Poisson or periodic |
//! | permutation, incast, flow | always the same | saturating, Poisson or periodic |
//! | flows | drawn for each flow, by a pattern | sizes from a distribution; Poisson, periodic or closed loop |
//! | flow-file | as the file says | as the file says |
//! | sequence | each host of a list in turn | closed loop |
//!
//! V, C and B nodes are those of Gran et al., "Exploring the Scope of the InfiniBand Congestion Control Mechanism"
//! (IPDPS 2012), sections III to V and Frame I. The paper leaves open:
//!
//! - Contributors are dealt out evenly, no hotspot in its own subset. If a moving hotspot lands in it, that host sends
//!   to the next subset's; the only hotspot sends none.
//! - Moving hotspots move at one instant; subsets are constant.
//! - A B node's classes are capped with a bounded [run-ahead](Nodes::run_ahead), and a [catch-up](Nodes::catch_up).
//!
//! A message goes in packets of MTU size and a shorter last one. Each source has a queue pair per destination (a B node
//! one per class). A throttled one's message waits, at most [`backlog`](TrafficSection::backlog) of them; a draw beyond
//! is repeated, and released ones go first. Each source of each host has a separate random stream.
//!
//! ```
//! use silvan_workload::traffic::{
//! Environment, Hotspots, Nodes, RoleShare, Traffic, TrafficSection,
//! };
//! use silvan_core::{Bytes, Time};
//!
//! let injection = vec!["13.5 Gbit/s".parse()?; 648];
//! let environment = Environment::unnamed(injection, Bytes::from_bytes(2048), 1);
//! let spec = TrafficSection {
//! nodes: Some(Nodes {
//! v: RoleShare::Fraction(0.2),
//! c: RoleShare::Fraction(0.8),
//! hotspots: Hotspots::Random(8),
//! ..Nodes::default()
//! }),
//! ..TrafficSection::default()
//! };
//! let traffic = Traffic::new(&spec, &environment)?;
//! assert_eq!(traffic.classes(), ["v", "c-hot"]);
//! assert_eq!(traffic.hotspots(Time::ZERO).len(), 8);
//! // Table II of the paper: 2.7 Gbit/s per node from the V nodes alone.
//! assert!((traffic.tmax(Time::ZERO) / 2.7e9 - 1.0).abs() < 0.01);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrivals;
mod build;
mod check;
mod closed_loop;
mod demand;
mod error;
mod finite;
mod fixed;
mod flow_lines;
mod flow_list;
mod flow_targets;
mod hosts;
mod hotspots;
mod kinds;
mod live;
mod offered;
mod on_off;
mod pace;
mod parking;
pub mod rng;
mod roles;
mod scatter;
mod send_queue;
mod share;
mod sizes;
mod spec;
mod supply;
mod values;

pub use arrivals::Arrivals;
pub use closed_loop::{SequenceProgress, SequenceState};
pub use error::{Entry, Reason, TrafficError};
pub use finite::FiniteFlow;
pub use flow_lines::{FlowEnd, FlowFormat, FlowLine, FlowLineError, read_flows};
pub use flow_list::FlowRecord;
pub use hosts::Traffic;
pub use kinds::{
    Flow, FlowFile, FlowPattern, Flows, Incast, Nodes, Pattern, Permutation, Sequence,
    TrafficSection, Uniform,
};
pub use on_off::OnOffMeans;
pub use pace::Spacing;
pub use roles::Role;
pub use sizes::{CdfError, CdfPoint, SizeFile, SizeFileIn, SizeMix, SizeUnit, read_cdf};
pub use spec::{Environment, HostNames, SendQueue, UnknownHost};
pub use values::{HostRef, Hotspots, Load, RankHosts, RoleShare, SeedSource, Selection};
