//! Properties of any text as a list of flows.

use silvan_workload::traffic::{FlowFormat, read_flows};

/// A text is a list of possible flows, or has a line at fault.
///
/// # Panics
/// If neither holds.
pub fn check(text: &str) {
    for format in [FlowFormat::Csv, FlowFormat::Ns3] {
        match read_flows(text, format) {
            Ok(flows) => {
                assert!(flows.iter().all(|flow| (1..=1 << 40).contains(&flow.bytes)));
                assert!(flows.len() < text.lines().count().max(1));
            }
            Err(error) => {
                assert!((1..=text.lines().count().max(1)).contains(&error.line));
                assert!(!error.hint.is_empty());
            }
        }
    }
}
