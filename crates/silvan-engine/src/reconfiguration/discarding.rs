use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::PortId;
use silvan_model::EngineError;

use super::Discards;
use crate::engine::Engine;
use crate::events::Head;
use crate::packet::Packet;
use crate::plane::{NO_ROUTE, time};
use crate::routing::CHOOSE;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    pub(crate) fn discards(&self, port: PortId) -> Discards {
        let counts = &self.plane.reconfiguration.counts;
        counts.get(port.index()).copied().unwrap_or_default()
    }

    pub(crate) fn return_discarded(&mut self, now: u64, input: u32, packet: &Packet) {
        let upstream = self.plane.ins[input as usize].upstream;
        let sender = &self.plane.outs[upstream as usize];
        let tail = now + self.plane.serialisation(sender, packet.wire());
        self.return_credits(now, tail, input, packet);
    }

    #[cold]
    pub(crate) fn unroutable(&mut self, head: Head) {
        let Head {
            time: now,
            port,
            packet,
            ..
        } = head;
        let plane = &mut self.plane;
        let element = plane.ins[port as usize].element;
        let lost = packet.destination() == plane.no_destination();
        if !lost && !plane.reconfiguration.discards {
            let entry = plane.elements[element as usize].table + packet.destination();
            let set = plane.reconfiguration.tables.get(entry as usize);
            if set.is_none_or(|&local| local == NO_ROUTE) {
                self.note_fault(EngineError::NoRoute {
                    at: time(now),
                    port: PortId::new(port as usize),
                    destination: packet.destination(),
                });
                return;
            }
        }
        if lost {
            plane.count(now, port, &packet, |counts| counts.rcv_errors += 1);
        } else {
            let record = plane.elements[element as usize];
            let set = plane
                .reconfiguration
                .tables
                .get((record.table + packet.destination()) as usize);
            match set.copied().filter(|&local| local < CHOOSE) {
                Some(local) => {
                    let output = record.base + u32::from(local);
                    plane.count(now, output, &packet, |counts| counts.xmit += 1);
                }
                None => plane.count(now, port, &packet, |counts| counts.relay_errors += 1),
            }
        }
        if S::ACTIVE {
            self.plane.take_room::<F>(port, &packet);
        }
        self.return_discarded(now, port, &packet);
    }
}
