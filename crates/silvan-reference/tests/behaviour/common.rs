//! Fabrics, parameters and flows that the tests share.

use silvan_core::{Bytes, HostId, Rate, Sl, Span, Time};
use silvan_fabric::{Fabric, FabricBuilder, ForwardingTables, LinkKind, routing};
use silvan_reference::{
    Arbitration, FlitModel, Flow, HostArbitration, HostParameters, Parameters, Queueing, Sink,
    SwitchParameters, VlArbitration,
};

pub const HEADER: u64 = 26;
pub const LATENCY: Span = Span::from_ns(200);
pub const CREDIT_DELAY: Span = Span::from_ns(100);

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

/// Time of a packet of this payload on a link of this kind, header included.
pub fn wire_time(kind: LinkKind, payload: u64) -> Span {
    kind.data_rate()
        .span_for(Bytes::from_bytes(payload + HEADER))
}

/// Bytes that hold exactly `packets` packets of this payload in whole blocks.
pub fn room(packets: u64, payload: u64) -> Bytes {
    Bytes::from_bytes((payload + HEADER).div_ceil(64) * 64 * packets)
}

pub fn host(index: usize) -> HostId {
    HostId::new(index)
}

pub fn sl(value: u8) -> Sl {
    Sl::try_from(value).unwrap()
}

pub fn at(span: Span) -> Time {
    Time::ZERO + span
}

pub fn gbit(rate: u64) -> Option<Rate> {
    Rate::from_bits_per_sec(rate * 1_000_000_000)
}

/// Parameters with one lane, ample buffers, round robin, and hosts without limits.
pub fn parameters() -> Parameters {
    Parameters {
        data_vls: 1,
        sl_to_vl: [0; 16],
        tables: None,
        header: Bytes::from_bytes(HEADER),
        pfc: None,
        switch: SwitchParameters {
            latency: LATENCY,
            credit_delay: CREDIT_DELAY,
            buffer: Bytes::from_bytes(1 << 20),
            read_limit: None,
            read_speedup_percent: 100,
            queueing: Queueing::Voq,
            arbitration: Arbitration::RoundRobin,
            output_buffer: None,
            vl_arbitration: VlArbitration::equal(1, 255),
        },
        host: HostParameters {
            injection_rate: None,
            sink_rate: None,
            arbitration: HostArbitration::HeadOfLine,
            sink: Sink::StoreAndForward,
            receive_buffer: Bytes::from_bytes(1 << 20),
            credit_delay: CREDIT_DELAY,
        },
    }
}

/// Two lanes with SL = VL and the given arbitration tables.
pub fn two_lanes(vl_arbitration: VlArbitration) -> Parameters {
    let mut parameters = parameters();
    parameters.data_vls = 2;
    parameters.sl_to_vl[1] = 1;
    parameters.switch.vl_arbitration = vl_arbitration;
    parameters
}

/// Packets without end and without pause, from time zero, on SL 0.
pub fn saturating(source: usize, destination: usize, payload: u64) -> Flow {
    Flow {
        source: host(source),
        destination: host(destination),
        sl: Sl::ZERO,
        start: Time::ZERO,
        packets: None,
        payload: Bytes::from_bytes(payload),
        gap: Span::ZERO,
    }
}

/// A flow of `packets` packets, as fast as possible, from `start`, on SL 0.
pub fn burst(source: usize, destination: usize, payload: u64, packets: u64, start: Time) -> Flow {
    Flow {
        start,
        packets: Some(packets),
        ..saturating(source, destination, payload)
    }
}

/// A fabric with its minimal routes.
pub struct Routed {
    pub fabric: Fabric,
    pub tables: ForwardingTables,
}

impl Routed {
    pub fn new(fabric: Fabric) -> Self {
        let tables = routing::min_hop_balanced(&fabric).unwrap();
        Self { fabric, tables }
    }

    /// Switches in a row; `hosts[i]` are the cables of the hosts on switch `i`, which are numbered
    /// switch by switch, and `trunks[i]` connects switches `i` and `i + 1`. Hosts are on the first
    /// ports of a switch, then comes the trunk to the previous one.
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
            if let Some(previous) = previous {
                let to_previous = switch.port(u8::try_from(ports).unwrap() - 1);
                builder
                    .connect(previous, to_previous, trunks[index - 1])
                    .unwrap();
            }
            previous = Some(switch.port(u8::try_from(ports).unwrap()));
        }
        Self::new(builder.build().unwrap())
    }

    pub fn run(&self, parameters: &Parameters, flows: &[Flow], until: Time) -> FlitModel {
        let mut model = FlitModel::new(&self.fabric, &self.tables, parameters, flows);
        model.run_until(until);
        model
    }

    /// Runs until nothing moves any more, and checks that every packet was delivered.
    pub fn drain(&self, parameters: &Parameters, flows: &[Flow]) -> FlitModel {
        let model = self.run(parameters, flows, Time::MAX);
        assert_eq!(model.packets_under_way(), 0, "everything is delivered");
        for (index, flow) in flows.iter().enumerate() {
            assert_eq!(Some(model.injected_packets(index)), flow.packets);
        }
        model
    }
}

/// Returns the times at which the packets of a flow were done, in order.
pub fn done_times(model: &FlitModel, flow: usize) -> Vec<Time> {
    model
        .deliveries()
        .iter()
        .filter(|delivery| delivery.flow == flow)
        .map(|delivery| delivery.done)
        .collect()
}
