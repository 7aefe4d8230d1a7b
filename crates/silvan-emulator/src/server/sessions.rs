//! The control channel: a command per line, and an answer per line, which numbers may follow.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use super::notices::Notices;
use super::sockets::{Address, AllowedUsers, unix_name};
use crate::clients::Clients;
use crate::command::{ControlSession, CounterRates};
use crate::error::EmulatorError;
use crate::pace::Pace;
use crate::verbs::Exchange;
use crate::view::FoundTrees;

const LONGEST_LINE: usize = 64 << 10;
const MOST_CONNECTIONS: usize = 64;
const BACKLOG: i32 = 64;

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    input: Vec<u8>,
    output: VecDeque<u8>,
    heard_at: Instant,
}

#[derive(Debug)]
pub(super) struct ControlSessions {
    pub listener: OwnedFd,
    connections: BTreeMap<u32, Connection>,
    next: u32,
}

/// Always a UNIX socket, so that the kernel identifies the peer.
fn base(address: &Address) -> String {
    match address {
        Address::Unix(base) => base.clone(),
        Address::Udp(port) => format!("udp-{port}"),
    }
}

impl ControlSessions {
    pub fn open(address: &Address) -> Result<Self, EmulatorError> {
        let base = base(address);
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let listener =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
                .map_err(EmulatorError::socket("opening the control channel"))?;
        let name = unix_name(&base, "silvan")
            .map_err(EmulatorError::socket("naming the control channel"))?;
        rustix::net::bind(&listener, &name).map_err(|error| match error {
            Errno::ADDRINUSE => EmulatorError::AddressInUse(format!("the socket name {base:?}")),
            other => EmulatorError::socket("binding the control channel")(other),
        })?;
        rustix::net::listen(&listener, BACKLOG)
            .map_err(EmulatorError::socket("opening the control channel"))?;
        Ok(Self {
            listener,
            connections: BTreeMap::new(),
            next: 0,
        })
    }

    pub fn socket(&self, session: u32) -> Option<&OwnedFd> {
        Some(&self.connections.get(&session)?.socket)
    }

    pub fn close(&mut self, session: u32) {
        self.connections.remove(&session);
    }

    pub fn accept(&mut self, users: &AllowedUsers, notices: &Notices) -> Vec<u32> {
        let mut accepted = Vec::new();
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        while let Ok(socket) = rustix::net::accept_with(&self.listener, flags) {
            let user = sockopt::socket_peercred(&socket).ok();
            let user = user.map(|user| user.uid.as_raw());
            if !user.is_some_and(|user| users.allow(user)) {
                notices.refused(user, "control the fabric");
                continue;
            }
            if self.connections.len() >= MOST_CONNECTIONS {
                // A client that keeps connections open must not lock out others.
                notices.crowded(MOST_CONNECTIONS);
                self.close_longest_silent();
            }
            self.connections.insert(
                self.next,
                Connection {
                    socket,
                    input: Vec::new(),
                    output: VecDeque::new(),
                    heard_at: Instant::now(),
                },
            );
            accepted.push(self.next);
            self.next = self.next.wrapping_add(1);
        }
        accepted
    }

    fn close_longest_silent(&mut self) {
        let silent = self.connections.iter().min_by_key(|(_, one)| one.heard_at);
        if let Some(session) = silent.map(|(&session, _)| session) {
            self.close(session);
        }
    }

    /// Answers complete lines, and returns the events to wait for; `None` at the end.
    pub fn serve(&mut self, session: u32, at: &mut Counter<'_>) -> Option<EventFlags> {
        let connection = self.connections.get_mut(&session)?;
        let flags = connection.serve(at);
        if flags.is_none() {
            self.close(session);
        }
        flags
    }
}

pub(super) struct Counter<'a> {
    pub clients: &'a mut Clients,
    pub pace: &'a mut Pace,
    pub rates: &'a CounterRates,
    pub trees: &'a mut FoundTrees,
    pub exchange: &'a Exchange,
    pub quit: &'a mut bool,
}

impl Connection {
    fn serve(&mut self, at: &mut Counter<'_>) -> Option<EventFlags> {
        if !self.answer_lines(at)? {
            return Some(EventFlags::OUT);
        }
        let mut buffer = [0; 4096];
        match rustix::net::recv(&self.socket, &mut buffer, RecvFlags::empty()) {
            Ok((0, _)) => return None,
            Ok((len, _)) => {
                self.input.extend_from_slice(&buffer[..len]);
                self.heard_at = Instant::now();
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return None,
        }
        match self.answer_lines(at)? {
            true if self.input.len() > LONGEST_LINE => None,
            true => Some(EventFlags::IN),
            false => Some(EventFlags::OUT),
        }
    }

    /// Answers lines in order; returns true if all are answered, `None` if the client has ended.
    fn answer_lines(&mut self, at: &mut Counter<'_>) -> Option<bool> {
        while self.flush()? {
            let Some(end) = self.input.iter().position(|&byte| byte == b'\n') else {
                return Some(true);
            };
            let line: Vec<u8> = self.input.drain(..=end).collect();
            let mut session = ControlSession {
                clients: &mut *at.clients,
                pace: &mut *at.pace,
                rates: at.rates,
                trees: &mut *at.trees,
                exchange: at.exchange,
                now: Instant::now(),
                quit: &mut *at.quit,
            };
            let answer = session.answer(&String::from_utf8_lossy(&line));
            self.output.extend(answer);
        }
        Some(false)
    }

    fn flush(&mut self) -> Option<bool> {
        while !self.output.is_empty() {
            let (first, _) = self.output.as_slices();
            match rustix::net::send(&self.socket, first, SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.output.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Some(false),
                Err(_) => return None,
            }
        }
        Some(true)
    }
}
