use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attached::{MOST_PORTS, Parameter, attach_hosts};
use super::galois::Field;
use super::{Generator, port_number};
use crate::routing::{LayeredMinHop, Routing};
use crate::{Cable, Fabric, FabricBuilder, FabricError, LinkKind};

/// A Slim Fly: 2 q^2 switches, any two at most two cables apart.
///
/// Each switch has (3 q - d) / 2 cables to others, for which the number of switches is nearly the largest possible. The
/// prime power q is 4 w + d with d of -1, 0 or 1 (M. Besta, T. Hoefler, "Slim Fly: a cost effective low-diameter
/// network topology", SC 2014, section II.B). The graphs are those of B. D. McKay, M. Miller, J. Siran, "A note on
/// large graphs of diameter two and given maximum degree", J. Comb. Theory B 74, 1998, in the form of P. R. Hafner,
/// "Geometric realisation of the graphs of McKay-Miller-Siran", J. Comb. Theory B 90, 2004.
///
/// Switches are (0, x, y) and (1, m, c) with elements of the field of q elements. In a column, (0, x, y) and (0, x, y')
/// are cabled if y - y' is in a set X, and (1, m, c) and (1, m, c') if c - c' is in X'. Between the halves, (0, x, y)
/// is cabled to (1, m, c) if y = m x + c.
///
/// Ports 1 to h have hosts, then neighbours of the column by difference, then neighbours of the other half by column.
/// Switch (1, m, c) is `switch-1-m-c`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SlimFly {
    /// q: elements of the field, a prime power above 2: 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, ...
    pub q: usize,
    /// Hosts at each switch. Default: half of the cables that it has to switches, rounded up, which is balanced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts_per_switch: Option<usize>,
    /// Cables of hosts, where they differ from the section `link`.
    #[serde(default, skip_serializing_if = "Cable::is_default")]
    pub host_link: Cable,
    /// Cables within a column, where they differ from the section `link`.
    #[serde(default, skip_serializing_if = "Cable::is_default")]
    pub local_link: Cable,
    /// Cables between the halves, where they differ from the section `link`.
    #[serde(default, skip_serializing_if = "Cable::is_default")]
    pub global_link: Cable,
}

fn generators(field: &Field) -> [Vec<usize>; 2] {
    let q = field.size();
    let w = q.div_ceil(4);
    let powers = |exponents: Vec<usize>| {
        let elements = exponents.into_iter().map(|exponent| field.power(exponent));
        let mut elements: Vec<usize> = elements.collect();
        elements.sort_unstable();
        elements
    };
    let both = |even: Vec<usize>| {
        let odd = even.iter().map(|exponent| exponent + 1).collect();
        [powers(even), powers(odd)]
    };
    match q % 4 {
        // X: 1, xi^2, ..., xi^(2w-2), xi^(2w-1), xi^(2w+1), ..., xi^(4w-3); X' one exponent further.
        3 => both(
            (0..2 * w)
                .step_by(2)
                .chain((2 * w - 1..4 * w - 2).step_by(2))
                .collect(),
        ),
        // X: 1, xi^2, ..., the even powers; X' the odd ones.
        _ => both((0..q - 1).step_by(2).collect()),
    }
}

impl SlimFly {
    fn validate(&self) -> Result<(Field, usize), FabricError> {
        let of = |key| Parameter {
            generator: Self::NAME,
            key,
        };
        let most = MOST_PORTS * 2 / 3;
        let given = Some(self.q).filter(|q| (3..=most).contains(q));
        let Some(field) = given.and_then(Field::new) else {
            let fits = |q: &usize| Field::new(*q).is_some();
            let below = (3..self.q.min(most + 1)).rev().find(fits);
            let above = (self.q.saturating_add(1).max(3)..=most).find(fits);
            let near: Vec<String> = [below, above]
                .iter()
                .flatten()
                .map(usize::to_string)
                .collect();
            let problem = format!("q is {}, it must be a prime power of 3 to {most}", self.q);
            return Err(of("q").bad(problem, format!("write {}", near.join(" or "))));
        };
        let cables = self.q + generators(&field)[0].len();
        let hosts = self.hosts_per_switch.unwrap_or(cables.div_ceil(2));
        of("hosts-per-switch").positive(hosts)?;
        let key = match self.hosts_per_switch {
            Some(_) => "hosts-per-switch",
            None => "q",
        };
        of(key).ports(Some(hosts), cables)?;
        of("q").nodes(Some(2 * self.q * self.q * (hosts + 1)))?;
        Ok((field, hosts))
    }
}

impl Generator for SlimFly {
    fn default_routing(&self) -> Routing {
        LayeredMinHop {}.into()
    }

    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        let (field, hosts) = self.validate()?;
        let q = self.q;
        let sets = generators(&field);
        let ports = hosts + sets[0].len() + q;
        let mut builder = FabricBuilder::new();
        let width = (q - 1).ilog10() as usize + 1;
        let mut switches = Vec::with_capacity(2 * q * q);
        for index in 0..2 * q * q {
            let (half, column, row) = (index / (q * q), index / q % q, index % q);
            let name = format!("switch-{half}-{column:0width$}-{row:0width$}");
            switches.push(builder.add_switch(name, ports)?);
        }
        let host_link = self.host_link.or(link);
        attach_hosts(&mut builder, Self::NAME, &switches, hosts, host_link)?;
        let end = |half: usize, column: usize, row: usize, port: usize| {
            let switch = switches[(half * q + column) * q + row];
            Ok::<_, FabricError>(switch.port(port_number(hosts + port + 1, Self::NAME)?))
        };
        let local_link = self.local_link.or(link);
        for (half, set) in sets.iter().enumerate() {
            for (port, &difference) in set.iter().enumerate() {
                let back = field.negative(difference);
                // The set has the negative of each of its elements.
                let Some(far_port) = set.iter().position(|element| *element == back) else {
                    continue;
                };
                for (column, row) in (0..q * q).map(|index| (index / q, index % q)) {
                    let peer = field.sum(row, difference);
                    if row < peer {
                        let ends = (
                            end(half, column, row, port)?,
                            end(half, column, peer, far_port)?,
                        );
                        builder.connect(ends.0, ends.1, local_link)?;
                    }
                }
            }
        }
        let global_link = self.global_link.or(link);
        for (x, m) in (0..q * q).map(|index| (index / q, index % q)) {
            for c in 0..q {
                let y = field.sum(field.product(m, x), c);
                let ends = (
                    end(0, x, y, sets[0].len() + m)?,
                    end(1, m, c, sets[1].len() + x)?,
                );
                builder.connect(ends.0, ends.1, global_link)?;
            }
        }
        builder.build()
    }
}
