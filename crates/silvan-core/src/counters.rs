//! The counters of a port, each declared once: tables, agent, metrics and reference follow.

use crate::Span;

/// Bytes of a word, the unit of data in management datagrams (PortXmitData, IBA 16.1.3.5).
pub const DATA_WORD: u64 = 4;

/// Bytes of a packet that no counter of data includes: its VCRC.
pub const VCRC: u64 = 2;

/// The tick of PortXmitWait and PortXmitTimeCong of emulated switches that show no other device; a symbol at 2.5 Gbit/s.
pub const EMULATED_TICK: Span = Span::from_ns(4);

/// A result table that has a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterTable {
    /// `ports`: the totals of a run.
    Ports,
    /// `ports`, of runs that discard packets without a route.
    PortsIfUnroutable,
    /// `ports`, of runs with faults that lose packets.
    PortsIfFaults,
    /// `ports`, of runs with bit errors.
    PortsIfBitErrors,
    /// `ports`, of runs with PFC.
    PortsIfPfc,
    /// `port_series`: growth by probe interval.
    PortSeries,
}

/// The unit of a counter.
#[derive(Clone, Copy, Debug)]
pub enum CounterUnit {
    /// Packets.
    Packets,
    /// Events that are no packets, such as bit errors.
    Events,
    /// Bytes on the wire. Datagrams have them in words of four bytes, without the VCRC of each packet.
    Bytes {
        /// The packets that the bytes belong to.
        packets: fn(&PortCounters) -> u64,
    },
    /// Time: picoseconds in tables, ticks in datagrams.
    Time,
}

/// A field of a performance management attribute, by the names that `silvan-mad` has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterField {
    /// The attribute.
    pub attribute: &'static str,
    /// Name of the field in the attribute.
    pub field: &'static str,
}

/// The declaration of a counter.
#[derive(Clone, Copy, Debug)]
pub struct PortCounter {
    /// The name.
    pub name: &'static str,
    /// The column in result tables: the name and, for times, the unit.
    pub column: &'static str,
    /// Unit of the counted values.
    pub unit: CounterUnit,
    /// Result tables with a column for this counter.
    pub tables: &'static [CounterTable],
    /// The fields of datagrams that carry it.
    pub fields: &'static [CounterField],
    /// Name of the metric, without the prefix `infiniband_switch_` and the suffixes of unit and kind.
    pub metric: Option<&'static str>,
    description: &'static str,
    read: fn(&PortCounters) -> u64,
}

impl PortCounter {
    /// Returns the description as a phrase.
    pub fn description(&self) -> &'static str {
        self.description.trim()
    }

    /// The value in the unit of result tables: packets, events, bytes or picoseconds.
    pub fn read(&self, counters: &PortCounters) -> u64 {
        (self.read)(counters)
    }

    /// The value in the unit of management datagrams: packets, events, words of four bytes, or ticks.
    pub fn in_datagram(&self, counters: &PortCounters, tick: Span) -> u64 {
        let value = self.read(counters);
        match self.unit {
            CounterUnit::Packets | CounterUnit::Events => value,
            CounterUnit::Bytes { packets } => {
                value.saturating_sub(VCRC * packets(counters)) / DATA_WORD
            }
            CounterUnit::Time => value / tick.as_ps(),
        }
    }

    /// Returns true if this field of a datagram carries the counter.
    pub fn is_in(&self, attribute: &str, field: &str) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|slot| slot.attribute == attribute && slot.field == field)
    }
}

macro_rules! counter {
    (type Time) => {
        Span
    };
    (type $unit:ident) => {
        u64
    };
    (read Time $value:expr) => {
        $value.as_ps()
    };
    (read $unit:ident $value:expr) => {
        $value
    };
    (since Time $now:expr, $before:expr) => {
        $now.saturating_sub($before)
    };
    (since $unit:ident $now:expr, $before:expr) => {
        $now - $before
    };
    (column Time $name:ident) => {
        concat!(stringify!($name), "_ps")
    };
    (column $unit:ident $name:ident) => {
        stringify!($name)
    };
    (unit Bytes $packets:ident) => {
        CounterUnit::Bytes {
            packets: |counters| counters.$packets,
        }
    };
    (unit $unit:ident) => {
        CounterUnit::$unit
    };
}

