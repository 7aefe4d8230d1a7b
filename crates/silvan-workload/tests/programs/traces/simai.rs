//! The order of a step in texts of SimAI and ASTRA-sim 1.0, and the sizes of their collective operations.

use silvan_core::{Span, Time};
use silvan_workload::programs::Action;
use silvan_workload::programs::trace::aicb::Aicb;
use silvan_workload::programs::trace::{TraceFormat, TracePlace, TraceSettings};

use super::{read, sent, settings, traced};
use crate::common::{messaging, run};

fn text(head: &str, layers: &[&str]) -> Vec<u8> {
    format!("{head}\n{}\n{}\n", layers.len(), layers.join("\n")).into_bytes()
}

/// Returns the computing time [us] of a step on four ranks, bytes that a rank sends, and time beyond computing.
fn step(head: &str, layers: &[&str], local: u32) -> (u64, u64, Span) {
    let settings = TraceSettings {
        local,
        ..settings(4)
    };
    let schedules = read(&Aicb {}, &[text(head, layers)], None, &settings).unwrap();
    let computed: Vec<Span> = schedules
        .iter()
        .map(|schedule| {
            let ops = schedule.ops().iter();
            let spans = ops.map(|op| match op.action {
                Action::Calc(span) => span,
                _ => Span::ZERO,
            });
            spans.sum()
        })
        .collect();
    let bytes: u64 = sent(&schedules[0], 4).iter().sum();
    let outcome = run(4, vec![traced(&schedules)], messaging());
    assert_eq!((outcome.fault, outcome.finished), (None, true), "{head}");
    let end = outcome.ends.iter().flatten().max().unwrap();
    let beyond = end.since(Time::ZERO + computed[0]);
    (computed[0].as_ps() / 1_000_000, bytes, beyond)
}

fn warnings(head: &str, layers: &[&str]) -> Vec<String> {
    let text = String::from_utf8(text(head, layers)).unwrap();
    Aicb {}.warnings(&text)
}

/// Time that covers a small collective operation, and is less than any computation here.
const SHORT: Span = Span::from_us(8);

/// Weights first, and no gradients of the first layer's inputs: 100 + 200 + 40 + 70 + 30 us. Only the first layer's
/// allreduce is exposed. Updates delay the end of an allreduce, and are no work.
#[test]
fn data_parallel_layers_start_with_gradients_of_weights() {
    let layers = [
        "a -1 100000 NONE 0 50000 NONE 0 30000 ALLREDUCE 8 0",
        "b -1 200000 NONE 0 70000 NONE 0 40000 ALLREDUCE 8 0",
    ];
    let (computed, bytes, beyond) = step("DATA", &layers, 1);
    assert_eq!((computed, bytes), (440, 2 * 2 * 3 * 2));
    assert!(beyond > Span::ZERO && beyond < SHORT, "{beyond}");
    let updated = [
        "a -1 100000 NONE 0 50000 NONE 0 30000 ALLREDUCE 8 20000",
        layers[1],
    ];
    let (computed, _, later) = step("DATA", &updated, 1);
    assert_eq!((computed, later), (440, beyond + Span::from_us(20)));
    assert!(warnings("DATA", &layers).is_empty());
}

/// The forward pass and the gradients of inputs of DATA have no collective operation: simulators leave them out.
#[test]
fn operations_without_a_group_are_counted() {
    let layers = [
        "a -1 1000 ALLREDUCE 4000 1000 ALLTOALL 4000 1000 ALLREDUCE 4000 0",
        "b -1 1000 NONE 0 1000 ALLREDUCE 0 1000 NONE 0 0",
    ];
    assert_eq!(step("DATA", &layers, 1).1, 2 * 3 * 1000);
    let message =
        "2 collective operations are ignored: the parallelism of the file does not have them";
    assert_eq!(warnings("DATA", &layers), [message]);
    assert_eq!(warnings("MODEL", &layers).len(), 1);
    assert!(warnings("HYBRID_TRANSFORMER", &layers).is_empty());
    assert!(warnings("CIRCLE", &layers).is_empty());
}

