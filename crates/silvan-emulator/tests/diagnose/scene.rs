//! Scenarios that are drawn from a seed.

use std::fmt::Write;

use silvan_core::stream::SplitMix64;

/// Intended kind of a drawn scenario. The ground truth determines the actual kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A host receives from several hosts.
    Incast,
    /// Two or three incasts at once.
    Trees,
    /// Every host sends to another one.
    Permutation,
    /// A link runs at half its width.
    Degraded,
    /// All receivers take less than their links carry, and one host gets more.
    SlowReceiver,
    /// A cable with bit errors replays part of its packets.
    BadCable,
    /// Loads that nothing suffers from.
    Light,
}

const KINDS: [Kind; 6] = [
    Kind::Incast,
    Kind::Trees,
    Kind::Permutation,
    Kind::Degraded,
    Kind::SlowReceiver,
    Kind::Light,
];

/// The congestion control of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Control {
    /// Switches mark nothing.
    Off,
    /// Switches mark, adapters do not react.
    Marking,
    /// Switches mark, adapters react.
    On,
}

impl Kind {
    #[allow(dead_code, reason = "the table names rows, the tests do not")]
    pub fn name(self) -> &'static str {
        match self {
            Self::Incast => "one incast",
            Self::Trees => "several incasts",
            Self::Permutation => "permutation",
            Self::Degraded => "degraded link",
            Self::SlowReceiver => "slow receiver",
            Self::BadCable => "bad cable",
            Self::Light => "light load",
        }
    }
}

impl Control {
    #[allow(dead_code, reason = "the table names rows, the tests do not")]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "CC: no marks",
            Self::Marking => "CC: marks, adapters do not react",
            Self::On => "CC: on",
        }
    }
}

/// Conditions of all scenarios of a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions {
    /// Marking_Rate with the default marking, in place of random marks at 31 where adapters do not react and of the default
    /// where they do.
    pub marking_rate: Option<u16>,
    /// Every second node has no PortCountersExtended.
    pub lacks_wide_counters: bool,
}

/// A scenario.
#[derive(Clone, Debug)]
pub struct Scene {
    pub kind: Kind,
    pub control: Control,
    pub toml: String,
    pub hosts: Vec<String>,
    /// Number that chooses a degraded link; `None` for no degraded link.
    pub degraded: Option<u64>,
    /// Number that chooses a bad cable, and its bit error rate.
    pub bad_cable: Option<(u64, f64)>,
    /// Senders of uniform traffic.
    pub uniform: Vec<String>,
    /// Named flows: name, sender, receiver.
    pub flows: Vec<(String, String, String)>,
}

/// Rate of a link: 2x SDR. It makes a simulated second cheap.
const LINK_GBPS: f64 = 4.0;
/// Sink rate of slow receivers.
const SINK_GBPS: f64 = 1.4;
/// Share of the scenarios with a bad cable.
const BAD_CABLES: f64 = 0.15;
/// Bit error rates of bad cables: 15 to 80 % of all packets are replayed.
const BIT_ERRORS: [f64; 2] = [5e-6, 5e-5];

struct Draw(SplitMix64);

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        (self.0.part() * count as f64) as usize
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.part()
    }

    fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            all.swap(last, self.below(last + 1));
        }
        all
    }
}

/// Generator and its keys, and the number of hosts.
fn topology(draw: &mut Draw) -> (String, usize) {
    match draw.below(6) {
        0 => {
            let (leaves, spines, hosts) = (2 + draw.below(3), 1 + draw.below(3), 3 + draw.below(4));
            let keys = format!(
                "generator = \"leaf-spine\"\nleaf-hosts = {:?}\nspine-cables = {:?}",
                vec![hosts; leaves],
                vec![1; spines]
            );
            (keys, leaves * hosts)
        }
        1 => ("generator = \"k-ary-n-tree\"\nk = 4\nn = 2".into(), 16),
        2 => ("generator = \"k-ary-n-tree\"\nk = 2\nn = 4".into(), 16),
        3 => (
            "generator = \"xgft\"\nchildren = [4, 4]\nparents = [1, 2]".into(),
            16,
        ),
        4 => (
            "generator = \"xgft\"\nchildren = [4, 3, 3]\nparents = [1, 2, 2]".into(),
            36,
        ),
        _ => {
            let switches = 3 + draw.below(2);
            let hosts = 3 + draw.below(3);
            let keys =
                format!("generator = \"chain\"\nswitches = {switches}\nhosts-per-switch = {hosts}");
            (keys, switches * hosts)
        }
    }
}

