//! What has been changed and must be restored, remembered across crashes and power loss.
//!
//! The journal is one small file that is replaced as a whole: a new file is written and synced, takes
//! the old one's place, and the folder is synced. So at any moment the old or the new content is
//! there, and an entry is on the disk before its change is made.

mod folder;

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use silvan_mad::Bits;
use silvan_mad::congestion::SwitchPortCongestionElement;
use silvan_units::Guid;
use thiserror::Error;

pub use folder::{StateError, StateFolder};

/// The form of the file.
const VERSION: u32 = 1;

/// What a change is made at: a port, or a switch as a whole.
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
    /// Whether the port has a setting of its own.
    pub valid: bool,
    /// Threshold, 0 to 15; 0 never marks.
    pub threshold: u8,
    /// Packet_Size, in units of 64 bytes.
    pub packet_size: u8,
    /// Marking_Rate, in packets.
    pub marking_rate: u16,
}

impl Setting {
    /// The setting in an element of SwitchPortCongestionSetting; `None` if that controls credit
    /// starvation, which has no Marking_Rate.
    pub fn of(element: &SwitchPortCongestionElement) -> Option<Self> {
        (!element.credit_starvation).then(|| Self {
            valid: element.valid,
            threshold: element.threshold.get() as u8,
            packet_size: element.packet_size,
            marking_rate: element.marking_rate,
        })
    }

    /// The same for the wire.
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
    /// What was there.
    pub before: Setting,
    /// What has been set.
    pub after: Setting,
    /// The Marking_Rate that was in force, be it the port's or the switch's.
    pub rate: u16,
}

/// Where the journal is kept. Each function is a step after which the machine may stop.
pub trait Disk {
    /// The journal's content; `None` if there is none.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    fn read(&mut self) -> io::Result<Option<Vec<u8>>>;

    /// Writes new content beside the old.
    ///
    /// # Errors
    ///
    /// If it cannot be written; so for the others.
    fn write(&mut self, content: &[u8]) -> io::Result<()>;

    /// Makes sure that the new content is on the disk.
    fn sync(&mut self) -> io::Result<()>;

    /// Puts the new content in the place of the old.
    fn replace(&mut self) -> io::Result<()>;

    /// Makes sure that it stays there.
    fn sync_folder(&mut self) -> io::Result<()>;
}

/// A journal that cannot be kept, so that nothing may be changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// It cannot be read or written.
    #[error("the journal cannot be {what}: {error}")]
    Io {
        /// Read or written.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
    /// Its content is not a journal.
    #[error("the journal cannot be understood: {0}")]
    Content(String),
}

/// The file's content.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    version: u32,
    changes: Vec<Entry>,
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
}

/// All changes that are in force, or may be.
pub struct Journal<D> {
    disk: D,
    changes: BTreeMap<Target, Change>,
}

impl<D: Disk> Journal<D> {
    /// Reads the journal that an earlier run has left.
    ///
    /// # Errors
    ///
    /// [`JournalError`]; then nothing may be changed, since something may have to be restored.
    pub fn open(mut disk: D) -> Result<Self, JournalError> {
        let content = disk.read().map_err(|error| JournalError::Io {
            what: "read",
            error,
        })?;
        let changes = match content {
            None => BTreeMap::new(),
            Some(bytes) => parse(&bytes)?,
        };
        Ok(Self { disk, changes })
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

    /// Remembers a change, before it is made.
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`]; then the change must not be made.
    pub fn add(&mut self, target: Target, change: Change) -> Result<(), JournalError> {
        let mut changes = self.changes.clone();
        changes.insert(target, change);
        self.store(changes)
    }

    /// Forgets a change, after it was restored.
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`]; then it stays remembered.
    pub fn remove(&mut self, target: Target) -> Result<(), JournalError> {
        let mut changes = self.changes.clone();
        changes.remove(&target);
        self.store(changes)
    }

    fn store(&mut self, changes: BTreeMap<Target, Change>) -> Result<(), JournalError> {
        let content = emit(&changes)?;
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
        self.changes = changes;
        Ok(())
    }
}

fn emit(changes: &BTreeMap<Target, Change>) -> Result<Vec<u8>, JournalError> {
    let entries = changes.iter().map(|(target, change)| Entry {
        switch: target.switch,
        port: target.port,
        before: change.before,
        after: change.after,
        rate: change.rate,
    });
    let file = File {
        version: VERSION,
        changes: entries.collect(),
    };
    serde_json::to_vec_pretty(&file).map_err(|error| JournalError::Content(error.to_string()))
}

fn parse(bytes: &[u8]) -> Result<BTreeMap<Target, Change>, JournalError> {
    let file: File =
        serde_json::from_slice(bytes).map_err(|error| JournalError::Content(error.to_string()))?;
    if file.version != VERSION {
        let message = format!("version {}, this silvan knows {VERSION}", file.version);
        return Err(JournalError::Content(message));
    }
    let entries = file.changes.into_iter().map(|entry| {
        let target = Target {
            switch: entry.switch,
            port: entry.port,
        };
        let change = Change {
            before: entry.before,
            after: entry.after,
            rate: entry.rate,
        };
        (target, change)
    });
    Ok(entries.collect())
}
