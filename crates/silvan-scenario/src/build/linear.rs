//! Linear forwarding tables as text: two hexadecimal digits per LID. Service levels of paths likewise: one
//! digit.

use std::collections::BTreeMap;

use silvan_fabric::routing::PathLanes;
use silvan_fabric::{Fabric, ForwardingTables};
use silvan_units::{Lid, PortNumber, Sl, SwitchId};

use super::{at, switch_named};
use crate::error::ScenarioError;

/// What stands for a LID without a route.
const NO_ROUTE: u8 = 255;

/// The tables as text, by switch name.
pub(crate) fn encode(fabric: &Fabric, tables: &ForwardingTables) -> BTreeMap<String, String> {
    let rows = fabric.switch_ids().map(|switch| {
        let lids = 0..=fabric.max_lid().as_u16();
        let ports = lids.map(|lid| {
            let port = tables.get(switch, Lid::new(lid));
            port.map_or(NO_ROUTE, PortNumber::as_u8)
        });
        let text = ports.map(|port| format!("{port:02x}")).collect();
        (fabric.switch(switch).name.clone(), text)
    });
    rows.collect()
}

/// The tables that the text stands for. Where they lead is not looked at.
pub(crate) fn decode(
    rows: &BTreeMap<String, String>,
    fabric: &Fabric,
) -> Result<ForwardingTables, ScenarioError> {
    let mut tables = ForwardingTables::new(fabric);
    for (name, digits) in rows {
        let key = at("fabric.linear-tables").key(name);
        let switch = switch_named(fabric, name, key.clone())?;
        let row = fabric.switch(switch);
        let bad = |message: String| {
            let hint =
                "write two hexadecimal digits with a port for each LID from 0 on, ff for none";
            ScenarioError::new(key.clone(), message).with_hint(hint)
        };
        if digits.len() % 2 != 0 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(bad("these are not pairs of hexadecimal digits".to_owned()));
        }
        for (lid, pair) in (0..=u16::MAX).zip(digits.as_bytes().chunks_exact(2)) {
            let port = pair.iter().fold(0u8, |port, &digit| {
                port << 4 | char::from(digit).to_digit(16).unwrap_or(0) as u8
            });
            let lid = Lid::new(lid);
            if port == NO_ROUTE || lid == row.lid {
                continue;
            }
            if lid > fabric.max_lid() {
                return Err(bad(format!(
                    "there is a port for LID {lid}, which no node has"
                )));
            }
            let port = PortNumber::new(port);
            let is_cabled = row
                .port(port)
                .is_some_and(|port| fabric.ports[port].peer.is_some());
            if !is_cabled {
                return Err(bad(format!(
                    "LID {lid} leaves by port {port}, which has no cable"
                )));
            }
            tables.set(switch, lid, Some(port));
        }
    }
    Ok(tables)
}

/// The service levels of paths as text, by the name of the switch where they start.
pub(crate) fn encode_levels(
    fabric: &Fabric,
    levels: &[(SwitchId, Lid, Sl)],
) -> BTreeMap<String, String> {
    let none = vec!['0'; fabric.max_lid().index() + 1];
    let mut rows: BTreeMap<SwitchId, Vec<char>> = BTreeMap::new();
    for (switch, lid, level) in levels.iter().filter(|(_, _, level)| level.as_u8() > 0) {
        let row = rows.entry(*switch).or_insert_with(|| none.clone());
        row[lid.index()] = char::from_digit(level.as_u8().into(), 16).unwrap_or('0');
    }
    let rows = rows.into_iter();
    rows.map(|(switch, digits)| {
        let name = fabric.switch(switch).name.clone();
        (name, digits.into_iter().collect())
    })
    .collect()
}

/// The lanes that the text stands for; `None` if all paths are on level 0.
pub(crate) fn decode_levels(
    rows: &BTreeMap<String, String>,
    fabric: &Fabric,
) -> Result<Option<PathLanes>, ScenarioError> {
    let mut levels: BTreeMap<SwitchId, Vec<u8>> = BTreeMap::new();
    for (name, digits) in rows {
        let key = at("fabric.path-levels").key(name);
        let switch = switch_named(fabric, name, key.clone())?;
        let bad = |message: String| {
            let hint = "write a hexadecimal digit with a service level for each LID from 0 on";
            ScenarioError::new(key.clone(), message).with_hint(hint)
        };
        let values = digits.chars().map(|digit| digit.to_digit(16));
        let values: Option<Vec<u8>> = values.map(|value| value.map(|value| value as u8)).collect();
        let values = values.ok_or_else(|| bad("these are not hexadecimal digits".to_owned()))?;
        let known = fabric.max_lid().index() + 1;
        let beyond = values.iter().skip(known).position(|level| *level > 0);
        if let Some(beyond) = beyond {
            return Err(bad(format!(
                "there is a level for LID {}, which no node has",
                known + beyond
            )));
        }
        levels.insert(switch, values);
    }
    let is_needed = levels.values().flatten().any(|level| *level > 0);
    Ok(is_needed.then(|| {
        PathLanes::by_level(fabric, |switch, host| {
            let lid = fabric.host(host).lid;
            let level = levels.get(&switch).and_then(|row| row.get(lid.index()));
            level.copied().unwrap_or(0)
        })
    }))
}
