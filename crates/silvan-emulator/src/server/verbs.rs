//! RDMA programs: open files, memory, and messages in the data plane. Simulated time waits for copies.

mod connecting;
mod process;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::io::Errno;
use silvan_core::{HostId, NodeId, Time};
use silvan_mad::smp::PortState;
use silvan_verbs::{
    Action, AtomicOperation, ContextId, CqHandle, Destination, DeviceId, Fault, Message,
    MessageKind, Outcome, Piece, ProcessId, Source, TransferId, Verbs,
};
use silvan_workload::programs::{Request, SendQueue};

use crate::error::EmulatorError;
use crate::subnet::Subnet;
use crate::verbs::{Fate, Fates, device, port};
use connecting::Connecting;
pub(super) use process::Person;
use process::{Answer, CHUNK, Process};

const WINDOW: usize = 8;
const QUERY_PORT: u8 = 2;
/// In place of a command's length.
const REPORT: u32 = u32::MAX;
const COMPLETIONS: usize = 1024;
/// In bytes, of copies from process to process.
const DIRECT_CHUNK: u64 = 1 << 20;
const LEAST_DIRECT: u64 = 1;
/// Copies that are shorter pass in real time.
const HASTE: Duration = Duration::from_millis(3);
/// Longest pause of simulated time for copies: a stopped process must not stop all others.
const PATIENCE: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Transfer {
    work: Work,
    open: usize,
    fault: Option<Fault>,
    started: Instant,
}

#[derive(Debug)]
enum Work {
    Copy {
        to: u64,
        pieces: Vec<Piece>,
        next: (usize, u64),
    },
    Read {
        from: u64,
        pieces: Vec<(u64, u64)>,
        next: (usize, u64),
        data: Vec<u8>,
    },
    Atomic {
        original: u64,
    },
}

#[derive(Debug)]
pub(super) struct RdmaPrograms {
    verbs: Verbs,
    epoll: OwnedFd,
    token: u64,
    devices: BTreeMap<NodeId, DeviceId>,
    nodes: Vec<NodeId>,
    watched: BTreeSet<NodeId>,
    processes: BTreeMap<u64, Process>,
    next_process: u64,
    transfers: BTreeMap<TransferId, Transfer>,
    copies: BTreeMap<u64, VecDeque<TransferId>>,
    fates: Fates,
    in_flight: BTreeMap<u32, InFlight>,
    next_message: u32,
    requests: Vec<Request>,
    members: BTreeMap<DeviceId, u32>,
    acted: Option<Instant>,
    connecting: Connecting,
}

#[derive(Debug)]
struct InFlight {
    message: Message,
    to: HostId,
    has_departed: bool,
}

pub(super) struct Opened {
    pub process: u64,
    pub stream: OwnedFd,
}

impl RdmaPrograms {
    pub fn new(epoll: OwnedFd, token: u64, fates: Fates) -> Self {
        Self {
            verbs: Verbs::new(),
            epoll,
            token,
            devices: BTreeMap::new(),
            nodes: Vec::new(),
            watched: BTreeSet::new(),
            processes: BTreeMap::new(),
            next_process: 0,
            transfers: BTreeMap::new(),
            copies: BTreeMap::new(),
            fates,
            in_flight: BTreeMap::new(),
            next_message: 0,
            requests: Vec::new(),
            members: BTreeMap::new(),
            acted: None,
            connecting: Connecting::default(),
        }
    }

    fn device(&mut self, subnet: &Subnet, node: NodeId) -> DeviceId {
        if let Some(&device) = self.devices.get(&node) {
            return device;
        }
        let added = self
            .verbs
            .add_device(device(subnet, node), port(subnet, node));
        self.devices.insert(node, added);
        self.nodes.resize(added.0 as usize + 1, node);
        self.nodes[added.0 as usize] = node;
        added
    }

