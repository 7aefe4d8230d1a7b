//! Little-endian GOAL schedules of LogGOPSim's `txt2bin`.
//!
//! After a cookie of 8 bytes: ranks (4), last processor and interface (1 each), start and end of each rank's data (8
//! each). Data: operations and those without waits (4 each), indices of the latter (4 each), operations (39 each),
//! indices of waiting ones (4 each). Positions count from the cookie's end.

use std::sync::Arc;

use silvan_core::Span;

use super::{LONGEST, MOST_BYTES, MOST_RANKS, TraceError, TracePlace, check_length, first_few};
use crate::programs::schedule::{Action, Dependency, Schedule, ScheduleOp};

const COOKIE: u64 = 4223;
const ANY: u32 = u32::MAX;
const TRUNCATED: &str = "the file may have been cut off";
const FEWER: &str = "leave out operations, or whole ranks";
const DAMAGED: &str = "write it again with txt2bin, or use the GOAL text";

pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(&COOKIE.to_le_bytes())
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, message: impl Into<String>, hint: &'static str) -> TraceError {
        TraceError::new(TracePlace::Byte(self.at as u64), message, hint)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], TraceError> {
        let end = self
            .at
            .checked_add(N)
            .filter(|end| *end <= self.bytes.len());
        let Some(end) = end else {
            let message = format!("the data end within {N} bytes that are needed here");
            return Err(self.wrong(message, TRUNCATED));
        };
        let mut taken = [0; N];
        taken.copy_from_slice(&self.bytes[self.at..end]);
        self.at = end;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, TraceError> {
        Ok(self.take::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32, TraceError> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, TraceError> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn place(&mut self) -> Result<usize, TraceError> {
        let at = self.at;
        let place = self.u64()?;
        let found = place
            .checked_add(8)
            .and_then(|at| usize::try_from(at).ok())
            .filter(|place| *place <= self.bytes.len());
        found.ok_or_else(|| {
            let message = format!("the data of a rank are at byte {place}, beyond the end");
            TraceError::new(TracePlace::Byte(at as u64), message, TRUNCATED)
        })
    }

    /// `count` items of `size` bytes must fit into the rest.
    fn check_room(&self, count: u32, size: u64) -> Result<(), TraceError> {
        let rest = (self.bytes.len() - self.at) as u64;
        match u64::from(count) * size <= rest {
            true => Ok(()),
            false => Err(self.wrong(
                format!("{count} entries do not fit into the data"),
                TRUNCATED,
            )),
        }
    }
}

pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Arc<Schedule>>, TraceError> {
    let mut reader = Reader { bytes, at: 8 };
    let ranks = reader.u32()?;
    if ranks == 0 || ranks > MOST_RANKS {
        let message = format!("{ranks} ranks: 1 to {MOST_RANKS} are supported");
        return Err(reader.wrong(message, DAMAGED));
    }
    reader.take::<2>()?;
    reader.check_room(ranks, 16)?;
    let mut places = Vec::with_capacity(ranks as usize);
    for rank in 0..ranks {
        let entry = reader.at;
        let (start, end) = (reader.place()?, reader.place()?);
        places.push((start, end, rank, entry));
    }
    check_apart(&places, reader.at)?;
    let mut ops = 0;
    let schedules = places.into_iter().map(|(start, end, rank, _)| {
        let mut reader = Reader {
            bytes: &bytes[..end],
            at: start,
        };
        schedule(&mut reader, rank, ranks, &mut ops).map(Arc::new)
    });
    schedules.collect()
}

/// Ranks' data must not overlap: start, end, rank, position in the index.
fn check_apart(places: &[(usize, usize, u32, usize)], first: usize) -> Result<(), TraceError> {
    let mut sorted = places.to_vec();
    sorted.sort_unstable();
    let (mut free, mut before) = (first, None);
    for (start, end, rank, entry) in sorted {
        let message = match before {
            _ if end < start => format!("the data of rank {rank} end before they start"),
            None if start < free => format!("the data of rank {rank} start within the index"),
            Some(other) if start < free => {
                format!("the data of rank {rank} overlap those of rank {other}")
            }
            _ => {
                (free, before) = (end, Some(rank));
                continue;
            }
        };
        return Err(TraceError::new(
            TracePlace::Byte(entry as u64),
            message,
            DAMAGED,
        ));
    }
    Ok(())
}

struct Waiting {
    op: u32,
    at: u32,
    count: u32,
    start_only: bool,
}

fn schedule(
    reader: &mut Reader<'_>,
    rank: u32,
    ranks: u32,
    all: &mut u64,
) -> Result<Schedule, TraceError> {
    let begin = reader.at;
    let (count, roots) = (reader.u32()?, reader.u32()?);
    reader.check_room(roots, 4)?;
    reader.at += roots as usize * 4;
    reader.check_room(count, 39)?;
    *all += u64::from(count);
    check_length(*all)
        .map_err(|message| TraceError::new(TracePlace::Byte(begin as u64), message, FEWER))?;
    let mut ops = Vec::with_capacity(count as usize);
    let mut waiting = Vec::new();
    for op in 0..count {
        ops.push(read_op(reader, rank, ranks, op)?);
        for start_only in [false, true] {
            let (count, at) = (reader.u32()?, reader.u32()?);
            waiting.push(Waiting {
                op,
                at,
                count,
                start_only,
            });
        }
    }
    let appendix = reader.at;
    let mut dependencies = Vec::new();
    for entry in waiting.iter().filter(|entry| entry.count > 0) {
        reader.at = appendix
            .saturating_add(entry.at as usize * 4)
            .min(reader.bytes.len());
        reader.check_room(entry.count, 4)?;
        for _ in 0..entry.count {
            let later = reader.u32()?;
            if later >= count {
                let message = format!("rank {rank} has {count} operations, but {later} waits");
                return Err(reader.wrong(message, DAMAGED));
            }
            dependencies.push(Dependency {
                later,
                earlier: entry.op,
                start_only: entry.start_only,
            });
        }
        if dependencies.len() * 4 > reader.bytes.len() - begin {
            let message = format!("rank {rank} has more dependencies than its data have room for");
            return Err(reader.wrong(message, DAMAGED));
        }
    }
    Schedule::new(ops, &dependencies).map_err(|cycle| {
        let message = format!(
            "operations {} of rank {rank} wait for each other in a cycle",
            first_few(cycle.len(), cycle.iter().map(u32::to_string), ", ")
        );
        TraceError::new(TracePlace::Byte(begin as u64), message, DAMAGED)
    })
}

fn read_op(
    reader: &mut Reader<'_>,
    rank: u32,
    ranks: u32,
    op: u32,
) -> Result<ScheduleOp, TraceError> {
    reader.u32()?;
    let kind = reader.u8()?;
    let (peer, size, tag) = (reader.u32()?, reader.u64()?, reader.u32()?);
    let (cpu, nic) = (reader.u8()?, reader.u8()?);
    if nic > 0 {
        let message = format!("network interface {nic} is out of range: a host has one");
        return Err(reader.wrong(message, "give each interface's ranks a host"));
    }
    let is_any = kind == 2 && peer == ANY;
    if kind != 3 && !is_any && (peer >= ranks || peer == rank) {
        let message =
            format!("rank {rank}, operation {op}: rank {peer} is no other rank of {ranks}");
        return Err(reader.wrong(message, DAMAGED));
    }
    if kind != 3 && size > MOST_BYTES {
        let message = format!("{size} bytes: at most {MOST_BYTES} are supported");
        return Err(reader.wrong(message, DAMAGED));
    }
    let action = match kind {
        1 if tag == ANY => {
            let message = format!("rank {rank}, operation {op}: a message without a tag");
            return Err(reader.wrong(message, DAMAGED));
        }
        1 => Action::Send {
            to: peer,
            bytes: size,
            tag,
        },
        2 => Action::Receive {
            from: (peer != ANY).then_some(peer),
            bytes: size,
            tag: (tag != ANY).then_some(tag),
        },
        3 if size <= LONGEST.as_ps() / 1000 => Action::Calc(Span::from_ns(size)),
        3 => {
            return Err(reader.wrong(
                format!("{size} ns: at most {LONGEST} are supported"),
                DAMAGED,
            ));
        }
        _ => {
            let message = format!("rank {rank}, operation {op}: {kind} is no type: 1, 2 or 3");
            return Err(reader.wrong(message, DAMAGED));
        }
    };
    Ok(ScheduleOp {
        action,
        cpu: u32::from(cpu),
        line: op + 1,
    })
}
