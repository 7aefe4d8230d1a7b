//! The output of `ibnetdiscover`, and the net files of ibsim, with a line for each node and cabled port:
//!
//! ```text
//! switchguid=0x2c90200423e70(2c90200423e70)
//! Switch  36 "S-0002c90200423e70"         # "leaf" base port 0 lid 6 lmc 0
//! [1]     "H-0000000000100003"[1](100004)         # "node-1" lid 4 4xFDR
//! ```
//!
//! With `-f`, `s=4 w=2 v=4` follow the rate. ibdiagnet writes `switchguid=SYSTEM(NODE)` and `[1](1)`. ibsim has names
//! for ids, no LIDs, and `s=` and `w=` behind a port.

use silvan_core::{DeviceId, Guid};
use winnow::Parser;
use winnow::ascii::{alpha1, dec_uint, space0, space1};
use winnow::combinator::{opt, preceded};

use crate::import::assemble::{Record, RecordKind, RecordPort, assemble};
use crate::import::capture::{clean, is_of_terminal, left_out, or_other_tool};
use crate::import::line::{
    InvalidLids, Piece, bracketed_guid, bracketed_number, description, hex_guid, is_message,
    known_rates, lines, prefixed_guid, quoted, stated_rate,
};
use crate::import::{ImportError, ImportedFabric};
use crate::{Speed, Width};

/// Reads `ibnetdiscover`'s output or ibsim's net file; a bad or contradictory line is an error.
pub fn topology(text: &str) -> Result<ImportedFabric, ImportError> {
    let text = clean(text);
    read(&text).map_err(|error| or_other_tool(error, &text, "ibnetdiscover"))
}

#[derive(Default)]
struct Attributes {
    guid: Option<AttributeGuid>,
    vendor: Option<u32>,
    device: Option<u32>,
}

/// `0x2c90200423e70(2c90200423e70)`.
#[derive(Clone, Copy)]
struct AttributeGuid {
    guid: Guid,
    /// A port GUID by ibnetdiscover, a node GUID by ibdiagnet.
    is_followed: bool,
}

fn read(text: &str) -> Result<ImportedFabric, ImportError> {
    let mut records: Vec<Record> = Vec::new();
    let mut attributes = Attributes::default();
    let mut lids = InvalidLids::default();
    let mut in_record = false;
    let mut warnings = Vec::new();
    let mut unknown = None;
    for (number, line) in lines(text) {
        if is_message(line) {
            warnings.push(left_out("message", line, number));
            continue;
        }
        if is_of_terminal(line) {
            warnings.push(left_out("line", line, number));
            continue;
        }
        let (body, comment) = split_comment(line);
        if body.is_empty() {
            in_record &= !line.trim().is_empty() || !comment.is_empty();
        } else if body.starts_with('[') {
            let record = records.last_mut().filter(|_| in_record).ok_or_else(|| {
                ImportError::new(
                    number,
                    "a port without a node before it",
                    "a line such as 'Switch 36 \"S-...\"' opens the list of ports",
                )
            })?;
            let port = port(body, comment, number, record.kind, &mut lids)?;
            record.ports.push(port);
        } else if let Some((key, value)) = body.split_once('=') {
            attribute(&mut attributes, key.trim(), value.trim(), number)?;
        } else if !is_chassis_heading(body) {
            let taken = std::mem::take(&mut attributes);
            match node(body, comment, number, &taken, &mut lids) {
                Ok(record) => records.push(record),
                Err(error) if records.is_empty() && is_greeting(body) => {
                    warnings.push(left_out("line", line, number));
                    unknown.get_or_insert(error);
                    continue;
                }
                Err(error) => return Err(error),
            }
            in_record = true;
        }
    }
    if let Some(error) = unknown.filter(|_| records.is_empty()) {
        return Err(error);
    }
    warnings.extend(lids.warning());
    assemble(records, warnings)
}

fn is_greeting(line: &str) -> bool {
    let kind: String = line
        .chars()
        .take_while(|char| char.is_ascii_alphabetic())
        .collect();
    let kinds = ["switch", "ca", "hca", "rt", "router", "sw"];
    !line.contains('"') && !kinds.contains(&kind.to_ascii_lowercase().as_str())
}

