use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::SwitchId;

use super::attached::{Parameter, attach_hosts, product};
use super::groups::{GlobalWiring, Groups};
use super::{Generator, port_number, switch_name};
use crate::routing::{GroupMinimal, Routing};
use crate::{Cable, Fabric, FabricBuilder, FabricError, LinkKind};

/// A dragonfly: groups of a switches, each with p hosts and h global cables; in a group each switch is
/// cabled to each other (J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable dragonfly topology",
/// ISCA 2008, section 3.1). It is balanced if a = 2p = 2h.
///
/// Every pair of groups has the same number of cables, a h / (g - 1) rounded down; global ports beyond those are empty.
///
/// Ports 1 to p have hosts, the next a - 1 the other switches of the group in order, the last h
/// global cables. Switch 2 of group 1 is `group-01-switch-02`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Dragonfly {
    /// a: switches of a group.
    pub switches_per_group: usize,
    /// p: hosts at each switch.
    pub hosts_per_switch: usize,
    /// h: ports of each switch for cables to other groups.
    pub global_per_switch: usize,
    /// g: number of groups, 2 to a h + 1. Default: a h + 1.
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

impl Dragonfly {
    fn as_groups(&self) -> Groups {
        let most = product(&[self.switches_per_group, self.global_per_switch]);
        Groups {
            generator: Self::NAME,
            groups: self
                .groups
                .unwrap_or_else(|| most.unwrap_or(usize::MAX - 1) + 1),
            switches: self.switches_per_group,
            global: self.global_per_switch,
            wiring: self.wiring,
        }
    }

    fn validate(&self) -> Result<(), FabricError> {
        let of = |key| Parameter {
            generator: Self::NAME,
            key,
        };
        of("switches-per-group").positive(self.switches_per_group)?;
        of("hosts-per-switch").positive(self.hosts_per_switch)?;
        let groups = self.as_groups();
        groups.validate("global-per-switch")?;
        let between = of("switches-per-group")
            .ports(Some(self.switches_per_group - 1), self.global_per_switch)?;
        of("hosts-per-switch").ports(Some(self.hosts_per_switch), between)?;
        let nodes = product(&[
            groups.groups,
            self.switches_per_group,
            self.hosts_per_switch + 1,
        ]);
        of("groups").nodes(nodes)
    }
}

impl Generator for Dragonfly {
    fn default_routing(&self) -> Routing {
        GroupMinimal {}.into()
    }

    fn group(&self, switch: SwitchId) -> Option<u32> {
        Some((switch.index() / self.switches_per_group) as u32)
    }

    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        self.validate()?;
        let groups = self.as_groups();
        let (size, hosts) = (self.switches_per_group, self.hosts_per_switch);
        let ports = hosts + size - 1 + self.global_per_switch;
        let mut builder = FabricBuilder::new();
        let names = (0..groups.groups).flat_map(|group| {
            let group = switch_name("group", group, groups.groups);
            (0..size).map(move |index| switch_name(&format!("{group}-switch"), index, size))
        });
        let switches = names
            .map(|name| builder.add_switch(name, ports))
            .collect::<Result<Vec<_>, _>>()?;
        let host_link = self.host_link.or(link);
        attach_hosts(&mut builder, Self::NAME, &switches, hosts, host_link)?;
        let local_link = self.local_link.or(link);
        for group in switches.chunks(size) {
            for (index, switch) in group.iter().enumerate() {
                for (other, peer) in group.iter().enumerate().skip(index + 1) {
                    let here = port_number(hosts + other, Self::NAME)?;
                    let there = port_number(hosts + index + 1, Self::NAME)?;
                    builder.connect(switch.port(here), peer.port(there), local_link)?;
                }
            }
        }
        let first_global = hosts + size - 1;
        groups.connect(
            &mut builder,
            &switches,
            first_global,
            self.global_link.or(link),
        )?;
        builder.build()
    }
}
