use std::collections::{BTreeMap, VecDeque};

use silvan_core::{Bytes, Credits, HostId, IdVec, PortId, Rate, Span, SwitchId, Time, Vl};
use silvan_fabric::routing::Vls;
use silvan_fabric::{Fabric, ForwardingTables};

use crate::crossbar::{Crossbar, CrossbarId, Output, OutputLane};
use crate::event::{Agenda, Event};
use crate::host::{FlowState, Host};
use crate::link::{Location, Receiver, ReceiverId, Thresholds, Transmitter, TransmitterId};
use crate::model::FlitModel;
use crate::params::{Arbitration, Flow, OutputBuffer, Parameters, VlArbitration};

impl FlitModel {
    /// A model of `fabric` at time zero, with `flows` to send.
    ///
    /// Panics for a flow to its own host or of empty packets, an absent lane, or an output buffer without a speed.
    #[must_use]
    pub fn new(
        fabric: &Fabric,
        tables: &ForwardingTables,
        parameters: &Parameters,
        flows: &[Flow],
    ) -> Self {
        let builder = Builder::new(fabric, parameters);
        let mut agenda = Agenda::default();
        let mut hosts = builder.hosts();
        let mut states = Vec::new();
        for flow in flows {
            let tables = parameters.tables.as_ref();
            let own = tables.and_then(|tables| tables.host(flow.source));
            let vl = own.unwrap_or(&parameters.sl_to_vl)[flow.sl.index()];
            assert!(vl < parameters.data_vls, "the lane of the flow exists");
            let vl = Vl::try_from(vl).expect("a data VL");
            hosts[flow.source].flows.push(states.len());
            states.push(FlowState::new(flow, vl));
            agenda.add(flow.start, Event::Inject { host: flow.source });
        }
        Self {
            now: Time::ZERO,
            agenda,
            header: parameters.header,
            injection_rate: parameters.host.injection_rate,
            sink_rate: parameters.host.sink_rate,
            sink: parameters.host.sink,
            host_arbitration: parameters.host.arbitration,
            packets: IdVec::new(),
            transmitters: builder.transmitters(),
            receivers: builder.receivers(),
            crossbars: builder.crossbars(tables),
            hosts,
            flows: states,
            ports: fabric
                .ports
                .ids()
                .map(|port| {
                    let cabled = fabric.ports[port].peer.is_some();
                    cabled.then(|| (builder.link_transmitter(port), builder.link_receiver(port)))
                })
                .collect(),
            deliveries: Vec::new(),
            loss: None,
            at_arrivals: Vec::new(),
            at_departures: Vec::new(),
        }
    }
}

/// Every cabled port has a transmitter and a receiver, with output buffers another pair. Crossbars' transmitters come
/// first: a packet enters a buffer before the buffer's output chooses.
struct Builder<'a> {
    fabric: &'a Fabric,
    parameters: &'a Parameters,
    cabled: Vec<PortId>,
    buffered: Vec<PortId>,
}

impl<'a> Builder<'a> {
    fn new(fabric: &'a Fabric, parameters: &'a Parameters) -> Self {
        let cabled: Vec<PortId> = fabric
            .ports
            .ids()
            .filter(|&port| fabric.ports[port].peer.is_some())
            .collect();
        let has_buffer = parameters.switch.output_buffer.is_some();
        let buffered = cabled
            .iter()
            .copied()
            .filter(|&port| has_buffer && switch_of(fabric, port).is_some())
            .collect();
        Self {
            fabric,
            parameters,
            cabled,
            buffered,
        }
    }

    fn link_transmitter(&self, port: PortId) -> TransmitterId {
        TransmitterId::new(self.buffered.len() + place_of(&self.cabled, port))
    }

    fn link_receiver(&self, port: PortId) -> ReceiverId {
        ReceiverId::new(place_of(&self.cabled, port))
    }

    fn buffer_transmitter(&self, port: PortId) -> TransmitterId {
        TransmitterId::new(place_of(&self.buffered, port))
    }

    fn buffer_receiver(&self, port: PortId) -> ReceiverId {
        ReceiverId::new(self.cabled.len() + place_of(&self.buffered, port))
    }

    fn buffer_crossbar(&self, port: PortId) -> CrossbarId {
        CrossbarId::new(self.fabric.switch_count() + place_of(&self.buffered, port))
    }

    fn is_buffered(&self, port: PortId) -> bool {
        self.buffered.binary_search(&port).is_ok()
    }

