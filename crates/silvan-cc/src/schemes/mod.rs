//! Schemes of one file each, and the list of them.
//!
//! A scheme is a type with its parameters that implements [`Scheme`]: it says what runs at the
//! switches and what at the hosts, in terms of the [hooks](crate::hooks). A line in the list at
//! the end of this file registers it for everything else:
//!
//! - `control.scheme = "NAME"` chooses it, and `[control.own.NAME]` holds its parameters, with the
//!   same checks, hints and defaults as any other section;
//! - the reference of scenario keys and the JSON schema describe it;
//! - [`Choice::build`] builds it as one of [`OwnSwitch`] and [`OwnSource`], for which the runner has
//!   an engine compiled, so that it runs as fast as those built-in schemes that share it.
//!
//! The guide's page "A scheme of one's own" builds one step by step. [`Dcqcn`] came through the same
//! door.
//!
//! ```
//! use silvan_cc::schemes::{Choice, Parameters};
//!
//! assert!(Choice::ALL.iter().any(|choice| choice.name() == "dcqcn"));
//! assert_eq!(Choice::Dcqcn.check(&Parameters::default()), Ok(()));
//! ```

pub mod callbacks;
pub mod ecn;
pub mod ib_cc;
pub mod pft;
mod scheme;

pub use silvan_core::schema as quantity;

pub use scheme::{Defaults, Feedback, Scheme, SchemeError, Setup};

/// Registers schemes: for each its module, its type, its name in scenarios and a sentence on it.
macro_rules! register {
    ($($module:ident::$scheme:ident = $name:literal, $summary:literal;)*) => {
        $(
            mod $module;
            pub use $module::$scheme;
        )*

        /// The parameters of all registered schemes.
        #[derive(
            Clone, Debug, Default, PartialEq,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(deny_unknown_fields, default)]
        pub struct Parameters {
            $(
                #[doc = $summary]
                #[serde(rename = $name)]
                pub $module: $scheme,
            )*
        }

        dispatch_switches! {
            /// What runs at the switches, of one of the registered schemes.
            pub enum OwnSwitch {
                $(
                    #[doc = $summary]
                    $scheme(<$scheme as Scheme>::Switch),
                )*
            }
        }

        dispatch_sources! {
            /// What runs at the hosts, of one of the registered schemes.
            pub enum OwnSource {
                $(
                    #[doc = $summary]
                    $scheme(<$scheme as Scheme>::Source),
                )*
            }
        }

        /// One of the registered schemes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Choice {
            $(
                #[doc = $summary]
                $scheme,
            )*
        }

        impl Choice {
            /// All of them, in the order of their registration.
            pub const ALL: &[Self] = &[$(Self::$scheme),*];

            /// Their names in scenarios, in the same order.
            pub const NAMES: &[&str] = &[$($name),*];

            /// Its name in scenarios.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$scheme => $name,)*
                }
            }

            /// A sentence on it.
            pub const fn summary(self) -> &'static str {
                match self {
                    $(Self::$scheme => $summary,)*
                }
            }

            /// What it wants of the rest of a scenario where that says nothing.
            pub fn defaults(self) -> Defaults {
                match self {
                    $(Self::$scheme => <$scheme as Scheme>::DEFAULTS,)*
                }
            }

            /// Builds both parts of it for a fabric. [`check`](Self::check) has found nothing.
            pub fn build(self, parameters: &Parameters, setup: &Setup<'_>) -> (OwnSwitch, OwnSource) {
                match self {
                    $(Self::$scheme => {
                        let (switch, source) = parameters.$module.build(setup);
                        (OwnSwitch::$scheme(switch), OwnSource::$scheme(source))
                    })*
                }
            }

            /// Checks its parameters.
            ///
            /// # Errors
            /// The first at fault.
            pub fn check(self, parameters: &Parameters) -> Result<(), SchemeError> {
                match self {
                    $(Self::$scheme => parameters.$module.check(),)*
                }
            }
        }
    };
}

register! {
    dcqcn::Dcqcn = "dcqcn", "DCQCN: marks at random by queue length, rates at the hosts (Zhu et al. 2015).";
    half::Half = "half", "The worked example of the guide: a mark halves a flow's rate.";
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use super::*;

    #[test]
    fn every_scheme_works_as_it_is() {
        let parameters = Parameters::default();
        for choice in Choice::ALL {
            assert_eq!(choice.check(&parameters), Ok(()), "{}", choice.name());
            assert!(choice.summary().ends_with('.'), "{}", choice.name());
        }
        let mut names = Choice::NAMES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Choice::ALL.len());
    }

    /// The effective scenario spells defaults out, and must read back as it was.
    #[test]
    fn parameters_survive_text() {
        let parameters = Parameters::default();
        let text = serde_json::to_string(&parameters).unwrap();
        let read: Parameters = serde_json::from_str(&text).unwrap();
        assert_eq!(read, parameters);
    }
}
