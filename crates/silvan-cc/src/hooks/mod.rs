//! The hooks through which the data plane drives congestion control: schemes see no clock, socket or thread.
//!
//! `ACTIVE` and the `needs_*` methods let the compiler drop unused calls.
//!
//! - [`SwitchControl`] marks packets at switches.
//! - [`SourceControl`] decides at adapters about rates, windows, send times, paths, lanes and grants.
//! - [`Controller`] reads port counters from outside and changes settings.

#[macro_use]
#[doc(hidden)]
pub mod declare;
#[macro_use]
mod list;

pub mod foreign;
mod views;

use silvan_core::{HostId, PortCounters, PortId, Sl, Span, Time};

use crate::schemes::ib_cc::{AdapterSetting, PortSetting};

pub use chain::Chain;
pub use list::{SOURCE_HOOKS, SWITCH_HOOKS, SourceControl, SwitchControl};
pub(crate) use list::{SourceHook, SwitchHook};
pub use views::{
    Ack, Arrival, Candidate, Feedback, Flow, FlowLimit, Grant, Grants, Hop, LaneView, LinkView,
    Messages, PacketView, PortMessage, PortVl, QueueView, Recurring, Resident, RouteView,
};

/// Switch control with separate state for each Port VL.
///
/// Calls about different Port VLs may come in any order; messages take at least [`SwitchControl::message_delay`]. A
/// control that needs full input buffers ([`SwitchControl::needs_buffer_full`], [`SwitchControl::delays_credits`]) gets
/// a switch's calls in order. Each thread has a clone.
pub trait PerPortVl: SwitchControl + Clone + Send {}

/// Source control that has a part of its own for each host, in the same sense.
pub trait PerHost: SourceControl + Clone + Send {}

impl PerPortVl for NoControl {}

impl PerHost for NoControl {}

/// No congestion control, on either side.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoControl;

impl SwitchControl for NoControl {
    const ACTIVE: bool = false;

    fn recurs(&self) -> bool {
        true
    }
}

impl SourceControl for NoControl {
    const ACTIVE: bool = false;

    fn recurs(&self) -> bool {
        true
    }

    fn recurring(&self, _: Time, _: HostId) -> Option<Recurring> {
        Some(Recurring {
            changes: 0,
            words: Vec::new(),
            until: Time::MAX,
        })
    }

    fn flow_rests(&self, _: Time, _: Flow) -> bool {
        true
    }

    fn separates_flows(&self) -> bool {
        true
    }

    fn keeps_lanes(&self) -> bool {
        true
    }
}

/// A change of settings that a [`Controller`], a scenario or a management datagram requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingChange {
    /// A setting of one switch port.
    Port {
        /// The port.
        port: PortId,
        /// The setting with its new value.
        setting: PortSetting,
    },
    /// A setting of every adapter on one service level.
    Adapter {
        /// Service level.
        sl: Sl,
        /// The setting with its new value.
        setting: AdapterSetting,
    },
}

impl SettingChange {
    /// Returns true if the change may affect which credits a switch returns late.
    pub fn concerns_credits(&self) -> bool {
        matches!(self, Self::Port { setting, .. } if setting.concerns_credits())
    }
}

/// Settings that can be changed from outside while packets move.
pub trait Settings {
    /// Applies one change at `now`; [`UnknownSetting`] without such a setting or switch port.
    fn apply(&mut self, now: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        let _ = now;
        Err(UnknownSetting(change.clone()))
    }
}

impl Settings for NoControl {}

/// The running scheme has no such setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the congestion control in use has no setting for {0:?}")]
pub struct UnknownSetting(pub SettingChange);

/// Something that watches the fabric's counters from outside and changes its settings.
pub trait Controller {
    /// Time until the next sweep.
    fn interval(&self) -> Span;
    /// Runs a sweep with the counters of every switch port at `now`; pushes the changes to make.
    fn step(
        &mut self,
        now: Time,
        readings: &[(PortId, PortCounters)],
        changes: &mut Vec<SettingChange>,
    );
}

impl<C: Controller + ?Sized> Controller for &mut C {
    fn interval(&self) -> Span {
        (**self).interval()
    }

    fn step(
        &mut self,
        now: Time,
        readings: &[(PortId, PortCounters)],
        changes: &mut Vec<SettingChange>,
    ) {
        (**self).step(now, readings, changes);
    }
}

mod chain;
mod dispatch;
