//! Selection of packets that a switch marks: Marking_Rate, Packet_Size, Threshold, Victim_Mask.

use silvan_cc::hooks::{NoControl, SettingChange, Settings};
use silvan_cc::schemes::ib_cc::{
    IbSwitch, MarkingCounters, MarkingMode, MarkingSetting, PortSelection, PortSetting,
    StarvationSetting, SwitchParameters, ThresholdMap, ThresholdWeight,
};
use silvan_core::{HostId, PortId, Span};
use silvan_engine::Engine;

use crate::common::{MTU, Routed, at, cable, ddr_config, mbit, only_lane, room};
use crate::script::{Flow, Script};

type Marking = Engine<IbSwitch, NoControl, Script>;

const SENDERS: usize = 4;

/// Every packet that waits or passes is over the threshold of one byte.
fn setting(marking_rate: u16) -> MarkingSetting {
    MarkingSetting {
        threshold: ThresholdWeight::MAX,
        marking_rate,
        ..MarkingSetting::default()
    }
}

fn switch(
    routed: &Routed,
    marking: MarkingSetting,
    victim_ports: PortSelection,
    marking_mode: MarkingMode,
) -> IbSwitch {
    let parameters = SwitchParameters {
        marking,
        starvation: StarvationSetting::default(),
        victim_ports,
        credit_ports: PortSelection::None,
        threshold_map: ThresholdMap::Linear {
            lowest_bytes: 1,
            highest_bytes: 100_000,
        },
        hysteresis_bytes: 0,
        marking_mode,
    };
    IbSwitch::new(&parameters, &routed.switch_ports(), 1, 42).unwrap()
}

fn star() -> Routed {
    Routed::star(&[cable("4x DDR 2 m"); SENDERS + 1])
}

fn incast() -> Vec<Flow> {
    (0..SENDERS)
        .map(|source| Flow::saturating(source, SENDERS))
        .collect()
}

/// Saturated incast on one switch with Victim_Mask at the hosts, after 4 ms (almost 4000 packets).
fn saturated(marking: MarkingSetting, mode: MarkingMode) -> (Marking, MarkingCounters, PortId) {
    let routed = star();
    let control = switch(&routed, marking, PortSelection::ToHosts, mode);
    let config = ddr_config();
    let mut engine = routed.controlled(&config, control, NoControl, &incast());
    engine.run_until(at(Span::from_ms(4))).unwrap();
    let root = routed.port_to(SENDERS);
    let counters = engine.switch_control().counters(only_lane(root));
    (engine, counters, root)
}

/// Marking_Rate is the number of eligible packets between two that are marked: of all packets that
/// have left, every (Marking_Rate + 1)-th. The receiver has noticed as many.
#[test]
fn counter_mode_marks_exactly_one_of_marking_rate_plus_one() {
    for marking_rate in [0, 1, 7, 63] {
        let (engine, counters, root) = saturated(setting(marking_rate), MarkingMode::Counter);
        let sent = engine.port_counters(root).xmit_pkts;
        assert!(sent > 3500);
        assert_eq!(counters.eligible, sent);
        assert_eq!(counters.marked, sent / (u64::from(marking_rate) + 1));
        let noticed = engine.host_counters(HostId::new(SENDERS)).fecn_received;
        assert_eq!(noticed, counters.marked);
        // By class those that have arrived: all but the one under way.
        let arrived: u64 = (0..SENDERS as u16)
            .map(|class| engine.class(class).unwrap().marked_packets)
            .sum();
        assert!(counters.marked - arrived <= 1);
    }
}

/// Four standard deviations of the binomial distribution.
#[test]
fn random_mode_stays_within_the_binomial_bound() {
    for marking_rate in [0, 1, 7, 63] {
        let (_, counters, _) = saturated(setting(marking_rate), MarkingMode::Random);
        let probability = 1.0 / (f64::from(marking_rate) + 1.0);
        let eligible = counters.eligible as f64;
        let deviation = (eligible * probability * (1.0 - probability)).sqrt();
        let difference = (counters.marked as f64 - eligible * probability).abs();
        assert!(difference <= 4.0 * deviation, "{counters:?}");
        // Not every so-manieth in disguise: the count would be exact.
        if marking_rate > 0 {
            assert_ne!(
                counters.marked,
                counters.eligible / (u64::from(marking_rate) + 1)
            );
        }
    }
}

