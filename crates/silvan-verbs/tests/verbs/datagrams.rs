//! UD and UC between processes: addresses, route headers, keys, multicast, losses without repetition.

use silvan_core::{Span, Time};
use silvan_verbs::abi::structures::{AttachMcast, DetachMcast, QueryPort, QueryPortResponse};
use silvan_verbs::abi::values::{
    QpState, QpType, SendOpcode, Status, completion_flags, send_flags,
};
use silvan_verbs::abi::{Command, Layout};

use crate::world::*;

const OK: u32 = Status::Success as u32;
const GROUP: [u8; 16] = [
    0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9,
];

/// A datagram queue pair that is ready, with all memory of its process registered.
fn ready(world: &mut World, lid: u16) -> (Pair, Region) {
    let process = world.process(lid);
    let pair = process.pair(world, QpType::Ud, Sizes::default());
    let region = process.reg_mr(world, pair.pd, BASE, SIZE);
    pair.bring_to(world, QpState::Rts, (0, 0), Tuning::default());
    (pair, region)
}

fn datagram(
    world: &mut World,
    from: &(Pair, Region),
    to: (u16, u32),
    qkey: u32,
    length: u32,
    route: Option<[u8; 16]>,
) -> Post {
    let ah = from
        .0
        .process
        .create_ah(world, from.0.pd, to.0, route)
        .unwrap();
    let mut post = Post::new(1, SendOpcode::Send, vec![sge(from.1, BASE, length)]);
    post.datagram = Some((ah, to.1, qkey));
    post
}

#[test]
fn datagram_lies_behind_room_for_a_route_header() {
    for is_global in [false, true] {
        let mut world = World::new(2);
        let (a, b) = (ready(&mut world, 1), ready(&mut world, 2));
        world.write(a.0.process.id, BASE, b"datagram");
        world.write(b.0.process.id, BASE, &[0xee; 64]);
        b.0.receive(
            &mut world,
            3,
            vec![sge(b.1, BASE, 20), sge(b.1, BASE + 20, 44)],
        )
        .unwrap();
        let gid = |lid| port_attributes(lid).gids[0];
        let post = datagram(
            &mut world,
            &a,
            (2, b.0.number),
            0x1111,
            8,
            is_global.then(|| gid(2)),
        );
        a.0.send(&mut world, &[post]).unwrap();
        world.run();
        assert_eq!(a.0.poll(&mut world)[0].status, OK);
        let entry = b.0.poll(&mut world)[0];
        assert_eq!((entry.wr_id, entry.status, entry.byte_len), (3, OK, 48));
        assert_eq!((entry.src_qp, entry.slid, entry.sl), (a.0.number, 1, 0));
        let memory = world.read(b.0.process.id, BASE, 64).unwrap();
        assert_eq!(memory[40..48], *b"datagram");
        assert_eq!(memory[48..], [0xee; 16]);
        assert_eq!(
            entry.wc_flags,
            if is_global { completion_flags::GRH } else { 0 }
        );
        match is_global {
            false => assert_eq!(memory[..40], [0xee; 40]),
            true => {
                // IPVer 6; PayLen: BTH 12, DETH 8, data 8, ICRC 4; NxtHdr 0x1b; HopLmt 1.
                assert_eq!(memory[..8], [0x60, 0, 0, 0, 0, 32, 0x1b, 1]);
                assert_eq!(
                    (&memory[8..24], &memory[24..40]),
                    (&gid(1)[..], &gid(2)[..])
                );
            }
        }
        let message = &world.injected[0].1;
        assert_eq!(
            message.wire_bytes,
            8 + 26 + 8 + if is_global { 40 } else { 0 }
        );
    }
}

