use super::Answer;
use crate::abi::Layout;
use crate::abi::structures::*;
use crate::abi::values::srq_mask;
use crate::device::Device;
use crate::errno::Errno;
use crate::objects::address::{Address, AddressHandle};
use crate::objects::completion::{CompletionQueue, MOST_COMPLETIONS};
use crate::objects::context::{EventSource, Object};
use crate::objects::memory::{MOST_REGIONS, MemoryRegion, ProtectionDomain, key_of};
use crate::objects::receive::{MOST_ELEMENTS, MOST_REQUESTS, SharedReceiveQueue};
use crate::objects::{AhKey, CqKey, MrKey, PdKey, SrqKey, completion, receive};
use crate::verbs::{ContextId, Verbs};

impl Verbs {
    pub(super) fn device_of(&mut self, context: ContextId) -> Result<&mut Device, Errno> {
        let device = self.context(context)?.device;
        self.devices
            .get_mut(device.0 as usize)
            .ok_or(Errno::Invalid)
    }

    pub(super) fn count_pd_user(&mut self, pd: PdKey, is_new: bool) {
        if let Some(pd) = self.pds.get_mut(pd) {
            pd.users = match is_new {
                true => pd.users + 1,
                false => pd.users.saturating_sub(1),
            };
        }
    }

    pub(super) fn command_alloc_pd(&mut self, context: ContextId) -> Answer {
        if !Device::has_room(self.device_of(context)?.counts.pd) {
            return Err(Errno::NoMemory);
        }
        let handle = self.context(context)?.reserve()?;
        let key = self.pds.insert(|_| ProtectionDomain { context, users: 0 });
        self.context(context)?.bind(handle, Object::Pd(key));
        self.device_of(context)?.counts.pd += 1;
        Ok(AllocPdResponse { pd_handle: handle }.to_bytes())
    }

    pub(super) fn command_dealloc_pd(&mut self, context: ContextId, command: DeallocPd) -> Answer {
        let key = self.context(context)?.pd(command.pd_handle)?;
        if self.pds.get(key).is_some_and(|pd| pd.users > 0) {
            return Err(Errno::Busy);
        }
        self.remove_pd(key);
        self.context(context)?.release(command.pd_handle);
        Ok(Vec::new())
    }

    pub(super) fn remove_pd(&mut self, key: PdKey) {
        if let Some(pd) = self.pds.remove(key)
            && let Ok(device) = self.device_of(pd.context)
        {
            device.counts.pd -= 1;
        }
    }

    pub(super) fn command_reg_mr(&mut self, context: ContextId, command: &RegMr) -> Answer {
        let owner = self.context(context)?;
        let (pd, process) = (owner.pd(command.pd_handle)?, owner.process);
        let range = (command.start, command.length, command.hca_va);
        let region = MemoryRegion::new(pd, process, range, command.access_flags)?;
        if self.mrs.len() >= MOST_REGIONS {
            return Err(Errno::NoMemory);
        }
        let handle = self.context(context)?.reserve()?;
        let key = self.mrs.insert(|_| region);
        self.context(context)?.bind(handle, Object::Mr(key));
        self.count_pd_user(pd, true);
        let response = RegMrResponse {
            mr_handle: handle,
            lkey: key_of(key),
            rkey: key_of(key),
        };
        Ok(response.to_bytes())
    }

    pub(super) fn command_dereg_mr(&mut self, context: ContextId, command: DeregMr) -> Answer {
        let key = self.context(context)?.mr(command.mr_handle)?;
        self.remove_mr(key);
        self.context(context)?.release(command.mr_handle);
        Ok(Vec::new())
    }

    pub(super) fn remove_mr(&mut self, key: MrKey) {
        if let Some(region) = self.mrs.remove(key) {
            self.count_pd_user(region.pd, false);
        }
    }

    pub(super) fn command_create_ah(&mut self, context: ContextId, command: &CreateAh) -> Answer {
        let pd = self.context(context)?.pd(command.pd_handle)?;
        let device = self.device_of(context)?;
        let address = Address::new(&command.attr, &device.port, true)?;
        if !Device::has_room(device.counts.ah) {
            return Err(Errno::NoMemory);
        }
        let handle = self.context(context)?.reserve()?;
        let key = self.ahs.insert(|_| AddressHandle {
            context,
            pd,
            address,
        });
        self.context(context)?.bind(handle, Object::Ah(key));
        self.device_of(context)?.counts.ah += 1;
        self.count_pd_user(pd, true);
        Ok(CreateAhResponse { ah_handle: handle }.to_bytes())
    }

