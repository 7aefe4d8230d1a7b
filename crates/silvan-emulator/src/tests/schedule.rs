//! Faults at given instants: what they do to traffic and counters, and files that do not hold.

use proptest::prelude::*;
use silvan_core::Span;
use silvan_fabric::{Speed, Width};
use silvan_mad::{ClassPortInfo, performance_capability2};

use super::*;
use silvan_scenario::faults::cabled_port;

use crate::faults::{FaultSchedule, Timetable};

fn timetable(clients: &Clients, text: &str) -> Result<Timetable, String> {
    let schedule = FaultSchedule {
        text: text.to_owned(),
        name: "faults.toml".to_owned(),
    };
    Timetable::new(&[], Some(&schedule), &clients.subnet.fabric).map_err(|error| error.to_string())
}

/// Lets the fabric run to an instant as the server does; returns what has happened.
pub(super) fn run_to(clients: &mut Clients, faults: &mut Timetable, end: Time) -> Vec<String> {
    let mut happened = faults.apply(clients, 1.0);
    while clients.subnet.now() < end {
        let until = faults.next().map_or(end, |time| end.min(time));
        clients.subnet.step(until).unwrap();
        happened.extend(faults.apply(clients, 1.0));
    }
    happened
}

fn at_us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Payload delivered while time goes on by so many microseconds, in Gbit/s.
fn gbps(clients: &mut Clients, faults: &mut Timetable, us: u64) -> f64 {
    let fabric = clients.subnet.fabric.clone();
    let start = clients.subnet.now();
    let before = clients.subnet.plane.delivered_bytes(&fabric);
    run_to(clients, faults, start + Span::from_us(us));
    let bytes = clients.subnet.plane.delivered_bytes(&fabric) - before;
    bytes as f64 * 8e-3 / us as f64
}

/// The flow of LINE has 4 Gbit/s of payload, and its links 16 of data. A packet of an MTU has 2,048 bytes of
/// payload and 26 of headers and CRCs.
#[test]
fn a_receiver_is_slow_for_as_long_as_it_is_told() {
    let mut clients = clients(Start::Configured);
    let text = "[[fault]]\ndo = \"slow\"\nat = \"100 us\"\nfor = \"300 us\"\nhost = \"c\"\nrate = \"1 Gbit/s\"\n";
    let mut faults = timetable(&clients, text).unwrap();
    run_to(&mut clients, &mut faults, at_us(60));
    let before = gbps(&mut clients, &mut faults, 40);
    assert!((before - 4.0).abs() < 0.5, "{before}");
    run_to(&mut clients, &mut faults, at_us(150));
    let slow = gbps(&mut clients, &mut faults, 200);
    assert!((slow - 1.0).abs() < 0.1, "{slow}");
    let happened = run_to(&mut clients, &mut faults, at_us(450));
    assert_eq!(happened, ["at 0.000400 s: slow receiver c ends"]);
    // Packets that were accepted before are received at the low rate.
    run_to(&mut clients, &mut faults, at_us(3_000));
    let after = gbps(&mut clients, &mut faults, 200);
    assert!((after - 4.0).abs() < 0.1, "{after}");
}

#[test]
fn a_degraded_cable_runs_at_its_lower_rate_until_it_is_repaired() {
    let mut clients = clients(Start::Configured);
    let text = "[[fault]]\ndo = \"degrade\"\nat = \"0 s\"\nfor = \"1 ms\"\nport = \"c\"\nwidth = \"1x\"\nspeed = \"SDR\"\n";
    let mut faults = timetable(&clients, text).unwrap();
    run_to(&mut clients, &mut faults, Time::ZERO);
    let active = |clients: &Clients| {
        let port = cabled_port(&clients.subnet.fabric, "c").unwrap();
        let info = &clients.subnet.record(port).info;
        (
            info.link_width_active,
            info.link_speed_active.get(),
            info.link_width_supported,
        )
    };
    // 1x and 2.5 Gbit/s a lane; the port still supports what it did.
    let (width, speed, supported) = active(&clients);
    assert_eq!((width, speed), (1, 1));
    assert!(supported & 2 != 0);
    run_to(&mut clients, &mut faults, at_us(200));
    // 2.5 Gbit/s in 8b/10b are 2 Gbit/s of data; 2,048 of 2,074 bytes are payload.
    let measured = gbps(&mut clients, &mut faults, 700);
    let expected = 2.0 * 2048.0 / 2074.0;
    assert!((measured / expected - 1.0).abs() < 0.02, "{measured}");
    run_to(&mut clients, &mut faults, at_us(1_000));
    assert_eq!(active(&clients).0, 2);
    assert!(gbps(&mut clients, &mut faults, 100) > 4.0);
}

