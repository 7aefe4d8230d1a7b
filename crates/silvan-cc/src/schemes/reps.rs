//! REPS (T. Bonato et al., "REPS: recycled entropy packet spraying for adaptive load balancing and failure mitigation",
//! EuroSys 2025).
//!
//! The host draws an entropy for each packet, by which switches choose its path ([`SourceControl::select_path`]); an
//! unmarked acknowledgement returns it for one more use. Marks are those of the other scheme, or of `k-min`. The
//! freezing mode after timeouts is missing: a lossless fabric has none.

use serde_json::Value;
use silvan_core::{Bytes, Time};

use super::red::RedMarker;
use crate::flow_table::{FlowTable, key};
use crate::hooks::{Ack, Flow, Settings, SourceControl};
use crate::parameters;
use crate::schemes::variant::{Cost, FabricFacts, Family, Variant, bytes, nearest, ns};
use crate::schemes::{Bounds, Declared, Defaults, Scheme, SchemeError, Search, Setup};
use silvan_core::stream::SplitMix64;

parameters! {
    /// REPS; the defaults are the paper's.
    pub struct Reps {
        /// Entropies to draw from; at most 65,536, as the header's field has 16 bits. With fewer entropies than paths,
        /// some paths stay unused.
        entropies: u32 {
            default: MOST_ENTROPIES,
            bounds: Bounds::Whole(1, MOST_ENTROPIES as u64),
            source: "the field of the header that switches hash has 16 bits",
        }
        /// Entropies that a flow keeps, at most 32.
        buffer: u8 {
            default: 8,
            bounds: Bounds::Whole(1, MOST_KEPT as u64),
            search: Search::whole(1, 32).log().late(),
        }
        /// Queue of an output up to which nothing is marked. Without it, the marks of another scheme in force count alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        k_min: Option<Bytes> {
            default: None,
            search: Search::SCALED,
        }
        /// Queue from which on all packets are marked; needs `k-min`.
        #[serde(skip_serializing_if = "Option::is_none")]
        k_max: Option<Bytes> {
            default: None,
            above: k_min,
            source: "switches mark from k-min on, and all packets from k-max on",
            search: Search::SCALED,
        }
    }
}

const MOST_KEPT: usize = 32;
const MOST_ENTROPIES: u32 = 1 << 16;

/// Eight entropies of two bytes, which of them are valid, the next place, and how many there are; Kmin, Kmax, slope and queue
/// length at a port.
const COST: Cost = Cost::new(14, 0, 19, "acknowledgements");

/// The longest round trip over paths that hosts choose among, in seconds, rounded to nanoseconds.
fn ecmp_rtt_s(facts: &FabricFacts<'_>) -> f64 {
    let ecmp = facts.other_routes.ecmp_base_rtt_s();
    let base_rtt_s = ecmp.unwrap_or(facts.base_rtt_s);
    (base_rtt_s * 1e9).ceil() / 1e9
}

/// A variant where hosts choose among shortest paths; acknowledgements take the path of a hash, or none.
fn among_paths(variant: Variant) -> Variant {
    variant
        .set("fabric.path-choice", "ecmp")
        .unless(|facts| facts.lacks_choice(|routes| routes.ecmp_base_rtt_s().is_some()))
}

/// The variants of NSCC with REPS.
pub fn with_nscc(facts: &FabricFacts<'_>) -> Vec<Variant> {
    let cost = Cost::new(14, 0, 53 + 19, "acknowledgements");
    let base_rtt = ns(nearest(ecmp_rtt_s(facts) * 1e9));
    let variant = Variant::new("nscc+reps", "nscc as it is above, paths by its marks", cost)
        .part("nscc", [("base-rtt", base_rtt.into())]);
    vec![among_paths(variant)]
}

