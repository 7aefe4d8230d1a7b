#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use proptest::prelude::*;
use silvan_core::{PortNumber, Sl, Vl};

use super::*;
use crate::hooks::{SettingChange, Settings, UnknownSetting};
use crate::schemes::ib_cc::threshold::ThresholdWeight;
use crate::schemes::ib_cc::{AdapterSetting, CctEntry, PortSetting};

/// 15 - w thousand bytes and 1000 more for each weight `w`.
const MAP: ThresholdMap = ThresholdMap::Linear {
    lowest_bytes: 1_000,
    highest_bytes: 15_000,
};

const VLS: u8 = 2;

/// A port of switch 0 to a host, one of switch 0 to switch 1, a host's port, one of switch 1.
fn ports() -> [Option<SwitchPort>; 4] {
    let port = |switch, number, to_host| {
        Some(SwitchPort {
            switch: SwitchId::new(switch),
            number: PortNumber::new(number),
            to_host,
            peer: None,
        })
    };
    [port(0, 1, true), port(0, 2, false), None, port(1, 1, false)]
}

const TO_HOST: PortId = PortId::new(0);
const TO_SWITCH: PortId = PortId::new(1);
const OF_HOST: PortId = PortId::new(2);
const OTHER_SWITCH: PortId = PortId::new(3);

fn parameters(threshold: u8, packet_size: u8, marking_rate: u16) -> SwitchParameters {
    let from_threshold = MarkingSetting {
        threshold: ThresholdWeight::try_new(threshold).unwrap(),
        ..MarkingSetting::default()
    };
    SwitchParameters {
        marking: MarkingSetting {
            packet_size,
            marking_rate,
            ..from_threshold
        },
        starvation: StarvationSetting::default(),
        victim_ports: PortSelection::ToHosts,
        credit_ports: PortSelection::None,
        threshold_map: MAP,
        hysteresis_bytes: 0,
        marking_mode: MarkingMode::Counter,
    }
}

fn build(parameters: &SwitchParameters) -> IbSwitch {
    IbSwitch::new(parameters, &ports(), VLS, 1).unwrap()
}

fn port_vl(port: PortId, vl: usize) -> PortVl {
    PortVl((port.index() * usize::from(VLS) + vl) as u32)
}

fn at(ps: u64) -> Time {
    Time::from_ps(ps)
}

fn packet(wire_bytes: u32) -> PacketView {
    PacketView {
        wire_bytes,
        marked: false,
        input: OTHER_SWITCH,
        vl: Vl::ZERO,
    }
}

fn queue(queued_bytes: u32, has_credit: bool) -> QueueView {
    QueueView {
        queued_bytes,
        has_credit,
    }
}

/// Returns true if a departure of 1000 bytes from such a queue is marked on VL 0 of `port`.
fn departs(switch: &mut IbSwitch, port: PortId, bytes: u32, has_credit: bool) -> bool {
    let packet = packet(1_000);
    switch.on_departure(at(0), port_vl(port, 0), queue(bytes, has_credit), packet)
}

#[test]
fn a_hot_record_is_half_a_cache_line() {
    assert_eq!(size_of::<PortVlRecord>(), 32);
}

/// gran2012, section II.1: root and victim, and footnote 2: Victim_Mask.
#[test]
fn roots_mark_and_victims_do_not() {
    let mut switch = build(&parameters(15, 0, 0));
    let table = [
        // port, queued bytes, credits left, marked
        (TO_SWITCH, 999, true, false),     // below the threshold
        (TO_SWITCH, 1_000, true, true),    // root
        (TO_SWITCH, 50_000, false, false), // victim
        (TO_HOST, 999, false, false),
        (TO_HOST, 1_000, false, true), // Victim_Mask
        (TO_HOST, 1_000, true, true),
    ];
    for (port, bytes, has_credit, marked) in table {
        assert_eq!(
            departs(&mut switch, port, bytes, has_credit),
            marked,
            "{port} {bytes}"
        );
    }
}

