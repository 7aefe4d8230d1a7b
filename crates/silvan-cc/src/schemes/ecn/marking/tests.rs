//! The schemes event by event, on a switch that is played by hand.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use super::*;

/// A switch with one virtual lane; a packet fills one block. Ports are numbered from 0.
#[derive(Debug, Default)]
struct Switch {
    /// Input, output, number and mark of the packets that wait, by arrival.
    waiting: Vec<(usize, usize, u32, bool)>,
    /// Number and mark of those that have left.
    left: Vec<(u32, bool)>,
    /// Input and output of those that are being sent.
    sending: Vec<(usize, usize)>,
    next: u32,
}

const CAPACITY: u32 = 4;
const PORTS: usize = 12;
/// The congested output, and another one.
const ROOT: usize = 10;
const OTHER: usize = 11;

const QUEUE: QueueView = QueueView {
    queued_bytes: 0,
    has_credit: false,
};

fn view(input: usize, marked: bool) -> PacketView {
    PacketView {
        wire_bytes: 2_068,
        marked,
        input: PortId::new(input),
        vl: Vl::ZERO,
    }
}

impl Switch {
    /// A packet arrives and has to wait; returns its number.
    fn arrive<S: SwitchControl>(&mut self, control: &mut S, input: usize, output: usize) -> u32 {
        let number = self.next;
        self.next += 1;
        self.waiting.push((input, output, number, false));
        control.on_queued(Time::ZERO, PortVl(output as u32), QUEUE, view(input, false));
        let port = PortId::new(input);
        if self.occupied_blocks(port, Vl::ZERO) == CAPACITY {
            control.on_buffer_full(Time::ZERO, port, Vl::ZERO, self);
        }
        number
    }

    /// Lets a packet leave.
    fn leave<S: SwitchControl>(&mut self, control: &mut S, number: u32) {
        let at = self.waiting.iter().position(|packet| packet.2 == number);
        let (input, output, _, marked) = self.waiting.remove(at.unwrap());
        let lane = PortVl(output as u32);
        let mark = control.on_departure(Time::ZERO, lane, QUEUE, view(input, marked));
        self.left.push((number, marked || mark));
    }

    /// This packet starts to leave, and stays in its buffer.
    fn start<S: SwitchControl>(&mut self, control: &mut S, number: u32) {
        let packet = self.waiting.iter().find(|packet| packet.2 == number);
        let &(input, output, ..) = packet.unwrap();
        self.leave(control, number);
        self.sending.push((input, output));
    }

    /// Everything leaves, in the order of arrival; gives the numbers of the marked packets.
    fn drain<S: SwitchControl>(mut self, control: &mut S) -> Vec<u32> {
        while let Some(&(_, _, number, _)) = self.waiting.first() {
            self.leave(control, number);
        }
        let marked = self.left.iter().filter(|packet| packet.1);
        marked.map(|packet| packet.0).collect()
    }
}

impl Resident for Switch {
    fn occupied_blocks(&self, input: PortId, _: Vl) -> u32 {
        let waiting = self.waiting.iter().map(|packet| packet.0);
        let sending = self.sending.iter().map(|packet| packet.0);
        let of_input = waiting.chain(sending).filter(|&at| at == input.index());
        of_input.count() as u32
    }

    fn capacity_blocks(&self, _: PortId, _: Vl) -> u32 {
        CAPACITY
    }

    fn queued_packets(&self, output: PortId, _: Vl) -> u32 {
        let bound = self
            .waiting
            .iter()
            .filter(|packet| packet.1 == output.index());
        bound.count() as u32
    }

    fn outputs_of(&self, input: PortId, _: Vl, each: &mut dyn FnMut(PortId)) {
        for output in 0..PORTS {
            let waits = |packet: &&(usize, usize, u32, bool)| {
                packet.0 == input.index() && packet.1 == output
            };
            if self.waiting.iter().any(|packet| waits(&packet)) {
                each(PortId::new(output));
            }
        }
    }