/// The variants of Swift with REPS.
pub fn with_swift(facts: &FabricFacts<'_>) -> Vec<Variant> {
    let cost = Cost::new(14, 0, 28 + 19, "acknowledgements");
    let summary = "swift as it is above, paths by the marks of reps";
    let variant = Variant::new("swift+reps", summary, cost).part("reps", marks(facts));
    vec![among_paths(variant)]
}

fn marks(facts: &FabricFacts<'_>) -> [(&'static str, Value); 2] {
    let product = nearest(ecmp_rtt_s(facts) * facts.link_gbps() * 1e9 / 8.0).max(1);
    [
        ("k-min", bytes(product).into()),
        ("k-max", bytes(4 * product).into()),
    ]
}

impl Scheme for Reps {
    type Switch = RedMarker;
    type Source = Recycling;

    const DEFAULTS: Defaults = Defaults {
        carrier_required: Some(
            "REPS learns from the acknowledgement of each packet whether its path is good",
        ),
        ..Defaults::ACK_PER_PACKET
    };

    const FAMILY: Family = Family::Paths;

    fn variants(facts: &FabricFacts<'_>) -> Vec<Variant> {
        let summary = "paths alone; marks from one to four bandwidth-delay products";
        let variant = Variant::new("reps", summary, COST).all(marks(facts));
        vec![among_paths(variant)]
    }

    fn check(&self) -> Result<(), SchemeError> {
        self.check_bounds()?;
        let missing = match (self.k_min, self.k_max) {
            (Some(_), None) => "k-max",
            (None, Some(_)) => "k-min",
            _ => return Ok(()),
        };
        let message = "missing key: queues are marked from k-min to k-max";
        Err(SchemeError::new(missing, message, "write both, or neither"))
    }

    fn check_setup(&self, setup: &Setup<'_>) -> Result<(), SchemeError> {
        if setup.has_alternatives {
            return Ok(());
        }
        Err(SchemeError::new(
            "entropies",
            "the forwarding tables leave hosts no paths to choose from",
            "set fabric.path-choice to \"ecmp\"; packets without an entropy take its paths",
        ))
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(RedMarker, Recycling), SchemeError> {
        let switch = match (self.k_min, self.k_max) {
            (Some(k_min), Some(k_max)) => RedMarker::new(k_min, k_max, 1.0, setup),
            _ => RedMarker::off(setup),
        };
        let streams = (0..setup.hosts as u64)
            .map(|host| SplitMix64::for_stream(setup.host_seed(), host))
            .collect();
        let source = Recycling {
            entropies: self.entropies,
            buffer: self.buffer,
            streams,
            flows: vec![FlowTable::new(); setup.hosts],
        };
        Ok((switch, source))
    }
}

/// A ring of entropies, oldest at `first`.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    entropies: [u16; MOST_KEPT],
    first: u8,
    count: u8,
}

impl Kept {
    fn pop(&mut self, buffer: u8) -> Option<u16> {
        self.count = self.count.checked_sub(1)?;
        let oldest = self.entropies[usize::from(self.first)];
        self.first = (self.first + 1) % buffer;
        Some(oldest)
    }

    fn push(&mut self, buffer: u8, entropy: u16) {
        let place = (self.first + self.count) % buffer;
        self.entropies[usize::from(place)] = entropy;
        if self.count < buffer {
            self.count += 1;
        } else {
            self.first = (self.first + 1) % buffer;
        }
    }
}

/// The hosts.
#[derive(Clone, Debug)]
pub struct Recycling {
    entropies: u32,
    buffer: u8,
    streams: Vec<SplitMix64>,
    flows: Vec<FlowTable<Kept>>,
}

impl SourceControl for Recycling {
    fn separates_flows(&self) -> bool {
        true
    }

    fn needs_ack(&self) -> bool {
        true
    }

    fn needs_select_path(&self) -> bool {
        true
    }

