//! Any bytes of any length as a management datagram.

#![no_main]

use libfuzzer_sys::fuzz_target;
use silvan_mad::Packet;

#[path = "../../crates/silvan-mad/tests/wire/law.rs"]
mod law;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(packet) = Packet::new_checked(bytes) {
        // A malformed datagram is an answer, too.
        let _ = law::check(packet.bytes());
        let _ = packet.to_string();
    }
});
