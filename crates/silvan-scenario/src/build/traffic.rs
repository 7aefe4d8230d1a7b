//! The traffic.

use silvan_core::{Bytes, HostId, Rate, Span, Time};
use silvan_fabric::Fabric;
use silvan_model::{HostParams, PacketParams};
use silvan_workload::traffic::{
    CatchUp, Entry, Environment, FlowSpec, Hotspots, IncastSpec, Load, NodesSpec, OnOffSpec,
    Pattern, PermutationSpec, Roles, Selection, SequenceSpec, Spacing, TrafficError, TrafficSpec,
    UniformSpec, Window,
};

use super::{Parameter, advice, at, check_parameters, host_named};
use crate::parsed::{
    self, HostChoice, Limit, LoadValue, NodesSection, OnOffSection, PatternKind, PermutationEntry,
    RoleShare, SeedSource, SendQueue, SpacingKind, TrafficSection,
};
use crate::{KeyPath, ScenarioError};

/// What the traffic must know of fabric and run.
pub(crate) fn environment(
    fabric: &Fabric,
    host: &HostParams,
    packet: &PacketParams,
    seed: u64,
) -> Environment {
    let payload_rate = |host_id: HostId| {
        let port = fabric.host_port(host_id);
        let link = fabric.ports[port].link.map(|link| fabric.links[link]);
        let link = link.map(|link| payload_part(link.data_rate(), packet));
        match (link, host.injection_rate) {
            (Some(link), Some(limit)) => link.min(limit),
            (Some(rate), None) | (None, Some(rate)) => rate,
            (None, None) => unreachable!("the builder has cabled every host"),
        }
    };
    Environment {
        injection: fabric.host_ids().map(payload_rate).collect(),
        mtu: packet.mtu,
        seed,
    }
}

/// What headers leave of a link's rate to packets of MTU size, rounded down to bits per second.
fn payload_part(rate: Rate, packet: &PacketParams) -> Rate {
    let (mtu, header) = (packet.mtu.as_u64(), packet.header.as_u64());
    let bits = u128::from(rate.bits_per_sec()) * u128::from(mtu) / u128::from(mtu + header);
    // A share of a 64-bit number has 64 bits; zero only below one bit per second.
    Rate::from_bits_per_sec(bits as u64).unwrap_or(rate)
}

/// The traffic with names turned into hosts.
pub(crate) fn build_traffic(
    section: &TrafficSection,
    send_queue: SendQueue,
    fabric: &Fabric,
) -> Result<TrafficSpec, ScenarioError> {
    // Checked here, as the traffic looks at the size only where an entry uses it.
    if section.message.is_some_and(Bytes::is_zero) {
        let error = ScenarioError::new(at("traffic.message"), "zero bytes");
        return Err(error.with_hint("write e.g. \"4 KiB\""));
    }
    let names = Names { fabric };
    let entry_key = |kind: &str, index: usize| at("traffic").key(kind).index(index);
    Ok(TrafficSpec {
        message: section.message,
        backlog: section.backlog,
        fifo: send_queue == SendQueue::Fifo,
        loopback: section.loopback,
        nodes: section
            .nodes
            .as_ref()
            .map(|nodes| names.nodes(nodes))
            .transpose()?,
        uniform: each(&section.uniform, |index, entry| {
            Ok(UniformSpec {
                name: entry.name.clone(),
                from: names.selection(&entry.from, &entry_key("uniform", index).key("from"))?,
                load: load(entry.load),
                spacing: spacing(entry.spacing),
                window: window(entry.start, entry.end),
                message: entry.message,
                sl: entry.sl,
            })
        })?,
        permutation: each(&section.permutation, |index, entry| {
            Ok(PermutationSpec {
                name: entry.name.clone(),
                pattern: names.pattern(entry, &entry_key("permutation", index))?,
                load: load(entry.load),
                spacing: spacing(entry.spacing),
                window: window(entry.start, entry.end),
                message: entry.message,
                sl: entry.sl,
            })
        })?,
        incast: each(&section.incast, |index, entry| {
            let key = entry_key("incast", index);
            Ok(IncastSpec {
                name: entry.name.clone(),
                from: names.selection(&entry.from, &key.key("from"))?,
                to: host_named(fabric, &entry.to, key.key("to"))?,
                bytes: entry.bytes.value(),
                load: load(entry.load),
                spacing: spacing(entry.spacing),
                window: window(entry.start, entry.end),
                on_off: entry.on_off.as_ref().map(on_off),
                message: entry.message,
                sl: entry.sl,
            })
        })?,
        flow: each(&section.flow, |index, entry| {
            let key = entry_key("flow", index);
            Ok(FlowSpec {
                name: entry.name.clone(),
                from: host_named(fabric, &entry.from, key.key("from"))?,
                to: host_named(fabric, &entry.to, key.key("to"))?,
                bytes: entry.bytes.value(),
                load: load(entry.load),
                window: window(entry.start, entry.end),
                on_off: entry.on_off.as_ref().map(on_off),
                message: entry.message,
                sl: entry.sl,
            })
        })?,
        sequence: each(&section.sequence, |index, entry| {
            let key = entry_key("sequence", index);
            Ok(SequenceSpec {
                name: entry.name.clone(),
                from: host_named(fabric, &entry.from, key.key("from"))?,
                to: names.hosts(&entry.to, &key.key("to"))?,
                iterations: entry.iterations.value(),
                pause: entry.pause,
                window: window(entry.start, entry.end),
                message: entry.message,
                sl: entry.sl,
            })
        })?,
    })
}

