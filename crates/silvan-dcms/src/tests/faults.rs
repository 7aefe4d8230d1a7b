//! Losses, reboots, handovers, other tools, flaps, garbage.

use proptest::prelude::*;
use silvan_subnet::metrics::Page;

use super::*;

fn lowered(event: &Event) -> bool {
    matches!(event, Event::Lowered { .. })
}

/// Nothing but S2's port to D was ever set.
fn assert_only_the_root_was_set(bench: &Bench) {
    for (name, port, _) in bench.sets() {
        assert_eq!((name.as_str(), port), ("S2", Some(23)));
    }
}

/// Oracle: the run without losses acts; with losses it acts too, on nothing else, and restores
/// everything.
#[test]
fn a_tenth_of_all_datagrams_is_lost() {
    let mut acted = 0;
    for seed in 0..12 {
        let bench = Bench::congested(seed, 25);
        bench.subnet.world().loss = 100;
        assert_eq!(bench.act(CONFIG), 0, "seed {seed}");
        assert_only_the_root_was_set(&bench);
        bench.assert_untouched();
        acted += usize::from(bench.count(lowered) > 0);
    }
    assert!(acted >= 8, "only {acted} of 12 runs have acted");
}

/// Oracle: a switch that reboots has the settings it was shipped with, and they stay.
#[test]
fn a_switch_reboots_while_a_port_is_low() {
    let bench = Bench::congested(1, 40);
    bench.after(7, Fault::Reboot("S2", seconds(8)));
    bench.after(9, Fault::Incast(false));
    assert_eq!(bench.act(CONFIG), 0);
    assert_only_the_root_was_set(&bench);
    let rates = bench.rates();
    assert_eq!(rates[..24], [128; 24]);
    assert_eq!(rates[24..], [200; 24]);
    assert!(bench.count(|event| matches!(event, Event::SwitchSilent { .. })) >= 1);
    assert!(bench.count(|event| matches!(event, Event::SwitchBack { .. })) >= 1);
    assert!(bench.count(|event| matches!(event, Event::LeftAlone { .. })) == 1);
}

/// Oracle: a switch that is off permanently keeps its change in the journal, without delay for other switches. When it
/// is back, the next start restores it.
#[test]
fn a_switch_that_never_comes_back_is_remembered() {
    let bench = Bench::congested(1, 20);
    bench.after(7, Fault::Reboot("S2", seconds(100_000)));
    // S1 still answers, at its own pace.
    assert_eq!(bench.act(CONFIG), 1);
    assert_eq!(bench.events().last(), Some(&Event::Stopped { pending: 1 }));
    assert!(bench.disk.text().contains("\"port\":23"));
    assert!(bench.subnet.world().now.as_secs_f64() < 20.0 + 30.0 + 10.0);
    let mut world = bench.subnet.world();
    world.incast = false;
    world.nodes[1].alive = true;
    // The switch has lost only its management, no settings.
    world.nodes[1].ports[23].own.valid = true;
    world.nodes[1].ports[23].own.threshold = silvan_mad::Bits::saturating(15);
    world.nodes[1].ports[23].own.packet_size = 3;
    world.nodes[1].ports[23].own.marking_rate = 0;
    world.nodes[1].whole.marking_rate = 128;
    drop(world);
    assert_eq!(bench.run(CONFIG, true, Task::Restore).unwrap(), 0);
    bench.assert_untouched();
}

/// Oracle: changes in the journal count as changed switches, independent of the machine's state.
#[test]
fn never_more_switches_than_allowed_have_a_change() {
    let bench = Bench::congested(1, 60);
    bench.after(7, Fault::Reboot("S2", seconds(10)));
    let config = format!("{CONFIG}max-low-switches = 1\n");
    bench.act(&config);
    assert!(bench.count(lowered) > 0);
    assert_only_the_root_was_set(&bench);
}

