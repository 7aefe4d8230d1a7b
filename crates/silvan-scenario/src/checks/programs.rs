use std::sync::Arc;

use silvan_core::document::{Parameter, check_choice};
use silvan_core::{Bytes, HostId, Rate, Span};
use silvan_fabric::Fabric;
use silvan_workload::programs::collective::{Algorithm, Collective, Operation};
use silvan_workload::programs::draft::Pipeline;
use silvan_workload::programs::nccl::Nccl;
use silvan_workload::programs::section::{MethodEntry, ProgramEntry, StragglerEntry};
use silvan_workload::programs::trace::{MethodRule, NcclSettings, TraceSettings};
use silvan_workload::programs::{
    Burst, JobPlan, KindWork, Messaging, Placement, Plan, Straggler, Work, loops,
};
use silvan_workload::traffic::rng::{Purpose, shuffle, stream};
use silvan_workload::traffic::{HostRef, Selection};

use super::benchmarks::{gpcnet_of, hpcc_of};
use super::sharp::{self, check_sharp};
use super::traces::{TraceNames, traced};
use super::traffic::hosts_named;
use super::{at, refused};
use crate::parsed::{Limit, ScenarioFile, TrafficSection};
use crate::{KeyPath, ScenarioError};

/// Ranks of all jobs: more would not fit into any host's memory either.
const MOST_RANKS: u64 = 1 << 20;

/// Largest message: 1 TiB, so that no sum of sizes leaves 64 bits.
const LARGEST: Bytes = Bytes::from_bytes(1 << 40);

const MOST_CHANNELS: u32 = 64;

const MOST_OPS: u64 = 1 << 25;

/// Factors of the computations of a slow rank: the longest one stays within 64 bits.
const FACTORS: std::ops::RangeInclusive<f64> = 0.01..=100.0;

/// Largest cost of a byte: with a hundred of the largest messages, still within 64 bits.
const MOST_PER_BYTE: Span = Span::from_ns(100);

