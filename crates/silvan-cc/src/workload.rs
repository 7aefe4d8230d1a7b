//! The interface between the data plane and the traffic.
//!
//! The engine owns links, credits and flow-control state; a [`Workload`] owns the messages. If a host could start a
//! packet, the engine calls [`Workload::poll`], which answers with a packet, an instant for the next poll, or idle. It
//! may query [`Gate`] for flows, so that a throttled queue pair never blocks others.
//!
//! A workload sees no packets in flight, no ports and no random stream but its own, so a run is a function of its seed.

use silvan_core::{HostId, Sl, Time, Vl};

/// The next packet of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The receiving host. Packets of a host to itself do not enter the fabric.
    pub dst: HostId,
    /// Payload of this packet in bytes, from 1 to the MTU; the wire header comes on top.
    pub bytes: u32,
    /// Service level of the packet; with `dst` it names the flow (the queue pair).
    pub sl: Sl,
    /// Traffic class of the packet in the statistics.
    pub class: u16,
    /// True for the last packet of its message.
    pub last: bool,
    /// Payload of the flow that waits behind this packet at its start, in bytes, cut off at the type's maximum.
    ///
    /// It is the rest of the message, and further messages if they are known.
    pub behind: u32,
}

impl Offer {
    /// Cuts off a number of bytes to fit into [`behind`](Self::behind).
    #[inline]
    pub fn cut_off(bytes: u64) -> u32 {
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

/// Effects of a packet's way through the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transit {
    /// Links crossed, 255 for more; 0 for what a host sent to itself.
    pub hops: u8,
    /// True if a switch has set FECN.
    pub marked: bool,
    /// True if the packets of the message before have all been delivered, without notification.
    pub completes: bool,
}

/// Next action of a host, the answer to [`Workload::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// Start this packet now. The answer commits the packet: the workload counts it as sent.
    Send(Offer),
    /// Nothing may start now; poll again at this instant (later than `now`), or earlier if
    /// something happens to the host before.
    WaitUntil(Time),
    /// Nothing to send until [`Workload::apply_change`] or [`Workload::on_delivered`] wakes the
    /// host, or a credit or a congestion notification arrives for it.
    Idle,
}

/// Answers of the source side of the data plane and of congestion control about the polled host.
///
/// There are two questions because they have different effects. A flow that must wait gives way to other flows of the
/// host; a virtual lane without credits stops all its flows.
pub trait Gate {
    /// Returns the earliest start of a packet from the polled host to `dst` on `sl`, by congestion control, not by
    /// credits.
    ///
    /// An instant up to now means at once, [`Time::MAX`] not before some feedback. A later instant stays valid until
    /// the flow sends or [`Workload::on_release_moved`] is called.
    fn release(&mut self, dst: HostId, sl: Sl) -> Time;

    /// Returns true if the last answer of [`release`](Self::release) lacks credits on the flow's lane, until
    /// [`Workload::on_lanes_opened`].
    fn lacks_credits(&self) -> bool {
        false
    }

    /// Returns the lane without credits, if the flow can take no other lane and waits for no other reason until its
    /// release moves.
    fn awaited_lane(&self) -> Option<Vl> {
        None
    }

    /// Returns true if a lane lacks credits now, for a flow that can take no other lane; see
    /// [`release`](Self::release).
    fn awaits(&mut self, lane: Vl) -> bool {
        let _ = lane;
        false
    }

    /// Tells congestion control that a new flow from the polled host to `dst` on `sl` starts now.
    /// Flows that last as long as the run need not say so.
    fn begin(&mut self, dst: HostId, sl: Sl) {
        let _ = (dst, sl);
    }

    /// Returns true if the virtual lane of `sl` has credits for a packet of `bytes` payload bytes now. After `false`,
    /// the engine polls the host again when credits of the lane arrive.
    fn lane_open(&mut self, sl: Sl, bytes: u32) -> bool;

    /// Virtual lanes, one bit each, on which a packet of this poll waits for credits and holds back all others.
    /// 0 if hosts pass over such packets.
    fn held_lanes(&self) -> u16 {
        0
    }
}

/// Flows of a host whose chosen packets wait for credits, at most one for each virtual lane.
///
/// A workload with several flows asks these first in each poll. So no other flow takes the credits that a large packet needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chosen<T> {
    lanes: u16,
    by_lane: [T; 16],
}

