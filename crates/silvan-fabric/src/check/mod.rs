//! Proof that forwarding tables work: every pair of hosts is connected, and no packet goes in a loop or a deadlock.
//!
//! A channel, a cable in one direction with its lane, depends on the next channel of some route. Without a cycle of
//! dependencies there is no deadlock (W. J. Dally, C. L. Seitz: Deadlock-free message routing in multiprocessor
//! interconnection networks, IEEE Transactions on Computers C-36(5), 1987).

mod dependencies;
mod steps;
mod tree;

use std::num::NonZero;

use silvan_core::{HostId, IdVec, PortId, PortNumber, SwitchId};
use thiserror::Error;

use crate::Fabric;
use crate::routing::Routes;
use dependencies::Dependencies;
pub use steps::{StepsReport, check_steps};
use tree::{DestinationTree, Hops};

/// Faults that [`check`] tolerates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckOptions {
    /// Accept a cycle of channel dependencies and report it instead: the fabric may deadlock.
    pub allow_cycles: bool,
    /// Accept pairs of hosts without a route because a switch has no entry, and report them instead.
    pub allow_missing: bool,
}

/// Properties of working routes, found by [`check`].
#[derive(Debug, Clone, PartialEq)]
pub struct RouteReport {
    /// Ordered pairs of different hosts.
    pub pairs: u64,
    /// Pairs without a route, only [if allowed](CheckOptions::allow_missing).
    pub unreachable: u64,
    /// The first [missing entry](RouteError::NoEntry).
    pub first_missing: Option<RouteError>,
    /// Most cables on a route, those of both hosts included.
    pub max_hops: u32,
    /// Mean number of cables on a route over all pairs that have one; 0 if there is none.
    pub mean_hops: f64,
    /// For each port, the number of pairs whose route leaves the node by it.
    pub routes: IdVec<PortId, u64>,
    /// A cycle of dependencies as exit ports, if it is [allowed](CheckOptions::allow_cycles).
    pub dependency_cycle: Option<Vec<PortId>>,
}

/// A fault of the routes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RouteError {
    /// A switch on the way has no entry for the destination.
    #[error("no route from {source_host:?} to {destination:?}: {switch:?} has no entry for it")]
    NoEntry {
        /// Name of a source host.
        source_host: String,
        /// Name of the destination host.
        destination: String,
        /// Name of the switch without an entry.
        switch: String,
    },
    /// A switch on the way sends to a port that leads nowhere, or to the wrong host.
    #[error(
        "no route from {source_host:?} to {destination:?}: {switch:?} sends it out of port {port}, \
         which leads to {leads_to}"
    )]
    WrongDirection {
        /// Name of a source host.
        source_host: String,
        /// Name of the destination host.
        destination: String,
        /// Name of the switch.
        switch: String,
        /// The port of its entry.
        port: PortNumber,
        /// The node at the end of the route.
        leads_to: String,
    },
    /// Packets go round in a loop.
    #[error(
        "packets from {source_host:?} to {destination:?} go round in a loop: {}",
        format_cycle(.cycle)
    )]
    Loop {
        /// Name of a source host.
        source_host: String,
        /// Name of the destination host.
        destination: String,
        /// Names of the switches of the loop, in the order of travel.
        cycle: Vec<String>,
    },
    /// A switch on the way maps a service level to a lane that does not exist.
    #[error(
        "packets from {source_host:?} to {destination:?} on service level {level} have no lane at \
         {switch:?}: from port {input} to port {output} it is mapped to VL {lane}"
    )]
    NoLane {
        /// Name of a source host.
        source_host: String,
        /// Name of the destination host.
        destination: String,
        /// Name of the switch.
        switch: String,
        /// The port that the packets come in by.
        input: PortNumber,
        /// The port that they leave by.
        output: PortNumber,
        /// Service level of the path.
        level: u8,
        /// Virtual lane of that service level.
        lane: u8,
    },
    /// The channel-dependency graph has a cycle.
    #[error(
        "the routes can deadlock, their channels depend on each other in a cycle: {}",
        format_cycle(.cycle)
    )]
    DependencyCycle {
        /// Exit ports as `switch:port` in the order of travel, with the lane where it changes.
        cycle: Vec<String>,
    },
}

impl RouteError {
    /// A cycle of channels, each a port that packets leave by and a lane.
    pub fn cycle(fabric: &Fabric, channels: &[(PortId, u8)]) -> Self {
        let name =
            |&(port, lane): &(PortId, u8)| format!("{} (lane {lane})", fabric.port_name(port));
        Self::DependencyCycle {
            cycle: channels.iter().map(name).collect(),
        }
    }
}

fn format_cycle(cycle: &[String]) -> String {
    let mut text = cycle.join(" -> ");
    if let Some(first) = cycle.first() {
        text.push_str(" -> ");
        text.push_str(first);
    }
    text
}

