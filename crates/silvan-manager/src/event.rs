//! What happens, for logs: each event knows how grave it is, reads as one line of text, and
//! serializes to JSON with all its values.

use std::fmt;
use std::io::Write;
use std::time::SystemTime;

use serde::{Serialize, Serializer};
use silvan_control::dcms::{PortGrowth, Reason};
use silvan_units::Guid;

use crate::client::Failure;

/// How grave an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Every sweep.
    Debug,
    /// What the manager does.
    Info,
    /// What somebody should look at.
    Warning,
    /// What keeps the manager from its work.
    Error,
}

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
    /// What is at the other end.
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
    /// Growth of PortXmitWait, in ticks.
    pub xmit_wait: Option<u64>,
    /// Growth of PortXmitData, in words of four bytes.
    pub xmit_data: Option<u64>,
    /// Growth of PortXmitTimeCong, in ticks.
    pub xmit_time_cong: Option<u64>,
}

impl From<PortGrowth> for Counters {
    fn from(growth: PortGrowth) -> Self {
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

/// What is to be done about a decision.
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
    /// What is to be done.
    pub action: Do,
    /// Whether nothing is done for lack of `--act`.
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
    /// How long the Marking_Rate has been low, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_for_s: Option<f64>,
}

/// A failure as text.
fn failure<S: Serializer>(failure: &Failure, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(failure)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered => f.write_str("it does not answer"),
            Self::Refused(status) => write!(f, "it refuses: {status}"),
            Self::WrongNode => f.write_str("its LID belongs to another node"),
        }
    }
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
        /// Whether it may change anything.
        act: bool,
        /// Changes in the journal of an earlier run.
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
        /// Whether everything has answered without contradictions.
        complete: bool,
        /// What it took, in seconds.
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
        /// What it took, in seconds.
        seconds: f64,
    },
    /// A decision of the DCMS.
    Decision(Box<Decided>),
    /// A Marking_Rate is low now.
    Lowered {
        /// Where.
        port: Name,
        /// What was in force, in packets.
        before: u16,
        /// What is in force, in packets.
        now: u16,
    },
    /// A Marking_Rate was not lowered.
    NotLowered {
        /// Where.
        port: Name,
        /// Why.
        why: String,
    },
    /// A Marking_Rate is again what it was.
    Restored {
        /// Where.
        port: Name,
        /// What is in force, in packets.
        now: u16,
    },
    /// A Marking_Rate in the journal was not low any more, and stays as it is.
    LeftAlone {
        /// Where.
        port: Name,
    },
    /// A Marking_Rate could not be restored yet. It stays in the journal.
    NotRestored {
        /// Where.
        port: Name,
        /// Why.
        #[serde(serialize_with = "failure")]
        why: Failure,
        /// When it is tried again, in seconds from now.
        retry_in_s: f64,
    },
    /// The journal cannot be written. Nothing is changed then.
    JournalFailed {
        /// Why.
        why: String,
    },
    /// No subnet manager answers: everything is restored, and nothing done until one does.
    SmLost {
        /// How long none has answered, in seconds.
        seconds: f64,
    },
    /// A subnet manager answers again.
    SmFound,
    /// The LID of the subnet manager or of the local port has changed.
    SmChanged {
        /// LID of the subnet manager.
        sm_lid: u16,
    },
    /// A switch has stopped answering. It is asked less and less often.
    SwitchSilent {
        /// The switch.
        switch: Name,
        /// When it is asked again, in seconds from now.
        retry_in_s: f64,
    },
    /// A switch answers again.
    SwitchBack {
        /// The switch.
        switch: Name,
    },
    /// A switch's LID belongs to another node by now; the subnet is discovered anew.
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
}

impl Event {
    /// How grave it is.
    pub fn level(&self) -> Level {
        match self {
            Self::Swept { .. } => Level::Debug,
            Self::NotLowered { .. }
            | Self::LeftAlone { .. }
            | Self::NotRestored { .. }
            | Self::SmLost { .. }
            | Self::NoSubnet
            | Self::SwitchSilent { .. }
            | Self::SwitchMoved { .. }
            | Self::LinkFlapped { .. } => Level::Warning,
            Self::Discovered { complete, .. } if !complete => Level::Warning,
            Self::JournalFailed { .. } => Level::Error,
            Self::Stopped { pending } if *pending > 0 => Level::Error,
            _ => Level::Info,
        }
    }

