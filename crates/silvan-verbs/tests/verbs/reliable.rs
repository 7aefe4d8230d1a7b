//! RC between two processes: data, completions, retries, errors.

use crate::world::*;
use silvan_core::{Span, Time};
use silvan_verbs::MessageKind;
use silvan_verbs::abi::structures::Sge;
use silvan_verbs::abi::values::{
    CompletionOpcode, EventType, QpState, QpType, SendOpcode, Status, access, completion_flags,
    send_flags,
};

const OK: u32 = Status::Success as u32;

fn rc(world: &mut World) -> Link {
    link(world, QpType::Rc, Sizes::default(), Tuning::default())
}

/// Bytes that differ from place to place.
fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length)
        .map(|index| (index as u8).wrapping_mul(31).wrapping_add(seed))
        .collect()
}

fn statuses(completions: &[silvan_verbs::abi::structures::WorkCompletion]) -> Vec<(u64, u32)> {
    completions
        .iter()
        .map(|entry| (entry.wr_id, entry.status))
        .collect()
}

#[test]
fn send_scatters_what_it_gathers() {
    let mut world = World::new(2);
    let link = rc(&mut world);
    let data = pattern(1000, 3);
    world.write(link.a.process.id, BASE, &data);
    let into = vec![
        sge(link.b_region, BASE + 8000, 300),
        sge(link.b_region, BASE, 900),
    ];
    link.b.receive(&mut world, 7, into).unwrap();
    let from = vec![
        sge(link.a_region, BASE, 10),
        sge(link.a_region, BASE + 10, 0),
        sge(link.a_region, BASE + 10, 990),
    ];
    let mut post = Post::new(1, SendOpcode::SendWithImmediate, from);
    post.immediate = [1, 2, 3, 4];
    link.a.send(&mut world, &[post]).unwrap();
    world.run();
    let received = link.b.poll(&mut world);
    assert_eq!(received.len(), 1);
    let entry = received[0];
    assert_eq!((entry.wr_id, entry.status, entry.byte_len), (7, OK, 1000));
    assert_eq!(entry.opcode, CompletionOpcode::Receive.number());
    assert_eq!(
        (entry.wc_flags, entry.ex),
        (completion_flags::WITH_IMMEDIATE, [1, 2, 3, 4])
    );
    assert_eq!(
        (entry.qp_num, entry.src_qp, entry.slid, entry.port_num),
        (link.b.number, link.a.number, 1, 1)
    );
    assert_eq!(statuses(&link.a.poll(&mut world)), [(1, OK)]);
    let target = link.b.process.id;
    assert_eq!(world.read(target, BASE + 8000, 300).unwrap(), data[..300]);
    assert_eq!(world.read(target, BASE, 700).unwrap(), data[300..]);
    assert_eq!(world.read(target, BASE + 700, 200).unwrap(), vec![0; 200]);
}

#[test]
fn inline_data_are_those_at_the_time_of_the_post() {
    let mut world = World::new(2);
    let link = rc(&mut world);
    world.write(link.a.process.id, BASE, b"before");
    link.b
        .receive(&mut world, 1, vec![sge(link.b_region, BASE, 64)])
        .unwrap();
    // Inline data need no key.
    let element = Sge {
        addr: BASE,
        length: 6,
        lkey: 0xdead,
    };
    link.a
        .send(
            &mut world,
            &[Post::new(1, SendOpcode::Send, vec![element]).flags(send_flags::INLINE)],
        )
        .unwrap();
    world.write(link.a.process.id, BASE, b"after!");
    world.run();
    assert_eq!(world.read(link.b.process.id, BASE, 6).unwrap(), b"before");
}

