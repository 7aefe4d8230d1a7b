//! Datagrams of OpenSM 3.3.23, infiniband-diags 44.0 and ibsim 0.10, taken from their sockets. Each
//! line of the file has the tool, and the bytes without the zeros at their end.

use silvan_mad::congestion::{CongestionAttribute, CongestionControl, ManagementAttribute};
use silvan_mad::performance::PerformanceAttribute;
use silvan_mad::smp::{Smp, SmpAttribute};
use silvan_mad::{Body, Mad, Method, Packet};

use crate::from_hex;

const CAPTURED: &str = include_str!("../vectors/captured.txt");

fn captured() -> impl Iterator<Item = (&'static str, [u8; 256], Mad)> {
    CAPTURED.lines().map(|line| {
        let (_, digits) = line.split_once(' ').unwrap();
        let bytes = from_hex(digits);
        (line, bytes, Mad::parse(&Packet::new(&bytes)).unwrap())
    })
}

#[test]
fn all_are_understood_and_emitted_as_they_came() {
    let mut datagrams = 0;
    for (line, bytes, mad) in captured() {
        if mad.method == Method::GET {
            // libibmad leaves what lay on its stack where the answer's attribute will be, in reserved
            // bits, too.
            let header = match &mad.body {
                Body::CongestionControl(_) => 32,
                _ => 64,
            };
            assert_eq!(mad.emit()[..header], bytes[..header], "{line}\n{mad}");
        } else {
            assert_eq!(mad.emit(), bytes, "{line}\n{mad}");
        }
        let understood = !matches!(
            &mad.body,
            Body::Smp(Smp {
                attribute: SmpAttribute::Raw(_),
                ..
            }) | Body::Performance(PerformanceAttribute::Raw(_))
                | Body::CongestionControl(CongestionControl {
                    attribute: CongestionAttribute::Management(ManagementAttribute::Raw(_)),
                    ..
                })
                | Body::Other(_)
        );
        assert!(understood, "{line}\n{mad}");
        datagrams += 1;
    }
    assert_eq!(datagrams, 121, "lines in the file");
}

/// Datagrams of OpenSM with `congestion_control TRUE` and these options:
///
/// - `cc_sw_cong_setting_victim_mask 0x..03`, `.._threshold 0x0f`, `.._packet_size 8`, `.._credit_starvation_threshold
///   0x05`, `.._return_delay 1:33`, `.._marking_rate 128`
/// - `cc_ca_cong_setting_port_control 1`, for service level 0 a timer of 150, increase 1, trigger threshold 2 and
///   minimum 3
///
/// With `qos TRUE`, tables by default. Also the linear forwarding table of its minhop engine, as `dump_lfts` printed
/// it.
#[test]
fn opensm_is_understood() {
    let lines: Vec<_> = captured().map(|(_, _, mad)| mad.to_string()).collect();
    for (start, end) in [
        (
            "CCSet(SwitchCongestionSetting) tid=",
            " control_map=0x1f victim_mask={0, 1} threshold=15 packet_size=8 cs_threshold=5 \
             cs_return_delay={shift=1 multiplier=33} marking_rate=128",
        ),
        (
            "CCSet(CaCongestionSetting) tid=",
            " port_control=0x1 control_map=0xffff \
             entries=[{ccti_timer=150 ccti_increase=1 trigger_threshold=2 ccti_min=3}]",
        ),
        (
            "SubnDRSet(VlArbitrationTable 0x30001) tid=",
            " path=[1] entries=[{weight=4} {vl=1} {vl=2} {vl=3} {vl=4} {vl=5} {vl=6} {vl=7}]",
        ),
        (
            "SubnDRGetResp(SlToVlMappingTable) tid=",
            " status=ok path=[1, 2] vls=[0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7]",
        ),
        ("SubnGetResp(NodeDescription) tid=", " status=ok \"Hca1\""),
    ] {
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with(start) && line.ends_with(end)),
            "{start}...{end}\n{}",
            lines.join("\n")
        );
    }
    let table = lines
        .iter()
        .find(|line| {
            line.starts_with("SubnDRSet(LinearForwardingTable)") && line.contains(" path=[1] ")
        })
        .unwrap();
    assert!(table.contains(" ports=[255 1 0 3 2 3 5 255 255"), "{table}");
}
