//! Faults with their nodes and ports found: cut, degraded or bad cables, symbol errors, slow receivers, reboots, lost
//! datagrams.

use std::collections::BTreeSet;

use serde::Deserialize;
use silvan_core::document::{Document, KeyPath, Refusal};
use silvan_core::{HostId, PortId, PortNumber, Rate, Span, SwitchId, Time};
use silvan_fabric::{CableLimit, Fabric, NodeKind, Speed};
use silvan_model::bit_errors::{BitErrors, Bursts, ErrorTimes, MOST_BIT_ERRORS, PlannedBitErrors};

use crate::ScenarioError;
use crate::parsed::{FaultEntry, FaultKind};

/// The slowest cable that replays bad packets by default: vendors' adapters and switches do so since FDR ("Unbreakable
/// link", MLNX-OS user manual).
const FIRST_RETRANSMITTING: Speed = Speed::Fdr;

/// The longest `retraining`.
const MOST_RETRAINING: Span = Span::from_secs(60);

/// The longest `replay-latency`.
const MOST_REPLAY_LATENCY: Span = Span::from_us(1_000);

/// A fault that lasts until it is repaired.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The cable in a port is cut.
    Cut(PortId),
    /// The cable in a port carries no more than this.
    Degrade(PortId, CableLimit),
    /// A port receives so many bad symbols in a simulated second.
    SymbolErrors(PortId, f64),
    /// A port receives wrong bits.
    BitErrors(PortId, BitErrors),
    /// A host receives no more payload than this; `None` for what the scenario has.
    Slow(HostId, Option<Rate>),
    /// A switch is without power.
    Reboot(SwitchId),
    /// Loss of this share of all management datagrams, chosen by a seed.
    Lose(f64, u64),
}

impl Fault {
    /// Returns true if links go down or change their rate.
    pub fn changes_links(&self) -> bool {
        matches!(self, Self::Cut(_) | Self::Degrade(..) | Self::Reboot(_))
    }

    /// Returns true if the fault changes links or hosts while packets move.
    pub fn changes_fabric(&self) -> bool {
        self.changes_links() || matches!(self, Self::Slow(..))
    }

    /// Returns true if packets are lost because of the fault.
    pub fn loses_packets(&self) -> bool {
        self.changes_links() || self.is_bit_errors()
    }

    /// Returns true if a port receives wrong bits.
    pub fn is_bit_errors(&self) -> bool {
        matches!(self, Self::BitErrors(..))
    }

    /// Returns true if the fault concerns packets; the others exist in the live fabric alone.
    pub fn concerns_packets(&self) -> bool {
        self.changes_fabric() || self.is_bit_errors()
    }
}

/// A fault with its times.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedFault {
    /// Place of its entry, from 0.
    pub entry: usize,
    /// The fault.
    pub fault: Fault,
    /// Start of the first occurrence.
    pub at: Time,
    /// Duration of the fault; `None` is without end.
    pub lasts: Option<Span>,
    /// Time from one beginning to the next; `None` if it comes once.
    pub every: Option<Span>,
    /// Description for the log.
    pub words: String,
}

impl PlannedFault {
    /// Returns true if its cable is cut or degraded for the whole run; the fabric is then built with it.
    pub fn is_built_in(&self) -> bool {
        matches!(self.fault, Fault::Cut(_) | Fault::Degrade(..))
            && self.at == Time::ZERO
            && self.lasts.is_none()
    }
}

