//! The source adapter's part: the delay between packets of a flow.
//!
//! A BECN raises a flow's CCTI by CCTI_Increase, up to CCTI_Limit; CCTI_Timer lowers every CCTI by one, down to
//! CCTI_Min. A packet that ends at `e` lets the next start at `e` plus the table's delay (gran2012, section II.2).
//!
//! Flows at CCTI 0 have no state: a bitmap of destinations says so. The timer makes no events: flows catch up at their
//! next read.

use silvan_core::{HostId, Sl, Span, Time};

use super::cct::CongestionControlTable;
use super::error::ParameterError;
use super::list::CongestionEntry;
use super::log::{CongestionLog, ThresholdEvent};
use super::settings::ControlLevel;
use crate::flow_table::FlowTable;
use crate::hooks::{
    Feedback, Flow, FlowLimit, PerHost, Recurring, SettingChange, Settings, SourceControl,
    UnknownSetting,
};
use silvan_core::prefetch::prefetch;
use silvan_core::stream::SplitMix64;

mod service_level;

use service_level::{FlowState, ServiceLevel};

/// Everything about the channel adapters that must be known before the fabric is.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterParameters {
    /// CCTI_Timer, CCTI_Increase, Trigger_Threshold and CCTI_Min of every adapter, by SL.
    pub entries: [CongestionEntry; Sl::COUNT],
    /// Unit that a BECN throttles.
    pub level: ControlLevel,
    /// The table of every adapter, with CCTI_Limit.
    pub table: CongestionControlTable,
}

impl AdapterParameters {
    /// Checks the entries against the table. Errors: [`ParameterError::MinAboveLimit`] for the first SL at fault.
    pub fn validate(&self) -> Result<(), ParameterError> {
        self.entries
            .iter()
            .try_for_each(|entry| validate_entry(entry, &self.table))
    }
}

const QUEUE_SHIFT: u32 = 16;

const fn destination_mask(level: ControlLevel) -> u32 {
    match level {
        ControlLevel::QueuePair => u32::MAX,
        ControlLevel::ServiceLevel => 0,
    }
}

fn validate_entry(
    entry: &CongestionEntry,
    table: &CongestionControlTable,
) -> Result<(), ParameterError> {
    if u16::from(entry.ccti_min) > table.limit() {
        return Err(ParameterError::MinAboveLimit {
            min: entry.ccti_min,
            limit: table.limit(),
        });
    }
    Ok(())
}

/// Counters of an adapter since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdapterCounters {
    /// BECNs received, in acknowledgements and CNPs.
    pub becns: u64,
    /// The highest CCTI that a BECN led to.
    pub max_ccti: u16,
}

/// InfiniBand congestion control at all channel adapters of a fabric.
#[derive(Clone, Debug)]
pub struct IbAdapter {
    flows: Vec<FlowTable<FlowState>>,
    /// A bit per host and destination, set if a flow there may have state.
    active: Vec<u64>,
    words: usize,
    /// True if some SL's CCTI_Min delays flows without state.
    floor_delays: bool,
    /// Bits of a key's upper 28 that are the destination.
    hosts_mask: u32,
    /// True after the first flow with a queue.
    has_queues: bool,
    /// Bits of a destination that distinguish flows of a host: all at QP level, none at SL level.
    destination_masks: Vec<u32>,
    table: CongestionControlTable,
    custom_tables: Vec<Option<Box<CongestionControlTable>>>,
    service_levels: Vec<ServiceLevel>,
    counters: Vec<AdapterCounters>,
    logs: Vec<CongestionLog>,
}

