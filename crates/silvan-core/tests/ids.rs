//! Dense ids, vectors indexed by them, and identifiers as they are in packets.
#![allow(clippy::unwrap_used, reason = "a failed conversion is a failed test")]

use proptest::prelude::*;
use silvan_core::{Guid, HostId, IdVec, Lid, NodeId, PortId, PortNumber, Sl, Vl};

#[test]
fn id_vec_hands_out_ids_in_order() {
    let mut names: IdVec<NodeId, &str> = IdVec::new();
    let first = names.push("a");
    let second = names.push("b");
    assert_eq!((first.index(), second.index()), (0, 1));
    names[second] = "c";
    assert_eq!(names[second], "c");
    assert_eq!(names.get(NodeId::new(2)), None);
    let pairs: Vec<_> = names.iter_enumerated().collect();
    assert_eq!(pairs, [(first, &"a"), (second, &"c")]);
    assert_eq!(names.ids().rev().collect::<Vec<_>>(), [second, first]);
    assert_eq!(HostId::new(7).to_string(), "host 7");
}

#[test]
#[should_panic(expected = "over 32 bits")]
#[cfg(target_pointer_width = "64")]
fn an_id_beyond_32_bits_panics() {
    let _ = PortId::new(1 << 32);
}

/// Ranges: InfiniBand Architecture Specification, volume 1, sections 4.1.3 and 7.6.
#[test]
fn ranges_are_those_of_the_specification() {
    for (value, unicast) in [
        (0, false),
        (1, true),
        (0xbfff, true),
        (0xc000, false),
        (0xffff, false),
    ] {
        assert_eq!(Lid::new(value).is_unicast(), unicast, "{value:#x}");
    }
    assert_eq!(Vl::all().count(), 15);
    assert_eq!(Sl::all().count(), 16);
    assert!(Vl::try_new(14).is_ok());
    assert!(Sl::try_new(15).is_ok());
    assert_eq!(
        Vl::try_new(15).unwrap_err().to_string(),
        "data VL 15 is out of range, it must be 0 to 14"
    );
    assert!(Sl::try_new(16).is_err());
    assert!(serde_json::from_str::<Vl>("15").is_err());
    assert_eq!(serde_json::from_str::<Sl>("15").unwrap(), Sl::MAX);
}

#[test]
fn wire_ids_are_written_as_tools_print_them() {
    assert_eq!(Guid::new(0x2c9).to_string(), "0x00000000000002c9");
    assert_eq!("0x2c9".parse::<Guid>().unwrap(), Guid::new(0x2c9));
    assert_eq!("0x1f".parse::<Lid>().unwrap(), "31".parse::<Lid>().unwrap());
    assert_eq!(PortNumber::new(36).to_string(), "36");
    for bad in [
        "",
        "2c9",
        "0x",
        "0x+1",
        "0x00000000000000001g",
        "0x10000000000000000",
    ] {
        assert!(bad.parse::<Guid>().is_err(), "{bad:?}");
    }
    for bad in ["", "-1", "65536", "0x10000", "leaf"] {
        assert!(bad.parse::<Lid>().is_err(), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn guids_and_lids_parse_back(guid in any::<u64>(), lid in any::<u16>()) {
        let (guid, lid) = (Guid::new(guid), Lid::new(lid));
        prop_assert_eq!(guid.to_string().parse::<Guid>().unwrap(), guid);
        prop_assert_eq!(lid.to_string().parse::<Lid>().unwrap(), lid);
        let json = serde_json::to_string(&guid).unwrap();
        prop_assert_eq!(serde_json::from_str::<Guid>(&json).unwrap(), guid);
    }
}
