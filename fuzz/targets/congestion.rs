//! Any bytes after the class version as a congestion control datagram.

#![no_main]

use libfuzzer_sys::fuzz_target;
use silvan_mad::Packet;

#[path = "../../crates/silvan-mad/tests/wire/law.rs"]
mod law;

fuzz_target!(|bytes: [u8; 256]| {
    let mut bytes = bytes;
    bytes[..3].copy_from_slice(&[1, 0x21, 2]);
    // A malformed datagram is an answer, too.
    let _ = law::check(&bytes);
    let _ = Packet::new(&bytes).to_string();
});
