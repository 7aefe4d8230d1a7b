//! A fabric to run programs on, and what the tests need of it.

use std::sync::Arc;

use silvan_cc::hooks::NoControl;
use silvan_core::{Bytes, HostId, Rate, Sl, Span, Time};
use silvan_engine::{Engine, EngineConfig};
use silvan_fabric::{Fabric, FabricBuilder, ForwardingTables, LinkKind, routing};
use silvan_workload::programs::{
    Fault, Helpers, JobSpec, Load, Messaging, Op, Payload, Programs, Repeated, Script, goal,
};
use silvan_workload::traffic::{Environment, Traffic, TrafficSection};

pub fn cable() -> LinkKind {
    LinkKind::new(
        "4x".parse().unwrap(),
        "DDR".parse().unwrap(),
        "2 m".parse().unwrap(),
    )
}

pub fn star(hosts: usize) -> (Fabric, ForwardingTables) {
    let mut builder = FabricBuilder::new();
    let switch = builder.add_switch("S".to_owned(), hosts).unwrap();
    for port in 1..=hosts {
        let host = builder.add_host(format!("H{port}")).unwrap();
        let port = u8::try_from(port).unwrap();
        builder
            .connect(host.port(1), switch.port(port), cable())
            .unwrap();
    }
    let fabric = builder.build().unwrap();
    let tables = routing::min_hop_balanced(&fabric).unwrap();
    (fabric, tables)
}

pub const MTU: Bytes = Bytes::from_bytes(2048);
/// Bytes of a packet in addition to its payload.
const HEADER: u64 = 26;

/// Parameters for links of 4x DDR: packets of 2 KiB, input buffers of 64 KiB at switches and 16 KiB at hosts.
fn config() -> EngineConfig {
    let mut config = EngineConfig::default();
    config.packet.mtu = MTU;
    config.packet.header = Bytes::from_bytes(HEADER);
    config.switch.buffer = Some(Bytes::from_bytes(64 << 10));
    config.host.receive_buffer = Some(Bytes::from_bytes(16 << 10));
    config
}

pub fn messaging() -> Messaging {
    Messaging {
        eager_limit: Bytes::from_bytes(4096),
        eager_credits: 16,
        overhead: Span::from_ns(250),
        overhead_per_byte: Span::ZERO,
        control: Bytes::from_bytes(64),
        local_latency: Span::from_ns(300),
        local_rate: Rate::from_bits_per_sec(40_000_000_000).unwrap(),
        ..Messaging::default()
    }
}

pub fn sequence(ops: &[Op]) -> Script {
    let ops = ops.to_vec();
    Script::Sequence(Box::new(Repeated {
        ops,
        times: Some(1),
    }))
}

pub fn job(ranks: Vec<(usize, Script)>) -> JobSpec {
    let ranks = ranks.into_iter();
    JobSpec {
        name: "job".to_owned(),
        class: 0,
        sl: Sl::ZERO,
        start: Time::ZERO,
        background: false,
        ranks: ranks
            .map(|(host, script)| (HostId::new(host), script))
            .collect(),
        rails: Vec::new(),
        stragglers: Vec::new(),
        helpers: Helpers::default(),
        labels: vec!["time".to_owned()],
    }
}

/// A job with the ranks of a GOAL schedule on hosts 0, 1, 2 and so on.
pub fn scheduled(text: &str) -> JobSpec {
    let schedules = goal::parse(text).unwrap().into_iter().enumerate();
    job(schedules
        .map(|(host, schedule)| (host, Script::Schedule(Arc::clone(&schedule))))
        .collect())
}

/// Results of a run.
#[derive(Debug)]
pub struct Outcome {
    /// End of every rank.
    pub ends: Vec<Option<Time>>,
    /// Length of every measurement, in the order of time.
    pub marks: Vec<(u32, u32, Span)>,
    /// Start and end of every operation of a schedule, by line.
    pub ops: Vec<(u32, Time, Time)>,
    pub fault: Option<Fault>,
    pub finished: bool,
    pub delivered_bytes: u64,
    /// Bytes that each host has sent and received.
    pub links: Vec<(u64, u64)>,
}

/// Runs jobs for at most ten milliseconds.
pub fn run(hosts: usize, jobs: Vec<JobSpec>, messaging: Messaging) -> Outcome {
    let (fabric, tables) = star(hosts);
    let environment = Environment::unnamed(vec!["13.5 Gbit/s".parse().unwrap(); hosts], MTU, 1);
    let traffic = Traffic::new(&TrafficSection::default(), &environment).unwrap();
    let payload = Payload::new(MTU, Bytes::from_bytes(HEADER));
    let programs = Programs::new(jobs, messaging, payload, hosts);
    let load = Load::new(traffic, programs, vec!["job".to_owned()], hosts);
    let config = config();
    let mut engine = Engine::new(&fabric, &tables, &config, NoControl, NoControl, load).unwrap();
    engine.run_until(Time::ZERO + Span::from_ms(10)).unwrap();
    engine.audit().unwrap();
    let links: Vec<(u64, u64)> = (0..hosts)
        .map(|host| engine.host_counters(HostId::new(host)))
        .map(|counters| (counters.injected_bytes, counters.delivered_bytes))
        .collect();
    let programs = engine.workload().programs().unwrap();
    Outcome {
        ends: programs
            .ranks(engine.now())
            .map(|rank| rank.done_at)
            .collect(),
        marks: programs
            .marks()
            .iter()
            .map(|mark| (mark.rank, mark.index, mark.end.since(mark.begin)))
            .collect(),
        ops: programs
            .op_times()
            .iter()
            .filter_map(|op| Some((op.line, op.start?, op.end?)))
            .collect(),
        fault: programs.fault().cloned(),
        finished: programs.is_finished(),
        delivered_bytes: links.iter().map(|link| link.1).sum(),
        links,
    }
}

/// Time of one packet from a host to another at the same switch, when nothing is in its way.
pub fn wire(payload: u64) -> Span {
    let kind = cable();
    kind.length.propagation() * 2
        + config().switch.latency
        + kind
            .data_rate()
            .span_for(Bytes::from_bytes(payload + HEADER))
}
