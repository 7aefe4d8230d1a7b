//! Builds the V, C and B nodes.

use silvan_core::{HostId, Time};

use crate::traffic::build::Builder;
use crate::traffic::check::{Checker, message_time};
use crate::traffic::error::{Entry, Reason, TrafficError};
use crate::traffic::hosts::Source;
use crate::traffic::hotspots::HotspotTable;
use crate::traffic::offered::Contribution;
use crate::traffic::rng::{Purpose, stream};
use crate::traffic::roles::{Role, deal, largest_remainder, placement_order};
use crate::traffic::scatter::{Classes, Common, Scatter};
use crate::traffic::share::{CapLimits, WHOLE, share_of};
use crate::traffic::spec::{CatchUp, Hotspots, NodesSpec, Roles, Window};
use crate::traffic::supply::{Mixed, Spread, Supply};

/// Messages that a class of a B node may run ahead of its share by default: enough for chance to
/// order the messages, a 50th of a percent of the shortest averaging window of gran2012 (0.1 s).
const DEFAULT_RUN_AHEAD_MESSAGES: u64 = 8;

/// Members of each role, in the order in which they are dealt out to the hotspots.
struct Members {
    v: Vec<HostId>,
    c: Vec<HostId>,
    b: Vec<HostId>,
}

/// Statistics classes of the roles; those of roles that nobody has stay 0 and unused.
#[derive(Default)]
struct RoleClasses {
    v: u16,
    c_hot: u16,
    b_hot: u16,
    b_uniform: u16,
}

/// Adds the nodes to the builder, their roles to `roles` and those who send to hotspots to
/// `followers`; gives the hotspots.
pub(crate) fn build_nodes(
    builder: &mut Builder,
    nodes: &NodesSpec,
    roles: &mut [Role],
    followers: &mut Vec<HostId>,
) -> Result<HotspotTable, TrafficError> {
    let check = builder.checker(Entry::Nodes);
    let hosts = check.hosts();
    if hosts < 2 {
        let (wanted, available) = (2, hosts);
        return check.fail("v", Reason::TooFewHosts { wanted, available });
    }
    let share = share_of(check.fraction("p", nodes.p)?);
    let placement_seed = nodes.placement_seed.unwrap_or(check.environment.seed);
    let hotspots = hotspot_table(&check, nodes, placement_seed)?;
    let mut members = members(&check, &nodes.roles, placement_seed)?;
    let b_follows = share > 0 && !members.b.is_empty();
    if hotspots.count() == 0 && (b_follows || !members.c.is_empty()) {
        return check.fail("hotspots", Reason::NoHotspots);
    }
    if let Roles::Lists { .. } = nodes.roles {
        let contributors = [("c", &members.c, true), ("b", &members.b, b_follows)];
        for (key, list, follows) in contributors {
            if let Some(host) = only_target_is_itself(&hotspots, nodes, list).filter(|_| follows) {
                return check.fail(key, Reason::ToItself(host));
            }
        }
    }
    let first = hotspots.at(Time::ZERO);
    deal(&mut members.c, &first);
    deal(&mut members.b, &first);

    let message = check.message(nodes.message, builder.spec.message)?;
    let common = Common {
        hosts: hosts as u32,
        loopback: builder.spec.loopback,
        message,
        mtu: builder.mtu,
        sl: nodes.sl,
        backlog: builder.spec.backlog,
        window: Window::default(),
    };
    let common = builder.common(common);
    let classes = role_classes(builder, &check, &members, share)?;
    let mut adder = NodeAdder {
        builder,
        nodes,
        common,
        message,
        subsets: hotspots.count().max(1),
    };
    for &host in &members.v {
        roles[host.index()] = Role::V;
        let classes = Classes {
            uniform: classes.v,
            hot: classes.v,
        };
        adder.add(host, classes, Supply::Uniform, 1.0);
    }
    for (place, &host) in members.c.iter().enumerate() {
        roles[host.index()] = Role::C;
        let classes = Classes {
            uniform: classes.c_hot,
            hot: classes.c_hot,
        };
        let subset = adder.subset(place);
        adder.add(host, classes, Supply::Hot { subset }, 0.0);
    }
    for (place, &host) in members.b.iter().enumerate() {
        roles[host.index()] = Role::B;
        let classes = Classes {
            uniform: classes.b_uniform,
            hot: classes.b_hot,
        };
        let supply = adder.b_supply(host, adder.subset(place), share);
        adder.add(host, classes, supply, 1.0 - nodes.p);
    }
    adder.builder.reach_all_from(&members.v);
    if share < WHOLE {
        adder.builder.reach_all_from(&members.b);
    }
    if b_follows || !members.c.is_empty() {
        if nodes.hotspot_lifetime.is_some() {
            // Any host becomes a hotspot sooner or later.
            adder.builder.receives.fill(true);
        }
        for &hotspot in &first {
            adder.builder.receives[hotspot as usize] = true;
        }
    }
    followers.extend(&members.c);
    if b_follows {
        followers.extend(&members.b);
    }
    followers.sort_unstable();
    Ok(hotspots)
}

