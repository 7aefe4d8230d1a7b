use std::fmt;

use thiserror::Error;

use crate::advice::Advised;

pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) factor: u64,
}

pub(crate) const fn unit(name: &'static str, factor: u64) -> Unit {
    Unit { name, factor }
}

pub(crate) struct Dimension {
    pub(crate) quantity: &'static str,
    pub(crate) example: &'static str,
    pub(crate) max: u64,
    /// Accepted units, the base unit first; the name is matched exactly, case included.
    pub(crate) units: &'static [Unit],
    pub(crate) refused: &'static [(&'static str, &'static str)],
}

/// Why a text is not a quantity; the message quotes the text, and the [advice](Advised) says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseQuantityError {
    quantity: &'static str,
    input: String,
    reason: ParseQuantityReason,
    hint: String,
}

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Advised {
            message: self.message(),
            hint: &self.hint,
        }
        .fmt(f)
    }
}

impl std::error::Error for ParseQuantityError {}

impl ParseQuantityError {
    /// Returns the reason of the error.
    pub fn reason(&self) -> ParseQuantityReason {
        self.reason
    }

    /// Returns the fault with the text, without the hint.
    pub fn message(&self) -> String {
        let Self {
            quantity,
            input,
            reason,
            ..
        } = self;
        format!("invalid {quantity} {input:?}: {reason}")
    }

    /// Returns the hint: an example of a correct text.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

/// The kinds of [`ParseQuantityError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseQuantityReason {
    /// The text does not start with an unsigned decimal number.
    #[error("it does not start with a decimal number")]
    NotANumber,
    /// A number without a unit.
    #[error("the unit is missing")]
    MissingUnit,
    /// A unit that this quantity does not have, or that could mean two things.
    #[error("the unit is not known")]
    UnknownUnit,
    /// The value is not a whole number of base units.
    #[error("it is not a whole number of base units")]
    Inexact,
    /// The value does not fit in 64 bits of base units.
    #[error("it is too large")]
    Overflow,
    /// Zero where the quantity has to be positive.
    #[error("it is zero")]
    Zero,
}

impl Dimension {
    pub(crate) fn error(&self, input: &str, reason: ParseQuantityReason) -> ParseQuantityError {
        self.error_with_hint(input, reason, format!("write e.g. {:?}", self.example))
    }

    fn error_with_hint(
        &self,
        input: &str,
        reason: ParseQuantityReason,
        hint: String,
    ) -> ParseQuantityError {
        ParseQuantityError {
            quantity: self.quantity,
            input: input.to_owned(),
            reason,
            hint,
        }
    }

    /// The number is digits with an optional fraction; the space before the unit may be left out.
    pub(crate) fn parse(&self, input: &str) -> Result<u64, ParseQuantityError> {
        let text = input.trim();
        let split = text
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(text.len());
        let (number, unit_name) = (&text[..split], text[split..].trim_start());

        let (whole, fraction) = match number.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            None => (number, ""),
            Some(_) => return Err(self.error(input, ParseQuantityReason::NotANumber)),
        };
        if whole.is_empty() || fraction.contains('.') {
            return Err(self.error(input, ParseQuantityReason::NotANumber));
        }
        if unit_name.is_empty() {
            return Err(self.error(input, ParseQuantityReason::MissingUnit));
        }
        let Some(unit) = self.units.iter().find(|unit| unit.name == unit_name) else {
            let hint = self.hint_for_unit(unit_name);
            return Err(self.error_with_hint(input, ParseQuantityReason::UnknownUnit, hint));
        };
        let value = match scale(whole, fraction.trim_end_matches('0'), unit.factor) {
            Ok(value) if value > self.max => Err(ParseQuantityReason::Overflow),
            result => result,
        };
        value.map_err(|reason| {
            let base = self.units[0].name;
            let hint = match reason {
                ParseQuantityReason::Inexact => format!("the smallest step is 1 {base}"),
                _ => format!("the largest value is {} {base}", self.max),
            };
            self.error_with_hint(input, reason, hint)
        })
    }

    fn hint_for_unit(&self, unit_name: &str) -> String {
        if let Some((_, advice)) = self.refused.iter().find(|(name, _)| *name == unit_name) {
            return (*advice).to_owned();
        }
        let names: Vec<&str> = self.units.iter().map(|unit| unit.name).collect();
        format!("known units: {}", names.join(", "))
    }

    pub(crate) fn print(&self, f: &mut fmt::Formatter<'_>, value: u64, unit: &Unit) -> fmt::Result {
        f.pad(&decimal(value, unit))
    }

    /// The largest of the sorted `units` within `value`, else the smallest; powers of ten give exact fractions.
    pub(crate) fn largest_unit_within(value: u64, units: &[Unit]) -> &Unit {
        units
            .iter()
            .rev()
            .find(|unit| unit.factor <= value)
            .unwrap_or(&units[0])
    }
}

/// Text of `value` base units in `unit`; exact if the factor is a power of ten or divides `value`.
pub(crate) fn decimal(value: u64, unit: &Unit) -> String {
    let (whole, rest) = (value / unit.factor, value % unit.factor);
    if rest == 0 {
        return format!("{whole} {}", unit.name);
    }
    let digits = unit.factor.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{} {}", fraction.trim_end_matches('0'), unit.name)
}

fn scale(whole: &str, fraction: &str, factor: u64) -> Result<u64, ParseQuantityReason> {
    use ParseQuantityReason::{Inexact, Overflow};

    // A 64-bit factor holds 19 factors of ten at most: a longer fraction cannot be a whole number.
    if fraction.len() > 19 {
        return Err(Inexact);
    }
    let overflow = |_| Overflow;
    let whole: u64 = whole.parse().map_err(overflow)?;
    let mut value = u128::from(whole) * u128::from(factor);
    if !fraction.is_empty() {
        let numerator: u64 = fraction.parse().map_err(overflow)?;
        let scaled = u128::from(numerator) * u128::from(factor);
        let divisor = 10_u128.pow(fraction.len() as u32);
        if scaled % divisor != 0 {
            return Err(Inexact);
        }
        value += scaled / divisor;
    }
    u64::try_from(value).map_err(|_| Overflow)
}

/// Implements `Display`, `FromStr` and serde, as text only, for a quantity that has a `DIMENSION`,
/// `from_base` (base units to value), and `write` (value to text).
macro_rules! text_quantity {
    ($type:ident, $expecting:literal, $example:literal) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.write(f)
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::ParseQuantityError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::from_base(DIMENSION.parse(text)?, text)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;

                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        let example = $example;
                        let message = format_args!("{}, e.g. {example:?}", $expecting);
                        let hint =
                            format_args!("write it in quotes with its unit, e.g. {example:?}");
                        $crate::advice::Advised { message, hint }.fmt(f)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_str(Text)
            }
        }
    };
}
pub(crate) use text_quantity;
