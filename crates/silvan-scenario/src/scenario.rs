use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use silvan_cc::dcms::Dcms;
use silvan_cc::schemes::{Changes, Parameters, SchemeName, Setup, SwitchPort};
use silvan_core::document::SourceText;
use silvan_core::{Bytes, LinkId, Span, Time};
use silvan_fabric::check::RouteReport;
use silvan_fabric::routing::{Routes, Routing};
use silvan_fabric::{Fabric, ForwardingTables, LinkKind};
use silvan_model::{EngineConfig, FastForward, PacketFilter};
use silvan_workload::programs::Plan;
use silvan_workload::traffic::{Arrivals, Environment, Traffic, TrafficSection};

use crate::checks::buffers::{InputBuffers, input_buffer, input_buffers, warn_of_buffers};
use crate::checks::classes::check_classes;
use crate::checks::control::{
    ControlPlan, build_control, check_setup, setup, switch_ports, warn_of_idle,
};
use crate::checks::engine::check_engine_routes;
use crate::checks::fabric::{check_lids, tabulate};
use crate::checks::import::import_program_hosts;
use crate::checks::kept::RoutedFabric;
use crate::checks::limits::{check_flows, check_series};
use crate::checks::packets::build_packets;
use crate::checks::pfc::{check_pfc, warn_of_credits};
use crate::checks::programs::build_programs;
use crate::checks::python::import_python;
use crate::checks::rates::{cable_rates, warn_of_rate};
use crate::checks::refused;
use crate::checks::sweep::{assignment, check_sweep};
use crate::checks::traces::{import_traces, warn_of_traces};
use crate::checks::traffic::{check_traffic, environment, import_flows, import_sizes};
use crate::effective;
use crate::faults::PlannedFault;
use crate::given::{self, Given, Origins};
use crate::layout::{Layout, lay_out};
use crate::parsed::{ScenarioFile, SweepSection, Threads, Unreachable};
use crate::sampling::Sampling;
use crate::{KeyPath, Override, ScenarioError, elsewhere};

/// A scenario that can be run: every name is known, every value possible, every pair of hosts
/// connected by routes without loops.
///
/// Made from the text of a scenario file and overrides. The empty text is a scenario too: eight
/// quiet hosts at one switch.
///
/// ```
/// use silvan_scenario::{Override, Scenario};
///
/// let text = r#"
/// [fabric]
/// generator = "single-switch"
/// hosts = 5
/// [[traffic.incast]]
/// to = "host-0000"
/// "#;
/// let scenario = Scenario::from_toml(text, "incast.toml", &[Override::new("run.duration", "1 ms")])?;
/// assert_eq!(scenario.fabric().host_count(), 5);
/// assert!(scenario.effective_toml().contains("duration = \"1 ms\""));
///
/// let error = Scenario::from_toml("[switch]\nbufer = \"1 KiB\"", "incast.toml", &[]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "incast.toml:2: switch.bufer: unknown key (hint: did you mean \"buffer\"?)"
/// );
/// # Ok::<(), silvan_scenario::ScenarioError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Scenario {
    file: ScenarioFile,
    text: String,
    source_name: String,
    overrides: Vec<Override>,
    effective: String,
    given: Given,
    published: Vec<KeyPath>,
    routed: RoutedFabric,
    tabulated: OnceLock<Arc<ForwardingTables>>,
    engine: EngineConfig,
    control: ControlPlan,
    programs: Option<Arc<Plan>>,
    warnings: Vec<String>,
    has_traffic: bool,
    packets: Option<Arc<PacketFilter>>,
}

