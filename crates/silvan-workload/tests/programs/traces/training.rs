//! Steps of training from the numbers of a model.

use std::sync::Arc;

use silvan_core::Time;
use silvan_workload::programs::training::{ModelError, TrainingModel};
use silvan_workload::programs::{Action, Schedule};

use super::{sent, settings, traced};
use crate::common::{messaging, run};

/// A small model of one rank.
fn model() -> TrainingModel {
    TrainingModel {
        layers: 4,
        hidden: 64,
        sequence: 16,
        feed_forward: None,
        vocabulary: 1000,
        micro_batch: 1,
        micro_batches: 1,
        tensor: 1,
        pipeline: 1,
        data: None,
        experts: 1,
        expert: 1,
        top_k: 1,
        zero: 1,
        expert_shares: None,
        expert_zipf: None,
        expert_seed: 0,
    }
}

fn gpt_13b() -> TrainingModel {
    TrainingModel {
        layers: 40,
        hidden: 5120,
        sequence: 2048,
        vocabulary: 50_257,
        tensor: 8,
        ..model()
    }
}

fn schedules(model: &TrainingModel, places: u32) -> Vec<Arc<Schedule>> {
    model.schedules(&settings(places)).unwrap()
}

/// AICB's list of GPT-13B on 128 ranks has, for each rank, 167 allreduces of tensor parallel groups. It also has a
/// reduce-scatter of 6,422,958,080 bytes and an allgather of half of them. Ring algorithms send 2 (n - 1) messages in
/// an allreduce, n - 1 in the others.
#[test]
fn volumes_are_those_of_aicb() {
    let schedules = schedules(&gpt_13b(), 128);
    assert_eq!(schedules.len(), 128);
    for rank in [0, 7, 100, 127] {
        let row = sent(&schedules[rank], 128);
        let right = rank / 8 * 8 + (rank + 1) % 8;
        let next = (rank + 8) % 128;
        let exact = |group: u64, twice: u64, once: u64| {
            (2 * twice + once) as f64 * (group - 1) as f64 / group as f64
        };
        let tensor = exact(8, 162 * 20_971_520 + 3 * 8192 + 4, 0);
        // An allreduce of 4 bytes has messages of a byte or none.
        assert!(
            (row[right] as f64 - tensor).abs() <= 14.0,
            "{} {tensor}",
            row[right]
        );
        let data = exact(16, 4, 6_422_958_080 + 3_211_479_040);
        assert!(
            (row[next] as f64 - data).abs() <= 32.0,
            "{} {data}",
            row[next]
        );
        assert_eq!(row.iter().sum::<u64>(), row[right] + row[next]);
        let messages = |to: usize| {
            let ops = schedules[rank].ops().iter();
            ops.filter(|op| matches!(op.action, Action::Send { to: one, .. } if one as usize == to))
                .count()
        };
        assert_eq!(messages(right), 167 * 14);
        assert_eq!(messages(next), 30 + 15 + 15);
    }
}

/// A step of B sequences has 72 B s l h^2 (1 + s / 6h + V / 12lh) operations, if activations are not computed again.
/// Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC
/// 2021.
#[test]
fn arithmetic_is_that_of_the_formula() {
    let model = TrainingModel {
        micro_batches: 3,
        micro_batch: 2,
        ..gpt_13b()
    };
    let speed = 1e15;
    let settings = silvan_workload::programs::trace::TraceSettings {
        operations_per_second: Some(speed),
        ..settings(16)
    };
    let schedules = model.schedules(&settings).unwrap();
    let spent: u64 = schedules
        .iter()
        .flat_map(|schedule| schedule.ops())
        .map(|op| match op.action {
            Action::Calc(span) => span.as_ps(),
            _ => 0,
        })
        .sum();
    // Two data parallel ranks; the vocabulary is filled up to 51,200 words.
    let (b, s, l, h, v) = (12.0, 2048.0, 40.0, 5120.0, 51_200.0);
    let formula = 72.0 * b * s * l * h * h * (1.0 + s / (6.0 * h) + v / (12.0 * l * h));
    let ratio = spent as f64 / 1e12 * speed / formula;
    assert!((ratio - 1.0).abs() < 1e-6, "{ratio}");
}

/// Messages match, and a step ends, for any distribution.
#[test]
fn every_way_to_distribute_a_model_comes_to_its_end() {
    let mut cases = Vec::new();
    for zero in 0..4 {
        for (tensor, pipeline, experts, expert) in [
            (1, 1, 1, 1),
            (2, 1, 1, 1),
            (1, 2, 1, 1),
            (2, 2, 1, 1),
            (1, 4, 1, 1),
            (2, 1, 4, 2),
            (1, 2, 4, 4),
            (1, 1, 2, 1),
        ] {
            cases.push(TrainingModel {
                zero,
                tensor,
                pipeline,
                experts,
                expert,
                top_k: experts.min(2),
                micro_batches: 1 + pipeline,
                ..model()
            });
        }
    }
    for model in cases {
        let schedules = schedules(&model, 8);
        let outcome = run(8, vec![traced(&schedules)], messaging());
        assert_eq!((outcome.fault, outcome.finished), (None, true), "{model:?}");
    }
}