/// MICRO has the collective operations of weights alone, side by side.
#[test]
fn micro_has_operations_only() {
    let layers = [
        "a -1 1000 NONE 0 1000 NONE 0 1000 ALLREDUCE 4000 0",
        "b -1 1000 NONE 0 1000 NONE 0 1000 ALLTOALL 4000 0",
    ];
    let (computed, bytes, _) = step("MICRO", &layers, 1);
    assert_eq!((computed, bytes), (0, 2 * 3 * 1000 + 3 * 1000));
}

/// All ranks join the forward pass and the gradients of inputs, except for the first layer. Operations on gradients of
/// inputs overlap gradients of weights. So 100 + 200 us and 50 + 30 + 70 + 40 us are exposed, except for two forward
/// operations.
#[test]
fn model_parallel_gradients_of_inputs_overlap() {
    let layers = [
        "a -1 100000 ALLGATHER 1000 50000 ALLREDUCE 4000 30000 ALLREDUCE 4000 0",
        "b -1 200000 ALLREDUCE 4000 70000 ALLREDUCE 4000 40000 NONE 0 0",
    ];
    let (computed, bytes, beyond) = step("MODEL", &layers, 1);
    // ASTRA-sim's size of an allgather is the part of a rank.
    assert_eq!((computed, bytes), (490, 3 * 1000 + 2 * 2 * 3 * 1000));
    assert!(beyond < SHORT * 2, "{beyond}");
    let (computed, bytes, _) = step("DISTRIBUTED_INFERENCE", &layers, 1);
    assert_eq!((computed, bytes), (300, 3 * 1000 + 2 * 3 * 1000));
}

/// The size of an allgather is the part of a rank in ASTRA-sim, and the whole in SimAI (with all_gpus).
#[test]
fn the_size_of_an_allgather_depends_on_the_simulator() {
    let layers = ["a -1 1000 ALLGATHER 4000 1000 NONE 0 1000 REDUCESCATTER 4000 0"];
    let head = "HYBRID_TRANSFORMER model_parallel_NPU_group: 4";
    assert_eq!(step(head, &layers, 1).1, 3 * 4000);
    assert_eq!(step(&format!("{head} all_gpus: 4"), &layers, 1).1, 3 * 1000);
    // The texts of AICB's micro tests have no keys, but layers of this name.
    let micro = ["micro_test -1 1 NONE 0 1 NONE 0 1 ALLGATHER 4000 1"];
    assert_eq!(step("MICRO", &micro, 1).1, 3 * 1000);
    assert_eq!(
        step("MICRO", &[&micro[0].replace("micro_test", "conv1")], 1).1,
        3 * 4000
    );
    // Both have the whole vector of a reduce-scatter.
    let scattered = ["micro_test -1 1 NONE 0 1 NONE 0 1 REDUCESCATTER 4000 1"];
    assert_eq!(step("MICRO", &scattered, 1).1, 3 * 1000);
    assert_eq!(
        step("MICRO", &[&scattered[0].replace("micro_test", "conv1")], 1).1,
        3 * 1000
    );
}

/// Servers are the network's first dimension, in which layers are split, or data.
#[test]
fn hybrids_follow_the_dimensions_of_the_network() {
    let layers = ["a -1 1000 ALLREDUCE 4000 1000 NONE 0 1000 ALLREDUCE 2000 0"];
    let bytes = |head: &str| {
        let settings = TraceSettings {
            local: 2,
            ..settings(4)
        };
        let schedules = read(&Aicb {}, &[text(head, &layers)], None, &settings).unwrap();
        sent(&schedules[0], 4)
    };
    assert_eq!(bytes("HYBRID_DATA_MODEL"), [0, 4000, 2000, 0]);
    assert_eq!(bytes("HYBRID_MODEL_DATA"), [0, 2000, 4000, 0]);
    let error = read(
        &Aicb {},
        &[text("HYBRID_DATA_MODEL", &layers)],
        None,
        &settings(4),
    );
    assert!(error.unwrap_err().hint.contains("server-ranks"));
    // Each layer names its own.
    let layers = [
        "a -1 1000 ALLREDUCE 4000 1000 NONE 0 1000 ALLREDUCE 2000 0 HYBRID_DATA_MODEL",
        "b -1 1000 ALLREDUCE 400 1000 ALLREDUCE 400 1000 ALLREDUCE 400 0 MODEL",
        "c -1 1000 ALLREDUCE 40 1000 ALLREDUCE 40 1000 ALLREDUCE 40 0 DATA",
    ];
    let (computed, bytes, _) = step("HYBRID_CUSTOMIZED", &layers, 2);
    assert_eq!((computed, bytes), (9, 4000 + 2000 + 2 * 600 + 60));
    assert_eq!(warnings("HYBRID_CUSTOMIZED", &layers).len(), 1);
}

