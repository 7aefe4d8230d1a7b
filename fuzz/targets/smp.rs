//! Any bytes after the class version as a subnet management datagram.

#![no_main]

use libfuzzer_sys::fuzz_target;
use silvan_mad::Packet;

#[path = "../../crates/silvan-mad/tests/wire/law.rs"]
mod law;

fuzz_target!(|bytes: [u8; 256]| {
    let mut bytes = bytes;
    let class = if bytes[0] % 2 == 0 { 0x01 } else { 0x81 };
    bytes[..3].copy_from_slice(&[1, class, 1]);
    // A malformed datagram is an answer, too.
    let _ = law::check(&bytes);
    let _ = Packet::new(&bytes).to_string();
});
