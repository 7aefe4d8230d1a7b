use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attached::Parameter;
use super::{Generator, host_name, port_number, switch_name};
use crate::{Cable, Fabric, FabricBuilder, FabricError, LinkKind};

/// A two-level fat tree, balanced or not.
///
/// Leaves may differ in their hosts; spines may differ in number and speed of their cables. H hosts at a leaf and C
/// cables upwards give an oversubscription of H / C. A leaf has its hosts on the first ports, then its cables to the
/// spines, spine by spine; a spine has its cables leaf by leaf.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LeafSpine {
    /// Hosts at each leaf, one number for each leaf.
    pub leaf_hosts: Vec<usize>,
    /// Cables from each leaf to each spine, one number for each spine.
    pub spine_cables: Vec<usize>,
    /// Cables of hosts, where they differ from the section `link`.
    #[serde(default, skip_serializing_if = "Cable::is_default")]
    pub host_link: Cable,
    /// Cables of each spine that differ from the section `link`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spine_links: Vec<Cable>,
}

impl LeafSpine {
    fn validate(&self) -> Result<usize, FabricError> {
        let of = |key| Parameter {
            generator: Self::NAME,
            key,
        };
        let lists = [
            ("leaf-hosts", "leaf", &self.leaf_hosts),
            ("spine-cables", "spine", &self.spine_cables),
        ];
        for (key, what, numbers) in lists {
            if numbers.is_empty() {
                let problem = format!("no {what}");
                return Err(of(key).bad(problem, format!("write a number for each {what}")));
            }
            if numbers.contains(&0) {
                let problem = format!("a {what} with the number 0");
                return Err(of(key).bad(problem, format!("write 1 or more for each {what}")));
            }
        }
        let spines = self.spine_cables.len();
        if self.spine_links.len() > spines {
            let problem = format!("{} kinds of links for {spines} spines", self.spine_links.len());
            return Err(of("spine-links").bad(problem, format!("give at most {spines}")));
        }
        let sum = |numbers: &[usize]| {
            let mut numbers = numbers.iter();
            numbers.try_fold(0_usize, |sum, number| sum.checked_add(*number))
        };
        let up = of("spine-cables").ports(sum(&self.spine_cables), 0)?;
        for &hosts in &self.leaf_hosts {
            of("leaf-hosts").ports(Some(hosts), up)?;
        }
        let leaves = self.leaf_hosts.len();
        for &cables in &self.spine_cables {
            of("spine-cables").ports(cables.checked_mul(leaves), 0)?;
        }
        let hosts = self.leaf_hosts.iter().sum::<usize>();
        of("leaf-hosts").nodes(Some(hosts + leaves + spines))?;
        Ok(hosts)
    }
}

impl Generator for LeafSpine {
    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        let host_count = self.validate()?;
        let (leaf_count, spine_count) = (self.leaf_hosts.len(), self.spine_cables.len());
        let up: usize = self.spine_cables.iter().sum();
        let mut builder = FabricBuilder::new();
        let leaves = self.leaf_hosts.iter().enumerate();
        let leaves = leaves
            .map(|(index, hosts)| {
                builder.add_switch(switch_name("leaf", index, leaf_count), hosts + up)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let spines = self.spine_cables.iter().enumerate();
        let spines = spines
            .map(|(index, cables)| {
                builder.add_switch(switch_name("spine", index, spine_count), cables * leaf_count)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut number = 0;
        for (leaf, &hosts) in leaves.iter().zip(&self.leaf_hosts) {
            for port in 1..=hosts {
                let host = builder.add_host(host_name(number, host_count))?;
                let port = port_number(port, Self::NAME)?;
                builder.connect(host.port(1), leaf.port(port), self.host_link.or(link))?;
                number += 1;
            }
        }
        for (index, (leaf, &hosts)) in leaves.iter().zip(&self.leaf_hosts).enumerate() {
            let mut port = hosts;
            for (place, (spine, &cables)) in spines.iter().zip(&self.spine_cables).enumerate() {
                let link = self.spine_links.get(place).map_or(link, |own| own.or(link));
                for cable in 1..=cables {
                    port += 1;
                    let here = port_number(port, Self::NAME)?;
                    let there = port_number(index * cables + cable, Self::NAME)?;
                    builder.connect(leaf.port(here), spine.port(there), link)?;
                }
            }
        }
        builder.build()
    }
}
