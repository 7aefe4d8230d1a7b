//! Properties of any text as a GOAL schedule: here for random texts, in `fuzz/targets/goal.rs` for those of libFuzzer.

use std::sync::Arc;

use silvan_core::{Bytes, Span};
use silvan_workload::programs::trace::TracePlace;
use silvan_workload::programs::{Action, Schedule, goal};

use crate::common::{messaging, run, scheduled};

/// Largest programs that are run.
const MOST_RANKS: usize = 4;
const MOST_OPS: usize = 64;
/// Limits of a small schedule: far less than the 10 ms of the run.
const MOST_COMPUTING: Span = Span::from_ms(1);
const MOST_BYTES: u64 = 1 << 20;

/// A text is a schedule, or one mistake with its place. A schedule that is written and read again is equal. A small
/// schedule ends, or ends in a fault; it does not hang.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match goal::parse(&text) {
        Err(error) => {
            let lines = text.lines().count() as u32;
            match error.place {
                TracePlace::Whole => {}
                TracePlace::Line(line) => assert!((1..=lines).contains(&line)),
                TracePlace::Byte(_) | TracePlace::Ranks => panic!("a text has lines"),
            }
            assert!(!error.message.is_empty() && !error.message.contains('\n'));
            assert!(!error.hint.is_empty());
        }
        Ok(schedules) => {
            let written = goal::write(&schedules);
            let again = goal::parse(&written).expect("what was understood can be written");
            assert_eq!(schedules.len(), again.len());
            for (one, other) in schedules.iter().zip(&again) {
                assert_eq!(facts(one), facts(other), "{written}");
            }
            comes_to_an_end(&text, &schedules);
        }
    }
}

type Facts = (Vec<(Action, u32)>, Vec<Vec<u32>>, Vec<Vec<u32>>);

/// Everything but the lines.
fn facts(schedule: &Schedule) -> Facts {
    let ops = schedule.ops();
    let after = |waiting: &dyn Fn(u32) -> Vec<u32>| {
        let every = 0..ops.len() as u32;
        let sorted = every.map(|op| {
            let mut later = waiting(op);
            later.sort_unstable();
            later
        });
        sorted.collect()
    };
    (
        ops.iter().map(|op| (op.action, op.cpu)).collect(),
        after(&|op| schedule.after_end(op).collect()),
        after(&|op| schedule.after_start(op).collect()),
    )
}

fn comes_to_an_end(text: &str, schedules: &[Arc<Schedule>]) {
    let every = || schedules.iter().flat_map(|one| one.ops());
    let computing = every().try_fold(Span::ZERO, |sum, op| match op.action {
        Action::Calc(span) => sum.checked_add(span),
        _ => Some(sum),
    });
    let bytes = every().try_fold(0_u64, |sum, op| match op.action {
        Action::Send { bytes, .. } => sum.checked_add(bytes),
        _ => Some(sum),
    });
    let is_small = schedules.len() <= MOST_RANKS
        && every().count() <= MOST_OPS
        && computing.is_some_and(|span| span <= MOST_COMPUTING)
        && bytes.is_some_and(|bytes| bytes <= MOST_BYTES);
    if !is_small {
        return;
    }
    let mut settings = messaging();
    // Some messages ask first, and some bytes cost.
    settings.eager_limit = Bytes::from_bytes(1 << (text.len() % 13));
    settings.overhead_per_byte = Span::from_ps(text.len() as u64 % 3);
    let outcome = run(schedules.len().max(2), vec![scheduled(text)], settings);
    assert!(
        outcome.finished || outcome.fault.is_some(),
        "{text}: {outcome:?}"
    );
}
