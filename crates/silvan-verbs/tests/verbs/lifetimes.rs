//! Programs that end at any time, loopback, and many queue pairs: what is left behind.

use proptest::prelude::*;
use silvan_core::{Span, Time};
use silvan_verbs::abi::values::{QpState, QpType, SendOpcode, Status};
use silvan_verbs::abi::{Command, structures::DestroyQp};

use crate::world::*;

/// The state of the crate without numbers: lists that grow show here.
fn shape(world: &World) -> String {
    let text = format!("{:?}", world.verbs);
    text.chars()
        .filter(|letter| !letter.is_ascii_digit())
        .collect()
}

/// Two processes exchange sends, writes, reads and atomic operations; then one ends.
fn exchange(world: &mut World, kind: QpType) {
    let link = link(
        world,
        kind,
        Sizes::default(),
        Tuning {
            retries: 1,
            ..Tuning::default()
        },
    );
    for id in 0..8 {
        let opcode = SendOpcode::from_number(id % 7).unwrap();
        let length = if opcode.is_atomic() { 8 } else { 100 };
        let post = Post::new(id.into(), opcode, vec![sge(link.a_region, BASE, length)])
            .to(BASE, link.b_region.key);
        link.b
            .receive(world, id.into(), vec![sge(link.b_region, BASE, 100)])
            .unwrap();
        let _ = link.a.send(world, &[post]);
    }
    world.run();
    let sent = link.a.poll(world);
    assert!(
        sent.iter()
            .all(|entry| entry.status == Status::Success.number())
    );
    link.b.poll(world);
    for process in [link.a.process, link.b.process] {
        world.verbs.close(world.now, process.context);
        world.memory.remove(&process.id);
    }
    world.collect_actions();
}

#[test]
fn exchanges_leave_nothing_behind() {
    for kind in [QpType::Rc, QpType::Uc] {
        let mut world = World::new(2);
        exchange(&mut world, kind);
        let first = shape(&world);
        for _ in 0..50 {
            exchange(&mut world, kind);
        }
        assert_eq!(shape(&world), first);
    }
}

#[test]
fn long_exchange_needs_no_more_memory_than_a_short_one() {
    let mut world = World::new(2);
    let link = link(&mut world, QpType::Rc, Sizes::default(), Tuning::default());
    let mut shapes = Vec::new();
    for round in 0..3_000u64 {
        let length = if round % 3 == 0 { 8 } else { 256 };
        let opcode =
            [SendOpcode::FetchAndAdd, SendOpcode::Read, SendOpcode::Write][round as usize % 3];
        let post = Post::new(round, opcode, vec![sge(link.a_region, BASE, length)])
            .to(BASE, link.b_region.key);
        link.a.send(&mut world, &[post]).unwrap();
        world.run();
        assert_eq!(link.a.poll(&mut world).len(), 1);
        // Values of the latest atomic operations are kept: 16 of them, from round 48 on.
        if round % 999 == 99 {
            shapes.push(shape(&world));
        }
        world.injected.clear();
    }
    shapes.dedup();
    assert_eq!(shapes.len(), 1);
}

#[test]
fn queue_pairs_of_one_adapter_and_of_one_process_reach_each_other() {
    let mut world = World::new(1);
    let process = world.process(1);
    let pd = process.alloc_pd(&mut world);
    let region = process.reg_mr(&mut world, pd, BASE, SIZE);
    let cq = process.create_cq(&mut world, 64, -1);
    let mut pair = || {
        process
            .create_qp(&mut world, QpType::Rc, pd, cq, Sizes::default())
            .unwrap()
    };
    let (a, b) = (pair(), pair());
    let itself = pair();
    a.bring_to(&mut world, QpState::Rts, (1, b.number), Tuning::default());
    b.bring_to(&mut world, QpState::Rts, (1, a.number), Tuning::default());
    itself.bring_to(
        &mut world,
        QpState::Rts,
        (1, itself.number),
        Tuning::default(),
    );
    for (from, to) in [(a, b), (b, a), (itself, itself)] {
        world.write(process.id, BASE, &[from.number as u8; 600]);
        world.write(process.id, BASE + 1000, &[0; 600]);
        to.receive(&mut world, 9, vec![sge(region, BASE + 1000, 600)])
            .unwrap();
        from.send(
            &mut world,
            &[Post::new(8, SendOpcode::Send, vec![sge(region, BASE, 600)])],
        )
        .unwrap();
        world.run();
        let done: Vec<(u64, u32)> = process
            .poll(&mut world, cq, 9)
            .iter()
            .map(|entry| (entry.wr_id, entry.status))
            .collect();
        assert_eq!(done, [(9, 0), (8, 0)]);
        assert_eq!(
            world.read(process.id, BASE + 1000, 600).unwrap(),
            [from.number as u8; 600]
        );
    }
}

