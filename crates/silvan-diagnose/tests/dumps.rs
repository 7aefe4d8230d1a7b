//! Files of the common tools, whole and broken.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fmt::Write;

use proptest::prelude::*;
use silvan_core::{GivenTicks, MonotonicTime, Span};
use silvan_diagnose::dumps::{DumpDiagnosis, FileRole, Files, counters, diagnose_files};
use silvan_diagnose::health::HealthItem;
use silvan_fabric::import;
use silvan_fabric::{Fabric, LinkKind, Speed, Width};

/// Two leaves with two hosts each, two cables of 4x SDR between them: 8 Gbit/s, or 250,000,000 words a second.
const TOPOLOGY: &str = r#"
Switch 4 "S-0000000000000001" # "left" base port 0 lid 1 lmc 0
[1] "H-0000000000000010"[1](11) # "a" lid 11 4xSDR
[2] "H-0000000000000020"[1](21) # "b" lid 12 4xSDR
[3] "S-0000000000000002"[3] # "right" lid 2 4xSDR

Switch 4 "S-0000000000000002" # "right" base port 0 lid 2 lmc 0
[1] "H-0000000000000030"[1](31) # "c" lid 13 4xSDR
[2] "H-0000000000000040"[1](41) # "d" lid 14 4xSDR
[3] "S-0000000000000001"[3] # "left" lid 1 4xSDR

Ca 1 "H-0000000000000010" # "a"
[1](11) "S-0000000000000001"[1] # lid 11 lmc 0 "left" lid 1 4xSDR

Ca 1 "H-0000000000000020" # "b"
[1](21) "S-0000000000000001"[2] # lid 12 lmc 0 "left" lid 1 4xSDR

Ca 1 "H-0000000000000030" # "c"
[1](31) "S-0000000000000002"[1] # lid 13 lmc 0 "right" lid 2 4xSDR

Ca 1 "H-0000000000000040" # "d"
[1](41) "S-0000000000000002"[2] # lid 14 lmc 0 "right" lid 2 4xSDR
"#;

/// LID, GUID and port; words per second sent and received; part of the time for which it waits. A and d send as
/// much as they can to c, b sends a little to d.
const PORTS: [(u16, u64, u8, u64, u64, f64); 10] = [
    (1, 1, 1, 0, 125_000_000, 0.0),
    (1, 1, 2, 0, 25_000_000, 0.0),
    (1, 1, 3, 150_000_000, 0, 0.4),
    (2, 2, 1, 250_000_000, 0, 0.0),
    (2, 2, 2, 25_000_000, 125_000_000, 0.0),
    (2, 2, 3, 0, 150_000_000, 0.0),
    (11, 0x10, 1, 125_000_000, 0, 0.5),
    (12, 0x20, 1, 25_000_000, 0, 0.5),
    (13, 0x30, 1, 0, 250_000_000, 0.0),
    (14, 0x40, 1, 125_000_000, 25_000_000, 0.5),
];

fn fabric() -> Fabric {
    let link = LinkKind::new(Width::X4, Speed::Sdr, "1 m".parse().unwrap());
    import::topology(TOPOLOGY).unwrap().build(link).unwrap()
}

/// The output of `perfquery -x` and `perfquery` for all ports, `seconds` after a start at `base` words.
fn perfquery(seconds: u64, base: u64) -> String {
    let mut text = String::new();
    for (lid, _, port, sent, received, wait) in PORTS {
        let ticks = (wait * seconds as f64 * 250e6) as u64;
        let _ = write!(
            text,
            "# Port extended counters: Lid {lid} port {port} (CapMask: 0x5300 CapMask2: 0x0)\n\
             PortSelect:......................{port}\n\
             CounterSelect:...................0x0000\n\
             PortXmitData:....................{}\n\
             PortRcvData:.....................{}\n\
             # Port counters: Lid {lid} port {port} (CapMask: 0x5300)\n\
             LinkDownedCounter:...............0\n\
             PortXmitWait:....................{ticks}\n",
            base + sent * seconds,
            base + received * seconds,
        );
    }
    text
}

fn query_errors(seconds: u64) -> String {
    let mut text = String::from("Errors for \"left\"\n");
    for (_, guid, port, sent, received, wait) in PORTS {
        let ticks = (wait * seconds as f64 * 250e6) as u64;
        let _ = writeln!(
            text,
            "   GUID 0x{guid:x} port {port}: [PortXmitWait == {ticks}] [PortXmitData == {} (1.000GB)] [PortRcvData == {} (1.000GB)]",
            sent * seconds,
            received * seconds
        );
    }
    text
}

