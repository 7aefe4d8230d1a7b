//! Lists of GUIDs for OpenSM's `--root_guid_file` and `--cn_guid_file`: `0x0002c90200423e70 spine-1` or `... #
//! spine-1`.

use std::collections::HashMap;

use silvan_core::{Guid, HostId, SwitchId};

use super::{ImportError, ImportWarning};
use crate::Fabric;

/// The switches of a list of node GUIDs, each once, with a warning of others; a bad line or no switch is an error.
pub fn root_switches(
    text: &str,
    fabric: &Fabric,
) -> Result<(Vec<SwitchId>, Vec<ImportWarning>), ImportError> {
    let switches: HashMap<Guid, SwitchId> = { fabric.switch_ids() }
        .map(|switch| (fabric.switch(switch).guid, switch))
        .collect();
    look_up(
        text,
        "switch",
        "list the node GUIDs of switches",
        |guid| switches.get(&guid).copied(),
        |_| None,
    )
}

/// The hosts of a list of port GUIDs, each once, with a warning of others; a bad line or no host is an error.
pub fn compute_hosts(
    text: &str,
    fabric: &Fabric,
) -> Result<(Vec<HostId>, Vec<ImportWarning>), ImportError> {
    let port_guid = |host: HostId| fabric.ports[fabric.host_port(host)].guid;
    let hosts: HashMap<Guid, HostId> = { fabric.host_ids() }
        .map(|host| (port_guid(host), host))
        .collect();
    let nodes: HashMap<Guid, HostId> = { fabric.host_ids() }
        .map(|host| (fabric.host(host).guid, host))
        .collect();
    let advice = |guid| {
        let host = *nodes.get(&guid)?;
        let (name, port) = (&fabric.host(host).name, port_guid(host));
        Some(format!(
            "it is the node GUID of {name:?}, whose port has {port}"
        ))
    };
    look_up(
        text,
        "host's port",
        "list the port GUIDs of hosts",
        |guid| hosts.get(&guid).copied(),
        advice,
    )
}

fn look_up<T: Copy + PartialEq>(
    text: &str,
    what: &str,
    hint: &str,
    find: impl Fn(Guid) -> Option<T>,
    advice: impl Fn(Guid) -> Option<String>,
) -> Result<(Vec<T>, Vec<ImportWarning>), ImportError> {
    let (mut found, mut warnings) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let content = line.split('#').next().unwrap_or_default();
        let Some(word) = content.split_whitespace().next() else {
            continue;
        };
        let guid: Guid = word.parse().map_err(|_| {
            let hint =
                "write one GUID in each line, such as 0x0002c90200423e70, and remarks behind a #";
            ImportError::new(number, format!("{word:?} is no GUID"), hint)
        })?;
        match find(guid) {
            Some(node) if found.contains(&node) => {}
            Some(node) => found.push(node),
            None => {
                let advice = advice(guid).map_or_else(String::new, |advice| format!("; {advice}"));
                warnings.push(ImportWarning {
                    line: number,
                    message: format!("{guid} is the GUID of no {what}, left out{advice}"),
                });
            }
        }
    }
    match found.is_empty() {
        true => Err(ImportError::new(
            None,
            format!("none of the GUIDs is that of a {what}"),
            hint,
        )),
        false => Ok((found, warnings)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a list that is refused is a failed test"
    )]

    use super::*;
    use crate::import::topology;
    use crate::testing::LINK;

    /// A leaf with two hosts, the second of which has another port GUID than its node's plus one.
    fn fabric() -> Fabric {
        let text = r#"
switchguid=0xa0
Switch 36 "S-00000000000000a0" # "leaf" base port 0 lid 6 lmc 0
[1] "H-00000000000000b0"[1](b1) # "node-1" lid 4 4xFDR
[2] "H-00000000000000c0"[1](cf) # "node-2" lid 5 4xFDR

caguid=0xb0
Ca 1 "H-00000000000000b0" # "node-1"
[1](b1) "S-00000000000000a0"[1] # lid 4 lmc 0 "leaf" lid 6 4xFDR

caguid=0xc0
Ca 1 "H-00000000000000c0" # "node-2"
[1](cf) "S-00000000000000a0"[2] # lid 5 lmc 0 "leaf" lid 6 4xFDR
"#;
        topology(text).unwrap().build(LINK).unwrap()
    }

    #[test]
    fn lists_name_switches_and_ports_of_hosts() {
        let fabric = fabric();
        let text = "# roots\r\n\n  0xa0 leaf # a switch\n0x00000000000000a0# again\n0xd0\n";
        let (switches, warnings) = root_switches(text, &fabric).unwrap();
        assert_eq!(switches, [SwitchId::new(0)]);
        let [warning] = warnings.as_slice() else {
            panic!("{warnings:?}");
        };
        let message = "0x00000000000000d0 is the GUID of no switch, left out";
        assert_eq!((warning.line, warning.message.as_str()), (5, message));
        let (hosts, warnings) = compute_hosts("0xcf\n0xb0\n0xb1", &fabric).unwrap();
        assert_eq!(hosts, [HostId::new(1), HostId::new(0)]);
        assert_eq!(
            warnings[0].message,
            "0x00000000000000b0 is the GUID of no host's port, left out; it is the node GUID of \"node-1\", whose port has \
             0x00000000000000b1"
        );
    }

    #[test]
    fn other_lines_are_refused_with_their_number() {
        let fabric = fabric();
        for (text, expected) in [
            ("0xa0\nleaf\n", "line 2: \"leaf\" is no GUID"),
            (
                "2c5eab030045f830",
                "line 1: \"2c5eab030045f830\" is no GUID",
            ),
            ("0xa0,0xb0", "line 1: \"0xa0,0xb0\" is no GUID"),
            ("# none\n", "none of the GUIDs is that of a switch"),
            ("0xb0", "none of the GUIDs is that of a switch"),
        ] {
            let error = root_switches(text, &fabric).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let error = compute_hosts("0xa0", &fabric).unwrap_err().to_string();
        assert!(
            error.starts_with("none of the GUIDs is that of a host's port"),
            "{error}"
        );
    }
}