/// Draws a scenario; `names` lists the hosts of the fabric of a scenario without traffic.
pub fn draw(seed: u64, conditions: Conditions, names: impl Fn(&str) -> Vec<String>) -> Scene {
    let mut draw = Draw(SplitMix64::for_stream(seed, 1));
    let mut kind = KINDS[draw.below(KINDS.len())];
    if SplitMix64::for_stream(seed, 3).part() < BAD_CABLES {
        kind = Kind::BadCable;
    }
    let control = [Control::Off, Control::Marking, Control::On][draw.below(3)];
    let (fabric, count) = topology(&mut draw);
    let mut toml = format!(
        "[fabric]\n{fabric}\n[link]\nwidth = \"2x\"\nspeed = \"SDR\"\n[packet]\nmtu = \"4 KiB\"\n[traffic]\nmessage = \"4 KiB\"\n"
    );
    if kind == Kind::SlowReceiver {
        let _ = writeln!(toml, "[host]\nsink-rate = \"{SINK_GBPS} Gbit/s\"");
    }
    let switch = match (conditions.marking_rate, control) {
        (Some(rate), _) => format!("marking-rate = {rate}"),
        (None, Control::Marking) => "marking-rate = 31, marking = \"random\"".to_owned(),
        (None, _) => String::new(),
    };
    let scheme =
        format!("[control]\nscheme = \"ib-cc\"\n[control.ib-cc]\nswitch = {{ {switch} }}\n");
    match control {
        Control::Off => {}
        Control::Marking => toml.push_str(&(scheme + "adapter = { ccti-increase = 0 }\n")),
        Control::On => toml.push_str(&scheme),
    }
    let hosts = names(&toml);
    assert_eq!(hosts.len(), count, "{toml}");
    let order = draw.shuffled(count);
    let mut scene = Scene {
        kind,
        control,
        toml,
        hosts,
        degraded: None,
        bad_cable: None,
        uniform: Vec::new(),
        flows: Vec::new(),
    };
    scene.load(&mut draw, &order);
    scene
}

impl Scene {
    fn flow(&mut self, from: usize, to: usize, gbps: f64) {
        let name = format!("f{}", self.flows.len());
        let load = match gbps >= 0.98 * LINK_GBPS {
            true => "\"saturating\"".to_owned(),
            false => format!("\"{gbps:.3} Gbit/s\""),
        };
        let (from, to) = (self.hosts[from].clone(), self.hosts[to].clone());
        let _ = writeln!(
            self.toml,
            "[[traffic.flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nload = {load}"
        );
        self.flows.push((name, from, to));
    }

    fn load(&mut self, draw: &mut Draw, order: &[usize]) {
        let count = order.len();
        let mut rest = order.iter().copied();
        let mut incasts = match self.kind {
            Kind::Incast => 1,
            Kind::Trees => 2 + draw.below(2),
            _ => 0,
        };
        while incasts > 0 {
            incasts -= 1;
            let Some(to) = rest.next() else { break };
            let most = (count / 3).clamp(2, 7);
            for _ in 0..2 + draw.below(most - 1) {
                let Some(from) = rest.next() else { break };
                let gbps = if draw.0.part() < 0.6 {
                    LINK_GBPS
                } else {
                    draw.between(1.0, 4.0)
                };
                self.flow(from, to, gbps);
            }
        }
        match self.kind {
            Kind::Permutation => {
                let gbps = if draw.0.part() < 0.5 {
                    LINK_GBPS
                } else {
                    draw.between(1.0, 3.5)
                };
                for index in 0..count {
                    self.flow(order[index], order[(index + 1) % count], gbps);
                }
                return;
            }
            Kind::Degraded | Kind::BadCable => {
                let number = draw.0.next();
                match self.kind {
                    Kind::Degraded => self.degraded = Some(number),
                    _ => {
                        let [least, most] = BIT_ERRORS.map(f64::ln);
                        self.bad_cable = Some((number, draw.between(least, most).exp()));
                    }
                }
                for index in 0..count {
                    let gbps = draw.between(1.0, 3.0);
                    self.flow(order[index], order[(index + 1) % count], gbps);
                }
                return;
            }
            Kind::SlowReceiver => {
                let (from, to) = (rest.next(), rest.next());
                if let (Some(from), Some(to)) = (from, to) {
                    self.flow(from, to, draw.between(2.0, 4.0));
                }
                if draw.0.part() < 0.4 {
                    if let Some(other) = rest.next() {
                        self.flow(other, order[1], draw.between(0.5, 2.0));
                    }
                }
            }
            _ => {}
        }
        let background: Vec<usize> = rest.collect();
        let most = match self.kind {
            Kind::SlowReceiver => 0.3,
            Kind::Light => 0.4,
            _ => 0.6,
        } * LINK_GBPS;
        if draw.0.part() < 0.25 && background.len() > 2 {
            let gbps = draw.between(0.1, 0.6) * most;
            self.uniform = background
                .iter()
                .map(|&host| self.hosts[host].clone())
                .collect();
            let _ = writeln!(
                self.toml,
                "[[traffic.uniform]]\nname = \"u\"\nfrom = {:?}\nload = \"{gbps:.3} Gbit/s\"",
                self.uniform
            );
            return;
        }
        // Each other host sends to one or two of these hosts, which receive from at most one or two.
        for (index, &from) in background.iter().enumerate() {
            if draw.0.part() < 0.3 || background.len() < 2 {
                continue;
            }
            let to = background[(index + 1) % background.len()];
            self.flow(from, to, draw.between(0.05, 1.0) * most);
        }
    }
}