fn csv(seconds: u64) -> String {
    let mut text = String::from(
        "START_PM_INFO\nNodeGUID,PortGUID,PortNumber,LinkDownedCounter,PortXmitWait,PortXmitDataExtended,PortRcvDataExtended\n",
    );
    for (_, guid, port, sent, received, wait) in PORTS {
        let ticks = (wait * seconds as f64 * 250e6) as u64;
        let _ = writeln!(
            text,
            "0x{guid:016x},0x{guid:016x},{port},0,{ticks},0x{:x},{}",
            sent * seconds,
            received * seconds
        );
    }
    text + "END_PM_INFO\n"
}

/// ibdiagnet's whole database: nodes, ports and links in addition to the counters.
fn database(seconds: u64) -> String {
    let mut text = String::from("START_NODES\nNodeDesc,NumPorts,NodeType,NodeGUID\n");
    let nodes = [
        ("left", 4, 2, 1),
        ("right", 4, 2, 2),
        ("a", 1, 1, 0x10),
        ("b", 1, 1, 0x20),
        ("c", 1, 1, 0x30),
        ("d", 1, 1, 0x40),
    ];
    for (name, ports, kind, guid) in nodes {
        let _ = writeln!(text, "\"{name}\",{ports},{kind},0x{guid:016x}");
    }
    text += "END_NODES\n\nSTART_PORTS\nNodeGuid,PortGuid,PortNum,LID,LinkWidthActv,LinkWidthSup,LinkSpeedActv,LinkSpeedSup\n";
    for (lid, guid, port, ..) in PORTS {
        let own = if guid < 0x10 { guid } else { guid + 1 };
        let _ = writeln!(text, "0x{guid:016x},0x{own:016x},{port},{lid},2,3,1,7");
    }
    text += "END_PORTS\n\nSTART_LINKS\nNodeGuid1,PortNum1,NodeGuid2,PortNum2\n";
    for (node, port, far, far_port) in [
        (1, 1, 0x10, 1),
        (1, 2, 0x20, 1),
        (1, 3, 2, 3),
        (2, 1, 0x30, 1),
        (2, 2, 0x40, 1),
    ] {
        let _ = writeln!(text, "0x{node:016x},{port},0x{far:016x},{far_port}");
    }
    text + "END_LINKS\n\n" + &csv(seconds)
}

fn files<'a>(before: &'a str, after: &'a str) -> Files<'a> {
    Files {
        topology: TOPOLOGY,
        routes: None,
        before,
        after,
    }
}

const SECOND: Span = Span::from_secs(1);
fn tick() -> GivenTicks {
    GivenTicks::of_all(Span::from_ns(4))
}

#[test]
fn all_formats_have_the_same_verdict() {
    let pairs = [
        (perfquery(1, 7), perfquery(2, 7)),
        (query_errors(1), query_errors(2)),
        (csv(1), csv(2)),
        // Counters of 64 bits start again at 0.
        (perfquery(0, u64::MAX - 1000), {
            let text = perfquery(1, 0);
            text.replace("....125000000", "....124998999")
                .replace("....250000000", "....249998999")
        }),
    ];
    for (before, after) in &pairs {
        let DumpDiagnosis { report, odd, .. } =
            diagnose_files(files(before, after), SECOND, &tick()).unwrap();
        assert_eq!(odd, []);
        let [tree] = &report.trees[..] else {
            panic!("{report:?}");
        };
        assert_eq!((tree.root.as_str(), tree.peer.as_str()), ("right:1", "c:1"));
        assert_eq!(tree.cause, "incast");
        // Nothing says which paths packets take.
        assert_eq!(tree.confidence, "low");
        let contributors: Vec<&str> = tree
            .contributors
            .iter()
            .map(|one| one.host.as_str())
            .collect();
        assert_eq!(contributors.len(), 2);
        assert!(
            contributors.contains(&"a") && contributors.contains(&"d"),
            "{contributors:?}"
        );
        assert_eq!(tree.victims.len(), 1);
        assert_eq!(tree.victims[0].host, "b");
        // left:3 waits 0.4 of the time, on a link of 8 Gbit/s.
        let loss = report
            .losses
            .iter()
            .find(|loss| loss.port == "left:3")
            .unwrap();
        assert!((loss.lost_gbps - 3.2).abs() < 0.01, "{loss:?}");
    }
}

