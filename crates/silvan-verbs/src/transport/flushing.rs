use silvan_core::Time;

use crate::abi::structures::{ModifyQp, WorkCompletion};
use crate::abi::values::{CompletionOpcode, EventType, QpState, Status};
use crate::action::Action;
use crate::objects::QpKey;
use crate::objects::queue_pair::{Change, ReceiveQueue, SendQueue};
use crate::verbs::Verbs;

impl Verbs {
    pub(crate) fn change_state(&mut self, now: Time, key: QpKey, change: Change) {
        match change.to {
            QpState::Reset => self.reset(key),
            QpState::Err => self.enter_error(key),
            QpState::Sqd => {
                if let Some(qp) = self.qps.get_mut(key) {
                    qp.state = QpState::Sqd;
                    qp.send.reports_drained |=
                        change.from == QpState::Rts && qp.attributes.en_sqd_async_notify != 0;
                }
                self.report_drained(key);
            }
            state => {
                if let Some(qp) = self.qps.get_mut(key) {
                    qp.state = state;
                }
                self.start_sends(now, key);
            }
        }
    }

    pub(crate) fn report_drained(&mut self, key: QpKey) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        if qp.state == QpState::Sqd && qp.send.reports_drained && !qp.send.is_busy() {
            qp.send.reports_drained = false;
            self.raise_of_qp(key, EventType::SqDrained);
        }
    }

    fn reset(&mut self, key: QpKey) {
        self.withdraw_requests(key);
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        // Serial numbers go on, so that messages in flight never mean a later request.
        let next_serial = qp.send.next_serial;
        qp.state = QpState::Reset;
        qp.attributes = ModifyQp::default();
        qp.address = None;
        qp.receive = ReceiveQueue::default();
        qp.send = SendQueue {
            next_serial,
            ..SendQueue::default()
        };
        self.refresh_timer(key);
    }

    pub(crate) fn enter_error(&mut self, key: QpKey) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        if matches!(qp.state, QpState::Err | QpState::Reset) {
            qp.state = QpState::Err;
            return;
        }
        qp.state = QpState::Err;
        qp.receive.arrivals.clear();
        self.withdraw_requests(key);
        self.flush_sends(key);
        self.flush_receives(key);
    }

    /// Ends what a queue pair has asked for; its answers still leave.
    pub(crate) fn withdraw_requests(&mut self, key: QpKey) {
        let Some(qp) = self.qps.get(key) else { return };
        let (from, queue_pair) = (qp.device, qp.number);
        if qp.send.undeparted.0 > 0 {
            self.actions.push_back(Action::Withdraw {
                from,
                queue_pair,
                responds: false,
            });
        }
        self.actions.push_back(Action::Forget { from, queue_pair });
    }

    pub(crate) fn enter_send_error(&mut self, key: QpKey) {
        if let Some(qp) = self.qps.get_mut(key) {
            qp.state = QpState::Sqe;
        }
        self.flush_sends(key);
    }

    /// Completes sends as flushed, up to one whose memory is being written: the program may use it again afterwards.
    pub(crate) fn flush_sends(&mut self, key: QpKey) {
        while let Some(qp) = self.qps.get_mut(key) {
            if qp.send.sends.front().is_some_and(|send| send.landing > 0) {
                break;
            }
            let Some(send) = qp.send.pop() else { break };
            let request = send.request;
            let facts = (request.wr_id, request.opcode, 0);
            self.complete_send(key, facts, Status::Flushed);
        }
        if let Some(qp) = self.qps.get_mut(key) {
            qp.send.rnr_until = None;
            qp.send.reports_drained = false;
        }
        self.refresh_timer(key);
    }

    /// Waits for a message that is being executed, because it writes memory.
    pub(crate) fn flush_receives(&mut self, key: QpKey) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        if qp.receive.execution.is_some() {
            return;
        }
        let has_srq = qp.srq.is_some();
        for request in std::mem::take(&mut qp.receive.requests) {
            self.fail_receive(key, request.wr_id, Status::Flushed);
        }
        if has_srq {
            self.raise_of_qp(key, EventType::LastWqe);
        }
    }

    pub(crate) fn fail_receive(&mut self, key: QpKey, wr_id: u64, status: Status) {
        let Some(qp) = self.qps.get(key) else { return };
        let completion = WorkCompletion {
            wr_id,
            status: status.number(),
            opcode: CompletionOpcode::Receive.number(),
            qp_num: qp.number,
            port_num: 1,
            ..WorkCompletion::default()
        };
        self.complete(qp.receive_cq, completion, true);
    }
}
