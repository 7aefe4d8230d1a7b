//! Clients that do as they please.
#![cfg(target_os = "linux")]

mod law;

/// Random numbers (an LCG of Knuth's, upper half).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u8 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 56) as u8
    }
}

#[test]
fn whatever_clients_do_every_request_gets_its_message() {
    let mut random = Random(1);
    for _ in 0..300 {
        let len = 300 * (1 + usize::from(random.next() % 64));
        let mut bytes: Vec<u8> = (0..len).map(|_| random.next()).collect();
        // Somebody is there from the start, in three of four cases.
        bytes[1] &= if bytes[0] % 4 > 0 { 0xf8 } else { 0xff };
        law::play(&bytes);
    }
}
