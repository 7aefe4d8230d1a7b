use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Rate, Span};

use super::attached::{Parameter, product};
use super::{Generator, port_number, switch_name};
use crate::{Cable, Fabric, FabricBuilder, FabricError, LinkKind, NodeHandle};

/// Servers of GPUs for machine learning, rail-optimised: each rail has a leaf in each pod.
///
/// A rail is the n-th GPU of every server of a pod, with its adapter. Spines join all leaves; without spines the fabric
/// is rail-only (W. Wang, M. Ghobadi, K. Shakeri, Y. Zhang, N. Hasani, "Rail-only: a low-cost high-performance network
/// for training LLMs with trillion parameters", HOTI 2024, compares both forms).
///
/// A host is a GPU with its adapter. A switch for each server, the NVLink domain, joins its GPUs by `server-link`.
/// Cables from this switch to the leaves, one per rail, are the adapters, by `rail-link`. Traffic within a server never
/// leaves the server. Traffic to another server can leave by any rail: by default by the rail of the destination, as
/// NCCL forwards through a neighbour (PXN). No GPU owns an adapter: a GPU that sends to several rails has several times
/// the rate of an adapter, unless `host.injection-rate` limits it.
///
/// GPU 3 of server 12 is `server-12-gpu-03`, the NVLink domain `server-12`, the leaf of rail 3 in pod 0
/// `pod-00-rail-03`. A server's switch has the GPUs on ports 1 to n and the rails on n + 1 to 2 n. A leaf has its
/// servers on the first ports, then the spines; a spine has the leaves pod by pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RailOptimised {
    /// Number of servers.
    pub servers: usize,
    /// GPUs of a server, each with an adapter; also the number of rails.
    #[serde(default = "RailOptimised::default_gpus")]
    pub gpus_per_server: usize,
    /// Servers that share the leaves of a pod. Default: all servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers_per_pod: Option<usize>,
    /// Number of spines; with more than one pod at least 1.
    #[serde(default)]
    pub spines: usize,
    /// Cables from each leaf to each spine.
    #[serde(default = "RailOptimised::default_cables")]
    pub cables_per_spine: usize,
    /// Links between a GPU and the switch of its server. Default: 3.6 Tbit/s, as 18 links of NVLink 4 have, and 100 ns.
    #[serde(default = "RailOptimised::default_server_link")]
    pub server_link: Cable,
    /// Cables from a server to the leaves, where they differ from the section `link`.
    #[serde(default, skip_serializing_if = "Cable::is_default")]
    pub rail_link: Cable,
    /// Cables between leaves and spines, where they differ from the section `link`.
    #[serde(default, skip_serializing_if = "Cable::is_default")]
    pub spine_link: Cable,
}

impl RailOptimised {
    fn default_gpus() -> usize {
        8
    }

    fn default_cables() -> usize {
        1
    }

    fn default_server_link() -> Cable {
        Cable {
            rate: Rate::from_bits_per_sec(3_600_000_000_000),
            latency: Some(Span::from_ps(100_000)),
            ..Cable::default()
        }
    }

    fn servers_per_pod(&self) -> usize {
        self.servers_per_pod.unwrap_or(self.servers)
    }

    fn pods(&self) -> usize {
        self.servers / self.servers_per_pod()
    }

    fn validate(&self) -> Result<(), FabricError> {
        let of = |key| Parameter {
            generator: Self::NAME,
            key,
        };
        let (servers, gpus) = (self.servers, self.gpus_per_server);
        of("servers").positive(servers)?;
        of("gpus-per-server").positive(gpus)?;
        of("cables-per-spine").positive(self.cables_per_spine)?;
        let per_pod = self.servers_per_pod();
        of("servers-per-pod").positive(per_pod)?;
        if servers % per_pod != 0 {
            let problem = format!("{servers} servers are no whole number of pods of {per_pod}");
            let whole = servers.next_multiple_of(per_pod);
            return Err(of("servers-per-pod").bad(problem, format!("e.g. set servers to {whole}")));
        }
        if self.spines == 0 && self.pods() > 1 {
            let problem = format!("no spine joins the {} pods", self.pods());
            return Err(of("spines").bad(problem, "write 1 or more"));
        }
        of("gpus-per-server").ports(gpus.checked_mul(2), 0)?;
        let up = of("spines").ports(product(&[self.spines, self.cables_per_spine]), 0)?;
        of(match self.servers_per_pod {
            Some(_) => "servers-per-pod",
            None => "servers",
        })
        .ports(Some(per_pod), up)?;
        let leaves = product(&[self.pods(), gpus]);
        if self.spines > 0 {
            let down = leaves.and_then(|leaves| leaves.checked_mul(self.cables_per_spine));
            of("cables-per-spine").ports(down, 0)?;
        }
        let nodes = product(&[servers, gpus + 1]);
        let nodes = nodes.and_then(|nodes| nodes.checked_add(leaves?));
        of("servers").nodes(nodes.and_then(|nodes| nodes.checked_add(self.spines)))
    }

    fn add_leaves(&self, builder: &mut FabricBuilder) -> Result<Vec<NodeHandle>, FabricError> {
        let (pods, rails) = (self.pods(), self.gpus_per_server);
        let ports = self.servers_per_pod() + self.spines * self.cables_per_spine;
        let names = (0..pods * rails).map(|index| {
            let pod = switch_name("pod", index / rails, pods);
            switch_name(&format!("{pod}-rail"), index % rails, rails)
        });
        names.map(|name| builder.add_switch(name, ports)).collect()
    }
}

impl Generator for RailOptimised {
    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        self.validate()?;
        let (servers, gpus, per_pod) = (self.servers, self.gpus_per_server, self.servers_per_pod());
        let mut builder = FabricBuilder::new();
        let domains = (0..servers)
            .map(|index| builder.add_switch(switch_name("server", index, servers), 2 * gpus))
            .collect::<Result<Vec<_>, _>>()?;
        let leaves = self.add_leaves(&mut builder)?;
        let (server_link, rail_link) = (self.server_link.or(link), self.rail_link.or(link));
        for (index, domain) in domains.iter().enumerate() {
            let server = switch_name("server", index, servers);
            for gpu in 0..gpus {
                let host = builder.add_host(switch_name(&format!("{server}-gpu"), gpu, gpus))?;
                let inside = port_number(gpu + 1, Self::NAME)?;
                builder.connect(host.port(1), domain.port(inside), server_link)?;
                let outside = port_number(gpus + gpu + 1, Self::NAME)?;
                let leaf = leaves[index / per_pod * gpus + gpu];
                let down = port_number(index % per_pod + 1, Self::NAME)?;
                builder.connect(domain.port(outside), leaf.port(down), rail_link)?;
            }
        }
        let cables = self.cables_per_spine;
        let spine_link = self.spine_link.or(link);
        for spine in 0..self.spines {
            let name = switch_name("spine", spine, self.spines);
            let handle = builder.add_switch(name, leaves.len() * cables)?;
            for (place, leaf) in leaves.iter().enumerate() {
                for cable in 1..=cables {
                    let up = port_number(per_pod + spine * cables + cable, Self::NAME)?;
                    let down = port_number(place * cables + cable, Self::NAME)?;
                    builder.connect(leaf.port(up), handle.port(down), spine_link)?;
                }
            }
        }
        builder.build()
    }
}
