//! Who sends what to whom, when: V, C and B nodes, permutations, incast, explicit flows.
//!
//! A [`TrafficSpec`] says in plain values what the hosts send; [`Traffic::new`] checks it and builds
//! the [`Workload`](silvan_cc::workload::Workload) that the engine polls. Every entry adds a
//! source to each of its hosts, so any mix is possible:
//!
//! | entry | destination of a message | offered load |
//! |---|---|---|
//! | V node | any other host, uniformly | saturating |
//! | C node | the hotspot of its subset | saturating |
//! | B node | its hotspot with probability p, else any other host | saturating, each class capped by its share of time |
//! | uniform | any other host, uniformly | saturating, Poisson or periodic |
//! | permutation, incast, flow | always the same | saturating, Poisson or periodic |
//! | sequence | each host of a list in turn | closed loop: the next message when the last was delivered |
//!
//! The V, C and B nodes are those of Gran et al., "Exploring the Scope of the InfiniBand Congestion
//! Control Mechanism" (IPDPS 2012), sections III to V and Frame I. Where the paper is silent:
//!
//! - A contributor never sends to itself. Contributors are dealt out evenly to the hotspots such that
//!   no hotspot is in its own subset; when hotspots move and one lands on a member of its subset, that
//!   host sends to the next subset's hotspot for the slot. A host that is the only hotspot
//!   there is sends no hotspot traffic.
//! - Moving hotspots all move at the same instants, to hosts drawn again; subsets stay as they are.
//! - The two classes of a B node are capped as Frame I says, with a bounded [`run-ahead`] that
//!   lets chance order the messages and a [`catch-up`] for a class that was held back.
//!
//! [`run-ahead`]: NodesSpec::run_ahead
//! [`catch-up`]: NodesSpec::catch_up
//!
//! # Messages, packets, queue pairs
//!
//! A message (two packets by default) goes to one destination, in order, in packets of MTU size and a
//! shorter last one. Each source has a queue pair of its own per destination (a B node one per
//! class), and queue pairs never block each other inside the host: a message whose queue pair
//! congestion control holds back, be it before its first packet or in the middle, waits there while
//! the host goes on with others, and goes first once it is released. At most
//! [`backlog`](TrafficSpec::backlog) messages wait on one queue pair; a draw beyond that is repeated.
//!
//! # Random numbers
//!
//! Each source of each host has a stream of its own, derived from the seed, the entry and the host.
//!
//! ```
//! use silvan_workload::traffic::{
//!     CatchUp, Environment, Hotspots, NodesSpec, Roles, Traffic, TrafficSpec,
//! };
//! use silvan_core::{Bytes, Sl, Time};
//!
//! let environment = Environment {
//!     injection: vec!["13.5 Gbit/s".parse()?; 648],
//!     mtu: Bytes::from_bytes(2048),
//!     seed: 1,
//! };
//! let spec = TrafficSpec {
//!     nodes: Some(NodesSpec {
//!         roles: Roles::Fractions { v: 0.2, c: 0.8, b: 0.0, idle: 0.0 },
//!         p: 0.0,
//!         hotspots: Hotspots::Random(8),
//!         hotspot_lifetime: None,
//!         catch_up: CatchUp::Unlimited,
//!         run_ahead: None,
//!         placement_seed: None,
//!         message: None,
//!         sl: Sl::ZERO,
//!     }),
//!     ..TrafficSpec::default()
//! };
//! let traffic = Traffic::new(&spec, &environment)?;
//! assert_eq!(traffic.classes(), ["v", "c-hot"]);
//! assert_eq!(traffic.hotspots(Time::ZERO).len(), 8);
//! // Table II of the paper: 2.7 Gbit/s per node from the V nodes alone.
//! assert!((traffic.tmax(Time::ZERO) / 2.7e9 - 1.0).abs() < 0.01);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod check;
mod error;
mod finite;
mod fixed;
mod hosts;
mod hotspots;
mod live;
mod nodes;
mod offered;
mod on_off;
mod pace;
mod parking;
pub mod rng;
mod roles;
mod scatter;
mod send_queue;
mod sequence;
mod share;
mod spec;
mod supply;

pub use error::{Entry, Reason, TrafficError};
pub use finite::FiniteFlow;
pub use hosts::Traffic;
pub use roles::Role;
pub use sequence::{SequenceProgress, SequenceState};
pub use spec::{
    CatchUp, Environment, FlowSpec, Hotspots, IncastSpec, Load, NodesSpec, OnOffSpec, Pattern,
    PermutationSpec, Roles, Selection, SequenceSpec, Spacing, TrafficSpec, UniformSpec, Window,
};
