//! A world for tests: adapters on a channel that delays, loses and doubles messages, and processes with memory.
//!
//! It drives the crate by its public interface alone. Commands are written with the structures of the header.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::wire::{Packet, Wire};
use silvan_core::{Guid, Lid, Span, Time};
use silvan_verbs::abi::structures::parts::{AtomicPart, DatagramPart, RdmaPart};
use silvan_verbs::abi::structures::*;
use silvan_verbs::abi::values::{QpState, QpType, SendOpcode, access, qp_mask, send_flags};
use silvan_verbs::abi::{Command, Layout, emit};
use silvan_verbs::{
    Action, AtomicOperation, ContextId, CqHandle, Destination, DeviceAttributes, DeviceId, Fault,
    Message, Outcome, PortAttributes, PortState, ProcessId, Source, TransferId, Verbs,
};

/// First address of each process's memory.
pub const BASE: u64 = 0x10_0000;
/// Bytes of each process's memory.
pub const SIZE: u64 = 1 << 16;
/// Latency of the channel unless a test states another one.
pub const LATENCY: Span = Span::from_ps(1_000_000);

/// Fate of a message on the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Arrive(Span),
    Twice(Span, Span),
    Lose,
}

/// Decides the fate of each message.
pub type Fates = Box<dyn FnMut(Time, &Message) -> Fate>;

/// An entry of the world's calendar.
#[derive(Clone, Debug)]
enum Entry {
    Depart(Message),
    Arrive(DeviceId, Message),
    Lose(Message),
    Finish(TransferId, Outcome),
    Leave(Packet),
    Packet(DeviceId, Packet),
}

/// Adapters, processes, their memory, and the channel between them.
pub struct World {
    pub verbs: Verbs,
    pub now: Time,
    pub memory: BTreeMap<ProcessId, Vec<u8>>,
    pub fate: Fates,
    /// Channel of packets in place of `fate`.
    pub wire: Option<Wire>,
    /// Time from the injection of a message to its departure.
    pub departure: Span,
    /// Time that a transfer of memory takes; `None` ends it at once.
    pub transfer_time: Option<Span>,
    /// Messages that were injected.
    pub injected: Vec<(Time, Message)>,
    pub async_events: u64,
    calendar: BTreeMap<(Time, u64), Entry>,
    sequence: u64,
    lids: BTreeMap<u16, DeviceId>,
}

pub fn device_attributes() -> DeviceAttributes {
    DeviceAttributes {
        node_guid: Guid::new(0x0011_7500_0000_0001),
        system_guid: Guid::new(0x0011_7500_0000_0001),
        vendor_id: 0x1077,
        vendor_part_id: 0x7322,
        hw_version: 2,
        firmware: (1, 2, 3),
    }
}

pub fn port_attributes(lid: u16) -> PortAttributes {
    let mut gid = [0; 16];
    gid[0] = 0xfe;
    gid[1] = 0x80;
    gid[14..].copy_from_slice(&lid.to_be_bytes());
    PortAttributes {
        state: PortState::Active,
        physical_state: 5,
        lid: Lid::new(lid),
        lmc: 0,
        sm_lid: Lid::new(1),
        sm_sl: 0,
        max_mtu: 5,
        active_mtu: 5,
        max_vl: 4,
        active_width: 2,
        active_speed: 32,
        capabilities: 0,
        subnet_timeout: 18,
        pkeys: vec![0xffff, 0x8001, 0x0002, 0],
        gids: vec![gid],
    }
}

impl World {
    /// A world with adapters of LIDs 1 to `devices`.
    pub fn new(devices: u16) -> Self {
        let mut verbs = Verbs::new();
        let mut lids = BTreeMap::new();
        for lid in 1..=devices {
            lids.insert(
                lid,
                verbs.add_device(device_attributes(), port_attributes(lid)),
            );
        }
        Self {
            verbs,
            now: Time::ZERO,
            memory: BTreeMap::new(),
            fate: Box::new(|_, _| Fate::Arrive(LATENCY)),
            wire: None,
            departure: Span::ZERO,
            transfer_time: None,
            injected: Vec::new(),
            async_events: 0,
            calendar: BTreeMap::new(),
            sequence: 0,
            lids,
        }
    }

