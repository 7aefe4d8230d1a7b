//! The journal of changes to restore, which survives crashes and power loss.
//!
//! An entry is on the disk before its change is made. A new file replaces the journal: it is synced and renamed, then
//! the folder is synced.

mod folder;

use std::collections::BTreeMap;
use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use silvan_core::Guid;
use silvan_mad::Bits;
use silvan_mad::congestion::SwitchPortCongestionElement;
use thiserror::Error;

pub use folder::{InCharge, StateError, StateFolder};

const VERSION: u32 = 2;
/// Hexadecimal digits of a checksum: the first of SHA-256.
const CHECKSUM_LEN: usize = 16;

/// Target of a change: a port, or a switch as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// NodeGUID of the switch.
    pub switch: Guid,
    /// The port; `None` for the setting of the whole switch.
    pub port: Option<u8>,
}

/// The setting of a port, or of a switch as a whole (which is always valid).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Setting {
    /// True if the port has a separate setting.
    pub valid: bool,
    /// Threshold, 0 to 15; 0 never marks.
    pub threshold: u8,
    /// Packet_Size, in units of 64 bytes.
    pub packet_size: u8,
    /// Marking_Rate, in packets.
    pub marking_rate: u16,
}

impl Setting {
    /// `None` if the element controls credit starvation, which has no Marking_Rate.
    pub fn of(element: &SwitchPortCongestionElement) -> Option<Self> {
        (!element.credit_starvation).then(|| Self {
            valid: element.valid,
            threshold: element.threshold.get() as u8,
            packet_size: element.packet_size,
            marking_rate: element.marking_rate,
        })
    }

    /// Returns the setting as an element of a datagram.
    pub fn element(&self) -> SwitchPortCongestionElement {
        SwitchPortCongestionElement {
            valid: self.valid,
            credit_starvation: false,
            threshold: Bits::saturating(u64::from(self.threshold)),
            packet_size: self.packet_size,
            marking_rate: self.marking_rate,
        }
    }
}

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Setting before the change.
    pub before: Setting,
    /// Setting after the change.
    pub after: Setting,
    /// The Marking_Rate that was in force, be it the port's or the switch's.
    pub rate: u16,
    /// Time of the change, in seconds since 1970.
    pub since: u64,
}

/// Storage of the journal. Each function is a step after which the machine may stop.
pub trait Disk {
    /// The journal's content; `None` if there is none. Errors if it cannot be read.
    fn read(&mut self) -> io::Result<Option<Vec<u8>>>;

    /// Writes new content next to the old. Errors if it cannot be written; so for the others.
    fn write(&mut self, content: &[u8]) -> io::Result<()>;

    /// Makes sure that the new content is on the disk.
    fn sync(&mut self) -> io::Result<()>;

    /// Puts the new content in the place of the old.
    fn replace(&mut self) -> io::Result<()>;

    /// Makes sure that it stays there.
    fn sync_folder(&mut self) -> io::Result<()>;

    /// Writes the state of the manager for people who ask, in place of the last one. It need not outlive a power loss.
    fn publish(&mut self, status: &[u8]) -> io::Result<()>;
}

