//! Credit_Mask: credits that come back late, and what that leaves of the throughput.

use silvan_cc::hooks::{NoControl, SettingChange, Settings};
use silvan_cc::schemes::ib_cc::{
    CctEntry, IbSwitch, MarkingMode, MarkingSetting, PortSelection, PortSetting, StarvationSetting,
    SwitchParameters, ThresholdMap, ThresholdWeight,
};
use silvan_core::{PortId, Span, Time};
use silvan_engine::EngineConfig;

use crate::common::{MTU, Routed, at, cable, ddr_config, periods, propagation, room, ser};
use crate::script::{Flow, Script};

const RUN: Span = Span::from_us(500);

/// Runs with one port in Credit_Mask, whose credits are late once its buffer holds `threshold`
/// bytes. Nothing is marked.
fn starve(
    routed: &Routed,
    config: &EngineConfig,
    flows: &[Flow],
    port: PortId,
    threshold: u32,
    return_delay: CctEntry,
) -> Script {
    let parameters = SwitchParameters {
        marking: MarkingSetting::default(),
        starvation: StarvationSetting {
            credit_threshold: ThresholdWeight::MAX,
            credit_return_delay: return_delay,
        },
        victim_ports: PortSelection::None,
        credit_ports: PortSelection::None,
        threshold_map: ThresholdMap::Linear {
            lowest_bytes: threshold,
            highest_bytes: u32::MAX - 1,
        },
        hysteresis_bytes: 0,
        marking_mode: MarkingMode::Counter,
    };
    let mut control = IbSwitch::new(&parameters, &routed.switch_ports(), 1, 0).unwrap();
    let mask = SettingChange::Port {
        port,
        setting: PortSetting::CreditMask(true),
    };
    control.apply(Time::ZERO, &mask).unwrap();
    let mut engine = routed.controlled(config, control, NoControl, flows);
    engine.run_until(at(RUN)).unwrap();
    engine.audit().unwrap();
    engine.workload().clone()
}

fn packets(count: u32) -> u32 {
    u32::try_from(room(u64::from(count)).as_u64()).unwrap()
}

/// Every packet goes `period` after the one `nth` before it, from packet `from` on.
fn every_nth(instants: &[Time], from: usize, nth: usize, period: Span) {
    let instants = &instants[from..];
    assert!(instants.len() > nth * 5, "{} packets", instants.len());
    for (earlier, later) in instants.iter().zip(&instants[nth..]) {
        assert_eq!(later.since(*earlier), period);
    }
}

/// A buffer of B packets gives B packets per round trip of a credit, which is longer by exactly the delay of the entry.
/// This holds into the switch from a host, and from another switch.
#[test]
fn late_credits_lengthen_the_round_trip() {
    let (long, short) = (cable("4x DDR 500 m"), cable("4x DDR 1 m"));
    let mut config = ddr_config();
    let round_trip =
        propagation(long) * 2 + config.switch.latency + ser(long, MTU) + config.switch.credit_delay;
    for (shift, multiplier, halves) in [(0, 0, 0), (1, 1, 1), (0, 3, 6), (3, 60, 15)] {
        let entry = CctEntry::try_new(shift, multiplier).unwrap();
        let delay = Span::from_ps(ser(long, MTU).as_ps() * halves / 2);
        for buffer in [1, 2, 5] {
            config.switch.buffer = Some(room(buffer));
            let nth = usize::try_from(buffer).unwrap();
            let host = Routed::star(&[long, short]);
            let flows = [Flow::saturating(0, 1)];
            let script = starve(&host, &config, &flows, host.port_to(0), 1, entry);
            every_nth(&script.records[0].injected, 0, nth, round_trip + delay);
            let trunk = Routed::row(&[&[short], &[short]], &[long]);
            let port = trunk.port("S1", 2);
            let script = starve(&trunk, &config, &flows, port, 1, entry);
            every_nth(&script.records[0].delivered, 0, nth, round_trip + delay);
        }
    }
}

/// A packet leaves at once, and the next comes as its tail leaves, so one packet is always in the buffer. At a
/// threshold of one packet all credits are late; at one byte more none is. Packets on the long cable, which takes two,
/// do not count, nor do credits on their way back.
#[test]
fn the_threshold_is_the_first_late_byte() {
    let (long, short) = (cable("4x DDR 500 m"), cable("4x DDR 1 m"));
    let mut config = ddr_config();
    config.switch.buffer = Some(room(2));
    let routed = Routed::star(&[long, short]);
    let flows = [Flow::saturating(0, 1)];
    let entry = CctEntry::try_new(0, 4).unwrap();
    let plain = routed.run(&config, &flows, RUN);
    let injected = |threshold| {
        let port = routed.port_to(0);
        let mut script = starve(&routed, &config, &flows, port, threshold, entry);
        script.records.remove(0).injected
    };
    assert_eq!(injected(packets(1) + 1), plain.records[0].injected);
    let round_trip =
        periods(&plain.records[0].injected[..])[0] + periods(&plain.records[0].injected)[1];
    every_nth(&injected(packets(1)), 0, 2, round_trip + ser(long, MTU) * 4);
}

/// Two hosts share the way to a third, half and half. One of them is behind a port in Credit_Mask. The output's turns
/// are one serialisation time apart. The starved host has credits for `buffer` packets. Each gets another turn when its
/// tail has left, the late credit has crossed the cable, and the next head has crossed cable and switch. The other host
/// has all remaining turns.
#[test]
fn a_starved_host_sends_less_often() {
    let kind = cable("4x DDR 2 m");
    let routed = Routed::star(&[kind; 3]);
    let flows = [Flow::saturating(0, 2), Flow::saturating(1, 2)];
    let turn = ser(kind, MTU);
    for (buffer, multiplier) in [(2_u32, 3), (4, 8), (4, 20)] {
        let mut config = ddr_config();
        config.switch.buffer = Some(room(u64::from(buffer)));
        let way = propagation(kind) * 2 + config.switch.credit_delay + config.switch.latency;
        assert!(way < turn);
        let entry = CctEntry::try_new(0, multiplier).unwrap();
        let port = routed.port_to(0);
        let script = starve(&routed, &config, &flows, port, packets(1), entry);
        // Tail and delay, and the turn that the way ends in.
        let turns = u64::from(multiplier) + 2;
        let nth = usize::try_from(buffer).unwrap();
        every_nth(&script.records[0].delivered, 3 * nth, nth, turn * turns);
        let all: Vec<Time> = script
            .order
            .iter()
            .scan([0, 0], |next, &flow| {
                next[flow] += 1;
                Some(script.records[flow].delivered[next[flow] - 1])
            })
            .collect();
        every_nth(&all, 0, 1, turn);

        let plain = routed.run(&config, &flows, RUN);
        every_nth(&plain.records[0].delivered, 0, 1, turn * 2);
    }
}

/// Alone the same host never fills its buffer, and loses nothing.
#[test]
fn an_unblocked_host_is_not_starved() {
    let routed = Routed::star(&[cable("4x DDR 2 m"); 3]);
    let mut config = ddr_config();
    config.switch.buffer = Some(room(4));
    let flows = [Flow::saturating(0, 2)];
    let entry = CctEntry::try_new(0, 20).unwrap();
    let script = starve(
        &routed,
        &config,
        &flows,
        routed.port_to(0),
        packets(4),
        entry,
    );
    let plain = routed.run(&config, &flows, RUN);
    assert_eq!(script.records, plain.records);
}
