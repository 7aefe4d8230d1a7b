use silvan_core::Time;

use super::Answer;
use crate::abi::Layout;
use crate::abi::structures::*;
use crate::abi::values::{QpState, QpType};
use crate::action::Action;
use crate::errno::Errno;
use crate::objects::QpKey;
use crate::objects::address::{FIRST_MULTICAST, MULTICAST_QP};
use crate::objects::context::{EventSource, Object};
use crate::objects::queue_pair::{QueuePair, ReceiveQueue, SendQueue, fits, memory};
use crate::verbs::{ContextId, Verbs};

/// First number of a queue pair; lower ones belong to management.
const FIRST_NUMBER: u32 = 0x10;

impl Verbs {
    pub(super) fn command_create_qp(&mut self, context: ContextId, command: &CreateQp) -> Answer {
        let owner = self.context(context)?;
        let device = owner.device;
        let pd = owner.pd(command.pd_handle)?;
        let send_cq = owner.cq(command.send_cq_handle)?;
        let receive_cq = owner.cq(command.recv_cq_handle)?;
        let srq = match command.is_srq {
            0 => None,
            _ => Some(owner.srq(command.srq_handle)?),
        };
        let Some(kind) = QpType::from_number(u32::from(command.qp_type)) else {
            return Err(Errno::NotSupported);
        };
        if !fits(command) {
            return Err(Errno::Invalid);
        }
        if !self.device_of(context)?.has_room_for_queue_pair() {
            return Err(Errno::NoMemory);
        }
        let mut created = *command;
        if srq.is_some() {
            (created.max_recv_wr, created.max_recv_sge) = (0, 0);
        }
        let handle = self.context(context)?.reserve_queue(memory(&created))?;
        let number = self.free_number();
        let key = self.qps.insert(|_| QueuePair {
            context,
            device,
            user_handle: command.user_handle,
            pd,
            send_cq,
            receive_cq,
            srq,
            number,
            kind,
            created,
            state: QpState::Reset,
            attributes: ModifyQp::default(),
            address: None,
            send: SendQueue::default(),
            receive: ReceiveQueue::default(),
            groups: Vec::new(),
            async_events: 0,
            timer: None,
        });
        self.numbers.insert(number, key);
        self.context(context)?.bind(handle, Object::Qp(key));
        self.device_of(context)?.counts.qp += 1;
        self.count_users(key, true);
        let response = CreateQpResponse {
            qp_handle: handle,
            qpn: number,
            max_send_wr: created.max_send_wr,
            max_recv_wr: created.max_recv_wr,
            max_send_sge: created.max_send_sge,
            max_recv_sge: created.max_recv_sge,
            max_inline_data: created.max_inline_data,
            reserved: 0,
        };
        Ok(response.to_bytes())
    }

    /// A number that no queue pair has. Numbers return as late as possible.
    fn free_number(&mut self) -> u32 {
        loop {
            let next = self.last_number.max(FIRST_NUMBER) + 1;
            self.last_number = match next {
                MULTICAST_QP.. => FIRST_NUMBER,
                _ => next,
            };
            if !self.numbers.contains_key(&self.last_number) {
                return self.last_number;
            }
        }
    }

    fn count_users(&mut self, key: QpKey, is_new: bool) {
        let Some(qp) = self.qps.get(key) else { return };
        let (pd, cqs, srq) = (qp.pd, [qp.send_cq, qp.receive_cq], qp.srq);
        let change = |users: &mut u32| {
            *users = match is_new {
                true => *users + 1,
                false => users.saturating_sub(1),
            };
        };
        for cq in cqs {
            if let Some(cq) = self.cqs.get_mut(cq) {
                change(&mut cq.users);
            }
        }
        if let Some(srq) = srq.and_then(|srq| self.srqs.get_mut(srq)) {
            change(&mut srq.users);
        }
        self.count_pd_user(pd, is_new);
    }

    pub(super) fn command_query_qp(&mut self, context: ContextId, command: &QueryQp) -> Answer {
        let key = self.context(context)?.qp(command.qp_handle)?;
        let qp = self.qps.get(key).ok_or(Errno::Invalid)?;
        Ok(qp.query().to_bytes())
    }