/// Llama 3 405B has 126 layers on 16 stages; the first and the last have one layer less. A layer computes twice and has two
/// allreduces each way; the ends of the model compute or exchange more.
#[test]
fn stages_that_do_not_divide_the_layers_differ_by_one() {
    let layers_of = |layers: u32, stages: u32| -> Vec<usize> {
        let model = TrainingModel {
            layers,
            pipeline: stages,
            ..model()
        };
        let settings = silvan_workload::programs::trace::TraceSettings {
            operations_per_second: Some(1e12),
            ..settings(stages)
        };
        let schedules = model.schedules(&settings).unwrap();
        let computations = schedules.iter().map(|schedule| {
            let ops = schedule.ops().iter();
            ops.filter(|op| matches!(op.action, Action::Calc(span) if !span.is_zero()))
                .count()
        });
        // Attention and inner part, each way; the last stage computes words each way, too.
        computations.map(|count| count / 4).collect()
    };
    let mut llama = [8; 16];
    (llama[0], llama[15]) = (7, 7);
    assert_eq!(layers_of(126, 16), llama);
    assert_eq!(layers_of(5, 3), [2, 2, 1]);
    assert_eq!(layers_of(9, 4), [2, 3, 2, 2]);
    for (layers, stages) in [(7, 7), (13, 5), (11, 4), (40, 9)] {
        let each = layers_of(layers, stages);
        let (least, most) = (each.iter().min(), each.iter().max());
        assert_eq!(each.iter().sum::<usize>(), layers as usize);
        assert!(most.unwrap() - least.unwrap() <= 1);
    }
}

/// Stages wait for each other. With m micro-batches and p stages of one second each way, a step of 1F1B takes (m + p -
/// 1) times that of one micro-batch.
#[test]
fn a_pipeline_has_the_bubble_of_the_formula() {
    let (stages, batches) = (4, 6);
    let model = TrainingModel {
        pipeline: stages,
        micro_batches: batches,
        // Words at the end would make the last stage longer.
        vocabulary: 1,
        hidden: 1024,
        ..model()
    };
    let settings = silvan_workload::programs::trace::TraceSettings {
        operations_per_second: Some(2e12),
        ..settings(stages)
    };
    let schedules = model.schedules(&settings).unwrap();
    let (tokens, hidden) = (16.0, 1024.0);
    let layer = 24.0 * tokens * hidden * hidden + 4.0 * tokens * tokens * hidden;
    let words = 2.0 * tokens * hidden * 128.0;
    let outcome = run(4, vec![traced(&schedules)], messaging());
    let expected = 3.0 * f64::from(batches + stages - 1) * layer / 2e12;
    let took = outcome
        .ends
        .iter()
        .flatten()
        .max()
        .unwrap()
        .since(Time::ZERO)
        .as_ps() as f64
        / 1e12;
    // The last stage computes words, too, and each of some 20 messages in a row takes 25 us.
    let most = 3.0 * f64::from(batches) * words / 2e12 + 5e-4;
    assert!(
        took > expected && took < expected + most,
        "{took} {expected} {most}"
    );
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    let refused = |model: TrainingModel, places| {
        let ModelError { key, message, hint } = model.schedules(&settings(places)).unwrap_err();
        assert!(!hint.is_empty());
        (key, message)
    };
    let wrong = |key: &str, model: TrainingModel| {
        let (found, message) = refused(model, 12);
        assert_eq!(found, key, "{message}");
    };
    wrong(
        "layers",
        TrainingModel {
            layers: 0,
            ..model()
        },
    );
    wrong(
        "tensor",
        TrainingModel {
            tensor: 3,
            ..model()
        },
    );
    wrong(
        "pipeline",
        TrainingModel {
            pipeline: 5,
            ..model()
        },
    );
    wrong(
        "expert",
        TrainingModel {
            experts: 4,
            expert: 3,
            ..model()
        },
    );
    wrong(
        "top-k",
        TrainingModel {
            top_k: 2,
            ..model()
        },
    );
    wrong("zero", TrainingModel { zero: 4, ..model() });
    wrong(
        "data",
        TrainingModel {
            data: Some(13),
            ..model()
        },
    );
    wrong(
        "data",
        TrainingModel {
            tensor: 8,
            ..model()
        },
    );
    wrong(
        "expert",
        TrainingModel {
            experts: 8,
            expert: 8,
            ..model()
        },
    );
    wrong(
        "hidden",
        TrainingModel {
            hidden: 1 << 23,
            layers: 1 << 16,
            ..model()
        },
    );
}

