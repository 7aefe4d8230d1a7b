use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::document::Limit;
use silvan_core::{Bytes, Sl, Span, schema};

use super::TrafficKind;
use crate::traffic::build::Builder;
use crate::traffic::check::Checker;
use crate::traffic::error::TrafficError;
use crate::traffic::fixed::{Fixed, Plan};
use crate::traffic::on_off::OnOffMeans;
use crate::traffic::pace::Spacing;
use crate::traffic::rng::Purpose;
use crate::traffic::values::{HostRef, Load, Selection};

/// Many hosts send to one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Incast {
    /// Name in the statistics. Default: `incast-1`, `incast-2`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The receiver.
    pub to: HostRef,
    /// The senders; `"all"` leaves out the receiver.
    #[serde(default)]
    pub from: Selection,
    /// Bytes that each sender sends.
    #[serde(default)]
    #[schemars(with = "Limit<schema::BytesText>")]
    pub bytes: Limit<Bytes>,
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

impl TrafficKind for Incast {
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
        let dst = check.host("to", &self.to)?;
        let senders = check.senders(&self.from, Some(dst), Purpose::IncastSenders(index))?;
        let class = builder.class(check, &self.name)?;
        if !senders.is_empty() {
            builder.add_target(dst);
        }
        let message = check.message(self.message)?;
        let window = check.window(self.start, self.end)?;
        let bytes = check.bytes(self.bytes)?;
        for host in senders {
            let load = check.load(self.load, host, message)?;
            let plan = Plan {
                dst,
                sl: self.sl,
                class,
                message,
                mtu: builder.mtu,
                window,
            };
            let gaps = check.stream(Purpose::IncastGaps(index), host);
            let pace = load.pace(self.spacing, window.start, gaps);
            let draws = check.stream(Purpose::IncastOnOff(index), host);
            let on_off = check.on_off(self.on_off, window.start, &load, draws)?;
            let rate = load.rate * OnOffMeans::share_on(self.on_off);
            builder.add_fixed(host, Fixed::new(plan, bytes, pace, on_off), rate);
        }
        Ok(())
    }
}
