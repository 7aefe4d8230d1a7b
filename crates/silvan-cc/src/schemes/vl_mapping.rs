//! A virtual lane for each destination or output port, or group of them; no flow slows down.
//!
//! - By destination: a host's packet keeps its lane: DBBM, vFtree, groups of adjacent hosts (Flow2SL), a lane per
//!   destination (VOQnet).
//! - By output: an input buffer's lane is the output port's: a queue per output (VOQsw) or fewer (OBQA).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Time, Vl};

use crate::hooks::{Flow, LaneView, PerHost, PerPortVl, Settings, SourceControl, SwitchControl};
use crate::parameters;
use crate::schemes::variant::{Cost, FabricFacts, Family, Unsuited, Variant};
use crate::schemes::{Bounds, Declared, Scheme, SchemeError, Setup, SwitchPort};

/// Packets that share a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// Packets with different ways up in a fat tree: destinations of one cable are spread over all lanes (Guay et al.
    /// 2011).
    #[default]
    Vftree,
    /// Packets to destinations with equal numbers modulo the lanes (Nachiondo et al. 2005).
    Dbbm,
    /// Packets to adjacent hosts, `group-hosts` of them: a hotspot fills only the lane of its group, on all cables
    /// (Escudero-Sahuquillo et al. 2014).
    Flow2sl,
    /// None: each has its own, and there must be a lane for each host.
    Voqnet,
    /// Packets whose output ports at the next switch are equal modulo the lanes (Escudero-Sahuquillo et al. 2011).
    Obqa,
    /// None but those with one output port at the next switch: there must be a lane for each port of a switch
    /// (Tamir and Frazier 1988).
    Voqsw,
}

impl Mapping {
    fn is_by_output(self) -> bool {
        matches!(self, Self::Obqa | Self::Voqsw)
    }
}

parameters! {
    /// A lane by destination or by output port.
    pub struct VlMapping {
        /// Packets that share a lane: by their destination, or by their output port at the next switch. The lanes are
        /// `vl.data-vls`.
        mapping: Mapping {
            default: Mapping::Vftree,
        }
        /// Hosts side by side whose packets share a lane; by default as many as make a group for each lane. Further groups take the
        /// lanes in turn. For `flow2sl`.
        #[serde(skip_serializing_if = "Option::is_none")]
        group_hosts: Option<u32> {
            default: None,
            bounds: Bounds::Whole(1, u32::MAX as u64),
            message: "a group of 0 hosts is none",
            example: "36",
        }
    }
}

const COST: Cost = Cost::new(0, 0, 0, "none");

impl Scheme for VlMapping {
    type Switch = LaneByOutput;
    type Source = LaneOf;

    const FAMILY: Family = Family::Lanes;

    fn variants(facts: &FabricFacts<'_>) -> Vec<Variant> {
        let lanes = facts.lanes().max(1);
        let variant = |mapping, what: &str| {
            let summary = format!("{lanes} lanes by {what}, which share the buffer of one");
            Variant::new(mapping, summary, COST)
                .own("mapping", mapping)
                .lanes(lanes)
        };
        let by_hand = |mapping, what| {
            let summary = format!("a lane for each {what}, with a buffer each");
            Variant::new(mapping, summary, COST)
                .own("mapping", mapping)
                .unless(|_| {
                    let how =
                        "set vl.data-vls to the number of lanes, e.g. with --set vl.data-vls=8";
                    Some(Unsuited::ByHand(how))
                })
        };
        vec![
            variant("vftree", "destination").unless(|facts| {
                let of_tree = Unsuited::Fabric("it is for fat trees, with d-mod-k routing");
                (!facts.is_fat_tree).then_some(of_tree)
            }),
            variant("flow2sl", "groups of hosts side by side"),
            variant("dbbm", "the destination's number"),
            variant("obqa", "output").unless(|facts| facts.lacks_known_paths()),
            by_hand("voqnet", "destination"),
            by_hand("voqsw", "output of a switch"),
        ]
    }

