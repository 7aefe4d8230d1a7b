//! Forwarding tables as `dump_lfts`, `dump_fts` and OpenSM write them.
//!
//! ```text
//! Unicast lids [0x0-0x7] of switch DR path slid 0; dlid 0; 0,35 guid 0x0002c90200423e71 (spine):
//!   Lid  Out   Destination
//!        Port     Info
//! 0x0001 001 : (Channel Adapter portguid 0x0000000000100001: 'node-1')
//! ```
//!
//! `silvan route` puts ` sl 1` behind what is in parentheses, where the subnet manager gives paths from
//! the hosts of the switch a service level other than 0.
//!
//! `opensm-lfts.dump` has `#` for `:`, `opensm.fdbs` has `dump_ucast_routes: Switch 0x...` above
//! `0x0001 : 001  : 01   : yes`.

use std::collections::{BTreeMap, HashMap, HashSet};

use silvan_fabric::{Fabric, ForwardingTables};
use silvan_units::{Guid, Lid, NodeId, PortNumber, Sl, SwitchId};

use crate::ImportError;
use crate::line::lines;

/// The table of one switch in the file.
struct Table {
    switch: SwitchId,
    /// LID in the file, port, line.
    routes: Vec<(Lid, PortNumber, usize)>,
    /// LID in the file, service level.
    levels: Vec<(Lid, Sl)>,
}