#[test]
fn each_of_1024_queue_pairs_of_64_processes_meets_its_own_peer() {
    const PAIRS: usize = 16;
    let mut world = World::new(16);
    let processes: Vec<Process> = (0..64).map(|index| world.process(index % 16 + 1)).collect();
    let mut ends = Vec::new();
    for process in &processes {
        let pd = process.alloc_pd(&mut world);
        let cq = process.create_cq(&mut world, 256, -1);
        let region = process.reg_mr(&mut world, pd, BASE, SIZE);
        for _ in 0..PAIRS {
            let pair = process
                .create_qp(&mut world, QpType::Rc, pd, cq, Sizes::default())
                .unwrap();
            ends.push((pair, region));
        }
    }
    // The pair of an end: 512 further on, which is a process of another group.
    let peer = |index: usize| (index + 512) % 1024;
    let lid = |index: usize| (index / PAIRS % 16 + 1) as u16;
    for index in 0..1024 {
        let other = peer(index);
        let number = ends[other].0.number;
        ends[index].0.bring_to(
            &mut world,
            QpState::Rts,
            (lid(other), number),
            Tuning::default(),
        );
    }
    let slot = |index: usize| BASE + (index % PAIRS * 16) as u64;
    for (index, (pair, region)) in ends.iter().enumerate() {
        world.write(pair.process.id, slot(index), &(index as u64).to_ne_bytes());
        let post = Post::new(
            index as u64,
            SendOpcode::Write,
            vec![sge(*region, slot(index), 8)],
        )
        .to(slot(index) + 4096, ends[peer(index)].1.key);
        pair.send(&mut world, &[post]).unwrap();
    }
    world.run();
    for (index, (pair, _)) in ends.iter().enumerate() {
        let bytes = world.read(pair.process.id, slot(index) + 4096, 8).unwrap();
        assert_eq!(
            u64::from_ne_bytes(bytes.try_into().unwrap()),
            peer(index) as u64
        );
    }
    let done: usize = processes
        .iter()
        .map(|process| process.poll(&mut world, 1, 1000).len())
        .sum();
    assert_eq!(done, 1024);
}

