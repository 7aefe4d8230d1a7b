use silvan_core::{PortNumber, SwitchId};

use super::attached::{Parameter, attach_hosts, product};
use super::{Mesh, Torus};
use crate::{Fabric, FabricBuilder, FabricError, LinkKind};

/// Switches at the points of a grid, cabled to their neighbours: a mesh, or a torus, which joins the ends of rows
/// (k-ary n-cube: W. J. Dally, Performance analysis of k-ary n-cube interconnection networks, IEEE Transactions on
/// Computers 39(6), 1990).
///
/// Hosts are on ports 1 to h; in dimension d, from 0, the neighbour before is on port h + 2d + 1, the one after on h +
/// 2d + 2. `switch-2-0` is the third of the first row; the first dimension varies fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    /// Switches along each dimension, at least 3 in a torus, 1 in a mesh.
    pub sizes: Vec<usize>,
    /// True if the ends of each row are joined.
    pub wraps: bool,
    /// Number of hosts on each switch.
    pub hosts_per_switch: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Down,
    Up,
}

impl Grid {
    /// Builds the fabric, or names a missing dimension, a small size, missing hosts, too many ports or too few LIDs.
    pub fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        self.validate()?;
        let count = self.switch_count();
        let mut builder = FabricBuilder::new();
        let ports = self.hosts_per_switch + 2 * self.sizes.len();
        let switches = (0..count)
            .map(|index| builder.add_switch(self.switch_name(index), ports))
            .collect::<Result<Vec<_>, _>>()?;
        attach_hosts(
            &mut builder,
            self.name(),
            &switches,
            self.hosts_per_switch,
            link,
        )?;
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
        let of = |key| Parameter {
            generator: self.name(),
            key,
        };
        if self.sizes.is_empty() {
            let problem = "no sizes, it must have one per dimension";
            return Err(of("sizes").bad(problem, "write e.g. [4, 4]"));
        }
        let least = if self.wraps { 3 } else { 1 };
        if let Some(size) = self.sizes.iter().find(|size| **size < least) {
            let problem = format!("a dimension of {size} switches, it must have {least} or more");
            return Err(of("sizes").bad(problem, format!("write {least} or more")));
        }
        of("hosts-per-switch").positive(self.hosts_per_switch)?;
        let between = self.sizes.len().saturating_mul(2);
        of("hosts-per-switch").ports(Some(self.hosts_per_switch), between)?;
        let switches = product(&self.sizes);
        let nodes = switches.and_then(|count| count.checked_mul(self.hosts_per_switch + 1));
        of("sizes").nodes(nodes)
    }

    /// The number of switches.
    pub fn switch_count(&self) -> usize {
        self.sizes.iter().product()
    }

    /// The switch's place along a dimension, from 0.
    pub fn coordinate(&self, switch: SwitchId, dimension: usize) -> usize {
        switch.index() / self.stride(dimension) % self.sizes[dimension]
    }

    fn stride(&self, dimension: usize) -> usize {
        self.sizes[..dimension].iter().product()
    }

    pub(crate) fn port_towards(&self, dimension: usize, direction: Direction) -> PortNumber {
        let side = match direction {
            Direction::Down => 1,
            Direction::Up => 2,
        };
        PortNumber::new((self.hosts_per_switch + 2 * dimension + side) as u8)
    }

    pub(crate) fn dimension_of(&self, port: PortNumber) -> Option<usize> {
        let beyond = usize::from(port.as_u8()).checked_sub(self.hosts_per_switch + 1)?;
        Some(beyond / 2)
    }

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

    fn switch_name(&self, index: usize) -> String {
        let switch = SwitchId::new(index);
        (0..self.sizes.len()).fold("switch".to_owned(), |name, dimension| {
            format!("{name}-{}", self.coordinate(switch, dimension))
        })
    }
}
