//! The thread that serves the server's requests to this process: registered memory to read and write, completions and events.
//!
//! The kernel copies between the socket and the program's memory, so memory that is no longer there is an error of the call
//! and no fault. Requests and answers are records of a sequenced-packet socket. A request is
//!
//! ```text
//!  0  kind, 32 bits, in the byte order of the machine
//!  4  reserved
//!  8  address, or handle of a queue or channel, 64 bits
//! 16  first operand, 64 bits; of READ the length
//! 24  second operand, 64 bits
//!     data
//! ```
//!
//! and READ, WRITE, COPY, the atomic operations and PROBE are answered in order: error number (64 bits), data. PROBE asks whether
//! the program waits for the fabric; the answer is the number of notices that it has seen, or all bits 1.
//!
//! COPY reads the memory of another process: its first operand is the address there, the second the length. The data name the
//! process: its number (64 bits), the address of its mark (64 bits), and the mark. Another process under that number has another
//! mark. The kernel allows this as it allows debugging; where it does not, the server uses READ and WRITE.

use std::ffi::{c_int, c_void};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::notices::Notices;
use super::raw;

const READ: u32 = 1;
const WRITE: u32 = 2;
const COMPARE_AND_SWAP: u32 = 3;
const FETCH_AND_ADD: u32 = 4;
const COMPLETIONS: u32 = 5;
const CHANNEL_EVENT: u32 = 6;
const ASYNC_EVENT: u32 = 7;
const PROBE: u32 = 8;
const COPY: u32 = 9;
const PERSON: usize = 16 + MARK;
/// Length of a mark.
pub(super) const MARK: usize = 16;

const HEADER: usize = 32;
const LONGEST: usize = 64 << 10;

/// It ends with the server's end of the socket.
pub(super) fn serve(stream: OwnedFd, notices: Arc<Notices>) -> Result<(), c_int> {
    // The program's signals are not for this thread, which takes over the mask of the one that starts it.
    // SAFETY: all bits zero are a valid set; the old mask is set again.
    let before = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    };
    let thread = std::thread::Builder::new().name("silvan-verbs".to_owned());
    let started = thread.spawn(move || {
        let server = Server { stream };
        // The end of the socket is the end of the context.
        let _ = server.run(&notices);
        notices.end();
    });
    // SAFETY: the mask is that of before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    started.map(drop).map_err(|_| libc::EAGAIN)
}

struct Server {
    stream: OwnedFd,
}

struct Request {
    kind: u32,
    address: u64,
    operands: [u64; 2],
}

fn last_error() -> c_int {
    // SAFETY: the location is this thread's.
    unsafe { *libc::__errno_location() }
}

impl Request {
    fn parse(bytes: &[u8; HEADER]) -> Self {
        let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        Self {
            kind: u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            address: long(8),
            operands: [long(16), long(24)],
        }
    }

    fn place(&self) -> *mut c_void {
        self.address as usize as *mut c_void
    }
}

impl Server {
    fn run(&self, notices: &Notices) -> Result<(), c_int> {
        let mut data = vec![0; LONGEST];
        loop {
            let mut header = [0; HEADER];
            self.receive(&mut header, &mut [], libc::MSG_PEEK)?;
            let request = Request::parse(&header);
            if request.kind == WRITE {
                let done = self.receive_into(&mut header, request.place(), LONGEST, 0);
                match done {
                    Ok(_) => {
                        notices.changed_memory();
                        self.answer(0, std::ptr::null(), 0)?;
                    }
                    // The record is gone with the attempt.
                    Err(libc::EFAULT) => {
                        notices.changed_memory();
                        self.answer(libc::EFAULT, std::ptr::null(), 0)?;
                    }
                    Err(error) => return Err(error),
                }
                continue;
            }
            let length = self.receive(&mut header, &mut data, 0)?;
            let data = &data[..length];
            match request.kind {
                READ => self.read(&request)?,
                COMPARE_AND_SWAP | FETCH_AND_ADD => {
                    self.change(&request, notices)?;
                }
                PROBE => {
                    let seen = notices.probe().unwrap_or(u64::MAX);
                    self.answer(0, (&raw const seen).cast(), size_of::<u64>())?;
                }
                COPY => {
                    let done = copy(&request, data);
                    notices.changed_memory();
                    self.answer(done.err().unwrap_or(0), std::ptr::null(), 0)?;
                }
                COMPLETIONS => notices.completed(request.address as u32, data),
                CHANNEL_EVENT | ASYNC_EVENT => {
                    let mut event = [0; 16];
                    let length = data.len().min(event.len());
                    event[..length].copy_from_slice(&data[..length]);
                    let channel = (request.kind == CHANNEL_EVENT).then_some(request.address as u32);
                    notices.event(channel, event);
                }
                _ => return Err(libc::EPROTO),
            }
        }
    }

    fn read(&self, request: &Request) -> Result<(), c_int> {
        let length = request.operands[0].min(LONGEST as u64) as usize;
        match self.answer(0, request.place(), length) {
            // Nothing of the record was sent.
            Err(libc::EFAULT) => self.answer(libc::EFAULT, std::ptr::null(), 0),
            done => done,
        }
    }

