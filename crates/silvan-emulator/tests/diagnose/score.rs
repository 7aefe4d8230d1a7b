//! A scenario run, diagnosed, and compared with its ground truth.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use silvan_core::stream::SplitMix64;
use silvan_core::{GivenTicks, HostId, PortId, Span};
use silvan_diagnose::observation::Observation;
use silvan_diagnose::survey::{Survey, survey};
use silvan_diagnose::verdict::{Cause, Facts, Verdict, diagnose};
use silvan_fabric::Fabric;
use silvan_mad::smp::{PhysicalState, PortInfo, Smp, SmpRoute, link_width};
use silvan_mad::{Body, Mad, Method};
use silvan_scenario::Scenario;
use silvan_subnet::client::{Client, Limits};

use super::live::{Live, World};
use super::scene::{Conditions, Control, Kind, Scene, draw};

/// A root that is there in at least this part of the samples is true.
const MOSTLY: f64 = 0.5;
/// Presence below which a result is false. A result between the limits counts for neither.
const RARELY: f64 = 0.1;
/// The top contributor sends at least this part of what the largest one does.
const NEARLY: f64 = 0.8;
/// Ports whose loads differ by no more than this have sent equally much: the sweeps read them at different instants.
const SAME_LOAD: f64 = 0.001;
const SAME_WAIT: f64 = 0.004;
/// The diagnosis names no victim whose flow is below this part of what a branch sends.
const LEAST_VICTIM: f64 = 0.05;
const WARM_UP: Span = Span::from_ms(50);
const INTERVAL: Span = Span::from_secs(1);
const LOSS: f64 = 0.01;

/// Correct and wrong results.
#[derive(Clone, Debug, Default)]
pub struct Score {
    pub scenarios: usize,
    pub roots: Counts,
    pub victims: Counts,
    /// Counts of victims that the found trees have with the simulation's flows instead of the estimated flows.
    pub victims_of_flows: Counts,
    pub top_right: usize,
    pub top: usize,
    /// Largest expected number of correct results without a distinction of equivalent hosts.
    pub top_at_best: f64,
    /// Probabilities that hosts are victims, without a distinction of equivalent hosts.
    pub victim_odds: Vec<f64>,
    pub causes_right: usize,
    pub causes: usize,
    /// Names of what is and what was said, and how often.
    pub confusion: BTreeMap<(&'static str, &'static str), usize>,
}

/// True and false positives, false negatives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub hit: usize,
    pub wrong: usize,
    pub missed: usize,
}

impl Counts {
    pub fn precision(self) -> f64 {
        self.hit as f64 / ((self.hit + self.wrong).max(1)) as f64
    }

    pub fn recall(self) -> f64 {
        self.hit as f64 / ((self.hit + self.missed).max(1)) as f64
    }

    pub fn f1(self) -> f64 {
        2.0 * self.hit as f64 / ((2 * self.hit + self.wrong + self.missed).max(1)) as f64
    }

    fn add(&mut self, other: Self) {
        self.hit += other.hit;
        self.wrong += other.wrong;
        self.missed += other.missed;
    }
}

impl Score {
    /// Returns the largest expected F1 of victims without a distinction of equivalent hosts. It names the most probable
    /// victims.
    #[allow(dead_code, reason = "the table prints it, the tests do not")]
    pub fn best_f1(&self) -> f64 {
        let mut odds = self.victim_odds.clone();
        odds.sort_by(|a, b| b.total_cmp(a));
        let all = (self.victims.hit + self.victims.missed) as f64;
        let mut hits = 0.0;
        let f1 = odds.iter().zip(1..).map(|(odds, named)| {
            hits += odds;
            2.0 * hits / (f64::from(named) + all)
        });
        f1.fold(0.0, f64::max)
    }

    pub fn add(&mut self, other: &Self) {
        self.scenarios += other.scenarios;
        self.roots.add(other.roots);
        self.victims.add(other.victims);
        self.victims_of_flows.add(other.victims_of_flows);
        self.top_right += other.top_right;
        self.top += other.top;
        self.top_at_best += other.top_at_best;
        self.victim_odds.extend_from_slice(&other.victim_odds);
        self.causes_right += other.causes_right;
        self.causes += other.causes;
        for (key, count) in &other.confusion {
            *self.confusion.entry(*key).or_default() += count;
        }
    }
}

