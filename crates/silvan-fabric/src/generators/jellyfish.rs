use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attached::{Parameter, attach_hosts, product};
use super::{Generator, port_number, switch_name};
use crate::routing::{LayeredMinHop, Routing};
use crate::{Cable, Fabric, FabricBuilder, FabricError, LinkKind};

const DRAWS: usize = 100;

/// A Jellyfish: switches with the same number of cables to other switches, chosen at random.
///
/// Repeatedly, two random switches with a free port that are not neighbours are cabled. If no such switches are left, a
/// random other cable is cut for each two free ports, and its ends lead to these ports. If switches times cables is
/// odd, one port stays empty (A. Singla, C.-Y. Hong, L. Popa, P. B. Godfrey, "Jellyfish: networking data centers
/// randomly", NSDI 2012, section 3).
///
/// Ports 1 to h have hosts, the next ports the neighbours in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Jellyfish {
    /// Number of switches.
    pub switches: usize,
    /// Hosts at each switch.
    pub hosts_per_switch: usize,
    /// Cables from each switch to others, at least 3.
    pub cables_per_switch: usize,
    /// Random seed of the graph, which that of the run does not change.
    #[serde(default = "Jellyfish::default_seed")]
    pub seed: u64,
    /// Cables of hosts, where they differ from the section `link`.
    #[serde(default, skip_serializing_if = "Cable::is_default")]
    pub host_link: Cable,
    /// Cables between switches, where they differ from the section `link`.
    #[serde(default, skip_serializing_if = "Cable::is_default")]
    pub switch_link: Cable,
}

impl Jellyfish {
    fn default_seed() -> u64 {
        1
    }

    fn parameter(&self, key: &'static str) -> Parameter {
        Parameter {
            generator: Self::NAME,
            key,
        }
    }

    fn validate(&self) -> Result<(), FabricError> {
        let of = |key| self.parameter(key);
        of("hosts-per-switch").positive(self.hosts_per_switch)?;
        if self.switches < 4 {
            let problem = format!("{} switches, it must be 4 or more", self.switches);
            return Err(of("switches").bad(problem, "write 4 or more"));
        }
        let most = self.switches - 1;
        if !(3..=most).contains(&self.cables_per_switch) {
            let problem = format!(
                "{} cables from each of {} switches to others",
                self.cables_per_switch, self.switches
            );
            return Err(of("cables-per-switch").bad(problem, format!("write 3 to {most}")));
        }
        of("hosts-per-switch").ports(Some(self.hosts_per_switch), self.cables_per_switch)?;
        of("switches").nodes(product(&[self.switches, self.hosts_per_switch + 1]))
    }
}

impl Generator for Jellyfish {
    fn default_routing(&self) -> Routing {
        LayeredMinHop {}.into()
    }

    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        self.validate()?;
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let graphs = (0..DRAWS)
            .filter_map(|_| RandomGraph::draw(self.switches, self.cables_per_switch, &mut draws));
        let graph = { graphs }.find(RandomGraph::is_connected).ok_or_else(|| {
            let problem = format!("{DRAWS} random graphs are not connected or not regular");
            self.parameter("seed").bad(problem, "write another number")
        })?;
        let mut builder = FabricBuilder::new();
        let hosts = self.hosts_per_switch;
        let ports = hosts + self.cables_per_switch;
        let switches = (0..self.switches)
            .map(|index| builder.add_switch(switch_name("switch", index, self.switches), ports))
            .collect::<Result<Vec<_>, _>>()?;
        let host_link = self.host_link.or(link);
        attach_hosts(&mut builder, Self::NAME, &switches, hosts, host_link)?;
        let switch_link = self.switch_link.or(link);
        let neighbours = graph.sorted();
        for (index, row) in neighbours.iter().enumerate() {
            for (port, &peer) in row.iter().enumerate().filter(|(_, peer)| **peer > index) {
                let far = neighbours[peer].partition_point(|other| *other < index);
                let here = port_number(hosts + port + 1, Self::NAME)?;
                let there = port_number(hosts + far + 1, Self::NAME)?;
                let ends = (switches[index].port(here), switches[peer].port(there));
                builder.connect(ends.0, ends.1, switch_link)?;
            }
        }
        builder.build()
    }
}

