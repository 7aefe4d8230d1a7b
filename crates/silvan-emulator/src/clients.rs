//! Attached programs and their datagrams, without input or output: bytes come in, messages to be sent come out.

mod datagrams;
mod files;
mod paths;

use std::collections::BTreeMap;
use std::time::Duration;

use silvan_core::NodeId;
use silvan_mad::smp::PortInfo;

use self::files::File;
use self::paths::Questions;
use crate::error::EmulatorError;
use crate::loss::{DelayedRequest, Loss};
use crate::subnet::Subnet;
use crate::wire::{CONTROL_DATA, CONTROL_LEN, ConnectRequest, Control, ControlKind, Message};

#[derive(Clone, Debug)]
struct Client {
    node: NodeId,
    is_sm: bool,
    has_set: bool,
    access: Access,
}

#[derive(Clone, Debug)]
enum Access {
    Umad2sim,
    File(File),
    IsSm,
}

impl Client {
    fn is_manager(&self) -> bool {
        match &self.access {
            Access::Umad2sim => self.is_sm,
            Access::File(file) => file.is_manager(),
            Access::IsSm => false,
        }
    }
}

/// Timeout of a request that a subnet manager does not answer, because it would wait without limit.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
struct Forwarded {
    to: u16,
    original: DelayedRequest,
    at: Duration,
}

/// Counts of what has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadCounts {
    /// Datagrams answered by the nodes' agents.
    pub answered: u64,
    /// Datagrams passed on to or from a subnet manager.
    pub forwarded: u64,
    /// Requests that came back unanswered.
    pub timed_out: u64,
    /// Messages that were malformed, or that no client may send.
    pub dropped: u64,
    /// Datagrams lost because somebody wanted it so.
    pub lost: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum ControlAction {
    Reply([u8; CONTROL_LEN]),
    Connect {
        client: u16,
        id: u32,
        reply: [u8; CONTROL_LEN],
        refusal: [u8; CONTROL_LEN],
    },
    Disconnect {
        client: u16,
        reply: [u8; CONTROL_LEN],
    },
    Nothing,
}

#[derive(Debug)]
pub(crate) struct Clients {
    pub subnet: Subnet,
    clients: BTreeMap<u16, Client>,
    default_node: NodeId,
    forwarded: BTreeMap<(u16, u64), Forwarded>,
    pub questions: Questions,
    pub outbox: Vec<(u16, Message)>,
    pub loss: Loss,
    pub traffic: MadCounts,
    next_trap: u64,
    next_client: u16,
    sends_checked: Duration,
    numbers: u16,
}

impl Clients {
    pub fn new(subnet: Subnet, default_node: Option<&str>) -> Result<Self, EmulatorError> {
        let first = subnet.fabric.host_ids().next();
        let first = first.map(|host| subnet.fabric.node_of_host(host));
        let node = match default_node {
            Some(name) => subnet.node_named(name),
            None => first.or_else(|| subnet.fabric.nodes.ids().next()),
        };
        let name = default_node.unwrap_or_default();
        let default_node = node.ok_or_else(|| EmulatorError::NoSuchNode(name.to_owned()))?;
        Ok(Self {
            subnet,
            clients: BTreeMap::new(),
            default_node,
            forwarded: BTreeMap::new(),
            questions: Questions::default(),
            outbox: Vec::new(),
            loss: Loss::none(),
            traffic: MadCounts::default(),
            next_trap: 1,
            next_client: 0,
            sends_checked: Duration::ZERO,
            numbers: paths::HOSTS,
        })
    }

    pub fn limit_numbers(&mut self, numbers: u16) {
        self.numbers = numbers.max(1);
    }

    /// Numbers rotate, because messages for the last owner could still be in progress.
    fn free_number(&mut self) -> Option<u16> {
        let numbers = u32::from(self.numbers);
        let from = u32::from(self.next_client);
        let mut tried = (0..numbers).map(|step| ((from + step) % numbers) as u16);
        let free = tried.find(|id| !self.clients.contains_key(id))?;
        self.next_client = free.wrapping_add(1) % self.numbers;
        Some(free)
    }

    pub fn count(&self) -> usize {
        self.clients.len()
    }

    pub fn default_name(&self) -> &str {
        &self.subnet.fabric.nodes[self.default_node].name
    }