/// With a hysteresis of 600 bytes below a threshold of 1000 the state ends below 400, at a departure, an arrival or for want of
/// credits; without the state a queue of 400 is none.
#[test]
fn hysteresis_keeps_the_state() {
    let parameters = SwitchParameters {
        hysteresis_bytes: 600,
        ..parameters(15, 0, 0)
    };
    let mut switch = build(&parameters);
    let output = port_vl(TO_SWITCH, 0);
    let departs = |switch: &mut IbSwitch, ps: u64, bytes: u32| {
        let marked = switch.on_departure(at(ps), output, queue(bytes, true), packet(100));
        (marked, switch.in_congestion(output))
    };
    assert_eq!(departs(&mut switch, 0, 900), (false, false));
    switch.on_queued(at(10), output, queue(1_000, true), packet(100));
    assert!(switch.in_congestion(output));
    assert_eq!(departs(&mut switch, 20, 1_000), (true, true));
    assert_eq!(departs(&mut switch, 30, 600), (true, true));
    // The packets left are 399 bytes: the departing one is marked, and the state ends.
    assert_eq!(departs(&mut switch, 40, 499), (true, false));
    assert_eq!(departs(&mut switch, 50, 900), (false, false));
    assert_eq!(switch.congested_time(at(60), output), Span::from_ps(30));
    // A queue that reaches the threshold only with the packet that leaves enters the state and stays in it.
    assert_eq!(departs(&mut switch, 70, 1_050), (true, true));
    switch.on_queued(at(80), output, queue(5_000, false), packet(100));
    assert!(!switch.in_congestion(output));
    assert_eq!(switch.congestion_events(output), 2);
    // The threshold is whole again.
    switch.on_queued(at(90), output, queue(999, true), packet(100));
    assert!(!switch.in_congestion(output));
}

/// Settings that change during congestion keep the hysteresis, and switching off ends the state.
#[test]
fn settings_change_under_hysteresis() {
    let parameters = SwitchParameters {
        hysteresis_bytes: 600,
        ..parameters(15, 0, 0)
    };
    let mut switch = build(&parameters);
    let output = port_vl(TO_HOST, 0);
    switch.on_queued(at(0), output, queue(1_000, true), packet(100));
    for threshold in [15, 0, 15] {
        let setting = MarkingSetting {
            threshold: ThresholdWeight::try_new(threshold).unwrap(),
            ..MarkingSetting::default()
        };
        switch.set_port_marking(TO_HOST, Some(setting)).unwrap();
        let marked = switch.on_departure(at(1), output, queue(800, true), packet(100));
        // The state ends while marking is off; a queue of 800 does not begin it again.
        let first = switch.congestion_events(output) == 1 && switch.in_congestion(output);
        assert_eq!(marked, first, "{threshold}");
    }
    assert!(!switch.in_congestion(output));
    switch.on_queued(at(2), output, queue(1_000, true), packet(100));
    assert!(switch.in_congestion(output));
}

/// A hysteresis of the whole threshold would keep the state for ever.
#[test]
fn hysteresis_is_less_than_the_threshold() {
    let with = |hysteresis_bytes: u32| {
        let parameters = SwitchParameters {
            hysteresis_bytes,
            ..parameters(15, 0, 0)
        };
        parameters.validate()
    };
    assert_eq!(with(999), Ok(()));
    let error = with(1_000).unwrap_err();
    assert!(
        error.to_string().contains("1000 bytes is not less"),
        "{error}"
    );
    assert!(error.hint().contains("threshold-hysteresis"));
}

/// gran2012, section II.1: a weight of 0 marks no packets.
#[test]
fn weight_zero_marks_nothing() {
    let mut switch = build(&parameters(0, 0, 0));
    assert!(!departs(&mut switch, TO_HOST, u32::MAX - 1, true));
    assert_eq!(
        switch.counters(port_vl(TO_HOST, 0)),
        MarkingCounters::default()
    );
}

