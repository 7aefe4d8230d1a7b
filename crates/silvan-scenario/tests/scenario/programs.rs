//! Faults of programs.

use silvan_scenario::Scenario;
use silvan_workload::programs::Work;

use crate::read;

fn message(program: &str) -> String {
    let text = format!(
        "[fabric]\ngenerator = \"single-switch\"\nhosts = 4\n[[traffic.program]]\n{program}\n"
    );
    read(&text).unwrap_err().to_string()
}

#[test]
fn mistakes_in_programs_are_located() {
    let cases = [
        (
            "kind = \"goal\"",
            "traffic.program.0: this kind of program needs a trace",
        ),
        (
            "kind = \"goal\"\ntrace = \"num_ranks 2\"",
            "trace: of 2 ranks, rank 0 has no block",
        ),
        (
            "kind = \"goal\"\ntrace = \"num_ranks x\"",
            "trace: line 1: ",
        ),
        (
            "kind = \"goal\"\nfile = \"missing.goal\"",
            "file: missing.goal cannot be read",
        ),
        (
            "kind = \"goal\"\nbytes = \"1 B\"\ntrace = \"num_ranks 1\\nrank 0 {\\n}\"",
            "bytes: this kind of program has no such parameter",
        ),
        (
            "kind = \"goal\"\nhosts = [\"host-0000\"]\ntrace = \"num_ranks 2\\nrank 0 {\\n}\\nrank 1 {\\n}\"",
            "ranks-per-host: 2 ranks do not fit on 1 places",
        ),
        (
            "kind = \"allreduce\"\nchannels = 65",
            "channels: 65 channels: 1 to 64 are supported",
        ),
        ("kind = \"allreduce\"\nchunk = \"0 B\"", "chunk: it is zero"),
        (
            "kind = \"allreduce\"\nstraggler = [{ ranks = [3, 4] }]",
            "straggler.0.ranks.1: there is no rank 4",
        ),
        (
            "kind = \"allreduce\"\nstraggler = [{ ranks = [3] }, { ranks = [1, 3] }]",
            "straggler.1.ranks.1: rank 3 is listed twice",
        ),
        (
            "kind = \"allreduce\"\nstraggler = [{ ranks = [3], share = 0.5 }]",
            "straggler.0.share: ranks are listed, too",
        ),
        (
            "kind = \"allreduce\"\nstraggler = [{ share = 1.5 }]",
            "straggler.0.share: it is not from 0 to 1",
        ),
        (
            "kind = \"allreduce\"\nstraggler = [{ delay = \"1 us\" }]",
            "straggler.0.ranks: it names no rank",
        ),
        (
            "kind = \"alltoall\"\nalgorithm = \"sharp\"",
            "algorithm: \"sharp\" is no algorithm of this operation",
        ),
        (
            "kind = \"allreduce\"\nalgorithm = \"sharp\"\nchannels = 2",
            "channels: aggregation trees have no such key",
        ),
        (
            "kind = \"allreduce\"\nalgorithm = \"sharp\"\n[traffic.sharp]\nwindow = \"1 KiB\"",
            "traffic.sharp.window: 1 KiB is less than a segment",
        ),
        (
            "kind = \"allreduce\"\nalgorithm = \"sharp\"\n[traffic.sharp]\ntransactions = 0",
            "traffic.sharp.transactions: 0 transactions: 1 to 65536 are supported",
        ),
        (
            "kind = \"allreduce\"\nalgorithm = \"sharp\"\n[traffic.sharp]\npayload = \"1 MiB\"",
            "traffic.sharp.payload: 1 MiB is more than a packet",
        ),
        (
            "kind = \"allreduce\"\nalgorithm = \"sharp\"\n[traffic.sharp]\nswitches = []",
            "traffic.sharp.switches: no switches with aggregation nodes connect the program's hosts",
        ),
        (
            "kind = \"allreduce\"\n[[traffic.collective]]\nalgorithm = \"sharp\"",
            "traffic.collective.0.algorithm: aggregation trees are for programs of one collective operation",
        ),
        (
            "kind = \"allreduce\"\nalgorithm = \"sharp\"\n[[traffic.flow]]\nfrom = \"host-0000\"\nto = \"switch-00-aggregation\"",
            "is the aggregation node of a switch",
        ),
        (
            "kind = \"alltoall\"\nalgorithm = \"nccl\"",
            "algorithm: \"nccl\" is no algorithm of this operation",
        ),
        (
            "kind = \"allgather\"\nalgorithm = \"nccl\"\n[traffic.nccl]\nalgorithms = [\"tree\"]",
            "traffic.nccl.algorithms: NCCL does this operation with rings only",
        ),
        (
            "kind = \"allreduce\"\nalgorithm = \"nccl\"\n[traffic.nccl]\nprotocols = []",
            "traffic.nccl.protocols: the list is empty",
        ),
        ("kind = \"inference\"", "inference: "),
        (
            "kind = \"inference\"\ninference = { layers = 2, hidden = 64, heads = 4, decode-tensor = 3 }",
            "inference.decode-tensor: 3 does not divide heads, 4",
        ),
        (
            "kind = \"inference\"\ninference = { layers = 2, hidden = 64, heads = 4, decode-instances = 9 }",
            "inference.decode-instances: 10 ranks do not fit on 4 places",
        ),
        (
            "kind = \"inference\"\ninference = { layers = 2, hidden = 64, heads = 4, requests = 0 }",
            "inference.requests: 0 requests: 1 to 1048576 are supported",
        ),
        (
            "kind = \"inference\"\ninference = { layers = 2, hidden = 64, heads = 4, request = [{ at = \"2 us\", prompt = 1, output = 1 }, { prompt = 1, output = 1 }] }",
            "inference.request: request 1 arrives at 0 s",
        ),
        (
            "kind = \"training\"\nmodel = { layers = 2, hidden = 64, sequence = 8, experts = 4, expert = 2, expert-shares = [1] }",
            "model.expert-shares: 1 shares for 4 experts",
        ),
        (
            "kind = \"training\"\nmodel = { layers = 2, hidden = 64, sequence = 8, experts = 4, expert = 2, expert-zipf = -1 }",
            "model.expert-zipf: -1 is not from 0 to 10",
        ),
        (
            "kind = \"allreduce\"\nstraggler = [{ ranks = [3], compute-factor = 0 }]",
            "straggler.0.compute-factor: 0 is not from 0.01 to 100",
        ),
        (
            "kind = \"allreduce\"\nstraggler = [{ ranks = [3], compute-factor = nan }]",
            "straggler.0.compute-factor: NaN is not from 0.01 to 100",
        ),
        (
            "kind = \"allreduce\"\nstraggler = [{ ranks = [3], delay = \"21 h\" }]",
            "straggler.0.delay: ",
        ),
        (
            "kind = \"alltoall\"\nbytes = \"1 TiB\"\nchunk = \"1 B\"",
            "chunk: the pieces of 4 ranks need more than 33554432 operations",
        ),
        ("kind = \"alltoallv\"", "sizes: missing key"),
        (
            "kind = \"alltoallv\"\nsizes = [[\"1 B\"]]",
            "sizes: one rank has no other to send to",
        ),
        (
            "kind = \"alltoallv\"\nsizes = [[\"0 B\", \"2 B\"], [\"1 B\"]]",
            "sizes.1: it has 1 sizes, but there are 2 ranks",
        ),
        (
            "kind = \"alltoallv\"\nalgorithm = \"ring\"\nsizes = [[\"1 B\", \"2 B\"], [\"1 B\", \"0 B\"]]",
            "algorithm: it does not do this operation",
        ),
        (
            "kind = \"alltoallv\"\nsizes = [[\"0 B\", \"2 B\"], [\"1 B\", \"3 B\"]]",
            "sizes.1.1: rank 1 sends to itself (hint: write \"0 B\"",
        ),
        (
            "kind = \"allreduce\"\nalgorithm = \"hierarchical\"",
            "server-ranks: each rank is a separate server: no hierarchy (hint: write how many ranks",
        ),
        (
            "kind = \"allreduce\"\nalgorithm = \"hierarchical\"\nserver-ranks = 3",
            "server-ranks: servers of 3 ranks do not divide 4 ranks (hint: write how many ranks",
        ),
        (
            "kind = \"allreduce\"\nalgorithm = \"hierarchical\"\nplacement = \"random\"\nserver-ranks = 2",
            "server-ranks: each rank is a separate server: no hierarchy (hint: use the placement block",
        ),
        (
            "kind = \"alltoallv\"\nchannels = 2\nsizes = [[\"1 B\"]]",
            "channels: this kind of program has no such parameter",
        ),
        (
            "kind = \"barrier\"\n[[traffic.collective]]\noperation = \"broadcast\"\nalgorithm = \"halving\"",
            "traffic.collective.0.algorithm: \"halving\" is no algorithm of this operation",
        ),
        (
            "kind = \"barrier\"\n[[traffic.collective]]\nchannels = 0",
            "traffic.collective.0.channels: 0 channels: 1 to 64",
        ),
        (
            "kind = \"barrier\"\nserver-ranks = 0",
            "server-ranks: it is zero",
        ),
        (
            "kind = \"broadcast\"\nalgorithm = \"pairwise\"",
            "algorithm: \"pairwise\" is no algorithm of this operation (hint: known: tree, ring, direct, nccl, hierarchical)",
        ),
        (
            "kind = \"goal\"\nalgorithm = \"ring\"\ntrace = \"num_ranks 1\\nrank 0 {\\n}\"",
            "algorithm: this kind of program has no such parameter",
        ),
        (
            "kind = \"chakra\"\nfile = \"missing\"",
            "file: there is no missing.0.et or .0.json",
        ),
        (
            "kind = \"chakra\"\ntrace = \"{}\"",
            "trace: line 1: missing field `ranks`",
        ),
        (
            "kind = \"chakra\"\noperations-per-second = 0.5\ntrace = \"{}\"",
            "operations-per-second: 0.5 operations per second are too few",
        ),
        (
            "kind = \"chakra\"\noperations-per-second = inf\ntrace = \"{}\"",
            "operations-per-second: inf operations per second are too many",
        ),
        (
            "kind = \"chakra\"\noperations-per-second = nan\ntrace = \"{}\"",
            "operations-per-second: it is no number",
        ),
        ("kind = \"aicb\"\ntrace = \"\"", "trace: the file is empty"),
        (
            "kind = \"aicb\"\ngroups = \"x\"\nfile = \"all-keys.toml\"",
            "cannot be read",
        ),
        (
            "kind = \"connections\"\ntrace = \"Nodes 2\\n0->0 start 0 size 1\"",
            "trace: line 2: node 0 sends to itself",
        ),
        (
            "kind = \"barrier\"\nhosts = 300",
            "hosts: 300 hosts requested, ",
        ),
        (
            "kind = \"barrier\"\nhosts = [\"host-0000\", \"host-0001\", \"host-0000\"]",
            "hosts.2: two ranks on one host: \"host-0000\" is in the list twice",
        ),
        (
            "kind = \"barrier\"\nplacement = \"rail\"",
            "server-ranks: the placement by rail needs servers of several hosts",
        ),
        ("kind = \"training\"", "model: missing key"),
        (
            "kind = \"training\"\n[traffic.program.model]\nlayers = 1\nhidden = 8\nsequence = 8\ntensor = 3",
            "model.tensor: 3 does not divide hidden, 8",
        ),
        ("kind = \"barrier\"\nhosts = []", "hosts: there is no host"),
        (
            "kind = \"barrier\"\nhosts = [\"host-0000\"]",
            "hosts: one rank has no other to send to",
        ),
        (
            "kind = \"barrier\"\nranks-per-host = 0",
            "ranks-per-host: 0 ranks: 1 to 1048576 are supported",
        ),
        (
            "kind = \"barrier\"\niterations = \"unlimited\"",
            "iterations: ",
        ),
        (
            "kind = \"barrier\"\ntrace = \"\"",
            "trace: this kind of program has no such parameter",
        ),
        (
            "kind = \"alltoall\"\nbytes = \"2 TiB\"",
            "bytes: 2 TiB is more than 1 TiB",
        ),
        (
            "kind = \"alltoall\"\ncompute = \"100000 s\"",
            "compute: 100000 s is longer than a computation may take, 72000 s",
        ),
        (
            "kind = \"barrier\"\n[traffic.messaging]\ncontrol = \"0 B\"",
            "traffic.messaging.control: it is zero",
        ),
        (
            "kind = \"barrier\"\n[traffic.messaging]\noverhead-per-byte = \"2 us\"",
            "traffic.messaging.overhead-per-byte: 2 us is more than 100 ns",
        ),
        (
            "kind = \"barrier\"\nname = \"x\"\n[[traffic.flow]]\nname = \"x\"\nfrom = \"host-0000\"\nto = \"host-0001\"",
            "is another entry's name",
        ),
        (
            "kind = \"barrier\"\n[traffic.gpcnet]",
            "traffic.gpcnet.hosts: 4 hosts are too few",
        ),
        (
            "kind = \"barrier\"\n[traffic.gpcnet]\nrings = 0",
            "traffic.gpcnet.rings: ",
        ),
        (
            "kind = \"barrier\"\n[traffic.gpcnet]\ncongestor-share = 1.5",
            "traffic.gpcnet.congestor-share: 1.5",
        ),
        (
            "kind = \"barrier\"\n[traffic.gpcnet]\ntests = []",
            "traffic.gpcnet.tests: there is no test",
        ),
        (
            "kind = \"barrier\"\n[traffic.gpcnet]\ntests = [\"alltoall\", \"alltoall\"]",
            "traffic.gpcnet.tests.1: \"alltoall\" is there twice",
        ),
        (
            "kind = \"barrier\"\n[traffic.gpcnet]\nalltoall-iterations = 0",
            "traffic.gpcnet.alltoall-iterations: ",
        ),
        (
            "kind = \"barrier\"\n[traffic.hpcc]\nlatency-rings = 2000000",
            "traffic.hpcc.latency-rings: ",
        ),
        (
            "kind = \"barrier\"\n[traffic.hpcc]\nhosts = [\"host-0001\"]",
            "1 ranks are not between 2",
        ),
        (
            "kind = \"barrier\"\n[traffic.hpcc]\nranks-per-host = 100",
            "400 ranks are not between 2",
        ),
    ];
    for (program, expected) in cases {
        let error = message(program);
        assert!(error.contains(expected), "{program:?}: {error}");
        assert!(error.contains("(hint: "), "{program:?}: {error}");
    }
}

