//! GOAL as `txt2bin` writes it: written here from the description of the format, and compared with the text.

use silvan_workload::programs::trace::{Goal, TraceFormat, TracePlace};
use silvan_workload::programs::{Action, Schedule, goal};

use super::{read, settings};

/// An operation with its kind, peer, size, tag and processor.
fn op(action: Action, cpu: u32) -> Vec<u8> {
    let (kind, peer, size, tag) = match action {
        Action::Calc(span) | Action::Delay(span) => (3_u8, 0, span.as_ps() / 1000, 0),
        Action::Send { to, bytes, tag } => (1, to, bytes, tag),
        Action::Receive { from, bytes, tag } => {
            (2, from.unwrap_or(u32::MAX), bytes, tag.unwrap_or(u32::MAX))
        }
        Action::Put { .. } => panic!("GOAL has none"),
    };
    let mut bytes = vec![kind];
    bytes.extend(peer.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(tag.to_le_bytes());
    bytes.extend([cpu as u8, 0]);
    bytes
}

fn rank(schedule: &Schedule) -> Vec<u8> {
    let count = schedule.ops().len() as u32;
    let roots: Vec<u32> = schedule.first_ready().collect();
    let mut bytes = count.to_le_bytes().to_vec();
    bytes.extend((roots.len() as u32).to_le_bytes());
    for root in roots {
        bytes.extend(root.to_le_bytes());
    }
    let mut appendix = Vec::new();
    for (number, entry) in (0..).zip(schedule.ops()) {
        bytes.extend(schedule.waits()[number as usize].to_le_bytes());
        bytes.extend(op(entry.action, entry.cpu));
        let after = [
            schedule.after_end(number).collect::<Vec<_>>(),
            schedule.after_start(number).collect(),
        ];
        for waiting in after {
            bytes.extend((waiting.len() as u32).to_le_bytes());
            bytes.extend((appendix.len() as u32).to_le_bytes());
            appendix.extend(waiting);
        }
    }
    bytes.extend(appendix.into_iter().flat_map(u32::to_le_bytes));
    bytes
}

pub(super) fn binary(text: &str) -> Vec<u8> {
    let ranks: Vec<Vec<u8>> = goal::parse(text)
        .unwrap()
        .iter()
        .map(|one| rank(one))
        .collect();
    let mut bytes = 4223_u64.to_le_bytes().to_vec();
    bytes.extend((ranks.len() as u32).to_le_bytes());
    bytes.extend([3, 0]);
    // Places are counted from the end of the cookie.
    let mut place = 6 + 16 * ranks.len() as u64;
    for rank in &ranks {
        bytes.extend(place.to_le_bytes());
        place += rank.len() as u64;
        bytes.extend(place.to_le_bytes());
    }
    bytes.extend(ranks.concat());
    bytes
}

/// Returns one rank with `length` computations in a ring of waits.
pub(super) fn ring(length: u32) -> Vec<u8> {
    let lines: String = (0..length).map(|op| format!("l{op}: calc 1\n")).collect();
    let chain: String = (1..length)
        .map(|op| format!("l{op} requires l{}\n", op - 1))
        .collect();
    let mut bytes = binary(&format!("num_ranks 1\nrank 0 {{\n{lines}{chain}}}\n"));
    // The last operation's waiter is the first, at the end of the data.
    let entry = bytes.len() - 4 * (length as usize - 1) - 16;
    bytes[entry..entry + 4].copy_from_slice(&1_u32.to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    let end = bytes.len() as u64 - 8;
    bytes[22..30].copy_from_slice(&end.to_le_bytes());
    bytes
}

const TEXT: &str = "num_ranks 3\nrank 0 {\na: calc 100\nb: send 10b to 1 tag 3 cpu 2\nc: recv 8b from -1 tag -1\nb requires a\nc irequires b\n}\n\
    rank 1 {\nrecv 10b from 0 tag 3\nsend 8b to 0\n}\nrank 2 {\n}\n";

/// Oracle: the text that it was made of.
#[test]
fn it_is_the_schedule_of_its_text() {
    let found = read(&Goal {}, &[binary(TEXT)], None, &settings(3)).unwrap();
    let wanted = goal::parse(TEXT).unwrap();
    assert_eq!(goal::write(&found), goal::write(&wanted));
}

/// A file that ends anywhere is refused, or is whole without its end: never read beyond it.
#[test]
fn a_file_that_is_cut_off_is_refused_with_the_place() {
    let whole = binary(TEXT);
    for length in 8..whole.len() {
        let error = Goal {}.import(vec![whole[..length].to_vec()], None).err();
        // The last rank has no operations, so that its counts of zero end the file.
        let error = error.unwrap_or_else(|| panic!("{length} bytes are read"));
        assert!(matches!(error.place, TracePlace::Byte(at) if at <= length as u64));
        assert_eq!(
            error.hint, "the file may have been cut off",
            "{length}: {error}"
        );
    }
}

#[test]
fn mistakes_are_named() {
    let change = |place: usize, value: u8| {
        let mut bytes = binary("num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\n}\n");
        bytes[place] = value;
        Goal {}.import(vec![bytes], None).unwrap_err().to_string()
    };
    // The cookie, the counts and two entries of the table take 46 bytes; the counts and root of rank 0, 12; its waits, 4.
    let kind = 46 + 12 + 4;
    assert_eq!(
        change(kind, 7),
        "rank 0, operation 0: 7 is no type: 1, 2 or 3"
    );
    assert_eq!(
        change(kind + 1, 0),
        "rank 0, operation 0: rank 0 is no other rank of 2"
    );
    assert_eq!(
        change(kind + 1, 9),
        "rank 0, operation 0: rank 9 is no other rank of 2"
    );
    assert_eq!(
        change(kind + 18, 1),
        "network interface 1 is out of range: a host has one"
    );
    let cycle = binary("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\nb requires a\n}\n");
    // The entry that says who waits for a: let a wait for itself.
    let mut itself = cycle.clone();
    let last = itself.len() - 4;
    itself[last..].copy_from_slice(&0_u32.to_le_bytes());
    let error = Goal {}.import(vec![itself], None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "operations 0 of rank 0 wait for each other in a cycle"
    );
}

/// Data of several ranks at one place would be as many operations as ranks times those of the file.
#[test]
fn each_rank_has_data_of_its_own() {
    let text = "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n";
    let whole = binary(text);
    // Start and end of each rank's data; the second starts where the first ends.
    let entries = [14, 22, 30, 38];
    let get = |entry: usize| u64::from_le_bytes(whole[entry..entry + 8].try_into().unwrap());
    let [start, middle, _, end] = entries.map(get);
    let with = |changes: &[(usize, u64)]| {
        let mut bytes = whole.clone();
        for (entry, place) in changes {
            bytes[*entry..*entry + 8].copy_from_slice(&place.to_le_bytes());
        }
        let error = Goal {}.import(vec![bytes], None).unwrap_err();
        (error.place, error.message)
    };
    let beyond = format!("the data of a rank are at byte {}, beyond the end", end + 1);
    let cases = [
        (
            vec![(30, start)],
            30,
            "the data of rank 1 overlap those of rank 0",
        ),
        (
            vec![(22, middle + 1)],
            30,
            "the data of rank 1 overlap those of rank 0",
        ),
        (
            vec![(14, start - 1)],
            14,
            "the data of rank 0 start within the index",
        ),
        (
            vec![(38, middle - 1)],
            30,
            "the data of rank 1 end before they start",
        ),
        (vec![(38, end + 1)], 38, beyond.as_str()),
        (
            vec![(14, u64::MAX)],
            14,
            "the data of a rank are at byte 18446744073709551615, beyond the end",
        ),
        (
            vec![(22, start + 8)],
            start + 16,
            "1 entries do not fit into the data",
        ),
    ];
    for (changes, byte, message) in cases {
        let expected = (TracePlace::Byte(byte), message.to_owned());
        assert_eq!(with(&changes), expected, "{changes:?}");
    }
    // Ranks may be in any order.
    let mut swapped = binary(text);
    swapped[14..46].rotate_left(16);
    let error = Goal {}.import(vec![swapped], None).unwrap_err();
    assert_eq!(
        error.message, "rank 0, operation 0: rank 0 is no other rank of 2",
        "the receive of rank 1 is read as that of rank 0"
    );
}