/// gran2012, section II.1: packets smaller than Packet_Size (here 8 * 64 bytes) do not get FECN. They are not eligible,
/// so they do not count for Marking_Rate.
#[test]
fn small_packets_pass_unmarked_and_uncounted() {
    let mut switch = build(&parameters(15, 8, 1));
    let output = port_vl(TO_SWITCH, 0);
    let sizes = [512, 511, 511, 511, 512, 2_074, 64, 512];
    let marked =
        sizes.map(|bytes| switch.on_departure(at(0), output, queue(5_000, true), packet(bytes)));
    assert_eq!(
        marked,
        [false, false, false, false, true, false, false, true]
    );
    assert_eq!(
        switch.counters(output),
        MarkingCounters {
            eligible: 4,
            marked: 2
        }
    );
}

proptest! {
    /// Marking_Rate in counter mode, on two Port VLs at once. Oracle: number `n` (from 1) of the
    /// eligible packets of a Port VL is marked iff Marking_Rate + 1 divides `n`.
    #[test]
    fn the_counter_is_exact_per_port_vl(
        rate in 0u16..20,
        departures in prop::collection::vec((0usize..2, any::<bool>()), 0..300),
    ) {
        let mut switch = build(&parameters(15, 0, rate));
        let mut eligible = [0u64; 2];
        for (vl, congested) in departures {
            let bytes = if congested { 3_000 } else { 999 };
            let output = port_vl(TO_SWITCH, vl);
            let marked = switch.on_departure(at(0), output, queue(bytes, true), packet(999));
            eligible[vl] += u64::from(congested);
            let expected = congested && eligible[vl] % (u64::from(rate) + 1) == 0;
            prop_assert_eq!(marked, expected);
            prop_assert_eq!(switch.counters(output).eligible, eligible[vl]);
        }
    }

    /// Oracle: the state after each event by its definition, added up over every picosecond.
    #[test]
    fn congested_time_is_the_time_in_the_state(
        victim: bool,
        events in prop::collection::vec((0u64..50, any::<bool>(), any::<bool>(), 1u32..1_500), 0..60),
    ) {
        let port = if victim { TO_HOST } else { TO_SWITCH };
        let output = port_vl(port, 1);
        let mut switch = build(&parameters(15, 0, 0));
        let (mut now, mut queued) = (0, 0u32);
        let mut waiting = Vec::new();
        let mut congested_ps = 0u64;
        let mut congested = false;
        for (wait, arrives, has_credit, bytes) in events {
            for _ in 0..wait {
                now += 1;
                congested_ps += u64::from(congested);
            }
            if arrives {
                queued += bytes;
                waiting.push(bytes);
                switch.on_queued(at(now), output, queue(queued, has_credit), packet(bytes));
            } else if let Some(bytes) = waiting.pop() {
                switch.on_departure(at(now), output, queue(queued, has_credit), packet(bytes));
                queued -= bytes;
            } else {
                continue;
            }
            congested = queued >= 1_000 && (victim || has_credit);
            prop_assert_eq!(switch.in_congestion(output), congested);
            prop_assert_eq!(switch.congested_time(at(now), output).as_ps(), congested_ps);
        }
        let later = at(now + 1_000);
        let expected = congested_ps + if congested { 1_000 } else { 0 };
        prop_assert_eq!(switch.congested_time(later, output).as_ps(), expected);
    }
}

/// Oracle: the geometric distribution. Over a cycle of the table, gaps are at least `n` with probability (1 - p)^n, p =
/// 1 / (Marking_Rate + 1), up to one quantile in 1,024. Their mean is Marking_Rate.
#[test]
fn dithered_gaps_are_geometric() {
    for rate in [0u16, 1, 2, 3, 15, 128, 2_048] {
        let mut parameters = parameters(15, 0, rate);
        parameters.marking_mode = MarkingMode::Dithered;
        let mut switch = build(&parameters);
        let (mut gaps, mut gap) = (Vec::new(), 0u32);
        while gaps.len() < 1_024 {
            if departs(&mut switch, TO_SWITCH, 2_000, true) {
                gaps.push(gap);
                gap = 0;
            } else {
                gap += 1;
            }
        }
        let rate = f64::from(rate);
        let mean = gaps.iter().map(|&gap| f64::from(gap)).sum::<f64>() / 1_024.0;
        assert!((mean - rate).abs() <= 0.01 * rate, "rate {rate}: {mean}");
        let unmarked = rate / (rate + 1.0);
        for least in [1u32, 2, 5, 20, 300, 5_000] {
            let share = gaps.iter().filter(|&&gap| gap >= least).count() as f64 / 1_024.0;
            let expected = unmarked.powf(f64::from(least));
            assert!(
                (share - expected).abs() <= 1.0 / 1_024.0,
                "rate {rate}, {least}: {share}"
            );
        }
    }
}

