//! The kernel's interface for management datagrams, through libibumad (or a preload library in its place).
#![expect(
    unsafe_code,
    reason = "functions of a C library, see docs/decisions/0024-the-manager.md"
)]

use std::ffi::{CString, c_char, c_int, c_long, c_void};
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libloading::os::unix::{Library, Symbol};
use rustix::time::{ClockId, clock_gettime};
use silvan_core::{Lid, MonotonicTime, Span};
use silvan_mad::{Class, MAD_LEN, Packet};

use crate::transport::{Incoming, Outgoing, Transport, TransportError};

const LIBRARY: &str = "libibumad.so.3";
const INTERFACE: &str = "/sys/class/infiniband_mad/abi_version";
const MOST_FILES: u32 = 64;
/// `struct ib_user_mad` before the datagram (umad.h, ABI 5 with P_Key index), in bytes.
const HEADER_LEN: usize = 64;
const STATUS_AT: usize = 4;
const LID_AT: usize = 28;
const WORDS: usize = (HEADER_LEN + MAD_LEN) / 8;
const LONGEST_POLL_MS: u64 = 50;
/// Q_Key of queue pair 1 (volume 1, section 3.5.3).
const GENERAL_Q_KEY: c_int = 0x8001_0000_u32 as c_int;

type Init = unsafe extern "C" fn() -> c_int;
type OpenPort = unsafe extern "C" fn(*const c_char, c_int) -> c_int;
type ClosePort = unsafe extern "C" fn(c_int) -> c_int;
type Size = unsafe extern "C" fn() -> usize;
type Register = unsafe extern "C" fn(c_int, c_int, c_int, u8, *const c_long) -> c_int;
type SetAddress = unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, c_int) -> c_int;
type Send = unsafe extern "C" fn(c_int, c_int, *mut c_void, c_int, c_int, c_int) -> c_int;
type Receive = unsafe extern "C" fn(c_int, *mut c_void, *mut c_int, c_int) -> c_int;
type Poll = unsafe extern "C" fn(c_int, c_int) -> c_int;

unsafe extern "C" {
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn close(file: c_int) -> c_int;
}

const O_RDONLY: c_int = 0;
const O_RDWR: c_int = 2;

/// Valid as long as the library is open.
struct Functions {
    set_address: Symbol<SetAddress>,
    send: Symbol<Send>,
    receive: Symbol<Receive>,
    poll: Symbol<Poll>,
    close_port: Symbol<ClosePort>,
    _library: Library,
}

const CLASSES: [(Class, c_int); 4] = [
    (Class::SUBNET_DIRECTED, 1),
    (Class::SUBNET_LID, 1),
    (Class::PERFORMANCE, 1),
    (Class::CONGESTION_CONTROL, 2),
];

/// The time since the machine was started. It counts on while the machine is suspended, as applications' waiting does.
pub fn clock() -> MonotonicTime {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let ns = u64::try_from(time.tv_nsec).unwrap_or(0);
    MonotonicTime::from_ns(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
}

/// A port opened through libibumad.
pub struct UmadTransport {
    functions: Functions,
    port: c_int,
    agents: [c_int; CLASSES.len()],
}

impl UmadTransport {
    /// Opens an adapter's port, by default the first active one.
    pub fn open(device: Option<&str>, port: u8) -> Result<Self, TransportError> {
        // Before the library: it prints a warning of its own where the interface is missing.
        if try_open(INTERFACE, O_RDONLY).is_err() {
            return Err(match denied() {
                Some(file) => TransportError::Denied(file),
                None => TransportError::NoModule(INTERFACE),
            });
        }
        // SAFETY: libibumad has no constructors with preconditions.
        let library = unsafe { Library::new(LIBRARY) }?;
        // SAFETY: the types are those of the declarations in umad.h, whose ABI is fixed by the library's version 3.
        let (init, open_port, size, register, functions) = unsafe {
            (
                library.get::<Init>(b"umad_init\0")?,
                library.get::<OpenPort>(b"umad_open_port\0")?,
                library.get::<Size>(b"umad_size\0")?,
                library.get::<Register>(b"umad_register\0")?,
                Functions {
                    set_address: library.get(b"umad_set_addr\0")?,
                    send: library.get(b"umad_send\0")?,
                    receive: library.get(b"umad_recv\0")?,
                    poll: library.get(b"umad_poll\0")?,
                    close_port: library.get(b"umad_close_port\0")?,
                    _library: library,
                },
            )
        };
        let failed = |error| TransportError::Open {
            port: name_of(device, port),
            error,
        };
        let name = device.map(CString::new).transpose();
        let name = name.map_err(|error| failed(error.into()))?;
        let pointer = name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
        // SAFETY: no preconditions; the name ends with a zero and lives until the call is over.
        let opened = unsafe {
            init();
            open_port(pointer, c_int::from(port))
        };
        if opened < 0 {
            return Err(match denied() {
                Some(file) => TransportError::Denied(file),
                None => failed(io::Error::from_raw_os_error(-opened)),
            });
        }
        let mut transport = Self {
            functions,
            port: opened,
            agents: [-1; CLASSES.len()],
        };
        // SAFETY: no preconditions.
        if unsafe { size() } != HEADER_LEN {
            let error = io::Error::other("the kernel's interface is older than Linux 2.6.24");
            return Err(failed(error));
        }
        for (agent, (class, version)) in transport.agents.iter_mut().zip(CLASSES) {
            // SAFETY: the port is open; without a method mask nothing is read through the pointer.
            *agent =
                unsafe { register(opened, class.code() as c_int, version, 0, std::ptr::null()) };
            if *agent < 0 {
                return Err(failed(io::Error::from_raw_os_error(-*agent)));
            }
        }
        Ok(transport)
    }

    fn take(&mut self) -> Result<Option<Incoming>, TransportError> {
        let mut buffer = [0_u64; WORDS];
        let mut length = MAD_LEN as c_int;
        // SAFETY: the buffer has room for the header and as many bytes as `length` says.
        let agent = unsafe {
            (self.functions.receive)(self.port, buffer.as_mut_ptr().cast(), &mut length, 0)
        };
        if agent < 0 {
            let error = io::Error::from_raw_os_error(-agent);
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(TransportError::Lost(error)),
            };
        }
        let bytes = to_bytes(&buffer);
        let status = u32::from_ne_bytes([
            bytes[STATUS_AT],
            bytes[STATUS_AT + 1],
            bytes[STATUS_AT + 2],
            bytes[STATUS_AT + 3],
        ]);
        let mut mad = [0; MAD_LEN];
        mad.copy_from_slice(&bytes[HEADER_LEN..]);
        Ok(Some(Incoming {
            source: Lid::new(u16::from_be_bytes([bytes[LID_AT], bytes[LID_AT + 1]])),
            unanswered: status != 0,
            mad,
        }))
    }
}

