//! The ports that are watched, by numbers that stay the same from one discovery to the next.

use std::collections::BTreeMap;

use silvan_cc::dcms::{DcmsTopology, MarkingScope, Neighbour, SwitchPortInfo};
use silvan_core::{Guid, Lid, PortId, Span, SwitchId};
use silvan_mad::CounterCapabilities;
use silvan_subnet::discovery::{Peer, Subnet, Switch, SwitchPort, data_bytes_per_second};

use crate::rights::Rights;

/// Abilities of a switch, as far as its answers show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Counters that it has.
    pub counters: CounterCapabilities,
    /// True if the switch has PortXmitConCtrl.
    pub time_cong: bool,
    /// Ports that a change of Marking_Rate affects; `None` if there is no Marking_Rate.
    pub scope: Option<MarkingScope>,
}

/// A switch port that is swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedPort {
    /// Number among all ports ever seen.
    pub id: PortId,
    /// Switch of the port.
    pub switch: SwitchId,
    /// NodeGUID of the switch.
    pub guid: Guid,
    /// LID of the switch.
    pub lid: Lid,
    /// Number of the port on the switch.
    pub number: u8,
    /// Capacity of the link, in words of four bytes per second.
    pub words_per_second: u64,
    /// The data that its link carries, in bytes per second.
    pub bytes_per_second: u64,
    /// Length of a tick of its counters of time.
    pub tick: Span,
    /// Abilities of the switch.
    pub abilities: Abilities,
}

/// A switch by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownSwitch {
    /// NodeGUID.
    pub guid: Guid,
    /// NodeDescription when it was last seen.
    pub name: String,
    /// LID when it was last seen; `None` if it has none or is gone.
    pub lid: Option<Lid>,
    /// Ports, without port 0.
    pub port_count: u8,
    /// Abilities of the switch; `None` before its answer.
    pub abilities: Option<Abilities>,
}

/// All switches and ports ever seen, numbered in the order in which they were.
#[derive(Debug, Default)]
pub struct Registry {
    switches: Vec<KnownSwitch>,
    numbers: BTreeMap<Guid, SwitchId>,
    ports: Vec<(SwitchId, u8)>,
    port_numbers: BTreeMap<(SwitchId, u8), PortId>,
    hosts: BTreeMap<Guid, String>,
    peers: BTreeMap<PortId, Peer>,
}

impl Registry {
    /// Takes the results of a discovery. A switch that has returned is queried for its abilities again.
    pub fn update(&mut self, subnet: &Subnet) {
        let mut gone: Vec<bool> = vec![true; self.switches.len()];
        for switch in &subnet.switches {
            let number = self.number(switch.guid);
            let known = &mut self.switches[number.index()];
            if let Some(gone) = gone.get_mut(number.index()) {
                *gone = false;
            }
            let port_count = switch.ports.len() as u8;
            if known.lid.is_none() || known.port_count != port_count {
                known.abilities = None;
            }
            known.name.clone_from(&switch.name);
            known.lid = switch.lid;
            known.port_count = port_count;
            for (port, location) in switch.ports.iter().zip(1..) {
                let id = self.port_number(number, location);
                self.peers.insert(id, port.peer);
            }
        }
        for (known, gone) in self.switches.iter_mut().zip(gone) {
            if gone {
                known.lid = None;
                known.abilities = None;
            }
        }
        self.hosts.clone_from(&subnet.hosts);
    }

    fn number(&mut self, guid: Guid) -> SwitchId {
        let next = SwitchId::new(self.switches.len());
        let number = *self.numbers.entry(guid).or_insert(next);
        if number == next {
            self.switches.push(KnownSwitch {
                guid,
                name: String::new(),
                lid: None,
                port_count: 0,
                abilities: None,
            });
        }
        number
    }

    fn port_number(&mut self, switch: SwitchId, number: u8) -> PortId {
        let next = PortId::new(self.ports.len());
        let id = *self.port_numbers.entry((switch, number)).or_insert(next);
        if id == next {
            self.ports.push((switch, number));
        }
        id
    }

    /// A switch.
    pub fn switch(&self, switch: SwitchId) -> &KnownSwitch {
        &self.switches[switch.index()]
    }

    /// All switches ever seen.
    pub fn switches(&self) -> impl Iterator<Item = (SwitchId, &KnownSwitch)> {
        let numbered = self.switches.iter().enumerate();
        numbered.map(|(index, switch)| (SwitchId::new(index), switch))
    }

    /// The switch with this GUID.
    pub fn by_guid(&self, guid: Guid) -> Option<&KnownSwitch> {
        Some(self.switch(*self.numbers.get(&guid)?))
    }

