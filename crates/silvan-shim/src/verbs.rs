//! Open `uverbsN` files: commands go to the server as records of the file's socket. Completions and events come by a second
//! socket, by which the server also reads and writes registered memory: see [`memory`].
//!
//! POLL_CQ needs no system call: completions wait in this process. A record of a command is
//!
//! ```text
//!  0  length of the command, 32 bits, in the byte order of the machine
//!  4  count of entries that follow, 32 bits
//!  8  simulated time that the program's clock shows, in ps, 64 bits
//! 16  entries: completion queue and completions that the program has polled since the last record, 32 bits each
//!     the command as the program has written it
//!     data of work requests with IBV_SEND_INLINE
//! ```
//!
//! A program that waits for the fabric reports this by a record without an answer: 32 bits that are all 1, and the number of
//! notices that it has seen (64 bits).
//!
//! The answer to a command has an error number, a reserved word, the number of notices sent so far (64 bits), and the response.

mod memory;
mod notices;

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use libc::{size_t, ssize_t};

use self::notices::Notices;
use crate::fabric::{self, OPEN_VERBS};
use crate::{CHANNEL, clock, device, fail, real, set_kind};

// Commands of `ib_user_verbs.h` that this library completes or answers.
const GET_CONTEXT: u32 = 0;
const CREATE_COMP_CHANNEL: u32 = 17;
const CREATE_CQ: u32 = 18;
const DESTROY_CQ: u32 = 20;
const POLL_CQ: u32 = 21;
const REQ_NOTIFY_CQ: u32 = 23;
const CREATE_QP: u32 = 24;
const DESTROY_QP: u32 = 27;
const POST_SEND: u32 = 28;
const CREATE_SRQ: u32 = 32;
const DESTROY_SRQ: u32 = 35;
const OPEN_QP: u32 = 40;
const MINOR: u32 = 192;
const EXTENDED: u32 = 1 << 31;
const QUERY_DEVICE: u32 = 1;
const QUERY_DEVICE_WORDS: u16 = 4;
const DEVICE: usize = 176;

const HEADER: usize = 8;
const ANSWER_HEADER: usize = 16;
const ANSWER: usize = 16 << 10;
pub(crate) const COMPLETION: usize = 48;
const SEND_INLINE: u32 = 8;
const POST: usize = 24;
const SEND_REQUEST: usize = 56;
const SCATTER: usize = 16;

struct Context {
    number: u8,
    command: Mutex<()>,
    notices: Arc<Notices>,
    handles: Mutex<BTreeMap<(u32, u32), u64>>,
    channels: Mutex<BTreeMap<c_int, u32>>,
}

static CONTEXTS: RwLock<BTreeMap<c_int, Arc<Context>>> = RwLock::new(BTreeMap::new());
static READERS: RwLock<BTreeMap<c_int, Reader>> = RwLock::new(BTreeMap::new());

