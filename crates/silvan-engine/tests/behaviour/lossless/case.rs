//! Random fabrics, parameters and flows.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use silvan_cc::schemes::ecn::{
    EcnSource, EcnSwitch, Lipd, Marking, RateModel, Response, SourceParameters, WindowLimit,
};
use silvan_cc::schemes::ib_cc::{
    CctEntry, IbAdapter, IbParameters, IbSwitch, MarkingMode, PortSelection, StarvationSetting,
    ThresholdMap, ThresholdWeight,
};
use silvan_cc::schemes::{SeparateSource, SeparateSwitch};
use silvan_core::document::Limit;
use silvan_core::stream::SplitMix64;
use silvan_core::{Bytes, Length, Rate, Sl, Span, Time, Vl};
use silvan_engine::{
    Arbitration, BecnCarrier, CompiledFabric, CrossbarFeed, EngineConfig, FeedbackParams,
    HostParams, LatencyStats, OutputBuffer, PacketParams, PfcParams, Queueing, Sink, SwitchParams,
    VlArbitration,
};
use silvan_fabric::routing::{LaneSteps, PathChoice, Routes, Waypoints, minimal_alternatives};
use silvan_fabric::{Fabric, FabricBuilder, LinkKind, Speed, Width, check};
use silvan_model::bit_errors::{BitErrors, Bursts, ErrorTimes, PlannedBitErrors};

use crate::common::{Routed, past_fabric, through_fabric};
use crate::script::{Flow, Script};

/// No flow starts a packet after this instant, in ps.
const STOP: u64 = 60_000_000;

#[derive(Clone, Debug)]
pub struct Case {
    /// For each switch but the first: one before it, and the cable.
    trunks: Vec<(usize, LinkKind)>,
    /// Further cables between two switches.
    extra: Vec<(usize, usize, LinkKind)>,
    hosts: Vec<(usize, LinkKind)>,
    pub config: EngineConfig,
    pub flows: Vec<Flow>,
    pub steps: Vec<u64>,
    marking: (u16, u8, bool),
    seed: u64,
    /// Among which paths switches choose, where that cannot deadlock.
    choice: PathChoice,
}

impl Case {
    /// The fabric, and whether it has its extra cables: they are left out where the routes over
    /// them could deadlock.
    pub fn build(&self) -> (Routed, bool) {
        let full = self.fabric(&self.extra);
        let cycle = check::dependency_cycle(&full.fabric, &full.tables).unwrap();
        if cycle.is_none() {
            (full, !self.extra.is_empty())
        } else {
            (self.fabric(&[]), false)
        }
    }

    fn fabric(&self, extra: &[(usize, usize, LinkKind)]) -> Routed {
        let mut builder = FabricBuilder::new();
        let count = self.trunks.len() + 1;
        let switches: Vec<_> = (0..count)
            .map(|index| builder.add_switch(format!("S{index}"), 40).unwrap())
            .collect();
        let mut used = vec![0; count];
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
        let tree = (1..).zip(&self.trunks);
        let tree = tree.map(|(index, (parent, kind))| (index, *parent, *kind));
        for (a, b, kind) in tree.chain(extra.iter().copied()) {
            builder.connect(next_port(a), next_port(b), kind).unwrap();
        }
        Routed::new(builder.build().unwrap())
    }

    /// Restricts the case to one lane, links of one speed, and round-robin arbitration.
    pub fn plain(mut self) -> Self {
        let LinkKind { width, speed, .. } = self.hosts[0].1;
        let hosts = self.hosts.iter_mut().map(|(_, kind)| kind);
        let trunks = self.trunks.iter_mut().map(|(_, kind)| kind);
        let extra = self.extra.iter_mut().map(|(_, _, kind)| kind);
        for kind in hosts.chain(trunks).chain(extra) {
            (kind.width, kind.speed) = (width, speed);
        }
        let config = &mut self.config;
        config.data_vls = 1;
        config.sl_to_vl = [0; 16];
        config.vl_arbitration = VlArbitration::default();
        let switch = &mut config.switch;
        switch.arbitration = Arbitration::RoundRobin;
        (switch.read_limit, switch.bypass_limit) = (None, None);
        switch.read_speedup_percent = 100;
        switch.queueing = Queueing::Voq;
        if let Some(buffer) = &mut switch.output_buffer {
            buffer.speedup_percent = 100;
        }
        self
    }

