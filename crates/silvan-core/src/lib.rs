//! Base types of all crates: quantities, identifiers, [documents](document), [streams](stream) of random numbers,
//! [`prefetch`].
//!
//! | type | raw integer | written |
//! |---|---|---|
//! | [`Time`], [`Span`] | picoseconds | `"150 us"` |
//! | [`MonotonicTime`], of a real clock | nanoseconds | |
//! | [`Bytes`] | bytes | `"64 KiB"` |
//! | [`Credits`] | blocks of 64 bytes | |
//! | [`Rate`] | bits per second, never zero | `"13.5 Gbit/s"` |
//! | [`Length`] | millimetres | `"3.5 m"` |
//!
//! Text, also in serde, is a decimal number and a unit, and prints as it parses. A bare number, an ambiguous unit
//! (`"Gb/s"`) and a fraction of the integer unit (`"0.5 ps"`) are errors with a hint.
//!
//! ```
//! use silvan_core::{Bytes, Rate, Span};
//!
//! let link: Rate = "16 Gbit/s".parse()?;
//! let mtu: Bytes = "2048 B".parse()?;
//! assert_eq!(link.span_for(mtu), "1.024 us".parse::<Span>()?);
//!
//! let error = "150".parse::<Span>().unwrap_err();
//! assert_eq!(error.to_string(), r#"invalid time span "150": the unit is missing (write e.g. "150 us")"#);
//! # Ok::<(), silvan_core::ParseQuantityError>(())
//! ```

pub mod advice;
mod bytes;
pub mod counters;
pub mod document;
mod given_ticks;
pub mod growth;
mod id;
mod length;
mod monotonic;
pub mod prefetch;
mod quantity;
mod rate;
pub mod schema;
pub mod stream;
mod text;
mod tick;
mod time;
mod wire;

pub use bytes::{Bytes, Credits};
pub use counters::{PortCounter, PortCounters};
pub use given_ticks::{GivenTickError, GivenTicks};
pub use id::{HostId, Id, IdVec, LinkId, NodeId, PortId, SwitchId};
pub use length::Length;
pub use monotonic::{Instant, MonotonicTime};
pub use quantity::{ParseQuantityError, ParseQuantityReason};
pub use rate::Rate;
pub use text::decode_text;
pub use tick::{DeviceId, TickRule};
pub use time::{Span, Time};
pub use wire::{Guid, Lid, ParseWireIdError, PortNumber, Sl, Vl, WireIdRangeError};
