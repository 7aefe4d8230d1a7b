use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use silvan_cc::dcms::MarkingState;
use silvan_core::{Guid, MonotonicTime, PortId, Span};
use silvan_subnet::observer::{LowRound, PortKey, Round};
use silvan_subnet::transport::Transport;

use super::follow::SmPresence;
use super::{Manager, name_in};
use crate::event::{Event, Name};
use crate::journal::Disk;

#[derive(Clone, Copy, Debug)]
pub(super) struct Episode {
    since: MonotonicTime,
    /// Bytes that the victims' links could have carried while the victims waited.
    lost_bytes: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Status {
    pid: u32,
    /// Time of writing, in seconds since 1970.
    time: u64,
    act: bool,
    interval_s: f64,
    switches: usize,
    ports: usize,
    sweeps: u64,
    unanswered: i64,
    sweep_s: f64,
    subnet_manager: &'static str,
    silent: Vec<String>,
    low: Vec<LowPort>,
    pending: Vec<Pending>,
    decisions: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    journal_error: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct LowPort {
    port: Name,
    victims: Vec<Name>,
    low_for_s: f64,
    victims_lost_bytes: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Pending {
    switch: String,
    guid: Guid,
    port: Option<u8>,
    before: u16,
    now: u16,
    /// Time of the change, in seconds since 1970.
    since: u64,
}

impl<T: Transport, D: Disk> Manager<T, D> {
    pub(super) fn count_losses(&mut self) {
        for (&port, episode) in &mut self.episodes {
            for victim in self.machine.victims(port) {
                let grown = self.growth.get(victim.index()).copied().flatten();
                let watched = self.watched.iter().find(|port| port.id == *victim);
                let Some((grown, watched)) = grown.zip(watched) else {
                    continue;
                };
                let waited =
                    grown.xmit_wait.unwrap_or(0) as f64 * self.settings.dcms.tick.as_secs_f64();
                let waited = waited.min(grown.span.as_secs_f64());
                episode.lost_bytes += waited * watched.bytes_per_second as f64;
            }
        }
    }

    pub(super) fn follow_episode(&mut self, port: PortId) -> Option<f64> {
        if self.machine.state(port) == MarkingState::Default {
            return self
                .episodes
                .remove(&port)
                .map(|episode| episode.lost_bytes);
        }
        let since = self.client.now();
        let fresh = Episode {
            since,
            lost_bytes: 0.0,
        };
        self.episodes.entry(port).or_insert(fresh);
        None
    }

    pub(super) fn end_episodes(&mut self, now: Option<MonotonicTime>) {
        for (port, episode) in std::mem::take(&mut self.episodes) {
            let low_for = now.and_then(|now| now.checked_since(episode.since));
            self.tell(&Event::LowEnded {
                port: name_in(&self.registry, port),
                dry_run: !self.act,
                low_for_s: low_for.map(|span| span.as_secs_f64()),
                victims_lost_bytes: episode.lost_bytes,
            });
        }
    }

    pub(super) fn observed(&mut self) -> Option<Round> {
        let now = self.client.now();
        let subnet = Arc::clone(self.subnet.as_ref()?);
        let key = |port: PortId| -> PortKey {
            let (switch, number) = self.registry.port(port);
            (switch.guid, number)
        };
        let growth = |port: PortId| self.growth.get(port.index()).copied().flatten();
        let ports = self.watched.iter();
        let low = self.episodes.iter().map(|(&port, episode)| LowRound {
            port: key(port),
            victims: self
                .machine
                .victims(port)
                .iter()
                .copied()
                .map(key)
                .collect(),
            low_for: now.checked_since(episode.since).unwrap_or(Span::ZERO),
            victims_lost_bytes: episode.lost_bytes,
        });
        Some(Round {
            subnet,
            act: self.act,
            tick: self.settings.dcms.tick,
            ports: ports.map(|port| (key(port.id), growth(port.id))).collect(),
            low: low.collect(),
        })
    }

    pub(super) fn write_status(&mut self) {
        let now = self.client.now();
        let low = self.episodes.iter().map(|(&port, episode)| LowPort {
            port: name_in(&self.registry, port),
            victims: self
                .machine
                .victims(port)
                .iter()
                .map(|&victim| name_in(&self.registry, victim))
                .collect(),
            low_for_s: now
                .checked_since(episode.since)
                .map_or(0.0, |span| span.as_secs_f64()),
            victims_lost_bytes: episode.lost_bytes,
        });
        let pending = self
            .journal
            .changes()
            .iter()
            .map(|(target, change)| Pending {
                switch: self
                    .registry
                    .by_guid(target.switch)
                    .map_or_else(String::new, |switch| switch.name.clone()),
                guid: target.switch,
                port: target.port,
                before: change.rate,
                now: change.after.marking_rate,
                since: change.since,
            });
        let status = Status {
            pid: std::process::id(),
            act: self.act,
            interval_s: self.settings.dcms.interval.as_secs_f64(),
            switches: self
                .subnet
                .as_ref()
                .map_or(0, |subnet| subnet.switches.len()),
            ports: self.watched.len(),
            sweeps: self.metrics.sweeps.get(),
            unanswered: self.metrics.unanswered.get(),
            sweep_s: self.metrics.sweep_seconds.get(),
            subnet_manager: match (self.settings.require_sm, self.sm.presence) {
                (false, _) => "not-required",
                (true, SmPresence::Awaited) => "awaited",
                (true, SmPresence::Found) => "found",
                (true, SmPresence::Lost) => "lost",
            },
            silent: self
                .silent
                .keys()
                .map(|&switch| self.registry.switch(switch).name.clone())
                .collect(),
            low: low.collect(),
            pending: pending.collect(),
            decisions: self.decided.clone(),
            journal_error: self.journal.is_outdated().then(|| self.write_error.clone()),
            time: self.client.transport().unix_time(),
        };
        let json = serde_json::to_vec(&status).unwrap_or_default();
        // The manager works without the status, which is written again after the next sweep.
        let _ = self.journal.disk().publish(&json);
    }
}
