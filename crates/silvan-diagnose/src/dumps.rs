//! Counters in files of the common tools.
//!
//! | file | recognised by |
//! |---|---|
//! | `perfquery`, `perfquery -x`, one after the other for many ports | `# Port counters: Lid 6 port 1` |
//! | `ibqueryerrors --data` | `GUID 0x... port 1: [PortXmitWait == 5]` |
//! | ibdiagnet's `.db_csv` | `START_PM_INFO` |
//!
//! Malformed lines are errors. Ports of another fabric are counted, and many of them are an error.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use silvan_core::growth::CounterValue;
use silvan_core::{
    GivenTicks, Guid, IdVec, Length, Lid, MonotonicTime, PortId, PortNumber, Rate, Span,
};
use silvan_fabric::import::{
    self, DatabaseSection, ImportError, ImportedDatabase, ImportedFabric, database_number,
};
use silvan_fabric::routing::{RoutingError, min_hop_balanced};
use silvan_fabric::{Fabric, ForwardingTables, LinkKind, Speed, Width};
use silvan_mad::CounterCapabilities;

use crate::counters::TrafficReading;
use crate::health::absent_devices;
use crate::map::SubnetMap;
use crate::observation::Observation;
use crate::report::{Input, Report};
use crate::tick::TickFacts;

const COUNTERS: &str = "PM_INFO";
const SECTIONS: [&str; 4] = ["NODES", "PORTS", "LINKS", COUNTERS];
/// A file of another fabric has at least this part of unknown ports.
const FOREIGN: f64 = 0.1;

/// A fault of a dump, its line and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpError {
    /// The line, counted from 1; `None` if the file as such is wrong.
    pub line: Option<usize>,
    /// The fault.
    pub message: String,
    /// The remedy.
    pub hint: Cow<'static, str>,
}

impl DumpError {
    fn new(
        line: impl Into<Option<usize>>,
        message: String,
        hint: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            line: line.into(),
            message,
            hint: hint.into(),
        }
    }
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for DumpError {}

/// Counters of a dump.
#[derive(Clone, Debug)]
pub struct Dump {
    /// By port; empty where the dump has nothing.
    pub readings: IdVec<PortId, TrafficReading>,
    /// Ports that the dump has and the fabric has not.
    pub foreign: usize,
}

struct Ports<'a> {
    fabric: &'a Fabric,
    by_guid: HashMap<(Guid, u8), PortId>,
    /// Ports of hosts whose node GUID the topology lacks; `None` for an ambiguous name.
    by_name: HashMap<(&'a str, u8), Option<PortId>>,
    at: MonotonicTime,
    dump: Dump,
    known: usize,
}

/// Reads a dump of any format, read at `at`; an error if it is of none, cut off, or of another fabric.
pub fn counters(text: &str, fabric: &Fabric, at: MonotonicTime) -> Result<Dump, DumpError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut ports = Ports::new(fabric, at);
    let is_perfquery = |line: &str| line.starts_with("# Port ") && line.contains("counters:");
    if DatabaseSection::is_in(text, COUNTERS) {
        csv(text, &mut ports)?;
    } else if text.lines().any(is_perfquery) {
        perfquery(text, &mut ports)?;
    } else if text
        .lines()
        .any(|line| line.trim_start().starts_with("GUID 0x"))
    {
        query_errors(text, &mut ports)?;
    } else {
        return Err(DumpError::new(
            None,
            "there are no counters in the file".to_owned(),
            "give the output of perfquery and perfquery -x of all ports, of ibqueryerrors --data, or ibdiagnet2.db_csv",
        ));
    }
    ports.finish()
}

impl<'a> Ports<'a> {
    fn new(fabric: &'a Fabric, at: MonotonicTime) -> Self {
        let mut by_guid = HashMap::new();
        let mut by_name = HashMap::new();
        for (id, port) in fabric.ports.iter_enumerated() {
            let node = &fabric.nodes[port.node];
            let number = node.adapter_port.unwrap_or(port.number).as_u8();
            by_guid.insert((node.guid, number), id);
            by_guid.entry((port.guid, number)).or_insert(id);
            if fabric.has_port_guid_only(port.node) {
                let known = by_name.entry((node.name.as_str(), number));
                known.and_modify(|port| *port = None).or_insert(Some(id));
            }
        }
        Self {
            fabric,
            by_guid,
            by_name,
            at,
            dump: Dump {
                readings: IdVec::filled(TrafficReading::default(), fabric.ports.len()),
                foreign: 0,
            },
            known: 0,
        }
    }

