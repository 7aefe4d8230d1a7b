//! Journals that were changed: each is damage with its line, or is read again as it is written.

mod law;

use proptest::prelude::*;

use law::{check, example, sealed};

#[test]
fn example_is_a_journal() {
    let content = sealed(&example());
    check(&content);
    let journal = silvan_dcms::journal::Journal::open(law::Memory::with(content));
    assert_eq!(
        journal
            .expect("the example is complete")
            .changes()
            .values()
            .len(),
        2
    );
}

proptest! {
    #[test]
    fn changed_records_do_no_harm(
        edits in prop::collection::vec((any::<prop::sample::Index>(), "[0-9a-z{}\\[\\]\",:\n-]{0,4}"), 1..4),
        is_sealed: bool,
    ) {
        let mut content = example();
        if !is_sealed {
            content = sealed(&content);
        }
        for (index, edit) in edits {
            let at = index.index(content.len());
            content.splice(at..=at, edit.into_bytes());
        }
        check(&if is_sealed { sealed(&content) } else { content });
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
        check(&sealed(&bytes));
    }
}
