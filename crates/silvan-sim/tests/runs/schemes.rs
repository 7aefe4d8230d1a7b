//! Promises of every registered scheme, on small fabrics with drawn traffic.
//!
//! Listing a scheme covers it. Further promises of a scheme, and parameters that suit such small fabrics, are in
//! [`promises`].

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use silvan_cc::schemes::SchemeName;
use silvan_core::stream::SplitMix64;
use silvan_core::{Bytes, HostId, PortId, Rate, Span, Time, Vl};
use silvan_instances::Fastest;
use silvan_scenario::Scenario;
use silvan_sim::{ColumnData, Session, run};
use silvan_workload::programs::{Driver, Request};

use crate::on_ddr;

/// Fabrics with traffic that each scheme runs on.
const DRAWS: u64 = 8;
/// Rate of all links, MTU, and bytes of a packet on the wire in addition to its payload.
const LINK: &str = "25 Gbit/s";
const MTU: u64 = 2_048;
const HEADER: u64 = 26;
/// Time between two checks of a run.
const STEP: Span = Span::from_us(100);
/// No flow with something to send is without a delivery for so long.
const LONGEST_GAP: Span = Span::from_us(800);

/// Promises of a scheme, and its setup.
struct Promise {
    keys: &'static [(&'static str, &'static str)],
    needs_paths: bool,
    /// True if packets of a flow keep their order.
    in_order: bool,
    /// True if switches discard packets, which are sent again.
    discards: bool,
    /// Time after a burst in which all flows are back at `share` of their links.
    recovery: Span,
    share: f64,
    /// Most undelivered payload of a flow, if the scheme bounds it. The queue of a port is then at most that of the
    /// flows that pass it.
    in_flight: Option<u64>,
    /// Most bytes that wait for a port, if the scheme bounds them itself.
    queue: Option<u64>,
}

/// Promises of a scheme without others.
const COMMON: Promise = Promise {
    keys: &[],
    needs_paths: false,
    in_order: true,
    discards: false,
    recovery: Span::from_us(1_000),
    share: 0.9,
    in_flight: None,
    queue: None,
};

/// Without marks a flow would never leave its paths.
const REPS_MARKS: &[(&str, &str)] = &[
    ("control.reps.k-min", "\"12500 B\""),
    ("control.reps.k-max", "\"50 kB\""),
];

/// The best configuration of pft2021. The published settings throttle a flow that waits alone as well.
const PFT: &[(&str, &str)] = &[
    ("control.pft.enter", "0x250"),
    ("control.pft.escape", "0x2a0"),
    ("control.pft.interval", "\"random\""),
    ("control.pft.m", "18"),
    ("control.pft.n", "0"),
];

const IB_CC_PFT: &[(&str, &str)] = &[
    ("control.ib-cc.adapter.ccti-timer", "8"),
    PFT[0],
    PFT[1],
    PFT[2],
    PFT[3],
    PFT[4],
];