    /// The traffic.
    pub fn script(&self, routed: &Routed) -> Script {
        let mut script = Script::new(&self.flows, routed.fabric.host_count());
        script.in_order = !self.choice.reorders() && self.config.bit_errors.is_empty();
        script
    }

    /// The fabric ready to be run.
    pub fn compile(&self, routed: &Routed) -> CompiledFabric {
        if self.choice.is_non_minimal() {
            let (waypoints, steps) = self.over_waypoints(&routed.fabric);
            let routes = Routes {
                waypoints: Some(&waypoints),
                steps: Some(&steps),
                choice: self.choice,
                ..Routes::from(&routed.tables)
            };
            return CompiledFabric::new(&routed.fabric, routes, &self.config).unwrap();
        }
        let alternatives = minimal_alternatives(&routed.fabric).unwrap();
        let routes = Routes {
            alternatives: Some(&alternatives),
            choice: self.choice,
            ..Routes::from(&routed.tables)
        };
        let chooses = self.choice != PathChoice::Table
            && check::dependency_cycle(&routed.fabric, routes)
                .unwrap()
                .is_none();
        let routes = if chooses {
            routes
        } else {
            Routes::from(&routed.tables)
        };
        CompiledFabric::new(&routed.fabric, routes, &self.config).unwrap()
    }

    /// Waypoints, in groups of up to three switches, and a lane for each switch of a path.
    fn over_waypoints(&self, fabric: &Fabric) -> (Waypoints, LaneSteps) {
        let size = 1 + (self.seed >> 8) as usize % 3;
        let groups = fabric
            .switch_ids()
            .map(|switch| (switch.index() / size) as u32);
        let steps = LaneSteps::equal(fabric).with_lanes(self.config.data_vls);
        (Waypoints::new(fabric, groups.collect()), steps)
    }

    /// Returns the case by the tables, if packets go over waypoints.
    pub fn without_waypoints(&self) -> Option<Self> {
        self.choice.is_non_minimal().then(|| Self {
            choice: PathChoice::Table,
            ..self.clone()
        })
    }

    /// Sets the number of lanes that paths over waypoints need, or routes by the tables if ports have too few lanes.
    fn with_lanes_for_waypoints(mut self) -> Self {
        let (routed, _) = self.build();
        let (waypoints, steps) = self.over_waypoints(&routed.fabric);
        let routes = Routes {
            waypoints: Some(&waypoints),
            steps: Some(&steps),
            choice: self.choice,
            ..Routes::from(&routed.tables)
        };
        let needed = check::check_steps(&routed.fabric, routes).needed;
        if needed > 15 {
            self.choice = PathChoice::Table;
            return self;
        }
        let config = &mut self.config;
        (config.data_vls, config.sl_to_vl) = (needed, [0; 16]);
        config.vl_arbitration = VlArbitration::default();
        self
    }

    /// Restricts the case to fabrics without effects elsewhere for 17 ns.
    pub fn lookahead(self) -> Self {
        self.plain().with_independent_ports().with_windows()
    }

    /// Allows paths chosen packet by packet. In half of the cases a port has no immediate effect on other ports of its
    /// switch.
    pub fn general_lookahead(mut self) -> Self {
        if self.seed >> 40 & 1 == 0 {
            self = self.with_independent_ports();
        }
        let choices = [
            PathChoice::Table,
            PathChoice::Adaptive,
            PathChoice::AdaptiveFree,
            PathChoice::Ecmp,
            PathChoice::SprayRandom,
            PathChoice::SprayRoundRobin,
            PathChoice::Valiant,
            PathChoice::UgalL,
            PathChoice::Par,
        ];
        self.choice = choices[(self.seed % 9) as usize];
        if self.choice.is_non_minimal() {
            self = self.with_lanes_for_waypoints();
        }
        self.config.host.in_order = self.choice.reorders() && self.seed % 7 < 2;
        self.with_windows()
    }