    /// Opens the adapter with this LID for a new process.
    pub fn process(&mut self, lid: u16) -> Process {
        let id = ProcessId(self.memory.len() as u64 + 100);
        self.memory.insert(id, vec![0; SIZE as usize]);
        let context = self.verbs.open(self.lids[&lid], id);
        let process = Process { id, context };
        process
            .call(self, &Command::GetContext(GetContext::default()))
            .unwrap();
        process
    }

    fn schedule(&mut self, at: Time, entry: Entry) {
        self.sequence += 1;
        self.calendar.insert((at, self.sequence), entry);
    }

    /// Carries out all actions.
    pub fn collect_actions(&mut self) {
        while let Some(action) = self.verbs.next_action() {
            match action {
                Action::Inject(message) => self.inject(message),
                Action::Copy { id, to, pieces } => {
                    let mut outcome = Outcome::Copied;
                    for piece in pieces {
                        assert!(piece.length > 0);
                        let data = match &piece.from {
                            Source::Memory { process, address } => {
                                self.read(*process, *address, piece.length)
                            }
                            Source::Bytes { data, offset } => {
                                Some(data[*offset..*offset + piece.length as usize].to_vec())
                            }
                        };
                        let Some(data) = data else {
                            outcome = Outcome::Fault(Fault::Source);
                            break;
                        };
                        if !self.write(to, piece.to, &data) {
                            outcome = Outcome::Fault(Fault::Target);
                            break;
                        }
                    }
                    self.end(id, outcome);
                }
                Action::Read { id, from, pieces } => {
                    let parts: Option<Vec<Vec<u8>>> = pieces
                        .iter()
                        .map(|(address, length)| self.read(from, *address, *length))
                        .collect();
                    let outcome = match parts {
                        Some(parts) => Outcome::Bytes(Arc::from(parts.concat())),
                        None => Outcome::Fault(Fault::Source),
                    };
                    self.end(id, outcome);
                }
                Action::Atomic {
                    id,
                    at,
                    address,
                    operation,
                } => {
                    let outcome = match self.read(at, address, 8) {
                        Some(bytes) => {
                            let old = u64::from_ne_bytes(bytes.try_into().unwrap());
                            let new = match operation {
                                AtomicOperation::CompareAndSwap { compare, swap }
                                    if compare == old =>
                                {
                                    swap
                                }
                                AtomicOperation::CompareAndSwap { .. } => old,
                                AtomicOperation::FetchAndAdd(value) => old.wrapping_add(value),
                            };
                            self.write(at, address, &new.to_ne_bytes());
                            Outcome::Original(old)
                        }
                        None => Outcome::Fault(Fault::Target),
                    };
                    self.end(id, outcome);
                }
                Action::AsyncEvent { .. } => self.async_events += 1,
                Action::Withdraw {
                    from,
                    queue_pair,
                    responds,
                } => {
                    if let Some(wire) = &mut self.wire {
                        wire.withdraw((from, queue_pair, responds));
                    }
                }
                Action::Forget { .. } => {}
                Action::Completion { .. }
                | Action::ChannelEvent { .. }
                | Action::Multicast { .. } => {}
            }
        }
    }

    fn end(&mut self, id: TransferId, outcome: Outcome) {
        match self.transfer_time {
            None => self.verbs.finish(self.now, id, outcome),
            Some(span) => self.schedule(self.now + span, Entry::Finish(id, outcome)),
        }
    }

    fn inject(&mut self, message: Message) {
        self.injected.push((self.now, message.clone()));
        if let Some(wire) = &mut self.wire {
            let from = message.from;
            if wire.inject(message) {
                self.send_packet(from);
            }
            return;
        }
        let fate = (self.fate)(self.now, &message);
        let now = self.now;
        self.schedule(now + self.departure, Entry::Depart(message.clone()));
        let delays: Vec<Span> = match fate {
            Fate::Arrive(delay) => vec![delay],
            Fate::Twice(first, second) => vec![first, second],
            Fate::Lose => {
                self.schedule(now, Entry::Lose(message));
                return;
            }
        };
        let ports: Vec<DeviceId> = match message.destination {
            Destination::Unicast(lid) => {
                self.lids.get(&lid.as_u16()).copied().into_iter().collect()
            }
            Destination::Multicast(_) => self
                .lids
                .values()
                .copied()
                .filter(|device| *device != message.from)
                .collect(),
        };
        for delay in delays {
            for &device in &ports {
                self.schedule(now + delay, Entry::Arrive(device, message.clone()));
            }
        }
    }

