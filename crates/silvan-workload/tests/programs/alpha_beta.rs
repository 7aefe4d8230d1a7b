//! Collective operations alone on a fabric that does not block take the time of the alpha-beta model: R. Thakur, R. Rabenseifner
//! and W. Gropp, IJHPCA 19:1, 2005, table 1. A step costs alpha and beta for each byte.

use silvan_core::{Bytes, Span, Time};
use silvan_workload::programs::collective::{Algorithm, Collective, Operation};
use silvan_workload::programs::draft::Pipeline;
use silvan_workload::programs::nccl::Protocol;
use silvan_workload::programs::{Group, JobSpec, Script, loops};

use crate::common::{cable, job, messaging, run, sequence, wire};

/// Seconds that a message takes that asks first: overheads, request, clearance, latency.
fn alpha() -> f64 {
    let serial = cable().data_rate().span_for(Bytes::from_bytes(2048 + 26));
    let latency = wire(2048).saturating_sub(serial);
    seconds(messaging().overhead * 2 + wire(64) * 2 + latency)
}

/// Seconds for each byte of payload.
fn beta() -> f64 {
    seconds(cable().data_rate().span_for(Bytes::from_bytes(2048 + 26))) / 2048.0
}

fn seconds(span: Span) -> f64 {
    span.as_ps() as f64 / 1e12
}

fn time(ranks: JobSpec, hosts: usize) -> f64 {
    let outcome = run(hosts, vec![ranks], messaging());
    assert_eq!((outcome.fault, outcome.finished), (None, true));
    let end = outcome.ends.iter().flatten().max().unwrap();
    seconds(end.since(Time::ZERO))
}

fn plain(collective: Collective, n: u32) -> JobSpec {
    let script = |me| {
        let mut ops = Vec::new();
        collective.append(&mut ops, Group::all(n), me);
        sequence(&ops)
    };
    job((0..n).map(|me| (me as usize, script(me))).collect())
}

fn in_pieces(collective: Collective, pipeline: Pipeline, n: u32) -> JobSpec {
    let schedules = loops::collective(collective, pipeline, n, Span::ZERO);
    let scripts = schedules.into_iter().map(|schedule| Script::Loop {
        schedule,
        times: Some(1),
    });
    job(scripts.enumerate().collect())
}

fn assert_close(found: f64, model: f64, what: &str) {
    let error = found / model - 1.0;
    assert!(
        error.abs() < 0.02,
        "{what}: {found} s, model {model} s, {error:+.4}"
    );
}

/// Each algorithm by the number of its steps and the bytes that a rank sends in all of them.
#[test]
fn times_are_those_of_the_model() {
    use Algorithm::{Direct, Doubling, Halving, Pairwise, Ring, Tree};
    let (a, b) = (alpha(), beta());
    for n in [4_u32, 8] {
        let p = f64::from(n.ilog2());
        let ranks = f64::from(n);
        let part = 128.0 * 2048.0;
        let size = part * ranks;
        for (operation, algorithm, steps, bytes) in [
            (
                Operation::Allreduce,
                Ring,
                2.0 * (ranks - 1.0),
                2.0 * (ranks - 1.0) * part,
            ),
            (
                Operation::Allreduce,
                Pairwise,
                2.0 * (ranks - 1.0),
                2.0 * (ranks - 1.0) * part,
            ),
            (
                Operation::Allreduce,
                Halving,
                2.0 * p,
                2.0 * (ranks - 1.0) * part,
            ),
            (Operation::Allreduce, Doubling, p, p * size),
            (
                Operation::Allreduce,
                Direct,
                2.0,
                2.0 * (ranks - 1.0) * part,
            ),
            (Operation::Allreduce, Tree, 2.0 * p, 2.0 * p * size),
            (
                Operation::ReduceScatter,
                Ring,
                ranks - 1.0,
                (ranks - 1.0) * part,
            ),
            (Operation::ReduceScatter, Doubling, p, (ranks - 1.0) * part),
            (
                Operation::Allgather,
                Ring,
                ranks - 1.0,
                (ranks - 1.0) * part,
            ),
            (Operation::Allgather, Doubling, p, (ranks - 1.0) * part),
            (
                Operation::Allgather,
                Pairwise,
                ranks - 1.0,
                (ranks - 1.0) * part,
            ),
            (Operation::Broadcast, Tree, p, p * size),
            (
                Operation::Broadcast,
                Ring,
                ranks - 1.0,
                (ranks - 1.0) * size,
            ),
            (Operation::Reduce, Tree, p, p * size),
        ] {
            let collective = Collective {
                algorithm,
                ..Collective::new(operation, size as u64)
            };
            let model = steps * a + bytes * b;
            let what = format!("{operation:?} {algorithm:?}, {n} ranks");
            assert_close(time(plain(collective, n), n as usize), model, &what);
        }
        // In these algorithms, `bytes` is the size of one message.
        for (algorithm, steps, messages) in [
            (Pairwise, ranks - 1.0, ranks - 1.0),
            (Direct, 1.0, ranks - 1.0),
            (Doubling, p, p * ranks / 2.0),
            (Ring, ranks - 1.0, ranks * (ranks - 1.0) / 2.0),
        ] {
            let collective = Collective {
                algorithm,
                ..Collective::new(Operation::Alltoall, part as u64)
            };
            let model = steps * a + messages * part * b;
            let what = format!("all-to-all {algorithm:?}, {n} ranks");
            assert_close(time(plain(collective, n), n as usize), model, &what);
        }
    }
}