/// Oracle: the same network from ibnetdiscover. The database adds only the supported rates of ports.
#[test]
fn the_database_of_ibdiagnet_is_enough() {
    let (before, after) = (database(1), database(2));
    let alone = Files {
        topology: &before,
        ..files(&before, &after)
    };
    let alone = diagnose_files(alone, SECOND, &tick()).unwrap();
    let (before, after) = (csv(1), csv(2));
    let both = diagnose_files(files(&before, &after), SECOND, &tick()).unwrap();
    let [tree] = &alone.report.trees[..] else {
        panic!("{:?}", alone.report);
    };
    let other = &both.report.trees[0];
    assert_eq!(
        (&tree.root, &tree.peer, tree.confidence),
        (&other.root, &other.peer, "low")
    );
    assert_eq!(
        format!("{:?}", tree.contributors),
        format!("{:?}", other.contributors)
    );
    assert_eq!(
        format!("{:?}", tree.victims),
        format!("{:?}", other.victims)
    );
    // DDR and QDR are supported by all ports, and SDR is what runs.
    assert_eq!((tree.cause, other.cause), ("degraded link", "incast"));
    let says = |done: &DumpDiagnosis, text: &str| {
        done.report.health.iter().any(|one| one.what.contains(text))
    };
    assert!(
        says(&alone, "The forwarding tables are not known"),
        "{:?}",
        alone.report.health
    );
    assert!(!says(&both, "below"), "{:?}", both.report.health);
}

/// Oracle: the GUIDs of nodes, which ibqueryerrors has for adapters, and `ibnetdiscover -p` has not.
#[test]
fn adapters_are_found_by_name_where_their_node_guids_are_missing() {
    let headed = |seconds| {
        let names = ["left", "right", "a", "b", "c", "d"].into_iter();
        let guids = [1, 2, 0x10, 0x20, 0x30, 0x40];
        let text = query_errors(seconds);
        let lines: Vec<&str> = text.lines().collect();
        let of_node = |(name, guid): (&str, u64)| {
            let own = format!("   GUID 0x{guid:x} ");
            let ports = lines.iter().filter(|line| line.starts_with(&own));
            let ports: String = ports.map(|line| format!("{line}\n")).collect();
            format!("Data Counters for 0x{guid:x} \"{name}\"\n{ports}")
        };
        names.zip(guids).map(of_node).collect::<String>()
    };
    let (before, after) = (headed(1), headed(2));
    let by_port = |topology| {
        let files = Files {
            topology,
            ..files(&before, &after)
        };
        diagnose_files(files, SECOND, &tick())
    };
    let found = by_port(BY_PORT).unwrap();
    assert_eq!(found.odd, []);
    assert_eq!(found.report.unknown_ports, 0);
    let whole = by_port(TOPOLOGY).unwrap();
    assert_eq!(verdict(&found), verdict(&whole));
    // Two adapters of one name cannot be distinguished.
    let same = BY_PORT.replace("'b'", "'a'");
    let (role, error) = by_port(&same).unwrap_err();
    assert_eq!(role, FileRole::Before);
    assert!(error.message.contains("2 of 10 ports"), "{error}");
    assert!(error.hint.contains("ibnetdiscover has"), "{error}");
    // With known node GUIDs, names do not matter.
    let foreign = TOPOLOGY.replace("H-00000000000000", "H-00000000000009");
    assert!(by_port(&foreign).is_err());
}

#[test]
fn a_file_that_is_cut_off_or_empty_is_refused() {
    let whole = csv(2);
    let (before, cut) = (csv(1), &whole[..whole.len() - 20]);
    let (role, error) = diagnose_files(files(&before, cut), SECOND, &tick()).unwrap_err();
    assert_eq!(role, FileRole::After);
    assert!(
        error.message.contains("cells") || error.message.contains("no end"),
        "{error}"
    );
    let (role, error) = diagnose_files(files("", &before), SECOND, &tick()).unwrap_err();
    assert_eq!((role, error.line), (FileRole::Before, None));
    let text = query_errors(1);
    let (role, error) =
        diagnose_files(files(&text[..text.len() - 30], &text), SECOND, &tick()).unwrap_err();
    assert_eq!(role, FileRole::Before);
    assert!(error.line.is_some());
    let broken = Files {
        topology: &TOPOLOGY[..400],
        ..files(&text, &text)
    };
    assert_eq!(
        diagnose_files(broken, SECOND, &tick()).unwrap_err().0,
        FileRole::Topology
    );
}