/// Opens a file, and closes it, by the functions that preload libraries replace.
fn try_open(path: &str, flags: c_int) -> io::Result<()> {
    let path = CString::new(path)?;
    // SAFETY: the path ends with a zero; without O_CREAT there is no third argument.
    let file = unsafe { open(path.as_ptr(), flags) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the file is open, and is not used afterwards.
    unsafe { close(file) };
    Ok(())
}

fn denied() -> Option<String> {
    let files = (0..MOST_FILES).map(|number| format!("/dev/infiniband/umad{number}"));
    let mut refused = files.map(|file| (try_open(&file, O_RDWR), file));
    refused.find_map(|(opened, file)| {
        let error = opened.err()?;
        (error.kind() == io::ErrorKind::PermissionDenied).then_some(file)
    })
}

fn name_of(device: Option<&str>, port: u8) -> String {
    match (device, port) {
        (Some(device), 0) => format!("an active port of {device}"),
        (Some(device), port) => format!("port {port} of {device}"),
        (None, _) => "an active InfiniBand port".to_owned(),
    }
}

fn to_bytes(words: &[u64; WORDS]) -> [u8; HEADER_LEN + MAD_LEN] {
    let mut bytes = [0; HEADER_LEN + MAD_LEN];
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

impl Transport for UmadTransport {
    fn now(&mut self) -> MonotonicTime {
        clock()
    }

    fn unix_time(&mut self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    }

    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<(), TransportError> {
        let class = Packet::new(outgoing.mad).class();
        let Some(location) = CLASSES.iter().position(|(known, _)| *known == class) else {
            return Ok(());
        };
        let subnet_management = matches!(class, Class::SUBNET_DIRECTED | Class::SUBNET_LID);
        let (queue_pair, q_key) = if subnet_management {
            (0, 0)
        } else {
            (1, GENERAL_Q_KEY)
        };
        let mut buffer = [0_u64; WORDS];
        for (word, bytes) in buffer[HEADER_LEN / 8..]
            .iter_mut()
            .zip(outgoing.mad.chunks_exact(8))
        {
            let mut eight = [0; 8];
            eight.copy_from_slice(bytes);
            *word = u64::from_ne_bytes(eight);
        }
        let timeout_ms = outgoing.timeout.as_ps().div_ceil(1_000_000_000);
        // SAFETY: the buffer holds a header and a datagram of the length given.
        let sent = unsafe {
            let pointer = buffer.as_mut_ptr().cast();
            (self.functions.set_address)(
                pointer,
                c_int::from(outgoing.destination.as_u16()),
                queue_pair,
                0,
                q_key,
            );
            (self.functions.send)(
                self.port,
                self.agents[location],
                pointer,
                MAD_LEN as c_int,
                c_int::try_from(timeout_ms).unwrap_or(c_int::MAX),
                0,
            )
        };
        if sent >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // The send queue is full for now.
            Some(code) if is_passing(code) => Ok(()),
            _ => Err(TransportError::Lost(error)),
        }
    }

    fn receive(&mut self, limit: Span) -> Result<Option<Incoming>, TransportError> {
        let began = self.now();
        loop {
            if let Some(incoming) = self.take()? {
                return Ok(Some(incoming));
            }
            let waited = self.now().checked_since(began);
            let left = waited.map_or(Span::ZERO, |waited| limit.saturating_sub(waited));
            if left.is_zero() {
                return Ok(None);
            }
            let ms = left.as_ps().div_ceil(1_000_000_000).min(LONGEST_POLL_MS);
            // SAFETY: the port is open. The result does not matter: the next pass checks for datagrams.
            unsafe { (self.functions.poll)(self.port, ms as c_int) };
        }
    }

    fn pause(&mut self, span: Span) {
        std::thread::sleep(Duration::from_nanos(span.as_ps() / 1_000));
    }
}

fn is_passing(code: i32) -> bool {
    use rustix::io::Errno;
    [Errno::AGAIN, Errno::NOMEM, Errno::INTR, Errno::NOBUFS]
        .iter()
        .any(|errno| errno.raw_os_error() == code)
}

impl Drop for UmadTransport {
    fn drop(&mut self) {
        // SAFETY: the port is open, and is not used afterwards.
        unsafe { (self.functions.close_port)(self.port) };
    }
}
