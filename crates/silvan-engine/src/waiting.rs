use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::{Bytes, HostId, PortId, Sl, Vl};

use crate::engine::Engine;
use crate::packet::{NONE, Packet};
use crate::plane::Plane;
use crate::variant::EngineVariant;
use crate::workload::Workload;

/// A packet in an input buffer of a switch, or in an output buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingPacket {
    /// Output port that it waits for, or in whose output buffer it is.
    pub output: PortId,
    /// Virtual lane of that output.
    pub vl: Vl,
    /// Input port in whose buffer it is; `None` in an output buffer.
    pub input: Option<PortId>,
    /// Sending host.
    pub source: HostId,
    /// Receiving host.
    pub destination: HostId,
    /// Service level of the packet.
    pub sl: Sl,
    /// Size on the wire.
    pub wire: Bytes,
}

impl Plane {
    pub fn for_each_in_lane(&self, lane: usize, mut each: impl FnMut(u32, &Packet)) {
        let record = &self.lanes[lane];
        for local in 0..u32::from(record.words) * 64 {
            if record.has_input(local) {
                let queue = self.queues[(record.queues + local) as usize];
                self.pool
                    .for_each(queue, |packet| each(record.base + local, packet));
            }
        }
    }

    pub fn fabric_port(&self, output: u32) -> u32 {
        if (output as usize) < self.fabric_ports {
            output
        } else {
            self.ins[output as usize].upstream
        }
    }

    /// The output-buffer stage, not the crossbar in front of it.
    pub fn sender_to(&self, port: PortId) -> Option<usize> {
        let upstream = self.ins[port.index()].upstream;
        let sender = || PortId::new(self.fabric_port(upstream) as usize);
        (upstream != NONE).then(|| self.link_port(sender()))
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Calls `each` with every packet that waits in a switch, in a fixed order.
    pub fn for_each_waiting(&self, mut each: impl FnMut(WaitingPacket)) {
        let plane = &self.plane;
        let waiting = |output: u32, vl, input: u32, packet: &Packet| {
            let in_switch = (input as usize) < plane.fabric_ports;
            WaitingPacket {
                output: PortId::new(plane.fabric_port(output) as usize),
                vl,
                input: in_switch.then(|| PortId::new(input as usize)),
                source: HostId::new(packet.source() as usize),
                destination: HostId::new(packet.destination() as usize),
                sl: packet.service_level(),
                wire: Bytes::from_bytes(u64::from(packet.wire())),
            }
        };
        for vl in Vl::all().take(plane.vls) {
            for output in 0..plane.outs.len() as u32 {
                plane.for_each_in_lane(plane.lane(output, vl.index()), |input, packet| {
                    each(waiting(output, vl, input, packet));
                });
            }
            plane.for_each_held_back(|lane, input, packet| {
                if lane % plane.vls == vl.index() {
                    each(waiting((lane / plane.vls) as u32, vl, input, packet));
                }
            });
        }
    }
}
