//! Linear forwarding tables and the algorithms that fill them.
//!
//! An algorithm is a module, whose keys implement [`RoutingAlgorithm`], and a line in the list
//! `register!`. Minimal routes to switches' LIDs, for management, count in no balance, and
//! [`check`](crate::check) does not follow them.

mod algorithm;
mod alternatives;
mod around;
mod computed;
mod distance;
mod explicit;
mod lanes;
mod levels;
mod main_paths;
mod paths;
mod refusal;
mod sl_to_vl;
mod spread;

pub use algorithm::{Routed, RoutingAlgorithm, RoutingInput};
pub use alternatives::{Alternatives, minimal_alternatives};
pub use around::lead_around;
pub use computed::ComputedRoutes;
pub(crate) use computed::{Hierarchy, Parts};
pub use d_mod_k::{computed_d_mod_k, d_mod_k};
pub use dimension_order::{computed_dimension_order, dimension_order};
pub(crate) use distance::SwitchGraph;
pub use explicit::{ExplicitTable, explicit};
pub use fat_tree::fat_tree;
pub use lanes::PathLanes;
pub use layered::layered_min_hop;
pub use levels::PathServiceLevels;
pub use min_hop::min_hop_balanced;
pub use paths::{LaneSteps, PathChoice, Waypoints};
pub(crate) use paths::{equal_kinds, kinds_between};
pub use sl_to_vl::{ParsePortNumbersError, PortNumbers, SlToVlGroup, SlToVlTables, Vls};
pub use up_down::up_down;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use silvan_core::{HostId, IdVec, Lid, PortNumber, SwitchId};
use thiserror::Error;

use crate::Fabric;

macro_rules! register {
    (
        algorithms {
            $($module:ident::$algorithm:ident = $name:literal, $summary:literal;)*
        }
        given {
            $($form:ident = $form_name:literal, $form_summary:literal;)*
        }
    ) => {
        $(
            mod $module;
            pub use $module::$algorithm;

            impl $algorithm {
                /// Name of the algorithm in scenarios.
                pub const NAME: &'static str = $name;
            }

            impl From<$algorithm> for Routing {
                fn from(algorithm: $algorithm) -> Self {
                    Self::$algorithm(algorithm)
                }
            }
        )*

        /// Name of the way to compute forwarding tables.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[schemars(rename = "Routing")]
        pub enum RoutingName {
            $(
                #[doc = $summary]
                #[serde(rename = $name)]
                $algorithm,
            )*
            $(
                #[doc = $form_summary]
                #[serde(rename = $form_name)]
                $form,
            )*
        }

        impl RoutingName {
            /// All of them, in the order of their registration.
            pub const ALL: &[Self] = &[$(Self::$algorithm,)* $(Self::$form),*];

            /// Returns the name in scenarios.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$algorithm => $name,)*
                    $(Self::$form => $form_name,)*
                }
            }

            /// The JSON schema of its keys.
            pub fn schema(self) -> Value {
                match self {
                    $(Self::$algorithm => schemars::schema_for!($algorithm).into(),)*
                    $(Self::$form => Value::Bool(true),)*
                }
            }

            /// Reads its keys from a table, in which other keys are ignored.
            ///
            /// # Errors
            /// A missing key or a wrong value.
            pub fn read<'de, D: Deserializer<'de>>(self, table: D) -> Result<Routing, D::Error> {
                match self {
                    $(Self::$algorithm => {
                        $algorithm::deserialize(table).map(Routing::$algorithm)
                    })*
                    $(Self::$form => Ok(Routing::$form),)*
                }
            }
        }

        /// Source of the forwarding tables: an algorithm with its keys, or given tables.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(tag = "routing")]
        pub enum Routing {
            $(
                #[doc = $summary]
                #[serde(rename = $name)]
                $algorithm($algorithm),
            )*
            $(
                #[doc = $form_summary]
                #[serde(rename = $form_name)]
                $form,
            )*
        }

        impl Routing {
            /// Returns the name of the routing.
            pub const fn name(&self) -> RoutingName {
                match self {
                    $(Self::$algorithm(_) => RoutingName::$algorithm,)*
                    $(Self::$form => RoutingName::$form,)*
                }
            }

            /// The algorithm, unless the tables are given.
            pub fn algorithm(&self) -> Option<&dyn RoutingAlgorithm> {
                match self {
                    $(Self::$algorithm(algorithm) => Some(algorithm),)*
                    $(Self::$form => None,)*
                }
            }
        }
    };
}

