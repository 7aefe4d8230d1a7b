//! Numbers of the kernel's verbs: operations, statuses, flags, attribute masks and events.

/// Declares an enumeration with its numbers, and its reading from a number.
macro_rules! numbers {
    ($(
        $(#[$meta:meta])*
        $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $value:literal,)* }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$variant_meta])* $variant = $value,)*
        }

        impl $name {
            /// All values, in order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The value with this number.
            pub const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($value => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Number of the value.
            pub const fn number(self) -> u32 {
                self as u32
            }
        }
    )*};
}

numbers! {
    /// Transport of a queue pair.
    QpType {
        /// Reliable connection.
        Rc = 2,
        /// Unreliable connection.
        Uc = 3,
        /// Unreliable datagram.
        Ud = 4,
    }

    /// State of a queue pair (InfiniBand Architecture Specification, volume 1, section 10.3.1).
    QpState {
        /// Created: no work is accepted.
        Reset = 0,
        /// Receives can be posted.
        Init = 1,
        /// Ready to receive.
        Rtr = 2,
        /// Ready to send.
        Rts = 3,
        /// Send queue drained: no further send starts.
        Sqd = 4,
        /// Send queue in error: sends are flushed, receives go on.
        Sqe = 5,
        /// All work is flushed.
        Err = 6,
    }

    /// Operation of a send work request.
    SendOpcode {
        /// RDMA write.
        Write = 0,
        /// RDMA write with immediate data.
        WriteWithImmediate = 1,
        /// Send.
        Send = 2,
        /// Send with immediate data.
        SendWithImmediate = 3,
        /// RDMA read.
        Read = 4,
        /// Atomic compare and swap.
        CompareAndSwap = 5,
        /// Atomic fetch and add.
        FetchAndAdd = 6,
    }

    /// Status of a completion.
    Status {
        /// Success.
        Success = 0,
        /// A message was longer than a buffer, or than the path allows.
        LocalLength = 1,
        /// The queue pair cannot do this operation.
        LocalOperation = 2,
        /// Local memory lacks a key, a range or a right.
        LocalProtection = 4,
        /// The queue pair went to an error state first.
        Flushed = 5,
        /// The responder answered in a wrong way.
        BadResponse = 7,
        /// A receive met a protection error of RDMA.
        LocalAccess = 8,
        /// The responder does not support the request.
        RemoteInvalidRequest = 9,
        /// Remote memory lacks a key, a range or a right.
        RemoteAccess = 10,
        /// The responder could not complete the operation.
        RemoteOperation = 11,
        /// No acknowledgement after all retries.
        RetryExceeded = 12,
        /// The receiver was not ready after all retries.
        RnrRetryExceeded = 13,
    }

    /// Operation of a completion.
    CompletionOpcode {
        /// Send.
        Send = 0,
        /// RDMA write.
        Write = 1,
        /// RDMA read.
        Read = 2,
        /// Compare and swap.
        CompareAndSwap = 3,
        /// Fetch and add.
        FetchAndAdd = 4,
        /// Receive of a send.
        Receive = 128,
        /// Receive of the immediate data of an RDMA write.
        ReceiveWriteWithImmediate = 129,
    }

    /// Asynchronous event.
    EventType {
        /// A completion queue overflowed.
        CqError = 0,
        /// A queue pair failed and cannot say so by a completion.
        QpFatal = 1,
        /// A responder met an invalid request.
        QpRequestError = 2,
        /// A responder met an access violation.
        QpAccessError = 3,
        /// First message of a queue pair that is ready to receive.
        CommunicationEstablished = 4,
        /// A send queue is drained.
        SqDrained = 5,
        /// The adapter failed.
        DeviceFatal = 8,
        /// The port became active.
        PortActive = 9,
        /// The port is no longer active.
        PortError = 10,
        /// The port has another LID.
        LidChange = 11,
        /// The port's table of P_Keys changed.
        PkeyChange = 12,
        /// The subnet manager moved.
        SmChange = 13,
        /// A shared receive queue failed.
        SrqError = 14,
        /// A shared receive queue has fewer requests than its limit.
        SrqLimit = 15,
        /// A queue pair in error takes no more requests from its shared receive queue.
        LastWqe = 16,
        /// The subnet manager asks clients to register again.
        ClientReregister = 17,
        /// The port's table of GIDs changed.
        GidChange = 18,
    }
}

impl SendOpcode {
    /// Returns true for operations that carry immediate data.
    pub const fn has_immediate(self) -> bool {
        matches!(self, Self::WriteWithImmediate | Self::SendWithImmediate)
    }

    /// Returns true for atomic operations.
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::CompareAndSwap | Self::FetchAndAdd)
    }

    /// Returns true for operations whose responder returns data.
    pub const fn has_response(self) -> bool {
        matches!(self, Self::Read | Self::CompareAndSwap | Self::FetchAndAdd)
    }

    /// Operation that the completion states.
    pub const fn completion(self) -> CompletionOpcode {
        match self {
            Self::Write | Self::WriteWithImmediate => CompletionOpcode::Write,
            Self::Send | Self::SendWithImmediate => CompletionOpcode::Send,
            Self::Read => CompletionOpcode::Read,
            Self::CompareAndSwap => CompletionOpcode::CompareAndSwap,
            Self::FetchAndAdd => CompletionOpcode::FetchAndAdd,
        }
    }
}

