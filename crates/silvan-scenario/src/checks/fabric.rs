use std::collections::HashMap;

use silvan_core::document::Refusal;
use silvan_core::{Guid, HostId, IdVec, PortNumber, SwitchId};
use silvan_fabric::check::{CheckOptions, RouteError, RouteReport, check};
use silvan_fabric::generators::Generator;
use silvan_fabric::routing::{
    self, Alternatives, DModK, ExplicitTable, FatTree, LaneSteps, PathChoice, PathLanes, Routes,
    Routing, RoutingError, RoutingInput, UpDown, Waypoints,
};
use silvan_fabric::{
    Fabric, FabricBuilder, FabricError, ForwardingTables, HostRole, Identity, LinkKind,
    route_to_aggregation,
};
use silvan_model::pfc::PRIORITIES;

use super::import::GuidLists;
use super::levels::{MOST_LANES, given_lanes, on_lane};
use super::{at, choices, linear, refused_in};
use crate::parsed::{
    CableEntry, FabricSection, FlowControl, LinkSection, ScenarioFile, Unreachable,
};
use crate::{KeyPath, ScenarioError};

pub(crate) fn build_fabric(
    section: &FabricSection,
    link: &LinkSection,
) -> Result<Fabric, ScenarioError> {
    let link = link.kind();
    match &section.topology {
        Some(topology) if section.is_listed() => {
            let message = format!(
                "a generator ({}) is given together with lists of switches, hosts or cables",
                topology.kind().name()
            );
            let error = ScenarioError::new(at("fabric.generator"), message);
            Err(error.with_hint("use either of them"))
        }
        Some(topology) => {
            let fabric = topology.build(link);
            let mut fabric = fabric.map_err(|error| match error {
                FabricError::BadParameter { .. } => refused_in(&at("fabric"), &error),
                _ => refused_at(at("fabric.generator"), &error),
            })?;
            name_hosts(&mut fabric, &section.host_names)?;
            Ok(fabric)
        }
        None if !section.host_names.is_empty() => {
            let error = ScenarioError::new(at("fabric.host-names"), "there is no generator");
            Err(error.with_hint("name hosts in their own lists, or set fabric.generator"))
        }
        None => from_lists(section, link),
    }
}

fn name_hosts(fabric: &mut Fabric, names: &[(String, String)]) -> Result<(), ScenarioError> {
    let mut free: HashMap<SwitchId, std::vec::IntoIter<HostId>> = HashMap::new();
    let mut chosen = Vec::with_capacity(names.len());
    for (index, (name, switch_name)) in names.iter().enumerate() {
        let key = at("fabric.host-names").index(index);
        let node = fabric.node_by_name(switch_name);
        let Some(switch) = node.and_then(|node| fabric.nodes[node].as_switch()) else {
            let error = ScenarioError::new(key, format!("there is no switch {switch_name:?}"));
            return Err(error.with_hint(match fabric.nearest_name(switch_name) {
                Some(nearest) => format!("did you mean {nearest:?}?"),
                None => "silvan show prints the switches".to_owned(),
            }));
        };
        let hosts = free.entry(switch).or_insert_with(|| {
            let hosts = fabric
                .host_ids()
                .filter(|host| fabric.switch_of(*host) == Some(switch));
            hosts.collect::<Vec<_>>().into_iter()
        });
        let Some(host) = hosts.next() else {
            let message = format!("{switch_name:?} has no host left for {name:?}");
            let error = ScenarioError::new(key, message);
            return Err(error.with_hint("generate more hosts at a switch, or name fewer"));
        };
        chosen.push((host, name.clone()));
    }
    fabric.rename_hosts(chosen).map_err(|(index, name)| {
        let message = format!("there are two nodes {name:?}");
        let error = ScenarioError::new(at("fabric.host-names").index(index), message);
        error.with_hint("give each host a different name")
    })
}

