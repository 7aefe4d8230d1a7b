use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use silvan_core::counters::{CounterTable, PortCounters};
use silvan_core::{Bytes, HostId, PortId, PortNumber, Time, Vl};
use silvan_fabric::{Fabric, NodeKind};
use silvan_model::Forest;

use crate::subnet::Subnet;

const NONE: u32 = u32::MAX;
const MOST_CLASSES: usize = 64;
const MOST_LIMITS: usize = 20_000;

/// Trees are reused for this multiple of their search time, so searches take at most a hundredth of the thread.
const REST: u32 = 100;

#[derive(Debug)]
pub(crate) struct Known {
    pub routes: u64,
    /// Simulated time of the trees in ps.
    pub trees: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct FoundTrees {
    found: Option<Found>,
}

#[derive(Debug)]
struct Found {
    at: Time,
    forest: Forest,
    rests_until: Instant,
}

impl FoundTrees {
    fn take(&mut self, subnet: &Subnet, is_paused: bool) -> (Time, &Forest) {
        let (now, started) = (subnet.now(), Instant::now());
        let is_kept = |found: &Found| found.at == now || !is_paused && started < found.rests_until;
        let found = match self.found.take().filter(is_kept) {
            Some(found) => found,
            None => {
                let forest = search(subnet);
                let rest = Instant::now().duration_since(started) * REST;
                Found {
                    at: now,
                    forest,
                    rests_until: started + rest.min(Duration::from_secs(3600)),
                }
            }
        };
        let found = self.found.insert(found);
        (found.at, &found.forest)
    }
}

fn search(subnet: &Subnet) -> Forest {
    let scenario = subnet.scenario();
    let half_buffer = scenario.input_buffer().as_u64() / 2;
    let section = scenario.file().probe.trees.as_ref();
    let threshold = section.and_then(|section| section.threshold);
    let threshold = threshold.unwrap_or(Bytes::from_bytes(half_buffer));
    subnet.plane.engine.forest(threshold)
}

pub(crate) struct Sample {
    pub header: Value,
    pub bytes: Vec<u8>,
}

fn cabled(fabric: &Fabric) -> impl Iterator<Item = PortId> + '_ {
    let ports = fabric.ports.ids();
    ports.filter(|&port| fabric.ports[port].link.is_some())
}

fn rows(fabric: &Fabric) -> Vec<u32> {
    let mut rows = vec![NONE; fabric.ports.len()];
    for (row, port) in (0..).zip(cabled(fabric)) {
        rows[port.index()] = row;
    }
    rows
}

/// Hosts first; cabled ports by node number; and the scenario with all defaults.
pub(crate) fn fabric(subnet: &Subnet) -> Value {
    let fabric = &subnet.fabric;
    let rows = rows(fabric);
    let hosts = fabric.host_ids().map(|host| fabric.node_of_host(host));
    let switches = fabric.switch_ids().map(|one| fabric.node_of_switch(one));
    let nodes = hosts.chain(switches).map(|node| {
        json!({
            "name": fabric.nodes[node].name,
            "lid": subnet.lid(node).as_u16(),
            "is_host": fabric.nodes[node].as_host().is_some(),
        })
    });
    let ports = cabled(fabric).map(|id| {
        let port = &fabric.ports[id];
        let node = match fabric.nodes[port.node].kind {
            NodeKind::Host(host) => host.index(),
            NodeKind::Switch(switch) => fabric.host_count() + switch.index(),
        };
        let peer = port.peer.map_or(NONE, |peer| rows[peer.index()]);
        let rate = port.link.map(|link| fabric.links[link].kind.data_rate());
        let gbps = rate.map_or(0.0, |rate| rate.bits_per_sec() as f64 / 1e9);
        json!([node, port.number.as_u8(), peer, gbps])
    });
    json!({
        "nodes": nodes.collect::<Vec<_>>(),
        "ports": ports.collect::<Vec<_>>(),
        "scenario": subnet.scenario().effective_toml(),
    })
}

fn routes(subnet: &Subnet) -> impl Iterator<Item = u8> + '_ {
    let fabric = &subnet.fabric;
    let lids: Vec<_> = fabric
        .host_ids()
        .map(|host| subnet.host_lid(host))
        .collect();
    fabric.switch_ids().flat_map(move |switch| {
        let record = &subnet.state(fabric.node_of_switch(switch)).switch;
        let port = |lid| record.as_ref().and_then(|record| record.route(lid));
        let ports = lids
            .iter()
            .map(|&lid| port(lid).map_or(u8::MAX, PortNumber::as_u8));
        ports.collect::<Vec<_>>()
    })
}