    fn reading(&mut self, port: Option<PortId>) -> Option<&mut TrafficReading> {
        let Some(port) = port else {
            self.dump.foreign += 1;
            return None;
        };
        self.known += 1;
        let reading = &mut self.dump.readings[port];
        reading.at = Some(self.at);
        Some(reading)
    }

    fn by_lid(&self, lid: Lid, number: u8) -> Option<PortId> {
        let node = &self.fabric.nodes[self.fabric.node_by_lid(lid)?];
        match node.adapter_port {
            Some(own) => (own.as_u8() == number).then_some(node.first_port),
            None => node.port(PortNumber::new(number)),
        }
    }

    fn finish(self) -> Result<Dump, DumpError> {
        let all = self.known + self.dump.foreign;
        if self.dump.foreign as f64 > FOREIGN * all as f64 {
            let message = format!(
                "{} of {all} ports of the counters are not in the topology",
                self.dump.foreign
            );
            let hint = "counters and topology must be of the same network; GUIDs or LIDs must agree (ibnetdiscover -p has no node GUIDs of adapters, ibnetdiscover has)";
            return Err(DumpError::new(None, message, hint));
        }
        Ok(self.dump)
    }
}

fn take(reading: &mut TrafficReading, name: &str, value: u64, bits: u8) {
    let field = match name {
        "PortXmitData" | "XmtData" => &mut reading.xmit_data,
        "PortRcvData" | "RcvData" => &mut reading.rcv_data,
        "PortXmitWait" | "XmtWait" => &mut reading.xmit_wait,
        "PortXmitTimeCong" => &mut reading.xmit_cong,
        "PortPktRcvFECN" | "PortRcvFECN" => &mut reading.fecn,
        "PortPktRcvBECN" | "PortRcvBECN" => &mut reading.becn,
        "LinkDownedCounter" | "LinkDowned" => &mut reading.link_downed,
        "SymbolErrorCounter" => &mut reading.symbol_errors,
        "PortRcvErrors" | "RcvErrors" => &mut reading.rcv_errors,
        "LinkErrorRecoveryCounter" | "LinkErrorRecovery" | "LinkRecovers" => {
            &mut reading.link_error_recovery
        }
        _ => return,
    };
    // PortCounters has 8 bits or 16 of them.
    let bits = match name {
        _ if bits != 32 => bits,
        "LinkDownedCounter" | "LinkDowned" => 8,
        "LinkErrorRecoveryCounter" | "LinkErrorRecovery" | "LinkRecovers" => 8,
        "SymbolErrorCounter" | "PortRcvErrors" | "RcvErrors" => 16,
        _ => bits,
    };
    if field.is_none_or(|old| old.bits <= bits) {
        *field = Some(CounterValue::new(value, bits));
    }
}

/// Masks of a heading, `(CapMask: 0x5A00 CapMask2: 0x0000002)`; old versions of perfquery print one or none.
fn capabilities(words: &[&str]) -> CounterCapabilities {
    let mask = |name: &str| {
        let at = words
            .iter()
            .position(|word| word.trim_start_matches('(') == name)?;
        let digits = words.get(at + 1)?.trim_end_matches(')');
        u32::from_str_radix(digits.strip_prefix("0x")?, 16).ok()
    };
    let first = mask("CapMask:").and_then(|mask| u16::try_from(mask).ok());
    first.map_or(CounterCapabilities::UNKNOWN, |first| {
        CounterCapabilities::of_masks(first, mask("CapMask2:").unwrap_or(0))
    })
}

/// Tools print 0 for counters that a device lacks.
fn has(device: CounterCapabilities, name: &str, is_wide: bool, value: u64) -> bool {
    let is_basic = ["Data", "Pkts"].iter().any(|end| name.ends_with(end));
    match (is_wide, name) {
        (true, _) if is_basic => device.extended,
        (true, _) => device.additional,
        (false, "PortXmitWait") => device.wait || value > 0,
        (false, _) => true,
    }
}

/// Values by which ibdiagnet says that a device lacks a counter.
const fn is_marker(value: u64, bits: u8) -> bool {
    value >= u64::MAX - 1 || (bits == 32 && value == 0xffff_fffe)
}