    fn output_buffer(&self) -> OutputBuffer {
        let buffer = self.parameters.switch.output_buffer;
        buffer.expect("only called for ports with an output buffer")
    }

    fn peer(&self, port: PortId) -> PortId {
        self.fabric.ports[port].peer.expect("a cabled port")
    }

    fn rate(&self, port: PortId) -> Rate {
        let link = self.fabric.ports[port].link.expect("a cabled port");
        self.fabric.links[link].data_rate()
    }

    fn propagation(&self, port: PortId) -> Span {
        let link = self.fabric.ports[port].link.expect("a cabled port");
        self.fabric.links[link].propagation()
    }

    fn input_buffer(&self, port: PortId) -> (Credits, Span) {
        let Parameters { switch, host, .. } = self.parameters;
        match switch_of(self.fabric, port) {
            Some(_) => (whole_blocks(switch.buffer), switch.credit_delay),
            None => (whole_blocks(host.receive_buffer), host.credit_delay),
        }
    }

    fn thresholds(&self, port: PortId) -> Option<Thresholds> {
        let pfc = self.parameters.pfc?;
        let frames = [pfc.max_frame, pfc.pause_frame].map(|frame| self.rate(port).span_for(frame));
        let interfaces = pfc.interface_delay + pfc.interface_delay;
        let on_cable = frames[0] + frames[1] + self.propagation(port);
        Some(Thresholds {
            xoff: pfc.xoff,
            xon: pfc.xon,
            buffer: pfc.buffer,
            delay: on_cable + interfaces + pfc.response,
        })
    }

    fn crossbar_location(&self, port: PortId) -> Location {
        let node = self.fabric.ports[port].node;
        match switch_of(self.fabric, port) {
            Some(switch) => {
                let before = self.switch_ports(switch).filter(|&other| other < port);
                Location::Crossbar(CrossbarId::new(switch.index()), before.count())
            }
            None => {
                let host = self.fabric.nodes[node].as_host();
                Location::Host(host.expect("a node is a switch or a host"))
            }
        }
    }

