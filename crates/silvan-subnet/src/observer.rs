//! Rounds of the congestion manager, for a page that follows it.

use std::sync::Arc;

use silvan_core::growth::CongestionGrowth;
use silvan_core::{Guid, Span};

use crate::discovery::Subnet;

/// Takes the rounds of a manager, in the manager's thread.
pub type Observer = Arc<dyn Fn(Round) + Send + Sync>;

/// A port of a switch: NodeGUID and number.
pub type PortKey = (Guid, u8);

/// A round of the congestion manager.
#[derive(Clone, Debug)]
pub struct Round {
    /// The subnet; the same object as long as it has not changed.
    pub subnet: Arc<Subnet>,
    /// True if the manager changes Marking_Rates.
    pub act: bool,
    /// The tick in which growth of counters of time is given.
    pub tick: Span,
    /// The swept ports, and what their counters have grown by; `None` if that is not known.
    pub ports: Vec<(PortKey, Option<CongestionGrowth>)>,
    /// Ports whose Marking_Rate is low, or would be if the manager changed it.
    pub low: Vec<LowRound>,
}

/// A port whose Marking_Rate is low.
#[derive(Clone, Debug, PartialEq)]
pub struct LowRound {
    /// The port.
    pub port: PortKey,
    /// The ports that wait for it.
    pub victims: Vec<PortKey>,
    /// Time since the Marking_Rate was lowered.
    pub low_for: Span,
    /// Bytes that the victims' links could have carried in this time while the victims waited.
    pub victims_lost_bytes: f64,
}
