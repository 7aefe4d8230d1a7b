use silvan_cc::hooks::{Flow, LaneView, SourceControl, SwitchControl};
use silvan_core::{HostId, NodeId, PortId, PortNumber, Sl, Vl};
use silvan_model::InvariantError;

use crate::engine::Engine;
use crate::events::Head;
use crate::feedback::flow_of;
use crate::packet::{NONE, service_level};
use crate::plane::{Plane, time};
use crate::records::Next;
use crate::routing::BY_SCHEME;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl Plane {
    fn pair(&self, switch: NodeId, a: PortNumber, b: PortNumber) -> Option<(u32, u32)> {
        self.table_range(switch.index())?;
        let ports = self.elements[switch.index()].ports;
        let local = |port: PortNumber| {
            let local = u32::from(port.as_u8()).checked_sub(1)?;
            (local < ports).then_some(local)
        };
        Some((local(a)?, local(b)?))
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload> Engine<S, C, W> {
    /// Sets a switch's lanes by service level between two ports; a missing lane discards. Waiting packets keep theirs.
    ///
    /// Ignored without such a switch or ports; a switch without settings keeps lanes.
    pub fn set_sl_to_vl(
        &mut self,
        switch: NodeId,
        input: PortNumber,
        output: PortNumber,
        vls: &[u8; 16],
    ) {
        if let Some((input, output)) = self.plane.pair(switch, input, output) {
            let element = switch.index();
            self.plane.set_pair_lanes(element, input, output, vls);
        }
    }

    /// A switch's lanes by service level from port to port; `None` without such a switch or ports.
    pub fn sl_to_vl(
        &self,
        switch: NodeId,
        input: PortNumber,
        output: PortNumber,
    ) -> Option<[u8; 16]> {
        let (input, output) = self.plane.pair(switch, input, output)?;
        let element = switch.index();
        Some(self.plane.pair_lanes(element, input, output))
    }

    /// Sets a host's lanes by service level; a missing lane blocks. Panics without such a host.
    pub fn set_host_sl_to_vl(&mut self, host: HostId, vls: &[u8; 16]) {
        let host = self.plane.known_host(host);
        self.plane.set_host_lanes(host, vls);
        self.wake_host(host, self.now);
    }

    /// The virtual lanes by service level of what a host sends. Panics if there is no such host.
    pub fn host_sl_to_vl(&self, host: HostId) -> [u8; 16] {
        let lanes = self.plane.host_lanes(self.plane.known_host(host));
        std::array::from_fn(|sl| lanes[usize::from(self.plane.routing.class_bits(sl as u8))])
    }

    /// Sets the service level of a path for traffic of level 0. Panics without such a host.
    pub fn set_path_sl(&mut self, source: HostId, destination: HostId, level: Sl) {
        let (source, destination) = (
            self.plane.known_host(source),
            self.plane.known_host(destination),
        );
        self.plane.set_path_sl(source, destination, level.as_u8());
    }

    /// The service level of a path for traffic of level 0. Panics without such a host.
    pub fn path_sl(&self, source: HostId, destination: HostId) -> Sl {
        let (source, destination) = (
            self.plane.known_host(source),
            self.plane.known_host(destination),
        );
        service_level(self.plane.routing.service_level(source, destination, 0))
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    #[inline(never)]
    pub(crate) fn lane_of_scheme(&mut self, head: Head, next: usize) -> Option<usize> {
        if next != BY_SCHEME {
            self.unmapped_lane(head);
            return None;
        }
        let packet = &head.packet;
        let flow = flow_of(packet);
        let vl = packet.vl() as u8;
        self.query_next_vl(head.time, Some(head.port), head.output, flow, vl)
            .map(usize::from)
    }

    /// The scheme's lane behind an output of a switch or host; `vl` is the lane before.
    pub(crate) fn query_next_vl(
        &mut self,
        now: u64,
        input: Option<u32>,
        output: u32,
        flow: Flow,
        vl: u8,
    ) -> Option<u8> {
        let plane = &self.plane;
        let port = |port: u32| PortId::new(port as usize);
        let link = &plane.outs[plane.link_port(port(output))];
        let (next_input, next_output) = match link.kind {
            Next::Input => {
                let next = plane.output_of(link.next_element, plane.known_host(flow.destination));
                (Some(port(link.next)), (next != NONE).then(|| port(next)))
            }
            Next::Host | Next::Nowhere => (None, None),
        };
        let hop = LaneView {
            input: input.map(port),
            output: port(output),
            next_input,
            next_output,
        };
        let before = Vl::try_new(vl).ok()?;
        let chosen = self.switch.select_next_vl(time(now), hop, flow, before);
        self.stats.control_acted |= chosen.is_some_and(|chosen| chosen != before);
        let vl = chosen.map_or(vl, Vl::as_u8);
        let vls = self.plane.vls;
        if usize::from(vl) >= vls {
            let port = hop.output;
            self.broken(now, InvariantError::NextLane { port, vl, vls });
            return None;
        }
        Some(vl)
    }

    #[cold]
    pub(crate) fn unmapped_lane(&mut self, head: Head) {
        let packet = &head.packet;
        self.plane.count(head.time, head.port, packet, |counts| {
            counts.relay_errors += 1
        });
        self.return_discarded(head.time, head.port, packet);
    }
}