/// Reads forwarding tables for a fabric.
///
/// Switches are found by GUID, else by name. LIDs may be others than those of the fabric (a subnet
/// manager gave them): the node that each stands for is found by the port GUID beside it, by the
/// switch that routes it to its own port 0, or by the switch that sends it straight to a host. LIDs
/// that stand for no node of the fabric are left out; whether what remains connects all hosts is for
/// [`check`](silvan_fabric::check::check) to say.
///
/// # Errors
///
/// If a line cannot be understood, a table is for no switch of the fabric, or a port has no cable.
pub fn tables(text: &str, fabric: &Fabric) -> Result<ForwardingTables, ImportError> {
    let (given, by_guid) = parse(text, fabric)?;
    if given.is_empty() {
        return Err(ImportError::new(
            None,
            "there is no forwarding table in the file",
            "give the output of dump_lfts, or OpenSM's opensm-lfts.dump or opensm.fdbs",
        ));
    }
    let nodes = nodes_of_lids(fabric, &given, by_guid);
    let mut tables = ForwardingTables::new(fabric);
    for table in &given {
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

/// Reads the service levels of paths that stand in a file of forwarding tables, as far as they are not
/// 0: the switch of the source, the base LID of the destination in the fabric, and the level.
///
/// # Errors
///
/// As [`tables`], or if a level is none.
pub fn path_levels(text: &str, fabric: &Fabric) -> Result<Vec<(SwitchId, Lid, Sl)>, ImportError> {
    let (given, by_guid) = parse(text, fabric)?;
    let nodes = nodes_of_lids(fabric, &given, by_guid);
    let levels = given.iter().flat_map(|table| {
        let levels = table.levels.iter();
        levels.map(|&(lid, level)| (table.switch, lid, level))
    });
    let levels = levels.filter_map(|(switch, lid, level)| {
        let node = nodes.get(&lid)?;
        Some((switch, fabric.nodes[*node].lid, level))
    });
    Ok(levels.collect())
}

/// The tables, and the nodes whose port GUIDs stand beside LIDs.
fn parse(text: &str, fabric: &Fabric) -> Result<(Vec<Table>, BTreeMap<Lid, NodeId>), ImportError> {
    let nodes = nodes_by_guid(fabric);
    let mut given: Vec<Table> = Vec::new();
    let mut by_guid = BTreeMap::new();
    for (number, line) in lines(text) {
        let line = line.trim();
        if let Some(heading) = heading(line) {
            let switch = find_switch(fabric, &nodes, heading, number)?;
            if given.iter().any(|table| table.switch == switch) {
                return Err(ImportError::new(
                    number,
                    format!("a second table for {:?}", fabric.switch(switch).name),
                    "are two files joined? one table per switch",
                ));
            }
            given.push(Table {
                switch,
                routes: Vec::new(),
                levels: Vec::new(),
            });
        } else if line.starts_with("0x") {
            let Some(route) = route(line) else {
                return Err(ImportError::new(
                    number,
                    format!("{line:?} is not a LID and a port"),
                    "lines look like '0x0001 036 : ...'; is the file cut off?",
                ));
            };
            let table = given.last_mut().ok_or_else(|| {
                ImportError::new(
                    number,
                    "a route without a switch before it",
                    "a line such as 'Unicast lids ... of switch ... guid 0x...' opens a table",
                )
            })?;
            if let Some(port) = route.1 {
                table.routes.push((route.0, port, number));
            }
            if let Some(level) = level(line, number)? {
                table.levels.push((route.0, level));
            }
            if let Some(&node) = port_guid(line).and_then(|guid| nodes.get(&guid)) {
                by_guid.insert(route.0, node);
            }
        }
    }
    Ok((given, by_guid))
}

/// What a heading calls its switch.
struct Heading<'t> {
    guid: Option<Guid>,
    name: Option<&'t str>,
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
) -> Result<SwitchId, ImportError> {
    let by_guid = heading.guid.and_then(|guid| nodes.get(&guid).copied());
    let by_name = || fabric.node_by_name(heading.name?);
    by_guid
        .or_else(by_name)
        .and_then(|node| fabric.nodes[node].as_switch())
        .ok_or_else(|| {
            let guid = heading
                .guid
                .map_or_else(|| "?".to_owned(), |guid| guid.to_string());
            let name = heading
                .name
                .map(|name| format!(" ({name})"))
                .unwrap_or_default();
            ImportError::new(
                line,
                format!("a table for switch {guid}{name}, which the fabric does not have"),
                "fabric and tables must be of the same network; GUIDs or names must agree",
            )
        })
}

/// LID and port; no port if the LID is out of reach.
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

/// The service level behind the parentheses of a route; `None` without one. Names may look like one, but
/// stand inside.
fn level(line: &str, number: usize) -> Result<Option<Sl>, ImportError> {
    let behind = line.split_once(" : (").and_then(|(_, rest)| {
        let (_, behind) = rest.rsplit_once("')")?;
        behind.trim_start().strip_prefix("sl")
    });
    let Some(word) = behind.map(str::trim) else {
        return Ok(None);
    };
    let level = word.parse().ok().and_then(|level| Sl::try_new(level).ok());
    level.map(Some).ok_or_else(|| {
        ImportError::new(
            number,
            format!("{word:?} is not a service level"),
            "they are 0 to 15; is the file cut off?",
        )
    })
}

fn port_guid(line: &str) -> Option<Guid> {
    let word = line
        .split_once("portguid ")?
        .1
        .split([':', ' ', ')'])
        .next()?;
    word.parse().ok()
}

/// Nodes by the GUID of their port; that of a switch is its own.
fn nodes_by_guid(fabric: &Fabric) -> HashMap<Guid, NodeId> {
    let nodes = fabric.nodes.iter_enumerated();
    nodes
        .map(|(id, node)| (fabric.ports[node.first_port].guid, id))
        .collect()
}

/// The node that each LID of the file stands for, as far as it can be found.
fn nodes_of_lids(
    fabric: &Fabric,
    given: &[Table],
    mut nodes: BTreeMap<Lid, NodeId>,
) -> BTreeMap<Lid, NodeId> {
    for table in given {
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
    // With LMC above 0 a node has several LIDs; the base LID is the lowest.
    let mut seen = HashSet::new();
    nodes.retain(|_, node| seen.insert(*node));
    nodes
}