/// `# Port counters: Lid 6 port 1 (CapMask: 0x5A00)`, then `PortXmitWait:....................5`.
fn perfquery(text: &str, ports: &mut Ports<'_>) -> Result<(), DumpError> {
    // A number in a line that does not end may lack digits.
    let text = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut port = None;
    let mut bits = 32;
    let mut device = CounterCapabilities::UNKNOWN;
    for (line, number) in text.lines().zip(1..) {
        if let Some(heading) = line.strip_prefix("# Port ") {
            let words: Vec<&str> = heading.split_whitespace().collect();
            let after = |word: &str| {
                let at = words
                    .iter()
                    .position(|other| other.eq_ignore_ascii_case(word))?;
                words.get(at + 1)?.parse::<u16>().ok()
            };
            let (Some(lid), Some(select)) = (after("Lid"), after("port")) else {
                let hint = "headings look like \"# Port counters: Lid 6 port 1 (CapMask: 0x5A00)\"";
                let message = format!("{line:?} names no LID and port");
                return Err(DumpError::new(number, message, hint));
            };
            device = capabilities(&words);
            bits = if heading.starts_with("extended") {
                64
            } else {
                32
            };
            // Port 255 is the sum of all ports.
            port = u8::try_from(select)
                .ok()
                .filter(|&select| (1..=254).contains(&select))
                .map(|select| ports.by_lid(Lid::new(lid), select));
            if let Some(port) = port {
                ports.reading(port);
            }
            continue;
        }
        let Some(Some(port)) = port else { continue };
        let Some((name, dots)) = line.split_once(':') else {
            continue;
        };
        let digits = dots.trim_start_matches('.').trim();
        if let Ok(value) = digits.parse()
            && has(device, name, bits == 64, value)
        {
            take(&mut ports.dump.readings[port], name, value, bits);
        }
    }
    Ok(())
}

/// `   GUID 0x2c90200423e70 port 1: [PortXmitWait == 5] [PortXmitData == 72 (288.000B)]`.
fn query_errors(text: &str, ports: &mut Ports<'_>) -> Result<(), DumpError> {
    let mut name = "";
    for (line, number) in text.lines().zip(1..) {
        let Some(rest) = line.trim_start().strip_prefix("GUID ") else {
            // `Data Counters for 0x2c90200423e70 "leaf"`.
            let heading = line
                .split_once(" for ")
                .and_then(|(_, node)| node.split_once('"'));
            name = heading.map_or(name, |(_, quoted)| quoted.trim_end_matches('"').trim());
            continue;
        };
        let broken = || {
            let hint = "lines look like \"GUID 0x2c90200423e70 port 1: [PortXmitWait == 5]\"; is the file cut off?";
            DumpError::new(number, format!("{line:?} is no line of counters"), hint)
        };
        let (guid, rest) = rest.split_once(" port ").ok_or_else(broken)?;
        let (select, rest) = rest.split_once(':').ok_or_else(broken)?;
        let guid: Guid = guid.trim().parse().map_err(|_| broken())?;
        if select.trim() == "ALL" {
            continue;
        }
        let select: u8 = select.trim().parse().map_err(|_| broken())?;
        let by_name = || ports.by_name.get(&(name, select)).copied().flatten();
        let port = ports.by_guid.get(&(guid, select)).copied().or_else(by_name);
        let Some(reading) = ports.reading(port) else {
            continue;
        };
        for part in rest.split('[').skip(1) {
            let (name, value) = part.split_once(" == ").ok_or_else(broken)?;
            let (value, _) = value.split_once(']').ok_or_else(broken)?;
            let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
            let value: u64 = digits.parse().map_err(|_| broken())?;
            // ibqueryerrors prints counters of 64 bits if the port has them, without saying so.
            let is_wide = matches!(name.trim(), "PortXmitData" | "PortRcvData" | "PortXmitWait");
            let bits = if is_wide && value != u64::from(u32::MAX) {
                64
            } else {
                32
            };
            take(reading, name.trim(), value, bits);
        }
    }
    Ok(())
}

fn database_error(error: &ImportError) -> DumpError {
    let hint =
        "give ibdiagnet2.db_csv as ibdiagnet has written it; run it again if the file is cut off";
    DumpError::new(error.line(), error.message().to_owned(), hint)
}

