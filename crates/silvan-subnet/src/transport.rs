//! Transport of management datagrams, and its clock.

use silvan_core::{Lid, MonotonicTime, Span};
use silvan_mad::MAD_LEN;
use thiserror::Error;

/// A request on its way out.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Destination LID; the permissive LID 0xffff for a directed route.
    pub destination: Lid,
    /// The datagram. Of its TransactionID, only the low 32 bits come back.
    pub mad: &'a [u8; MAD_LEN],
    /// Time that the system waits for the answer before it returns the request.
    pub timeout: Span,
}

/// A datagram that has come in.
#[derive(Clone, Copy, Debug)]
pub struct Incoming {
    /// Source LID in the packet.
    pub source: Lid,
    /// True for a returned request without an answer.
    pub unanswered: bool,
    /// The datagram.
    pub mad: [u8; MAD_LEN],
}

/// A port of the subnet through which datagrams go, and the clocks.
pub trait Transport {
    /// The time since some instant; if it goes back, all deadlines count as passed.
    fn now(&mut self) -> MonotonicTime;

    /// Seconds since 1970, for what is compared across restarts.
    fn unix_time(&mut self) -> u64;

    /// Sends a request, or drops it as the wire may; [`TransportError::Lost`] at the end.
    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<(), TransportError>;

    /// Waits up to `limit` for a datagram; `None` also if the clock has gone back. [`TransportError::Lost`] at the end.
    fn receive(&mut self, limit: Span) -> Result<Option<Incoming>, TransportError>;

    /// Waits for some time.
    fn pause(&mut self, span: Span);
}

/// Why no datagrams can be exchanged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The library of the kernel's interface is not there, or lacks a function.
    #[error("libibumad.so.3 cannot be used: {0}")]
    Library(#[from] libloading::Error),
    /// The kernel shows no InfiniBand adapter.
    #[error("this machine has no InfiniBand port: {0} cannot be opened")]
    NoModule(&'static str),
    /// The user has no permission to open the port's file.
    #[error("this user may not open {0}")]
    Denied(String),
    /// The port cannot be opened.
    #[error("{port} cannot be opened: {error}")]
    Open {
        /// The port that was asked for.
        port: String,
        /// Why.
        error: std::io::Error,
    },
    /// Another instance is in charge, or may be.
    #[error("the lease of the state folder is lost: another instance may be in charge")]
    NotInCharge,
    /// The port was there, and fails now.
    #[error("the InfiniBand port fails: {0}")]
    Lost(std::io::Error),
}

impl TransportError {
    /// Returns the hint.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Library(_) => "install the package libibumad3 (Debian) or libibumad (Fedora)",
            Self::NoModule(_) => {
                "load the kernel's module with modprobe ib_umad, or run the command in a live fabric: silvan emulate SCENARIO.toml -- COMMAND"
            }
            Self::Denied(_) => {
                "run the command as root, or let a udev rule give a group of this user access to /dev/infiniband/umad*; in a live fabric, --allow-user does"
            }
            Self::Open { .. } => "ibstat lists the adapters, their ports and which are active",
            Self::NotInCharge => "it takes over again when the other instance ends",
            Self::Lost(_) => {
                "ibstat shows whether the adapter is back; what silvan dcms has changed is in its journal"
            }
        }
    }
}
