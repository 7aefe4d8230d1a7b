//! Congestion control that cannot be: each mistake with its place and its message.

use silvan_cc::schemes::{Bounds, SchemeName};
use silvan_core::Span;
use silvan_scenario::Scenario;

use crate::bad_values::check;
use crate::message;

#[test]
fn switch_control() {
    check(
        "control.ib-cc.switch",
        "threshold = 16",
        "control.ib-cc.switch.threshold: Threshold is 16, it must be 0 to 15 (hint: 15 marks earliest, \
         0 never)",
    );
    check(
        "control.ib-cc.switch",
        "threshold-lowest = \"0 B\"",
        "control.ib-cc.switch.threshold-lowest: threshold weight 15 is 0 bytes, write at least \
         1 (hint: write e.g. \"6 KiB\")",
    );
    check(
        "control.ib-cc.switch",
        "threshold-table = [\"1 kB\"]",
        "control.ib-cc.switch.threshold-table: 1 entries, one for each of the weights 1 to 15 is needed \
         (hint: list 15 sizes that fall)",
    );
    let sizes = (1..=15)
        .rev()
        .map(|kb| format!("\"{kb} kB\""))
        .collect::<Vec<_>>();
    check(
        "control.ib-cc.switch",
        &format!(
            "threshold-highest = \"64 KiB\"\nthreshold-table = [{}]",
            sizes.join(", ")
        ),
        "control.ib-cc.switch.threshold-highest: threshold-table has the bytes of all weights already \
         (hint: leave out one of the two)",
    );
    check(
        "control.ib-cc.switch",
        "credit-mask = \"host\"",
        "control.ib-cc.switch.credit-mask: unknown value \"host\" (hint: did you mean \"hosts\"?)",
    );
    check(
        "control.ib-cc.switch",
        "credit-threshold = 16",
        "control.ib-cc.switch.credit-threshold: Threshold is 16, it must be 0 to 15 (hint: 15 marks \
         earliest, 0 never)",
    );
    for delay in ["-0.5", "16383.6", "nan"] {
        let shown = delay.replace("nan", "NaN");
        check(
            "control.ib-cc.switch",
            &format!("credit-return-delay = {delay}"),
            &format!(
                "control.ib-cc.switch.credit-return-delay: a delay of {shown} packet times, it must be 0 \
                 to 16383 (hint: write e.g. 10, or 0 for no delay)"
            ),
        );
    }
}

#[test]
fn adapter_control() {
    check(
        "control.ib-cc.adapter",
        "ccti-min = 200",
        "control.ib-cc.adapter.ccti-min: CCTI_Min is 200, it must not be above CCTI_Limit, which is 127 \
         (hint: 0 is usual)",
    );
    check(
        "control.ib-cc.adapter",
        "cct = { shape = \"given\", entries = [[0, 0], [0, 16384]] }",
        "control.ib-cc.adapter.cct.entries.1: CCT_Multiplier is 16384, it must be 0 to 16383 (hint: \
         write a whole number from 0 to 16383)",
    );
    check(
        "control.ib-cc.adapter",
        "cct = { shape = \"given\", entries = [[0, 0], [4, 1]] }",
        "control.ib-cc.adapter.cct.entries.1: CCT_Shift is 4, it must be 0 to 3 (hint: write a whole \
         number from 0 to 3)",
    );
    check(
        "control.ib-cc.adapter",
        "cct = { shape = \"linear\", slope = 1e6 }",
        "control.ib-cc.adapter.cct.slope: entry 1 of the congestion control table is 1000000 packet \
         times, it must be 0 to 16383 (hint: lower the slope, the ratio or \
         control.ib-cc.adapter.ccti-limit, and keep them positive)",
    );
    check(
        "control.ib-cc.adapter",
        "cct = { shape = \"geometric\", slope = 1 }",
        "control.ib-cc.adapter.cct.slope: geometric has no such parameter (hint: geometric needs first, \
         ratio)",
    );
    assert_eq!(
        message("[control.ib-cc.adapter]\ncct = { shape = \"given\", entries = [[0, 0]] }"),
        "file.toml:1: control.ib-cc.adapter.ccti-limit: CCTI_Limit is 127, but the congestion control \
         table has 1 entries (hint: set control.ib-cc.adapter.ccti-limit to 0 at most, or add entries)"
    );
    check(
        "control.feedback",
        "bytes = \"5 KiB\"\npath = \"in-band\"",
        "control.feedback.bytes: a notification of 5120 bytes on the wire; it must be between 1 \
         byte and a data packet (hint: 42 B are usual, the size of a CNP)",
    );
    check(
        "control.feedback",
        "charge = \"5 KiB\"",
        "control.feedback.charge: a charge of 5120 bytes per CNP; it must be at most 4096 (hint: 64 B is \
         the default; 0 turns the charge off)",
    );
}

