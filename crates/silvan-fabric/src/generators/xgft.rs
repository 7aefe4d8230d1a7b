use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attached::Parameter;
use super::{Generator, host_name, port_number, switch_name};
use crate::{Cable, Fabric, FabricBuilder, FabricError, LinkKind};

/// An extended generalised fat tree XGFT(h; m_1, ..., m_h; w_1, ..., w_h).
///
/// Hosts are level 0, switches levels 1 to h. A node of level i has m_i children below it, and a
/// node of level i - 1 has w_i parents above it. The label of a level-l switch has two parts:
/// digits a_h ... a_(l+1) with a_i < m_i for its subtree, and digits b_l ... b_1 with b_i < w_i for
/// its place among the subtree's parallel roots. It is cabled to the w_(l+1) switches one level up
/// whose digits differ only at position l + 1, with any b in the place of its a (S. R. Öhring, M.
/// Ibel, S. K. Das, M. J. Kumar: On generalized fat trees, IPPS 1995).
///
/// So there are m_1 m_2 ... m_h hosts and m_(l+1) ... m_h w_1 ... w_l switches of level l.
///
/// The children of a level-l switch are on its ports 1 to m_l in the order of a_l, its parents on
/// the ports after that in the order of b_(l+1). Switches of level 1 are named `leaf-..`, those of
/// the highest level `spine-..`, those between `mid2-..`, `mid3-..` by their level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Xgft {
    /// m_1 to m_h: children per switch, from the leaves upwards.
    pub children: Vec<usize>,
    /// w_1 to w_h: parents per node, from the hosts upwards. w_1 has to be 1: a host has one port. A level is
    /// oversubscribed by m_l / w_(l+1) where that is more than 1.
    pub parents: Vec<usize>,
    /// Cables of each level that differ from the section `link`, from those of the hosts upwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Cable>,
}

impl Generator for Xgft {
    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        self.validate()?;
        let levels = self.children.len();
        let mut builder = FabricBuilder::new();

        let mut below = Vec::new();
        for level in 1..=levels {
            let count = self.nodes_at(level);
            let stem = match level {
                1 => "leaf".to_owned(),
                _ if level == levels => "spine".to_owned(),
                _ => format!("mid{level}"),
            };
            let ports = self.children[level - 1] + self.parents_of(level);
            let switches = (0..count)
                .map(|index| builder.add_switch(switch_name(&stem, index, count), ports))
                .collect::<Result<Vec<_>, _>>()?;
            below.push(switches);
        }
        let switches = below;
        let host_count = self.nodes_at(0);
        let hosts = (0..host_count)
            .map(|index| builder.add_host(host_name(index, host_count)))
            .collect::<Result<Vec<_>, _>>()?;

        for level in 0..levels {
            let link = self.links.get(level).map_or(link, |cable| cable.or(link));
            let children = if level == 0 {
                &hosts
            } else {
                &switches[level - 1]
            };
            let first_up_port = if level == 0 {
                1
            } else {
                self.children[level - 1] + 1
            };
            for (index, child) in children.iter().enumerate() {
                for up in 0..self.parents_of(level) {
                    let (parent, position) = self.parent(level, index, up);
                    let child_port = child.port(port_number(first_up_port + up, Self::NAME)?);
                    let parent_port =
                        switches[level][parent].port(port_number(position + 1, Self::NAME)?);
                    builder.connect(child_port, parent_port, link)?;
                }
            }
        }
        builder.build()
    }
}

impl Xgft {
    fn validate(&self) -> Result<(), FabricError> {
        let of = |key| Parameter {
            generator: Self::NAME,
            key,
        };
        let levels = self.children.len();
        if levels == 0 || levels != self.parents.len() {
            let problem = format!(
                "{levels} numbers of children and {} of parents, each needs one per level",
                self.parents.len()
            );
            let hint = "write e.g. children = [18, 36] with parents = [1, 18]";
            return Err(of("children").bad(problem, hint));
        }
        for (key, numbers) in [("children", &self.children), ("parents", &self.parents)] {
            if numbers.contains(&0) {
                let problem = "every number of children and of parents must be positive";
                return Err(of(key).bad(problem, "write 1 or more for each level"));
            }
        }
        if self.parents[0] != 1 {
            let problem = format!(
                "the first number of parents is {}, it must be 1: a host has one port",
                self.parents[0]
            );
            return Err(of("parents").bad(problem, "write 1 for the first"));
        }
        if self.links.len() > levels {
            let problem = format!("{} kinds of links for {levels} levels", self.links.len());
            return Err(of("links").bad(problem, format!("give at most {levels}")));
        }
        let counts = (0..=levels).map(|level| self.checked_nodes_at(level));
        of("children").nodes(counts.sum::<Option<usize>>())
    }

    fn parents_of(&self, level: usize) -> usize {
        self.parents.get(level).copied().unwrap_or(0)
    }

    /// m_(l+1) ... m_h w_1 ... w_l.
    fn checked_nodes_at(&self, level: usize) -> Option<usize> {
        self.children[level..]
            .iter()
            .chain(&self.parents[..level])
            .try_fold(1_usize, |product, factor| product.checked_mul(*factor))
    }

    fn nodes_at(&self, level: usize) -> usize {
        self.children[level..].iter().product::<usize>() * self.roots_at(level)
    }

    fn roots_at(&self, level: usize) -> usize {
        self.parents[..level].iter().product()
    }

    /// The parent behind cable `up`, and the child's place there. A node's index is its a digits as a number (a_(l+1)
    /// least significant) times the parallel roots, plus its b digits (b_1 least significant).
    fn parent(&self, level: usize, index: usize, up: usize) -> (usize, usize) {
        let roots = self.roots_at(level);
        let (subtree, root) = (index / roots, index % roots);
        let (parent_subtree, position) = (
            subtree / self.children[level],
            subtree % self.children[level],
        );
        let parent = parent_subtree * self.roots_at(level + 1) + up * roots + root;
        (parent, position)
    }
}
