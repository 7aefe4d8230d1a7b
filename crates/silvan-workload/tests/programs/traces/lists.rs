//! AICB's published lists: stages of a pipeline, and micro tests.

use silvan_workload::programs::trace::aicb::Aicb;
use silvan_workload::programs::trace::{TraceFormat, TracePlace};

use super::{read, sent, settings, traced};
use crate::common::{messaging, run};

const COLUMNS: &str = "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count";
const MICRO: &str =
    "comm_type,comm_group,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count";

/// Two stages of two tensor parallel ranks.
fn stages(first: &str, second: &str) -> Vec<u8> {
    let sum =
        "CommType.all_reduce,CommGroup.tp_group,2,1048576,forward,None,None,,None,None,None,1";
    let message = |kind: &str, way: &str| {
        format!("CommType.{kind},CommGroup.pp_group,1,65536,step,None,None,{way},None,None,None,1")
    };
    let (send, receive) = (message("isend", "send_next"), message("irecv", "recv_prev"));
    format!("{first}\n{COLUMNS}\n{sum}\n{send}\n{second}\n{COLUMNS}\n{receive}\n{sum}\n")
        .into_bytes()
}

/// The ranks of a stage, in each spelling: 4 x 1 MiB of allreduces and 2 x 64 KiB between stages.
#[test]
fn every_spelling_of_the_ranks_is_read() {
    let spellings = [
        ("[rank0 ~ rank1]", "[rank2 ~ rank3]"),
        ("[rank0, rank1]", "[rank2, rank3]"),
        (
            "[ pp_stage0: [rank0, rank1] ]",
            "[ pp_stage1: [rank2, rank3] ]",
        ),
        ("[pp_stage0:[rank0 ~ rank1]]", "[pp_stage1:[rank2 ~ rank3]]"),
    ];
    for (first, second) in spellings {
        let schedules = read(&Aicb {}, &[stages(first, second)], None, &settings(4)).unwrap();
        let rows: Vec<Vec<u64>> = schedules.iter().map(|one| sent(one, 4)).collect();
        assert_eq!(
            rows,
            [
                [0, 1 << 20, 1 << 16, 0],
                [1 << 20, 0, 0, 1 << 16],
                [0, 0, 0, 1 << 20],
                [0, 0, 1 << 20, 0],
            ]
        );
        let outcome = run(4, vec![traced(&schedules)], messaging());
        assert_eq!((outcome.fault, outcome.finished), (None, true));
    }
}

#[test]
fn ranks_that_are_no_range_are_refused() {
    for first in [
        "[ pp_stage0: [rank0, rank2] ]",
        "[ pp_stage0: rank0, rank1 ]",
        "[ stage0: [rank0, rank1] ]",
        "[ pp_stage0: [pp_stage0: [rank0]] ",
        "[rank0, 1]",
        "[]",
    ] {
        let file = stages(first, "[rank2, rank3]");
        let error = read(&Aicb {}, &[file], None, &settings(4)).unwrap_err();
        assert!(
            error.message.contains("is no range of ranks"),
            "{first}: {error}"
        );
        assert_eq!(error.place, TracePlace::Line(1));
    }
}