fn promises(scheme: SchemeName) -> Vec<Promise> {
    let one = match scheme.as_str() {
        // The largest index falls to none in 127 steps of the timer.
        "ib-cc" => Promise {
            keys: &[("control.ib-cc.adapter.ccti-timer", "8")],
            recovery: Span::from_ns(127 * 8 * 1_024),
            ..COMMON
        },
        "pft" => Promise {
            keys: PFT,
            ..COMMON
        },
        "ib-cc+pft" => Promise {
            keys: IB_CC_PFT,
            recovery: Span::from_ns(127 * 8 * 1_024),
            ..COMMON
        },
        "ecn" => Promise {
            keys: &[("control.ecn.window", "16")],
            in_flight: Some(16 * MTU),
            recovery: Span::from_us(3_000),
            ..COMMON
        },
        // Half of a rate is regained in five raises, and the rest of it in steps of a twentieth of the link.
        "dcqcn" => Promise {
            keys: &[("control.dcqcn.rate-ai", "\"1.25 Gbit/s\"")],
            recovery: Span::from_us(55 * (5 + 20)),
            ..COMMON
        },
        "timely" => Promise {
            keys: &[
                ("control.timely.delta", "\"100 Mbit/s\""),
                ("control.timely.min-rate", "\"100 Mbit/s\""),
            ],
            recovery: Span::from_us(4_000),
            ..COMMON
        },
        "hpcc" => Promise {
            in_flight: Some(window_of(13)),
            ..COMMON
        },
        "swift" => Promise {
            in_flight: Some(256 * MTU),
            ..COMMON
        },
        // The reference's largest window is one and a half products of rate and round trip.
        "nscc" => Promise {
            keys: &[("control.nscc.base-rtt", "\"4 us\"")],
            in_flight: Some(window_of(6)),
            ..COMMON
        },
        "rccc" => Promise {
            in_flight: Some(window_of(12)),
            ..COMMON
        },
        "half" => Promise {
            keys: &[("control.half.step", "0.01")],
            ..COMMON
        },
        // If all links are full, some paths exceed their capacity for a while by chance.
        "reps" => Promise {
            keys: REPS_MARKS,
            needs_paths: true,
            share: 0.8,
            in_order: false,
            ..COMMON
        },
        // Windows keep queues below the marks by which a flow would leave a path that others use, too.
        "nscc+reps" => Promise {
            keys: &[("control.nscc.base-rtt", "\"4 us\"")],
            needs_paths: true,
            in_order: false,
            share: 0.6,
            in_flight: Some(window_of(6)),
            ..COMMON
        },
        "swift+reps" => Promise {
            keys: REPS_MARKS,
            needs_paths: true,
            in_order: false,
            in_flight: Some(256 * MTU),
            ..COMMON
        },
        "vl-mapping" => return lane_mappings(),
        "srp" => return reservations(),
        // A flow that becomes one to a hotspot changes its lane.
        "dftree" => Promise {
            keys: &[("vl.data-vls", "2")],
            in_order: false,
            ..COMMON
        },
        "recn" => return set_aside_queues(),
        "pair-backpressure" => Promise {
            in_flight: Some(window_of(4)),
            ..COMMON
        },
        "congestion-isolation" => Promise {
            keys: &[("vl.data-vls", "2")],
            ..COMMON
        },
        _ => COMMON,
    };
    vec![one]
}

fn lane_mappings() -> Vec<Promise> {
    let of = |keys| Promise { keys, ..COMMON };
    vec![
        of(&[("vl.data-vls", "2")]),
        of(&[
            ("vl.data-vls", "2"),
            ("control.vl-mapping.mapping", "\"dbbm\""),
        ]),
        of(&[
            ("vl.data-vls", "2"),
            ("control.vl-mapping.mapping", "\"flow2sl\""),
        ]),
        of(&[
            ("vl.data-vls", "9"),
            ("control.vl-mapping.mapping", "\"voqnet\""),
        ]),
        of(&[
            ("vl.data-vls", "2"),
            ("control.vl-mapping.mapping", "\"obqa\""),
        ]),
        of(&[
            ("vl.data-vls", "9"),
            ("control.vl-mapping.mapping", "\"voqsw\""),
        ]),
    ]
}

/// With one set-aside queue, there are usually more roots than queues here.
fn set_aside_queues() -> Vec<Promise> {
    let of = |keys| Promise { keys, ..COMMON };
    vec![
        of(&[("vl.data-vls", "2")]),
        of(&[("vl.data-vls", "4")]),
        of(&[("vl.data-vls", "2"), ("control.recn.variant", "\"fbicm\"")]),
        of(&[("vl.data-vls", "4"), ("control.recn.variant", "\"fbicm\"")]),
    ]
}

/// Packets with a reservation go first, but for one in 32 KiB. Speculative packets wait for half an input buffer at most, in bytes
/// or in time, and two more are let in at once or have a reservation.
fn reservations() -> Vec<Promise> {
    let of = |keys| Promise {
        keys,
        in_order: false,
        discards: true,
        queue: Some(32 * 1_024 + 2 * (MTU + HEADER)),
        ..COMMON
    };
    vec![
        of(&[
            (
                "vl",
                "{ data-vls = 2, high = [[0, 255]], low = [[1, 255]], limit-high = 8 }",
            ),
            ("control.srp.protocol", "\"srp\""),
        ]),
        of(&[
            (
                "vl",
                "{ data-vls = 2, high = [[0, 255]], low = [[1, 255]], limit-high = 8 }",
            ),
            ("control.srp.protocol", "\"smsrp\""),
        ]),
        of(&[
            (
                "vl",
                "{ data-vls = 2, high = [[0, 255]], low = [[1, 255]], limit-high = 8 }",
            ),
            ("control.srp.protocol", "\"lhrp\""),
        ]),
    ]
}