/// Oracle: after two switches have swapped their LIDs, no setting reaches the wrong one.
#[test]
fn the_sm_hands_over_and_lids_change() {
    for second in 2..12 {
        let bench = Bench::congested(1, 25);
        bench.after(second, Fault::Swap("S1", "S2"));
        bench.after(second, Fault::Sm("A"));
        assert_eq!(bench.act(CONFIG), 0, "second {second}");
        assert_only_the_root_was_set(&bench);
        bench.assert_untouched();
        assert!(bench.count(lowered) > 0, "second {second}");
    }
}

/// Oracle: the definition of `sm-lost-after`; everything is as shipped while no SM answers, and work
/// goes on when one does.
#[test]
fn everything_is_restored_when_the_sm_is_lost() {
    let config = format!("{CONFIG}\n[subnet]\nsm-lost-after = \"3 s\"\n");
    let bench = Bench::congested(1, 12);
    bench.after(6, Fault::LoseSm);
    assert_eq!(bench.act(&config), 0);
    let events = bench.events();
    let location = |is: fn(&Event) -> bool| events.iter().position(is).unwrap();
    let lost = location(|event| matches!(event, Event::SmLost { .. }));
    let restored = location(|event| matches!(event, Event::Restored { .. }));
    let stopping = location(|event| matches!(event, Event::Stopping { pending: 0 }));
    assert!(lost < restored && restored < stopping);
    assert_eq!(bench.count(lowered), 1);
    bench.assert_losses_are_logged();
    bench.assert_untouched();

    let bench = Bench::congested(1, 25);
    bench.after(6, Fault::LoseSm);
    bench.after(14, Fault::Sm("B"));
    assert_eq!(bench.act(&config), 0);
    // At the start, and after the loss.
    assert_eq!(bench.count(|event| matches!(event, Event::SmFound)), 2);
    assert!(bench.count(lowered) >= 2);
    bench.assert_losses_are_logged();
    bench.assert_untouched();
}

/// Oracle: the definition of `require-sm`. No decision is made before the first answer of a subnet manager, after any
/// time. Logs and metrics say so.
#[test]
fn nothing_is_decided_before_an_sm_answers() {
    for second in [2, 5, 45] {
        let bench = Bench::new(1);
        bench.subnet.world().incast = true;
        bench.subnet.world().sm = None;
        bench.after(second, Fault::Sm("A"));
        bench.after(second + 20, Fault::Stop);
        assert_eq!(bench.act(CONFIG), 0);
        let events = bench.events();
        let location = |is: fn(&Event) -> bool| events.iter().position(is).unwrap();
        let awaited = location(|event| matches!(event, Event::SmAwaited));
        let found = location(|event| matches!(event, Event::SmFound));
        let decided = location(|event| matches!(event, Event::Decision(_)));
        assert!(awaited < found && found < decided);
        let first = bench.subnet.world().rates_set[0].0;
        assert!(first > second as f64, "set at {first} s");
        assert_eq!(bench.count(|event| matches!(event, Event::SmAwaited)), 1);
        assert_eq!(
            bench.count(|event| matches!(event, Event::SmLost { .. })),
            0
        );
        bench.assert_untouched();
    }
    let config = format!("{CONFIG}\n[subnet]\nsm-lost-after = \"10 s\"\n");
    let bench = Bench::new(1);
    bench.subnet.world().incast = true;
    bench.subnet.world().sm = None;
    bench.after(9, Fault::Stop);
    assert_eq!(bench.act(&config), 0);
    assert!(bench.metrics.text().contains("silvan_dcms_sm_awaited 1\n"));
    assert!(bench.sets().is_empty());
    // A single decision waits as long as until a subnet manager counts as lost.
    let bench = Bench::new(1);
    bench.subnet.world().incast = true;
    bench.subnet.world().sm = None;
    let error = bench.run(&config, true, Task::Once).unwrap_err();
    assert!(matches!(error, ManagerError::NoSm), "{error}");
    assert!(bench.sets().is_empty());
    let patient = Bench::new(1);
    patient.subnet.world().incast = true;
    patient.subnet.world().sm = None;
    patient.after(4, Fault::Sm("A"));
    assert_eq!(patient.run(&config, true, Task::Once).unwrap(), 0);
    assert_eq!(patient.count(lowered), 1);
}