/// Oracle: the number of ports that the files have. A last line without an end may be a number without its last digits.
#[test]
fn a_number_that_may_be_cut_off_is_not_read() {
    let (before, after) = (perfquery(1, 7), perfquery(2, 7));
    let unknown = |after| {
        let done = diagnose_files(files(&before, after), SECOND, &tick()).unwrap();
        done.report.unknown_ports
    };
    assert_eq!(unknown(&after), 0);
    assert_eq!(unknown(&after[..after.len() - 1]), 1);
    let (before, after) = (query_errors(1), query_errors(2));
    let end = after.rfind(" == ").unwrap() + 5;
    let (role, error) = diagnose_files(files(&before, &after[..end]), SECOND, &tick()).unwrap_err();
    assert_eq!(
        (role, error.line),
        (FileRole::After, Some(after.lines().count()))
    );
}

#[test]
fn ports_that_a_dump_lacks_are_named_and_not_guessed() {
    let (before, after) = (query_errors(1), query_errors(2));
    let lines: Vec<&str> = after
        .lines()
        .filter(|line| !line.contains("0x2 port"))
        .collect();
    let DumpDiagnosis { report, .. } =
        diagnose_files(files(&before, &lines.join("\n")), SECOND, &tick()).unwrap();
    assert_eq!(report.unknown_ports, 3);
    let finding = report
        .health
        .iter()
        .find(|one| one.what.contains("was not read"))
        .unwrap();
    assert!(
        finding.what.starts_with("right:1, right:2, right:3:"),
        "{finding:?}"
    );
}

#[test]
fn counters_of_another_fabric_are_refused() {
    let before = csv(1).replace("0x00000000000000", "0x00000000abcdef");
    let (role, error) = diagnose_files(files(&before, &csv(2)), SECOND, &tick()).unwrap_err();
    assert_eq!(role, FileRole::Before);
    assert!(error.message.starts_with("10 of 10 ports"), "{error}");
}

#[test]
fn counters_that_stop_or_are_reset_make_no_verdict() {
    // Read in the wrong order, everything seems to have been reset.
    let DumpDiagnosis { report, .. } =
        diagnose_files(files(&query_errors(2), &query_errors(1)), SECOND, &tick()).unwrap();
    assert_eq!(report.trees.len(), 0);
    assert!(report.unknown_ports > 0);
    assert!(
        report
            .health
            .iter()
            .any(|one| one.what.contains("was reset")),
        "{report:?}"
    );
    let full = u32::MAX.to_string();
    let stopped = query_errors(2).replace("== 200000000]", &format!("== {full}]"));
    let DumpDiagnosis { report, .. } =
        diagnose_files(files(&query_errors(1), &stopped), SECOND, &tick()).unwrap();
    let finding = report
        .health
        .iter()
        .find(|one| one.what.contains("has stopped"))
        .unwrap();
    assert!(finding.what.starts_with("left:3:"), "{finding:?}");
    // An interval that is too short makes more data than links carry.
    let DumpDiagnosis { report, .. } = diagnose_files(
        files(&query_errors(1), &query_errors(2)),
        Span::from_ms(100),
        &tick(),
    )
    .unwrap();
    assert!(
        report
            .health
            .iter()
            .any(|one| one.what.contains("more than is possible"))
    );
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(
        text in prop_oneof![
            ".{0,400}",
            Just(()).prop_map(|()| csv(1)),
            Just(()).prop_map(|()| perfquery(1, 0)),
            Just(()).prop_map(|()| query_errors(1)),
        ],
        cut in 0_usize..2000,
        at in 0_usize..2000,
        byte in any::<char>(),
    ) {
        let mut text: String = text.chars().take(cut).collect();
        if let Some((index, _)) = text.char_indices().nth(at % 400) {
            text.insert(index, byte);
        }
        let fabric = fabric();
        let _ = counters(&text, &fabric, MonotonicTime::ZERO);
        let _ = diagnose_files(files(&text, &csv(2)), SECOND, &tick());
    }
}

