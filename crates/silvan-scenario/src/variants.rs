//! Facts that published settings of schemes depend on, variants and searches as plain data.

use std::cell::OnceCell;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use silvan_cc::schemes::{
    FabricFacts, OtherRoutes, ParameterInfo, SchemeChoice, SchemeName, Search, SearchValues,
    Unsuited, Variant, variants,
};
use silvan_core::document::SourceText;
use silvan_fabric::check::RouteReport;
use silvan_fabric::routing::{PathChoice, RoutingName};
use silvan_model::{FeedbackPath, Queueing};

use crate::checks::at;
use crate::checks::buffers::input_buffer;
use crate::layout::Layout;
use crate::parsed::{FlowControl, ScenarioFile};
use crate::{KeyPath, Override, Scenario, ScenarioError};

const S_PER_METRE: f64 = 5e-9;
const PS_PER_S: f64 = 1e12;

/// The longest round trip without queues. Acknowledgements take the delay of feedback, and in band the path, too.
fn base_rtt_s(file: &ScenarioFile, routes: &RouteReport) -> f64 {
    let cables = f64::from(routes.max_hops);
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

#[derive(Debug)]
struct Rerouted<'a> {
    source: &'a SourceText,
    base: &'a Path,
    has_choices: bool,
    ecmp_base_rtt_s: OnceCell<Option<f64>>,
    frees_lanes: OnceCell<bool>,
}

impl<'a> Rerouted<'a> {
    fn new(source: &'a SourceText, base: &'a Path, layout: &Layout) -> Self {
        let path_choice = layout.file.fabric.path_choice;
        Self {
            source,
            base,
            has_choices: path_choice == PathChoice::Table && layout.fabric.switch_count() != 1,
            ecmp_base_rtt_s: OnceCell::new(),
            frees_lanes: OnceCell::new(),
        }
    }

    fn with(&self, key: &str, value: &str) -> Option<Layout> {
        let source = self.source.with_override(&Override::new(key, value)).ok()?;
        Layout::of(&source, self.base, None).ok()
    }
}

impl OtherRoutes for Rerouted<'_> {
    fn allows_adaptive(&self) -> bool {
        self.has_choices && self.with("fabric.path-choice", "adaptive").is_some()
    }

    fn ecmp_base_rtt_s(&self) -> Option<f64> {
        *self.ecmp_base_rtt_s.get_or_init(|| {
            let choosing = self
                .has_choices
                .then(|| self.with("fabric.path-choice", "ecmp"));
            let Layout { file, routed, .. } = choosing.flatten()?;
            Some(base_rtt_s(&file, &routed.report))
        })
    }

    fn frees_lanes(&self) -> bool {
        *self.frees_lanes.get_or_init(|| {
            let with_two = self.with("vl.data-vls", "2");
            with_two.is_some_and(|Layout { routed, .. }| {
                routed.lanes.is_none() && routed.steps.is_none()
            })
        })
    }
}

fn facts<'a>(layout: &Layout, other_routes: &'a dyn OtherRoutes) -> FabricFacts<'a> {
    let Layout { file, routed, .. } = layout;
    FabricFacts {
        link_rate: file.link.kind().data_rate(),
        has_credits: file.link.flow_control == FlowControl::Credits,
        mtu: file.packet.mtu,
        header: file.packet.header,
        switch_buffer: input_buffer(file),
        needed_buffer: file
            .switch
            .credit_loop(file.link.kind(), file.packet)
            .needed(),
        hosts: routed.fabric.host_count(),
        switches: routed.fabric.switch_count(),
        max_hops: routed.report.max_hops,
        base_rtt_s: base_rtt_s(file, &routed.report),
        is_fat_tree: file.fabric.routing().name() == RoutingName::DModK,
        chooses_paths: file.fabric.path_choice != PathChoice::Table,
        data_vls: file.vl.lanes(),
        waits_once: file.switch.queueing == Queueing::Voq && file.switch.output_buffer.is_none(),
        duration: file.run.duration,
        other_routes,
    }
}

