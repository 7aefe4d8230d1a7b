//! Fields at bit offsets, counted from the most significant bit of an attribute's first byte, as in the specification.

use std::fmt;

use silvan_core::counters::same;
use silvan_core::{Guid, Lid, PortNumber, Sl};

/// A value that is at a bit offset of a big-endian byte string. Every bit pattern is a value.
pub trait Field: Sized {
    /// The width in bits.
    const WIDTH: usize;

    /// Number of values of one width in a row: more than one for arrays.
    const ELEMENTS: usize = 1;

    /// The value that starts at bit `at`. Panics if `bytes` ends before the value does.
    fn read(bytes: &[u8], at: usize) -> Self;

    /// Writes the value from bit `at` on and leaves all other bits alone. Panics if `bytes` ends before the value does.
    fn write(&self, bytes: &mut [u8], at: usize);

    /// Returns true if all bits are zero.
    fn is_zero(&self) -> bool;

    /// Writes the value for a person, integers in hexadecimal if `hex`. Errors as `f`.
    fn show(&self, f: &mut fmt::Formatter<'_>, hex: bool) -> fmt::Result;
}

/// The `width` bits from bit `at` on, as a number. They lie in at most eight bytes, as all fields do.
#[inline]
pub(crate) fn bits(bytes: &[u8], at: usize, width: usize) -> u64 {
    let end = at + width;
    let window = bytes[at / 8..end.div_ceil(8)]
        .iter()
        .fold(0u64, |window, &byte| window << 8 | u64::from(byte));
    window >> (end.next_multiple_of(8) - end) & low_mask(width)
}

#[inline]
pub(crate) fn set_bits(bytes: &mut [u8], at: usize, width: usize, value: u64) {
    let end = at + width;
    let shift = end.next_multiple_of(8) - end;
    let mut mask = low_mask(width) << shift;
    let mut value = (value & low_mask(width)) << shift;
    for byte in bytes[at / 8..end.div_ceil(8)].iter_mut().rev() {
        *byte = *byte & !(mask as u8) | value as u8;
        mask >>= 8;
        value >>= 8;
    }
}

const fn low_mask(width: usize) -> u64 {
    if width == 0 {
        0
    } else {
        u64::MAX >> (64 - width)
    }
}

/// Defines how a type that converts to and from an integer is stored in bytes.
macro_rules! integer_field {
    ($($type:ty, $bits:expr, |$raw:ident| $from:expr, |$value:ident| $into:expr;)*) => {$(
        impl Field for $type {
            const WIDTH: usize = $bits;

            #[inline]
            fn read(bytes: &[u8], at: usize) -> Self {
                let $raw = bits(bytes, at, Self::WIDTH);
                $from
            }

            #[inline]
            fn write(&self, bytes: &mut [u8], at: usize) {
                let $value = *self;
                set_bits(bytes, at, Self::WIDTH, $into);
            }

            fn is_zero(&self) -> bool {
                let $value = *self;
                $into == 0
            }

            fn show(&self, f: &mut fmt::Formatter<'_>, hex: bool) -> fmt::Result {
                let $value = *self;
                if hex { write!(f, "{:#x}", $into) } else { write!(f, "{self}") }
            }
        }
    )*};
}

integer_field! {
    u8, 8, |raw| raw as u8, |value| u64::from(value);
    u16, 16, |raw| raw as u16, |value| u64::from(value);
    u32, 32, |raw| raw as u32, |value| u64::from(value);
    u64, 64, |raw| raw, |value| value;
    bool, 1, |raw| raw == 1, |value| u64::from(value);
    Lid, 16, |raw| Self::new(raw as u16), |value| u64::from(value.as_u16());
    Guid, 64, |raw| Self::new(raw), |value| value.as_u64();
    PortNumber, 8, |raw| Self::new(raw as u8), |value| u64::from(value.as_u8());
    // Four bits cannot exceed the largest service level.
    Sl, 4, |raw| Self::try_new(raw as u8).unwrap_or(Self::MAX), |value| u64::from(value.as_u8());
}

impl<T: Field, const N: usize> Field for [T; N] {
    const WIDTH: usize = N * T::WIDTH;
    const ELEMENTS: usize = N;

    #[inline]
    fn read(bytes: &[u8], at: usize) -> Self {
        std::array::from_fn(|index| T::read(bytes, at + index * T::WIDTH))
    }

