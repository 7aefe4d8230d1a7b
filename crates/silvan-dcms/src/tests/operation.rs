//! Operation without faults.

use silvan_core::DeviceId;
use silvan_subnet::metrics::Page;
use silvan_subnet::observer::{LowRound, Round};

use super::*;

fn lowered(event: &Event) -> bool {
    matches!(event, Event::Lowered { .. })
}

/// Oracle: the paper's account of figures 5 and 6. The rate is lowered when the victim appears, restored at the time
/// limit, and lowered again. At the end the original setting is in force.
#[test]
fn lowers_restores_and_lowers_again() {
    let bench = Bench::congested(1, 16);
    assert_eq!(bench.act(CONFIG), 0);
    let s2 = |rate| ("S2".to_owned(), Some(23), rate);
    assert_eq!(bench.sets(), [s2(0), s2(0), s2(0), s2(0)]);
    assert_eq!(bench.count(lowered), 2);
    let restored = bench.count(|event| matches!(event, Event::Restored { now: 128, .. }));
    assert_eq!(restored, 2);
    bench.assert_untouched();
    assert!(bench.disk.text().contains("\"changes\":0}"));
    bench.assert_losses_are_logged();
    let reasons: Vec<&str> = bench
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::Decision(decided) => Some(decided.reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, ["victim-found", "time-limit", "victim-found"]);
    assert_eq!(bench.events().last(), Some(&Event::Stopped { pending: 0 }));
}

/// Oracle: nothing was set, while the decisions are the same.
#[test]
fn a_dry_run_sets_nothing() {
    let bench = Bench::congested(1, 18);
    assert_eq!(bench.run(CONFIG, false, Task::Run).unwrap(), 0);
    assert!(bench.sets().is_empty());
    let would = bench.count(|event| match event {
        Event::Decision(decided) => decided.action == Do::Lower && decided.dry_run,
        _ => false,
    });
    assert!(would >= 1);
    assert_eq!(bench.disk.text(), "");
}

/// Oracle: the victim waits for 30e6 ticks of 22 ns per second, on a link of 32 Gbit/s.
#[test]
fn a_dry_run_says_what_victims_lose() {
    let bench = Bench::congested(1, 16);
    assert_eq!(bench.run(CONFIG, false, Task::Run).unwrap(), 0);
    let ended: Vec<f64> = bench
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::Decision(decided) => decided.victims_lost_bytes,
            _ => None,
        })
        .collect();
    let lost_per_s = 30e6 * 22e-9 * 4e9;
    assert!(!ended.is_empty());
    for lost in &ended {
        assert!((lost / (6.0 * lost_per_s) - 1.0).abs() < 0.02, "{lost}");
    }
    let status = bench.disk.status();
    assert_eq!(status["act"], false);
    assert_eq!(status["subnet-manager"], "found");
    // Nothing is held low any more.
    assert_eq!(status["low"].as_array().map(Vec::len), Some(0));
    let decisions = bench.count(|event| matches!(event, Event::Decision(_)));
    let counts = status["decisions"].as_object().unwrap().values();
    let all: u64 = counts.map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(all, decisions as u64);
}

/// Oracle: the differences of the victim's counter, added up over the sweeps for which the Marking_Rate
/// was low, or would have been.
#[test]
fn what_victims_lose_until_the_end_is_logged() {
    for (act, end) in [(false, 8), (false, 9), (true, 8)] {
        let bench = Bench::congested(1, end);
        let rounds: Arc<Mutex<Vec<Round>>> = Arc::default();
        let kept = Arc::clone(&rounds);
        let mut manager = bench.manager(CONFIG, act);
        manager.observe(Arc::new(move |round| kept.lock().unwrap().push(round)));
        let stop = Arc::clone(&bench.subnet.world().stop);
        assert_eq!(manager.run(Task::Run, &stop).unwrap(), 0);
        let ended: Vec<_> = bench
            .events()
            .into_iter()
            .filter_map(|event| match event {
                Event::LowEnded {
                    port,
                    dry_run,
                    low_for_s,
                    victims_lost_bytes,
                } => Some((port.to_string(), dry_run, low_for_s, victims_lost_bytes)),
                _ => None,
            })
            .collect();
        let [(port, dry_run, low_for_s, lost)] = &ended[..] else {
            panic!("{ended:?}");
        };
        assert_eq!((port.as_str(), *dry_run), ("S2:23 (to D)", !act));
        let victim = (bench.subnet.world().guid("S1"), 15);
        let rounds = rounds.lock().unwrap();
        let low: Vec<_> = rounds
            .iter()
            .filter(|round| !round.low.is_empty())
            .collect();
        // The counters of the first one have led to the decision.
        let ticks: u64 = low[1..]
            .iter()
            .flat_map(|round| &round.ports)
            .filter(|(port, _)| *port == victim)
            .map(|(_, growth)| growth.unwrap().xmit_wait.unwrap())
            .sum();
        assert!(act || ticks >= 60_000_000, "{ticks}");
        let expected = ticks as f64 * 22e-9 * 4e9;
        assert!(
            (lost - expected).abs() <= 1e-9 * expected,
            "{lost} {expected}"
        );
        assert!(
            (low_for_s.unwrap() - low.len() as f64).abs() < 0.2,
            "{low_for_s:?}"
        );
        let ends = |event: &Event| matches!(event, Event::LowEnded { .. });
        let stops = |event: &Event| matches!(event, Event::Stopping { .. } | Event::Stopped { .. });
        let place = |is: &dyn Fn(&Event) -> bool| bench.events().iter().position(is);
        assert!(place(&ends) < place(&stops));
    }
}