    fn send_packet(&mut self, from: DeviceId) {
        let Some(wire) = &mut self.wire else { return };
        let at = self.now + wire.packet;
        if let Some(packet) = wire.start(from) {
            self.schedule(at, Entry::Leave(packet));
        }
    }

    fn leave(&mut self, packet: Packet) {
        let Some(wire) = &mut self.wire else { return };
        let (last, arrives, to) = wire.leave(packet);
        if let Some(message) = last {
            self.verbs.departed(self.now, &message);
        }
        if arrives {
            let to = self.lids[&to.as_u16()];
            self.schedule(self.now + LATENCY, Entry::Packet(to, packet));
        }
        self.send_packet(packet.from);
    }

    fn receive_packet(&mut self, to: DeviceId, packet: Packet) {
        let Some(wire) = &mut self.wire else { return };
        let arrived = wire.arrive(packet);
        for (message, packets) in &arrived.gaps {
            let part = (message, *packets);
            self.verbs.gap(self.now, to, part, &arrived.message);
        }
        if arrived.is_whole {
            self.verbs.arrived(self.now, to, arrived.message);
        }
    }

    /// Runs the next instant with something to do, `false` if there is none until `until`.
    pub fn step(&mut self, until: Time) -> bool {
        self.collect_actions();
        let entry = self.calendar.keys().next().map(|(time, _)| *time);
        let next = [entry, self.verbs.next_timer()].into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= until) else {
            return false;
        };
        assert!(next >= self.now, "time goes back");
        self.now = next;
        if entry == Some(next) {
            let (_, entry) = self.calendar.pop_first().unwrap();
            match entry {
                Entry::Depart(message) => self.verbs.departed(next, &message),
                Entry::Arrive(device, message) => self.verbs.arrived(next, device, message),
                Entry::Lose(message) => self.verbs.lost(next, &message),
                Entry::Finish(id, outcome) => self.verbs.finish(next, id, outcome),
                Entry::Leave(packet) => self.leave(packet),
                Entry::Packet(to, packet) => self.receive_packet(to, packet),
            }
        } else {
            self.verbs.run_timers(next);
        }
        self.collect_actions();
        true
    }

    /// Runs until nothing is left to do.
    pub fn run(&mut self) {
        let mut steps = 0;
        while self.step(Time::MAX) {
            steps += 1;
            assert!(steps < 1_000_000, "the world does not come to rest");
        }
    }

    /// Runs until a time.
    pub fn run_until(&mut self, until: Time) {
        while self.step(until) {}
        self.now = until;
    }

    fn range(
        &self,
        process: ProcessId,
        address: u64,
        length: u64,
    ) -> Option<std::ops::Range<usize>> {
        let start = address.checked_sub(BASE)?;
        let end = start.checked_add(length)?;
        (end <= self.memory.get(&process)?.len() as u64).then_some(start as usize..end as usize)
    }

    pub fn read(&self, process: ProcessId, address: u64, length: u64) -> Option<Vec<u8>> {
        let range = self.range(process, address, length)?;
        Some(self.memory[&process][range].to_vec())
    }

    pub fn write(&mut self, process: ProcessId, address: u64, data: &[u8]) -> bool {
        let Some(range) = self.range(process, address, data.len() as u64) else {
            return false;
        };
        self.memory.get_mut(&process).unwrap()[range].copy_from_slice(data);
        true
    }
}

/// A process with an open device file.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    pub id: ProcessId,
    pub context: ContextId,
}

/// A registered region.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub handle: u32,
    pub key: u32,
}

/// A queue pair with its completion queue.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub process: Process,
    pub handle: u32,
    pub number: u32,
    pub pd: u32,
    pub cq: u32,
    pub kind: QpType,
}

