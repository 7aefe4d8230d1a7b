use silvan_core::growth::CongestionGrowth;
use silvan_core::{Instant, PortId, Span, SwitchId, Time};

use super::parameters::{CongestionTimeReads, DcmsError, DcmsParameters};
use super::topology::{DcmsTopology, MarkingScope, Neighbour, SwitchPortInfo};

/// State of a port (the paper's S(s, p)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MarkingState<T = Time> {
    /// The default Marking_Rate is in force.
    #[default]
    Default,
    /// The Marking_Rate has been low since this instant.
    Low {
        /// Time of the sweep that lowered it.
        since: T,
    },
}

/// A change to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    /// The switch.
    pub switch: SwitchId,
    /// The port, or `None` for the whole switch.
    pub port: Option<PortId>,
    /// The Marking_Rate to set.
    pub marking_rate: u16,
}

/// Why something was decided, with the counters that said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The port is congested, and a neighbour that sends to its switch waits (Algorithm 2): its Marking_Rate is low.
    VictimFound {
        /// The neighbouring switch port.
        victim: PortId,
        /// Counters of the congested port.
        root: CongestionGrowth,
        /// Counters of the victim.
        waits: CongestionGrowth,
    },
    /// A victim was found, but the port must not be changed.
    NotAllowed {
        /// The neighbouring switch port.
        victim: PortId,
    },
    /// A victim was found, but the largest number of switches is lowered already.
    TooManySwitches {
        /// The neighbouring switch port.
        victim: PortId,
    },
    /// A victim sends less than before: its victim flows are absent or done (Algorithm 3, line 5).
    VictimGone {
        /// The neighbouring switch port.
        victim: PortId,
        /// Growth of the victim's counters in the sweep before.
        before: CongestionGrowth,
        /// Growth of the victim's counters in this sweep.
        now: CongestionGrowth,
    },
    /// No victim is left (Algorithm 3, line 11).
    NoVictims,
    /// The Marking_Rate has been low for T_I (Algorithm 3, line 11).
    TimeLimit {
        /// Time since the Marking_Rate was lowered.
        low_for: Span,
    },
    /// The clock has gone back since the Marking_Rate was lowered, so that T_I cannot be measured.
    ClockWentBack,
    /// The port is not there any more.
    Vanished,
}

impl Reason {
    /// A short name for logs and tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::VictimFound { .. } => "victim-found",
            Self::NotAllowed { .. } => "not-allowed",
            Self::TooManySwitches { .. } => "too-many-switches",
            Self::VictimGone { .. } => "victim-gone",
            Self::NoVictims => "no-victims",
            Self::TimeLimit { .. } => "time-limit",
            Self::ClockWentBack => "clock-went-back",
            Self::Vanished => "vanished",
        }
    }

    /// The neighbouring switch port that it is about, if any.
    pub const fn victim(&self) -> Option<PortId> {
        match self {
            Self::VictimFound { victim, .. }
            | Self::NotAllowed { victim }
            | Self::TooManySwitches { victim }
            | Self::VictimGone { victim, .. } => Some(*victim),
            Self::NoVictims | Self::TimeLimit { .. } | Self::ClockWentBack | Self::Vanished => None,
        }
    }
}

/// Something that the DCMS decided about a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision<T = Time> {
    /// Time of the sweep.
    pub at: T,
    /// The congested port.
    pub port: PortId,
    /// The action, if any.
    pub action: Option<Action>,
    /// Why.
    pub reason: Reason,
}

#[derive(Debug, Clone, Default)]
struct PortState<T> {
    state: MarkingState<T>,
    lowered_in: u64,
    victims: Vec<PortId>,
    seen_congested: bool,
    before: Option<CongestionGrowth>,
}

/// The Dynamic Congestion Management System, by simulated or by real time.
#[derive(Debug, Clone)]
pub struct Dcms<T = Time> {
    parameters: DcmsParameters,
    topology: DcmsTopology,
    ports: Vec<PortState<T>>,
    sweeps: u64,
    swept: Option<T>,
    busy: bool,
    decisions: Vec<Decision<T>>,
}

impl<T: Instant> Dcms<T> {
    /// A DCMS that has seen nothing; all ports have the default Marking_Rate. [`DcmsError`] for unusable parameters.
    pub fn new(parameters: DcmsParameters, topology: DcmsTopology) -> Result<Self, DcmsError> {
        parameters.validate()?;
        let ports = vec![PortState::default(); topology.port_bound()];
        Ok(Self {
            parameters,
            topology,
            ports,
            sweeps: 0,
            swept: None,
            busy: false,
            decisions: Vec::new(),
        })
    }

    /// Thresholds and settings.
    pub fn parameters(&self) -> &DcmsParameters {
        &self.parameters
    }

    /// The watched ports.
    pub fn topology(&self) -> &DcmsTopology {
        &self.topology
    }

