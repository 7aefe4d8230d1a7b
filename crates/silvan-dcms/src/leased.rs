//! A transport that sends nothing while another instance may be in charge, and the renewing thread.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use silvan_core::{MonotonicTime, Span};
use silvan_subnet::transport::{Incoming, Outgoing, Transport, TransportError};
use silvan_subnet::umad::clock;

use crate::journal::InCharge;
use crate::lease::Lease;

const RENEWALS: u64 = 8;

/// A candidate that goes on with its term in a thread of its own, so that nothing else can keep it from that.
pub struct Candidate {
    lease: Arc<Mutex<Lease>>,
    /// Reliable to this time [ns]; 0 without a term.
    until: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Candidate {
    /// A candidate that holds nothing yet. Errors if no thread can be started.
    pub fn new(folder: &Path, length: Span) -> std::io::Result<Self> {
        let host = rustix::system::uname();
        let host = host.nodename().to_string_lossy().into_owned();
        // A process number may be used again, but not at the same time.
        let name = format!("{host}-{}-{}", std::process::id(), clock().as_ns());
        let lease = Arc::new(Mutex::new(Lease::new(folder, length, name)));
        let until = Arc::new(AtomicU64::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let rest = Duration::from_nanos(length.as_ps() / 1_000 / RENEWALS);
        let thread = {
            let (lease, until, is_over) = (lease.clone(), until.clone(), is_over.clone());
            std::thread::Builder::new()
                .name("lease".into())
                .spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        renew(&lease, &until);
                        std::thread::park_timeout(rest);
                    }
                })?
        };
        Ok(Self {
            lease,
            until,
            is_over,
            thread: Some(thread),
        })
    }

    /// Begins a term if no other instance is in charge, and returns its number.
    pub fn try_take(&self) -> std::io::Result<Option<u64>> {
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        if !lease.try_take(clock)? {
            return Ok(None);
        }
        publish(&lease, &self.until);
        Ok(lease.term())
    }

    /// The name of the other instance that is in charge, if it was seen to renew or to begin its term.
    pub fn live_holder(&self) -> Option<String> {
        let lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        lease.live_holder().map(str::to_owned)
    }

    /// Says whether the term holds.
    pub fn in_charge(&self) -> InCharge {
        let until = Arc::clone(&self.until);
        Arc::new(move || clock().as_ns() < until.load(Ordering::Acquire))
    }

    /// Ends the term, so that another instance may begin at once.
    pub fn release(&self) {
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        self.until.store(0, Ordering::Release);
        lease.release(clock());
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        self.release();
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread has been reported.
            let _ = thread.join();
        }
    }
}

fn renew(lease: &Mutex<Lease>, until: &AtomicU64) {
    let mut lease = lease.lock().unwrap_or_else(PoisonError::into_inner);
    if lease.term().is_some() {
        lease.renew(clock());
        publish(&lease, until);
    }
}

fn publish(lease: &Lease, until: &AtomicU64) {
    until.store(
        lease.until().map_or(0, MonotonicTime::as_ns),
        Ordering::Release,
    );
}

/// A transport that sends nothing unless the lease holds.
pub struct Leased<T> {
    /// The transport.
    pub transport: T,
    /// State of the lease; `None` without one.
    pub in_charge: Option<InCharge>,
}

impl<T: Transport> Transport for Leased<T> {
    fn now(&mut self) -> MonotonicTime {
        self.transport.now()
    }

    fn unix_time(&mut self) -> u64 {
        self.transport.unix_time()
    }

    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<(), TransportError> {
        match &self.in_charge {
            Some(is_in_charge) if !is_in_charge() => Err(TransportError::NotInCharge),
            _ => self.transport.send(outgoing),
        }
    }

    fn receive(&mut self, limit: Span) -> Result<Option<Incoming>, TransportError> {
        self.transport.receive(limit)
    }

    fn pause(&mut self, span: Span) {
        self.transport.pause(span);
    }
}