#[test]
fn sends_complete_at_departure_with_the_data_of_that_time() {
    for kind in [QpType::Ud, QpType::Uc] {
        let mut world = World::new(2);
        world.fate = Box::new(|_, _| Fate::Arrive(Span::from_ms(5)));
        let (sender, receiver, region, post);
        if kind == QpType::Ud {
            let (a, b) = (ready(&mut world, 1), ready(&mut world, 2));
            post = datagram(&mut world, &a, (2, b.0.number), 0x1111, 4, None);
            (sender, receiver, region) = (a.0, b.0, b.1);
        } else {
            let link = link(&mut world, kind, Sizes::default(), Tuning::default());
            post = Post::new(1, SendOpcode::Send, vec![sge(link.a_region, BASE, 4)]);
            (sender, receiver, region) = (link.a, link.b, link.b_region);
        }
        receiver
            .receive(&mut world, 1, vec![sge(region, BASE, 64)])
            .unwrap();
        world.write(sender.process.id, BASE, b"then");
        sender.send(&mut world, &[post]).unwrap();
        world.run_until(Time::from_ps(1));
        assert_eq!(sender.poll(&mut world)[0].status, OK);
        world.write(sender.process.id, BASE, b"now!");
        world.run();
        let room = if kind == QpType::Ud { 40 } else { 0 };
        assert_eq!(
            world.read(receiver.process.id, BASE + room, 4).unwrap(),
            b"then"
        );
    }
}

#[test]
fn wrong_qkey_is_dropped_and_counted() {
    let mut world = World::new(2);
    let (a, b) = (ready(&mut world, 1), ready(&mut world, 2));
    // The high bit selects the Q_Key of the sending queue pair, which is the right one.
    for (qkey, arrives) in [(0x1112, false), (0x1111, true), (0x8000_0000, true)] {
        b.0.receive(&mut world, 3, vec![sge(b.1, BASE, 64)])
            .unwrap();
        let post = datagram(&mut world, &a, (2, b.0.number), qkey, 8, None);
        a.0.send(&mut world, &[post]).unwrap();
        world.run();
        assert_eq!(b.0.poll(&mut world).len(), usize::from(arrives));
    }
    let query = Command::QueryPort(QueryPort {
        port_num: 1,
        ..QueryPort::default()
    });
    let port = QueryPortResponse::parse(&b.0.process.call(&mut world, &query).unwrap()).unwrap();
    assert_eq!((port.qkey_viol_cntr, port.bad_pkey_cntr), (1, 0));
}

#[test]
fn datagrams_without_receive_request_or_receiver_vanish() {
    let mut world = World::new(2);
    let (a, b) = (ready(&mut world, 1), ready(&mut world, 2));
    for number in [b.0.number, 0x123456] {
        let post = datagram(&mut world, &a, (2, number), 0x1111, 8, None);
        a.0.send(&mut world, &[post]).unwrap();
    }
    world.run();
    assert_eq!(a.0.poll(&mut world).len(), 2);
    assert!(b.0.poll(&mut world).is_empty());
    assert_eq!(b.0.state(&mut world), QpState::Rts);
}

#[test]
fn datagram_beyond_the_mtu_or_without_memory_stops_the_send_queue_alone() {
    for (length, lkey_change, status) in [
        (4097, 0, Status::LocalLength),
        (4096, 1, Status::LocalProtection),
    ] {
        let mut world = World::new(2);
        let (a, b) = (ready(&mut world, 1), ready(&mut world, 2));
        let mut bad = datagram(&mut world, &a, (2, b.0.number), 0x1111, length, None);
        bad.elements[0].lkey ^= lkey_change;
        let good = datagram(&mut world, &a, (2, b.0.number), 0x1111, 4, None);
        a.0.send(&mut world, &[bad, good.clone()]).unwrap();
        world.run();
        let done: Vec<u32> =
            a.0.poll(&mut world)
                .iter()
                .map(|entry| entry.status)
                .collect();
        assert_eq!(done, [status.number(), Status::Flushed.number()]);
        assert_eq!(a.0.state(&mut world), QpState::Sqe);
        // Receives go on, and the way back to RTS is open.
        a.0.receive(&mut world, 1, vec![sge(a.1, BASE, 64)])
            .unwrap();
        let back = datagram(&mut world, &b, (1, a.0.number), 0x1111, 4, None);
        b.0.send(&mut world, &[back]).unwrap();
        world.run();
        assert_eq!(a.0.poll(&mut world).len(), 1);
        a.0.set_state(&mut world, QpState::Rts).unwrap();
        a.0.send(&mut world, &[good]).unwrap();
        world.run();
        assert_eq!(a.0.poll(&mut world)[0].status, OK);
    }
}

