//! Events for logs: severity, one line of text, and JSON.

mod text;

use std::fmt;

use serde::{Serialize, Serializer};
use silvan_cc::dcms::Reason;
use silvan_core::Guid;
use silvan_core::growth::CongestionGrowth;
use silvan_subnet::client::Failure;
use silvan_subnet::endpoint::EndpointEvent;
use silvan_subnet::log::{Level, LogEvent};

/// A port, or a switch as a whole, as people call it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Name {
    /// NodeDescription of the switch.
    pub switch: String,
    /// NodeGUID of the switch.
    pub guid: Guid,
    /// The port; `None` for the whole switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u8>,
    /// Name of the other end of the cable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub far_end: Option<String>,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.switch.as_str() {
            "" => write!(f, "{}", self.guid)?,
            name => f.write_str(name)?,
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        if let Some(far_end) = &self.far_end {
            write!(f, " (to {far_end})")?;
        }
        Ok(())
    }
}

/// Counters of a port, as a decision saw them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counters {
    /// Time between the two readings, in seconds.
    pub span_s: f64,
    /// Growth of PortXmitWait, in ticks of the thresholds.
    pub xmit_wait: Option<u64>,
    /// Growth of PortXmitData, in words of four bytes.
    pub xmit_data: Option<u64>,
    /// Growth of PortXmitTimeCong, in ticks of the thresholds.
    pub xmit_time_cong: Option<u64>,
}

impl From<CongestionGrowth> for Counters {
    fn from(growth: CongestionGrowth) -> Self {
        Self {
            span_s: growth.span.as_secs_f64(),
            xmit_wait: growth.xmit_wait,
            xmit_data: growth.xmit_data,
            xmit_time_cong: growth.xmit_time_cong,
        }
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: Option<u64>| value.map_or("unknown".to_owned(), |v| v.to_string());
        write!(
            f,
            "xmit-wait {} xmit-data {} xmit-time-cong {} in {:.3} s",
            show(self.xmit_wait),
            show(self.xmit_data),
            show(self.xmit_time_cong),
            self.span_s,
        )
    }
}

/// Action of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Do {
    /// Nothing.
    Nothing,
    /// Set the low Marking_Rate.
    Lower,
    /// Restore what was there.
    Restore,
}

/// A decision of the DCMS, and the counters that it was made by.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Decided {
    /// The port that it is about.
    pub port: Name,
    /// Why: see the guide.
    pub reason: &'static str,
    /// The action.
    pub action: Do,
    /// True if nothing is done for lack of `--act`.
    pub dry_run: bool,
    /// The neighbouring switch port that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub victim: Option<Name>,
    /// Counters of the port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
    /// Counters of the victim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub victim_counters: Option<Counters>,
    /// Counters of the victim in the sweep before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub victim_counters_before: Option<Counters>,
    /// Seconds since the Marking_Rate was lowered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_for_s: Option<f64>,
    /// Bytes that the victims' links could have carried while they waited, from the decision to lower to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub victims_lost_bytes: Option<f64>,
}

