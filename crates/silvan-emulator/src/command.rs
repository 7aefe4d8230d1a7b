use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use silvan_core::{Bytes, PortId, Rate, Sl, Time};
use silvan_fabric::{CableLimit, Fabric};
use silvan_mad::smp::PortState;
use silvan_scenario::faults::{
    Fault, cabled_port, check_limit, error_rate, host_named, lost_share, switch_named,
};

use crate::clients::Clients;
use crate::pace::Pace;
use crate::plane::{NewFlow, ProgramState};
use crate::subnet::Sources;
use crate::verbs::Exchange;
use crate::view::{FoundTrees, Known};

/// A request of the control channel, distinguished by `do`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Simulated time, lag, rates, programs attached, datagrams served.
    Status,
    /// All that sends, with its rate, and the state of programs.
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
    /// Restores it: it is there, and carries all that it can.
    Restore {
        /// The port, `node:number`, or the name of a host.
        port: String,
    },
    /// Lets the cable in a port carry less; the link goes down and comes up again.
    Degrade {
        /// The port, `node:number`, or the name of a host.
        port: String,
        /// Most lanes, such as `"1x"`.
        #[serde(default)]
        width: Option<String>,
        /// Highest speed of a lane, such as `"SDR"`.
        #[serde(default)]
        speed: Option<String>,
    },
    /// Lets a port count symbol errors; 0 ends it.
    SymbolErrors {
        /// The port, `node:number`, or the name of a host.
        port: String,
        /// Errors in a simulated second.
        per_second: f64,
    },
    /// Lets a host receive payload at this rate at most.
    Slow {
        /// Name of the host.
        host: String,
        /// The rate such as `"1 Gbit/s"`; that of the scenario without.
        #[serde(default)]
        rate: Option<String>,
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
        /// Add the nonzero service levels of these paths, and a subnet manager's SL to VL tables for them.
        #[serde(default)]
        levels: Option<Sources>,
    },
    /// Lets hosts ask the subnet manager for their paths to all hosts.
    QueryPaths {
        /// Sources: one host of every switch, or all hosts.
        sources: Sources,
    },
    /// Nodes, ports and scenario, for the browser page.
    Fabric,
    /// Counters of all ports, and congestion trees of a stated instant; the stated number of bytes follows the line,
    /// columns of numbers in order.
    Sample {
        /// Version of the routes that the asker has; those of another version are a column.
        #[serde(default)]
        routes: u64,
        /// Simulated time in picoseconds of the trees that the asker has; those of another time are columns.
        trees: Option<u64>,
    },
    /// Ends the emulation.
    Quit,
}

#[derive(Debug, Default)]
pub(crate) struct Sample {
    at: Time,
    bytes: Vec<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct CounterRates {
    older: Sample,
    newer: Sample,
}

impl CounterRates {
    pub fn sample(&mut self, clients: &Clients) {
        let senders = clients.subnet.plane.senders().into_iter();
        let sample = Sample {
            at: clients.subnet.now(),
            bytes: senders.map(|sender| sender.delivered_bytes).collect(),
        };
        self.older = std::mem::replace(&mut self.newer, sample);
    }

    /// Rate in Gbit/s of payload between the last two samples; before the first, from the start until `now` with
    /// `delivered` bytes.
    fn gbps(&self, class: usize, delivered: u64, now: Time) -> f64 {
        if self.newer.bytes.is_empty() {
            let span = now.since(Time::ZERO).as_secs_f64();
            return if span > 0.0 {
                delivered as f64 * 8e-9 / span
            } else {
                0.0
            };
        }
        let span = self.newer.at.since(self.older.at).as_secs_f64();
        let at = |sample: &Sample| sample.bytes.get(class).copied().unwrap_or(0);
        if span <= 0.0 {
            return 0.0;
        }
        at(&self.newer).saturating_sub(at(&self.older)) as f64 * 8e-9 / span
    }
}

pub(crate) struct ControlSession<'a> {
    pub clients: &'a mut Clients,
    pub pace: &'a mut Pace,
    pub rates: &'a CounterRates,
    pub trees: &'a mut FoundTrees,
    pub exchange: &'a Exchange,
    pub now: Instant,
    pub quit: &'a mut bool,
}

type Answer = Result<Value, String>;

