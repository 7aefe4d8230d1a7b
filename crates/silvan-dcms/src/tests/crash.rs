//! The process is killed at every step, and the machine loses power at every step.

use std::fs;
use std::path::{Path, PathBuf};

use silvan_subnet::fake::LOCAL;

use super::*;
use crate::journal::Journal;

/// Runs until the fuse has burnt; gives whether it has.
fn run_with_fuse(bench: &Bench, steps: u64) -> bool {
    bench.subnet.world().fuse = Some(steps);
    let outcome = bench.run(CONFIG, true, Task::Run);
    let burnt = bench.subnet.world().fuse == Some(0);
    bench.subnet.world().fuse = None;
    assert!(burnt || outcome.is_ok());
    burnt
}

/// Steps of a run that is not killed.
fn last_step() -> u64 {
    let bench = Bench::congested(1, 12);
    assert_eq!(bench.act(CONFIG), 0);
    assert!(!bench.sets().is_empty());
    bench.subnet.world().steps
}

/// Steps at which a run may be killed with another effect than at the step before: those around
/// settings and the journal. A sweep has hundreds of steps that change nothing; of them every 97th
/// is tried.
fn interesting_steps() -> Vec<u64> {
    let mut steps = Vec::new();
    let end = last_step();
    let mut before = (0, String::new());
    for step in (0..end).step_by(97) {
        let bench = Bench::congested(1, 12);
        run_with_fuse(&bench, step);
        let now = (bench.sets().len(), bench.disk.text());
        if now != before {
            steps.extend(step.saturating_sub(97)..=step);
        } else {
            steps.push(step);
        }
        before = now;
    }
    steps.push(end);
    steps.dedup();
    steps
}

/// Oracle: the settings before the first start.
#[test]
fn nothing_stays_changed_whenever_it_is_killed() {
    let mut changed = 0;
    for step in interesting_steps() {
        for power_lost in [false, true] {
            let bench = Bench::congested(1, 12);
            run_with_fuse(&bench, step);
            if power_lost {
                bench.disk.lose_power();
            }
            changed += usize::from(bench.rates().contains(&0));
            let left = bench.run(CONFIG, true, Task::Restore).unwrap();
            assert_eq!(left, 0, "step {step}");
            bench.assert_untouched();
            assert!(!bench.disk.text().contains("0x"), "step {step}");
        }
    }
    assert!(
        changed > 40,
        "only {changed} of the crashes left something changed"
    );
}

/// Oracle: as above, with a second crash while the first is being repaired.
#[test]
fn nothing_stays_changed_when_restoring_is_killed_too() {
    let end = last_step();
    let first = (0..end).step_by(7).find(|&step| {
        let bench = Bench::congested(1, 12);
        run_with_fuse(&bench, step);
        bench.rates().contains(&0)
    });
    let first = first.unwrap();
    for second in (0..).step_by(3) {
        let bench = Bench::congested(1, 12);
        run_with_fuse(&bench, first);
        bench.subnet.world().fuse = Some(second);
        let _ = bench.run(CONFIG, true, Task::Restore);
        let is_over = bench.subnet.world().fuse != Some(0);
        bench.subnet.world().fuse = None;
        bench.disk.lose_power();
        assert_eq!(bench.run(CONFIG, true, Task::Restore).unwrap(), 0);
        bench.assert_untouched();
        if is_over {
            return;
        }
    }
}

