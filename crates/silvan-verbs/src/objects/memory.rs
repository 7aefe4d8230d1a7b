use super::{MrKey, PdKey};
use crate::abi::structures::Sge;
use crate::abi::values::access;
use crate::action::{Piece, Source};
use crate::arena::Arena;
use crate::errno::Errno;
use crate::verbs::{ContextId, ProcessId};

#[derive(Debug)]
pub(crate) struct ProtectionDomain {
    pub(crate) context: ContextId,
    pub(crate) users: u32,
}

#[derive(Debug)]
pub(crate) struct MemoryRegion {
    pub(crate) pd: PdKey,
    process: ProcessId,
    start: u64,
    length: u64,
    /// First address as work requests state it.
    base: u64,
    rights: u32,
}

impl MemoryRegion {
    pub(crate) fn new(
        pd: PdKey,
        process: ProcessId,
        (start, length, base): (u64, u64, u64),
        rights: u32,
    ) -> Result<Self, Errno> {
        let writes = access::REMOTE_WRITE | access::REMOTE_ATOMIC;
        let is_writable = rights & access::LOCAL_WRITE != 0;
        if rights & !access::ACCEPTED != 0 || (rights & writes != 0 && !is_writable) {
            return Err(Errno::Invalid);
        }
        let base = if rights & access::ZERO_BASED != 0 {
            0
        } else {
            base
        };
        if start.checked_add(length).is_none() || base.checked_add(length).is_none() {
            return Err(Errno::Invalid);
        }
        Ok(Self {
            pd,
            process,
            start,
            length,
            base,
            rights,
        })
    }

    /// Address in the process of `length` bytes at `address`, `None` beyond the region.
    fn locate(&self, address: u64, length: u64) -> Option<u64> {
        let offset = address.checked_sub(self.base)?;
        let end = offset.checked_add(length)?;
        (end <= self.length).then(|| self.start + offset)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) process: ProcessId,
    pub(crate) address: u64,
    pub(crate) length: u64,
}

impl Segment {
    /// The rest behind `bytes`.
    pub(crate) fn after(self, bytes: u64) -> Self {
        let bytes = bytes.min(self.length);
        Self {
            address: self.address + bytes,
            length: self.length - bytes,
            ..self
        }
    }
}

pub(crate) fn key_of(region: MrKey) -> u32 {
    region.index() << 8 | region.generation() & 0xff
}

pub(crate) const MOST_REGIONS: usize = 1 << 20;

/// The memory that `key` opens to holders of `pd` for `rights`, `None` if it opens nothing there.
pub(crate) fn resolve(
    regions: &Arena<MemoryRegion>,
    pd: PdKey,
    key: u32,
    (address, length): (u64, u64),
    rights: u32,
) -> Option<Segment> {
    let found = regions.key_at(key >> 8)?;
    if key_of(found) != key {
        return None;
    }
    let region = regions.get(found)?;
    if region.pd != pd || region.rights & rights != rights {
        return None;
    }
    Some(Segment {
        process: region.process,
        address: region.locate(address, length)?,
        length,
    })
}

pub(crate) fn resolve_elements(
    regions: &Arena<MemoryRegion>,
    pd: PdKey,
    elements: &[Sge],
    rights: u32,
) -> Option<Vec<Segment>> {
    let mut segments = Vec::with_capacity(elements.len());
    for element in elements.iter().filter(|element| element.length > 0) {
        let range = (element.addr, u64::from(element.length));
        segments.push(resolve(regions, pd, element.lkey, range, rights)?);
    }
    Some(segments)
}

pub(crate) fn total(elements: &[Sge]) -> u64 {
    elements
        .iter()
        .map(|element| u64::from(element.length))
        .sum()
}

#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Segments(Vec<Segment>),
    Bytes(std::sync::Arc<[u8]>),
}

pub(crate) fn pieces(origin: &Origin, targets: &[Segment], skip: u64) -> Vec<Piece> {
    let mut room = Vec::with_capacity(targets.len());
    let mut skipped = skip;
    for target in targets {
        let gap = skipped.min(target.length);
        skipped -= gap;
        if target.length > gap {
            room.push((target.address + gap, target.length - gap));
        }
    }
    let mut room = room.into_iter();
    let mut pieces = Vec::new();
    let mut current = (0, 0);
    let mut place = |length: u64, source: &dyn Fn(u64) -> Source| {
        let mut done = 0;
        while done < length {
            if current.1 == 0 {
                match room.next() {
                    Some(next) => current = next,
                    None => return,
                }
            }
            let step = current.1.min(length - done);
            pieces.push(Piece {
                from: source(done),
                to: current.0,
                length: step,
            });
            current = (current.0 + step, current.1 - step);
            done += step;
        }
    };
    match origin {
        Origin::Segments(segments) => {
            for segment in segments {
                place(segment.length, &|offset| Source::Memory {
                    process: segment.process,
                    address: segment.address + offset,
                });
            }
        }
        Origin::Bytes(data) => place(data.len() as u64, &|offset| Source::Bytes {
            data: data.clone(),
            offset: offset as usize,
        }),
    }
    pieces
}
