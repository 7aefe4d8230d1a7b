//! Estimates of runs before they start.

use std::ops::ControlFlow;

use silvan_instances::Fastest;
use silvan_scenario::Scenario;
use silvan_sim::run;

/// Oracle: the run itself. Saturated receivers, random destinations, flows of a list, closed loops and programs.
#[test]
fn packet_hops_are_within_a_factor_of_two() {
    let tree = "[fabric]\ngenerator = \"k-ary-n-tree\"\nk = 4\nn = 2\n[packet]\nmtu = \"2 KiB\"\n";
    let until = |time: &str| format!("[run]\nduration = \"{time}\"\n");
    for traffic in [
        format!(
            "[[traffic.incast]]\nto = \"host-0000\"\n{}",
            until("200 us")
        ),
        format!("[[traffic.uniform]]\nload = 0.5\n{}", until("200 us")),
        format!(
            "[[traffic.uniform]]\nload = 0.3\nmessage = \"64 B\"\n{}",
            until("50 us")
        ),
        format!(
            "[[traffic.permutation]]\npattern = \"shift\"\nshift = 5\n{}",
            until("200 us")
        ),
        format!(
            "[[traffic.flow]]\nfrom = \"host-0000\"\nto = \"host-0009\"\nbytes = \"40 KiB\"\n{}",
            until("10 ms")
        ),
        format!(
            "[[traffic.flow-file]]\nlist = \"\"\"\nfrom,to,bytes,start_us\n0,9,50000,3\n7,2,100000,5\n3,4,900000,900\n\"\"\"\n{}",
            until("500 us")
        ),
        format!(
            "[[traffic.flows]]\nsizes = {{ fixed = \"30 kB\" }}\nload = 0.4\n{}",
            until("500 us")
        ),
        format!(
            "[[traffic.flows]]\nsizes = {{ fixed = \"30 kB\" }}\noutstanding = 2\n{}",
            until("500 us")
        ),
        format!(
            "[[traffic.sequence]]\nfrom = \"host-0000\"\nto = [\"host-0009\", \"host-0003\"]\niterations = 5\n{}",
            until("2 ms")
        ),
        format!(
            "[[traffic.program]]\nkind = \"allreduce\"\nbytes = \"64 KiB\"\niterations = 3\n{}",
            until("100 ms")
        ),
    ] {
        let scenario =
            Scenario::from_toml(&format!("{tree}{traffic}"), "estimate.toml", &[]).unwrap();
        let estimate = scenario.estimate(1).unwrap();
        let output = run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap();
        let ratio = estimate.packet_hops / output.summary.packet_hops as f64;
        assert!((0.5..=2.0).contains(&ratio), "{ratio}: {traffic}");
        assert!(
            estimate.memory_bytes > output.summary.memory_bytes as f64,
            "{traffic}"
        );
    }
}
