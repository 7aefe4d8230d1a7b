use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{HostId, Sl, Span, Time, schema};

use super::TrafficKind;
use crate::traffic::build::Builder;
use crate::traffic::check::Checker;
use crate::traffic::error::{Reason, TrafficError};
use crate::traffic::flow_lines::{FlowEnd, FlowFormat, FlowLine, FlowLineError, read_flows};
use crate::traffic::flow_list::{FlowList, FlowListPlan, FlowSupply, ListedFlow};
use crate::traffic::hosts::Source;
use crate::traffic::offered::Contribution;
use crate::traffic::spec::{SendQueue, Window};
use crate::traffic::values::HostRef;

/// Flows of a file, a line for each; a row of the table `flows` for each.
///
/// The effective scenario has the lines as `list`: it needs the file no more. Flows from one host to another share a queue
/// pair: one follows the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FlowFile {
    /// Name in the statistics. Default: `flow-file-1`, `flow-file-2`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The file, at most 256 MiB; its path is relative to that of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The lines, in place of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// The file that `list` was read from, for errors.
    #[serde(skip)]
    pub read_from: Option<String>,
    /// Format of the lines.
    #[serde(default)]
    pub format: FlowFormat,
    /// Number that the file gives to the first host of the fabric; the others follow.
    #[serde(default)]
    pub first_host: u32,
    /// Time in the file at which the run starts. A flow before it is an error.
    #[serde(default)]
    #[schemars(with = "schema::SpanText")]
    pub origin: Span,
    /// Service level.
    #[serde(default)]
    #[schemars(with = "schema::SlNumber")]
    pub sl: Sl,
}

impl FlowFile {
    fn flows(&self, check: &Checker) -> Result<Vec<Vec<ListedFlow>>, TrafficError> {
        let Some(text) = &self.list else {
            return match &self.file {
                Some(file) => check.fail("file", Reason::UnreadFile(file.clone())),
                None => check.fail("file", Reason::NoFlowFile),
            };
        };
        let read = read_flows(text, self.format).and_then(|lines| {
            let lines = lines.iter().map(|line| self.flow(check, line));
            lines.collect::<Result<Vec<_>, _>>()
        });
        let read = read.or_else(|error| {
            let file = self.read_from.clone();
            check.fail("list", Reason::FlowLine(Box::new(error), file))
        })?;
        let mut flows = vec![Vec::new(); check.hosts()];
        for (from, flow) in read {
            flows[from.index()].push(flow);
        }
        // Stable: flows of one instant keep the file's order.
        flows
            .iter_mut()
            .for_each(|flows| flows.sort_by_key(|(start, ..)| *start));
        Ok(flows)
    }

    fn flow(
        &self,
        check: &Checker,
        line: &FlowLine,
    ) -> Result<(HostId, ListedFlow), FlowLineError> {
        let (from, to) = (
            self.host(check, line, &line.from)?,
            self.host(check, line, &line.to)?,
        );
        if from == to {
            let message = "the flow ends at its sender".to_owned();
            return Err(line.error(message, "name another receiver"));
        }
        let start = line.start.checked_sub(self.origin).ok_or_else(|| {
            let message = format!("the flow starts at {}, before the origin", line.start);
            line.error(message, "lower the key origin")
        })?;
        Ok((from, (Time::ZERO + start, to, line.bytes)))
    }

    fn host(
        &self,
        check: &Checker,
        line: &FlowLine,
        end: &FlowEnd,
    ) -> Result<HostId, FlowLineError> {
        let hosts = check.hosts();
        let host = match end {
            FlowEnd::Name(name) => check.host("list", &HostRef::Name(name.clone())),
            FlowEnd::Number(number) => {
                let first = u64::from(self.first_host);
                let place = number.checked_sub(first);
                let place = place.filter(|place| *place < hosts as u64);
                return place.map(|place| HostId::new(place as usize)).ok_or_else(|| {
                    let last = first + hosts as u64 - 1;
                    let message = format!("there is no host {number}; hosts are {first} to {last}");
                    line.error(message, "set first-host, or enlarge the fabric")
                });
            }
        };
        host.map_err(|error| line.error(error.reason.to_string(), "name a host of the fabric"))
    }
}

impl TrafficKind for FlowFile {
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
        let flows = self.flows(check)?;
        let window = Window {
            start: Time::ZERO,
            end: None,
        };
        let plan = FlowListPlan {
            sl: self.sl,
            class: builder.class(check, &self.name)?,
            mtu: builder.mtu,
            window,
            count: u64::from(u32::MAX),
            whole: check.environment.send_queue == SendQueue::Fifo,
        };
        for (host, flows) in flows.into_iter().enumerate() {
            if flows.is_empty() {
                continue;
            }
            for (_, receiver, _) in &flows {
                builder.receives[receiver.index()] = true;
            }
            let host = HostId::new(host);
            let list = FlowList::new(host, plan, FlowSupply::Listed(Arc::from(flows), 0));
            let contribution = Contribution {
                rate: 0.0,
                uniform: 0.0,
                window,
            };
            builder.add(host, Source::Flows(Box::new(list)), contribution);
        }
        Ok(())
    }
}
