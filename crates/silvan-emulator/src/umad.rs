//! The kernel's interface for management datagrams (`/dev/infiniband/umadN`) over silvan's preload library: records of
//! a sequenced-packet socket, each a header and a datagram.
//!
//! The first record states the purpose:
//!
//! ```text
//! 0  operation, 32 bits, in the byte order of the machine
//! 4  length of the node's name, 32 bits
//! 8  name of the node; empty for the server's choice
//! the operation's own data
//! ```
//!
//! The answer has an error number (0: none), 32 bits, and the operation's own data.

use silvan_core::Lid;
use silvan_mad::MAD_LEN;

use crate::wire::{GRH_LEN, Message, TIMED_OUT};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    OpenMad,
    OpenIsSm,
    Ioctl,
    Tree,
    Read,
    /// `uverbsN`, whose number follows; answered with the stream for memory, completions and events.
    OpenVerbs,
    /// Answered with the file of the programs' clock.
    OpenClock,
    /// `rdma_cm`, answered with its number and the stream of its events.
    OpenConnections,
}

impl Operation {
    fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            1 => Self::OpenMad,
            2 => Self::OpenIsSm,
            3 => Self::Ioctl,
            4 => Self::Tree,
            5 => Self::Read,
            6 => Self::OpenVerbs,
            7 => Self::OpenClock,
            8 => Self::OpenConnections,
            _ => return None,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub operation: Operation,
    pub node: String,
    pub data: Vec<u8>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

impl Hello {
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let operation = Operation::from_code(word(bytes, 0)?)?;
        let length = usize::try_from(word(bytes, 4)?).ok()?;
        let rest = bytes.get(8..)?;
        let node = rest.get(..length)?;
        Some(Self {
            operation,
            node: String::from_utf8_lossy(node).into_owned(),
            data: rest[length..].to_vec(),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ioctl {
    Register(Registration),
    Unregister(u32),
    EnablePKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    pub queue_pair: u32,
    pub class: u8,
    pub version: u8,
    pub rmpp_version: u8,
    pub oui: u32,
    pub methods: [u64; 2],
    pub unknown_flags: bool,
}

const REGISTER: u32 = 0xc01c_1b01;
const UNREGISTER: u32 = 0x4004_1b02;
const ENABLE_P_KEY: u32 = 0x0000_1b03;
const REGISTER2: u32 = 0xc028_1b04;
const USER_RMPP: u32 = 1;
const KNOWN_FLAGS: u32 = USER_RMPP;

impl Ioctl {
    pub fn parse(number: u32, argument: &[u8]) -> Option<Self> {
        let long =
            |at| Some(u64::from(word(argument, at + 4)?) << 32 | u64::from(word(argument, at)?));
        Some(match number {
            REGISTER => {
                let &[queue_pair, class, version, o0, o1, o2, rmpp_version, _] =
                    argument.get(20..28)?
                else {
                    return None;
                };
                Self::Register(Registration {
                    queue_pair: queue_pair.into(),
                    class,
                    version,
                    rmpp_version,
                    oui: u32::from_be_bytes([0, o0, o1, o2]),
                    methods: [long(4)?, long(12)?],
                    unknown_flags: false,
                })
            }
            REGISTER2 => {
                let flags = word(argument, 12)?;
                let rmpp_version = *argument.get(36)?;
                Self::Register(Registration {
                    queue_pair: word(argument, 4)?,
                    class: *argument.get(8)?,
                    version: *argument.get(9)?,
                    rmpp_version: if flags & USER_RMPP == 0 {
                        rmpp_version
                    } else {
                        0
                    },
                    oui: word(argument, 32)?,
                    methods: [long(16)?, long(24)?],
                    unknown_flags: flags & !KNOWN_FLAGS != 0,
                })
            }
            UNREGISTER => Self::Unregister(word(argument, 0)?),
            ENABLE_P_KEY => Self::EnablePKey,
            _ => return None,
        })
    }

    pub fn set_agent(argument: &mut [u8], agent: u8) {
        if let Some(field) = argument.get_mut(..4) {
            field.copy_from_slice(&u32::from(agent).to_ne_bytes());
        }
    }
}

const HEADER_LEN: usize = 64;
const OLD_HEADER_LEN: usize = 56;
const LEAST_MAD: usize = 24;

#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub agent: u32,
    pub timeout_ms: u32,
    pub retries: u32,
    pub message: Message,
}

/// `has_p_key`: the program has enabled the P_Key index.
pub(crate) fn header_len(has_p_key: bool) -> usize {
    if has_p_key {
        HEADER_LEN
    } else {
        OLD_HEADER_LEN
    }
}

impl Written {
    pub fn parse(bytes: &[u8], has_p_key: bool) -> Option<Self> {
        let header = header_len(has_p_key);
        if bytes.len() < header + LEAST_MAD {
            return None;
        }
        let (header, datagram) = bytes.split_at(header);
        let mut mad = [0; MAD_LEN];
        let first = datagram.len().min(MAD_LEN);
        mad[..first].copy_from_slice(&datagram[..first]);
        let lid = Lid::new(u16::from_be_bytes([header[28], header[29]]));
        let mut message = Message::unasked(Lid::new(0), lid, &mad);
        message.set_length(first);
        message.bytes[8..12].copy_from_slice(&header[20..24]);
        message.bytes[12..16].copy_from_slice(&header[20..24]);
        message.extra.tail = (datagram.len() > MAD_LEN).then(|| datagram[MAD_LEN..].into());
        if header[32] != 0 {
            let mut grh = [0; GRH_LEN];
            grh.copy_from_slice(&header[32..32 + GRH_LEN]);
            message.extra.grh = Some(grh);
        }
        if has_p_key {
            message.extra.p_key_index = u16::from_ne_bytes([header[56], header[57]]);
        }
        Some(Self {
            agent: word(header, 0)?,
            timeout_ms: word(header, 8)?,
            retries: word(header, 12)?,
            message,
        })
    }
}

pub(crate) fn emit(message: &Message, has_p_key: bool) -> Vec<u8> {
    let timed_out = message.has_timed_out();
    let header = header_len(has_p_key);
    // The kernel returns only the common header of a timed-out request.
    let first = if timed_out {
        LEAST_MAD
    } else {
        message.length()
    };
    let tail = message.extra.tail.as_deref().filter(|_| !timed_out);
    let tail = tail.unwrap_or_default();
    let mut bytes = vec![0; header];
    let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    put(0, message.extra.agent.into());
    put(4, if timed_out { TIMED_OUT } else { 0 });
    put(16, (header + first + tail.len()) as u32);
    bytes[20..24].copy_from_slice(&message.source_queue_pair());
    bytes[28..30].copy_from_slice(&message.source().as_u16().to_be_bytes());
    if let Some(grh) = &message.extra.grh {
        bytes[32..32 + GRH_LEN].copy_from_slice(grh);
    }
    if has_p_key {
        bytes[56..58].copy_from_slice(&message.extra.p_key_index.to_ne_bytes());
    }
    bytes.extend_from_slice(&message.bytes[message.bytes.len() - MAD_LEN..][..first]);
    bytes.extend_from_slice(tail);
    bytes
}