#[test]
fn datagram_longer_than_the_receive_request_fails_the_receiver() {
    let mut world = World::new(2);
    let (a, b) = (ready(&mut world, 1), ready(&mut world, 2));
    b.0.receive(&mut world, 3, vec![sge(b.1, BASE, 47)])
        .unwrap();
    let post = datagram(&mut world, &a, (2, b.0.number), 0x1111, 8, None);
    a.0.send(&mut world, &[post]).unwrap();
    world.run();
    assert_eq!(b.0.poll(&mut world)[0].status, Status::LocalLength.number());
    assert_eq!(b.0.state(&mut world), QpState::Err);
}

#[test]
fn multicast_reaches_all_attached_queue_pairs_except_the_sender() {
    let mut world = World::new(3);
    let pairs: Vec<(Pair, Region)> = [1, 1, 2, 3, 3].map(|lid| ready(&mut world, lid)).to_vec();
    // The last one is not attached.
    for (pair, _) in &pairs[..4] {
        let attach = AttachMcast {
            gid: GROUP,
            qp_handle: pair.handle,
            mlid: 0xc005,
            reserved: 0,
        };
        for _ in 0..2 {
            pair.process
                .call(&mut world, &Command::AttachMcast(attach))
                .unwrap();
        }
    }
    let deliver = |world: &mut World| -> Vec<usize> {
        for (pair, region) in &pairs {
            pair.receive(world, 9, vec![sge(*region, BASE, 64)])
                .unwrap();
        }
        let post = datagram(
            world,
            &pairs[0],
            (0xc005, 0xff_ffff),
            0x1111,
            8,
            Some(GROUP),
        )
        .flags(0);
        pairs[0].0.send(world, &[post]).unwrap();
        world.run();
        pairs
            .iter()
            .map(|(pair, _)| pair.poll(world).len())
            .collect()
    };
    assert_eq!(deliver(&mut world), [0, 1, 1, 1, 0]);
    assert_eq!(world.injected.len(), 1);
    assert_eq!(world.injected[0].1.flow.destination_qp, 0xff_ffff);
    let (pair, _) = pairs[2];
    let destroy = Command::DestroyQp(silvan_verbs::abi::structures::DestroyQp {
        qp_handle: pair.handle,
        ..Default::default()
    });
    assert_eq!(
        pair.process.call(&mut world, &destroy),
        Err(16),
        "it is attached"
    );
    let detach = Command::DetachMcast(DetachMcast {
        gid: GROUP,
        qp_handle: pair.handle,
        mlid: 0xc005,
        reserved: 0,
    });
    pair.process.call(&mut world, &detach).unwrap();
    assert_eq!(pair.process.call(&mut world, &detach), Err(22));
    assert_eq!(deliver(&mut world), [0, 1, 0, 1, 0]);
    pair.process.call(&mut world, &destroy).unwrap();
}

#[test]
fn groups_take_datagram_queue_pairs_and_multicast_addresses_alone() {
    let mut world = World::new(2);
    let (a, _) = ready(&mut world, 1);
    let link = link(&mut world, QpType::Rc, Sizes::default(), Tuning::default());
    let attach = |pair: &Pair, gid, mlid| {
        Command::AttachMcast(AttachMcast {
            gid,
            qp_handle: pair.handle,
            mlid,
            reserved: 0,
        })
    };
    for (pair, gid, mlid) in [
        (&link.a, GROUP, 0xc000),
        (&a, [0; 16], 0xc000),
        (&a, GROUP, 0xbfff),
        (&a, GROUP, 0xffff),
    ] {
        assert_eq!(
            pair.process.call(&mut world, &attach(pair, gid, mlid)),
            Err(22)
        );
    }
}

