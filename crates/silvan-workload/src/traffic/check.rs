//! Checks and conversions that several entries share. Each names the key at fault.

use silvan_core::{Bytes, HostId, Rate, Span};

use crate::traffic::error::{Entry, Reason, TrafficError};
use crate::traffic::pace::gap_at_rate;
use crate::traffic::rng::Purpose;
use crate::traffic::rng::{distinct, stream};
use crate::traffic::spec::{Environment, Load, Selection, Window};

/// One entry being built, for errors to name.
#[derive(Clone, Copy)]
pub(crate) struct Checker<'a> {
    pub(crate) entry: Entry,
    pub(crate) environment: &'a Environment,
}

/// A load resolved for one host.
pub(crate) struct ResolvedLoad {
    /// Offered payload rate [bit/s].
    pub(crate) rate: f64,
    /// Mean gap between messages [2^-32 ps]; `None`: there always is a message.
    pub(crate) gap: Option<u128>,
}

impl Checker<'_> {
    pub(crate) fn fail<T>(&self, key: &'static str, reason: Reason) -> Result<T, TrafficError> {
        Err(TrafficError {
            entry: self.entry,
            key,
            reason,
        })
    }

    pub(crate) fn hosts(&self) -> usize {
        self.environment.injection.len()
    }

    pub(crate) fn host(&self, key: &'static str, host: HostId) -> Result<HostId, TrafficError> {
        let hosts = self.hosts();
        if host.index() < hosts {
            Ok(host)
        } else {
            self.fail(key, Reason::OutsideFabric { host, hosts })
        }
    }

    /// The hosts of a list, each in the fabric and named once.
    pub(crate) fn distinct_hosts(
        &self,
        key: &'static str,
        list: &[HostId],
        taken: &mut [bool],
    ) -> Result<(), TrafficError> {
        for &host in list {
            self.host(key, host)?;
            if std::mem::replace(&mut taken[host.index()], true) {
                return self.fail(key, Reason::Repeated(host));
            }
        }
        Ok(())
    }

    /// The selected senders in order of their ids; never `receiver`, which may not be in a list.
    pub(crate) fn senders(
        &self,
        selection: &Selection,
        receiver: Option<HostId>,
        purpose: Purpose,
    ) -> Result<Vec<HostId>, TrafficError> {
        const KEY: &str = "from";
        let candidates = (0..self.hosts()).map(HostId::new);
        let candidates: Vec<HostId> = candidates.filter(|&host| Some(host) != receiver).collect();
        let mut senders = match selection {
            Selection::All => candidates,
            Selection::Given(list) => {
                self.distinct_hosts(KEY, list, &mut vec![false; self.hosts()])?;
                if let Some(&host) = list.iter().find(|&&host| Some(host) == receiver) {
                    return self.fail(KEY, Reason::ToItself(host));
                }
                list.clone()
            }
            &Selection::Random(count) => {
                let (wanted, available) = (count as usize, candidates.len());
                if wanted > available {
                    return self.fail(KEY, Reason::TooFewHosts { wanted, available });
                }
                let mut stream = stream(self.environment.seed, purpose, 0);
                distinct(&mut stream, wanted, available)
                    .into_iter()
                    .map(|place| candidates[place as usize])
                    .collect()
            }
        };
        if senders.is_empty() {
            return self.fail(KEY, Reason::NoHosts);
        }
        senders.sort_unstable();
        Ok(senders)
    }

    /// Payload bytes of a message: the entry's own size, else that for all, else two packets.
    pub(crate) fn message(
        &self,
        own: Option<Bytes>,
        general: Option<Bytes>,
    ) -> Result<u32, TrafficError> {
        let size = own.or(general).unwrap_or(self.environment.mtu * 2);
        self.size("message", size)
    }

    pub(crate) fn size(&self, key: &'static str, size: Bytes) -> Result<u32, TrafficError> {
        if size.is_zero() {
            return self.fail(key, Reason::ZeroBytes);
        }
        match u32::try_from(size.as_u64()) {
            Ok(bytes) => Ok(bytes),
            Err(_) => self.fail(key, Reason::TooLarge(size)),
        }
    }

    pub(crate) fn window(&self, window: Window) -> Result<Window, TrafficError> {
        match window.end {
            Some(end) if end <= window.start => {
                let start = window.start;
                self.fail("end", Reason::EndBeforeStart { start, end })
            }
            _ => Ok(window),
        }
    }

    pub(crate) fn fraction(&self, key: &'static str, value: f64) -> Result<f64, TrafficError> {
        if (0.0..=1.0).contains(&value) {
            Ok(value)
        } else {
            self.fail(key, Reason::NotAFraction(value))
        }
    }

    /// What `load` means for `host` and messages of `message` bytes.
    pub(crate) fn load(
        &self,
        key: &'static str,
        load: Load,
        host: HostId,
        message: u32,
    ) -> Result<ResolvedLoad, TrafficError> {
        let injection = self.environment.injection[host.index()];
        let message = Bytes::from_bytes(u64::from(message));
        let full = injection.bits_per_sec() as f64;
        match load {
            Load::Saturating => Ok(ResolvedLoad {
                rate: full,
                gap: None,
            }),
            Load::Fraction(fraction) => {
                self.fraction(key, fraction)?;
                if fraction == 0.0 {
                    return self.fail(key, Reason::ZeroLoad);
                }
                let gap = gap_at_rate(message, injection) as f64 / fraction;
                Ok(ResolvedLoad {
                    rate: full * fraction,
                    gap: (fraction < 1.0).then_some(gap as u128),
                })
            }
            Load::Rate(rate) if rate > injection => self.fail(
                key,
                Reason::AboveInjection {
                    rate,
                    host,
                    injection,
                },
            ),
            Load::Rate(rate) => Ok(ResolvedLoad {
                rate: rate.bits_per_sec() as f64,
                gap: Some(gap_at_rate(message, rate)),
            }),
        }
    }
}

/// The time that the packets of one message take at `rate`, each rounded up as the engine's
/// injection pace is.
pub(crate) fn message_time(message: u32, mtu: u32, rate: Rate) -> Span {
    let packet = |bytes: u32| rate.span_for(Bytes::from_bytes(u64::from(bytes)));
    packet(mtu) * u64::from(message / mtu) + packet(message % mtu)
}
