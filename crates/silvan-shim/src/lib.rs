//! The preload library of the live fabric: programs see it at `/dev/infiniband/{umad,issm,uverbs}N`, `rdma_cm` and
//! `/sys/class/infiniband{,_mad,_verbs}`, and ask it by RDMA netlink.
//!
//! An open umad file is a socket to the server, so poll, fork and close need nothing here. Files of sysfs are in
//! memory, their folders are the server's. `IBSIM_SOCKNAME` names the fabric, `SIM_HOST` the node, `SIM_HOSTS` nodes
//! for MPI ranks in turn. With `SIM_TIME=auto`, clocks show simulated time.
//!
//! Functions replace libc's, whose contract callers keep: pointers are valid. Variable arguments are one more
//! parameter, as x86-64 and aarch64 pass it like a fixed one.
#![cfg(target_os = "linux")]
#![allow(
    unsafe_code,
    clippy::missing_safety_doc,
    reason = "functions of libc, see docs/decisions/0023-the-live-fabric.md"
)]

mod clock;
mod connections;
mod device;
mod fabric;
mod names;
mod netlink;
mod paths;
mod real;
mod verbs;

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::sync::atomic::{AtomicU8, Ordering};

use libc::{DIR, FILE, mode_t, off_t, size_t, ssize_t};

use paths::{Location, at, current, locate, mark_current_stale};

// The loader calls it before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    if std::env::var_os("SIM_TIME").is_some() {
        clock::counter::trap_early();
    }
}

static KINDS: [AtomicU8; 1 << 16] = [const { AtomicU8::new(0) }; 1 << 16];
const MAD: u8 = 1;
const ISSM: u8 = 2;
const TEXT: u8 = 3;
const VERBS: u8 = 4;
const NETLINK_RDMA: c_int = 20;
const CHANNEL: u8 = 5;
const CONNECTIONS: u8 = 6;
const NETLINK: u8 = 7;

fn kind(fd: c_int) -> u8 {
    let entry = usize::try_from(fd).ok().and_then(|fd| KINDS.get(fd));
    match entry {
        Some(entry) => entry.load(Ordering::Relaxed),
        None if device::name_of(fd).is_some() => MAD,
        None => 0,
    }
}

fn set_kind(fd: c_int, kind: u8) {
    if let Some(entry) = usize::try_from(fd).ok().and_then(|fd| KINDS.get(fd)) {
        entry.store(kind, Ordering::Relaxed);
    }
}

fn fail<T: From<i8>>(error: c_int) -> T {
    // SAFETY: the location is this thread's.
    unsafe { *libc::__errno_location() = error };
    T::from(-1)
}

unsafe fn open_location(location: Location, flags: c_int, mode: mode_t) -> c_int {
    let (error, opened, what) = match location {
        Location::Mad(number) => match device::open(fabric::OPEN_MAD, number, flags) {
            Ok(fd) => (0, fd, MAD),
            Err(error) => (error, -1, 0),
        },
        Location::IsSm(number) => match device::open(fabric::OPEN_ISSM, number, flags) {
            Ok(fd) => (0, fd, ISSM),
            Err(error) => (error, -1, 0),
        },
        Location::Verbs(number) => match verbs::open(number, flags) {
            Ok(fd) => (0, fd, VERBS),
            Err(error) => (error, -1, 0),
        },
        Location::Connections => match connections::open(flags) {
            Ok(fd) => (0, fd, CONNECTIONS),
            Err(error) => (error, -1, 0),
        },
        Location::Class { name, real } => {
            if flags & (libc::O_DIRECTORY | libc::O_PATH) == 0 {
                match fabric::text(&name) {
                    Ok(_) if flags & libc::O_ACCMODE != libc::O_RDONLY => {
                        return fail(libc::EACCES);
                    }
                    Ok(text) => match device::text_file(&name, &text, flags) {
                        Ok(fd) => (0, fd, TEXT),
                        Err(error) => (error, -1, 0),
                    },
                    Err(_) => {
                        // SAFETY: the path ends with a zero.
                        return unsafe { (real::open())(real.as_ptr(), flags, mode) };
                    }
                }
            } else {
                // SAFETY: the path ends with a zero.
                return unsafe { (real::open())(real.as_ptr(), flags, mode) };
            }
        }
        Location::CpuInformation => match clock::cpu_information() {
            Some(text) => match device::text_file(b"cpuinfo", &text, flags) {
                Ok(fd) => (0, fd, 0),
                Err(error) => (error, -1, 0),
            },
            None => (libc::EIO, -1, 0),
        },
        Location::Other { real } => {
            // SAFETY: the path ends with a zero.
            return unsafe { (real::open())(real.as_ptr(), flags, mode) };
        }
    };
    if error != 0 {
        return fail(error);
    }
    set_kind(opened, what);
    opened
}

