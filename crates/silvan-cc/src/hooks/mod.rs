//! The hooks through which the data plane drives congestion control.
//!
//! The engine owns packets, queues and credits; a scheme owns its own state and never sees a
//! clock, a socket or a thread. The engine calls the two traits below from its hot loop with static
//! dispatch, so a hook that a scheme leaves at its default costs nothing: `ACTIVE` and the
//! `needs_*` methods let the compiler drop the call and the bookkeeping behind it. Where several schemes
//! share a compiled engine the same methods answer for the one in use.
//!
//! - [`SwitchControl`] sits at the switches: what happens when a packet is queued, when an input
//!   buffer fills, when a packet leaves; mark it or not.
//! - [`SourceControl`] sits at the channel adapters: what an ACK, a CNP, a credit or a timer does to
//!   a flow's rate and window; when it may send next.
//! - [`Controller`] runs outside the fabric: it reads port counters at intervals of its own and
//!   changes settings, as a subnet manager or the DCMS does.

// The lists of hooks below are declared with its macro.
#[macro_use]
#[doc(hidden)]
pub mod declare;

use silvan_core::{HostId, PortId, Sl, Span, Time, Vl};

pub use chain::Chain;

/// One virtual lane of one port, as a dense index: `port * data_vls + vl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortVl(pub u32);

/// A flow as a channel adapter tells them apart: source host, destination host and service level
/// (one queue pair in each direction between two hosts on each SL).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The host that sends the data.
    pub source: HostId,
    /// The host that receives it.
    pub destination: HostId,
    /// The service level of its data packets.
    pub sl: Sl,
}

/// What a switch control may know of a packet that is being queued or sent.
#[derive(Clone, Copy, Debug)]
pub struct PacketView {
    /// Bytes on the wire, headers included.
    pub wire_bytes: u32,
    /// Whether FECN is set already: by a switch before this one, or by this one while it waited.
    pub marked: bool,
    /// Input port at this switch.
    pub input: PortId,
}

/// A packet as it starts on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkView {
    /// The host that sends it.
    pub source: HostId,
    /// The host that it is for.
    pub destination: HostId,
    /// Its service level.
    pub sl: Sl,
    /// Bytes on the wire, headers included.
    pub wire_bytes: u32,
    /// Whether it carries FECN.
    pub fecn: bool,
    /// Whether it carries BECN.
    pub becn: bool,
    /// Whether this very port has set its FECN.
    pub marked_here: bool,
    /// How long the port has been idle for want of credits or arbitration, with packets to send,
    /// until it started this one.
    pub waited: Span,
}

/// The queue state of one output Port VL at the instant of a call.
#[derive(Clone, Copy, Debug)]
pub struct QueueView {
    /// Bytes (on the wire) that wait in all input buffers of the switch for this output Port VL,
    /// the packet of the call included.
    pub queued_bytes: u32,
    /// Whether credits for one packet of MTU size are left, after the packet of the call has
    /// taken its own.
    pub has_credit: bool,
}

/// The resident packets of a switch, for schemes that inspect or mark packets other than the one
/// at hand.
pub trait Resident {
    /// Blocks (64 bytes) occupied in the input buffer of this port and VL.
    fn occupied_blocks(&self, input: PortId, vl: Vl) -> u32;
    /// Capacity of that buffer in blocks.
    fn capacity_blocks(&self, input: PortId, vl: Vl) -> u32;
    /// Packets in the switch that wait for this output Port VL.
    fn queued_packets(&self, output: PortId, vl: Vl) -> u32;
    /// Calls `each` for every output port of the switch for which at least one packet waits in
    /// the buffer of this input.
    fn outputs_of(&self, input: PortId, vl: Vl, each: &mut dyn FnMut(PortId));
    /// Marks every waiting packet of this input buffer.
    fn mark_input(&mut self, input: PortId, vl: Vl);
    /// Marks every packet that waits anywhere in the switch for this output Port VL.
    fn mark_output(&mut self, output: PortId, vl: Vl);
}