pub(crate) fn build_programs(
    file: &ScenarioFile,
    fabric: &Fabric,
    names: &TraceNames,
) -> Result<Option<Plan>, ScenarioError> {
    let traffic = &file.traffic;
    let Some(section) = &traffic.messaging else {
        return Ok(None);
    };
    check_messaging(section)?;
    check_sharp(traffic.sharp.as_ref(), file.packet.mtu)?;
    check_nccl(traffic.nccl.as_ref())?;
    let methods = methods(&traffic.collective)?;
    let mut places = Places::new(fabric, &traffic.program);
    let entries = traffic.program.iter().enumerate();
    let jobs = entries
        .map(|(index, entry)| {
            let key = at("traffic.program").index(index);
            let none = Vec::new();
            let surroundings = Surroundings {
                file,
                fabric,
                methods: &methods,
                names: names.get(index).unwrap_or(&none),
                number: index,
            };
            job(entry, places.take(entry, index, &key)?, &surroundings, &key)
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
        ("reads-in-flight", section.reads_in_flight == 0, "16"),
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
    span(Some(section.gap), &at("traffic.messaging").key("gap"))?;
    let per_byte = [
        ("overhead-per-byte", section.overhead_per_byte),
        ("eager-per-byte", section.eager_per_byte),
        ("latency-per-byte", section.latency_per_byte),
    ];
    if let Some((key, span)) = per_byte.iter().find(|(_, span)| *span > MOST_PER_BYTE) {
        let message = format!("{span} is more than {MOST_PER_BYTE}");
        let error = ScenarioError::new(at("traffic.messaging").key(key), message);
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
        Selection::All => fabric.compute_host_ids().collect(),
        Selection::Given(list) => hosts_named(fabric, list, &key_hosts)?,
        Selection::File(_) => {
            let error = ScenarioError::new(key_hosts, "a file of hosts is for programs");
            return Err(error.with_hint("list the names of hosts"));
        }
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
        let message = format!("{ranks} ranks: 1 to {MOST_RANKS} are supported");
        let error = ScenarioError::new(key.key("ranks-per-host"), message);
        return Err(error.with_hint("write e.g. 16"));
    }
    Ok(hosts)
}

/// Settings of NCCL: a rank has an equal share of the adapters of its host.
fn nccl_settings(
    around: &Surroundings<'_>,
    hosts: &[HostId],
    entry: &ProgramEntry,
) -> NcclSettings {
    let traffic = &around.file.traffic;
    let keys = traffic.nccl.clone().unwrap_or_default();
    let messaging = traffic.messaging.unwrap_or_default();
    let fabric = around.fabric;
    let link = hosts
        .first()
        .and_then(|host| fabric.ports[fabric.host_port(*host)].link);
    let gb_per_s = |rate: Rate| rate.bits_per_sec() as f64 / 8e9;
    let adapter = link.map_or(0.0, |link| gb_per_s(fabric.links[link].data_rate()));
    let share = f64::from(entry.rails) / f64::from(entry.ranks_per_host.max(1));
    NcclSettings {
        rank_rate: adapter * share,
        local_rate: gb_per_s(keys.local_rate.unwrap_or(messaging.local_rate)),
        keys,
    }
}

fn check_nccl(section: Option<&Nccl>) -> Result<(), ScenarioError> {
    let Some(section) = section else {
        return Ok(());
    };
    let key = at("traffic.nccl");
    if !(1..=MOST_CHANNELS).contains(&section.channels) {
        let message = format!(
            "{} channels: 1 to {MOST_CHANNELS} are supported",
            section.channels
        );
        let error = ScenarioError::new(key.key("channels"), message);
        return Err(error.with_hint("write e.g. 8"));
    }
    for (name, is_empty, example) in [
        (
            "algorithms",
            section.algorithms.is_empty(),
            "[\"tree\", \"ring\"]",
        ),
        (
            "protocols",
            section.protocols.is_empty(),
            "[\"LL\", \"Simple\"]",
        ),
    ] {
        if is_empty {
            let error = ScenarioError::new(key.key(name), "the list is empty");
            return Err(error.with_hint(format!("write e.g. {example}")));
        }
    }
    span(
        Some(section.simulated_latency),
        &key.key("simulated-latency"),
    )?;
    Ok(())
}

struct Places<'a> {
    fabric: &'a Fabric,
    taken: Vec<Option<usize>>,
}

impl<'a> Places<'a> {
    fn new(fabric: &'a Fabric, entries: &[ProgramEntry]) -> Self {
        let mut taken = vec![None; fabric.host_count()];
        for (program, entry) in entries.iter().enumerate() {
            let named: Vec<HostId> = match &entry.hosts {
                Selection::All => fabric.compute_host_ids().collect(),
                Selection::Random(_) | Selection::File(_) => Vec::new(),
                Selection::Given(list) => {
                    list.iter().filter_map(|host| find(fabric, host)).collect()
                }
            };
            for host in named {
                taken[host.index()].get_or_insert(program);
            }
        }
        Self { fabric, taken }
    }

    fn take(
        &mut self,
        entry: &ProgramEntry,
        program: usize,
        key: &KeyPath,
    ) -> Result<Vec<HostId>, ScenarioError> {
        let mut chosen = match entry.hosts {
            Selection::Random(_) => self
                .fabric
                .compute_host_ids()
                .filter(|host| self.taken[host.index()].is_none())
                .collect(),
            _ => hosts(self.fabric, &entry.hosts, entry.ranks_per_host, key)?,
        };
        check_distinct(self.fabric, &chosen, key)?;
        check_rails(entry, chosen.len(), key)?;
        match entry.placement {
            Placement::Block | Placement::Cyclic => {}
            Placement::Random => {
                let purpose = Purpose::Named("programs.placement", program);
                let rails = entry.rails as usize;
                let mut hosts: Vec<&[HostId]> = chosen.chunks(rails).collect();
                shuffle(&mut stream(entry.placement_seed, purpose, 0), &mut hosts);
                chosen = hosts.concat();
            }
            Placement::Rail => sort_by_rail(&mut chosen, entry, key)?,
        }
        if let Selection::Random(count) = entry.hosts {
            let (count, free) = (count as usize, chosen.len());
            if count > free || count == 0 {
                let message =
                    format!("{count} hosts requested, {free} are not used by other programs");
                let error = ScenarioError::new(key.key("hosts"), message);
                return Err(error.with_hint(
                    "ask for 1 to that many; \"all\" of another program uses every host",
                ));
            }
            chosen.truncate(count);
            for host in &chosen {
                self.taken[host.index()] = Some(program);
            }
            let selection = Selection::Given(chosen.iter().copied().map(HostRef::Id).collect());
            hosts(self.fabric, &selection, entry.ranks_per_host, key)?;
        }
        Ok(chosen)
    }
}

fn check_rails(entry: &ProgramEntry, adapters: usize, key: &KeyPath) -> Result<(), ScenarioError> {
    let rails = entry.rails as usize;
    let is_number = matches!(entry.hosts, Selection::Random(_));
    let message = match rails {
        0 => "it is zero".to_owned(),
        1 => return Ok(()),
        _ if is_number || entry.placement == Placement::Rail => {
            "hosts of several adapters are listed, with the placement block, cyclic or random"
                .to_owned()
        }
        _ if adapters % rails > 0 => {
            format!("{adapters} adapters are not whole hosts of {rails}")
        }
        _ => return Ok(()),
    };
    let error = ScenarioError::new(key.key("rails"), message);
    Err(error.with_hint("list the adapters of each host side by side in hosts"))
}

fn find(fabric: &Fabric, host: &HostRef) -> Option<HostId> {
    match host {
        HostRef::Id(host) => Some(*host),
        HostRef::Name(name) => {
            let node = fabric.node_by_name(name)?;
            fabric.nodes[node].as_host()
        }
    }
}

fn check_distinct(fabric: &Fabric, hosts: &[HostId], key: &KeyPath) -> Result<(), ScenarioError> {
    let mut seen = vec![false; fabric.host_count()];
    for (place, host) in hosts.iter().enumerate() {
        if std::mem::replace(&mut seen[host.index()], true) {
            let name = &fabric.host(*host).name;
            let message = format!("two ranks on one host: {name:?} is in the list twice");
            let error = ScenarioError::new(key.key("hosts").index(place), message);
            return Err(error.with_hint(
                "name each host once, and set ranks-per-host to put several ranks on it",
            ));
        }
    }
    Ok(())
}

fn sort_by_rail(
    hosts: &mut [HostId],
    entry: &ProgramEntry,
    key: &KeyPath,
) -> Result<(), ScenarioError> {
    let server = entry.server_ranks.unwrap_or_default() / entry.ranks_per_host.max(1);
    if server < 2 {
        let message = "the placement by rail needs servers of several hosts";
        let error = ScenarioError::new(key.key("server-ranks"), message);
        return Err(error.with_hint("write the number of ranks of a server, e.g. 8"));
    }
    hosts.sort_by_key(|host| (host.index() % server as usize, host.index()));
    Ok(())
}

pub(super) struct Surroundings<'a> {
    pub file: &'a ScenarioFile,
    pub fabric: &'a Fabric,
    methods: &'a [MethodRule],
    names: &'a [String],
    pub number: usize,
}