/// Ground truth of a scenario.
pub struct Truth {
    pub roots: BTreeMap<PortId, &'static str>,
    pub perhaps_roots: BTreeSet<PortId>,
    pub victims: BTreeSet<HostId>,
    pub perhaps_victims: BTreeSet<HostId>,
    /// By root: what each host sends through it, as a payload rate.
    pub through: BTreeMap<PortId, BTreeMap<HostId, f64>>,
    /// All flows: sender, path and payload rate.
    pub flows: Vec<(HostId, Vec<PortId>, f64)>,
    /// Hosts that the counters do not tell apart, each with the number of its class.
    pub alike: BTreeMap<HostId, usize>,
}

impl Truth {
    /// Returns the best probability of a correct guess of a root's largest contributor: hosts of a class are equally
    /// likely.
    fn best_top(&self, root: PortId) -> f64 {
        let senders = &self.through[&root];
        let largest = senders.values().copied().fold(0.0, f64::max);
        let is_right = |host: HostId| {
            senders
                .get(&host)
                .is_some_and(|sent| *sent >= NEARLY * largest)
        };
        let part = |host: &HostId| self.part_of_class(*host, is_right);
        senders.keys().map(part).fold(0.0, f64::max)
    }

    /// Returns the probability that each host is a victim, without a distinction of hosts in a class.
    fn victim_odds(&self) -> Vec<f64> {
        let counts = |host: HostId| self.victims.contains(&host);
        let hosts = self
            .alike
            .keys()
            .filter(|host| !self.perhaps_victims.contains(host));
        hosts
            .map(|&host| self.part_of_class(host, counts))
            .filter(|odds| *odds > 0.0)
            .collect()
    }

    fn count_victims(&self, named: &BTreeSet<HostId>) -> Counts {
        let is_wrong =
            |host: &&HostId| !self.victims.contains(host) && !self.perhaps_victims.contains(host);
        Counts {
            hit: self.victims.intersection(named).count(),
            wrong: named.iter().filter(is_wrong).count(),
            missed: self.victims.difference(named).count(),
        }
    }

    /// The victims of trees with these roots and branches, by the rule of the diagnosis, if all flows are known.
    fn victims_of_flows(
        &self,
        roots: &BTreeSet<PortId>,
        branches: &BTreeSet<PortId>,
    ) -> BTreeSet<HostId> {
        let mut held_up: BTreeMap<(PortId, HostId), f64> = BTreeMap::new();
        for (from, path, rate) in &self.flows {
            if path.iter().any(|port| roots.contains(port)) {
                continue;
            }
            for &port in path.iter().skip(1).filter(|port| branches.contains(port)) {
                *held_up.entry((port, *from)).or_default() += rate;
            }
        }
        let is_noted = |((port, _), rate): &(&(PortId, HostId), &f64)| {
            **rate >= LEAST_VICTIM * self.through[port].values().sum::<f64>()
        };
        let noted = held_up.iter().filter(is_noted);
        noted.map(|((_, host), _)| *host).collect()
    }

    /// Returns the part of a host's class for which the predicate is true.
    fn part_of_class(&self, host: HostId, is_so: impl Fn(HostId) -> bool) -> f64 {
        let class = self.alike[&host];
        let members = self.alike.iter().filter(|(_, other)| **other == class);
        let (all, so) = members.fold((0, 0), |(all, so), (&member, _)| {
            (all + 1, so + usize::from(is_so(member)))
        });
        f64::from(so as u32) / f64::from(all)
    }
}

fn scenario(toml: &str) -> Scenario {
    Scenario::from_toml(toml, "scene.toml", &[]).unwrap_or_else(|error| panic!("{error}\n{toml}"))
}

fn host_names(toml: &str) -> Vec<String> {
    let scenario = scenario(toml);
    let fabric = scenario.fabric();
    fabric
        .host_ids()
        .map(|host| fabric.host(host).name.clone())
        .collect()
}

