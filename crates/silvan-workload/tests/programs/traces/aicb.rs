//! AICB's lists in both forms.

use std::collections::BTreeSet;
use std::sync::Arc;

use silvan_core::{Span, Time};
use silvan_workload::programs::collective::{Collective, Operation};
use silvan_workload::programs::draft::Pipeline;
use silvan_workload::programs::trace::aicb::Aicb;
use silvan_workload::programs::trace::{MethodRule, TraceFormat, TracePlace, TraceSettings};
use silvan_workload::programs::{
    Action, Messaging, Op, Script, Steps, Stream, StreamAction, StreamRank, StreamStep,
};

use super::{read, sent, settings, traced};
use crate::common::{job, messaging, run};

const COLUMNS: &str = "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count";

/// A line of a list, as AICB writes it.
fn row(kind: &str, group: &str, size: u32, bytes: u64, additional: &str) -> String {
    format!(
        "CommType.{kind},CommGroup.{group},{size},{bytes},step,None,None,{additional},None,None,None,1"
    )
}

/// A computation of so many milliseconds.
fn computation(millis: &str) -> String {
    format!("CommType.computation,CommGroup.all,1,(4;4),step,None,None,,{millis},None,None,1")
}

/// An operation of 1000 bytes of a group of 4 with these columns dst and src.
fn rooted(kind: &str, dst: &str, src: &str) -> String {
    format!("CommType.{kind},CommGroup.tp_group,4,1000,step,{dst},{src},,None,None,None,1")
}

fn list(sections: &[(&str, &[String])]) -> Vec<u8> {
    let sections = sections.iter();
    let text: Vec<String> = sections
        .map(|(ranks, rows)| format!("{ranks}\n{COLUMNS}\n{}\n", rows.join("\n")))
        .collect();
    text.concat().into_bytes()
}

/// Bytes that leave a rank: 2 (n - 1) / n of an allreduce, (n - 1) / n of a reduce-scatter and of an allgather. Tensor
/// parallel ranks are side by side, data parallel ones at a distance.
#[test]
fn bytes_per_group_are_the_closed_form() {
    let rows = [
        row("all_reduce", "tp_group", 4, 4000, ""),
        row("reduce_scatter", "dp_group", 2, 1000, ""),
        row("all_gather", "dp_group", 2, 600, ""),
        row("epoch_end", "None", 0, 0, ""),
        row("all_to_all", "ep_group", 2, 64, ""),
    ];
    let files = [list(&[("[rank0 ~ rank7]", &rows)])];
    let schedules = read(&Aicb {}, &files, None, &settings(8)).unwrap();
    assert_eq!(schedules.len(), 8);
    for (rank, schedule) in schedules.iter().enumerate() {
        let mut expected = vec![0; 8];
        expected[rank / 4 * 4 + (rank + 1) % 4] = 2 * 3 * 1000;
        // A message to the other expert, an equal part of the 64 bytes, is on the same path.
        expected[(rank + 4) % 8] = 500 + 300 + 32;
        assert_eq!(sent(schedule, 8), expected, "rank {rank}");
    }
    let outcome = run(8, vec![traced(&schedules)], messaging());
    assert_eq!((outcome.fault, outcome.finished), (None, true));
}

/// A broadcast comes from its `src`, a reduce goes to its `dst`, both places in the group. In a binomial tree of 4 ranks the rank
/// across from the root hands on what it has got.
#[test]
fn roots_are_places_in_the_group() {
    for root in 0..4_usize {
        let place = root.to_string();
        let of = |rows: &[String]| -> Vec<u64> {
            let file = list(&[("[rank0 ~ rank3]", rows)]);
            let schedules = read(&Aicb {}, &[file], None, &settings(4)).unwrap();
            let sums = schedules.iter().map(|one| sent(one, 4).iter().sum());
            sums.collect()
        };
        let from_root = of(&[rooted("broadcast", "None", &place)]);
        assert_eq!(from_root[root], 2000, "{from_root:?}");
        let to_root = of(&[rooted("reduce", &place, "None")]);
        assert_eq!(to_root[root], 0, "{to_root:?}");
        assert_eq!(to_root.iter().sum::<u64>(), 3000);
    }
}