/// A table that chooses by size takes the flat algorithm where there is no hierarchy: the same messages.
#[test]
fn a_table_chooses_the_flat_algorithm_where_there_is_no_hierarchy() {
    let text = |algorithm: &str, servers: u32| {
        format!(
            "[fabric]\ngenerator = \"single-switch\"\nhosts = 4\n[[traffic.program]]\nkind = \"allreduce\"\nbytes = \"4 KiB\"\n\
             channels = 2\nserver-ranks = {servers}\n[[traffic.collective]]\nalgorithm = \"{algorithm}\"\n"
        )
    };
    let plan = |algorithm: &str, servers: u32| {
        let scenario = read(&text(algorithm, servers)).unwrap();
        scenario.programs().unwrap().jobs[0].work.clone()
    };
    for servers in [1, 3] {
        assert_eq!(plan("hierarchical", servers), plan("ring", servers));
    }
    assert_ne!(plan("hierarchical", 2), plan("ring", 2));
}

/// Files of ranks in a folder, named by a scenario next to them.
#[test]
fn files_of_ranks_are_all_or_none() {
    let nodes = "{\"workload_graph\": [{\"Id\": 1, \"NodeType\": 4}]}";
    let outcome = |files: &[&str], name: &str| {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::write(folder.path().join(file), nodes).unwrap();
        }
        let text = format!(
            "[fabric]\ngenerator = \"single-switch\"\nhosts = 4\n[[traffic.program]]\nkind = \"chakra\"\nfile = \"{name}\"\n"
        );
        let place = folder.path().join("test.toml");
        let scenario = Scenario::from_toml(&text, &place.display().to_string(), &[]);
        scenario.map(
            |scenario| match &scenario.programs().unwrap().jobs[0].work {
                Work::Schedules { schedules, .. } => schedules.len(),
                _ => 0,
            },
        )
    };
    let right: [&[&str]; 4] = [
        &["m.0.json", "m.1.json", "m.2.json"],
        &["m.0.et", "m.1.et", "m.2.et"],
        &[
            "m.0.et",
            "m.1.et",
            "m.2.et",
            "m.groups.json",
            "m.0.json.gz",
            "m..et",
        ],
        &["m.0.et", "m.1.et", "m.2.et", "other.0.json", "m.x.0.json"],
    ];
    for files in right {
        assert_eq!(outcome(files, "m").unwrap(), 3, "{files:?}");
    }
    let wrong: [(&[&str], &str, &str); 8] = [
        (
            &["m.0.et", "m.1.et", "m.2.json", "m.3.json"],
            "m",
            "m.2.json has another ending than m.0.et (hint: write the files of all ranks in the same format)",
        ),
        (
            &["m.0.et", "m.1.et", "m.0.json", "m.1.json"],
            "m",
            "rank 0 has two files: m.0.et and m.0.json (hint: keep those of one ending, and remove m.*.et or m.*.json)",
        ),
        (
            &["m.0.et", "m.1.et", "m.1.json"],
            "m",
            "rank 1 has two files: m.1.et and m.1.json",
        ),
        (
            &["m.0.json", "m.01.json"],
            "m",
            "m.01.json is no name of the file of a rank (hint: numbers of ranks have no sign and no zero before them: m.1.json)",
        ),
        (
            &["m.0.json", "m.+1.json"],
            "m",
            "m.+1.json is no name of the file of a rank",
        ),
        (
            &["m.0.et", "m.2.et"],
            "m",
            "there is a file of rank 2, but none of rank 1: m.1.et",
        ),
        (&["m.1.et"], "m", "m.0.et or .0.json"),
        // A file in place of the folder.
        (&["plain"], "plain/m", "plain/m cannot be read: "),
    ];
    for (files, name, expected) in wrong {
        let error = outcome(files, name).unwrap_err().to_string();
        assert!(error.contains(expected), "{files:?}: {error}");
        assert!(error.contains("traffic.program.0.file: "), "{error}");
        assert!(error.contains("(hint: "), "{error}");
    }
}