    #[inline]
    fn write(&self, bytes: &mut [u8], at: usize) {
        for (index, item) in self.iter().enumerate() {
            item.write(bytes, at + index * T::WIDTH);
        }
    }

    fn is_zero(&self) -> bool {
        self.iter().all(T::is_zero)
    }

    fn show(&self, f: &mut fmt::Formatter<'_>, hex: bool) -> fmt::Result {
        let shown = self
            .iter()
            .rposition(|item| !item.is_zero())
            .map_or(0, |last| last + 1);
        f.write_str("[")?;
        for (index, item) in self[..shown].iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            item.show(f, hex)?;
        }
        f.write_str("]")
    }
}

/// An unsigned number of `N` bits, `N` from 1 to 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bits<const N: usize>(u32);

impl<const N: usize> Bits<N> {
    /// The largest value.
    pub const MAX: Self = Self(low_mask(N) as u32);

    /// The number of this value, `None` if it needs more than `N` bits.
    #[inline]
    pub const fn new(value: u32) -> Option<Self> {
        if value <= Self::MAX.0 {
            Some(Self(value))
        } else {
            None
        }
    }

    /// The number of this value, or the largest if it needs more than `N` bits: how error counters end.
    #[inline]
    pub const fn saturating(value: u64) -> Self {
        if value <= Self::MAX.0 as u64 {
            Self(value as u32)
        } else {
            Self::MAX
        }
    }

    /// The value.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl<const N: usize> fmt::Display for Bits<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<const N: usize> Field for Bits<N> {
    const WIDTH: usize = N;

    #[inline]
    fn read(bytes: &[u8], at: usize) -> Self {
        Self(bits(bytes, at, N) as u32)
    }

    #[inline]
    fn write(&self, bytes: &mut [u8], at: usize) {
        set_bits(bytes, at, N, u64::from(self.0));
    }

    fn is_zero(&self) -> bool {
        self.0 == 0
    }

    fn show(&self, f: &mut fmt::Formatter<'_>, hex: bool) -> fmt::Result {
        if hex {
            write!(f, "{:#x}", self.0)
        } else {
            write!(f, "{}", self.0)
        }
    }
}

