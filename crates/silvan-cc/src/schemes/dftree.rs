//! dFtree, lanes that follow hotspots (W. L. Guay, S.-A. Reinemo, O. Lysne, T. Skeie, "dFtree: a fat-tree routing
//! algorithm using dynamic allocation of virtual lanes to alleviate congestion in InfiniBand networks", NDM 2011).
//!
//! Flows to a hotspot move to the *slow* lane. Here a switch marks packets for a host with more than `threshold`
//! waiting bytes, in place of the paper's subnet manager; a notified sender moves its flow for `hold`.

use silvan_core::{Bytes, Span, Time, Vl};

use crate::flow_table::{FlowTable, key};
use crate::hooks::{
    Feedback, Flow, PacketView, PerHost, PerPortVl, PortVl, QueueView, Settings, SourceControl,
    SwitchControl,
};
use crate::parameters;
use crate::schemes::variant::{Cost, FabricFacts, Family, Variant};
use crate::schemes::{Bounds, DataPlane, Defaults, Scheme, SchemeError, Search, Setup};

parameters! {
    /// dFtree; the paper's times are those of a manager that polls, and not given.
    pub struct Dftree {
        /// Bytes that wait for a host, from which on it is a hotspot; by default half the input buffer of a switch port.
        threshold: Option<Bytes> {
            default: None,
            bounds: Bounds::SOME_BYTES,
            example: "\"32 KiB\"",
            search: Search::SCALED,
        }
        /// Time that a flow stays in the slow lane after its last notification.
        hold: Span {
            default: Span::from_ms(1),
            bounds: Bounds::Time,
            search: Search::SCALED,
        }
    }
}

const SLOW: u8 = 1;
const FAST: u8 = 0;

/// Threshold and queue length of a port to a host; the end of a flow's time in the slow lane.
const COST: Cost = Cost::new(8, 0, 4, "notifications");

impl Scheme for Dftree {
    type Switch = HotspotMarker;
    type Source = LaneByHotspot;

    const DEFAULTS: Defaults = Defaults {
        coalesce: Some(Span::from_us(50)),
        ..Defaults::CNP
    };

    fn fill_in(&mut self, data_plane: &DataPlane) {
        let half = data_plane.switch_buffer.as_u64() / 2;
        self.threshold.get_or_insert(Bytes::from_bytes(half.max(1)));
    }

    const FAMILY: Family = Family::Lanes;

    fn variants(_: &FabricFacts<'_>) -> Vec<Variant> {
        let summary =
            "a lane for flows to hotspots, which shares the buffer with that of all others";
        vec![Variant::new("dftree", summary, COST).lanes(2)]
    }

    fn check_setup(&self, setup: &Setup<'_>) -> Result<(), SchemeError> {
        if setup.routes_use_lanes {
            return Err(SchemeError::new(
                "threshold",
                "the routing keeps paths from deadlock by their lanes, which hotspots would change",
                "choose a fabric that needs no lanes, such as a fat tree, or another scheme",
            ));
        }
        if setup.data_vls <= SLOW {
            return Err(SchemeError::new(
                "threshold",
                "there is one data lane, and hotspots need a separate lane",
                "set vl.data-vls to 2 or more",
            ));
        }
        Ok(())
    }

    fn idle_reason(&self) -> Option<String> {
        Some(format!(
            "no queue to a host reached threshold, {}",
            self.threshold?
        ))
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(HotspotMarker, LaneByHotspot), SchemeError> {
        let to_host =
            |port: &Option<crate::schemes::SwitchPort>| port.is_some_and(|port| port.to_host);
        let lanes = usize::from(setup.data_vls);
        let threshold = self.threshold.map_or(u64::MAX, Bytes::as_u64);
        let switch = HotspotMarker {
            threshold: u32::try_from(threshold).unwrap_or(u32::MAX),
            to_host: setup
                .ports
                .iter()
                .flat_map(|port| std::iter::repeat_n(to_host(port), lanes))
                .collect(),
            marked: vec![0; setup.ports.len() * lanes],
        };
        let source = LaneByHotspot {
            hold: self.hold,
            hot_until: vec![FlowTable::new(); setup.hosts],
        };
        Ok((switch, source))
    }
}

/// The switches: those that hosts are connected to mark what waits too long for one.
#[derive(Clone, Debug)]
pub struct HotspotMarker {
    threshold: u32,
    to_host: Vec<bool>,
    marked: Vec<u64>,
}

impl SwitchControl for HotspotMarker {
    #[inline]
    fn on_departure(&mut self, _: Time, output: PortVl, queue: QueueView, _: PacketView) -> bool {
        let output = output.0 as usize;
        let mark = queue.queued_bytes >= self.threshold && self.to_host[output];
        self.marked[output] += u64::from(mark);
        mark
    }