pub fn run(seed: u64, conditions: Conditions) -> (Scene, Survey, Verdict, Truth) {
    let scene = draw(seed, conditions, host_names);
    let scenario = scenario(&scene.toml);
    let world = Rc::new(RefCell::new(World::new(&scenario)));
    let fabric = world.borrow().plane.fabric().clone();
    let bad_cable = scene
        .bad_cable
        .map(|(number, rate)| spoil(&mut world.borrow_mut(), &fabric, &scene.toml, number, rate));
    let degraded = scene
        .degraded
        .and_then(|number| degrade(&mut world.borrow_mut(), &fabric, number));
    world.borrow_mut().lacks_wide_counters = conditions.lacks_wide_counters;
    world.borrow_mut().advance(WARM_UP);
    world.borrow_mut().plane.lose(LOSS, seed);
    let before = world.borrow().plane.delivered();
    let mut client = Client::new(Live(Rc::clone(&world)), Limits::DEFAULT);
    let survey = survey(&mut client, INTERVAL).expect("the subnet answers");
    assert_eq!(world.borrow().sets, 0, "nothing is set");
    assert!(world.borrow().in_flight.1 <= Limits::DEFAULT.in_flight);
    let delivered = world.borrow().plane.delivered();
    let rates: BTreeMap<String, f64> = delivered
        .into_iter()
        .zip(before)
        .map(|((name, now), (_, before))| (name, (now - before) as f64))
        .collect();
    let topology = &survey.topology;
    let (before, now) = (&survey.before, &survey.now);
    let given = GivenTicks::default();
    let ticks = topology.tick_facts.ticks(&topology.fabric, &given);
    let mut observation = Observation::new(&topology.fabric, before, now, ticks);
    observation.logs = survey.logs.clone();
    let verdict = diagnose(Facts {
        fabric: &topology.fabric,
        tables: &topology.tables,
        assumed_tables: false,
        capable: &topology.capable,
        observation: &observation,
    });
    let samples = world.borrow_mut().samples.take().unwrap_or_default();
    let tables = scenario.forwarding().tables;
    let odd = OddLinks {
        degraded,
        bad_cable,
    };
    let mut truth = truth(&scene, &fabric, tables, odd, &samples, &rates);
    truth.alike = alike(&scene, &survey, &observation, &fabric);
    (scene, survey, verdict, truth)
}

#[derive(Clone, Copy, Debug)]
struct OddLinks {
    degraded: Option<PortId>,
    bad_cable: Option<PortId>,
}

/// A cabled port of a switch.
fn switch_port(fabric: &Fabric, number: u64) -> PortId {
    let mut random = SplitMix64::for_stream(number, 2);
    let cabled: Vec<PortId> = fabric
        .ports
        .ids()
        .filter(|&port| {
            let node = &fabric.nodes[fabric.ports[port].node];
            node.as_switch().is_some() && fabric.ports[port].link.is_some()
        })
        .collect();
    cabled[(random.part() * cabled.len() as f64) as usize]
}

/// Gives a cable bit errors, so that this port receives packets again.
fn spoil(world: &mut World, fabric: &Fabric, toml: &str, number: u64, rate: f64) -> PortId {
    let port = switch_port(fabric, number);
    let name = &fabric.nodes[fabric.ports[port].node].name;
    let fault = format!(
        "{toml}[[fault]]\ndo = \"bit-errors\"\nport = \"{name}:{}\"\nbit-error-rate = {rate:e}\nretransmission = true\n",
        fabric.ports[port].number.as_u8()
    );
    for planned in scenario(&fault).faults() {
        world
            .plane
            .begin_fault(planned.fault)
            .expect("a known port");
    }
    port
}

/// Lets a link run at one lane, as an administrator or a bad cable does: a link with traffic through it.
fn degrade(world: &mut World, fabric: &Fabric, number: u64) -> Option<PortId> {
    let port = switch_port(fabric, number);
    let node = &fabric.nodes[fabric.ports[port].node];
    let info = PortInfo {
        link_width_enabled: link_width::X1,
        physical_state: PhysicalState::POLLING,
        ..PortInfo::default()
    };
    let body = Body::Smp(Smp {
        m_key: 0,
        route: SmpRoute::Lid,
        attribute: info.into(),
    });
    let mut mad = Mad::request(Method::SET, body);
    mad.modifier = u32::from(fabric.ports[port].number.as_u8());
    mad.transaction_id = 1;
    world.send(node.lid, &mad.emit());
    world.take_answer();
    Some(port)
}

