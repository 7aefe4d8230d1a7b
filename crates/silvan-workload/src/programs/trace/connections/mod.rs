//! Connection matrices of htsim: lines such as `0->1 id 1 start 0 size 2000000 send_done_trigger 1` and `trigger id 1
//! oneshot`.
//!
//! Starts are ps (csg-htsim) or us (uet-htsim), sizes bytes. A connection writes into the other node's memory. Triggers
//! act outside the network, for sender and receiver at once: a `oneshot` at its activation, a `barrier` at its
//! `count`-th.

mod triggers;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Span, decode_text};

use super::{LONGEST, MOST_BYTES, MOST_RANKS, TraceError, TraceFormat, TraceSettings, only};
use crate::programs::draft::{COMPUTE, Draft, MESSAGES};
use crate::programs::schedule::{Action, Schedule};
use triggers::Triggers;

/// The format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Connections {
    /// Unit of the starts. Default: `ps`; a file whose starts are all below 1 ns needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_unit: Option<StartUnit>,
}

impl Connections {
    /// The default keys.
    pub const DEFAULT: Self = Self { start_unit: None };
}

impl Default for Connections {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Unit of the starts of a connection matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartUnit {
    /// Picoseconds, as csg-htsim reads them.
    Ps,
    /// Nanoseconds.
    Ns,
    /// Microseconds, as uet-htsim reads them.
    Us,
}

impl StartUnit {
    fn as_ps(self) -> f64 {
        match self {
            Self::Ps => 1.0,
            Self::Ns => 1e3,
            Self::Us => 1e6,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ps => "picoseconds",
            Self::Ns => "nanoseconds",
            Self::Us => "microseconds",
        }
    }
}

impl TraceFormat for Connections {
    fn import(&self, files: Vec<Vec<u8>>, _groups: Option<&str>) -> Result<String, TraceError> {
        Ok(decode_text(only(files)))
    }

