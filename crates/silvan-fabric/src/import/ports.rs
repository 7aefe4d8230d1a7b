//! The output of `ibnetdiscover -p`: a line for each port.
//!
//! ```text
//! CA     4  1 0x0000000000100004 4x SDR - SW     6  1 0x0002c90200423e70 ( 'node-1' - 'leaf' )
//! SW     6 34 0x0002c90200423e70 4x SDR                                    'leaf'
//! ```
//!
//! Adapters have the port's GUID, so every adapter port is a host.

use std::collections::HashMap;

use silvan_core::{Guid, Lid};
use winnow::Parser;
use winnow::ascii::{dec_uint, space1};
use winnow::combinator::{alt, opt, preceded};
use winnow::token::{take_till, take_while};

use crate::import::assemble::{Record, RecordKind, RecordPort, assemble};
use crate::import::capture::{clean, is_of_terminal, left_out, or_other_tool};
use crate::import::line::{
    InvalidLids, Piece, is_message, known_rates, lines, prefixed_guid, stated_rate,
};
use crate::import::{ImportError, ImportedFabric};
use crate::{Speed, Width};

struct End<'t> {
    kind: RecordKind,
    lid: &'t str,
    port: u8,
    guid: Guid,
}

struct PortLine<'t> {
    local: End<'t>,
    rate: (&'t str, &'t str),
    peer: Option<End<'t>>,
    names: &'t str,
}

/// Reads the output of `ibnetdiscover -p`; a bad or contradictory line is an error.
pub fn ports(text: &str) -> Result<ImportedFabric, ImportError> {
    let text = clean(text);
    read(&text).map_err(|error| or_other_tool(error, &text, "ibnetdiscover -p"))
}

fn read(text: &str) -> Result<ImportedFabric, ImportError> {
    let mut records: Vec<Record> = Vec::new();
    let mut positions: HashMap<String, usize> = HashMap::new();
    let mut lids = InvalidLids::default();
    let mut warnings = Vec::new();
    for (number, line) in lines(text) {
        if is_message(line) {
            warnings.push(left_out("message", line, number));
            continue;
        }
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let Ok(parsed) = port_line(&mut line.trim_start()) else {
            // Names may look like a prompt: check lines only if they are no ports.
            if is_of_terminal(line) {
                warnings.push(left_out("line", line, number));
                continue;
            }
            return Err(ImportError::new(
                number,
                format!("{line:?} is not a port as ibnetdiscover -p prints them"),
                "lines look like \"SW 6 34 0x0002c90200423e70 4x SDR 'leaf'\"",
            ));
        };
        let (width, speed) = port_rate(&parsed, number)?;
        let lid = lids.unicast(parsed.local.lid, number);
        let id = record_id(&parsed.local);
        let position = *positions.entry(id.clone()).or_insert_with(|| {
            records.push(new_record(&parsed, id, lid, number));
            records.len() - 1
        });
        let record = &mut records[position];
        record.port_count = record.port_count.max(parsed.local.port);
        if let Some(peer) = &parsed.peer {
            let local = &parsed.local;
            record.ports.push(RecordPort {
                number: local.port,
                guid: (local.kind != RecordKind::Switch).then_some(local.guid),
                lid: lid.filter(|_| local.kind != RecordKind::Switch),
                peer: record_id(peer),
                peer_port: peer.port,
                width,
                speed,
                lacks_rate: width.is_none() || speed.is_none(),
                line: number,
            });
        }
    }
    warnings.extend(lids.warning());
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

fn end<'t>(input: &mut &'t str) -> Piece<End<'t>> {
    let kind = alt((
        "SW".value(RecordKind::Switch),
        "CA".value(RecordKind::Adapter),
        "RT".value(RecordKind::Router),
    ));
    (
        kind,
        preceded(space1, take_while(1.., ('0'..='9', '-'))),
        preceded(space1, dec_uint::<_, u8, _>),
        preceded(space1, prefixed_guid),
    )
        .map(|(kind, lid, port, guid)| End {
            kind,
            lid,
            port,
            guid,
        })
        .parse_next(input)
}

fn port_rate(
    line: &PortLine<'_>,
    number: usize,
) -> Result<(Option<Width>, Option<Speed>), ImportError> {
    if line.peer.is_none() {
        return Ok((None, None));
    }
    let text = format!("{}{}", line.rate.0, line.rate.1);
    stated_rate(&text).ok_or_else(|| {
        ImportError::new(
            number,
            format!("{text:?} is no known width and speed"),
            known_rates(),
        )
    })
}

fn record_id(end: &End) -> String {
    let kind = match end.kind {
        RecordKind::Switch => 'S',
        RecordKind::Adapter | RecordKind::Router => 'H',
    };
    format!("{kind}-{:016x}", end.guid.as_u64())
}

fn new_record(line: &PortLine<'_>, id: String, lid: Option<Lid>, number: usize) -> Record {
    let local = &line.local;
    let is_switch = local.kind == RecordKind::Switch;
    Record {
        kind: local.kind,
        name: own_name(line.names).unwrap_or(&id).to_owned(),
        id,
        guid: is_switch.then_some(local.guid),
        device: None,
        lid: lid.filter(|_| is_switch),
        port_count: local.port,
        line: number,
        ports: Vec::new(),
    }
}

/// First of `( 'name' - 'other' )`, or the only one of `'name'`.
fn own_name(names: &str) -> Option<&str> {
    let name = match names.strip_prefix("( '") {
        Some(both) => both.split_once("' - '")?.0,
        None => names.strip_prefix('\'')?.strip_suffix('\'')?,
    };
    Some(name.trim()).filter(|name| !name.is_empty())
}
