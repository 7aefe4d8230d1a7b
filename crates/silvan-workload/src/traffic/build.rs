//! From the plain description to the sources of every host.

use silvan_core::{Bytes, HostId, Time};

use crate::traffic::check::{Checker, ResolvedLoad};
use crate::traffic::error::{Entry, Reason, TrafficError};
use crate::traffic::finite::FiniteFlow;
use crate::traffic::fixed::{Fixed, Plan};
use crate::traffic::hosts::{HostSources, Source, Traffic};
use crate::traffic::hotspots::HotspotTable;
use crate::traffic::nodes::build_nodes;
use crate::traffic::offered::{Contribution, OfferedLoad};
use crate::traffic::on_off::OnOff;
use crate::traffic::pace::Pace;
use crate::traffic::rng::{Purpose, Stream, shuffle, start_phase, stream};
use crate::traffic::roles::Role;
use crate::traffic::scatter::{Classes, Common, Scatter};
use crate::traffic::send_queue::SendQueue;
use crate::traffic::sequence::{Sequence, SequencePlan};
use crate::traffic::spec::{
    Environment, FlowSpec, IncastSpec, Load, OnOffSpec, Pattern, PermutationSpec, SequenceSpec,
    Spacing, TrafficSpec, UniformSpec,
};
use crate::traffic::supply::{Spread, Supply};

/// When a source with one destination sends.
struct Shape {
    /// Arrivals of its messages; `None` if it saturates.
    pace: Option<Pace>,
    /// When it is on; `None`: all the time.
    on_off: Option<OnOff>,
}

/// Traffic under construction.
pub(crate) struct Builder<'a> {
    pub(crate) spec: &'a TrafficSpec,
    pub(crate) environment: &'a Environment,
    /// Largest payload of a packet in bytes.
    pub(crate) mtu: u32,
    sources: Vec<Vec<(Source, Contribution)>>,
    commons: Vec<Common>,
    classes: Vec<String>,
    /// Hosts that some source sends to, by host.
    pub(crate) receives: Vec<bool>,
    incast_targets: Vec<HostId>,
    finite: Vec<FiniteFlow>,
}

/// Builds the traffic of `spec`.
pub(crate) fn build(
    spec: &TrafficSpec,
    environment: &Environment,
) -> Result<Traffic, TrafficError> {
    let general = Checker {
        entry: Entry::Traffic,
        environment,
    };
    if spec.backlog == 0 {
        return general.fail("backlog", Reason::ZeroBacklog);
    }
    let hosts = environment.injection.len();
    let mut builder = Builder {
        spec,
        environment,
        mtu: general.size("mtu", environment.mtu)?,
        sources: std::iter::repeat_with(Vec::new).take(hosts).collect(),
        commons: Vec::new(),
        classes: Vec::new(),
        receives: vec![false; hosts],
        incast_targets: Vec::new(),
        finite: Vec::new(),
    };
    let mut roles = vec![Role::Idle; hosts];
    let mut followers = Vec::new();
    let mut hotspots = HotspotTable::given(Vec::new(), None, hosts, environment.seed);
    if let Some(nodes) = &spec.nodes {
        hotspots = build_nodes(&mut builder, nodes, &mut roles, &mut followers)?;
    }
    for (index, entry) in spec.uniform.iter().enumerate() {
        builder.uniform(index, entry)?;
    }
    for (index, entry) in spec.permutation.iter().enumerate() {
        builder.permutation(index, entry)?;
    }
    for (index, entry) in spec.incast.iter().enumerate() {
        builder.incast(index, entry)?;
    }
    for (index, entry) in spec.flow.iter().enumerate() {
        builder.flow(index, entry)?;
    }
    for (index, entry) in spec.sequence.iter().enumerate() {
        builder.sequence(index, entry)?;
    }
    Ok(builder.finish(roles, followers, hotspots))
}