    fn schedules(
        &self,
        text: &str,
        _settings: &TraceSettings,
    ) -> Result<Vec<Arc<Schedule>>, TraceError> {
        build(&read(text, self.start_unit)?)
    }
}

#[derive(Clone, Copy, Debug)]
enum Start {
    At(Span),
    After(u32),
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    line: u32,
    from: u32,
    to: u32,
    bytes: u64,
    start: Start,
    is_later: bool,
    fires: [Option<u32>; 2],
}

#[derive(Clone, Copy, Debug)]
struct Trigger {
    line: u32,
    count: u64,
    /// Fires at each activation, not only the first.
    is_multishot: bool,
}

#[derive(Debug, Default)]
struct Matrix {
    nodes: u32,
    connections: Vec<Connection>,
    triggers: BTreeMap<u32, Trigger>,
}

const HINT: &str = "see htsim's description of connection matrices";

fn read(text: &str, unit: Option<StartUnit>) -> Result<Matrix, TraceError> {
    let mut matrix = Matrix::default();
    let mut counts: [Option<(u64, u32)>; 2] = [None; 2];
    for (line, content) in (1..).zip(text.lines()) {
        let words: Vec<&str> = content.split_whitespace().collect();
        let Some(first) = words.first().filter(|word| !word.starts_with('#')) else {
            continue;
        };
        match *first {
            "Nodes" => {
                let nodes = number(&words, 1, line, "a number of nodes")?;
                if nodes == 0 || nodes > u64::from(MOST_RANKS) {
                    let message = format!("{nodes} nodes: 1 to {MOST_RANKS} are supported");
                    return Err(TraceError::line(line, message, HINT));
                }
                if matrix.nodes > 0 {
                    let message = "the number of nodes is given a second time";
                    return Err(TraceError::line(line, message, "write Nodes once"));
                }
                matrix.nodes = nodes as u32;
            }
            word @ ("Connections" | "Triggers") => {
                let count = number(&words, 1, line, "a number")?;
                let slot = &mut counts[usize::from(word == "Triggers")];
                if slot.replace((count, line)).is_some() {
                    let message = format!("{word} is there a second time");
                    return Err(TraceError::line(line, message, "write each number once"));
                }
            }
            "Failures" if number(&words, 1, line, "a number")? == 0 => {}
            "Failures" | "failure" => {
                let hint = "leave them out, and cut links in the scenario";
                let message = "failures of links are not read from connection matrices";
                return Err(TraceError::line(line, message, hint));
            }
            "trigger" => {
                let (id, trigger) = trigger(&words, line)?;
                if matrix.triggers.insert(id, trigger).is_some() {
                    let message = format!("trigger {id} is described a second time");
                    return Err(TraceError::line(line, message, "give it another id"));
                }
            }
            pair => {
                let connection = connection(pair, &words, line, matrix.nodes, unit)?;
                matrix.connections.push(connection);
            }
        }
    }
    let found = [matrix.connections.len(), matrix.triggers.len()];
    for ((count, found), what) in counts.iter().zip(found).zip(["connections", "triggers"]) {
        if let Some((count, line)) = count.filter(|(count, _)| *count != found as u64) {
            let message = format!("{count} {what} are announced, but the file has {found}");
            return Err(TraceError::line(
                line,
                message,
                "the file may have been cut off",
            ));
        }
    }
    if matrix.connections.is_empty() {
        let message = "the file has no connection";
        return Err(TraceError::new(super::TracePlace::Whole, message, HINT));
    }
    if unit.is_none() {
        check_starts(&matrix.connections)?;
    }
    triggers::check(&matrix)?;
    Ok(matrix)
}

fn check_starts(connections: &[Connection]) -> Result<(), TraceError> {
    let later = connections.iter().filter(|connection| connection.is_later);
    let starts = later.filter_map(|connection| match connection.start {
        Start::At(span) => Some((span, connection)),
        Start::After(_) => None,
    });
    let last = starts.max_by_key(|(span, _)| *span);
    let Some((last, connection)) = last.filter(|(last, _)| *last < Span::from_ns(1)) else {
        return Ok(());
    };
    let message = format!("all starts are below 1 ns, the last at {last} if the unit is ps");
    let hint = "write the unit: format.connections.start-unit = \"us\" (uet-htsim), \"ns\" or \"ps\" (csg-htsim)";
    Err(TraceError::line(connection.line, message, hint))
}

fn number(words: &[&str], place: usize, line: u32, what: &str) -> Result<u64, TraceError> {
    let word = words.get(place).copied().unwrap_or("");
    word.parse().map_err(|_| {
        let message = format!("{word:?} is not {what}");
        TraceError::line(line, message, HINT)
    })
}

fn trigger_id(words: &[&str], place: usize, line: u32) -> Result<u32, TraceError> {
    let id = number(words, place, line, "the id of a trigger")?;
    u32::try_from(id).map_err(|_| {
        let message = format!("trigger id {id}: 0 to {} are supported", u32::MAX);
        TraceError::line(line, message, "number the triggers from 1")
    })
}

fn trigger(words: &[&str], line: u32) -> Result<(u32, Trigger), TraceError> {
    let (mut id, mut count, mut kind) = (None, None, None);
    let mut place = 1;
    while let Some(word) = words.get(place) {
        let given = match *word {
            "id" => id.is_some(),
            "count" => count.is_some(),
            "oneshot" | "multishot" | "barrier" => kind.is_some(),
            _ => false,
        };
        if given {
            return Err(twice(word, line));
        }
        match *word {
            "id" => {
                id = Some(trigger_id(words, place + 1, line)?);
                place += 1;
            }
            "count" => {
                count = Some(number(words, place + 1, line, "a number")?);
                place += 1;
            }
            "oneshot" | "multishot" | "barrier" => kind = Some(*word),
            other => {
                let message = format!("{other:?} is no property of a trigger");
                return Err(TraceError::line(
                    line,
                    message,
                    "id, count, oneshot, multishot, barrier",
                ));
            }
        }
        place += 1;
    }
    let (Some(id), Some(kind)) = (id, kind) else {
        let message = "the trigger has no id, or no type";
        return Err(TraceError::line(
            line,
            message,
            "write e.g. trigger id 1 oneshot",
        ));
    };
    let count = match kind {
        "barrier" => count.unwrap_or(0),
        _ => 1,
    };
    let is_multishot = kind == "multishot";
    Ok((
        id,
        Trigger {
            line,
            count,
            is_multishot,
        },
    ))
}

fn twice(word: &str, line: u32) -> TraceError {
    let message = format!("{word} comes second: the line has such a property already");
    TraceError::line(line, message, "write each property once")
}

fn connection(
    pair: &str,
    words: &[&str],
    line: u32,
    nodes: u32,
    unit: Option<StartUnit>,
) -> Result<Connection, TraceError> {
    let wrong = |message: String, hint| Err(TraceError::line(line, message, hint));
    let Some((from, to)) = pair.split_once("->") else {
        return wrong(
            format!("{pair:?} starts no line of a connection matrix"),
            "write e.g. 0->1 start 0 size 2000000",
        );
    };
    let node = |text: &str| text.parse::<u32>().ok().filter(|node| *node < nodes);
    let (Some(from), Some(to)) = (node(from), node(to)) else {
        return wrong(
            format!("{pair:?}: nodes are numbered from 0, and there are {nodes}"),
            "write Nodes with their number before the first connection",
        );
    };
    if from == to {
        return wrong(
            format!("node {from} sends to itself"),
            "leave the connection out",
        );
    }
    let unit = unit.unwrap_or(StartUnit::Ps);
    let (mut bytes, mut start, mut fires) = (None, None, [None; 2]);
    let mut is_later = false;
    let mut seen: Vec<&str> = Vec::new();
    let mut place = 1;
    while let Some(word) = words.get(place) {
        if !matches!(*word, "start" | "trigger") && seen.contains(word) {
            return Err(twice(word, line));
        }
        seen.push(word);
        match *word {
            "start" => {
                let text = words.get(place + 1).copied().unwrap_or("");
                let time = text.parse::<f64>().ok().filter(|time| *time >= 0.0);
                is_later |= time.is_some_and(|time| time > 0.0);
                match time.map(|time| time * unit.as_ps()) {
                    Some(time) if time <= LONGEST.as_ps() as f64 && start.is_none() => {
                        start = Some(Start::At(Span::from_ps(time.round() as u64)));
                    }
                    Some(time) if time <= LONGEST.as_ps() as f64 => {
                        return wrong("it has two starts".to_owned(), "use start or trigger");
                    }
                    _ => {
                        return wrong(
                            format!("{text:?} is no start in {}, at most {LONGEST}", unit.name()),
                            "write e.g. start 0",
                        );
                    }
                }
            }
            "size" => bytes = Some(number(words, place + 1, line, "a size in bytes")?),
            "trigger" | "send_done_trigger" | "recv_done_trigger" => {
                let id = trigger_id(words, place + 1, line)?;
                match *word {
                    "trigger" if start.is_some() => {
                        return wrong("it has two starts".to_owned(), "use start or trigger");
                    }
                    "trigger" => start = Some(Start::After(id)),
                    "send_done_trigger" => fires[0] = Some(id),
                    _ => fires[1] = Some(id),
                }
            }
            "id" | "prio" => {
                number(words, place + 1, line, "a number")?;
            }
            "msg" => {
                let next = words
                    .get(place + 1)
                    .and_then(|word| word.parse::<u64>().ok());
                if next.is_none() {
                    place += 1;
                    continue;
                }
            }
            "addon" => {
                return wrong(
                    "addon: bytes that a trigger adds to a connection are not read".to_owned(),
                    "write a connection with its own id for them",
                );
            }
            other => {
                return wrong(format!("{other:?} is no property of a connection"), HINT);
            }
        }
        place += 2;
    }
    let bytes = bytes.filter(|bytes| (1..=MOST_BYTES).contains(bytes));
    match (bytes, start) {
        (Some(bytes), Some(start)) => Ok(Connection {
            line,
            from,
            to,
            bytes,
            start,
            is_later,
            fires,
        }),
        (None, _) => wrong(
            format!("it has no size from 1 to {MOST_BYTES} bytes"),
            "connections without end are flows of a scenario: traffic.flow",
        ),
        (_, None) => wrong(
            "it has no start".to_owned(),
            "write e.g. start 0, or trigger and an id",
        ),
    }
}

fn build(matrix: &Matrix) -> Result<Vec<Arc<Schedule>>, TraceError> {
    let connections = &matrix.connections;
    let triggers = Triggers::new(matrix);
    triggers.check_cycles(connections)?;
    let mut drafts: Vec<Draft> = (0..matrix.nodes).map(|_| Draft::default()).collect();
    let timers = timers(connections, &mut drafts);
    let mut places: Vec<(u32, u32)> = connections
        .iter()
        .zip(timers)
        .map(|(connection, timer)| {
            let put = Action::Put {
                to: connection.to,
                bytes: connection.bytes,
            };
            let draft = &mut drafts[connection.from as usize];
            let op = draft.add(put, MESSAGES, connection.line, timer.as_slice());
            (connection.from, op)
        })
        .collect();
    for &(waiter, line) in &triggers.shared {
        let rank = connections[waiter as usize].from;
        places.push((rank, drafts[rank as usize].join(line, &[])));
    }
    let mut schedules = drafts
        .into_iter()
        .map(|draft| draft.finish().map_err(|_| connections[0].line))
        .collect::<Result<Vec<Schedule>, u32>>()
        .map_err(|line| TraceError::line(line, "connections wait for each other", HINT))?;
    let pairs = triggers
        .edges
        .iter()
        .map(|(later, earlier)| (places[*earlier as usize], places[*later as usize]));
    Schedule::link(&mut schedules, pairs);
    Ok(schedules.into_iter().map(Arc::new).collect())
}

/// By connection: operation at whose end it starts. Nodes count time from start to start.
fn timers(connections: &[Connection], drafts: &mut [Draft]) -> Vec<Option<u32>> {
    let mut starts: Vec<(u32, Span, usize)> = Vec::new();
    for (number, connection) in connections.iter().enumerate() {
        match connection.start {
            Start::At(span) if !span.is_zero() => starts.push((connection.from, span, number)),
            _ => {}
        }
    }
    starts.sort_unstable();
    let mut timers = vec![None; connections.len()];
    let mut last: Option<(u32, Span, u32)> = None;
    for (from, span, number) in starts {
        let before = last.filter(|(node, ..)| *node == from);
        let wait = before.map_or(span, |(_, earlier, _)| span.saturating_sub(earlier));
        let after = before.map(|(.., op)| op);
        let line = connections[number].line;
        let delay = Action::Delay(wait);
        let op = drafts[from as usize].add(delay, COMPUTE, line, after.as_slice());
        timers[number] = Some(op);
        last = Some((from, span, op));
    }
    timers
}
