//! Captures are opened by tshark, and it reads from them what was written.

use std::io::Write;
use std::process::{Command, Stdio};

use silvan_core::{Lid, PortNumber, Sl, Time};
use silvan_mad::administration::{PathRecord, SubnetAdministration};
use silvan_mad::capture::{Addresses, FILE_HEADER, record};
use silvan_mad::performance::PortCounters;
use silvan_mad::smp::{
    DirectedRoute, LinearForwardingTable, NodeDescription, PKeyTable, PortInfo, PortState,
    SlToVlMappingTable, Smp, SmpAttribute, SmpRoute, SwitchInfo, VlArbitrationTable,
};
use silvan_mad::{Bits, Body, Mad, Method};

/// Returns tshark's lines on the datagrams, with fields separated by `|`.
fn tshark(datagrams: &[(Addresses, [u8; 256])], fields: &[&str]) -> Vec<String> {
    let mut file = FILE_HEADER.to_vec();
    for (index, (addresses, datagram)) in datagrams.iter().enumerate() {
        let time = Time::from_ps(1_500_000_000_000 + index as u64 * 1_001_000);
        file.extend_from_slice(&record(time, addresses, datagram));
    }
    let mut command = Command::new("tshark");
    command.args(["-r", "-", "-T", "fields", "-E", "separator=|"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("tshark: {error}; apt-get install tshark"));
    child.stdin.take().unwrap().write_all(&file).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn addresses(queue_pair: u64) -> Addresses {
    Addresses {
        source_lid: Lid::new(0x0102),
        destination_lid: Lid::new(0x0304),
        source_qp: Bits::saturating(queue_pair),
        destination_qp: Bits::saturating(queue_pair),
        sl: Sl::ZERO,
    }
}

fn smp(attribute: impl Into<SmpAttribute>) -> (Addresses, [u8; 256]) {
    let body = Body::Smp(Smp {
        m_key: 0,
        route: SmpRoute::Lid,
        attribute: attribute.into(),
    });
    let mut mad = Mad::request(Method::GET_RESPONSE, body);
    mad.transaction_id = 0x0123_4567_89ab_cdef;
    (addresses(0), mad.emit())
}

#[test]
fn headers_and_times() {
    let body = Body::Performance(
        PortCounters {
            xmit_data: 0xdead_beef,
            xmit_wait: 77,
            ..PortCounters::default()
        }
        .into(),
    );
    let counters = (addresses(1), Mad::request(Method::SET, body).emit());
    let lines = tshark(
        &[
            smp(SwitchInfo {
                linear_fdb_top: 648,
                ..SwitchInfo::default()
            }),
            counters,
        ],
        &[
            "frame.time_epoch",
            "infiniband.lrh.vl",
            "infiniband.lrh.pktlen",
            "infiniband.lrh.slid",
            "infiniband.lrh.dlid",
            "infiniband.bth.destqp",
            "infiniband.deth.srcqp",
            "infiniband.mad.mgmtclass",
            "infiniband.mad.method",
            "infiniband.mad.transactionid",
            "infiniband.mad.attributeid",
            "infiniband.switchinfo.linearfdbtop",
            "infiniband.portcounters.portxmitdata",
        ],
    );
    assert_eq!(
        lines,
        [
            "1.500000000|0x0f|72|258|772|0x000000|0x00000000|0x01|0x81|0x0123456789abcdef|0x0012|0x0288|",
            "1.500001001|0x00|72|258|772|0x000001|0x00000001|0x04|0x02|0x0000000000000000|0x0012||3735928559",
        ]
    );
}

/// The question for a path and the answer: every field stands where tshark looks for it.
#[test]
fn paths() {
    let (source, destination) = (Lid::new(0x0102), Lid::new(0x0304));
    let question = SubnetAdministration::path(source, destination);
    let answer = SubnetAdministration {
        sm_key: 0x1122_3344_5566_7788,
        attribute_offset: 8,
        attribute: PathRecord {
            source,
            destination,
            hop_limit: 9,
            traffic_class: 10,
            numb_path: Bits::saturating(3),
            p_key: 0x7fff,
            sl: Sl::MAX,
            mtu: Bits::saturating(4),
            rate: Bits::saturating(7),
            packet_life_time: Bits::saturating(18),
            preference: 200,
            ..PathRecord::default()
        }
        .into(),
        ..question
    };
    let datagrams = [(Method::GET, question), (Method::GET_RESPONSE, answer)];
    let datagrams = datagrams.map(|(method, body)| {
        let mad = Mad::request(method, Body::Administration(body));
        (addresses(1), mad.emit())
    });
    let lines = tshark(
        &datagrams,
        &[
            "infiniband.mad.mgmtclass",
            "infiniband.mad.attributeid",
            "infiniband.sa.smkey",
            "infiniband.sa.attributeoffset",
            "infiniband.sa.componentmask",
            "infiniband.pathrecord.slid",
            "infiniband.pathrecord.dlid",
            "infiniband.pathrecord.hoplimit",
            "infiniband.pathrecord.tclass",
            "infiniband.pathrecord.numbpath",
            "infiniband.pathrecord.p_key",
            "infiniband.pathrecord.sl",
            "infiniband.pathrecord.mtu",
            "infiniband.pathrecord.rate",
            "infiniband.pathrecord.packetlifetime",
            "infiniband.pathrecord.preference",
        ],
    );
    assert_eq!(
        lines,
        [
            "0x03|0x0035|0x0000000000000000|0x0000|0x0000000000000030|0x0102|0x0304|0x00|0x00|0x00|0x0000|0x0000|0x00|0x00|0x00|0x00",
            "0x03|0x0035|0x1122334455667788|0x0008|0x0000000000000030|0x0102|0x0304|0x09|0x0a|0x03|0x7fff|0x000f|0x04|0x07|0x12|0xc8",
        ]
    );
}

/// Tables that libibmad has no fields for.
#[test]
fn tables() {
    let mut vls = [Bits::default(); 16];
    for (sl, vl) in vls.iter_mut().enumerate() {
        *vl = Bits::saturating(15 - sl as u64);
    }
    let mut arbitration = VlArbitrationTable::default();
    arbitration.entries[0].vl = Bits::saturating(3);
    arbitration.entries[0].weight = 64;
    arbitration.entries[31].weight = 255;
    let mut lft = LinearForwardingTable::default();
    lft.ports[1] = PortNumber::new(36);
    let mut p_keys = PKeyTable::default();
    p_keys.p_keys[0] = 0xffff;
    p_keys.p_keys[31] = 0x7fff;
    let datagrams = [
        smp(SlToVlMappingTable { vls }),
        smp(arbitration),
        smp(lft),
        smp(p_keys),
        smp(NodeDescription::new("spine 4, \"old\"").unwrap()),
    ];
    let lines = tshark(
        &datagrams,
        &[
            "infiniband.sltovlmappingtable.sltovlhighbits",
            "infiniband.sltovlmappingtable.sltovllowbits",
            "infiniband.vlarbitrationtable.vl",
            "infiniband.vlarbitrationtable.weight",
            "infiniband.linearforwardingtable.port",
            "infiniband.p_keytable.p_keybase",
            "infiniband.nodedescription.nodestring",
        ],
    );
    let column = |shown: &[(usize, &str)], zero: &str, count: usize| {
        let mut values = vec![zero; count];
        for &(index, value) in shown {
            values[index] = value;
        }
        values.join(",")
    };
    assert_eq!(
        lines,
        [
            // Two service levels to a byte, the lower one in the high bits.
            "0x0f,0x0d,0x0b,0x09,0x07,0x05,0x03,0x01|0x0e,0x0c,0x0a,0x08,0x06,0x04,0x02,0x00|||||"
                .to_owned(),
            format!(
                "||{}|{}|||",
                column(&[(0, "0x03")], "0x00", 32),
                column(&[(0, "0x40"), (31, "0xff")], "0x00", 32)
            ),
            format!("||||{}||", column(&[(1, "0x24")], "0x00", 64)),
            // tshark shows the membership bit apart.
            format!(
                "|||||{}|",
                column(&[(0, "0x7fff"), (31, "0x7fff")], "0x0000", 32)
            ),
            "||||||spine 4, \"old\"".to_owned(),
        ]
    );
}

#[test]
fn ports_and_routes() {
    let route = DirectedRoute::request(&[1, 3, 17]).unwrap();
    let body = Body::Smp(Smp {
        m_key: 0x1122_3344_5566_7788,
        route: SmpRoute::Directed(route),
        attribute: PortInfo {
            lid: Lid::new(49),
            port_state: PortState::ACTIVE,
            capability_mask: silvan_mad::smp::capability::IS_SM,
            ..PortInfo::default()
        }
        .into(),
    });
    let bytes = Mad::request(Method::GET, body).emit();
    let lines = tshark(
        &[(addresses(0), bytes)],
        &[
            "infiniband.smpdirected.hopcount",
            "infiniband.smpdirected.drslid",
            "infiniband.smpdirected.initialpath",
            "infiniband.portinfo.lid",
            "infiniband.portinfo.portstate",
            "infiniband.portinfo.capabilitymask.issm",
        ],
    );
    let path = format!("00010311{:0120}", 0);
    assert_eq!(
        lines,
        [format!("0x03|0xffff|{path}|0x0031|0x04|0x00000001")]
    );
}