/// Oracle: the settings in force. A full disk prevents no restoring. Some log lines, but not one for every try, say
/// that the journal cannot be written.
#[test]
fn a_full_disk_is_told_from_a_switch_that_is_not_restored() {
    let failed = |event: &Event| matches!(event, Event::JournalFailed { .. });
    let not_restored = |event: &Event| matches!(event, Event::NotRestored { .. });
    // Full from the middle of the first time for which the rate is low, for good.
    let bench = Bench::congested(1, 40);
    bench.after(7, Fault::FullDisk(true));
    let error = bench.run(CONFIG, true, Task::Run).unwrap_err();
    assert!(matches!(error, ManagerError::JournalOutdated(_)), "{error}");
    bench.assert_untouched();
    assert_eq!(bench.count(not_restored), 0);
    assert_eq!(
        bench.count(|event| matches!(event, Event::Restored { .. })),
        1
    );
    assert_eq!(bench.count(lowered), 1);
    // 30 s until the end and 30 s of patience: after 1, 2, 4, ... seconds.
    assert!(
        (4..=8).contains(&bench.count(failed)),
        "{}",
        bench.count(failed)
    );
    let text = bench.metrics.text();
    let errors = text
        .lines()
        .find(|line| line.starts_with("silvan_dcms_journal_errors_total"));
    let errors: usize = errors.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(errors >= bench.count(failed));
    // The journal still lists it; the next start finds nothing to restore, and clears it.
    assert!(bench.disk.text().contains("\"port\":23"));
    bench.subnet.world().is_disk_full = false;
    assert_eq!(bench.run(CONFIG, true, Task::Restore).unwrap(), 0);
    assert!(!bench.disk.text().contains("\"port\":23"));
    bench.assert_untouched();

    // Full for a while: it is written when there is room, and work goes on.
    let bench = Bench::congested(1, 60);
    bench.after(7, Fault::FullDisk(true));
    bench.after(25, Fault::FullDisk(false));
    assert_eq!(bench.act(CONFIG), 0);
    assert_eq!(
        bench.count(|event| matches!(event, Event::JournalWritten)),
        1
    );
    assert!(bench.count(lowered) >= 2);
    assert!(bench.disk.text().contains("\"changes\":0}"));
    bench.assert_untouched();
}

/// Oracle: the world's clock; a change that cannot be restored gets older, and its failures are
/// logged less and less often, at the end, too.
#[test]
fn pending_restores_have_an_age() {
    let bench = Bench::congested(1, 20);
    bench.after(7, Fault::Reboot("S2", seconds(100_000)));
    assert_eq!(bench.act(CONFIG), 1);
    let made = bench.subnet.world().rates_set[0].0;
    let age = bench.subnet.world().now.as_secs_f64() - made;
    let text = bench.metrics.text();
    let line = text
        .lines()
        .find(|line| line.starts_with("silvan_dcms_pending_restores_age_seconds"));
    let seen: f64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!((seen - age).abs() <= 2.0, "{seen} instead of {age}");
    let failures = bench.count(|event| matches!(event, Event::NotRestored { .. }));
    assert!((2..=8).contains(&failures), "{failures}");
}

/// Oracle: a switch that does not answer without the key is named.
#[test]
fn a_switch_without_congestion_control_is_named_once() {
    let bench = Bench::congested(1, 100);
    bench.subnet.world().nodes[1].has_congestion_agent = false;
    assert_eq!(bench.act(CONFIG), 0);
    let named = |event: &Event| matches!(event, Event::NoCongestionControl { switch } if switch.switch == "S2");
    assert_eq!(bench.count(named), 1);
    assert!(bench.sets().is_empty());
}

