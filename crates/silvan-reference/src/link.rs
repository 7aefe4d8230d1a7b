use std::collections::BTreeMap;

use silvan_core::{Bytes, Credits, HostId, Rate, Sl, Span, Time, Vl, define_id};

use crate::crossbar::CrossbarId;

define_id! {
    /// Identifier of a packet; never reused.
    pub(crate) struct PacketId("packet");
}
define_id! {
    /// The sending end of a link: a host, a switch output, or a crossbar output before its buffer.
    pub(crate) struct TransmitterId("transmitter");
}
define_id! {
    pub(crate) struct ReceiverId("receiver");
}

#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) flow: usize,
    /// Position in the flow, from 0.
    pub(crate) sequence: u64,
    pub(crate) destination: HostId,
    pub(crate) sl: Sl,
    pub(crate) lanes: BTreeMap<TransmitterId, Vl>,
    pub(crate) payload: Bytes,
    pub(crate) wire: Bytes,
    pub(crate) injected: Time,
    pub(crate) passes: BTreeMap<TransmitterId, Time>,
}

impl Packet {
    pub(crate) fn lane(&self, on: TransmitterId) -> Vl {
        self.lanes[&on]
    }

    pub(crate) fn blocks(&self) -> Credits {
        self.wire.credits()
    }

    pub(crate) fn flits(&self) -> u32 {
        self.blocks().as_u32()
    }

