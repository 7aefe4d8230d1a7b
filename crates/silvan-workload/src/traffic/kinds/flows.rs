use std::collections::VecDeque;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::document::Limit;
use silvan_core::{HostId, Sl, Span, Time, schema};

use super::TrafficKind;
use super::permutation::derangement;
use crate::traffic::build::Builder;
use crate::traffic::check::Checker;
use crate::traffic::error::{Reason, TrafficError};
use crate::traffic::flow_list::{FlowList, FlowListPlan, FlowSupply, Starts};
use crate::traffic::flow_targets::{Incasts, Targets};
use crate::traffic::hosts::Source;
use crate::traffic::offered::Contribution;
use crate::traffic::pace::{Pace, Spacing};
use crate::traffic::rng::Purpose;
use crate::traffic::sizes::SizeMix;
use crate::traffic::spec::SendQueue;
use crate::traffic::values::{Load, Selection};

pub(crate) const MOST_OUTSTANDING: u64 = 1 << 25;

/// Destinations of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowPattern {
    /// Each to a host drawn from `to`.
    #[default]
    Uniform,
    /// Each host sends all flows to one other host; all receivers differ.
    Permutation,
    /// Hosts are the elements of a square matrix, row by row: element (i, j) sends to (j, i), and those of the diagonal send nothing.
    Transpose,
    /// A share of them within a rack: `rack-hosts` hosts side by side.
    Rack,
    /// `senders` hosts drawn from `from` at once to a host drawn from `to`, every `interval`.
    Incast,
}

impl FlowPattern {
    const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Permutation => "permutation",
            Self::Transpose => "transpose",
            Self::Rack => "rack",
            Self::Incast => "incast",
        }
    }

    /// Keys that not all patterns have; required ones first.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Uniform => &["to"],
            Self::Permutation | Self::Transpose => &[],
            Self::Rack => &["rack-hosts", "rack-share"],
            Self::Incast => &["senders", "interval", "to"],
        }
    }
}

/// Many flows, each with a size, a destination and a start of its own; a row of the table `flows` for each.
///
/// They start by themselves at a `load`, or `outstanding` ones are always on their way. Flows from one host to another
/// share a queue pair: one follows the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Flows {
    /// Name in the statistics. Default: `flows-1`, `flows-2`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Sizes of the flows.
    pub sizes: SizeMix,
    /// The senders.
    #[serde(default)]
    pub from: Selection,
    /// Destinations of the flows.
    #[serde(default)]
    pub pattern: FlowPattern,
    /// The receivers; for the patterns `uniform` and `incast`. Default: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Selection>,
    /// Offered load of each sender, by the mean size: a fraction of its injection rate, or a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// Gaps between starts.
    #[serde(default)]
    pub spacing: Spacing,
    /// Flows that each sender has on their way, in place of a load: the next one starts when one was delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub outstanding: Option<u32>,
    /// Time from the delivery of a flow to the start of the next one; with `outstanding`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub pause: Option<Span>,
    /// Hosts that send at once; for the pattern `incast`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub senders: Option<u32>,
    /// Mean time from one incast to the next; for the pattern `incast`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub interval: Option<Span>,
    /// Hosts in a rack; for the pattern `rack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2))]
    pub rack_hosts: Option<u32>,
    /// Part of the flows that stay in their rack, from 0 to 1; for the pattern `rack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack_share: Option<f64>,
    /// Most flows of each sender.
    #[serde(default)]
    pub count: Limit<u64>,
    /// Time of the first flow.
    #[serde(default)]
    #[schemars(with = "schema::SpanText")]
    pub start: Span,
    /// Time from which on no flow starts: what is left of the run drains the fabric.
    #[serde(default)]
    #[schemars(with = "Limit<schema::SpanText>")]
    pub end: Limit<Span>,
    /// Service level.
    #[serde(default)]
    #[schemars(with = "schema::SlNumber")]
    pub sl: Sl,
}

impl Flows {
    /// Web-search flows of all hosts to all hosts at a load.
    pub fn at_load(sizes: SizeMix, load: f64) -> Self {
        Self {
            name: None,
            sizes,
            from: Selection::All,
            pattern: FlowPattern::Uniform,
            to: None,
            load: Some(Load::Fraction(load)),
            spacing: Spacing::Poisson,
            outstanding: None,
            pause: None,
            senders: None,
            interval: None,
            rack_hosts: None,
            rack_share: None,
            count: Limit::Unlimited,
            start: Span::ZERO,
            end: Limit::Unlimited,
            sl: Sl::ZERO,
        }
    }

