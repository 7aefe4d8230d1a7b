//! Faults that come about at given instants of simulated time.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;
use silvan_core::document::{Document, DocumentError};
use silvan_core::{Rate, Span, Time};
use silvan_fabric::Fabric;

use super::{
    Fault, cable_limit, cabled_port, error_rate, host_named, lost_share, parse, switch_named,
};
use crate::clients::Clients;

/// A file of faults, each a table `[[fault]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultFile {
    fault: Vec<FaultEntry>,
}

/// What a fault does; which other keys it has depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Cut,
    Degrade,
    SymbolErrors,
    Slow,
    Reboot,
    Lose,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FaultEntry {
    #[serde(rename = "do")]
    kind: Kind,
    at: Span,
    #[serde(rename = "for", default)]
    lasts: Option<Span>,
    #[serde(default)]
    every: Option<Span>,
    #[serde(default)]
    port: Option<String>,
    #[serde(default)]
    host: Option<String>,
    #[serde(default)]
    switch: Option<String>,
    #[serde(default)]
    width: Option<String>,
    #[serde(default)]
    speed: Option<String>,
    #[serde(default)]
    rate: Option<String>,
    #[serde(default)]
    per_second: Option<f64>,
    #[serde(default)]
    percent: Option<f64>,
    #[serde(default)]
    seed: Option<u64>,
}

impl FaultEntry {
    /// The keys that are given besides those of all faults, with whether this kind of fault has them.
    fn keys(&self) -> [(&'static str, bool, bool); 9] {
        let kind = self.kind;
        let of_port = matches!(kind, Kind::Cut | Kind::Degrade | Kind::SymbolErrors);
        let (degrades, loses) = (kind == Kind::Degrade, kind == Kind::Lose);
        [
            ("port", self.port.is_some(), of_port),
            ("host", self.host.is_some(), kind == Kind::Slow),
            ("switch", self.switch.is_some(), kind == Kind::Reboot),
            ("width", self.width.is_some(), degrades),
            ("speed", self.speed.is_some(), degrades),
            ("rate", self.rate.is_some(), kind == Kind::Slow),
            (
                "per-second",
                self.per_second.is_some(),
                kind == Kind::SymbolErrors,
            ),
            ("percent", self.percent.is_some(), loses),
            ("seed", self.seed.is_some(), loses),
        ]
    }

    /// The fault, or the key that is wrong with what is wrong with it.
    fn fault(&self, fabric: &Fabric) -> Result<Fault, (&'static str, String)> {
        for (key, is_given, belongs) in self.keys() {
            if is_given && !belongs {
                return Err((key, "this kind of fault has no such key".to_owned()));
            }
        }
        let port = || {
            let name = required("port", self.port.as_deref())?;
            cabled_port(fabric, name).map_err(|error| ("port", error))
        };
        match self.kind {
            Kind::Cut => Ok(Fault::Cut(port()?)),
            Kind::Degrade => {
                let port = port()?;
                let (width, speed) = (self.width.as_deref(), self.speed.as_deref());
                Ok(Fault::Degrade(
                    port,
                    cable_limit(fabric, port, width, speed)?,
                ))
            }
            Kind::SymbolErrors => {
                let per_second = required("per-second", self.per_second)?;
                let errors = error_rate(per_second).map_err(|error| ("per-second", error))?;
                Ok(Fault::SymbolErrors(port()?, errors))
            }
            Kind::Slow => {
                let host = required("host", self.host.as_deref())?;
                let host = host_named(fabric, host).map_err(|error| ("host", error))?;
                let text = required("rate", self.rate.as_deref())?;
                let most = parse::<Rate>(text).map_err(|error| ("rate", error))?;
                Ok(Fault::Slow(host, Some(most)))
            }
            Kind::Reboot => {
                let switch = required("switch", self.switch.as_deref())?;
                let switch = switch_named(fabric, switch).map_err(|error| ("switch", error))?;
                Ok(Fault::Reboot(switch))
            }
            Kind::Lose => {
                let percent = required("percent", self.percent)?;
                let share = lost_share(percent).map_err(|error| ("percent", error))?;
                Ok(Fault::Lose(share, self.seed.unwrap_or(0)))
            }
        }
    }

    /// Times that cannot be, with their key.
    fn wrong_time(&self) -> Option<(&'static str, &'static str)> {
        match (self.every, self.lasts) {
            (Some(every), _) if every.is_zero() => Some(("every", "it is zero")),
            (_, Some(lasts)) if lasts.is_zero() => Some(("for", "it is zero")),
            (Some(every), Some(lasts)) if lasts >= every => {
                Some(("for", "the fault comes again before it has ended"))
            }
            (Some(_), None) => Some(("every", "a fault that does not end cannot come again")),
            _ => None,
        }
    }
}

/// What the value of a key can be.
fn hint(key: &str) -> &'static str {
    match key {
        "port" => "name a port with a cable, NODE:NUMBER, or a host",
        "host" | "switch" => "silvan show prints the names of the scenario",
        "width" => "give a width below that of the cable, such as \"1x\"",
        "speed" => "give a speed below that of the cable: SDR, DDR, QDR, FDR, EDR, HDR or NDR",
        "rate" => "give a rate with its unit, such as \"10 Gbit/s\"",
        "per-second" => "give a number of errors, such as 100",
        "percent" => "give a percentage, such as 10",
        "for" | "every" => {
            "give a time such as \"2 s\"; a fault lasts \"for\" less time than \"every\""
        }
        _ => "the guide page \"The live fabric\" lists all faults with their keys",
    }
}

