//! Transitions that MODIFY_QP may request, with required and optional attributes (IBA volume 1, 10.3.1 and 11.2.5.2).

use crate::abi::values::qp_mask::*;
use crate::abi::values::{QpState, QpType};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) required: u32,
    pub(crate) optional: u32,
}

const NONE: Transition = Transition {
    required: 0,
    optional: 0,
};

pub(crate) fn transition(kind: QpType, from: QpState, to: QpState) -> Option<Transition> {
    use QpState::{Err, Init, Reset, Rtr, Rts, Sqd, Sqe};
    use QpType::{Rc, Uc, Ud};

    const IDENTITY_UD: u32 = PKEY_INDEX | PORT | QKEY;
    const IDENTITY: u32 = PKEY_INDEX | PORT | ACCESS_FLAGS;
    const CONNECTION: u32 = AV | PATH_MTU | DEST_QPN | RQ_PSN;
    const PATHS: u32 = ALT_PATH | PATH_MIG_STATE;
    let running = match kind {
        Ud => CUR_STATE | QKEY,
        Uc => CUR_STATE | ACCESS_FLAGS | PATHS,
        Rc => CUR_STATE | ACCESS_FLAGS | PATHS | MIN_RNR_TIMER,
    };
    let (required, optional) = match (from, to) {
        (_, Reset | Err) => return Some(NONE),
        (Reset, Init) => match kind {
            Ud => (IDENTITY_UD, 0),
            Uc | Rc => (IDENTITY, 0),
        },
        (Init, Init) => match kind {
            Ud => (0, IDENTITY_UD),
            Uc | Rc => (0, IDENTITY),
        },
        (Init, Rtr) => match kind {
            Ud => (0, PKEY_INDEX | QKEY),
            Uc => (CONNECTION, ALT_PATH | ACCESS_FLAGS | PKEY_INDEX),
            Rc => (
                CONNECTION | MAX_DEST_RD_ATOMIC | MIN_RNR_TIMER,
                ALT_PATH | ACCESS_FLAGS | PKEY_INDEX,
            ),
        },
        (Rtr, Rts) => match kind {
            Ud | Uc => (SQ_PSN, running),
            Rc => (
                TIMEOUT | RETRY_CNT | RNR_RETRY | SQ_PSN | MAX_QP_RD_ATOMIC,
                running,
            ),
        },
        (Rts | Sqd, Rts) => (0, running),
        (Rts, Sqd) => (0, EN_SQD_ASYNC_NOTIFY),
        (Sqd, Sqd) => match kind {
            Ud => (0, PKEY_INDEX | QKEY),
            Uc => (0, AV | ACCESS_FLAGS | PKEY_INDEX | PATHS),
            Rc => (
                0,
                PORT | AV
                    | TIMEOUT
                    | RETRY_CNT
                    | RNR_RETRY
                    | MAX_QP_RD_ATOMIC
                    | MAX_DEST_RD_ATOMIC
                    | ACCESS_FLAGS
                    | PKEY_INDEX
                    | MIN_RNR_TIMER
                    | PATHS,
            ),
        },
        (Sqe, Rts) => match kind {
            Ud => (0, CUR_STATE | QKEY),
            Uc => (0, CUR_STATE | ACCESS_FLAGS),
            Rc => return None,
        },
        _ => return None,
    };
    Some(Transition { required, optional })
}