    /// Removes limits on reads and overtaking, single queues and output buffers.
    fn with_independent_ports(mut self) -> Self {
        let switch = &mut self.config.switch;
        (switch.read_limit, switch.bypass_limit) = (None, None);
        switch.read_speedup_percent = 100;
        switch.queueing = Queueing::Voq;
        switch.output_buffer = None;
        self
    }

    fn with_windows(self) -> Self {
        let mut case = self;
        let least = Span::from_ns(17);
        let switch = &mut case.config.switch;
        switch.latency = switch.latency.max(least);
        switch.credit_delay = switch.credit_delay.max(least);
        let feedback = &mut case.config.feedback;
        feedback.carrier = Some(BecnCarrier::Cnp);
        // At least as long as a window.
        feedback.delay = feedback.delay.max(switch.latency + switch.credit_delay);
        case
    }

    /// Replaces credits by PFC: thresholds after up to six packets or by default, a response of up to 2 us, and the
    /// headroom of the formula.
    pub fn paused(mut self) -> Self {
        if self.config.data_vls > 8 {
            // PFC has eight priorities, which are too few for these waypoints.
            self.choice = PathChoice::Table;
            (self.config.data_vls, self.config.sl_to_vl) = (1, [0; 16]);
            self.config.vl_arbitration = VlArbitration::default();
        }
        let wire = (self.config.packet.mtu + self.config.packet.header).as_u64();
        let xoff = (self.seed >> 16) % (6 * wire);
        let slowest = [1, 20_000, 2_000_000][(self.seed >> 4) as usize % 3];
        let thresholds = (self.seed & 1 == 0).then_some((xoff, (self.seed >> 32) % (xoff + 1)));
        self.config.pfc = Some(PfcParams {
            xoff: thresholds.map(|(xoff, _)| Bytes::from_bytes(xoff)),
            xon: thresholds.map(|(_, xon)| Bytes::from_bytes(xon)),
            response: Span::from_ps((self.seed >> 8) % slowest),
            interface_delay: Span::from_ps((self.seed >> 24) % slowest / 10),
            ..PfcParams::default()
        });
        self
    }

    /// Sets PFC with thresholds after two packets, and one read of an input buffer or one overtaking at a time. Each
    /// host has a flow to each other host that always has packets.
    pub fn paused_and_crowded(self) -> Self {
        let mut case = self.paused();
        let wire = case.config.packet.mtu + case.config.packet.header;
        if let Some(pfc) = &mut case.config.pfc {
            let two_packets = Bytes::from_bytes(2 * wire.as_u64());
            (pfc.xoff, pfc.xon) = (Some(two_packets), Some(two_packets));
        }
        let switch = &mut case.config.switch;
        match case.seed >> 12 & 1 {
            0 => switch.read_limit = Some(1),
            _ if switch.queueing == Queueing::Voq => switch.bypass_limit = Some(1),
            _ => {}
        }
        let hosts = 0..case.hosts.len();
        let pairs = hosts
            .clone()
            .flat_map(|from| hosts.clone().map(move |to| (from, to)));
        let pairs = pairs.filter(|(from, to)| from != to).take(100);
        let mtu = u32::try_from(case.config.packet.mtu.as_u64()).unwrap();
        let saturating = |(from, to)| Flow {
            stop: Time::from_ps(STOP),
            sizes: vec![mtu, 1, mtu],
            ..Flow::saturating(from, to)
        };
        case.flows = pairs.map(saturating).collect();
        case
    }

    /// Sets PFC with up to four packets of headroom, which may be too little.
    pub fn short_of_headroom(self) -> Self {
        let mut case = self.paused();
        let wire = (case.config.packet.mtu + case.config.packet.header).as_u64();
        if let Some(pfc) = &mut case.config.pfc {
            pfc.headroom = Some(Bytes::from_bytes((case.seed >> 40) % (4 * wire)));
        }
        case
    }

