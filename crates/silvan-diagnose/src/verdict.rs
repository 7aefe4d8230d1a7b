//! Congestion trees from loads, waiting times and estimated flows, in the terms of `probe.trees` (docs/model.md).
//!
//! - A root sends all the time, or its receiver accepts no more.
//! - A branch waits for credits, as the switch behind it holds packets for a root or branch.
//! - Contributors send through the root, victims through a branch alone.

mod facts;
mod tree;
mod victims;

use std::collections::{BTreeMap, VecDeque};

use silvan_core::{HostId, IdVec, PortId};

use crate::evidence::{Marks, Seen, Waiting};
use crate::flows::Flows;
use crate::observation::data_rate;

pub use facts::Facts;
use facts::{BUSY, is_bad_cable, is_blocked, is_busy, is_full};
pub use tree::{Branch, Cause, Confidence, Contributor, Tree, Verdict, Victim};

/// A blocked port that no busy port explains waits for one that sends at least so much.
const SUSPECT: f64 = 0.4;
/// A receiver is slow if its link is blocked and carries less than this.
const SLOW: f64 = 0.9;
/// Flows below this part of a root's link are not named.
const LEAST_SHARE: f64 = 0.01;
/// Flows below this part of a root's link are not counted.
const LEAST_SENT: f64 = 0.001;
/// Number of named contributors if all are small.
const MOST_SMALL: usize = 5;
/// A port may wait for an output through which it sends at least this part of the output's rate.
const LEAST_TURN: f64 = 0.03;
/// A port that sends at least this part of what an output carries has the output for itself.
const ALONE: f64 = 0.97;
/// Flows below this part of what a branch sends are no victims of note.
const LEAST_VICTIM: f64 = 0.05;
/// Hosts are named if they are victims in at least this part of equally good sets: half of an F1 of 0.86 (Lipton,
/// Elkan, Naryanaswamy: Optimal thresholding of classifiers to maximize F1 measure, ECML 2014).
const LIKELY: f64 = 0.43;
/// Notifications per second in the whole subnet from which on they count.
const LEAST_MARKS: f64 = 20.0;
/// A port that had marked packets in at least this part of the readings of its switch's log is a root.
const MARKING: f64 = 0.5;
/// A link is degraded if it carries less than this part of what its ports can.
const DEGRADED: f64 = 0.99;

/// Marks that leave so much more of all loads unexplained do not tell of all senders.
const NOT_EXPLAINED: f64 = 0.01;

#[derive(Clone, Copy, PartialEq, Eq)]
enum MarksUsed {
    None,
    Sample,
    All,
}

#[derive(Clone, Copy)]
struct Membership {
    root: PortId,
    depth: u32,
    parent: Option<PortId>,
}

struct Trees<'a> {
    facts: Facts<'a>,
    turns: IdVec<PortId, Vec<f64>>,
    members: IdVec<PortId, Option<Membership>>,
}

/// Finds the trees.
pub fn diagnose(facts: Facts<'_>) -> Verdict {
    let fabric = facts.fabric;
    let is_switch = |port: PortId| fabric.nodes[fabric.ports[port].node].as_switch().is_some();
    let busy: Vec<PortId> = fabric
        .ports
        .ids()
        .filter(|&port| is_switch(port) && (is_busy(&facts, port) || is_blocked(&facts, port)))
        .collect();
    let any_blocked = fabric.ports.ids().any(|port| is_blocked(&facts, port));
    if !any_blocked {
        return Verdict::default();
    }
    let mut is_busy = IdVec::filled(false, fabric.ports.len());
    for &port in &busy {
        is_busy[port] = true;
    }
    let held_up = fabric
        .ports
        .ids()
        .map(|port| is_blocked(&facts, port))
        .collect();
    let full = fabric.ports.ids().map(|port| is_full(&facts, port));
    let waiting = Waiting {
        busy: is_busy,
        held_up,
        full: full.collect(),
    };
    let mut flows = Flows::estimate(fabric, facts.tables, facts.observation, waiting);
    let mut trees = Trees::grow(facts, &flows);
    let used = trees.use_marks(&mut flows);
    if used != MarksUsed::None {
        trees = Trees::grow(facts, &flows);
    }
    trees.finish(&flows, used)
}

