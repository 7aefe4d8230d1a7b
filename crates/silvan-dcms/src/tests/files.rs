//! Configuration, key file, state folder.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use silvan_core::GivenTicks;

use super::*;
use crate::journal::{Disk, StateError, StateFolder};
use crate::settings::{EXAMPLE, emulated_example};

fn refused(text: &str) -> String {
    ManagerSettings::from_toml(text, "dcms.toml")
        .unwrap_err()
        .to_string()
}

/// Oracle: a configuration without a key, which is all defaults.
#[test]
fn the_example_spells_out_the_defaults() {
    let example = format!("{:?}", settings(EXAMPLE));
    assert_eq!(example, format!("{:?}", settings("[dcms]")));
    // The commented keys are valid, too.
    let uncommented: String = EXAMPLE
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with('[') || rest.contains(" = ") => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .filter(|line| !line.starts_with("cc-key-file"))
        .collect();
    assert_eq!(
        settings(&uncommented).listen.unwrap().addresses,
        ["127.0.0.1:9684".parse().unwrap()]
    );
}

/// Oracle: parts of an interval: thresholds in ticks times the tick are constant, for any speed of the fabric.
#[test]
fn the_emulated_example_compares_the_same_parts_of_an_interval() {
    let paper = settings("[dcms]").dcms;
    for scale in [1.0, 0.5, 0.05, 2.0] {
        let text = emulated_example(scale);
        assert_eq!(text.lines().count(), EXAMPLE.lines().count() + 1);
        let emulated = settings(&text);
        let share = |ticks: u64, tick: Span| ticks as f64 * tick.as_secs_f64();
        let tick = emulated.dcms.tick;
        assert_eq!(tick, Span::from_ps((4_000.0 / scale) as u64));
        for (of_paper, of_emulated) in [
            (
                paper.congestion_threshold,
                emulated.dcms.congestion_threshold,
            ),
            (
                paper.rate_reduction_threshold,
                emulated.dcms.rate_reduction_threshold,
            ),
        ] {
            let ratio = share(of_emulated, tick) / share(of_paper, paper.tick);
            assert!((ratio - 1.0).abs() < 1e-4, "{ratio} at {scale}");
        }
        // Ports have the ticks of their devices, so that a fabric of several devices works.
        assert_eq!(emulated.given_ticks, GivenTicks::default());
        assert_eq!(emulated.time_scale, scale);
        assert!(!emulated.require_sm);
        assert_eq!(emulated.state, Path::new("dcms-state"));
    }
}

/// Oracle: errors written by hand.
#[test]
fn bad_configurations_are_refused_with_line_and_hint() {
    let cases = [
        (
            "[dcms]\nintervall = \"1 s\"",
            "dcms.toml:2: dcms.intervall: unknown key (hint: did you mean \"interval\"?)",
        ),
        (
            "[dcms]\ninterval = \"0 s\"",
            "dcms.toml:2: dcms.interval: is zero (hint: give a value above 0)",
        ),
        (
            "[dcms]\ninterval = \"100 ms\"",
            "dcms.toml:1: dcms.congestion-threshold: T_C is 8000000 ticks, but an interval has only 4545454",
        ),
        (
            "[marking]\nallow = [\"S1\", \"S2:255\"]",
            "dcms.toml:2: marking.allow.1: \"S2:255\": no switch has a port 255",
        ),
        (
            "[marking]\ndeny = [\"0xzz\"]",
            "dcms.toml:2: marking.deny.0: invalid GUID \"0xzz\"",
        ),
        (
            "[metrics]\nlisten = \"0.0.0.0:9684\"",
            "dcms.toml:2: metrics.listen: 0.0.0.0:9684 can be reached from other machines (hint: listen on 127.0.0.1",
        ),
        (
            "[datagrams]\n\nin-flight = 0",
            "dcms.toml:3: datagrams.in-flight: is zero (hint: give a value above 0)",
        ),
        (
            "[marking]\ncc-key-file = \"no-such-file\"",
            "dcms.toml:2: marking.cc-key-file: the key file no-such-file cannot be read",
        ),
        (
            "[datagrams]\nin-flight = 100000000",
            "dcms.toml:2: datagrams.in-flight: 100000000 requests at once: 1 to 4096 are supported",
        ),
        (
            "[counters]\ndevice-ticks.quantm = \"1 ns\"",
            "dcms.toml:2: counters.device-ticks.quantm: there is no device \"quantm\": emulated, switch-x,",
        ),
        (
            "[counters]\ndevice-ticks.quantum = \"0 ns\"",
            "dcms.toml:2: counters.device-ticks.quantum: is zero (hint: give a value above 0)",
        ),
        (
            "[counters.device-ticks]\nquantum = \"1 ns\"\n0xd2f0 = \"1 ns\"",
            "dcms.toml:2: counters.device-ticks.quantum: the tick of device quantum is given twice",
        ),
        (
            "[counters]\ntick = \"0 ns\"",
            "dcms.toml:2: counters.tick: is zero (hint: give a value above 0)",
        ),
        (
            "[counters]\ntime-scale = 0.0",
            "dcms.toml:2: counters.time-scale: 0 is no number above 0 (hint: give the --time-scale",
        ),
        (
            "[state]\nlease = \"100 ms\"",
            "dcms.toml:2: state.lease: 100 ms is too short, the least is 1 s",
        ),
        (
            "[datagrams]\nper-switch = 5000",
            "dcms.toml:2: datagrams.per-switch: 5000 requests at once: 1 to 4096 are supported",
        ),
        (
            "[datagrams]\ntimeout = \"61 s\"",
            "dcms.toml:2: datagrams.timeout: 61 s is too long, the limit is 60 s",
        ),
        (
            "[dcms]\n\ncongestion-threshold = 0",
            "dcms.toml:3: dcms.congestion-threshold: T_C is 0 ticks, which every port",
        ),
        (
            "[dcms]\nrate-reduction-threshold = 0",
            "dcms.toml:2: dcms.rate-reduction-threshold: T_W is 0 ticks, which every port",
        ),
        (
            "[metrics]\nlisten = \"localhost\"",
            "dcms.toml:2: metrics.listen: \"localhost\" has no port from 0 to 65535",
        ),
        (
            "[metrics]\nlisten = \"host.invalid:1\"",
            "dcms.toml:2: metrics.listen: \"host.invalid:1\" cannot be resolved",
        ),
        (
            "",
            "dcms.toml:1: dcms: the configuration is empty (hint: silvan dcms",
        ),
        (
            " \n# nothing\n",
            "dcms.toml:1: dcms: the configuration is empty",
        ),
        ("[dcms", "dcms.toml:1:"),
    ];
    for (text, expected) in cases {
        let message = refused(text);
        assert!(message.starts_with(expected), "{message}");
        assert!(!message.contains('\n'));
    }
    let public = settings("[metrics]\nlisten = \"0.0.0.0:9684\"\npublic = true");
    assert!(public.listen.is_some());
    let named = settings("[metrics]\nlisten = \"localhost:9684\"");
    let addresses = named.listen.unwrap().addresses;
    assert!(!addresses.is_empty());
    assert!(addresses.iter().all(|address| address.ip().is_loopback()));
}

