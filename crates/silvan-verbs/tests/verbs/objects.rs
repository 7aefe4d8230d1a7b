//! Objects: lifetimes, sizes, notification, events, shared receive queues.

use silvan_core::{Lid, Time};
use silvan_verbs::abi::structures::*;
use silvan_verbs::abi::values::{EventType, QpState, QpType, SendOpcode, access, srq_mask};
use silvan_verbs::abi::{Command, Layout};
use silvan_verbs::{ChannelHandle, CqHandle, PortState};

use crate::world::*;

const EINVAL: i32 = 22;
const EBUSY: i32 = 16;
const ENOMEM: i32 = 12;
const EBADF: i32 = 9;

fn dealloc(handle: u32) -> Command {
    Command::DeallocPd(DeallocPd { pd_handle: handle })
}

fn destroy_cq(handle: u32) -> Command {
    Command::DestroyCq(DestroyCq {
        cq_handle: handle,
        ..DestroyCq::default()
    })
}

fn destroy_qp(handle: u32) -> Command {
    Command::DestroyQp(DestroyQp {
        qp_handle: handle,
        ..DestroyQp::default()
    })
}

#[test]
fn device_and_port_show_their_attributes() {
    let mut world = World::new(1);
    let process = world.process(1);
    let query = Command::QueryDevice(QueryDevice::default());
    let device = QueryDeviceResponse::parse(&process.call(&mut world, &query).unwrap()).unwrap();
    assert_eq!(device.fw_ver, 1 << 32 | 2 << 16 | 3);
    assert_eq!(device.node_guid, 0x0011_7500_0000_0001u64.to_be_bytes());
    assert_eq!(
        (
            device.vendor_id,
            device.vendor_part_id,
            device.phys_port_cnt
        ),
        (0x1077, 0x7322, 1)
    );
    assert!(device.max_qp >= 16_384 && device.max_sge >= 4 && device.max_pkeys == 4);
    let port = |number| {
        Command::QueryPort(QueryPort {
            port_num: number,
            ..QueryPort::default()
        })
    };
    let answer = QueryPortResponse::parse(&process.call(&mut world, &port(1)).unwrap()).unwrap();
    assert_eq!(
        (
            answer.lid,
            answer.state,
            answer.phys_state,
            answer.link_layer
        ),
        (1, 4, 5, 1)
    );
    assert_eq!(
        (answer.gid_tbl_len, answer.pkey_tbl_len, answer.active_mtu),
        (1, 4, 5)
    );
    for number in [0, 2, 255] {
        assert_eq!(process.call(&mut world, &port(number)), Err(EINVAL));
    }
}

#[test]
fn objects_in_use_are_busy() {
    let mut world = World::new(1);
    let process = world.process(1);
    let pd = process.alloc_pd(&mut world);
    let cq = process.create_cq(&mut world, 4, -1);
    let srq = process.create_srq(&mut world, pd, 4, 0);
    let sizes = Sizes {
        srq: Some(srq),
        ..Sizes::default()
    };
    let pair = process
        .create_qp(&mut world, QpType::Rc, pd, cq, sizes)
        .unwrap();
    let region = process.reg_mr(&mut world, pd, BASE, 64);
    let ah = process.create_ah(&mut world, pd, 1, None).unwrap();
    let destroy_srq = Command::DestroySrq(DestroySrq {
        srq_handle: srq,
        ..DestroySrq::default()
    });
    for busy in [dealloc(pd), destroy_cq(cq), destroy_srq.clone()] {
        assert_eq!(process.call(&mut world, &busy), Err(EBUSY));
    }
    process.call(&mut world, &destroy_qp(pair.handle)).unwrap();
    process.call(&mut world, &destroy_cq(cq)).unwrap();
    process.call(&mut world, &destroy_srq).unwrap();
    assert_eq!(process.call(&mut world, &dealloc(pd)), Err(EBUSY));
    process.dereg_mr(&mut world, region).unwrap();
    assert_eq!(process.call(&mut world, &dealloc(pd)), Err(EBUSY));
    process
        .call(&mut world, &Command::DestroyAh(DestroyAh { ah_handle: ah }))
        .unwrap();
    process.call(&mut world, &dealloc(pd)).unwrap();
    assert_eq!(
        process.call(&mut world, &dealloc(pd)),
        Err(EINVAL),
        "it is gone"
    );
}