    pub(crate) fn bytes_before(&self, boundary: u32) -> Bytes {
        Bytes::from_bytes(u64::from(boundary) * Credits::BLOCK_BYTES).min(self.wire)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Host(HostId),
    Crossbar(CrossbarId, usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub(crate) packet: PacketId,
    pub(crate) start: Time,
    pub(crate) from: Option<ReceiverId>,
    /// If flits pass as they arrive: the time at which the head could first pass, and the rate of arrival.
    pub(crate) arriving: Option<(Time, Rate)>,
}

impl Transmission {
    /// Returns the time at which a flit boundary of the packet passes the transmitter, which sends at `rate`.
    pub(crate) fn passes_at(&self, rate: Rate, packet: &Packet, boundary: u32) -> Time {
        let bytes = packet.bytes_before(boundary);
        // Counted from the start of the packet, so that roundings do not add up.
        let sent = self.start + rate.span_for(bytes);
        let Some((head, arrives_at)) = self.arriving else {
            return sent;
        };
        // Rounded up for the end of the packet only: a link behind must not run dry by a picosecond.
        let up = arrives_at.span_for(bytes);
        let arrived = if boundary == packet.flits() {
            up
        } else {
            let bits = u128::from(bytes.as_u64()) * 8 * 1_000_000_000_000;
            let down = bits / u128::from(arrives_at.bits_per_sec());
            Span::from_ps(u64::try_from(down).expect("less than up"))
        };
        sent.max(head + arrived)
    }
}

#[derive(Debug)]
pub(crate) struct Transmitter {
    pub(crate) location: Location,
    pub(crate) rate: Rate,
    pub(crate) propagation: Span,
    pub(crate) peer: ReceiverId,
    pub(crate) current: Option<Transmission>,
    pub(crate) idle_since: Option<Time>,
    pub(crate) credits: Vec<Credits>,
    /// Under PFC, since when virtual lanes are paused.
    pub(crate) paused: Option<Vec<Option<Time>>>,
    pub(crate) pause_frames: u64,
    pub(crate) pause_time: Span,
    /// Blocks of packets started whose head has not arrived at the peer, per virtual lane.
    pub(crate) ahead: Vec<Credits>,
    /// Blocks that the peer has freed and that are on their way back, per virtual lane.
    pub(crate) returning: Vec<Credits>,
    pub(crate) xmit_bytes: Bytes,
    pub(crate) xmit_packets: u64,
    pub(crate) waited: Span,
    pub(crate) waiting_since: Option<Time>,
}

impl Transmitter {
    pub(crate) fn new(
        location: Location,
        rate: Rate,
        propagation: Span,
        peer: ReceiverId,
        credits: Vec<Credits>,
    ) -> Self {
        let lanes = credits.len();
        Self {
            location,
            rate,
            propagation,
            peer,
            current: None,
            idle_since: None,
            credits,
            paused: None,
            pause_frames: 0,
            pause_time: Span::ZERO,
            ahead: vec![Credits::ZERO; lanes],
            returning: vec![Credits::ZERO; lanes],
            xmit_bytes: Bytes::ZERO,
            xmit_packets: 0,
            waited: Span::ZERO,
            waiting_since: None,
        }
    }

    pub(crate) fn was_idle_before(&self, now: Time) -> bool {
        self.current.is_none() && self.idle_since.is_none_or(|since| since < now)
    }

    pub(crate) fn has_credits_for(&self, packet: &Packet, lane: Vl) -> bool {
        match &self.paused {
            Some(paused) => paused[lane.index()].is_none(),
            None => self.credits[lane.index()] >= packet.blocks(),
        }
    }

    pub(crate) fn note_wait(&mut self, now: Time, waits: bool) {
        match self.waiting_since {
            None if waits => self.waiting_since = Some(now),
            Some(since) if !waits => {
                self.waited += now.since(since);
                self.waiting_since = None;
            }
            _ => {}
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Resident {
    arrived: u32,
    left: u32,
    eligible: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Thresholds {
    pub(crate) xoff: Bytes,
    pub(crate) xon: Bytes,
    pub(crate) buffer: Bytes,
    pub(crate) delay: Span,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Pause(Vl),
    Resume(Vl),
    Overflow(Vl, Bytes),
}

#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) location: Location,
    pub(crate) upstream: TransmitterId,
    /// Time from the freeing of space to the credits being usable at the transmitter.
    pub(crate) credit_delay: Span,
    pub(crate) capacity: Credits,
    pub(crate) thresholds: Option<Thresholds>,
    pub(crate) reads: usize,
    lanes: Vec<Lane>,
    residents: BTreeMap<PacketId, Resident>,
    expected: BTreeMap<usize, u64>,
}

#[derive(Clone, Debug, Default)]
struct Lane {
    /// Blocks of the packets whose head has arrived and whose tail has not left.
    reserved: Credits,
    present: Credits,
    largest: Credits,
    /// Bytes of the packets whose head has arrived and whose tail has not left.
    bytes: Bytes,
    pauses: bool,
}

impl Receiver {
    pub(crate) fn new(
        location: Location,
        upstream: TransmitterId,
        credit_delay: Span,
        capacity: Credits,
        data_vls: u8,
    ) -> Self {
        Self {
            location,
            upstream,
            credit_delay,
            capacity,
            thresholds: None,
            reads: 0,
            lanes: vec![Lane::default(); usize::from(data_vls)],
            residents: BTreeMap::new(),
            expected: BTreeMap::new(),
        }
    }

    pub(crate) fn reserved(&self, vl: Vl) -> Credits {
        self.lanes[vl.index()].reserved
    }

    pub(crate) fn largest(&self, vl: Vl) -> Credits {
        self.lanes[vl.index()].largest
    }

    pub(crate) fn packets(&self) -> impl Iterator<Item = PacketId> {
        self.residents.keys().copied()
    }

    pub(crate) fn reserve(&mut self, id: PacketId, packet: &Packet) {
        let expected = self.expected.entry(packet.flow).or_insert(0);
        assert_eq!(
            packet.sequence, *expected,
            "flow {}: packet lost, doubled or out of order",
            packet.flow
        );
        *expected += 1;

        let lane = &mut self.lanes[packet.lane(self.upstream).index()];
        lane.reserved += packet.blocks();
        lane.largest = lane.largest.max(lane.reserved);
        lane.bytes += packet.wire;
        let is_counted = self.thresholds.is_none();
        assert!(
            !is_counted || lane.reserved <= self.capacity,
            "buffer overflow"
        );
        self.residents.insert(id, Resident::default());
    }

    pub(crate) fn make_eligible(&mut self, id: PacketId) {
        self.resident(id).eligible = true;
    }

    pub(crate) fn eligible_packets(&self) -> impl Iterator<Item = PacketId> {
        let residents = self.residents.iter();
        residents.filter_map(|(&id, resident)| resident.eligible.then_some(id))
    }

    /// `boundary` is behind the flit.
    pub(crate) fn flit_arrives(&mut self, id: PacketId, packet: &Packet, boundary: u32) {
        let resident = self.resident(id);
        assert_eq!(boundary, resident.arrived + 1, "flits arrive in order");
        resident.arrived = boundary;
        let lane = &mut self.lanes[packet.lane(self.upstream).index()];
        lane.present += Credits::new(1);
        assert!(
            lane.present <= lane.reserved,
            "more flits than blocks reserved"
        );
    }

    /// All flits before `boundary` must be here.
    pub(crate) fn boundary_leaves(&mut self, id: PacketId, packet: &Packet, boundary: u32) {
        let resident = self.resident(id);
        assert!(
            resident.arrived >= boundary,
            "underrun: {id} has sent {boundary} flits of {} arrived",
            resident.arrived
        );
        if boundary > 0 {
            resident.left = boundary;
            self.lanes[packet.lane(self.upstream).index()].present -= Credits::new(1);
        }
    }

    pub(crate) fn receive(&mut self, id: PacketId, packet: &Packet) {
        let resident = self.resident(id);
        assert_eq!(
            resident.arrived,
            packet.flits(),
            "taken in before it is complete"
        );
        resident.left = packet.flits();
        self.lanes[packet.lane(self.upstream).index()].present -= packet.blocks();
    }

    pub(crate) fn release(&mut self, id: PacketId, packet: &Packet) {
        let resident = self.residents.remove(&id).expect("the packet is here");
        assert_eq!(resident.left, packet.flits(), "freed before it has left");
        let lane = &mut self.lanes[packet.lane(self.upstream).index()];
        lane.reserved -= packet.blocks();
        lane.bytes = lane.bytes.saturating_sub(packet.wire);
    }

    pub(crate) fn compare(&mut self) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        let Some(thresholds) = self.thresholds else {
            return outcomes;
        };
        for (vl, lane) in Vl::all().zip(&mut self.lanes) {
            let over = lane.bytes.saturating_sub(thresholds.buffer);
            if !over.is_zero() {
                outcomes.push(Outcome::Overflow(vl, over));
            }
            if !lane.pauses && lane.bytes > thresholds.xoff {
                lane.pauses = true;
                outcomes.push(Outcome::Pause(vl));
            } else if lane.pauses && lane.bytes <= thresholds.xon {
                lane.pauses = false;
                outcomes.push(Outcome::Resume(vl));
            }
        }
        outcomes
    }

    fn resident(&mut self, id: PacketId) -> &mut Resident {
        self.residents.get_mut(&id).expect("the packet is here")
    }
}

#[cfg(test)]
mod tests;
