//! The manager: discovery, sweeps, decisions and changes in one loop.

mod act;
mod check;
mod follow;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use silvan_cc::dcms::{Dcms, DcmsError, DcmsTopology, Decision, MarkingScope};
use silvan_core::growth::CongestionGrowth;
use silvan_core::{MonotonicTime, PortId, Span, SwitchId};
use silvan_mad::smp::ActiveLink;
use silvan_subnet::client::{Client, Failure};
use silvan_subnet::discovery::Subnet;
use silvan_subnet::metrics::label;
use silvan_subnet::observer::Observer;
use silvan_subnet::transport::{Transport, TransportError};
use thiserror::Error;

use crate::event::{Do, Event, Name};
use crate::journal::{Disk, Journal, JournalError, Target};
use crate::log::Log;
use crate::meter::Meter;
use crate::metrics::{Metrics, PortLabels, ReasonLabels};
use crate::settings::ManagerSettings;
use crate::watch::{Registry, WatchedPort};
use follow::SmWatch;
use status::Episode;

const NAP: Span = Span::from_ms(50);
const LEAST_REST: Span = Span::from_secs(2);
const FIRST_BACKOFF: Span = Span::from_secs(1);
const LONGEST_BACKOFF: Span = Span::from_secs(60);

/// Task of the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Watch and act until it is stopped.
    Run,
    /// Discover, sweep twice, decide once, restore, end.
    Once,
    /// Restore what an earlier run has left, end.
    Restore,
}

/// Errors that stop the manager. The journal has its changes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// Nothing can be sent.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Parameters that cannot be used.
    #[error(transparent)]
    Parameters(#[from] DcmsError),
    /// The local port belongs to no subnet.
    #[error("the local InfiniBand node does not answer")]
    NoSubnet,
    /// No subnet manager answers.
    #[error("no subnet manager has answered, so nothing was decided")]
    NoSm,
    /// The journal on the disk is not what it should be.
    #[error("every Marking_Rate is restored, but the journal does not say so: {0}")]
    JournalOutdated(String),
}