#[derive(Clone)]
struct Reader {
    notices: Arc<Notices>,
    channel: Option<u32>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn context(fd: c_int) -> Option<Arc<Context>> {
    let contexts = CONTEXTS.read().unwrap_or_else(PoisonError::into_inner);
    contexts.get(&fd).cloned()
}

fn reader(fd: c_int) -> Option<Reader> {
    let readers = READERS.read().unwrap_or_else(PoisonError::into_inner);
    readers.get(&fd).cloned()
}

pub(crate) fn open(number: u8, flags: c_int) -> Result<c_int, c_int> {
    let mark = memory::mark();
    let mut hello = vec![number];
    hello.extend((mark.as_ptr() as u64).to_ne_bytes());
    hello.extend(mark);
    let answer = fabric::ask(OPEN_VERBS, &hello)?;
    let stream = answer.file.ok_or(libc::EIO)?;
    let fd = device::into_program(answer.connection, flags);
    let notices = Arc::new(Notices::new());
    clock::counter::trap();
    memory::serve(stream, Arc::clone(&notices))?;
    let context = Context {
        number,
        command: Mutex::new(()),
        notices,
        handles: Mutex::default(),
        channels: Mutex::default(),
    };
    let mut contexts = CONTEXTS.write().unwrap_or_else(PoisonError::into_inner);
    contexts.insert(fd, Arc::new(context));
    Ok(fd)
}

pub(crate) fn duplicate(from: c_int, to: c_int) {
    if let Some(context) = context(from) {
        let mut contexts = CONTEXTS.write().unwrap_or_else(PoisonError::into_inner);
        contexts.insert(to, context);
    } else if let Some(reader) = reader(from) {
        let mut readers = READERS.write().unwrap_or_else(PoisonError::into_inner);
        readers.insert(to, reader);
    }
}

pub(crate) fn release(fd: c_int) {
    let mut contexts = CONTEXTS.write().unwrap_or_else(PoisonError::into_inner);
    contexts.remove(&fd);
    drop(contexts);
    let mut readers = READERS.write().unwrap_or_else(PoisonError::into_inner);
    readers.remove(&fd);
}

/// Reads events from a completion channel or asynchronous descriptor.
///
/// # Safety
/// The buffer has room for `count` bytes.
pub(crate) unsafe fn read(fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t {
    let Some(reader) = reader(fd) else {
        // SAFETY: as above.
        return unsafe { (real::read())(fd, buffer, count) };
    };
    let size = if reader.channel.is_some() { 8 } else { 16 };
    if count < size {
        return fail::<i8>(libc::EINVAL).into();
    }
    loop {
        // Each event has a byte in the socket, so that poll and blocking reads are the kernel's.
        let mut token = 0_u8;
        // SAFETY: room for one byte.
        let taken = unsafe { (real::read())(fd, (&raw mut token).cast(), 1) };
        match taken {
            0 => return fail::<i8>(libc::EIO).into(),
            ..0 => return -1,
            _ => {}
        }
        if let Some(event) = reader.notices.take_event(reader.channel) {
            // SAFETY: the buffer has at least this room.
            unsafe { std::ptr::copy_nonoverlapping(event.as_ptr(), buffer.cast(), size) };
            return size as ssize_t;
        }
    }
}

/// Executes a command that the program has written.
///
/// # Safety
/// The buffer has `count` bytes, and the addresses in the command are those of a caller of `write()` on the device.
pub(crate) unsafe fn write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
    let Some(context) = context(fd) else {
        return fail::<i8>(libc::EBADF).into();
    };
    if count < HEADER || buffer.is_null() {
        return fail::<i8>(libc::EINVAL).into();
    }
    // SAFETY: as above.
    let done = unsafe {
        let command = std::slice::from_raw_parts(buffer.cast::<u8>(), count);
        context.execute(fd, command)
    };
    match done {
        Ok(()) => count as ssize_t,
        Err(error) => fail::<i8>(error).into(),
    }
}

/// There is none, and rdma-core writes commands then.
pub(crate) fn ioctl() -> c_int {
    fail(libc::ENOTTY)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

fn put_word(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_ne_bytes());
    }
}

/// Writes a response where the command wants it.
///
/// # Safety
/// The address is the program's for so many bytes.
unsafe fn respond(command: &[u8], response: &[u8]) -> Result<(), c_int> {
    if response.is_empty() {
        return Ok(());
    }
    let room = usize::from(u16::from_ne_bytes([command[6], command[7]])) * 4;
    let address = long(command, HEADER).ok_or(libc::EINVAL)?;
    if address == 0 {
        return Err(libc::EFAULT);
    }
    let length = response.len().min(room);
    // SAFETY: as above.
    unsafe {
        std::ptr::copy_nonoverlapping(response.as_ptr(), address as usize as *mut u8, length);
    }
    Ok(())
}

