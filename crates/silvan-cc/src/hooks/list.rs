//! The list of all hooks; [`declare`](super::declare) makes all code but the engine's call.

use silvan_core::{HostId, PortId, Span, Time, Vl};

use super::{
    Ack, Arrival, Candidate, Feedback, Flow, FlowLimit, Grants, LaneView, LinkView, Messages,
    PacketView, PortVl, QueueView, Recurring, Resident, RouteView,
};

hooks! {
    $
    /// Declares an enum of schemes that implements [`SwitchControl`] and [`Settings`] by its variant.
    ///
    /// ```
    /// use silvan_cc::schemes::ecn::{EcnSwitch, Marking};
    /// use silvan_cc::schemes::ib_cc::IbSwitch;
    /// use silvan_cc::hooks::SwitchControl;
    ///
    /// silvan_cc::dispatch_switches! {
    ///     /// Congestion control of the switches.
    ///     pub enum OneOf {
    ///         /// InfiniBand's scheme.
    ///         Ib(IbSwitch),
    ///         /// The scheme of santos2003.
    ///         Ecn(EcnSwitch),
    ///     }
    /// }
    ///
    /// let switch = OneOf::Ecn(EcnSwitch::new(Marking::Naive, 8, 4, 1));
    /// assert!(switch.needs_buffer_full());
    /// ```
    ///
    /// [`SwitchControl`]: crate::hooks::SwitchControl
    /// [`Settings`]: crate::hooks::Settings
    macro dispatch_switches;

    /// Implements [`SwitchControl`] for a type with two fields that are schemes: both get every call, and their
    /// answers are combined.
    ///
    /// [`SwitchControl`]: crate::hooks::SwitchControl
    macro chain_switches;

    /// Implements [`SwitchControl`] for functions of another language.
    macro callback_switches;

    /// The hooks at the switches that other languages can implement.
    const SWITCH_HOOKS, SwitchHook;

    /// Congestion control at the switches. One value serves all switches of the fabric and is indexed by [`PortVl`].
    pub trait SwitchControl {
        query {
            /// True if [`SwitchControl::changes`] notes each change, so that runs may leap over repeating states.
            fn recurs() -> bool [both] { false }

            /// Returns a number that grows with each change of what the scheme knows of this Port VL, if it
            /// [recurs](SwitchControl::recurs).
            fn changes(output: PortVl) -> u64 [sum] { 0 }

            /// True if the next packets of this Port VL may be marked, however short the queue is.
            fn may_mark(output: PortVl) -> bool [either] { true }

            /// True if [`SwitchControl::credit_return_delay`] must be called at present.
            fn delays_credits() -> bool [either] { false }

            /// Returns the extra delay of the credits that the input buffer of `input` returns for a packet.
            ///
            /// `packet_time` is the packet's time on the link. `occupied_bytes` is the buffer space, in blocks of 64
            /// bytes, of packets whose head is eligible and whose tail has not left, including this packet.
            fn credit_return_delay(
                input: PortId,
                occupied_bytes: u32,
                packet_time: Span,
            ) -> Span [longest] { Span::ZERO }

            /// The shortest time that a message of [`SwitchControl::exchange`] takes, if switches send any, and half of it if outputs
            /// of hosts send some; always the same answer.
            fn message_delay() -> Option<Span> [shortest] { None }

            /// True if [`SwitchControl::on_queued`] and [`SwitchControl::on_departure`] must be called; the answer is
            /// constant.
            fn watches_queues() -> bool [either] { Self::ACTIVE }

            /// True if [`SwitchControl::select_discard`] must be called for this output Port VL; the answer is
            /// constant.
            fn discards(output: PortVl) -> bool [either] { true }

            /// A number that changes whenever [`SwitchControl::host_vl`] may answer otherwise than before about a flow of the host with
            /// this port; `None` while any answer may change at any time. While it stays, the host asks again about no flow whose lane
            /// has no credits.
            fn host_vl_version(now: Time, output: PortId) -> Option<u64> [both_versions] { None }

            /// Packets that this Port VL has marked, for statistics.
            fn marked(output: PortVl) -> u64 [sum] { 0 }

            /// Time that this Port VL has spent in the congestion state up to `now` (PortXmitTimeCong, IBA 16.1.4).
            fn congested_time(now: Time, output: PortVl) -> Span [longest] { Span::ZERO }
        }

        prefetch {
            /// Prefetches the memory that the calls about this output Port VL will need, some events before them.
            /// Changes nothing.
            fn prefetch_packet(output: PortVl);
        }

        notify {
            /// A packet has been added to a VOQ of this output Port VL.
            fn on_queued(
                now: Time,
                output: PortVl,
                queue: QueueView,
                packet: PacketView,
            ) -> () [nothing] {}

            /// A packet of this output Port VL starts to leave. Returns whether to set its FECN bit.
            fn on_departure(
                now: Time,
                output: PortVl,
                queue: QueueView,
                packet: PacketView,
            ) -> bool [either] { false }

            /// All packets that waited for this output Port VL have been discarded.
            fn on_discarded(now: Time, output: PortVl) -> () [nothing] {}

            /// A packet, data or notification, starts on the link of a port, a switch's or a host's.
            fn on_link(now: Time, output: PortVl, packet: LinkView) -> () [nothing] if needs_link {}

            /// A data packet whose acknowledgement is for [`SourceControl::on_ack`] leaves by this output Port VL.
            /// Returns whether the switch writes a [`Hop`](super::Hop) into it.
            fn stamps(now: Time, output: PortVl) -> bool [either] if needs_stamps { false }

            /// A packet of `flow`, data or notification, has arrived at `input_port`, and the routing leaves its output
            /// to the switch. Returns which of the candidates it takes, from 0; without a choice it takes the path of
            /// [`SourceControl::select_path`], and without one that with the fewest bytes ahead.
            fn select_output(
                now: Time,
                input_port: PortId,
                flow: Flow,
                candidates: &[Candidate],
            ) -> Option<u32> [first_choice] if needs_select_output { None }

            /// Returns the virtual lane of a data packet or a notification behind an output of a switch or host: on its
            /// link and in the buffer at its end.
            ///
            /// `vl` is the packet's lane so far, which `None` keeps. Ports with one lane have no choice. No flow must
            /// be able to close a cycle of credits by its choice.
            fn select_next_vl(
                now: Time,
                hop: LaneView,
                flow: Flow,
                vl: Vl,
            ) -> Option<Vl> [first_choice] if needs_select_next_vl { None }

            /// Returns a number if the switch discards a data packet that is about to wait for an output, or is about
            /// to leave after it `waited`.
            ///
            /// The packet of `flow` was sent at `sent`; `queue` is that of all lanes. The destination returns a
            /// negative acknowledgement with the number, and the source may send the packet again.
            fn select_discard(
                now: Time,
                output: PortVl,
                queue: QueueView,
                flow: Flow,
                wire_bytes: u32,
                sent: Time,
                waited: bool,
            ) -> Option<u32> [first_choice] if needs_select_discard { None }

            /// An output is about to choose the first packet that waits for it from `input`, one of `flow`. Returns whether the packet
            /// waits until other packets have left this output. Ports with one lane hold nothing. Of the packets that wait
            /// for an output, the one that came first must not be held.
            fn holds_head(
                now: Time,
                output: PortVl,
                input: PortId,
                flow: Flow,
            ) -> bool [either] if needs_holds_head { false }

            /// The virtual lane on which a host, with this port, would start the next packet of `flow`; `vl` is that of its service
            /// level. A flow whose lane has no credits waits, and others of the host may go. Without this hook the host
            /// keeps a packet for whose lane ([`select_next_vl`](Self::select_next_vl)) it has no credits, and sends no other.
            fn host_vl(
                now: Time,
                output: PortId,
                flow: Flow,
                vl: Vl,
            ) -> Option<Vl> [first_choice] if needs_host_vl { None }
        }

        inspect {
            /// A packet has arrived at `input` and left its buffer without room for another packet of MTU
            /// size. It counts among those that wait, unless it could leave at once.
            fn on_buffer_full<R: Resident>(
                now: Time,
                input: PortId,
                vl: Vl,
                resident: &mut R,
            ) -> () [nothing] if needs_buffer_full {}

            /// Exchanges messages between switches of different parts of a fabric, before they arrive.
            ///
            /// The first call comes before the run. Only after it, messages are sent here instead of being received at
            /// once. All events before `done` have been processed. Returns true if an output answers messages that have
            /// not arrived, so no window may be skipped.
            fn exchange<M: Messages>(done: Time, messages: &mut M) -> bool [either] if needs_exchange { false }

            /// The routes of the switch that has this port are set, before the run or during it.
            fn on_routes<R: RouteView>(port: PortId, routes: &R) -> () [nothing] if needs_routes {}
        }
    }
}