    fn check(&self) -> Result<(), SchemeError> {
        self.check_bounds()?;
        if self.group_hosts.is_none() || self.mapping == Mapping::Flow2sl {
            return Ok(());
        }
        let message = "only flow2sl has groups of hosts";
        let hint = "set mapping to \"flow2sl\", or remove the key";
        Err(SchemeError::new("group-hosts", message, hint))
    }

    fn check_setup(&self, setup: &Setup<'_>) -> Result<(), SchemeError> {
        let refused = |message: String, hint: &str| {
            let error = SchemeError::new("mapping", message, hint);
            Err(error)
        };
        if setup.routes_use_lanes {
            return refused(
                "the routing keeps paths from deadlock by their lanes, which the mapping would change"
                    .to_owned(),
                "choose a fabric that needs no lanes, such as a fat tree, or another scheme",
            );
        }
        let lanes = setup.data_vls;
        if lanes < 2 {
            return refused(
                "there is one data lane for all packets".to_owned(),
                "set vl.data-vls to 2 or more",
            );
        }
        if self.mapping == Mapping::Voqnet && usize::from(lanes) < setup.hosts {
            let hosts = setup.hosts;
            return refused(
                format!(
                    "voqnet needs a data lane for each of {hosts} hosts, and there are {lanes}"
                ),
                "ports have 15 at most: choose \"vftree\" or \"dbbm\", or a smaller fabric",
            );
        }
        if self.mapping.is_by_output() && setup.has_alternatives {
            return refused(
                "the switches choose among several outputs, so the output at the next switch is not known"
                    .to_owned(),
                "set fabric.path-choice to \"table\", or choose a mapping by destination",
            );
        }
        let ports = setup.ports.iter().flatten();
        let ports = ports.map(|port| port.number.as_u8()).max().unwrap_or(0);
        if self.mapping == Mapping::Voqsw && lanes < ports {
            return refused(
                format!(
                    "voqsw needs a data lane for each of {ports} ports of a switch, and there are {lanes}"
                ),
                "ports have 15 lanes at most: choose \"obqa\", or smaller switches",
            );
        }
        Ok(())
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(LaneByOutput, LaneOf), SchemeError> {
        let lanes = setup.data_vls;
        let ways_up = ways_up(setup);
        let each = setup.hosts.div_ceil(usize::from(lanes)).max(1);
        let group_hosts = self.group_hosts.map_or(each, |hosts| hosts as usize);
        let lane = |destination: usize| match self.mapping {
            Mapping::Vftree => lane_in_tree(destination, ways_up, lanes),
            Mapping::Flow2sl => ((destination / group_hosts) % usize::from(lanes)) as u8,
            _ => (destination % usize::from(lanes)) as u8,
        };
        let by_output =
            |port: &Option<SwitchPort>| port.map_or(0, |port| (port.number.as_u8() - 1) % lanes);
        let (outputs, destinations) = match self.mapping.is_by_output() {
            true => (setup.ports.iter().map(by_output).collect(), Vec::new()),
            false => (Vec::new(), (0..setup.hosts).map(lane).collect()),
        };
        let switch = LaneByOutput { of_port: outputs };
        let source = LaneOf {
            by_destination: destinations,
        };
        Ok((switch, source))
    }
}

fn ways_up(setup: &Setup<'_>) -> usize {
    let ports = || setup.ports.iter().flatten();
    let leaves = ports().filter(|port| port.to_host);
    let leaves: std::collections::BTreeSet<_> = leaves.map(|port| port.switch).collect();
    let mut ways = std::collections::BTreeMap::new();
    for port in ports().filter(|port| !port.to_host && leaves.contains(&port.switch)) {
        *ways.entry(port.switch).or_insert(0) += 1;
    }
    ways.into_values().max().unwrap_or(0)
}

/// Lane of a destination in a tree routed by destination modulo the ways up. Destinations of one cable share their
/// lowest digits, one per level; the sum of the other digits differs for consecutive ones.
fn lane_in_tree(destination: usize, ways_up: usize, lanes: u8) -> u8 {
    let lanes = usize::from(lanes);
    if ways_up < 2 {
        return (destination % lanes) as u8;
    }
    let mut above = destination / ways_up;
    let mut sum = 0;
    while above > 0 {
        sum += above % ways_up;
        above /= ways_up;
    }
    (sum % lanes) as u8
}

/// The switches.
#[derive(Clone, Debug)]
pub struct LaneByOutput {
    of_port: Vec<u8>,
}

impl SwitchControl for LaneByOutput {
    fn watches_queues(&self) -> bool {
        false
    }

