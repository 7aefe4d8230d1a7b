//! Where events go: lines of text or of JSON.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::Serialize;

use crate::event::{Event, Level};

/// Takes events.
pub trait Log: Send {
    /// Takes one.
    fn take(&mut self, event: &Event);
}

impl<F: FnMut(&Event) + Send> Log for F {
    fn take(&mut self, event: &Event) {
        self(event);
    }
}

/// A log for several threads.
#[derive(Clone)]
pub struct SharedLog(Arc<Mutex<Box<dyn Log>>>);

impl SharedLog {
    /// Shares a log.
    pub fn new(log: Box<dyn Log>) -> Self {
        Self(Arc::new(Mutex::new(log)))
    }
}

impl Log for SharedLog {
    fn take(&mut self, event: &Event) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.take(event);
    }
}

/// How events are written.
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
    /// A log of events that are at least as grave as `least`.
    pub fn new(to: W, format: Format, least: Level) -> Self {
        Self { to, format, least }
    }

    fn line(&self, event: &Event, time: SystemTime) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            time: String,
            level: Level,
            #[serde(flatten)]
            event: &'a Event,
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
                // Events are numbers and text with text keys.
                line.unwrap_or_default() + "\n"
            }
        }
    }
}

impl<W: Write + Send> Log for LineLog<W> {
    fn take(&mut self, event: &Event) {
        if event.level() < self.least {
            return;
        }
        let line = self.line(event, SystemTime::now());
        // A log without a reader must not prevent a restore.
        let _ = self.to.write_all(line.as_bytes());
        let _ = self.to.flush();
    }
}