/// The contents of a file become part of the scenario, so its hash is that of the run.
#[test]
fn a_schedule_is_part_of_the_scenario() {
    let text = |calc: u32| {
        format!(
            "[[traffic.program]]\nkind = \"goal\"\ntrace = '''\nnum_ranks 1\nrank 0 {{\ncalc {calc}\n}}\n'''\n"
        )
    };
    let scenario = read(&text(1)).unwrap();
    assert_ne!(scenario.hash(), read(&text(2)).unwrap().hash());
    let again = read(scenario.effective_toml()).unwrap();
    assert_eq!(again.hash(), scenario.hash());
    assert_eq!(again.programs(), scenario.programs());
    assert!(scenario.programs().is_some());
    assert!(read("").unwrap().programs().is_none());
}

#[test]
fn flows_are_counted_up_to_the_end_of_the_run_where_it_is_known() {
    let text = |background: bool| {
        format!(
            "[fabric]\ngenerator = \"single-switch\"\nhosts = 4\n\
             [[traffic.flows]]\nload = 0.5\nsizes = {{ fixed = \"1 B\" }}\n\
             [[traffic.program]]\nkind = \"allreduce\"\nbackground = {background}\n\
             [run]\nduration = \"10 s\"\n"
        )
    };
    let message = read(&text(true)).unwrap_err().to_string();
    assert!(message.contains("flows would start"), "{message}");
    // This program ends the run before that many flows have started.
    read(&text(false)).unwrap();
}