fn job(
    entry: &ProgramEntry,
    hosts: Vec<HostId>,
    around: &Surroundings<'_>,
    key: &KeyPath,
) -> Result<JobPlan, ScenarioError> {
    let work = entry.kind.work(&entry.format);
    check_keys(entry, work, key)?;
    let settings = TraceSettings {
        places: hosts.len() as u32 / entry.rails * entry.ranks_per_host,
        local: match entry.placement {
            Placement::Block | Placement::Cyclic => entry.server_ranks,
            // Ranks side by side are on different servers.
            Placement::Random | Placement::Rail => None,
        }
        .unwrap_or(entry.ranks_per_host),
        methods: around.methods.to_vec(),
        operations_per_second: entry.operations_per_second,
        nccl: nccl_settings(around, &hosts, entry),
    };
    if settings.local == 0 {
        let error = ScenarioError::new(key.key("server-ranks"), "it is zero");
        return Err(error.with_hint("write e.g. 8"));
    }
    let places = settings.places as usize;
    let work = match work {
        KindWork::Trace(_, format) => {
            let start = span(entry.start, &key.key("start"))?;
            traced(entry, format, &settings, start, around.names, key)?
        }
        KindWork::Repeat(operation) if entry.algorithm == Some(Algorithm::Sharp) => {
            sharp::reduced(entry, operation, &settings, &hosts, around, key)?
        }
        KindWork::Repeat(operation) => repeated(entry, operation, &settings, key)?,
        KindWork::Sizes => sized(entry, key)?,
        KindWork::Training => trained(entry, &settings, key)?,
        KindWork::Inference => served(entry, &settings, key)?,
    };
    if let Work::Schedules { schedules, .. } | Work::Loops { schedules, .. } = &work {
        if schedules.len() > places {
            let ranks = schedules.len();
            let message = format!("{ranks} ranks do not fit on {places} places");
            let error = ScenarioError::new(key.key("ranks-per-host"), message);
            return Err(error.with_hint("add hosts, or more ranks per host"));
        }
    }
    let stragglers = stragglers(entry, &work, places, key)?;
    Ok(JobPlan {
        name: entry.name.clone().unwrap_or_default(),
        hosts,
        rails: entry.rails,
        ranks_per_host: entry.ranks_per_host,
        placement: entry.placement,
        work,
        background: entry.background,
        sl: entry.sl,
        stragglers,
    })
}

