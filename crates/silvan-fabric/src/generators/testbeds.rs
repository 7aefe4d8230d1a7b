//! The two-switch fabrics of two papers.

use silvan_core::Length;

use super::port_number;
use crate::{Fabric, FabricBuilder, FabricError, LinkKind, Speed, Width};

/// Length of the cables where a paper states none: short copper within a rack.
const RACK_CABLE: Length = Length::from_mm(2_000);

/// The testbed of mizero2017, section 4.1 and Fig. 2: six hosts on two switches.
///
/// | node | port | stated in the paper |
/// |---|---|---|
/// | A | S1:12 | yes |
/// | X | S1:11 | yes |
/// | S2 (S2:20) | S1:15 | yes |
/// | D | S2:23 | yes |
/// | B, C, Y | S2:21, S2:22, S2:24 | no, chosen here |
///
/// The paper does not name the switch model either; 36 ports are chosen here, as the common QDR
/// crossbar has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwoSwitchTestbed {
    /// Cables of the hosts; in the paper 4x SDR, 8 Gbit/s of data.
    pub host_link: LinkKind,
    /// The cable between the switches; in the paper 4x QDR, 32 Gbit/s of data.
    pub trunk: LinkKind,
}

impl Default for TwoSwitchTestbed {
    fn default() -> Self {
        let kind = |speed| LinkKind {
            width: Width::X4,
            speed,
            length: RACK_CABLE,
        };
        Self {
            host_link: kind(Speed::Sdr),
            trunk: kind(Speed::Qdr),
        }
    }
}

impl TwoSwitchTestbed {
    /// Builds the fabric; its hosts in order are A, B, C, D, X, Y.
    ///
    /// # Errors
    ///
    /// None: names and ports are fixed and legal.
    pub fn build(&self) -> Result<Fabric, FabricError> {
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
            builder.connect(host.port(1), end, self.host_link)?;
        }
        builder.connect(s1.port(15), s2.port(20), self.trunk)?;
        builder.build()
    }
}

/// The two switches of santos2003, section III.
///
/// On switch A: the sources A1 to AR of the R remote flows, then AV, the source of the victim flow.
/// On switch B: the sources B1 to BL of the L local flows, then BC, the destination of the remote
/// and local flows, then BV, the destination of the victim flow. The hosts take the ports from 1 in
/// that order, the cable between the switches the next one. The paper's links carry 1 GB/s of data:
/// 4x SDR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SantosTwoSwitches {
    /// R, the number of remote flows.
    pub remote: usize,
    /// L, the number of local flows.
    pub local: usize,
    /// Every cable.
    pub link: LinkKind,
}

impl SantosTwoSwitches {
    /// The paper's links: 4x SDR, which is 1 GB/s of data.
    pub const LINK: LinkKind = LinkKind {
        width: Width::X4,
        speed: Speed::Sdr,
        length: RACK_CABLE,
    };

    /// Builds the fabric.
    ///
    /// # Errors
    ///
    /// If a switch would have more than 254 ports.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        const NAME: &str = "santos-two-switches";
        let mut builder = FabricBuilder::new();
        // The flows' sources, the named hosts and the cable between the switches.
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
            a.port(port_number(hosts_a.len() + 1, NAME)?),
            b.port(port_number(hosts_b.len() + 1, NAME)?),
        );
        for (switch, hosts) in [(a, hosts_a), (b, hosts_b)] {
            for (index, name) in hosts.into_iter().enumerate() {
                let host = builder.add_host(name)?;
                let port = port_number(index + 1, NAME)?;
                builder.connect(host.port(1), switch.port(port), self.link)?;
            }
        }
        builder.connect(trunk.0, trunk.1, self.link)?;
        builder.build()
    }
}
