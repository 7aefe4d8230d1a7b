use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{IdVec, PortId};

use super::attached::{Parameter, attach_hosts, product};
use super::{FullRows, Generator, port_number};
use crate::routing::{DimensionOrder, Routing, kinds_between};
use crate::{Cable, Fabric, FabricBuilder, FabricError, LinkKind};

/// A HyperX: switches at the points of a grid, each cabled to all others of its row in every dimension (J. H. Ahn, N.
/// Binkert, A. Davis, M. McLaren, R. S. Schreiber, "HyperX: topology, routing, and packaging of efficient
/// large-scale networks", SC 2009, section 3). With one cable per pair it is a Hamming graph, with two switches per
/// dimension a hypercube, and with equal sizes a flattened butterfly.
///
/// Ports 1 to h have hosts; then dimension by dimension the others of the row in order, each with all its cables.
/// Switches are named after their coordinates, `switch-2-0` is the third of the first row; the first
/// dimension varies fastest in the order of switches and hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HyperX {
    /// Switches along each dimension, at least 2.
    pub sizes: Vec<usize>,
    /// Hosts at each switch.
    pub hosts_per_switch: usize,
    /// Cables between two switches of a row, one number for each dimension. Default: 1 for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cables: Vec<usize>,
    /// Cables of hosts, where they differ from the section `link`.
    #[serde(default, skip_serializing_if = "Cable::is_default")]
    pub host_link: Cable,
    /// Cables of each dimension that differ from the section `link`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Cable>,
}

impl HyperX {
    fn as_rows(&self) -> FullRows {
        FullRows {
            sizes: self.sizes.clone(),
            cables: self.cables.clone(),
            hosts_per_switch: self.hosts_per_switch,
        }
    }

    fn ports_before(&self, dimension: usize) -> Option<usize> {
        let full = self.as_rows();
        let rows = self.sizes[..dimension].iter().enumerate();
        rows.map(|(dimension, size)| product(&[size - 1, full.cables_along(dimension)]))
            .try_fold(0_usize, |sum, ports| sum.checked_add(ports?))
    }

    fn validate(&self) -> Result<usize, FabricError> {
        let of = |key| Parameter {
            generator: Self::NAME,
            key,
        };
        let dimensions = self.sizes.len();
        if dimensions == 0 {
            let problem = "no sizes, it must have one per dimension";
            return Err(of("sizes").bad(problem, "write e.g. [4, 4]"));
        }
        if let Some(size) = self.sizes.iter().find(|size| **size < 2) {
            let problem = format!("a dimension of {size} switches, it must have 2 or more");
            return Err(of("sizes").bad(problem, "write 2 or more for each dimension"));
        }
        of("hosts-per-switch").positive(self.hosts_per_switch)?;
        let problem = |given| format!("{given} entries for {dimensions} dimensions");
        let (cables, links) = (self.cables.len(), self.links.len());
        if cables != 0 && cables != dimensions {
            let hint = format!("give {dimensions}, one for each dimension");
            return Err(of("cables").bad(problem(cables), hint));
        }
        if links > dimensions {
            let hint = format!("give at most {dimensions}");
            return Err(of("links").bad(problem(links), hint));
        }
        if self.cables.contains(&0) {
            let problem = "a dimension with 0 cables between its switches";
            return Err(of("cables").bad(problem, "write 1 or more for each dimension"));
        }
        let ports = of("sizes").ports(self.ports_before(dimensions), self.hosts_per_switch)?;
        let nodes = product(&self.sizes).and_then(|n| n.checked_mul(self.hosts_per_switch + 1));
        of("sizes").nodes(nodes)?;
        Ok(ports)
    }
}

impl Generator for HyperX {
    fn default_routing(&self) -> Routing {
        DimensionOrder {}.into()
    }

    fn full_rows(&self) -> Option<FullRows> {
        Some(self.as_rows())
    }

    /// The dimension, from 1.
    fn cable_kinds(&self, fabric: &Fabric) -> IdVec<PortId, u8> {
        kinds_between(fabric, |from, to| {
            let (mut here, mut there) = (from.index(), to.index());
            let mut kind = 1;
            for size in &self.sizes {
                if here % size != there % size {
                    break;
                }
                here /= size;
                there /= size;
                kind += 1;
            }
            kind.min(15)
        })
    }

    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        let ports = self.validate()?;
        let count: usize = self.sizes.iter().product();
        let mut builder = FabricBuilder::new();
        let switches = (0..count)
            .map(|index| builder.add_switch(self.switch_name(index), ports))
            .collect::<Result<Vec<_>, _>>()?;
        let hosts = self.hosts_per_switch;
        let host_link = self.host_link.or(link);
        attach_hosts(&mut builder, Self::NAME, &switches, hosts, host_link)?;
        let mut stride = 1;
        for (dimension, &size) in self.sizes.iter().enumerate() {
            let link = self.links.get(dimension).map_or(link, |own| own.or(link));
            let cables = self.as_rows().cables_along(dimension);
            let before = hosts + self.ports_before(dimension).unwrap_or_default();
            for index in 0..count {
                let at = index / stride % size;
                for other in at + 1..size {
                    let peer = index + (other - at) * stride;
                    for cable in 1..=cables {
                        let here = port_number(before + (other - 1) * cables + cable, Self::NAME)?;
                        let there = port_number(before + at * cables + cable, Self::NAME)?;
                        let ends = (switches[index].port(here), switches[peer].port(there));
                        builder.connect(ends.0, ends.1, link)?;
                    }
                }
            }
            stride *= size;
        }
        builder.build()
    }
}

impl HyperX {
    fn switch_name(&self, index: usize) -> String {
        let mut rest = index;
        self.sizes.iter().fold("switch".to_owned(), |name, size| {
            let name = format!("{name}-{}", rest % size);
            rest /= size;
            name
        })
    }
}