#[test]
fn write_read_and_atomics_reach_the_remote_memory() {
    let mut world = World::new(2);
    let link = rc(&mut world);
    let (near, far) = (link.a.process.id, link.b.process.id);
    let data = pattern(600, 9);
    world.write(near, BASE, &data);
    world.write(far, BASE + 4096, &41u64.to_ne_bytes());
    let key = link.b_region.key;
    let local = |offset, length| vec![sge(link.a_region, BASE + offset, length)];
    let mut add = Post::new(3, SendOpcode::FetchAndAdd, local(2000, 8)).to(BASE + 4096, key);
    add.operands = (1, 0);
    let mut swap = Post::new(4, SendOpcode::CompareAndSwap, local(2008, 8)).to(BASE + 4096, key);
    swap.operands = (42, 7);
    let mut miss = Post::new(5, SendOpcode::CompareAndSwap, local(2016, 8)).to(BASE + 4096, key);
    miss.operands = (42, 9);
    let posts = [
        Post::new(1, SendOpcode::Write, local(0, 600)).to(BASE + 100, key),
        Post::new(2, SendOpcode::Read, local(1000, 500)).to(BASE + 150, key),
        add,
        swap,
        miss,
    ];
    link.a.send(&mut world, &posts).unwrap();
    world.run();
    let done = link.a.poll(&mut world);
    assert_eq!(
        statuses(&done),
        [(1, OK), (2, OK), (3, OK), (4, OK), (5, OK)]
    );
    let opcodes: Vec<u32> = done.iter().map(|entry| entry.opcode).collect();
    assert_eq!(opcodes, [1, 2, 4, 3, 3]);
    assert_eq!(world.read(far, BASE + 100, 600).unwrap(), data);
    assert_eq!(world.read(near, BASE + 1000, 500).unwrap(), data[50..550]);
    let value = |world: &World, process, address| {
        u64::from_ne_bytes(world.read(process, address, 8).unwrap().try_into().unwrap())
    };
    assert_eq!(value(&world, far, BASE + 4096), 7);
    assert_eq!(
        [2000, 2008, 2016].map(|offset| value(&world, near, BASE + offset)),
        [41, 42, 7]
    );
    assert!(link.b.poll(&mut world).is_empty());
}

#[test]
fn write_with_immediate_takes_a_receive_request_and_no_memory_of_it() {
    let mut world = World::new(2);
    let link = rc(&mut world);
    world.write(link.a.process.id, BASE, b"abcd");
    link.b.receive(&mut world, 5, Vec::new()).unwrap();
    let mut post = Post::new(
        1,
        SendOpcode::WriteWithImmediate,
        vec![sge(link.a_region, BASE, 4)],
    )
    .to(BASE + 64, link.b_region.key);
    post.immediate = [9, 8, 7, 6];
    link.a.send(&mut world, &[post]).unwrap();
    world.run();
    let entry = link.b.poll(&mut world)[0];
    assert_eq!(
        entry.opcode,
        CompletionOpcode::ReceiveWriteWithImmediate.number()
    );
    assert_eq!(
        (entry.wr_id, entry.byte_len, entry.ex),
        (5, 4, [9, 8, 7, 6])
    );
    assert_eq!(
        world.read(link.b.process.id, BASE + 64, 4).unwrap(),
        b"abcd"
    );
}

#[test]
fn only_signalled_requests_complete_unless_the_queue_pair_signals_all() {
    for signal_all in [false, true] {
        let mut world = World::new(2);
        let sizes = Sizes {
            signal_all,
            ..Sizes::default()
        };
        let link = link(&mut world, QpType::Rc, sizes, Tuning::default());
        let post = |id, flags| {
            Post::new(id, SendOpcode::Write, vec![sge(link.a_region, BASE, 4)])
                .to(BASE, link.b_region.key)
                .flags(flags)
        };
        link.a
            .send(
                &mut world,
                &[post(1, 0), post(2, send_flags::SIGNALED), post(3, 0)],
            )
            .unwrap();
        world.run();
        let ids: Vec<u64> = link
            .a
            .poll(&mut world)
            .iter()
            .map(|entry| entry.wr_id)
            .collect();
        assert_eq!(ids, if signal_all { vec![1, 2, 3] } else { vec![2] });
    }
}

