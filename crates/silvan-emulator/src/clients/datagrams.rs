use silvan_core::NodeId;
use silvan_mad::smp::{DirectedRoute, Notice};
use silvan_mad::{Body, Class, MAD_LEN, Mad, Method, Packet};

use super::files::{is_for_manager, is_for_node};
use super::paths::HOSTS;
use super::{Clients, Forwarded};
use crate::agent::Reaction;
use crate::loss::{DelayedRequest, RETRIES};
use crate::subnet::{Arrival, Needs, Start};
use crate::wire::Message;

const RETURN_PATH: usize = 192;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Served,
    Unanswered,
    Lost,
}

impl Clients {
    pub(super) fn loses(&mut self, from: NodeId, to: NodeId) -> bool {
        from != to && self.loss.strikes()
    }

    fn lose(&mut self, delayed: DelayedRequest) {
        self.traffic.lost += 1;
        // The kernel's interface states timeout and retries.
        if self.is_file(delayed.client) {
            return;
        }
        let now = self.subnet.uptime;
        self.loss.keep(now, delayed);
    }

    pub(super) fn lost_for_long(&mut self, delayed: DelayedRequest) {
        if delayed.retries == 0 {
            self.send(delayed.client, delayed.request.timed_out());
        } else if let Some(record) = self.clients.get(&delayed.client) {
            let node = record.node;
            let retries = delayed.retries - 1;
            self.request(node, DelayedRequest { retries, ..delayed });
            self.flush_traps();
        }
    }

    pub fn datagram(&mut self, client: u16, bytes: &[u8]) {
        let (Some(mut message), Some(record)) =
            (Message::parse(bytes), self.clients.get_mut(&client))
        else {
            self.traffic.dropped += 1;
            return;
        };
        let (node, is_sm) = (record.node, record.is_sm);
        let packet = Packet::new(*message.mad());
        let method = packet.method();
        let is_subnet_management =
            matches!(packet.class(), Class::SUBNET_LID | Class::SUBNET_DIRECTED);
        record.has_set |= is_subnet_management && method == Method::SET;
        if method.is_response() || method == Method::TRAP_REPRESS {
            self.response(client, message);
            return;
        }
        let attempt = DelayedRequest {
            client,
            request: message,
            retries: if is_sm { RETRIES } else { 0 },
        };
        self.request(node, attempt);
        self.flush_traps();
    }

    pub(super) fn request(&mut self, node: NodeId, attempt: DelayedRequest) {
        let client = attempt.client;
        let request = attempt.request.clone();
        let mut routed = request.clone();
        let packet = Packet::new(*routed.mad());
        let fate = match self.target(node, &mut routed) {
            Some(at) if self.loses(node, at.node) => Fate::Lost,
            Some(at) if is_for_node(&packet) => self.local(client, node, at, routed),
            Some(at) => match self.responder(at.node, &packet) {
                Some(to) => self.forward(node, to, routed, attempt.clone()),
                None if is_for_manager(&packet) => Fate::Unanswered,
                None => self.local(client, node, at, routed),
            },
            None => Fate::Unanswered,
        };
        match fate {
            Fate::Served => {}
            Fate::Lost => self.lose(attempt),
            Fate::Unanswered if self.is_file(client) => {}
            Fate::Unanswered => {
                self.traffic.timed_out += 1;
                self.send(client, request.timed_out());
            }
        }
    }

    fn target(&self, from: NodeId, message: &mut Message) -> Option<Arrival> {
        if self.subnet.is_off(from) {
            return None;
        }
        let lid = message.destination();
        let bytes = message.mad();
        let packet = Packet::new(&mut *bytes);
        match packet.class() {
            Class::SUBNET_DIRECTED => {
                let mut route = DirectedRoute::of(bytes)?;
                let start = self.subnet.follow_lid(from, lid, Needs::Link)?;
                let at = self.subnet.follow(start.node, &mut route)?;
                bytes[RETURN_PATH..].copy_from_slice(&route.return_path);
                Some(at)
            }
            Class::SUBNET_LID => self.subnet.follow_lid(from, lid, Needs::Link),
            _ => self.subnet.follow_lid(from, lid, Needs::Active),
        }
    }

