//! The transports RC, UC and UD, one message per work request.
//!
//! Data of RC stay in the sender's memory until the request arrives, as it completes only afterwards. A read copies
//! when its request arrives at the responder. Data of UC and UD are read before injection, because their requests
//! complete at departure.

pub(crate) mod flushing;
pub(crate) mod requester;
pub(crate) mod responder;
pub(crate) mod sending;
pub(crate) mod wire;

use silvan_core::Time;

use crate::abi::structures::WorkCompletion;
use crate::abi::values::{EventType, QpType, SendOpcode, Status};
use crate::action::{Action, Outcome, TransferId};
use crate::message::{Content, Destination, Message};
use crate::objects::context::EventSource;
use crate::objects::queue_pair::{Arrival, Gap};
use crate::objects::{CqKey, QpKey, SrqKey};
use crate::verbs::{ChannelHandle, CqHandle, DeviceId, Verbs};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Transfer {
    Execution(QpKey, Option<(QpKey, u64)>),
    Data(QpKey, u64),
    Value(QpKey, u64),
}

impl Verbs {
    pub(crate) fn begin(&mut self, purpose: Transfer) -> TransferId {
        self.last_transfer += 1;
        let id = TransferId(self.last_transfer);
        self.transfers.insert(id, purpose);
        id
    }

    pub(crate) fn complete(&mut self, cq: CqKey, completion: WorkCompletion, is_solicited: bool) {
        let Some(queue) = self.cqs.get_mut(cq) else {
            return;
        };
        let added = queue.add(completion, is_solicited);
        let (context, handle, channel) = (queue.context, queue.handle, queue.channel);
        if added.overflows {
            let element = queue.user_handle;
            self.raise(context, EventType::CqError, element, EventSource::Cq(cq));
            self.overflowed.push(cq);
        }
        if added.is_stored && added.is_first {
            self.actions.push_back(Action::Completion {
                context,
                cq: CqHandle(handle),
            });
        }
        if added.notifies
            && let Some(channel) = channel
            && let Some(owner) = self.contexts.get_mut(&context)
        {
            owner.push_completion_event(channel, cq);
            self.actions.push_back(Action::ChannelEvent {
                context,
                channel: ChannelHandle(channel),
            });
        }
    }

    pub(crate) fn raise_of_qp(&mut self, key: QpKey, kind: EventType) {
        if let Some(qp) = self.qps.get(key) {
            let (context, element) = (qp.context, qp.user_handle);
            self.raise(context, kind, element, EventSource::Qp(key));
        }
    }

    pub(crate) fn raise_of_srq(&mut self, key: SrqKey, kind: EventType) {
        if let Some(srq) = self.srqs.get(key) {
            let (context, element) = (srq.context, srq.user_handle);
            self.raise(context, kind, element, EventSource::Srq(key));
        }
    }

    pub(crate) fn complete_send(
        &mut self,
        key: QpKey,
        (wr_id, opcode, length): (u64, SendOpcode, u64),
        status: Status,
    ) {
        let Some(qp) = self.qps.get(key) else { return };
        let completion = WorkCompletion {
            wr_id,
            status: status.number(),
            opcode: opcode.completion().number(),
            byte_len: length as u32,
            qp_num: qp.number,
            port_num: 1,
            ..WorkCompletion::default()
        };
        self.complete(qp.send_cq, completion, false);
    }

