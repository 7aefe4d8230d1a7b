//! An engine of one's own is faster, and nothing else.

use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::ops::ControlFlow;

use silvan_instances::{Fastest, Shared};
use silvan_model::Engines;
use silvan_scenario::parsed::Threads;
use silvan_scenario::{Override, Scenario};
use silvan_sim::{RunOutput, Table, run};

const TWO_VL: &str = include_str!("../../../../examples/two-vl.toml");
const PARKING_LOT: &str = include_str!("../../../../examples/parking-lot.toml");

/// Three hosts send to one across two switches, faster than it can take.
const INCAST: &str = r#"
[fabric]
generator = "chain"
switches = 2
hosts-per-switch = 4
routing = "min-hop"
[[traffic.incast]]
to = "host-0000"
[[traffic.uniform]]
load = 0.3
[control]
scheme = "ib-cc"
[control.ib-cc.switch]
threshold = 15
threshold-lowest = "6222 B"
victim-mask = "hosts"
[probe]
interval = "100 us"
ports = true
classes = true
latency = "host"
[probe.trees]
interval = "100 us"
[run]
duration = "1 ms"
"#;

/// Hotspots that move at instants which no window begins at, and hosts that send so seldom that they wait
/// for many windows.
const MOVING: &str = r#"
[fabric]
generator = "k-ary-n-tree"
k = 4
n = 2
[traffic.nodes]
v = 0.3
c = 0.3
b = 0.4
p = 50
hotspots = 2
hotspot-lifetime = "77777777 ps"
[[traffic.uniform]]
load = 0.02
[control]
scheme = "none"
[probe]
interval = "30 us"
ports = true
classes = true
latency = "host"
[run]
duration = "900 us"
"#;

/// Schemes that an engine is compiled for alone.
const ALONE: [&str; 4] = ["none", "none", "ib-cc", "dcqcn"];

/// Schemes that share an engine with windows.
const SEPARATE: [&str; 18] = [
    "ecn",
    "pft",
    "ib-cc+pft",
    "timely",
    "hpcc",
    "swift",
    "nscc",
    "reps",
    "pair-backpressure",
    "half",
    "rccc",
    "srp",
    "vl-mapping",
    "dftree",
    "congestion-isolation",
    "recn",
    "nscc+reps",
    "swift+reps",
];

/// Schemes that choose lanes.
const CHOOSES_LANES: [&str; 5] = [
    "vl-mapping",
    "dftree",
    "congestion-isolation",
    "recn",
    "srp",
];

