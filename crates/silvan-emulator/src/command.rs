//! What the control channel asks for, and the answers: a line of JSON each.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use silvan_core::{Bytes, PortId, PortNumber, Rate, Sl, Time};
use silvan_fabric::NodeKind;
use silvan_mad::smp::PortState;

use crate::clients::Clients;
use crate::pace::Pace;
use crate::plane::NewFlow;
use crate::subnet::Sources;

/// A request of the control channel, distinguished by `do`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Simulated time, lag, rates, programs attached, datagrams served.
    Status,
    /// All that sends, with its rate.
    Flows,
    /// Starts a flow.
    Start {
        /// Name of the sender.
        from: String,
        /// Name of the receiver.
        to: String,
        /// Payload rate such as `"8 Gbit/s"`; as much as the host can without.
        #[serde(default)]
        rate: Option<String>,
        /// Payload to send, such as `"1 GiB"`; without end without.
        #[serde(default)]
        bytes: Option<String>,
        /// Service level.
        #[serde(default)]
        sl: u8,
        /// Name of the flow.
        #[serde(default)]
        name: Option<String>,
    },
    /// Stops what is named so.
    Stop {
        /// A name that `flows` lists.
        flow: String,
    },
    /// Resumes a stopped flow.
    Continue {
        /// A name that `flows` lists.
        flow: String,
    },
    /// Cuts the cable in a port.
    Cut {
        /// The port, `node:number`, or the name of a host.
        port: String,
    },
    /// Restores it.
    Restore {
        /// The port, `node:number`, or the name of a host.
        port: String,
    },
    /// Loses management datagrams, requests and answers alike; 0 ends it.
    Lose {
        /// Percentage of datagrams to drop.
        percent: f64,
        /// Random seed for choosing which datagrams are dropped.
        #[serde(default)]
        seed: u64,
    },
    /// Powers a switch off; it comes back with factory settings.
    Reboot {
        /// Name of the switch.
        switch: String,
        /// For how long it is off.
        #[serde(default)]
        seconds: f64,
    },
    /// Stops simulated time.
    Pause,
    /// Resumes simulated time.
    Resume,
    /// Changes the speed of simulated time.
    Scale {
        /// Simulated seconds per second.
        factor: f64,
    },
    /// The forwarding tables, as `dump_lfts` prints them.
    Tables {
        /// With the service levels of these paths that are not 0, and the SL to VL tables that a subnet
        /// manager has set for them.
        #[serde(default)]
        levels: Option<Sources>,
    },
    /// Lets hosts ask the subnet manager for their paths to all hosts.
    QueryPaths {
        /// One of every switch, or all of them.
        sources: Sources,
    },
    /// Nodes, ports and scenario, for the browser page.
    Fabric,
    /// Counters of all ports and the congestion trees of this instant. As many bytes as the answer states
    /// follow its line: columns of numbers in the order of the answer.
    Sample,
    /// Ends the emulation.
    Quit,
}

/// Delivered bytes at an instant, for rates.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    at: Time,
    bytes: Vec<u64>,
}

/// Samples apart by at least this much simulated time make a rate.
#[derive(Debug, Default)]
pub(crate) struct CounterRates {
    older: Sample,
    newer: Sample,
}

impl CounterRates {
    /// Takes a sample.
    pub fn sample(&mut self, clients: &Clients) {
        let flows = clients.subnet.plane.flows();
        let sample = Sample {
            at: clients.subnet.now(),
            bytes: flows.into_iter().map(|(_, _, bytes)| bytes).collect(),
        };
        self.older = std::mem::replace(&mut self.newer, sample);
    }

    /// Rate of a class in Gbit/s of payload between the last two samples.
    fn gbps(&self, class: usize) -> f64 {
        let span = self.newer.at.since(self.older.at).as_secs_f64();
        let at = |sample: &Sample| sample.bytes.get(class).copied().unwrap_or(0);
        if span <= 0.0 {
            return 0.0;
        }
        at(&self.newer).saturating_sub(at(&self.older)) as f64 * 8e-9 / span
    }
}

/// What a command needs to see and to change.
pub(crate) struct ControlSession<'a> {
    pub clients: &'a mut Clients,
    pub pace: &'a mut Pace,
    pub rates: &'a CounterRates,
    pub now: Instant,
    pub quit: &'a mut bool,
}

type Answer = Result<Value, String>;

