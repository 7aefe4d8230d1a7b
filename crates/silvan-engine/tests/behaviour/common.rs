//! Fabrics, parameters and small oracles that the tests share.

use silvan_cc::hooks::{NoControl, PortVl, SourceControl, SwitchControl};
use silvan_cc::schemes::SwitchPort;
use silvan_core::{Bytes, HostId, NodeId, PortId, PortNumber, Rate, Sl, Span, Time, Vl};
use silvan_engine::{Engine, EngineConfig, FeedbackParams, FeedbackPath};
use silvan_fabric::{Fabric, FabricBuilder, ForwardingTables, LinkKind, routing};

use crate::script::{Flow, Script};

/// Payload of a full packet, and the header on top, as [`ddr_config`] has them.
pub const MTU: u32 = 2048;
pub const HEADER: u64 = 26;
/// A full packet on the wire.
pub const WIRE: u64 = MTU as u64 + HEADER;

/// Parameters for links of 4x DDR: packets of 2 KiB, input buffers of 64 KiB at switches and 16 KiB at hosts.
pub fn ddr_config() -> EngineConfig {
    let mut config = EngineConfig::default();
    config.packet.mtu = Bytes::from_bytes(u64::from(MTU));
    config.packet.header = Bytes::from_bytes(HEADER);
    config.switch.buffer = Some(Bytes::from_bytes(64 << 10));
    config.host.receive_buffer = Some(Bytes::from_bytes(16 << 10));
    config
}

/// A cable such as `"4x DDR 2 m"`.
pub fn cable(text: &str) -> LinkKind {
    let mut words = text.splitn(3, ' ');
    let mut word = || words.next().unwrap();
    LinkKind::new(
        word().parse().unwrap(),
        word().parse().unwrap(),
        word().parse().unwrap(),
    )
}

/// Time that a packet of this payload occupies such a cable, header included.
pub fn ser(kind: LinkKind, payload: u32) -> Span {
    let wire = Bytes::from_bytes(u64::from(payload) + HEADER);
    kind.data_rate().span_for(wire)
}

pub fn past_fabric(delay: Span) -> FeedbackParams {
    FeedbackParams {
        delay,
        ..FeedbackParams::default()
    }
}

/// Notifications as packets of their own.
pub fn through_fabric(sl: Option<Sl>, bytes: Bytes, priority: bool) -> FeedbackParams {
    FeedbackParams {
        path: FeedbackPath::InBand,
        sl,
        bytes,
        priority,
        ..FeedbackParams::default()
    }
}

/// Time that its first bit takes.
pub fn propagation(kind: LinkKind) -> Span {
    kind.length.propagation()
}

/// Blocks of 64 bytes that a packet of this payload takes in a buffer.
pub fn blocks(payload: u32) -> u64 {
    (u64::from(payload) + HEADER).div_ceil(64)
}

/// A buffer of exactly `packets` full packets.
pub fn room(packets: u64) -> Bytes {
    Bytes::from_bytes(packets * blocks(MTU) * 64)
}

pub fn mbit(rate: u64) -> Rate {
    Rate::from_bits_per_sec(rate * 1_000_000).unwrap()
}

pub fn payload_time(rate: Rate, payload: u32) -> Span {
    rate.span_for(Bytes::from_bytes(u64::from(payload)))
}

pub fn at(span: Span) -> Time {
    Time::ZERO + span
}

pub fn vl(number: u8) -> Vl {
    Vl::try_from(number).unwrap()
}

/// Two data lanes; service level 1 takes lane 1, all others lane 0.
pub fn two_lanes(mut config: EngineConfig) -> EngineConfig {
    config.data_vls = 2;
    config.sl_to_vl[1] = 1;
    config
}

/// Differences of consecutive instants.
pub fn periods(instants: &[Time]) -> Vec<Span> {
    instants
        .windows(2)
        .map(|pair| pair[1].since(pair[0]))
        .collect()
}