    /// Sets the abilities of a switch.
    pub fn set_abilities(&mut self, switch: SwitchId, abilities: Abilities) {
        self.switches[switch.index()].abilities = Some(abilities);
    }

    /// Switch and number of a port.
    pub fn port(&self, id: PortId) -> (&KnownSwitch, u8) {
        let (switch, number) = self.ports[id.index()];
        (self.switch(switch), number)
    }

    /// Returns the name of the other end of a port.
    pub fn far_end(&self, id: PortId) -> Option<String> {
        match self.peers.get(&id)? {
            Peer::Unknown => None,
            Peer::Host(guid) => Some(name_or_guid(self.hosts.get(guid), *guid)),
            Peer::Switch(guid, port) => {
                let name = self.by_guid(*guid).map(|switch| &switch.name);
                Some(format!("{}:{port}", name_or_guid(name, *guid)))
            }
        }
    }

    /// Active and cabled ports of switches with LID and known abilities.
    pub fn swept<'a>(
        &'a self,
        subnet: &'a Subnet,
    ) -> impl Iterator<Item = (SwitchId, &'a Switch, &'a SwitchPort, u8)> + 'a {
        let reachable = |switch| Some((self.reachable(switch)?.0, switch));
        let switches = subnet.switches.iter().filter_map(reachable);
        switches.flat_map(|(number, switch)| {
            let ports = switch.ports.iter().zip(1..);
            let ports = ports.filter(|(port, _)| port.is_active && port.peer != Peer::Unknown);
            ports.map(move |(port, location)| (number, switch, port, location))
        })
    }

    /// The ports to sweep of a fabric at `time_scale` simulated seconds per second; `tick` gives a port's.
    pub fn watched(
        &self,
        subnet: &Subnet,
        time_scale: f64,
        tick: impl Fn(SwitchId, &Switch, &SwitchPort) -> Span,
    ) -> Vec<WatchedPort> {
        let ports = self.swept(subnet);
        let scaled = |per_second: u64| (per_second as f64 * time_scale).ceil() as u64;
        let watched = ports.filter_map(|(number, switch, port, location)| {
            let (_, lid, abilities) = self.reachable(switch)?;
            Some(WatchedPort {
                id: self.port_numbers[&(number, location)],
                switch: number,
                guid: switch.guid,
                lid,
                number: location,
                words_per_second: scaled(port.words_per_second),
                bytes_per_second: scaled(data_bytes_per_second(&port.info)),
                tick: tick(number, switch, port),
                abilities,
            })
        });
        watched.collect()
    }

    fn reachable(&self, switch: &Switch) -> Option<(SwitchId, Lid, Abilities)> {
        let number = *self.numbers.get(&switch.guid)?;
        let abilities = self.switch(number).abilities?;
        Some((number, switch.lid?, abilities))
    }

    /// Returns the topology of the watched ports for the DCMS.
    pub fn topology(&self, watched: &[WatchedPort], rights: &Rights) -> DcmsTopology {
        let infos = watched.iter().map(|port| SwitchPortInfo {
            port: port.id,
            switch: port.switch,
            neighbour: self.neighbour(port.id),
            controllable: self.may_change(port, rights),
        });
        let mut topology = DcmsTopology::new(infos);
        for port in watched {
            if let Some(scope) = port.abilities.scope {
                topology = topology.with_scope(port.switch, scope);
            }
        }
        topology
    }

    fn neighbour(&self, id: PortId) -> Neighbour {
        match self.peers.get(&id) {
            Some(Peer::Host(_)) => Neighbour::Host,
            Some(Peer::Switch(guid, port)) => {
                let switch = self.numbers.get(guid).copied();
                let port = switch
                    .and_then(|switch| self.port_numbers.get(&(switch, port.as_u8())).copied());
                switch
                    .zip(port)
                    .map_or(Neighbour::None, |(switch, port)| Neighbour::Switch {
                        switch,
                        port,
                    })
            }
            Some(Peer::Unknown) | None => Neighbour::None,
        }
    }

    /// Returns true if a change for this port affects no port that must not be changed.
    fn may_change(&self, port: &WatchedPort, rights: &Rights) -> bool {
        let switch = self.switch(port.switch);
        match port.abilities.scope {
            None => false,
            Some(MarkingScope::Port) => rights.covers(switch.guid, &switch.name, port.number),
            Some(MarkingScope::Switch) => (1..=switch.port_count)
                .all(|number| rights.covers(switch.guid, &switch.name, number)),
        }
    }
}

fn name_or_guid(name: Option<&String>, guid: Guid) -> String {
    match name {
        Some(name) if !name.is_empty() => name.clone(),
        _ => guid.to_string(),
    }
}
