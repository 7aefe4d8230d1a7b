use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::document::Limit;
use silvan_core::{Bytes, Sl, Span, schema};

use super::TrafficKind;
use crate::traffic::build::Builder;
use crate::traffic::check::Checker;
use crate::traffic::error::{Reason, TrafficError};
use crate::traffic::hosts::Source;
use crate::traffic::offered::Contribution;
use crate::traffic::pace::Spacing;
use crate::traffic::rng::Purpose;
use crate::traffic::scatter::{Classes, Common, Scatter};
use crate::traffic::supply::{Spread, Supply};
use crate::traffic::values::{Load, Selection};

/// Messages to destinations drawn uniformly from all other hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Uniform {
    /// Name in the statistics. Default: `uniform-1`, `uniform-2`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The senders.
    #[serde(default)]
    pub from: Selection,
    /// Offered load of each sender.
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

impl TrafficKind for Uniform {
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
        let index = check.index();
        let hosts = check.hosts();
        let senders = check.senders(&self.from, None, Purpose::UniformSenders(index))?;
        if hosts < 2 {
            return check.fail("", Reason::NoOtherHost(hosts));
        }
        let message = check.message(self.message)?;
        let window = check.window(self.start, self.end)?;
        let class = builder.class(check, &self.name)?;
        let common = builder.common(Common {
            hosts: hosts as u32,
            loopback: builder.spec.loopback,
            message,
            mtu: builder.mtu,
            sl: self.sl,
            backlog: builder.spec.backlog,
            window,
        });
        builder.reach_all_from(&senders);
        for host in senders {
            let load = check.load(self.load, host, message)?;
            let destinations = check.stream(Purpose::UniformDestinations(index), host);
            let gaps = check.stream(Purpose::UniformGaps(index), host);
            let supply = match load.pace(self.spacing, window.start, gaps) {
                Some(pace) => Supply::Paced(Box::new(pace)),
                None => Supply::Uniform,
            };
            let classes = Classes {
                uniform: class,
                hot: class,
            };
            let spread = Spread::new(host, destinations);
            let contribution = Contribution {
                rate: load.rate,
                uniform: load.rate,
                window,
            };
            let start = match supply {
                Supply::Paced(_) => window.start,
                _ => builder.start(host, message, window.start),
            };
            let scatter = Scatter::new(common, classes, start, spread, supply);
            builder.add(host, Source::Scatter(scatter), contribution);
        }
        Ok(())
    }
}