/// Sizes and sharing of a queue pair.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub sends: u32,
    pub receives: u32,
    pub elements: u32,
    pub srq: Option<u32>,
    pub signal_all: bool,
    pub completions: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            sends: 64,
            receives: 64,
            elements: 4,
            srq: None,
            signal_all: false,
            completions: 256,
        }
    }
}

/// Attributes of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    pub mtu: u8,
    pub timeout: u8,
    pub retries: u8,
    pub rnr_retries: u8,
    pub rnr_timer: u8,
    pub reads: u8,
    pub pkey_index: u16,
    pub sq_psn: u32,
    pub access: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            mtu: 1,
            timeout: 8,
            retries: 7,
            rnr_retries: 7,
            rnr_timer: 1,
            reads: 4,
            pkey_index: 0,
            sq_psn: 0xff_fffe,
            access: ALL_RIGHTS,
        }
    }
}

pub const ALL_RIGHTS: u32 =
    access::LOCAL_WRITE | access::REMOTE_WRITE | access::REMOTE_READ | access::REMOTE_ATOMIC;

/// A send request to post.
#[derive(Clone, Debug)]
pub struct Post {
    pub wr_id: u64,
    pub opcode: SendOpcode,
    pub flags: u32,
    pub immediate: [u8; 4],
    pub elements: Vec<Sge>,
    pub remote: (u64, u32),
    pub operands: (u64, u64),
    /// Address handle, number and Q_Key of a datagram.
    pub datagram: Option<(u32, u32, u32)>,
}

impl Post {
    pub fn new(wr_id: u64, opcode: SendOpcode, elements: Vec<Sge>) -> Self {
        Self {
            wr_id,
            opcode,
            flags: send_flags::SIGNALED,
            immediate: [0; 4],
            elements,
            remote: (0, 0),
            operands: (0, 0),
            datagram: None,
        }
    }

    pub fn to(mut self, address: u64, key: u32) -> Self {
        self.remote = (address, key);
        self
    }

    pub fn flags(mut self, flags: u32) -> Self {
        self.flags = flags;
        self
    }
}

/// Element of a work request.
pub fn sge(region: Region, address: u64, length: u32) -> Sge {
    Sge {
        addr: address,
        length,
        lkey: region.key,
    }
}

impl Process {
    /// Executes a command; the error is its errno.
    pub fn call(&self, world: &mut World, command: &Command) -> Result<Vec<u8>, i32> {
        let reply = world
            .verbs
            .execute(world.now, self.context, &emit(command), &[]);
        world.collect_actions();
        match reply.errno {
            0 => Ok(reply.response),
            errno => Err(errno),
        }
    }

    fn answer<T: Layout>(&self, world: &mut World, command: &Command) -> Result<T, i32> {
        let response = self.call(world, command)?;
        Ok(T::parse(&response).expect("a whole response"))
    }

    pub fn alloc_pd(&self, world: &mut World) -> u32 {
        let command = Command::AllocPd(AllocPd::default());
        self.answer::<AllocPdResponse>(world, &command)
            .unwrap()
            .pd_handle
    }

    pub fn try_reg_mr(
        &self,
        world: &mut World,
        pd: u32,
        start: u64,
        length: u64,
        access: u32,
    ) -> Result<Region, i32> {
        let command = Command::RegMr(RegMr {
            start,
            length,
            hca_va: start,
            pd_handle: pd,
            access_flags: access,
            ..RegMr::default()
        });
        let response: RegMrResponse = self.answer(world, &command)?;
        Ok(Region {
            handle: response.mr_handle,
            key: response.rkey,
        })
    }

    /// Registers memory with all rights.
    pub fn reg_mr(&self, world: &mut World, pd: u32, start: u64, length: u64) -> Region {
        self.try_reg_mr(world, pd, start, length, ALL_RIGHTS)
            .unwrap()
    }

    pub fn dereg_mr(&self, world: &mut World, region: Region) -> Result<Vec<u8>, i32> {
        self.call(
            world,
            &Command::DeregMr(DeregMr {
                mr_handle: region.handle,
            }),
        )
    }

