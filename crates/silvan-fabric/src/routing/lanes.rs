//! Virtual lanes that change along the way, and the service levels that say how.

use silvan_units::{HostId, IdVec, PortNumber, SwitchId};

use crate::Fabric;

/// Which virtual lane a packet takes on each cable, where routes alone would depend on each other in
/// a circle.
///
/// This is how InfiniBand breaks such circles, as OpenSM's routing engine torus-2QoS does: the
/// service level in a packet's header says what kind of path it is on, in its low bits; each switch
/// maps it to a lane by the port it came in by, the port it leaves by, and the service level
/// (SLtoVLMappingTable, IBA volume 1, sections 7.6.6 and 14.2.5.8). The bits above are free for
/// classes of service, each of which has lanes of its own.
///
/// Lanes are counted within one class here: 0, 1, ...
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathLanes {
    path_bits: u8,
    lanes: u8,
    hosts: usize,
    /// Row by row, one byte per destination host; a row per switch.
    paths: Vec<u8>,
    switches: IdVec<SwitchId, SwitchLanes>,
}

/// The mapping of one switch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SwitchLanes {
    ports: usize,
    /// By input port, output port and kind of path.
    lanes: Vec<u8>,
}

impl PathLanes {
    /// Builds the mapping. `path_of` gives the kind of the path from the hosts of a switch to a host,
    /// a number of `path_bits` bits; `lane_of` the lane from an input to an output port of a switch
    /// for such a kind.
    pub(crate) fn new(
        fabric: &Fabric,
        path_bits: u8,
        path_of: impl Fn(SwitchId, HostId) -> u8,
        lane_of: impl Fn(SwitchId, PortNumber, PortNumber, u8) -> u8,
    ) -> Self {
        let switches: IdVec<SwitchId, SwitchLanes> = fabric
            .switch_ids()
            .map(|switch| {
                let ports = 1..=fabric.switch(switch).port_count;
                let pairs = ports
                    .clone()
                    .flat_map(|input| ports.clone().map(move |output| (input, output)));
                let lanes = pairs.flat_map(|(input, output)| {
                    let (input, output) = (PortNumber::new(input), PortNumber::new(output));
                    (0..1 << path_bits).map(move |path| (input, output, path))
                });
                SwitchLanes {
                    ports: usize::from(fabric.switch(switch).port_count),
                    lanes: lanes
                        .map(|(input, output, path)| lane_of(switch, input, output, path))
                        .collect(),
                }
            })
            .collect();
        let lanes = switches.iter().flat_map(|switch| &switch.lanes).max();
        let paths = fabric
            .switch_ids()
            .flat_map(|switch| fabric.host_ids().map(move |host| (switch, host)));
        Self {
            path_bits,
            lanes: lanes.map_or(1, |highest| highest + 1),
            hosts: fabric.host_count(),
            paths: paths.map(|(switch, host)| path_of(switch, host)).collect(),
            switches,
        }
    }

    /// Paths whose service level is their lane behind every switch, as OpenSM's routing engine lash has them
    /// (T. Skeie, O. Lysne, I. Theiss, "Layered shortest path (LASH) routing in irregular system area
    /// networks", IPDPS 2002): paths that together could block each other in a circle are on different
    /// lanes. `level_of` gives the level from the hosts of a switch to a host, 0 to 15.
    pub fn by_level(fabric: &Fabric, level_of: impl Fn(SwitchId, HostId) -> u8) -> Self {
        let pairs = fabric
            .switch_ids()
            .flat_map(|switch| fabric.host_ids().map(move |host| (switch, host)));
        let highest = pairs.map(|(switch, host)| level_of(switch, host)).max();
        let highest = highest.unwrap_or(0).min(15);
        let path_bits = (u8::BITS - highest.leading_zeros()) as u8;
        // Levels that no path has would ask for lanes that need not be there.
        Self::new(fabric, path_bits, level_of, |_, _, _, path| {
            path.min(highest)
        })
    }

    /// Low bits of the service level that are taken.
    pub fn path_bits(&self) -> u8 {
        self.path_bits
    }

    /// Virtual lanes that one class of service needs.
    pub fn lanes(&self) -> u8 {
        self.lanes
    }

    /// Classes of service that are left.
    pub fn classes(&self) -> u8 {
        16 >> self.path_bits
    }

    /// The kind of the path from the hosts of a switch to a host: the low bits of its service level.
    ///
    /// # Panics
    ///
    /// If switch or host are beyond those of the fabric.
    pub fn path(&self, from: SwitchId, to: HostId) -> u8 {
        self.paths[from.index() * self.hosts..][..self.hosts][to.index()]
    }

    /// The lane on the cable behind `output`, for packets that came in by `input` on this kind of path.
    ///
    /// # Panics
    ///
    /// If the switch has no such ports.
    pub fn lane(&self, switch: SwitchId, input: PortNumber, output: PortNumber, path: u8) -> u8 {
        let SwitchLanes { ports, lanes } = &self.switches[switch];
        let pair = (usize::from(input.as_u8()) - 1) * ports + usize::from(output.as_u8()) - 1;
        lanes[pair << self.path_bits | usize::from(path)]
    }
}
