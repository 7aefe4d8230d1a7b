//! Sockets of the preload library's files: umad, issm and the files of sysfs.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{IoSlice, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::event::epoll::EventFlags;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sockopt,
};
use silvan_core::Time;
use silvan_verbs::CmFile;

use super::clock::Clock;
use super::notices::Notices;
use super::sockets::{Address, AllowedUsers, unix_name};
use super::verbs::{Person, RdmaPrograms};
use crate::clients::Clients;
use crate::error::EmulatorError;
use crate::sysfs::Sysfs;
use crate::umad::{self, Hello, Ioctl, Operation, Written};
use crate::wire::Message;

const BACKLOG: i32 = 1024;
const LONGEST_RECORD: usize = 64 << 10;
/// Longest datagram of several packets, in bytes.
const LONGEST_DATAGRAM: u64 = 256 << 20;
const MOST_WAITING: usize = 16 << 10;
const TURN: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    New,
    Mad {
        client: u16,
        has_p_key: bool,
        has_agents: bool,
    },
    IsSm {
        client: u16,
    },
    Verbs {
        process: u64,
    },
    Connections(CmFile),
}

pub(super) struct Fabric<'a> {
    pub clients: &'a mut Clients,
    pub rdma: Option<&'a mut RdmaPrograms>,
    pub clock: Option<&'a Clock>,
    /// Latest time that a program's clock shows.
    pub shown: Time,
}

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    user: u32,
    process: Option<u32>,
    watched: EventFlags,
    name: Vec<u8>,
    role: Role,
    waiting: VecDeque<Vec<u8>>,
}

#[derive(Debug)]
pub(super) struct Files {
    pub listener: OwnedFd,
    connections: BTreeMap<u32, Connection>,
    of_clients: BTreeMap<u16, u32>,
    names: BTreeMap<Vec<u8>, u32>,
    next: u32,
    folder: Folder,
}

