//! Routes over other switches: what a saturated fabric delivers, against closed forms.

use std::ops::ControlFlow;

use silvan_instances::Fastest;
use silvan_scenario::Scenario;
use silvan_sim::run;

/// A saturated fabric of links of 100 Gbit/s with buffers of many packets.
const BASE: &str = r#"
    [link]
    width = "4x"
    speed = "EDR"
    length = "2 m"
    [switch]
    buffer = "256 KiB"
    [host]
    receive-buffer = "16 KiB"
    [packet]
    mtu = "2 KiB"
    [vl]
    data-vls = 5
    [run]
    warm-up = "150 us"
    duration = "300 us"
"#;

const MTU: f64 = 2048.0;
const HEADER: f64 = 26.0;

/// Share of the links' rate that hosts receive on average.
fn delivered(fabric: &str, choice: &str, traffic: &str) -> f64 {
    let text = format!("[fabric]\n{fabric}\npath-choice = \"{choice}\"\n{BASE}\n{traffic}");
    let scenario = Scenario::from_toml(&text, "routing.toml", &[]);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let output = run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap();
    let table = output.table("hosts").unwrap();
    let bytes = table.u64_column("delivered_bytes").unwrap();
    let sum: u64 = bytes.iter().sum();
    let seconds = 150e-6;
    let rate = sum as f64 * 8.0 / seconds / bytes.len() as f64 * (MTU + HEADER) / MTU;
    rate / 100e9
}

fn uniform() -> String {
    "[[traffic.uniform]]\n".to_owned()
}

fn shift(by: usize) -> String {
    format!("[[traffic.permutation]]\npattern = \"shift\"\nshift = {by}\n")
}

fn dragonfly(a: usize, p: usize, h: usize) -> String {
    format!(
        "generator = \"dragonfly\"\nrouting = \"group-minimal\"\nswitches-per-group = {a}\n\
         hosts-per-switch = {p}\nglobal-per-switch = {h}"
    )
}

fn assert_close(found: f64, expected: f64, share: f64, what: &str) {
    assert!(
        (found / expected - 1.0).abs() <= share,
        "{what}: {found:.4}, not {expected:.4}"
    );
}

const CHOICES: [&str; 3] = ["ugal-l", "ugal-g", "par"];

/// Each host sends to the host at its place in the next group. With g = a h + 1 groups, all a p hosts of a group share
/// the one cable by the tables. Over random switches each of the g groups is the middle one equally often, so every
/// cable between groups carries 2 a p / g of a host's traffic. A switch has enough cables inside its group.
#[test]
fn dragonfly_under_adversarial_load_delivers_the_closed_forms() {
    for (a, p, h) in [(4, 1, 1), (8, 2, 2)] {
        let fabric = dragonfly(a, p, h);
        let (sharing, groups) = ((a * p) as f64, (a * h + 1) as f64);
        let minimal = delivered(&fabric, "table", &shift(a * p));
        assert_close(minimal, 1.0 / sharing, 0.002, "minimal");
        let valiant = delivered(&fabric, "valiant", &shift(a * p));
        assert_close(valiant, groups / (2.0 * sharing), 0.02, "valiant");
    }
}

/// Under uniform load a cable between groups carries a p / (g - 1 + 1 / a p) of a host's traffic, nearly its full rate
/// with p = h. Minimal paths deliver all of it. Paths over random switches deliver as much as under adversarial load,
/// and a little more, because some lead past the destination, where packets end.
#[test]
fn choices_by_load_are_as_good_as_the_better_of_their_paths() {
    let (a, p, h) = (4, 1, 1);
    let fabric = dragonfly(a, p, h);
    for (name, traffic) in [("adversarial", shift(a * p)), ("uniform", uniform())] {
        let minimal = delivered(&fabric, "table", &traffic);
        let valiant = delivered(&fabric, "valiant", &traffic);
        if name == "uniform" {
            assert_close(minimal, 1.0, 0.025, "uniform, minimal");
            let equally = (a * h + 1) as f64 / (2 * a * p) as f64;
            assert!(valiant >= equally, "{valiant:.4} < {equally}");
            assert_close(valiant, equally, 0.08, "uniform, valiant");
        }
        for choice in CHOICES {
            let found = delivered(&fabric, choice, &traffic);
            let least = 0.95 * minimal.max(valiant);
            assert!(found >= least, "{name}, {choice}: {found:.4} < {least:.4}");
        }
    }
}

/// All hosts of a switch send to one other switch of its row. In the order of dimensions they share one cable of K.
/// Over random switches each cable of a row of S switches carries 2 p / S of the traffic of a switch's p hosts.
#[test]
fn hyper_x_delivers_the_closed_forms() {
    let size = 4;
    let with = |hosts: usize| {
        format!("generator = \"hyper-x\"\nsizes = [{size}, {size}]\nhosts-per-switch = {hosts}")
    };
    let (hosts, few) = (size, size - 1);
    let minimal = delivered(&with(hosts), "table", &shift(hosts));
    assert_close(minimal, 1.0 / hosts as f64, 0.01, "minimal");
    let valiant = delivered(&with(hosts), "valiant", &shift(hosts));
    assert_close(valiant, size as f64 / (2 * hosts) as f64, 0.02, "valiant");
    // Three quarters of the rate of each cable.
    let level = delivered(&with(few), "table", &uniform());
    assert_close(level, 1.0, 0.02, "uniform");
    for choice in CHOICES {
        let found = delivered(&with(hosts), choice, &shift(hosts));
        assert!(
            found >= 0.95 * valiant,
            "{choice}: {found:.4}, {valiant:.4}"
        );
        let found = delivered(&with(few), choice, &uniform());
        assert!(found >= 0.95 * level, "{choice}: {found:.4}, {level:.4}");
    }
}

/// Hosts of the switch at (x, y) send to those at (y, x), and those on the diagonal to each other.
fn transpose(size: usize) -> String {
    let switch = |x: usize, y: usize| y * size + x;
    let mut to = vec![String::new(); 2 * size * size];
    for (x, y, host) in (0..size).flat_map(|x| (0..size).flat_map(move |y| [(x, y, 0), (x, y, 1)]))
    {
        to[2 * switch(x, y) + host] = format!("\"host-{:04}\"", 2 * switch(y, x) + 1 - host);
    }
    let to = to.join(", ");
    format!("[[traffic.permutation]]\npattern = \"given\"\nto = [{to}]\n")
}

/// In the order of dimensions the packets of row y turn at (y, y). In a mesh they arrive there over two cables, or over
/// one at the ends, which their hosts share. In a HyperX each switch has a cable there for its two hosts.
#[test]
fn transpose_delivers_the_closed_forms_of_mesh_and_hyper_x() {
    let size = 4;
    let (hosts, diagonal) = ((2 * size * size) as f64, (2 * size) as f64);
    let cables = (2 * size - 2) as f64;
    let mesh = format!("generator = \"mesh\"\nsizes = [{size}, {size}]\nhosts-per-switch = 2");
    let found = delivered(&mesh, "table", &transpose(size));
    assert_close(found, (cables + diagonal) / hosts, 0.02, "mesh");
    let hyper_x =
        format!("generator = \"hyper-x\"\nsizes = [{size}, {size}]\nhosts-per-switch = 2");
    let found = delivered(&hyper_x, "table", &transpose(size));
    let others = (size * size - size) as f64;
    assert_close(found, (others + diagonal) / hosts, 0.02, "hyper-x");
}
