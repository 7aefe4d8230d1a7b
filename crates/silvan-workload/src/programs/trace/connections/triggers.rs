use std::collections::{BTreeMap, BTreeSet};

use super::super::{TraceError, first_few};
use super::{Connection, Matrix, Start};
use crate::programs::schedule::cycle;

/// Checks that named triggers are described, and activated often enough.
pub(super) fn check(matrix: &Matrix) -> Result<(), TraceError> {
    let mut activations: BTreeMap<u32, u64> = BTreeMap::new();
    let mut awaited = BTreeSet::new();
    for connection in &matrix.connections {
        let waits = match connection.start {
            Start::After(id) => Some(id),
            Start::At(_) => None,
        };
        awaited.extend(waits);
        for id in connection.fires.into_iter().flatten() {
            *activations.entry(id).or_default() += 1;
        }
        for id in connection.fires.into_iter().chain([waits]).flatten() {
            if !matrix.triggers.contains_key(&id) {
                let message = format!("trigger {id} is not described");
                let hint = "write e.g. trigger id 1 oneshot";
                return Err(TraceError::line(connection.line, message, hint));
            }
        }
    }
    for (id, trigger) in &matrix.triggers {
        let found = activations.get(id).copied().unwrap_or(0);
        let is_awaited = awaited.contains(id);
        if is_awaited && found == 0 {
            let message =
                format!("no connection activates trigger {id}, but connections wait for it");
            let hint = "give a connection a send_done_trigger or a recv_done_trigger";
            return Err(TraceError::line(trigger.line, message, hint));
        }
        if is_awaited && trigger.is_multishot && found > 1 {
            let message = format!(
                "trigger {id} is a multishot that {found} connections activate, each of which would start its connections again"
            );
            let hint = "write a oneshot, and separate connections, for each activation";
            return Err(TraceError::line(trigger.line, message, hint));
        }
        if is_awaited && found != trigger.count {
            let message = format!(
                "trigger {id} fires at activation {}, but {found} connections activate it",
                trigger.count
            );
            let hint = "a barrier counts all its connections, a oneshot has one";
            return Err(TraceError::line(trigger.line, message, hint));
        }
    }
    Ok(())
}

#[derive(Default)]
struct Ends {
    activators: Vec<u32>,
    waiters: Vec<u32>,
}

/// Dependencies in linear size: many-to-many dependencies go through the trigger.
pub(super) struct Triggers {
    /// Waiting and awaited number: connections, then shared triggers.
    pub edges: Vec<(u32, u32)>,
    /// Many-to-many triggers: one waiting connection, and the trigger's line.
    pub shared: Vec<(u32, u32)>,
}

impl Triggers {
    pub fn new(matrix: &Matrix) -> Self {
        let mut ends: BTreeMap<u32, Ends> = BTreeMap::new();
        for (number, connection) in (0..).zip(&matrix.connections) {
            for id in connection.fires.into_iter().flatten() {
                ends.entry(id).or_default().activators.push(number);
            }
            if let Start::After(id) = connection.start {
                ends.entry(id).or_default().waiters.push(number);
            }
        }
        let (mut edges, mut shared) = (Vec::new(), Vec::new());
        for (id, trigger) in &matrix.triggers {
            let Some(Ends {
                activators,
                waiters,
            }) = ends.get(id)
            else {
                continue;
            };
            if activators.len() > 1 && waiters.len() > 1 {
                let number = (matrix.connections.len() + shared.len()) as u32;
                shared.push((waiters[0], trigger.line));
                edges.extend(waiters.iter().map(|later| (*later, number)));
                edges.extend(activators.iter().map(|earlier| (number, *earlier)));
                continue;
            }
            for later in waiters {
                edges.extend(activators.iter().map(|earlier| (*later, *earlier)));
            }
        }
        Self { edges, shared }
    }

    pub fn check_cycles(&self, connections: &[Connection]) -> Result<(), TraceError> {
        let nodes = connections.len() + self.shared.len();
        let Some(cycle) = cycle(nodes, self.edges.iter().copied()) else {
            return Ok(());
        };
        let waiting = cycle
            .iter()
            .filter_map(|number| connections.get(*number as usize));
        let lines: Vec<u32> = waiting.map(|connection| connection.line).collect();
        let message = match lines.len() {
            1 => "the connection waits for a trigger that it activates itself".to_owned(),
            _ => format!(
                "the connections of lines {} wait for each other in a cycle",
                first_few(lines.len(), lines.iter().map(u32::to_string), ", ")
            ),
        };
        let hint = "let one of them start at a time";
        Err(TraceError::line(lines[0], message, hint))
    }
}
