//! Test schemes behind the hooks: what the engine notifies them of is true, and what they request
//! happens.

use std::collections::BTreeMap;

use silvan_cc::hooks::{
    Feedback, Flow as QueuePair, NoControl, PacketView, PortVl, QueueView, Resident, Settings,
    SourceControl, SwitchControl,
};
use silvan_core::{HostId, PortId, Sl, Span, Time, Vl};
use silvan_engine::{BecnCarrier, Engine, EngineConfig, FeedbackParams, SwitchParams};

use crate::common::{
    MTU, Routed, WIRE, at, blocks, cable, ddr_config, mbit, past_fabric, propagation, room, ser,
    through_fabric,
};
use crate::script::{Flow, Script};

/// Packets to mark when an input buffer is full.
#[derive(Clone, Copy, Debug)]
enum Target {
    Nothing,
    Input,
    /// All that waits for this output anywhere.
    Output(PortId),
}

/// A scheme that reads the packets of the switch whenever an input buffer is full.
#[derive(Debug)]
struct Watcher {
    target: Target,
    /// Bytes that wait for each Port VL, from the calls for arrivals and departures.
    queued: BTreeMap<u32, u64>,
    /// Packets that wait, by input and output.
    waiting: BTreeMap<(PortId, u32), u32>,
    full: Vec<(Time, PortId)>,
    /// Packets whose marking was requested.
    requested: u64,
}

impl Watcher {
    fn new(target: Target) -> Self {
        Self {
            target,
            queued: BTreeMap::new(),
            waiting: BTreeMap::new(),
            full: Vec::new(),
            requested: 0,
        }
    }
}

impl SwitchControl for Watcher {
    #[inline]
    fn needs_buffer_full(&self) -> bool {
        true
    }

    fn on_queued(&mut self, _: Time, output: PortVl, queue: QueueView, packet: PacketView) {
        let bytes = self.queued.entry(output.0).or_default();
        *bytes += u64::from(packet.wire_bytes);
        assert_eq!(*bytes, u64::from(queue.queued_bytes));
        *self.waiting.entry((packet.input, output.0)).or_default() += 1;
    }

    fn on_departure(
        &mut self,
        _: Time,
        output: PortVl,
        queue: QueueView,
        packet: PacketView,
    ) -> bool {
        let bytes = self.queued.entry(output.0).or_default();
        if *bytes == 0 {
            // The packet passes without waiting, and is alone.
            assert_eq!(queue.queued_bytes, packet.wire_bytes);
        } else {
            assert_eq!(*bytes, u64::from(queue.queued_bytes));
            *bytes -= u64::from(packet.wire_bytes);
            *self.waiting.get_mut(&(packet.input, output.0)).unwrap() -= 1;
        }
        false
    }

    fn on_buffer_full<R: Resident>(&mut self, now: Time, input: PortId, vl: Vl, resident: &mut R) {
        self.full.push((now, input));
        let (occupied, capacity) = (
            resident.occupied_blocks(input, vl),
            resident.capacity_blocks(input, vl),
        );
        assert!(u64::from(capacity - occupied) < blocks(MTU));
        let mut outputs = Vec::new();
        resident.outputs_of(input, vl, &mut |output| outputs.push(output));
        let expected: Vec<_> = self
            .waiting
            .iter()
            .filter(|&(&(from, _), &count)| from == input && count > 0)
            .map(|(&(_, output), _)| PortId::new(output as usize))
            .collect();
        assert_eq!(outputs, expected);
        for output in outputs {
            let packets = resident.queued_packets(output, vl);
            let bytes = self.queued[&u32::try_from(output.index()).unwrap()];
            assert_eq!(u64::from(packets) * WIRE, bytes);
        }
        match self.target {
            Target::Nothing => {}
            Target::Input => {
                let of_input = self.waiting.iter().filter(|((from, _), _)| *from == input);
                self.requested += of_input.map(|(_, &count)| u64::from(count)).sum::<u64>();
                resident.mark_input(input, vl);
            }
            Target::Output(output) => {
                self.requested += u64::from(resident.queued_packets(output, vl));
                resident.mark_output(output, vl);
            }
        }
    }
}