#[test]
fn handles_count_in_their_context_and_kind_alone() {
    let mut world = World::new(1);
    let (owner, other) = (world.process(1), world.process(1));
    let pair = owner.pair(&mut world, QpType::Rc, Sizes::default());
    let region = owner.reg_mr(&mut world, pair.pd, BASE, 64);
    let handles = [pair.pd, pair.cq, pair.handle, region.handle];
    // The other process has no objects: no handle of the owner means anything there.
    for handle in handles {
        let commands = [
            dealloc(handle),
            destroy_cq(handle),
            destroy_qp(handle),
            Command::DeregMr(DeregMr { mr_handle: handle }),
            Command::DestroyAh(DestroyAh { ah_handle: handle }),
            Command::PollCq(PollCq {
                cq_handle: handle,
                ne: 1,
                ..PollCq::default()
            }),
            Command::ReqNotifyCq(ReqNotifyCq {
                cq_handle: handle,
                solicited_only: 0,
            }),
            Command::ModifyQp(ModifyQp {
                qp_handle: handle,
                attr_mask: 1,
                qp_state: 6,
                ..ModifyQp::default()
            }),
            Command::QueryQp(QueryQp {
                qp_handle: handle,
                ..QueryQp::default()
            }),
            Command::RegMr(RegMr {
                pd_handle: handle,
                length: 8,
                ..RegMr::default()
            }),
        ];
        for command in commands {
            assert_eq!(other.call(&mut world, &command), Err(EINVAL), "{command:?}");
        }
    }
    // In its own context a handle of another kind means nothing, too.
    for (index, handle) in handles.into_iter().enumerate() {
        let commands = [
            dealloc(handle),
            destroy_cq(handle),
            destroy_qp(handle),
            Command::DeregMr(DeregMr { mr_handle: handle }),
        ];
        for (kind, command) in commands.into_iter().enumerate() {
            if kind != index {
                assert_eq!(owner.call(&mut world, &command), Err(EINVAL), "{command:?}");
            }
        }
    }
}

#[test]
fn memory_regions_need_sensible_rights_and_ranges() {
    let mut world = World::new(1);
    let process = world.process(1);
    let pd = process.alloc_pd(&mut world);
    for rights in [
        access::REMOTE_WRITE,
        access::REMOTE_ATOMIC,
        1 << 6,
        1 << 31,
        1 << 10,
    ] {
        assert!(
            process
                .try_reg_mr(&mut world, pd, BASE, 64, rights)
                .is_err(),
            "{rights:#x}"
        );
    }
    for rights in [
        0,
        access::REMOTE_READ,
        ALL_RIGHTS,
        access::LOCAL_WRITE | 1 << 20,
    ] {
        assert!(
            process.try_reg_mr(&mut world, pd, BASE, 64, rights).is_ok(),
            "{rights:#x}"
        );
    }
    assert!(
        process
            .try_reg_mr(&mut world, pd, u64::MAX - 7, 16, 0)
            .is_err()
    );
    assert!(
        process
            .try_reg_mr(&mut world, pd, BASE, u64::MAX, 0)
            .is_err()
    );
}

#[test]
fn keys_are_never_those_of_an_earlier_region() {
    let mut world = World::new(1);
    let process = world.process(1);
    let pd = process.alloc_pd(&mut world);
    let mut keys = Vec::new();
    for _ in 0..200 {
        let region = process.reg_mr(&mut world, pd, BASE, 64);
        keys.push(region.key);
        process.dereg_mr(&mut world, region).unwrap();
    }
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count);
    assert!(!keys.contains(&0));
}

