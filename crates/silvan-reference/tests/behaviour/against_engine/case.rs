//! Random small fabrics with random parameters and flows.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use silvan_core::{Bytes, HostId, Length, PortId, Rate, Sl, Span, Time, Vl};
use silvan_fabric::routing::{SlToVlTables, Vls};
use silvan_fabric::{Fabric, FabricBuilder, LinkKind, Speed, Width};
use silvan_reference::{
    Arbitration, Flow, HostArbitration, HostParameters, OutputBuffer, Parameters, Pfc, Queueing,
    Sink, SwitchParameters, VlArbitration,
};

use crate::common::Routed;

/// A fabric with parameters and flows.
#[derive(Clone, Debug)]
pub struct Case {
    trunks: Vec<Trunk>,
    hosts: Vec<(usize, LinkKind)>,
    pub mtu: Bytes,
    pub parameters: Parameters,
    /// Kinds of tables of pairs of ports, if switches map packets to lanes.
    kinds: Option<[Vls; 3]>,
    pub flows: Vec<Flow>,
}

/// A trunk of one or two cables to an earlier switch, so that the switches form a tree.
#[derive(Clone, Debug)]
struct Trunk {
    to: usize,
    kinds: Vec<LinkKind>,
}

impl Case {
    pub fn of(parameters: Parameters, mtu: Bytes, flows: Vec<Flow>) -> Self {
        Self {
            trunks: Vec::new(),
            hosts: Vec::new(),
            mtu,
            parameters,
            kinds: None,
            flows,
        }
    }

    /// Sets equal cables, packets and starts, so that many events fall on one instant and their
    /// order decides.
    pub fn in_step(mut self) -> Self {
        let kind = self.hosts[0].1;
        let trunk_cables = self.trunks.iter_mut().flat_map(|trunk| &mut trunk.kinds);
        let host_cables = self.hosts.iter_mut().map(|(_, cable)| cable);
        for cable in host_cables.chain(trunk_cables) {
            *cable = kind;
        }
        for flow in &mut self.flows {
            flow.start = Time::ZERO;
            flow.gap = Span::ZERO;
            flow.payload = self.mtu;
        }
        self
    }

    /// Sets PFC in the place of credits.
    pub fn with_pfc(mut self, pfc: Pfc) -> Self {
        self.parameters.pfc = Some(pfc);
        self
    }

    pub fn parameters(&self, fabric: &Fabric) -> Parameters {
        let mut parameters = self.parameters.clone();
        let Some(kinds) = &self.kinds else {
            return parameters;
        };
        let mut tables = SlToVlTables::default();
        let number = |port: PortId| fabric.ports[port].number;
        for switch in fabric.switch_ids() {
            let ports = || fabric.switch(switch).ports();
            for (input, output) in ports().flat_map(|a| ports().map(move |b| (a, b))) {
                // Every fourth pair has no table.
                let kind = (input.index() * 7 + output.index() * 3) % 4;
                if let Some(vls) = kinds.get(kind) {
                    tables.set_switch(switch, number(input), number(output), *vls);
                }
            }
        }
        for host in fabric.host_ids().filter(|host| host.index() % 2 == 0) {
            tables.set_host(host, kinds[host.index() % 3]);
        }
        parameters.tables = Some(tables);
        parameters
    }

    pub fn build(&self) -> Routed {
        let mut builder = FabricBuilder::new();
        let switch_count = self.trunks.len() + 1;
        let switches: Vec<_> = (0..switch_count)
            .map(|index| builder.add_switch(format!("S{index}"), 36).unwrap())
            .collect();
        let mut used = vec![0; switch_count];
        let mut next_port = |switch: usize| {
            used[switch] += 1;
            switches[switch].port(used[switch])
        };
        for (index, (switch, kind)) in self.hosts.iter().enumerate() {
            let host = builder.add_host(format!("H{index}")).unwrap();
            builder
                .connect(host.port(1), next_port(*switch), *kind)
                .unwrap();
        }
        for (index, trunk) in self.trunks.iter().enumerate() {
            for kind in &trunk.kinds {
                let ends = (next_port(index + 1), next_port(trunk.to));
                builder.connect(ends.0, ends.1, *kind).unwrap();
            }
        }
        Routed::new(builder.build().unwrap())
    }
}

