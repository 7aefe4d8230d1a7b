use silvan_core::document::Limit;
use silvan_core::{Bytes, HostId, Rate, Span, Time};

use crate::traffic::error::{Entry, Reason, TrafficError};
use crate::traffic::kinds::TrafficSection;
use crate::traffic::on_off::{OnOff, OnOffMeans};
use crate::traffic::pace::{Pace, Spacing, gap_at_rate};
use crate::traffic::rng::{Purpose, Stream, distinct, stream};
use crate::traffic::spec::{Environment, Window};
use crate::traffic::values::{HostRef, Load, Selection};

#[derive(Clone, Copy)]
pub(crate) struct Checker<'a> {
    pub(crate) entry: Entry,
    pub(crate) environment: &'a Environment,
    pub(crate) general: &'a TrafficSection,
}

pub(crate) struct ResolvedLoad {
    /// In bit/s of payload.
    pub(crate) rate: f64,
    /// Mean gap [2^-32 ps]; `None` if a message is always ready.
    pub(crate) gap: Option<u128>,
}

impl ResolvedLoad {
    pub(crate) fn pace(&self, spacing: Spacing, start: Time, gaps: Stream) -> Option<Pace> {
        self.gap.map(|gap| Pace::spaced(spacing, start, gap, gaps))
    }
}

