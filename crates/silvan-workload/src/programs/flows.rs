use std::collections::VecDeque;

use silvan_cc::workload::Offer;
use silvan_core::{HostId, Sl};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub flow: u32,
    pub packets: u64,
    pub message: u32,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    delivered: u64,
    /// Sent messages that have not arrived.
    whole: VecDeque<Sent>,
}

#[derive(Clone, Debug)]
pub(crate) struct Flows {
    flows: Vec<Flow>,
    /// By destination: sending host and service level, in order.
    by_target: Vec<Vec<(u64, u32)>>,
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
