//! Generators of fabrics: a few parameters in, real port numbers, LIDs, GUIDs and names out.
//!
//! Hosts are numbered switch by switch, so that the hosts of one switch are consecutive. A switch's
//! hosts are on its ports 1, 2, ...; cables to other switches follow.

mod grid;
mod line;
mod testbeds;
mod xgft;

pub(crate) use grid::Direction;
pub use grid::Grid;
pub use line::{Chain, Ring, SingleSwitch};
pub use testbeds::{SantosTwoSwitches, TwoSwitchTestbed};
pub use xgft::{KAryNTree, Xgft, fat_tree_120, fat_tree_648, fat_tree_11664};

use crate::FabricError;

/// Name of the `index`th of `count` things: `stem-03`, counted from 0, all equally wide.
fn numbered(stem: &str, index: usize, count: usize, least_digits: usize) -> String {
    let digits = (count.max(1) - 1).max(1).ilog10() as usize + 1;
    format!("{stem}-{index:0width$}", width = digits.max(least_digits))
}

/// Name of the `index`th of `count` hosts.
fn host_name(index: usize, count: usize) -> String {
    numbered("host", index, count, 4)
}

/// Name of the `index`th of `count` switches of one kind.
fn switch_name(stem: &str, index: usize, count: usize) -> String {
    numbered(stem, index, count, 2)
}

/// A port number that the builder checks against the node's ports.
fn port_number(number: usize, generator: &'static str) -> Result<u8, FabricError> {
    u8::try_from(number).map_err(|_| FabricError::BadParameter {
        generator,
        problem: format!("a switch would need port {number}, it has at most 254"),
    })
}

#[cfg(test)]
mod tests;
