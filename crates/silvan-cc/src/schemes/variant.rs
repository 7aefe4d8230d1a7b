//! Variants of schemes: published settings on a fabric, what they cost, and fabrics that do not suit them.

use std::fmt::Debug;

use serde::Serialize;
use serde_json::Value;
use silvan_core::{Bytes, Rate, Span};

const MOST_LANES: u64 = 8;
const LANE_PACKETS: u64 = 3;

/// Other routes of a fabric. An answer may take as long as building them.
pub trait OtherRoutes: Debug {
    /// Returns true if switches could choose paths by their queues.
    fn allows_adaptive(&self) -> bool;

    /// Returns the longest round trip where switches choose among shortest paths by a hash, in seconds; `None` if they cannot.
    fn ecmp_base_rtt_s(&self) -> Option<f64>;

    /// Returns true if routes need none of two lanes.
    fn frees_lanes(&self) -> bool;
}

/// The facts of a fabric and its run that published settings depend on.
#[derive(Clone, Debug)]
pub struct FabricFacts<'a> {
    /// Rate of a cable without a rate of its own.
    pub link_rate: Rate,
    /// True if links have credits; false for PFC.
    pub has_credits: bool,
    /// Largest payload of a packet.
    pub mtu: Bytes,
    /// Bytes of a packet on the wire in addition to its payload.
    pub header: Bytes,
    /// Input buffer of a switch port, per lane.
    pub switch_buffer: Bytes,
    /// Smallest input buffer of a lane with which a cable carries its rate.
    pub needed_buffer: Bytes,
    /// Number of hosts.
    pub hosts: usize,
    /// Number of switches.
    pub switches: usize,
    /// Cables on the longest route.
    pub max_hops: u32,
    /// The longest round trip without queues, in seconds.
    pub base_rtt_s: f64,
    /// True if the routing is `d-mod-k`, which is for fat trees.
    pub is_fat_tree: bool,
    /// True if switches or hosts choose among paths already.
    pub chooses_paths: bool,
    /// Data VLs of every port.
    pub data_vls: u8,
    /// True if packets wait at one place of a switch, in virtual output queues.
    pub waits_once: bool,
    /// Simulated time of the run.
    pub duration: Span,
    /// Other routes.
    pub other_routes: &'a dyn OtherRoutes,
}

#[derive(Debug)]
struct SingleRoutes;

impl OtherRoutes for SingleRoutes {
    fn allows_adaptive(&self) -> bool {
        false
    }

    fn ecmp_base_rtt_s(&self) -> Option<f64> {
        None
    }

    fn frees_lanes(&self) -> bool {
        true
    }
}

