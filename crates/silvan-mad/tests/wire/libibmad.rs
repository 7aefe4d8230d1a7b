//! libibmad as the second implementation: `vectors/libibmad.c` made bytes with one field set, of every
//! field that it knows.

use silvan_mad::congestion::{CongestionLog, ManagementAttribute};
use silvan_mad::performance::PerformanceAttribute;
use silvan_mad::smp::SmpAttribute;
use silvan_mad::{MAD_LEN, Packet};

use crate::from_hex;

const VECTORS: &str = include_str!("../vectors/libibmad.txt");

#[test]
fn every_field_stands_where_libibmad_puts_it() {
    let mut fields = 0;
    for line in VECTORS.lines() {
        let [attribute, field, value, digits] =
            line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let value = u64::from_str_radix(value.strip_prefix("0x").unwrap(), 16).unwrap();
        if attribute == "Mad" {
            assert_eq!(header_field(field, &from_hex(digits)), value, "{line}");
        } else {
            let (text, emitted) = decode(attribute, digits);
            assert!(emitted.starts_with(digits), "{line}: emitted {emitted}");
            assert_eq!(
                emitted.trim_end_matches('0'),
                digits.trim_end_matches('0'),
                "{line}"
            );
            check_text(&text, field, value);
        }
        fields += 1;
    }
    assert_eq!(fields, 1028, "lines in the file");
}

/// The attribute's text, and the bytes that it emits as digits.
fn decode(attribute: &str, digits: &str) -> (String, String) {
    let id_of = |name_of: fn(u16) -> Option<&'static str>| {
        (0..=0xff).find(|&id| name_of(id) == Some(attribute))
    };
    if let Some(id) = id_of(SmpAttribute::name_of) {
        let parsed = SmpAttribute::parse(id, &from_hex(digits));
        let mut bytes = [0xff; SmpAttribute::DATA_LEN];
        parsed.emit(&mut bytes);
        (parsed.to_string(), to_hex(&bytes))
    } else if let Some(id) = id_of(PerformanceAttribute::name_of) {
        let parsed = PerformanceAttribute::parse(id, &from_hex(digits));
        let mut bytes = [0xff; PerformanceAttribute::DATA_LEN];
        parsed.emit(&mut bytes);
        (parsed.to_string(), to_hex(&bytes))
    } else if let Some(id) = id_of(ManagementAttribute::name_of) {
        let parsed = ManagementAttribute::parse(id, &from_hex(digits));
        let mut bytes = [0xff; ManagementAttribute::DATA_LEN];
        parsed.emit(&mut bytes);
        (parsed.to_string(), to_hex(&bytes))
    } else {
        let log_type = match attribute {
            "SwitchLog" => 1,
            "CaLog" => 2,
            _ => panic!("unknown attribute {attribute}"),
        };
        let mut bytes: [u8; CongestionLog::LEN] = from_hex(digits);
        bytes[0] = log_type;
        let log = CongestionLog::parse(&bytes);
        let mut emitted = log.emit();
        assert_eq!(emitted[0], log_type);
        emitted[0] = 0;
        let text = log.to_string();
        (text.split_once(' ').unwrap().1.to_owned(), to_hex(&emitted))
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text shows this field with this value and nothing else: `lid=53`, `data=[0 0 53]` for
/// `data[2]`, `entries=[{} {lid=53}]` for `entries[1].lid`.
fn check_text(text: &str, field: &str, value: u64) {
    let (name, element) = match field.split_once('.') {
        Some((array, field)) => (array, Some(field)),
        None => (field, None),
    };
    let (name, index) = match name
        .strip_suffix(']')
        .map(|name| name.split_once('[').unwrap())
    {
        Some((name, index)) => (name, Some(index.parse::<usize>().unwrap())),
        None => (name, None),
    };
    let mut shown = text
        .strip_prefix(name)
        .and_then(|rest| rest.strip_prefix('='))
        .unwrap();
    if let Some(index) = index {
        let elements = shown
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap();
        let elements: Vec<_> = elements.split(' ').collect();
        assert_eq!(elements.len(), index + 1, "{field}: {text}");
        let (last, before) = elements.split_last().unwrap();
        assert!(
            before
                .iter()
                .all(|&element| matches!(element, "{}" | "0" | "0x0")
                    || element == "0x0000000000000000"),
            "{field}: {text}"
        );
        shown = last;
    }
    if let Some(element) = element {
        shown = shown
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
            .and_then(|rest| rest.strip_prefix(element))
            .and_then(|rest| rest.strip_prefix('='))
            .unwrap();
    }
    let shown = match shown {
        "true" => 1,
        // The only drawn code point that has a name.
        "empty" => 127,
        _ => match shown.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
            None => shown.parse().unwrap_or_else(|_| panic!("{field}: {text}")),
        },
    };
    assert_eq!(shown, value, "{field}: {text}");
}

fn header_field(field: &str, bytes: &[u8; MAD_LEN]) -> u64 {
    let packet = Packet::new(bytes);
    // Fields of directed routes lie where other classes have others.
    let mut directed = *bytes;
    directed[..3].copy_from_slice(&[1, 0x81, 1]);
    let route = || match silvan_mad::Mad::parse(&Packet::new(&directed))
        .unwrap()
        .body
    {
        silvan_mad::Body::Smp(silvan_mad::smp::Smp {
            route: silvan_mad::smp::SmpRoute::Directed(route),
            ..
        }) => route,
        other => panic!("{other:?}"),
    };
    match field {
        "method" => packet.method().code().into(),
        "class_version" => packet.class_version().into(),
        "class" => packet.class().code().into(),
        "base_version" => packet.base_version().into(),
        "status" => packet.status().as_u16().into(),
        "hop_count" => packet.hop_count().into(),
        "hop_pointer" => packet.hop_pointer().into(),
        "returning" => packet.is_returning().into(),
        "transaction_id" => packet.transaction_id(),
        "attribute_id" => packet.attribute_id().into(),
        "modifier" => packet.attribute_modifier().into(),
        "key" => packet.key(),
        "destination_lid" => route().destination_lid.as_u16().into(),
        "source_lid" => route().source_lid.as_u16().into(),
        _ => panic!("unknown field {field}"),
    }
}