/// Oracle: the binomial distribution, because inputs served in turn are independent of geometric gaps. Of `n` marks,
/// each of `k` inputs has n / k, within five standard deviations. The counter gives all marks to one input.
#[test]
fn dithered_marks_fall_on_all_inputs_served_in_turn() {
    for (rate, inputs) in [
        (1u16, 2usize),
        (3, 2),
        (3, 4),
        (7, 4),
        (15, 2),
        (15, 16),
        (5, 3),
    ] {
        let marks = |mode| {
            let mut parameters = parameters(15, 0, rate);
            parameters.marking_mode = mode;
            let mut switch = build(&parameters);
            let mut marks = vec![0f64; inputs];
            for packet in 0..4_000 * (usize::from(rate) + 1) {
                let marked = departs(&mut switch, TO_SWITCH, 2_000, true);
                marks[packet % inputs] += f64::from(u8::from(marked));
            }
            marks
        };
        assert!(marks(MarkingMode::Counter).contains(&4_000.0));
        let dithered = marks(MarkingMode::Dithered);
        let (n, p) = (dithered.iter().sum::<f64>(), 1.0 / inputs as f64);
        let bound = 5.0 * (n * p * (1.0 - p)).sqrt();
        for count in &dithered {
            assert!(
                (count - n * p).abs() <= bound,
                "{rate}, {inputs}: {dithered:?}"
            );
        }
    }
}

/// Oracle: the binomial distribution, within five standard deviations, with a fixed seed. Marks among n eligible
/// packets have mean n p and variance n p (1 - p), p = 1 / (Marking_Rate + 1). Unmarked gaps are geometric with mean
/// Marking_Rate and variance (1 - p) / p^2.
#[test]
fn random_marking_has_the_stated_mean() {
    const PACKETS: u32 = 200_000;
    for rate in [0u16, 1, 8, 127] {
        let mut parameters = parameters(15, 0, rate);
        parameters.marking_mode = MarkingMode::Random;
        let mut switch = build(&parameters);
        let p = 1.0 / (f64::from(rate) + 1.0);
        let mut gaps = Vec::new();
        let mut gap = 0u32;
        for _ in 0..PACKETS {
            if departs(&mut switch, TO_SWITCH, 2_000, true) {
                gaps.push(f64::from(gap));
                gap = 0;
            } else {
                gap += 1;
            }
        }
        let n = f64::from(PACKETS);
        let marks = gaps.len() as f64;
        assert!(
            (marks - n * p).abs() <= 5.0 * (n * p * (1.0 - p)).sqrt(),
            "rate {rate}: {marks}"
        );

        let mean = gaps.iter().sum::<f64>() / marks;
        let deviation = (1.0 - p).sqrt() / p;
        assert!(
            (mean - f64::from(rate)).abs() <= 5.0 * deviation / marks.sqrt(),
            "mean {mean}"
        );

        // A constant gap has the right mean, too: the marks right after a mark tell them apart.
        let adjacent = gaps.iter().filter(|&&gap| gap == 0.0).count() as f64;
        let bound = 5.0 * (marks * p * (1.0 - p)).sqrt();
        assert!(
            (adjacent - marks * p).abs() <= bound,
            "rate {rate}: {adjacent} adjacent"
        );
    }
}