#[test]
fn full_completion_queue_fails_with_its_queue_pairs() {
    let mut world = World::new(2);
    let sizes = Sizes {
        completions: 3,
        ..Sizes::default()
    };
    let link = link(&mut world, QpType::Rc, sizes, Tuning::default());
    let post = |id| {
        Post::new(id, SendOpcode::Write, vec![sge(link.a_region, BASE, 4)])
            .to(BASE, link.b_region.key)
    };
    link.a
        .send(&mut world, &[post(0), post(1), post(2)])
        .unwrap();
    world.run();
    assert!(link.a.process.events(&mut world).is_empty());
    link.a.send(&mut world, &[post(3)]).unwrap();
    world.run();
    let events: Vec<u32> = link
        .a
        .process
        .events(&mut world)
        .iter()
        .map(|event| event.0)
        .collect();
    assert_eq!(
        events,
        [EventType::CqError.number(), EventType::QpFatal.number()]
    );
    assert_eq!(link.a.state(&mut world), QpState::Err);
    assert_eq!(link.a.poll(&mut world).len(), 3);
}

#[test]
fn taken_completions_fill_the_queue_until_they_are_consumed() {
    let mut world = World::new(2);
    let sizes = Sizes {
        completions: 3,
        ..Sizes::default()
    };
    let link = link(&mut world, QpType::Rc, sizes, Tuning::default());
    let post = |id| {
        Post::new(id, SendOpcode::Write, vec![sge(link.a_region, BASE, 4)])
            .to(BASE, link.b_region.key)
    };
    link.a
        .send(&mut world, &[post(0), post(1), post(2)])
        .unwrap();
    world.run();
    let taken = link.a.process.take(&mut world, link.a.cq, 2);
    assert_eq!(taken.len(), 2);
    assert_eq!(WorkCompletion::parse(&taken[1]).unwrap().wr_id, 1);
    world
        .verbs
        .consumed(link.a.process.context, CqHandle(link.a.cq), 1);
    link.a.send(&mut world, &[post(3)]).unwrap();
    world.run();
    assert!(
        link.a.process.events(&mut world).is_empty(),
        "one place was free"
    );
    link.a.send(&mut world, &[post(4)]).unwrap();
    world.run();
    assert_eq!(
        link.a.process.events(&mut world)[0].0,
        EventType::CqError.number()
    );
}

#[test]
fn completion_queue_resizes_down_to_what_waits() {
    let mut world = World::new(2);
    let link = link(&mut world, QpType::Rc, Sizes::default(), Tuning::default());
    let post = |id| {
        Post::new(id, SendOpcode::Write, vec![sge(link.a_region, BASE, 4)])
            .to(BASE, link.b_region.key)
    };
    link.a
        .send(&mut world, &[post(0), post(1), post(2)])
        .unwrap();
    world.run();
    let resize = |cqe| {
        Command::ResizeCq(ResizeCq {
            cq_handle: link.a.cq,
            cqe,
            ..ResizeCq::default()
        })
    };
    for (cqe, expected) in [(2, Err(EINVAL)), (0, Err(EINVAL)), (1 << 30, Err(EINVAL))] {
        assert_eq!(link.a.process.call(&mut world, &resize(cqe)), expected);
    }
    let response = link.a.process.call(&mut world, &resize(3)).unwrap();
    assert_eq!(ResizeCqResponse::parse(&response).unwrap().cqe, 3);
    assert_eq!(link.a.poll(&mut world).len(), 3);
}

#[test]
fn one_request_for_notification_gives_one_event() {
    let mut world = World::new(2);
    let process = world.process(1);
    let channel = process.create_channel(&mut world);
    let cq = process.create_cq(&mut world, 16, channel as i32);
    let pd = process.alloc_pd(&mut world);
    let pair = process
        .create_qp(&mut world, QpType::Rc, pd, cq, Sizes::default())
        .unwrap();
    pair.bring_to(&mut world, QpState::Rts, (2, 0x99), Tuning::default());
    pair.set_state(&mut world, QpState::Err).unwrap();
    let flush = |world: &mut World| {
        pair.send(world, &[Post::new(1, SendOpcode::Send, Vec::new())])
            .unwrap()
    };
    let take = |world: &mut World| {
        world
            .verbs
            .take_channel_event(process.context, ChannelHandle(channel))
    };
    flush(&mut world);
    assert_eq!(take(&mut world), None, "no notification was requested");
    // Errors are solicited; a request for all outlives one for solicited completions.
    process.notify(&mut world, cq, false);
    process.notify(&mut world, cq, true);
    flush(&mut world);
    flush(&mut world);
    let event = CompletionEvent::parse(&take(&mut world).unwrap()).unwrap();
    assert_eq!(event.cq_handle, 0xc0 + 16);
    assert_eq!(take(&mut world), None);
    process.notify(&mut world, cq, true);
    flush(&mut world);
    // The event that was not taken vanishes with its queue; the one that was taken is reported.
    process.call(&mut world, &destroy_qp(pair.handle)).unwrap();
    let response = process.call(&mut world, &destroy_cq(cq)).unwrap();
    let response = DestroyCqResponse::parse(&response).unwrap();
    assert_eq!(
        (
            response.comp_events_reported,
            response.async_events_reported
        ),
        (1, 0)
    );
    assert_eq!(take(&mut world), None);
}

