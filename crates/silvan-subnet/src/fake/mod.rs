//! A subnet in memory for tests, with its own clock and faults.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod nodes;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use silvan_core::{Guid, Lid, MonotonicTime, Span};
use silvan_mad::smp::DirectedRoute;
use silvan_mad::{Class, MAD_LEN, Mad, Method, Packet};

use crate::transport::{Incoming, Outgoing, Transport, TransportError};

pub use nodes::{CounterRates, FakeNode, FakePort};

/// Unix time in seconds at zero of the world's clock.
const UNIX_START: u64 = 1_700_000_000;
const LONGEST_POLL: Span = Span::from_ms(50);
const ROUND_TRIP: Span = Span::from_us(20);

/// Something that happens at an instant.
#[derive(Clone, Debug)]
pub enum Fault {
    /// A node is off for a while, and comes back with counters and settings as shipped.
    Reboot(&'static str, Span),
    /// The link of a port is down for a moment.
    Flap(&'static str, u8),
    /// The cable of a port is cut; it is remembered where it led to.
    Cut(&'static str, u8),
    /// All cables are mended.
    Mend,
    /// Another tool clears the counters of all ports.
    Clear,
    /// The subnet manager disappears.
    LoseSm,
    /// This host becomes the subnet manager.
    Sm(&'static str),
    /// Two nodes get each other's LIDs.
    Swap(&'static str, &'static str),
    /// Traffic from many to D, so that S2's port to D congests.
    Incast(bool),
    /// All answers are garbage from now on.
    Garbage,
    /// The journal cannot be written, or can again.
    FullDisk(bool),
    /// The manager's clock jumps by so many nanoseconds.
    Clock(i64),
    /// Request to the manager to stop.
    Stop,
}

/// The subnet.
pub struct World {
    /// The time.
    pub now: MonotonicTime,
    /// Offset of the manager's clock from `now`, in nanoseconds.
    pub clock_ns: i64,
    jumps: u64,
    /// Switches and hosts.
    pub nodes: Vec<FakeNode>,
    /// The node with the subnet manager.
    pub sm: Option<usize>,
    /// Many hosts send to D.
    pub incast: bool,
    /// Probability with which each datagram is lost, in 1/1000.
    pub loss: u64,
    /// True if the journal cannot be written.
    pub is_disk_full: bool,
    /// True if all answers are garbage of some kind.
    pub garbage: bool,
    /// Counters are cleared after so many more datagrams.
    pub clear_after: Option<u64>,
    /// Steps of transport and disk until the manager's process is killed.
    pub fuse: Option<u64>,
    /// Steps taken.
    pub steps: u64,
    /// Successful Sets: node, attribute, and the changed port or `None` for the whole.
    pub sets: Vec<(String, Option<u8>, u16)>,
    /// Rates set at S2's port to D, with their times in seconds.
    pub rates_set: Vec<(f64, u16)>,
    /// The request to the manager to stop.
    pub stop: Arc<std::sync::atomic::AtomicBool>,
    faults: VecDeque<(MonotonicTime, Fault)>,
    cut: Vec<((usize, u8), (usize, u8))>,
    back: BTreeMap<usize, MonotonicTime>,
    arrivals: BTreeMap<(MonotonicTime, u64), Incoming>,
    sequence: u64,
    rng: Xoshiro256PlusPlus,
}

/// The host that the manager runs on.
pub const LOCAL: usize = 2;

impl World {
    /// mizero2017's testbed: S1 and S2 joined by ports 15, D at port 23 of S2, four senders and a receiver more.
    pub fn testbed(seed: u64) -> Self {
        let mut nodes = vec![FakeNode::switch("S1", 1, 24), FakeNode::switch("S2", 2, 24)];
        let hosts = [
            ("M", 0, 1),
            ("A", 0, 2),
            ("X", 0, 3),
            ("B", 1, 1),
            ("C", 1, 2),
            ("Y", 1, 3),
            ("D", 1, 23),
        ];
        for (index, (name, _, _)) in hosts.iter().enumerate() {
            nodes.push(FakeNode::host(name, 3 + index as u16));
        }
        let mut world = Self {
            now: MonotonicTime::from_ns(1),
            clock_ns: 0,
            jumps: 0,
            nodes,
            sm: Some(3),
            incast: false,
            loss: 0,
            is_disk_full: false,
            garbage: false,
            clear_after: None,
            fuse: None,
            steps: 0,
            sets: Vec::new(),
            rates_set: Vec::new(),
            stop: Arc::default(),
            faults: VecDeque::new(),
            cut: Vec::new(),
            back: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            sequence: 0,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        };
        world.connect((0, 15), (1, 15));
        for (index, (_, switch, port)) in hosts.iter().enumerate() {
            world.connect((*switch, *port), (2 + index, 1));
        }
        world
    }

    fn connect(&mut self, a: (usize, u8), b: (usize, u8)) {
        self.nodes[a.0].ports[usize::from(a.1)].peer = Some(b);
        self.nodes[b.0].ports[usize::from(b.1)].peer = Some(a);
    }

    /// Lets something happen after a time from now.
    pub fn after(&mut self, span: Span, fault: Fault) {
        self.faults.push_back((self.now + span, fault));
        self.faults.make_contiguous().sort_by_key(|(at, _)| *at);
    }

    /// The place of a node. Panics if no node has this name.
    pub fn find(&self, name: &str) -> usize {
        let found = self.nodes.iter().position(|node| node.name == name);
        found.unwrap_or_else(|| panic!("no node {name}"))
    }

    /// The NodeGUID of a node.
    pub fn guid(&self, name: &str) -> Guid {
        self.nodes[self.find(name)].guid
    }

    /// The Marking_Rate in force at a port of a switch.
    pub fn rate(&self, name: &str, port: u8) -> u16 {
        self.nodes[self.find(name)].rate(port)
    }

    fn chance(&mut self, per_mille: u64) -> bool {
        self.rng.next_u64() % 1000 < per_mille
    }

    fn advance(&mut self, to: MonotonicTime) {
        while self.now < to {
            let next = self.faults.front().map_or(to, |(at, _)| (*at).min(to));
            let back = self.back.values().copied().min().unwrap_or(to);
            let next = next.min(back).max(self.now);
            let rates = self.rates();
            let seconds = next
                .checked_since(self.now)
                .unwrap_or(Span::ZERO)
                .as_secs_f64();
            for ((node, port), rate) in rates {
                self.nodes[node].ports[usize::from(port)].grow(rate, seconds);
            }
            self.now = next;
            let returned: Vec<usize> = self
                .back
                .iter()
                .filter(|(_, at)| **at <= next)
                .map(|(node, _)| *node)
                .collect();
            for node in returned {
                self.back.remove(&node);
                self.nodes[node].alive = true;
            }
            while self.faults.front().is_some_and(|(at, _)| *at <= next) {
                if let Some((_, fault)) = self.faults.pop_front() {
                    self.happen(fault);
                }
            }
            if next == to {
                return;
            }
        }
    }

    /// Returns the growth rates of counters: figure 5(b) of the paper.
    fn rates(&self) -> Vec<((usize, u8), CounterRates)> {
        let is_low = self.nodes[1].rate(23) == 0;
        let (root, upstream) = match (self.incast, is_low) {
            (false, _) => (CounterRates::data(270e6), CounterRates::data(270e6)),
            (true, false) => (
                CounterRates {
                    cong: 9e6,
                    ..CounterRates::data(270e6)
                },
                CounterRates {
                    wait: 30e6,
                    ..CounterRates::data(180e6)
                },
            ),
            (true, true) => (CounterRates::data(120e6), CounterRates::data(310e6)),
        };
        vec![((1, 23), root), ((0, 15), upstream)]
    }

    fn happen(&mut self, fault: Fault) {
        match fault {
            Fault::Reboot(name, off) => {
                let location = self.find(name);
                let back = self.now + off;
                self.nodes[location].reboot();
                self.nodes[location].alive = false;
                self.back.insert(location, back);
            }
            Fault::Flap(name, port) => {
                let location = self.find(name);
                let port = &mut self.nodes[location].ports[usize::from(port)];
                port.link_downed = port.link_downed.saturating_add(1);
            }
            Fault::Cut(name, port) => {
                let one = (self.find(name), port);
                let port = &mut self.nodes[one.0].ports[usize::from(one.1)];
                let Some(other) = port.peer.take() else {
                    return;
                };
                self.nodes[other.0].ports[usize::from(other.1)].peer = None;
                self.cut.push((one, other));
            }
            Fault::Mend => {
                for (one, other) in std::mem::take(&mut self.cut) {
                    self.connect(one, other);
                }
            }
            Fault::Clear => self.clear(),
            Fault::LoseSm => self.sm = None,
            Fault::Sm(name) => self.sm = Some(self.find(name)),
            Fault::Swap(one, other) => {
                let (one, other) = (self.find(one), self.find(other));
                let lid = self.nodes[one].lid;
                self.nodes[one].lid = std::mem::replace(&mut self.nodes[other].lid, lid);
            }
            Fault::Incast(on) => self.incast = on,
            Fault::Garbage => self.garbage = true,
            Fault::FullDisk(is_full) => self.is_disk_full = is_full,
            Fault::Clock(ns) => {
                // The clock never goes below zero.
                let now = i64::try_from(self.now.as_ns()).unwrap();
                self.clock_ns = (self.clock_ns + ns).max(-now);
                self.jumps += 1;
            }
            Fault::Stop => self.stop.store(true, std::sync::atomic::Ordering::Relaxed),
        }
    }

    fn clear(&mut self) {
        for node in &mut self.nodes {
            for port in &mut node.ports {
                port.clear();
            }
        }
    }

    /// Takes a step of the manager's process. Errors if the process was killed.
    pub fn step(&mut self) -> io::Result<()> {
        self.steps += 1;
        match &mut self.fuse {
            None => Ok(()),
            Some(0) => Err(io::Error::other("killed")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    fn reach(&self, destination: Lid, mad: &[u8; MAD_LEN]) -> Option<(usize, u8)> {
        if Packet::new(mad).class() != Class::SUBNET_DIRECTED {
            let node = self.nodes.iter().position(|node| node.lid == destination)?;
            return self.nodes[node].alive.then_some((node, 0));
        }
        let route = DirectedRoute::of(mad)?;
        let (mut node, mut port) = (LOCAL, 1);
        if !self.nodes[LOCAL].alive {
            return None;
        }
        for &out in route.ports() {
            (node, port) = self.nodes[node].ports.get(usize::from(out))?.peer?;
            if !self.nodes[node].alive {
                return None;
            }
        }
        Some((node, port))
    }

    fn exchange(&mut self, outgoing: Outgoing<'_>) {
        if let Some(left) = &mut self.clear_after {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.clear_after = None;
                self.clear();
            }
        }
        let lost_before = self.chance(self.loss);
        let lost_after = self.chance(self.loss);
        let answer = if lost_before {
            None
        } else {
            self.answer(outgoing)
        };
        self.sequence += 1;
        let (at, incoming) = match answer.filter(|_| !lost_after) {
            Some(mut mad) => {
                if self.garbage {
                    self.spoil(&mut mad);
                }
                let incoming = Incoming {
                    source: outgoing.destination,
                    unanswered: false,
                    mad,
                };
                (self.now + ROUND_TRIP, incoming)
            }
            None => {
                let incoming = Incoming {
                    source: outgoing.destination,
                    unanswered: true,
                    mad: *outgoing.mad,
                };
                (self.now + outgoing.timeout, incoming)
            }
        };
        self.arrivals.insert((at, self.sequence), incoming);
    }

    /// Changes some bytes of an answer; of most of them all after the header, so that they are taken.
    fn spoil(&mut self, mad: &mut [u8; MAD_LEN]) {
        let kind = self.rng.next_u64() % 4;
        let first = if kind == 0 { 0 } else { 64 };
        for byte in &mut mad[first..] {
            if kind != 1 || self.rng.next_u64() % 8 == 0 {
                *byte = self.rng.next_u64() as u8;
            }
        }
    }

    fn answer(&mut self, outgoing: Outgoing<'_>) -> Option<[u8; MAD_LEN]> {
        let (node, port) = self.reach(outgoing.destination, outgoing.mad)?;
        let mut mad = Mad::parse(&Packet::new(outgoing.mad)).ok()?;
        let sm_lid = self.sm.map_or(Lid::new(0), |sm| self.nodes[sm].lid);
        let is_sm = self.sm == Some(node);
        let is_set = mad.method == Method::SET;
        mad.status = self.nodes[node].answer(&mut mad, port, is_sm, sm_lid, &mut self.sets)?;
        debug_assert!(is_set || mad.method == Method::GET);
        let rate = (self.now.as_secs_f64(), self.rate("S2", 23));
        self.rates_set.resize(self.sets.len(), rate);
        // The kernel writes its own number into the high half.
        mad.transaction_id |= 0x1234 << 32;
        mad.method = Method::GET_RESPONSE;
        let mut bytes = mad.emit();
        if mad.class() == Class::SUBNET_DIRECTED {
            bytes[4] |= 0x80;
        }
        Some(bytes)
    }
}

/// The subnet, shared between the manager and the test.
#[derive(Clone)]
pub struct SharedWorld(Arc<Mutex<World>>);

impl SharedWorld {
    /// Shares a subnet.
    pub fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    /// Locks the subnet. Panics if a thread has panicked while it held the lock.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }
}

impl Transport for SharedWorld {
    fn now(&mut self) -> MonotonicTime {
        let world = self.world();
        MonotonicTime::from_ns(world.now.as_ns().saturating_add_signed(world.clock_ns))
    }

    fn unix_time(&mut self) -> u64 {
        UNIX_START + self.world().now.as_ns() / 1_000_000_000
    }

    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<(), TransportError> {
        let mut world = self.world();
        world.step().map_err(TransportError::Lost)?;
        let now = world.now;
        world.advance(now + Span::from_us(1));
        world.exchange(outgoing);
        Ok(())
    }

    fn receive(&mut self, limit: Span) -> Result<Option<Incoming>, TransportError> {
        let mut world = self.world();
        let until = world.now + limit;
        let jumps = world.jumps;
        world.step().map_err(TransportError::Lost)?;
        let first = world.arrivals.first_key_value().map(|(key, _)| *key);
        match first.filter(|(at, _)| *at <= until) {
            Some(key) => {
                let at = key.0.max(world.now);
                world.advance(at);
                Ok(world.arrivals.remove(&key))
            }
            None => {
                while world.now < until && world.jumps == jumps {
                    let next = (world.now + LONGEST_POLL).min(until);
                    world.advance(next);
                }
                Ok(None)
            }
        }
    }

    fn pause(&mut self, span: Span) {
        let mut world = self.world();
        let until = world.now + span;
        world.advance(until);
    }
}
