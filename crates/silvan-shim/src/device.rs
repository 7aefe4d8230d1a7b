//! Open files: sockets as umad and issm files, and files in memory with the text of sysfs.

use std::ffi::{CString, c_int, c_ulong, c_void};
use std::os::fd::OwnedFd;

use libc::{size_t, ssize_t};

use crate::fabric::{self, IOCTL, NAME};
use crate::{fail, real};

/// Longer ones are carried by a file in memory.
const LONGEST_RECORD: usize = 64 << 10;
const MAJOR: u32 = 231;
const LEAST_WRITTEN: usize = 56 + 24;

pub(crate) fn open(operation: u32, number: u8, flags: c_int) -> Result<c_int, c_int> {
    let (connection, _) = fabric::request(operation, &[number])?;
    Ok(into_program(connection, flags))
}

pub(crate) fn into_program(connection: OwnedFd, flags: c_int) -> c_int {
    let fd = fabric::into_raw(connection);
    let forever = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    fabric::set_patience(fd, &forever);
    // SAFETY: the descriptor is open.
    unsafe {
        let fcntl = real::fcntl();
        if flags & libc::O_NONBLOCK != 0 {
            fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK as c_ulong);
        }
        if flags & libc::O_CLOEXEC == 0 {
            fcntl(fd, libc::F_SETFD, 0);
        }
    }
    fd
}

/// Makes the description of a file one of a device.
///
/// # Safety
/// The buffer is a `struct stat`.
pub(crate) unsafe fn describe(buffer: *mut c_void, minor: u32) {
    // SAFETY: as above; `stat` and `stat64` are the same where files have 64-bit sizes.
    let about = unsafe { &mut *buffer.cast::<libc::stat>() };
    about.st_mode = about.st_mode & !libc::S_IFMT | libc::S_IFCHR;
    about.st_rdev = libc::makedev(MAJOR, minor);
}

/// Describes a character device in a `struct statx`.
///
/// # Safety
/// The buffer is one.
pub(crate) unsafe fn describe_extended(buffer: *mut c_void, minor: u32) {
    // SAFETY: as above.
    let about = unsafe { &mut *buffer.cast::<libc::statx>() };
    about.stx_mode = about.stx_mode & !(libc::S_IFMT as u16) | libc::S_IFCHR as u16;
    about.stx_rdev_major = MAJOR;
    about.stx_rdev_minor = minor;
}

pub(crate) fn text_file(name: &[u8], text: &[u8], flags: c_int) -> Result<c_int, c_int> {
    let name = CString::new(name).map_err(|_| libc::ENOENT)?;
    let close_on_exec = if flags & libc::O_CLOEXEC == 0 {
        0
    } else {
        libc::MFD_CLOEXEC
    };
    // SAFETY: the name ends with a zero.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), close_on_exec) };
    if fd < 0 {
        return Err(libc::EMFILE);
    }
    fill(fd, text);
    Ok(fd)
}

fn fill(fd: c_int, text: &[u8]) {
    // SAFETY: the text has this length.
    unsafe {
        libc::ftruncate(fd, 0);
        libc::pwrite(fd, text.as_ptr().cast(), text.len(), 0);
    }
}

pub(crate) fn refresh(fd: c_int) {
    let link = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok();
    let name = link.as_ref().and_then(|link| link.to_str());
    let name = name.and_then(|name| name.strip_prefix("/memfd:"));
    let Some(name) = name.map(|name| name.trim_end_matches(" (deleted)")) else {
        return;
    };
    if let Ok(text) = fabric::text(name.as_bytes()) {
        fill(fd, &text);
    }
}

pub(crate) fn name_of(fd: c_int) -> Option<Vec<u8>> {
    // SAFETY: all bits zero are a valid address, and its length is given.
    let (address, length) = unsafe {
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        let mut length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        if libc::getsockname(fd, (&raw mut address).cast(), &mut length) != 0 {
            return None;
        }
        (address, length as usize)
    };
    let start = std::mem::offset_of!(libc::sockaddr_un, sun_path);
    if c_int::from(address.sun_family) != libc::AF_UNIX || length <= start {
        return None;
    }
    let name = &address.sun_path[1..length - start];
    let name: Vec<u8> = name.iter().map(|&byte| byte as u8).collect();
    name.starts_with(NAME).then_some(name)
}

pub(crate) fn is_umad_ioctl(request: c_ulong) -> bool {
    request >> 8 & 0xff == 0x1b
}

/// An ioctl on an umad file.
///
/// # Safety
/// The argument has the length that the request names.
pub(crate) unsafe fn ioctl(name: &[u8], request: c_ulong, argument: *mut c_void) -> c_int {
    let length = (request >> 16 & 0x3fff) as usize;
    let mut data = (request as u32).to_ne_bytes().to_vec();
    data.extend((name.len() as u32).to_ne_bytes());
    data.extend(name);
    if length > 0 {
        if argument.is_null() {
            return fail(libc::EFAULT);
        }
        // SAFETY: as above.
        data.extend(unsafe { std::slice::from_raw_parts(argument.cast::<u8>(), length) });
    }
    match fabric::request(IOCTL, &data) {
        Ok((_, answer)) => {
            // SAFETY: as above.
            unsafe {
                let length = answer.len().min(length);
                std::ptr::copy_nonoverlapping(answer.as_ptr(), argument.cast(), length);
            }
            0
        }
        Err(error) => fail(error),
    }
}