fn from_lists(section: &FabricSection, link: LinkKind) -> Result<Fabric, ScenarioError> {
    let mut builder = FabricBuilder::new();
    for (index, switch) in section.switch.iter().enumerate() {
        let handle = builder
            .add_switch(switch.name.as_str(), usize::from(switch.ports))
            .map_err(|error| refused_in(&at("fabric.switch").index(index), &error))?;
        let identity = Identity {
            lid: switch.lid,
            guid: switch.guid,
            ..Identity::default()
        };
        builder.identify(handle, identity);
    }
    for (index, host) in section.host.iter().enumerate() {
        let handle = builder
            .add_host(host.name.as_str())
            .map_err(|error| refused_in(&at("fabric.host").index(index), &error))?;
        let identity = Identity {
            lid: host.lid,
            guid: host.guid,
            port_guid: host.port_guid,
            adapter_port: host.adapter_port,
            role: match host.router {
                true => HostRole::Router,
                false => HostRole::Adapter,
            },
        };
        builder.identify(handle, identity);
    }
    for (index, cable) in section.cable.iter().enumerate() {
        connect(&mut builder, cable, link, &at("fabric.cable").index(index))?;
    }
    builder
        .build()
        .map_err(|error| refused_in(&at("fabric"), &error))
}

fn refused_at(key: KeyPath, error: &FabricError) -> ScenarioError {
    let refusal = Refusal::from(error);
    Refusal { key, ..refusal }.into()
}

fn connect(
    builder: &mut FabricBuilder,
    cable: &CableEntry,
    link: LinkKind,
    key: &KeyPath,
) -> Result<(), ScenarioError> {
    let end = |text: &str, which: &str| {
        builder
            .endpoint(text)
            .map_err(|error| refused_in(&key.key(which), &error))
    };
    let (from, to) = (end(&cable.from, "from")?, end(&cable.to, "to")?);
    builder
        .connect(from, to, cable.cable().or(link))
        .map_err(|error| refused_in(key, &error))
}

pub(crate) struct CheckedRoutes {
    pub tables: ForwardingTables,
    pub lanes: Option<PathLanes>,
    pub alternatives: Option<Alternatives>,
    pub steps: Option<LaneSteps>,
    pub waypoints: Option<Waypoints>,
    pub choice: PathChoice,
    pub report: RouteReport,
}

/// Routes to hosts follow the routing; those to aggregation nodes lead from their switch and its neighbours.
pub(crate) fn build_routes(
    file: &ScenarioFile,
    fabric: &Fabric,
    uncut: Option<&Fabric>,
    origin: Option<&KeyPath>,
) -> Result<CheckedRoutes, ScenarioError> {
    if fabric.aggregation_nodes().next().is_none() {
        return routes_to_hosts(file, fabric, uncut, origin);
    }
    let (plain, plain_uncut) = (
        fabric.without_aggregation(),
        uncut.map(Fabric::without_aggregation),
    );
    let routes = routes_to_hosts(file, &plain, plain_uncut.as_ref(), origin)?;
    let is_plain = routes.lanes.is_none()
        && routes.alternatives.is_none()
        && routes.steps.is_none()
        && routes.waypoints.is_none();
    if !is_plain {
        let message = "aggregation nodes (algorithm = \"sharp\") need routes by tables on one lane";
        let error = ScenarioError::new(at("fabric.path-choice"), message);
        return Err(error.with_hint(
            "set fabric.path-choice to \"table\", and a routing without lanes, such as up-down",
        ));
    }
    let tables = match routes.tables.rule() {
        Some(_) => compute_routes(file, &plain)?.0,
        None => routes.tables,
    };
    Ok(CheckedRoutes {
        tables: route_to_aggregation(fabric, &tables),
        ..routes
    })
}

