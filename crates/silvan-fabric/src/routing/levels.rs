use std::collections::BTreeMap;

use silvan_core::{HostId, IdVec, SwitchId};

use crate::Fabric;

/// The service level of every path, 0 to 15; hosts with equal levels share a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathServiceLevels {
    rows: IdVec<HostId, u32>,
    levels: Vec<u8>,
}

impl PathServiceLevels {
    /// Levels that all hosts of a switch share: `level_of` gives that of the paths from them to a host.
    pub fn by_switch(fabric: &Fabric, level_of: impl Fn(SwitchId, HostId) -> u8) -> Self {
        let mut of_switch: BTreeMap<SwitchId, u32> = BTreeMap::new();
        let mut rows = Rows::default();
        let numbers = fabric.host_ids().map(|source| {
            let switch = fabric.host_attachment(source).0;
            *of_switch
                .entry(switch)
                .or_insert_with(|| rows.number(fabric.host_ids().map(|to| level_of(switch, to))))
        });
        Self {
            rows: numbers.collect(),
            levels: rows.levels,
        }
    }

    /// Levels of single hosts: `level_of` gives that of the path from one host to another.
    pub fn by_host(fabric: &Fabric, level_of: impl Fn(HostId, HostId) -> u8) -> Self {
        let mut rows = Rows::default();
        let numbers = fabric
            .host_ids()
            .map(|source| rows.number(fabric.host_ids().map(|to| level_of(source, to))));
        Self {
            rows: numbers.collect(),
            levels: rows.levels,
        }
    }

    /// The level of the path from one host to another. Panics if a host is beyond those of the fabric.
    pub fn level(&self, source: HostId, destination: HostId) -> u8 {
        self.row(self.rows[source])[destination.index()]
    }

    /// The row of a host and its equals. Panics for an unknown host.
    pub fn row_of(&self, source: HostId) -> u32 {
        self.rows[source]
    }

    /// Row by row, the levels by destination.
    pub fn levels(&self) -> &[u8] {
        &self.levels
    }

    /// The highest level of any path.
    pub fn highest(&self) -> u8 {
        self.levels.iter().copied().max().unwrap_or(0)
    }

    fn row(&self, number: u32) -> &[u8] {
        let hosts = self.rows.len();
        &self.levels[number as usize * hosts..][..hosts]
    }
}

#[derive(Default)]
struct Rows {
    numbers: BTreeMap<Vec<u8>, u32>,
    levels: Vec<u8>,
}

impl Rows {
    fn number(&mut self, row: impl Iterator<Item = u8>) -> u32 {
        let row: Vec<u8> = row.collect();
        let next = self.numbers.len() as u32;
        if let Some(&number) = self.numbers.get(&row) {
            return number;
        }
        self.levels.extend(&row);
        self.numbers.insert(row, next);
        next
    }
}
