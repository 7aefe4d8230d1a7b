//! A flit-by-flit reference model of the data plane: slow and simple on purpose.
//!
//! [`FlitModel`] moves every flit of 64 bytes over every link of a fabric. Each boundary between flits is an event at
//! each end of a link, and every step checks the guarantees of a lossless fabric. It is an oracle for the engine, which
//! computes equal results with a few events per packet. The two share only units and fabric.
//!
//! # The model
//!
//! Time is in integer picoseconds, and `span(bytes)` the time of so many bytes at a rate, rounded up.
//!
//! - **Link.** A packet that starts at `s` occupies the transmitter until `s + span(wire bytes)`. The end of its `k`-th
//!   flit passes the transmitter at `s + span(bytes of the first k flits)`, so roundings do not add up, and the far end
//!   one propagation later.
//! - **Credits.** A buffer of a receiver is counted per virtual lane in whole 64-byte blocks. A packet takes all its
//!   blocks of credit at the transmitter when it starts, occupies them at the receiver from the arrival of its head to
//!   the departure of its tail, and the credits are usable again one propagation and one credit delay later.
//! - **PFC** in the place of credits. A packet takes its bytes of the receiver's buffer from the arrival of its head to
//!   the departure of its tail. After the changes of an instant the receiver compares the bytes with the thresholds of
//!   each lane, and sends a pause or resume frame, which takes effect when it has waited for a frame of maximum size,
//!   been sent, crossed cable and interfaces, and been responded to. Packets that start at the instant at which a pause
//!   takes effect still go.
//! - **Switch.** Virtual cut-through: a packet may be sent on one switch latency after its head has arrived, or later
//!   by as much as a faster output would otherwise run ahead of the input. Packets queue per input, output and virtual
//!   lane; with FIFO queueing an output may pick only the packet that arrived first of those left in its input buffer
//!   and virtual lane (of several lanes' first packets for the same lane of an output, the one eligible first). A free
//!   output picks one packet on each lane (round robin over the inputs, or the oldest), among those whose input has
//!   reads left (a read lasts as long as the packet takes to leave, divided by the speedup); of the lanes whose packet
//!   has credits the arbitration tables choose one (IBA 7.6.9). The choice is made afresh at every change, and only a
//!   grant moves the round robin and the tables. A packet keeps its lane; with SL to VL tables it takes that of its
//!   ports and service level.
//! - **Output buffer.** A crossbar of one input and one output behind every switch output, with no latency, propagation
//!   or credit delay, fed at the speedup times the link rate. With cut-through a packet waits only for as long as the
//!   link behind the buffer would otherwise run dry; a flit passes the crossbar at that rate, or one switch latency
//!   after it has arrived if that is later.
//! - **Host.** Starts a packet when its link is free, the previous packet started at least `span(payload)` at the
//!   injection rate ago, and there are credits for the packet; the flows take turns, see [`Flow`].
//! - **Sink.** Store and forward: takes in packets one by one in the order in which they are complete, `span(payload)`
//!   at the sink rate each; then the packet is delivered and its space free. With cut-through: begins when the first
//!   flit has arrived, and ends `span(payload)` later, or when it has taken in the last flit after its arrival.
//! - **Simultaneous events.** Credits count from their instant on. Packets become eligible in the order of the input
//!   ports, and take their output at once if it is idle since before; then reads of inputs end in that order; then the
//!   outputs that have fallen free or have new credits choose in the order of their ports; then the hosts start
//!   packets.
//!
//! # Example
//!
//! Two hosts on one switch: 200 ns in the switch, 10 ns in each cable, and 4122 bytes at 1 ns each.
//!
//! ```
//! use silvan_fabric::generators::Generator;
//! use silvan_fabric::{LinkKind, Speed, Width, generators, routing};
//! use silvan_reference::{
//!     Arbitration, FlitModel, Flow, HostArbitration, HostParameters, Parameters, Queueing, Sink,
//!     SwitchParameters, VlArbitration,
//! };
//! use silvan_core::{HostId, Sl, Span, Time};
//!
//! let link = LinkKind::new(Width::X4, Speed::Sdr, "2 m".parse()?);
//! let fabric = generators::SingleSwitch { hosts: 2 }.build(link)?;
//! let tables = routing::min_hop_balanced(&fabric)?;
//! let parameters = Parameters {
//!     data_vls: 1,
//!     sl_to_vl: [0; 16],
//!     tables: None,
//!     header: "26 B".parse()?,
//!     pfc: None,
//!     switch: SwitchParameters {
//!         latency: "200 ns".parse()?,
//!         credit_delay: "100 ns".parse()?,
//!         buffer: "64 KiB".parse()?,
//!         read_limit: None,
//!         read_speedup_percent: 100,
//!         queueing: Queueing::Voq,
//!         arbitration: Arbitration::RoundRobin,
//!         output_buffer: None,
//!         vl_arbitration: VlArbitration::equal(1, 255),
//!     },
//!     host: HostParameters {
//!         injection_rate: None,
//!         sink_rate: None,
//!         arbitration: HostArbitration::HeadOfLine,
//!         sink: Sink::StoreAndForward,
//!         receive_buffer: "16 KiB".parse()?,
//!         credit_delay: "100 ns".parse()?,
//!     },
//! };
//! let flow = Flow {
//!     source: HostId::new(0),
//!     destination: HostId::new(1),
//!     sl: Sl::ZERO,
//!     start: Time::ZERO,
//!     packets: Some(1),
//!     payload: "4 KiB".parse()?,
//!     gap: Span::ZERO,
//! };
//! let mut model = FlitModel::new(&fabric, &tables, &parameters, &[flow]);
//! model.run_until(Time::MAX);
//! assert_eq!(model.deliveries()[0].latency(), "4342 ns".parse()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod crossbar;
mod event;
mod host;
mod link;
mod model;
mod params;
mod report;
mod vl_arbiter;

pub use model::FlitModel;
pub use params::{
    Arbitration, Flow, HostArbitration, HostParameters, OutputBuffer, Parameters, Pfc, Queueing,
    Sink, SwitchParameters, VlArbitration,
};
pub use report::{Delivery, Loss, Occupancy, PortReport};
