//! The CC_Key, which is kept secret.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use thiserror::Error;

const LONGEST: u64 = 4096;

/// A CC_Key (annex A10.4.2). It is written nowhere: not in logs, not in metrics, not in `Debug`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CcKey(u64);

/// A CC_Key that cannot be used. No message holds the file's content.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read.
    #[error("the key file {path} cannot be read: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Others could read or replace it.
    #[error("the key file {path} {what}")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Whose it is, or who may read it.
        what: &'static str,
    },
    /// The file holds no key.
    #[error("the key file {path} holds no CC_Key")]
    Content {
        /// The file.
        path: PathBuf,
    },
}

impl KeyError {
    /// Returns the hint.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => "name a file that the user who runs silvan dcms owns",
            Self::Exposed { .. } => "chown it to the user who runs silvan dcms, and chmod 600",
            Self::Content { .. } => "write one number of at most 64 bits, e.g. 0x0123456789abcdef",
        }
    }
}

impl CcKey {
    /// Reads the key from a file that only its owner, the user of this process, can read. Errors: [`KeyError`].
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let failed = |error| KeyError::Io {
            path: path.to_owned(),
            error,
        };
        // A FIFO must not make the start wait.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags.bits() as i32);
        let file = options.open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let exposed = |what| KeyError::Exposed {
            path: path.to_owned(),
            what,
        };
        if !metadata.is_file() {
            return Err(exposed("is not a file"));
        }
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(exposed("belongs to another user"));
        }
        if metadata.mode() & 0o077 != 0 {
            return Err(exposed("can be used by others than its owner"));
        }
        let mut text = String::new();
        let content = || KeyError::Content {
            path: path.to_owned(),
        };
        let read = file.take(LONGEST).read_to_string(&mut text);
        read.map_err(|_| content())?;
        let text = text.trim();
        let key = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        key.map(Self).map_err(|_| content())
    }

    /// The key for a datagram.
    pub fn reveal(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for CcKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CcKey(hidden)")
    }
}
