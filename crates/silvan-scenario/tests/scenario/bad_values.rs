//! Values that can be read and make no sense: one test per section, one line per value.

use crate::{message, read_with};

/// Checks a section with one bad line against its message.
pub fn check(section: &str, line: &str, expected: &str) {
    let text = format!("name = \"x\"\n\n[{section}]\n{line}\n");
    assert_eq!(message(&text), format!("file.toml:4: {expected}"));
}

#[test]
fn packets_and_buffers() {
    check(
        "packet",
        "mtu = \"0 B\"",
        "packet.mtu: MTU of 0 bytes; it must be between 1 and 10240 (hint: InfiniBand MTUs are 256 \
         B to 4 KiB; 4 KiB is usual)",
    );
    check(
        "packet",
        "mtu = \"11 KiB\"",
        "packet.mtu: MTU of 11264 bytes; it must be between 1 and 10240 (hint: InfiniBand MTUs are \
         256 B to 4 KiB; 4 KiB is usual)",
    );
    check(
        "packet",
        "header = \"1 KiB\"",
        "packet.header: packet header of 1024 bytes; it must be at most 256 (hint: 26 B are \
         usual: LRH, BTH, ICRC and VCRC)",
    );
    check(
        "switch",
        "buffer = \"2 KiB\"",
        "switch.buffer: switch input buffer of 2048 bytes cannot hold one packet of 4122 bytes on \
         the wire (hint: make it at least 4160 B, or lower packet.mtu)",
    );
    check(
        "host",
        "receive-buffer = \"64 B\"",
        "host.receive-buffer: host receive buffer of 64 bytes cannot hold one packet of 4122 \
         bytes on the wire (hint: make it at least 4160 B, or lower packet.mtu)",
    );
    check(
        "switch",
        "output-buffer = { size = \"1 KiB\" }",
        "switch.output-buffer.size: switch output buffer of 1024 bytes cannot hold one packet of \
         4122 bytes on the wire (hint: make it at least 4160 B, or lower packet.mtu)",
    );
    check(
        "switch",
        "output-buffer = { size = \"8 KiB\", speedup = 0.5 }",
        "switch.output-buffer.speedup: a speedup of 0.5 is not 1 to 1000 in steps of 0.01 (hint: \
         write 1 for as fast as the links, or e.g. 1.5)",
    );
    check(
        "switch",
        "read-speedup = 0.5",
        "switch.read-speedup: a speedup of 0.5 is not 1 to 1000 in steps of 0.01 (hint: write 1 for \
         as fast as the links, or e.g. 1.5)",
    );
    check(
        "switch",
        "read-speedup = 1.5",
        "switch.read-speedup: a read speedup without a limit on simultaneous reads has no effect \
         (hint: set switch.read-limit, e.g. to 1, or leave it out)",
    );
    check(
        "switch",
        "bypass-limit = 4\nqueueing = \"fifo\"",
        "switch.bypass-limit: a bypass limit with FIFO queueing, where no packet overtakes another \
         (hint: leave it out, or set switch.queueing to \"voq\")",
    );
    check(
        "switch",
        "read-limit = 0",
        "switch.read-limit: a read limit of 0 would never let a packet through (hint: write 1 or \
         more, or \"unlimited\")",
    );
    check(
        "switch",
        "latency = \"2 s\"",
        "switch.latency: switch latency of 2 s is longer than 1 s (hint: write e.g. \"100 ns\")",
    );
    check(
        "switch",
        "credit-delay = \"2 s\"",
        "switch.credit-delay: switch credit delay of 2 s is longer than 1 s (hint: write e.g. \
         \"100 ns\")",
    );
    check(
        "host",
        "credit-delay = \"2 s\"",
        "host.credit-delay: host credit delay of 2 s is longer than 1 s (hint: write e.g. \"100 \
         ns\")",
    );
}

/// A defaulted value is reported where its section stands, or at the start of the file.
#[test]
fn defaults_that_do_not_fit_point_at_their_section() {
    assert_eq!(
        message(
            "[packet]\nmtu = \"4 KiB\"\n\n[switch]\nbuffer = \"64 KiB\"\n\n[host]\n\
                 receive-buffer = \"4 KiB\""
        ),
        "file.toml:8: host.receive-buffer: host receive buffer of 4096 bytes cannot hold one \
         packet of 4122 bytes on the wire (hint: make it at least 4160 B, or lower packet.mtu)"
    );
    assert_eq!(
        message("\n[fabric]\ngenerator = \"chain\"\nswitches = 2"),
        "file.toml:2: fabric.hosts-per-switch: missing key (hint: chain needs switches, \
         hosts-per-switch)"
    );
}