macro_rules! port_counters {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $unit:ident $(of $packets:ident)? {
            tables: [$($table:ident),*],
            fields: [$($attribute:ident.$field:ident),*],
            metric: $metric:expr,
        }
    )*) => {
        /// Counters of one port since the start (IBA 16.1.3 and 16.1.4). A packet counts as sent when
        /// it starts, and as received when its sender has started it.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct PortCounters {
            $($(#[doc = $doc])+ pub $name: counter!(type $unit),)*
        }

        impl PortCounters {
            /// All counters.
            pub const ALL: &'static [PortCounter] = &[$(PortCounter {
                name: stringify!($name),
                column: counter!(column $unit $name),
                unit: counter!(unit $unit $($packets)?),
                tables: &[$(CounterTable::$table),*],
                fields: &[$(CounterField {
                    attribute: stringify!($attribute),
                    field: stringify!($field),
                }),*],
                metric: $metric,
                description: concat!($($doc),+),
                read: |counters| counter!(read $unit counters.$name),
            }),*];

            /// Returns the counters of the table `port_series`, in the order of its columns and in their units.
            ///
            /// Inlined, it computes the used columns only.
            #[inline(always)]
            pub fn sampled(&self) -> [u64; Self::SAMPLED] {
                let mut values = [0; Self::SAMPLED];
                let mut at = 0;
                $(if const { is_sampled(&[$(CounterTable::$table),*]) } {
                    values[at] = counter!(read $unit self.$name);
                    at += 1;
                })*
                debug_assert_eq!(at, Self::SAMPLED);
                values
            }

            /// Returns the growth since an earlier reading.
            pub fn since(&self, before: &Self) -> Self {
                Self {
                    $($name: counter!(since $unit self.$name, before.$name),)*
                }
            }
        }
    };
}

