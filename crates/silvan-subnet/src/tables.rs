//! Forwarding tables, and the LIDs that follow from them.

use std::collections::BTreeMap;

use silvan_core::{Guid, Lid, PortNumber};
use silvan_mad::smp::{LinearForwardingTable, PortInfo, SwitchInfo};

use crate::client::{Client, Query};
use crate::discovery::Subnet;
use crate::transport::{Transport, TransportError};

const BLOCK: u16 = 64;

/// The forwarding table of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchTable {
    /// The output port of each LID from 0 on, in whole blocks.
    pub ports: Vec<PortNumber>,
    /// All blocks were read.
    pub is_complete: bool,
}

/// Reads forwarding tables by NodeGUID; a silent switch has none.
pub fn read_tables<T: Transport>(
    client: &mut Client<T>,
    subnet: &Subnet,
) -> Result<BTreeMap<Guid, SwitchTable>, TransportError> {
    let switches: Vec<(Guid, Lid)> = subnet
        .switches
        .iter()
        .filter_map(|switch| Some((switch.guid, switch.lid?)))
        .collect();
    let queries: Vec<Query> = (0..)
        .zip(&switches)
        .map(|(node, (_, lid))| Query::subnet_get(node, *lid, SwitchInfo::default(), 0))
        .collect();
    let mut queries_of_blocks = Vec::new();
    let mut meanings = Vec::new();
    let mut tables: BTreeMap<Guid, SwitchTable> = BTreeMap::new();
    for ((node, (guid, lid)), result) in (0..).zip(&switches).zip(client.ask(&queries)?) {
        let Ok(answer) = result else { continue };
        let top = SwitchInfo::parse(&answer.data()).linear_fdb_top.min(0xbfff);
        let blocks = top / BLOCK + 1;
        tables.insert(
            *guid,
            SwitchTable {
                ports: vec![LinearForwardingTable::NO_ROUTE; usize::from(blocks * BLOCK)],
                is_complete: true,
            },
        );
        for block in 0..blocks {
            let table = LinearForwardingTable {
                ports: [LinearForwardingTable::NO_ROUTE; BLOCK as usize],
            };
            queries_of_blocks.push(Query::subnet_get(node, *lid, table, u32::from(block)));
            meanings.push((*guid, usize::from(block * BLOCK)));
        }
    }
    for ((guid, first), result) in meanings.into_iter().zip(client.ask(&queries_of_blocks)?) {
        let Some(table) = tables.get_mut(&guid) else {
            continue;
        };
        match result {
            Ok(answer) => {
                let block = LinearForwardingTable::parse(&answer.data());
                table.ports[first..first + usize::from(BLOCK)].copy_from_slice(&block.ports);
            }
            Err(_) => table.is_complete = false,
        }
    }
    Ok(tables)
}

/// LIDs of ports of adapters and routers, by the switch ports that they are cabled to.
pub type HostLids = BTreeMap<(Guid, PortNumber), Lid>;

/// Finds each host's LID: the lowest that its switch sends to it, else the answer to a directed route.
pub fn host_lids<T: Transport>(
    client: &mut Client<T>,
    subnet: &Subnet,
    tables: &BTreeMap<Guid, SwitchTable>,
) -> Result<HostLids, TransportError> {
    let paths: BTreeMap<Guid, &[u8]> = subnet
        .switches
        .iter()
        .map(|switch| (switch.guid, &switch.path[..]))
        .collect();
    let mut lids = HostLids::new();
    let mut asked = Vec::new();
    let mut queries = Vec::new();
    for adapter in &subnet.adapters {
        let (switch, number) = adapter.switch;
        let table = tables.get(&switch);
        if let Some(lid) = table.and_then(|table| lid_behind(table, number.as_u8())) {
            lids.insert(adapter.switch, lid);
            continue;
        }
        let mut path = paths[&switch].to_vec();
        path.push(number.as_u8());
        let port = u32::from(adapter.number.as_u8());
        let node = asked.len() as u32;
        if let Some(query) = Query::directed(node, &path, PortInfo::default(), port) {
            asked.push(adapter.switch);
            queries.push(query);
        }
    }
    for (location, result) in asked.into_iter().zip(client.ask(&queries)?) {
        let lid = result.map(|answer| PortInfo::parse(&answer.data()).lid);
        if let Some(lid) = lid.ok().filter(|lid| lid.is_unicast()) {
            lids.insert(location, lid);
        }
    }
    Ok(lids)
}