register! {
    algorithms {
        d_mod_k::DModK = "d-mod-k", "By destination modulo the number of upward ports, as fat trees are routed.";
        min_hop::MinHop = "min-hop", "Shortest paths, balanced over the ports.";
        layered::LayeredMinHop = "layered-min-hop", "Shortest paths, balanced over the ports, each on a virtual lane on which no cycle of them can deadlock (LASH).\nWith fewer data virtual lanes than that takes, as `min-hop`.";
        dimension_order::DimensionOrder = "dimension-order", "Along one dimension of a mesh, torus or HyperX after the other. With two data virtual lanes or more\nthe rings of a torus have datelines and cannot deadlock.";
        group_minimal::GroupMinimal = "group-minimal", "For dragonfly and dragonfly+: over one cable between groups, and over the fewest cables inside them.";
        fat_tree::FatTree = "fat-tree", "Up and down a tree that may lack cables or have hosts at inner switches, balanced for compute nodes first, as by OpenSM's ftree. It cannot deadlock.";
        up_down::UpDown = "up-down", "Up towards a root and then down, over the fewest cables, balanced over the ports. It cannot deadlock in any fabric.";
    }
    given {
        Explicit = "explicit", "Given switch by switch in `fabric.tables` or `fabric.linear-tables`.";
        None = "none", "No tables, given ones included: switches discard all packets until a subnet manager sets\nroutes in the live fabric.";
        Lfts = "lfts", "Read from `fabric.routing-file`: the output of `dump_lfts`, or OpenSM's `opensm-lfts.dump` or\n`opensm.fdbs`.";
    }
}

/// Why no tables can be computed. No tables exist then.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RoutingError {
    /// d-mod-k on something else than a fat tree.
    #[error("d-mod-k needs a fat tree: {problem}")]
    NotAFatTree {
        /// The obstacle, with the switches concerned.
        problem: String,
    },
    /// Dimension order on something else than the mesh or torus described.
    #[error("dimension order needs a mesh or torus: {problem}")]
    NotAGrid {
        /// The obstacle, with the switches concerned.
        problem: String,
    },
    /// An algorithm that does not suit the topology, or a value of one of its keys.
    #[error("{problem}")]
    Refused {
        /// The key of `[fabric]`.
        key: &'static str,
        /// The fault.
        problem: String,
        /// The text to write instead.
        hint: String,
    },
    /// Paths that depend on each other too much for the lanes of a port.
    #[error("the shortest paths need more than {most} virtual lanes to be free of deadlock")]
    TooManyLanes {
        /// The most lanes.
        most: usize,
    },
    /// Two nodes with no path of cables between them.
    #[error("no path of cables leads from {from:?} to {to:?}")]
    Disconnected {
        /// A switch.
        from: String,
        /// The node out of its reach.
        to: String,
    },
    /// An explicit table for something that is no switch.
    #[error("there is no switch named {name:?}")]
    UnknownSwitch {
        /// The name.
        name: String,
        /// The most similar name of a node.
        nearest: Option<String>,
    },
    /// Two explicit tables for one switch.
    #[error("switch {switch:?} has two tables")]
    DuplicateTable {
        /// The switch.
        switch: String,
    },
    /// An explicit entry for something that is neither a node's name nor its LID.
    #[error("table of {switch:?}: {destination:?} is no node's name or LID")]
    UnknownDestination {
        /// The switch whose table it is.
        switch: String,
        /// The destination as written.
        destination: String,
        /// The most similar name of a node.
        nearest: Option<String>,
    },
    /// An explicit entry given twice.
    #[error("table of {switch:?}: {destination:?} has two entries")]
    DuplicateEntry {
        /// The switch whose table it is.
        switch: String,
        /// The destination as written.
        destination: String,
    },
    /// An explicit entry for a port that is not there or has no cable.
    #[error("table of {switch:?}: {destination:?} leaves by port {port}, which has no cable")]
    DeadPort {
        /// The switch whose table it is.
        switch: String,
        /// The destination as written.
        destination: String,
        /// The port.
        port: PortNumber,
    },
}

