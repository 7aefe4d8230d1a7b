//! SL to VL tables as OpenSM's `opensm-sl2vl.dump` has them.
//!
//! ```text
//! Switch 0x0002c90200423e70, base LID 6, "leaf-1"
//! #in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15
//! 1   3   : 0  1  0  1  0  1  0  1  4  5  4  5  4  5  4  5
//! ```
//!
//! The [writer](sl_to_vl_dump) joins ports, `1-4,7 2-3 : ...`, and omits port 0, which carries no data.

use std::fmt::{Display, Write};

use silvan_core::{HostId, Lid, NodeId, PortNumber, SwitchId};

use crate::Fabric;
use crate::import::ImportError;
use crate::import::lfts::Heading;
use crate::routing::{PortNumbers, SlToVlTables, Vls};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    Switch(SwitchId),
    Host(HostId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerKind {
    Switch,
    Host,
}

pub(crate) fn heading(line: &str) -> Option<(OwnerKind, Heading<'_>)> {
    let kinds = [
        ("Switch ", OwnerKind::Switch),
        ("Channel Adapter ", OwnerKind::Host),
        ("Router ", OwnerKind::Host),
    ];
    let (kind, rest) = kinds
        .into_iter()
        .find_map(|(word, kind)| Some((kind, line.strip_prefix(word)?)))?;
    let (guid, rest) = rest.split_once(", base LID ")?;
    let name = rest.split_once('"').and_then(|(_, rest)| {
        let (name, _) = rest.rsplit_once('"')?;
        Some(name)
    });
    let heading = Heading {
        guid: guid.parse().ok(),
        name,
    };
    Some((kind, heading))
}

pub(crate) fn read_line(
    lanes: &mut SlToVlTables,
    fabric: &Fabric,
    owner: Owner,
    line: &str,
    number: usize,
) -> Result<(), ImportError> {
    if !line.starts_with(|first: char| first.is_ascii_digit()) {
        return Ok(());
    }
    let Some((inputs, outputs, vls)) = entry(line) else {
        return Err(ImportError::new(
            number,
            format!("{line:?} is not ports and the VLs of 16 service levels"),
            "lines look like '1-4 3 : 0 1 0 1 ...', with VLs of 0 to 15; is the file cut off?",
        ));
    };
    let twice = |what: String| {
        let hint = "are two files joined? one table for each pair of ports";
        Err(ImportError::new(number, what, hint))
    };
    match owner {
        Owner::Host(host) => {
            if lanes.set_host(host, vls).is_some() {
                let name = &fabric.host(host).name;
                return twice(format!("a second SL to VL table for {name:?}"));
            }
        }
        Owner::Switch(switch) => {
            for (input, output) in pairs(&inputs, &outputs) {
                let node = fabric.switch(switch);
                let mut ports = [input, output].into_iter();
                if let Some(port) = ports.find(|port| node.port(*port).is_none()) {
                    return Err(ImportError::new(
                        number,
                        format!("{:?} has no port {port}", node.name),
                        "take tables and fabric at the same time",
                    ));
                }
                if lanes.set_switch(switch, input, output, vls).is_some() {
                    return twice(format!(
                        "a second SL to VL table of {:?} from port {input} to port {output}",
                        node.name
                    ));
                }
            }
        }
    }
    Ok(())
}

fn pairs(
    inputs: &PortNumbers,
    outputs: &PortNumbers,
) -> impl Iterator<Item = (PortNumber, PortNumber)> {
    let carries = |port: &PortNumber| port.as_u8() > 0;
    inputs.iter().filter(carries).flat_map(move |input| {
        let outputs = outputs.iter().filter(carries);
        outputs.map(move |output| (input, output))
    })
}

fn entry(line: &str) -> Option<(PortNumbers, PortNumbers, Vls)> {
    let (ports, vls) = line.split_once(':')?;
    let mut ports = ports.split_whitespace();
    let (inputs, outputs) = (ports.next()?.parse().ok()?, ports.next()?.parse().ok()?);
    if ports.next().is_some() {
        return None;
    }
    let vl = |word: &str| word.parse().ok().filter(|vl: &u8| *vl < 16);
    let vls: Option<Vec<u8>> = vls.split_whitespace().map(vl).collect();
    Some((inputs, outputs, vls?.try_into().ok()?))
}

/// SL to VL tables in this form, equal ones of a switch together. `lid_of` gives the base LID of a node.
pub fn sl_to_vl_dump(
    fabric: &Fabric,
    lanes: &SlToVlTables,
    lid_of: impl Fn(NodeId) -> Lid,
) -> String {
    let mut text = String::new();
    let mut section = |kind: &str, id: NodeId, lines: &[String]| {
        let node = &fabric.nodes[id];
        let _ = writeln!(
            text,
            "{kind} {}, base LID {}, \"{}\"\n#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15",
            fabric.ports[node.first_port].guid,
            lid_of(id),
            node.name
        );
        for line in lines {
            let _ = writeln!(text, "{line}");
        }
    };
    for switch in lanes.switches() {
        let groups = lanes.groups(switch);
        let lines = groups
            .iter()
            .map(|group| entry_text(&group.inputs, &group.outputs, &group.vls));
        let lines: Vec<String> = lines.collect();
        section("Switch", fabric.node_of_switch(switch), &lines);
    }
    for (host, vls) in lanes.hosts() {
        let line = entry_text(&0, &0, vls);
        section("Channel Adapter", fabric.node_of_host(host), &[line]);
    }
    text
}

fn entry_text(inputs: &dyn Display, outputs: &dyn Display, vls: &Vls) -> String {
    let vls = vls.map(|vl| format!("{vl:<2}"));
    let line = format!("{inputs:<3} {outputs:<3} : {}", vls.join(" "));
    line.trim_end().to_owned()
}