#[test]
fn unknown_channels_are_bad_descriptors() {
    let mut world = World::new(1);
    let process = world.process(1);
    process.create_channel(&mut world);
    for (channel, expected) in [
        (0, Ok(())),
        (1, Err(EBADF)),
        (i32::MAX, Err(EBADF)),
        (-1, Ok(())),
        (i32::MIN, Ok(())),
    ] {
        let command = Command::CreateCq(CreateCq {
            cqe: 1,
            comp_channel: channel,
            ..CreateCq::default()
        });
        assert_eq!(process.call(&mut world, &command).map(drop), expected);
    }
}

#[test]
fn full_queues_refuse_requests_and_say_which() {
    let mut world = World::new(2);
    let sizes = Sizes {
        sends: 2,
        receives: 2,
        ..Sizes::default()
    };
    let link = link(&mut world, QpType::Rc, sizes, Tuning::default());
    let post = |id| {
        Post::new(id, SendOpcode::Write, vec![sge(link.a_region, BASE, 4)])
            .to(BASE, link.b_region.key)
    };
    assert_eq!(
        link.a.send(&mut world, &[post(0), post(1), post(2)]),
        Err((ENOMEM, 3))
    );
    for id in 0..3 {
        let expected = if id < 2 { Ok(()) } else { Err(ENOMEM) };
        assert_eq!(link.b.receive(&mut world, id, Vec::new()), expected);
    }
    world.run();
    assert_eq!(link.a.poll(&mut world).len(), 2);
    let many = vec![sge(link.a_region, BASE, 1); 5];
    assert_eq!(
        link.a
            .send(&mut world, &[Post::new(1, SendOpcode::Send, many)]),
        Err((EINVAL, 1))
    );
}

#[test]
fn shared_receive_queue_serves_queue_pairs_in_order_and_reports_its_limit() {
    let mut world = World::new(2);
    let process = world.process(2);
    let pd = process.alloc_pd(&mut world);
    let region = process.reg_mr(&mut world, pd, BASE, SIZE);
    let cq = process.create_cq(&mut world, 64, -1);
    let srq = process.create_srq(&mut world, pd, 8, 0);
    let sizes = Sizes {
        srq: Some(srq),
        ..Sizes::default()
    };
    let mut senders = Vec::new();
    for _ in 0..2 {
        let peer = world.process(1);
        let a = peer.pair(&mut world, QpType::Rc, Sizes::default());
        let b = process
            .create_qp(&mut world, QpType::Rc, pd, cq, sizes)
            .unwrap();
        a.bring_to(&mut world, QpState::Rts, (2, b.number), Tuning::default());
        b.bring_to(&mut world, QpState::Rts, (1, a.number), Tuning::default());
        assert_eq!(
            b.receive(&mut world, 1, Vec::new()),
            Err(EINVAL),
            "it has a shared queue"
        );
        senders.push((a, b));
    }
    for id in 0..4 {
        process
            .post_srq(&mut world, srq, id, vec![sge(region, BASE + 16 * id, 16)])
            .unwrap();
    }
    let modify = |limit| {
        Command::ModifySrq(ModifySrq {
            srq_handle: srq,
            attr_mask: srq_mask::LIMIT,
            max_wr: 0,
            srq_limit: limit,
        })
    };
    assert_eq!(process.call(&mut world, &modify(9)), Err(EINVAL));
    process.call(&mut world, &modify(3)).unwrap();
    let mut used = Vec::new();
    for turn in 0..3 {
        let (a, b) = senders[turn % 2];
        a.send(
            &mut world,
            &[Post::new(turn as u64, SendOpcode::Send, Vec::new())],
        )
        .unwrap();
        world.run();
        let entry = process.poll(&mut world, cq, 9)[0];
        used.push((entry.wr_id, entry.qp_num == b.number));
        // Three requests are not below the limit; two are, once.
        let events = process.events(&mut world);
        let expected = if turn == 1 {
            vec![(EventType::SrqLimit.number(), 0x5129)]
        } else {
            Vec::new()
        };
        assert_eq!(events, expected, "turn {turn}");
    }
    assert_eq!(used, [(0, true), (1, true), (2, true)]);
    // Queue pairs in error leave the requests to others.
    senders[0].1.set_state(&mut world, QpState::Err).unwrap();
    assert_eq!(
        process.events(&mut world),
        [(EventType::LastWqe.number(), 0x9000)]
    );
    assert!(process.poll(&mut world, cq, 9).is_empty());
    senders[1]
        .0
        .send(&mut world, &[Post::new(9, SendOpcode::Send, Vec::new())])
        .unwrap();
    world.run();
    assert_eq!(process.poll(&mut world, cq, 9)[0].wr_id, 3);
}

