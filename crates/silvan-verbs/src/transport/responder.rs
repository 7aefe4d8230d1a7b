//! The responder: executes requests in order, one at a time (IBA volume 1, sections 9.7.4 and 9.9.3).

use silvan_core::Time;

use super::Transfer;
use super::wire::{self, advance, distance};
use crate::abi::structures::WorkCompletion;
use crate::abi::values::{
    CompletionOpcode, EventType, QpState, QpType, SendOpcode, Status, access, completion_flags,
};
use crate::action::{Action, AtomicOperation, Fault, Outcome, Piece, TransferId};
use crate::message::{Acknowledge, Content, Destination, Message, Request, Response};
use crate::objects::memory::{Origin, Segment, pieces, resolve, resolve_elements, total};
use crate::objects::queue_pair::{Arrival, Execution, Gap, MOST_READS, PSN_MASK, QueuePair};
use crate::objects::receive::ReceiveRequest;
use crate::objects::{PdKey, QpKey};
use crate::verbs::{ProcessId, Verbs};

const ROUTE_HEADER: u64 = 40;

#[derive(Clone, Copy)]
struct Refusal {
    status: Status,
    event: Option<EventType>,
}

const ACCESS: Refusal = Refusal {
    status: Status::RemoteAccess,
    event: Some(EventType::QpAccessError),
};

const INVALID: Refusal = Refusal {
    status: Status::RemoteInvalidRequest,
    event: Some(EventType::QpRequestError),
};

const OPERATION: Refusal = Refusal {
    status: Status::RemoteOperation,
    event: Some(EventType::QpFatal),
};

impl Verbs {
    pub(crate) fn enqueue_arrival(&mut self, now: Time, key: QpKey, message: Message) {
        if let Some(qp) = self.qps.get_mut(key) {
            qp.receive.arrivals.push_back(Arrival::Message(message));
            self.execute_arrivals(now, key);
        }
    }

    pub(crate) fn execute_arrivals(&mut self, now: Time, key: QpKey) {
        loop {
            let Some(qp) = self.qps.get_mut(key) else {
                return;
            };
            if qp.receive.execution.is_some() {
                return;
            }
            match qp.receive.arrivals.pop_front() {
                Some(Arrival::Message(message)) => self.execute_message(now, key, message),
                Some(Arrival::Gap(gap)) => self.notice_gap(key, &gap),
                None => return,
            }
        }
    }

    /// Counts the packets before a missing one, and asks for it. A missing duplicate is of no account.
    fn notice_gap(&mut self, key: QpKey, gap: &Gap) {
        use QpState::{Rtr, Rts, Sqd, Sqe};

        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        if !matches!(qp.state, Rtr | Rts | Sqd | Sqe) {
            return;
        }
        let receive = &mut qp.receive;
        if receive.broken == Some(gap.run) {
            return;
        }
        let news = distance(gap.lost, receive.expected_psn);
        if distance(gap.first, receive.expected_psn) <= 0 && news >= 0 {
            receive.has_refused &= news == 0;
            receive.expected_psn = gap.lost;
            receive.broken = Some(gap.run);
        }
        let expected = receive.expected_psn;
        if distance(gap.next, expected) > 0 && !std::mem::replace(&mut receive.has_refused, true) {
            self.acknowledge_with(key, Acknowledge::Sequence(expected));
        }
    }

