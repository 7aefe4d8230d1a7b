//! Uniformly drawn destinations.

use silvan_core::{Sl, Time};
use silvan_workload::traffic::Traffic;

use crate::mock::{MockHost, environment, host, nodes, only_nodes};

const HOSTS: usize = 648;

/// Messages to each destination.
fn counts(mock: &MockHost) -> Vec<f64> {
    let mut counts = vec![0.0; HOSTS];
    for sent in mock.log.iter().filter(|sent| sent.offer.last) {
        counts[sent.offer.dst.index()] += 1.0;
    }
    counts
}

/// Chi-square of `counts` against equal ones, less its mean (the degrees of freedom), in standard
/// deviations; normal enough with hundreds of degrees of freedom.
fn deviations(counts: &[f64]) -> f64 {
    let expected = counts.iter().sum::<f64>() / counts.len() as f64;
    let chi_square: f64 = counts
        .iter()
        .map(|count| (count - expected).powi(2) / expected)
        .sum();
    let freedom = (counts.len() - 1) as f64;
    (chi_square - freedom) / (2.0 * freedom).sqrt()
}

#[test]
fn a_v_node_hits_all_others_equally_and_never_itself() {
    let spec = only_nodes(nodes(1.0, 0.0, 0.0, 0.0));
    let mut traffic = Traffic::new(&spec, &environment(HOSTS, 1)).unwrap();
    for own in [0, 300, 647] {
        let mut mock = MockHost::unthrottled(own);
        mock.send_packets(&mut traffic, 200_000);
        let mut counts = counts(&mock);
        assert_eq!(counts.remove(own), 0.0);
        let deviations = deviations(&counts);
        assert!(deviations.abs() < 4.0, "{deviations}");
    }
}

#[test]
fn throttled_destinations_do_not_skew_the_others() {
    let spec = only_nodes(nodes(1.0, 0.0, 0.0, 0.0));
    let mut traffic = Traffic::new(&spec, &environment(HOSTS, 1)).unwrap();
    let mut mock = MockHost::unthrottled(0);
    for index in 1..9 {
        mock.throttled.insert((host(index), Sl::ZERO), Time::MAX);
    }
    mock.send_packets(&mut traffic, 200_000);
    let counts = counts(&mock);
    assert!(counts[..9].iter().all(|&count| count == 0.0));
    let deviations = deviations(&counts[9..]);
    assert!(deviations.abs() < 4.0, "{deviations}");
}