fn run_with(engines: &dyn Engines, scenario: &Scenario) -> RunOutput {
    run(engines, scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn the_shared_engine_gives_the_same_to_the_last_bit() {
    let none = [Override::new("control.scheme", "\"none\"")];
    let random = [Override::new("control.ib-cc.switch.marking", "\"random\"")];
    let adaptive = [Override::new("fabric.path-choice", "\"adaptive\"")];
    let dcqcn = [Override::new("control.scheme", "\"dcqcn\"")];
    for (text, overrides) in [
        (TWO_VL, &none[..]),
        (PARKING_LOT, &none[..]),
        (INCAST, &none[..]),
        (MOVING, &[]),
        (INCAST, &[]),
        (INCAST, &random[..]),
        (MOVING, &adaptive[..]),
        (INCAST, &dcqcn[..]),
    ] {
        let scenario = Scenario::from_toml(text, "test.toml", overrides).unwrap();
        let (fastest, shared) = (run_with(&Fastest, &scenario), run_with(&Shared, &scenario));
        assert_eq!(fastest.tables, shared.tables);
        assert_eq!(fastest.summary.packet_hops, shared.summary.packet_hops);
        let marked = fastest.table("ports").unwrap();
        let marked: u64 = marked.u64_column("fecn_marked").unwrap().iter().sum();
        assert_eq!(marked > 0, scenario.scheme().acts());
    }
}

/// Numbers to draw scenarios by: others for another seed of the property tests.
pub(crate) fn numbers(count: u64) -> impl Iterator<Item = u64> {
    let seed = std::env::var("PROPTEST_RNG_SEED").map_or(1, |seed| seed.parse().unwrap());
    (1..=count).map(move |number| number + (seed - 1) * 1000)
}

/// Puts a scenario on several threads: in turn on two, three and seven, because there are few processors for seven.
fn divided(scenario: &Scenario, number: u64) -> Scenario {
    let threads = [2, 3, 7][(number % 3) as usize];
    scenario.with_threads(Threads::Count(NonZeroU16::new(threads).unwrap()))
}

/// A scenario with programs and one of these schemes, drawn by a number.
fn drawn(number: u64, schemes: &[&str]) -> String {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |count: u64| {
        // Marsaglia, "Xorshift RNGs", 2003.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % count
    };
    let fabrics = [
        "generator = \"k-ary-n-tree\"\nk = 3\nn = 2\n",
        "generator = \"xgft\"\nchildren = [3, 3]\nparents = [1, 2]\n",
        "generator = \"chain\"\nswitches = 3\nhosts-per-switch = 3\nrouting = \"min-hop\"\n",
        "generator = \"k-ary-n-tree\"\nk = 3\nn = 2\npath-choice = \"adaptive\"\n",
        "generator = \"xgft\"\nchildren = [3, 3]\nparents = [1, 3]\npath-choice = \"spray-random\"\n",
    ];
    let drawn = draw(7) as usize;
    let mut over_waypoints = drawn >= fabrics.len();
    let mut fabric = match over_waypoints {
        true => format!(
            "generator = \"dragonfly\"\nswitches-per-group = 2\nhosts-per-switch = 2\nglobal-per-switch = 1\npath-choice = \"{}\"\n",
            ["valiant", "ugal-l", "par"][draw(3) as usize]
        ),
        false => fabrics[drawn].to_owned(),
    };
    let scheme = schemes[draw(schemes.len() as u64) as usize];
    let mut mapping = String::new();
    if CHOOSES_LANES.contains(&scheme) {
        // Only on fabrics that need no lanes; mappings by output also need switches that do not choose.
        over_waypoints = false;
        let name = ["obqa", "vftree", "dbbm", "flow2sl"][draw(4) as usize];
        let count = match name == "obqa" || scheme == "recn" {
            true => 3,
            false => fabrics.len(),
        };
        fabric = fabrics[drawn % count].to_owned();
        let protocol = ["srp", "smsrp", "lhrp"][draw(3) as usize];
        let timeout = ["3 us", "10 us"][draw(2) as usize];
        let variant = ["recn", "fbicm"][draw(2) as usize];
        let idle = ["5 us", "60 us"][draw(2) as usize];
        mapping = format!(
            "[control.vl-mapping]\nmapping = \"{name}\"\n\
             [control.congestion-isolation]\nset-point = \"1 KiB\"\nhold = \"30 us\"\n\
             [control.recn]\nvariant = \"{variant}\"\ndetection = \"600 B\"\npropagation = \"300 B\"\nidle = \"{idle}\"\n\
             [control.srp]\nprotocol = \"{protocol}\"\ntimeout = \"{timeout}\"\nthreshold = \"1 KiB\"\n"
        );
    }
    if scheme.ends_with("pft") {
        // The default thresholds are for large buffers.
        mapping = "[control.pft]\nenter = 24\nescape = 12\nenter-window = 32\nenter-count = 16\n\
                   escape-window = 32\nescape-count = 16\nm = 1\nk = 1\n"
            .to_owned();
    }
    let speed = ["SDR", "QDR", "HDR"][draw(3) as usize];
    let mtu = ["256 B", "1 KiB", "4 KiB"][draw(3) as usize];
    let lanes = [
        "",
        "[vl]\ndata-vls = 2\nsl-to-vl = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]\n",
    ];
    let lanes = match (over_waypoints, CHOOSES_LANES.contains(&scheme)) {
        (true, _) => "[vl]\ndata-vls = 6\n",
        (false, true) => "[vl]\ndata-vls = 3\n",
        (false, false) => lanes[draw(2) as usize],
    };
    let mut programs = String::new();
    let jobs = 1 + draw(2);
    let hosts = if jobs == 2 { "hosts = 4\n" } else { "" };
    for job in 0..jobs {
        let kind = ["allreduce", "alltoall", "allgather", "broadcast", "barrier"][draw(5) as usize];
        let bytes = ["100 B", "5 KiB", "30 KiB"][draw(3) as usize];
        let sized = match kind {
            "barrier" => String::new(),
            _ => format!("bytes = \"{bytes}\"\n"),
        };
        let start = draw(40);
        programs += &format!(
            "[[traffic.program]]\nname = \"job-{job}\"\nkind = \"{kind}\"\n{sized}{hosts}iterations = {}\nsl = {}\nstart = \"{start} us\"\n",
            1 + draw(4),
            draw(2),
        );
    }
    let background = [
        "",
        "[[traffic.uniform]]\nload = 0.2\n",
        "[traffic.nodes]\nv = 0.3\nc = 0.5\nb = 0.2\np = 60\nhotspots = 2\nhotspot-lifetime = \"77777777 ps\"\n",
    ];
    let background = background[draw(3) as usize];
    let eager = ["0 B", "4 KiB", "1 MiB"][draw(3) as usize];
    let overhead = ["0 ns", "300 ns"][draw(2) as usize];
    // Traffic that is notified of its deliveries.
    let flows = [
        "",
        "[[traffic.flows]]\nsizes = { fixed = \"20 KiB\" }\noutstanding = 2\npause = \"10 us\"\ncount = 20\n\
         [[traffic.sequence]]\nfrom = \"host-0002\"\nto = [\"host-0000\", \"host-0003\"]\niterations = 9\n",
        "[[traffic.flows]]\nsizes = \"hadoop\"\nload = 0.1\nend = \"2 ms\"\nsl = 1\n",
    ][draw(3) as usize];
    let sink = match scheme {
        // The scheme's switches would discard nearly all packets repeatedly.
        "srp" => "",
        _ => ["", "[host]\nsink-rate = \"9.7 Gbit/s\"\n"][draw(2) as usize],
    };
    let pauses = match scheme.ends_with("pft") {
        // The scheme reads credits.
        true => "",
        false => ["", "", "flow-control = \"pfc\"\n"][draw(3) as usize],
    };
    format!(
        "[fabric]\n{fabric}[link]\nspeed = \"{speed}\"\n{pauses}[packet]\nmtu = \"{mtu}\"\n{lanes}[control]\nscheme = \"{scheme}\"\n{mapping}\
         {sink}{programs}{background}{flows}[traffic.messaging]\neager-limit = \"{eager}\"\noverhead = \"{overhead}\"\n\
         [probe]\ninterval = \"74 us\"\nports = true\nclasses = true\nlatency = \"host\"\nmessages = true\n[run]\nduration = \"29600 us\"\n"
    )
}

/// Programs link hosts: a message that arrives at one may let others send at the same instant.
#[test]
fn drawn_programs_have_the_same_messages_by_windows() {
    for number in numbers(96) {
        let text = drawn(number, &ALONE);
        let scenario = Scenario::from_toml(&text, "test.toml", &[]);
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let (fastest, shared) = (run_with(&Fastest, &scenario), run_with(&Shared, &scenario));
        assert_eq!(fastest.tables, shared.tables, "{text}");
        assert_eq!(fastest.summary.packet_hops, shared.summary.packet_hops);
        assert!(fastest.summary.packet_hops > 0, "{text}");
    }
}

/// A scenario with one of these schemes, which share an engine with windows, drawn by a number.
fn drawn_separate(number: u64, schemes: &[&str]) -> Scenario {
    let text = drawn(number, schemes);
    let mut overrides = vec![];
    if number % 2 == 1 {
        overrides.push(Override::new("control.feedback.path", "\"in-band\""));
    }
    let read = |overrides: &[Override]| Scenario::from_toml(&text, "test.toml", overrides);
    let scenario = read(&overrides);
    let scenario = scenario.or_else(|_| {
        // A scheme that chooses paths needs switches with a choice.
        overrides.push(Override::new("fabric.path-choice", "\"ecmp\""));
        read(&overrides)
    });
    scenario.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the tables of a run, or an error if the scheme is so slow that programs do not end.
fn outcome(engines: &dyn Engines, scenario: &Scenario) -> Result<(u64, Vec<Table>), String> {
    let ran = run(engines, scenario, 1, &mut |_| ControlFlow::Continue(()));
    ran.map(|output| (output.summary.packet_hops, output.tables))
        .map_err(|error| error.to_string())
}

/// Compares this many drawn scenarios with one of these schemes by windows, without them and on several threads.
fn compare_separate(count: u64, schemes: &[&str]) {
    let mut seen = BTreeSet::new();
    for number in numbers(count) {
        let scenario = drawn_separate(number, schemes);
        let alone = outcome(&Fastest, &scenario);
        assert_eq!(alone, outcome(&Shared, &scenario), "{number}");
        let several = outcome(&Fastest, &divided(&scenario, number));
        assert_eq!(several, alone, "{number}");
        if alone.is_ok() {
            seen.insert(scenario.scheme().as_str());
        }
    }
    assert_eq!(seen.len(), schemes.len());
}

/// Acknowledgements carry what switches have written into their packets, and receivers send grants, past the fabric and
/// through it.
#[test]
fn drawn_schemes_have_the_same_messages_by_windows_on_any_number_of_threads() {
    compare_separate(160, &SEPARATE);
}

/// Drawn scenarios above have too few of these: three protocols, with notifications past the fabric and through it, and
/// messages of outputs that answer each other.
#[test]
fn drawn_reservations_and_queues_are_the_same_by_windows_on_any_number_of_threads() {
    compare_separate(96, &["srp", "recn"]);
}

/// Ranks on hosts of different parts act on each other without delay.
#[test]
fn drawn_programs_have_the_same_messages_on_any_number_of_threads() {
    for number in numbers(96) {
        let text = drawn(number, &ALONE);
        let scenario = Scenario::from_toml(&text, "test.toml", &[]).unwrap();
        let alone = run_with(&Fastest, &scenario);
        let divided = run_with(&Fastest, &divided(&scenario, number));
        assert!(divided.summary.threads > 1, "{text}");
        assert_eq!(divided.tables, alone.tables, "{number}\n{text}");
        assert_eq!(divided.summary.packet_hops, alone.summary.packet_hops);
    }
}