#[test]
fn ports_and_changes() {
    check(
        "[control.ib-cc.port]",
        "switch = \"switch-01\"\nthreshold = 3",
        "control.ib-cc.port.0.switch: there is no switch named \"switch-01\" (hint: did you mean \
         \"switch-00\"?)",
    );
    check(
        "[control.ib-cc.port]",
        "switch = \"host-0001\"\nthreshold = 3",
        "control.ib-cc.port.0.switch: \"host-0001\" is a host, not a switch (hint: give the name of a \
         switch)",
    );
    check(
        "[control.ib-cc.change]",
        "threshold = 16\nswitch = \"switch-00\"\nat = \"1 us\"",
        "control.ib-cc.change.0.threshold: Threshold is 16, it must be 0 to 15 (hint: 15 marks \
         earliest, 0 never)",
    );
    assert_eq!(
        message("[[control.ib-cc.change]]\nport = 3\nat = \"1 us\"\nthreshold = 3"),
        "file.toml:1: control.ib-cc.change.0.switch: missing key (hint: add the switch that has this \
         port)"
    );
    check(
        "[control.ib-cc.change]",
        "sl = 3\nat = \"1 us\"\nthreshold = 3",
        "control.ib-cc.change.0.sl: there is no setting here that it could apply to (hint: add \
         a setting of adapters, e.g. ccti-timer, or leave it out)",
    );
    check(
        "[control.ib-cc.change]",
        "switch = \"switch-0\"\nat = \"1 us\"\nvictim-mask = true",
        "control.ib-cc.change.0.switch: there is no switch named \"switch-0\" (hint: did you mean \
         \"switch-00\"?)",
    );
    check(
        "[control.ib-cc.change]",
        "port = 9\nswitch = \"switch-00\"\nat = \"1 us\"\nmarking-rate = 1",
        "control.ib-cc.change.0.port: switch \"switch-00\" has ports 1 to 8, not 9 (hint: choose one of \
         these ports)",
    );
    check(
        "[control.ib-cc.change]",
        "switch = \"switch-00\"\nat = \"1 us\"\nccti-timer = 3",
        "control.ib-cc.change.0.switch: there is no setting here that it could apply to (hint: add a \
         setting of ports, e.g. threshold, or leave it out)",
    );
    check(
        "[control.ib-cc.change]",
        "credit-return-delay = 20_000\nswitch = \"switch-00\"\nat = \"1 us\"",
        "control.ib-cc.change.0.credit-return-delay: a delay of 20000 packet times, it must be 0 to \
         16383 (hint: write e.g. 10, or 0 for no delay)",
    );
    check(
        "[control.ib-cc.port]",
        "credit-threshold = 20\nswitch = \"switch-00\"",
        "control.ib-cc.port.0.credit-threshold: Threshold is 20, it must be 0 to 15 (hint: 15 marks \
         earliest, 0 never)",
    );
    assert_eq!(
        message("[[control.ib-cc.port]]\nswitch = \"switch-00\""),
        "file.toml:1: control.ib-cc.port.0: the entry sets nothing (hint: give threshold, packet-size, \
         marking-rate, credit-threshold, credit-return-delay, victim-mask or credit-mask)"
    );
    assert_eq!(
        message("[[control.ib-cc.change]]\nat = \"1 us\"\nswitch = \"switch-00\""),
        "file.toml:1: control.ib-cc.change.0: the entry sets nothing (hint: give threshold, packet-size, \
         marking-rate, credit-threshold, credit-return-delay, victim-mask or credit-mask; or \
         ccti-increase, ccti-min, ccti-timer or trigger-threshold)"
    );
    assert_eq!(
        message("[[control.ib-cc.port]]\nswitch = \"switch-00\"\nport = 0\nthreshold = 1"),
        "file.toml:3: control.ib-cc.port.0.port: switch \"switch-00\" has ports 1 to 8, not 0 (hint: \
         choose one of these ports)"
    );
}