/// Defines a field of named code points. Codes without a name are kept as they are.
macro_rules! code_points {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $bits:literal {
            $($(#[$point_meta:meta])* $point:ident = $value:literal $text:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($crate::Bits<$bits>);

        impl $name {
            $(
                $(#[$point_meta])*
                pub const $point: Self = Self($crate::Bits::saturating($value));
            )*

            /// The code point of this number, named or not; `None` if it needs more bits than the field has.
            pub const fn new(code: u32) -> Option<Self> {
                match $crate::Bits::new(code) {
                    Some(bits) => Some(Self(bits)),
                    None => None,
                }
            }

            /// The number.
            pub const fn code(self) -> u32 {
                self.0.get()
            }

            /// The name, `None` for codes without one.
            pub const fn name(self) -> Option<&'static str> {
                match self.0.get() {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{:#x}", self.code()),
                }
            }
        }

        impl $crate::Field for $name {
            const WIDTH: usize = $bits;

            fn read(bytes: &[u8], at: usize) -> Self {
                Self($crate::Field::read(bytes, at))
            }

            fn write(&self, bytes: &mut [u8], at: usize) {
                $crate::Field::write(&self.0, bytes, at);
            }

            fn is_zero(&self) -> bool {
                self.code() == 0
            }

            fn show(&self, f: &mut std::fmt::Formatter<'_>, _hex: bool) -> std::fmt::Result {
                write!(f, "{self}")
            }
        }
    };
}

/// Location of a field in its attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLocation {
    /// Name of the field.
    pub name: &'static str,
    /// First bit of the field.
    pub at: usize,
    /// The width in bits, of an array that of an element.
    pub width: usize,
    /// Number of elements: 1, or that of an array.
    pub elements: usize,
    /// The bit of CounterSelect (from 16 on of CounterSelect2) that selects it, of an array its first element.
    pub select: Option<u8>,
}

impl FieldLocation {
    /// The value of an element. Panics if `bytes` ends before the element does.
    pub fn read(&self, bytes: &[u8], element: usize) -> u64 {
        bits(bytes, self.at + element * self.width, self.width)
    }

    /// Sets an element: 64 bits wrap around, smaller fields saturate. Panics if `bytes` ends before the element does.
    pub fn write_counter(&self, bytes: &mut [u8], element: usize, value: u64) {
        let value = value.min(low_mask(self.width));
        set_bits(bytes, self.at + element * self.width, self.width, value);
    }
}

pub(crate) const fn select_bit(named: &[u8]) -> Option<u8> {
    match named {
        [bit] => Some(*bit),
        _ => None,
    }
}

pub(crate) const fn find_location(
    locations: &[FieldLocation],
    name: &str,
) -> Option<FieldLocation> {
    let mut index = 0;
    while index < locations.len() {
        if same(locations[index].name, name) {
            return Some(locations[index]);
        }
        index += 1;
    }
    None
}

/// Defines an attribute or a part of one, its length in bytes, its id if it has one, and its fields, each
/// with its bit offset. `hex` follows where a field is shown in hexadecimal, `select` with a bit of
/// CounterSelect where it is a counter. Bits that no field names are reserved: ignored when parsed, zero when emitted.
///
/// The offsets are proved at compile time to ascend without overlap and to stay inside.
macro_rules! attribute {
    (
        $(#[$meta:meta])*
        pub struct $name:ident[$len:literal] $(= $id:literal)? {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty = $at:literal $($mode:ident $($select:literal)?)?,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl $name {
            $(
                /// The attribute id.
                pub const ID: u16 = $id;
            )?
            /// The length in bytes.
            pub const LEN: usize = $len;
            /// The fields.
            pub const FIELDS: &'static [$crate::FieldLocation] = &[$(
                $crate::FieldLocation {
                    name: stringify!($field),
                    at: $at,
                    width: <$type as $crate::Field>::WIDTH / <$type as $crate::Field>::ELEMENTS,
                    elements: <$type as $crate::Field>::ELEMENTS,
                    select: $crate::field::select_bit(&[$($($select)?)?]),
                },
            )*];

            /// Returns the location of a field.
            ///
            /// # Panics
            /// If there is no such field; in a constant, that ends the compilation.
            pub const fn location(field: &str) -> $crate::FieldLocation {
                match $crate::field::find_location(Self::FIELDS, field) {
                    Some(location) => location,
                    None => panic!("the attribute has no such field"),
                }
            }

            /// Reads the bytes; reserved bits are ignored.
            pub fn parse(bytes: &[u8; $len]) -> Self {
                $crate::Field::read(bytes, 0)
            }

            /// The bytes, reserved bits zero.
            pub fn emit(&self) -> [u8; $len] {
                let mut bytes = [0; $len];
                $crate::Field::write(self, &mut bytes, 0);
                bytes
            }
        }

        const _: () = {
            let mut end = 0;
            $(
                assert!($at >= end, "fields overlap or are out of order");
                end = $at + <$type as $crate::Field>::WIDTH;
            )*
            assert!(end <= $len * 8, "fields beyond the end");
        };

        impl $crate::Field for $name {
            const WIDTH: usize = $len * 8;

            fn read(bytes: &[u8], at: usize) -> Self {
                Self {
                    $($field: $crate::Field::read(bytes, at + $at),)*
                }
            }

            fn write(&self, bytes: &mut [u8], at: usize) {
                $($crate::Field::write(&self.$field, bytes, at + $at);)*
            }

            fn is_zero(&self) -> bool {
                true $(&& $crate::Field::is_zero(&self.$field))*
            }

            fn show(&self, f: &mut std::fmt::Formatter<'_>, _hex: bool) -> std::fmt::Result {
                write!(f, "{{{self}}}")
            }
        }

        /// All fields zero.
        impl Default for $name {
            fn default() -> Self {
                Self::parse(&[0; $len])
            }
        }

        /// The fields that are not zero, on one line.
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut separator = "";
                $(
                    if !$crate::Field::is_zero(&self.$field) {
                        write!(f, "{separator}{}=", stringify!($field))?;
                        let hex = matches!(stringify!($($mode)?), "hex");
                        $crate::Field::show(&self.$field, f, hex)?;
                        separator = " ";
                    }
                )*
                let _ = separator;
                Ok(())
            }
        }
    };
}