    pub fn create_channel(&self, world: &mut World) -> u32 {
        let command = Command::CreateCompChannel(CreateCompChannel::default());
        self.answer::<CreateCompChannelResponse>(world, &command)
            .unwrap()
            .fd
    }

    pub fn create_cq(&self, world: &mut World, cqe: u32, channel: i32) -> u32 {
        let command = Command::CreateCq(CreateCq {
            cqe,
            comp_channel: channel,
            user_handle: 0xc0 + u64::from(cqe),
            ..CreateCq::default()
        });
        self.answer::<CreateCqResponse>(world, &command)
            .unwrap()
            .cq_handle
    }

    pub fn create_srq(&self, world: &mut World, pd: u32, max_wr: u32, limit: u32) -> u32 {
        let command = Command::CreateSrq(CreateSrq {
            pd_handle: pd,
            max_wr,
            max_sge: 4,
            srq_limit: limit,
            user_handle: 0x5129,
            ..CreateSrq::default()
        });
        self.answer::<CreateSrqResponse>(world, &command)
            .unwrap()
            .srq_handle
    }

    pub fn create_qp(
        &self,
        world: &mut World,
        kind: QpType,
        pd: u32,
        cq: u32,
        sizes: Sizes,
    ) -> Result<Pair, i32> {
        let command = Command::CreateQp(CreateQp {
            user_handle: 0x9000,
            pd_handle: pd,
            send_cq_handle: cq,
            recv_cq_handle: cq,
            srq_handle: sizes.srq.unwrap_or(0),
            max_send_wr: sizes.sends,
            max_recv_wr: sizes.receives,
            max_send_sge: sizes.elements,
            max_recv_sge: sizes.elements,
            max_inline_data: 256,
            sq_sig_all: u8::from(sizes.signal_all),
            qp_type: kind.number() as u8,
            is_srq: u8::from(sizes.srq.is_some()),
            ..CreateQp::default()
        });
        let response: CreateQpResponse = self.answer(world, &command)?;
        Ok(Pair {
            process: *self,
            handle: response.qp_handle,
            number: response.qpn,
            pd,
            cq,
            kind,
        })
    }

    /// A queue pair with a domain and completion queue of its own.
    pub fn pair(&self, world: &mut World, kind: QpType, sizes: Sizes) -> Pair {
        let pd = self.alloc_pd(world);
        let cq = self.create_cq(world, sizes.completions, -1);
        self.create_qp(world, kind, pd, cq, sizes).unwrap()
    }

    pub fn create_ah(
        &self,
        world: &mut World,
        pd: u32,
        dlid: u16,
        route: Option<[u8; 16]>,
    ) -> Result<u32, i32> {
        let command = Command::CreateAh(CreateAh {
            pd_handle: pd,
            attr: AhAttributes {
                grh: GlobalRoute {
                    dgid: route.unwrap_or([0; 16]),
                    hop_limit: 1,
                    ..GlobalRoute::default()
                },
                dlid,
                is_global: u8::from(route.is_some()),
                port_num: 1,
                ..AhAttributes::default()
            },
            ..CreateAh::default()
        });
        Ok(self.answer::<CreateAhResponse>(world, &command)?.ah_handle)
    }

    pub fn poll(&self, world: &mut World, cq: u32, most: u32) -> Vec<WorkCompletion> {
        let command = Command::PollCq(PollCq {
            cq_handle: cq,
            ne: most,
            ..PollCq::default()
        });
        let response = self.call(world, &command).unwrap();
        let count = PollCqResponse::parse(&response).unwrap().count as usize;
        let completions: Vec<WorkCompletion> = response[PollCqResponse::SIZE..]
            .chunks(WorkCompletion::SIZE)
            .map(|bytes| WorkCompletion::parse(bytes).unwrap())
            .collect();
        assert_eq!(completions.len(), count);
        completions
    }

    pub fn notify(&self, world: &mut World, cq: u32, solicited_only: bool) {
        let command = Command::ReqNotifyCq(ReqNotifyCq {
            cq_handle: cq,
            solicited_only: u32::from(solicited_only),
        });
        self.call(world, &command).unwrap();
    }

