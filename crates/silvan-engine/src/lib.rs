//! The lossless data plane: packets, ports, buffers, credits, arbitration, events.
//!
//! An [`Engine`] moves packets as InfiniBand switches and channel adapters do: virtual cut-through, credits per virtual
//! lane, virtual output queues or one FIFO per input, round-robin or oldest-first arbitration, rate-limited hosts.
//! Congestion control (the traits of `silvan_cc::hooks`) and traffic ([`workload::Workload`]) are type parameters, so
//! the hot loop is compiled for the scheme in use.
//!
//! # The model
//! Time is integer picoseconds. An output starts a packet when it is free and has credits for the whole packet. The
//! head
//! is eligible at the next switch after propagation and switch latency; later if the next output is faster than the
//! input, so that the output never runs dry. Buffer space is free when the tail leaves, and the credits are usable
//! upstream after the credit delay. An input buffer may feed several outputs at once unless a read limit forbids it.
//! Outputs choose the virtual lane by the IBA tables, and the input round-robin or oldest first. Hosts inject at the
//! configured rate; sinks store and forward at theirs. Events at one instant are ordered by kind and port. Only a
//! closed
//! port or a removed route drops packets.
//!
//! # Speed
//! A packet travels by value inside its head event and touches packet memory only if it waits. Credits return without
//! events unless the sender waits for them. A port becomes free without an event unless packets wait. The sink's part
//! is
//! computed when the last link is granted. Constant delays use fixed-delay queues, the rest a timing wheel. Without
//! congestion control, the events of a lookahead window are processed in no order.

mod audit;
mod buffers;
mod bypass;
mod choices;
mod deadlock;
mod detours;
mod engine;
mod events;
mod extension;
mod feedback;
mod fifo;
mod host;
mod leap;
mod levels;
mod linked_hosts;
mod links;
mod needs;
mod ordered;
mod variant;

mod packet;
mod partition;
mod pfc;
mod plane;
mod prefetching;
mod readings;
mod reconfiguration;
mod records;
mod reordering;
mod resident;
mod routing;
mod speculation;
mod stats;
mod switch;
mod sync;
mod table;
mod tracer;
mod trees;
mod vlarb;
mod waiting;
mod windows;

pub use engine::Engine;
pub use partition::Partitioned;
pub use silvan_cc::workload;
pub use silvan_model::{
    Arbitration, BecnCarrier, BuildError, CrossbarFeed, Deadlock, EngineConfig, EngineError,
    FeedbackParams, FeedbackPath, FlowProgress, Forest, HostArbitration, HostCounters, HostParams,
    HostShare, InvariantError, Latencies, LatencyStats, Loss, Member, OnWire, OutputBuffer,
    PacketFilter, PacketHop, PacketKind, PacketParams, PfcLimits, PfcParams, Queueing, Role, Sink,
    SwitchParams, Tree, VlArbitration,
};
pub use stats::ClassStats;
pub use tracer::MOST_HOPS;
pub use variant::{CompiledFabric, EngineVariant, General, GeneralLookahead, Lookahead, Traced};
pub use waiting::WaitingPacket;
