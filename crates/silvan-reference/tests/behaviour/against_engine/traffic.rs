//! The reference model's flows as the engine's workload, by the same rule: flows take turns.

use silvan_core::{HostId, Time};
use silvan_engine::workload::{Chosen, Gate, Offer, Poll, Transit, Workload};
use silvan_reference::Flow;

/// A packet as both models report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    pub flow: usize,
    pub sequence: u64,
    pub injected: Time,
    pub done: Time,
}

/// Explicit flows, each a traffic class of its own.
#[derive(Debug)]
pub struct Flows {
    flows: Vec<State>,
    /// By host: its flows, and the one that is first in turn.
    hosts: Vec<(Vec<usize>, usize)>,
    /// By host: the places of flows whose packets wait for credits.
    chosen: Vec<Chosen<usize>>,
    pub records: Vec<Record>,
}

#[derive(Debug)]
struct State {
    flow: Flow,
    ready: Time,
    injected: Vec<Time>,
    delivered: u64,
}

impl Flows {
    pub fn new(flows: &[Flow], hosts: usize) -> Self {
        let mut by_host = vec![(Vec::new(), 0); hosts];
        for (index, flow) in flows.iter().enumerate() {
            by_host[flow.source.index()].0.push(index);
        }
        let state = |flow: &Flow| State {
            flow: flow.clone(),
            ready: flow.start,
            injected: Vec::new(),
            delivered: 0,
        };
        Self {
            flows: flows.iter().map(state).collect(),
            hosts: by_host,
            chosen: vec![Chosen::default(); hosts],
            records: Vec::new(),
        }
    }
}

impl Workload for Flows {
    #[inline]
    fn needs_delivery(&self) -> bool {
        true
    }

    fn poll<G: Gate>(&mut self, host: HostId, now: Time, gate: &mut G) -> Poll {
        let (flows, first) = &mut self.hosts[host.index()];
        let mut next_ready = None;
        let before = self.chosen[host.index()];
        let others = (0..flows.len()).map(|step| (*first + step) % flows.len());
        let others = others.filter(|&place| !before.contains(place));
        let order = before.iter().map(|(_, place)| place).chain(others);
        for location in order {
            let index = flows[location];
            let state = &mut self.flows[index];
            let sent = state.injected.len() as u64;
            if state.flow.packets == Some(sent) {
                continue;
            }
            if state.ready > now {
                next_ready = Some(next_ready.map_or(state.ready, |at: Time| at.min(state.ready)));
                continue;
            }
            let bytes = u32::try_from(state.flow.payload.as_u64()).unwrap();
            let chosen = &mut self.chosen[host.index()];
            let held = gate.held_lanes();
            if !gate.lane_open(state.flow.sl, bytes) {
                chosen.note(held, gate.held_lanes(), location);
                continue;
            }
            for (lane, place) in before.iter() {
                if place == location {
                    chosen.remove(lane);
                }
            }
            state.injected.push(now);
            state.ready = now + state.flow.gap;
            *first = (location + 1) % flows.len();
            return Poll::Send(Offer {
                behind: 0,
                number: 0,
                queue: 0,
                dst: state.flow.destination,
                bytes,
                sl: state.flow.sl,
                class: u16::try_from(index).unwrap(),
                last: true,
            });
        }
        next_ready.map_or(Poll::Idle, Poll::WaitUntil)
    }

    fn next_change(&self, _: Time) -> Option<Time> {
        None
    }

    fn apply_change(&mut self, _: Time, _: &mut Vec<HostId>) {}

    fn on_delivered(
        &mut self,
        src: HostId,
        offer: &Offer,
        _: Transit,
        now: Time,
        _: &mut Vec<HostId>,
    ) {
        let flow = usize::from(offer.class);
        let state = &mut self.flows[flow];
        assert_eq!(
            (src, offer.dst),
            (state.flow.source, state.flow.destination)
        );
        assert_eq!(u64::from(offer.bytes), state.flow.payload.as_u64());
        self.records.push(Record {
            flow,
            sequence: state.delivered,
            injected: state.injected[state.delivered as usize],
            done: now,
        });
        state.delivered += 1;
    }
}