fn lid_behind(table: &SwitchTable, number: u8) -> Option<Lid> {
    let first = table.ports.iter().position(|port| port.as_u8() == number)?;
    Some(Lid::new(first as u16)).filter(|lid| lid.is_unicast())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use std::collections::VecDeque;

    use silvan_core::{DeviceId, MonotonicTime, Span};
    use silvan_mad::smp::{Smp, SmpRoute};
    use silvan_mad::{Body, Mad, Method, Packet};

    use super::*;
    use crate::client::Limits;
    use crate::discovery::{AdapterPort, LocalPort, Switch};
    use crate::transport::{Incoming, Outgoing};

    /// Hosts behind a switch that only directed routes reach: their LIDs, by the switch's port. LID 0 does not answer.
    struct Hosts {
        lids: BTreeMap<u8, u16>,
        arrived: VecDeque<Incoming>,
        now: MonotonicTime,
        sent: usize,
    }

    impl Transport for Hosts {
        fn now(&mut self) -> MonotonicTime {
            self.now
        }

        fn unix_time(&mut self) -> u64 {
            0
        }

        fn send(&mut self, outgoing: Outgoing<'_>) -> Result<(), TransportError> {
            self.sent += 1;
            let asked = Packet::new(*outgoing.mad);
            let Ok(Mad {
                body:
                    Body::Smp(Smp {
                        route: SmpRoute::Directed(route),
                        ..
                    }),
                ..
            }) = Mad::parse(&asked)
            else {
                return Ok(());
            };
            let path = &route.initial_path[1..=usize::from(asked.hop_count())];
            let lid = self.lids.get(path.last().unwrap()).filter(|lid| **lid > 0);
            if let (Some(&lid), [1, _]) = (lid, path) {
                let info = PortInfo {
                    lid: Lid::new(lid),
                    ..PortInfo::default()
                };
                let modifier = asked.attribute_modifier();
                let answer = Query::directed(0, path, info, modifier).unwrap();
                let mut packet = Packet::new(answer.mad);
                packet.set_method(Method::GET_RESPONSE);
                packet.set_transaction_id(asked.transaction_id());
                self.arrived.push_back(Incoming {
                    source: outgoing.destination,
                    unanswered: false,
                    mad: *packet.bytes(),
                });
            }
            Ok(())
        }

        fn receive(&mut self, limit: Span) -> Result<Option<Incoming>, TransportError> {
            let arrived = self.arrived.pop_front();
            if arrived.is_none() {
                self.now = self.now.saturating_add(limit);
            }
            Ok(arrived)
        }

        fn pause(&mut self, span: Span) {
            self.now = self.now.saturating_add(span);
        }
    }

    /// Oracle: the hosts' LIDs, which leave out 17, and a table, which has two LIDs for a port.
    #[test]
    fn hosts_have_the_lids_of_a_table_or_their_own_and_none_that_is_invented() {
        let switch = |guid: u64, path: &[u8]| Switch {
            guid: Guid::new(guid),
            lid: Some(Lid::new(guid as u16)),
            device: DeviceId::EMULATED,
            name: format!("switch {guid}"),
            path: path.to_vec(),
            ports: Vec::new(),
        };
        let adapter = |switch: u64, port: u8| AdapterPort {
            switch: (Guid::new(switch), PortNumber::new(port)),
            guid: Guid::new(0x100 * switch + u64::from(port)),
            port_guid: Guid::new(0x1000 * switch + u64::from(port)),
            number: PortNumber::new(1),
            device: DeviceId::EMULATED,
            is_router: false,
        };
        let subnet = Subnet {
            local: LocalPort {
                lid: Lid::new(9),
                sm_lid: Lid::new(1),
                is_active: true,
                bytes_per_second: 1_000_000_000,
            },
            switches: vec![switch(2, &[1]), switch(3, &[1, 7])],
            hosts: BTreeMap::new(),
            adapters: vec![adapter(2, 2), adapter(2, 3), adapter(2, 4), adapter(3, 1)],
            is_complete: true,
        };
        let mut ports = vec![LinearForwardingTable::NO_ROUTE; 64];
        (ports[10], ports[11]) = (PortNumber::new(1), PortNumber::new(1));
        let table = SwitchTable {
            ports,
            is_complete: true,
        };
        let hosts = Hosts {
            lids: BTreeMap::from([(2, 18), (3, 19), (4, 0)]),
            arrived: VecDeque::new(),
            now: MonotonicTime::ZERO,
            sent: 0,
        };
        let mut client = Client::new(hosts, Limits::DEFAULT);
        let tables = BTreeMap::from([(Guid::new(3), table)]);
        let lids = host_lids(&mut client, &subnet, &tables).unwrap();
        let at = |switch: u64, port| (Guid::new(switch), PortNumber::new(port));
        let wanted = [(at(2, 2), 18), (at(2, 3), 19), (at(3, 1), 10)];
        assert_eq!(lids, wanted.map(|(at, lid)| (at, Lid::new(lid))).into());
        // One query each for 18 and 19, and all attempts for the silent host.
        assert_eq!(
            client.transport().sent,
            2 + 1 + Limits::DEFAULT.retries as usize
        );
    }
}