fn routes_to_hosts(
    file: &ScenarioFile,
    fabric: &Fabric,
    uncut: Option<&Fabric>,
    origin: Option<&KeyPath>,
) -> Result<CheckedRoutes, ScenarioError> {
    let section = &file.fabric;
    check_tables_by_lid(section, fabric)?;
    let (tables, lanes) = match uncut {
        Some(uncut) => around_faults(file, uncut, fabric)?,
        None => match by_rule(file, fabric) {
            Some(routes) => routes,
            None => compute_routes(file, fabric)?,
        },
    };
    let needed = lanes.as_ref().map_or(1, PathLanes::lanes);
    let lanes = lanes.filter(|lanes| match section.routing().algorithm() {
        _ if section.path_choice.is_non_minimal() => false,
        Some(algorithm) => {
            let follows_tables =
                section.path_choice == PathChoice::Table || !algorithm.allows_choice();
            follows_tables && lanes.lanes() <= most_lanes(file)
        }
        None => true,
    });
    let options = CheckOptions {
        // Lanes that go up along the way are checked with the paths that switches choose.
        allow_cycles: section.allow_credit_loops || has_steps(section),
        allow_missing: section.unreachable == Unreachable::Drop
            || section.routing() == Routing::None,
    };
    let strict = CheckOptions {
        allow_cycles: false,
        ..options
    };
    let lanes = match lanes {
        // By default a port has several lanes only where one is not enough.
        Some(_) if file.vl.data_vls.is_none() && check(fabric, &tables, strict).is_ok() => None,
        lanes => lanes,
    };
    let routes = Routes {
        lanes: lanes.as_ref(),
        ..(&tables).into()
    };
    let report = check(fabric, routes, options)
        .map_err(|error| cannot_follow(&error, section, origin, needed))?;
    let checked = CheckedRoutes {
        tables,
        lanes,
        alternatives: None,
        steps: None,
        waypoints: None,
        choice: PathChoice::Table,
        report,
    };
    choices::add_choices(file, fabric, checked, options)
}

#[derive(Debug, Clone)]
pub(crate) struct ChosenRouting {
    pub routing: Routing,
    pub reason: String,
}

pub(crate) fn choose_routing(
    section: &FabricSection,
    fabric: &Fabric,
    lists: GuidLists,
) -> Result<ChosenRouting, ScenarioError> {
    let (routing, reason) = match (&section.routing, &section.topology) {
        (Some(routing), _) => (routing.clone(), "written in the scenario".to_owned()),
        (None, Some(topology)) => {
            let (routing, name) = (section.routing(), topology.kind().name());
            let reason = match replaced_routing(section) {
                Some(_) => format!("the default of {name} where switches choose paths"),
                None => format!("the default of {name}"),
            };
            (routing, reason)
        }
        (None, None) => return Ok(suitable_routing(fabric, lists)),
    };
    let routing = with_lists(routing, lists)?;
    Ok(ChosenRouting { routing, reason })
}

/// Given compute nodes need `fat-tree`, whose error then names the cables that do not suit.
fn suitable_routing(fabric: &Fabric, lists: GuidLists) -> ChosenRouting {
    let GuidLists {
        roots,
        compute_nodes,
    } = lists;
    let regular = match roots.is_empty() && compute_nodes.is_empty() {
        true => routing::d_mod_k(fabric).map(|_| ()),
        false => Err(RoutingError::NotAFatTree {
            problem: "roots or compute nodes are given".to_owned(),
        }),
    };
    let Err(irregular) = regular else {
        let reason = "the switches form a fat tree".to_owned();
        let routing = DModK {}.into();
        return ChosenRouting { routing, reason };
    };
    let tree = FatTree {
        roots,
        compute_nodes,
    };
    match tree.check(fabric) {
        Err(error) if tree.compute_nodes.is_empty() => ChosenRouting {
            routing: UpDown { roots: tree.roots }.into(),
            reason: format!("the switches form no fat tree; {error}"),
        },
        _ => ChosenRouting {
            routing: tree.into(),
            reason: format!("the switches form a fat tree that is not regular; {irregular}"),
        },
    }
}

fn with_lists(routing: Routing, lists: GuidLists) -> Result<Routing, ScenarioError> {
    let GuidLists {
        roots,
        compute_nodes,
    } = lists;
    let name = routing.name().name();
    let unused = |key: &str, what: &str, hint: &str| {
        let message = format!("there is a file of {what}, but the routing {name:?} reads no file");
        Err(ScenarioError::new(at("fabric").key(key), message).with_hint(hint))
    };
    let both = |key: &str, what: &str| {
        let message = format!("a file of {what} is given together with a list");
        Err(ScenarioError::new(at("fabric").key(key), message).with_hint("use either of them"))
    };
    match routing {
        Routing::UpDown(UpDown { roots: listed }) if !roots.is_empty() && !listed.is_empty() => {
            both("root-guid-file", "roots")
        }
        Routing::FatTree(tree) if !roots.is_empty() && !tree.roots.is_empty() => {
            both("root-guid-file", "roots")
        }
        Routing::FatTree(tree) if !compute_nodes.is_empty() && !tree.compute_nodes.is_empty() => {
            both("cn-guid-file", "compute nodes")
        }
        Routing::FatTree(tree) => {
            let either = |file: Vec<String>, list| if file.is_empty() { list } else { file };
            Ok(Routing::FatTree(FatTree {
                roots: either(roots, tree.roots),
                compute_nodes: either(compute_nodes, tree.compute_nodes),
            }))
        }
        _ if !compute_nodes.is_empty() => {
            let hint = "set fabric.routing to \"fat-tree\", or leave the file out";
            unused("cn-guid-file", "compute nodes", hint)
        }
        Routing::UpDown(_) if !roots.is_empty() => Ok(UpDown { roots }.into()),
        _ if !roots.is_empty() => {
            let hint = "set fabric.routing to \"fat-tree\" or \"up-down\", or leave the file out";
            unused("root-guid-file", "roots", hint)
        }
        routing => Ok(routing),
    }
}

