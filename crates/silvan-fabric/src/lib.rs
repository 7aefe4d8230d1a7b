//! Fabrics and their forwarding tables: generators, routing, checks, import and export.
//!
//! A [`Fabric`] is switches and hosts, their ports, and the cables between ports; it is made by a [`FabricBuilder`],
//! either cable by cable or by one of the [`generators`]. [`ForwardingTables`] say, per switch and destination LID,
//! which port a packet leaves by; [`routing`] computes them. [`check`](check::check) proves that the tables connect
//! every pair of hosts without a loop and without a cycle of channel dependencies, which could deadlock a lossless
//! fabric. [`import`] reads fabrics and tables from the files of InfiniBand's tools, and writes them.
//!
//! The crate has neither packets nor time: the engine has both.
//!
//! ```
//! use silvan_fabric::generators::Generator;
//! use silvan_fabric::check::{CheckOptions, check};
//! use silvan_fabric::{LinkKind, Speed, Width, generators, routing};
//!
//! let cable = LinkKind::new(Width::X4, Speed::Ddr, "2 m".parse()?);
//! let fabric = generators::FatTree648 {}.build(cable)?;
//! let tables = routing::d_mod_k(&fabric)?;
//! let report = check(&fabric, &tables, CheckOptions::default())?;
//! assert_eq!(report.pairs, 648 * 647);
//! assert_eq!(report.max_hops, 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
pub mod check;
mod fabric;
pub mod generators;
pub mod import;
mod link;
pub mod routing;
#[cfg(test)]
mod testing;

pub use builder::{Endpoint, FabricBuilder, FabricError, Identity, NodeHandle};
pub use fabric::{Fabric, HostRole, Node, NodeKind, Port};
pub use link::{Cable, CableLimit, Link, LinkKind, ParseLinkError, Speed, Width};
pub use routing::ForwardingTables;
