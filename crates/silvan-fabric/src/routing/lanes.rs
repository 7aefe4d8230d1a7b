use silvan_core::{HostId, IdVec, PortNumber, Sl, SwitchId};

use super::{PathServiceLevels, SlToVlTables, Vls};
use crate::Fabric;

const SL_BITS: u8 = 4;

/// Virtual lanes of packets on each cable, for routes that alone would depend on each other in a cycle.
///
/// The header's service level names the kind of path; switches map input, output and level to a lane
/// (SLtoVLMappingTable, IBA volume 1, sections 7.6.6 and 14.2.5.8).
///
/// - Computed ([`dimension_order`](super::dimension_order), [`by_level`](Self::by_level)): a level's low bits are the
///   path's, others a class's, with lanes of its own from 0.
/// - A subnet manager's tables ([`by_tables`](Self::by_tables)): the tables' lanes; traffic with its own level keeps
///   it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathLanes {
    path_bits: u8,
    lanes: u8,
    levels: PathServiceLevels,
    index_bits: u8,
    switches: IdVec<SwitchId, SwitchLanes>,
    tables: Option<Tables>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Tables {
    hosts: IdVec<HostId, Vls>,
    own: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SwitchLanes {
    ports: usize,
    lanes: Vec<u8>,
}

impl PathLanes {
    /// `levels` are kinds of paths with `path_bits` bits; `lane_of` maps ports and kind to a lane.
    pub(crate) fn new(
        fabric: &Fabric,
        path_bits: u8,
        levels: PathServiceLevels,
        lane_of: impl Fn(SwitchId, PortNumber, PortNumber, u8) -> u8,
    ) -> Self {
        let switches = switch_lanes(fabric, path_bits, lane_of);
        let lanes = switches.iter().flat_map(|switch| &switch.lanes).max();
        Self {
            path_bits,
            lanes: lanes.map_or(1, |highest| highest + 1),
            levels,
            index_bits: path_bits,
            switches,
            tables: None,
        }
    }

    /// Paths whose service level is their lane, as OpenSM's lash has them (T. Skeie, O. Lysne, I. Theiss, "Layered
    /// shortest path (LASH) routing in irregular system area networks", IPDPS 2002).
    pub fn by_level(fabric: &Fabric, levels: PathServiceLevels) -> Self {
        let highest = levels.highest().min(15);
        let path_bits = (u8::BITS - highest.leading_zeros()) as u8;
        Self::new(fabric, path_bits, levels, |_, _, _, path| path.min(highest))
    }

    /// Paths with a subnet manager's lanes; ports without a table use `other`.
    ///
    /// `own` are levels that some traffic has on all paths. [`check`](crate::check::check) refuses lanes beyond
    /// `data_vls`.
    pub fn by_tables(
        fabric: &Fabric,
        levels: PathServiceLevels,
        tables: &SlToVlTables,
        other: &Vls,
        data_vls: u8,
        own: impl IntoIterator<Item = Sl>,
    ) -> Self {
        let switches = switch_lanes(fabric, SL_BITS, |switch, input, output, sl| {
            let vls = tables.switch(switch, input, output).unwrap_or(other);
            vls[usize::from(sl)]
        });
        let hosts = fabric.host_ids();
        let hosts = hosts.map(|host| *tables.host(host).unwrap_or(other));
        let own = own.into_iter().fold(0, |bits, sl| bits | 1 << sl.index());
        let paths = levels.levels().iter().fold(0, |bits, sl| bits | 1 << sl);
        let used = switches.iter().flat_map(|switch| {
            let entries = switch.lanes.iter().zip((0..1 << SL_BITS).cycle());
            entries.filter(|(_, sl)| (own | paths) & 1_u16 << sl != 0)
        });
        let used = used.map(|(vl, _)| *vl).filter(|vl| *vl < data_vls);
        Self {
            path_bits: 0,
            lanes: used.max().map_or(1, |highest| highest + 1),
            levels,
            index_bits: SL_BITS,
            switches,
            tables: Some(Tables {
                hosts: hosts.collect(),
                own,
            }),
        }
    }

    /// Low bits of the service level that are the path's, in addition to those of a class.
    pub fn path_bits(&self) -> u8 {
        self.path_bits
    }

    /// Virtual lanes that one class of service needs; with the tables of a subnet manager, all traffic.
    pub fn lanes(&self) -> u8 {
        self.lanes
    }

    /// Classes of service that are left.
    pub fn classes(&self) -> u8 {
        16 >> self.path_bits
    }

    /// Returns true if the lanes are a subnet manager's, instead of counted within a class.
    pub fn is_by_tables(&self) -> bool {
        self.tables.is_some()
    }

    /// The kinds of all paths: the low bits of their service levels.
    pub fn levels(&self) -> &PathServiceLevels {
        &self.levels
    }

    /// The path's level, and levels of traffic that has them on all paths.
    pub(crate) fn kinds(
        &self,
        source: HostId,
        destination: HostId,
    ) -> impl Iterator<Item = u8> + use<> {
        let own = self.tables.as_ref().map_or(0, |tables| tables.own);
        let kinds = own | 1 << self.levels.level(source, destination);
        (0..16).filter(move |kind| kinds & 1 << kind != 0)
    }

    /// The lane behind `output` for packets from `input` on this kind of path. Panics without such ports.
    pub fn lane(&self, switch: SwitchId, input: PortNumber, output: PortNumber, path: u8) -> u8 {
        self.pair(switch, input, output)[usize::from(path)]
    }

    /// The lanes between two ports by service level, if class 0 starts at `first`. Panics without such ports.
    pub fn vls(&self, switch: SwitchId, input: PortNumber, output: PortNumber, first: &Vls) -> Vls {
        let lanes = self.pair(switch, input, output);
        std::array::from_fn(|sl| match self.tables {
            Some(_) => lanes[sl],
            None => first[sl >> self.path_bits] + lanes[sl & ((1 << self.path_bits) - 1)],
        })
    }

    /// The lanes of hosts' packets by traffic's level; `None` if they start where the class's do.
    pub fn host_vls(&self) -> Option<&IdVec<HostId, Vls>> {
        self.tables.as_ref().map(|tables| &tables.hosts)
    }

    fn pair(&self, switch: SwitchId, input: PortNumber, output: PortNumber) -> &[u8] {
        let SwitchLanes { ports, lanes } = &self.switches[switch];
        let pair = (usize::from(input.as_u8()) - 1) * ports + usize::from(output.as_u8()) - 1;
        &lanes[pair << self.index_bits..][..1 << self.index_bits]
    }
}

fn switch_lanes(
    fabric: &Fabric,
    bits: u8,
    lane_of: impl Fn(SwitchId, PortNumber, PortNumber, u8) -> u8,
) -> IdVec<SwitchId, SwitchLanes> {
    let of_switch = |switch| {
        let ports = 1..=fabric.switch(switch).port_count;
        let pairs = ports
            .clone()
            .flat_map(|input| ports.clone().map(move |output| (input, output)));
        let lanes = pairs.flat_map(|(input, output)| {
            let (input, output) = (PortNumber::new(input), PortNumber::new(output));
            (0..1 << bits).map(move |path| (input, output, path))
        });
        SwitchLanes {
            ports: usize::from(fabric.switch(switch).port_count),
            lanes: lanes
                .map(|(input, output, path)| lane_of(switch, input, output, path))
                .collect(),
        }
    };
    fabric.switch_ids().map(of_switch).collect()
}