/// Adds one node after the other.
struct NodeAdder<'b, 'a> {
    builder: &'b mut Builder<'a>,
    nodes: &'b NodesSpec,
    common: u32,
    message: u32,
    subsets: usize,
}

impl NodeAdder<'_, '_> {
    fn subset(&self, place: usize) -> u32 {
        (place % self.subsets) as u32
    }

    /// A B node at the ends of the range of p is a V or a C node by another name: the injection rate
    /// alone caps its one class.
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
            catch_up: match self.nodes.catch_up {
                CatchUp::Unlimited => None,
                CatchUp::Within(span) => Some(span),
            },
        };
        Supply::Mixed(Box::new(Mixed::new(subset, share, time, limits)))
    }

    /// `uniform_share` is the part of the node's traffic that goes to all other hosts.
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

fn hotspot_table(
    check: &Checker,
    nodes: &NodesSpec,
    placement_seed: u64,
) -> Result<HotspotTable, TrafficError> {
    let hosts = check.hosts();
    let lifetime = nodes.hotspot_lifetime;
    if lifetime.is_some_and(|lifetime| lifetime.is_zero()) {
        return check.fail("hotspot-lifetime", Reason::ZeroSpan);
    }
    match &nodes.hotspots {
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
            check.distinct_hosts("hotspots", list, &mut vec![false; hosts])?;
            let first = list.iter().map(|host| host.index() as u32).collect();
            Ok(HotspotTable::given(first, lifetime, hosts, placement_seed))
        }
    }
}

fn members(check: &Checker, roles: &Roles, placement_seed: u64) -> Result<Members, TrafficError> {
    match *roles {
        Roles::Fractions { v, c, b, idle } => {
            let fractions = [("v", v), ("c", c), ("b", b), ("idle", idle)];
            for (key, fraction) in fractions {
                check.fraction(key, fraction)?;
            }
            let sum: f64 = fractions.iter().map(|(_, fraction)| fraction).sum();
            // Far below one host, far above the rounding of decimal fractions.
            if (sum - 1.0).abs() > 1e-9 {
                return check.fail("v", Reason::FractionSum(sum));
            }
            let [v, c, b, _] = largest_remainder([v, c, b, idle], check.hosts());
            let order = placement_order(check.hosts(), placement_seed);
            Ok(Members {
                v: order[..v].to_vec(),
                c: order[v..v + c].to_vec(),
                b: order[v + c..v + c + b].to_vec(),
            })
        }
        Roles::Lists {
            ref v,
            ref c,
            ref b,
        } => {
            let mut taken = vec![false; check.hosts()];
            for (key, list) in [("v", v), ("c", c), ("b", b)] {
                check.distinct_hosts(key, list, &mut taken)?;
            }
            Ok(Members {
                v: v.clone(),
                c: c.clone(),
                b: b.clone(),
            })
        }
    }
}

/// The listed contributor that is the one hotspot there ever is, if there is such a host.
fn only_target_is_itself(
    hotspots: &HotspotTable,
    nodes: &NodesSpec,
    list: &[HostId],
) -> Option<HostId> {
    if hotspots.count() != 1 || nodes.hotspot_lifetime.is_some() {
        return None;
    }
    let at_start = Time::ZERO;
    list.iter()
        .copied()
        .find(|host| hotspots.at(at_start)[0] as usize == host.index())
        .filter(|_| matches!(nodes.hotspots, Hotspots::Given(_)))
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
            *class = builder.class(check, name.to_owned())?;
        }
    }
    Ok(classes)
}
