//! A live subnet, read by Get requests of management datagrams. Reading CongestionLog restarts its count of events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use silvan_core::{GivenTicks, IdVec, Lid, MonotonicTime, NodeId, PortId, Span};
use silvan_fabric::FabricError;
use silvan_fabric::routing::RoutingError;
use silvan_mad::congestion::SwitchCongestionSetting;
use silvan_mad::smp::SmState;
use silvan_subnet::client::{Client, Failure, Pace, Statistics};
use silvan_subnet::discovery::local_port;
use silvan_subnet::sweep::PortAnswers;
use silvan_subnet::transport::{Transport, TransportError};
use thiserror::Error;

use crate::counters::TrafficReading;
use crate::health::absent_devices;
use crate::logs::Logs;
use crate::observation::Observation;
use crate::readings::{ReadingOptions, SubnetReadings};
use crate::report::{Input, Report};
use crate::topology::{LiveSubnet, rate_of};

/// The part of a management link that requests take at most, as answers do the other way.
pub const LINK_SHARE: f64 = 0.01;

/// Why there is no survey.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SurveyError {
    /// No datagrams can be exchanged.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// Not even the own port answers.
    #[error("the local port does not answer")]
    NoAnswer,
    /// A sweep without a counter.
    #[error("no node has answered with its counters")]
    Silent,
    /// The discovered nodes are no fabric.
    #[error("what the subnet says of itself contradicts itself: {0}")]
    Fabric(#[from] FabricError),
    /// Neither tables nor shortest paths.
    #[error("no paths: {0}")]
    Routes(#[from] RoutingError),
}

impl SurveyError {
    /// Returns the hint.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Transport(error) => error.hint(),
            Self::NoAnswer | Self::Silent => {
                "see the port's state with ibstat; is the port Active?"
            }
            Self::Fabric(_) | Self::Routes(_) => {
                "wait until the subnet manager has set the subnet up, and try again"
            }
        }
    }
}

/// The subnet manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagerState {
    /// The local port knows none.
    Unknown,
    /// The manager does not answer.
    Silent(Lid),
    /// The manager has answered with this state.
    Answers(Lid, SmState),
}

/// The congestion control of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchControl {
    /// Settings of the switch, or the reason why they are unknown.
    pub setting: Result<SwitchCongestionSetting, Failure>,
    /// True if a CC_Key protects the settings.
    pub is_protected: Option<bool>,
}

/// Reaction of an adapter to notifications on its service levels, as far as they agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AdapterControl {
    /// CCTI_Timer, in units of 1.024 us.
    pub ccti_timer: u16,
    /// CCTI_Increase.
    pub ccti_increase: u8,
    /// CCTI_Min.
    pub ccti_min: u8,
}

/// Facts of a survey in addition to topology and counters.
#[derive(Clone, Debug)]
pub struct SurveyFacts {
    /// The subnet manager.
    pub manager: ManagerState,
    /// By switch name.
    pub control: BTreeMap<String, SwitchControl>,
    /// By host name, if a switch marks packets: the settings of its service levels, each once.
    pub adapters: BTreeMap<String, Result<BTreeSet<AdapterControl>, Failure>>,
    /// Nodes that answered no request for counters in one of the sweeps.
    pub silent: Vec<String>,
    /// Nodes whose LID belonged to another node in a sweep; their counters are not used.
    pub moved: Vec<String>,
    /// True if discovery got all answers, without contradictions.
    pub is_complete: bool,
    /// Switches whose forwarding table could not be read in full.
    pub without_table: Vec<String>,
    /// Datagrams since the survey before.
    pub statistics: Statistics,
    /// Time that the second sweep took.
    pub sweep_time: Span,
}

