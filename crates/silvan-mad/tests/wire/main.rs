//! Bytes against values, with libibmad, captured datagrams and tshark for judges.

#![allow(clippy::unwrap_used, reason = "a test that unwraps nothing has failed")]

mod captured;
mod law;
mod libibmad;
mod random;
mod round_trip;
mod tshark;

/// The bytes that the digits mean, and zeros after them.
fn from_hex<const N: usize>(digits: &str) -> [u8; N] {
    let mut bytes = [0; N];
    assert!(digits.len() % 2 == 0 && digits.len() <= 2 * N, "{digits}");
    for (index, byte) in bytes[..digits.len() / 2].iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).unwrap();
    }
    bytes
}