fn truth(
    scene: &Scene,
    fabric: &Fabric,
    tables: &silvan_fabric::ForwardingTables,
    OddLinks {
        degraded,
        bad_cable,
    }: OddLinks,
    samples: &[silvan_model::Forest],
    rates: &BTreeMap<String, f64>,
) -> Truth {
    let mut roots: BTreeMap<PortId, usize> = BTreeMap::new();
    let mut victims: BTreeMap<HostId, usize> = BTreeMap::new();
    for forest in samples {
        let mut now = BTreeSet::new();
        for tree in &forest.trees {
            if tree.members.len() > 1 {
                *roots.entry(tree.root).or_default() += 1;
            }
            let suffer = tree.shares.iter().filter(|share| !share.victim.is_zero());
            now.extend(suffer.map(|share| share.host));
        }
        for host in now {
            *victims.entry(host).or_default() += 1;
        }
    }
    let part = |count: usize| count as f64 / samples.len().max(1) as f64;
    let cause = |root: PortId| {
        let ends = [Some(root), fabric.ports[root].peer];
        let faces_host = fabric.peer_switch(root).is_none();
        if faces_host && scene.kind == Kind::SlowReceiver {
            "slow receiver"
        } else if bad_cable.is_some() && fabric.ports[root].peer == bad_cable {
            "bad cable"
        } else if degraded.is_some() && ends.contains(&degraded) {
            "degraded link"
        } else if faces_host {
            "incast"
        } else {
            "overload"
        }
    };
    let is_true = |count: &usize| part(*count) >= MOSTLY;
    let is_perhaps = |count: &usize| part(*count) >= RARELY && part(*count) < MOSTLY;
    let mut through: BTreeMap<PortId, BTreeMap<HostId, f64>> = BTreeMap::new();
    let mut flows = Vec::new();
    let host = |name: &str| {
        fabric
            .node_by_name(name)
            .and_then(|node| fabric.nodes[node].as_host())
    };
    let mut send = |from: HostId, to: HostId, rate: f64| {
        let path = path(fabric, tables, from, to);
        for &port in &path {
            *through.entry(port).or_default().entry(from).or_default() += rate;
        }
        flows.push((from, path, rate));
    };
    for (name, from, to) in &scene.flows {
        if let (Some(from), Some(to)) = (host(from), host(to)) {
            send(from, to, rates[name]);
        }
    }
    for name in &scene.uniform {
        let Some(from) = host(name) else { continue };
        let all = rates["u"] / scene.uniform.len() as f64 / (fabric.host_count() - 1) as f64;
        for to in fabric.host_ids().filter(|&to| to != from) {
            send(from, to, all);
        }
    }
    Truth {
        perhaps_roots: filter(&roots, is_perhaps),
        roots: filter(&roots, is_true)
            .into_iter()
            .map(|root| (root, cause(root)))
            .collect(),
        perhaps_victims: filter(&victims, is_perhaps),
        victims: filter(&victims, is_true),
        through,
        flows,
        alike: BTreeMap::new(),
    }
}

/// Returns classes of equivalent hosts: hosts of one switch with equal traffic and waits, if no switch marks packets.
/// If two of them exchanged all their flows, every other port would count the same, because a packet's route from their
/// switch on depends only on its receiver. So no counter distinguishes their flows.
fn alike(
    scene: &Scene,
    survey: &Survey,
    observation: &Observation,
    fabric: &Fabric,
) -> BTreeMap<HostId, usize> {
    let found = &survey.topology.fabric;
    let counted = |host: HostId| {
        let node = found.node_by_name(&fabric.host(host).name)?;
        let port = found.host_port(found.nodes[node].as_host()?);
        let load = observation.ports[port];
        Some((load.load?, load.wait?))
    };
    let name = |host: HostId| &fabric.host(host).name;
    let sends = |from: HostId, to: HostId| {
        let by_flow = scene
            .flows
            .iter()
            .any(|(_, a, b)| (a, b) == (name(from), name(to)));
        by_flow || scene.uniform.contains(name(from))
    };
    let are_alike = |a: HostId, b: HostId| {
        let counted = [counted(a), counted(b)];
        let [Some((load_a, wait_a)), Some((load_b, wait_b))] = counted else {
            return false;
        };
        let is_near = fabric.host_attachment(a).0 == fabric.host_attachment(b).0;
        is_near
            && (load_a - load_b).abs() <= SAME_LOAD
            && (wait_a - wait_b).abs() <= SAME_WAIT
            && !sends(a, b)
            && !sends(b, a)
    };
    let mut classes: BTreeMap<HostId, usize> = BTreeMap::new();
    let mut members: Vec<Vec<HostId>> = Vec::new();
    for host in fabric.host_ids() {
        let class = match scene.control {
            Control::Off => members
                .iter()
                .position(|class| class.iter().all(|&other| are_alike(host, other))),
            Control::Marking | Control::On => None,
        };
        let class = class.unwrap_or_else(|| {
            members.push(Vec::new());
            members.len() - 1
        });
        members[class].push(host);
        classes.insert(host, class);
    }
    classes
}

