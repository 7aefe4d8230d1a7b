//! Reliable connections (RC, IBA 9.7): acknowledgements, timeouts and go-back-N, for hosts with `retry`.
//!
//! A connection carries the packets from one host to another on one service level. Packets have a sequence number
//! (PSN), in place of a waypoint. The receiver takes packets in order alone, and acknowledges each. It answers the first
//! packet out of order with a NAK (PSN sequence error, IBA 9.7.5.2.8), and the sender goes back to the packet that is
//! missing. Acknowledgements take the path of congestion notifications.
//!
//! Only the engine that processes events one by one has connections.

use std::collections::{BTreeMap, VecDeque};

use silvan_cc::hooks::{Flow, SourceControl, SwitchControl};
use silvan_core::HostId;
use silvan_model::RetryParams;

use crate::engine::Engine;
use crate::events::{Event, phase};
use crate::packet::{ACK, CONTROL, Packet, RESPONSE, service_level};
use crate::plane::time;
use crate::stats::Delivery;
use crate::variant::EngineVariant;
use crate::workload::{Offer, Workload};

/// Bit of a response above the PSN: a NAK.
const NAK: u64 = 1 << 16;

#[derive(Clone, Debug)]
pub(crate) struct Transport {
    params: RetryParams,
    connections: Vec<Connection>,
    /// By sender: the connection to a host on a service level.
    by_sender: Vec<BTreeMap<(u32, u8), u32>>,
    /// By sender: connections with packets to send again, in turn.
    going_back: Vec<VecDeque<u32>>,
    hosts: Vec<Retries>,
    classes: BTreeMap<(u16, u32), Retries>,
    /// The connection whose packet starts next, if it is sent again.
    again: Option<u32>,
}

/// Counts of a sender, or of its packets of a class.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Retries {
    /// Times that connections went back.
    pub retries: u64,
    pub resent_bytes: u64,
    pub failed: u64,
}

#[derive(Clone, Debug)]
struct Connection {
    source: u32,
    destination: u32,
    /// Service level of the packets' headers.
    sl: u8,
    /// Packets without acknowledgement, in order.
    unacknowledged: VecDeque<Offer>,
    /// PSN of the first of them.
    first: u64,
    /// Place among them of the next packet to send again.
    next: usize,
    /// Instant of the timeout; `u64::MAX` for none.
    deadline: u64,
    /// Instant of the scheduled event, which may be earlier; `u64::MAX` for none.
    timer_at: u64,
    retries_left: u8,
    has_failed: bool,
    /// PSN that the receiver expects.
    expected: u64,
    /// True if the receiver has sent a NAK for the expected PSN.
    has_nacked: bool,
}

/// Effect of a response or a timeout on the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    None,
    Progress,
    GoesBack,
    Fails,
}

/// Distance of a PSN from another one, both modulo 2^16.
fn distance(psn: u16, from: u64) -> i16 {
    psn.wrapping_sub(from as u16) as i16
}

impl Connection {
    fn goes_back(&self) -> bool {
        self.next < self.unacknowledged.len()
    }

    fn go_back(&mut self, now: u64, wait: Option<u64>) -> Effect {
        if self.retries_left == 0 {
            return Effect::Fails;
        }
        self.retries_left -= 1;
        self.next = 0;
        self.restart_timer(now, wait);
        Effect::GoesBack
    }

    fn restart_timer(&mut self, now: u64, wait: Option<u64>) {
        let runs = !self.unacknowledged.is_empty();
        self.deadline = match wait {
            Some(wait) if runs => now + wait,
            _ => u64::MAX,
        };
    }

    /// The receiver has all packets before `psn`.
    fn answered(&mut self, now: u64, bits: u64, params: RetryParams) -> Effect {
        let wait = wait_of(params);
        let known = distance(bits as u16, self.first);
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        if known > self.unacknowledged.len() {
            // Of packets that have been acknowledged.
            return Effect::None;
        }
        if known > 0 {
            self.unacknowledged.drain(..known);
            self.first += known as u64;
            self.next = self.next.saturating_sub(known);
            self.retries_left = params.retry_count;
            self.restart_timer(now, wait);
        }
        if bits & NAK != 0 && !self.unacknowledged.is_empty() {
            return self.go_back(now, wait);
        }
        match known {
            0 => Effect::None,
            _ => Effect::Progress,
        }
    }
}

fn wait_of(params: RetryParams) -> Option<u64> {
    params.wait().map(|wait| wait.as_ps())
}

impl Transport {
    pub fn new(params: RetryParams, hosts: usize) -> Self {
        Self {
            params,
            connections: Vec::new(),
            by_sender: vec![BTreeMap::new(); hosts],
            going_back: vec![VecDeque::new(); hosts],
            hosts: vec![Retries::default(); hosts],
            classes: BTreeMap::new(),
            again: None,
        }
    }

