//! Enums of schemes that are schemes themselves.
//!
//! An engine is compiled for each pair of schemes, which takes seconds; compiled for an enum it serves all variants, at
//! the price of a predictable branch per call. The macros `dispatch_switches` and `dispatch_sources` are made from the
//! lists of hooks.

/// The settings of the scheme in the variant.
#[doc(hidden)]
#[macro_export]
macro_rules! dispatch_settings {
    ($name:ident, $($variant:ident)*) => {
        impl $crate::hooks::Settings for $name {
            fn apply(
                &mut self,
                now: $crate::units::Time,
                change: &$crate::hooks::SettingChange,
            ) -> Result<(), $crate::hooks::UnknownSetting> {
                match self {
                    $(Self::$variant(scheme) => $crate::hooks::Settings::apply(scheme, now, change),)*
                }
            }
        }
    };
}

#[cfg(test)]
mod tests;
