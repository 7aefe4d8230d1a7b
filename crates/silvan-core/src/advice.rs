//! Messages whose advice stays apart from them.

use std::fmt;

/// Stands between message and advice in the alternate form; no message contains it.
const SEPARATOR: char = '\u{1f}';

/// A message and what to do about it.
///
/// `{}` shows both, `message (advice)`. `{:#}` keeps them apart for [`split`], so that both pass through
/// an interface that takes a text alone, as serde's errors do.
#[derive(Clone, Copy, Debug)]
pub struct Advised<M, H> {
    /// What is wrong, or what is expected.
    pub message: M,
    /// What to do.
    pub hint: H,
}

impl<M: fmt::Display, H: fmt::Display> Advised<M, H> {
    /// Writes it, for a `Display` or a visitor's `expecting` of one's own.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<M: fmt::Display, H: fmt::Display> fmt::Display for Advised<M, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { message, hint } = self;
        match f.alternate() {
            true => write!(f, "{message}{SEPARATOR}{hint}"),
            false => write!(f, "{message} ({hint})"),
        }
    }
}

/// Message and advice of a text in the alternate form of [`Advised`]; any other text is all message.
pub fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once(SEPARATOR) {
        Some((message, hint)) => (message, Some(hint)),
        None => (text, None),
    }
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
        let text = format!("{advised:#}");
        assert_eq!(split(&text), (advised.message, Some(advised.hint)));
        assert_eq!(split(advised.message), (advised.message, None));
        assert_eq!(
            advised.to_string(),
            "\"a (b)\" is no name (of a host) (write e.g. \"x (y)\")"
        );
    }
}
