use silvan_core::PortId;

use crate::packet::NONE;
use crate::plane::{NO_ROUTE, Plane};
use crate::records::{Element, Next};
use crate::table::Table;

/// Most cables of a path: tables that change can send a packet through a loop for a while.
pub(super) const MOST: u64 = 64;

#[derive(Debug)]
pub(super) struct Distances {
    rows: Vec<u32>,
    /// Place of each host in a row. Hosts of one switch share it if they are equally far from all switches.
    columns: Vec<u32>,
    cables: Table<u8>,
}

impl Distances {
    pub fn new(plane: &Plane, leaves: &[u32]) -> Self {
        let is_switch = |&element: &usize| plane.elements[element].table != NONE;
        let switches: Vec<_> = (0..plane.elements.len()).filter(is_switch).collect();
        let mut known: Vec<Vec<u8>> = Vec::new();
        let mut of_leaf = vec![NONE; plane.elements.len()];
        let columns = leaves.iter().enumerate().map(|(host, &leaf)| {
            let cables = |&element: &usize| {
                plane.cables_by_tables(&plane.tables, element as u32, leaf, host as u32) as u8
            };
            let column: Vec<_> = switches.iter().map(cables).collect();
            let place = &mut of_leaf[leaf as usize];
            if known.get(*place as usize) != Some(&column) {
                *place = known.len() as u32;
                known.push(column);
            }
            *place
        });
        let columns: Vec<_> = columns.collect();
        let mut rows = vec![NONE; plane.elements.len()];
        for (index, &element) in switches.iter().enumerate() {
            rows[element] = (index * known.len()) as u32;
        }
        let rows_of = |index: usize| known.iter().map(move |column| column[index]);
        let cables = (0..switches.len()).flat_map(rows_of).collect();
        Self {
            rows,
            columns,
            cables,
        }
    }

    #[inline]
    pub fn get(&self, element: u32, host: u32) -> u64 {
        let entry = self.rows[element as usize] + self.columns[host as usize];
        u64::from(self.cables[entry as usize])
    }

    pub fn bytes(&self) -> usize {
        self.cables.capacity() + (self.rows.capacity() + self.columns.capacity()) * 4
    }
}

impl Plane {
    pub(super) fn step_towards(
        &self,
        tables: &Table<u8>,
        element: u32,
        host: u32,
    ) -> Option<(u32, u32)> {
        let Element { base, table, .. } = self.elements[element as usize];
        let local = tables[(table + host) as usize];
        if local == NO_ROUTE {
            return None;
        }
        let output = base + u32::from(local);
        let link = &self.outs[self.link_port(PortId::new(output as usize))];
        (link.kind == Next::Input).then_some((output, link.next_element))
    }

    /// Cables from a switch to `end`, the switch of a host; on a path without a route, up to the path's end.
    pub(super) fn cables_by_tables(
        &self,
        tables: &Table<u8>,
        mut element: u32,
        end: u32,
        host: u32,
    ) -> u64 {
        let mut cables = 0;
        while element != end && cables <= MOST {
            let Some((_, next)) = self.step_towards(tables, element, host) else {
                break;
            };
            cables += 1;
            element = next;
        }
        cables
    }
}