#[test]
fn random_marking_is_a_stream_per_port_vl() {
    let mut parameters = parameters(15, 0, 3);
    parameters.marking_mode = MarkingMode::Random;
    let draw = |switch: &mut IbSwitch, port| -> Vec<bool> {
        (0..200)
            .map(|_| departs(switch, port, 2_000, true))
            .collect()
    };
    let mut alone = build(&parameters);
    let expected = draw(&mut alone, TO_SWITCH);

    let mut shared = build(&parameters);
    let neighbour = draw(&mut shared, TO_HOST);
    assert_eq!(
        draw(&mut shared, TO_SWITCH),
        expected,
        "a neighbour's draws move nothing"
    );
    assert_ne!(neighbour, expected);

    let mut reseeded = IbSwitch::new(&parameters, &ports(), VLS, 2).unwrap();
    assert_ne!(draw(&mut reseeded, TO_SWITCH), expected);
}

/// Every change of a switch port, its effect on the next packet, and what the getters say.
#[test]
fn settings_change_while_packets_move() {
    let mut switch = build(&parameters(15, 0, 0));
    let mut apply = |change| switch.apply(at(5), &change).map(|()| switch.clone());

    let mut changed = apply(SettingChange::Port {
        port: TO_SWITCH,
        setting: PortSetting::Threshold(ThresholdWeight::try_new(14).unwrap()),
    })
    .unwrap();
    assert!(!departs(&mut changed, TO_SWITCH, 1_999, true));
    assert!(departs(&mut changed, TO_SWITCH, 2_000, true));
    assert!(
        departs(&mut changed, OTHER_SWITCH, 1_000, true),
        "other ports stay"
    );

    let mut changed = apply(SettingChange::Port {
        port: TO_SWITCH,
        setting: PortSetting::PacketSize(16),
    })
    .unwrap();
    assert!(
        !departs(&mut changed, TO_SWITCH, 2_000, true),
        "1000 < 16 * 64"
    );

    let mut changed = apply(SettingChange::Port {
        port: TO_SWITCH,
        setting: PortSetting::PacketSize(15),
    })
    .unwrap();
    assert!(
        departs(&mut changed, TO_SWITCH, 2_000, true),
        "1000 >= 15 * 64"
    );

    let mut changed = apply(SettingChange::Port {
        port: TO_SWITCH,
        setting: PortSetting::VictimMask(true),
    })
    .unwrap();
    assert!(departs(&mut changed, TO_SWITCH, 2_000, false));
    let mut changed = apply(SettingChange::Port {
        port: TO_SWITCH,
        setting: PortSetting::VictimMask(false),
    })
    .unwrap();
    assert!(!departs(&mut changed, TO_SWITCH, 2_000, false));
    assert!(
        departs(&mut changed, TO_HOST, 2_000, false),
        "another bit of the same mask"
    );

    let changed = apply(SettingChange::Port {
        port: TO_SWITCH,
        setting: PortSetting::MarkingRate(2_048),
    })
    .unwrap();
    let own = changed.port_marking(TO_SWITCH).unwrap();
    assert_eq!(
        (own.threshold.as_u8(), own.packet_size, own.marking_rate),
        (14, 15, 2_048)
    );
    assert_eq!(changed.effective(TO_SWITCH).unwrap().marking, own);
    assert_eq!(changed.port_marking(TO_HOST), None);
    assert_eq!(changed.effective(TO_HOST).unwrap().marking.marking_rate, 0);
    assert!(changed.effective(TO_HOST).unwrap().victim);
    assert!(!changed.effective(TO_SWITCH).unwrap().victim);
    assert_eq!(changed.effective(OF_HOST), None);
}