port_counters! {
    /// Bytes sent, on the wire.
    xmit_bytes: Bytes of xmit_pkts {
        tables: [Ports, PortSeries],
        fields: [PortCounters.xmit_data, PortCountersExtended.xmit_data],
        metric: Some("port_transmit_data"),
    }
    /// Packets sent.
    xmit_pkts: Packets {
        tables: [Ports],
        fields: [
            PortCounters.xmit_pkts,
            PortCountersExtended.xmit_pkts,
            PortCountersExtended.unicast_xmit_pkts
        ],
        metric: None,
    }
    /// Bytes received, on the wire.
    rcv_bytes: Bytes of rcv_pkts {
        tables: [Ports],
        fields: [PortCounters.rcv_data, PortCountersExtended.rcv_data],
        metric: None,
    }
    /// Packets received.
    rcv_pkts: Packets {
        tables: [Ports],
        fields: [
            PortCounters.rcv_pkts,
            PortCountersExtended.rcv_pkts,
            PortCountersExtended.unicast_rcv_pkts
        ],
        metric: None,
    }
    /// Time with packets to send and none sent, for lack of credits or because of arbitration.
    xmit_wait: Time {
        tables: [Ports, PortSeries],
        fields: [PortCounters.xmit_wait, PortCountersExtended.xmit_wait],
        metric: Some("port_transmit_wait"),
    }
    /// Time in the congestion state, summed over the data virtual lanes.
    xmit_cong: Time {
        tables: [Ports, PortSeries],
        fields: [PortXmitConCtrl.time_cong],
        metric: Some("port_transmit_time_congested"),
    }
    /// Packets that the switch marked with FECN as they left through this port.
    fecn_marked: Packets {
        tables: [Ports, PortSeries],
        fields: [],
        metric: None,
    }
    /// Packets that arrived here and had no forwarding entry or no virtual lane.
    relay_errors: Packets {
        tables: [PortsIfUnroutable],
        fields: [
            PortCounters.rcv_switch_relay_errors,
            PortCountersExtended.rcv_switch_relay_errors,
            PortRcvErrorDetails.dlid_mapping_errors
        ],
        metric: None,
    }
    /// Packets with bit errors that this port discarded, and packets that were on its cable when that was cut.
    rcv_errors: Packets {
        tables: [PortsIfFaults],
        fields: [
            PortCounters.rcv_errors,
            PortCountersExtended.rcv_errors,
            PortRcvErrorDetails.local_physical_errors
        ],
        metric: None,
    }
    /// Times that the link went down.
    link_downed: Events {
        tables: [PortsIfFaults],
        fields: [],
        metric: None,
    }
    /// Bit errors that this port received, those between packets included.
    symbol_errors: Events {
        tables: [PortsIfBitErrors],
        fields: [],
        metric: None,
    }
    /// Times that the link was retrained, because bad packets outnumbered good ones by more than 8.
    link_error_recovery: Events {
        tables: [PortsIfBitErrors],
        fields: [
            PortCounters.link_error_recovery,
            PortCountersExtended.link_error_recovery,
            PortCounters.local_link_integrity_errors,
            PortCountersExtended.local_link_integrity_errors
        ],
        metric: None,
    }
    /// Packets that this port received again, because the link replayed them.
    link_replays: Packets {
        tables: [PortsIfBitErrors],
        fields: [],
        metric: None,
    }
    /// Packets bound for this output that it discarded.
    xmit_discards: Packets {
        tables: [PortsIfFaults],
        fields: [PortCounters.xmit_discards, PortCountersExtended.xmit_discards],
        metric: None,
    }
    /// Packets discarded because the output was closed.
    inactive_discards: Packets {
        tables: [],
        fields: [PortXmitDiscardDetails.inactive_discards],
        metric: None,
    }
    /// Packets discarded to end a deadlock.
    stale_discards: Packets {
        tables: [],
        fields: [PortXmitDiscardDetails.sw_hoq_lifetime_limit_discards],
        metric: None,
    }
    /// Frames of PFC sent that pause or resume a priority, counted when they take effect.
    pause_sent: Packets {
        tables: [PortsIfPfc],
        fields: [],
        metric: None,
    }
    /// Frames of PFC received that pause or resume a priority, counted when they take effect.
    pause_rcv: Packets {
        tables: [PortsIfPfc],
        fields: [],
        metric: None,
    }
    /// Time paused by PFC, summed over the priorities.
    xmit_paused: Time {
        tables: [PortsIfPfc],
        fields: [],
        metric: None,
    }
}

impl PortCounters {
    /// Number of counters.
    pub const COUNT: usize = Self::ALL.len();

    /// Number of counters in the table `port_series`.
    pub const SAMPLED: usize = {
        let (mut count, mut index) = (0, 0);
        while index < Self::COUNT {
            count += is_sampled(Self::ALL[index].tables) as usize;
            index += 1;
        }
        count
    };

    /// A counter's place in [`ALL`](Self::ALL). Panics without such a name, in a constant at compile time.
    pub const fn index(name: &str) -> usize {
        let mut index = 0;
        while index < Self::COUNT {
            if same(Self::ALL[index].name, name) {
                return index;
            }
            index += 1;
        }
        panic!("no port counter has this name")
    }

    /// The counters that a table has.
    pub fn in_table(table: CounterTable) -> impl Iterator<Item = &'static PortCounter> {
        Self::ALL
            .iter()
            .filter(move |counter| counter.tables.contains(&table))
    }

    /// The counters as a table in Markdown.
    pub fn reference() -> String {
        let mut text = String::from("| counter | unit | counts | tables | datagrams | metric |\n");
        text.push_str("|---|---|---|---|---|---|\n");
        for counter in Self::ALL {
            text.push_str(&counter.reference_row());
        }
        text
    }
}

