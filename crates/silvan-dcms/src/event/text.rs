use std::fmt;

use super::{Decided, Do, Event};

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
            Self::Standby { lease_s } => write!(
                f,
                "waiting until no other instance holds the lease of {lease_s} s"
            ),
            Self::Elected { term } => write!(f, "in charge, in term {term}"),
            Self::LeaseLost => f.write_str(
                "the lease is lost; what was changed is left to the instance that is in charge",
            ),
            Self::PortLost {
                why,
                still,
                retry_in_s,
            } => {
                let still = if *still { "still no port: " } else { "" };
                write!(
                    f,
                    "{still}{why}; what was changed is restored when the port is back; next try in {retry_in_s:.0} s"
                )
            }
            Self::PortBack => f.write_str("the port is open again; starting over"),
            Self::OtherInCharge { holder, pending } => {
                write!(
                    f,
                    "another instance is in charge and renews its lease ({holder}); nothing is restored by this one, "
                )?;
                match pending {
                    0 => f.write_str("and no change is in the journal"),
                    1 => f.write_str("and 1 change is in the journal"),
                    _ => write!(f, "and {pending} changes are in the journal"),
                }
            }
            Self::MetricsServed { address } => write!(f, "metrics at http://{address}/metrics"),
            Self::Endpoint(event) => write!(f, "{event}"),
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
            Self::JournalFailed { why, retry_in_s } => write!(
                f,
                "{why}; nothing is lowered until it can be, and restores are not recorded; next try \
                 in {retry_in_s:.1} s"
            ),
            Self::JournalWritten => f.write_str("the journal is written again"),
            Self::NoCongestionControl { switch } => write!(
                f,
                "{switch} answers, but no request of congestion control: it has no agent for it, or \
                 another CC_Key than marking.cc-key-file says"
            ),
            Self::SmAwaited => f.write_str(
                "no subnet manager has answered yet; nothing is decided until one does \
                 (subnet.require-sm)",
            ),
            Self::SmLost { seconds } => write!(
                f,
                "no subnet manager has answered for {seconds:.1} s; restoring everything"
            ),
            Self::SmFound => f.write_str("a subnet manager answers"),
            Self::SmChanged { sm_lid } => {
                write!(
                    f,
                    "the subnet manager is at LID {sm_lid} now; discovering again"
                )
            }
            Self::ClockWentBack => {
                f.write_str("the clock has gone back; restoring everything and starting over")
            }
            Self::SwitchSilent { switch, retry_in_s } => {
                write!(f, "{switch} does not answer; next try in {retry_in_s:.1} s")
            }
            Self::SwitchBack { switch } => write!(f, "{switch} answers again"),
            Self::SwitchMoved { switch } => {
                write!(
                    f,
                    "the LID of {switch} belongs to another node; discovering again"
                )
            }
            Self::LinkFlapped { port } => write!(f, "the link of {port} has been down"),
            Self::CountersReset { ports } => write!(f, "reset full counters of {ports} ports"),
            Self::LowEnded {
                port,
                dry_run,
                low_for_s,
                victims_lost_bytes,
            } => {
                let verb = if *dry_run { "would not be" } else { "is not" };
                write!(f, "the Marking_Rate of {port} {verb} held low any more")?;
                if let Some(seconds) = low_for_s {
                    write!(f, ", after {seconds:.3} s")?;
                }
                write!(
                    f,
                    "; its victims have lost {:.3} GB meanwhile",
                    victims_lost_bytes / 1e9
                )
            }
            Self::Stopping { pending } => write!(f, "stopping; {pending} changes to restore"),
            Self::Stopped { pending: 0 } => f.write_str("stopped; nothing stays changed"),
            Self::Stopped { pending } => {
                write!(
                    f,
                    "stopped; {pending} changes are not restored and remain in the journal"
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
        if let Some(seconds) = self.low_for_s {
            write!(f, " after {seconds:.3} s")?;
        }
        match self.victims_lost_bytes {
            Some(bytes) => write!(f, "; its victims have lost {:.3} GB meanwhile", bytes / 1e9),
            None => Ok(()),
        }
    }
}
