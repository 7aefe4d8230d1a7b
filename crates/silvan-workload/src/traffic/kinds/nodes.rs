use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::document::Limit;
use silvan_core::{Bytes, HostId, Sl, Span, Time, schema};

use super::TrafficKind;
use crate::traffic::build::Builder;
use crate::traffic::check::{Checker, message_time};
use crate::traffic::error::{Reason, TrafficError};
use crate::traffic::hosts::Source;
use crate::traffic::hotspots::HotspotTable;
use crate::traffic::offered::Contribution;
use crate::traffic::rng::{Purpose, stream};
use crate::traffic::roles::{Role, deal, largest_remainder, placement_order};
use crate::traffic::scatter::{Classes, Common, Scatter};
use crate::traffic::share::{CapLimits, WHOLE, share_of};
use crate::traffic::spec::Window;
use crate::traffic::supply::{Mixed, Spread, Supply};
use crate::traffic::values::{Hotspots, RoleShare, SeedSource};

/// Default run-ahead in messages: enough for a random order.
const DEFAULT_RUN_AHEAD_MESSAGES: u64 = 8;

/// V, C and B nodes and their hotspots (gran2012, sections III to V and Frame I); all of them always have
/// something to send. A V node sends to destinations drawn uniformly, a C node to its hotspot, a B node
/// both.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Nodes {
    /// The V nodes: a fraction of all hosts, or a list of names. All three roles
    /// have the same form; hosts without a role send nothing.
    pub v: RoleShare,
    /// The C nodes.
    pub c: RoleShare,
    /// The B nodes.
    pub b: RoleShare,
    /// Percentage of time that a B node sends to its hotspot, 0 to 100.
    #[schemars(extend("x-unit" = "%"))]
    pub p: f64,
    /// The hotspots: their number, or a list of names. The C nodes and the B nodes are divided
    /// evenly among them.
    pub hotspots: Hotspots,
    /// Time after which all hotspots move to new random hosts.
    #[schemars(with = "Limit<schema::SpanText>")]
    pub hotspot_lifetime: Limit<Span>,
    /// A blocked B node may later exceed its share to catch up on at most this much missed time.
    /// Unlimited is Frame I of gran2012 to the letter.
    #[schemars(with = "Limit<schema::SpanText>")]
    pub catch_up: Limit<Span>,
    /// Limit of a B node's class that runs ahead of its share, as time at the full injection rate. With zero, the two
    /// classes alternate in lockstep on all hosts. Default: eight messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub run_ahead: Option<Span>,
    /// Seed of the placement of roles and hotspots: a number, or that of the run.
    pub placement_seed: SeedSource,
    /// Size of a message, if it is not that of the section `traffic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub message: Option<Bytes>,
    /// Service level.
    #[schemars(with = "schema::SlNumber")]
    pub sl: Sl,
}

struct Members {
    v: Vec<HostId>,
    c: Vec<HostId>,
    b: Vec<HostId>,
}

/// Roles without hosts have class 0.
#[derive(Default)]
struct RoleClasses {
    v: u16,
    c_hot: u16,
    b_hot: u16,
    b_uniform: u16,
}

impl TrafficKind for Nodes {
    fn levels(&self) -> Vec<(&'static str, Sl)> {
        vec![("sl", self.sl)]
    }

