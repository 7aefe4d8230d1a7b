//! The performance management agent (volume 1, chapter 16, and annex A10): growth since an attribute's last reset;
//! 64-bit fields wrap around, others saturate.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use silvan_core::counters::DATA_WORD;
use silvan_core::{NodeId, PortCounter, PortId, PortNumber, Sl, Span, Vl};
use silvan_mad::performance::{
    PerformanceAttribute, PortCounters, PortCountersExtended, PortRcvConCtrl, PortRcvDataSl,
    PortSamplesControl, PortSlRcvBecn, PortSlRcvFecn, PortVlXmitTimeCong, PortVlXmitWaitCounters,
    PortXmitDataSl, SwPortVlCongestion,
};
use silvan_mad::{
    Bits, ClassPortInfo, FieldLocation, performance_capability as capability,
    performance_capability2,
};

use super::{
    AgentResult, Exchange, INVALID_VALUE, Refusal, UNSUPPORTED_ATTRIBUTE, UNSUPPORTED_METHOD,
};
use crate::plane::DataPlane;
use crate::subnet::Subnet;

const ROOM: usize = PerformanceAttribute::DATA_LEN;
const ALL_PORTS: u8 = 255;

#[derive(Clone, Copy)]
enum CounterKind {
    Nothing,
    Port(&'static PortCounter),
    Live(Read, u8),
}

struct LivePort<'a> {
    subnet: &'a Subnet,
    node: NodeId,
    port: PortId,
    from: Option<PortId>,
    tick: Span,
}

type Read = fn(&LivePort<'_>, u8) -> u64;

struct Live {
    attribute: u16,
    location: FieldLocation,
    read: Read,
}

macro_rules! live {
    ($($attribute:ident.$field:ident: $read:expr,)*) => {
        &[$(Live {
            attribute: $attribute::ID,
            location: $attribute::location(stringify!($field)),
            read: $read,
        }),*]
    };
}

const LIVE: &[Live] = live! {
    PortCounters.symbol_errors: |at, _| at.symbol_errors(),
    PortCounters.link_downed: |at, _| at.subnet.record(at.port).link_downed,
    PortCountersExtended.symbol_errors: |at, _| at.symbol_errors(),
    PortCountersExtended.link_downed: |at, _| at.subnet.record(at.port).link_downed,
    PortRcvConCtrl.fecn: |at, _| at.sum_sl(LivePort::fecn),
    PortRcvConCtrl.becn: |at, _| at.sum_sl(LivePort::becn),
    PortXmitDataSl.data: |at, sl| words(at.plane().by_sl(at.port).bytes[usize::from(sl)]),
    PortRcvDataSl.data: |at, sl| {
        at.from.map_or(0, |from| words(at.plane().by_sl(from).bytes[usize::from(sl)]))
    },
    PortSlRcvFecn.fecn: |at, sl| at.fecn(sl),
    PortSlRcvBecn.becn: |at, sl| at.becn(sl),
    PortVlXmitWaitCounters.wait: |at, vl| lane(vl, |vl| at.ticks(at.plane().waited_ps(at.port, vl))),
    PortVlXmitTimeCong.time_cong: |at, vl| lane(vl, |vl| at.ticks(at.plane().congested_ps(at.port, vl))),
    SwPortVlCongestion.congestion: |at, vl| lane(vl, |vl| at.plane().congestion_events(at.port, vl)),
};

impl LivePort<'_> {
    fn plane(&self) -> &DataPlane {
        &self.subnet.plane
    }

    fn ticks(&self, ps: u64) -> u64 {
        ps / self.tick.as_ps()
    }

    fn symbol_errors(&self) -> u64 {
        let counted = self.subnet.record(self.port).symbol_errors;
        counted.count(self.subnet.now()) + self.plane().counters(self.port).symbol_errors
    }

    fn sum_sl(&self, of: impl Fn(&Self, u8) -> u64) -> u64 {
        Sl::all().map(|sl| of(self, sl.as_u8())).sum()
    }

    fn fecn(&self, sl: u8) -> u64 {
        let plane = self.plane();
        self.from
            .map_or(0, |from| plane.by_sl(from).fecn[usize::from(sl)])
    }

    fn becn(&self, sl: u8) -> u64 {
        let (plane, sl) = (self.plane(), usize::from(sl));
        match self.subnet.fabric.nodes[self.node].as_host() {
            Some(host) => plane.engine.adapter().meter.becn[host.index()][sl],
            None => self.from.map_or(0, |from| plane.by_sl(from).becn[sl]),
        }
    }
}

