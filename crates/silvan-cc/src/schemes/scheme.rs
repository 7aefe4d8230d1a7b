//! What a scheme must be.

use std::fmt::Debug;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use silvan_core::{Rate, Span};
use thiserror::Error;

use crate::hooks::{Settings, SourceControl, SwitchControl};
use crate::schemes::ib_cc::SwitchPort;

/// A congestion-control scheme: its parameters as a scenario gives them, and what becomes of them.
///
/// The type is the table `[control.own.NAME]` of a scenario. Every key must have a default, and the
/// doc comment of a field is what the reference of scenario keys says about it.
pub trait Scheme:
    Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema
{
    /// What runs at the switches. [`NoControl`](crate::hooks::NoControl) if nothing does.
    type Switch: SwitchControl + Settings;
    /// What runs at the hosts.
    type Source: SourceControl + Settings;

    /// What it wants of the rest of a scenario where that says nothing.
    const DEFAULTS: Defaults = Defaults {
        feedback: Feedback::Notification,
        coalesce: None,
    };

    /// Checks the parameters, whatever the fabric.
    ///
    /// # Errors
    /// The first at fault, with a hint.
    fn check(&self) -> Result<(), SchemeError>;

    /// Builds both parts for a fabric. [`check`](Self::check) has found nothing.
    fn build(&self, setup: &Setup<'_>) -> (Self::Switch, Self::Source);
}

/// What carries the mark of a packet back to its source, unless a scenario says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// A congestion notification packet for each marked packet.
    Notification,
    /// The acknowledgement of each packet.
    AckPerPacket,
}

/// Defaults of other sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// `control.feedback.carrier`.
    pub feedback: Feedback,
    /// `control.feedback.coalesce`; `None` for no limit.
    pub coalesce: Option<Span>,
}

/// The fabric and the run that a scheme is built for.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// For each port of the fabric where it stands; `None` for ports of hosts.
    pub ports: &'a [Option<SwitchPort>],
    /// Data VLs of every port. A [`PortVl`](crate::hooks::PortVl) is port times this plus VL.
    pub data_vls: usize,
    /// Number of hosts.
    pub hosts: usize,
    /// Rate of a cable that says nothing else.
    pub link_rate: Rate,
    /// Payload of a packet of MTU size, in bytes.
    pub mtu: u32,
    /// Seed of the run, for random choices of the switches.
    pub switch_seed: u64,
    /// And for those of the hosts.
    pub host_seed: u64,
}

/// A parameter that a scheme cannot work with.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SchemeError {
    /// Its key within `[control.own.NAME]`.
    pub key: &'static str,
    /// What is wrong.
    pub message: String,
    /// What helps.
    pub hint: String,
}

impl SchemeError {
    /// An error at a key.
    pub fn new(key: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            key,
            message: message.into(),
            hint: hint.into(),
        }
    }
}
