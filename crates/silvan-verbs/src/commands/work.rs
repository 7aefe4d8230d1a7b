//! Commands that post work requests. Requests before a refused one are posted, as in the kernel.

use std::sync::Arc;

use silvan_core::Time;

use crate::abi::structures::parts::{AtomicPart, DatagramPart, RdmaPart};
use crate::abi::structures::*;
use crate::abi::values::{QpState, QpType, SendOpcode, send_flags};
use crate::abi::{Layout, PostedSend};
use crate::errno::Errno;
use crate::objects::QpKey;
use crate::objects::address::MULTICAST_QP;
use crate::objects::memory::total;
use crate::objects::queue_pair::{Datagram, SendRequest};
use crate::objects::receive::ReceiveRequest;
use crate::verbs::{ContextId, Reply, Verbs};

const ATOMIC_LENGTH: u64 = 8;

/// Reply of a POST command: `bad_wr` counts requests from 1, 0 for none.
fn posted(result: Result<(), (u32, Errno)>) -> Reply {
    let (bad_wr, errno) = match result {
        Ok(()) => (0, 0),
        Err((bad_wr, error)) => (bad_wr, error.number()),
    };
    Reply {
        errno,
        response: PostSendResponse { bad_wr }.to_bytes(),
    }
}

impl Verbs {
    pub(super) fn command_post_send(
        &mut self,
        now: Time,
        context: ContextId,
        post: &PostSend,
        requests: Vec<PostedSend>,
        mut inline: &[u8],
    ) -> Reply {
        let found = self
            .context(context)
            .and_then(|owner| owner.qp(post.qp_handle));
        let key = match found {
            Ok(key) => key,
            Err(error) => return posted(Err((1, error))),
        };
        for (index, (request, elements)) in requests.into_iter().enumerate() {
            match self.check_send(context, key, &request, elements, &mut inline) {
                Ok(request) => self.post_send(now, key, request),
                Err(error) => return posted(Err((index as u32 + 1, error))),
            }
        }
        posted(Ok(()))
    }

    fn check_send(
        &self,
        context: ContextId,
        key: QpKey,
        posted: &SendWr,
        elements: Vec<Sge>,
        inline: &mut &[u8],
    ) -> Result<SendRequest, Errno> {
        let qp = self.qps.get(key).ok_or(Errno::Invalid)?;
        let opcode = SendOpcode::from_number(posted.opcode).ok_or(Errno::Invalid)?;
        let length = total(&elements);
        let is_inline = posted.send_flags & send_flags::INLINE != 0;
        let allows = match qp.kind {
            QpType::Rc => true,
            QpType::Uc => !opcode.has_response(),
            QpType::Ud => matches!(opcode, SendOpcode::Send | SendOpcode::SendWithImmediate),
        };
        if !allows
            || matches!(qp.state, QpState::Reset | QpState::Init | QpState::Rtr)
            || elements.len() > qp.created.max_send_sge as usize
            || (is_inline && opcode.has_response())
            || (opcode.has_response() && qp.attributes.max_rd_atomic == 0)
            || (opcode.is_atomic() && length != ATOMIC_LENGTH)
        {
            return Err(Errno::Invalid);
        }
        if qp.send.sends.len() >= qp.created.max_send_wr as usize {
            return Err(Errno::NoMemory);
        }
        let data = match is_inline {
            true => Some(take_inline(inline, length, qp.created.max_inline_data)?),
            false => None,
        };
        let mut request = SendRequest {
            wr_id: posted.wr_id,
            opcode,
            flags: posted.send_flags,
            immediate: posted.ex,
            elements,
            length,
            inline: data,
            remote_address: 0,
            remote_key: 0,
            operands: (0, 0),
            datagram: None,
        };
        if qp.kind == QpType::Ud {
            let part = DatagramPart::parse(&posted.wr).ok_or(Errno::Invalid)?;
            let owner = self.contexts.get(&context).ok_or(Errno::Invalid)?;
            let handle = self.ahs.get(owner.ah(part.ah)?).ok_or(Errno::Invalid)?;
            if handle.pd != qp.pd || part.remote_qpn > MULTICAST_QP {
                return Err(Errno::Invalid);
            }
            request.datagram = Some(Datagram {
                address: handle.address,
                number: part.remote_qpn,
                qkey: part.remote_qkey,
            });
        } else if opcode.is_atomic() {
            let part = AtomicPart::parse(&posted.wr).ok_or(Errno::Invalid)?;
            request.remote_address = part.remote_addr;
            request.remote_key = part.rkey;
            request.operands = (part.compare_add, part.swap);
        } else {
            let part = RdmaPart::parse(&posted.wr).ok_or(Errno::Invalid)?;
            request.remote_address = part.remote_addr;
            request.remote_key = part.rkey;
        }
        Ok(request)
    }

    pub(super) fn command_post_receive(
        &mut self,
        context: ContextId,
        post: &PostRecv,
        requests: Vec<(ReceiveWr, Vec<Sge>)>,
    ) -> Reply {
        let found = self
            .context(context)
            .and_then(|owner| owner.qp(post.qp_handle));
        let key = match found {
            Ok(key) => key,
            Err(error) => return posted(Err((1, error))),
        };
        for (index, (request, elements)) in requests.into_iter().enumerate() {
            if let Err(error) = self.post_receive(key, &request, elements) {
                return posted(Err((index as u32 + 1, error)));
            }
        }
        posted(Ok(()))
    }

    fn post_receive(
        &mut self,
        key: QpKey,
        posted: &ReceiveWr,
        elements: Vec<Sge>,
    ) -> Result<(), Errno> {
        let qp = self.qps.get_mut(key).ok_or(Errno::Invalid)?;
        if qp.srq.is_some()
            || qp.state == QpState::Reset
            || elements.len() > qp.created.max_recv_sge as usize
        {
            return Err(Errno::Invalid);
        }
        if qp.receive.requests.len() >= qp.created.max_recv_wr as usize {
            return Err(Errno::NoMemory);
        }
        qp.receive.requests.push_back(ReceiveRequest {
            wr_id: posted.wr_id,
            elements,
        });
        if qp.state == QpState::Err {
            self.flush_receives(key);
        }
        Ok(())
    }

    pub(super) fn command_post_srq_receive(
        &mut self,
        context: ContextId,
        post: &PostSrqRecv,
        requests: Vec<(ReceiveWr, Vec<Sge>)>,
    ) -> Reply {
        let found = self
            .context(context)
            .and_then(|owner| owner.srq(post.srq_handle));
        let srq = match found.map(|key| self.srqs.get_mut(key)) {
            Ok(Some(srq)) => srq,
            Ok(None) => return posted(Err((1, Errno::Invalid))),
            Err(error) => return posted(Err((1, error))),
        };
        for (index, (request, elements)) in requests.into_iter().enumerate() {
            let error = if elements.len() > srq.max_sge as usize {
                Errno::Invalid
            } else if srq.requests.len() >= srq.max_wr as usize {
                Errno::NoMemory
            } else {
                srq.requests.push_back(ReceiveRequest {
                    wr_id: request.wr_id,
                    elements,
                });
                continue;
            };
            return posted(Err((index as u32 + 1, error)));
        }
        posted(Ok(()))
    }
}

fn take_inline(inline: &mut &[u8], length: u64, most: u32) -> Result<Arc<[u8]>, Errno> {
    let length = usize::try_from(length).map_err(|_| Errno::Invalid)?;
    if length > most as usize || length > inline.len() {
        return Err(Errno::Invalid);
    }
    let (data, rest) = inline.split_at(length);
    *inline = rest;
    Ok(Arc::from(data))
}
