//! The report as plain values, with names instead of numbers.

use std::collections::BTreeMap;

use serde::Serialize;
use silvan_core::{HostId, IdVec, PortId, Rate, Span};
use silvan_fabric::{Fabric, ForwardingTables};
use silvan_subnet::client::Limits;

use crate::health::{HealthItem, check_health};
use crate::observation::{Observation, data_rate};
use crate::survey::{AdapterControl, SurveyFacts};
use crate::verdict::{Cause, Confidence, Facts, Tree, Verdict, diagnose};

/// Ports with less lost than this part of their link are not listed.
const LEAST_LOSS: f64 = 0.005;

/// Everything that is known of a subnet.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Nodes and cables.
    pub fabric: &'a Fabric,
    /// Forwarding tables of the subnet, if known.
    pub tables: Option<&'a ForwardingTables>,
    /// Shortest paths, in case they are not.
    pub assumed: &'a ForwardingTables,
    /// Rates that both ends of each link support, if known.
    pub capable: &'a IdVec<PortId, Option<Rate>>,
    /// Two sweeps compared.
    pub observation: &'a Observation,
    /// Further facts of a live survey.
    pub facts: Option<&'a SurveyFacts>,
}

/// A diagnosis.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Number of switches.
    pub switches: usize,
    /// Number of hosts.
    pub hosts: usize,
    /// Number of ports with a cable.
    pub ports: usize,
    /// Ports among them whose load or waiting time is unknown.
    pub unknown_ports: usize,
    /// Seconds between the sweeps.
    pub interval_s: f64,
    /// Ticks of PortXmitWait by which waiting times were computed, the shortest first.
    pub ticks: Vec<TickReport>,
    /// Congestion trees, the largest first.
    pub trees: Vec<TreeReport>,
    /// Ports that lose bandwidth by waiting, the largest loss first.
    pub losses: Vec<Loss>,
    /// Ports that wait, and that no tree explains.
    pub unexplained: Vec<String>,
    /// Cables with bit errors, the one with most errors first.
    pub bad_cables: Vec<BadCable>,
    /// Findings, the gravest first.
    pub health: Vec<HealthItem>,
    /// Congestion control of a live subnet.
    pub control: Option<ControlReport>,
    /// Seconds that the analysis of a live survey took.
    pub analysis_s: Option<f64>,
    /// Datagrams of a live survey.
    pub datagrams: Option<Datagrams>,
}

/// Congestion control of a subnet.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ControlReport {
    /// Settings of switches, and the switches that have them.
    pub switches: Vec<SwitchSettings>,
    /// Settings of adapters, if a switch marks packets.
    pub adapters: Vec<AdapterSettings>,
    /// Nodes whose settings are not known.
    pub unknown: Vec<String>,
    /// Notifications that hosts have received per second, above 0.
    pub becn_per_s: BTreeMap<String, f64>,
}

/// Settings of switches.
#[derive(Clone, Debug, Serialize)]
pub struct SwitchSettings {
    /// Threshold: 0 never marks.
    pub threshold: u32,
    /// Marking_Rate.
    pub marking_rate: u16,
    /// Packet_Size in units of 64 bytes.
    pub packet_size: u8,
    /// The switches.
    pub switches: Vec<String>,
}

/// Settings of adapters.
#[derive(Clone, Debug, Serialize)]
pub struct AdapterSettings {
    /// CCTI_Timer in units of 1.024 us.
    pub ccti_timer: u16,
    /// CCTI_Increase.
    pub ccti_increase: u8,
    /// CCTI_Min.
    pub ccti_min: u8,
    /// The hosts.
    pub hosts: Vec<String>,
}

/// A tick of PortXmitWait.
#[derive(Clone, Debug, Serialize)]
pub struct TickReport {
    /// Length of the tick in nanoseconds.
    pub ns: f64,
    /// Number of cabled ports that have it.
    pub ports: usize,
}

/// Datagrams of a live survey.
#[derive(Clone, Debug, Serialize)]
pub struct Datagrams {
    /// Requests, retries included.
    pub sent: u64,
    /// Requests without an answer in time.
    pub timeouts: u64,
    /// Most requests in flight at once.
    pub most_in_flight: usize,
    /// Seconds that the second sweep took.
    pub sweep_s: f64,
}