/// Checks the routes between all hosts; the first fault by destination and source, a cycle only if nothing else is
/// wrong and it is not [allowed](CheckOptions::allow_cycles). Panics for tables of fewer switches.
pub fn check<'a>(
    fabric: &Fabric,
    routes: impl Into<Routes<'a>>,
    options: CheckOptions,
) -> Result<RouteReport, RouteError> {
    let routes = routes.into();
    let Followed {
        dependencies,
        mut counts,
        reached,
        hops,
        first_missing,
    } = follow_all(fabric, routes, options)?;
    for host in fabric.host_ids() {
        let count = &mut counts[fabric.host_port(host)];
        *count = count.wrapping_add(reached[fabric.host_attachment(host).0]);
    }
    let Hops {
        max: max_hops,
        total: total_hops,
        unreachable,
    } = hops;
    let dependency_cycle = dependencies.find_cycle();
    if let (Some(cycle), false) = (&dependency_cycle, options.allow_cycles) {
        if routes.lanes.is_some() {
            return Err(RouteError::cycle(fabric, cycle));
        }
        let name = |(port, _): &(PortId, u8)| fabric.port_name(*port).to_string();
        return Err(RouteError::DependencyCycle {
            cycle: cycle.iter().map(name).collect(),
        });
    }
    let hosts = fabric.host_count() as u64;
    let pairs = hosts * (hosts - 1);
    Ok(RouteReport {
        pairs,
        unreachable,
        first_missing,
        max_hops,
        mean_hops: total_hops as f64 / (pairs - unreachable).max(1) as f64,
        routes: counts,
        dependency_cycle: dependency_cycle.map(ports_of),
    })
}

struct Followed<'f> {
    dependencies: Dependencies<'f>,
    counts: IdVec<PortId, u64>,
    reached: IdVec<SwitchId, u64>,
    hops: Hops,
    first_missing: Option<RouteError>,
}

const WORK_OF_A_THREAD: usize = 1 << 22;
const MOST_THREADS: usize = 16;

/// On a number of threads that suits cores and work; it does not change the result.
fn follow_all<'f>(
    fabric: &'f Fabric,
    routes: Routes<'_>,
    options: CheckOptions,
) -> Result<Followed<'f>, RouteError> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let work = fabric.host_count() * fabric.switch_count() / WORK_OF_A_THREAD + 1;
    follow_on(fabric, routes, options, cores.min(MOST_THREADS).min(work))
}

fn follow_on<'f>(
    fabric: &'f Fabric,
    routes: Routes<'_>,
    options: CheckOptions,
    threads: usize,
) -> Result<Followed<'f>, RouteError> {
    let hosts = fabric.host_count();
    let share = move |thread: usize| thread * hosts / threads..(thread + 1) * hosts / threads;
    let follow = move |thread: usize| {
        let destinations = share(thread).map(HostId::new);
        follow_some(fabric, routes, options, destinations)
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|thread| scope.spawn(move || follow(thread)))
            .collect();
        let first = std::iter::once(follow(0));
        let others = others.into_iter().map(|thread| {
            let finished = thread.join();
            finished.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        first.chain(others).collect()
    });
    let mut parts = parts.into_iter();
    let mut all = parts.next().expect("there is a first thread")?;
    for part in parts {
        all.add(part?);
    }
    Ok(all)
}

fn follow_some<'f>(
    fabric: &'f Fabric,
    routes: Routes<'_>,
    options: CheckOptions,
    destinations: impl Iterator<Item = HostId>,
) -> Result<Followed<'f>, RouteError> {
    let mut tree = DestinationTree::new(fabric, routes.tables);
    tree.allow_missing = options.allow_missing;
    let mut found = Followed {
        dependencies: Dependencies::new(fabric, routes.lanes),
        counts: IdVec::filled(0, fabric.ports.len()),
        reached: IdVec::filled(0, fabric.switch_count()),
        hops: Hops::default(),
        first_missing: None,
    };
    let mut ways = Vec::new();
    for destination in destinations {
        tree.follow(destination)?;
        match routes.lanes {
            Some(lanes) => found.dependencies.add_with_lanes(&tree, lanes)?,
            None => found.dependencies.add(&tree),
        }
        if let Some(alternatives) = routes.alternatives {
            let tables = routes.tables;
            found
                .dependencies
                .add_alternatives(destination, tables, alternatives, &mut ways);
        }
        let hops = tree.count_routes(&mut found.counts, &mut found.reached);
        found.hops.add(&hops);
    }
    found.first_missing = tree.first_missing;
    Ok(found)
}

impl Followed<'_> {
    fn add(&mut self, other: Self) {
        self.dependencies.add_all(&other.dependencies);
        for (count, more) in self.counts.iter_mut().zip(other.counts.iter()) {
            *count = count.wrapping_add(*more);
        }
        for (count, more) in self.reached.iter_mut().zip(other.reached.iter()) {
            *count += more;
        }
        self.hops.add(&other.hops);
        self.first_missing = self.first_missing.take().or(other.first_missing);
    }
}

/// The exit ports of a cycle in the channel-dependency graph, or an error without some route.
pub fn dependency_cycle<'a>(
    fabric: &Fabric,
    routes: impl Into<Routes<'a>>,
) -> Result<Option<Vec<PortId>>, RouteError> {
    let found = follow_all(fabric, routes.into(), CheckOptions::default())?;
    Ok(found.dependencies.find_cycle().map(ports_of))
}

fn ports_of(cycle: Vec<(PortId, u8)>) -> Vec<PortId> {
    cycle.into_iter().map(|(port, _)| port).collect()
}

#[cfg(test)]
mod tests;
