//! The clock of programs, in a file that they map: eight 64-bit words in the byte order of the machine.
//!
//! ```text
//! 0  sequence number, odd during a change
//! 1  CLOCK_REALTIME when simulated time was 0, in ns
//! 2  CLOCK_MONOTONIC when simulated time was 0, in ns
//! 3  simulated time, in ps
//! 4  CLOCK_MONOTONIC at that time, in ns
//! 5  simulated ps in 1024 ns from then on
//! 6  end of the advance, in ps
//! 7  frequency of the time-stamp counter, in kHz
//! ```

use std::fs;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use silvan_core::{Span, Time};

const WORDS: usize = 8;
const PS_PER_NS: f64 = 1024.0 * 1000.0;
/// An unchanged clock is written again after this time, so that programs notice the end of the server.
const HEARTBEAT_NS: u64 = 500_000_000;
const USUAL_KHZ: u64 = 1_000_000;

/// Simulated time as programs see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Course {
    Stopped(Time),
    /// From this time on at this scale, for this wall time.
    Runs(Time, f64, Duration),
}

#[derive(Debug)]
pub(super) struct Clock {
    file: OwnedFd,
    sequence: u64,
    origins: [u64; 2],
    khz: u64,
    last: Option<(Course, u64)>,
    /// Latest time that programs may have read before the last change.
    latest: Time,
}

fn monotonic_ns() -> u64 {
    let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    uptime.tv_sec as u64 * 1_000_000_000 + uptime.tv_nsec as u64
}

impl Clock {
    pub fn new(simulated: Time) -> Result<Self, Errno> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("silvan-clock", flags)?;
        rustix::fs::ftruncate(&file, (WORDS * size_of::<u64>()) as u64)?;
        // A client that shrinks the file would end others by SIGBUS.
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let real = now.unwrap_or_default().as_nanos() as u64;
        let started = simulated.as_ps() / 1000;
        Ok(Self {
            file,
            sequence: 0,
            origins: [real, monotonic_ns()].map(|ns| ns.wrapping_sub(started)),
            khz: frequency(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            last: None,
            latest: simulated,
        })
    }

    /// Returns the file for a program, which cannot write it.
    pub fn file(&self) -> Result<OwnedFd, Errno> {
        let path = format!(
            "/proc/self/fd/{}",
            rustix::fd::AsRawFd::as_raw_fd(&self.file)
        );
        rustix::fs::open(
            path,
            rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )
    }

    /// Latest time that a program may have read until now.
    pub fn latest(&self) -> Time {
        self.shown(monotonic_ns())
    }

    fn shown(&self, now: u64) -> Time {
        let shown = match self.last {
            None => Time::ZERO,
            Some((Course::Stopped(time), _)) => time,
            Some((Course::Runs(time, scale, wall), at)) => {
                let passed = Duration::from_nanos(now.saturating_sub(at)).min(wall);
                time.saturating_add(Span::from_ps((passed.as_secs_f64() * scale * 1e12) as u64))
            }
        };
        self.latest.max(shown)
    }

    pub fn show(&mut self, course: Course) {
        let now = monotonic_ns();
        if let Some((last, at)) = self.last {
            let is_same = last == course && matches!(course, Course::Stopped(_));
            if is_same && now.wrapping_sub(at) < HEARTBEAT_NS {
                return;
            }
        }
        self.latest = self.shown(now);
        self.last = Some((course, now));
        let (from, rate, end) = match course {
            Course::Stopped(time) => (time, 0, time),
            Course::Runs(time, scale, wall) => {
                let span = Span::from_ps((wall.as_secs_f64() * scale * 1e12) as u64);
                (time, (scale * PS_PER_NS) as u64, time.saturating_add(span))
            }
        };
        self.sequence += 2;
        let words = [
            self.sequence,
            self.origins[0],
            self.origins[1],
            from.as_ps(),
            now,
            rate,
            end.as_ps(),
            self.khz,
        ];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        // Each call is done before the next begins.
        let _ = rustix::io::pwrite(&self.file, &(self.sequence - 1).to_ne_bytes(), 0);
        let _ = rustix::io::pwrite(&self.file, &bytes[8..], 8);
        let _ = rustix::io::pwrite(&self.file, &bytes[..8], 0);
    }
}

/// The frequency that the text of `/proc/cpuinfo` names, in kHz.
fn frequency(text: &str) -> u64 {
    let value = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim())
    };
    let nominal = value("model name").and_then(|name| {
        let ghz: f64 = name.split_once("@ ")?.1.strip_suffix("GHz")?.parse().ok()?;
        Some(ghz * 1e6)
    });
    let actual = value("cpu MHz").and_then(|mhz| Some(mhz.parse::<f64>().ok()? * 1e3));
    let khz = nominal
        .or(actual)
        .map_or(USUAL_KHZ, |khz| khz.round() as u64);
    if khz == 0 { USUAL_KHZ } else { khz }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nominal_frequency_comes_before_the_actual() {
        let text = "processor\t: 0\nmodel name\t: Xeon(R) CPU @ 2.10GHz\ncpu MHz\t\t: 1800.123\n";
        assert_eq!(frequency(text), 2_100_000);
        assert_eq!(
            frequency("model name\t: Xeon\ncpu MHz\t\t: 1800.123\n"),
            1_800_123
        );
        assert_eq!(frequency("BogoMIPS\t: 50.00\n"), USUAL_KHZ);
    }

    #[test]
    fn a_program_reads_what_is_shown() {
        let mut clock = Clock::new(Time::ZERO).expect("a file in memory");
        clock.show(Course::Runs(
            Time::from_ps(5000),
            0.5,
            Duration::from_nanos(2000),
        ));
        let file = clock.file().expect("a file for a program");
        let mut bytes = [0; 64];
        rustix::io::pread(&file, &mut bytes[..], 0).expect("the file can be read");
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[8 * at + byte]));
        assert_eq!(
            (word(0), word(3), word(5), word(6)),
            (2, 5000, 512_000, 1_005_000)
        );
        assert!(rustix::io::pwrite(&file, &[0], 0).is_err());
    }
}
