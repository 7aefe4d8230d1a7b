//! Properties of any bytes as the journal of changes.
//!
//! `main.rs` draws changed journals, and so does the fuzz target `journal`.

use std::io;

use hmac_sha256::Hash;
use silvan_core::Guid;
use silvan_dcms::journal::{Change, Disk, Journal, JournalError, Setting, Target};

/// A disk with one file.
#[derive(Default)]
pub struct Memory {
    content: Option<Vec<u8>>,
    new: Vec<u8>,
}

impl Memory {
    /// Returns a disk with this journal.
    pub fn with(content: Vec<u8>) -> Self {
        Self {
            content: Some(content),
            new: Vec::new(),
        }
    }
}

impl Disk for Memory {
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.content.clone())
    }

    fn write(&mut self, content: &[u8]) -> io::Result<()> {
        self.new = content.to_vec();
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn replace(&mut self) -> io::Result<()> {
        self.content = Some(std::mem::take(&mut self.new));
        Ok(())
    }

    fn sync_folder(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn publish(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes are a journal that is read again as it is written, or damage at one of their lines.
///
/// # Panics
/// If neither holds.
pub fn check(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n').count();
    let mut journal = match Journal::open(Memory::with(bytes.to_vec())) {
        Ok(journal) => journal,
        Err(JournalError::Content { line, why }) => {
            // The line after the last one is missing.
            assert!((1..=lines + 1).contains(&line) && !why.is_empty());
            return;
        }
        Err(JournalError::Version { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    journal.write().expect("the disk has room");
    let written = journal.disk().content.take().expect("it is written");
    let again = Journal::open(Memory::with(written)).expect("it is as the journal writes it");
    assert_eq!(again.changes(), journal.changes());
    for change in again.changes().values() {
        // A threshold beyond its four bits must not overflow.
        let _ = change.before.element();
    }
}

/// Puts the right checksum before each line, which random bytes would not find.
pub fn sealed(records: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    for record in records.split(|byte| *byte == b'\n') {
        let digest = Hash::hash(record);
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        content.extend_from_slice(&digits.as_bytes()[..16]);
        content.push(b' ');
        content.extend_from_slice(record);
        content.push(b'\n');
    }
    content
}

/// The records of a journal of two changes, without checksums.
pub fn example() -> Vec<u8> {
    let mut journal = Journal::open(Memory::default()).expect("there is none");
    let setting = |marking_rate| Setting {
        valid: true,
        threshold: 15,
        packet_size: 8,
        marking_rate,
    };
    for port in [None, Some(3)] {
        let target = Target {
            switch: Guid::new(0x0002_c902_0042_3e70),
            port,
        };
        let change = Change {
            before: setting(0),
            after: setting(25),
            rate: 7,
            since: 1_700_000_000,
        };
        journal.add(target, change).expect("the disk has room");
    }
    let content = journal.disk().content.take().expect("it is written");
    let lines = content.split(|byte| *byte == b'\n');
    let records: Vec<&[u8]> = lines.filter_map(|line| line.get(17..)).collect();
    records.join(&b'\n')
}