#[test]
fn shared_receive_queue_checks_sizes() {
    let mut world = World::new(1);
    let process = world.process(1);
    let pd = process.alloc_pd(&mut world);
    for (max_wr, max_sge, srq_limit) in
        [(0, 1, 0), (1, 0, 0), (1 << 20, 1, 0), (4, 33, 0), (4, 1, 5)]
    {
        let command = Command::CreateSrq(CreateSrq {
            pd_handle: pd,
            max_wr,
            max_sge,
            srq_limit,
            ..CreateSrq::default()
        });
        assert_eq!(process.call(&mut world, &command), Err(EINVAL));
    }
    let srq = process.create_srq(&mut world, pd, 2, 0);
    for id in 0..2 {
        process.post_srq(&mut world, srq, id, Vec::new()).unwrap();
    }
    assert_eq!(
        process.post_srq(&mut world, srq, 3, Vec::new()),
        Err(ENOMEM)
    );
    assert_eq!(
        process.post_srq(&mut world, srq, 3, vec![Sge::default(); 5]),
        Err(EINVAL)
    );
    let resize = |max_wr| {
        Command::ModifySrq(ModifySrq {
            srq_handle: srq,
            attr_mask: srq_mask::MAX_WR,
            max_wr,
            srq_limit: 0,
        })
    };
    assert_eq!(process.call(&mut world, &resize(1)), Err(EINVAL));
    process.call(&mut world, &resize(3)).unwrap();
    process.post_srq(&mut world, srq, 3, Vec::new()).unwrap();
    let query = Command::QuerySrq(QuerySrq {
        srq_handle: srq,
        ..QuerySrq::default()
    });
    let answer = QuerySrqResponse::parse(&process.call(&mut world, &query).unwrap()).unwrap();
    assert_eq!((answer.max_wr, answer.max_sge, answer.srq_limit), (3, 4, 0));
}

#[test]
fn port_changes_reach_each_context_of_the_adapter() {
    let mut world = World::new(2);
    let (first, second, other) = (world.process(1), world.process(1), world.process(2));
    let device = silvan_verbs::DeviceId(0);
    let mut port = port_attributes(1);
    port.state = PortState::Down;
    world.verbs.set_port(device, port.clone());
    port.state = PortState::Active;
    port.lid = Lid::new(77);
    port.sm_lid = Lid::new(3);
    port.pkeys[1] = 0x8055;
    world.verbs.set_port(device, port.clone());
    world.verbs.set_port(device, port);
    world.verbs.reregister_clients(device);
    world.collect_actions();
    let expected: Vec<(u32, u64)> = [
        EventType::PortError,
        EventType::LidChange,
        EventType::SmChange,
        EventType::PkeyChange,
        EventType::PortActive,
        EventType::ClientReregister,
    ]
    .map(|kind| (kind.number(), 1))
    .to_vec();
    for process in [first, second] {
        assert_eq!(process.events(&mut world), expected);
    }
    assert!(other.events(&mut world).is_empty());
    assert_eq!(world.async_events, 12);
}

