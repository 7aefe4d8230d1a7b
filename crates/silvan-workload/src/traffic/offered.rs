use silvan_core::{HostId, Time};

use crate::traffic::spec::Window;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Contribution {
    /// In bit/s of payload.
    pub(crate) rate: f64,
    /// Part of `rate` to all other hosts [bit/s].
    pub(crate) uniform: f64,
    pub(crate) window: Window,
}

#[derive(Clone, Debug)]
pub(crate) struct OfferedLoad {
    ends: Vec<usize>,
    contributions: Vec<Contribution>,
    /// True if uniform traffic includes the sending host.
    loopback: bool,
}

impl OfferedLoad {
    pub(crate) fn new(loopback: bool) -> Self {
        Self {
            loopback,
            ends: Vec::new(),
            contributions: Vec::new(),
        }
    }

    pub(crate) fn push_host(&mut self, contributions: impl IntoIterator<Item = Contribution>) {
        self.contributions.extend(contributions);
        self.ends.push(self.contributions.len());
    }

    pub(crate) fn contributions(&self) -> impl Iterator<Item = &Contribution> {
        self.contributions.iter()
    }

    pub(crate) fn bits(&self, from: Time, to: Time) -> impl Iterator<Item = f64> + '_ {
        self.contributions.iter().map(move |source| {
            let start = source.window.start.max(from);
            let end = source.window.end.unwrap_or(Time::MAX).min(to);
            source.rate * end.max(start).since(start).as_ps() as f64 / 1e12
        })
    }

    /// In bit/s.
    pub(crate) fn of(&self, host: HostId, at: Time) -> f64 {
        self.active(host.index(), at)
            .map(|source| source.rate)
            .sum()
    }

    pub(crate) fn tmax(&self, hotspots: &[u32], at: Time) -> f64 {
        let hosts = self.ends.len();
        let uniform: Vec<f64> = (0..hosts)
            .map(|host| self.active(host, at).map(|source| source.uniform).sum())
            .collect();
        let total: f64 = uniform.iter().sum();
        let mut counted = vec![true; hosts];
        for &hotspot in hotspots {
            counted[hotspot as usize] = false;
        }
        let receivers = counted.iter().filter(|&&counted| counted).count();
        if receivers == 0 || hosts < 2 {
            return 0.0;
        }
        let received: f64 = uniform
            .iter()
            .zip(&counted)
            .filter(|&(_, &counted)| counted)
            .map(|(own, _)| {
                if self.loopback {
                    total / hosts as f64
                } else {
                    (total - own) / (hosts - 1) as f64
                }
            })
            .sum();
        received / receivers as f64
    }

    fn active(&self, host: usize, at: Time) -> impl Iterator<Item = &Contribution> {
        let first = host.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.contributions[first..self.ends[host]]
            .iter()
            .filter(move |source| {
                at >= source.window.start && source.window.end.is_none_or(|end| at < end)
            })
    }
}