impl ControlSession<'_> {
    /// Answers a line with a line, which numbers may follow.
    pub fn answer(&mut self, line: &str) -> Vec<u8> {
        let mut numbers = Vec::new();
        let answer = match serde_json::from_str::<Command>(line) {
            Ok(Command::Sample) => {
                let sample = crate::view::sample(&self.clients.subnet);
                numbers = sample.bytes;
                Ok(sample.header)
            }
            Ok(command) => self.obey(command),
            Err(error) => Err(format!("not a command: {error}")),
        };
        let answer = match answer {
            Ok(value) => json!({ "ok": value }),
            Err(message) => json!({ "error": message }),
        };
        let mut bytes = answer.to_string().into_bytes();
        bytes.push(b'\n');
        bytes.append(&mut numbers);
        bytes
    }

    fn obey(&mut self, command: Command) -> Answer {
        let simulated = self.clients.subnet.now();
        match command {
            Command::Status => Ok(self.status()),
            Command::Flows => Ok(self.flows()),
            Command::Start {
                from,
                to,
                rate,
                bytes,
                sl,
                name,
            } => {
                let flow = NewFlow {
                    name,
                    from: self.host(&from)?,
                    to: self.host(&to)?,
                    rate: rate.map(|rate| parse::<Rate>(&rate)).transpose()?,
                    bytes: bytes.map(|bytes| parse::<Bytes>(&bytes)).transpose()?,
                    sl: Sl::try_new(sl).map_err(|error| error.to_string())?,
                };
                let plane = &mut self.clients.subnet.plane;
                let name = plane.start_flow(&flow).map_err(|error| error.to_string())?;
                Ok(json!({ "flow": name }))
            }
            Command::Stop { flow } => self.set_running(&flow, false),
            Command::Continue { flow } => self.set_running(&flow, true),
            Command::Cut { port } => self.set_cable(&port, true),
            Command::Restore { port } => self.set_cable(&port, false),
            Command::Lose { percent, seed } => self.lose(percent, seed),
            Command::Reboot { switch, seconds } => self.reboot(&switch, seconds),
            Command::Pause => {
                self.pace.set_paused(true, self.now, simulated);
                Ok(json!({}))
            }
            Command::Resume => {
                self.pace.set_paused(false, self.now, simulated);
                Ok(json!({}))
            }
            Command::Scale { factor } if factor > 0.0 && factor.is_finite() => {
                self.pace.set_scale(factor, self.now, simulated);
                Ok(json!({}))
            }
            Command::Scale { factor } => Err(format!("a time scale of {factor}")),
            Command::Tables { levels } => {
                let tables = crate::tables::dump(&self.clients.subnet, levels);
                Ok(json!({ "tables": tables }))
            }
            Command::QueryPaths { sources } => match self.clients.query_all_paths(sources) {
                Some(count) => Ok(json!({ "questions": count })),
                None => Err("there is no subnet manager to ask".to_owned()),
            },
            Command::Fabric => Ok(crate::view::fabric(&self.clients.subnet)),
            // Answered with numbers, before.
            Command::Sample => Ok(json!({})),
            Command::Quit => {
                *self.quit = true;
                Ok(json!({}))
            }
        }
    }

    fn status(&self) -> Value {
        let (clients, pace) = (&self.clients, &self.pace);
        let subnet = &clients.subnet;
        let fabric = &subnet.fabric;
        let down = fabric
            .links
            .iter()
            .filter(|link| !subnet.record(link.a).is_linked());
        let inactive = fabric.ports.ids().filter_map(|port| {
            let record = subnet.record(port);
            let state = record.info.port_state;
            (record.is_linked() && state != PortState::ACTIVE)
                .then(|| format!("{} ({state})", fabric.port_name(port)))
        });
        // The sum of no numbers is -0.
        let total = (0..self.rates.newer.bytes.len())
            .map(|class| self.rates.gbps(class))
            .fold(0.0, |sum, rate| sum + rate);
        json!({
            "simulated_s": subnet.now().as_secs_f64(),
            "time_scale": pace.scale(),
            "speed": pace.speed(),
            "lag_s": pace.lag(self.now, subnet.now()).as_secs_f64(),
            "given_up_s": pace.given_up(),
            "paused": pace.is_paused(),
            "uptime_s": subnet.uptime.as_secs_f64(),
            "hosts": fabric.host_count(),
            "switches": fabric.switch_count(),
            "links_down": down.map(|link| fabric.port_name(link.a).to_string()).collect::<Vec<_>>(),
            "ports_not_active": inactive.collect::<Vec<_>>(),
            "switches_off": subnet.switches_off().map(|node| &*fabric.nodes[node].name).collect::<Vec<_>>(),
            "clients": clients.count(),
            "default_host": clients.default_name(),
            "delivered_bytes": subnet.plane.delivered_bytes(fabric),
            "discarded_bytes": subnet.plane.engine.discarded_bytes(),
            "deadlocks_broken": subnet.plane.deadlocks,
            "receive_gbps": total,
            "paths": {
                "answered": clients.questions.answered,
                "unanswered": clients.questions.count(),
            },
            "lost_percent": clients.loss.share() * 100.0,
            "datagrams": {
                "answered": clients.traffic.answered,
                "forwarded": clients.traffic.forwarded,
                "timed_out": clients.traffic.timed_out,
                "dropped": clients.traffic.dropped,
                "lost": clients.traffic.lost,
            },
        })
    }

    fn flows(&self) -> Value {
        let flows = self.clients.subnet.plane.flows();
        flows
            .into_iter()
            .enumerate()
            .map(|(class, (name, running, bytes))| {
                json!({
                    "flow": name,
                    "running": running,
                    "delivered_bytes": bytes,
                    "receive_gbps": self.rates.gbps(class),
                })
            })
            .collect()
    }

    fn host(&self, name: &str) -> Result<silvan_core::HostId, String> {
        let fabric = &self.clients.subnet.fabric;
        let node = fabric.node_by_name(name);
        let host = node.and_then(|node| fabric.nodes[node].as_host());
        host.ok_or_else(|| match fabric.nearest_name(name) {
            Some(nearest) => format!("there is no host named {name:?}; did you mean {nearest:?}?"),
            None => format!("there is no host named {name:?}"),
        })
    }

    fn set_running(&mut self, flow: &str, running: bool) -> Answer {
        let plane = &mut self.clients.subnet.plane;
        if plane.set_running(flow, running) {
            return Ok(json!({ "flow": flow }));
        }
        let names = plane.flows().into_iter().map(|(name, _, _)| name);
        let names: Vec<String> = names.take(10).collect();
        Err(format!(
            "nothing is named {flow:?}; there are {}",
            names.join(", ")
        ))
    }

    /// A port as people write it.
    fn port(&self, text: &str) -> Result<PortId, String> {
        let fabric = &self.clients.subnet.fabric;
        if let Some(node) = fabric.node_by_name(text) {
            if let NodeKind::Host(host) = fabric.nodes[node].kind {
                return Ok(fabric.host_port(host));
            }
            return Err(format!("{text:?} is a switch; name a port of it, {text}:1"));
        }
        let found = text.rsplit_once(':').and_then(|(name, number)| {
            let node = fabric.node_by_name(name)?;
            fabric.port(node, PortNumber::new(number.parse().ok()?))
        });
        found.ok_or_else(|| format!("there is no port {text:?}; write NODE:NUMBER"))
    }

    fn lose(&mut self, percent: f64, seed: u64) -> Answer {
        if !(0.0..=100.0).contains(&percent) {
            return Err(format!("{percent} of a hundred datagrams cannot be lost"));
        }
        self.clients.loss.set(percent / 100.0, seed);
        Ok(json!({ "lost_percent": percent }))
    }

    fn reboot(&mut self, name: &str, seconds: f64) -> Answer {
        let fabric = &self.clients.subnet.fabric;
        let node = fabric.node_by_name(name);
        let switch = node.and_then(|node| fabric.nodes[node].as_switch());
        let switch = switch.ok_or_else(|| match fabric.nearest_name(name) {
            Some(near) if near != name => {
                format!("there is no switch named {name:?}; did you mean {near:?}?")
            }
            _ => format!("there is no switch named {name:?}"),
        })?;
        let span = Duration::try_from_secs_f64(seconds)
            .map_err(|_| format!("a switch cannot be off for {seconds} s"))?;
        if !self.clients.subnet.power_off(switch, span) {
            return Err(format!("{name} is off already"));
        }
        self.clients.come_due();
        self.clients.flush_traps();
        Ok(json!({ "switch": name, "off_s": seconds }))
    }

    fn set_cable(&mut self, port: &str, cut: bool) -> Answer {
        let id = self.port(port)?;
        if !self.clients.subnet.set_cable(id, cut) {
            return Err(format!("there is no cable in {port}"));
        }
        self.clients.flush_traps();
        let fabric = &self.clients.subnet.fabric;
        let peer = fabric.ports[id]
            .peer
            .map(|peer| fabric.port_name(peer).to_string());
        Ok(json!({ "port": fabric.port_name(id).to_string(), "peer": peer }))
    }
}

fn parse<T: std::str::FromStr>(text: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}
