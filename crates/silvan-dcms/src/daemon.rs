//! A manager with its files, its port and its endpoint, ready to run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use silvan_subnet::endpoint::{Endpoint, EndpointEvent, EndpointLimits};
use silvan_subnet::observer::Observer;
use silvan_subnet::transport::TransportError;
use silvan_subnet::umad::UmadTransport;
use thiserror::Error;

use crate::event::Event;
use crate::journal::{Journal, StateError, StateFolder};
use crate::leased::{Candidate, Leased};
use crate::log::{Log, SharedLog};
use crate::manager::{Manager, ManagerError, Task};
use crate::metrics::Metrics;
use crate::settings::ManagerSettings;

const NAP: Duration = Duration::from_millis(100);
/// First and longest time between tries to open a port.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Why a manager cannot start. Nothing was sent then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The state folder cannot be used, or another instance uses it.
    #[error(transparent)]
    State(#[from] StateError),
    /// There is no port to send through.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The journal or the parameters cannot be used.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// The metrics cannot be served.
    #[error("metrics cannot be served at {address}: {error}")]
    Endpoint {
        /// The address.
        address: String,
        /// Why.
        error: std::io::Error,
    },
}

impl StartError {
    fn into_transport(self) -> Result<TransportError, Self> {
        match self {
            Self::Transport(error) | Self::Manager(ManagerError::Transport(error)) => Ok(error),
            other => Err(other),
        }
    }

    /// Returns the hint.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::State(error) => error.hint(),
            Self::Transport(error) => error.hint(),
            Self::Manager(error) => error.hint(),
            Self::Endpoint { .. } => "choose another address as metrics.listen",
        }
    }
}

/// A manager on the kernel's interface.
pub struct Daemon {
    settings: ManagerSettings,
    act: bool,
    log: SharedLog,
    metrics: Arc<Metrics>,
    next: Option<DaemonManager>,
    candidate: Option<Candidate>,
    observer: Option<Observer>,
    _endpoint: Option<Endpoint>,
}

enum LeaseOutcome {
    InCharge,
    Stopped,
    Other(String),
}

type DaemonManager = Manager<Leased<UmadTransport>, StateFolder>;

impl Daemon {
    /// Takes lock, port and endpoint, or leaves nothing open. Changes need `act`; the observer gets each round.
    pub fn open(
        settings: ManagerSettings,
        act: bool,
        log: Box<dyn Log>,
        observer: Option<Observer>,
    ) -> Result<Self, StartError> {
        let candidate = match settings.lease {
            None => None,
            Some(length) => {
                // Refuses another folder, or another user's, before anything is written into it.
                StateFolder::open(&settings.state, Some(Arc::new(|| false)))?;
                let candidate = Candidate::new(&settings.state, length);
                Some(candidate.map_err(|error| StateError::Io {
                    folder: settings.state.clone(),
                    error,
                })?)
            }
        };
        let metrics = Arc::new(Metrics::new());
        let mut log = SharedLog::new(log);
        let mut daemon = Self {
            settings,
            act,
            log: log.clone(),
            metrics: Arc::clone(&metrics),
            next: None,
            candidate,
            observer,
            _endpoint: None,
        };
        match daemon.candidate {
            None => daemon.next = Some(daemon.manager()?),
            // Without a port, the daemon need not wait for the lease.
            Some(_) => drop(daemon.transport()?),
        }
        let endpoint = daemon.settings.listen.as_ref().map(|listen| {
            let (metrics, mut log) = (metrics.clone(), log.clone());
            let log = move |event: &EndpointEvent| log.take(&Event::Endpoint(event.clone()));
            let limits = EndpointLimits::default();
            let opened = Endpoint::open(&listen.addresses, limits, metrics, Box::new(log));
            opened.map_err(|error| StartError::Endpoint {
                address: listen.text.clone(),
                error,
            })
        });
        daemon._endpoint = endpoint.transpose()?;
        if let Some(endpoint) = &daemon._endpoint {
            let address = endpoint.address().to_string();
            log.take(&Event::MetricsServed { address });
        }
        Ok(daemon)
    }

    fn transport(&self) -> Result<UmadTransport, TransportError> {
        UmadTransport::open(self.settings.device.as_deref(), self.settings.port)
    }

