//! Enums of schemes that are schemes themselves: one engine serves all variants at a predictable branch per call.

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