macro_rules! opening {
    ($($name:ident($(@$before:ident,)? path $(, $mode:ident)?) = $real:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of libc.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($before: c_int,)? path: *const c_char, flags: c_int $(, $mode: mode_t)?
        ) -> c_int {
            #[allow(unused_mut, unused_assignments, reason = "forms without a folder or mode")]
            let mut folder = libc::AT_FDCWD;
            $(folder = $before;)?
            // SAFETY: the caller's path is valid.
            if let Some(location) = unsafe { at(folder, path) } {
                #[allow(unused_mut, unused_assignments, reason = "forms without a folder or mode")]
                let mut mode = 0;
                $(mode = $mode;)?
                // SAFETY: as above.
                return unsafe { open_location(location, flags, mode) };
            }
            // SAFETY: the caller keeps the contract of libc's function.
            let fd = unsafe { (real::$real())($($before,)? path, flags $(, $mode)?) };
            set_kind(fd, 0);
            fd
        }
    )*};
}

opening! {
    open(path, mode) = open;
    open64(path, mode) = open64;
    __open_2(path) = open_2;
    __open64_2(path) = open64_2;
    openat(@folder_fd, path, mode) = openat;
    openat64(@folder_fd, path, mode) = openat64;
    __openat_2(@folder_fd, path) = openat_2;
    __openat64_2(@folder_fd, path) = openat64_2;
}

macro_rules! streams {
    ($($name:ident = $real:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of libc.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, mode: *const c_char) -> *mut FILE {
            // SAFETY: the caller's strings are valid.
            unsafe {
                let Some(location) = locate(path) else {
                    return (real::$real())(path, mode);
                };
                let first = *mode as u8;
                let flags = if first == b'r' { libc::O_RDONLY } else { libc::O_WRONLY };
                let fd = open_location(location, flags, 0);
                if fd < 0 {
                    return std::ptr::null_mut();
                }
                libc::fdopen(fd, mode)
            }
        }
    )*};
}

streams! {
    fopen = fopen;
    fopen64 = fopen64;
}

macro_rules! renaming {
    ($($name:ident($($before:ident: $before_type:ty,)* @path $(, $after:ident: $type:ty)*)
        -> $result:ty = $real:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of libc.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($before: $before_type,)* path: *const c_char $(, $after: $type)*
        ) -> $result {
            // SAFETY: the caller keeps the contract of libc's function; the other path ends with a zero.
            unsafe {
                match locate(path) {
                    Some(location) => {
                        let path = location.real();
                        (real::$real())($($before,)* path.as_ptr() $(, $after)*)
                    }
                    None => (real::$real())($($before,)* path $(, $after)*),
                }
            }
        }
    )*};
}

type Filter = *const c_void;

renaming! {
    access(@path, mode: c_int) -> c_int = access;
    euidaccess(@path, mode: c_int) -> c_int = euidaccess;
    eaccess(@path, mode: c_int) -> c_int = eaccess;
    faccessat(folder: c_int, @path, mode: c_int, flags: c_int) -> c_int = faccessat;
    readlink(@path, buffer: *mut c_char, size: size_t) -> ssize_t = readlink;
    readlinkat(folder: c_int, @path, buffer: *mut c_char, size: size_t) -> ssize_t = readlinkat;
    opendir(@path) -> *mut DIR = opendir;
    scandir(@path, list: *mut c_void, filter: Filter, order: Filter) -> c_int = scandir;
    scandir64(@path, list: *mut c_void, filter: Filter, order: Filter) -> c_int = scandir64;
}

macro_rules! describing {
    ($($name:ident($($before:ident: $before_type:ty,)* @path, @buffer $(, $after:ident: $type:ty)*)
        = $real:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of libc.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($before: $before_type,)* path: *const c_char, buffer: *mut c_void $(, $after: $type)*
        ) -> c_int {
            // SAFETY: the caller keeps the contract of libc's function; the other path ends with a zero.
            unsafe {
                let Some(location) = locate(path) else {
                    return (real::$real())($($before,)* path, buffer $(, $after)*);
                };
                let path = location.real();
                let result = (real::$real())($($before,)* path.as_ptr(), buffer $(, $after)*);
                if let Some(minor) = location.minor().filter(|_| result == 0) {
                    device::describe(buffer, minor);
                }
                result
            }
        }
    )*};
}

describing! {
    stat(@path, @buffer) = stat;
    stat64(@path, @buffer) = stat64;
    lstat(@path, @buffer) = lstat;
    lstat64(@path, @buffer) = lstat64;
    __xstat(version: c_int, @path, @buffer) = xstat;
    __xstat64(version: c_int, @path, @buffer) = xstat64;
    __lxstat(version: c_int, @path, @buffer) = lxstat;
    __lxstat64(version: c_int, @path, @buffer) = lxstat64;
    fstatat(folder: c_int, @path, @buffer, flags: c_int) = fstatat;
    fstatat64(folder: c_int, @path, @buffer, flags: c_int) = fstatat64;
    __fxstatat(version: c_int, folder: c_int, @path, @buffer, flags: c_int) = fxstatat;
    __fxstatat64(version: c_int, folder: c_int, @path, @buffer, flags: c_int) = fxstatat64;
}

