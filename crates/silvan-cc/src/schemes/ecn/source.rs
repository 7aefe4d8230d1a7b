//! Rate limit and window limit of each flow at the source.
//!
//! A packet that starts at s at rate r lets the next one start at s + T/r, with T its time on the link. The gap is
//! fixed at the start, as in an adapter.

use silvan_core::{HostId, Span, Time};

use super::response::{RateTables, Response, ResponseFunction};
use super::{EcnError, MIN_RATE};
use crate::flow_table::{FlowTable, key};
use crate::hooks::{
    Feedback, Flow, FlowLimit, SettingChange, Settings, SourceControl, UnknownSetting,
};

/// Possible rates of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum RateModel {
    /// Any rate.
    Continuous(Response),
    /// The 256 rates of InfiniBand's inter-packet delay.
    Discrete(RateTables),
}

/// Maximum number of packets of a flow in flight; 1 in the paper.
///
/// If the bounds differ, a window of unmarked acknowledgements at full rate adds a packet. A mark halves the window or,
/// at the smallest window, lowers the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimit {
    /// Smallest and first window, in packets.
    pub min: u16,
    /// Largest window, in packets.
    pub max: u16,
}

/// Parameters of the sources.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceParameters {
    /// Rates and response function.
    pub rates: RateModel,
    /// Limit of the window.
    pub window: WindowLimit,
    /// First rate of a flow, as a fraction of Rmax; discrete rates are rounded down.
    pub initial_rate: f64,
    /// True to start a flow with the last rate between its hosts on its service level (santos2003, section VI-B.2).
    pub persistent: bool,
    /// Payload of an MTU packet: fewer acknowledged bytes raise the rate by less (santos2003, footnote 9).
    pub mtu: u32,
}

impl SourceParameters {
    /// Checks the parameters without a fabric. Errors: [`EcnError::Window`], [`EcnError::InitialRate`].
    pub fn validate(&self) -> Result<(), EcnError> {
        let WindowLimit { min, max } = self.window;
        if min == 0 || max < min {
            return Err(EcnError::Window { min, max });
        }
        let lowest = match &self.rates {
            RateModel::Continuous(function) => function.min_rate(),
            RateModel::Discrete(_) => MIN_RATE,
        };
        if !(lowest..=1.0).contains(&self.initial_rate) {
            return Err(EcnError::InitialRate {
                rate: self.initial_rate,
                min: lowest,
            });
        }
        Ok(())
    }
}

/// Only fields of the kind of rate in use are valid.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct RateState {
    /// Continuous: fraction of Rmax.
    rate: f64,
    /// Discrete: inter-packet delay in packet times.
    ipd: u8,
    acknowledged: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct FlowState {
    rate: RateState,
    window: u16,
    window_acknowledged: u64,
    under_way: u16,
    stale: u16,
    next: Time,
}

/// The sources of all hosts.
#[derive(Clone, Debug)]
pub struct EcnSource {
    parameters: SourceParameters,
    first: RateState,
    flows: Vec<FlowTable<FlowState>>,
}

impl EcnSource {
    /// Creates the sources; errors as [`SourceParameters::validate`], or [`EcnError::TooManyHosts`].
    pub fn new(parameters: SourceParameters, hosts: usize) -> Result<Self, EcnError> {
        parameters.validate()?;
        // A flow's key is its destination in the upper 28 bits and its SL in the lower 4.
        if hosts >= 1 << 28 {
            return Err(EcnError::TooManyHosts(hosts));
        }
        let rate = parameters.initial_rate;
        // 1e-9 covers rounding of the inverse of a rate such as 1/10.
        let ipd = (1.0 / rate - 1.0 - 1e-9).ceil().clamp(0.0, 255.0) as u8;
        Ok(Self {
            first: RateState {
                rate,
                ipd,
                acknowledged: 0,
            },
            parameters,
            flows: vec![FlowTable::new(); hosts],
        })
    }

    /// The rate limit of a flow, as a fraction of Rmax.
    pub fn rate(&self, flow: Flow) -> f64 {
        let state = self.flows[flow.source.index()].get(key(flow));
        self.rate_of(state.map_or(&self.first, |state| &state.rate))
    }

    fn rate_of(&self, rate: &RateState) -> f64 {
        match &self.parameters.rates {
            RateModel::Continuous(_) => rate.rate,
            RateModel::Discrete(_) => 1.0 / (1.0 + f64::from(rate.ipd)),
        }
    }

    /// The window of a flow, in packets.
    pub fn window(&self, flow: Flow) -> u16 {
        let state = self.flows[flow.source.index()].get(key(flow));
        state.map_or(self.parameters.window.min, |state| state.window)
    }