    pub fn open(
        &mut self,
        subnet: &Subnet,
        node: NodeId,
        person: Option<Person>,
    ) -> Result<Opened, Errno> {
        subnet.fabric.nodes[node].as_host().ok_or(Errno::NODEV)?;
        let device = self.device(subnet, node);
        self.watched.insert(node);
        self.verbs.set_port(device, port(subnet, node));
        let (own, program) = process::stream()?;
        let number = self.next_process;
        self.next_process += 1;
        let data = epoll::EventData::new_u64(self.token | number);
        epoll::add(&self.epoll, &own, data, epoll::EventFlags::IN)?;
        let context = self.verbs.open(device, ProcessId(number));
        let mut process = Process::new(own, context, node);
        process.person = person;
        self.processes.insert(number, process);
        Ok(Opened {
            process: number,
            stream: program,
        })
    }

    pub fn close(&mut self, number: u64, subnet: &mut Subnet) -> Result<(), EmulatorError> {
        let Some(process) = self.processes.remove(&number) else {
            return Ok(());
        };
        let _ = epoll::delete(&self.epoll, process.stream());
        self.verbs.close(subnet.now(), process.context);
        if !self
            .processes
            .values()
            .any(|other| other.node == process.node)
        {
            self.watched.remove(&process.node);
        }
        for answer in process.into_open() {
            self.answered(answer, Err(Errno::SRCH), subnet.now());
        }
        for id in self.copies.remove(&number).into_iter().flatten() {
            self.fail(id, Fault::Target, subnet.now());
        }
        self.carry_out(subnet)
    }

    pub fn command(
        &mut self,
        number: u64,
        record: &[u8],
        shown: Time,
        subnet: &mut Subnet,
    ) -> Result<Option<Vec<u8>>, EmulatorError> {
        let Some(process) = self.processes.get_mut(&number) else {
            return Ok(None);
        };
        let context = process.context;
        if let Some(notices) = report(record) {
            process.waits_after(notices);
            return Ok(Some(Vec::new()));
        }
        let Some(record) = CommandRecord::parse(record) else {
            return Ok(None);
        };
        let wall = Instant::now();
        process.commanded(wall);
        self.acted = Some(wall);
        let at = Time::from_ps(record.clock).min(shown);
        let at = at.min(self.latest_step(subnet.now()));
        while subnet.now() < at {
            subnet.step(at)?;
            self.collect_fates(subnet)?;
        }
        for (queue, count) in record.polled {
            self.verbs.consumed(context, CqHandle(queue), count);
        }
        if record.command.first() == Some(&QUERY_PORT) {
            self.sync_ports(subnet);
        }
        let now = subnet.now();
        let reply = self
            .verbs
            .execute(now, context, record.command, record.inline);
        self.carry_out(subnet)?;
        let notices = self.processes.get(&number).map_or(0, Process::notices);
        let mut answer = reply.errno.to_ne_bytes().to_vec();
        answer.extend([0; 4]);
        answer.extend(notices.to_ne_bytes());
        answer.extend(reply.response);
        Ok(Some(answer))
    }

    pub fn serve(
        &mut self,
        number: u64,
        flags: epoll::EventFlags,
        subnet: &mut Subnet,
    ) -> Result<(), EmulatorError> {
        let Some(process) = self.processes.get_mut(&number) else {
            return Ok(());
        };
        let mut going = true;
        if flags.contains(epoll::EventFlags::OUT) {
            going = process.flush();
        }
        while going {
            let Some(process) = self.processes.get_mut(&number) else {
                return Ok(());
            };
            match process.receive() {
                Ok(Some((Answer::Probed, result))) => {
                    let seen = result.ok().and_then(|seen| seen.try_into().ok());
                    let seen = seen.map_or(u64::MAX, u64::from_ne_bytes);
                    if seen != u64::MAX {
                        process.waits_after(seen);
                    }
                }
                Ok(Some((answer, result))) => {
                    let expects = process.expects();
                    self.answered(answer, result, subnet.now());
                    if !expects {
                        break;
                    }
                }
                Ok(None) => break,
                Err(_) => going = false,
            }
        }
        if !going {
            return self.close(number, subnet);
        }
        self.carry_out(subnet)
    }

