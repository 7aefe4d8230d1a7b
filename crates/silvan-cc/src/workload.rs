//! The interface between the data plane and the traffic.
//!
//! If a host could start a packet, the engine calls [`Workload::poll`], which answers with a packet, an instant or
//! idle, and may query [`Gate`] for flows. A workload sees no packets in flight, no ports and only its own random
//! stream.

use silvan_core::{HostId, Sl, Span, Time, Vl};

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
    /// Payload of the flow behind this packet at its start [bytes, saturating].
    pub behind: u32,
    /// Number of the message among those of its sender to `dst`, modulo 2^16; 0 if the workload has no use for it.
    pub number: u16,
    /// [`Flow::queue`](crate::hooks::Flow::queue) of the flow.
    pub queue: u16,
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
    /// Start of its injection.
    pub sent: Time,
    /// True if the packets of the message before have all been delivered, without notification.
    pub completes: bool,
    /// [`Offer::number`] of the packet, where packets may be lost.
    pub number: Option<u16>,
}

/// Next action of a host, the answer to [`Workload::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// Start this packet now. The answer commits the packet: the workload counts it as sent.
    Send(Offer),
    /// Nothing may start now; poll at this later instant, or earlier if something happens to the host.
    WaitUntil(Time),
    /// Nothing to send until a change, a delivery, a credit or a notification wakes the host.
    Idle,
}

/// Answers about the polled host: a waiting flow gives way to others, a lane without credits stops its flows.
pub trait Gate {
    /// The earliest start of a packet from the polled host to `dst` on `sl`, by congestion control alone.
    ///
    /// [`Time::MAX`] means not before some feedback. A later instant stays valid until the flow sends or
    /// [`Workload::on_release_moved`].
    fn release(&mut self, dst: HostId, sl: Sl) -> Time;

    /// [`release`](Self::release) of one of several queue pairs to `dst`: see [`Flow::queue`](crate::hooks::Flow::queue).
    fn release_queue(&mut self, dst: HostId, sl: Sl, queue: u16) -> Time {
        let _ = queue;
        self.release(dst, sl)
    }

    /// True if the last [`release`](Self::release) lacks credits on its lane, until [`Workload::on_lanes_opened`].
    fn lacks_credits(&self) -> bool {
        false
    }

    /// The lane without credits, if the flow has no other lane and waits for nothing else.
    fn awaited_lane(&self) -> Option<Vl> {
        None
    }

    /// True if a lane lacks credits now, for a flow of no other lane; see [`release`](Self::release).
    fn awaits(&mut self, lane: Vl) -> bool {
        let _ = lane;
        false
    }

    /// A new flow of the polled host to `dst` on `sl` starts now; flows of the whole run need not say so.
    fn begin(&mut self, dst: HostId, sl: Sl) {
        let _ = (dst, sl);
    }

    /// True if the lane of `sl` has credits for `bytes` payload bytes; after `false`, credits poll the host again.
    fn lane_open(&mut self, sl: Sl, bytes: u32) -> bool;

    /// A bit per lane on which a packet of this poll waits and holds back others; 0 if hosts pass over them.
    fn held_lanes(&self) -> u16 {
        0
    }
}

/// Flows whose chosen packets wait for credits, at most one per lane; each poll queries them first.
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

/// A message that has started, or that its sender has sent completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageChange {
    /// The sender.
    pub from: HostId,
    /// The receiver.
    pub to: HostId,
    /// True if the message has started.
    pub starts: bool,
}

/// A message of which no packet has left, the only one of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeMessage {
    /// Payload.
    pub bytes: u64,
    /// Packets that carry it.
    pub packets: u64,
    /// Service level of its packets.
    pub sl: Sl,
    /// Traffic class of its packets.
    pub class: u16,
}

