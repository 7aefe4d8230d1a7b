//! The connection manager: what librdmacm writes to `/dev/infiniband/rdma_cm`.
//!
//! Messages of the connection manager arrive at once and are never lost. Host *n*, counted from 0, has the address
//! 10.0.0.0 + *n* + 1. Any other address, such as that of `localhost`, means the host that listens at the port.

mod addresses;
mod states;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use self::addresses::Address;
use self::states::{Answered, Id, State};
use crate::abi::connections as abi;
use crate::abi::values::{QpState, access, qp_mask};
use crate::abi::{Layout, structures};
use crate::device::PortAttributes;
use crate::errno::Errno;
use crate::verbs::{DeviceId, Reply, Verbs};

// Commands of the header.
const CREATE_ID: u32 = 0;
const DESTROY_ID: u32 = 1;
const BIND_IP: u32 = 2;
const RESOLVE_IP: u32 = 3;
const RESOLVE_ROUTE: u32 = 4;
const QUERY_ROUTE: u32 = 5;
const CONNECT: u32 = 6;
const LISTEN: u32 = 7;
const ACCEPT: u32 = 8;
const REJECT: u32 = 9;
const DISCONNECT: u32 = 10;
const INIT_QP_ATTR: u32 = 11;
const GET_EVENT: u32 = 12;
const SET_OPTION: u32 = 14;
const NOTIFY: u32 = 15;
const JOIN_IP_MULTICAST: u32 = 16;
const LEAVE_MULTICAST: u32 = 17;
const MIGRATE_ID: u32 = 18;
const JOIN_MULTICAST: u32 = 22;

const PS_UDP: u16 = 0x0111;
const PS_IPOIB: u16 = 0x0002;
const UDP_QKEY: u32 = 0x0123_4567;
const MULTICAST_QP: u32 = 0xff_ffff;
const FIRST_MULTICAST_LID: u16 = 0xc000;
const P_KEY: u16 = 0xffff;
const NO_INDEX: u32 = u32::MAX;

/// Reasons of a rejection (IBA, volume 1, section 12.6.7.2).
const NO_SERVICE: u32 = 8;
const BY_CONSUMER: u32 = 28;

const MOST_IDS: usize = 65_536;
const MOST_EVENTS: usize = 16_384;
const EVENT_PARAMETERS: usize = 304;
const TIMEOUT: u8 = 14;
const LONGEST_TIMEOUT: u8 = 31;
/// Level, name and length of the option; the command has the value instead of its address.
const ACK_TIMEOUT: (u32, u32, u32) = (0, 3, 1);
const RNR_TIMER: u8 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    AddressResolved = 0,
    RouteResolved = 2,
    ConnectRequest = 4,
    ConnectResponse = 5,
    Rejected = 8,
    Established = 9,
    Disconnected = 10,
    MulticastJoin = 12,
}

/// An open `rdma_cm` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CmFile(pub u32);

#[derive(Debug)]
struct Event {
    kind: Kind,
    /// Identifier that the event counts for, and the one that it names.
    of: u32,
    named: u32,
    status: u32,
    parameters: Vec<u8>,
}

#[derive(Debug)]
struct File {
    device: DeviceId,
    host: u32,
    events: VecDeque<Event>,
}

/// The connection managers of all hosts.
#[derive(Debug, Default)]
pub struct Connections {
    files: BTreeMap<CmFile, File>,
    ids: BTreeMap<u32, Id>,
    last_file: u32,
    last_id: u32,
    last_port: u16,
    /// Files by event, in order.
    ready: Vec<CmFile>,
    /// Requests without a listener, and true for those that have waited for a whole period.
    waiting: Vec<(u32, bool)>,
}

type Done = Result<Vec<u8>, Errno>;

fn get<T: Layout>(body: &[u8]) -> Result<T, Errno> {
    T::parse(body).ok_or(Errno::Invalid)
}

impl Connections {
    /// No open file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the file at an adapter of a host.
    pub fn open(&mut self, device: DeviceId, host: u32) -> CmFile {
        self.last_file += 1;
        let file = CmFile(self.last_file);
        let events = VecDeque::new();
        self.files.insert(
            file,
            File {
                device,
                host,
                events,
            },
        );
        file
    }

