use std::collections::VecDeque;
use std::sync::Arc;

use silvan_core::Time;

use super::address::Address;
use super::receive::ReceiveRequest;
use super::states::transition;
use super::{CqKey, PdKey, SrqKey};
use crate::abi::structures::{CreateQp, ModifyQp, QueryQpResponse, Sge};
use crate::abi::values::{QpState, QpType, SendOpcode, Status, access, qp_mask};
use crate::action::TransferId;
use crate::device::PortAttributes;
use crate::errno::Errno;
use crate::message::Message;
use crate::transport::wire::distance;
use crate::verbs::{ContextId, DeviceId};

pub(crate) const MOST_SENDS: u32 = 16_384;
pub(crate) const MOST_ELEMENTS: u32 = 32;
pub(crate) const MOST_INLINE: u32 = 1024;
pub(crate) const MOST_READS: u8 = 16;
pub(crate) const PSN_MASK: u32 = 0xff_ffff;

#[derive(Clone, Debug)]
pub(crate) struct SendRequest {
    pub(crate) wr_id: u64,
    pub(crate) opcode: SendOpcode,
    pub(crate) flags: u32,
    pub(crate) immediate: [u8; 4],
    pub(crate) elements: Vec<Sge>,
    pub(crate) length: u64,
    pub(crate) inline: Option<Arc<[u8]>>,
    pub(crate) remote_address: u64,
    pub(crate) remote_key: u32,
    pub(crate) operands: (u64, u64),
    pub(crate) datagram: Option<Datagram>,
}

impl SendRequest {
    pub(crate) fn payload(&self) -> u64 {
        match self.opcode.has_response() {
            true => 0,
            false => self.length,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    pub(crate) address: Address,
    pub(crate) number: u32,
    pub(crate) qkey: u32,
}

#[derive(Debug)]
pub(crate) struct Send {
    pub(crate) request: SendRequest,
    pub(crate) serial: u64,
    pub(crate) psn: u32,
    /// Sequence numbers that it takes; 0 before it is sent.
    pub(crate) packets: u32,
    pub(crate) attempt: u32,
    /// Packets that need not be sent or asked for again.
    pub(crate) done: u32,
    /// Attempt at a read whose response has lost a packet.
    pub(crate) broken: u32,
    /// Its data that wait in the adapter in bytes; `None` if it has left or was not sent.
    pub(crate) leaving: Option<u64>,
    /// The responder sends data of a read: time passes until the last byte departs.
    pub(crate) is_streaming: bool,
    pub(crate) departed: Option<Time>,
    pub(crate) is_acknowledged: bool,
    pub(crate) is_answered: bool,
    pub(crate) landing: u32,
    pub(crate) transfer: Option<TransferId>,
    pub(crate) data: Option<Arc<[u8]>>,
    /// Status in which it completes when it becomes the oldest.
    pub(crate) failure: Option<Status>,
}

impl Send {
    /// Returns true if it was sent with this sequence number.
    pub(crate) fn has(&self, psn: u32) -> bool {
        (0..self.packets as i32).contains(&distance(psn, self.psn))
    }
}

#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    pub(crate) sends: VecDeque<Send>,
    pub(crate) next: usize,
    /// Requests that wait in the adapter, and their data in bytes.
    pub(crate) undeparted: (usize, u64),
    /// Times that it has gone back.
    pub(crate) round: u32,
    pub(crate) next_serial: u64,
    pub(crate) next_psn: u32,
    pub(crate) retries_left: u8,
    pub(crate) rnr_retries_left: u8,
    pub(crate) rnr_until: Option<Time>,
    pub(crate) progress: Time,
    /// SQ_DRAINED is due when no request is in flight.
    pub(crate) reports_drained: bool,
}

impl SendQueue {
    pub(crate) fn find(&mut self, serial: u64) -> Option<&mut Send> {
        let first = self.sends.front()?.serial;
        let index = serial.checked_sub(first)?;
        self.sends.get_mut(usize::try_from(index).ok()?)
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.sends.front().is_some_and(|send| send.packets > 0)
    }

    pub(crate) fn pop(&mut self) -> Option<Send> {
        let send = self.sends.pop_front()?;
        self.next = self.next.saturating_sub(1);
        if let Some(payload) = send.leaving {
            self.count_departure(payload);
        }
        Some(send)
    }

    pub(crate) fn count_departure(&mut self, payload: u64) {
        self.undeparted.0 -= 1;
        self.undeparted.1 -= payload;
    }

    pub(crate) fn go_back(&mut self) {
        self.next = 0;
        self.round = self.round.wrapping_add(1);
        self.undeparted = (0, 0);
        for send in &mut self.sends {
            send.leaving = None;
            send.is_streaming = false;
            send.departed = None;
        }
    }