impl<'a> Builder<'a> {
    pub(crate) fn checker(&self, entry: Entry) -> Checker<'a> {
        Checker {
            entry,
            environment: self.environment,
        }
    }

    /// Adds a statistics class and gives its index.
    pub(crate) fn class(&mut self, check: &Checker, name: String) -> Result<u16, TrafficError> {
        if self.classes.contains(&name) {
            return check.fail("name", Reason::NameTaken(name));
        }
        match u16::try_from(self.classes.len()) {
            Ok(class) => {
                self.classes.push(name);
                Ok(class)
            }
            Err(_) => check.fail("name", Reason::TooManyClasses),
        }
    }

    /// Adds what the sources of one entry have in common and gives its index.
    pub(crate) fn common(&mut self, common: Common) -> u32 {
        self.commons.push(common);
        self.commons.len() as u32 - 1
    }

    /// When a saturating source of `host` starts.
    pub(crate) fn start(&self, host: HostId, message: u32, start: Time) -> Time {
        let environment = self.environment;
        let injection = environment.injection[host.index()];
        let message = Bytes::from_bytes(u64::from(message));
        start.saturating_add(start_phase(environment.seed, host, message, injection))
    }

    pub(crate) fn add(&mut self, host: HostId, source: Source, contribution: Contribution) {
        self.sources[host.index()].push((source, contribution));
    }

    fn uniform(&mut self, index: usize, entry: &UniformSpec) -> Result<(), TrafficError> {
        let check = self.checker(Entry::Uniform(index));
        let hosts = check.hosts();
        let senders = check.senders(&entry.from, None, Purpose::UniformSenders(index))?;
        if hosts < 2 {
            let (wanted, available) = (2, hosts);
            return check.fail("from", Reason::TooFewHosts { wanted, available });
        }
        let message = check.message(entry.message, self.spec.message)?;
        let window = check.window(entry.window)?;
        let class = self.class(&check, named(&entry.name, "uniform", index))?;
        let common = self.common(Common {
            hosts: hosts as u32,
            loopback: self.spec.loopback,
            message,
            mtu: self.mtu,
            sl: entry.sl,
            backlog: self.spec.backlog,
            window,
        });
        self.reach_all_from(&senders);
        let seed = self.environment.seed;
        for host in senders {
            let load = check.load("load", entry.load, host, message)?;
            let number = host.index() as u64;
            let destinations = stream(seed, Purpose::UniformDestinations(index), number);
            let gaps = stream(seed, Purpose::UniformGaps(index), number);
            let supply = match pace(&load, entry.spacing, window.start, gaps) {
                Some(pace) => Supply::Paced(Box::new(pace)),
                None => Supply::Uniform,
            };
            let classes = Classes {
                uniform: class,
                hot: class,
            };
            let spread = Spread::new(host, destinations);
            let contribution = Contribution {
                rate: load.rate,
                uniform: load.rate,
                window,
            };
            let start = match supply {
                Supply::Paced(_) => window.start,
                _ => self.start(host, message, window.start),
            };
            let scatter = Scatter::new(common, classes, start, spread, supply);
            self.add(host, Source::Scatter(scatter), contribution);
        }
        Ok(())
    }

    fn permutation(&mut self, index: usize, entry: &PermutationSpec) -> Result<(), TrafficError> {
        let check = self.checker(Entry::Permutation(index));
        let receivers = self.receivers(&check, index, &entry.pattern)?;
        let class = self.class(&check, named(&entry.name, "permutation", index))?;
        let message = check.message(entry.message, self.spec.message)?;
        let window = check.window(entry.window)?;
        for (number, dst) in receivers.into_iter().enumerate() {
            let host = HostId::new(number);
            let load = check.load("load", entry.load, host, message)?;
            let plan = Plan {
                dst,
                sl: entry.sl,
                class,
                message,
                mtu: self.mtu,
                window,
            };
            let purpose = Purpose::PermutationGaps(index);
            let gaps = stream(self.environment.seed, purpose, number as u64);
            let pace = pace(&load, entry.spacing, window.start, gaps);
            let shape = Shape { pace, on_off: None };
            self.add_fixed(host, plan, None, load.rate, shape);
        }
        Ok(())
    }

    /// The receiver of every host, in the order of the hosts.
    fn receivers(
        &self,
        check: &Checker,
        index: usize,
        pattern: &Pattern,
    ) -> Result<Vec<HostId>, TrafficError> {
        const KEY: &str = "pattern";
        let hosts = check.hosts();
        if hosts < 2 {
            let (wanted, available) = (2, hosts);
            return check.fail(KEY, Reason::TooFewHosts { wanted, available });
        }
        match pattern {
            Pattern::Random => {
                let purpose = Purpose::Permutation(index);
                Ok(derangement(
                    &mut stream(self.environment.seed, purpose, 0),
                    hosts,
                ))
            }
            &Pattern::Shift(shift) => {
                let shift = shift as usize % hosts;
                if shift == 0 {
                    return check.fail(KEY, Reason::ToItself(HostId::new(0)));
                }
                let shifted = (0..hosts).map(|host| HostId::new((host + shift) % hosts));
                Ok(shifted.collect())
            }
            Pattern::BitComplement if hosts.is_power_of_two() => {
                Ok((0..hosts).rev().map(HostId::new).collect())
            }
            Pattern::BitComplement => check.fail(KEY, Reason::NotAPowerOfTwo(hosts)),
            Pattern::Given(list) => {
                if list.len() != hosts {
                    let given = list.len();
                    return check.fail(KEY, Reason::WrongLength { given, hosts });
                }
                check.distinct_hosts(KEY, list, &mut vec![false; hosts])?;
                let to_itself = (0..hosts)
                    .map(HostId::new)
                    .find(|host| list[host.index()] == *host);
                if let Some(host) = to_itself {
                    return check.fail(KEY, Reason::ToItself(host));
                }
                Ok(list.clone())
            }
        }
    }

    fn incast(&mut self, index: usize, entry: &IncastSpec) -> Result<(), TrafficError> {
        let check = self.checker(Entry::Incast(index));
        let dst = check.host("to", entry.to)?;
        let purpose = Purpose::IncastSenders(index);
        let senders = check.senders(&entry.from, Some(dst), purpose)?;
        let class = self.class(&check, named(&entry.name, "incast", index))?;
        if !senders.is_empty() && !self.incast_targets.contains(&dst) {
            self.incast_targets.push(dst);
        }
        let message = check.message(entry.message, self.spec.message)?;
        let window = check.window(entry.window)?;
        if entry.bytes.is_some_and(|bytes| bytes.is_zero()) {
            return check.fail("bytes", Reason::ZeroBytes);
        }
        for host in senders {
            let load = check.load("load", entry.load, host, message)?;
            let plan = Plan {
                dst,
                sl: entry.sl,
                class,
                message,
                mtu: self.mtu,
                window,
            };
            let purpose = Purpose::IncastGaps(index);
            let gaps = stream(self.environment.seed, purpose, host.index() as u64);
            let pace = pace(&load, entry.spacing, window.start, gaps);
            let bytes = entry.bytes.map(|bytes| bytes.as_u64());
            let purpose = Purpose::IncastOnOff(index);
            let on_off = on_off(&check, entry.on_off, window.start, &load, purpose, host)?;
            let rate = load.rate * share_on(entry.on_off);
            self.add_fixed(host, plan, bytes, rate, Shape { pace, on_off });
        }
        Ok(())
    }

    fn flow(&mut self, index: usize, entry: &FlowSpec) -> Result<(), TrafficError> {
        let check = self.checker(Entry::Flow(index));
        let name = named(&entry.name, "flow", index);
        let purpose = Purpose::FlowOnOff(index);
        let flow = flow_source(&check, entry, self.spec, self.mtu, purpose)?;
        let class = self.class(&check, name)?;
        let (fixed, rate) = flow(class);
        if entry.bytes.is_some() {
            self.note_finite(entry.from, &fixed);
        }
        self.receives[entry.to.index()] = true;
        let contribution = Contribution {
            rate,
            uniform: 0.0,
            window: entry.window,
        };
        self.add(entry.from, Source::Fixed(fixed), contribution);
        Ok(())
    }

    fn sequence(&mut self, index: usize, entry: &SequenceSpec) -> Result<(), TrafficError> {
        let check = self.checker(Entry::Sequence(index));
        let from = check.host("from", entry.from)?;
        if entry.to.is_empty() {
            return check.fail("to", Reason::NoHosts);
        }
        for &dst in &entry.to {
            check.host("to", dst)?;
            if dst == from && !self.spec.loopback {
                return check.fail("to", Reason::ToItself(from));
            }
        }
        if entry.iterations == Some(0) {
            return check.fail("iterations", Reason::ZeroIterations);
        }
        let message = check.message(entry.message, self.spec.message)?;
        let window = check.window(entry.window)?;
        let class = self.class(&check, named(&entry.name, "sequence", index))?;
        for dst in &entry.to {
            self.receives[dst.index()] = true;
        }
        let sequence = Sequence::new(SequencePlan {
            to: entry.to.clone(),
            iterations: entry.iterations.unwrap_or(u64::MAX),
            sl: entry.sl,
            class,
            message,
            mtu: self.mtu,
            pause: entry.pause,
            window,
        });
        let contribution = Contribution {
            rate: 0.0,
            uniform: 0.0,
            window,
        };
        self.add(from, Source::Sequence(Box::new(sequence)), contribution);
        Ok(())
    }

    /// Each of these hosts sends to all others, and to itself if hosts do.
    pub(crate) fn reach_all_from(&mut self, senders: &[HostId]) {
        for (host, receives) in self.receives.iter_mut().enumerate() {
            let host = HostId::new(host);
            let reaches = |sender: &HostId| *sender != host || self.spec.loopback;
            *receives |= senders.iter().any(reaches);
        }
    }

    fn add_fixed(&mut self, host: HostId, plan: Plan, bytes: Option<u64>, rate: f64, shape: Shape) {
        let contribution = Contribution {
            rate,
            uniform: 0.0,
            window: plan.window,
        };
        self.receives[plan.dst.index()] = true;
        let fixed = Fixed::new(plan, bytes, shape.pace, shape.on_off);
        if bytes.is_some() {
            self.note_finite(host, &fixed);
        }
        self.add(host, Source::Fixed(fixed), contribution);
    }

    fn note_finite(&mut self, source: HostId, fixed: &Fixed) {
        let fixed = fixed.clone();
        self.finite.push(FiniteFlow { source, fixed });
    }

    fn finish(self, roles: Vec<Role>, followers: Vec<HostId>, hotspots: HotspotTable) -> Traffic {
        let mut hosts = Vec::with_capacity(self.sources.len());
        let mut sources = Vec::with_capacity(self.sources.iter().map(Vec::len).sum());
        let mut offered = OfferedLoad::new(self.spec.loopback);
        let send_queues = if self.spec.fifo {
            self.sources.len()
        } else {
            0
        };
        for of_host in self.sources {
            hosts.push(HostSources {
                first: sources.len() as u32,
                count: of_host.len() as u32,
                stopped: 0,
                turn: 0,
            });
            offered.push_host(of_host.iter().map(|(_, contribution)| *contribution));
            sources.extend(of_host.into_iter().map(|(source, _)| source));
        }
        Traffic {
            has_sequences: !self.spec.sequence.is_empty(),
            hosts,
            sources,
            commons: self.commons,
            hotspots,
            followers,
            roles,
            receives: self.receives,
            incast_targets: self.incast_targets,
            finite: self.finite,
            classes: self.classes,
            offered,
            send_queues: vec![SendQueue::default(); send_queues],
        }
    }
}

