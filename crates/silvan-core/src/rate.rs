use std::fmt;
use std::num::NonZeroU64;

use crate::quantity::{
    Dimension, ParseQuantityError, ParseQuantityReason, Unit, text_quantity, unit,
};
use crate::{Bytes, Span};

const PS_PER_S: u64 = 1_000_000_000_000;
const BITS_PER_BYTE: u64 = 8;

static BIT_UNITS: [Unit; 5] = [
    unit("bit/s", 1),
    unit("kbit/s", 1_000),
    unit("Mbit/s", 1_000_000),
    unit("Gbit/s", 1_000_000_000),
    unit("Tbit/s", 1_000_000_000_000),
];

const AMBIGUOUS_KILO: &str = "write \"kbit/s\" for bits or \"kB/s\" for bytes";
const AMBIGUOUS_MEGA: &str = "write \"Mbit/s\" for bits or \"MB/s\" for bytes";
const AMBIGUOUS_GIGA: &str = "write \"Gbit/s\" for bits or \"GB/s\" for bytes";
const AMBIGUOUS_TERA: &str = "write \"Tbit/s\" for bits or \"TB/s\" for bytes";

pub(crate) static DIMENSION: Dimension = Dimension {
    quantity: "data rate",
    example: "13.5 Gbit/s",
    max: u64::MAX,
    units: &[
        unit("bit/s", 1),
        unit("kbit/s", 1_000),
        unit("Mbit/s", 1_000_000),
        unit("Gbit/s", 1_000_000_000),
        unit("Tbit/s", 1_000_000_000_000),
        unit("B/s", 8),
        unit("kB/s", 8_000),
        unit("MB/s", 8_000_000),
        unit("GB/s", 8_000_000_000),
        unit("TB/s", 8_000_000_000_000),
        unit("KiB/s", 8 << 10),
        unit("MiB/s", 8 << 20),
        unit("GiB/s", 8 << 30),
    ],
    refused: &[
        ("b/s", "write \"bit/s\" for bits or \"B/s\" for bytes"),
        ("bps", "write \"bit/s\" for bits or \"B/s\" for bytes"),
        ("kb/s", AMBIGUOUS_KILO),
        ("Kb/s", AMBIGUOUS_KILO),
        ("KB/s", AMBIGUOUS_KILO),
        ("kbps", AMBIGUOUS_KILO),
        ("Mb/s", AMBIGUOUS_MEGA),
        ("mb/s", AMBIGUOUS_MEGA),
        ("Mbps", AMBIGUOUS_MEGA),
        ("MBps", AMBIGUOUS_MEGA),
        ("Gb/s", AMBIGUOUS_GIGA),
        ("gb/s", AMBIGUOUS_GIGA),
        ("Gbps", AMBIGUOUS_GIGA),
        ("GBps", AMBIGUOUS_GIGA),
        ("Tb/s", AMBIGUOUS_TERA),
        ("Tbps", AMBIGUOUS_TERA),
    ],
};

/// A data rate in bits per second, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Rate(NonZeroU64);

impl Rate {
    /// A rate of `bits` bits per second, `None` for zero: nothing would ever arrive.
    #[inline]
    pub const fn from_bits_per_sec(bits: u64) -> Option<Self> {
        match NonZeroU64::new(bits) {
            Some(bits) => Some(Self(bits)),
            None => None,
        }
    }

    /// Bits per second.
    #[inline]
    pub const fn bits_per_sec(self) -> u64 {
        self.0.get()
    }

    /// The time of `data` at this rate in ps, rounded up so that packets never exceed it; at most [`Span::MAX`].
    #[inline]
    pub const fn span_for(self, data: Bytes) -> Span {
        const PS_BITS_PER_BYTE: u64 = BITS_PER_BYTE * PS_PER_S;
        // Packets stay below the 2.3 MB at which the product leaves 64 bits, and 128-bit division is many times slower.
        if let Some(scaled) = data.as_u64().checked_mul(PS_BITS_PER_BYTE) {
            return Span::from_ps(scaled.div_ceil(self.0.get()));
        }
        let scaled = data.as_u64() as u128 * PS_BITS_PER_BYTE as u128;
        let ps = scaled.div_ceil(self.0.get() as u128);
        if ps > u64::MAX as u128 {
            Span::MAX
        } else {
            Span::from_ps(ps as u64)
        }
    }

    /// The mean rate [bit/s] of `data` within `span`: infinite, or NaN for no data, if the span is zero.
    #[inline]
    pub fn from_bytes_in(data: Bytes, span: Span) -> f64 {
        data.as_u64() as f64 * BITS_PER_BYTE as f64 / span.as_secs_f64()
    }

    fn from_base(bits: u64, input: &str) -> Result<Self, ParseQuantityError> {
        Self::from_bits_per_sec(bits)
            .ok_or_else(|| DIMENSION.error(input, ParseQuantityReason::Zero))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits_per_sec();
        DIMENSION.print(f, bits, Dimension::largest_unit_within(bits, &BIT_UNITS))
    }
}

text_quantity!(Rate, "a data rate as text with its unit", "13.5 Gbit/s");
