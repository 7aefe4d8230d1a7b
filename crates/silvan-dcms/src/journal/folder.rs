use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use thiserror::Error;

use super::Disk;

const JOURNAL: &str = "journal";
const NEW_JOURNAL: &str = "journal.new";
const LOCK: &str = "lock";
const STATUS: &str = "status";
const NEW_STATUS: &str = "status.new";
/// Entries for all ports that a subnet can have.
const LONGEST: u64 = 1 << 30;

/// `silvan dcms --status` holds the lock for an instant.
const LOCK_TRIES: u32 = 50;
const LOCK_NAP: Duration = Duration::from_millis(20);

/// A folder that cannot hold the journal.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StateError {
    /// The folder cannot be made or opened.
    #[error("the state folder {folder} cannot be used: {error}")]
    Io {
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Somebody else could change what is in it.
    #[error("the state folder {folder} {what}")]
    Shared {
        /// The folder.
        folder: PathBuf,
        /// Whose it is, or who may write.
        what: &'static str,
    },
    /// Another instance runs.
    #[error("another silvan dcms runs with the state folder {folder}")]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// Another instance holds the lease and renews it.
    #[error(
        "another silvan dcms is in charge of the state folder {folder} and renews its lease ({holder})"
    )]
    OtherInCharge {
        /// The folder.
        folder: PathBuf,
        /// Name that the other instance has written.
        holder: String,
    },
}

impl StateError {
    /// Returns the hint.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => {
                "give a folder that this user may write to as state, e.g. /var/lib/silvan-dcms"
            }
            Self::Shared { .. } => "make it with mode 0700, owned by the user who runs silvan dcms",
            Self::OtherInCharge { .. } => {
                "stop the other one first; it restores what it has changed"
            }
            Self::InUse { .. } => {
                "stop the other one first, or set state.lease in the configurations of both, so that one waits"
            }
        }
    }
}

/// Says whether this instance is in charge now.
pub type InCharge = Arc<dyn Fn() -> bool + Send + Sync>;

/// The folder, locked until this is dropped.
pub struct StateFolder {
    path: PathBuf,
    folder: File,
    new: Option<File>,
    in_charge: Option<InCharge>,
    _lock: File,
}

impl StateFolder {
    /// Makes and locks the folder; with a lease, only against instances without one.
    pub fn open(path: &Path, in_charge: Option<InCharge>) -> Result<Self, StateError> {
        let failed = |error| StateError::Io {
            folder: path.to_owned(),
            error,
        };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(failed)?;
        let folder = File::open(path).map_err(failed)?;
        let metadata = folder.metadata().map_err(failed)?;
        let shared = |what| StateError::Shared {
            folder: path.to_owned(),
            what,
        };
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(shared("belongs to another user"));
        }
        if metadata.mode() & 0o077 != 0 {
            return Err(shared("can be entered by others"));
        }
        let lock = options().truncate(false).open(path.join(LOCK));
        let mut lock = lock.map_err(failed)?;
        let kind = match in_charge {
            Some(_) => FlockOperation::NonBlockingLockShared,
            None => FlockOperation::NonBlockingLockExclusive,
        };
        let mut tries = 1;
        loop {
            match flock(&lock, kind) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK) if tries < LOCK_TRIES => {
                    tries += 1;
                    std::thread::sleep(LOCK_NAP);
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(StateError::InUse {
                        folder: path.to_owned(),
                    });
                }
                Err(error) => return Err(failed(error.into())),
            }
        }
        // The content is for people; the kernel holds the lock.
        let _ = lock.set_len(0);
        let _ = writeln!(lock, "{}", std::process::id());
        Ok(Self {
            path: path.to_owned(),
            folder,
            new: None,
            in_charge,
            _lock: lock,
        })
    }

    fn check(&self) -> io::Result<()> {
        match &self.in_charge {
            Some(is_in_charge) if !is_in_charge() => {
                Err(io::Error::other("the lease of the state folder is lost"))
            }
            _ => Ok(()),
        }
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

impl Disk for StateFolder {
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(self.path.join(JOURNAL));
        let file = match file {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut content = Vec::new();
        file.take(LONGEST).read_to_end(&mut content)?;
        Ok(Some(content))
    }

    fn write(&mut self, content: &[u8]) -> io::Result<()> {
        self.check()?;
        let mut file = options().truncate(true).open(self.path.join(NEW_JOURNAL))?;
        file.write_all(content)?;
        self.new = Some(file);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.new.take().map_or(Ok(()), |file| file.sync_all())
    }

    fn replace(&mut self) -> io::Result<()> {
        self.check()?;
        std::fs::rename(self.path.join(NEW_JOURNAL), self.path.join(JOURNAL))
    }

    fn sync_folder(&mut self) -> io::Result<()> {
        self.folder.sync_all()
    }

    fn publish(&mut self, status: &[u8]) -> io::Result<()> {
        self.check()?;
        let mut file = options().truncate(true).open(self.path.join(NEW_STATUS))?;
        file.write_all(status)?;
        std::fs::rename(self.path.join(NEW_STATUS), self.path.join(STATUS))
    }
}
