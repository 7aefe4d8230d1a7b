#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::schemes::ib_cc::cct::CctEntry;
use crate::schemes::ib_cc::{AdapterSetting, PortSetting};

const PACKET_TIME: Span = Span::from_ps(1_000);

fn entry(ccti_timer: u16, ccti_increase: u8) -> CongestionEntry {
    CongestionEntry {
        ccti_timer,
        ccti_increase,
        ..CongestionEntry::default()
    }
}

/// Adapters whose table delays by one packet time per step.
fn build(entry: CongestionEntry, limit: u16, level: ControlLevel, hosts: usize) -> IbAdapter {
    let parameters = AdapterParameters {
        entries: [entry; Sl::COUNT],
        level,
        table: CongestionControlTable::linear(1.0, limit).unwrap(),
    };
    IbAdapter::new(&parameters, hosts, 42).unwrap()
}

fn sl(value: u8) -> Sl {
    Sl::try_new(value).unwrap()
}

fn flow(destination: usize, level: u8) -> Flow {
    Flow {
        source: HostId::new(0),
        destination: HostId::new(destination),
        sl: sl(level),
        queue: 0,
    }
}

fn at(ps: u64) -> Time {
    Time::from_ps(ps)
}

/// gran2012, section II.2, event by event, with a stopped timer.
#[test]
fn becns_raise_the_index_and_the_delay_follows() {
    let mut adapter = build(entry(0, 3), 7, ControlLevel::QueuePair, 4);
    let (throttled, other) = (flow(1, 0), flow(2, 0));

    // No BECN, no delay.
    adapter.on_send(at(0), throttled, PACKET_TIME, 1);
    assert_eq!(adapter.release(at(0), throttled), at(0));

    // "When a new BECN arrives, the CCTI of the flow is increased by CCTI_Increase"; the delay
    // that runs is that of the packet already sent.
    assert!(!adapter.on_feedback(at(100), throttled, Feedback::Cnp));
    assert_eq!(adapter.ccti(at(100), throttled), 3);
    assert_eq!(adapter.release(at(100), throttled), at(0));

    // "The delay between consecutive packets ... relative to the packet length": 3 packet times after the packet's end,
    // twice that for a packet of double length.
    adapter.on_send(at(1_000), throttled, PACKET_TIME, 1);
    assert_eq!(adapter.release(at(1_000), throttled), at(1_000 + 4 * 1_000));
    adapter.on_send(at(5_000), throttled, PACKET_TIME * 2, 1);
    assert_eq!(adapter.release(at(5_000), throttled), at(5_000 + 4 * 2_000));

    // A BECN in an acknowledgement counts, an acknowledgement without does not.
    let ack = |becn| Feedback::Ack { bytes: 2_048, becn };
    adapter.on_feedback(at(6_000), throttled, ack(false));
    assert_eq!(adapter.ccti(at(6_000), throttled), 3);
    adapter.on_feedback(at(6_000), throttled, ack(true));
    assert_eq!(adapter.ccti(at(6_000), throttled), 6);
    assert_eq!(
        adapter.release(at(6_000), throttled),
        at(13_000),
        "a running delay stays"
    );

    // "The upper bound of the CCTI is given by CCTI_Limit."
    adapter.on_feedback(at(7_000), throttled, Feedback::Cnp);
    assert_eq!(adapter.ccti(at(7_000), throttled), 7);

    // Other queue pairs of the host are free.
    adapter.on_send(at(8_000), other, PACKET_TIME, 1);
    assert_eq!(adapter.release(at(8_000), other), at(8_000));
    assert_eq!(adapter.ccti(at(8_000), other), 0);

    assert_eq!(adapter.throttled_flows(at(8_000), HostId::new(0)), 1);
    let counters = AdapterCounters {
        becns: 3,
        max_ccti: 7,
    };
    assert_eq!(adapter.counters(HostId::new(0)), counters);
    assert_eq!(adapter.counters(HostId::new(1)), AdapterCounters::default());
}

