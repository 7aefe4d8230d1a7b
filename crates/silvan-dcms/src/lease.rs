//! A lease on a shared state folder: at most one machine is in charge.
//!
//! The highest `lease.N` counts. Its creator holds the term and writes a growing count; a candidate that sees it
//! unchanged for the lease's length creates the next file, which fails if it exists. The holder relies on half of the
//! length from before each write, by its own clock; no two clocks are compared.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use silvan_core::{MonotonicTime, Span};

const PREFIX: &str = "lease.";
const FREE: &str = "free";
const LONGEST: u64 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Term {
    number: u64,
    count: u64,
    until: MonotonicTime,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    number: u64,
    content: String,
    since: MonotonicTime,
}

/// A candidate for the lease.
#[derive(Debug)]
pub struct Lease {
    folder: PathBuf,
    length: Span,
    name: String,
    term: Option<Term>,
    seen: Option<Seen>,
    live_holder: Option<String>,
}

impl Lease {
    /// A candidate that holds nothing yet. Its name differs from all others.
    pub fn new(folder: &Path, length: Span, name: String) -> Self {
        Self {
            folder: folder.to_owned(),
            length,
            name,
            term: None,
            seen: None,
            live_holder: None,
        }
    }

    /// Another candidate that renewed or began a term since this one started to wait.
    pub fn live_holder(&self) -> Option<&str> {
        self.live_holder.as_deref()
    }

    /// The number of the term that was held last.
    pub fn term(&self) -> Option<u64> {
        self.term.map(|term| term.number)
    }

    /// Returns the end of the time for which the term is reliable; `None` without a term.
    pub fn until(&self) -> Option<MonotonicTime> {
        self.term.map(|term| term.until)
    }

    /// Takes over an ended term; returns true if it did. The process may stop between any two steps.
    pub fn try_take(&mut self, mut clock: impl FnMut() -> MonotonicTime) -> io::Result<bool> {
        let now = clock();
        let Some(number) = self.highest()? else {
            return self.take(1, now);
        };
        let Some(content) = self.read(number)? else {
            return Ok(false);
        };
        if content.trim_end() == FREE {
            self.live_holder = None;
            return self.take(number + 1, now);
        }
        let is_known = |seen: &&Seen| seen.number == number && seen.content == content;
        // If the clock has gone back, the age is unknown.
        let age = self
            .seen
            .as_ref()
            .filter(is_known)
            .and_then(|seen| now.checked_since(seen.since));
        match age {
            Some(age) if age >= self.length => self.take(number + 1, now),
            Some(_) => Ok(false),
            None => {
                let is_other = |seen: &Seen| seen.number != number || seen.content != content;
                if self.seen.as_ref().is_some_and(is_other) {
                    let name = content.rsplit_once(' ').map_or("", |(name, _)| name);
                    self.live_holder = Some(name.to_owned());
                }
                self.seen = Some(Seen {
                    number,
                    content,
                    since: clock(),
                });
                Ok(false)
            }
        }
    }

    fn take(&mut self, number: u64, now: MonotonicTime) -> io::Result<bool> {
        self.seen = None;
        self.live_holder = None;
        let path = self.path(number);
        let mut file = match options().create_new(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(error),
        };
        file.write_all(self.content(0).as_bytes())?;
        file.sync_all()?;
        // A candidate that was stopped here may come too late.
        if self.highest()? != Some(number) {
            return Ok(false);
        }
        self.term = Some(Term {
            number,
            count: 0,
            until: now.saturating_add(half(self.length)),
        });
        for old in self.numbers()? {
            if old < number {
                // A file that cannot be removed does not count.
                let _ = fs::remove_file(self.path(old));
            }
        }
        Ok(true)
    }

    /// Renews the term, read before the call as `now`; once lost, always false.
    pub fn renew(&mut self, now: MonotonicTime) -> bool {
        let Some(term) = self.term.filter(|term| now < term.until) else {
            self.term = None;
            return false;
        };
        let count = term.count + 1;
        match self.write(term.number, &self.content(count)) {
            Ok(()) => {}
            Err(error) if error.kind() != io::ErrorKind::NotFound => return true,
            Err(_) => {
                self.term = None;
                return false;
            }
        }
        match self.highest() {
            Ok(highest) if highest == Some(term.number) => {
                self.term = Some(Term {
                    count,
                    until: now.saturating_add(half(self.length)),
                    ..term
                });
                true
            }
            Ok(_) => {
                self.term = None;
                false
            }
            Err(_) => true,
        }
    }

    /// Ends the term, so that another may begin at once.
    pub fn release(&mut self, now: MonotonicTime) {
        if let Some(term) = self.term.take().filter(|term| now < term.until) {
            // If this fails, other instances wait for the end of the term.
            let width = self.content(0).len() - 1;
            let _ = self.write(term.number, &format!("{FREE:<width$}\n"));
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{PREFIX}{number}"))
    }

    fn content(&self, count: u64) -> String {
        format!("{} {count:020}\n", self.name)
    }

    fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let digits = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            numbers.extend(digits.and_then(|digits| digits.parse::<u64>().ok()));
        }
        Ok(numbers)
    }

    fn highest(&self) -> io::Result<Option<u64>> {
        Ok(self.numbers()?.into_iter().max())
    }

    fn read(&self, number: u64) -> io::Result<Option<String>> {
        let file = match File::open(self.path(number)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut content = String::new();
        file.take(LONGEST).read_to_string(&mut content)?;
        Ok(Some(content))
    }

    fn write(&self, number: u64, content: &str) -> io::Result<()> {
        let mut file = options().open(self.path(number))?;
        file.write_all(content.as_bytes())?;
        // A shared file system then has the file on its server.
        file.sync_all()
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

fn half(length: Span) -> Span {
    Span::from_ps(length.as_ps() / 2)
}