    fn execute_message(&mut self, now: Time, key: QpKey, message: Message) {
        use QpState::{Rtr, Rts, Sqd, Sqe};

        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        let Content::Request(request) = message.content.clone() else {
            return;
        };
        if !matches!(qp.state, Rtr | Rts | Sqd | Sqe) || qp.kind != request.transport {
            return;
        }
        let kind = qp.kind;
        if kind != QpType::Ud && qp.attributes.dest_qp_num != message.flow.source_qp {
            return;
        }
        let qkey = qp.attributes.qkey;
        let device = &mut self.devices[qp.device.0 as usize];
        let own = qp.pkey(&device.port).unwrap_or(0);
        let is_member = (own | message.pkey) & 0x8000 != 0;
        if own & 0x7fff == 0 || (own ^ message.pkey) & 0x7fff != 0 || !is_member {
            device.bad_pkeys = device.bad_pkeys.saturating_add(1);
            return;
        }
        if kind == QpType::Ud && request.qkey != qkey {
            device.bad_qkeys = device.bad_qkeys.saturating_add(1);
            return;
        }
        if kind != QpType::Ud
            && qp.state == Rtr
            && !std::mem::replace(&mut qp.receive.has_established, true)
        {
            self.raise_of_qp(key, EventType::CommunicationEstablished);
        }
        match kind {
            QpType::Rc => self.execute_reliable(now, key, message, request),
            QpType::Uc => self.execute_unreliable(now, key, message, request),
            QpType::Ud => self.execute_datagram(now, key, message, request),
        }
    }

