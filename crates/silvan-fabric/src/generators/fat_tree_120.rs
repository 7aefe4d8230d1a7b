use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Generator, Xgft};
use crate::{Fabric, FabricError, LinkKind};

/// A non-blocking fat tree of 120 hosts, as in pft2021, section IV.B.
///
/// The text of the paper gives the number of nodes, "fat-tree" and 100 Gbit/s ports, not the
/// switches. Chosen here: 10 leaves of 12 hosts each and 12 spines, XGFT(2; 12, 10; 1, 12), the
/// two-level non-blocking tree of 120 hosts on 24-port switches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FatTree120 {}

impl Generator for FatTree120 {
    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        let xgft = Xgft {
            children: vec![12, 10],
            parents: vec![1, 12], links: Vec::new(), };
        xgft.build(link)
    }
}
