use std::sync::Arc;

use silvan_cc::dcms::{Dcms, MarkingScope, MarkingState};
use silvan_core::{Lid, MonotonicTime, PortNumber, Span, SwitchId, TickRule};
use silvan_mad::congestion::{
    CongestionAttribute, SwitchCongestionSetting, SwitchPortCongestionSetting,
};
use silvan_mad::performance::{PerformanceAttribute, PortXmitConCtrl};
use silvan_mad::smp::{ActiveLink, SmInfo, SmState};
use silvan_mad::{Body, ClassPortInfo, CounterCapabilities, Method};
use silvan_subnet::client::{Failure, Query, RequestResult};
use silvan_subnet::discovery::{Subnet, Switch, SwitchPort, discover, local_port};
use silvan_subnet::key::CcKey;
use silvan_subnet::metrics::label;
use silvan_subnet::ticks::{TickQuery, read_ticks};
use silvan_subnet::transport::Transport;

use super::{LEAST_REST, Manager, ManagerError};
use crate::event::Event;
use crate::journal::{Disk, Target};
use crate::meter::Meter;
use crate::metrics::SwitchLabels;
use crate::settings::Scope;
use crate::watch::Abilities;

/// Number of discoveries without change until the subnet counts as settled, and the time between them.
const UNSETTLED: u32 = 12;
const UNSETTLED_REST: Span = Span::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SmPresence {
    Awaited,
    Found,
    Lost,
}

#[derive(Debug)]
pub(super) struct SmWatch {
    seen: MonotonicTime,
    check_at: MonotonicTime,
    lids: Option<(Lid, Lid)>,
    pub presence: SmPresence,
    was_awaited: bool,
}

impl SmWatch {
    pub fn new(now: MonotonicTime) -> Self {
        Self {
            seen: now,
            check_at: now,
            lids: None,
            presence: SmPresence::Awaited,
            was_awaited: false,
        }
    }

    pub fn invalidate_times(&mut self, now: MonotonicTime) {
        self.seen = now;
        self.check_at = now;
    }
}

impl<T: Transport, D: Disk> Manager<T, D> {
    pub(super) fn discover_soon(&mut self) {
        let soon = self.discovered_at.saturating_add(LEAST_REST);
        self.discover_at = self.discover_at.min(soon);
    }

