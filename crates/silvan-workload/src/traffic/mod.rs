//! Traffic of hosts: V, C and B nodes, permutations, incast, explicit flows.
//!
//! A [`TrafficSection`] is the description of a scenario. [`Traffic::new`] checks it and builds the
//! [`Workload`](silvan_cc::workload::Workload) that the engine polls. Every entry adds a source to each of its hosts,
//! so any mix is possible:
//!
//! | entry | destination of a message | offered load |
//! |---|---|---|
//! | V node | any other host, uniformly | saturating |
//! | C node | the hotspot of its subset | saturating |
//! | B node | its hotspot with probability p, else any other host | saturating, each class capped by its share of time |
//! | uniform | any other host, uniformly | saturating, Poisson or periodic |
//! | permutation, incast, flow | always the same | saturating, Poisson or periodic |
//! | flows | drawn for each flow, by a pattern | sizes from a distribution; Poisson, periodic or closed loop |
//! | flow-file | as the file says | as the file says |
//! | sequence | each host of a list in turn | closed loop: the next message when the last was delivered |
//!
//! The V, C and B nodes are those of Gran et al., "Exploring the Scope of the InfiniBand Congestion Control Mechanism"
//! (IPDPS 2012), sections III to V and Frame I. Details that the paper leaves open:
//!
//! - A contributor never sends to itself. Contributors are dealt out evenly to the hotspots such that no hotspot is in
//!   its own subset. If a moving hotspot lands on a member of its subset, that host sends to the next subset's hotspot
//!   for the slot. A host that is the only hotspot sends no hotspot traffic.
//! - Moving hotspots all move at the same instants, to newly drawn hosts; subsets are constant.
//! - The two classes of a B node are capped as in Frame I, with a bounded [`run-ahead`] that lets chance order the
//!   messages, and a [`catch-up`] for a class that was held back.
//!
//! [`run-ahead`]: Nodes::run_ahead
//! [`catch-up`]: Nodes::catch_up
//!
//! # Messages, packets, queue pairs
//!
//! A message (two packets by default) goes to one destination, in order, in packets of MTU size and a shorter last one.
//! Each source has a queue pair per destination (a B node has one per class), and queue pairs never block each other
//! inside the host. If congestion control holds a queue pair back, before the message's first packet or in the middle,
//! the message waits while the host sends other messages. Once released, it goes first. At most
//! [`backlog`](TrafficSection::backlog) messages wait on one queue pair; a draw beyond that is repeated.
//!
//! # Random numbers
//!
//! Each source of each host has a separate stream, derived from the seed, the entry and the host.
//!
//! ```
//! use silvan_workload::traffic::{
//!     Environment, Hotspots, Nodes, RoleShare, Traffic, TrafficSection,
//! };
//! use silvan_core::{Bytes, Time};
//!
//! let injection = vec!["13.5 Gbit/s".parse()?; 648];
//! let environment = Environment::unnamed(injection, Bytes::from_bytes(2048), 1);
//! let spec = TrafficSection {
//!     nodes: Some(Nodes {
//!         v: RoleShare::Fraction(0.2),
//!         c: RoleShare::Fraction(0.8),
//!         hotspots: Hotspots::Random(8),
//!         ..Nodes::default()
//!     }),
//!     ..TrafficSection::default()
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
