use std::fmt;

/// A fault of a file, its line and a hint. Nothing has been imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    line: Option<usize>,
    message: String,
    hint: String,
}

impl ImportError {
    /// Lines count from 1; `None` for the whole file.
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

    /// Returns the fault.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the hint.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

/// An oddity of a file and the decision on it, with the line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportWarning {
    /// The line.
    pub line: usize,
    /// The oddity and the decision.
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