/// The bit errors among these faults.
pub(crate) fn bit_errors_of(faults: &[PlannedFault]) -> Vec<PlannedBitErrors> {
    let planned = faults.iter().filter_map(|planned| match planned.fault {
        Fault::BitErrors(port, errors) => Some(PlannedBitErrors {
            port,
            errors,
            times: ErrorTimes {
                at: planned.at,
                lasts: planned.lasts,
                every: planned.every,
            },
        }),
        _ => None,
    });
    planned.collect()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultFile {
    fault: Vec<FaultEntry>,
}

/// Reads `[[fault]]` tables for a fabric of these names, or returns the first mistake with its line.
pub fn read_faults(
    text: &str,
    source: &str,
    fabric: &Fabric,
) -> Result<Vec<PlannedFault>, ScenarioError> {
    let document = Document::parse(text, source)?;
    let file: FaultFile = document.read()?;
    plan_faults(&file.fault, fabric).map_err(|refusal| {
        let Refusal { key, message, hint } = refusal;
        document.error(&key.to_string(), message, &hint)
    })
}

pub(crate) fn plan_faults(
    entries: &[FaultEntry],
    fabric: &Fabric,
) -> Result<Vec<PlannedFault>, Refusal> {
    let entries = entries.iter().enumerate();
    let planned = entries.map(|(index, entry)| {
        let key = KeyPath::from("fault").index(index);
        let refuse = |(key, message): Mistake| Refusal::new(key, message, hint(key));
        plan(index, entry, fabric).map_err(|mistake| refuse(mistake).within(&key))
    });
    planned.collect()
}

type Mistake = (&'static str, String);

fn plan(index: usize, entry: &FaultEntry, fabric: &Fabric) -> Result<PlannedFault, Mistake> {
    let fault = entry.fault(fabric)?;
    entry.check_times()?;
    Ok(PlannedFault {
        entry: index,
        fault,
        at: Time::ZERO + entry.at,
        lasts: entry.downtime(),
        every: entry.every,
        words: entry.words(),
    })
}

impl FaultEntry {
    /// Returns the keys in addition to those of all faults: name, true if given, true if this kind of fault has it.
    fn keys(&self) -> [(&'static str, bool, bool); 16] {
        let kind = self.kind;
        let is_of_port = matches!(
            kind,
            FaultKind::Cut | FaultKind::Degrade | FaultKind::SymbolErrors | FaultKind::BitErrors
        );
        let (degrades, loses) = (kind == FaultKind::Degrade, kind == FaultKind::Lose);
        let slows = kind == FaultKind::Slow;
        let errs = kind == FaultKind::BitErrors;
        [
            ("port", self.port.is_some(), is_of_port),
            ("host", self.host.is_some(), slows),
            ("switch", self.switch.is_some(), kind == FaultKind::Reboot),
            ("width", self.width.is_some(), degrades),
            ("speed", self.speed.is_some(), degrades),
            ("rate", self.rate.is_some(), slows || degrades),
            (
                "per-second",
                self.per_second.is_some(),
                kind == FaultKind::SymbolErrors,
            ),
            ("bit-error-rate", self.bit_error_rate.is_some(), errs),
            (
                "burst-bit-error-rate",
                self.burst_bit_error_rate.is_some(),
                errs,
            ),
            ("burst-length", self.burst_length.is_some(), errs),
            ("burst-spacing", self.burst_spacing.is_some(), errs),
            ("retransmission", self.retransmission.is_some(), errs),
            ("replay-latency", self.replay_latency.is_some(), errs),
            (
                "retraining",
                self.retraining.is_some(),
                errs || matches!(kind, FaultKind::Cut | FaultKind::Reboot),
            ),
            ("percent", self.percent.is_some(), loses),
            ("seed", self.seed.is_some(), loses),
        ]
    }

    fn fault(&self, fabric: &Fabric) -> Result<Fault, Mistake> {
        for (key, is_given, belongs) in self.keys() {
            if is_given && !belongs {
                let keys = self.keys().into_iter().filter(|(_, _, belongs)| *belongs);
                let keys: Vec<&str> = keys.map(|(key, ..)| key).collect();
                let (kind, keys) = (self.kind.name(), keys.join(", "));
                return Err((key, format!("{kind:?} has no such key; it has {keys}")));
            }
        }
        let port = || {
            let name = self.required("port", self.port.as_deref())?;
            cabled_port(fabric, name).map_err(|error| ("port", error))
        };
        match self.kind {
            FaultKind::Cut => Ok(Fault::Cut(port()?)),
            FaultKind::Degrade => {
                let port = port()?;
                let limit = CableLimit {
                    width: self.width,
                    speed: self.speed,
                    rate: self.rate,
                };
                check_limit(fabric, port, limit)?;
                Ok(Fault::Degrade(port, limit))
            }
            FaultKind::SymbolErrors => {
                let per_second = self.required("per-second", self.per_second)?;
                let errors = error_rate(per_second).map_err(|error| ("per-second", error))?;
                Ok(Fault::SymbolErrors(port()?, errors))
            }
            FaultKind::BitErrors => {
                let port = port()?;
                Ok(Fault::BitErrors(port, self.bit_errors(fabric, port)?))
            }
            FaultKind::Slow => {
                let host = self.required("host", self.host.as_deref())?;
                let host = host_named(fabric, host).map_err(|error| ("host", error))?;
                Ok(Fault::Slow(host, Some(self.required("rate", self.rate)?)))
            }
            FaultKind::Reboot => {
                let switch = self.required("switch", self.switch.as_deref())?;
                let switch = switch_named(fabric, switch).map_err(|error| ("switch", error))?;
                Ok(Fault::Reboot(switch))
            }
            FaultKind::Lose => {
                let percent = self.required("percent", self.percent)?;
                let share = lost_share(percent).map_err(|error| ("percent", error))?;
                Ok(Fault::Lose(share, self.seed.unwrap_or(0)))
            }
        }
    }

    fn bit_errors(&self, fabric: &Fabric, port: PortId) -> Result<BitErrors, Mistake> {
        let rate_of = |key, value: Option<f64>| {
            let rate = value.unwrap_or(0.0);
            match (0.0..=MOST_BIT_ERRORS).contains(&rate) {
                true => Ok(rate),
                false => Err((
                    key,
                    format!("{rate} wrong bits of all: 0 to {MOST_BIT_ERRORS} are possible"),
                )),
            }
        };
        let rate = rate_of("bit-error-rate", self.bit_error_rate)?;
        let in_bursts = rate_of("burst-bit-error-rate", self.burst_bit_error_rate)?;
        let bursts = match self.burst_bit_error_rate {
            Some(_) => Some(Bursts {
                rate: in_bursts,
                length: self.burst_time("burst-length", self.burst_length)?,
                spacing: self.burst_time("burst-spacing", self.burst_spacing)?,
            }),
            None => {
                let times = [
                    ("burst-length", self.burst_length),
                    ("burst-spacing", self.burst_spacing),
                ];
                if let Some((key, _)) = times.into_iter().find(|(_, time)| time.is_some()) {
                    let error = "there are no bursts without burst-bit-error-rate";
                    return Err((key, error.to_owned()));
                }
                None
            }
        };
        if self.bit_error_rate.is_none() && bursts.is_none() {
            let error = "\"bit-errors\" needs bit-error-rate, burst-bit-error-rate, or both";
            return Err(("do", error.to_owned()));
        }
        let cable = fabric.ports[port].link.map(|link| fabric.links[link].kind);
        let by_speed = cable.is_some_and(|cable| cable.speed >= FIRST_RETRANSMITTING);
        let retransmits = self.retransmission.unwrap_or(by_speed);
        match self.replay_latency {
            Some(_) if !retransmits => {
                let error = "the link discards bad packets, and replays none";
                return Err(("replay-latency", error.to_owned()));
            }
            Some(latency) if latency > MOST_REPLAY_LATENCY => {
                let error =
                    format!("{latency}: a replay starts after at most {MOST_REPLAY_LATENCY}");
                return Err(("replay-latency", error));
            }
            _ => {}
        }
        Ok(BitErrors {
            rate,
            bursts,
            retransmits,
            replay_latency: self.replay_latency,
            retraining: self.retraining.unwrap_or_default(),
        })
    }

    fn burst_time(&self, key: &'static str, time: Option<Span>) -> Result<Span, Mistake> {
        let time = self.required(key, time)?;
        match time.is_zero() {
            true => Err((key, "it is zero".to_owned())),
            false => Ok(time),
        }
    }

    fn required<T>(&self, key: &'static str, value: Option<T>) -> Result<T, Mistake> {
        let kind = self.kind.name();
        value.ok_or_else(|| ("do", format!("{kind:?} needs the key {key:?}")))
    }

    /// Duration of the fault, with the time until its cables are up.
    fn downtime(&self) -> Option<Span> {
        match (self.kind, self.lasts, self.retraining) {
            (FaultKind::Cut | FaultKind::Reboot, Some(lasts), Some(retraining)) => Some(
                Span::from_ps(lasts.as_ps().saturating_add(retraining.as_ps())),
            ),
            // Without a duration, the switch is on again at once.
            (FaultKind::Reboot, None, Some(retraining)) if !retraining.is_zero() => {
                Some(retraining)
            }
            (_, lasts, _) => lasts,
        }
    }

    fn check_times(&self) -> Result<(), Mistake> {
        if self.retraining.is_some_and(|time| time > MOST_RETRAINING) {
            let error = format!("a link comes up after at most {MOST_RETRAINING}");
            return Err(("retraining", error));
        }
        if self.kind == FaultKind::Cut && self.retraining.is_some() && self.lasts.is_none() {
            let error = "a cable that stays cut does not come up";
            return Err(("retraining", error.to_owned()));
        }
        let (key, error) = match (self.every, self.downtime()) {
            (Some(every), _) if every.is_zero() => ("every", "it is zero"),
            (_, Some(lasts)) if lasts.is_zero() => ("for", "it is zero"),
            (Some(every), Some(lasts)) if lasts >= every => {
                ("for", "the fault comes again before it has ended")
            }
            (Some(_), None) => ("every", "a fault that does not end cannot come again"),
            _ => return Ok(()),
        };
        Err((key, error.to_owned()))
    }

    fn words(&self) -> String {
        let place = [&self.port, &self.host, &self.switch];
        let place = place.into_iter().flatten().next();
        let place = place.map_or("", String::as_str);
        match self.kind {
            FaultKind::Cut => format!("cut of the cable in {place}"),
            FaultKind::Degrade => format!("degradation of the cable in {place}"),
            FaultKind::SymbolErrors => format!("symbol errors at {place}"),
            FaultKind::BitErrors => format!("bit errors at {place}"),
            FaultKind::Slow => format!("slow receiver {place}"),
            FaultKind::Reboot => format!("reboot of {place}"),
            FaultKind::Lose => "loss of management datagrams".to_owned(),
        }
    }
}

fn hint(key: &str) -> &'static str {
    match key {
        "port" => "name a port with a cable, NODE:NUMBER, or a host",
        "host" | "switch" => "silvan show prints the names of the scenario",
        "width" => "give a width below that of the cable, such as \"1x\"",
        "speed" => "give a speed below that of the cable, such as \"SDR\"",
        "rate" => "give a rate with its unit, such as \"10 Gbit/s\"",
        "per-second" => "give a number of errors, such as 100",
        "bit-error-rate" | "burst-bit-error-rate" => "give a probability, such as 1e-8",
        "burst-length" | "burst-spacing" => {
            "bursts have a burst-bit-error-rate, a burst-length such as \"1 us\", and a burst-spacing such as \"1 ms\""
        }
        "replay-latency" => "give a time such as \"200 ns\", and retransmission = true",
        "retraining" => "give a time such as \"10 ms\", and \"for\" with a cut",
        "percent" => "give a percentage, such as 10",
        "for" | "every" => {
            "give a time such as \"2 s\"; a fault lasts \"for\" less time than \"every\""
        }
        _ => "the guide page \"The live fabric\" lists all faults with their keys",
    }
}

/// The instants at which faults come and go, in order.
#[derive(Clone, Debug, Default)]
pub struct FaultTimes {
    faults: Vec<PlannedFault>,
    /// Time, true for the beginning of a fault, and its number. At one instant faults end before others begin.
    due: BTreeSet<(Time, bool, usize)>,
}

impl FaultTimes {
    /// Makes the instants of these faults.
    pub fn new(faults: Vec<PlannedFault>) -> Self {
        let due = faults.iter().enumerate();
        let due = due.map(|(index, fault)| (fault.at, true, index)).collect();
        Self { faults, due }
    }

    /// Returns the time of the next beginning or end of a fault.
    pub fn next(&self) -> Option<Time> {
        self.due.first().map(|&(time, _, _)| time)
    }

    /// Takes the next fault that begins (true) or ends (false) by `now`, with its instant.
    pub fn take(&mut self, now: Time) -> Option<(Time, bool, &PlannedFault)> {
        let (time, begins, index) = *self.due.first().filter(|(time, _, _)| *time <= now)?;
        self.due.pop_first();
        let planned = &self.faults[index];
        if begins {
            for (after, begins) in [(planned.lasts, false), (planned.every, true)] {
                if let Some(after) = after {
                    self.due.insert((time.saturating_add(after), begins, index));
                }
            }
        }
        Some((time, begins, planned))
    }
}

/// A port with a cable, as people write it. Errors: the fabric has no such port, or the port has no cable.
pub fn cabled_port(fabric: &Fabric, text: &str) -> Result<PortId, String> {
    let port = port_named(fabric, text)?;
    match fabric.ports[port].peer {
        Some(_) => Ok(port),
        None => Err(format!("there is no cable in {text}")),
    }
}

fn port_named(fabric: &Fabric, text: &str) -> Result<PortId, String> {
    if let Some(node) = fabric.node_by_name(text) {
        if let NodeKind::Host(host) = fabric.nodes[node].kind {
            return Ok(fabric.host_port(host));
        }
        return Err(format!("{text:?} is a switch; name a port of it, {text}:1"));
    }
    let found = text.rsplit_once(':').and_then(|(name, number)| {
        let node = fabric.node_by_name(name)?;
        fabric.port(node, PortNumber::new(number.parse().ok()?))
    });
    found.ok_or_else(|| {
        format!("there is no port {text:?}; write NODE:NUMBER, or the name of a host")
    })
}

/// A host by its name. Errors: the fabric has no such host.
pub fn host_named(fabric: &Fabric, name: &str) -> Result<HostId, String> {
    let node = fabric.node_by_name(name);
    let host = node.and_then(|node| fabric.nodes[node].as_host());
    host.ok_or_else(|| unknown(fabric, "host", name))
}

/// A switch by its name. Errors: the fabric has no such switch.
pub fn switch_named(fabric: &Fabric, name: &str) -> Result<SwitchId, String> {
    let node = fabric.node_by_name(name);
    let switch = node.and_then(|node| fabric.nodes[node].as_switch());
    switch.ok_or_else(|| unknown(fabric, "switch", name))
}

fn unknown(fabric: &Fabric, what: &str, name: &str) -> String {
    match fabric.nearest_name(name) {
        Some(near) if near != name => {
            format!("there is no {what} named {name:?}; did you mean {near:?}?")
        }
        _ => format!("there is no {what} named {name:?}"),
    }
}

/// The share of datagrams that a percentage is. Errors: the percentage is below 0 or above 100.
pub fn lost_share(percent: f64) -> Result<f64, String> {
    match (0.0..=100.0).contains(&percent) {
        true => Ok(percent / 100.0),
        false => Err(format!(
            "{percent} %: 0 to 100 % of the datagrams can be lost"
        )),
    }
}

/// A number of symbol errors in a second. Errors: the number is below 0 or not finite.
pub fn error_rate(per_second: f64) -> Result<f64, String> {
    match per_second >= 0.0 && per_second.is_finite() {
        true => Ok(per_second),
        false => Err(format!(
            "{per_second} symbol errors per second: 0 or more are possible"
        )),
    }
}

/// Checks that a limit is below the capacity of a port's cable, or returns key and fault of the value.
pub fn check_limit(
    fabric: &Fabric,
    port: PortId,
    limit: CableLimit,
) -> Result<(), (&'static str, String)> {
    if limit == CableLimit::default() {
        let error = "a degraded cable has a lower width, speed or rate; none is given";
        return Err(("do", error.to_owned()));
    }
    let Some(link) = fabric.ports[port].link else {
        return Ok(());
    };
    let cable = fabric.links[link].kind;
    let is_lower = limit.width.is_some_and(|width| width < cable.width)
        || limit.speed.is_some_and(|speed| speed < cable.speed)
        || limit.rate.is_some_and(|rate| rate < cable.data_rate());
    if is_lower {
        return Ok(());
    }
    let name = fabric.port_name(port);
    let given = [
        limit.width.map(|width| ("width", width.to_string())),
        limit.speed.map(|speed| ("speed", speed.to_string())),
        limit.rate.map(|rate| ("rate", rate.to_string())),
    ];
    let given: Vec<_> = given.into_iter().flatten().collect();
    let key = given.first().map_or("do", |(key, _)| key);
    let given: Vec<&str> = given.iter().map(|(_, value)| value.as_str()).collect();
    let (given, rate) = (given.join(" "), cable.data_rate());
    let (width, speed) = (cable.width, cable.speed);
    let error =
        format!("{given} has no effect: the cable in {name} is {width} {speed} with {rate}");
    Err((key, error))
}