    /// Adds acknowledgements of every packet.
    /// Lets about half of the cables have bit errors in one direction or both, some with retransmission, bursts or pauses.
    pub fn with_bit_errors(mut self) -> Self {
        let (routed, _) = self.build();
        let ports = routed.fabric.ports.iter_enumerated();
        let cabled = ports.filter(|(_, port)| port.peer.is_some());
        let seed = self.seed;
        let drawn = cabled.map(|(id, _)| (id, SplitMix64::nth(seed, id.index() as u64)));
        let errors = drawn.filter(|(_, draw)| draw % 3 == 0).map(|(port, draw)| {
            let has = |bit: u32| draw >> bit & 1 == 1;
            PlannedBitErrors {
                port,
                errors: BitErrors {
                    rate: [1e-4, 1e-5, 1e-6][(draw >> 8) as usize % 3],
                    bursts: has(20).then_some(Bursts {
                        rate: 1e-3,
                        length: Span::from_ns(300),
                        spacing: Span::from_us(4),
                    }),
                    retransmits: has(21),
                    replay_latency: has(22).then_some(Span::from_ns(50)),
                    retraining: Span::from_ns(if has(22) { 700 } else { 0 }),
                },
                times: ErrorTimes {
                    at: Time::ZERO,
                    lasts: has(23).then_some(Span::from_us(3)),
                    every: has(23).then_some(Span::from_us(7)),
                },
            }
        });
        self.config.bit_errors = errors.collect();
        self.config.host.in_order = false;
        self
    }

    pub fn acknowledged(mut self) -> Self {
        self.config.feedback.carrier = Some(BecnCarrier::AckPerPacket);
        self
    }

    /// Marks by full input buffers, of each kind in turn, answered by rates and windows.
    pub fn control_by_buffers(&self, routed: &Routed) -> (SeparateSwitch, SeparateSource) {
        let markings = [
            Marking::Naive,
            Marking::ProposedScan,
            Marking::ProposedCounters,
            Marking::ResidentCounters,
            Marking::OutputTriggered,
            Marking::InputOutputTriggered,
        ];
        let marking = markings[(self.seed >> 16) as usize % markings.len()];
        let ports = routed.fabric.ports.len();
        let switch = EcnSwitch::new(marking, 3, ports, self.config.data_vls);
        let parameters = SourceParameters {
            rates: RateModel::Continuous(Response::Lipd(Lipd::new(1.0 / 256.0).unwrap())),
            window: WindowLimit { min: 1, max: 4 },
            initial_rate: 1.0,
            persistent: true,
            mtu: u32::try_from(self.config.packet.mtu.as_u64()).unwrap(),
        };
        let source = EcnSource::new(parameters, self.hosts.len()).unwrap();
        (SeparateSwitch::Ecn(switch), SeparateSource::Ecn(source))
    }

    /// InfiniBand's congestion control as [`control`](Self::control) has it, at switches of which all ports return credits late
    /// from some bytes in their input buffer on.
    pub fn starving_control(&self, routed: &Routed) -> (IbSwitch, IbAdapter) {
        let starvation = StarvationSetting {
            credit_threshold: ThresholdWeight::try_new((self.seed >> 20) as u8 % 16).unwrap(),
            credit_return_delay: CctEntry::try_new(1, (self.seed >> 24) as u16 % 9).unwrap(),
        };
        self.ib_control(routed, PortSelection::All, starvation)
    }

    /// InfiniBand's congestion control, set to mark early and often.
    pub fn control(&self, routed: &Routed) -> (IbSwitch, IbAdapter) {
        self.ib_control(routed, PortSelection::None, StarvationSetting::default())
    }

    fn ib_control(
        &self,
        routed: &Routed,
        credit_ports: PortSelection,
        starvation: StarvationSetting,
    ) -> (IbSwitch, IbAdapter) {
        let map = ThresholdMap::Linear {
            lowest_bytes: 500,
            highest_bytes: 9000,
        };
        let mut parameters = IbParameters::gran2012(0.3, map).unwrap();
        let (marking_rate, packet_size, random) = self.marking;
        parameters.switch.marking.marking_rate = marking_rate;
        parameters.switch.marking.packet_size = packet_size;
        parameters.switch.credit_ports = credit_ports;
        parameters.switch.starvation = starvation;
        if random {
            parameters.switch.marking_mode = MarkingMode::Random;
        }
        let vls = self.config.data_vls;
        let switch = parameters.build_switch(&routed.switch_ports(), vls, self.seed);
        let adapter = parameters.build_adapter(self.hosts.len(), self.seed);
        (switch.unwrap(), adapter.unwrap())
    }
}