/// Hosts 0, 1 and 2 send to 3, which gives each a third, and host 0 also sends to 4. So its buffer
/// fills with packets for 3.
const CONGESTED: [(usize, usize); 4] = [(0, 3), (1, 3), (2, 3), (0, 4)];

fn five_hosts() -> Routed {
    Routed::star(&[cable("4x DDR 2 m"); 5])
}

fn watched(target: Target, flows: &[Flow]) -> Engine<Watcher, NoControl, Script> {
    let mut config = ddr_config();
    config.switch.buffer = Some(room(8));
    let watcher = Watcher::new(target);
    let mut engine = five_hosts().controlled(&config, watcher, NoControl, flows);
    engine.run_until(at(Span::from_ms(2))).unwrap();
    engine.audit().unwrap();
    for record in &engine.workload().records {
        assert_eq!(record.delivered.len(), 200);
    }
    engine
}

fn congested(target: Target) -> Engine<Watcher, NoControl, Script> {
    let flows = CONGESTED.map(|(from, to)| Flow::burst(from, to, 200));
    watched(target, &flows)
}

fn marked(engine: &Engine<Watcher, NoControl, Script>) -> Vec<u64> {
    let classes = 0..engine.workload().flows.len() as u16;
    let marked = |class| engine.class(class).unwrap().marked_packets;
    classes.map(marked).collect()
}

/// The calls check that queues, outputs and occupied blocks follow from arrivals and departures.
/// Only the inputs of the three sending hosts ever fill up.
#[test]
fn a_full_buffer_is_shown_as_it_is() {
    let engine = congested(Target::Nothing);
    let watcher = engine.switch_control();
    assert!(watcher.full.len() > 50);
    let senders = [0, 1, 2].map(|host| five_hosts().port_to(host));
    for sender in senders {
        assert!(watcher.full.iter().any(|(_, input)| *input == sender));
    }
    assert!(
        watcher
            .full
            .iter()
            .all(|(_, input)| senders.contains(input))
    );
    assert!(watcher.queued.values().all(|&bytes| bytes == 0));
    assert_eq!(marked(&engine), [0; 4]);
}

/// Marks by output hit all flows to it, and no packet for another output.
#[test]
fn marking_an_output_marks_its_waiting_packets() {
    let engine = congested(Target::Output(five_hosts().port_to(3)));
    let marked = marked(&engine);
    assert!(marked[..3].iter().all(|&count| count > 50), "{marked:?}");
    assert_eq!(marked[3], 0);
    assert!(marked.iter().sum::<u64>() <= engine.switch_control().requested);
}

/// Marks by input affect only flows through a full buffer. Hosts 0 and 1 send to 3, so their
/// buffers fill. Host 2 alone sends to 4 and never fills its buffer.
#[test]
fn marking_an_input_marks_its_waiting_packets() {
    let flows = [(0, 3), (1, 3), (2, 4)].map(|(from, to)| Flow::burst(from, to, 200));
    let engine = watched(Target::Input, &flows);
    let marked = marked(&engine);
    assert!(marked[..2].iter().all(|&count| count > 50), "{marked:?}");
    assert_eq!(marked[2], 0);
    assert!(marked.iter().sum::<u64>() <= engine.switch_control().requested);
}

/// Counts the packets that it is shown.
#[derive(Debug)]
struct Counting {
    watches: bool,
    shown: u64,
}

impl SwitchControl for Counting {
    fn watches_queues(&self) -> bool {
        self.watches
    }

    fn on_queued(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) {
        self.shown += 1;
    }

    fn on_departure(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) -> bool {
        self.shown += 1;
        false
    }
}

impl Settings for Counting {}

silvan_cc::dispatch_switches! {
    /// A scheme that is chosen at run time.
    #[derive(Debug)]
    enum Chosen {
        Counting(Counting),
    }
}