fn words(bytes: u64) -> u64 {
    bytes / DATA_WORD
}

#[derive(Clone, Copy)]
struct Slot {
    kind: CounterKind,
    location: FieldLocation,
    element: u8,
    /// Bit of CounterSelect, from 16 on of CounterSelect2.
    select: u8,
}

impl Slot {
    fn read(&self, bytes: &[u8; ROOM]) -> u64 {
        self.location.read(bytes, usize::from(self.element))
    }

    fn write(&self, bytes: &mut [u8; ROOM], value: u64) {
        let element = usize::from(self.element);
        self.location.write_counter(bytes, element, value);
    }
}

static SLOTS: LazyLock<BTreeMap<u16, Vec<Slot>>> = LazyLock::new(|| {
    let ids =
        (0..=u16::MAX).filter(|&id| !matches!(id, ClassPortInfo::ID | PortSamplesControl::ID));
    ids.filter_map(|id| Some((id, slots(id)?))).collect()
});

fn slots(attribute: u16) -> Option<Vec<Slot>> {
    let name = PerformanceAttribute::name_of(attribute)?;
    let mut slots = Vec::new();
    for &location in PerformanceAttribute::fields_of(attribute)? {
        let Some(first) = location.select else {
            continue;
        };
        let counters = silvan_core::PortCounters::ALL;
        let of_every_run = counters
            .iter()
            .find(|counter| counter.is_in(name, location.name));
        let is_here = |live: &&Live| live.attribute == attribute && live.location == location;
        let live = LIVE.iter().find(is_here);
        slots.extend((0..location.elements as u8).map(|element| Slot {
            kind: match (of_every_run, live) {
                (Some(counter), _) => CounterKind::Port(counter),
                (None, Some(live)) => CounterKind::Live(live.read, element),
                (None, None) => CounterKind::Nothing,
            },
            location,
            element,
            select: first + element,
        }));
    }
    Some(slots)
}

fn selection(attribute: u16, asked: &[u8; ROOM]) -> u32 {
    const FIRST: FieldLocation = PortCounters::location("counter_select");
    const SECOND: FieldLocation = PortCounters::location("counter_select2");
    const SECOND_EXTENDED: FieldLocation = PortCountersExtended::location("counter_select2");
    let select = FIRST.read(asked, 0) as u32;
    // These attributes have more counters than bits.
    match attribute {
        PortCounters::ID => select | (SECOND.read(asked, 0) as u32) << 16,
        PortCountersExtended::ID => select | (SECOND_EXTENDED.read(asked, 0) as u32) << 16,
        _ => select,
    }
}

impl Subnet {
    pub(super) fn performance_agent(&mut self, exchange: &mut Exchange) -> AgentResult {
        match exchange.attribute {
            ClassPortInfo::ID if exchange.set => return Err(UNSUPPORTED_METHOD),
            ClassPortInfo::ID => {
                let info = ClassPortInfo {
                    base_version: 1,
                    class_version: 1,
                    capability_mask: capability::ALL_PORT_SELECT
                        | capability::EXTENDED_WIDTH
                        | capability::XMIT_WAIT,
                    capability_mask2: Bits::saturating(
                        performance_capability2::ADDITIONAL_EXTENDED.into(),
                    ),
                    response_time: Bits::saturating(16),
                    ..ClassPortInfo::default()
                };
                exchange.put(&info.emit(), ROOM);
                return Ok(());
            }
            PortSamplesControl::ID if exchange.set => return Err(UNSUPPORTED_METHOD),
            PortSamplesControl::ID => {
                let asked = PortSamplesControl::parse(&exchange.data());
                let ports = self.selected(exchange, asked.port_select.as_u8())?;
                let mut ports = ports
                    .into_iter()
                    .filter_map(|(node, number)| self.port_id(node, PortNumber::new(number)));
                // Nothing can be sampled; 4 means 32-bit counters. A switch's own port counts nothing.
                let control = PortSamplesControl {
                    port_select: asked.port_select,
                    tick: ports.next().map_or(0, |port| self.tick_code(port)),
                    counter_width: Bits::saturating(4),
                    ..PortSamplesControl::default()
                };
                exchange.put(&control.emit(), ROOM);
                return Ok(());
            }
            _ => {}
        }
        let slots = SLOTS
            .get(&exchange.attribute)
            .ok_or(UNSUPPORTED_ATTRIBUTE)?;
        let asked: [u8; ROOM] = exchange.data();
        const SELECT: FieldLocation = PortCounters::location("port_select");
        let ports = self.selected(exchange, SELECT.read(&asked, 0) as u8)?;
        if exchange.set {
            let select = selection(exchange.attribute, &asked);
            self.reset(&ports, exchange.attribute, slots, (select, &asked));
        }
        let mut answer = [0; ROOM];
        answer[..4].copy_from_slice(&asked[..4]);
        for (location, slot) in (0u8..).zip(slots) {
            let key = (exchange.attribute, location);
            let sum = ports
                .iter()
                .map(|&(node, number)| self.counter(node, number, slot.kind, key))
                .fold(0, u64::wrapping_add);
            slot.write(&mut answer, sum);
        }
        exchange.put(&answer, ROOM);
        Ok(())
    }

