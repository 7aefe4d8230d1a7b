//! The performance management agent (volume 1, chapter 16, and annex A10).
//!
//! Counters of the data plane only grow. What an attribute shows is the growth since it was last
//! set, cut to the width of its field: fields of 64 bits wrap around, all others stay at their
//! largest value. Each attribute has a start of its own, so that resetting one leaves the others alone.

use silvan_core::{NodeId, PortId, PortNumber, Sl, Vl};
use silvan_mad::performance::{
    PortCounters, PortCountersExtended, PortExtendedSpeedsCounters, PortFlowCtlCounters,
    PortOpRcvCounters, PortRcvConCtrl, PortRcvDataSl, PortRcvErrorDetails, PortSamplesControl,
    PortSlRcvBecn, PortSlRcvFecn, PortVlOpData, PortVlOpPackets, PortVlXmitFlowCtlUpdateErrors,
    PortVlXmitTimeCong, PortVlXmitWaitCounters, PortXmitConCtrl, PortXmitDataSl,
    PortXmitDiscardDetails, SwPortVlCongestion,
};
use silvan_mad::{Bits, ClassPortInfo, Field, performance_capability as capability};

use super::{Exchange, INVALID_VALUE, Outcome, Refusal, UNSUPPORTED_ATTRIBUTE, UNSUPPORTED_METHOD};
use crate::subnet::Subnet;
use silvan_model::meter::VCRC;

/// The unit of PortXmitWait and PortXmitTimeCong: 4 ns, what a symbol takes at 2.5 Gbit/s.
pub const TICK_PS: u64 = 4_000;

/// Bytes of an attribute.
const ROOM: usize = 192;
/// PortSelect that stands for all ports.
const ALL_PORTS: u8 = 255;

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Something that does not happen in the model.
    Nothing,
    LinkDowned,
    RcvErrors,
    RelayErrors,
    XmitDiscards,
    InactiveDiscards,
    StaleDiscards,
    XmitData,
    RcvData,
    XmitPackets,
    RcvPackets,
    XmitWait,
    Fecn,
    Becn,
    TimeCong,
    XmitDataSl(u8),
    RcvDataSl(u8),
    FecnSl(u8),
    BecnSl(u8),
    WaitVl(u8),
    TimeCongVl(u8),
    CongestionVl(u8),
}

/// A counter's place in an attribute.
#[derive(Clone, Copy, Debug)]
struct Slot {
    what: What,
    /// First bit.
    at: usize,
    width: usize,
    /// Bit of CounterSelect, from 16 on of CounterSelect2.
    select: u8,
}

const fn slot(what: What, at: usize, width: usize, select: u8) -> Slot {
    Slot {
        what,
        at,
        width,
        select,
    }
}

/// The counters of PortCounters; what has a single bit is in the order of the specification.
const PORT_COUNTERS: [Slot; 18] = [
    slot(What::Nothing, 32, 16, 0),
    slot(What::Nothing, 48, 8, 1),
    slot(What::LinkDowned, 56, 8, 2),
    slot(What::RcvErrors, 64, 16, 3),
    slot(What::Nothing, 80, 16, 4),
    slot(What::RelayErrors, 96, 16, 5),
    slot(What::XmitDiscards, 112, 16, 6),
    slot(What::Nothing, 128, 8, 7),
    slot(What::Nothing, 136, 8, 8),
    slot(What::Nothing, 152, 4, 9),
    slot(What::Nothing, 156, 4, 10),
    slot(What::Nothing, 160, 16, 17),
    slot(What::Nothing, 176, 16, 11),
    slot(What::XmitData, 192, 32, 12),
    slot(What::RcvData, 224, 32, 13),
    slot(What::XmitPackets, 256, 32, 14),
    slot(What::RcvPackets, 288, 32, 15),
    slot(What::XmitWait, 320, 32, 16),
];