/// A subnet and two sweeps of its counters.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The subnet.
    pub topology: Arc<LiveSubnet>,
    /// The first sweep.
    pub before: IdVec<PortId, TrafficReading>,
    /// The second sweep.
    pub now: IdVec<PortId, TrafficReading>,
    /// The answers of the second sweep, by port, if the watch [reads all counters](Watch::want_all_counters).
    pub answers: Option<IdVec<PortId, PortAnswers>>,
    /// Logs of the switches during both sweeps.
    pub logs: Logs,
    /// Everything else.
    pub facts: SurveyFacts,
}

impl Survey {
    /// Diagnoses what was read. Ports without a stated tick of PortXmitWait have that of their device. `time_scale` is that of an emulated fabric, 1 of a real one. `clock` measures how long that takes.
    pub fn diagnose(
        &self,
        given_ticks: &GivenTicks,
        time_scale: f64,
        mut clock: impl FnMut() -> MonotonicTime,
    ) -> (Report, Observation) {
        let scaled = |readings: &IdVec<PortId, TrafficReading>| {
            let mut readings = readings.clone();
            for reading in readings.iter_mut() {
                let scale = |at: MonotonicTime| {
                    MonotonicTime::from_ns((at.as_ns() as f64 * time_scale) as u64)
                };
                reading.at = reading.at.map(scale);
            }
            readings
        };
        let topology = &self.topology;
        let (before, now) = (scaled(&self.before), scaled(&self.now));
        let ticks = topology.tick_facts.ticks(&topology.fabric, given_ticks);
        let mut observation = Observation::new(&topology.fabric, &before, &now, ticks);
        observation.logs = self.logs.clone();
        let began = clock();
        let mut report = Report::new(Input {
            fabric: &topology.fabric,
            tables: topology.known_tables(),
            assumed: &topology.assumed,
            capable: &topology.capable,
            observation: &observation,
            facts: Some(&self.facts),
        });
        let devices = topology.tick_facts.devices.iter().copied().flatten();
        report.health.extend(absent_devices(given_ticks, devices));
        report
            .health
            .sort_by_key(|item| std::cmp::Reverse(item.severity));
        let took = clock().checked_since(began).unwrap_or(Span::ZERO);
        report.analysis_s = Some(took.as_ps() as f64 / 1e12);
        (report, observation)
    }
}

/// Time for which a topology without contradictions is valid.
const BELIEVED: Span = Span::from_ms(60_000);

/// Sweeps of a subnet, each compared with the one before.
#[derive(Debug)]
pub struct Watch {
    known: Option<Known>,
    link_share: f64,
    wants_all: bool,
    sent: Statistics,
}

#[derive(Debug)]
struct Known {
    topology: Arc<LiveSubnet>,
    read_at: MonotonicTime,
    last: Option<SubnetReadings>,
    odd: BTreeSet<NodeId>,
    is_odd: bool,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            known: None,
            link_share: LINK_SHARE,
            wants_all: false,
            sent: Statistics::default(),
        }
    }
}

impl Watch {
    /// Requests take at most this part of the slowest link among the local port's and those between switches.
    pub fn with_link_share(link_share: f64) -> Self {
        Self {
            link_share,
            ..Self::default()
        }
    }

    /// Drops topology and counters, because another subnet may be behind a port that was opened again.
    pub fn invalidate(&mut self) {
        self.known = None;
    }

    /// Reads all counters of each port from now on, not only those that the diagnosis uses.
    pub fn want_all_counters(&mut self) {
        self.wants_all = true;
        self.invalidate();
    }