fn cables() -> impl Strategy<Value = LinkKind> {
    let kinds = [
        (Width::X1, Speed::Sdr),
        (Width::X4, Speed::Sdr),
        (Width::X4, Speed::Ddr),
        (Width::X4, Speed::Qdr),
        (Width::X4, Speed::Fdr),
        (Width::X4, Speed::Edr),
    ];
    (proptest::sample::select(kinds.to_vec()), 1_u32..100_000).prop_map(
        |((width, speed), millimetres)| LinkKind::new(width, speed, Length::from_mm(millimetres)),
    )
}

fn nanoseconds(range: std::ops::Range<u64>) -> impl Strategy<Value = Span> {
    range.prop_map(Span::from_ns)
}

/// A buffer of 1 to 8 packets of MTU size, and perhaps a part of a block.
fn buffers(wire: u64) -> impl Strategy<Value = Bytes> {
    (1_u64..=8, 0_u64..64)
        .prop_map(move |(packets, rest)| Bytes::from_bytes(wire.div_ceil(64) * 64 * packets + rest))
}

fn rates() -> impl Strategy<Value = Option<Rate>> {
    option::of(
        (1_000_u64..30_000)
            .prop_map(|mbit| Rate::from_bits_per_sec(mbit * 1_000_000).expect("above zero")),
    )
}

/// Tables in which every lane has an entry, in one table or the other or both.
fn vl_tables(data_vls: u8) -> impl Strategy<Value = VlArbitration> {
    let entries = vec(
        (1_u8..=255, option::of(1_u8..=255), any::<bool>()),
        usize::from(data_vls),
    );
    let limit = prop_oneof![Just(0), 1_u8..4, Just(255)];
    (entries, limit).prop_map(|(entries, limit_high)| {
        let mut tables = VlArbitration {
            high: vec![],
            low: vec![],
            limit_high,
        };
        for (vl, (weight, second, is_high)) in Vl::all().zip(entries) {
            let (first, other) = if is_high {
                (&mut tables.high, &mut tables.low)
            } else {
                (&mut tables.low, &mut tables.high)
            };
            first.push((vl, weight));
            other.extend(second.map(|second| (vl, second)));
        }
        tables
    })
}

fn switches(data_vls: u8, wire: u64) -> impl Strategy<Value = SwitchParameters> {
    let output_buffer = option::weighted(
        0.3,
        (
            buffers(wire),
            prop_oneof![Just(100_u32), 101_u32..300],
            any::<bool>(),
        )
            .prop_map(|(size, speedup_percent, cut_through)| OutputBuffer {
                cut_through,
                size,
                speedup_percent,
            }),
    );
    let arbitration = prop_oneof![
        Just(Arbitration::RoundRobin),
        Just(Arbitration::OldestFirst)
    ];
    let limits = prop_oneof![
        7 => Just((None, 100)),
        3 => (1_u8..=3, prop_oneof![Just(100_u32), 101_u32..400])
            .prop_map(|(limit, percent)| (Some(limit), percent)),
    ];
    let queueing = prop_oneof![Just(Queueing::Voq), Just(Queueing::Fifo)];
    let reads =
        (limits, queueing).prop_map(|((limit, percent), queueing)| (limit, percent, queueing));
    (
        nanoseconds(20..500),
        nanoseconds(0..300),
        buffers(wire),
        reads,
        arbitration,
        output_buffer,
        vl_tables(data_vls),
    )
        .prop_map(
            |(latency, credit_delay, buffer, reads, arbitration, output_buffer, tables)| {
                let (read_limit, read_speedup_percent, queueing) = reads;
                SwitchParameters {
                    latency,
                    credit_delay,
                    buffer,
                    read_limit,
                    read_speedup_percent,
                    queueing,
                    arbitration,
                    output_buffer,
                    vl_arbitration: tables,
                }
            },
        )
}

