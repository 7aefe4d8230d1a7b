//! Lists of computation and communication of a training step, as AICB writes them: `csv`, one collective operation per
//! line, and SimAI's text, one layer per line.
//!
//! Groups are in Megatron's order of ranks: tensor parallel, then expert and data parallel, then pipeline stages.

mod list;
mod simai;
mod stream;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Span, decode_text};

use super::{
    COLLECTIVE_TAG, SHORTEN, TraceError, TraceFormat, TracePlace, TraceSettings, check_length,
    check_places, only,
};
use crate::programs::collective::{Algorithm, Collective, Operation, direct, pairwise};
use crate::programs::draft::{COMPUTE, Draft, HOST, MESSAGES, Member};
use crate::programs::op::Group;
use crate::programs::schedule::{Action, Schedule};
use crate::programs::stream::Stream;

/// Both formats: a list starts with its ranks in brackets, or with the names of its columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Aicb {}

impl TraceFormat for Aicb {
    fn import(&self, files: Vec<Vec<u8>>, _groups: Option<&str>) -> Result<String, TraceError> {
        Ok(decode_text(only(files)))
    }

    fn stream(
        &self,
        text: &str,
        settings: &TraceSettings,
    ) -> Result<Option<Arc<Stream>>, TraceError> {
        match &sections(text, settings)?[..] {
            [section] => Ok(stream::of(section, settings)),
            _ => Ok(None),
        }
    }

    fn schedules(
        &self,
        text: &str,
        settings: &TraceSettings,
    ) -> Result<Vec<Arc<Schedule>>, TraceError> {
        build(&sections(text, settings)?, settings)
    }

    fn warnings(&self, text: &str) -> Vec<String> {
        match list::is_list(text) {
            true => list::warning(text).into_iter().collect(),
            false => simai::warnings(text),
        }
    }
}

