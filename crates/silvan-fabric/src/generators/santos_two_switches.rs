use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::Length;

use super::{Generator, port_number};
use crate::routing::{MinHop, Routing};
use crate::{Fabric, FabricBuilder, FabricError, LinkKind, Speed, Width};

/// The two switches of santos2003, section III.
///
/// - Switch A: sources A1 to AR of the R remote flows, then AV, source of the victim flow.
/// - Switch B: sources B1 to BL of the L local flows, then BC, destination of remote and local
///   flows, then BV, destination of the victim flow.
///
/// The hosts take the ports from 1 in that order, then comes the cable between the switches. The
/// paper's links carry 1 GB/s of data: 4x SDR.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SantosTwoSwitches {
    /// R, the number of remote flows: senders at the far switch.
    pub remote: usize,
    /// L, the number of local flows: senders at the receiver's switch.
    pub local: usize,
}

impl SantosTwoSwitches {
    /// The paper's links: 4x SDR, 1 GB/s of data, here of 2 m.
    pub const LINK: LinkKind = LinkKind::new(Width::X4, Speed::Sdr, Length::from_mm(2_000));
}

impl Generator for SantosTwoSwitches {
    fn default_routing(&self) -> Routing {
        MinHop {}.into()
    }

    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        let mut builder = FabricBuilder::new();
        let a = builder.add_switch("A", self.remote.saturating_add(2))?;
        let b = builder.add_switch("B", self.local.saturating_add(3))?;

        let sources = |letter: &str, count: usize| -> Vec<String> {
            (1..=count)
                .map(|index| format!("{letter}{index}"))
                .collect()
        };
        let mut hosts_a = sources("A", self.remote);
        hosts_a.push("AV".to_owned());
        let mut hosts_b = sources("B", self.local);
        hosts_b.extend(["BC".to_owned(), "BV".to_owned()]);
        let trunk = (
            a.port(port_number(hosts_a.len() + 1, Self::NAME)?),
            b.port(port_number(hosts_b.len() + 1, Self::NAME)?),
        );
        for (switch, hosts) in [(a, hosts_a), (b, hosts_b)] {
            for (index, name) in hosts.into_iter().enumerate() {
                let host = builder.add_host(name)?;
                let port = port_number(index + 1, Self::NAME)?;
                builder.connect(host.port(1), switch.port(port), link)?;
            }
        }
        builder.connect(trunk.0, trunk.1, link)?;
        builder.build()
    }
}
