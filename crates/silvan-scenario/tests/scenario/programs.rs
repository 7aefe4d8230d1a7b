//! What is wrong with programs.

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
            "traffic.program.0: goal needs a schedule",
        ),
        (
            "kind = \"goal\"\ngoal = \"num_ranks 2\"",
            "goal: of 2 ranks, rank 0 has no block",
        ),
        ("kind = \"goal\"\ngoal = \"num_ranks x\"", "goal: line 1: "),
        (
            "kind = \"goal\"\nfile = \"missing.goal\"",
            "file: missing.goal cannot be read",
        ),
        (
            "kind = \"goal\"\nbytes = \"1 B\"\ngoal = \"num_ranks 1\\nrank 0 {\\n}\"",
            "bytes: this kind of program has no such parameter",
        ),
        (
            "kind = \"goal\"\nhosts = [\"host-0000\"]\ngoal = \"num_ranks 2\\nrank 0 {\\n}\\nrank 1 {\\n}\"",
            "ranks-per-host: 2 ranks do not fit on 1 places",
        ),
        (
            "kind = \"barrier\"\nhosts = 3",
            "hosts: a number of hosts is not supported here",
        ),
        ("kind = \"barrier\"\nhosts = []", "hosts: there is no host"),
        (
            "kind = \"barrier\"\nhosts = [\"host-0000\"]",
            "hosts: one rank talks to no other",
        ),
        (
            "kind = \"barrier\"\nranks-per-host = 0",
            "ranks-per-host: 0 ranks are none, or too many",
        ),
        (
            "kind = \"barrier\"\niterations = \"unlimited\"",
            "iterations: ",
        ),
        (
            "kind = \"barrier\"\ngoal = \"\"",
            "goal: this kind of program has no such parameter",
        ),
        (
            "kind = \"alltoall\"\nbytes = \"2 TiB\"",
            "bytes: 2 TiB is more than 1 TiB",
        ),
        (
            "kind = \"alltoall\"\ncompute = \"100000 s\"",
            "compute: 100000 s is longer than the clock runs",
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

/// What a file says becomes part of the scenario, so that its hash is that of the run.
#[test]
fn a_schedule_is_part_of_the_scenario() {
    let text = |calc: u32| {
        format!(
            "[[traffic.program]]\nkind = \"goal\"\ngoal = '''\nnum_ranks 1\nrank 0 {{\ncalc {calc}\n}}\n'''\n"
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
