//! The macro that declares a list of hooks: the trait, macros that delegate, and the description for other languages.

/// Declares a trait of hooks, the macros that delegate them, and their description. A hook is written without its
/// receiver: those in `query` and `prefetch` take `&self`, those in `notify` and `inspect` take `&mut self`. After the
/// type of its answer, a function of this module in brackets combines the answers of two schemes. `if needs_x` declares
/// a method that says whether a scheme has the hook at all. The hooks in `notify` can be implemented in other
/// languages; their arguments and answers implement the traits of [`foreign`](super::foreign).
macro_rules! hooks {
    (
        $d:tt
        $(#[$dispatch_about:meta])*
        macro $dispatch:ident;
        $(#[$chain_about:meta])*
        macro $chain:ident;
        $(#[$callback_about:meta])*
        macro $callback:ident;
        $(#[$list_about:meta])*
        const $list:ident, $number:ident;
        $(#[$about:meta])*
        pub trait $name:ident {
            query {
                $(
                    $(#[$query_about:meta])*
                    fn $query:ident($($query_argument:ident: $query_type:ty),* $(,)?)
                        -> $query_answer:ty [$query_merge:ident] $query_body:block
                )*
            }
            prefetch {
                $(
                    $(#[$prefetch_about:meta])*
                    fn $prefetch:ident($($prefetch_argument:ident: $prefetch_type:ty),* $(,)?);
                )*
            }
            notify {
                $(
                    $(#[doc = $notify_about:expr])*
                    fn $notify:ident($($notify_argument:ident: $notify_type:ty),* $(,)?)
                        -> $notify_answer:ty [$notify_merge:ident] $(if $notify_needs:ident)? $notify_body:block
                )*
            }
            inspect {
                $(
                    $(#[$inspect_about:meta])*
                    fn $inspect:ident$(<$generic:ident: $bound:path>)?(
                        $($inspect_argument:ident: $inspect_type:ty),* $(,)?
                    ) -> $inspect_answer:ty [$inspect_merge:ident] $(if $inspect_needs:ident)? $inspect_body:block
                )*
            }
        }
    ) => {
        $(#[$about])*
        pub trait $name {
            /// True if the scheme acts at all; `false` removes every call.
            const ACTIVE: bool = true;

            /// True if the type represents several schemes, so that each call is dispatched.
            const IS_DISPATCHED: bool = false;

            $(
                $(#[$query_about])*
                #[allow(unused_variables, reason = "a default needs few of its arguments")]
                fn $query(&self $(, $query_argument: $query_type)*) -> $query_answer $query_body
            )*

            $(
                $(#[$prefetch_about])*
                #[doc(hidden)]
                #[inline]
                fn $prefetch(&self $(, $prefetch_argument: $prefetch_type)*) {
                    $(let _ = $prefetch_argument;)*
                }
            )*

            $(
                $(
                    #[doc = concat!("Whether [`", stringify!($notify), "`](Self::", stringify!($notify), ") must be called; always the same answer.")]
                    #[inline]
                    fn $notify_needs(&self) -> bool {
                        false
                    }
                )?

                $(#[doc = $notify_about])*
                #[inline]
                #[allow(unused_variables, reason = "a default needs few of its arguments")]
                #[allow(clippy::too_many_arguments, reason = "other languages get numbers, one after the other")]
                fn $notify(&mut self $(, $notify_argument: $notify_type)*) -> $notify_answer $notify_body
            )*

            $(
                $(
                    #[doc = concat!("Whether [`", stringify!($inspect), "`](Self::", stringify!($inspect), ") must be called; always the same answer.")]
                    #[inline]
                    fn $inspect_needs(&self) -> bool {
                        false
                    }
                )?

                $(#[$inspect_about])*
                #[inline]
                #[allow(unused_variables, reason = "a default needs few of its arguments")]
                fn $inspect$(<$generic: $bound>)?(
                    &mut self $(, $inspect_argument: $inspect_type)*
                ) -> $inspect_answer $inspect_body
            )*
        }

        $(#[$list_about])*
        pub const $list: &[$crate::hooks::foreign::Description] = &[
            $(
                $crate::hooks::foreign::Description {
                    name: stringify!($notify),
                    about: concat!($($notify_about, "\n"),*),
                    arguments: &[
                        $((
                            stringify!($notify_argument),
                            <$notify_type as $crate::hooks::foreign::Argument>::FIELDS,
                        )),*
                    ],
                    answer: <$notify_answer as $crate::hooks::foreign::Answer>::KIND,
                },
            )*
        ];

        #[allow(non_camel_case_types, reason = "the names are those of the hooks")]
        #[derive(Clone, Copy)]
        pub(crate) enum $number {
            $($notify,)*
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
                        const IS_DISPATCHED: bool = true;

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
                            fn $prefetch(&self $(, $prefetch_argument: $prefetch_type)*) {
                                match self {
                                    $d(Self::$d variant(scheme) => {
                                        $name::$prefetch(scheme $(, $prefetch_argument)*)
                                    })*
                                }
                            }
                        )*
                        $(
                            $(
                                #[inline]
                                fn $notify_needs(&self) -> bool {
                                    match self {
                                        $d(Self::$d variant(scheme) => $name::$notify_needs(scheme),)*
                                    }
                                }
                            )?
                            #[inline]
                            fn $notify(
                                &mut self $(, $notify_argument: $notify_type)*
                            ) -> $notify_answer {
                                match self {
                                    $d(Self::$d variant(scheme) => {
                                        $name::$notify(scheme $(, $notify_argument)*)
                                    })*
                                }
                            }
                        )*
                        $(
                            $(
                                #[inline]
                                fn $inspect_needs(&self) -> bool {
                                    match self {
                                        $d(Self::$d variant(scheme) => $name::$inspect_needs(scheme),)*
                                    }
                                }
                            )?
                            #[inline]
                            fn $inspect$(<$generic: $bound>)?(
                                &mut self $(, $inspect_argument: $inspect_type)*
                            ) -> $inspect_answer {
                                match self {
                                    $d(Self::$d variant(scheme) => {
                                        $name::$inspect(scheme $(, $inspect_argument)*)
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
                    use $crate::{hooks::*, hooks::declare::*, units::*};

                    impl<$d($d generics)*> $name for $d target {
                        const ACTIVE: bool = <$d first_type as $name>::ACTIVE
                            || <$d second_type as $name>::ACTIVE;

                        const IS_DISPATCHED: bool = <$d first_type as $name>::IS_DISPATCHED
                            || <$d second_type as $name>::IS_DISPATCHED;

                        $(
                            #[inline]
                            fn $query(
                                &self $(, $query_argument: $query_type)*
                            ) -> $query_answer {
                                $query_merge(
                                    $name::$query(&self.$d first $(, $query_argument)*),
                                    $name::$query(&self.$d second $(, $query_argument)*),
                                )
                            }
                        )*
                        $(
                            #[inline]
                            fn $prefetch(&self $(, $prefetch_argument: $prefetch_type)*) {
                                $name::$prefetch(&self.$d first $(, $prefetch_argument)*);
                                $name::$prefetch(&self.$d second $(, $prefetch_argument)*);
                            }
                        )*
                        $(
                            $(
                                #[inline]
                                fn $notify_needs(&self) -> bool {
                                    $name::$notify_needs(&self.$d first)
                                        || $name::$notify_needs(&self.$d second)
                                }
                            )?
                            #[inline]
                            fn $notify(
                                &mut self $(, $notify_argument: $notify_type)*
                            ) -> $notify_answer {
                                $notify_merge(
                                    $name::$notify(&mut self.$d first $(, $notify_argument)*),
                                    $name::$notify(&mut self.$d second $(, $notify_argument)*),
                                )
                            }
                        )*
                        $(
                            $(
                                #[inline]
                                fn $inspect_needs(&self) -> bool {
                                    $name::$inspect_needs(&self.$d first)
                                        || $name::$inspect_needs(&self.$d second)
                                }
                            )?
                            #[inline]
                            fn $inspect$(<$generic: $bound>)?(
                                &mut self $(, $inspect_argument: $inspect_type)*
                            ) -> $inspect_answer {
                                $inspect_merge(
                                    $name::$inspect(&mut self.$d first $(, $inspect_argument)*),
                                    $name::$inspect(&mut self.$d second $(, $inspect_argument)*),
                                )
                            }
                        )*
                    }
                };
            };
        }

        $(#[$callback_about])*
        macro_rules! $callback {
            ($d target:ty, $d first:expr) => {
                const _: () = {
                    use $crate::{hooks::*, hooks::foreign::Argument, units::*};

                    impl $name for $d target {
                        $(
                            $(
                                #[inline]
                                fn $notify_needs(&self) -> bool {
                                    self.has($d first + $number::$notify as usize)
                                }
                            )?
                            #[inline]
                            #[allow(unused_variables, reason = "a default needs few of its arguments")]
                            fn $notify(
                                &mut self $(, $notify_argument: $notify_type)*
                            ) -> $notify_answer {
                                let hook = $d first + $number::$notify as usize;
                                if !self.has(hook) {
                                    return match self.withholds::<$notify_answer>() {
                                        Some(answer) => answer,
                                        None => $notify_body,
                                    };
                                }
                                self.words.clear();
                                $(Argument::write(&$notify_argument, &mut self.words);)*
                                let answer = self.call(hook, stringify!($notify));
                                $(Argument::read_back($notify_argument, &self.words);)*
                                answer
                            }
                        )*
                    }
                };
            };
        }
    };
}

use super::Recurring;
use silvan_core::{Span, Time};

/// Combines answers of hooks without an answer.
#[inline]
pub fn nothing((): (), (): ()) {}

/// Combines answers: true if either scheme returns true.
#[inline]
pub fn either(first: bool, second: bool) -> bool {
    first || second
}

/// Both do.
#[inline]
pub fn both(first: bool, second: bool) -> bool {
    first && second
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

/// The shorter one, if there is any.
#[inline]
pub fn shortest(first: Option<Span>, second: Option<Span>) -> Option<Span> {
    first.into_iter().chain(second).min()
}

/// The sum changes whenever one does, as none becomes smaller.
#[inline]
pub fn both_versions(first: Option<u64>, second: Option<u64>) -> Option<u64> {
    Some(first? + second?)
}

/// Both must be known.
pub fn both_recurring(first: Option<Recurring>, second: Option<Recurring>) -> Option<Recurring> {
    let (mut first, second) = (first?, second?);
    first.changes += second.changes;
    first.words.push(second.words.len() as u64);
    first.words.extend(second.words);
    first.until = first.until.min(second.until);
    Some(first)
}

#[inline]
pub fn sum(first: u64, second: u64) -> u64 {
    first + second
}

/// Combines answers: all items of both lists.
#[inline]
pub fn all<T>(mut first: Vec<T>, second: Vec<T>) -> Vec<T> {
    first.extend(second);
    first
}

/// The first that chooses.
#[inline]
pub fn first_choice<T>(first: Option<T>, second: Option<T>) -> Option<T> {
    first.or(second)
}