impl FabricFacts<'_> {
    /// Eight hosts of 4x NDR at a switch, for a millisecond: enough to list the names of variants, which depend on no fabric.
    pub const NOMINAL: FabricFacts<'static> = FabricFacts {
        link_rate: match Rate::from_bits_per_sec(400_000_000_000) {
            Some(rate) => rate,
            None => unreachable!(),
        },
        has_credits: true,
        mtu: Bytes::from_bytes(4_096),
        header: Bytes::from_bytes(26),
        switch_buffer: Bytes::from_bytes(131_072),
        needed_buffer: Bytes::from_bytes(16_640),
        hosts: 8,
        switches: 1,
        max_hops: 2,
        base_rtt_s: 3e-6,
        is_fat_tree: false,
        chooses_paths: false,
        data_vls: 1,
        waits_once: true,
        duration: Span::from_ms(1),
        other_routes: &SingleRoutes,
    };

    /// Rate of a cable in Gbit/s.
    pub fn link_gbps(&self) -> f64 {
        self.link_rate.bits_per_sec() as f64 / 1e9
    }

    /// The longest round trip without queues in nanoseconds, rounded up.
    pub fn base_rtt_ns(&self) -> u64 {
        (self.base_rtt_s * 1e9).ceil() as u64
    }

    /// The lanes that the memory of a single lane has room for: each for three packets, and for the rate of its link.
    pub fn lanes(&self) -> u64 {
        let packets = LANE_PACKETS * (self.mtu + self.header).as_u64();
        let lane = packets.max(self.needed_buffer.as_u64()).max(1);
        MOST_LANES.min(self.switch_buffer.as_u64() / lane)
    }

    /// The reason for schemes that need credits, where links have none.
    pub fn lacks_credits(&self, why: &'static str) -> Option<Unsuited> {
        (!self.has_credits).then_some(Unsuited::Links(why))
    }

    /// The reason for schemes that divide the memory of a single lane, where it cannot be divided.
    pub fn lacks_lanes(&self) -> Option<Unsuited> {
        let on_links =
            "its lanes share the memory of one, which has no headroom of PFC for each of them";
        if let Some(links) = self.lacks_credits(on_links) {
            return Some(links);
        }
        let why = if self.data_vls > 1 {
            "the scenario has more than one data VL already"
        } else if self.lanes() < 2 {
            "the buffer has no room for two lanes that carry the rate of a link"
        } else if !self.is_fat_tree && !self.other_routes.frees_lanes() {
            "the routes of the fabric need the lanes"
        } else {
            return None;
        };
        Some(Unsuited::Fabric(why))
    }

    /// The reason for schemes whose switches find the roots of congestion, where links have no credits.
    pub fn lacks_roots(&self) -> Option<Unsuited> {
        self.lacks_credits(
            "its switches tell roots from victims by credits, and links with PFC have none",
        )
    }

    /// The reason for schemes whose packets change lanes at a switch, where packets wait in other queues.
    pub fn lacks_output_queues(&self) -> Option<Unsuited> {
        let why = "packets wait in other queues than virtual output queues";
        (!self.waits_once).then_some(Unsuited::Fabric(why))
    }

    /// The reason for schemes that need to know the next output of a packet, where switches choose it.
    pub fn lacks_known_paths(&self) -> Option<Unsuited> {
        let why = "the next output must be known, and switches choose it";
        self.chooses_paths.then_some(Unsuited::Fabric(why))
    }

    /// The reason for schemes that choose among paths, where there are none to choose among.
    pub fn lacks_choice(&self, is_possible: fn(&dyn OtherRoutes) -> bool) -> Option<Unsuited> {
        let why = if self.chooses_paths {
            "the fabric already has a choice of paths"
        } else if self.switches == 1 {
            "the fabric has a single switch, and no paths to choose among"
        } else if !is_possible(self.other_routes) {
            "the fabric has no choice among shortest paths"
        } else {
            return None;
        };
        Some(Unsuited::Fabric(why))
    }
}

/// Resources of a variant in addition to the data path. Bytes are registers and counters of its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// State of a switch for each port and virtual lane.
    pub switch_bytes: u32,
    /// State of a host, independent of its flows.
    pub host_bytes: u32,
    /// State of a host for each flow that is held back or has a window; of congestion isolation, state of each switch that a
    /// congesting flow passes.
    pub flow_bytes: u32,
    /// Messages that travel.
    pub messages: &'static str,
}

impl Cost {
    /// A cost.
    pub const fn new(
        switch_bytes: u32,
        host_bytes: u32,
        flow_bytes: u32,
        messages: &'static str,
    ) -> Self {
        Self {
            switch_bytes,
            host_bytes,
            flow_bytes,
            messages,
        }
    }
}

