use std::collections::VecDeque;

use silvan_core::{HostId, IdVec, Sl, Span, Time, Vl, define_id};
use silvan_fabric::routing::Vls;

use crate::link::{PacketId, ReceiverId, TransmitterId};
use crate::params::{Arbitration, Queueing};
use crate::vl_arbiter::VlArbiter;

define_id! {
    /// The crossbar of a switch, or an output buffer, which is one of a single input and output.
    pub(crate) struct CrossbarId("crossbar");
}

#[derive(Debug)]
pub(crate) struct Crossbar {
    pub(crate) latency: Span,
    pub(crate) arbitration: Arbitration,
    pub(crate) read_limit: Option<usize>,
    pub(crate) read_speedup_percent: u64,
    pub(crate) queueing: Queueing,
    pub(crate) arrived: Vec<Vec<VecDeque<PacketId>>>,
    pub(crate) inputs: Vec<ReceiverId>,
    /// For each input, the output that is tried first when a read of it ends.
    pub(crate) read_turns: Vec<usize>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) vls: Vec<Vec<Vls>>,
    /// The output towards each host; `None` where no table says.
    pub(crate) routes: IdVec<HostId, Option<usize>>,
}

#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) transmitter: TransmitterId,
    /// Must not run dry: the link's where packets pass as they arrive, else this one.
    pub(crate) paces: TransmitterId,
    pub(crate) vl_arbiter: VlArbiter,
    pub(crate) lanes: Vec<OutputLane>,
}

#[derive(Debug)]
pub(crate) struct OutputLane {
    queues: Vec<VecDeque<Queued>>,
    first: usize,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    packet: PacketId,
    eligible: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub(crate) packet: PacketId,
    pub(crate) input: usize,
}

impl OutputLane {
    pub(crate) fn new(inputs: usize) -> Self {
        Self {
            queues: vec![VecDeque::new(); inputs],
            first: 0,
        }
    }

    pub(crate) fn queue(&mut self, input: usize, packet: PacketId) {
        self.queues[input].push_back(Queued {
            packet,
            eligible: None,
        });
    }

    pub(crate) fn make_eligible(&mut self, input: usize, packet: PacketId, now: Time) {
        let mut queue = self.queues[input].iter_mut();
        let queued = queue.find(|queued| queued.packet == packet);
        queued.expect("the packet is in its queue").eligible = Some(now);
    }

    fn candidate(
        &self,
        input: usize,
        is_first: impl Fn(usize, usize, PacketId) -> bool,
    ) -> Option<(Time, PacketId)> {
        let mut queue = self.queues[input].iter().enumerate();
        queue.find_map(|(location, queued)| {
            let since = queued.eligible?;
            is_first(input, location, queued.packet).then_some((since, queued.packet))
        })
    }

    pub(crate) fn waits_for(
        &self,
        input: usize,
        is_first: impl Fn(usize, usize, PacketId) -> bool,
    ) -> bool {
        self.candidate(input, is_first).is_some()
    }

    pub(crate) fn waits(&self, is_first: impl Fn(usize, usize, PacketId) -> bool) -> bool {
        (0..self.queues.len()).any(|input| self.waits_for(input, &is_first))
    }

    pub(crate) fn pick(
        &self,
        arbitration: Arbitration,
        may_leave: impl Fn(usize, usize, PacketId) -> bool,
    ) -> Option<Pick> {
        let inputs = self.queues.len();
        let candidate = |input: usize| {
            let (since, packet) = self.candidate(input, &may_leave)?;
            Some((since, input, packet))
        };
        let chosen = match arbitration {
            Arbitration::RoundRobin => {
                (0..inputs).find_map(|step| candidate((self.first + step) % inputs))
            }
            Arbitration::OldestFirst => (0..inputs).filter_map(candidate).min(),
        };
        chosen.map(|(_, input, packet)| Pick { packet, input })
    }

    pub(crate) fn grant(&mut self, pick: Pick) {
        let queue = &mut self.queues[pick.input];
        let location = queue.iter().position(|queued| queued.packet == pick.packet);
        queue.remove(location.expect("the packet is in its queue"));
        self.first = (pick.input + 1) % self.queues.len();
    }
}

impl Crossbar {
    /// No packet must leave the input before this one.
    pub(crate) fn is_first(&self, input: usize, location: usize, packet: PacketId) -> bool {
        match self.queueing {
            Queueing::Voq => location == 0,
            Queueing::Fifo => !self.is_behind(input, packet),
        }
    }

    /// A packet for any output must leave before this one.
    pub(crate) fn is_behind(&self, input: usize, packet: PacketId) -> bool {
        let mut lanes = self.arrived[input].iter();
        self.queueing == Queueing::Fifo && !lanes.any(|lane| lane.front() == Some(&packet))
    }

    pub(crate) fn leaves(&mut self, input: usize, packet: PacketId) {
        for lane in &mut self.arrived[input] {
            lane.retain(|&other| other != packet);
        }
    }

    pub(crate) fn output_to(&mut self, host: HostId) -> &mut Output {
        let output = self.place_to(host);
        &mut self.outputs[output]
    }

    pub(crate) fn lane_to(&self, host: HostId, input: usize, sl: Sl) -> Option<Vl> {
        let vls = self.vls.get(input)?[self.place_to(host)];
        Some(Vl::try_from(vls[sl.index()]).expect("a data VL"))
    }

    fn place_to(&self, host: HostId) -> usize {
        self.routes[host].expect("the tables reach every destination in use")
    }
}
