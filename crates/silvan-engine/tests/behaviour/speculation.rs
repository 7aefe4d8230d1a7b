//! Packets that switches discard because the scheme says so, and that their sources send again.

use proptest::prelude::*;
use silvan_cc::hooks::{
    Flow as QueuePair, Grants, PortVl, QueueView, SourceControl, SwitchControl,
};
use silvan_core::stream::SplitMix64;
use silvan_core::{Bytes, Span, Time};
use silvan_engine::{CrossbarFeed, OutputBuffer, Queueing};

use crate::common::{MTU, Routed, at, cable, ddr_config, two_lanes};
use crate::script::Flow;

/// Discards one packet in so many, at random, and numbers the discards.
#[derive(Debug)]
struct Discarder {
    one_in: u32,
    stream: SplitMix64,
    discarded: u32,
    late: u32,
}

impl SwitchControl for Discarder {
    fn needs_select_discard(&self) -> bool {
        true
    }

    fn select_discard(
        &mut self,
        now: Time,
        _: PortVl,
        _: QueueView,
        _: QueuePair,
        _: u32,
        sent: Time,
        waited: bool,
    ) -> Option<u32> {
        assert!(sent <= now);
        if !self.stream.one_in(self.one_in) {
            return None;
        }
        self.discarded += 1;
        self.late += u32::from(waited);
        Some(self.discarded)
    }
}

/// Sends discarded packets again after a time, and notes what it gets to know.
#[derive(Debug)]
struct Again {
    wait: Span,
    notices: Vec<u32>,
    started: u32,
}

impl SourceControl for Again {
    fn needs_started(&self) -> bool {
        true
    }

    fn on_started(&mut self, _: Time, _: QueuePair, _: u32, _: u32, _: &mut Grants) {
        self.started += 1;
    }

    fn on_nack(
        &mut self,
        _: Time,
        _: QueuePair,
        payload: u32,
        notice: u32,
        _: &mut Grants,
    ) -> bool {
        assert!(payload <= MTU);
        self.notices.push(notice);
        false
    }

    fn resend_time(&mut self, _: Time, _: QueuePair, _: u32, _: u32, nacked: Time) -> Time {
        nacked + self.wait
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Each packet arrives once, credits and bytes add up, and each source learns of its discards, for any discards.
    #[test]
    fn what_is_discarded_is_sent_again(
        one_in in 2_u32..12,
        wait_us in 0_u64..30,
        queueing in prop::sample::select(vec![Queueing::Voq, Queueing::Fifo]),
        output_buffer in any::<bool>(),
        lanes in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut config = ddr_config();
        config.switch.queueing = queueing;
        if output_buffer {
            config.switch.output_buffer = Some(OutputBuffer {
                size: Bytes::from_bytes(8_192),
                speedup_percent: 150,
                crossbar: CrossbarFeed::FullRate,
            });
        }
        if lanes {
            config = two_lanes(config);
        }
        let kind = cable("4x DDR 2 m");
        let routed = Routed::row(&[&[kind, kind], &[kind, kind]], &[kind]);
        let mut flows: Vec<Flow> = [(0, 3), (1, 3), (2, 3), (0, 2)]
            .map(|(source, destination)| Flow { sizes: vec![MTU, 100], ..Flow::burst(source, destination, 60) })
            .to_vec();
        flows[1].sl = u8::from(lanes);
        let discarder = Discarder { one_in, stream: SplitMix64::new(seed), discarded: 0, late: 0 };
        let again = Again { wait: Span::from_us(wait_us), notices: Vec::new(), started: 0 };
        let mut engine = routed.controlled(&config, discarder, again, &flows);
        engine.workload_mut().in_order = false;
        for step in 1..=400 {
            engine.run_until(at(Span::from_us(100 * step))).unwrap();
            engine.audit().unwrap();
        }
        let (switch, source) = (engine.switch_control(), engine.source_control());
        prop_assert!(switch.discarded > 0 && switch.late > 0);
        prop_assert_eq!(source.started, 4 * 60 + switch.discarded);
        let mut notices = source.notices.clone();
        notices.sort_unstable();
        prop_assert_eq!(notices, (1..=switch.discarded).collect::<Vec<u32>>());
        for (flow, arrived) in engine.workload().arrived.iter().enumerate() {
            let payload: u64 = arrived.iter().map(|bytes| u64::from(*bytes)).sum();
            prop_assert_eq!(arrived.len(), 60);
            prop_assert_eq!(payload, engine.workload().payload(flow, 60));
        }
    }
}