    /// State of a port.
    pub fn state(&self, port: PortId) -> MarkingState<T> {
        self.ports
            .get(port.index())
            .map_or(MarkingState::Default, |state| state.state)
    }

    /// Victims of a congested port (the paper's V(s, p)), in the order in which they were found.
    pub fn victims(&self, port: PortId) -> &[PortId] {
        self.ports
            .get(port.index())
            .map_or(&[], |state| state.victims.as_slice())
    }

    /// Time from the last sweep to the next.
    pub fn next_interval(&self) -> Span {
        let nominal = self.parameters.interval;
        match self.parameters.busy_interval {
            Some(busy) if self.busy => busy,
            _ => nominal,
        }
    }

    /// Returns true if the next sweep must read PortXmitTimeCong of this port.
    pub fn wants_congestion_time(&self, port: PortId) -> bool {
        match self.parameters.congestion_time {
            CongestionTimeReads::Everywhere => true,
            CongestionTimeReads::WhereSeen { rescan } => {
                self.sweeps % u64::from(rescan.max(1)) == 0
                    || self
                        .ports
                        .get(port.index())
                        .is_some_and(|state| state.seen_congested)
            }
        }
    }

    /// Sets a new topology. Ports of both topologies keep their state; removed ports lose it and cannot be set.
    pub fn set_topology(&mut self, now: T, topology: DcmsTopology) -> &[Decision<T>] {
        self.decisions.clear();
        let bound = topology.port_bound().max(self.ports.len());
        self.ports.resize(bound, PortState::default());
        for (index, state) in self.ports.iter_mut().enumerate() {
            let port = PortId::new(index);
            if topology.port(port).is_some() {
                state
                    .victims
                    .retain(|victim| topology.port(*victim).is_some());
            } else {
                let gone = std::mem::take(state);
                if gone.state != MarkingState::Default {
                    self.decisions.push(Decision {
                        at: now,
                        port,
                        action: None,
                        reason: Reason::Vanished,
                    });
                }
            }
        }
        self.topology = topology;
        &self.decisions
    }

    /// Runs one sweep (Algorithm 1) and returns its decisions in order; unknown growth leads to none.
    pub fn step(&mut self, now: T, growth: &[Option<CongestionGrowth>]) -> &[Decision<T>] {
        self.decisions.clear();
        let known = |port: PortId| growth.get(port.index()).copied().flatten();
        self.busy = false;
        let before = self.swept.replace(now).unwrap_or(now);
        let went_back = now.checked_since(before).is_none();
        self.find_victims(now, &known);
        self.monitor(now, went_back, &known);
        for (state, growth) in self.ports.iter_mut().zip(growth) {
            state.before = *growth;
        }
        self.busy |= self
            .ports
            .iter()
            .any(|state| state.state != MarkingState::Default);
        self.sweeps += 1;
        &self.decisions
    }

    /// `threshold` holds for the nominal interval.
    fn exceeds(&self, growth: Option<u64>, span: Span, threshold: u64) -> bool {
        let interval = u128::from(self.parameters.interval.as_ps());
        growth.is_some_and(|growth| {
            u128::from(growth) * interval > u128::from(threshold) * u128::from(span.as_ps())
        })
    }

    fn waits(&self, growth: CongestionGrowth) -> bool {
        let threshold = self.parameters.rate_reduction_threshold;
        self.exceeds(growth.xmit_wait, growth.span, threshold)
    }

    fn is_congested(&self, info: &SwitchPortInfo, growth: CongestionGrowth) -> bool {
        let threshold = self.parameters.congestion_threshold;
        self.exceeds(growth.xmit_time_cong, growth.span, threshold)
            || (info.neighbour == Neighbour::Host && self.waits(growth))
    }

    fn find_victims(&mut self, now: T, known: &impl Fn(PortId) -> Option<CongestionGrowth>) {
        for index in 0..self.topology.ports().len() {
            let info = self.topology.ports()[index];
            let Some(root) = known(info.port) else {
                continue;
            };
            if !self.is_congested(&info, root) {
                continue;
            }
            self.busy = true;
            self.ports[info.port.index()].seen_congested = true;
            for feeder in 0..self.topology.feeders(info.switch).len() {
                let victim = self.topology.feeders(info.switch)[feeder];
                if self.victims(info.port).contains(&victim) {
                    continue;
                }
                let Some(waits) = known(victim).filter(|growth| self.waits(*growth)) else {
                    continue;
                };
                self.add_victim(now, &info, victim, root, waits);
            }
        }
    }