/// Packet_Size 8 is 512 bytes on the wire: a packet of 511 is never marked, one of 512 always.
#[test]
fn small_packets_are_not_marked() {
    let routed = star();
    let marking = MarkingSetting {
        packet_size: 8,
        ..setting(0)
    };
    let control = switch(
        &routed,
        marking,
        PortSelection::ToHosts,
        MarkingMode::Counter,
    );
    let header = 26;
    let flows: Vec<_> = [511 - header, 512 - header, 64, MTU]
        .into_iter()
        .enumerate()
        .map(|(source, size)| Flow {
            sizes: vec![size],
            ..Flow::burst(source, SENDERS, 50)
        })
        .collect();
    let mut engine = routed.controlled(&ddr_config(), control, NoControl, &flows);
    engine.run_until(at(Span::from_ms(4))).unwrap();
    let marked = |class| engine.class(class).unwrap().marked_packets;
    assert_eq!([0, 1, 2, 3].map(marked), [0, 50, 0, 50]);
}

#[test]
fn threshold_zero_marks_nothing() {
    let off = MarkingSetting {
        threshold: ThresholdWeight::OFF,
        ..setting(0)
    };
    let (engine, counters, root) = saturated(off, MarkingMode::Counter);
    assert_eq!(counters, MarkingCounters::default());
    assert_eq!(engine.port_counters(root).xmit_cong, Span::ZERO);
}

/// Below its threshold a port does not mark. A packet that finds the port idle is alone, so two
/// packets' worth of threshold is reached only where packets wait.
#[test]
fn a_port_marks_from_its_threshold_on() {
    let routed = star();
    let parameters = |lowest_bytes| SwitchParameters {
        marking: setting(0),
        starvation: StarvationSetting::default(),
        victim_ports: PortSelection::ToHosts,
        credit_ports: PortSelection::None,
        threshold_map: ThresholdMap::Linear {
            lowest_bytes,
            highest_bytes: 1_000_000,
        },
        hysteresis_bytes: 0,
        marking_mode: MarkingMode::Counter,
    };
    // Four packets meet at once: one goes, three wait. Queued with itself each finds 1, 3, 2, 1
    // packets, so from a threshold of `packets` on one less is marked each.
    let flows: Vec<_> = (0..SENDERS)
        .map(|source| Flow::burst(source, SENDERS, 1))
        .collect();
    let wire = MTU + 26;
    for (lowest_bytes, expected) in [
        (wire, 4),
        (wire + 1, 2),
        (2 * wire, 2),
        (2 * wire + 1, 1),
        (3 * wire, 1),
        (3 * wire + 1, 0),
    ] {
        let ports = routed.switch_ports();
        let control = IbSwitch::new(&parameters(lowest_bytes), &ports, 1, 0).unwrap();
        let config = ddr_config();
        let mut engine = routed.controlled(&config, control, NoControl, &flows);
        engine.run_until(at(Span::from_ms(1))).unwrap();
        let noticed = engine.host_counters(HostId::new(SENDERS)).fecn_received;
        assert_eq!(noticed, expected, "threshold of {lowest_bytes} bytes");
    }
}

/// Two hosts on each of two switches send to a fifth host on the second switch, whose port is the root: it has credits.
/// The cable between the switches has room for one packet, so after every packet it has no credits. It is a victim,
/// which marks no packet unless its mask bit is set.
#[test]
fn a_victim_does_not_mark_unless_masked() {
    let kind = cable("4x DDR 2 m");
    let routed = Routed::row(&[&[kind; 2], &[kind; 3]], &[kind]);
    let flows: Vec<_> = (0..4).map(|source| Flow::saturating(source, 4)).collect();
    let mut config = ddr_config();
    config.switch.buffer = Some(room(1));
    let (victim, root) = (routed.port("S0", 4), routed.port_to(4));
    for masked in [PortSelection::None, PortSelection::All] {
        let control = switch(&routed, setting(0), masked, MarkingMode::Counter);
        let mut engine = routed.controlled(&config, control, NoControl, &flows);
        engine.run_until(at(Span::from_ms(1))).unwrap();
        let count = |port| {
            let counters = engine.switch_control().counters(only_lane(port));
            (counters.marked, engine.port_counters(port).xmit_pkts)
        };
        let (marked, sent) = count(root);
        assert!(sent > 900);
        assert_eq!(marked, sent);
        let (marked, sent) = count(victim);
        assert!(sent > 200);
        let expected = if masked == PortSelection::All {
            sent
        } else {
            0
        };
        assert_eq!(marked, expected);
    }
}

