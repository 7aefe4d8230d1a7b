//! The stream to the preload library's thread in a process with an open `uverbs0`: requests for memory, completions and
//! events. See `silvan-shim` for the records.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt,
};
use silvan_core::NodeId;
use silvan_verbs::{AtomicOperation, ContextId, TransferId};

const READ: u32 = 1;
const WRITE: u32 = 2;
const COMPARE_AND_SWAP: u32 = 3;
const FETCH_AND_ADD: u32 = 4;
const COMPLETIONS: u32 = 5;
const CHANNEL_EVENT: u32 = 6;
const ASYNC_EVENT: u32 = 7;
const PROBE: u32 = 8;
const COPY: u32 = 9;
const MARK: usize = 16;

const HEADER: usize = 32;
/// In bytes.
pub(super) const CHUNK: u64 = 64 << 10;
const PROBE_INTERVAL: Duration = Duration::from_micros(150);
/// A program that is stopped must not stop all others.
const LONGEST_WORK: Duration = Duration::from_secs(1);
const SOCKET_ROOM: usize = 4 << 20;
const COMPLETION: usize = 48;

#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Fetched {
        id: TransferId,
        place: u64,
        length: u64,
    },
    Collected {
        id: TransferId,
        length: u64,
    },
    Written {
        id: TransferId,
    },
    Changed {
        id: TransferId,
    },
    /// Memory of another process is copied, or not.
    Copied {
        id: TransferId,
        from: u64,
        address: u64,
        place: u64,
        length: u64,
    },
    Probed,
}

impl Answer {
    pub fn transfer(self) -> Option<TransferId> {
        match self {
            Self::Fetched { id, .. }
            | Self::Collected { id, .. }
            | Self::Written { id }
            | Self::Copied { id, .. }
            | Self::Changed { id } => Some(id),
            Self::Probed => None,
        }
    }

    fn length(self) -> u64 {
        match self {
            Self::Fetched { length, .. } | Self::Collected { length, .. } => length,
            Self::Written { .. } | Self::Copied { .. } => 0,
            Self::Changed { .. } | Self::Probed => 8,
        }
    }
}

/// State of a program, for the clock that stands still while programs work.
#[derive(Clone, Copy, Debug)]
enum Activity {
    /// It waits for the fabric, having seen so many notices.
    Waits(u64),
    Works {
        since: Instant,
        probed: Instant,
    },
}

/// A process as another process finds it: its number, and random bytes at an address of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Person {
    number: u32,
    address: u64,
    mark: [u8; MARK],
}

impl Person {
    /// Reads what the preload library says of its process, whose number is the kernel's.
    pub fn parse(number: Option<u32>, bytes: &[u8]) -> Option<Self> {
        let (address, mark) = bytes.split_first_chunk()?;
        Some(Self {
            number: number?,
            address: u64::from_ne_bytes(*address),
            mark: mark.try_into().ok()?,
        })
    }
}

#[derive(Debug)]
pub(super) struct Process {
    stream: OwnedFd,
    pub person: Option<Person>,
    /// True if the process could not read another.
    pub reads_nobody: bool,
    pub context: ContextId,
    pub node: NodeId,
    waiting: VecDeque<Vec<u8>>,
    open: VecDeque<Answer>,
    /// Records that change what the program sees: data, completions, events.
    notices: u64,
    activity: Activity,
    watched: EventFlags,
    room: Vec<u8>,
}

pub(super) fn stream() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (own, program) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::io::ioctl_fionbio(&own, true)?;
    for end in [&own, &program] {
        // The system's limit applies if this is too much.
        let _ = sockopt::set_socket_send_buffer_size(end, SOCKET_ROOM);
    }
    Ok((own, program))
}

impl Process {
    pub fn new(stream: OwnedFd, context: ContextId, node: NodeId) -> Self {
        Self {
            stream,
            person: None,
            reads_nobody: false,
            context,
            node,
            waiting: VecDeque::new(),
            open: VecDeque::new(),
            notices: 0,
            activity: Activity::Waits(0),
            watched: EventFlags::IN,
            room: vec![0; 8 + CHUNK as usize],
        }
    }

