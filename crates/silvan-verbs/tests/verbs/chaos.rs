//! RC over a channel that delays, loses, doubles and reorders messages, against a model of memory.
//!
//! Both sides post random operations. The model executes each side's operations in order, once. Each operation has memory of
//! its own at both ends, except a counter for atomic operations, so that the model is exact whatever is sent again.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use silvan_core::{Span, Time};
use silvan_verbs::abi::values::{QpType, SendOpcode, Status, send_flags};

use crate::packets::drawn;
use crate::wire::Wire;
use crate::world::*;

/// Bytes of an operation's memory.
const STRIDE: u64 = 1024;
/// Data that operations send or write.
const SOURCES: u64 = BASE;
/// Targets of the peer's writes.
const SLOTS: u64 = BASE + 16 * STRIDE;
/// Results of reads and atomic operations.
const RESULTS: u64 = BASE + 32 * STRIDE;
/// Memory of receive requests.
const RECEIVES: u64 = BASE + 48 * STRIDE;
/// Counter of the peer's atomic operations.
const COUNTER: u64 = BASE + SIZE - 8;
/// Most operations of a side.
const MOST: usize = 15;

#[derive(Clone, Debug)]
struct Operation {
    opcode: SendOpcode,
    length: u32,
    /// Selects an earlier write to read, or the values of an atomic operation.
    choice: u8,
    is_signaled: bool,
    is_fenced: bool,
    is_inline: bool,
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let opcode = (0u32..7).prop_map(|number| SendOpcode::from_number(number).unwrap());
    let length = prop_oneof![1 => Just(0u32), 3 => 1u32..200, 3 => 200u32..1000];
    (opcode, length, any::<u8>(), any::<(bool, bool, bool)>()).prop_map(
        |(opcode, length, choice, flags)| Operation {
            opcode,
            length: if opcode.is_atomic() { 8 } else { length },
            choice,
            is_signaled: flags.0,
            is_fenced: flags.1,
            is_inline: flags.2,
        },
    )
}

fn data(side: usize, index: usize, length: u32) -> Vec<u8> {
    let seed = (side * 131 + index * 17) as u32;
    (0..length)
        .map(|offset| (offset.wrapping_mul(2_654_435_761) >> 13).wrapping_add(seed) as u8 | 1)
        .collect()
}

fn takes_receive(opcode: SendOpcode) -> bool {
    matches!(
        opcode,
        SendOpcode::Send | SendOpcode::SendWithImmediate | SendOpcode::WriteWithImmediate
    )
}

fn is_write(opcode: SendOpcode) -> bool {
    matches!(opcode, SendOpcode::Write | SendOpcode::WriteWithImmediate)
}

/// Operation whose slot a read uses: an earlier write of its side, if there is one.
fn read_target(operations: &[Operation], index: usize) -> Option<usize> {
    let writes: Vec<usize> = (0..index)
        .filter(|&earlier| is_write(operations[earlier].opcode))
        .collect();
    let choice = usize::from(operations[index].choice);
    (!writes.is_empty()).then(|| writes[choice % writes.len()])
}

/// Values of atomic operations, and what they return.
struct Counter {
    value: u64,
}

impl Counter {
    fn operands(&self, operation: &Operation) -> (u64, u64) {
        let choice = u64::from(operation.choice);
        match operation.opcode {
            SendOpcode::FetchAndAdd => (choice, 0),
            // Half of the comparisons miss.
            _ => (self.value + choice % 2, choice * 1000),
        }
    }

    fn apply(&mut self, operation: &Operation) -> u64 {
        let (first, second) = self.operands(operation);
        let old = self.value;
        match operation.opcode {
            SendOpcode::FetchAndAdd => self.value += first,
            _ if first == old => self.value = second,
            _ => {}
        }
        old
    }
}

/// Behaviour of the channel.
#[derive(Clone, Debug)]
struct Channel {
    /// Chances of loss and doubling in 256, while `chaos` messages last.
    loss: u8,
    doubling: u8,
    chaos: usize,
    keeps_order: bool,
    seed: u64,
    /// Single packets, in order, in place of messages.
    packets: Option<PacketLoss>,
}

