use std::collections::HashMap;

use silvan_core::{DeviceId, Guid, Lid, PortNumber};

use crate::import::{
    ImportError, ImportWarning, ImportedCable, ImportedFabric, ImportedNode, NodeKind,
};
use crate::{Speed, Width};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Switch,
    Adapter,
    Router,
}

#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub kind: RecordKind,
    pub id: String,
    pub name: String,
    pub guid: Option<Guid>,
    pub device: Option<DeviceId>,
    pub lid: Option<Lid>,
    pub port_count: u8,
    pub line: usize,
    pub ports: Vec<RecordPort>,
}

#[derive(Clone, Debug)]
pub(crate) struct RecordPort {
    pub number: u8,
    pub guid: Option<Guid>,
    pub lid: Option<Lid>,
    pub peer: String,
    pub peer_port: u8,
    pub width: Option<Width>,
    pub speed: Option<Speed>,
    /// Width or speed is missing although the file has a place for it.
    pub lacks_rate: bool,
    pub line: usize,
}

/// Generated adapter GUIDs: locally administered, other than generated node GUIDs, by position of the record.
const ADAPTER_GUID: u64 = 0x02_53_57 << 40;

type End = (usize, u8);

struct Cable {
    ends: [End; 2],
    width: Option<Width>,
    speed: Option<Speed>,
    lacking: Option<String>,
    line: usize,
}

pub(crate) fn assemble(
    records: Vec<Record>,
    mut warnings: Vec<ImportWarning>,
) -> Result<ImportedFabric, ImportError> {
    if records.is_empty() {
        return Err(ImportError::new(
            None,
            "there is no node in the file",
            "give the output of ibnetdiscover or a net file of ibsim",
        ));
    }
    let by_id = index(&records)?;
    let cables = match_cables(&records, &by_id, &mut warnings)?;
    for cable in &cables {
        let is_unknown = cable.width.is_none() || cable.speed.is_none();
        if let Some(end) = cable.lacking.as_ref().filter(|_| is_unknown) {
            warnings.push(ImportWarning {
                line: cable.line,
                message: format!(
                    "width and speed of the cable at {end} are not known: the default of the link is taken"
                ),
            });
        }
    }
    warnings.sort_by_key(|warning| warning.line);
    let (nodes, positions) = make_nodes(&records, &cables);
    let mut fabric = ImportedFabric {
        nodes,
        cables: Vec::with_capacity(cables.len()),
        warnings,
    };
    for cable in cables {
        let [from, to] = cable.ends.map(|end| match records[end.0].kind {
            RecordKind::Switch => (positions[&(end.0, 0)], end.1),
            RecordKind::Adapter | RecordKind::Router => (positions[&end], 1),
        });
        fabric.cables.push(ImportedCable {
            from,
            to,
            width: cable.width,
            speed: cable.speed,
        });
    }
    Ok(fabric)
}

fn index(records: &[Record]) -> Result<HashMap<&str, usize>, ImportError> {
    let mut by_id = HashMap::with_capacity(records.len());
    for (position, record) in records.iter().enumerate() {
        if let Some(other) = by_id.insert(record.id.as_str(), position) {
            return Err(ImportError::new(
                record.line,
                format!(
                    "{:?} is described a second time, first in line {}",
                    record.id, records[other].line
                ),
                "are two files joined? ids must be unique",
            ));
        }
    }
    Ok(by_id)
}

fn match_cables(
    records: &[Record],
    by_id: &HashMap<&str, usize>,
    warnings: &mut Vec<ImportWarning>,
) -> Result<Vec<Cable>, ImportError> {
    let mut cables: Vec<Cable> = Vec::new();
    let mut used: HashMap<End, usize> = HashMap::new();
    for (position, record) in records.iter().enumerate() {
        for port in &record.ports {
            let peer = *by_id.get(port.peer.as_str()).ok_or_else(|| {
                ImportError::new(
                    port.line,
                    format!(
                        "{:?} is cabled to {:?}, which the file does not describe",
                        record.id, port.peer
                    ),
                    "is the file cut off? import the whole output",
                )
            })?;
            let ends = [(position, port.number), (peer, port.peer_port)];
            check_ends(records, ends, port.line)?;
            if position == peer {
                // The other end reports the loop, too; a port cabled to itself is a loopback plug.
                if port.number <= port.peer_port {
                    warnings.push(ImportWarning {
                        line: port.line,
                        message: format!(
                            "the cable from port {} of {:?} to its own port {} is left out",
                            port.number, record.id, port.peer_port
                        ),
                    });
                }
                continue;
            }
            let known = ends.map(|end| used.get(&end).copied());
            match known {
                [None, None] => {
                    used.extend(ends.map(|end| (end, cables.len())));
                    cables.push(Cable {
                        ends,
                        width: port.width,
                        speed: port.speed,
                        lacking: port
                            .lacks_rate
                            .then(|| format!("port {} of {:?}", port.number, record.id)),
                        line: port.line,
                    });
                }
                [Some(first), Some(second)]
                    if first == second && cables[first].ends[0] == ends[1] =>
                {
                    warnings.extend(complete(&mut cables[first], port, &record.id));
                }
                [first, second] => {
                    let other = first.or(second).map_or(0, |cable| cables[cable].line);
                    return Err(ImportError::new(
                        port.line,
                        format!(
                            "{}[{}] and {}[{}] cannot be cabled: line {other} has another cable for one of them",
                            record.id, port.number, port.peer, port.peer_port
                        ),
                        "both ends of a cable must name each other",
                    ));
                }
            }
        }
    }
    Ok(cables)
}

