//! Occupancy of input buffers, as switches count it.

use std::cell::{Cell, RefCell};

use proptest::prelude::*;
use silvan_cc::hooks::{PacketView, PortVl, QueueView, Resident, SwitchControl};
use silvan_core::{Credits, PortId, Span, Time, Vl};
use silvan_reference::Occupancy;

use super::case::{Case, Load};
use super::{check, first_difference, run_with};
use crate::common::at;

/// Records occupancies of input buffers, without any effect.
#[derive(Default)]
struct Recorder {
    full: Vec<Occupancy>,
    /// Bytes taken when a packet leaves.
    departures: RefCell<Vec<(PortId, u32)>>,
}

impl SwitchControl for Recorder {
    fn needs_buffer_full(&self) -> bool {
        true
    }

    fn on_queued(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) {}

    fn on_departure(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) -> bool {
        false
    }

    fn on_buffer_full<R: Resident>(&mut self, now: Time, input: PortId, vl: Vl, resident: &mut R) {
        self.full.push(Occupancy {
            at: now,
            port: input,
            vl,
            blocks: Credits::new(resident.occupied_blocks(input, vl)),
        });
    }

    fn delays_credits(&self) -> bool {
        true
    }

    fn credit_return_delay(&self, input: PortId, occupied_bytes: u32, _: Span) -> Span {
        let mut departures = self.departures.borrow_mut();
        departures.push((input, occupied_bytes));
        Span::ZERO
    }
}

/// Both see the same buffers full, as full, at the same instants, and as much taken when packets leave. Returns how often
/// buffers were full, and how often a packet left a buffer with others in it.
fn compare(case: &Case) -> Result<(usize, usize), TestCaseError> {
    let routed = case.build();
    let (model, engine) = run_with(case, &routed, Recorder::default(), at(Span::from_us(100)));
    prop_assert_eq!(first_difference(&model, &engine), None);
    let recorder = engine.switch_control();
    let capacity = case.parameters.switch.buffer.as_u64() / 64;
    let packet = (case.mtu + case.parameters.header).as_u64().div_ceil(64);
    let is_full = |seen: &&Occupancy| u64::from(seen.blocks.as_u32()) + packet > capacity;
    let seen = model.occupancy_at_arrivals().iter();
    let mut expected: Vec<_> = seen.filter(is_full).copied().collect();
    expected.sort_unstable();
    let mut full = recorder.full.clone();
    full.sort_unstable();
    prop_assert_eq!(&full, &expected);

    let bytes = |seen: &Occupancy| (seen.port, seen.blocks.as_u32() * 64);
    let mut expected: Vec<_> = model.occupancy_at_departures().iter().map(bytes).collect();
    expected.sort_unstable();
    let mut departures = recorder.departures.take();
    departures.sort_unstable();
    prop_assert_eq!(&departures, &expected);
    let shared = departures
        .iter()
        .filter(|seen| u64::from(seen.1) > packet * 64);
    Ok((full.len(), shared.count()))
}

fn agrees(load: Load, restrict: fn(Case) -> Case) {
    let counts = Cell::new((0, 0));
    check(64, load, |case| {
        let (full, shared) = compare(&restrict(case))?;
        let before = counts.get();
        counts.set((before.0 + full, before.1 + shared));
        Ok(())
    });
    let (full, shared) = counts.get();
    assert!(full > 1000 && shared > 1000, "{full}, {shared}");
}

#[test]
fn switches_know_their_buffers_alike() {
    agrees(Load::Endless, |case| case);
}

/// The order of simultaneous events decides.
#[test]
fn switches_know_their_buffers_alike_in_step() {
    agrees(Load::Endless, Case::in_step);
}
