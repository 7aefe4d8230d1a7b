//! The database of ibdiagnet, `ibdiagnet2.db_csv`: names in `NODES`, LIDs and rates in `PORTS`, cables in `LINKS`.

use std::collections::{BTreeMap, HashMap, HashSet};

use silvan_core::{DeviceId, Guid, Lid};

use crate::import::assemble::{Record, RecordKind, RecordPort, assemble};
use crate::import::{ImportError, ImportedFabric};
use crate::{Speed, Width};

const CUT: &str = "the file is cut off; run ibdiagnet again";

/// A section: names of columns, and rows of as many cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseSection<'t> {
    name: &'static str,
    heading: usize,
    columns: Vec<&'t str>,
    /// The rows, each with its line counted from 1.
    pub rows: Vec<(usize, Vec<&'t str>)>,
}

impl<'t> DatabaseSection<'t> {
    /// Returns true if a text has a section of this name.
    pub fn is_in(text: &str, name: &str) -> bool {
        text.lines().any(|line| is_mark(line, "START_", name))
    }

    /// The first section of a name, if any; an [`ImportError`] without an end, or for a row of other length.
    pub fn find(text: &'t str, name: &'static str) -> Result<Option<Self>, ImportError> {
        let mut lines = text
            .lines()
            .zip(1..)
            .skip_while(|(line, _)| !is_mark(line, "START_", name));
        if lines.next().is_none() {
            return Ok(None);
        }
        let Some((line, heading)) = lines.next() else {
            return Err(ImportError::new(None, format!("{name} is empty"), CUT));
        };
        let mut section = Self {
            name,
            heading,
            columns: cells(line),
            rows: Vec::new(),
        };
        for (line, number) in lines {
            if is_mark(line, "END_", name) {
                return Ok(Some(section));
            }
            let row = cells(line);
            if row.len() != section.columns.len() {
                let message = format!("{} cells instead of {}", row.len(), section.columns.len());
                return Err(ImportError::new(number, message, CUT));
            }
            section.rows.push((number, row));
        }
        Err(ImportError::new(None, format!("{name} has no end"), CUT))
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[&'t str] {
        &self.columns
    }

    /// Returns the position of a column; case does not matter. Errors: [`ImportError`] if there is no such column.
    pub fn column(&self, name: &str) -> Result<usize, ImportError> {
        let is_it = |column: &&str| column.eq_ignore_ascii_case(name);
        self.columns.iter().position(is_it).ok_or_else(|| {
            ImportError::new(
                self.heading,
                format!("{} has no column {name}", self.name),
                "give ibdiagnet2.db_csv as ibdiagnet has written it",
            )
        })
    }
}

fn is_mark(line: &str, prefix: &str, name: &str) -> bool {
    line.trim_end().strip_prefix(prefix) == Some(name)
}

/// Commas between quotes belong to a cell.
fn cells(line: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let cells = line.split(|char| {
        is_quoted ^= char == '"';
        char == ',' && !is_quoted
    });
    cells.map(|cell| cell.trim().trim_matches('"')).collect()
}

/// A number as ibdiagnet writes it: decimal, or hexadecimal with `0x`.
pub fn database_number(cell: &str) -> Option<u64> {
    match cell.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => cell.parse().ok(),
    }
}

/// Nodes and cables of a database, and what its ports support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedDatabase {
    /// Nodes and cables.
    pub fabric: ImportedFabric,
    /// LinkWidthSup and LinkSpeedSup, bits as in the file, by node GUID and port number.
    pub supported: BTreeMap<(Guid, u8), (u64, u64)>,
}

struct Port {
    guid: Option<Guid>,
    lid: Option<Lid>,
    width: Option<Width>,
    speed: Option<Speed>,
}

