//! Open `/dev/infiniband/rdma_cm`: librdmacm's commands go to the server as records of a socket that the program does not see.
//!
//! The program's descriptor is a stream with a byte for each event, so poll and blocking reads are the kernel's.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use libc::{size_t, ssize_t};

use crate::verbs::lock;
use crate::{device, fabric, fail, real};

const CREATE_ID: u32 = 0;
const RESPONDING: [u32; 9] = [CREATE_ID, 1, 5, 11, GET_EVENT, 16, 17, MIGRATE_ID, 22];
const GET_EVENT: u32 = 12;
const SET_OPTION: u32 = 14;
const VALUE: usize = 8;
const MIGRATE_ID: u32 = 18;
const HEADER: usize = 8;
const LONGEST: usize = 4096;

struct File {
    number: u32,
    connection: Mutex<OwnedFd>,
}

static FILES: RwLock<BTreeMap<c_int, Arc<File>>> = RwLock::new(BTreeMap::new());

fn file(fd: c_int) -> Option<Arc<File>> {
    let files = FILES.read().unwrap_or_else(PoisonError::into_inner);
    files.get(&fd).cloned()
}

pub(crate) fn open(flags: c_int) -> Result<c_int, c_int> {
    let answer = fabric::ask(fabric::OPEN_CONNECTIONS, &[])?;
    let stream = answer.file.ok_or(libc::EIO)?;
    let number = answer.data.first_chunk().ok_or(libc::EIO)?;
    let opened = File {
        number: u32::from_ne_bytes(*number),
        connection: Mutex::new(answer.connection),
    };
    let fd = device::into_program(stream, flags);
    let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
    files.insert(fd, Arc::new(opened));
    Ok(fd)
}

pub(crate) fn duplicate(from: c_int, to: c_int) {
    if let Some(same) = file(from) {
        let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
        files.insert(to, same);
    }
}

pub(crate) fn release(fd: c_int) {
    let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
    files.remove(&fd);
}

/// Executes a command that the program has written.
///
/// # Safety
/// The buffer has `count` bytes, and the address in the command is that of a caller of `write()` on the device.
pub(crate) unsafe fn write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
    let Some(file) = file(fd) else {
        return fail::<i8>(libc::EBADF).into();
    };
    if !(HEADER..=LONGEST).contains(&count) || buffer.is_null() {
        return fail::<i8>(libc::EINVAL).into();
    }
    // SAFETY: as above.
    let command = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), count) };
    let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|byte| command[at + byte]));
    let code = word(0);
    let room = usize::from(u16::from_ne_bytes([command[6], command[7]]));
    let mut command = command.to_vec();
    // The address of the response comes first, or after the program's name for the identifier.
    let place = HEADER + if code == CREATE_ID { 8 } else { 0 };
    let address = command.get(place..).and_then(|rest| rest.first_chunk());
    let address = address.map_or(0, |address| usize::from_ne_bytes(*address));
    if code == MIGRATE_ID {
        // The other file is a number of the server's.
        let old = command
            .get(HEADER + 12..)
            .and_then(|rest| rest.first_chunk());
        let old = old.and_then(|old| self::file(c_int::from_ne_bytes(*old)));
        let Some(old) = old else {
            return fail::<i8>(libc::EBADF).into();
        };
        command[HEADER + 12..HEADER + 16].copy_from_slice(&old.number.to_ne_bytes());
    }
    if code == SET_OPTION {
        // The server gets the value of a short option in place of its address.
        let length = command
            .get(HEADER + 20..)
            .and_then(|rest| rest.first_chunk());
        let length = length.map_or(0, |length| u32::from_ne_bytes(*length) as usize);
        if address != 0 && length <= VALUE {
            let mut value = [0_u8; VALUE];
            // SAFETY: the program's option has this length.
            unsafe {
                std::ptr::copy_nonoverlapping(address as *const u8, value.as_mut_ptr(), length);
            }
            command[HEADER..HEADER + VALUE].copy_from_slice(&value);
        }
    }
    loop {
        if code == GET_EVENT {
            let mut token = 0_u8;
            // SAFETY: room for one byte.
            let taken = unsafe { (real::read())(fd, (&raw mut token).cast(), 1) };
            match taken {
                0 => return fail::<i8>(libc::EIO).into(),
                ..0 => return -1,
                _ => {}
            }
        }
        match file.ask(&command) {
            // The identifier of this event is gone.
            Err(libc::EAGAIN) if code == GET_EVENT => {}
            Err(error) => return fail::<i8>(error).into(),
            Ok(response) => {
                if RESPONDING.contains(&code) && !response.is_empty() {
                    if address == 0 {
                        return fail::<i8>(libc::EFAULT).into();
                    }
                    let length = response.len().min(room);
                    // SAFETY: the program's address has so much room.
                    unsafe {
                        let to = address as *mut u8;
                        std::ptr::copy_nonoverlapping(response.as_ptr(), to, length);
                    }
                }
                return count as ssize_t;
            }
        }
    }
}

impl File {
    fn ask(&self, command: &[u8]) -> Result<Vec<u8>, c_int> {
        let connection = lock(&self.connection);
        let fd = connection.as_raw_fd();
        let mut answer = vec![0_u8; LONGEST];
        // SAFETY: the buffers have the lengths given.
        let length = unsafe {
            if libc::send(
                fd,
                command.as_ptr().cast(),
                command.len(),
                libc::MSG_NOSIGNAL,
            ) < 0
            {
                return Err(libc::EIO);
            }
            loop {
                let length = libc::recv(fd, answer.as_mut_ptr().cast(), answer.len(), 0);
                if length >= 0 || *libc::__errno_location() != libc::EINTR {
                    break length;
                }
            }
        };
        let length = usize::try_from(length).map_err(|_| libc::EIO)?;
        let (header, response) = answer[..length].split_at_checked(HEADER).ok_or(libc::EIO)?;
        match c_int::from_ne_bytes([header[0], header[1], header[2], header[3]]) {
            0 => Ok(response.to_vec()),
            error => Err(error),
        }
    }
}