/// Returns the default routing that is replaced, because switches choose paths and it leaves them no choice.
fn replaced_routing(section: &FabricSection) -> Option<Routing> {
    let topology = section.topology.as_ref()?;
    let default = topology.default_routing();
    let leaves_choice = default.algorithm().is_none_or(|one| one.allows_choice());
    let is_replaced = section.routing.is_none() && !leaves_choice && default != section.routing();
    is_replaced.then_some(default)
}

pub(crate) fn warn_of_routing(section: &FabricSection) -> Option<String> {
    let default = replaced_routing(section)?;
    let (default, other) = (default.name().name(), section.routing().name().name());
    Some(format!(
        "fabric.path-choice: {default} leaves switches no choice, so the tables are those of {other}: set fabric.routing to \"{other}\" \
         to have the same tables with path-choice = \"table\""
    ))
}

pub(super) fn most_lanes(file: &ScenarioFile) -> u8 {
    let by_default = match file.link.flow_control {
        _ if file.fabric.allow_credit_loops => 1,
        FlowControl::Credits => MOST_LANES,
        FlowControl::Pfc => PRIORITIES,
    };
    file.vl.data_vls.unwrap_or(by_default)
}

pub(crate) fn has_steps(section: &FabricSection) -> bool {
    let choice = section.path_choice;
    let routing = section.routing();
    let raises = routing.algorithm().map(|one| one.raises_lanes(choice));
    choice.is_non_minimal() || raises.unwrap_or(false)
}

pub(crate) fn check_lids(fabric: &Fabric, key: &str) -> Result<(), ScenarioError> {
    let lids = fabric.require_lids();
    lids.map_err(|error| refused_at(at("fabric").key(key), &error))
}

fn check_tables_by_lid(section: &FabricSection, fabric: &Fabric) -> Result<(), ScenarioError> {
    for (key, given) in [
        ("linear-tables", !section.linear_tables.is_empty()),
        ("path-sl", !section.path_sl.is_empty()),
    ] {
        if given {
            check_lids(fabric, key)?;
        }
    }
    Ok(())
}

pub(crate) fn has_given_routes(section: &FabricSection) -> bool {
    !section.tables.is_empty()
        || !section.linear_tables.is_empty()
        || !section.path_sl.is_empty()
        || !section.sl_to_vl.is_empty()
}

/// Routes that follow a rule of the topology, with the same decisions as the tables of the routing; `None` if there is no rule.
fn by_rule(file: &ScenarioFile, fabric: &Fabric) -> Option<(ForwardingTables, Option<PathLanes>)> {
    if has_given_routes(&file.fabric) {
        return None;
    }
    let routing = file.fabric.routing();
    routing.algorithm()?.computed(routing_input(file, fabric))
}

pub(super) fn routing_input<'a>(file: &'a ScenarioFile, fabric: &'a Fabric) -> RoutingInput<'a> {
    let topology = file.fabric.topology.as_ref();
    RoutingInput {
        fabric,
        topology: topology.map(|topology| topology as &dyn Generator),
        data_vls: most_lanes(file),
    }
}

pub(crate) fn tabulate(
    file: &ScenarioFile,
    fabric: &Fabric,
) -> Result<ForwardingTables, ScenarioError> {
    let (tables, _) = compute_routes(file, fabric)?;
    Ok(tables)
}

/// Most entries of all forwarding tables, of a byte each.
const MOST_ENTRIES: usize = 1 << 33;

