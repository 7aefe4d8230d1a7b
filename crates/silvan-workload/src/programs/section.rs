//! Message-passing programs on the hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::document::Limit;
use silvan_core::{Bytes, Rate, Sl, Span, schema};

use super::collective::{Algorithm, Operation};
use super::gpcnet::{Part, Test};
use super::inference::Inference;
use super::pattern::ProgramKind;
use super::plan::Placement;
use super::trace::FormatKeys;
use super::training::TrainingModel;
use crate::traffic::{RankHosts, Selection};

const LOCAL_RATE: Rate = Rate::from_bits_per_sec(40_000_000_000).expect("not zero");

/// Packets and processor cost of programs' messages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Messaging {
    /// Largest message that is sent at once (eager). Larger ones are announced first (rendezvous: request to
    /// send, clear to send, data).
    #[schemars(with = "schema::BytesText")]
    pub eager_limit: Bytes,
    /// Eager messages from one rank to another that may wait for their receives. Beyond that, small messages have a
    /// handshake, too, as in MPI libraries that run out of buffers.
    #[schemars(range(min = 1))]
    pub eager_credits: u32,
    /// Processor time to send or to receive a message (o of LogP).
    #[schemars(with = "schema::SpanText")]
    pub overhead: Span,
    /// Processor time for each byte after the first that is sent or received (O of LogGOPS), at most
    /// 100 ns. The sender spends it while the message leaves, the receiver when it has arrived; put and
    /// get cost none.
    #[schemars(with = "schema::SpanText")]
    pub overhead_per_byte: Span,
    /// Additional processor time for each byte after the first of a message up to `eager-limit`, at most 100 ns. It is
    /// the copy through a buffer at either end.
    #[schemars(with = "schema::SpanText")]
    pub eager_per_byte: Span,
    /// Payload of a request to send, a clear to send and a request to get; not zero.
    #[schemars(with = "schema::BytesText")]
    pub control: Bytes,
    /// Time that a message, a request or an answer takes between hosts in addition to that on the fabric: adapters and their buses.
    /// It keeps no processor busy.
    #[schemars(with = "schema::SpanText")]
    pub latency: Span,
    /// Time for each byte after the first of a message's first packet, in addition to `latency`, at most 100 ns: adapters and
    /// buses that store a packet before they pass it on. It keeps no processor busy.
    #[schemars(with = "schema::SpanText")]
    pub latency_per_byte: Span,
    /// Time that a message between two ranks of a host takes in addition to that of its bytes; not zero.
    #[schemars(with = "schema::SpanText")]
    pub local_latency: Span,
    /// Rate at which a rank copies messages to others of its host.
    #[schemars(with = "schema::RateText")]
    pub local_rate: Rate,
    /// Least time from the start of a message, request or answer to the start of the next one that any rank of the same host sends
    /// (g of LogGP, shared by the ranks of a host). It keeps no processor busy.
    #[schemars(with = "schema::SpanText")]
    pub gap: Span,
    /// Rate of the memory of a host, which its ranks share. Bytes that leave or arrive go through it once, bytes of a copy between
    /// ranks twice, in the order in which messages start. A message is complete when its bytes are through the memories of both
    /// hosts. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::RateText>")]
    pub memory_rate: Option<Rate>,
    /// Protocol of announced messages.
    pub rendezvous: Rendezvous,
    /// Messages that a rank reads at once, with `rendezvous = "read"`; further messages wait, in the order of their
    /// matches.
    #[schemars(range(min = 1))]
    pub reads_in_flight: u32,
    /// Time from the match of an announced message to the clear to send or the read: registration of memory, for example.
    #[schemars(with = "schema::SpanText")]
    pub rendezvous_delay: Span,
    /// Adapters that a message takes between hosts with several (`rails` of the program).
    pub striping: Striping,
    /// Largest message that `striping = "split"` leaves on one adapter. Default: `eager-limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub stripe_above: Option<Bytes>,
}

/// Protocol for the data of an announced message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rendezvous {
    /// The sender writes after a clear to send.
    #[default]
    Write,
    /// The receiver reads (RDMA read), and tells the sender at the end.
    Read,
}

/// Adapters that a message takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Striping {
    /// Data above `stripe-above` go over all adapters in equal parts, everything else over the first.
    #[default]
    Split,
    /// Each message takes the next adapter of its sender.
    ByMessage,
    /// All messages between two ranks take one adapter: the sum of their numbers modulo the adapters.
    ByRank,
}