/// gran2012, section II.2: "Each time the timer expires, the CCTI is decremented by one for all associated flows". Each
/// SL has a separate timer; at zero there is no delay.
#[test]
fn the_timer_lowers_all_flows_of_its_sl() {
    let mut adapter = build(entry(150, 2), 127, ControlLevel::QueuePair, 4);
    let period = 150 * 1_024_000;
    let flows = [flow(1, 0), flow(2, 0), flow(1, 5)];
    let slow = SettingChange::Adapter {
        sl: sl(5),
        setting: AdapterSetting::CctiTimer(0),
    };
    adapter.apply(at(0), &slow).unwrap();

    let phase = adapter.service_levels[0].phase.as_ps();
    assert!(phase < period);
    let start = phase + 1;
    for flow in flows {
        adapter.on_feedback(at(start), flow, Feedback::Cnp);
    }
    let cctis = |adapter: &IbAdapter, ps| flows.map(|flow| adapter.ccti(at(ps), flow));
    // The expiry at `phase + period` acts on what comes after it.
    assert_eq!(cctis(&adapter, phase + period), [2, 2, 2]);
    assert_eq!(cctis(&adapter, phase + period + 1), [1, 1, 2]);
    assert_eq!(cctis(&adapter, phase + 2 * period + 1), [0, 0, 2]);
    assert_eq!(cctis(&adapter, phase + 99 * period + 1), [0, 0, 2]);

    adapter.on_send(at(phase + 2 * period + 1), flows[0], PACKET_TIME, 1);
    assert_eq!(
        adapter.release(at(phase + 2 * period + 1), flows[0]),
        at(phase + 2 * period + 1)
    );
    assert_eq!(
        adapter.flows[0].len(),
        2,
        "a flow that is free again leaves no state"
    );
}

/// Phases are spread over the period, by host and SL, and come from the seed.
#[test]
fn timer_phases_are_spread() {
    let adapter = build(entry(150, 1), 127, ControlLevel::QueuePair, 400);
    let period = 150.0 * 1_024_000.0;
    let phases = adapter
        .service_levels
        .iter()
        .map(|level| level.phase.as_ps() as f64 / period);
    let mean = phases.sum::<f64>() / 6_400.0;
    // Uniform on [0, 1): mean 1/2, variance 1/12; five standard deviations of the mean of 6400.
    assert!(
        (mean - 0.5).abs() < 5.0 * (1.0f64 / 12.0 / 6_400.0).sqrt(),
        "{mean}"
    );

    let parameters = AdapterParameters {
        entries: [entry(150, 1); Sl::COUNT],
        level: ControlLevel::QueuePair,
        table: CongestionControlTable::linear(1.0, 1).unwrap(),
    };
    let phase = |seed| IbAdapter::new(&parameters, 1, seed).unwrap().service_levels[0].phase;
    assert_eq!(phase(7), phase(7));
    assert_ne!(phase(7), phase(8));
}

/// gran2012, section II.2: at SL level a BECN for one flow affects "all traffic flows within the
/// same SL at the HCA".
#[test]
fn at_sl_level_all_destinations_share_one_index() {
    let mut adapter = build(entry(0, 1), 7, ControlLevel::ServiceLevel, 100);
    adapter.on_feedback(at(0), flow(70, 3), Feedback::Cnp);
    adapter.on_feedback(at(0), flow(99, 3), Feedback::Cnp);
    assert_eq!(adapter.ccti(at(0), flow(1, 3)), 2);
    adapter.on_send(at(0), flow(5, 3), PACKET_TIME, 1);
    assert_eq!(adapter.release(at(0), flow(98, 3)), at(3_000));
    assert_eq!(adapter.release(at(0), flow(98, 4)), at(0));
    assert_eq!(adapter.throttled_flows(at(0), HostId::new(0)), 1);
}

/// CCTI_Min is a floor under every flow, also under one that never saw a BECN.
#[test]
fn ccti_min_delays_every_flow() {
    let floor = CongestionEntry {
        ccti_min: 2,
        ..entry(1, 1)
    };
    let mut adapter = build(floor, 7, ControlLevel::QueuePair, 4);
    adapter.on_send(at(0), flow(1, 0), PACKET_TIME, 1);
    assert_eq!(adapter.release(at(0), flow(1, 0)), at(3_000));
    assert_eq!(adapter.release(at(0), flow(2, 0)), at(0));

    adapter.on_feedback(at(10), flow(1, 0), Feedback::Cnp);
    assert_eq!(adapter.ccti(at(10), flow(1, 0)), 3);
    assert_eq!(adapter.ccti(at(1_000_000_000), flow(1, 0)), 2);
    assert_eq!(
        adapter.throttled_flows(at(1_000_000_000), HostId::new(0)),
        0
    );

    // Raised while running it lifts those below.
    let higher = CongestionEntry {
        ccti_min: 5,
        ..floor
    };
    adapter
        .set_entry(at(1_000_000_000), HostId::new(0), sl(0), higher)
        .unwrap();
    assert_eq!(adapter.ccti(at(1_000_000_000), flow(1, 0)), 5);
    assert_eq!(adapter.ccti(at(1_000_000_000), flow(3, 0)), 5);
}

