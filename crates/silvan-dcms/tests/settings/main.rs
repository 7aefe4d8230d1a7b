//! Configurations that were changed: each is read, or is one error with its line.

mod law;

use proptest::prelude::*;
use silvan_dcms::settings::{EXAMPLE, ManagerSettings};

/// The example without what needs files or names.
fn example() -> String {
    let lines = EXAMPLE.lines();
    let kept = lines.filter(|line| !line.contains("listen") && !line.contains("cc-key-file"));
    kept.collect::<Vec<_>>().join("\n")
}

#[test]
fn example_is_a_configuration() {
    ManagerSettings::from_toml(&example(), "dcms.toml").expect("the example is complete");
}

proptest! {
    #[test]
    fn changed_configurations_are_read_or_refused(
        edits in prop::collection::vec((any::<prop::sample::Index>(), "[0-9a-z\\[\\]\"=., \n-]{0,4}"), 1..4),
    ) {
        let mut content: Vec<char> = example().chars().collect();
        for (index, edit) in edits {
            let at = index.index(content.len());
            content.splice(at..=at, edit.chars());
        }
        law::check(&content.into_iter().collect::<String>());
    }
}