/// Algorithm of collective operations up to a size.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MethodEntry {
    /// The operation. Default: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Largest size. Default: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub up_to: Option<Bytes>,
    /// The algorithm; an entry fits operations that are offered by it. `hierarchical` is the flat algorithm for groups of ranks
    /// that are not the same number on each of their servers. Default: that of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// Parts of the data that go independently of each other. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub channels: Option<u32>,
    /// Largest piece of a channel's data: the next one starts when the last one has done its first step. Default: one
    /// piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub chunk: Option<Bytes>,
}

impl Default for Messaging {
    /// 12 KiB is the order of magnitude of MVAPICH's eager limit; 5 GB/s and 300 ns are a copy through shared memory.
    fn default() -> Self {
        Self {
            eager_limit: Bytes::from_bytes(12 << 10),
            eager_credits: 16,
            overhead: Span::from_ns(200),
            overhead_per_byte: Span::ZERO,
            eager_per_byte: Span::ZERO,
            control: Bytes::from_bytes(64),
            latency: Span::ZERO,
            latency_per_byte: Span::ZERO,
            local_latency: Span::from_ns(300),
            local_rate: LOCAL_RATE,
            gap: Span::ZERO,
            memory_rate: None,
            rendezvous: Rendezvous::Write,
            // The limit of a ConnectX queue pair (max_qp_rd_atom), here of a rank.
            reads_in_flight: 16,
            rendezvous_delay: Span::ZERO,
            striping: Striping::Split,
            stripe_above: None,
        }
    }
}

impl Messaging {
    /// Returns the processor time for a message's bytes at either end, in addition to [`overhead`](Self::overhead).
    pub fn bytes_overhead(&self, bytes: u64) -> Span {
        let per_byte = match bytes <= self.eager_limit.as_u64() {
            true => self.overhead_per_byte + self.eager_per_byte,
            false => self.overhead_per_byte,
        };
        per_byte * bytes.saturating_sub(1)
    }

    /// Returns the time that a stage with this payload spends in adapters, with packets of up to `most` bytes of payload.
    pub fn passage(&self, bytes: u64, most: u64) -> Span {
        self.latency + self.latency_per_byte * bytes.min(most).saturating_sub(1)
    }
}

/// A message-passing program. The run ends when all that are not in the background have
/// ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProgramEntry {
    /// Name in the statistics. Default: `program-1`, `program-2`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The program of the ranks.
    pub kind: ProgramKind,
    /// Trace of at most 256 MiB, relative to the scenario's folder, and of at most 33,554,432 operations of all ranks; a list of
    /// AICB may have more. Of Chakra traces, which have a file `NAME.RANK.et` or `NAME.RANK.json` for each rank, it is the part
    /// before the rank. For kinds that run a trace only, as are `trace`, `groups` and `operations-per-second`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The text of a trace, in place of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// File with the groups of ranks of Chakra traces, such as `{"0": [0, 1, 2, 3]}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<String>,
    /// Arithmetic operations that a rank does in a second, for nodes of Chakra traces that have their number and no
    /// duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations_per_second: Option<f64>,
    /// Keys of the formats of traces that have any, in tables of their names.
    #[serde(default, skip_serializing_if = "FormatKeys::is_default")]
    pub format: FormatKeys,
    /// The hosts of the ranks, in their order; or a number of hosts that no other program uses.
    #[serde(default)]
    pub hosts: Selection,
    /// Adapters of each host: so many of `hosts`, side by side, are one host. `traffic.messaging.striping` says which of them a
    /// message takes.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub rails: u32,
    /// Ranks on each host.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub ranks_per_host: u32,
    /// Assignment of ranks to hosts.
    #[serde(default)]
    pub placement: Placement,
    /// Seed of the placement `random`; the same for all seeds of a run.
    #[serde(default)]
    pub placement_seed: u64,
    /// Adjacent ranks that share a server, for hierarchical algorithms. A program with the algorithm `hierarchical`
    /// needs a divisor of its ranks from 2 on; if it is all ranks, there is one server and the flat algorithm. Default:
    /// `ranks-per-host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub server_ranks: Option<u32>,
    /// Algorithm of the collective operation; not for traces. Default: as `traffic.collective` says; without
    /// that the first one in the guide's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// Parts of the data that go independently of each other; not for traces and `alltoallv`. Default: as
    /// `traffic.collective` says, 1 without that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub channels: Option<u32>,
    /// Largest piece of a channel's data: the next one starts when the last one has done its first step; not for traces and
    /// `alltoallv`. Default: as `traffic.collective` says, one piece without that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub chunk: Option<Bytes>,
    /// The model of the kind `training`, which it needs. With `operations-per-second` its ranks compute, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<TrainingModel>,
    /// The model, instances and requests of the kind `inference`, which it needs. With `operations-per-second` its ranks
    /// compute, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference: Option<Inference>,
    /// Sizes of the messages of an `alltoallv`: a list for each sender, with the size for each receiver, and 0 B for the sender
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Vec<schema::BytesText>>>")]
    pub sizes: Option<Vec<Vec<Bytes>>>,
    /// Bytes: of one message for `alltoall`, `incast` and `scatter`, of the vector with the parts of all ranks for the others.
    /// Not for traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub bytes: Option<Bytes>,
    /// Number of operations; not for traces. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<Limit<u64>>,
    /// Computing before each operation; not for traces. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub compute: Option<Span>,
    /// Length of a burst. The first operation of rank 0 that ends after this time is the last of the burst; a broadcast after each
    /// operation tells the other ranks. For collective operations in one piece, with `pause`. Default: one burst without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub burst: Option<Span>,
    /// Time between bursts; with `burst`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub pause: Option<Span>,
    /// Time before the first operation; not for traces. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub start: Option<Span>,
    /// Ranks that start later or compute longer than the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub straggler: Vec<StragglerEntry>,
    /// True if the run may end before the program.
    #[serde(default)]
    pub background: bool,
    /// Service level.
    #[serde(default)]
    #[schemars(with = "schema::SlNumber")]
    pub sl: Sl,
}