/// Payload that a link carries in so many microseconds, with a packet more.
fn window_of(us: u64) -> u64 {
    let rate: Rate = LINK.parse().unwrap();
    rate.bits_per_sec() / 8 * us / 1_000_000 + MTU
}

/// A burst of flows to one host, next to one flow without end from each host to another one.
struct Draw {
    fabric: String,
    hosts: usize,
    /// Each host sends to the one so many places further.
    shift: usize,
    hotspot: usize,
    senders: Vec<usize>,
    bytes: u64,
    start: Span,
}

impl Draw {
    fn new(scheme: SchemeName, number: u64, promise: &Promise) -> Self {
        // By its name: what is drawn for a scheme does not depend on how many others there are.
        let name = scheme.as_str().bytes();
        let of_name = name.fold(0, |sum: u64, byte| sum.wrapping_mul(31) + u64::from(byte));
        let mut stream = SplitMix64::for_stream(number, of_name);
        let mut below =
            |limit: u64| ((u128::from(stream.next()) * u128::from(limit)) >> 64) as usize;
        let (mut fabric, hosts) = match (promise.needs_paths, number % 2) {
            (false, 0) => {
                let hosts = 5 + below(4);
                (
                    format!("generator = \"single-switch\"\nhosts = {hosts}"),
                    hosts,
                )
            }
            _ => {
                let k = 2 + below(2);
                (
                    format!("generator = \"k-ary-n-tree\"\nk = {k}\nn = 2"),
                    k * k,
                )
            }
        };
        if promise.needs_paths {
            fabric.push_str("\npath-choice = \"ecmp\"");
        }
        let hotspot = below(hosts as u64);
        let mut senders: Vec<usize> = (0..hosts).filter(|host| *host != hotspot).collect();
        senders.truncate(2 + below(hosts as u64 - 2));
        Self {
            fabric,
            hosts,
            shift: 1 + below(hosts as u64 - 1),
            hotspot,
            senders,
            bytes: 32_000 + below(64_000) as u64,
            start: Span::from_us(100 + below(100) as u64),
        }
    }

    /// Time that the link of the hotspot takes for the burst, if the flow without end has its share.
    fn burst_time(&self) -> Span {
        let rate: Rate = LINK.parse().unwrap();
        let packets = self.bytes.div_ceil(MTU) * (self.senders.len() as u64 + 1);
        rate.span_for(Bytes::from_bytes(packets * (MTU + HEADER)))
    }

    fn text(&self, scheme: SchemeName, end: Time) -> String {
        let mut text = format!(
            "[fabric]\n{}\n[link]\nrate = \"{LINK}\"\n[control]\nscheme = \"{}\"\n",
            self.fabric,
            scheme.as_str()
        );
        let end = end.as_ps();
        for host in 0..self.hosts {
            let to = (host + self.shift) % self.hosts;
            text.push_str(&format!(
                "[[traffic.flow]]\nname = \"long-{host}\"\nfrom = \"host-{host:04}\"\nto = \"host-{to:04}\"\n\
                 end = \"{end} ps\"\n"
            ));
        }
        for host in &self.senders {
            text.push_str(&format!(
                "[[traffic.flow]]\nname = \"burst-{host}\"\nfrom = \"host-{host:04}\"\nto = \"host-{:04}\"\n\
                 bytes = \"{} B\"\nstart = \"{} ps\"\n",
                self.hotspot,
                self.bytes,
                self.start.as_ps()
            ));
        }
        text
    }
}

/// Requirements of a session in addition to the scenario's own traffic: none.
#[derive(Debug)]
struct Idle;

impl Driver for Idle {
    fn notify(&mut self, _: u32, _: Time, _: &mut Vec<Request>) {}
}

fn scenario(text: &str, promise: &Promise, more: &[(&str, &str)]) -> Scenario {
    let keys = on_ddr(&[promise.keys, more].concat());
    Scenario::from_toml(text, "schemes.toml", &keys).unwrap()
}