/// Chance of loss in 1000 of each of the first packets of an adapter.
#[derive(Clone, Debug)]
struct PacketLoss {
    chance: u64,
    chaos: u64,
    seed: u64,
}

impl PacketLoss {
    fn wire(&self) -> Wire {
        let mut loses = drawn(self.seed, self.chance);
        let chaos = self.chaos;
        let loses = move |number, message: &silvan_verbs::Message| {
            number < chaos && loses(message.from, number)
        };
        Wire::new(Span::from_ns(400), Box::new(loses))
    }
}

fn any_channel() -> impl Strategy<Value = Channel> {
    (0u8..50, 0u8..50, 0usize..80, any::<bool>(), any::<u64>()).prop_map(
        |(loss, doubling, chaos, keeps_order, seed)| Channel {
            loss,
            doubling,
            chaos,
            keeps_order,
            seed,
            packets: None,
        },
    )
}

impl Channel {
    fn fates(self) -> Fates {
        let mut messages = 0;
        // Never 0, where this generator stays.
        let mut state = self.seed | 1;
        let mut roll = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        let mut latest = Time::ZERO;
        Box::new(move |now, _| {
            messages += 1;
            if messages > self.chaos {
                return Fate::Arrive(Span::from_us(40));
            }
            if roll() < self.loss {
                return Fate::Lose;
            }
            let mut delay = || {
                let delay = Span::from_ns(1000 + 150 * u64::from(roll()));
                if !self.keeps_order {
                    return delay;
                }
                // Never before an earlier message.
                let arrival = (now + delay).max(latest);
                latest = arrival;
                arrival.since(now)
            };
            let (first, second) = (delay(), delay());
            if roll() < self.doubling {
                Fate::Twice(first, second)
            } else {
                Fate::Arrive(first)
            }
        })
    }
}