/// The all-to-all of embeddings overlaps the bottom layers: 10 us of layer 1 hide it. So the step has 10 + 10 + 10 us
/// forwards and 10 + 20 + 10 + 20 + 10 us backwards.
#[test]
fn embeddings_are_exchanged_beside_the_bottom_layers() {
    let layers = [
        "embedding -1 10000 ALLTOALL 4000 20000 ALLTOALL 4000 10000 NONE 0 0",
        "bottom -1 10000 NONE 0 20000 NONE 0 10000 ALLREDUCE 4000 0",
        "top -1 10000 NONE 0 20000 NONE 0 10000 ALLREDUCE 4000 0",
    ];
    for head in [
        "HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER: 1",
        "HYBRID_DLRM_ENHANCED DLRM_LAST_BOTTOM_LAYER: 1",
        "HYBRID_DLRM 1",
    ] {
        let (computed, bytes, beyond) = step(head, &layers, 1);
        assert_eq!((computed, bytes), (100, 2 * 3 * 1000 + 2 * 2 * 3 * 1000));
        assert!(beyond < SHORT, "{beyond}");
    }
    // The top layer waits for an exchange that the bottom layer does not hide.
    let short = [
        layers[0],
        "bottom -1 0 NONE 0 20000 NONE 0 10000 ALLREDUCE 4000 0",
        layers[2],
    ];
    let (_, _, hidden) = step("HYBRID_DLRM 1", &layers, 1);
    let (_, _, exposed) = step("HYBRID_DLRM 1", &short, 1);
    assert!(exposed > hidden, "{exposed}, {hidden}");
    let error = read(
        &Aicb {},
        &[text("HYBRID_DLRM 3", &layers)],
        None,
        &settings(4),
    )
    .unwrap_err();
    assert_eq!(
        error.message,
        "DLRM_LAST_BOTTOM_LAYER is 3, but there are 3 layers"
    );
    let error = read(
        &Aicb {},
        &[text("HYBRID_DLRM", &layers)],
        None,
        &settings(4),
    )
    .unwrap_err();
    assert!(error.message.starts_with("DLRM_LAST_BOTTOM_LAYER is \"\""));
}

/// Layers from the checkpoint on are computed again, with their operations: 1 + 2 + 4 us, then 4 + 8 for c, again 1 + 2 for b
/// and a, and so on.
#[test]
fn layers_after_a_checkpoint_are_computed_again() {
    let layers = [
        "a -1 1000 ALLREDUCE 4000 10000 NONE 0 10000 NONE 0 0",
        "b -1 2000 ALLREDUCE 4000 10000 NONE 0 10000 NONE 0 0",
        "c -1 4000 NONE 0 10000 NONE 0 10000 NONE 0 0",
    ];
    let head = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4";
    let (computed, bytes, _) = step(
        &format!("{head} checkpoints: 0 checkpoint_initiates: 0"),
        &layers,
        1,
    );
    assert_eq!((computed, bytes), (67, 2 * 6000));
    let (computed, bytes, _) = step(
        &format!("{head} checkpoints: 1 0 checkpoint_initiates: 1 2"),
        &layers,
        1,
    );
    assert_eq!((computed, bytes), (67 + 3, 4 * 6000));
    let (computed, bytes, _) = step(
        &format!("{head} checkpoints: 2 0 1 checkpoint_initiates: 1 2"),
        &layers,
        1,
    );
    assert_eq!((computed, bytes), (67 + 2, 3 * 6000));
    for (keys, message) in [
        (
            "checkpoints: 1 2 checkpoint_initiates: 1 1",
            "before which is no checkpoint",
        ),
        (
            "checkpoints: 1 0 checkpoint_initiates: 2 1 2",
            "layers 1 and 2 after one checkpoint",
        ),
        ("checkpoints: 2 0", "checkpoints is \"\", not a number"),
    ] {
        let file = text(&format!("{head} {keys}"), &layers);
        let error = read(&Aicb {}, &[file], None, &settings(4)).unwrap_err();
        assert!(error.message.contains(message), "{error}");
        assert_eq!(error.place, TracePlace::Line(1));
    }
}