/// The subnet by ports, as `ibnetdiscover -p` prints it.
const BY_PORT: &str = r#"SW     1  1 0x0000000000000001 4x SDR - CA    11  1 0x0000000000000011 ( 'left' - 'a' )
SW     1  2 0x0000000000000001 4x SDR - CA    12  1 0x0000000000000021 ( 'left' - 'b' )
SW     1  3 0x0000000000000001 4x SDR - SW     2  3 0x0000000000000002 ( 'left' - 'right' )
SW     1  4 0x0000000000000001 4x SDR                                    'left'
SW     2  1 0x0000000000000002 4x SDR - CA    13  1 0x0000000000000031 ( 'right' - 'c' )
SW     2  2 0x0000000000000002 4x SDR - CA    14  1 0x0000000000000041 ( 'right' - 'd' )
SW     2  3 0x0000000000000002 4x SDR - SW     1  3 0x0000000000000001 ( 'right' - 'left' )
SW     2  4 0x0000000000000002 4x SDR                                    'right'
CA    11  1 0x0000000000000011 4x SDR - SW     1  1 0x0000000000000001 ( 'a' - 'left' )
CA    12  1 0x0000000000000021 4x SDR - SW     1  2 0x0000000000000001 ( 'b' - 'left' )
CA    13  1 0x0000000000000031 4x SDR - SW     2  1 0x0000000000000002 ( 'c' - 'right' )
CA    14  1 0x0000000000000041 4x SDR - SW     2  2 0x0000000000000002 ( 'd' - 'right' )
"#;

/// The forwarding tables, as `dump_lfts` prints them.
const ROUTES: &str = r#"Unicast lids [0x0-0xe] of switch Lid 1 guid 0x0000000000000001 (left):
  Lid  Out   Destination
       Port     Info
0x0001 000 : (Switch portguid 0x0000000000000001: 'left')
0x0002 003 : (Switch portguid 0x0000000000000002: 'right')
0x000b 001 : (Channel Adapter portguid 0x0000000000000011: 'a')
0x000c 002 : (Channel Adapter portguid 0x0000000000000021: 'b')
0x000d 003 : (Channel Adapter portguid 0x0000000000000031: 'c')
0x000e 003 : (Channel Adapter portguid 0x0000000000000041: 'd')
6 valid lids dumped
Unicast lids [0x0-0xe] of switch Lid 2 guid 0x0000000000000002 (right):
  Lid  Out   Destination
       Port     Info
0x0001 003 : (Switch portguid 0x0000000000000001: 'left')
0x0002 000 : (Switch portguid 0x0000000000000002: 'right')
0x000b 003 : (Channel Adapter portguid 0x0000000000000011: 'a')
0x000c 003 : (Channel Adapter portguid 0x0000000000000021: 'b')
0x000d 001 : (Channel Adapter portguid 0x0000000000000031: 'c')
0x000e 002 : (Channel Adapter portguid 0x0000000000000041: 'd')
6 valid lids dumped
"#;

fn verdict(done: &DumpDiagnosis) -> String {
    format!("{:?} {:?}", done.report.trees, done.report.losses)
}

/// Returns true if the diagnosis names a gap that the whole files do not have.
fn names_a_gap(done: &DumpDiagnosis, whole: &DumpDiagnosis) -> bool {
    let words = ["was not read", "no route", "not known", "could not be read"];
    let is_gap = |what: &str| words.iter().any(|word| what.contains(word));
    let is_new = |item: &&HealthItem| !whole.report.health.contains(item);
    let mut health = done.report.health.iter().filter(is_new);
    !done.odd.is_empty() || health.any(|one| is_gap(&one.what))
}

/// Oracle: the whole files. A cut after any line, or within lines, is an error, is named, or has no effect.
#[test]
fn no_file_that_is_cut_off_has_another_verdict_in_silence() {
    let (perf, errors, table) = (
        (perfquery(1, 7), perfquery(2, 7)),
        (query_errors(1), query_errors(2)),
        (csv(1), csv(2)),
    );
    let base = (database(1), database(2));
    let mut silent = Vec::new();
    let mut cuts = 0;
    // By ports, adapters have other GUIDs, so that only LIDs find them.
    let inputs: [(&str, _); 5] = [
        (TOPOLOGY, &perf),
        (BY_PORT, &perf),
        (TOPOLOGY, &errors),
        (TOPOLOGY, &table),
        (&base.0, &base),
    ];
    for (topology, (before, after)) in inputs {
        for routes in [None, Some(ROUTES)] {
            let whole = Files {
                topology,
                routes,
                before,
                after,
            };
            let wanted = diagnose_files(whole, SECOND, &tick()).unwrap();
            let mut roles: Vec<(FileRole, &str)> = vec![
                (FileRole::Topology, topology),
                (FileRole::Before, before),
                (FileRole::After, after),
            ];
            roles.extend(routes.map(|text| (FileRole::Routes, text)));
            for (role, text) in roles {
                let line_ends = text.match_indices('\n').map(|(at, _)| at + 1);
                for end in line_ends.chain((1..text.len()).step_by(7)) {
                    let cut = &text[..end];
                    let files = match role {
                        FileRole::Topology => Files {
                            topology: cut,
                            ..whole
                        },
                        FileRole::Routes => Files {
                            routes: Some(cut),
                            ..whole
                        },
                        FileRole::Before => Files {
                            before: cut,
                            ..whole
                        },
                        FileRole::After => Files {
                            after: cut,
                            ..whole
                        },
                    };
                    cuts += 1;
                    let Ok(done) = diagnose_files(files, SECOND, &tick()) else {
                        continue;
                    };
                    if verdict(&done) != verdict(&wanted) && !names_a_gap(&done, &wanted) {
                        let line = cut.lines().last().unwrap().to_owned();
                        silent.push((role, cut.lines().count(), line));
                    }
                }
            }
        }
    }
    assert!(cuts > 3_000, "{cuts}");
    assert_eq!(silent, []);
}