    fn sending_outputs(&self, _: PortId, each: &mut dyn FnMut(PortId)) {
        for &(_, output) in &self.sending {
            each(PortId::new(output));
        }
    }

    fn mark_input(&mut self, input: PortId, _: Vl) {
        for packet in &mut self.waiting {
            packet.3 |= packet.0 == input.index();
        }
    }

    fn mark_output(&mut self, output: PortId, _: Vl) {
        for packet in &mut self.waiting {
            packet.3 |= packet.1 == output.index();
        }
    }
}

/// Plays arrivals: local packets 0 and 1 at inputs 1 and 2, and packet 2 for another output at
/// input 2. Then remote packets 3 to 6 fill input 0, and packet 7 comes too late.
fn scene<S: SwitchControl>(control: &mut S) -> Switch {
    let mut switch = Switch::default();
    for (input, output) in [
        (1, ROOT),
        (2, ROOT),
        (2, OTHER),
        (0, ROOT),
        (0, ROOT),
        (0, ROOT),
    ] {
        switch.arrive(control, input, output);
    }
    switch.arrive(control, 0, ROOT);
    switch.arrive(control, 3, ROOT);
    switch
}

/// Only what is in the full buffer: the local flows go free.
#[test]
fn naive_marks_the_full_buffer() {
    let mut control = NaiveMarking;
    assert_eq!(scene(&mut control).drain(&mut control), [3, 4, 5, 6]);
}

/// The local packets that contend for the same output, too.
#[test]
fn scan_marks_all_that_contend() {
    let mut control = ProposedScan;
    assert_eq!(scene(&mut control).drain(&mut control), [0, 1, 3, 4, 5, 6]);
}

/// Counters mark as many packets as the scan; they mark the same packets if packets leave in the
/// order of their arrival.
#[test]
fn counters_mark_as_many() {
    let mut control = ProposedCounters::new(PORTS, 1);
    let switch = scene(&mut control);
    let root = PortVl(ROOT as u32);
    // Seven wait; the last one came after the buffer had filled.
    assert_eq!((control.cnt1(root), control.cnt2(root)), (7, 6));
    assert_eq!(control.cnt2(PortVl(OTHER as u32)), 0);
    assert_eq!(switch.drain(&mut control), [0, 1, 3, 4, 5, 6]);
    assert_eq!((control.cnt1(root), control.cnt2(root)), (0, 0));
}

/// Counters mark the next packets that leave: the late packet 7, which overtakes, instead of packet
/// 6.
#[test]
fn counters_may_mark_other_packets_than_the_scan() {
    let mut control = ProposedCounters::new(PORTS, 1);
    let mut switch = scene(&mut control);
    switch.leave(&mut control, 7);
    assert_eq!(switch.drain(&mut control), [7, 0, 1, 3, 4, 5]);

    let mut control = ProposedScan;
    let mut switch = scene(&mut control);
    switch.leave(&mut control, 7);
    assert_eq!(switch.drain(&mut control), [0, 1, 3, 4, 5, 6]);
}

/// A second trigger before cnt2 is zero adds the packets that have come since, no more.
#[test]
fn counters_trigger_again() {
    let mut control = ProposedCounters::new(PORTS, 1);
    let mut switch = scene(&mut control);
    let root = PortVl(ROOT as u32);
    switch.leave(&mut control, 3);
    assert_eq!((control.cnt1(root), control.cnt2(root)), (6, 5));
    // Packet 8 fills input 0 again.
    switch.arrive(&mut control, 0, ROOT);
    assert_eq!((control.cnt1(root), control.cnt2(root)), (7, 7));
    assert_eq!(switch.drain(&mut control), [3, 0, 1, 4, 5, 6, 7, 8]);
}

