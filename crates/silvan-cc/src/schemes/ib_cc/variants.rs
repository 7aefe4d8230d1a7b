use serde_json::{Value, json};

use silvan_core::Rate;

use crate::schemes::variant::{Cost, FabricFacts, Unsuited, Variant, nearest, ns};

/// Threshold, Packet_Size, Marking_Rate and its counter, queue length; a table of 128 entries of two bytes and the timer; an
/// index for each flow.
const COST: Cost = Cost::new(8, 258, 1, "notifications");

const CCT_STEPS: u16 = 127;
/// In units of 1.024 us.
const CCTI_TIMER: u16 = 150;
const TABLE_1_RATE: Rate = match Rate::from_bits_per_sec(16_000_000_000) {
    Some(rate) => rate,
    None => unreachable!(),
};
/// Largest delay of a table entry, in packet times.
const MOST_DELAY: usize = 16_383;

const DCMS_SWEEPS: u64 = 50;
const DCMS_LOW_SWEEPS: u64 = 12;
/// Counters of waiting have ticks of 22 ns; a threshold of one tick must be below their growth.
const LEAST_INTERVAL_NS: u64 = 44;
/// mizero2017, section 4: T_C and T_W in ticks of 22 ns and T_D in words, for sweeps every 1.25 s and a link of 32 Gbit/s.
const DCMS_INTERVAL_S: f64 = 1.25;
const DCMS_GBPS: f64 = 32.0;
const DCMS_CONGESTION: f64 = 8_000_000.0;
const DCMS_REDUCTION: f64 = 27_400_000.0;
const DCMS_CHANGE: f64 = 30_000_000.0;

fn table_1() -> [(&'static str, Value); 7] {
    [
        ("switch.threshold", 15.into()),
        ("switch.packet-size", 0.into()),
        ("switch.marking-rate", 0.into()),
        ("adapter.ccti-increase", 1.into()),
        ("adapter.ccti-limit", CCT_STEPS.into()),
        ("adapter.ccti-min", 0.into()),
        ("adapter.ccti-timer", CCTI_TIMER.into()),
    ]
}

/// The vendor's manager without an options file (MLNX_OFED, "Congestion Control Manager"), by the number of hosts. Here
/// the last entry leaves a share of an incast of all; the timer is that of Table I of gran2012.
pub(in crate::schemes) fn by_hosts(hosts: usize) -> [(&'static str, Value); 9] {
    let last = hosts.saturating_sub(1).min(MOST_DELAY) as f64;
    let slope = last / f64::from(CCT_STEPS);
    [
        ("switch.threshold", 15.into()),
        ("switch.packet-size", 8.into()),
        ("switch.marking-rate", 10.into()),
        ("adapter.ccti-increase", 1.into()),
        ("adapter.ccti-limit", CCT_STEPS.into()),
        ("adapter.ccti-min", 0.into()),
        ("adapter.ccti-timer", CCTI_TIMER.into()),
        ("adapter.trigger-threshold", 2.into()),
        ("adapter.cct", json!({ "shape": "linear", "slope": slope })),
    ]
}

pub(super) fn variants(facts: &FabricFacts<'_>) -> Vec<Variant> {
    let variant =
        |name, summary: String| Variant::new(name, summary, COST).all(by_hosts(facts.hosts));
    let summary = format!(
        "defaults of the vendor's manager, table for {} hosts",
        facts.hosts
    );
    vec![
        variant("ib-cc", summary.clone()),
        with_dcms(facts, variant),
        variant("ib-cc+adaptive", format!("{summary}, adaptive routing"))
            .set("fabric.path-choice", "adaptive")
            .unless(|facts| facts.lacks_choice(|routes| routes.allows_adaptive())),
        Variant::new(
            "ib-cc+table1",
            "Table I of gran2012, for 648 hosts of 4x DDR",
            COST,
        )
        .all(table_1())
        .own("adapter.trigger-threshold", 0)
        .own("adapter.cct", json!({ "shape": "linear", "slope": 1.0 }))
        .made_for(TABLE_1_RATE),
    ]
}

fn with_dcms(
    facts: &FabricFacts<'_>,
    variant: impl Fn(&'static str, String) -> Variant,
) -> Variant {
    let duration_ps = facts.duration.as_ps() as f64;
    let interval_s = duration_ps / 1e12 / DCMS_SWEEPS as f64;
    let shorter = interval_s / DCMS_INTERVAL_S;
    let interval_ns = nearest(interval_s * 1e9);
    let change = DCMS_CHANGE * shorter * facts.link_gbps() / DCMS_GBPS;
    let summary = format!("Marking_Rate 128, lowered where ports wait; {DCMS_SWEEPS} sweeps");
    let mut variant = variant("ib-cc+dcms", summary);
    variant.cost.messages = "notifications, sweeps";
    variant
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
        .unless(|facts| {
            let interval_ns = facts.duration.as_ps() as f64 / 1e3 / DCMS_SWEEPS as f64;
            let why = "the run is too short for 50 sweeps two ticks of a counter apart";
            (nearest(interval_ns) < LEAST_INTERVAL_NS).then_some(Unsuited::Fabric(why))
        })
}
