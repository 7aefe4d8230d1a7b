//! The files of the kernel's interface, each a client. As in the kernel, the upper half of a request's TransactionID is
//! the agent, here client and agent.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::io::Errno;
use silvan_core::{NodeId, PortNumber};
use silvan_mad::smp::SmInfo;
use silvan_mad::{Class, MAD_LEN, Method, Packet};

use super::{Access, Client, Clients};
use crate::loss::DelayedRequest;
use crate::umad::{Registration, Written};
use crate::wire::Message;

const MOST_AGENTS: u8 = 32;
const CHECK_SENDS: Duration = Duration::from_millis(1);
const VENDOR_CLASSES: std::ops::RangeInclusive<u8> = 0x30..=0x4f;
const RMPP_PAYLOAD: usize = 220;
const ACTIVE: u8 = 1;
const FIRST: u8 = 2;
const LAST: u8 = 4;

#[derive(Clone, Debug, Default)]
pub(super) struct File {
    agents: BTreeMap<u8, Registration>,
    sends: BTreeMap<u64, Send>,
}

#[derive(Clone, Debug)]
struct Send {
    request: Message,
    until: Duration,
    timeout: Duration,
    retries: u32,
}

impl File {
    pub fn is_manager(&self) -> bool {
        let administration = |agent: &Registration| {
            u32::from(agent.class) == Class::SUBNET_ADMINISTRATION.code()
                && receives(agent, Method::GET.code())
        };
        self.agents.values().any(administration)
    }

    pub fn responder(&self, packet: &Packet<[u8; MAD_LEN]>) -> Option<u8> {
        let mut agents = self.agents.iter();
        let of_class = |agent: &Registration| {
            u32::from(agent.class) == packet.class().code()
                && agent.version == packet.class_version()
                && receives(agent, packet.method().code())
        };
        let found = agents.find(|(_, agent)| of_class(agent));
        found.map(|(&number, _)| number)
    }
}

fn receives(agent: &Registration, method: u32) -> bool {
    let word = agent.methods[(method / 64 % 2) as usize];
    word >> (method % 64) & 1 == 1
}

fn data_at(class: u8) -> usize {
    match class {
        0x03 => 56,
        0x06 | 0x10 | 0x12 => 64,
        class if VENDOR_CLASSES.contains(&class) => 40,
        _ => 36,
    }
}

fn is_rmpp(mad: &[u8; MAD_LEN]) -> bool {
    let class = mad[1];
    let may = matches!(class, 0x03 | 0x06) || VENDOR_CLASSES.contains(&class);
    may && mad[26] & ACTIVE != 0
}

/// As the kernel does: number of the segment, and length of all payload.
fn complete_first(message: &mut Message) {
    let tail = message.extra.tail.as_ref().map_or(0, |tail| tail.len());
    let length = message.length() + tail;
    let mad = message.mad();
    let at = data_at(mad[1]);
    let room = MAD_LEN - at;
    let data = length.saturating_sub(at);
    let segments = data.div_ceil(room).max(1);
    let padding = segments * room - data;
    mad[24] = 1;
    mad[25] = 1;
    let only = if segments == 1 { LAST } else { 0 };
    mad[26] = mad[26] & 0xf8 | ACTIVE | FIRST | only;
    mad[28..32].copy_from_slice(&1u32.to_be_bytes());
    let payload = (segments * RMPP_PAYLOAD - padding) as u32;
    mad[32..36].copy_from_slice(&payload.to_be_bytes());
}

impl Clients {
    pub fn open_file(&mut self, node: &str, port: u8) -> Result<u16, Errno> {
        let node = self.port_of(node, port)?;
        self.attach(node, Access::File(File::default()))
    }

    pub fn open_issm(&mut self, node: &str, port: u8) -> Result<u16, Errno> {
        let node = self.port_of(node, port)?;
        let client = self.attach(node, Access::IsSm)?;
        self.set_sm(client, true);
        Ok(client)
    }

    pub fn node_or_default(&self, name: &str) -> Option<NodeId> {
        match name {
            "" => Some(self.default_node),
            name => self.subnet.node_named(name),
        }
    }

