//! Values through bytes and back, attribute by attribute, and what may not be lost on the way.

use proptest::prelude::*;
use silvan_core::{Lid, PortNumber};
use silvan_mad::administration::AdministrationAttribute;
use silvan_mad::congestion::{CongestionLog, ManagementAttribute};
use silvan_mad::performance::PerformanceAttribute;
use silvan_mad::smp::{
    DirectedRoute, MulticastBlock, NodeDescription, Notice, PKeyBlock, PortPair, SmpAttribute,
    VlArbitrationBlock,
};
use silvan_mad::{Bits, Mad, MadError, Packet, Status};

/// Any bytes as this attribute: emitting drops reserved bits only, so a second pass changes nothing.
/// `defined` is what comes back of all ones, that is the bits that are not reserved.
macro_rules! check_attribute {
    ($type:ident, $id:expr, $data:expr) => {{
        let emit = |data| {
            let mut emitted = [0x55; $type::DATA_LEN];
            $type::parse($id, data).emit(&mut emitted);
            emitted
        };
        let defined = emit(&[0xff; $type::DATA_LEN]);
        let emitted = emit(&$data);
        for (at, ((&came, &went), &mask)) in $data.iter().zip(&emitted).zip(&defined).enumerate() {
            prop_assert_eq!(went, came & mask, "byte {} of {:#x}", at, $id);
        }
        prop_assert_eq!($type::parse($id, &emitted), $type::parse($id, &$data));
        prop_assert_eq!($type::parse($id, &emitted).id(), $id);
    }};
}

proptest! {
    #[test]
    fn subnet_management(id in 0u16..0x24, data in any::<[[u8; 32]; 2]>()) {
        let data: [u8; 64] = data.as_flattened().try_into().unwrap();
        check_attribute!(SmpAttribute, id, data);
    }

    #[test]
    fn performance(id in 0u16..0x3a, data in any::<[[u8; 32]; 6]>()) {
        let data: [u8; 192] = data.as_flattened().try_into().unwrap();
        check_attribute!(PerformanceAttribute, id, data);
    }

    #[test]
    fn congestion_control(id in 0u16..0x1a, data in any::<[[u8; 32]; 6]>()) {
        let data: [u8; 192] = data.as_flattened().try_into().unwrap();
        check_attribute!(ManagementAttribute, id, data);
    }

    #[test]
    fn administration(id in 0x34u16..0x37, data in any::<[[u8; 25]; 8]>()) {
        let data: [u8; 200] = data.as_flattened().try_into().unwrap();
        check_attribute!(AdministrationAttribute, id, data);
    }

    #[test]
    fn logs(log_type in 0u8..4, data in any::<[[u8; 32]; 7]>()) {
        let mut data: [u8; 224] = data.as_flattened().try_into().unwrap();
        data[0] = log_type;
        let log = CongestionLog::parse(&data);
        let emitted = log.emit();
        prop_assert_eq!(CongestionLog::parse(&emitted), log);
        prop_assert_eq!(emitted[0], log_type);
    }

    #[test]
    fn routes(ports in prop::collection::vec(any::<u8>(), 0..70)) {
        match DirectedRoute::request(&ports) {
            Some(route) => prop_assert_eq!(route.ports(), ports),
            None => prop_assert!(ports.len() > DirectedRoute::MAX_HOPS),
        }
    }

    #[test]
    fn modifiers(modifier: u32) {
        prop_assert_eq!(PKeyBlock::from_modifier(modifier).to_modifier(), modifier & 0xff_ffff);
        prop_assert_eq!(PortPair::from_modifier(modifier).to_modifier(), modifier & 0xffff);
        prop_assert_eq!(
            VlArbitrationBlock::from_modifier(modifier).to_modifier(), modifier & 0xff_00ff
        );
        prop_assert_eq!(
            MulticastBlock::from_modifier(modifier).to_modifier(), modifier & 0xf000_01ff
        );
    }

    #[test]
    fn descriptions(text in ".{0,40}") {
        match NodeDescription::new(&text) {
            Ok(description) => {
                prop_assert_eq!(description.text(), text.split('\0').next().unwrap_or(""));
                prop_assert_eq!(NodeDescription::parse(&description.emit()), description);
            }
            Err(error) => prop_assert!(error.len == text.len() && text.len() > 64),
        }
    }
}

/// Answering changes method, status and direction, and not one other bit.
#[test]
fn answers_keep_everything_else() {
    let digits = include_str!("../vectors/captured.txt");
    for line in digits.lines() {
        let before: [u8; 256] = crate::from_hex(line.split_once(' ').unwrap().1);
        let mut packet = Packet::new(before);
        packet.answer(Status::INVALID_VALUE);
        assert_eq!(packet.status(), Status::INVALID_VALUE);
        assert!(packet.method().is_response());
        let after = packet.into_inner();
        assert_eq!(after[3], 0x81);
        assert_eq!(
            after[4..6],
            if before[1] == 0x81 {
                [0x80, 0x1c]
            } else {
                [0x00, 0x1c]
            }
        );
        assert_eq!(after[..3], before[..3]);
        assert_eq!(after[6..], before[6..]);
    }
}

/// The traps as UMAD servers must send them: bytes written down from the specification's table.
#[test]
fn notices() {
    let link = Notice::link_state_change(Lid::new(0x1234)).emit();
    assert_eq!(
        link[..12],
        [0x81, 0, 0, 2, 0, 128, 0x12, 0x34, 0, 0, 0x12, 0x34]
    );
    assert_eq!(link[12..], [0; 52]);

    let local = Notice::capability_change(
        silvan_mad::smp::NodeType::CHANNEL_ADAPTER,
        Lid::new(7),
        0x0251_0868,
    );
    assert_eq!(
        local.emit()[..20],
        [
            0x84, 0, 0, 1, 0, 144, 0, 7, 0, 0, 0, 0, 0, 7, 0, 0, 0x02, 0x51, 0x08, 0x68
        ]
    );
}

#[test]
fn malformed_headers_are_named() {
    let mut bytes = [0; 256];
    assert_eq!(
        Mad::parse(&Packet::new(&bytes)),
        Err(MadError::BaseVersion(0))
    );
    bytes[..3].copy_from_slice(&[1, 0x81, 1]);
    bytes[7] = 64;
    assert_eq!(
        Mad::parse(&Packet::new(&bytes)),
        Err(MadError::HopCount(64))
    );
    assert_eq!(
        Packet::new(&bytes).to_string(),
        "malformed datagram: 64 hops, a directed route has at most 63"
    );
    bytes[7] = 63;
    assert!(Mad::parse(&Packet::new(&bytes)).is_ok());
}

#[test]
fn port_bits_are_numbered_from_the_last_bit() {
    use silvan_mad::congestion::{PortBits, SwitchCongestionSetting};
    let ports = [0, 1, 36, 255].map(PortNumber::new);
    let victim_mask: PortBits = ports.into_iter().collect();
    assert_eq!(victim_mask.iter().collect::<Vec<_>>(), ports);
    let bytes = SwitchCongestionSetting {
        victim_mask,
        ..Default::default()
    }
    .emit();
    let mut expected = [0; 76];
    expected[4 + 31] = 0b11;
    expected[4 + 27] = 0b1_0000;
    expected[4] = 0b1000_0000;
    assert_eq!(bytes, expected);
}

#[test]
fn error_counters_saturate() {
    assert_eq!(Bits::<4>::saturating(15).get(), 15);
    assert_eq!(Bits::<4>::saturating(16).get(), 15);
    assert_eq!(Bits::<4>::new(16), None);
}