/// Counters of one width that follow each other from bit `at` on, as their bits of CounterSelect do.
fn row(at: usize, width: usize, counters: impl IntoIterator<Item = What>) -> Vec<Slot> {
    (0..)
        .zip(counters)
        .map(|(select, what)| slot(what, at + usize::from(select) * width, width, select))
        .collect()
}

/// The counters of an attribute, `None` if there is no such attribute.
fn slots(attribute: u16) -> Option<Vec<Slot>> {
    use What::*;
    let all = |what: fn(u8) -> What| (0..16).map(what);
    Some(match attribute {
        PortCounters::ID => PORT_COUNTERS.to_vec(),
        PortCountersExtended::ID => {
            let counters = [XmitData, RcvData, XmitPackets, RcvPackets];
            // All packets are unicast.
            let by_kind = [XmitPackets, RcvPackets, Nothing, Nothing];
            row(64, 64, counters.into_iter().chain(by_kind))
        }
        PortRcvErrorDetails::ID => {
            let errors = [RcvErrors, Nothing, Nothing, RelayErrors, Nothing, Nothing];
            row(32, 16, errors)
        }
        PortXmitDiscardDetails::ID => {
            let discards = [InactiveDiscards, Nothing, Nothing, StaleDiscards];
            row(32, 16, discards)
        }
        PortRcvConCtrl::ID => row(32, 32, [Fecn, Becn]),
        PortXmitConCtrl::ID => row(32, 32, [TimeCong]),
        // Credits are no packets here, and packets have no operation code.
        PortOpRcvCounters::ID
        | PortFlowCtlCounters::ID
        | PortVlOpPackets::ID
        | PortVlOpData::ID
        | PortVlXmitFlowCtlUpdateErrors::ID
        | PortExtendedSpeedsCounters::ID => Vec::new(),
        PortVlXmitWaitCounters::ID => row(32, 16, all(WaitVl)),
        SwPortVlCongestion::ID => row(32, 16, all(CongestionVl)),
        PortVlXmitTimeCong::ID => row(32, 32, all(TimeCongVl).take(15)),
        PortSlRcvFecn::ID => row(32, 32, all(FecnSl)),
        PortSlRcvBecn::ID => row(32, 32, all(BecnSl)),
        PortXmitDataSl::ID => row(32, 32, all(XmitDataSl)),
        PortRcvDataSl::ID => row(32, 32, all(RcvDataSl)),
        _ => return None,
    })
}

/// Reads the field of a counter.
fn get(bytes: &[u8; ROOM], slot: &Slot) -> u64 {
    match slot.width {
        4 => u64::from(Bits::<4>::read(bytes, slot.at).get()),
        8 => u64::from(u8::read(bytes, slot.at)),
        16 => u64::from(u16::read(bytes, slot.at)),
        32 => u64::from(u32::read(bytes, slot.at)),
        _ => u64::read(bytes, slot.at),
    }
}

/// Writes the field of a counter, cut to its width.
fn set(bytes: &mut [u8; ROOM], slot: &Slot, value: u64) {
    match slot.width {
        4 => Bits::<4>::saturating(value).write(bytes, slot.at),
        8 => (value.min(u64::from(u8::MAX)) as u8).write(bytes, slot.at),
        16 => (value.min(u64::from(u16::MAX)) as u16).write(bytes, slot.at),
        32 => (value.min(u64::from(u32::MAX)) as u32).write(bytes, slot.at),
        _ => value.write(bytes, slot.at),
    }
}

/// The counters that a request selects, a bit each.
fn selection(attribute: u16, asked: &[u8; ROOM]) -> u32 {
    let select = u32::from(u16::from_be_bytes([asked[2], asked[3]]));
    // PortCounters has more counters than bits.
    match attribute {
        PortCounters::ID => select | u32::from(asked[18]) << 16,
        _ => select,
    }
}

