use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Bytes, HostId, Rate, Time};

/// Finds hosts by their names.
pub trait HostNames: fmt::Debug + Send + Sync {
    /// The host of this name. Errors: There is none.
    fn host(&self, name: &str) -> Result<HostId, UnknownHost>;
}

/// A name that is no host's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnknownHost {
    /// The fault.
    pub message: String,
    /// The text to write instead.
    pub hint: String,
}

/// Order in which a host sends its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SendQueue {
    /// Each destination has a queue of its own: a throttled message blocks no message to another host.
    #[default]
    PerDestination,
    /// In the order in which messages were made, one after the other.
    Fifo,
}

/// Inputs of the traffic from the fabric and the run.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Payload rate of each host by [`HostId`]: its injection rate, or its link's after headers. Shares refer to it.
    pub injection: Vec<Rate>,
    /// Further hosts, which take no part.
    pub idle: usize,
    /// Largest payload of a packet.
    pub mtu: Bytes,
    /// Seed of the run; every stream of random numbers derives from it.
    pub seed: u64,
    /// Order in which the hosts send their messages.
    pub send_queue: SendQueue,
    /// The names of the hosts.
    pub names: Arc<dyn HostNames>,
}

impl Environment {
    /// Hosts without names, each destination with a queue of its own.
    pub fn unnamed(injection: Vec<Rate>, mtu: Bytes, seed: u64) -> Self {
        Self {
            injection,
            idle: 0,
            mtu,
            seed,
            send_queue: SendQueue::default(),
            names: Arc::new(NoNames),
        }
    }
}

#[derive(Debug)]
struct NoNames;

impl HostNames for NoNames {
    fn host(&self, name: &str) -> Result<HostId, UnknownHost> {
        Err(UnknownHost {
            message: format!("there is no host named {name:?}"),
            hint: "give the number of a host".to_owned(),
        })
    }
}

/// Messages made before the end are sent completely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: Time,
    /// Exclusive; `None`: no end.
    pub(crate) end: Option<Time>,
}
