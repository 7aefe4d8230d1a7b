use silvan_core::{Bytes, Span};
use toml_edit::visit_mut::VisitMut;
use toml_edit::{DocumentMut, Item, Table, Value};

use silvan_cc::schemes::DataPlane;
use silvan_fabric::generators::Generator;

use crate::checks::buffers::input_buffer;
use crate::checks::fabric::has_steps;
use crate::parsed::{ControlSection, FabricSection, Limit, ScenarioFile, Threads, TrafficSection};
use crate::sampling::Spread;
use silvan_workload::programs::collective::Algorithm;

const DEFAULT_TREE_LOOKS: u64 = 100;

/// Fills in the defaults that depend on other values, but for the routing and its lanes. Filling in twice changes nothing.
pub(crate) fn fill_defaults(file: &mut ScenarioFile) {
    fill_fabric(&mut file.fabric);
    let mtu = file.packet.mtu.as_u64();
    let message = &mut file.traffic.message;
    if message.is_none() {
        *message = mtu
            .checked_mul(TrafficSection::DEFAULT_MESSAGE_PACKETS)
            .map(Bytes::from_bytes);
    }
    let traffic = &mut file.traffic;
    let benchmarks = traffic.gpcnet.is_some() || traffic.hpcc.is_some();
    if !traffic.program.is_empty() || benchmarks {
        traffic.messaging.get_or_insert_default();
    }
    let is_nccl = |algorithm: Option<Algorithm>| algorithm == Some(Algorithm::Nccl);
    if traffic
        .program
        .iter()
        .any(|program| is_nccl(program.algorithm))
        || traffic
            .collective
            .iter()
            .any(|entry| is_nccl(entry.algorithm))
    {
        traffic.nccl.get_or_insert_default();
    }
    let mut programs = traffic.program.iter();
    if programs.any(|program| program.algorithm == Some(Algorithm::Sharp)) {
        let sharp = traffic.sharp.get_or_insert_default();
        sharp.segment.get_or_insert(file.packet.mtu);
    }
    if file.run.warm_up < file.run.duration && !ends_with_programs(&file.traffic) {
        let spread = Spread::new(file.run.warm_up, file.run.duration);
        file.probe.interval = file.probe.interval.or_else(|| spread.interval());
    }
    let switch_buffer = input_buffer(file);
    if let Some(trees) = &mut file.probe.trees {
        let hundredth = file.run.duration.as_ps() / DEFAULT_TREE_LOOKS;
        trees
            .interval
            .get_or_insert(Span::from_ps(hundredth.max(1)));
        trees
            .threshold
            .get_or_insert(Bytes::from_bytes(switch_buffer.as_u64() / 2));
    }
    file.control.parameters.fill_in(&DataPlane {
        mtu: file.packet.mtu,
        header: file.packet.header,
        switch_buffer,
        link_rate: file.link.kind().data_rate(),
    });
    fill_feedback(&mut file.control);
    name_entries(file);
}

pub(crate) fn fill_lanes(file: &mut ScenarioFile) {
    let lanes = file.vl.lanes().max(1);
    let topology = file.fabric.topology.as_ref();
    let topology = topology.map(|topology| topology as &dyn Generator);
    let each = match file.fabric.routing().algorithm() {
        _ if has_steps(&file.fabric) => lanes,
        Some(algorithm) => algorithm.lanes_per_class(topology, lanes),
        None => 1,
    };
    file.vl
        .sl_to_vl
        .get_or_insert_with(|| (0..16).map(|sl| sl % (lanes / each) * each).collect());
}

fn fill_feedback(control: &mut ControlSection) {
    let defaults = control.scheme.scheme().defaults();
    control.feedback.carrier.get_or_insert(defaults.carrier);
    let coalesce = defaults.coalesce.map_or(Limit::Unlimited, Limit::At);
    control.feedback.coalesce.get_or_insert(coalesce);
}

/// Lets the lanes follow from the levels that paths have, not from those of the traffic.
pub(crate) fn leave_lanes_to_paths(file: &mut ScenarioFile) {
    file.vl.sl_to_vl = Some(vec![0; 16]);
}

fn fill_fabric(fabric: &mut FabricSection) {
    if !fabric.is_listed() {
        fabric.topology.get_or_insert_default();
    }
}

fn name_entries(file: &mut ScenarioFile) {
    file.traffic.fill_names();
    for (index, entry) in file.traffic.program.iter_mut().enumerate() {
        entry
            .name
            .get_or_insert_with(|| format!("program-{}", index + 1));
    }
}

fn ends_with_programs(traffic: &TrafficSection) -> bool {
    let benchmarks = traffic.gpcnet.is_some() || traffic.hpcc.is_some();
    benchmarks || traffic.program.iter().any(|program| !program.background)
}

pub(crate) fn to_toml(file: &ScenarioFile) -> String {
    let mut file = file.clone();
    file.run.threads = Threads::default();
    file.run.fast_forward = silvan_model::FastForward::default();
    let text = to_document(&file).to_string();
    text.trim_start().to_owned()
}

pub(crate) fn to_document(file: &ScenarioFile) -> DocumentMut {
    let mut document = toml_edit::ser::to_document(file)
        .expect("scenario types are numbers, texts, lists and tables with text keys");
    Layout.visit_document_mut(&mut document);
    document
}

pub(crate) fn hash(text: &str) -> String {
    let digest = hmac_sha256::Hash::hash(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Turns inline tables into sections, except where a table is one short value.
struct Layout;

const INLINE: [&str; 3] = ["output-buffer", "cct", "on-off"];

impl VisitMut for Layout {
    fn visit_document_mut(&mut self, document: &mut DocumentMut) {
        self.visit_table_mut(document.as_table_mut());
    }

    fn visit_table_mut(&mut self, table: &mut Table) {
        table.decor_mut().clear();
        table.set_implicit(!table.is_empty());
        for (key, item) in table.iter_mut() {
            if INLINE.contains(&key.get()) {
                continue;
            }
            let converted = match item {
                Item::Value(Value::InlineTable(_)) => {
                    std::mem::take(item).into_table().map(Item::Table)
                }
                Item::Value(Value::Array(array)) if is_list_of_tables(array) => {
                    let tables = std::mem::take(item).into_array_of_tables();
                    tables.map(Item::ArrayOfTables)
                }
                _ => continue,
            };
            *item = converted.unwrap_or_else(|unchanged| unchanged);
            match item {
                Item::Table(inner) => self.visit_table_mut(inner),
                Item::ArrayOfTables(inner) => {
                    inner
                        .iter_mut()
                        .for_each(|table| self.visit_table_mut(table));
                }
                _ => {}
            }
        }
    }
}

pub(crate) fn is_list_of_tables(array: &toml_edit::Array) -> bool {
    !array.is_empty() && array.iter().all(Value::is_inline_table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: the examples of FIPS 180-2, appendix B.
    #[test]
    fn hash_is_sha_256() {
        assert_eq!(
            hash("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
    }
}