    pub fn post_srq(
        &self,
        world: &mut World,
        srq: u32,
        wr_id: u64,
        elements: Vec<Sge>,
    ) -> Result<(), i32> {
        let request = ReceiveWr {
            wr_id,
            num_sge: elements.len() as u32,
            reserved: 0,
        };
        let post = PostSrqRecv {
            srq_handle: srq,
            wr_count: 1,
            sge_count: elements.len() as u32,
            wqe_size: ReceiveWr::SIZE as u32,
            ..PostSrqRecv::default()
        };
        self.call(
            world,
            &Command::PostSrqRecv(post, vec![(request, elements)]),
        )
        .map(drop)
    }

    /// Types of the asynchronous events that wait.
    pub fn events(&self, world: &mut World) -> Vec<(u32, u64)> {
        std::iter::from_fn(|| world.verbs.take_async_event(self.context))
            .map(|bytes| {
                let event = AsyncEvent::parse(&bytes).unwrap();
                (event.event_type, event.element)
            })
            .collect()
    }

    pub fn take(&self, world: &mut World, cq: u32, most: usize) -> Vec<[u8; 48]> {
        world
            .verbs
            .take_completions(self.context, CqHandle(cq), most)
    }
}

impl Pair {
    pub fn modify(&self, world: &mut World, command: ModifyQp) -> Result<(), i32> {
        let command = ModifyQp {
            qp_handle: self.handle,
            ..command
        };
        self.process
            .call(world, &Command::ModifyQp(command))
            .map(drop)
    }

    /// Requests a state without attributes.
    pub fn set_state(&self, world: &mut World, state: QpState) -> Result<(), i32> {
        let command = ModifyQp {
            attr_mask: qp_mask::STATE,
            qp_state: state.number() as u8,
            ..ModifyQp::default()
        };
        self.modify(world, command)
    }

    pub fn query(&self, world: &mut World) -> QueryQpResponse {
        let command = Command::QueryQp(QueryQp {
            qp_handle: self.handle,
            ..QueryQp::default()
        });
        self.process.answer(world, &command).unwrap()
    }

    pub fn state(&self, world: &mut World) -> QpState {
        QpState::from_number(u32::from(self.query(world).qp_state)).unwrap()
    }

    /// The attributes of the transition into `state`, complete and valid.
    pub fn attributes(&self, state: QpState, peer: (u16, u32), tuning: Tuning) -> ModifyQp {
        use qp_mask::*;

        let mask = match (state, self.kind) {
            (QpState::Init, QpType::Ud) => PKEY_INDEX | PORT | QKEY,
            (QpState::Init, _) => PKEY_INDEX | PORT | ACCESS_FLAGS,
            (QpState::Rtr, QpType::Ud) => 0,
            (QpState::Rtr, QpType::Uc) => AV | PATH_MTU | DEST_QPN | RQ_PSN,
            (QpState::Rtr, QpType::Rc) => {
                AV | PATH_MTU | DEST_QPN | RQ_PSN | MAX_DEST_RD_ATOMIC | MIN_RNR_TIMER
            }
            (QpState::Rts, QpType::Rc) => {
                TIMEOUT | RETRY_CNT | RNR_RETRY | SQ_PSN | MAX_QP_RD_ATOMIC
            }
            (QpState::Rts, _) => SQ_PSN,
            _ => 0,
        };
        ModifyQp {
            attr_mask: STATE | mask,
            qp_state: state.number() as u8,
            dest: QpDestination {
                dlid: peer.0,
                port_num: 1,
                ..QpDestination::default()
            },
            qkey: 0x1111,
            rq_psn: tuning.sq_psn,
            sq_psn: tuning.sq_psn,
            dest_qp_num: peer.1,
            qp_access_flags: tuning.access,
            pkey_index: tuning.pkey_index,
            path_mtu: tuning.mtu,
            max_rd_atomic: tuning.reads,
            max_dest_rd_atomic: tuning.reads,
            min_rnr_timer: tuning.rnr_timer,
            port_num: 1,
            timeout: tuning.timeout,
            retry_cnt: tuning.retries,
            rnr_retry: tuning.rnr_retries,
            ..ModifyQp::default()
        }
    }

