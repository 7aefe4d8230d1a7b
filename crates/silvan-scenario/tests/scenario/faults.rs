//! Faults of cables, hosts and switches: routes around them, and faults that cannot be.

use silvan_fabric::routing::RoutingName;
use silvan_fabric::{NodeKind, Speed, Width};
use silvan_scenario::Scenario;

use crate::{message, read};

const TREE: &str = "[fabric]\ngenerator = \"k-ary-n-tree\"\nk = 4\nn = 3\n";

fn cut(fabric: &str, port: &str) -> Result<Scenario, String> {
    let text = format!("{fabric}[[fault]]\ndo = \"cut\"\nport = \"{port}\"\n");
    read(&text).map_err(|error| error.to_string())
}

/// Every routing of a generator stays what it is without one of the cables between switches, and connects all hosts. Loops and
/// credit loops would be refused.
#[test]
fn routing_keeps_its_kind_around_a_cut_cable() {
    for (fabric, kind) in [
        (TREE, RoutingName::DModK),
        (
            "[fabric]\ngenerator = \"rail-optimised\"\nservers = 4\ngpus-per-server = 4\nservers-per-pod = 2\nspines = 2\n",
            RoutingName::DModK,
        ),
        (
            "[fabric]\ngenerator = \"mesh\"\nsizes = [3, 3]\nhosts-per-switch = 1\nrouting = \"layered-min-hop\"\n[vl]\ndata-vls = 4\n",
            RoutingName::LayeredMinHop,
        ),
        (
            "[fabric]\ngenerator = \"leaf-spine\"\nleaf-hosts = [4, 4, 4]\nspine-cables = [2, 2]\nrouting = \"min-hop\"\n",
            RoutingName::MinHop,
        ),
    ] {
        let whole = read(fabric).unwrap();
        assert_eq!(whole.file().fabric.routing().name(), kind);
        let is_switch = |port| {
            let node = whole.fabric().ports[port].node;
            matches!(whole.fabric().nodes[node].kind, NodeKind::Switch(_))
        };
        let links = whole.fabric().links.iter();
        let mut tried = 0;
        for link in links.filter(|link| is_switch(link.a) && is_switch(link.b)) {
            let port = whole.fabric().port_name(link.a).to_string();
            let rest = cut(fabric, &port).unwrap();
            assert_eq!(rest.file().fabric.routing().name(), kind);
            assert_eq!(rest.routes().unreachable, 0);
            assert_eq!(rest.fabric().links.len(), whole.fabric().links.len() - 1);
            tried += 1;
        }
        assert!(tried >= 6, "{fabric}: {tried}");
    }
}

#[test]
fn degraded_cable_is_part_of_the_fabric() {
    let text = format!(
        "{TREE}[link]\nwidth = \"4x\"\nspeed = \"NDR\"\n[[fault]]\ndo = \"degrade\"\nport = \"host-0003\"\nwidth = \"1x\"\n\
         [[fault]]\ndo = \"cut\"\nport = \"leaf-00:5\"\n"
    );
    let scenario = read(&text).unwrap();
    let fabric = scenario.fabric();
    let slow = fabric
        .links
        .iter_enumerated()
        .filter(|(_, link)| link.kind.width == Width::X1);
    let slow: Vec<_> = slow.collect();
    let [(id, link)] = slow.as_slice() else {
        panic!("{slow:?}");
    };
    assert_eq!(fabric.port_name(link.a).to_string(), "host-0003:1");
    let intact = scenario.intact_cable(*id);
    assert_eq!((intact.width, intact.speed), (Width::X4, Speed::Ndr));
    // The text of the scenario has the faults, and not what they lead to.
    let again = read(scenario.effective_toml()).unwrap();
    assert_eq!(again.hash(), scenario.hash());
    assert_ne!(scenario.hash(), read(TREE).unwrap().hash());
}