/// Computations without a measurement take no time.
#[test]
fn a_computation_without_a_time_takes_none() {
    for millis in ["None", "", "0"] {
        let rows = [computation(millis), computation("0.002")];
        let file = list(&[("[rank0]", &rows)]);
        let schedules = read(&Aicb {}, &[file], None, &settings(1)).unwrap();
        let outcome = run(2, vec![traced(&schedules)], messaging());
        assert_eq!(outcome.ends, [Some(Time::ZERO + Span::from_us(2))]);
    }
}

/// Stages of a pipeline exchange messages; the times of computations add up.
#[test]
fn a_pipeline_has_a_section_for_each_stage() {
    let compute =
        "CommType.computation,CommGroup.all,1,(4;4),step,None,None,,0.005,None,None,1".to_owned();
    let first = [
        compute.clone(),
        row("isend", "pp_group", 1, 100, "send_next"),
        row("irecv", "pp_group", 1, 100, "recv_next"),
    ];
    let second = [
        row("irecv", "pp_group", 1, 100, "recv_prev"),
        compute,
        row("isend", "pp_group", 1, 100, "send_prev"),
    ];
    let files = [list(&[("[rank0]", &first), ("[rank1 ~ rank1]", &second)])];
    let schedules = read(&Aicb {}, &files, None, &settings(2)).unwrap();
    let outcome = run(2, vec![traced(&schedules)], messaging());
    assert_eq!((outcome.fault, outcome.finished), (None, true));
    let end = outcome.ends[0].unwrap();
    assert!(
        end > Time::ZERO + Span::from_us(10),
        "{end}: one computes after the other"
    );
    assert!(end < Time::ZERO + Span::from_us(15), "{end}");
}

fn simai(head: &str, layers: &[&str]) -> Vec<u8> {
    format!("{head}\n{}\n{}\n", layers.len(), layers.join("\n")).into_bytes()
}

/// Two layers by hand: forwards 1 and 2 us, backwards 3 and 4 us for inputs and weights of each. The update takes 5 us,
/// and no step waits for it. All operations are of 1000 bytes and take less than that.
#[test]
fn layers_go_forwards_and_backwards() {
    let layers = [
        "a -1 1000 ALLREDUCE 1000 3000 NONE 0 4000 REDUCESCATTER 1000 5000",
        "b -1 2000 NONE 0 3000 ALLREDUCE 1000 4000 ALLGATHER 1000 0",
    ];
    let file = simai(
        "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 4",
        &layers,
    );
    let schedules = read(&Aicb {}, std::slice::from_ref(&file), None, &settings(16)).unwrap();
    assert_eq!(schedules.len(), 4, "all_gpus says how many ranks there are");
    for (rank, schedule) in schedules.iter().enumerate() {
        let mut expected = vec![0; 4];
        expected[rank ^ 1] = 2 * 1000;
        expected[rank ^ 2] = 500 + 500;
        assert_eq!(sent(schedule, 4), expected, "rank {rank}");
    }
    let outcome = run(4, vec![traced(&schedules)], messaging());
    assert_eq!((outcome.fault, outcome.finished), (None, true));
    let computed: Span = Span::from_us(1 + 2 + 3 + 4 + 3 + 4 + 5);
    for end in &outcome.ends {
        let beyond = end.unwrap().since(Time::ZERO + computed);
        // Two blocking operations of two steps, and the last one: less than 2 us each.
        assert!(beyond < Span::from_us(6), "{beyond}");
    }
    // Without all_gpus, places are ranks.
    let file = simai("DATA", &layers);
    assert_eq!(
        read(&Aicb {}, &[file], None, &settings(16)).unwrap().len(),
        16
    );
}

