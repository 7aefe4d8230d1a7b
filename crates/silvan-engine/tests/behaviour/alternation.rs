//! Notifications without priority alternate with the data of their host.

use silvan_cc::hooks::NoControl;
use silvan_core::{Bytes, HostId, Span};
use silvan_engine::{BecnCarrier, EngineConfig};

use crate::common::{MTU, Routed, at, cable, ddr_config, periods, ser, through_fabric};
use crate::script::Flow;

const NOTIFICATION: u64 = 64;

/// An acknowledgement for every packet, on the lane of the data and after it.
fn acknowledging() -> EngineConfig {
    let mut feedback = through_fabric(None, Bytes::from_bytes(NOTIFICATION), false);
    feedback.carrier = Some(BecnCarrier::AckPerPacket);
    EngineConfig {
        feedback,
        ..ddr_config()
    }
}

/// A host without data sends every notification at once.
#[test]
fn a_host_without_data_sends_every_notification_at_once() {
    let routed = Routed::star(&[cable("4x DDR 2 m"); 2]);
    let mut engine = routed.engine(&acknowledging(), &[Flow::saturating(0, 1)]);
    let receiver = routed.fabric.host_port(HostId::new(1));
    for step in 1..=50 {
        engine.run_until(at(Span::from_us(10) * step)).unwrap();
        engine.audit().unwrap();
        let delivered = engine.workload().records[0].delivered.len() as u64;
        assert_eq!(engine.port_counters(receiver).xmit_pkts, delivered);
    }
}

/// A host whose data may not go yet, because it is paced, sends its notifications in the gaps.
#[test]
fn notifications_fill_the_gaps_of_paced_data() {
    let routed = Routed::star(&[cable("4x DDR 2 m"); 3]);
    let gap = Span::from_us(40);
    let slow = Flow {
        gap,
        ..Flow::saturating(1, 2)
    };
    let flows = [Flow::saturating(0, 1), slow];
    let mut engine = routed.engine(&acknowledging(), &flows);
    engine.run_until(at(Span::from_us(500))).unwrap();
    engine.audit().unwrap();
    let records = &engine.workload().records;
    let own = records[1].injected.len() as u64;
    let delivered = records[0].delivered.len() as u64;
    let receiver = routed.fabric.host_port(HostId::new(1));
    let sent = engine.port_counters(receiver).xmit_pkts - own;
    // At most one notification waits while a packet of the host occupies the link.
    assert!(delivered - sent <= 1, "{sent} of {delivered}");
    assert!(
        periods(&records[1].injected)
            .iter()
            .all(|&each| each < gap + ser(cable("4x DDR 2 m"), MTU))
    );
}

/// Notifications and packets alternate: an acknowledgement is due every packet time, and a round of
/// both takes longer. So one acknowledgement always waits, and the data starts once per round.
#[test]
fn notifications_and_data_alternate() {
    let kind = cable("4x DDR 2 m");
    let routed = Routed::star(&[kind; 3]);
    let flows = [Flow::saturating(0, 2), Flow::saturating(2, 1)];
    let config = acknowledging();
    let mut engine = routed.controlled(&config, NoControl, NoControl, &flows);
    engine.run_until(at(Span::from_us(500))).unwrap();
    engine.audit().unwrap();
    let small = kind.data_rate().span_for(Bytes::from_bytes(NOTIFICATION));
    let starts = &engine.workload().records[1].injected[10..];
    assert!(starts.len() > 400);
    assert!(
        periods(starts)
            .iter()
            .all(|&each| each == ser(kind, MTU) + small)
    );
}