struct RandomGraph {
    neighbours: Vec<Vec<usize>>,
}

impl RandomGraph {
    /// A regular random graph, one degree less at one node if odd; `None` if a free port finds no place.
    fn draw(nodes: usize, degree: usize, draws: &mut impl RngCore) -> Option<Self> {
        let mut graph = Self {
            neighbours: vec![Vec::with_capacity(degree); nodes],
        };
        let mut open: Vec<usize> = (0..nodes).collect();
        while let Some((a, b)) = graph.pair(&open, draws) {
            graph.join(a, b);
            open.retain(|&node| graph.neighbours[node].len() < degree);
        }
        let free = |node: usize| degree - graph.neighbours[node].len();
        let ports: Vec<usize> = { open }
            .into_iter()
            .flat_map(|node| vec![node; free(node)])
            .collect();
        for pair in ports.chunks_exact(2) {
            graph.insert(pair[0], pair[1], draws)?;
        }
        Some(graph)
    }

    fn pair(&self, open: &[usize], draws: &mut impl RngCore) -> Option<(usize, usize)> {
        const TRIES: usize = 32;
        let fits = |a: usize, b: usize| a != b && !self.neighbours[a].contains(&b);
        for _ in 0..if open.len() < 2 { 0 } else { TRIES } {
            let (a, b) = (
                open[below(open.len(), draws)],
                open[below(open.len(), draws)],
            );
            if fits(a, b) {
                return Some((a, b));
            }
        }
        let pairs = open.iter().flat_map(|&a| open.iter().map(move |&b| (a, b)));
        let pairs: Vec<_> = pairs.filter(|&(a, b)| a < b && fits(a, b)).collect();
        (!pairs.is_empty()).then(|| pairs[below(pairs.len(), draws)])
    }

    fn join(&mut self, a: usize, b: usize) {
        self.neighbours[a].push(b);
        self.neighbours[b].push(a);
    }

    /// Cuts a random edge for `a` and `b`, which may be equal; `None` if that would make parallel edges.
    fn insert(&mut self, a: usize, b: usize, draws: &mut impl RngCore) -> Option<()> {
        let is_far =
            |node: usize, other: usize| node != other && !self.neighbours[node].contains(&other);
        let ends = (0..self.neighbours.len()).filter(|&x| is_far(a, x));
        let edges = ends.flat_map(|x| self.neighbours[x].iter().map(move |&y| (x, y)));
        let edges: Vec<_> = edges.filter(|&(_, y)| is_far(b, y)).collect();
        if edges.is_empty() {
            return None;
        }
        let (x, y) = edges[below(edges.len(), draws)];
        self.neighbours[x].retain(|other| *other != y);
        self.neighbours[y].retain(|other| *other != x);
        self.join(a, x);
        self.join(b, y);
        Some(())
    }

    fn is_connected(&self) -> bool {
        let mut reached = vec![false; self.neighbours.len()];
        reached[0] = true;
        let mut queue = vec![0];
        while let Some(node) = queue.pop() {
            for &other in &self.neighbours[node] {
                if !std::mem::replace(&mut reached[other], true) {
                    queue.push(other);
                }
            }
        }
        reached.iter().all(|reached| *reached)
    }

    fn sorted(mut self) -> Vec<Vec<usize>> {
        self.neighbours
            .iter_mut()
            .for_each(|row| row.sort_unstable());
        self.neighbours
    }
}

fn below(count: usize, draws: &mut impl RngCore) -> usize {
    ((u128::from(draws.next_u64()) * count as u128) >> 64) as usize
}