fn cables() -> impl Strategy<Value = LinkKind> {
    let kinds = [
        (Width::X1, Speed::Sdr),
        (Width::X4, Speed::Sdr),
        (Width::X4, Speed::Ddr),
        (Width::X4, Speed::Fdr),
        (Width::X4, Speed::Hdr),
    ];
    (proptest::sample::select(kinds.to_vec()), 0_u32..60_000).prop_map(
        |((width, speed), millimetres)| LinkKind::new(width, speed, Length::from_mm(millimetres)),
    )
}

fn spans(most_ns: u64) -> impl Strategy<Value = Span> {
    (0..=most_ns).prop_map(Span::from_ns)
}

/// 1 to 6 packets of this size on the wire, and perhaps a part of a block.
fn buffers(wire: u64) -> impl Strategy<Value = Bytes> {
    (1_u64..=6, 0_u64..64)
        .prop_map(move |(packets, rest)| Bytes::from_bytes(wire.div_ceil(64) * 64 * packets + rest))
}

fn rates() -> impl Strategy<Value = Option<Rate>> {
    option::of((1_000_u64..20_000).prop_map(crate::common::mbit))
}

fn vl_tables(data_vls: u8) -> impl Strategy<Value = VlArbitration> {
    let entries = vec((1_u8..=255, option::of(0_u8..=255)), usize::from(data_vls));
    let limit = prop_oneof![Just(0), 1_u8..5, Just(255)];
    (entries, limit, any::<bool>()).prop_map(|(entries, limit_high, empty)| {
        let mut tables = VlArbitration {
            limit_high,
            ..VlArbitration::default()
        };
        if !empty {
            for (vl, (low, high)) in Vl::all().zip(entries) {
                tables.low.push((vl, low));
                tables.high.extend(high.map(|weight| (vl, weight)));
            }
        }
        tables
    })
}

fn switches(wire: u64) -> impl Strategy<Value = SwitchParams> {
    let output_buffer = (buffers(wire), 100_u32..300, any::<bool>()).prop_map(
        |(size, speedup_percent, cut_through)| OutputBuffer {
            crossbar: match cut_through {
                true => CrossbarFeed::CutThrough,
                false => CrossbarFeed::FullRate,
            },
            size,
            speedup_percent,
        },
    );
    let arbitration = prop_oneof![
        Just(Arbitration::RoundRobin),
        Just(Arbitration::OldestFirst)
    ];
    (
        spans(400),
        spans(300),
        option::weighted(0.8, buffers(wire)),
        (
            option::weighted(0.4, 1_u8..=3),
            option::weighted(0.3, 1_u8..=5),
            100_u32..300,
            any::<bool>(),
        ),
        arbitration,
        option::weighted(0.3, output_buffer),
    )
        .prop_map(
            |(latency, credit_delay, buffer, limits, arbitration, output_buffer)| {
                let (read_limit, mut bypass_limit, speedup, is_fifo) = limits;
                let queueing = if is_fifo {
                    Queueing::Fifo
                } else {
                    Queueing::Voq
                };
                bypass_limit = bypass_limit.filter(|_| !is_fifo);
                SwitchParams {
                    latency,
                    credit_delay,
                    buffer,
                    lanes_per_buffer: 1,
                    read_limit,
                    read_speedup_percent: read_limit.map_or(100, |_| speedup),
                    queueing,
                    arbitration,
                    bypass_limit,
                    output_buffer,
                }
            },
        )
}

fn feedback(wire: u64) -> impl Strategy<Value = FeedbackParams> {
    let carrier = prop_oneof![
        2 => Just(BecnCarrier::Cnp),
        1 => Just(BecnCarrier::AckPerPacket),
        1 => Just(BecnCarrier::AckPerMessage),
    ];
    let as_packets =
        (option::of(0_u8..16), 1..=wire, any::<bool>()).prop_map(|(sl, bytes, priority)| {
            let sl = sl.map(|sl| Sl::try_from(sl).unwrap());
            through_fabric(sl, Bytes::from_bytes(bytes), priority)
        });
    let path = prop_oneof![
        1 => spans(5_000).prop_map(past_fabric),
        3 => as_packets,
    ];
    let charge = prop_oneof![Just(0), Just(64), 1..=FeedbackParams::MAX_CHARGE];
    (carrier, path, option::of(spans(20_000)), charge).prop_map(
        |(carrier, path, coalesce, charge)| FeedbackParams {
            carrier: Some(carrier),
            coalesce: coalesce.map(Limit::At),
            charge: Bytes::from_bytes(charge),
            ..path
        },
    )
}