    pub fn stream(&self) -> &OwnedFd {
        &self.stream
    }

    pub fn notices(&self) -> u64 {
        self.notices
    }

    /// Returns true if the program has requests to answer.
    pub fn expects(&self) -> bool {
        !self.open.is_empty()
    }

    pub fn into_open(self) -> VecDeque<Answer> {
        self.open
    }

    fn push(&mut self, kind: u32, place: u64, operands: [u64; 2], data: &[u8]) {
        let mut record = Vec::with_capacity(HEADER + data.len());
        record.extend(kind.to_ne_bytes());
        record.extend([0; 4]);
        record.extend(place.to_ne_bytes());
        record.extend(operands[0].to_ne_bytes());
        record.extend(operands[1].to_ne_bytes());
        record.extend(data);
        self.waiting.push_back(record);
    }

    pub fn read(&mut self, address: u64, length: u64, answer: Answer) {
        self.push(READ, address, [length, 0], &[]);
        self.open.push_back(answer);
    }

    pub fn write(&mut self, address: u64, data: &[u8], answer: Answer) {
        self.notices += 1;
        self.push(WRITE, address, [0; 2], data);
        self.open.push_back(answer);
    }

    /// Lets the process copy memory of another.
    pub fn copy(&mut self, place: u64, from: u64, length: u64, person: &Person, answer: Answer) {
        let mut data = u64::from(person.number).to_ne_bytes().to_vec();
        data.extend(person.address.to_ne_bytes());
        data.extend(person.mark);
        self.notices += 1;
        self.push(COPY, place, [from, length], &data);
        self.open.push_back(answer);
    }

    pub fn change(&mut self, address: u64, operation: AtomicOperation, answer: Answer) {
        let (kind, operands) = match operation {
            AtomicOperation::CompareAndSwap { compare, swap } => {
                (COMPARE_AND_SWAP, [compare, swap])
            }
            AtomicOperation::FetchAndAdd(value) => (FETCH_AND_ADD, [value, 0]),
        };
        self.notices += 1;
        self.push(kind, address, operands, &[]);
        self.open.push_back(answer);
    }

    /// Notes a command of the program.
    pub fn commanded(&mut self, now: Instant) {
        self.activity = Activity::Works {
            since: now,
            probed: now,
        };
    }

    /// Notes that the program waits, having seen so many notices.
    pub fn waits_after(&mut self, notices: u64) {
        self.activity = Activity::Waits(notices);
    }

    pub fn works(&mut self, now: Instant) -> bool {
        match self.activity {
            Activity::Waits(notices) if notices == self.notices => false,
            Activity::Waits(_) => {
                self.commanded(now);
                true
            }
            Activity::Works { since, .. } => now.duration_since(since) < LONGEST_WORK,
        }
    }

    /// Asks a program that neither polls nor sends whether it waits.
    pub fn probe(&mut self, now: Instant) {
        if let Activity::Works { probed, .. } = &mut self.activity {
            if now.duration_since(*probed) >= PROBE_INTERVAL {
                *probed = now;
                self.push(PROBE, 0, [0; 2], &[]);
                self.open.push_back(Answer::Probed);
            }
        }
    }

    pub fn push_completions(&mut self, queue: u32, completions: &[[u8; COMPLETION]]) {
        self.notices += 1;
        let data = completions.as_flattened();
        self.push(COMPLETIONS, queue.into(), [0; 2], data);
    }

    pub fn push_channel_event(&mut self, channel: u32, event: &[u8]) {
        self.notices += 1;
        self.push(CHANNEL_EVENT, channel.into(), [0; 2], event);
    }

    pub fn push_async_event(&mut self, event: &[u8]) {
        self.notices += 1;
        self.push(ASYNC_EVENT, 0, [0; 2], event);
    }

