//! A manager with its files, its port and its endpoint, ready to run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use thiserror::Error;

use crate::endpoint::{Endpoint, Limits};
use crate::event::Event;
use crate::journal::{StateError, StateFolder};
use crate::log::{Log, SharedLog};
use crate::manager::{Manager, ManagerError, Task};
use crate::metrics::Metrics;
use crate::settings::ManagerSettings;
use crate::transport::TransportError;
use crate::umad::UmadTransport;

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
    /// What to do about it.
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
    manager: Manager<UmadTransport, StateFolder>,
    // Serves until the daemon is dropped.
    _endpoint: Option<Endpoint>,
}

impl Daemon {
    /// Takes the lock, opens the port and the endpoint. It will change nothing unless `act` is set.
    ///
    /// # Errors
    ///
    /// [`StartError`]; nothing is left open then.
    pub fn open(
        settings: ManagerSettings,
        act: bool,
        log: Box<dyn Log>,
    ) -> Result<Self, StartError> {
        let state = StateFolder::open(&settings.state)?;
        let transport = UmadTransport::open(settings.device.as_deref(), settings.port)?;
        let metrics = Arc::new(Metrics::new());
        let mut log = SharedLog::new(log);
        let endpoint = settings.listen.as_ref().map(|listen| {
            let (metrics, log) = (metrics.clone(), Box::new(log.clone()));
            let opened = Endpoint::open(&listen.addresses, Limits::default(), metrics, log);
            opened.map_err(|error| StartError::Endpoint {
                address: listen.text.clone(),
                error,
            })
        });
        let endpoint = endpoint.transpose()?;
        if let Some(endpoint) = &endpoint {
            let address = endpoint.address().to_string();
            log.take(&Event::MetricsServed { address });
        }
        Ok(Self {
            manager: Manager::new(settings, act, transport, state, Box::new(log), metrics)?,
            _endpoint: endpoint,
        })
    }

    /// See [`Manager::run`].
    ///
    /// # Errors
    ///
    /// [`ManagerError`] if it cannot go on.
    pub fn run(&mut self, task: Task, stop: &AtomicBool) -> Result<usize, ManagerError> {
        self.manager.run(task, stop)
    }
}