hooks! {
    $
    /// Declares an enum with a scheme in each variant that is itself a [`SwitchControl`] with
    /// [`Settings`], whatever the variant.
    ///
    /// ```
    /// use silvan_cc::schemes::ecn::{EcnSwitch, Marking};
    /// use silvan_cc::schemes::ib_cc::IbSwitch;
    /// use silvan_cc::hooks::SwitchControl;
    ///
    /// silvan_cc::dispatch_switches! {
    ///     /// What a fabric's switches do.
    ///     pub enum OneOf {
    ///         /// InfiniBand's scheme.
    ///         Ib(IbSwitch),
    ///         /// The one of santos2003.
    ///         Ecn(EcnSwitch),
    ///     }
    /// }
    ///
    /// let switch = OneOf::Ecn(EcnSwitch::new(Marking::Naive, 4, 1));
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

    /// Congestion control at the switches. One value serves all switches of the fabric and is
    /// indexed by [`PortVl`].
    pub trait SwitchControl {
        query {
            /// Whether [`SwitchControl::on_buffer_full`] must be called; always the same answer.
            fn needs_buffer_full() -> bool [either] { false }

            /// Whether [`SwitchControl::on_link`] must be called; always the same answer.
            fn needs_link() -> bool [either] { false }

            /// Prefetches the memory that the calls about this output Port VL will need, some events before them.
            /// Changes nothing.
            fn prefetch_packet(output: PortVl) -> () [nothing] {}

            /// Whether [`SwitchControl::credit_return_delay`] need be called at all at present.
            fn delays_credits() -> bool [either] { false }

            /// How much later than usual the input buffer of `input` returns the credits of a packet that
            /// takes `packet_time` on the link. `occupied_bytes` is what the neighbour cannot use of the
            /// buffer: bytes stored there, on their way there, or whose credits are on their way back.
            fn credit_return_delay(
                input: PortId,
                occupied_bytes: u32,
                packet_time: Span,
            ) -> Span [longest] { Span::ZERO }

            /// Packets that this Port VL has marked, for statistics.
            fn marked(output: PortVl) -> u64 [sum] { 0 }

            /// Time that this Port VL has spent in the congestion state up to `now`
            /// (PortXmitTimeCong, IBA 16.1.4).
            fn congested_time(now: Time, output: PortVl) -> Span [longest] { Span::ZERO }
        }

        notify {
            /// A packet has been added to a VOQ of this output Port VL.
            fn on_queued(
                now: Time,
                output: PortVl,
                queue: QueueView,
                packet: PacketView,
            ) -> () [nothing];

            /// A packet of this output Port VL starts to leave. Returns whether to set its FECN bit.
            fn on_departure(
                now: Time,
                output: PortVl,
                queue: QueueView,
                packet: PacketView,
            ) -> bool [either];

            /// All packets that waited for this output Port VL have been discarded.
            fn on_discarded(now: Time, output: PortVl) -> () [nothing] {}

            /// A packet, data or notification, starts on the link of a port, a switch's or a host's.
            fn on_link(now: Time, output: PortVl, packet: LinkView) -> () [nothing] {}

            /// A packet has arrived at `input` and left its buffer without room for another packet of MTU
            /// size. It counts among those that wait, unless it could leave at once.
            fn on_buffer_full<R: Resident>(
                now: Time,
                input: PortId,
                vl: Vl,
                resident: &mut R,
            ) -> () [nothing] {}
        }
    }
}

/// A notification that reaches the source of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// A congestion notification packet: always carries BECN.
    Cnp,
    /// An acknowledgement of `bytes` of payload, with or without BECN.
    Ack {
        /// Payload bytes acknowledged.
        bytes: u32,
        /// Whether the acknowledgement carries BECN (the ECN echo).
        becn: bool,
    },
}

hooks! {
    $
    /// Declares an enum with a scheme in each variant that is itself a [`SourceControl`] with
    /// [`Settings`], whatever the variant; as `dispatch_switches` does.
    ///
    /// [`SourceControl`]: crate::hooks::SourceControl
    /// [`Settings`]: crate::hooks::Settings
    macro dispatch_sources;

    /// Implements [`SourceControl`] for a type with two fields that are schemes: both get every call, and their
    /// answers are combined.
    ///
    /// [`SourceControl`]: crate::hooks::SourceControl
    macro chain_sources;

    /// Congestion control at the channel adapters. One value serves all hosts.
    pub trait SourceControl {
        query {
            /// Whether [`SourceControl::on_credit`] must be called; always the same answer.
            fn needs_credit() -> bool [either] { false }

            /// Prefetches the memory that [`SourceControl::release`] will need for flows of this host, some events
            /// before it is called. Changes nothing.
            fn prefetch_release(host: HostId) -> () [nothing] {}

            /// The same for [`SourceControl::on_feedback`] of this flow.
            fn prefetch_feedback(flow: Flow) -> () [nothing] {}
        }

        notify {
            /// The earliest instant at which this flow may start its next packet; any instant not later
            /// than `now` means now, [`Time::MAX`] means not before some feedback.
            fn release(now: Time, flow: Flow) -> Time [latest];

            /// The earliest instant at which this host may start its next packet, whatever the flow.
            fn host_release(now: Time, host: HostId) -> Time [latest] { now }

            /// A new flow between these hosts starts now. What was under way before belongs to another one.
            fn on_flow_start(now: Time, flow: Flow) -> () [nothing] {}

            /// The flow starts a packet now. `wire_time` is the packet's serialisation time on the host's
            /// link, `payload` its payload bytes.
            fn on_send(now: Time, flow: Flow, wire_time: Span, payload: u32) -> () [nothing];

            /// Feedback for the flow has arrived. Returns whether the host may be able to send earlier
            /// than [`SourceControl::release`] last returned, so that it must be called again.
            fn on_feedback(now: Time, flow: Flow, feedback: Feedback) -> bool [either];

            /// The credits of the host's own link changed, as a packet took some or some came back: `used`
            /// of `capacity` blocks are taken now.
            fn on_credit(now: Time, host: HostId, used: u32, capacity: u32) -> () [nothing] {}
        }
    }
}