    fn build(&self, check: &Checker, builder: &mut Builder) -> Result<(), TrafficError> {
        let hosts = check.hosts();
        if hosts < 2 {
            return check.fail("", Reason::NoOtherHost(hosts));
        }
        let share = share_of(check.percentage("p", self.p)?);
        let placement_seed = self.placement_seed.or(check.environment.seed);
        let hotspots = self.hotspot_table(check, placement_seed)?;
        let mut members = self.members(check, placement_seed)?;
        let b_follows = share > 0 && !members.b.is_empty();
        if hotspots.count() == 0 && (b_follows || !members.c.is_empty()) {
            return check.fail("hotspots", Reason::NoHotspots);
        }
        if self.fractions().is_none() {
            let contributors = [("c", &members.c, true), ("b", &members.b, b_follows)];
            for (key, list, follows) in contributors {
                if let Some(host) = self.only_target_is_itself(&hotspots, list).filter(|_| follows) {
                    return check.fail(key, Reason::ToItself(host));
                }
            }
        }
        let first = hotspots.at(Time::ZERO);
        deal(&mut members.c, &first);
        deal(&mut members.b, &first);

        let message = check.message(self.message)?;
        let common = Common {
            hosts: hosts as u32,
            loopback: builder.spec.loopback,
            message,
            mtu: builder.mtu,
            sl: self.sl,
            backlog: builder.spec.backlog,
            window: Window::default(),
        };
        let common = builder.common(common);
        let classes = role_classes(builder, check, &members, share)?;
        let mut adder = NodeAdder {
            builder,
            nodes: self,
            common,
            message,
            subsets: hotspots.count().max(1),
        };
        for &host in &members.v {
            adder.builder.roles[host.index()] = Role::V;
            let classes = Classes {
                uniform: classes.v,
                hot: classes.v,
            };
            adder.add(host, classes, Supply::Uniform, 1.0);
        }
        for (place, &host) in members.c.iter().enumerate() {
            adder.builder.roles[host.index()] = Role::C;
            let classes = Classes {
                uniform: classes.c_hot,
                hot: classes.c_hot,
            };
            let subset = adder.subset(place);
            adder.add(host, classes, Supply::Hot { subset }, 0.0);
        }
        for (place, &host) in members.b.iter().enumerate() {
            adder.builder.roles[host.index()] = Role::B;
            let classes = Classes {
                uniform: classes.b_uniform,
                hot: classes.b_hot,
            };
            let supply = adder.b_supply(host, adder.subset(place), share);
            adder.add(host, classes, supply, 1.0 - self.p / 100.0);
        }
        adder.builder.reach_all_from(&members.v);
        if share < WHOLE {
            adder.builder.reach_all_from(&members.b);
        }
        if b_follows || !members.c.is_empty() {
            if self.hotspot_lifetime.value().is_some() {
                adder.builder.receives.fill(true);
            }
            for &hotspot in &first {
                adder.builder.receives[hotspot as usize] = true;
            }
        }
        let mut followers = members.c;
        if b_follows {
            followers.extend(&members.b);
        }
        followers.sort_unstable();
        builder.followers = followers;
        builder.hotspots = hotspots;
        Ok(())
    }
}

impl Nodes {
    fn fractions(&self) -> Option<[f64; 3]> {
        match [&self.v, &self.c, &self.b] {
            [
                RoleShare::Fraction(v),
                RoleShare::Fraction(c),
                RoleShare::Fraction(b),
            ] => Some([*v, *c, *b]),
            _ => None,
        }
    }

    fn members(&self, check: &Checker, placement_seed: u64) -> Result<Members, TrafficError> {
        const KEYS: [&str; 3] = ["v", "c", "b"];
        let Some([v, c, b]) = self.fractions() else {
            let mut taken = vec![false; check.hosts()];
            let mut list = |(key, share): (&'static str, &RoleShare)| match share {
                RoleShare::Given(list) => check.distinct_hosts(key, list, &mut taken),
                RoleShare::Fraction(0.0) => Ok(Vec::new()),
                RoleShare::Fraction(_) => check.fail(key, Reason::MixedRoles),
            };
            return Ok(Members {
                v: list((KEYS[0], &self.v))?,
                c: list((KEYS[1], &self.c))?,
                b: list((KEYS[2], &self.b))?,
            });
        };
        for (key, fraction) in KEYS.into_iter().zip([v, c, b]) {
            check.fraction(key, fraction)?;
        }
        // Far below one host, far above rounding errors of fractions.
        let idle = 1.0 - v - c - b;
        let idle = if idle.abs() < 1e-9 { 0.0 } else { idle };
        if idle < 0.0 {
            return check.fail("", Reason::FractionSum(v + c + b));
        }
        let [v, c, b, _] = largest_remainder([v, c, b, idle], check.hosts());
        let order = placement_order(check.hosts(), placement_seed);
        Ok(Members {
            v: order[..v].to_vec(),
            c: order[v..v + c].to_vec(),
            b: order[v + c..v + c + b].to_vec(),
        })
    }