#[test]
fn proactive_throttling() {
    let place = |key: &str, rest: &str| format!("control.pft.{key}: {rest}");
    for (line, key, rest) in [
        (
            "m = 40",
            "m",
            "a shift by 40 bits; it must be at most 31 (hint: write e.g. 18)",
        ),
        (
            "n = 32",
            "n",
            "a shift by 32 bits; it must be at most 31 (hint: write e.g. 8)",
        ),
        (
            "random-bits = 33",
            "random-bits",
            "a random number of 33 bits; it must have 1 to 32 (hint: write 32)",
        ),
        (
            "enter-count = 0",
            "enter-count",
            "0 cycles in a window of 1024; it must be at least 1 and no more than the window \
             (hint: write a number from 1 to enter-window)",
        ),
        (
            "escape-count = 1025",
            "escape-count",
            "1025 cycles in a window of 1024; it must be at least 1 and no more than the window \
             (hint: write a number from 1 to escape-window)",
        ),
        (
            "flit = \"0 B\"",
            "flit",
            "a flit takes no time on the link (hint: write e.g. \"16 B\")",
        ),
        (
            "credit = \"0 B\"",
            "credit",
            "credit size is 0 (hint: write e.g. \"64 B\")",
        ),
        (
            "credit = \"4 GiB\"",
            "credit",
            "4 GiB is not below 4 GiB (hint: write e.g. \"64 B\")",
        ),
    ] {
        check("control.pft", line, &place(key, rest));
    }
    check(
        "control",
        "pft = { threshold = \"fixed\" }",
        "control.pft.escape: left below 672 used credits but entered only above 592 (hint: lower it \
         to enter or less, or write threshold = \"average\")",
    );
}

/// Oracle: each kind of bounds as a message by hand.
#[test]
fn a_bound_is_refused_with_its_source_and_a_value_that_is_possible() {
    let cases = [
        (
            "hpcc",
            "eta = 1.5",
            "eta: 1.5 is not above 0 and at most 1 (eta of Li et al. 2019 is the part of a link that windows aim at) \
             (hint: write e.g. 0.95)",
        ),
        (
            "hpcc",
            "additive-increase = \"0 B\"",
            "additive-increase: 0 B is nothing (W_AI of Li et al. 2019 is the step by which windows grow) \
             (hint: write e.g. \"80 B\")",
        ),
        (
            "hpcc",
            "base-rtt = \"1 ps\"",
            "base-rtt: 1 ps is less than a nanosecond (T of Li et al. 2019 is the longest round trip without queues) \
             (hint: write e.g. \"13 us\")",
        ),
        (
            "timely",
            "hyper-after = 0",
            "hyper-after: 0 is not above 0 and at most 1000000 (N of Mittal et al. 2015 is a number of round trips in a row) \
             (hint: write e.g. 5)",
        ),
        (
            "dcqcn",
            "k-max = \"5 kB\"",
            "k-max: 5 kB is not above k-min, 5 kB (Zhu et al. 2015 mark from Kmin on, and all packets from Kmax on) \
             (hint: raise it, or lower k-min)",
        ),
        (
            "dcqcn",
            "g = 0",
            "g: 0 is not above 0 and at most 1 (g of Zhu et al. 2015 is the weight of a notification) (hint: write e.g. 0.01)",
        ),
        (
            "swift",
            "max-window = 1e7",
            "max-window: 10000000 is not above 0.001 and at most 1000000 (the windows of Kumar et al. 2020 go from min_cwnd \
             to max_cwnd) (hint: write e.g. 256)",
        ),
        (
            "reps",
            "entropies = 70000",
            "entropies: 70000 is not 1 to 65536 (the field of the header that switches hash has 16 bits) \
             (hint: write e.g. 65536)",
        ),
        (
            "srp",
            "threshold = \"2 GiB\"",
            "threshold: 2 GiB is more than 2147483647 B (hint: write e.g. \"32 KiB\")",
        ),
        (
            "pair-backpressure",
            "least-window = 0",
            "least-window: 0 packets would stop a pair (hint: write e.g. 2)",
        ),
        (
            "nscc",
            "target-delay = \"1 ps\"",
            "target-delay: 1 ps is less than a nanosecond (hint: write e.g. \"12 us\")",
        ),
        (
            "vl-mapping",
            "group-hosts = 0",
            "group-hosts: a group of 0 hosts is none (hint: write e.g. 36)",
        ),
    ];
    for (scheme, line, message) in cases {
        let table = format!("control.{scheme}");
        check(&table, line, &format!("{table}.{message}"));
    }
}

/// The message about a scenario with these lines in the table of a scheme; empty if there is nothing wrong.
fn message_about(scheme: &str, lines: &str) -> String {
    // Only one mapping has groups of hosts.
    let context = match scheme {
        "vl-mapping" => "mapping = \"flow2sl\"\n",
        _ => "",
    };
    let text = format!("[control.{scheme}]\n{context}{lines}");
    let scenario = Scenario::from_toml(&text, "file.toml", &[]);
    scenario.map_or_else(|error| error.to_string(), |_| String::new())
}

