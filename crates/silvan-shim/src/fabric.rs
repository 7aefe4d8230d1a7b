//! Requests to the fabric's server: a connection each, whose first record says the purpose.

use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{device, real};

pub(crate) const OPEN_MAD: u32 = 1;
pub(crate) const OPEN_ISSM: u32 = 2;
pub(crate) const IOCTL: u32 = 3;
const TREE: u32 = 4;
const READ: u32 = 5;
pub(crate) const OPEN_VERBS: u32 = 6;

pub(crate) const OPEN_CLOCK: u32 = 7;
pub(crate) const OPEN_CONNECTIONS: u32 = 8;

pub(crate) const NAME: &[u8] = b"silvan-file-";
const RANKS: [&str; 4] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
];
const PATIENCE_S: libc::time_t = 60;
const ANSWER: usize = 64 << 10;

fn last_error() -> c_int {
    // SAFETY: the location is this thread's.
    unsafe { *libc::__errno_location() }
}

fn address(name: &[u8]) -> Result<(libc::sockaddr_un, libc::socklen_t), c_int> {
    // SAFETY: all bits zero are a valid address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let room = address
        .sun_path
        .get_mut(1..=name.len())
        .ok_or(libc::ENAMETOOLONG)?;
    for (to, &byte) in room.iter_mut().zip(name) {
        *to = byte as _;
    }
    let length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    Ok((address, length as libc::socklen_t))
}

pub(crate) fn node_of_rank() -> Option<Vec<u8>> {
    let hosts = std::env::var_os("SIM_HOSTS").map(|hosts| hosts.into_vec());
    let rank = RANKS
        .iter()
        .find_map(|name| std::env::var(name).ok()?.parse().ok());
    let (hosts, rank): (_, usize) = (hosts?, rank?);
    let hosts: Vec<&[u8]> = hosts.split(|&byte| byte == b',').collect();
    Some(hosts[rank % hosts.len()].to_vec())
}

fn node() -> Vec<u8> {
    let given = || std::env::var_os("SIM_HOST").unwrap_or_default().into_vec();
    node_of_rank().unwrap_or_else(given)
}

pub(crate) struct Answer {
    pub connection: OwnedFd,
    pub data: Vec<u8>,
    pub file: Option<OwnedFd>,
}

pub(crate) fn request(operation: u32, data: &[u8]) -> Result<(OwnedFd, Vec<u8>), c_int> {
    ask(operation, data).map(|answer| (answer.connection, answer.data))
}

pub(crate) fn ask(operation: u32, data: &[u8]) -> Result<Answer, c_int> {
    let base = std::env::var_os("IBSIM_SOCKNAME");
    let base = base.as_ref().map_or(&b"sim"[..], |name| name.as_bytes());
    // The final zero belongs to the name.
    let server = address(&[base, b":umad\0"].concat())?;
    let node = node();
    let connection = connect(&server)?;
    let mut record = operation.to_ne_bytes().to_vec();
    record.extend((node.len() as u32).to_ne_bytes());
    record.extend(&node);
    record.extend(data);
    let fd = connection.as_raw_fd();
    let mut answer = vec![0; ANSWER];
    // SAFETY: the buffers have the lengths given; a descriptor that comes is owned from here on.
    let (length, file) = unsafe {
        let flags = libc::MSG_NOSIGNAL;
        // A server that refuses has answered already, and closed its end. If the request came after that, the kernel
        // reports a reset once, before the answer.
        libc::send(fd, record.as_ptr().cast(), record.len(), flags);
        let received = loop {
            let received = device::receive(fd, answer.as_mut_ptr().cast(), answer.len(), 0);
            if received.length >= 0 || !matches!(last_error(), libc::EINTR | libc::ECONNRESET) {
                break received;
            }
        };
        let file = received.file.map(|file| OwnedFd::from_raw_fd(file));
        (received.length, file)
    };
    let length = usize::try_from(length).map_err(|_| last_error())?;
    let (error, rest) = answer[..length].split_first_chunk().ok_or(libc::EIO)?;
    match c_int::from_ne_bytes(*error) {
        0 => Ok(Answer {
            data: rest.to_vec(),
            connection,
            file,
        }),
        error => Err(error),
    }
}

/// The socket's name tells connections apart.
fn connect((server, length): &(libc::sockaddr_un, libc::socklen_t)) -> Result<OwnedFd, c_int> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    // SAFETY: the addresses have the lengths given, and the descriptor is owned from here on.
    unsafe {
        let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(last_error());
        }
        let connection = OwnedFd::from_raw_fd(fd);
        let patience = libc::timeval {
            tv_sec: PATIENCE_S,
            tv_usec: 0,
        };
        set_patience(fd, &patience);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = [NAME, format!("{}-{number}", libc::getpid()).as_bytes()].concat();
            let (own, own_length) = address(&name)?;
            if libc::bind(fd, (&raw const own).cast(), own_length) == 0 {
                break;
            }
            if last_error() != libc::EADDRINUSE {
                return Err(last_error());
            }
        }
        if libc::connect(fd, std::ptr::from_ref(server).cast(), *length) != 0 {
            return Err(last_error());
        }
        Ok(connection)
    }
}

pub(crate) fn set_patience(fd: c_int, patience: &libc::timeval) {
    for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
        // SAFETY: the value has the option's type.
        unsafe {
            libc::setsockopt(
                fd,
                libc::SOL_SOCKET,
                option,
                std::ptr::from_ref(patience).cast(),
                size_of::<libc::timeval>() as libc::socklen_t,
            );
        }
    }
}

pub(crate) fn into_raw(connection: OwnedFd) -> c_int {
    std::os::fd::IntoRawFd::into_raw_fd(connection)
}

pub(crate) fn tree() -> Result<Vec<u8>, c_int> {
    request(TREE, &[]).map(|(_, folder)| folder)
}

pub(crate) fn text(name: &[u8]) -> Result<Vec<u8>, c_int> {
    request(READ, name).map(|(_, text)| text)
}

pub(crate) fn close(fd: c_int) {
    // SAFETY: the descriptor is this library's.
    unsafe { (real::close())(fd) };
}
