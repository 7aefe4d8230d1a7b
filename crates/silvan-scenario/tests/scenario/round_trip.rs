//! The effective form: complete, readable, and the same when read again.

use std::ops::ControlFlow;

use silvan_instances::Fastest;
use silvan_model::{EngineConfig, FeedbackParams};
use silvan_scenario::parsed::ScenarioFile;
use silvan_scenario::{Override, Scenario};
use silvan_sim::run;

use crate::{ALL_KEYS, SHIPPED, read, read_with};

#[test]
fn the_empty_file_is_eight_quiet_hosts() {
    let scenario = read("").unwrap();
    assert_eq!(scenario.fabric().host_count(), 8);
    assert_eq!(scenario.fabric().switch_count(), 1);
    let output = run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(output.summary.delivered_packets, 0);
    assert_eq!(output.summary.simulated_ps, 10_000_000_000);
}

#[test]
fn shipped_files_are_read_and_written_back() {
    for (name, text) in SHIPPED {
        let scenario = read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let again =
            read(scenario.effective_toml()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(again.file(), scenario.file(), "{name}");
        assert_eq!(again.effective_toml(), scenario.effective_toml(), "{name}");
        assert_eq!(again.hash(), scenario.hash(), "{name}");
        assert_eq!(again.to_json(), scenario.to_json(), "{name}");
    }
}

/// Oracle: the scenario itself. Its text reads back unchanged, and changes like the scenario under
/// any override. Overrides are every key of every shipped file, with the value there, in one of
/// three files.
#[test]
fn the_written_scenario_changes_as_the_scenario_does() {
    let mut changes = vec![
        (
            "control.ib-cc.adapter.cct.shape".to_owned(),
            "\"geometric\"".to_owned(),
        ),
        ("fabric.generator".to_owned(), "\"fat-tree-120\"".to_owned()),
        ("traffic.flow".to_owned(), "[]".to_owned()),
    ];
    for (_, text) in SHIPPED {
        let value: toml_edit::DocumentMut = text.parse().unwrap();
        collect_values("", value.as_item(), &mut changes);
    }
    changes.sort();
    changes.dedup();
    let small = SHIPPED.iter().filter(|(_, text)| text.len() < 4_000);
    let mut accepted = 0;
    for (file, (name, text)) in small.chain(&[("empty", "")]).enumerate() {
        let scenario = read(text).unwrap();
        if scenario.fabric().host_count() > 100 {
            continue;
        }
        let again = read(&scenario.to_toml()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(again.file(), scenario.file(), "{name}");
        assert_eq!(again.to_toml(), scenario.to_toml(), "{name}");
        let outcome = |scenario: &Scenario, key: &str, value: &str| {
            let changed = scenario.with_overrides(&[Override::new(key, value)]);
            changed
                .ok()
                .map(|changed| changed.effective_toml().to_owned())
        };
        for (key, value) in changes.iter().skip(file % 3).step_by(3) {
            let expected = outcome(&scenario, key, value);
            accepted += usize::from(expected.is_some());
            let changed = outcome(&again, key, value);
            assert_eq!(changed, expected, "{name} with {key} = {value}");
        }
    }
    assert!(accepted > 250, "only {accepted} overrides were possible");
}

/// Every value and list of values, by its path, as TOML.
fn collect_values(path: &str, item: &toml_edit::Item, out: &mut Vec<(String, String)>) {
    let inner = |key: &str| match path {
        "" => key.to_owned(),
        _ => format!("{path}.{key}"),
    };
    if let Some(table) = item.as_table_like() {
        for (key, item) in table.iter() {
            collect_values(&inner(key), item, out);
        }
    } else if let Some(tables) = item.as_array_of_tables() {
        for (index, table) in tables.iter().enumerate() {
            let table = toml_edit::Item::Table(table.clone());
            collect_values(&inner(&index.to_string()), &table, out);
        }
    }
    if let Some(value) = item.as_value() {
        out.push((path.to_owned(), value.to_string().trim().to_owned()));
    }
}

/// Defaults are comments, so that those that depend on other values follow them.
#[test]
fn defaults_are_written_as_comments() {
    let text = "[control.ib-cc.adapter]\nccti-timer = 7\n[run]\nduration = \"4 ms\"\n";
    let written = read(text).unwrap().to_toml();
    for line in [
        "# name = \"scenario\"",
        "# interval = \"40 us\"",
        "[run]",
        "duration = \"4 ms\"",
        "# [fabric]",
        "# hosts = 8",
        "ccti-timer = 7",
        "# ccti-limit = 127",
        "# cct = { shape = \"linear\", slope = 1.0 }",
    ] {
        let count = written.lines().filter(|other| *other == line).count();
        assert_eq!(count, 1, "{line:?} in:\n{written}");
    }
    let bare = written
        .lines()
        .map(|line| line.strip_prefix("# ").unwrap_or(line));
    let bare: String = bare.flat_map(|line| [line, "\n"]).collect();
    assert_eq!(
        read(&bare).unwrap().effective_toml(),
        read(text).unwrap().effective_toml()
    );
}

/// Oracle: the file as written. Every key that is set there is in the effective form with its
/// value, but for text layout, which comparing documents leaves out.
#[test]
fn the_effective_form_keeps_every_key() {
    let written: toml_edit::DocumentMut = ALL_KEYS.parse().unwrap();
    let effective = read(ALL_KEYS).unwrap();
    let effective: toml_edit::DocumentMut = effective.effective_toml().parse().unwrap();
    let missing = lines(&written);
    let found = lines(&effective);
    for line in missing {
        assert!(found.contains(&line), "{line} is missing from {found:#?}");
    }
}

/// `path = value` of every leaf.
fn lines(document: &toml_edit::DocumentMut) -> Vec<String> {
    fn collect(path: &str, item: &serde_json::Value, out: &mut Vec<String>) {
        match item {
            serde_json::Value::Object(map) => map
                .iter()
                .for_each(|(key, value)| collect(&format!("{path}.{key}"), value, out)),
            serde_json::Value::Array(values) => values
                .iter()
                .enumerate()
                .for_each(|(index, value)| collect(&format!("{path}.{index}"), value, out)),
            leaf => out.push(format!("{path} = {leaf}")),
        }
    }
    let value: serde_json::Value = toml_edit::de::from_document(document.clone()).unwrap();
    let mut out = Vec::new();
    collect("", &value, &mut out);
    out
}

#[test]
fn all_keys_can_be_run() {
    let scenario = read(ALL_KEYS).unwrap();
    let output = run(&Fastest, &scenario, scenario.seed(), &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(output.summary.delivered_bytes > 0);
}

/// `Default` of the parsed form is the empty file, for readers of the types.
#[test]
fn default_is_the_empty_file() {
    let default = toml_edit::ser::to_string(&ScenarioFile::default()).unwrap();
    assert_eq!(read(&default).unwrap().file(), read("").unwrap().file());
}

#[test]
fn the_hash_tells_scenarios_apart_and_not_spellings() {
    let hash = |text: &str| read(text).unwrap().hash();
    assert_eq!(
        hash(""),
        hash("# nothing\n[switch]\nlatency = \"0.1 us\"\n")
    );
    assert_eq!(hash("run.seed = 1"), hash("[run]\nduration = \"10000 us\""));
    assert_eq!(
        hash("[switch]\nbuffer = \"1 KiB\"\n[packet]\nmtu = \"256 B\""),
        hash("[switch]\nbuffer = \"1024 B\"\n[packet]\nmtu = \"256 B\"")
    );
    assert_ne!(hash(""), hash("[switch]\nbuffer = \"65 KiB\""));
    assert_eq!(hash("").len(), 64);
    assert!(hash("").chars().all(|digit| digit.is_ascii_hexdigit()));
}

#[test]
fn overrides_set_values_sections_and_list_entries() {
    let scenario = read_with(
        ALL_KEYS,
        &[
            ("switch.buffer", "48 KiB"),
            ("switch.latency", "\"60 ns\""),
            ("traffic.flow.0.load", "0.25"),
            ("traffic.uniform", "[]"),
            (
                "control.ib-cc.adapter.cct.entries",
                "[[0, 0], [0, 1], [0, 2], [0, 3]]",
            ),
            ("vl.low.1.1", "9"),
            (
                "fabric.cable.1",
                "{ from = \"S:2\", to = \"b\", speed = \"EDR\" }",
            ),
            ("name", "renamed"),
        ],
    )
    .unwrap();
    let json = scenario.to_json();
    assert_eq!(json["switch"]["buffer"], "48 KiB");
    assert_eq!(json["switch"]["latency"], "60 ns");
    assert_eq!(json["traffic"]["flow"][0]["load"], 0.25);
    assert_eq!(json["traffic"].get("uniform"), None);
    assert_eq!(
        json["control"]["ib-cc"]["adapter"]["cct"]["entries"][3][1],
        3
    );
    assert_eq!(json["vl"]["low"][1][1], 9);
    assert_eq!(json["fabric"]["cable"][1]["speed"], "EDR");
    assert_eq!(json["name"], "renamed");
}

#[test]
fn later_overrides_win_and_defaults_follow() {
    let scenario = read_with("", &[("run.duration", "4 ms"), ("run.duration", "6 ms")]).unwrap();
    assert_eq!(scenario.to_json()["probe"]["interval"], "60 us");
    let longer = scenario
        .with_overrides(&[Override::new("run.warm-up", "4 ms")])
        .unwrap();
    assert_eq!(longer.to_json()["probe"]["interval"], "50 us");
    assert_eq!(longer.to_json()["run"]["duration"], "6 ms");
    let trees = scenario.with_overrides(&[Override::new("probe.trees", "{}")]);
    let trees = &trees.unwrap().to_json()["probe"]["trees"];
    assert_eq!(trees["interval"], "60 us");
    assert!(scenario.to_json()["probe"].get("trees").is_none());
}

#[test]
fn sweeps_give_every_combination() {
    let scenario = read(ALL_KEYS).unwrap();
    let points = scenario.sweep_points();
    assert_eq!(points.len(), 2 * 2 * 2);
    let mut hashes: Vec<String> = points
        .iter()
        .map(|point| scenario.with_overrides(point).unwrap().hash())
        .collect();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 8);
    let first: Vec<(&str, &str)> = points[0]
        .iter()
        .map(|change| (change.key.as_str(), change.value.as_str()))
        .collect();
    assert_eq!(
        first,
        [
            ("control.scheme", "\"none\""),
            ("traffic.nodes.p", "0"),
            ("vl.high", "[]")
        ]
    );
    assert_eq!(read("").unwrap().sweep_points(), [[]]);
}

#[test]
fn a_single_run_is_the_scenario_with_its_seed_and_nothing_that_varies() {
    let sweep = [("description", "a study"), ("run.seed", "1")];
    let scenario = read_with(ALL_KEYS, &sweep).unwrap();
    let alone = [("description", ""), ("run.seed", "5"), ("sweep", "{}")];
    let expected = read_with(ALL_KEYS, &alone).unwrap();
    let one = scenario.single_run(5);
    assert_eq!(one.effective_toml(), expected.effective_toml());
    assert_ne!(one.hash(), scenario.single_run(6).hash());
    // Later changes start from the single run instead of the sweep.
    let later = [Override::new("switch.buffer", "48 KiB")];
    let changed = one.with_overrides(&later).unwrap();
    let expected = expected.with_overrides(&later).unwrap();
    assert_eq!(changed.effective_toml(), expected.effective_toml());
}

/// The paper's 648-port fat tree, and per cent where the paper has per cent.
#[test]
fn table2_is_the_papers() {
    let scenario = read(SHIPPED[4].1).unwrap();
    assert_eq!(scenario.fabric().host_count(), 648);
    assert_eq!(scenario.fabric().switch_count(), 54);
    assert_eq!(scenario.routes().max_hops, 4);
    assert!(scenario.scheme().acts());
    let off = read_with(SHIPPED[4].1, &[("control.scheme", "none")]).unwrap();
    assert!(!off.scheme().acts());
    let b = read_with(
        SHIPPED[4].1,
        &[
            ("traffic.nodes.c", "0.6"),
            ("traffic.nodes.v", "0.15"),
            ("traffic.nodes.b", "0.25"),
            ("traffic.nodes.p", "60"),
        ],
    )
    .unwrap();
    assert_eq!(b.traffic().nodes.as_ref().unwrap().p, 60.0);
    let scenario: Scenario = b;
    assert_eq!(
        scenario.environment(1).injection[0].to_string(),
        "13.5 Gbit/s"
    );
}

/// Defaults are stated once: the scenario that says nothing has those of the data plane, and what the scheme needs of the
/// feedback is filled in.
#[test]
fn the_empty_scenario_has_the_defaults_of_the_data_plane() {
    let default = EngineConfig::default();
    let feedback = FeedbackParams {
        carrier: Some(default.feedback.carrier()),
        coalesce: Some(default.feedback.coalesce().into()),
        ..default.feedback
    };
    let expected = EngineConfig {
        feedback,
        ..default
    };
    assert_eq!(*read("").unwrap().engine_config(), expected);
}
