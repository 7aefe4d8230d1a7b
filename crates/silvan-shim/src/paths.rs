use std::ffi::{CStr, CString, OsString, c_char, c_int};
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use crate::{clock, fabric};

const CLASS: &[u8] = b"/sys/class/";
const CPU_INFORMATION: &CStr = c"/proc/cpuinfo";
pub(crate) const CONNECTIONS_MINOR: u32 = 255;
const DEVICES: &[u8] = b"/dev/infiniband";

pub(crate) enum Location {
    Mad(u8),
    IsSm(u8),
    Verbs(u8),
    /// `rdma_cm`.
    Connections,
    /// A file or folder of sysfs: its path below `/sys/class`, and its substitute.
    Class {
        name: Vec<u8>,
        real: CString,
    },
    /// `/proc/cpuinfo`, which states the frequency of the time-stamp counter.
    CpuInformation,
    Other {
        real: CString,
    },
}

static ROOT: AtomicPtr<Vec<u8>> = AtomicPtr::new(std::ptr::null_mut());

const FOLDER: &[u8] = b"/silvan-fabric-";
static CURRENT: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const ELSEWHERE: u8 = 1;

fn known_root() -> Option<&'static [u8]> {
    // SAFETY: the pointer is null, or to a folder's name that is never freed.
    let root = unsafe { ROOT.load(Ordering::Acquire).as_ref() };
    root.map(Vec::as_slice)
}

/// The folder, asked again when it is gone: a fabric that ended and came back has another one.
fn root() -> Result<&'static [u8], c_int> {
    if let Some(root) = known_root().filter(|root| exists(root)) {
        return Ok(root);
    }
    // Other threads may use the old name, so it is never freed.
    let root = Box::leak(Box::new(fabric::tree()?));
    ROOT.store(root, Ordering::Release);
    Ok(root)
}

/// Checks the existence by a direct system call, because this library replaces the functions of libc.
fn exists(path: &[u8]) -> bool {
    let Ok(path) = CString::new(path) else {
        return false;
    };
    // SAFETY: the path ends with a zero.
    let done = unsafe {
        libc::syscall(
            libc::SYS_faccessat,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::F_OK,
        )
    };
    done == 0
}

fn below_root(name: &[u8]) -> Option<CString> {
    let mut path = root().ok()?.to_vec();
    path.extend(name);
    CString::new(path).ok()
}

/// The substitute of a folder.
pub(crate) fn folder(name: &[u8]) -> Option<CString> {
    below_root(name)
}

impl Location {
    pub fn real(&self) -> CString {
        let device = |name: String| below_root(name.as_bytes()).unwrap_or_default();
        match self {
            Self::Mad(number) => device(format!("/dev/infiniband/umad{number}")),
            Self::IsSm(number) => device(format!("/dev/infiniband/issm{number}")),
            Self::Verbs(number) => device(format!("/dev/infiniband/uverbs{number}")),
            Self::Connections => device("/dev/infiniband/rdma_cm".to_owned()),
            Self::Class { real, .. } | Self::Other { real } => real.clone(),
            Self::CpuInformation => CPU_INFORMATION.to_owned(),
        }
    }

    pub fn minor(&self) -> Option<u32> {
        match self {
            Self::Mad(number) => Some(u32::from(*number)),
            Self::IsSm(number) => Some(64 + u32::from(*number)),
            Self::Verbs(number) => Some(192 + u32::from(*number)),
            Self::Connections => Some(CONNECTIONS_MINOR),
            Self::Class { .. } | Self::Other { .. } | Self::CpuInformation => None,
        }
    }
}

pub(crate) fn is_attached() -> bool {
    root().is_ok()
}