/// The head of a text of AICB with stages of a pipeline, of one rank each but for data parallel ones.
fn pipeline(stages: u32, parts: u32, batches: u32, bytes: &str, ranks: u32) -> String {
    format!(
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: {stages} vpp: {parts} ga: {batches} \
        all_gpus: {ranks} checkpoints: 0 checkpoint_initiates: 0 pp_comm: {bytes}"
    )
}

/// SimAI's bubble is `(pp - 1) / (ga vpp)` of the time of the layers. A pipeline of `pp vpp` parts has `pp vpp - 1` borders, which
/// each micro-batch crosses twice.
#[test]
fn stages_of_a_pipeline_have_the_bubble_of_simai() {
    let layers = ["a -1 100000 NONE 0 150000 NONE 0 50000 NONE 0 0"; 8];
    for (stages, parts, batches) in [(4, 1, 8), (4, 2, 4), (2, 4, 2), (2, 1, 8), (4, 1, 1)] {
        let head = pipeline(stages, parts, batches, "4096.0", stages);
        let file = text(&head, &layers);
        let schedules = read(&Aicb {}, &[file], None, &settings(4)).unwrap();
        assert_eq!(schedules.len(), stages as usize);
        let bytes = schedules.iter().flat_map(|schedule| sent(schedule, 4));
        let borders = u64::from(stages * parts - 1);
        assert_eq!(
            bytes.sum::<u64>(),
            2 * borders * u64::from(batches) * 4096,
            "{head}"
        );
        let outcome = run(4, vec![traced(&schedules)], messaging());
        assert_eq!((outcome.fault, outcome.finished), (None, true), "{head}");
        let end = outcome.ends.iter().flatten().max().unwrap();
        let layers = Span::from_us(8 * 300);
        let turns = u64::from(batches * parts);
        let bubble = Span::from_us(2400 * u64::from(stages - 1) / turns);
        // A message of a page takes less than 3 us.
        let messages = Span::from_us(3) * (2 * (turns + u64::from(stages - 1)));
        let beyond = end.since(Time::ZERO + layers + bubble);
        assert!(beyond < messages, "{head}: {beyond}");
        let text = String::from_utf8(text(&head, &["a"; 8])).unwrap();
        assert!(Aicb {}.warnings(&text).is_empty());
    }
}

