//! Extra counters of live ports, by service level and lane, logs of marked packets, and path knowledge.

use std::collections::VecDeque;

use silvan_cc::hooks::{
    Chain, Feedback, Flow, LinkView, PacketView, PortVl, QueueView, SettingChange, Settings,
    SourceControl, SwitchControl, UnknownSetting,
};
use silvan_cc::schemes::ib_cc::{IbAdapter, IbSwitch};
use silvan_cc::schemes::{SeparateSource, SeparateSwitch};
use silvan_core::counters::VCRC;
use silvan_core::{HostId, PortId, Sl, Span, SwitchId, Time};

use crate::paths::Paths;

const LOG_LEN: usize = 15;

/// Traffic sent by one port, by service level. Its neighbour's traffic is the port's received traffic.
#[derive(Clone, Copy, Debug, Default)]
pub struct BySl {
    /// Bytes on the wire, without the last two of each packet (VCRC), as ports count them.
    pub bytes: [u64; Sl::COUNT],
    /// Packets with FECN.
    pub fecn: [u64; Sl::COUNT],
    /// Packets with BECN.
    pub becn: [u64; Sl::COUNT],
}

/// A packet that a switch has marked.
#[derive(Clone, Copy, Debug)]
pub struct MarkEvent {
    /// Time at which the packet left.
    pub at: Time,
    /// The host that sent it.
    pub source: HostId,
    /// The host that it is for.
    pub destination: HostId,
    /// Service level of the packet.
    pub sl: Sl,
}

/// The log of one switch.
#[derive(Clone, Debug, Default)]
pub struct MarkLog {
    /// The last marked packets, the oldest first.
    pub events: VecDeque<MarkEvent>,
    /// Packets marked since the log was last read.
    pub count: u64,
    /// Ports that have marked since the log was last read.
    pub ports: Vec<PortId>,
}

/// InfiniBand's congestion control, which management sets, and what else a scenario has at the switches.
pub type LiveSwitch = Chain<IbSwitch, SeparateSwitch>;

/// Congestion control at the hosts of a live fabric.
pub type LiveSource = Chain<IbAdapter, SeparateSource>;

/// Congestion control at the switches, with counters.
#[derive(Debug)]
pub struct MeteredSwitch<S = LiveSwitch> {
    /// The control itself.
    pub inner: S,
    /// The counters.
    pub meter: SwitchMeter,
}

impl<S> MeteredSwitch<S> {
    /// `switch_of` has each port's switch, `vls` is the number of data lanes.
    pub fn new(inner: S, switch_of: Vec<Option<SwitchId>>, vls: usize) -> Self {
        let meter = SwitchMeter::new(switch_of, vls);
        Self { inner, meter }
    }
}

silvan_cc::chain_switches! {
    impl [S: SwitchControl] for MeteredSwitch<S> { inner: S, meter: SwitchMeter }
}

/// The counters of all switches and of the ports of hosts. As a control, it decides nothing.
#[derive(Debug)]
pub struct SwitchMeter {
    /// By port.
    pub by_sl: Vec<BySl>,
    /// Time waited by Port VL.
    pub waited: Vec<Span>,
    /// By switch.
    pub logs: Vec<MarkLog>,
    switch_of: Vec<Option<SwitchId>>,
    vls: usize,
}

impl SwitchMeter {
    fn new(switch_of: Vec<Option<SwitchId>>, vls: usize) -> Self {
        let switches = switch_of.iter().flatten().map(|switch| switch.index() + 1);
        Self {
            by_sl: vec![BySl::default(); switch_of.len()],
            waited: vec![Span::ZERO; switch_of.len() * vls],
            logs: vec![MarkLog::default(); switches.max().unwrap_or(0)],
            switch_of,
            vls,
        }
    }

    fn log(&mut self, now: Time, port: usize, packet: &LinkView) {
        let Some(switch) = self.switch_of[port] else {
            return;
        };
        let log = &mut self.logs[switch.index()];
        if log.events.len() == LOG_LEN {
            log.events.pop_front();
        }
        log.events.push_back(MarkEvent {
            at: now,
            source: packet.source,
            destination: packet.destination,
            sl: packet.sl,
        });
        log.count += 1;
        let port = PortId::new(port);
        if !log.ports.contains(&port) {
            log.ports.push(port);
        }
    }
}

impl SwitchControl for SwitchMeter {
    #[inline]
    fn needs_link(&self) -> bool {
        true
    }

    #[inline]
    fn on_queued(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) {}

    #[inline]
    fn on_departure(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) -> bool {
        false
    }

    #[inline]
    fn on_link(&mut self, now: Time, output: PortVl, packet: LinkView) {
        let lane = output.0 as usize;
        let port = lane / self.vls;
        let counts = &mut self.by_sl[port];
        let sl = packet.sl.index();
        counts.bytes[sl] += u64::from(packet.wire_bytes).saturating_sub(VCRC);
        counts.fecn[sl] += u64::from(packet.fecn);
        counts.becn[sl] += u64::from(packet.becn);
        self.waited[lane] += packet.waited;
        if packet.marked_here {
            self.log(now, port, &packet);
        }
    }
}

/// Congestion control at the adapters, with counters.
#[derive(Debug)]
pub struct MeteredAdapter<C = LiveSource> {
    /// The control itself.
    pub inner: C,
    /// The counters.
    pub meter: AdapterMeter,
}

impl<C> MeteredAdapter<C> {
    /// Adds counters to a control of that many hosts.
    pub fn new(inner: C, hosts: usize) -> Self {
        let meter = AdapterMeter {
            becn: vec![[0; Sl::COUNT]; hosts],
            paths: Paths::new(hosts),
        };
        Self { inner, meter }
    }
}

silvan_cc::chain_sources! {
    impl [C: SourceControl] for MeteredAdapter<C> { inner: C, meter: AdapterMeter }
}

/// The counters of all adapters. As a control, it holds back flows whose path is unknown.
#[derive(Debug)]
pub struct AdapterMeter {
    /// Notifications with BECN received, by host and service level.
    pub becn: Vec<[u64; Sl::COUNT]>,
    /// Paths between hosts that the adapters know.
    pub paths: Paths,
}

impl SourceControl for AdapterMeter {
    #[inline]
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        match self.paths.admit(flow.source, flow.destination) {
            true => now,
            false => Time::MAX,
        }
    }

    #[inline]
    fn on_send(&mut self, _: Time, _: Flow, _: Span, _: u32) {}

    #[inline]
    fn on_feedback(&mut self, _: Time, flow: Flow, feedback: Feedback) -> bool {
        if !matches!(feedback, Feedback::Ack { becn: false, .. }) {
            self.becn[flow.source.index()][flow.sl.index()] += 1;
        }
        false
    }
}

impl<S: Settings> Settings for MeteredSwitch<S> {
    fn apply(&mut self, now: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        self.inner.apply(now, change)
    }
}

impl<C: Settings> Settings for MeteredAdapter<C> {
    fn apply(&mut self, now: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        self.inner.apply(now, change)
    }
}
