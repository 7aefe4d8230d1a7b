//! What is wrong with a file, or odd.

use std::fmt;

/// What is wrong with a file, in which line, and what to do about it. Nothing has been imported then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    line: Option<usize>,
    message: String,
    hint: String,
}

impl ImportError {
    /// An error in a line, counted from 1; `None` if the file as such is wrong.
    pub(crate) fn new(
        line: impl Into<Option<usize>>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            line: line.into(),
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// The line, counted from 1; `None` if the file as such is wrong.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

/// What is odd about a file and was decided on, and in which line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportWarning {
    /// The line.
    pub line: usize,
    /// What is odd, and what was decided.
    pub message: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{} (hint: {})", self.message, self.hint)
    }
}

impl std::error::Error for ImportError {}