#[test]
fn lost_messages_end_in_retry_exceeded_after_the_time_of_the_parameters() {
    for (timeout, retries) in [(1, 0), (5, 2), (8, 7), (14, 3)] {
        let mut world = World::new(2);
        let tuning = Tuning {
            timeout,
            retries,
            ..Tuning::default()
        };
        let link = link(&mut world, QpType::Rc, Sizes::default(), tuning);
        world.fate = Box::new(|_, _| Fate::Lose);
        let post = |id| {
            Post::new(id, SendOpcode::Write, vec![sge(link.a_region, BASE, 4)])
                .to(BASE, link.b_region.key)
        };
        link.a
            .send(&mut world, &[post(1), post(2).flags(0)])
            .unwrap();
        world.run();
        // Each of the attempts waits 4.096 us times 2^timeout.
        let expected = (u64::from(retries) + 1) * (4_096_000 << timeout);
        assert_eq!(world.now, Time::from_ps(expected));
        let done = link.a.poll(&mut world);
        assert_eq!(
            statuses(&done),
            [
                (1, Status::RetryExceeded.number()),
                (2, Status::Flushed.number())
            ]
        );
        assert_eq!(link.a.state(&mut world), QpState::Err);
        assert_eq!(world.injected.len(), 2 * (usize::from(retries) + 1));
    }
}

#[test]
fn timeout_zero_never_ends() {
    let mut world = World::new(2);
    let tuning = Tuning {
        timeout: 0,
        ..Tuning::default()
    };
    let link = link(&mut world, QpType::Rc, Sizes::default(), tuning);
    world.fate = Box::new(|_, _| Fate::Lose);
    link.a
        .send(&mut world, &[Post::new(1, SendOpcode::Send, Vec::new())])
        .unwrap();
    world.run();
    assert!(link.a.poll(&mut world).is_empty());
    assert_eq!(world.verbs.next_timer(), None);
}

#[test]
fn restored_path_completes_before_the_retries_end() {
    let mut world = World::new(2);
    let link = rc(&mut world);
    let step = 4_096_000 << 8;
    world.fate = Box::new(move |now, _| match now.as_ps() < 3 * step {
        true => Fate::Lose,
        false => Fate::Arrive(LATENCY),
    });
    link.a
        .send(
            &mut world,
            &[
                Post::new(1, SendOpcode::Write, vec![sge(link.a_region, BASE, 4)])
                    .to(BASE, link.b_region.key),
            ],
        )
        .unwrap();
    world.run();
    assert_eq!(statuses(&link.a.poll(&mut world)), [(1, OK)]);
    assert_eq!(world.now, Time::from_ps(3 * step) + LATENCY + LATENCY);
}

#[test]
fn receiver_without_requests_ends_in_rnr_after_the_time_of_the_table() {
    // Codes and delays in microseconds of table 45.
    for (code, delay, retries) in [
        (1, 10, 1),
        (12, 640, 3),
        (0, 655_360, 6),
        (31, 491_520, 2),
        (20, 10_240, 0),
    ] {
        let mut world = World::new(2);
        let tuning = Tuning {
            rnr_timer: code,
            rnr_retries: retries,
            timeout: 20,
            ..Tuning::default()
        };
        let link = link(&mut world, QpType::Rc, Sizes::default(), tuning);
        link.a
            .send(&mut world, &[Post::new(1, SendOpcode::Send, Vec::new())])
            .unwrap();
        world.run();
        let done = statuses(&link.a.poll(&mut world));
        assert_eq!(done, [(1, Status::RnrRetryExceeded.number())]);
        let round = 2 * LATENCY.as_ps();
        let expected = (u64::from(retries) + 1) * round + u64::from(retries) * delay * 1_000_000;
        assert_eq!(world.now.as_ps(), expected, "code {code}");
    }
}

#[test]
fn rnr_retry_7_never_ends() {
    let mut world = World::new(2);
    let link = rc(&mut world);
    link.a
        .send(&mut world, &[Post::new(1, SendOpcode::Send, Vec::new())])
        .unwrap();
    world.run_until(Time::from_ps(1_000_000_000_000));
    assert!(world.injected.len() > 10_000);
    assert!(link.a.poll(&mut world).is_empty());
    link.b.receive(&mut world, 2, Vec::new()).unwrap();
    world.run();
    assert_eq!(statuses(&link.a.poll(&mut world)), [(1, OK)]);
    assert_eq!(statuses(&link.b.poll(&mut world)), [(2, OK)]);
}