    fn hotspot_table(&self, check: &Checker, placement_seed: u64) -> Result<HotspotTable, TrafficError> {
        let hosts = check.hosts();
        let lifetime = self.hotspot_lifetime.value();
        if lifetime.is_some_and(|lifetime| lifetime.is_zero()) {
            return check.fail("hotspot-lifetime", Reason::ZeroSpan);
        }
        match &self.hotspots {
            &Hotspots::Random(count) => {
                let (wanted, available) = (count as usize, hosts);
                if wanted > available {
                    return check.fail("hotspots", Reason::TooFewHosts { wanted, available });
                }
                Ok(HotspotTable::random(
                    wanted,
                    lifetime,
                    hosts,
                    placement_seed,
                ))
            }
            Hotspots::Given(list) => {
                let list = check.distinct_hosts("hotspots", list, &mut vec![false; hosts])?;
                let first = list.iter().map(|host| host.index() as u32).collect();
                Ok(HotspotTable::given(first, lifetime, hosts, placement_seed))
            }
        }
    }

    fn only_target_is_itself(
        &self,
        hotspots: &HotspotTable,
        list: &[HostId],
    ) -> Option<HostId> {
        if hotspots.count() != 1 || self.hotspot_lifetime.value().is_some() {
            return None;
        }
        let at_start = Time::ZERO;
        list.iter()
            .copied()
            .find(|host| hotspots.at(at_start)[0] as usize == host.index())
            .filter(|_| matches!(self.hotspots, Hotspots::Given(_)))
    }

}

struct NodeAdder<'b, 'a> {
    builder: &'b mut Builder<'a>,
    nodes: &'b Nodes,
    common: u32,
    message: u32,
    subsets: usize,
}

impl NodeAdder<'_, '_> {
    fn subset(&self, place: usize) -> u32 {
        (place % self.subsets) as u32
    }

    /// Supply of a B node; at the ends of p, that of a V or C node, capped by the injection rate alone.
    fn b_supply(&self, host: HostId, subset: u32, share: u64) -> Supply {
        if share == 0 {
            return Supply::Uniform;
        }
        if share == WHOLE {
            return Supply::Hot { subset };
        }
        let rate = self.builder.environment.injection[host.index()];
        let time = message_time(self.message, self.builder.mtu, rate);
        let limits = CapLimits {
            run_ahead: self
                .nodes
                .run_ahead
                .unwrap_or(time * DEFAULT_RUN_AHEAD_MESSAGES),
            catch_up: self.nodes.catch_up.value(),
        };
        Supply::Mixed(Box::new(Mixed::new(subset, share, time, limits)))
    }

    /// `uniform_share` is the part of traffic to all other hosts.
    fn add(&mut self, host: HostId, classes: Classes, supply: Supply, uniform_share: f64) {
        let environment = self.builder.environment;
        let rate = environment.injection[host.index()].bits_per_sec() as f64;
        let contribution = Contribution {
            rate,
            uniform: rate * uniform_share,
            window: Window::default(),
        };
        let stream = stream(environment.seed, Purpose::Nodes, host.index() as u64);
        let spread = Spread::new(host, stream);
        let start = self.builder.start(host, self.message, Time::ZERO);
        let scatter = Scatter::new(self.common, classes, start, spread, supply);
        self.builder
            .add(host, Source::Scatter(scatter), contribution);
    }
}

fn role_classes(
    builder: &mut Builder,
    check: &Checker,
    members: &Members,
    share: u64,
) -> Result<RoleClasses, TrafficError> {
    let mut classes = RoleClasses::default();
    let has_b = !members.b.is_empty();
    let wanted = [
        ("v", !members.v.is_empty(), &mut classes.v),
        ("c-hot", !members.c.is_empty(), &mut classes.c_hot),
        ("b-hot", has_b && share > 0, &mut classes.b_hot),
        ("b-uniform", has_b && share < WHOLE, &mut classes.b_uniform),
    ];
    for (name, present, class) in wanted {
        if present {
            *class = builder.class_named(check, name.to_owned())?;
        }
    }
    Ok(classes)
}
