//! The engine against the reference model under PFC.

use std::cell::Cell;

use proptest::prelude::*;
use silvan_core::{Bytes, Span};
use silvan_reference::Pfc;

use super::case::{Case, Load, cases};
use super::{check_drawn, drains_alike, first_difference, run_model_and_engine};
use crate::common::at;

/// A buffer in which nothing is lost.
const AMPLE: u64 = 1 << 20;

/// Thresholds of 0 to 8 packets of MTU size, with so much headroom.
fn pfc(wire: u64, headroom: impl Strategy<Value = u64>) -> impl Strategy<Value = Pfc> {
    let thresholds = (0..8 * wire).prop_flat_map(|xoff| (Just(xoff), 0..=xoff));
    let frames = (64..2 * wire, 64_u64..100);
    let delays = (0_u64..200_000, 0_u64..2_000_000);
    (thresholds, headroom, frames, delays).prop_map(
        |((xoff, xon), headroom, (max_frame, pause_frame), (interface_delay, response))| Pfc {
            xoff: Bytes::from_bytes(xoff),
            xon: Bytes::from_bytes(xon),
            buffer: Bytes::from_bytes(xoff + headroom),
            max_frame: Bytes::from_bytes(max_frame),
            pause_frame: Bytes::from_bytes(pause_frame),
            interface_delay: Span::from_ps(interface_delay),
            response: Span::from_ps(response),
        },
    )
}

fn with_pfc(load: Load, is_ample: bool) -> impl Strategy<Value = Case> {
    cases(load).prop_flat_map(move |case| {
        let wire = (case.mtu + case.parameters.header).as_u64();
        let headroom = match is_ample {
            true => Just(AMPLE).boxed(),
            false => (0..20 * wire).boxed(),
        };
        pfc(wire, headroom).prop_map(move |pfc| case.clone().with_pfc(pfc))
    })
}

/// Every packet at the same picosecond; frames, pauses and waits the same at every port.
#[test]
fn finite_flows_drain_alike_under_pfc() {
    check_drawn(96, &with_pfc(Load::Bursts(40), true), |case| {
        drains_alike(&case)
    });
}

#[test]
fn finite_flows_in_step_drain_alike_under_pfc() {
    check_drawn(96, &with_pfc(Load::Bursts(40), true), |case| {
        drains_alike(&case.in_step())
    });
}

#[test]
fn endless_flows_share_alike_under_pfc() {
    let paused = Cell::new(0);
    check_drawn(96, &with_pfc(Load::Endless, true), |case| {
        let routed = case.build();
        let (model, engine) = run_model_and_engine(&case, &routed, at(Span::from_us(150)));
        prop_assert_eq!(first_difference(&model, &engine), None);
        for port in routed.fabric.ports.ids() {
            if let Some(report) = model.port(port) {
                let counters = engine.port_counters(port);
                prop_assert_eq!(counters.pause_rcv, report.pause_frames);
                prop_assert_eq!(counters.xmit_paused, report.pause_time);
                paused.set(paused.get() + report.pause_frames);
            }
        }
        Ok(())
    });
    // The drawn cases have the intended property.
    assert!(paused.get() > 1_000, "{} frames", paused.get());
}

/// With any headroom, both models lose one packet first: equal instant, port, priority and bytes.
#[test]
fn losses_are_alike() {
    let losses = Cell::new(0);
    let cases_count = 160;
    check_drawn(cases_count, &with_pfc(Load::Endless, false), |case| {
        let routed = case.build();
        let (model, engine) = run_model_and_engine(&case, &routed, at(Span::from_us(150)));
        if model.first_loss().is_some() {
            losses.set(losses.get() + 1);
            return Ok(());
        }
        prop_assert_eq!(first_difference(&model, &engine), None);
        Ok(())
    });
    assert!((20..140).contains(&losses.get()), "{} losses", losses.get());
}
