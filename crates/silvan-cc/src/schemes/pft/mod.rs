//! Proactive flow throttling at the host's interface (C. Ma et al., "Proactive flow throttling", IFIP 2021; *pft2021*
//! below). It needs no marks and no messages, only the credits that the host has taken of its switch.
//!
//! 1. [`Detector`] is the interface's state, normal or congested. With a fixed threshold, the
//!    congested state begins with more than [`enter`](PftParameters::enter) credits taken and ends
//!    with fewer than [`escape`](PftParameters::escape) (Algorithm 1). With an average threshold,
//!    the condition must hold for long enough within a time (Algorithm 2).
//! 2. Only a congested interface throttles: it leaves f(c) clock cycles between two flits, or sends
//!    in a cycle in which a random number is at least f(c), with [`Shift`] for f(c) = 2^(m - n) c +
//!    k of the c credits taken.
//!
//! A clock cycle is the time of a flit on the link. The engine moves whole packets. When a packet starts, the interface
//! computes the throttled times of its flits; the next packet may start at the next possible flit. Between two changes
//! of c all cycles are computed at once, with the same result as cycle by cycle.
//!
//! ```
//! use silvan_cc::schemes::pft::{PftParameters, Sending, Shift, Threshold, injection_rate};
//! use silvan_core::Span;
//!
//! let parameters = PftParameters {
//!     threshold: Threshold::Fixed,
//!     enter: 0,
//!     escape: 0,
//!     shift: Shift { m: 0, n: 8, k: 0 },
//!     sending: Sending::Interval,
//!     flit_time: Span::from_ps(1_280),
//!     credit_bytes: 64,
//! };
//! // 768 credits taken: three idle cycles behind each flit.
//! assert_eq!(injection_rate(&parameters, 768, 4_000, 1), 0.25);
//! ```

mod detector;
mod draws;
mod interface;
mod parameters;
mod scheme;
mod source;

pub use detector::Detector;
pub use parameters::{PftError, PftParameters, Sending, Shift, Spell, Threshold};
pub use scheme::{Pft, SendingKind, ThresholdKind, with_ib_cc};
pub use source::{PftSource, injection_rate};

#[cfg(test)]
mod tests;
