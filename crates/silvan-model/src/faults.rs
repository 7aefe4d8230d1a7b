use std::fmt;

use silvan_core::{PortId, Time, Vl};
use silvan_fabric::Fabric;

use crate::pfc::PfcLimits;

/// Why a run cannot go on. The engine keeps the state of the instant of the fault, for inspection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Packets wait for each other's buffers in a cycle and can never move again.
    #[error(transparent)]
    Deadlock(#[from] Deadlock),
    /// A buffer behind a link with PFC had no room for a packet.
    #[error(transparent)]
    Loss(#[from] Loss),
    /// A switch has no table entry for a destination.
    #[error("at {at}: the switch of port {port} has no route to host {destination}")]
    NoRoute {
        /// Arrival time of the packet's head.
        at: Time,
        /// The input port at which it arrived.
        port: PortId,
        /// Dense number of the destination host.
        destination: u32,
    },
    /// An invariant is violated: a fault of the engine or of its workload.
    #[error("internal error at {at}: {error}")]
    Invariant {
        /// Time of detection.
        at: Time,
        /// The invariant.
        error: InvariantError,
    },
    /// No fault: the workload pauses the run at this instant, and the call that runs it returns.
    #[error("the run pauses")]
    Paused,
    /// The requested end is beyond the engine's clock.
    #[error("cannot simulate to {0}; the clock ends after about 53 days")]
    TooLate(Time),
}

/// Outputs that wait for each other in a cycle: each for buffer space behind it, which only the next one can free.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Deadlock {
    /// Time of detection; the deadlock may have begun up to 1 ms of simulated time before.
    pub at: Time,
    /// The cycle, each output port with its virtual lane.
    pub cycle: Vec<(PortId, Vl)>,
    /// Number of Port VLs that can never send again, including the cycle.
    pub stuck: usize,
    /// True if the Port VLs are paused by PFC; false if they lack credits.
    pub paused: bool,
}

/// A buffer that overflowed although it had paused its sender: its headroom is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {at}: the buffer of port {}, priority {priority}, overflows by {over} bytes", port.index())]
pub struct Loss {
    /// Arrival time of the first byte of the packet that had no room.
    pub at: Time,
    /// The input port.
    pub port: PortId,
    /// Virtual lane of the packet.
    pub priority: Vl,
    /// Bytes that the buffer held more than its size.
    pub over: u64,
    /// The limits in force.
    pub limits: PfcLimits,
}

impl Loss {
    /// Describes the loss with the fabric's names.
    pub fn describe(&self, fabric: &Fabric) -> String {
        format!(
            "packet lost at {}: {} holds {} B more in priority {} than its buffer of {} B has room for",
            self.at,
            fabric.port_name(self.port),
            self.over,
            self.priority,
            self.limits.buffer.as_u64(),
        )
    }

    /// Returns the hint: settings that prevent the loss.
    pub fn hint(&self) -> String {
        let (headroom, formula) = (self.limits.headroom.as_u64(), self.limits.formula.as_u64());
        if headroom < formula {
            return format!(
                "link.pfc.headroom is {headroom} B; this link needs {formula} B, which it has where none is given"
            );
        }
        "a frame is larger than link.pfc.max-frame; leave that out".to_owned()
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = self.cause();
        write!(f, "deadlock at {}: a {cause} over ports", self.at)?;
        for (port, vl) in &self.cycle {
            write!(f, " {}/VL{vl} ->", port.index())?;
        }
        write!(f, " and back")
    }
}

impl Deadlock {
    fn cause(&self) -> &'static str {
        match self.paused {
            true => "cycle of PFC pauses",
            false => "credit loop",
        }
    }

    /// Describes the deadlock with the fabric's names.
    pub fn describe(&self, fabric: &Fabric) -> String {
        let ports: Vec<String> = self
            .cycle
            .iter()
            .map(|&(port, vl)| format!("{} (VL {vl})", fabric.port_name(port)))
            .collect();
        format!(
            "deadlock at {}: {} {} -> back to {}; {} Port VLs can never send again",
            self.at,
            self.cause(),
            ports.join(" -> "),
            ports.first().map_or("", String::as_str),
            self.stuck
        )
    }
}