#[test]
fn lost_message_of_uc_leaves_a_gap_and_nothing_else() {
    let mut world = World::new(2);
    let link = link(&mut world, QpType::Uc, Sizes::default(), Tuning::default());
    let mut count = 0;
    world.fate = Box::new(move |_, _| {
        count += 1;
        if count == 2 {
            Fate::Lose
        } else {
            Fate::Arrive(LATENCY)
        }
    });
    for id in 0..3 {
        let at = BASE + 100 * id;
        world.write(link.a.process.id, at, &[id as u8 + 1; 50]);
        let post = Post::new(
            id,
            SendOpcode::WriteWithImmediate,
            vec![sge(link.a_region, at, 50)],
        )
        .to(at, link.b_region.key);
        link.b.receive(&mut world, id, Vec::new()).unwrap();
        link.a.send(&mut world, &[post]).unwrap();
    }
    world.run();
    let sent: Vec<(u64, u32)> = link
        .a
        .poll(&mut world)
        .iter()
        .map(|entry| (entry.wr_id, entry.status))
        .collect();
    assert_eq!(sent, [(0, OK), (1, OK), (2, OK)]);
    assert_eq!(link.b.poll(&mut world).len(), 2);
    let at = |offset| world.read(link.b.process.id, BASE + offset, 1).unwrap()[0];
    assert_eq!([at(0), at(100), at(200)], [1, 0, 3]);
    assert_eq!(world.injected.len(), 3);
}

#[test]
fn write_of_uc_without_rights_is_dropped() {
    let mut world = World::new(2);
    let link = link(
        &mut world,
        QpType::Uc,
        Sizes::default(),
        Tuning {
            access: 1,
            ..Tuning::default()
        },
    );
    world.write(link.a.process.id, BASE, b"data");
    let post = Post::new(1, SendOpcode::Write, vec![sge(link.a_region, BASE, 4)])
        .to(BASE, link.b_region.key);
    link.a.send(&mut world, &[post]).unwrap();
    world.run();
    assert_eq!(world.read(link.b.process.id, BASE, 4).unwrap(), vec![0; 4]);
    assert_eq!(link.b.state(&mut world), QpState::Rts);
}

#[test]
fn operations_that_a_transport_lacks_are_refused() {
    let mut world = World::new(2);
    let a = ready(&mut world, 1);
    let uc = link(&mut world, QpType::Uc, Sizes::default(), Tuning::default());
    for opcode in [
        SendOpcode::Read,
        SendOpcode::FetchAndAdd,
        SendOpcode::CompareAndSwap,
    ] {
        let post = Post::new(1, opcode, vec![sge(uc.a_region, BASE, 8)]);
        assert_eq!(uc.a.send(&mut world, &[post]), Err((22, 1)));
    }
    let mut post = datagram(&mut world, &a, (2, 0x20), 0x1111, 8, None);
    post.opcode = SendOpcode::Write;
    let good = datagram(&mut world, &a, (2, 0x20), 0x1111, 8, None);
    assert_eq!(a.0.send(&mut world, &[good, post]), Err((22, 2)));
    world.run();
    assert_eq!(
        a.0.poll(&mut world).len(),
        1,
        "requests before the refused one are posted"
    );
}

#[test]
fn solicited_completions_wake_a_receiver_that_waits_for_them() {
    for solicited in [false, true] {
        let mut world = World::new(2);
        let a = ready(&mut world, 1);
        let process = world.process(2);
        let channel = process.create_channel(&mut world);
        let cq = process.create_cq(&mut world, 10, channel as i32);
        let pd = process.alloc_pd(&mut world);
        let b = process
            .create_qp(&mut world, QpType::Ud, pd, cq, Sizes::default())
            .unwrap();
        let region = process.reg_mr(&mut world, pd, BASE, SIZE);
        b.bring_to(&mut world, QpState::Rts, (0, 0), Tuning::default());
        process.notify(&mut world, cq, true);
        b.receive(&mut world, 1, vec![sge(region, BASE, 64)])
            .unwrap();
        let flags = if solicited { send_flags::SOLICITED } else { 0 };
        let post = datagram(&mut world, &a, (2, b.number), 0x1111, 8, None).flags(flags);
        a.0.send(&mut world, &[post]).unwrap();
        world.run();
        let event = world
            .verbs
            .take_channel_event(process.context, silvan_verbs::ChannelHandle(channel));
        assert_eq!(event.is_some(), solicited);
        assert_eq!(b.poll(&mut world).len(), 1);
    }
}