fn attribute(
    attributes: &mut Attributes,
    key: &str,
    value: &str,
    number: usize,
) -> Result<(), ImportError> {
    let hex = || u32::from_str_radix(value.trim_start_matches("0x"), 16).ok();
    match key {
        "vendid" => attributes.vendor = hex(),
        "devid" => attributes.device = hex(),
        "switchguid" | "caguid" | "hcaguid" | "rtguid" => {
            attributes.guid = Some(attribute_guid(value).ok_or_else(|| {
                ImportError::new(
                    number,
                    format!("{key} is not followed by a GUID"),
                    "write e.g. switchguid=0x2c90200423e70",
                )
            })?);
        }
        _ => {}
    }
    Ok(())
}

/// Splits at the `#` of a comment, outside quotes.
fn split_comment(line: &str) -> (&str, &str) {
    let mut quoted = false;
    for (at, character) in line.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '#' if !quoted => return (line[..at].trim(), line[at + 1..].trim()),
            _ => {}
        }
    }
    (line.trim(), "")
}

fn is_chassis_heading(line: &str) -> bool {
    const HEADINGS: [&str; 5] = [
        "Chassis ",
        "Spine Nodes",
        "Line Nodes",
        "Chassis CAs",
        "Non-Chassis Nodes",
    ];
    HEADINGS
        .iter()
        .any(|heading| line.starts_with(heading.trim_end()))
}

fn attribute_guid(value: &str) -> Option<AttributeGuid> {
    let mut value = value.trim();
    let guid = prefixed_guid(&mut value).ok()?;
    Some(AttributeGuid {
        guid,
        is_followed: bracketed_guid(&mut value).is_ok(),
    })
}

/// That of the id in tools' files, because ibdiagnet writes the system's GUID first.
fn node_guid(attribute: Option<AttributeGuid>, id: &str) -> Option<Guid> {
    let of_id = guid_of_id(id);
    match attribute {
        Some(attribute) if attribute.is_followed => of_id.or(Some(attribute.guid)),
        Some(attribute) => Some(attribute.guid),
        None => of_id,
    }
}

/// `Switch 36 "S-0002c90200423e70"`, and its comment.
fn node(
    line: &str,
    comment: &str,
    number: usize,
    attributes: &Attributes,
    lids: &mut InvalidLids,
) -> Result<Record, ImportError> {
    let mut input = line;
    let parsed: Piece<(&str, u8, &str)> =
        (alpha1, preceded(space0, dec_uint), preceded(space0, quoted)).parse_next(&mut input);
    // `CA    24  1 0x0002c9030010e0ba 4x QDR - ...`: a port per line.
    let mut words = line.split_whitespace();
    let is_of_ports = matches!(words.next(), Some("CA" | "SW" | "RT"))
        && words.nth(1).is_some_and(|word| word.parse::<u8>().is_ok())
        && words.next().is_some_and(|guid| guid.starts_with("0x"));
    let hint = if is_of_ports {
        "this is what ibnetdiscover -p writes; run ibnetdiscover without -p"
    } else if line.starts_with('>') {
        "the text is quoted, as mail does; remove the > before each line"
    } else {
        "nodes are written as e.g. 'Switch 36 \"S-0002c90200423e70\"', with 1 to 254 ports"
    };
    let bad = |message: String| ImportError::new(number, message, hint);
    let (kind, ports, id) =
        parsed.map_err(|_| bad(format!("{line:?} is neither node, port nor attribute")))?;
    let kind = match kind.to_ascii_lowercase().as_str() {
        "switch" => RecordKind::Switch,
        "ca" | "hca" => RecordKind::Adapter,
        "rt" | "router" => RecordKind::Router,
        _ => return Err(bad(format!("unknown kind of node {kind:?}"))),
    };
    if ports == 0 || ports == 255 {
        return Err(bad(format!("{id:?} has {ports} ports")));
    }
    let name = description(comment)
        .filter(|name| !name.is_empty())
        .unwrap_or(id);
    // After the description, which may have any words.
    let facts = comment.rfind('"').map_or("", |end| &comment[end + 1..]);
    Ok(Record {
        kind,
        id: id.to_owned(),
        name: name.to_owned(),
        guid: node_guid(attributes.guid, id),
        device: attributes
            .vendor
            .zip(attributes.device)
            .map(|(vendor, device)| DeviceId { vendor, device }),
        lid: lids.read(facts, number),
        port_count: ports,
        line: number,
        ports: Vec::new(),
    })
}

