use std::path::Path;

use silvan_core::{Bytes, decode_text};
use silvan_fabric::Fabric;
use silvan_fabric::import::{ImportError, ImportWarning, ImportedFabric, ImportedNode, NodeKind};
use silvan_fabric::routing::Routing;
use silvan_workload::programs::section::ProgramEntry;
use silvan_workload::traffic::{HostRef, Selection};

use super::{at, levels, limits, linear};
use crate::parsed::{CableEntry, FabricSection, FileFormat, HostEntry, LinkSection, SwitchEntry};
use crate::{KeyPath, ScenarioError};

/// First bytes of files compressed by xz, gzip, zstd and bzip2.
const COMPRESSED: [&[u8]; 4] = [b"\xfd7zXZ\0", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh"];

/// Replaces a fabric's file by lists of its contents. Returns what is odd about it. `base` is the folder of paths.
pub(crate) fn import_fabric(
    section: &mut FabricSection,
    link: &LinkSection,
    base: &Path,
) -> Result<Vec<String>, ScenarioError> {
    let Some(file) = section.file.take() else {
        return match section.format {
            None => Ok(Vec::new()),
            Some(_) => {
                let error =
                    ScenarioError::new(at("fabric.format"), "there is no file of this format");
                Err(error.with_hint("name it as fabric.file"))
            }
        };
    };
    let key = at("fabric.file");
    if section.topology.is_some() || section.is_listed() {
        let message = "a file is given together with a generator or lists";
        return Err(ScenarioError::new(key, message).with_hint("use either of them"));
    }
    let (name, text) = read(&file, base, &key, limits::FILE)?;
    let import = match section.format.take() {
        None | Some(FileFormat::Ibnetdiscover | FileFormat::Ibsim) => {
            silvan_fabric::import::topology(&text)
        }
        Some(FileFormat::IbnetdiscoverPorts) => silvan_fabric::import::ports(&text),
    };
    let import = import
        .map_err(|error| in_file(&name, &error))?
        .without_aggregation();
    // Errors of the builder are about the file, not about the lists made from it.
    import.build(link.kind()).map_err(|error| {
        let hint = "correct the file, or leave the node out";
        ScenarioError::new(KeyPath::ROOT, error.to_string())
            .with_hint(hint)
            .at(&name, None)
    })?;
    fill_lists(section, &import);
    let warnings = import.warnings.iter();
    Ok(warnings
        .map(|warning| format!("{name}:{}: {}", warning.line, warning.message))
        .collect())
}

pub(crate) fn import_host_names(
    section: &mut FabricSection,
    base: &Path,
) -> Result<(), ScenarioError> {
    let key = at("fabric.hosts-file");
    let Some(file) = section.hosts_file.take() else {
        return Ok(());
    };
    if !section.host_names.is_empty() {
        let error = ScenarioError::new(key, "both a file and names are given");
        return Err(error.with_hint("use hosts-file or host-names"));
    }
    let (name, text) = read(&file, base, &key, limits::FILE)?;
    for (number, line) in lines(&text) {
        let mut words = line.split([',', ' ', '\t']).filter(|word| !word.is_empty());
        let (Some(host), Some(switch), None) = (words.next(), words.next(), words.next()) else {
            let message = format!("{line:?} is not a host and its switch");
            return Err(ScenarioError::new(KeyPath::ROOT, message)
                .with_hint("write e.g. node-1,group-00-leaf-03")
                .at(&name, Some((number, 1))));
        };
        section
            .host_names
            .push((host.to_owned(), switch.to_owned()));
    }
    Ok(())
}

pub(crate) fn import_program_hosts(
    programs: &mut [ProgramEntry],
    base: &Path,
) -> Result<(), ScenarioError> {
    for (index, entry) in programs.iter_mut().enumerate() {
        let Selection::File(file) = &entry.hosts else {
            continue;
        };
        let key = at("traffic.program").index(index).key("hosts").key("file");
        let (_, text) = read(file, base, &key, limits::FILE)?;
        let names = lines(&text).map(|(_, line)| HostRef::Name(line.to_owned()));
        entry.hosts = Selection::Given(names.collect());
    }
    Ok(())
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    (1..).zip(lines).filter(|(_, line)| !line.is_empty())
}

#[derive(Debug, Default)]
pub(crate) struct GuidLists {
    pub roots: Vec<String>,
    pub compute_nodes: Vec<String>,
}

/// Reads the files of roots and compute nodes and removes them: a scenario without routes needs neither.
pub(crate) fn import_guids(
    section: &mut FabricSection,
    fabric: &Fabric,
    base: &Path,
    warnings: &mut Vec<String>,
) -> Result<GuidLists, ScenarioError> {
    let (roots, compute) = (section.root_guid_file.take(), section.cn_guid_file.take());
    let mut lists = GuidLists::default();
    if section.routing == Some(Routing::None) {
        return Ok(lists);
    }
    let mut warn = |name: &str, odd: Vec<ImportWarning>| {
        let lines = odd.into_iter();
        warnings.extend(lines.map(|one| format!("{name}:{}: {}", one.line, one.message)));
    };
    if let Some(file) = roots {
        let (name, text) = read(&file, base, &at("fabric.root-guid-file"), limits::FILE)?;
        let found = silvan_fabric::import::root_switches(&text, fabric);
        let (switches, odd) = found.map_err(|error| in_file(&name, &error))?;
        let switches = switches.into_iter();
        lists.roots = switches
            .map(|one| fabric.switch(one).name.clone())
            .collect();
        warn(&name, odd);
    }
    if let Some(file) = compute {
        let (name, text) = read(&file, base, &at("fabric.cn-guid-file"), limits::FILE)?;
        let found = silvan_fabric::import::compute_hosts(&text, fabric);
        let (hosts, odd) = found.map_err(|error| in_file(&name, &error))?;
        let hosts = hosts.into_iter();
        lists.compute_nodes = hosts.map(|one| fabric.host(one).name.clone()).collect();
        warn(&name, odd);
    }
    Ok(lists)
}

pub(crate) fn import_tables(
    section: &mut FabricSection,
    fabric: &Fabric,
    base: &Path,
) -> Result<(), ScenarioError> {
    let key = at("fabric.routing-file");
    let routing = section.routing();
    if routing == Routing::None {
        section.routing_file = None;
        section.tables.clear();
        section.linear_tables.clear();
        section.path_sl.clear();
        section.sl_to_vl.clear();
        return Ok(());
    }
    match (routing, section.routing_file.take()) {
        (Routing::Lfts, Some(file)) => {
            let (name, text) = read(&file, base, &key, limits::TABLES_FILE)?;
            let routes = silvan_fabric::import::routes(&text, fabric)
                .map_err(|error| in_file(&name, &error))?;
            section.linear_tables = linear::encode(fabric, &routes.tables);
            section.path_sl = levels::encode_levels(fabric, &routes.levels);
            section.sl_to_vl = levels::encode_tables(fabric, &routes.lanes);
            section.routing = Some(Routing::Explicit);
            Ok(())
        }
        (Routing::Lfts, None) => {
            let error = ScenarioError::new(at("fabric.routing"), "lfts needs routing-file");
            Err(error.with_hint("name the output of dump_lfts as fabric.routing-file"))
        }
        (_, Some(_)) => {
            let error = ScenarioError::new(
                key,
                "there is a file of tables, but the routing does not read it",
            );
            Err(error.with_hint("set fabric.routing to \"lfts\""))
        }
        (_, None) => Ok(()),
    }
}

pub(super) fn read(
    file: &str,
    base: &Path,
    key: &KeyPath,
    limit: Bytes,
) -> Result<(String, String), ScenarioError> {
    let (name, bytes) = in_bytes(file, base, key, limit)?;
    Ok((name, decode_text(bytes)))
}

pub(super) fn in_bytes(
    file: &str,
    base: &Path,
    key: &KeyPath,
    limit: Bytes,
) -> Result<(String, Vec<u8>), ScenarioError> {
    let path = base.join(file);
    match limits::read_limited(&path, limit) {
        Ok(bytes) if COMPRESSED.iter().any(|start| bytes.starts_with(start)) => {
            let message = format!("{} is compressed", path.display());
            let hint = "unpack it first, e.g. with unxz, gunzip or unzstd";
            Err(ScenarioError::new(key.clone(), message).with_hint(hint))
        }
        Ok(bytes) => Ok((path.display().to_string(), bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
            let message = format!("{}: {error}", path.display());
            Err(ScenarioError::new(key.clone(), message).with_hint("name a smaller file"))
        }
        Err(error) => {
            let message = format!("{} cannot be read: {error}", path.display());
            let hint = match error.kind() {
                std::io::ErrorKind::InvalidInput => "name a regular file, or /dev/stdin",
                _ => "paths are relative to the folder of the scenario",
            };
            Err(ScenarioError::new(key.clone(), message).with_hint(hint))
        }
    }
}

fn in_file(name: &str, error: &ImportError) -> ScenarioError {
    ScenarioError::new(KeyPath::ROOT, error.message())
        .with_hint(error.hint())
        .at(name, error.line().map(|line| (line, 1)))
}

fn fill_lists(section: &mut FabricSection, import: &ImportedFabric) {
    for node in &import.nodes {
        match node.switch_ports {
            Some(ports) => section.switch.push(SwitchEntry {
                name: node.name.clone(),
                ports,
                lid: node.lid,
                guid: node.guid,
            }),
            None => section.host.push(HostEntry {
                name: node.name.clone(),
                lid: node.lid,
                guid: node.guid,
                port_guid: node.port_guid,
                adapter_port: node.adapter_port,
                router: node.kind == NodeKind::Router,
            }),
        }
    }
    let end = |(node, port): (usize, u8)| {
        let ImportedNode { name, .. } = &import.nodes[node];
        format!("{name}:{port}")
    };
    section.cable = import
        .cables
        .iter()
        .map(|cable| CableEntry {
            from: end(cable.from),
            to: end(cable.to),
            width: cable.width,
            speed: cable.speed,
            rate: None,
            length: None,
            latency: None,
        })
        .collect();
}
