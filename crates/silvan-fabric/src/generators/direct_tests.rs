//! Topologies whose closed forms are in papers: counts, degrees and diameters.
#![allow(
    clippy::unwrap_used,
    reason = "a fabric that cannot be built is a failed test"
)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::tests::{LINK, assert_invariants, peers};
use super::{Generator, Kind, Topology};
use crate::testing::all_distances;
use crate::{Fabric, Speed};

fn topology(name: &str, keys: &Value) -> Topology {
    let kind = Kind::ALL.iter().find(|kind| kind.name() == name).unwrap();
    kind.read(keys).unwrap()
}

fn build(name: &str, keys: &Value) -> Fabric {
    let fabric = topology(name, keys).build(LINK).unwrap();
    assert_invariants(&fabric);
    fabric
}

/// Cables between the switches of two hosts, at most.
fn diameter(fabric: &Fabric) -> usize {
    let distances = all_distances(fabric);
    let hosts = || fabric.host_ids().map(|host| fabric.node_of_host(host));
    let pairs = hosts().flat_map(|a| hosts().map(move |b| (a, b)));
    let most = pairs.map(|(a, b)| distances[a][b]).max();
    most.unwrap() - 2
}

fn counts(fabric: &Fabric) -> (usize, usize, usize) {
    (
        fabric.switch_count(),
        fabric.host_count(),
        fabric.links.len(),
    )
}

/// Cables between each two groups of switches, of which each has `size`; `None` if they differ.
fn cables_per_pair(fabric: &Fabric, groups: usize, size: usize) -> Option<usize> {
    let mut counts = vec![vec![0; groups]; groups];
    for link in &fabric.links {
        let group = |port| {
            let switch = fabric.nodes[fabric.ports[port].node].as_switch()?;
            Some(switch.index() / size)
        };
        if let (Some(a), Some(b)) = (group(link.a), group(link.b)) {
            counts[a][b] += 1;
            counts[b][a] += usize::from(a != b);
        }
    }
    let pairs = (0..groups).flat_map(|a| (0..a).map(move |b| (a, b)));
    let mut pairs = pairs.map(|(a, b)| counts[a][b]);
    let first = pairs.next()?;
    pairs.all(|count| count == first).then_some(first)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Kim et al. 2008, section 3.1: N = a p g hosts, and with g = a h + 1 one cable for each pair of groups.
    #[test]
    fn dragonflies_have_their_counts(
        a in 1_usize..5, p in 1_usize..3, h in 1_usize..4, part in 0_usize..100, palm in any::<bool>(),
    ) {
        let groups = 2 + part * (a * h) / 100;
        let keys = json!({
            "switches-per-group": a, "hosts-per-switch": p, "global-per-switch": h, "groups": groups,
            "wiring": if palm { "palm-tree" } else { "consecutive" },
        });
        let fabric = build("dragonfly", &keys);
        let between = a * h / (groups - 1);
        let cables = groups * a * p + groups * a * (a - 1) / 2 + groups * (groups - 1) / 2 * between;
        prop_assert_eq!(counts(&fabric), (groups * a, groups * a * p, cables));
        prop_assert_eq!(cables_per_pair(&fabric, groups, a), Some(between));
        prop_assert!(diameter(&fabric) <= 3);
    }

    /// Shpiner et al. 2017: leaves at most leaf - spine - spine - leaf apart.
    #[test]
    fn dragonflies_plus_have_their_counts(
        leaves in 1_usize..4, spines in 1_usize..4, p in 1_usize..3, h in 1_usize..4, part in 0_usize..100,
    ) {
        let groups = 2 + part * (spines * h) / 100;
        let keys = json!({
            "leaves-per-group": leaves, "spines-per-group": spines, "hosts-per-leaf": p,
            "global-per-spine": h, "groups": groups,
        });
        let fabric = build("dragonfly-plus", &keys);
        let between = spines * h / (groups - 1);
        let cables =
            groups * leaves * (p + spines) + groups * (groups - 1) / 2 * between;
        let switches = groups * (leaves + spines);
        prop_assert_eq!(counts(&fabric), (switches, groups * leaves * p, cables));
        prop_assert_eq!(diameter(&fabric), 3);
    }

    /// Ahn et al. 2009, section 3: a switch has the sum of K (S - 1) cables to others, and the diameter is the number of
    /// dimensions.
    #[test]
    fn hyper_x_have_their_counts(
        shape in prop::collection::vec((2_usize..5, 1_usize..3), 1..4), p in 1_usize..3,
    ) {
        let (sizes, cables): (Vec<usize>, Vec<usize>) = shape.iter().copied().unzip();
        let keys = json!({ "sizes": sizes, "cables": cables, "hosts-per-switch": p });
        let fabric = build("hyper-x", &keys);
        let switches: usize = sizes.iter().product();
        let degree: usize = shape.iter().map(|(size, cables)| (size - 1) * cables).sum();
        let expected = (switches, switches * p, switches * p + switches * degree / 2);
        prop_assert_eq!(counts(&fabric), expected);
        prop_assert!(fabric.ports.iter().all(|port| port.peer.is_some()));
        prop_assert_eq!(diameter(&fabric), sizes.len());
    }

    /// Singla et al. 2012, section 3: every switch has the same number of different neighbours; one port is left if there is an odd
    /// number of them.
    #[test]
    fn jellyfishes_are_regular(switches in 4_usize..40, degree in 3_usize..8, seed in any::<u64>()) {
        let degree = degree.min(switches - 1);
        let keys = json!({
            "switches": switches, "hosts-per-switch": 1, "cables-per-switch": degree, "seed": seed,
        });
        let fabric = build("jellyfish", &keys);
        let cables = switches + switches * degree / 2;
        prop_assert_eq!(counts(&fabric), (switches, switches, cables));
        let mut pairs: Vec<_> = fabric
            .links
            .iter()
            .map(|link| (fabric.ports[link.a].node, fabric.ports[link.b].node))
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        prop_assert_eq!(pairs.len(), cables);
        // Connected.
        prop_assert!(diameter(&fabric) < switches);
    }
}

