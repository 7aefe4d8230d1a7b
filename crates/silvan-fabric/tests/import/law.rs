//! Properties of any text as a file of InfiniBand's tools.
//!
//! `drawn.rs` draws changed files, and so do the fuzz targets `topology`, `routes` and `guids`.

use silvan_core::Length;
use silvan_fabric::import::{self, ImportError, ImportWarning, ImportedFabric};
use silvan_fabric::{Fabric, LinkKind, Speed, Width};

const LINK: LinkKind = LinkKind::new(Width::X12, Speed::Edr, Length::ZERO);

/// Returns the network that the samples describe.
pub fn sample() -> Fabric {
    let import = import::topology(include_str!("../samples/ibnetdiscover.txt"));
    let fabric = import.map(|import| import.build(LINK));
    fabric.expect("it is a topology").expect("it is a fabric")
}

/// A text is a fabric or one mistake, for every reader of topologies. A net file of the fabric has as many nodes and cables.
///
/// # Panics
/// If neither holds.
pub fn check_topology(text: &str) {
    for import in [
        import::topology(text),
        import::ports(text),
        import::database(text).map(|database| database.fabric),
    ] {
        match import {
            Ok(import) => check_fabric(text, &import),
            Err(error) => check_error(text, &error),
        }
    }
}

fn check_fabric(text: &str, import: &ImportedFabric) {
    check_warnings(text, &import.warnings);
    // The builder may refuse it: two nodes of one LID, no host.
    let Ok(fabric) = import.build(LINK) else {
        return;
    };
    let net = import::ibsim_net(&fabric);
    let again = import::topology(&net).unwrap_or_else(|error| panic!("{error}\n{net}"));
    let again = again
        .build(LINK)
        .unwrap_or_else(|error| panic!("{error}\n{net}"));
    assert_eq!(sizes(&again), sizes(&fabric), "{net}");
}

/// Switches, hosts and cables.
fn sizes(fabric: &Fabric) -> [usize; 3] {
    [
        fabric.switch_count(),
        fabric.host_count(),
        fabric.links.len(),
    ]
}

/// A text is forwarding tables of a fabric, or one mistake.
///
/// # Panics
/// If neither holds.
pub fn check_routes(text: &str, fabric: &Fabric) {
    match import::routes(text, fabric) {
        Ok(routes) => assert!(routes.levels.highest() < 16),
        Err(error) => check_error(text, &error),
    }
}

/// A text is a list of switches or of hosts, each once, or one mistake.
///
/// # Panics
/// If neither holds.
pub fn check_guids(text: &str, fabric: &Fabric) {
    match import::root_switches(text, fabric) {
        Ok((mut switches, warnings)) => {
            check_warnings(text, &warnings);
            let listed = switches.len();
            switches.sort();
            switches.dedup();
            assert_eq!(switches.len(), listed);
        }
        Err(error) => check_error(text, &error),
    }
    match import::compute_hosts(text, fabric) {
        Ok((mut hosts, warnings)) => {
            check_warnings(text, &warnings);
            let listed = hosts.len();
            hosts.sort();
            hosts.dedup();
            assert_eq!(hosts.len(), listed);
        }
        Err(error) => check_error(text, &error),
    }
}

fn check_error(text: &str, error: &ImportError) {
    let lines = text.lines().count().max(1);
    assert!(
        error.line().is_none_or(|line| (1..=lines).contains(&line)),
        "{error}"
    );
    assert!(!error.message().is_empty() && !error.hint().is_empty());
}

fn check_warnings(text: &str, warnings: &[ImportWarning]) {
    let lines = text.lines().count();
    for warning in warnings {
        assert!((1..=lines).contains(&warning.line), "{warning:?}");
    }
}