impl PortCounter {
    fn reference_row(&self) -> String {
        let unit = match self.unit {
            CounterUnit::Packets => "packets",
            CounterUnit::Events => "events",
            CounterUnit::Bytes { .. } => "bytes",
            CounterUnit::Time => "ps",
        };
        let table = |table: &CounterTable| match table {
            CounterTable::Ports => "`ports`",
            CounterTable::PortsIfUnroutable => {
                "`ports`, where packets without a route are discarded"
            }
            CounterTable::PortsIfFaults => "`ports`, with `[[fault]]` during the run",
            CounterTable::PortsIfBitErrors => "`ports`, with `[[fault]]` of bit errors",
            CounterTable::PortsIfPfc => "`ports`, with `link.flow-control = \"pfc\"`",
            CounterTable::PortSeries => "`port_series`",
        };
        let tables: Vec<_> = self.tables.iter().map(table).collect();
        let field = |slot: &CounterField| format!("{}.{}", slot.attribute, slot.field);
        let fields: Vec<_> = self.fields.iter().map(field).collect();
        let metric = self.metric.map_or_else(String::new, |metric| {
            let unit = match self.unit {
                CounterUnit::Bytes { .. } => "_bytes",
                CounterUnit::Packets | CounterUnit::Events | CounterUnit::Time => "",
            };
            format!("`infiniband_switch_{metric}{unit}_total`")
        });
        let (tables, fields) = (tables.join(", "), fields.join(", "));
        let (column, description) = (self.column, self.description());
        format!("| `{column}` | {unit} | {description} | {tables} | {fields} | {metric} |\n")
    }
}

const fn is_sampled(tables: &[CounterTable]) -> bool {
    let mut at = 0;
    while at < tables.len() {
        if matches!(tables[at], CounterTable::PortSeries) {
            return true;
        }
        at += 1;
    }
    false
}

/// Returns true if two texts are equal; usable in constants.
pub const fn same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 packets of 2,074 B on the wire, their VCRC included; 10 ns in ticks of 4 ns.
    #[test]
    fn datagrams_have_words_without_vcrc_and_whole_ticks() {
        let counters = PortCounters {
            xmit_bytes: 1_000 * 2_074,
            xmit_pkts: 1_000,
            xmit_wait: Span::from_ns(10),
            ..PortCounters::default()
        };
        let tick = Span::from_ns(4);
        let value =
            |name| PortCounters::ALL[PortCounters::index(name)].in_datagram(&counters, tick);
        assert_eq!(value("xmit_bytes"), 1_000 * 518);
        assert_eq!(value("xmit_pkts"), 1_000);
        assert_eq!(value("xmit_wait"), 2);
        assert_eq!(value("rcv_bytes"), 0);
    }

    /// Oracle: the declarations, read one by one.
    #[test]
    fn sampled_counters_are_those_of_the_table() {
        let counters = PortCounters {
            xmit_bytes: 3,
            xmit_pkts: 5,
            xmit_wait: Span::from_ns(7),
            xmit_cong: Span::from_ns(11),
            fecn_marked: 13,
            xmit_paused: Span::from_ns(17),
            ..PortCounters::default()
        };
        let columns = PortCounters::in_table(CounterTable::PortSeries);
        let read: Vec<u64> = columns.map(|column| column.read(&counters)).collect();
        assert_eq!(counters.sampled().as_slice(), read);
    }

    #[test]
    fn each_name_and_each_field_occurs_once() {
        let mut names: Vec<_> = PortCounters::ALL
            .iter()
            .map(|counter| counter.name)
            .collect();
        let mut fields: Vec<_> = PortCounters::ALL
            .iter()
            .flat_map(|counter| counter.fields)
            .map(|slot| (slot.attribute, slot.field))
            .collect();
        let (all_names, all_fields) = (names.len(), fields.len());
        names.sort_unstable();
        names.dedup();
        fields.sort_unstable();
        fields.dedup();
        assert_eq!((names.len(), fields.len()), (all_names, all_fields));
    }
}