    fn marked(&self, output: PortVl) -> u64 {
        self.marked[output.0 as usize]
    }
}

impl Settings for HotspotMarker {}

impl PerPortVl for HotspotMarker {}

/// The hosts.
#[derive(Clone, Debug)]
pub struct LaneByHotspot {
    hold: Span,
    hot_until: Vec<FlowTable<Time>>,
}

impl SourceControl for LaneByHotspot {
    fn needs_select_vl(&self) -> bool {
        true
    }

    fn select_vl(&mut self, now: Time, flow: Flow, _: Vl) -> Option<Vl> {
        let until = self.hot_until[flow.source.index()].get(key(flow));
        let is_hot = until.is_some_and(|until| now < *until);
        Vl::try_new(if is_hot { SLOW } else { FAST }).ok()
    }

    fn on_feedback(&mut self, now: Time, flow: Flow, feedback: Feedback) -> bool {
        if matches!(feedback, Feedback::Cnp | Feedback::Ack { becn: true, .. }) {
            let flows = &mut self.hot_until[flow.source.index()];
            let until = now.saturating_add(self.hold);
            match flows.get_mut(key(flow)) {
                Some(hot) => *hot = until,
                None => {
                    flows.insert(key(flow), until, |_, until| now < *until);
                }
            }
        }
        false
    }
}

impl Settings for LaneByHotspot {}

impl PerHost for LaneByHotspot {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use silvan_core::{PortId, PortNumber, SwitchId};

    use super::super::flows::tests::{at, flow, setup};
    use super::*;
    use crate::schemes::SwitchPort;

    fn two_lanes() -> Setup<'static> {
        Setup {
            data_vls: 2,
            ..setup()
        }
    }

    #[test]
    fn a_notified_flow_is_in_the_slow_lane_for_a_time() {
        let (_, mut source) = Dftree::default().build(&two_lanes()).unwrap();
        let lane = |source: &mut LaneByHotspot, us| {
            source.select_vl(at(us), flow(), Vl::ZERO).unwrap().as_u8()
        };
        assert_eq!(lane(&mut source, 1), FAST);
        let ack = |becn| Feedback::Ack { bytes: 1, becn };
        source.on_feedback(at(1), flow(), ack(false));
        assert_eq!(lane(&mut source, 1), FAST);
        source.on_feedback(at(2), flow(), Feedback::Cnp);
        assert_eq!(lane(&mut source, 2), SLOW);
        assert_eq!(lane(&mut source, 1_001), SLOW);
        // The hotspot is gone a millisecond after its last notification.
        assert_eq!(lane(&mut source, 1_002), FAST);
    }

    #[test]
    fn only_ports_to_hosts_mark_from_the_threshold_on() {
        let port = |number, to_host| {
            Some(SwitchPort {
                switch: SwitchId::new(0),
                number: PortNumber::new(number),
                to_host,
                peer: None,
            })
        };
        let ports = [port(1, true), port(2, false)];
        let dftree = Dftree {
            threshold: Some(Bytes::from_bytes(1_000)),
            ..Dftree::default()
        };
        let setup = Setup {
            ports: &ports,
            ..two_lanes()
        };
        let (mut switch, _) = dftree.build(&setup).unwrap();
        let packet = PacketView {
            wire_bytes: 100,
            marked: false,
            input: PortId::new(1),
            vl: Vl::ZERO,
        };
        let mut marks = |port_vl, queued_bytes| {
            let queue = QueueView {
                queued_bytes,
                has_credit: true,
            };
            switch.on_departure(at(1), PortVl(port_vl), queue, packet)
        };
        assert!(marks(0, 1_000) && marks(1, 5_000));
        assert!(!marks(0, 999) && !marks(2, 5_000) && !marks(3, 5_000));
        assert_eq!(switch.marked(PortVl(0)), 1);
    }

    #[test]
    fn what_it_cannot_work_with_is_refused() {
        let base = Dftree::default;
        assert!(base().check_setup(&two_lanes()).is_ok());
        let steps = Setup {
            routes_use_lanes: true,
            ..two_lanes()
        };
        for (setup, message) in [(setup(), "one data lane"), (steps, "from deadlock")] {
            let error = base().check_setup(&setup).unwrap_err();
            assert!(error.message.contains(message), "{error}");
        }
    }
}