    pub fn control(&mut self, bytes: &[u8]) -> ControlAction {
        let Some(control) = Control::parse(bytes) else {
            self.traffic.dropped += 1;
            return ControlAction::Nothing;
        };
        if control.kind() == Some(ControlKind::Connect) {
            return self.connect(&control);
        }
        let client = u16::try_from(control.client()).ok();
        let known = client.filter(|client| self.clients.contains_key(client));
        let (Some(kind), Some(client)) = (control.kind(), known) else {
            return ControlAction::Reply(control.refuse());
        };
        let node = self.clients[&client].node;
        ControlAction::Reply(match kind {
            ControlKind::Disconnect => {
                let reply = control.reply(&[]);
                return ControlAction::Disconnect { client, reply };
            }
            ControlKind::GetPort => {
                let info = &self.subnet.own(node).info;
                let mut data = [0; 3];
                data[..2].copy_from_slice(&info.lid.as_u16().to_ne_bytes());
                data[2] = info.port_state.code() as u8;
                control.reply(&data)
            }
            ControlKind::GetVendor => control.reply(&[0; 24]),
            ControlKind::GetNodeInfo => control.reply(&self.node_info(node)),
            ControlKind::GetPortInfo => match self.port_info(node, control.data()[0]) {
                Some(data) => control.reply(&data),
                None => control.refuse(),
            },
            ControlKind::SetIsSm => {
                self.set_sm(client, control.word(0) != 0);
                control.reply(&[])
            }
            ControlKind::GetPKeys => {
                let keys = &self.subnet.own(node).p_keys;
                let mut data = [0; CONTROL_DATA];
                for (location, key) in data.chunks_exact_mut(2).zip(keys) {
                    location.copy_from_slice(&key.to_be_bytes());
                }
                control.reply(&data)
            }
            ControlKind::Connect => control.refuse(),
        })
    }

    fn connect(&mut self, control: &Control) -> ControlAction {
        let request = ConnectRequest::parse(control);
        let node = match request.node.as_str() {
            "" => Some(self.default_node),
            name => self.subnet.node_named(name),
        };
        let (Some(node), Some(client)) = (node, self.free_number()) else {
            return ControlAction::Reply(control.refuse());
        };
        let attached = Client {
            node,
            is_sm: false,
            has_set: false,
            access: Access::Umad2sim,
        };
        self.clients.insert(client, attached);
        self.set_sm(client, request.is_sm);
        let name = &self.subnet.fabric.nodes[node].name;
        let name = if request.node.is_empty() {
            name
        } else {
            &request.node
        };
        ControlAction::Connect {
            client,
            id: request.id,
            reply: control.reply(&ConnectRequest::answer(control, client, name)),
            refusal: control.refuse(),
        }
    }

    /// The client computes the port's GUID as the node's plus the port's number.
    fn node_info(&self, node: NodeId) -> [u8; CONTROL_DATA] {
        let mut info = self.subnet.state(node).info;
        info.local_port = self.subnet.own_port(node);
        let offset = u64::from(info.local_port.as_u8());
        info.node_guid = silvan_core::Guid::new(info.port_guid.as_u64().wrapping_sub(offset));
        let mut data = [0; CONTROL_DATA];
        data[..silvan_mad::smp::NodeInfo::LEN].copy_from_slice(&info.emit());
        data
    }

    fn port_info(&self, node: NodeId, number: u8) -> Option<[u8; PortInfo::LEN]> {
        let own = self.subnet.own_port(node);
        let number = if number == 0 { own.as_u8() } else { number };
        let record = self.subnet.state(node).ports.get(usize::from(number))?;
        let mut info = record.info;
        info.local_port = own;
        Some(info.emit())
    }

    fn set_sm(&mut self, client: u16, is_sm: bool) {
        let Some(record) = self.clients.get_mut(&client) else {
            return;
        };
        record.is_sm = is_sm;
        let node = record.node;
        let mut clients = self.clients.values();
        let any = clients.any(|client| client.node == node && client.is_sm);
        let own = usize::from(self.subnet.own_port(node).as_u8());
        self.subnet.state_mut(node).ports[own].is_sm = any;
    }

    pub fn has_manager(&self) -> bool {
        self.clients.values().any(Client::is_manager)
    }

    fn sm_at(&self, node: NodeId) -> Option<u16> {
        let mut clients = self.clients.iter();
        clients
            .find(|(_, client)| client.node == node && client.is_manager())
            .map(|(&id, _)| id)
    }

    pub fn disconnect(&mut self, client: u16) {
        self.set_sm(client, false);
        self.clients.remove(&client);
        self.forwarded.retain(|key, _| key.0 != client);
        self.questions.manager_gone(client, self.subnet.uptime);
        self.return_requests(|forwarded| forwarded.to == client);
    }

    pub fn come_due(&mut self) {
        while let Some(delayed) = self.loss.due(self.subnet.uptime) {
            self.lost_for_long(delayed);
        }
        self.expire_sends();
        self.subnet.power_on_due();
        self.query_paths();
    }

    pub fn expire(&mut self) {
        let now = self.subnet.uptime;
        self.return_requests(|forwarded| now.saturating_sub(forwarded.at) >= PATIENCE);
    }

    fn return_requests(&mut self, unanswered: impl Fn(&Forwarded) -> bool) {
        let all = std::mem::take(&mut self.forwarded);
        let (back, rest) = all
            .into_iter()
            .partition(|(_, forwarded)| unanswered(forwarded));
        self.forwarded = rest;
        let back: BTreeMap<_, Forwarded> = back;
        for ((client, _), forwarded) in back {
            if self.is_file(client) {
                continue;
            }
            self.traffic.timed_out += 1;
            self.send(client, forwarded.original.request.timed_out());
        }
    }

    fn send(&mut self, client: u16, message: Message) {
        if self.is_file(client) {
            self.deliver_to_file(client, message);
        } else if self.clients.contains_key(&client) {
            self.outbox.push((client, message));
        }
    }
}
