use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Generator, Xgft};
use crate::{Fabric, FabricError, LinkKind};

/// The largest non-blocking three-level fat tree of 36-port crossbars: 36^3 / 4 = 11,664 hosts and
/// 1,620 switches, XGFT(3; 18, 18, 36; 1, 18, 18).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FatTree11664 {}

impl Generator for FatTree11664 {
    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        let xgft = Xgft {
            children: vec![18, 18, 36],
            parents: vec![1, 18, 18], links: Vec::new(), };
        xgft.build(link)
    }
}