/// Posts one request that the responder refuses, and one behind it. Returns status and events of both sides.
fn refused(
    access: u32,
    rights: u32,
    make: impl Fn(&Link) -> Post,
) -> (Vec<(u64, u32)>, Vec<u32>, QpState) {
    let mut world = World::new(2);
    let tuning = Tuning {
        access,
        ..Tuning::default()
    };
    let mut link = link(&mut world, QpType::Rc, Sizes::default(), tuning);
    let process = link.b.process;
    link.b_region = process
        .try_reg_mr(&mut world, link.b.pd, BASE + 4096, 4096, rights)
        .unwrap();
    let next = Post::new(2, SendOpcode::Send, Vec::new()).flags(0);
    link.a.send(&mut world, &[make(&link), next]).unwrap();
    world.run();
    let events = process
        .events(&mut world)
        .iter()
        .map(|event| event.0)
        .collect();
    let done = statuses(&link.a.poll(&mut world));
    assert_eq!(link.a.state(&mut world), QpState::Err);
    assert!(
        world.memory[&process.id].iter().all(|byte| *byte == 0),
        "memory changed"
    );
    (done, events, link.b.state(&mut world))
}

#[test]
fn remote_access_needs_key_range_and_rights() {
    let flushed = (2, Status::Flushed.number());
    let access_error = [(1, Status::RemoteAccess.number()), flushed];
    let violation = vec![EventType::QpAccessError.number()];
    let operations = [SendOpcode::Write, SendOpcode::Read, SendOpcode::FetchAndAdd];
    let needed = [
        access::REMOTE_WRITE,
        access::REMOTE_READ,
        access::REMOTE_ATOMIC,
    ];
    for (opcode, right) in operations.into_iter().zip(needed) {
        let post = move |address, key_change: u32| {
            move |link: &Link| {
                Post::new(1, opcode, vec![sge(link.a_region, BASE, 8)])
                    .to(address, link.b_region.key ^ key_change)
            }
        };
        let whole = BASE + 4096;
        let cases = [
            (ALL_RIGHTS, ALL_RIGHTS, whole - 8, 0),
            (ALL_RIGHTS, ALL_RIGHTS, whole + 4096, 0),
            (ALL_RIGHTS, ALL_RIGHTS, u64::MAX - 7, 0),
            (ALL_RIGHTS, ALL_RIGHTS, whole, 1),
            (ALL_RIGHTS, ALL_RIGHTS, whole, 0xff00_0000),
            (ALL_RIGHTS & !right, ALL_RIGHTS, whole, 0),
            (ALL_RIGHTS, ALL_RIGHTS & !right, whole, 0),
        ];
        for (access, rights, address, key_change) in cases {
            let (done, events, state) = refused(access, rights, post(address, key_change));
            assert_eq!(
                done, access_error,
                "{opcode:?} {access} {rights} {address:#x} {key_change}"
            );
            assert_eq!((events, state), (violation.clone(), QpState::Err));
        }
    }
}

#[test]
fn misaligned_atomic_is_an_invalid_request() {
    let (done, events, _) = refused(ALL_RIGHTS, ALL_RIGHTS, |link| {
        Post::new(
            1,
            SendOpcode::FetchAndAdd,
            vec![sge(link.a_region, BASE, 8)],
        )
        .to(BASE + 4100, link.b_region.key)
    });
    assert_eq!(done[0], (1, Status::RemoteInvalidRequest.number()));
    assert_eq!(events, [EventType::QpRequestError.number()]);
}

#[test]
fn local_memory_needs_key_range_and_rights() {
    let cases: [(SendOpcode, u32, u64, u32); 4] = [
        (SendOpcode::Send, 0, SIZE - 4, 8),
        (SendOpcode::Send, 1, 0, 8),
        (SendOpcode::Write, 0xffff_ffff, 0, 8),
        (SendOpcode::Read, 0, SIZE - 4, 8),
    ];
    for (opcode, key_change, offset, length) in cases {
        let mut world = World::new(2);
        let link = rc(&mut world);
        link.b
            .receive(&mut world, 9, vec![sge(link.b_region, BASE, 64)])
            .unwrap();
        let mut element = sge(link.a_region, BASE + offset, length);
        element.lkey ^= key_change;
        let bad = Post::new(2, opcode, vec![element]).to(BASE, link.b_region.key);
        let good = Post::new(1, SendOpcode::Write, vec![sge(link.a_region, BASE, 4)])
            .to(BASE, link.b_region.key);
        link.a.send(&mut world, &[good, bad]).unwrap();
        world.run();
        let done = statuses(&link.a.poll(&mut world));
        assert_eq!(
            done,
            [(1, OK), (2, Status::LocalProtection.number())],
            "{opcode:?}"
        );
        assert_eq!(link.a.state(&mut world), QpState::Err);
        assert_eq!(link.b.state(&mut world), QpState::Rts);
        assert!(link.b.poll(&mut world).is_empty());
    }
}