fn check_keys(
    entry: &ProgramEntry,
    work: KindWork<'_>,
    key: &KeyPath,
) -> Result<(), ScenarioError> {
    let format = match work {
        KindWork::Trace(name, _) => Some(name),
        _ => None,
    };
    let is_trace = format.is_some();
    let has_sizes = matches!(work, KindWork::Sizes);
    let is_model = matches!(work, KindWork::Training);
    let is_served = matches!(work, KindWork::Inference);
    let is_listed = is_trace || is_model || is_served;
    let of = |key, given, wrong| Parameter {
        key,
        given: given && wrong,
        wanted: false,
    };
    let parameters = [
        of("algorithm", entry.algorithm.is_some(), is_listed),
        of("channels", entry.channels.is_some(), is_listed || has_sizes),
        of("chunk", entry.chunk.is_some(), is_listed || has_sizes),
        of("bytes", entry.bytes.is_some(), is_listed || has_sizes),
        of(
            "iterations",
            entry.iterations.is_some(),
            is_trace || is_served,
        ),
        of("compute", entry.compute.is_some(), is_listed),
        of("burst", entry.burst.is_some(), is_listed || has_sizes),
        of("pause", entry.pause.is_some(), is_listed || has_sizes),
        of("file", entry.file.is_some(), !is_trace),
        of(
            "operations-per-second",
            entry.operations_per_second.is_some(),
            !is_listed,
        ),
        of("groups", entry.groups.is_some(), !is_trace),
        Parameter {
            key: "model",
            given: entry.model.is_some(),
            wanted: is_model,
        },
        Parameter {
            key: "inference",
            given: entry.inference.is_some(),
            wanted: is_served,
        },
        Parameter {
            key: "sizes",
            given: entry.sizes.is_some(),
            wanted: has_sizes,
        },
        Parameter {
            key: "trace",
            given: entry.trace.is_some(),
            wanted: is_trace,
        },
    ];
    check_choice(key, "this kind of program", &parameters).map_err(refused)?;
    if let Some(other) = entry.format.given().find(|name| Some(*name) != format) {
        let message = "these are keys of another kind of program";
        let error = ScenarioError::new(key.key("format").key(other), message);
        return Err(error.with_hint(format!("leave them out, or set kind to {other:?}")));
    }
    let rate = entry.operations_per_second;
    if let Some(rate) = rate.filter(|rate| !(rate.is_finite() && *rate >= 1.0)) {
        let message = match rate == f64::INFINITY {
            true => format!("{rate} operations per second are too many"),
            false if rate.is_nan() => "it is no number".to_owned(),
            false => format!("{rate} operations per second are too few"),
        };
        let error = ScenarioError::new(key.key("operations-per-second"), message);
        return Err(error.with_hint("write e.g. 3e14"));
    }
    if entry.iterations == Some(Limit::At(0)) {
        let error = ScenarioError::new(key.key("iterations"), "zero iterations do nothing");
        return Err(error.with_hint("write 1 or more, or \"unlimited\""));
    }
    if entry.iterations == Some(Limit::Unlimited) && !entry.background {
        let message = "the run would wait for a program without end";
        let error = ScenarioError::new(key.key("iterations"), message);
        return Err(error.with_hint("set background to true, or give a number"));
    }
    Ok(())
}