#[test]
fn impossible_changes_are_errors_and_change_nothing() {
    let mut switch = build(&parameters(15, 0, 0));
    let changes = [
        SettingChange::Port {
            port: OF_HOST,
            setting: PortSetting::MarkingRate(1),
        },
        SettingChange::Port {
            port: OF_HOST,
            setting: PortSetting::VictimMask(true),
        },
        SettingChange::Port {
            port: PortId::new(99),
            setting: PortSetting::PacketSize(1),
        },
        SettingChange::Port {
            port: OF_HOST,
            setting: PortSetting::CreditMask(true),
        },
        SettingChange::Port {
            port: OF_HOST,
            setting: PortSetting::CreditReturnDelay(CctEntry::from_raw(1)),
        },
        SettingChange::Adapter {
            sl: Sl::ZERO,
            setting: AdapterSetting::CctiTimer(1),
        },
        SettingChange::Adapter {
            sl: Sl::ZERO,
            setting: AdapterSetting::CctiIncrease(1),
        },
    ];
    for change in changes {
        assert_eq!(
            switch.apply(at(0), &change),
            Err(UnknownSetting(change.clone()))
        );
    }
    for port in [TO_HOST, TO_SWITCH, OTHER_SWITCH] {
        assert_eq!(switch.port_marking(port), None);
        assert!(departs(&mut switch, port, 1_000, true));
    }
}

/// mizero2017, section 3: the DCMS lowers Marking_Rate from 128 to 0 to throttle at once; a gap
/// of 128 packets that has begun must not delay that.
#[test]
fn a_lower_marking_rate_does_not_wait_for_a_long_gap() {
    let mut switch = build(&parameters(15, 0, 128));
    assert!(!departs(&mut switch, TO_SWITCH, 2_000, true));
    let change = |marking_rate| SettingChange::Port {
        port: TO_SWITCH,
        setting: PortSetting::MarkingRate(marking_rate),
    };
    switch.apply(at(1), &change(0)).unwrap();
    assert!(departs(&mut switch, TO_SWITCH, 2_000, true));
    assert!(departs(&mut switch, TO_SWITCH, 2_000, true));
    // Back again: the next gap is a long one, after the mark that was due.
    switch.apply(at(2), &change(2)).unwrap();
    let marks = [(); 4].map(|()| departs(&mut switch, TO_SWITCH, 2_000, true));
    assert_eq!(marks, [true, false, false, true]);
}

/// A change of the threshold is seen at the next arrival, not before.
#[test]
fn the_state_follows_a_new_threshold_at_the_next_event() {
    let mut switch = build(&parameters(15, 0, 0));
    let output = port_vl(TO_SWITCH, 0);
    switch.on_queued(at(100), output, queue(1_000, true), packet(500));
    let off = SettingChange::Port {
        port: TO_SWITCH,
        setting: PortSetting::Threshold(ThresholdWeight::try_new(0).unwrap()),
    };
    switch.apply(at(150), &off).unwrap();
    assert!(switch.in_congestion(output));
    switch.on_queued(at(170), output, queue(1_500, true), packet(500));
    assert!(!switch.in_congestion(output));
    assert_eq!(switch.congested_time(at(900), output), Span::from_ps(70));
}

/// SwitchCongestionSetting and SwitchPortCongestionSetting: a port's own values win, its
/// neighbours follow the switch, other switches are left alone.
#[test]
fn port_settings_override_switch_settings() {
    let mut switch = build(&parameters(15, 0, 0));
    let own = MarkingSetting {
        marking_rate: 7,
        ..parameters(3, 0, 0).marking
    };
    switch.set_port_marking(TO_SWITCH, Some(own)).unwrap();

    let id = SwitchId::new(0);
    let mut setting = *switch.switch_setting(id).unwrap();
    setting.marking = parameters(9, 4, 5).marking;
    setting.victim_mask = PortMask::NONE;
    switch.set_switch(id, setting).unwrap();

    assert_eq!(switch.effective(TO_SWITCH).unwrap().marking, own);
    assert_eq!(switch.effective(TO_HOST).unwrap().marking, setting.marking);
    assert!(!switch.effective(TO_HOST).unwrap().victim);
    assert_eq!(
        switch.effective(OTHER_SWITCH).unwrap().marking,
        parameters(15, 0, 0).marking
    );

    switch.set_port_marking(TO_SWITCH, None).unwrap();
    assert_eq!(
        switch.effective(TO_SWITCH).unwrap().marking,
        setting.marking
    );

    let nowhere = SwitchId::new(2);
    assert_eq!(
        switch.set_switch(nowhere, setting),
        Err(ParameterError::NoSuchSwitch { switch: nowhere })
    );
    assert_eq!(
        switch
            .set_port_marking(OF_HOST, None)
            .unwrap_err()
            .to_string(),
        "port 2 is not a port of a switch"
    );
}

