use std::collections::VecDeque;

use super::PdKey;
use crate::abi::structures::Sge;
use crate::verbs::ContextId;

pub(crate) const MOST_REQUESTS: u32 = 16_384;
pub(crate) const MOST_ELEMENTS: u32 = 32;

#[derive(Clone, Debug)]
pub(crate) struct ReceiveRequest {
    pub(crate) wr_id: u64,
    pub(crate) elements: Vec<Sge>,
}

pub(crate) fn memory(requests: u32, elements: u32) -> u64 {
    let each = size_of::<ReceiveRequest>() as u64 + u64::from(elements) * size_of::<Sge>() as u64;
    u64::from(requests) * each
}

#[derive(Debug)]
pub(crate) struct SharedReceiveQueue {
    pub(crate) context: ContextId,
    pub(crate) user_handle: u64,
    pub(crate) pd: PdKey,
    pub(crate) max_wr: u32,
    pub(crate) max_sge: u32,
    /// An event follows when fewer requests wait; 0 for none. The event clears it.
    pub(crate) limit: u32,
    pub(crate) requests: VecDeque<ReceiveRequest>,
    pub(crate) users: u32,
    pub(crate) async_events: u32,
}

impl SharedReceiveQueue {
    pub(crate) fn take(&mut self) -> (Option<ReceiveRequest>, bool) {
        let request = self.requests.pop_front();
        let is_low = request.is_some() && (self.requests.len() as u64) < u64::from(self.limit);
        if is_low {
            self.limit = 0;
        }
        (request, is_low)
    }
}
