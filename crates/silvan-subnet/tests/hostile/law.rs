//! Properties of a subnet whose nodes answer anything, and of clients of the metrics that send anything.
//!
//! `main.rs` draws bytes, and so do the fuzz targets `subnet` and `page`.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, LazyLock};

use silvan_core::{MonotonicTime, PortNumber, Span};
use silvan_mad::CounterCapabilities;
use silvan_subnet::client::{Client, Limits};
use silvan_subnet::discovery::{Peer, Subnet, discover};
use silvan_subnet::endpoint::{Endpoint, EndpointLimits};
use silvan_subnet::fake::{SharedWorld, World};
use silvan_subnet::metrics::{ConnectionMetrics, Page};
use silvan_subnet::sweep::{SweepPlan, SweptPort};
use silvan_subnet::tables::{host_lids, read_tables};
use silvan_subnet::ticks::{TickQuery, read_ticks};
use silvan_subnet::transport::{Incoming, Outgoing, Transport, TransportError};

/// First byte of an attribute in a datagram of subnet management.
const ATTRIBUTE_AT: usize = 64;

/// A subnet whose answers drawn bytes change; those after the last byte are right.
struct Hostile<'a> {
    subnet: SharedWorld,
    drawn: &'a [u8],
}

impl Hostile<'_> {
    fn byte(&mut self) -> u8 {
        let (&first, rest) = self.drawn.split_first().unwrap_or((&0, &[]));
        self.drawn = rest;
        first
    }

    fn change(&mut self, incoming: &mut Incoming) {
        let length = match self.byte() % 8 {
            0..4 => return,
            4 => 1,
            5 => 8,
            6 => {
                incoming.unanswered = true;
                return;
            }
            // A byte of the header.
            _ => {
                let at = usize::from(self.byte()) % ATTRIBUTE_AT;
                incoming.mad[at] = self.byte();
                return;
            }
        };
        let rest = incoming.mad.len() - ATTRIBUTE_AT - length;
        let first = ATTRIBUTE_AT + usize::from(self.byte()) % rest;
        for at in first..first + length {
            incoming.mad[at] = self.byte();
        }
    }
}

impl Transport for Hostile<'_> {
    fn now(&mut self) -> MonotonicTime {
        self.subnet.now()
    }

    fn unix_time(&mut self) -> u64 {
        self.subnet.unix_time()
    }

    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<(), TransportError> {
        self.subnet.send(outgoing)
    }

    fn receive(&mut self, limit: Span) -> Result<Option<Incoming>, TransportError> {
        let mut incoming = self.subnet.receive(limit)?;
        if let Some(incoming) = &mut incoming {
            self.change(incoming);
        }
        Ok(incoming)
    }

    fn pause(&mut self, span: Span) {
        self.subnet.pause(span);
    }
}

/// Discovers, reads tables, ticks and counters, while drawn bytes change the answers.
///
/// # Panics
/// If what is found contradicts itself.
pub fn play(drawn: &[u8]) {
    let subnet = SharedWorld::new(World::testbed(1));
    let mut client = Client::new(Hostile { subnet, drawn }, Limits::DEFAULT);
    let found = discover(&mut client).expect("the port stays");
    let Some(found) = found else {
        return;
    };
    check_subnet(&found);
    let tables = read_tables(&mut client, &found).expect("the port stays");
    for table in tables.values() {
        assert!(table.ports.len() <= 0xc000);
    }
    let lids = host_lids(&mut client, &found, &tables).expect("the port stays");
    assert!(lids.values().all(|lid| lid.is_unicast()));
    sweep(&mut client, &found);
}

fn check_subnet(found: &Subnet) {
    let guids: BTreeSet<_> = found.switches.iter().map(|switch| switch.guid).collect();
    let lids: BTreeSet<_> = found.switches.iter().filter_map(|one| one.lid).collect();
    let with_lid = found.switches.iter().filter(|one| one.lid.is_some());
    assert_eq!(guids.len(), found.switches.len(), "a switch is there twice");
    assert_eq!(lids.len(), with_lid.count(), "two switches have a LID");
    for switch in &found.switches {
        assert!(!switch.name.chars().any(char::is_control));
        for (port, number) in switch.ports.iter().zip(1..) {
            let Peer::Switch(guid, far) = port.peer else {
                continue;
            };
            let peer = found.switches.iter().find(|one| one.guid == guid);
            let back = peer.and_then(|one| one.ports.get(usize::from(far.as_u8()) - 1));
            let back = back.expect("a cable leads to a port that there is").peer;
            assert_eq!(back, Peer::Switch(switch.guid, PortNumber::new(number)));
        }
    }
    for adapter in &found.adapters {
        assert!(found.hosts.contains_key(&adapter.guid));
        assert!(guids.contains(&adapter.switch.0));
    }
    let mut names = found.hosts.values();
    assert!(names.all(|name| !name.chars().any(char::is_control)));
}

fn sweep(client: &mut Client<Hostile<'_>>, found: &Subnet) {
    let mut plan = SweepPlan::default();
    let mut ticks = Vec::new();
    for (number, switch) in (0..).zip(&found.switches) {
        let Some(lid) = switch.lid else { continue };
        plan.add_node(number, lid, switch.guid);
        for port in 1..=switch.ports.len().min(40) as u8 {
            let port = PortNumber::new(port);
            plan.add_port(SweptPort {
                number: port,
                extended: true,
                congestion: true,
                notifications: true,
                capabilities: CounterCapabilities::default(),
            });
            let node = number;
            ticks.push((switch.guid, TickQuery { node, lid, port }));
        }
    }
    let asked: BTreeSet<_> = ticks.iter().map(|(guid, _)| *guid).collect();
    let codes = read_ticks(client, ticks).expect("the port stays");
    assert_eq!(codes.len(), asked.len());
    let answers = plan.sweep(client, None).expect("the port stays");
    let ports: usize = (0..answers.nodes.len())
        .map(|node| plan.ports_of(node).len())
        .sum();
    assert_eq!(answers.ports.len(), ports);
}

/// A page with a metric.
#[derive(Default)]
struct Short(ConnectionMetrics);

impl Page for Short {
    fn text(&self) -> String {
        "up 1\n# EOF\n".to_owned()
    }

    fn connections(&self) -> &ConnectionMetrics {
        &self.0
    }
}

static ENDPOINT: LazyLock<Endpoint> = LazyLock::new(|| {
    let addresses = ["127.0.0.1:0".parse().expect("it is an address")];
    let limits = EndpointLimits::default();
    Endpoint::open(
        &addresses,
        limits,
        Arc::new(Short::default()),
        Box::new(|_| {}),
    )
    .expect("a port is free")
});

/// Sends bytes as a request for the metrics, and then a right one.
///
/// # Panics
/// If an answer is none, or the endpoint no longer answers.
pub fn request(bytes: &[u8]) {
    let answer = exchange(bytes);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."));
    assert!(answer.len() < 1 << 10, "a short page has a short answer");
    let answer = exchange(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert!(answer.starts_with(b"HTTP/1.1 200 OK"));
    assert!(answer.ends_with(b"\r\nup 1\n"));
}

fn exchange(bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(ENDPOINT.address()).expect("the endpoint accepts");
    // The endpoint may close the connection first.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}