/// The section `PM_INFO`: a line of names, then a line for each port.
fn csv(text: &str, ports: &mut Ports<'_>) -> Result<(), DumpError> {
    let found = DatabaseSection::find(text, COUNTERS).map_err(|error| database_error(&error))?;
    let Some(section) = found else { return Ok(()) };
    let column = |name| section.column(name).map_err(|error| database_error(&error));
    let (guid_column, port_column) = (column("NodeGUID")?, column("PortNumber")?);
    let port_guid_column = section.column("PortGUID").ok();
    for (number, cells) in &section.rows {
        let guid = cells[guid_column].parse::<Guid>().ok();
        let select = cells[port_column].parse::<u8>().ok();
        let Some(key) = guid.zip(select) else {
            let (guid, port) = (cells[guid_column], cells[port_column]);
            let message = format!("{guid:?} and {port:?} are no GUID and port");
            let hint = "the section PM_INFO of ibdiagnet2.db_csv has both; is it cut off?";
            return Err(DumpError::new(*number, message, hint));
        };
        // A topology by ports has the GUIDs of adapters' ports.
        let of_port = port_guid_column.and_then(|at| cells[at].parse::<Guid>().ok());
        let mut guids = [Some(key.0), of_port].into_iter().flatten();
        let port = guids.find_map(|guid| ports.by_guid.get(&(guid, key.1)).copied());
        let Some(reading) = ports.reading(port) else {
            continue;
        };
        for (name, cell) in section.columns().iter().zip(cells) {
            let wide = name.strip_suffix("Extended").or(name.strip_suffix("Ext"));
            let bits = if wide.is_some() { 64 } else { 32 };
            if let Some(value) = database_number(cell).filter(|&value| !is_marker(value, bits)) {
                take(reading, wide.unwrap_or(name), value, bits);
            }
        }
    }
    Ok(())
}

/// Files of a subnet, as text.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// Output of `ibnetdiscover`, with or without `-p`, or ibdiagnet's database.
    pub topology: &'a str,
    /// Forwarding tables, as `dump_lfts` writes them.
    pub routes: Option<&'a str>,
    /// Counters.
    pub before: &'a str,
    /// Counters, later.
    pub after: &'a str,
}

/// Role of an input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// The topology.
    Topology,
    /// The forwarding tables.
    Routes,
    /// The first counters.
    Before,
    /// The second counters.
    After,
}

/// A file and its oddity.
pub type Oddity = (FileRole, String);

/// Diagnosis of a subnet from files.
#[derive(Clone, Debug)]
pub struct DumpDiagnosis {
    /// The diagnosis.
    pub report: Report,
    /// The subnet.
    pub map: SubnetMap,
    /// The loads of its ports, as [`SubnetMap::loads`] writes them.
    pub loads: Vec<u8>,
    /// Oddities of the files.
    pub odd: Vec<Oddity>,
}