    fn select_path(&mut self, _: Time, flow: Flow) -> Option<u32> {
        let host = flow.source.index();
        let kept = self.flows[host].get_mut(key(flow));
        if let Some(entropy) = kept.and_then(|kept| kept.pop(self.buffer)) {
            return Some(entropy.into());
        }
        let drawn = u128::from(self.streams[host].next()) * u128::from(self.entropies);
        Some((drawn >> 64) as u32)
    }

    fn on_ack(&mut self, _: Time, flow: Flow, ack: Ack<'_>) -> bool {
        let (Some(entropy), false) = (ack.path, ack.becn) else {
            return false;
        };
        let flows = &mut self.flows[flow.source.index()];
        if flows.get(key(flow)).is_none() {
            flows.insert(key(flow), Kept::default(), |_, _| true);
        }
        if let Some(kept) = flows.get_mut(key(flow)) {
            kept.push(self.buffer, entropy as u16);
        }
        false
    }
}

impl Settings for Recycling {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use std::collections::VecDeque;

    use proptest::prelude::*;
    use silvan_core::Span;

    use super::super::flows::tests::{are_refused, at, flow, setup};
    use super::*;

    fn recycling(buffer: u8, entropies: u32) -> Recycling {
        let reps = Reps {
            buffer,
            entropies,
            ..Reps::default()
        };
        reps.build(&setup()).unwrap().1
    }

    fn acknowledge(source: &mut Recycling, path: u32, becn: bool) {
        let ack = Ack {
            bytes: 1_000,
            becn,
            sent: at(0),
            endpoint: Span::ZERO,
            path: Some(path),
            hops: &[],
        };
        assert!(!source.on_ack(at(1), flow(), ack));
    }

    /// Each entropy that comes back without a mark is used once more, and no marked one.
    #[test]
    fn unmarked_entropies_are_used_again_in_their_order() {
        let mut source = recycling(8, 65_536);
        for (path, becn) in [(7, false), (8, true), (9, false)] {
            acknowledge(&mut source, path, becn);
        }
        let chosen: Vec<_> = (0..2)
            .map(|_| source.select_path(at(2), flow()).unwrap())
            .collect();
        assert_eq!(chosen, [7, 9]);
        let kept = source.flows[0].get(key(flow())).unwrap();
        assert_eq!(kept.count, 0);
    }

    /// Fresh entropies are uniform: of 64,000 draws from 64, none is further from 1,000 than five deviations.
    #[test]
    fn fresh_entropies_are_uniform() {
        let mut source = recycling(8, 64);
        let mut counts = [0_i32; 64];
        for _ in 0..64_000 {
            counts[source.select_path(at(0), flow()).unwrap() as usize] += 1;
        }
        assert!(counts.iter().all(|count| (count - 1_000).abs() < 160));
    }

    proptest! {
        /// The buffer equals a queue that drops its oldest element, for any arrivals and departures.
        #[test]
        fn the_buffer_is_a_queue_that_drops_its_oldest(
            buffer in 1_u8..=32,
            steps in prop::collection::vec((any::<bool>(), any::<u16>()), 1..200),
        ) {
            let mut kept = Kept::default();
            let mut queue = VecDeque::new();
            for (adds, entropy) in steps {
                if adds {
                    kept.push(buffer, entropy);
                    queue.push_back(entropy);
                    if queue.len() > buffer.into() {
                        queue.pop_front();
                    }
                } else {
                    prop_assert_eq!(kept.pop(buffer), queue.pop_front());
                }
            }
        }
    }

    #[test]
    fn marks_need_both_thresholds_and_a_choice_of_paths() {
        let base = Reps::default;
        let bytes = Some(Bytes::from_bytes(1));
        let cases = [(bytes, None, "k-max"), (None, bytes, "k-min")];
        are_refused(cases.map(|(k_min, k_max, key)| {
            let reps = Reps {
                k_min,
                k_max,
                ..base()
            };
            (reps, key)
        }));
        let error = base().check_setup(&setup()).unwrap_err();
        assert!(error.hint.contains("fabric.path-choice"), "{error}");
    }
}