fn repeated(
    entry: &ProgramEntry,
    operation: Operation,
    settings: &TraceSettings,
    key: &KeyPath,
) -> Result<Work, ScenarioError> {
    let ranks = settings.places;
    if ranks < 2 {
        let message = "one rank has no other to send to";
        let error = ScenarioError::new(key.key("hosts"), message);
        return Err(error.with_hint("add hosts, or more ranks per host"));
    }
    let bytes = size(entry.bytes.unwrap_or_default(), &key.key("bytes"))?;
    let group = (ranks, settings.local);
    let (chosen, mut pipeline) = match entry.algorithm {
        Some(Algorithm::Nccl) => {
            check_algorithm(operation, Algorithm::Nccl, &key.key("algorithm"))?;
            if settings
                .nccl
                .choose(operation, bytes, ranks, settings.local)
                .is_none()
            {
                let message = "NCCL does this operation with rings only";
                let error = ScenarioError::new(at("traffic.nccl").key("algorithms"), message);
                return Err(error.with_hint("write [\"tree\", \"ring\"]"));
            }
            settings.nccl_method(operation, bytes, group)
        }
        _ => settings.method(operation, bytes, group),
    };
    let algorithm = entry.algorithm.filter(|given| *given != Algorithm::Nccl);
    let algorithm = algorithm.unwrap_or(chosen);
    check_algorithm(operation, algorithm, &key.key("algorithm"))?;
    if entry.algorithm == Some(Algorithm::Hierarchical) {
        check_servers(settings, entry.placement, &key.key("server-ranks"))?;
    }
    let own = pipeline_of(entry.channels, entry.chunk, key)?;
    if entry.channels.is_some() {
        pipeline.channels = own.channels;
    }
    if entry.chunk.is_some() {
        pipeline.chunk = own.chunk;
    }
    let collective = Collective {
        algorithm,
        local: settings.local,
        ..Collective::new(operation, bytes)
    };
    let (iterations, compute, start) = rounds(entry, key)?;
    let burst = burst_of(entry, key)?;
    if pipeline == Pipeline::default() {
        return Ok(Work::Collective {
            collective,
            iterations,
            compute,
            start,
            burst,
        });
    }
    if burst.is_some() {
        let message = "bursts are of operations in one piece";
        let error = ScenarioError::new(key.key("burst"), message);
        return Err(error.with_hint("leave out burst and pause, or channels and chunk"));
    }
    let ops = pipeline
        .count(bytes)
        .saturating_mul(collective.most_ops(ranks));
    if ops.saturating_mul(u64::from(ranks)) > MOST_OPS {
        let message = format!("the pieces of {ranks} ranks need more than {MOST_OPS} operations");
        let error = ScenarioError::new(key.key("chunk"), message);
        return Err(error.with_hint("use larger chunks"));
    }
    Ok(Work::Loops {
        schedules: loops::collective(collective, pipeline, ranks, compute),
        iterations,
        start,
        collective: Some(Collective::new(operation, bytes)),
    })
}

