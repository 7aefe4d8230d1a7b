use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{HostId, IdVec, PortId, SwitchId};

use crate::Fabric;

/// Choice among the paths of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathChoice {
    /// The forwarding tables.
    #[default]
    Table,
    /// Each switch, among the ports over which the routing spreads destinations: the port with the fewest bytes ahead
    /// of the packet.
    ///
    /// In most routings these ports start a shortest path. Bytes ahead are those waiting in the switch and those in the
    /// buffer behind the cable. The table's port wins ties. Packets of a flow may overtake each other.
    Adaptive,
    /// Each switch, among the same ports: a random free port, or the port with the fewest waiting bytes.
    ///
    /// A port is free if no packet waits in the switch on the packet's lane. The buffer behind the cable does not
    /// count. NVIDIA's free adaptive routing chooses by load without constraints on the order of packets ("InfiniBand
    /// Cluster Bring-up Procedure"); its rule is not public.
    AdaptiveFree,
    /// Each switch, among these ports, by a hash of source, destination and traffic class: all packets
    /// of a flow take one path (C. Hopps, RFC 2992).
    Ecmp,
    /// Each switch, among these ports, for each packet: a random one (A. Dixit, P. Prakash, Y. C. Hu, R. R. Kompella, "On
    /// the impact of packet spraying in data center networks", INFOCOM 2013).
    SprayRandom,
    /// Each switch, among these ports, in turn for all packets with the same choice.
    SprayRoundRobin,
    /// The source's switch, for each packet: by the tables to the switch of a random host, and from there by the tables to
    /// the destination (L. G. Valiant, "A scheme for fast parallel communication", SIAM Journal on Computing 11(2),
    /// 1982).
    Valiant,
    /// The source's switch, for each packet: by the tables, or over a random switch outside the groups of source and
    /// destination.
    ///
    /// It takes the path with the smaller product of the bytes ahead at the first output and the cables of the path (A.
    /// Singh, "Load-balanced routing in interconnection networks", PhD thesis, Stanford University 2005). A switch that
    /// is in no group is its own group.
    UgalL,
    /// Like `ugal-l`, but by the sum of the bytes ahead at all switch outputs of each path: an ideal with the state of
    /// other switches.
    UgalG,
    /// Like `ugal-l`, with a second decision at the next switch inside the group of the source.
    ///
    /// That switch decides again for packets that follow the tables, if more bytes than an input buffer holds are ahead
    /// of them (N. Jiang, J. Kim, W. J. Dally, "Indirect adaptive routing on large scale interconnection networks",
    /// ISCA 2009: progressive adaptive routing).
    Par,
}

impl PathChoice {
    /// Returns true if each switch chooses among the ports over which the routing spreads destinations.
    pub fn is_among_shortest(self) -> bool {
        matches!(
            self,
            Self::Adaptive
                | Self::AdaptiveFree
                | Self::Ecmp
                | Self::SprayRandom
                | Self::SprayRoundRobin
        )
    }

    /// Returns true if a switch compares the bytes ahead on these ports.
    pub fn compares(self) -> bool {
        matches!(self, Self::Adaptive | Self::AdaptiveFree)
    }

    /// Returns true if packets of a flow may overtake each other.
    pub fn reorders(self) -> bool {
        !matches!(self, Self::Table | Self::Ecmp)
    }

    /// Returns true if paths can be longer than the paths of the tables.
    pub fn is_non_minimal(self) -> bool {
        matches!(self, Self::Valiant | Self::UgalL | Self::UgalG | Self::Par)
    }
}

/// A packet's lane goes up at each switch where the kind of the cable does not increase.
///
/// The pair of lane and kind increases along a path, so channels cannot form a cycle below the last lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneSteps {
    kinds: IdVec<PortId, u8>,
    lanes: u8,
}

impl LaneSteps {
    /// The lanes of one class of service, for kinds of cable by port.
    pub fn new(kinds: IdVec<PortId, u8>, lanes: u8) -> Self {
        Self { kinds, lanes }
    }

    /// Makes steps with one kind of cable between all switches and one lane: the lane goes up at every switch.
    pub fn equal(fabric: &Fabric) -> Self {
        Self::new(equal_kinds(fabric), 1)
    }

    /// Returns the steps with another number of lanes.
    #[must_use]
    pub fn with_lanes(&self, lanes: u8) -> Self {
        Self::new(self.kinds.clone(), lanes)
    }

    /// Lanes of one class of service.
    pub fn lanes(&self) -> u8 {
        self.lanes
    }

    /// The kind of the cable out of a port. Panics if the port is beyond those of the fabric.
    pub fn kind(&self, port: PortId) -> u8 {
        self.kinds[port]
    }

    /// Behind a cable of kind `out` after `entered`; not limited to existing lanes.
    pub(crate) fn next(entered: u8, out: u8, lane: u8) -> u8 {
        lane + u8::from(entered != 0 && out != 0 && out <= entered)
    }
}

pub(crate) fn equal_kinds(fabric: &Fabric) -> IdVec<PortId, u8> {
    kinds_between(fabric, |_, _| 1)
}

pub(crate) fn kinds_between(
    fabric: &Fabric,
    kind: impl Fn(SwitchId, SwitchId) -> u8,
) -> IdVec<PortId, u8> {
    let of_port = |port: PortId| {
        let from = fabric.nodes[fabric.ports[port].node].as_switch()?;
        let (to, _) = fabric.peer_switch(port)?;
        Some(kind(from, to))
    };
    let ports = fabric.ports.ids();
    ports.map(|port| of_port(port).unwrap_or(0)).collect()
}

/// The switches that packets can be sent over, each named by a host there: the tables lead to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waypoints {
    hosts: Vec<HostId>,
    starts: Vec<u32>,
    groups: IdVec<SwitchId, u32>,
}

impl Waypoints {
    /// Most waypoints: a packet has 16 bits for one.
    pub const MOST: usize = u16::MAX as usize;

    /// Every switch with hosts, or every host if a packet has room, for more parallel cables. Groups count from 0.
    pub fn new(fabric: &Fabric, groups: IdVec<SwitchId, u32>) -> Self {
        let all = fabric.host_count() <= Self::MOST;
        let mut last = None;
        let chosen = fabric.host_ids().filter(|host| {
            let leaf = fabric.host_attachment(*host).0;
            all || last.replace(leaf) != Some(leaf)
        });
        let group_of = |host: &HostId| groups[fabric.host_attachment(*host).0];
        let mut hosts: Vec<HostId> = chosen.take(Self::MOST).collect();
        hosts.sort_by_key(group_of);
        let count = groups.iter().max().map_or(0, |highest| highest + 1);
        let starts = (0..=count)
            .map(|group| hosts.partition_point(|host| group_of(host) < group) as u32)
            .collect();
        Self {
            hosts,
            starts,
            groups,
        }
    }

    /// Each switch is a group of its own.
    pub fn of_switches(fabric: &Fabric) -> Self {
        let groups = fabric.switch_ids().map(|switch| switch.index() as u32);
        Self::new(fabric, groups.collect())
    }

    /// Returns the hosts that represent switches, group by group.
    pub fn hosts(&self) -> &[HostId] {
        &self.hosts
    }

    /// Returns the index of each group's first host, and the end of the last group.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The group of a switch. Panics if the switch is beyond those of the fabric.
    pub fn group(&self, switch: SwitchId) -> u32 {
        self.groups[switch]
    }
}
