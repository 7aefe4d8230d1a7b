use std::fmt;

use super::path::KeyPath;

/// A fault of a document, shown as one line: `file:line: message (hint: advice)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentError(Box<Details>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Details {
    message: String,
    source: String,
    line: Option<usize>,
    column: Option<usize>,
    key: KeyPath,
    hint: Option<String>,
}

impl DocumentError {
    /// An error about the value at `key` without a place; the message starts with the key unless that is the root.
    pub fn new(key: KeyPath, message: impl Into<String>) -> Self {
        let message = message.into();
        let message = match key.is_empty() {
            true => message,
            false => format!("{key}: {message}"),
        };
        Self(Box::new(Details {
            message: one_line(message),
            source: String::new(),
            line: None,
            column: None,
            key,
            hint: None,
        }))
    }

    /// Sets the hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(one_line(hint.into()));
        self
    }

    /// Sets the hint if there is one.
    #[must_use]
    pub fn with_hint_if(self, hint: Option<String>) -> Self {
        match hint {
            Some(hint) => self.with_hint(hint),
            None => self,
        }
    }

    /// Sets the source, and `line` and `column` where they are known.
    #[must_use]
    pub fn at(mut self, source: &str, position: Option<(usize, usize)>) -> Self {
        self.0.source = one_line(source.to_owned());
        self.0.line = position.map(|(line, _)| line);
        self.0.column = position.map(|(_, column)| column);
        self
    }

    /// Returns the message without place and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file, or the override as it was written: `--set key=value`.
    pub fn source_name(&self) -> &str {
        &self.0.source
    }

    /// Line in the file, from 1; `None` for an override.
    pub fn line(&self) -> Option<usize> {
        self.0.line
    }

    /// Column in that line in characters, from 1; `None` for an override.
    pub fn column(&self) -> Option<usize> {
        self.0.column
    }

    /// The key that the error is about; the root if it is about the text as such.
    pub fn key(&self) -> &KeyPath {
        &self.0.key
    }

    /// Returns the hint: text that says what to write instead.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

/// Joins foreign lines and drops control characters.
fn one_line(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    let lines: Vec<&str> = text
        .split(char::is_control)
        .filter(|line| !line.is_empty())
        .collect();
    lines.join(", ")
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details {
            message,
            source,
            line,
            hint,
            ..
        } = &*self.0;
        f.write_str(source)?;
        if let Some(line) = line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {message}")?;
        if let Some(hint) = hint {
            write!(f, " (hint: {hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for DocumentError {}

/// `did you mean "x"?` for the known name nearest to `name`, or all of them if none is near and they are few.
pub fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    const FEW: usize = 16;
    if let Some(candidate) = nearest(name, known.clone()) {
        return Some(format!("did you mean {candidate:?}?"));
    }
    let all: Vec<&str> = known.into_iter().take(FEW + 1).collect();
    match all.len() {
        1..=FEW => Some(format!("known here: {}", all.join(", "))),
        _ => None,
    }
}

/// The known name nearest to `name`, if any is near enough to be a slip of the pen.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    // Names with equally many changes: the name with more in common wins.
    let apart = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let differs = 1.0 - strsim::jaro_winkler(&lower, &candidate);
        (strsim::osa_distance(&lower, &candidate), differs)
    };
    let nearest = known
        .into_iter()
        .map(|candidate| (apart(candidate), candidate))
        .min_by(|(a, _), (b, _)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let limit = (name.chars().count() / 3).max(2);
    let ((distance, _), candidate) = nearest?;
    (distance <= limit).then_some(candidate)
}
