//! Times of flows on an empty fabric, by the recursion in `docs/model.md`: a lower bound, and the time alone if buffers
//! cover the credits' round trip.

use silvan_core::{Bytes, HostId, Rate, Span};
use silvan_fabric::{Fabric, ForwardingTables};
use silvan_model::{CrossbarFeed, EngineConfig, Sink};
use silvan_workload::traffic::FiniteFlow;

/// A sink that cuts through begins with the first flit.
const FLIT: u64 = 64;

struct Stage {
    rate: Rate,
    /// Time from the start of a packet at the output before to its head being eligible here.
    delay: u64,
    /// Rate of the packet that the output must not outrun; differs from `rate` at a crossbar that cuts through.
    passing: Rate,
    cuts_through: bool,
    free: u64,
}

struct Chain<'a> {
    config: &'a EngineConfig,
    stages: Vec<Stage>,
    propagation: u64,
    is_loopback: bool,
    sink_free: u64,
}

/// Delivery of a flow's last byte after its start; `None` without a path or an end.
pub(crate) fn completion(
    fabric: &Fabric,
    tables: &ForwardingTables,
    config: &EngineConfig,
    flow: &FiniteFlow,
) -> Option<Span> {
    let mut chain = Chain::new(fabric, tables, config, flow.source(), flow.destination())?;
    let (mut delivered, mut done) = (0, 0);
    flow.replay(|start, payload| {
        let (next, end) = chain.pass(start.as_ps(), u64::from(payload));
        delivered += u64::from(payload);
        done = end;
        silvan_core::Time::from_ps(next)
    });
    (delivered == flow.bytes()).then(|| Span::from_ps(done - flow.start().as_ps()))
}

pub(crate) fn message(
    fabric: &Fabric,
    tables: &ForwardingTables,
    config: &EngineConfig,
    (source, destination): (HostId, HostId),
    bytes: Bytes,
) -> Option<Span> {
    let mut chain = Chain::new(fabric, tables, config, source, destination)?;
    let mtu = config.packet.mtu.as_u64();
    let mut left = bytes.as_u64();
    let (mut start, mut done) = (0, 0);
    let mut before = Vec::new();
    while left > 0 {
        let payload = left.min(mtu);
        let old = chain.times(start, done);
        (start, done) = chain.pass(start, payload);
        left -= payload;
        let steps = old.iter().zip(chain.times(start, done));
        let steps: Vec<u64> = steps.map(|(old, new)| new - old).collect();
        // From here on each output has the rate of the slowest before it: equal packets take equal steps.
        if steps == before && steps.is_sorted() {
            let whole = left.saturating_sub(1) / mtu;
            chain.advance(&steps, whole);
            start += steps[0] * whole;
            done += steps[steps.len() - 1] * whole;
            left -= whole * mtu;
        }
        before = steps;
    }
    Some(Span::from_ps(done))
}

impl<'a> Chain<'a> {
    /// Free times of host, outputs and sink, and the last delivery.
    fn times(&self, start: u64, done: u64) -> Vec<u64> {
        let outputs = self.stages.iter().map(|stage| stage.free);
        let ends = [self.sink_free, done];
        std::iter::once(start).chain(outputs).chain(ends).collect()
    }

    fn advance(&mut self, steps: &[u64], packets: u64) {
        for (stage, step) in self.stages.iter_mut().zip(&steps[1..]) {
            stage.free += step * packets;
        }
        self.sink_free += steps[steps.len() - 2] * packets;
    }

    fn new(
        fabric: &Fabric,
        tables: &ForwardingTables,
        config: &'a EngineConfig,
        source: HostId,
        destination: HostId,
    ) -> Option<Self> {
        let mut port = fabric.host_port(source);
        let mut stages = Vec::new();
        let mut delay = 0;
        loop {
            let link = &fabric.links[fabric.ports[port].link?];
            let rate = link.data_rate();
            let buffer = config.switch.output_buffer.filter(|_| !stages.is_empty());
            if let Some(buffer) = buffer {
                let crossbar = rate.bits_per_sec() * u64::from(buffer.speedup_percent);
                let crossbar = Rate::from_bits_per_sec(crossbar.div_ceil(100))?;
                let cuts_through = buffer.crossbar == CrossbarFeed::CutThrough;
                stages.push(Stage {
                    rate: crossbar,
                    delay,
                    passing: if cuts_through { rate } else { crossbar },
                    cuts_through,
                    free: 0,
                });
                delay = 0;
            }
            stages.push(Stage {
                rate,
                delay,
                passing: rate,
                cuts_through: false,
                free: 0,
            });
            let propagation = link.propagation().as_ps();
            let is_loopback = source == destination;
            if is_loopback {
                return Some(Self {
                    config,
                    stages,
                    propagation,
                    is_loopback,
                    sink_free: 0,
                });
            }
            let peer = fabric.ports[port].peer?;
            let node = &fabric.nodes[fabric.ports[peer].node];
            let Some(switch) = node.as_switch() else {
                return (node.as_host() == Some(destination)).then_some(Self {
                    config,
                    stages,
                    propagation,
                    is_loopback,
                    sink_free: 0,
                });
            };
            // A path visits no switch twice, and has two outputs a switch at most.
            if stages.len() > 2 * fabric.switch_count() + 1 {
                return None;
            }
            delay = propagation + config.switch.latency.as_ps();
            port = node.port(tables.to_host(switch, destination)?)?;
        }
    }

    fn pass(&mut self, start: u64, payload: u64) -> (u64, u64) {
        let wire = Bytes::from_bytes(payload + self.config.packet.header.as_u64());
        let time = |rate: Rate, bytes: Bytes| rate.span_for(bytes).as_ps();
        let host = &self.config.host;
        let injection = host
            .injection_rate
            .map(|rate| time(rate, Bytes::from_bytes(payload)));
        if self.is_loopback {
            let done = start + injection.unwrap_or_else(|| time(self.stages[0].rate, wire));
            return (done, done);
        }
        let (mut head, mut arriving) = (start, 0_u64);
        for stage in &mut self.stages {
            let serialisation = time(stage.rate, wire);
            let passing = time(stage.passing, wire);
            // A faster output waits until it cannot run dry.
            let since = head + stage.delay + arriving.saturating_sub(passing);
            head = since.max(stage.free);
            stage.free = head + serialisation;
            if stage.cuts_through {
                stage.free = stage.free.max(since + arriving.min(passing));
            }
            arriving = serialisation;
        }
        let next = self.stages[0].free.max(start + injection.unwrap_or(0));
        let sink = |bytes: u64| {
            host.sink_rate
                .map_or(0, |rate| time(rate, Bytes::from_bytes(bytes)))
        };
        let arrives = head + arriving + self.propagation;
        self.sink_free = match (host.sink, self.stages.last()) {
            (Sink::CutThrough, Some(last)) => {
                let wire = wire.as_u64();
                let first = time(last.rate, Bytes::from_bytes(FLIT.min(wire)));
                let begins = self.sink_free.max(head + first + self.propagation);
                let tail = wire - (wire - 1) / FLIT * FLIT;
                (begins + sink(payload)).max(arrives + sink(tail.min(payload)))
            }
            _ => self.sink_free.max(arrives) + sink(payload),
        };
        (next, self.sink_free)
    }
}