impl Checker<'_> {
    pub(crate) fn fail<T>(&self, key: &'static str, reason: Reason) -> Result<T, TrafficError> {
        Err(TrafficError {
            entry: self.entry,
            key,
            index: None,
            reason,
        })
    }

    pub(crate) fn index(&self) -> usize {
        self.entry.index.unwrap_or_default()
    }

    pub(crate) fn stream(&self, purpose: Purpose, host: HostId) -> Stream {
        stream(self.environment.seed, purpose, host.index() as u64)
    }

    pub(crate) fn hosts(&self) -> usize {
        self.environment.injection.len()
    }

    pub(crate) fn host(&self, key: &'static str, host: &HostRef) -> Result<HostId, TrafficError> {
        let hosts = self.hosts();
        match host {
            HostRef::Id(host) if host.index() < hosts => Ok(*host),
            &HostRef::Id(host) => self.fail(key, Reason::OutsideFabric { host, hosts }),
            HostRef::Name(name) => match self.environment.names.host(name) {
                Ok(host) => Ok(host),
                Err(unknown) => self.fail(key, Reason::UnknownHost(unknown)),
            },
        }
    }

    pub(crate) fn hosts_of(
        &self,
        key: &'static str,
        list: &[HostRef],
    ) -> Result<Vec<HostId>, TrafficError> {
        let places = list.iter().enumerate();
        let hosts = places.map(|(index, host)| {
            self.host(key, host).map_err(|error| TrafficError {
                index: Some(index),
                ..error
            })
        });
        hosts.collect()
    }

    pub(crate) fn distinct_hosts(
        &self,
        key: &'static str,
        list: &[HostRef],
        taken: &mut [bool],
    ) -> Result<Vec<HostId>, TrafficError> {
        let hosts = self.hosts_of(key, list)?;
        for &host in &hosts {
            if std::mem::replace(&mut taken[host.index()], true) {
                return self.fail(key, Reason::Repeated(host));
            }
        }
        Ok(hosts)
    }

    /// In order of ids, without `receiver`, which must not be listed.
    pub(crate) fn senders(
        &self,
        selection: &Selection,
        receiver: Option<HostId>,
        purpose: Purpose,
    ) -> Result<Vec<HostId>, TrafficError> {
        self.choice("from", selection, receiver, purpose)
    }

    pub(crate) fn choice(
        &self,
        key: &'static str,
        selection: &Selection,
        receiver: Option<HostId>,
        purpose: Purpose,
    ) -> Result<Vec<HostId>, TrafficError> {
        let candidates = (0..self.hosts()).map(HostId::new);
        let candidates: Vec<HostId> = candidates.filter(|&host| Some(host) != receiver).collect();
        let mut senders = match selection {
            Selection::All => candidates,
            Selection::File(_) => return self.fail(key, Reason::FileOfHosts),
            Selection::Given(list) => {
                let list = self.distinct_hosts(key, list, &mut vec![false; self.hosts()])?;
                if let Some(&host) = list.iter().find(|&&host| Some(host) == receiver) {
                    return self.fail(key, Reason::ToItself(host));
                }
                list
            }
            &Selection::Random(count) => {
                let (wanted, available) = (count as usize, candidates.len());
                if wanted > available {
                    return self.fail(key, Reason::TooFewHosts { wanted, available });
                }
                let mut stream = stream(self.environment.seed, purpose, 0);
                distinct(&mut stream, wanted, available)
                    .into_iter()
                    .map(|place| candidates[place as usize])
                    .collect()
            }
        };
        if senders.is_empty() {
            return self.fail(key, Reason::NoHosts);
        }
        senders.sort_unstable();
        Ok(senders)
    }

    pub(crate) fn message(&self, own: Option<Bytes>) -> Result<u32, TrafficError> {
        let general = self.general.message;
        let size = own
            .or(general)
            .unwrap_or(self.environment.mtu * TrafficSection::DEFAULT_MESSAGE_PACKETS);
        self.size("message", size)
    }

    pub(crate) fn bytes(&self, bytes: Limit<Bytes>) -> Result<Option<u64>, TrafficError> {
        match bytes {
            Limit::At(Bytes::ZERO) => self.fail("bytes", Reason::ZeroBytes),
            bytes => Ok(bytes.value().map(Bytes::as_u64)),
        }
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

    pub(crate) fn window(&self, start: Span, end: Limit<Span>) -> Result<Window, TrafficError> {
        let start = Time::ZERO + start;
        match end.value().map(|end| Time::ZERO + end) {
            Some(end) if end <= start => self.fail("end", Reason::EndBeforeStart { start, end }),
            end => Ok(Window { start, end }),
        }
    }

    pub(crate) fn percentage(&self, key: &'static str, value: f64) -> Result<f64, TrafficError> {
        if (0.0..=100.0).contains(&value) {
            Ok(value / 100.0)
        } else {
            self.fail(key, Reason::NotAPercentage(value))
        }
    }

    pub(crate) fn on_off(
        &self,
        means: Option<OnOffMeans>,
        start: Time,
        load: &ResolvedLoad,
        draws: Stream,
    ) -> Result<Option<OnOff>, TrafficError> {
        const KEY: &str = "on-off";
        let Some(means) = means else {
            return Ok(None);
        };
        if means.on.is_zero() || means.off.is_zero() {
            return self.fail(KEY, Reason::ZeroSpan);
        }
        if load.gap.is_some() {
            return self.fail(KEY, Reason::OnOffUnsaturated);
        }
        Ok(Some(OnOff::new(means, start, draws)))
    }

    pub(crate) fn fraction(&self, key: &'static str, value: f64) -> Result<f64, TrafficError> {
        if (0.0..=1.0).contains(&value) {
            Ok(value)
        } else {
            self.fail(key, Reason::NotAFraction(value))
        }
    }

    /// Rate [bit/s] for flows of `mean` bytes, and mean gap [2^-32 ps].
    pub(crate) fn flow_load(
        &self,
        load: Load,
        host: HostId,
        mean: f64,
    ) -> Result<(f64, u128), TrafficError> {
        if load == Load::Saturating {
            return self.fail("load", Reason::FlowsSaturate);
        }
        let rate = self.load(load, host, 1)?.rate;
        let gap = mean * 8e12 / rate * (f64::from(u32::MAX) + 1.0);
        Ok((rate, gap as u128))
    }

    pub(crate) fn load(
        &self,
        load: Load,
        host: HostId,
        message: u32,
    ) -> Result<ResolvedLoad, TrafficError> {
        const KEY: &str = "load";
        let injection = self.environment.injection[host.index()];
        let message = Bytes::from_bytes(u64::from(message));
        let full = injection.bits_per_sec() as f64;
        match load {
            Load::Saturating => Ok(ResolvedLoad {
                rate: full,
                gap: None,
            }),
            Load::Fraction(fraction) => {
                self.fraction(KEY, fraction)?;
                if fraction == 0.0 {
                    return self.fail(KEY, Reason::ZeroLoad);
                }
                let gap = gap_at_rate(message, injection) as f64 / fraction;
                Ok(ResolvedLoad {
                    rate: full * fraction,
                    gap: (fraction < 1.0).then_some(gap as u128),
                })
            }
            Load::Rate(rate) if rate > injection => self.fail(
                KEY,
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

/// Each packet is rounded up as the engine's injection pace is.
pub(crate) fn message_time(message: u32, mtu: u32, rate: Rate) -> Span {
    let packet = |bytes: u32| rate.span_for(Bytes::from_bytes(u64::from(bytes)));
    packet(mtu) * u64::from(message / mtu) + packet(message % mtu)
}