impl Files {
    pub fn open(address: &Address) -> Result<Self, EmulatorError> {
        let base = match address {
            Address::Unix(base) => base.clone(),
            Address::Udp(port) => format!("udp-{port}"),
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let failed = EmulatorError::socket("opening the files' socket");
        let listener =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
                .map_err(&failed)?;
        let name = unix_name(&base, "umad").map_err(&failed)?;
        rustix::net::bind(&listener, &name).map_err(|error| match error {
            Errno::ADDRINUSE => EmulatorError::AddressInUse(format!("the socket name {base:?}")),
            other => failed(other),
        })?;
        rustix::net::listen(&listener, BACKLOG).map_err(&failed)?;
        Ok(Self {
            listener,
            connections: BTreeMap::new(),
            of_clients: BTreeMap::new(),
            names: BTreeMap::new(),
            next: 0,
            folder: Folder::default(),
        })
    }

    pub fn socket(&self, connection: u32) -> Option<&OwnedFd> {
        Some(&self.connections.get(&connection)?.socket)
    }

    pub fn accept(&mut self, users: &AllowedUsers, notices: &Notices) -> Vec<u32> {
        let mut accepted = Vec::new();
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        while let Ok((socket, name)) = rustix::net::acceptfrom_with(&self.listener, flags) {
            let user = sockopt::socket_peercred(&socket).ok();
            let process = user.map(|user| user.pid.as_raw_nonzero().get());
            let user = user.map(|user| user.uid.as_raw());
            let Some(user) = user.filter(|user| users.allow(*user)) else {
                notices.refused(user, "attach");
                let refusal = Errno::ACCESS.raw_os_error().to_ne_bytes();
                let _ = rustix::net::send(&socket, &refusal, SendFlags::NOSIGNAL);
                continue;
            };
            let name = name.and_then(|name| rustix::net::SocketAddrUnix::try_from(name).ok());
            let name = name.and_then(|name| name.abstract_name().map(<[u8]>::to_vec));
            let connection = Connection {
                socket,
                user,
                process: process.and_then(|process| process.try_into().ok()),
                watched: EventFlags::IN,
                name: name.unwrap_or_default(),
                role: Role::New,
                waiting: VecDeque::new(),
            };
            self.connections.insert(self.next, connection);
            accepted.push(self.next);
            self.next = self.next.wrapping_add(1);
        }
        accepted
    }

    pub fn serve(
        &mut self,
        number: u32,
        flags: EventFlags,
        fabric: &mut Fabric<'_>,
    ) -> Result<Option<EventFlags>, EmulatorError> {
        let Some(connection) = self.connections.get_mut(&number) else {
            return Ok(None);
        };
        let mut going = true;
        if flags.contains(EventFlags::OUT) {
            going = connection.flush();
        }
        for _ in 0..TURN {
            let Some(connection) = self.connections.get(&number).filter(|_| going) else {
                break;
            };
            match receive(&connection.socket) {
                Ok(Some(record)) => {
                    // A program waits for the answer to its command.
                    let is_last = matches!(connection.role, Role::Verbs { .. });
                    going = self.record(number, &record, fabric)?;
                    if is_last {
                        break;
                    }
                }
                Ok(None) => break,
                Err(_) => going = false,
            }
        }
        if going {
            return Ok(Some(if self.waits(number) {
                EventFlags::IN | EventFlags::OUT
            } else {
                EventFlags::IN
            }));
        }
        self.close(number, fabric)?;
        Ok(None)
    }

    /// Notes what a file's socket is watched for; returns true if that is new.
    pub fn set_watched(&mut self, number: u32, flags: EventFlags) -> bool {
        let connection = self.connections.get_mut(&number);
        connection.is_some_and(|one| std::mem::replace(&mut one.watched, flags) != flags)
    }

    pub fn close(&mut self, number: u32, fabric: &mut Fabric<'_>) -> Result<(), EmulatorError> {
        let Some(connection) = self.connections.remove(&number) else {
            return Ok(());
        };
        if self.names.get(&connection.name) == Some(&number) {
            self.names.remove(&connection.name);
        }
        match (connection.role, &mut fabric.rdma) {
            (Role::Mad { client, .. } | Role::IsSm { client }, _) => {
                self.of_clients.remove(&client);
                fabric.clients.disconnect(client);
            }
            (Role::Connections(file), Some(rdma)) => rdma.close_connections(file),
            (Role::Verbs { process }, Some(rdma)) => {
                rdma.close(process, &mut fabric.clients.subnet)?;
            }
            _ => {}
        }
        Ok(())
    }

    pub fn send(&mut self, client: u16, message: &Message) -> Option<(u32, bool)> {
        let number = *self.of_clients.get(&client)?;
        let connection = self.connections.get_mut(&number)?;
        let Role::Mad { has_p_key, .. } = connection.role else {
            return None;
        };
        let bytes = umad::emit(message, has_p_key);
        Some((number, connection.send(bytes)))
    }

    pub fn waits(&self, number: u32) -> bool {
        let connection = self.connections.get(&number);
        connection.is_some_and(|connection| !connection.waiting.is_empty())
    }

    fn record(
        &mut self,
        number: u32,
        record: &[u8],
        fabric: &mut Fabric<'_>,
    ) -> Result<bool, EmulatorError> {
        let Fabric {
            clients,
            rdma,
            shown,
            ..
        } = fabric;
        let Some(connection) = self.connections.get_mut(&number) else {
            return Ok(false);
        };
        match connection.role {
            Role::Mad {
                client, has_p_key, ..
            } => {
                match Written::parse(record, has_p_key) {
                    Some(written) => clients.written(client, written),
                    None => clients.traffic.dropped += 1,
                }
                return Ok(true);
            }
            Role::IsSm { .. } => return Ok(true),
            Role::Verbs { process } => {
                let answer = match rdma {
                    Some(rdma) => rdma.command(process, record, *shown, &mut clients.subnet)?,
                    None => None,
                };
                return Ok(answer.is_some_and(|answer| {
                    // A report has no answer.
                    answer.is_empty() || connection.send(answer)
                }));
            }
            Role::Connections(file) => {
                let subnet = &clients.subnet;
                let answer = rdma
                    .as_mut()
                    .map(|rdma| rdma.connection_command(file, record, subnet));
                return Ok(answer.is_some_and(|answer| connection.send(answer)));
            }
            Role::New => {}
        }
        let Some(hello) = Hello::parse(record) else {
            return Ok(false);
        };
        if hello.operation == Operation::OpenVerbs {
            return Ok(self.open_verbs(number, &hello, fabric));
        }
        if hello.operation == Operation::OpenConnections {
            return Ok(self.open_connections(number, &hello, fabric));
        }
        if hello.operation == Operation::OpenClock {
            let file = fabric.clock.map_or(Err(Errno::NODEV), Clock::file);
            let _ = match file {
                Ok(file) => send_with_file(&connection.socket, &[0; 4], &file),
                Err(error) => {
                    connection.send(error.raw_os_error().to_ne_bytes().to_vec());
                    Ok(())
                }
            };
            return Ok(false);
        }
        let stays = matches!(hello.operation, Operation::OpenMad | Operation::OpenIsSm);
        let answer = match hello.operation {
            Operation::OpenMad | Operation::OpenIsSm => self
                .open_device(number, &hello, clients)
                .map(|()| Vec::new()),
            Operation::Ioctl => self.ioctl(number, &hello.data, clients),
            Operation::Tree => self.tree(&hello.node, clients),
            Operation::Read => read(&hello, clients),
            Operation::OpenVerbs | Operation::OpenClock | Operation::OpenConnections => {
                Err(Errno::INVAL)
            }
        };
        let (error, data) = match answer {
            Ok(data) => (0, data),
            Err(error) => (error.raw_os_error(), Vec::new()),
        };
        let mut reply = error.to_ne_bytes().to_vec();
        reply.extend(data);
        Ok(self
            .connections
            .get_mut(&number)
            .is_some_and(|connection| connection.send(reply))
            && stays
            && error == 0)
    }

    fn open_verbs(&mut self, number: u32, hello: &Hello, fabric: &mut Fabric<'_>) -> bool {
        let Fabric { clients, rdma, .. } = fabric;
        let process = self.connections.get(&number).and_then(|one| one.process);
        let opened = match (clients.node_or_default(&hello.node), rdma, &hello.data[..]) {
            (Some(node), Some(rdma), [0, about @ ..]) => {
                let person = Person::parse(process, about);
                rdma.open(&clients.subnet, node, person)
            }
            _ => Err(Errno::NODEV),
        };
        let Some(connection) = self.connections.get_mut(&number) else {
            return false;
        };
        match opened {
            Ok(opened) => {
                connection.role = Role::Verbs {
                    process: opened.process,
                };
                send_with_file(&connection.socket, &[0; 4], &opened.stream).is_ok()
            }
            Err(error) => {
                connection.send(error.raw_os_error().to_ne_bytes().to_vec());
                false
            }
        }
    }

    fn open_connections(&mut self, number: u32, hello: &Hello, fabric: &mut Fabric<'_>) -> bool {
        let Fabric { clients, rdma, .. } = fabric;
        let opened = match (clients.node_or_default(&hello.node), rdma) {
            (Some(node), Some(rdma)) => rdma.open_connections(&clients.subnet, node),
            _ => Err(Errno::NODEV),
        };
        let Some(connection) = self.connections.get_mut(&number) else {
            return false;
        };
        match opened {
            Ok((file, stream)) => {
                connection.role = Role::Connections(file);
                let mut answer = vec![0; 4];
                answer.extend(file.0.to_ne_bytes());
                send_with_file(&connection.socket, &answer, &stream).is_ok()
            }
            Err(error) => {
                connection.send(error.raw_os_error().to_ne_bytes().to_vec());
                false
            }
        }
    }

    fn open_device(
        &mut self,
        number: u32,
        hello: &Hello,
        clients: &mut Clients,
    ) -> Result<(), Errno> {
        let node = clients.node_or_default(&hello.node).ok_or(Errno::NODEV)?;
        let device = hello.data.first().copied().ok_or(Errno::INVAL)?;
        let files = Sysfs {
            subnet: &mut clients.subnet,
            node,
        };
        let port = files.port_of_device(device).ok_or(Errno::NXIO)?;
        let connection = self.connections.get_mut(&number).ok_or(Errno::BADF)?;
        if hello.operation == Operation::OpenIsSm {
            let client = clients.open_issm(&hello.node, port)?;
            connection.role = Role::IsSm { client };
            return Ok(());
        }
        let client = clients.open_file(&hello.node, port)?;
        connection.role = Role::Mad {
            client,
            has_p_key: false,
            has_agents: false,
        };
        self.of_clients.insert(client, number);
        self.names.insert(connection.name.clone(), number);
        Ok(())
    }

    fn ioctl(&mut self, from: u32, data: &[u8], clients: &mut Clients) -> Result<Vec<u8>, Errno> {
        let word = |at: usize| {
            let bytes: Option<[u8; 4]> = data.get(at..at + 4).and_then(|part| part.try_into().ok());
            bytes.map(u32::from_ne_bytes).ok_or(Errno::INVAL)
        };
        let (command, length) = (word(0)?, word(4)? as usize);
        let name = data.get(8..8 + length).ok_or(Errno::INVAL)?;
        let mut argument = data[8 + length..].to_vec();
        let user = self.connections.get(&from).ok_or(Errno::BADF)?.user;
        let file = self.names.get(name).ok_or(Errno::BADF)?;
        let connection = self.connections.get_mut(file).ok_or(Errno::BADF)?;
        let Role::Mad {
            client,
            has_p_key,
            has_agents,
        } = &mut connection.role
        else {
            return Err(Errno::BADF);
        };
        if connection.user != user {
            return Err(Errno::ACCESS);
        }
        match Ioctl::parse(command, &argument).ok_or(Errno::NOTTY)? {
            Ioctl::EnablePKey if *has_agents => return Err(Errno::INVAL),
            Ioctl::EnablePKey => *has_p_key = true,
            Ioctl::Unregister(agent) => clients.unregister(*client, agent)?,
            Ioctl::Register(wanted) => {
                let agent = clients.register(*client, wanted)?;
                *has_agents = true;
                Ioctl::set_agent(&mut argument, agent);
            }
        }
        Ok(argument)
    }

    fn tree(&mut self, name: &str, clients: &mut Clients) -> Result<Vec<u8>, Errno> {
        let node = clients.node_or_default(name).ok_or(Errno::NODEV)?;
        let files = Sysfs {
            subnet: &mut clients.subnet,
            node,
        };
        let folder = self.folder.of_node(files);
        let folder = folder.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(folder.into_os_string().into_encoded_bytes())
    }
}

fn read(hello: &Hello, clients: &mut Clients) -> Result<Vec<u8>, Errno> {
    let node = clients.node_or_default(&hello.node).ok_or(Errno::NODEV)?;
    let path = std::str::from_utf8(&hello.data).map_err(|_| Errno::NOENT)?;
    let mut files = Sysfs {
        subnet: &mut clients.subnet,
        node,
    };
    files.text(path).map(String::into_bytes).ok_or(Errno::NOENT)
}

fn receive(socket: &OwnedFd) -> Result<Option<Vec<u8>>, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut buffer = vec![0; LONGEST_RECORD];
    let mut slices = [std::io::IoSliceMut::new(&mut buffer)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = match rustix::net::recvmsg(socket, &mut slices, &mut control, flags) {
        Ok(received) if received.bytes == 0 => return Err(Errno::CONNRESET),
        Ok(received) => received.bytes,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    let Some(file) = files.next() else {
        buffer.truncate(received);
        return Ok(Some(buffer));
    };
    let mut whole = Vec::new();
    let mut file = fs::File::from(file);
    let read = file
        .rewind()
        .and_then(|()| file.take(LONGEST_DATAGRAM).read_to_end(&mut whole));
    read.map_err(|_| Errno::IO)?;
    Ok(Some(whole))
}

impl Connection {
    fn send(&mut self, record: Vec<u8>) -> bool {
        if self.waiting.len() >= MOST_WAITING {
            return false;
        }
        self.waiting.push_back(record);
        self.flush()
    }

    fn flush(&mut self) -> bool {
        while let Some(record) = self.waiting.front() {
            match transmit(&self.socket, record) {
                Ok(()) => drop(self.waiting.pop_front()),
                Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

fn transmit(socket: &OwnedFd, record: &[u8]) -> Result<(), Errno> {
    if record.len() <= LONGEST_RECORD {
        return rustix::net::send(socket, record, SendFlags::NOSIGNAL).map(drop);
    }
    let file = rustix::fs::memfd_create("silvan-mad", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = fs::File::from(file);
    file.write_all(record).map_err(|_| Errno::IO)?;
    send_with_file(socket, &record[..1], file)
}

fn send_with_file(socket: &OwnedFd, record: &[u8], file: impl AsFd) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&files));
    let first = [IoSlice::new(record)];
    rustix::net::sendmsg(socket, &first, &mut control, SendFlags::NOSIGNAL).map(drop)
}

const FOLDERS: &str = "silvan-fabric-";

/// A folder of sysfs files, removed with the server. A lock marks it as in use: process numbers of killed servers are
/// reused, also in other containers.
#[derive(Debug, Default)]
struct Folder {
    made: Option<(PathBuf, OwnedFd)>,
}

impl Folder {
    fn path(&mut self) -> std::io::Result<&Path> {
        if self.made.is_none() {
            let base = std::env::temp_dir();
            remove_abandoned(&base);
            let process = rustix::process::getpid().as_raw_nonzero();
            let mut number = 0;
            let made = loop {
                let path = base.join(format!("{FOLDERS}{process}-{number}"));
                match fs::DirBuilder::new().mode(0o755).create(&path) {
                    // Another server may have removed it as abandoned before it was locked.
                    Ok(()) => match lock(&path)? {
                        Some(lock) => break (path, lock),
                        None => continue,
                    },
                    Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                    Err(error) => return Err(error),
                }
            };
            self.made = Some(made);
        }
        let made = self.made.as_ref();
        made.map(|(path, _)| path.as_path())
            .ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }

    fn of_node(&mut self, mut files: Sysfs<'_>) -> std::io::Result<PathBuf> {
        let root = self.path()?.join(files.node.index().to_string());
        if !root.exists() {
            let making = root.with_extension("new");
            write_tree(&mut files, &making)?;
            fs::rename(making, &root)?;
        }
        Ok(root)
    }
}

/// `None` if another process holds the lock, or the folder is gone.
fn lock(path: &Path) -> std::io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let locked = rustix::fs::fstat(&folder)?;
    let is_there = rustix::fs::lstat(path)
        .is_ok_and(|now| (now.st_dev, now.st_ino) == (locked.st_dev, locked.st_ino));
    Ok(is_there.then_some(folder))
}

fn remove_abandoned(base: &Path) {
    let own = rustix::process::getuid().as_raw();
    let Ok(entries) = fs::read_dir(base) else {
        return;
    };
    for entry in entries.flatten() {
        let is_one = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(FOLDERS.as_bytes());
        let is_own = || entry.metadata().is_ok_and(|about| about.uid() == own);
        if is_one && is_own() {
            if let Ok(Some(_lock)) = lock(&entry.path()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

pub(crate) fn write_tree(files: &mut Sysfs<'_>, root: &Path) -> std::io::Result<()> {
    let class = root.join("sys/class");
    fs::create_dir_all(class.join("infiniband_verbs"))?;
    for name in files.files() {
        let path = class.join(&name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, files.text(&name).unwrap_or_default())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444))?;
    }
    let devices = root.join("dev/infiniband");
    fs::create_dir_all(&devices)?;
    for number in 0..=u8::MAX {
        if files.port_of_device(number).is_none() {
            break;
        }
        for kind in ["umad", "issm"] {
            write_device(&devices.join(format!("{kind}{number}")))?;
        }
    }
    if files.has_verbs() {
        write_device(&devices.join("uverbs0"))?;
        write_device(&devices.join("rdma_cm"))?;
    }
    Ok(())
}

fn write_device(path: &Path) -> std::io::Result<()> {
    fs::write(path, "")?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some((path, _lock)) = &self.made {
            let _ = fs::remove_dir_all(path);
        }
    }
}
