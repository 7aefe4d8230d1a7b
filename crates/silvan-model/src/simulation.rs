use std::fmt::Debug;

use crate::{
    BuildError, EngineError, FlowProgress, Forest, HostCounters, InvariantError, Latencies,
    LostPackets, OnWire, PacketHop, VlArbitration,
};
use silvan_cc::hooks::{FlowLimit, SettingChange, UnknownSetting};
use silvan_core::{Bytes, HostId, NodeId, PortCounters, PortId, PortNumber, Rate, Sl, Time, Vl};
use silvan_workload::programs::{Load, Programs};
use silvan_workload::traffic::Traffic;

use crate::bit_errors::BitErrors;
use crate::meter::{MeteredAdapter, MeteredSwitch};

/// Counts of a traffic class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassTotals {
    /// Payload bytes delivered.
    pub delivered_bytes: u64,
    /// Data packets delivered.
    pub delivered_packets: u64,
    /// Delivered packets with FECN.
    pub marked_packets: u64,
}

/// Sampled values of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortReading {
    /// Counters since the start, see [`PortCounters::sampled`].
    pub counters: [u64; PortCounters::SAMPLED],
    /// Wire bytes that wait for it in its switch.
    pub queued_bytes: u64,
}

/// Balance of work between threads: the mean over the measured lookahead windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balance {
    /// Seconds that the last thread to be done with a window waits for the others to notice.
    pub barrier_s: f64,
    /// Work of the thread with most of it over the mean of all.
    pub imbalance: f64,
}

/// A change of the fabric while packets move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricChange {
    /// The link out of a port is down: switches discard packets for it, hosts keep them, those on the cable are lost.
    LinkDown(PortId),
    /// The link out of a port is up again.
    LinkUp(PortId),
    /// The link out of a port has another data rate.
    LinkRate(PortId, Rate),
    /// A host receives payload at this rate; `None` for the rate of the configuration.
    SinkRate(HostId, Option<Rate>),
}

/// An engine in progress, of any compiled combination; pointer calls cost little beside a sample.
pub trait Simulation {
    /// Processes events before `end`, or until the workload pauses; an [`EngineError`] returns on each further call.
    fn run_until(&mut self, end: Time) -> Result<(), EngineError>;

    /// As [`run_until`](Self::run_until) for many short steps, without the checks for deadlock and losses at `end`;
    /// longer runs check once per simulated millisecond.
    fn step_until(&mut self, end: Time) -> Result<(), EngineError>;

    /// As [`step_until`](Self::step_until), but what the fabric has done may lag until [`settle`](Self::settle).
    ///
    /// Before it, only [`now`](Self::now), [`programs`](Self::programs), and numbers that show progress may be read.
    fn advance_until(&mut self, end: Time) -> Result<(), EngineError> {
        self.step_until(end)
    }

    /// Lets everything reach [`now`](Self::now).
    fn settle(&mut self) {}

    /// Applies a change now, to switches or adapters; [`UnknownSetting`] if neither has it.
    fn apply(&mut self, change: &SettingChange) -> Result<(), UnknownSetting>;

    /// Changes the fabric now. Panics without [`changes_fabric`](crate::Network::changes_fabric), such a port or host.
    fn change_fabric(&mut self, change: FabricChange);

    /// The instant up to which events have been processed.
    fn now(&self) -> Time;

    /// Threads that process events.
    fn threads(&self) -> usize {
        1
    }

    /// Returns the balance of work between threads; `None` with one thread.
    fn balance(&self) -> Option<Balance> {
        None
    }

    /// Events processed.
    fn events(&self) -> u64;

    /// Delivered packets, each times the links it crossed.
    fn packet_hops(&self) -> u64;

    /// Returns the packet hops that the engine has leapt over; they are part of all packet hops.
    fn leapt_packet_hops(&self) -> u64 {
        0
    }

