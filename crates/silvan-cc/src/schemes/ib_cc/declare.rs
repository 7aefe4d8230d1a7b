//! The macro that declares the settings of ports: attributes, scenario sections, [`PortSetting`](super::PortSetting),
//! [`AdapterSetting`](super::AdapterSetting), datagram fields.

use silvan_core::document::KeyPath;

use super::cct::CctEntry;
use super::scheme::{return_delay, weight};
use super::threshold::ThresholdWeight;
use crate::schemes::SchemeError;

pub(super) trait FromKey<K>: Sized {
    fn from_key(value: K, key: KeyPath) -> Result<Self, SchemeError>;
}

impl<T> FromKey<T> for T {
    fn from_key(value: T, _: KeyPath) -> Result<Self, SchemeError> {
        Ok(value)
    }
}

impl FromKey<u8> for ThresholdWeight {
    fn from_key(value: u8, key: KeyPath) -> Result<Self, SchemeError> {
        weight(value, key)
    }
}

impl FromKey<f64> for CctEntry {
    fn from_key(value: f64, key: KeyPath) -> Result<Self, SchemeError> {
        return_delay(value, key)
    }
}

pub(super) fn key_of(field: &str) -> String {
    field.replace('_', "-")
}

pub(super) fn keys_of(fields: &[&str]) -> String {
    let keys: Vec<String> = fields.iter().map(|field| key_of(field)).collect();
    match keys.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => keys.concat(),
    }
}

