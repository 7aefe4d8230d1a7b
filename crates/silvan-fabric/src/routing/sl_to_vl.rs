use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use silvan_core::{HostId, PortNumber, SwitchId};
use thiserror::Error;

/// The virtual lane of each service level, 0 to 15; no data is sent on lane 15.
pub type Vls = [u8; 16];

/// SLtoVLMappingTables (IBA volume 1, section 14.2.5.8) of switches by ports, and of hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlToVlTables {
    switches: BTreeMap<SwitchId, BTreeMap<(PortNumber, PortNumber), Vls>>,
    hosts: BTreeMap<HostId, Vls>,
}

/// Pairs of a switch's ports, any of the inputs with any of the outputs, that have one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlToVlGroup {
    /// Ports that packets come in by.
    pub inputs: PortNumbers,
    /// Ports that they leave by.
    pub outputs: PortNumbers,
    /// Lanes of the group by service level.
    pub vls: Vls,
}

impl SlToVlTables {
    /// Returns true if there is no table at all.
    pub fn is_empty(&self) -> bool {
        self.switches.is_empty() && self.hosts.is_empty()
    }

    /// The lanes of a switch between two ports.
    pub fn switch(&self, switch: SwitchId, input: PortNumber, output: PortNumber) -> Option<&Vls> {
        self.switches.get(&switch)?.get(&(input, output))
    }

    /// The lanes of what a host sends.
    pub fn host(&self, host: HostId) -> Option<&Vls> {
        self.hosts.get(&host)
    }

    /// Sets the lanes of a switch between two ports, and gives those that it had.
    pub fn set_switch(
        &mut self,
        switch: SwitchId,
        input: PortNumber,
        output: PortNumber,
        vls: Vls,
    ) -> Option<Vls> {
        let pairs = self.switches.entry(switch).or_default();
        pairs.insert((input, output), vls)
    }

    /// Sets the lanes of what a host sends, and gives those that it had.
    pub fn set_host(&mut self, host: HostId, vls: Vls) -> Option<Vls> {
        self.hosts.insert(host, vls)
    }

    /// The switches that have tables.
    pub fn switches(&self) -> impl Iterator<Item = SwitchId> + '_ {
        self.switches.keys().copied()
    }

    /// The hosts that have one.
    pub fn hosts(&self) -> impl Iterator<Item = (HostId, &Vls)> {
        self.hosts.iter().map(|(host, vls)| (*host, vls))
    }

    /// A switch's tables in few groups: outputs with equal tables for every input, then inputs.
    pub fn groups(&self, switch: SwitchId) -> Vec<SlToVlGroup> {
        let mut columns: BTreeMap<PortNumber, Vec<(PortNumber, Vls)>> = BTreeMap::new();
        for (&(input, output), vls) in self.switches.get(&switch).into_iter().flatten() {
            columns.entry(output).or_default().push((input, *vls));
        }
        let mut groups = Vec::new();
        for (outputs, column) in alike(columns) {
            for (inputs, vls) in alike(column) {
                groups.push(SlToVlGroup {
                    inputs,
                    outputs: outputs.clone(),
                    vls,
                });
            }
        }
        groups
    }
}

fn alike<T: PartialEq>(
    entries: impl IntoIterator<Item = (PortNumber, T)>,
) -> Vec<(PortNumbers, T)> {
    let mut found: Vec<(PortNumbers, T)> = Vec::new();
    for (port, value) in entries {
        match found.iter_mut().find(|(_, known)| *known == value) {
            Some((ports, _)) => ports.0.push(port),
            None => found.push((PortNumbers(vec![port]), value)),
        }
    }
    found
}

/// Some ports of a node, in rising order; as text `1-4,7`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortNumbers(Vec<PortNumber>);

/// Text that is no list of ports.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} are not ports such as 1-4,7")]
pub struct ParsePortNumbersError(String);

impl PortNumbers {
    /// The ports.
    pub fn iter(&self) -> impl Iterator<Item = PortNumber> + '_ {
        self.0.iter().copied()
    }
}

impl fmt::Display for PortNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next_to = |a: &PortNumber, b: &PortNumber| a.as_u8().checked_add(1) == Some(b.as_u8());
        let mut text = String::new();
        for run in self.0.chunk_by(next_to) {
            if !text.is_empty() {
                text.push(',');
            }
            match run {
                [one] => text += &one.to_string(),
                [first, .., last] => text += &format!("{first}-{last}"),
                [] => {}
            }
        }
        f.pad(&text)
    }
}

impl FromStr for PortNumbers {
    type Err = ParsePortNumbersError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u8>().ok().filter(|_| is_number)
        };
        let mut ports: Vec<PortNumber> = Vec::new();
        for run in text.split(',') {
            let (first, last) = run.split_once('-').unwrap_or((run, run));
            let (first, last) = number(first)
                .zip(number(last))
                .filter(|(first, last)| first <= last)
                .ok_or_else(|| ParsePortNumbersError(text.to_owned()))?;
            ports.extend((first..=last).map(PortNumber::new));
        }
        if ports.windows(2).all(|pair| pair[0] < pair[1]) {
            Ok(Self(ports))
        } else {
            Err(ParsePortNumbersError(text.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "ports that cannot be read are a failed test"
    )]

    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ports_are_read_back(numbers in prop::collection::btree_set(any::<u8>(), 1..40)) {
            let ports = PortNumbers(numbers.iter().copied().map(PortNumber::new).collect());
            prop_assert_eq!(ports.to_string().parse::<PortNumbers>().unwrap(), ports);
        }

        #[test]
        fn groups_are_all_pairs_once(pairs in prop::collection::btree_map((1_u8..9, 1_u8..9), 0_u8..3, 0..64)) {
            let mut tables = SlToVlTables::default();
            let switch = SwitchId::new(0);
            for (&(input, output), &vl) in &pairs {
                tables.set_switch(switch, PortNumber::new(input), PortNumber::new(output), [vl; 16]);
            }
            let mut found = BTreeSet::new();
            for group in tables.groups(switch) {
                for input in group.inputs.iter() {
                    for output in group.outputs.iter() {
                        let pair = (input.as_u8(), output.as_u8());
                        prop_assert_eq!(group.vls, [pairs[&pair]; 16]);
                        prop_assert!(found.insert(pair));
                    }
                }
            }
            prop_assert_eq!(found.len(), pairs.len());
        }
    }

    #[test]
    fn ports_have_one_form() {
        for (text, ports) in [
            ("7", vec![7]),
            ("1-3,5", vec![1, 2, 3, 5]),
            ("0-1,254-255", vec![0, 1, 254, 255]),
        ] {
            let read: PortNumbers = text.parse().unwrap();
            let numbers: Vec<u8> = read.iter().map(PortNumber::as_u8).collect();
            assert_eq!(numbers, ports);
            assert_eq!(read.to_string(), text);
        }
        for text in [
            "", "-", "1-", "3-1", "1,1", "2,1", "+1", "256", "1 2", "1-2-3", "a",
        ] {
            let error = text.parse::<PortNumbers>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("{text:?} are not ports such as 1-4,7")
            );
        }
    }
}
