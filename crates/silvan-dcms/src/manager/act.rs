use silvan_core::{PortId, Span};
use silvan_subnet::client::Failure;
use silvan_subnet::transport::Transport;

use super::{Backoff, Deadline, FIRST_BACKOFF, Failing, LEAST_REST, Manager, ManagerError, double};
use crate::event::{Event, Name};
use crate::journal::{Change, Disk, JournalError, Target};
use crate::marking::{ChangeError, Location, Lowered, Marker, Restored};
use crate::metrics::ActionLabels;

const LAST_PAUSE: Span = Span::from_ms(250);

impl<T: Transport, D: Disk> Manager<T, D> {
    fn location(&self, target: Target) -> Option<Location> {
        let switch = self.registry.by_guid(target.switch)?;
        Some(Location {
            target,
            lid: switch.lid?,
            port_count: switch.port_count,
        })
    }

    pub(super) fn lower(&mut self, target: Target, port: PortId) -> Result<(), ManagerError> {
        let name = self.target_name(target);
        let why = match self.try_lower(target, port)? {
            Ok(before) => {
                self.held.insert(target);
                self.reported.remove(&Failing::Lower(target));
                self.acted("lower", "done");
                let now = self.settings.dcms.low_marking_rate;
                self.tell(&Event::Lowered {
                    port: name,
                    before,
                    now,
                });
                return Ok(());
            }
            Err(why) => why,
        };
        // If the rate is low nevertheless, the journal restores it, because the decision is outdated.
        self.acted("lower", "failed");
        if self.is_news(Failing::Lower(target)) {
            self.tell(&Event::NotLowered { port: name, why });
        }
        Ok(())
    }

    fn try_lower(
        &mut self,
        target: Target,
        port: PortId,
    ) -> Result<Result<u16, String>, ManagerError> {
        let changes = self.journal.changes();
        if changes.contains_key(&target) {
            return Ok(Err("an earlier change has still to be restored".to_owned()));
        }
        let is_new = !changes.keys().any(|known| known.switch == target.switch);
        let most = self.settings.dcms.max_low_switches;
        if is_new && most.is_some_and(|most| self.journal.switches() >= most as usize) {
            return Ok(Err(
                "as many switches as may be have a change already".to_owned()
            ));
        }
        let topology = self.machine.topology();
        if !topology.port(port).is_some_and(|info| info.controllable) {
            return Ok(Err("it must not be changed".to_owned()));
        }
        let Some(location) = self.location(target) else {
            return Ok(Err("its switch is gone".to_owned()));
        };
        let low = self.settings.dcms.low_marking_rate;
        let mut marker = Marker::new(&mut self.client, self.settings.cc_key);
        Ok(match marker.lower(&mut self.journal, location, low) {
            Ok(Lowered::Done { before }) => Ok(before),
            Ok(Lowered::AlreadyLow) => Err("it is as low already".to_owned()),
            Ok(Lowered::Off) => Err("it marks no packets, its Threshold is 0".to_owned()),
            Ok(Lowered::OtherControl) => Err("it is set to credit starvation".to_owned()),
            Ok(Lowered::Failed(failure)) => {
                self.failed(failure);
                if failure == Failure::WrongKey {
                    self.invalidate(target);
                }
                Err(failure.to_string())
            }
            Err(ChangeError::Transport(error)) => return Err(error.into()),
            Err(ChangeError::Journal(error)) => {
                let why = error.to_string();
                self.journal_failed(&error);
                Err(why)
            }
        })
    }

    fn invalidate(&mut self, target: Target) {
        self.restore_after.remove(&target);
        self.reported.remove(&Failing::Restore(target));
        if let Err(error) = self.journal.remove(target) {
            self.journal_failed(&error);
        }
    }

    fn journal_failed(&mut self, error: &JournalError) {
        self.metrics.journal_errors.inc();
        let wait = self.lengthen(self.write_after);
        self.write_after = Some(wait);
        self.write_error = error.to_string();
        if self.is_news(Failing::Journal) {
            let why = self.write_error.clone();
            let retry_in_s = wait.wait.as_secs_f64();
            self.tell(&Event::JournalFailed { why, retry_in_s });
        }
    }

    fn write_journal(&mut self) {
        let now = self.client.now();
        let is_due = self.write_after.is_none_or(|backoff| backoff.until <= now);
        if self.journal.is_outdated() && is_due {
            if let Err(error) = self.journal.write() {
                self.journal_failed(&error);
            }
        }
        if !self.journal.is_outdated() && self.write_after.take().is_some() {
            self.reported.remove(&Failing::Journal);
            self.tell(&Event::JournalWritten);
        }
    }

