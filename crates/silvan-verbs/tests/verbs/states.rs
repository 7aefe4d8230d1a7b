//! The state machine of queue pairs against the tables of the specification (InfiniBand Architecture Specification, volume 1,
//! section 11.2.5.2), typed in here a second time.

use silvan_verbs::abi::structures::ModifyQp;
use silvan_verbs::abi::values::{QpState, QpType, qp_mask};

use crate::world::*;

/// Attributes by letter: A access flags, C current state, D destination number, H alternate path, I P_Key index, K Q_Key,
/// L local timeout, M path MTU, N drain event, O outgoing reads, P port, Q SQ PSN, R RQ PSN, S incoming reads, T retry count,
/// U RNR retry, V address vector, W minimal RNR timer, X migration state.
fn mask(letters: &str) -> u32 {
    use qp_mask::*;

    letters
        .chars()
        .map(|letter| match letter {
            'A' => ACCESS_FLAGS,
            'C' => CUR_STATE,
            'D' => DEST_QPN,
            'H' => ALT_PATH,
            'I' => PKEY_INDEX,
            'K' => QKEY,
            'L' => TIMEOUT,
            'M' => PATH_MTU,
            'N' => EN_SQD_ASYNC_NOTIFY,
            'O' => MAX_QP_RD_ATOMIC,
            'P' => PORT,
            'Q' => SQ_PSN,
            'R' => RQ_PSN,
            'S' => MAX_DEST_RD_ATOMIC,
            'T' => RETRY_CNT,
            'U' => RNR_RETRY,
            'V' => AV,
            'W' => MIN_RNR_TIMER,
            'X' => PATH_MIG_STATE,
            other => panic!("no attribute {other}"),
        })
        .fold(0, |mask, bit| mask | bit)
}

/// Required and optional attributes of each transition, except those to RESET and ERR.
const TABLE: &[(QpState, QpState, QpType, &str, &str)] = &[
    (QpState::Reset, QpState::Init, QpType::Rc, "AIP", ""),
    (QpState::Reset, QpState::Init, QpType::Uc, "AIP", ""),
    (QpState::Reset, QpState::Init, QpType::Ud, "IKP", ""),
    (QpState::Init, QpState::Init, QpType::Rc, "", "AIP"),
    (QpState::Init, QpState::Init, QpType::Uc, "", "AIP"),
    (QpState::Init, QpState::Init, QpType::Ud, "", "IKP"),
    (QpState::Init, QpState::Rtr, QpType::Rc, "VMDRSW", "HAI"),
    (QpState::Init, QpState::Rtr, QpType::Uc, "VMDR", "HAI"),
    (QpState::Init, QpState::Rtr, QpType::Ud, "", "IK"),
    (QpState::Rtr, QpState::Rts, QpType::Rc, "LTUQO", "CAHXW"),
    (QpState::Rtr, QpState::Rts, QpType::Uc, "Q", "CAHX"),
    (QpState::Rtr, QpState::Rts, QpType::Ud, "Q", "CK"),
    (QpState::Rts, QpState::Rts, QpType::Rc, "", "CAHXW"),
    (QpState::Rts, QpState::Rts, QpType::Uc, "", "CAHX"),
    (QpState::Rts, QpState::Rts, QpType::Ud, "", "CK"),
    (QpState::Rts, QpState::Sqd, QpType::Rc, "", "N"),
    (QpState::Rts, QpState::Sqd, QpType::Uc, "", "N"),
    (QpState::Rts, QpState::Sqd, QpType::Ud, "", "N"),
    (QpState::Sqd, QpState::Rts, QpType::Rc, "", "CAHXW"),
    (QpState::Sqd, QpState::Rts, QpType::Uc, "", "CAHX"),
    (QpState::Sqd, QpState::Rts, QpType::Ud, "", "CK"),
    (QpState::Sqd, QpState::Sqd, QpType::Rc, "", "PVLTUOSHAIWX"),
    (QpState::Sqd, QpState::Sqd, QpType::Uc, "", "VHAIX"),
    (QpState::Sqd, QpState::Sqd, QpType::Ud, "", "IK"),
    (QpState::Sqe, QpState::Rts, QpType::Uc, "", "CA"),
    (QpState::Sqe, QpState::Rts, QpType::Ud, "", "CK"),
];

