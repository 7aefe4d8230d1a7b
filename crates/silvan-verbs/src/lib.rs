//! RDMA verbs without I/O: the kernel's commands, the objects that they create, and the transports RC, UC and UD.
//!
//! [`Verbs`] holds the adapters of all hosts of one fabric and the processes that opened them. It has no socket, thread or
//! clock, and never touches memory of a process. A caller drives it with inputs and carries out its [`Action`]s:
//!
//! | input | meaning |
//! |---|---|
//! | [`Verbs::execute`] | bytes that a process wrote to `/dev/infiniband/uverbs0` |
//! | [`Verbs::departed`], [`Verbs::arrived`], [`Verbs::lost`] | fate of an injected message |
//! | [`Verbs::finish`] | outcome of a transfer of memory |
//! | [`Verbs::run_timers`] | the time of [`Verbs::next_timer`] has come |
//! | [`Verbs::set_port`], [`Verbs::close`] | a port changed, a process closed its file or died |
//!
//! After each input the caller takes actions by [`Verbs::next_action`] until none is left, in order.
//!
//! # The provider
//!
//! The commands are the structures of the kernel's header `ib_user_verbs.h`. rdma-core's provider ipathverbs sends all of them
//! by `write()` if sysfs states `abi_version` 1, also those that post work requests and poll completions.
//! With `abi_version` 2 the provider maps completion queues and receive queues of the driver (`rvt-abi.h`) and posts
//! receives without a system call. Such a mapping has no place for a wake-up, so this crate answers version 1.
//! The provider hfi1verbs has the same two versions.
//!
//! Extended commands (bit 31) answer `EOPNOTSUPP`, and rdma-core falls back to the plain ones.
//!
//! # File descriptors
//!
//! The crate has none. Where a command or response has a descriptor, the crate reads and writes numbers of its own:
//! `fd` of CREATE_COMP_CHANNEL's response and `comp_channel` of CREATE_CQ are channel handles, `async_fd` of GET_CONTEXT's
//! response is 0. The caller replaces them.
//!
//! # Transport
//!
//! A work request is one [`Message`], and so is its acknowledgement or response. Sequence numbers count packets of the path
//! MTU, as on the wire, but a lost packet loses its whole message. A requester has the timers, retry counts and refusals of the
//! specification; its timer starts at departure and stands still while the data of a read leave the responder.
//!
//! | part | supported |
//! |---|---|
//! | RC | send, RDMA write, both with immediate data, RDMA read, compare and swap, fetch and add |
//! | UC | send, RDMA write, both with immediate data |
//! | UD | send, with immediate data; multicast |
//! | not | XRC, memory windows, on-demand paging, path migration, static rates, end-to-end credits |
//!
//! # Trust
//!
//! Each byte of a command is untrusted. A handle counts only in the context that created it; a memory key counts only in the
//! protection domain of its queue pair. Numbers of objects, lengths of queues and waiting events have bounds, so that no program fills the
//! memory of this process. Messages come from the caller, who received them from this crate.

#![forbid(unsafe_code)]

pub mod abi;
mod action;
mod arena;
mod commands;
mod device;
mod errno;
mod message;
mod objects;
mod transport;
mod verbs;

pub use action::{Action, AtomicOperation, Fault, Outcome, Piece, Source, TransferId};
pub use device::{DeviceAttributes, PortAttributes, PortState};
pub use errno::Errno;
pub use message::{Destination, Flow, Message, MessageKind};
pub use verbs::{ChannelHandle, ContextId, CqHandle, DeviceId, ProcessId, Reply, Verbs};
