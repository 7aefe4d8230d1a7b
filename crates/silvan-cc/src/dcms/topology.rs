use silvan_core::{PortId, SwitchId};

/// Other end of a switch port's cable (the paper's N(s, p)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbour {
    /// Nothing, or something unknown.
    None,
    /// A port of a host.
    Host,
    /// A port of this switch.
    Switch {
        /// The neighbouring switch.
        switch: SwitchId,
        /// Port of the neighbour.
        port: PortId,
    },
}

/// A switch port that the DCMS watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchPortInfo {
    /// The port.
    pub port: PortId,
    /// Switch of the port.
    pub switch: SwitchId,
    /// Other end of the port's cable.
    pub neighbour: Neighbour,
    /// True if the DCMS may change the port's Marking_Rate.
    pub controllable: bool,
}

/// Ports that a change of Marking_Rate on a switch affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MarkingScope {
    /// A single port (SwitchPortCongestionSetting).
    #[default]
    Port,
    /// All ports of the switch (SwitchCongestionSetting).
    Switch,
}

/// All watched switch ports, and who sends to which switch.
#[derive(Debug, Clone, Default)]
pub struct DcmsTopology {
    ports: Vec<SwitchPortInfo>,
    position: Vec<Option<u32>>,
    feeders: Vec<Vec<PortId>>,
    scopes: Vec<MarkingScope>,
}

impl DcmsTopology {
    /// A topology of these ports; later entries for the same port are ignored.
    pub fn new(ports: impl IntoIterator<Item = SwitchPortInfo>) -> Self {
        let mut topology = Self::default();
        for info in ports {
            let index = info.port.index();
            if topology.position.len() <= index {
                topology.position.resize(index + 1, None);
            }
            if topology.position[index].is_some() {
                continue;
            }
            topology.position[index] = Some(topology.ports.len() as u32);
            topology.ports.push(info);
            topology.grow(info.switch);
            if let Neighbour::Switch { switch, .. } = info.neighbour {
                topology.grow(switch);
                topology.feeders[switch.index()].push(info.port);
            }
        }
        topology
    }

    /// Sets the scope of changes on one switch.
    #[must_use]
    pub fn with_scope(mut self, switch: SwitchId, scope: MarkingScope) -> Self {
        self.grow(switch);
        self.scopes[switch.index()] = scope;
        self
    }

    fn grow(&mut self, switch: SwitchId) {
        let len = self.feeders.len().max(switch.index() + 1);
        self.feeders.resize(len, Vec::new());
        self.scopes.resize(len, MarkingScope::default());
    }

    /// All watched ports, in the order given.
    pub fn ports(&self) -> &[SwitchPortInfo] {
        &self.ports
    }

    /// A watched port; `None` if it is not watched (any more).
    pub fn port(&self, port: PortId) -> Option<&SwitchPortInfo> {
        let position = (*self.position.get(port.index())?)?;
        self.ports.get(position as usize)
    }

    /// Ports of neighbouring switches that send to this switch.
    pub fn feeders(&self, switch: SwitchId) -> &[PortId] {
        self.feeders.get(switch.index()).map_or(&[], Vec::as_slice)
    }

    /// Returns the scope of a change on this switch.
    pub fn scope(&self, switch: SwitchId) -> MarkingScope {
        self.scopes.get(switch.index()).copied().unwrap_or_default()
    }

    /// Returns the largest dense number of a watched port, plus one.
    pub fn port_bound(&self) -> usize {
        self.position.len()
    }
}