#[test]
fn virtual_lanes() {
    check(
        "vl",
        "data-vls = 0",
        "vl.data-vls: 0 data virtual lanes; a port has 1 to 15 (hint: 1 is usual; write e.g. 2 \
         for two traffic classes)",
    );
    check(
        "vl",
        "data-vls = 16",
        "vl.data-vls: 16 data virtual lanes; a port has 1 to 15 (hint: 1 is usual; write e.g. 2 \
         for two traffic classes)",
    );
    check(
        "vl",
        "sl-to-vl = [0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]",
        "vl.sl-to-vl.3: SL 3 maps to VL 2, but there are 1 data VLs (0 to 0) (hint: map it to a \
         data VL that is there, or set vl.data-vls to 3)",
    );
    check(
        "vl",
        "sl-to-vl = [0, 0]",
        "vl.sl-to-vl: 2 entries, one for each of the 16 service levels is needed (hint: list 16 \
         VLs, or leave it out to spread the SLs over all VLs)",
    );
    check(
        "vl",
        "high = [[0, 1], [15, 1]]",
        "vl.high.1: data VL 15 is out of range, it must be 0 to 14 (hint: write pairs of VL and \
         weight, e.g. [0, 1])",
    );
    check(
        "vl",
        "low = [[0, 1], [3, 1]]",
        "vl.low.1: the VL arbitration table names VL 3, but there are 1 data VLs (hint: leave the \
         entry out, or set vl.data-vls to 4)",
    );
    assert_eq!(
        message("[vl]\ndata-vls = 2\nlow = [[0, 1]]"),
        "file.toml:3: vl.low: VL 1 is in neither arbitration table with a weight above 0, so it \
         would never send (hint: add [1, 1] to vl.low)"
    );
}

#[test]
fn duration_warm_up_and_interval() {
    check(
        "run",
        "duration = \"0 s\"",
        "run.duration: it is zero (hint: write e.g. \"10 ms\")",
    );
    check(
        "run",
        "duration = \"5000000 s\"",
        "run.duration: 5000000 s is longer than the clock runs, 4320000 s (hint: write e.g. \"10 ms\")",
    );
    check(
        "run",
        "warm-up = \"10 ms\"",
        "run.warm-up: 10 ms is not shorter than the duration, 10 ms (hint: shorten it, or \
         lengthen run.duration)",
    );
    check(
        "probe",
        "interval = \"3 ms\"",
        "probe.interval: 3 ms does not divide the duration, 10 ms (hint: leave it out for 100 to \
         1,000 samples)",
    );
    check(
        "probe",
        "interval = \"0 s\"",
        "probe.interval: it is zero (hint: write e.g. \"100 us\", or leave it out)",
    );
    check(
        "probe.trees",
        "interval = \"0 s\"",
        "probe.trees.interval: it is zero (hint: write e.g. \"100 us\", or leave it out)",
    );
    check(
        "probe.trees",
        "interval = \"11 ms\"",
        "probe.trees.interval: 11 ms is longer than the duration, 10 ms (hint: write e.g. \
         \"100 us\", or leave it out)",
    );
    assert_eq!(
        message("[run]\nwarm-up = \"1 ms\"\n[probe]\ninterval = \"2 ms\""),
        "file.toml:4: probe.interval: 2 ms does not divide the warm-up, 1 ms (hint: leave it out \
         for 100 to 1,000 samples)"
    );
}