    fn add_victim(
        &mut self,
        now: T,
        info: &SwitchPortInfo,
        victim: PortId,
        root: CongestionGrowth,
        waits: CongestionGrowth,
    ) {
        let is_low = self.state(info.port) != MarkingState::Default;
        let (action, reason) = if is_low {
            (
                None,
                Reason::VictimFound {
                    victim,
                    root,
                    waits,
                },
            )
        } else if !info.controllable {
            (None, Reason::NotAllowed { victim })
        } else if !self.may_lower(info.switch) {
            (None, Reason::TooManySwitches { victim })
        } else {
            let action = self.action(info, self.parameters.low_marking_rate);
            (
                action,
                Reason::VictimFound {
                    victim,
                    root,
                    waits,
                },
            )
        };
        if matches!(reason, Reason::VictimFound { .. }) {
            let state = &mut self.ports[info.port.index()];
            state.victims.push(victim);
            if !is_low {
                state.state = MarkingState::Low { since: now };
                state.lowered_in = self.sweeps;
            }
        }
        self.decisions.push(Decision {
            at: now,
            port: info.port,
            action,
            reason,
        });
    }

    fn lowered_ports(&self, except: Option<PortId>) -> impl Iterator<Item = &SwitchPortInfo> {
        self.topology.ports().iter().filter(move |info| {
            Some(info.port) != except && self.state(info.port) != MarkingState::Default
        })
    }

    fn may_lower(&self, switch: SwitchId) -> bool {
        let Some(most) = self.parameters.max_low_switches else {
            return true;
        };
        let mut switches: Vec<SwitchId> =
            self.lowered_ports(None).map(|info| info.switch).collect();
        if switches.contains(&switch) {
            return true;
        }
        switches.sort_unstable();
        switches.dedup();
        switches.len() < most as usize
    }

    /// `None` if another port keeps the rate of a switch low that is only changed as a whole.
    fn action(&self, info: &SwitchPortInfo, marking_rate: u16) -> Option<Action> {
        let port = match self.topology.scope(info.switch) {
            MarkingScope::Port => Some(info.port),
            MarkingScope::Switch => {
                let mut others = self.lowered_ports(Some(info.port));
                if others.any(|other| other.switch == info.switch) {
                    return None;
                }
                None
            }
        };
        Some(Action {
            switch: info.switch,
            port,
            marking_rate,
        })
    }

    /// Algorithm 3. If the clock has gone back, no limit can be trusted: all lowered rates are restored.
    fn monitor(
        &mut self,
        now: T,
        went_back: bool,
        known: &impl Fn(PortId) -> Option<CongestionGrowth>,
    ) {
        for index in 0..self.topology.ports().len() {
            let info = self.topology.ports()[index];
            let MarkingState::Low { since } = self.state(info.port) else {
                continue;
            };
            if self.ports[info.port.index()].lowered_in == self.sweeps {
                continue;
            }
            let low_for = now.checked_since(since).filter(|_| !went_back);
            let is_over = low_for.is_none_or(|span| span >= self.parameters.low_duration);
            if !is_over {
                self.drop_victims(now, info.port, known);
            }
            let has_victims = !self.victims(info.port).is_empty();
            let reason = match low_for {
                None => Reason::ClockWentBack,
                Some(_) if !has_victims => Reason::NoVictims,
                Some(low_for) if is_over => Reason::TimeLimit { low_for },
                Some(_) => continue,
            };
            let state = &mut self.ports[info.port.index()];
            state.state = MarkingState::Default;
            state.victims.clear();
            let action = self.action(&info, self.parameters.default_marking_rate);
            self.decisions.push(Decision {
                at: now,
                port: info.port,
                action,
                reason,
            });
        }
    }

    fn drop_victims(
        &mut self,
        now: T,
        port: PortId,
        known: &impl Fn(PortId) -> Option<CongestionGrowth>,
    ) {
        let mut victims = std::mem::take(&mut self.ports[port.index()].victims);
        victims.retain(|&victim| {
            let before = self.ports[victim.index()].before;
            let (Some(before), Some(growth)) = (before, known(victim)) else {
                return true;
            };
            let is_gone = self.utilization_dropped(before, growth);
            if is_gone {
                self.decisions.push(Decision {
                    at: now,
                    port,
                    action: None,
                    reason: Reason::VictimGone {
                        victim,
                        before,
                        now: growth,
                    },
                });
            }
            !is_gone
        });
        self.ports[port.index()].victims = victims;
    }

    fn utilization_dropped(&self, before: CongestionGrowth, now: CongestionGrowth) -> bool {
        let (Some(words_before), Some(words_now)) = (before.xmit_data, now.xmit_data) else {
            return false;
        };
        let interval = i128::from(self.parameters.interval.as_ps());
        let threshold = i128::from(self.parameters.utilization_change_threshold);
        let span_before = i128::from(before.span.as_ps());
        let span_now = i128::from(now.span.as_ps());
        let drop = i128::from(words_before) * span_now - i128::from(words_now) * span_before;
        // Both sides times the two spans, so that no division rounds.
        drop.saturating_mul(interval) > (threshold * span_before).saturating_mul(span_now)
    }
}