    /// Closes a file; the other ends of its connections are disconnected.
    pub fn close(&mut self, file: CmFile) {
        let own = self.ids.iter().filter(|(_, id)| id.file == file);
        let own: Vec<u32> = own.map(|(&id, _)| id).collect();
        for id in own {
            self.remove(id);
        }
        self.files.remove(&file);
    }

    /// Takes the files that got an event, once for each.
    pub fn take_ready(&mut self) -> Vec<CmFile> {
        std::mem::take(&mut self.ready)
    }

    /// Executes a command: the bytes that a process wrote, with their header.
    pub fn execute(&mut self, file: CmFile, command: &[u8], verbs: &Verbs) -> Reply {
        let done = match (
            self.files.contains_key(&file),
            command.split_first_chunk::<8>(),
        ) {
            (true, Some((header, body))) => {
                let code = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
                self.run(file, code, body, verbs)
            }
            _ => Err(Errno::Invalid),
        };
        match done {
            Ok(response) => Reply { errno: 0, response },
            Err(error) => Reply {
                errno: error.number(),
                response: Vec::new(),
            },
        }
    }

    fn run(&mut self, file: CmFile, code: u32, body: &[u8], verbs: &Verbs) -> Done {
        match code {
            CREATE_ID => {
                let command: abi::CreateId = get(body)?;
                if self.ids.len() >= MOST_IDS {
                    return Err(Errno::NoMemory);
                }
                let id = self.create(Id::new(file, command.uid, command.ps));
                Ok(id.to_bytes())
            }
            DESTROY_ID => {
                let command: abi::DestroyId = get(body)?;
                self.own(file, command.id)?;
                Ok(self.remove(command.id).to_bytes())
            }
            BIND_IP => {
                let command: abi::BindIp = get(body)?;
                self.bind(file, command.id, Address::parse(&command.addr)?)?;
                Ok(Vec::new())
            }
            RESOLVE_IP => {
                let command: abi::ResolveIp = get(body)?;
                let to = Address::parse(&command.dst_addr)?;
                let host = self.files[&file].host;
                let port = self.free_port();
                let id = self.own(file, command.id)?;
                if !matches!(id.state, State::Idle | State::Bound) {
                    return Err(Errno::Invalid);
                }
                let from = id.from.map_or(port, Address::port);
                id.from = Some(Address::of_host(host, from));
                id.to = Some(to);
                id.state = State::Addressed;
                self.push(command.id, Kind::AddressResolved, 0, Vec::new());
                Ok(Vec::new())
            }
            RESOLVE_ROUTE => {
                let command: abi::ResolveRoute = get(body)?;
                let id = self.own(file, command.id)?;
                if id.state != State::Addressed {
                    return Err(Errno::Invalid);
                }
                id.state = State::Routed;
                self.push(command.id, Kind::RouteResolved, 0, Vec::new());
                Ok(Vec::new())
            }
            QUERY_ROUTE => self.query(file, get(body)?, verbs),
            CONNECT => {
                let number = self.after_parameters(body)?;
                self.connect(file, number, get(body)?)
            }
            LISTEN => {
                let command: abi::Listen = get(body)?;
                let port = self.free_port();
                let id = self.own(file, command.id)?;
                if !matches!(id.state, State::Idle | State::Bound) {
                    return Err(Errno::Invalid);
                }
                id.from.get_or_insert(Address::any(port));
                id.state = State::Listening;
                let waiting = std::mem::take(&mut self.waiting);
                for (request, is_old) in waiting {
                    if !self.request(request)? {
                        self.waiting.push((request, is_old));
                    }
                }
                Ok(Vec::new())
            }
            ACCEPT => {
                let uid = u64::parse(body).ok_or(Errno::Invalid)?;
                let body = &body[size_of::<u64>()..];
                let number = self.after_parameters(body)?;
                self.accept(file, number, uid, get(body)?, verbs)
            }
            REJECT => {
                let command: abi::Reject = get(body)?;
                let peer = self.own(file, command.id)?.peer.take();
                let parameters = abi::ConnectionParameters {
                    private_data: command.private_data,
                    private_data_len: command.private_data_len,
                    ..abi::ConnectionParameters::default()
                };
                if let Some(peer) = peer {
                    self.end(peer, Kind::Rejected, BY_CONSUMER, parameters.to_bytes());
                }
                Ok(Vec::new())
            }
            DISCONNECT => {
                let command: abi::Disconnect = get(body)?;
                let id = self.own(file, command.id)?;
                match id.state {
                    State::Connected | State::Accepted => {}
                    // The other side was first.
                    State::Ended => return Ok(Vec::new()),
                    _ => return Err(Errno::Invalid),
                }
                id.state = State::Ended;
                let peer = id.peer.take();
                self.push(command.id, Kind::Disconnected, 0, Vec::new());
                if let Some(peer) = peer {
                    self.end(peer, Kind::Disconnected, 0, Vec::new());
                }
                Ok(Vec::new())
            }
            INIT_QP_ATTR => self.attributes(file, get(body)?, verbs),
            GET_EVENT => self.event(file),
            SET_OPTION => {
                let command: abi::SetOption = get(body)?;
                let id = self.own(file, command.id)?;
                if (command.level, command.optname, command.optlen) == ACK_TIMEOUT {
                    let [timeout, ..] = command.optval.to_ne_bytes();
                    id.timeout = Some(timeout);
                }
                Ok(Vec::new())
            }
            NOTIFY => {
                let command: abi::Notify = get(body)?;
                self.own(file, command.id).map(|_| Vec::new())
            }
            JOIN_IP_MULTICAST => {
                let command: abi::JoinIpMulticast = get(body)?;
                self.join(file, command.id, command.uid, &command.addr)
            }
            JOIN_MULTICAST => {
                // The response's address, the program's name, the identifier, sizes, and an address with room for any.
                let uid = body.get(8..).and_then(u64::parse).ok_or(Errno::Invalid)?;
                let number = body.get(16..).and_then(u32::parse).ok_or(Errno::Invalid)?;
                let to = body
                    .get(24..)
                    .and_then(<[u8; 28]>::parse)
                    .ok_or(Errno::Invalid)?;
                self.join(file, number, uid, &to)
            }
            LEAVE_MULTICAST => {
                let command: abi::DestroyId = get(body)?;
                if self.own(file, command.id)?.state != State::Joined {
                    return Err(Errno::Invalid);
                }
                Ok(self.remove(command.id).to_bytes())
            }
            MIGRATE_ID => {
                let command: abi::MigrateId = get(body)?;
                let from = CmFile(command.fd);
                let reported = self.own(from, command.id)?.reported;
                self.migrate(command.id, from, file);
                Ok(reported.to_bytes())
            }
            _ => Err(Errno::NotImplemented),
        }
    }