impl<T: Copy + PartialEq> Chosen<T> {
    /// Notes who waits on lanes that are held since `before`, what [`Gate::held_lanes`] said then.
    #[inline]
    pub fn note(&mut self, before: u16, now: u16, who: T) {
        let mut new = now & !before;
        self.lanes |= new;
        while new != 0 {
            self.by_lane[new.trailing_zeros() as usize] = who;
            new &= new - 1;
        }
    }

    /// Forgets who waits.
    #[inline]
    pub fn clear(&mut self) {
        self.lanes = 0;
    }

    /// Forgets who waits on a lane.
    pub fn remove(&mut self, lane: usize) {
        self.lanes &= !(1 << lane);
    }

    /// Returns true if no flow waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.lanes == 0
    }

    /// Returns true if `who` waits on some lane.
    pub fn contains(&self, who: T) -> bool {
        self.iter().any(|(_, waits)| waits == who)
    }

    /// Returns the waiting items with their lanes, in the order of lanes.
    pub fn iter(&self) -> impl Iterator<Item = (usize, T)> {
        let Self { lanes, by_lane } = *self;
        (0..by_lane.len())
            .filter(move |lane| lanes >> lane & 1 == 1)
            .map(move |lane| (lane, by_lane[lane]))
    }
}

/// Progress of the messages under way, or its growth in a period.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Whose turn it is everywhere.
    pub turns: Vec<u64>,
    /// Host, lane and owner of each chosen packet that waits for credits.
    pub waiting: Vec<u64>,
    /// Payload of each message that is being sent: bytes that no packet carries yet, or that are sent in a period.
    pub payload: Vec<u64>,
}

impl Progress {
    /// Payload sent since `earlier`, if the turns are equal. No message may have started or been sent completely in between.
    pub fn since(mut self, earlier: &Self) -> Option<Self> {
        let same = self.turns == earlier.turns && self.waiting == earlier.waiting;
        if !same || self.payload.len() != earlier.payload.len() {
            return None;
        }
        for (payload, before) in self.payload.iter_mut().zip(&earlier.payload) {
            *payload = before.checked_sub(*payload)?;
        }
        Some(self)
    }
}

/// The traffic of all hosts, as the engine asks for it.
pub trait Workload {
    /// True if a delivery to one host or a [timer](Self::next_timer) may give other hosts packets at the same instant.
    ///
    /// With lookahead windows, only such a workload may need [`on_delivered`](Self::on_delivered), and not for packets
    /// that a host sends to itself. Deliveries and timers of a window come before its polls: [`poll`](Self::poll) must
    /// not see their new packets before [`on_woken`](Self::on_woken), and they must not depend on polls of their
    /// window. Deliveries that [only their sender](Self::tells_only_sender_of) needs come in the order of its polls.
    const LINKS_HOSTS: bool = false;

    /// Returns true if the engine has code for leaps with this workload; [`can_recur`](Self::can_recur) decides for a run.
    const RECURS: bool = false;

    /// Returns true if [`poll`](Self::poll) depends on the messages under way alone: their order, the rest of each, and whose turn
    /// it is. Always the same answer.
    fn can_recur(&self) -> bool {
        false
    }

    /// Number of messages that have started, plus those sent completely.
    fn message_changes(&self) -> u64 {
        0
    }

    /// The host with the most payload to send of a message under way.
    fn busiest_host(&self) -> Option<HostId> {
        None
    }

    /// Progress of the messages under way.
    fn progress(&self) -> Progress {
        Progress::default()
    }

    /// Most repetitions of a period before some message is about to send its last packet.
    fn most_periods(&self, period: &Progress) -> u64 {
        let _ = period;
        0
    }

    /// Counts what is sent in so many periods.
    fn skip_periods(&mut self, period: &Progress, periods: u64) {
        let _ = (period, periods);
    }

    /// Returns true if the workload needs [`on_delivered`](Self::on_delivered); the answer is constant. A `false` that
    /// the compiler knows drops the call.
    #[inline]
    fn needs_delivery(&self) -> bool {
        false
    }

    /// Returns true if the workload needs the delivery of each packet; the answer is constant. Otherwise it is notified
    /// of the last packet of each message only, if packets keep their order.
    #[inline]
    fn needs_packets(&self) -> bool {
        true
    }

    /// Returns true if the workload needs the deliveries of packets of this class; the answer is constant.
    #[inline]
    fn needs_delivery_of(&self, class: u16) -> bool {
        let _ = class;
        self.needs_delivery()
    }

