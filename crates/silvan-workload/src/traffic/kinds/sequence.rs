use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::document::Limit;
use silvan_core::{Bytes, Sl, Span, schema};

use super::TrafficKind;
use crate::traffic::build::Builder;
use crate::traffic::check::Checker;
use crate::traffic::closed_loop::{ClosedLoop, ClosedLoopPlan};
use crate::traffic::error::{Reason, TrafficError};
use crate::traffic::hosts::Source;
use crate::traffic::offered::Contribution;
use crate::traffic::values::HostRef;

/// A host that sends one message to each host of a list in turn, in a closed loop. A message starts when the message
/// before has been delivered completely.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Sequence {
    /// Name in the statistics. Default: `sequence-1`, `sequence-2`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The sender.
    pub from: HostRef,
    /// The receivers, in the order of their messages; a host may be listed more than once.
    pub to: Vec<HostRef>,
    /// Number of rounds through the list.
    #[serde(default = "Sequence::default_iterations")]
    pub iterations: Limit<u64>,
    /// Time from the delivery of a message to the start of the next one: the delay of the acknowledgement
    /// and the overhead of the sender.
    #[serde(default)]
    #[schemars(with = "schema::SpanText")]
    pub pause: Span,
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

impl Sequence {
    const fn default_iterations() -> Limit<u64> {
        Limit::At(1)
    }
}

impl TrafficKind for Sequence {
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
        let from = check.host("from", &self.from)?;
        if self.to.is_empty() {
            return check.fail("to", Reason::NoHosts);
        }
        let to = check.hosts_of("to", &self.to)?;
        if to.contains(&from) && !check.general.loopback {
            return check.fail("to", Reason::ToItself(from));
        }
        let iterations = self.iterations.value();
        if iterations == Some(0) {
            return check.fail("iterations", Reason::ZeroIterations);
        }
        let message = check.message(self.message)?;
        let window = check.window(self.start, self.end)?;
        let class = builder.class(check, &self.name)?;
        for dst in &to {
            builder.receives[dst.index()] = true;
        }
        let source = ClosedLoop::new(ClosedLoopPlan {
            to,
            iterations: iterations.unwrap_or(u64::MAX),
            sl: self.sl,
            class,
            message,
            mtu: builder.mtu,
            pause: self.pause,
            window,
        });
        // A sequence offers as much as the fabric delivers.
        let contribution = Contribution {
            rate: 0.0,
            uniform: 0.0,
            window,
        };
        builder.add(from, Source::ClosedLoop(Box::new(source)), contribution);
        Ok(())
    }
}
