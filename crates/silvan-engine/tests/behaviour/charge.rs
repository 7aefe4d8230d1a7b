//! Charges of CNPs at the adapters: closed forms for hosts that send or receive many CNPs.

use silvan_cc::hooks::{NoControl, PacketView, PortVl, QueueView, SwitchControl};
use silvan_core::{Bytes, HostId, Span, Time};
use silvan_engine::{BecnCarrier, Engine, EngineConfig, FeedbackParams};

use crate::common::{
    MTU, Routed, at, cable, ddr_config, mbit, past_fabric, payload_time, through_fabric,
};
use crate::script::{Flow, Script};

const FROM: Span = Span::from_ms(1);
const TO: Span = Span::from_ms(11);
const LASTS: Span = Span::from_ms(10);

/// Marks every packet.
#[derive(Debug)]
struct MarkAll;

impl SwitchControl for MarkAll {
    fn on_queued(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) {}

    fn on_departure(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) -> bool {
        true
    }
}

/// Out of band, and in band with and without priority.
fn paths() -> [FeedbackParams; 3] {
    let in_band = |priority| through_fabric(None, Bytes::from_bytes(42), priority);
    [past_fabric(Span::from_us(2)), in_band(false), in_band(true)]
}

fn config(path: FeedbackParams, charge: u64) -> EngineConfig {
    let charge = Bytes::from_bytes(charge);
    EngineConfig {
        feedback: FeedbackParams { charge, ..path },
        ..ddr_config()
    }
}

fn engine(config: &EngineConfig, flows: &[Flow]) -> Engine<MarkAll, NoControl, Script> {
    let routed = Routed::star(&[cable("4x DDR 2 m"); 5]);
    routed.controlled(config, MarkAll, NoControl, flows)
}

/// Packets of a flow that start between the two instants.
fn started(script: &Script, flow: usize) -> u64 {
    let inside = |&&start: &&Time| at(FROM) <= start && start < at(TO);
    let injected = script.records[flow].injected.iter();
    injected.filter(inside).count() as u64
}

/// Host 0 sends to host 1, which answers each packet with a CNP and sends data to host 2 at full rate. Host 1's
/// injection is always busy, with the payload of its packets and the charges of its CNPs: packets x MTU + CNPs x charge
/// = rate x time.
#[test]
fn the_notifier_sends_less_by_exactly_the_charge() {
    let rate = mbit(9_000);
    let flows = [Flow::saturating(0, 1), Flow::saturating(1, 2)];
    for path in paths() {
        for charge in [0, 64, 500] {
            let mut config = config(path, charge);
            config.host.injection_rate = Some(rate);
            let mut engine = engine(&config, &flows);
            engine.run_until(at(TO)).unwrap();
            engine.audit().unwrap();
            let script = engine.workload();
            let answered = script.records[0].delivered_in(at(FROM), at(TO));
            let each = payload_time(rate, MTU);
            assert!(answered.abs_diff(LASTS.as_ps() / each.as_ps()) <= 1);
            let busy =
                each * started(script, 1) + rate.span_for(Bytes::from_bytes(charge)) * answered;
            let off = busy.as_ps().abs_diff(LASTS.as_ps());
            assert!(off <= 2 * each.as_ps(), "{charge} B, {path:?}: {off} ps");
        }
    }
}

/// Hosts 2, 3 and 4 overload the sink of host 0, whose packets to host 1 each come back as a CNP. The sink is always
/// busy: packets x MTU + CNPs x charge = rate x time.
#[test]
fn the_notified_host_receives_less_by_exactly_the_charge() {
    let (injection, sink) = (mbit(6_000), mbit(9_000));
    let each = payload_time(injection, MTU);
    let mut flows = vec![Flow {
        gap: each * 4,
        ..Flow::saturating(0, 1)
    }];
    flows.extend((2..5).map(|source| Flow::saturating(source, 0)));
    for path in paths() {
        for charge in [0, 64, 500] {
            let mut config = config(path, charge);
            config.host.injection_rate = Some(injection);
            config.host.sink_rate = Some(sink);
            let mut engine = engine(&config, &flows);
            let host = HostId::new(0);
            engine.run_until(at(FROM)).unwrap();
            let before = engine.host_counters(host);
            engine.run_until(at(TO)).unwrap();
            engine.audit().unwrap();
            let after = engine.host_counters(host);
            let cnps = after.becn_received - before.becn_received;
            let packets = after.delivered_packets - before.delivered_packets;
            let expected = LASTS.as_ps() / (4 * each.as_ps());
            assert!(cnps > expected * 9 / 10, "{cnps} of {expected} CNPs");
            let busy =
                payload_time(sink, MTU) * packets + sink.span_for(Bytes::from_bytes(charge)) * cnps;
            let off = busy.as_ps().abs_diff(LASTS.as_ps());
            assert!(off <= 2 * each.as_ps(), "{charge} B, {path:?}: {off} ps");
        }
    }
}

/// Hosts without a limit of their own have nothing to charge, and acknowledgements are not charged:
/// every packet starts and arrives as without the charge.
#[test]
fn without_limits_or_cnps_nothing_is_charged() {
    let flows = [Flow::saturating(0, 1), Flow::saturating(1, 0)];
    let records = |config: &EngineConfig| {
        let mut engine = engine(config, &flows);
        engine.run_until(at(FROM)).unwrap();
        engine.workload().records.clone()
    };
    for path in paths() {
        assert_eq!(records(&config(path, 0)), records(&config(path, 4096)));
        let with_acks = |charge| {
            let mut config = config(path, charge);
            config.host.injection_rate = Some(mbit(9_000));
            config.host.sink_rate = Some(mbit(9_000));
            config.feedback.carrier = Some(BecnCarrier::AckPerPacket);
            records(&config)
        };
        assert_eq!(with_acks(0), with_acks(4096));
    }
}
