use silvan_cc::dcms::{DcmsController, Decision, Reason};
use silvan_core::PortId;
use silvan_core::growth::CongestionGrowth;
use silvan_scenario::Scenario;

use crate::table::{Table, TableSchema};

/// Growth of the root's PortXmitTimeCong, and of the victim's PortXmitWait and PortXmitData; 0 for none.
fn evidence(reason: &Reason) -> [u64; 3] {
    let of = |counter: Option<u64>| counter.unwrap_or_default();
    let victim = |growth: &CongestionGrowth| (of(growth.xmit_wait), of(growth.xmit_data));
    match reason {
        Reason::VictimFound { root, waits, .. } => {
            let (wait, data) = victim(waits);
            [of(root.xmit_time_cong), wait, data]
        }
        Reason::VictimGone { now, .. } => {
            let (wait, data) = victim(now);
            [0, wait, data]
        }
        _ => [0; 3],
    }
}

pub(crate) fn table(scenario: &Scenario, controller: &DcmsController) -> Table {
    let fabric = scenario.fabric();
    let log = controller.log();
    let name = |port: PortId| fabric.port_name(port).to_string();
    let texts =
        |read: &dyn Fn(&Decision) -> String| -> Vec<String> { log.iter().map(read).collect() };
    let counters =
        |index: usize| -> Vec<u64> { log.iter().map(|one| evidence(&one.reason)[index]).collect() };
    let mut table = Table::new(&DCMS);
    table.push(
        "time_ps",
        log.iter().map(|one| one.at.as_ps()).collect::<Vec<u64>>(),
    );
    table.push("port", texts(&|one| name(one.port)));
    table.push("reason", texts(&|one| one.reason.name().to_owned()));
    table.push(
        "victim",
        texts(&|one| one.reason.victim().map_or_else(String::new, name)),
    );
    table.push("marking_rate", rates(controller));
    table.push("root_time_cong_ticks", counters(0));
    table.push("victim_wait_ticks", counters(1));
    table.push("victim_data_words", counters(2));
    table
}

fn rates(controller: &DcmsController) -> Vec<u32> {
    let default = controller.machine().parameters().default_marking_rate;
    let mut in_force: Vec<u16> = Vec::new();
    let log = controller.log().iter();
    log.map(|one| {
        let index = one.port.index();
        if in_force.len() <= index {
            in_force.resize(index + 1, default);
        }
        if let Some(action) = one.action {
            in_force[index] = action.marking_rate;
        }
        u32::from(in_force[index])
    })
    .collect()
}

pub(crate) const DCMS: TableSchema = TableSchema {
    name: "dcms",
    rows: "One row per decision of the DCMS, in the order of time. Only with `[control.dcms]`.",
    columns: &[
        (&["time_ps"], "Time of the decision."),
        (&["port"], "The congested port, as `node:port`."),
        (&["reason"], "Why the decision was made."),
        (
            &["victim"],
            "The port of the victim, as `node:port`; empty without a victim.",
        ),
        (
            &["marking_rate"],
            "Marking_Rate that holds at the congested port from then on.",
        ),
        (
            &["root_time_cong_ticks"],
            "PortXmitTimeCong of the congested port in the last interval, in ticks, where the reason names it; otherwise 0.",
        ),
        (
            &["victim_wait_ticks", "victim_data_words"],
            "PortXmitWait, in ticks, and PortXmitData, in words of 4 B, of the victim in the last interval; otherwise 0.",
        ),
    ],
    has_counters: false,
};
