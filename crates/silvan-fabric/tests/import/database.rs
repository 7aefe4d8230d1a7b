//! The database of ibdiagnet. Oracle: the same network, read from the output of ibnetdiscover.

use std::collections::BTreeMap;
use std::fmt::Write;

use silvan_core::{Guid, Lid};
use silvan_fabric::import::{self, ImportedFabric};
use silvan_fabric::{Speed, Width};

use crate::{NETWORK, build, view};

fn width_code(width: Width) -> u64 {
    match width {
        Width::X1 => 1,
        Width::X2 => 16,
        Width::X4 => 2,
        Width::X8 => 4,
        Width::X12 => 8,
    }
}

fn speed_code(speed: Speed) -> u64 {
    match speed {
        Speed::Sdr => 1,
        Speed::Ddr => 2,
        Speed::Qdr => 4,
        Speed::Fdr => 256,
        Speed::Edr => 512,
        Speed::Hdr => 1024,
        Speed::Ndr => 2048,
        Speed::Fdr10 => 1 << 16,
        Speed::Xdr => 1 << 24,
    }
}

/// Writes a network as ibdiagnet does, as far as the importer reads it. Each adapter is one node with all its ports.
fn written(network: &ImportedFabric) -> String {
    let mut nodes = BTreeMap::new();
    let mut ports = String::new();
    let mut row =
        |guid: Guid, port_guid: Guid, port: u8, lid: Option<Lid>, width: u64, speed: u64| {
            let lid = lid.map_or(0, Lid::as_u16);
            let _ = writeln!(
                ports,
                "{guid},{port_guid},{port},0x0,{lid},{width},19,{speed},3841,4"
            );
        };
    let guid = |position: usize| network.nodes[position].guid.unwrap();
    let number = |position: usize, port: u8| {
        network.nodes[position]
            .adapter_port
            .map_or(port, |own| own.as_u8())
    };
    for node in &network.nodes {
        let name = node.name.split("/P").next().unwrap();
        let kind = if node.switch_ports.is_some() { 2 } else { 1 };
        let count = node.switch_ports.unwrap_or(2);
        let guid = node.guid.unwrap();
        nodes.insert(
            guid,
            format!("\"{name}\",{count},{kind},1,1,{guid},{guid},{guid},4113,1"),
        );
        if node.switch_ports.is_some() {
            row(guid, guid, 0, node.lid, 2, 1);
        }
    }
    let mut links = String::new();
    for cable in &network.cables {
        for (position, port) in [cable.from, cable.to] {
            let node = &network.nodes[position];
            let port_guid = node.port_guid.unwrap_or_else(|| guid(position));
            let width = width_code(cable.width.unwrap());
            let speed = speed_code(cable.speed.unwrap());
            row(
                guid(position),
                port_guid,
                number(position, port),
                node.lid,
                width,
                speed,
            );
        }
        let [from, to] = [cable.from, cable.to];
        let ends = [from, to].map(|(at, port)| format!("{},{}", guid(at), number(at, port)));
        let _ = writeln!(links, "{},{}", ends[0], ends[1]);
    }
    let nodes: String = nodes.into_values().map(|line| line + "\n").collect();
    format!(
        "# This database file was written by a test\n\n\
        START_NODES\nNodeDesc,NumPorts,NodeType,ClassVersion,BaseVersion,SystemImageGUID,NodeGUID,PortGUID,DeviceID,LocalPortNum\n\
        {nodes}END_NODES\n\n\
        START_PORTS\nNodeGuid,PortGuid,PortNum,GIDPrfx,LID,LinkWidthActv,LinkWidthSup,LinkSpeedActv,LinkSpeedSup,PortState\n\
        {ports}END_PORTS\n\n\
        START_LINKS\nNodeGuid1,PortNum1,NodeGuid2,PortNum2\n{links}END_LINKS\n"
    )
}

#[test]
fn the_database_describes_the_same_network() {
    let network = import::topology(NETWORK).unwrap();
    let database = import::database(&written(&network)).unwrap();
    assert_eq!(
        view(&build(&database.fabric), true),
        view(&build(&network), true)
    );
}

#[test]
fn both_ends_have_to_support_a_rate() {
    let network = import::topology(NETWORK).unwrap();
    let cable = &network.cables[0];
    let ends = [cable.from, cable.to].map(|(position, port)| {
        let node = &network.nodes[position];
        let number = node.adapter_port.map_or(port, |own| own.as_u8());
        (node.guid.unwrap(), number)
    });
    // 19 is 1x, 4x and 2x, 3841 SDR and FDR to NDR.
    let database = import::database(&written(&network)).unwrap();
    assert_eq!(database.best_rate(ends), Some((Width::X4, Speed::Ndr)));
    let lower = written(&network)
        .replacen(",19,", ",1,", 200)
        .replacen(",3841,", ",257,", 200);
    let database = import::database(&lower).unwrap();
    assert_eq!(database.best_rate(ends), Some((Width::X1, Speed::Fdr)));
    assert_eq!(database.best_rate([ends[0], (Guid::new(1), 1)]), None);
}

#[test]
fn a_link_that_is_listed_from_both_ends_is_one() {
    let network = import::topology(NETWORK).unwrap();
    let text = written(&network);
    let (start, links) = text.split_once("PortNum2\n").unwrap();
    let links = links.trim_end().strip_suffix("END_LINKS").unwrap();
    let turned: String = links
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            format!("{},{},{},{}\n", cells[2], cells[3], cells[0], cells[1])
        })
        .collect();
    let both = format!("{start}PortNum2\n{links}{turned}END_LINKS\n");
    let whole = import::database(&text).unwrap();
    assert_eq!(import::database(&both).unwrap(), whole);
}

/// Oracle: the whole file. One that is cut off, after any line or within it, is refused.
#[test]
fn a_database_that_is_cut_off_is_refused() {
    let text = written(&import::topology(NETWORK).unwrap());
    let end = text.rfind("END_LINKS").unwrap();
    for at in (0..end + 8).step_by(7) {
        let error = import::database(&text[..at]).unwrap_err();
        assert!(!error.message().is_empty() && !error.hint().is_empty());
    }
}

#[test]
fn what_contradicts_itself_is_named() {
    let text = written(&import::topology(NETWORK).unwrap());
    let refused = |text: &str| import::database(text).unwrap_err().to_string();
    let lines: Vec<&str> = text.lines().collect();
    let without = |start: &str| {
        let first = lines
            .iter()
            .position(|line| line.starts_with(start))
            .unwrap()
            + 2;
        let rest = lines.iter().enumerate().filter(|(at, _)| *at != first);
        rest.map(|(_, line)| format!("{line}\n"))
            .collect::<String>()
    };
    assert!(refused(&without("START_NODES")).contains("not in NODES"));
    assert!(refused(&text.replace("START_LINKS", "START_OTHERS")).contains("no section LINKS"));
    assert!(refused(&text.replace("PortNum2", "Port")).contains("LINKS has no column PortNum2"));
    let strange = text.replacen(",19,", ",19,7", usize::MAX);
    assert!(refused(&strange).contains("width and speed"));
    let doubled = text.replace(
        "END_PORTS",
        &format!(
            "{}\nEND_PORTS",
            lines[lines
                .iter()
                .position(|line| *line == "START_PORTS")
                .unwrap()
                + 2]
        ),
    );
    assert!(refused(&doubled).contains("second time"));
}