impl Subnet {
    pub(super) fn performance_agent(&mut self, exchange: &mut Exchange) -> Outcome {
        match exchange.attribute {
            ClassPortInfo::ID if exchange.set => return Err(UNSUPPORTED_METHOD),
            ClassPortInfo::ID => {
                let info = ClassPortInfo {
                    base_version: 1,
                    class_version: 1,
                    capability_mask: capability::ALL_PORT_SELECT
                        | capability::EXTENDED_WIDTH
                        | capability::XMIT_WAIT,
                    response_time: Bits::saturating(16),
                    ..ClassPortInfo::default()
                };
                exchange.put(&info.emit(), ROOM);
                return Ok(());
            }
            PortSamplesControl::ID if exchange.set => return Err(UNSUPPORTED_METHOD),
            PortSamplesControl::ID => {
                let asked = PortSamplesControl::parse(&exchange.data());
                self.selected(exchange, asked.port_select.as_u8())?;
                // Nothing can be sampled; 4 stands for counters of 32 bits.
                let control = PortSamplesControl {
                    port_select: asked.port_select,
                    counter_width: Bits::saturating(4),
                    ..PortSamplesControl::default()
                };
                exchange.put(&control.emit(), ROOM);
                return Ok(());
            }
            _ => {}
        }
        let slots = slots(exchange.attribute).ok_or(UNSUPPORTED_ATTRIBUTE)?;
        let asked: [u8; ROOM] = exchange.data();
        let ports = self.selected(exchange, asked[1])?;
        if exchange.set {
            let select = selection(exchange.attribute, &asked);
            self.reset(&ports, exchange.attribute, &slots, (select, &asked));
        }
        let mut answer = [0; ROOM];
        // What was asked about: OpCode, PortSelect, CounterSelect.
        answer[..4].copy_from_slice(&asked[..4]);
        for (place, slot) in (0u8..).zip(&slots) {
            let key = (exchange.attribute, place);
            let sum = ports
                .iter()
                .map(|&(node, number)| self.counter(node, number, slot.what, key))
                .fold(0, u64::wrapping_add);
            set(&mut answer, slot, sum);
        }
        exchange.put(&answer, ROOM);
        Ok(())
    }

    /// The ports that PortSelect names: 0 is a switch's own port, of which nothing is counted, and
    /// at an adapter the port that was asked. With each goes the node that has its record.
    fn selected(&self, exchange: &Exchange, select: u8) -> Result<Vec<(NodeId, u8)>, Refusal> {
        let state = self.state(exchange.at.node);
        let count = state.info.num_ports;
        let numbers = match select {
            ALL_PORTS => 1..=count,
            0 if state.switch.is_none() => {
                let asked = exchange.at.port.as_u8();
                asked..=asked
            }
            port if port <= count => port..=port,
            _ => return Err(INVALID_VALUE),
        };
        let place = |number| {
            let node = self.node_with_port(exchange.at.node, PortNumber::new(number));
            (node, number)
        };
        Ok(numbers.map(place).collect())
    }

    /// Sets the selected counters to the values given.
    fn reset(
        &mut self,
        ports: &[(NodeId, u8)],
        attribute: u16,
        slots: &[Slot],
        (select, values): (u32, &[u8; ROOM]),
    ) {
        for (place, slot) in (0u8..).zip(slots) {
            if select >> slot.select & 1 == 0 {
                continue;
            }
            for &(node, number) in ports {
                let base = self
                    .raw(node, number, slot.what)
                    .wrapping_sub(get(values, slot));
                let record = &mut self.state_mut(node).ports[usize::from(number)];
                record.bases.insert((attribute, place), base);
            }
        }
    }

    /// Lets all counters of a switch start at 0.
    pub fn clear_counters(&mut self, node: NodeId) {
        let ports: Vec<(NodeId, u8)> = (1..=self.state(node).info.num_ports)
            .map(|number| (node, number))
            .collect();
        for attribute in 0..=u16::from(u8::MAX) {
            if let Some(slots) = slots(attribute) {
                self.reset(&ports, attribute, &slots, (u32::MAX, &[0; ROOM]));
            }
        }
    }