/// A new queue pair in `state`, `None` if that state cannot be reached by requests alone.
fn pair_in(world: &mut World, kind: QpType, state: QpState) -> Option<Pair> {
    let process = world.process(1);
    let pair = process.pair(world, kind, Sizes::default());
    let peer = (1, 0x777);
    match state {
        QpState::Reset | QpState::Init | QpState::Rtr | QpState::Rts => {
            pair.bring_to(world, state, peer, Tuning::default());
        }
        QpState::Sqd => {
            pair.bring_to(world, QpState::Rts, peer, Tuning::default());
            pair.set_state(world, QpState::Sqd).unwrap();
        }
        QpState::Sqe => {
            if kind == QpType::Rc {
                return None;
            }
            pair.bring_to(world, QpState::Rts, peer, Tuning::default());
            fail_a_send(world, &pair);
        }
        QpState::Err => pair.set_state(world, QpState::Err).unwrap(),
    }
    assert_eq!(pair.state(world), state);
    Some(pair)
}

/// Posts a send whose memory is not registered.
fn fail_a_send(world: &mut World, pair: &Pair) {
    use silvan_verbs::abi::structures::Sge;
    use silvan_verbs::abi::values::SendOpcode;

    let element = Sge {
        addr: BASE,
        length: 4,
        lkey: 0x1234_5678,
    };
    let mut post = Post::new(1, SendOpcode::Send, vec![element]);
    if pair.kind == QpType::Ud {
        let ah = pair.process.create_ah(world, pair.pd, 1, None).unwrap();
        post.datagram = Some((ah, 0x777, 0x1111));
    }
    pair.send(world, &[post]).unwrap();
}

fn request(pair: &Pair, to: QpState, mask: u32) -> ModifyQp {
    let mut command = pair.attributes(to, (1, 0x777), Tuning::default());
    command.attr_mask = qp_mask::STATE | mask;
    command.alt_dest = command.dest;
    command
}

#[test]
fn each_transition_needs_its_attributes_and_takes_no_others() {
    let mut world = World::new(1);
    for kind in QpType::ALL.iter().copied() {
        for from in QpState::ALL.iter().copied() {
            for to in QpState::ALL.iter().copied() {
                let entry = TABLE
                    .iter()
                    .find(|entry| (entry.0, entry.1, entry.2) == (from, to, kind));
                let allowed = match (to, entry) {
                    (QpState::Reset | QpState::Err, _) => Some((0, 0)),
                    (_, Some(entry)) => Some((mask(entry.3), mask(entry.4))),
                    (_, None) => None,
                };
                let Some(pair) = pair_in(&mut world, kind, from) else {
                    continue;
                };
                let Some((required, optional)) = allowed else {
                    // No set of attributes opens this way.
                    for bits in [0, qp_mask::ALL & !qp_mask::CAP, qp_mask::CUR_STATE] {
                        let mut command = request(&pair, to, bits);
                        command.cur_qp_state = from.number() as u8;
                        assert_eq!(
                            pair.modify(&mut world, command),
                            Err(22),
                            "{kind:?} {from:?} {to:?}"
                        );
                    }
                    assert_eq!(pair.state(&mut world), from);
                    continue;
                };
                for bit in (1..21).map(|bit| 1 << bit) {
                    let mut command = request(&pair, to, required ^ bit);
                    command.cur_qp_state = from.number() as u8;
                    let fits = required & bit == 0 && optional & bit != 0;
                    if fits {
                        // Checked below with all of them.
                        continue;
                    }
                    let result = pair.modify(&mut world, command);
                    assert_eq!(result, Err(22), "{kind:?} {from:?} {to:?} bit {bit:#x}");
                    assert_eq!(pair.state(&mut world), from);
                }
                for extra in [0, optional] {
                    let pair = pair_in(&mut world, kind, from).unwrap();
                    let mut command = request(&pair, to, required | extra);
                    command.cur_qp_state = from.number() as u8;
                    assert_eq!(
                        pair.modify(&mut world, command),
                        Ok(()),
                        "{kind:?} {from:?} {to:?}"
                    );
                    assert_eq!(pair.state(&mut world), to);
                }
            }
        }
    }
}