#[repr(C, align(8))]
struct Control([u8; 24]);

pub(crate) struct Record {
    pub length: ssize_t,
    pub file: Option<c_int>,
}

/// Receives a record, or shows the next one if `flags` has MSG_PEEK.
///
/// # Safety
/// The buffer has room for `count` bytes.
pub(crate) unsafe fn receive(
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    flags: c_int,
) -> Record {
    let mut piece = libc::iovec {
        iov_base: buffer,
        iov_len: count,
    };
    let mut control = Control([0; 24]);
    // SAFETY: all bits zero are a valid header; the buffers outlive the call.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &mut piece;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut control).cast();
        header.msg_controllen = size_of::<Control>() as _;
        let length = libc::recvmsg(fd, &mut header, flags | libc::MSG_CMSG_CLOEXEC);
        let first = libc::CMSG_FIRSTHDR(&header);
        let has_file = length >= 0
            && !first.is_null()
            && (*first).cmsg_level == libc::SOL_SOCKET
            && (*first).cmsg_type == libc::SCM_RIGHTS;
        let file = has_file.then(|| libc::CMSG_DATA(first).cast::<c_int>().read_unaligned());
        Record { length, file }
    }
}

/// Reads a header and a datagram. If the datagram does not fit, what fits is in the buffer, and the
/// next call reads the same.
///
/// # Safety
/// The buffer has room for `count` bytes.
pub(crate) unsafe fn read(fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let next = receive(fd, buffer, count, libc::MSG_PEEK | libc::MSG_TRUNC);
        match next.length {
            0 => return fail::<i8>(libc::EIO).into(),
            ..0 => return -1,
            _ => {}
        }
        let length = match next.file {
            None => next.length as usize,
            Some(file) => {
                let length = libc::lseek(file, 0, libc::SEEK_END).max(0) as usize;
                libc::pread(file, buffer, count.min(length), 0);
                fabric::close(file);
                length
            }
        };
        if length > count {
            return fail::<i8>(libc::ENOSPC).into();
        }
        let mut first = 0_u8;
        let taken = match next.file {
            None => receive(fd, buffer, count, 0),
            Some(_) => receive(fd, (&raw mut first).cast(), 1, 0),
        };
        if let Some(file) = taken.file {
            fabric::close(file);
        }
        if taken.length < 0 {
            -1
        } else {
            length as ssize_t
        }
    }
}

/// Writes a header and a datagram.
///
/// # Safety
/// The buffer has `count` bytes.
pub(crate) unsafe fn write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
    if count < LEAST_WRITTEN {
        return fail::<i8>(libc::EINVAL).into();
    }
    // SAFETY: as above.
    unsafe { send(fd, buffer, count) }
}

/// Sends a record, by a file in memory if it is long.
///
/// # Safety
/// The buffer has `count` bytes.
pub(crate) unsafe fn send(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
    loop {
        // SAFETY: as above.
        let sent = unsafe {
            if count <= LONGEST_RECORD {
                libc::send(fd, buffer, count, libc::MSG_NOSIGNAL)
            } else {
                send_by_file(fd, buffer, count)
            }
        };
        // SAFETY: the location is this thread's.
        match unsafe { *libc::__errno_location() } {
            _ if sent >= 0 => return count as ssize_t,
            // Blocks, because the kernel's device is never full.
            libc::EAGAIN => {
                let mut wait = libc::pollfd {
                    fd,
                    events: libc::POLLOUT,
                    revents: 0,
                };
                // SAFETY: one entry.
                unsafe { libc::poll(&mut wait, 1, -1) };
            }
            libc::EPIPE | libc::ECONNRESET => return fail::<i8>(libc::EIO).into(),
            _ => return -1,
        }
    }
}

unsafe fn send_by_file(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: the buffer has so many bytes; all bits zero are a valid header; the buffers outlive the call.
    unsafe {
        let file = libc::memfd_create(c"silvan-mad".as_ptr(), libc::MFD_CLOEXEC);
        if file < 0 {
            return -1;
        }
        let mut written = 0;
        while written < count {
            let part = libc::pwrite(
                file,
                buffer.cast::<u8>().add(written).cast(),
                count - written,
                written as libc::off_t,
            );
            if part <= 0 {
                fabric::close(file);
                return fail::<i8>(libc::ENOMEM).into();
            }
            written += part as usize;
        }
        let mut piece = libc::iovec {
            iov_base: buffer.cast_mut(),
            iov_len: 1,
        };
        let mut control = Control([0; 24]);
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &mut piece;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut control).cast();
        header.msg_controllen = size_of::<Control>() as _;
        let first = libc::CMSG_FIRSTHDR(&header);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
        libc::CMSG_DATA(first).cast::<c_int>().write_unaligned(file);
        let sent = libc::sendmsg(fd, &header, libc::MSG_NOSIGNAL);
        fabric::close(file);
        sent
    }
}
