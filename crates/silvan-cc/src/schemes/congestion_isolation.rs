//! Congestion isolation (IEEE 802.1Qcz-2023): flows that congest an output move to a separate lane; none slows down.
//!
//! A flow becomes congesting if its packet joins the *monitored* lane of a congestion root above the set point. Its
//! first packet on the *congesting* lane waits until earlier packets of its input have left.

use silvan_core::{Bytes, PortId, Span, Time, Vl};

use crate::hooks::{
    Flow, LaneView, Messages, NoControl, PacketView, PerPortVl, PortMessage, PortVl, QueueView,
    Settings, SwitchControl,
};
use crate::parameters;
use crate::schemes::variant::{Cost, FabricFacts, Family, Variant};
use crate::schemes::{Bounds, DataPlane, Declared, Defaults, Scheme, SchemeError, Search, Setup};

mod output;
#[cfg(test)]
mod tests;

use output::{Output, outputs};

parameters! {
    /// Congestion isolation; the standard leaves detection and times to those who build switches.
    pub struct CongestionIsolation {
        /// Bytes that wait for an output on the monitored lane, from which on joining flows are congesting; by default
        /// half the input buffer of a switch port.
        set_point: Option<Bytes> {
            default: None,
            bounds: Bounds::SOME_BYTES,
            example: "\"32 KiB\"",
            search: Search::SCALED,
        }
        /// Time that a flow stays on the congesting lane after the last sign of congestion. A switch repeats its
        /// message upstream after half of it.
        hold: Span {
            default: Span::from_us(100),
            search: Search::SCALED,
        }
        /// Time from the decision of a switch to that of its neighbour: cable, and both ends.
        message_delay: Span {
            default: Span::from_us(1),
            bounds: Bounds::Time,
        }
    }
}

const MONITORED: usize = 0;
const CONGESTING: usize = 1;
const LANES: usize = 2;

/// Registers: queue length of a lane; for each congesting flow, its identity (five bytes), its lane, the ends of the
/// hold and of the pause of messages, and its packets on both lanes.
const COST: Cost = Cost::new(4, 0, 18, "isolation messages");

impl Scheme for CongestionIsolation {
    type Switch = Isolator;
    type Source = NoControl;

    const DEFAULTS: Defaults = Defaults::CNP;

    fn fill_in(&mut self, data_plane: &DataPlane) {
        let half = data_plane.switch_buffer.as_u64() / 2;
        self.set_point.get_or_insert(Bytes::from_bytes(half.max(1)));
    }

    const FAMILY: Family = Family::Lanes;

    fn variants(_: &FabricFacts<'_>) -> Vec<Variant> {
        let summary = "a lane for congesting flows at each hop; both share the buffer of one";
        vec![
            Variant::new("congestion-isolation", summary, COST)
                .unless(|facts| facts.lacks_roots())
                .lanes(2)
                .unless(|facts| facts.lacks_output_queues()),
        ]
    }

    fn check(&self) -> Result<(), SchemeError> {
        self.check_bounds()?;
        if self.hold > self.message_delay {
            return Ok(());
        }
        let (hold, delay) = (self.hold, self.message_delay);
        Err(SchemeError::new(
            "hold",
            format!(
                "{hold} is not above message-delay, {delay}: a flow would return before the neighbour knows of it"
            ),
            "raise it, or lower message-delay",
        ))
    }

    fn check_setup(&self, setup: &Setup<'_>) -> Result<(), SchemeError> {
        let refused = |message: &str, hint: &str| Err(SchemeError::new("set-point", message, hint));
        if setup.routes_use_lanes {
            return refused(
                "the routing keeps paths from deadlock by their lanes, which congesting flows would change",
                "choose a fabric that needs no lanes, such as a fat tree, or another scheme",
            );
        }
        if usize::from(setup.data_vls) < LANES {
            return refused(
                "there is one data lane, and congesting flows need one of their own",
                "set vl.data-vls to 2",
            );
        }
        if !setup.waits_once {
            return refused(
                "packets wait in single queues or output buffers, where a flow that changes its lane would lose its order",
                "set switch.queueing to \"voq\", and remove switch.output-buffer",
            );
        }
        Ok(())
    }

