//! Messages that a driver requests at run time.
//!
//! The driver is the script of an additional job with a rank on each host. Its messages are puts: they need neither
//! handshake nor receive, and cost no processor time. Queues, packets and deliveries are those of all programs, so a
//! driver and a program that send at the same time get the same times.
//!
//! The result depends on the order of requests only: timers at one instant expire in the order of their requests.

use std::fmt::Debug;

use silvan_core::{HostId, Sl, Span, Time};

use crate::programs::ranks::{Programs, TimerKind};
use crate::programs::spec::{JobSpec, Script};

/// Bytes of a driver's largest message: 64 bits count those of all that are pending.
pub const LARGEST_MESSAGE: u64 = 1 << 48;

/// Request of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A message, which starts now.
    Send {
        /// The sending host.
        from: HostId,
        /// The receiving host; the sending one is possible.
        to: HostId,
        /// Size in bytes; a message of 0 bytes takes a packet without payload.
        bytes: u64,
        /// Number by which the driver knows the message.
        token: u32,
    },
    /// A notification after a time.
    Timer {
        /// The time from now; zero is possible.
        delay: Span,
        /// Number by which the driver knows the timer.
        token: u32,
    },
    /// The end of the call that runs the simulation. Later calls go on from here.
    Stop,
}

/// Decides at run time, outside the simulation, which messages are sent. A simulation with a driver stays on one
/// thread.
pub trait Driver: Debug + Send {
    /// All of a message has arrived, or the time of a timer has come, at `now`; adds what is to be done next to
    /// `requests`.
    fn notify(&mut self, token: u32, now: Time, requests: &mut Vec<Request>);
}

/// The driver of a run, and what it has requested.
#[derive(Debug)]
pub(crate) struct External {
    driver: Box<dyn Driver>,
    job: usize,
    requests: Vec<Request>,
    pauses_when_idle: bool,
    is_stopped: bool,
}

impl Programs {
    /// Adds a driver, whose packets have this class and service level.
    ///
    /// # Panics
    /// If there is a driver already.
    #[must_use]
    pub fn driven(mut self, driver: Box<dyn Driver>, name: String, class: u16, sl: Sl) -> Self {
        assert!(self.external.is_none(), "a run has one driver");
        let job = self.jobs.len();
        let hosts = (0..self.flows.hosts()).map(HostId::new);
        self.add(JobSpec {
            name,
            class,
            sl,
            start: Time::ZERO,
            background: true,
            ranks: hosts.map(|host| (host, Script::External)).collect(),
            rails: Vec::new(),
            labels: Vec::new(),
        });
        // The job can continue as long as there is a driver.
        self.jobs[job].pending = 1;
        self.external = Some(Box::new(External {
            driver,
            job,
            requests: Vec::new(),
            pauses_when_idle: false,
            is_stopped: false,
        }));
        self
    }

    /// Takes requests of the driver at `now`, outside a notification. Without a driver they have no effect.
    pub fn request(&mut self, requests: &mut Vec<Request>, now: Time) {
        self.take_requests(requests, now);
    }

    /// Messages of the driver that have not arrived and its timers that have not gone off.
    pub fn requests_pending(&self) -> u32 {
        let job = self.external.as_ref().map(|external| external.job);
        job.map_or(0, |job| self.jobs[job].pending - 1)
    }

    /// Starts a call that runs the simulation; it pauses when the driver stops it and, where `when_idle` says so, when
    /// nothing is pending.
    pub fn start_call(&mut self, when_idle: bool) {
        if let Some(external) = &mut self.external {
            external.pauses_when_idle = when_idle;
            external.is_stopped = false;
        }
    }

    /// Returns true if the call that runs the simulation ends now.
    #[inline]
    pub fn pauses(&self) -> bool {
        self.external.as_ref().is_some_and(|external| {
            let is_idle = external.pauses_when_idle && self.jobs[external.job].pending == 1;
            is_idle || external.is_stopped
        })
    }

    /// Returns true if there is a driver.
    pub fn is_driven(&self) -> bool {
        self.external.is_some()
    }

    /// Returns true if the driver has stopped the call that runs the simulation.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        let external = self.external.as_ref();
        external.is_some_and(|external| external.is_stopped)
    }

    /// A message of the driver has arrived, or one of its timers has gone off.
    pub(crate) fn notify_driver(&mut self, token: u32, now: Time) {
        let Some(external) = &mut self.external else {
            return;
        };
        let mut requests = std::mem::take(&mut external.requests);
        external.driver.notify(token, now, &mut requests);
        self.take_requests(&mut requests, now);
        if let Some(external) = &mut self.external {
            external.requests = requests;
        }
    }

    fn take_requests(&mut self, requests: &mut Vec<Request>, now: Time) {
        let Some(job) = self.external.as_ref().map(|external| external.job) else {
            requests.clear();
            return;
        };
        let first = self.jobs[job].first;
        for request in requests.drain(..) {
            match request {
                Request::Send {
                    from,
                    to,
                    bytes,
                    token,
                } => {
                    let rank = first + from.index() as u32;
                    self.access(rank, token, to.index() as u32, bytes, false, now);
                }
                Request::Timer { delay, token } => {
                    let at = now.saturating_add(delay);
                    self.set_timer(first, at, TimerKind::External(token));
                }
                Request::Stop => {
                    if let Some(external) = &mut self.external {
                        external.is_stopped = true;
                    }
                }
            }
        }
    }
}
