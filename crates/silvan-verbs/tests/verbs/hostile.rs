//! Hostile programs: random bytes, wrong lengths, random handles, keys and addresses.

use proptest::prelude::*;
use silvan_verbs::abi::structures::*;
use silvan_verbs::abi::values::{QpType, SendOpcode};
use silvan_verbs::abi::{Command, Layout, emit, parse};

use crate::law;
use crate::world::*;

const EINVAL: i32 = 22;
const ENOMEM: i32 = 12;
const ENOSPC: i32 = 28;
const EOPNOTSUPP: i32 = 95;

fn run(world: &mut World, process: &Process, bytes: &[u8], inline: &[u8]) -> i32 {
    let reply = world
        .verbs
        .execute(world.now, process.context, bytes, inline);
    world.collect_actions();
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
fn queues_of_one_context_have_bounded_memory() {
    let mut world = World::new(1);
    let process = world.process(1);
    let (pd, cq) = (
        process.alloc_pd(&mut world),
        process.create_cq(&mut world, 4, -1),
    );
    let sizes = Sizes {
        sends: 16_384,
        receives: 16_384,
        elements: 32,
        ..Sizes::default()
    };
    let mut pairs = Vec::new();
    let refused = loop {
        match process.create_qp(&mut world, QpType::Rc, pd, cq, sizes) {
            Ok(pair) => pairs.push(pair),
            Err(errno) => break errno,
        }
    };
    assert_eq!(refused, ENOMEM);
    // 256 MiB over 16,384 times 32 elements of 16 bytes in each of two queues, and what else a request needs.
    assert!((8..16).contains(&pairs.len()), "{}", pairs.len());
    let whole = Command::CreateCq(CreateCq {
        cqe: 4_194_303,
        comp_channel: -1,
        ..CreateCq::default()
    });
    assert_eq!(process.call(&mut world, &whole), Err(ENOMEM));
    let resize = Command::ResizeCq(ResizeCq {
        cq_handle: cq,
        cqe: 4_194_303,
        ..ResizeCq::default()
    });
    assert_eq!(process.call(&mut world, &resize), Err(ENOMEM));
    // Another context has memory of its own, and destroyed queues free theirs.
    let other = world.process(1);
    other.call(&mut world, &whole).unwrap();
    for pair in pairs {
        let destroy = DestroyQp {
            qp_handle: pair.handle,
            ..DestroyQp::default()
        };
        process
            .call(&mut world, &Command::DestroyQp(destroy))
            .unwrap();
    }
    process.call(&mut world, &resize).unwrap();
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
        let mut scene = law::Scene::new();
        scene.write(&bytes, &bytes);
        law::play(&bytes);
    }

    /// Parsed bytes are emitted unchanged, up to bytes that belong to a driver.
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
        let mut scene = law::Scene::new();
        for (index, bytes) in commands.iter().enumerate() {
            scene.write(bytes, &[1; 64]);
            if let Some(&(opcode, key, address, length, uses_theirs)) = posts.get(index) {
                let keys = [scene.link.a_region.key, scene.link.b_region.key, scene.region.key];
                let lkey = if uses_theirs { keys[key as usize % 3] } else { key };
                let remote = match uses_theirs {
                    true => (BASE + address % SIZE, keys[address as usize % 3]),
                    false => (address, key),
                };
                let element = Sge { addr: BASE + address % SIZE, length, lkey };
                let opcode = SendOpcode::from_number(opcode).unwrap();
                let post = Post::new(1, opcode, vec![element]).to(remote.0, remote.1);
                let _ = scene.rc.send(&mut scene.world, std::slice::from_ref(&post));
                let _ = scene.uc.send(&mut scene.world, &[post]);
            }
        }
        scene.check();
    }
}