impl Scenario {
    /// Reads, completes and checks a scenario, or returns the first fault with its place and a hint.
    ///
    /// `source_name` is the path of the file in errors; its folder has the files that the scenario names. Overrides
    /// come first.
    pub fn from_toml(
        text: &str,
        source_name: &str,
        overrides: &[Override],
    ) -> Result<Self, ScenarioError> {
        let source = SourceText::parse(text, source_name, overrides)?;
        let in_lists = |change: &&Override| names_imported_list(&source, change);
        if overrides.iter().any(|change| in_lists(&change)) {
            let (lists, others): (Vec<_>, Vec<_>) = overrides.iter().partition(in_lists);
            let [lists, others] = [lists, others].map(|some| some.into_iter().cloned().collect());
            let (lists, others): (Vec<Override>, Vec<Override>) = (lists, others);
            return Self::from_toml(text, source_name, &others)?.with_overrides(&lists);
        }
        let built = Self::build(&source, text, source_name, overrides);
        built.map_err(|error| source.locate(elsewhere::with_places(error)))
    }

    /// Reads the scenario again with more overrides, which defaults follow. Errors as [`from_toml`](Self::from_toml).
    pub fn with_overrides(&self, overrides: &[Override]) -> Result<Self, ScenarioError> {
        let source = SourceText::parse(&self.text, &self.source_name, &self.overrides)?;
        if overrides
            .iter()
            .any(|change| names_imported_list(&source, change))
        {
            // The lists are in the scenario as it is written, not in its own text.
            return Self::from_toml(&self.to_toml(), &self.source_name, overrides);
        }
        let all = [self.overrides.as_slice(), overrides].concat();
        Self::from_toml(&self.text, &self.source_name, &all)
    }

