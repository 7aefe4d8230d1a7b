use super::{host_name, port_number};
use crate::{FabricBuilder, FabricError, LinkKind, NodeHandle};

pub(super) const MOST_PORTS: usize = 254;

const MOST_NODES: usize = 1 << 22;

#[derive(Debug, Clone, Copy)]
pub(super) struct Parameter {
    pub(super) generator: &'static str,
    pub(super) key: &'static str,
}

impl Parameter {
    pub(super) fn bad(self, problem: impl Into<String>, hint: impl Into<String>) -> FabricError {
        FabricError::BadParameter {
            generator: self.generator,
            key: self.key,
            problem: problem.into(),
            hint: hint.into(),
        }
    }

    pub(super) fn positive(self, value: usize) -> Result<(), FabricError> {
        match value {
            0 => Err(self.bad(format!("{} is 0", self.key), "write 1 or more")),
            _ => Ok(()),
        }
    }

    /// `fixed` ports are taken otherwise.
    pub(super) fn ports(self, own: Option<usize>, fixed: usize) -> Result<usize, FabricError> {
        match own.map(|own| own.saturating_add(fixed)) {
            Some(ports) if ports <= MOST_PORTS => Ok(ports),
            ports => {
                let ports = ports.map_or_else(|| "more".to_owned(), |ports| ports.to_string());
                let left = MOST_PORTS.saturating_sub(fixed);
                Err(self.bad(
                    format!("a switch would need {ports} ports, it has at most {MOST_PORTS}"),
                    match left {
                        0 => "the other parameters leave no ports for it".to_owned(),
                        left => format!("the other parameters leave {left} ports for it"),
                    },
                ))
            }
        }
    }

    pub(super) fn nodes(self, nodes: Option<usize>) -> Result<(), FabricError> {
        let problem = match nodes {
            Some(..=MOST_NODES) => return Ok(()),
            Some(nodes) => format!("{nodes} nodes, a fabric has at most {MOST_NODES}"),
            None => "the number of hosts is astronomical".to_owned(),
        };
        Err(self.bad(problem, "make the fabric smaller"))
    }
}

pub(super) fn product(factors: &[usize]) -> Option<usize> {
    let mut factors = factors.iter();
    factors.try_fold(1_usize, |product, factor| product.checked_mul(*factor))
}

pub(super) fn attach_hosts(
    builder: &mut FabricBuilder,
    generator: &'static str,
    switches: &[NodeHandle],
    hosts_per_switch: usize,
    link: LinkKind,
) -> Result<(), FabricError> {
    let count = switches.len() * hosts_per_switch;
    for index in 0..count {
        let host = builder.add_host(host_name(index, count))?;
        let port = port_number(index % hosts_per_switch + 1, generator)?;
        let switch = switches[index / hosts_per_switch];
        builder.connect(host.port(1), switch.port(port), link)?;
    }
    Ok(())
}