    fn needs_select_next_vl(&self) -> bool {
        !self.of_port.is_empty()
    }

    #[inline]
    fn select_next_vl(&mut self, _: Time, hop: LaneView, _: Flow, _: Vl) -> Option<Vl> {
        let lane = hop.next_output.map_or(0, |port| self.of_port[port.index()]);
        Vl::try_new(lane).ok()
    }
}

impl Settings for LaneByOutput {}

impl PerPortVl for LaneByOutput {}

/// The hosts.
#[derive(Clone, Debug)]
pub struct LaneOf {
    by_destination: Vec<u8>,
}

impl SourceControl for LaneOf {
    fn separates_flows(&self) -> bool {
        true
    }

    fn keeps_lanes(&self) -> bool {
        true
    }

    fn needs_select_vl(&self) -> bool {
        !self.by_destination.is_empty()
    }

    #[inline]
    fn select_vl(&mut self, _: Time, flow: Flow, _: Vl) -> Option<Vl> {
        let lane = self.by_destination.get(flow.destination.index())?;
        Vl::try_new(*lane).ok()
    }
}

impl Settings for LaneOf {}

impl PerHost for LaneOf {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use std::collections::BTreeSet;

    use silvan_core::{HostId, PortId, PortNumber, Sl, SwitchId};

    use super::super::flows::tests::{are_refused, setup};
    use super::*;

    fn of(mapping: Mapping) -> VlMapping {
        VlMapping {
            mapping,
            ..VlMapping::default()
        }
    }

    fn lanes_of(mapping: Mapping, setup: &Setup<'_>) -> Vec<u8> {
        let (_, mut source) = of(mapping).build(setup).unwrap();
        let lane = |host| {
            let flow = Flow {
                source: HostId::new(0),
                destination: HostId::new(host),
                sl: Sl::ZERO,
                queue: 0,
            };
            source
                .select_vl(Time::ZERO, flow, Vl::ZERO)
                .unwrap()
                .as_u8()
        };
        (0..setup.hosts).map(lane).collect()
    }

    /// Ports of leaf switches with so many hosts and ways up each.
    fn leaves(count: usize, hosts: u8, ways_up: u8) -> Vec<Option<SwitchPort>> {
        let ports = |leaf| {
            (1..=hosts + ways_up).map(move |number| {
                Some(SwitchPort {
                    switch: SwitchId::new(leaf),
                    number: PortNumber::new(number),
                    to_host: number <= hosts,
                    peer: None,
                })
            })
        };
        (0..count).flat_map(ports).collect()
    }

    /// Oracle: the routing. Destinations that are equal modulo the ways up share a cable. Of as many consecutive
    /// destinations as there are lanes, each has a separate lane, also if the lanes divide the ways up.
    #[test]
    fn destinations_of_one_cable_are_on_all_lanes() {
        for (ways_up, lanes) in [(4, 2), (18, 9), (18, 4), (6, 3)] {
            let ports = leaves(36, ways_up, ways_up);
            let hosts = 36 * usize::from(ways_up);
            let setup = Setup {
                ports: &ports,
                data_vls: lanes,
                hosts,
                ..setup()
            };
            let by_tree = lanes_of(Mapping::Vftree, &setup);
            let by_number = lanes_of(Mapping::Dbbm, &setup);
            for way in 0..usize::from(ways_up) {
                let of_cable = |all: &[u8]| {
                    let lanes = (way..hosts).step_by(ways_up.into()).map(|host| all[host]);
                    lanes.collect::<Vec<u8>>()
                };
                let used: BTreeSet<u8> = of_cable(&by_tree).into_iter().collect();
                assert_eq!(
                    used.len(),
                    usize::from(lanes),
                    "{ways_up} ways, {lanes} lanes"
                );
                if ways_up % lanes == 0 {
                    let used: BTreeSet<u8> = of_cable(&by_number).into_iter().collect();
                    assert_eq!(used.len(), 1, "by number they share a lane");
                }
            }
        }
    }