/// Credit starvation: nothing outside Credit_Mask or below CS_Threshold, otherwise the delay of
/// the entry (here 3 / 2 packet times).
#[test]
fn starved_ports_return_credits_late() {
    let mut parameters = parameters(0, 0, 0);
    parameters.credit_ports = PortSelection::ToHosts;
    parameters.starvation = StarvationSetting {
        credit_threshold: ThresholdWeight::try_new(14).unwrap(),
        credit_return_delay: CctEntry::try_new(1, 3).unwrap(),
    };
    let mut switch = build(&parameters);
    let delay = |switch: &IbSwitch, port, bytes| {
        switch
            .credit_return_delay(port, bytes, Span::from_ps(1_001))
            .as_ps()
    };
    assert_eq!(delay(&switch, TO_HOST, 1_999), 0);
    assert_eq!(delay(&switch, TO_HOST, 2_000), 1_501);
    assert_eq!(delay(&switch, TO_SWITCH, 60_000), 0);

    let own = StarvationSetting {
        credit_threshold: ThresholdWeight::MAX,
        ..parameters.starvation
    };
    switch.set_port_starvation(TO_HOST, Some(own)).unwrap();
    assert_eq!(switch.port_starvation(TO_HOST), Some(own));
    assert_eq!(delay(&switch, TO_HOST, 1_000), 1_501);
    switch.set_port_starvation(TO_HOST, None).unwrap();
    assert_eq!(delay(&switch, TO_HOST, 1_000), 0);
}

/// Settings changed one by one while the switch runs: credits are late only while all of them are set.
#[test]
fn starvation_can_be_changed() {
    let mut switch = build(&parameters(0, 0, 0));
    let mut late = |change: SettingChange| {
        switch.apply(at(5), &change).unwrap();
        let delay = |port, bytes| {
            switch
                .credit_return_delay(port, bytes, Span::from_ps(1_001))
                .as_ps()
        };
        assert_eq!(switch.delays_credits(), delay(TO_SWITCH, 60_000) > 0);
        assert_eq!(delay(TO_HOST, 60_000), 0, "a setting of another port");
        delay(TO_SWITCH, 2_000)
    };
    let port = TO_SWITCH;
    let mask = |set| SettingChange::Port {
        port,
        setting: PortSetting::CreditMask(set),
    };
    let threshold = |threshold| SettingChange::Port {
        port,
        setting: PortSetting::CreditThreshold(ThresholdWeight::try_new(threshold).unwrap()),
    };
    let return_delay = |shift: u16, multiplier| SettingChange::Port {
        port,
        setting: PortSetting::CreditReturnDelay(CctEntry::from_raw(shift << 14 | multiplier)),
    };
    assert_eq!(late(mask(true)), 0);
    assert_eq!(late(threshold(14)), 0);
    assert_eq!(late(return_delay(1, 3)), 1_501);
    assert_eq!(late(return_delay(2, 4)), 1_001);
    assert_eq!(late(threshold(13)), 0, "3000 bytes are needed");
    assert_eq!(late(threshold(15)), 1_001);
    assert_eq!(late(mask(false)), 0);
    assert_eq!(late(mask(true)), 1_001);
    assert_eq!(late(return_delay(3, 0)), 0);
}

#[test]
fn selections_of_ports_become_masks() {
    let expectations = [
        (PortSelection::None, [false, false, false]),
        (PortSelection::ToHosts, [true, false, false]),
        (PortSelection::All, [true, true, true]),
    ];
    for (selection, expected) in expectations {
        let mut parameters = parameters(15, 0, 0);
        parameters.victim_ports = selection;
        parameters.credit_ports = selection;
        let switch = build(&parameters);
        let effective =
            [TO_HOST, TO_SWITCH, OTHER_SWITCH].map(|port| switch.effective(port).unwrap());
        assert_eq!(effective.map(|setting| setting.victim), expected);
        assert_eq!(effective.map(|setting| setting.credit), expected);
    }
}