    /// Returns true if a flow may send no new packet before an acknowledgement.
    pub fn holds(&self, source: u32, destination: u32, sl: u8) -> bool {
        let known = self.by_sender[source as usize].get(&(destination, sl));
        known.is_some_and(|&number| {
            let connection = &self.connections[number as usize];
            connection.has_failed
                || connection.goes_back()
                || connection.unacknowledged.len() >= usize::from(self.params.window)
        })
    }

    fn connection(&mut self, source: u32, destination: u32, sl: u8) -> u32 {
        let retries_left = self.params.retry_count;
        let connections = &mut self.connections;
        let known = &mut self.by_sender[source as usize];
        *known.entry((destination, sl)).or_insert_with(|| {
            connections.push(Connection {
                source,
                destination,
                sl,
                unacknowledged: VecDeque::new(),
                first: 0,
                next: 0,
                deadline: u64::MAX,
                timer_at: u64::MAX,
                retries_left,
                has_failed: false,
                expected: 0,
                has_nacked: false,
            });
            connections.len() as u32 - 1
        })
    }

    /// Numbers a packet that starts. Returns its connection.
    fn number(&mut self, now: u64, offer: &Offer, packet: &mut Packet) -> u32 {
        let source = packet.source();
        let again = self.again.take();
        let number = again
            .unwrap_or_else(|| self.connection(source, packet.destination(), packet.sl_bits()));
        let connection = &mut self.connections[number as usize];
        let place = match again {
            Some(_) => connection.next,
            None => connection.unacknowledged.len(),
        };
        if again.is_some() {
            let bytes = u64::from(offer.bytes);
            self.hosts[source as usize].resent_bytes += bytes;
        } else {
            connection.unacknowledged.push_back(*offer);
        }
        connection.next += usize::from(connection.next == place);
        packet.set_waypoint((connection.first + place as u64) as u16);
        if connection.deadline == u64::MAX {
            connection.restart_timer(now, wait_of(self.params));
        }
        number
    }

    /// Returns true if the receiver takes the packet, and the response.
    fn receive(&mut self, packet: &Packet) -> (bool, Option<u64>) {
        let known =
            self.by_sender[packet.source() as usize].get(&(packet.destination(), packet.sl_bits()));
        let Some(&number) = known else {
            return (false, None);
        };
        let connection = &mut self.connections[number as usize];
        if connection.has_failed {
            return (false, None);
        }
        let ahead = distance(packet.waypoint(), connection.expected);
        if ahead == 0 {
            connection.expected += 1;
            connection.has_nacked = false;
        }
        let expected = connection.expected & (NAK - 1);
        if ahead > 0 {
            let is_first = !std::mem::replace(&mut connection.has_nacked, true);
            return (false, is_first.then_some(expected | NAK));
        }
        (ahead == 0, Some(expected))
    }

    /// Counts the effect, and notes what is to be sent again.
    fn note(&mut self, number: u32, effect: Effect) {
        let connection = &mut self.connections[number as usize];
        let source = connection.source;
        match effect {
            Effect::None | Effect::Progress => {}
            Effect::GoesBack => {
                self.hosts[source as usize].retries += 1;
                if let Some(offer) = connection.unacknowledged.front() {
                    let counts = self.classes.entry((offer.class, source)).or_default();
                    counts.retries += 1;
                }
                let going_back = &mut self.going_back[source as usize];
                if !going_back.contains(&number) {
                    going_back.push_back(number);
                }
            }
            Effect::Fails => {
                connection.has_failed = true;
                connection.deadline = u64::MAX;
                self.hosts[source as usize].failed += 1;
                let mut classes: Vec<u16> = connection
                    .unacknowledged
                    .iter()
                    .map(|offer| offer.class)
                    .collect();
                classes.sort_unstable();
                classes.dedup();
                for class in classes {
                    self.classes.entry((class, source)).or_default().failed += 1;
                }
            }
        }
    }

    pub fn of_host(&self, host: usize) -> Retries {
        self.hosts[host]
    }

    pub fn of_class(&self, class: u16, source: u32) -> Retries {
        let counts = self.classes.get(&(class, source));
        counts.copied().unwrap_or_default()
    }