fn check_ends(records: &[Record], ends: [End; 2], line: usize) -> Result<(), ImportError> {
    for (position, number) in ends {
        let record = &records[position];
        if number == 0 || number > record.port_count {
            return Err(ImportError::new(
                line,
                format!(
                    "{:?} has ports 1 to {}, not {number}",
                    record.id, record.port_count
                ),
                "correct the port, or the number of ports of the node",
            ));
        }
    }
    let [a, b] = ends.map(|(position, _)| &records[position]);
    if ends[0].0 != ends[1].0 && a.kind != RecordKind::Switch && b.kind != RecordKind::Switch {
        return Err(ImportError::new(
            line,
            format!("a cable connects the adapters {:?} and {:?}", a.id, b.id),
            "adapters cabled back to back are not simulated; remove both from the file",
        ));
    }
    Ok(())
}

/// The link runs at the lower width and speed of its ends.
fn complete(cable: &mut Cable, port: &RecordPort, id: &str) -> Option<ImportWarning> {
    let lower_width = lower(cable.width, port.width);
    let lower_speed = lower(cable.speed, port.speed);
    let differ = cable.width.zip(port.width).is_some_and(|(a, b)| a != b)
        || cable.speed.zip(port.speed).is_some_and(|(a, b)| a != b);
    let name = |width: Option<Width>, speed: Option<Speed>| {
        let width = width.map_or("", Width::name);
        format!("{width}{}", speed.map_or("", Speed::name))
    };
    let warning = differ.then(|| ImportWarning {
        line: port.line,
        message: format!(
            "the cable at port {} of {id:?} is {} here and {} in line {}: {} is taken",
            port.number,
            name(port.width, port.speed),
            name(cable.width, cable.speed),
            cable.line,
            name(lower_width, lower_speed),
        ),
    });
    (cable.width, cable.speed) = (lower_width, lower_speed);
    warning
}

fn lower<T: Ord + Copy>(first: Option<T>, second: Option<T>) -> Option<T> {
    match (first, second) {
        (Some(first), Some(second)) => Some(first.min(second)),
        _ => first.or(second),
    }
}

fn make_nodes(records: &[Record], cables: &[Cable]) -> (Vec<ImportedNode>, HashMap<End, usize>) {
    let mut cabled: Vec<Vec<u8>> = vec![Vec::new(); records.len()];
    for (position, number) in cables.iter().flat_map(|cable| cable.ends) {
        cabled[position].push(number);
    }
    let mut nodes: Vec<(ImportedNode, &str)> = Vec::new();
    let mut positions = HashMap::new();
    for (position, record) in records.iter().enumerate() {
        if record.kind == RecordKind::Switch {
            positions.insert((position, 0), nodes.len());
            let node = ImportedNode {
                name: record.name.clone(),
                kind: NodeKind::Switch,
                device: record.device,
                line: record.line,
                switch_ports: Some(record.port_count),
                guid: record.guid,
                port_guid: None,
                lid: record.lid,
                adapter_port: None,
            };
            nodes.push((node, &record.id));
            continue;
        }
        cabled[position].sort_unstable();
        // Ports of an adapter share its GUID; net files may have none.
        let is_split = cabled[position].len() > 1;
        let guid = record.guid.or_else(|| {
            let has_port_guids = record.ports.iter().any(|port| port.guid.is_some());
            (is_split && !has_port_guids).then(|| Guid::new(ADAPTER_GUID | (position as u64) << 8))
        });
        let is_router = record.kind == RecordKind::Router;
        let kind = NodeKind::of_adapter(is_router, &record.name, record.device);
        for &number in &cabled[position] {
            positions.insert((position, number), nodes.len());
            let port = record.ports.iter().find(|port| port.number == number);
            let name = match cabled[position].len() {
                1 => record.name.clone(),
                _ => format!("{}/P{number}", record.name),
            };
            let node = ImportedNode {
                name,
                kind,
                device: record.device,
                line: record.line,
                switch_ports: None,
                guid,
                port_guid: port.and_then(|port| port.guid),
                lid: port.and_then(|port| port.lid),
                adapter_port: Some(PortNumber::new(number)),
            };
            nodes.push((node, &record.id));
        }
    }
    (make_names_unique(nodes), positions)
}

fn make_names_unique(nodes: Vec<(ImportedNode, &str)>) -> Vec<ImportedNode> {
    let mut count: HashMap<String, usize> = HashMap::with_capacity(nodes.len());
    for (node, _) in &nodes {
        *count.entry(node.name.clone()).or_default() += 1;
    }
    let nodes = nodes.into_iter().map(|(mut node, id)| {
        if count[&node.name] > 1 {
            let guid = node.port_guid.or(node.guid);
            let mark = guid.map_or_else(|| id.to_owned(), |guid| guid.to_string());
            node.name = format!("{} ({mark})", node.name);
        }
        node
    });
    nodes.collect()
}
