//! Generators of fabrics: a few parameters in, real port numbers, LIDs, GUIDs and names out.
//!
//! A topology is a module, whose keys implement [`Generator`], and a line at the end of this file.
//! Hosts are numbered switch by switch and are on ports 1, 2, ...; cables to other switches follow.

mod attached;
mod full_rows;
mod galois;
mod generator;
mod grid;
mod groups;
mod row;

pub use full_rows::FullRows;
pub use generator::Generator;
pub(crate) use grid::Direction;
pub use grid::Grid;
pub use groups::GlobalWiring;

use attached::{MOST_PORTS, Parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use silvan_core::{IdVec, PortId, SwitchId};

use crate::routing::Routing;
use crate::{Fabric, FabricError, LinkKind};

/// `stem-03`: counted from 0, all equally wide.
fn numbered(stem: &str, index: usize, count: usize, least_digits: usize) -> String {
    let digits = (count.max(1) - 1).max(1).ilog10() as usize + 1;
    format!("{stem}-{index:0width$}", width = digits.max(least_digits))
}

fn host_name(index: usize, count: usize) -> String {
    numbered("host", index, count, 4)
}

fn switch_name(stem: &str, index: usize, count: usize) -> String {
    numbered(stem, index, count, 2)
}

fn port_number(number: usize, generator: &'static str) -> Result<u8, FabricError> {
    let parameter = Parameter {
        generator,
        key: "generator",
    };
    let problem = format!("a switch would need port {number}, it has at most {MOST_PORTS}");
    u8::try_from(number).map_err(|_| parameter.bad(problem, "make the switches smaller"))
}

macro_rules! register {
    ($($module:ident::$topology:ident = $name:literal, $summary:literal;)*) => {
        $(
            mod $module;
            pub use $module::$topology;

            impl $topology {
                /// Name of the topology in scenarios.
                pub const NAME: &'static str = $name;
            }
        )*

        /// The name of a registered topology.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum Kind {
            $(
                #[doc = $summary]
                #[serde(rename = $name)]
                $topology,
            )*
        }

        impl Kind {
            /// All of them, in the order of their registration.
            pub const ALL: &[Self] = &[$(Self::$topology),*];

            /// Returns the name in scenarios.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$topology => $name,)*
                }
            }

            /// A sentence on it.
            pub const fn summary(self) -> &'static str {
                match self {
                    $(Self::$topology => $summary,)*
                }
            }

            /// The JSON schema of its keys.
            pub fn schema(self) -> Value {
                match self {
                    $(Self::$topology => schemars::schema_for!($topology).into(),)*
                }
            }

            /// Reads its keys from a table, in which other keys are ignored.
            ///
            /// # Errors
            /// A missing key or a wrong value.
            pub fn read<'de, D: Deserializer<'de>>(self, table: D) -> Result<Topology, D::Error> {
                match self {
                    $(Self::$topology => {
                        $topology::deserialize(table).map(Topology::$topology)
                    })*
                }
            }
        }

        /// A registered topology with its keys.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(tag = "generator")]
        pub enum Topology {
            $(
                #[doc = $summary]
                #[serde(rename = $name)]
                $topology($topology),
            )*
        }

        impl Topology {
            /// Returns the kind of the topology.
            pub const fn kind(&self) -> Kind {
                match self {
                    $(Self::$topology(_) => Kind::$topology,)*
                }
            }

            fn generator(&self) -> &dyn Generator {
                match self {
                    $(Self::$topology(topology) => topology,)*
                }
            }
        }
    };
}

register! {
    xgft::Xgft = "xgft", "An extended generalised fat tree.";
    k_ary_n_tree::KAryNTree = "k-ary-n-tree", "A k-ary n-tree.";
    fat_tree_648::FatTree648 = "fat-tree-648", "The three-stage fat tree of 54 36-port crossbars and 648 hosts of gran2012.";
    fat_tree_11664::FatTree11664 = "fat-tree-11664", "A three-level fat tree of 36-port crossbars and 11,664 hosts.";
    fat_tree_120::FatTree120 = "fat-tree-120", "The fat tree of 120 hosts of pft2021.";
    two_switch_testbed::TwoSwitchTestbed = "two-switch-testbed", "The two switches, with links of different speeds, of mizero2017.";
    santos_two_switches::SantosTwoSwitches = "santos-two-switches", "The two switches of santos2003.";
    chain::Chain = "chain", "Switches in a row, the parking lot.";
    single_switch::SingleSwitch = "single-switch", "One switch.";
    ring::Ring = "ring", "Switches in a ring, which can deadlock.";
    mesh::Mesh = "mesh", "Switches at the points of a grid.";
    torus::Torus = "torus", "A mesh whose rows are joined to rings.";
    leaf_spine::LeafSpine = "leaf-spine", "A two-level fat tree, oversubscribed or asymmetric.";
    rail_optimised::RailOptimised = "rail-optimised", "Servers of GPUs with an NVLink domain each, and a leaf per rail.";
    dragonfly::Dragonfly = "dragonfly", "Fully connected groups of switches, joined by global cables.";
    dragonfly_plus::DragonflyPlus = "dragonfly-plus", "Groups of leaves and spines, joined by global cables: megafly.";
    hyper_x::HyperX = "hyper-x", "A grid whose rows are fully connected.";
    slim_fly::SlimFly = "slim-fly", "Switches that are at most two cables apart: graphs of McKay, Miller and Siran.";
    jellyfish::Jellyfish = "jellyfish", "A random regular graph of switches.";
}

impl Generator for Topology {
    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        self.generator().build(link)
    }

    fn default_routing(&self) -> Routing {
        self.generator().default_routing()
    }

    fn grid(&self) -> Option<Grid> {
        self.generator().grid()
    }

    fn full_rows(&self) -> Option<FullRows> {
        self.generator().full_rows()
    }

    fn group(&self, switch: SwitchId) -> Option<u32> {
        self.generator().group(switch)
    }

    fn cable_kinds(&self, fabric: &Fabric) -> IdVec<PortId, u8> {
        self.generator().cable_kinds(fabric)
    }
}

impl Default for Topology {
    fn default() -> Self {
        Self::SingleSwitch(SingleSwitch::default())
    }
}

#[cfg(test)]
mod direct_tests;
#[cfg(test)]
mod tests;
