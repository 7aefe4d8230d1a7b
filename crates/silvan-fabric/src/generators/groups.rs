use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attached::Parameter;
use super::port_number;
use crate::{FabricBuilder, FabricError, LinkKind, NodeHandle};

/// Groups that the global ports lead to.
///
/// The global ports of a group are numbered k = 0, 1, ... switch by switch. With g groups, each run of g - 1 ports
/// leads once to every other group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum GlobalWiring {
    /// Port k of group i leads to group i - (k + 1) modulo g: all groups look alike (C. Camarero, E. Vallejo,
    /// R. Beivide, "Topological characterization of Hamming and dragonfly networks and its implications on
    /// routing", ACM TACO 11(4), 2014).
    #[default]
    PalmTree,
    /// Port k of group i leads to the k-th of the other groups in their order (the absolute arrangement of E. Hastings
    /// et al., "Comparing global link arrangements for dragonfly networks", CLUSTER 2015).
    Consecutive,
}

impl GlobalWiring {
    pub(crate) fn far_end(self, groups: usize, group: usize, port: usize) -> (usize, usize) {
        match self {
            Self::PalmTree => ((group + groups - port - 1) % groups, groups - 2 - port),
            Self::Consecutive if port < group => (port, group - 1),
            Self::Consecutive => (port + 1, group),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Groups {
    pub(super) generator: &'static str,
    pub(super) groups: usize,
    pub(super) switches: usize,
    pub(super) global: usize,
    pub(super) wiring: GlobalWiring,
}

impl Groups {
    /// `of_ports` is the key of the number of global ports of a switch.
    pub(super) fn validate(self, of_ports: &'static str) -> Result<(), FabricError> {
        let of = |key| Parameter {
            generator: self.generator,
            key,
        };
        let most = self.switches.saturating_mul(self.global).saturating_add(1);
        if self.global == 0 {
            return of(of_ports).positive(0);
        }
        if self.groups < 2 || self.groups > most {
            let problem = format!(
                "{} groups, but {} switches with {} global ports each allow 2 to {most}",
                self.groups, self.switches, self.global
            );
            return Err(of("groups").bad(problem, format!("write 2 to {most}")));
        }
        Ok(())
    }

    pub(super) fn cables_per_pair(self) -> usize {
        self.switches * self.global / (self.groups - 1)
    }

    pub(super) fn connect(
        self,
        builder: &mut FabricBuilder,
        switches: &[NodeHandle],
        first_port: usize,
        link: LinkKind,
    ) -> Result<(), FabricError> {
        let run = self.groups - 1;
        let end = |group: usize, port: usize| {
            let switch = switches[group * self.switches + port / self.global];
            let number = port_number(first_port + port % self.global + 1, self.generator)?;
            Ok::<_, FabricError>(switch.port(number))
        };
        for group in 0..self.groups {
            for port in 0..self.cables_per_pair() * run {
                let (peer, far) = self.wiring.far_end(self.groups, group, port % run);
                if group < peer {
                    let far = port - port % run + far;
                    builder.connect(end(group, port)?, end(peer, far)?, link)?;
                }
            }
        }
        Ok(())
    }
}
