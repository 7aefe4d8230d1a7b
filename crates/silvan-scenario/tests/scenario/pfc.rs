//! Links with PFC: what follows from the scenario, and what it refuses.

use silvan_scenario::Scenario;

use crate::{message, read};

/// A scenario with PFC and more lines, which begin in `[link]`.
fn text(more: &str) -> String {
    format!("name = \"x\"\n\n[link]\nflow-control = \"pfc\"\n{more}\n")
}

fn pfc(more: &str) -> Scenario {
    read(&text(more)).unwrap()
}

/// Checks the message of a scenario with PFC whose fault is in this line, the first of the file being line 1.
fn check(more: &str, line: usize, expected: &str) {
    assert_eq!(
        message(&text(more)),
        format!("file.toml:{line}: {expected}")
    );
}

/// Ethernet adds preamble 8, header 14, frame check sequence 4 and gap 12 to IPv4 20, UDP 8, BTH 12 and ICRC 4. A CNP
/// has 16 bytes of payload.
#[test]
fn headers_are_those_of_roce_unless_they_are_given() {
    let sizes = |scenario: &Scenario| {
        let config = scenario.engine_config();
        (
            config.packet.header.as_u64(),
            scenario.file().control.feedback.bytes.as_u64(),
        )
    };
    assert_eq!(sizes(&pfc("")), (82, 98));
    let given = "[packet]\nheader = \"78 B\"\n[control]\nscheme = \"dcqcn\"\nfeedback = { bytes = \"90 B\" }";
    assert_eq!(sizes(&pfc(given)), (78, 90));
    let credits = read("name = \"x\"\n").unwrap();
    assert_eq!(sizes(&credits), (26, 42));
    assert_eq!(credits.engine_config().pfc, None);
}

/// 100 Gbit/s are 12.5 B/ns, 20 m are 100 ns, the largest frame is 2048 + 82 B. A frame and a pause frame of 84 B take
/// 177.12 ns. With twice the cable and 614.4 ns to respond that is 991.52 ns, or 12,394 B, plus a frame.
#[test]
fn headroom_follows_from_the_cable() {
    let cable = "rate = \"100 Gbit/s\"\nlength = \"20 m\"";
    let packet = "[packet]\nmtu = \"2 KiB\"";
    let scenario = pfc(&format!("{cable}\n{packet}"));
    let link = scenario.fabric().links.iter().next().unwrap();
    let limits = scenario.engine_config().pfc_limits(link).unwrap().unwrap();
    assert_eq!(limits.headroom.as_u64(), 12_394 + 2_130);
    let same = pfc(&format!(
        "{cable}\npfc = {{ headroom = \"14524 B\" }}\n{packet}"
    ));
    let link = same.fabric().links.iter().next().unwrap();
    assert_eq!(
        same.engine_config().pfc_limits(link).unwrap().unwrap(),
        limits
    );
}

#[test]
fn a_scenario_with_pfc_is_read_from_its_own_text() {
    let scenario =
        pfc("pfc = { xoff = \"20 kB\", xon = \"16 kB\", headroom = \"9 kB\", buffer = \"40 kB\" }");
    let again = read(&scenario.to_toml()).unwrap();
    assert_eq!(again.to_toml(), scenario.to_toml());
    assert_eq!(again.engine_config(), scenario.engine_config());
    assert!(again.warnings().is_empty(), "{:?}", again.warnings());
}

#[test]
fn values_that_only_credits_have_are_warned_of() {
    let warned = |more: &str| pfc(more).warnings().to_vec();
    assert!(warned("").is_empty());
    let one = warned("[switch]\nbuffer = \"32 KiB\"");
    assert_eq!(
        one,
        [
            "switch.buffer has no effect: with link.flow-control = \"pfc\" link.pfc states buffers and delays"
        ]
    );
    let all = warned(
        "[switch]\nbuffer = \"32 KiB\"\ncredit-delay = \"1 ns\"\n[host]\nreceive-buffer = \"8 KiB\"\ncredit-delay = \"1 ns\"",
    );
    assert!(
        all[0].starts_with("switch.buffer, switch.credit-delay, host.receive-buffer, host.credit-delay have no effect"),
        "{all:?}"
    );
}

/// A value without effect is not refused, however small.
#[test]
fn a_small_receive_buffer_has_no_effect() {
    let small = pfc("[host]\nreceive-buffer = \"1 KiB\"");
    let warnings = small.warnings();
    assert!(
        warnings[0].starts_with("host.receive-buffer has no effect"),
        "{warnings:?}"
    );
    assert_eq!(small.engine_config(), pfc("").engine_config());
}

#[test]
fn limits_that_do_not_fit_are_refused() {
    check(
        "pfc = { xon = \"9 kB\", xoff = \"8 kB\" }",
        5,
        "link.pfc.xon: xon of 9000 bytes is above xoff, 8000 bytes (hint: make it at most 8000 B, or leave it out)",
    );
    check(
        "pfc = { xoff = \"8 kB\", headroom = \"9 kB\", buffer = \"16 kB\" }",
        5,
        "link.pfc.buffer: a PFC buffer of 16000 bytes; xoff (8000) and headroom (9000) take 17000 bytes (hint: make it at \
         least 17000 B, or leave it out)",
    );
    check(
        "pfc = { pause-frame = \"0 B\" }",
        5,
        "link.pfc.pause-frame: pause frame of 0 bytes; it must be between 1 and 65536 (hint: 84 B are usual for a pause frame; \
         leave the largest frame out)",
    );
    check(
        "pfc = { response = \"2 s\" }",
        5,
        "link.pfc.response: PFC response of 2 s is longer than 1 s (hint: write e.g. \"100 ns\")",
    );
    check(
        "[vl]\ndata-vls = 9",
        6,
        "vl.data-vls: 9 data virtual lanes; PFC has 8 priorities (hint: use at most 8 virtual lanes, 1 fewer)",
    );
}

#[test]
fn schemes_that_need_credits_are_refused() {
    for scheme in ["pft", "ib-cc+pft"] {
        check(
            &format!("[control]\nscheme = \"{scheme}\""),
            6,
            &format!(
                "control.scheme: {scheme} reads the credits of a host, and links with PFC have none (hint: choose another \
                 scheme, e.g. \"dcqcn\", or set link.flow-control to \"credits\")"
            ),
        );
    }
    check(
        "[control]\nscheme = \"ib-cc\"\nib-cc = { switch = { credit-mask = \"all\" } }",
        7,
        "control.ib-cc.switch.credit-mask: a switch cannot return credits late, because links with PFC have none (hint: leave \
         credit-mask, credit-threshold and credit-return-delay out, also for single ports)",
    );
}

#[test]
fn thresholds_of_pfc_need_pfc() {
    assert_eq!(
        message("name = \"x\"\n\n[link.pfc]\nxoff = \"8 kB\"\n"),
        "file.toml:3: link.pfc: links have credits, so these thresholds have no effect (hint: set link.flow-control to \"pfc\", \
         or leave the section out)"
    );
}