    pub(super) fn check_sm(&mut self) -> Result<(), ManagerError> {
        let now = self.client.now();
        if !self.settings.require_sm || now < self.sm.check_at {
            return Ok(());
        }
        self.sm.check_at = now.saturating_add(self.settings.sm_check);
        let is_found = self.sm_answers()?;
        let now = self.client.now();
        self.metrics.sm_found.set(i64::from(is_found));
        if is_found {
            self.sm.seen = now;
            let before = std::mem::replace(&mut self.sm.presence, SmPresence::Found);
            if before != SmPresence::Found {
                self.metrics.sm_awaited.set(0);
                self.tell(&Event::SmFound);
                self.restart_sweeps(now)?;
            }
            return Ok(());
        }
        let silent_for = now.checked_since(self.sm.seen).unwrap_or(Span::ZERO);
        match self.sm.presence {
            SmPresence::Awaited if !self.sm.was_awaited => {
                self.sm.was_awaited = true;
                self.metrics.sm_awaited.set(1);
                self.tell(&Event::SmAwaited);
            }
            SmPresence::Found if silent_for >= self.settings.sm_lost_after => {
                self.sm.presence = SmPresence::Lost;
                self.held.clear();
                let seconds = silent_for.as_secs_f64();
                self.tell(&Event::SmLost { seconds });
                self.end_episodes(Some(now));
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn is_managed(&self) -> bool {
        !self.settings.require_sm || self.sm.presence == SmPresence::Found
    }

    fn sm_answers(&mut self) -> Result<bool, ManagerError> {
        let Some(local) = local_port(&mut self.client)? else {
            return Ok(false);
        };
        let lids = (local.lid, local.sm_lid);
        if self
            .sm
            .lids
            .replace(lids)
            .is_some_and(|before| before != lids)
        {
            self.discover_soon();
            let sm_lid = local.sm_lid.as_u16();
            self.tell(&Event::SmChanged { sm_lid });
        }
        if !local.is_active || !local.sm_lid.is_unicast() {
            return Ok(false);
        }
        let query = Query::subnet_get(0, local.sm_lid, SmInfo::default(), 0);
        let outcome = self.client.query_one(query)?;
        Ok(outcome.is_ok_and(|answer| SmInfo::parse(&answer.data()).state == SmState::MASTER))
    }

    /// Nothing may be decided across a gap.
    pub(super) fn restart_sweeps(&mut self, now: MonotonicTime) -> Result<(), ManagerError> {
        let topology = self.machine.topology().clone();
        self.machine = Dcms::new(self.settings.dcms, topology)?;
        self.episodes.clear();
        self.meter = Meter::new(self.settings.dcms.tick, self.settings.dcms.interval);
        self.discover_at = now;
        Ok(())
    }

    pub(super) fn find_subnet(&mut self) -> Result<bool, ManagerError> {
        let began = self.client.now();
        let found = discover(&mut self.client)?;
        let Some(subnet) = found else {
            self.discovered_at = self.client.now();
            self.discover_at = self.discovered_at.saturating_add(LEAST_REST);
            self.tell(&Event::NoSubnet);
            return Ok(false);
        };
        self.registry.update(&subnet);
        let all_answered = self.query_abilities()?;
        self.read_ticks(&subnet)?;
        let is_complete = subnet.is_complete && all_answered;
        let before: Vec<_> = self
            .watched
            .iter()
            .map(|port| (port.id, port.lid))
            .collect();
        let time_scale = self.settings.time_scale;
        self.watched = self
            .registry
            .watched(&subnet, time_scale, |number, switch, port| {
                self.tick(number, switch, port)
            });
        let is_same = before
            .iter()
            .copied()
            .eq(self.watched.iter().map(|port| (port.id, port.lid)));
        let topology = self.registry.topology(&self.watched, &self.settings.rights);
        let controllable = topology
            .ports()
            .iter()
            .filter(|port| port.controllable)
            .count();
        let now = self.client.now();
        let vanished = self.machine.set_topology(now, topology).to_vec();
        for decision in &vanished {
            self.carry_out(decision)?;
        }
        self.release_vanished();
        for &(port, lid) in &before {
            if !self
                .watched
                .iter()
                .any(|new| (new.id, new.lid) == (port, lid))
            {
                self.meter.invalidate(port);
            }
        }
        self.discovered_at = now;
        self.unsettled = match is_same && is_complete {
            true => self.unsettled.saturating_sub(1),
            false => UNSETTLED,
        };
        let next = match self.unsettled {
            0 => self.settings.rediscover,
            _ => self.settings.rediscover.min(UNSETTLED_REST),
        };
        self.discover_at = now.saturating_add(next);
        let was_complete = self.subnet.as_ref().map(|subnet| subnet.is_complete);
        let is_news = !is_same || was_complete != Some(subnet.is_complete);
        if is_news {
            self.tell(&Event::Discovered {
                switches: subnet.switches.len(),
                hosts: subnet.hosts.len(),
                ports: self.watched.len(),
                controllable,
                complete: is_complete,
                seconds: now.checked_since(began).unwrap_or(Span::ZERO).as_secs_f64(),
            });
        }
        self.metrics.switches.set(subnet.switches.len() as i64);
        self.metrics.ports.set(self.watched.len() as i64);
        self.metrics.info.clear();
        for (_, switch) in self.registry.switches() {
            if let Some(lid) = switch.lid {
                let labels = SwitchLabels {
                    guid: switch.guid.to_string(),
                    switch: label(&switch.name),
                    lid: u32::from(lid.as_u16()),
                };
                self.metrics.info.get_or_create(&labels).set(1);
            }
        }
        if self.subnet.as_deref() != Some(&subnet) {
            self.subnet = Some(Arc::new(subnet));
        }
        Ok(true)
    }

    fn read_ticks(&mut self, subnet: &Subnet) -> Result<(), ManagerError> {
        if self.settings.given_ticks.has_all() {
            return Ok(());
        }
        let ports = self.registry.swept(subnet);
        let queries: Vec<((SwitchId, ActiveLink), TickQuery)> = ports
            .filter_map(|(number, switch, port, location)| {
                let key = (number, port.info.active_link());
                let is_known = matches!(
                    self.tick_codes.get(&key),
                    Some(Ok(_) | Err(Failure::Refused(_)))
                );
                let query = TickQuery {
                    node: number.index() as u32,
                    lid: switch.lid?,
                    port: PortNumber::new(location),
                };
                (!is_known).then_some((key, query))
            })
            .collect();
        let codes = read_ticks(&mut self.client, queries)?;
        self.tick_codes.extend(codes);
        Ok(())
    }

    /// From configuration, device and PortSamplesControl, or thresholds.
    fn tick(&self, number: SwitchId, switch: &Switch, port: &SwitchPort) -> Span {
        let by_device = || {
            let link = port.info.active_link();
            let code = self.tick_codes.get(&(number, link));
            let code = code.and_then(|code| code.ok());
            let rule = TickRule::of_device(switch.device).or(code.map(TickRule::of_code))?;
            let rate = link.data_bits_per_second();
            let code = code.unwrap_or_else(|| rule.code(rate, link.lanes));
            Some(rule.tick(code, rate, link.lanes))
        };
        let given = self.settings.given_ticks.of(Some(switch.device));
        let scaled = |tick: Span| {
            let ps = tick.as_ps() as f64 / self.settings.time_scale;
            Span::from_ps((ps.round() as u64).max(1))
        };
        let tick = given.or_else(by_device).map(scaled);
        tick.unwrap_or(self.settings.dcms.tick)
    }

    fn release_vanished(&mut self) {
        let machine = &self.machine;
        let registry = &self.registry;
        let low: Vec<Target> = machine
            .topology()
            .ports()
            .iter()
            .filter(|info| machine.state(info.port) != MarkingState::Default)
            .map(|info| {
                let (switch, number) = registry.port(info.port);
                let port = match machine.topology().scope(info.switch) {
                    MarkingScope::Port => Some(number),
                    MarkingScope::Switch => None,
                };
                Target {
                    switch: switch.guid,
                    port,
                }
            })
            .collect();
        self.held.retain(|target| low.contains(target));
    }

    fn query_abilities(&mut self) -> Result<bool, ManagerError> {
        let new: Vec<(SwitchId, Lid)> = self
            .registry
            .switches()
            .filter(|(_, switch)| switch.abilities.is_none())
            .filter_map(|(number, switch)| Some((number, switch.lid?)))
            .collect();
        let key = self.settings.cc_key.map_or(0, CcKey::reveal);
        let mut queries = Vec::new();
        for &(switch, lid) in &new {
            let node = switch.index() as u32;
            let first_port = PortXmitConCtrl {
                port_select: PortNumber::new(1),
                ..PortXmitConCtrl::default()
            };
            let performance = |attribute: PerformanceAttribute| {
                Query::new(node, lid, Method::GET, Body::Performance(attribute), 0)
            };
            let congestion = |attribute: CongestionAttribute| {
                Query::congestion(node, lid, Method::GET, key, attribute, 0)
            };
            queries.extend([
                performance(ClassPortInfo::default().into()),
                performance(first_port.into()),
                congestion(SwitchCongestionSetting::default().into()),
                congestion(SwitchPortCongestionSetting::default().into()),
            ]);
        }
        let outcomes = self.client.ask(&queries)?;
        let mut all_answered = true;
        for (&(switch, _), answers) in new.iter().zip(outcomes.chunks_exact(4)) {
            match self.abilities(answers) {
                Some(abilities) => {
                    self.without_key.remove(&switch);
                    self.registry.set_abilities(switch, abilities);
                }
                None => {
                    all_answered = false;
                    self.name_missing_agent(switch, answers);
                }
            }
        }
        Ok(all_answered)
    }

    /// Logged once: the switch answers other requests only.
    fn name_missing_agent(&mut self, switch: SwitchId, answers: &[RequestResult]) {
        let is_silent = |outcome: &RequestResult| matches!(outcome, Err(Failure::Unanswered));
        let is_missing =
            answers[..2].iter().all(Result::is_ok) && answers[2..].iter().all(is_silent);
        if is_missing && self.without_key.insert(switch) {
            let switch = self.switch_name(switch);
            self.tell(&Event::NoCongestionControl { switch });
        }
    }

    fn abilities(&self, answers: &[RequestResult]) -> Option<Abilities> {
        let has = |outcome: &RequestResult| match outcome {
            Ok(_) => Some(true),
            Err(Failure::Refused(_)) => Some(false),
            Err(Failure::Unanswered | Failure::WrongNode | Failure::WrongKey) => None,
        };
        let counters = match &answers[0] {
            Ok(answer) => CounterCapabilities::from(&ClassPortInfo::parse(&answer.data())),
            Err(Failure::Refused(_)) => CounterCapabilities {
                extended: false,
                ..CounterCapabilities::UNKNOWN
            },
            Err(_) => return None,
        };
        let time_cong = has(&answers[1])?;
        let (whole, ports) = (has(&answers[2])?, has(&answers[3])?);
        let scope = match (whole, ports && self.settings.scope == Scope::Port) {
            (false, _) => None,
            (true, true) => Some(MarkingScope::Port),
            (true, false) => Some(MarkingScope::Switch),
        };
        Some(Abilities {
            counters,
            time_cong,
            scope,
        })
    }
}