impl IbAdapter {
    /// The adapters, with timer phases from `seed`; [`ParameterError::OutOfRange`] beyond 2^28 - 1 hosts.
    pub fn new(
        parameters: &AdapterParameters,
        hosts: usize,
        seed: u64,
    ) -> Result<Self, ParameterError> {
        // A flow's key is its SL in the lower 4 bits, its destination, and in the upper 12 its queue if hosts leave them.
        const MAX_HOSTS: usize = (1 << 28) - 1;
        if hosts > MAX_HOSTS {
            return Err(ParameterError::OutOfRange {
                parameter: "number of hosts",
                value: hosts as u64,
                min: 0,
                max: MAX_HOSTS as u64,
            });
        }
        parameters.validate()?;
        let words = hosts.div_ceil(64);
        let mut adapter = Self {
            flows: vec![FlowTable::new(); hosts],
            active: vec![0; hosts * words],
            words,
            floor_delays: false,
            destination_masks: vec![destination_mask(parameters.level); hosts],
            hosts_mask: match hosts <= 1 << QUEUE_SHIFT {
                true => (1 << QUEUE_SHIFT) - 1,
                false => (1 << 28) - 1,
            },
            has_queues: false,
            table: parameters.table.clone(),
            custom_tables: vec![None; hosts],
            service_levels: (0..hosts as u64)
                .flat_map(|host| {
                    let mut stream = SplitMix64::for_stream(seed, host);
                    parameters
                        .entries
                        .map(|entry| ServiceLevel::new(entry, &mut stream))
                })
                .collect(),
            counters: vec![AdapterCounters::default(); hosts],
            logs: vec![CongestionLog::EMPTY; hosts],
        };
        adapter.refresh_floor();
        Ok(adapter)
    }

    /// The parameters of one host on one SL, `None` if there is no such host.
    pub fn entry(&self, host: HostId, sl: Sl) -> Option<CongestionEntry> {
        let level = self.service_levels.get(Self::level_index(host, sl))?;
        Some(level.entry)
    }

    /// Replaces a host's parameters on one SL (CACongestionSetting), or [`ParameterError::NoSuchHost`],
    /// [`ParameterError::MinAboveLimit`].
    ///
    /// CCTIs catch up with the old timer; the new one runs as if it always had. A new CCTI_Min lifts lower flows at
    /// once.
    pub fn set_entry(
        &mut self,
        now: Time,
        host: HostId,
        sl: Sl,
        entry: CongestionEntry,
    ) -> Result<(), ParameterError> {
        if host.index() >= self.flows.len() {
            return Err(ParameterError::NoSuchHost { host });
        }
        validate_entry(&entry, self.table_of(host.index()))?;
        let level = &mut self.service_levels[Self::level_index(host, sl)];
        let old = *level;
        level.set(entry);
        self.flows[host.index()].retain(|key, flow| {
            if Self::key_sl(key) == sl.index() {
                old.catch_up(flow, now);
                flow.expiries = level.expiries(now);
                flow.ccti = flow.ccti.max(level.floor());
            }
            true
        });
        if entry.ccti_min != old.entry.ccti_min {
            self.refresh_floor();
        }
        Ok(())
    }

    /// The table that all adapters share that have none of their own.
    pub fn table(&self) -> &CongestionControlTable {
        &self.table
    }

    /// Gives a host its own table (CongestionControlTable); CCTIs catch up and fall to the new limit. Errors:
    /// [`ParameterError::NoSuchHost`], [`ParameterError::MinAboveLimit`].
    pub fn set_table(
        &mut self,
        now: Time,
        host: HostId,
        table: CongestionControlTable,
    ) -> Result<(), ParameterError> {
        if host.index() >= self.flows.len() {
            return Err(ParameterError::NoSuchHost { host });
        }
        let first = Self::level_index(host, Sl::ZERO);
        let levels = &self.service_levels[first..first + Sl::COUNT];
        levels
            .iter()
            .try_for_each(|level| validate_entry(&level.entry, &table))?;
        self.flows[host.index()].retain(|key, flow| {
            levels[Self::key_sl(key)].catch_up(flow, now);
            flow.ccti = flow.ccti.min(table.limit());
            true
        });
        self.custom_tables[host.index()] = Some(Box::new(table));
        self.refresh_floor();
        Ok(())
    }

