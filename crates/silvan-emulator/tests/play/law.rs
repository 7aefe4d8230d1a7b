//! Properties that hold for any input of clients; the fuzz target includes this file, too.

use silvan_core::Span;
use silvan_emulator::{ControlAnswer, ManagementPlane, Start};
use silvan_instances::Fastest;
use silvan_scenario::Scenario;

/// Hosts a, b, c at two switches with two cables between them, and traffic.
const FABRIC: &str = r#"
[fabric]
switch = [{ name = "left", ports = 4 }, { name = "right", ports = 4 }]
host = [{ name = "a" }, { name = "b" }, { name = "c" }]
cable = [
    { from = "a", to = "left:1" },
    { from = "b", to = "right:1" },
    { from = "c", to = "right:2" },
    { from = "left:3", to = "right:3" },
    { from = "left:4", to = "right:4" },
]
routing = "min-hop"
[link]
speed = "DDR"
[switch]
buffer = "64 KiB"
[host]
receive-buffer = "16 KiB"
[packet]
mtu = "2 KiB"
[vl]
data-vls = 2
[[traffic.flow]]
from = "a"
to = "c"
load = "4 Gbit/s"
[control]
scheme = "ib-cc"
"#;

const MAGIC: u32 = 0xdead_beef;
/// Byte of the datagram's method in a data message.
const METHOD_AT: usize = 35;
const TRAP: u8 = 5;
const TRAP_REPRESS: u8 = 7;
const RESPONSE: u8 = 0x80;

/// Bytes that decide what happens.
struct Draw<'a>(&'a [u8]);

impl Draw<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    /// The next bytes, zeros behind the end.
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }
}

/// Attached clients; true for a subnet manager.
type Attached = Vec<(u16, bool)>;

/// Plays what the bytes say: clients that come, ask, answer, are killed, and time that passes.
///
/// # Panics
/// If a request gets no message or several, a message goes to somebody who has gone, or the data plane
/// no longer adds up.
pub fn play(bytes: &[u8]) {
    let scenario = Scenario::from_toml(FABRIC, "law.toml", &[]).expect("the scenario is legal");
    let start = match bytes.first() {
        Some(first) if first % 2 == 1 => Start::Blank,
        _ => Start::Configured,
    };
    let mut plane =
        ManagementPlane::new(&Fastest, &scenario, start).expect("the fabric can be emulated");
    let mut attached = Attached::new();
    let mut draw = Draw(bytes);
    draw.byte();
    while !draw.0.is_empty() {
        match draw.byte() % 8 {
            0 => control(&mut plane, &mut draw, &mut attached),
            1 if !attached.is_empty() => {
                let location = usize::from(draw.byte()) % attached.len();
                plane.kill(attached.swap_remove(location).0);
            }
            2 => {
                let span = Span::from_us(u64::from(draw.byte()));
                plane.pass(span).expect("the data plane goes on");
                plane.audit().expect("the data plane adds up");
            }
            _ => datagram(&mut plane, &mut draw, &attached),
        }
        for (to, _) in plane.take_messages() {
            assert!(
                attached.iter().any(|(client, _)| *client == to),
                "a message to {to}, who is not there"
            );
        }
    }
    plane
        .pass(Span::from_us(50))
        .expect("the data plane goes on");
    plane.audit().expect("the data plane adds up");
}

/// A control message, right in form or not.
fn control(plane: &mut ManagementPlane, draw: &mut Draw<'_>, attached: &mut Attached) {
    let mut bytes: [u8; 80] = draw.bytes();
    let right = draw.byte() % 4 > 0;
    if right {
        bytes[..4].copy_from_slice(&MAGIC.to_ne_bytes());
        // A small number of client and type, and a name that there is or none.
        bytes[5..8].fill(0);
        bytes[8] %= 12;
        bytes[9..12].fill(0);
        bytes[28] = b"abc\0"[usize::from(bytes[28] % 4)];
        bytes[29] = 0;
    }
    let kind = u32::from_ne_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    let is_right = bytes[..4] == MAGIC.to_ne_bytes();
    match plane.control(&bytes) {
        None => assert!(!is_right, "right in form, and not answered"),
        Some(ControlAnswer::Connected(client, reply)) => {
            assert_eq!(reply[8..12], 1_u32.to_ne_bytes());
            assert!(attached.iter().all(|(other, _)| *other != client));
            attached.push((client, bytes[24..28] != [0; 4]));
        }
        Some(ControlAnswer::Disconnected(client, _)) => {
            attached.retain(|(other, _)| *other != client);
        }
        Some(ControlAnswer::Reply(reply)) => {
            let refused = reply[8..12] == [0; 4];
            let client = u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
            let asker = attached
                .iter_mut()
                .find(|(known, _)| u32::from(*known) == client);
            if let (9, false, Some((_, is_manager))) = (kind, refused, asker) {
                *is_manager = bytes[16..20] != [0; 4];
            }
        }
    }
}

/// A data message of somebody, most of them nearly legal.
fn datagram(plane: &mut ManagementPlane, draw: &mut Draw<'_>, attached: &Attached) {
    let from = match attached.len() {
        0 => u16::from(draw.byte()),
        count => attached[usize::from(draw.byte()) % count].0,
    };
    let mut bytes: [u8; 288] = draw.bytes();
    let shape = draw.byte();
    if shape % 8 > 0 {
        bytes[24..32].copy_from_slice(&256_u64.to_be_bytes());
        bytes[2..4].fill(0);
        // A LID that there may be, or the permissive one.
        let low = bytes[1];
        bytes[..2].copy_from_slice(&match shape % 3 {
            0 => [0xff, 0xff],
            _ => [0, low % 8],
        });
        let (class, version) =
            [(1, 1), (0x81, 1), (4, 1), (0x21, 2), (3, 2)][usize::from(shape % 5)];
        bytes[32..35].copy_from_slice(&[1, class, version]);
        bytes[48] = 0;
        if class == 0x81 {
            bytes[36..39].fill(0);
            bytes[39] %= 5;
            bytes[64..68].fill(0xff);
            for hop in &mut bytes[160..166] {
                *hop %= 5;
            }
        }
    }
    let len = if shape == 0 {
        bytes.len() - 1
    } else {
        bytes.len()
    };
    let length = u64::from_be_bytes(std::array::from_fn(|at| bytes[24 + at]));
    let is_message = len == bytes.len() && (24..=256).contains(&length);
    let is_known = attached.iter().any(|(client, _)| *client == from);
    let method = bytes[METHOD_AT];
    plane.datagram(from, &bytes[..len]);
    let is_response = method & RESPONSE != 0 || method == TRAP_REPRESS;
    let mut messages = plane.take_messages();
    for (to, _) in &messages {
        let is_manager = attached.contains(&(*to, true));
        let may = *to == from || is_manager || is_response;
        assert!(may, "a message to somebody else");
    }
    if !is_message || !is_known {
        assert!(messages.is_empty());
        return;
    }
    // Switches send traps by themselves, and those of clients are passed on.
    messages.retain(|(_, message)| message[METHOD_AT] != TRAP);
    if is_response {
        assert!(messages.len() <= 1);
    } else if method != TRAP {
        assert_eq!(messages.len(), 1, "one message for one request");
        let (to, answer) = messages[0];
        let is_answer = answer[METHOD_AT] & RESPONSE != 0;
        if to == from && is_answer {
            // Transaction by the client's count and attribute, and the modifier.
            assert_eq!(answer[42..50], bytes[42..50]);
            assert_eq!(answer[52..56], bytes[52..56]);
        }
    }
}