/// Two stages of two data parallel ranks: groups of a stage alone, unlike those of SimAI without `pp`. Layers before and after the
/// micro-batches are done once.
#[test]
fn a_stage_has_its_own_groups() {
    let layers = [
        "grad_gather -1 1 NONE 0 1 NONE 0 1 ALLGATHER 2000 0",
        "embedding_layer -1 1 NONE 0 1 NONE 0 1 NONE 0 0",
        "attention_layer -1 1 NONE 0 1 NONE 0 1 NONE 0 0",
        "mlp_layer -1 1 NONE 0 1 NONE 0 1 NONE 0 0",
        "embedding_layer -1 1 NONE 0 1 NONE 0 1 NONE 0 0",
        "attention_layer -1 1 NONE 0 1 NONE 0 1 NONE 0 0",
        "mlp_layer -1 1 NONE 0 1 NONE 0 1 NONE 0 0",
        "cross_entropy1 -1 1 ALLREDUCE 8 1 NONE 0 1 NONE 0 0",
    ];
    let sums = |head: &str| {
        let schedules = read(&Aicb {}, &[text(head, &layers)], None, &settings(4)).unwrap();
        let rows = schedules.iter().map(|schedule| sent(schedule, 4));
        rows.collect::<Vec<_>>()
    };
    // Half of 2,000 bytes to the other rank, and 64 bytes of each of two micro-batches.
    let staged = sums(&pipeline(2, 1, 2, "64", 4));
    assert_eq!(
        staged,
        [
            [0, 1000, 128, 0],
            [1000, 0, 0, 128],
            [128, 0, 0, 1000],
            [0, 128, 1000, 0]
        ]
    );
    // More parts than layers: some only hand on.
    let parts = sums(&pipeline(2, 8, 2, "64", 4));
    assert_eq!(parts[0][2] + parts[2][0], 2 * 2 * (2 * 8 - 1) * 64);
    // The stages of SimAI's example are written with and without a colon.
    assert_eq!(
        sums(&pipeline(2, 1, 2, "64", 4).replace("pp_comm:", "pp_comm")),
        staged
    );
    let alone = sums(&pipeline(1, 1, 2, "0", 4));
    assert_eq!(alone[0], [0, 3 * 500, 0, 0]);
    let head = pipeline(2, 1, 2, "0", 4);
    let message = "the stages of the pipeline send each other empty messages: there is no pp_comm";
    assert_eq!(warnings(&head, &layers), [message]);
    let schedules = read(&Aicb {}, &[text(&head, &layers)], None, &settings(4)).unwrap();
    let outcome = run(4, vec![traced(&schedules)], messaging());
    assert_eq!((outcome.fault, outcome.finished), (None, true));
}

#[test]
fn other_texts_are_refused_by_name() {
    let layer = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1";
    let experts = "a -1 1 NONE 0 1 NONE 0 1 ALLREDUCE_EP 8 1";
    for (head, layer, line, message) in [
        (
            "MODEL pp: 2",
            layer,
            1,
            "MODEL has no stages of a pipeline, but pp is 2",
        ),
        (
            "HYBRID_TRANSFORMER pp: 3",
            layer,
            1,
            "4 ranks are not divided by 1 tensor times 1 expert parallel ranks times 3 stages",
        ),
        (
            "HYBRID_TRANSFORMER pp: 2 ga: 0",
            layer,
            1,
            "ga is 0 and vpp is 1: a pipeline has 1 or more",
        ),
        (
            "HYBRID_TRANSFORMER pp: 2 ga: 2",
            layer,
            1,
            "the layers of lines 3 to 3 are not 2 times the same: ga is 2",
        ),
        (
            "HYBRID_TRANSFORMER pp: 2 vpp: 4000000000",
            layer,
            1,
            "the trace has more than 33554432 operations",
        ),
        (
            "HYBRID_TRANSFORMER pp: 2 pp_comm: many",
            layer,
            1,
            "pp_comm is \"many\", no size from 0 to",
        ),
        (
            "HYBRID_CUSTOMIZED",
            layer,
            3,
            "a layer has 13 values, but this one 12",
        ),
        ("DATA", experts, 3, "\"ALLREDUCE_EP\" names no group"),
    ] {
        let error = read(&Aicb {}, &[text(head, &[layer])], None, &settings(4)).unwrap_err();
        assert!(error.message.contains(message), "{error}");
        assert_eq!(error.place, TracePlace::Line(line));
    }
    let layer = format!("{layer} HYBRID_CUSTOMIZED");
    let file = text("HYBRID_CUSTOMIZED", &[&layer]);
    let error = read(&Aicb {}, &[file], None, &settings(4)).unwrap_err();
    assert_eq!(
        error.message,
        "\"HYBRID_CUSTOMIZED\" is no parallelism of a layer"
    );
}