/// Besta and Hoefler 2014, section II.B: 2 q^2 switches of (3 q - d) / 2 cables, and diameter 2. One prime power of
/// each kind; 9 and 8 have fields of polynomials.
#[test]
fn slim_flies_have_diameter_two() {
    for (q, d) in [(3, -1), (4, 0), (5, 1), (7, -1), (8, 0), (9, 1)] {
        let fabric = build("slim-fly", &json!({ "q": q, "hosts-per-switch": 1 }));
        let switches = 2 * q * q;
        let degree = (3 * q as i64 - d) as usize / 2;
        let cables = switches + switches * degree / 2;
        assert_eq!(counts(&fabric), (switches, switches, cables), "{q}");
        assert!(fabric.ports.iter().all(|port| port.peer.is_some()));
        assert_eq!(diameter(&fabric), 2, "{q}");
    }
    // Table II of the paper: q = 19 has 722 routers of 29 cables, with 15 hosts each.
    let fabric = build("slim-fly", &json!({ "q": 19 }));
    assert_eq!(counts(&fabric).0, 722);
    assert_eq!(counts(&fabric).1, 722 * 15);
    assert!(
        fabric
            .switch_ids()
            .all(|switch| fabric.switch(switch).port_count == 29 + 15)
    );
}

/// Ports and wiring by hand. Port j of switch r in group i leads to group i - (2 r + j + 1), or to the (2 r + j)-th
/// other group.
#[test]
fn dragonfly_wirings_are_the_published_ones() {
    let mut keys = json!({
        "switches-per-group": 2, "hosts-per-switch": 1, "global-per-switch": 2, "groups": 5,
    });
    let palm = build("dragonfly", &keys);
    assert_eq!(
        peers(&palm, "group-01-switch-00"),
        [
            "host-0002:1",
            "group-01-switch-01:2",
            "group-00-switch-01:4",
            "group-04-switch-01:3"
        ]
    );
    keys["wiring"] = json!("consecutive");
    let consecutive = build("dragonfly", &keys);
    assert_eq!(
        peers(&consecutive, "group-01-switch-00"),
        [
            "host-0002:1",
            "group-01-switch-01:2",
            "group-00-switch-00:3",
            "group-02-switch-00:4"
        ]
    );
}

/// Leaves of different sizes, spines with different cables.
#[test]
fn asymmetric_trees_have_the_cables_of_their_lists() {
    let keys = json!({
        "leaf-hosts": [3, 1, 2], "spine-cables": [2, 1],
        "host-link": { "speed": "HDR" }, "spine-links": [{ "speed": "NDR" }],
    });
    let fabric = build("leaf-spine", &keys);
    assert_eq!(counts(&fabric), (5, 6, 6 + 3 * 3));
    assert_eq!(
        peers(&fabric, "leaf-01"),
        ["host-0003:1", "spine-00:3", "spine-00:4", "spine-01:2"]
    );
    let speeds = fabric.links.iter().map(|link| link.kind.speed);
    let of = |speed| speeds.clone().filter(|other| *other == speed).count();
    assert_eq!((of(Speed::Hdr), of(Speed::Ndr), of(LINK.speed)), (6, 6, 3));
}

/// A leaf for each rail of each pod; GPUs of one server are one switch apart, others three or five.
#[test]
fn rails_have_their_leaves() {
    let keys = json!({
        "servers": 6, "gpus-per-server": 2, "servers-per-pod": 3, "spines": 2, "cables-per-spine": 2,
    });
    let fabric = build("rail-optimised", &keys);
    let (servers, leaves, spines) = (6, 2 * 2, 2);
    let cables = 2 * servers * 2 + leaves * spines * 2;
    assert_eq!(counts(&fabric), (servers + leaves + spines, 12, cables));
    assert_eq!(
        peers(&fabric, "server-04"),
        [
            "server-04-gpu-00:1",
            "server-04-gpu-01:1",
            "pod-01-rail-00:2",
            "pod-01-rail-01:2"
        ]
    );
    assert_eq!(
        peers(&fabric, "spine-01")[..3],
        ["pod-00-rail-00:6", "pod-00-rail-00:7", "pod-00-rail-01:6"]
    );
    assert_eq!(diameter(&fabric), 4);
    let rates = fabric
        .links
        .iter()
        .map(|link| link.data_rate().bits_per_sec());
    assert_eq!(rates.max(), Some(3_600_000_000_000));
}

