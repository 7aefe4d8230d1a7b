//! Messages under way, by the ports that their packets pass, and the components that they form.

use crate::packet::NONE;
use crate::plane::Plane;
use crate::records::Next;

/// Messages from one host to another that are not delivered.
#[derive(Debug)]
struct Path {
    from: u32,
    to: u32,
    ports: Box<[u32]>,
    undelivered: u32,
    /// Not sent completely.
    unsent: u32,
    /// The last search that found it.
    seen: u32,
    /// False if packets may pass other ports.
    is_known: bool,
    /// Number among paths with equal constants; `NONE` if it has not been asked for.
    class: u32,
}

/// A closed part of the fabric: packets of its messages, and no others, pass its ports.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub ports: Vec<u32>,
    /// Hosts whose port is among `ports`.
    pub senders: Vec<u32>,
    /// Hosts that a port of `ports` leads to.
    pub sinks: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct Paths {
    paths: Vec<Path>,
    /// By sender: receivers in order, with their paths.
    by_sender: Vec<Vec<(u32, u32)>>,
    /// By port: paths with messages.
    users: Vec<Vec<u32>>,
    /// By port: the host that sends with it, or `NONE`.
    senders: Vec<u32>,
    /// By port, the last search that found it.
    seen: Vec<u32>,
    /// By port, when the last message on a path over it was delivered.
    free_from: Vec<u64>,
    searches: u32,
    answers: bool,
    /// Undelivered messages on paths that are not known.
    lost: u64,
}

impl Paths {
    pub fn new(plane: &Plane, answers: bool) -> Self {
        let ports = plane.outs.len();
        let mut senders = vec![NONE; ports];
        for (number, host) in plane.hosts.iter().enumerate() {
            senders[host.port as usize] = number as u32;
        }
        Self {
            paths: Vec::new(),
            by_sender: vec![Vec::new(); plane.hosts.len()],
            users: vec![Vec::new(); ports],
            senders,
            seen: vec![0; ports],
            free_from: vec![0; ports],
            searches: 0,
            answers,
            lost: 0,
        }
    }

    fn path(&mut self, plane: &Plane, from: u32, to: u32) -> u32 {
        let known = &mut self.by_sender[from as usize];
        match known.binary_search_by_key(&to, |entry| entry.0) {
            Ok(place) => known[place].1,
            Err(place) => {
                let path = self.paths.len() as u32;
                known.insert(place, (to, path));
                let ports = plane.path(from, to, self.answers);
                self.paths.push(Path {
                    from,
                    to,
                    is_known: ports.is_some(),
                    ports: ports.unwrap_or_default().into(),
                    undelivered: 0,
                    unsent: 0,
                    seen: 0,
                    class: NONE,
                });
                path
            }
        }
    }

    pub fn has_answers(&self) -> bool {
        self.answers
    }

    /// Returns the path's ports.
    pub fn start(&mut self, plane: &Plane, from: u32, to: u32) -> &[u32] {
        let number = self.path(plane, from, to);
        let path = &mut self.paths[number as usize];
        path.undelivered += 1;
        path.unsent += 1;
        self.lost += u64::from(!path.is_known);
        if path.undelivered == 1 {
            for &port in &path.ports {
                self.users[port as usize].push(number);
            }
        }
        &self.paths[number as usize].ports
    }

    pub fn sent(&mut self, plane: &Plane, from: u32, to: u32) {
        let number = self.path(plane, from, to);
        self.paths[number as usize].unsent -= 1;
    }

    pub fn delivered(&mut self, plane: &Plane, from: u32, to: u32, now: u64) {
        let number = self.path(plane, from, to);
        let path = &mut self.paths[number as usize];
        path.undelivered -= 1;
        self.lost -= u64::from(!path.is_known);
        if path.undelivered > 0 {
            return;
        }
        for &port in &path.ports {
            self.free_from[port as usize] = now;
            let users = &mut self.users[port as usize];
            if let Some(place) = users.iter().position(|&user| user == number) {
                users.swap_remove(place);
            }
        }
        if !path.is_known {
            let ports = plane.path(from, to, self.answers);
            path.is_known = ports.is_some();
            path.ports = ports.unwrap_or_default().into();
        }
    }