/// Oracle: the rates at which the subnet's counters grow, and what the manager has logged.
#[test]
fn an_observer_gets_what_every_sweep_has_shown() {
    let bench = Bench::congested(1, 9);
    let rounds: Arc<Mutex<Vec<Round>>> = Arc::default();
    let kept = Arc::clone(&rounds);
    let mut manager = bench.manager(CONFIG, true);
    manager.observe(Arc::new(move |round| kept.lock().unwrap().push(round)));
    let stop = Arc::clone(&bench.subnet.world().stop);
    assert_eq!(manager.run(Task::Run, &stop).unwrap(), 0);
    let rounds = rounds.lock().unwrap();
    let swept = |event: &&Event| matches!(event, Event::Swept { .. });
    assert_eq!(
        rounds.len(),
        bench.events.lock().unwrap().iter().filter(swept).count()
    );
    assert!(
        rounds
            .iter()
            .all(|round| Arc::ptr_eq(&round.subnet, &rounds[0].subnet))
    );
    let guid = |name| bench.subnet.world().guid(name);
    let (root, victim) = ((guid("S2"), 23), (guid("S1"), 15));
    let low: Vec<&LowRound> = rounds.iter().flat_map(|round| &round.low).collect();
    assert!(!low.is_empty());
    for (seconds, round) in low.iter().enumerate() {
        assert_eq!((round.port, &round.victims), (root, &vec![victim]));
        assert!((round.low_for.as_secs_f64() - seconds as f64).abs() < 0.1);
    }
    // Until its Marking_Rate is low, the victim waits for 30 million ticks per second.
    let first = rounds.iter().find(|round| !round.low.is_empty()).unwrap();
    let ports = &first.ports;
    let (_, grown) = ports.iter().find(|(port, _)| *port == victim).unwrap();
    let grown = grown.unwrap();
    let part = grown.xmit_wait.unwrap() as f64 / 30e6 / grown.span.as_secs_f64();
    assert!((part - 1.0).abs() < 0.01, "{part}");
}

/// Oracle: the definition of the task: two sweeps, one decision, everything restored.
#[test]
fn once_decides_once_and_ends() {
    let bench = Bench::new(1);
    bench.subnet.world().incast = true;
    assert_eq!(bench.run(CONFIG, true, Task::Once).unwrap(), 0);
    assert_eq!(bench.count(lowered), 1);
    bench.assert_untouched();
}

/// Oracle: the switch-wide setting is changed, and only its Marking_Rate.
#[test]
fn switches_without_settings_of_ports_are_changed_as_a_whole() {
    for forced in [false, true] {
        let bench = Bench::congested(1, 8);
        bench.subnet.world().nodes[1].has_port_settings = forced;
        let scope = if forced { "switch" } else { "port" };
        let config = format!("{CONFIG}\n[marking]\nscope = \"{scope}\"");
        assert_eq!(bench.act(&config), 0);
        let whole = |rate| ("S2".to_owned(), None, rate);
        assert_eq!(bench.sets(), [whole(0), whole(128)]);
        bench.assert_untouched();
    }
}

/// Oracle: the original rate is in force, for any handling of invalid elements by the switch.
#[test]
fn a_switch_that_passes_over_invalid_elements_gets_its_rate_back() {
    let bench = Bench::congested(1, 8);
    bench.subnet.world().nodes[1].ignores_invalid = true;
    assert_eq!(bench.act(CONFIG), 0);
    assert_eq!(bench.count(lowered), 1);
    assert!(bench.rates().iter().all(|&rate| rate == 128));
}

