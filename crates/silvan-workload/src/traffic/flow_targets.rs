use silvan_core::{HostId, Span, Time};

use crate::traffic::pace::Pace;
use crate::traffic::rng::{Stream, below, mix};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) enum Targets {
    One(HostId),
    /// Any other host of a list; `own` is the own index.
    Any {
        hosts: Arc<[HostId]>,
        own: Option<u32>,
    },
    /// Own rack with a probability in units of 2^-32, else another rack.
    Rack {
        hosts: u32,
        own: u32,
        rack: (u32, u32),
        probability: u64,
    },
}

impl Targets {
    pub(crate) fn draw(&self, draws: &mut Stream) -> HostId {
        match self {
            Self::One(host) => *host,
            Self::Any { hosts, own: None } => hosts[below(draws, hosts.len() as u32) as usize],
            Self::Any {
                hosts,
                own: Some(own),
            } => {
                let drawn = below(draws, hosts.len() as u32 - 1);
                hosts[(drawn + u32::from(drawn >= *own)) as usize]
            }
            &Self::Rack {
                hosts,
                own,
                rack: (first, size),
                probability,
            } => {
                let local = u64::from(below(draws, u32::MAX)) < probability;
                let host = match local {
                    true => {
                        let drawn = first + below(draws, size - 1);
                        drawn + u32::from(drawn >= own)
                    }
                    false => {
                        let drawn = below(draws, hosts - size);
                        drawn + if drawn >= first { size } else { 0 }
                    }
                };
                HostId::new(host as usize)
            }
        }
    }
}

/// Incasts seen by one sender: a permutation keyed by the incast's number orders senders, the first take part.
#[derive(Clone, Debug)]
pub(crate) struct Incasts {
    pace: Pace,
    key: u64,
    senders: Arc<[HostId]>,
    receivers: Arc<[HostId]>,
    fan_in: u32,
    number: u64,
    next: Option<(Time, HostId)>,
}

impl Incasts {
    pub(crate) fn new(
        pace: Pace,
        key: u64,
        senders: Arc<[HostId]>,
        receivers: Arc<[HostId]>,
        fan_in: u32,
    ) -> Self {
        Self {
            pace,
            key,
            senders,
            receivers,
            fan_in,
            number: 0,
            next: None,
        }
    }

    pub(crate) fn expected(&self, span: Span) -> u64 {
        let all = u128::from(self.pace.expected(span)) * u128::from(self.fan_in);
        (all / self.senders.len().max(1) as u128) as u64
    }

    pub(crate) fn due(&self) -> Time {
        self.next.map_or(Time::MAX, |(due, _)| due)
    }

    pub(crate) fn receiver(&self) -> HostId {
        self.next
            .map_or(self.receivers[0], |(_, receiver)| receiver)
    }

    pub(crate) fn skip_to(&mut self, now: Time) {
        self.pace.skip_to(now);
    }

    pub(crate) fn advance(&mut self, host: HostId, end: Time) {
        loop {
            let due = self.pace.due();
            if due >= end || due == Time::MAX {
                self.next = None;
                return;
            }
            self.pace.advance();
            let key = mix(self.key ^ mix(self.number));
            self.number += 1;
            let receivers = self.receivers.len() as u128;
            let receiver = self.receivers[((u128::from(key) * receivers) >> 64) as usize];
            if self.takes_part(host, receiver, key) {
                self.next = Some((due, receiver));
                return;
            }
        }
    }

    fn takes_part(&self, host: HostId, receiver: HostId, key: u64) -> bool {
        let place = |host: HostId| {
            let index = self.senders.binary_search(&host).ok()?;
            Some(permuted(index as u64, self.senders.len() as u64, key))
        };
        match (place(host), place(receiver)) {
            (Some(own), Some(skipped)) => {
                host != receiver && own - u64::from(skipped < own) < u64::from(self.fan_in)
            }
            (Some(own), None) => own < u64::from(self.fan_in),
            (None, _) => false,
        }
    }
}

/// A permutation of the numbers below `count`: a Feistel network of eight rounds (Luby and Rackoff, SIAM J. Comput.
/// 17:2, 1988) on the next power of four, repeated until below `count` (Black and Rogaway, CT-RSA 2002). Fewer rounds
/// prefer some places for small `count`.
fn permuted(number: u64, count: u64, key: u64) -> u64 {
    let bits = 64 - (count - 1).max(1).leading_zeros();
    let half = bits.div_ceil(2);
    let mask = (1_u64 << half) - 1;
    let mut number = number;
    loop {
        let (mut left, mut right) = (number >> half, number & mask);
        for round in 0..8 {
            let scattered = mix(key.wrapping_add(round) ^ mix(right)) & mask;
            (left, right) = (right, left ^ scattered);
        }
        number = left << half | right;
        if number < count {
            return number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_permutes() {
        for count in [1, 2, 3, 5, 16, 17, 64, 100] {
            for key in 0..50 {
                let mut images: Vec<u64> = (0..count).map(|i| permuted(i, count, key)).collect();
                images.sort_unstable();
                assert_eq!(images, (0..count).collect::<Vec<_>>(), "{count} {key}");
            }
        }
    }

    #[test]
    fn every_place_is_equally_likely() {
        // Chi-square with 99 degrees of freedom: above 148 with probability 0.001.
        let (count, draws) = (10_u64, 20_000);
        let mut cells = vec![0_u32; 100];
        for key in 0..draws {
            for number in 0..count {
                cells[(number * count + permuted(number, count, mix(key))) as usize] += 1;
            }
        }
        let expected = draws as f64 / count as f64;
        let terms = cells
            .iter()
            .map(|&cell| (f64::from(cell) - expected).powi(2) / expected);
        let chi_square: f64 = terms.sum();
        assert!(chi_square < 148.0, "{chi_square}");
    }
}
