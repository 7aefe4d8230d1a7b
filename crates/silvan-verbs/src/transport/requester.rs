//! The requester of RC: acknowledgements, responses, retries and timers (IBA volume 1, sections 9.7.5 and 9.7.6).

use std::sync::Arc;

use silvan_core::Time;

use super::Transfer;
use super::wire::{acknowledge_timeout, distance, rnr_delay};
use crate::abi::values::{QpState, QpType, Status, access};
use crate::action::{Action, Outcome, TransferId};
use crate::message::{Acknowledge, Response};
use crate::objects::QpKey;
use crate::objects::memory::{Origin, pieces, resolve_elements};
use crate::objects::queue_pair::{PSN_MASK, QueuePair};
use crate::verbs::Verbs;

/// `rnr_retry` that has no limit.
const NO_LIMIT: u8 = 7;

impl QueuePair {
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, QpState::Rts | QpState::Sqd)
    }

    pub(crate) fn due(&self) -> Option<Time> {
        if let Some(until) = self.send.rnr_until {
            return Some(until);
        }
        if self.kind != QpType::Rc || !self.is_running() {
            return None;
        }
        let oldest = self.send.sends.front()?;
        if oldest.is_streaming
            || oldest.landing > 0
            || oldest.transfer.is_some()
            || oldest.failure.is_some()
        {
            return None;
        }
        let departed = oldest.departed?;
        let span = acknowledge_timeout(self.attributes.timeout)?;
        Some(departed.max(self.send.progress).saturating_add(span))
    }
}

