//! Explicit congestion notification for input-buffered switches, with rate control and a window limit at the source (J.
//! R. Santos, Y. Turner and G. Janakiraman, "End-to-end congestion control for InfiniBand", INFOCOM 2003; *santos2003*
//! below).
//!
//! 1. The switch marks packets when an input buffer becomes full ([`Marking`]). It marks either the packets in the full
//!    buffer ([`NaiveMarking`]), or all packets for the outputs of these packets. It finds the latter by a scan
//!    ([`ProposedScan`]) or with two counters per output ([`ProposedCounters`], and [`ResidentCounters`] by the letter of the
//!    paper). Outputs can also trigger marking, by the number of packets that wait for them.
//! 2. The destination returns the mark in the acknowledgement of the packet.
//! 3. The source ([`EcnSource`]) raises the flow's rate at each unmarked acknowledgement and lowers it at each marked
//!    one, by its [`Response`]. It never has more packets in progress than the flow's window.
//!
//! Rates are fractions of Rmax, the rate of the host's link; times are packet times, that of one packet of MTU size at
//! Rmax. In these units a flow at rate r sends a packet every 1/r, and the recovery time Trec = 1/Rmin of the paper is
//! 256 for Rmin = Rmax/256.
//!
//! [`conditions::check`] checks any response function against the paper's design conditions:
//!
//! ```
//! use silvan_cc::schemes::ecn::conditions::{Condition, check};
//! use silvan_cc::schemes::ecn::{Fimd, MIN_RATE};
//!
//! let fimd = Fimd::new(2.0, MIN_RATE)?;
//! assert!(check(&fimd).iter().all(|finding| finding.holds));
//! # Ok::<(), silvan_cc::schemes::ecn::EcnError>(())
//! ```

pub mod conditions;
mod error;
mod marking;
mod response;
mod scheme;
mod source;

pub use error::EcnError;
pub use marking::{
    EcnSwitch, Marking, NaiveMarking, ProposedCounters, ProposedScan, ResidentCounters,
};
pub use response::{
    Aimd, Fimd, Fixed, Increase, Lipd, MIN_RATE, RATES, RateTables, Response, ResponseFunction,
};
pub use scheme::{Ecn, RatesKind, ResponseKind};
pub use source::{EcnSource, RateModel, SourceParameters, WindowLimit};
