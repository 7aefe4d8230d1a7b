//! Rounds of a collective operation whose data go in several pieces, or in messages of different sizes.

use std::sync::Arc;

use silvan_core::Span;

use crate::programs::collective::{Algorithm, Collective, direct, pairwise};
use crate::programs::draft::{COMPUTE, Draft, Member, Pipeline};
use crate::programs::op::{Group, Op};
use crate::programs::schedule::{Action, Schedule};
use crate::programs::trace::COLLECTIVE_TAG;

/// A collective operation of all ranks after computing, in pieces.
pub fn collective(
    collective: Collective,
    pipeline: Pipeline,
    ranks: u32,
    compute: Span,
) -> Vec<Arc<Schedule>> {
    rounds(ranks, compute, |draft, member| {
        draft.collective(collective, pipeline, member, &[0]);
    })
}

/// An all-to-all of all ranks after computing, with a size for each message: by sender, then by receiver.
pub fn alltoallv(sizes: &[Vec<u64>], algorithm: Algorithm, compute: Span) -> Vec<Arc<Schedule>> {
    let bytes = |from: u32, to: u32| sizes[from as usize][to as usize];
    let group = Group::all(sizes.len() as u32);
    rounds(group.size, compute, |draft, member| {
        let mut ops: Vec<Op> = Vec::new();
        match algorithm {
            Algorithm::Direct => direct::alltoall(&mut ops, group, member.place, &bytes),
            _ => pairwise::alltoallv(&mut ops, group, member.place, &bytes),
        }
        draft.strand(&ops, member, 0);
    })
}

fn rounds(
    ranks: u32,
    compute: Span,
    mut write: impl FnMut(&mut Draft, &Member<'_>),
) -> Vec<Arc<Schedule>> {
    let all: Vec<u32> = (0..ranks).collect();
    let mut rank = |place: u32| {
        let mut draft = Draft::default();
        draft.add(Action::Calc(compute), COMPUTE, 0, &[]);
        let member = Member {
            ranks: &all,
            place,
            tag: COLLECTIVE_TAG,
            line: 0,
        };
        write(&mut draft, &member);
        let schedule = draft.finish();
        Arc::new(schedule.expect("an operation waits for earlier ones only"))
    };
    (0..ranks).map(&mut rank).collect()
}
