use silvan_core::{PortId, Span};
use silvan_model::{PacketHop, PacketKind};

use crate::table::{Table, TableSchema};

pub(super) fn table(hops: &[PacketHop], ports: &[PortId]) -> Table {
    let row = |port: PortId| {
        ports
            .binary_search(&port)
            .map_or(u32::MAX, |row| row as u32)
    };
    let mut table = Table::new(&PACKET_HOPS);
    let wide = |read: &dyn Fn(&PacketHop) -> u64| -> Vec<u64> { hops.iter().map(read).collect() };
    let narrow = |read: &dyn Fn(&PacketHop) -> u32| -> Vec<u32> { hops.iter().map(read).collect() };
    let span = |read: fn(&PacketHop) -> Span| -> Vec<u64> {
        hops.iter().map(|hop| read(hop).as_ps()).collect()
    };
    let flag = |read: fn(&PacketHop) -> bool| -> Vec<bool> { hops.iter().map(read).collect() };
    table.push("time_ps", wide(&|hop| hop.at.as_ps()));
    table.push("arrived_ps", wide(&|hop| hop.arrived.as_ps()));
    table.push("ports_row", narrow(&|hop| row(hop.port)));
    let inputs = hops
        .iter()
        .map(|hop| hop.input.map(|port| u64::from(row(port))));
    table.push("input_row", inputs.collect::<Vec<Option<u64>>>());
    table.push("source", narrow(&|hop| hop.source.index() as u32));
    table.push("destination", narrow(&|hop| hop.destination.index() as u32));
    table.push("class", narrow(&|hop| u32::from(hop.class)));
    table.push("born_ps", wide(&|hop| hop.born.as_ps()));
    let kinds = hops.iter().map(|hop| match hop.kind {
        PacketKind::Data => "data",
        PacketKind::Cnp => "cnp",
        PacketKind::Ack => "ack",
        PacketKind::Grant => "grant",
    });
    table.push("kind", kinds.map(str::to_owned).collect::<Vec<String>>());
    table.push("wire_bytes", wide(&|hop| hop.wire.as_u64()));
    table.push("sl", narrow(&|hop| u32::from(hop.sl.as_u8())));
    table.push("vl", narrow(&|hop| u32::from(hop.vl.as_u8())));
    table.push("last", flag(|hop| hop.last));
    table.push("fecn", flag(|hop| hop.fecn));
    table.push("becn", flag(|hop| hop.becn));
    table.push("sent_before", wide(&|hop| hop.sent_before));
    table.push("credit_wait_ps", span(|hop| hop.credit_wait));
    table.push("pacing_ps", span(|hop| hop.pacing));
    table.push("throttling_ps", span(|hop| hop.throttling));
    let delivered = hops
        .iter()
        .map(|hop| hop.delivered.map(|time| time.as_ps()));
    table.push("delivered_ps", delivered.collect::<Vec<Option<u64>>>());
    table
}

pub(crate) const PACKET_HOPS: TableSchema = TableSchema {
    name: "packet_hops",
    rows: "One row per [recorded packet](../guide/results.md#single-packets) and port that it leaves, up to 10 million. Only with `[probe.packets]`.",
    columns: &[
        (&["time_ps"], "When its first bit leaves the port."),
        (
            &["arrived_ps"],
            "When it could have been chosen in its switch; at a host when the packet before it had left.",
        ),
        (&["ports_row"], "Row of `ports` of the port."),
        (
            &["input_row"],
            "Row of `ports` of the port by which it came; null at a host.",
        ),
        (&["source", "destination"], "Rows of `hosts`."),
        (
            &["class"],
            "Row of `classes`; of notifications the service level of their flow.",
        ),
        (
            &["born_ps"],
            "Start of injection; with the source it identifies a data packet. For other packets, `time_ps` at their host.",
        ),
        (
            &["kind"],
            "`data`, `cnp` (congestion notification packet), `ack` or `grant`.",
        ),
        (&["wire_bytes"], "Bytes on the wire."),
        (
            &["sl", "vl"],
            "Service level, and virtual lane on the link.",
        ),
        (&["last"], "True for the last packet of its message."),
        (&["fecn", "becn"], "True if it has these marks on the link."),
        (
            &["sent_before"],
            "Packets that the port has sent since `arrived_ps`.",
        ),
        (
            &["credit_wait_ps"],
            "Time since `arrived_ps` in which the port lacked credits.",
        ),
        (
            &["pacing_ps"],
            "Time since `arrived_ps` in which the injection rate of the host allowed no packet.",
        ),
        (
            &["throttling_ps"],
            "Time since `arrived_ps` in which congestion control allowed no packet of the flow.",
        ),
        (
            &["delivered_ps"],
            "When its last byte is in the receiving host; null unless this is the last link.",
        ),
    ],
    has_counters: false,
};