/// Checks a flow and gives what makes its source, and the offered rate in bit/s, of its class.
pub(crate) fn flow_source(
    check: &Checker,
    entry: &FlowSpec,
    general: &TrafficSpec,
    mtu: u32,
    purpose: Purpose,
) -> Result<impl FnOnce(u16) -> (Fixed, f64) + use<>, TrafficError> {
    let from = check.host("from", entry.from)?;
    let dst = check.host("to", entry.to)?;
    if from == dst && !general.loopback {
        return check.fail("to", Reason::ToItself(from));
    }
    if entry.bytes.is_some_and(|bytes| bytes.is_zero()) {
        return check.fail("bytes", Reason::ZeroBytes);
    }
    let message = check.message(entry.message, general.message)?;
    let window = check.window(entry.window)?;
    // A scenario spells the load of a flow as its rate.
    let key = match entry.load {
        Load::Fraction(_) => "load",
        Load::Saturating | Load::Rate(_) => "rate",
    };
    let load = check.load(key, entry.load, from, message)?;
    let pace = load.gap.map(|gap| Pace::periodic(window.start, gap));
    let on_off = on_off(check, entry.on_off, window.start, &load, purpose, from)?;
    let rate = load.rate * share_on(entry.on_off);
    let bytes = entry.bytes.map(|bytes| bytes.as_u64());
    let sl = entry.sl;
    Ok(move |class| {
        let plan = Plan {
            dst,
            sl,
            class,
            message,
            mtu,
            window,
        };
        (Fixed::new(plan, bytes, pace, on_off), rate)
    })
}

