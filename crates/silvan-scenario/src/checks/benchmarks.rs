use silvan_fabric::Fabric;
use silvan_workload::programs::Placement;
use silvan_workload::programs::gpcnet::{Gpcnet, Test};
use silvan_workload::programs::hpcc::Hpcc;
use silvan_workload::programs::section::{GpcnetSection, HpccSection};

use super::at;
use super::programs::{hosts, size, span};
use crate::{KeyPath, ScenarioError};

const MOST_ITERATIONS: u32 = 1 << 20;

const MOST_HPCC_RANKS: u32 = 256;

pub(super) fn gpcnet_of(section: &GpcnetSection, fabric: &Fabric) -> Result<Gpcnet, ScenarioError> {
    let key = at("traffic.gpcnet");
    let counts = [
        ("rings", section.rings),
        ("latency-iterations", section.latency_iterations),
        ("bandwidth-iterations", section.bandwidth_iterations),
        ("allreduce-iterations", section.allreduce_iterations),
        ("alltoall-iterations", section.alltoall_iterations),
    ];
    if let Some((name, _)) = counts
        .iter()
        .find(|(_, count)| *count == 0 || *count > MOST_ITERATIONS)
    {
        let error = ScenarioError::new(key.key(name), "this is none, or too many");
        return Err(error.with_hint("write e.g. 30"));
    }
    if !(0.0..=1.0).contains(&section.congestor_share) {
        let message = format!("{} is not between 0 and 1", section.congestor_share);
        let error = ScenarioError::new(key.key("congestor-share"), message);
        return Err(error.with_hint("0.8 is the benchmark's own"));
    }
    span(Some(section.settle), &key.key("settle"))?;
    check_tests(&section.tests, &key.key("tests"))?;
    for (name, bytes) in [
        ("bandwidth-bytes", section.bandwidth_bytes),
        ("alltoall-bytes", section.alltoall_bytes),
        ("congestor-bytes", section.congestor_bytes),
    ] {
        size(bytes, &key.key(name))?;
    }
    let gpcnet = Gpcnet {
        hosts: hosts(fabric, &section.hosts, section.ranks_per_host, &key)?,
        keys: section.clone(),
    };
    if !gpcnet.has_hosts_enough() {
        let hosts = gpcnet.hosts.len();
        let message =
            format!("{hosts} hosts are too few for this share: 2 must measure, 8 congest");
        let error = ScenarioError::new(key.key("hosts"), message);
        return Err(error.with_hint("take at least 10 hosts, and a share of 0.8"));
    }
    Ok(gpcnet)
}

fn check_tests(tests: &[Test], key: &KeyPath) -> Result<(), ScenarioError> {
    for (index, test) in tests.iter().enumerate() {
        if tests[..index].contains(test) {
            let message = format!("{:?} is there twice", test.label());
            let error = ScenarioError::new(key.index(index), message);
            return Err(error.with_hint("leave it out; more iterations measure it more often"));
        }
    }
    if tests.is_empty() {
        let error = ScenarioError::new(key.clone(), "there is no test");
        return Err(error.with_hint("name one, or leave the key out"));
    }
    Ok(())
}

pub(super) fn hpcc_of(section: &HpccSection, fabric: &Fabric) -> Result<Hpcc, ScenarioError> {
    let key = at("traffic.hpcc");
    let counts = [
        ("latency-rings", section.latency_rings),
        ("bandwidth-rings", section.bandwidth_rings),
        ("ptrans-rows", section.ptrans_rows),
        ("access-rounds", section.access_rounds),
        ("hpl-rows", section.hpl_rows),
    ];
    if let Some((name, _)) = counts.iter().find(|(_, count)| *count > MOST_ITERATIONS) {
        let error = ScenarioError::new(key.key(name), "this is too many");
        return Err(error.with_hint("write e.g. 30"));
    }
    for (name, time) in [
        ("settle", section.settle),
        ("ptrans-compute", section.ptrans_compute),
        ("access-compute", section.access_compute),
        ("fft-compute", section.fft_compute),
        ("hpl-compute", section.hpl_compute),
    ] {
        span(Some(time), &key.key(name))?;
    }
    size(section.bandwidth_bytes, &key.key("bandwidth-bytes"))?;
    if section.hpl_block == 0 {
        let error = ScenarioError::new(key.key("hpl-block"), "a panel has no columns");
        return Err(error.with_hint("80 is that of the benchmark's own input file"));
    }
    if !matches!(section.placement, Placement::Block | Placement::Cyclic) {
        let message = "the ranks of HPCC are dealt to its hosts in blocks or in turn";
        let error = ScenarioError::new(key.key("placement"), message);
        return Err(
            error.with_hint("write \"block\" or \"cyclic\", and list the hosts in another order")
        );
    }
    let hpcc = Hpcc {
        hosts: hosts(fabric, &section.hosts, section.ranks_per_host, &key)?,
        keys: section.clone(),
    };
    if !(2..=MOST_HPCC_RANKS).contains(&hpcc.ranks()) {
        let ranks = hpcc.ranks();
        let message = format!("{ranks} ranks are not between 2 and {MOST_HPCC_RANKS}");
        let error = ScenarioError::new(key.key("ranks-per-host"), message);
        return Err(error.with_hint("take fewer hosts, or fewer ranks per host"));
    }
    Ok(hpcc)
}
