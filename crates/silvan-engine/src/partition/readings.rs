use silvan_cc::hooks::{
    FlowLimit, PerHost, PerPortVl, SettingChange, Settings, SourceControl, SwitchControl,
    UnknownSetting,
};
use silvan_core::{Bytes, HostId, PortCounters, PortId, Time, Vl};
use silvan_model::{
    Balance, FlowProgress, Forest, HostCounters, InvariantError, Latencies, LostPackets,
};

use super::{Partitioned, Whole};
use crate::engine::Engine;
use crate::plane::time;
use crate::stats::ClassStats;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl<S, C, W, F> Partitioned<S, C, W, F>
where
    S: PerPortVl + Settings,
    C: PerHost + Settings,
{
    /// Applies a change now, to switches or adapters of all parts; [`UnknownSetting`] if neither has it.
    pub fn apply(&mut self, change: &SettingChange) -> Result<(), UnknownSetting> {
        let now = time(self.now);
        self.parts.iter_mut().try_for_each(|part| {
            let switch = part.switch.apply(now, change);
            switch.or_else(|_| part.source.apply(now, change))
        })
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Partitioned<S, C, W, F> {
    /// The number of threads, of which fewer are used where there are fewer processors, or others keep them busy.
    pub fn threads(&self) -> usize {
        self.threads.most()
    }

    /// Returns the balance of work between threads.
    pub fn balance(&self) -> Option<Balance> {
        self.sums.balance()
    }

    pub(super) fn whole(&self) -> Whole<'_> {
        self.parts.iter().map(|part| &part.plane).collect()
    }

    fn of_port(&self, port: u32) -> &Engine<S, C, W, F> {
        &self.parts[self.whole().any().remote.part_of_port(port)]
    }

    fn of_host(&self, host: HostId) -> &Engine<S, C, W, F> {
        let plane = &self.parts[0].plane;
        &self.parts[plane.remote.part_of_host(plane.known_host(host))]
    }

    /// The instant up to which events have been processed.
    pub fn now(&self) -> Time {
        time(self.now)
    }

    /// Events processed.
    pub fn events(&self) -> u64 {
        self.parts.iter().map(|part| part.events).sum()
    }

    /// Delivered packets, each times the links it crossed.
    pub fn packet_hops(&self) -> u64 {
        self.parts.iter().map(|part| part.stats.packet_hops).sum()
    }

    /// Returns true if congestion control has acted in some part.
    pub fn control_acted(&self) -> bool {
        self.parts.iter().any(|part| part.control_acted())
    }

    /// Data packets delivered.
    pub fn delivered_packets(&self) -> u64 {
        let delivered = self.parts.iter().map(|part| part.stats.delivered_packets);
        delivered.sum()
    }

    /// Heap bytes held by the data plane, control and traffic not counted.
    pub fn memory_bytes(&self) -> usize {
        self.whole().parts().map(|plane| plane.bytes()).sum()
    }

    /// Counters of a port since the start. Panics if there is no such port.
    pub fn port_counters(&self, port: PortId) -> PortCounters {
        let plane = &self.parts[0].plane;
        let number = plane.known_port(port);
        let mut counters = self.of_port(number).port_counters(port);
        if let Some(sender) = plane.sender_to(port) {
            let plane = &self.of_port(sender as u32).plane;
            counters.rcv_bytes = plane.outs[sender].xmit_bytes;
            counters.rcv_pkts = plane.outs[sender].xmit_packets;
            let errors = plane.errors_to(port, self.now);
            counters.symbol_errors = errors.symbol_errors;
            counters.link_error_recovery = errors.recoveries;
            counters.link_replays = errors.replays;
            counters.pause_sent = plane.pause_counts(self.now, sender).frames;
        }
        counters
    }

    /// Wire bytes that wait in the switch for this output Port VL. Panics if there is no such port or virtual lane.
    pub fn queued(&self, output: PortId, vl: Vl) -> Bytes {
        let number = self.parts[0].plane.known_port(output);
        self.of_port(number).queued(output, vl)
    }

    /// A host's counters, with deliveries before the end of the last run. Panics without such a host.
    pub fn host_counters(&self, host: HostId) -> HostCounters {
        self.of_host(host).host_counters(host)
    }

    /// Flows that congestion control holds below their link's rate. Panics without such a host.
    pub fn flow_limits(&self, host: HostId) -> Vec<FlowLimit> {
        self.of_host(host).flow_limits(host)
    }

    /// Counts of a traffic class; `None` if nothing of it was delivered.
    pub fn class(&self, class: u16) -> Option<ClassStats> {
        let parts = self.parts.iter();
        parts
            .filter_map(|part| part.class(class))
            .fold(None, |sum: Option<ClassStats>, part| {
                let mut sum = sum.unwrap_or_default();
                sum.add(part);
                Some(sum)
            })
    }

    /// Latencies of the packets that a host received, if kept and not empty.
    pub fn latency_of_host(&self, host: HostId) -> Option<Latencies> {
        self.of_host(host).latency_of_host(host)
    }

    /// Counts the deliveries of these flows from now on; each must be the only flow of its class and sender.
    pub fn track_flows(&mut self, flows: &[(u16, HostId)]) {
        for part in &mut self.parts {
            part.track_flows(flows.iter().copied());
        }
    }

    /// Returns the delivery progress of a tracked flow with a single receiver.
    pub fn flow(&self, class: u16, source: HostId) -> FlowProgress {
        let mut progress = FlowProgress::default();
        for part in &self.parts {
            let delivered = part.flow(class, source);
            progress.delivered_bytes += delivered.delivered_bytes;
            progress.last_delivery = progress.last_delivery.max(delivered.last_delivery);
            progress.marked_packets += delivered.marked_packets;
            progress.hops = progress.hops.max(delivered.hops);
        }
        progress
    }

    /// Packets that faults lost, by message; empty where hosts send them again.
    pub fn lost(&self) -> Vec<LostPackets> {
        let mut all: Vec<LostPackets> = self.parts.iter().flat_map(Engine::lost).collect();
        all.sort_unstable();
        all.dedup_by(|one, before| {
            let is_same = LostPackets {
                packets: before.packets,
                ..*one
            } == *before;
            before.packets += if is_same { one.packets } else { 0 };
            is_same
        });
        all
    }

    /// Discards the latencies so far, for a warm-up whose packets do not count.
    pub fn reset_latency(&mut self) {
        self.parts.iter_mut().for_each(Engine::reset_latency);
    }

    /// Finds the congestion trees of this instant, see [`Engine::forest`].
    pub fn forest(&self, threshold: Bytes) -> Forest {
        self.whole().forest(self.now, threshold)
    }

    /// Checks the state of the fabric, see [`Engine::audit`]. Errors: the first invariant that does not hold.
    pub fn audit(&self) -> Result<(), InvariantError> {
        let beyond = self
            .parts
            .iter()
            .map(|part| part.stats.payload_beyond_boundary());
        self.whole().audit(beyond.sum())?;
        self.parts.iter().try_for_each(Engine::audit_extensions)
    }

    /// The traffic as one of the parts has it, which knows how far its own hosts have come.
    pub fn workload(&self) -> &W {
        &self.parts[0].workload
    }

    /// Returns the workload, to change state that all parts share.
    pub fn workload_mut(&mut self) -> &mut W {
        &mut self.parts[0].workload
    }

    /// The traffic as the part of a host has it. Panics if there is no such host.
    pub fn workload_of(&self, host: HostId) -> &W {
        &self.of_host(host).workload
    }

    /// Credits of this output Port VL, see [`Engine::credits`]. Panics without such a port or lane.
    pub fn credits(&self, output: PortId, vl: Vl) -> u32 {
        let number = self.parts[0].plane.known_port(output);
        self.of_port(number).credits(output, vl)
    }

    /// Free blocks of an input buffer, see [`Engine::free_blocks`]. Panics without such a port or lane.
    pub fn free_blocks(&self, input: PortId, vl: Vl) -> Option<u32> {
        let number = self.parts[0].plane.known_port(input);
        self.of_port(number).free_blocks(input, vl)
    }

    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }
}