#[test]
fn faults_that_cannot_be_are_refused() {
    let fault = |keys: &str| message(&format!("{TREE}[[fault]]\n{keys}\n"));
    for (keys, expected) in [
        (
            "do = \"cut\"\nport = \"host-0000\"",
            "file.toml:7: fault.0.port: host-0000 would have no cable for the whole run (hint: cut it later, such as at = \
             \"1 us\"; or cut a cable between switches)",
        ),
        (
            "do = \"cut\"\nport = \"leaf-99:5\"",
            "file.toml:7: fault.0.port: there is no port \"leaf-99:5\"; write NODE:NUMBER, or the name of a host (hint: name \
             a port with a cable, NODE:NUMBER, or a host)",
        ),
        (
            "do = \"cut\"\nhost = \"host-0000\"",
            "file.toml:7: fault.0.host: \"cut\" has no such key; it has port, retraining (hint: silvan show prints the \
             names of the scenario)",
        ),
        (
            "do = \"cat\"",
            "file.toml:6: fault.0.do: unknown value \"cat\" (hint: known here: cut, degrade, symbol-errors, bit-errors, \
             slow, reboot, lose)",
        ),
        (
            "do = \"bit-errors\"\nport = \"leaf-00:5\"",
            "file.toml:6: fault.0.do: \"bit-errors\" needs bit-error-rate, burst-bit-error-rate, or both (hint: the guide \
             page \"The live fabric\" lists all faults with their keys)",
        ),
        (
            "do = \"bit-errors\"\nport = \"leaf-00:5\"\nbit-error-rate = 0.01",
            "file.toml:8: fault.0.bit-error-rate: 0.01 wrong bits of all: 0 to 0.001 are possible (hint: give a \
             probability, such as 1e-8)",
        ),
        (
            "do = \"bit-errors\"\nport = \"leaf-00:5\"\nburst-bit-error-rate = 1e-4\nburst-length = \"0 s\"\n\
             burst-spacing = \"1 ms\"",
            "file.toml:9: fault.0.burst-length: it is zero (hint: bursts have a burst-bit-error-rate, a burst-length such \
             as \"1 us\", and a burst-spacing such as \"1 ms\")",
        ),
        (
            "do = \"bit-errors\"\nport = \"leaf-00:5\"\nbit-error-rate = 1e-8\nburst-length = \"1 us\"",
            "file.toml:9: fault.0.burst-length: there are no bursts without burst-bit-error-rate (hint: bursts have a \
             burst-bit-error-rate, a burst-length such as \"1 us\", and a burst-spacing such as \"1 ms\")",
        ),
        (
            "do = \"bit-errors\"\nport = \"leaf-00:5\"\nbit-error-rate = 1e-8\nretransmission = false\n\
             replay-latency = \"1 us\"",
            "file.toml:10: fault.0.replay-latency: the link discards bad packets, and replays none (hint: give a time such \
             as \"200 ns\", and retransmission = true)",
        ),
    ] {
        assert_eq!(fault(keys), expected);
    }
    let errors = "[[fault]]\ndo = \"bit-errors\"\nport = \"leaf-00:5\"\nbit-error-rate = 1e-8\n";
    let ordered = format!("{TREE}[host]\nin-order = true\n{errors}");
    assert!(message(&ordered).contains("hosts that restore order wait for packets"));
    // A fabric that is kept from a scenario before is not built again.
    assert!(read(&format!("{TREE}{errors}")).is_ok());
    let recorded = format!("{TREE}[probe.packets]\n{errors}");
    assert!(message(&recorded).contains("packets are recorded hop by hop"));
    let pfc = format!("{TREE}[link]\nflow-control = \"pfc\"\nspeed = \"EDR\"\n{errors}");
    assert!(message(&pfc).contains("a link with PFC has no bit errors"));
    let pfc = "[link]\nflow-control = \"pfc\"\nspeed = \"EDR\"\n[[fault]]\ndo = \"cut\"\nport = \"leaf-00:5\"\nat = \"1 us\"\n";
    assert!(
        message(&format!("{TREE}{pfc}"))
            .contains("a link with PFC cannot change while packets move")
    );
    assert!(read(&format!("{TREE}{}", pfc.replace("at = \"1 us\"\n", ""))).is_ok());
    // The other way round the ring has no datelines of a torus.
    let torus = "[fabric]\ngenerator = \"torus\"\nsizes = [4, 4]\nhosts-per-switch = 1\n[vl]\ndata-vls = 2\n";
    let error = cut(torus, "switch-0-0:2").unwrap_err();
    assert!(error.contains("layered-min-hop"), "{error}");
    // Hosts behind the only cable.
    let chain = "[fabric]\ngenerator = \"chain\"\nswitches = 2\nhosts-per-switch = 1\n";
    let whole = read(chain).unwrap();
    let mut links = whole.fabric().links.iter();
    let trunk = links.find(|link| {
        let ends = [link.a, link.b].map(|end| whole.fabric().ports[end].node);
        ends.iter()
            .all(|node| whole.fabric().nodes[*node].as_switch().is_some())
    });
    let trunk = whole.fabric().port_name(trunk.unwrap().a).to_string();
    for routing in ["min-hop", "layered-min-hop"] {
        let routed = format!("{chain}routing = \"{routing}\"\n");
        let error = cut(&routed, &trunk).unwrap_err();
        let hint = "(hint: cut another cable, or cut it for a time, with at and for)";
        assert!(error.contains("no path of cables leads from"), "{error}");
        assert!(error.ends_with(hint), "{error}");
    }
}
