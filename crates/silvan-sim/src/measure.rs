use silvan_core::{HostId, PortCounters, PortId, Time};
use silvan_fabric::Fabric;

use super::latencies::LatencySeries;
use super::limits::FlowLimits;
use super::tables::{PortSeries, Series};
use silvan_model::{ClassTotals, HostCounters, Simulation};
use silvan_scenario::Scenario;

pub(super) struct Measurement<'a> {
    pub scenario: &'a Scenario,
    times: Vec<Time>,
    pub ports: Vec<PortId>,
    pub hosts_before: Vec<HostCounters>,
    pub ports_before: Vec<PortCounters>,
    pub classes_before: Vec<ClassTotals>,
    pub series: Series,
    pub port_series: Option<PortSeries>,
    pub class_series: Option<Series>,
    pub flow_limits: Option<FlowLimits>,
    pub latency_series: Option<LatencySeries>,
}

impl<'a> Measurement<'a> {
    pub fn new(scenario: &'a Scenario, engine: &dyn Simulation) -> Self {
        let fabric: &Fabric = scenario.fabric();
        let cabled = |id: &PortId| fabric.ports[*id].link.is_some();
        let ports: Vec<PortId> = fabric.ports.ids().filter(cabled).collect();
        let file = scenario.file();
        let samples = scenario.sampling().count(scenario.duration()) as usize;
        let hosts = fabric.host_count();
        Self {
            scenario,
            times: Vec::with_capacity(samples),
            hosts_before: vec![HostCounters::default(); hosts],
            ports_before: vec![PortCounters::default(); ports.len()],
            classes_before: vec![ClassTotals::default(); engine.classes().len()],
            series: Series::of_hosts(hosts, samples),
            port_series: file
                .probe
                .ports
                .then(|| PortSeries::new(ports.len(), samples)),
            class_series: file
                .probe
                .classes
                .then(|| Series::of_classes(engine.classes().len(), samples)),
            latency_series: file.probe.latency.by_host().then(LatencySeries::default),
            flow_limits: file.probe.flow_limits.then(FlowLimits::default),
            ports,
        }
    }

    pub fn sample(&mut self, engine: &dyn Simulation) {
        let now = engine.now();
        self.times.push(now);
        let fabric = self.scenario.fabric();
        for host in fabric.host_ids() {
            let delivered = engine.host_counters(host).delivered_bytes;
            self.series.push(now, host.index(), delivered);
        }
        if let Some(series) = &mut self.class_series {
            for class in 0..engine.classes().len() {
                let delivered = engine.class(class as u16).delivered_bytes;
                series.push(now, class, delivered);
            }
        }
        if let Some(series) = &mut self.latency_series {
            series.sample(engine);
        }
        if let Some(limits) = &mut self.flow_limits {
            limits.sample(engine, fabric.host_ids());
        }
        let data_vls = self.scenario.engine_config().data_vls;
        if let Some(series) = &mut self.port_series {
            series.sample(engine, &self.ports, data_vls);
        }
    }

    pub fn merge_pairs(&mut self, first: usize) {
        let later = self.times[first..].iter().skip(1).step_by(2);
        let later: Vec<Time> = later.copied().collect();
        self.times.truncate(first);
        let start = self.times.last().copied().unwrap_or(Time::ZERO);
        self.series.merge_pairs(first);
        if let Some(series) = &mut self.class_series {
            series.merge_pairs(first);
        }
        if let Some(series) = &mut self.port_series {
            series.merge_pairs(first);
        }
        if let Some(series) = &mut self.latency_series {
            series.merge_pairs(start, &later);
        }
        if let Some(limits) = &mut self.flow_limits {
            limits.keep(start, &later);
        }
        self.times.extend(later);
    }

    /// The last sample covers the time since it, too.
    pub fn close(&mut self, engine: &dyn Simulation) {
        let Some(&last) = self.times.last() else {
            return self.sample(engine);
        };
        if engine.now() > last {
            self.sample(engine);
            self.merge_pairs(self.times.len() - 2);
        }
    }

    pub fn start_totals(&mut self, engine: &mut dyn Simulation) {
        if engine.now() == Time::ZERO {
            return;
        }
        self.hosts_before = self.hosts(engine);
        self.ports_before = self.port_counters(engine);
        self.classes_before = self.classes(engine);
        engine.reset_latency();
        if let Some(series) = &mut self.latency_series {
            series.reset();
        }
    }

    pub fn delivered_bytes(&self, engine: &dyn Simulation) -> u64 {
        let sum =
            |hosts: &[HostCounters]| -> u64 { hosts.iter().map(|host| host.delivered_bytes).sum() };
        sum(&self.hosts(engine)) - sum(&self.hosts_before)
    }

    pub fn hosts(&self, engine: &dyn Simulation) -> Vec<HostCounters> {
        let hosts = self.scenario.fabric().host_ids();
        hosts
            .map(|host: HostId| engine.host_counters(host))
            .collect()
    }

    pub fn port_counters(&self, engine: &dyn Simulation) -> Vec<PortCounters> {
        let ports = self.ports.iter();
        ports.map(|&port| engine.port_counters(port)).collect()
    }

    pub fn classes(&self, engine: &dyn Simulation) -> Vec<ClassTotals> {
        (0..engine.classes().len())
            .map(|class| engine.class(class as u16))
            .collect()
    }
}