/// Returns the location of a program's path; `None` outside the fabric or without a fabric.
///
/// # Safety
/// The path is null or ends with a zero.
pub(crate) unsafe fn locate(path: *const c_char) -> Option<Location> {
    if path.is_null() {
        return None;
    }
    // SAFETY: as above.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if path == CPU_INFORMATION.to_bytes() && clock::is_simulated() {
        return Some(Location::CpuInformation);
    }
    // Nearly all paths of a program end here.
    let is_ours = |path: &[u8]| path.starts_with(b"/sys/") || path.starts_with(b"/dev/");
    match known_root() {
        Some(root) if path.starts_with(root) => of_bytes(&path[root.len()..]),
        _ if is_ours(path) => of_bytes(path),
        _ if !path.starts_with(b"/") => below_current(path),
        _ => None,
    }
}

pub(crate) fn mark_current_stale() {
    CURRENT.store(UNKNOWN, Ordering::Relaxed);
}

pub(crate) fn current() -> Option<Vec<u8>> {
    if CURRENT.load(Ordering::Relaxed) == ELSEWHERE {
        return None;
    }
    let folder = std::fs::read_link("/proc/self/cwd").ok()?;
    let folder = OsString::from(folder).into_vec();
    // The server is queried only if this may be its folder.
    let may_be = folder
        .windows(FOLDER.len())
        .any(|part| part == FOLDER)
        .then(root)
        .and_then(Result::ok);
    let name = may_be.and_then(|root| folder.strip_prefix(root));
    if name.is_none() {
        CURRENT.store(ELSEWHERE, Ordering::Relaxed);
    }
    name.map(<[u8]>::to_vec)
}

fn below_current(path: &[u8]) -> Option<Location> {
    let mut whole = current()?;
    let path = match path {
        b"." => b"",
        path => path.strip_prefix(b"./").unwrap_or(path),
    };
    if !path.is_empty() {
        whole.push(b'/');
        whole.extend(path);
    }
    of_bytes(&whole)
}

/// Returns the location of a path below an open folder.
///
/// # Safety
/// The path is null or ends with a zero.
pub(crate) unsafe fn at(folder: c_int, path: *const c_char) -> Option<Location> {
    // SAFETY: as above.
    unsafe {
        if folder == libc::AT_FDCWD || path.is_null() || *path == b'/' as c_char {
            return locate(path);
        }
        let root = known_root()?;
        let link = std::fs::read_link(format!("/proc/self/fd/{folder}")).ok()?;
        let mut whole = OsString::from(link).into_vec();
        let name = whole.strip_prefix(root)?;
        let start = whole.len() - name.len();
        whole.push(b'/');
        whole.extend(CStr::from_ptr(path).to_bytes());
        of_bytes(&whole[start..])
    }
}

fn of_bytes(path: &[u8]) -> Option<Location> {
    let mut clean = Vec::with_capacity(path.len());
    for &byte in path {
        if byte != b'/' || clean.last() != Some(&b'/') {
            clean.push(byte);
        }
    }
    if let Some(name) = clean.strip_prefix(CLASS) {
        let first = name.split(|&byte| byte == b'/').next()?;
        let ours: [&[u8]; 3] = [b"infiniband", b"infiniband_mad", b"infiniband_verbs"];
        return ours
            .contains(&first)
            .then_some(())
            .and_then(|()| below_root(&clean))
            .map(|real| Location::Class {
                name: name.to_vec(),
                real,
            });
    }
    let rest = clean.strip_prefix(DEVICES)?;
    if !rest.is_empty() && rest[0] != b'/' {
        return None;
    }
    let name = std::str::from_utf8(rest).ok()?.trim_start_matches('/');
    let number = |prefix: &str| name.strip_prefix(prefix)?.parse().ok();
    // Without a fabric, the path means the real device; a fabric that refuses this user does not.
    let real = match root() {
        Ok(_) => below_root(&clean)?,
        Err(libc::EACCES) => CString::default(),
        Err(_) => return None,
    };
    if name == "rdma_cm" {
        return Some(Location::Connections);
    }
    Some(match (number("umad"), number("issm"), number("uverbs")) {
        (Some(number), ..) => Location::Mad(number),
        (_, Some(number), _) => Location::IsSm(number),
        (.., Some(number)) => Location::Verbs(number),
        _ => Location::Other { real },
    })
}