    pub(super) fn command_destroy_ah(&mut self, context: ContextId, command: DestroyAh) -> Answer {
        let key = self.context(context)?.ah(command.ah_handle)?;
        self.remove_ah(key);
        self.context(context)?.release(command.ah_handle);
        Ok(Vec::new())
    }

    pub(super) fn remove_ah(&mut self, key: AhKey) {
        if let Some(handle) = self.ahs.remove(key) {
            self.count_pd_user(handle.pd, false);
            if let Ok(device) = self.device_of(handle.context) {
                device.counts.ah -= 1;
            }
        }
    }

    pub(super) fn command_create_cq(&mut self, context: ContextId, command: &CreateCq) -> Answer {
        let owner = self.context(context)?;
        let channel = match u32::try_from(command.comp_channel) {
            Ok(channel) if owner.has_channel(channel) => Some(channel),
            Ok(_) => return Err(Errno::BadDescriptor),
            Err(_) => None,
        };
        let size = command.cqe;
        if size == 0 || size > MOST_COMPLETIONS || command.comp_vector != 0 {
            return Err(Errno::Invalid);
        }
        if !Device::has_room(self.device_of(context)?.counts.cq) {
            return Err(Errno::NoMemory);
        }
        let handle = self
            .context(context)?
            .reserve_queue(completion::memory(size))?;
        let user_handle = command.user_handle;
        let queue = CompletionQueue::new(context, handle, user_handle, channel, size);
        let key = self.cqs.insert(|_| queue);
        self.context(context)?.bind(handle, Object::Cq(key));
        self.device_of(context)?.counts.cq += 1;
        let response = CreateCqResponse {
            cq_handle: handle,
            cqe: size,
        };
        Ok(response.to_bytes())
    }

    pub(super) fn command_resize_cq(&mut self, context: ContextId, command: &ResizeCq) -> Answer {
        let key = self.context(context)?.cq(command.cq_handle)?;
        let queue = self.cqs.get_mut(key).ok_or(Errno::Invalid)?;
        let size = command.cqe;
        if size == 0 || size > MOST_COMPLETIONS || (size as usize) < queue.unpolled() {
            return Err(Errno::Invalid);
        }
        let old = completion::memory(queue.size);
        let owner = self.contexts.get_mut(&context).ok_or(Errno::Invalid)?;
        owner.resize_queue(old, completion::memory(size))?;
        queue.size = size;
        Ok(ResizeCqResponse {
            cqe: size,
            reserved: 0,
        }
        .to_bytes())
    }

    pub(super) fn command_destroy_cq(&mut self, context: ContextId, command: &DestroyCq) -> Answer {
        let key = self.context(context)?.cq(command.cq_handle)?;
        let queue = self.cqs.get(key).ok_or(Errno::Invalid)?;
        if queue.users > 0 {
            return Err(Errno::Busy);
        }
        let response = DestroyCqResponse {
            comp_events_reported: queue.completion_events,
            async_events_reported: queue.async_events,
        };
        self.remove_cq(key);
        self.context(context)?.release(command.cq_handle);
        Ok(response.to_bytes())
    }

    pub(super) fn remove_cq(&mut self, key: CqKey) {
        if let Some(queue) = self.cqs.remove(key)
            && let Ok(owner) = self.context(queue.context)
        {
            owner.drop_events(EventSource::Cq(key));
            owner.release_queue(completion::memory(queue.size));
            if let Ok(device) = self.device_of(queue.context) {
                device.counts.cq -= 1;
            }
        }
    }

    pub(super) fn command_poll_cq(&mut self, context: ContextId, command: &PollCq) -> Answer {
        let key = self.context(context)?.cq(command.cq_handle)?;
        let queue = self.cqs.get_mut(key).ok_or(Errno::Invalid)?;
        let mut response = vec![0; PollCqResponse::SIZE];
        let mut count = 0;
        for completion in queue.take(command.ne as usize) {
            completion.write(&mut response);
            count += 1;
        }
        queue.consume(count);
        let front = PollCqResponse { count, reserved: 0 }.to_bytes();
        response[..PollCqResponse::SIZE].copy_from_slice(&front);
        Ok(response)
    }

