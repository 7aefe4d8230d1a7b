//! Knowledge of a live fabric's hosts about their paths.

use silvan_core::HostId;

#[derive(Clone, Debug, Default)]
struct Knowledge {
    wanted: Vec<u64>,
    open: Vec<u64>,
    holds: bool,
}

/// The paths of all hosts, requested and usable; at first all are usable.
#[derive(Clone, Debug)]
pub struct Paths {
    hosts: Vec<Knowledge>,
    wanted: Vec<(HostId, HostId)>,
}

fn place(destination: HostId) -> (usize, u64) {
    (destination.index() / 64, 1 << (destination.index() % 64))
}

impl Paths {
    /// Creates the paths of `hosts` hosts, all usable.
    pub fn new(hosts: usize) -> Self {
        Self {
            hosts: vec![Knowledge::default(); hosts],
            wanted: Vec::new(),
        }
    }

    /// Invalidates a host's paths: it requests them on traffic, which waits.
    pub fn invalidate(&mut self, host: HostId) {
        let words = self.hosts.len().div_ceil(64);
        self.hosts[host.index()] = Knowledge {
            wanted: vec![0; words],
            open: vec![0; words],
            holds: true,
        };
    }

    /// Marks a host's paths as outdated: it requests each at its next packet and keeps sending.
    pub fn mark_stale(&mut self, host: HostId) {
        let words = self.hosts.len().div_ceil(64);
        let knowledge = &mut self.hosts[host.index()];
        knowledge.wanted.clear();
        knowledge.wanted.resize(words, 0);
    }

    /// The path from one host to another may be used. Gives whether it could not be before.
    pub fn open(&mut self, source: HostId, destination: HostId) -> bool {
        let knowledge = &mut self.hosts[source.index()];
        let (word, bit) = place(destination);
        match knowledge.open.get_mut(word) {
            Some(bits) if *bits & bit == 0 => {
                *bits |= bit;
                knowledge.holds
            }
            _ => false,
        }
    }

    /// Takes the paths requested since the last call, in order.
    pub fn take_wanted(&mut self) -> Vec<(HostId, HostId)> {
        std::mem::take(&mut self.wanted)
    }

    #[inline]
    pub(crate) fn admit(&mut self, source: HostId, destination: HostId) -> bool {
        let knowledge = &mut self.hosts[source.index()];
        if knowledge.wanted.is_empty() {
            return true;
        }
        let (word, bit) = place(destination);
        if knowledge.wanted[word] & bit == 0 {
            knowledge.wanted[word] |= bit;
            self.wanted.push((source, destination));
        }
        !knowledge.holds || knowledge.open[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(index: usize) -> HostId {
        HostId::new(index)
    }

    #[test]
    fn nobody_asks_unless_told_to() {
        let mut paths = Paths::new(100);
        assert!(paths.admit(host(0), host(99)));
        assert!(!paths.open(host(0), host(99)));
        assert_eq!(paths.take_wanted(), []);
    }

    #[test]
    fn who_has_forgotten_waits_for_each_path_and_asks_once() {
        let mut paths = Paths::new(100);
        paths.invalidate(host(3));
        for _ in 0..2 {
            assert!(!paths.admit(host(3), host(99)));
            assert!(!paths.admit(host(3), host(63)));
        }
        assert!(paths.admit(host(4), host(99)));
        let wanted = [(host(3), host(99)), (host(3), host(63))];
        assert_eq!(paths.take_wanted(), wanted);
        assert!(paths.open(host(3), host(99)));
        assert!(!paths.open(host(3), host(99)));
        assert!(paths.admit(host(3), host(99)));
        assert!(!paths.admit(host(3), host(63)));
        assert_eq!(paths.take_wanted(), []);
        // Forgotten again, it waits again.
        paths.invalidate(host(3));
        assert!(!paths.admit(host(3), host(99)));
        assert_eq!(paths.take_wanted(), wanted[..1]);
    }

    #[test]
    fn who_doubts_asks_anew_and_goes_on() {
        let mut paths = Paths::new(100);
        paths.mark_stale(host(3));
        assert!(paths.admit(host(3), host(99)));
        assert_eq!(paths.take_wanted(), [(host(3), host(99))]);
        paths.invalidate(host(3));
        paths.open(host(3), host(99));
        paths.mark_stale(host(3));
        assert!(paths.admit(host(3), host(99)));
        assert!(!paths.admit(host(3), host(5)));
        assert_eq!(paths.take_wanted().len(), 2);
    }
}
