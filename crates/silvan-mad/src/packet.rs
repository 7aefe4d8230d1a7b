use std::borrow::{Borrow, BorrowMut};
use std::fmt;

use thiserror::Error;

use crate::Field;
use crate::field::code_points;

/// The length of every management datagram in bytes (volume 1, section 13.4.2).
pub const MAD_LEN: usize = 256;
/// Byte at which the attribute stands, in all classes but subnet administration.
pub const ATTRIBUTE_BYTE: usize = field::DATA / 8;
/// Byte at which a CongestionLog stands.
pub const LOG_BYTE: usize = field::LOG_DATA / 8;

/// Bit offsets in a datagram.
pub(crate) mod field {
    pub const BASE_VERSION: usize = 0;
    pub const CLASS: usize = 8;
    pub const CLASS_VERSION: usize = 16;
    pub const METHOD: usize = 24;
    pub const STATUS: usize = 32;
    /// Directed routes only: the highest bit of the status.
    pub const DIRECTION: usize = 32;
    pub const CLASS_SPECIFIC: usize = 48;
    pub const HOP_POINTER: usize = 48;
    pub const HOP_COUNT: usize = 56;
    pub const TRANSACTION_ID: usize = 64;
    pub const ATTRIBUTE_ID: usize = 128;
    pub const ATTRIBUTE_MODIFIER: usize = 160;
    /// Bytes after the common header.
    pub const PAYLOAD: usize = 192;
    /// M_Key of subnet management, CC_Key of congestion control.
    pub const KEY: usize = 192;
    pub const SM_KEY: usize = 288;
    pub const ATTRIBUTE_OFFSET: usize = 352;
    pub const COMPONENT_MASK: usize = 384;
    pub const RECORD: usize = 448;
    pub const DR_SLID: usize = 256;
    pub const DR_DLID: usize = 272;
    pub const LOG_DATA: usize = 256;
    /// The attribute in subnet management, performance management and congestion control.
    pub const DATA: usize = 512;
    pub const INITIAL_PATH: usize = 1024;
    pub const RETURN_PATH: usize = 1536;
}

code_points! {
    /// A management class (volume 1, section 13.4.4).
    pub struct Class: 8 {
        /// Subnet management, routed by LID.
        SUBNET_LID = 0x01 "Subn",
        /// Subnet administration.
        SUBNET_ADMINISTRATION = 0x03 "SubnAdm",
        /// Performance management.
        PERFORMANCE = 0x04 "Perf",
        /// Congestion control.
        CONGESTION_CONTROL = 0x21 "CC",
        /// Subnet management, directed route.
        SUBNET_DIRECTED = 0x81 "SubnDR",
    }
}

code_points! {
    /// A method, its highest bit telling responses (volume 1, section 13.4.5).
    pub struct Method: 8 {
        /// Reads an attribute.
        GET = 0x01 "Get",
        /// Changes an attribute.
        SET = 0x02 "Set",
        /// Sends without an answer.
        SEND = 0x03 "Send",
        /// Tells of an event.
        TRAP = 0x05 "Trap",
        /// Passes an event on.
        REPORT = 0x06 "Report",
        /// Says that a trap need not be repeated.
        TRAP_REPRESS = 0x07 "TrapRepress",
        /// Answers Get and Set.
        GET_RESPONSE = 0x81 "GetResp",
        /// Answers Report.
        REPORT_RESPONSE = 0x86 "ReportResp",
    }
}

impl Method {
    /// Returns true for a response.
    pub const fn is_response(self) -> bool {
        self.code() & 0x80 != 0
    }
}

/// A status, 0 being success (volume 1, section 13.4.7). In directed-route packets it has 15 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status(u16);

impl Status {
    /// Done.
    pub const OK: Self = Self(0);
    /// Busy, the request was discarded.
    pub const BUSY: Self = Self(0x0001);
    /// Bad class or class version.
    pub const BAD_VERSION: Self = Self(0x0004);
    /// The class has no such method.
    pub const UNSUPPORTED_METHOD: Self = Self(0x0008);
    /// The class has no such attribute, or not with this method.
    pub const UNSUPPORTED_ATTRIBUTE: Self = Self(0x000c);
    /// The attribute or its modifier has a bad value.
    pub const INVALID_VALUE: Self = Self(0x001c);

    /// The status of this value.
    pub const fn new(value: u16) -> Self {
        Self(value)
    }

    /// The value.
    pub const fn as_u16(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Self::OK => "ok",
            Self::BUSY => "busy",
            Self::BAD_VERSION => "bad class or version",
            Self::UNSUPPORTED_METHOD => "unsupported method",
            Self::UNSUPPORTED_ATTRIBUTE => "unsupported attribute",
            Self::INVALID_VALUE => "invalid value",
            Self(other) => return write!(f, "{other:#06x}"),
        };
        f.write_str(text)
    }
}

