//! A mark halves a flow's rate, an unmarked acknowledgement raises it by a step.
//!
//! The guide's page "How to add a congestion-control scheme" builds this scheme.

use silvan_cc::flow_table::{FlowTable, key};
use silvan_cc::hooks::{
    Feedback, Flow, FlowLimit, PacketView, PortVl, QueueView, SettingChange, Settings,
    SourceControl, SwitchControl, UnknownSetting,
};
use silvan_cc::parameters;
use silvan_cc::schemes::{Bounds, Defaults, Scheme, SchemeError, Search, Setup};
use silvan_core::{Bytes, HostId, Span, Time};

parameters! {
    /// Marks from a queue length on; a mark halves a flow's rate.
    pub struct Half {
        /// Queue of an output from which on packets are marked.
        threshold: Bytes {
            default: Bytes::from_bytes(10_000),
            search: Search::SCALED,
        }
        /// Amount that an acknowledgement without a mark adds to a flow's rate, as a part of its link's.
        step: f64 {
            default: 0.001,
            bounds: Bounds::PART,
            search: Search::numbers(0.0001, 0.1).log(),
        }
    }
}

impl Scheme for Half {
    type Switch = Marker;
    type Source = SlowedFlows;

    // Every packet is acknowledged, and its acknowledgement carries the mark back.
    const DEFAULTS: Defaults = Defaults::ACK_PER_PACKET;

    fn idle_reason(&self) -> Option<String> {
        Some(format!("no queue reached threshold, {}", self.threshold))
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(Marker, SlowedFlows), SchemeError> {
        let marker = Marker {
            threshold: self.threshold.as_u64(),
        };
        let rates = SlowedFlows {
            step: self.step,
            flows: vec![FlowTable::new(); setup.hosts],
        };
        Ok((marker, rates))
    }
}

/// Control of the switches.
#[derive(Clone, Debug)]
pub struct Marker {
    threshold: u64,
}

impl SwitchControl for Marker {
    fn on_queued(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) {}

    fn on_departure(&mut self, _: Time, _: PortVl, queue: QueueView, _: PacketView) -> bool {
        u64::from(queue.queued_bytes) >= self.threshold
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Slow {
    rate: f64,
    next: Time,
}

/// Control of the hosts, with the slow flows of each host.
#[derive(Clone, Debug)]
pub struct SlowedFlows {
    step: f64,
    flows: Vec<FlowTable<Slow>>,
}

impl SourceControl for SlowedFlows {
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        let slow = self.flows[flow.source.index()].get(key(flow));
        slow.map_or(now, |slow| slow.next)
    }

    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, _: u32) {
        if let Some(slow) = self.flows[flow.source.index()].get_mut(key(flow)) {
            let gap = wire_time.as_ps() as f64 / slow.rate;
            slow.next = now.saturating_add(Span::from_ps(gap as u64));
        }
    }

    fn on_feedback(&mut self, now: Time, flow: Flow, feedback: Feedback) -> bool {
        let flows = &mut self.flows[flow.source.index()];
        let marked = match feedback {
            Feedback::Cnp => true,
            Feedback::Ack { becn, .. } => becn,
        };
        match (flows.get_mut(key(flow)), marked) {
            (None, false) => {}
            (None, true) => {
                let slow = Slow {
                    rate: 0.5,
                    next: now,
                };
                flows.insert(key(flow), slow, |_, _| true);
            }
            (Some(slow), true) => slow.rate = (slow.rate / 2.0).max(1.0 / 256.0),
            (Some(slow), false) => {
                slow.rate += self.step;
                if slow.rate >= 1.0 {
                    flows.remove(key(flow));
                }
            }
        }
        // A gap that runs is not changed, so the host need not be polled again.
        false
    }

    fn flow_limits(&self, _: Time, host: HostId) -> Vec<FlowLimit> {
        FlowLimit::of_table(&self.flows[host.index()], |key, slow| {
            FlowLimit::of_rate(key, slow.rate)
        })
    }
}

// No manager changes anything of it during a run.
impl Settings for Marker {
    fn apply(&mut self, _: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        Err(UnknownSetting(change.clone()))
    }
}

impl Settings for SlowedFlows {
    fn apply(&mut self, _: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        Err(UnknownSetting(change.clone()))
    }
}

#[cfg(test)]
mod tests {
    use silvan_core::{Rate, Sl};

    use super::*;

    #[test]
    fn a_mark_halves_and_acknowledgements_restore() {
        let setup = Setup {
            ports: &[],
            data_vls: 1,
            hosts: 2,
            link_rate: Rate::from_bits_per_sec(100_000_000_000).expect("a rate above zero"),
            mtu: 2_048,
            routes_use_lanes: false,
            has_alternatives: false,
            waits_once: true,
            seed: 1,
        };
        let half = Half {
            step: 0.25,
            ..Half::default()
        };
        let (_, mut rates) = half.build(&setup).expect("it suits any fabric");
        let flow = Flow {
            source: HostId::new(0),
            destination: HostId::new(1),
            sl: Sl::ZERO,
            queue: 0,
        };
        let now = Time::ZERO + Span::from_us(1);
        let packet_time = Span::from_ns(100);
        let ack = |becn| Feedback::Ack { bytes: 2_048, becn };

        rates.on_feedback(now, flow, ack(true));
        rates.on_send(now, flow, packet_time, 2_048);
        assert_eq!(rates.release(now, flow), now + packet_time * 2);
        rates.on_feedback(now, flow, ack(true));
        rates.on_send(now, flow, packet_time, 2_048);
        assert_eq!(rates.release(now, flow), now + packet_time * 4);
        let limits = rates.flow_limits(now, flow.source);
        let [limit] = limits[..] else {
            panic!("one flow is limited: {limits:?}");
        };
        assert_eq!(
            (limit.destination, limit.rate),
            (Some(flow.destination), 0.25)
        );
        // Three steps of a quarter lead from a quarter to all.
        (0..3).for_each(|_| {
            rates.on_feedback(now, flow, ack(false));
        });
        assert_eq!(rates.release(now, flow), now);
        assert_eq!(rates.flow_limits(now, flow.source), []);
    }
}
