#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use proptest::prelude::*;
use silvan_core::{PortNumber, SwitchId};

use super::super::flows::tests::{PACKET, at, flow, setup};
use super::*;

const PAYLOAD: u32 = 1_000;

fn two_lanes() -> Setup<'static> {
    Setup {
        data_vls: 2,
        ..setup()
    }
}

fn of(protocol: Protocol) -> Srp {
    Srp {
        protocol,
        timeout: Some(Span::from_us(2)),
        threshold: Some(Bytes::from_bytes(3_000)),
        reservation: Some(Bytes::from_bytes(5_000)),
    }
}

fn hosts(protocol: Protocol) -> Reservations {
    of(protocol).build(&two_lanes()).unwrap().1
}

/// Starts a packet with so much behind it; gives its lane and the grants that the host sends.
fn start(source: &mut Reservations, now: Time, behind: u32) -> (u8, Vec<Grant>) {
    let lane = source.select_vl(now, flow(), Vl::ZERO).unwrap().as_u8();
    let mut grants = Grants::default();
    source.on_send(now, flow(), PACKET, PAYLOAD);
    source.on_started(now, flow(), PAYLOAD, behind, &mut grants);
    (lane, grants.drain().collect())
}

fn nack(source: &mut Reservations, now: Time) -> Vec<Grant> {
    let mut grants = Grants::default();
    source.on_nack(now, flow(), PAYLOAD, 0, &mut grants);
    grants.drain().collect()
}

fn grant(source: &mut Reservations, now: Time, ns: u32) {
    assert!(source.answer_grant(now, flow(), ns, &mut Grants::default()));
}

fn payload_of(grants: &[Grant]) -> u32 {
    let [one] = grants else {
        panic!("one reservation, not {grants:?}")
    };
    assert_eq!(one.source, flow().destination);
    assert_ne!(one.bytes & IS_RESERVATION, 0);
    one.bytes & MOST
}

/// A block is speculative until the grant, then it waits for its time, and the next block begins in the same way.
#[test]
fn a_block_is_speculative_until_it_is_granted() {
    let mut source = hosts(Protocol::Srp);
    let (lane, grants) = start(&mut source, at(1), 9_000);
    assert_eq!((lane, payload_of(&grants)), (SPECULATIVE, 5_000));
    assert_eq!(source.release(at(1), flow()), at(1));
    assert_eq!(start(&mut source, at(1), 8_000), (SPECULATIVE, vec![]));
    grant(&mut source, at(2), 3_000);
    assert_eq!(source.release(at(2), flow()), at(5));
    for behind in [7_000, 6_000, 5_000] {
        assert_eq!(start(&mut source, at(5), behind), (RESERVED, vec![]));
    }
    let (lane, grants) = start(&mut source, at(6), 4_000);
    assert_eq!((lane, payload_of(&grants)), (SPECULATIVE, 5_000));
}

#[test]
fn a_block_that_is_sent_waits_for_its_grant() {
    let mut source = hosts(Protocol::Srp);
    // No more is reserved than there is.
    assert_eq!(payload_of(&start(&mut source, at(1), 1_000).1), 2_000);
    start(&mut source, at(1), 0);
    assert_eq!(source.release(at(1), flow()), Time::MAX);
    grant(&mut source, at(2), 0);
    assert_eq!(source.release(at(2), flow()), at(2));
}

#[test]
fn what_a_switch_discards_is_part_of_the_block_again() {
    let mut source = hosts(Protocol::Srp);
    start(&mut source, at(1), 0);
    assert_eq!(source.reserved(flow()), 0);
    assert_eq!(nack(&mut source, at(2)), vec![]);
    assert_eq!(source.reserved(flow()), 1_000);
    let again = |source: &mut Reservations, now| source.resend_time(now, flow(), PAYLOAD, 0, at(2));
    assert_eq!(again(&mut source, at(2)), Time::MAX);
    grant(&mut source, at(3), 4_000);
    assert_eq!(again(&mut source, at(3)), at(7));
    assert_eq!(again(&mut source, at(7)), at(7));
    assert_eq!(start(&mut source, at(7), 0), (RESERVED, vec![]));
    assert_eq!(source.reserved(flow()), 0);
}