    /// A decision in plain values, its ports named by `name`.
    pub fn decision(
        reason: &Reason,
        port: Name,
        action: Do,
        dry_run: bool,
        name: impl Fn(silvan_units::PortId) -> Name,
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
        }))
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { act, pending } => {
                let mode = if *act {
                    "acting"
                } else {
                    "dry run: nothing will be changed"
                };
                write!(f, "started, {mode}")?;
                match pending {
                    0 => Ok(()),
                    _ => write!(
                        f,
                        "; {pending} changes of an earlier run are to be restored"
                    ),
                }
            }
            Self::MetricsServed { address } => write!(f, "metrics at http://{address}/metrics"),
            Self::Discovered {
                switches,
                hosts,
                ports,
                controllable,
                complete,
                seconds,
            } => {
                write!(
                    f,
                    "discovered {switches} switches and {hosts} hosts in {seconds:.3} s; {ports} ports \
                     watched, {controllable} may be changed"
                )?;
                match complete {
                    true => Ok(()),
                    false => f.write_str("; not everything has answered"),
                }
            }
            Self::NoSubnet => f.write_str("the local node does not answer"),
            Self::Swept {
                ports,
                answered,
                seconds,
            } => write!(f, "swept {answered} of {ports} ports in {seconds:.3} s"),
            Self::Decision(decided) => decided.fmt(f),
            Self::Lowered { port, before, now } => {
                write!(
                    f,
                    "lowered the Marking_Rate of {port} from {before} to {now}"
                )
            }
            Self::NotLowered { port, why } => {
                write!(f, "the Marking_Rate of {port} is not lowered: {why}")
            }
            Self::Restored { port, now } => {
                write!(f, "restored the Marking_Rate of {port} to {now}")
            }
            Self::LeftAlone { port } => {
                write!(
                    f,
                    "the Marking_Rate of {port} is not low any more; left as it is"
                )
            }
            Self::NotRestored {
                port,
                why,
                retry_in_s,
            } => write!(
                f,
                "the Marking_Rate of {port} cannot be restored yet: {why}; next try in {retry_in_s:.1} s"
            ),
            Self::JournalFailed { why } => f.write_str(why),
            Self::SmLost { seconds } => write!(
                f,
                "no subnet manager has answered for {seconds:.1} s; restoring everything"
            ),
            Self::SmFound => f.write_str("a subnet manager answers again"),
            Self::SmChanged { sm_lid } => {
                write!(
                    f,
                    "the subnet manager is at LID {sm_lid} now; discovering anew"
                )
            }
            Self::SwitchSilent { switch, retry_in_s } => {
                write!(f, "{switch} does not answer; next try in {retry_in_s:.1} s")
            }
            Self::SwitchBack { switch } => write!(f, "{switch} answers again"),
            Self::SwitchMoved { switch } => {
                write!(
                    f,
                    "the LID of {switch} belongs to another node; discovering anew"
                )
            }
            Self::LinkFlapped { port } => write!(f, "the link of {port} has been down"),
            Self::CountersReset { ports } => write!(f, "reset full counters of {ports} ports"),
            Self::Stopping { pending } => write!(f, "stopping; {pending} changes to restore"),
            Self::Stopped { pending: 0 } => f.write_str("stopped; nothing stays changed"),
            Self::Stopped { pending } => {
                write!(
                    f,
                    "stopped; {pending} changes could not be restored and are in the journal"
                )
            }
        }
    }
}

impl fmt::Display for Decided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { port, reason, .. } = self;
        let verb = match (self.action, self.dry_run) {
            (Do::Nothing, _) => "nothing to do at",
            (Do::Lower, false) => "lower",
            (Do::Lower, true) => "would lower",
            (Do::Restore, false) => "restore",
            (Do::Restore, true) => "would restore",
        };
        write!(f, "{verb} {port}: {reason}")?;
        if let Some(counters) = &self.counters {
            write!(f, ", {counters}")?;
        }
        if let Some(victim) = &self.victim {
            write!(f, "; victim {victim}")?;
        }
        if let Some(counters) = &self.victim_counters {
            write!(f, ", {counters}")?;
        }
        if let Some(counters) = &self.victim_counters_before {
            write!(f, "; before, {counters}")?;
        }
        match self.low_for_s {
            Some(seconds) => write!(f, " after {seconds:.3} s"),
            None => Ok(()),
        }
    }
}

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

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line that people read.
    Text,
    /// A JSON object per line.
    Json,
}

/// Writes events with their time, a line each.
#[derive(Debug)]
pub struct LineLog<W> {
    to: W,
    format: Format,
    least: Level,
}

impl<W: Write> LineLog<W> {
    /// A log of events that are at least as grave as `least`.
    pub fn new(to: W, format: Format, least: Level) -> Self {
        Self { to, format, least }
    }

    fn line(&self, event: &Event, time: SystemTime) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            time: String,
            level: Level,
            #[serde(flatten)]
            event: &'a Event,
        }

        let time = humantime::format_rfc3339_millis(time).to_string();
        let level = event.level();
        match self.format {
            Format::Text => {
                let level = match level {
                    Level::Debug => "debug",
                    Level::Info => "info",
                    Level::Warning => "warning",
                    Level::Error => "error",
                };
                format!("{time} {level}: {event}\n")
            }
            Format::Json => {
                let line = serde_json::to_string(&Line { time, level, event });
                // Events are numbers and text with text keys.
                line.unwrap_or_default() + "\n"
            }
        }
    }
}

impl<W: Write + Send> Log for LineLog<W> {
    fn take(&mut self, event: &Event) {
        if event.level() < self.least {
            return;
        }
        let line = self.line(event, SystemTime::now());
        // A log that nobody reads any more must not keep anything from being restored.
        let _ = self.to.write_all(line.as_bytes());
        let _ = self.to.flush();
    }
}