/// Tools see a cable that is degraded for the whole run as one that runs below what its ports support, and none where a cable is
/// cut. Faults that come later are those of the timetable.
#[test]
fn faults_of_the_scenario_are_those_of_the_live_fabric() {
    let text = format!(
        "{LINE}[[fault]]\ndo = \"degrade\"\nport = \"c\"\nwidth = \"1x\"\n[[fault]]\ndo = \"cut\"\nport = \"left:5\"\n\
         [[fault]]\ndo = \"slow\"\nat = \"100 us\"\nhost = \"c\"\nrate = \"1 Gbit/s\"\n"
    );
    let scenario = Scenario::from_toml(&text, "line.toml", &[]).unwrap();
    let subnet = Subnet::new(&Fastest, &scenario, Start::Configured, None).unwrap();
    let mut clients = Clients::new(subnet, None).unwrap();
    let fabric = clients.subnet.fabric.clone();
    let port = cabled_port(&fabric, "c").unwrap();
    let info = &clients.subnet.record(port).info;
    assert_eq!((info.link_width_active, info.link_width_supported), (1, 3));
    assert!(cabled_port(&fabric, "left:5").is_err());
    let mut faults = Timetable::new(scenario.faults(), None, &fabric).unwrap();
    let happened = run_to(&mut clients, &mut faults, at_us(150));
    assert_eq!(happened, ["at 0.000100 s: slow receiver c"]);
}

#[test]
fn a_flapping_cable_goes_down_once_in_each_period() {
    let mut clients = clients(Start::Configured);
    let text = "[[fault]]\ndo = \"cut\"\nat = \"10 us\"\nfor = \"5 us\"\nevery = \"20 us\"\nport = \"left:5\"\n";
    let mut faults = timetable(&clients, text).unwrap();
    let happened = run_to(&mut clients, &mut faults, at_us(200));
    // At 10, 30 ... 190 us, and back 5 us later.
    assert_eq!(happened.len(), 20);
    assert_eq!(happened[0], "at 0.000010 s: cut of the cable in left:5");
    assert_eq!(
        happened[1],
        "at 0.000015 s: cut of the cable in left:5 ends"
    );
    let port = cabled_port(&clients.subnet.fabric, "left:5").unwrap();
    assert_eq!(clients.subnet.record(port).link_downed, 10);
    assert!(clients.subnet.record(port).is_linked());
}

#[test]
fn symbol_errors_grow_with_simulated_time() {
    let mut clients = clients(Start::Configured);
    let text = "[[fault]]\ndo = \"symbol-errors\"\nat = \"100 us\"\nfor = \"500 us\"\nport = \"c\"\nper-second = 1e5\n";
    let mut faults = timetable(&clients, text).unwrap();
    let me = attach(&mut clients, "a", false);
    let c = lid(&clients, "c");
    let counters = PortCounters {
        port_select: PortNumber::new(1),
        ..PortCounters::default()
    };
    let request = performance(counters, Method::GET);
    let count = |clients: &mut Clients| match ask(clients, me, c, &request).body {
        Body::Performance(PerformanceAttribute::PortCounters(counts)) => counts.symbol_errors,
        _ => panic!("no counters"),
    };
    for (us, expected) in [(100, 0), (350, 25), (600, 50), (900, 50)] {
        run_to(&mut clients, &mut faults, at_us(us));
        assert_eq!(count(&mut clients), expected, "after {us} us");
    }
}