#[test]
fn smsrp_reserves_what_has_been_discarded() {
    let mut source = hosts(Protocol::Smsrp);
    assert_eq!(start(&mut source, at(1), 9_000), (SPECULATIVE, vec![]));
    start(&mut source, at(1), 8_000);
    assert_eq!(source.release(at(1), flow()), at(1));
    assert_eq!(payload_of(&nack(&mut source, at(2))), 1_000);
    // The second one waits for the first reservation to be used up.
    assert_eq!(nack(&mut source, at(2)), vec![]);
    assert_eq!(source.release(at(2), flow()), Time::MAX);
    grant(&mut source, at(3), 1_000);
    assert_eq!(source.release(at(5), flow()), Time::MAX);
    assert_eq!(source.resend_time(at(4), flow(), PAYLOAD, 0, at(2)), at(4));
    let (lane, grants) = start(&mut source, at(4), 0);
    assert_eq!((lane, payload_of(&grants)), (RESERVED, 1_000));
    assert_eq!(
        source.resend_time(at(4), flow(), PAYLOAD, 0, at(2)),
        Time::MAX
    );
    grant(&mut source, at(5), 0);
    assert_eq!(source.resend_time(at(5), flow(), PAYLOAD, 0, at(2)), at(5));
    assert_eq!(start(&mut source, at(5), 0), (RESERVED, vec![]));
    assert_eq!(source.release(at(5), flow()), at(5));
}

/// A host at 100 Gbit/s takes 80 ns for 1,000 bytes: reservations of one instant follow each other.
#[test]
fn reservations_follow_each_other() {
    let mut hosts = hosts(Protocol::Srp);
    let reverse = Flow {
        source: flow().destination,
        destination: flow().source,
        sl: flow().sl,
        queue: 0,
    };
    let arrival = Arrival {
        payload: PAYLOAD,
        marked: false,
        last: false,
        sent: at(0),
        behind: 0,
        takes: PACKET,
    };
    hosts.on_receive(at(1), flow(), arrival, &mut Grants::default());
    let mut wait = |now, payload: u32| {
        let mut grants = Grants::default();
        assert!(!hosts.answer_grant(now, reverse, IS_RESERVATION | payload, &mut grants));
        let granted: Vec<Grant> = grants.drain().collect();
        assert_eq!(granted[0].source, flow().source);
        granted[0].bytes
    };
    assert_eq!(wait(at(1), 10_000), 0);
    assert_eq!(wait(at(1), 5_000), 800);
    assert_eq!(wait(at(1), 5_000), 1_200);
    // A microsecond of the schedule has passed, and later all of it.
    assert_eq!(wait(at(2), 5_000), 600);
    assert_eq!(wait(at(9), 5_000), 0);
}

fn switch(protocol: Protocol, to_host: bool) -> Discarder {
    let port = Some(SwitchPort {
        switch: SwitchId::new(0),
        number: PortNumber::new(1),
        to_host,
        peer: None,
    });
    let ports = [port];
    let setup = Setup {
        ports: &ports,
        ..two_lanes()
    };
    of(protocol).build(&setup).unwrap().0
}

fn discards(switch: &mut Discarder, lane: u8, queued_bytes: u32, sent: Time) -> Option<u32> {
    let queue = QueueView {
        queued_bytes,
        has_credit: true,
    };
    let output = PortVl(u32::from(lane));
    switch.select_discard(at(10), output, queue, flow(), 1_000, sent, false)
}

/// Oracle: 25,000 bytes take two microseconds, which is the timeout.
#[test]
fn speculative_packets_are_discarded_before_they_get_too_old() {
    for protocol in [Protocol::Srp, Protocol::Smsrp] {
        let mut switch = switch(protocol, false);
        assert_eq!(discards(&mut switch, SPECULATIVE, 25_000, at(10)), None);
        assert_eq!(discards(&mut switch, SPECULATIVE, 25_001, at(10)), Some(0));
        assert_eq!(discards(&mut switch, SPECULATIVE, 12_501, at(9)), Some(0));
        assert_eq!(discards(&mut switch, SPECULATIVE, 0, at(8)), None);
        assert_eq!(discards(&mut switch, RESERVED, 90_000, at(0)), None);
        assert_eq!(switch.discarded(0), 2);
    }
}