/// Reads nodes and cables of `ibdiagnet2.db_csv`; an [`ImportError`] for missing, cut or contradictory sections.
pub fn database(text: &str) -> Result<ImportedDatabase, ImportError> {
    let section = |name| {
        DatabaseSection::find(text, name)?.ok_or_else(|| {
            let hint = "the database of ibdiagnet has NODES, PORTS and LINKS; give the whole file";
            ImportError::new(None, format!("there is no section {name}"), hint)
        })
    };
    let (mut records, positions) = nodes(&section("NODES")?)?;
    let (ports, supported) = ports(&section("PORTS")?)?;
    for (position, record) in records.iter_mut().enumerate() {
        let own = positions[position];
        let of_switch = |number| ports.get(&(own, number)).and_then(|port| port.lid);
        if record.kind == RecordKind::Switch {
            record.lid = of_switch(0).or_else(|| of_switch(1));
        }
    }
    links(&section("LINKS")?, &mut records, &positions, &ports)?;
    Ok(ImportedDatabase {
        fabric: assemble(records, Vec::new())?,
        supported,
    })
}

fn broken(line: usize, what: &str, cell: &str) -> ImportError {
    ImportError::new(line, format!("{cell:?} is no {what}"), CUT)
}

fn guid(line: usize, cell: &str) -> Result<Guid, ImportError> {
    cell.parse().map_err(|_| broken(line, "GUID", cell))
}

fn port_number(line: usize, cell: &str) -> Result<u8, ImportError> {
    cell.parse().map_err(|_| broken(line, "port number", cell))
}

fn nodes(section: &DatabaseSection<'_>) -> Result<(Vec<Record>, Vec<Guid>), ImportError> {
    const SWITCH: &str = "2";
    let names = ["NodeDesc", "NumPorts", "NodeType", "NodeGUID"];
    let [name, ports, kind, own] = names.map(|name| section.column(name));
    let (name, ports, kind, own) = (name?, ports?, kind?, own?);
    let mut records = Vec::with_capacity(section.rows.len());
    let mut guids = Vec::with_capacity(section.rows.len());
    let ids = ["VendorID", "DeviceID"].map(|name| section.column(name).ok());
    for (line, row) in &section.rows {
        let guid = guid(*line, row[own])?;
        let id = format!("{guid}");
        records.push(Record {
            kind: match row[kind] {
                SWITCH => RecordKind::Switch,
                "1" => RecordKind::Adapter,
                "3" => RecordKind::Router,
                other => return Err(broken(*line, "NodeType", other)),
            },
            name: Some(row[name].to_owned())
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| id.clone()),
            id,
            guid: Some(guid),
            device: device(ids.map(|at| at.and_then(|at| database_number(row[at])))),
            lid: None,
            port_count: port_number(*line, row[ports])?,
            line: *line,
            ports: Vec::new(),
        });
        guids.push(guid);
    }
    Ok((records, guids))
}

fn device(ids: [Option<u64>; 2]) -> Option<DeviceId> {
    let [vendor, device] = ids.map(|id| id.and_then(|id| u32::try_from(id).ok()));
    vendor
        .zip(device)
        .map(|(vendor, device)| DeviceId { vendor, device })
}

type Ports = HashMap<(Guid, u8), Port>;
type Supported = BTreeMap<(Guid, u8), (u64, u64)>;

fn ports(section: &DatabaseSection<'_>) -> Result<(Ports, Supported), ImportError> {
    let names = [
        "NodeGuid",
        "PortGuid",
        "PortNum",
        "LID",
        "LinkWidthActv",
        "LinkSpeedActv",
    ];
    let [node, own, number, lid, width, speed] = names.map(|name| section.column(name));
    let (node, own, number, lid, width, speed) = (node?, own?, number?, lid?, width?, speed?);
    let supports = [
        section.column("LinkWidthSup").ok(),
        section.column("LinkSpeedSup").ok(),
    ];
    let mut ports = Ports::with_capacity(section.rows.len());
    let mut supported = Supported::new();
    for (line, row) in &section.rows {
        let key = (guid(*line, row[node])?, port_number(*line, row[number])?);
        let lid = database_number(row[lid]).and_then(|lid| u16::try_from(lid).ok());
        let port = Port {
            guid: guid(*line, row[own]).ok(),
            lid: lid.map(Lid::new).filter(|lid| lid.is_unicast()),
            width: database_number(row[width]).and_then(width_of),
            speed: database_number(row[speed]).and_then(speed_of),
        };
        if ports.insert(key, port).is_some() {
            let message = format!("port {} of {} is described a second time", key.1, key.0);
            return Err(ImportError::new(*line, message, "are two files joined?"));
        }
        let supports = supports.map(|at| at.and_then(|at| database_number(row[at])));
        if let [Some(width), Some(speed)] = supports {
            supported.insert(key, (width, speed));
        }
    }
    Ok((ports, supported))
}