/// An error of the traffic crate with its key path.
pub(crate) fn traffic_error(error: &TrafficError) -> ScenarioError {
    let entry = match error.entry {
        // The traffic checks the MTU too, whose key stands elsewhere.
        Entry::Traffic if error.key == "mtu" => at("packet"),
        Entry::Traffic => at("traffic"),
        Entry::Nodes => at("traffic.nodes"),
        Entry::Uniform(index) => at("traffic.uniform").index(index),
        Entry::Permutation(index) => at("traffic.permutation").index(index),
        Entry::Incast(index) => at("traffic.incast").index(index),
        Entry::Flow(index) => at("traffic.flow").index(index),
        Entry::Sequence(index) => at("traffic.sequence").index(index),
    };
    ScenarioError::new(entry.key(error.key), error.reason.to_string())
        .with_hint(advice::on_traffic(&error.reason))
}

fn each<T, U>(
    entries: &[T],
    convert: impl Fn(usize, &T) -> Result<U, ScenarioError>,
) -> Result<Vec<U>, ScenarioError> {
    let entries = entries.iter().enumerate();
    entries
        .map(|(index, entry)| convert(index, entry))
        .collect()
}

fn load(value: LoadValue) -> Load {
    match value {
        LoadValue::Saturating => Load::Saturating,
        LoadValue::Fraction(fraction) => Load::Fraction(fraction),
        LoadValue::Rate(rate) => Load::Rate(rate),
    }
}

fn spacing(kind: SpacingKind) -> Spacing {
    match kind {
        SpacingKind::Poisson => Spacing::Poisson,
        SpacingKind::Periodic => Spacing::Periodic,
    }
}

fn window(start: Span, end: Limit<Span>) -> Window {
    Window {
        start: Time::ZERO + start,
        end: end.value().map(|end| Time::ZERO + end),
    }
}

fn on_off(section: &OnOffSection) -> OnOffSpec {
    OnOffSpec {
        on: section.on,
        off: section.off,
    }
}

/// Turns names into hosts.
pub(super) struct Names<'a> {
    pub(super) fabric: &'a Fabric,
}

