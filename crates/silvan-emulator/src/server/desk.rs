//! The control channel: a stream of lines, each a command, and a line for each as the answer.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use super::sockets::{Address, AllowedUsers, unix_name};
use crate::clients::Clients;
use crate::command::{Desk, Rates};
use crate::error::EmulatorError;
use crate::pace::Pace;

/// Longest line; whoever sends more is no client of ours.
const LONGEST_LINE: usize = 64 << 10;
/// How many wait to be accepted.
const BACKLOG: i32 = 64;

/// A connection.
#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    input: Vec<u8>,
}

/// All connections.
#[derive(Debug)]
pub(super) struct Desks {
    pub listener: OwnedFd,
    connections: BTreeMap<u32, Connection>,
    next: u32,
}

/// Name under which the control channel of a server is found: always a UNIX socket, so that the kernel
/// tells who is there.
fn base(address: &Address) -> String {
    match address {
        Address::Unix(base) => base.clone(),
        Address::Udp(port) => format!("udp-{port}"),
    }
}

impl Desks {
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

    pub fn socket(&self, desk: u32) -> Option<&OwnedFd> {
        Some(&self.connections.get(&desk)?.socket)
    }

    pub fn close(&mut self, desk: u32) {
        self.connections.remove(&desk);
    }

    /// Takes those who may come in.
    pub fn accept(&mut self, users: &AllowedUsers) -> Vec<u32> {
        let mut accepted = Vec::new();
        // Blocking answers: a client that does not read what it has asked for is cut off by a timeout.
        while let Ok(socket) = rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC) {
            let user = sockopt::socket_peercred(&socket);
            if !user.is_ok_and(|user| users.allow(user.uid.as_raw())) {
                continue;
            }
            let patience = Some(std::time::Duration::from_secs(1));
            if sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, patience).is_err() {
                continue;
            }
            self.connections.insert(
                self.next,
                Connection {
                    socket,
                    input: Vec::new(),
                },
            );
            accepted.push(self.next);
            self.next = self.next.wrapping_add(1);
        }
        accepted
    }

    /// Takes what has come in, and answers complete lines.
    pub fn serve(
        &mut self,
        desk: u32,
        clients: &mut Clients,
        pace: &mut Pace,
        rates: &Rates,
        quit: &mut bool,
    ) {
        let Some(connection) = self.connections.get_mut(&desk) else {
            return;
        };
        let mut buffer = [0; 4096];
        let open = match rustix::net::recv(&connection.socket, &mut buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => false,
            Ok((len, _)) => {
                connection.input.extend_from_slice(&buffer[..len]);
                connection.input.len() <= LONGEST_LINE
            }
            Err(Errno::AGAIN | Errno::INTR) => true,
            Err(_) => false,
        };
        let mut answered = true;
        while let Some(end) = connection.input.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = connection.input.drain(..=end).collect();
            let mut desk = Desk {
                clients: &mut *clients,
                pace: &mut *pace,
                rates,
                now: Instant::now(),
                quit: &mut *quit,
            };
            let mut answer = desk.answer(&String::from_utf8_lossy(&line));
            answer.push('\n');
            answered &= send_all(&connection.socket, answer.as_bytes());
        }
        if !open || !answered {
            self.close(desk);
        }
    }
}

fn send_all(socket: &OwnedFd, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match rustix::net::send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}