    /// Returns the unit that a BECN throttles at one host; queue pairs if there is no such host.
    pub fn level(&self, host: HostId) -> ControlLevel {
        match self.destination_masks.get(host.index()) {
            Some(0) => ControlLevel::ServiceLevel,
            _ => ControlLevel::QueuePair,
        }
    }

    /// Changes what a BECN throttles at a host (Port_Control); its flows start at CCTI_Min again.
    pub fn set_level(&mut self, host: HostId, level: ControlLevel) -> Result<(), ParameterError> {
        let mask = self
            .destination_masks
            .get_mut(host.index())
            .ok_or(ParameterError::NoSuchHost { host })?;
        if std::mem::replace(mask, destination_mask(level)) != destination_mask(level) {
            self.flows[host.index()] = FlowTable::new();
            self.rebuild_bitmap(host.index());
        }
        Ok(())
    }

    #[inline]
    fn table_of(&self, host: usize) -> &CongestionControlTable {
        self.custom_tables[host].as_deref().unwrap_or(&self.table)
    }

    /// The CCTI of a flow at `now`, which must not be earlier than the last call about it.
    pub fn ccti(&self, now: Time, flow: Flow) -> u16 {
        let level = self.service_level(flow);
        let state = self.flows[flow.source.index()].get(self.key(flow));
        let mut state = state.copied().unwrap_or_else(|| level.fresh(now));
        level.catch_up(&mut state, now);
        state.ccti
    }

    /// Returns the number of a host's flows (SLs, at SL level) with a CCTI above CCTI_Min at `now`.
    pub fn throttled_flows(&self, now: Time, host: HostId) -> usize {
        let first = Self::level_index(host, Sl::ZERO);
        let throttled = |(key, state): (u32, &FlowState)| {
            let level = &self.service_levels[first + Self::key_sl(key)];
            let mut state = *state;
            level.catch_up(&mut state, now);
            state.ccti > level.floor()
        };
        let flows = self.flows[host.index()].iter();
        flows.filter(|&entry| throttled(entry)).count()
    }

    /// Returns the counters of this host's adapter.
    pub fn counters(&self, host: HostId) -> AdapterCounters {
        self.counters[host.index()]
    }

    /// The log of the adapter of this host.
    pub fn log(&self, host: HostId) -> &CongestionLog {
        &self.logs[host.index()]
    }

    #[inline]
    fn key(&self, flow: Flow) -> u32 {
        let mask = self.destination_masks[flow.source.index()];
        let queue = u32::from(flow.queue) << QUEUE_SHIFT & !self.hosts_mask;
        ((flow.destination.index() as u32 | queue) & mask) << 4 | flow.sl.index() as u32
    }

    #[inline]
    fn destination(&self, key: u32) -> usize {
        ((key >> 4) & self.hosts_mask) as usize
    }

    #[inline]
    fn key_sl(key: u32) -> usize {
        (key & 0xf) as usize
    }

    #[inline]
    fn level_index(host: HostId, sl: Sl) -> usize {
        host.index() * Sl::COUNT + sl.index()
    }

    #[inline]
    fn service_level(&self, flow: Flow) -> &ServiceLevel {
        &self.service_levels[Self::level_index(flow.source, flow.sl)]
    }

    #[inline]
    fn active_bit(&self, host: usize, key: u32) -> (usize, u64) {
        let destination = self.destination(key);
        (
            host * self.words + destination / 64,
            1 << (destination % 64),
        )
    }

    #[inline]
    fn key_with_state(&self, flow: Flow) -> Option<u32> {
        let host = flow.source.index();
        if self.flows[host].is_empty() {
            return None;
        }
        let key = self.key(flow);
        let (word, bit) = self.active_bit(host, key);
        (self.active[word] & bit != 0).then_some(key)
    }

    fn insert(&mut self, now: Time, host: usize, key: u32, state: FlowState) {
        self.has_queues |= key >> 4 & !self.hosts_mask != 0;
        let first = host * Sl::COUNT;
        let levels = &self.service_levels[first..first + Sl::COUNT];
        let swept = self.flows[host].insert(key, state, |key, flow| {
            let level = &levels[Self::key_sl(key)];
            level.catch_up(flow, now);
            !level.is_over(flow, now)
        });
        if swept {
            self.rebuild_bitmap(host);
        } else {
            let (word, bit) = self.active_bit(host, key);
            self.active[word] |= bit;
        }
    }

