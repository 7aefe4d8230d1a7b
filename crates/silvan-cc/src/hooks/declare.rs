//! The macro that declares a list of hooks: the trait, and the macros that delegate it.
//!
//! `hooks!` declares the trait and two macros that delegate every hook of it. So a hook that is added to
//! the list is delegated everywhere, and no implementation that delegates can leave one out.

/// Declares a trait of hooks, and the macros that delegate them.
///
/// A hook is written without its receiver: those in `query` take `&self`, those in `notify` take
/// `&mut self`. Behind its type, a function of this module in brackets combines the answers of two schemes.
macro_rules! hooks {
    (
        $d:tt
        $(#[$dispatch_about:meta])*
        macro $dispatch:ident;
        $(#[$chain_about:meta])*
        macro $chain:ident;
        $(#[$about:meta])*
        pub trait $name:ident {
            query {
                $(
                    $(#[$query_about:meta])*
                    fn $query:ident($($query_argument:ident: $query_type:ty),* $(,)?)
                        -> $query_answer:ty [$query_merge:ident] $query_body:tt
                )*
            }
            notify {
                $(
                    $(#[$notify_about:meta])*
                    fn $notify:ident $(<$generic:ident: $bound:path>)? (
                        $($notify_argument:ident: $notify_type:ty),* $(,)?
                    ) -> $notify_answer:ty [$notify_merge:ident] $notify_body:tt
                )*
            }
        }
    ) => {
        $(#[$about])*
        pub trait $name {
            /// Whether the scheme acts at all; `false` removes every call.
            const ACTIVE: bool = true;

            $(
                $(#[$query_about])*
                #[allow(unused_variables, reason = "a default needs few of its arguments")]
                fn $query(&self $(, $query_argument: $query_type)*) -> $query_answer $query_body
            )*

            $(
                $(#[$notify_about])*
                #[allow(unused_variables, reason = "a default needs few of its arguments")]
                fn $notify $(<$generic: $bound>)? (
                    &mut self $(, $notify_argument: $notify_type)*
                ) -> $notify_answer $notify_body
            )*
        }

        $(#[$dispatch_about])*
        #[macro_export]
        macro_rules! $dispatch {
            (
                $d(#[$d about:meta])*
                $d visibility:vis enum $d enum_name:ident {
                    $d(
                        $d(#[$d variant_about:meta])* $d variant:ident($d scheme:ty),
                    )*
                }
            ) => {
                $d(#[$d about])*
                $d visibility enum $d enum_name {
                    $d($d(#[$d variant_about])* $d variant($d scheme),)*
                }

                const _: () = {
                    #[allow(unused_imports, reason = "the types of all hooks")]
                    use $crate::{hooks::*, units::*};

                    impl $name for $d enum_name {
                        $(
                            #[inline]
                            fn $query(
                                &self $(, $query_argument: $query_type)*
                            ) -> $query_answer {
                                match self {
                                    $d(Self::$d variant(scheme) => {
                                        $name::$query(scheme $(, $query_argument)*)
                                    })*
                                }
                            }
                        )*
                        $(
                            #[inline]
                            fn $notify $(<$generic: $bound>)? (
                                &mut self $(, $notify_argument: $notify_type)*
                            ) -> $notify_answer {
                                match self {
                                    $d(Self::$d variant(scheme) => {
                                        $name::$notify(scheme $(, $notify_argument)*)
                                    })*
                                }
                            }
                        )*
                    }
                };

                $crate::dispatch_settings!($d enum_name, $d($d variant)*);
            };
        }

        $(#[$chain_about])*
        #[macro_export]
        macro_rules! $chain {
            (
                impl [$d($d generics:tt)*] for $d target:ty {
                    $d first:tt: $d first_type:ty,
                    $d second:tt: $d second_type:ty $d(,)?
                }
            ) => {
                const _: () = {
                    #[allow(unused_imports, reason = "the types of all hooks")]
                    use $crate::{hooks::*, units::*};

                    impl<$d($d generics)*> $name for $d target {
                        const ACTIVE: bool = <$d first_type as $name>::ACTIVE
                            || <$d second_type as $name>::ACTIVE;

                        $(
                            #[inline]
                            fn $query(
                                &self $(, $query_argument: $query_type)*
                            ) -> $query_answer {
                                $crate::hooks::declare::$query_merge(
                                    $name::$query(&self.$d first $(, $query_argument)*),
                                    $name::$query(&self.$d second $(, $query_argument)*),
                                )
                            }
                        )*
                        $(
                            #[inline]
                            fn $notify $(<$generic: $bound>)? (
                                &mut self $(, $notify_argument: $notify_type)*
                            ) -> $notify_answer {
                                $crate::hooks::declare::$notify_merge(
                                    $name::$notify(&mut self.$d first $(, $notify_argument)*),
                                    $name::$notify(&mut self.$d second $(, $notify_argument)*),
                                )
                            }
                        )*
                    }
                };
            };
        }
    };
}

use silvan_core::{Span, Time};

/// There is no answer.
#[inline]
pub fn nothing((): (), (): ()) {}

/// One of the two wants it.
#[inline]
pub fn either(first: bool, second: bool) -> bool {
    first || second
}

/// Both allow it.
#[inline]
pub fn latest(first: Time, second: Time) -> Time {
    first.max(second)
}

/// The longer one holds.
#[inline]
pub fn longest(first: Span, second: Span) -> Span {
    first.max(second)
}

/// Both count.
#[inline]
pub fn sum(first: u64, second: u64) -> u64 {
    first + second
}