fn failure<S: Serializer>(failure: &Failure, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(failure)
}

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(
    tag = "event",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
#[non_exhaustive]
pub enum Event {
    /// The manager has started.
    Started {
        /// True if the manager may make changes.
        act: bool,
        /// Changes in the journal of an earlier run.
        pending: usize,
    },
    /// Another instance is in charge, or may be; this one waits for its lease.
    Standby {
        /// The length of the lease, in seconds.
        lease_s: f64,
    },
    /// This instance is in charge.
    Elected {
        /// The number of its term.
        term: u64,
    },
    /// This instance is not in charge any more. The instance in charge takes over the changes.
    LeaseLost,
    /// The port has failed, or cannot be opened again yet. Changes are restored when it is back.
    PortLost {
        /// Why.
        why: String,
        /// An earlier event has said so.
        still: bool,
        /// Time until the port is opened again, in seconds.
        retry_in_s: f64,
    },
    /// The port is open again: the manager starts over.
    PortBack,
    /// Another instance is in charge and renews its lease, so that this one restores nothing.
    OtherInCharge {
        /// Name that the other instance has written.
        holder: String,
        /// Changes in the journal.
        pending: usize,
    },
    /// The metrics can be read at this address.
    MetricsServed {
        /// The address.
        address: String,
    },
    /// The subnet was discovered.
    Discovered {
        /// Switches found.
        switches: usize,
        /// Adapters found.
        hosts: usize,
        /// Ports that are swept.
        ports: usize,
        /// Ports that may be changed.
        controllable: usize,
        /// True if all nodes have answered without contradictions.
        complete: bool,
        /// Duration, in seconds.
        seconds: f64,
    },
    /// The local node does not answer, so that there is no subnet to be seen.
    NoSubnet,
    /// A sweep.
    Swept {
        /// Ports asked.
        ports: usize,
        /// Ports that have answered.
        answered: usize,
        /// Duration, in seconds.
        seconds: f64,
    },
    /// A decision of the DCMS.
    Decision(Box<Decided>),
    /// A Marking_Rate is low now.
    Lowered {
        /// Place of the change.
        port: Name,
        /// Marking_Rate in force before, in packets.
        before: u16,
        /// Marking_Rate in force, in packets.
        now: u16,
    },
    /// A Marking_Rate was not lowered.
    NotLowered {
        /// Place of the change.
        port: Name,
        /// Why.
        why: String,
    },
    /// A Marking_Rate is again what it was.
    Restored {
        /// Place of the change.
        port: Name,
        /// Marking_Rate in force, in packets.
        now: u16,
    },
    /// A Marking_Rate in the journal was not low any more, and stays as it is.
    LeftAlone {
        /// Place of the change.
        port: Name,
    },
    /// A Marking_Rate could not be restored yet. It stays in the journal.
    NotRestored {
        /// Place of the change.
        port: Name,
        /// Why.
        #[serde(serialize_with = "failure")]
        why: Failure,
        /// Time until the next try, in seconds.
        retry_in_s: f64,
    },
    /// The journal cannot be written. Nothing is lowered then; restoring goes on.
    JournalFailed {
        /// Why.
        why: String,
        /// Time until the next try, in seconds.
        retry_in_s: f64,
    },
    /// The journal is written again.
    JournalWritten,
    /// A switch answers no request of congestion control, though others.
    NoCongestionControl {
        /// The switch.
        switch: Name,
    },
    /// No subnet manager answers: everything is restored, and nothing done until one does.
    SmLost {
        /// Time without an answer, in seconds.
        seconds: f64,
    },
    /// No subnet manager has answered yet: nothing is decided until one does.
    SmAwaited,
    /// A subnet manager answers, for the first time or again.
    SmFound,
    /// The LID of the subnet manager or of the local port has changed.
    SmChanged {
        /// LID of the subnet manager.
        sm_lid: u16,
    },
    /// The clock has gone back: everything is restored, and readings are forgotten.
    ClockWentBack,
    /// A switch has stopped answering. It is queried less and less often.
    SwitchSilent {
        /// The switch.
        switch: Name,
        /// Time until the next query, in seconds.
        retry_in_s: f64,
    },
    /// A switch answers again.
    SwitchBack {
        /// The switch.
        switch: Name,
    },
    /// A switch's LID belongs to another node by now; the subnet is discovered again.
    SwitchMoved {
        /// The switch.
        switch: Name,
    },
    /// The link of a port has been down; this sweep says nothing about the port.
    LinkFlapped {
        /// The port.
        port: Name,
    },
    /// Counters were reset before they stop at their end.
    CountersReset {
        /// Ports.
        ports: usize,
    },
    /// A Marking_Rate is low no longer without a decision: no subnet manager, clock or port, or the end.
    LowEnded {
        /// Place of the change.
        port: Name,
        /// True for a dry run.
        dry_run: bool,
        /// Seconds since the Marking_Rate was lowered; `None` if the clock has gone back.
        #[serde(skip_serializing_if = "Option::is_none")]
        low_for_s: Option<f64>,
        /// See [`Decided::victims_lost_bytes`].
        victims_lost_bytes: f64,
    },
    /// The manager stops, and restores what it has changed.
    Stopping {
        /// Changes to restore.
        pending: usize,
    },
    /// The manager has stopped.
    Stopped {
        /// Changes that could not be restored, and are in the journal.
        pending: usize,
    },
    /// An event of the endpoint of the metrics. Its own tag names it.
    #[serde(untagged)]
    Endpoint(EndpointEvent),
}

impl LogEvent for Event {
    fn level(&self) -> Level {
        match self {
            Self::Swept { .. } => Level::Debug,
            Self::NotLowered { .. }
            | Self::LeftAlone { .. }
            | Self::NotRestored { .. }
            | Self::SmLost { .. }
            | Self::NoSubnet
            | Self::SmAwaited
            | Self::NoCongestionControl { .. }
            | Self::ClockWentBack
            | Self::LeaseLost
            | Self::SwitchSilent { .. }
            | Self::SwitchMoved { .. }
            | Self::LinkFlapped { .. } => Level::Warning,
            Self::Discovered { complete, .. } if !complete => Level::Warning,
            Self::JournalFailed { .. } | Self::PortLost { .. } => Level::Error,
            Self::OtherInCharge { pending, .. } if *pending > 0 => Level::Warning,
            Self::Stopped { pending } if *pending > 0 => Level::Error,
            Self::Endpoint(event) => event.level(),
            _ => Level::Info,
        }
    }
}

impl Event {
    /// A decision in plain values; `name` names its ports.
    pub fn decision(
        reason: &Reason,
        port: Name,
        (action, dry_run): (Do, bool),
        victims_lost_bytes: Option<f64>,
        name: impl Fn(silvan_core::PortId) -> Name,
    ) -> Self {
        let (mut counters, mut victim_counters, mut before, mut low_for) = (None, None, None, None);
        match *reason {
            Reason::VictimFound { root, waits, .. } => {
                counters = Some(root.into());
                victim_counters = Some(waits.into());
            }
            Reason::VictimGone {
                before: old, now, ..
            } => {
                before = Some(old.into());
                victim_counters = Some(now.into());
            }
            Reason::TimeLimit { low_for: span } => low_for = Some(span.as_secs_f64()),
            Reason::NotAllowed { .. }
            | Reason::TooManySwitches { .. }
            | Reason::NoVictims
            | Reason::ClockWentBack
            | Reason::Vanished => {}
        }
        Self::Decision(Box::new(Decided {
            port,
            reason: reason.name(),
            action,
            dry_run,
            victim: reason.victim().map(name),
            counters,
            victim_counters,
            victim_counters_before: before,
            low_for_s: low_for,
            victims_lost_bytes,
        }))
    }
}