    fn remove(&mut self, host: usize, key: u32) {
        self.flows[host].remove(key);
        if self.has_queues {
            // Queues share the bit.
            return;
        }
        let siblings = (0..Sl::COUNT as u32).map(|sl| key & !0xf | sl);
        if siblings
            .into_iter()
            .all(|key| self.flows[host].get(key).is_none())
        {
            let (word, bit) = self.active_bit(host, key);
            self.active[word] &= !bit;
        }
    }

    fn rebuild_bitmap(&mut self, host: usize) {
        self.active[host * self.words..(host + 1) * self.words].fill(0);
        for (key, _) in self.flows[host].iter() {
            let (word, bit) = self.active_bit(host, key);
            self.active[word] |= bit;
        }
    }

    fn refresh_floor(&mut self) {
        let mut levels = self.service_levels.iter().enumerate();
        self.floor_delays = levels.any(|(index, level)| {
            let table = self.table_of(index / Sl::COUNT);
            table.entry(level.floor()).multiplier() != 0
        });
    }

    fn becn(&mut self, now: Time, flow: Flow) {
        let key = self.key(flow);
        let host = flow.source.index();
        let limit = self.table_of(host).limit();
        let level = &self.service_levels[Self::level_index(flow.source, flow.sl)];
        let entry = level.entry;
        let raise = |state: &mut FlowState| {
            state.ccti = (state.ccti.saturating_add(u16::from(entry.ccti_increase))).min(limit);
            state.ccti
        };
        let ccti = match self.flows[host].get_mut(key) {
            Some(state) => {
                level.catch_up(state, now);
                raise(state)
            }
            None => {
                let mut state = level.fresh(now);
                let ccti = raise(&mut state);
                if ccti > level.floor() {
                    self.insert(now, host, key, state);
                }
                ccti
            }
        };
        let counters = &mut self.counters[host];
        counters.becns += 1;
        counters.max_ccti = counters.max_ccti.max(ccti);
        if entry.trigger_threshold != 0 && ccti >= u16::from(entry.trigger_threshold) {
            self.logs[host].push(ThresholdEvent {
                at: now,
                destination: flow.destination,
                sl: flow.sl,
                ccti,
            });
        }
    }

    fn send_throttled(&mut self, now: Time, flow: Flow, wire_time: Span) {
        let key = self.key(flow);
        let host = flow.source.index();
        let level = &self.service_levels[Self::level_index(flow.source, flow.sl)];
        let table = self.custom_tables[host].as_deref().unwrap_or(&self.table);
        let Some(state) = self.flows[host].get_mut(key) else {
            return self.send_unthrottled(now, flow, wire_time);
        };
        level.catch_up(state, now);
        let delay = table.delay(state.ccti, wire_time);
        state.release = now.saturating_add(wire_time).saturating_add(delay);
        if state.ccti == level.floor() && delay.is_zero() {
            // The link is busy until the release anyway.
            self.remove(host, key);
        }
    }

    fn send_unthrottled(&mut self, now: Time, flow: Flow, wire_time: Span) {
        let level = self.service_level(flow);
        let table = self.table_of(flow.source.index());
        let delay = table.delay(level.floor(), wire_time);
        if delay.is_zero() {
            return;
        }
        let mut state = level.fresh(now);
        state.release = now.saturating_add(wire_time).saturating_add(delay);
        self.insert(now, flow.source.index(), self.key(flow), state);
    }
}

impl PerHost for IbAdapter {}

impl SourceControl for IbAdapter {
    fn recurs(&self) -> bool {
        true
    }