/// By the letter, a packet being sent is still in the switch: it adds one to what its output marks, and its output is
/// congested if the packet is in the full buffer.
#[test]
fn resident_counters_count_packets_being_sent() {
    let lane = |output: usize| PortVl(output as u32);
    let mut control = ResidentCounters::new(PORTS, 1);
    let mut switch = Switch::default();
    let victim = switch.arrive(&mut control, 0, OTHER);
    switch.start(&mut control, victim);
    let local = switch.arrive(&mut control, 1, ROOT);
    switch.start(&mut control, local);
    for _ in 0..3 {
        switch.arrive(&mut control, 0, ROOT);
    }
    assert_eq!(control.cnt2(lane(ROOT)), 4);
    assert_eq!(control.cnt2(lane(OTHER)), 1);
    // The next packet for the other output is marked in the stead of the one that was being sent.
    switch.sending.clear();
    let next = switch.arrive(&mut control, 2, OTHER);
    switch.leave(&mut control, next);
    assert_eq!(switch.left, [(victim, false), (local, false), (next, true)]);
}

/// Without packets being sent, both readings of cnt1 are equal.
#[test]
fn resident_counters_are_the_proposed_ones_without_packets_being_sent() {
    let mut control = ResidentCounters::new(PORTS, 1);
    assert_eq!(scene(&mut control).drain(&mut control), [0, 1, 3, 4, 5, 6]);
}

/// An output marks what waits for it when the last of so many packets joins, and no full buffer is needed.
#[test]
fn outputs_trigger_at_their_threshold() {
    let mut control = ProposedCounters::new(PORTS, 1)
        .with_output_trigger(3)
        .without_input_trigger();
    assert!(!control.needs_buffer_full());
    let root = PortVl(ROOT as u32);
    let mut switch = Switch::default();
    for input in 0..2 {
        switch.arrive(&mut control, input, ROOT);
    }
    assert_eq!(control.cnt2(root), 0);
    for input in 2..4 {
        switch.arrive(&mut control, input, ROOT);
    }
    assert_eq!((control.cnt1(root), control.cnt2(root)), (4, 3));
    assert_eq!(switch.drain(&mut control), [0, 1, 2]);
}

/// Both triggers together mark what either of them would.
#[test]
fn inputs_and_outputs_trigger() {
    let mut control = ProposedCounters::new(PORTS, 1).with_output_trigger(7);
    assert!(control.needs_buffer_full());
    assert_eq!(
        scene(&mut control).drain(&mut control),
        [0, 1, 3, 4, 5, 6, 7]
    );
}

/// A packet that passes through without waiting is neither counted nor marked.
#[test]
fn counters_ignore_packets_that_do_not_wait() {
    let mut control = ProposedCounters::new(PORTS, 1);
    let other = PortVl(OTHER as u32);
    assert!(!control.on_departure(Time::ZERO, other, QUEUE, view(0, false)));
    assert_eq!((control.cnt1(other), control.cnt2(other)), (0, 0));
}

/// Every output that the full buffer has a packet for is congested, however many.
#[test]
fn scan_finds_all_outputs() {
    let mut control = ProposedScan;
    let mut switch = Switch::default();
    for output in [5, 6, 7, 8] {
        switch.arrive(&mut control, 1, output);
    }
    assert_eq!(switch.drain(&mut control), [0, 1, 2, 3]);
}

/// A packet that leaves marked is counted once, at any switch.
#[test]
fn the_count_is_of_what_leaves_marked() {
    for marking in [
        Marking::Naive,
        Marking::ProposedScan,
        Marking::ProposedCounters,
        Marking::ResidentCounters,
        Marking::OutputTriggered,
        Marking::InputOutputTriggered,
    ] {
        let mut control = EcnSwitch::new(marking, 5, PORTS, 1);
        let marked = scene(&mut control).drain(&mut control).len() as u64;
        assert_eq!(control.marked(PortVl(ROOT as u32)), marked);
        assert_eq!(control.marked(PortVl(OTHER as u32)), 0);
        control.on_departure(Time::ZERO, PortVl(OTHER as u32), QUEUE, view(1, true));
        assert_eq!(control.marked(PortVl(OTHER as u32)), 1);
    }
}