#[test]
fn traffic_names_and_numbers() {
    check(
        "traffic.nodes",
        "hotspots = [\"host-0001\", \"host-0020\"]",
        "traffic.nodes.hotspots.1: there is no host named \"host-0020\" (hint: did you mean \
         \"host-0002\"?)",
    );
    check(
        "traffic.nodes",
        "hotspots = [\"switch-00\"]",
        "traffic.nodes.hotspots.0: \"switch-00\" is a switch, not a host (hint: give the name of \
         a host)",
    );
    check(
        "traffic.nodes",
        "hotspots = 9",
        "traffic.nodes.hotspots: 9 hosts requested, 8 available (hint: ask for at most 8, or enlarge \
         the fabric)",
    );
    for entry in [
        "[traffic.nodes]\nhotspots = 1\nc = 1.0",
        "[[traffic.flows]]\nsizes = { fixed = \"4 KiB\" }\nload = 0.5",
    ] {
        let text = format!("[fabric]\ngenerator = \"single-switch\"\nhosts = 1\n{entry}");
        let found = message(&text);
        assert!(
            found.contains(": this traffic needs at least 2 hosts, and the fabric has 1 (hint: enlarge the fabric)"),
            "{found}"
        );
    }
    assert_eq!(
        message("[traffic.nodes]\nc = 0.5"),
        "file.toml:1: traffic.nodes.hotspots: C nodes, and B nodes with p above 0, need at least \
         one hotspot (hint: set traffic.nodes.hotspots, e.g. to 1)"
    );
    check(
        "traffic.nodes",
        "p = 101",
        "traffic.nodes.p: 101 is not between 0 and 100 per cent (hint: write e.g. 60 for 60 %)",
    );
    check(
        "traffic.nodes",
        "v = 1.5",
        "traffic.nodes.v: 1.5 is not between 0 and 1 (hint: write e.g. 0.5 for one half)",
    );
    check(
        "traffic.nodes",
        "v = \"host-0000\"",
        "traffic.nodes.v: expected a fraction of the hosts from 0 to 1 or a list of host names, \
         found the text \"host-0000\" (hint: write e.g. 0.5 or [\"host-0000\"])",
    );
    assert_eq!(
        message("[traffic.nodes]\nv = 0.5\nc = 0.75\nhotspots = 1"),
        "file.toml:1: traffic.nodes: the fractions v, c and b sum to 1.25, more than 1 (hint: \
         lower one of them; the rest of the hosts is idle)"
    );
    assert_eq!(
        message("[traffic.nodes]\nv = [\"host-0000\"]\nc = 0.5\nhotspots = 1"),
        "file.toml:3: traffic.nodes.c: this is a fraction, but another role is a list of hosts \
         (hint: give all roles in the same way)"
    );
    check(
        "traffic.nodes",
        "sl = 16",
        "traffic.nodes.sl: SL 16 is out of range, it must be 0 to 15 (hint: choose a number in \
         that range, e.g. 0)",
    );
    check(
        "traffic",
        "message = \"0 B\"",
        "traffic.message: zero bytes (hint: write e.g. \"4 KiB\")",
    );
    check(
        "traffic",
        "backlog = 0",
        "traffic.backlog: a backlog of at least one message is needed (hint: write 1 or more)",
    );
}

#[test]
fn traffic_entries() {
    check(
        "[traffic.uniform]",
        "load = 1.5",
        "traffic.uniform.0.load: 1.5 is not between 0 and 1 (hint: write e.g. 0.5 for one half)",
    );
    check(
        "[traffic.uniform]",
        "from = \"none\"",
        "traffic.uniform.0.from: expected \"all\", a list of host names or a number of hosts, \
         found the text \"none\" (hint: write e.g. \"all\", [\"host-0000\"] or 4)",
    );
    check(
        "[traffic.permutation]",
        "shift = 3",
        "traffic.permutation.0.shift: random has no such parameter (hint: random has no parameters)",
    );
    check(
        "[traffic.incast]",
        "to = \"host-0008\"",
        "traffic.incast.0.to: there is no host named \"host-0008\" (hint: did you mean \
         \"host-0000\"?)",
    );
    assert_eq!(
        message("[[traffic.permutation]]\npattern = \"shift\""),
        "file.toml:1: traffic.permutation.0.shift: missing key (hint: shift needs shift)"
    );
    assert_eq!(
        message("[[traffic.flow]]\nfrom = \"host-0001\"\nto = \"host-0001\""),
        "file.toml:3: traffic.flow.0.to: host 1 would send to itself (hint: choose another \
         receiver, or for a flow or a sequence set traffic.loopback to true)"
    );
    assert_eq!(
        message(
            "[[traffic.flow]]\nfrom = \"host-0001\"\nto = \"host-0002\"\nstart = \"2 us\"\n\
             end = \"1 us\""
        ),
        "file.toml:5: traffic.flow.0.end: the end (1 us) is not after the start (2 us) (hint: \
         choose a later end, or leave it out)"
    );
}