#[test]
fn values_out_of_range_change_nothing() {
    let mut world = World::new(1);
    let pair = pair_in(&mut world, QpType::Rc, QpState::Init).unwrap();
    let good = pair.attributes(QpState::Rtr, (1, 0x777), Tuning::default());
    let bad: [fn(&mut ModifyQp); 10] = [
        |command| command.path_mtu = 0,
        |command| command.path_mtu = 6,
        |command| command.dest_qp_num = 1 << 24,
        |command| command.max_dest_rd_atomic = 17,
        |command| command.min_rnr_timer = 32,
        |command| command.dest.dlid = 0,
        |command| command.dest.dlid = 0xc000,
        |command| command.dest.sl = 16,
        |command| command.dest.port_num = 2,
        |command| (command.dest.is_global, command.dest.sgid_index) = (1, 1),
    ];
    let before = pair.query(&mut world);
    for change in bad {
        let mut command = good;
        change(&mut command);
        assert_eq!(pair.modify(&mut world, command), Err(22));
        assert_eq!(pair.query(&mut world), before);
    }
    pair.modify(&mut world, good).unwrap();
    let rts = pair.attributes(QpState::Rts, (1, 0x777), Tuning::default());
    let bad: [fn(&mut ModifyQp); 5] = [
        |command| command.timeout = 32,
        |command| command.retry_cnt = 8,
        |command| command.rnr_retry = 8,
        |command| command.max_rd_atomic = 17,
        |command| {
            (command.attr_mask, command.cur_qp_state) = (command.attr_mask | qp_mask::CUR_STATE, 1)
        },
    ];
    for change in bad {
        let mut command = rts;
        change(&mut command);
        assert_eq!(pair.modify(&mut world, command), Err(22));
    }
    pair.modify(&mut world, rts).unwrap();
    let query = pair.query(&mut world);
    assert_eq!(
        (
            query.dest_qp_num,
            query.path_mtu,
            query.timeout,
            query.retry_cnt
        ),
        (0x777, 1, 8, 7)
    );
    assert_eq!(
        (query.dest.dlid, query.sq_psn, query.rq_psn),
        (1, 0xff_fffe, 0xff_fffe)
    );
    assert_eq!(
        (query.max_send_wr, query.max_recv_wr, query.max_inline_data),
        (64, 64, 256)
    );
}

#[test]
fn work_is_accepted_in_the_states_of_the_specification() {
    use QpState::{Err as Error, Init, Reset, Rtr, Rts, Sqd, Sqe};
    use silvan_verbs::abi::values::SendOpcode;

    let mut world = World::new(1);
    for kind in [QpType::Rc, QpType::Uc] {
        for state in QpState::ALL.iter().copied() {
            let Some(pair) = pair_in(&mut world, kind, state) else {
                continue;
            };
            let receives = matches!(state, Init | Rtr | Rts | Sqd | Sqe | Error);
            assert_eq!(
                pair.receive(&mut world, 1, Vec::new()).is_ok(),
                receives,
                "{state:?}"
            );
            let sends = matches!(state, Rts | Sqd | Sqe | Error);
            let post = Post::new(1, SendOpcode::Send, Vec::new());
            assert_eq!(pair.send(&mut world, &[post]).is_ok(), sends, "{state:?}");
            assert!(state != Reset || !receives);
        }
    }
}