#[test]
fn requests_complete_after_the_transfers_into_their_memory() {
    let at = |us: u64| Time::from_ps(us * 1_000_000);
    let flushed = Status::Flushed.number();
    for (opcode, transfers_until) in [
        (SendOpcode::Send, 6),
        (SendOpcode::Read, 6),
        (SendOpcode::FetchAndAdd, 12),
    ] {
        let mut world = World::new(2);
        world.transfer_time = Some(Span::from_us(5));
        let link = link(&mut world, QpType::Rc, Sizes::default(), Tuning::default());
        for id in 0..2 {
            link.b
                .receive(&mut world, id, vec![sge(link.b_region, BASE, 8)])
                .unwrap();
        }
        let post = |id| {
            Post::new(id, opcode, vec![sge(link.a_region, BASE, 8)]).to(BASE, link.b_region.key)
        };
        link.a.send(&mut world, &[post(0), post(1)]).unwrap();
        // The request arrives after 1 us. A transfer takes 5 us, an atomic operation two of them and two ways.
        world.run_until(at(transfers_until - 1));
        let written = if opcode == SendOpcode::Send {
            link.b
        } else {
            link.a
        };
        written.set_state(&mut world, QpState::Err).unwrap();
        assert!(written.poll(&mut world).is_empty(), "{opcode:?}");
        // Later work requests complete after the earlier ones.
        written.receive(&mut world, 7, Vec::new()).unwrap();
        written.send(&mut world, &[post(9)]).unwrap();
        world.run_until(at(transfers_until + 20));
        let done: Vec<(u64, u32)> = written
            .poll(&mut world)
            .iter()
            .map(|entry| (entry.wr_id, entry.status))
            .collect();
        let sends = [(0, flushed), (1, flushed), (9, flushed)];
        match opcode {
            SendOpcode::Send => assert_eq!(
                done,
                [(9, flushed), (0, flushed), (1, flushed), (7, flushed)]
            ),
            _ => {
                assert!(
                    done.iter().filter(|entry| entry.0 != 7).eq(&sends),
                    "{done:?}"
                );
                assert_eq!(done.len(), 4);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// A process dies, or destroys, resets or fails its queue pair, while messages and transfers are under way. The other one
    /// gets a completion for each signalled request, and its memory changes only where the dead one wrote in time.
    #[test]
    fn other_side_lives_on(
        end_us in 0u64..40,
        kill in 0usize..5,
        is_sender in any::<bool>(),
        transfer_us in prop::option::of(1u64..8),
        departure_us in 0u64..3,
        opcodes in prop::collection::vec(0u32..7, 1..20),
    ) {
        let mut world = World::new(2);
        world.transfer_time = transfer_us.map(Span::from_us);
        world.departure = Span::from_us(departure_us);
        world.fate = Box::new(|_, _| Fate::Arrive(Span::from_us(4)));
        let tuning = Tuning { retries: 1, ..Tuning::default() };
        let link = link(&mut world, QpType::Rc, Sizes::default(), tuning);
        for id in 0..opcodes.len() as u64 {
            link.b.receive(&mut world, id, vec![sge(link.b_region, BASE + 1000, 64)]).unwrap();
        }
        for (id, opcode) in opcodes.iter().enumerate() {
            let opcode = SendOpcode::from_number(*opcode).unwrap();
            let length = if opcode.is_atomic() { 8 } else { 64 };
            let post = Post::new(id as u64, opcode, vec![sge(link.a_region, BASE, length)]).to(BASE + 1000, link.b_region.key);
            link.a.send(&mut world, &[post]).unwrap();
        }
        world.run_until(Time::from_ps(end_us * 1_000_000));
        let (dying, living) = if is_sender { (link.a, link.b) } else { (link.b, link.a) };
        match kill {
            0 => {
                world.verbs.close(world.now, dying.process.context);
                world.memory.remove(&dying.process.id);
            }
            1 => {
                let destroy = DestroyQp { qp_handle: dying.handle, ..DestroyQp::default() };
                dying.process.call(&mut world, &Command::DestroyQp(destroy)).unwrap();
            }
            2 => dying.set_state(&mut world, QpState::Reset).unwrap(),
            3 => dying.set_state(&mut world, QpState::Err).unwrap(),
            _ => {
                let region = if is_sender { link.a_region } else { link.b_region };
                dying.process.dereg_mr(&mut world, region).unwrap();
            }
        }
        world.run();
        if !is_sender {
            let done = living.poll(&mut world);
            let ids: Vec<u64> = done.iter().map(|entry| entry.wr_id).collect();
            prop_assert_eq!(ids, (0..opcodes.len() as u64).collect::<Vec<_>>());
            let mut statuses: Vec<u32> = done.iter().map(|entry| entry.status).collect();
            // Successes, at most one error of its own, then flushes.
            statuses.dedup();
            prop_assert!(statuses.len() <= 3, "{:?}", statuses);
        } else {
            prop_assert!(living.state(&mut world) == QpState::Rts || kill == 4);
        }
        prop_assert_eq!(world.verbs.next_timer(), None);
        let memory = &world.memory[&living.process.id];
        prop_assert!(memory[2000..].iter().all(|byte| *byte == 0));
    }
}
