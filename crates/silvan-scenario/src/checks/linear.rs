//! Linear forwarding tables as text: two hexadecimal digits per LID.

use std::collections::BTreeMap;

use silvan_core::{Lid, PortNumber};
use silvan_fabric::{Fabric, ForwardingTables};

use super::{at, switch_named};
use crate::ScenarioError;

const NO_ROUTE: u8 = 255;

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