pub type PlainEngine = Engine<NoControl, NoControl, Script>;

#[derive(Clone, Debug)]
pub struct Routed {
    pub fabric: Fabric,
    pub tables: ForwardingTables,
}

impl Routed {
    /// Balanced minimal routes.
    pub fn new(fabric: Fabric) -> Self {
        let tables = routing::min_hop_balanced(&fabric).unwrap();
        Self { fabric, tables }
    }

    /// Switches in a row; `hosts[i]` are the cables of the hosts on switch `i`, which are numbered
    /// switch by switch, and `trunks[i]` connects switches `i` and `i + 1`. Hosts are on the first
    /// ports of a switch, then come the trunks to the previous one and to the next one.
    pub fn row(hosts: &[&[LinkKind]], trunks: &[LinkKind]) -> Self {
        let mut builder = FabricBuilder::new();
        let mut previous = None;
        let mut host_count = 0;
        for (index, cables) in hosts.iter().enumerate() {
            let ports = cables.len() + 2;
            let switch = builder.add_switch(format!("S{index}"), ports).unwrap();
            for (port, cable) in (1..).zip(*cables) {
                let host = builder.add_host(format!("H{host_count}")).unwrap();
                host_count += 1;
                builder
                    .connect(host.port(1), switch.port(port), *cable)
                    .unwrap();
            }
            let last = u8::try_from(ports).unwrap();
            if let Some(previous) = previous {
                builder
                    .connect(previous, switch.port(last - 1), trunks[index - 1])
                    .unwrap();
            }
            previous = Some(switch.port(last));
        }
        Self::new(builder.build().unwrap())
    }

    /// Makes one switch; host `i` has cable `i`, on port `i + 1`.
    pub fn star(cables: &[LinkKind]) -> Self {
        Self::row(&[cables], &[])
    }

    pub fn engine(&self, config: &EngineConfig, flows: &[Flow]) -> PlainEngine {
        self.controlled(config, NoControl, NoControl, flows)
    }

    pub fn controlled<S: SwitchControl, C: SourceControl>(
        &self,
        config: &EngineConfig,
        switch: S,
        source: C,
        flows: &[Flow],
    ) -> Engine<S, C, Script> {
        let script = Script::new(flows, self.fabric.host_count());
        Engine::new(&self.fabric, &self.tables, config, switch, source, script).unwrap()
    }

    /// Runs to `until` without congestion control, and returns what the flows have recorded.
    pub fn run(&self, config: &EngineConfig, flows: &[Flow], until: Span) -> Script {
        let mut engine = self.engine(config, flows);
        engine.run_until(at(until)).unwrap();
        engine.audit().unwrap();
        engine.workload().clone()
    }

    /// The switch port that host `host` is plugged into.
    pub fn port_to(&self, host: usize) -> PortId {
        self.fabric.host_attachment(HostId::new(host)).1
    }

    pub fn port(&self, switch: &str, number: u8) -> PortId {
        let node: NodeId = self.fabric.node_by_name(switch).unwrap();
        self.fabric.port(node, PortNumber::new(number)).unwrap()
    }

    /// The switch ports as congestion control wants them listed.
    pub fn switch_ports(&self) -> Vec<Option<SwitchPort>> {
        let place = |port: PortId| {
            let record = &self.fabric.ports[port];
            let switch = self.fabric.nodes[record.node].as_switch()?;
            let peer = record.peer.map(|peer| self.fabric.ports[peer].node);
            Some(SwitchPort {
                switch,
                number: record.number,
                to_host: peer.is_some_and(|node| self.fabric.nodes[node].as_host().is_some()),
                peer: record.peer,
            })
        };
        self.fabric.ports.ids().map(place).collect()
    }
}

/// Lane 0 of a port in a fabric with one data lane.
pub fn only_lane(port: PortId) -> PortVl {
    PortVl(u32::try_from(port.index()).unwrap())
}