    /// Why the engine leaps over nothing; `None` if it may.
    fn no_leaps(&self) -> Option<&'static str> {
        Some("the run has several threads")
    }

    /// True if congestion control has held back a flow, moved or discarded a packet, or delays credits.
    fn control_acted(&self) -> bool;

    /// Data packets delivered.
    fn delivered_packets(&self) -> u64;

    /// Heap bytes held by the data plane, control and traffic not counted.
    fn memory_bytes(&self) -> usize;

    /// Counters of a port since the start.
    fn port_counters(&self, port: PortId) -> PortCounters;

    /// Wire bytes that wait in the switch for this output Port VL.
    fn queued(&self, output: PortId, vl: Vl) -> Bytes;

    /// Overwrites `readings` with the sampled values of these ports' first `vls` lanes.
    fn read_ports(&self, ports: &[PortId], vls: u8, readings: &mut Vec<PortReading>) {
        let queued = |port: PortId| -> u64 {
            let lanes = (0..vls).filter_map(|vl| Vl::try_new(vl).ok());
            lanes.map(|vl| self.queued(port, vl).as_u64()).sum()
        };
        let reading = |&port: &PortId| PortReading {
            counters: self.port_counters(port).sampled(),
            queued_bytes: queued(port),
        };
        readings.clear();
        readings.extend(ports.iter().map(reading));
    }

    /// Counters of a host since the start.
    fn host_counters(&self, host: HostId) -> HostCounters;

    /// Flows that congestion control holds below their link's rate, by destination and service level.
    fn flow_limits(&self, host: HostId) -> Vec<FlowLimit>;

    /// Counts of a traffic class since the start.
    fn class(&self, class: u16) -> ClassTotals;

    /// Latencies of the packets of a class, if kept and not empty.
    fn latency_of_class(&self, class: u16) -> Option<Latencies>;

    /// Adds a class's packets to the counts of [`latency_bucket`](crate::latency_bucket)s, which grow.
    fn add_latency_counts(&self, class: u16, counts: &mut Vec<u64>);

    /// Latencies of the packets that a host received, if kept and not empty.
    fn latency_of_host(&self, host: HostId) -> Option<Latencies>;

    /// Counts the deliveries of these flows from now on; each must be the only flow of its class and sender.
    fn track_flows(&mut self, flows: &[(u16, HostId)]);

    /// Returns the delivery progress of a tracked flow.
    fn flow(&self, class: u16, source: HostId) -> FlowProgress;

    /// Returns the packets that faults lost, by message, and that no host sends again.
    fn lost(&self) -> Vec<LostPackets> {
        Vec::new()
    }

    /// Discards the latencies so far, for a warm-up whose packets do not count.
    fn reset_latency(&mut self);

    /// The congestion trees of this instant, with roots for which at least `threshold` bytes wait.
    fn forest(&self, threshold: Bytes) -> Forest;

    /// The hops of the packets that are recorded, in the order of their times; they are forgotten with it.
    fn take_hops(&mut self) -> Vec<PacketHop> {
        Vec::new()
    }

    /// The traffic of rates and patterns; a host's progress is in [`traffic_of`](Self::traffic_of).
    fn traffic(&self) -> &Traffic;

    /// The traffic, as far as it has come at this host.
    fn traffic_of(&self, host: HostId) -> &Traffic {
        let _ = host;
        self.traffic()
    }

    /// Names of all traffic classes.
    fn classes(&self) -> &[String];

    /// The programs, if there are any.
    fn programs(&self) -> Option<&Programs>;

    /// Calls `change` with the programs, if any, now, and polls hosts with new messages.
    fn change_programs(&mut self, change: &mut dyn FnMut(&mut Programs, Time)) {
        let _ = change;
    }

    /// Checks that bytes, credits and queues of the data plane add up. Errors: the first invariant that does not hold.
    fn audit(&self) -> Result<(), InvariantError>;
}

/// An engine whose counters are read and whose fabric is changed while packets move.
pub trait LiveSimulation: Simulation + Debug + Send {
    /// Ends a deadlock by discarding the packets at the cycle's ports; returns their number.
    fn break_deadlock(&mut self) -> usize;

    /// Tells the load which packets were discarded since the last call.
    fn settle_losses(&mut self);

    /// Sets or removes the forwarding entries of a switch for some hosts. Panics if there is no such node or host.
    fn set_routes(&mut self, switch: NodeId, routes: &[(HostId, Option<PortNumber>)]);

    /// Sets an output port's arbitration tables; [`BuildError::VlArbitration`] for an absent lane.
    fn set_vl_arbitration(
        &mut self,
        port: PortId,
        tables: &VlArbitration,
    ) -> Result<(), BuildError>;

    /// Sets the virtual lanes of a switch by service level, for packets from one port to another.
    fn set_sl_to_vl(
        &mut self,
        switch: NodeId,
        input: PortNumber,
        output: PortNumber,
        vls: &[u8; 16],
    );

    /// Returns the SL-to-VL mapping of a switch; `None` if the node is no switch or has no such ports.
    fn sl_to_vl(&self, switch: NodeId, input: PortNumber, output: PortNumber) -> Option<[u8; 16]>;

    /// Sets the virtual lanes by service level of what a host sends. Panics if there is no such host.
    fn set_host_sl_to_vl(&mut self, host: HostId, vls: &[u8; 16]);

    /// Returns the SL-to-VL mapping of a host. Panics if there is no such host.
    fn host_sl_to_vl(&self, host: HostId) -> [u8; 16];

    /// Sets the service level of packets whose traffic has level 0. Panics without such a host.
    fn set_path_sl(&mut self, source: HostId, destination: HostId, level: Sl);

    /// Returns the service level of a path. Panics if there is no such host.
    fn path_sl(&self, source: HostId, destination: HostId) -> Sl;

    /// Closes an output port: a switch discards what waits or arrives for it, a host keeps what it has to send.
    fn close_port(&mut self, port: PortId, on_wire: OnWire);

    /// Gives a link another data rate in the direction out of this port.
    fn set_link_rate(&mut self, port: PortId, rate: Rate);

    /// Changes a host's payload rate for packets that leave its switch later; `None` for the configured rate.
    fn set_sink_rate(&mut self, host: HostId, rate: Option<Rate>);

    /// Adds bit errors to what a port receives from now on; `None` ends all of them.
    fn set_bit_errors(&mut self, port: PortId, errors: Option<&BitErrors>);

    /// Opens a port again.
    fn open_port(&mut self, port: PortId);

    /// Payload of all discarded packets, in bytes.
    fn discarded_bytes(&self) -> u64;

    /// Number of ports of the fabric.
    fn ports(&self) -> usize;

    /// The congestion control at the switches.
    fn switch(&self) -> &MeteredSwitch;

    /// Returns the congestion control at the switches, to change settings.
    fn switch_mut(&mut self) -> &mut MeteredSwitch;

    /// The congestion control at the hosts.
    fn adapter(&self) -> &MeteredAdapter;

    /// Returns the congestion control at the hosts, to change settings.
    fn adapter_mut(&mut self) -> &mut MeteredAdapter;

    /// The load; call [`wake`](Self::wake) for hosts with more to send.
    fn load_mut(&mut self) -> &mut Load;

    /// Polls a host at the current instant, after its traffic was changed from outside.
    fn wake(&mut self, host: HostId);
}
