use std::collections::HashMap;

use silvan_core::{HostId, PortNumber, SwitchId};

use crate::Fabric;

const MOST_PARTS: usize = 16;

/// The switch is above all parts of the level.
const OUTSIDE: u16 = u16::MAX;

/// From here on groups of ports, below port numbers.
const FIRST_GROUP: u16 = 256;

const NO_ROUTE: u16 = 0;

/// Ports of every switch to every host, computed from the host's address.
///
/// Its parts are pod, leaf and port in a fat tree of three levels; group, switch and port in a dragonfly; coordinates
/// and port in a torus. A switch forwards by the first part that differs, so rows grow with the sum of the levels'
/// sizes (L. Kleinrock, F. Kamoun, "Hierarchical routing for large networks", Computer Networks 1(3), 1977). A host's
/// index selects among several ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedRoutes {
    parts: usize,
    addresses: Vec<u16>,
    places: Vec<LevelRow>,
    entries: Vec<u16>,
    groups: Vec<Group>,
    members: Vec<u8>,
    switches: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LevelRow {
    part: u16,
    row: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Group {
    first: u32,
    count: u32,
    divisor: u32,
}

impl ComputedRoutes {
    /// A switch's entry for a host, to be [read](Self::read). Panics for an unknown switch or host.
    #[inline(always)]
    pub fn entry(&self, switch: usize, host: usize) -> usize {
        let address = &self.addresses[host * self.parts..][..self.parts];
        let places = &self.places[switch * self.parts..][..self.parts];
        for (place, &part) in places.iter().zip(address) {
            if place.part != part {
                return place.row as usize + usize::from(part);
            }
        }
        0
    }

    /// The number of the port that an entry has for a host; 0 if there is none. Panics if there is no such entry.
    #[inline(always)]
    pub fn read(&self, entry: usize, host: usize) -> u8 {
        let entry = self.entries[entry];
        if entry < FIRST_GROUP {
            return entry as u8;
        }
        let group = self.groups[usize::from(entry - FIRST_GROUP)];
        let quotient = host as u32 / group.divisor;
        self.members[(group.first + quotient % group.count) as usize]
    }

    /// The exit port of a switch for a host. Panics for an unknown switch or host.
    #[inline]
    pub fn port(&self, switch: SwitchId, host: HostId) -> Option<PortNumber> {
        let (switch, host) = (switch.index(), host.index());
        let number = self.read(self.entry(switch, host), host);
        (number != 0).then(|| PortNumber::new(number))
    }

    pub(crate) fn ports(&self, switch: SwitchId, host: HostId) -> Vec<u8> {
        match self.entries[self.entry(switch.index(), host.index())] {
            NO_ROUTE => Vec::new(),
            port @ ..FIRST_GROUP => vec![port as u8],
            group => {
                let Group { first, count, .. } = self.groups[usize::from(group - FIRST_GROUP)];
                self.members[first as usize..][..count as usize].to_vec()
            }
        }
    }

    /// The entries of all switches, to be prefetched.
    pub fn entries(&self) -> &[u16] {
        &self.entries
    }

    /// The number of switches.
    pub fn switch_count(&self) -> usize {
        self.switches
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        (self.addresses.capacity() + self.entries.capacity()) * 2
            + self.places.capacity() * size_of::<LevelRow>()
            + self.groups.capacity() * size_of::<Group>()
            + self.members.capacity()
    }
}

pub(crate) struct Hierarchy {
    levels: usize,
    parts: Vec<u16>,
    /// By level: shared number of switches with equal parts before it.
    prefixes: Vec<Vec<u32>>,
    /// By level and prefix: parts, parts of earlier prefixes, and switches.
    sizes: Vec<Vec<u32>>,
    offsets: Vec<Vec<usize>>,
    members: Vec<Vec<Vec<SwitchId>>>,
}

pub(crate) struct Parts {
    levels: usize,
    parts: Vec<u16>,
}

impl Parts {
    pub(crate) fn new(switches: usize, levels: usize) -> Self {
        Self {
            levels,
            parts: vec![OUTSIDE; switches * levels],
        }
    }

    pub(crate) fn set(&mut self, switch: SwitchId, level: usize, part: usize) -> Option<()> {
        let part = u16::try_from(part).ok().filter(|part| *part != OUTSIDE)?;
        self.parts[switch.index() * self.levels + level] = part;
        Some(())
    }
}

impl Hierarchy {
    pub(crate) fn new(parts: Parts) -> Option<Self> {
        let Parts { levels, parts } = parts;
        if levels >= MOST_PARTS {
            return None;
        }
        let switches = parts.len().checked_div(levels).unwrap_or(0);
        let mut hierarchy = Self {
            levels,
            parts,
            prefixes: Vec::new(),
            sizes: Vec::new(),
            offsets: Vec::new(),
            members: Vec::new(),
        };
        let mut prefixes: Vec<u32> = vec![0; switches];
        for level in 0..levels {
            let mut sizes: Vec<u32> = Vec::new();
            let mut members: Vec<Vec<SwitchId>> = Vec::new();
            let mut following: HashMap<(u32, u16), u32> = HashMap::new();
            let mut next = vec![u32::MAX; switches];
            for (index, &prefix) in prefixes.iter().enumerate() {
                if prefix == u32::MAX {
                    continue;
                }
                let place = prefix as usize;
                if sizes.len() <= place {
                    sizes.resize(place + 1, 0);
                    members.resize(place + 1, Vec::new());
                }
                members[place].push(SwitchId::new(index));
                let part = hierarchy.parts[index * levels + level];
                if part != OUTSIDE {
                    sizes[place] = sizes[place].max(u32::from(part) + 1);
                    let count = following.len() as u32;
                    next[index] = *following.entry((prefix, part)).or_insert(count);
                }
            }
            let offsets = sizes.iter().scan(0, |offset, size| {
                let before = *offset;
                *offset += *size as usize;
                Some(before)
            });
            hierarchy.offsets.push(offsets.collect());
            hierarchy.prefixes.push(prefixes);
            hierarchy.sizes.push(sizes);
            hierarchy.members.push(members);
            prefixes = next;
        }
        Some(hierarchy)
    }

    fn part(&self, switch: SwitchId, level: usize) -> u16 {
        self.parts[switch.index() * self.levels + level]
    }

    pub(crate) fn number_at(&self, level: usize, switch: SwitchId) -> usize {
        let prefix = self.prefixes[level][switch.index()] as usize;
        self.offsets[level][prefix] + usize::from(self.part(switch, level))
    }

    /// Makes the routes; `None` if addresses do not distinguish all switches with hosts, or a number does not fit.
    ///
    /// `ports` collects exits of the first switch to hosts of the second and its like, and returns the divisor of a
    /// host's index; calls for a second switch are consecutive.
    pub(crate) fn routes<E>(
        &self,
        fabric: &Fabric,
        mut ports: impl FnMut(SwitchId, SwitchId, &mut Vec<PortNumber>) -> Result<usize, E>,
    ) -> Result<Option<ComputedRoutes>, E> {
        let Some(mut routes) = self.without_entries(fabric) else {
            return Ok(None);
        };
        let mut last = None;
        let mut found = Vec::new();
        let mut seen: Vec<Vec<bool>> = self.seen();
        for host in fabric.host_ids() {
            let leaf = fabric.host_attachment(host).0;
            if last.replace(leaf) == Some(leaf) {
                continue;
            }
            for (level, seen) in seen.iter_mut().enumerate() {
                let prefix = self.prefixes[level][leaf.index()] as usize;
                let part = self.part(leaf, level);
                let number = self.number_at(level, leaf);
                if std::mem::replace(&mut seen[number], true) {
                    continue;
                }
                for &switch in &self.members[level][prefix] {
                    if self.part(switch, level) == part {
                        continue;
                    }
                    found.clear();
                    let divisor = ports(switch, leaf, &mut found)?;
                    let place = (level, part);
                    if routes.set(switch, place, &found, divisor).is_none() {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(Some(routes.0))
    }

    /// Exits of a switch towards another's hosts and its like; `None` if a number does not fit.
    pub(crate) fn set(
        &self,
        routes: &mut NewRoutes,
        switch: SwitchId,
        other: SwitchId,
        ports: &[PortNumber],
    ) -> Option<()> {
        let level =
            (0..self.levels).find(|level| self.part(switch, *level) != self.part(other, *level))?;
        routes.set(switch, (level, self.part(other, level)), ports, 1)
    }

    fn seen(&self) -> Vec<Vec<bool>> {
        let of_level = |sizes: &Vec<u32>| vec![false; sizes.iter().sum::<u32>() as usize];
        self.sizes.iter().map(of_level).collect()
    }

    pub(crate) fn without_entries(&self, fabric: &Fabric) -> Option<NewRoutes> {
        let parts = self.levels + 1;
        // All switches share the row of ports, in which each part is its own entry.
        let mut entries: Vec<u16> = (0..FIRST_GROUP).collect();
        let mut places = Vec::with_capacity(fabric.switch_count() * parts);
        for switch in fabric.switch_ids() {
            for level in 0..self.levels {
                let row = u32::try_from(entries.len()).ok()?;
                let prefix = self.prefixes[level][switch.index()];
                let part = self.part(switch, level);
                places.push(LevelRow { part, row });
                if let Some(size) = self.sizes[level].get(prefix as usize) {
                    entries.resize(entries.len() + *size as usize, NO_ROUTE);
                }
            }
            places.push(LevelRow {
                part: OUTSIDE,
                row: 0,
            });
        }
        let mut addresses = Vec::with_capacity(fabric.host_count() * parts);
        let mut leaves: HashMap<&[u16], SwitchId> = HashMap::new();
        for host in fabric.host_ids() {
            let (leaf, port) = fabric.host_attachment(host);
            let own = &self.parts[leaf.index() * self.levels..][..self.levels];
            if own.contains(&OUTSIDE) || *leaves.entry(own).or_insert(leaf) != leaf {
                return None;
            }
            addresses.extend_from_slice(own);
            addresses.push(u16::from(fabric.ports[port].number.as_u8()));
        }
        Some(NewRoutes(
            ComputedRoutes {
                parts,
                addresses,
                places,
                entries,
                groups: Vec::new(),
                members: Vec::new(),
                switches: fabric.switch_count(),
            },
            HashMap::new(),
        ))
    }
}

pub(crate) struct NewRoutes(
    pub(crate) ComputedRoutes,
    HashMap<(Vec<PortNumber>, u32), u16>,
);

impl NewRoutes {
    fn set(
        &mut self,
        switch: SwitchId,
        (level, part): (usize, u16),
        ports: &[PortNumber],
        divisor: usize,
    ) -> Option<()> {
        let entry = match ports {
            [] => NO_ROUTE,
            [port] => u16::from(port.as_u8()),
            _ => self.group_of(ports, u32::try_from(divisor.max(1)).ok()?)?,
        };
        let Self(routes, _) = self;
        let place = routes.places[switch.index() * routes.parts + level];
        routes.entries[place.row as usize + usize::from(part)] = entry;
        Some(())
    }

    fn group_of(&mut self, ports: &[PortNumber], divisor: u32) -> Option<u16> {
        let Self(routes, known) = self;
        let key = (ports.to_vec(), divisor);
        if let Some(entry) = known.get(&key) {
            return Some(*entry);
        }
        let entry = u16::try_from(usize::from(FIRST_GROUP) + routes.groups.len()).ok()?;
        routes.groups.push(Group {
            first: routes.members.len() as u32,
            count: ports.len() as u32,
            divisor,
        });
        let members = ports.iter().map(|port| port.as_u8());
        routes.members.extend(members);
        known.insert(key, entry);
        Some(entry)
    }
}
