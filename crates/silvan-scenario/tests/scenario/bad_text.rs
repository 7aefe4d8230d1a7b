//! Text that is no scenario at all: broken TOML, unknown keys, wrong types and units.

use serde_json::Value;

use crate::{ALL_KEYS, message, read, read_with};

#[test]
fn toml_errors_have_a_line() {
    assert_eq!(
        message("name = \"x\"\n[fabric\n"),
        "file.toml:2: unclosed table, expected `]` (hint: the file may be cut short, or a quote \
         or bracket is missing)"
    );
    assert_eq!(
        message("[vl]\nhigh = [[0, 1],"),
        "file.toml:2: unclosed array, expected `]` (hint: the file may be cut short, or a quote \
         or bracket is missing)"
    );
    assert_eq!(
        message("[fabric]\ngenerator = \"sing"),
        "file.toml:2: invalid basic string, expected `\"` (hint: the file may be cut short, or a quote \
         or bracket is missing)"
    );
    assert_eq!(
        message("[switch]\nbuffer = 64 KiB"),
        "file.toml:2: string values must be quoted, expected literal string (hint: put names and \
         quantities in quotes, e.g. \"64 KiB\")"
    );
    assert_eq!(
        message("[run]\nseed = 1\nseed = 2\n"),
        "file.toml:3: duplicate key (hint: keep one of them; entries of a list have double \
         brackets, e.g. [[traffic.flow]])"
    );
    assert_eq!(
        message("[run]\n[run]\n"),
        "file.toml:2: duplicate key (hint: keep one of them; entries of a list have \
         double brackets, e.g. [[traffic.flow]])"
    );
}

#[test]
fn unknown_keys_name_the_nearest() {
    assert_eq!(
        message("[switch]\nbufer = \"1 KiB\""),
        "file.toml:2: switch.bufer: unknown key (hint: did you mean \"buffer\"?)"
    );
    assert_eq!(
        message("[trafic]"),
        "file.toml:1: trafic: unknown key (hint: did you mean \"traffic\"?)"
    );
    // Two names are one letter away; the one meant has more in common.
    assert_eq!(
        message("[fabric]\ngenerator = \"chain\"\nswitchs = 3"),
        "file.toml:3: fabric.switchs: unknown key (hint: did you mean \"switches\"?)"
    );
    assert_eq!(
        message("[link]\ndelay = \"1 ns\""),
        "file.toml:2: link.delay: unknown key (hint: known here: width, speed, rate, length, latency, flow-control, pfc; \
         elsewhere there is control.feedback.delay or traffic.program.straggler.delay)"
    );
    assert_eq!(
        message("\n[[traffic.flow]]\nfrom = \"a\"\nto = \"b\"\nvolume = 3"),
        "file.toml:5: traffic.flow.0.volume: unknown key (hint: known here: name, from, to, bytes, \
         load, start, end, on-off, message, sl)"
    );
}

#[test]
fn missing_keys_point_at_their_section() {
    assert_eq!(
        message("name = \"x\"\n\n[[traffic.flow]]\nfrom = \"host-0000\""),
        "file.toml:3: traffic.flow.0.to: missing key (hint: add it, e.g. to = \"host-0000\")"
    );
    assert_eq!(
        message("[switch]\noutput-buffer = { speedup = 2 }"),
        "file.toml:2: switch.output-buffer.size: missing key (hint: add it, e.g. size = \"64 \
         KiB\")"
    );
}