#[test]
fn read_needs_a_local_right_to_write() {
    let mut world = World::new(2);
    let link = rc(&mut world);
    let region = link
        .a
        .process
        .try_reg_mr(&mut world, link.a.pd, BASE, 64, access::REMOTE_READ)
        .unwrap();
    link.a
        .send(
            &mut world,
            &[Post::new(1, SendOpcode::Read, vec![sge(region, BASE, 8)])
                .to(BASE, link.b_region.key)],
        )
        .unwrap();
    world.run();
    assert_eq!(
        statuses(&link.a.poll(&mut world)),
        [(1, Status::LocalProtection.number())]
    );
}

#[test]
fn message_longer_than_the_receive_request_fails_on_both_sides() {
    let mut world = World::new(2);
    let link = rc(&mut world);
    link.b
        .receive(&mut world, 5, vec![sge(link.b_region, BASE, 7)])
        .unwrap();
    link.b
        .receive(&mut world, 6, vec![sge(link.b_region, BASE, 7)])
        .unwrap();
    link.a
        .send(
            &mut world,
            &[Post::new(
                1,
                SendOpcode::Send,
                vec![sge(link.a_region, BASE, 8)],
            )],
        )
        .unwrap();
    world.run();
    let near = statuses(&link.a.poll(&mut world));
    let far = statuses(&link.b.poll(&mut world));
    assert_eq!(near, [(1, Status::RemoteInvalidRequest.number())]);
    assert_eq!(
        far,
        [
            (5, Status::LocalLength.number()),
            (6, Status::Flushed.number())
        ]
    );
}

#[test]
fn receive_request_of_foreign_memory_fails_on_both_sides() {
    let mut world = World::new(2);
    let link = rc(&mut world);
    // The key belongs to another process.
    link.b
        .receive(
            &mut world,
            5,
            vec![Sge {
                addr: BASE,
                length: 64,
                lkey: link.a_region.key,
            }],
        )
        .unwrap();
    link.a
        .send(
            &mut world,
            &[Post::new(
                1,
                SendOpcode::Send,
                vec![sge(link.a_region, BASE, 8)],
            )],
        )
        .unwrap();
    world.run();
    assert_eq!(
        statuses(&link.a.poll(&mut world)),
        [(1, Status::RemoteOperation.number())]
    );
    assert_eq!(
        statuses(&link.b.poll(&mut world)),
        [(5, Status::LocalProtection.number())]
    );
}

#[test]
fn memory_that_is_not_there_is_an_error_of_its_owner() {
    // Registered, but beyond the process's memory.
    for is_local in [true, false] {
        let mut world = World::new(2);
        let link = rc(&mut world);
        let ghost = BASE + 2 * SIZE;
        let near = link.a.process.reg_mr(&mut world, link.a.pd, ghost, 64);
        let far = link.b.process.reg_mr(&mut world, link.b.pd, ghost, 64);
        let post = match is_local {
            true => Post::new(1, SendOpcode::Write, vec![sge(near, ghost, 8)])
                .to(BASE, link.b_region.key),
            false => Post::new(1, SendOpcode::Write, vec![sge(link.a_region, BASE, 8)])
                .to(ghost, far.key),
        };
        link.a.send(&mut world, &[post]).unwrap();
        world.run();
        let (status, state) = match is_local {
            true => (Status::LocalProtection, QpState::Rts),
            false => (Status::RemoteOperation, QpState::Err),
        };
        assert_eq!(statuses(&link.a.poll(&mut world)), [(1, status.number())]);
        assert_eq!(link.b.state(&mut world), state);
    }
}

