//! Message-passing programs.

use std::path::Path;
use std::sync::Arc;

use silvan_core::{Bytes, HostId, Span};
use silvan_fabric::Fabric;
use silvan_workload::programs::goal::{self, GoalError};
use silvan_workload::programs::section::ProgramEntry;
use silvan_workload::programs::{JobPlan, Messaging, Plan, ProgramKind, Schedule, Work};
use silvan_workload::traffic::Selection;

use super::benchmarks::{gpcnet_of, hpcc_of};
use super::import::read;
use super::limits;
use super::traffic::hosts_named;
use super::{Parameter, at, check_parameters};
use crate::parsed::{Limit, ScenarioFile, TrafficSection};
use crate::{KeyPath, ScenarioError};

/// Ranks of all jobs: more would not fit into any host's memory either.
const MOST_RANKS: u64 = 1 << 20;

/// Largest message: 1 TiB, so that no sum of sizes leaves 64 bits.
const LARGEST: Bytes = Bytes::from_bytes(1 << 40);

/// Largest cost of a byte: with a hundred of the largest messages, still within 64 bits.
const MOST_PER_BYTE: Span = Span::from_ns(100);

/// The schedules of every entry, none where it has another kind.
pub(crate) type Schedules = Vec<Vec<Arc<Schedule>>>;

/// Reads the schedules, and replaces files by their texts. `base` is the folder that paths are
/// relative to.
pub(crate) fn import_schedules(
    section: &mut TrafficSection,
    base: &Path,
) -> Result<Schedules, ScenarioError> {
    let entries = section.program.iter_mut().enumerate();
    entries
        .map(|(index, entry)| {
            let key = at("traffic.program").index(index);
            match entry.kind {
                ProgramKind::Goal => schedules(entry, &key, base),
                _ => Ok(Vec::new()),
            }
        })
        .collect()
}

fn schedules(
    entry: &mut ProgramEntry,
    key: &KeyPath,
    base: &Path,
) -> Result<Vec<Arc<Schedule>>, ScenarioError> {
    match (entry.file.take(), &entry.goal) {
        (Some(_), Some(_)) => {
            let error = ScenarioError::new(key.key("file"), "both a file and a text are given");
            Err(error.with_hint("use file or goal"))
        }
        (None, None) => {
            let error = ScenarioError::new(key.clone(), "goal needs a schedule");
            Err(error.with_hint("name a GOAL schedule as file, or write one as goal"))
        }
        (None, Some(text)) => goal::parse(text).map_err(|error| {
            let line = error.line.map(|line| format!("line {line}: "));
            let message = format!("{}{error}", line.unwrap_or_default());
            ScenarioError::new(key.key("goal"), message).with_hint(error.hint)
        }),
        (Some(file), None) => {
            let (name, text) = read(&file, base, &key.key("file"), limits::FILE)?;
            let schedules = goal::parse(&text).map_err(|error| in_file(&name, &error))?;
            entry.goal = Some(text);
            Ok(schedules)
        }
    }
}

fn in_file(name: &str, error: &GoalError) -> ScenarioError {
    ScenarioError::new(KeyPath::ROOT, error.to_string())
        .with_hint(error.hint)
        .at(name, error.line.map(|line| (line as usize, 1)))
}

/// The programs, if there are any.
pub(crate) fn build_programs(
    file: &ScenarioFile,
    fabric: &Fabric,
    schedules: Schedules,
) -> Result<Option<Plan>, ScenarioError> {
    let traffic = &file.traffic;
    let Some(section) = &traffic.messaging else {
        return Ok(None);
    };
    check_messaging(section)?;
    let entries = traffic.program.iter().zip(schedules).enumerate();
    let jobs = entries
        .map(|(index, (entry, schedules))| {
            job(
                entry,
                fabric,
                schedules,
                &at("traffic.program").index(index),
            )
        })
        .collect::<Result<Vec<_>, _>>()?;
    let gpcnet = traffic.gpcnet.as_ref();
    let gpcnet = gpcnet
        .map(|section| gpcnet_of(section, fabric))
        .transpose()?;
    let hpcc = traffic.hpcc.as_ref();
    let hpcc = hpcc.map(|section| hpcc_of(section, fabric)).transpose()?;
    let plan = Plan {
        messaging: *section,
        jobs,
        gpcnet,
        hpcc,
    };
    check_names(&plan, traffic)?;
    let used = !plan.jobs.is_empty() || plan.gpcnet.is_some() || plan.hpcc.is_some();
    Ok(used.then_some(plan))
}

fn check_messaging(section: &Messaging) -> Result<(), ScenarioError> {
    let zero = [
        ("eager-credits", section.eager_credits == 0, "16"),
        ("control", section.control.is_zero(), "\"64 B\""),
        (
            "local-latency",
            section.local_latency.is_zero(),
            "\"300 ns\"",
        ),
    ];
    if let Some((key, _, example)) = zero.iter().find(|(_, zero, _)| *zero) {
        let error = ScenarioError::new(at("traffic.messaging").key(key), "it is zero");
        return Err(error.with_hint(format!("write e.g. {example}")));
    }
    if section.overhead_per_byte > MOST_PER_BYTE {
        let message = format!("{} is more than {MOST_PER_BYTE}", section.overhead_per_byte);
        let error = ScenarioError::new(at("traffic.messaging.overhead-per-byte"), message);
        return Err(error.with_hint("write e.g. \"20 ps\", 50 GB/s"));
    }
    Ok(())
}