    /// Returns true if a failure must be logged again; the time between two logs grows.
    fn is_news(&mut self, failing: Failing) -> bool {
        let now = self.client.now();
        let before = self.reported.get(&failing).copied();
        if before.is_some_and(|backoff| backoff.until > now) {
            return false;
        }
        let wait = before.map_or(FIRST_BACKOFF, |backoff| double(backoff.wait));
        let until = now.saturating_add(wait);
        self.reported.insert(failing, Backoff { until, wait });
        true
    }

    fn lengthen(&mut self, before: Option<Backoff>) -> Backoff {
        let wait = match before {
            _ if self.is_stopping => LAST_PAUSE,
            Some(backoff) => double(backoff.wait),
            None => FIRST_BACKOFF,
        };
        let until = self.client.now().saturating_add(wait);
        Backoff { until, wait }
    }

    pub(super) fn restore_pending(&mut self) -> Result<(), ManagerError> {
        if !self.act {
            return Ok(());
        }
        self.write_journal();
        let now = self.client.now();
        let pending: Vec<(Target, Change)> = self
            .journal
            .changes()
            .iter()
            .filter(|(target, _)| !self.held.contains(target))
            .map(|(&target, &change)| (target, change))
            .collect();
        for (target, change) in pending {
            let is_due = self
                .restore_after
                .get(&target)
                .is_none_or(|backoff| backoff.until <= now);
            if is_due {
                self.restore(target, change)?;
            }
        }
        Ok(())
    }

    fn restore(&mut self, target: Target, change: Change) -> Result<(), ManagerError> {
        let name = self.target_name(target);
        let restored = match self.location(target) {
            None => Restored::Failed(Failure::Unanswered),
            Some(location) => {
                let mut marker = Marker::new(&mut self.client, self.settings.cc_key);
                marker.restore(location, change)?
            }
        };
        match restored {
            Restored::Done => {
                self.invalidate(target);
                self.acted("restore", "done");
                let now = change.rate;
                self.tell(&Event::Restored { port: name, now });
            }
            Restored::NotLow => {
                self.invalidate(target);
                self.acted("restore", "needless");
                self.tell(&Event::LeftAlone { port: name });
            }
            Restored::Failed(why) => {
                self.failed(why);
                let backoff = self.lengthen(self.restore_after.get(&target).copied());
                self.restore_after.insert(target, backoff);
                self.acted("restore", "failed");
                if self.is_news(Failing::Restore(target)) {
                    let retry_in_s = backoff.wait.as_secs_f64();
                    self.tell(&Event::NotRestored {
                        port: name,
                        why,
                        retry_in_s,
                    });
                }
            }
        }
        Ok(())
    }

    fn failed(&mut self, failure: Failure) {
        if failure != Failure::Unanswered {
            // A LID that has moved, or a switch with other abilities than it had.
            self.discover_soon();
        }
    }

    pub(super) fn finish(&mut self) -> Result<usize, ManagerError> {
        let now = self.client.now();
        self.end_episodes(Some(now));
        let pending = self.journal.changes().len();
        if self.act {
            self.tell(&Event::Stopping { pending });
        }
        self.is_stopping = true;
        self.held.clear();
        self.restore_after.clear();
        self.write_after = self.write_after.map(|backoff| Backoff {
            until: self.client.now(),
            ..backoff
        });
        self.restart_sweeps(now)?;
        let mut deadline = Deadline::new(&mut self.client, self.settings.patience);
        let mut recheck = Deadline::new(&mut self.client, LEAST_REST);
        loop {
            self.check_clock()?;
            self.restore_pending()?;
            let left = self.journal.changes().len();
            let is_done = left == 0 && !self.journal.is_outdated();
            if is_done || !self.act || deadline.is_over(&mut self.client) {
                self.publish();
                self.tell(&Event::Stopped { pending: left });
                return match left == 0 && self.journal.is_outdated() {
                    true => Err(ManagerError::JournalOutdated(self.write_error.clone())),
                    false => Ok(left),
                };
            }
            if recheck.is_over(&mut self.client) {
                self.find_subnet()?;
                recheck = Deadline::new(&mut self.client, LEAST_REST);
            }
            self.client.transport().pause(LAST_PAUSE);
        }
    }

    fn target_name(&self, target: Target) -> Name {
        let switch = self.registry.by_guid(target.switch);
        Name {
            switch: switch.map_or_else(String::new, |switch| switch.name.clone()),
            guid: target.switch,
            port: target.port,
            far_end: None,
        }
    }

    fn acted(&self, action: &'static str, result: &'static str) {
        let labels = ActionLabels { action, result };
        self.metrics.actions.get_or_create(&labels).inc();
    }
}