/// A ring of L ranks in each server, then one of M servers: each has its steps and its share of the bytes.
#[test]
fn two_levels_take_the_sum_of_both() {
    let (n, local) = (8_u32, 4_u32);
    let size = 1024 * 2048;
    let collective = Collective {
        algorithm: Algorithm::Hierarchical,
        local,
        ..Collective::new(Operation::Allreduce, size)
    };
    let (l, m, bytes) = (f64::from(local), f64::from(n / local), size as f64);
    let steps = 2.0 * (l - 1.0) + 2.0 * (m - 1.0);
    let sent = 2.0 * (l - 1.0) / l * bytes + 2.0 * (m - 1.0) / m * bytes / l;
    let model = steps * alpha() + sent * beta();
    assert_close(
        time(plain(collective, n), n as usize),
        model,
        "hierarchical",
    );
}

/// A chain of n ranks passes k pieces on in n - 2 + k times that of a piece.
#[test]
fn pieces_follow_each_other_through_a_chain() {
    let n = 6_u32;
    let size = 64 * 16 * 2048_u64;
    for pieces in [1_u64, 4, 16] {
        let collective = Collective {
            algorithm: Algorithm::Ring,
            ..Collective::new(Operation::Broadcast, size)
        };
        let pipeline = Pipeline {
            channels: 1,
            chunk: Some(size / pieces),
            ..Pipeline::default()
        };
        let piece = alpha() + (size / pieces) as f64 * beta();
        let model = (f64::from(n) - 2.0 + pieces as f64) * piece;
        let found = time(in_pieces(collective, pipeline, n), n as usize);
        assert_close(found, model, &format!("{pieces} pieces"));
    }
}

/// NCCL's protocols: a launch, a lag before each of the 2 (n - 1) steps of a ring, and flags among the bytes of LL (half
/// of them) and LL128 (8 of 128).
#[test]
fn protocols_add_bytes_and_latency() {
    let n = 4_u32;
    let size = f64::from(n) * 120.0 * 2048.0;
    for (protocol, factor) in [
        (Protocol::Simple, 1.0),
        (Protocol::LowLatency, 2.0),
        (Protocol::LowLatency128, 128.0 / 120.0),
    ] {
        let pipeline = Pipeline {
            protocol,
            launch: Span::from_us(7),
            lag: Span::from_us(3),
            ..Pipeline::default()
        };
        let collective = Collective {
            algorithm: Algorithm::Ring,
            ..Collective::new(Operation::Allreduce, size as u64)
        };
        let steps = 2.0 * (f64::from(n) - 1.0);
        let part = factor * size / f64::from(n);
        let model = 7e-6 + steps * (3e-6 + alpha() + part * beta());
        let found = time(in_pieces(collective, pipeline, n), n as usize);
        assert_close(found, model, &format!("{protocol:?}"));
    }
}