    fn port_of(&self, node: &str, port: u8) -> Result<NodeId, Errno> {
        let node = self.node_or_default(node).ok_or(Errno::NODEV)?;
        let is_switch = self.subnet.state(node).switch.is_some();
        match port {
            0 => Ok(node),
            _ if is_switch => Err(Errno::NXIO),
            port if port > self.subnet.state(node).info.num_ports => Err(Errno::NXIO),
            port => Ok(self.subnet.node_with_port(node, PortNumber::new(port))),
        }
    }

    fn attach(&mut self, node: NodeId, access: Access) -> Result<u16, Errno> {
        let client = self.free_number().ok_or(Errno::MFILE)?;
        let attached = Client {
            node,
            is_sm: false,
            has_set: false,
            access,
        };
        self.clients.insert(client, attached);
        Ok(client)
    }

    fn file(&mut self, client: u16) -> Option<&mut File> {
        match &mut self.clients.get_mut(&client)?.access {
            Access::File(file) => Some(file),
            _ => None,
        }
    }

    pub fn register(&mut self, client: u16, wanted: Registration) -> Result<u8, Errno> {
        let class = u32::from(wanted.class);
        let is_smp = class == Class::SUBNET_LID.code() || class == Class::SUBNET_DIRECTED.code();
        let valid = wanted.queue_pair == u32::from(!is_smp)
            && wanted.rmpp_version <= 1
            && (wanted.oui != 0 || !VENDOR_CLASSES.contains(&wanted.class));
        if !valid || wanted.unknown_flags {
            return Err(Errno::INVAL);
        }
        let node = self.clients.get(&client).ok_or(Errno::BADF)?.node;
        // Each method of a class has one agent at a port.
        let files = self.clients.values().filter(|other| other.node == node);
        let agents = files.filter_map(|other| match &other.access {
            Access::File(file) => Some(file.agents.values()),
            _ => None,
        });
        let taken = agents.flatten().any(|other| {
            let same = (other.class, other.version, other.oui)
                == (wanted.class, wanted.version, wanted.oui);
            let mut methods = other.methods.iter().zip(wanted.methods);
            same && methods.any(|(&theirs, own)| theirs & own != 0)
        });
        if taken {
            return Err(Errno::INVAL);
        }
        let file = self.file(client).ok_or(Errno::BADF)?;
        let free = (0..MOST_AGENTS).find(|number| !file.agents.contains_key(number));
        let number = free.ok_or(Errno::NOMEM)?;
        file.agents.insert(number, wanted);
        Ok(number)
    }

    pub fn unregister(&mut self, client: u16, agent: u32) -> Result<(), Errno> {
        let file = self.file(client).ok_or(Errno::BADF)?;
        let number = u8::try_from(agent).map_err(|_| Errno::INVAL)?;
        file.agents.remove(&number).ok_or(Errno::INVAL)?;
        file.sends.retain(|key, _| agent_of(*key) != number);
        Ok(())
    }

    pub fn written(&mut self, client: u16, written: Written) {
        let Written {
            agent,
            timeout_ms,
            retries,
            mut message,
        } = written;
        let now = self.subnet.uptime;
        let Some(node) = self.clients.get(&client).map(|record| record.node) else {
            return;
        };
        let Some((file, agent, segments)) = self.file(client).and_then(|file| {
            let number = u8::try_from(agent).ok()?;
            let segments = file.agents.get(&number)?.rmpp_version == 1;
            Some((file, number, segments))
        }) else {
            self.traffic.dropped += 1;
            return;
        };
        let packet = Packet::new(*message.mad());
        if segments && is_rmpp(packet.bytes()) {
            complete_first(&mut message);
        } else {
            message.extra.tail = None;
            message.set_length(MAD_LEN);
        }
        if packet.method().is_response() || packet.method() == Method::TRAP_REPRESS {
            self.response(client, message);
            return;
        }
        let low = packet.transaction_id() & u64::from(u32::MAX);
        let key = u64::from(agent) << 32 | low;
        message.set_transaction_id(u64::from(client) << 48 | key);
        if timeout_ms > 0 {
            let timeout = Duration::from_millis(timeout_ms.into());
            let send = Send {
                request: message.clone(),
                until: now + timeout,
                timeout,
                retries,
            };
            file.sends.insert(key, send);
        }
        let smp = matches!(packet.class(), Class::SUBNET_LID | Class::SUBNET_DIRECTED);
        if let Some(record) = self.clients.get_mut(&client) {
            record.has_set |= smp && packet.method() == Method::SET;
        }
        let attempt = DelayedRequest {
            client,
            request: message,
            retries: 0,
        };
        self.request(node, attempt);
        self.flush_traps();
    }

