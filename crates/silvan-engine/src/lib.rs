//! The lossless data plane: packets, ports, buffers, credits, arbitration, events.
//!
//! An [`Engine`] moves packets through a fabric as InfiniBand switches and channel adapters do. It has virtual
//! cut-through, credits per virtual lane, virtual output queues or one FIFO per input, round-robin or oldest-first
//! arbitration, and rate-limited hosts. Congestion control is behind the two traits of `silvan_cc::hooks`, traffic
//! behind [`workload::Workload`]. Both are type parameters, so the hot loop is compiled for the scheme in use.
//!
//! # The model in ten sentences
//! Time is integer picoseconds. An output starts a packet when it is free and has credits for the whole packet, and is
//! busy for its serialisation time. The head becomes eligible at the next switch after propagation and switch latency.
//! If the next output is faster than the input, it becomes eligible later, so that the output never runs dry. Buffer
//! space is free again when the tail leaves; the credits can be used upstream after the credit delay. An input buffer
//! may feed several outputs at once unless a read limit says otherwise. Outputs choose the virtual lane by the IBA
//! tables, and the input round-robin or oldest first. Hosts inject at the configured rate, if the traffic has a packet
//! that congestion control releases. Sinks store and forward at their own rate. Events at one instant are ordered by
//! kind and port. No packet is dropped, except when a port is closed or a route is removed while packets move.
//!
//! # Speed
//! A packet travels by value inside its head event and touches packet memory only if it has to wait. Credits return
//! without events: the receiver records them with their time of arrival in the record of the sender, and schedules an
//! event only if the sender waits for credits. A port becomes free without an event unless packets wait for it. The
//! sink's part is computed when the last link is granted. Events with constant delays go into fixed-delay queues, the
//! rest into a timing wheel. Without congestion control, the events of a lookahead window are processed in no order at
//! all.

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