    pub(super) fn command_notify_cq(&mut self, context: ContextId, command: ReqNotifyCq) -> Answer {
        let key = self.context(context)?.cq(command.cq_handle)?;
        if let Some(queue) = self.cqs.get_mut(key) {
            queue.request_notify(command.solicited_only != 0);
        }
        Ok(Vec::new())
    }

    pub(super) fn command_create_srq(&mut self, context: ContextId, command: &CreateSrq) -> Answer {
        let pd = self.context(context)?.pd(command.pd_handle)?;
        let is_valid = (1..=MOST_REQUESTS).contains(&command.max_wr)
            && (1..=MOST_ELEMENTS).contains(&command.max_sge)
            && command.srq_limit <= command.max_wr;
        if !is_valid {
            return Err(Errno::Invalid);
        }
        if !Device::has_room(self.device_of(context)?.counts.srq) {
            return Err(Errno::NoMemory);
        }
        let bytes = receive::memory(command.max_wr, command.max_sge);
        let handle = self.context(context)?.reserve_queue(bytes)?;
        let key = self.srqs.insert(|_| SharedReceiveQueue {
            context,
            user_handle: command.user_handle,
            pd,
            max_wr: command.max_wr,
            max_sge: command.max_sge,
            limit: command.srq_limit,
            requests: Default::default(),
            users: 0,
            async_events: 0,
        });
        self.context(context)?.bind(handle, Object::Srq(key));
        self.device_of(context)?.counts.srq += 1;
        self.count_pd_user(pd, true);
        let response = CreateSrqResponse {
            srq_handle: handle,
            max_wr: command.max_wr,
            max_sge: command.max_sge,
            srqn: key.index() + 1,
        };
        Ok(response.to_bytes())
    }

    pub(super) fn command_modify_srq(&mut self, context: ContextId, command: &ModifySrq) -> Answer {
        let key = self.context(context)?.srq(command.srq_handle)?;
        let srq = self.srqs.get_mut(key).ok_or(Errno::Invalid)?;
        let mask = command.attr_mask;
        let has = |bit: u32| mask & bit != 0;
        let size = match has(srq_mask::MAX_WR) {
            true => command.max_wr,
            false => srq.max_wr,
        };
        let limit = match has(srq_mask::LIMIT) {
            true => command.srq_limit,
            false => srq.limit,
        };
        let is_valid = mask & !(srq_mask::MAX_WR | srq_mask::LIMIT) == 0
            && (1..=MOST_REQUESTS).contains(&size)
            && srq.requests.len() <= size as usize
            && limit <= size;
        if !is_valid {
            return Err(Errno::Invalid);
        }
        let old = receive::memory(srq.max_wr, srq.max_sge);
        let owner = self.contexts.get_mut(&context).ok_or(Errno::Invalid)?;
        owner.resize_queue(old, receive::memory(size, srq.max_sge))?;
        (srq.max_wr, srq.limit) = (size, limit);
        Ok(Vec::new())
    }

    pub(super) fn command_query_srq(&mut self, context: ContextId, command: &QuerySrq) -> Answer {
        let key = self.context(context)?.srq(command.srq_handle)?;
        let srq = self.srqs.get(key).ok_or(Errno::Invalid)?;
        let response = QuerySrqResponse {
            max_wr: srq.max_wr,
            max_sge: srq.max_sge,
            srq_limit: srq.limit,
            reserved: 0,
        };
        Ok(response.to_bytes())
    }

    pub(super) fn command_destroy_srq(
        &mut self,
        context: ContextId,
        command: &DestroySrq,
    ) -> Answer {
        let key = self.context(context)?.srq(command.srq_handle)?;
        let srq = self.srqs.get(key).ok_or(Errno::Invalid)?;
        if srq.users > 0 {
            return Err(Errno::Busy);
        }
        let events_reported = srq.async_events;
        self.remove_srq(key);
        self.context(context)?.release(command.srq_handle);
        Ok(DestroySrqResponse { events_reported }.to_bytes())
    }

    pub(super) fn remove_srq(&mut self, key: SrqKey) {
        let Some(srq) = self.srqs.remove(key) else {
            return;
        };
        self.count_pd_user(srq.pd, false);
        if let Ok(owner) = self.context(srq.context) {
            owner.drop_events(EventSource::Srq(key));
            owner.release_queue(receive::memory(srq.max_wr, srq.max_sge));
        }
        if let Ok(device) = self.device_of(srq.context) {
            device.counts.srq -= 1;
        }
    }
}