/// A journal that cannot be kept, so that nothing may be changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The journal cannot be read or written.
    #[error("the journal cannot be {what}: {error}")]
    Io {
        /// Read or written.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
    /// The content is not a journal.
    #[error("the journal is damaged at line {line}: {why}")]
    Content {
        /// Number of the line.
        line: usize,
        /// The fault.
        why: String,
    },
    /// Another version of silvan has written it.
    #[error(
        "the journal has version {found}, this silvan reads {VERSION}: restore with the silvan that wrote it"
    )]
    Version {
        /// Version of the journal.
        found: u32,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Header {
    version: u32,
    changes: usize,
}

#[derive(Deserialize)]
struct Form {
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Entry {
    switch: Guid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port: Option<u8>,
    before: Setting,
    after: Setting,
    rate: u16,
    since: u64,
}

/// All changes that are in force, or may be.
pub struct Journal<D> {
    disk: D,
    changes: BTreeMap<Target, Change>,
    is_outdated: bool,
}

impl<D: Disk> Journal<D> {
    /// Reads an earlier run's journal; after a [`JournalError`] nothing may be changed.
    pub fn open(mut disk: D) -> Result<Self, JournalError> {
        let content = disk.read().map_err(|error| JournalError::Io {
            what: "read",
            error,
        })?;
        let changes = match content {
            None => BTreeMap::new(),
            Some(bytes) => parse(&bytes)?,
        };
        Ok(Self {
            disk,
            changes,
            is_outdated: false,
        })
    }

    /// Returns true if the disk may have another content, because it could not be written.
    pub fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    /// Returns the storage.
    pub fn disk(&mut self) -> &mut D {
        &mut self.disk
    }

    /// All changes, in the order of their targets.
    pub fn changes(&self) -> &BTreeMap<Target, Change> {
        &self.changes
    }

    /// Switches with a change.
    pub fn switches(&self) -> usize {
        let mut guids: Vec<Guid> = self.changes.keys().map(|target| target.switch).collect();
        guids.dedup();
        guids.len()
    }

    /// Remembers a change, before it is made. Errors: [`JournalError::Io`]; then the change must not be made.
    pub fn add(&mut self, target: Target, change: Change) -> Result<(), JournalError> {
        let before = self.changes.insert(target, change);
        let written = self.write();
        if written.is_err() {
            match before {
                Some(before) => self.changes.insert(target, before),
                None => self.changes.remove(&target),
            };
        }
        written
    }

    /// Forgets a restored change; after an error the disk keeps it until [`write`](Self::write) succeeds.
    pub fn remove(&mut self, target: Target) -> Result<(), JournalError> {
        self.changes.remove(&target);
        self.write()
    }

    /// Writes everything to the disk. Errors: [`JournalError::Io`]; then the disk has the old content or the new one.
    pub fn write(&mut self) -> Result<(), JournalError> {
        self.is_outdated = true;
        let content = emit(&self.changes);
        let disk = &mut self.disk;
        let written = disk
            .write(&content)
            .and_then(|()| disk.sync())
            .and_then(|()| disk.replace())
            .and_then(|()| disk.sync_folder());
        written.map_err(|error| JournalError::Io {
            what: "written",
            error,
        })?;
        self.is_outdated = false;
        Ok(())
    }
}

fn checksum(json: &[u8]) -> String {
    let digest = hmac_sha256::Hash::hash(json);
    let mut digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.truncate(CHECKSUM_LEN);
    digits
}

fn emit(changes: &BTreeMap<Target, Change>) -> Vec<u8> {
    let mut content = Vec::new();
    let mut put = |record: serde_json::Result<String>| {
        let json = record.unwrap_or_default();
        content.extend(format!("{} {json}\n", checksum(json.as_bytes())).into_bytes());
    };
    put(serde_json::to_string(&Header {
        version: VERSION,
        changes: changes.len(),
    }));
    for (target, change) in changes {
        put(serde_json::to_string(&Entry {
            switch: target.switch,
            port: target.port,
            before: change.before,
            after: change.after,
            rate: change.rate,
            since: change.since,
        }));
    }
    content
}

fn record<T: DeserializeOwned>(line: usize, bytes: &[u8]) -> Result<T, JournalError> {
    let damaged = |why: String| JournalError::Content { line, why };
    let (sum, json) = bytes
        .split_at_checked(CHECKSUM_LEN)
        .and_then(|(sum, rest)| Some((sum, rest.strip_prefix(b" ")?)))
        .ok_or_else(|| damaged("it has no checksum".to_owned()))?;
    if checksum(json).as_bytes() != sum {
        return Err(damaged("its checksum does not match".to_owned()));
    }
    serde_json::from_slice(json).map_err(|error| damaged(error.to_string()))
}

/// No crash leaves a part of the file: an incomplete one is damaged, and a missing change may be in force.
fn parse(bytes: &[u8]) -> Result<BTreeMap<Target, Change>, JournalError> {
    let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    // Without the final line end, the checksum of the last line decides.
    if lines.last().is_some_and(|rest| rest.is_empty()) {
        lines.pop();
    }
    let (first, entries) = lines.split_first().ok_or_else(|| JournalError::Content {
        line: 1,
        why: "it is not complete".to_owned(),
    })?;
    let Form { version } = record(1, first)?;
    if version != VERSION {
        return Err(JournalError::Version { found: version });
    }
    let header: Header = record(1, first)?;
    let mut changes = BTreeMap::new();
    for (line, bytes) in (2..).zip(entries) {
        let entry: Entry = record(line, bytes)?;
        let target = Target {
            switch: entry.switch,
            port: entry.port,
        };
        let change = Change {
            before: entry.before,
            after: entry.after,
            rate: entry.rate,
            since: entry.since,
        };
        changes.insert(target, change);
    }
    if entries.len() != header.changes {
        let why = format!(
            "{} changes are listed, of {}",
            entries.len(),
            header.changes
        );
        let line = lines.len() + 1;
        return Err(JournalError::Content { line, why });
    }
    Ok(changes)
}
