use silvan_cc::hooks::{FlowLimit, PortVl, SourceControl, SwitchControl};
use silvan_core::{Bytes, HostId, PortCounters, PortId, Span, Time, Vl};
use silvan_model::{FlowProgress, HostCounters, Latencies, LostPackets, PortReading};

use crate::engine::Engine;
use crate::pfc::PauseCounts;
use crate::plane::time;
use crate::stats::ClassStats;
use crate::transport::Retries;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// The instant up to which events have been processed.
    pub fn now(&self) -> Time {
        time(self.now)
    }

    /// Events processed.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Delivered packets, each times the links it crossed.
    pub fn packet_hops(&self) -> u64 {
        self.stats.packet_hops
    }

    /// True if congestion control has held back a flow, moved or discarded a packet, or delays credits.
    pub fn control_acted(&self) -> bool {
        self.stats.control_acted || self.switch.delays_credits()
    }

    /// Returns the packet-hops that the engine has leapt over; they are part of all packet-hops.
    pub fn leapt_packet_hops(&self) -> u64 {
        self.stats.leapt_packet_hops
    }

    /// Data packets delivered.
    pub fn delivered_packets(&self) -> u64 {
        self.stats.delivered_packets
    }

    /// Heap bytes held by the data plane, control and traffic not counted.
    pub fn memory_bytes(&self) -> usize {
        self.plane.bytes()
    }

    /// Number of ports of the fabric.
    pub fn ports(&self) -> usize {
        self.plane.fabric_ports
    }

    /// Counters of a port since the start. Panics if there is no such port.
    pub fn port_counters(&self, port: PortId) -> PortCounters {
        debug_assert!(self.is_settled(), "the fabric lags");
        self.plane.known_port(port);
        self.counters_of(port)
    }

    /// Overwrites `readings` with the sampled values of these ports' first `vls` lanes. Panics without such a port.
    pub fn read_ports(&self, ports: &[PortId], vls: u8, readings: &mut Vec<PortReading>) {
        debug_assert!(self.is_settled(), "the fabric lags");
        let plane = &self.plane;
        let vls = usize::from(vls).min(plane.vls);
        let reading = |&port: &PortId| {
            let number = plane.known_port(port);
            let lanes = (0..vls).map(|vl| plane.lane(number, vl));
            PortReading {
                counters: self.counters_of(port).sampled(),
                queued_bytes: lanes.map(|lane| u64::from(plane.waiting_bytes(lane))).sum(),
            }
        };
        readings.clear();
        readings.extend(ports.iter().map(reading));
    }

    #[inline(always)]
    fn counters_of(&self, port: PortId) -> PortCounters {
        let plane = &self.plane;
        let out = &plane.outs[plane.link_port(port)];
        let sender = plane.sender_to(port);
        let (rcv_bytes, rcv_pkts) = sender.map_or((0, 0), |sender| {
            let out = &plane.outs[sender];
            (out.xmit_bytes, out.xmit_packets)
        });
        let waiting = match plane.is_closed(port.index()) {
            true => 0,
            false => self.now.saturating_sub(out.wait_since),
        };
        let (mut cong, mut marked) = (0, 0);
        if S::ACTIVE {
            let cong_of = |vl| self.congested(port, vl).as_ps();
            cong = (0..plane.vls).map(cong_of).sum();
            marked = self.marked(port);
        }
        let discards = self.discards(port);
        let (mut pauses, mut pauses_sent) = (PauseCounts::default(), PauseCounts::default());
        if plane.pauses.is_some() {
            pauses = plane.pause_counts(self.now, plane.link_port(port));
            if let Some(sender) = sender {
                pauses_sent = plane.pause_counts(self.now, sender);
            }
        }
        let errors = plane.errors_to(port, self.now);
        PortCounters {
            xmit_bytes: out.xmit_bytes,
            xmit_pkts: out.xmit_packets,
            rcv_bytes,
            rcv_pkts,
            xmit_wait: Span::from_ps(out.wait_total + waiting),
            xmit_cong: Span::from_ps(cong),
            fecn_marked: marked,
            relay_errors: discards.relay_errors,
            rcv_errors: discards.rcv_errors,
            symbol_errors: errors.symbol_errors,
            link_error_recovery: errors.recoveries,
            link_downed: discards.downed,
            link_replays: errors.replays,
            xmit_discards: discards.xmit,
            inactive_discards: discards.xmit - discards.stale,
            stale_discards: discards.stale,
            pause_sent: pauses_sent.frames,
            pause_rcv: pauses.frames,
            xmit_paused: Span::from_ps(pauses.paused),
        }
    }

    fn marked(&self, port: PortId) -> u64 {
        let lanes = (0..self.plane.vls).map(|vl| self.plane.lane(port.index() as u32, vl));
        lanes
            .map(|lane| self.switch.marked(PortVl(lane as u32)))
            .sum()
    }

    fn congested(&self, port: PortId, vl: usize) -> Span {
        if !self.plane.outs[port.index()].marks {
            return Span::ZERO;
        }
        let lane = self.plane.lane(port.index() as u32, vl);
        self.switch
            .congested_time(time(self.now), PortVl(lane as u32))
    }

    /// A host's counters, with deliveries before the end of the last [`Engine::run_until`]. Panics without such a host.
    pub fn host_counters(&self, host: HostId) -> HostCounters {
        let record = &self.plane.hosts[self.plane.known_host(host) as usize];
        let reordering = self.plane.reordering.as_ref();
        let transport = self.plane.transport.as_ref();
        let retries = transport.map_or_else(Retries::default, |transport| {
            transport.of_host(host.index())
        });
        HostCounters {
            injected_bytes: record.injected,
            delivered_bytes: record.delivered,
            delivered_packets: record.delivered_packets,
            fecn_received: record.fecn_received,
            becn_received: record.becn_received,
            grants_received: self.notifications.grants_received(host),
            reordered_packets: reordering.map_or(0, |order| order.reordered(host)),
            most_held_bytes: reordering.map_or(0, |order| order.most_held(host)),
            retries: retries.retries,
            resent_bytes: retries.resent_bytes,
            failed_connections: retries.failed,
        }
    }

    /// Flows that congestion control holds below their link's rate. Panics without such a host.
    pub fn flow_limits(&self, host: HostId) -> Vec<FlowLimit> {
        self.plane.known_host(host);
        self.source.flow_limits(time(self.now), host)
    }

    /// Counts of a traffic class; `None` if nothing of it was delivered.
    pub fn class(&self, class: u16) -> Option<&ClassStats> {
        self.stats.class(class)
    }

    /// Latencies of the packets that a host received, if kept and not empty.
    pub fn latency_of_host(&self, host: HostId) -> Option<Latencies> {
        self.stats.host_latency(host.index())
    }

    /// Counts the deliveries of these flows from now on; each must be the only flow of its class and sender.
    pub fn track_flows(&mut self, flows: impl IntoIterator<Item = (u16, HostId)>) {
        let flows = flows.into_iter();
        let keys = flows.map(|(class, source)| (class, source.index() as u32));
        self.stats.track_flows(keys.collect());
    }

    /// Returns the delivery progress of a tracked flow.
    pub fn flow(&self, class: u16, source: HostId) -> FlowProgress {
        let source = source.index() as u32;
        let transport = self.plane.transport.as_ref();
        let retries = transport.map_or_else(Retries::default, |transport| {
            transport.of_class(class, source)
        });
        FlowProgress {
            retries: retries.retries,
            has_failed: retries.failed > 0,
            ..self.stats.flow(class, source)
        }
    }

    /// Packets that faults lost, by message; empty where hosts send them again.
    pub fn lost(&self) -> Vec<LostPackets> {
        self.plane.lost().collect()
    }

    /// Discards the latencies so far, for a warm-up whose packets do not count.
    pub fn reset_latency(&mut self) {
        self.stats.reset_latency();
    }

    /// Wire bytes that wait in the switch for this output Port VL. Panics if there is no such port or virtual lane.
    pub fn queued(&self, output: PortId, vl: Vl) -> Bytes {
        let lane = self.plane.known_lane(output, vl);
        Bytes::from_bytes(u64::from(self.plane.waiting_bytes(lane)))
    }

    /// Credits of this output Port VL, in 64-byte blocks, with those due. Panics without such a port or lane.
    pub fn credits(&self, output: PortId, vl: Vl) -> u32 {
        let plane = &self.plane;
        plane.known_lane(output, vl);
        let port = plane.link_port(output);
        let lane = port * plane.vls + vl.index();
        (plane.credits_at(self.now, lane) + plane.withheld_credits(lane)) as u32
    }

    /// Free 64-byte blocks of an input buffer; `None` without an account. Panics without such a port or lane.
    pub fn free_blocks(&self, input: PortId, vl: Vl) -> Option<u32> {
        let plane = &self.plane;
        plane.known_lane(input, vl);
        let free = plane.free_blocks(self.now, input.index() as u32, vl.index());
        free.map(|free| free as u32)
    }

    /// The congestion control at the switches.
    pub fn switch_control(&self) -> &S {
        &self.switch
    }

    /// Returns the congestion control at the switches, to change settings.
    pub fn switch_control_mut(&mut self) -> &mut S {
        self.note_change();
        &mut self.switch
    }

    /// The congestion control at the hosts.
    pub fn source_control(&self) -> &C {
        &self.source
    }

    /// Returns the congestion control at the hosts, to change settings.
    pub fn source_control_mut(&mut self) -> &mut C {
        self.note_change();
        &mut self.source
    }

    /// The traffic.
    pub fn workload(&self) -> &W {
        &self.workload
    }

    /// The traffic, to change it; call [`Engine::wake`] for hosts that have more to send now.
    pub fn workload_mut(&mut self) -> &mut W {
        self.note_change();
        &mut self.workload
    }

    /// Changes the workload now, and polls the hosts that `change` lists. Panics without such a host.
    pub fn change_workload(&mut self, change: impl FnOnce(&mut W, Time, &mut Vec<HostId>)) {
        self.note_change();
        change(&mut self.workload, Time::from_ps(self.now), &mut self.woken);
        self.wake_all(self.now);
    }

    /// Polls a host at the current instant, after its traffic was reconfigured. Panics if there is no such host.
    pub fn wake(&mut self, host: HostId) {
        let host = self.plane.known_host(host);
        self.note_change();
        self.wake_host(host, self.now);
    }
}