    pub(crate) fn reads(&self) -> usize {
        let is_open = |send: &&Send| send.request.opcode.has_response() && !send.is_answered;
        self.sends.iter().take(self.next).filter(is_open).count()
    }

    pub(crate) fn psns(&self) -> u32 {
        match self.sends.front() {
            Some(first) if first.packets > 0 => self.next_psn.wrapping_sub(first.psn) & PSN_MASK,
            _ => 0,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) id: TransferId,
    pub(crate) message: Message,
    pub(crate) request: Option<ReceiveRequest>,
}

#[derive(Debug)]
pub(crate) enum Arrival {
    Message(Message),
    Gap(Gap),
}

/// A packet that is missing.
#[derive(Debug)]
pub(crate) struct Gap {
    /// Request and attempt.
    pub(crate) run: (u64, u32),
    /// Sequence number of the attempt's first packet.
    pub(crate) first: u32,
    pub(crate) lost: u32,
    /// Sequence number of the packet that has arrived, or one before.
    pub(crate) next: u32,
}

#[derive(Debug, Default)]
pub(crate) struct ReceiveQueue {
    pub(crate) requests: VecDeque<ReceiveRequest>,
    pub(crate) arrivals: VecDeque<Arrival>,
    pub(crate) execution: Option<Execution>,
    pub(crate) expected_psn: u32,
    /// Round of the requester in which responses were withdrawn.
    pub(crate) withdrawn: u32,
    /// Request and attempt that lost a packet which is expected.
    pub(crate) broken: Option<(u64, u32)>,
    /// A NAK is sent; later requests are dropped until the expected one arrives.
    pub(crate) has_refused: bool,
    /// Sequence numbers and values of the latest atomic operations, for requests that are sent again.
    pub(crate) atomics: VecDeque<(u32, u64)>,
    pub(crate) responses: u32,
    pub(crate) has_established: bool,
}

#[derive(Debug)]
pub(crate) struct QueuePair {
    pub(crate) context: ContextId,
    pub(crate) device: DeviceId,
    pub(crate) user_handle: u64,
    pub(crate) pd: PdKey,
    pub(crate) send_cq: CqKey,
    pub(crate) receive_cq: CqKey,
    pub(crate) srq: Option<SrqKey>,
    pub(crate) number: u32,
    pub(crate) kind: QpType,
    pub(crate) created: CreateQp,
    pub(crate) state: QpState,
    pub(crate) attributes: ModifyQp,
    pub(crate) address: Option<Address>,
    pub(crate) send: SendQueue,
    pub(crate) receive: ReceiveQueue,
    pub(crate) groups: Vec<[u8; 16]>,
    pub(crate) async_events: u32,
    pub(crate) timer: Option<Time>,
}

pub(crate) fn fits(create: &CreateQp) -> bool {
    let receives = create.is_srq != 0
        || (create.max_recv_wr <= super::receive::MOST_REQUESTS
            && create.max_recv_sge <= super::receive::MOST_ELEMENTS);
    receives
        && create.max_send_wr <= MOST_SENDS
        && create.max_send_sge <= MOST_ELEMENTS
        && create.max_inline_data <= MOST_INLINE
}

pub(crate) fn memory(create: &CreateQp) -> u64 {
    let elements = u64::from(create.max_send_sge) * size_of::<Sge>() as u64;
    let each = size_of::<Send>() as u64 + elements + u64::from(create.max_inline_data);
    let receives = super::receive::memory(create.max_recv_wr, create.max_recv_sge);
    u64::from(create.max_send_wr) * each + receives
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) from: QpState,
    pub(crate) to: QpState,
}

impl QueuePair {
    /// Changes attributes and state, or nothing and EINVAL if one is not allowed.
    pub(crate) fn modify(
        &mut self,
        command: &ModifyQp,
        port: &PortAttributes,
    ) -> Result<Change, Errno> {
        use qp_mask::*;

        let mask = command.attr_mask;
        let has = |bit: u32| mask & bit != 0;
        let number = |value: u8| QpState::from_number(u32::from(value)).ok_or(Errno::Invalid);
        if mask & !ALL != 0 {
            return Err(Errno::Invalid);
        }
        let from = self.state;
        if has(CUR_STATE) && number(command.cur_qp_state)? != from {
            return Err(Errno::Invalid);
        }
        let to = match has(STATE) {
            true => number(command.qp_state)?,
            false => from,
        };
        let allowed = transition(self.kind, from, to).ok_or(Errno::Invalid)?;
        let given = mask & !STATE;
        if given & allowed.required != allowed.required
            || given & !(allowed.required | allowed.optional) != 0
        {
            return Err(Errno::Invalid);
        }
        let is_valid = (!has(PKEY_INDEX) || usize::from(command.pkey_index) < port.pkeys.len())
            && (!has(PORT) || command.port_num == 1)
            && (!has(PATH_MTU) || (1..=port.max_mtu).contains(&command.path_mtu))
            && (!has(TIMEOUT) || command.timeout < 32)
            && (!has(RETRY_CNT) || command.retry_cnt < 8)
            && (!has(RNR_RETRY) || command.rnr_retry < 8)
            && (!has(MIN_RNR_TIMER) || command.min_rnr_timer < 32)
            && (!has(MAX_QP_RD_ATOMIC) || command.max_rd_atomic <= MOST_READS)
            && (!has(MAX_DEST_RD_ATOMIC) || command.max_dest_rd_atomic <= MOST_READS)
            && (!has(DEST_QPN) || command.dest_qp_num <= PSN_MASK)
            && (!has(ACCESS_FLAGS) || command.qp_access_flags & !access::QUEUE_PAIR == 0)
            && (!has(PATH_MIG_STATE) || command.path_mig_state <= 2);
        if !is_valid {
            return Err(Errno::Invalid);
        }
        if has(AV) {
            self.address = Some(Address::of_queue_pair(&command.dest, port)?);
        }
        self.assign(command);
        if has(RQ_PSN) {
            self.receive.expected_psn = command.rq_psn & PSN_MASK;
        }
        if has(SQ_PSN) {
            self.send.next_psn = command.sq_psn & PSN_MASK;
        }
        if has(RETRY_CNT) {
            self.send.retries_left = command.retry_cnt;
        }
        if has(RNR_RETRY) {
            self.send.rnr_retries_left = command.rnr_retry;
        }
        Ok(Change { from, to })
    }

