//! Switches at the points of a grid: what a mesh and a torus have in common.

use silvan_core::{Lid, PortNumber, SwitchId};

use super::{Mesh, Torus, host_name, port_number};
use crate::{Fabric, FabricBuilder, FabricError, LinkKind};

/// Switches at the points of a grid, each cabled to its neighbours in every dimension: a mesh, or
/// with the ends of every row joined a torus (a k-ary n-cube where all sizes are equal; W. J. Dally,
/// Performance analysis of k-ary n-cube interconnection networks, IEEE Transactions on Computers
/// 39(6), 1990).
///
/// # Ports
///
/// Hosts are on ports 1 to h. The neighbour before the switch in dimension d, counted from 0, is on
/// port h + 2d + 1, the one after it on port h + 2d + 2; at the edge of a mesh such a port is empty.
/// Switches are named after their coordinates, `switch-2-0` is the third of the first row; the first
/// dimension varies fastest in the order of switches and hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    /// Switches along each dimension: at least 3 in a torus, where two would be joined by two
    /// cables, and at least 1 in a mesh.
    pub sizes: Vec<usize>,
    /// Whether the ends of each row are joined.
    pub wraps: bool,
    /// Number of hosts on each switch.
    pub hosts_per_switch: usize,
}

/// Which way along a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Towards lower coordinates.
    Down,
    /// Towards higher coordinates.
    Up,
}

impl Grid {
    /// Builds the fabric.
    ///
    /// # Errors
    ///
    /// If there is no dimension, a size is too small, a switch has no host or more than 254 ports,
    /// or there are too few LIDs.
    pub fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        self.validate()?;
        let count = self.switch_count();
        let mut builder = FabricBuilder::new();
        let ports = self.hosts_per_switch + 2 * self.sizes.len();
        let switches = (0..count)
            .map(|index| builder.add_switch(self.switch_name(index), ports))
            .collect::<Result<Vec<_>, _>>()?;
        let host_count = count * self.hosts_per_switch;
        for index in 0..host_count {
            let host = builder.add_host(host_name(index, host_count))?;
            let switch = switches[index / self.hosts_per_switch];
            let port = port_number(index % self.hosts_per_switch + 1, self.name())?;
            builder.connect(host.port(1), switch.port(port), link)?;
        }
        for (index, switch) in switches.iter().enumerate() {
            for dimension in 0..self.sizes.len() {
                let Some(next) = self.neighbour(index, dimension, Direction::Up) else {
                    continue;
                };
                let up = self.port_towards(dimension, Direction::Up).as_u8();
                let down = self.port_towards(dimension, Direction::Down).as_u8();
                builder.connect(switch.port(up), switches[next].port(down), link)?;
            }
        }
        builder.build()
    }

    fn name(&self) -> &'static str {
        if self.wraps { Torus::NAME } else { Mesh::NAME }
    }

    fn validate(&self) -> Result<(), FabricError> {
        let bad = |problem: String| {
            Err(FabricError::BadParameter {
                generator: self.name(),
                problem,
            })
        };
        if self.sizes.is_empty() {
            return bad("no sizes, it must have one per dimension".to_owned());
        }
        let least = if self.wraps { 3 } else { 1 };
        if let Some(size) = self.sizes.iter().find(|size| **size < least) {
            return bad(format!(
                "a dimension of {size} switches, it must have {least} or more"
            ));
        }
        if self.hosts_per_switch == 0 {
            return bad("switches with 0 hosts each, the number must be positive".to_owned());
        }
        let most_ports = usize::from(u8::MAX) - 1;
        let ports = self.sizes.len().saturating_mul(2);
        let ports = ports.saturating_add(self.hosts_per_switch);
        if ports > most_ports {
            return bad(format!(
                "a switch would need {ports} ports, it has at most {most_ports}"
            ));
        }
        let nodes = self
            .sizes
            .iter()
            .try_fold(1_usize, |count, size| count.checked_mul(*size))
            .and_then(|count| count.checked_mul(self.hosts_per_switch + 1));
        match nodes {
            Some(nodes) if nodes <= usize::from(Lid::MAX_UNICAST.as_u16()) => Ok(()),
            Some(nodes) => Err(FabricError::LidsExhausted { nodes }),
            None => bad("the number of hosts is astronomical".to_owned()),
        }
    }

    /// The number of switches.
    pub fn switch_count(&self) -> usize {
        self.sizes.iter().product()
    }

    /// The switch's place along a dimension, from 0.
    pub fn coordinate(&self, switch: SwitchId, dimension: usize) -> usize {
        switch.index() / self.stride(dimension) % self.sizes[dimension]
    }

    /// Switches between one and its neighbour in a dimension, in the order of switches.
    fn stride(&self, dimension: usize) -> usize {
        self.sizes[..dimension].iter().product()
    }

    /// The number of the port to the neighbour in a dimension.
    pub(crate) fn port_towards(&self, dimension: usize, direction: Direction) -> PortNumber {
        let side = match direction {
            Direction::Down => 1,
            Direction::Up => 2,
        };
        // Validated with the ports of a switch.
        PortNumber::new((self.hosts_per_switch + 2 * dimension + side) as u8)
    }

    /// The dimension that a port leads along, `None` for a host's port.
    pub(crate) fn dimension_of(&self, port: PortNumber) -> Option<usize> {
        let beyond = usize::from(port.as_u8()).checked_sub(self.hosts_per_switch + 1)?;
        Some(beyond / 2)
    }

    /// The neighbour of the `index`th switch, `None` at the edge of a mesh.
    pub(crate) fn neighbour(
        &self,
        index: usize,
        dimension: usize,
        direction: Direction,
    ) -> Option<usize> {
        let size = self.sizes[dimension];
        let stride = self.stride(dimension);
        let at = index / stride % size;
        let next = match direction {
            Direction::Up if at + 1 < size => at + 1,
            Direction::Down if at > 0 => at - 1,
            _ if !self.wraps => return None,
            Direction::Up => 0,
            Direction::Down => size - 1,
        };
        Some(index - at * stride + next * stride)
    }

    /// `switch-2-0`
    fn switch_name(&self, index: usize) -> String {
        let switch = SwitchId::new(index);
        (0..self.sizes.len()).fold("switch".to_owned(), |name, dimension| {
            format!("{name}-{}", self.coordinate(switch, dimension))
        })
    }
}