    fn idle_reason(&self) -> Option<String> {
        Some(format!("no queue reached set-point, {}", self.set_point?))
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(Isolator, NoControl), SchemeError> {
        let set_point = self.set_point.map_or(u64::MAX, Bytes::as_u64);
        Ok((
            Isolator {
                set_point: u32::try_from(set_point).unwrap_or(u32::MAX),
                hold: self.hold,
                message_delay: self.message_delay,
                vls: u32::from(setup.data_vls),
                outputs: outputs(setup.ports),
                joining: None,
                messages: 0,
                sent: None,
            },
            NoControl,
        ))
    }
}

/// The switches, and what hosts keep of messages.
#[derive(Clone, Debug)]
pub struct Isolator {
    set_point: u32,
    hold: Span,
    message_delay: Span,
    vls: u32,
    outputs: Vec<Output>,
    joining: Option<(PortId, PortId, Flow)>,
    messages: u64,
    sent: Option<Vec<PortMessage>>,
}

impl Isolator {
    /// Messages that switches have sent upstream.
    pub const fn messages(&self) -> u64 {
        self.messages
    }

    fn lane_at_switch(&mut self, now: Time, port: PortId, input: PortId, flow: Flow) -> usize {
        let number = self.outputs[input.index()].number;
        let (hold, set_point) = (self.hold, self.set_point);
        let output = &mut self.outputs[port.index()];
        let is_root = output.is_root(now, CONGESTING, set_point);
        let is_full = output.is_full(CONGESTING, set_point);
        let Output {
            lanes,
            flows,
            root_is_behind,
            ..
        } = output;
        let Some(entry) = flows.get_mut(&flow) else {
            return MONITORED;
        };
        let congests = entry.isolated && (is_root || is_full && entry.by_message);
        let mut repeats = false;
        if congests {
            let until = now.saturating_add(hold);
            entry.counts.extend(now, until);
            if !is_root {
                root_is_behind.extend(now, until);
            }
            repeats = now >= entry.message_at;
        }
        let counts = entry.counts.has(now);
        if counts != entry.isolated && entry.has_settled(lanes) {
            let before = if counts { MONITORED } else { CONGESTING };
            entry.isolated = counts;
            entry.input = number;
            entry.joined = lanes[before].joined[usize::from(number)];
        }
        let lane = usize::from(entry.isolated);
        if now >= entry.counts.until && !entry.isolated && entry.has_settled(lanes) {
            flows.remove(&flow);
        }
        if repeats {
            self.send_upstream(now, port, input, flow);
        }
        lane
    }

    fn lane_at_host(&mut self, now: Time, port: PortId, flow: Flow) -> usize {
        let flows = &mut self.outputs[port.index()].flows;
        let Some(entry) = flows.get_mut(&flow) else {
            return MONITORED;
        };
        let counts = entry.counts.has(now);
        let lane = usize::from(entry.isolated || counts);
        entry.isolated = counts;
        if now >= entry.counts.until {
            flows.remove(&flow);
        }
        lane
    }

    fn isolate(&mut self, now: Time, port: PortId, input: PortId, flow: Flow) {
        let until = now.saturating_add(self.hold);
        let entry = self.outputs[port.index()].entry(now, flow);
        let is_known = entry.counts.has(now);
        entry.counts.extend(now, until);
        if is_known {
            return;
        }
        entry.by_message = false;
        self.send_upstream(now, port, input, flow);
    }

    fn send_upstream(&mut self, now: Time, port: PortId, input: PortId, flow: Flow) {
        let half = Span::from_ps(self.hold.as_ps() / 2);
        self.outputs[port.index()].entry(now, flow).message_at = now.saturating_add(half);
        let Some(upstream) = self.outputs[input.index()].upstream else {
            return;
        };
        self.messages += 1;
        let message = PortMessage {
            arrives: now.saturating_add(self.message_delay),
            to: upstream,
            flow,
            content: [0; 3],
        };
        match &mut self.sent {
            Some(sent) => sent.push(message),
            None => self.outputs[upstream.index()].expected.add(message),
        }
    }

    fn split(&self, output: PortVl) -> Option<(PortId, usize)> {
        let lane = (output.0 % self.vls) as usize;
        let port = PortId::new((output.0 / self.vls) as usize);
        (lane < LANES).then_some((port, lane))
    }
}

impl SwitchControl for Isolator {
    fn needs_select_next_vl(&self) -> bool {
        true
    }