fn required<T>(key: &'static str, value: Option<T>) -> Result<T, (&'static str, String)> {
    value.ok_or_else(|| ("do", format!("this kind of fault needs the key {key:?}")))
}

/// The text of a file of faults, and what errors call it.
#[derive(Clone, Debug)]
pub struct FaultSchedule {
    /// TOML.
    pub text: String,
    /// Name of the file.
    pub name: String,
}

/// A fault of the schedule.
#[derive(Clone, Debug)]
struct Planned {
    fault: Fault,
    lasts: Option<Span>,
    every: Option<Span>,
    /// What it does, in words.
    words: String,
}

/// The faults to come, in the order of their times.
#[derive(Debug, Default)]
pub(crate) struct Timetable {
    faults: Vec<Planned>,
    /// When, which fault, and whether it comes or goes. At the same time faults go before others come.
    due: BTreeSet<(Time, bool, usize)>,
}

impl Timetable {
    /// Reads the faults of a file, for a fabric that has these names.
    ///
    /// # Errors
    ///
    /// What is wrong first, with its line.
    pub fn new(schedule: &FaultSchedule, fabric: &Fabric) -> Result<Self, DocumentError> {
        let document = Document::parse(&schedule.text, &schedule.name)?;
        let file: FaultFile = document.read()?;
        let mut timetable = Self::default();
        for (index, entry) in file.fault.iter().enumerate() {
            let at = |key: &str| format!("fault.{index}.{key}");
            let fault = entry
                .fault(fabric)
                .map_err(|(key, error)| document.error(&at(key), error, hint(key)))?;
            if let Some((key, error)) = entry.wrong_time() {
                return Err(document.error(&at(key), error, hint(key)));
            }
            let place = [&entry.port, &entry.host, &entry.switch];
            let place = place.into_iter().flatten().next();
            timetable.due.insert((Time::ZERO + entry.at, true, index));
            timetable.faults.push(Planned {
                fault,
                lasts: entry.lasts,
                every: entry.every,
                words: words(entry.kind, place.map_or("", String::as_str)),
            });
        }
        Ok(timetable)
    }

    /// When the next fault comes or goes.
    pub fn next(&self) -> Option<Time> {
        self.due.first().map(|&(time, _, _)| time)
    }

    /// Lets come and go what is due by now. Simulated time runs at `scale` of the wall clock. Returns what has
    /// happened, in words.
    pub fn apply(&mut self, clients: &mut Clients, scale: f64) -> Vec<String> {
        let now = clients.subnet.now();
        let mut happened = Vec::new();
        while let Some(&(time, comes, index)) = self.due.first() {
            if time > now {
                break;
            }
            self.due.pop_first();
            let planned = &self.faults[index];
            let outcome = if comes {
                if let Some(lasts) = planned.lasts {
                    self.due.insert((time.saturating_add(lasts), false, index));
                }
                if let Some(every) = planned.every {
                    self.due.insert((time.saturating_add(every), true, index));
                }
                let seconds = planned.lasts.map_or(0.0, Span::as_secs_f64) / scale;
                let span = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
                clients.bring_about(planned.fault, span)
            } else {
                clients.repair(planned.fault);
                Ok(())
            };
            let change = match (outcome, comes) {
                (Err(reason), _) => format!("{} has no effect: {reason}", planned.words),
                (Ok(()), true) => planned.words.clone(),
                (Ok(()), false) => format!("{} ends", planned.words),
            };
            happened.push(format!("at {:.6} s: {change}", time.as_secs_f64()));
        }
        happened
    }
}

fn words(kind: Kind, place: &str) -> String {
    match kind {
        Kind::Cut => format!("cut of the cable in {place}"),
        Kind::Degrade => format!("degradation of the cable in {place}"),
        Kind::SymbolErrors => format!("symbol errors at {place}"),
        Kind::Slow => format!("slow receiver {place}"),
        Kind::Reboot => format!("reboot of {place}"),
        Kind::Lose => "loss of management datagrams".to_owned(),
    }
}