    /// What a counter has counted since it was set.
    fn counter(&self, node: NodeId, number: u8, what: What, key: (u16, u8)) -> u64 {
        let record = &self.state(node).ports[usize::from(number)];
        let base = record.bases.get(&key).copied().unwrap_or(0);
        self.raw(node, number, what).wrapping_sub(base)
    }

    /// What a counter has counted since the start.
    fn raw(&self, node: NodeId, number: u8, what: What) -> u64 {
        let Some(port) = self.port_id(node, PortNumber::new(number)) else {
            return 0;
        };
        let plane = &self.plane;
        let words = |bytes: u64| bytes / 4;
        let from = self.fabric.ports[port].peer;
        let sent = |bytes: u64, packets: u64| words(bytes.saturating_sub(VCRC * packets));
        let counters = || plane.counters(port);
        match what {
            What::Nothing => 0,
            What::LinkDowned => self.record(port).link_downed,
            What::RcvErrors => plane.discards(port).rcv_errors,
            What::RelayErrors => plane.discards(port).relay_errors,
            What::XmitDiscards => plane.discards(port).xmit,
            What::InactiveDiscards => plane.discards(port).xmit - plane.discards(port).stale,
            What::StaleDiscards => plane.discards(port).stale,
            What::XmitData => sent(counters().xmit_bytes, counters().xmit_packets),
            What::RcvData => sent(counters().rcv_bytes, counters().rcv_packets),
            What::XmitPackets => counters().xmit_packets,
            What::RcvPackets => counters().rcv_packets,
            What::XmitWait => counters().xmit_wait.as_ps() / TICK_PS,
            What::TimeCong => counters().xmit_cong.as_ps() / TICK_PS,
            What::Fecn => self.sum_sl(|sl| self.fecn(from, sl)),
            What::Becn => self.sum_sl(|sl| self.becn(node, from, sl)),
            What::XmitDataSl(sl) => words(plane.by_sl(port).bytes[usize::from(sl)]),
            What::RcvDataSl(sl) => {
                from.map_or(0, |from| words(plane.by_sl(from).bytes[usize::from(sl)]))
            }
            What::FecnSl(sl) => self.fecn(from, sl),
            What::BecnSl(sl) => self.becn(node, from, sl),
            What::WaitVl(vl) => lane(vl, |vl| plane.waited_ps(port, vl) / TICK_PS),
            What::TimeCongVl(vl) => lane(vl, |vl| plane.congested_ps(port, vl) / TICK_PS),
            What::CongestionVl(vl) => lane(vl, |vl| plane.congestion_events(port, vl)),
        }
    }

    fn sum_sl(&self, of: impl Fn(u8) -> u64) -> u64 {
        Sl::all().map(|sl| of(sl.as_u8())).sum()
    }

    /// Packets with FECN that a neighbour's port has sent here.
    fn fecn(&self, from: Option<PortId>, sl: u8) -> u64 {
        from.map_or(0, |from| self.plane.by_sl(from).fecn[usize::from(sl)])
    }

    /// Notifications with BECN: at an adapter those that have reached it by any way, at a switch
    /// those that have passed through.
    fn becn(&self, node: NodeId, from: Option<PortId>, sl: u8) -> u64 {
        let sl = usize::from(sl);
        match self.fabric.nodes[node].as_host() {
            Some(host) => self.plane.engine.adapter().meter.becn[host.index()][sl],
            None => from.map_or(0, |from| self.plane.by_sl(from).becn[sl]),
        }
    }
}

fn lane(vl: u8, of: impl Fn(Vl) -> u64) -> u64 {
    Vl::try_new(vl).map_or(0, of)
}
