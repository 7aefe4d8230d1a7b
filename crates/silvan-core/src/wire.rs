use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::advice::Advised;

/// A value outside the range of its identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{what} {value} is out of range, it must be 0 to {max}")]
pub struct WireIdRangeError {
    what: &'static str,
    value: u8,
    max: u8,
}

/// A text that is not a LID or GUID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseWireIdError {
    what: &'static str,
    input: String,
    example: &'static str,
}

impl fmt::Display for ParseWireIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            input,
            example,
        } = self;
        Advised {
            message: format_args!("invalid {what} {input:?}"),
            hint: format_args!("write e.g. {example:?}"),
        }
        .fmt(f)
    }
}

impl std::error::Error for ParseWireIdError {}

/// A local identifier: the address of a port in its subnet (IBA volume 1, section 4.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct Lid(u16);

impl Lid {
    /// The first unicast LID; 0 is reserved.
    pub const MIN_UNICAST: Self = Self(0x0001);
    /// The last unicast LID; multicast LIDs follow.
    pub const MAX_UNICAST: Self = Self(0xbfff);

    /// The LID of this value, unicast or not.
    #[inline]
    pub const fn new(value: u16) -> Self {
        Self(value)
    }

    /// The value.
    #[inline]
    pub const fn as_u16(self) -> u16 {
        self.0
    }

    /// The value as the position in a linear forwarding table.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns true if the LID addresses one port: 0x0001 to 0xbfff.
    #[inline]
    pub const fn is_unicast(self) -> bool {
        self.0 >= Self::MIN_UNICAST.0 && self.0 <= Self::MAX_UNICAST.0
    }
}

impl fmt::Display for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads decimal digits, or hexadecimal ones after `0x`.
impl FromStr for Lid {
    type Err = ParseWireIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = match text.strip_prefix("0x") {
            Some(digits) => u16::from_str_radix(digits, 16),
            None => text.parse(),
        };
        parsed.map(Self).map_err(|_| ParseWireIdError {
            what: "LID",
            input: text.to_owned(),
            example: "17",
        })
    }
}

/// A globally unique identifier (EUI-64) of a node or port, written as `0x` and 16 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Guid(u64);

impl Guid {
    /// The GUID of this value.
    #[inline]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The value.
    #[inline]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

/// Reads `0x` and 1 to 16 hexadecimal digits, the form that InfiniBand tools print.
impl FromStr for Guid {
    type Err = ParseWireIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.strip_prefix("0x")
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .map(Self)
            .ok_or_else(|| ParseWireIdError {
                what: "GUID",
                input: text.to_owned(),
                example: "0x0002c9030000a001",
            })
    }
}

impl Serialize for Guid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Guid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A port of one node: external ports count from 1, 0 is a switch's management port (IBA volume 1, chapter 18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct PortNumber(u8);

impl PortNumber {
    /// The port of this number.
    #[inline]
    pub const fn new(value: u8) -> Self {
        Self(value)
    }

    /// The number.
    #[inline]
    pub const fn as_u8(self) -> u8 {
        self.0
    }
}

impl fmt::Display for PortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! bounded_u8 {
    ($(#[$meta:meta])* $name:ident, $what:literal, max = $max:literal) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(try_from = "u8", into = "u8")]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The largest value.
            pub const MAX: Self = Self($max);
            /// Number of values.
            pub const COUNT: usize = $max + 1;

            /// The identifier of this value, or the range that it must lie in.
            #[inline]
            pub const fn try_new(value: u8) -> Result<Self, WireIdRangeError> {
                if value <= $max {
                    Ok(Self(value))
                } else {
                    Err(WireIdRangeError { what: $what, value, max: $max })
                }
            }

            /// The value.
            #[inline]
            pub const fn as_u8(self) -> u8 {
                self.0
            }

            /// The value as a position in a table.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// All values in order.
            pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
                (0..$max + 1).map(Self)
            }
        }

        impl TryFrom<u8> for $name {
            type Error = WireIdRangeError;

            fn try_from(value: u8) -> Result<Self, Self::Error> {
                Self::try_new(value)
            }
        }

        impl From<$name> for u8 {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

bounded_u8! {
    /// A data virtual lane. VL 15 is the management lane, which this type does not name
    /// (InfiniBand Architecture Specification, volume 1, section 7.6).
    Vl, "data VL", max = 14
}

bounded_u8! {
    /// A service level, mapped to a virtual lane at every hop
    /// (InfiniBand Architecture Specification, volume 1, section 7.6).
    Sl, "SL", max = 15
}

impl Vl {
    /// The first data lane.
    pub const ZERO: Self = Self(0);
}

impl Default for Sl {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Sl {
    /// The first service level.
    pub const ZERO: Self = Self(0);
}