    /// Eight bytes; requests are served one by one, so no other adapter's change comes between.
    fn change(&self, request: &Request, notices: &Notices) -> Result<(), c_int> {
        if request.address % 8 != 0 || !is_writable(request.address) {
            notices.changed_memory();
            return self.answer(libc::EFAULT, std::ptr::null(), 0);
        }
        let [first, second] = request.operands;
        // SAFETY: the address is aligned, and its page is there.
        let value = unsafe { AtomicU64::from_ptr(request.place().cast()) };
        let order = Ordering::SeqCst;
        let original = match request.kind {
            COMPARE_AND_SWAP => match value.compare_exchange(first, second, order, order) {
                Ok(original) | Err(original) => original,
            },
            _ => value.fetch_add(first, order),
        };
        notices.changed_memory();
        self.answer(0, (&raw const original).cast(), size_of::<u64>())
    }

    fn answer(&self, error: c_int, data: *const c_void, length: usize) -> Result<(), c_int> {
        let mut error = i64::from(error).to_ne_bytes();
        let mut parts = [
            part(error.as_mut_ptr().cast(), error.len()),
            part(data.cast_mut(), length),
        ];
        let header = header_of(&mut parts);
        loop {
            // SAFETY: the kernel checks the memory of the data.
            let sent =
                unsafe { libc::sendmsg(raw(&self.stream), &raw const header, libc::MSG_NOSIGNAL) };
            match last_error() {
                _ if sent >= 0 => return Ok(()),
                libc::EINTR => {}
                error => return Err(error),
            }
        }
    }

    fn receive(
        &self,
        header: &mut [u8; HEADER],
        data: &mut [u8],
        flags: c_int,
    ) -> Result<usize, c_int> {
        self.receive_into(header, data.as_mut_ptr().cast(), data.len(), flags)
    }

    fn receive_into(
        &self,
        header: &mut [u8; HEADER],
        data: *mut c_void,
        room: usize,
        flags: c_int,
    ) -> Result<usize, c_int> {
        let mut parts = [part(header.as_mut_ptr().cast(), HEADER), part(data, room)];
        let mut message = header_of(&mut parts);
        loop {
            // SAFETY: the kernel checks the memory of the data.
            let received = unsafe { libc::recvmsg(raw(&self.stream), &raw mut message, flags) };
            match last_error() {
                _ if received > 0 => {
                    return (received as usize).checked_sub(HEADER).ok_or(libc::EPROTO);
                }
                _ if received == 0 => return Err(libc::ECONNRESET),
                libc::EINTR => {}
                error => return Err(error),
            }
        }
    }
}

/// Random bytes at an address of this process, by which others recognise it.
pub(super) fn mark() -> &'static [u8; MARK] {
    static CELL: OnceLock<[u8; MARK]> = OnceLock::new();
    CELL.get_or_init(|| {
        let mut mark = [0_u8; MARK];
        // SAFETY: the buffer has this length. Without random numbers, the mark is that of no process.
        unsafe { libc::getrandom(mark.as_mut_ptr().cast(), MARK, 0) };
        mark
    })
}

fn copy(request: &Request, person: &[u8]) -> Result<(), c_int> {
    let person: &[u8; PERSON] = person.try_into().map_err(|_| libc::EPROTO)?;
    let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| person[at + byte]));
    let process = libc::pid_t::try_from(long(0)).map_err(|_| libc::ESRCH)?;
    let mut mark = [0_u8; MARK];
    read_from(process, long(8), mark.as_mut_ptr().cast(), MARK)?;
    if mark != person[16..] || mark == [0; MARK] {
        return Err(libc::ESRCH);
    }
    let [from, length] = request.operands;
    read_from(process, from, request.place(), length as usize)
}

fn read_from(
    process: libc::pid_t,
    mut from: u64,
    mut to: *mut c_void,
    mut length: usize,
) -> Result<(), c_int> {
    while length > 0 {
        let (local, remote) = (part(to, length), part(from as usize as *mut c_void, length));
        // SAFETY: the kernel checks the memory of both.
        let done = unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) };
        let done = match usize::try_from(done) {
            Ok(0) => return Err(libc::EFAULT),
            Ok(done) => done,
            Err(_) => return Err(last_error()),
        };
        from += done as u64;
        to = to.wrapping_byte_add(done);
        length -= done;
    }
    Ok(())
}

fn part(base: *mut c_void, length: usize) -> libc::iovec {
    libc::iovec {
        iov_base: base,
        iov_len: length,
    }
}

fn header_of(parts: &mut [libc::iovec; 2]) -> libc::msghdr {
    // SAFETY: all bits zero are a valid header.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = parts.as_mut_ptr();
    header.msg_iovlen = parts.len() as _;
    header
}

fn is_writable(address: u64) -> bool {
    // SAFETY: the system's constant.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let page = (address & !(size - 1)) as usize as *mut c_void;
    // SAFETY: the call changes no content.
    unsafe {
        let done = libc::madvise(page, size as usize, libc::MADV_POPULATE_WRITE) == 0;
        // Kernels before 5.14 do not know the advice.
        done || last_error() == libc::EINVAL
            && libc::msync(page, size as usize, libc::MS_ASYNC) == 0
    }
}