impl Verbs {
    pub(crate) fn run_timer(&mut self, now: Time, key: QpKey) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        match qp.due() {
            Some(due) if due <= now => {}
            _ => return self.refresh_timer(key),
        }
        if qp.send.rnr_until.take().is_some() {
            self.start_sends(now, key);
        } else {
            self.retry(now, key);
        }
    }

    fn retry(&mut self, now: Time, key: QpKey) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        let queue = &mut qp.send;
        match queue.retries_left.checked_sub(1) {
            Some(left) => {
                queue.retries_left = left;
                self.go_back(key);
                self.start_sends(now, key);
            }
            None => {
                if let Some(oldest) = queue.sends.front_mut() {
                    oldest.failure = Some(Status::RetryExceeded);
                }
                self.reap(now, key);
            }
        }
    }

    /// Sends again from the first packet that is not acknowledged, in place of what has not left.
    fn go_back(&mut self, key: QpKey) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        if qp.send.undeparted.0 > 0 {
            self.actions.push_back(Action::Withdraw {
                from: qp.device,
                queue_pair: qp.number,
                responds: false,
            });
        }
        qp.send.go_back();
    }

    /// Packet `index` of a response is missing.
    pub(crate) fn receive_part(&mut self, now: Time, key: QpKey, response: &Response, index: u32) {
        if !self.is_requesting(key) {
            return;
        }
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        let Some(send) = qp.send.find(response.serial) else {
            return;
        };
        let is_current = send.attempt == response.attempt && send.broken != response.attempt;
        if !is_current || send.is_answered || send.transfer.is_some() {
            return;
        }
        send.broken = response.attempt;
        let before = send.psn.wrapping_sub(1) & PSN_MASK;
        if response.original.is_none() && index > 0 {
            send.done = (response.first + index).min(send.packets - 1);
            self.restore_retries(now, key);
        }
        self.acknowledge(now, key, before);
        self.retry(now, key);
    }

    pub(crate) fn receive_acknowledge(&mut self, now: Time, key: QpKey, acknowledge: Acknowledge) {
        if !self.is_requesting(key) {
            return;
        }
        match acknowledge {
            Acknowledge::Positive(psn) => {
                self.acknowledge(now, key, psn);
                self.retry_unanswered(now, key);
            }
            Acknowledge::Sequence(psn) => {
                if self.acknowledge_before(now, key, psn) {
                    self.retry(now, key);
                }
            }
            Acknowledge::NotReady(psn, code) => {
                if self.acknowledge_before(now, key, psn) {
                    self.wait_for_receiver(now, key, code);
                }
            }
            Acknowledge::Failed(psn, status) => {
                if self.acknowledge_before(now, key, psn) {
                    if let Some(qp) = self.qps.get_mut(key) {
                        let sends = &mut qp.send.sends;
                        let refused = sends.iter_mut().find(|send| send.has(psn));
                        if let Some(send) = refused {
                            send.failure = Some(status);
                        }
                    }
                    self.reap(now, key);
                }
            }
        }
        self.start_sends(now, key);
    }

    fn is_requesting(&self, key: QpKey) -> bool {
        self.qps
            .get(key)
            .is_some_and(|qp| qp.kind == QpType::Rc && qp.is_running() && qp.send.is_busy())
    }

    fn acknowledge(&mut self, now: Time, key: QpKey, psn: u32) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        let mut has_progress = false;
        for send in &mut qp.send.sends {
            if send.packets == 0 {
                break;
            }
            let known = distance(psn, send.psn) + 1;
            if known < send.packets as i32 {
                if !send.request.opcode.has_response() && known > send.done as i32 {
                    send.done = known as u32;
                    has_progress = true;
                }
                break;
            }
            has_progress |= !send.is_acknowledged;
            send.is_acknowledged = true;
        }
        if has_progress {
            self.restore_retries(now, key);
        }
        self.reap(now, key);
    }

    /// Acknowledges all packets before `psn`. Returns true if that packet is in flight.
    fn acknowledge_before(&mut self, now: Time, key: QpKey, psn: u32) -> bool {
        let is_in_flight = self.qps.get(key).is_some_and(|qp| {
            let mut sends = qp.send.sends.iter();
            sends.any(|send| send.has(psn) && !send.is_acknowledged)
        });
        if is_in_flight {
            self.acknowledge(now, key, psn.wrapping_sub(1) & PSN_MASK);
        }
        is_in_flight
    }

    fn restore_retries(&mut self, now: Time, key: QpKey) {
        if let Some(qp) = self.qps.get_mut(key) {
            qp.send.progress = now;
            qp.send.retries_left = qp.attributes.retry_cnt;
            qp.send.rnr_retries_left = qp.attributes.rnr_retry;
        }
    }

    /// A read or atomic operation that a later acknowledgement covers has lost its response: it is requested again.
    fn retry_unanswered(&mut self, now: Time, key: QpKey) {
        let is_lost = self.qps.get(key).is_some_and(|qp| {
            qp.send.sends.front().is_some_and(|send| {
                send.request.opcode.has_response()
                    && send.is_acknowledged
                    && !send.is_answered
                    && send.transfer.is_none()
                    && send.departed.is_some()
            })
        });
        if is_lost {
            self.retry(now, key);
        }
    }

    fn wait_for_receiver(&mut self, now: Time, key: QpKey, code: u8) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        if qp.attributes.rnr_retry != NO_LIMIT {
            match qp.send.rnr_retries_left.checked_sub(1) {
                Some(left) => qp.send.rnr_retries_left = left,
                None => {
                    if let Some(oldest) = qp.send.sends.front_mut() {
                        oldest.failure = Some(Status::RnrRetryExceeded);
                    }
                    return self.reap(now, key);
                }
            }
        }
        qp.send.retries_left = qp.attributes.retry_cnt;
        qp.send.rnr_until = Some(now.saturating_add(rnr_delay(code)));
        self.go_back(key);
        self.refresh_timer(key);
    }

    pub(crate) fn receive_response(&mut self, now: Time, key: QpKey, response: Response) {
        if !self.is_requesting(key) {
            return;
        }
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        let pd = qp.pd;
        let Some(send) = qp.send.find(response.serial) else {
            return;
        };
        let is_broken = send.broken == response.attempt;
        if send.packets == 0 || is_broken || send.is_answered || send.transfer.is_some() {
            return;
        }
        match response.original {
            None => send.is_answered = true,
            Some(value) => {
                let elements = send.request.elements.clone();
                self.store_value(key, response.serial, value, (pd, &elements));
            }
        }
        self.restore_retries(now, key);
        self.acknowledge(now, key, response.psn);
        self.retry_unanswered(now, key);
        self.start_sends(now, key);
    }

    fn store_value(
        &mut self,
        key: QpKey,
        serial: u64,
        value: u64,
        (pd, elements): (crate::objects::PdKey, &[crate::abi::structures::Sge]),
    ) {
        let origin = Origin::Bytes(Arc::from(value.to_ne_bytes()));
        let targets = resolve_elements(&self.mrs, pd, elements, access::LOCAL_WRITE);
        let to = targets.as_deref().and_then(|targets| targets.first());
        let (Some(to), Some(targets)) = (to.map(|to| to.process), &targets) else {
            if let Some(send) = self.qps.get_mut(key).and_then(|qp| qp.send.find(serial)) {
                send.failure = Some(Status::LocalProtection);
            }
            return;
        };
        let pieces = pieces(&origin, targets, 0);
        let id = self.begin(Transfer::Value(key, serial));
        if let Some(send) = self.qps.get_mut(key).and_then(|qp| qp.send.find(serial)) {
            send.transfer = Some(id);
            send.landing += 1;
        }
        self.actions.push_back(Action::Copy { id, to, pieces });
    }

    pub(crate) fn value_stored(
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
        send.landing -= 1;
        match outcome {
            Outcome::Copied => send.is_answered = true,
            _ => send.failure = Some(Status::LocalProtection),
        }
        self.resume_sends(now, key);
    }

    pub(crate) fn read_landed(&mut self, now: Time, key: QpKey, serial: u64) {
        if let Some(send) = self.qps.get_mut(key).and_then(|qp| qp.send.find(serial)) {
            send.landing = send.landing.saturating_sub(1);
            self.resume_sends(now, key);
        }
    }

    fn resume_sends(&mut self, now: Time, key: QpKey) {
        if self
            .qps
            .get(key)
            .is_some_and(|qp| matches!(qp.state, QpState::Err | QpState::Sqe))
        {
            return self.flush_sends(key);
        }
        self.reap(now, key);
        self.start_sends(now, key);
    }

    pub(crate) fn mark_streaming(
        &mut self,
        now: Time,
        number: u32,
        serial: u64,
        is_streaming: bool,
    ) {
        let Some(&key) = self.numbers.get(&number) else {
            return;
        };
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        if let Some(send) = qp.send.find(serial)
            && send.is_streaming != is_streaming
        {
            send.is_streaming = is_streaming;
            qp.send.progress = now;
            self.refresh_timer(key);
        }
    }

    /// A request fails at its sender, found while the responder executed it.
    pub(crate) fn fail_send(&mut self, now: Time, key: QpKey, serial: u64, status: Status) {
        if let Some(send) = self.qps.get_mut(key).and_then(|qp| qp.send.find(serial)) {
            send.failure = Some(status);
        }
        self.reap(now, key);
    }
}