/// Runs both lists of operations and compares all memory and completions with the model.
fn check(
    lists: [Vec<Operation>; 2],
    channel: Channel,
    late_receives: usize,
    transfer_us: Option<u64>,
    mtu: u8,
) -> Result<bool, TestCaseError> {
    let mut world = World::new(2);
    world.transfer_time = transfer_us.map(Span::from_us);
    // A long retry time: what the channel delays is not lost.
    let tuning = Tuning {
        mtu,
        timeout: 6,
        retries: 7,
        rnr_retries: 7,
        rnr_timer: 5,
        reads: 3,
        ..Tuning::default()
    };
    let link = link(&mut world, QpType::Rc, Sizes::default(), tuning);
    let pairs = [link.a, link.b];
    let regions = [link.a_region, link.b_region];
    match &channel.packets {
        Some(chances) => world.wire = Some(chances.wire()),
        None => world.fate = channel.fates(),
    }
    let mut waiting: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
    for side in [0, 1] {
        let peer = 1 - side;
        for (index, operation) in lists[side].iter().enumerate() {
            let content = data(side, index, operation.length);
            if !operation.opcode.has_response() {
                world.write(
                    pairs[side].process.id,
                    SOURCES + index as u64 * STRIDE,
                    &content,
                );
            }
            if takes_receive(operation.opcode) {
                waiting[peer].push(index);
            }
        }
        waiting[peer].reverse();
    }
    let post_receive = |world: &mut World, side: usize, waiting: &mut [Vec<usize>; 2]| {
        if let Some(index) = waiting[side].pop() {
            let element = sge(
                regions[side],
                RECEIVES + index as u64 * STRIDE,
                STRIDE as u32,
            );
            pairs[side]
                .receive(world, index as u64, vec![element])
                .unwrap();
        }
    };
    for side in [0, 1] {
        while waiting[side].len() > late_receives {
            post_receive(&mut world, side, &mut waiting);
        }
    }
    for side in [0, 1] {
        let peer = 1 - side;
        let mut counter = Counter { value: 0 };
        for (index, operation) in lists[side].iter().enumerate() {
            let offset = index as u64 * STRIDE;
            let (near, far) = match operation.opcode {
                SendOpcode::Read => {
                    let target = read_target(&lists[side], index);
                    // Without a write the peer's slot of this operation is read, which stays blank.
                    (
                        RESULTS + offset,
                        SLOTS + target.unwrap_or(index) as u64 * STRIDE,
                    )
                }
                opcode if opcode.is_atomic() => (RESULTS + offset, COUNTER),
                _ => (SOURCES + offset, SLOTS + offset),
            };
            // Two elements, the first of a third of the data.
            let first = operation.length / 3;
            let elements = match operation.opcode.is_atomic() {
                true => vec![sge(regions[side], near, 8)],
                false => vec![
                    sge(regions[side], near, first),
                    sge(
                        regions[side],
                        near + u64::from(first),
                        operation.length - first,
                    ),
                ],
            };
            let mut flags = 0;
            if operation.is_signaled {
                flags |= send_flags::SIGNALED;
            }
            if operation.is_fenced {
                flags |= send_flags::FENCE;
            }
            if operation.is_inline && !operation.opcode.has_response() && operation.length <= 256 {
                flags |= send_flags::INLINE;
            }
            let mut post = Post::new(index as u64, operation.opcode, elements)
                .to(far, regions[peer].key)
                .flags(flags);
            post.immediate = (index as u32).to_be_bytes();
            if operation.opcode.is_atomic() {
                post.operands = counter.operands(operation);
                counter.apply(operation);
            }
            pairs[side].send(&mut world, &[post]).unwrap();
        }
    }
    let mut until = Time::ZERO;
    while waiting.iter().any(|list| !list.is_empty()) {
        until += Span::from_us(700);
        world.run_until(until);
        for side in [0, 1] {
            post_receive(&mut world, side, &mut waiting);
        }
    }
    world.run();

    let mut sent = [Vec::new(), Vec::new()];
    let mut received = [Vec::new(), Vec::new()];
    let mut has_failed = false;
    for side in [0, 1] {
        for entry in pairs[side].poll(&mut world) {
            has_failed |= entry.status != Status::Success.number();
            match entry.opcode >= 128 {
                true => received[side].push(entry),
                false => sent[side].push(entry),
            }
        }
    }
    if has_failed {
        // A channel this bad may exhaust the retries, and nothing else. Completions still keep their order.
        let allowed = [Status::Success, Status::RetryExceeded, Status::Flushed].map(Status::number);
        for side in [0, 1] {
            for entry in sent[side].iter().chain(&received[side]) {
                prop_assert!(allowed.contains(&entry.status), "{:?}", entry);
            }
            prop_assert!(sent[side].is_sorted_by_key(|entry| entry.wr_id));
        }
        return Ok(false);
    }
    for side in [0, 1] {
        let peer = 1 - side;
        let list = &lists[side];
        let signaled: Vec<u64> = (0..list.len())
            .filter(|&index| list[index].is_signaled)
            .map(|index| index as u64)
            .collect();
        prop_assert_eq!(
            sent[side]
                .iter()
                .map(|entry| entry.wr_id)
                .collect::<Vec<_>>(),
            signaled
        );
        let arriving: Vec<usize> = (0..list.len())
            .filter(|&index| takes_receive(list[index].opcode))
            .collect();
        prop_assert_eq!(received[peer].len(), arriving.len());
        for (entry, &index) in received[peer].iter().zip(&arriving) {
            prop_assert_eq!(
                (entry.wr_id, entry.byte_len),
                (index as u64, list[index].length)
            );
            if list[index].opcode.has_immediate() {
                prop_assert_eq!(entry.ex, (index as u32).to_be_bytes());
            }
        }
        let blank = |mut bytes: Vec<u8>| {
            bytes.resize(STRIDE as usize, 0);
            bytes
        };
        let mut counter = Counter { value: 0 };
        for (index, operation) in list.iter().enumerate() {
            let offset = index as u64 * STRIDE;
            let content = data(side, index, operation.length);
            let at = |process: usize, address| {
                world
                    .read(pairs[process].process.id, address, STRIDE)
                    .unwrap()
            };
            let written = if is_write(operation.opcode) {
                content.clone()
            } else {
                Vec::new()
            };
            prop_assert_eq!(
                at(peer, SLOTS + offset),
                blank(written),
                "slot of {}",
                index
            );
            let is_send = takes_receive(operation.opcode) && !is_write(operation.opcode);
            let delivered = if is_send { content.clone() } else { Vec::new() };
            // The counter lies behind the last receive request.
            prop_assert_eq!(
                at(peer, RECEIVES + offset),
                blank(delivered),
                "receive of {}",
                index
            );
            let result = match operation.opcode {
                SendOpcode::Read => {
                    let source = read_target(list, index);
                    let whole =
                        source.map_or(Vec::new(), |source| data(side, source, list[source].length));
                    let mut whole = blank(whole);
                    whole.truncate(operation.length as usize);
                    whole
                }
                opcode if opcode.is_atomic() => counter.apply(operation).to_ne_bytes().to_vec(),
                _ => Vec::new(),
            };
            prop_assert_eq!(
                at(side, RESULTS + offset),
                blank(result),
                "result of {}",
                index
            );
        }
        let value = world.read(pairs[peer].process.id, COUNTER, 8).unwrap();
        prop_assert_eq!(u64::from_ne_bytes(value.try_into().unwrap()), counter.value);
    }
    prop_assert_eq!(world.verbs.next_timer(), None);
    Ok(true)
}