/// A journal with a change at port 23, in the form of the journal: records after their
/// checksums, the first 16 digits of SHA-256.
fn journal_with(guid: silvan_core::Guid) -> String {
    let setting = |valid, rate| {
        format!(r#"{{"valid":{valid},"threshold":15,"packet-size":3,"marking-rate":{rate}}}"#)
    };
    let (before, after) = (setting(false, 0), setting(true, 0));
    let records = [
        r#"{"version":2,"changes":1}"#.to_owned(),
        format!(
            r#"{{"switch":"{guid}","port":23,"before":{before},"after":{after},"rate":128,"since":7}}"#
        ),
    ];
    records.iter().map(|json| line(json)).collect()
}

fn line(json: &str) -> String {
    let digest = hmac_sha256::Hash::hash(json.as_bytes());
    let digits: String = digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{digits} {json}\n")
}

/// Oracle: a dry run changes nothing, and reports the remaining changes.
#[test]
fn a_dry_run_leaves_the_journal_of_an_earlier_run() {
    let bench = Bench::new(1);
    let guid = bench.subnet.world().guid("S2");
    let text = journal_with(guid);
    bench.disk.put(&text);
    assert_eq!(bench.run(CONFIG, false, Task::Once).unwrap(), 1);
    assert_eq!(bench.disk.text(), text);
    assert!(bench.sets().is_empty());
}

fn open_with(bench: &Bench, text: &str) -> Result<Manager<SharedWorld, FakeDisk>, ManagerError> {
    bench.disk.put(text);
    let events = Arc::clone(&bench.events);
    Manager::new(
        settings(CONFIG),
        true,
        bench.subnet.clone(),
        bench.disk.clone(),
        Box::new(move |event: &Event| events.lock().unwrap().push(event.clone())),
        Arc::clone(&bench.metrics),
    )
}

/// Oracle: what cannot be understood is not thrown away, and nothing is changed on top of it. The
/// error names the line.
#[test]
fn a_damaged_journal_stops_the_start() {
    let bench = Bench::new(1);
    let good = journal_with(bench.subnet.world().guid("S2"));
    assert!(open_with(&bench, &good).is_ok());
    let header = |json: &str| line(json);
    let cases = [
        (String::new(), 1, "not complete"),
        ("{\n".to_owned(), 1, "no checksum"),
        (header(r#"{"version":2}"#), 1, "missing field"),
        (
            header(r#"{"version":2,"changes":2}"#),
            2,
            "0 changes are listed, of 2",
        ),
        (format!("{good}{good}"), 3, "unknown field"),
        (format!("{good}x"), 3, "no checksum"),
    ];
    let damaged = good.char_indices().map(|(location, char)| {
        let mut text = good.clone();
        let other = if char == '7' { "8" } else { "7" };
        text.replace_range(location..=location, other);
        (text, 1 + good[..location].matches('\n').count(), "")
    });
    for (text, line, why) in cases.into_iter().chain(damaged) {
        let error = open_with(&bench, &text).err().unwrap();
        assert!(matches!(error, ManagerError::Journal(_)), "{error}");
        let message = error.to_string();
        let expected = format!("the journal is damaged at line {line}: ");
        assert!(message.starts_with(&expected), "{message} in {text}");
        assert!(message.contains(why), "{message} in {text}");
        assert_eq!(bench.disk.text(), text);
    }
}

/// Oracle: the version of an older and of a newer silvan; the newer one has a field that this one does not know.
#[test]
fn a_journal_of_another_version_names_who_reads_it() {
    let bench = Bench::new(1);
    for (header, version) in [
        (r#"{"version":1,"changes":0}"#, 1),
        (r#"{"version":3,"changes":0,"lease":"a"}"#, 3),
    ] {
        let text = line(header);
        let error = open_with(&bench, &text).err().unwrap();
        assert!(matches!(error, ManagerError::Journal(_)), "{error}");
        let expected =
            format!("the journal has version {version}, this silvan reads 2: restore with");
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert_eq!(bench.disk.text(), text);
    }
}

/// Oracle: a journal is written as a whole, so that one without its end is damaged: what it does not show may
/// be in force. Only the end of the last line says nothing.
#[test]
fn a_journal_without_its_end_stops_the_start() {
    let bench = Bench::new(1);
    let good = journal_with(bench.subnet.world().guid("S2"));
    for end in 0..good.len() - 1 {
        let error = open_with(&bench, &good[..end]).err().unwrap();
        assert!(matches!(error, ManagerError::Journal(_)), "{error}");
        assert_eq!(bench.disk.text(), good[..end]);
    }
    assert!(open_with(&bench, good.trim_end()).is_ok());
    let journal = Journal::open(bench.disk.clone()).unwrap();
    assert_eq!(journal.changes().len(), 1);
}

/// Oracle: the definition of the task: without a subnet it ends, and nothing is forgotten; with nothing
/// to restore it needs none.
#[test]
fn restoring_does_not_wait_for_ever() {
    let end = last_step();
    let low = (0..end).step_by(7).find(|&step| {
        let bench = Bench::congested(1, 12);
        run_with_fuse(&bench, step);
        bench.rates().contains(&0)
    });
    // Without a signal to stop.
    let bench = Bench::new(1);
    bench.after(3, Fault::Incast(true));
    run_with_fuse(&bench, low.unwrap());
    let text = bench.disk.text();
    let world = || bench.subnet.world();
    world().nodes[LOCAL].alive = false;
    let began = world().now;
    let error = bench.run(CONFIG, true, Task::Restore).unwrap_err();
    assert!(matches!(error, ManagerError::NoSubnet), "{error}");
    assert!(world().now < began + seconds(40));
    assert_eq!(bench.disk.text(), text);

    let empty = Bench::new(1);
    empty.subnet.world().nodes[LOCAL].alive = false;
    assert_eq!(empty.run(CONFIG, true, Task::Restore).unwrap(), 0);
}

/// State folders of versions: `tests/files_of_versions`.
fn kept_folders() -> Vec<PathBuf> {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files_of_versions");
    let entries = fs::read_dir(kept)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

/// Oracle: the change that the record of each version names.
#[test]
fn journals_of_versions_are_read() {
    let folders = kept_folders();
    assert!(!folders.is_empty());
    for folder in folders {
        let bench = Bench::new(1);
        bench
            .disk
            .put(&fs::read_to_string(folder.join("journal")).unwrap());
        let journal = Journal::open(bench.disk.clone()).unwrap();
        let (target, change) = journal.changes().iter().next().unwrap();
        assert_eq!(target.switch.to_string(), "0x0002c90000000001");
        assert_eq!(target.port, Some(23));
        assert_eq!((change.rate, change.since), (128, 7));
        assert_eq!((change.before.valid, change.after.valid), (false, true));
        assert_eq!(journal.changes().len(), 1);
    }
}

/// Oracle: keys that `silvan dcms --status` reads from files of each version.
#[test]
fn the_status_keeps_the_keys_of_versions() {
    fn holds(now: &serde_json::Value, then: &serde_json::Value, place: &str) {
        if let Some(then) = then.as_object() {
            for (key, value) in then {
                let found = now.get(key).unwrap_or_else(|| panic!("{place}.{key}"));
                if place != ".decisions" {
                    holds(found, value, &format!("{place}.{key}"));
                }
            }
        } else if let Some(first) = then.as_array().and_then(|list| list.first()) {
            holds(&now[0], first, place);
        }
    }

    // Killed while a rate is low, the manager leaves a status with all keys.
    let now = (0..last_step()).step_by(7).find_map(|step| {
        let bench = Bench::congested(1, 12);
        run_with_fuse(&bench, step);
        let status = bench.rates().contains(&0).then(|| bench.disk.status())?;
        (!status["low"][0].is_null()).then_some(status)
    });
    let now = now.unwrap();
    for folder in kept_folders() {
        let text = fs::read(folder.join("status")).unwrap();
        holds(&now, &serde_json::from_slice(&text).unwrap(), "");
    }
}
