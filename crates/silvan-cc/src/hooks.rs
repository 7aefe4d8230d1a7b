//! One list of hooks for each side of the seam, and everything that is made of it.
//!
//! `hooks!` declares the trait and two macros that delegate every hook of it. So a hook that is added to
//! the list is delegated everywhere, and no implementation that delegates can leave one out.

/// Declares a trait of hooks, and the macros that delegate them.
///
/// A hook is written without its receiver: those in `asked` take `&self`, those in `told` take
/// `&mut self`. Behind its type, a function of this module in brackets combines the answers of two schemes.
macro_rules! hooks {
    (
        $d:tt
        $(#[$one_of_about:meta])*
        macro $one_of:ident;
        $(#[$chain_about:meta])*
        macro $chain:ident;
        $(#[$about:meta])*
        pub trait $name:ident {
            asked {
                $(
                    $(#[$asked_about:meta])*
                    fn $asked:ident($($asked_argument:ident: $asked_type:ty),* $(,)?)
                        -> $asked_answer:ty [$asked_merge:ident] $asked_body:tt
                )*
            }
            told {
                $(
                    $(#[$told_about:meta])*
                    fn $told:ident $(<$generic:ident: $bound:path>)? (
                        $($told_argument:ident: $told_type:ty),* $(,)?
                    ) -> $told_answer:ty [$told_merge:ident] $told_body:tt
                )*
            }
        }
    ) => {
        $(#[$about])*
        pub trait $name {
            /// Whether the scheme acts at all; `false` removes every call.
            const ACTIVE: bool = true;

            $(
                $(#[$asked_about])*
                #[allow(unused_variables, reason = "a default needs few of its arguments")]
                fn $asked(&self $(, $asked_argument: $asked_type)*) -> $asked_answer $asked_body
            )*

            $(
                $(#[$told_about])*
                #[allow(unused_variables, reason = "a default needs few of its arguments")]
                fn $told $(<$generic: $bound>)? (
                    &mut self $(, $told_argument: $told_type)*
                ) -> $told_answer $told_body
            )*
        }

        $(#[$one_of_about])*
        #[macro_export]
        macro_rules! $one_of {
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
                    use $crate::{seam::*, units::*};

                    impl $name for $d enum_name {
                        $(
                            #[inline]
                            fn $asked(
                                &self $(, $asked_argument: $asked_type)*
                            ) -> $asked_answer {
                                match self {
                                    $d(Self::$d variant(scheme) => {
                                        $name::$asked(scheme $(, $asked_argument)*)
                                    })*
                                }
                            }
                        )*
                        $(
                            #[inline]
                            fn $told $(<$generic: $bound>)? (
                                &mut self $(, $told_argument: $told_type)*
                            ) -> $told_answer {
                                match self {
                                    $d(Self::$d variant(scheme) => {
                                        $name::$told(scheme $(, $told_argument)*)
                                    })*
                                }
                            }
                        )*
                    }
                };

                $crate::one_of_settings!($d enum_name, $d($d variant)*);
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
                    use $crate::{seam::*, units::*};

                    impl<$d($d generics)*> $name for $d target {
                        const ACTIVE: bool = <$d first_type as $name>::ACTIVE
                            || <$d second_type as $name>::ACTIVE;

                        $(
                            #[inline]
                            fn $asked(
                                &self $(, $asked_argument: $asked_type)*
                            ) -> $asked_answer {
                                $crate::hooks::$asked_merge(
                                    $name::$asked(&self.$d first $(, $asked_argument)*),
                                    $name::$asked(&self.$d second $(, $asked_argument)*),
                                )
                            }
                        )*
                        $(
                            #[inline]
                            fn $told $(<$generic: $bound>)? (
                                &mut self $(, $told_argument: $told_type)*
                            ) -> $told_answer {
                                $crate::hooks::$told_merge(
                                    $name::$told(&mut self.$d first $(, $told_argument)*),
                                    $name::$told(&mut self.$d second $(, $told_argument)*),
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
