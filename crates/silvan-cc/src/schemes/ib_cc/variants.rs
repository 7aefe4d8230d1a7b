//! Published settings of InfiniBand's congestion control.

use serde_json::{Value, json};

use crate::schemes::variant::{Cost, FabricFacts, Unsuited, Variant, nearest, ns};

/// Threshold, Packet_Size, Marking_Rate and its counter, queue length; a table of 128 entries of two bytes and the timer; an
/// index for each flow.
const COST: Cost = Cost::new(8, 258, 1, "notifications");

/// Entries of the table behind the first one.
const CCT_STEPS: u16 = 127;
/// Largest delay that an entry of the table can have, in packet times.
const MOST_DELAY: usize = 16_383;

/// Sweeps of the DCMS within a run.
const DCMS_SWEEPS: u64 = 50;
/// Sweeps for which a Marking_Rate stays low at most.
const DCMS_LOW_SWEEPS: u64 = 12;
/// A counter of waiting has ticks of 22 ns, and a threshold of one tick must be below its growth.
const LEAST_INTERVAL_NS: u64 = 44;
/// mizero2017, section 4: T_C and T_W in ticks of 22 ns and T_D in words, for sweeps every 1.25 s and a link of 32 Gbit/s.
const DCMS_INTERVAL_S: f64 = 1.25;
const DCMS_GBPS: f64 = 32.0;
const DCMS_CONGESTION: f64 = 8_000_000.0;
const DCMS_REDUCTION: f64 = 27_400_000.0;
const DCMS_CHANGE: f64 = 30_000_000.0;

/// Table I of gran2012.
pub(in crate::schemes) fn table_1() -> Vec<(&'static str, Value)> {
    vec![
        ("switch.threshold", 15.into()),
        ("switch.packet-size", 0.into()),
        ("switch.marking-rate", 0.into()),
        ("adapter.ccti-increase", 1.into()),
        ("adapter.ccti-limit", 127.into()),
        ("adapter.ccti-min", 0.into()),
        ("adapter.ccti-timer", 150.into()),
    ]
}

pub(super) fn variants(facts: &FabricFacts) -> Vec<Variant> {
    let table = |name, summary: String, cost| {
        Variant::new(name, summary, cost)
            .all(table_1())
            .carrier("cnp")
    };
    let as_sold = format!(
        "defaults of the vendor's manager, table for {} hosts",
        facts.hosts
    );
    vec![
        table("ib-cc", "Table I of gran2012".to_owned(), COST),
        with_dcms(facts, table),
        vendor(facts, table("ib-cc+vendor", as_sold.clone(), COST)),
        vendor(
            facts,
            table(
                "ib-cc+vendor+adaptive",
                format!("{as_sold}, adaptive routing"),
                COST,
            ),
        )
        .set("fabric.path-choice", "adaptive")
        .unless(facts.lacks_choice(facts.allows_adaptive)),
    ]
}

/// The DCMS of mizero2017, scaled to a run that is much shorter than the paper's.
fn with_dcms(
    facts: &FabricFacts,
    table: impl Fn(&'static str, String, Cost) -> Variant,
) -> Variant {
    let duration_ps = facts.duration.as_ps() as f64;
    let interval_s = duration_ps / 1e12 / DCMS_SWEEPS as f64;
    let shorter = interval_s / DCMS_INTERVAL_S;
    let interval_ns = nearest(interval_s * 1e9);
    let change = DCMS_CHANGE * shorter * facts.link_gbps() / DCMS_GBPS;
    let is_too_short = nearest(duration_ps / 1e3 / DCMS_SWEEPS as f64) < LEAST_INTERVAL_NS;
    let why = "the run is too short for 50 sweeps two ticks of a counter apart";
    let summary = format!("Marking_Rate 128, lowered where ports wait; {DCMS_SWEEPS} sweeps");
    let cost = Cost {
        messages: "notifications, sweeps",
        ..COST
    };
    table("ib-cc+dcms", summary, cost)
        .own("switch.marking-rate", 128)
        .set(
            "control.dcms",
            json!({
                "interval": ns(interval_ns),
                "congestion-threshold": nearest(DCMS_CONGESTION * shorter).max(1),
                "rate-reduction-threshold": nearest(DCMS_REDUCTION * shorter).max(1),
                "utilization-change-threshold": nearest(change).max(1),
                "low-duration": ns(interval_ns * DCMS_LOW_SWEEPS),
                "rescan": 1,
            }),
        )
        .unless(is_too_short.then_some(Unsuited::Fabric(why)))
}

/// The settings of the vendor's manager without an options file.
///
/// Its manual (MLNX_OFED, "Congestion Control Manager") has the numbers, and says that table and timer follow from the number of
/// hosts, but not how. Here the last entry leaves a flow its share of an incast of all hosts, and the timer is that of Table I
/// of gran2012.
fn vendor(facts: &FabricFacts, variant: Variant) -> Variant {
    let last = facts.hosts.saturating_sub(1).min(MOST_DELAY) as f64;
    let slope = last / f64::from(CCT_STEPS);
    variant
        // 0x200 bytes in units of 64, and a mean of 0xa packets between two that are marked.
        .own("switch.packet-size", 8)
        .own("switch.marking-rate", 10)
        .own("adapter.trigger-threshold", 2)
        .own("adapter.ccti-limit", CCT_STEPS)
        .own("adapter.cct", json!({ "shape": "linear", "slope": slope }))
}