fn filter<K: Ord + Copy>(counts: &BTreeMap<K, usize>, is: impl Fn(&usize) -> bool) -> BTreeSet<K> {
    counts
        .iter()
        .filter(|(_, count)| is(count))
        .map(|(key, _)| *key)
        .collect()
}

fn path(
    fabric: &Fabric,
    tables: &silvan_fabric::ForwardingTables,
    from: HostId,
    to: HostId,
) -> Vec<PortId> {
    let mut path = vec![fabric.host_port(from)];
    let (mut switch, _) = fabric.host_attachment(from);
    while path.len() < 20 {
        let number = tables.to_host(switch, to).expect("there is a route");
        let port = fabric
            .switch(switch)
            .port(number)
            .expect("the port is there");
        path.push(port);
        match fabric.peer_switch(port) {
            Some((next, _)) => switch = next,
            None => break,
        }
    }
    path
}

fn name_of(cause: Cause) -> &'static str {
    match cause {
        Cause::Incast => "incast",
        Cause::Overload => "overload",
        Cause::DegradedLink => "degraded link",
        Cause::SlowReceiver => "slow receiver",
        Cause::BadCable => "bad cable",
    }
}

/// Compares a verdict with what is true. Ports and hosts of the survey are found by name.
pub fn score(survey: &Survey, verdict: &Verdict, truth: &Truth, fabric: &Fabric) -> Score {
    let port = |port: PortId| {
        let name = &survey.topology.fabric.nodes[survey.topology.fabric.ports[port].node].name;
        let node = fabric
            .node_by_name(name)
            .expect("the survey found what is there");
        fabric
            .port(node, survey.topology.fabric.ports[port].number)
            .expect("the port is there")
    };
    let host = |host: HostId| {
        let node = fabric.node_by_name(&survey.topology.fabric.host(host).name);
        node.and_then(|node| fabric.nodes[node].as_host())
            .expect("the host is there")
    };
    let mut score = Score {
        scenarios: 1,
        ..Score::default()
    };
    let said: BTreeMap<PortId, _> = verdict
        .trees
        .iter()
        .map(|tree| (port(tree.root), tree))
        .collect();
    for root in said.keys() {
        if truth.roots.contains_key(root) {
            score.roots.hit += 1;
        } else if !truth.perhaps_roots.contains(root) {
            score.roots.wrong += 1;
        }
    }
    for (root, &cause) in &truth.roots {
        let Some(tree) = said.get(root) else {
            score.roots.missed += 1;
            *score.confusion.entry((cause, "none")).or_default() += 1;
            score.causes += 1;
            continue;
        };
        score.causes += 1;
        score.causes_right += usize::from(name_of(tree.cause) == cause);
        *score
            .confusion
            .entry((cause, name_of(tree.cause)))
            .or_default() += 1;
        score.top += 1;
        score.top_at_best += truth.best_top(*root);
        let senders = &truth.through[root];
        let largest = senders.values().copied().fold(0.0, f64::max);
        let top = tree.contributors.first();
        let sent = top.and_then(|top| senders.get(&host(top.host)));
        score.top_right += usize::from(sent.is_some_and(|sent| *sent >= NEARLY * largest));
    }
    if truth.roots.is_empty() && truth.perhaps_roots.is_empty() {
        score.causes += 1;
        let said = verdict
            .trees
            .first()
            .map_or("none", |tree| name_of(tree.cause));
        score.causes_right += usize::from(said == "none");
        *score.confusion.entry(("none", said)).or_default() += 1;
    }
    let named = verdict.trees.iter().flat_map(|tree| &tree.victims);
    let named: BTreeSet<HostId> = named.map(|victim| host(victim.host)).collect();
    let branches = verdict.trees.iter().flat_map(|tree| &tree.branches);
    let branches: BTreeSet<PortId> = branches.map(|branch| port(branch.port)).collect();
    score.victims = truth.count_victims(&named);
    score.victims_of_flows =
        truth.count_victims(&truth.victims_of_flows(&said.keys().copied().collect(), &branches));
    score.victim_odds = truth.victim_odds();
    score
}