#[test]
fn mistakes_are_located() {
    let one = |rows: &[String]| list(&[("[rank0 ~ rank3]", rows)]);
    let layer = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1";
    let cases: [(Vec<u8>, u32, &str); 21] = [
        (b"[rank0 ~]\n".to_vec(), 1, "is no range of ranks"),
        (b"[rank2 ~ rank3]\n".to_vec(), 1, "rank 0 is next"),
        (
            b"[rank0 ~ rank3]\nkind,size\n".to_vec(),
            2,
            "there is no column \"comm_type\"",
        ),
        (
            format!("[rank0 ~ rank3]\n{COLUMNS},src\n").into_bytes(),
            2,
            "two columns have the same name",
        ),
        (b"[rank0 ~ rank3]\n".to_vec(), 1, "the section is empty"),
        (
            format!("[rank0 ~ rank3]\n{}", &COLUMNS[..50]).into_bytes(),
            2,
            "the section has no operation",
        ),
        (
            one(&["CommType.all_reduce,CommGroup.tp_group,4".to_owned()]),
            3,
            "it has 3 values, but there are 12 columns",
        ),
        (
            one(&[row("gossip", "tp_group", 4, 1, "")]),
            3,
            "\"gossip\" is no type of communication",
        ),
        (
            one(&[row("all_reduce", "friends", 4, 1, "")]),
            3,
            "\"friends\" is no group of ranks",
        ),
        (
            one(&[row("all_reduce", "tp_group", 0, 1, "")]),
            3,
            "an empty group",
        ),
        (
            one(&[row("all_reduce", "tp_group", 3, 1, "")]),
            3,
            "do not divide 4 ranks",
        ),
        (
            one(&[row("isend", "pp_group", 1, 1, "send_next")]),
            3,
            "rank 0 sends to rank 1 1 times, but rank 1 does not receive as often from it: 0 times",
        ),
        (
            one(&[computation("abc")]),
            3,
            "_elapsed_time is \"abc\", not a time in milliseconds",
        ),
        (one(&[computation("nan")]), 3, "a computation of NaN s"),
        (
            one(&[row("all_reduce", "tp_group", 4, 1, "").replace(",1,step", ",None,step")]),
            3,
            "msg_size of \"all_reduce\" is \"None\"",
        ),
        (
            one(&[rooted("broadcast", "None", "4")]),
            3,
            "src is 4, but the group has 4 ranks",
        ),
        (
            one(&[rooted("reduce", "9", "0")]),
            3,
            "dst is 9, but the group has 4 ranks",
        ),
        (
            simai("CIRCLE", &[layer]),
            1,
            "\"CIRCLE\" is no parallelism that is read",
        ),
        (
            simai("DATA", &["a -1 1 NONE"]),
            3,
            "a layer has 12 values, but this one 4",
        ),
        (
            simai("DATA", &["a -1 1 SUM 0 1 NONE 0 1 NONE 0 1"]),
            3,
            "\"SUM\" is no communication",
        ),
        (
            b"DATA\n2\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n".to_vec(),
            2,
            "2 layers are announced, but the file has 1",
        ),
    ];
    for (file, line, message) in cases {
        let what = String::from_utf8_lossy(&file).into_owned();
        let error = read(&Aicb {}, &[file], None, &settings(4)).unwrap_err();
        assert!(error.message.contains(message), "{what}: {error}");
        assert_eq!(error.place, TracePlace::Line(line), "{what}: {error}");
    }
    // The last stage has no next one.
    let both = [
        row("isend", "pp_group", 1, 1, "send_next"),
        row("irecv", "pp_group", 1, 1, "recv_prev"),
    ];
    let error = read(&Aicb {}, &[one(&both)], None, &settings(4)).unwrap_err();
    assert_eq!(
        error.message,
        "rank 3 sends to rank 4, which is not in the list"
    );
    // A receive without a send.
    let (first, second) = (
        [row("all_reduce", "tp_group", 1, 1, "")],
        [row("irecv", "pp_group", 1, 1, "recv_prev")],
    );
    let files = [list(&[("[rank0]", &first), ("[rank1]", &second)])];
    let error = read(&Aicb {}, &files, None, &settings(2)).unwrap_err();
    assert_eq!(
        error.message,
        "rank 1 receives from rank 0 1 times, but rank 0 does not send as often to it: 0 times"
    );
    assert_eq!(error.place, TracePlace::Line(6));
}

