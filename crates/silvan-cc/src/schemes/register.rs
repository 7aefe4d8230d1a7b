/// Declares all types and functions over schemes from their list.
///
/// - `schemes`: for each its module, type, name in scenarios and summary. The first is the default.
/// - `chains`: two schemes at once, with a name and a summary, and a function with their variants, if any. They have
///   the parameters of both.
/// - `engines`: schemes with a compiled engine of their own, in addition to none, for traffic without programs
///   ([`Control::with_engine`]).
/// - `separate`, `separate_chains`: other schemes with separate state for each Port VL and each host ([`PerPortVl`],
///   [`PerHost`]). They share an engine with lookahead windows.
macro_rules! register {
    (
        schemes { $($module:ident::$scheme:ident = $name:literal, $summary:literal;)* }
        chains {
            $(
                $chain:ident: $first_module:ident::$first:ident, $second_module:ident::$second:ident
                    = $chain_name:literal, $chain_summary:literal $(, $chain_variants:path)?;
            )*
        }
        engines { $($own_module:ident::$own:ident),* $(,)? }
        separate { $($part_module:ident::$part:ident),* $(,)? }
        separate_chains {
            $($pair:ident: $left_module:ident::$left:ident, $right_module:ident::$right:ident;)*
        }
    ) => {
        $(pub mod $module;)*

        /// The parameters of all schemes: the tables `[control.NAME]`.
        #[derive(Clone, Debug, Default, PartialEq, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields, default)]
        pub struct Parameters {
            $(
                #[doc = $summary]
                #[schemars(rename = $name)]
                pub $module: $module::$scheme,
            )*
        }

        impl Parameters {
            /// Reads the value of a key if it is the name of a scheme. Returns whether it is.
            ///
            /// # Errors
            /// The value is not a table of its parameters.
            pub fn read_key<'de, A: serde::de::MapAccess<'de>>(
                &mut self,
                key: &str,
                map: &mut A,
            ) -> Result<bool, A::Error> {
                match key {
                    $($name => self.$module = map.next_value()?,)*
                    _ => return Ok(false),
                }
                Ok(true)
            }

            /// Writes the table of each scheme that has parameters.
            ///
            /// # Errors
            /// The errors of the serializer.
            pub fn write_keys<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                $(
                    if size_of::<$module::$scheme>() > 0 {
                        map.serialize_entry($name, &self.$module)?;
                    }
                )*
                Ok(())
            }

            /// Fills in the parameters whose default depends on the rest of a scenario.
            pub fn fill_in(&mut self, data_plane: &DataPlane) {
                $(self.$module.fill_in(data_plane);)*
            }

            /// Checks the parameters of all schemes, those that are not in force included.
            ///
            /// # Errors
            /// The first at fault, with its key within `[control]`.
            pub fn check(&self, switches: &dyn Switches) -> Result<(), SchemeError> {
                $(
                    let source_of = |error: SchemeError| {
                        error.with_source(&<$module::$scheme as Declared>::parameters())
                    };
                    self.$module
                        .check()
                        .map_err(source_of)
                        .and_then(|()| self.$module.settings(switches))
                        .map_err(|error| error.within(&KeyPath::ROOT.key($name)))?;
                )*
                Ok(())
            }
        }

        dispatch_switches! {
            /// Control of the switches, of any scheme.
            pub enum AnySwitch {
                $(
                    #[doc = $summary]
                    $scheme(<$module::$scheme as Scheme>::Switch),
                )*
                $(
                    #[doc = $chain_summary]
                    $chain(Chain<
                        <$first_module::$first as Scheme>::Switch,
                        <$second_module::$second as Scheme>::Switch,
                    >),
                )*
            }
        }

        dispatch_sources! {
            /// Control of the hosts, of any scheme.
            pub enum AnySource {
                $(
                    #[doc = $summary]
                    $scheme(<$module::$scheme as Scheme>::Source),
                )*
                $(
                    #[doc = $chain_summary]
                    $chain(Chain<
                        <$first_module::$first as Scheme>::Source,
                        <$second_module::$second as Scheme>::Source,
                    >),
                )*
            }
        }

        dispatch_switches! {
            /// Control of the switches, of any scheme that is separate for each Port VL.
            #[derive(Clone, Debug)]
            pub enum SeparateSwitch {
                /// No scheme.
                None(NoControl),
                $(
                    #[doc = stringify!($own)]
                    $own(<$own_module::$own as Scheme>::Switch),
                )*
                $(
                    #[doc = stringify!($part)]
                    $part(<$part_module::$part as Scheme>::Switch),
                )*
                $(
                    #[doc = stringify!($pair)]
                    $pair(Chain<
                        <$left_module::$left as Scheme>::Switch,
                        <$right_module::$right as Scheme>::Switch,
                    >),
                )*
            }
        }

        dispatch_sources! {
            /// Control of the hosts, of any scheme that is separate for each host.
            #[derive(Clone, Debug)]
            pub enum SeparateSource {
                /// No scheme.
                None(NoControl),
                $(
                    #[doc = stringify!($own)]
                    $own(<$own_module::$own as Scheme>::Source),
                )*
                $(
                    #[doc = stringify!($part)]
                    $part(<$part_module::$part as Scheme>::Source),
                )*
                $(
                    #[doc = stringify!($pair)]
                    $pair(Chain<
                        <$left_module::$left as Scheme>::Source,
                        <$right_module::$right as Scheme>::Source,
                    >),
                )*
            }
        }

        impl PerPortVl for SeparateSwitch {}

        impl PerHost for SeparateSource {}

        $(
            impl From<<$own_module::$own as Scheme>::Switch> for SeparateSwitch {
                fn from(switch: <$own_module::$own as Scheme>::Switch) -> Self {
                    Self::$own(switch)
                }
            }

            impl From<<$own_module::$own as Scheme>::Source> for SeparateSource {
                fn from(source: <$own_module::$own as Scheme>::Source) -> Self {
                    Self::$own(source)
                }
            }
        )*

        impl Control {
            /// Starts an engine with the types of the scheme if one is compiled for it alone, else with the
            /// enums of all.
            pub fn with_engine<E: EngineChoice>(self, choice: E) -> E::Engine {
                match (self.switch, self.source) {
                    (AnySwitch::None(_), AnySource::None(_)) => choice.none(),
                    $((AnySwitch::$own(switch), AnySource::$own(source)) => choice.own(switch, source),)*
                    $(
                        (AnySwitch::$part(switch), AnySource::$part(source)) => {
                            choice.separate(SeparateSwitch::$part(switch), SeparateSource::$part(source))
                        }
                    )*
                    $(
                        (AnySwitch::$pair(switch), AnySource::$pair(source)) => {
                            choice.separate(SeparateSwitch::$pair(switch), SeparateSource::$pair(source))
                        }
                    )*
                    (switch, source) => choice.shared(switch, source),
                }
            }
        }

        /// The name of a scheme, as `control.scheme` gives it.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        pub enum SchemeName {
            $(
                #[doc = $summary]
                #[serde(rename = $name)]
                $scheme,
            )*
            $(
                #[doc = $chain_summary]
                #[serde(rename = $chain_name)]
                $chain,
            )*
        }

        impl SchemeName {
            /// All of them, in the order of their registration.
            pub const ALL: &[Self] = &[$(Self::$scheme,)* $(Self::$chain,)*];

            /// Names of all schemes and chains, in the order of `ALL`.
            pub const NAMES: &[&str] = &[$($name,)* $($chain_name,)*];

            /// The tables of parameters: their names within `[control]`.
            pub const TABLES: &[&str] = &[$($name,)*];

            /// The name as a text.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$scheme => $name,)*
                    $(Self::$chain => $chain_name,)*
                }
            }

            /// A sentence on the scheme.
            pub const fn summary(self) -> &'static str {
                match self {
                    $(Self::$scheme => $summary,)*
                    $(Self::$chain => $chain_summary,)*
                }
            }

            /// Defaults of other sections while the scheme is in force; of a chain, those of its first.
            pub const fn defaults(self) -> Defaults {
                match self {
                    $(Self::$scheme => <$module::$scheme as Scheme>::DEFAULTS,)*
                    $(Self::$chain => <$first_module::$first as Scheme>::DEFAULTS,)*
                }
            }

            /// Returns the family of the scheme; for a chain, that of its second scheme.
            pub const fn family(self) -> variant::Family {
                match self {
                    $(Self::$scheme => <$module::$scheme as Scheme>::FAMILY,)*
                    $(Self::$chain => <$second_module::$second as Scheme>::FAMILY,)*
                }
            }

            /// The variants of the scheme on a fabric.
            pub fn variants(self, facts: &FabricFacts<'_>) -> Vec<Variant> {
                match self {
                    $(Self::$scheme => <$module::$scheme as Scheme>::variants(facts),)*
                    $(Self::$chain => crate::clause!($($chain_variants(facts))?; Vec::new()),)*
                }
            }

            /// Returns true if the scheme, or one of the chain, uses the default rate of cables.
            pub const fn takes_link_rate(self) -> bool {
                match self {
                    $(Self::$scheme => <$module::$scheme as Scheme>::TAKES_LINK_RATE,)*
                    $(Self::$chain => Self::$first.takes_link_rate() || Self::$second.takes_link_rate(),)*
                }
            }

            /// Bytes that each packet and acknowledgement carries in addition while the scheme is in force.
            pub fn wire_bytes(self, parameters: &Parameters) -> silvan_core::Bytes {
                let parts = self.parts().iter().map(|part| match part {
                    $(Self::$scheme => parameters.$module.wire_bytes().as_u64(),)*
                    $(Self::$chain => 0,)*
                });
                silvan_core::Bytes::from_bytes(parts.sum())
            }

            /// The conditions of the schemes in force that were not met in a run where they did not act.
            pub fn idle_reasons(self, parameters: &Parameters) -> Vec<String> {
                let parts = self.parts().iter().filter_map(|part| match part {
                    $(Self::$scheme => parameters.$module.idle_reason(),)*
                    $(Self::$chain => None,)*
                });
                parts.collect()
            }

            /// Returns true if the scheme acts at all.
            pub const fn acts(self) -> bool {
                match self {
                    $(
                        Self::$scheme => {
                            <<$module::$scheme as Scheme>::Switch as SwitchControl>::ACTIVE
                                || <<$module::$scheme as Scheme>::Source as SourceControl>::ACTIVE
                        }
                    )*
                    $(Self::$chain => Self::$first.acts() || Self::$second.acts(),)*
                }
            }

            /// The schemes that are in force: two for a chain, else the scheme itself.
            pub const fn parts(self) -> &'static [Self] {
                match self {
                    $(Self::$scheme => &[Self::$scheme],)*
                    $(Self::$chain => &[Self::$first, Self::$second],)*
                }
            }

            /// The declared parameters of the schemes that are in force, with the name of their tables within `[control]`.
            pub fn parameters(self) -> Vec<(&'static str, ParameterInfo)> {
                let of_part = |part: &Self| match part {
                    $(
                        Self::$scheme => {
                            let parameters = <$module::$scheme as Declared>::parameters();
                            parameters.into_iter().map(|parameter| ($name, parameter)).collect()
                        }
                    )*
                    $(Self::$chain => Vec::new(),)*
                };
                self.parts().iter().flat_map(of_part).collect()
            }

            /// The settings of single ports and those that change during a run.
            ///
            /// # Errors
            /// The first at fault, with its key within `[control]`.
            pub fn settings(
                self,
                parameters: &Parameters,
                switches: &dyn Switches,
            ) -> Result<Changes, SchemeError> {
                match self {
                    $(
                        Self::$scheme => {
                            let settings = parameters.$module.settings(switches);
                            settings.map_err(|error| error.within(&KeyPath::ROOT.key($name)))
                        }
                    )*
                    $(
                        Self::$chain => {
                            let first = Self::$first.settings(parameters, switches)?;
                            Ok(first.and(Self::$second.settings(parameters, switches)?))
                        }
                    )*
                }
            }

            /// Checks the parameters of the schemes that are in force for the fabric of a run.
            ///
            /// # Errors
            /// The first at fault, with its key within `[control]`.
            pub fn check_setup(
                self,
                parameters: &Parameters,
                setup: &Setup<'_>,
            ) -> Result<(), SchemeError> {
                self.parts().iter().try_for_each(|part| match part {
                    $(
                        Self::$scheme => {
                            let checked = parameters.$module.check_setup(setup);
                            checked.map_err(|error| error.within(&KeyPath::ROOT.key($name)))
                        }
                    )*
                    $(Self::$chain => Ok(()),)*
                })
            }

            /// Builds both parts for a fabric. [`Parameters::check`] and [`Self::check_setup`] have found nothing.
            ///
            /// # Errors
            /// The program that runs it is not suitable.
            pub fn build(
                self,
                parameters: &Parameters,
                setup: &Setup<'_>,
            ) -> Result<Control, SchemeError> {
                Ok(match self {
                    $(
                        Self::$scheme => {
                            let (switch, source) = parameters.$module.build(setup)?;
                            Control {
                                switch: AnySwitch::$scheme(switch),
                                source: AnySource::$scheme(source),
                            }
                        }
                    )*
                    $(
                        Self::$chain => {
                            let (first_switch, first_source) = parameters.$first_module.build(setup)?;
                            let (second_switch, second_source) =
                                parameters.$second_module.build(setup)?;
                            Control {
                                switch: AnySwitch::$chain(Chain(first_switch, second_switch)),
                                source: AnySource::$chain(Chain(first_source, second_source)),
                            }
                        }
                    )*
                })
            }
        }
    };
}