/// Oracle: the definition of a lock.
#[test]
fn a_second_instance_refuses_to_start() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let first = StateFolder::open(&state, None).unwrap();
    let error = StateFolder::open(&state, None).map(|_| ()).unwrap_err();
    assert!(matches!(error, StateError::InUse { .. }), "{error}");
    let leased = |holds: bool| StateFolder::open(&state, Some(Arc::new(move || holds)));
    assert!(leased(true).is_err());
    drop(first);
    StateFolder::open(&state, None).unwrap();
    // Instances with a lease exclude only those without one, and write while it holds.
    let (mut one, mut other) = (leased(true).unwrap(), leased(false).unwrap());
    assert!(StateFolder::open(&state, None).is_err());
    one.write(b"journal").unwrap();
    other.write(b"journal").unwrap_err();
    other.replace().unwrap_err();
}

/// Oracle: a lock that is free again and again can be had. `silvan dcms --status` holds it for an instant.
#[test]
fn a_lock_that_is_held_for_an_instant_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    drop(StateFolder::open(&path, None).unwrap());
    let is_over = AtomicBool::new(false);
    let opened: Vec<_> = std::thread::scope(|scope| {
        scope.spawn(|| {
            let lock = File::open(path.join("lock")).unwrap();
            let instant = Duration::from_millis(5);
            while !is_over.load(Ordering::Relaxed) {
                if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
                    std::thread::sleep(instant);
                    flock(&lock, FlockOperation::Unlock).unwrap();
                }
                std::thread::sleep(instant);
            }
        });
        let opened = (0..20).map(|_| StateFolder::open(&path, None).map(|_| ()));
        let opened = opened.collect();
        is_over.store(true, Ordering::Relaxed);
        opened
    });
    assert!(opened.iter().all(Result::is_ok), "{opened:?}");
}

/// Oracle: the file system.
#[test]
fn the_journal_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut state = StateFolder::open(&path, None).unwrap();
    assert_eq!(state.read().unwrap(), None);
    for content in [&b"first"[..], b"second, which is longer"] {
        state.write(content).unwrap();
        state.sync().unwrap();
        state.replace().unwrap();
        state.sync_folder().unwrap();
        assert_eq!(state.read().unwrap().unwrap(), content);
    }
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    assert_eq!(mode(&path.join("journal")), 0o600);
    assert_eq!(mode(&path.join("lock")), 0o600);
    drop(state);
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    let error = StateFolder::open(&path, None).map(|_| ()).unwrap_err();
    assert!(matches!(error, StateError::Shared { .. }), "{error}");
}
