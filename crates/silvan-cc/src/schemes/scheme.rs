use std::fmt::Debug;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use silvan_core::document::{KeyPath, Refusal};
use silvan_core::{Bytes, PortId, PortNumber, Rate, Span, SwitchId, Time};
use thiserror::Error;

use super::parameter::{Declared, ParameterInfo};
use super::variant::{FabricFacts, Family, Variant};
use crate::hooks::{SettingChange, Settings, SourceControl, SwitchControl};
use crate::notification::BecnCarrier;

/// A congestion-control scheme: its parameters, the table `[control.NAME]`, and its parts.
pub trait Scheme:
    Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema + Declared
{
    /// Control of the switches; [`NoControl`](crate::hooks::NoControl) if there is none.
    type Switch: SwitchControl + Settings;
    /// Control of the hosts.
    type Source: SourceControl + Settings;

    /// Defaults of other sections while this scheme is in force.
    const DEFAULTS: Defaults = Defaults::CNP;

    /// True if it uses [`DataPlane::link_rate`] or [`Setup::link_rate`]: a scenario warns if no cable has that rate.
    const TAKES_LINK_RATE: bool = false;

    /// Family of the scheme; comparisons list variants in the order of families.
    const FAMILY: Family = Family::Other;

    /// The variants on a fabric: published settings, or the reason for their omission.
    fn variants(facts: &FabricFacts<'_>) -> Vec<Variant> {
        let _ = facts;
        Vec::new()
    }

    /// Bytes that each packet and acknowledgement carries in addition while the scheme is in force.
    fn wire_bytes(&self) -> Bytes {
        Bytes::default()
    }

    /// Why the filled-in scheme never acted, as a clause in the past tense: "no queue reached k-min, 5 KB".
    fn idle_reason(&self) -> Option<String> {
        None
    }

    /// Fills in the parameters whose default depends on the rest of a scenario. Doing it twice changes nothing.
    fn fill_in(&mut self, data_plane: &DataPlane) {
        let _ = data_plane;
    }

    /// Checks the filled-in parameters, declared bounds first; the first fault with a hint.
    fn check(&self) -> Result<(), SchemeError> {
        self.check_bounds()
    }

    /// The settings of single ports, and those that change during a run. Errors: the first at fault, with a hint.
    fn settings(&self, switches: &dyn Switches) -> Result<Changes, SchemeError> {
        let _ = switches;
        Ok(Changes::default())
    }

    /// Checks parameters that passed [`check`](Self::check) for a run's fabric; the first fault with a hint.
    fn check_setup(&self, setup: &Setup<'_>) -> Result<(), SchemeError> {
        let _ = setup;
        Ok(())
    }

    /// Builds both parts after both checks; fails in an unsuitable program.
    fn build(&self, setup: &Setup<'_>) -> Result<(Self::Switch, Self::Source), SchemeError>;
}

/// Defaults of the section `control.feedback`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// `control.feedback.carrier`.
    pub carrier: BecnCarrier,
    /// Why the scheme works with no other carrier; `None` if it does.
    pub carrier_required: Option<&'static str>,
    /// `control.feedback.coalesce`; `None` for no limit.
    pub coalesce: Option<Span>,
}

impl Defaults {
    /// A congestion notification packet for each marked packet.
    pub const CNP: Self = Self {
        carrier: BecnCarrier::Cnp,
        carrier_required: None,
        coalesce: None,
    };

    /// An acknowledgement of each packet, which carries its mark back.
    pub const ACK_PER_PACKET: Self = Self {
        carrier: BecnCarrier::AckPerPacket,
        ..Self::CNP
    };
}

/// The other sections of a scenario that defaults of parameters depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPlane {
    /// Largest payload of a packet.
    pub mtu: Bytes,
    /// Bytes of a packet on the wire in addition to its payload.
    pub header: Bytes,
    /// Input buffer of a switch port.
    pub switch_buffer: Bytes,
    /// Data rate of a cable without a rate of its own.
    pub link_rate: Rate,
}