    /// Routes may have changed: paths are found again once their messages are delivered.
    pub fn forget(&mut self, plane: &Plane) {
        for (from, receivers) in self.by_sender.iter().enumerate() {
            for &(to, number) in receivers {
                let path = &mut self.paths[number as usize];
                path.class = NONE;
                if path.undelivered > 0 {
                    self.lost += u64::from(path.undelivered) * u64::from(path.is_known);
                    path.is_known = false;
                } else {
                    let ports = plane.path(from as u32, to, self.answers);
                    path.is_known = ports.is_some();
                    path.ports = ports.unwrap_or_default().into();
                }
            }
        }
    }

    /// The path's number and members, if it has one message and from `start` on no other message has used its ports.
    pub fn alone(&mut self, from: u32, to: u32, start: u64) -> Option<(u32, Members)> {
        let place = self.by_sender[from as usize].binary_search_by_key(&to, |entry| entry.0);
        let number = self.by_sender[from as usize][place.ok()?].1;
        let path = &self.paths[number as usize];
        let is_alone = |&port: &u32| {
            self.users[port as usize] == [number] && self.free_from[port as usize] <= start
        };
        let is_one = path.undelivered == 1 && path.unsent == 1;
        let is_alone = is_one && self.lost == 0 && path.ports.iter().all(is_alone);
        is_alone.then(|| {
            let members = Members {
                ports: path.ports.to_vec(),
                senders: vec![from],
                sinks: vec![to],
            };
            (number, members)
        })
    }

    pub fn class(&mut self, number: u32, find: impl FnOnce(&[u32]) -> u32) -> u32 {
        let path = &mut self.paths[number as usize];
        if path.class == NONE {
            path.class = find(&path.ports);
        }
        path.class
    }

    /// The component of `port`, and whether all its messages are being sent; `None` if it is not known. Also returns the
    /// number of paths and ports that were visited.
    pub fn component(&mut self, port: u32) -> (Option<(Members, bool)>, u64) {
        if self.lost > 0 {
            return (None, 1);
        }
        self.searches += 1;
        let search = self.searches;
        let mut members = Members::default();
        let mut all_unsent = true;
        let mut visited = 1;
        self.seen[port as usize] = search;
        members.ports.push(port);
        let mut next = 0;
        while let Some(&port) = members.ports.get(next) {
            next += 1;
            for &user in &self.users[port as usize] {
                let path = &mut self.paths[user as usize];
                visited += 1;
                if std::mem::replace(&mut path.seen, search) == search {
                    continue;
                }
                all_unsent &= path.unsent == path.undelivered;
                for &port in &path.ports {
                    let seen = &mut self.seen[port as usize];
                    if std::mem::replace(seen, search) != search {
                        members.ports.push(port);
                    }
                }
                members.sinks.push(path.to);
                if self.answers {
                    members.sinks.push(path.from);
                }
            }
        }
        visited += members.ports.len() as u64;
        let hosts = members
            .ports
            .iter()
            .map(|&port| self.senders[port as usize]);
        members.senders = hosts.filter(|&host| host != NONE).collect();
        members.ports.sort_unstable();
        members.senders.sort_unstable();
        members.sinks.sort_unstable();
        members.sinks.dedup();
        (Some((members, all_unsent)), visited)
    }
}

impl Plane {
    /// Ports from a host to another, and back if `there_and_back`; `None` without a route.
    fn path(&self, from: u32, to: u32, there_and_back: bool) -> Option<Vec<u32>> {
        let mut ports = self.way(from, to)?;
        if there_and_back {
            ports.extend(self.way(to, from)?);
        }
        Some(ports)
    }

    fn way(&self, from: u32, to: u32) -> Option<Vec<u32>> {
        let mut ports = Vec::new();
        let mut port = self.hosts[from as usize].port;
        while ports.len() <= self.elements.len() {
            ports.push(port);
            let out = &self.outs[port as usize];
            match out.kind {
                Next::Nowhere => return None,
                Next::Host => return (out.next == to && from != to).then_some(ports),
                Next::Input => {
                    let element = self.ins[out.next as usize].element;
                    port = self.output_of(element, to);
                    if port == NONE {
                        return None;
                    }
                }
            }
        }
        None
    }
}