/// Payload that each class has delivered, by its name.
fn delivered(session: &Session) -> BTreeMap<String, u64> {
    let simulation = session.simulation();
    let classes = simulation.classes().iter().enumerate();
    let bytes = |class: usize| simulation.class(class as u16).delivered_bytes;
    classes
        .map(|(class, name)| (name.clone(), bytes(class)))
        .collect()
}

/// Payload that hosts have sent, and received.
fn totals(session: &Session, hosts: usize) -> (u64, u64) {
    let counters = (0..hosts).map(|host| session.simulation().host_counters(HostId::new(host)));
    counters.fold((0, 0), |(sent, received), host| {
        (sent + host.injected_bytes, received + host.delivered_bytes)
    })
}

fn waiting(session: &Session, port: PortId) -> u64 {
    let lanes = 0..session.scenario().engine_config().data_vls;
    let queued = lanes.map(|vl| session.simulation().queued(port, Vl::try_new(vl).unwrap()));
    queued.map(Bytes::as_u64).sum()
}

/// Class of what a session's driver sends, which is nothing here.
const DRIVER: &str = "external";

fn holds(condition: bool, fault: impl FnOnce() -> String) -> Result<(), String> {
    condition.then_some(()).ok_or_else(fault)
}

fn keeps_what_it_promises(
    scheme: SchemeName,
    number: u64,
    promise: &Promise,
) -> Result<(), String> {
    let draw = Draw::new(scheme, number, promise);
    let keys = promise.keys;
    let place = format!(
        "{} {keys:?} on draw {number}: {}",
        scheme.as_str(),
        draw.fabric
    );
    // Work is conserved but for what the scheme holds back too long, which it regains in its time of recovery.
    let burst_ends = Time::ZERO + draw.start + draw.burst_time() * 4 + promise.recovery;
    let window = Span::from_us(500);
    let measured_from = burst_ends + promise.recovery;
    let end = measured_from + window;
    let scenario = scenario(&draw.text(scheme, end), promise, &[]);
    let fabric = scenario.fabric().clone();
    let (_, hot) = fabric.host_attachment(HostId::new(draw.hotspot));
    let mut session = Session::open(&Fastest, scenario, number, Box::new(Idle)).unwrap();

    let mut last: BTreeMap<String, (u64, Time)> = BTreeMap::new();
    let mut at_start = BTreeMap::new();
    let mut most_waiting = 0;
    while session.now() < end {
        let now = session.now();
        let next = (now + STEP).min(if now < measured_from {
            measured_from
        } else {
            end
        });
        session.run_until(next).unwrap();
        session.simulation().audit().unwrap();
        most_waiting = most_waiting.max(waiting(&session, hot));
        let all = delivered(&session);
        for (name, bytes) in all.iter().filter(|(name, _)| *name != DRIVER) {
            let is_done = name.starts_with("burst") && *bytes == draw.bytes;
            let has_begun = name.starts_with("long") || next > Time::ZERO + draw.start;
            let (before, since) = last.entry(name.clone()).or_insert((0, next));
            if *bytes > *before || is_done || !has_begun {
                (*before, *since) = (*bytes, next);
            }
            let gap = next.since(*since);
            holds(gap <= LONGEST_GAP, || {
                format!("{place}: {name} starves for {gap}")
            })?;
        }
        if next >= burst_ends {
            for (name, bytes) in all.iter().filter(|(name, _)| name.starts_with("burst")) {
                holds(*bytes == draw.bytes, || {
                    format!("{place}: {name} is late at {next}")
                })?;
            }
        }
        if next == measured_from {
            at_start = all;
        }
    }

    // All flows without end are back at their share of a link.
    let rate: Rate = LINK.parse().unwrap();
    let packets =
        window.as_ps() as f64 / rate.span_for(Bytes::from_bytes(MTU + HEADER)).as_ps() as f64;
    for (name, bytes) in delivered(&session) {
        if name.starts_with("long") {
            let share = (bytes - at_start[&name]) as f64 / (packets * MTU as f64);
            holds(share >= promise.share, || {
                format!("{place}: {name} has {share:.3} of its link")
            })?;
        }
    }

    // The queue of the hotspot is at most what its flows have in flight.
    if let Some(in_flight) = promise.in_flight {
        let flows = draw.senders.len() as u64 + 1;
        let bound = flows * in_flight.div_ceil(MTU) * (MTU + HEADER);
        holds(most_waiting <= bound, || {
            format!("{place}: {most_waiting} B wait, more than {bound} B")
        })?;
    }

    let bound = promise.queue.unwrap_or(u64::MAX);
    holds(most_waiting <= bound, || {
        format!("{place}: {most_waiting} B wait, more than {bound} B")
    })?;

    // Without new messages the fabric empties, and has delivered all packets.
    session
        .run_until(end + promise.recovery + Span::from_us(500))
        .unwrap();
    let (sent, received) = totals(&session, draw.hosts);
    holds(
        fabric.ports.ids().all(|port| waiting(&session, port) == 0),
        || place.clone(),
    )?;
    let mut lost = 0;
    for port in fabric.ports.ids() {
        let counters = session.simulation().port_counters(port);
        lost += counters.xmit_discards + counters.relay_errors + counters.rcv_errors;
    }
    holds(lost == 0 || promise.discards, || {
        format!("{place}: {lost} packets lost")
    })?;
    // Discarded packets were sent again.
    holds(
        sent - received <= lost * MTU && (sent > received) == (lost > 0),
        || place.clone(),
    )?;
    Ok(())
}

