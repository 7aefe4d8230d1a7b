use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Guid, Length, Lid, PortNumber, Rate, Span};
use silvan_fabric::generators::{Generator, Topology};
use silvan_fabric::routing::{PathChoice, Routing, RoutingName, UpDown};
use silvan_fabric::{Cable, Speed, Width};

use crate::schema;

/// Handling of a missing forwarding entry for a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unreachable {
    /// The scenario is refused.
    #[default]
    Error,
    /// The switch discards packets to that host and counts them, in the table `ports` as
    /// `relay_errors` of the port at which they arrived.
    Drop,
}

impl Unreachable {
    fn is_error(&self) -> bool {
        *self == Self::Error
    }
}

/// Format of a file that describes a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileFormat {
    /// The output of `ibnetdiscover`, with or without `-g`.
    Ibnetdiscover,
    /// The output of `ibnetdiscover -p`.
    IbnetdiscoverPorts,
    /// A net file of ibsim.
    Ibsim,
}

/// Switches, hosts and cables: a generator with its parameters, a file of a real fabric, or lists. With none of them,
/// one switch with eight hosts.
///
/// The effective scenario contains the files' contents, as lists and as `linear-tables`, and does not need the files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
#[schemars(transform = crate::topology::add_choices)]
pub struct FabricSection {
    /// A topology with its keys; `single-switch` with its defaults unless there is a file or lists.
    #[serde(skip_deserializing, flatten)]
    #[schemars(skip)]
    pub topology: Option<Topology>,
    /// A file that describes a real fabric, at most 256 MiB; its path is relative to that of the
    /// scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Format of the file. Default: `ibnetdiscover`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<FileFormat>,
    /// The switches, where there is no generator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub switch: Vec<SwitchEntry>,
    /// The hosts, where there is no generator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<HostEntry>,
    /// The cables, where there is no generator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cable: Vec<CableEntry>,
    /// File that names hosts of a generator. Each line has a name and the host's switch, separated by a comma or by
    /// spaces; the path is relative to that of the scenario. Hosts of a switch take names in the order of the lines;
    /// other hosts keep their names. So nodes of a real machine have the places that its scheduler gave them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts_file: Option<String>,
    /// Pairs of the name of a host and its switch, as `hosts-file` has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host_names: Vec<(String, String)>,
    /// Computation of the forwarding tables. Default: the routing that suits the generator; without a generator, the
    /// first of `d-mod-k`, `fat-tree` and `up-down` that suits the cables.
    #[serde(skip_deserializing, flatten, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing, !flatten, with = "Option<RoutingName>")]
    pub routing: Option<Routing>,
    /// Choice among the paths of a packet.
    pub path_choice: PathChoice,
    /// Forwarding tables by switch name, each with the outgoing port by host name, for the routing
    /// `explicit`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, ForwardingEntries>,
    /// A file of forwarding tables for the routing `lfts`, at most 1 GiB; its path is relative to that
    /// of the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing_file: Option<String>,
    /// A file with the node GUIDs of the roots for the routings `fat-tree` and `up-down`, one in each line, as OpenSM reads it with
    /// `--root_guid_file`. Its path is relative to that of the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_guid_file: Option<String>,
    /// A file with the port GUIDs of the compute nodes for the routing `fat-tree`, one in each line, as OpenSM reads it with
    /// `--cn_guid_file`. Its path is relative to that of the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cn_guid_file: Option<String>,
    /// Forwarding tables by switch name for the routing `explicit`, as in a switch: two hexadecimal digits with the
    /// port for each LID from 0 on, `ff` without a route.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub linear_tables: BTreeMap<String, String>,
    /// Service levels of paths for the routing `explicit`, if the subnet manager assigns levels that avoid deadlock, as
    /// OpenSM's lash does. The key is a switch whose hosts send, or a sending host with other levels than its switch.
    /// The value has a hexadecimal digit for each LID from 0 on. Behind every switch a path takes the virtual lane of
    /// its level, counted from the lane that `vl.sl-to-vl` has for its traffic, unless there is a table in `sl-to-vl`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub path_sl: BTreeMap<String, String>,
    /// SL to VL tables for the routing `explicit`, if the subnet manager maps service levels by input and output port,
    /// as OpenSM's torus-2QoS does. For a switch, the value lists input ports, output ports and 16 hexadecimal digits,
    /// the virtual lane for each service level, e.g. `["1-4,6 5 0101010145454545"]`. For a host, it is the digits
    /// alone. Elsewhere `vl.sl-to-vl` is the table. With any table, traffic of a service level above 0 has that level
    /// on all paths, and `path-sl` is for traffic of level 0.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sl_to_vl: BTreeMap<String, Vec<String>>,
    /// True to run although the routes can deadlock (their channel dependencies have a cycle).
    pub allow_credit_loops: bool,
    /// Handling of a missing forwarding entry for a host.
    #[serde(skip_serializing_if = "Unreachable::is_error")]
    pub unreachable: Unreachable,
}

impl FabricSection {
    /// The computation of the forwarding tables; `up-down` if it depends on unchecked cables.
    pub fn routing(&self) -> Routing {
        self.routing
            .clone()
            .unwrap_or_else(|| match &self.topology {
                Some(topology) => topology.routing_for(self.path_choice),
                None => UpDown::default().into(),
            })
    }

    /// Returns true if switches, hosts or cables are listed.
    pub fn is_listed(&self) -> bool {
        !(self.switch.is_empty() && self.host.is_empty() && self.cable.is_empty())
    }
}

/// Outgoing port of a switch by host name.
pub type ForwardingEntries = BTreeMap<String, u8>;

/// A switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SwitchEntry {
    /// Unique name.
    pub name: String,
    /// Number of ports, 1 to 254.
    pub ports: u8,
    /// LID of its management port. Default: the smallest that is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u16>")]
    pub lid: Option<Lid>,
    /// Node GUID, e.g. `"0x0002c90200423e70"`. Default: one that no real node has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub guid: Option<Guid>,
}

/// A host with one channel adapter port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HostEntry {
    /// Unique name.
    pub name: String,
    /// LID. Default: the smallest that is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u16>")]
    pub lid: Option<Lid>,
    /// Node GUID, shared by hosts that are ports of one adapter. Default: one that no real node has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub guid: Option<Guid>,
    /// Port GUID. Default: the node GUID plus the port's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub port_guid: Option<Guid>,
    /// Number of the host's port on its adapter. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u8>")]
    pub adapter_port: Option<PortNumber>,
    /// The host is a port of a router, which receives the packets that leave the subnet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub router: bool,
}

/// A cable between two ports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CableEntry {
    /// First end, `switch:port`, or the name of a host.
    pub from: String,
    /// The other end.
    pub to: String,
    /// Number of lanes, if it is not that of the section `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<Width>,
    /// Speed of each lane, if it is not that of the section `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
    /// Rate of data in each direction, if it is not that of width and speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::RateText>")]
    pub rate: Option<Rate>,
    /// Length, if it is not that of the section `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LengthText>")]
    pub length: Option<Length>,
    /// Time that a signal needs from one end to the other, if it is not that of the length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub latency: Option<Span>,
}

impl CableEntry {
    /// Returns the differences from the section `link`.
    pub fn cable(&self) -> Cable {
        Cable {
            width: self.width,
            speed: self.speed,
            rate: self.rate,
            length: self.length,
            latency: self.latency,
        }
    }
}