hooks! {
    $
    /// Declares an enum of schemes that implements [`SourceControl`] and [`Settings`] by its variant; see
    /// `dispatch_switches`.
    ///
    /// [`SourceControl`]: crate::hooks::SourceControl
    /// [`Settings`]: crate::hooks::Settings
    macro dispatch_sources;

    /// Implements [`SourceControl`] for a type with two fields that are schemes: both get every call, and their
    /// answers are combined.
    ///
    /// [`SourceControl`]: crate::hooks::SourceControl
    macro chain_sources;

    /// Implements [`SourceControl`] for functions of another language.
    macro callback_sources;

    /// The hooks at the hosts that other languages can implement.
    const SOURCE_HOOKS, SourceHook;

    /// Congestion control at the channel adapters. One value serves all hosts.
    pub trait SourceControl {
        query {
            /// True if [`SourceControl::recurring`] has the scheme's state, so that runs may leap over repeating states.
            fn recurs() -> bool [both] { false }

            /// The state of a host's flows at `now`; `None` if it is not known.
            fn recurring(now: Time, host: HostId) -> Option<Recurring> [both_recurring] { None }

            /// True if the scheme does not hold the flow back until it is notified, however much the flow sends.
            fn flow_rests(now: Time, flow: Flow) -> bool [both] { false }

            /// The flows of a host that the scheme holds below the rate of their link at `now`, for samples, by
            /// destination and service level. `now` must not be earlier than the last call about the host.
            fn flow_limits(now: Time, host: HostId) -> Vec<FlowLimit> [all] { Vec::new() }

            /// True if an event of a flow changes no [`SourceControl::release`] of other flows of its host; the answer
            /// is constant.
            ///
            /// Events are feedback, a grant, a negative acknowledgement and a sent packet. The engine keeps the known
            /// answers of other flows.
            fn separates_flows() -> bool [both] { false }

            /// True if [`SourceControl::select_vl`] and [`SourceControl::release`] stay valid for a flow until feedback
            /// arrives for it, however much it sends; the answer is constant.
            ///
            /// The engine does not query a flow whose lane has no credits, until feedback arrives or the lane has
            /// credits.
            fn keeps_lanes() -> bool [both] { false }
        }

        prefetch {
            /// Prefetches the memory that [`SourceControl::release`] will need for flows of this host, some events
            /// before it is called. Changes nothing.
            fn prefetch_release(host: HostId);

            /// Prefetches the memory that [`SourceControl::on_feedback`] of this flow needs.
            fn prefetch_feedback(flow: Flow);

            /// Prefetches the memory behind the memory that [`SourceControl::prefetch_feedback`] has prefetched.
            fn prefetch_feedback_data(flow: Flow);
        }

        notify {
            /// The earliest instant at which this flow may start its next packet; any instant not later
            /// than `now` means now, the largest means not before some feedback.
            fn release(now: Time, flow: Flow) -> Time [latest] { now }

            /// Returns the earliest instant at which this host may start its next packet, of any flow.
            fn host_release(now: Time, host: HostId) -> Time [latest] { now }

            /// A new flow between these hosts starts now. Earlier state belongs to the previous flow.
            fn on_flow_start(now: Time, flow: Flow) -> () [nothing] {}

            /// Returns the path of the flow's next packet among the paths that the routing leaves to the switches.
            ///
            /// The first switch with `n` candidates takes number `path % n`, the next switch continues with `path / n`.
            /// So the numbers below the product of all `n` are all paths, each once.
            fn select_path(now: Time, flow: Flow) -> Option<u32> [first_choice] if needs_select_path { None }

            /// Returns the virtual lane of the flow's next packet on the host's link; `vl` is the lane of its service
            /// level.
            ///
            /// Switches keep the lane unless the routing maps service levels to lanes on the way. If the lane has no
            /// credits for the packet, the host waits for credits and calls again. No flow must be able to close a
            /// cycle of credits by its choice.
            fn select_vl(now: Time, flow: Flow, vl: Vl) -> Option<Vl> [first_choice] if needs_select_vl { None }

            /// The flow starts a packet now. `wire_time` is the packet's serialisation time on the host's
            /// link, `payload` its payload bytes.
            fn on_send(now: Time, flow: Flow, wire_time: Span, payload: u32) -> () [nothing] {}

            /// A data packet of the flow has been received by its destination, which may send grants to any host.
            fn on_receive(
                now: Time,
                flow: Flow,
                arrival: Arrival,
                grants: &mut Grants,
            ) -> () [nothing] if needs_receive {}

            /// A grant of so many bytes by the flow's destination has arrived at its source. Returns whether the host may be able
            /// to send earlier than [`SourceControl::release`] last returned, so that it must be called again.
            fn on_grant(now: Time, flow: Flow, granted: u32) -> bool [either] { false }

            /// Feedback for the flow has arrived. Returns whether the host may be able to send earlier
            /// than [`SourceControl::release`] last returned, so that it must be called again.
            fn on_feedback(now: Time, flow: Flow, feedback: Feedback) -> bool [either] { false }

            /// An acknowledgement has arrived: when its packet was sent, and what the switches have written into it.
            /// Called before [`SourceControl::on_feedback`] for the same acknowledgement, with the same answer.
            fn on_ack(now: Time, flow: Flow, ack: Ack<'_>) -> bool [either] if needs_ack { false }

            /// The flow has started a packet, `behind` payload bytes of it wait; its source may send grants to any host. Called after
            /// [`SourceControl::on_send`], also for a packet that is sent again.
            fn on_started(
                now: Time,
                flow: Flow,
                payload: u32,
                behind: u32,
                grants: &mut Grants,
            ) -> () [nothing] if needs_started {}

            /// A grant has arrived, as for [`SourceControl::on_grant`], which is not called then; the host may answer it by
            /// grants to any host.
            fn answer_grant(
                now: Time,
                flow: Flow,
                granted: u32,
                grants: &mut Grants,
            ) -> bool [either] if needs_answer_grant { false }

            /// A switch has discarded a packet of the flow, with this number of
            /// [`SwitchControl::select_discard`](super::SwitchControl::select_discard), and its source knows now: it may send grants to any
            /// host. Returns the same as [`SourceControl::on_grant`].
            fn on_nack(
                now: Time,
                flow: Flow,
                payload: u32,
                notice: u32,
                grants: &mut Grants,
            ) -> bool [either] { false }

            /// The earliest instant at which a packet that a switch has discarded may start again; its source knew of it at
            /// `nacked`. Any instant not later than `now` means now, and the next packet that the flow sends is this
            /// one.
            fn resend_time(
                now: Time,
                flow: Flow,
                payload: u32,
                notice: u32,
                nacked: Time,
            ) -> Time [latest] { now }

            /// The credits of the host's own link changed, as a packet took some or some came back: `used`
            /// of `capacity` blocks are taken now.
            fn on_credit(
                now: Time,
                host: HostId,
                used: u32,
                capacity: u32,
            ) -> () [nothing] if needs_credit {}
        }

        inspect {
            /// Moves releases of a host's flows that are later than `now` by `by`: the engine leaps.
            fn shift(now: Time, host: HostId, by: Span) -> () [nothing] {}
        }
    }
}