/// Root, cause and contributors of the only tree, or what there is instead.
fn root(done: &DumpDiagnosis) -> (String, &'static str, Vec<String>) {
    let [tree] = &done.report.trees[..] else {
        return (String::new(), "none", Vec::new());
    };
    let mut hosts: Vec<String> = tree
        .contributors
        .iter()
        .map(|one| one.host.clone())
        .collect();
    hosts.sort();
    (tree.root.clone(), tree.cause, hosts)
}

fn diagnosis(before: &str, after: &str) -> DumpDiagnosis {
    diagnose_files(files(before, after), SECOND, &tick()).unwrap()
}

/// Adds the counters of PortCountersExtended other than data and packets, as an older perfquery prints missing
/// counters.
fn with_absent(text: &str, masks: &str) -> String {
    text.replace("(CapMask: 0x5300 CapMask2: 0x0)", masks).replace(
        "# Port counters",
        "LinkDownedCounter:...............0\nPortXmitWait:....................0\n# Port counters",
    )
}

/// Oracle: counters that a device does not have say nothing, so that the verdict is that without them.
#[test]
fn additional_counters_count_where_class_port_info_states_them() {
    let [before, after] = [1, 2].map(|seconds| perfquery(seconds, 7));
    let expected = root(&diagnosis(&before, &after));
    assert_eq!((expected.0.as_str(), expected.1), ("right:1", "incast"));
    for masks in [
        "(CapMask: 0x5A00 CapMask2: 0x0000000)",
        "(CapMask: 0x1600 CapMask2: 0x0000005)",
        // Versions that print no CapMask2.
        "(CapMask: 0x5A00)",
    ] {
        let [before, after] = [&before, &after].map(|text| with_absent(text, masks));
        assert_eq!(root(&diagnosis(&before, &after)), expected, "{masks}");
    }
    // Without PortXmitWait of 32 bits the waiting time is unknown.
    let without = "(CapMask: 0x0300 CapMask2: 0x0)";
    let [before, after] = [&before, &after].map(|text| {
        let lines = text
            .lines()
            .map(|line| match line.starts_with("PortXmitWait") {
                true => "PortXmitWait:....................0\n".to_owned(),
                false => format!("{line}\n"),
            });
        lines
            .collect::<String>()
            .replace("(CapMask: 0x5300 CapMask2: 0x0)", without)
            .replace("(CapMask: 0x5300)", "(CapMask: 0x0300)")
    });
    let done = diagnosis(&before, &after);
    assert_eq!(
        (done.report.trees.len(), done.report.unknown_ports),
        (0, 10)
    );
    // Without PortCountersExtended its data are 0, and those of PortCounters count.
    let narrow = |seconds: u64| -> String {
        let text = perfquery(seconds, 0).replace("0x5300", "0x1100");
        let lines = text.lines().map(|line| match line.split_once(':') {
            Some((name @ ("PortXmitData" | "PortRcvData"), _)) => format!("{name}:....0\n"),
            _ => format!("{line}\n"),
        });
        lines.collect()
    };
    let done = diagnosis(&narrow(1), &narrow(2));
    assert_eq!(
        (done.report.trees.len(), done.report.unknown_ports),
        (0, 10)
    );
}