#[test]
fn a_scheme_that_watches_no_queues_is_shown_no_packet() {
    let flows = CONGESTED.map(|(from, to)| Flow::burst(from, to, 200));
    for watches in [true, false] {
        let switch = Chosen::Counting(Counting { watches, shown: 0 });
        let config = ddr_config();
        let mut engine = five_hosts().controlled(&config, switch, NoControl, &flows);
        engine.run_until(at(Span::from_ms(2))).unwrap();
        let Chosen::Counting(Counting { shown, .. }) = engine.switch_control();
        // Each packet leaves one switch, and some wait there.
        assert!(if watches { *shown > 800 } else { *shown == 0 }, "{shown}");
    }
}

/// A window of packets per flow, opened again by acknowledgements.
#[derive(Debug)]
struct Window {
    size: u32,
    in_flight: BTreeMap<QueuePair, u32>,
    most: u32,
}

impl Window {
    fn new(size: u32) -> Self {
        Self {
            size,
            in_flight: BTreeMap::new(),
            most: 0,
        }
    }
}

impl SourceControl for Window {
    fn release(&mut self, now: Time, flow: QueuePair) -> Time {
        if self
            .in_flight
            .get(&flow)
            .is_some_and(|&count| count >= self.size)
        {
            Time::MAX
        } else {
            now
        }
    }

    fn on_send(&mut self, _: Time, flow: QueuePair, _: Span, _: u32) {
        let count = self.in_flight.entry(flow).or_default();
        *count += 1;
        self.most = self.most.max(*count);
    }

    fn on_feedback(&mut self, _: Time, flow: QueuePair, feedback: Feedback) -> bool {
        assert!(matches!(feedback, Feedback::Ack { .. }));
        *self.in_flight.get_mut(&flow).unwrap() -= 1;
        true
    }
}

fn acknowledged(path: FeedbackParams) -> EngineConfig {
    let carrier = Some(BecnCarrier::AckPerPacket);
    EngineConfig {
        feedback: FeedbackParams { carrier, ..path },
        ..ddr_config()
    }
}

/// With a window of w, packet k + w starts when the acknowledgement of packet k arrives, a constant
/// time after its delivery. So there is a round trip per w packets.
#[test]
fn a_window_is_one_round_trip_per_window() {
    let kind = cable("4x DDR 20 m");
    let routed = Routed::row(&[&[kind], &[kind]], &[kind]);
    let delay = Span::from_us(9);
    let config = acknowledged(past_fabric(delay));
    let latency = propagation(kind) * 3 + config.switch.latency * 2 + ser(kind, MTU);
    for size in [1, 2, 5] {
        let window = Window::new(size);
        let flow = [Flow::saturating(0, 1)];
        let mut engine = routed.controlled(&config, NoControl, window, &flow);
        engine.run_until(at(Span::from_ms(1))).unwrap();
        engine.audit().unwrap();
        let record = &engine.workload().records[0];
        let size_index = size as usize;
        assert!(record.injected.len() > 10 * size_index);
        let pairs = record.delivered.iter().zip(&record.injected[size_index..]);
        for (delivered, injected) in pairs {
            assert_eq!(*injected, *delivered + delay);
        }
        for (earlier, later) in record.injected.iter().zip(&record.injected[size_index..]) {
            assert_eq!(later.since(*earlier), latency + delay);
        }
        assert_eq!(engine.source_control().most, size);
    }
}

/// With a window of one, at most one packet of a flow is between its hosts. This holds also if many
/// flows meet and acknowledgements go through the fabric. Each packet starts after the delivery of
/// the packet before.
#[test]
fn a_window_of_one_keeps_one_packet_in_the_fabric() {
    let routed = Routed::star(&[cable("4x DDR 2 m"); 5]);
    let mut flows: Vec<_> = (0..4).map(|source| Flow::saturating(source, 4)).collect();
    flows.push(Flow::saturating(4, 0));
    flows.push(Flow::saturating(0, 1));
    let mut config = acknowledged(through_fabric(
        None,
        silvan_core::Bytes::from_bytes(64),
        true,
    ));
    config.host.sink_rate = Some(mbit(10_000));
    let mut engine = routed.controlled(&config, NoControl, Window::new(1), &flows);
    engine.run_until(at(Span::from_ms(1))).unwrap();
    engine.audit().unwrap();
    for record in &engine.workload().records {
        assert!(record.injected.len() > 50);
        assert!(record.injected.len() - record.delivered.len() <= 1);
        for (delivered, injected) in record.delivered.iter().zip(&record.injected[1..]) {
            assert!(injected > delivered);
        }
    }
    assert_eq!(engine.source_control().most, 1);
}