/// Flags of a send work request.
pub mod send_flags {
    /// Wait for earlier reads and atomic operations.
    pub const FENCE: u32 = 1;
    /// Report success, too.
    pub const SIGNALED: u32 = 1 << 1;
    /// Wake a receiver that waits for solicited completions.
    pub const SOLICITED: u32 = 1 << 2;
    /// Take the data when the request is posted; no key is needed.
    pub const INLINE: u32 = 1 << 3;
}

/// Flags of a completion.
pub mod completion_flags {
    /// A global route header precedes the data.
    pub const GRH: u32 = 1;
    /// Immediate data are valid.
    pub const WITH_IMMEDIATE: u32 = 1 << 1;
}

/// Rights of a memory region or queue pair.
pub mod access {
    /// The adapter may write for local requests.
    pub const LOCAL_WRITE: u32 = 1;
    /// Remote requests may write.
    pub const REMOTE_WRITE: u32 = 1 << 1;
    /// Remote requests may read.
    pub const REMOTE_READ: u32 = 1 << 2;
    /// Remote requests may be atomic.
    pub const REMOTE_ATOMIC: u32 = 1 << 3;
    /// Memory windows may be bound.
    pub const MW_BIND: u32 = 1 << 4;
    /// Addresses count from the region's start.
    pub const ZERO_BASED: u32 = 1 << 5;
    /// Memory lies in huge pages.
    pub const HUGE_TLB: u32 = 1 << 7;
    /// Hints that an adapter may ignore.
    pub const OPTIONAL: u32 = 0x3ff0_0000;
    /// All rights that this adapter accepts; ON_DEMAND (64) is not among them.
    pub const ACCEPTED: u32 = LOCAL_WRITE
        | REMOTE_WRITE
        | REMOTE_READ
        | REMOTE_ATOMIC
        | MW_BIND
        | ZERO_BASED
        | HUGE_TLB
        | OPTIONAL;
    /// Rights that MODIFY_QP accepts.
    pub const QUEUE_PAIR: u32 = LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC | MW_BIND;
}

/// Attributes in `attr_mask` of MODIFY_QP.
pub mod qp_mask {
    /// `qp_state`.
    pub const STATE: u32 = 1;
    /// `cur_qp_state`.
    pub const CUR_STATE: u32 = 1 << 1;
    /// `en_sqd_async_notify`.
    pub const EN_SQD_ASYNC_NOTIFY: u32 = 1 << 2;
    /// `qp_access_flags`.
    pub const ACCESS_FLAGS: u32 = 1 << 3;
    /// `pkey_index`.
    pub const PKEY_INDEX: u32 = 1 << 4;
    /// `port_num`.
    pub const PORT: u32 = 1 << 5;
    /// `qkey`.
    pub const QKEY: u32 = 1 << 6;
    /// `dest`.
    pub const AV: u32 = 1 << 7;
    /// `path_mtu`.
    pub const PATH_MTU: u32 = 1 << 8;
    /// `timeout`.
    pub const TIMEOUT: u32 = 1 << 9;
    /// `retry_cnt`.
    pub const RETRY_CNT: u32 = 1 << 10;
    /// `rnr_retry`.
    pub const RNR_RETRY: u32 = 1 << 11;
    /// `rq_psn`.
    pub const RQ_PSN: u32 = 1 << 12;
    /// `max_rd_atomic`.
    pub const MAX_QP_RD_ATOMIC: u32 = 1 << 13;
    /// `alt_dest` and its fields.
    pub const ALT_PATH: u32 = 1 << 14;
    /// `min_rnr_timer`.
    pub const MIN_RNR_TIMER: u32 = 1 << 15;
    /// `sq_psn`.
    pub const SQ_PSN: u32 = 1 << 16;
    /// `max_dest_rd_atomic`.
    pub const MAX_DEST_RD_ATOMIC: u32 = 1 << 17;
    /// `path_mig_state`.
    pub const PATH_MIG_STATE: u32 = 1 << 18;
    /// Queue sizes.
    pub const CAP: u32 = 1 << 19;
    /// `dest_qp_num`.
    pub const DEST_QPN: u32 = 1 << 20;
    /// All of the above.
    pub const ALL: u32 = (1 << 21) - 1;
}

/// Attributes in `attr_mask` of MODIFY_SRQ.
pub mod srq_mask {
    /// `max_wr`.
    pub const MAX_WR: u32 = 1;
    /// `srq_limit`.
    pub const LIMIT: u32 = 1 << 1;
}

/// Capabilities of QUERY_DEVICE.
pub mod device_capabilities {
    /// A port counts packets with a wrong P_Key.
    pub const BAD_PKEY_CNTR: u32 = 1 << 1;
    /// A port counts datagrams with a wrong Q_Key.
    pub const BAD_QKEY_CNTR: u32 = 1 << 2;
    /// MODIFY_QP accepts `cur_qp_state`.
    pub const CURR_QP_STATE_MOD: u32 = 1 << 7;
    /// PORT_ACTIVE is reported.
    pub const PORT_ACTIVE_EVENT: u32 = 1 << 10;
    /// The GUID of the system is valid.
    pub const SYS_IMAGE_GUID: u32 = 1 << 11;
    /// Responders send RNR NAK.
    pub const RC_RNR_NAK_GEN: u32 = 1 << 12;
    /// MODIFY_SRQ resizes.
    pub const SRQ_RESIZE: u32 = 1 << 13;
}