fn stragglers(
    entry: &ProgramEntry,
    work: &Work,
    places: usize,
    key: &KeyPath,
) -> Result<Vec<Straggler>, ScenarioError> {
    let ranks = match work {
        Work::Collective { .. } | Work::Sharp { .. } => places,
        Work::Schedules { schedules, .. } | Work::Loops { schedules, .. } => schedules.len(),
        Work::Stream { stream, .. } => stream.ranks as usize,
        Work::Inference { plan, .. } => plan.ranks() as usize,
    };
    let mut is_slow = vec![false; ranks];
    let mut stragglers = Vec::new();
    for (index, slow) in entry.straggler.iter().enumerate() {
        let key = key.key("straggler").index(index);
        if !FACTORS.contains(&slow.compute_factor) {
            let message = format!("{} is not from 0.01 to 100", slow.compute_factor);
            let error = ScenarioError::new(key.key("compute-factor"), message);
            return Err(error.with_hint("write e.g. 1.5, half as long again"));
        }
        let delay = span(Some(slow.delay), &key.key("delay"))?;
        let drawn = drawn_ranks(slow, &is_slow, index, &key)?;
        for (place, &rank) in slow.ranks.iter().chain(&drawn).enumerate() {
            let (message, hint) = match is_slow.get(rank as usize) {
                Some(false) => {
                    is_slow[rank as usize] = true;
                    stragglers.push(Straggler {
                        rank,
                        delay,
                        compute_factor: slow.compute_factor,
                    });
                    continue;
                }
                Some(true) => (
                    format!("rank {rank} is listed twice"),
                    "list each rank once".to_owned(),
                ),
                None => (
                    format!("there is no rank {rank}"),
                    format!("the ranks are 0 to {}", ranks.saturating_sub(1)),
                ),
            };
            let error = ScenarioError::new(key.key("ranks").index(place), message);
            return Err(error.with_hint(hint));
        }
    }
    Ok(stragglers)
}

fn drawn_ranks(
    slow: &StragglerEntry,
    is_slow: &[bool],
    index: usize,
    key: &KeyPath,
) -> Result<Vec<u32>, ScenarioError> {
    let (message, hint) = match slow.share {
        None if slow.ranks.is_empty() => ("it names no rank", "write ranks or share"),
        None => return Ok(Vec::new()),
        Some(_) if !slow.ranks.is_empty() => ("ranks are listed, too", "use ranks or share"),
        Some(share) if !(0.0..=1.0).contains(&share) => {
            ("it is not from 0 to 1", "write e.g. 0.05")
        }
        Some(share) => {
            let others = (0_u32..).zip(is_slow).filter(|(_, is_slow)| !**is_slow);
            let mut ranks: Vec<u32> = others.map(|(rank, _)| rank).collect();
            let purpose = Purpose::Named("programs.stragglers", index);
            shuffle(&mut stream(slow.seed, purpose, 0), &mut ranks);
            ranks.truncate((share * is_slow.len() as f64).round() as usize);
            return Ok(ranks);
        }
    };
    let name = if slow.share.is_some() {
        "share"
    } else {
        "ranks"
    };
    Err(ScenarioError::new(key.key(name), message).with_hint(hint))
}

fn burst_of(entry: &ProgramEntry, key: &KeyPath) -> Result<Option<Burst>, ScenarioError> {
    let (name, missing) = match (entry.burst, entry.pause) {
        (None, None) => return Ok(None),
        (Some(_), None) => ("burst", "pause"),
        (None, Some(_)) => ("pause", "burst"),
        (Some(_), Some(_)) => {
            return Ok(Some(Burst {
                length: span(entry.burst, &key.key("burst"))?,
                pause: span(entry.pause, &key.key("pause"))?,
            }));
        }
    };
    let error = ScenarioError::new(key.key(name), format!("it has no {missing} beside it"));
    Err(error.with_hint(format!("write {missing} as well, e.g. \"1 ms\"")))
}