    pub fn collect_fates(&mut self, subnet: &mut Subnet) -> Result<(), EmulatorError> {
        let now = subnet.now();
        let fates = self.fates.take();
        let is_due = self.verbs.next_timer().is_some_and(|at| at <= now);
        if fates.is_empty() && !is_due {
            return Ok(());
        }
        for fate in fates {
            match fate {
                Fate::Departed(number) => {
                    let sent = self.in_flight.get_mut(&number);
                    if let Some(sent) = sent.filter(|sent| !sent.has_departed) {
                        sent.has_departed = true;
                        self.verbs.departed(now, &sent.message);
                    }
                }
                Fate::Arrived(number) => {
                    if let Some(sent) = self.in_flight.remove(&number) {
                        // A message of a host to itself arrives without a departure.
                        if !sent.has_departed {
                            self.verbs.departed(now, &sent.message);
                        }
                        let device = self.device(subnet, subnet.fabric.node_of_host(sent.to));
                        self.verbs.arrived(now, device, sent.message);
                    }
                }
                Fate::Gap { token, index, next } => {
                    let Some(sent) = self.in_flight.get(&token) else {
                        continue;
                    };
                    let node = subnet.fabric.node_of_host(sent.to);
                    let next = self.in_flight.get(&next).unwrap_or(sent);
                    if let (Ok(index), Some(&device)) =
                        (u32::try_from(index), self.devices.get(&node))
                    {
                        let packet = (&sent.message, index);
                        self.verbs.gap(now, device, packet, &next.message);
                    }
                }
                Fate::Ended(number) => {
                    self.in_flight.remove(&number);
                }
            }
            self.carry_out(subnet)?;
        }
        if is_due {
            self.verbs.run_timers(now);
        }
        self.carry_out(subnet)
    }

    pub fn next_timer(&self) -> Option<Time> {
        self.verbs.next_timer()
    }

    /// Returns the end of a step from `now` at which the next timer goes off; it does not while data are copied.
    pub fn latest_step(&self, now: Time) -> Time {
        let Some(timer) = self.next_timer() else {
            return Time::MAX;
        };
        let end = match self.is_copying() {
            true => Time::from_ps(timer.as_ps().saturating_sub(1)),
            false => timer,
        };
        end.max(now)
    }

