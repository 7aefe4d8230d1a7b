use std::collections::BTreeMap;

use super::super::{COLLECTIVE_TAG, TraceError};
use super::nodes::wrong;
use super::{Node, NodeWork, Trace};

pub(super) fn check(trace: &Trace) -> Result<(), TraceError> {
    let ranks = trace.ranks.len();
    let mut counts: BTreeMap<(u32, u32, u32), (u64, u64)> = BTreeMap::new();
    let ends = |rank: usize, node: &Node| match node.work {
        NodeWork::Send { to, tag, .. } => Some((rank as u32, to, tag, false)),
        NodeWork::Receive { from, tag, .. } => Some((from, rank as u32, tag, true)),
        _ => None,
    };
    for (rank, nodes) in trace.ranks.iter().enumerate() {
        for node in nodes {
            let Some((from, to, tag, receives)) = ends(rank, node) else {
                continue;
            };
            let partner = if receives { from } else { to };
            let label = format!("rank {rank}, {}", node.label());
            if partner as usize >= ranks {
                let message =
                    format!("{label}: rank {partner} is out of range: the trace has {ranks}");
                return Err(wrong(rank, message, "name the files of all ranks"));
            }
            if partner as usize == rank {
                let message = format!("{label}: a rank that sends to itself");
                return Err(wrong(rank, message, "use a node that computes"));
            }
            if tag >= COLLECTIVE_TAG {
                let message = format!("{label}: tag {tag} is not below {COLLECTIVE_TAG}");
                return Err(wrong(rank, message, "use smaller tags"));
            }
            let count = counts.entry((from, to, tag)).or_default();
            match receives {
                true => count.1 += 1,
                false => count.0 += 1,
            }
        }
    }
    for (rank, nodes) in trace.ranks.iter().enumerate() {
        for node in nodes.iter().rev() {
            let Some((from, to, tag, receives)) = ends(rank, node) else {
                continue;
            };
            let (sent, received) = counts[&(from, to, tag)];
            let message = match receives {
                true if received > sent => {
                    format!("a receive without a send: rank {from} sends {sent}")
                }
                false if sent > received => {
                    format!("a send without a receive: rank {to} receives {received}")
                }
                _ => continue,
            };
            let message = format!(
                "rank {rank}, {}: {message} of {} messages with tag {tag}",
                node.label(),
                sent.max(received)
            );
            return Err(wrong(
                rank,
                message,
                "give it its other end, or leave it out",
            ));
        }
    }
    Ok(())
}
