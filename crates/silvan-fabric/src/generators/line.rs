//! Switches in a row or a ring, each with the same number of hosts.

use silvan_core::Lid;

use super::{host_name, port_number, switch_name};
use crate::{Fabric, FabricBuilder, FabricError, LinkKind, NodeHandle};

/// One switch with hosts on all its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SingleSwitch {
    /// Number of hosts, which is the number of ports.
    pub hosts: usize,
    /// Every cable.
    pub link: LinkKind,
}

impl SingleSwitch {
    /// Builds the fabric.
    ///
    /// # Errors
    ///
    /// If the number of hosts is not 1 to 254.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        let row = Row {
            generator: "single-switch",
            switches: 1,
            hosts_per_switch: self.hosts,
            trunk_ports: 0,
            link: self.link,
        };
        row.hosts_and_switches()?.0.build()
    }
}

/// A chain of switches, the parking-lot fabric: the flows of every switch join those that come down
/// the chain.
///
/// Hosts are on ports 1 to n, the previous switch on port n + 1, the next one on port n + 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    /// Number of switches.
    pub switches: usize,
    /// Number of hosts on each switch.
    pub hosts_per_switch: usize,
    /// Every cable.
    pub link: LinkKind,
}

impl Chain {
    /// Builds the fabric.
    ///
    /// # Errors
    ///
    /// If a number is zero, or a switch would have more than 254 ports.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        let row = Row {
            generator: "chain",
            switches: self.switches,
            hosts_per_switch: self.hosts_per_switch,
            trunk_ports: 2,
            link: self.link,
        };
        let (mut builder, switches) = row.hosts_and_switches()?;
        row.connect_neighbours(&mut builder, &switches)?;
        builder.build()
    }
}

/// A ring of switches. Minimal routes around it depend on each other in a circle, so that a lossless
/// fabric of this shape can deadlock.
///
/// Hosts are on ports 1 to n, the previous switch on port n + 1, the next one on port n + 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    /// Number of switches, at least 3.
    pub switches: usize,
    /// Number of hosts on each switch.
    pub hosts_per_switch: usize,
    /// Every cable.
    pub link: LinkKind,
}

impl Ring {
    /// Builds the fabric.
    ///
    /// # Errors
    ///
    /// If there are fewer than 3 switches or no hosts, or a switch would have more than 254 ports.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        let row = Row {
            generator: "ring",
            switches: self.switches,
            hosts_per_switch: self.hosts_per_switch,
            trunk_ports: 2,
            link: self.link,
        };
        if self.switches < 3 {
            return Err(row.bad(format!("{} switches, it must be 3 or more", self.switches)));
        }
        let (mut builder, switches) = row.hosts_and_switches()?;
        row.connect_neighbours(&mut builder, &switches)?;
        row.connect(&mut builder, switches[switches.len() - 1], switches[0])?;
        builder.build()
    }
}

/// What the fabrics of this file have in common.
struct Row {
    generator: &'static str,
    switches: usize,
    hosts_per_switch: usize,
    trunk_ports: usize,
    link: LinkKind,
}

impl Row {
    fn bad(&self, problem: String) -> FabricError {
        FabricError::BadParameter {
            generator: self.generator,
            problem,
        }
    }

    fn hosts_and_switches(&self) -> Result<(FabricBuilder, Vec<NodeHandle>), FabricError> {
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

    fn connect_neighbours(
        &self,
        builder: &mut FabricBuilder,
        switches: &[NodeHandle],
    ) -> Result<(), FabricError> {
        switches
            .windows(2)
            .try_for_each(|pair| self.connect(builder, pair[0], pair[1]))
    }

    fn connect(
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