    pub(super) fn command_modify_qp(
        &mut self,
        now: Time,
        context: ContextId,
        command: &ModifyQp,
    ) -> Answer {
        let key = self.context(context)?.qp(command.qp_handle)?;
        let qp = self.qps.get_mut(key).ok_or(Errno::Invalid)?;
        let port = &self.devices[qp.device.0 as usize].port;
        let change = qp.modify(command, port)?;
        self.change_state(now, key, change);
        Ok(Vec::new())
    }

    pub(super) fn command_destroy_qp(&mut self, context: ContextId, command: &DestroyQp) -> Answer {
        let key = self.context(context)?.qp(command.qp_handle)?;
        let qp = self.qps.get(key).ok_or(Errno::Invalid)?;
        if !qp.groups.is_empty() {
            return Err(Errno::Busy);
        }
        let events_reported = qp.async_events;
        self.remove_qp(key);
        self.context(context)?.release(command.qp_handle);
        Ok(DestroyQpResponse { events_reported }.to_bytes())
    }

    pub(super) fn remove_qp(&mut self, key: QpKey) {
        self.count_users(key, false);
        self.withdraw_requests(key);
        let Some(qp) = self.qps.remove(key) else {
            return;
        };
        self.numbers.remove(&qp.number);
        if let Some(timer) = qp.timer {
            self.timers.remove(&(timer, qp.number));
        }
        if let Ok(owner) = self.context(qp.context) {
            owner.drop_events(EventSource::Qp(key));
            owner.release_queue(memory(&qp.created));
        }
        if let Ok(device) = self.device_of(qp.context) {
            device.counts.qp -= 1;
        }
    }

    pub(super) fn command_attach(&mut self, context: ContextId, command: &AttachMcast) -> Answer {
        let key = self.context(context)?.qp(command.qp_handle)?;
        let qp = self.qps.get_mut(key).ok_or(Errno::Invalid)?;
        let is_valid = qp.kind == QpType::Ud
            && command.gid[0] == 0xff
            && (FIRST_MULTICAST..0xffff).contains(&command.mlid);
        if !is_valid {
            return Err(Errno::Invalid);
        }
        let group = command.gid;
        if qp.groups.contains(&group) {
            return Ok(Vec::new());
        }
        let device = qp.device;
        let owner = &mut self.devices[device.0 as usize];
        if !owner.has_room_in(&group) {
            return Err(Errno::NoMemory);
        }
        qp.groups.push(group);
        let members = owner.groups.entry(group).or_default();
        members.push(key);
        if members.len() == 1 {
            self.actions.push_back(Action::Multicast {
                device,
                group,
                member: true,
            });
        }
        Ok(Vec::new())
    }

    pub(super) fn command_detach(&mut self, context: ContextId, command: &DetachMcast) -> Answer {
        let key = self.context(context)?.qp(command.qp_handle)?;
        let qp = self.qps.get(key).ok_or(Errno::Invalid)?;
        if !qp.groups.contains(&command.gid) {
            return Err(Errno::Invalid);
        }
        self.detach(key, command.gid);
        Ok(Vec::new())
    }

    pub(super) fn detach_all(&mut self, key: QpKey) {
        let groups = self.qps.get(key).map(|qp| qp.groups.clone());
        for group in groups.into_iter().flatten() {
            self.detach(key, group);
        }
    }

    fn detach(&mut self, key: QpKey, group: [u8; 16]) {
        let Some(qp) = self.qps.get_mut(key) else {
            return;
        };
        qp.groups.retain(|known| *known != group);
        let device = qp.device;
        let groups = &mut self.devices[device.0 as usize].groups;
        let Some(members) = groups.get_mut(&group) else {
            return;
        };
        members.retain(|member| *member != key);
        if members.is_empty() {
            groups.remove(&group);
            self.actions.push_back(Action::Multicast {
                device,
                group,
                member: false,
            });
        }
    }
}
