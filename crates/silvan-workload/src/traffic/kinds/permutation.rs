use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::document::Limit;
use silvan_core::{Bytes, HostId, Sl, Span, schema};

use super::TrafficKind;
use crate::traffic::build::Builder;
use crate::traffic::check::Checker;
use crate::traffic::error::{Reason, TrafficError};
use crate::traffic::fixed::{Fixed, Plan};
use crate::traffic::pace::Spacing;
use crate::traffic::rng::{Purpose, Stream, shuffle};
use crate::traffic::values::{HostRef, Load};

/// Destinations of a permutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// A random permutation in which no host sends to itself.
    #[default]
    Random,
    /// Host h sends to host h + `shift`, modulo the number of hosts.
    Shift,
    /// Host h sends to the host whose number has every bit of h inverted; the number of hosts must
    /// be a power of two.
    BitComplement,
    /// The receivers are in `to`.
    Given,
}

impl Pattern {
    const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Shift => "shift",
            Self::BitComplement => "bit-complement",
            Self::Given => "given",
        }
    }

    const fn key(self) -> Option<&'static str> {
        match self {
            Self::Random | Self::BitComplement => None,
            Self::Shift => Some("shift"),
            Self::Given => Some("to"),
        }
    }
}

/// Every host sends to one other host, every host receives from one other host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Permutation {
    /// Name in the statistics. Default: `permutation-1`, `permutation-2`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Receiver of each host.
    #[serde(default)]
    pub pattern: Pattern,
    /// Distance between sender and receiver; for the pattern `shift` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<u32>,
    /// Receiver of each host, in the order of the hosts; for the pattern `given` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Vec<HostRef>>,
    /// Offered load of each host.
    #[serde(default)]
    pub load: Load,
    /// Gaps between messages, if the load does not saturate.
    #[serde(default)]
    pub spacing: Spacing,
    /// Time of the first message.
    #[serde(default)]
    #[schemars(with = "schema::SpanText")]
    pub start: Span,
    /// Time from which on no message starts.
    #[serde(default)]
    #[schemars(with = "Limit<schema::SpanText>")]
    pub end: Limit<Span>,
    /// Size of a message, if it is not that of the section `traffic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub message: Option<Bytes>,
    /// Service level.
    #[serde(default)]
    #[schemars(with = "schema::SlNumber")]
    pub sl: Sl,
}

impl Permutation {
    fn check_keys(&self, check: &Checker) -> Result<(), TrafficError> {
        let wanted = self.pattern.key();
        let choice = self.pattern.name();
        for (key, given) in [("shift", self.shift.is_some()), ("to", self.to.is_some())] {
            if given && wanted != Some(key) {
                return check.fail(key, Reason::UnwantedKey { choice, wanted });
            }
            if !given && wanted == Some(key) {
                return check.fail(key, Reason::MissingKey { choice, key });
            }
        }
        Ok(())
    }

    fn receivers(&self, check: &Checker) -> Result<Vec<HostId>, TrafficError> {
        const KEY: &str = "pattern";
        let hosts = check.hosts();
        if hosts < 2 {
            return check.fail("", Reason::NoOtherHost(hosts));
        }
        match self.pattern {
            Pattern::Random => {
                let purpose = Purpose::Permutation(check.index());
                Ok(derangement(&mut check.stream(purpose, HostId::new(0)), hosts))
            }
            Pattern::Shift => {
                let shift = self.shift.unwrap_or_default() as usize % hosts;
                if shift == 0 {
                    return check.fail("shift", Reason::ToItself(HostId::new(0)));
                }
                let shifted = (0..hosts).map(|host| HostId::new((host + shift) % hosts));
                Ok(shifted.collect())
            }
            Pattern::BitComplement if hosts.is_power_of_two() => {
                Ok((0..hosts).rev().map(HostId::new).collect())
            }
            Pattern::BitComplement => check.fail(KEY, Reason::NotAPowerOfTwo(hosts)),
            Pattern::Given => {
                let list = self.to.as_deref().unwrap_or_default();
                if list.len() != hosts {
                    let given = list.len();
                    return check.fail("to", Reason::WrongLength { given, hosts });
                }
                let list = check.distinct_hosts("to", list, &mut vec![false; hosts])?;
                let to_itself = (0..hosts)
                    .map(HostId::new)
                    .find(|host| list[host.index()] == *host);
                if let Some(host) = to_itself {
                    return check.fail("to", Reason::ToItself(host));
                }
                Ok(list)
            }
        }
    }
}

impl TrafficKind for Permutation {
    fn name_mut(&mut self) -> Option<&mut Option<String>> {
        Some(&mut self.name)
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn levels(&self) -> Vec<(&'static str, Sl)> {
        vec![("sl", self.sl)]
    }

    fn build(&self, check: &Checker, builder: &mut Builder) -> Result<(), TrafficError> {
        self.check_keys(check)?;
        let receivers = self.receivers(check)?;
        let class = builder.class(check, &self.name)?;
        let message = check.message(self.message)?;
        let window = check.window(self.start, self.end)?;
        for (number, dst) in receivers.into_iter().enumerate() {
            let host = HostId::new(number);
            let load = check.load(self.load, host, message)?;
            let plan = Plan {
                dst,
                sl: self.sl,
                class,
                message,
                mtu: builder.mtu,
                window,
            };
            let gaps = check.stream(Purpose::PermutationGaps(check.index()), host);
            let pace = load.pace(self.spacing, window.start, gaps);
            builder.add_fixed(host, Fixed::new(plan, None, pace, None), load.rate);
        }
        Ok(())
    }
}

/// A uniform permutation without fixed point, by rejection: e tries on average.
pub(super) fn derangement(stream: &mut Stream, hosts: usize) -> Vec<HostId> {
    let mut order: Vec<usize> = (0..hosts).collect();
    loop {
        shuffle(stream, &mut order);
        if order.iter().enumerate().all(|(host, &dst)| host != dst) {
            return order.into_iter().map(HostId::new).collect();
        }
    }
}