/// Control dependencies that name no node are counted, and operations that a parallelism does not have.
#[test]
fn parts_of_traces_that_are_ignored_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = "{\"attr\": []}{\"id\": \"1\", \"type\": 4, \"ctrlDeps\": [\"7\", \"8\"]}";
    std::fs::write(folder.path().join("n.0.json"), nodes).unwrap();
    let layer = "a -1 1 ALLREDUCE 8 1 NONE 0 1 ALLREDUCE 8 0";
    std::fs::write(folder.path().join("a.txt"), format!("DATA\n1\n{layer}\n")).unwrap();
    let place = folder.path().join("test.toml").display().to_string();
    let warnings = |kind: &str, file: &str, keys: &str| {
        let text = format!(
            "[fabric]\ngenerator = \"single-switch\"\nhosts = 4\n[[traffic.program]]\nkind = \"{kind}\"\nfile = \"{file}\"\n{keys}\n"
        );
        let scenario = Scenario::from_toml(&text, &place, &[]).unwrap();
        let own = scenario.warnings().iter();
        let own = own.filter(|warning| warning.starts_with("traffic.program"));
        own.cloned().collect::<Vec<_>>()
    };
    let dangling = "traffic.program.0: 2 control dependencies on nodes that the trace does not have are ignored";
    assert_eq!(warnings("chakra", "n", ""), [dangling]);
    let ignored = "format.chakra.control-dependencies = \"ignored\"";
    assert!(warnings("chakra", "n", ignored).is_empty());
    let left_out = "traffic.program.0: 1 collective operations are ignored: the parallelism of the file does not have them";
    assert_eq!(warnings("aicb", "a.txt", ""), [left_out]);
}

/// A list of AICB with more operations than schedules hold is a stream.
#[test]
fn a_list_above_the_limit_is_a_stream() {
    let is_stream = |rows: usize| {
        let rows = "all_reduce,dp_group,4096\n".repeat(rows);
        let text = format!(
            "[fabric]\ngenerator = \"single-switch\"\nhosts = 128\n[[traffic.program]]\nkind = \"aicb\"\n\
            trace = \"\"\"\ncomm_type,comm_group,msg_size\n{rows}\"\"\"\n"
        );
        let scenario = read(&text).unwrap();
        let plan = scenario.programs().unwrap();
        assert_eq!(plan.jobs[0].rank_hosts().len(), 128);
        matches!(plan.jobs[0].work, Work::Stream { .. })
    };
    assert!(!is_stream(10));
    // An allreduce on 128 ranks has 97,664 operations.
    assert!(is_stream(350));
}
