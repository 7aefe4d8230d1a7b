use silvan_cc::hooks::{LinkView, PortVl, SourceControl, SwitchControl};
use silvan_core::{HostId, Span};

use crate::engine::Engine;
use crate::packet::{BECN, CONTROL, MARKED, Packet};
use crate::plane::time;
use crate::records::Next;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    #[inline(always)]
    pub(crate) fn notify_link(
        &mut self,
        now: u64,
        output: u32,
        packet: Packet,
        arrived_marked: bool,
        waited: u64,
    ) {
        let plane = &self.plane;
        let ports = plane.fabric_ports as u32;
        let out = &plane.outs[output as usize];
        if out.kind == Next::Input && out.next >= ports {
            return;
        }
        let port = if output < ports {
            output
        } else {
            plane.ins[output as usize].upstream
        };
        let lane = plane.lane(port, packet.vl());
        let fecn = packet.is(MARKED);
        self.switch.on_link(
            time(now),
            PortVl(lane as u32),
            LinkView {
                source: HostId::new(packet.source() as usize),
                destination: HostId::new(packet.destination() as usize),
                sl: packet.service_level(),
                wire_bytes: u32::from(packet.wire()),
                fecn,
                becn: packet.is(CONTROL) && packet.is(BECN),
                marked_here: fecn && !arrived_marked,
                waited: Span::from_ps(waited),
            },
        );
    }
}
