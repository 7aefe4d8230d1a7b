use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{HostId, SwitchId};

use super::distance::{SwitchGraph, route_to_switches};
use super::{
    ForwardingTables, Hierarchy, MinHop, Parts, PathChoice, PathLanes, PathServiceLevels, Routed,
    Routing, RoutingAlgorithm, RoutingError, RoutingInput,
};
use crate::Fabric;
use crate::generators::{Direction, FullRows, Generator, Grid};

/// A service level has a bit for each dateline.
const MOST_DATELINES: usize = 4;

/// Along one dimension after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct DimensionOrder {}

impl RoutingAlgorithm for DimensionOrder {
    fn routes(&self, input: RoutingInput<'_>) -> Routed {
        let RoutingInput {
            fabric, topology, ..
        } = input;
        if let Some(grid) = topology.and_then(Generator::grid) {
            return dimension_order(fabric, &grid);
        }
        match topology.and_then(Generator::full_rows) {
            Some(rows) => Ok((along_rows(fabric, &rows), None)),
            None => Err(RoutingError::Refused {
                key: "routing",
                problem: "dimension order needs a generator of a grid, such as mesh or torus"
                    .to_owned(),
                hint: "use min-hop instead".to_owned(),
            }),
        }
    }

    fn computed(&self, input: RoutingInput<'_>) -> Option<(ForwardingTables, Option<PathLanes>)> {
        let topology = input.topology?;
        match topology.grid() {
            Some(grid) => computed_dimension_order(input.fabric, &grid),
            None => computed_along_rows(input.fabric, &topology.full_rows()?),
        }
    }

    fn allows_choice(&self) -> bool {
        false
    }

    fn substitute(&self, choice: PathChoice) -> Option<Routing> {
        choice.is_among_shortest().then(|| MinHop {}.into())
    }

    /// Two for the datelines of a torus.
    fn lanes_per_class(&self, topology: Option<&dyn Generator>, data_vls: u8) -> u8 {
        let grid = topology.and_then(Generator::grid);
        match grid.is_some_and(|grid| grid.wraps) && data_vls > 1 {
            true => 2,
            false => 1,
        }
    }

    fn deadlock_hint(&self, _lanes: u8) -> Option<String> {
        Some("set vl.data-vls to 2 for datelines".to_owned())
    }
}

/// Computes dimension-order routes, in a torus the shorter way round; of equal ways even coordinates go up, odd ones
/// down.
///
/// A mesh cannot deadlock (W. J. Dally, C. L. Seitz: Deadlock-free message routing in multiprocessor interconnection
/// networks, IEEE Transactions on Computers C-36(5), 1987). In a torus, bit d of a path's service level says that it
/// crosses the dateline of dimension d, between a ring's last and first switch, as OpenSM's torus-2QoS does. It then
/// takes lane 1 in that dimension, else lane 0; the second value is `None` for a mesh. Errors if the fabric is not that
/// of `grid`, or for more than four dimensions of a torus.
pub fn dimension_order(
    fabric: &Fabric,
    grid: &Grid,
) -> Result<(ForwardingTables, Option<PathLanes>), RoutingError> {
    check_shape(fabric, grid)?;
    let graph = SwitchGraph::new(fabric);
    let mut tables = ForwardingTables::new(fabric);
    route_to_switches(fabric, &graph, &mut tables)?;
    for host in fabric.host_ids() {
        let (leaf, port) = fabric.host_attachment(host);
        for switch in fabric.switch_ids() {
            let number = match first_step(grid, switch, leaf) {
                Some((dimension, direction)) => grid.port_towards(dimension, direction),
                None => fabric.ports[port].number,
            };
            tables.set_host(switch, host, Some(number));
        }
    }
    Ok((tables, lanes(fabric, grid)?))
}

/// Computes the routes of [`dimension_order`] to hosts from coordinates, with the same lanes, if it accepts the fabric.
pub fn computed_dimension_order(
    fabric: &Fabric,
    grid: &Grid,
) -> Option<(ForwardingTables, Option<PathLanes>)> {
    check_shape(fabric, grid).ok()?;
    let mut parts = Parts::new(fabric.switch_count(), grid.sizes.len());
    for switch in fabric.switch_ids() {
        for dimension in 0..grid.sizes.len() {
            parts.set(switch, dimension, grid.coordinate(switch, dimension))?;
        }
    }
    let routes = Hierarchy::new(parts)?.routes(fabric, |switch, leaf, ports| {
        let (dimension, direction) = first_step(grid, switch, leaf).ok_or(())?;
        ports.push(grid.port_towards(dimension, direction));
        Ok::<_, ()>(1)
    });
    let tables = ForwardingTables::computed(fabric, routes.ok()??);
    Some((tables, lanes(fabric, grid).ok()?))
}

