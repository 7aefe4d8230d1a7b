//! The testbed of mizero2017.
//!
//! | node | port | stated in the paper |
//! |---|---|---|
//! | A | S1:12 | yes |
//! | X | S1:11 | yes |
//! | S2 (S2:20) | S1:15 | yes |
//! | D | S2:23 | yes |
//! | B, C, Y | S2:21, S2:22, S2:24 | no, chosen here |

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::Length;

use super::Generator;
use crate::routing::{MinHop, Routing};
use crate::{Fabric, FabricBuilder, FabricError, LinkKind, Speed, Width};

/// Short copper within a rack, where a paper states no length.
const RACK_CABLE: Length = Length::from_mm(2_000);

/// The testbed of mizero2017, section 4.1 and Fig. 2: six hosts on two switches.
///
/// The paper does not name the switch model. Chosen here: 36 ports, as the common QDR crossbar has,
/// and the ports of B, C and Y. The hosts in order are A, B, C, D, X, Y. The paper's cables
/// override the section `link`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TwoSwitchTestbed {}

impl TwoSwitchTestbed {
    /// 4x SDR, 8 Gbit/s of data.
    pub const HOST_LINK: LinkKind = LinkKind::new(Width::X4, Speed::Sdr, RACK_CABLE);

    /// 4x QDR, 32 Gbit/s of data.
    pub const TRUNK: LinkKind = LinkKind::new(Width::X4, Speed::Qdr, RACK_CABLE);
}

impl Generator for TwoSwitchTestbed {
    fn default_routing(&self) -> Routing {
        MinHop {}.into()
    }

    fn build(&self, _link: LinkKind) -> Result<Fabric, FabricError> {
        const PORTS: usize = 36;
        let mut builder = FabricBuilder::new();
        let s1 = builder.add_switch("S1", PORTS)?;
        let s2 = builder.add_switch("S2", PORTS)?;
        for (name, end) in [
            ("A", s1.port(12)),
            ("B", s2.port(21)),
            ("C", s2.port(22)),
            ("D", s2.port(23)),
            ("X", s1.port(11)),
            ("Y", s2.port(24)),
        ] {
            let host = builder.add_host(name)?;
            builder.connect(host.port(1), end, Self::HOST_LINK)?;
        }
        builder.connect(s1.port(15), s2.port(20), Self::TRUNK)?;
        builder.build()
    }
}