    fn switch_ports(&self, switch: SwitchId) -> impl Iterator<Item = PortId> + '_ {
        let ports = self.fabric.switch(switch).ports();
        ports.filter(|&port| self.fabric.ports[port].peer.is_some())
    }

    fn transmitters(&self) -> IdVec<TransmitterId, Transmitter> {
        let lanes = usize::from(self.parameters.data_vls);
        let into_buffers = self.buffered.iter().map(|&port| {
            let OutputBuffer {
                size,
                speedup_percent,
                cut_through: _,
            } = self.output_buffer();
            let percent_bits = self.rate(port).bits_per_sec() * u64::from(speedup_percent);
            let bits = percent_bits.div_ceil(100);
            Transmitter::new(
                self.crossbar_location(port),
                Rate::from_bits_per_sec(bits).expect("a crossbar that moves"),
                Span::ZERO,
                self.buffer_receiver(port),
                vec![whole_blocks(size); lanes],
            )
        });
        let into_links = self.cabled.iter().map(|&port| {
            let location = if self.is_buffered(port) {
                Location::Crossbar(self.buffer_crossbar(port), 0)
            } else {
                self.crossbar_location(port)
            };
            let peer = self.peer(port);
            let transmitter = Transmitter::new(
                location,
                self.rate(port),
                self.propagation(port),
                self.link_receiver(peer),
                vec![self.input_buffer(peer).0; lanes],
            );
            Transmitter {
                paused: self.parameters.pfc.map(|_| vec![None; lanes]),
                ..transmitter
            }
        });
        into_buffers.chain(into_links).collect()
    }

    fn receivers(&self) -> IdVec<ReceiverId, Receiver> {
        let lanes = self.parameters.data_vls;
        let from_links = self.cabled.iter().map(|&port| {
            let (capacity, delay) = self.input_buffer(port);
            let mut receiver = Receiver::new(
                self.crossbar_location(port),
                self.link_transmitter(self.peer(port)),
                self.propagation(port) + delay,
                capacity,
                lanes,
            );
            receiver.thresholds = self.thresholds(port);
            receiver
        });
        let in_buffers = self.buffered.iter().map(|&port| {
            Receiver::new(
                Location::Crossbar(self.buffer_crossbar(port), 0),
                self.buffer_transmitter(port),
                Span::ZERO,
                whole_blocks(self.output_buffer().size),
                lanes,
            )
        });
        from_links.chain(in_buffers).collect()
    }

    fn crossbars(&self, tables: &ForwardingTables) -> IdVec<CrossbarId, Crossbar> {
        let lanes = vec![VecDeque::new(); usize::from(self.parameters.data_vls)];
        let switches = self.fabric.switch_ids().map(|switch| {
            let ports: Vec<PortId> = self.switch_ports(switch).collect();
            let transmitter = |port| {
                if self.is_buffered(port) {
                    self.buffer_transmitter(port)
                } else {
                    self.link_transmitter(port)
                }
            };
            let route = |host: HostId| {
                let node = self.fabric.switch(switch);
                let number = tables.to_host(switch, host)?;
                ports.binary_search(&node.port(number)?).ok()
            };
            Crossbar {
                latency: self.parameters.switch.latency,
                arbitration: self.parameters.switch.arbitration,
                read_limit: self.parameters.switch.read_limit.map(usize::from),
                read_speedup_percent: self.parameters.switch.read_speedup_percent.into(),
                queueing: self.parameters.switch.queueing,
                arrived: vec![lanes.clone(); ports.len()],
                inputs: ports.iter().map(|&port| self.link_receiver(port)).collect(),
                read_turns: vec![0; ports.len()],
                outputs: ports
                    .iter()
                    .map(|&port| {
                        let output = self.output(transmitter(port), ports.len());
                        let cuts_through =
                            self.is_buffered(port) && self.output_buffer().cut_through;
                        Output {
                            paces: if cuts_through {
                                self.link_transmitter(port)
                            } else {
                                output.transmitter
                            },
                            ..output
                        }
                    })
                    .collect(),
                vls: self.vls(switch, &ports),
                routes: self.fabric.host_ids().map(route).collect(),
            }
        });
        let buffers = self.buffered.iter().map(|&port| Crossbar {
            latency: Span::ZERO,
            arbitration: Arbitration::OldestFirst,
            read_limit: self.parameters.switch.read_limit.map(usize::from),
            read_speedup_percent: self.parameters.switch.read_speedup_percent.into(),
            queueing: self.parameters.switch.queueing,
            arrived: vec![lanes.clone()],
            inputs: vec![self.buffer_receiver(port)],
            read_turns: vec![0],
            outputs: vec![self.output(self.link_transmitter(port), 1)],
            vls: Vec::new(),
            routes: IdVec::filled(Some(0), self.fabric.host_count()),
        });
        switches.chain(buffers).collect()
    }

    fn vls(&self, switch: SwitchId, ports: &[PortId]) -> Vec<Vec<Vls>> {
        let Some(tables) = &self.parameters.tables else {
            return Vec::new();
        };
        let number = |port: PortId| self.fabric.ports[port].number;
        let row = |&input: &PortId| {
            let lanes = ports.iter().map(|&output| {
                let vls = tables.switch(switch, number(input), number(output));
                *vls.unwrap_or(&self.parameters.sl_to_vl)
            });
            lanes.collect()
        };
        ports.iter().map(row).collect()
    }

    fn output(&self, transmitter: TransmitterId, inputs: usize) -> Output {
        let tables: &VlArbitration = &self.parameters.switch.vl_arbitration;
        Output {
            transmitter,
            paces: transmitter,
            vl_arbiter: crate::vl_arbiter::VlArbiter::new(tables),
            lanes: (0..self.parameters.data_vls)
                .map(|_| OutputLane::new(inputs))
                .collect(),
        }
    }

    fn hosts(&self) -> IdVec<HostId, Host> {
        let host = |host| {
            let port = self.fabric.host_port(host);
            Host {
                transmitter: self.link_transmitter(port),
                receiver: self.link_receiver(port),
                flows: Vec::new(),
                first: 0,
                chosen: BTreeMap::new(),
                paced_until: Time::ZERO,
                sink_free: Time::ZERO,
            }
        };
        self.fabric.host_ids().map(host).collect()
    }
}

fn switch_of(fabric: &Fabric, port: PortId) -> Option<SwitchId> {
    fabric.nodes[fabric.ports[port].node].as_switch()
}

fn place_of(ports: &[PortId], port: PortId) -> usize {
    ports.binary_search(&port).expect("the port is in the list")
}

fn whole_blocks(buffer: Bytes) -> Credits {
    let blocks = buffer.as_u64() / Credits::BLOCK_BYTES;
    Credits::new(u32::try_from(blocks).expect("fewer than 2^32 blocks"))
}
