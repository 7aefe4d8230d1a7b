//! The schemes on the fabric of a scenario: facts that published settings depend on, variants and searches as plain data.

use serde_json::{Value, json};
use silvan_cc::schemes::{
    FabricFacts, ParameterInfo, SchemeName, Search, SearchValues, Unsuited, Variant, variants,
};
use silvan_fabric::routing::{PathChoice, RoutingName};
use silvan_model::{FeedbackPath, Queueing};

use crate::parsed::FlowControl;
use crate::{Override, Scenario};

/// A signal in a cable.
const S_PER_METRE: f64 = 5e-9;
const PS_PER_S: f64 = 1e12;

impl Scenario {
    /// The longest round trip without queues, in seconds.
    ///
    /// A packet of MTU size takes its time on the host's link and in the sink, and passes cables and switches; its
    /// acknowledgement takes the delay of feedback, and in band the path, too.
    pub fn base_rtt_s(&self) -> f64 {
        let file = self.file();
        let cables = f64::from(self.routes().max_hops);
        let cable_s = match file.link.latency {
            Some(latency) => latency.as_ps() as f64 / PS_PER_S,
            None => f64::from(file.link.length.as_mm()) / 1e3 * S_PER_METRE,
        };
        let switch_s = file.switch.latency.as_ps() as f64 / PS_PER_S;
        let path_s = cables * cable_s + (cables - 1.0) * switch_s;
        let wire_bytes = file.packet.mtu.as_u64() + file.packet.header.as_u64();
        let gbps = file.link.kind().data_rate().bits_per_sec() as f64 / 1e9;
        let feedback = &file.control.feedback;
        let mut back_s = feedback.delay.as_ps() as f64 / PS_PER_S;
        if feedback.path == FeedbackPath::InBand {
            back_s += path_s;
        }
        path_s + (2 * wire_bytes * 8) as f64 / (gbps * 1e9) + back_s
    }

    /// The facts that published settings of schemes depend on.
    pub fn fabric_facts(&self) -> FabricFacts {
        let file = self.file();
        let switches = self.fabric().switch_count();
        let chooses_paths = file.fabric.path_choice != PathChoice::Table;
        let choosing = |choice: &str| {
            let choice = Override::new("fabric.path-choice", choice);
            let is_possible = !chooses_paths && switches != 1;
            is_possible
                .then(|| self.with_overrides(&[choice]).ok())
                .flatten()
        };
        let mut facts = FabricFacts {
            link_rate: file.link.kind().data_rate(),
            has_credits: file.link.flow_control == FlowControl::Credits,
            mtu: file.packet.mtu,
            header: file.packet.header,
            feedback: file.control.feedback.bytes,
            switch_buffer: file.switch.buffer_behind(file.link.kind(), file.packet),
            hosts: self.fabric().host_count(),
            switches,
            max_hops: self.routes().max_hops,
            base_rtt_s: self.base_rtt_s(),
            is_fat_tree: file.fabric.routing().name() == RoutingName::DModK,
            chooses_paths,
            allows_adaptive: choosing("adaptive").is_some(),
            ecmp_base_rtt_s: choosing("ecmp").map(|scenario| scenario.base_rtt_s()),
            data_vls: file.vl.lanes(),
            frees_lanes: true,
            waits_once: file.switch.queueing == Queueing::Voq
                && file.switch.output_buffer.is_none(),
            duration: self.duration(),
        };
        if facts.lacks_lanes().is_none() && !facts.is_fat_tree {
            let two_lanes = [
                Override::new("control.scheme", SchemeName::VlMapping.as_str()),
                Override::new("vl.data-vls", "2"),
            ];
            facts.frees_lanes = self.with_overrides(&two_lanes).is_ok();
        }
        facts
    }

    /// The variants of all schemes on the fabric: name, scheme, summary, settings, cost, and why those take no part that do not.
    pub fn scheme_variants(&self) -> Value {
        let variants = variants(&self.fabric_facts()).into_iter();
        variants
            .map(|(scheme, one)| variant(scheme, &one))
            .collect()
    }
}

fn variant(scheme: SchemeName, variant: &Variant) -> Value {
    let unsuited = variant.unsuited.map(|reason| match reason {
        Unsuited::Links(why) => json!({ "kind": "links", "why": why }),
        Unsuited::Fabric(why) => json!({ "kind": "fabric", "why": why }),
        Unsuited::ByHand(how) => json!({ "kind": "by-hand", "why": how }),
    });
    json!({
        "name": variant.name,
        "scheme": scheme.as_str(),
        "summary": variant.summary,
        "overrides": variant.overrides(scheme.as_str()),
        "cost": variant.cost,
        "unsuited": unsuited,
    })
}

/// The parameters of a scheme that are searched, in the order in which they are drawn: key, values, and a key that a scenario must
/// have beside it.
pub fn scheme_searches(scheme: SchemeName) -> Value {
    let searched = scheme.searched().into_iter();
    searched
        .filter_map(|(table, parameter)| {
            let key = |key| format!("control.{table}.{key}");
            let ParameterInfo { search, .. } = parameter;
            let Search { values, beside, .. } = search?;
            let values = match values {
                SearchValues::Scaled => json!("scaled"),
                SearchValues::Numbers { low, high, log } => {
                    json!({ "low": low, "high": high, "log": log, "whole": false })
                }
                SearchValues::Whole { low, high, log } => {
                    json!({ "low": low, "high": high, "log": log, "whole": true })
                }
                SearchValues::Choices(choices) => json!({ "choices": choices }),
            };
            Some(json!({ "key": key(parameter.key), "values": values, "beside": beside.map(key) }))
        })
        .collect()
}
