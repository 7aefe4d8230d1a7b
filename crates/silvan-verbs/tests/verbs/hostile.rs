//! Hostile programs: random bytes, wrong lengths, random handles, keys and addresses.

use proptest::prelude::*;
use silvan_core::Time;
use silvan_verbs::abi::structures::*;
use silvan_verbs::abi::values::{QpState, QpType, SendOpcode};
use silvan_verbs::abi::{Command, Layout, emit, parse};

use crate::world::*;

const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
const EOPNOTSUPP: i32 = 95;

fn run(world: &mut World, process: &Process, bytes: &[u8], inline: &[u8]) -> i32 {
    let reply = world
        .verbs
        .execute(world.now, process.context, bytes, inline);
    world.settle();
    reply.errno
}

#[test]
fn lengths_are_checked_as_the_kernel_does() {
    let mut world = World::new(1);
    let process = world.process(1);
    let whole = emit(&Command::AllocPd(AllocPd::default()));
    for length in 0..8 {
        assert_eq!(run(&mut world, &process, &whole[..length], &[]), EINVAL);
    }
    let header = |command: u32, in_words: u16, out_words: u16| {
        CommandHeader {
            command,
            in_words,
            out_words,
        }
        .to_bytes()
    };
    // A length that is not that of the write.
    assert_eq!(run(&mut world, &process, &header(3, 3, 1), &[]), EINVAL);
    // Command or response too short.
    assert_eq!(run(&mut world, &process, &header(3, 2, 1), &[]), ENOSPC);
    let mut short = whole.clone();
    short[6..8].copy_from_slice(&0u16.to_ne_bytes());
    assert_eq!(run(&mut world, &process, &short, &[]), ENOSPC);
    // Bytes behind the structure belong to a driver.
    let mut long = whole.clone();
    long.extend([0xff; 16]);
    long[4..6].copy_from_slice(&8u16.to_ne_bytes());
    assert_eq!(run(&mut world, &process, &long, &[]), 0);
    assert_eq!(run(&mut world, &process, &whole, &[]), 0);
    for (command, errno) in [
        (0x8000_0003, EOPNOTSUPP),
        (41, EINVAL),
        (u32::MAX >> 1, EINVAL),
        (11, EOPNOTSUPP),
        (37, EOPNOTSUPP),
    ] {
        assert_eq!(
            run(&mut world, &process, &header(command, 2, 0), &[]),
            errno,
            "{command:#x}"
        );
    }
}

#[test]
fn lists_of_requests_must_lie_within_the_command() {
    let mut world = World::new(2);
    let link = link(&mut world, QpType::Rc, Sizes::default(), Tuning::default());
    let request = SendWr {
        num_sge: 1,
        opcode: SendOpcode::Write.number(),
        ..SendWr::default()
    };
    let counts = [
        (1, 0, 56), // no element is left
        (2, 1, 56),
        (1, 2, 56),
        (1, 1, 55),
        (1, 1, 0),
        (u32::MAX, 1, 56),
        (1, u32::MAX, 56),
        (u32::MAX, u32::MAX, u32::MAX),
        (1, 1, u32::MAX),
    ];
    for (wr_count, sge_count, wqe_size) in counts {
        let front = PostSend {
            qp_handle: link.a.handle,
            wr_count,
            sge_count,
            wqe_size,
            ..PostSend::default()
        };
        let bytes = emit(&Command::PostSend(
            front,
            vec![(request, vec![sge(link.a_region, BASE, 4)])],
        ));
        assert_eq!(
            run(&mut world, &link.a.process, &bytes, &[]),
            EINVAL,
            "{wr_count} {sge_count} {wqe_size}"
        );
    }
    world.run();
    assert!(world.injected.is_empty());
}

#[test]
fn inline_data_beyond_what_was_read_are_refused() {
    let mut world = World::new(2);
    let link = link(&mut world, QpType::Rc, Sizes::default(), Tuning::default());
    let request = SendWr {
        num_sge: 1,
        opcode: SendOpcode::Send.number(),
        send_flags: 8,
        ..SendWr::default()
    };
    for (length, inline, errno) in [
        (8, 7, EINVAL),
        (8, 8, 0),
        (257, 257, EINVAL),
        (u32::MAX, 0, EINVAL),
    ] {
        let front = PostSend {
            qp_handle: link.a.handle,
            wr_count: 1,
            sge_count: 1,
            wqe_size: 56,
            ..PostSend::default()
        };
        let element = Sge {
            addr: 0,
            length,
            lkey: 0,
        };
        let bytes = emit(&Command::PostSend(front, vec![(request, vec![element])]));
        assert_eq!(
            run(&mut world, &link.a.process, &bytes, &vec![1; inline]),
            errno
        );
    }
}