/// Oracle: in a quiet subnet with large counters nothing may be decided, whenever another tool
/// clears them.
#[test]
fn counters_cleared_in_the_middle_of_a_sweep_decide_nothing() {
    for datagrams in (150..600).step_by(7) {
        let bench = Bench::congested(1, 12);
        // Congested until just before the manager starts, quiet since.
        bench.subnet.world().incast = false;
        bench.subnet.world().clear_after = Some(datagrams);
        bench.after(5, Fault::Clear);
        let quiet = Bench::new(1);
        quiet.after(12, Fault::Stop);
        quiet.subnet.world().clear_after = Some(datagrams);
        assert_eq!(quiet.act(CONFIG), 0);
        assert!(quiet.sets().is_empty());
        assert_eq!(quiet.count(|event| matches!(event, Event::Decision(_))), 0);
        // In a congested subnet, the decisions are still those of the root.
        assert_eq!(bench.act(CONFIG), 0);
        assert_only_the_root_was_set(&bench);
        bench.assert_untouched();
    }
}

/// Oracle: a link that was down says nothing of congestion in that sweep; nothing crashes, and
/// everything is restored.
#[test]
fn links_flap() {
    let bench = Bench::congested(1, 30);
    for second in 2..30 {
        bench.after(second, Fault::Flap("S2", 23));
        if second % 3 == 0 {
            bench.after(second, Fault::Flap("S1", 15));
        }
    }
    assert_eq!(bench.act(CONFIG), 0);
    assert!(bench.count(|event| matches!(event, Event::LinkFlapped { .. })) > 5);
    // Flapping every second, the root is never known to be congested.
    assert_eq!(bench.count(lowered), 0);
    bench.assert_untouched();
}

/// Oracle: a port that is gone is restored at once, since its switch answers; when the cable is
/// mended, work goes on within seconds.
#[test]
fn a_cable_is_cut_while_its_port_is_low() {
    let config = "[dcms]\nlow-duration = \"1000 s\"\n[subnet]\nrediscover = \"6 s\"\n";
    let bench = Bench::congested(1, 60);
    bench.after(8, Fault::Cut("S2", 23));
    bench.after(25, Fault::Mend);
    assert_eq!(bench.act(config), 0);
    let events = bench.events();
    let vanished = events
        .iter()
        .position(|event| matches!(event, Event::Decision(made) if made.reason == "vanished"));
    let restored = events
        .iter()
        .position(|event| matches!(event, Event::Restored { .. }));
    assert!(vanished.unwrap() < restored.unwrap());
    assert_eq!(bench.count(lowered), 2);
    assert_only_the_root_was_set(&bench);
    bench.assert_untouched();
}

/// Oracle: with one switch off, sweeps of the other keep their pace after the first.
#[test]
fn a_silent_switch_keeps_nobody_waiting() {
    let bench = Bench::new(1);
    bench.after(3, Fault::Reboot("S2", seconds(1_000)));
    bench.after(100, Fault::Stop);
    assert_eq!(bench.act(CONFIG), 0);
    let slow = bench
        .events
        .lock()
        .unwrap()
        .iter()
        .filter(|event| matches!(event, Event::Swept { seconds, .. } if *seconds > 1.0))
        .count();
    let all = bench
        .events
        .lock()
        .unwrap()
        .iter()
        .filter(|event| matches!(event, Event::Swept { .. }))
        .count();
    assert!(slow <= 8, "{slow} of {all} sweeps were slow");
    assert!(all > 70, "only {all} sweeps in 100 s");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Oracle: no panic, for any answers of nodes. (The settings in force cannot be verified here: the switch's answers
    /// are garbage, too.)
    #[test]
    fn garbage_does_no_harm(seed in any::<u64>(), loss in 0..300_u64, start in 0..6_u64) {
        let bench = Bench::congested(seed, 12);
        bench.subnet.world().loss = loss;
        if start == 0 {
            bench.subnet.world().garbage = true;
        } else {
            // Garbage begins after a subnet has been seen.
            bench.after(start, Fault::Garbage);
        }
        let config = format!("{CONFIG}\n[state]\npatience = \"3 s\"\n[datagrams]\nretries = 1\n");
        let _ = bench.run(&config, true, Task::Run);
    }
}