/// Passes through layers that do nothing take time, too.
#[test]
fn a_step_that_is_too_long_names_what_makes_it_so() {
    let narrow = TrainingModel {
        hidden: 8,
        sequence: 1,
        vocabulary: 128,
        tensor: 1,
        pipeline: 1,
        micro_batches: 1,
        ..model()
    };
    let most = 1 << 24;
    let cases = [
        ("layers", most, 1, 2),
        ("layers", most, most, 1),
        ("micro-batches", 12, most, 1),
        ("micro-batches", 12, most, 4),
    ];
    for (key, layers, micro_batches, tensor) in cases {
        let model = TrainingModel {
            layers,
            micro_batches,
            tensor,
            ..narrow.clone()
        };
        let error = model.schedules(&settings(4)).unwrap_err();
        assert_eq!(error.key, key, "{}", error.message);
        assert!(
            error.message.contains("33554432 operations"),
            "{}",
            error.message
        );
        assert!(
            error.hint.contains("fewer layers, micro-batches"),
            "{}",
            error.hint
        );
    }
}

fn experts(shares: Option<Vec<f64>>) -> TrainingModel {
    TrainingModel {
        experts: 8,
        expert: 4,
        expert_shares: shares,
        ..model()
    }
}

/// Each way and layer, a rank sends the tokens of its micro-batch to their experts, and returns what its experts got from each
/// other rank: 2 bytes of 16 * 64 activations, by the shares of the experts of a rank.
#[test]
fn tokens_follow_the_shares_of_experts() {
    let shares = vec![3.0, 1.0, 2.0, 0.0, 0.5, 0.5, 1.0, 0.0];
    let routed = [1024, 512, 256, 256];
    let (equal, skewed) = (
        schedules(&experts(None), 4),
        schedules(&experts(Some(shares)), 4),
    );
    for from in 0..4 {
        let (equal, skewed) = (sent(&equal[from], 4), sent(&skewed[from], 4));
        for to in (0..4).filter(|to| *to != from) {
            let tokens = 2 * 4 * (routed[to] + routed[from]);
            assert_eq!(
                skewed[to] + 4 * 4 * 512,
                equal[to] + tokens,
                "{from} to {to}"
            );
        }
    }
}

/// The inner part takes the time of the tokens that a rank's experts get; attention does not change.
#[test]
fn popular_experts_compute_longer() {
    let settings = silvan_workload::programs::trace::TraceSettings {
        operations_per_second: Some(1e9),
        ..settings(4)
    };
    let compute = |shares: Option<Vec<f64>>| -> Vec<f64> {
        let schedules = experts(shares).schedules(&settings).unwrap();
        let of = |schedule: &Arc<Schedule>| {
            let spans = schedule.ops().iter().map(|op| match op.action {
                Action::Calc(span) => span.as_ps() as f64,
                _ => 0.0,
            });
            spans.sum()
        };
        schedules.iter().map(of).collect()
    };
    let equal = compute(None)[0];
    // Forwards 4 b s h f operations, backwards twice as many, in 4 layers.
    let inner = 4.0 * 3.0 * 4.0 * 16.0 * 64.0 * 256.0 / 1e9 * 1e12;
    let skewed = compute(Some(vec![3.0, 1.0, 2.0, 0.0, 0.5, 0.5, 1.0, 0.0]));
    for (found, share) in skewed.iter().zip([0.5, 0.25, 0.125, 0.125]) {
        let model = equal - inner + 4.0 * share * inner;
        assert!((found / model - 1.0).abs() < 1e-6, "{found} {model}");
    }
}

/// Drawn shares follow Zipf's law in another order for each layer and seed; without an exponent they are equal.
#[test]
fn drawn_experts_are_those_of_the_seed() {
    let drawn = |zipf: f64, seed: u64| {
        let model = TrainingModel {
            experts: 4,
            expert: 4,
            layers: 1,
            expert_zipf: Some(zipf),
            expert_seed: seed,
            ..model()
        };
        let schedules = schedules(&model, 4);
        schedules
            .iter()
            .map(|schedule| sent(schedule, 4))
            .collect::<Vec<_>>()
    };
    assert_eq!(drawn(1.0, 1), drawn(1.0, 1));
    let orders: std::collections::BTreeSet<_> = (0..20).map(|seed| drawn(1.0, seed)).collect();
    assert!(orders.len() > 5, "{}", orders.len());
    let equal = TrainingModel {
        experts: 4,
        expert: 4,
        layers: 1,
        ..model()
    };
    let plain: Vec<_> = schedules(&equal, 4)
        .iter()
        .map(|one| sent(one, 4))
        .collect();
    assert_eq!(drawn(0.0, 3), plain);
}

#[test]
fn impossible_shares_are_refused() {
    let key = |model: TrainingModel| model.schedules(&settings(4)).unwrap_err().key;
    let one = experts(Some(vec![1.0; 7]));
    assert_eq!(key(one), "expert-shares");
    assert_eq!(key(experts(Some(vec![0.0; 8]))), "expert-shares");
    let both = TrainingModel {
        expert_zipf: Some(1.0),
        ..experts(Some(vec![1.0; 8]))
    };
    assert_eq!(key(both), "expert-zipf");
    let none = TrainingModel {
        expert_zipf: Some(1.0),
        ..model()
    };
    assert_eq!(key(none), "expert-zipf");
}
