//! Service levels of paths and SL to VL tables, as text in hexadecimal digits: one for each LID or service level.

use std::collections::BTreeMap;

use silvan_core::{HostId, PortNumber, Sl, SwitchId};
use silvan_fabric::routing::{
    ParsePortNumbersError, PathLanes, PathServiceLevels, PortNumbers, SlToVlTables, Vls,
};
use silvan_fabric::{Fabric, Node, NodeKind};

use super::classes::asked_for;
use super::engine::sl_to_vl;
use super::{at, node_named};
use crate::parsed::{FabricSection, ScenarioFile};
use crate::{KeyPath, ScenarioError};

/// Data lanes that a port can have (IBA volume 1, section 7.6.1).
pub(super) const MOST_LANES: u8 = 15;

/// The lanes that levels of paths and SL to VL tables name; malformed text is refused elsewhere.
pub(crate) fn lanes_named(section: &FabricSection) -> u8 {
    let levels = section.path_sl.values();
    let lines = section.sl_to_vl.values().flatten();
    let lanes = lines.filter_map(|line| line.split_whitespace().last());
    let highest = match section.sl_to_vl.is_empty() {
        true => levels
            .filter_map(|digits| hexadecimal(digits)?.into_iter().max())
            .max(),
        false => lanes
            .filter_map(hexadecimal)
            .flatten()
            .filter(|lane| *lane < MOST_LANES)
            .max(),
    };
    highest.map_or(1, |highest| (highest + 1).min(MOST_LANES))
}

/// `None` if packets keep their lanes.
pub(super) fn given_lanes(
    file: &ScenarioFile,
    fabric: &Fabric,
) -> Result<Option<PathLanes>, ScenarioError> {
    let levels = decode_levels(&file.fabric.path_sl, fabric)?;
    let tables = decode_tables(&file.fabric.sl_to_vl, fabric)?;
    if tables.is_empty() {
        let is_needed = levels.highest() > 0;
        return Ok(is_needed.then(|| PathLanes::by_level(fabric, levels)));
    }
    let own = asked_for(file).map(|(_, sl)| sl);
    let own: Vec<Sl> = own.filter(|sl| sl.as_u8() > 0).collect();
    let (other, data_vls) = (sl_to_vl(file)?, file.vl.lanes());
    check_hosts(&tables, fabric, data_vls, &own)?;
    let lanes = PathLanes::by_tables(fabric, levels, &tables, &other, data_vls, own);
    Ok(Some(lanes))
}

/// The levels as text, by the switch where paths start, and by each host whose levels differ.
pub(super) fn encode_levels(
    fabric: &Fabric,
    levels: &PathServiceLevels,
) -> BTreeMap<String, String> {
    let mut rows = BTreeMap::new();
    if levels.highest() == 0 {
        return rows;
    }
    let row = |sources: &[HostId]| {
        let mut digits = vec!['0'; fabric.max_lid().index() + 1];
        for host in fabric.host_ids() {
            let source = sources.iter().find(|source| **source != host);
            let level = source.map_or(0, |source| levels.level(*source, host));
            digits[fabric.host(host).lid.index()] = digit(level);
        }
        digits
    };
    let mut hosts_of: BTreeMap<SwitchId, Vec<HostId>> = BTreeMap::new();
    for host in fabric.host_ids() {
        let switch = fabric.host_attachment(host).0;
        hosts_of.entry(switch).or_default().push(host);
    }
    let mut add = |node: &Node, digits: &[char]| {
        rows.insert(node.name.clone(), digits.iter().collect::<String>());
    };
    for (switch, hosts) in hosts_of {
        let common = row(&hosts);
        if common.iter().any(|level| *level != '0') {
            add(fabric.switch(switch), &common);
        }
        let first = hosts.first().map(|host| levels.row_of(*host));
        if hosts.iter().all(|host| Some(levels.row_of(*host)) == first) {
            continue;
        }
        for host in hosts {
            let mut own = row(&[host]);
            let itself = fabric.host(host).lid.index();
            own[itself] = common[itself];
            if own != common {
                add(fabric.host(host), &own);
            }
        }
    }
    rows
}

fn decode_levels(
    rows: &BTreeMap<String, String>,
    fabric: &Fabric,
) -> Result<PathServiceLevels, ScenarioError> {
    let mut of_switch: BTreeMap<SwitchId, Vec<u8>> = BTreeMap::new();
    let mut of_host: BTreeMap<HostId, Vec<u8>> = BTreeMap::new();
    for (name, digits) in rows {
        let key = at("fabric.path-sl").key(name);
        let kind = source_named(fabric, name, key.clone())?;
        let bad = |message: String| {
            let hint = "write a hexadecimal digit with a service level for each LID from 0 on";
            ScenarioError::new(key.clone(), message).with_hint(hint)
        };
        let values = hexadecimal(digits);
        let values = values.ok_or_else(|| bad("these are not hexadecimal digits".to_owned()))?;
        let known = fabric.max_lid().index() + 1;
        let beyond = values.iter().skip(known).position(|level| *level > 0);
        if let Some(beyond) = beyond {
            return Err(bad(format!(
                "there is a level for LID {}, which no node has",
                known + beyond
            )));
        }
        match kind {
            NodeKind::Switch(switch) => of_switch.insert(switch, values),
            NodeKind::Host(host) => of_host.insert(host, values),
        };
    }
    let level = |row: Option<&Vec<u8>>, to: HostId| {
        let level = row.and_then(|row| row.get(fabric.host(to).lid.index()));
        level.copied().unwrap_or(0)
    };
    if of_host.is_empty() {
        return Ok(PathServiceLevels::by_switch(fabric, |switch, to| {
            level(of_switch.get(&switch), to)
        }));
    }
    Ok(PathServiceLevels::by_host(fabric, |source, to| {
        let switch = fabric.host_attachment(source).0;
        level(of_host.get(&source).or(of_switch.get(&switch)), to)
    }))
}

