//! Datagram sockets as umad2sim expects them: abstract UNIX names, or UDP on the loopback.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrAny,
    SocketAddrUnix, SocketFlags, SocketType, sockopt,
};

use crate::error::EmulatorError;
use crate::wire::{DATA_LEN, Message};

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Address of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Abstract UNIX sockets whose names start so (IBSIM_SOCKNAME).
    Unix(String),
    /// UDP on the loopback from this port on (IBSIM_SERVER_PORT).
    Udp(u16),
}

/// Users who may attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedUsers {
    /// Users by user id.
    Ids(Vec<u32>),
    /// Everybody.
    Everybody,
}

impl AllowedUsers {
    pub(crate) fn allow(&self, id: u32) -> bool {
        match self {
            Self::Ids(ids) => ids.contains(&id),
            Self::Everybody => true,
        }
    }
}

/// Abstract name with a final zero byte, as in umad2sim.
pub(crate) fn unix_name(base: &str, role: &str) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new_abstract_name(format!("{base}:{role}\0").as_bytes())
}

pub(crate) enum Received {
    Datagram(usize, Option<SocketAddrAny>),
    Foreign(Option<u32>, Option<SocketAddrAny>),
    Empty,
    Gone,
}

/// `allowed` are permitted senders; `None` if the kernel cannot identify them.
pub(crate) fn receive(
    socket: &OwnedFd,
    buffer: &mut [u8],
    allowed: Option<&AllowedUsers>,
) -> Received {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(buffer)];
    let message = match rustix::net::recvmsg(socket, &mut slices, &mut control, RecvFlags::empty())
    {
        Ok(message) => message,
        Err(Errno::CONNREFUSED | Errno::CONNRESET | Errno::NOTCONN) => return Received::Gone,
        Err(_) => return Received::Empty,
    };
    let Some(allowed) = allowed else {
        return Received::Datagram(message.bytes, message.address);
    };
    let user = control.drain().find_map(|part| match part {
        RecvAncillaryMessage::ScmCredentials(user) => Some(user.uid.as_raw()),
        _ => None,
    });
    match user {
        Some(user) if allowed.allow(user) => Received::Datagram(message.bytes, message.address),
        user => Received::Foreign(user, message.address),
    }
}

impl Address {
    pub(crate) fn open(&self, role: &str, offset: u16) -> Result<OwnedFd, EmulatorError> {
        match self {
            Self::Unix(base) => {
                let socket =
                    rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, FLAGS, None)
                        .map_err(EmulatorError::socket("opening a socket"))?;
                sockopt::set_socket_passcred(&socket, true)
                    .map_err(EmulatorError::socket("asking for credentials"))?;
                let name =
                    unix_name(base, role).map_err(EmulatorError::socket("naming a socket"))?;
                rustix::net::bind(&socket, &name).map_err(|error| match error {
                    Errno::ADDRINUSE => {
                        EmulatorError::AddressInUse(format!("the socket name {base:?}"))
                    }
                    other => EmulatorError::socket("binding a socket")(other),
                })?;
                Ok(socket)
            }
            Self::Udp(first) => {
                let port = first
                    .checked_add(offset)
                    .ok_or_else(|| EmulatorError::AddressInUse(format!("UDP port {first}")))?;
                let socket =
                    rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, FLAGS, None)
                        .map_err(EmulatorError::socket("opening a socket"))?;
                let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
                rustix::net::bind(&socket, &address).map_err(|error| match error {
                    Errno::ADDRINUSE => EmulatorError::AddressInUse(format!("UDP port {port}")),
                    other => EmulatorError::socket("binding a socket")(other),
                })?;
                Ok(socket)
            }
        }
    }

    pub(crate) fn connect(&self, socket: &OwnedFd, id: u32) -> Result<(), Errno> {
        match self {
            Self::Unix(base) => rustix::net::connect(socket, &unix_name(base, &format!("in{id}"))?),
            Self::Udp(_) => {
                let port = u16::try_from(id).map_err(|_| Errno::INVAL)?;
                let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
                rustix::net::connect(socket, &address)
            }
        }
    }

    /// Also true if that is unknown.
    pub(crate) fn is_alive(&self, id: u32) -> bool {
        if let Self::Udp(_) = self {
            return !port_is_free(id);
        }
        let probe = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, FLAGS, None);
        let Ok(probe) = probe else {
            return true;
        };
        // EPERM: the socket exists, connected to the server.
        !matches!(self.connect(&probe, id), Err(Errno::CONNREFUSED))
    }
}

fn port_is_free(port: u32) -> bool {
    let probe = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, FLAGS, None);
    let (Ok(probe), Ok(port)) = (probe, u16::try_from(port)) else {
        return false;
    };
    rustix::net::bind(&probe, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[derive(Debug)]
pub(crate) struct Channel {
    pub socket: OwnedFd,
    pub id: u32,
    waiting: VecDeque<Message>,
    pub watched: epoll::EventFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    All,
    Waiting,
    Gone,
    Full,
}

const MOST_WAITING: usize = 16 << 10;

impl Channel {
    pub fn new(socket: OwnedFd, id: u32) -> Self {
        Self {
            socket,
            id,
            waiting: VecDeque::new(),
            watched: epoll::EventFlags::IN,
        }
    }

    pub fn send(&mut self, message: &Message) -> Sent {
        let sent = match self.waiting.is_empty() {
            true => self.try_send(message),
            false => Sent::Waiting,
        };
        if sent == Sent::Waiting {
            if self.waiting.len() >= MOST_WAITING {
                return Sent::Full;
            }
            self.waiting.push_back(message.clone());
        }
        sent
    }

    pub fn flush(&mut self) -> Sent {
        while let Some(message) = self.waiting.front() {
            match self.try_send(message) {
                Sent::All => drop(self.waiting.pop_front()),
                other => return other,
            }
        }
        Sent::All
    }

    fn try_send(&self, message: &Message) -> Sent {
        let bytes: &[u8; DATA_LEN] = &message.bytes;
        match rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL) {
            Ok(_) => Sent::All,
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Sent::Waiting,
            Err(_) => Sent::Gone,
        }
    }
}