/// Oracle: the engine's time, and the widths of the specification: 32 bits are full, and 64 go on.
#[test]
fn waiting_is_counted_beyond_32_bits_where_the_agent_says_so() {
    let mut clients = clients(Start::Configured);
    let text = "[[fault]]\ndo = \"slow\"\nat = \"0 s\"\nhost = \"c\"\nrate = \"1 Gbit/s\"\n";
    let mut faults = timetable(&clients, text).unwrap();
    let me = attach(&mut clients, "a", false);
    let a = lid(&clients, "a");
    let read = |clients: &mut Clients, attribute: PerformanceAttribute, method| match ask(
        clients,
        me,
        a,
        &performance(attribute, method),
    )
    .body
    {
        Body::Performance(answer) => answer,
        _ => panic!("no counters"),
    };
    let info = ClassPortInfo::default().into();
    let PerformanceAttribute::ClassPortInfo(info) = read(&mut clients, info, Method::GET) else {
        panic!("no ClassPortInfo");
    };
    let bit = performance_capability2::ADDITIONAL_EXTENDED;
    assert_eq!(info.capability_mask2.get() & bit, bit);
    let narrow = PortCounters {
        port_select: PortNumber::new(1),
        counter_select2: 1,
        xmit_wait: u32::MAX - 5,
        ..PortCounters::default()
    };
    let wide = PortCountersExtended {
        port_select: PortNumber::new(1),
        ..PortCountersExtended::default()
    };
    read(&mut clients, narrow.into(), Method::SET);
    run_to(&mut clients, &mut faults, at_us(2000));
    let port = clients.subnet.fabric.host_port(silvan_core::HostId::new(0));
    let ticks = clients.subnet.plane.counters(port).xmit_wait.as_ps() / 4_000;
    assert!(ticks > 5);
    let both = |clients: &mut Clients| {
        let narrow = read(clients, narrow.into(), Method::GET);
        let wide = read(clients, wide.into(), Method::GET);
        match (narrow, wide) {
            (
                PerformanceAttribute::PortCounters(narrow),
                PerformanceAttribute::PortCountersExtended(wide),
            ) => (narrow.xmit_wait, wide.xmit_wait),
            _ => panic!("other attributes"),
        }
    };
    assert_eq!(both(&mut clients), (u32::MAX, ticks));
    // Bit 12 of CounterSelect2 selects it; the counter of 32 bits is another one.
    let reset = PortCountersExtended {
        counter_select2: 1 << 12,
        ..wide
    };
    read(&mut clients, reset.into(), Method::SET);
    assert_eq!(both(&mut clients), (u32::MAX, 0));
}