/// Oracle: the counter of 32 bits next to it, in the same file.
#[test]
fn markers_of_ibdiagnet_are_no_counters() {
    let expected = root(&diagnosis(&csv(1), &csv(2)));
    for marker in [
        "0xfffffffffffffffe",
        "18446744073709551614",
        "0xffffffffffffffff",
        "-1",
        "N/A",
        "",
    ] {
        let [before, after] = [1, 2].map(|seconds| {
            let text = csv(seconds);
            let lines = text.lines().map(|line| match line {
                _ if line.starts_with("NodeGUID") => {
                    format!("{line},PortXmitWaitExt,LinkDownedCounterExt\n")
                }
                _ if line.starts_with("0x") => format!("{line},{marker},{marker}\n"),
                _ => format!("{line}\n"),
            });
            lines.collect::<String>()
        });
        let done = diagnosis(&before, &after);
        assert_eq!(root(&done), expected, "{marker}");
        assert_eq!(done.report.unknown_ports, 0);
        // No other column has the waiting time.
        let [before, after] = [&before, &after].map(|text| text.replace("PortXmitWait,", "Other,"));
        let done = diagnosis(&before, &after);
        assert_eq!(
            (done.report.trees.len(), done.report.unknown_ports),
            (0, 10),
            "{marker}"
        );
    }
}

/// Oracle: the files do not say what the ports of the slower link support.
#[test]
fn slower_links_are_not_degraded_in_files_that_do_not_say_so() {
    let topology = TOPOLOGY.replace("4xSDR", "4xDDR");
    let slow = ["\"c\" lid 13 4xDDR", "\"right\" lid 2 4xDDR"];
    let mut lines: Vec<String> = topology.lines().map(str::to_owned).collect();
    for line in &mut lines {
        if line.contains(slow[0]) || line.contains("lid 13 lmc") {
            *line = line.replace("4xDDR", "4xSDR");
        }
    }
    let topology = lines.join("\n") + "\n";
    let (before, after) = (perfquery(1, 7), perfquery(2, 7));
    let files = Files {
        topology: &topology,
        ..files(&before, &after)
    };
    let done = diagnose_files(files, SECOND, &tick()).unwrap();
    let found = root(&done);
    assert_eq!((found.0.as_str(), found.1), ("right:1", "incast"));
    let about: Vec<&HealthItem> = done
        .report
        .health
        .iter()
        .filter(|one| one.what.contains("less than most"))
        .collect();
    assert_eq!(about.len(), 1, "{:?}", done.report.health);
    assert_eq!(about[0].severity.name(), "info");
    assert!(
        !done
            .report
            .health
            .iter()
            .any(|one| one.what.contains("both ends support"))
    );
}

/// Returns files of 64-bit counters with another tick than 4 ns at the ports of these LIDs.
fn with_tick(text: &str, ns: f64) -> String {
    let lines =
        text.lines().map(
            |line| match line.strip_prefix("PortXmitWait:....................") {
                Some(ticks) => {
                    let ticks: f64 = ticks.parse().unwrap();
                    format!(
                        "PortXmitWait:....................{}\n",
                        (ticks * 4.0 / ns) as u64
                    )
                }
                None => format!("{line}\n"),
            },
        );
    lines.collect()
}

/// Oracle: NVIDIA's table, and arithmetic. A lane of SDR carries 0.25 GB/s, four lanes 1 GB/s.
#[test]
fn tick_follows_from_the_device() {
    let (before, after) = (perfquery(1, 7), perfquery(2, 7));
    let expected = diagnosis(&before, &after);
    for (device, ns) in [
        ("0xd2f0", 8.0),
        ("0xd2f2", 8.0),
        ("0xd2f4", 8.0),
        ("0xcb20", 128.0),
        ("0xcf08", 128.0),
        ("0xc738", 128.0),
    ] {
        let topology = TOPOLOGY.replace(
            "Switch 4",
            &format!("vendid=0x2c9\ndevid={device}\nSwitch 4"),
        );
        let [before, after] = [&before, &after].map(|text| with_tick(text, ns));
        let of_device = Files {
            topology: &topology,
            ..files(&before, &after)
        };
        let done = diagnose_files(of_device, SECOND, &GivenTicks::default()).unwrap();
        assert_eq!(root(&done), root(&expected), "{device}");
        for (loss, other) in done.report.losses.iter().zip(&expected.report.losses) {
            assert!(
                (loss.wait - other.wait).abs() < 1e-3,
                "{device} {loss:?} {other:?}"
            );
        }
        // A tick that is given wins.
        let given = &GivenTicks::of_all(Span::from_ps((ns * 500.0) as u64));
        let half = diagnose_files(of_device, SECOND, given).unwrap();
        let most = |done: &DumpDiagnosis| done.report.losses[0].wait;
        assert!((most(&half) - most(&done) / 2.0).abs() < 1e-3);
    }
}