/// Routes over one cable per dimension, in order; the index selects a parallel cable.
fn along_rows(fabric: &Fabric, rows: &FullRows) -> ForwardingTables {
    let mut tables = ForwardingTables::new(fabric);
    let managed = fabric.switch_ids().filter(|_| fabric.has_lids());
    for target in managed {
        let lid = fabric.switch(target).lid;
        for switch in fabric.switch_ids().filter(|switch| *switch != target) {
            let number = rows.port_towards(switch, target, target.index());
            tables.set(switch, lid, number);
        }
    }
    for host in fabric.host_ids() {
        let (leaf, port) = fabric.host_attachment(host);
        for switch in fabric.switch_ids() {
            let number = rows.port_towards(switch, leaf, host.index());
            tables.set_host(switch, host, number.or(Some(fabric.ports[port].number)));
        }
    }
    tables
}

fn computed_along_rows(
    fabric: &Fabric,
    rows: &FullRows,
) -> Option<(ForwardingTables, Option<PathLanes>)> {
    let mut parts = Parts::new(fabric.switch_count(), rows.sizes.len());
    for switch in fabric.switch_ids() {
        for dimension in 0..rows.sizes.len() {
            parts.set(switch, dimension, rows.coordinate(switch, dimension))?;
        }
    }
    let cables = rows.cables.iter().copied().max().unwrap_or(1);
    let routes = Hierarchy::new(parts)?.routes(fabric, |switch, leaf, ports| {
        for cable in 0..cables {
            let port = rows.port_towards(switch, leaf, cable).ok_or(())?;
            if ports.first() == Some(&port) {
                break;
            }
            ports.push(port);
        }
        Ok::<_, ()>(1)
    });
    Some((ForwardingTables::computed(fabric, routes.ok()??), None))
}

fn lanes(fabric: &Fabric, grid: &Grid) -> Result<Option<PathLanes>, RoutingError> {
    grid.wraps.then(|| datelines(fabric, grid)).transpose()
}

fn first_step(grid: &Grid, from: SwitchId, to: SwitchId) -> Option<(usize, Direction)> {
    (0..grid.sizes.len())
        .find_map(|dimension| way(grid, dimension, from, to).map(|way| (dimension, way)))
}

fn way(grid: &Grid, dimension: usize, from: SwitchId, to: SwitchId) -> Option<Direction> {
    let size = grid.sizes[dimension];
    let at = grid.coordinate(from, dimension);
    let end = grid.coordinate(to, dimension);
    if at == end {
        return None;
    }
    let upwards = (end + size - at) % size;
    let downwards = size - upwards;
    let up = if !grid.wraps {
        end > at
    } else if upwards == downwards {
        at % 2 == 0
    } else {
        upwards < downwards
    };
    Some(if up { Direction::Up } else { Direction::Down })
}

fn crosses(grid: &Grid, dimension: usize, from: SwitchId, to: SwitchId) -> bool {
    let at = grid.coordinate(from, dimension);
    let end = grid.coordinate(to, dimension);
    match way(grid, dimension, from, to) {
        None => false,
        Some(Direction::Up) => end < at,
        Some(Direction::Down) => end > at,
    }
}

fn datelines(fabric: &Fabric, grid: &Grid) -> Result<PathLanes, RoutingError> {
    let dimensions = grid.sizes.len();
    if dimensions > MOST_DATELINES {
        return Err(RoutingError::NotAGrid {
            problem: format!(
                "a torus of {dimensions} dimensions has too many datelines for a service level of \
                 {MOST_DATELINES} bits"
            ),
        });
    }
    let path_of = |from: SwitchId, to: HostId| {
        let to = fabric.host_attachment(to).0;
        let crossed = (0..dimensions).filter(|dimension| crosses(grid, *dimension, from, to));
        crossed.fold(0, |path, dimension| path | 1 << dimension)
    };
    Ok(PathLanes::new(
        fabric,
        dimensions as u8,
        PathServiceLevels::by_switch(fabric, path_of),
        |_, _, output, path| {
            let dimension = grid.dimension_of(output);
            dimension.map_or(0, |dimension| path >> dimension & 1)
        },
    ))
}

fn check_shape(fabric: &Fabric, grid: &Grid) -> Result<(), RoutingError> {
    let problem = |problem: String| Err(RoutingError::NotAGrid { problem });
    let (switches, hosts) = (fabric.switch_count(), fabric.host_count());
    let expected = grid.switch_count();
    if (switches, hosts) != (expected, expected * grid.hosts_per_switch) {
        return problem(format!(
            "the grid has {expected} switches with {} hosts each, the fabric {switches} switches \
             and {hosts} hosts",
            grid.hosts_per_switch
        ));
    }
    for switch in fabric.switch_ids() {
        let node = fabric.switch(switch);
        for dimension in 0..grid.sizes.len() {
            for direction in [Direction::Down, Direction::Up] {
                let number = grid.port_towards(dimension, direction);
                let peer = node.port(number).and_then(|port| fabric.peer_switch(port));
                let peer = peer.map(|(peer, _)| peer.index());
                if peer != grid.neighbour(switch.index(), dimension, direction) {
                    return problem(format!(
                        "port {number} of {:?} does not lead to its neighbour in dimension \
                         {dimension}",
                        node.name
                    ));
                }
            }
        }
    }
    Ok(())
}
