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
//!   flit passes the transmitter at `s + span(bytes of the first k flits)`, and the far end one propagation later.
//! - **Credits.** Buffers count whole 64-byte blocks per virtual lane. A packet takes its blocks at the transmitter when
//!   it starts. They are usable again one propagation and one credit delay after its tail has left the receiver.
//! - **PFC** in the place of credits. After the changes of an instant the receiver compares the bytes of each lane with
//!   the thresholds. A pause or resume takes effect after a frame of maximum size, its own frame, cable, interfaces and
//!   response. Packets that start at that instant still go.
//! - **Switch.** Virtual cut-through: a packet may leave one switch latency after its head has arrived, later if a faster
//!   output would run ahead of the input. Packets queue per input, output and virtual lane, or in one FIFO per input and
//!   lane. A free output picks one packet on each lane (round robin or the oldest) among inputs with reads left, and one
//!   lane with credits by the arbitration tables (IBA 7.6.9). Only a grant moves the round robin and the tables.
//! - **Output buffer.** A crossbar of one input and one output behind a switch output, at the speedup times the link
//!   rate. With cut-through a packet waits only for as long as the link behind would otherwise run dry.
//! - **Host.** Starts a packet when its link is free, `span(payload)` at the injection rate has passed since the previous
//!   start, and there are credits; the flows take turns, see [`Flow`].
//! - **Sink.** Store and forward takes complete packets in one by one, `span(payload)` at the sink rate each. Cut-through
//!   begins with the first flit, and ends `span(payload)` later, or after the last flit's arrival.
//! - **Simultaneous events.** Credits count from their instant on. Then packets become eligible, reads of inputs end,
//!   outputs choose, and hosts start packets, each in the order of the ports.
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