    fn execute_reliable(&mut self, now: Time, key: QpKey, message: Message, request: Request) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        let expected = qp.receive.expected_psn;
        let ahead = distance(request.first_psn(), expected);
        let is_new = request.brings(expected);
        if qp.receive.broken == Some(request.run()) {
            return;
        }
        if ahead > 0 {
            if !std::mem::replace(&mut qp.receive.has_refused, true) {
                self.acknowledge_with(key, Acknowledge::Sequence(expected));
            }
            return;
        }
        if is_new && self.differs_in_mtu(key, &message, &request) {
            return self.refuse_access(key, request.psn, INVALID);
        }
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        if is_new {
            qp.receive.has_refused = false;
        }
        match request.opcode {
            SendOpcode::Read => self.execute_read(now, key, message, &request),
            SendOpcode::CompareAndSwap | SendOpcode::FetchAndAdd => {
                self.execute_atomic(now, key, message, &request);
            }
            _ if !is_new => {
                let latest = expected.wrapping_sub(1) & PSN_MASK;
                self.acknowledge_with(key, Acknowledge::Positive(latest));
            }
            SendOpcode::Send | SendOpcode::SendWithImmediate => {
                self.execute_send(now, key, message, &request);
            }
            SendOpcode::Write | SendOpcode::WriteWithImmediate => {
                self.execute_write(now, key, message, &request);
            }
        }
    }

    /// Executes a request of UC: a gap in the sequence is a lost message, which is not repeated.
    fn execute_unreliable(&mut self, now: Time, key: QpKey, message: Message, request: Request) {
        if self.differs_in_mtu(key, &message, &request) {
            return;
        }
        if let Some(qp) = self.qps.get_mut(key) {
            qp.receive.expected_psn = request.psn;
        }
        match request.opcode {
            SendOpcode::Send | SendOpcode::SendWithImmediate => {
                self.execute_send(now, key, message, &request);
            }
            _ => self.execute_write(now, key, message, &request),
        }
    }

    /// Returns true if packets are longer or shorter than both ends allow: all but the last have the path MTU.
    fn differs_in_mtu(&self, key: QpKey, message: &Message, request: &Request) -> bool {
        let own = self.qps.get(key);
        let own = own.map(|qp| qp.mtu(&self.devices[qp.device.0 as usize].port));
        let sent = u64::from(message.mtu);
        own.is_some_and(|own| own != sent && request.length > own.min(sent))
    }

    fn execute_send(&mut self, now: Time, key: QpKey, message: Message, request: &Request) {
        let Some(origin) = self.origin(now, &message, request) else {
            return;
        };
        let Some(receive) = self.take_receive(key) else {
            return self.refuse_not_ready(key);
        };
        let Some(qp) = self.qps.get(key) else { return };
        let domain = self.receive_domain(qp);
        if total(&receive.elements) < request.length {
            self.fail_receive(key, receive.wr_id, Status::LocalLength);
            return self.refuse(key, request.psn, Status::RemoteInvalidRequest);
        }
        let elements = &receive.elements;
        let Some(targets) = resolve_elements(&self.mrs, domain, elements, access::LOCAL_WRITE)
        else {
            self.fail_receive(key, receive.wr_id, Status::LocalProtection);
            return self.refuse(key, request.psn, Status::RemoteOperation);
        };
        let parts = pieces(&origin, &targets, 0);
        self.copy(now, key, message, (Some(receive), &targets, parts));
    }

    fn execute_write(&mut self, now: Time, key: QpKey, message: Message, request: &Request) {
        let Some(origin) = self.origin(now, &message, request) else {
            return;
        };
        let Some(target) = self.remote_memory(key, request, access::REMOTE_WRITE) else {
            return self.refuse_access(key, request.psn, ACCESS);
        };
        let mut receive = None;
        if request.opcode.has_immediate() {
            receive = self.take_receive(key);
            if receive.is_none() {
                return self.refuse_not_ready(key);
            }
        }
        let targets = Vec::from_iter(target);
        let parts = pieces(&origin, &targets, 0);
        self.copy(now, key, message, (receive, &targets, parts));
    }

    fn execute_read(&mut self, now: Time, key: QpKey, message: Message, request: &Request) {
        let Some(qp) = self.qps.get(key) else { return };
        let is_new = request.brings(qp.receive.expected_psn);
        if is_new && qp.receive.responses >= u32::from(qp.attributes.max_dest_rd_atomic) {
            return self.refuse_access(key, request.psn, INVALID);
        }
        let Some(source) = self.remote_memory(key, request, access::REMOTE_READ) else {
            return self.refuse_access(key, request.psn, ACCESS);
        };
        let source = source.map(|source| source.after(request.offset));
        let Some(requester) = self.qps.get_mut(message.sender) else {
            return;
        };
        let domain = requester.pd;
        let is_running = requester.is_running();
        let Some(send) = requester.send.find(request.serial) else {
            return;
        };
        if send.is_answered || !is_running {
            return;
        }
        let elements = &send.request.elements;
        let Some(targets) = resolve_elements(&self.mrs, domain, elements, access::LOCAL_WRITE)
        else {
            return self.fail_send(now, message.sender, request.serial, Status::LocalProtection);
        };
        let parts = pieces(
            &Origin::Segments(Vec::from_iter(source)),
            &targets,
            request.offset,
        );
        if !is_new {
            self.withdraw_responses(key, request.round);
        }
        self.copy(now, key, message, (None, &targets, parts));
    }

    fn execute_atomic(&mut self, now: Time, key: QpKey, message: Message, request: &Request) {
        let Some(qp) = self.qps.get(key) else { return };
        if request.psn != qp.receive.expected_psn {
            let mut known = qp.receive.atomics.iter();
            if let Some(&(_, value)) = known.find(|(psn, _)| *psn == request.psn) {
                self.respond(now, key, request, (Some(value), false));
            }
            return;
        }
        if self.qps.get(message.sender).is_none() {
            return;
        }
        if request.remote_address % 8 != 0
            || qp.receive.responses >= u32::from(qp.attributes.max_dest_rd_atomic)
        {
            return self.refuse_access(key, request.psn, INVALID);
        }
        let Some(Some(target)) = self.remote_memory(key, request, access::REMOTE_ATOMIC) else {
            return self.refuse_access(key, request.psn, ACCESS);
        };
        let (first, second) = request.operands;
        let operation = match request.opcode {
            SendOpcode::CompareAndSwap => AtomicOperation::CompareAndSwap {
                compare: first,
                swap: second,
            },
            _ => AtomicOperation::FetchAndAdd(first),
        };
        let id = self.execute_later(key, message, None);
        self.actions.push_back(Action::Atomic {
            id,
            at: target.process,
            address: target.address,
            operation,
        });
    }

    /// Executes a datagram: room for the global route header precedes the data.
    fn execute_datagram(&mut self, now: Time, key: QpKey, message: Message, request: Request) {
        let Some(origin) = self.origin(now, &message, &request) else {
            return;
        };
        let Some(receive) = self.take_receive(key) else {
            return;
        };
        let Some(qp) = self.qps.get(key) else { return };
        let domain = self.receive_domain(qp);
        if total(&receive.elements) < request.length + ROUTE_HEADER {
            self.fail_receive(key, receive.wr_id, Status::LocalLength);
            return self.enter_error(key);
        }
        let elements = &receive.elements;
        let Some(targets) = resolve_elements(&self.mrs, domain, elements, access::LOCAL_WRITE)
        else {
            self.fail_receive(key, receive.wr_id, Status::LocalProtection);
            return self.enter_error(key);
        };
        let mut parts = match &request.route {
            Some((_, header)) => pieces(&Origin::Bytes(header.clone()), &targets, 0),
            None => Vec::new(),
        };
        parts.extend(pieces(&origin, &targets, ROUTE_HEADER));
        self.copy(now, key, message, (Some(receive), &targets, parts));
    }

    fn origin(&mut self, now: Time, message: &Message, request: &Request) -> Option<Origin> {
        if let Some(data) = &request.data {
            return Some(Origin::Bytes(data.clone()));
        }
        if request.transport != QpType::Rc {
            return Some(Origin::Segments(Vec::new()));
        }
        let sender = self.qps.get_mut(message.sender)?;
        if !sender.is_running() {
            return None;
        }
        let domain = sender.pd;
        let send = sender.send.find(request.serial)?;
        let elements = &send.request.elements;
        let segments = resolve_elements(&self.mrs, domain, elements, 0);
        if segments.is_none() {
            self.fail_send(now, message.sender, request.serial, Status::LocalProtection);
        }
        segments.map(Origin::Segments)
    }

    /// Memory that a remote request may use: `None` if it may not, `Some(None)` if it needs none.
    fn remote_memory(&self, key: QpKey, request: &Request, right: u32) -> Option<Option<Segment>> {
        let qp = self.qps.get(key)?;
        if qp.attributes.qp_access_flags & right == 0 {
            return None;
        }
        if request.length == 0 {
            return Some(None);
        }
        let range = (request.remote_address, request.length);
        resolve(&self.mrs, qp.pd, request.remote_key, range, right).map(Some)
    }

    fn receive_domain(&self, qp: &QueuePair) -> PdKey {
        let shared = qp.srq.and_then(|srq| self.srqs.get(srq));
        shared.map_or(qp.pd, |srq| srq.pd)
    }

    fn take_receive(&mut self, key: QpKey) -> Option<ReceiveRequest> {
        let qp = self.qps.get_mut(key)?;
        let Some(shared) = qp.srq else {
            return qp.receive.requests.pop_front();
        };
        let (request, is_low) = self.srqs.get_mut(shared)?.take();
        if is_low {
            self.raise_of_srq(shared, EventType::SrqLimit);
        }
        request
    }

    fn return_receive(&mut self, key: QpKey, request: ReceiveRequest) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        match qp.srq {
            None => qp.receive.requests.push_front(request),
            Some(shared) => {
                if let Some(srq) = self.srqs.get_mut(shared) {
                    srq.requests.push_front(request);
                }
            }
        }
    }

    fn acknowledge_with(&mut self, key: QpKey, acknowledge: Acknowledge) {
        let content = Content::Acknowledge(acknowledge);
        self.answer(key, content, (0, wire::AETH));
    }

    /// Ends responses that have not left before the requester went back for the `round`th time: it asks for them again.
    fn withdraw_responses(&mut self, key: QpKey, round: u32) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        if std::mem::replace(&mut qp.receive.withdrawn, round) == round {
            return;
        }
        qp.receive.responses = 0;
        self.actions.push_back(Action::Withdraw {
            from: qp.device,
            queue_pair: qp.number,
            responds: true,
        });
        let requester = self.numbers.get(&qp.attributes.dest_qp_num).copied();
        if let Some(requester) = requester
            && let Some(peer) = self.qps.get_mut(requester)
        {
            for send in &mut peer.send.sends {
                send.is_streaming = false;
            }
            self.refresh_timer(requester);
        }
    }

    /// Asks the requester to wait; UC and UD drop the message.
    fn refuse_not_ready(&mut self, key: QpKey) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        if qp.kind != QpType::Rc {
            return;
        }
        qp.receive.has_refused = true;
        let (expected, code) = (qp.receive.expected_psn, qp.attributes.min_rnr_timer);
        self.acknowledge_with(key, Acknowledge::NotReady(expected, code));
    }

    fn refuse(&mut self, key: QpKey, psn: u32, status: Status) {
        if self.qps.get(key).is_some_and(|qp| qp.kind == QpType::Rc) {
            self.acknowledge_with(key, Acknowledge::Failed(psn, status));
        }
        self.enter_error(key);
    }

    fn refuse_access(&mut self, key: QpKey, psn: u32, refusal: Refusal) {
        if self.qps.get(key).is_none_or(|qp| qp.kind != QpType::Rc) {
            return;
        }
        if let Some(event) = refusal.event {
            self.raise_of_qp(key, event);
        }
        self.refuse(key, psn, refusal.status);
    }

    fn execute_later(
        &mut self,
        key: QpKey,
        message: Message,
        request: Option<ReceiveRequest>,
    ) -> TransferId {
        let read = match &message.content {
            Content::Request(request) if request.opcode == SendOpcode::Read => {
                Some((message.sender, request.serial))
            }
            _ => None,
        };
        if let Some((requester, serial)) = read
            && let Some(send) = self
                .qps
                .get_mut(requester)
                .and_then(|qp| qp.send.find(serial))
        {
            send.landing += 1;
        }
        let id = self.begin(Transfer::Execution(key, read));
        if let Some(qp) = self.qps.get_mut(key) {
            qp.receive.execution = Some(Execution {
                id,
                message,
                request,
            });
        }
        id
    }

    fn copy(
        &mut self,
        now: Time,
        key: QpKey,
        message: Message,
        (request, targets, parts): (Option<ReceiveRequest>, &[Segment], Vec<Piece>),
    ) {
        let to: Option<ProcessId> = targets.first().map(|target| target.process);
        match to {
            Some(to) if !parts.is_empty() => {
                let id = self.execute_later(key, message, request);
                self.actions.push_back(Action::Copy {
                    id,
                    to,
                    pieces: parts,
                });
            }
            _ => self.conclude(now, key, &message, (request, None)),
        }
    }

    pub(crate) fn execution_finished(
        &mut self,
        now: Time,
        key: QpKey,
        id: TransferId,
        outcome: Outcome,
    ) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        let execution = match qp.receive.execution.take() {
            Some(execution) if execution.id == id => execution,
            other => {
                qp.receive.execution = other;
                return;
            }
        };
        let Execution {
            message, request, ..
        } = execution;
        if qp.state == QpState::Err {
            if let Some(request) = request {
                self.fail_receive(key, request.wr_id, Status::Flushed);
            }
            return self.flush_receives(key);
        }
        let opcode = match &message.content {
            Content::Request(request) => request.opcode,
            _ => return,
        };
        match (outcome, opcode.is_atomic()) {
            (Outcome::Copied, false) => self.conclude(now, key, &message, (request, None)),
            (Outcome::Original(value), true) => {
                self.conclude(now, key, &message, (request, Some(value)));
            }
            (Outcome::Fault(fault), _) => self.fault(now, key, &message, request, fault),
            _ => self.fault(now, key, &message, request, Fault::Target),
        }
        self.execute_arrivals(now, key);
    }

    fn fault(
        &mut self,
        now: Time,
        key: QpKey,
        message: &Message,
        receive: Option<ReceiveRequest>,
        fault: Fault,
    ) {
        let Content::Request(request) = &message.content else {
            return;
        };
        // A read writes at its requester.
        let is_requesters = match request.opcode {
            SendOpcode::Read => fault == Fault::Target,
            opcode => !opcode.is_atomic() && fault == Fault::Source,
        };
        if is_requesters {
            if let Some(receive) = receive {
                self.return_receive(key, receive);
            }
            return self.fail_send(now, message.sender, request.serial, Status::LocalProtection);
        }
        match receive {
            Some(receive) => {
                self.fail_receive(key, receive.wr_id, Status::LocalProtection);
                self.refuse(key, request.psn, Status::RemoteOperation);
            }
            None => self.refuse_access(key, request.psn, OPERATION),
        }
    }

    fn conclude(
        &mut self,
        now: Time,
        key: QpKey,
        message: &Message,
        (receive, original): (Option<ReceiveRequest>, Option<u64>),
    ) {
        let Content::Request(request) = &message.content else {
            return;
        };
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        let is_new = request.brings(qp.receive.expected_psn);
        if is_new && qp.kind != QpType::Ud {
            qp.receive.expected_psn = advance(request.psn, request.packets);
        }
        if let Some(value) = original {
            qp.receive.atomics.push_back((request.psn, value));
            if qp.receive.atomics.len() > usize::from(MOST_READS) {
                qp.receive.atomics.pop_front();
            }
        }
        let kind = qp.kind;
        if let Some(receive) = receive {
            self.complete_receive(key, message, request, &receive);
        }
        if kind == QpType::Rc {
            match request.opcode.has_response() {
                true => self.respond(now, key, request, (original, is_new)),
                false => {
                    let count = self.qps.get(key).map_or(1, |qp| qp.receive.expected_psn);
                    let latest = count.wrapping_sub(1) & PSN_MASK;
                    self.acknowledge_with(key, Acknowledge::Positive(latest));
                }
            }
        }
    }

    fn respond(
        &mut self,
        now: Time,
        key: QpKey,
        request: &Request,
        (original, is_new): (Option<u64>, bool),
    ) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        qp.receive.responses += u32::from(is_new);
        let requester = qp.attributes.dest_qp_num;
        let count = request.packets - request.first;
        let response = Response {
            serial: request.serial,
            attempt: request.attempt,
            first: request.first,
            psn: advance(request.psn, request.packets.wrapping_sub(1)),
            original,
            is_new,
        };
        let size = match original {
            Some(_) => (0, wire::AETH + wire::ATOMIC_ACK_ETH),
            // The first and the last packet have the header.
            None => (
                request.length.saturating_sub(request.offset),
                wire::AETH * u64::from(count.min(2)),
            ),
        };
        if original.is_none() {
            self.mark_streaming(now, requester, request.serial, true);
        }
        self.answer(key, Content::Response(response), size);
    }

    fn complete_receive(
        &mut self,
        key: QpKey,
        message: &Message,
        request: &Request,
        receive: &ReceiveRequest,
    ) {
        let Some(qp) = self.qps.get(key) else { return };
        let is_write = request.opcode == SendOpcode::WriteWithImmediate;
        let opcode = match is_write {
            true => CompletionOpcode::ReceiveWriteWithImmediate,
            false => CompletionOpcode::Receive,
        };
        let is_datagram = qp.kind == QpType::Ud;
        let mut flags = 0;
        if request.opcode.has_immediate() {
            flags |= completion_flags::WITH_IMMEDIATE;
        }
        if is_datagram && request.route.is_some() {
            flags |= completion_flags::GRH;
        }
        let room = if is_datagram { ROUTE_HEADER } else { 0 };
        let (Destination::Unicast(lid) | Destination::Multicast(lid)) = message.destination;
        let lmc = self.devices[qp.device.0 as usize].port.lmc.min(7);
        let completion = WorkCompletion {
            wr_id: receive.wr_id,
            status: Status::Success.number(),
            opcode: opcode.number(),
            byte_len: (request.length + room) as u32,
            ex: request.immediate,
            qp_num: qp.number,
            src_qp: message.flow.source_qp,
            wc_flags: flags,
            pkey_index: qp.attributes.pkey_index,
            slid: message.source_lid.as_u16(),
            sl: message.sl.as_u8(),
            dlid_path_bits: match message.destination {
                Destination::Unicast(_) => (lid.as_u16() & ((1 << lmc) - 1)) as u8,
                Destination::Multicast(_) => 0,
            },
            port_num: 1,
            ..WorkCompletion::default()
        };
        self.complete(qp.receive_cq, completion, request.is_solicited);
    }
}