pub(super) fn encode_tables(
    fabric: &Fabric,
    tables: &SlToVlTables,
) -> BTreeMap<String, Vec<String>> {
    let digits = |vls: &Vls| vls.map(digit).iter().collect::<String>();
    let switches = tables.switches().map(|switch| {
        let groups = tables.groups(switch);
        let lines = groups
            .iter()
            .map(|group| format!("{} {} {}", group.inputs, group.outputs, digits(&group.vls)));
        (fabric.switch(switch).name.clone(), lines.collect())
    });
    let hosts = tables
        .hosts()
        .map(|(host, vls)| (fabric.host(host).name.clone(), vec![digits(vls)]));
    switches.chain(hosts).collect()
}

fn decode_tables(
    rows: &BTreeMap<String, Vec<String>>,
    fabric: &Fabric,
) -> Result<SlToVlTables, ScenarioError> {
    let mut tables = SlToVlTables::default();
    for (name, lines) in rows {
        let key = at("fabric.sl-to-vl").key(name);
        let kind = source_named(fabric, name, key.clone())?;
        for (index, line) in lines.iter().enumerate() {
            let key = key.index(index);
            match kind {
                NodeKind::Switch(switch) => {
                    decode_pairs(&mut tables, fabric, switch, line, &key)?;
                }
                NodeKind::Host(host) => {
                    let vls = lanes_of(line).ok_or_else(|| {
                        let message = "these are not 16 hexadecimal digits";
                        let hint =
                            "write a VL for each service level from 0 on, e.g. 0000000011111111";
                        ScenarioError::new(key.clone(), message).with_hint(hint)
                    })?;
                    if tables.set_host(host, vls).is_some() {
                        let message = "a host has one table";
                        return Err(ScenarioError::new(key, message).with_hint("keep one of them"));
                    }
                }
            }
        }
    }
    Ok(tables)
}

fn decode_pairs(
    tables: &mut SlToVlTables,
    fabric: &Fabric,
    switch: SwitchId,
    line: &str,
    key: &KeyPath,
) -> Result<(), ScenarioError> {
    let bad = |message: String| {
        let hint = "write input ports, output ports, and a VL for each service level from 0 on, e.g. \
                    \"1-4,6 5 0101010145454545\"";
        ScenarioError::new(key.clone(), message).with_hint(hint)
    };
    let [inputs, outputs, vls] = line.split_whitespace().collect::<Vec<&str>>()[..] else {
        return Err(bad("these are not three words".to_owned()));
    };
    let ports = |text: &str| {
        let ports: Result<PortNumbers, ParsePortNumbersError> = text.parse();
        ports.map_err(|error| bad(error.to_string()))
    };
    let (inputs, outputs) = (ports(inputs)?, ports(outputs)?);
    let vls = lanes_of(vls);
    let vls = vls.ok_or_else(|| bad("the lanes are not 16 hexadecimal digits".to_owned()))?;
    let node = fabric.switch(switch);
    let missing = |port: &PortNumber| node.port(*port).is_none();
    if let Some(port) = inputs.iter().chain(outputs.iter()).find(missing) {
        let last = node.port_count;
        return Err(bad(format!("there is no port {port}, only 1 to {last}")));
    }
    for input in inputs.iter() {
        for output in outputs.iter() {
            if tables.set_switch(switch, input, output, vls).is_some() {
                return Err(bad(format!(
                    "there are lanes from port {input} to port {output} already"
                )));
            }
        }
    }
    Ok(())
}

fn check_hosts(
    tables: &SlToVlTables,
    fabric: &Fabric,
    data_vls: u8,
    own: &[Sl],
) -> Result<(), ScenarioError> {
    for (host, vls) in tables.hosts() {
        let levels = [Sl::ZERO].into_iter().chain(own.iter().copied());
        let mut lanes = levels.map(|sl| (sl, vls[sl.index()]));
        if let Some((sl, vl)) = lanes.find(|(_, vl)| *vl >= data_vls) {
            let key = at("fabric.sl-to-vl").key(&fabric.host(host).name);
            let message = format!(
                "service level {sl} is mapped to VL {vl}, and there are {data_vls} data VLs"
            );
            let hint = on_lane(vl);
            return Err(ScenarioError::new(key, message).with_hint(hint));
        }
    }
    Ok(())
}

pub(super) fn on_lane(lane: u8) -> String {
    if lane < MOST_LANES {
        return format!("set vl.data-vls to {}", lane + 1);
    }
    "VL 15 carries no data: use another service level, or change the table".to_owned()
}

fn source_named(fabric: &Fabric, name: &str, key: KeyPath) -> Result<NodeKind, ScenarioError> {
    node_named(fabric, name, key, "switch or host", |node| Some(node.kind))
}

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let values = digits.chars().map(|digit| digit.to_digit(16));
    values.map(|value| value.map(|value| value as u8)).collect()
}

fn lanes_of(digits: &str) -> Option<Vls> {
    hexadecimal(digits)?.try_into().ok()
}

fn digit(value: u8) -> char {
    char::from_digit(value.into(), 16).unwrap_or('0')
}