/// Runs a property on 400 cases. Returns the cases in which all operations succeeded.
fn count<S: Strategy>(
    strategy: &S,
    property: impl Fn(S::Value) -> Result<bool, TestCaseError>,
) -> u32 {
    let config = ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let whole = std::cell::Cell::new(0);
    let result = TestRunner::new(config).run(strategy, |case| {
        whole.set(whole.get() + u32::from(property(case)?));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    whole.get()
}

fn any_operations() -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec(any_operation(), 0..=MOST)
}

#[test]
fn each_operation_takes_effect_once_and_in_order() {
    let strategy = (
        [any_operations(), any_operations()],
        any_channel(),
        0usize..16,
        prop::option::of(1u64..30),
        1u8..=5,
    );
    let whole = count(
        &strategy,
        |(lists, channel, late_receives, transfer_us, mtu)| {
            check(lists, channel, late_receives, transfer_us, mtu)
        },
    );
    // Retry counters run out in the others.
    assert!(whole >= 200, "{whole} of 400");
}

/// In order and with few losses, as a fabric is, no retry counter runs out.
#[test]
fn rare_losses_on_an_ordered_channel_never_fail() {
    let strategy = (
        [any_operations(), any_operations()],
        any::<u64>(),
        prop::option::of(1u64..5),
    );
    let whole = count(&strategy, |(lists, seed, transfer_us)| {
        let channel = Channel {
            loss: 5,
            doubling: 0,
            chaos: 1000,
            keeps_order: true,
            seed,
            packets: None,
        };
        check(lists, channel, 2, transfer_us, 1)
    });
    assert_eq!(whole, 400);
}

/// Go-back-N repeats packets, not messages: long requests come through where every message loses packets.
#[test]
fn lost_packets_change_nothing() {
    let strategy = (
        [any_operations(), any_operations()],
        (0u64..100, 0u64..3000, any::<u64>()),
        0usize..16,
        prop::option::of(1u64..5),
        1u8..=5,
    );
    let whole = count(
        &strategy,
        |(lists, (chance, chaos, seed), late_receives, transfer_us, mtu)| {
            let packets = PacketLoss {
                chance,
                chaos,
                seed,
            };
            let channel = Channel {
                loss: 0,
                doubling: 0,
                chaos: 0,
                keeps_order: true,
                seed,
                packets: Some(packets),
            };
            check(lists, channel, late_receives, transfer_us, mtu)
        },
    );
    assert!(whole >= 390, "{whole} of 400");
}
