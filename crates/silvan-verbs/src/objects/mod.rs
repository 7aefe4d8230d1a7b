//! Objects that commands create: what they hold, and which values they accept.

pub(crate) mod address;
pub(crate) mod completion;
pub(crate) mod context;
pub(crate) mod memory;
pub(crate) mod queue_pair;
pub(crate) mod receive;
pub(crate) mod states;

use crate::arena::Key;

/// Key of a protection domain.
pub(crate) type PdKey = Key<memory::ProtectionDomain>;
/// Key of a memory region.
pub(crate) type MrKey = Key<memory::MemoryRegion>;
/// Key of a completion queue.
pub(crate) type CqKey = Key<completion::CompletionQueue>;
/// Key of a shared receive queue.
pub(crate) type SrqKey = Key<receive::SharedReceiveQueue>;
/// Key of a queue pair.
pub(crate) type QpKey = Key<queue_pair::QueuePair>;
/// Key of an address handle.
pub(crate) type AhKey = Key<address::AddressHandle>;
