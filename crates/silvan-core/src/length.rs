use std::fmt;

use crate::Span;
use crate::quantity::{Dimension, ParseQuantityError, text_quantity, unit};

/// Two thirds of the speed of light, 0.2 m/ns: fibre has an index of 1.47, twinaxial copper a factor of 0.66 to 0.8.
const PS_PER_MM: u64 = 5;

pub(crate) static DIMENSION: Dimension = Dimension {
    quantity: "length",
    example: "2 m",
    max: u32::MAX as u64,
    units: &[
        unit("mm", 1),
        unit("cm", 10),
        unit("m", 1_000),
        unit("km", 1_000_000),
    ],
    refused: &[],
};

/// The length of a cable in millimetres.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Length(u32);

impl Length {
    /// No length: both ends at the same place.
    pub const ZERO: Self = Self(0);

    /// A length of `mm` millimetres.
    #[inline]
    pub const fn from_mm(mm: u32) -> Self {
        Self(mm)
    }

    /// Millimetres.
    #[inline]
    pub const fn as_mm(self) -> u32 {
        self.0
    }

    /// Returns the propagation delay over this length: 5 ns per metre, exact.
    #[inline]
    pub const fn propagation(self) -> Span {
        Span::from_ps(self.0 as u64 * PS_PER_MM)
    }

    fn from_base(mm: u64, _input: &str) -> Result<Self, ParseQuantityError> {
        let mm = u32::try_from(mm).expect("the parser has checked the dimension's maximum");
        Ok(Self(mm))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metres = &DIMENSION.units[2];
        let unit = if self.0 == 0 {
            metres
        } else {
            Dimension::largest_unit_within(u64::from(self.0), &DIMENSION.units[..3])
        };
        DIMENSION.print(f, u64::from(self.0), unit)
    }
}

text_quantity!(Length, "a length as text with its unit", "2 m");