impl Context {
    /// # Safety
    /// As [`write`].
    unsafe fn execute(&self, fd: c_int, command: &[u8]) -> Result<(), c_int> {
        let code = word(command, 0).ok_or(libc::EINVAL)?;
        if code == EXTENDED | QUERY_DEVICE {
            // SAFETY: as above.
            return unsafe { self.query_extended_device(fd, command) };
        }
        if code & EXTENDED != 0 {
            return Err(libc::EOPNOTSUPP);
        }
        let body = &command[HEADER..];
        // SAFETY: as above.
        unsafe {
            match code {
                POLL_CQ => {
                    let queue = word(body, 8).ok_or(libc::EINVAL)?;
                    let most = word(body, 12).ok_or(libc::EINVAL)?;
                    let found = self
                        .notices
                        .poll(queue, most, &mut |seen| self.report(fd, seen));
                    let found = found.ok_or(libc::EINVAL)?;
                    respond(command, &found)
                }
                REQ_NOTIFY_CQ => {
                    let (answer, error) = self.ask(fd, command, &[])?;
                    // The program polls next, and sleeps if it finds nothing: it has to find what came before.
                    self.notices.wait_for(answer.notices);
                    check(error)
                }
                CREATE_COMP_CHANNEL => {
                    let (mut answer, error) = self.ask(fd, command, &[])?;
                    check(error)?;
                    let channel = word(&answer.response, 0).ok_or(libc::EIO)?;
                    let reader = self.open_reader(Some(channel))?;
                    lock(&self.channels).insert(reader, channel);
                    put_word(&mut answer.response, 0, reader as u32);
                    respond(command, &answer.response)
                }
                GET_CONTEXT => {
                    let (mut answer, error) = self.ask(fd, command, &[])?;
                    check(error)?;
                    let reader = self.open_reader(None)?;
                    put_word(&mut answer.response, 0, reader as u32);
                    respond(command, &answer.response)
                }
                CREATE_CQ => {
                    let mut changed = command.to_vec();
                    let reader = word(body, 24).ok_or(libc::EINVAL)? as c_int;
                    if reader >= 0 {
                        let channel = lock(&self.channels).get(&reader).copied();
                        put_word(&mut changed, HEADER + 24, channel.ok_or(libc::EBADF)?);
                    }
                    let (answer, error) = self.ask(fd, &changed, &[])?;
                    check(error)?;
                    let queue = word(&answer.response, 0).ok_or(libc::EIO)?;
                    let user = long(body, 8).ok_or(libc::EINVAL)?;
                    self.notices.add_queue(queue, user);
                    respond(command, &answer.response)
                }
                DESTROY_CQ => {
                    let (mut answer, error) = self.ask(fd, command, &[])?;
                    check(error)?;
                    self.notices.wait_for(answer.notices);
                    let queue = word(body, 8).ok_or(libc::EINVAL)?;
                    let (completions, asynchronous) = self.notices.remove_queue(queue);
                    put_word(&mut answer.response, 0, completions);
                    put_word(&mut answer.response, 4, asynchronous);
                    respond(command, &answer.response)
                }
                CREATE_QP | CREATE_SRQ | OPEN_QP => {
                    let (answer, error) = self.ask(fd, command, &[])?;
                    check(error)?;
                    let kind = if code == CREATE_SRQ {
                        CREATE_SRQ
                    } else {
                        CREATE_QP
                    };
                    let handle = word(&answer.response, 0).ok_or(libc::EIO)?;
                    let user = long(body, 8).ok_or(libc::EINVAL)?;
                    lock(&self.handles).insert((kind, handle), user);
                    respond(command, &answer.response)
                }
                DESTROY_QP | DESTROY_SRQ => {
                    let (mut answer, error) = self.ask(fd, command, &[])?;
                    check(error)?;
                    self.notices.wait_for(answer.notices);
                    let kind = if code == DESTROY_SRQ {
                        CREATE_SRQ
                    } else {
                        CREATE_QP
                    };
                    let handle = word(body, 8).ok_or(libc::EINVAL)?;
                    let user = lock(&self.handles).remove(&(kind, handle));
                    let events = user.map_or(0, |user| self.notices.remove_element(user));
                    put_word(&mut answer.response, 0, events);
                    respond(command, &answer.response)
                }
                _ => {
                    let inline = match code {
                        POST_SEND => gather_inline(body).ok_or(libc::EINVAL)?,
                        _ => Vec::new(),
                    };
                    let (answer, error) = self.ask(fd, command, &inline)?;
                    respond(command, &answer.response)?;
                    check(error)
                }
            }
        }
    }

    /// The plain attributes, and none of the capabilities that came later.
    ///
    /// # Safety
    /// As [`write`].
    unsafe fn query_extended_device(&self, fd: c_int, command: &[u8]) -> Result<(), c_int> {
        let mut plain = QUERY_DEVICE.to_ne_bytes().to_vec();
        plain.extend(QUERY_DEVICE_WORDS.to_ne_bytes());
        plain.extend(((DEVICE / 4) as u16).to_ne_bytes());
        plain.extend([0; HEADER]);
        let (answer, error) = self.ask(fd, &plain, &[])?;
        check(error)?;
        let mut response = answer.response;
        // No optional fields: a mask, and the length.
        response.extend(0_u32.to_ne_bytes());
        response.extend((DEVICE as u32 + 8).to_ne_bytes());
        let words = u16::from_ne_bytes([command[6], command[7]]);
        // Extended commands count in words of 64 bits.
        response.resize(usize::from(words) * 8, 0);
        let address = long(command, HEADER).ok_or(libc::EINVAL)?;
        if address == 0 || response.len() < DEVICE + 8 {
            return Err(libc::EINVAL);
        }
        // SAFETY: as above.
        unsafe {
            let to = address as usize as *mut u8;
            std::ptr::copy_nonoverlapping(response.as_ptr(), to, response.len());
        }
        Ok(())
    }

