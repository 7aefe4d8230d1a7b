//! Invariants of the engine are checked in every build.
//!
//! A workload that breaks a rule ends the run with an error that names the rule, and numbers beyond a limit are
//! refused.

use silvan_cc::hooks::NoControl;
use silvan_core::{Bytes, HostId, Length, Sl, Span, Time};
use silvan_engine::workload::{Gate, Offer, Poll, Workload};
use silvan_engine::{
    BuildError, CompiledFabric, CrossbarFeed, Engine, EngineConfig, EngineError, InvariantError,
    OutputBuffer,
};
use silvan_fabric::{Fabric, FabricBuilder, ForwardingTables, LinkKind, routing};

use crate::common::{HEADER, MTU, Routed, at, cable, ddr_config, room};

/// Host 0 answers every request with this, and sends none.
#[derive(Debug)]
struct Stubborn(Poll);

impl Workload for Stubborn {
    fn needs_delivery(&self) -> bool {
        false
    }

    fn poll<G: Gate>(&mut self, host: HostId, _: Time, _: &mut G) -> Poll {
        if host.index() == 0 {
            self.0
        } else {
            Poll::Idle
        }
    }

    fn next_change(&self, _: Time) -> Option<Time> {
        None
    }

    fn apply_change(&mut self, _: Time, _: &mut Vec<HostId>) {}
}

fn packets_of(bytes: u32) -> Poll {
    Poll::Send(Offer {
        behind: 0,
        number: 0,
        queue: 0,
        dst: HostId::new(1),
        bytes,
        sl: Sl::ZERO,
        class: 0,
        last: true,
    })
}

/// The error with which a run ends, and ends again if it is continued.
fn fault(answer: Poll, header: u64) -> InvariantError {
    let routed = Routed::star(&[cable("4x DDR 2 m"); 2]);
    let mut config = ddr_config();
    config.packet.header = Bytes::from_bytes(header);
    config.switch.buffer = Some(room(2));
    config.switch.credit_delay = Span::from_us(100);
    let compiled = || CompiledFabric::new(&routed.fabric, &routed.tables, &config).unwrap();
    let end = at(Span::from_ms(1));
    let mut general = Engine::general(compiled(), NoControl, NoControl, Stubborn(answer));
    let error = general.run_until(end).unwrap_err();
    assert_eq!(general.run_until(end), Err(error.clone()));
    let mut lookahead = Engine::lookahead(compiled(), NoControl, NoControl, Stubborn(answer));
    let same = lookahead.run_until(end).unwrap_err();
    let EngineError::Invariant { error, .. } = error else {
        panic!("{error}");
    };
    assert!(matches!(same, EngineError::Invariant { error: other, .. } if other == error));
    error
}

#[test]
fn a_packet_without_credits_ends_the_run() {
    // Two packets fit; the third has no credits.
    let error = fault(packets_of(MTU), HEADER);
    let blocks = i32::try_from(room(1).as_u64() / 64).unwrap();
    assert!(
        matches!(error, InvariantError::NegativeCredits { in_hand, .. } if in_hand == -blocks),
        "{error}"
    );
}

#[test]
fn a_packet_of_another_size_than_the_mtu_allows_ends_the_run() {
    // Without payload and header a packet has no bytes on the wire.
    for (bytes, header) in [(0, 0), (MTU + 1, HEADER), (u32::MAX, HEADER), (u32::MAX, 0)] {
        let error = fault(packets_of(bytes), header);
        let (host, mtu) = (0, MTU);
        assert_eq!(error, InvariantError::PacketSize { host, bytes, mtu });
    }
}

#[test]
fn traffic_that_waits_for_the_past_ends_the_run() {
    let error = fault(Poll::WaitUntil(Time::ZERO), HEADER);
    let (host, until) = (0, Time::ZERO);
    assert_eq!(error, InvariantError::WaitsForThePast { host, until });
}

/// Switches with so many ports each in a row, `cables` between two neighbours, and a host at each end; the
/// cables are of so many lengths.
fn row(switches: usize, ports: u8, cables: u8, lengths: u32) -> (Fabric, ForwardingTables) {
    let mut builder = FabricBuilder::new();
    let kind = |length: u32| LinkKind {
        length: Length::from_mm(1 + length % lengths),
        ..cable("4x DDR 2 m")
    };
    let names = (0..switches).map(|index| format!("S{index}"));
    let row: Vec<_> = names
        .map(|name| builder.add_switch(name, usize::from(ports)).unwrap())
        .collect();
    let mut length = 0;
    for pair in row.windows(2) {
        // Ports 1 to 127 lead back and 128 to 254 onwards; with one cable any two do.
        let (onwards, back) = if cables == 1 { (2, 3) } else { (128, 1) };
        for port in 0..cables {
            let ends = (pair[0].port(onwards + port), pair[1].port(back + port));
            builder.connect(ends.0, ends.1, kind(length)).unwrap();
            length += 1;
        }
    }
    for (name, switch) in [("A", row[0]), ("B", row[switches - 1])] {
        let host = builder.add_host(name).unwrap();
        let port = if name == "A" { 1 } else { ports };
        builder
            .connect(host.port(1), switch.port(port), kind(0))
            .unwrap();
    }
    let fabric = builder.build().unwrap();
    let tables = routing::min_hop_balanced(&fabric).unwrap();
    (fabric, tables)
}

fn refused(fabric: &(Fabric, ForwardingTables), config: &EngineConfig) -> BuildError {
    let compiled = CompiledFabric::new(&fabric.0, &fabric.1, config);
    compiled.map(|_| ()).unwrap_err()
}

/// 599 times 127 cables, each of another length, so that credits come back after 76,073 different
/// times.
#[test]
fn more_credit_delays_than_can_be_numbered_are_refused() {
    let fabric = row(600, 254, 127, u32::MAX);
    let error = refused(&fabric, &ddr_config());
    let BuildError::TooMany { which, found, most } = error else {
        panic!("{error}");
    };
    assert_eq!((which, most), ("different credit delays", 1 << 16));
    // Plus the delay of ports without a cable.
    assert_eq!(found, 599 * 127 + 1);
}

/// 254 x 254 queues of each of 15 lanes in 3000 switches.
#[test]
fn more_queues_than_can_be_numbered_are_refused() {
    let fabric = row(3000, 254, 1, 1);
    let mut config = EngineConfig {
        data_vls: 15,
        ..ddr_config()
    };
    config.switch.output_buffer = Some(OutputBuffer {
        size: Bytes::from_bytes(1 << 20),
        speedup_percent: 100,
        crossbar: CrossbarFeed::FullRate,
    });
    let error = refused(&fabric, &config);
    let stages = 2 * 2999 + 2;
    let expected = BuildError::TooMany {
        which: "queues of packets",
        found: (3000 * 254 * 254 + stages) * 15,
        most: (1 << 31) - 1,
    };
    assert_eq!(error, expected);
    let text = error.to_string();
    assert!(text.contains("at most 2147483647 are supported"), "{text}");
}