#[test]
fn units_are_mandatory_and_checked() {
    assert_eq!(
        message("[switch]\nbuffer = 65536"),
        "file.toml:2: switch.buffer: expected a data size as text with its unit, e.g. \"64 KiB\", \
         found the number 65536 (hint: write it in quotes with its unit, e.g. \"64 KiB\")"
    );
    assert_eq!(
        message("[host]\ninjection-rate = 13.5"),
        "file.toml:2: host.injection-rate: expected a data rate as text with its unit, e.g. \"13.5 \
         Gbit/s\", found the number 13.5 (hint: write it in quotes with its unit, e.g. \"13.5 \
         Gbit/s\")"
    );
    assert_eq!(
        message("[switch]\nbuffer = \"65536\""),
        "file.toml:2: switch.buffer: invalid data size \"65536\": the unit is missing (hint: write \
         e.g. \"64 KiB\")"
    );
    assert_eq!(
        message("[host]\nsink-rate = \"13.6 Gb/s\""),
        "file.toml:2: host.sink-rate: invalid data rate \"13.6 Gb/s\": the unit is not known (hint: \
         write \"Gbit/s\" for bits or \"GB/s\" for bytes)"
    );
    assert_eq!(
        message("[switch]\nlatency = \"2 m\""),
        "file.toml:2: switch.latency: invalid time span \"2 m\": the unit is not known (hint: known \
         units: ps, ns, us, ms, s)"
    );
    assert_eq!(
        message("[run]\nduration = 0.1"),
        "file.toml:2: run.duration: expected a time span as text with its unit, e.g. \"150 us\", \
         found the number 0.1 (hint: write it in quotes with its unit, e.g. \"150 us\")"
    );
    assert_eq!(
        message("[host]\ninjection-rate = \"0 Gbit/s\""),
        "file.toml:2: host.injection-rate: invalid data rate \"0 Gbit/s\": it is zero (hint: write \
         e.g. \"13.5 Gbit/s\")"
    );
}

#[test]
fn types_are_checked() {
    assert_eq!(
        message("[vl]\ndata-vls = \"two\""),
        "file.toml:2: vl.data-vls: expected a whole number from 0 to 255, found the text \"two\" \
         (hint: write a whole number without quotes and unit, e.g. 1)"
    );
    assert_eq!(
        message("[fabric]\nswitch = 3"),
        "file.toml:2: fabric.switch: expected a list, found the number 3 (hint: write it in \
         brackets, or entries as [[fabric.switch]])"
    );
    assert_eq!(
        message("switch = true"),
        "file.toml:1: switch: expected a table, found true (hint: write it as a section [switch] \
         with keys below)"
    );
    assert_eq!(
        message("[control]\nscheme = \"ib_cc\""),
        "file.toml:2: control.scheme: unknown value \"ib_cc\" (hint: did you mean \"ib-cc\"?)"
    );
    assert_eq!(
        message("[control.feedback]\npath = 3"),
        "file.toml:2: control.feedback.path: expected a name in quotes, found the number 3 (hint: write \
         one of: \"out-of-band\", \"in-band\")"
    );
    assert_eq!(
        message("[vl]\nhigh = [[0, 1], [0, 1, 2]]"),
        "file.toml:2: vl.high.1: expected a list of length 2, found 3 values (hint: write that \
         many values in brackets, e.g. [0, 1])"
    );
    assert_eq!(
        message("[run]\nduration = 2024-01-01"),
        "file.toml:2: run.duration: a date is no value of a scenario (hint: put text in quotes; a \
         time span looks like \"150 us\")"
    );
    assert_eq!(
        message("[run]\nseed = -1"),
        "file.toml:2: run.seed: expected a whole number that is not negative, found the number -1 \
         (hint: write a whole number without quotes and unit, e.g. 1)"
    );
    assert_eq!(
        message("[run]\nseed = 4.0"),
        "file.toml:2: run.seed: expected a whole number that is not negative, found the number 4.0 \
         (hint: write a whole number without quotes and unit, e.g. 1)"
    );
    assert_eq!(
        message("[[traffic.flows]]\nsizes = {}\nload = 0.5"),
        "file.toml:2: traffic.flows.0.sizes: expected the name of a distribution, or a table, found an empty table \
         (hint: write e.g. \"web-search\" or { fixed = \"64 KiB\" })"
    );
}

