//! Throughput that credits limit, and the counters of a port that waits for them.

use silvan_core::{Credits, Rate, Span, Time, Vl};
use silvan_reference::Arbitration;

use crate::common::{
    CREDIT_DELAY, LATENCY, Routed, at, burst, cable, done_times, gbit, host, parameters, room,
    saturating, wire_time,
};

/// A buffer of `k` packets passes `k` of them per round trip of a credit.
#[test]
fn throughput_is_buffer_over_round_trip() {
    let kind = cable("4x DDR 300 m");
    let row = Routed::row(&[&[kind, kind]], &[]);
    let payload = 2048;
    let wire = wire_time(kind, payload);
    let round_trip = kind.length.propagation() * 2 + LATENCY + wire + CREDIT_DELAY;
    for packets in 1..=3 {
        assert!(wire * packets < round_trip, "credits are the limit");
        let mut parameters = parameters();
        parameters.switch.buffer = room(packets, payload);
        let model = row.drain(&parameters, &[burst(0, 1, payload, 20, Time::ZERO)]);
        let first = wire + kind.length.propagation() * 2 + LATENCY;
        let expected: Vec<Time> = (0..20)
            .map(|index| at(first + round_trip * (index / packets) + wire * (index % packets)))
            .collect();
        assert_eq!(done_times(&model, 0), expected);
        let buffer = model.max_occupancy(row.fabric.host_attachment(host(0)).1, Vl::ZERO);
        // A packet stays for the switch latency and its own length; so the second one comes
        // before the first has left, but not the third.
        assert_eq!(buffer, Some(room(packets.min(2), payload).credits()));
    }
}

/// The host's link sends `k` packets and waits for the rest of each round trip.
#[test]
fn xmit_wait_is_the_rest_of_the_round_trip() {
    let kind = cable("4x DDR 300 m");
    let row = Routed::row(&[&[kind, kind]], &[]);
    let payload = 2048;
    let wire = wire_time(kind, payload);
    let round_trip = kind.length.propagation() * 2 + LATENCY + wire + CREDIT_DELAY;
    let mut parameters = parameters();
    parameters.switch.buffer = room(2, payload);
    let model = row.run(
        &parameters,
        &[saturating(0, 1, payload)],
        at(round_trip * 7),
    );
    let report = model.port(row.fabric.host_port(host(0))).unwrap();
    let rest = round_trip.saturating_sub(wire * 2);
    assert_eq!(report.xmit_wait, rest * 7);
    assert_eq!(report.xmit_packets, 14);
    assert_eq!(report.xmit_bytes.as_u64(), 14 * (payload + 26));

    // The switch forwards at once what it gets, and never waits.
    let (_, attachment) = row.fabric.host_attachment(host(1));
    assert_eq!(model.port(attachment).unwrap().xmit_wait, Span::ZERO);
}

/// The receive buffer limits the switch in the same way, and is freed when the sink is done.
#[test]
fn receive_buffer_of_one_packet_serves_one_per_round_trip() {
    let kind = cable("4x DDR 20 m");
    let row = Routed::row(&[&[kind, kind]], &[]);
    let payload = 2048;
    let mut parameters = parameters();
    parameters.host.receive_buffer = room(1, payload);
    parameters.host.sink_rate = gbit(20);
    let model = row.drain(&parameters, &[burst(0, 1, payload, 10, Time::ZERO)]);
    let service = Span::from_ps(payload * 400);
    let wire = wire_time(kind, payload);
    let first = wire + kind.length.propagation() * 2 + LATENCY + service;
    let round_trip = wire + kind.length.propagation() * 2 + service + CREDIT_DELAY;
    let expected: Vec<Time> = (0..10)
        .map(|index| at(first + round_trip * index))
        .collect();
    assert_eq!(done_times(&model, 0), expected);

    let (_, attachment) = row.fabric.host_attachment(host(1));
    let wait = model.port(attachment).unwrap().xmit_wait;
    // Packet i is ready at i wire times after the first and leaves at i round trips after it; the
    // port waits whenever it is not sending, except before the first.
    assert_eq!(wait, round_trip.saturating_sub(wire) * 9);
}

/// Within a lane the arbiter picks without regard to credits, and the pick waits for them.
#[test]
fn a_large_packet_is_not_passed_over_for_want_of_credits() {
    let kind = cable("4x DDR 2 m");
    let row = Routed::row(&[&[kind, kind, kind]], &[]);
    for arbitration in [Arbitration::RoundRobin, Arbitration::OldestFirst] {
        let mut parameters = parameters();
        parameters.switch.arbitration = arbitration;
        // Room for one large packet, or for many small ones. While the sink is busy with a small
        // one, a large one waits for credits; then two more small ones come by the other input.
        parameters.host.receive_buffer = room(1, 2048);
        parameters.host.sink_rate = Rate::from_bits_per_sec(100_000_000);
        let flows = [
            burst(0, 2, 64, 1, Time::ZERO),
            burst(0, 2, 2048, 1, Time::from_ps(1)),
            burst(1, 2, 64, 2, at(Span::from_us(2))),
        ];
        let model = row.drain(&parameters, &flows);
        let order: Vec<usize> = model.deliveries().iter().map(|d| d.flow).collect();
        let (_, attachment) = row.fabric.host_attachment(host(2));
        assert!(model.port(attachment).unwrap().xmit_wait > Span::ZERO);
        match arbitration {
            // The round robin stands past host 0, so host 1 has one turn before it.
            Arbitration::RoundRobin => assert_eq!(order, [0, 2, 1, 2]),
            Arbitration::OldestFirst => assert_eq!(order, [0, 1, 2, 2]),
        }
        let receive = model.max_occupancy(row.fabric.host_port(host(2)), Vl::ZERO);
        assert!(receive <= Some(Credits::new(33)));
    }
}