pub(crate) fn published_settings(
    source: &SourceText,
    base: &Path,
    layout: &Layout,
) -> (Vec<(KeyPath, toml_edit::Value)>, Option<String>) {
    let choice = layout.file.control.scheme;
    let other_routes = Rerouted::new(source, base, layout);
    let facts = facts(layout, &other_routes);
    let Some(variant) = choice.variant(&facts) else {
        return (Vec::new(), None);
    };
    let settings = variant.settings(choice.scheme().as_str()).into_iter();
    let settings = settings.map(|(key, value)| (at(&key), toml_value(&value)));
    // Lanes that a scenario lays out itself have a buffer each, and the priorities that it writes.
    let has_lanes = source.has(&at("vl.data-vls"));
    let vl = at("vl");
    let settings = settings.filter(|(key, _)| !(has_lanes && key.starts_with(&vl)));
    (settings.collect(), warn_of_rate(choice, &variant, &facts))
}

fn warn_of_rate(
    choice: SchemeChoice,
    variant: &Variant,
    facts: &FabricFacts<'_>,
) -> Option<String> {
    let rate = variant.made_for.filter(|rate| *rate != facts.link_rate)?;
    Some(format!(
        "control.scheme: the settings of {} were made for links of {rate}, and these have {}: {} follows the fabric",
        choice.name(),
        facts.link_rate,
        choice.scheme().as_str()
    ))
}

fn toml_value(value: &Value) -> toml_edit::Value {
    let value = value.serialize(toml_edit::ser::ValueSerializer::new());
    value.expect("settings are numbers, texts, booleans, lists and tables")
}

impl Scenario {
    /// The longest round trip without queues, in seconds, of the scenario as it is.
    pub fn base_rtt_s(&self) -> f64 {
        base_rtt_s(self.file(), self.routes())
    }

    /// The variants of all schemes with keys, settings and reasons for omitted ones; fails if a named file has changed.
    pub fn scheme_variants(&self) -> Result<Value, ScenarioError> {
        let (text, name, overrides) = self.written();
        let source = SourceText::parse(text, name, overrides)?;
        let none = Override::new("control.scheme", SchemeName::None.as_str());
        let source = source.with_override(&none)?;
        let base = Path::new(name).parent().unwrap_or(Path::new(""));
        let layout = Layout::of(&source, base, None).map_err(|error| source.locate(error))?;
        let other_routes = Rerouted::new(&source, base, &layout);
        let facts = facts(&layout, &other_routes);
        let variants = variants(&facts).into_iter();
        let described = variants.map(|(scheme, one)| described(scheme, &one, &facts, &source));
        Ok(described.collect())
    }
}

fn described(
    scheme: SchemeName,
    variant: &Variant,
    facts: &FabricFacts<'_>,
    source: &SourceText,
) -> Value {
    let settings = variant.settings(scheme.as_str());
    let mut keys = vec![("control.scheme".to_owned(), json!(variant.name))];
    let carrier = at("control.feedback.carrier");
    let defaults = scheme.defaults();
    if source.has(&carrier) && defaults.carrier_required.is_some() {
        keys.push((carrier.to_string(), json!(defaults.carrier)));
    }
    let (written, left): (Vec<_>, Vec<_>) =
        settings.iter().partition(|(key, _)| source.has(&at(key)));
    let is_of_data_path = |key: &&String| !key.starts_with("control.");
    let on_data_path = written.iter().map(|(key, _)| key).find(is_of_data_path);
    let unsuited = match (variant.unsuited(facts), on_data_path) {
        (Some(Unsuited::Links(why)), _) => json!({ "kind": "links", "why": why }),
        (Some(Unsuited::Fabric(why)), _) => json!({ "kind": "fabric", "why": why }),
        (Some(Unsuited::ByHand(how)), _) => json!({ "kind": "by-hand", "why": how }),
        (None, Some(key)) => {
            let why = format!("the scenario writes {key}, which the scheme sets");
            json!({ "kind": "fabric", "why": why })
        }
        (None, None) => Value::Null,
    };
    json!({
        "name": variant.name,
        "scheme": scheme.as_str(),
        "summary": variant.summary,
        "overrides": keys,
        "settings": left,
        "written": written.iter().map(|(key, _)| key).collect::<Vec<_>>(),
        "cost": variant.cost,
        "unsuited": unsuited,
    })
}

/// The parameters that a search draws, in order: key, values, and a key that must stand next to it.
pub fn scheme_searches(choice: SchemeChoice) -> Value {
    let searched = choice.scheme().searched().into_iter();
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