#[test]
fn a_list_without_an_operation_is_refused() {
    let files = [
        list(&[("[rank0 ~ rank3]", &[row("epoch_end", "None", 0, 0, "")])]),
        simai("DATA all_gpus: 4", &[]),
    ];
    for file in files {
        let error = read(&Aicb {}, &[file], None, &settings(4)).unwrap_err();
        assert_eq!(error.message, "there is no operation in the list");
        assert_eq!(error.hint, "the file may have been cut off");
    }
}

/// Groups are not made before the ranks have been compared with the places.
#[test]
fn ranks_are_compared_with_places() {
    let rows = [row("barrier", "all", 1 << 20, 0, "")];
    let file = list(&[("[rank0 ~ rank1048575]", &rows)]);
    let error = read(&Aicb {}, &[file], None, &settings(4)).unwrap_err();
    assert_eq!(error.message, "1048576 ranks do not fit on 4 places");
    assert_eq!(error.place, TracePlace::Ranks);
}

/// Groups of all ranks and pipelines of one rank each, in as many steps as ranks. Every rank sends to the next rank. In
/// a barrier by dissemination, it sends to the rank at each power of two.
#[test]
fn many_ranks_and_sections_are_read() {
    const RANKS: u32 = 4096;
    let barrier = row("barrier", "all", RANKS, 0, "");
    let send = row("isend", "pp_group", 1, 100, "send_next");
    let receive = row("irecv", "pp_group", 1, 100, "recv_prev");
    let sections: Vec<(String, Vec<String>)> = (0..RANKS)
        .map(|rank| {
            let mut rows = vec![barrier.clone()];
            rows.extend((rank > 0).then(|| receive.clone()));
            rows.extend((rank + 1 < RANKS).then(|| send.clone()));
            (format!("[rank{rank}]"), rows)
        })
        .collect();
    let sections: Vec<(&str, &[String])> = sections
        .iter()
        .map(|(ranks, rows)| (ranks.as_str(), rows.as_slice()))
        .collect();
    let schedules = read(&Aicb {}, &[list(&sections)], None, &settings(RANKS)).unwrap();
    for (rank, schedule) in (0..RANKS).zip(&schedules) {
        let sends = schedule.ops().iter().filter_map(|op| match op.action {
            Action::Send { to, bytes, .. } => Some((to, bytes)),
            _ => None,
        });
        let mut expected: Vec<(u32, u64)> = (0..12)
            .map(|power| ((rank + (1 << power)) % RANKS, 0))
            .collect();
        expected.extend((rank + 1 < RANKS).then_some((rank + 1, 100)));
        assert_eq!(sends.collect::<Vec<_>>(), expected, "rank {rank}");
    }
}

/// A micro test of AICB without a rank line, of operations whose sizes follow each other.
fn micro(lines: usize) -> Vec<u8> {
    let kinds = [
        "all_gather",
        "all_reduce",
        "reduce_scatter",
        "all_to_all",
        "barrier",
    ];
    let rows = (0..lines).map(|line| {
        let kind = kinds[line % kinds.len()];
        format!(
            "CommType.{kind},CommGroup.dp_group,{},warmup,None,None,,None,None,None,1\n",
            4096 << (line % 3)
        )
    });
    let columns = COLUMNS.replace("comm_group_size,", "");
    format!("{columns}\n{}", rows.collect::<String>()).into_bytes()
}

