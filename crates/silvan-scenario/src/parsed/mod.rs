//! The parsed form: the scenario file as its author writes it, a struct per section and a field per key.
//!
//! A field's doc comment is its description in the JSON schema and the reference. Unknown keys are errors;
//! [`Scenario`](crate::Scenario) checks combinations of values.

mod control;
mod equipment;
mod fabric;
mod faults;
mod run;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use control::ControlSection;
pub use equipment::{FlowControl, LinkSection, VlSection, VlWeight};
pub use fabric::{
    CableEntry, FabricSection, FileFormat, ForwardingEntries, HostEntry, SwitchEntry, Unreachable,
};
pub use faults::{FaultEntry, FaultKind};
pub use run::{
    AxisValue, FlowEnds, PacketsSection, ProbeSection, RunSection, SweepSection, Threads,
    TreesSection,
};
pub use silvan_cc::dcms::DcmsSection;
pub use silvan_core::document::Limit;
use silvan_model::{HostParams, PacketParams, SwitchParams};
pub use silvan_workload::traffic::{SendQueue, TrafficSection};

/// Everything that a scenario file says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ScenarioFile {
    /// Name of the scenario in tables, figures and output folders: at most 200 bytes, without
    /// `/`, `\`, control characters and a dot at the start.
    pub name: String,
    /// Purpose of the scenario, in a sentence.
    pub description: String,
    /// Switches, hosts, cables, and the routes through them.
    pub fabric: FabricSection,
    /// Cables that say nothing else.
    pub link: LinkSection,
    /// All switches.
    pub switch: SwitchParams,
    /// All channel adapters.
    pub host: HostParams,
    /// Packet sizes.
    pub packet: PacketParams,
    /// Virtual lanes.
    pub vl: VlSection,
    /// Faults of cables, hosts and switches. A cable that is cut or degraded from the start to the end is part of the fabric: routes
    /// lead around it, and keep their kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fault: Vec<FaultEntry>,
    /// Traffic: senders, receivers and messages.
    pub traffic: TrafficSection,
    /// Congestion control.
    pub control: ControlSection,
    /// Measurements.
    pub probe: ProbeSection,
    /// Duration and seed.
    pub run: RunSection,
    /// Values to vary; every combination is a run of its own.
    #[serde(skip_serializing_if = "SweepSection::is_empty")]
    pub sweep: SweepSection,
}

impl Default for ScenarioFile {
    /// The empty file: eight quiet hosts at one switch for 10 ms.
    fn default() -> Self {
        Self {
            name: "scenario".to_owned(),
            description: String::new(),
            fabric: FabricSection::default(),
            link: LinkSection::default(),
            switch: SwitchParams::default(),
            host: HostParams::default(),
            packet: PacketParams::default(),
            vl: VlSection::default(),
            fault: Vec::new(),
            traffic: TrafficSection::default(),
            control: ControlSection::default(),
            probe: ProbeSection::default(),
            run: RunSection::default(),
            sweep: SweepSection::default(),
        }
    }
}
