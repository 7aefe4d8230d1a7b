use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::document::Limit;
use silvan_core::{Bytes, HostId, Sl, Span, schema};

use super::TrafficKind;
use crate::traffic::build::Builder;
use crate::traffic::check::Checker;
use crate::traffic::error::{Reason, TrafficError};
use crate::traffic::fixed::{Fixed, Plan};
use crate::traffic::on_off::OnOffMeans;
use crate::traffic::pace::Pace;
use crate::traffic::rng::Purpose;
use crate::traffic::values::{HostRef, Load};

/// A single flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Flow {
    /// Name in the statistics. Default: `flow-1`, `flow-2`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The sender.
    pub from: HostRef,
    /// The receiver.
    pub to: HostRef,
    /// Bytes to send; the last message is shorter if they are no multiple of the message size.
    #[serde(default)]
    #[schemars(with = "Limit<schema::BytesText>")]
    pub bytes: Limit<Bytes>,
    /// Offered load; its messages have equal gaps.
    #[serde(default)]
    pub load: Load,
    /// Time of the first message.
    #[serde(default)]
    #[schemars(with = "schema::SpanText")]
    pub start: Span,
    /// Time from which on no message starts.
    #[serde(default)]
    #[schemars(with = "Limit<schema::SpanText>")]
    pub end: Limit<Span>,
    /// Mean times on and off: `{ on = "1 ms", off = "1 ms" }`. Always on unless given; for a load that
    /// saturates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_off: Option<OnOffMeans>,
    /// Size of a message, if it is not that of the section `traffic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub message: Option<Bytes>,
    /// Service level.
    #[serde(default)]
    #[schemars(with = "schema::SlNumber")]
    pub sl: Sl,
}

pub(crate) struct FlowSource {
    pub(crate) from: HostId,
    pub(crate) fixed: Fixed,
    rate: f64,
}

impl Flow {
    /// A flow that saturates without end.
    pub fn new(from: HostRef, to: HostRef) -> Self {
        Self {
            name: None,
            from,
            to,
            bytes: Limit::Unlimited,
            load: Load::Saturating,
            start: Span::ZERO,
            end: Limit::Unlimited,
            on_off: None,
            message: None,
            sl: Sl::ZERO,
        }
    }

    pub(crate) fn source(
        &self,
        check: &Checker,
        mtu: u32,
        number: usize,
    ) -> Result<impl FnOnce(u16) -> FlowSource + use<>, TrafficError> {
        let from = check.host("from", &self.from)?;
        let dst = check.host("to", &self.to)?;
        if from == dst && !check.general.loopback {
            return check.fail("to", Reason::ToItself(from));
        }
        let bytes = check.bytes(self.bytes)?;
        let message = check.message(self.message)?;
        let window = check.window(self.start, self.end)?;
        let load = check.load(self.load, from, message)?;
        let pace = load.gap.map(|gap| Pace::periodic(window.start, gap));
        let draws = check.stream(Purpose::FlowOnOff(number), from);
        let on_off = check.on_off(self.on_off, window.start, &load, draws)?;
        let rate = load.rate * OnOffMeans::share_on(self.on_off);
        let sl = self.sl;
        Ok(move |class| {
            let plan = Plan {
                dst,
                sl,
                class,
                message,
                mtu,
                window,
            };
            FlowSource {
                from,
                fixed: Fixed::new(plan, bytes, pace, on_off),
                rate,
            }
        })
    }
}

impl TrafficKind for Flow {
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
        let make = self.source(check, builder.mtu, check.index())?;
        let FlowSource { from, fixed, rate } = make(builder.class(check, &self.name)?);
        builder.add_fixed(from, fixed, rate);
        Ok(())
    }
}
