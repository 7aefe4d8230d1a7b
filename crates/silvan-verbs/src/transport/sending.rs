use std::sync::Arc;

use silvan_core::Time;

use super::Transfer;
use super::wire::{self, wire_bytes};
use crate::abi::values::{QpState, QpType, SendOpcode, Status, access, send_flags};
use crate::action::{Action, Outcome, TransferId};
use crate::device::PortAttributes;
use crate::message::{Content, Destination, Flow, Message, MessageKind, Request};
use crate::objects::QpKey;
use crate::objects::address::{Address, MULTICAST_QP};
use crate::objects::memory::resolve_elements;
use crate::objects::queue_pair::{QueuePair, Send, SendRequest};
use crate::verbs::Verbs;

/// Requests of a queue pair that wait in the adapter, so that it never idles.
const LEAST_WAITING: usize = 2;

/// Most requests of a queue pair that wait in the adapter, so that a repetition sends little again that has not left.
const MOST_WAITING: usize = 128;

/// Bytes of data in the adapter beyond which no more than [`LEAST_WAITING`] requests of a queue pair wait.
const MOST_WAITING_BYTES: u64 = 1 << 20;

/// Longest message, 1 GiB: at the smallest MTU its sequence numbers are half of what may be in flight.
pub(crate) const LONGEST: u64 = 1 << 30;

/// Most sequence numbers in flight: half of all, so that a responder can tell old from new.
const MOST_PSNS: u32 = 1 << 23;

enum Step {
    Wait,
    Skip,
    Fail(Status),
    Read,
    Inject,
}

