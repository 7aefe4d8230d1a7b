//! Switches in a row, before their ends are cabled.

use silvan_core::Lid;

use super::{host_name, port_number, switch_name};
use crate::{FabricBuilder, FabricError, LinkKind, NodeHandle};

/// Switches in a row, each with the same number of hosts: what a single switch, a chain and a ring have in
/// common.
pub(super) struct Row {
    pub(super) generator: &'static str,
    pub(super) switches: usize,
    pub(super) hosts_per_switch: usize,
    pub(super) trunk_ports: usize,
    pub(super) link: LinkKind,
}

impl Row {
    pub(super) fn bad(&self, problem: String) -> FabricError {
        FabricError::BadParameter {
            generator: self.generator,
            problem,
        }
    }

    pub(super) fn hosts_and_switches(
        &self,
    ) -> Result<(FabricBuilder, Vec<NodeHandle>), FabricError> {
        if self.switches == 0 || self.hosts_per_switch == 0 {
            return Err(self.bad(format!(
                "{} switches with {} hosts each, both numbers must be positive",
                self.switches, self.hosts_per_switch
            )));
        }
        let mut builder = FabricBuilder::new();
        let ports = self.hosts_per_switch.saturating_add(self.trunk_ports);
        let nodes = self
            .hosts_per_switch
            .saturating_add(1)
            .saturating_mul(self.switches);
        if nodes > usize::from(Lid::MAX_UNICAST.as_u16()) {
            return Err(FabricError::LidsExhausted { nodes });
        }
        let switches = (0..self.switches)
            .map(|index| builder.add_switch(switch_name("switch", index, self.switches), ports))
            .collect::<Result<Vec<_>, _>>()?;
        let host_count = self.switches * self.hosts_per_switch;
        for index in 0..host_count {
            let host = builder.add_host(host_name(index, host_count))?;
            let switch = switches[index / self.hosts_per_switch];
            let port = port_number(index % self.hosts_per_switch + 1, self.generator)?;
            builder.connect(host.port(1), switch.port(port), self.link)?;
        }
        Ok((builder, switches))
    }

    pub(super) fn connect_neighbours(
        &self,
        builder: &mut FabricBuilder,
        switches: &[NodeHandle],
    ) -> Result<(), FabricError> {
        switches
            .windows(2)
            .try_for_each(|pair| self.connect(builder, pair[0], pair[1]))
    }

    pub(super) fn connect(
        &self,
        builder: &mut FabricBuilder,
        previous: NodeHandle,
        next: NodeHandle,
    ) -> Result<(), FabricError> {
        let to_previous = port_number(self.hosts_per_switch + 1, self.generator)?;
        let to_next = port_number(self.hosts_per_switch + 2, self.generator)?;
        builder.connect(previous.port(to_next), next.port(to_previous), self.link)
    }
}
