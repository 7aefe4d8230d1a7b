//! Parameters of schemes: [`parameters!`](crate::parameters) makes the scenario's table, schema, defaults, bounds and
//! search ranges.

use schemars::Schema;
use serde_json::Value;
use silvan_core::{Bytes, Rate, Span};

use super::SchemeError;

/// The declared parameters of a scheme.
pub trait Declared {
    /// The parameters that have bounds, a source or a range to search, in the order of their declaration.
    fn parameters() -> Vec<ParameterInfo> {
        Vec::new()
    }

    /// Checks each parameter by its declared bounds. Errors: the first at fault, with a hint.
    fn check_bounds(&self) -> Result<(), SchemeError> {
        Ok(())
    }
}

/// The declaration of a parameter without its type, default and comment, which the schema has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParameterInfo {
    /// Key within `[control.NAME]`.
    pub key: &'static str,
    /// Values that are possible.
    pub bounds: Bounds,
    /// The reason that the source gives for the bounds. It ends messages about the parameter.
    pub source: Option<&'static str>,
    /// Values that a search draws.
    pub search: Option<Search>,
}

/// Possible values, within the range of the type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bounds {
    /// All.
    Any,
    /// Numbers above the first one, at most the second one.
    Above(f64, f64),
    /// Numbers above the first one and below the second one.
    Between(f64, f64),
    /// Numbers from the first one to the second one.
    From(f64, f64),
    /// Whole numbers from the first one to the second one.
    Whole(u64, u64),
    /// Amounts of data above zero, at most so many bytes.
    Size(u64),
    /// Times of at least a nanosecond.
    Time,
    /// Values above that of another key, at most a number.
    AboveKey(&'static str, f64),
}

impl Bounds {
    /// Above 0, at most 1.
    pub const PART: Self = Self::Above(0.0, 1.0);
    /// Any amount of data but zero.
    pub const SOME_BYTES: Self = Self::Size(u64::MAX);

    /// Values that just miss the bounds, as a scenario writes them. The type may exclude some of them, too.
    pub fn outside(self) -> Vec<String> {
        match self {
            Self::Any | Self::AboveKey(..) => Vec::new(),
            Self::Above(above, most) => vec![number(above), number(above_next(most)), "nan".into()],
            Self::Between(above, below) => vec![number(above), number(below), "nan".into()],
            Self::From(least, most) => {
                vec![
                    number(below_next(least)),
                    number(above_next(most)),
                    "nan".into(),
                ]
            }
            Self::Whole(least, most) => {
                let below = least.checked_sub(1).into_iter();
                let values = below.chain(most.checked_add(1));
                values.map(|value| value.to_string()).collect()
            }
            Self::Size(most) => {
                let values = std::iter::once(0).chain(most.checked_add(1));
                values.map(|bytes| format!("\"{bytes} B\"")).collect()
            }
            Self::Time => vec!["\"999 ps\"".to_owned()],
        }
    }

    /// The smallest and the largest possible values, as a scenario writes them.
    pub fn ends(self) -> Vec<String> {
        match self {
            Self::Any | Self::AboveKey(..) => Vec::new(),
            Self::Above(above, most) => vec![number(above_next(above)), number(most)],
            Self::Between(above, below) => {
                vec![number(above_next(above)), number(below_next(below))]
            }
            Self::From(least, most) => vec![number(least), number(most)],
            Self::Whole(least, most) => vec![least.to_string(), most.to_string()],
            Self::Size(u64::MAX) => vec!["\"1 B\"".to_owned()],
            Self::Size(most) => vec!["\"1 B\"".to_owned(), format!("\"{most} B\"")],
            Self::Time => vec!["\"1 ns\"".to_owned()],
        }
    }
}

fn above_next(value: f64) -> f64 {
    f64::from_bits(value.to_bits() + 1)
}

fn below_next(value: f64) -> f64 {
    f64::from_bits(value.to_bits() - 1)
}

fn number(value: f64) -> String {
    value.to_string()
}

