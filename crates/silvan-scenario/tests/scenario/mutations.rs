//! Any file gives a scenario or a located error, never a panic.

use proptest::prelude::*;

use silvan_scenario::faults::read_faults;

use crate::law::{check, check_faults, check_located};
use crate::{ALL_KEYS, SHIPPED, read};

/// A file cut off at any byte.
#[test]
fn truncated_files_give_located_errors() {
    let mut failed = 0;
    let (_, example) = SHIPPED[2];
    for text in [ALL_KEYS, example] {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            if let Err(error) = read(&text[..end]) {
                check_located(&error, &text[..end]);
                failed += 1;
            }
        }
    }
    // Most cuts break something: a word, a bracket, or a reference to what is no longer there.
    assert!(failed > ALL_KEYS.len() / 2, "{failed}");
}

const FAULTS: &str = include_str!("faults.toml");
const FOUR_HOSTS: &str = "[fabric]\ngenerator = \"single-switch\"\nhosts = 4\n";

#[test]
fn each_kind_of_fault_is_read() {
    let scenario = read(FOUR_HOSTS).unwrap();
    let faults = read_faults(FAULTS, "file.toml", scenario.fabric()).unwrap();
    assert_eq!(faults.len(), 7);
}

/// Lines of a file, some of them changed.
fn mutated(text: &'static str) -> impl Strategy<Value = String> {
    let lines: Vec<&'static str> = text.lines().collect();
    let count = lines.len();
    let edit = prop_oneof![
        Just(Edit::Remove),
        Just(Edit::Repeat),
        (0..count).prop_map(Edit::CopyFrom),
        prop::sample::select(VALUES).prop_map(Edit::Value),
        (any::<prop::sample::Index>(), any::<char>()).prop_map(|(at, c)| Edit::Character(at, c)),
    ];
    prop::collection::vec((0..count, edit), 1..4).prop_map(move |edits| {
        let mut text: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        for (row, edit) in edits {
            text[row] = edit.apply(&text[row], &lines);
        }
        text.join("\n")
    })
}

#[derive(Debug, Clone)]
enum Edit {
    Remove,
    Repeat,
    CopyFrom(usize),
    Value(&'static str),
    Character(prop::sample::Index, char),
}

/// Values of every kind, extremes among them.
const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "255",
    "256",
    "65536",
    "9223372036854775807",
    "-9223372036854775808",
    "0.0",
    "1e300",
    "nan",
    "inf",
    "true",
    "\"\"",
    "\"all\"",
    "\"unlimited\"",
    "\"0 s\"",
    "\"1 ps\"",
    "\"18446744073709551615 ps\"",
    "\"0 B\"",
    "\"1 B\"",
    "\"18446744073709551615 B\"",
    "\"1 bit/s\"",
    "\"18446744073709551615 bit/s\"",
    "\"S:1\"",
    "\"a\"",
    "[]",
    "[[]]",
    "[0]",
    "[\"a\"]",
    "{}",
    "2024-01-01",
];

impl Edit {
    fn apply(&self, line: &str, lines: &[&str]) -> String {
        match self {
            Self::Remove => String::new(),
            Self::Repeat => format!("{line}\n{line}"),
            Self::CopyFrom(row) => lines[*row].to_owned(),
            Self::Value(value) => match line.split_once('=') {
                Some((key, _)) => format!("{key}= {value}"),
                None => line.to_owned(),
            },
            Self::Character(at, character) => {
                let mut characters: Vec<char> = line.chars().collect();
                let place = at.index(characters.len() + 1);
                characters.insert(place, *character);
                characters.into_iter().collect()
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn mutated_files_never_panic(text in mutated(ALL_KEYS)) {
        check(&text);
    }

    #[test]
    fn mutated_faults_never_panic(text in mutated(FAULTS)) {
        check_faults(&text, read(FOUR_HOSTS).unwrap().fabric());
    }

    #[test]
    fn arbitrary_text_never_panics(text in "(?s).{0,200}") {
        check(&text);
    }
}