/// Ranks of a program that are slower than the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StragglerEntry {
    /// Numbers of the ranks. A rank is in one entry at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<u32>,
    /// Share of the ranks, drawn among those of no entry before it; in place of `ranks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: Option<f64>,
    /// Seed of the drawn ranks; the same for all seeds of a run.
    #[serde(default)]
    pub seed: u64,
    /// Time from the start of the program to the start of these ranks.
    #[serde(default)]
    #[schemars(with = "schema::SpanText")]
    pub delay: Span,
    /// Factor of the length of their computations, 0.01 to 100.
    #[serde(default = "unchanged")]
    #[schemars(range(min = 0.01, max = 100.0))]
    pub compute_factor: f64,
}

fn unchanged() -> f64 {
    1.0
}

/// The benchmark GPCNeT (Chunduri et al., SC 2019). The example `gpcnet` runs all its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct GpcnetSection {
    /// The hosts.
    #[schemars(with = "RankHosts")]
    pub hosts: Selection,
    /// Ranks on each host: processes per port.
    #[schemars(range(min = 1))]
    pub ranks_per_host: u32,
    /// Ranks that take part.
    pub part: Part,
    /// Share of the hosts that congest, drawn at random.
    pub congestor_share: f64,
    /// Time that the congestors have before the tests start.
    #[schemars(with = "schema::SpanText")]
    pub settle: Span,
    /// The measurements, in this order. The original among congestors: the default without `alltoall`;
    /// without congestors: all.
    pub tests: Vec<Test>,
    /// Rings per ring test; 30 in the original.
    #[schemars(range(min = 1))]
    pub rings: u32,
    /// Iterations of a test that are not measured.
    pub warm_up: u32,
    /// Iterations of a latency test per ring; 200 in the original.
    #[schemars(range(min = 1))]
    pub latency_iterations: u32,
    /// Iterations of a bandwidth test per ring; 8 in the original.
    #[schemars(range(min = 1))]
    pub bandwidth_iterations: u32,
    /// Iterations of the allreduce test; 200 in the original.
    #[schemars(range(min = 1))]
    pub allreduce_iterations: u32,
    /// Iterations of the all-to-all test; 64 in the original on up to 64 hosts.
    #[schemars(range(min = 1))]
    pub alltoall_iterations: u32,
    /// Bytes of a message of the bandwidth tests.
    #[schemars(with = "schema::BytesText")]
    pub bandwidth_bytes: Bytes,
    /// Bytes of a message of the all-to-all test.
    #[schemars(with = "schema::BytesText")]
    pub alltoall_bytes: Bytes,
    /// Bytes of a message of a congestor.
    #[schemars(with = "schema::BytesText")]
    pub congestor_bytes: Bytes,
    /// Service level of the tests.
    #[schemars(with = "schema::SlNumber")]
    pub sl: Sl,
    /// Service level of the congestors.
    #[schemars(with = "schema::SlNumber")]
    pub congestor_sl: Sl,
}