/// Switch control that has a part of its own for each Port VL: what a call about one does and answers does not
/// depend on what has been called about others, so that calls about different ones may come in any order.
pub trait PerPortVl: SwitchControl {}

/// Source control that has a part of its own for each host, in the same sense.
pub trait PerHost: SourceControl {}

impl PerPortVl for NoControl {}

impl PerHost for NoControl {}

/// No congestion control, on either side.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoControl;

impl SwitchControl for NoControl {
    const ACTIVE: bool = false;
    #[inline]
    fn on_queued(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) {}
    #[inline]
    fn on_departure(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) -> bool {
        false
    }
}

impl SourceControl for NoControl {
    const ACTIVE: bool = false;
    #[inline]
    fn release(&mut self, now: Time, _: Flow) -> Time {
        now
    }
    #[inline]
    fn on_send(&mut self, _: Time, _: Flow, _: Span, _: u32) {}
    #[inline]
    fn on_feedback(&mut self, _: Time, _: Flow, _: Feedback) -> bool {
        false
    }
}

/// The counters of one port as a manager reads them (IBA 16.1: PortCounters, PortXmitConCtrl).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortReading {
    /// Which port.
    pub port: PortId,
    /// PortXmitData: bytes transmitted.
    pub xmit_bytes: u64,
    /// PortXmitWait: time with data to send and no credits.
    pub xmit_wait: Span,
    /// PortXmitTimeCong: time in the congestion state.
    pub xmit_cong: Span,
}

/// A change of settings that a [`Controller`], a scenario or a management datagram requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingChange {
    /// Marking_Rate of one switch port (SwitchPortCongestionSetting).
    PortMarkingRate {
        /// The port.
        port: PortId,
        /// Mean number of eligible packets between marked ones.
        marking_rate: u16,
    },
    /// Threshold weight (0..=15) of one switch port.
    PortThreshold {
        /// The port.
        port: PortId,
        /// Threshold weight.
        threshold: u8,
    },
    /// Packet_Size (64-byte units) of one switch port.
    PortPacketSize {
        /// The port.
        port: PortId,
        /// Smallest packet, in 64-byte units, that is marked.
        packet_size: u8,
    },
    /// Victim_Mask bit of one switch port.
    PortVictimMask {
        /// The port.
        port: PortId,
        /// Whether the mask bit is set.
        set: bool,
    },
    /// Credit_Mask bit of one switch port.
    PortCreditMask {
        /// The port.
        port: PortId,
        /// Whether the mask bit is set.
        set: bool,
    },
    /// CS_Threshold weight (0..=15) of one switch port.
    PortCreditThreshold {
        /// The port.
        port: PortId,
        /// Threshold weight.
        threshold: u8,
    },
    /// CS_ReturnDelay of one switch port.
    PortCreditReturnDelay {
        /// The port.
        port: PortId,
        /// The delay in packet times as a congestion control table entry has it: 2 bits of shift,
        /// then 14 bits of multiplier.
        return_delay: u16,
    },
    /// CCTI_Timer of every adapter on one SL, in units of 1.024 us.
    CctiTimer {
        /// Service level.
        sl: Sl,
        /// Timer value; 0 stops the timer.
        timer: u16,
    },
    /// CCTI_Increase of every adapter on one SL.
    CctiIncrease {
        /// Service level.
        sl: Sl,
        /// Steps per BECN.
        increase: u8,
    },
}

impl SettingChange {
    /// Whether it may change which credits a switch returns late.
    pub fn concerns_credits(&self) -> bool {
        matches!(
            self,
            Self::PortCreditMask { .. }
                | Self::PortCreditThreshold { .. }
                | Self::PortCreditReturnDelay { .. }
        )
    }
}

/// Settings that can be changed from outside while packets move.
pub trait Settings {
    /// Applies one change at `now`. A change that the scheme does not have is an error that says so.
    ///
    /// # Errors
    /// [`UnknownSetting`] when the scheme has no such setting or the port is not a switch port.
    fn apply(&mut self, now: Time, change: &SettingChange) -> Result<(), UnknownSetting>;
}

impl Settings for NoControl {
    fn apply(&mut self, _: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        Err(UnknownSetting(change.clone()))
    }
}

/// The running scheme has no such setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the congestion control in use has no setting for {0:?}")]
pub struct UnknownSetting(pub SettingChange);

/// Something that watches the fabric's counters from outside and changes its settings.
pub trait Controller {
    /// Time until the next sweep.
    fn interval(&self) -> Span;
    /// One sweep: the counters of every switch port at `now`; pushes the changes to make.
    fn step(&mut self, now: Time, readings: &[PortReading], changes: &mut Vec<SettingChange>);
}

// These use the macros that the lists above make.
mod chain;
mod dispatch;
