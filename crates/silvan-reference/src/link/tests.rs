//! Tests of the buffer checks: they find the faults that they exist for.

use super::*;

const FLOW: usize = 7;

fn packet(sequence: u64, wire: u64) -> Packet {
    Packet {
        flow: FLOW,
        sequence,
        destination: HostId::new(0),
        sl: Sl::ZERO,
        lanes: BTreeMap::from([(TransmitterId::new(0), Vl::ZERO)]),
        payload: Bytes::from_bytes(wire),
        wire: Bytes::from_bytes(wire),
        injected: Time::ZERO,
        passes: BTreeMap::new(),
    }
}

/// A buffer of four blocks.
fn receiver() -> Receiver {
    Receiver::new(
        Location::Host(HostId::new(0)),
        TransmitterId::new(0),
        Span::ZERO,
        Credits::new(4),
        1,
    )
}

const ID: PacketId = PacketId::new(0);
const NEXT: PacketId = PacketId::new(1);

#[test]
fn last_flit_is_shorter() {
    let packet = packet(0, 150);
    assert_eq!(packet.flits(), 3);
    let before: Vec<u64> = (0..=3).map(|k| packet.bytes_before(k).as_u64()).collect();
    assert_eq!(before, [0, 64, 128, 150]);
}

/// The space of a packet is taken from its head to its tail, and may be used again then.
#[test]
fn space_is_reserved_from_head_to_tail() {
    let (first, second) = (packet(0, 150), packet(1, 256));
    let mut receiver = receiver();
    receiver.reserve(ID, &first);
    for boundary in 1..=3 {
        receiver.flit_arrives(ID, &first, boundary);
    }
    for boundary in 0..=3 {
        receiver.boundary_leaves(ID, &first, boundary);
        assert_eq!(receiver.reserved(Vl::ZERO), Credits::new(3));
    }
    receiver.release(ID, &first);
    assert_eq!(receiver.reserved(Vl::ZERO), Credits::ZERO);
    receiver.reserve(NEXT, &second);
    assert_eq!(receiver.largest(Vl::ZERO), Credits::new(4));
}

#[test]
#[should_panic(expected = "underrun")]
fn sending_a_flit_that_has_not_arrived_is_noticed() {
    let packet = packet(0, 150);
    let mut receiver = receiver();
    receiver.reserve(ID, &packet);
    receiver.flit_arrives(ID, &packet, 1);
    receiver.boundary_leaves(ID, &packet, 0);
    receiver.boundary_leaves(ID, &packet, 1);
    receiver.boundary_leaves(ID, &packet, 2);
}

#[test]
#[should_panic(expected = "buffer overflow")]
fn more_than_the_buffer_holds_is_noticed() {
    let mut receiver = receiver();
    receiver.reserve(ID, &packet(0, 150));
    receiver.reserve(NEXT, &packet(1, 65));
}

#[test]
#[should_panic(expected = "lost, doubled or out of order")]
fn a_missing_packet_is_noticed() {
    let mut receiver = receiver();
    receiver.reserve(ID, &packet(0, 64));
    receiver.reserve(NEXT, &packet(2, 64));
}

#[test]
#[should_panic(expected = "lost, doubled or out of order")]
fn a_doubled_packet_is_noticed() {
    let mut receiver = receiver();
    receiver.reserve(ID, &packet(0, 64));
    receiver.reserve(NEXT, &packet(0, 64));
}

#[test]
#[should_panic(expected = "flits arrive in order")]
fn a_missing_flit_is_noticed() {
    let packet = packet(0, 150);
    let mut receiver = receiver();
    receiver.reserve(ID, &packet);
    receiver.flit_arrives(ID, &packet, 2);
}

#[test]
#[should_panic(expected = "freed before it has left")]
fn space_freed_too_early_is_noticed() {
    let packet = packet(0, 150);
    let mut receiver = receiver();
    receiver.reserve(ID, &packet);
    receiver.flit_arrives(ID, &packet, 1);
    receiver.boundary_leaves(ID, &packet, 1);
    receiver.release(ID, &packet);
}

#[test]
#[should_panic(expected = "taken in before it is complete")]
fn delivery_of_an_incomplete_packet_is_noticed() {
    let packet = packet(0, 150);
    let mut receiver = receiver();
    receiver.reserve(ID, &packet);
    receiver.flit_arrives(ID, &packet, 1);
    receiver.receive(ID, &packet);
}
