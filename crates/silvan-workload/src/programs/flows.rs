use std::collections::{BTreeMap, VecDeque};

use silvan_cc::workload::Offer;
use silvan_core::{HostId, Sl};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub flow: u32,
    pub packets: u64,
    pub message: u32,
    /// Number of the message in its flow, modulo 2^16.
    pub number: u16,
    /// Packets of the message alone.
    pub own_packets: u64,
    pub part: Part,
}

/// Part of a message that has left its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// The rest was withdrawn.
    Some,
    /// It was withdrawn.
    None,
}

/// Half of all numbers of messages.
const HALF: u16 = 1 << 15;

/// After so many messages no packet of one is under way.
const LONGEST_WAY: u16 = HALF / 2;

#[derive(Clone, Debug, Default)]
struct Flow {
    delivered: u64,
    /// Sent messages that have not arrived.
    whole: VecDeque<Sent>,
    /// Packets that have arrived, by message, where packets may be lost.
    arrived: BTreeMap<u16, u64>,
    /// Messages that ended while packets of them were under way, the oldest first.
    ended: VecDeque<u16>,
}

#[derive(Clone, Debug)]
pub(crate) struct Flows {
    flows: Vec<Flow>,
    /// By destination: sending host and service level, in order.
    by_target: Vec<Vec<(u64, u32)>>,
}

impl Flow {
    /// A packet of this message arrives. Returns true if the message has ended.
    fn has_ended(&mut self, number: u16) -> bool {
        let is_old = |ended: &u16| (LONGEST_WAY..HALF).contains(&number.wrapping_sub(*ended));
        while self.ended.front().is_some_and(is_old) {
            self.ended.pop_front();
        }
        self.ended.contains(&number)
    }
}

fn key(from: HostId, sl: Sl, of_driver: bool) -> u64 {
    (from.index() as u64) << 5 | u64::from(of_driver) << 4 | u64::from(sl.as_u8())
}

impl Flows {
    pub fn new(hosts: usize) -> Self {
        Self {
            flows: Vec::new(),
            by_target: vec![Vec::new(); hosts],
        }
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> usize {
        self.by_target.len()
    }

    /// The number of a flow.
    pub fn number(&mut self, from: HostId, to: HostId, sl: Sl, of_driver: bool) -> u32 {
        let key = key(from, sl, of_driver);
        let known = &mut self.by_target[to.index()];
        match known.binary_search_by_key(&key, |entry| entry.0) {
            Ok(place) => known[place].1,
            Err(place) => {
                let flow = self.flows.len() as u32;
                known.insert(place, (key, flow));
                self.flows.push(Flow::default());
                flow
            }
        }
    }

    /// Records a completely sent message. Messages of a flow come in the order of sending.
    pub fn note_sent(&mut self, sent: Sent) {
        self.flows[sent.flow as usize].whole.push_back(sent);
    }

    /// The flow of a packet.
    pub fn of_packet(&self, from: HostId, offer: &Offer, of_driver: bool) -> Option<u32> {
        let known = &self.by_target[offer.dst.index()];
        let key = key(from, offer.sl, of_driver);
        let place = known.binary_search_by_key(&key, |entry| entry.0);
        Some(known[place.ok()?].1)
    }

    /// Counts a packet that has arrived or was lost, with all before it if it completes a message.
    pub fn delivered(
        &mut self,
        from: HostId,
        offer: &Offer,
        of_driver: bool,
        completes: bool,
    ) -> Option<u32> {
        let number = self.of_packet(from, offer, of_driver)?;
        let flow = &mut self.flows[number as usize];
        flow.delivered = match flow.whole.front() {
            Some(sent) if completes => sent.packets,
            _ => flow.delivered + 1,
        };
        Some(number)
    }

    /// Counts a packet of the message with this number. Returns the message if all its packets have arrived.
    pub fn delivered_of(&mut self, flow: u32, number: u16) -> Option<u32> {
        let flow = &mut self.flows[flow as usize];
        if !flow.ended.is_empty() && flow.has_ended(number) {
            return None;
        }
        let arrived = flow.arrived.entry(number).or_insert_with(|| {
            // Numbers come again, and a message so long ago has lost packets.
            flow.whole.retain(|sent| sent.number != number ^ HALF);
            0
        });
        *arrived += 1;
        let sent = flow.whole.iter().position(|sent| sent.number == number)?;
        if *arrived < flow.whole[sent].own_packets {
            return None;
        }
        flow.arrived.remove(&number);
        flow.arrived.remove(&(number ^ HALF));
        flow.whole.remove(sent).map(|sent| sent.message)
    }

    /// The message with this number that was sent completely and has not arrived.
    pub fn sent_of(&self, flow: u32, number: u16) -> Option<u32> {
        let mut sent = self.flows[flow as usize].whole.iter();
        let found = sent.find(|sent| sent.number == number);
        found.map(|sent| sent.message)
    }

    /// Packets of a message that have arrived or are lost.
    pub fn arrived_of(&self, flow: u32, number: u16) -> u64 {
        let arrived = &self.flows[flow as usize].arrived;
        arrived.get(&number).copied().unwrap_or(0)
    }

    /// Ends a message that does not arrive, of which packets may be under way.
    pub fn end(&mut self, flow: u32, number: u16) {
        let flow = &mut self.flows[flow as usize];
        flow.whole.retain(|sent| sent.number != number);
        flow.arrived.remove(&number);
        flow.ended.push_back(number);
    }

    /// Takes the next message of a flow that has arrived completely.
    pub fn take_whole(&mut self, flow: u32) -> Option<u32> {
        let flow = &mut self.flows[flow as usize];
        let sent = flow.whole.front()?;
        if sent.packets > flow.delivered {
            return None;
        }
        flow.whole.pop_front().map(|sent| sent.message)
    }
}
