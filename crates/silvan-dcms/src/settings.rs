//! The configuration file.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use silvan_cc::dcms::{DcmsError, DcmsParameters, DcmsSection};
use silvan_core::counters::EMULATED_TICK;
use silvan_core::document::{Document, DocumentError};
use silvan_core::{GivenTicks, Span};
use silvan_subnet::client::Limits;
use silvan_subnet::key::{CcKey, KeyError};

use crate::rights::{Rights, Rule};

/// A complete configuration with every default spelled out and commented.
pub const EXAMPLE: &str = include_str!("example.toml");

/// An example for an emulated fabric at `time_scale` simulated seconds per second, with and without a subnet manager.
pub fn emulated_example(time_scale: f64) -> String {
    // Thresholds are parts of an interval, in ticks of an emulated switch: switches have no time scale.
    let paper = DcmsParameters::mizero2017();
    let tick = Span::from_ps((EMULATED_TICK.as_ps() as f64 / time_scale).round() as u64);
    let shorter = paper.tick.as_ps() as f64 / tick.as_ps() as f64;
    let ticks = |threshold: u64| (threshold as f64 * shorter).round().max(1.0).to_string();
    let words = paper.utilization_change_threshold as f64 * time_scale;
    let mut values = vec![
        ("tick", format!("\"{tick}\"")),
        ("congestion-threshold", ticks(paper.congestion_threshold)),
        (
            "rate-reduction-threshold",
            ticks(paper.rate_reduction_threshold),
        ),
        (
            "utilization-change-threshold",
            words.round().max(1.0).to_string(),
        ),
        ("require-sm", "false".to_owned()),
        ("folder", "\"dcms-state\"".to_owned()),
    ];
    if time_scale != 1.0 {
        values.push(("# time-scale", time_scale.to_string()));
    }
    let lines = EXAMPLE.lines().map(|line| {
        let key = line.split_once(" = ").map(|(key, _)| key);
        let value = values.iter().find(|(name, _)| Some(*name) == key);
        let comment = line.split_once('#').map_or("", |(_, comment)| comment);
        match value {
            Some((name, value)) => {
                let name = name.trim_start_matches("# ");
                format!("{:<35} #{comment}", format!("{name} = {value}"))
            }
            None => line.to_owned(),
        }
    });
    let head = format!(
        "# For an emulated fabric: silvan emulate FABRIC.toml --time-scale {time_scale} -- silvan dcms FILE --act\n"
    );
    head + &lines.map(|line| line + "\n").collect::<String>()
}

/// Most requests in flight: the kernel keeps each of them in memory.
const MOST_IN_FLIGHT: usize = 4096;
/// Shortest lease: half of it must suffice for a write to a shared file system.
const LEAST_LEASE: Span = Span::from_secs(1);
const LONGEST_TIMEOUT: Span = Span::from_secs(60);

/// Ports that a change of Marking_Rate affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// A single port, if the switch has SwitchPortCongestionSetting; else the switch.
    #[default]
    Port,
    /// Always the whole switch.
    Switch,
}

