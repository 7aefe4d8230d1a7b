//! RECN and FBICM: packets through a congested point wait in a set-aside queue, so that others pass.
//!
//! J. Duato, I. Johnson, J. Flich, F. Naven, P. J. García, T. Nachiondo, "A new scalable and cost-effective congestion
//! management strategy for lossless multistage interconnection networks", HPCA 2005. J. Escudero-Sahuquillo et al.,
//! "FBICM: efficient congestion management for high-performance networks using distributed deterministic routing", HiPC
//! 2008.
//!
//! A *set-aside queue* (SAQ) is a lane other than 0. If many bytes wait for an output on lane 0 and congestion begins
//! there, it is a *root*; upstream outputs get a *line*, which selects packets for the SAQ, as for a full line. Lines
//! without packets and branches are removed.
//!
//! **Order.** An input's first packet in a SAQ waits until the line's earlier packets have left lane 0, or a shorter
//! path's SAQ.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Bytes, Span};

use crate::hooks::NoControl;
use crate::parameters;
use crate::schemes::variant::{self, Cost, FabricFacts, Family};
use crate::schemes::{Bounds, DataPlane, Declared, Defaults, Scheme, SchemeError, Search, Setup};

mod inputs;
mod lines;
mod messages;
mod queues;
mod routes;
#[cfg(test)]
mod tests;

pub use queues::SetAside;

/// Packets of a set-aside queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Packets through the root, over the path to it (Duato et al. 2005).
    #[default]
    Recn,
    /// Packets to one destination, which is all that switches with tables know of a path (Escudero-Sahuquillo et al.
    /// 2008).
    Fbicm,
}

parameters! {
    /// RECN and FBICM. Lane 0 is for all packets that go through no known root; the others are set-aside queues.
    pub struct Recn {
        /// Packets of a set-aside queue.
        variant: Variant {
            default: Variant::Recn,
        }
        /// Bytes that wait for an output on lane 0, from which on it is a root; by default half the input buffer of a switch port.
        detection: Option<Bytes> {
            default: None,
            bounds: Bounds::SOME_BYTES,
            example: "\"16 KiB\"",
            search: Search::SCALED,
        }
        /// Bytes in a set-aside queue from which on the outputs upstream set a queue aside; by default a quarter of the
        /// input buffer of a switch port.
        propagation: Option<Bytes> {
            default: None,
            bounds: Bounds::SOME_BYTES,
            example: "\"16 KiB\"",
            search: Search::SCALED,
        }
        /// Time from the decision of a switch to that of its neighbour: cable, and both ends.
        message_delay: Span {
            default: Span::from_us(1),
            bounds: Bounds::Time,
        }
        /// Time that an unused queue stays set aside when another root needs it.
        idle: Span {
            default: Span::from_us(100),
        }
    }
}

const NORMAL: usize = 0;

/// Registers: queue length of a lane, and for the line of its set-aside queue: path and its length (four and one bytes)
/// or destination (two), branches, and the place in lane 0 that holds its first packet (two and four).
const COST_OF_RECN: Cost = Cost::new(4 + 11, 0, 0, "queue messages");
const COST_OF_FBICM: Cost = Cost::new(4 + 8, 0, 0, "queue messages");

impl Scheme for Recn {
    type Switch = SetAside;
    type Source = NoControl;

    const DEFAULTS: Defaults = Defaults::CNP;

    fn fill_in(&mut self, data_plane: &DataPlane) {
        let part = |of: u64| Bytes::from_bytes((data_plane.switch_buffer.as_u64() / of).max(1));
        self.detection.get_or_insert(part(2));
        self.propagation.get_or_insert(part(4));
    }

    const FAMILY: Family = Family::Lanes;

    fn variants(facts: &FabricFacts<'_>) -> Vec<variant::Variant> {
        let lanes = facts.lanes().max(1);
        let variant = |name, what: &str, cost| {
            let queues = lanes - 1;
            let summary =
                format!("{queues} set-aside queues by {what}; all share one lane's buffer");
            variant::Variant::new(name, summary, cost)
                .own("variant", name)
                .unless(|facts| facts.lacks_roots())
                .lanes(lanes)
                .unless(|facts| facts.lacks_known_paths())
                .unless(|facts| facts.lacks_output_queues())
        };
        vec![
            variant("recn", "root", COST_OF_RECN),
            variant("fbicm", "destination", COST_OF_FBICM),
        ]
    }

    fn check(&self) -> Result<(), SchemeError> {
        self.check_bounds()?;
        if self.idle > self.message_delay {
            return Ok(());
        }
        let (idle, delay) = (self.idle, self.message_delay);
        Err(SchemeError::new(
            "idle",
            format!(
                "{idle} is not above message-delay, {delay}: a queue would be freed before the neighbour knows of it"
            ),
            "raise it, or lower message-delay",
        ))
    }

    fn check_setup(&self, setup: &Setup<'_>) -> Result<(), SchemeError> {
        let refused = |message: &str, hint: &str| Err(SchemeError::new("variant", message, hint));
        if setup.routes_use_lanes {
            return refused(
                "the routing keeps paths from deadlock by their lanes, which are set-aside queues here",
                "choose a fabric that needs no lanes, such as a fat tree, or another scheme",
            );
        }
        if setup.has_alternatives {
            return refused(
                "switches choose among several paths, and a set-aside queue is for packets whose path is known",
                "set fabric.path-choice to \"table\", or choose another scheme",
            );
        }
        if setup.data_vls < 2 {
            return refused(
                "there is one data lane, and each set-aside queue needs one",
                "set vl.data-vls to 9 for eight set-aside queues, as in the paper",
            );
        }
        if !setup.waits_once {
            return refused(
                "packets wait in single queues or output buffers, where those that move to another queue would lose their order",
                "set switch.queueing to \"voq\", and remove switch.output-buffer",
            );
        }
        Ok(())
    }

    fn idle_reason(&self) -> Option<String> {
        Some(format!("no queue reached detection, {}", self.detection?))
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(SetAside, NoControl), SchemeError> {
        Ok((SetAside::new(self, setup), NoControl))
    }
}
