//! The hosts of programs: those that they name, or a number of those that are left.

use silvan_core::HostId;
use silvan_fabric::Fabric;
use silvan_workload::programs::Placement;
use silvan_workload::programs::section::ProgramEntry;
use silvan_workload::traffic::rng::{Purpose, shuffle, stream};
use silvan_workload::traffic::{HostRef, Selection};

use super::programs::hosts;
use crate::{KeyPath, ScenarioError};

/// Hosts that programs have not taken.
pub(super) struct Places<'a> {
    fabric: &'a Fabric,
    /// By host, the program that has it, if any.
    taken: Vec<Option<usize>>,
}

impl<'a> Places<'a> {
    /// Notes the hosts that programs name.
    pub(super) fn new(fabric: &'a Fabric, entries: &[ProgramEntry]) -> Self {
        let mut taken = vec![None; fabric.host_count()];
        for (program, entry) in entries.iter().enumerate() {
            let named: Vec<HostId> = match &entry.hosts {
                Selection::All => fabric.host_ids().collect(),
                Selection::Random(_) => Vec::new(),
                Selection::Given(list) => {
                    list.iter().filter_map(|host| find(fabric, host)).collect()
                }
            };
            for host in named {
                taken[host.index()].get_or_insert(program);
            }
        }
        Self { fabric, taken }
    }

    /// The hosts of a program in the order of its ranks.
    pub(super) fn take(
        &mut self,
        entry: &ProgramEntry,
        program: usize,
        key: &KeyPath,
    ) -> Result<Vec<HostId>, ScenarioError> {
        let mut chosen = match entry.hosts {
            Selection::Random(_) => self
                .fabric
                .host_ids()
                .filter(|host| self.taken[host.index()].is_none())
                .collect(),
            _ => hosts(self.fabric, &entry.hosts, entry.ranks_per_host, key)?,
        };
        check_distinct(self.fabric, &chosen, key)?;
        match entry.placement {
            Placement::Block | Placement::Cyclic => {}
            Placement::Random => {
                let purpose = Purpose::Named("programs.placement", program);
                shuffle(&mut stream(entry.placement_seed, purpose, 0), &mut chosen);
            }
            Placement::Rail => sort_by_rail(&mut chosen, entry, key)?,
        }
        if let Selection::Random(count) = entry.hosts {
            let (count, free) = (count as usize, chosen.len());
            if count > free || count == 0 {
                let message = format!("{count} hosts wanted, {free} that no other program uses");
                let error = ScenarioError::new(key.key("hosts"), message);
                return Err(error.with_hint(
                    "ask for 1 to that many; \"all\" of another program uses every host",
                ));
            }
            chosen.truncate(count);
            for host in &chosen {
                self.taken[host.index()] = Some(program);
            }
            let selection = Selection::Given(chosen.iter().copied().map(HostRef::Id).collect());
            hosts(self.fabric, &selection, entry.ranks_per_host, key)?;
        }
        Ok(chosen)
    }
}

fn find(fabric: &Fabric, host: &HostRef) -> Option<HostId> {
    match host {
        HostRef::Id(host) => Some(*host),
        HostRef::Name(name) => {
            let node = fabric.node_by_name(name)?;
            fabric.nodes[node].as_host()
        }
    }
}

/// Two ranks share a host by `ranks-per-host` only.
fn check_distinct(fabric: &Fabric, hosts: &[HostId], key: &KeyPath) -> Result<(), ScenarioError> {
    let mut seen = vec![false; fabric.host_count()];
    for (place, host) in hosts.iter().enumerate() {
        if std::mem::replace(&mut seen[host.index()], true) {
            let name = &fabric.host(*host).name;
            let message = format!("two ranks on one host: {name:?} is in the list twice");
            let error = ScenarioError::new(key.key("hosts").index(place), message);
            return Err(error.with_hint(
                "name each host once, and set ranks-per-host to put several ranks on it",
            ));
        }
    }
    Ok(())
}

/// Puts the first hosts of all servers in front, then the second ones, and so on.
fn sort_by_rail(
    hosts: &mut [HostId],
    entry: &ProgramEntry,
    key: &KeyPath,
) -> Result<(), ScenarioError> {
    let server = entry.server_ranks.unwrap_or_default() / entry.ranks_per_host.max(1);
    if server < 2 {
        let message = "the placement by rail needs servers of several hosts";
        let error = ScenarioError::new(key.key("server-ranks"), message);
        return Err(error.with_hint("write the number of ranks of a server, e.g. 8"));
    }
    hosts.sort_by_key(|host| (host.index() % server as usize, host.index()));
    Ok(())
}