#[test]
fn destroyed_queue_pair_reports_the_events_that_were_taken() {
    for takes in [false, true] {
        let mut world = World::new(2);
        let link = link(
            &mut world,
            QpType::Rc,
            Sizes::default(),
            Tuning {
                access: 0,
                ..Tuning::default()
            },
        );
        let post = Post::new(1, SendOpcode::Write, vec![sge(link.a_region, BASE, 4)])
            .to(BASE, link.b_region.key);
        link.a.send(&mut world, &[post]).unwrap();
        world.run();
        if takes {
            assert_eq!(
                link.b.process.events(&mut world),
                [(EventType::QpAccessError.number(), 0x9000)]
            );
        }
        let response = link
            .b
            .process
            .call(&mut world, &destroy_qp(link.b.handle))
            .unwrap();
        assert_eq!(
            DestroyQpResponse::parse(&response).unwrap().events_reported,
            u32::from(takes)
        );
        assert!(link.b.process.events(&mut world).is_empty());
    }
}

#[test]
fn closed_context_leaves_nothing_behind() {
    let mut world = World::new(1);
    let mut last = 0;
    for _ in 0..50 {
        let process = world.process(1);
        let pair = process.pair(&mut world, QpType::Ud, Sizes::default());
        process.reg_mr(&mut world, pair.pd, BASE, 64);
        process.create_ah(&mut world, pair.pd, 1, None).unwrap();
        process.create_srq(&mut world, pair.pd, 4, 0);
        pair.bring_to(&mut world, QpState::Rts, (0, 0), Tuning::default());
        let mut gid = [0; 16];
        gid[0] = 0xff;
        let attach = AttachMcast {
            gid,
            qp_handle: pair.handle,
            mlid: 0xc000,
            reserved: 0,
        };
        process
            .call(&mut world, &Command::AttachMcast(attach))
            .unwrap();
        world.verbs.close(world.now, process.context);
        world.verbs.close(world.now, process.context);
        // Handles of a closed context mean nothing.
        assert_eq!(
            process.call(&mut world, &destroy_qp(pair.handle)),
            Err(EINVAL)
        );
        assert!(pair.number > last, "numbers return late");
        last = pair.number;
    }
    assert_eq!(world.verbs.next_timer(), None);
    assert_eq!(world.now, Time::ZERO);
}

#[test]
fn first_command_makes_the_context_once() {
    let mut world = World::new(1);
    let process = world.process(1);
    let get = Command::GetContext(GetContext::default());
    assert_eq!(process.call(&mut world, &get), Err(EINVAL));
    let context = world.verbs.open(silvan_verbs::DeviceId(0), process.id);
    let fresh = Process { context, ..process };
    let query = Command::QueryDevice(QueryDevice::default());
    assert_eq!(fresh.call(&mut world, &query), Err(EINVAL));
    let response = fresh.call(&mut world, &get).unwrap();
    let response = GetContextResponse::parse(&response).unwrap();
    assert_eq!((response.async_fd, response.num_comp_vectors), (0, 1));
    fresh.call(&mut world, &query).unwrap();
}

#[test]
fn queue_pairs_have_the_sizes_and_types_of_the_adapter() {
    let mut world = World::new(1);
    let process = world.process(1);
    let (pd, cq) = (
        process.alloc_pd(&mut world),
        process.create_cq(&mut world, 4, -1),
    );
    for sizes in [
        Sizes {
            sends: 16_385,
            ..Sizes::default()
        },
        Sizes {
            receives: 16_385,
            ..Sizes::default()
        },
        Sizes {
            elements: 33,
            ..Sizes::default()
        },
    ] {
        assert_eq!(
            process
                .create_qp(&mut world, QpType::Rc, pd, cq, sizes)
                .err(),
            Some(EINVAL)
        );
    }
    for kind in [0, 1, 5, 8, 9, 10] {
        let command = Command::CreateQp(CreateQp {
            pd_handle: pd,
            send_cq_handle: cq,
            recv_cq_handle: cq,
            qp_type: kind,
            ..CreateQp::default()
        });
        assert_eq!(process.call(&mut world, &command), Err(95), "type {kind}");
    }
}
