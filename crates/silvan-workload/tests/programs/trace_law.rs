//! Properties of any bytes as a trace.
//!
//! `traces.rs` has traces with some changed bytes, `fuzz/targets` those of libFuzzer.

use silvan_workload::programs::trace::aicb::Aicb;
use silvan_workload::programs::trace::chakra::Chakra;
use silvan_workload::programs::trace::connections::Connections;
use silvan_workload::programs::trace::{
    Goal, NcclSettings, TraceFormat, TracePlace, TraceSettings,
};

/// Bytes are a trace or one mistake with its place; what is read as a text is read from that text again.
pub fn check(format: &dyn TraceFormat, bytes: &[u8]) {
    let settings = TraceSettings {
        places: 4,
        local: 2,
        methods: Vec::new(),
        operations_per_second: Some(1e12),
        nccl: NcclSettings::default(),
    };
    let length = bytes.len() as u64;
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u32 + 2;
    let text = match format.import(vec![bytes.to_vec()], None) {
        Ok(text) => text,
        Err(error) => {
            assert!(!error.message.is_empty() && !error.hint.is_empty());
            match error.place {
                TracePlace::Whole | TracePlace::Ranks => {}
                TracePlace::Byte(at) => assert!(at <= length),
                TracePlace::Line(line) => assert!((1..=lines).contains(&line), "{error:?}"),
            }
            return;
        }
    };
    // A short list may be of very many ranks.
    let digits = text.split(|c: char| !c.is_ascii_digit());
    if digits
        .filter_map(|word| word.parse::<u64>().ok())
        .any(|number| number > 4096)
    {
        return;
    }
    assert!(format.warnings(&text).len() <= 2);
    if let Err(error) = format.stream(&text, &settings) {
        assert!(!error.message.is_empty() && !error.hint.is_empty());
    }
    if let Err(error) = format.schedules(&text, &settings) {
        assert!(!error.message.is_empty() && !error.hint.is_empty());
    }
}

/// Every format, with a small trace.
pub fn examples() -> Vec<(&'static dyn TraceFormat, Vec<u8>)> {
    let chakra =
        b"{\"workload_graph\": [{\"Id\": 1, \"NodeType\": 4, \"runtime\": 3, \"data_deps\": []}, \
        {\"Id\": 2, \"NodeType\": 7, \"comm_type\": 0, \"comm_size\": 64, \"data_deps\": [1]}]}";
    let list = b"[rank0 ~ rank3]\ncomm_type,comm_group,comm_group_size,msg_size\nall_reduce,tp_group,2,64\n";
    let layers = b"DATA all_gpus: 4\n1\na -1 1 ALLREDUCE 8 1 NONE 0 1 ALLGATHER 9 1\n";
    let stages = b"[ pp_stage0: [rank0, rank1] ]\ncomm_type,comm_group,comm_group_size,msg_size,additional\n\
        all_reduce,tp_group,2,64,\nisend,pp_group,1,64,send_next\n[ pp_stage1: [rank2, rank3] ]\n\
        comm_type,comm_group,comm_group_size,msg_size,additional\nirecv,pp_group,1,64,recv_prev\n";
    let micro = b"comm_type,comm_group,msg_size\nall_gather,dp_group,64\nepoch_end,None,0\n";
    let dlrm =
        b"HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER: 1\n3\na -1 1 ALLTOALL 8 1 ALLTOALL 8 1 NONE 0 1\n\
        b -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\nc -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n";
    let customized = b"HYBRID_CUSTOMIZED\n2\na -1 1 ALLGATHER 8 1 NONE 0 1 NONE 0 1 MODEL\n\
        b -1 1 ALLTOALL 8 1 ALLREDUCE 8 1 REDUCESCATTER 8 1 DATA\n";
    let again = b"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 1 0 \
        checkpoint_initiates: 1 1 all_gpus: 4\n2\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n\
        b -1 1 ALLREDUCE 8 1 NONE 0 1 ALLREDUCE 8 1\n";
    let pipeline = b"HYBRID_TRANSFORMER model_parallel_NPU_group: 1 pp: 2 vpp: 2 ga: 2 all_gpus: 4 pp_comm: 8.0\n6\n\
        h -1 1 NONE 0 1 NONE 0 1 ALLGATHER 8 1\nembedding_layer -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n\
        b -1 1 NONE 0 1 NONE 0 1 NONE 0 1\nembedding_layer -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n\
        b -1 1 NONE 0 1 NONE 0 1 NONE 0 1\noptimizer1 -1 1 ALLREDUCE 8 1 NONE 0 1 NONE 0 1\n";
    let matrix = b"Nodes 3\nConnections 2\nTriggers 1\n0->1 start 0 size 9 send_done_trigger 1\n\
        1->2 trigger 1 size 8\ntrigger id 1 oneshot\n";
    let labelled = b"Nodes 3\n0->1 id 1 msg 2 start 2000 size 9 send_done_trigger 1\n\
        1->2 id 2 msg trigger 1 size 8\ntrigger id 1 multishot\n";
    let proto = b"\x07\n\x050.0.4\x20\x18\x07R\x0d\n\x09comm_typeH\x00R\x0d\n\x09comm_sizeH\x40";
    let binary = [
        &4223_u64.to_le_bytes()[..],
        b"\x01\0\0\0\0\0\x16\0\0\0\0\0\0\0\x49\0\0\0\0\0\0\0",
        b"\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x03",
        &[0; 34],
    ]
    .concat();
    vec![
        (&Chakra::DEFAULT, chakra.to_vec()),
        (&Chakra::DEFAULT, proto.to_vec()),
        (&Aicb {}, list.to_vec()),
        (&Aicb {}, layers.to_vec()),
        (&Aicb {}, stages.to_vec()),
        (&Aicb {}, micro.to_vec()),
        (&Aicb {}, dlrm.to_vec()),
        (&Aicb {}, customized.to_vec()),
        (&Aicb {}, again.to_vec()),
        (&Aicb {}, pipeline.to_vec()),
        (&Connections::DEFAULT, matrix.to_vec()),
        (&Connections::DEFAULT, labelled.to_vec()),
        (&Goal {}, binary),
    ]
}