    /// One run with a fixed seed and no variation; equal runs hash equally in any sweep.
    #[must_use]
    pub fn single_run(&self, seed: u64) -> Self {
        let mut one = self.clone();
        one.file.run.seed = seed;
        one.file.sweep = SweepSection::default();
        one.file.description.clear();
        one.effective = effective::to_toml(&one.file);
        one.given.insert_in("run", "seed");
        one.given.insert("description");
        one.overrides.extend([
            Override::new("run.seed", seed.to_string()),
            Override::new("sweep", "{}"),
            Override::new("description", r#""""#),
        ]);
        one
    }

    fn build(
        source: &SourceText,
        text: &str,
        source_name: &str,
        overrides: &[Override],
    ) -> Result<Self, ScenarioError> {
        let base = Path::new(source_name).parent().unwrap_or(Path::new(""));
        let (layout, published) = lay_out(source, base)?;
        let Layout {
            mut file,
            mut warnings,
            fabric,
            routed,
            engine,
            ..
        } = layout;
        import_sizes(&mut file.traffic, base)?;
        import_flows(&mut file.traffic, base)?;
        import_program_hosts(&mut file.traffic.program, base)?;
        let traces = import_traces(&mut file.traffic, base)?;
        import_python(&mut file.control, base)?;
        let report = &routed.report;
        let missing = report.first_missing.as_ref();
        if let Some(missing) = missing.filter(|_| file.fabric.routing() != Routing::None) {
            warnings.push(format!(
                "{} of {} pairs of hosts have no route, and switches discard their packets: {missing}",
                report.unreachable, report.pairs
            ));
        }
        let routes = routed.routes();
        check_engine_routes(&engine, routes)?;
        check_classes(&file, routes.lanes)?;
        let control = build_control(&file.control, &fabric)?;
        check_pfc(&file, &engine, &fabric, &control.settings)?;
        warnings.extend(warn_of_idle(source, &file, overrides));
        warnings.extend(warn_of_traces(&file.traffic));
        warnings.extend(warn_of_credits(&file));
        warnings.extend(warn_of_buffers(&engine, &input_buffers(&engine, &fabric)));
        warnings.extend(warn_of_rate(&file, &fabric));
        let ports = switch_ports(&fabric);
        let hosts = fabric.host_count();
        let setup = setup(&file, &engine, routes, &ports, hosts, file.run.seed);
        check_setup(&file.control, &setup)?;
        check_traffic(&file.traffic)?;
        let seed = file.run.seed;
        let environment = environment(&fabric, &engine.host, &engine.packet, seed);
        let offered = Traffic::new(&file.traffic, &environment).map_err(|error| refused(&error))?;
        let programs = build_programs(&file, &fabric, &traces)?;
        let of_programs = programs.as_ref().map_or(0, |plan| plan.classes().len());
        let classes = offered.classes().len() + of_programs;
        check_series(&file, &fabric, classes)?;
        check_flows(&file, &offered, programs.as_ref())?;
        check_sweep(&file.sweep, text, overrides)?;
        let packets = file.probe.packets.as_ref();
        let packets = packets.map(|packets| build_packets(packets, &fabric));
        let packets = packets.transpose()?;
        Ok(Self {
            packets: packets.map(Arc::new),
            effective: effective::to_toml(&file),
            given: Given::of(source.root()),
            published,
            file,
            text: text.to_owned(),
            source_name: source_name.to_owned(),
            overrides: overrides.to_vec(),
            routed,
            tabulated: OnceLock::new(),
            engine,
            control,
            programs: programs.map(Arc::new),
            warnings,
            has_traffic: classes > 0,
        })
    }

    /// The packets that are recorded hop by hop, if any.
    pub fn packet_filter(&self) -> Option<&PacketFilter> {
        self.packets.as_deref()
    }

    /// The complete parsed form, defaults filled in.
    pub fn file(&self) -> &ScenarioFile {
        &self.file
    }

    /// The text that the scenario was read from, the name of its source, and the overrides.
    pub fn written(&self) -> (&str, &str, &[Override]) {
        (&self.text, &self.source_name, &self.overrides)
    }

    /// Returns the oddities of the scenario's files and the decisions on them, each with its place.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the name of the scenario.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// Simulated time from start to end.
    pub fn duration(&self) -> Span {
        self.file.run.duration
    }

    /// Returns the sampling times of a run's time series.
    pub fn sampling(&self) -> Sampling {
        Sampling::of(&self.file.probe, &self.file.run)
    }

    /// The seed that the file names; a run may take another one.
    pub fn seed(&self) -> u64 {
        self.file.run.seed
    }

    /// The file with every default spelled out; reading it gives an equal scenario.
    pub fn effective_toml(&self) -> &str {
        &self.effective
    }

    /// The file with given values, and with defaults as comments, which follow overrides.
    pub fn to_toml(&self) -> String {
        let scheme = self.file.control.scheme;
        let origins = Origins {
            published: &self.published,
            variant: scheme.name(),
            tables: scheme
                .scheme()
                .parts()
                .iter()
                .map(|part| part.as_str())
                .collect(),
        };
        given::to_toml(&effective::to_document(&self.file), &self.given, &origins)
    }

    /// Returns the setting of leaps over repeating states.
    pub fn fast_forward(&self) -> FastForward {
        self.file.run.fast_forward
    }

    /// Returns the number of threads that simulate a run.
    pub fn threads(&self) -> Threads {
        self.file.run.threads
    }

    /// Returns the scenario on another number of threads. The fabric is shared, not built again.
    #[must_use]
    pub fn with_threads(&self, threads: Threads) -> Self {
        let mut other = self.clone();
        other.file.run.threads = threads;
        other
    }

    /// SHA-256 of the effective text in hexadecimal digits: equal for scenarios that run equally.
    pub fn hash(&self) -> String {
        effective::hash(&self.effective)
    }

    /// The effective scenario as JSON, keys as in the file.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(&self.file)
            .expect("scenario types are numbers, texts, lists and tables with text keys")
    }

    /// The fabric as a net file that ibsim serves. Errors if the fabric has more nodes than there are LIDs.
    pub fn ibsim_net(&self) -> Result<String, ScenarioError> {
        check_lids(&self.routed.fabric, "generator")?;
        Ok(silvan_fabric::import::ibsim_net(&self.routed.fabric))
    }

