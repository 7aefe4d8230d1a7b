//! The lossless data plane: packets, ports, buffers, credits, arbitration, events.
//!
//! An [`Engine`] moves packets as InfiniBand switches and adapters do, compiled for congestion control
//! (`silvan_cc::hooks`) and traffic ([`workload::Workload`]).
//!
//! Time is integer picoseconds; events of one instant are ordered by kind and port. An output starts a packet when it
//! is free and has credits for all of it. The head is eligible after propagation and switch latency. Buffer space is
//! free when the tail leaves, and its credits are usable upstream after the credit delay.
//!
//! A packet travels inside its head event and touches packet memory only if it waits. Credits, free ports and sinks
//! need no events unless somebody waits.

mod audit;
mod bit_errors;
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
mod transport;
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
    HostShare, InvariantError, Latencies, LatencyStats, Loss, LostPackets, Member, OnWire,
    OutputBuffer, PacketFilter, PacketHop, PacketKind, PacketParams, PfcLimits, PfcParams,
    Queueing, RetryParams, Role, Sink, SwitchParams, Tree, VlArbitration,
};
pub use stats::ClassStats;
pub use tracer::MOST_HOPS;
pub use variant::{CompiledFabric, EngineVariant, General, GeneralLookahead, Lookahead, Traced};
pub use waiting::WaitingPacket;