fn check_servers(
    settings: &TraceSettings,
    placement: Placement,
    key: &KeyPath,
) -> Result<(), ScenarioError> {
    let (ranks, local) = (settings.places, settings.local);
    let message = match local {
        1 => "each rank is a separate server: no hierarchy".to_owned(),
        _ if ranks % local > 0 => format!("servers of {local} ranks do not divide {ranks} ranks"),
        _ => return Ok(()),
    };
    let hint = match placement {
        Placement::Block | Placement::Cyclic => format!(
            "write how many ranks side by side share a server, a divisor of {ranks} from 2 on, or choose another algorithm"
        ),
        Placement::Random | Placement::Rail => {
            "use the placement block or cyclic, several ranks per host, or another algorithm"
                .to_owned()
        }
    };
    Err(ScenarioError::new(key.clone(), message).with_hint(hint))
}

fn trained(
    entry: &ProgramEntry,
    settings: &TraceSettings,
    key: &KeyPath,
) -> Result<Work, ScenarioError> {
    let (iterations, _, start) = rounds(entry, key)?;
    let schedules = entry.model.iter().map(|model| {
        model.schedules(settings).map_err(|error| {
            let key = key.key("model").key(error.key);
            ScenarioError::new(key, error.message).with_hint(error.hint)
        })
    });
    Ok(Work::Loops {
        schedules: schedules.collect::<Result<Vec<_>, _>>()?.concat(),
        iterations,
        start,
        collective: None,
    })
}

fn served(
    entry: &ProgramEntry,
    settings: &TraceSettings,
    key: &KeyPath,
) -> Result<Work, ScenarioError> {
    let start = span(entry.start, &key.key("start"))?;
    let Some(section) = &entry.inference else {
        unreachable!("the kind needs this table");
    };
    let plan = section.plan(settings, start).map_err(|error| {
        let key = key.key("inference").key(error.key);
        ScenarioError::new(key, error.message).with_hint(error.hint)
    })?;
    Ok(Work::Inference {
        plan: Arc::new(plan),
        start,
    })
}

pub(super) fn rounds(
    entry: &ProgramEntry,
    key: &KeyPath,
) -> Result<(Option<u64>, Span, Span), ScenarioError> {
    Ok((
        entry.iterations.unwrap_or(Limit::At(1)).value(),
        span(entry.compute, &key.key("compute"))?,
        span(entry.start, &key.key("start"))?,
    ))
}

fn pipeline_of(
    channels: Option<u32>,
    chunk: Option<Bytes>,
    key: &KeyPath,
) -> Result<Pipeline, ScenarioError> {
    let channels = channels.unwrap_or(1);
    if !(1..=MOST_CHANNELS).contains(&channels) {
        let message = format!("{channels} channels: 1 to {MOST_CHANNELS} are supported");
        let error = ScenarioError::new(key.key("channels"), message);
        return Err(error.with_hint("write e.g. 4"));
    }
    if chunk.is_some_and(Bytes::is_zero) {
        let error = ScenarioError::new(key.key("chunk"), "it is zero");
        return Err(error.with_hint("write e.g. \"1 MiB\""));
    }
    Ok(Pipeline {
        channels,
        chunk: chunk.map(Bytes::as_u64),
        ..Pipeline::default()
    })
}