fn check_table_size(fabric: &Fabric) -> Result<(), ScenarioError> {
    let (switches, hosts) = (fabric.switch_count(), fabric.host_count());
    if switches.saturating_mul(hosts) <= MOST_ENTRIES {
        return Ok(());
    }
    let message = format!(
        "{switches} switches would need tables for {hosts} hosts; at most {MOST_ENTRIES} entries are supported, and \
         this routing is not computed for such a shape"
    );
    let hint = "choose a smaller fabric, or another shape of this size, such as fewer dimensions or levels";
    Err(ScenarioError::new(at("fabric").key("routing"), message).with_hint(hint))
}

fn compute_routes(
    file: &ScenarioFile,
    fabric: &Fabric,
) -> Result<(ForwardingTables, Option<PathLanes>), ScenarioError> {
    check_table_size(fabric)?;
    let section = &file.fabric;
    let tables = "forwarding tables are given, but the routing computes them";
    let levels = "levels of paths are given, but the routing computes the tables";
    let lanes = "SL to VL tables are given, but the routing computes the forwarding tables";
    for (key, given, message) in [
        ("tables", !section.tables.is_empty(), tables),
        ("linear-tables", !section.linear_tables.is_empty(), tables),
        ("path-sl", !section.path_sl.is_empty(), levels),
        ("sl-to-vl", !section.sl_to_vl.is_empty(), lanes),
    ] {
        if given && section.routing() != Routing::Explicit {
            let error = ScenarioError::new(at("fabric").key(key), message);
            return Err(error.with_hint("set fabric.routing to \"explicit\""));
        }
    }
    if !section.tables.is_empty() && !section.linear_tables.is_empty() {
        let message = "linear tables are given together with tables by name";
        let error = ScenarioError::new(at("fabric.linear-tables"), message);
        return Err(error.with_hint("use either of them"));
    }
    let routing = section.routing();
    if let Some(algorithm) = routing.algorithm() {
        let routed = algorithm.routes(routing_input(file, fabric));
        return routed.map_err(|error| cannot_route(&error, fabric));
    }
    if routing == Routing::None {
        return Ok((ForwardingTables::new(fabric), None));
    }
    let tables = match section.linear_tables.is_empty() {
        false => linear::decode(&section.linear_tables, fabric)?,
        true => {
            let lanes = given_lanes(file, fabric)?;
            let tables = routing::explicit(fabric, &explicit_tables(section));
            return Ok((
                tables.map_err(|error| refused_in(&at("fabric"), &error))?,
                lanes,
            ));
        }
    };
    Ok((tables, given_lanes(file, fabric)?))
}

fn cannot_route(error: &RoutingError, fabric: &Fabric) -> ScenarioError {
    let refused = refused_in(&at("fabric"), error);
    match (error, planes(fabric)) {
        (RoutingError::Disconnected { .. }, Some(planes)) => refused.with_hint(format!(
            "the switches form {planes} planes that share only adapters: simulate each alone, from a file with the switches and adapter \
             ports of one, such as the output of ibnetdiscover -C ADAPTER -P PORT on a node that is cabled to it"
        )),
        _ => refused,
    }
}

fn planes(fabric: &Fabric) -> Option<usize> {
    let mut parts: IdVec<SwitchId, Option<usize>> = IdVec::filled(None, fabric.switch_count());
    let mut count = 0;
    for first in fabric.switch_ids() {
        if parts[first].is_some() {
            continue;
        }
        parts[first] = Some(count);
        let mut stack = vec![first];
        while let Some(switch) = stack.pop() {
            let ports = fabric.switch(switch).ports();
            for (peer, _) in ports.filter_map(|port| fabric.peer_switch(port)) {
                if parts[peer].replace(count).is_none() {
                    stack.push(peer);
                }
            }
        }
        count += 1;
    }
    let mut part_of: HashMap<Guid, Option<usize>> = HashMap::new();
    let mut hosts = fabric.host_ids();
    let is_shared = hosts.any(|host| {
        let part = parts[fabric.host_attachment(host).0];
        *part_of.entry(fabric.host(host).guid).or_insert(part) != part
    });
    is_shared.then_some(count)
}