#[test]
fn overrides_are_named_as_their_source() {
    let with = |key: &str, value: &str| {
        let text = "[[traffic.flow]]\nfrom = \"host-0000\"\nto = \"host-0001\"";
        read_with(text, &[(key, value)]).unwrap_err().to_string()
    };
    assert_eq!(
        with("switch.bufer", "64 KiB"),
        "--set switch.bufer=64 KiB: switch.bufer: unknown key (hint: did you mean \"buffer\"?)"
    );
    assert_eq!(
        with("switch.buffer", "64"),
        "--set switch.buffer=64: switch.buffer: expected a data size as text with its unit, e.g. \
         \"64 KiB\", found the number 64 (hint: write it in quotes with its unit, e.g. \"64 \
         KiB\")"
    );
    assert_eq!(
        with("switch.buffer", "1 KiB"),
        "--set switch.buffer=1 KiB: switch.buffer: switch input buffer of 1024 bytes cannot hold \
         one packet of 4122 bytes on the wire (hint: make it at least 4160 B, or lower \
         packet.mtu)"
    );
    assert_eq!(
        with("traffic.flow.1.load", "0.5"),
        "--set traffic.flow.1.load=0.5: traffic.flow.1.load: traffic.flow has 1 entries, there is \
         no entry 1 (they count from 0) (hint: name one that is there, or add the entry to the \
         file)"
    );
    assert_eq!(
        with("traffic.flow.0.to", "host-0009"),
        "--set traffic.flow.0.to=host-0009: traffic.flow.0.to: there is no host named \"host-0009\" \
         (hint: did you mean \"host-0000\"?)"
    );
    assert_eq!(
        with("traffic.flow.load", "1"),
        "--set traffic.flow.load=1: traffic.flow.load: traffic.flow is not a table (hint: name an \
         entry of a list by its number, e.g. traffic.flow.0.load)"
    );
    assert_eq!(
        with("name.first", "x"),
        "--set name.first=x: name: expected text in quotes, found a table (hint: put it in \
         quotes, e.g. \"x\")"
    );
    assert_eq!(
        with("", "x"),
        "--set =x: \"\" is not a key (hint: write it as --set section.key=value)"
    );
    assert_eq!(
        with("switch.output-buffer.speedup", "2"),
        "--set switch.output-buffer.speedup=2: switch.output-buffer.size: missing key (hint: add \
         it, e.g. size = \"64 KiB\")"
    );
}

#[test]
fn errors_carry_their_parts() {
    let error = read("[switch]\n  bufer = 1\n").unwrap_err();
    assert_eq!(error.source_name(), "file.toml");
    assert_eq!((error.line(), error.column()), (Some(2), Some(3)));
    assert_eq!(error.key().to_string(), "switch.bufer");
    assert_eq!(error.hint(), Some("did you mean \"buffer\"?"));
    assert_eq!(error.message(), "switch.bufer: unknown key");
}

/// Text from the file cannot break the one line of a message.
#[test]
fn messages_stay_on_one_line() {
    let text = "[[traffic.flow]]\nfrom = \"a\\nb\"\nto = \"x\"\n\"k\\ney\" = 1";
    assert_eq!(message(text).lines().count(), 1);
    let text = "[[traffic.flow]]\nfrom = \"a\\nb\"\nto = \"x\"";
    assert_eq!(message(text).lines().count(), 1);
}

/// A value of every kind at every key of the complete file: what is refused comes with advice.
#[test]
fn every_refusal_has_a_hint() {
    const VALUES: [&str; 10] = [
        "-1", "0", "0.5", "true", "text", "[]", "[1]", "[\"x\"]", "{}", "65536",
    ];
    let mut refused = 0;
    for key in keys(&all_keys(), "") {
        for value in VALUES {
            if let Err(error) = read_with(ALL_KEYS, &[(&key, value)]) {
                assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{error}");
                refused += 1;
            }
        }
    }
    // Most of these values are of the wrong kind for most keys.
    assert!(refused > 500, "{refused}");
}

fn all_keys() -> Value {
    read(ALL_KEYS).unwrap().to_json()
}

/// The paths of all values, lists and sections.
fn keys(value: &Value, path: &str) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), value))
            .collect(),
        Value::Array(values) => values
            .iter()
            .enumerate()
            .map(|(index, value)| (index.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for (name, child) in children {
        let path = match path {
            "" => name,
            _ => format!("{path}.{name}"),
        };
        found.extend(keys(child, &path));
        found.push(path);
    }
    found
}

/// "did you mean 4x?" would be a guess: the names that look alike mean different things.
#[test]
fn short_names_that_look_alike_are_listed() {
    assert_eq!(
        message("[link]\nwidth = \"5x\""),
        "file.toml:2: link.width: unknown value \"5x\" (hint: known here: 1x, 2x, 4x, 8x, 12x)"
    );
    let speed = message("[link]\nspeed = \"ZDR\"");
    assert!(
        speed.contains("(hint: known here: SDR, DDR, QDR, FDR10"),
        "{speed}"
    );
    let case = message("[link]\nspeed = \"sdr\"");
    assert!(case.ends_with("(hint: did you mean \"SDR\"?)"), "{case}");
}
