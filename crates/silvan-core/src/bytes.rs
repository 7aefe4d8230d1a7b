use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

use crate::quantity::{Dimension, ParseQuantityError, decimal, text_quantity, unit};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

const BITS_REFUSED: &str = "write \"B\" for bytes; data amounts are not given in bits";

pub(crate) static DIMENSION: Dimension = Dimension {
    quantity: "data size",
    example: "64 KiB",
    max: u64::MAX,
    units: &[
        unit("B", 1),
        unit("kB", 1_000),
        unit("KiB", KIB),
        unit("MB", 1_000_000),
        unit("MiB", MIB),
        unit("GB", 1_000_000_000),
        unit("GiB", GIB),
        unit("TB", 1_000_000_000_000),
        unit("TiB", TIB),
    ],
    refused: &[
        ("b", BITS_REFUSED),
        ("kb", BITS_REFUSED),
        ("Kb", BITS_REFUSED),
        ("Mb", BITS_REFUSED),
        ("Gb", BITS_REFUSED),
        ("KB", "write \"kB\" for 1000 bytes or \"KiB\" for 1024"),
        ("K", "write \"kB\" for 1000 bytes or \"KiB\" for 1024"),
        ("k", "write \"kB\" for 1000 bytes or \"KiB\" for 1024"),
        ("M", "write \"MB\" for 1000000 bytes or \"MiB\" for 1048576"),
    ],
};

/// An amount of data in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// 1024 bytes.
    pub const KIB: Self = Self(KIB);
    /// 1024 * 1024 bytes.
    pub const MIB: Self = Self(MIB);

    /// An amount of `bytes` bytes.
    #[inline]
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    #[inline]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Returns true if the amount is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Blocks of 64 bytes, rounded up. Panics beyond 2^32 - 1 blocks (256 GiB).
    #[inline]
    pub const fn credits(self) -> Credits {
        let blocks = self.0.div_ceil(Credits::BLOCK_BYTES);
        assert!(blocks <= u32::MAX as u64, "more than 2^32 - 1 credits");
        Credits(blocks as u32)
    }

    /// Sum, `None` if it cannot be represented.
    #[inline]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(bytes) => Some(Self(bytes)),
            None => None,
        }
    }

    /// Difference, `None` if `other` is larger.
    #[inline]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(bytes) => Some(Self(bytes)),
            None => None,
        }
    }

    /// Difference, at least zero.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    fn from_base(bytes: u64, _input: &str) -> Result<Self, ParseQuantityError> {
        Ok(Self(bytes))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = DIMENSION
            .units
            .iter()
            .rev()
            .filter(|unit| unit.factor == 1 || (self.0 != 0 && self.0 % unit.factor == 0))
            .map(|unit| decimal(self.0, unit))
            .min_by_key(String::len);
        f.pad(text.as_deref().unwrap_or_default())
    }
}

text_quantity!(Bytes, "a data size as text with its unit", "64 KiB");

/// Overflow panics in builds with overflow checks, like integer addition.
impl Add for Bytes {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;

    #[inline]
    fn mul(self, count: u64) -> Self {
        Self(self.0 * count)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// Buffer space in blocks of 64 bytes, the unit of link-level flow control (IBA volume 1, 7.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Credits(u32);

impl Credits {
    /// No space.
    pub const ZERO: Self = Self(0);
    /// Bytes per credit.
    pub const BLOCK_BYTES: u64 = 64;

    /// Space for `blocks` blocks.
    #[inline]
    pub const fn new(blocks: u32) -> Self {
        Self(blocks)
    }

    /// The number of blocks.
    #[inline]
    pub const fn as_u32(self) -> u32 {
        self.0
    }

    /// The bytes that fit in these blocks.
    #[inline]
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0 as u64 * Self::BLOCK_BYTES)
    }

    /// Difference, `None` if `other` is larger: credits that are not there cannot be spent.
    #[inline]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(blocks) => Some(Self(blocks)),
            None => None,
        }
    }
}

impl fmt::Display for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Add for Credits {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Credits {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// A negative result panics in builds with overflow checks; see [`Credits::checked_sub`].
impl Sub for Credits {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Credits {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
