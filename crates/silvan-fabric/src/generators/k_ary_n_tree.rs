use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attached::Parameter;
use super::{Generator, Xgft};
use crate::{Fabric, FabricError, LinkKind};

/// A k-ary n-tree: XGFT(n; k, ..., k; 1, k, ..., k), k^n hosts below n levels of k^(n-1) switches
/// (F. Petrini, M. Vanneschi: k-ary n-trees: high performance networks for massively parallel
/// architectures, IPPS 1997).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct KAryNTree {
    /// Half of the ports of a switch: its children, and below the top its parents.
    pub k: usize,
    /// Levels of switches, 1 to 16.
    pub n: usize,
}

impl Generator for KAryNTree {
    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        if self.k == 0 || self.n == 0 || self.n > 16 {
            let key = if self.k == 0 { "k" } else { "n" };
            let generator = Self::NAME;
            let problem = format!(
                "k is {} and n is {}, k must be positive and n 1 to 16",
                self.k, self.n
            );
            let hint = if self.k == 0 { "1 or more" } else { "1 to 16" };
            return Err(Parameter { generator, key }.bad(problem, format!("write {hint}")));
        }
        let mut parents = vec![self.k; self.n];
        parents[0] = 1;
        let children = vec![self.k; self.n];
        Xgft {
            children,
            parents,
            links: Vec::new(),
        }
        .build(link)
    }
}
