//! Entries of many flows: how much, how large, to whom and when.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use silvan_cc::workload::{Transit, Workload};
use silvan_core::{Bytes, HostId, Span, Time};
use silvan_workload::traffic::{
    CdfPoint, FlowPattern, FlowRecord, Flows, Load, Reason, SizeMix, SizeUnit, Spacing, Traffic,
    TrafficSection, read_cdf,
};

use crate::cdf_law;
use crate::mock::{MockHost, environment, given, injection};

fn traffic(entry: Flows, hosts: usize, seed: u64) -> Result<Traffic, Reason> {
    let spec = TrafficSection {
        flows: vec![entry],
        ..TrafficSection::default()
    };
    Traffic::new(&spec, &environment(hosts, seed)).map_err(|error| error.reason)
}

fn fixed(bytes: u64) -> SizeMix {
    SizeMix::Fixed(Bytes::from_bytes(bytes))
}

/// The flows that begin up to an instant, by sender.
fn records(entry: Flows, hosts: usize, until: Time) -> Vec<(HostId, FlowRecord)> {
    let traffic = traffic(entry, hosts, 5).unwrap();
    let of = |host| {
        traffic
            .flows_of(host, until)
            .into_iter()
            .map(move |(_, record)| (host, record))
    };
    (0..hosts).map(HostId::new).flat_map(of).collect()
}

fn after_ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

fn in_bytes(from: u64, to: u64) -> (Bytes, Bytes) {
    (Bytes::from_bytes(from), Bytes::from_bytes(to))
}