    pub(crate) fn refresh_timer(&mut self, key: QpKey) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        let due = qp.due();
        if due == qp.timer {
            return;
        }
        let number = qp.number;
        if let Some(old) = std::mem::replace(&mut qp.timer, due) {
            self.timers.remove(&(old, number));
        }
        if let Some(due) = due {
            self.timers.insert((due, number));
        }
    }

    pub(crate) fn fail_overflowed(&mut self) {
        while let Some(cq) = self.overflowed.pop() {
            let users: Vec<QpKey> = self
                .numbers
                .values()
                .copied()
                .filter(|key| {
                    let qp = self.qps.get(*key);
                    qp.is_some_and(|qp| qp.send_cq == cq || qp.receive_cq == cq)
                })
                .collect();
            for key in users {
                self.raise_of_qp(key, EventType::QpFatal);
                self.enter_error(key);
            }
        }
    }

    pub(crate) fn message_departed(&mut self, now: Time, message: &Message) {
        let key = message.sender;
        match &message.content {
            Content::Request(request) => {
                let Some(qp) = self.qps.get_mut(key) else {
                    return;
                };
                let queue = &mut qp.send;
                let Some(send) = queue.find(request.serial) else {
                    return;
                };
                if send.attempt != request.attempt {
                    return;
                }
                let Some(payload) = send.leaving.take() else {
                    return;
                };
                send.departed = Some(now);
                queue.count_departure(payload);
                self.reap(now, key);
                self.start_sends(now, key);
            }
            Content::Response(response) => {
                if response.original.is_none() {
                    self.mark_streaming(now, message.flow.destination_qp, response.serial, false);
                }
                if response.is_new
                    && let Some(qp) = self.qps.get_mut(key)
                {
                    qp.receive.responses = qp.receive.responses.saturating_sub(1);
                }
            }
            Content::Acknowledge(_) => {}
        }
    }

    pub(crate) fn message_arrived(&mut self, now: Time, device: DeviceId, message: Message) {
        if matches!(message.destination, Destination::Multicast(_)) {
            self.distribute(now, device, &message);
            return;
        }
        let Some(&key) = self.numbers.get(&message.flow.destination_qp) else {
            return;
        };
        match self.qps.get(key) {
            Some(qp) if qp.device == device => {}
            _ => return,
        }
        match message.content {
            Content::Request(_) => self.enqueue_arrival(now, key, message),
            Content::Response(response) => self.receive_response(now, key, response),
            Content::Acknowledge(acknowledge) => self.receive_acknowledge(now, key, acknowledge),
        }
    }

    pub(crate) fn packet_missing(
        &mut self,
        now: Time,
        device: DeviceId,
        (message, index): (&Message, u32),
        next: &Message,
    ) {
        let Some(&key) = self.numbers.get(&message.flow.destination_qp) else {
            return;
        };
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        let is_peer = qp.attributes.dest_qp_num == message.flow.source_qp;
        if qp.device != device || qp.kind != QpType::Rc || !is_peer {
            return;
        }
        match (&message.content, &next.content) {
            (Content::Request(request), Content::Request(after)) => {
                let first = request.first_psn();
                let lost = wire::advance(first, index);
                let next = match request.run() == after.run() {
                    true => wire::advance(lost, 1),
                    false => after.first_psn(),
                };
                let gap = Gap {
                    run: request.run(),
                    first,
                    lost,
                    next,
                };
                qp.receive.arrivals.push_back(Arrival::Gap(gap));
                self.execute_arrivals(now, key);
            }
            (Content::Response(response), _) => {
                self.receive_part(now, key, response, index);
            }
            _ => {}
        }
    }

    /// Gives a multicast message to the queue pairs of a port that are attached to its group, except the sender.
    pub(crate) fn distribute(&mut self, now: Time, device: DeviceId, message: &Message) {
        let Content::Request(request) = &message.content else {
            return;
        };
        let group = match (&request.route, self.devices.get(device.0 as usize)) {
            (Some((route, _)), Some(owner)) => owner.groups.get(&route.dgid),
            _ => None,
        };
        let members: Vec<QpKey> = group.into_iter().flatten().copied().collect();
        for key in members {
            if key != message.sender {
                self.enqueue_arrival(now, key, message.clone());
            }
        }
    }

    pub(crate) fn transfer_finished(&mut self, now: Time, id: TransferId, outcome: Outcome) {
        match self.transfers.remove(&id) {
            Some(Transfer::Execution(key, read)) => {
                self.execution_finished(now, key, id, outcome);
                if let Some((requester, serial)) = read {
                    self.read_landed(now, requester, serial);
                }
            }
            Some(Transfer::Data(key, serial)) => self.data_read(now, key, (id, serial), outcome),
            Some(Transfer::Value(key, serial)) => {
                self.value_stored(now, key, (id, serial), outcome)
            }
            None => {}
        }
    }
}