/// As in `S-0002c90200423e70`.
fn guid_of_id(id: &str) -> Option<Guid> {
    let mut digits = id.strip_prefix(['S', 'H', 'R'])?.strip_prefix('-')?;
    let guid = hex_guid(&mut digits).ok()?;
    digits.is_empty().then_some(guid)
}

/// `[1](100004) [ext 3] "S-0002c90200423e70"[1](...) s=4 w=2`, and its comment.
fn port(
    line: &str,
    comment: &str,
    number: usize,
    kind: RecordKind,
    lids: &mut InvalidLids,
) -> Result<RecordPort, ImportError> {
    let mut input = line;
    let external = || {
        opt(preceded(
            space0,
            ("[ext", space1, dec_uint::<_, u32, _>, "]"),
        ))
    };
    let parsed: Piece<_> = (
        bracketed_number,
        external(),
        opt(bracketed_guid),
        preceded(space0, quoted),
        preceded(space0, bracketed_number),
        external(),
        opt(bracketed_guid),
    )
        .parse_next(&mut input);
    let (port, _, port_guid, peer, peer_port, _, _) = parsed.map_err(|_| {
        ImportError::new(
            number,
            format!("{line:?} is not a port and what it is cabled to"),
            "ports are written as e.g. '[1] \"H-0002c903000e0b72\"[1]'",
        )
    })?;
    let (mut width, mut speed) = options(input, number)?;
    let mut lacks_rate = false;
    if let Some(text) = rate_text(comment) {
        let (lanes, rate) = stated_rate(text).ok_or_else(|| {
            ImportError::new(
                number,
                format!("{text:?} is no known width and speed"),
                format!("write e.g. 4xFDR; {}", known_rates()),
            )
        })?;
        (width, speed) = (lanes.or(width), rate.or(speed));
        lacks_rate = width.is_none() || speed.is_none();
    } else if comment.contains('"') {
        lacks_rate = width.is_none() || speed.is_none();
    }
    // The LID before the description is this port's; only adapters have it.
    let own = comment.find('"').map_or(comment, |start| &comment[..start]);
    Ok(RecordPort {
        number: port,
        guid: port_guid,
        lid: match kind {
            RecordKind::Switch => None,
            RecordKind::Adapter | RecordKind::Router => lids.read(own, number),
        },
        peer: peer.to_owned(),
        peer_port,
        width,
        speed,
        lacks_rate,
        line: number,
    })
}

/// Width and speed: after description and LID, before the additions of `-f`.
fn rate_text(comment: &str) -> Option<&str> {
    let is_rate = |word: &&str| {
        word.contains('?')
            || word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('x')
    };
    match comment.rfind('"') {
        Some(end) => comment[end + 1..].split_whitespace().find(is_rate),
        None => comment.split_whitespace().last().filter(is_rate),
    }
}

/// `s=` and `w=` of ibsim: bits of LinkSpeedEnabled and LinkWidthEnabled; the highest counts.
fn options(text: &str, number: usize) -> Result<(Option<Width>, Option<Speed>), ImportError> {
    let (mut width, mut speed) = (None, None);
    for option in text.split_whitespace() {
        let bits = option.get(2..).and_then(|digits| digits.parse::<u8>().ok());
        match (option.get(..2), bits) {
            (Some("s="), Some(1..=7)) => {
                speed = bits.map(|bits| match bits {
                    4.. => Speed::Qdr,
                    2 | 3 => Speed::Ddr,
                    _ => Speed::Sdr,
                });
            }
            (Some("w="), Some(1..=31)) => {
                width = bits.map(|bits| match bits & 15 {
                    8.. => Width::X12,
                    4.. => Width::X8,
                    2 | 3 => Width::X4,
                    1 => Width::X1,
                    _ => Width::X2,
                });
            }
            _ => {
                return Err(ImportError::new(
                    number,
                    format!("{option:?} behind a port is not understood"),
                    "known are s=1 (SDR), s=2 (DDR), s=4 (QDR) and w=1, w=2 (4x), w=4 (8x), w=8 (12x)",
                ));
            }
        }
    }
    Ok((width, speed))
}