/// Values that a search draws for a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// The values.
    pub values: SearchValues,
    /// True if the parameter is drawn after the parameters declared behind it.
    pub is_late: bool,
    /// A key that a scenario must have beside this one: a table takes all keys from its default, or none.
    pub beside: Option<&'static str>,
}

/// The values of a [`Search`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchValues {
    /// An eighth of the published value to eight times as much, over the logarithm.
    Scaled,
    /// Numbers.
    Numbers {
        /// The smallest.
        low: f64,
        /// The largest.
        high: f64,
        /// True to search over the logarithm.
        log: bool,
    },
    /// Whole numbers.
    Whole {
        /// The smallest.
        low: u32,
        /// The largest.
        high: u32,
        /// True to search over the logarithm.
        log: bool,
    },
    /// Some whole numbers, in their order.
    Choices(&'static [u32]),
}

impl Search {
    /// An eighth of the published value to eight times as much: for sizes, times and rates.
    pub const SCALED: Self = Self::new(SearchValues::Scaled);

    const fn new(values: SearchValues) -> Self {
        Self {
            values,
            is_late: false,
            beside: None,
        }
    }

    /// Numbers of a range.
    pub const fn numbers(low: f64, high: f64) -> Self {
        let log = false;
        Self::new(SearchValues::Numbers { low, high, log })
    }

    /// Whole numbers of a range.
    pub const fn whole(low: u32, high: u32) -> Self {
        let log = false;
        Self::new(SearchValues::Whole { low, high, log })
    }

    /// Some whole numbers, in their order.
    pub const fn choices(choices: &'static [u32]) -> Self {
        Self::new(SearchValues::Choices(choices))
    }

    /// The search over the logarithm of the range.
    #[must_use]
    pub const fn log(mut self) -> Self {
        if let SearchValues::Numbers { log, .. } | SearchValues::Whole { log, .. } =
            &mut self.values
        {
            *log = true;
        }
        self
    }

    /// The search of a parameter that is drawn after those that are declared behind it.
    #[must_use]
    pub const fn late(mut self) -> Self {
        self.is_late = true;
        self
    }

    /// The search of a parameter that needs another key beside it.
    #[must_use]
    pub const fn beside(mut self, key: &'static str) -> Self {
        self.beside = Some(key);
        self
    }
}

/// A value that bounds apply to.
pub trait ParameterValue {
    /// Bytes, picoseconds, bit/s or the number itself; `None` if the key is not given.
    fn amount(&self) -> Option<f64>;

    /// The value as messages show it; empty if it is not given.
    fn shown(&self) -> String;

    /// The value as hints show it, in quotes if a scenario needs them; empty if it is not given.
    fn example(&self) -> String;

    /// Returns true if both values are given and this value is at most the other value.
    fn is_at_most(&self, other: &Self) -> bool;
}

macro_rules! values {
    ($($type:ty, $quote:literal, |$value:ident| $amount:expr;)*) => {
        $(
            impl ParameterValue for $type {
                fn amount(&self) -> Option<f64> {
                    let $value = *self;
                    Some($amount)
                }

                fn shown(&self) -> String {
                    self.to_string()
                }

                fn example(&self) -> String {
                    format!("{}{self}{}", $quote, $quote)
                }

                fn is_at_most(&self, other: &Self) -> bool {
                    self <= other
                }
            }
        )*
    };
}

values! {
    f64, "", |value| value;
    u8, "", |value| f64::from(value);
    u16, "", |value| f64::from(value);
    u32, "", |value| f64::from(value);
    Bytes, "\"", |value| value.as_u64() as f64;
    Span, "\"", |value| value.as_ps() as f64;
    Rate, "\"", |value| value.bits_per_sec() as f64;
}

impl<T: ParameterValue> ParameterValue for Option<T> {
    fn amount(&self) -> Option<f64> {
        self.as_ref().and_then(T::amount)
    }

    fn shown(&self) -> String {
        self.as_ref().map(T::shown).unwrap_or_default()
    }

    fn example(&self) -> String {
        self.as_ref().map(T::example).unwrap_or_default()
    }