    pub fn bytes(&self) -> usize {
        let packets = self.connections.iter();
        let packets = packets.map(|connection| connection.unacknowledged.capacity());
        self.connections.capacity() * size_of::<Connection>()
            + packets.sum::<usize>() * size_of::<Offer>()
            + self.hosts.capacity() * (size_of::<Retries>() + 2 * size_of::<BTreeMap<(), ()>>())
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Numbers a packet that starts, and starts the timer of its connection.
    #[inline(never)]
    pub(crate) fn connect(&mut self, now: u64, offer: &Offer, packet: &mut Packet) {
        if let Some(transport) = &mut self.plane.transport {
            let number = transport.number(now, offer, packet);
            self.schedule_timeout(number);
        }
    }

    /// At most one event per connection waits: deadlines move away only.
    fn schedule_timeout(&mut self, number: u32) {
        let Some(transport) = &mut self.plane.transport else {
            return;
        };
        let connection = &mut transport.connections[number as usize];
        if connection.timer_at == u64::MAX && connection.deadline != u64::MAX {
            connection.timer_at = connection.deadline;
            let (at, host) = (connection.deadline, connection.source);
            self.plane
                .events
                .push(Event::new(at, phase::RETRY, host, number));
        }
    }

    /// Starts a packet that is to be sent again. Returns true if the host sends nothing else now.
    #[inline(never)]
    pub(crate) fn send_again(&mut self, now: u64, host: u32, port: u32, first: usize) -> bool {
        let Some(transport) = &self.plane.transport else {
            return false;
        };
        for _ in 0..transport.going_back[host as usize].len() {
            let Some((number, offer, sl)) = self.next_again(host) else {
                return false;
            };
            if C::ACTIVE {
                let flow = Flow {
                    source: HostId::new(host as usize),
                    destination: offer.dst,
                    sl: service_level(sl),
                    queue: 0,
                };
                let release = self.source.release(time(now), flow);
                if release > time(now) {
                    self.stats.control_acted = true;
                    self.wake_host(host, release.as_ps());
                    continue;
                }
            }
            let vl = usize::from(self.plane.host_lanes(host)[offer.sl.index()]);
            let blocks = (offer.bytes + self.plane.header).div_ceil(64) as i32;
            if vl >= self.plane.vls_in::<F>() {
                continue;
            }
            if !self.plane.may_send::<F>(now, first + vl, blocks) {
                let out = &mut self.plane.outs[port as usize];
                out.wait_since = out.wait_since.min(now);
                self.await_host_credits(now, host, 1 << vl, blocks);
                self.fill_gap(now, host);
                return true;
            }
            if let Some(transport) = &mut self.plane.transport {
                transport.again = Some(number);
            }
            self.start(now, host, port, first, &offer);
            return true;
        }
        false
    }

    /// The next packet to send again, of the connection that has the turn.
    fn next_again(&mut self, host: u32) -> Option<(u32, Offer, u8)> {
        let transport = self.plane.transport.as_mut()?;
        let turns = &mut transport.going_back[host as usize];
        while let Some(number) = turns.pop_front() {
            let connection = &transport.connections[number as usize];
            let offer = connection.unacknowledged.get(connection.next);
            if let Some(&offer) = offer.filter(|_| !connection.has_failed) {
                turns.push_back(number);
                return Some((number, offer, connection.sl));
            }
        }
        None
    }

    /// Delivers a packet in order, discards others, and responds.
    #[inline(never)]
    pub(crate) fn arrive_in_order(&mut self, delivery: Delivery, packet: Packet) {
        let Some(transport) = &mut self.plane.transport else {
            return;
        };
        let (is_taken, response) = transport.receive(&packet);
        let (done, host) = (delivery.done, delivery.host);
        if is_taken {
            self.hand_over(delivery, packet);
        } else {
            self.plane.reconfiguration.payload += u64::from(delivery.payload);
        }
        let about = (packet.source(), packet.sl_bits());
        let flags = CONTROL | ACK | RESPONSE;
        let response = response.and_then(|bits| self.notification(host, about, flags, bits));
        if let Some(response) = response {
            self.send_notification(done, done, host, response);
        }
    }

    /// A response has arrived at the sender of its connection.
    #[inline(never)]
    pub(crate) fn responded(&mut self, now: u64, host: u32, response: &Packet) {
        let Some(transport) = &mut self.plane.transport else {
            return;
        };
        let flow = (response.source(), response.class() as u8);
        let Some(&number) = transport.by_sender[host as usize].get(&flow) else {
            return;
        };
        let connection = &mut transport.connections[number as usize];
        if connection.has_failed {
            return;
        }
        let effect = connection.answered(now, response.born, transport.params);
        self.take_effect(now, number, effect);
    }

    /// The timer of a connection goes off, perhaps early.
    #[inline(never)]
    pub(crate) fn time_out(&mut self, now: u64, number: u32) {
        let Some(transport) = &mut self.plane.transport else {
            return;
        };
        let wait = wait_of(transport.params);
        let connection = &mut transport.connections[number as usize];
        connection.timer_at = u64::MAX;
        let effect = match connection.deadline <= now {
            true => connection.go_back(now, wait),
            false => Effect::None,
        };
        self.take_effect(now, number, effect);
    }

    fn take_effect(&mut self, now: u64, number: u32, effect: Effect) {
        self.schedule_timeout(number);
        let Some(transport) = &mut self.plane.transport else {
            return;
        };
        if effect == Effect::None {
            return;
        }
        transport.note(number, effect);
        let connection = &mut transport.connections[number as usize];
        let (source, destination) = (connection.source, connection.destination);
        let source_id = HostId::new(source as usize);
        if effect == Effect::Fails {
            let lost = std::mem::take(&mut connection.unacknowledged);
            if let Some(offer) = lost.front() {
                self.workload.on_failed(source_id, offer, time(now));
            }
        }
        self.release_moved(source_id, HostId::new(destination as usize));
        self.wake_host(source, now);
    }
}