/// A host that may start a packet only every `gap`, and notes its credits.
#[derive(Debug)]
struct HostPace {
    gap: Span,
    next: BTreeMap<HostId, Time>,
    credits: Vec<(Time, HostId, u32, u32)>,
}

impl SourceControl for HostPace {
    #[inline]
    fn needs_credit(&self) -> bool {
        true
    }

    fn release(&mut self, now: Time, _: QueuePair) -> Time {
        now
    }

    fn host_release(&mut self, _: Time, host: HostId) -> Time {
        self.next.get(&host).copied().unwrap_or(Time::ZERO)
    }

    fn on_send(&mut self, now: Time, flow: QueuePair, _: Span, _: u32) {
        self.next.insert(flow.source, now + self.gap);
    }

    fn on_feedback(&mut self, _: Time, _: QueuePair, _: Feedback) -> bool {
        false
    }

    fn on_credit(&mut self, now: Time, host: HostId, used: u32, capacity: u32) {
        self.credits.push((now, host, used, capacity));
    }
}

/// A release of the whole host paces all its flows together. Every packet takes its credits when it
/// starts and returns them once, when the switch has sent it. No other credits are in use then,
/// because the next packet starts later.
#[test]
fn a_host_can_be_held_back_as_a_whole() {
    let kind = cable("4x DDR 2 m");
    let routed = Routed::star(&[kind; 3]);
    let gap = Span::from_us(5);
    let flows = [Flow::burst(0, 1, 30), Flow::burst(0, 2, 30)];
    let config = ddr_config();
    let pace = HostPace {
        gap,
        next: BTreeMap::new(),
        credits: Vec::new(),
    };
    let mut engine = routed.controlled(&config, NoControl, pace, &flows);
    engine.run_until(at(Span::from_ms(1))).unwrap();
    let mut starts: Vec<_> = engine
        .workload()
        .records
        .iter()
        .flat_map(|record| record.injected.clone())
        .collect();
    starts.sort();
    let expected: Vec<_> = (0..60).map(|index| Time::ZERO + gap * index).collect();
    assert_eq!(starts, expected);
    let back =
        propagation(kind) * 2 + config.switch.latency + ser(kind, MTU) + config.switch.credit_delay;
    let capacity = u32::try_from(SwitchParams::LEAST_BUFFER.as_u64() / 64).unwrap();
    let expected: Vec<_> = starts
        .iter()
        .flat_map(|&start| {
            let host = HostId::new(0);
            let taken = u32::try_from(WIRE.div_ceil(64)).unwrap();
            [
                (start, host, taken, capacity),
                (start + back, host, 0, capacity),
            ]
        })
        .collect();
    assert_eq!(engine.source_control().credits, expected);
}

/// Service levels are flows of their own to a scheme: a window each.
#[test]
fn service_levels_distinguish_flows() {
    let routed = Routed::star(&[cable("4x DDR 2 m"); 2]);
    let flows = [0, 1, 2].map(|sl| Flow {
        sl,
        ..Flow::saturating(0, 1)
    });
    let delay = Span::from_us(50);
    let config = acknowledged(past_fabric(delay));
    let mut engine = routed.controlled(&config, NoControl, Window::new(1), &flows);
    engine.run_until(at(Span::from_us(40))).unwrap();
    for (sl, record) in engine.workload().records.iter().enumerate() {
        assert_eq!(record.injected.len(), 1, "service level {sl}");
    }
    let pairs: Vec<_> = engine.source_control().in_flight.keys().collect();
    let levels: Vec<_> = pairs.iter().map(|pair| pair.sl).collect();
    assert_eq!(levels, Sl::all().take(3).collect::<Vec<_>>());
}