    /// Returns true if a delivery of this class affects only its sending host; the answer is constant. The order of
    /// deliveries to different hosts at one instant must not matter.
    #[inline]
    fn tells_only_sender_of(&self, class: u16) -> bool {
        let _ = class;
        false
    }

    /// Prefetches the memory that [`prefetch_poll_data`](Self::prefetch_poll_data) reads, some events before its call.
    /// Changes no state.
    #[inline]
    fn prefetch_poll(&self, host: HostId) {
        let _ = host;
    }

    /// Prefetches the memory that [`poll`](Self::poll) of `host` needs, some events before its call. Changes no state.
    #[inline]
    fn prefetch_poll_data(&self, host: HostId) {
        let _ = host;
    }

    /// Decides what `host` does at `now`.
    ///
    /// Called when the host's link is free and the injection pace allows a packet, with non-decreasing `now` per host.
    /// [`Poll::Send`] commits the packet, which starts at `now`. After [`Poll::WaitUntil`] the host is polled at that
    /// instant or earlier; after [`Poll::Idle`] when it is woken, or gets a missing credit or a congestion
    /// notification.
    fn poll<G: Gate>(&mut self, host: HostId, now: Time, gate: &mut G) -> Poll;

    /// Returns the next instant after `now` at which the traffic changes by itself; `None` if there is none.
    ///
    /// Such changes are a flow that starts, or hotspots that move; idle hosts must then be polled again. The engine
    /// calls it at the start, after each change and after each notified delivery.
    fn next_change(&self, now: Time) -> Option<Time>;

    /// Lets the workload take the change at `now` and add the hosts to be polled because of it to `wake`.
    ///
    /// Called at each instant that [`next_change`](Self::next_change) named, before any host is polled at that instant.
    fn apply_change(&mut self, now: Time, wake: &mut Vec<HostId>);

    /// The instant of the next timer of a workload that [links hosts](Self::LINKS_HOSTS); `None` when none is set. Asked as
    /// [`next_change`](Self::next_change) is.
    #[inline]
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Lets the timers up to `now` go off, and adds the hosts to be polled because of it to `wake`. Called at each
    /// instant that [`next_timer`](Self::next_timer) named, after a change of the same instant.
    #[inline]
    fn on_timer(&mut self, now: Time, wake: &mut Vec<HostId>) {
        let _ = (now, wake);
    }

    /// Tells that a host is woken at `now` because a delivery or a timer has added it to `wake` then. Also called for each host at
    /// the start.
    #[inline]
    fn on_woken(&mut self, host: HostId, now: Time) {
        let _ = (host, now);
    }

    /// Returns true if the run pauses at this instant, for a workload that is driven from outside. The engine calls it
    /// after each change and each notified delivery.
    #[inline]
    fn pauses(&self) -> bool {
        false
    }

    /// Tells that congestion control may let some flow of `host` send earlier than
    /// [`Gate::release`] last said; the engine polls the host afterwards.
    fn on_release_moved(&mut self, host: HostId) {
        let _ = host;
    }

    /// Notifies the workload that releases of flows to `dst` alone have moved.
    #[inline]
    fn on_flow_release_moved(&mut self, host: HostId, dst: HostId) {
        let _ = dst;
        self.on_release_moved(host);
    }

    /// Tells that lanes of `host` may have got credits for flows that waited for them ([`Gate::lacks_credits`]).
    #[inline]
    fn on_lanes_opened(&mut self, host: HostId) {
        self.on_release_moved(host);
    }

    /// Tells that the packet `offer` of host `src` was delivered completely at `now`, and lets the
    /// workload add hosts to be polled because of it to `wake`.
    ///
    /// Called only if [`needs_delivery`](Self::needs_delivery) says so.
    fn on_delivered(
        &mut self,
        src: HostId,
        offer: &Offer,
        transit: Transit,
        now: Time,
        wake: &mut Vec<HostId>,
    ) {
        let _ = (src, offer, transit, now, wake);
    }

    /// Tells that the packet `offer` of host `src` was discarded by `now`; only a live fabric tells. Its payload is
    /// unknown. `in_order` says that only the last packets of messages are told to be delivered.
    fn on_lost(
        &mut self,
        src: HostId,
        offer: &Offer,
        in_order: bool,
        now: Time,
        wake: &mut Vec<HostId>,
    ) {
        let _ = (src, offer, in_order, now, wake);
    }
}
