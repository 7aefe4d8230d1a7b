use silvan_core::growth::CounterGrowth;
use silvan_core::{MonotonicTime, Span, SwitchId};
use silvan_subnet::transport::Transport;

use super::{Backoff, FIRST_BACKOFF, Manager, ManagerError, double};
use crate::event::Event;
use crate::journal::Disk;
use crate::meter::{Observed, sweep};
use crate::watch::WatchedPort;

impl<T: Transport, D: Disk> Manager<T, D> {
    pub(super) fn sweep(&mut self, began: MonotonicTime) -> Result<bool, ManagerError> {
        let silent = &self.silent;
        let asked: Vec<WatchedPort> = self
            .watched
            .iter()
            .filter(|port| {
                let backoff = silent.get(&port.switch);
                backoff.is_none_or(|backoff| backoff.until <= began)
            })
            .copied()
            .collect();
        let machine = &self.machine;
        let swept = sweep(
            &mut self.client,
            &asked,
            self.settings.data_counter,
            |port| machine.wants_congestion_time(port),
            self.settings.dcms.interval,
        )?;
        let now = self.client.now();
        let bound = self.machine.topology().port_bound();
        self.growth.clear();
        self.growth.resize(bound, None);
        let mut answered = 0;
        let mut flapped = Vec::new();
        for (port, answers) in asked.iter().zip(&swept.answers) {
            let is_old = answers.arrived().is_some_and(|at| {
                let age = now.checked_since(at).unwrap_or(Span::ZERO);
                age > self.settings.dcms.interval
            });
            match self.meter.observe(port, answers) {
                Observed::Nothing => continue,
                Observed::Unknown => {}
                Observed::Flapped => flapped.push(port.id),
                Observed::Growth(growth) => {
                    self.count(port, &growth);
                    // Growth that is older than an interval counts as unknown.
                    self.growth[port.id.index()] = Some(growth.into()).filter(|_| !is_old);
                }
            }
            answered += 1;
        }
        for port in flapped {
            self.discover_soon();
            let port = self.name(port);
            self.tell(&Event::LinkFlapped { port });
        }
        for switch in swept.moved {
            self.discover_soon();
            let switch = self.switch_name(switch);
            self.tell(&Event::SwitchMoved { switch });
        }
        self.follow_silent(&asked, &swept.silent);
        let seconds = now.checked_since(began).unwrap_or(Span::ZERO).as_secs_f64();
        let ports = self.watched.len();
        self.metrics.sweeps.inc();
        self.metrics.sweep_seconds.set(seconds);
        self.metrics.unanswered.set((ports - answered) as i64);
        self.tell(&Event::Swept {
            ports,
            answered,
            seconds,
        });
        Ok(answered == 0)
    }

    fn follow_silent(&mut self, asked: &[WatchedPort], silent: &[SwitchId]) {
        let now = self.client.now();
        for &switch in silent {
            let wait = match self.silent.get(&switch) {
                Some(backoff) => double(backoff.wait),
                None => FIRST_BACKOFF,
            };
            let until = now.saturating_add(wait);
            let is_new = self
                .silent
                .insert(switch, Backoff { until, wait })
                .is_none();
            if is_new {
                let switch = self.switch_name(switch);
                let retry_in_s = wait.as_secs_f64();
                self.tell(&Event::SwitchSilent { switch, retry_in_s });
            }
        }
        let mut back: Vec<SwitchId> = asked.iter().map(|port| port.switch).collect();
        back.dedup();
        back.retain(|switch| self.silent.contains_key(switch) && !silent.contains(switch));
        for switch in back {
            self.silent.remove(&switch);
            // The switch may have replaced another switch, or have lost its settings.
            self.discover_soon();
            let switch = self.switch_name(switch);
            self.tell(&Event::SwitchBack { switch });
        }
    }

    fn count(&self, port: &WatchedPort, growth: &CounterGrowth) {
        let labels = self.labels(port.id);
        for metric in &self.metrics.counters {
            if let Some(value) = growth.counters[metric.index] {
                let family = &metric.family;
                family.get_or_create(&labels).inc_by(value * metric.scale);
            }
        }
    }
}
