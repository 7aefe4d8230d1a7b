/// Error number of Linux that a refused command returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Errno {
    /// EBADF: no completion channel has this handle.
    BadDescriptor = 9,
    /// EAGAIN: there is no event.
    Again = 11,
    /// ENOMEM: a queue is full, or an adapter has no more objects of this kind.
    NoMemory = 12,
    /// EBUSY: other objects use this one.
    Busy = 16,
    /// EINVAL: wrong length, unknown handle, object of another context, or value out of range.
    Invalid = 22,
    /// ENOSPC: the response has no room.
    NoSpace = 28,
    /// ENOSYS: the kernel has this command, the adapter does not.
    NotImplemented = 38,
    /// EADDRINUSE: the host listens at the port.
    InUse = 98,
    /// EOPNOTSUPP: extended command.
    NotSupported = 95,
}

impl Errno {
    /// Number that `errno` has.
    pub const fn number(self) -> i32 {
        self as i32
    }
}