/// Oracle: arithmetic: waiting times are in proportion to the tick that is given.
#[test]
fn tick_may_be_given_by_device() {
    let (before, after) = (perfquery(1, 7), perfquery(2, 7));
    let mut switches = ["0xd2f0", "0xcb20"].into_iter();
    let lines = TOPOLOGY
        .lines()
        .map(|line| match line.starts_with("Switch") {
            true => format!("vendid=0x2c9\ndevid={}\n{line}\n", switches.next().unwrap()),
            false => format!("{line}\n"),
        });
    let topology: String = lines.collect();
    let of_devices = Files {
        topology: &topology,
        ..files(&before, &after)
    };
    let diagnosed = |texts: &[&str]| {
        let given = GivenTicks::parse(texts.iter().copied()).unwrap();
        diagnose_files(of_devices, SECOND, &given).unwrap()
    };
    let ticks = |done: &DumpDiagnosis| -> Vec<(f64, usize)> {
        let ticks = done.report.ticks.iter();
        ticks.map(|tick| (tick.ns, tick.ports)).collect()
    };
    // Four lanes of SDR carry 1 GB/s: 8 bytes of the port, 32 bytes of a lane.
    assert_eq!(ticks(&diagnosed(&[])), [(8.0, 5), (128.0, 5)]);
    assert_eq!(ticks(&diagnosed(&["4 ns"])), [(4.0, 10)]);
    // Adapters count as the switch that they are cabled to.
    let quantum = diagnosed(&["Quantum=4 ns"]);
    assert_eq!(ticks(&quantum), [(4.0, 5), (128.0, 5)]);
    assert!(quantum.odd.is_empty(), "{:?}", quantum.odd);
    let wait = |done: &DumpDiagnosis| {
        let loss = done.report.losses.iter().find(|loss| loss.port == "left:3");
        loss.unwrap().wait
    };
    let expected = diagnosis(&before, &after);
    assert!((wait(&quantum) - wait(&expected)).abs() < 1e-9);
    let both = diagnosed(&["54000=2 ns", "switch-ib=3 ns", "4 ns"]);
    assert_eq!(ticks(&both), [(2.0, 5), (3.0, 5)]);
    assert!((wait(&both) - wait(&expected) / 2.0).abs() < 1e-9);
    assert_eq!(
        ticks(&diagnosed(&["0xcb20=3 ns", "4 ns"])),
        [(3.0, 5), (4.0, 5)]
    );
    let absent = diagnosed(&["quantum-3=3 ns"]);
    assert_eq!(ticks(&absent), [(8.0, 5), (128.0, 5)]);
    assert_eq!(
        absent.odd,
        [(
            FileRole::Topology,
            "54004 (0xd2f4): no node has this DeviceID, whose tick is given".to_owned()
        )]
    );
}

/// Oracle: the speeds that each device has. EDR is that of Switch-IB and of Quantum.
#[test]
fn tick_without_a_device_follows_from_the_fastest_link() {
    let (before, after) = (perfquery(1, 7), perfquery(2, 7));
    let wait = |topology: &str| {
        let files = Files {
            topology,
            ..files(&before, &after)
        };
        diagnose_files(files, SECOND, &GivenTicks::default()).map(|done| {
            let loss = done.report.losses.iter().find(|loss| loss.port == "left:3");
            loss.map(|loss| loss.wait)
        })
    };
    let near = |found: Option<f64>, wanted: f64| (found.unwrap() - wanted).abs() < wanted * 1e-3;
    // 0.4 of a second are 100,000,000 ticks of 4 ns.
    assert!(near(
        wait(&TOPOLOGY.replace("4xSDR", "4xHDR")).unwrap(),
        0.032
    ));
    assert!(near(
        wait(&TOPOLOGY.replace("4xSDR", "4xNDR")).unwrap(),
        0.016
    ));
    for speed in ["SDR", "QDR", "EDR"] {
        let (role, error) = wait(&TOPOLOGY.replace("SDR", speed)).unwrap_err();
        assert_eq!(role, FileRole::Topology);
        assert!(error.hint.starts_with("give --tick"), "{error:?}");
    }
    // Without waiting the tick does not matter.
    let quiet = Files {
        topology: TOPOLOGY,
        routes: None,
        before: &before,
        after: &before,
    };
    assert!(diagnose_files(quiet, SECOND, &GivenTicks::default()).is_ok());
}