    fn check_keys(&self, check: &Checker) -> Result<(), TrafficError> {
        let choice = self.pattern.name();
        let keys = self.pattern.keys();
        let given = [
            ("to", self.to.is_some(), false),
            ("rack-hosts", self.rack_hosts.is_some(), true),
            ("rack-share", self.rack_share.is_some(), true),
            ("senders", self.senders.is_some(), true),
            ("interval", self.interval.is_some(), true),
        ];
        for (key, given, needed) in given {
            let has = keys.contains(&key);
            if given && !has {
                let wanted = keys.first().copied();
                return check.fail(key, Reason::UnwantedKey { choice, wanted });
            }
            if !given && has && needed {
                return check.fail(key, Reason::MissingKey { choice, key });
            }
        }
        let is_incast = self.pattern == FlowPattern::Incast;
        let pacing = [
            ("load", self.load.is_some()),
            ("outstanding", self.outstanding.is_some()),
            ("interval", self.interval.is_some()),
        ];
        let mut paced = pacing.iter().filter(|(_, given)| *given);
        let first = paced.next();
        if let Some((key, _)) = paced.next() {
            return check.fail(key, Reason::TwoPaces);
        }
        if first.is_none() {
            return check.fail("load", Reason::NoPace);
        }
        if is_incast && self.interval.is_none() {
            return check.fail("interval", Reason::MissingKey { choice, key: "interval" });
        }
        if self.pause.is_some() && self.outstanding.is_none() {
            let (choice, wanted) = ("an open loop", Some("load"));
            return check.fail("pause", Reason::UnwantedKey { choice, wanted });
        }
        if self.count == Limit::At(0) {
            return check.fail("count", Reason::ZeroFlows);
        }
        match self.outstanding {
            Some(0) => check.fail("outstanding", Reason::ZeroOutstanding),
            _ => Ok(()),
        }
    }

    fn receivers(&self, check: &Checker) -> Result<Arc<[HostId]>, TrafficError> {
        let purpose = Purpose::Named("flows.receivers", check.index());
        let selection = self.to.clone().unwrap_or_default();
        Ok(check.choice("to", &selection, None, purpose)?.into())
    }

    fn targets(
        &self,
        check: &Checker,
        senders: &[HostId],
    ) -> Result<Vec<Option<Targets>>, TrafficError> {
        let hosts = check.hosts();
        if hosts < 2 {
            return check.fail("", Reason::NoOtherHost(hosts));
        }
        Ok(match self.pattern {
            FlowPattern::Uniform | FlowPattern::Incast => {
                let receivers = self.receivers(check)?;
                let of = |host: &HostId| {
                    let own = receivers.binary_search(host).ok().map(|own| own as u32);
                    let hosts = Arc::clone(&receivers);
                    (own.is_none() || hosts.len() > 1).then_some(Targets::Any { hosts, own })
                };
                let targets: Vec<_> = senders.iter().map(of).collect();
                if let (&[host], true) = (senders, targets.iter().all(Option::is_none)) {
                    return check.fail("to", Reason::ToItself(host));
                }
                targets
            }
            FlowPattern::Permutation => {
                let purpose = Purpose::Named("flows.permutation", check.index());
                let to = derangement(&mut check.stream(purpose, HostId::new(0)), hosts);
                let of = |host: &HostId| Some(Targets::One(to[host.index()]));
                senders.iter().map(of).collect()
            }
            FlowPattern::Transpose => {
                let side = hosts.isqrt();
                if side * side != hosts {
                    return check.fail("pattern", Reason::NotASquare(hosts));
                }
                let of = |host: &HostId| {
                    let (row, column) = (host.index() / side, host.index() % side);
                    (row != column).then(|| Targets::One(HostId::new(column * side + row)))
                };
                senders.iter().map(of).collect()
            }
            FlowPattern::Rack => {
                let size = self.rack_hosts.unwrap_or_default();
                let share = check.fraction("rack-share", self.rack_share.unwrap_or_default())?;
                if size < 2 || size as usize >= hosts || hosts as u32 % size != 0 {
                    let reason = Reason::RackSize { size, hosts };
                    return check.fail("rack-hosts", reason);
                }
                let probability = (share * (f64::from(u32::MAX) + 1.0)) as u64;
                let of = |host: &HostId| {
                    let own = host.index() as u32;
                    Some(Targets::Rack {
                        hosts: hosts as u32,
                        own,
                        rack: (own / size * size, size),
                        probability,
                    })
                };
                senders.iter().map(of).collect()
            }
        })
    }