    fn is_at_most(&self, other: &Self) -> bool {
        matches!((self, other), (Some(value), Some(other)) if value.is_at_most(other))
    }
}

#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct BoundCheck {
    /// The key of the parameter.
    pub key: &'static str,
    pub message: Option<&'static str>,
    pub example: Option<&'static str>,
}

impl BoundCheck {
    fn error(self, message: String, default: &impl ParameterValue) -> SchemeError {
        let message = self.message.map_or(message, str::to_owned);
        let example = self
            .example
            .map_or_else(|| default.example(), str::to_owned);
        SchemeError::new(self.key, message, format!("write e.g. {example}"))
    }

    /// Checks a value by bounds that are its own. Errors: the value is outside.
    pub fn own<V: ParameterValue>(
        self,
        bounds: Bounds,
        value: &V,
        default: &V,
    ) -> Result<(), SchemeError> {
        let Some(amount) = value.amount() else {
            return Ok(());
        };
        let shown = value.shown();
        let (is_inside, message) = match bounds {
            Bounds::Any | Bounds::AboveKey(..) => return Ok(()),
            Bounds::Above(above, most) => (
                amount > above && amount <= most,
                format!("{shown} is not above {above} and at most {most}"),
            ),
            Bounds::Between(above, below) => (
                amount > above && amount < below,
                format!("{shown} is not above {above} and below {below}"),
            ),
            Bounds::From(least, most) => (
                (least..=most).contains(&amount),
                format!("{shown} is not {least} to {most}"),
            ),
            Bounds::Whole(least, most) => (
                (least as f64..=most as f64).contains(&amount),
                format!("{shown} is not {least} to {most}"),
            ),
            Bounds::Size(_) if amount == 0.0 => (false, "0 B is nothing".to_owned()),
            Bounds::Size(most) => (
                amount <= most as f64,
                format!("{shown} is more than {most} B"),
            ),
            Bounds::Time => (
                amount >= Span::from_ns(1).as_ps() as f64,
                format!("{shown} is less than a nanosecond"),
            ),
        };
        match is_inside {
            true => Ok(()),
            false => Err(self.error(message, default)),
        }
    }

    /// Checks that a value is above that of another key, if both are given, and at most a number. Errors: it is not.
    pub fn above<V: ParameterValue>(
        self,
        value: &V,
        (other, least): (&'static str, &V),
        most: f64,
        default: &V,
    ) -> Result<(), SchemeError> {
        if value.is_at_most(least) {
            let message = format!("{} is not above {other}, {}", value.shown(), least.shown());
            let hint = format!("raise it, or lower {other}");
            return Err(SchemeError::new(self.key, message, hint));
        }
        match least.amount() {
            Some(least) => self.own(Bounds::Above(least, most), value, default),
            None => Ok(()),
        }
    }
}

/// Adds the declared bounds of numbers to the schema of a table.
#[doc(hidden)]
pub fn add_bounds<T: Declared>(schema: &mut Schema) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    let Some(properties) = properties else { return };
    for parameter in T::parameters() {
        let property = properties.get_mut(parameter.key);
        let Some(property) = property.and_then(Value::as_object_mut) else {
            continue;
        };
        let mut add = |key: &str, value: Value| property.insert(key.to_owned(), value);
        match parameter.bounds {
            Bounds::Above(above, most) => {
                add("exclusiveMinimum", above.into());
                add("maximum", most.into());
            }
            Bounds::Between(above, below) => {
                add("exclusiveMinimum", above.into());
                add("exclusiveMaximum", below.into());
            }
            Bounds::From(least, most) => {
                add("minimum", least.into());
                add("maximum", most.into());
            }
            Bounds::Whole(least, most) => {
                add("minimum", least.into());
                if most < u64::from(u32::MAX) {
                    add("maximum", most.into());
                }
            }
            Bounds::AboveKey(_, most) if most.is_finite() => {
                add("maximum", most.into());
            }
            Bounds::Any | Bounds::Size(_) | Bounds::Time | Bounds::AboveKey(..) => {}
        }
    }
}