    fn ask(&self, fd: c_int, command: &[u8], inline: &[u8]) -> Result<(Answer, c_int), c_int> {
        let _one_at_a_time = lock(&self.command);
        let polled = self.notices.take_polled();
        let mut record = (command.len() as u32).to_ne_bytes().to_vec();
        record.extend((polled.len() as u32).to_ne_bytes());
        record.extend(clock::now_ps().to_ne_bytes());
        for (queue, count) in polled {
            record.extend(queue.to_ne_bytes());
            record.extend(count.to_ne_bytes());
        }
        record.extend(command);
        record.extend(inline);
        // SAFETY: the buffers have the lengths given.
        unsafe {
            if device::send(fd, record.as_ptr().cast(), record.len()) < 0 {
                return Err(libc::EIO);
            }
            let mut bytes = vec![0_u8; ANSWER];
            let length = loop {
                let length = libc::recv(fd, bytes.as_mut_ptr().cast(), bytes.len(), 0);
                if length >= 0 || *libc::__errno_location() != libc::EINTR {
                    break length;
                }
            };
            let length = usize::try_from(length).map_err(|_| libc::EIO)?;
            let header = bytes[..length].get(..ANSWER_HEADER).ok_or(libc::EIO)?;
            let error = word(header, 0).ok_or(libc::EIO)? as c_int;
            let notices = long(header, 8).ok_or(libc::EIO)?;
            let response = bytes[ANSWER_HEADER..length].to_vec();
            self.notices.commanded();
            Ok((Answer { notices, response }, error))
        }
    }

    fn report(&self, fd: c_int, seen: u64) {
        let Ok(_not_during_a_command) = self.command.try_lock() else {
            return;
        };
        let mut record = u32::MAX.to_ne_bytes().to_vec();
        record.extend(seen.to_ne_bytes());
        // SAFETY: the record has this length.
        unsafe { device::send(fd, record.as_ptr().cast(), record.len()) };
    }

    fn open_reader(&self, channel: Option<u32>) -> Result<c_int, c_int> {
        let mut pair = [0; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: room for two descriptors, which are this library's from here on.
        let (own, program) = unsafe {
            if libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) != 0 {
                return Err(libc::EMFILE);
            }
            (OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1]))
        };
        let fd = program.into_raw_fd();
        self.notices.add_channel(channel, own);
        let reader = Reader {
            notices: Arc::clone(&self.notices),
            channel,
        };
        let mut readers = READERS.write().unwrap_or_else(PoisonError::into_inner);
        readers.insert(fd, reader);
        set_kind(fd, CHANNEL);
        Ok(fd)
    }
}

struct Answer {
    notices: u64,
    response: Vec<u8>,
}

fn check(error: c_int) -> Result<(), c_int> {
    match error {
        0 => Ok(()),
        error => Err(error),
    }
}

/// The data of work requests that the program may change once its call returns.
///
/// # Safety
/// The addresses are those of a caller of `ibv_post_send()`.
unsafe fn gather_inline(body: &[u8]) -> Option<Vec<u8>> {
    let requests = word(body, 12)? as usize;
    let size = word(body, 20)? as usize;
    if size < SEND_REQUEST {
        return Some(Vec::new());
    }
    let mut data = Vec::new();
    let mut scatter = POST.checked_add(requests.checked_mul(size)?)?;
    for number in 0..requests {
        let at = POST + number * size;
        let (parts, flags) = (word(body, at + 8)?, word(body, at + 16)?);
        for _ in 0..parts {
            let (address, length) = (long(body, scatter)?, word(body, scatter + 8)? as usize);
            scatter += SCATTER;
            if flags & SEND_INLINE != 0 && length > 0 {
                if address == 0 {
                    return None;
                }
                // SAFETY: as above.
                data.extend(unsafe {
                    std::slice::from_raw_parts(address as usize as *const u8, length)
                });
            }
        }
    }
    Some(data)
}

pub(crate) fn minor(fd: c_int) -> u32 {
    MINOR + context(fd).map_or(0, |context| u32::from(context.number))
}

pub(crate) fn raw(fd: &OwnedFd) -> c_int {
    fd.as_raw_fd()
}
