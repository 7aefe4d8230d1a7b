//! Fat trees: extended generalised fat trees and their well-known special cases.

use silvan_core::Lid;

use super::{host_name, port_number, switch_name};
use crate::{Fabric, FabricBuilder, FabricError, LinkKind};

/// An extended generalised fat tree XGFT(h; m_1, ..., m_h; w_1, ..., w_h).
///
/// Hosts are level 0, switches levels 1 to h. A node of level i has m_i children below it, and a
/// node of level i - 1 has w_i parents above it. A level-l switch is labelled by the digits
/// a_h ... a_(l+1) with a_i < m_i, which subtree it is in, and b_l ... b_1 with b_i < w_i, which of
/// the subtree's parallel roots it is. It is cabled to the w_(l+1) switches one level up that have
/// the same digits but for position l + 1, where its a gives way to any b (S. R. Öhring, M. Ibel,
/// S. K. Das, M. J. Kumar: On generalized fat trees, IPPS 1995).
///
/// So there are m_1 m_2 ... m_h hosts and m_(l+1) ... m_h w_1 ... w_l switches of level l.
///
/// # Ports
///
/// The children of a level-l switch are on its ports 1 to m_l in the order of a_l, its parents on
/// the ports after that in the order of b_(l+1). Switches of level 1 are named `leaf-..`, those of
/// the highest level `spine-..`, those between `mid2-..`, `mid3-..` by their level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xgft {
    /// m_1 to m_h: children per switch, from the leaves upwards.
    pub children: Vec<usize>,
    /// w_1 to w_h: parents per node, from the hosts upwards. w_1 has to be 1: a host has one port.
    pub parents: Vec<usize>,
    /// Every cable.
    pub link: LinkKind,
}

impl Xgft {
    /// Builds the fabric.
    ///
    /// # Errors
    ///
    /// If the parameters are not h positive numbers each, w_1 is not 1, a switch would have more
    /// than 254 ports, or there are too few LIDs.
    pub fn build(&self) -> Result<Fabric, FabricError> {
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
                    let child_port = child.port(port_number(first_up_port + up, NAME)?);
                    let parent_port =
                        switches[level][parent].port(port_number(position + 1, NAME)?);
                    builder.connect(child_port, parent_port, self.link)?;
                }
            }
        }
        builder.build()
    }

    fn validate(&self) -> Result<(), FabricError> {
        let bad = |problem: String| {
            Err(FabricError::BadParameter {
                generator: NAME,
                problem,
            })
        };
        if self.children.is_empty() || self.children.len() != self.parents.len() {
            return bad(format!(
                "{} numbers of children and {} of parents, each needs one per level",
                self.children.len(),
                self.parents.len()
            ));
        }
        if self.children.contains(&0) || self.parents.contains(&0) {
            return bad("every number of children and of parents must be positive".to_owned());
        }
        if self.parents[0] != 1 {
            return bad(format!(
                "the first number of parents is {}, it must be 1: a host has one port",
                self.parents[0]
            ));
        }
        let max_nodes = usize::from(Lid::MAX_UNICAST.as_u16());
        let counts = (0..=self.children.len()).map(|level| self.checked_nodes_at(level));
        match counts.sum::<Option<usize>>() {
            Some(nodes) if nodes <= max_nodes => Ok(()),
            Some(nodes) => Err(FabricError::LidsExhausted { nodes }),
            None => bad("the number of hosts is astronomical".to_owned()),
        }
    }

    /// Parents of a node of `level`; none at the top.
    fn parents_of(&self, level: usize) -> usize {
        self.parents.get(level).copied().unwrap_or(0)
    }

    /// Number of nodes of `level`: m_(l+1) ... m_h w_1 ... w_l.
    fn checked_nodes_at(&self, level: usize) -> Option<usize> {
        self.children[level..]
            .iter()
            .chain(&self.parents[..level])
            .try_fold(1_usize, |product, factor| product.checked_mul(*factor))
    }

    fn nodes_at(&self, level: usize) -> usize {
        self.children[level..].iter().product::<usize>() * self.roots_at(level)
    }

    /// Parallel roots of one subtree whose highest level is `level`: w_1 ... w_l.
    fn roots_at(&self, level: usize) -> usize {
        self.parents[..level].iter().product()
    }

    /// The parent that the cable `up` of node `index` of `level` leads to, and which of that
    /// parent's children the node is.
    ///
    /// Index of a node: its a digits as one number (a_(l+1) least significant) times the number of
    /// parallel roots, plus its b digits as one number (b_1 least significant).
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

const NAME: &str = "xgft";

/// A k-ary n-tree: XGFT(n; k, ..., k; 1, k, ..., k), k^n hosts below n levels of k^(n-1) switches
/// (F. Petrini, M. Vanneschi: k-ary n-trees: high performance networks for massively parallel
/// architectures, IPPS 1997).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KAryNTree {
    /// Children per switch, and parents per switch below the top.
    pub k: usize,
    /// Levels of switches.
    pub n: usize,
    /// Every cable.
    pub link: LinkKind,
}

impl KAryNTree {
    /// Builds the fabric.
    ///
    /// # Errors
    ///
    /// If k or n is zero, a switch would have more than 254 ports, or there are too few LIDs.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        if self.k == 0 || self.n == 0 || self.n > 16 {
            return Err(FabricError::BadParameter {
                generator: "k-ary-n-tree",
                problem: format!(
                    "k is {} and n is {}, k must be positive and n 1 to 16",
                    self.k, self.n
                ),
            });
        }
        let mut parents = vec![self.k; self.n];
        parents[0] = 1;
        Xgft {
            children: vec![self.k; self.n],
            parents,
            link: self.link,
        }
        .build()
    }
}

/// The non-blocking 648-port fat tree of 54 36-port crossbars: 36 leaves with 18 hosts each and 18
/// spines, XGFT(2; 18, 36; 1, 18) (gran2012, section IV).
///
/// A leaf has its hosts on ports 1 to 18 and spine s on port 19 + s.
///
/// # Errors
///
/// None: the parameters are fixed and legal.
pub fn fat_tree_648(link: LinkKind) -> Result<Fabric, FabricError> {
    Xgft {
        children: vec![18, 36],
        parents: vec![1, 18],
        link,
    }
    .build()
}

/// The largest non-blocking three-level fat tree of 36-port crossbars: 36^3 / 4 = 11,664 hosts and
/// 1,620 switches, XGFT(3; 18, 18, 36; 1, 18, 18).
///
/// # Errors
///
/// None: the parameters are fixed and legal.
pub fn fat_tree_11664(link: LinkKind) -> Result<Fabric, FabricError> {
    Xgft {
        children: vec![18, 18, 36],
        parents: vec![1, 18, 18],
        link,
    }
    .build()
}

/// A non-blocking fat tree of 120 hosts, as in pft2021, section IV.B.
///
/// The text of the paper gives the number of nodes, "fat-tree" and 100 Gbit/s ports, not the
/// switches. Chosen here: 10 leaves of 12 hosts each and 12 spines, XGFT(2; 12, 10; 1, 12), the
/// two-level non-blocking tree of 120 hosts on 24-port switches.
///
/// # Errors
///
/// None: the parameters are fixed and legal.
pub fn fat_tree_120(link: LinkKind) -> Result<Fabric, FabricError> {
    Xgft {
        children: vec![12, 10],
        parents: vec![1, 12],
        link,
    }
    .build()
}
