//! Input buffers that are served in the order of arrival, the oldest packet overtaken so often and no
//! more.

use std::collections::{BTreeMap, VecDeque};

use silvan_cc::hooks::{NoControl, PacketView, PortVl, QueueView, SwitchControl};
use silvan_core::{PortId, Span, Time};
use silvan_engine::{Arbitration, Queueing};

use crate::common::{Routed, at, cable, ddr_config, room};
use crate::script::Flow;

/// Plays an input buffer along: every packet in the order of its arrival.
#[derive(Debug, Default)]
struct Buffer {
    waiting: VecDeque<(Time, PortVl)>,
    /// Number of times that the first packet has been overtaken.
    passed: u32,
}

#[derive(Debug, Default)]
struct Buffers {
    of_input: BTreeMap<PortId, Buffer>,
    /// The most that any packet has been overtaken.
    most: u32,
    departures: u32,
}

impl SwitchControl for Buffers {
    fn on_queued(&mut self, now: Time, output: PortVl, _: QueueView, packet: PacketView) {
        let buffer = self.of_input.entry(packet.input).or_default();
        buffer.waiting.push_back((now, output));
    }

    fn on_departure(&mut self, _: Time, output: PortVl, _: QueueView, packet: PacketView) -> bool {
        let buffer = self.of_input.entry(packet.input).or_default();
        // Without a limit a packet may pass straight through, past all waiting packets.
        let place = buffer.waiting.iter().position(|entry| entry.1 == output);
        let is_first = place.map_or(buffer.waiting.is_empty(), |place| place == 0);
        buffer.waiting.remove(place.unwrap_or(usize::MAX));
        buffer.passed = if is_first { 0 } else { buffer.passed + 1 };
        self.most = self.most.max(buffer.passed);
        self.departures += 1;
        false
    }
}

/// Five hosts send to host 5, which takes one packet at a time. Hosts 0 and 1 send to 6 and 7 as
/// well, past their packets for 5.
fn most_overtaken(queueing: Queueing, limit: Option<u8>) -> u32 {
    let mut config = ddr_config();
    config.switch.buffer = Some(room(8));
    config.switch.arbitration = Arbitration::OldestFirst;
    config.switch.queueing = queueing;
    config.switch.bypass_limit = limit;
    let pairs = [(0, 5), (1, 5), (2, 5), (3, 5), (4, 5), (0, 6), (1, 7)];
    let flows: Vec<Flow> = pairs
        .into_iter()
        .zip(0..)
        .map(|((from, to), index)| Flow {
            start: at(Span::from_ns(137 * index)),
            ..Flow::burst(from, to, 300)
        })
        .collect();
    let fabric = Routed::star(&[cable("4x SDR 2 m"); 8]);
    let mut engine = fabric.controlled(&config, Buffers::default(), NoControl, &flows);
    for step in 1..=100 {
        engine.run_until(at(Span::from_us(50 * step))).unwrap();
        engine.audit().unwrap();
    }
    assert_eq!(engine.switch_control().departures, 300 * 7);
    engine.switch_control().most
}

#[test]
fn the_oldest_packet_is_overtaken_so_often_and_no_more() {
    assert_eq!(most_overtaken(Queueing::Voq, Some(1)), 1);
    assert_eq!(most_overtaken(Queueing::Voq, Some(2)), 2);
    assert!(most_overtaken(Queueing::Voq, None) > 2);
}

#[test]
fn no_packet_is_overtaken_in_a_fifo() {
    assert_eq!(most_overtaken(Queueing::Fifo, None), 0);
}
