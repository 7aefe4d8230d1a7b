use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use silvan_core::Span;
use silvan_workload::programs::section::ProgramEntry;
use silvan_workload::programs::trace::{TraceError, TraceFormat, TracePlace, TraceSettings};
use silvan_workload::programs::{KindWork, Work};

use super::import::{in_bytes, read};
use super::{at, limits};
use crate::parsed::TrafficSection;
use crate::{KeyPath, ScenarioError};

pub(crate) type TraceNames = Vec<Vec<String>>;

pub(crate) fn import_traces(
    section: &mut TrafficSection,
    base: &Path,
) -> Result<TraceNames, ScenarioError> {
    let entries = section.program.iter_mut().enumerate();
    entries
        .map(|(index, entry)| {
            let formats = entry.format.clone();
            match entry.kind.work(&formats) {
                KindWork::Trace(_, format) => {
                    let key = at("traffic.program").index(index);
                    import_trace(entry, format, &key, base)
                }
                KindWork::Repeat(_)
                | KindWork::Sizes
                | KindWork::Training
                | KindWork::Inference => Ok(Vec::new()),
            }
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

fn rank_files(
    name: &str,
    base: &Path,
    endings: &[&str],
    key: &KeyPath,
) -> Result<Vec<String>, ScenarioError> {
    let wrong = |message: String, hint: String| {
        Err(ScenarioError::new(key.clone(), message).with_hint(hint))
    };
    let path = base.join(name);
    let ranks = match named_ranks(&path, endings) {
        Ok(ranks) => ranks,
        Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
        Err(error) => {
            let message = format!("the folder of {} cannot be read: {error}", path.display());
            let hint = "paths are relative to the folder of the scenario";
            return wrong(message, hint.to_owned());
        }
    };
    let Some(first) = ranks.get(&0) else {
        let path = path.display();
        let message = format!("there is no {path}.0.{}", endings.join(" or .0."));
        let hint = "name the files as NAME.RANK.et, and write NAME here";
        return wrong(message, hint.to_owned());
    };
    let ending = first[0].ending;
    let mut files = Vec::with_capacity(ranks.len());
    for (rank, found) in &ranks {
        let expected = files.len() as u64;
        if let Some(odd) = found.iter().find(|one| one.number != rank.to_string()) {
            let message = format!(
                "{name}.{}.{} is no name of the file of a rank",
                odd.number, odd.ending
            );
            let hint = format!(
                "numbers of ranks have no sign and no zero before them: {name}.{rank}.{}",
                odd.ending
            );
            return wrong(message, hint);
        }
        if let [one, other, ..] = found.as_slice() {
            let message = format!(
                "rank {rank} has two files: {name}.{rank}.{} and {name}.{rank}.{}",
                one.ending, other.ending
            );
            let hint = format!(
                "keep those of one ending, and remove {name}.*.{} or {name}.*.{}",
                one.ending, other.ending
            );
            return wrong(message, hint);
        }
        if *rank != expected {
            let message = format!(
                "there is a file of rank {rank}, but none of rank {expected}: {name}.{expected}.{ending}"
            );
            return wrong(message, "every rank has a file, from 0 on".to_owned());
        }
        let other = found[0].ending;
        if other != ending {
            let message =
                format!("{name}.{rank}.{other} has another ending than {name}.0.{ending}");
            let hint = "write the files of all ranks in the same format";
            return wrong(message, hint.to_owned());
        }
        files.push(format!("{name}.{rank}.{ending}"));
    }
    Ok(files)
}

struct RankFile<'a> {
    number: String,
    ending: &'a str,
}

fn named_ranks<'a>(
    prefix: &Path,
    endings: &[&'a str],
) -> io::Result<BTreeMap<u64, Vec<RankFile<'a>>>> {
    let mut ranks: BTreeMap<u64, Vec<RankFile<'a>>> = BTreeMap::new();
    let (Some(name), Some(folder)) = (prefix.file_name(), prefix.parent()) else {
        return Ok(ranks);
    };
    let start = format!("{}.", name.to_string_lossy());
    let folder = match folder {
        folder if folder.as_os_str().is_empty() => Path::new("."),
        folder => folder,
    };
    for entry in folder.read_dir()? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Some((number, ending)) = name
            .strip_prefix(&start)
            .and_then(|rest| rest.split_once('.'))
        else {
            continue;
        };
        let Some(ending) = endings.iter().find(|known| **known == ending) else {
            continue;
        };
        let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = number.to_owned();
            let rank = digits.parse().unwrap_or(u64::MAX);
            ranks
                .entry(rank)
                .or_default()
                .push(RankFile { number, ending });
        }
    }
    for files in ranks.values_mut() {
        let place = |file: &RankFile<'_>| endings.iter().position(|ending| *ending == file.ending);
        files.sort_by(|one, other| (place(one), &one.number).cmp(&(place(other), &other.number)));
    }
    Ok(ranks)
}

pub(crate) fn warn_of_traces(section: &TrafficSection) -> Vec<String> {
    let entries = section.program.iter().enumerate();
    let warnings = entries.flat_map(|(index, entry)| {
        let KindWork::Trace(_, format) = entry.kind.work(&entry.format) else {
            return Vec::new();
        };
        let key = at("traffic.program").index(index);
        let warnings = format.warnings(entry.trace.as_deref().unwrap_or_default());
        let named = warnings.iter().map(|warning| format!("{key}: {warning}"));
        named.collect()
    });
    warnings.collect()
}

pub(super) fn traced(
    entry: &ProgramEntry,
    format: &dyn TraceFormat,
    settings: &TraceSettings,
    start: Span,
    names: &[String],
    key: &KeyPath,
) -> Result<Work, ScenarioError> {
    let text = entry.trace.as_deref().unwrap_or_default();
    let work = match format.stream(text, settings) {
        Ok(Some(stream)) => Ok(Work::Stream { stream, start }),
        Ok(None) => { format.schedules(text, settings) }
            .map(|schedules| Work::Schedules { schedules, start }),
        Err(error) => Err(error),
    };
    work.map_err(|error| in_file(names, &error, key))
}

fn in_file(names: &[String], error: &TraceError, key: &KeyPath) -> ScenarioError {
    let place = match error.place {
        TracePlace::Byte(byte) => format!("byte {byte}: "),
        TracePlace::Line(line) if names.is_empty() => format!("line {line}: "),
        _ => String::new(),
    };
    let message = format!("{place}{error}");
    if error.place == TracePlace::Ranks {
        return ScenarioError::new(key.key("ranks-per-host"), message).with_hint(error.hint);
    }
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