fn methods(entries: &[MethodEntry]) -> Result<Vec<MethodRule>, ScenarioError> {
    let entries = entries.iter().enumerate();
    entries
        .map(|(index, entry)| {
            let key = at("traffic.collective").index(index);
            if entry.algorithm == Some(Algorithm::Sharp) {
                let message = "aggregation trees are for programs of one collective operation";
                let error = ScenarioError::new(key.key("algorithm"), message);
                return Err(error.with_hint("set algorithm of the program to \"sharp\""));
            }
            if let (Some(operation), Some(algorithm)) = (entry.operation, entry.algorithm) {
                check_algorithm(operation, algorithm, &key.key("algorithm"))?;
            }
            Ok(MethodRule {
                operation: entry.operation,
                up_to: entry.up_to.map(Bytes::as_u64),
                algorithm: entry.algorithm,
                pipeline: pipeline_of(entry.channels, entry.chunk, &key)?,
            })
        })
        .collect()
}

fn sized(entry: &ProgramEntry, key: &KeyPath) -> Result<Work, ScenarioError> {
    let algorithm = entry.algorithm.unwrap_or(Algorithm::Pairwise);
    if !matches!(algorithm, Algorithm::Pairwise | Algorithm::Direct) {
        let error = ScenarioError::new(key.key("algorithm"), "it does not do this operation");
        return Err(error.with_hint("known: pairwise, direct"));
    }
    let rows = entry.sizes.as_deref().unwrap_or_default();
    let ranks = rows.len();
    let key_sizes = key.key("sizes");
    if ranks < 2 {
        let error = ScenarioError::new(key_sizes, "one rank has no other to send to");
        return Err(error.with_hint("give a list of sizes for each of the ranks"));
    }
    let mut sizes = Vec::with_capacity(ranks);
    for (rank, row) in rows.iter().enumerate() {
        let key = key_sizes.index(rank);
        if row.len() != ranks {
            let message = format!("it has {} sizes, but there are {ranks} ranks", row.len());
            let error = ScenarioError::new(key, message);
            return Err(
                error.with_hint("give a size for each receiver, \"0 B\" for the rank itself")
            );
        }
        let row = row.iter().enumerate();
        let row = row.map(|(place, bytes)| size(*bytes, &key.index(place)));
        let row = row.collect::<Result<Vec<u64>, _>>()?;
        if row[rank] > 0 {
            let message = format!("rank {rank} sends to itself");
            let error = ScenarioError::new(key.index(rank), message);
            return Err(error.with_hint("write \"0 B\": what a rank keeps does not leave it"));
        }
        sizes.push(row);
    }
    let (iterations, compute, start) = rounds(entry, key)?;
    Ok(Work::Loops {
        schedules: loops::alltoallv(&sizes, algorithm, compute),
        iterations,
        start,
        collective: None,
    })
}

pub(super) fn check_algorithm(
    operation: Operation,
    algorithm: Algorithm,
    key: &KeyPath,
) -> Result<(), ScenarioError> {
    if operation.is_done_by(algorithm) {
        return Ok(());
    }
    let offered = operation.algorithms();
    let names: Vec<&str> = offered.iter().map(|one| one.name()).collect();
    let message = format!("\"{}\" is no algorithm of this operation", algorithm.name());
    Err(ScenarioError::new(key.clone(), message).with_hint(format!("known: {}", names.join(", "))))
}

pub(super) fn size(bytes: Bytes, key: &KeyPath) -> Result<u64, ScenarioError> {
    if bytes > LARGEST {
        let error = ScenarioError::new(key.clone(), format!("{bytes} is more than {LARGEST}"));
        return Err(error.with_hint("write e.g. \"1 MiB\""));
    }
    Ok(bytes.as_u64())
}

/// Limits long times, which are as good as never, so that they do not overflow the clock.
pub(super) fn span(span: Option<Span>, key: &KeyPath) -> Result<Span, ScenarioError> {
    const LONGEST: Span = Span::from_secs(20 * 3_600);
    match span.unwrap_or(Span::ZERO) {
        span if span > LONGEST => {
            let message = format!("{span} is longer than a computation may take, {LONGEST}");
            let error = ScenarioError::new(key.clone(), message);
            Err(error.with_hint("write e.g. \"10 us\""))
        }
        span => Ok(span),
    }
}

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