/// An invariant does not hold: a fault of the engine, never of its input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvariantError {
    /// Payload was lost or made.
    #[error(
        "{injected} payload bytes were injected, but {delivered} delivered, {discarded} discarded and {inside} are inside"
    )]
    Conservation {
        /// Injected.
        injected: u64,
        /// Delivered.
        delivered: u64,
        /// Discarded because a port was closed or a route missing.
        discarded: u64,
        /// Bytes in queues and on links.
        inside: u64,
    },
    /// Credits in hand, in progress and taken by packets do not add up to the buffer.
    #[error("lane {lane}: {found} blocks accounted for, the buffer has {capacity}")]
    Credits {
        /// Dense lane number.
        lane: usize,
        /// Blocks found.
        found: i64,
        /// Blocks of the buffer.
        capacity: i64,
    },
    /// Bytes on the way to a PFC buffer or in it differ from the bytes sent that have not left.
    #[error(
        "lane {lane}: {found} bytes are on their way to a buffer or in it, {outstanding} were sent and have not left"
    )]
    Outstanding {
        /// Dense lane number.
        lane: usize,
        /// Bytes found.
        found: i64,
        /// Bytes sent that have not left.
        outstanding: i64,
    },
    /// The blocks of an input buffer that its switch counts differ from the buffer's capacity.
    #[error(
        "input port {port}, VL {vl}: {found} blocks are free or taken by packets that wait, the buffer has {capacity}"
    )]
    Buffer {
        /// Dense number of the input port.
        port: usize,
        /// Virtual lane of the buffer.
        vl: usize,
        /// Blocks found.
        found: i64,
        /// Blocks of the buffer.
        capacity: i64,
    },
    /// A packet was started without the credits for it.
    #[error(
        "lane {lane}: a packet was started without the credits for it; {in_hand} blocks are left"
    )]
    NegativeCredits {
        /// Dense lane number.
        lane: usize,
        /// Blocks left, less than 0.
        in_hand: i32,
    },
    /// A workload offered a packet that is larger than the MTU, or is nothing on the wire.
    #[error(
        "host {host}: a packet with {bytes} B of payload; the MTU, {mtu} B, is the most, and without a header 1 B the least"
    )]
    PacketSize {
        /// Dense number of the host.
        host: usize,
        /// Payload offered.
        bytes: u32,
        /// Largest payload.
        mtu: u32,
    },
    /// A workload waits for an instant that has passed, so that time would stand still.
    #[error("host {host}: its traffic waits for {until}, which is not in the future")]
    WaitsForThePast {
        /// Dense number of the host.
        host: usize,
        /// The instant.
        until: Time,
    },
    /// A scheme chose a virtual lane that does not exist.
    #[error("host {host}: its scheme chose VL {vl}; there are {vls} data VLs")]
    ChosenLane {
        /// Dense number of the host.
        host: usize,
        /// The lane.
        vl: u8,
        /// Number of virtual lanes.
        vls: usize,
    },
    /// A scheme chose a virtual lane that does not exist, for a packet at a switch or a host.
    #[error(
        "port {port}: its scheme chose VL {vl} for the packets behind it; there are {vls} data VLs"
    )]
    NextLane {
        /// The output port.
        port: PortId,
        /// The lane.
        vl: u8,
        /// Number of virtual lanes.
        vls: usize,
    },
    /// A scheme chose an output that is not among the candidates.
    #[error("a switch's scheme chose candidate {chosen}; there are {candidates}, from 0")]
    ChosenOutput {
        /// The chosen index.
        chosen: u32,
        /// Number of candidates.
        candidates: usize,
    },
    /// A scheme sent a grant to a host that does not exist, or to the receiver itself.
    #[error("host {host}: its scheme sent a grant to host {to}, which cannot send to it")]
    GrantTo {
        /// Dense number of the receiver.
        host: usize,
        /// Dense number of the host that the grant is for.
        to: usize,
    },
    /// A packet extension of the scheme belongs to no packet, or to several packets.
    #[error("{used} records of packets are in use, but {carried} packets carry one")]
    Extensions {
        /// Records in use.
        used: usize,
        /// Packets that carry one.
        carried: usize,
    },
    /// The count of waiting bytes disagrees with the packets that wait.
    #[error("lane {lane}: the count of waiting bytes disagrees with the packets that wait")]
    Queue {
        /// Dense lane number.
        lane: usize,
    },
    /// Packets of a FIFO input buffer are not behind its first packet, or it has several.
    #[error("input port {port}, VL {vl}: the packets of the FIFO do not wait behind its first one")]
    Order {
        /// Dense number of the input port.
        port: usize,
        /// Virtual lane of the buffer.
        vl: usize,
    },
    /// Packets wait and nothing is going to wake their port.
    #[error("packets wait at port {port}, but no event or credit will wake it")]
    Asleep {
        /// The port.
        port: usize,
    },
}