    pub fn flush(&mut self) -> bool {
        while let Some(record) = self.waiting.front() {
            match rustix::net::send(&self.stream, record, SendFlags::NOSIGNAL) {
                Ok(_) => drop(self.waiting.pop_front()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    pub fn watch(&mut self) -> Option<EventFlags> {
        let flags = if self.waiting.is_empty() {
            EventFlags::IN
        } else {
            EventFlags::IN | EventFlags::OUT
        };
        (std::mem::replace(&mut self.watched, flags) != flags).then_some(flags)
    }

    #[expect(clippy::type_complexity, reason = "an answer with its result")]
    pub fn receive(&mut self) -> Result<Option<(Answer, Result<Vec<u8>, Errno>)>, Errno> {
        let mut control = RecvAncillaryBuffer::new(&mut [] as &mut [MaybeUninit<u8>]);
        let mut slices = [IoSliceMut::new(&mut self.room)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let length = match rustix::net::recvmsg(&self.stream, &mut slices, &mut control, flags) {
            Ok(received) if received.bytes < 8 => return Err(Errno::CONNRESET),
            Ok(received) => received.bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(error) => return Err(error),
        };
        // An unexpected record is not the preload library's.
        let answer = self.open.pop_front().ok_or(Errno::PROTO)?;
        let (error, data) = self.room[..length].split_at(8);
        let is_done = error.iter().all(|&byte| byte == 0);
        // Surplus data would be written beyond the memory that the other process lends.
        let result = if is_done && data.len() as u64 == answer.length() {
            Ok(data.to_vec())
        } else {
            Err(Errno::FAULT)
        };
        Ok(Some((answer, result)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Process, OwnedFd) {
        let (own, program) = stream().expect("a pair of sockets");
        let process = Process::new(own, ContextId(1), NodeId::new(0));
        (process, program)
    }

    fn answer(program: &OwnedFd, bytes: &[u8]) {
        rustix::net::send(program, bytes, SendFlags::NOSIGNAL).expect("the socket takes it");
    }

    const FETCHED: Answer = Answer::Fetched {
        id: TransferId(1),
        place: 0x1000,
        length: 16,
    };

    /// A hostile program answers more, less, or without a request.
    #[test]
    fn memory_of_another_length_is_a_fault() {
        for (length, is_right) in [(16, true), (15, false), (17, false), (0, false)] {
            let (mut process, program) = pair();
            process.read(0x2000, 16, FETCHED);
            assert!(process.flush());
            answer(&program, &vec![0; 8 + length]);
            let (_, result) = process
                .receive()
                .expect("an answer")
                .expect("a whole answer");
            assert_eq!(result.is_ok(), is_right, "{length}");
        }
        let (mut process, program) = pair();
        answer(&program, &[0; 8]);
        assert_eq!(process.receive().expect_err("a fault"), Errno::PROTO);
    }

    #[test]
    fn a_program_works_until_it_has_seen_all_notices() {
        let (mut process, _program) = pair();
        let now = Instant::now();
        assert!(!process.works(now));
        process.commanded(now);
        assert!(process.works(now));
        process.waits_after(0);
        assert!(!process.works(now));
        process.push_async_event(&[0; 16]);
        process.waits_after(0);
        assert!(process.works(now));
        process.waits_after(1);
        assert!(!process.works(now));
        // A program that is stopped does not stop the others.
        process.commanded(now);
        assert!(!process.works(now + LONGEST_WORK));
    }

    #[test]
    fn an_error_of_the_program_is_a_fault() {
        let (mut process, program) = pair();
        process.write(0x2000, b"data", Answer::Written { id: TransferId(1) });
        assert!(process.flush());
        answer(&program, &14_i64.to_ne_bytes());
        let (_, result) = process
            .receive()
            .expect("an answer")
            .expect("a whole answer");
        assert_eq!(result.expect_err("a fault"), Errno::FAULT);
        drop(program);
        assert!(process.receive().is_err());
    }
}
