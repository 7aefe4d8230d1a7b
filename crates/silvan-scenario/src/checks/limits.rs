//! Limits on what a scenario makes silvan read, build and store, far above what real fabrics need.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use silvan_core::{Bytes, Time};
use silvan_fabric::Fabric;
use silvan_workload::programs::Plan;
use silvan_workload::traffic::Traffic;

use super::at;
use crate::ScenarioError;
use crate::parsed::ScenarioFile;
use crate::sampling::Sampling;

pub(crate) const FILE: Bytes = Bytes::from_bytes(256 << 20);
/// Largest file of forwarding tables: OpenSM writes some 80 bytes for each entry.
pub(crate) const TABLES_FILE: Bytes = Bytes::from_bytes(1 << 30);
const SCENARIO_FILE: Bytes = Bytes::from_bytes(64 << 20);
const SERIES: Bytes = Bytes::from_bytes(4 << 30);
const RUNS: u64 = 100_000;
/// Longest name of a scenario, in bytes: file systems allow 255, and folder names add some.
const NAME: usize = 200;

const FIRST_PIECE: u64 = 64 << 10;

const ROW: u64 = 20;
const PORT_ROW: u64 = 52;
const FLOW_ROW: u64 = 256;
const FOREST_ROW: u64 = 68;
const TREE_PORT_ROW: u64 = 96;
const TREE_HOST_ROW: u64 = 28;

