//! Findings about a subnet, each with advice.

use std::collections::BTreeMap;

use serde::Serialize;
use silvan_core::growth::UnknownGrowth;
use silvan_core::{DeviceId, GivenTicks, IdVec, PortId, Rate};
use silvan_fabric::check::{CheckOptions, check};
use silvan_fabric::{Fabric, ForwardingTables};
use silvan_mad::smp::SmState;
use silvan_subnet::client::Failure;

use crate::observation::{Observation, data_rate};
use crate::report::{BadCable, CablePart};
use crate::survey::{ManagerState, SurveyFacts};

const MOST_NAMES: usize = 5;
/// Unbalanced routes: ratio of the busiest cable to the mean.
const UNBALANCED: f64 = 2.0;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Worth a correction.
    Warning,
    /// Disturbs traffic or the diagnosis.
    Error,
}

impl Severity {
    /// All of them, the gravest last.
    pub const ALL: [Self; 3] = [Self::Info, Self::Warning, Self::Error];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HealthItem {
    /// Severity of the finding.
    pub severity: Severity,
    /// The finding, as a sentence.
    pub what: String,
    /// Advice on the finding.
    pub advice: &'static str,
}

struct HealthList(Vec<HealthItem>);

impl HealthList {
    fn add(&mut self, severity: Severity, what: String, advice: &'static str) {
        self.0.push(HealthItem {
            severity,
            what,
            advice,
        });
    }