/// Why bytes are not a management datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MadError {
    /// Not as long as all datagrams are.
    #[error("{0} bytes, a management datagram has {MAD_LEN}")]
    Length(usize),
    /// An undefined base version.
    #[error("base version {0}, only 1 is defined")]
    BaseVersion(u8),
    /// A directed route that leaves its path.
    #[error("{0} hops, a directed route has at most 63")]
    HopCount(u8),
}

/// A view of a datagram in an owned or borrowed buffer: reads and writes any bytes, which [`Mad`](crate::Mad) judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<B>(B);

impl<'a> Packet<&'a [u8; MAD_LEN]> {
    /// The view of bytes that came from outside. Errors: [`MadError::Length`] unless there are 256.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, MadError> {
        match bytes.try_into() {
            Ok(bytes) => Ok(Self(bytes)),
            Err(_) => Err(MadError::Length(bytes.len())),
        }
    }
}

impl<B: Borrow<[u8; MAD_LEN]>> Packet<B> {
    /// The view of a buffer.
    pub const fn new(buffer: B) -> Self {
        Self(buffer)
    }

    /// Gives the buffer back.
    pub fn into_inner(self) -> B {
        self.0
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8; MAD_LEN] {
        self.0.borrow()
    }

    /// BaseVersion.
    pub fn base_version(&self) -> u8 {
        self.get(field::BASE_VERSION)
    }

    /// MgmtClass.
    pub fn class(&self) -> Class {
        self.get(field::CLASS)
    }

    /// ClassVersion.
    pub fn class_version(&self) -> u8 {
        self.get(field::CLASS_VERSION)
    }

    /// Method, with the response bit.
    pub fn method(&self) -> Method {
        self.get(field::METHOD)
    }

    /// Status, without the direction bit of a directed route.
    pub fn status(&self) -> Status {
        let status: u16 = self.get(field::STATUS);
        let mask = if self.class() == Class::SUBNET_DIRECTED {
            0x7fff
        } else {
            0xffff
        };
        Status::new(status & mask)
    }

    /// Direction bit: on its way back. Of directed routes only.
    pub fn is_returning(&self) -> bool {
        self.get(field::DIRECTION)
    }

    /// HopPointer. Of directed routes only.
    pub fn hop_pointer(&self) -> u8 {
        self.get(field::HOP_POINTER)
    }

    /// HopCount. Of directed routes only.
    pub fn hop_count(&self) -> u8 {
        self.get(field::HOP_COUNT)
    }

    /// TransactionID.
    pub fn transaction_id(&self) -> u64 {
        self.get(field::TRANSACTION_ID)
    }

    /// AttributeID.
    pub fn attribute_id(&self) -> u16 {
        self.get(field::ATTRIBUTE_ID)
    }

    /// AttributeModifier.
    pub fn attribute_modifier(&self) -> u32 {
        self.get(field::ATTRIBUTE_MODIFIER)
    }

    /// M_Key of subnet management, CC_Key of congestion control.
    pub fn key(&self) -> u64 {
        self.get(field::KEY)
    }

    /// The attribute's bytes: the first 64 in subnet management, else all but CongestionLog's.
    pub fn data(&self) -> &[u8] {
        &self.bytes()[field::DATA / 8..]
    }

    fn get<T: Field>(&self, at: usize) -> T {
        T::read(self.bytes(), at)
    }
}

impl<B: BorrowMut<[u8; MAD_LEN]>> Packet<B> {
    /// All bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8; MAD_LEN] {
        self.0.borrow_mut()
    }

    /// Sets TransactionID.
    pub fn set_transaction_id(&mut self, transaction_id: u64) {
        self.set(transaction_id, field::TRANSACTION_ID);
    }

    /// Sets Method.
    pub fn set_method(&mut self, method: Method) {
        self.set(method, field::METHOD);
    }

    /// Sets Status and leaves the direction bit of a directed route alone.
    pub fn set_status(&mut self, status: Status) {
        let direction = self.class() == Class::SUBNET_DIRECTED && self.is_returning();
        self.set(status.as_u16(), field::STATUS);
        if self.class() == Class::SUBNET_DIRECTED {
            self.set(direction, field::DIRECTION);
        }
    }

    /// Turns a request into its GetResp with this status (volume 1, section 13.4.6.1); the caller writes the attribute.
    pub fn answer(&mut self, status: Status) {
        self.set_method(Method::GET_RESPONSE);
        self.set_status(status);
        if self.class() == Class::SUBNET_DIRECTED {
            self.set(true, field::DIRECTION);
        }
    }

    fn set<T: Field>(&mut self, value: T, at: usize) {
        value.write(self.bytes_mut(), at);
    }
}

impl<B: Borrow<[u8; MAD_LEN]>> fmt::Display for Packet<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match crate::Mad::parse(self) {
            Ok(mad) => mad.fmt(f),
            Err(error) => write!(f, "malformed datagram: {error}"),
        }
    }
}