/// Progress of the messages under way, or its growth in a period.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Whose turn it is everywhere.
    pub turns: Vec<u64>,
    /// Host, lane and owner of each chosen packet that waits for credits; hosts and releases of messages that wait.
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
    /// True if a delivery or a [timer](Self::next_timer) may give other hosts packets at the same instant.
    ///
    /// With lookahead windows, only such a workload may need [`on_delivered`](Self::on_delivered), and not for packets
    /// to the host itself. Deliveries and timers come before polls: [`poll`](Self::poll) must not see their packets
    /// before [`on_woken`](Self::on_woken), and they must not depend on their window's polls. Deliveries that [only
    /// their sender](Self::tells_only_sender_of) needs follow its polls.
    const LINKS_HOSTS: bool = false;

    /// Returns true if the engine has code for leaps with this workload; [`can_recur`](Self::can_recur) decides for a run.
    const RECURS: bool = false;

    /// True, always or never, if [`poll`](Self::poll) depends on the messages under way alone: order, rest, and turn.
    fn can_recur(&self) -> bool {
        false
    }

    /// Keeps message changes from now on.
    fn keep_message_changes(&mut self) {}

    /// Moves the message changes since the last call to `changes`.
    fn take_message_changes(&mut self, changes: &mut Vec<MessageChange>) {
        let _ = changes;
    }

    /// Returns the packets that `host` sends before the last packet of any message, at least; `None` without messages.
    fn packets_before_last(&self, host: HostId) -> Option<u64> {
        let _ = host;
        None
    }

    /// Progress of these hosts' messages at `now`.
    fn progress(&self, hosts: &[u32], now: Time) -> Progress {
        let _ = (hosts, now);
        Progress::default()
    }

    /// Most repetitions of a period before some message is about to send its last packet.
    fn most_periods(&self, period: &Progress) -> u64 {
        let _ = period;
        0
    }

    /// Counts what is sent in so many periods from `now` on, which take `by` together.
    fn skip_periods(&mut self, period: &Progress, periods: u64, now: Time, by: Span) {
        let _ = (period, periods, now, by);
    }

    /// The only message of `host`, if no packet of it has left.
    fn whole_message(&self, host: HostId) -> Option<WholeMessage> {
        let _ = host;
        None
    }

    /// Counts all packets of the [whole message](Self::whole_message) of `host` as sent.
    fn send_whole_message(&mut self, host: HostId) {
        let _ = host;
    }

    /// True, always or never, if it needs [`on_delivered`](Self::on_delivered); a constant drops the call.
    #[inline]
    fn needs_delivery(&self) -> bool {
        false
    }

    /// True, always or never, if it needs each packet's delivery; else each message's last if in order.
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

    /// True, always or never, if a delivery of this class affects its sender only, in any order of one instant.
    #[inline]
    fn tells_only_sender_of(&self, class: u16) -> bool {
        let _ = class;
        false
    }

    /// Prefetches what [`prefetch_poll_data`](Self::prefetch_poll_data) reads, some events before; changes no state.
    #[inline]
    fn prefetch_poll(&self, host: HostId) {
        let _ = host;
    }

    /// Prefetches the memory that [`poll`](Self::poll) of `host` needs, some events before its call. Changes no state.
    #[inline]
    fn prefetch_poll_data(&self, host: HostId) {
        let _ = host;
    }

    /// Decides what `host` does at `now`, which never decreases, when its link is free and its pace allows a packet.
    ///
    /// [`Poll::Send`] commits a packet that starts at `now`. After [`Poll::WaitUntil`] the host is polled by then,
    /// after [`Poll::Idle`] when woken or when a credit or notification arrives.
    fn poll<G: Gate>(&mut self, host: HostId, now: Time, gate: &mut G) -> Poll;

    /// The next instant after `now` at which the traffic changes by itself; then idle hosts are polled.
    fn next_change(&self, now: Time) -> Option<Time>;

    /// Takes the change at `now`, before polls, and adds hosts to poll to `wake`.
    fn apply_change(&mut self, now: Time, wake: &mut Vec<HostId>);

    /// The next timer of a workload that [links hosts](Self::LINKS_HOSTS), asked as [`next_change`](Self::next_change).
    #[inline]
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Timers up to `now` go off, after changes, and add hosts to poll to `wake`.
    #[inline]
    fn on_timer(&mut self, now: Time, wake: &mut Vec<HostId>) {
        let _ = (now, wake);
    }

    /// A host that a delivery or a timer has added to `wake` is woken at `now`; also each host at the start.
    #[inline]
    fn on_woken(&mut self, host: HostId, now: Time) {
        let _ = (host, now);
    }

    /// True if a driven run pauses now; asked after each change and notified delivery.
    #[inline]
    fn pauses(&self) -> bool {
        false
    }

    /// Some flow of `host` may send earlier than [`Gate::release`] said; a poll follows.
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

    /// The packet `offer` of `src` was delivered at `now`; hosts to poll go to `wake`. Called if
    /// [`needs_delivery`](Self::needs_delivery).
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

    /// The [`Flow::queue`](crate::hooks::Flow::queue) of a packet of `src` that has arrived, by its number and class.
    fn queue_of(&self, src: HostId, offer: &Offer) -> u16 {
        let _ = (src, offer);
        0
    }

    /// The packet `offer` of `src` was discarded by `now` in a live fabric, its payload and hops unknown.
    fn on_lost(
        &mut self,
        src: HostId,
        offer: &Offer,
        transit: Transit,
        now: Time,
        wake: &mut Vec<HostId>,
    ) {
        let _ = (src, offer, transit, now, wake);
    }

    /// The connection of `src` that carries `offer` has given up after its last retry; its packets never arrive.
    fn on_failed(&mut self, src: HostId, offer: &Offer, now: Time) {
        let _ = (src, offer, now);
    }
}
