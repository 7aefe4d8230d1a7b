//! What can be wrong with a fabric: cables that are cut or run below their rate, symbol errors, slow receivers,
//! switches that reboot, datagrams that are lost; at once, or on a schedule.

mod schedule;

use std::time::Duration;

use silvan_core::{HostId, PortId, PortNumber, Rate, SwitchId};
use silvan_fabric::{Fabric, NodeKind, Speed, Width};

use crate::clients::Clients;

pub use schedule::FaultSchedule;
pub(crate) use schedule::Timetable;

/// The most that the cable of a port carries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CableLimit {
    /// Most lanes.
    pub width: Option<Width>,
    /// Highest speed of a lane.
    pub speed: Option<Speed>,
}

/// A fault that lasts until it is repaired.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// The cable in a port is cut.
    Cut(PortId),
    /// The cable in a port carries no more than this.
    Degrade(PortId, CableLimit),
    /// A port receives so many bad symbols in a simulated second.
    SymbolErrors(PortId, f64),
    /// A host receives no more payload than this; `None` for what the scenario has.
    Slow(HostId, Option<Rate>),
    /// A switch is without power.
    Reboot(SwitchId),
    /// This share of all management datagrams is lost, chosen by a seed.
    Lose(f64, u64),
}

impl Clients {
    /// Brings a fault about; a reboot lasts for `span` of the wall clock. Says why it cannot.
    pub(crate) fn bring_about(&mut self, fault: Fault, span: Duration) -> Result<(), String> {
        let subnet = &mut self.subnet;
        match fault {
            Fault::Cut(port) => {
                subnet.set_cable(port, true);
            }
            Fault::Degrade(port, limit) => subnet.limit_cable(port, limit),
            Fault::SymbolErrors(port, rate) => subnet.set_symbol_errors(port, rate),
            Fault::Slow(host, rate) => subnet.plane.engine.set_sink_rate(host, rate),
            Fault::Reboot(switch) => {
                if !subnet.power_off(switch, span) {
                    let name = &subnet.fabric.nodes[subnet.fabric.node_of_switch(switch)].name;
                    return Err(format!("{name} is off already"));
                }
                self.come_due();
            }
            Fault::Lose(share, seed) => self.loss.set(share, seed),
        }
        self.flush_traps();
        Ok(())
    }

    /// Repairs a fault. A switch gets power back by itself.
    pub(crate) fn repair(&mut self, fault: Fault) {
        let subnet = &mut self.subnet;
        match fault {
            Fault::Cut(port) => {
                subnet.set_cable(port, false);
            }
            Fault::Degrade(port, _) => subnet.limit_cable(port, CableLimit::default()),
            Fault::SymbolErrors(port, _) => subnet.set_symbol_errors(port, 0.0),
            Fault::Slow(host, _) => subnet.plane.engine.set_sink_rate(host, None),
            Fault::Reboot(_) => {}
            Fault::Lose(..) => self.loss.set(0.0, 0),
        }
        self.flush_traps();
    }
}

/// A port with a cable, as people write it.
pub(crate) fn cabled_port(fabric: &Fabric, text: &str) -> Result<PortId, String> {
    let port = port_named(fabric, text)?;
    match fabric.ports[port].peer {
        Some(_) => Ok(port),
        None => Err(format!("there is no cable in {text}")),
    }
}

fn port_named(fabric: &Fabric, text: &str) -> Result<PortId, String> {
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
    found.ok_or_else(|| {
        format!("there is no port {text:?}; write NODE:NUMBER, or the name of a host")
    })
}

/// A host by its name.
pub(crate) fn host_named(fabric: &Fabric, name: &str) -> Result<HostId, String> {
    let node = fabric.node_by_name(name);
    let host = node.and_then(|node| fabric.nodes[node].as_host());
    host.ok_or_else(|| unknown(fabric, "host", name))
}

/// A switch by its name.
pub(crate) fn switch_named(fabric: &Fabric, name: &str) -> Result<SwitchId, String> {
    let node = fabric.node_by_name(name);
    let switch = node.and_then(|node| fabric.nodes[node].as_switch());
    switch.ok_or_else(|| unknown(fabric, "switch", name))
}

fn unknown(fabric: &Fabric, what: &str, name: &str) -> String {
    match fabric.nearest_name(name) {
        Some(near) if near != name => {
            format!("there is no {what} named {name:?}; did you mean {near:?}?")
        }
        _ => format!("there is no {what} named {name:?}"),
    }
}

/// The share of datagrams that a percentage is.
pub(crate) fn lost_share(percent: f64) -> Result<f64, String> {
    match (0.0..=100.0).contains(&percent) {
        true => Ok(percent / 100.0),
        false => Err(format!(
            "{percent} %: 0 to 100 % of the datagrams can be lost"
        )),
    }
}

/// A number of symbol errors in a second.
pub(crate) fn error_rate(per_second: f64) -> Result<f64, String> {
    match per_second >= 0.0 && per_second.is_finite() {
        true => Ok(per_second),
        false => Err(format!(
            "{per_second} symbol errors per second: 0 or more are possible"
        )),
    }
}

/// Less than the cable of a port carries, by width and speed as people write them, of which there is at least one;
/// or the key that is wrong, with what is wrong with it.
pub(crate) fn cable_limit(
    fabric: &Fabric,
    port: PortId,
    width: Option<&str>,
    speed: Option<&str>,
) -> Result<CableLimit, (&'static str, String)> {
    if width.is_none() && speed.is_none() {
        let error = "a degraded cable has a lower width or speed; neither is given";
        return Err(("do", error.to_owned()));
    }
    let limit = CableLimit {
        width: width
            .map(parse)
            .transpose()
            .map_err(|error| ("width", error))?,
        speed: speed
            .map(parse)
            .transpose()
            .map_err(|error| ("speed", error))?,
    };
    let Some(link) = fabric.ports[port].link else {
        return Ok(limit);
    };
    let cable = fabric.links[link].kind;
    let is_lower = limit.width.is_some_and(|width| width < cable.width)
        || limit.speed.is_some_and(|speed| speed < cable.speed);
    if is_lower {
        return Ok(limit);
    }
    let (name, key) = (
        fabric.port_name(port),
        if width.is_some() { "width" } else { "speed" },
    );
    let given: Vec<&str> = [width, speed].into_iter().flatten().collect();
    let (given, width, speed) = (given.join(" "), cable.width, cable.speed);
    let error = format!("{given} has no effect: the cable in {name} is {width} {speed}");
    Err((key, error))
}

/// Reads what has a text.
pub(crate) fn parse<T: std::str::FromStr>(text: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}