/// Trees and routes only if the client's are outdated.
pub(crate) fn sample(
    subnet: &Subnet,
    trees: &mut FoundTrees,
    is_paused: bool,
    known: &Known,
) -> Sample {
    let fabric = &subnet.fabric;
    let engine = &*subnet.plane.engine;
    let mut columns = Columns::default();
    let counters: Vec<_> = cabled(fabric)
        .map(|port| subnet.plane.counters(port))
        .collect();
    for counter in PortCounters::in_table(CounterTable::PortSeries) {
        columns.wide(counter.column, counters.iter().map(|one| counter.read(one)));
    }
    let queued = |port| -> u64 {
        let lanes = Vl::all().take(subnet.plane.data_vls());
        lanes.map(|vl| engine.queued(port, vl).as_u64()).sum()
    };
    columns.wide("queued_bytes", cabled(fabric).map(queued));
    let down = (0..).zip(cabled(fabric));
    let down = down.filter(|&(_, port)| !subnet.record(port).is_linked());
    columns.narrow("down_rows", down.map(|(row, _)| row));
    let classes = &engine.classes()[..engine.classes().len().min(MOST_CLASSES)];
    let delivered = (0..).zip(classes).map(|(class, _)| engine.class(class));
    columns.wide("class_bytes", delivered.map(|class| class.delivered_bytes));
    let (found_at, forest) = trees.take(subnet, is_paused);
    if known.trees != Some(found_at.as_ps()) {
        columns.trees(forest, &rows(fabric));
    }
    columns.limits(subnet);
    if known.routes != subnet.routes_version {
        columns.bytes("routes", routes(subnet));
    }
    Sample {
        header: json!({
            "time_ps": subnet.now().as_ps(),
            "trees_ps": found_at.as_ps(),
            "classes": classes,
            "routes_version": subnet.routes_version,
            "columns": columns.header,
            "bytes": columns.bytes.len(),
        }),
        bytes: columns.bytes,
    }
}

#[derive(Default)]
struct Columns {
    header: Map<String, Value>,
    bytes: Vec<u8>,
}

impl Columns {
    fn wide(&mut self, name: &str, values: impl Iterator<Item = u64>) {
        let start = self.bytes.len();
        self.bytes.extend(values.flat_map(u64::to_le_bytes));
        let count = (self.bytes.len() - start) / 8;
        self.header
            .insert(name.to_owned(), json!([8, start, count]));
    }

    fn narrow(&mut self, name: &str, values: impl Iterator<Item = u32>) {
        let start = self.bytes.len();
        self.bytes.extend(values.flat_map(u32::to_le_bytes));
        let count = (self.bytes.len() - start) / 4;
        self.header
            .insert(name.to_owned(), json!([4, start, count]));
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }

    fn bytes(&mut self, name: &str, values: impl Iterator<Item = u8>) {
        let start = self.bytes.len();
        self.bytes.extend(values);
        let count = self.bytes.len() - start;
        self.header
            .insert(name.to_owned(), json!([1, start, count]));
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }

    fn limits(&mut self, subnet: &Subnet) {
        let hosts = subnet.fabric.host_ids();
        let limits: Vec<_> = hosts
            .flat_map(|host| {
                let limits = subnet.plane.engine.flow_limits(host).into_iter();
                limits.map(move |limit| (host, limit))
            })
            .take(MOST_LIMITS)
            .collect();
        let index = |host: HostId| host.index() as u32;
        self.narrow("limit_source", limits.iter().map(|(host, _)| index(*host)));
        let destinations = limits.iter().map(|(_, limit)| limit.destination);
        self.narrow(
            "limit_destination",
            destinations.map(|host| host.map_or(NONE, index)),
        );
        let levels = limits.iter().map(|(_, limit)| u32::from(limit.sl.as_u8()));
        self.narrow("limit_sl", levels);
        let indices = limits.iter().map(|(_, limit)| u32::from(limit.ccti));
        self.narrow("limit_ccti", indices);
    }

    fn trees(&mut self, forest: &Forest, rows: &[u32]) {
        let row = |port: PortId| rows[port.index()];
        let trees = || forest.trees.iter();
        self.narrow("root_row", trees().map(|tree| row(tree.root)));
        self.narrow("root_vl", trees().map(|tree| u32::from(tree.vl.as_u8())));
        let destination = |host: HostId| host.index() as u32;
        let destinations = trees().map(|tree| tree.destination.map_or(NONE, destination));
        self.narrow("destination", destinations);
        self.narrow(
            "contributors",
            trees().map(|tree| tree.contributors() as u32),
        );
        self.narrow("victims", trees().map(|tree| tree.victims() as u32));
        let members = || {
            let all = (0..).zip(trees());
            all.flat_map(|(tree, of)| of.members.iter().map(move |member| (tree, member)))
        };
        self.narrow("port_tree", members().map(|(tree, _)| tree));
        self.narrow("port_row", members().map(|(_, one)| row(one.port)));
        self.narrow("port_depth", members().map(|(_, one)| one.depth));
        let parents = members().map(|(_, one)| row(one.parent.unwrap_or(one.port)));
        self.narrow("port_parent", parents);
        self.wide("port_queued", members().map(|(_, one)| one.queued.as_u64()));
        let shares = || {
            let all = (0..).zip(trees());
            all.flat_map(|(tree, of)| of.shares.iter().map(move |share| (tree, share)))
        };
        self.narrow("host_tree", shares().map(|(tree, _)| tree));
        self.narrow("host", shares().map(|(_, one)| one.host.index() as u32));
        self.wide(
            "contributing",
            shares().map(|(_, one)| one.contributing.as_u64()),
        );
        self.wide("victim", shares().map(|(_, one)| one.victim.as_u64()));
    }
}