#[test]
fn what_does_not_fit_is_refused_with_key_and_remedy() {
    let dragonfly = json!({
        "switches-per-group": 4, "hosts-per-switch": 2, "global-per-switch": 2,
    });
    let with = |base: &Value, key: &str, value: Value| {
        let mut keys = base.clone();
        keys[key] = value;
        keys
    };
    let jellyfish = json!({ "switches": 10, "hosts-per-switch": 1, "cables-per-switch": 3 });
    let rails = json!({ "servers": 8, "servers-per-pod": 4, "spines": 1 });
    let tree = json!({ "leaf-hosts": [2, 2], "spine-cables": [1] });
    for (name, keys, key, problem, hint) in [
        (
            "dragonfly",
            with(&dragonfly, "groups", json!(10)),
            "groups",
            "10 groups, but 4 switches with 2 global ports each allow 2 to 9",
            "write 2 to 9",
        ),
        (
            "dragonfly",
            with(&dragonfly, "global-per-switch", json!(0)),
            "global-per-switch",
            "global-per-switch is 0",
            "write 1 or more",
        ),
        (
            "dragonfly",
            with(&dragonfly, "hosts-per-switch", json!(250)),
            "hosts-per-switch",
            "a switch would need 255 ports, it has at most 254",
            "the other parameters leave 249 ports for it",
        ),
        (
            "slim-fly",
            json!({ "q": 6 }),
            "q",
            "q is 6, it must be a prime power of 3 to 169",
            "write 5 or 7",
        ),
        (
            "slim-fly",
            json!({ "q": 2 }),
            "q",
            "q is 2, it must be a prime power of 3 to 169",
            "write 3",
        ),
        (
            "hyper-x",
            json!({ "sizes": [4, 1], "hosts-per-switch": 1 }),
            "sizes",
            "a dimension of 1 switches, it must have 2 or more",
            "write 2 or more for each dimension",
        ),
        (
            "hyper-x",
            json!({ "sizes": [4, 4], "hosts-per-switch": 1, "cables": [1, 0] }),
            "cables",
            "a dimension with 0 cables between its switches",
            "write 1 or more for each dimension",
        ),
        (
            "jellyfish",
            with(&jellyfish, "cables-per-switch", json!(10)),
            "cables-per-switch",
            "10 cables from each of 10 switches to others",
            "write 3 to 9",
        ),
        (
            "rail-optimised",
            with(&rails, "servers-per-pod", json!(3)),
            "servers-per-pod",
            "8 servers are no whole number of pods of 3",
            "e.g. set servers to 9",
        ),
        (
            "rail-optimised",
            with(&rails, "spines", json!(0)),
            "spines",
            "no spine joins the 2 pods",
            "write 1 or more",
        ),
        (
            "leaf-spine",
            with(&tree, "spine-cables", json!([1, 0])),
            "spine-cables",
            "a spine with the number 0",
            "write 1 or more for each spine",
        ),
    ] {
        let error = topology(name, &keys).build(LINK).unwrap_err();
        let crate::FabricError::BadParameter {
            generator,
            key: at,
            problem: found,
            hint: remedy,
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!(
            (generator, at, found.as_str(), remedy.as_str()),
            (name, key, problem, hint)
        );
    }
}

/// No numbers make a generator overflow or take all memory.
#[test]
fn astronomical_numbers_are_refused() {
    let most = usize::MAX;
    for (name, keys) in [
        (
            "dragonfly",
            json!({ "switches-per-group": most, "hosts-per-switch": most, "global-per-switch": most }),
        ),
        (
            "dragonfly",
            json!({ "switches-per-group": 100, "hosts-per-switch": 50, "global-per-switch": 50 }),
        ),
        (
            "dragonfly-plus",
            json!({
                "leaves-per-group": most, "spines-per-group": most, "hosts-per-leaf": most, "global-per-spine": most,
            }),
        ),
        (
            "hyper-x",
            json!({ "sizes": [most, most], "hosts-per-switch": most, "cables": [most, most] }),
        ),
        (
            "hyper-x",
            json!({ "sizes": vec![2; 64], "hosts-per-switch": 1 }),
        ),
        ("slim-fly", json!({ "q": most })),
        ("slim-fly", json!({ "q": 5, "hosts-per-switch": most })),
        (
            "jellyfish",
            json!({ "switches": most, "hosts-per-switch": 1, "cables-per-switch": 3 }),
        ),
        (
            "jellyfish",
            json!({ "switches": most, "hosts-per-switch": most, "cables-per-switch": most - 1 }),
        ),
        (
            "leaf-spine",
            json!({ "leaf-hosts": [most, most], "spine-cables": [most, most] }),
        ),
        (
            "rail-optimised",
            json!({ "servers": most, "gpus-per-server": most, "spines": most }),
        ),
    ] {
        assert!(topology(name, &keys).build(LINK).is_err(), "{name} {keys}");
    }
}