/// Diagnoses files read `interval` apart, or returns the fault of a file with its role. A port's unstated tick is its
/// device's.
pub fn diagnose_files(
    files: Files<'_>,
    interval: Span,
    given_ticks: &GivenTicks,
) -> Result<DumpDiagnosis, (FileRole, DumpError)> {
    let import_error = |role| {
        move |error: ImportError| {
            let hint = match error.hint() {
                "" => Cow::Borrowed("give the whole output of the tool, without changes"),
                hint => Cow::Owned(hint.to_owned()),
            };
            let message = error.message().to_owned();
            (role, DumpError::new(error.line(), message, hint))
        }
    };
    let (imported, database) =
        topology(files.topology).map_err(import_error(FileRole::Topology))?;
    let link = LinkKind::new(Width::X4, Speed::Sdr, Length::ZERO);
    let no_fabric = |what: String| {
        let hint = "give the output of ibnetdiscover of the whole subnet";
        (FileRole::Topology, DumpError::new(None, what, hint))
    };
    let fabric = imported
        .build(link)
        .map_err(|error| no_fabric(error.to_string()))?;
    let mut odd: Vec<Oddity> = imported
        .warnings
        .iter()
        .map(|warning| {
            (
                FileRole::Topology,
                format!("line {}: {}", warning.line, warning.message),
            )
        })
        .collect();
    let texts = [
        (FileRole::Topology, Some(files.topology)),
        (FileRole::Routes, files.routes),
        (FileRole::Before, Some(files.before)),
        (FileRole::After, Some(files.after)),
    ];
    for (role, text) in texts {
        let Some(text) = text.filter(|text| !text.ends_with('\n')) else {
            continue;
        };
        let line = text.lines().count();
        let what = format!("line {line}: it does not end, so that the file may be cut off");
        odd.push((role, what));
    }
    let tables = match files.routes {
        Some(text) => {
            let routes = import::routes(text, &fabric).map_err(import_error(FileRole::Routes))?;
            Some(routes.tables)
        }
        None => None,
    };
    let assumed =
        assumed(&fabric, tables.as_ref()).map_err(|error| no_fabric(error.to_string()))?;
    let start = MonotonicTime::ZERO;
    let mut read = |role, text, at| {
        let dump = counters(text, &fabric, at).map_err(|error| (role, error))?;
        if dump.foreign > 0 {
            odd.push((
                role,
                format!("{} ports are not in the topology", dump.foreign),
            ));
        }
        Ok(dump.readings)
    };
    let before = read(FileRole::Before, files.before, start)?;
    let after = read(FileRole::After, files.after, start.saturating_add(interval))?;
    let facts = TickFacts::of_files(&fabric, &imported);
    let known_devices = facts.devices.iter().copied().flatten();
    let absent = absent_devices(given_ticks, known_devices);
    odd.extend(absent.map(|one| (FileRole::Topology, one.what)));
    let ticks = facts.ticks(&fabric, given_ticks);
    let waits = |port: &PortId| {
        let counts = before[*port].xmit_wait.zip(after[*port].xmit_wait);
        fabric.ports[*port].link.is_some() && counts.is_some_and(|(before, after)| before != after)
    };
    let mut unclear = fabric.ports.ids().filter(|&port| ticks[port].is_none());
    if let Some(port) = unclear.find(waits) {
        let message = format!(
            "the file does not say the device of {:?}, so the tick of its PortXmitWait is not known",
            fabric.port_name(port).to_string()
        );
        let hint = "give --tick, such as 10.24 ns for a Switch-IB at EDR, or a topology with devices: ibnetdiscover without -p";
        return Err((FileRole::Topology, DumpError::new(None, message, hint)));
    }
    let observation = Observation::new(&fabric, &before, &after, ticks);
    let capable = match &database {
        Some(database) => supported_rates(&fabric, database),
        // The other files do not say what ports support.
        None => IdVec::filled(None, fabric.ports.len()),
    };
    let report = Report::new(Input {
        fabric: &fabric,
        tables: tables.as_ref(),
        assumed: &assumed,
        capable: &capable,
        observation: &observation,
        facts: None,
    });
    let map = SubnetMap::new(&fabric, tables.as_ref(), &capable);
    let loads = map.loads(&observation);
    Ok(DumpDiagnosis {
        report,
        map,
        loads,
        odd,
    })
}

fn topology(text: &str) -> Result<(ImportedFabric, Option<ImportedDatabase>), ImportError> {
    let is_by_port = |line: &str| {
        let mut words = line.split_whitespace();
        let kind = words.next();
        matches!(kind, Some("SW" | "CA" | "RT"))
            && words.next().is_some_and(|word| word.parse::<u16>().is_ok())
    };
    if SECTIONS
        .iter()
        .any(|name| DatabaseSection::is_in(text, name))
    {
        let database = import::database(text)?;
        return Ok((database.fabric.clone(), Some(database)));
    }
    let imported = match text.lines().any(is_by_port) {
        true => import::ports(text)?,
        false => import::topology(text)?,
    };
    Ok((imported, None))
}

/// Shortest paths, unless the tables are known.
pub fn assumed(
    fabric: &Fabric,
    known: Option<&ForwardingTables>,
) -> Result<ForwardingTables, RoutingError> {
    match known {
        Some(_) => Ok(ForwardingTables::new(fabric)),
        None => min_hop_balanced(fabric),
    }
}

fn supported_rates(fabric: &Fabric, database: &ImportedDatabase) -> IdVec<PortId, Option<Rate>> {
    let end = |port: PortId| {
        let node = &fabric.nodes[fabric.ports[port].node];
        let number = node.adapter_port.unwrap_or(fabric.ports[port].number);
        (node.guid, number.as_u8())
    };
    let rate = |port: PortId| {
        let peer = fabric.ports[port].peer?;
        let (width, speed) = database.best_rate([end(port), end(peer)])?;
        Some(LinkKind::new(width, speed, Length::ZERO).data_rate())
    };
    fabric.ports.ids().map(rate).collect()
}