/// A list of more operations than schedules hold becomes steps that are made when a rank comes to them. The micro tests of AICB on
/// 128 ranks have 200 million operations.
#[test]
fn a_list_that_is_too_long_is_a_stream() {
    let text = |lines| Aicb {}.import(vec![micro(lines)], None).unwrap();
    let short = Aicb {}.stream(&text(10), &settings(128)).unwrap();
    assert_eq!(short, None);
    let long = text(2200);
    let error = Aicb {}.schedules(&long, &settings(128)).unwrap_err();
    assert!(error.message.contains("33554432 operations"), "{error}");
    let stream = Aicb {}.stream(&long, &settings(128)).unwrap().unwrap();
    assert_eq!((stream.ranks, stream.steps.len()), (128, 2200));
    // Pieces of data go side by side, which no stream does.
    let rule = MethodRule {
        operation: None,
        up_to: None,
        algorithm: None,
        pipeline: Pipeline {
            channels: 2,
            chunk: None,
            ..Pipeline::default()
        },
    };
    let pieces = TraceSettings {
        methods: vec![rule],
        ..settings(128)
    };
    assert_eq!(Aicb {}.stream(&long, &pieces), Ok(None));
}

/// A stream does what the schedules of the same list do: it ends at the same time, and has sent as many bytes.
#[test]
fn a_stream_is_like_the_schedules_of_its_list() {
    const RANKS: u32 = 6;
    let text = Aicb {}.import(vec![micro(10)], None).unwrap();
    let schedules = Aicb {}.schedules(&text, &settings(RANKS)).unwrap();
    let operations = [
        Operation::Allgather,
        Operation::Allreduce,
        Operation::ReduceScatter,
        Operation::Alltoall,
        Operation::Barrier,
    ];
    let steps = (0..10).map(|line| {
        let operation = operations[line % operations.len()];
        let bytes = 4096 << (line % 3);
        let bytes = match operation {
            Operation::Alltoall => bytes / u64::from(RANKS),
            _ => bytes,
        };
        StreamStep {
            line: line as u32 + 2,
            action: StreamAction::Collective {
                collective: Collective::new(operation, bytes),
                size: RANKS,
                stride: 1,
            },
        }
    });
    let stream = Arc::new(Stream {
        ranks: RANKS,
        steps: steps.collect(),
    });
    let ranks = (0..RANKS).map(|rank| {
        let steps = StreamRank::new(Arc::clone(&stream), rank);
        (rank as usize, Script::Sequence(Box::new(steps)))
    });
    let free = Messaging {
        overhead: Span::ZERO,
        ..messaging()
    };
    let streamed = run(RANKS as usize, vec![job(ranks.collect())], free);
    let listed = run(RANKS as usize, vec![traced(&schedules)], free);
    assert_eq!((streamed.fault, streamed.finished), (None, true));
    assert_eq!(streamed.ends, listed.ends);
    assert_eq!(streamed.links, listed.links);
    // Each rank measures each line.
    let lines: BTreeSet<u32> = streamed.marks.iter().map(|mark| mark.1).collect();
    assert_eq!(lines, (2..12).collect());
    assert_eq!(streamed.marks.len(), 10 * RANKS as usize);
}

/// Groups of a stream follow those of the list, and its long operations come in parts.
#[test]
fn ranks_of_a_stream_find_their_groups() {
    let stream = Arc::new(Stream {
        ranks: 200,
        steps: vec![
            StreamStep {
                line: 1,
                action: StreamAction::Compute(Span::from_us(3)),
            },
            StreamStep {
                line: 2,
                action: StreamAction::Collective {
                    collective: Collective::new(Operation::Allreduce, 100 * 8),
                    size: 100,
                    stride: 2,
                },
            },
        ],
    });
    for rank in [0, 1, 77, 199] {
        let mut steps = StreamRank::new(Arc::clone(&stream), rank);
        let mut ops = Vec::new();
        let mut calls = 0;
        while steps.step(calls, Time::ZERO, &mut ops) {
            calls += 1;
        }
        assert!(calls > 3, "{calls}");
        assert_eq!(ops[1], Op::Compute(Span::from_us(3)));
        let sends: Vec<u32> = ops
            .iter()
            .filter_map(|op| match op {
                Op::Send { to, .. } => Some(*to),
                _ => None,
            })
            .collect();
        assert_eq!(sends, vec![(rank + 2) % 200; 2 * 99], "rank {rank}");
    }
}