    /// Reads the topology unless it is known, recent, and fits the last sweep; forgets readings of another one.
    pub fn prepare<T: Transport>(&mut self, client: &mut Client<T>) -> Result<(), SurveyError> {
        if let Some(known) = &self.known {
            let age = client.now().checked_since(known.read_at);
            if !known.is_odd && age.is_none_or(|age| age < BELIEVED) {
                return Ok(());
            }
        }
        self.set_pace(client)?;
        let topology = Arc::new(LiveSubnet::read(client)?);
        if let Some(rate) = topology.slowest_shared_rate() {
            client.set_pace(Pace::of_link(rate, self.link_share));
        }
        let read_at = client.now();
        match &mut self.known {
            Some(known) if known.topology.is_same_fabric(&topology) => {
                known.topology = topology;
                known.read_at = read_at;
                known.is_odd = false;
            }
            known => {
                *known = Some(Known {
                    topology,
                    read_at,
                    last: None,
                    odd: BTreeSet::new(),
                    is_odd: false,
                });
            }
        }
        Ok(())
    }

    /// No link but the local port's is known yet.
    fn set_pace<T: Transport>(&self, client: &mut Client<T>) -> Result<(), SurveyError> {
        let local = local_port(client)?.ok_or(SurveyError::NoAnswer)?;
        if let Some(rate) = rate_of(&local) {
            client.set_pace(Pace::of_link(rate, self.link_share));
        }
        Ok(())
    }

    /// Reads all counters; `None` for the first sweep of a topology.
    pub fn sweep<T: Transport>(
        &mut self,
        client: &mut Client<T>,
    ) -> Result<Option<Survey>, SurveyError> {
        if self.known.is_none() {
            self.prepare(client)?;
        }
        let Some(known) = &mut self.known else {
            return Ok(None);
        };
        let topology = Arc::clone(&known.topology);
        let began = client.now();
        let options = ReadingOptions {
            marking: &topology.marking(),
            counters: &topology.counters,
            all: self.wants_all,
            before: known.last.as_ref().map(|last| &last.logs),
        };
        let mut now = SubnetReadings::take(client, &topology.fabric, options)?;
        if now.silent.len() == topology.fabric.nodes.len() {
            known.is_odd = true;
            return Err(SurveyError::Silent);
        }
        let answers = now.answers.take();
        let sweep_time = client.now().checked_since(began).unwrap_or(Span::ZERO);
        let odd = now.odd(&topology.fabric, known.last.as_ref());
        // Nodes that stay odd do not have the topology read after each sweep.
        known.is_odd = !odd.is_subset(&known.odd);
        known.odd = odd;
        let Some(before) = known.last.replace(now.clone()) else {
            return Ok(None);
        };
        let names = |of: fn(&SubnetReadings) -> &[NodeId]| {
            let nodes: BTreeSet<NodeId> = of(&before).iter().chain(of(&now)).copied().collect();
            let name = |node| topology.fabric.nodes[node].name.clone();
            nodes.into_iter().map(name).collect()
        };
        let sent = client.statistics();
        let facts = SurveyFacts {
            manager: topology.manager,
            control: topology.control.clone(),
            adapters: topology.adapters.clone(),
            silent: names(|sweep| &sweep.silent),
            moved: names(|sweep| &sweep.moved),
            is_complete: topology.is_complete,
            without_table: topology.without_table.clone(),
            statistics: Statistics {
                sent: sent.sent - self.sent.sent,
                timeouts: sent.timeouts - self.sent.timeouts,
                ..sent
            },
            sweep_time,
        };
        self.sent = sent;
        let mut logs = before.logs;
        logs.add(&now.logs);
        Ok(Some(Survey {
            topology,
            before: before.readings,
            now: now.readings,
            answers,
            logs,
            facts,
        }))
    }
}

/// Reads topology and tables, then the counters twice, `interval` apart. Errors: [`SurveyError`].
pub fn survey<T: Transport>(client: &mut Client<T>, interval: Span) -> Result<Survey, SurveyError> {
    let mut watch = Watch::default();
    // So that the interval begins with the first sweep.
    watch.prepare(client)?;
    loop {
        let began = client.now();
        if let Some(survey) = watch.sweep(client)? {
            return Ok(survey);
        }
        let took = client.now().checked_since(began).unwrap_or(Span::ZERO);
        client.transport().pause(interval.saturating_sub(took));
    }
}