    /// Second level: the ways up of a cable there have two digits in common.
    #[test]
    fn so_are_those_of_a_cable_one_level_up() {
        let (ways_up, lanes) = (4_usize, 4_u8);
        for low in 0..ways_up * ways_up {
            let here = (low..256).step_by(ways_up * ways_up);
            let used: Vec<u8> = here
                .map(|host| lane_in_tree(host, ways_up, lanes))
                .collect();
            for next in used.windows(ways_up).step_by(ways_up) {
                let distinct: BTreeSet<&u8> = next.iter().collect();
                assert_eq!(distinct.len(), ways_up, "{used:?}");
            }
        }
    }

    #[test]
    fn each_destination_has_its_own_in_voqnet() {
        let setup = Setup {
            data_vls: 15,
            hosts: 15,
            ..setup()
        };
        let lanes = lanes_of(Mapping::Voqnet, &setup);
        assert_eq!(lanes, (0..15).collect::<Vec<u8>>());
    }

    #[test]
    fn hosts_side_by_side_share_a_lane() {
        let setup = Setup {
            data_vls: 3,
            hosts: 8,
            ..setup()
        };
        assert_eq!(lanes_of(Mapping::Flow2sl, &setup), [0, 0, 0, 1, 1, 1, 2, 2]);
        let leaves = VlMapping {
            mapping: Mapping::Flow2sl,
            group_hosts: Some(2),
        };
        let (_, source) = leaves.build(&setup).unwrap();
        assert_eq!(source.by_destination, [0, 0, 1, 1, 2, 2, 0, 0]);
        let others = VlMapping {
            mapping: Mapping::Dbbm,
            ..leaves
        };
        are_refused([(others, "group-hosts")]);
    }

    /// Oracle: the modulo of the port's number, by hand; a host at the end of the link has none.
    #[test]
    fn ports_are_spread_over_the_lanes() {
        let ports = leaves(2, 3, 2);
        let setup = Setup {
            ports: &ports,
            data_vls: 2,
            ..setup()
        };
        let mapping = Mapping::Obqa;
        let (mut switch, source) = of(mapping).build(&setup).unwrap();
        assert!(switch.needs_select_next_vl() && !source.needs_select_vl());
        let mut lane = |next_output: Option<usize>| {
            let hop = LaneView {
                input: None,
                output: PortId::new(0),
                next_input: None,
                next_output: next_output.map(PortId::new),
            };
            let flow = super::super::flows::tests::flow();
            let vl = switch.select_next_vl(Time::ZERO, hop, flow, Vl::ZERO);
            vl.unwrap().as_u8()
        };
        // Five ports each: the first of the second switch is number 1 again.
        let lanes: Vec<u8> = (0..10).map(|port| lane(Some(port))).collect();
        assert_eq!(lanes, [0, 1, 0, 1, 0, 0, 1, 0, 1, 0]);
        assert_eq!(lane(None), 0);
    }

    #[test]
    fn fabrics_without_lanes_for_it_are_refused() {
        let five = leaves(1, 3, 2);
        let whole = Setup {
            data_vls: 2,
            ..setup()
        };
        let cases = [
            (
                Mapping::Vftree,
                Setup {
                    data_vls: 1,
                    ..whole
                },
                "one data lane",
            ),
            (
                Mapping::Voqnet,
                Setup { hosts: 3, ..whole },
                "each of 3 hosts",
            ),
            (
                Mapping::Dbbm,
                Setup {
                    routes_use_lanes: true,
                    ..whole
                },
                "from deadlock",
            ),
            (
                Mapping::Obqa,
                Setup {
                    has_alternatives: true,
                    ..whole
                },
                "several outputs",
            ),
            (
                Mapping::Voqsw,
                Setup {
                    ports: &five,
                    data_vls: 4,
                    ..whole
                },
                "each of 5 ports",
            ),
        ];
        for (mapping, setup, message) in cases {
            let error = of(mapping).check_setup(&setup).unwrap_err();
            assert!(error.message.contains(message), "{error}");
        }
        assert!(VlMapping::default().check_setup(&whole).is_ok());
    }
}