    pub(super) fn is_file(&self, client: u16) -> bool {
        let access = self.clients.get(&client).map(|record| &record.access);
        matches!(access, Some(Access::File(_)))
    }

    pub(super) fn responder(
        &self,
        node: NodeId,
        packet: &Packet<[u8; MAD_LEN]>,
    ) -> Option<(u16, u8)> {
        let clients = self
            .clients
            .iter()
            .filter(|(_, client)| client.node == node);
        let mut found = clients.filter_map(|(&id, client)| match &client.access {
            // umad2sim cannot handle requests that a program has not registered for.
            Access::Umad2sim => {
                let serves =
                    client.is_sm && is_for_manager(packet) && packet.method() != Method::REPORT;
                serves.then_some((id, 0))
            }
            Access::File(file) => Some((id, file.responder(packet)?)),
            Access::IsSm => None,
        });
        found.next()
    }

    pub(super) fn deliver_to_file(&mut self, client: u16, mut message: Message) {
        let packet = Packet::new(*message.mad());
        let is_answer = packet.method().is_response() || packet.method() == Method::TRAP_REPRESS;
        let key = message.transaction();
        let Some(file) = self.file(client) else {
            return;
        };
        if is_answer {
            let Some(send) = file.sends.remove(&key) else {
                self.traffic.dropped += 1;
                return;
            };
            message.extra.agent = agent_of(key);
            message.extra.p_key_index = send.request.extra.p_key_index;
            message.extra.grh = send.request.extra.grh;
            let takes_all = file.agents.get(&agent_of(key));
            if takes_all.is_none_or(|agent| agent.rmpp_version == 0) {
                message.extra.tail = None;
            }
        } else {
            message.extra.grh = None;
            message.extra.p_key_index = 0;
        }
        if message.extra.tail.is_none() && !is_rmpp(message.mad()) {
            message.set_length(MAD_LEN);
        }
        self.outbox.push((client, message));
    }

    pub(super) fn expire_sends(&mut self) {
        let now = self.subnet.uptime;
        if now.saturating_sub(self.sends_checked) < CHECK_SENDS {
            return;
        }
        self.sends_checked = now;
        let mut due = Vec::new();
        for (&client, record) in &mut self.clients {
            let Access::File(file) = &mut record.access else {
                continue;
            };
            for (&key, send) in &mut file.sends {
                if send.until <= now {
                    let again = send.retries > 0;
                    send.retries = send.retries.saturating_sub(1);
                    send.until = now + send.timeout;
                    due.push((client, record.node, key, send.request.clone(), again));
                }
            }
        }
        for (client, node, key, request, again) in due {
            if again {
                let attempt = DelayedRequest {
                    client,
                    request,
                    retries: 0,
                };
                self.request(node, attempt);
                continue;
            }
            if let Some(file) = self.file(client) {
                file.sends.remove(&key);
            }
            self.traffic.timed_out += 1;
            let mut back = request.timed_out();
            back.extra.agent = agent_of(key);
            self.outbox.push((client, back));
        }
    }
}

fn agent_of(key: u64) -> u8 {
    (key >> 32) as u8
}

pub(super) fn is_for_manager(packet: &Packet<[u8; MAD_LEN]>) -> bool {
    match packet.class() {
        Class::SUBNET_ADMINISTRATION => true,
        Class::SUBNET_LID | Class::SUBNET_DIRECTED => {
            packet.attribute_id() == SmInfo::ID || packet.method() == Method::TRAP
        }
        _ => false,
    }
}

pub(super) fn is_for_node(packet: &Packet<[u8; MAD_LEN]>) -> bool {
    let own = [
        Class::SUBNET_LID,
        Class::SUBNET_DIRECTED,
        Class::PERFORMANCE,
        Class::CONGESTION_CONTROL,
    ];
    own.contains(&packet.class()) && !is_for_manager(packet)
}