    /// Counts, data rates, lengths of routes [hops], the routing with its reason, and the input buffers.
    pub fn describe(&self) -> Value {
        let fabric = &self.routed.fabric;
        json!({
            "name": self.name(),
            "hosts": fabric.host_count(),
            "switches": fabric.switch_count(),
            "links": fabric.links.len(),
            "ports": fabric.ports.len(),
            "cable_rates_bits_per_s": cable_rates(fabric).iter().map(|rate| rate.bits_per_sec()).collect::<Vec<_>>(),
            "max_hops": self.routed.report.max_hops,
            "mean_hops": self.routed.report.mean_hops,
            "routing": self.file.fabric.routing().name(),
            "routing_reason": self.routing_reason(),
            "data_vls": self.engine.data_vls,
            "has_credit_loop": self.routed.report.dependency_cycle.is_some(),
            "input_buffers": self.input_buffers().iter().map(InputBuffers::to_json).collect::<Vec<_>>(),
            "duration_ps": self.duration().as_ps(),
            "hash": self.hash(),
        })
    }

    /// Switches, hosts and cables.
    pub fn fabric(&self) -> &Arc<Fabric> {
        &self.routed.fabric
    }

    /// The faults during a run. Cables cut or degraded for the whole run are part of the [fabric](Self::fabric).
    pub fn faults(&self) -> &[PlannedFault] {
        &self.routed.faults.later
    }

    /// Returns true if a fault during a run may lose packets.
    pub fn may_lose_packets(&self) -> bool {
        (self.faults().iter()).any(|planned| planned.fault.loses_packets())
    }

    /// A cable as it is without a fault that degrades it for the whole run.
    pub fn intact_cable(&self, link: LinkId) -> LinkKind {
        let degraded = self.routed.faults.degraded.iter();
        let mut intact = degraded.filter(|(other, _)| *other == link);
        let known = intact.next().map(|(_, intact)| *intact);
        known.unwrap_or(self.routed.fabric.links[link].kind)
    }

    /// The forwarding tables, which connect all hosts without loops; made by the first call if routes follow a rule.
    pub fn tables(&self) -> &Arc<ForwardingTables> {
        if self.routed.tables.rule().is_none() {
            return &self.routed.tables;
        }
        self.tabulated.get_or_init(|| {
            let tables = tabulate(&self.file, &self.routed.fabric);
            Arc::new(tables.expect("a rule stands for tables that can be made"))
        })
    }