    /// Packets of a flow that are in progress.
    pub fn under_way(&self, flow: Flow) -> u16 {
        let state = self.flows[flow.source.index()].get(key(flow));
        state.map_or(0, |state| state.under_way)
    }

    fn fresh(&self) -> FlowState {
        FlowState {
            rate: self.first,
            window: self.parameters.window.min,
            ..FlowState::default()
        }
    }

    #[inline]
    fn gap(&self, rate: &RateState, wire_time: Span) -> Span {
        match &self.parameters.rates {
            RateModel::Continuous(_) => {
                Span::from_ps((wire_time.as_ps() as f64 / rate.rate).round() as u64)
            }
            RateModel::Discrete(_) => wire_time * (1 + u64::from(rate.ipd)),
        }
    }
}

impl SourceParameters {
    fn marked(&self, state: &mut FlowState) {
        state.window_acknowledged = 0;
        if state.window > self.window.min {
            state.window = (state.window / 2).max(self.window.min);
            return;
        }
        let rate = &mut state.rate;
        match &self.rates {
            RateModel::Continuous(function) => rate.rate = function.decrease(rate.rate),
            RateModel::Discrete(tables) => {
                rate.ipd = tables.decrease(rate.ipd);
                rate.acknowledged = 0;
            }
        }
    }

    fn unmarked(&self, state: &mut FlowState, bytes: u32) {
        let rate = &mut state.rate;
        let mtu = u64::from(self.mtu);
        let at_full_rate = match &self.rates {
            RateModel::Continuous(function) => {
                let was_full = rate.rate >= 1.0;
                let step = function.increase(rate.rate) - rate.rate;
                rate.rate += step * (f64::from(bytes) / f64::from(self.mtu)).min(1.0);
                was_full
            }
            RateModel::Discrete(tables) => {
                let was_full = rate.ipd == 0;
                let increase = tables.increase(rate.ipd);
                rate.acknowledged += u64::from(bytes);
                if rate.acknowledged >= u64::from(increase.packets) * mtu {
                    rate.ipd = increase.next;
                    rate.acknowledged = 0;
                }
                was_full
            }
        };
        if at_full_rate && state.window < self.window.max {
            state.window_acknowledged += u64::from(bytes);
            if state.window_acknowledged >= u64::from(state.window) * mtu {
                state.window += 1;
                state.window_acknowledged = 0;
            }
        }
    }
}

impl SourceControl for EcnSource {
    fn separates_flows(&self) -> bool {
        true
    }

    fn flow_limits(&self, _: Time, host: HostId) -> Vec<FlowLimit> {
        FlowLimit::of_table(&self.flows[host.index()], |key, state| {
            FlowLimit::of_rate(key, self.rate_of(&state.rate))
        })
    }

    #[inline]
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        match self.flows[flow.source.index()].get(key(flow)) {
            None => now,
            Some(state) if state.under_way >= state.window => Time::MAX,
            Some(state) => state.next,
        }
    }

    fn on_flow_start(&mut self, now: Time, flow: Flow) {
        if self.parameters.persistent {
            return;
        }
        let fresh = self.fresh();
        if let Some(state) = self.flows[flow.source.index()].get_mut(key(flow)) {
            *state = FlowState {
                stale: state.stale.saturating_add(state.under_way),
                next: now,
                ..fresh
            };
        }
    }

    #[inline]
    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, _: u32) {
        let (host, key) = (flow.source.index(), key(flow));
        let mut state = match self.flows[host].get(key) {
            Some(state) => *state,
            None => self.fresh(),
        };
        state.under_way += 1;
        state.next = now.saturating_add(self.gap(&state.rate, wire_time));
        if let Some(known) = self.flows[host].get_mut(key) {
            *known = state;
            return;
        }
        let (first, window) = (self.first, self.parameters.window.min);
        self.flows[host].insert(key, state, |_, state| {
            let is_idle = state.under_way == 0 && state.stale == 0 && state.next <= now;
            !is_idle || state.rate != first || state.window != window
        });
    }

    #[inline]
    fn on_feedback(&mut self, _: Time, flow: Flow, feedback: Feedback) -> bool {
        // Only acknowledgements report an arrived packet.
        let Feedback::Ack { bytes, becn } = feedback else {
            return false;
        };
        let Some(state) = self.flows[flow.source.index()].get_mut(key(flow)) else {
            return false;
        };
        if state.stale > 0 {
            state.stale -= 1;
            return false;
        }
        let was_shut = state.under_way >= state.window;
        state.under_way = state.under_way.saturating_sub(1);
        if becn {
            self.parameters.marked(state);
        } else {
            self.parameters.unmarked(state, bytes);
        }
        was_shut && state.under_way < state.window
    }
}

impl Settings for EcnSource {
    fn apply(&mut self, _: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        Err(UnknownSetting(change.clone()))
    }
}

#[cfg(test)]
mod tests;
