//! Lists too long for schedules (AICB's micro tests on many ranks), as streams of steps.

use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

use super::super::{TraceSettings, check_length};
use super::{CollectiveStep, Groups, Section, Step, Waiter, Writer, kinds};
use crate::programs::collective::Collective;
use crate::programs::draft::Pipeline;
use crate::programs::stream::{Stream, StreamAction, StreamStep};

/// `None` unless schedules are too long, each step waits for the one before, and data are in one piece.
pub(super) fn of(section: &Section, settings: &TraceSettings) -> Option<Arc<Stream>> {
    let mut locals: BTreeMap<Groups, Option<u32>> = BTreeMap::new();
    let mut steps = Vec::with_capacity(section.steps.len());
    for &(line, step) in &section.steps {
        let action = match step {
            Step::Compute(span) => Some(StreamAction::Compute(span)),
            Step::Collective(step) => {
                let local = *locals
                    .entry(step.groups)
                    .or_insert_with(|| local(step.groups, section.ranks, settings));
                collective(step, local, settings)
            }
            Step::Experts { .. }
            | Step::Tokens { .. }
            | Step::Join
            | Step::Send { .. }
            | Step::Receive { .. } => None,
        };
        steps.push(StreamStep {
            line,
            action: action?,
        });
    }
    let ranks = section.ranks;
    is_too_long(section, settings).then(|| Arc::new(Stream { ranks, steps }))
}

fn collective(
    step: CollectiveStep,
    local: Option<u32>,
    settings: &TraceSettings,
) -> Option<StreamAction> {
    let (algorithm, pipeline) =
        settings.method(step.operation, step.bytes, (step.groups.size, local?));
    let follows = step.waiter == Waiter::Next && step.then.is_zero();
    if !follows || pipeline != Pipeline::default() {
        return None;
    }
    Some(StreamAction::Collective {
        collective: Collective {
            operation: step.operation,
            algorithm,
            bytes: step.bytes,
            root: step.root,
            local: local?,
        },
        size: step.groups.size,
        stride: step.groups.stride,
    })
}

fn local(groups: Groups, ranks: u32, settings: &TraceSettings) -> Option<u32> {
    let firsts = (0..ranks).filter(|rank| groups.place(*rank).0 == 0);
    let mut locals = firsts.map(|first| settings.local_members(&groups.members(first)));
    let local = locals.next()?;
    locals.all(|other| other == local).then_some(local)
}

fn is_too_long(section: &Section, settings: &TraceSettings) -> bool {
    let kinds = kinds(slice::from_ref(section));
    let mut groups = BTreeMap::new();
    let mut writer = Writer::new(settings, &kinds, &mut groups);
    section.steps.iter().any(|(line, step)| {
        let written = writer.write(section.first, *line, *step);
        let ops = writer.draft.len() as u64 * u64::from(section.ranks);
        written.is_err() || check_length(ops).is_err()
    })
}
