//! Proactive flow throttling at the host's interface (C. Ma et al., "Proactive flow throttling", IFIP 2021; *pft2021*
//! below), by the credits that it has taken alone.
//!
//! 1. [`Detector`]: the congested state begins above [`enter`](PftParameters::enter) and ends below
//!    [`escape`](PftParameters::escape) credits (Algorithm 1), or after a time beyond them (Algorithm 2).
//! 2. A congested interface leaves f(c) clock cycles between flits, or sends in cycles with a random number of at least
//!    f(c); [`Shift`] is f(c) = 2^(m - n) c + k of c credits.
//!
//! A clock cycle is a flit's time; between changes of c all cycles are computed at once.
//!
//! ```
//! use silvan_cc::schemes::pft::{PftParameters, Sending, Shift, Threshold, injection_rate};
//! use silvan_core::Span;
//!
//! let parameters = PftParameters {
//! threshold: Threshold::Fixed,
//! enter: 0,
//! escape: 0,
//! shift: Shift { m: 0, n: 8, k: 0 },
//! sending: Sending::Interval,
//! flit_time: Span::from_ps(1_280),
//! credit_bytes: 64,
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