/// A host takes a packet in 160 times its time on the cable. Of its four packets of room the first three leave some
/// behind. The fourth, and every later packet, takes the last credits. So without its mask bit the port marks three
/// packets in all.
#[test]
fn a_slow_host_needs_the_mask() {
    let routed = star();
    let mut config = ddr_config();
    config.host.sink_rate = Some(mbit(100));
    config.host.receive_buffer = Some(room(4));
    for (masked, expected) in [
        (PortSelection::None, Some(3)),
        (PortSelection::ToHosts, None),
    ] {
        let control = switch(&routed, setting(0), masked, MarkingMode::Counter);
        let mut engine = routed.controlled(&config, control, NoControl, &incast());
        engine.run_until(at(Span::from_ms(4))).unwrap();
        let root = routed.port_to(SENDERS);
        let sent = engine.port_counters(root).xmit_pkts;
        assert!(sent > 20);
        let counters = engine.switch_control().counters(only_lane(root));
        assert_eq!(counters.marked, expected.unwrap_or(sent));
    }
}

/// Marking_Rate, Packet_Size, Threshold and Victim_Mask act from the next packet on. Between two
/// marks there may be one gap of the old length.
#[test]
fn settings_change_while_packets_move() {
    let (mut engine, mut before, root) = saturated(setting(1), MarkingMode::Counter);
    let mut now = engine.now();
    let mut phase = |engine: &mut Marking, change: SettingChange| {
        engine.switch_control_mut().apply(now, &change).unwrap();
        now += Span::from_ms(1);
        engine.run_until(now).unwrap();
        let after = engine.switch_control().counters(only_lane(root));
        let delta = (
            after.eligible - before.eligible,
            after.marked - before.marked,
        );
        before = after;
        delta
    };
    for marking_rate in [7_u16, 63, 0, 3] {
        let change = SettingChange::Port {
            port: root,
            setting: PortSetting::MarkingRate(marking_rate),
        };
        let (eligible, marked) = phase(&mut engine, change);
        assert!(eligible > 900);
        let expected = eligible / (u64::from(marking_rate) + 1);
        let slack = if marking_rate == 0 { 64 } else { 1 };
        assert!(marked.abs_diff(expected) <= slack, "{marked}, {expected}");
    }
    let all_small = SettingChange::Port {
        port: root,
        setting: PortSetting::PacketSize(33),
    };
    assert_eq!(phase(&mut engine, all_small), (0, 0));
    let none_small = SettingChange::Port {
        port: root,
        setting: PortSetting::PacketSize(32),
    };
    assert!(phase(&mut engine, none_small).1 > 200);
    let off = SettingChange::Port {
        port: root,
        setting: PortSetting::Threshold(ThresholdWeight::try_new(0).unwrap()),
    };
    assert_eq!(phase(&mut engine, off), (0, 0));
    let on = SettingChange::Port {
        port: root,
        setting: PortSetting::Threshold(ThresholdWeight::try_new(15).unwrap()),
    };
    assert!(phase(&mut engine, on).1 > 200);
}

/// PortXmitTimeCong of the saturated port counts all the time from the first packet on, because a packet always waits.
/// The ports to the senders are never congested.
#[test]
fn the_congested_time_is_that_of_the_saturation() {
    let (engine, _, root) = saturated(setting(0), MarkingMode::Counter);
    let congested = engine.port_counters(root).xmit_cong;
    let start = Span::from_ns(10) + ddr_config().switch.latency;
    assert_eq!(congested, Span::from_ms(4).checked_sub(start).unwrap());
    let routed = star();
    for sender in 0..SENDERS {
        let counters = engine.port_counters(routed.port_to(sender));
        assert_eq!(counters.xmit_cong, Span::ZERO);
    }
}