    fn create(&mut self, id: Id) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if !self.ids.contains_key(&self.last_id) {
                break;
            }
        }
        self.ids.insert(self.last_id, id);
        self.last_id
    }

    fn own(&mut self, file: CmFile, id: u32) -> Result<&mut Id, Errno> {
        let id = self.ids.get_mut(&id).filter(|id| id.file == file);
        id.ok_or(Errno::Invalid)
    }

    /// The number of the identifier, which follows the parameters of CONNECT and ACCEPT.
    fn after_parameters(&self, body: &[u8]) -> Result<u32, Errno> {
        let rest = body.get(abi::ConnectionParameters::SIZE..);
        rest.and_then(u32::parse).ok_or(Errno::Invalid)
    }

    fn free_port(&mut self) -> u16 {
        let used: BTreeSet<u16> = self
            .ids
            .values()
            .filter_map(|id| Some(id.from?.port()))
            .collect();
        loop {
            self.last_port = (self.last_port % 16_384) + 1;
            let port = 49_151 + self.last_port;
            if !used.contains(&port) || used.len() >= 16_384 {
                return port;
            }
        }
    }

    fn bind(&mut self, file: CmFile, number: u32, at: Address) -> Result<(), Errno> {
        let free = self.free_port();
        let at = if at.port() == 0 {
            at.with_port(free)
        } else {
            at
        };
        let host = self.files[&file].host;
        let space = self.own(file, number)?.space;
        let is_taken = self.ids.values().any(|other| {
            let is_here = self
                .files
                .get(&other.file)
                .is_some_and(|file| file.host == host);
            other.space == space
                && is_here
                && other.state == State::Listening
                && other.from.is_some_and(|from| from.port() == at.port())
        });
        if is_taken {
            return Err(Errno::InUse);
        }
        let id = self.own(file, number)?;
        if id.state != State::Idle {
            return Err(Errno::Invalid);
        }
        id.from = Some(at);
        id.state = State::Bound;
        Ok(())
    }

    /// Joins a group; the program attaches its queue pair when it gets the event.
    fn join(&mut self, file: CmFile, number: u32, uid: u64, to: &[u8; 28]) -> Done {
        let group = Address::parse(to)?.group().ok_or(Errno::Invalid)?;
        let id = self.own(file, number)?;
        if matches!(id.state, State::Idle | State::Bound | State::Joined) {
            return Err(Errno::Invalid);
        }
        let mut member = Id::new(file, uid, id.space);
        member.state = State::Joined;
        member.member = Some(number);
        if self.ids.len() >= MOST_IDS {
            return Err(Errno::NoMemory);
        }
        let member = self.create(member);
        let last = u16::from_be_bytes([group[14], group[15]]);
        let mut parameters = abi::DatagramParameters {
            qp_num: MULTICAST_QP,
            qkey: UDP_QKEY,
            ah_attr: structures::AhAttributes {
                dlid: FIRST_MULTICAST_LID + last % (u16::MAX - FIRST_MULTICAST_LID),
                port_num: 1,
                is_global: 1,
                ..structures::AhAttributes::default()
            },
            private_data: abi::PrivateData::default(),
            private_data_len: 0,
            reserved: [0; 7],
        };
        parameters.ah_attr.grh.dgid = group;
        parameters.ah_attr.grh.hop_limit = 1;
        self.push(member, Kind::MulticastJoin, 0, parameters.to_bytes());
        Ok(member.to_bytes())
    }

    /// Removes an identifier, and returns the number of its events that the program has taken.
    fn remove(&mut self, number: u32) -> u32 {
        let Some(id) = self.ids.remove(&number) else {
            return 0;
        };
        self.ids.retain(|_, other| other.member != Some(number));
        if let Some(peer) = id.peer {
            let (kind, status) = match id.state {
                State::Requested | State::Incoming => (Kind::Rejected, BY_CONSUMER),
                _ => (Kind::Disconnected, 0),
            };
            self.end(peer, kind, status, Vec::new());
        }
        let mut orphans = Vec::new();
        for file in self.files.values_mut() {
            file.events.retain(|event| {
                let goes = event.of == number || event.named == number;
                if goes && event.kind == Kind::ConnectRequest && event.of == number {
                    orphans.push(event.named);
                }
                !goes
            });
        }
        for orphan in orphans {
            self.remove(orphan);
        }
        id.reported
    }

    /// Ends a connection or an attempt because of the other side.
    fn end(&mut self, number: u32, kind: Kind, status: u32, parameters: Vec<u8>) {
        if let Some(id) = self.ids.get_mut(&number) {
            id.peer = None;
            // A connection may be attempted again.
            id.state = match kind {
                Kind::Rejected => State::Routed,
                _ => State::Ended,
            };
            self.push(number, kind, status, parameters);
        }
    }

    fn push(&mut self, number: u32, kind: Kind, status: u32, parameters: Vec<u8>) {
        self.push_for(number, number, kind, status, parameters);
    }

    fn push_for(&mut self, of: u32, named: u32, kind: Kind, status: u32, parameters: Vec<u8>) {
        let Some(file) = self.ids.get(&of).map(|id| id.file) else {
            return;
        };
        if let Some(open) = self.files.get_mut(&file) {
            if open.events.len() < MOST_EVENTS {
                open.events.push_back(Event {
                    kind,
                    of,
                    named,
                    status,
                    parameters,
                });
                self.ready.push(file);
            }
        }
    }

    fn migrate(&mut self, number: u32, from: CmFile, to: CmFile) {
        if let Some(id) = self.ids.get_mut(&number) {
            id.file = to;
        }
        let Some(old) = self.files.get_mut(&from) else {
            return;
        };
        let all = std::mem::take(&mut old.events);
        let (moved, left) = all.into_iter().partition(|event| event.of == number);
        old.events = left;
        let moved: VecDeque<Event> = moved;
        if let Some(new) = self.files.get_mut(&to) {
            for event in moved {
                new.events.push_back(event);
                self.ready.push(to);
            }
        }
    }

    fn event(&mut self, file: CmFile) -> Done {
        let open = self.files.get_mut(&file).ok_or(Errno::Invalid)?;
        // An event of an identifier that is gone leaves its notice behind.
        let event = open.events.pop_front().ok_or(Errno::Again)?;
        let of = self.ids.get_mut(&event.of).ok_or(Errno::Again)?;
        of.reported += 1;
        let mut response = of.uid.to_bytes();
        for word in [event.named, event.kind as u32, event.status] {
            word.write(&mut response);
        }
        let mut parameters = event.parameters;
        parameters.resize(EVENT_PARAMETERS, 0);
        response.extend(parameters);
        response.extend([0; 12]);
        Ok(response)
    }

    fn listener(&self, to: Address, space: u16) -> Option<u32> {
        let listens = |id: &Id| {
            let from = id
                .from
                .filter(|_| id.state == State::Listening && id.space == space);
            let host = self.files.get(&id.file).map(|file| file.host);
            from.is_some_and(|from| {
                from.port() == to.port() && to.host().is_none_or(|wanted| Some(wanted) == host)
            })
        };
        let mut ids = self.ids.iter();
        ids.find(|(_, id)| listens(id)).map(|(&number, _)| number)
    }

    fn connect(
        &mut self,
        file: CmFile,
        number: u32,
        parameters: abi::ConnectionParameters,
    ) -> Done {
        let id = self.own(file, number)?;
        if id.from.is_none() || id.to.is_none() || id.state != State::Routed {
            return Err(Errno::Invalid);
        }
        id.state = State::Requested;
        id.offered = parameters;
        if !self.request(number)? {
            self.waiting.push((number, false));
        }
        Ok(Vec::new())
    }

    /// Rejects requests that have found no listener for a whole period. Servers that listen a moment later, as they do
    /// where resolving an address takes milliseconds, get their requests.
    pub fn reject_old_requests(&mut self) {
        for (number, is_old) in std::mem::take(&mut self.waiting) {
            if !self.is_open_request(number) {
                continue;
            }
            if is_old {
                self.end(number, Kind::Rejected, NO_SERVICE, Vec::new());
            } else {
                self.waiting.push((number, true));
            }
        }
    }

    fn is_open_request(&self, number: u32) -> bool {
        let id = self.ids.get(&number);
        id.is_some_and(|id| id.state == State::Requested && id.peer.is_none())
    }

    /// Passes a request to its listener; returns false if there is none yet.
    fn request(&mut self, number: u32) -> Result<bool, Errno> {
        let Some(id) = self
            .ids
            .get(&number)
            .filter(|_| self.is_open_request(number))
        else {
            return Ok(true);
        };
        let (Some(from), Some(to)) = (id.from, id.to) else {
            return Ok(true);
        };
        let (space, parameters) = (id.space, id.offered);
        let Some(listener) = self.listener(to, space) else {
            return Ok(false);
        };
        if self.ids.len() >= MOST_IDS {
            return Err(Errno::NoMemory);
        }
        let listening = &self.ids[&listener];
        let mut child = Id::new(listening.file, listening.uid, space);
        child.state = State::Incoming;
        child.from = Some(to);
        child.to = Some(from);
        child.peer = Some(number);
        child.got = parameters;
        let child = self.create(child);
        if let Some(id) = self.ids.get_mut(&number) {
            id.peer = Some(child);
        }
        // The limits of the two sides change places.
        let seen = abi::ConnectionParameters {
            responder_resources: parameters.initiator_depth,
            initiator_depth: parameters.responder_resources,
            ..parameters
        };
        self.push_for(listener, child, Kind::ConnectRequest, 0, seen.to_bytes());
        Ok(true)
    }

    fn accept(
        &mut self,
        file: CmFile,
        number: u32,
        uid: u64,
        parameters: abi::ConnectionParameters,
        verbs: &Verbs,
    ) -> Done {
        let id = self.own(file, number)?;
        let peer = id.peer.ok_or(Errno::Invalid)?;
        match id.state {
            State::Incoming => {
                id.uid = uid;
                id.offered = parameters;
                id.state = State::Accepted;
                let is_datagram = matches!(id.space, PS_UDP | PS_IPOIB);
                if is_datagram {
                    id.state = State::Connected;
                    let answer = self.datagram(file, parameters, verbs)?;
                    self.answered(peer, parameters, Answered::Established);
                    self.push(peer, Kind::Established, 0, answer.to_bytes());
                } else {
                    let seen = abi::ConnectionParameters {
                        responder_resources: parameters.initiator_depth,
                        initiator_depth: parameters.responder_resources,
                        ..parameters
                    };
                    self.answered(peer, parameters, Answered::Response);
                    self.push(peer, Kind::ConnectResponse, 0, seen.to_bytes());
                }
                Ok(Vec::new())
            }
            // The initiator is ready to use.
            State::Answered => {
                id.state = State::Connected;
                if let Some(other) = self.ids.get_mut(&peer) {
                    other.state = State::Connected;
                }
                self.push(peer, Kind::Established, 0, Vec::new());
                Ok(Vec::new())
            }
            _ => Err(Errno::Invalid),
        }
    }

    fn answered(&mut self, number: u32, parameters: abi::ConnectionParameters, how: Answered) {
        if let Some(id) = self.ids.get_mut(&number) {
            id.got = parameters;
            id.state = match how {
                Answered::Response => State::Answered,
                Answered::Established => State::Connected,
            };
        }
    }

    fn datagram(
        &self,
        file: CmFile,
        parameters: abi::ConnectionParameters,
        verbs: &Verbs,
    ) -> Result<abi::DatagramParameters, Errno> {
        let device = self.files.get(&file).ok_or(Errno::Invalid)?.device;
        let port = verbs.port(device).ok_or(Errno::Invalid)?;
        Ok(abi::DatagramParameters {
            qp_num: parameters.qp_num,
            qkey: UDP_QKEY,
            ah_attr: address(port),
            private_data: parameters.private_data,
            private_data_len: parameters.private_data_len,
            reserved: [0; 7],
        })
    }

    /// The port at the other side: of the peer, of the listener, or the own one.
    fn remote<'a>(&self, id: &Id, verbs: &'a Verbs) -> Option<&'a PortAttributes> {
        let peer = id.peer.or_else(|| self.listener(id.to?, id.space));
        let file = peer
            .and_then(|peer| self.ids.get(&peer))
            .map_or(id.file, |peer| peer.file);
        verbs.port(self.files.get(&file)?.device)
    }

    fn query(&mut self, file: CmFile, command: abi::QueryRoute, verbs: &Verbs) -> Done {
        let device = self.files[&file].device;
        self.own(file, command.id)?;
        let id = &self.ids[&command.id];
        let port = verbs.port(device).ok_or(Errno::Invalid)?;
        let is_bound = id.to.is_some() || id.from.is_some_and(|from| !from.is_any());
        let guid = if is_bound {
            verbs.node_guid(device)
        } else {
            [0; 8]
        };
        let mut response = guid.to_vec();
        let has_route = !matches!(id.state, State::Idle | State::Bound | State::Addressed);
        let remote = self
            .remote(id, verbs)
            .filter(|_| has_route && id.to.is_some());
        let path = remote.map(|remote| path(port, remote));
        path.unwrap_or_default().write(&mut response);
        abi::PathRecord::default().write(&mut response);
        for address in [id.from, id.to] {
            response.extend(address.map_or([0; 28], Address::bytes));
        }
        u32::from(path.is_some()).write(&mut response);
        response.extend([u8::from(is_bound), 0, 0, 0]);
        NO_INDEX.write(&mut response);
        response.extend([0; 4]);
        Ok(response)
    }

    fn attributes(&mut self, file: CmFile, command: abi::InitQpAttributes, verbs: &Verbs) -> Done {
        self.own(file, command.id)?;
        let id = &self.ids[&command.id];
        let is_datagram = matches!(id.space, PS_UDP | PS_IPOIB);
        let mut answer = abi::QpAttributes {
            qp_state: command.qp_state,
            qp_attr_mask: qp_mask::STATE,
            port_num: 1,
            ..abi::QpAttributes::default()
        };
        match command.qp_state {
            state if state == QpState::Init as u32 => {
                answer.qp_attr_mask |= qp_mask::PKEY_INDEX | qp_mask::PORT;
                if is_datagram {
                    answer.qp_attr_mask |= qp_mask::QKEY;
                    answer.qkey = UDP_QKEY;
                } else {
                    answer.qp_attr_mask |= qp_mask::ACCESS_FLAGS;
                    answer.qp_access_flags =
                        access::REMOTE_WRITE | access::REMOTE_READ | access::REMOTE_ATOMIC;
                }
            }
            state if state == QpState::Rtr as u32 && !is_datagram => {
                let port = verbs.port(self.files[&file].device).ok_or(Errno::Invalid)?;
                let remote = self.remote(id, verbs).ok_or(Errno::Invalid)?;
                answer.qp_attr_mask |= qp_mask::AV
                    | qp_mask::PATH_MTU
                    | qp_mask::DEST_QPN
                    | qp_mask::RQ_PSN
                    | qp_mask::MAX_DEST_RD_ATOMIC
                    | qp_mask::MIN_RNR_TIMER;
                answer.ah_attr = address(remote);
                answer.path_mtu = u32::from(port.active_mtu.min(remote.active_mtu));
                answer.dest_qp_num = id.got.qp_num;
                answer.max_dest_rd_atomic = id.got.initiator_depth;
                answer.min_rnr_timer = RNR_TIMER;
            }
            state if state == QpState::Rts as u32 => {
                answer.qp_attr_mask |= qp_mask::SQ_PSN;
                if !is_datagram {
                    answer.qp_attr_mask |= qp_mask::TIMEOUT
                        | qp_mask::RETRY_CNT
                        | qp_mask::RNR_RETRY
                        | qp_mask::MAX_QP_RD_ATOMIC;
                    // The initiator's counts hold for both sides.
                    let counts = if id.is_initiator() {
                        &id.offered
                    } else {
                        &id.got
                    };
                    answer.timeout = id.timeout.unwrap_or(TIMEOUT).min(LONGEST_TIMEOUT);
                    answer.retry_cnt = counts.retry_count.min(7);
                    answer.rnr_retry = counts.rnr_retry_count.min(7);
                    answer.max_rd_atomic = id.got.responder_resources;
                }
            }
            _ => return Err(Errno::Invalid),
        }
        Ok(answer.to_bytes())
    }
}

fn address(port: &PortAttributes) -> structures::AhAttributes {
    structures::AhAttributes {
        dlid: port.lid.as_u16(),
        port_num: 1,
        ..structures::AhAttributes::default()
    }
}

fn path(port: &PortAttributes, remote: &PortAttributes) -> abi::PathRecord {
    let gid = |port: &PortAttributes| port.gids.first().copied().unwrap_or_default();
    abi::PathRecord {
        dgid: gid(remote),
        sgid: gid(port),
        dlid: remote.lid.as_u16().to_be_bytes(),
        slid: port.lid.as_u16().to_be_bytes(),
        reversible: 1,
        mtu: port.active_mtu.min(remote.active_mtu).into(),
        pkey: P_KEY.to_be_bytes(),
        numb_path: 1,
        mtu_selector: 2,
        rate_selector: 2,
        packet_life_time_selector: 2,
        packet_life_time: TIMEOUT,
        ..abi::PathRecord::default()
    }
}