/// Leads routes around cut cables. Routes on lanes of their own are computed again, because lanes belong to paths.
fn around_faults(
    file: &ScenarioFile,
    uncut: &Fabric,
    fabric: &Fabric,
) -> Result<(ForwardingTables, Option<PathLanes>), ScenarioError> {
    let (mut tables, lanes) = compute_routes(file, uncut)?;
    if file.fabric.routing() == Routing::None {
        return Ok((tables, lanes));
    }
    let refused = |error: &RoutingError| {
        let hint = match error {
            RoutingError::Disconnected { .. } => {
                "cut another cable, or cut it for a time, with at and for"
            }
            _ => "cut another cable, or set fabric.routing to \"layered-min-hop\"",
        };
        ScenarioError::new(at("fault"), error.to_string()).with_hint(hint)
    };
    if lanes.is_some() {
        if let Some(algorithm) = file.fabric.routing().algorithm() {
            let routed = algorithm.routes(routing_input(file, fabric));
            return routed.map_err(|error| refused(&error));
        }
    }
    routing::lead_around(&mut tables, fabric).map_err(|error| refused(&error))?;
    Ok((tables, lanes))
}

fn explicit_tables(section: &FabricSection) -> Vec<ExplicitTable> {
    let tables = section.tables.iter();
    tables
        .map(|(switch, entries)| ExplicitTable {
            switch: switch.clone(),
            routes: entries
                .iter()
                .map(|(host, port)| (host.clone(), PortNumber::new(*port)))
                .collect(),
        })
        .collect()
}

/// The error of tables that do not lead to their destinations, placed at the file, the entry or the algorithm. `lanes`
/// would keep the paths from deadlock; 1 if unknown.
fn cannot_follow(
    error: &RouteError,
    section: &FabricSection,
    origin: Option<&KeyPath>,
    lanes: u8,
) -> ScenarioError {
    let is_given = section.routing() == Routing::Explicit;
    let linear = origin.is_some() || !section.linear_tables.is_empty();
    let tables = match (is_given, linear) {
        (false, _) => at("fabric.routing"),
        (true, true) => at("fabric.linear-tables"),
        (true, false) => at("fabric.tables"),
    };
    let (key, hint) = match error {
        RouteError::DependencyCycle { .. } => (tables, on_cycle(&section.routing(), lanes)),
        RouteError::NoLane { switch, lane, .. } => match is_given {
            true => (at("fabric.sl-to-vl").key(switch), on_lane(*lane)),
            false => (tables, on_lane(*lane)),
        },
        _ if !is_given => (tables, "choose another fabric.routing".to_owned()),
        RouteError::NoEntry { .. } if linear => {
            let hint = "set fabric.unreachable to \"drop\" to discard and count such packets, or collect the tables again";
            (tables, hint.to_owned())
        }
        _ if linear => (tables, "take tables and fabric at the same time".to_owned()),
        RouteError::NoEntry {
            switch,
            destination,
            ..
        } => {
            let hint =
                format!("add {destination} = 1, or another port, to [fabric.tables.{switch}]");
            (tables.key(switch), hint)
        }
        RouteError::Loop {
            destination, cycle, ..
        } => {
            let hint = "change the port in one of these tables to one that leads closer";
            let first = cycle.first();
            let first = first.map(|switch| tables.key(switch).key(destination));
            (first.unwrap_or(tables), hint.to_owned())
        }
        RouteError::WrongDirection {
            switch,
            destination,
            ..
        } => (
            tables.key(switch).key(destination),
            "name a port that leads towards it".to_owned(),
        ),
        _ => (tables, "correct the tables".to_owned()),
    };
    let key = origin.cloned().unwrap_or(key);
    ScenarioError::new(key, error.to_string()).with_hint(hint)
}

fn on_cycle(routing: &Routing, lanes: u8) -> String {
    let hint = routing.algorithm().and_then(|one| one.deadlock_hint(lanes));
    match hint {
        Some(hint) => {
            format!("{hint}, or fabric.allow-credit-loops to true to study the deadlock")
        }
        None => "set fabric.routing to \"up-down\" or \"layered-min-hop\"; or let OpenSM route it, e.g. silvan route --engine dfsssp with vl.data-vls = 8; or set \
                 fabric.allow-credit-loops to true to study the deadlock"
            .to_owned(),
    }
}