impl Verbs {
    pub(crate) fn post_send(&mut self, now: Time, key: QpKey, request: SendRequest) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        let serial = qp.send.next_serial;
        qp.send.next_serial += 1;
        let data = request.inline.clone();
        qp.send.sends.push_back(Send {
            request,
            serial,
            psn: 0,
            packets: 0,
            attempt: 0,
            done: 0,
            broken: 0,
            leaving: None,
            is_streaming: false,
            departed: None,
            is_acknowledged: false,
            is_answered: false,
            landing: 0,
            transfer: None,
            data,
            failure: None,
        });
        match qp.state {
            QpState::Err | QpState::Sqe => self.flush_sends(key),
            _ => self.start_sends(now, key),
        }
    }

    pub(crate) fn start_sends(&mut self, now: Time, key: QpKey) {
        loop {
            match self.next_step(key) {
                Step::Wait => break,
                Step::Skip => {
                    if let Some(qp) = self.qps.get_mut(key) {
                        qp.send.next += 1;
                    }
                }
                Step::Fail(status) => {
                    if let Some(qp) = self.qps.get_mut(key) {
                        let next = qp.send.next;
                        if let Some(send) = qp.send.sends.get_mut(next) {
                            send.failure = Some(status);
                        }
                    }
                    self.reap(now, key);
                    break;
                }
                Step::Read => {
                    self.read_data(key);
                    break;
                }
                Step::Inject => self.inject_request(key),
            }
        }
        self.refresh_timer(key);
    }

    fn next_step(&self, key: QpKey) -> Step {
        let Some(qp) = self.qps.get(key) else {
            return Step::Wait;
        };
        let queue = &qp.send;
        let Some(send) = queue.sends.get(queue.next) else {
            return Step::Wait;
        };
        let runs = match qp.state {
            QpState::Rts => true,
            QpState::Sqd => send.packets > 0,
            _ => false,
        };
        if !runs || queue.rnr_until.is_some() || send.failure.is_some() {
            return Step::Wait;
        }
        let request = &send.request;
        let port = &self.devices[qp.device.0 as usize].port;
        if qp.kind == QpType::Rc {
            let is_done = match request.opcode.has_response() {
                true => send.is_answered || send.transfer.is_some(),
                false => send.is_acknowledged,
            };
            if is_done {
                return Step::Skip;
            }
            let reads = queue.reads();
            if request.opcode.has_response() && reads >= usize::from(qp.attributes.max_rd_atomic)
                || request.flags & send_flags::FENCE != 0 && reads > 0
            {
                return Step::Wait;
            }
            let packets = wire::packets(request.length, qp.mtu(port));
            if send.packets == 0 && queue.is_busy() && queue.psns() + packets > MOST_PSNS {
                return Step::Wait;
            }
        }
        let (waiting, bytes) = queue.undeparted;
        let is_full =
            waiting >= MOST_WAITING || (waiting >= LEAST_WAITING && bytes >= MOST_WAITING_BYTES);
        if is_full || send.transfer.is_some() {
            return Step::Wait;
        }
        if request.length > self.longest(qp, port) {
            return Step::Fail(Status::LocalLength);
        }
        if request.inline.is_none() && send.data.is_none() {
            let rights = match request.opcode.has_response() {
                true => access::LOCAL_WRITE,
                false => 0,
            };
            if resolve_elements(&self.mrs, qp.pd, &request.elements, rights).is_none() {
                return Step::Fail(Status::LocalProtection);
            }
            if qp.kind != QpType::Rc && request.length > 0 {
                return Step::Read;
            }
        }
        Step::Inject
    }

    fn longest(&self, qp: &QueuePair, port: &PortAttributes) -> u64 {
        match qp.kind {
            QpType::Ud => qp.mtu(port),
            QpType::Rc | QpType::Uc => LONGEST,
        }
    }

    fn read_data(&mut self, key: QpKey) {
        let Some(qp) = self.qps.get(key) else { return };
        let Some(send) = qp.send.sends.get(qp.send.next) else {
            return;
        };
        let (serial, pd) = (send.serial, qp.pd);
        let Some(segments) = resolve_elements(&self.mrs, pd, &send.request.elements, 0) else {
            return;
        };
        let Some(from) = segments.first().map(|segment| segment.process) else {
            return;
        };
        let id = self.begin(Transfer::Data(key, serial));
        if let Some(send) = self.qps.get_mut(key).and_then(|qp| qp.send.find(serial)) {
            send.transfer = Some(id);
        }
        let pieces = segments.iter().map(|part| (part.address, part.length));
        self.actions.push_back(Action::Read {
            id,
            from,
            pieces: pieces.collect(),
        });
    }

    pub(crate) fn data_read(
        &mut self,
        now: Time,
        key: QpKey,
        (id, serial): (TransferId, u64),
        outcome: Outcome,
    ) {
        let Some(send) = self.qps.get_mut(key).and_then(|qp| qp.send.find(serial)) else {
            return;
        };
        if send.transfer != Some(id) {
            return;
        }
        send.transfer = None;
        match outcome {
            Outcome::Bytes(data) if data.len() as u64 == send.request.length => {
                send.data = Some(data)
            }
            _ => send.failure = Some(Status::LocalProtection),
        }
        self.reap(now, key);
        self.start_sends(now, key);
    }

    fn inject_request(&mut self, key: QpKey) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        let port = &self.devices[qp.device.0 as usize].port;
        let mtu = qp.mtu(port);
        let pkey = qp.pkey(port).unwrap_or(0);
        let qkey = qp.attributes.qkey;
        let kind = qp.kind;
        let queue = &mut qp.send;
        let round = queue.round;
        let next_psn = queue.next_psn;
        let Some(send) = queue.sends.get_mut(queue.next) else {
            return;
        };
        let request = &send.request;
        let Some(address) = request
            .datagram
            .map(|datagram| datagram.address)
            .or(qp.address)
        else {
            send.failure = Some(Status::LocalOperation);
            return;
        };
        if send.packets == 0 {
            send.psn = next_psn;
            send.packets = wire::packets(request.length, mtu);
            queue.next_psn = wire::advance(next_psn, send.packets);
        }
        send.attempt += 1;
        let first = send.done;
        let offset = u64::from(first) * mtu;
        let payload = request.payload().saturating_sub(offset);
        send.leaving = Some(payload);
        send.departed = None;
        queue.undeparted.0 += 1;
        queue.undeparted.1 += payload;
        queue.next += 1;
        let destination = address.destination();
        let route = match (address.route, address.route_header(port, request.length)) {
            (Some(route), Some(header)) => Some((route, Arc::from(header))),
            _ => None,
        };
        let packets = match request.opcode.has_response() {
            true => 1,
            false => send.packets - first,
        };
        let message = Message {
            from: qp.device,
            source_lid: address.source_lid(port),
            destination,
            sl: address.sl(),
            flow: Flow {
                source_qp: qp.number,
                destination_qp: match (destination, request.datagram) {
                    (Destination::Multicast(_), _) => MULTICAST_QP,
                    (_, Some(datagram)) => datagram.number,
                    _ => qp.attributes.dest_qp_num,
                },
            },
            kind: MessageKind::Request,
            payload_bytes: payload,
            mtu: mtu as u32,
            packets,
            wire_bytes: wire_bytes(
                payload,
                packets,
                route.is_some(),
                extension(request.opcode, kind, (first, packets)),
            ),
            pkey,
            sender: key,
            content: Content::Request(Request {
                transport: kind,
                opcode: request.opcode,
                serial: send.serial,
                attempt: send.attempt,
                round,
                psn: send.psn,
                packets: send.packets,
                first,
                offset,
                length: request.length,
                immediate: request.immediate,
                is_solicited: request.flags & send_flags::SOLICITED != 0,
                remote_address: request.remote_address,
                remote_key: request.remote_key,
                operands: request.operands,
                data: send.data.clone(),
                qkey: match request.datagram {
                    Some(datagram) if datagram.qkey >> 31 == 0 => datagram.qkey,
                    _ => qkey,
                },
                route,
            }),
        };
        self.actions.push_back(Action::Inject(message));
    }

    pub(crate) fn reap(&mut self, now: Time, key: QpKey) {
        loop {
            let Some(qp) = self.qps.get_mut(key) else {
                return;
            };
            let kind = qp.kind;
            let Some(send) = qp.send.sends.front() else {
                break;
            };
            if send.landing > 0 {
                break;
            }
            let is_done = match kind {
                QpType::Rc if send.request.opcode.has_response() => send.is_answered,
                QpType::Rc => send.is_acknowledged,
                QpType::Uc | QpType::Ud => send.departed.is_some(),
            };
            let status = match send.failure {
                Some(status) => status,
                None if is_done => Status::Success,
                None => break,
            };
            let is_signaled =
                qp.created.sq_sig_all != 0 || send.request.flags & send_flags::SIGNALED != 0;
            let facts = (send.request.wr_id, send.request.opcode, send.request.length);
            qp.send.pop();
            qp.send.progress = now;
            if status == Status::Success {
                if is_signaled {
                    self.complete_send(key, facts, status);
                }
                continue;
            }
            self.complete_send(key, facts, status);
            match kind {
                QpType::Rc => self.enter_error(key),
                QpType::Uc | QpType::Ud => self.enter_send_error(key),
            }
            break;
        }
        self.report_drained(key);
        self.refresh_timer(key);
    }

    /// Injects an answer of a connected queue pair, with `payload` bytes of data and `extension` bytes of headers.
    pub(crate) fn answer(
        &mut self,
        key: QpKey,
        content: Content,
        (payload, extension): (u64, u64),
    ) {
        let Some(qp) = self.qps.get(key) else { return };
        let Some(address): Option<Address> = qp.address else {
            return;
        };
        let port = &self.devices[qp.device.0 as usize].port;
        let mtu = qp.mtu(port);
        let packets = wire::packets(payload, mtu);
        let kind = match content {
            Content::Acknowledge(_) => MessageKind::Acknowledge,
            _ => MessageKind::Response,
        };
        self.actions.push_back(Action::Inject(Message {
            from: qp.device,
            source_lid: address.source_lid(port),
            destination: address.destination(),
            sl: address.sl(),
            flow: Flow {
                source_qp: qp.number,
                destination_qp: qp.attributes.dest_qp_num,
            },
            kind,
            payload_bytes: payload,
            mtu: mtu as u32,
            packets,
            wire_bytes: wire_bytes(payload, packets, address.route.is_some(), extension),
            pkey: qp.pkey(port).unwrap_or(0),
            sender: key,
            content,
        }));
    }
}

/// Bytes of extended headers; only the first packet of a write says where its data go.
fn extension(opcode: SendOpcode, kind: QpType, (first, packets): (u32, u32)) -> u64 {
    let operation = match opcode {
        SendOpcode::Send | SendOpcode::SendWithImmediate => 0,
        SendOpcode::Write | SendOpcode::WriteWithImmediate if first > 0 => 0,
        SendOpcode::Write | SendOpcode::WriteWithImmediate | SendOpcode::Read => wire::RETH,
        SendOpcode::CompareAndSwap | SendOpcode::FetchAndAdd => wire::ATOMIC_ETH,
    };
    let immediate = match opcode.has_immediate() {
        true => wire::IMMEDIATE,
        false => 0,
    };
    let datagram = match kind {
        QpType::Ud => wire::DETH * u64::from(packets),
        QpType::Rc | QpType::Uc => 0,
    };
    operation + immediate + datagram
}