    /// Ports that PortSelect names, with the nodes that have their records. 0 is a switch's own port, which counts
    /// nothing, or an adapter's addressed port.
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
        let location = |number| {
            let node = self.node_with_port(exchange.at.node, PortNumber::new(number));
            (node, number)
        };
        Ok(numbers.map(location).collect())
    }

    fn reset(
        &mut self,
        ports: &[(NodeId, u8)],
        attribute: u16,
        slots: &[Slot],
        (select, values): (u32, &[u8; ROOM]),
    ) {
        for (location, slot) in (0u8..).zip(slots) {
            if select >> slot.select & 1 == 0 {
                continue;
            }
            for &(node, number) in ports {
                let base = self
                    .raw(node, number, slot.kind)
                    .wrapping_sub(slot.read(values));
                let record = &mut self.state_mut(node).ports[usize::from(number)];
                record.bases.insert((attribute, location), base);
            }
        }
    }

    pub fn clear_counters(&mut self, node: NodeId) {
        let ports: Vec<(NodeId, u8)> = (1..=self.state(node).info.num_ports)
            .map(|number| (node, number))
            .collect();
        for (&attribute, slots) in &*SLOTS {
            self.reset(&ports, attribute, slots, (u32::MAX, &[0; ROOM]));
        }
    }

    fn counter(&self, node: NodeId, number: u8, kind: CounterKind, key: (u16, u8)) -> u64 {
        let record = &self.state(node).ports[usize::from(number)];
        let base = record.bases.get(&key).copied().unwrap_or(0);
        self.raw(node, number, kind).wrapping_sub(base)
    }

    /// Changes a port, and perhaps the tick of its counters of time, whose values stay.
    pub(crate) fn keep_counters(&mut self, port: PortId, change: impl FnOnce(&mut Self)) {
        let before = self.tick(port);
        change(self);
        let now = self.tick(port);
        if before == now {
            return;
        }
        let (node, _) = self.location(port);
        for (&attribute, slots) in &*SLOTS {
            for (location, slot) in (0u8..).zip(slots) {
                let [before, now] =
                    [before, now].map(|tick| self.raw_of_port(node, port, slot.kind, tick));
                let record = self.record_mut(port);
                let base = record.bases.entry((attribute, location)).or_insert(0);
                *base = base.wrapping_add(now.wrapping_sub(before));
            }
        }
    }

    fn raw(&self, node: NodeId, number: u8, kind: CounterKind) -> u64 {
        self.port_id(node, PortNumber::new(number))
            .map_or(0, |port| {
                self.raw_of_port(node, port, kind, self.tick(port))
            })
    }

    fn raw_of_port(&self, node: NodeId, port: PortId, kind: CounterKind, tick: Span) -> u64 {
        match kind {
            CounterKind::Nothing => 0,
            CounterKind::Port(counter) => counter.in_datagram(&self.plane.counters(port), tick),
            CounterKind::Live(read, number) => {
                let from = self.fabric.ports[port].peer;
                let at = LivePort {
                    subnet: self,
                    node,
                    port,
                    from,
                    tick,
                };
                read(&at, number)
            }
        }
    }
}

fn lane(vl: u8, of: impl Fn(Vl) -> u64) -> u64 {
    Vl::try_new(vl).map_or(0, of)
}