/// The key of a field: `-` in the place of `_`.
#[doc(hidden)]
pub const fn key_of<const LENGTH: usize>(field: &str) -> [u8; LENGTH] {
    let mut key = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        let byte = field.as_bytes()[at];
        key[at] = if byte == b'_' { b'-' } else { byte };
        at += 1;
    }
    key
}

#[doc(hidden)]
#[macro_export]
macro_rules! parameter_key {
    ($($part:expr),+) => {
        const {
            const FIELD: &str = concat!($($part),+);
            const KEY: [u8; FIELD.len()] = $crate::schemes::parameter::key_of(FIELD);
            match std::str::from_utf8(&KEY) {
                Ok(key) => key,
                Err(_) => unreachable!(),
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! clause {
    (; $absent:expr) => {
        $absent
    };
    ($given:expr; $absent:expr) => {
        $given
    };
}

/// Declares the parameters of a scheme: the table `[control.NAME]` of a scenario.
///
/// Each field has a comment, which is its text in the reference of scenario keys, its type, and these clauses in their order.
/// `default` is the only one that is needed.
///
/// | clause | meaning |
/// |---|---|
/// | `default` | the value of a key that is not given |
/// | `unit` | the unit of a plain number |
/// | `bounds` | [`Bounds`] of the value |
/// | `above` | another parameter that the value is above; `above: least to 1e6` adds the largest value |
/// | `message` | the message of a value outside of the bounds, if it is not that of the bounds |
/// | `example` | the value that hints show, if it is not the default |
/// | `source` | what the source says of the bounds: it ends messages about the parameter |
/// | `search` | [`Search`]: the values that `tune` and the arena try |
///
/// [`Bounds`]: crate::schemes::Bounds
/// [`Search`]: crate::schemes::Search
#[macro_export]
macro_rules! parameters {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $(
                $(#[$field_about:meta])*
                $field:ident: $type:ty {
                    default: $default:expr,
                    $(unit: $unit:literal,)?
                    $(bounds: $bounds:expr,)?
                    $(above: $lower:ident $(to $most:literal)?,)?
                    $(message: $message:literal,)?
                    $(example: $example:literal,)?
                    $(source: $source:literal,)?
                    $(search: $search:expr,)?
                }
            )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
        #[schemars(transform = $crate::schemes::parameter::add_bounds::<$name>)]
        pub struct $name {
            $(
                $(#[$field_about])*
                $(#[schemars(extend("x-unit" = $unit))])?
                pub $field: $type,
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: $default,)*
                }
            }
        }

        impl $crate::schemes::Declared for $name {
            fn parameters() -> Vec<$crate::schemes::ParameterInfo> {
                vec![$(
                    $crate::schemes::ParameterInfo {
                        key: $crate::parameter_key!(stringify!($field)),
                        bounds: $crate::clause!(
                            $($bounds)?
                            $($crate::schemes::Bounds::AboveKey(
                                $crate::parameter_key!(stringify!($lower)),
                                $crate::clause!($($most)?; f64::INFINITY),
                            ))?;
                            $crate::schemes::Bounds::Any
                        ),
                        source: $crate::clause!($(Some($source))?; None),
                        search: $crate::clause!($(Some($search))?; None),
                    },
                )*]
            }

            fn check_bounds(&self) -> Result<(), $crate::schemes::SchemeError> {
                let default = Self::default();
                $(
                    let check = $crate::schemes::parameter::BoundCheck {
                        key: $crate::parameter_key!(stringify!($field)),
                        message: $crate::clause!($(Some($message))?; None),
                        example: $crate::clause!($(Some($example))?; None),
                    };
                    $(check.own($bounds, &self.$field, &default.$field)?;)?
                    let $field = check;
                )*
                $($(
                    $field.above(
                        &self.$field,
                        ($crate::parameter_key!(stringify!($lower)), &self.$lower),
                        $crate::clause!($($most)?; f64::INFINITY),
                        &default.$field,
                    )?;
                )?)*
                $(let _ = $field;)*
                let _ = default;
                Ok(())
            }
        }
    };
}