macro_rules! describing_open {
    ($($name:ident($($before:ident: $before_type:ty,)* @fd) = $real:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of libc.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($before: $before_type,)* fd: c_int, buffer: *mut c_void
        ) -> c_int {
            // SAFETY: the caller keeps the contract of libc's function.
            unsafe {
                let result = (real::$real())($($before,)* fd, buffer);
                if result == 0 && kind(fd) == VERBS {
                    device::describe(buffer, verbs::minor(fd));
                }
                if result == 0 && kind(fd) == CONNECTIONS {
                    device::describe(buffer, paths::CONNECTIONS_MINOR);
                }
                result
            }
        }
    )*};
}

describing_open! {
    fstat(@fd) = fstat;
    fstat64(@fd) = fstat64;
    __fxstat(version: c_int, @fd) = fxstat;
    __fxstat64(version: c_int, @fd) = fxstat64;
}

/// `socket` of libc, with netlink for RDMA.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let is_rdma = domain == libc::AF_NETLINK && protocol == NETLINK_RDMA && paths::is_attached();
    let fd = match is_rdma {
        true => netlink::open(kind),
        // SAFETY: the caller keeps the contract of libc's function.
        false => unsafe { (real::socket())(domain, kind, protocol) },
    };
    set_kind(fd, if is_rdma { NETLINK } else { 0 });
    fd
}

/// `sendmsg` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const libc::msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller keeps the contract of libc's function.
    unsafe {
        if kind(fd) == NETLINK && !message.is_null() {
            let (parts, count) = ((*message).msg_iov, (*message).msg_iovlen);
            if count > 0 {
                return netlink::send(fd, std::slice::from_raw_parts(parts, count));
            }
        }
        (real::sendmsg())(fd, message, flags)
    }
}

/// `sendto` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    fd: c_int,
    data: *const c_void,
    length: size_t,
    flags: c_int,
    to: *const libc::sockaddr,
    to_length: libc::socklen_t,
) -> ssize_t {
    // SAFETY: the caller keeps the contract of libc's function.
    unsafe {
        if kind(fd) == NETLINK {
            return netlink::send(fd, &[part(data, length)]);
        }
        (real::sendto())(fd, data, length, flags, to, to_length)
    }
}

/// `send` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(
    fd: c_int,
    data: *const c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller keeps the contract of libc's function.
    unsafe {
        if kind(fd) == NETLINK {
            return netlink::send(fd, &[part(data, length)]);
        }
        (real::send())(fd, data, length, flags)
    }
}

fn part(data: *const c_void, length: size_t) -> libc::iovec {
    libc::iovec {
        iov_base: data.cast_mut(),
        iov_len: length,
    }
}

/// `statx` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statx(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    buffer: *mut c_void,
) -> c_int {
    // SAFETY: the caller keeps the contract of libc's function; the other path ends with a zero.
    unsafe {
        let Some(location) = locate(path) else {
            return (real::statx())(folder, path, flags, mask, buffer);
        };
        let path = location.real();
        let result = (real::statx())(folder, path.as_ptr(), flags, mask, buffer);
        if let Some(minor) = location.minor().filter(|_| result == 0) {
            device::describe_extended(buffer, minor);
        }
        result
    }
}

/// `chdir` of libc: the folder of the server's becomes the current one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chdir(path: *const c_char) -> c_int {
    // SAFETY: the caller keeps the contract of libc's function; the other path ends with a zero.
    let result = unsafe {
        match locate(path) {
            Some(location) => (real::chdir())(location.real().as_ptr()),
            None => (real::chdir())(path),
        }
    };
    mark_current_stale();
    result
}

/// `fchdir` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fchdir(folder: c_int) -> c_int {
    // SAFETY: the caller keeps the contract of libc's function.
    let result = unsafe { (real::fchdir())(folder) };
    mark_current_stale();
    result
}

/// `getcwd` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getcwd(buffer: *mut c_char, size: size_t) -> *mut c_char {
    // SAFETY: the caller keeps the contract of libc's function, whose text ends with a zero; a part of it,
    // with its zero, is moved to its start.
    unsafe {
        let found = (real::getcwd())(buffer, size);
        if let Some(name) = current().filter(|name| !found.is_null() && !name.is_empty()) {
            let whole = CStr::from_ptr(found).count_bytes();
            if let Some(start) = whole.checked_sub(name.len()) {
                std::ptr::copy(found.add(start), found, name.len() + 1);
            }
        }
        found
    }
}