    fn about(&mut self, severity: Severity, names: &[String], what: &str, advice: &'static str) {
        if !names.is_empty() {
            self.add(severity, format!("{}: {what}", list(names)), advice);
        }
    }
}

fn list(names: &[String]) -> String {
    let shown = names[..names.len().min(MOST_NAMES)].join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Checks everything that is known. `facts` are those of a live subnet.
pub fn check_health(
    fabric: &Fabric,
    tables: Option<&ForwardingTables>,
    capable: &IdVec<PortId, Option<Rate>>,
    observation: &Observation,
    (facts, bad_cables): (Option<&SurveyFacts>, &[BadCable]),
) -> Vec<HealthItem> {
    let mut findings = HealthList(Vec::new());
    let mut of_routes = HealthList(Vec::new());
    match tables {
        Some(tables) => routes(&mut of_routes, fabric, tables),
        None => of_routes.add(
            Severity::Warning,
            "The forwarding tables are not known: shortest paths are assumed".to_owned(),
            "add the output of dump_lfts",
        ),
    }
    // Wrong routes explain why nodes do not answer, and come before these.
    let is_error = |finding: &HealthItem| finding.severity == Severity::Error;
    let (wrong, others): (Vec<_>, Vec<_>) = of_routes.0.into_iter().partition(is_error);
    findings.0.extend(wrong);
    if let Some(facts) = facts {
        manager(&mut findings, facts);
        answers(&mut findings, facts);
        control(&mut findings, facts);
        adapters(&mut findings, facts);
    }
    links(&mut findings, fabric, capable, observation);
    cables(&mut findings, bad_cables);
    // The ports of a node that does not answer are not listed again.
    let silent = facts.map_or(&[][..], |facts| &facts.silent);
    counters(&mut findings, fabric, observation, silent);
    findings.0.extend(others);
    findings
        .0
        .sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings.0
}

/// A finding about stated ticks of devices that no node has, if there are any.
pub fn absent_devices(
    given: &GivenTicks,
    devices: impl Iterator<Item = DeviceId> + Clone,
) -> Option<HealthItem> {
    let absent: Vec<String> = given
        .absent(devices)
        .map(|id| format!("{id} ({id:#x})"))
        .collect();
    (!absent.is_empty()).then(|| HealthItem {
        severity: Severity::Warning,
        what: format!(
            "{}: no node has this DeviceID, whose tick is given",
            list(&absent)
        ),
        advice: "give the DeviceID of a switch as ibnetdiscover shows it (devid)",
    })
}

fn manager(findings: &mut HealthList, facts: &SurveyFacts) {
    let advice = "start OpenSM or the switches' subnet manager; sminfo shows which one answers";
    match facts.manager {
        ManagerState::Unknown => {
            let what = "The local port has no LID of a subnet manager".to_owned();
            findings.add(Severity::Warning, what, advice);
        }
        ManagerState::Silent(lid) => {
            let what = format!("The subnet manager at LID {lid} does not answer");
            findings.add(Severity::Error, what, advice);
        }
        ManagerState::Answers(lid, state) if state != SmState::MASTER => {
            let what = format!("The subnet manager at LID {lid} is not the master");
            findings.add(Severity::Warning, what, advice);
        }
        ManagerState::Answers(..) => {}
    }
}

fn answers(findings: &mut HealthList, facts: &SurveyFacts) {
    findings.about(
        Severity::Error,
        &facts.silent,
        "did not answer requests for counters; nothing is said about what only they count",
        "update the firmware, or check that the node is up; perfquery shows whether it answers",
    );
    findings.about(
        Severity::Error,
        &facts.moved,
        "changed their LID between the sweeps; their counters are not used",
        "wait until the subnet manager is done, and diagnose again",
    );
    findings.about(
        Severity::Warning,
        &facts.without_table,
        "the forwarding table could not be read in full",
        "ibroute LID shows it; paths through these switches are not known",
    );
    if !facts.is_complete {
        findings.add(
            Severity::Warning,
            "Some nodes or ports did not answer during discovery, or are not Active".to_owned(),
            "iblinkinfo lists the ports; is the subnet manager still at work?",
        );
    }
}

fn control(findings: &mut HealthList, facts: &SurveyFacts) {
    let mut marking: BTreeMap<(u32, u16), Vec<String>> = BTreeMap::new();
    let (mut off, mut silent, mut refused, mut guarded) = (vec![], vec![], vec![], vec![]);
    for (name, control) in &facts.control {
        match control.setting {
            Ok(setting) if setting.threshold.get() == 0 => off.push(name.clone()),
            Ok(setting) => {
                let key = (setting.threshold.get(), setting.marking_rate);
                marking.entry(key).or_default().push(name.clone());
            }
            Err(Failure::Refused(_)) => refused.push(name.clone()),
            Err(_) => silent.push(name.clone()),
        }
        if control.is_protected == Some(true) {
            guarded.push(name.clone());
        }
    }
    if marking.is_empty() && !off.is_empty() {
        findings.add(
            Severity::Info,
            "Congestion control is off in all switches that answer (Threshold 0)".to_owned(),
            "with a Threshold above 0, notifications name the hosts that contribute",
        );
    } else {
        findings.about(
            Severity::Warning,
            &off,
            "congestion control is off (Threshold 0), and on elsewhere",
            "give all switches the same settings",
        );
    }
    let settings = marking.len();
    for ((threshold, rate), names) in marking {
        let what = format!("marks packets with Threshold {threshold} and Marking_Rate {rate}");
        let advice = match settings {
            1 => "these are the settings of all switches that mark",
            _ => "give all switches the same settings, unless they differ on purpose",
        };
        findings.about(Severity::Info, &names, &what, advice);
    }
    let firmware = "congestion control may be missing in the firmware; ibccquery shows it";
    findings.about(
        Severity::Info,
        &silent,
        "does not answer about congestion control",
        firmware,
    );
    findings.about(
        Severity::Info,
        &refused,
        "refuses to show congestion control",
        firmware,
    );
    findings.about(
        Severity::Info,
        &guarded,
        "a CC_Key protects the settings: a congestion manager is in charge of them",
        "run no second congestion manager without its key",
    );
}

/// Adds findings on the reaction of hosts to notifications, if a switch marks packets.
fn adapters(findings: &mut HealthList, facts: &SurveyFacts) {
    let mut reacting: BTreeMap<(u16, u8, u8), Vec<String>> = BTreeMap::new();
    let (mut off, mut stuck, mut mixed, mut silent) = (vec![], vec![], vec![], vec![]);
    for (name, settings) in &facts.adapters {
        let Ok(settings) = settings else {
            silent.push(name.clone());
            continue;
        };
        let Some(first) = settings.first() else {
            continue;
        };
        if settings.len() > 1 {
            mixed.push(name.clone());
        } else if first.ccti_increase == 0 {
            off.push(name.clone());
        } else if first.ccti_timer == 0 {
            stuck.push(name.clone());
        } else {
            let key = (first.ccti_timer, first.ccti_increase, first.ccti_min);
            reacting.entry(key).or_default().push(name.clone());
        }
    }
    findings.about(
        Severity::Warning,
        &off,
        "does not react to notifications (CCTI_Increase 0), and switches mark packets",
        "set CCTI_Increase on all adapters, or Threshold 0 on all switches; ibccquery shows it",
    );
    findings.about(
        Severity::Warning,
        &stuck,
        "does not recover after a notification (CCTI_Timer 0)",
        "set CCTI_Timer; ibccquery shows it",
    );
    let settings = reacting.len();
    for ((timer, increase, least), names) in reacting {
        let what = format!(
            "reacts with CCTI_Timer {timer} ({:.1} us), CCTI_Increase {increase} and CCTI_Min {least}",
            f64::from(timer) * 1.024
        );
        let (severity, advice) = match settings {
            1 => (
                Severity::Info,
                "these are the settings of all adapters that react",
            ),
            _ => (
                Severity::Warning,
                "give all adapters the same settings: those that recover faster take the share of others",
            ),
        };
        findings.about(severity, &names, &what, advice);
    }
    findings.about(
        Severity::Info,
        &mixed,
        "reacts differently on its service levels",
        "ibccquery shows them; is that on purpose?",
    );
    findings.about(
        Severity::Info,
        &silent,
        "does not show how it reacts to notifications",
        "congestion control may be missing in the firmware; ibccquery shows it",
    );
}

fn links(
    findings: &mut HealthList,
    fabric: &Fabric,
    capable: &IdVec<PortId, Option<Rate>>,
    observation: &Observation,
) {
    for link in fabric.links.iter() {
        let Some((rate, most)) = data_rate(fabric, link.a).zip(capable[link.a]) else {
            continue;
        };
        if rate < most {
            let kind = link.kind;
            let what = format!(
                "The link {} - {} runs at {} {} ({rate}), and both ends support {most}",
                fabric.port_name(link.a),
                fabric.port_name(link.b),
                kind.width,
                kind.speed,
            );
            let advice =
                "reseat or replace the cable, then reset the port (ibportstate LID PORT reset)";
            findings.add(Severity::Warning, what, advice);
        }
    }
    let name = |port: PortId| fabric.port_name(port).to_string();
    let usual = usual_rates(fabric);
    let slower = fabric.links.iter().map(|link| link.a).filter(|&port| {
        let rates = data_rate(fabric, port).zip(usual[usize::from(is_between(fabric, port))]);
        capable[port].is_none() && rates.is_some_and(|(rate, usual)| rate < usual)
    });
    let slower: Vec<String> = slower.map(name).collect();
    findings.about(
        Severity::Info,
        &slower,
        "the link runs at less than most links of its kind",
        "compare with what both ends support; ibportstate LID PORT query shows it",
    );
    let flapped = fabric
        .ports
        .ids()
        .filter(|&port| observation.growth[port].flapped);
    let flapped: Vec<String> = flapped.map(name).collect();
    findings.about(
        Severity::Error,
        &flapped,
        "the link went down between the sweeps",
        "check cable and transceiver; ibqueryerrors shows symbol errors",
    );
}

fn cables(findings: &mut HealthList, bad_cables: &[BadCable]) {
    for cable in bad_cables {
        let mut what = format!(
            "Bad cable at {} (from {}): SymbolErrorCounter +{:.3} a second",
            cable.port, cable.peer, cable.symbol_errors_per_s
        );
        if cable.rcv_errors_per_s > 0.0 {
            what += &format!(", PortRcvErrors +{:.3} a second", cable.rcv_errors_per_s);
        }
        if cable.link_error_recoveries > 0 {
            what += &format!(
                ", LinkErrorRecoveryCounter +{}",
                cable.link_error_recoveries
            );
        }
        what += &match (cable.congestion, &cable.root) {
            (CablePart::Causes, _) => format!("; it causes the congestion at {}", cable.peer),
            (CablePart::Carries, Some(root)) => {
                format!("; it carries the congestion at {root}, and does not cause it")
            }
            _ => String::new(),
        };
        let severity = match cable.rcv_errors_per_s > 0.0 || cable.congestion == CablePart::Causes {
            true => Severity::Error,
            false => Severity::Warning,
        };
        let advice = "clean and reseat the cable or transceiver, then replace it; perfquery LID PORT shows its counters";
        findings.add(severity, what, advice);
    }
}

fn is_between(fabric: &Fabric, port: PortId) -> bool {
    let ends = [Some(port), fabric.ports[port].peer];
    ends.into_iter()
        .flatten()
        .all(|end| fabric.nodes[fabric.ports[end].node].as_switch().is_some())
}

fn usual_rates(fabric: &Fabric) -> [Option<Rate>; 2] {
    [false, true].map(|between| {
        let ports = fabric.ports.ids();
        let ports = ports.filter(|&port| is_between(fabric, port) == between);
        let mut rates: Vec<Rate> = ports.filter_map(|port| data_rate(fabric, port)).collect();
        rates.sort();
        rates.get(rates.len() / 2).copied()
    })
}

fn counters(
    findings: &mut HealthList,
    fabric: &Fabric,
    observation: &Observation,
    silent: &[String],
) {
    let cabled = || {
        fabric
            .ports
            .ids()
            .filter(|&port| fabric.ports[port].link.is_some())
    };
    for (cause, advice) in [
        (
            UnknownGrowth::Missing,
            "the verdict leaves these ports out; perfquery LID PORT shows whether there are such counters",
        ),
        (
            UnknownGrowth::Stopped,
            "reset the counters (perfquery -R), or shorten the interval",
        ),
        (
            UnknownGrowth::Reset,
            "stop the program that resets counters during the diagnosis",
        ),
        (
            UnknownGrowth::Impossible,
            "check the interval that was given, and the tick (--tick)",
        ),
    ] {
        let has = |port: &PortId| {
            let grown = &observation.growth[*port];
            // The far end of a link has counted the same data.
            let data = match observation.ports[*port].load {
                Some(_) => Ok(0),
                None => grown.xmit_data,
            };
            [data, grown.xmit_wait].contains(&Err(cause))
        };
        let names: Vec<String> = cabled()
            .filter(has)
            .filter(|&port| {
                cause != UnknownGrowth::Missing
                    || !silent.contains(&fabric.nodes[fabric.ports[port].node].name)
            })
            .map(|port| fabric.port_name(port).to_string())
            .collect();
        let what = format!("a counter {}", cause.phrase());
        findings.about(Severity::Warning, &names, &what, advice);
    }
    let is_without_tick = |port: &PortId| {
        let waits = observation.growth[*port].xmit_wait.is_ok_and(|by| by > 0);
        waits && observation.ticks[*port].is_none()
    };
    let names: Vec<String> = cabled()
        .filter(is_without_tick)
        .map(|port| fabric.port_name(port).to_string())
        .collect();
    let what = "waits for a time that is not known, because device and PortSamplesControl do not say the tick of PortXmitWait";
    let advice = "give --tick, such as 0.32 ns for HDR";
    findings.about(Severity::Warning, &names, what, advice);
}

fn routes(findings: &mut HealthList, fabric: &Fabric, tables: &ForwardingTables) {
    let options = CheckOptions {
        allow_cycles: true,
        allow_missing: true,
    };
    let report = match check(fabric, tables, options) {
        Ok(report) => report,
        Err(error) => {
            let advice = "let the subnet manager route again; ibtracert shows the path";
            findings.add(
                Severity::Error,
                format!("The routes are wrong: {error}"),
                advice,
            );
            return;
        }
    };
    if let Some(missing) = &report.first_missing {
        let what = format!(
            "{} pairs of hosts have no route, the first: {missing}",
            report.unreachable
        );
        let advice = "check the subnet manager's log; ibtracert shows where paths end";
        findings.add(Severity::Warning, what, advice);
    }
    if let Some(cycle) = &report.dependency_cycle {
        let names: Vec<String> = cycle
            .iter()
            .map(|&port| fabric.port_name(port).to_string())
            .collect();
        let what = format!(
            "On one virtual lane the routes can deadlock, in a credit loop of {} links: {}",
            cycle.len(),
            list(&names)
        );
        let advice = "choose a routing engine without credit loops (updn, lash, dfsssp, torus-2QoS), unless \
                      service levels separate these paths already";
        findings.add(Severity::Warning, what, advice);
    }
    let between = fabric.ports.ids().filter(|&port| {
        let is_switch = fabric.nodes[fabric.ports[port].node].as_switch().is_some();
        is_switch && fabric.peer_switch(port).is_some()
    });
    let counts: Vec<(PortId, u64)> = between.map(|port| (port, report.routes[port])).collect();
    let mean =
        counts.iter().map(|(_, count)| *count).sum::<u64>() as f64 / counts.len().max(1) as f64;
    if let Some(&(port, most)) = counts.iter().max_by_key(|(_, count)| *count) {
        if most as f64 > UNBALANCED * mean {
            let what = format!(
                "The routes are unbalanced: {} carries {most} of them, {:.1} times the mean",
                fabric.port_name(port),
                most as f64 / mean
            );
            let advice = "compare routing engines with silvan route and silvan show";
            findings.add(Severity::Info, what, advice);
        }
    }
}
