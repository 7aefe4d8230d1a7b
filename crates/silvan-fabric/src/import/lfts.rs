//! Forwarding tables as `dump_lfts`, `dump_fts` and OpenSM write them.
//!
//! ```text
//! Unicast lids [0x0-0x7] of switch DR path slid 0; dlid 0; 0,35 guid 0x0002c90200423e71 (spine):
//! Lid  Out   Destination
//! 0x0001 001 : (Channel Adapter portguid 0x0000000000100001: 'node-1')
//! ```
//!
//! `opensm-lfts.dump` has `#` for `:`, `opensm.fdbs` has `dump_ucast_routes: Switch 0x...` above `0x0001 : 001  : 01 :
//! yes`. `silvan route` adds [levels](crate::import::levels), and [SL to VL tables](crate::import::sl_to_vl) may
//! follow.

use std::collections::{BTreeMap, HashMap, HashSet};

use silvan_core::{Guid, HostId, Lid, NodeId, PortNumber, Sl, SwitchId};

use crate::import::capture::clean;
use crate::import::levels::path_service_levels;
use crate::import::line::lines;
use crate::import::sl_to_vl::{self, Owner, OwnerKind};
use crate::import::{ImportError, NodeKind};
use crate::routing::{PathServiceLevels, SlToVlTables};
use crate::{Fabric, ForwardingTables, Node};

/// Routes and service levels of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedRoutes {
    /// The forwarding tables.
    pub tables: ForwardingTables,
    /// The service levels of paths; 0 where the file says none.
    pub levels: PathServiceLevels,
    /// The SL to VL tables that the file has.
    pub lanes: SlToVlTables,
}

#[derive(Default)]
struct Given {
    tables: Vec<Table>,
    by_guid: BTreeMap<Lid, NodeId>,
    lanes: SlToVlTables,
}

struct Table {
    switch: SwitchId,
    routes: Vec<(Lid, PortNumber, usize)>,
    levels: Vec<(Lid, Option<HostId>, Sl)>,
}

/// Reads forwarding tables, service levels of paths and SL to VL tables of one file.
///
/// Nodes are found by GUID, else by name; a LID's node by the port GUID next to it, or by the switch that routes it to
/// port 0 or straight to a host. Unknown LIDs are left out. A bad line, an unknown node or a port without a cable is an
/// error.
pub fn routes(text: &str, fabric: &Fabric) -> Result<ImportedRoutes, ImportError> {
    let given = parse(&clean(text), fabric)?;
    if given.tables.is_empty() {
        return Err(ImportError::new(
            None,
            "there is no forwarding table in the file",
            "give the output of dump_lfts, or OpenSM's opensm-lfts.dump or opensm.fdbs",
        ));
    }
    let nodes = nodes_of_lids(fabric, &given);
    Ok(ImportedRoutes {
        tables: tables(fabric, &given, &nodes)?,
        levels: levels(fabric, &given, &nodes),
        lanes: given.lanes,
    })
}

fn tables(
    fabric: &Fabric,
    given: &Given,
    nodes: &BTreeMap<Lid, NodeId>,
) -> Result<ForwardingTables, ImportError> {
    let mut tables = ForwardingTables::new(fabric);
    for table in &given.tables {
        let switch = fabric.switch(table.switch);
        for &(lid, port, line) in &table.routes {
            let Some(&node) = nodes.get(&lid) else {
                continue;
            };
            if fabric.node_of_switch(table.switch) == node {
                continue;
            }
            let is_cabled = switch
                .port(port)
                .is_some_and(|port| fabric.ports[port].peer.is_some());
            if !is_cabled {
                return Err(ImportError::new(
                    line,
                    format!(
                        "{:?} sends LID {lid} to port {port}, which has no cable",
                        switch.name
                    ),
                    "take tables and fabric at the same time",
                ));
            }
            tables.set(table.switch, fabric.nodes[node].lid, Some(port));
        }
    }
    Ok(tables)
}

fn levels(fabric: &Fabric, given: &Given, nodes: &BTreeMap<Lid, NodeId>) -> PathServiceLevels {
    let mut of_switch = BTreeMap::new();
    let mut of_host = BTreeMap::new();
    for table in &given.tables {
        for (lid, source, level) in &table.levels {
            let node = nodes.get(lid);
            let Some(host) = node.and_then(|node| fabric.nodes[*node].as_host()) else {
                continue;
            };
            match source {
                Some(source) => of_host.insert((*source, host), *level),
                None => of_switch.insert((table.switch, host), *level),
            };
        }
    }
    let level = |switch, host| of_switch.get(&(switch, host)).map_or(0, |sl| sl.as_u8());
    if of_host.is_empty() {
        return PathServiceLevels::by_switch(fabric, level);
    }
    PathServiceLevels::by_host(fabric, |source, host| {
        let own = of_host.get(&(source, host)).map(|sl| sl.as_u8());
        own.unwrap_or_else(|| level(fabric.host_attachment(source).0, host))
    })
}

#[derive(Clone, Copy)]
enum Section {
    None,
    Table,
    Lanes(Owner),
}

