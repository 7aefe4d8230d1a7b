//! The output of `ibnetdiscover -p`: a line for each port.
//!
//! ```text
//! CA     4  1 0x0000000000100004 4x SDR - SW     6  1 0x0002c90200423e70 ( 'node-1' - 'leaf' )
//! SW     6 34 0x0002c90200423e70 4x SDR                                    'leaf'
//! ```
//!
//! Switches have their node GUID there, adapters that of the port, so every adapter port is a host of
//! its own.

use std::collections::HashMap;

use silvan_core::{Guid, Lid};
use winnow::Parser;
use winnow::ascii::{dec_uint, space1};
use winnow::combinator::{alt, opt, preceded};
use winnow::token::take_till;

use crate::import::assemble::{Record, RecordKind, RecordPort, assemble};
use crate::import::line::{Piece, is_message, known_rates, left_out, lines, prefixed_guid, rate};
use crate::import::{ImportError, ImportedFabric};
use crate::{Speed, Width};

/// One end of a cable.
struct End {
    kind: RecordKind,
    lid: Lid,
    port: u8,
    guid: Guid,
}

/// A line.
struct PortLine<'t> {
    local: End,
    rate: (&'t str, &'t str),
    peer: Option<End>,
    /// What follows: the names.
    names: &'t str,
}

/// Reads the output of `ibnetdiscover -p`.
///
/// # Errors
///
/// If a line cannot be understood, lines contradict each other, or a node is cabled but not described.
pub fn ports(text: &str) -> Result<ImportedFabric, ImportError> {
    let mut records: Vec<Record> = Vec::new();
    let mut positions: HashMap<String, usize> = HashMap::new();
    let mut warnings = Vec::new();
    for (number, line) in lines(text) {
        if is_message(line) {
            warnings.push(left_out(line, number));
            continue;
        }
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let parsed = port_line(&mut line.trim_start()).map_err(|_| {
            ImportError::new(
                number,
                format!("{line:?} is not a port as ibnetdiscover -p prints them"),
                "lines look like \"SW 6 34 0x0002c90200423e70 4x SDR 'leaf'\"",
            )
        })?;
        let (width, speed) = port_rate(&parsed, number)?;
        let id = record_id(&parsed.local);
        let position = *positions.entry(id.clone()).or_insert_with(|| {
            records.push(new_record(&parsed, id, number));
            records.len() - 1
        });
        let record = &mut records[position];
        record.port_count = record.port_count.max(parsed.local.port);
        if let Some(peer) = &parsed.peer {
            let local = &parsed.local;
            record.ports.push(RecordPort {
                number: local.port,
                guid: (local.kind == RecordKind::Adapter).then_some(local.guid),
                lid: (local.kind == RecordKind::Adapter && local.lid.is_unicast())
                    .then_some(local.lid),
                peer: record_id(peer),
                peer_port: peer.port,
                width,
                speed,
                line: number,
            });
        }
    }
    assemble(records, warnings)
}

fn port_line<'t>(input: &mut &'t str) -> Piece<PortLine<'t>> {
    let local = end(input)?;
    let width = preceded(space1, take_till(1.., ' ')).parse_next(input)?;
    let speed = preceded(space1, take_till(1.., [' '])).parse_next(input)?;
    let peer = opt(preceded((space1, '-', space1), end)).parse_next(input)?;
    Ok(PortLine {
        local,
        rate: (width, speed),
        peer,
        names: input.trim(),
    })
}

fn end(input: &mut &str) -> Piece<End> {
    let kind = alt((
        "SW".value(RecordKind::Switch),
        "CA".value(RecordKind::Adapter),
        "RT".value(RecordKind::Adapter),
    ));
    (
        kind,
        preceded(space1, dec_uint::<_, u16, _>),
        preceded(space1, dec_uint::<_, u8, _>),
        preceded(space1, prefixed_guid),
    )
        .map(|(kind, lid, port, guid)| End {
            kind,
            lid: Lid::new(lid),
            port,
            guid,
        })
        .parse_next(input)
}

/// Width and speed of a cabled port; what a port without a cable could do does not matter.
fn port_rate(
    line: &PortLine<'_>,
    number: usize,
) -> Result<(Option<Width>, Option<Speed>), ImportError> {
    if line.peer.is_none() {
        return Ok((None, None));
    }
    let text = format!("{}{}", line.rate.0, line.rate.1);
    let (width, speed) = rate(&text).ok_or_else(|| {
        ImportError::new(
            number,
            format!("{text:?} is no known width and speed"),
            known_rates(),
        )
    })?;
    Ok((Some(width), Some(speed)))
}

fn record_id(end: &End) -> String {
    let kind = match end.kind {
        RecordKind::Switch => 'S',
        RecordKind::Adapter => 'H',
    };
    format!("{kind}-{:016x}", end.guid.as_u64())
}

fn new_record(line: &PortLine<'_>, id: String, number: usize) -> Record {
    let local = &line.local;
    let is_switch = local.kind == RecordKind::Switch;
    Record {
        kind: local.kind,
        name: own_name(line.names).unwrap_or(&id).to_owned(),
        id,
        // The GUID of an adapter is not in the file.
        guid: is_switch.then_some(local.guid),
        lid: (is_switch && local.lid.is_unicast()).then_some(local.lid),
        port_count: local.port,
        line: number,
        ports: Vec::new(),
    }
}

/// The first of `( 'name' - 'other' )`, or the only one of `'name'`.
fn own_name(names: &str) -> Option<&str> {
    let name = match names.strip_prefix("( '") {
        Some(both) => both.split_once("' - '")?.0,
        None => names.strip_prefix('\'')?.strip_suffix('\'')?,
    };
    Some(name.trim()).filter(|name| !name.is_empty())
}
