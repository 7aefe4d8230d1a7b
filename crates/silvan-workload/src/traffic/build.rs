use silvan_cc::workload::Chosen;
use silvan_core::{Bytes, HostId, Time};

use crate::traffic::check::Checker;
use crate::traffic::error::{Entry, Reason, TrafficError};
use crate::traffic::finite::FiniteFlow;
use crate::traffic::fixed::Fixed;
use crate::traffic::flow_targets::Targets;
use crate::traffic::hosts::{HostSources, Source, Traffic};
use crate::traffic::hotspots::HotspotTable;
use crate::traffic::kinds::TrafficSection;
use crate::traffic::offered::{Contribution, OfferedLoad};
use crate::traffic::rng::start_offset;
use crate::traffic::roles::Role;
use crate::traffic::scatter::Common;
use crate::traffic::send_queue::SendQueue;
use crate::traffic::spec::{Environment, SendQueue as SendOrder};

pub(crate) struct Builder<'a> {
    pub(crate) spec: &'a TrafficSection,
    pub(crate) environment: &'a Environment,
    /// In bytes.
    pub(crate) mtu: u32,
    sources: Vec<Vec<(Source, Contribution)>>,
    commons: Vec<Common>,
    classes: Vec<String>,
    pub(crate) receives: Vec<bool>,
    targets: Vec<HostId>,
    finite: Vec<FiniteFlow>,
    pub(crate) roles: Vec<Role>,
    pub(crate) followers: Vec<HostId>,
    pub(crate) hotspots: HotspotTable,
}

pub(crate) fn build(
    spec: &TrafficSection,
    environment: &Environment,
) -> Result<Traffic, TrafficError> {
    let general = Checker {
        entry: Entry::ALL,
        environment,
        general: spec,
    };
    if spec.backlog == 0 {
        return general.fail("backlog", Reason::ZeroBacklog);
    }
    let hosts = environment.injection.len();
    let mut builder = Builder {
        spec,
        environment,
        mtu: general.size("mtu", environment.mtu)?,
        sources: std::iter::repeat_with(Vec::new).take(hosts).collect(),
        commons: Vec::new(),
        classes: Vec::new(),
        receives: vec![false; hosts],
        targets: Vec::new(),
        finite: Vec::new(),
        roles: vec![Role::Idle; hosts],
        followers: Vec::new(),
        hotspots: HotspotTable::given(Vec::new(), None, hosts, environment.seed),
    };
    spec.build(&mut builder)?;
    Ok(builder.finish())
}

impl<'a> Builder<'a> {
    pub(crate) fn checker(&self, entry: Entry) -> Checker<'a> {
        Checker {
            entry,
            environment: self.environment,
            general: self.spec,
        }
    }

    pub(crate) fn class(
        &mut self,
        check: &Checker,
        name: &Option<String>,
    ) -> Result<u16, TrafficError> {
        let name = name.clone().unwrap_or_else(|| check.entry.default_name());
        self.class_named(check, name)
    }

    pub(crate) fn class_named(
        &mut self,
        check: &Checker,
        name: String,
    ) -> Result<u16, TrafficError> {
        if self.classes.contains(&name) {
            return check.fail("name", Reason::NameTaken(name));
        }
        match u16::try_from(self.classes.len()) {
            Ok(class) => {
                self.classes.push(name);
                Ok(class)
            }
            Err(_) => check.fail("name", Reason::TooManyClasses),
        }
    }

    pub(crate) fn common(&mut self, common: Common) -> u32 {
        self.commons.push(common);
        self.commons.len() as u32 - 1
    }

    pub(crate) fn start(&self, host: HostId, message: u32, start: Time) -> Time {
        let environment = self.environment;
        let injection = environment.injection[host.index()];
        let message = Bytes::from_bytes(u64::from(message));
        start.saturating_add(start_offset(environment.seed, host, message, injection))
    }

    pub(crate) fn add(&mut self, host: HostId, source: Source, contribution: Contribution) {
        self.sources[host.index()].push((source, contribution));
    }

    pub(crate) fn reach_all_from(&mut self, senders: &[HostId]) {
        for (host, receives) in self.receives.iter_mut().enumerate() {
            let host = HostId::new(host);
            let reaches = |sender: &HostId| *sender != host || self.spec.loopback;
            *receives |= senders.iter().any(reaches);
        }
    }

    pub(crate) fn add_receivers(&mut self, targets: &Targets, host: HostId) {
        match targets {
            Targets::One(to) => self.receives[to.index()] = true,
            Targets::Any { hosts, .. } => {
                let others = hosts.iter().filter(|to| **to != host);
                others.for_each(|to| self.receives[to.index()] = true);
            }
            Targets::Rack { .. } => self.reach_all_from(&[host]),
        }
    }

    /// `rate` is in bit/s.
    pub(crate) fn add_fixed(&mut self, host: HostId, fixed: Fixed, rate: f64) {
        let contribution = Contribution {
            rate,
            uniform: 0.0,
            window: fixed.window(),
        };
        self.receives[fixed.destination().index()] = true;
        if fixed.bytes_left() != u64::MAX {
            let fixed = fixed.clone();
            self.finite.push(FiniteFlow {
                source: host,
                fixed,
            });
        }
        self.add(host, Source::Fixed(fixed), contribution);
    }

    pub(crate) fn add_target(&mut self, host: HostId) {
        if !self.targets.contains(&host) {
            self.targets.push(host);
        }
    }

    fn finish(mut self) -> Traffic {
        let all = self.sources.len() + self.environment.idle;
        self.sources.resize_with(all, Vec::new);
        self.receives.resize(all, false);
        self.roles.resize(all, Role::Idle);
        let mut hosts = Vec::with_capacity(self.sources.len());
        let mut sources = Vec::with_capacity(self.sources.iter().map(Vec::len).sum());
        let mut offered = OfferedLoad::new(self.spec.loopback);
        let send_queues = if self.environment.send_queue == SendOrder::Fifo {
            self.sources.len()
        } else {
            0
        };
        for of_host in self.sources {
            hosts.push(HostSources {
                first: sources.len() as u32,
                count: of_host.len() as u32,
                stopped: 0,
                turn: 0,
            });
            offered.push_host(of_host.iter().map(|(_, contribution)| *contribution));
            sources.extend(of_host.into_iter().map(|(source, _)| source));
        }
        let comes_back = |(host, record): (usize, &HostSources)| {
            let own = &sources[record.first as usize..][..record.count as usize];
            own.iter().any(|source| match source {
                Source::ClosedLoop(sequence) => sequence.sends_to(HostId::new(host)),
                _ => false,
            })
        };
        Traffic {
            comes_back: hosts.iter().enumerate().any(comes_back),
            needs_delivery: sources
                .iter()
                .any(|source| matches!(source, Source::ClosedLoop(_) | Source::Flows(_))),
            chosen: vec![Chosen::default(); hosts.len()],
            hosts,
            sources,
            commons: self.commons,
            hotspots: self.hotspots,
            followers: self.followers,
            roles: self.roles,
            receives: self.receives,
            targets: self.targets,
            finite: self.finite,
            classes: self.classes,
            offered,
            send_queues: vec![SendQueue::default(); send_queues],
        }
    }
}