/// A congestion tree.
#[derive(Clone, Debug, Serialize)]
pub struct TreeReport {
    /// The port where congestion starts.
    pub root: String,
    /// Number of the root port in the fabric.
    #[serde(skip)]
    pub root_port: PortId,
    /// The port at the other end of its cable.
    pub peer: String,
    /// incast, overload, degraded link, slow receiver or bad cable.
    pub cause: &'static str,
    /// Meaning of the verdict, as a sentence with numbers.
    pub explanation: String,
    /// low, medium or high.
    pub confidence: &'static str,
    /// Facts that the counters do not show.
    pub cannot_know: Vec<&'static str>,
    /// Part of the link that is in use.
    pub load: Option<f64>,
    /// Ports that wait because of it.
    pub branches: Vec<BranchReport>,
    /// Hosts that send through the root, the largest first.
    pub contributors: Vec<HostReport>,
    /// Hosts that are slowed down.
    pub victims: Vec<HostReport>,
}

/// A port that waits.
#[derive(Clone, Debug, Serialize)]
pub struct BranchReport {
    /// The port.
    pub port: String,
    /// Number of the port in the fabric.
    #[serde(skip)]
    pub id: PortId,
    /// The port that it waits for.
    pub waits_for: String,
    /// Ports to the root.
    pub depth: u32,
    /// Part of the time for which it waits.
    pub wait: Option<f64>,
}

/// A host in a tree.
#[derive(Clone, Debug, Serialize)]
pub struct HostReport {
    /// Name of the host.
    pub host: String,
    /// Of a contributor, the host that most of it goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Relevant rate of the host, estimated, in Gbit/s.
    pub gbps: f64,
    /// Why it is listed.
    pub reason: String,
}

/// A cable with bit errors.
#[derive(Clone, Debug, Serialize)]
pub struct BadCable {
    /// The port that receives the errors.
    pub port: String,
    /// Number of the port in the fabric.
    #[serde(skip)]
    pub id: PortId,
    /// The port at the other end, which sends.
    pub peer: String,
    /// Growth of SymbolErrorCounter per second.
    pub symbol_errors_per_s: f64,
    /// Growth of PortRcvErrors per second.
    pub rcv_errors_per_s: f64,
    /// Growth of LinkErrorRecoveryCounter between the sweeps.
    pub link_error_recoveries: u64,
    /// Part of the cable in congestion: causes, carries or none.
    pub congestion: CablePart,
    /// Root of the congestion tree, if the cable is part of one.
    pub root: Option<String>,
}

/// Part of a bad cable in congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CablePart {
    /// Its replays are the cause of a tree.
    Causes,
    /// It is the root or a branch of a tree that has another cause.
    Carries,
    /// It is in no tree.
    None,
}

impl CablePart {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Causes => "causes",
            Self::Carries => "carries",
            Self::None => "none",
        }
    }
}

/// Finds the cables with bit errors.
fn bad_cables(fabric: &Fabric, observation: &Observation, verdict: &Verdict) -> Vec<BadCable> {
    let name = |port: PortId| fabric.port_name(port).to_string();
    let cables = fabric.ports.ids().filter_map(|port| {
        let errors = observation.link_errors(fabric, port)?;
        let sender = fabric.ports[port].peer?;
        let has = |tree: &&Tree| {
            tree.root == sender || tree.branches.iter().any(|branch| branch.port == sender)
        };
        let tree = verdict.trees.iter().find(has);
        let congestion = match tree {
            Some(tree) if tree.root == sender && tree.cause == Cause::BadCable => CablePart::Causes,
            Some(_) => CablePart::Carries,
            None => CablePart::None,
        };
        Some(BadCable {
            port: name(port),
            id: port,
            peer: name(sender),
            symbol_errors_per_s: errors.symbol_errors_per_s,
            rcv_errors_per_s: errors.rcv_errors_per_s,
            link_error_recoveries: errors.recoveries,
            congestion,
            root: tree.map(|tree| name(tree.root)),
        })
    });
    let mut cables: Vec<BadCable> = cables.collect();
    cables.sort_by(|a, b| b.symbol_errors_per_s.total_cmp(&a.symbol_errors_per_s));
    cables
}

/// Bandwidth that a port loses.
#[derive(Clone, Debug, Serialize)]
pub struct Loss {
    /// The port.
    pub port: String,
    /// Part of the time for which it waits.
    pub wait: f64,
    /// Rate that the link could carry in this time, in Gbit/s.
    pub lost_gbps: f64,
}

fn gbps(rate: Rate) -> f64 {
    rate.bits_per_sec() as f64 / 1e9
}

fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "?".to_owned(), |part| format!("{:.0} %", part * 100.0))
}

impl Report {
    /// Diagnoses a subnet.
    pub fn new(input: Input<'_>) -> Self {
        let fabric = input.fabric;
        let verdict = diagnose(Facts {
            fabric,
            tables: input.tables.unwrap_or(input.assumed),
            assumed_tables: input.tables.is_none(),
            capable: input.capable,
            observation: input.observation,
        });
        let cabled = || {
            fabric
                .ports
                .ids()
                .filter(|&port| fabric.ports[port].link.is_some())
        };
        let mut losses: Vec<Loss> = cabled()
            .filter_map(|port| {
                let wait = input.observation.ports[port].wait?;
                Some(Loss {
                    port: fabric.port_name(port).to_string(),
                    wait,
                    lost_gbps: wait * gbps(data_rate(fabric, port)?),
                })
            })
            .filter(|loss| loss.wait >= LEAST_LOSS)
            .collect();
        losses.sort_by(|a, b| b.lost_gbps.total_cmp(&a.lost_gbps));
        let name = |port: &PortId| fabric.port_name(*port).to_string();
        let mut ticks: BTreeMap<Span, usize> = BTreeMap::new();
        for tick in cabled().filter_map(|port| input.observation.ticks[port]) {
            *ticks.entry(tick).or_default() += 1;
        }
        let ticks = ticks.into_iter().map(|(tick, ports)| TickReport {
            ns: tick.as_ps() as f64 / 1e3,
            ports,
        });
        let bad_cables = bad_cables(fabric, input.observation, &verdict);
        Self {
            switches: fabric.switch_count(),
            hosts: fabric.host_count(),
            ports: cabled().count(),
            unknown_ports: input.observation.unknown_ports(fabric).count(),
            interval_s: seconds(input.observation.span),
            ticks: ticks.collect(),
            trees: verdict
                .trees
                .iter()
                .map(|tree| tree_report(&input, &verdict, tree))
                .collect(),
            losses,
            unexplained: verdict.unexplained.iter().map(name).collect(),
            health: check_health(
                fabric,
                input.tables,
                input.capable,
                input.observation,
                (input.facts, &bad_cables),
            ),
            bad_cables,
            control: input
                .facts
                .map(|facts| control_report(fabric, facts, input.observation)),
            analysis_s: None,
            datagrams: input.facts.map(|facts| Datagrams {
                sent: facts.statistics.sent,
                timeouts: facts.statistics.timeouts,
                most_in_flight: Limits::DEFAULT.in_flight,
                sweep_s: seconds(facts.sweep_time),
            }),
        }
    }
}

fn control_report(
    fabric: &Fabric,
    facts: &SurveyFacts,
    observation: &Observation,
) -> ControlReport {
    let mut report = ControlReport::default();
    let mut switches: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for (name, control) in &facts.control {
        let Ok(setting) = control.setting else {
            report.unknown.push(name.clone());
            continue;
        };
        let key = (
            setting.threshold.get(),
            setting.marking_rate,
            setting.packet_size,
        );
        switches.entry(key).or_default().push(name.clone());
    }
    let mut adapters: BTreeMap<AdapterControl, Vec<String>> = BTreeMap::new();
    for (name, settings) in &facts.adapters {
        match settings.as_ref().ok().and_then(|settings| settings.first()) {
            Some(&setting) => adapters.entry(setting).or_default().push(name.clone()),
            None => report.unknown.push(name.clone()),
        }
    }
    let switches = switches.into_iter();
    report.switches = switches
        .map(
            |((threshold, marking_rate, packet_size), switches)| SwitchSettings {
                threshold,
                marking_rate,
                packet_size,
                switches,
            },
        )
        .collect();
    let adapters = adapters.into_iter();
    report.adapters = adapters
        .map(|(setting, hosts)| AdapterSettings {
            ccti_timer: setting.ccti_timer,
            ccti_increase: setting.ccti_increase,
            ccti_min: setting.ccti_min,
            hosts,
        })
        .collect();
    for host in fabric.host_ids() {
        let becn = observation.ports[fabric.host_port(host)].becn_per_s;
        if let Some(becn) = becn.filter(|becn| *becn > 0.0) {
            report
                .becn_per_s
                .insert(fabric.host(host).name.clone(), becn);
        }
    }
    report
}

fn seconds(span: Span) -> f64 {
    span.as_ps() as f64 / 1e12
}