#[test]
fn reads_in_flight_stay_within_the_limit() {
    let mut world = World::new(2);
    let tuning = Tuning {
        reads: 2,
        ..Tuning::default()
    };
    let link = link(&mut world, QpType::Rc, Sizes::default(), tuning);
    let posts: Vec<Post> = (0..7)
        .map(|id| {
            Post::new(id, SendOpcode::Read, vec![sge(link.a_region, BASE, 8)])
                .to(BASE, link.b_region.key)
        })
        .collect();
    link.a.send(&mut world, &posts).unwrap();
    world.run();
    let at = |kind| -> Vec<u64> {
        world
            .injected
            .iter()
            .filter(|entry| entry.1.kind == kind)
            .map(|entry| entry.0.as_ps())
            .collect()
    };
    let round = 2 * LATENCY.as_ps();
    assert_eq!(
        at(MessageKind::Request),
        [0, 0, round, round, 2 * round, 2 * round, 3 * round]
    );
    assert_eq!(link.a.poll(&mut world).len(), 7);
}

#[test]
fn fence_waits_for_earlier_reads() {
    for fence in [0, send_flags::FENCE] {
        let mut world = World::new(2);
        let link = rc(&mut world);
        let key = link.b_region.key;
        world.write(link.b.process.id, BASE, b"new!");
        world.write(link.a.process.id, BASE + 100, b"old!");
        let posts = [
            Post::new(1, SendOpcode::Read, vec![sge(link.a_region, BASE + 100, 4)]).to(BASE, key),
            Post::new(
                2,
                SendOpcode::Write,
                vec![sge(link.a_region, BASE + 100, 4)],
            )
            .to(BASE + 8, key)
            .flags(fence),
        ];
        link.a.send(&mut world, &posts).unwrap();
        world.run();
        let second = world
            .injected
            .iter()
            .filter(|entry| entry.1.kind == MessageKind::Request)
            .nth(1)
            .unwrap();
        let expected = if fence == 0 { 0 } else { 2 * LATENCY.as_ps() };
        assert_eq!(second.0.as_ps(), expected);
        if fence != 0 {
            assert_eq!(world.read(link.b.process.id, BASE + 8, 4).unwrap(), b"new!");
        }
    }
}

#[test]
fn messages_have_the_bytes_of_their_packets() {
    let mut world = World::new(2);
    let link = rc(&mut world);
    let key = link.b_region.key;
    link.b
        .receive(&mut world, 1, vec![sge(link.b_region, BASE, 600)])
        .unwrap();
    let local = |length| vec![sge(link.a_region, BASE, length)];
    let posts = [
        Post::new(1, SendOpcode::Send, local(513)),
        Post::new(2, SendOpcode::Write, local(256)).to(BASE, key),
        Post::new(3, SendOpcode::Read, local(513)).to(BASE, key),
        Post::new(4, SendOpcode::FetchAndAdd, local(8)).to(BASE, key),
    ];
    link.a.send(&mut world, &posts).unwrap();
    world.run();
    let mut sizes: Vec<(MessageKind, u64, u32, u64)> = world
        .injected
        .iter()
        .map(|(_, message)| {
            (
                message.kind,
                message.payload_bytes,
                message.packets,
                message.wire_bytes,
            )
        })
        .collect();
    sizes.sort_by_key(|size| format!("{:?}", size.0));
    use MessageKind::{Acknowledge, Request, Response};
    // 26 bytes of each packet; RETH 16, AETH 4, AtomicETH 28, AtomicAckETH 8; data padded to 4 bytes.
    let expected = [
        (Acknowledge, 0, 1, 30),
        (Acknowledge, 0, 1, 30),
        (Request, 513, 3, 516 + 3 * 26),
        (Request, 256, 1, 256 + 26 + 16),
        (Request, 0, 1, 26 + 16),
        (Request, 0, 1, 26 + 28),
        (Response, 513, 3, 516 + 3 * 26 + 8),
        (Response, 0, 1, 26 + 12),
    ];
    assert_eq!(sizes, expected);
}

