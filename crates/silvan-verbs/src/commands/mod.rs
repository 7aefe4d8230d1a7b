//! Commands of processes: each is checked as a whole before it changes anything.

mod objects;
mod queue_pairs;
mod work;

use silvan_core::Time;

use crate::abi::structures::*;
use crate::abi::{Command, Layout, parse};
use crate::errno::Errno;
use crate::objects::context::Object;
use crate::verbs::{ContextId, Reply, Verbs};

impl Reply {
    fn refused(error: Errno) -> Self {
        Self {
            errno: error.number(),
            response: Vec::new(),
        }
    }
}

type Answer = Result<Vec<u8>, Errno>;

impl Verbs {
    pub(crate) fn execute_command(
        &mut self,
        now: Time,
        context: ContextId,
        bytes: &[u8],
        inline: &[u8],
    ) -> Reply {
        let command = match parse(bytes) {
            Ok(command) => command,
            Err(error) => return Reply::refused(error),
        };
        let Some(owner) = self.contexts.get_mut(&context) else {
            return Reply::refused(Errno::Invalid);
        };
        if owner.is_ready == matches!(command, Command::GetContext(_)) {
            return Reply::refused(Errno::Invalid);
        }
        let answer = match command {
            Command::PostSend(post, requests) => {
                return self.command_post_send(now, context, &post, requests, inline);
            }
            Command::PostRecv(post, requests) => {
                return self.command_post_receive(context, &post, requests);
            }
            Command::PostSrqRecv(post, requests) => {
                return self.command_post_srq_receive(context, &post, requests);
            }
            command => self.command_plain(now, context, command),
        };
        match answer {
            Ok(response) => Reply { errno: 0, response },
            Err(error) => Reply::refused(error),
        }
    }

    fn command_plain(&mut self, now: Time, context: ContextId, command: Command) -> Answer {
        match command {
            Command::GetContext(_) => {
                self.context(context)?.is_ready = true;
                let response = GetContextResponse {
                    async_fd: 0,
                    num_comp_vectors: 1,
                };
                Ok(response.to_bytes())
            }
            Command::QueryDevice(_) => {
                let device = self.context(context)?.device;
                Ok(self.devices[device.0 as usize].query().to_bytes())
            }
            Command::QueryPort(query) => {
                let device = self.context(context)?.device;
                match query.port_num {
                    1 => Ok(self.devices[device.0 as usize].query_port().to_bytes()),
                    _ => Err(Errno::Invalid),
                }
            }
            Command::AllocPd(_) => self.command_alloc_pd(context),
            Command::DeallocPd(command) => self.command_dealloc_pd(context, command),
            Command::CreateAh(command) => self.command_create_ah(context, &command),
            Command::DestroyAh(command) => self.command_destroy_ah(context, command),
            Command::RegMr(command) => self.command_reg_mr(context, &command),
            Command::DeregMr(command) => self.command_dereg_mr(context, command),
            Command::CreateCompChannel(_) => {
                let fd = self.context(context)?.add_channel()?;
                Ok(CreateCompChannelResponse { fd }.to_bytes())
            }
            Command::CreateCq(command) => self.command_create_cq(context, &command),
            Command::ResizeCq(command) => self.command_resize_cq(context, &command),
            Command::DestroyCq(command) => self.command_destroy_cq(context, &command),
            Command::PollCq(command) => self.command_poll_cq(context, &command),
            Command::ReqNotifyCq(command) => self.command_notify_cq(context, command),
            Command::CreateQp(command) => self.command_create_qp(context, &command),
            Command::QueryQp(command) => self.command_query_qp(context, &command),
            Command::ModifyQp(command) => self.command_modify_qp(now, context, &command),
            Command::DestroyQp(command) => self.command_destroy_qp(context, &command),
            Command::AttachMcast(command) => self.command_attach(context, &command),
            Command::DetachMcast(command) => self.command_detach(context, &command),
            Command::CreateSrq(command) => self.command_create_srq(context, &command),
            Command::ModifySrq(command) => self.command_modify_srq(context, &command),
            Command::QuerySrq(command) => self.command_query_srq(context, &command),
            Command::DestroySrq(command) => self.command_destroy_srq(context, &command),
            Command::PostSend(..) | Command::PostRecv(..) | Command::PostSrqRecv(..) => {
                Err(Errno::Invalid)
            }
        }
    }

    pub(crate) fn destroy_objects(&mut self, context: ContextId) {
        let Some(owner) = self.contexts.get(&context) else {
            return;
        };
        let objects: Vec<Object> = owner.objects().collect();
        for object in &objects {
            if let Object::Qp(key) = object {
                self.detach_all(*key);
                self.remove_qp(*key);
            }
        }
        for object in &objects {
            match object {
                Object::Srq(key) => self.remove_srq(*key),
                Object::Cq(key) => self.remove_cq(*key),
                Object::Ah(key) => self.remove_ah(*key),
                Object::Mr(key) => self.remove_mr(*key),
                Object::Qp(_) | Object::Pd(_) => {}
            }
        }
        for object in &objects {
            if let Object::Pd(key) = object {
                self.remove_pd(*key);
            }
        }
    }
}