/// A pair of trees with k pieces a channel: each rank takes two pieces of either tree at a time, so all bytes leave it twice
/// and arrive twice, in about the time of the ring's 2 S, plus the pieces on their way to the root and back.
#[test]
fn two_trees_use_both_directions() {
    let (n, pieces) = (16_u32, 64);
    let size = 64.0 * 2.0 * 16.0 * 2048.0;
    let collective = Collective {
        algorithm: Algorithm::DoubleTree,
        ..Collective::new(Operation::Allreduce, size as u64)
    };
    let pipeline = Pipeline {
        channels: 2,
        chunk: Some(size as u64 / 2 / pieces),
        ..Pipeline::default()
    };
    let found = time(in_pieces(collective, pipeline, n), n as usize);
    let piece = size / 2.0 / pieces as f64 * beta() + alpha();
    let least = 2.0 * size * beta();
    let way = 2.0 * f64::from(n.ilog2() + 1) * 2.0 * piece;
    assert!(
        (least * 0.98..1.5 * least + way).contains(&found),
        "{found} s, at least {least} s"
    );
}

/// Channels and chunks move the same bytes between the same ranks.
#[test]
fn pieces_add_up() {
    for (size, channels, chunk) in [
        (10_007, 3, Some(1000)),
        (4, 8, Some(1)),
        (0, 2, None),
        (1 << 20, 4, Some(1 << 16)),
    ] {
        let pipeline = Pipeline {
            channels,
            chunk,
            ..Pipeline::default()
        };
        let pieces = pipeline.pieces(size);
        let all: Vec<u64> = pieces.concat();
        assert_eq!(all.iter().sum::<u64>(), size);
        assert!(
            all.len() as u64 <= pipeline.count(size),
            "{size} {channels} {chunk:?}"
        );
        assert!(
            all.iter()
                .all(|piece| chunk.is_none_or(|chunk| *piece <= chunk))
        );
        assert!(!pieces.is_empty() && pieces.len() <= channels as usize);
    }
}

/// Rounds follow each other, and each is measured: ten take ten times as long as one.
#[test]
fn rounds_follow_each_other() {
    let collective = Collective::new(Operation::Allreduce, 1 << 16);
    let pipeline = Pipeline {
        channels: 2,
        chunk: Some(1 << 13),
        ..Pipeline::default()
    };
    let rounds = |times: u64, start: Span| {
        let schedules = loops::collective(collective, pipeline, 4, Span::from_us(5));
        let scripts = schedules.into_iter().map(|schedule| Script::Loop {
            schedule,
            times: Some(times),
        });
        let all = JobSpec {
            start: Time::ZERO + start,
            ..job(scripts.enumerate().collect())
        };
        run(4, vec![all], messaging())
    };
    let (one, ten) = (rounds(1, Span::ZERO), rounds(10, Span::from_us(7)));
    let end =
        |outcome: &crate::common::Outcome| outcome.ends.iter().flatten().max().copied().unwrap();
    let single = end(&one).since(Time::ZERO);
    assert_eq!(ten.marks.len(), 4 * 10);
    assert!(
        ten.ops.is_empty(),
        "a round is measured, not its operations"
    );
    let all = end(&ten).since(Time::ZERO + Span::from_us(7));
    // A rank may start its next round before other ranks have ended theirs.
    assert!(all <= single * 10 && all > single * 9, "{all} {single}");
    assert_eq!(rounds(0, Span::ZERO).marks, []);
}

/// Bytes on the link of every host, up and down, of an all-to-all with a size for each message.
#[test]
fn sizes_by_pair_are_kept() {
    let n = 5;
    let sizes: Vec<Vec<u64>> = (0..n)
        .map(|from| {
            (0..n)
                .map(|to| (from * 700 + to * 90 + 1) * u64::from(from != to))
                .collect()
        })
        .collect();
    for algorithm in [Algorithm::Pairwise, Algorithm::Direct] {
        let schedules = loops::alltoallv(&sizes, algorithm, Span::ZERO);
        let scripts = schedules.into_iter().map(|schedule| Script::Loop {
            schedule,
            times: Some(1),
        });
        let outcome = run(
            n as usize,
            vec![job(scripts.enumerate().collect())],
            messaging(),
        );
        assert_eq!((outcome.fault, outcome.finished), (None, true));
        for host in 0..n as usize {
            let up: u64 = sizes[host].iter().sum();
            let down: u64 = sizes.iter().map(|row| row[host]).sum();
            assert_eq!(
                outcome.links[host],
                (up, down),
                "{algorithm:?}, host {host}"
            );
        }
    }
}