impl Default for GpcnetSection {
    /// As `network_load_test`, with fewer iterations, and the all-to-all of `network_test`.
    fn default() -> Self {
        Self {
            hosts: Selection::All,
            ranks_per_host: 1,
            part: Part::default(),
            congestor_share: 0.8,
            settle: Span::from_ms(1),
            tests: vec![
                Test::RingLatency,
                Test::RingBandwidthSync,
                Test::Allreduce,
                Test::Alltoall,
            ],
            rings: 3,
            warm_up: 2,
            latency_iterations: 50,
            bandwidth_iterations: 4,
            allreduce_iterations: 50,
            alltoall_iterations: 16,
            bandwidth_bytes: Bytes::from_bytes(128 << 10),
            alltoall_bytes: Bytes::from_bytes(4 << 10),
            congestor_bytes: Bytes::from_bytes(4 << 10),
            sl: Sl::ZERO,
            congestor_sl: Sl::ZERO,
        }
    }
}

/// The communication of the HPC Challenge benchmark: latency and bandwidth by ping-pong and in rings,
/// and the messages of PTRANS, MPIRandomAccess, MPIFFT and HPL, with computing where a key says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct HpccSection {
    /// The hosts, in the order of their ranks.
    #[schemars(with = "RankHosts")]
    pub hosts: Selection,
    /// Ranks on each host.
    #[schemars(range(min = 1))]
    pub ranks_per_host: u32,
    /// Distribution of ranks over hosts: `block` or `cyclic`.
    pub placement: Placement,
    /// Time before the first test.
    #[schemars(with = "schema::SpanText")]
    pub settle: Span,
    /// Random rings for latency; 30 in the original.
    pub latency_rings: u32,
    /// Random rings for bandwidth; 10 in the original.
    pub bandwidth_rings: u32,
    /// Bytes of a message of the bandwidth tests.
    #[schemars(with = "schema::BytesText")]
    pub bandwidth_bytes: Bytes,
    /// Rows of PTRANS's matrix of 8-byte numbers.
    #[schemars(range(max = 1_048_576))]
    pub ptrans_rows: u32,
    /// Computing of a rank in PTRANS.
    #[schemars(with = "schema::SpanText")]
    pub ptrans_compute: Span,
    /// Messages of each rank in MPIRandomAccess.
    #[schemars(range(max = 1_048_576))]
    pub access_rounds: u32,
    /// Computing of a rank before each of these messages.
    #[schemars(with = "schema::SpanText")]
    pub access_compute: Span,
    /// Complex numbers of MPIFFT's vector.
    pub fft_length: u32,
    /// Computing of a rank in MPIFFT, a third of it before each transposition.
    #[schemars(with = "schema::SpanText")]
    pub fft_compute: Span,
    /// Rows of HPL's matrix of 8-byte numbers; 0 leaves HPL out.
    #[schemars(range(max = 1_048_576))]
    pub hpl_rows: u32,
    /// Columns of a panel of HPL (NB).
    #[schemars(range(min = 1))]
    pub hpl_block: u32,
    /// Computing of a rank in HPL. Each panel takes a part as large as that of its operations.
    #[schemars(with = "schema::SpanText")]
    pub hpl_compute: Span,
    /// Service level.
    #[schemars(with = "schema::SlNumber")]
    pub sl: Sl,
}

impl Default for HpccSection {
    /// As `bench_lat_bw`; 32 MB for the others, without computing; no HPL.
    fn default() -> Self {
        Self {
            hosts: Selection::All,
            ranks_per_host: 1,
            placement: Placement::Block,
            settle: Span::from_ms(5),
            latency_rings: 30,
            bandwidth_rings: 10,
            bandwidth_bytes: Bytes::from_bytes(2_000_000),
            ptrans_rows: 2000,
            ptrans_compute: Span::ZERO,
            access_rounds: 1000,
            access_compute: Span::ZERO,
            fft_length: 1 << 20,
            fft_compute: Span::ZERO,
            hpl_rows: 0,
            hpl_block: 80,
            hpl_compute: Span::ZERO,
            sl: Sl::ZERO,
        }
    }
}

fn one() -> u32 {
    1
}