fn links(
    section: &DatabaseSection<'_>,
    records: &mut [Record],
    guids: &[Guid],
    ports: &Ports,
) -> Result<(), ImportError> {
    let names = ["NodeGuid1", "PortNum1", "NodeGuid2", "PortNum2"];
    let [node, number, far, far_number] = names.map(|name| section.column(name));
    let (node, number, far, far_number) = (node?, number?, far?, far_number?);
    let positions: HashMap<Guid, usize> = guids.iter().copied().zip(0..).collect();
    let mut seen = HashSet::new();
    for (line, row) in &section.rows {
        let near = (guid(*line, row[node])?, port_number(*line, row[number])?);
        let far = (guid(*line, row[far])?, port_number(*line, row[far_number])?);
        // Some versions list a cable from both ends.
        if !seen.insert((near, far)) || seen.contains(&(far, near)) {
            continue;
        }
        for (end, other) in [(near, far), (far, near)] {
            let Some(&position) = positions.get(&end.0) else {
                let message = format!("{} is cabled, and not in NODES", end.0);
                return Err(ImportError::new(*line, message, CUT));
            };
            let Some(port) = ports.get(&end) else {
                let message = format!("port {} of {} is cabled, and not in PORTS", end.1, end.0);
                return Err(ImportError::new(*line, message, CUT));
            };
            if port.width.is_none() || port.speed.is_none() {
                let message = format!(
                    "width and speed of port {} of {} are not known",
                    end.1, end.0
                );
                let hint = "LinkWidthActv is 1, 2, 4, 8 or 16, LinkSpeedActv 1, 2, 4, 256 (FDR) to 2048 (NDR), 65536 (FDR10) or 16777216 (XDR)";
                return Err(ImportError::new(*line, message, hint));
            }
            let is_adapter = records[position].kind != RecordKind::Switch;
            records[position].ports.push(RecordPort {
                number: end.1,
                guid: port.guid.filter(|_| is_adapter),
                lid: port.lid.filter(|_| is_adapter),
                peer: format!("{}", other.0),
                peer_port: other.1,
                width: port.width,
                speed: port.speed,
                lacks_rate: false,
                line: *line,
            });
        }
    }
    Ok(())
}

/// LinkWidthActive (IBA volume 1, 14.2.5.6).
fn width_of(code: u64) -> Option<Width> {
    Some(match code {
        1 => Width::X1,
        2 => Width::X4,
        4 => Width::X8,
        8 => Width::X12,
        16 => Width::X2,
        _ => return None,
    })
}

/// LinkSpeedActive in the lowest byte, then LinkSpeedExtActive, FDR10 of one vendor, LinkSpeedExtActive2.
fn speed_of(code: u64) -> Option<Speed> {
    Some(match code {
        1 => Speed::Sdr,
        2 => Speed::Ddr,
        4 => Speed::Qdr,
        0x100 => Speed::Fdr,
        0x200 => Speed::Edr,
        0x400 => Speed::Hdr,
        0x800 => Speed::Ndr,
        0x1_0000 => Speed::Fdr10,
        0x100_0000 => Speed::Xdr,
        _ => return None,
    })
}

impl ImportedDatabase {
    /// The largest width and the highest speed that two ports both support; `None` where that is not known.
    pub fn best_rate(&self, ends: [(Guid, u8); 2]) -> Option<(Width, Speed)> {
        let [near, far] = ends.map(|end| self.supported.get(&end));
        let (near, far) = near.zip(far)?;
        let common = |bits: u64| (0..32).map(move |bit| bits & (1 << bit));
        let width = common(near.0 & far.0).filter_map(width_of).max()?;
        let speed = common(near.1 & far.1).filter_map(speed_of).max()?;
        Some((width, speed))
    }
}
