//! Enums of schemes that are schemes themselves.
//!
//! An engine is compiled for each pair of schemes that it is given, which takes seconds. One that is
//! compiled for an enum serves all its variants, at the price of a predictable branch for each call.

/// Declares an enum with a scheme in each variant that is itself a [`SwitchControl`] with
/// [`Settings`], whatever the variant.
///
/// ```
/// use silvan_control::ecn::{EcnSwitch, Marking};
/// use silvan_control::ib::IbSwitch;
/// use silvan_control::seam::SwitchControl;
///
/// silvan_control::one_of_switches! {
///     /// What a fabric's switches do.
///     pub enum OneOf {
///         /// InfiniBand's scheme.
///         Ib(IbSwitch),
///         /// The one of santos2003.
///         Ecn(EcnSwitch),
///     }
/// }
///
/// let switch = OneOf::Ecn(EcnSwitch::new(Marking::Naive, 4, 1));
/// assert!(switch.needs_buffer_full());
/// ```
///
/// [`SwitchControl`]: crate::seam::SwitchControl
/// [`Settings`]: crate::seam::Settings
#[macro_export]
macro_rules! one_of_switches {
    (
        $(#[$about:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$variant_about:meta])* $variant:ident($scheme:ty),)*
        }
    ) => {
        $(#[$about])*
        $visibility enum $name {
            $($(#[$variant_about])* $variant($scheme),)*
        }

        impl $crate::seam::SwitchControl for $name {
            #[inline]
            fn needs_buffer_full(&self) -> bool {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SwitchControl::needs_buffer_full(scheme)
                    })*
                }
            }

            #[inline]
            fn needs_link(&self) -> bool {
                match self {
                    $(Self::$variant(scheme) => $crate::seam::SwitchControl::needs_link(scheme),)*
                }
            }

            #[inline]
            fn expect_packet(&self, output: $crate::seam::PortVl) {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SwitchControl::expect_packet(scheme, output);
                    })*
                }
            }

            #[inline]
            fn on_queued(
                &mut self,
                now: $crate::units::Time,
                output: $crate::seam::PortVl,
                queue: $crate::seam::QueueView,
                packet: $crate::seam::PacketView,
            ) {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SwitchControl::on_queued(scheme, now, output, queue, packet);
                    })*
                }
            }

            #[inline]
            fn on_departure(
                &mut self,
                now: $crate::units::Time,
                output: $crate::seam::PortVl,
                queue: $crate::seam::QueueView,
                packet: $crate::seam::PacketView,
            ) -> bool {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SwitchControl::on_departure(scheme, now, output, queue, packet)
                    })*
                }
            }

            fn on_discarded(&mut self, now: $crate::units::Time, output: $crate::seam::PortVl) {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SwitchControl::on_discarded(scheme, now, output);
                    })*
                }
            }

            fn on_link(
                &mut self,
                now: $crate::units::Time,
                output: $crate::seam::PortVl,
                packet: $crate::seam::LinkView,
            ) {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SwitchControl::on_link(scheme, now, output, packet);
                    })*
                }
            }

            fn on_buffer_full<R: $crate::seam::Resident>(
                &mut self,
                now: $crate::units::Time,
                input: $crate::units::PortId,
                vl: $crate::units::Vl,
                resident: &mut R,
            ) {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SwitchControl::on_buffer_full(scheme, now, input, vl, resident);
                    })*
                }
            }

            #[inline]
            fn delays_credits(&self) -> bool {
                match self {
                    $(Self::$variant(scheme) => $crate::seam::SwitchControl::delays_credits(scheme),)*
                }
            }

            fn credit_return_delay(
                &self,
                input: $crate::units::PortId,
                occupied: u32,
                packet_time: $crate::units::Span,
            ) -> $crate::units::Span {
                match self {
                    $(Self::$variant(scheme) => $crate::seam::SwitchControl::credit_return_delay(
                        scheme,
                        input,
                        occupied,
                        packet_time,
                    ),)*
                }
            }

            fn marked(&self, output: $crate::seam::PortVl) -> u64 {
                match self {
                    $(Self::$variant(scheme) => $crate::seam::SwitchControl::marked(scheme, output),)*
                }
            }

            fn congested_time(
                &self,
                now: $crate::units::Time,
                output: $crate::seam::PortVl,
            ) -> $crate::units::Span {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SwitchControl::congested_time(scheme, now, output)
                    })*
                }
            }
        }

        $crate::one_of_settings!($name, $($variant)*);
    };
}

/// Declares an enum with a scheme in each variant that is itself a [`SourceControl`] with
/// [`Settings`], whatever the variant; as [`one_of_switches`](crate::one_of_switches) does.
///
/// [`SourceControl`]: crate::seam::SourceControl
/// [`Settings`]: crate::seam::Settings
#[macro_export]
macro_rules! one_of_sources {
    (
        $(#[$about:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$variant_about:meta])* $variant:ident($scheme:ty),)*
        }
    ) => {
        $(#[$about])*
        $visibility enum $name {
            $($(#[$variant_about])* $variant($scheme),)*
        }

        impl $crate::seam::SourceControl for $name {
            #[inline]
            fn needs_credit(&self) -> bool {
                match self {
                    $(Self::$variant(scheme) => $crate::seam::SourceControl::needs_credit(scheme),)*
                }
            }

            #[inline]
            fn expect_release(&self, host: $crate::units::HostId) {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SourceControl::expect_release(scheme, host);
                    })*
                }
            }

            #[inline]
            fn expect_feedback(&self, flow: $crate::seam::Flow) {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SourceControl::expect_feedback(scheme, flow);
                    })*
                }
            }

            #[inline]
            fn release(
                &mut self,
                now: $crate::units::Time,
                flow: $crate::seam::Flow,
            ) -> $crate::units::Time {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SourceControl::release(scheme, now, flow)
                    })*
                }
            }

            #[inline]
            fn host_release(
                &mut self,
                now: $crate::units::Time,
                host: $crate::units::HostId,
            ) -> $crate::units::Time {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SourceControl::host_release(scheme, now, host)
                    })*
                }
            }

            fn on_flow_start(&mut self, now: $crate::units::Time, flow: $crate::seam::Flow) {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SourceControl::on_flow_start(scheme, now, flow);
                    })*
                }
            }

            #[inline]
            fn on_send(
                &mut self,
                now: $crate::units::Time,
                flow: $crate::seam::Flow,
                wire_time: $crate::units::Span,
                payload: u32,
            ) {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SourceControl::on_send(scheme, now, flow, wire_time, payload);
                    })*
                }
            }

            #[inline]
            fn on_feedback(
                &mut self,
                now: $crate::units::Time,
                flow: $crate::seam::Flow,
                feedback: $crate::seam::Feedback,
            ) -> bool {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SourceControl::on_feedback(scheme, now, flow, feedback)
                    })*
                }
            }

            fn on_credit(
                &mut self,
                now: $crate::units::Time,
                host: $crate::units::HostId,
                used: u32,
                capacity: u32,
            ) {
                match self {
                    $(Self::$variant(scheme) => {
                        $crate::seam::SourceControl::on_credit(scheme, now, host, used, capacity);
                    })*
                }
            }
        }

        $crate::one_of_settings!($name, $($variant)*);
    };
}

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
