//! Fabrics and files drawn at random.

use proptest::prelude::*;
use silvan_core::{HostId, Length, Lid, PortNumber, SwitchId};
use silvan_fabric::routing::SlToVlTables;
use silvan_fabric::{Fabric, FabricBuilder, LinkKind, Speed, Width};

use crate::law::{check_guids, check_routes, check_topology, sample};
use crate::{NETWORK, build, view};

/// A fabric of switches in a row, hosts here and there, links of several kinds.
fn drawn_fabric() -> impl Strategy<Value = Fabric> {
    let kinds = prop::sample::select(vec![
        (Width::X1, Speed::Sdr),
        (Width::X4, Speed::Ddr),
        (Width::X4, Speed::Qdr),
        (Width::X8, Speed::Qdr),
        (Width::X12, Speed::Ddr),
        (Width::X2, Speed::Sdr),
    ]);
    let hosts = prop::collection::vec((0usize..4, kinds), 1..20);
    (1usize..5, hosts).prop_map(|(switches, hosts)| {
        let mut builder = FabricBuilder::new();
        let kind = |width, speed| LinkKind::new(width, speed, Length::ZERO);
        let row: Vec<_> = (0..switches)
            .map(|index| builder.add_switch(format!("sw {index}: a"), 40).unwrap())
            .collect();
        for (port, pair) in row.windows(2).enumerate() {
            let port = 30 + port as u8;
            let link = kind(Width::X4, Speed::Qdr);
            builder
                .connect(pair[0].port(port), pair[1].port(port), link)
                .unwrap();
        }
        for (index, (switch, (width, speed))) in hosts.into_iter().enumerate() {
            let host = builder.add_host(format!("node-{index} HCA-1")).unwrap();
            let port = row[switch % switches].port(1 + index as u8);
            builder
                .connect(host.port(1), port, kind(width, speed))
                .unwrap();
        }
        builder.build().unwrap()
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(fabric in drawn_fabric()) {
        let net = silvan_fabric::import::ibsim_net(&fabric);
        let again = build(&silvan_fabric::import::topology(&net).unwrap());
        // Hosts' port GUIDs are ibsim's to give.
        let strip = |fabric: &Fabric| {
            let (nodes, cables) = view(fabric, false);
            let names: Vec<String> = nodes
                .iter()
                .map(|node| node.replace(|c: char| c.is_ascii_hexdigit(), ""))
                .collect();
            (names, cables)
        };
        prop_assert_eq!(strip(&again), strip(&fabric));
        prop_assert_eq!(silvan_fabric::import::ibsim_net(&again), net);
    }

    /// Real files with bytes changed, lines dropped and moved.
    #[test]
    fn mutated_files_do_no_harm(
        edits in prop::collection::vec((any::<prop::sample::Index>(), "\\PC{0,3}|[\\[\\]\"#0-9x=\n]"), 1..8),
        dropped in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        for sample in [NETWORK, include_str!("../samples/ibnetdiscover-p.txt")] {
            let mut lines: Vec<&str> = sample.lines().collect();
            for index in &dropped {
                lines.remove(index.index(lines.len()));
            }
            let mut text: Vec<char> = lines.join("\n").chars().collect();
            for (index, edit) in &edits {
                let at = index.index(text.len());
                text.splice(at..(at + 1).min(text.len()), edit.chars());
            }
            let text: String = text.into_iter().collect();
            check_topology(&text);
        }
    }

    #[test]
    fn mutated_tables_do_no_harm(
        edits in prop::collection::vec((any::<prop::sample::Index>(), "[0-9x: ()a-fls,\\-\n]{0,4}"), 1..8),
    ) {
        let fabric = build(&silvan_fabric::import::topology(NETWORK).unwrap());
        let dumped = include_str!("../samples/dump_lfts.txt");
        // The last table is that of a switch with hosts at its ports 1 to 3.
        let (others, last) = dumped.split_at(dumped.rfind("Unicast").unwrap());
        let last = last.replace("')\n", "') sl 7 1:3 2:0\n");
        // As many lines as of the forwarding tables: inputs 0 to 9.
        let lanes = include_str!("../samples/opensm-sl2vl.dump").lines();
        let lanes = lanes.filter(|line| !line.starts_with(['1', '2', '3']) || line[1..].starts_with(' '));
        let lanes: Vec<&str> = lanes.collect();
        let text = others.replace("')\n", "') sl 1\n") + &last + &lanes.join("\n");
        prop_assert!(silvan_fabric::import::routes(&text, &fabric).is_ok());
        let mut text: Vec<char> = text.chars().collect();
        for (index, edit) in &edits {
            let at = index.index(text.len());
            text.splice(at..(at + 1).min(text.len()), edit.chars());
        }
        let text: String = text.into_iter().collect();
        check_routes(&text, &fabric);
    }

    #[test]
    fn mutated_lists_of_guids_do_no_harm(
        edits in prop::collection::vec((any::<prop::sample::Index>(), "[0-9a-fx#
]{0,4}"), 0..4),
    ) {
        let fabric = sample();
        let listed = fabric.nodes.iter().map(|node| node.guid.to_string());
        let mut text: Vec<char> = listed.collect::<Vec<_>>().join("
").chars().collect();
        for (index, edit) in &edits {
            let at = index.index(text.len());
            text.splice(at..=at, edit.chars());
        }
        check_guids(&text.into_iter().collect::<String>(), &fabric);
    }

    /// SL to VL tables of some ports and hosts, a few kinds of them.
    #[test]
    fn written_sl_to_vl_tables_are_read_back(
        fabric in drawn_fabric(),
        kinds in prop::collection::vec(prop::array::uniform16(0u8..16), 1..4),
        pairs in prop::collection::vec((any::<prop::sample::Index>(), 1u8..=40, 1u8..=40, any::<prop::sample::Index>()), 0..60),
        hosts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let mut lanes = SlToVlTables::default();
        for (switch, input, output, kind) in &pairs {
            let switch = SwitchId::new(switch.index(fabric.switch_count()));
            let (input, output) = (PortNumber::new(*input), PortNumber::new(*output));
            lanes.set_switch(switch, input, output, *kind.get(&kinds));
        }
        for host in &hosts {
            lanes.set_host(HostId::new(host.index(fabric.host_count())), kinds[0]);
        }
        let text = silvan_fabric::import::sl_to_vl_dump(&fabric, &lanes, |_| Lid::new(7));
        // A table must be there too.
        let table = format!("Unicast lids of switch guid {} ():\n", fabric.switch(SwitchId::new(0)).guid);
        let routes = silvan_fabric::import::routes(&(table + &text), &fabric).unwrap();
        prop_assert_eq!(routes.lanes, lanes);
    }
}