fn sections(text: &str, settings: &TraceSettings) -> Result<Vec<Section>, TraceError> {
    let sections = match list::is_list(text) {
        true => list::read(text, settings.places)?,
        false => simai::read(text, settings)?,
    };
    let ranks = sections.iter().map(|section| u64::from(section.ranks));
    check_places(ranks.sum(), settings)?;
    if sections.iter().all(|section| section.steps.is_empty()) {
        let message = "there is no operation in the list";
        let hint = "the file may have been cut off";
        return Err(TraceError::new(TracePlace::Whole, message, hint));
    }
    Ok(sections)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Groups {
    pub size: u32,
    pub stride: u32,
}

impl Groups {
    fn place(self, rank: u32) -> (u32, u32) {
        let place = rank / self.stride % self.size;
        (place, rank - place * self.stride)
    }

    fn members(self, first: u32) -> Vec<u32> {
        let members = (0..self.size).map(|member| first + member * self.stride);
        members.collect()
    }

    pub(crate) fn divides(self, ranks: u32) -> bool {
        let span = u64::from(self.size) * u64::from(self.stride);
        span > 0 && u64::from(ranks) % span == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CollectiveStep {
    pub operation: Operation,
    /// As the operation defines it.
    pub bytes: u64,
    pub root: u32,
    pub groups: Groups,
    pub waiter: Waiter,
    /// Additional time at its end.
    pub then: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiter {
    Next,
    Join,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    Compute(Span),
    /// The experts of a layer compute, for this long with an equal share of the tokens.
    Experts {
        layer: u32,
        span: Span,
    },
    /// Tokens go to the experts of a layer, or back.
    Tokens {
        layer: u32,
        groups: Groups,
        back: bool,
    },
    Collective(CollectiveStep),
    /// Waits for concurrent collective operations.
    Join,
    Send {
        distance: i64,
        bytes: u64,
    },
    Receive {
        distance: i64,
        bytes: u64,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub first: u32,
    pub ranks: u32,
    pub steps: Vec<(u32, Step)>,
    /// By layer: bytes that each rank sends to the experts of each place in its group.
    pub routed: Vec<Vec<u64>>,
}

pub(crate) fn build(
    sections: &[Section],
    settings: &TraceSettings,
) -> Result<Vec<Arc<Schedule>>, TraceError> {
    check_partners(sections)?;
    let kinds = kinds(sections);
    check_groups(sections, &kinds)?;
    let mut drafts: Vec<Draft> = Vec::new();
    let mut groups = BTreeMap::new();
    let mut ops = 0;
    for section in sections {
        for rank in section.first..section.first + section.ranks {
            let mut writer = Writer::new(settings, &kinds, &mut groups);
            writer.routed = &section.routed;
            for (line, step) in &section.steps {
                writer.write(rank, *line, *step)?;
            }
            if rank == section.first {
                ops += writer.draft.len() as u64 * u64::from(section.ranks);
                let line = section.steps.first().map_or(1, |(line, _)| *line);
                check_length(ops).map_err(|message| TraceError::line(line, message, SHORTEN))?;
            }
            drafts.push(writer.draft);
        }
    }
    let finish = |draft: Draft| {
        draft.finish().map(Arc::new).map_err(|_| {
            let message = "the steps of a rank wait for each other";
            TraceError::new(TracePlace::Whole, message, SHORTEN)
        })
    };
    drafts.into_iter().map(finish).collect()
}

type Members = BTreeMap<(usize, u32), (Vec<u32>, u32)>;

struct Writer<'a> {
    settings: &'a TraceSettings,
    /// In order; each kind has separate tags.
    kinds: &'a [Groups],
    groups: &'a mut Members,
    routed: &'a [Vec<u64>],
    /// Place of the rank among those of its experts.
    expert: u32,
    draft: Draft,
    last: Vec<u32>,
    /// Receives that the next step waits for, with the sender's distance.
    received: Vec<(i64, u32)>,
    /// Collective operations that the next join waits for.
    pending: Vec<u32>,
    tags: Vec<u32>,
}

impl<'a> Writer<'a> {
    fn new(settings: &'a TraceSettings, kinds: &'a [Groups], groups: &'a mut Members) -> Self {
        let share = (u32::MAX - COLLECTIVE_TAG) / (kinds.len().max(1) as u32);
        let tags = (0..kinds.len() as u32).map(|kind| COLLECTIVE_TAG + kind * share);
        Self {
            settings,
            kinds,
            groups,
            routed: &[],
            expert: 0,
            draft: Draft::default(),
            last: Vec::new(),
            received: Vec::new(),
            pending: Vec::new(),
            tags: tags.collect(),
        }
    }

    fn write(&mut self, rank: u32, line: u32, step: Step) -> Result<(), TraceError> {
        match step {
            // The two messages of an exchange do not wait for each other.
            Step::Send { distance, bytes } => {
                let to = (i64::from(rank) + distance) as u32;
                let action = Action::Send { to, bytes, tag: 0 };
                let others = self.received.iter().filter(|(from, _)| *from != distance);
                let mut after = self.last.clone();
                after.extend(others.map(|(_, op)| *op));
                self.draft.add(action, MESSAGES, line, &after);
            }
            Step::Receive { distance, bytes } => {
                let action = Action::Receive {
                    from: Some((i64::from(rank) + distance) as u32),
                    bytes,
                    tag: Some(0),
                };
                let op = self.draft.add(action, MESSAGES, line, &self.last);
                self.received.push((distance, op));
            }
            Step::Compute(span) => {
                let after = self.after();
                self.last = vec![self.draft.add(Action::Calc(span), COMPUTE, line, &after)];
            }
            Step::Collective(collective) => {
                let after = self.after();
                let end = self.collective(rank, line, collective, &after)?;
                match collective.waiter {
                    Waiter::Next => self.last = vec![end],
                    Waiter::Join => {
                        self.pending.push(end);
                        self.last = after;
                    }
                    Waiter::End => self.last = after,
                }
            }
            Step::Experts { layer, span } => {
                let routed = &self.routed[layer as usize];
                let all: u64 = routed.iter().sum();
                let own = routed[self.expert as usize] as f64 * routed.len() as f64;
                let span = Span::from_ps((span.as_ps() as f64 * own / all as f64).round() as u64);
                self.write(rank, line, Step::Compute(span))?;
            }
            Step::Tokens {
                layer,
                groups,
                back,
            } => {
                let after = self.after();
                self.last = vec![self.exchange(rank, line, (layer, groups, back), &after)?];
            }
            Step::Join => self.last.append(&mut self.pending),
        }
        Ok(())
    }

    fn exchange(
        &mut self,
        rank: u32,
        line: u32,
        (layer, groups, back): (u32, Groups, bool),
        after: &[u32],
    ) -> Result<u32, TraceError> {
        let kind = self.kinds.partition_point(|kind| *kind < groups);
        let (place, first) = groups.place(rank);
        self.expert = place;
        let members = groups.members(first);
        let routed = &self.routed[layer as usize];
        let bytes = |from: u32, to: u32| routed[if back { from } else { to } as usize];
        let mean = routed.iter().sum::<u64>() / routed.len() as u64;
        let of_group = (groups.size, self.settings.local_members(&members));
        let (algorithm, _) = self.settings.method(Operation::Alltoall, mean, of_group);
        let group = Group::all(groups.size);
        let mut ops = Vec::new();
        match algorithm {
            Algorithm::Direct => direct::alltoall(&mut ops, group, place, &bytes),
            _ => pairwise::alltoallv(&mut ops, group, place, &bytes),
        }
        let too_long = |message: String| TraceError::line(line, message, SHORTEN);
        check_length(ops.len() as u64 + self.draft.len() as u64).map_err(too_long)?;
        let member = Member {
            ranks: &members,
            place,
            tag: self.tags[kind],
            line,
        };
        self.tags[kind] += 1;
        let start = self.draft.join(line, after);
        Ok(self.draft.strand(&ops, &member, start).1)
    }

    fn after(&mut self) -> Vec<u32> {
        let received = self.received.drain(..);
        self.last.extend(received.map(|(_, op)| op));
        self.last.clone()
    }

    fn collective(
        &mut self,
        rank: u32,
        line: u32,
        step: CollectiveStep,
        after: &[u32],
    ) -> Result<u32, TraceError> {
        let (operation, bytes) = (step.operation, step.bytes);
        let kind = self.kinds.partition_point(|kind| *kind < step.groups);
        let (place, first) = step.groups.place(rank);
        let (members, local) = self.groups.entry((kind, first)).or_insert_with(|| {
            let members = step.groups.members(first);
            let local = self.settings.local_members(&members);
            (members, local)
        });
        let (algorithm, pipeline) =
            self.settings
                .method(operation, bytes, (step.groups.size, *local));
        let collective = Collective {
            operation,
            algorithm,
            bytes,
            root: step.root,
            local: *local,
        };
        let tag = self.tags[kind];
        let member = Member {
            ranks: members,
            place,
            tag,
            line,
        };
        let pieces = pipeline.count(bytes);
        let too_long = |message: String| TraceError::line(line, message, SHORTEN);
        let next = u32::try_from(u64::from(tag) + pieces);
        self.tags[kind] = next.map_err(|_| too_long(format!("{pieces} pieces are too many")))?;
        let more = pieces.saturating_mul(collective.most_ops(step.groups.size));
        check_length(more.saturating_add(self.draft.len() as u64)).map_err(too_long)?;
        let (_, end) = self.draft.collective(collective, pipeline, &member, after);
        match step.then.is_zero() {
            true => Ok(end),
            false => Ok(self.draft.add(Action::Delay(step.then), HOST, line, &[end])),
        }
    }
}

fn kinds(sections: &[Section]) -> Vec<Groups> {
    let steps = sections.iter().flat_map(|section| &section.steps);
    let mut kinds: Vec<Groups> = steps
        .filter_map(|(_, step)| match step {
            Step::Collective(CollectiveStep { groups, .. }) | Step::Tokens { groups, .. } => {
                Some(*groups)
            }
            _ => None,
        })
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Groups in several sections must agree.
fn check_groups(sections: &[Section], kinds: &[Groups]) -> Result<(), TraceError> {
    for kind in kinds {
        let span = u64::from(kind.size) * u64::from(kind.stride);
        let is_inside = |section: &Section| {
            u64::from(section.first) % span == 0 && u64::from(section.ranks) % span == 0
        };
        if sections.iter().all(is_inside) {
            continue;
        }
        let of = |section: &Section| -> Vec<(u32, (Operation, u64, u32))> {
            let steps = section.steps.iter();
            let of_kind = steps.filter_map(|(line, step)| match step {
                Step::Collective(step) if step.groups == *kind => {
                    Some((*line, (step.operation, step.bytes, step.root)))
                }
                _ => None,
            });
            of_kind.collect()
        };
        // Only the first and last stage are in the embedding's groups.
        let ranks = sections.iter().map(|section| u64::from(section.ranks));
        let ranks: u64 = ranks.sum();
        let reach = u64::from(kind.size.saturating_sub(1)) * u64::from(kind.stride);
        let has_members = |section: &&Section| {
            let (_, first) = kind.place(section.first);
            u64::from(first) + reach < ranks
        };
        let mut members = sections.iter().filter(has_members);
        let first = members.next().map(&of).unwrap_or_default();
        for section in members {
            let same = of(section);
            let differs = same
                .iter()
                .zip(&first)
                .find(|(one, other)| one.1 != other.1);
            if differs.is_some() || same.len() != first.len() {
                let line = differs.map_or(0, |(one, _)| one.0).max(1);
                let message = format!(
                    "groups of {} ranks have members in several sections, which differ in what they do",
                    kind.size
                );
                let hint =
                    "all members of a group do the same collective operations in the same order";
                return Err(TraceError::line(line, message, hint));
            }
        }
    }
    Ok(())
}

type Messages = BTreeMap<(i64, bool), (u32, u32)>;

fn messages(section: &Section) -> Messages {
    let mut counts = Messages::new();
    for &(line, step) in &section.steps {
        let message = match step {
            Step::Send { distance, .. } => (distance, false),
            Step::Receive { distance, .. } => (distance, true),
            _ => continue,
        };
        counts.entry(message).or_insert((0, line)).0 += 1;
    }
    counts
}

fn check_partners(sections: &[Section]) -> Result<(), TraceError> {
    let messages: Vec<Messages> = sections.iter().map(messages).collect();
    for (section, ours) in sections.iter().zip(&messages) {
        let mut ours: Vec<_> = ours.iter().collect();
        ours.sort_by_key(|(_, (_, line))| *line);
        for (&message, &(count, line)) in ours {
            check_partner(sections, &messages, section, count, line, message)?;
        }
    }
    Ok(())
}

fn check_partner(
    sections: &[Section],
    messages: &[Messages],
    section: &Section,
    ours: u32,
    line: u32,
    (distance, receives): (i64, bool),
) -> Result<(), TraceError> {
    let hint =
        "the list needs the ranks of all stages of the pipeline, each stage with its section";
    let (word, other) = match receives {
        true => ("receives from", "does not send as often to it"),
        false => ("sends to", "does not receive as often from it"),
    };
    let end = |section: &Section| i64::from(section.first) + i64::from(section.ranks);
    let first = i64::from(section.first) + distance;
    let last = end(section) - 1 + distance;
    let all = sections.last().map_or(0, end);
    let is_there = |partner: i64| match (0..all).contains(&partner) {
        true => Ok(()),
        false => {
            let rank = partner - distance;
            let message = format!("rank {rank} {word} rank {partner}, which is not in the list");
            Err(TraceError::line(line, message, hint))
        }
    };
    is_there(first)?;
    // Partners are consecutive: one per section suffices.
    let start = sections.partition_point(|section| end(section) <= first);
    let partners = sections.iter().zip(messages).skip(start);
    for (section, theirs) in partners.take_while(|(section, _)| i64::from(section.first) <= last) {
        let theirs = theirs.get(&(-distance, !receives));
        let theirs = theirs.map_or(0, |(count, _)| *count);
        if ours != theirs {
            let partner = first.max(i64::from(section.first));
            let rank = partner - distance;
            let message = format!(
                "rank {rank} {word} rank {partner} {ours} times, but rank {partner} {other}: {theirs} times"
            );
            return Err(TraceError::line(line, message, hint));
        }
    }
    is_there(last)
}