/// Mean and mean square of the sizes of a distribution, by a sum over its density.
fn moments(mix: &SizeMix) -> (f64, f64) {
    let integrate = |from: f64, to: f64, density: &dyn Fn(f64) -> f64| {
        let steps = 200_000;
        let width = (to - from) / f64::from(steps);
        let points = (0..steps).map(|step| from + (f64::from(step) + 0.5) * width);
        points.fold((0.0, 0.0), |(mean, square), x| {
            let weight = density(x) * width;
            (mean + x * weight, square + x * x * weight)
        })
    };
    match mix {
        SizeMix::Fixed(bytes) => {
            let x = bytes.as_u64() as f64;
            (x, x * x)
        }
        SizeMix::Uniform { from, to } => {
            let (from, to) = (from.as_u64() as f64, to.as_u64() as f64);
            integrate(from, to, &|_| 1.0 / (to - from))
        }
        SizeMix::Pareto { shape, from, to } => {
            let (a, from, to) = (*shape, from.as_u64() as f64, to.as_u64() as f64);
            let whole = 1.0 - (from / to).powf(a);
            integrate(from, to, &|x| a * from.powf(a) / x.powf(a + 1.0) / whole)
        }
        SizeMix::WebSearch => {
            // The figure of the paper, as most simulators have it.
            let points = [
                (0.0, 0.0),
                (1e4, 0.15),
                (2e4, 0.2),
                (3e4, 0.3),
                (5e4, 0.4),
                (8e4, 0.53),
                (2e5, 0.6),
                (1e6, 0.7),
                (2e6, 0.8),
                (5e6, 0.9),
                (1e7, 0.97),
                (3e7, 1.0),
            ];
            let lines = points.windows(2).map(|pair| {
                let ((low, from), (high, to)) = (pair[0], pair[1]);
                integrate(low, high, &|_| (to - from) / (high - low))
            });
            lines.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn offered_load_and_sizes_are_those_asked_for() {
    let (from, to) = in_bytes(1_000, 2_000_000);
    let mixes = [
        fixed(30_000),
        SizeMix::Uniform { from, to },
        SizeMix::Pareto {
            shape: 1.3,
            from,
            to,
        },
        SizeMix::Pareto {
            shape: 1.0,
            from,
            to,
        },
        SizeMix::WebSearch,
    ];
    let end = after_ms(400);
    for mix in mixes {
        let (mean, square) = moments(&mix);
        let flows = records(Flows::at_load(mix.clone(), 0.6), 40, end);
        let sizes: Vec<f64> = flows.iter().map(|(_, flow)| flow.bytes as f64).collect();
        let count = sizes.len() as f64;
        let sum: f64 = sizes.iter().sum();
        // Four standard deviations: of a mean of `count` draws, and of a compound Poisson process.
        let deviation = (square - mean * mean).max(0.0).sqrt();
        let error = (sum / count - mean).abs();
        assert!(
            error < 4.0 * deviation / count.sqrt() + 1.0,
            "{mix:?}: {error}"
        );
        let offered = 0.6 * injection().bits_per_sec() as f64 / 8.0 * 0.4 * 40.0;
        let bound = 4.0 * (offered / mean * square).sqrt();
        assert!(
            (sum - offered).abs() < bound,
            "{mix:?}: {sum} {offered} {bound}"
        );
    }
}

#[test]
fn shipped_mixes_have_their_medians() {
    // Read off the published points: 50 % lie between these sizes.
    let medians = [
        (SizeMix::WebSearch, 50_000, 80_000),
        (SizeMix::Hadoop, 699, 701),
        (SizeMix::AliStorage, 4_000, 8_000),
        (SizeMix::Checkpoint, 1 << 20, 4 << 20),
    ];
    for (mix, low, high) in medians {
        let mut entry = Flows::at_load(mix.clone(), 0.5);
        entry.count = silvan_core::document::Limit::At(4_000);
        let mut sizes: Vec<u64> = records(entry, 40, after_ms(60_000))
            .iter()
            .map(|(_, flow)| flow.bytes)
            .collect();
        assert!(sizes.len() > 20_000, "{mix:?}: {}", sizes.len());
        sizes.sort_unstable();
        let median = sizes[sizes.len() / 2];
        let slack = median / 20;
        assert!(
            low - slack <= median && median <= high + slack,
            "{mix:?}: {median}"
        );
    }
}

#[test]
fn periodic_flows_have_equal_gaps() {
    let mut entry = Flows::at_load(fixed(16_875), 0.5);
    entry.spacing = Spacing::Periodic;
    // 16,875 bytes at half of 13.5 Gbit/s: 20 us.
    let flows = records(entry, 3, after_ms(2));
    for pair in flows.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let gap = pair[1].1.start.since(pair[0].1.start).as_ps();
        assert!(gap.abs_diff(20_000_000) <= 1, "{gap}");
    }
}

#[test]
fn patterns_choose_their_destinations() {
    let entry = |pattern| Flows {
        pattern,
        ..Flows::at_load(fixed(2_000), 0.5)
    };
    let permutation = records(entry(FlowPattern::Permutation), 16, after_ms(1));
    let pairs: BTreeSet<_> = permutation
        .iter()
        .map(|(from, flow)| (*from, flow.destination))
        .collect();
    assert_eq!(pairs.len(), 16);
    assert!(pairs.iter().all(|(from, to)| from != to));
    let receivers: BTreeSet<_> = pairs.iter().map(|(_, to)| to).collect();
    assert_eq!(receivers.len(), 16);

    let transpose = records(entry(FlowPattern::Transpose), 16, after_ms(1));
    let pairs: BTreeSet<_> = transpose
        .iter()
        .map(|(from, flow)| (from.index(), flow.destination.index()))
        .collect();
    let of = |from: usize| from % 4 * 4 + from / 4;
    let expected = (0..16)
        .filter(|from| of(*from) != *from)
        .map(|from| (from, of(from)));
    assert_eq!(pairs, expected.collect());

    let mut racks = entry(FlowPattern::Rack);
    (racks.rack_hosts, racks.rack_share) = (Some(4), Some(0.7));
    let flows = records(racks, 16, after_ms(20));
    assert!(flows.iter().all(|(from, flow)| *from != flow.destination));
    let local =
        |(from, flow): &&(HostId, FlowRecord)| from.index() / 4 == flow.destination.index() / 4;
    let (local, all) = (
        flows.iter().filter(local).count() as f64,
        flows.len() as f64,
    );
    // Binomial: four standard deviations.
    assert!(
        (local - 0.7 * all).abs() < 4.0 * (all * 0.21).sqrt(),
        "{local} {all}"
    );
}

#[test]
fn every_incast_has_its_senders_and_one_receiver() {
    for (hosts, senders, to) in [(9, 8, None), (16, 5, None), (12, 4, Some(given([1, 7])))] {
        let entry = Flows {
            pattern: FlowPattern::Incast,
            load: None,
            senders: Some(senders),
            interval: Some(Span::from_us(10)),
            to: to.clone(),
            ..Flows::at_load(fixed(5_000), 0.5)
        };
        let mut incasts: BTreeMap<Time, Vec<(HostId, HostId)>> = BTreeMap::new();
        for (from, flow) in records(entry, hosts, after_ms(5)) {
            incasts
                .entry(flow.start)
                .or_default()
                .push((from, flow.destination));
        }
        assert!(incasts.len() > 400, "{}", incasts.len());
        let mut received = BTreeSet::new();
        for flows in incasts.values() {
            let from: BTreeSet<_> = flows.iter().map(|(from, _)| from).collect();
            assert_eq!(
                (flows.len(), from.len()),
                (senders as usize, senders as usize)
            );
            assert!(
                flows
                    .iter()
                    .all(|(from, to)| *to == flows[0].1 && from != to)
            );
            received.insert(flows[0].1);
        }
        let receivers = to.map_or(hosts, |_| 2);
        assert_eq!(received.len(), receivers);
    }
}

/// The host sends; each packet arrives at once.
#[test]
fn closed_loop_keeps_its_flows_on_their_way() {
    let entry = Flows {
        load: None,
        outstanding: Some(3),
        pause: Some(Span::from_us(2)),
        ..Flows::at_load(fixed(5_000), 0.5)
    };
    let mut traffic = traffic(entry, 8, 1).unwrap();
    let mut mock = MockHost::unthrottled(2);
    let mut delivered = 0;
    let transit = Transit {
        hops: 2,
        marked: true,
        sent: Time::ZERO,
        completes: false,
        number: None,
    };
    while mock.now < after_ms(1) {
        let more = mock.step(&mut traffic);
        while let Some(sent) = mock.log.get(delivered).copied() {
            delivered += 1;
            traffic.on_delivered(
                HostId::new(2),
                &sent.offer,
                transit,
                mock.now,
                &mut Vec::new(),
            );
        }
        let flows = traffic.flows_of(HostId::new(2), mock.now);
        let open = flows.iter().filter(|(_, flow)| flow.end.is_none());
        assert!(open.count() <= 3);
        assert!(more, "a closed loop goes on");
    }
    let flows = traffic.flows_of(HostId::new(2), mock.now);
    let ended: Vec<_> = flows
        .iter()
        .filter(|(_, flow)| flow.end.is_some())
        .collect();
    assert!(ended.len() > 100, "{}", ended.len());
    for (_, flow) in ended {
        assert_eq!((flow.delivered, flow.marks, flow.hops), (5_000, 3, 2));
    }
}

#[test]
fn mistakes_are_refused() {
    let load = |load| Flows::at_load(fixed(1_000), load);
    let refused = |entry: Flows| traffic(entry, 12, 1).unwrap_err();
    assert_eq!(refused(load(1.5)), Reason::NotAFraction(1.5));
    assert_eq!(refused(load(0.0)), Reason::ZeroLoad);
    let saturating = Flows {
        load: Some(Load::Saturating),
        ..load(0.5)
    };
    assert_eq!(refused(saturating), Reason::FlowsSaturate);
    let idle = Flows {
        load: None,
        ..load(0.5)
    };
    assert_eq!(refused(idle), Reason::NoPace);
    let both = Flows {
        outstanding: Some(2),
        ..load(0.5)
    };
    assert_eq!(refused(both), Reason::TwoPaces);
    let square = Flows {
        pattern: FlowPattern::Transpose,
        ..load(0.5)
    };
    assert_eq!(refused(square), Reason::NotASquare(12));
    let racks = Flows {
        pattern: FlowPattern::Rack,
        rack_hosts: Some(5),
        rack_share: Some(0.5),
        ..load(0.5)
    };
    assert_eq!(refused(racks), Reason::RackSize { size: 5, hosts: 12 });
    let incast = Flows {
        pattern: FlowPattern::Incast,
        load: None,
        interval: Some(Span::from_us(1)),
        senders: Some(12),
        ..load(0.5)
    };
    let (wanted, available) = (12, 11);
    assert_eq!(refused(incast), Reason::TooFewHosts { wanted, available });
    let shape = SizeMix::Pareto {
        shape: 0.0,
        from: Bytes::from_bytes(1),
        to: Bytes::from_bytes(2),
    };
    assert_eq!(
        refused(Flows::at_load(shape, 0.5)),
        Reason::ParetoShape(0.0)
    );
}

/// Towards a shape of 0 the logarithm of a size is uniform; the mean does not jump at a shape of 1.
#[test]
fn sizes_of_any_shape_have_the_mean_of_the_closed_form() {
    let (from, to) = (1_024.0, 65_536.0_f64);
    let range = (to / from).ln();
    let uniform = ((to - from) / range, (to * to - from * from) / (2.0 * range));
    // At a shape of 1 the density is c / x^2.
    let whole = 1.0 - from / to;
    let inverse = (from * range / whole, from * (to - from) / whole);
    let tiny = [1e-9, 1e-13, 1e-15, 1e-17, 1e-300, 5e-324];
    let near_one = [1.0 - 1e-9, 1.0 - 1e-14, 1.0, 1.0 + 1e-15, 1.0 + 1e-9];
    let cases = tiny.map(|shape| (shape, uniform)).into_iter();
    for (shape, (mean, square)) in cases.chain(near_one.map(|shape| (shape, inverse))) {
        let (from, to) = in_bytes(1_024, 65_536);
        let mix = SizeMix::Pareto { shape, from, to };
        let flows = records(Flows::at_load(mix, 0.6), 40, after_ms(40));
        let count = flows.len() as f64;
        let sum: f64 = flows.iter().map(|(_, flow)| flow.bytes as f64).sum();
        let deviation = (square - mean * mean).sqrt();
        let error = (sum / count - mean).abs();
        assert!(
            error < 4.0 * deviation / count.sqrt() + 1.0,
            "{shape}: {error}"
        );
        let offered = 0.6 * injection().bits_per_sec() as f64 / 8.0 * 0.04 * 40.0;
        let bound = 4.0 * (offered / mean * square).sqrt();
        assert!((sum - offered).abs() < bound, "{shape}: {sum}");
    }
    let (from, to) = in_bytes(1_024, 65_536);
    let shape = f64::MAX;
    let smallest = SizeMix::Pareto { shape, from, to };
    let flows = records(Flows::at_load(smallest, 0.6), 4, after_ms(1));
    assert!(flows.iter().all(|(_, flow)| flow.bytes == 1_024));
    assert!(!flows.is_empty());
}

proptest! {
    /// Numbers and separators at random make both distributions and mistakes.
    #[test]
    fn any_text_is_a_rising_distribution_or_has_a_line_at_fault(
        text in "([0-9]{1,3}[ ,\t]{1,2}[0-9.e-]{1,3}\n){0,6}(100000 1(00)?)?",
        steps in "[0-9]{1,3}\n(1 0.[0-4]\n)?(2 0.[5-9]\n){0,2}3 1",
        packets in "(1 1 0.[0-4]\n)?(2 1 0.[5-9]\n){0,2}3 1 1(.0)?",
        any in ".{0,60}",
    ) {
        cdf_law::check(&text);
        cdf_law::check(&steps);
        cdf_law::check(&packets);
        cdf_law::check(&any);
    }
}

#[test]
fn files_of_sizes_name_the_line_at_fault() {
    let fault = |text: &str| {
        let error = read_cdf(text, None).unwrap_err();
        (error.place, error.message)
    };
    assert_eq!(fault("0 0\n# sizes\n10 50\n20 40\n30 100").0, 4);
    assert!(
        fault("0 0\n10 50\n20 40\n30 100")
            .1
            .contains("falls from 50 to 40")
    );
    assert_eq!(fault("0 0\n10 50\n9 60\n30 100").0, 3);
    assert_eq!(fault("0 0\n10 x").0, 2);
    assert_eq!(fault("0 0\n10 50\n20 99").0, 3);
    assert_eq!(fault("0 0\n10 150").0, 2);
    assert_eq!(fault("").0, 1);
    let points = read_cdf("0 0\n10000, 0.15 # up to 10 kB\n\n30000\t1\n", None).unwrap();
    assert_eq!(
        points.iter().map(|point| point.1).collect::<Vec<_>>(),
        [0.0, 15.0, 100.0]
    );
}

/// Sizes of flows of a distribution, whose mean is as given: within four standard errors.
fn drawn(points: Vec<CdfPoint>, mean: f64) -> BTreeSet<u64> {
    let flows = records(Flows::at_load(SizeMix::Cdf(points), 0.5), 10, after_ms(50));
    let sizes: Vec<f64> = flows.iter().map(|(_, flow)| flow.bytes as f64).collect();
    let count = sizes.len() as f64;
    assert!(count > 500.0, "{count}");
    let found = sizes.iter().sum::<f64>() / count;
    let squares = sizes.iter().map(|size| (size - found).powi(2));
    let error = (squares.sum::<f64>() / count / count).sqrt();
    assert!(
        (found - mean).abs() < 4.0 * error,
        "{found} +- {error}: {mean}"
    );
    flows.iter().map(|(_, flow)| flow.bytes).collect()
}

/// Homa's files have the mean in the first line, and its flows have no other sizes than those of the lines (HomaTransport,
/// `MsgSizeDistributions.cc`).
#[test]
fn sizes_of_homa_are_steps_with_their_mean() {
    let points = read_cdf(
        "3575.000\n100   0.5\n1500 0.75\n1500 0.85\n20000\t1.0\n",
        None,
    )
    .unwrap();
    let sizes: Vec<(u64, f64)> = points
        .iter()
        .map(|point| (point.0.as_u64(), point.1))
        .collect();
    let expected = [
        (100, 50.0),
        (1500, 50.0),
        (1500, 75.0),
        (1500, 85.0),
        (20_000, 85.0),
        (20_000, 100.0),
    ];
    assert_eq!(sizes, expected);
    let mean = 0.5 * 100.0 + 0.35 * 1500.0 + 0.15 * 20_000.0;
    assert_eq!(drawn(points, mean), [100, 1500, 20_000].into());
}

/// YAPS counts packets of 1,460 bytes, with a word between size and share that it does not use, and draws straight lines
/// (`random_variable.cpp`).
#[test]
fn sizes_of_yaps_are_in_packets() {
    let points = read_cdf("6 1 0\n6 1 0.15\n13 1 0.2\n100 1 1\n", None).unwrap();
    let sizes: Vec<(u64, f64)> = points
        .iter()
        .map(|point| (point.0.as_u64(), point.1))
        .collect();
    assert_eq!(
        sizes,
        [(8760, 0.0), (8760, 15.0), (18_980, 20.0), (146_000, 100.0)]
    );
    drawn(points, 1460.0 * (0.15 * 6.0 + 0.05 * 9.5 + 0.8 * 56.5));
}

/// Oracle: the sums by hand. Homa's files of DCTCP count packets of 1,460 bytes, and some shares in one of them fall.
/// Homa's draw takes the first size whose share reaches a random number (`MsgSizeDistributions.cc`).
#[test]
fn sizes_may_be_in_packets() {
    let packets = Some(SizeUnit::Packets);
    let steps = "28.5\n1 0.25\n2 0.2\n10 0.5\n50 1\n";
    let mean = 0.25 * 1.0 + 0.25 * 10.0 + 0.5 * 50.0;
    let points = read_cdf(&steps.replace("28.5", &mean.to_string()), packets).unwrap();
    assert_eq!(drawn(points, 1460.0 * mean), [1460, 14_600, 73_000].into());
    // The mean of the first line counts packets, too.
    let error = read_cdf(steps, packets).unwrap_err();
    assert_eq!(error.place, 1);
    assert!(
        error.message.contains("the mean of the sizes is 27.75"),
        "{error}"
    );
    let lines = "6 0\n6 0.15\n13 0.2\n100 1\n";
    drawn(
        read_cdf(lines, packets).unwrap(),
        1460.0 * (0.15 * 6.0 + 0.05 * 9.5 + 0.8 * 56.5),
    );
    // Sizes of a file in the form of YAPS that counts bytes.
    let points = read_cdf("6000 1 0\n100000 1 1\n", Some(SizeUnit::Bytes)).unwrap();
    drawn(points, 53_000.0);
}

#[test]
fn other_forms_of_sizes_name_what_is_wrong() {
    for (text, place, message) in [
        (
            "17\n10 0.5\n20 1.0",
            1,
            "the first line is \"17\", but the mean of the sizes is 15.00",
        ),
        ("mean\n10 0.5\n20 1.0", 1, "the first line is \"mean\""),
        ("15\n10 0.5\n20", 3, "\"20\" is not a size and a share"),
        (
            "185.0\n1 0.2\n15 0.47",
            3,
            "the distribution ends at 0.47 percent",
        ),
        ("15", 1, "0 points make no distribution"),
        (
            "6 1 0\n13 0.5\n20 1 1",
            2,
            "\"13 0.5\" is not a size and a share",
        ),
        ("6 1 0\n5 1 0.5\n20 1 1", 2, "is less than the one before"),
    ] {
        let error = read_cdf(text, None).unwrap_err();
        assert_eq!(error.place, place, "{text:?}: {error}");
        assert!(error.message.contains(message), "{text:?}: {error}");
    }
}

proptest! {
    /// Any text gives points that rise, or an error with a line of the text.
    #[test]
    fn any_file_of_sizes_is_read_or_refused(text in "[0-9 .\\-e#\n,x]{0,80}") {
        match read_cdf(&text, None) {
            Ok(points) => {
                prop_assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
                let entry = Flows::at_load(SizeMix::Cdf(points), 0.5);
                prop_assert!(traffic(entry, 3, 1).is_ok());
            }
            Err(error) => prop_assert!(error.place >= 1 && error.place <= text.lines().count().max(1)),
        }
    }

    /// Flows of one pair follow each other, and every byte is sent, for any delays of the host.
    #[test]
    fn every_flow_is_sent_whole_and_in_order(seed in 0_u64..1000) {
        let entry = Flows {
            end: silvan_core::document::Limit::At(Span::from_us(300)),
            ..Flows::at_load(SizeMix::Uniform { from: Bytes::from_bytes(1), to: Bytes::from_bytes(20_000) }, 0.9)
        };
        let mut traffic = traffic(entry, 6, seed).unwrap();
        let weather = crate::mock::Weather {
            throttle_percent: 10,
            throttle: Span::from_us(30),
            close_percent: 10,
            close: Span::from_us(5),
            amnesty_percent: 2,
            ..crate::mock::Weather::default()
        };
        let mut mock = MockHost::new(1, weather, seed);
        mock.run(&mut traffic, after_ms(100));
        let flows = traffic.flows_of(HostId::new(1), mock.now);
        let mut sent: BTreeMap<HostId, Vec<u64>> = BTreeMap::new();
        let mut open: BTreeMap<HostId, u64> = BTreeMap::new();
        for packet in &mock.log {
            let bytes = open.entry(packet.offer.dst).or_default();
            *bytes += u64::from(packet.offer.bytes);
            if packet.offer.last {
                sent.entry(packet.offer.dst).or_default().push(std::mem::take(bytes));
            }
        }
        let mut expected: BTreeMap<HostId, Vec<u64>> = BTreeMap::new();
        for (_, flow) in flows {
            expected.entry(flow.destination).or_default().push(flow.bytes);
        }
        prop_assert_eq!(sent, expected);
    }
}