impl<'a> Trees<'a> {
    fn grow(facts: Facts<'a>, flows: &Flows) -> Self {
        let fabric = facts.fabric;
        let outputs = |port: PortId| {
            let switch = fabric.peer_switch(port);
            switch.map_or(0, |(switch, _)| {
                usize::from(fabric.switch(switch).port_count)
            })
        };
        let mut turns: IdVec<PortId, Vec<f64>> = fabric
            .ports
            .ids()
            .map(|port| vec![0.0; outputs(port)])
            .collect();
        for flow in flows.iter() {
            for pair in flows.path(flow).windows(2) {
                let number = usize::from(fabric.ports[pair[1]].number.as_u8()) - 1;
                turns[pair[0]][number] += flow.bits_per_s;
            }
        }
        let mut trees = Self {
            facts,
            turns,
            members: IdVec::filled(None, fabric.ports.len()),
        };
        let roots: Vec<PortId> = fabric
            .ports
            .ids()
            .filter(|&port| trees.is_root(port))
            .collect();
        trees.attach(roots);
        // Ports that wait for no busy root are attributed to the busiest port.
        while let Some(root) = trees.suspect() {
            trees.attach(vec![root]);
        }
        trees
    }

    fn turn(&self, from: PortId, to: PortId) -> f64 {
        let number = usize::from(self.facts.fabric.ports[to].number.as_u8()) - 1;
        self.turns[from].get(number).copied().unwrap_or(0.0)
    }

    fn rate(&self, port: PortId) -> f64 {
        data_rate(self.facts.fabric, port).map_or(1.0, |rate| rate.bits_per_sec() as f64)
    }