    /// The decisions on packets: tables or rule, lanes that change along the way, and ports that switches choose among.
    pub fn forwarding(&self) -> Routes<'_> {
        self.routed.routes()
    }

    /// Returns the setup for the scheme in force; `ports` are those of [`switch_ports`].
    pub fn setup<'a>(&self, ports: &'a [Option<SwitchPort>], seed: u64) -> Setup<'a> {
        let hosts = self.routed.fabric.host_count();
        setup(
            &self.file,
            &self.engine,
            self.forwarding(),
            ports,
            hosts,
            seed,
        )
    }

    /// Returns true if switches discard packets without a forwarding entry; otherwise every packet has an entry.
    pub fn discards_unroutable(&self) -> bool {
        let fabric = &self.file.fabric;
        fabric.unreachable == Unreachable::Drop || fabric.routing() == Routing::None
    }

    /// Returns the report of the check of the tables.
    pub fn routes(&self) -> &RouteReport {
        &self.routed.report
    }

    /// Why the routing is that of [`FabricSection::routing`](crate::FabricSection::routing).
    pub fn routing_reason(&self) -> &str {
        &self.routed.chosen.reason
    }

    /// Size of the input buffer of a switch behind a cable that says nothing itself, per virtual lane.
    pub fn input_buffer(&self) -> Bytes {
        input_buffer(&self.file)
    }

    /// The input buffers of all ports, by kind of cable, the fastest first.
    pub fn input_buffers(&self) -> Vec<InputBuffers> {
        input_buffers(&self.engine, &self.routed.fabric)
    }

    /// Parameters of the data plane.
    pub fn engine_config(&self) -> &EngineConfig {
        &self.engine
    }

    /// The congestion-control scheme.
    pub fn scheme(&self) -> SchemeName {
        self.file.control.scheme.scheme()
    }

    /// The parameters of all schemes.
    pub fn scheme_parameters(&self) -> &Parameters {
        &self.file.control.parameters
    }

    /// Settings of the scheme at single ports and during the run.
    pub fn scheme_settings(&self) -> &Changes {
        &self.control.settings
    }

    /// The manager that watches the ports' counters from outside, if there is one, before its first sweep.
    pub fn dcms(&self) -> Option<&Dcms> {
        self.control.dcms.as_ref()
    }

    /// The traffic.
    pub fn traffic(&self) -> &TrafficSection {
        &self.file.traffic
    }

    /// Message-passing programs that run together with the traffic, if there are any.
    pub fn programs(&self) -> Option<&Plan> {
        self.programs.as_deref()
    }

    /// Returns true if any host sends anything.
    pub fn has_traffic(&self) -> bool {
        self.has_traffic
    }

    /// Returns the inputs of the traffic from fabric and run, for a run with this seed.
    pub fn environment(&self, seed: u64) -> Environment {
        environment(
            &self.routed.fabric,
            &self.engine.host,
            &self.engine.packet,
            seed,
        )
    }

    /// `tmax` of gran2012 at an instant of a run with this seed [bit/s of payload], see [`Traffic::tmax`]; or an
    /// impossible placement.
    pub fn tmax(&self, seed: u64, at: Time) -> Result<f64, ScenarioError> {
        let traffic = Traffic::new(self.traffic(), &self.environment(seed));
        let traffic = traffic.map_err(|error| refused(&error))?;
        Ok(traffic.tmax(at))
    }

    /// Arrivals at open-loop sources by traffic class, see [`Traffic::arrivals`]; or an impossible placement.
    pub fn arrivals(&self, seed: u64) -> Result<Vec<(String, Option<Arrivals>)>, ScenarioError> {
        let traffic = Traffic::new(self.traffic(), &self.environment(seed));
        let traffic = traffic.map_err(|error| refused(&error))?;
        let from = Time::ZERO + self.file.run.warm_up;
        let arrivals = traffic.arrivals(from, Time::ZERO + self.duration());
        Ok(traffic.classes().iter().cloned().zip(arrivals).collect())
    }

    /// Payload offered by traffic class [bytes], see [`Traffic::offered_bytes`]; or an impossible placement.
    pub fn offered_bytes(&self, seed: u64) -> Result<Vec<(String, f64)>, ScenarioError> {
        let traffic = Traffic::new(self.traffic(), &self.environment(seed));
        let traffic = traffic.map_err(|error| refused(&error))?;
        let from = Time::ZERO + self.file.run.warm_up;
        let offered = traffic.offered_bytes(from, Time::ZERO + self.duration());
        Ok(traffic.classes().iter().cloned().zip(offered).collect())
    }

    /// The overrides of each combination of the sweep's values, keys in alphabetical order, the last varying fastest.
    pub fn sweep_points(&self) -> Vec<Vec<Override>> {
        let mut points = vec![Vec::new()];
        for (key, values) in &self.file.sweep.vary {
            points = points
                .iter()
                .flat_map(|point: &Vec<Override>| {
                    values.iter().map(|value| {
                        let mut longer = point.clone();
                        longer.push(assignment(key, value));
                        longer
                    })
                })
                .collect();
        }
        points
    }
}

fn names_imported_list(source: &SourceText, change: &Override) -> bool {
    let fabric = source.root().get("fabric");
    let has = |key: &str| fabric.is_some_and(|fabric| fabric.get(key).is_some());
    let names = |keys: &[&str]| {
        let path = KeyPath::from(change.key.as_str());
        let fabric = KeyPath::ROOT.key("fabric");
        keys.iter().any(|key| path.starts_with(&fabric.key(key)))
    };
    (has("file") && names(&["switch", "host", "cable"]))
        || (has("routing-file") && names(&["linear-tables", "path-sl", "sl-to-vl"]))
        || (has("root-guid-file") && names(&["roots"]))
        || (has("cn-guid-file") && names(&["compute-nodes"]))
}
