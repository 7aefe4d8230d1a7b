//! A channel of packets: each adapter sends one after the other, and the channel loses single ones.

use std::collections::{BTreeMap, VecDeque};

use silvan_core::{Lid, Span};
use silvan_verbs::{Destination, DeviceId, Message, MessageKind};

/// A queue of an adapter: number of the queue pair, and true for its answers.
type Queue = (DeviceId, u32, bool);

/// Returns true if the packet of this message is lost. Counts all packets of the adapter from 0.
pub type Loses = Box<dyn FnMut(u64, &Message) -> bool>;

/// Ports, messages under way, and gaps that receivers have not noticed.
pub struct Wire {
    /// Time of a packet at its port.
    pub packet: Span,
    pub loses: Loses,
    ports: BTreeMap<DeviceId, Port>,
    messages: Vec<Message>,
    /// Lost packets by queue.
    lost: BTreeMap<Queue, Vec<Packet>>,
}

#[derive(Default)]
struct Port {
    waiting: VecDeque<(usize, u32)>,
    sends: Option<Packet>,
    sent: u64,
}

/// A packet under way.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub from: DeviceId,
    message: usize,
    index: u32,
    /// Number among the packets of its adapter.
    number: u64,
}

/// Gaps before a packet that arrives, its message, and true if it is the last packet.
pub struct Arrived {
    pub gaps: Vec<(Message, u32)>,
    pub message: Message,
    pub is_whole: bool,
}

fn queue(message: &Message) -> Queue {
    let responds = message.kind != MessageKind::Request;
    (message.from, message.flow.source_qp, responds)
}

impl Wire {
    pub fn new(packet: Span, loses: Loses) -> Self {
        Self {
            packet,
            loses,
            ports: BTreeMap::new(),
            messages: Vec::new(),
            lost: BTreeMap::new(),
        }
    }

    /// Packets that an adapter has sent.
    pub fn sent(&self, from: DeviceId) -> u64 {
        self.ports.get(&from).map_or(0, |port| port.sent)
    }

    /// Returns true if its port begins to send.
    pub fn inject(&mut self, message: Message) -> bool {
        let number = self.messages.len();
        let port = self.ports.entry(message.from).or_default();
        port.waiting.push_back((number, 0));
        self.messages.push(message);
        port.sends.is_none() && port.waiting.len() == 1
    }

    pub fn withdraw(&mut self, meant: Queue) {
        let messages = &self.messages;
        if let Some(port) = self.ports.get_mut(&meant.0) {
            let stays = |(number, _): &(usize, u32)| queue(&messages[*number]) != meant;
            port.waiting.retain(stays);
        }
    }

    /// The packet that the port sends next.
    pub fn start(&mut self, from: DeviceId) -> Option<Packet> {
        let port = self.ports.get_mut(&from)?;
        let (message, index) = *port.waiting.front()?;
        let packet = Packet {
            from,
            message,
            index,
            number: port.sent,
        };
        port.sent += 1;
        port.sends = Some(packet);
        if index + 1 == self.messages[message].packets {
            port.waiting.pop_front();
        } else if let Some(first) = port.waiting.front_mut() {
            first.1 += 1;
        }
        Some(packet)
    }

    /// A packet has left. Returns the message if it was its last one, true if the packet arrives, and its LID.
    pub fn leave(&mut self, packet: Packet) -> (Option<Message>, bool, Lid) {
        if let Some(port) = self.ports.get_mut(&packet.from) {
            port.sends = None;
        }
        let message = &self.messages[packet.message];
        let is_lost = (self.loses)(packet.number, message);
        if is_lost {
            self.lost.entry(queue(message)).or_default().push(packet);
        }
        let is_last = packet.index + 1 == message.packets;
        let (Destination::Unicast(to) | Destination::Multicast(to)) = message.destination;
        (is_last.then(|| message.clone()), !is_lost, to)
    }

    pub fn arrive(&mut self, packet: Packet) -> Arrived {
        let message = self.messages[packet.message].clone();
        let lost = self.lost.remove(&queue(&message)).unwrap_or_default();
        let (before, behind) = lost
            .into_iter()
            .partition(|lost| lost.number < packet.number);
        self.lost.insert(queue(&message), behind);
        let before: Vec<Packet> = before;
        let of = |lost: Packet| (self.messages[lost.message].clone(), lost.index);
        Arrived {
            gaps: before.into_iter().map(of).collect(),
            is_whole: packet.index + 1 == message.packets,
            message,
        }
    }
}