/// Oracle: the times at which hosts start packets, against those at which the last switch delivers them.
fn keeps_order(scheme: SchemeName, promise: &Promise) {
    let draw = Draw::new(scheme, 1, promise);
    let end = Time::ZERO + Span::from_us(500);
    let text = draw.text(scheme, end);
    let plain = scenario(&text, promise, &[]);
    let ports: Vec<String> = (0..draw.hosts)
        .map(|host| {
            let (switch, port) = plain.fabric().host_attachment(HostId::new(host));
            let node = plain.fabric().node_of_switch(switch);
            let name = &plain.fabric().nodes[node].name;
            format!("\"{name}:{}\"", plain.fabric().ports[port].number.as_u8())
        })
        .collect();
    let ports = format!("[{}]", ports.join(", "));
    let traced = scenario(
        &text,
        promise,
        &[
            ("probe.packets.ports", &ports),
            ("run.duration", "\"500 us\""),
        ],
    );
    let output = run(&Fastest, &traced, 1, &mut |_| ControlFlow::Continue(())).unwrap();
    let hops = output.table("packet_hops").unwrap();
    let numbers = |name: &str| match hops.column(name) {
        Some(ColumnData::U32(values)) => values.clone(),
        other => panic!("{name}: {other:?}"),
    };
    let (sources, destinations, classes) =
        (numbers("source"), numbers("destination"), numbers("class"));
    let kinds = hops.text_column("kind").unwrap();
    let born = hops.u64_column("born_ps").unwrap();
    let mut newest = BTreeMap::new();
    let mut packets = 0;
    for row in (0..hops.rows()).filter(|&row| kinds[row] == "data") {
        let flow = (sources[row], destinations[row], classes[row]);
        let before = newest.insert(flow, born[row]);
        assert!(
            before.is_none_or(|before| before < born[row]),
            "{}",
            scheme.as_str()
        );
        packets += 1;
    }
    assert!(packets > 1_000, "{}: {packets} packets", scheme.as_str());
}

/// All but functions of a Python file, of which nothing is known.
fn all() -> impl Iterator<Item = (SchemeName, Promise)> {
    let schemes = SchemeName::ALL.iter().copied();
    let known = schemes.filter(|scheme| scheme.as_str() != "python");
    known.flat_map(|scheme| {
        promises(scheme)
            .into_iter()
            .map(move |promise| (scheme, promise))
    })
}

#[test]
fn schemes_starve_no_flow_bound_queues_recover_and_lose_nothing() {
    let faults: Vec<String> = all()
        .flat_map(|(scheme, promise)| {
            (0..DRAWS)
                .filter_map(move |number| keeps_what_it_promises(scheme, number, &promise).err())
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn schemes_keep_the_order_of_each_flow() {
    for (scheme, promise) in all().filter(|(_, promise)| promise.in_order) {
        keeps_order(scheme, &promise);
    }
}