/// Annex A10, CongestionLog: a BECN at or above Trigger_Threshold is an event; 0 logs nothing.
#[test]
fn strong_throttling_is_logged() {
    let mut adapter = build(entry(0, 1), 5, ControlLevel::QueuePair, 9);
    let loud = CongestionEntry {
        trigger_threshold: 3,
        ..entry(0, 1)
    };
    adapter
        .set_entry(at(0), HostId::new(0), sl(2), loud)
        .unwrap();
    for ps in 1..=6 {
        adapter.on_feedback(at(ps), flow(8, 2), Feedback::Cnp);
        adapter.on_feedback(at(ps), flow(8, 0), Feedback::Cnp);
    }
    let log = adapter.log(HostId::new(0));
    assert_eq!((log.count(), log.sl_map()), (4, 1 << 2));
    let event = |ps, ccti| ThresholdEvent {
        at: at(ps),
        destination: HostId::new(8),
        sl: sl(2),
        ccti,
    };
    let logged: Vec<ThresholdEvent> = log.newest_first().copied().collect();
    assert_eq!(logged, [event(6, 5), event(5, 5), event(4, 4), event(3, 3)]);
    assert_eq!(adapter.log(HostId::new(1)).count(), 0);
}

#[test]
fn settings_of_switches_and_impossible_ones_are_errors() {
    let mut adapter = build(entry(1, 1), 7, ControlLevel::QueuePair, 2);
    let change = SettingChange::Port {
        port: silvan_core::PortId::new(0),
        setting: PortSetting::MarkingRate(1),
    };
    assert_eq!(
        adapter.apply(at(0), &change),
        Err(UnknownSetting(change.clone()))
    );
    let host = HostId::new(2);
    assert_eq!(
        adapter.set_entry(at(0), host, sl(0), entry(1, 1)),
        Err(ParameterError::NoSuchHost { host })
    );
    assert_eq!(adapter.entry(host, sl(0)), None);
    let high = CongestionEntry {
        ccti_min: 8,
        ..entry(1, 1)
    };
    assert_eq!(
        adapter.set_entry(at(0), HostId::new(0), sl(0), high),
        Err(ParameterError::MinAboveLimit { min: 8, limit: 7 })
    );
    assert_eq!(adapter.entry(HostId::new(0), sl(0)), Some(entry(1, 1)));
    let increase = SettingChange::Adapter {
        sl: sl(1),
        setting: AdapterSetting::CctiIncrease(9),
    };
    adapter.apply(at(0), &increase).unwrap();
    for host in [0, 1].map(HostId::new) {
        assert_eq!(adapter.entry(host, sl(1)), Some(entry(1, 9)));
        assert_eq!(adapter.entry(host, sl(0)), Some(entry(1, 1)));
    }
}

/// Uniform traffic that meets congestion everywhere touches every destination in turn, but holds
/// memory only for those that are throttled at the time.
#[test]
fn memory_follows_the_throttled_flows() {
    let hosts = 5_000;
    let mut adapter = build(entry(1, 1), 127, ControlLevel::QueuePair, hosts);
    for n in 0..hosts {
        // With one BECN per timer period, each flow is free again one period later.
        adapter.on_feedback(at(n as u64 * 1_024_000), flow(n, 0), Feedback::Cnp);
        assert!(
            adapter.flows[0].len() <= 8,
            "{} entries",
            adapter.flows[0].len()
        );
    }
}

/// A plain model of the rules, executed expiry by expiry; every flow keeps its state to the end.
struct Eager {
    entries: BTreeMap<u8, CongestionEntry>,
    next_expiry: BTreeMap<u8, Option<u64>>,
    /// By destination and queue, unless shared, and service level.
    flows: BTreeMap<(usize, u8, u16), (u16, u64)>,
    shared: bool,
    limit: u16,
}

impl Eager {
    fn key(&self, flow: Flow) -> (usize, u8, u16) {
        let (destination, queue) = match self.shared {
            true => (0, 0),
            false => (flow.destination.index(), flow.queue),
        };
        (destination, flow.sl.as_u8(), queue)
    }

    fn flow(&mut self, flow: Flow) -> &mut (u16, u64) {
        let key = self.key(flow);
        let floor = u16::from(self.entries[&key.1].ccti_min);
        self.flows.entry(key).or_insert((floor, 0))
    }

    /// Plays all expiries before `now`.
    fn advance(&mut self, now: u64) {
        for (&sl, next) in &mut self.next_expiry {
            let entry = self.entries[&sl];
            while let Some(expiry) = *next
                && expiry < now
            {
                for (key, (ccti, _)) in &mut self.flows {
                    if key.1 == sl && *ccti > u16::from(entry.ccti_min) {
                        *ccti -= 1;
                    }
                }
                *next = Some(expiry + u64::from(entry.ccti_timer) * 1_024_000);
            }
        }
    }

