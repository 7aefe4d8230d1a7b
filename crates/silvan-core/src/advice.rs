//! Messages whose advice stays apart from them.

use std::cell::{Cell, RefCell};
use std::fmt;

thread_local! {
    static TAKES_APART: Cell<bool> = const { Cell::new(false) };
    static HINT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A message and its advice, shown as `message (advice)`; [`parts`] separates them behind interfaces of plain text.
#[derive(Clone, Copy, Debug)]
pub struct Advised<M, H> {
    /// The fault, or the expected value.
    pub message: M,
    /// The remedy, e.g. the text to write instead.
    pub hint: H,
}

impl<M: fmt::Display, H: fmt::Display> Advised<M, H> {
    /// Formats the message without its hint, for a `Display` or a visitor's `expecting`. Errors as `f`.
    pub fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<M: fmt::Display, H: fmt::Display> fmt::Display for Advised<M, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { message, hint } = self;
        match TAKES_APART.get() {
            true => {
                HINT.set(Some(hint.to_string()));
                write!(f, "{message}")
            }
            false => write!(f, "{message} ({hint})"),
        }
    }
}

/// Formats a value; returns its message, and its advice if it is [`Advised`].
pub fn parts(value: &(impl fmt::Display + ?Sized)) -> (String, Option<String>) {
    HINT.set(None);
    TAKES_APART.set(true);
    let message = value.to_string();
    TAKES_APART.set(false);
    (message, HINT.take())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_of_a_message_are_no_advice() {
        let advised = Advised {
            message: "\"a (b)\" is no name (of a host)",
            hint: "write e.g. \"x (y)\"",
        };
        let (message, hint) = parts(&format_args!("{advised}"));
        assert_eq!(message, advised.message);
        assert_eq!(hint.as_deref(), Some(advised.hint));
        assert_eq!(
            advised.to_string(),
            "\"a (b)\" is no name (of a host) (write e.g. \"x (y)\")"
        );
        // The hint of one value is not that of the next.
        assert_eq!(parts(advised.message), (advised.message.to_owned(), None));
    }
}