/// A list without ranks is one of all places; groups without a size are all ranks.
#[test]
fn micro_tests_have_all_places_as_ranks() {
    let row = |kind: &str| {
        format!("CommType.{kind},CommGroup.dp_group,4096,warmup,None,None,,None,None,None,1\n")
    };
    let end = "CommType.epoch_end,None,0,,None,None,,None,None,None,1\n";
    for (kind, each) in [
        ("all_to_all", 3 * 1024),
        ("all_gather", 3 * 1024),
        ("reduce_scatter", 3 * 1024),
        ("all_reduce", 2 * 3 * 1024),
    ] {
        let file = format!("{MICRO}\n{}{end}{}", row(kind), row(kind)).into_bytes();
        let schedules = read(&Aicb {}, &[file], None, &settings(4)).unwrap();
        assert_eq!(schedules.len(), 4);
        for schedule in &schedules {
            assert_eq!(sent(schedule, 4).iter().sum::<u64>(), 2 * each, "{kind}");
        }
    }
    // With the column, groups have the column's size.
    let sum = "CommType.all_reduce,CommGroup.dp_group,2,4096,warmup,None,None,,None,None,None,1";
    let file = format!("{COLUMNS}\n{sum}\n").into_bytes();
    let schedules = read(&Aicb {}, &[file], None, &settings(4)).unwrap();
    assert_eq!(sent(&schedules[0], 4), [0, 4096, 0, 0]);
    // A list with ranks needs the column.
    let file = format!("[rank0 ~ rank3]\n{MICRO}\n{}", row("all_reduce")).into_bytes();
    let error = read(&Aicb {}, &[file], None, &settings(4)).unwrap_err();
    assert_eq!(error.message, "there is no column \"comm_group_size\"");
}

/// The weights of the embedding are shared by the first and the last of three stages. A list in which only one of them
/// has the operation, as AICB's published list, is read without it.
#[test]
fn the_embedding_is_shared_by_the_first_and_the_last_stage() {
    let row = |kind: &str, group: &str, size: u32, way: &str| {
        format!(
            "CommType.{kind},CommGroup.{group},{size},1000,step,None,None,{way},None,None,None,1"
        )
    };
    let sum = row("all_reduce", "tp_group", 2, "");
    let shared = row("all_reduce", "embedding_group", 2, "");
    let (send, receive) = (
        row("isend", "pp_group", 1, "send_next"),
        row("irecv", "pp_group", 1, "recv_prev"),
    );
    let list = |first: &str, middle: &str, last: &str| {
        let stages = [
            format!("{sum}\n{send}\n{first}"),
            format!("{sum}\n{receive}\n{send}\n{middle}"),
            format!("{sum}\n{receive}\n{last}"),
        ];
        let sections = stages.iter().enumerate().map(|(stage, rows)| {
            let rank = 2 * stage;
            format!(
                "[ pp_stage{stage}: [rank{rank}, rank{}] ]\n{COLUMNS}\n{rows}\n",
                rank + 1
            )
        });
        sections.collect::<String>()
    };
    let total = |text: &str| -> u64 {
        let schedules = read(&Aicb {}, &[text.into()], None, &settings(6)).unwrap();
        let outcome = run(6, vec![traced(&schedules)], messaging());
        assert_eq!((outcome.fault, outcome.finished), (None, true));
        schedules.iter().flat_map(|one| sent(one, 6)).sum()
    };
    let both = list(&shared, "", &shared);
    let schedules = read(&Aicb {}, &[both.clone().into()], None, &settings(6)).unwrap();
    assert_eq!(sent(&schedules[1], 6), [1000, 0, 0, 1000, 0, 1000]);
    assert_eq!(total(&both), 6 * 1000 + 4 * 1000 + 4 * 1000);
    assert!(Aicb {}.warnings(&both).is_empty());
    for one in [list("", "", &shared), list(&shared, "", "")] {
        assert_eq!(total(&one), 6 * 1000 + 4 * 1000);
        let message = "1 collective operations are ignored: only one stage of their group has them";
        assert_eq!(Aicb {}.warnings(&one), [message]);
    }
    let refused = |text: String| read(&Aicb {}, &[text.into()], None, &settings(6)).unwrap_err();
    let error = refused(list(&shared, &shared, &shared));
    assert!(
        error.message.contains("neither the first nor the last"),
        "{error}"
    );
    let error = refused(list(&shared, "", &format!("{shared}\n{shared}")));
    assert!(error.message.contains("differ in what they do"), "{error}");
    let three = shared.replace("embedding_group,2", "embedding_group,3");
    let error = refused(list(&three, "", &three));
    assert!(
        error.message.contains("embedding_group has 3 ranks"),
        "{error}"
    );
}