    fn needs_holds_head(&self) -> bool {
        true
    }

    fn needs_host_vl(&self) -> bool {
        true
    }

    fn select_next_vl(&mut self, now: Time, hop: LaneView, flow: Flow, vl: Vl) -> Option<Vl> {
        self.joining = None;
        if vl.index() >= LANES {
            return None;
        }
        let output = &mut self.outputs[hop.output.index()];
        output.receive(now, self.hold);
        let is_known = !output.flows.is_empty();
        let lane = match hop.input {
            Some(input) => {
                self.joining = Some((hop.output, input, flow));
                match is_known {
                    true => self.lane_at_switch(now, hop.output, input, flow),
                    false => MONITORED,
                }
            }
            None if is_known => self.lane_at_host(now, hop.output, flow),
            None => MONITORED,
        };
        Vl::try_new(lane as u8).ok()
    }

    fn host_vl(&mut self, now: Time, output: PortId, flow: Flow, vl: Vl) -> Option<Vl> {
        if vl.index() >= LANES {
            return None;
        }
        let record = &mut self.outputs[output.index()];
        record.receive(now, self.hold);
        let entry = record.flows.get(&flow);
        let isolated = entry.is_some_and(|entry| entry.isolated || entry.counts.has(now));
        Vl::try_new(u8::from(isolated)).ok()
    }

    fn holds_head(&mut self, _: Time, output: PortVl, input: PortId, flow: Flow) -> bool {
        let Some((port, lane)) = self.split(output) else {
            return false;
        };
        let number = self.outputs[input.index()].number;
        let Output { lanes, flows, .. } = &self.outputs[port.index()];
        flows.get(&flow).is_some_and(|entry| {
            usize::from(entry.isolated) == lane
                && entry.input == number
                && !entry.has_settled(lanes)
        })
    }

    fn on_queued(&mut self, now: Time, output: PortVl, queue: QueueView, packet: PacketView) {
        let Some((port, lane)) = self.split(output) else {
            return;
        };
        let number = self.outputs[packet.input.index()].number;
        self.outputs[port.index()].receive(now, self.hold);
        let record = &mut self.outputs[port.index()].lanes[lane];
        record.bytes = queue.queued_bytes;
        record.has_credit = queue.has_credit;
        record.joined[usize::from(number)] += 1;
        let congests =
            lane == MONITORED && self.outputs[port.index()].is_root(now, MONITORED, self.set_point);
        if congests {
            if let Some((port, input, flow)) = self.joining.take() {
                self.isolate(now, port, input, flow);
            }
        }
    }

    fn on_departure(
        &mut self,
        _: Time,
        output: PortVl,
        queue: QueueView,
        packet: PacketView,
    ) -> bool {
        if let Some((port, lane)) = self.split(output) {
            let number = self.outputs[packet.input.index()].number;
            let record = &mut self.outputs[port.index()].lanes[lane];
            record.bytes = queue.queued_bytes.saturating_sub(packet.wire_bytes);
            record.has_credit = queue.has_credit;
            record.left[usize::from(number)] += 1;
        }
        false
    }

    fn host_vl_version(&self, now: Time, output: PortId) -> Option<u64> {
        let record = &self.outputs[output.index()];
        (record.flows.is_empty() && !record.expected.is_due(now)).then_some(0)
    }

    fn message_delay(&self) -> Option<Span> {
        Some(self.message_delay)
    }

    fn needs_exchange(&self) -> bool {
        true
    }

    fn exchange<M: Messages>(&mut self, _: Time, messages: &mut M) -> bool {
        for message in self.sent.get_or_insert_default().drain(..) {
            messages.send(message);
        }
        while let Some(message) = messages.receive() {
            self.outputs[message.to.index()].expected.add(message);
        }
        false
    }

    fn on_discarded(&mut self, _: Time, output: PortVl) {
        if let Some((port, lane)) = self.split(output) {
            let record = &mut self.outputs[port.index()].lanes[lane];
            record.bytes = 0;
            record.left.clone_from(&record.joined);
        }
    }
}

impl Settings for Isolator {}

impl PerPortVl for Isolator {}