impl ControlSession<'_> {
    pub fn answer(&mut self, line: &str) -> Vec<u8> {
        let mut numbers = Vec::new();
        let answer = match serde_json::from_str::<Command>(line) {
            Ok(Command::Sample { routes, trees }) => {
                let is_paused = self.pace.is_paused();
                let known = Known { routes, trees };
                let subnet = &self.clients.subnet;
                let sample = crate::view::sample(subnet, self.trees, is_paused, &known);
                numbers = sample.bytes;
                Ok(sample.header)
            }
            Ok(command) => self.obey(command),
            Err(error) => {
                let text = error.to_string();
                let reason = text
                    .rsplit_once(" at line ")
                    .map_or(&*text, |(reason, _)| reason);
                Err(format!("not a command: {reason}"))
            }
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
                if from == to {
                    return Err(format!("{from} would send to itself"));
                }
                let flow = NewFlow {
                    name,
                    from: host_named(self.fabric(), &from)?,
                    to: host_named(self.fabric(), &to)?,
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
            Command::Cut { port } => self.cut(&port),
            Command::Restore { port } => self.restore(&port),
            Command::Degrade { port, width, speed } => {
                self.degrade(&port, width.as_deref(), speed.as_deref())
            }
            Command::SymbolErrors { port, per_second } => self.symbol_errors(&port, per_second),
            Command::Slow { host, rate } => self.slow(&host, rate.as_deref()),
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
            Command::Sample { .. } => Ok(json!({})),
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
        let senders = subnet.plane.senders().into_iter().enumerate();
        let total = senders
            .map(|(class, sender)| {
                let bytes = sender.delivered_bytes;
                self.rates.gbps(class, bytes, subnet.now())
            })
            .fold(0.0, |sum, rate| sum + rate);
        json!({
            "simulated_s": subnet.now().as_secs_f64(),
            "time_scale": pace.scale(),
            "speed": pace.speed(),
            "lag_s": pace.lag(self.now, subnet.now()).as_secs_f64(),
            "given_up_s": pace.given_up(),
            "exchange": { "wall_s": self.exchange.wall_s, "simulated_s": self.exchange.simulated_s },
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
        let senders = self.clients.subnet.plane.senders();
        senders
            .into_iter()
            .enumerate()
            .map(|(class, sender)| {
                let bytes = sender.delivered_bytes;
                json!({
                    "flow": sender.name,
                    "running": sender.is_running,
                    "delivered_bytes": bytes,
                    "receive_gbps": self.rates.gbps(class, bytes, self.clients.subnet.now()),
                    "program": sender.program.map(|state| match state {
                        ProgramState::Waiting(start) => {
                            json!({ "state": "waiting", "start_s": start.as_secs_f64() })
                        }
                        ProgramState::Running => json!({ "state": "running" }),
                        ProgramState::Done(at) => json!({ "state": "done", "end_s": at.as_secs_f64() }),
                        ProgramState::Failed(fault) => json!({ "state": "failed", "fault": fault }),
                    }),
                })
            })
            .collect()
    }

    fn fabric(&self) -> &Fabric {
        &self.clients.subnet.fabric
    }

    fn set_running(&mut self, flow: &str, running: bool) -> Answer {
        let plane = &mut self.clients.subnet.plane;
        if plane.set_running(flow, running) {
            return Ok(json!({ "flow": flow }));
        }
        let senders = plane.senders();
        if senders.iter().any(|sender| sender.name == flow) {
            return Err(format!(
                "{flow:?} is a program: only flows and other traffic can be stopped"
            ));
        }
        let traffic = senders.iter().filter(|sender| sender.program.is_none());
        let names: Vec<&str> = traffic.map(|sender| &*sender.name).take(10).collect();
        Err(format!(
            "nothing is named {flow:?}; there are {}",
            names.join(", ")
        ))
    }

    fn bring_about(&mut self, fault: Fault, answer: Value) -> Answer {
        self.clients.bring_about(fault, Duration::ZERO)?;
        Ok(answer)
    }

    fn lose(&mut self, percent: f64, seed: u64) -> Answer {
        let fault = Fault::Lose(lost_share(percent)?, seed);
        self.bring_about(fault, json!({ "lost_percent": percent }))
    }

    fn reboot(&mut self, name: &str, seconds: f64) -> Answer {
        let switch = switch_named(self.fabric(), name)?;
        let span = Duration::try_from_secs_f64(seconds)
            .map_err(|_| format!("a switch cannot be off for {seconds} s"))?;
        self.clients.bring_about(Fault::Reboot(switch), span)?;
        Ok(json!({ "switch": name, "off_s": seconds }))
    }

    fn cable(&self, port: &str) -> Result<(PortId, Value), String> {
        let fabric = self.fabric();
        let id = cabled_port(fabric, port)?;
        let peer = fabric.ports[id].peer;
        let peer = peer.map(|peer| fabric.port_name(peer).to_string());
        Ok((
            id,
            json!({ "port": fabric.port_name(id).to_string(), "peer": peer }),
        ))
    }

    fn cut(&mut self, port: &str) -> Answer {
        let (id, answer) = self.cable(port)?;
        self.bring_about(Fault::Cut(id), answer)
    }

    fn restore(&mut self, port: &str) -> Answer {
        let (id, answer) = self.cable(port)?;
        let limit = CableLimit::default();
        if self.clients.subnet.record(id).cable_limit != limit {
            self.clients.repair(Fault::Degrade(id, limit));
        }
        self.clients.repair(Fault::Cut(id));
        Ok(answer)
    }

    fn degrade(&mut self, port: &str, width: Option<&str>, speed: Option<&str>) -> Answer {
        let (id, answer) = self.cable(port)?;
        let limit = CableLimit {
            width: width.map(parse).transpose()?,
            speed: speed.map(parse).transpose()?,
            rate: None,
        };
        check_limit(self.fabric(), id, limit).map_err(|(_, error)| error)?;
        let fault = Fault::Degrade(id, limit);
        self.bring_about(fault, answer)
    }

    fn symbol_errors(&mut self, port: &str, per_second: f64) -> Answer {
        let (id, mut answer) = self.cable(port)?;
        answer["per_second"] = error_rate(per_second)?.into();
        let fault = Fault::SymbolErrors(id, per_second);
        self.bring_about(fault, answer)
    }

    fn slow(&mut self, host: &str, most: Option<&str>) -> Answer {
        let id = host_named(self.fabric(), host)?;
        let fault = Fault::Slow(id, most.map(parse::<Rate>).transpose()?);
        self.bring_about(fault, json!({ "host": host, "rate": most }))
    }
}

fn parse<T: std::str::FromStr>(text: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}
