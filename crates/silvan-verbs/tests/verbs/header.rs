//! Structures and numbers against the kernel's header, where it is installed.
//!
//! The header is read as text: members and their types give lengths and places, independent of this crate's declarations.

use std::collections::BTreeMap;

use silvan_verbs::abi::{connections, structures};

/// The kernel's header on Debian, Fedora and others.
const HEADERS: [&str; 3] = [
    "/usr/include/rdma/ib_user_verbs.h",
    "/usr/include/rdma/ib_user_sa.h",
    "/usr/include/rdma/rdma_user_cm.h",
];

/// Structures of the header that this crate does not need to know, whose members have types that the reader does not know.
fn length_of(kind: &str, known: &BTreeMap<String, Vec<(String, usize)>>) -> Option<usize> {
    Some(match kind {
        "__u8" => 1,
        "__u16" | "__be16" => 2,
        "__u32" | "__s32" | "__be32" => 4,
        "__u64" | "__aligned_u64" | "__be64" => 8,
        other => {
            let members = known.get(other.strip_prefix("struct ")?)?;
            members.iter().map(|member| member.1).sum()
        }
    })
}

/// Members and lengths of each structure without unions.
fn read_header(text: &str) -> BTreeMap<String, Vec<(String, usize)>> {
    let mut known = BTreeMap::new();
    let mut rest = text;
    while let Some(start) = rest.find("\nstruct ") {
        rest = &rest[start + 8..];
        let Some(open) = rest.find('{') else { break };
        let name = rest[..open].trim().to_owned();
        let Some(close) = rest.find("\n};") else {
            break;
        };
        let body = &rest[open + 1..close];
        if body.contains('{') {
            continue;
        }
        let mut members = Vec::new();
        let mut is_known = true;
        for line in strip_comments(body)
            .split(';')
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            let (kind, member) = line.rsplit_once(' ').unwrap_or(("", &line));
            let (member, count) = match member.split_once('[') {
                None => (member, 1),
                Some((member, count)) => match count.trim_end_matches(']') {
                    "" | "0" => (member, 0),
                    count => (member, count.parse().unwrap()),
                },
            };
            match length_of(kind, &known) {
                Some(length) if count > 0 => members.push((member.to_owned(), length * count)),
                Some(_) => {}
                // Lists of structures behind a command.
                None if count == 0 => {}
                None => is_known = false,
            }
        }
        if is_known {
            known.insert(name, members);
        }
    }
    known
}

fn strip_comments(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("/*") {
        plain.push_str(&rest[..start]);
        rest = rest[start..].split_once("*/").map_or("", |parts| parts.1);
    }
    plain + rest
}

#[test]
fn structures_have_the_members_of_the_header() {
    let texts: Result<Vec<String>, _> = HEADERS.iter().map(std::fs::read_to_string).collect();
    let Ok(texts) = texts else {
        // The checks of the project have linux-libc-dev, by build-essential.
        assert!(std::env::var_os("CI").is_none(), "{HEADERS:?} are missing");
        return;
    };
    let mut text = texts.concat();
    for (name, value) in [
        ("RDMA_MAX_PRIVATE_DATA", "256"),
        ("struct sockaddr_in6 ", "__u8 "),
    ] {
        text = text.replace(name, value);
    }
    // Members of an address have its length.
    for member in ["addr", "src_addr", "dst_addr"] {
        text = text.replace(&format!("__u8 {member};"), &format!("__u8 {member}[28];"));
    }
    let known = read_header(&text);
    // Structures with unions are flat here: the union's place has the name of its first member or of itself.
    let flat = ["ib_uverbs_wc", "ib_uverbs_send_wr"];
    let mut compared = 0;
    let declared = structures::DECLARED.iter().chain(connections::DECLARED);
    for (name, length, fields) in declared {
        if flat.contains(name) {
            continue;
        }
        let members = known
            .get(*name)
            .unwrap_or_else(|| panic!("the header lacks {name}"));
        let own: Vec<(String, usize)> = fields
            .iter()
            .map(|(field, size)| ((*field).to_owned(), *size))
            .collect();
        assert_eq!(&own, members, "{name}");
        assert_eq!(
            *length,
            members.iter().map(|member| member.1).sum::<usize>(),
            "{name}"
        );
        compared += 1;
    }
    assert!(compared > 70, "{compared}");
}

#[test]
fn structures_with_unions_have_their_published_lengths() {
    let length = |name| {
        structures::DECLARED
            .iter()
            .find(|entry| entry.0 == name)
            .unwrap()
            .1
    };
    assert_eq!(length("ib_uverbs_wc"), 48);
    // Eight bytes of identifier, 16 of fields, 32 of the largest part.
    assert_eq!(length("ib_uverbs_send_wr"), 56);
}