/// Reads the file of a scenario. Errors: it cannot be read, has more than 64 MiB, or is no UTF-8 text.
pub fn read_scenario(path: &Path) -> io::Result<String> {
    String::from_utf8(read_limited(path, SCENARIO_FILE)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text"))
}

/// Reads a file, device or open pipe of at most `limit` bytes; a named pipe is refused.
pub(super) fn read_limited(path: &Path, limit: Bytes) -> io::Result<Vec<u8>> {
    let limit = limit.as_u64();
    let is_open = ["/dev", "/proc"]
        .iter()
        .any(|start| path.starts_with(start));
    if !is_open && path.metadata()?.file_type().is_fifo() {
        let message = "it is a named pipe";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let too_large = |size: String| {
        let message = format!("it has {size} bytes; at most {limit} are read");
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    };
    if size > limit {
        return Err(too_large(size.to_string()));
    }
    let mut bytes = Vec::new();
    let mut room = size.max(FIRST_PIECE);
    // By doubling, but never beyond the limit: there may not be memory for twice of it.
    loop {
        let read = bytes.len() as u64;
        let piece = room.min(limit + 1 - read);
        bytes.try_reserve_exact(piece as usize)?;
        if (&mut file).take(piece).read_to_end(&mut bytes)? == 0 {
            return Ok(bytes);
        }
        if bytes.len() as u64 > limit {
            return Err(too_large(format!("more than {limit}")));
        }
        room = bytes.len() as u64;
    }
}

pub(crate) fn check_name(name: &str) -> Result<(), ScenarioError> {
    let refuse = |message: String| {
        let hint = format!(
            "it names folders: at most {NAME} bytes, no /, no \\\\, no control characters, no dot in front"
        );
        Err(ScenarioError::new(at("name"), message).with_hint(hint))
    };
    if name.len() > NAME {
        return refuse(format!(
            "it has {} bytes; at most {NAME} are allowed",
            name.len()
        ));
    }
    let is_wrong = |c: &char| matches!(c, '/' | '\\') || c.is_control();
    if let Some(wrong) = name.chars().find(is_wrong) {
        return refuse(format!("{name:?} contains {wrong:?}; it names a folder"));
    }
    match name.starts_with('.') {
        true => refuse(format!("{name:?} starts with a dot")),
        false => Ok(()),
    }
}

#[derive(Clone, Copy)]
struct SampledTables {
    bytes: u128,
    samples: u128,
}

fn series(file: &ScenarioFile, fabric: &Fabric, classes: usize) -> SampledTables {
    let duration = file.run.duration;
    let samples = u128::from(Sampling::of(&file.probe, &file.run).count(duration));
    let class_rows = if file.probe.classes {
        classes as u64
    } else {
        0
    };
    let ports = fabric.links.len() as u64 * 2;
    let port_rows = if file.probe.ports { ports } else { 0 };
    let of_sample = (fabric.host_count() as u64 + class_rows) * ROW + port_rows * PORT_ROW;
    SampledTables {
        bytes: samples * u128::from(of_sample),
        samples,
    }
}

fn forests(file: &ScenarioFile, fabric: &Fabric) -> Option<SampledTables> {
    let interval = file.probe.trees.as_ref()?.interval?;
    let samples = u128::from(file.run.duration.as_ps() / interval.as_ps().max(1));
    let port_vls = fabric.links.len() as u64 * 2 * u64::from(file.vl.lanes());
    let hosts = fabric.host_count() as u64;
    let of_sample = FOREST_ROW + port_vls * TREE_PORT_ROW + hosts * TREE_HOST_ROW;
    Some(SampledTables {
        bytes: samples * u128::from(of_sample),
        samples,
    })
}

/// Bytes of the time series of a run. Congestion trees are far smaller than they may be, and do not count.
pub(crate) fn series_bytes(file: &ScenarioFile, fabric: &Fabric, classes: usize) -> f64 {
    series(file, fabric, classes).bytes as f64
}

/// Checks the size of the tables that grow with the samples of a run with so many traffic classes.
pub(crate) fn check_series(
    file: &ScenarioFile,
    fabric: &Fabric,
    classes: usize,
) -> Result<(), ScenarioError> {
    let SampledTables { bytes, samples } = series(file, fabric, classes);
    check_size(bytes, samples, "probe.interval")?;
    match forests(file, fabric) {
        None => Ok(()),
        Some(forests) => check_size(
            bytes + forests.bytes,
            forests.samples,
            "probe.trees.interval",
        ),
    }
}

fn check_size(bytes: u128, samples: u128, key: &str) -> Result<(), ScenarioError> {
    let limit = SERIES.as_u64();
    if bytes <= u128::from(limit) {
        return Ok(());
    }
    let message =
        format!("{samples} samples take {bytes} bytes of memory; at most {limit} are supported");
    let hint = match key {
        "probe.interval" => {
            "lengthen it, or shorten run.duration; by default there are 100 to 1,000 samples"
        }
        _ => "lengthen it, or shorten run.duration",
    };
    Err(ScenarioError::new(at(key), message).with_hint(hint))
}

/// The number of flows beside programs that end the run is unknown.
pub(crate) fn check_flows(
    file: &ScenarioFile,
    offered: &Traffic,
    programs: Option<&Plan>,
) -> Result<(), ScenarioError> {
    if programs.is_some_and(Plan::ends_run) {
        return Ok(());
    }
    let flows = offered.expected_flows(Time::ZERO + file.run.duration);
    if flows <= SERIES.as_u64() / FLOW_ROW {
        return Ok(());
    }
    let message = format!(
        "some {flows} flows would start; at most {} are supported",
        SERIES.as_u64() / FLOW_ROW
    );
    let error = ScenarioError::new(at("traffic.flows"), message);
    Err(error.with_hint("shorten run.duration, set end or count, or choose larger sizes"))
}

pub(crate) fn check_runs(file: &ScenarioFile) -> Result<(), ScenarioError> {
    let counts = file.sweep.vary.values().map(|values| values.len() as u64);
    let seeds = u64::from(file.sweep.seeds.max(1));
    let runs = counts.fold(seeds, u64::saturating_mul);
    if runs <= RUNS {
        return Ok(());
    }
    let message = format!("{runs} runs; at most {RUNS} are supported");
    let key = if file.sweep.vary.is_empty() {
        "sweep.seeds"
    } else {
        "sweep"
    };
    let error = ScenarioError::new(at(key), message);
    Err(error.with_hint("use fewer values or seeds, or several sweeps"))
}