    /// Brings the queue pair to `state` through the states before it.
    pub fn bring_to(&self, world: &mut World, state: QpState, peer: (u16, u32), tuning: Tuning) {
        for next in [QpState::Init, QpState::Rtr, QpState::Rts] {
            if next <= state {
                self.modify(world, self.attributes(next, peer, tuning))
                    .unwrap();
            }
        }
    }

    pub fn receive(&self, world: &mut World, wr_id: u64, elements: Vec<Sge>) -> Result<(), i32> {
        let request = ReceiveWr {
            wr_id,
            num_sge: elements.len() as u32,
            reserved: 0,
        };
        let post = PostRecv {
            qp_handle: self.handle,
            wr_count: 1,
            sge_count: elements.len() as u32,
            wqe_size: ReceiveWr::SIZE as u32,
            ..PostRecv::default()
        };
        self.process
            .call(world, &Command::PostRecv(post, vec![(request, elements)]))
            .map(drop)
    }

    pub fn send(&self, world: &mut World, posts: &[Post]) -> Result<(), (i32, u32)> {
        let mut inline = Vec::new();
        let mut requests = Vec::new();
        for post in posts {
            let part = match (post.datagram, post.opcode.is_atomic()) {
                (Some((ah, remote_qpn, remote_qkey)), _) => DatagramPart {
                    ah,
                    remote_qpn,
                    remote_qkey,
                    reserved: 0,
                }
                .to_bytes(),
                (None, true) => AtomicPart {
                    remote_addr: post.remote.0,
                    compare_add: post.operands.0,
                    swap: post.operands.1,
                    rkey: post.remote.1,
                    reserved: 0,
                }
                .to_bytes(),
                (None, false) => RdmaPart {
                    remote_addr: post.remote.0,
                    rkey: post.remote.1,
                    reserved: 0,
                }
                .to_bytes(),
            };
            let mut wr = [0; 32];
            wr[..part.len()].copy_from_slice(&part);
            if post.flags & send_flags::INLINE != 0 {
                for element in &post.elements {
                    let data = world.read(self.process.id, element.addr, u64::from(element.length));
                    inline.extend(data.unwrap());
                }
            }
            let request = SendWr {
                wr_id: post.wr_id,
                num_sge: post.elements.len() as u32,
                opcode: post.opcode.number(),
                send_flags: post.flags,
                ex: post.immediate,
                wr,
            };
            requests.push((request, post.elements.clone()));
        }
        let front = PostSend {
            qp_handle: self.handle,
            wr_count: requests.len() as u32,
            sge_count: requests.iter().map(|request| request.1.len() as u32).sum(),
            wqe_size: SendWr::SIZE as u32,
            ..PostSend::default()
        };
        let bytes = emit(&Command::PostSend(front, requests));
        let reply = world
            .verbs
            .execute(world.now, self.process.context, &bytes, &inline);
        world.collect_actions();
        let bad_wr = PostSendResponse::parse(&reply.response).unwrap().bad_wr;
        match reply.errno {
            0 => Ok(()),
            errno => Err((errno, bad_wr)),
        }
    }

    pub fn poll(&self, world: &mut World) -> Vec<WorkCompletion> {
        self.process.poll(world, self.cq, 1000)
    }
}

/// Two connected queue pairs of processes on adapters 1 and 2, each with all its memory registered.
pub struct Link {
    pub a: Pair,
    pub b: Pair,
    pub a_region: Region,
    pub b_region: Region,
}

pub fn link(world: &mut World, kind: QpType, sizes: Sizes, tuning: Tuning) -> Link {
    let (first, second) = (world.process(1), world.process(2));
    let a = first.pair(world, kind, sizes);
    let b = second.pair(world, kind, sizes);
    let a_region = first.reg_mr(world, a.pd, BASE, SIZE);
    let b_region = second.reg_mr(world, b.pd, BASE, SIZE);
    a.bring_to(world, QpState::Rts, (2, b.number), tuning);
    b.bring_to(world, QpState::Rts, (1, a.number), tuning);
    Link {
        a,
        b,
        a_region,
        b_region,
    }
}