#[test]
fn sequences() {
    let check = |keys: &str, expected: &str| {
        let text = format!("[[traffic.sequence]]\nfrom = \"host-0001\"\n{keys}");
        assert_eq!(message(&text), format!("file.toml:{expected}"));
    };
    check(
        "to = []",
        "3: traffic.sequence.0.to: at least one host is needed (hint: name at least one host)",
    );
    check(
        "to = [\"host-0002\", \"host-0009\"]",
        "3: traffic.sequence.0.to.1: there is no host named \"host-0009\" (hint: did you mean \
         \"host-0000\"?)",
    );
    check(
        "to = [\"host-0002\", \"host-0001\"]",
        "3: traffic.sequence.0.to: host 1 would send to itself (hint: choose another receiver, or \
         for a flow or a sequence set traffic.loopback to true)",
    );
    check(
        "to = [\"host-0002\"]\niterations = 0",
        "4: traffic.sequence.0.iterations: zero iterations send nothing (hint: write 1 or more, \
         or \"unlimited\")",
    );
    check(
        "to = [\"host-0002\"]\nmessage = \"0 B\"",
        "4: traffic.sequence.0.message: zero bytes (hint: write e.g. \"4 KiB\")",
    );
    check(
        "to = [\"host-0002\"]\nstart = \"2 us\"\nend = \"1 us\"",
        "5: traffic.sequence.0.end: the end (1 us) is not after the start (2 us) (hint: choose a \
         later end, or leave it out)",
    );
    check(
        "to = [\"host-0002\"]\nname = \"flow-1\"\n[[traffic.flow]]\nfrom = \"host-0001\"\nto = \
         \"host-0002\"",
        "4: traffic.sequence.0.name: the name \"flow-1\" is taken (hint: choose another name, or \
         leave it out)",
    );
    check(
        "",
        "1: traffic.sequence.0.to: missing key (hint: add it, e.g. to = [\"host-0000\"])",
    );
}

#[test]
fn sweeps() {
    check(
        "sweep.vary",
        "\"switch.bufer\" = [\"1 KiB\"]",
        "sweep.vary.\"switch.bufer\".0: switch.bufer: unknown key (hint: did you mean \"buffer\"?)",
    );
    check(
        "sweep.vary",
        "\"run.seed\" = []",
        "sweep.vary.\"run.seed\": a list without values gives no runs (hint: give at least one value, \
         or leave the key out)",
    );
    check(
        "sweep.vary",
        "\"run.duration\" = [\"1 ms\", 3]",
        "sweep.vary.\"run.duration\".1: run.duration: expected a time span as text with its unit, \
         e.g. \"150 us\", found the number 3 (hint: write it in quotes with its unit, e.g. \"150 \
         us\")",
    );
}

/// An override of the sweep is left out where a value is read, and other overrides are not.
#[test]
fn swept_values_are_read_with_the_other_overrides() {
    let vary = (
        "sweep.vary",
        "{ \"traffic.flow.0.bytes\" = [\"1 KiB\", 3] }",
    );
    let flow = (
        "traffic.flow",
        "[{ from = \"host-0000\", to = \"host-0001\" }]",
    );
    let base = "[fabric]\ngenerator = \"single-switch\"\nhosts = 2\n";
    let error = read_with(base, &[flow, vary]).unwrap_err();
    assert!(error.message().contains("expected a data size"), "{error}");
    let vary = (vary.0, "{ \"traffic.flow.0.bytes\" = [\"1 KiB\"] }");
    assert!(read_with(base, &[flow, vary]).is_ok());
    let error = read_with(base, &[vary]).unwrap_err();
    assert!(error.to_string().contains("traffic.flow"), "{error}");
}

#[test]
fn a_manager_of_marking_rates() {
    let dcms = |line: &str| {
        message(&format!(
            "[control]\nscheme = \"ib-cc\"\n[control.ib-cc.switch]\nmarking-rate = 128\n[control.dcms]\n{line}\n"
        ))
    };
    assert_eq!(
        dcms("interval = \"1 ms\""),
        "file.toml:5: control.dcms.congestion-threshold: T_C is 8000000 ticks, but an interval has \
         only 45454 (hint: thresholds are ticks per interval; scale them with the interval)"
    );
    assert_eq!(
        dcms("low-marking-rate = 128"),
        "file.toml:6: control.dcms.low-marking-rate: the low Marking_Rate is 128, it must be below \
         the default, which is 128 (hint: raise control.ib-cc.switch.marking-rate, e.g. to 128; the DCMS \
         restores it)"
    );
}