/// No route, as on the wire (InfiniBand Architecture Specification, volume 1, section 14.2.5.10).
const NO_ROUTE: u8 = 255;

/// Forwarding of all switches: a table per switch from destination LID to port, or [computed routes](ComputedRoutes) to
/// hosts.
///
/// A switch's own LID leads to port 0. [Without LIDs](Fabric::has_lids) tables have entries for hosts only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardingTables {
    form: Form,
    /// A host's LID, or its index without LIDs.
    columns: IdVec<HostId, u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Tables {
        /// One byte per column.
        entries: Vec<u8>,
        row_len: usize,
        /// Columns are LIDs, not hosts.
        by_lid: bool,
    },
    Computed(Arc<ComputedRoutes>),
}

impl ForwardingTables {
    /// Tables that know only each switch's own LID.
    pub fn new(fabric: &Fabric) -> Self {
        let row_len = match fabric.has_lids() {
            true => fabric.max_lid().index() + 1,
            false => fabric.host_count(),
        };
        let mut tables = Self {
            form: Form::Tables {
                entries: vec![NO_ROUTE; row_len * fabric.switch_count()],
                row_len,
                by_lid: fabric.has_lids(),
            },
            columns: columns(fabric),
        };
        if fabric.has_lids() {
            for switch in fabric.switch_ids() {
                tables.set(switch, fabric.switch(switch).lid, Some(PortNumber::new(0)));
            }
        }
        tables
    }

    /// These routes, with columns for all hosts of a larger fabric. Panics for computed routes.
    pub(crate) fn widened(&self, fabric: &Fabric) -> Self {
        let Form::Tables {
            entries, row_len, ..
        } = &self.form
        else {
            panic!("computed routes have no entries");
        };
        let mut wide = Self::new(fabric);
        if let Form::Tables {
            entries: all,
            row_len: wide_len,
            ..
        } = &mut wide.form
        {
            let rows = entries.chunks(*row_len).zip(all.chunks_mut(*wide_len));
            for (row, wide) in rows {
                wide[..*row_len].copy_from_slice(row);
            }
        }
        wide
    }

    /// Routes that are computed.
    pub fn computed(fabric: &Fabric, routes: ComputedRoutes) -> Self {
        Self {
            form: Form::Computed(Arc::new(routes)),
            columns: columns(fabric),
        }
    }

    /// The rule, if there are no tables.
    pub fn rule(&self) -> Option<&Arc<ComputedRoutes>> {
        match &self.form {
            Form::Tables { .. } => None,
            Form::Computed(routes) => Some(routes),
        }
    }

    /// The exit port for `lid`; computed routes have none. Panics for tables of fewer switches.
    #[inline]
    pub fn get(&self, switch: SwitchId, lid: Lid) -> Option<PortNumber> {
        entry(self.row_by_lid(switch), lid.index())
    }

    /// The exit port for a host. Panics for an unknown switch or host.
    #[inline]
    pub fn to_host(&self, switch: SwitchId, host: HostId) -> Option<PortNumber> {
        match &self.form {
            Form::Computed(routes) => routes.port(switch, host),
            Form::Tables {
                entries, row_len, ..
            } => {
                let row = &entries[switch.index() * row_len..][..*row_len];
                entry(row, self.columns[host] as usize)
            }
        }
    }

