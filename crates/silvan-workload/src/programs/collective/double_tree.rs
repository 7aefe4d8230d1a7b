//! Binary trees between servers, with chains of the ranks of a server: P. Sanders, J. Speck, J. L. Träff, "Two-tree
//! algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35:12, 2009.

use super::{Collective, CollectiveAlgorithm, Operation, receive, rounds, send};
use crate::programs::op::{Group, Op};

/// The algorithm.
#[derive(Debug)]
pub struct DoubleTree;

impl CollectiveAlgorithm for DoubleTree {
    fn operations(&self) -> &'static [Operation] {
        &[Operation::Allreduce]
    }

    fn append(&self, out: &mut Vec<Op>, group: Group, me: u32, collective: &Collective) {
        let local = servers_of(group.size, collective.local);
        let (parent, children) = family(group.size, local, me);
        let bytes = collective.bytes;
        for child in &children {
            receive(out, group.rank(*child), bytes);
        }
        if !children.is_empty() {
            out.push(Op::Wait);
        }
        if let Some(parent) = parent {
            send(out, group.rank(parent), bytes);
            out.push(Op::Wait);
            receive(out, group.rank(parent), bytes);
            out.push(Op::Wait);
        }
        for child in &children {
            send(out, group.rank(*child), bytes);
        }
        if !children.is_empty() {
            out.push(Op::Wait);
        }
    }

    fn most_ops(&self, ranks: u32) -> u64 {
        6 * (rounds(ranks) + 1)
    }
}

/// Ranks of a server: 1 where they do not divide the group.
fn servers_of(ranks: u32, local: u32) -> u32 {
    match local > 0 && ranks % local == 0 {
        true => local,
        false => 1,
    }
}

/// Parent and children of a place: the next places of its server, and those of the binary tree at the server's first.
fn family(ranks: u32, local: u32, me: u32) -> (Option<u32>, Vec<u32>) {
    let (server, index) = (me / local, me % local);
    let mut children = Vec::new();
    if index + 1 < local {
        children.push(me + 1);
    }
    if index > 0 {
        return (Some(me - 1), children);
    }
    let servers = ranks / local;
    let (parent, below) = in_order(servers, server);
    children.extend(below.into_iter().map(|child| child * local));
    (parent.map(|parent| parent * local), children)
}

/// A binary tree in which place 0 is the root, and the others are in order: odd places are leaves.
fn in_order(places: u32, me: u32) -> (Option<u32>, Vec<u32>) {
    if me == 0 {
        let top = places.next_power_of_two() / 2;
        return (None, if places > 1 { vec![top] } else { Vec::new() });
    }
    let bit = 1 << me.trailing_zeros();
    let right = (me ^ bit) | (bit << 1);
    let parent = if right < places { right } else { me ^ bit };
    let mut children = Vec::new();
    if bit > 1 {
        children.push(me - bit / 2);
        // The right subtree is cut off where there are no more places.
        let mut step = bit / 2;
        while step > 0 && me + step >= places {
            step /= 2;
        }
        if step > 0 {
            children.push(me + step);
        }
    }
    (Some(parent), children)
}

/// The second tree of a pair: its inner places are the leaves of the first. Each place of the list is that of a member.
pub(crate) fn mirrored(ranks: u32, local: u32) -> Vec<u32> {
    let local = servers_of(ranks, local);
    let servers = ranks / local;
    let other = |server: u32| match servers % 2 {
        0 => servers - 1 - server,
        _ => (server + servers - 1) % servers,
    };
    (0..ranks)
        .map(|place| other(place / local) * local + place % local)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every place but the root is a child of its parent; no place has more than two children, and depth is logarithmic.
    #[test]
    fn trees_are_binary_and_consistent() {
        for places in 1..200 {
            let all: Vec<_> = (0..places).map(|place| in_order(places, place)).collect();
            for (place, (parent, children)) in (0..).zip(&all) {
                assert!(children.len() <= 2);
                for child in children {
                    assert_eq!(all[*child as usize].0, Some(place), "{places} places");
                }
                match parent {
                    None => assert_eq!(place, 0),
                    Some(parent) => assert!(all[*parent as usize].1.contains(&place)),
                }
                let (mut at, mut depth) = (place, 0);
                while let Some(parent) = all[at as usize].0 {
                    (at, depth) = (parent, depth + 1);
                }
                assert!(depth <= rounds(places), "{place} of {places}");
            }
        }
    }

    /// With an even number of places, no place has two children in both trees.
    #[test]
    fn inner_places_of_one_tree_are_leaves_of_the_other() {
        for places in (2..100).step_by(2) {
            let other = mirrored(places, 1);
            for place in 0..places {
                let here = in_order(places, place).1.len();
                let seat = other.iter().position(|one| *one == place).unwrap_or(0) as u32;
                let there = in_order(places, seat).1.len();
                assert_eq!(here.min(there), 0, "{place} of {places}");
            }
        }
    }
}
