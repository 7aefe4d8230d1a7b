//! Enums of schemes that are schemes themselves.
//!
//! An engine is compiled for each pair of schemes that it is given, which takes seconds. One that is
//! compiled for an enum serves all its variants, at the price of a predictable branch for each call. The
//! macros that declare such enums, `one_of_switches` and `one_of_sources`, come with the
//! hooks that they delegate.

/// The settings of the scheme in the variant.
#[doc(hidden)]
#[macro_export]
macro_rules! one_of_settings {
    ($name:ident, $($variant:ident)*) => {
        impl $crate::seam::Settings for $name {
            fn apply(
                &mut self,
                now: $crate::units::Time,
                change: &$crate::seam::SettingChange,
            ) -> Result<(), $crate::seam::UnknownSetting> {
                match self {
                    $(Self::$variant(scheme) => $crate::seam::Settings::apply(scheme, now, change),)*
                }
            }
        }
    };
}

#[cfg(test)]
mod tests;