    fn set(&mut self, now: u64, sl: u8, entry: CongestionEntry, offset: u32) {
        let period = u64::from(entry.ccti_timer) * 1_024_000;
        let phase = u64::from(offset) * u64::from(entry.ccti_timer);
        let mut expiry = phase;
        while period != 0 && expiry < now {
            expiry += period;
        }
        self.next_expiry.insert(sl, (period != 0).then_some(expiry));
        for (key, (ccti, _)) in &mut self.flows {
            if key.1 == sl {
                *ccti = (*ccti).max(u16::from(entry.ccti_min));
            }
        }
        self.entries.insert(sl, entry);
    }

    fn becn(&mut self, flow: Flow) {
        let increase = u16::from(self.entries[&flow.sl.as_u8()].ccti_increase);
        let limit = self.limit;
        let (ccti, _) = self.flow(flow);
        *ccti = (*ccti + increase).min(limit);
    }

    fn send(&mut self, now: u64, flow: Flow, wire_time: u64) {
        let (ccti, release) = self.flow(flow);
        // Without a delay only the link holds the flow back.
        *release = match u64::from(*ccti) {
            0 => 0,
            steps => now + wire_time + wire_time * steps,
        };
    }
}

#[derive(Clone, Debug)]
enum Step {
    Becn(Flow),
    Send(Flow, u64),
    Set(u8, CongestionEntry),
}

fn step(queues: u16) -> impl Strategy<Value = Step> {
    // Two SLs of many destinations, so that tables grow, sweep and share bits of the bitmap.
    let destination = prop_oneof![0usize..4, 0usize..130];
    let flow = (destination, 0u8..2, 0..queues).prop_map(|(to, level, queue)| Flow {
        queue,
        ..flow(to, level)
    });
    prop_oneof![
        8 => flow.clone().prop_map(Step::Becn),
        8 => (flow, 1u64..400_000).prop_map(|(flow, time)| Step::Send(flow, time)),
        1 => (0u8..2, 0u16..4, 0u8..5).prop_map(|(sl, timer, increase)| {
            Step::Set(sl, entry(timer, increase))
        }),
    ]
}

proptest! {
    /// Oracle: [`Eager`]. Lazy counting, the sparse table, its sweeps and the bitmap must not be
    /// visible in any CCTI or release.
    #[test]
    fn lazy_timers_equal_eager_ones(
        shared: bool,
        ccti_min in prop_oneof![3 => Just(0u8), 1 => 1u8..4],
        (queues, steps) in (1u16..4).prop_flat_map(|queues| {
            let steps = prop::collection::vec((0u64..3_000_000, step(queues)), 0..250);
            (Just(queues), steps)
        }),
    ) {
        let level = if shared { ControlLevel::ServiceLevel } else { ControlLevel::QueuePair };
        let first = CongestionEntry { ccti_min, ..entry(2, 1) };
        let mut lazy = build(first, 40, level, 130);
        let offset = |lazy: &IbAdapter, sl: u8| lazy.service_levels[usize::from(sl)].offset;
        let mut eager = Eager {
            entries: BTreeMap::from([(0, first), (1, first)]),
            next_expiry: BTreeMap::new(),
            flows: BTreeMap::new(),
            shared,
            limit: 40,
        };
        for sl in [0, 1] {
            eager.set(0, sl, first, offset(&lazy, sl));
        }
        let mut now = 0;
        for (wait, step) in steps {
            now += wait;
            eager.advance(now);
            match step {
                Step::Becn(flow) => {
                    eager.becn(flow);
                    lazy.on_feedback(at(now), flow, Feedback::Cnp);
                }
                Step::Send(flow, time) => {
                    eager.send(now, flow, time);
                    lazy.on_send(at(now), flow, Span::from_ps(time), 1);
                }
                Step::Set(level, entry) => {
                    let entry = CongestionEntry { ccti_min, ..entry };
                    eager.set(now, level, entry, offset(&lazy, level));
                    lazy.set_entry(at(now), HostId::new(0), sl(level), entry).unwrap();
                }
            }
            for (&(to, sl, queue), &(ccti, release)) in &eager.flows {
                let flow = Flow { queue, ..flow(to, sl) };
                prop_assert_eq!(lazy.ccti(at(now), flow), ccti, "CCTI of {}, SL {}", to, sl);
                let said = lazy.release(at(now), flow).as_ps().max(now);
                prop_assert_eq!(said, release.max(now), "release of {}, SL {}", to, sl);
            }
            for host in 0..130 {
                let (word, bit) = lazy.active_bit(0, host << 4);
                let has_state = lazy.flows[0]
                    .iter()
                    .any(|(key, _)| lazy.destination(key) == host as usize);
                let has_bit = lazy.active[word] & bit != 0;
                prop_assert!(has_bit || !has_state, "bit of host {}", host);
                prop_assert!(queues > 1 || has_bit == has_state, "bit of host {}", host);
            }
        }
    }
}