pub(super) fn hosts(
    fabric: &Fabric,
    choice: &Selection,
    ranks_per_host: u32,
    key: &KeyPath,
) -> Result<Vec<HostId>, ScenarioError> {
    let key_hosts = key.key("hosts");
    let hosts = match choice {
        Selection::All => fabric.host_ids().collect(),
        Selection::Given(list) => hosts_named(fabric, list, &key_hosts)?,
        Selection::Random(_) => {
            let error = ScenarioError::new(key_hosts, "a number of hosts is not supported here");
            return Err(error.with_hint("write \"all\", or list the names of hosts"));
        }
    };
    if hosts.is_empty() {
        let error = ScenarioError::new(key_hosts, "there is no host");
        return Err(error.with_hint("write \"all\", or list the hosts"));
    }
    let ranks = hosts.len() as u64 * u64::from(ranks_per_host);
    if ranks_per_host == 0 || ranks > MOST_RANKS {
        let message = format!("{ranks} ranks are none, or too many");
        let error = ScenarioError::new(key.key("ranks-per-host"), message);
        return Err(error.with_hint("write e.g. 16"));
    }
    Ok(hosts)
}

fn job(
    entry: &ProgramEntry,
    fabric: &Fabric,
    schedules: Vec<Arc<Schedule>>,
    key: &KeyPath,
) -> Result<JobPlan, ScenarioError> {
    let hosts = hosts(fabric, &entry.hosts, entry.ranks_per_host, key)?;
    let places = hosts.len() * entry.ranks_per_host as usize;
    let pattern = entry.kind.pattern();
    let is_goal = pattern.is_none();
    let unwanted = |key, given| Parameter {
        key,
        given: given && is_goal,
        wanted: false,
    };
    let parameters = [
        unwanted("bytes", entry.bytes.is_some()),
        unwanted("iterations", entry.iterations.is_some()),
        unwanted("compute", entry.compute.is_some()),
        unwanted("start", entry.start.is_some()),
        Parameter {
            key: "file",
            given: entry.file.is_some(),
            wanted: false,
        },
        Parameter {
            key: "goal",
            given: entry.goal.is_some(),
            wanted: is_goal,
        },
    ];
    check_parameters(key, "this kind of program", &parameters)?;
    let work = match pattern {
        None if schedules.len() > places => {
            let ranks = schedules.len();
            let message = format!("{ranks} ranks do not fit on {places} places");
            let error = ScenarioError::new(key.key("ranks-per-host"), message);
            return Err(error.with_hint("give it more hosts, or more ranks per host"));
        }
        None => Work::Schedules(schedules),
        Some(_) if entry.iterations == Some(Limit::Unlimited) && !entry.background => {
            let message = "the run would wait for a program without end";
            let error = ScenarioError::new(key.key("iterations"), message);
            return Err(error.with_hint("set background to true, or give a number"));
        }
        Some(_) if places < 2 => {
            let error = ScenarioError::new(key.key("hosts"), "one rank talks to no other");
            return Err(error.with_hint("give it more hosts, or more ranks per host"));
        }
        Some(pattern) => Work::Pattern {
            pattern,
            bytes: size(entry.bytes.unwrap_or_default(), &key.key("bytes"))?,
            iterations: entry.iterations.unwrap_or(Limit::At(1)).value(),
            compute: span(entry.compute, &key.key("compute"))?,
            start: span(entry.start, &key.key("start"))?,
        },
    };
    Ok(JobPlan {
        name: entry.name.clone().unwrap_or_default(),
        hosts,
        ranks_per_host: entry.ranks_per_host,
        placement: entry.placement,
        work,
        background: entry.background,
        sl: entry.sl,
    })
}

pub(super) fn size(bytes: Bytes, key: &KeyPath) -> Result<u64, ScenarioError> {
    if bytes > LARGEST {
        let error = ScenarioError::new(key.clone(), format!("{bytes} is more than {LARGEST}"));
        return Err(error.with_hint("write e.g. \"1 MiB\""));
    }
    Ok(bytes.as_u64())
}

/// Longer than the clock runs is as good as never, but must not overflow it.
pub(super) fn span(span: Option<Span>, key: &KeyPath) -> Result<Span, ScenarioError> {
    const LONGEST: Span = Span::from_secs(20 * 3_600);
    match span.unwrap_or(Span::ZERO) {
        span if span > LONGEST => {
            let message = format!("{span} is longer than the clock runs, {LONGEST}");
            let error = ScenarioError::new(key.clone(), message);
            Err(error.with_hint("write e.g. \"10 us\""))
        }
        span => Ok(span),
    }
}

/// Every class of the statistics has a name of its own.
fn check_names(plan: &Plan, traffic: &TrafficSection) -> Result<(), ScenarioError> {
    let mut taken: Vec<&str> = traffic.names().collect();
    for (index, job) in plan.jobs.iter().enumerate() {
        if taken.contains(&job.name.as_str()) {
            let key = at("traffic.program").index(index).key("name");
            let error = ScenarioError::new(key, format!("{:?} is another entry's name", job.name));
            return Err(error.with_hint("give it another one"));
        }
        taken.push(&job.name);
    }
    Ok(())
}