    pub fn waits(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Returns true while a program has something to do; asks those that do not say so.
    pub fn work(&mut self, now: Instant) -> bool {
        let mut any = false;
        for process in self.processes.values_mut() {
            if process.works(now) {
                any = true;
                process.probe(now);
            }
        }
        if any {
            self.flush();
        }
        any
    }

    /// Returns when a program has sent its last command.
    pub fn acted(&self) -> Option<Instant> {
        self.acted
    }

    pub fn is_copying(&self) -> bool {
        let mut transfers = self.transfers.values();
        transfers.any(|transfer| transfer.started.elapsed() < PATIENCE)
    }

    /// Returns true if a copy takes so long that timeouts of its requests would be near.
    pub fn copies_slowly(&self) -> bool {
        let mut transfers = self.transfers.values();
        transfers.any(|transfer| (HASTE..PATIENCE).contains(&transfer.started.elapsed()))
    }

    pub fn sync_ports(&mut self, subnet: &Subnet) {
        for &node in &self.watched {
            if let Some(&device) = self.devices.get(&node) {
                self.verbs.set_port(device, port(subnet, node));
            }
        }
    }

    pub fn check_ports(&mut self, subnet: &mut Subnet) -> Result<(), EmulatorError> {
        self.sync_ports(subnet);
        for node in std::mem::take(&mut subnet.reregistered) {
            if let Some(&device) = self.devices.get(&node) {
                self.verbs.reregister_clients(device);
            }
        }
        self.carry_out(subnet)
    }

    fn carry_out(&mut self, subnet: &mut Subnet) -> Result<(), EmulatorError> {
        let now = subnet.now();
        while let Some(action) = self.verbs.next_action() {
            match action {
                Action::Inject(message) => self.inject(message, subnet),
                Action::Withdraw {
                    from,
                    queue_pair,
                    responds,
                } => self.withdraw((from, queue_pair, responds), subnet),
                Action::Forget { from, queue_pair } => self.forget(from, queue_pair, subnet),
                Action::Copy { id, to, pieces } => {
                    let work = Work::Copy {
                        to: to.0,
                        pieces,
                        next: (0, 0),
                    };
                    self.start(id, work);
                    self.copies.entry(to.0).or_default().push_back(id);
                    self.go_on_with_copies(to.0, now);
                }
                Action::Read { id, from, pieces } => {
                    let work = Work::Read {
                        from: from.0,
                        pieces,
                        next: (0, 0),
                        data: Vec::new(),
                    };
                    self.start(id, work);
                    self.go_on(id, now);
                }
                Action::Atomic {
                    id,
                    at,
                    address,
                    operation,
                } => {
                    self.start(id, Work::Atomic { original: 0 });
                    self.change(id, at.0, address, operation, now);
                }
                Action::Completion { context, cq } => loop {
                    let taken = self.verbs.take_completions(context, cq, COMPLETIONS);
                    if taken.is_empty() {
                        break;
                    }
                    if let Some(process) = self.process_of(context) {
                        process.push_completions(cq.0, &taken);
                    }
                },
                Action::ChannelEvent { context, channel } => {
                    while let Some(event) = self.verbs.take_channel_event(context, channel) {
                        if let Some(process) = self.process_of(context) {
                            process.push_channel_event(channel.0, &event);
                        }
                    }
                }
                Action::AsyncEvent { context } => {
                    while let Some(event) = self.verbs.take_async_event(context) {
                        if let Some(process) = self.process_of(context) {
                            process.push_async_event(&event);
                        }
                    }
                }
                Action::Multicast { device, member, .. } => {
                    let groups = self.members.entry(device).or_default();
                    *groups = if member {
                        *groups + 1
                    } else {
                        groups.saturating_sub(1)
                    };
                    if *groups == 0 {
                        self.members.remove(&device);
                    }
                }
            }
        }
        subnet.plane.request(&mut self.requests)?;
        self.flush();
        Ok(())
    }

    /// Host and number of a queue pair's queue.
    fn queue(
        &self,
        (from, number, responds): (DeviceId, u32, bool),
        subnet: &Subnet,
    ) -> Option<(HostId, SendQueue)> {
        let node = self.nodes[from.0 as usize];
        let queue = SendQueue {
            number,
            responds,
            ..SendQueue::default()
        };
        Some((subnet.fabric.nodes[node].as_host()?, queue))
    }

    fn withdraw(&mut self, queue: (DeviceId, u32, bool), subnet: &Subnet) {
        if let Some((from, queue)) = self.queue(queue, subnet) {
            self.requests.push(Request::Withdraw { from, queue });
        }
    }

    fn forget(&mut self, from: DeviceId, number: u32, subnet: &Subnet) {
        for responds in [false, true] {
            if let Some((from, queue)) = self.queue((from, number, responds), subnet) {
                self.requests.push(Request::Forget { from, queue });
            }
        }
    }

    fn process_of(&mut self, context: ContextId) -> Option<&mut Process> {
        let mut processes = self.processes.values_mut();
        processes.find(|process| process.context == context)
    }

    fn flush(&mut self) {
        for (number, process) in &mut self.processes {
            let _ = process.flush();
            if let Some(flags) = process.watch() {
                let data = epoll::EventData::new_u64(self.token | number);
                let _ = epoll::modify(&self.epoll, process.stream(), data, flags);
            }
        }
    }

    fn inject(&mut self, message: Message, subnet: &mut Subnet) {
        let node = self.nodes[message.from.0 as usize];
        let Some(from) = subnet.fabric.nodes[node].as_host() else {
            return;
        };
        match message.destination {
            Destination::Unicast(lid) => {
                let to = subnet.node_of_lid(lid);
                let to = to.and_then(|node| subnet.fabric.nodes[node].as_host());
                self.send(message, from, to, subnet);
            }
            Destination::Multicast(_) => {
                let members: Vec<DeviceId> = self.members.keys().copied().collect();
                for member in members.into_iter().filter(|member| *member != message.from) {
                    let node = self.nodes[member.0 as usize];
                    let to = subnet.fabric.nodes[node].as_host();
                    self.send(message.clone(), from, to, subnet);
                }
                self.verbs.departed(subnet.now(), &message);
            }
        }
    }

    fn send(&mut self, message: Message, from: HostId, to: Option<HostId>, subnet: &Subnet) {
        let node = subnet.fabric.node_of_host(from);
        let is_active = subnet.own(node).info.port_state == PortState::ACTIVE;
        let Some(to) = to.filter(|_| is_active) else {
            self.verbs.lost(subnet.now(), &message);
            return;
        };
        let level = message.sl;
        let token = self.next_message;
        self.next_message = self.next_message.wrapping_add(1);
        self.requests.push(Request::Send {
            from,
            to,
            bytes: message.payload_bytes,
            // On level 0 the subnet manager's path decides, as for all traffic.
            sl: Some(level),
            queue: SendQueue {
                number: message.flow.source_qp,
                responds: message.kind != MessageKind::Request,
                mtu: NonZeroU32::new(message.mtu),
                tells_gaps: message.is_reliable(),
            },
            token,
        });
        let sent = InFlight {
            has_departed: matches!(message.destination, Destination::Multicast(_)),
            message,
            to,
        };
        self.in_flight.insert(token, sent);
    }

    fn start(&mut self, id: TransferId, work: Work) {
        let transfer = Transfer {
            work,
            open: 0,
            fault: None,
            started: Instant::now(),
        };
        self.transfers.insert(id, transfer);
    }

    fn go_on_with_copies(&mut self, to: u64, now: Time) {
        while let Some(&id) = self.copies.get(&to).and_then(VecDeque::front) {
            self.go_on(id, now);
            let waits = self
                .transfers
                .get(&id)
                .is_some_and(|transfer| match &transfer.work {
                    Work::Copy { pieces, next, .. } => {
                        let from_memory =
                            |piece: &Piece| matches!(piece.from, Source::Memory { .. });
                        next.0 < pieces.len() || transfer.open > 0 && pieces.iter().any(from_memory)
                    }
                    _ => false,
                });
            if waits {
                return;
            }
            if let Some(copies) = self.copies.get_mut(&to) {
                copies.pop_front();
            }
        }
        self.copies.remove(&to);
    }

    fn go_on(&mut self, id: TransferId, now: Time) {
        let Some(transfer) = self.transfers.get_mut(&id) else {
            return;
        };
        while transfer.open < WINDOW && transfer.fault.is_none() {
            match &mut transfer.work {
                Work::Copy { to, pieces, next } => {
                    let Some(piece) = pieces.get(next.0) else {
                        break;
                    };
                    let offset = next.1;
                    let person = direct(&self.processes, *to, piece);
                    let most = if person.is_some() {
                        DIRECT_CHUNK
                    } else {
                        CHUNK
                    };
                    let length = (piece.length - offset).min(most);
                    let place = piece.to.wrapping_add(offset);
                    *next = if offset + length == piece.length {
                        (next.0 + 1, 0)
                    } else {
                        (next.0, offset + length)
                    };
                    let requested = match &piece.from {
                        Source::Memory { process, address } => {
                            let address = address.wrapping_add(offset);
                            let copied = Answer::Copied {
                                id,
                                from: process.0,
                                address,
                                place,
                                length,
                            };
                            match &person {
                                Some(person) => self.processes.get_mut(to).map(|target| {
                                    target.copy(place, address, length, person, copied);
                                }),
                                None => self.processes.get_mut(&process.0).map(|process| {
                                    let answer = Answer::Fetched { id, place, length };
                                    process.read(address, length, answer);
                                }),
                            }
                        }
                        Source::Bytes {
                            data,
                            offset: first,
                        } => self.processes.get_mut(to).map(|process| {
                            let first = first + offset as usize;
                            let bytes = data.get(first..first + length as usize);
                            process.write(place, bytes.unwrap_or_default(), Answer::Written { id });
                        }),
                    };
                    match requested {
                        Some(()) => transfer.open += 1,
                        None => transfer.fault = Some(Fault::Source),
                    }
                }
                Work::Read {
                    from, pieces, next, ..
                } => {
                    let Some(&(address, whole)) = pieces.get(next.0) else {
                        break;
                    };
                    let offset = next.1;
                    let length = (whole - offset).min(CHUNK);
                    *next = if offset + length == whole {
                        (next.0 + 1, 0)
                    } else {
                        (next.0, offset + length)
                    };
                    if length == 0 {
                        continue;
                    }
                    match self.processes.get_mut(from) {
                        Some(process) => {
                            let from = address.wrapping_add(offset);
                            process.read(from, length, Answer::Collected { id, length });
                            transfer.open += 1;
                        }
                        None => transfer.fault = Some(Fault::Source),
                    }
                }
                Work::Atomic { .. } => break,
            }
        }
        if transfer.open == 0 {
            self.end(id, now);
        }
    }

    fn change(
        &mut self,
        id: TransferId,
        at: u64,
        address: u64,
        operation: AtomicOperation,
        now: Time,
    ) {
        match (self.processes.get_mut(&at), self.transfers.get_mut(&id)) {
            (Some(process), Some(transfer)) => {
                process.change(address, operation, Answer::Changed { id });
                transfer.open = 1;
            }
            _ => self.fail(id, Fault::Target, now),
        }
    }

    fn answered(&mut self, answer: Answer, result: Result<Vec<u8>, Errno>, now: Time) {
        let Some(id) = answer.transfer() else {
            return;
        };
        let Some(transfer) = self.transfers.get_mut(&id) else {
            return;
        };
        transfer.open -= 1;
        let mut target = None;
        match (answer, result) {
            (Answer::Fetched { place, .. }, Ok(data)) => {
                if let Work::Copy { to, .. } = &transfer.work {
                    target = Some(*to);
                    match self.processes.get_mut(to) {
                        Some(process) => {
                            process.write(place, &data, Answer::Written { id });
                            transfer.open += 1;
                        }
                        None => transfer.fault = Some(Fault::Target),
                    }
                }
            }
            (Answer::Collected { .. }, Ok(part)) => {
                if let Work::Read { data, .. } = &mut transfer.work {
                    data.extend(part);
                }
            }
            (Answer::Changed { .. }, Ok(value)) => {
                if let (Work::Atomic { original }, Some(value)) =
                    (&mut transfer.work, value.first_chunk())
                {
                    *original = u64::from_ne_bytes(*value);
                }
            }
            (Answer::Written { .. } | Answer::Copied { .. }, Ok(_)) | (Answer::Probed, _) => {}
            // The way by this process works without such rights, and tells which memory is not there.
            (
                Answer::Copied {
                    from,
                    address,
                    place,
                    length,
                    ..
                },
                Err(_),
            ) => {
                if let Work::Copy { to, pieces, .. } = &mut transfer.work {
                    if let Some(process) = self.processes.get_mut(to) {
                        process.reads_nobody = true;
                    }
                    let process = ProcessId(from);
                    pieces.push(Piece {
                        from: Source::Memory { process, address },
                        to: place,
                        length,
                    });
                }
            }
            (Answer::Fetched { .. } | Answer::Collected { .. }, Err(_)) => {
                transfer.fault = Some(Fault::Source);
            }
            (Answer::Written { .. } | Answer::Changed { .. }, Err(_)) => {
                transfer.fault = Some(Fault::Target);
            }
        }
        if let Work::Copy { to, .. } = &transfer.work {
            target = Some(*to);
        }
        self.go_on(id, now);
        if let Some(to) = target {
            self.go_on_with_copies(to, now);
        }
    }

    fn fail(&mut self, id: TransferId, fault: Fault, now: Time) {
        if let Some(transfer) = self.transfers.get_mut(&id) {
            transfer.fault = Some(fault);
            if transfer.open == 0 {
                self.end(id, now);
            }
        }
    }

    fn end(&mut self, id: TransferId, now: Time) {
        let Some(transfer) = self.transfers.remove(&id) else {
            return;
        };
        let outcome = match (transfer.fault, transfer.work) {
            (Some(fault), _) => Outcome::Fault(fault),
            (None, Work::Copy { .. }) => Outcome::Copied,
            (None, Work::Read { data, .. }) => Outcome::Bytes(Arc::from(data)),
            (None, Work::Atomic { original }) => Outcome::Original(original),
        };
        self.verbs.finish(now, id, outcome);
    }
}

/// The process that another one reads itself, if it can.
fn direct(processes: &BTreeMap<u64, Process>, to: u64, piece: &Piece) -> Option<Person> {
    let Source::Memory { process, .. } = &piece.from else {
        return None;
    };
    let target = processes.get(&to)?;
    processes
        .get(&process.0)?
        .person
        .filter(|_| !target.reads_nobody && piece.length >= LEAST_DIRECT)
}

/// The notices that a program has seen which waits for the fabric.
fn report(record: &[u8]) -> Option<u64> {
    let notices = record.strip_prefix(&REPORT.to_ne_bytes())?;
    Some(u64::from_ne_bytes(notices.try_into().ok()?))
}

struct CommandRecord<'a> {
    clock: u64,
    polled: Vec<(u32, u32)>,
    command: &'a [u8],
    inline: &'a [u8],
}