/// Oracle: the definition of the rules.
#[test]
fn only_allowed_ports_are_changed() {
    let guid = Bench::new(1).subnet.world().guid("S2");
    let cases = [
        (r#"deny = ["S2:23"]"#.to_owned(), false),
        (r#"deny = ["*:23"]"#.to_owned(), false),
        (r#"allow = ["S1"]"#.to_owned(), false),
        (format!(r#"deny = ["{guid}"]"#), false),
        (r#"allow = ["S2:23"]"#.to_owned(), true),
        (format!(r#"allow = ["{guid}:23"]"#), true),
        // A port of the switch must not be changed, so the switch as a whole must not be either.
        ("scope = \"switch\"\ndeny = [\"S2:1\"]".to_owned(), false),
    ];
    for (rule, may) in cases {
        let bench = Bench::congested(1, 8);
        bench.act(&format!("{CONFIG}\n[marking]\n{rule}"));
        assert_eq!(bench.count(lowered) > 0, may, "{rule}");
        assert_eq!(!bench.sets().is_empty(), may, "{rule}");
        bench.assert_untouched();
    }
}

/// Oracle: the port marks nothing, so that its Marking_Rate has no effect.
#[test]
fn ports_that_do_not_mark_are_left_alone() {
    let bench = Bench::congested(1, 8);
    bench.subnet.world().nodes[1].whole.threshold = silvan_mad::Bits::saturating(0);
    bench.act(CONFIG);
    assert!(bench.sets().is_empty());
    assert!(bench.count(|event| matches!(event, Event::NotLowered { .. })) > 0);
}

/// Oracle: a counter of 32 bits that reached its end would hide all congestion after it.
#[test]
fn full_counters_are_reset() {
    // 30 million ticks per second fill PortXmitWait in 143 s.
    let bench = Bench::congested(1, 400);
    let config = "[dcms]\nlow-duration = \"1 s\"\n";
    bench.act(config);
    assert!(bench.count(|event| matches!(event, Event::CountersReset { .. })) > 0);
    // A cycle of low and default takes three sweeps or four.
    assert!(bench.count(lowered) > 90, "{}", bench.count(lowered));
    bench.assert_untouched();
}

/// Oracle: a manager without the right key cannot set anything, and nothing that it writes has the key.
#[test]
fn the_key_opens_and_stays_hidden() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    for (key, works) in [(0x1122_3344_5566_7788_u64, true), (5, false)] {
        std::fs::write(&file, format!("{key:#x}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, mode).unwrap();
        let bench = Bench::congested(1, 8);
        bench.subnet.world().nodes[1].key = 0x1122_3344_5566_7788;
        let config = format!(
            "{CONFIG}\n[marking]\ncc-key-file = {:?}",
            file.display().to_string()
        );
        bench.act(&config);
        assert_eq!(bench.count(lowered) == 1, works);
        assert_eq!(bench.sets().is_empty(), !works);
        let names_it = |event: &Event| match event {
            Event::NotLowered { why, .. } => why.starts_with("the CC_Key is wrong"),
            _ => false,
        };
        assert_eq!(bench.count(names_it) > 0, !works);
        bench.assert_untouched();
        let said = format!("{:?} {:?}", bench.events(), settings(&config));
        let json = serde_json::to_string(&bench.events()).unwrap();
        for text in [said, json, bench.metrics.text(), bench.disk.text()] {
            for form in [format!("{key:x}"), format!("{key:X}"), key.to_string()] {
                assert!(key == 5 || !text.contains(&form), "{text}");
            }
        }
    }
}

/// Oracle: ticks of 4x QDR by hand: 8 bytes of the port are 2 ns, 32 bytes of a lane 32 ns. A fabric at half speed
/// takes twice as long for each.
#[test]
fn ticks_of_each_device_follow_the_time_scale() {
    let growth = |counters: &str| {
        let bench = Bench::congested(1, 6);
        {
            let mut world = bench.subnet.world();
            let devices = [("S1", DeviceId::QUANTUM), ("S2", DeviceId::SWITCH_IB_2)];
            for (name, device) in devices {
                let location = world.find(name);
                world.nodes[location].device = device;
            }
        }
        let rounds: Arc<Mutex<Vec<Round>>> = Arc::default();
        let kept = Arc::clone(&rounds);
        let config = format!("{CONFIG}[counters]\n{counters}");
        let mut manager = bench.manager(&config, false);
        manager.observe(Arc::new(move |round| kept.lock().unwrap().push(round)));
        let stop = Arc::clone(&bench.subnet.world().stop);
        manager.run(Task::Run, &stop).unwrap();
        let world = bench.subnet.world();
        let (victim, root) = ((world.guid("S1"), 15), (world.guid("S2"), 23));
        let rounds = rounds.lock().unwrap();
        let last = &rounds[rounds.len() - 1];
        let of = |wanted| {
            let (_, growth) = last.ports.iter().find(|(port, _)| *port == wanted).unwrap();
            growth.unwrap()
        };
        let span = of(victim).span.as_secs_f64();
        let wait = of(victim).xmit_wait.unwrap() as f64;
        let congested = of(root).xmit_time_cong.unwrap() as f64;
        (wait / span, congested / span)
    };
    let cases = [
        ("", 2.0, 32.0),
        ("time-scale = 0.5", 4.0, 64.0),
        ("time-scale = 2.0", 1.0, 16.0),
        (
            "time-scale = 0.5\ndevice-ticks.switch-ib-2 = \"10 ns\"",
            4.0,
            20.0,
        ),
        (
            "tick = \"3 ns\"\ndevice-ticks.0xcf08 = \"10 ns\"",
            3.0,
            10.0,
        ),
        ("time-scale = 0.5\ntick = \"3 ns\"", 6.0, 6.0),
    ];
    for (counters, of_victim, of_root) in cases {
        let (wait, congested) = growth(counters);
        let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 1e-3;
        assert!(near(wait, 30e6 * of_victim / 22.0), "{counters}: {wait}");
        assert!(
            near(congested, 9e6 * of_root / 22.0),
            "{counters}: {congested}"
        );
    }
}