    fn assign(&mut self, command: &ModifyQp) {
        use qp_mask::*;

        let own = &mut self.attributes;
        macro_rules! assign {
            ($($bit:ident: $($field:ident),*;)*) => {$(
                if command.attr_mask & $bit != 0 {
                    $(own.$field = command.$field;)*
                }
            )*};
        }
        assign! {
            EN_SQD_ASYNC_NOTIFY: en_sqd_async_notify;
            ACCESS_FLAGS: qp_access_flags;
            PKEY_INDEX: pkey_index;
            PORT: port_num;
            QKEY: qkey;
            AV: dest;
            PATH_MTU: path_mtu;
            TIMEOUT: timeout;
            RETRY_CNT: retry_cnt;
            RNR_RETRY: rnr_retry;
            RQ_PSN: rq_psn;
            MAX_QP_RD_ATOMIC: max_rd_atomic;
            ALT_PATH: alt_dest, alt_pkey_index, alt_port_num, alt_timeout;
            MIN_RNR_TIMER: min_rnr_timer;
            SQ_PSN: sq_psn;
            MAX_DEST_RD_ATOMIC: max_dest_rd_atomic;
            PATH_MIG_STATE: path_mig_state;
            DEST_QPN: dest_qp_num;
        }
    }

    pub(crate) fn query(&self) -> QueryQpResponse {
        let own = &self.attributes;
        let state = self.state.number() as u8;
        QueryQpResponse {
            dest: own.dest,
            alt_dest: own.alt_dest,
            max_send_wr: self.created.max_send_wr,
            max_recv_wr: self.created.max_recv_wr,
            max_send_sge: self.created.max_send_sge,
            max_recv_sge: self.created.max_recv_sge,
            max_inline_data: self.created.max_inline_data,
            qkey: own.qkey,
            rq_psn: own.rq_psn,
            sq_psn: own.sq_psn,
            dest_qp_num: own.dest_qp_num,
            qp_access_flags: own.qp_access_flags,
            pkey_index: own.pkey_index,
            alt_pkey_index: own.alt_pkey_index,
            qp_state: state,
            cur_qp_state: state,
            path_mtu: own.path_mtu,
            path_mig_state: own.path_mig_state,
            sq_draining: u8::from(self.state == QpState::Sqd && self.send.is_busy()),
            max_rd_atomic: own.max_rd_atomic,
            max_dest_rd_atomic: own.max_dest_rd_atomic,
            min_rnr_timer: own.min_rnr_timer,
            port_num: own.port_num,
            timeout: own.timeout,
            retry_cnt: own.retry_cnt,
            rnr_retry: own.rnr_retry,
            alt_port_num: own.alt_port_num,
            alt_timeout: own.alt_timeout,
            sq_sig_all: self.created.sq_sig_all,
            reserved: [0; 5],
        }
    }

    pub(crate) fn mtu(&self, port: &PortAttributes) -> u64 {
        let code = match self.kind {
            QpType::Ud => port.active_mtu,
            QpType::Rc | QpType::Uc => self.attributes.path_mtu,
        };
        128 << code.clamp(1, 5)
    }

    /// P_Key of its messages, `None` if the port's table has none there.
    pub(crate) fn pkey(&self, port: &PortAttributes) -> Option<u16> {
        let key = port.pkeys.get(usize::from(self.attributes.pkey_index))?;
        (key & 0x7fff != 0).then_some(*key)
    }
}
