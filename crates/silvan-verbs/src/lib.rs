//! RDMA verbs without I/O: the kernel's commands, their objects, and the transports RC, UC and UD.
//!
//! [`Verbs`] holds the adapters of a fabric and the processes that opened them. It has no socket, thread or clock, and
//! never touches memory of a process. After each input the caller takes [`Action`]s by [`Verbs::next_action`] until
//! none is left.
//!
//! | input | meaning |
//! |---|---|
//! | [`Verbs::execute`] | bytes that a process wrote to `/dev/infiniband/uverbs0` |
//! | [`Verbs::departed`], [`Verbs::arrived`], [`Verbs::lost`] | fate of an injected message |
//! | [`Verbs::finish`] | outcome of a transfer of memory |
//! | [`Verbs::run_timers`] | the time of [`Verbs::next_timer`] has come |
//! | [`Verbs::set_port`], [`Verbs::close`] | a port changed, a process closed its file or died |
//!
//! rdma-core's provider ipathverbs sends all commands of `ib_user_verbs.h` by `write()` if sysfs states `abi_version`
//! 1. Version 2 maps queues (`rvt-abi.h`) without a place for a wake-up. Extended commands (bit 31) answer
//!    `EOPNOTSUPP`, and rdma-core falls back to the plain ones. Descriptors (`fd`, `comp_channel`, `async_fd`) are
//!    numbers of this crate, which the caller replaces.
//!
//! A work request is one [`Message`], and so is its answer. Sequence numbers count packets of the path MTU, but a lost
//! packet loses its whole message. A requester's timer starts at departure and stands still while a read's data leave
//! the responder.
//!
//! | part | supported |
//! |---|---|
//! | RC | send, RDMA write, both with immediate data, RDMA read, compare and swap, fetch and add |
//! | UC | send, RDMA write, both with immediate data |
//! | UD | send, with immediate data; multicast |
//! | not | XRC, memory windows, on-demand paging, path migration, static rates, end-to-end credits |
//!
//! Each byte of a command is untrusted: handles count in their context, memory keys in their protection domain, and
//! objects, queues and waiting events have bounds.

#![forbid(unsafe_code)]

pub mod abi;
mod action;
mod arena;
mod commands;
mod connections;
mod device;
mod errno;
mod message;
mod objects;
mod transport;
mod verbs;

pub use action::{Action, AtomicOperation, Fault, Outcome, Piece, Source, TransferId};
pub use connections::{CmFile, Connections};
pub use device::{DeviceAttributes, PortAttributes, PortState};
pub use errno::Errno;
pub use message::{Destination, Flow, Message, MessageKind};
pub use verbs::{ChannelHandle, ContextId, CqHandle, DeviceId, ProcessId, Reply, Verbs};