/// The arrivals of one of many hosts of an entry; `None` if it saturates.
fn pace(load: &ResolvedLoad, spacing: Spacing, start: Time, mut gaps: Stream) -> Option<Pace> {
    load.gap.map(|gap| match spacing {
        Spacing::Poisson => Pace::poisson(start, gap, gaps),
        Spacing::Periodic => Pace::periodic_with_phase(start, gap, &mut gaps),
    })
}

/// The ON-OFF process of one source that starts at `start`; `purpose` names what it draws.
fn on_off(
    check: &Checker,
    spec: Option<OnOffSpec>,
    start: Time,
    load: &ResolvedLoad,
    purpose: Purpose,
    host: HostId,
) -> Result<Option<OnOff>, TrafficError> {
    const KEY: &str = "on-off";
    let Some(spec) = spec else {
        return Ok(None);
    };
    if spec.on.is_zero() || spec.off.is_zero() {
        return check.fail(KEY, Reason::ZeroSpan);
    }
    if load.gap.is_some() {
        return check.fail(KEY, Reason::OnOffUnsaturated);
    }
    let draws = stream(check.environment.seed, purpose, host.index() as u64);
    Ok(Some(OnOff::new(spec, start, draws)))
}

/// The share of time that a source is on.
fn share_on(spec: Option<OnOffSpec>) -> f64 {
    spec.map_or(1.0, |spec| {
        let (on, off) = (spec.on.as_ps() as f64, spec.off.as_ps() as f64);
        on / (on + off)
    })
}

/// The name of an entry, or its kind with its number, counted from 1.
fn named(name: &Option<String>, kind: &str, index: usize) -> String {
    name.clone()
        .unwrap_or_else(|| format!("{kind}-{}", index + 1))
}

/// A permutation of `hosts` hosts without a fixed point, all equally likely: permutations are drawn
/// until one has none, which takes e tries on average.
fn derangement(stream: &mut Stream, hosts: usize) -> Vec<HostId> {
    let mut order: Vec<usize> = (0..hosts).collect();
    loop {
        shuffle(stream, &mut order);
        if order.iter().enumerate().all(|(host, &dst)| host != dst) {
            return order.into_iter().map(HostId::new).collect();
        }
    }
}