/// Each adapter has the table that it was given, from its next packet on.
#[test]
fn adapters_take_tables_and_levels_of_their_own() {
    let mut adapter = build(entry(0, 3), 7, ControlLevel::QueuePair, 2);
    let there = Flow {
        source: HostId::new(1),
        ..flow(0, 0)
    };
    for flow in [flow(1, 0), there] {
        adapter.on_feedback(at(0), flow, Feedback::Cnp);
        adapter.on_feedback(at(0), flow, Feedback::Cnp);
        assert_eq!(adapter.ccti(at(0), flow), 6);
    }
    // Entry 0 may delay in a device; a limit below the index lowers it.
    let entries: Vec<_> = (0..5)
        .map(|step| CctEntry::try_new(0, 10 + step).unwrap())
        .collect();
    let table = CongestionControlTable::from_device(entries, 4).unwrap();
    adapter.set_table(at(10), HostId::new(0), table).unwrap();
    assert_eq!(adapter.ccti(at(10), flow(1, 0)), 4);
    assert_eq!(adapter.ccti(at(10), there), 6);
    for (flow, times) in [(flow(1, 0), 14), (flow(1, 1), 10), (there, 6)] {
        adapter.on_send(at(1_000), flow, PACKET_TIME, 1);
        let release = at(1_000 + (1 + times) * PACKET_TIME.as_ps());
        assert_eq!(adapter.release(at(1_000), flow), release);
    }
    // At SL level the flows of this host are one flow, which starts again; the other host's flows are separate.
    adapter
        .set_level(HostId::new(1), ControlLevel::ServiceLevel)
        .unwrap();
    assert_eq!(adapter.ccti(at(20_000), there), 0);
    adapter.on_feedback(at(20_000), there, Feedback::Cnp);
    let other = Flow {
        destination: HostId::new(1),
        ..there
    };
    assert_eq!(adapter.ccti(at(20_000), other), 3);
    assert_eq!(adapter.ccti(at(20_000), flow(1, 0)), 4);
    // Setting what is set changes nothing.
    adapter
        .set_level(HostId::new(1), ControlLevel::ServiceLevel)
        .unwrap();
    assert_eq!(adapter.ccti(at(20_000), there), 3);
    assert!(
        adapter
            .set_level(HostId::new(2), ControlLevel::QueuePair)
            .is_err()
    );
}

/// Limits are the index of each flow above CCTI 0, and the part of the link's rate with the table's delay between
/// packets. At SL level one limit holds for all destinations.
#[test]
fn limits_are_those_of_the_flows() {
    let host = HostId::new(0);
    let mut adapter = build(entry(150, 3), 7, ControlLevel::QueuePair, 4);
    assert_eq!(adapter.flow_limits(at(0), host), []);
    for flow in [flow(3, 0), flow(1, 2), flow(1, 2)] {
        adapter.on_feedback(at(0), flow, Feedback::Cnp);
    }
    let limit = |destination: Option<usize>, level: u8, ccti: u16| FlowLimit {
        destination: destination.map(HostId::new),
        sl: sl(level),
        ccti,
        rate: 1.0 / (1.0 + f64::from(ccti)),
    };
    let limits = adapter.flow_limits(at(0), host);
    assert_eq!(limits, [limit(Some(1), 2, 6), limit(Some(3), 0, 3)]);
    assert_eq!(adapter.flow_limits(at(0), HostId::new(1)), []);
    // Three to four expiries later the flow of three is free.
    let later = at(3 * 150 * 1_024_000 + 150 * 1_024_000 / 2);
    let index = adapter.ccti(later, flow(1, 2));
    let free = adapter.ccti(later, flow(3, 0)) == 0;
    let limits = adapter.flow_limits(later, host);
    assert_eq!(limits[0], limit(Some(1), 2, index));
    assert_eq!(limits.len(), if free { 1 } else { 2 });

    let mut adapter = build(entry(150, 3), 7, ControlLevel::ServiceLevel, 4);
    for destination in 1..3 {
        adapter.on_feedback(at(0), flow(destination, 5), Feedback::Cnp);
    }
    assert_eq!(adapter.flow_limits(at(0), host), [limit(None, 5, 6)]);
}
