use super::attached::{Parameter, attach_hosts};
use super::{port_number, switch_name};
use crate::{FabricBuilder, FabricError, LinkKind, NodeHandle};

pub(super) struct Row {
    pub(super) generator: &'static str,
    pub(super) switches: usize,
    pub(super) hosts_per_switch: usize,
    pub(super) hosts_key: &'static str,
    pub(super) trunk_ports: usize,
    pub(super) link: LinkKind,
}

impl Row {
    pub(super) fn parameter(&self, key: &'static str) -> Parameter {
        Parameter {
            generator: self.generator,
            key,
        }
    }

    pub(super) fn hosts_and_switches(
        &self,
    ) -> Result<(FabricBuilder, Vec<NodeHandle>), FabricError> {
        self.parameter("switches").positive(self.switches)?;
        self.parameter(self.hosts_key)
            .positive(self.hosts_per_switch)?;
        let nodes = self.hosts_per_switch.saturating_add(1);
        let nodes = nodes.saturating_mul(self.switches);
        self.parameter(self.hosts_key).nodes(Some(nodes))?;
        let ports = self.hosts_per_switch + self.trunk_ports;
        let mut builder = FabricBuilder::new();
        let switches = (0..self.switches)
            .map(|index| builder.add_switch(switch_name("switch", index, self.switches), ports))
            .collect::<Result<Vec<_>, _>>()?;
        attach_hosts(
            &mut builder,
            self.generator,
            &switches,
            self.hosts_per_switch,
            self.link,
        )?;
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
