use std::collections::BTreeMap;

use silvan_core::{PortId, Span, Time};

use super::super::expected::Expected;
use super::{CONGESTING, LANES, MONITORED};
use crate::hooks::Flow;
use crate::schemes::SwitchPort;

const FIRST_SWEEP: usize = 16;

pub(super) fn outputs(ports: &[Option<SwitchPort>]) -> Vec<Output> {
    let mut inputs = BTreeMap::new();
    for port in ports.iter().flatten() {
        let most = inputs.entry(port.switch).or_insert(0);
        *most = port.number.as_u8().max(*most);
    }
    let output = |port: &Option<SwitchPort>| {
        let inputs = port.map_or(0, |port| usize::from(inputs[&port.switch]));
        Output {
            to_host: port.is_some_and(|port| port.to_host),
            number: port.map_or(0, |port| port.number.as_u8() - 1),
            upstream: port.and_then(|port| port.peer),
            ..Output::new(inputs)
        }
    };
    ports.iter().map(output).collect()
}

#[derive(Clone, Debug)]
pub(super) struct Output {
    pub to_host: bool,
    pub number: u8,
    pub lanes: [Lane; LANES],
    pub upstream: Option<PortId>,
    pub expected: Expected,
    pub root_is_behind: Period,
    pub flows: BTreeMap<Flow, Congesting>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    pub bytes: u32,
    pub has_credit: bool,
    pub joined: Vec<u64>,
    pub left: Vec<u64>,
}

impl Lane {
    pub fn has_left(&self, input: u8, joined: u64) -> bool {
        self.left[usize::from(input)] >= joined
    }

    pub fn is_empty(&self, input: u8) -> bool {
        self.has_left(input, self.joined[usize::from(input)])
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Period {
    pub from: Time,
    pub until: Time,
}

impl Period {
    pub fn has(&self, now: Time) -> bool {
        self.from <= now && now < self.until
    }

    pub fn extend(&mut self, from: Time, until: Time) {
        self.from = match self.until < from {
            true => from,
            false => self.from.min(from),
        };
        self.until = self.until.max(until);
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Congesting {
    pub isolated: bool,
    pub by_message: bool,
    pub counts: Period,
    pub message_at: Time,
    pub input: u8,
    pub joined: u64,
}

impl Congesting {
    pub fn has_settled(&self, lanes: &[Lane; LANES]) -> bool {
        let other = if self.isolated { MONITORED } else { CONGESTING };
        lanes[other].has_left(self.input, self.joined)
    }

    pub fn is_over(&self, now: Time, lanes: &[Lane; LANES]) -> bool {
        if now < self.counts.until {
            return false;
        }
        // At a host, the last packet on the congesting lane ends it.
        let is_at_host = lanes[MONITORED].joined.is_empty();
        !is_at_host
            && self.has_settled(lanes)
            && (!self.isolated || lanes[CONGESTING].is_empty(self.input))
    }
}

impl Output {
    pub fn new(inputs: usize) -> Self {
        let lane = || Lane {
            joined: vec![0; inputs],
            left: vec![0; inputs],
            ..Lane::default()
        };
        Self {
            to_host: false,
            number: 0,
            lanes: [lane(), lane()],
            upstream: None,
            expected: Expected::new(),
            root_is_behind: Period::default(),
            flows: BTreeMap::new(),
        }
    }

    pub fn receive(&mut self, now: Time, hold: Span) {
        while let Some(message) = self.expected.receive(now) {
            let until = message.arrives.saturating_add(hold);
            self.root_is_behind.extend(message.arrives, until);
            let entry = self.entry(message.arrives, message.flow);
            entry.by_message = true;
            entry.counts.extend(message.arrives, until);
        }
    }

    pub fn is_root(&self, now: Time, lane: usize, set_point: u32) -> bool {
        self.is_full(lane, set_point)
            && (self.to_host || self.lanes[lane].has_credit)
            && !self.root_is_behind.has(now)
    }

    pub fn is_full(&self, lane: usize, set_point: u32) -> bool {
        self.lanes[lane].bytes >= set_point
    }

    pub fn entry(&mut self, now: Time, flow: Flow) -> &mut Congesting {
        let Self { lanes, flows, .. } = self;
        if flows.len() >= FIRST_SWEEP && flows.len().is_power_of_two() {
            flows.retain(|_, entry| !entry.is_over(now, lanes));
        }
        flows.entry(flow).or_default()
    }
}