fn main_receiver(fabric: &Fabric, tree: &Tree) -> String {
    let mut by_host: BTreeMap<HostId, f64> = BTreeMap::new();
    for one in &tree.contributors {
        *by_host.entry(one.destination).or_default() += one.bits_per_s;
    }
    let total: f64 = by_host.values().sum();
    let largest = by_host.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    match largest {
        Some((host, rate)) if rate > total / 2.0 => {
            format!(", most of it to {}", fabric.host(host).name)
        }
        _ => String::new(),
    }
}

fn tree_report(input: &Input<'_>, verdict: &Verdict, tree: &Tree) -> TreeReport {
    let fabric = input.fabric;
    let ports = &input.observation.ports;
    let name = |port: PortId| fabric.port_name(port).to_string();
    let host = |host: HostId| fabric.host(host).name.clone();
    let peer = fabric.ports[tree.root].peer.map_or_else(String::new, name);
    let receiver = fabric.ports[tree.root]
        .peer
        .map(|port| fabric.ports[port].node);
    let receiver = receiver.map_or("", |node| fabric.nodes[node].name.as_str());
    let load = &ports[tree.root];
    let rate = data_rate(fabric, tree.root).map_or_else(|| "?".to_owned(), |rate| rate.to_string());
    let senders = tree.senders;
    let explanation = match tree.cause {
        Cause::Incast | Cause::Overload if senders == 0 => format!(
            "the link of {rate} to {receiver} is {} full; who sends over it is not known, because no known path leads there",
            percent(load.load)
        ),
        Cause::Incast => format!(
            "{senders} hosts send to {receiver}, whose link of {rate} is {} full",
            percent(load.load)
        ),
        Cause::Overload => format!(
            "{senders} hosts send over a cable of {rate} that is {} full{}",
            percent(load.load),
            main_receiver(fabric, tree)
        ),
        Cause::DegradedLink => format!(
            "the link runs at {rate}, its ports support {}, and it is {} full",
            input.capable[tree.root].map_or_else(|| "more".to_owned(), |rate| rate.to_string()),
            percent(load.load)
        ),
        Cause::SlowReceiver => format!(
            "{receiver} takes {} of its link of {rate}, which waits for it {} of the time",
            percent(load.load),
            percent(load.wait)
        ),
        Cause::BadCable => format!(
            "the cable of {rate} to {receiver} replays packets with bit errors, and carries {} of its rate while others wait",
            percent(load.load)
        ),
    };
    let contributors = tree.contributors.iter().map(|one| HostReport {
        host: host(one.host),
        to: Some(host(one.destination)),
        gbps: one.bits_per_s / 1e9,
        reason: {
            let marks = one
                .becn_per_s
                .filter(|_| verdict.used_marks)
                .map(|becn| format!(", receives {becn:.0} notifications/s"));
            format!(
                "sends to {}, waits {} of the time{}",
                host(one.destination),
                percent(one.wait),
                marks.unwrap_or_default()
            )
        },
    });
    let victims = tree.victims.iter().map(|one| HostReport {
        host: host(one.host),
        to: None,
        gbps: one.bits_per_s / 1e9,
        reason: format!(
            "shares {} with them, waits {} of the time",
            name(one.branch),
            percent(one.wait)
        ),
    });
    let mut cannot_know = Vec::new();
    if !verdict.used_marks {
        cannot_know.push(
            "No counter has flows: of hosts that send equally much on the same ports, any may be the one",
        );
    }
    if input.tables.is_none() {
        cannot_know.push("The forwarding tables are assumed: other paths make other contributors");
    } else {
        cannot_know
            .push("Adaptive routing, if it is on, leads packets off the paths of the tables");
    }
    if verdict.is_partial {
        cannot_know
            .push("Only flows through busy ports are estimated, because there are too many pairs");
    }
    if verdict.unroutable > 0 {
        cannot_know.push("Some pairs of hosts have no path in the tables");
    }
    TreeReport {
        root: name(tree.root),
        root_port: tree.root,
        peer,
        cause: tree.cause.name(),
        explanation,
        confidence: match tree.confidence {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        },
        cannot_know,
        load: load.load,
        branches: tree
            .branches
            .iter()
            .map(|branch| BranchReport {
                port: name(branch.port),
                id: branch.port,
                waits_for: name(branch.parent),
                depth: branch.depth,
                wait: ports[branch.port].wait,
            })
            .collect(),
        contributors: contributors.collect(),
        victims: victims.collect(),
    }
}
