//! Log lines of text or of JSON.

use std::fmt;
use std::io::Write;
use std::time::SystemTime;

use serde::Serialize;

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Every sweep.
    Debug,
    /// Work of the program.
    Info,
    /// A state that an administrator should check.
    Warning,
    /// A failure that keeps the program from its work.
    Error,
}

/// An event for a log: text for people, and a map of values for JSON.
pub trait LogEvent: fmt::Display + Serialize {
    /// Returns the severity.
    fn level(&self) -> Level;
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line that people read.
    Text,
    /// A JSON object per line.
    Json,
}

/// Writes events with their time, a line each.
#[derive(Debug)]
pub struct LineLog<W> {
    to: W,
    format: Format,
    least: Level,
}

impl<W: Write> LineLog<W> {
    /// A log of events of level `least` and above.
    pub fn new(to: W, format: Format, least: Level) -> Self {
        Self { to, format, least }
    }

    /// Writes an event with the current time.
    pub fn write(&mut self, event: &impl LogEvent) {
        if event.level() < self.least {
            return;
        }
        let line = self.line(event, SystemTime::now());
        // A log without a reader must not prevent a restore.
        let _ = self.to.write_all(line.as_bytes());
        let _ = self.to.flush();
    }

    fn line(&self, event: &impl LogEvent, time: SystemTime) -> String {
        #[derive(Serialize)]
        struct Line<'a, E> {
            time: String,
            level: Level,
            #[serde(flatten)]
            event: &'a E,
        }

        let time = humantime::format_rfc3339_millis(time).to_string();
        let level = event.level();
        match self.format {
            Format::Text => {
                let level = match level {
                    Level::Debug => "debug",
                    Level::Info => "info",
                    Level::Warning => "warning",
                    Level::Error => "error",
                };
                format!("{time} {level}: {event}\n")
            }
            Format::Json => {
                let line = serde_json::to_string(&Line { time, level, event });
                line.unwrap_or_default() + "\n"
            }
        }
    }
}
