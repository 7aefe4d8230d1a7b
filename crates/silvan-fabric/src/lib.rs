//! Fabrics and their forwarding tables: no packets and no time.
//!
//! A [`FabricBuilder`] or one of the [`generators`] makes a [`Fabric`], [`routing`] computes [`ForwardingTables`],
//! [`check`](check::check) proves them connected and free of deadlock, [`import`] reads and writes files of
//! InfiniBand's tools.
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

mod aggregation;
mod builder;
pub mod check;
mod fabric;
pub mod generators;
pub mod import;
mod link;
pub mod routing;
#[cfg(test)]
mod testing;

pub use aggregation::{AggregationTree, TreeNode, route_to_aggregation};
pub use builder::{Endpoint, FabricBuilder, FabricError, Identity, NodeHandle};
pub use fabric::{Fabric, HostRole, Node, NodeKind, Port};
pub use link::{Cable, CableLimit, Link, LinkKind, ParseLinkError, Speed, Width};
pub use routing::ForwardingTables;
