use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Generator, Xgft};
use crate::{Fabric, FabricError, LinkKind};

/// The non-blocking three-stage fat tree of gran2012, section IV, XGFT(2; 18, 36; 1, 18).
///
/// It has 648 hosts and 54 crossbars of 36 ports: 36 leaves with 18 hosts each, and 18 spines.
///
/// A leaf has its hosts on ports 1 to 18 and spine s on port 19 + s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FatTree648 {}

impl Generator for FatTree648 {
    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        let xgft = Xgft {
            children: vec![18, 36],
            parents: vec![1, 18], links: Vec::new(), };
        xgft.build(link)
    }
}
