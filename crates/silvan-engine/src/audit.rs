//! The invariants of a lossless fabric, checked on the whole state.

use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_model::InvariantError;

use crate::engine::Engine;
use crate::packet::{CONTROL, EXTENDED, Packet};
use crate::records::Next;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Checks conservation of bytes and of what packets carry, credits of every buffer, queue summaries, and that no port
    /// sleeps with packets waiting.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn audit(&self) -> Result<(), InvariantError> {
        self.audit_bytes()?;
        self.audit_lanes()?;
        self.audit_order()?;
        self.audit_extensions()?;
        self.audit_wakes()
    }

    fn payload(&self, packet: &Packet) -> u64 {
        if packet.is(CONTROL) {
            0
        } else {
            u64::from(packet.wire()) - u64::from(self.plane.header)
        }
    }

    fn audit_bytes(&self) -> Result<(), InvariantError> {
        let injected = self.plane.hosts.iter().map(|host| host.injected).sum();
        let delivered: u64 = self.plane.hosts.iter().map(|host| host.delivered).sum();
        let mut inside = 0;
        self.for_each_queued(|_, _, packet| inside += self.payload(packet));
        self.plane
            .events
            .for_each_head(|_, packet| inside += self.payload(packet));
        inside += self
            .stats
            .beyond_boundary()
            .iter()
            .map(|beyond_boundary| u64::from(beyond_boundary.payload))
            .sum::<u64>();
        let discarded = self.plane.reconfiguration.payload;
        if injected == delivered + discarded + inside {
            Ok(())
        } else {
            Err(InvariantError::Conservation {
                injected,
                delivered,
                discarded,
                inside,
            })
        }
    }

    fn audit_lanes(&self) -> Result<(), InvariantError> {
        let plane = &self.plane;
        // Blocks occupied by packets in flight to each input, and by packets queued there.
        let mut occupied = vec![0i64; plane.lanes.len()];
        plane.events.for_each_head(|port, packet| {
            let upstream = plane.ins[port as usize].upstream;
            occupied[plane.lane(upstream, packet.vl())] += i64::from(packet.blocks());
        });
        let mut bytes = vec![0u64; plane.lanes.len()];
        self.for_each_queued(|lane, input, packet| {
            bytes[lane] += u64::from(packet.wire());
            let upstream = plane.ins[input].upstream;
            occupied[plane.lane(upstream, packet.vl())] += i64::from(packet.blocks());
        });
        for (lane, &bytes) in bytes.iter().enumerate() {
            if bytes != u64::from(plane.waiting_bytes(lane)) {
                return Err(InvariantError::Queue { lane });
            }
        }
        for (index, credits) in plane.credits.iter().enumerate() {
            let out = &plane.outs[index / plane.vls];
            if out.kind == Next::Nowhere {
                continue;
            }
            let capacity = i64::from(plane.capacity(out));
            let in_hand = credits.in_hand + plane.withheld_credits(index);
            let found =
                i64::from(in_hand) + i64::from(credits.pending(&plane.overflow)) + occupied[index];
            if found != capacity || in_hand < 0 {
                return Err(InvariantError::Credits {
                    lane: index,
                    found,
                    capacity,
                });
            }
        }
        Ok(())
    }

    /// Every extension belongs to one packet.
    fn audit_extensions(&self) -> Result<(), InvariantError> {
        let used = self.plane.extensions.in_use();
        if used == 0 && !self.extends_packets() {
            return Ok(());
        }
        let mut carried = 0;
        let mut see = |packet: &Packet| carried += usize::from(packet.is(EXTENDED));
        self.for_each_queued(|_, _, packet| see(packet));
        self.plane.events.for_each_head(|_, packet| see(packet));
        self.plane.events.for_each_notification(&mut see);
        self.notifications.for_each_waiting(see);
        if carried == used {
            Ok(())
        } else {
            Err(InvariantError::Extensions { used, carried })
        }
    }

    /// Behind the first packet of a FIFO, and only there, others are held back.
    fn audit_order(&self) -> Result<(), InvariantError> {
        let plane = &self.plane;
        let Some(fifos) = &plane.fifos else {
            return Ok(());
        };
        let mut firsts = vec![0; plane.fabric_ports * plane.vls];
        for lane in 0..plane.lanes.len() {
            plane.for_each_in_lane(lane, |input, packet| {
                if let Some(first) = firsts.get_mut(plane.lane(input, packet.vl())) {
                    *first += 1;
                }
            });
        }
        for (buffer, &found) in firsts.iter().enumerate() {
            let (port, vl) = (buffer / plane.vls, buffer % plane.vls);
            let is_held = fifos.behind(port as u32, vl).next().is_some();
            let expected = usize::from(fifos.is_occupied(port as u32, vl));
            if found != expected || is_held && expected == 0 {
                return Err(InvariantError::Order { port, vl });
            }
        }
        Ok(())
    }

    /// Calls `each` with every waiting packet, its lane and its input port.
    fn for_each_queued(&self, mut each: impl FnMut(usize, usize, &Packet)) {
        let plane = &self.plane;
        for lane in 0..plane.lanes.len() {
            plane.for_each_in_lane(lane, |input, packet| each(lane, input as usize, packet));
        }
        plane.for_each_held_back(|lane, input, packet| each(lane, input as usize, packet));
    }

    fn audit_wakes(&self) -> Result<(), InvariantError> {
        let plane = &self.plane;
        for (port, out) in plane.outs.iter().enumerate() {
            if out.waiting == 0 || out.wake_at != u64::MAX {
                continue;
            }
            let lanes = port * plane.vls..(port + 1) * plane.vls;
            let woken_by_credit = lanes
                .clone()
                .any(|lane| plane.credits[lane].starved && plane.lanes[lane].queued_bytes > 0);
            let woken_by_read = plane.reads.as_ref().is_some_and(|reads| {
                let element = plane.ins[port].element as usize;
                plane.lanes[lanes].iter().any(|lane| {
                    (0..4).any(|word| lane.inputs[word] & reads.blocked[element][word] != 0)
                })
            });
            let lanes = port * plane.vls..(port + 1) * plane.vls;
            let woken_by_overtaken = lanes.into_iter().any(|lane| plane.waits_behind(lane));
            if !woken_by_credit && !woken_by_read && !woken_by_overtaken {
                return Err(InvariantError::Asleep { port });
            }
        }
        Ok(())
    }

    /// Notifications that have not arrived: waiting at a host, or inside the fabric.
    pub fn notifications_inside(&self) -> usize {
        let mut count = 0;
        self.notifications.for_each_waiting(|_| count += 1);
        self.for_each_queued(|_, _, packet| count += usize::from(packet.is(CONTROL)));
        self.plane
            .events
            .for_each_head(|_, packet| count += usize::from(packet.is(CONTROL)));
        count
    }
}
