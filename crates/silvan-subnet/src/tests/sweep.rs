//! Sweeps of the subnet in memory, and of devices with other attributes.

use proptest::prelude::*;
use silvan_core::growth::CounterValue;
use silvan_core::{Lid, MonotonicTime, PortNumber, Span};
use silvan_mad::performance::{PerformanceAttribute, PortCounters, PortCountersExtended};
use silvan_mad::{Body, CounterCapabilities, Mad, Method};

use crate::client::{Answer, Client, Limits};
use crate::fake::{Fault, SharedWorld, World};
use crate::sweep::{
    CounterSource, Identity, NodeAnswers, PortAnswers, SweepPlan, SweptAttribute, SweptPort,
};
use crate::transport::Transport;

const XMIT_DATA: CounterSource = CounterSource::of_field("xmit_data");
const XMIT_WAIT: CounterSource = CounterSource::of_field("xmit_wait");
const SYMBOL_ERRORS: CounterSource = CounterSource::of_field("symbol_errors");
const NARROW_ERRORS: CounterSource = SYMBOL_ERRORS.narrow();

fn answer(attribute: PerformanceAttribute, sent_ns: u64, at_ns: u64) -> Answer {
    let mad = Mad::request(Method::GET_RESPONSE, Body::Performance(attribute));
    let time = MonotonicTime::from_ns;
    Answer::new(time(sent_ns), time(at_ns), mad.emit())
}

fn port(number: u8) -> SweptPort {
    SweptPort {
        number: PortNumber::new(number),
        extended: true,
        congestion: true,
        notifications: false,
        capabilities: CounterCapabilities::UNKNOWN,
    }
}

/// A plan of switches S1 and S2 of the testbed, each with port 15 and S2 with port 23.
fn plan(world: &World) -> SweepPlan {
    let mut plan = SweepPlan::default();
    for (node, name) in ["S1", "S2"].into_iter().enumerate() {
        let found = &world.nodes[world.find(name)];
        plan.add_node(node as u32, found.lid, found.guid);
        plan.add_port(port(15));
        if name == "S2" {
            plan.add_port(port(23));
        }
    }
    plan
}

/// Oracle: the rates of the fake subnet: 270 million words per second at S2's port to D.
#[test]
fn sweep_reads_the_counters_of_the_subnet() {
    let shared = SharedWorld::new(World::testbed(1));
    let plan = plan(&shared.world());
    shared.world().after(Span::from_ms(1), Fault::Incast(true));
    let mut client = Client::new(shared.clone(), Limits::DEFAULT);
    let before = plan.sweep(&mut client, None).unwrap();
    client.transport().pause(Span::from_secs(10));
    let now = plan.sweep(&mut client, None).unwrap();
    assert_eq!((plan.ports_of(0), plan.ports_of(1)), (0..1, 1..3));
    let growth = |place: usize, source| {
        let (before, now) = (&before.ports[place], &now.ports[place]);
        CounterValue::growth(before.counter(source), now.counter(source), u64::MAX).unwrap() as f64
    };
    let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.01;
    assert!(near(growth(2, &XMIT_DATA), 270e6 * 10.0));
    assert!(near(growth(0, &XMIT_WAIT), 30e6 * 10.0));
    assert_eq!(now.ports[2].counter(&XMIT_DATA).unwrap().bits, 64);
    assert_eq!(now.ports[2].counter(&XMIT_WAIT).unwrap().bits, 32);
    let arrived = now.ports[2].arrived().unwrap();
    let apart = arrived.checked_since(before.ports[2].arrived().unwrap());
    assert!(apart.unwrap() >= Span::from_secs(10));
}

/// Oracle: two nodes with each other's LIDs, and one that is off.
#[test]
fn sweep_tells_moved_and_silent_nodes() {
    let shared = SharedWorld::new(World::testbed(1));
    let plan = plan(&shared.world());
    let mut client = Client::new(shared.clone(), Limits::DEFAULT);
    let lid = std::mem::replace(&mut shared.world().nodes[0].lid, Lid::new(2));
    shared.world().nodes[1].lid = lid;
    let swept = plan.sweep(&mut client, None).unwrap();
    let is_moved = |node: &NodeAnswers| node.identity == Identity::Moved;
    assert!(
        swept
            .nodes
            .iter()
            .all(|node| is_moved(node) && node.has_answered)
    );
    shared.world().nodes[0].alive = false;
    let swept = plan.sweep(&mut client, None).unwrap();
    // S1 had taken the LID of S2.
    assert!(swept.nodes[0].has_answered && !swept.nodes[1].has_answered);
    assert_eq!(swept.nodes[1].identity, Identity::Unknown);
    // Each answer takes 20 us.
    let swept = plan.sweep(&mut client, Some(Span::from_us(10))).unwrap();
    assert!(!swept.nodes[0].has_answered && swept.ports[0].arrived().is_none());
}