fn parse(text: &str, fabric: &Fabric) -> Result<Given, ImportError> {
    let nodes = nodes_by_guid(fabric);
    let mut given = Given::default();
    let mut section = Section::None;
    for (number, line) in lines(text) {
        let line = line.trim();
        if let Some(heading) = heading(line) {
            let switch = find_switch(fabric, &nodes, heading, number, "a table")?;
            if given.tables.iter().any(|table| table.switch == switch) {
                return Err(ImportError::new(
                    number,
                    format!("a second table for {:?}", fabric.switch(switch).name),
                    "are two files joined? one table per switch",
                ));
            }
            given.tables.push(Table {
                switch,
                routes: Vec::new(),
                levels: Vec::new(),
            });
            section = Section::Table;
        } else if let Some((kind, heading)) = sl_to_vl::heading(line) {
            let what = "SL to VL tables";
            if heading.name == Some(NodeKind::AGGREGATION_NAME) {
                section = Section::None;
                continue;
            }
            section = Section::Lanes(match kind {
                OwnerKind::Switch => {
                    Owner::Switch(find_switch(fabric, &nodes, heading, number, what)?)
                }
                OwnerKind::Host => Owner::Host(find(
                    fabric,
                    &nodes,
                    heading,
                    number,
                    (what, "host"),
                    Node::as_host,
                )?),
            });
        } else if line.starts_with("0x") {
            let Some(route) = route(line) else {
                return Err(ImportError::new(
                    number,
                    format!("{line:?} is not a LID and a port"),
                    "lines look like '0x0001 036 : ...'; is the file cut off?",
                ));
            };
            let table = given.tables.last_mut();
            let table = table.filter(|_| matches!(section, Section::Table));
            let table = table.ok_or_else(|| {
                ImportError::new(
                    number,
                    "a route without a switch before it",
                    "a line such as 'Unicast lids ... of switch ... guid 0x...' opens a table",
                )
            })?;
            if let Some(port) = route.1 {
                table.routes.push((route.0, port, number));
            }
            for (source, level) in path_service_levels(line, number, fabric, table.switch)? {
                table.levels.push((route.0, source, level));
            }
            if let Some(&node) = port_guid(line).and_then(|guid| nodes.get(&guid)) {
                given.by_guid.insert(route.0, node);
            }
        } else if let Section::Lanes(owner) = section {
            sl_to_vl::read_line(&mut given.lanes, fabric, owner, line, number)?;
        }
    }
    Ok(given)
}

pub(crate) struct Heading<'t> {
    pub guid: Option<Guid>,
    pub name: Option<&'t str>,
}

fn heading(line: &str) -> Option<Heading<'_>> {
    let (after, named) = if line.starts_with("Unicast lids") {
        (line.split_once(" guid ")?.1, true)
    } else {
        (line.split_once("dump_ucast_routes: Switch ")?.1, false)
    };
    let guid = after
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok());
    let name = after
        .split_once('(')
        .filter(|_| named)
        .and_then(|(_, rest)| {
            let name = rest.rsplit_once(')')?.0;
            Some(
                name.strip_prefix('\'')
                    .and_then(|name| name.strip_suffix('\''))
                    .unwrap_or(name),
            )
        });
    Some(Heading { guid, name })
}

fn find_switch(
    fabric: &Fabric,
    nodes: &HashMap<Guid, NodeId>,
    heading: Heading<'_>,
    line: usize,
    what: &str,
) -> Result<SwitchId, ImportError> {
    let what = (what, "switch");
    find(fabric, nodes, heading, line, what, Node::as_switch)
}

fn find<T>(
    fabric: &Fabric,
    nodes: &HashMap<Guid, NodeId>,
    heading: Heading<'_>,
    line: usize,
    what: (&str, &str),
    as_kind: impl Fn(&Node) -> Option<T>,
) -> Result<T, ImportError> {
    let by_guid = heading.guid.and_then(|guid| nodes.get(&guid).copied());
    let by_name = || fabric.node_by_name(heading.name?);
    by_guid
        .or_else(by_name)
        .and_then(|node| as_kind(&fabric.nodes[node]))
        .ok_or_else(|| {
            let guid = heading
                .guid
                .map_or_else(|| "?".to_owned(), |guid| guid.to_string());
            let name = heading
                .name
                .map(|name| format!(" ({name})"))
                .unwrap_or_default();
            let (what, kind) = what;
            ImportError::new(
                line,
                format!("{what} for {kind} {guid}{name}, which the fabric does not have"),
                "fabric and tables must be of the same network; GUIDs or names must agree",
            )
        })
}

fn route(line: &str) -> Option<(Lid, Option<PortNumber>)> {
    let mut words = line.split_whitespace().filter(|&word| word != ":");
    let lid: Lid = words.next()?.parse().ok()?;
    let port = words.next()?;
    if port.eq_ignore_ascii_case("UNREACHABLE") {
        return Some((lid, None));
    }
    let port: u8 = port.parse().ok()?;
    Some((lid, (port != 255).then(|| PortNumber::new(port))))
}

fn port_guid(line: &str) -> Option<Guid> {
    let word = line
        .split_once("portguid ")?
        .1
        .split([':', ' ', ')'])
        .next()?;
    word.parse().ok()
}

fn nodes_by_guid(fabric: &Fabric) -> HashMap<Guid, NodeId> {
    let nodes = fabric.nodes.iter_enumerated();
    nodes
        .map(|(id, node)| (fabric.ports[node.first_port].guid, id))
        .collect()
}

fn nodes_of_lids(fabric: &Fabric, given: &Given) -> BTreeMap<Lid, NodeId> {
    let mut nodes = given.by_guid.clone();
    for table in &given.tables {
        let switch = fabric.node_of_switch(table.switch);
        for &(lid, port, _) in &table.routes {
            let node = if port.as_u8() == 0 {
                Some(switch)
            } else {
                let peer = fabric
                    .port(switch, port)
                    .and_then(|port| fabric.ports[port].peer);
                peer.map(|peer| fabric.ports[peer].node)
                    .filter(|&node| fabric.nodes[node].as_host().is_some())
            };
            if let Some(node) = node {
                nodes.entry(lid).or_insert(node);
            }
        }
    }
    // With LMC above 0, the lowest LID is the base LID.
    let mut seen = HashSet::new();
    nodes.retain(|_, node| seen.insert(*node));
    nodes
}