#[test]
fn wrong_pkey_is_counted_and_times_out() {
    let mut world = World::new(2);
    let (first, second) = (world.process(1), world.process(2));
    let (a, b) = (
        first.pair(&mut world, QpType::Rc, Sizes::default()),
        second.pair(&mut world, QpType::Rc, Sizes::default()),
    );
    let tuning = Tuning {
        retries: 1,
        ..Tuning::default()
    };
    a.bring_to(
        &mut world,
        QpState::Rts,
        (2, b.number),
        Tuning {
            pkey_index: 1,
            ..tuning
        },
    );
    b.bring_to(&mut world, QpState::Rts, (1, a.number), tuning);
    b.receive(&mut world, 1, Vec::new()).unwrap();
    a.send(&mut world, &[Post::new(1, SendOpcode::Send, Vec::new())])
        .unwrap();
    world.run();
    assert_eq!(
        statuses(&a.poll(&mut world)),
        [(1, Status::RetryExceeded.number())]
    );
    use silvan_verbs::abi::structures::{QueryPort, QueryPortResponse};
    use silvan_verbs::abi::{Command, Layout};
    let query = Command::QueryPort(QueryPort {
        port_num: 1,
        ..QueryPort::default()
    });
    let port = QueryPortResponse::parse(&second.call(&mut world, &query).unwrap()).unwrap();
    assert_eq!(port.bad_pkey_cntr, 2);
}

#[test]
fn limited_members_of_a_partition_do_not_meet() {
    for (indices, is_delivered) in [((2, 2), false), ((0, 0), true)] {
        let mut world = World::new(2);
        let (first, second) = (world.process(1), world.process(2));
        let (a, b) = (
            first.pair(&mut world, QpType::Rc, Sizes::default()),
            second.pair(&mut world, QpType::Rc, Sizes::default()),
        );
        let tuning = |pkey_index| Tuning {
            pkey_index,
            retries: 0,
            ..Tuning::default()
        };
        a.bring_to(&mut world, QpState::Rts, (2, b.number), tuning(indices.0));
        b.bring_to(&mut world, QpState::Rts, (1, a.number), tuning(indices.1));
        b.receive(&mut world, 1, Vec::new()).unwrap();
        a.send(&mut world, &[Post::new(1, SendOpcode::Send, Vec::new())])
            .unwrap();
        world.run();
        assert_eq!(b.poll(&mut world).len(), usize::from(is_delivered));
    }
}

#[test]
fn error_state_flushes_both_queues_in_order() {
    let mut world = World::new(2);
    let link = rc(&mut world);
    for id in 10..13 {
        link.a.receive(&mut world, id, Vec::new()).unwrap();
    }
    world.fate = Box::new(|_, _| Fate::Arrive(Span::from_secs(1)));
    let posts: Vec<Post> = (0..4)
        .map(|id| Post::new(id, SendOpcode::Send, Vec::new()).flags(0))
        .collect();
    link.a.send(&mut world, &posts).unwrap();
    link.a.set_state(&mut world, QpState::Err).unwrap();
    // Work that is posted later is flushed, too.
    link.a
        .send(&mut world, &[Post::new(4, SendOpcode::Send, Vec::new())])
        .unwrap();
    link.a.receive(&mut world, 13, Vec::new()).unwrap();
    let flushed = Status::Flushed.number();
    let expected: Vec<(u64, u32)> = [0, 1, 2, 3, 10, 11, 12, 4, 13]
        .map(|id| (id, flushed))
        .to_vec();
    assert_eq!(statuses(&link.a.poll(&mut world)), expected);
    world.run();
    assert!(link.a.poll(&mut world).is_empty());
    link.a.set_state(&mut world, QpState::Reset).unwrap();
    assert!(link.a.receive(&mut world, 1, Vec::new()).is_err());
}

