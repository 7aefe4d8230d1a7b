use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{IdVec, PortId, SwitchId};

use super::attached::{Parameter, attach_hosts, product};
use super::groups::{GlobalWiring, Groups};
use super::{Generator, port_number, switch_name};
use crate::routing::{GroupMinimal, Routing, kinds_between};
use crate::{Cable, Fabric, FabricBuilder, FabricError, LinkKind};

/// A dragonfly+, or megafly: groups of leaves and spines, in which spines have the cables to other groups.
///
/// Each leaf is cabled to each spine of its group (A. Shpiner et al., "Dragonfly+: low cost topology for scaling
/// datacenters", HiPINEB 2017; M. Flajslik, E. Borch, M. A. Parker, "Megafly: a topology for exascale systems", ISC
/// 2018). Every pair of groups has the same number of cables, as many as fit; global ports beyond those are empty.
///
/// A leaf has its hosts on the first ports, then the spines; a spine has the leaves on the first ports, then global
/// cables. Leaf 2 of group 1 is `group-01-leaf-02`, its spines are `group-01-spine-00` and so on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct DragonflyPlus {
    /// Leaves of a group.
    pub leaves_per_group: usize,
    /// Spines of a group.
    pub spines_per_group: usize,
    /// Hosts at each leaf.
    pub hosts_per_leaf: usize,
    /// Ports of each spine for cables to other groups.
    pub global_per_spine: usize,
    /// Number of groups, 2 to the global ports of a group plus 1. Default: the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<usize>,
    /// Groups that the global ports lead to.
    #[serde(default)]
    pub wiring: GlobalWiring,
    /// Cables of hosts, where they differ from the section `link`.
    #[serde(default, skip_serializing_if = "Cable::is_default")]
    pub host_link: Cable,
    /// Cables within a group, where they differ from the section `link`.
    #[serde(default, skip_serializing_if = "Cable::is_default")]
    pub local_link: Cable,
    /// Cables between groups, where they differ from the section `link`.
    #[serde(default, skip_serializing_if = "Cable::is_default")]
    pub global_link: Cable,
}

impl DragonflyPlus {
    fn as_groups(&self) -> Groups {
        let most = product(&[self.spines_per_group, self.global_per_spine]);
        Groups {
            generator: Self::NAME,
            groups: self
                .groups
                .unwrap_or_else(|| most.unwrap_or(usize::MAX - 1) + 1),
            switches: self.spines_per_group,
            global: self.global_per_spine,
            wiring: self.wiring,
        }
    }

    fn validate(&self) -> Result<(), FabricError> {
        let of = |key| Parameter {
            generator: Self::NAME,
            key,
        };
        of("leaves-per-group").positive(self.leaves_per_group)?;
        of("spines-per-group").positive(self.spines_per_group)?;
        of("hosts-per-leaf").positive(self.hosts_per_leaf)?;
        let groups = self.as_groups();
        groups.validate("global-per-spine")?;
        of("hosts-per-leaf").ports(Some(self.hosts_per_leaf), self.spines_per_group)?;
        of("global-per-spine").ports(Some(self.global_per_spine), self.leaves_per_group)?;
        let leaves = product(&[self.leaves_per_group, self.hosts_per_leaf + 1]);
        let nodes = leaves.and_then(|nodes| nodes.checked_add(self.spines_per_group));
        of("groups").nodes(nodes.and_then(|nodes| nodes.checked_mul(groups.groups)))
    }
}

impl Generator for DragonflyPlus {
    fn default_routing(&self) -> Routing {
        GroupMinimal {}.into()
    }

    fn group(&self, switch: SwitchId) -> Option<u32> {
        Some((switch.index() / (self.leaves_per_group + self.spines_per_group)) as u32)
    }

    /// Upwards, between groups, downwards: minimal paths need one lane.
    fn cable_kinds(&self, fabric: &Fabric) -> IdVec<PortId, u8> {
        let size = self.leaves_per_group + self.spines_per_group;
        let is_leaf = |switch: SwitchId| switch.index() % size < self.leaves_per_group;
        kinds_between(fabric, |from, to| match (is_leaf(from), is_leaf(to)) {
            (true, _) => 1,
            (false, false) => 2,
            (false, true) => 3,
        })
    }

    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        self.validate()?;
        let groups = self.as_groups();
        let (leaf_count, spine_count) = (self.leaves_per_group, self.spines_per_group);
        let hosts = self.hosts_per_leaf;
        let mut builder = FabricBuilder::new();
        let (mut leaves, mut spines) = (Vec::new(), Vec::new());
        for group in 0..groups.groups {
            let group = switch_name("group", group, groups.groups);
            for index in 0..leaf_count {
                let name = switch_name(&format!("{group}-leaf"), index, leaf_count);
                leaves.push(builder.add_switch(name, hosts + spine_count)?);
            }
            for index in 0..spine_count {
                let name = switch_name(&format!("{group}-spine"), index, spine_count);
                spines.push(builder.add_switch(name, leaf_count + self.global_per_spine)?);
            }
        }
        let host_link = self.host_link.or(link);
        attach_hosts(&mut builder, Self::NAME, &leaves, hosts, host_link)?;
        let local_link = self.local_link.or(link);
        for (leaves, spines) in leaves.chunks(leaf_count).zip(spines.chunks(spine_count)) {
            for (down, leaf) in leaves.iter().enumerate() {
                for (up, spine) in spines.iter().enumerate() {
                    let here = port_number(hosts + up + 1, Self::NAME)?;
                    let there = port_number(down + 1, Self::NAME)?;
                    builder.connect(leaf.port(here), spine.port(there), local_link)?;
                }
            }
        }
        groups.connect(&mut builder, &spines, leaf_count, self.global_link.or(link))?;
        builder.build()
    }
}