    fn local(&mut self, client: u16, from: NodeId, at: Arrival, mut answer: Message) -> Fate {
        answer.set_owner(client);
        match self.subnet.react(at, answer.mad()) {
            Reaction::Answered if self.loses(at.node, from) => Fate::Lost,
            Reaction::Answered => {
                answer.turn_round();
                self.traffic.answered += 1;
                self.send(client, answer);
                Fate::Served
            }
            Reaction::Silent => Fate::Unanswered,
        }
    }

    fn forward(
        &mut self,
        from: NodeId,
        (to, agent): (u16, u8),
        mut request: Message,
        original: DelayedRequest,
    ) -> Fate {
        let client = original.client;
        let method = Packet::new(*request.mad()).method();
        request.extra.agent = agent;
        request.set_owner(client);
        request.set_source(self.subnet.lid(from));
        // Other senders of traps do not wait for an answer.
        if method != Method::TRAP || self.clients[&client].is_manager() {
            let key = (client, request.transaction());
            let forwarded = Forwarded {
                to,
                original,
                at: self.subnet.uptime,
            };
            self.forwarded.insert(key, forwarded);
        }
        self.traffic.forwarded += 1;
        self.send(to, request);
        Fate::Served
    }

    /// Passes a subnet manager's answer on, once; no client waits for traps of switches.
    pub(super) fn response(&mut self, from: u16, mut message: Message) {
        if message.owner() == HOSTS {
            self.path_answer(from, message);
            return;
        }
        let key = (message.owner(), message.transaction());
        let asked = self.forwarded.get(&key).filter(|asked| asked.to == from);
        let Some(original) = asked.map(|asked| asked.original.clone()) else {
            let is_answer = Packet::new(*message.mad()).method().is_response();
            self.traffic.dropped += u64::from(is_answer);
            return;
        };
        self.forwarded.remove(&key);
        let node = self.clients[&from].node;
        let asker = self.clients.get(&key.0).map(|asker| asker.node);
        if asker.is_some_and(|asker| self.loses(node, asker)) {
            self.lose(original);
            return;
        }
        message.set_source(self.subnet.lid(node));
        self.traffic.forwarded += 1;
        self.send(key.0, message);
    }

    /// Activates links that have come up without a subnet manager: a configured fabric stays configured.
    fn activate_unmanaged(&mut self) {
        let came_up = std::mem::take(&mut self.subnet.came_up);
        if self.has_manager() || self.subnet.start != Start::Configured {
            return;
        }
        for port in came_up {
            self.subnet.activate(port);
        }
    }

    /// A trap without a route is kept until the subnet manager has cleared the change.
    pub fn flush_traps(&mut self) {
        self.activate_unmanaged();
        for node in std::mem::take(&mut self.subnet.traps) {
            let state = self.subnet.state(node);
            let changed = state
                .switch
                .as_ref()
                .is_some_and(|switch| switch.info.port_state_change);
            if changed && !self.send_trap(node) {
                self.subnet.traps.push(node);
            }
        }
    }

    fn send_trap(&mut self, node: NodeId) -> bool {
        let info = self.subnet.own(node).info;
        let manager = info.master_sm_lid;
        if manager.as_u16() == 0 {
            return false;
        }
        let reached = self.subnet.follow_lid(node, manager, Needs::Link);
        let Some(at) = reached else {
            return false;
        };
        if self.loses(node, at.node) {
            self.traffic.lost += 1;
            return false;
        }
        let mut trap = Mad::request(
            Method::TRAP,
            Body::Smp(silvan_mad::smp::Smp {
                m_key: 0,
                route: silvan_mad::smp::SmpRoute::Lid,
                attribute: Notice::link_state_change(info.lid).into(),
            }),
        );
        trap.transaction_id = self.next_trap;
        self.next_trap += 1;
        let mad: [u8; MAD_LEN] = trap.emit();
        let Some((client, agent)) = self.responder(at.node, &Packet::new(mad)) else {
            return false;
        };
        let mut message = Message::unasked(info.lid, manager, &mad);
        message.extra.agent = agent;
        self.send(client, message);
        true
    }
}