/// Each packet takes its 80 ns of the schedule, whether it may wait or not.
#[test]
fn the_last_switch_has_the_schedule_in_lhrp() {
    let mut last = switch(Protocol::Lhrp, true);
    assert_eq!(discards(&mut last, SPECULATIVE, 2_999, at(0)), None);
    assert_eq!(discards(&mut last, SPECULATIVE, 3_000, at(0)), Some(80));
    assert_eq!(discards(&mut last, SPECULATIVE, 3_000, at(0)), Some(160));
    assert_eq!(discards(&mut last, RESERVED, 9_000, at(0)), None);
    let mut other = switch(Protocol::Lhrp, false);
    assert_eq!(discards(&mut other, SPECULATIVE, 90_000, at(0)), None);
}

#[test]
fn lhrp_sends_again_when_the_switch_says() {
    let mut source = hosts(Protocol::Lhrp);
    assert!(!source.needs_started() && !source.needs_answer_grant());
    source.on_send(at(1), flow(), PACKET, PAYLOAD);
    assert_eq!(nack(&mut source, at(2)), vec![]);
    assert_eq!(source.release(at(9), flow()), Time::MAX);
    assert_eq!(
        source.resend_time(at(2), flow(), PAYLOAD, 500, at(2)),
        at(2) + Span::from_ns(500)
    );
    source.resend_time(at(3), flow(), PAYLOAD, 500, at(2));
    let lane = source.select_vl(at(3), flow(), Vl::ZERO).unwrap();
    assert_eq!(lane.as_u8(), RESERVED);
    source.on_send(at(3), flow(), PACKET, PAYLOAD);
    assert_eq!(source.release(at(3), flow()), at(3));
}

proptest! {
    /// All packets are sent in the end, for any order of discards and grants. Reservations are used up once no packet
    /// is discarded any more, and no flow waits for a grant that it has not requested.
    #[test]
    fn no_flow_waits_without_end(
        is_small in any::<bool>(),
        steps in prop::collection::vec((0_u8..3, 0_u32..8), 1..200),
    ) {
        let protocol = if is_small { Protocol::Smsrp } else { Protocol::Srp };
        let mut source = hosts(protocol);
        let (mut flying, mut discarded, mut asked) = (0, 0, 0);
        let mut now = at(1);
        let drain = steps.iter().copied().chain([(2, 0), (0, 0)].into_iter().cycle().take(800));
        for (step, behind) in drain {
            now += PACKET;
            match step {
                0 if discarded > 0 && source.resend_time(now, flow(), PAYLOAD, 0, now) <= now => {
                    asked += start(&mut source, now, 0).1.len();
                    discarded -= 1;
                }
                0 if discarded == 0 && source.release(now, flow()) <= now => {
                    asked += start(&mut source, now, behind * PAYLOAD).1.len();
                    flying += 1;
                }
                1 if flying > 0 => {
                    asked += nack(&mut source, now).len();
                    (flying, discarded) = (flying - 1, discarded + 1);
                }
                2 if asked > 0 => {
                    grant(&mut source, now, behind * 100);
                    asked -= 1;
                }
                _ => {}
            }
        }
        prop_assert_eq!(discarded, 0);
        prop_assert!(asked > 0 || source.release(now + Span::from_us(9), flow()) != Time::MAX);
        prop_assert!(source.reserved(flow()) <= 5_000);
    }
}

#[test]
fn fabrics_without_lanes_are_refused() {
    let steps = Setup {
        routes_use_lanes: true,
        ..two_lanes()
    };
    for (setup, message) in [(setup(), "one data lane"), (steps, "from deadlock")] {
        let error = Srp::default().check_setup(&setup).unwrap_err();
        assert!(error.message.contains(message), "{error}");
    }
    assert!(Srp::default().check_setup(&two_lanes()).is_ok());
}
