use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_model::InvariantError;

use crate::engine::Engine;
use crate::packet::{CONTROL, EXTENDED, Packet};
use crate::partition::Whole;
use crate::plane::Plane;
use crate::records::Next;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Checks conservation of data, credits and wake-ups; returns the first broken invariant.
    pub fn audit(&self) -> Result<(), InvariantError> {
        let whole = self.whole();
        let held = self.plane.reordering.as_ref();
        let held = held.map_or(0, |reordering| reordering.held());
        whole.audit(self.stats.payload_beyond_boundary() + held)?;
        self.audit_order()?;
        self.audit_extensions()
    }

    /// Every extension belongs to one packet.
    pub(crate) fn audit_extensions(&self) -> Result<(), InvariantError> {
        let used = self.plane.extensions.in_use();
        if used == 0 && !self.extends_packets() {
            return Ok(());
        }
        let mut carried = 0;
        let mut see = |packet: &Packet| carried += usize::from(packet.is(EXTENDED));
        self.whole().for_each_queued(|_, _, packet| see(packet));
        self.plane.events.for_each_head(|_, packet| see(packet));
        self.plane.events.for_each_notification(&mut see);
        self.notifications.for_each_waiting(see);
        if carried == used {
            Ok(())
        } else {
            Err(InvariantError::Extensions { used, carried })
        }
    }

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

    /// Notifications that have not arrived: waiting at a host, or inside the fabric.
    pub fn notifications_inside(&self) -> usize {
        let mut count = 0;
        self.notifications.for_each_waiting(|_| count += 1);
        self.whole()
            .for_each_queued(|_, _, packet| count += usize::from(packet.is(CONTROL)));
        self.plane
            .events
            .for_each_head(|_, packet| count += usize::from(packet.is(CONTROL)));
        count
    }
}

impl Whole<'_> {
    pub(crate) fn audit(&self, beyond_boundary: u64) -> Result<(), InvariantError> {
        self.audit_bytes(beyond_boundary)?;
        self.audit_lanes()?;
        self.audit_buffers()?;
        self.parts().try_for_each(Plane::audit_wakes)
    }

    fn payload(&self, packet: &Packet) -> u64 {
        if packet.is(CONTROL) {
            0
        } else {
            u64::from(packet.wire()) - u64::from(self.any().header)
        }
    }

    fn audit_bytes(&self, beyond_boundary: u64) -> Result<(), InvariantError> {
        let hosts = || self.parts().flat_map(|plane| plane.hosts.iter());
        let injected = hosts().map(|host| host.injected).sum();
        let delivered: u64 = hosts().map(|host| host.delivered).sum();
        let mut inside = beyond_boundary;
        self.for_each_queued(|_, _, packet| inside += self.payload(packet));
        self.for_each_head(|_, packet| inside += self.payload(packet));
        let discarded = self
            .parts()
            .map(|plane| plane.reconfiguration.payload)
            .sum();
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
        let plane = self.any();
        let mut occupied = vec![0i64; plane.lanes.len()];
        // Under PFC bytes count, not blocks.
        let takes = |lane: usize, packet: &Packet| match plane.is_under_pfc(lane) {
            true => i64::from(packet.wire()),
            false => i64::from(packet.blocks()),
        };
        self.for_each_head(|port, packet| {
            let upstream = plane.ins[port as usize].upstream;
            let lane = plane.lane(upstream, packet.vl());
            occupied[lane] += takes(lane, packet);
        });
        let mut bytes = vec![0u64; plane.lanes.len()];
        self.for_each_queued(|lane, input, packet| {
            bytes[lane] += u64::from(packet.wire());
            let upstream = plane.ins[input].upstream;
            let buffer = plane.lane(upstream, packet.vl());
            occupied[buffer] += takes(buffer, packet);
        });
        for (lane, &bytes) in bytes.iter().enumerate() {
            if bytes != u64::from(self.of_lane(lane).waiting_bytes(lane)) {
                return Err(InvariantError::Queue { lane });
            }
        }
        for (index, occupied) in occupied.into_iter().enumerate() {
            let plane = self.of_lane(index);
            let (out, credits) = (&plane.outs[index / plane.vls], &plane.credits[index]);
            if out.kind == Next::Nowhere {
                continue;
            }
            if let Some(outstanding) = plane.outstanding(index) {
                if outstanding != occupied {
                    return Err(InvariantError::Outstanding {
                        lane: index,
                        found: occupied,
                        outstanding,
                    });
                }
                continue;
            }
            let capacity = i64::from(plane.capacity((index / plane.vls) as u32));
            let in_hand = credits.in_hand + plane.withheld_credits(index);
            let found = i64::from(in_hand) + i64::from(credits.pending(&plane.overflow)) + occupied;
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
}

impl Whole<'_> {
    fn audit_buffers(&self) -> Result<(), InvariantError> {
        let plane = self.any();
        if plane.buffers.is_none() {
            return Ok(());
        }
        let mut waiting = vec![0; plane.fabric_ports * plane.vls];
        self.for_each_queued(|_, input, packet| {
            if let Some(waiting) = waiting.get_mut(input * plane.vls + packet.vl()) {
                *waiting += i64::from(packet.blocks());
            }
        });
        for (lane, waiting) in waiting.into_iter().enumerate() {
            let (port, vl) = (lane / plane.vls, lane % plane.vls);
            let plane = self.of_port(port);
            let known = plane.accounted_blocks(port as u32, vl).unwrap_or(0);
            let (found, capacity) = (
                i64::from(known) + waiting,
                i64::from(plane.input_capacity(port as u32)),
            );
            if found != capacity {
                return Err(InvariantError::Buffer {
                    port,
                    vl,
                    found,
                    capacity,
                });
            }
        }
        Ok(())
    }
}

impl Plane {
    fn audit_wakes(&self) -> Result<(), InvariantError> {
        let plane = self;
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
}