impl ManagerError {
    /// Returns the hint.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Transport(error) => error.hint(),
            Self::Journal(_) => {
                "nothing was changed; check at the file journal in the state folder, restore by hand what \
                 it lists, then remove it"
            }
            Self::Parameters(_) => "correct the configuration",
            Self::NoSubnet => {
                "see with ibstat whether the port is up, and that a subnet manager runs"
            }
            Self::NoSm => {
                "start a subnet manager, or set subnet.require-sm = false; sminfo shows which one answers"
            }
            Self::JournalOutdated(_) => {
                "make room in the state folder, then run silvan dcms --restore, which clears the journal"
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Failing {
    Restore(Target),
    Lower(Target),
    Journal,
}

#[derive(Clone, Copy, Debug)]
struct Backoff {
    until: MonotonicTime,
    wait: Span,
}

struct Deadline {
    patience: Span,
    at: MonotonicTime,
    jumps: u64,
}

impl Deadline {
    fn new<T: Transport>(client: &mut Client<T>, patience: Span) -> Self {
        Self {
            patience,
            at: client.now().saturating_add(patience),
            jumps: client.clock_jumps(),
        }
    }

    fn is_over<T: Transport>(&mut self, client: &mut Client<T>) -> bool {
        let now = client.now();
        if client.clock_jumps() != self.jumps {
            *self = Self::new(client, self.patience);
        }
        now >= self.at
    }
}

/// A congestion manager.
pub struct Manager<T, D> {
    settings: ManagerSettings,
    act: bool,
    client: Client<T>,
    journal: Journal<D>,
    log: Box<dyn Log>,
    metrics: Arc<Metrics>,
    observer: Option<Observer>,
    registry: Registry,
    subnet: Option<Arc<Subnet>>,
    watched: Vec<WatchedPort>,
    tick_codes: BTreeMap<(SwitchId, ActiveLink), Result<u8, Failure>>,
    meter: Meter,
    machine: Dcms<MonotonicTime>,
    growth: Vec<Option<CongestionGrowth>>,
    held: BTreeSet<Target>,
    silent: BTreeMap<SwitchId, Backoff>,
    restore_after: BTreeMap<Target, Backoff>,
    write_after: Option<Backoff>,
    write_error: String,
    episodes: BTreeMap<PortId, Episode>,
    decided: BTreeMap<&'static str, u64>,
    reported: BTreeMap<Failing, Backoff>,
    without_key: BTreeSet<SwitchId>,
    is_stopping: bool,
    discover_at: MonotonicTime,
    discovered_at: MonotonicTime,
    unsettled: u32,
    sm: SmWatch,
    jumps: u64,
}

impl<T: Transport, D: Disk> Manager<T, D> {
    /// A manager that has seen nothing; it changes settings only if `act` is set.
    pub fn new(
        settings: ManagerSettings,
        act: bool,
        mut transport: T,
        disk: D,
        log: Box<dyn Log>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, ManagerError> {
        let journal = Journal::open(disk)?;
        let now = transport.now();
        let machine = Dcms::new(settings.dcms, DcmsTopology::default())?;
        Ok(Self {
            client: Client::new(transport, settings.limits),
            meter: Meter::new(settings.dcms.tick, settings.dcms.interval),
            settings,
            act,
            journal,
            log,
            metrics,
            observer: None,
            registry: Registry::default(),
            subnet: None,
            watched: Vec::new(),
            tick_codes: BTreeMap::new(),
            machine,
            growth: Vec::new(),
            held: BTreeSet::new(),
            silent: BTreeMap::new(),
            restore_after: BTreeMap::new(),
            write_after: None,
            write_error: String::new(),
            episodes: BTreeMap::new(),
            decided: BTreeMap::new(),
            reported: BTreeMap::new(),
            without_key: BTreeSet::new(),
            is_stopping: false,
            discover_at: now,
            discovered_at: now,
            unsettled: 0,
            sm: SmWatch::new(now),
            jumps: 0,
        })
    }

    /// Hands every round to an observer from now on.
    pub fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// Does its task until `stop`, then restores. Returns the changes left in the journal.
    pub fn run(&mut self, task: Task, stop: &AtomicBool) -> Result<usize, ManagerError> {
        let done = self.perform(task, stop);
        if done.is_err() {
            let now = self.client.now();
            self.end_episodes(Some(now));
        }
        done
    }

    fn perform(&mut self, task: Task, stop: &AtomicBool) -> Result<usize, ManagerError> {
        let pending = self.journal.changes().len();
        let act = self.act;
        self.tell(&Event::Started { act, pending });
        self.metrics.acting.set(i64::from(act));
        let stopped = || stop.load(Ordering::Relaxed);
        if task == Task::Restore && pending == 0 {
            return self.finish();
        }
        let mut deadline = Deadline::new(&mut self.client, self.settings.patience);
        while !self.find_subnet()? && !stopped() {
            let is_over = match task {
                Task::Run => false,
                Task::Once => true,
                Task::Restore => deadline.is_over(&mut self.client),
            };
            if is_over {
                return Err(ManagerError::NoSubnet);
            }
            self.wait(LEAST_REST, stop);
        }
        self.restore_pending()?;
        match task {
            Task::Restore => {}
            Task::Once => {
                if !self.await_sm(stop)? {
                    self.finish()?;
                    return Err(ManagerError::NoSm);
                }
                self.round()?;
                self.wait(self.settings.dcms.interval, stop);
                if !stopped() {
                    self.round()?;
                }
            }
            Task::Run => {
                while !stopped() {
                    let began = self.client.now();
                    self.round()?;
                    // If the clock has gone back, the next round is due at once.
                    let took = self.client.now().checked_since(began);
                    let interval = self.machine.next_interval();
                    let left = took.map_or(Span::ZERO, |took| interval.saturating_sub(took));
                    self.wait(left, stop);
                }
            }
        }
        self.finish()
    }

    fn await_sm(&mut self, stop: &AtomicBool) -> Result<bool, ManagerError> {
        let mut deadline = Deadline::new(&mut self.client, self.settings.sm_lost_after);
        while !stop.load(Ordering::Relaxed) {
            self.check_sm()?;
            if self.is_managed() {
                return Ok(true);
            }
            if deadline.is_over(&mut self.client) {
                return Ok(false);
            }
            self.wait(self.settings.sm_check, stop);
        }
        Ok(true)
    }

    fn wait(&mut self, span: Span, stop: &AtomicBool) {
        let began = self.client.now();
        while !stop.load(Ordering::Relaxed) {
            // `None` if the clock has gone back, so that the time is unknown.
            let waited = self.client.now().checked_since(began);
            let left = waited.map_or(Span::ZERO, |waited| span.saturating_sub(waited));
            if left.is_zero() {
                return;
            }
            self.client.transport().pause(left.min(NAP));
        }
    }

    /// No earlier time can be compared after the clock has gone back.
    fn check_clock(&mut self) -> Result<(), ManagerError> {
        let now = self.client.now();
        let jumps = self.client.clock_jumps();
        if std::mem::replace(&mut self.jumps, jumps) == jumps {
            return Ok(());
        }
        self.tell(&Event::ClockWentBack);
        self.end_episodes(None);
        self.held.clear();
        self.restore_after.clear();
        self.write_after = None;
        self.reported.clear();
        self.silent.clear();
        self.sm.invalidate_times(now);
        self.discovered_at = now;
        self.restart_sweeps(now)
    }

    fn round(&mut self) -> Result<(), ManagerError> {
        self.check_clock()?;
        self.check_sm()?;
        if self.client.now() >= self.discover_at {
            self.find_subnet()?;
        }
        let began = self.client.now();
        let is_blind = self.sweep(began)?;
        let is_managed = self.is_managed();
        if !is_managed || is_blind {
            self.growth.fill(None);
        }
        // Without a subnet manager, all changes are restored and nothing is decided.
        if is_managed {
            let now = self.client.now();
            self.count_losses();
            let decisions = self.machine.step(now, &self.growth).to_vec();
            for decision in &decisions {
                self.carry_out(decision)?;
            }
        }
        self.restore_pending()?;
        if self.act && self.settings.reset_counters && is_managed {
            let reset = self.meter.reset_full(&mut self.client, &self.watched)?;
            if !reset.is_empty() {
                self.tell(&Event::CountersReset { ports: reset.len() });
            }
        }
        self.publish();
        if let Some(observer) = self.observer.clone() {
            if let Some(round) = self.observed() {
                observer(round);
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, decision: &Decision<MonotonicTime>) -> Result<(), ManagerError> {
        let low = self.settings.dcms.low_marking_rate;
        let action = match decision.action {
            None => Do::Nothing,
            Some(action) if action.marking_rate == low => Do::Lower,
            Some(_) => Do::Restore,
        };
        let dry_run = !self.act && action != Do::Nothing;
        let port = self.name(decision.port);
        let lost_bytes = self.follow_episode(decision.port);
        let registry = &self.registry;
        let event = Event::decision(
            &decision.reason,
            port,
            (action, dry_run),
            lost_bytes,
            |port| name_in(registry, port),
        );
        self.tell(&event);
        let reason = decision.reason.name();
        *self.decided.entry(reason).or_default() += 1;
        let labels = ReasonLabels { reason };
        self.metrics.decisions.get_or_create(&labels).inc();
        let Some(action) = decision.action.filter(|_| self.act) else {
            return Ok(());
        };
        let (switch, number) = self.registry.port(decision.port);
        let target = Target {
            switch: switch.guid,
            port: action.port.map(|_| number),
        };
        if action.marking_rate == low {
            self.lower(target, decision.port)
        } else {
            self.held.remove(&target);
            Ok(())
        }
    }

    fn publish(&mut self) {
        for port in &self.watched {
            let victims = self.machine.victims(port.id).len();
            let labels = self.labels(port.id);
            let is_low = self.held.contains(&self.target(port));
            if is_low || self.metrics.low.get(&labels).is_some() {
                self.metrics
                    .low
                    .get_or_create(&labels)
                    .set(i64::from(is_low));
                self.metrics
                    .victims
                    .get_or_create(&labels)
                    .set(victims as i64);
            }
        }
        let pending = self.journal.changes().len();
        self.metrics.pending.set(pending as i64);
        let now = self.client.transport().unix_time();
        let oldest = self.journal.changes().values().map(|change| change.since);
        let age = oldest.min().map_or(0, |since| now.saturating_sub(since));
        self.metrics.pending_seconds.set(age as f64);
        self.metrics.set_datagrams(self.client.statistics());
        self.write_status();
    }

    fn target(&self, port: &WatchedPort) -> Target {
        Target {
            switch: port.guid,
            port: match port.abilities.scope {
                Some(MarkingScope::Switch) => None,
                Some(MarkingScope::Port) | None => Some(port.number),
            },
        }
    }

    fn labels(&self, port: PortId) -> PortLabels {
        let (switch, number) = self.registry.port(port);
        PortLabels {
            guid: switch.guid.to_string(),
            port: u32::from(number),
            switch: label(&switch.name),
        }
    }

    fn name(&self, port: PortId) -> Name {
        name_in(&self.registry, port)
    }

    fn switch_name(&self, switch: SwitchId) -> Name {
        let switch = self.registry.switch(switch);
        Name {
            switch: switch.name.clone(),
            guid: switch.guid,
            port: None,
            far_end: None,
        }
    }

    fn tell(&mut self, event: &Event) {
        self.log.take(event);
    }
}

fn name_in(registry: &Registry, port: PortId) -> Name {
    let (switch, number) = registry.port(port);
    Name {
        switch: switch.name.clone(),
        guid: switch.guid,
        port: Some(number),
        far_end: registry.far_end(port),
    }
}

fn double(wait: Span) -> Span {
    Span::from_ps(wait.as_ps().saturating_mul(2)).min(LONGEST_BACKOFF)
}