impl Names<'_> {
    pub(super) fn hosts(
        &self,
        names: &[String],
        key: &KeyPath,
    ) -> Result<Vec<HostId>, ScenarioError> {
        each(names, |index, name| {
            host_named(self.fabric, name, key.index(index))
        })
    }

    fn selection(&self, choice: &HostChoice, key: &KeyPath) -> Result<Selection, ScenarioError> {
        Ok(match choice {
            HostChoice::All => Selection::All,
            HostChoice::Names(names) => Selection::Given(self.hosts(names, key)?),
            HostChoice::Count(count) => Selection::Random(*count),
        })
    }

    fn pattern(&self, entry: &PermutationEntry, key: &KeyPath) -> Result<Pattern, ScenarioError> {
        let name = match entry.pattern {
            PatternKind::Random => "random",
            PatternKind::Shift => "shift",
            PatternKind::BitComplement => "bit-complement",
            PatternKind::Given => "given",
        };
        let parameters = [
            Parameter {
                key: "shift",
                given: entry.shift.is_some(),
                wanted: entry.pattern == PatternKind::Shift,
            },
            Parameter {
                key: "to",
                given: entry.to.is_some(),
                wanted: entry.pattern == PatternKind::Given,
            },
        ];
        check_parameters(key, name, &parameters)?;
        Ok(match entry.pattern {
            PatternKind::Random => Pattern::Random,
            PatternKind::Shift => Pattern::Shift(entry.shift.unwrap_or_default()),
            PatternKind::BitComplement => Pattern::BitComplement,
            PatternKind::Given => {
                let to = entry.to.as_deref().unwrap_or_default();
                Pattern::Given(self.hosts(to, &key.key("to"))?)
            }
        })
    }

    fn nodes(&self, nodes: &NodesSection) -> Result<NodesSpec, ScenarioError> {
        let key = at("traffic.nodes");
        if !(0.0..=100.0).contains(&nodes.p) {
            let message = format!("{} is not between 0 and 100 per cent", nodes.p);
            let error = ScenarioError::new(key.key("p"), message);
            return Err(error.with_hint("write e.g. 60 for 60 %"));
        }
        Ok(NodesSpec {
            roles: self.roles(nodes, &key)?,
            p: nodes.p / 100.0,
            hotspots: match &nodes.hotspots {
                parsed::Hotspots::Count(count) => Hotspots::Random(*count),
                parsed::Hotspots::Names(names) => {
                    Hotspots::Given(self.hosts(names, &key.key("hotspots"))?)
                }
            },
            hotspot_lifetime: nodes.hotspot_lifetime.value(),
            catch_up: match nodes.catch_up {
                Limit::Unlimited => CatchUp::Unlimited,
                Limit::At(span) => CatchUp::Within(span),
            },
            run_ahead: nodes.run_ahead,
            placement_seed: match nodes.placement_seed {
                SeedSource::Run => None,
                SeedSource::Fixed(seed) => Some(seed),
            },
            message: nodes.message,
            sl: nodes.sl,
        })
    }

    fn roles(&self, nodes: &NodesSection, key: &KeyPath) -> Result<Roles, ScenarioError> {
        let shares = [("v", &nodes.v), ("c", &nodes.c), ("b", &nodes.b)];
        if shares
            .iter()
            .all(|(_, share)| matches!(share, RoleShare::Fraction(_)))
        {
            let fraction = |share: &RoleShare| match share {
                RoleShare::Fraction(fraction) => *fraction,
                RoleShare::Names(_) => 0.0,
            };
            let [v, c, b] = shares.map(|(_, share)| fraction(share));
            // What decimal fractions leave of 1 is not exact; a real excess is an error of the sum.
            let idle = 1.0 - v - c - b;
            let idle = if idle.abs() < 1e-9 { 0.0 } else { idle };
            let out_of_range = shares
                .iter()
                .find(|(_, share)| !(0.0..=1.0).contains(&fraction(share)));
            if let Some((role, share)) = out_of_range {
                let message = format!("{} is not between 0 and 1", fraction(share));
                let error = ScenarioError::new(key.key(role), message);
                return Err(error.with_hint("write e.g. 0.5 for one half of the hosts"));
            }
            if idle < 0.0 {
                let message = format!("the fractions v, c and b sum to {}, more than 1", v + c + b);
                let error = ScenarioError::new(key.clone(), message);
                return Err(error.with_hint("lower one of them; the rest of the hosts is idle"));
            }
            return Ok(Roles::Fractions { v, c, b, idle });
        }
        let list = |(role, share): (&str, &RoleShare)| match share {
            RoleShare::Names(names) => self.hosts(names, &key.key(role)),
            RoleShare::Fraction(0.0) => Ok(Vec::new()),
            RoleShare::Fraction(_) => {
                let message = "this is a fraction, but another role is a list of hosts";
                let error = ScenarioError::new(key.key(role), message);
                Err(error.with_hint("give all roles in the same way"))
            }
        };
        let [v, c, b] = shares.map(list);
        Ok(Roles::Lists {
            v: v?,
            c: c?,
            b: b?,
        })
    }
}