#[test]
fn drained_send_queue_finishes_what_is_in_flight_and_starts_nothing() {
    let mut world = World::new(2);
    let tuning = Tuning {
        reads: 1,
        ..Tuning::default()
    };
    let link = link(&mut world, QpType::Rc, Sizes::default(), tuning);
    let posts: Vec<Post> = (0..2)
        .map(|id| {
            Post::new(id, SendOpcode::Read, vec![sge(link.a_region, BASE, 8)])
                .to(BASE, link.b_region.key)
        })
        .collect();
    link.a.send(&mut world, &posts).unwrap();
    use silvan_verbs::abi::structures::ModifyQp;
    use silvan_verbs::abi::values::qp_mask;
    let drain = ModifyQp {
        attr_mask: qp_mask::STATE | qp_mask::EN_SQD_ASYNC_NOTIFY,
        qp_state: QpState::Sqd.number() as u8,
        en_sqd_async_notify: 1,
        ..ModifyQp::default()
    };
    link.a.modify(&mut world, drain).unwrap();
    assert_eq!(link.a.query(&mut world).sq_draining, 1);
    assert!(link.a.process.events(&mut world).is_empty());
    world.run();
    assert_eq!(statuses(&link.a.poll(&mut world)), [(0, OK)]);
    assert_eq!(link.a.query(&mut world).sq_draining, 0);
    assert_eq!(
        link.a.process.events(&mut world),
        [(EventType::SqDrained.number(), 0x9000)]
    );
    link.a.set_state(&mut world, QpState::Rts).unwrap();
    world.run();
    assert_eq!(statuses(&link.a.poll(&mut world)), [(1, OK)]);
}

#[test]
fn first_message_of_a_ready_receiver_establishes_the_communication() {
    let mut world = World::new(2);
    let (first, second) = (world.process(1), world.process(2));
    let (a, b) = (
        first.pair(&mut world, QpType::Rc, Sizes::default()),
        second.pair(&mut world, QpType::Rc, Sizes::default()),
    );
    a.bring_to(&mut world, QpState::Rts, (2, b.number), Tuning::default());
    b.bring_to(&mut world, QpState::Rtr, (1, a.number), Tuning::default());
    for id in 0..2 {
        b.receive(&mut world, id, Vec::new()).unwrap();
        a.send(&mut world, &[Post::new(id, SendOpcode::Send, Vec::new())])
            .unwrap();
    }
    world.run();
    assert_eq!(b.poll(&mut world).len(), 2);
    assert_eq!(
        second.events(&mut world),
        [(EventType::CommunicationEstablished.number(), 0x9000)]
    );
}

#[test]
fn peer_that_dies_ends_in_retry_exceeded() {
    let mut world = World::new(2);
    let link = rc(&mut world);
    world.verbs.close(world.now, link.b.process.context);
    link.a
        .send(&mut world, &[Post::new(1, SendOpcode::Send, Vec::new())])
        .unwrap();
    world.run();
    assert_eq!(
        statuses(&link.a.poll(&mut world)),
        [(1, Status::RetryExceeded.number())]
    );
}

#[test]
fn sender_that_dies_delivers_nothing_more() {
    let mut world = World::new(2);
    let link = rc(&mut world);
    world.write(link.a.process.id, BASE, b"secret");
    link.b
        .receive(&mut world, 1, vec![sge(link.b_region, BASE, 64)])
        .unwrap();
    link.a
        .send(
            &mut world,
            &[Post::new(
                1,
                SendOpcode::Send,
                vec![sge(link.a_region, BASE, 6)],
            )],
        )
        .unwrap();
    world.verbs.close(world.now, link.a.process.context);
    world.run();
    assert!(link.b.poll(&mut world).is_empty());
    assert_eq!(world.read(link.b.process.id, BASE, 6).unwrap(), vec![0; 6]);
}

#[test]
fn requests_wait_in_their_queue_once_enough_wait_in_the_adapter() {
    for (posts, length, expected) in [(200, 0, 128), (60, 32_768, 32), (3, 65_536, 3)] {
        let mut world = World::new(2);
        world.departure = Span::from_us(1);
        world.fate = Box::new(|_, _| Fate::Arrive(Span::from_us(2)));
        let sizes = Sizes {
            sends: 256,
            ..Sizes::default()
        };
        let link = link(
            &mut world,
            QpType::Rc,
            sizes,
            Tuning {
                mtu: 5,
                timeout: 14,
                ..Tuning::default()
            },
        );
        for id in 0..posts {
            let post = Post::new(
                id,
                SendOpcode::Write,
                vec![sge(link.a_region, BASE, length)],
            )
            .to(BASE, link.b_region.key);
            link.a.send(&mut world, &[post]).unwrap();
        }
        assert_eq!(world.injected.len(), expected);
        world.run();
        assert_eq!(link.a.poll(&mut world).len() as u64, posts);
    }
}