    fn starts(
        &self,
        check: &Checker,
        host: HostId,
        start: Time,
        mean: f64,
    ) -> Result<(Starts, f64), TrafficError> {
        if let Some(outstanding) = self.outstanding {
            let due = VecDeque::from(vec![start; outstanding as usize]);
            let pause = self.pause.unwrap_or(Span::ZERO);
            return Ok((Starts::Closed { due, pause }, 0.0));
        }
        let load = self.load.unwrap_or_default();
        let (rate, gap) = check.flow_load(load, host, mean)?;
        let gaps = check.stream(Purpose::Named("flows.gaps", check.index()), host);
        let pace = Pace::spaced(self.spacing, start, gap, gaps);
        Ok((Starts::Open(Box::new(pace)), rate))
    }

    fn incasts(
        &self,
        check: &Checker,
        start: Time,
        senders: &[HostId],
    ) -> Result<Incasts, TrafficError> {
        let interval = self.interval.unwrap_or(Span::ZERO);
        if interval.is_zero() {
            return check.fail("interval", Reason::ZeroSpan);
        }
        let receivers = self.receivers(check)?;
        let fan_in = self.senders.unwrap_or_default();
        let both = receivers.iter().any(|host| senders.binary_search(host).is_ok());
        let (wanted, available) = (fan_in as usize, senders.len() - usize::from(both));
        if wanted > available {
            return check.fail("senders", Reason::TooFewHosts { wanted, available });
        }
        if wanted == 0 {
            return check.fail("senders", Reason::NoHosts);
        }
        let purpose = Purpose::Named("flows.incasts", check.index());
        let mut gaps = check.stream(purpose, HostId::new(0));
        let key = rand_core::RngCore::next_u64(&mut gaps);
        let gap = u128::from(interval.as_ps()) << 32;
        let pace = match self.spacing {
            Spacing::Periodic => Pace::periodic(start, gap),
            Spacing::Poisson => Pace::poisson(start, gap, gaps),
        };
        Ok(Incasts::new(pace, key, senders.into(), receivers, fan_in))
    }
}

impl TrafficKind for Flows {
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
        let sizes = self.sizes.sizes().or_else(|reason| check.fail("sizes", reason))?;
        let purpose = Purpose::Named("flows.senders", check.index());
        let senders = check.senders(&self.from, None, purpose)?;
        let targets = self.targets(check, &senders)?;
        let window = check.window(self.start, self.end)?;
        let outstanding = u64::from(self.outstanding.unwrap_or_default());
        if outstanding.saturating_mul(senders.len() as u64) > MOST_OUTSTANDING {
            let hosts = senders.len();
            return check.fail("outstanding", Reason::Outstanding { outstanding, hosts });
        }
        let incasts = match self.pattern {
            FlowPattern::Incast => Some(self.incasts(check, window.start, &senders)?),
            _ => None,
        };
        let plan = FlowListPlan {
            sl: self.sl,
            class: builder.class(check, &self.name)?,
            mtu: builder.mtu,
            window,
            count: self.count.value().unwrap_or(u64::from(u32::MAX)),
            whole: check.environment.send_queue == SendQueue::Fifo,
        };
        for (host, targets) in senders.into_iter().zip(targets) {
            let Some(targets) = targets else { continue };
            let (starts, rate) = match &incasts {
                None => self.starts(check, host, window.start, sizes.mean())?,
                Some(incasts) => {
                    let mut own = incasts.clone();
                    own.advance(host, window.end.unwrap_or(Time::MAX));
                    (Starts::Incasts(Box::new(own)), 0.0)
                }
            };
            builder.add_receivers(&targets, host);
            let draws = check.stream(Purpose::Named("flows.draws", check.index()), host);
            let is_uniform = self.pattern == FlowPattern::Uniform && self.to.is_none();
            let contribution = Contribution {
                rate,
                uniform: if is_uniform { rate } else { 0.0 },
                window,
            };
            let supply = FlowSupply::Drawn {
                starts,
                targets,
                sizes: sizes.clone(),
                draws,
            };
            let list = FlowList::new(host, plan, supply);
            builder.add(host, Source::Flows(Box::new(list)), contribution);
        }
        Ok(())
    }
}