    fn recurring(&self, now: Time, host: HostId) -> Option<Recurring> {
        if self.floor_delays {
            return None;
        }
        let first = Self::level_index(host, Sl::ZERO);
        let mut until = Time::MAX;
        let held = self.flows[host.index()].iter().filter_map(|(key, state)| {
            let level = &self.service_levels[first + Self::key_sl(key)];
            let mut state = *state;
            level.catch_up(&mut state, now);
            if level.is_over(&state, now) {
                return None;
            }
            if state.ccti > level.floor() {
                until = until.min(level.next_expiry(&state));
            }
            let release = state.release.checked_since(now).map_or(0, Span::as_ps);
            Some([u64::from(key), u64::from(state.ccti), release])
        });
        let mut held: Vec<[u64; 3]> = held.collect();
        held.sort_unstable();
        Some(Recurring {
            changes: self.counters(host).becns,
            words: held.into_flattened(),
            until,
        })
    }

    fn flow_rests(&self, now: Time, flow: Flow) -> bool {
        let level = self.service_level(flow);
        let state = self.flows[flow.source.index()].get(self.key(flow));
        let is_over = |state: &FlowState| {
            let mut state = *state;
            level.catch_up(&mut state, now);
            level.is_over(&state, now)
        };
        !self.floor_delays && state.is_none_or(is_over)
    }

    fn shift(&mut self, now: Time, host: HostId, by: Span) {
        self.flows[host.index()].retain(|_, state| {
            if state.release > now {
                state.release = state.release.saturating_add(by);
            }
            true
        });
    }

    fn flow_limits(&self, now: Time, host: HostId) -> Vec<FlowLimit> {
        let table = self.table_of(host.index());
        let of_pair = self.level(host) == ControlLevel::QueuePair;
        FlowLimit::of_table(&self.flows[host.index()], |key, state| {
            let mut state = *state;
            let level = &self.service_levels[host.index() * Sl::COUNT + Self::key_sl(key)];
            level.catch_up(&mut state, now);
            let rate = 1.0 / (1.0 + table.entry(state.ccti).packet_times());
            (state.ccti > 0).then_some(FlowLimit {
                destination: of_pair.then_some(HostId::new(self.destination(key))),
                sl: Sl::try_new(Self::key_sl(key) as u8).ok()?,
                ccti: state.ccti,
                rate,
            })
        })
    }

    #[inline]
    fn prefetch_release(&self, host: HostId) {
        prefetch(&self.flows, host.index());
        let first = host.index() * self.words;
        for word in (first..first + self.words).step_by(8).take(4) {
            prefetch(&self.active, word);
        }
    }

    #[inline]
    fn prefetch_feedback(&self, flow: Flow) {
        self.flows[flow.source.index()].prefetch(self.key(flow));
        prefetch(&self.counters, flow.source.index());
        let level = Self::level_index(flow.source, flow.sl);
        prefetch(&self.service_levels, level);
    }

    #[inline]
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        let Some(key) = self.key_with_state(flow) else {
            return now;
        };
        let host = flow.source.index();
        self.flows[host].get(key).map_or(now, |state| state.release)
    }

    #[inline]
    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, _: u32) {
        if self.key_with_state(flow).is_some() {
            self.send_throttled(now, flow, wire_time);
        } else if self.floor_delays {
            self.send_unthrottled(now, flow, wire_time);
        }
    }

    #[inline]
    fn on_feedback(&mut self, now: Time, flow: Flow, feedback: Feedback) -> bool {
        match feedback {
            Feedback::Cnp | Feedback::Ack { becn: true, .. } => self.becn(now, flow),
            Feedback::Ack { becn: false, .. } => {}
        }
        false
    }
}

impl Settings for IbAdapter {
    fn apply(&mut self, now: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        let SettingChange::Adapter { sl, setting } = *change else {
            return Err(UnknownSetting(change.clone()));
        };
        for host in (0..self.flows.len()).map(HostId::new) {
            let mut entry = self.service_levels[Self::level_index(host, sl)].entry;
            entry.set(setting);
            self.set_entry(now, host, sl, entry)
                .map_err(|_| UnknownSetting(change.clone()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