/// `close` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    if matches!(kind(fd), VERBS | CHANNEL) {
        verbs::release(fd);
    }
    if kind(fd) == CONNECTIONS {
        connections::release(fd);
    }
    set_kind(fd, 0);
    // SAFETY: the caller keeps the contract of libc's function.
    unsafe { (real::close())(fd) }
}

/// `fclose` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fclose(stream: *mut FILE) -> c_int {
    // SAFETY: the caller keeps the contract of libc's function.
    unsafe {
        set_kind(libc::fileno(stream), 0);
        (real::fclose())(stream)
    }
}

/// `read` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t {
    match kind(fd) {
        // SAFETY: the caller's buffer has room for so many bytes.
        MAD => unsafe { device::read(fd, buffer, count) },
        ISSM | VERBS | CONNECTIONS => fail(libc::EINVAL),
        // SAFETY: as above.
        CHANNEL => unsafe { verbs::read(fd, buffer, count) },
        // SAFETY: the caller keeps the contract of libc's function.
        _ => unsafe { (real::read())(fd, buffer, count) },
    }
}

/// `__read_chk` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    room: size_t,
) -> ssize_t {
    match kind(fd) {
        // SAFETY: the caller's buffer has this room.
        MAD if count <= room => unsafe { device::read(fd, buffer, count) },
        // SAFETY: as above.
        CHANNEL if count <= room => unsafe { verbs::read(fd, buffer, count) },
        // SAFETY: the caller keeps the contract of libc's function.
        _ => unsafe { (real::read_chk())(fd, buffer, count, room) },
    }
}

/// `write` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
    match kind(fd) {
        // SAFETY: the caller's buffer has so many bytes.
        MAD => unsafe { device::write(fd, buffer, count) },
        // SAFETY: as above.
        VERBS => unsafe { verbs::write(fd, buffer, count) },
        // SAFETY: as above.
        CONNECTIONS => unsafe { connections::write(fd, buffer, count) },
        ISSM => fail(libc::EINVAL),
        // SAFETY: the caller keeps the contract of libc's function.
        _ => unsafe { (real::write())(fd, buffer, count) },
    }
}

macro_rules! preads {
    ($($name:ident = $real:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of libc.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            fd: c_int, buffer: *mut c_void, count: size_t, offset: off_t,
        ) -> ssize_t {
            if offset == 0 && kind(fd) == TEXT {
                device::refresh(fd);
            }
            // SAFETY: the caller keeps the contract of libc's function.
            unsafe { (real::$real())(fd, buffer, count, offset) }
        }
    )*};
}

preads! {
    pread = pread;
    pread64 = pread64;
}

macro_rules! seeks {
    ($($name:ident = $real:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of libc.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, offset: off_t, whence: c_int) -> off_t {
            // SAFETY: the caller keeps the contract of libc's function.
            let to = unsafe { (real::$real())(fd, offset, whence) };
            if to == 0 && whence == libc::SEEK_SET && kind(fd) == TEXT {
                device::refresh(fd);
            }
            to
        }
    )*};
}

seeks! {
    lseek = lseek;
    lseek64 = lseek64;
}

/// `ioctl` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if kind(fd) == VERBS {
        return verbs::ioctl();
    }
    if device::is_umad_ioctl(request) {
        if let Some(name) = device::name_of(fd) {
            // SAFETY: the caller's argument has the length that the request names.
            return unsafe { device::ioctl(&name, request, argument) };
        }
    }
    // SAFETY: the caller keeps the contract of libc's function.
    unsafe { (real::ioctl())(fd, request, argument) }
}

fn copy_kind(from: c_int, to: c_int) -> c_int {
    if to >= 0 {
        set_kind(to, kind(from));
        if matches!(kind(from), VERBS | CHANNEL) {
            verbs::duplicate(from, to);
        }
        if kind(from) == CONNECTIONS {
            connections::duplicate(from, to);
        }
    }
    to
}

/// `dup` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: the caller keeps the contract of libc's function.
    copy_kind(fd, unsafe { (real::dup())(fd) })
}

/// `dup2` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    // SAFETY: the caller keeps the contract of libc's function.
    copy_kind(fd, unsafe { (real::dup2())(fd, to) })
}

/// `dup3` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: the caller keeps the contract of libc's function.
    copy_kind(fd, unsafe { (real::dup3())(fd, to, flags) })
}

macro_rules! fcntls {
    ($($name:ident = $real:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of libc.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
            // SAFETY: the caller keeps the contract of libc's function.
            let result = unsafe { (real::$real())(fd, command, argument) };
            match command {
                libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => copy_kind(fd, result),
                _ => result,
            }
        }
    )*};
}

fcntls! {
    fcntl = fcntl;
    fcntl64 = fcntl64;
}
