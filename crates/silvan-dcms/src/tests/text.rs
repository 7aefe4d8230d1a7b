//! Logs and metrics as they are read.

use std::io::Write;

use silvan_subnet::log::{Format, Level, LineLog};
use silvan_subnet::metrics::Page;

use super::*;
use crate::log::Log;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn written(bench: &Bench, format: Format, least: Level) -> String {
    let lines = Lines::default();
    let mut log = LineLog::new(lines.clone(), format, least);
    for event in bench.events.lock().unwrap().iter() {
        log.take(event);
    }
    let bytes = lines.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

/// Oracle: the counters' rates of the fake subnet are in the line.
#[test]
fn decisions_are_logged_with_their_reasons() {
    let bench = Bench::congested(1, 8);
    bench.act(CONFIG);
    let text = written(&bench, Format::Text, Level::Info);
    let decision = text
        .lines()
        .find(|line| line.contains("victim-found"))
        .unwrap();
    assert!(
        decision.contains(" info: lower S2:23 (to D): victim-found"),
        "{decision}"
    );
    assert!(decision.contains("victim S1:15 (to S2:15)"), "{decision}");
    assert!(text.contains("lowered the Marking_Rate of S2:23 from 128 to 0"));
    assert!(!text.contains("swept"));
    let json = written(&bench, Format::Json, Level::Debug);
    let lines: Vec<serde_json::Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let decision = lines
        .iter()
        .find(|line| line["event"] == "decision")
        .unwrap();
    assert_eq!(decision["reason"], "victim-found");
    assert_eq!(decision["action"], "lower");
    assert_eq!(decision["level"], "info");
    assert_eq!(decision["port"]["switch"], "S2");
    assert_eq!(decision["port"]["port"], 23);
    assert_eq!(decision["victim"]["far-end"], "S2:15");
    let cong = decision["counters"]["xmit-time-cong"].as_u64().unwrap();
    let span = decision["counters"]["span-s"].as_f64().unwrap();
    assert!(
        (cong as f64 / span / 9e6 - 1.0).abs() < 0.01,
        "{cong} in {span} s"
    );
    assert!(
        lines
            .iter()
            .any(|line| line["event"] == "swept" && line["ports"] == 9)
    );
}

/// Oracle: names in the common exporters, and the fake subnet's counters.
#[test]
fn metrics_have_the_common_names() {
    let bench = Bench::congested(1, 20);
    bench.act(CONFIG);
    let text = bench.metrics.text();
    let s2 = bench.subnet.world().guid("S2");
    let labels = format!("{{guid=\"{s2}\",port=\"23\",switch=\"S2\"}}");
    let value = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let data = value(&format!(
        "infiniband_switch_port_transmit_data_bytes_total{labels}"
    ));
    assert!((1e9..30e9).contains(&data), "{data}");
    value(&format!(
        "infiniband_switch_port_transmit_wait_total{labels}"
    ));
    assert!(
        value(&format!(
            "infiniband_switch_port_transmit_time_congested_total{labels}"
        )) > 0.0
    );
    assert!(value("infiniband_switch_info{") == 1.0);
    assert_eq!(value(&format!("silvan_dcms_port_low{labels}")), 0.0);
    assert!(value("silvan_dcms_decisions_total{reason=\"victim-found\"}") >= 2.0);
    assert!(value("silvan_dcms_actions_total{action=\"lower\",result=\"done\"}") >= 2.0);
    assert_eq!(value("silvan_dcms_pending_restores "), 0.0);
    assert_eq!(value("silvan_dcms_acting "), 1.0);
    assert_eq!(value("silvan_dcms_ports "), 9.0);
    assert!(value("silvan_dcms_mads_sent_total ") > 100.0);
    assert!(value("silvan_dcms_sweep_duration_seconds ") > 0.0);
    assert!(text.ends_with("# EOF\n"));
}

/// Oracle: the text format's grammar: in a label's value a quote and a backslash are escaped.
#[test]
fn names_cannot_break_the_metrics() {
    let bench = Bench::new(1);
    bench.subnet.world().nodes[0].name = "a\"} 7\\\ninfiniband_fake 1".to_owned();
    bench.after(3, Fault::Stop);
    bench.act(CONFIG);
    let text = bench.metrics.text();
    assert!(!text.lines().any(|line| line.starts_with("infiniband_fake")));
    assert!(text.contains(r#"switch="a\"} 7\\"#), "{text}");
}