/// Declares the settings of switch ports and of adapter ports. A setting is written `Variant field: K as T`. `K` is the
/// type of its keys in a scenario, and `T`, which implements [`FromKey<K>`], the type of its values. The first line of
/// its comment documents it in `port` and `change`, all lines in its section. `datagrams` names the fields of
/// management attributes that carry it, if any. For switches, they are fields of SwitchCongestionSetting, with the bit
/// of Control_Map, and of SwitchPortCongestionSetting; for adapters, of CACongestionSetting. `search` states the values
/// that `tune` and the arena try. `others` are keys of the section that are no settings of single ports. A mask selects
/// ports in the section, and is one bit of a port elsewhere, which `of_port` documents.
macro_rules! settings {
    (
        $d:tt
        $(#[$switch_about:meta])*
        section $switch_section:ident at $switch_key:literal {
            $(
                $(#[$group_about:meta])*
                group $group_variant:ident $group:ident: $group_type:ident {
                    $(
                        #[doc = $short:literal]
                        $(#[doc = $more:literal])*
                        $variant:ident $field:ident: $key:ty as $type:ty {
                            default: $default:expr,
                            $(max: $max:literal,)?
                            $(unit: $unit:literal,)?
                            $(datagrams: $whole_field:ident by $part:ident, $port_field:ident,)?
                            $(search: $search:expr,)?
                        }
                    )*
                }
            )*
            masks {
                $(
                    $(#[$mask_about:meta])*
                    $mask_variant:ident $mask:ident as $bit:ident {
                        default: $mask_default:expr,
                        of_port: $mask_short:literal,
                        datagrams: $mask_field:ident by $mask_part:ident,
                    }
                )*
            }
            others {
                $(
                    $(#[$other_about:meta])*
                    $other:ident: $other_type:ty = $other_default:expr;
                )*
            }
        }
        $(#[$adapter_about:meta])*
        section $adapter_section:ident at $adapter_key:literal {
            $(#[$entry_about:meta])*
            group $entry_type:ident {
                $(
                    #[doc = $entry_short:literal]
                    $(#[doc = $entry_more:literal])*
                    $entry_variant:ident $entry:ident: $entry_key:ty as $entry_value:ty {
                        default: $entry_default:expr,
                        $(max: $entry_max:literal,)?
                        $(unit: $entry_unit:literal,)?
                        $(datagrams: $entry_field:ident,)?
                        $(search: $entry_search:expr,)?
                    }
                )*
            }
            others {
                $(
                    $(#[$adapter_other_about:meta])*
                    $adapter_other:ident: $adapter_other_type:ty = $adapter_other_default:expr;
                )*
            }
        }
    ) => {
        $(
            $(#[$group_about])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $group_type {
                $(
                    #[doc = $short]
                    $(#[doc = $more])*
                    pub $field: $type,
                )*
            }
        )*

        $(#[$entry_about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $entry_type {
            $(
                #[doc = $entry_short]
                $(#[doc = $entry_more])*
                pub $entry: $entry_value,
            )*
        }

        impl $entry_type {
            /// Changes one setting.
            pub fn set(&mut self, setting: AdapterSetting) {
                match setting {
                    $(AdapterSetting::$entry_variant(value) => self.$entry = value,)*
                }
            }
        }

        /// The settings that hold at one port: its own where it has any, its switch's otherwise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct EffectivePortSetting {
            $(
                #[doc = concat!("[`", stringify!($group_type), "`].")]
                pub $group: $group_type,
            )*
            $(
                #[doc = concat!("The port's bit of `", stringify!($mask), "`.")]
                pub $bit: bool,
            )*
        }

        impl EffectivePortSetting {
            /// Changes one setting.
            pub fn set(&mut self, setting: PortSetting) {
                match setting {
                    $($(PortSetting::$variant(value) => self.$group.$field = value,)*)*
                    $(PortSetting::$mask_variant(value) => self.$bit = value,)*
                }
            }
        }

        /// A setting of a switch port, with its value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PortSetting {
            $($(#[doc = $short] $variant($type),)*)*
            $(#[doc = $mask_short] $mask_variant(bool),)*
        }

        impl PortSetting {
            pub(super) const FIELDS: &'static [&'static str] =
                &[$($(stringify!($field),)*)* $(stringify!($mask),)*];

            /// Returns the group of the setting.
            pub fn group(self) -> PortGroup {
                match self {
                    $($(Self::$variant(_) => PortGroup::$group_variant,)*)*
                    $(Self::$mask_variant(_) => PortGroup::Masks,)*
                }
            }
        }

        /// Groups of settings of switch ports.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PortGroup {
            $(#[doc = concat!("[`", stringify!($group_type), "`].")] $group_variant,)*
            /// The bits of the port in masks of its switch.
            Masks,
        }

        /// A setting of an adapter on one service level, with its value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum AdapterSetting {
            $(#[doc = $entry_short] $entry_variant($entry_value),)*
        }

        impl AdapterSetting {
            pub(super) const FIELDS: &'static [&'static str] = &[$(stringify!($entry)),*];
        }

        $(#[$switch_about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
        pub struct $switch_section {
            $($(
                #[doc = $short]
                $(#[doc = $more])*
                $(#[schemars(range(max = $max))])?
                $(#[schemars(extend("x-unit" = $unit))])?
                pub $field: $key,
            )*)*
            $(
                $(#[$mask_about])*
                pub $mask: PortSelection,
            )*
            $($(#[$other_about])* pub $other: $other_type,)*
        }

        impl Default for $switch_section {
            fn default() -> Self {
                Self {
                    $($($field: $default,)*)*
                    $($mask: $mask_default,)*
                    $($other: $other_default,)*
                }
            }
        }

        impl $switch_section {
            pub(super) fn parameters() -> Vec<$crate::schemes::ParameterInfo> {
                vec![$($(
                    $crate::schemes::ParameterInfo {
                        key: $crate::parameter_key!($switch_key, ".", stringify!($field)),
                        bounds: $crate::clause!(
                            $($crate::schemes::Bounds::Whole(0, $max))?;
                            $crate::schemes::Bounds::Any
                        ),
                        source: None,
                        search: $crate::clause!($(Some($search))?; None),
                    },
                )*)*]
            }

            $(
                pub(super) fn $group(&self) -> Result<$group_type, SchemeError> {
                    let section = KeyPath::from($switch_key);
                    Ok($group_type {
                        $($field: FromKey::from_key(self.$field, section.key(&key_of(stringify!($field))))?,)*
                    })
                }
            )*
        }

        $(#[$adapter_about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
        pub struct $adapter_section {
            $(
                #[doc = $entry_short]
                $(#[doc = $entry_more])*
                $(#[schemars(range(max = $entry_max))])?
                $(#[schemars(extend("x-unit" = $entry_unit))])?
                pub $entry: $entry_key,
            )*
            $($(#[$adapter_other_about])* pub $adapter_other: $adapter_other_type,)*
        }

        impl Default for $adapter_section {
            fn default() -> Self {
                Self {
                    $($entry: $entry_default,)*
                    $($adapter_other: $adapter_other_default,)*
                }
            }
        }

        impl $adapter_section {
            pub(super) fn parameters() -> Vec<$crate::schemes::ParameterInfo> {
                vec![$(
                    $crate::schemes::ParameterInfo {
                        key: $crate::parameter_key!($adapter_key, ".", stringify!($entry)),
                        bounds: $crate::clause!(
                            $($crate::schemes::Bounds::Whole(0, $entry_max))?;
                            $crate::schemes::Bounds::Any
                        ),
                        source: None,
                        search: $crate::clause!($(Some($entry_search))?; None),
                    },
                )*]
            }

            pub(super) fn entry(&self) -> Result<$entry_type, SchemeError> {
                let section = KeyPath::from($adapter_key);
                Ok($entry_type {
                    $($entry: FromKey::from_key(self.$entry, section.key(&key_of(stringify!($entry))))?,)*
                })
            }
        }

        /// Settings of one port, or of all ports of one switch.
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct PortOverride {
            /// Name of the switch.
            pub switch: String,
            /// Number of the port. Default: all ports of the switch.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub port: Option<u8>,
            $($(
                #[doc = $short]
                #[serde(default, skip_serializing_if = "Option::is_none")]
                $(#[schemars(range(max = $max))])?
                $(#[schemars(extend("x-unit" = $unit))])?
                pub $field: Option<$key>,
            )*)*
            $(
                #[doc = $mask_short]
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $mask: Option<bool>,
            )*
        }

        /// Settings that change at an instant of the run: those of a switch, or those of all adapters.
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct SettingChangeEntry {
            /// Time of the change, from the start of the run.
            #[schemars(with = "silvan_core::schema::SpanText")]
            pub at: silvan_core::Span,
            /// Name of the switch, for settings of its ports. Default: all switches.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub switch: Option<String>,
            /// Number of the port. Default: all ports of the switch.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub port: Option<u8>,
            $($(
                #[doc = $short]
                #[serde(default, skip_serializing_if = "Option::is_none")]
                $(#[schemars(range(max = $max))])?
                $(#[schemars(extend("x-unit" = $unit))])?
                pub $field: Option<$key>,
            )*)*
            $(
                #[doc = $mask_short]
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $mask: Option<bool>,
            )*
            /// Service level of the adapters' settings. Default: all.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(with = "Option<silvan_core::schema::SlNumber>")]
            pub sl: Option<silvan_core::Sl>,
            $(
                #[doc = $entry_short]
                #[serde(default, skip_serializing_if = "Option::is_none")]
                $(#[schemars(range(max = $entry_max))])?
                $(#[schemars(extend("x-unit" = $entry_unit))])?
                pub $entry: Option<$entry_key>,
            )*
        }

        settings! { @read PortOverride.port_settings -> PortSetting {
            $($($variant $field)*)* $($mask_variant $mask)*
        } }
        settings! { @read SettingChangeEntry.port_settings -> PortSetting {
            $($($variant $field)*)* $($mask_variant $mask)*
        } }
        settings! { @read SettingChangeEntry.adapter_settings -> AdapterSetting {
            $($entry_variant $entry)*
        } }

        /// Calls a macro with the settings that management datagrams carry. Groups of a switch port's settings come
        /// with their fields in SwitchCongestionSetting, the bit of Control_Map that selects them, and their fields in
        /// SwitchPortCongestionSetting. Then come the masks, and the settings of an adapter with their fields in
        /// CACongestionSetting.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! setting_datagrams {
            ($d then:ident) => {
                $d then! {
                    $($group: $group_type {
                        $($($field = $whole_field by $part, $port_field;)?)*
                    })*
                    masks { $($mask = $mask_field by $mask_part;)* }
                    adapter { $($($entry = $entry_field;)?)* }
                }
            };
        }
    };
    (@read $entry:ident.$method:ident -> $setting:ident { $($variant:ident $field:ident)* }) => {
        impl $entry {
            /// The settings that the entry gives.
            pub(super) fn $method(&self, at: &KeyPath) -> Result<Vec<$setting>, SchemeError> {
                let mut settings = Vec::new();
                $(
                    if let Some(value) = self.$field {
                        let value = FromKey::from_key(value, at.key(&key_of(stringify!($field))))?;
                        settings.push($setting::$variant(value));
                    }
                )*
                Ok(settings)
            }
        }
    };
}
