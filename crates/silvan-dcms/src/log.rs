//! Destinations of events.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use silvan_subnet::log::LineLog;

use crate::event::Event;

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

impl<W: Write + Send> Log for LineLog<W> {
    fn take(&mut self, event: &Event) {
        self.write(event);
    }
}