fn configs() -> impl Strategy<Value = EngineConfig> {
    let sizes = proptest::sample::select(vec![256_u64, 1024, 2048, 4096, 10_240]);
    (1_u8..=4, sizes, 0_u64..60).prop_flat_map(|(data_vls, mtu, header)| {
        let wire = mtu + header;
        let sink = prop_oneof![2 => Just(Sink::StoreAndForward), 1 => Just(Sink::CutThrough)];
        let buffer = option::weighted(0.8, buffers(wire));
        let host = (rates(), rates(), sink, buffer, spans(300)).prop_map(
            |(injection_rate, sink_rate, sink, receive_buffer, credit_delay)| HostParams {
                sink,
                injection_rate,
                sink_rate,
                receive_buffer,
                credit_delay,
                ..HostParams::default()
            },
        );
        let sl_to_vl = proptest::array::uniform16(0..data_vls);
        let tables = vl_tables(data_vls);
        (sl_to_vl, tables, switches(wire), host, feedback(wire)).prop_map(
            move |(sl_to_vl, vl_arbitration, switch, host, feedback)| EngineConfig {
                data_vls,
                sl_to_vl,
                vl_arbitration,
                switch,
                host,
                packet: PacketParams {
                    mtu: Bytes::from_bytes(mtu),
                    header: Bytes::from_bytes(header),
                },
                pfc: None,
                feedback,
                latency: LatencyStats::Off,
                seed: 1,
                fast_forward: silvan_model::FastForward::On,
                bit_errors: Vec::new(),
            },
        )
    })
}

fn flows(hosts: usize, mtu: u32) -> impl Strategy<Value = Vec<Flow>> {
    let flow = (
        (0..hosts, 1..hosts),
        0_u8..16,
        0..STOP / 2,
        vec(prop_oneof![Just(mtu), 1..=mtu], 1..=5),
        1_u64..5,
        prop_oneof![Just(0), 0_u64..4_000_000],
    );
    vec(flow, 1..=14).prop_map(move |flows| {
        let one = |((source, step), sl, start, sizes, message, gap)| Flow {
            sl,
            start: Time::from_ps(start),
            stop: Time::from_ps(STOP),
            sizes,
            message,
            gap: Span::from_ps(gap),
            ..Flow::saturating(source, (source + step) % hosts)
        };
        flows.into_iter().map(one).collect()
    })
}

/// 1 to 8 switches, 2 to 12 hosts, up to 4 cables more than a tree.
pub fn cases() -> impl Strategy<Value = Case> {
    let fabric = (1_usize..=8, 2_usize..=12).prop_flat_map(|(switches, hosts)| {
        let trunks: Vec<_> = (1..switches).map(|index| (0..index, cables())).collect();
        let extra = (0..switches, 1..switches.max(2), cables());
        let extra = vec(extra, if switches > 1 { 0..=4 } else { 0..=0 });
        let extra = extra.prop_map(move |extra| {
            let ends = |(a, step, kind)| (a, (a + step) % switches, kind);
            extra.into_iter().map(ends).collect::<Vec<_>>()
        });
        (trunks, extra, vec((0..switches, cables()), hosts))
    });
    let marking = (0_u16..4, 0_u8..4, any::<bool>());
    let steps = vec(1..STOP + STOP / 2, 1..12).prop_map(|mut steps| {
        steps.sort_unstable();
        steps
    });
    (fabric, configs(), marking, steps, any::<u64>()).prop_flat_map(
        |((trunks, extra, hosts), config, marking, steps, seed)| {
            let mtu = u32::try_from(config.packet.mtu.as_u64()).unwrap();
            flows(hosts.len(), mtu).prop_map(move |flows| Case {
                trunks: trunks.clone(),
                extra: extra.clone(),
                hosts: hosts.clone(),
                config: config.clone(),
                flows,
                steps: steps.clone(),
                marking,
                seed,
                choice: PathChoice::Table,
            })
        },
    )
}
