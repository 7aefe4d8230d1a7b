//! The clock of a fabric that follows programs (`SIM_TIME=auto`): libc's clocks and the time-stamp counter show simulated
//! time, which stands still while programs work. Kernel timeouts pass in real time, which is never slower.
//!
//! The server's file has eight words, see `silvan-emulator`. The functions here use no clock of the standard library,
//! which would come back to them.

pub(crate) mod counter;

use std::ffi::{c_int, c_void};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering, fence};

use libc::{clockid_t, timespec};

use crate::{fabric, real};

const LENGTH: usize = 64;
const PS_PER_NS: u64 = 1000;
const NS_PER_S: u64 = 1_000_000_000;
/// The server writes more often while it lives.
const SILENCE_NS: u64 = 5 * NS_PER_S;

static WORDS: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
static LATEST: AtomicU64 = AtomicU64::new(0);
const UNKNOWN: u8 = 0;
const ATTACHING: u8 = 1;
const REAL: u8 = 2;
const SIMULATED: u8 = 3;

pub(crate) fn is_simulated() -> bool {
    match STATE.load(Ordering::Acquire) {
        SIMULATED => true,
        UNKNOWN => attach(),
        _ => false,
    }
}

fn attach() -> bool {
    let begun = STATE.compare_exchange(UNKNOWN, ATTACHING, Ordering::AcqRel, Ordering::Acquire);
    if begun.is_err() {
        return STATE.load(Ordering::Acquire) == SIMULATED;
    }
    let wanted = std::env::var_os("SIM_TIME").is_some_and(|time| time == "auto");
    let answer = wanted.then(|| fabric::ask(fabric::OPEN_CLOCK, &[]));
    let file = answer.and_then(|answer| answer.ok()?.file);
    let state = if file.is_some_and(map) {
        SIMULATED
    } else {
        REAL
    };
    STATE.store(state, Ordering::Release);
    state == SIMULATED
}

fn map(file: OwnedFd) -> bool {
    let fd = file.into_raw_fd();
    // SAFETY: the file has this length, and its mapping stays.
    unsafe {
        let flags = libc::MAP_SHARED;
        let at = libc::mmap(std::ptr::null_mut(), LENGTH, libc::PROT_READ, flags, fd, 0);
        fabric::close(fd);
        if at == libc::MAP_FAILED {
            return false;
        }
        WORDS.store(at.cast(), Ordering::Release);
    }
    true
}

/// The kernel's clock, by a system call: the usual way reads the time-stamp counter.
fn kernel_ns(clock: clockid_t) -> u64 {
    let mut now = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: room for the answer.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &raw mut now) };
    now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64
}

pub(crate) fn process_ns() -> u64 {
    kernel_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

pub(crate) fn thread_ns() -> u64 {
    kernel_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read() -> [u64; 8] {
    let words = WORDS.load(Ordering::Acquire);
    // SAFETY: the mapping has so many words.
    let word = |at: usize| unsafe { &*words.add(at) };
    loop {
        let before = word(0).load(Ordering::Acquire);
        let copy = std::array::from_fn(|at| word(at).load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        if before % 2 == 0 && word(0).load(Ordering::Relaxed) == before {
            return copy;
        }
        std::hint::spin_loop();
    }
}

/// Simulated time in ps; 0 without such a clock.
pub(crate) fn now_ps() -> u64 {
    if !is_simulated() {
        return 0;
    }
    let [_, _, _, from, at, rate, end, _] = read();
    let passed = kernel_ns(libc::CLOCK_MONOTONIC).saturating_sub(at);
    let now = match passed.checked_sub(SILENCE_NS) {
        None if rate == 0 => from,
        None => from
            .saturating_add((u128::from(passed) * u128::from(rate) / 1024) as u64)
            .min(end),
        Some(silent) => end.saturating_add(silent.saturating_mul(PS_PER_NS)),
    };
    LATEST.fetch_max(now, Ordering::AcqRel).max(now)
}

/// Returns true if simulated time passes by itself, because no program has anything in the fabric.
pub(crate) fn runs() -> bool {
    read()[5] > 0
}

/// Nanoseconds that a clock shows; `None` for one that shows no simulated time.
fn shown_ns(clock: clockid_t) -> Option<u64> {
    let origin = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => 1,
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME => 2,
        _ => return None,
    };
    let now = now_ps() / PS_PER_NS;
    Some(read()[origin].wrapping_add(now))
}

fn as_timespec(ns: u64) -> timespec {
    timespec {
        tv_sec: (ns / NS_PER_S) as libc::time_t,
        tv_nsec: (ns % NS_PER_S) as _,
    }
}

/// `clock_gettime` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: the caller keeps the contract of libc's function.
    unsafe {
        if !is_simulated() {
            return (real::clock_gettime())(clock, time);
        }
        match shown_ns(clock) {
            Some(ns) => {
                time.write(as_timespec(ns));
                0
            }
            None => libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int,
        }
    }
}

/// `gettimeofday` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut libc::timeval, zone: *mut c_void) -> c_int {
    // SAFETY: the caller keeps the contract of libc's function.
    unsafe {
        let simulated = is_simulated()
            .then(|| shown_ns(libc::CLOCK_REALTIME))
            .flatten();
        let Some(ns) = simulated.filter(|_| !time.is_null()) else {
            return (real::gettimeofday())(time, zone);
        };
        time.write(libc::timeval {
            tv_sec: (ns / NS_PER_S) as libc::time_t,
            tv_usec: (ns % NS_PER_S / 1000) as _,
        });
        0
    }
}