    fn manager(&self) -> Result<DaemonManager, StartError> {
        let in_charge = self.candidate.as_ref().map(Candidate::in_charge);
        let state = StateFolder::open(&self.settings.state, in_charge.clone())?;
        let transport = Leased {
            transport: self.transport()?,
            in_charge,
        };
        let mut manager = Manager::new(
            self.settings.clone(),
            self.act,
            transport,
            state,
            Box::new(self.log.clone()),
            Arc::clone(&self.metrics),
        )?;
        if let Some(observer) = &self.observer {
            manager.observe(Arc::clone(observer));
        }
        Ok(manager)
    }

    /// Waits for the lease, if any, and does the task (see [`Manager::run`]), again after losing lease or port.
    ///
    /// Another instance in charge restores the changes; then the number of changes in the journal is returned.
    pub fn run(&mut self, task: Task, stop: &AtomicBool) -> Result<usize, StartError> {
        loop {
            match self.await_lease(task, stop)? {
                LeaseOutcome::InCharge => {}
                LeaseOutcome::Stopped if task == Task::Restore => return self.pending(),
                LeaseOutcome::Stopped => return Ok(0),
                LeaseOutcome::Other(holder) => {
                    let pending = self.pending()?;
                    self.log.take(&Event::OtherInCharge { holder, pending });
                    return Ok(pending);
                }
            }
            let done = self.term(task, stop);
            match done.map_err(StartError::into_transport) {
                Err(Ok(TransportError::NotInCharge)) => self.log.take(&Event::LeaseLost),
                Err(Ok(error)) if task == Task::Run => {
                    if !self.await_port(&error, stop) {
                        let pending = self.pending()?;
                        self.log.take(&Event::Stopped { pending });
                        return Ok(pending);
                    }
                }
                Err(Ok(error)) => return Err(error.into()),
                Err(Err(error)) => return Err(error),
                Ok(pending) => return Ok(pending),
            }
        }
    }

    fn term(&mut self, task: Task, stop: &AtomicBool) -> Result<usize, StartError> {
        let mut manager = match self.next.take() {
            Some(manager) => manager,
            None => self.manager()?,
        };
        Ok(manager.run(task, stop)?)
    }

    fn await_port(&self, error: &TransportError, stop: &AtomicBool) -> bool {
        if let Some(candidate) = &self.candidate {
            candidate.release();
        }
        let mut log = self.log.clone();
        let mut wait = FIRST_WAIT;
        let mut tell = |error: &TransportError, still, wait: Duration| {
            log.take(&Event::PortLost {
                why: error.to_string(),
                still,
                retry_in_s: wait.as_secs_f64(),
            });
        };
        tell(error, false, wait);
        loop {
            let began = Instant::now();
            while began.elapsed() < wait {
                if stop.load(Ordering::Relaxed) {
                    return false;
                }
                std::thread::sleep(NAP);
            }
            match self.transport() {
                Ok(_) => {
                    self.log.clone().take(&Event::PortBack);
                    return true;
                }
                Err(error) => {
                    wait = LONGEST_WAIT.min(wait * 2);
                    tell(&error, true, wait);
                }
            }
        }
    }

    fn pending(&self) -> Result<usize, StartError> {
        let state = StateFolder::open(&self.settings.state, Some(Arc::new(|| false)))?;
        let journal = Journal::open(state).map_err(ManagerError::from)?;
        Ok(journal.changes().len())
    }

    fn await_lease(&mut self, task: Task, stop: &AtomicBool) -> Result<LeaseOutcome, StartError> {
        let Some((candidate, length)) = self.candidate.as_ref().zip(self.settings.lease) else {
            return Ok(LeaseOutcome::InCharge);
        };
        let mut is_said = false;
        while !stop.load(Ordering::Relaxed) {
            let taken = candidate.try_take().map_err(|error| StateError::Io {
                folder: self.settings.state.clone(),
                error,
            })?;
            if let Some(term) = taken {
                self.metrics.standby.set(0);
                self.log.take(&Event::Elected { term });
                return Ok(LeaseOutcome::InCharge);
            }
            match (task, candidate.live_holder()) {
                (Task::Restore, Some(holder)) => return Ok(LeaseOutcome::Other(holder)),
                (Task::Once, Some(holder)) => {
                    let folder = self.settings.state.clone();
                    return Err(StateError::OtherInCharge { folder, holder }.into());
                }
                _ => {}
            }
            if !is_said {
                is_said = true;
                self.metrics.standby.set(1);
                self.metrics.low.clear();
                self.metrics.victims.clear();
                let lease_s = length.as_secs_f64();
                self.log.take(&Event::Standby { lease_s });
            }
            std::thread::sleep(NAP);
        }
        Ok(LeaseOutcome::Stopped)
    }
}
