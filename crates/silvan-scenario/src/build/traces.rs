//! Files of traces that programs run, taken into the scenario.

use std::path::Path;
use std::sync::Arc;

use silvan_workload::programs::section::ProgramEntry;
use silvan_workload::programs::trace::{TraceError, TraceFormat, TracePlace, TraceSettings};
use silvan_workload::programs::{KindWork, Schedule};

use super::import::{in_bytes, read};
use super::{at, limits};
use crate::parsed::TrafficSection;
use crate::{KeyPath, ScenarioError};

/// The names of the files of each program's trace, for errors; none where the trace is given as text.
pub(crate) type TraceNames = Vec<Vec<String>>;

/// Replaces files of traces by their texts. `base` is the folder that paths are relative to.
pub(crate) fn import_traces(
    section: &mut TrafficSection,
    base: &Path,
) -> Result<TraceNames, ScenarioError> {
    let entries = section.program.iter_mut().enumerate();
    entries
        .map(|(index, entry)| match entry.kind.work() {
            KindWork::Trace(format) => {
                let key = at("traffic.program").index(index);
                import_trace(entry, format, &key, base)
            }
            KindWork::Repeat(_) | KindWork::Sizes | KindWork::Training => Ok(Vec::new()),
        })
        .collect()
}

fn import_trace(
    entry: &mut ProgramEntry,
    format: &dyn TraceFormat,
    key: &KeyPath,
    base: &Path,
) -> Result<Vec<String>, ScenarioError> {
    let (file, groups) = (entry.file.take(), entry.groups.take());
    let Some(file) = file else {
        return match (&entry.trace, groups) {
            (None, _) => {
                let error = ScenarioError::new(key.clone(), "this kind of program needs a trace");
                Err(error.with_hint("name it as file, or write its text as trace"))
            }
            (Some(_), Some(_)) => {
                let error = ScenarioError::new(key.key("groups"), "there is no file of a trace");
                Err(error.with_hint("name it as file"))
            }
            (Some(_), None) => Ok(Vec::new()),
        };
    };
    if entry.trace.is_some() {
        let error = ScenarioError::new(key.key("file"), "both a file and a text are given");
        return Err(error.with_hint("use file or trace"));
    }
    let file_key = key.key("file");
    let paths = match format.endings() {
        [] => vec![file],
        endings => rank_files(&file, base, endings, &file_key)?,
    };
    let (mut names, mut files) = (Vec::new(), Vec::new());
    let mut room = limits::FILE;
    for path in &paths {
        let (name, bytes) = in_bytes(path, base, &file_key, room)?;
        room = room.saturating_sub(silvan_core::Bytes::from_bytes(bytes.len() as u64));
        names.push(name);
        files.push(bytes);
    }
    let groups = match groups {
        None => None,
        Some(_) if format.endings().is_empty() => {
            let message = "this kind of program has no such parameter";
            let error = ScenarioError::new(key.key("groups"), message);
            return Err(error.with_hint("leave it out"));
        }
        Some(file) => {
            let (name, text) = read(&file, base, &key.key("groups"), limits::FILE)?;
            names.push(name);
            Some(text)
        }
    };
    let text = format.import(files, groups.as_deref());
    entry.trace = Some(text.map_err(|error| in_file(&names, &error, key))?);
    Ok(names)
}

/// The files `NAME.RANK.ENDING`, from rank 0 on.
fn rank_files(
    name: &str,
    base: &Path,
    endings: &[&str],
    key: &KeyPath,
) -> Result<Vec<String>, ScenarioError> {
    let exists = |rank: usize, ending: &str| {
        let file = format!("{name}.{rank}.{ending}");
        base.join(&file).exists().then_some(file)
    };
    let Some(ending) = endings.iter().find(|ending| exists(0, ending).is_some()) else {
        let path = base.join(name);
        let message = format!(
            "there is no {}.0.{}",
            path.display(),
            endings.join(" or .0.")
        );
        let error = ScenarioError::new(key.clone(), message);
        return Err(error.with_hint("name the files as NAME.RANK.et, and write NAME here"));
    };
    let files: Vec<String> = (0..).map_while(|rank| exists(rank, ending)).collect();
    match beyond(&base.join(name), files.len(), ending) {
        None => Ok(files),
        Some(rank) => {
            let message = format!(
                "there is a file of rank {rank}, but none of rank {}: {name}.{}.{ending}",
                files.len(),
                files.len()
            );
            let error = ScenarioError::new(key.clone(), message);
            Err(error.with_hint("every rank has a file, from 0 on"))
        }
    }
}

/// A rank beyond the first so many that has a file.
fn beyond(prefix: &Path, ranks: usize, ending: &str) -> Option<usize> {
    let start = format!("{}.", prefix.file_name()?.to_string_lossy());
    let folder = match prefix.parent()? {
        folder if folder.as_os_str().is_empty() => Path::new("."),
        folder => folder,
    };
    let entries = folder.read_dir().ok()?;
    let numbers = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name().to_string_lossy().into_owned();
        let middle = name.strip_prefix(&start)?.strip_suffix(ending)?;
        middle.strip_suffix('.')?.parse::<usize>().ok()
    });
    numbers.filter(|rank| *rank >= ranks).min()
}

/// The schedules of a program's trace.
pub(super) fn schedules(
    entry: &ProgramEntry,
    format: &dyn TraceFormat,
    settings: &TraceSettings,
    names: &[String],
    key: &KeyPath,
) -> Result<Vec<Arc<Schedule>>, ScenarioError> {
    let text = entry.trace.as_deref().unwrap_or_default();
    let schedules = format.schedules(text, settings);
    schedules.map_err(|error| in_file(names, &error, key))
}

/// An error of a file, or of the text in the scenario.
fn in_file(names: &[String], error: &TraceError, key: &KeyPath) -> ScenarioError {
    let place = match error.place {
        TracePlace::Byte(byte) => format!("byte {byte}: "),
        TracePlace::Line(line) if names.is_empty() => format!("line {line}: "),
        _ => String::new(),
    };
    let message = format!("{place}{error}");
    let Some(name) = names.get(error.file).or_else(|| names.last()) else {
        return ScenarioError::new(key.key("trace"), message).with_hint(error.hint);
    };
    let position = match error.place {
        TracePlace::Line(line) => Some((line as usize, 1)),
        _ => None,
    };
    ScenarioError::new(KeyPath::ROOT, message)
        .with_hint(error.hint)
        .at(name, position)
}