/// Counter for a port's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum DataCounter {
    /// PortCountersExtended, where the switch has it.
    #[default]
    #[serde(rename = "64-bit")]
    Wide,
    /// PortCounters, which stops after 4.3 s at 4x QDR.
    #[serde(rename = "32-bit")]
    Narrow,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct File {
    dcms: DcmsSection,
    adapter: AdapterSection,
    datagrams: DatagramSection,
    marking: MarkingSection,
    counters: CounterSection,
    subnet: SubnetSection,
    state: StateSection,
    metrics: Option<MetricsSection>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct AdapterSection {
    device: Option<String>,
    port: u8,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct DatagramSection {
    in_flight: usize,
    per_switch: usize,
    timeout: Span,
    retries: u32,
}

impl Default for DatagramSection {
    fn default() -> Self {
        let Limits {
            in_flight,
            per_node,
            timeout,
            retries,
        } = Limits::DEFAULT;
        Self {
            in_flight,
            per_switch: per_node,
            timeout,
            retries,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct MarkingSection {
    scope: Scope,
    allow: Vec<String>,
    deny: Vec<String>,
    cc_key_file: Option<PathBuf>,
}

impl Default for MarkingSection {
    fn default() -> Self {
        Self {
            scope: Scope::default(),
            allow: vec!["*".to_owned()],
            deny: Vec::new(),
            cc_key_file: None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct CounterSection {
    data: DataCounter,
    tick: Option<Span>,
    device_ticks: BTreeMap<String, Span>,
    time_scale: f64,
    reset: bool,
}

impl Default for CounterSection {
    fn default() -> Self {
        Self {
            data: DataCounter::default(),
            tick: None,
            device_ticks: BTreeMap::new(),
            time_scale: 1.0,
            reset: true,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct SubnetSection {
    rediscover: Span,
    sm_check: Span,
    sm_lost_after: Span,
    require_sm: bool,
}

impl Default for SubnetSection {
    fn default() -> Self {
        Self {
            rediscover: Span::from_secs(60),
            sm_check: Span::from_secs(1),
            sm_lost_after: Span::from_secs(30),
            require_sm: true,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct StateSection {
    folder: PathBuf,
    lease: Option<Span>,
    patience: Span,
}

impl Default for StateSection {
    fn default() -> Self {
        Self {
            folder: "/var/lib/silvan-dcms".into(),
            lease: None,
            patience: Span::from_secs(30),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct MetricsSection {
    listen: String,
    public: bool,
}

impl Default for MetricsSection {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:9684".to_owned(),
            public: false,
        }
    }
}

/// A checked configuration.
#[derive(Debug, Clone)]
pub struct ManagerSettings {
    /// Thresholds of the DCMS, which restores the rates that it found.
    pub dcms: DcmsParameters,
    /// Name of the adapter; `None` for the first with an active port.
    pub device: Option<String>,
    /// Port of the adapter; 0 for the first that is active.
    pub port: u8,
    /// Limits on requests in flight, timeouts and retries.
    pub limits: Limits,
    /// Ports that a change affects.
    pub scope: Scope,
    /// Rights to change ports.
    pub rights: Rights,
    /// The CC_Key; `None` for 0.
    pub cc_key: Option<CcKey>,
    /// Counter for data.
    pub data_counter: DataCounter,
    /// Stated ticks of counters of time. Other ports have that of their device.
    pub given_ticks: GivenTicks,
    /// Simulated seconds per second of an emulated fabric, 1 of a real subnet.
    pub time_scale: f64,
    /// True to reset counters that are about to stop.
    pub reset_counters: bool,
    /// Time from one discovery to the next.
    pub rediscover: Span,
    /// Time from one search for the subnet manager to the next.
    pub sm_check: Span,
    /// Time without a subnet manager after which all changes are restored.
    pub sm_lost_after: Span,
    /// True to make no changes without a subnet manager.
    pub require_sm: bool,
    /// Folder of journal and lock.
    pub state: PathBuf,
    /// After how long another instance with this folder takes over; `None` if there may be none.
    pub lease: Option<Span>,
    /// Time for restoring at the end.
    pub patience: Span,
    /// Address of the metrics; `None` for no endpoint.
    pub listen: Option<Listen>,
}

/// Address to listen at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Text of the address as written.
    pub text: String,
    /// The addresses that it names. The first that can be had is taken.
    pub addresses: Vec<SocketAddr>,
}

impl Listen {
    fn resolve(document: &Document, section: &MetricsSection) -> Result<Self, DocumentError> {
        let text = &section.listen;
        let refused = |message: String, hint: &str| document.error("metrics.listen", message, hint);
        let port = text.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
        if !matches!(port, Some(Ok(_))) {
            let hint = "write \"host:port\", e.g. \"127.0.0.1:9684\" or \"[::1]:9684\"";
            return Err(refused(
                format!("{text:?} has no port from 0 to 65535"),
                hint,
            ));
        }
        let resolved = text.to_socket_addrs().map_err(|error| {
            let hint = "write the address as a number, e.g. \"127.0.0.1:9684\" or \"[::1]:9684\"";
            refused(format!("{text:?} cannot be resolved: {error}"), hint)
        })?;
        let addresses: Vec<SocketAddr> = resolved.collect();
        let exposed = addresses.iter().find(|address| !address.ip().is_loopback());
        if let Some(exposed) = exposed.filter(|_| !section.public) {
            return Err(refused(
                format!("{exposed} can be reached from other machines"),
                "listen on 127.0.0.1 or [::1], or say public = true",
            ));
        }
        Ok(Self {
            text: text.clone(),
            addresses,
        })
    }
}

impl ManagerSettings {
    /// Reads a configuration with paths relative to `name`'s folder, or returns the first fault with a hint.
    pub fn from_toml(text: &str, name: &str) -> Result<Self, DocumentError> {
        let document = Document::parse(text, name)?;
        let is_content = |line: &str| !line.trim().is_empty() && !line.trim().starts_with('#');
        if !text.lines().any(is_content) {
            let hint = "silvan dcms --example prints one; for all defaults, write [dcms]";
            return Err(document.error("dcms", "the configuration is empty", hint));
        }
        let file: File = document.read()?;
        let base = Path::new(name).parent().unwrap_or(Path::new(""));
        check(&document, &file)?;
        let dcms = file.dcms.parameters(u16::MAX);
        dcms.validate()
            .map_err(|error| refused(&document, &error))?;
        let key_file = file.marking.cc_key_file.map(|path| base.join(path));
        let cc_key = key_file.map(|path| CcKey::read(&path)).transpose();
        let cc_key = cc_key.map_err(|error: KeyError| {
            document.error("marking.cc-key-file", error.to_string(), error.hint())
        })?;
        let listen = file.metrics.as_ref();
        let listen = listen.map(|metrics| Listen::resolve(&document, metrics));
        let listen = listen.transpose()?;
        Ok(Self {
            dcms,
            device: file.adapter.device,
            port: file.adapter.port,
            limits: Limits {
                in_flight: file.datagrams.in_flight,
                per_node: file.datagrams.per_switch,
                timeout: file.datagrams.timeout,
                retries: file.datagrams.retries,
            },
            scope: file.marking.scope,
            rights: Rights::new(
                rules(&document, "marking.allow", &file.marking.allow)?,
                rules(&document, "marking.deny", &file.marking.deny)?,
            ),
            cc_key,
            data_counter: file.counters.data,
            given_ticks: given_ticks(&document, &file.counters)?,
            time_scale: file.counters.time_scale,
            reset_counters: file.counters.reset,
            rediscover: file.subnet.rediscover,
            sm_check: file.subnet.sm_check,
            sm_lost_after: file.subnet.sm_lost_after,
            require_sm: file.subnet.require_sm,
            state: base.join(file.state.folder),
            lease: file.state.lease,
            patience: file.state.patience,
            listen,
        })
    }
}

fn given_ticks(
    document: &Document,
    counters: &CounterSection,
) -> Result<GivenTicks, DocumentError> {
    let mut given = counters.tick.map(GivenTicks::of_all).unwrap_or_default();
    for (device, &tick) in &counters.device_ticks {
        let key = format!("counters.device-ticks.{device}");
        if tick.is_zero() {
            return Err(document.error(&key, "is zero", "give a value above 0"));
        }
        given
            .add(device, tick)
            .map_err(|error| document.error(&key, error.to_string(), error.hint()))?;
    }
    Ok(given)
}

fn rules(document: &Document, key: &str, texts: &[String]) -> Result<Vec<Rule>, DocumentError> {
    let rules = texts.iter().enumerate().map(|(index, text)| {
        text.parse().map_err(|error: String| {
            let hint = "write \"*\", \"switch\" or \"switch:port\", the switch by GUID or name";
            document.error(&format!("{key}.{index}"), error, hint)
        })
    });
    rules.collect()
}

fn check(document: &Document, file: &File) -> Result<(), DocumentError> {
    let above_zero = [
        ("dcms.interval", file.dcms.interval.is_zero()),
        ("datagrams.in-flight", file.datagrams.in_flight == 0),
        ("datagrams.per-switch", file.datagrams.per_switch == 0),
        ("datagrams.timeout", file.datagrams.timeout.is_zero()),
        (
            "counters.tick",
            file.counters.tick.is_some_and(Span::is_zero),
        ),
        ("subnet.rediscover", file.subnet.rediscover.is_zero()),
        ("subnet.sm-check", file.subnet.sm_check.is_zero()),
        ("subnet.sm-lost-after", file.subnet.sm_lost_after.is_zero()),
    ];
    for (key, is_zero) in above_zero {
        if is_zero {
            return Err(document.error(key, "is zero", "give a value above 0"));
        }
    }
    let scale = file.counters.time_scale;
    if !(scale > 0.0 && scale.is_finite()) {
        let message = format!("{scale} is no number above 0");
        let hint = "give the --time-scale of the emulated fabric, such as 0.1";
        return Err(document.error("counters.time-scale", message, hint));
    }
    let requests = [
        ("datagrams.in-flight", file.datagrams.in_flight),
        ("datagrams.per-switch", file.datagrams.per_switch),
    ];
    for (key, count) in requests {
        if count > MOST_IN_FLIGHT {
            let message = format!("{count} requests at once: 1 to {MOST_IN_FLIGHT} are supported");
            let hint = "the default is 64, and 4 to one switch";
            return Err(document.error(key, message, hint));
        }
    }
    if let Some(lease) = file.state.lease.filter(|lease| *lease < LEAST_LEASE) {
        let message = format!("{lease} is too short, the least is {LEAST_LEASE}");
        return Err(document.error("state.lease", message, "e.g. \"10 s\""));
    }
    if file.datagrams.timeout > LONGEST_TIMEOUT {
        let message = format!(
            "{} is too long, the limit is {LONGEST_TIMEOUT}",
            file.datagrams.timeout
        );
        return Err(document.error("datagrams.timeout", message, "e.g. \"100 ms\""));
    }
    if file.datagrams.retries > 10 {
        let message = format!("{} retries take too long", file.datagrams.retries);
        return Err(document.error("datagrams.retries", message, "give at most 10, e.g. 3"));
    }
    Ok(())
}

fn refused(document: &Document, error: &DcmsError) -> DocumentError {
    let (key, hint) = match error {
        DcmsError::LowNotBelowDefault { .. } => ("dcms.low-marking-rate", "give a low one, e.g. 0"),
        DcmsError::NeverReached { parameter, .. } | DcmsError::AlwaysReached { parameter } => (
            match *parameter {
                "T_C" => "dcms.congestion-threshold",
                _ => "dcms.rate-reduction-threshold",
            },
            "thresholds are ticks per interval; scale them with the interval and the tick",
        ),
        DcmsError::Zero(what) => (
            match *what {
                "interval" => "dcms.interval",
                "busy interval" => "dcms.busy-interval",
                "tick" => "dcms.tick",
                "low-rate duration" => "dcms.low-duration",
                "number of switches that may be lowered" => "dcms.max-low-switches",
                _ => "dcms.rescan",
            },
            "give a value above 0",
        ),
    };
    document.error(key, error.to_string(), hint)
}