    /// Sets or removes a route. Panics for an unknown switch or LID, port 255, or computed routes.
    #[inline]
    pub fn set(&mut self, switch: SwitchId, lid: Lid, port: Option<PortNumber>) {
        self.write(switch, lid.index(), port);
    }

    /// Sets or removes the route to a host. Panics as [`set`](Self::set).
    #[inline]
    pub fn set_host(&mut self, switch: SwitchId, host: HostId, port: Option<PortNumber>) {
        self.write(switch, self.columns[host] as usize, port);
    }

    fn write(&mut self, switch: SwitchId, column: usize, port: Option<PortNumber>) {
        let Form::Tables {
            entries, row_len, ..
        } = &mut self.form
        else {
            panic!("computed routes have no entries");
        };
        assert!(column < *row_len, "LID {column} beyond the tables");
        let number = port.map_or(NO_ROUTE, PortNumber::as_u8);
        assert!(port.is_none() || number != NO_ROUTE, "255 is not a port");
        entries[switch.index() * *row_len + column] = number;
    }

    /// The number of switches.
    pub fn switch_count(&self) -> usize {
        match &self.form {
            Form::Tables {
                entries, row_len, ..
            } => entries.len() / row_len,
            Form::Computed(routes) => routes.switch_count(),
        }
    }

    fn row_by_lid(&self, switch: SwitchId) -> &[u8] {
        match &self.form {
            Form::Tables {
                entries,
                row_len,
                by_lid: true,
            } => &entries[switch.index() * row_len..][..*row_len],
            _ => &[],
        }
    }

    /// A switch's table from the smallest LID with a route to the largest; empty without LIDs or with computed routes.
    pub fn routes(&self, switch: SwitchId) -> impl Iterator<Item = (Lid, PortNumber)> + '_ {
        (0_u16..=u16::MAX)
            .zip(self.row_by_lid(switch))
            .filter(|(_, number)| **number != NO_ROUTE)
            .map(|(lid, number)| (Lid::new(lid), PortNumber::new(*number)))
    }
}

fn entry(row: &[u8], column: usize) -> Option<PortNumber> {
    match row.get(column) {
        Some(&NO_ROUTE) | None => None,
        Some(&number) => Some(PortNumber::new(number)),
    }
}

fn columns(fabric: &Fabric) -> IdVec<HostId, u32> {
    let column = |host: HostId| match fabric.has_lids() {
        true => fabric.host(host).lid.index() as u32,
        false => host.index() as u32,
    };
    fabric.host_ids().map(column).collect()
}

/// All that decides where packets go and on which lanes.
#[derive(Debug, Clone, Copy)]
pub struct Routes<'a> {
    /// The port of every destination.
    pub tables: &'a ForwardingTables,
    /// Lanes that change along the way; without it a packet stays on its lane.
    pub lanes: Option<&'a PathLanes>,
    /// Ports among which switches choose themselves; without it the tables alone decide.
    pub alternatives: Option<&'a Alternatives>,
    /// Lanes that go up along the way, instead of `lanes`.
    pub steps: Option<&'a LaneSteps>,
    /// Switches that packets can be sent over, where the choice is not minimal.
    pub waypoints: Option<&'a Waypoints>,
    /// Choice among paths.
    pub choice: PathChoice,
}

impl<'a> From<&'a ForwardingTables> for Routes<'a> {
    fn from(tables: &'a ForwardingTables) -> Self {
        Self {
            tables,
            lanes: None,
            alternatives: None,
            steps: None,
            waypoints: None,
            choice: PathChoice::Table,
        }
    }
}

#[cfg(test)]
mod computed_tests;
#[cfg(test)]
mod fat_tree_tests;
#[cfg(test)]
mod grid_tests;
#[cfg(test)]
mod layered_tests;
#[cfg(test)]
mod paths_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod up_down_tests;