/// A reason why a variant takes no part in comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsuited {
    /// Property that the links lack.
    Links(&'static str),
    /// Property that the fabric or the run lacks.
    Fabric(&'static str),
    /// Settings that no rule gives: the text to write.
    ByHand(&'static str),
}

/// Families of schemes, in the order in which comparisons list variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Marks from a threshold on, and no control.
    Threshold,
    /// Credits of the host.
    Credits,
    /// Marks at random by the length of a queue.
    RandomMarks,
    /// Acknowledgements: round trips, marks and what switches stamp.
    Acknowledgements,
    /// Credit from the receiver.
    Receivers,
    /// Reservations.
    Reservations,
    /// Paths.
    Paths,
    /// Lanes.
    Lanes,
    /// Anything else.
    Other,
}

type Condition = fn(&FabricFacts<'_>) -> Option<Unsuited>;

/// A scheme with published settings.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Name in commands, tables and figures: the scheme's name, possibly with an addition.
    pub name: &'static str,
    /// Summary of the settings.
    pub summary: String,
    /// Resources of the variant.
    pub cost: Cost,
    /// Settings of the scheme: keys of its table.
    pub own: Vec<(&'static str, Value)>,
    /// Other settings by dotted key.
    pub others: Vec<(String, Value)>,
    /// Rate of the links that the settings were made for; `None` if they follow from the fabric.
    pub made_for: Option<Rate>,
    conditions: Vec<Condition>,
}

impl Variant {
    /// A variant that suits the fabric, with all settings by default.
    pub fn new(name: &'static str, summary: impl Into<String>, cost: Cost) -> Self {
        Self {
            name,
            summary: summary.into(),
            cost,
            own: Vec::new(),
            others: Vec::new(),
            made_for: None,
            conditions: Vec::new(),
        }
    }

    /// The variant with a setting of its scheme, in the place of an earlier value.
    #[must_use]
    pub fn own(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        let value = value.into();
        match self.own.iter_mut().find(|(other, _)| *other == key) {
            Some((_, before)) => *before = value,
            None => self.own.push((key, value)),
        }
        self
    }

    /// The variant with settings of its scheme.
    #[must_use]
    pub fn all(self, settings: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let settings = settings.into_iter();
        settings.fold(self, |variant, (key, value)| variant.own(key, value))
    }

    /// The variant with a setting outside of its scheme's table.
    #[must_use]
    pub fn set(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.others.push((key.into(), value.into()));
        self
    }

    /// The variant with settings of one scheme of a chain.
    #[must_use]
    pub fn part(
        self,
        scheme: &str,
        settings: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Self {
        let settings = settings.into_iter();
        settings.fold(self, |variant, (key, value)| {
            variant.set(format!("control.{scheme}.{key}"), value)
        })
    }

    /// The variant with what carries notifications.
    #[must_use]
    pub fn carrier(self, carrier: &str) -> Self {
        self.set("control.feedback.carrier", carrier)
    }

    /// The variant with lanes that share the input buffer of one.
    #[must_use]
    pub fn lanes(self, count: u64) -> Self {
        self.set("vl.data-vls", count)
            .set("vl.share-buffer", true)
            .unless(|facts| facts.lacks_lanes())
    }

    /// The variant with the rate of the links that its settings were made for.
    #[must_use]
    pub fn made_for(mut self, rate: Rate) -> Self {
        self.made_for = Some(rate);
        self
    }

    /// The variant with a condition that leaves it out.
    #[must_use]
    pub fn unless(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Returns why it takes no part on this fabric: the first condition that holds.
    pub fn unsuited(&self, facts: &FabricFacts<'_>) -> Option<Unsuited> {
        self.conditions
            .iter()
            .find_map(|condition| condition(facts))
    }

    /// All settings by dotted key; `scheme` is the name of its scheme.
    pub fn settings(&self, scheme: &str) -> Vec<(String, Value)> {
        let own = self.own.iter();
        let own = own.map(|(key, value)| (format!("control.{scheme}.{key}"), value.clone()));
        own.chain(self.others.iter().cloned()).collect()
    }
}

/// An amount of data as a scenario writes it.
pub fn bytes(bytes: u64) -> String {
    format!("{bytes} B")
}

/// A time as a scenario writes it.
pub fn ns(ns: u64) -> String {
    format!("{ns} ns")
}

/// A rate as a scenario writes it.
pub fn mbit_per_s(rate: u64) -> String {
    format!("{rate} Mbit/s")
}

/// The whole number nearest to a number that is not negative, the even one of two.
pub fn nearest(value: f64) -> u64 {
    value.round_ties_even() as u64
}