/// `time` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(place: *mut libc::time_t) -> libc::time_t {
    // SAFETY: the caller keeps the contract of libc's function.
    unsafe {
        let simulated = is_simulated()
            .then(|| shown_ns(libc::CLOCK_REALTIME))
            .flatten();
        let Some(ns) = simulated else {
            return (real::time())(place);
        };
        let seconds = (ns / NS_PER_S) as libc::time_t;
        if !place.is_null() {
            place.write(seconds);
        }
        seconds
    }
}

/// The kernel's instant of a deadline that a program has computed from simulated time.
unsafe fn deadline(clock: clockid_t, at: *const timespec) -> Option<timespec> {
    if at.is_null() || !is_simulated() {
        return None;
    }
    let shown = shown_ns(clock)?;
    // SAFETY: the caller's time is valid.
    let at = unsafe { &*at };
    let at = (at.tv_sec as u64)
        .saturating_mul(NS_PER_S)
        .saturating_add(at.tv_nsec as u64);
    let left = at.saturating_sub(shown);
    Some(as_timespec(kernel_ns(clock).saturating_add(left)))
}

macro_rules! waiting {
    ($($name:ident($($before:ident: $type:ty,)*) $(until $clock:ident)?;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of libc.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($before: $type,)* at: *const timespec) -> c_int {
            #[allow(unused_mut, unused_assignments, reason = "forms with a clock")]
            let mut clock = libc::CLOCK_REALTIME;
            $(clock = $clock;)?
            // SAFETY: the caller keeps the contract of libc's function.
            unsafe {
                let changed = deadline(clock, at);
                let at = changed.as_ref().map_or(at, std::ptr::from_ref);
                (real::$name())($($before,)* at)
            }
        }
    )*};
}

waiting! {
    pthread_cond_timedwait(condition: *mut c_void, mutex: *mut c_void,);
    pthread_cond_clockwait(condition: *mut c_void, mutex: *mut c_void, which: clockid_t,) until which;
    pthread_mutex_timedlock(mutex: *mut c_void,);
    sem_timedwait(semaphore: *mut c_void,);
    sem_clockwait(semaphore: *mut c_void, which: clockid_t,) until which;
}

/// `clock_nanosleep` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    at: *const timespec,
    left: *mut timespec,
) -> c_int {
    // SAFETY: the caller keeps the contract of libc's function.
    unsafe {
        let changed = match flags & libc::TIMER_ABSTIME {
            0 => None,
            _ => deadline(clock, at),
        };
        let at = changed.as_ref().map_or(at, std::ptr::from_ref);
        (real::clock_nanosleep())(clock, flags, at, left)
    }
}

/// The text of `/proc/cpuinfo` with the frequency of the counter that programs see.
pub(crate) fn cpu_information() -> Option<Vec<u8>> {
    if !is_simulated() {
        return None;
    }
    let path = c"/proc/cpuinfo";
    let mut text = Vec::new();
    // SAFETY: the path ends with a zero, and the buffer has the length given.
    unsafe {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let fd = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) as c_int;
        if fd < 0 {
            return None;
        }
        let mut part = [0_u8; 4096];
        loop {
            let read = (real::read())(fd, part.as_mut_ptr().cast(), part.len());
            match usize::try_from(read)
                .ok()
                .and_then(|length| part.get(..length))
            {
                None | Some([]) => break,
                Some(part) => text.extend(part),
            }
        }
        fabric::close(fd);
    }
    let mhz = read()[7] as f64 / 1000.0;
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().map(|line| match line.split_once(':') {
        Some((key, _)) if key.trim() == "cpu MHz" => format!("{key}: {mhz:.3}\n"),
        _ => format!("{line}\n"),
    });
    Some(lines.collect::<String>().into_bytes())
}