/// Oracle: the declarations of the attributes: additional counters come from PortCountersExtended on devices that
/// have them, and all others from the widest field that was answered.
#[test]
fn counter_comes_from_its_widest_field() {
    let number = PortNumber::new(7);
    let counters = PortCounters {
        port_select: number,
        symbol_errors: u16::MAX,
        xmit_wait: u32::MAX,
        xmit_data: 5,
        ..PortCounters::default()
    };
    let extended = PortCountersExtended {
        port_select: number,
        symbol_errors: 70_000,
        xmit_wait: 1 << 40,
        xmit_data: 1 << 50,
        ..PortCountersExtended::default()
    };
    for has_additional in [false, true] {
        let mut answers = PortAnswers::new(CounterCapabilities {
            additional: has_additional,
            ..CounterCapabilities::UNKNOWN
        });
        let read = |answers: &PortAnswers, source| answers.counter(source).map(|read| read.value);
        assert_eq!(read(&answers, &XMIT_DATA), None);
        answers.insert(
            SweptAttribute::Counters,
            number,
            &answer(counters.into(), 100, 300),
        );
        assert_eq!(answers.middle(), Some(MonotonicTime::from_ns(200)));
        assert_eq!(read(&answers, &XMIT_DATA), Some(5));
        // The narrow ones would pass for a reset where the wide ones are lost.
        let lost = (!has_additional).then_some(u64::from(u32::MAX));
        assert_eq!(read(&answers, &XMIT_WAIT), lost);
        answers.insert(
            SweptAttribute::Extended,
            number,
            &answer(extended.into(), 500, 700),
        );
        assert_eq!(answers.middle(), Some(MonotonicTime::from_ns(600)));
        assert_eq!(answers.arrived(), Some(MonotonicTime::from_ns(300)));
        assert_eq!(read(&answers, &XMIT_DATA), Some(1 << 50));
        let expected = match has_additional {
            true => (1 << 40, 70_000),
            false => (u64::from(u32::MAX), u64::from(u16::MAX)),
        };
        assert_eq!(read(&answers, &XMIT_WAIT), Some(expected.0));
        assert_eq!(read(&answers, &SYMBOL_ERRORS), Some(expected.1));
        assert_eq!(read(&answers, &NARROW_ERRORS), Some(65_535));
        // 400 ns after PortCounters.
        let near = answers.near(Span::from_ns(399));
        assert_eq!(read(&near, &XMIT_DATA), Some(5));
        let near = answers.near(Span::from_ns(400));
        assert_eq!(read(&near, &XMIT_DATA), Some(1 << 50));
        let other = PortNumber::new(8);
        answers.insert(
            SweptAttribute::Extended,
            other,
            &answer(extended.into(), 1, 2),
        );
        assert_eq!(read(&answers, &XMIT_DATA), Some(5));
    }
}

/// IBA 16.1.3: without PortCountersXmitWaitSupported the field is reserved, and reads 0.
#[test]
fn reserved_wait_is_not_zero_wait() {
    let number = PortNumber::new(7);
    let counters = |xmit_wait| PortCounters {
        port_select: number,
        xmit_wait,
        ..PortCounters::default()
    };
    let read = |wait, xmit_wait| {
        let mut answers = PortAnswers::new(CounterCapabilities {
            wait,
            ..CounterCapabilities::UNKNOWN
        });
        let answer = answer(counters(xmit_wait).into(), 100, 300);
        answers.insert(SweptAttribute::Counters, number, &answer);
        assert!(answers.counter(&XMIT_DATA).is_some());
        answers.counter(&XMIT_WAIT).map(|read| read.value)
    };
    assert_eq!(read(true, 0), Some(0));
    assert_eq!(read(false, 0), None);
    // A device that counts without the bit.
    assert_eq!(read(false, 5), Some(5));
}

proptest! {
    /// Oracle: the parsed attribute.
    #[test]
    fn counter_is_the_field_of_the_attribute(bytes in proptest::collection::vec(any::<u8>(), 44)) {
        let parsed = PortCounters::parse(bytes.as_slice().try_into().unwrap());
        let mut answers = PortAnswers::new(CounterCapabilities::UNKNOWN);
        let received = answer(parsed.into(), 0, 0);
        answers.insert(SweptAttribute::Counters, parsed.port_select, &received);
        for (source, value) in [
            (CounterSource::of_field("symbol_errors"), u64::from(parsed.symbol_errors)),
            (CounterSource::of_field("link_downed"), parsed.link_downed.into()),
            (CounterSource::of_field("local_link_integrity_errors"), parsed.local_link_integrity_errors.get().into()),
            (CounterSource::of_field("rcv_data"), parsed.rcv_data.into()),
            (XMIT_DATA, parsed.xmit_data.into()),
            (XMIT_WAIT, parsed.xmit_wait.into()),
        ] {
            prop_assert_eq!(answers.counter(&source).map(|read| read.value), Some(value));
        }
    }
}