#[test]
fn every_parameter_is_refused_outside_of_its_declared_bounds_alone() {
    let parameters = SchemeName::ALL
        .iter()
        .filter(|scheme| scheme.parts().len() == 1)
        .flat_map(|scheme| scheme.parameters());
    let mut count = 0;
    for (table, parameter) in parameters {
        let key = parameter.key;
        let place = format!("control.{table}.{key}: ");
        // Bounds are not checked for values that the type refuses.
        let about = |value: &String| {
            let found = message_about(table, &format!("{key} = {value}"));
            (!found.contains(": expected ")).then(|| (value.clone(), found))
        };
        let outside = parameter.bounds.outside();
        let refused: Vec<_> = outside.iter().filter_map(about).collect();
        assert_eq!(refused.is_empty(), outside.is_empty(), "{place}");
        for (value, found) in &refused {
            assert!(found.contains(&place), "{value}: {found}");
            let source = parameter
                .source
                .map(|source| format!(" ({source}) (hint: "));
            let end = source.as_deref().unwrap_or(" (hint: ");
            assert!(found.contains(end), "{value}: {found}");
        }
        let ends = parameter.bounds.ends();
        let accepted: Vec<_> = ends.iter().filter_map(about).collect();
        assert_eq!(accepted.is_empty(), ends.is_empty(), "{place}");
        for (value, found) in &accepted {
            assert!(!found.contains(&place), "{value}: {found}");
        }
        count += usize::from(!refused.is_empty());
        if let Bounds::AboveKey(other, _) = parameter.bounds {
            let is_refused = |value: &&&str| {
                let found = message_about(table, &format!("{other} = {value}\n{key} = {value}"));
                found.contains(&place) && found.contains(&format!(" is not above {other}, "))
            };
            // Exactly one of the values has the type of both keys.
            let values = ["\"7 us\"", "\"7 kB\"", "0.7"];
            assert_eq!(values.iter().filter(is_refused).count(), 1, "{place}");
            count += 1;
        }
    }
    // A list without parameters would pass the loop.
    assert!(count > 40, "{count}");
}

#[test]
fn names_that_are_none_are_refused() {
    check(
        "control.dcqcn",
        "kmin = \"5 kB\"",
        "control.dcqcn.kmin: unknown key (hint: did you mean \"k-min\"?)",
    );
    check(
        "control",
        "scheme = \"dcqn\"",
        "control.scheme: unknown value \"dcqn\" (hint: did you mean \"dcqcn\"?)",
    );
}

#[test]
fn what_a_scheme_wants_of_the_feedback_is_a_default_only() {
    let interval = |text: &str| {
        let scenario = Scenario::from_toml(text, "file.toml", &[]).unwrap();
        scenario.engine_config().feedback.coalesce()
    };
    assert_eq!(interval("[control]\nscheme = \"ib-cc\""), None);
    let dcqcn = "[control]\nscheme = \"dcqcn\"\n";
    assert_eq!(interval(dcqcn), Some(Span::from_us(50)));
    let given = format!("{dcqcn}feedback = {{ coalesce = \"unlimited\" }}");
    assert_eq!(interval(&given), None);
}

#[test]
fn explicit_notification() {
    check(
        "control.ecn",
        "decrease-factor = 1",
        "control.ecn.decrease-factor: a decrease factor of 1; it must be above 1 and at most 256 \
         (m of santos2003 is above 1) (hint: write e.g. 2)",
    );
    check(
        "control.ecn",
        "min-rate = 0",
        "control.ecn.min-rate: a smallest rate of 0 of the link; it must be above 0 and below 1 \
         (the rates of santos2003 go from Rmin to Rmax, that of the link) (hint: 1/256 is 0.00390625)",
    );
    check(
        "control.ecn",
        "initial-rate = 1.5",
        "control.ecn.initial-rate: an initial rate of 1.5 of the link; it must be 0.00390625 to 1 \
         (the rates of santos2003 go from Rmin to Rmax, that of the link) (hint: write 1 for the rate of the link)",
    );
    check(
        "control.ecn",
        "window = 0",
        "control.ecn.window: a window of 0 to 0 packets; it must be at least 1, the larger bound \
         last (hint: write e.g. 1)",
    );
    check(
        "control.ecn",
        "window-max = 0",
        "control.ecn.window-max: a window of 1 to 0 packets; it must be at least 1, the larger \
         bound last (hint: leave it out for a window that stays)",
    );
    check(
        "control.ecn",
        "increase-table = [[1, 0]]",
        "control.ecn.increase-table: this response has no such parameter (hint: this response has \
         no parameters)",
    );
    check(
        "control",
        "ecn = { response = \"given\", increase-table = [[1, 0]], decrease-table = [0] }",
        "control.ecn.increase-table: increase has 1 entries, one for each of the 256 inter-packet \
         delays is needed (hint: silvan.Response(...).tables() in Python computes such tables)",
    );
    assert_eq!(
        message("[control]\nscheme = \"ecn\"\n[control.feedback]\ncarrier = \"cnp\""),
        "file.toml:4: control.feedback.carrier: the scheme ecn counts the packets in progress by \
         their acknowledgements (hint: write \"ack-per-packet\", or leave it out)"
    );
}