impl<'a> CommandRecord<'a> {
    fn parse(record: &'a [u8]) -> Option<Self> {
        let word = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_ne_bytes);
        let (header, rest) = record.split_at_checked(16)?;
        let length = word(&header[..4])? as usize;
        let count = word(&header[4..8])? as usize;
        let (polled, rest) = rest.split_at_checked(count.checked_mul(8)?)?;
        let (command, inline) = rest.split_at_checked(length)?;
        let polled = polled.chunks_exact(8);
        Some(Self {
            clock: u64::from_ne_bytes(header[8..].try_into().ok()?),
            polled: polled
                .map(|entry| Some((word(&entry[..4])?, word(&entry[4..])?)))
                .collect::<Option<_>>()?,
            command,
            inline,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(length: u32, polled: &[(u32, u32)], rest: &[u8]) -> Vec<u8> {
        let mut record = length.to_ne_bytes().to_vec();
        record.extend((polled.len() as u32).to_ne_bytes());
        record.extend([0; 8]);
        for (queue, count) in polled {
            record.extend(queue.to_ne_bytes());
            record.extend(count.to_ne_bytes());
        }
        record.extend(rest);
        record
    }

    #[test]
    fn records_have_completions_polled_a_command_and_inline_data() {
        let bytes = record(3, &[(7, 2), (9, 1)], b"commandata");
        let parsed = CommandRecord::parse(&bytes).expect("a whole record");
        assert_eq!(parsed.polled, [(7, 2), (9, 1)]);
        assert_eq!(
            (parsed.command, parsed.inline),
            (&b"com"[..], &b"mandata"[..])
        );
    }

    #[test]
    fn wrong_lengths_are_no_records() {
        assert!(CommandRecord::parse(&[0; 15]).is_none());
        assert!(CommandRecord::parse(&record(11, &[], b"commandata")).is_none());
        let mut many = record(0, &[], b"");
        many[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert!(CommandRecord::parse(&many).is_none());
    }
}