    fn inputs(&self, output: PortId) -> impl Iterator<Item = (PortId, f64)> + '_ {
        let fabric = self.facts.fabric;
        let node = &fabric.nodes[fabric.ports[output].node];
        let inputs = node.ports().filter_map(|port| fabric.ports[port].peer);
        inputs.map(move |input| (input, self.turn(input, output)))
    }

    /// Blocked inputs with a good part of the output, or without another output that could delay them.
    fn blocked_inputs(&self, output: PortId) -> impl Iterator<Item = PortId> + '_ {
        let least = LEAST_TURN * self.rate(output);
        let blocked = self
            .inputs(output)
            .filter(|&(input, _)| is_blocked(&self.facts, input));
        blocked
            .filter(move |&(input, turn)| turn >= least || !self.has_reason(input))
            .map(|(input, _)| input)
    }

    fn has_reason(&self, input: PortId) -> bool {
        let fabric = self.facts.fabric;
        let Some((switch, _)) = fabric.peer_switch(input) else {
            return true;
        };
        fabric.switch(switch).ports().any(|output| {
            self.turn(input, output) >= LEAST_TURN * self.rate(output)
                && (is_busy(&self.facts, output) || is_blocked(&self.facts, output))
        })
    }

    fn is_root(&self, port: PortId) -> bool {
        let fabric = self.facts.fabric;
        let is_switch = fabric.nodes[fabric.ports[port].node].as_switch().is_some();
        let marking = self.facts.observation.logs.marking(fabric, port);
        let holds_up = |(input, _): (PortId, f64)| is_blocked(&self.facts, input);
        if is_switch
            && marking.is_some_and(|part| part >= MARKING)
            && self.inputs(port).any(holds_up)
            && !is_blocked(&self.facts, port)
        {
            return true;
        }
        if !is_switch || !is_busy(&self.facts, port) || self.blocked_inputs(port).next().is_none() {
            return false;
        }
        // A cable cannot overload another cable of equal rate.
        let (sum, (largest, input)) =
            self.inputs(port)
                .fold((0.0, (0.0, port)), |(sum, largest), (input, turn)| {
                    let is_larger = turn > largest.0;
                    (sum + turn, if is_larger { (turn, input) } else { largest })
                });
        let is_alone = sum > 0.0 && largest >= ALONE * sum;
        !is_alone
            || self.rate(input) > self.rate(port) * 1.01
            || is_blocked(&self.facts, port)
            || is_bad_cable(&self.facts, port)
    }

    fn attach(&mut self, roots: Vec<PortId>) {
        let mut open = VecDeque::new();
        for root in roots {
            self.members[root] = Some(Membership {
                root,
                depth: 0,
                parent: None,
            });
            open.push_back(root);
        }
        while let Some(output) = open.pop_front() {
            let Some(member) = self.members[output] else {
                continue;
            };
            let inputs: Vec<PortId> = self.blocked_inputs(output).collect();
            for input in inputs {
                let depth = member.depth + 1;
                let is_better = match self.members[input] {
                    None => true,
                    Some(known) => {
                        let parent = known.parent.unwrap_or(input);
                        known.depth == depth && self.turn(input, parent) < self.turn(input, output)
                    }
                };
                if !is_better {
                    continue;
                }
                if self.members[input].is_none() {
                    open.push_back(input);
                }
                self.members[input] = Some(Membership {
                    root: member.root,
                    depth,
                    parent: Some(output),
                });
            }
        }
    }

    /// The busiest output that a blocked port outside of trees leads to.
    fn suspect(&self) -> Option<PortId> {
        let fabric = self.facts.fabric;
        let blocked = fabric
            .ports
            .ids()
            .filter(|&port| is_blocked(&self.facts, port) && self.members[port].is_none());
        let outputs = blocked.filter_map(|port| {
            let (switch, _) = fabric.peer_switch(port)?;
            let outputs = fabric.switch(switch).ports();
            let free = outputs.filter(|&output| self.members[output].is_none());
            let sent = |output: PortId| {
                let load = &self.facts.observation.ports[output];
                Some((output, load.load? + load.wait.unwrap_or(0.0)))
            };
            let least = |output: PortId| self.turn(port, output) >= LEAST_SHARE * self.rate(output);
            // A blocked output is the effect of something further on.
            let is_end = |output: PortId| {
                fabric.peer_switch(output).is_none() || !is_blocked(&self.facts, output)
            };
            let ends = free
                .filter(|&output| least(output) && is_end(output))
                .filter_map(sent);
            ends.max_by(|a, b| a.1.total_cmp(&b.1))
        });
        let busiest = outputs.max_by(|a, b| a.1.total_cmp(&b.1));
        busiest
            .filter(|(_, sent)| *sent >= SUSPECT)
            .map(|(output, _)| output)
    }

    /// Restricts the flows by the notifications of hosts, unless the loads contradict them. A switch that marks every
    /// n-th packet can mark the packets of some inputs alone.
    fn use_marks(&self, flows: &mut Flows) -> MarksUsed {
        let fabric = self.facts.fabric;
        let ports = &self.facts.observation.ports;
        let becn = |host: HostId| ports[fabric.host_port(host)].becn_per_s;
        let total: f64 = fabric.host_ids().filter_map(becn).sum();
        if total < LEAST_MARKS {
            return MarksUsed::None;
        }
        // Switches mark packets at roots; without one, nothing says which flows were marked.
        let is_root = |port: PortId| self.members[port].is_some_and(|member| member.depth == 0);
        let roots = fabric.ports.ids().filter(|&port| is_root(port));
        let sum: f64 = roots.map(|port| self.sent(port)).sum();
        if sum == 0.0 {
            return MarksUsed::None;
        }
        let through: IdVec<HostId, Option<f64>> = fabric
            .host_ids()
            .map(|source| Some(becn(source)? / total * sum))
            .collect();
        let fecn = |host: HostId| ports[fabric.host_port(host)].fecn_per_s;
        let total: f64 = fabric.host_ids().filter_map(fecn).sum();
        let arriving: IdVec<HostId, Option<f64>> = fabric
            .host_ids()
            .map(|host| Some(fecn(host)? / total.max(1.0) * sum).filter(|_| total >= LEAST_MARKS))
            .collect();
        let seen = Seen::new(&self.facts.observation.logs);
        let mut marks = Marks {
            through: &through,
            arriving: &arriving,
            is_marking: &is_root,
            seen: &seen,
            least: LEAST_SHARE
                * data_rate(fabric, fabric.host_port(HostId::new(0)))
                    .map_or(1.0, |rate| rate.bits_per_sec() as f64),
            are_complete: true,
        };
        let observation = self.facts.observation;
        let allowed = flows.unexplained(fabric, observation) + NOT_EXPLAINED;
        flows.refine(fabric, observation, &marks);
        if flows.unexplained(fabric, observation) <= allowed {
            return MarksUsed::All;
        }
        marks.are_complete = false;
        flows.refine(fabric, observation, &marks);
        MarksUsed::Sample
    }

    fn sent(&self, port: PortId) -> f64 {
        self.facts.observation.ports[port].load.unwrap_or(1.0) * self.rate(port)
    }

    fn cause(&self, root: PortId) -> Cause {
        let load = &self.facts.observation.ports[root];
        let fabric = self.facts.fabric;
        let faces_host = fabric.peer_switch(root).is_none();
        let is_degraded = data_rate(fabric, root).zip(self.facts.capable[root]);
        let is_degraded = is_degraded.is_some_and(|(rate, capable)| {
            (rate.bits_per_sec() as f64) < DEGRADED * capable.bits_per_sec() as f64
        });
        if faces_host && is_blocked(&self.facts, root) && load.load.is_some_and(|load| load < SLOW)
        {
            Cause::SlowReceiver
        } else if is_bad_cable(&self.facts, root) {
            Cause::BadCable
        } else if is_degraded {
            Cause::DegradedLink
        } else if faces_host {
            Cause::Incast
        } else {
            Cause::Overload
        }
    }

    fn confidence(&self, root: PortId, used: MarksUsed, has_senders: bool) -> Confidence {
        let load = &self.facts.observation.ports[root];
        let is_clear = load.load.is_some_and(|load| load >= BUSY)
            || matches!(self.cause(root), Cause::SlowReceiver | Cause::BadCable);
        match (self.facts.assumed_tables || !is_clear || !has_senders, used) {
            (true, _) => Confidence::Low,
            (false, MarksUsed::All) => Confidence::High,
            (false, _) => Confidence::Medium,
        }
    }

    fn finish(self, flows: &Flows, used: MarksUsed) -> Verdict {
        let fabric = self.facts.fabric;
        let ports = &self.facts.observation.ports;
        type Sent = BTreeMap<HostId, (f64, BTreeMap<HostId, f64>)>;
        let mut contributing: BTreeMap<PortId, Sent> = BTreeMap::new();
        // By branch and sender, what it sends through the branch and past the root.
        let mut held_up: BTreeMap<(PortId, HostId), f64> = BTreeMap::new();
        let mut branches: BTreeMap<PortId, Vec<Branch>> = BTreeMap::new();
        for (port, member) in self.members.iter_enumerated() {
            let Some(member) = member else { continue };
            let list = branches.entry(member.root).or_default();
            if let Some(parent) = member.parent {
                list.push(Branch {
                    port,
                    depth: member.depth,
                    parent,
                });
            }
        }
        for flow in flows.iter() {
            let path = flows.path(flow);
            // A flow through several roots feeds all their trees.
            let is_root = |port: &PortId| self.members[*port].is_some_and(|one| one.depth == 0);
            for root in path.iter().copied().filter(is_root) {
                let senders = contributing.entry(root).or_default();
                let sender = senders.entry(flow.source).or_default();
                sender.0 += flow.bits_per_s;
                *sender.1.entry(flow.destination).or_default() += flow.bits_per_s;
            }
            for branch in self.shared(path) {
                *held_up.entry((branch, flow.source)).or_default() += flow.bits_per_s;
            }
        }
        let parts = self.part_of_victims(flows);
        let mut suffering: BTreeMap<PortId, BTreeMap<HostId, (f64, PortId)>> = BTreeMap::new();
        for ((branch, host), bits_per_s) in held_up {
            let Some(member) = self.members[branch] else {
                continue;
            };
            let is_likely = parts.get(&host).is_some_and(|part| *part >= LIKELY);
            if is_likely && bits_per_s >= LIKELY * LEAST_VICTIM * self.sent(branch) {
                let hosts = suffering.entry(member.root).or_default();
                let victim = hosts.entry(host).or_insert((0.0, branch));
                if bits_per_s > victim.0 {
                    *victim = (bits_per_s, branch);
                }
            }
        }
        let mut trees: Vec<Tree> = branches
            .into_iter()
            .filter(|(_, branches)| !branches.is_empty())
            .map(|(root, mut branches)| {
                branches.sort_by_key(|branch| (branch.depth, branch.port));
                let least = LEAST_SHARE * self.rate(root);
                let senders = contributing.remove(&root).unwrap_or_default();
                let mut contributors: Vec<Contributor> = senders
                    .into_iter()
                    .map(|(host, (bits_per_s, destinations))| Contributor {
                        host,
                        bits_per_s,
                        wait: ports[fabric.host_port(host)].wait,
                        becn_per_s: ports[fabric.host_port(host)].becn_per_s,
                        destination: destinations
                            .into_iter()
                            .max_by(|a, b| a.1.total_cmp(&b.1))
                            .map_or(host, |(destination, _)| destination),
                    })
                    .collect();
                contributors.sort_by(|a, b| b.bits_per_s.total_cmp(&a.bits_per_s));
                let least_sent = LEAST_SENT * self.rate(root);
                let senders = contributors.partition_point(|one| one.bits_per_s >= least_sent);
                let large = contributors.partition_point(|one| one.bits_per_s >= least);
                contributors.truncate(match large {
                    0 => senders.min(MOST_SMALL),
                    _ => large,
                });
                let hosts = suffering.remove(&root).unwrap_or_default();
                let mut victims: Vec<Victim> = hosts
                    .into_iter()
                    .filter(|(_, (rate, _))| *rate >= least_sent)
                    .map(|(host, (bits_per_s, branch))| Victim {
                        host,
                        bits_per_s,
                        wait: ports[fabric.host_port(host)].wait,
                        branch,
                    })
                    .collect();
                victims.sort_by(|a, b| b.bits_per_s.total_cmp(&a.bits_per_s));
                Tree {
                    root,
                    cause: self.cause(root),
                    confidence: self.confidence(root, used, !contributors.is_empty()),
                    branches,
                    senders,
                    contributors,
                    victims,
                }
            })
            .collect();
        trees.sort_by_key(|tree| std::cmp::Reverse(tree.branches.len()));
        let unexplained = fabric
            .ports
            .ids()
            .filter(|&port| is_blocked(&self.facts, port) && self.members[port].is_none());
        Verdict {
            used_marks: used != MarksUsed::None,
            is_partial: flows.is_partial,
            unroutable: flows.unroutable,
            unexplained: unexplained.collect(),
            trees,
        }
    }
}
