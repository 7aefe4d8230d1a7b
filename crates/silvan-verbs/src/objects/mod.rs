pub(crate) mod address;
pub(crate) mod completion;
pub(crate) mod context;
pub(crate) mod memory;
pub(crate) mod queue_pair;
pub(crate) mod receive;
pub(crate) mod states;

use crate::arena::Key;

pub(crate) type PdKey = Key<memory::ProtectionDomain>;
pub(crate) type MrKey = Key<memory::MemoryRegion>;
pub(crate) type CqKey = Key<completion::CompletionQueue>;
pub(crate) type SrqKey = Key<receive::SharedReceiveQueue>;
pub(crate) type QpKey = Key<queue_pair::QueuePair>;
pub(crate) type AhKey = Key<address::AddressHandle>;