#[test]
fn a_file_that_does_not_hold_is_refused_with_its_line() {
    let clients = clients(Start::Configured);
    let fault = |rest: &str| timetable(&clients, &format!("[[fault]]\n{rest}\n")).unwrap_err();
    for (rest, expected) in [
        ("at = \"1 s\"\nport = \"a\"", "missing"),
        ("do = \"cat\"\nat = \"1 s\"", "cut"),
        ("do = \"cut\"\nat = \"1 s\"", "needs the key \"port\""),
        (
            "do = \"cut\"\nat = \"1 s\"\nport = \"left:4\"",
            "there is no cable in left:4",
        ),
        (
            "do = \"cut\"\nat = \"1 s\"\nport = \"lift:4\"",
            "there is no port",
        ),
        (
            "do = \"cut\"\nat = \"1 s\"\nport = \"a\"\nwidth = \"1x\"",
            "no such key",
        ),
        (
            "do = \"cut\"\nat = \"1 s\"\nport = \"a\"\nevery = \"1 s\"",
            "cannot come again",
        ),
        (
            "do = \"cut\"\nat = \"1 s\"\nport = \"a\"\nfor = \"1 s\"\nevery = \"1 s\"",
            "comes again before",
        ),
        (
            "do = \"cut\"\nat = \"1 s\"\nport = \"a\"\nfor = \"0 s\"",
            "it is zero",
        ),
        (
            "do = \"degrade\"\nat = \"1 s\"\nport = \"a\"",
            "lower width, speed or rate",
        ),
        (
            "do = \"degrade\"\nat = \"1 s\"\nport = \"a\"\nwidth = \"3x\"",
            "known here: 1x",
        ),
        (
            "do = \"degrade\"\nat = \"1 s\"\nport = \"a\"\nwidth = \"12x\"",
            "fault.0.width: 12x has no effect: the cable in a",
        ),
        (
            "do = \"degrade\"\nat = \"1 s\"\nport = \"a\"\nspeed = \"NDR\"",
            "fault.0.speed: NDR has no effect",
        ),
        (
            "do = \"degrade\"\nat = \"1 s\"\nport = \"a\"\nspeed = \"bogus\"",
            "fault.0.speed: ",
        ),
        (
            "do = \"slow\"\nat = \"1 s\"\nhost = \"e\"\nrate = \"1 Gbit/s\"",
            "there is no host named",
        ),
        (
            "do = \"slow\"\nat = \"1 s\"\nhost = \"a\"\nrate = \"0 Gbit/s\"",
            "it is zero",
        ),
        (
            "do = \"lose\"\nat = \"1 s\"\npercent = 101",
            "101 %: 0 to 100 %",
        ),
        (
            "do = \"reboot\"\nat = \"1 s\"\nswitch = \"a\"",
            "there is no switch named",
        ),
        (
            "do = \"symbol-errors\"\nat = \"1 s\"\nport = \"a\"\nper-second = -1",
            "-1 symbol errors",
        ),
        ("do = \"cut\"\nat = \"1 s\"\nprot = \"a\"", "port"),
    ] {
        let error = fault(rest);
        assert!(error.starts_with("faults.toml:"), "{error}");
        assert!(error.contains(expected), "{rest}: {error}");
    }
}

#[test]
fn an_empty_file_of_faults_is_refused_with_what_to_add() {
    let error = timetable(&clients(Start::Configured), "").unwrap_err();
    let wanted = "faults.toml:1: fault: missing key (hint: add a table [[fault]])";
    assert_eq!(error.to_string(), wanted);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(\\[\\[fault\\]\\]\n((do|at|for|every|port|host|rate) = (\"[a-z0-9: ]{0,9}\"|-?[0-9]{1,3}|\\[\\])\n){0,4}){0,3}") {
        let _ = timetable(&clients(Start::Configured), &text);
    }

    /// A cable never runs faster than its maximum, with any limit.
    #[test]
    fn a_limit_is_never_above_the_cable(width in prop::sample::select(Width::ALL), speed in prop::sample::select(Speed::ALL)) {
        let mut clients = clients(Start::Configured);
        let text = format!(
            "[[fault]]\ndo = \"degrade\"\nat = \"0 s\"\nport = \"c\"\nwidth = \"{width}\"\nspeed = \"{speed}\"\n"
        );
        let port = cabled_port(&clients.subnet.fabric, "c").unwrap();
        let cable = clients.subnet.fabric.links[clients.subnet.fabric.ports[port].link.unwrap()].kind;
        let is_lower = width < cable.width || speed < cable.speed;
        let faults = timetable(&clients, &text);
        prop_assert_eq!(faults.is_ok(), is_lower);
        let Ok(mut faults) = faults else { return Ok(()) };
        run_to(&mut clients, &mut faults, at_us(300));
        let rate = gbps(&mut clients, &mut faults, 300);
        let lanes = width.lanes().min(4) as f64;
        let lanes = if lanes < 4.0 { 1.0 } else { lanes };
        prop_assert!(rate <= lanes * 4.1, "{rate} with {width} {speed}");
    }
}