/// The switches of a fabric, by name and by number.
pub trait Switches {
    /// The switch of this name. Errors: message and hint without a key: there is none.
    fn named(&self, name: &str) -> Result<SwitchId, SchemeError>;

    /// The name of a switch.
    fn name(&self, switch: SwitchId) -> &str;

    /// The number of switches.
    fn count(&self) -> usize;

    /// The ports of a switch: port 1 first.
    fn ports(&self, switch: SwitchId) -> Vec<PortId>;
}

/// Settings of a scheme that are not the same everywhere and all the time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Changes in force from the start.
    pub initial: Vec<SettingChange>,
    /// During the run, by time.
    pub timed: Vec<(Time, SettingChange)>,
}

impl Changes {
    #[must_use]
    pub(super) fn and(mut self, other: Self) -> Self {
        self.initial.extend(other.initial);
        self.timed.extend(other.timed);
        self.timed.sort_by_key(|(at, _)| *at);
        self
    }
}

/// The fabric and the run that a scheme is built for.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The position of each port of the fabric; `None` for ports of hosts.
    pub ports: &'a [Option<SwitchPort>],
    /// Data VLs of every port. A [`PortVl`](crate::hooks::PortVl) is port times this plus VL.
    pub data_vls: u8,
    /// Number of hosts.
    pub hosts: usize,
    /// Rate of a cable without a rate of its own.
    pub link_rate: Rate,
    /// Payload of a packet of MTU size, in bytes.
    pub mtu: u32,
    /// True if the routing uses virtual lanes to keep paths from deadlock.
    pub routes_use_lanes: bool,
    /// True if the routing has several shortest paths, among which hosts can choose.
    pub has_alternatives: bool,
    /// True if packets wait in virtual output queues only: input buffers are no queues, outputs have none.
    pub waits_once: bool,
    /// Random seed of the run.
    pub seed: u64,
}

impl Setup<'_> {
    /// Random seed of the switches.
    pub const fn switch_seed(&self) -> u64 {
        self.seed ^ 0x5357_4954_4348
    }

    /// Random seed of the hosts.
    pub const fn host_seed(&self) -> u64 {
        self.seed ^ 0x4144_4150_5445
    }
}

/// The position of a switch port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchPort {
    /// Switch of the port.
    pub switch: SwitchId,
    /// Number of the port on its switch.
    pub number: PortNumber,
    /// True if the cable leads to a host.
    pub to_host: bool,
    /// The port at the other end of its cable.
    pub peer: Option<PortId>,
}

/// A parameter that a scheme cannot work with.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SchemeError {
    /// Key within `[control.NAME]`.
    pub key: KeyPath,
    /// The fault.
    pub message: String,
    /// The remedy.
    pub hint: String,
}

impl SchemeError {
    /// An error at a key.
    pub fn new(
        key: impl Into<KeyPath>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// Adds the source of the key's bounds.
    #[must_use]
    pub fn with_source(mut self, parameters: &[ParameterInfo]) -> Self {
        let key = self.key.to_string();
        let parameter = parameters.iter().find(|parameter| parameter.key == key);
        if let Some(source) = parameter.and_then(|parameter| parameter.source) {
            self.message = format!("{} ({source})", self.message);
        }
        self
    }

    /// Prefixes the key with an outer key.
    #[must_use]
    pub fn within(self, outer: &KeyPath) -> Self {
        let key = outer.join(&self.key);
        Self { key, ..self }
    }
}

impl From<Refusal> for SchemeError {
    fn from(refusal: Refusal) -> Self {
        let Refusal { key, message, hint } = refusal;
        Self { key, message, hint }
    }
}

impl From<SchemeError> for Refusal {
    fn from(error: SchemeError) -> Self {
        let SchemeError { key, message, hint } = error;
        Self { key, message, hint }
    }
}
