//! Entries of flow files: who sends what and when, and any text as a list of flows.

use proptest::prelude::*;
use silvan_core::{Bytes, HostId, Rate, Time};
use silvan_workload::traffic::{FlowFile, FlowFormat, Traffic, TrafficSection};

use crate::flow_lines_law;
use crate::mock::environment;

fn traffic(list: String, hosts: usize) -> Traffic {
    let entry = FlowFile {
        name: None,
        file: None,
        list: Some(list),
        read_from: None,
        format: FlowFormat::Csv,
        first_host: 0,
        origin: silvan_core::Span::ZERO,
        sl: silvan_core::Sl::ZERO,
    };
    let spec = TrafficSection {
        flow_file: vec![entry],
        ..TrafficSection::default()
    };
    Traffic::new(&spec, &environment(hosts, 1)).unwrap()
}

proptest! {
    /// Oracle: the list. Each host has its flows by start, those of one instant in the order of the list, and the demands of
    /// the receivers are the sums.
    #[test]
    fn hosts_send_what_the_list_says(
        flows in prop::collection::vec((0..5_u64, 1..5_u64, 1..1_u64 << 20, 0..1_000_u64), 1..30)
    ) {
        let mut list = "from,to,bytes,start_us\n".to_owned();
        let mut expected = vec![Vec::new(); 5];
        let mut received = vec![0; 5];
        for &(from, distance, bytes, start) in &flows {
            let to = (from + distance) % 5;
            list += &format!("{from},{to},{bytes},{start}\n");
            expected[from as usize].push((start * 1_000_000, to as usize, bytes));
            received[to as usize] += bytes;
        }
        expected.iter_mut().for_each(|flows| flows.sort_by_key(|flow| flow.0));
        let traffic = traffic(list, 5);
        let end = Time::from_ps(1_000_000_000);
        for (host, expected) in expected.iter().enumerate() {
            let found = traffic.flows_of(HostId::new(host), end);
            let found: Vec<_> = found
                .iter()
                .map(|(_, flow)| (flow.start.as_ps(), flow.destination.index(), flow.bytes))
                .collect();
            prop_assert_eq!(&found, expected);
        }
        prop_assert_eq!(traffic.expected_flows(end), flows.len() as u64);
        let rates = vec![Rate::from_bits_per_sec(8_000_000_000).unwrap(); 5];
        for (demand, received) in traffic.demands(end, &rates).iter().zip(received) {
            prop_assert!((demand.bytes - received as f64).abs() < 1e-3);
            let packets = Bytes::from_bytes(received).as_u64() as f64 / 2048.0;
            prop_assert!(demand.packets >= packets * 0.99);
        }
    }

    #[test]
    fn any_text_is_a_list_or_has_a_mistake(
        text in "(from|to|bytes|start|start_s|[0-9]{1,3}|[0-9]{25}|[,. \"e+-]|\n|\r|us|\u{feff}){0,30}",
        any in any::<String>(),
    ) {
        flow_lines_law::check(&text);
        flow_lines_law::check(&any);
    }
}