/// An MTU, and parameters with buffers for packets of that size.
fn parameters() -> impl Strategy<Value = (Bytes, Parameters)> {
    (
        1_u8..=3,
        proptest::sample::select(vec![256_u64, 512, 1024, 2048]),
        8_u64..60,
    )
        .prop_flat_map(|(data_vls, mtu, header)| {
            let wire = mtu + header;
            let sink = prop_oneof![Just(Sink::StoreAndForward), Just(Sink::CutThrough)];
            let arbitration = prop_oneof![
                Just(HostArbitration::HeadOfLine),
                Just(HostArbitration::WorkConserving)
            ];
            let host = (
                rates(),
                rates(),
                arbitration,
                sink,
                buffers(wire),
                nanoseconds(0..300),
            )
                .prop_map(
                    |(
                        injection_rate,
                        sink_rate,
                        arbitration,
                        sink,
                        receive_buffer,
                        credit_delay,
                    )| HostParameters {
                        injection_rate,
                        arbitration,
                        sink_rate,
                        sink,
                        receive_buffer,
                        credit_delay,
                    },
                );
            (
                proptest::array::uniform16(0..data_vls),
                switches(data_vls, wire),
                host,
            )
                .prop_map(move |(sl_to_vl, switch, host)| {
                    let parameters = Parameters {
                        data_vls,
                        sl_to_vl,
                        tables: None,
                        header: Bytes::from_bytes(header),
                        pfc: None,
                        switch,
                        host,
                    };
                    (Bytes::from_bytes(mtu), parameters)
                })
        })
}

/// Kind of a case's flows.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// A single packet each, one flow after the other.
    Alone,
    /// A largest number of packets, with random starts and gaps.
    Bursts(u64),
    /// Packets without end, some with gaps.
    Endless,
}

fn flows(hosts: usize, mtu: u64, load: Load) -> impl Strategy<Value = Vec<Flow>> {
    let flow = (
        (0..hosts, 1..hosts),
        0_u8..16,
        0_u64..20_000_000,
        1_u64..1_000,
        prop_oneof![Just(mtu), 1..=mtu],
        prop_oneof![Just(0), 0_u64..4_000_000],
    );
    vec(flow, 1..=12).prop_map(move |flows| {
        let one = |index: usize, ((source, step), sl, start, packets, payload, gap)| {
            let (start, packets) = match load {
                Load::Alone => (index as u64 * 1_000_000_000 + start, Some(1)),
                Load::Bursts(most) => (start, Some(packets % most + 1)),
                Load::Endless => (start, None),
            };
            Flow {
                source: HostId::new(source),
                destination: HostId::new((source + step) % hosts),
                sl: Sl::try_from(sl).expect("0 to 15"),
                start: Time::from_ps(start),
                packets,
                payload: Bytes::from_bytes(payload),
                gap: Span::from_ps(gap),
            }
        };
        let numbered = flows.into_iter().enumerate();
        numbered.map(|(index, flow)| one(index, flow)).collect()
    })
}

/// 2 to 6 switches in a tree, 2 to 10 hosts anywhere.
pub fn cases(load: Load) -> impl Strategy<Value = Case> {
    let fabric = (2_usize..=6, 2_usize..=10).prop_flat_map(|(switches, hosts)| {
        let trunks: Vec<_> = (1..switches)
            .map(|index| {
                (0..index, vec(cables(), 1..=2)).prop_map(|(to, kinds)| Trunk { to, kinds })
            })
            .collect();
        (trunks, vec((0..switches, cables()), hosts))
    });
    (fabric, parameters()).prop_flat_map(move |((trunks, hosts), (mtu, parameters))| {
        let flows = flows(hosts.len(), mtu.as_u64(), load);
        let vls = || proptest::array::uniform16(0..parameters.data_vls);
        let kinds = option::of([vls(), vls(), vls()]);
        (flows, kinds).prop_map(move |(flows, kinds)| Case {
            trunks: trunks.clone(),
            hosts: hosts.clone(),
            mtu,
            parameters: parameters.clone(),
            kinds,
            flows,
        })
    })
}