/// A command with plausible and implausible fields: small numbers find handles, others do not.
fn any_command() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![6 => (0u32..8).boxed(), 1 => any::<u32>().boxed(), 1 => Just(u32::MAX).boxed(), 1 => (250u32..300).boxed()];
    let number = prop_oneof![10 => (0u32..42).boxed(), 1 => any::<u32>().boxed()];
    let length = prop_oneof![4 => Just(true), 1 => Just(false)];
    (
        number,
        prop::collection::vec(word, 0..60),
        any::<u16>(),
        length,
    )
        .prop_map(|(number, words, out, is_exact)| {
            let in_words = if is_exact {
                words.len() as u16 + 2
            } else {
                out
            };
            let mut bytes = CommandHeader {
                command: number,
                in_words,
                out_words: out | 64,
            }
            .to_bytes();
            for word in words {
                word.write(&mut bytes);
            }
            bytes
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
        let mut world = World::new(1);
        let process = world.process(1);
        run(&mut world, &process, &bytes, &bytes);
    }

    /// What is parsed is emitted as it was, up to bytes that belong to a driver.
    #[test]
    fn commands_survive_a_round_trip(bytes in any_command()) {
        if let Ok(command) = parse(&bytes) {
            let again = emit(&command);
            prop_assert_eq!(parse(&again), Ok(command));
        }
    }

    /// A process sends anything at all while two others exchange data: theirs is delivered, and no byte of theirs changes
    /// or leaves by the hostile one.
    #[test]
    fn hostile_process_reaches_no_memory_of_others(
        commands in prop::collection::vec(any_command(), 1..120),
        posts in prop::collection::vec((0u32..7, any::<u32>(), any::<u64>(), 0u32..64, any::<bool>()), 0..40),
    ) {
        let mut world = World::new(2);
        let link = link(&mut world, QpType::Rc, Sizes::default(), Tuning::default());
        let hostile = world.process(1);
        // The hostile process has objects of its own, and queue pairs that name those of the others.
        let pair = hostile.pair(&mut world, QpType::Rc, Sizes::default());
        let region = hostile.reg_mr(&mut world, pair.pd, BASE, SIZE);
        let uc = hostile.pair(&mut world, QpType::Uc, Sizes::default());
        pair.bring_to(&mut world, QpState::Rts, (2, link.b.number), Tuning { timeout: 1, retries: 0, ..Tuning::default() });
        uc.bring_to(&mut world, QpState::Rts, (2, link.b.number), Tuning::default());
        let secret = vec![0x5a; SIZE as usize / 2];
        let blank = vec![0; SIZE as usize / 2];
        let middle = BASE + SIZE / 2;
        for process in [link.a.process, link.b.process] {
            world.write(process.id, BASE, &secret);
        }
        link.b.receive(&mut world, 77, vec![sge(link.b_region, middle, 64)]).unwrap();
        for (index, bytes) in commands.iter().enumerate() {
            run(&mut world, &hostile, bytes, &[1; 64]);
            if let Some(&(opcode, key, address, length, uses_theirs)) = posts.get(index) {
                let keys = [link.a_region.key, link.b_region.key, region.key];
                let lkey = if uses_theirs { keys[key as usize % 3] } else { key };
                let remote = if uses_theirs { (BASE + address % SIZE, keys[address as usize % 3]) } else { (address, key) };
                let element = Sge { addr: BASE + address % SIZE, length, lkey };
                let opcode = SendOpcode::from_number(opcode).unwrap();
                let post = Post::new(1, opcode, vec![element]).to(remote.0, remote.1);
                let _ = pair.send(&mut world, &[post.clone()]);
                let _ = uc.send(&mut world, &[post]);
            }
        }
        let until = world.now.as_ps() + 1_000_000_000;
        world.run_until(Time::from_ps(until));
        // The others still exchange data.
        world.write(link.a.process.id, middle, b"still here");
        link.a.send(&mut world, &[Post::new(5, SendOpcode::Send, vec![sge(link.a_region, middle, 10)])]).unwrap();
        let until = world.now.as_ps() + 1_000_000_000;
        world.run_until(Time::from_ps(until));
        let done = link.b.poll(&mut world);
        prop_assert_eq!(done.len(), 1);
        prop_assert_eq!((done[0].wr_id, done[0].status, done[0].byte_len), (77, 0, 10));
        prop_assert_eq!(world.read(link.b.process.id, middle, 10).unwrap(), b"still here".to_vec());
        for process in [link.a.process, link.b.process] {
            prop_assert_eq!(&world.read(process.id, BASE, SIZE / 2).unwrap(), &secret);
        }
        prop_assert_eq!(&world.read(link.a.process.id, middle + 10, SIZE / 2 - 10).unwrap(), &blank[10..]);
        let seen = world.read(hostile.id, BASE, SIZE).unwrap();
        prop_assert!(!seen.contains(&0x5a), "a secret was read");
    }
}