/// Defines the attributes of a management class: an enum over the known types; others are stored as bytes.
macro_rules! attributes {
    (
        $(#[$meta:meta])*
        pub enum $name:ident[$len:literal] {
            $($attribute:ident,)*
        }
    ) => {
        $(
            impl From<$attribute> for $name {
                fn from(attribute: $attribute) -> Self {
                    Self::$attribute(attribute)
                }
            }

            const _: () = assert!($attribute::LEN <= $len, "longer than the data of the class");
        )*

        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $(
                #[doc = concat!("See [`", stringify!($attribute), "`].")]
                $attribute($attribute),
            )*
            /// An attribute that this crate does not know, as it came.
            Raw($crate::RawAttribute<$len>),
        }

        impl $name {
            /// The bytes that the class has for an attribute.
            pub const DATA_LEN: usize = $len;

            /// Reads an attribute; one of an unknown id stays bytes.
            pub fn parse(id: u16, data: &[u8; $len]) -> Self {
                match id {
                    $($attribute::ID => Self::$attribute($crate::Field::read(data, 0)),)*
                    _ => Self::Raw($crate::RawAttribute { id, data: *data }),
                }
            }

            /// Writes the attribute, zeros after its end.
            pub fn emit(&self, data: &mut [u8; $len]) {
                data.fill(0);
                match self {
                    $(Self::$attribute(attribute) => $crate::Field::write(attribute, data, 0),)*
                    Self::Raw(raw) => *data = raw.data,
                }
            }

            /// The attribute id.
            pub const fn id(&self) -> u16 {
                match self {
                    $(Self::$attribute(_) => $attribute::ID,)*
                    Self::Raw(raw) => raw.id,
                }
            }

            /// The fields of the attribute with this id, `None` if it is unknown.
            pub const fn fields_of(id: u16) -> Option<&'static [$crate::FieldLocation]> {
                match id {
                    $($attribute::ID => Some($attribute::FIELDS),)*
                    _ => None,
                }
            }

            /// A field by the names of attribute and field, `None` if there is no such field.
            pub const fn find_field(attribute: &str, field: &str) -> Option<$crate::FieldLocation> {
                $(
                    if silvan_core::counters::same(attribute, stringify!($attribute)) {
                        return $crate::field::find_location($attribute::FIELDS, field);
                    }
                )*
                None
            }

            /// The name of the attribute with this id, `None` if it is unknown.
            pub const fn name_of(id: u16) -> Option<&'static str> {
                match id {
                    $($attribute::ID => Some(stringify!($attribute)),)*
                    _ => None,
                }
            }
        }

        /// The fields that are not zero, on one line, without the name.
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$attribute(attribute) => attribute.fmt(f),)*
                    Self::Raw(raw) => $crate::Field::show(&raw.data, f, true),
                }
            }
        }
    };
}

pub(crate) use {attribute, attributes, code_points};

/// An attribute whose id the enum of its class does not know; only parsing makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawAttribute<const N: usize> {
    pub(crate) id: u16,
    pub(crate) data: [u8; N],
}

impl<const N: usize> RawAttribute<N> {
    /// The attribute id.
    pub const fn id(&self) -> u16 {
        self.id
    }

    /// The bytes.
    pub const fn data(&self) -> &[u8; N] {
        &self.data
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_most_significant_bit_first() {
        let bytes = [
            0b1010_0000,
            0xff,
            0x12,
            0x34,
            0x56,
            0x78,
            0x9a,
            0xbc,
            0xde,
            0xf0,
        ];
        assert_eq!(bits(&bytes, 0, 3), 0b101);
        assert_eq!(bits(&bytes, 4, 8), 0x0f);
        assert_eq!(bits(&bytes, 16, 64), 0x1234_5678_9abc_def0);
        assert_eq!(bits(&bytes, 12, 60), 0xf12_3456_789a_bcde);
    }

    proptest! {
        /// Against the plainest reading: one bit at a time.
        #[test]
        fn agrees_with_one_bit_at_a_time(
            mut bytes in any::<[u8; 24]>(), at in 0usize..128, width in 1usize..=64, value: u64,
        ) {
            prop_assume!(at % 8 + width <= 64);
            let bit = |bytes: &[u8], at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
            let expected = (at..at + width).fold(0, |sum, at| sum << 1 | u64::from(bit(&bytes, at)));
            prop_assert_eq!(bits(&bytes, at, width), expected);

            let before = bytes;
            set_bits(&mut bytes, at, width, value);
            prop_assert_eq!(bits(&bytes, at, width), value & low_mask(width));
            for other in (0..24 * 8).filter(|other| !(at..at + width).contains(other)) {
                prop_assert_eq!(bit(&bytes, other), bit(&before, other));
            }
        }
    }
}
