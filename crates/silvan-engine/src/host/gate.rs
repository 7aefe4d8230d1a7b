use std::marker::PhantomData;

use silvan_cc::hooks::{Flow, SourceControl, SwitchControl};
use silvan_core::{HostId, PortId, Sl, Time, Vl};

use crate::needs::may_select_vl;
use crate::packet::service_level;
use crate::records::Credits;
use crate::routing::Routing;
use crate::transport::Transport;
use crate::variant::EngineVariant;
use crate::workload::Gate;

pub(super) struct HostGate<'a, S, C, F> {
    pub switch: &'a mut S,
    pub source: &'a mut C,
    pub credits: &'a [Credits],
    pub sl_to_vl: &'a [u8; 16],
    pub routing: &'a Routing,
    pub transport: Option<&'a Transport>,
    pub header: u32,
    pub mtu_blocks: i32,
    pub host: HostId,
    pub now: Time,
    pub starved: u16,
    /// Fewest blocks that were requested without effect.
    pub wanted: i32,
    /// True if the scheme chooses the virtual lane of a packet.
    pub chooses_vl: bool,
    /// The host's port, if the scheme's switches choose this lane for a flow and not for a packet.
    pub port_of_flows: Option<PortId>,
    /// True if a flow that waits for credits of its lane has no other reason to wait until an event changes it.
    pub keeps_lanes: bool,
    /// True if a packet that waits for credits holds back all other packets of its lane.
    pub holds_lanes: bool,
    pub awaited: Option<Vl>,
    /// Returns true if congestion control holds a flow back now.
    pub holds_back: bool,
    pub throttled: Vec<u32>,
    pub variant: PhantomData<F>,
}

/// The service level of the packet's header.
#[inline(always)]
pub(super) fn header_level(routing: &Routing, source: HostId, destination: HostId, sl: Sl) -> Sl {
    let (source, destination) = (source.index() as u32, destination.index() as u32);
    service_level(routing.service_level(source, destination, sl.as_u8()))
}

impl<S: SwitchControl, C: SourceControl, F: EngineVariant> Gate for HostGate<'_, S, C, F> {
    #[inline]
    fn release(&mut self, dst: HostId, sl: Sl) -> Time {
        self.release_queue(dst, sl, 0)
    }

    #[inline]
    fn release_queue(&mut self, dst: HostId, sl: Sl, queue: u16) -> Time {
        if !F::PLAIN && !F::LOOKAHEAD && self.transport.is_some() && self.is_held(dst, sl) {
            return Time::MAX;
        }
        if !C::ACTIVE {
            return self.now;
        }
        let flow = Flow {
            source: self.host,
            destination: dst,
            sl: header_level(self.routing, self.host, dst, sl),
            queue,
        };
        let release = self.source.release(self.now, flow);
        self.holds_back |= release > self.now;
        if F::TRACES && release > self.now {
            self.throttled.push(dst.index() as u32);
        }
        self.awaited = None;
        if self.chooses_vl() && release <= self.now {
            self.awaited = self.lacking(flow, sl);
            if self.awaited.is_some() {
                return Time::MAX;
            }
        }
        release
    }

    /// The variant that records packets must also be queried again, because it notes each answer.
    #[inline]
    fn lacks_credits(&self) -> bool {
        F::TRACES || self.awaited.is_some()
    }

    #[inline]
    fn awaited_lane(&self) -> Option<Vl> {
        self.awaited.filter(|_| self.keeps_lanes)
    }

    #[inline]
    fn awaits(&mut self, lane: Vl) -> bool {
        let has = |credits: &Credits| credits.in_hand >= self.mtu_blocks;
        let open = self.credits.get(lane.index()).is_none_or(has);
        if !open {
            self.starved |= 1 << lane.as_u8();
            self.wanted = self.wanted.min(self.mtu_blocks);
        }
        !open
    }

    fn begin(&mut self, dst: HostId, sl: Sl) {
        if C::ACTIVE {
            let flow = Flow {
                source: self.host,
                destination: dst,
                sl,
                queue: 0,
            };
            self.source.on_flow_start(self.now, flow);
        }
    }

    #[inline]
    fn lane_open(&mut self, sl: Sl, bytes: u32) -> bool {
        let blocks = (bytes + self.header).div_ceil(64) as i32;
        if C::ACTIVE && self.chooses_vl() {
            // The scheme chooses the lane when the packet is known.
            let open = self.credits.iter().any(|lane| lane.in_hand >= blocks);
            if !open {
                self.starved |= (1 << self.credits.len()) - 1;
                self.wanted = self.wanted.min(blocks);
            }
            return open;
        }
        let vl = self.sl_to_vl[sl.index()];
        // A service level without a data lane waits for another table, not for credits.
        let Some(credits) = self.credits.get(usize::from(vl)) else {
            return false;
        };
        if self.held_lanes() >> vl & 1 == 1 {
            return false;
        }
        let open = credits.in_hand >= blocks;
        if !open {
            self.starved |= 1 << vl;
            self.wanted = self.wanted.min(blocks);
        }
        open
    }

    #[inline]
    fn held_lanes(&self) -> u16 {
        match self.holds_lanes {
            true => self.starved,
            false => 0,
        }
    }
}

impl<S: SwitchControl, C: SourceControl, F: EngineVariant> HostGate<'_, S, C, F> {
    #[inline(always)]
    fn chooses_vl(&self) -> bool {
        self.chooses_vl && may_select_vl(&*self.switch, &*self.source)
    }

    /// Returns true if the connection of a flow waits for an acknowledgement.
    #[inline(never)]
    fn is_held(&self, dst: HostId, sl: Sl) -> bool {
        let sl = header_level(self.routing, self.host, dst, sl).as_u8();
        let ends = (self.host.index() as u32, dst.index() as u32);
        self.transport
            .is_some_and(|transport| transport.holds(ends.0, ends.1, sl))
    }

    /// The scheme's lane for a flow, if it lacks credits for some packet. Other flows of the host may send.
    fn lacking(&mut self, flow: Flow, sl: Sl) -> Option<Vl> {
        if self.routing.scheme_chooses_lanes() && self.port_of_flows.is_none() {
            // The lane of each hop is chosen when the packet starts.
            return None;
        }
        let by_level = Vl::try_new(self.sl_to_vl[sl.index()]).ok();
        let chosen = by_level.and_then(|by_level| match self.port_of_flows {
            Some(port) => self.switch.host_vl(self.now, port, flow, by_level),
            None => self.source.select_vl(self.now, flow, by_level),
        });
        // A lane that does not exist is refused when the packet starts.
        let lane = chosen.or(by_level)?;
        self.awaits(lane).then_some(lane)
    }
}
