//! The two messages that umad2sim exchanges with its server, in the byte order of the machine
//! where nothing else is said.
//!
//! ```text
//! control, 80 bytes                          data, 288 bytes
//!  0  magic 0xdeadbeef                        0  destination LID, big-endian in the first two bytes
//!  4  client id                               4  source LID, likewise
//!  8  type                                    8  destination queue pair, big-endian
//! 12  length of the data                     12  source queue pair, big-endian
//! 16  data                                   16  status, big-endian
//!                                            24  length of the datagram, 64 bits, big-endian
//!                                            32  datagram
//! ```

use std::sync::Arc;

use silvan_core::Lid;
use silvan_mad::MAD_LEN;

pub(crate) const CONTROL_LEN: usize = 80;
pub(crate) const CONTROL_DATA: usize = 64;
pub(crate) const DATA_LEN: usize = 288;

const MAGIC: u32 = 0xdead_beef;
const MAD_AT: usize = DATA_LEN - MAD_LEN;
const LEAST_MAD: usize = 24;
pub(crate) const TIMED_OUT: u32 = 110;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlKind {
    Connect,
    Disconnect,
    GetPort,
    GetVendor,
    GetNodeInfo,
    GetPortInfo,
    SetIsSm,
    GetPKeys,
}

impl ControlKind {
    fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            1 => Self::Connect,
            2 => Self::Disconnect,
            3 => Self::GetPort,
            4 => Self::GetVendor,
            7 => Self::GetNodeInfo,
            8 => Self::GetPortInfo,
            9 => Self::SetIsSm,
            10 => Self::GetPKeys,
            _ => return None,
        })
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Control {
    bytes: [u8; CONTROL_LEN],
}

impl Control {
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; CONTROL_LEN] = bytes.try_into().ok()?;
        (word(&bytes, 0) == MAGIC).then_some(Self { bytes })
    }

    pub fn client(&self) -> u32 {
        word(&self.bytes, 4)
    }

    pub fn kind(&self) -> Option<ControlKind> {
        ControlKind::from_code(word(&self.bytes, 8))
    }

    pub fn data(&self) -> &[u8] {
        &self.bytes[16..]
    }

    pub fn word(&self, at: usize) -> u32 {
        word(self.data(), at)
    }

    pub fn reply(&self, data: &[u8]) -> [u8; CONTROL_LEN] {
        let mut bytes = self.bytes;
        bytes[16..16 + data.len()].copy_from_slice(data);
        bytes
    }

    pub fn refuse(&self) -> [u8; CONTROL_LEN] {
        let mut bytes = self.bytes;
        bytes[8..12].fill(0);
        bytes
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectRequest {
    pub id: u32,
    pub is_sm: bool,
    pub node: String,
}

const NAME_AT: usize = 12;
const NAME_LEN: usize = 32;

impl ConnectRequest {
    pub fn parse(control: &Control) -> Self {
        let name = &control.data()[NAME_AT..NAME_AT + NAME_LEN];
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(NAME_LEN);
        Self {
            id: control.word(0),
            is_sm: control.word(8) != 0,
            node: String::from_utf8_lossy(&name[..end]).into_owned(),
        }
    }

    pub fn answer(control: &Control, client: u16, name: &str) -> [u8; CONTROL_DATA] {
        let mut data = [0; CONTROL_DATA];
        data.copy_from_slice(control.data());
        data[..4].copy_from_slice(&u32::from(client).to_ne_bytes());
        let len = name.len().min(NAME_LEN - 1);
        let field = &mut data[NAME_AT..NAME_AT + NAME_LEN];
        field.fill(0);
        field[..len].copy_from_slice(&name.as_bytes()[..len]);
        data
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extra {
    /// Requesting agent of a file; an answer has it in its TransactionID.
    pub agent: u8,
    /// 0 for received datagrams.
    pub p_key_index: u16,
    /// Fields from grh_present to flow_label, if grh_present is set.
    pub grh: Option<[u8; GRH_LEN]>,
    /// Data after the first 256 bytes of a message of several packets.
    pub tail: Option<Arc<[u8]>>,
}

pub(crate) const GRH_LEN: usize = 24;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub bytes: [u8; DATA_LEN],
    pub extra: Extra,
}

impl Message {
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut bytes: [u8; DATA_LEN] = bytes.try_into().ok()?;
        let mut length = [0; 8];
        length.copy_from_slice(&bytes[24..32]);
        // Subnet managers send answers without final padding.
        let length = usize::try_from(u64::from_be_bytes(length)).ok()?;
        if !(LEAST_MAD..=MAD_LEN).contains(&length) {
            return None;
        }
        bytes[MAD_AT + length..].fill(0);
        Some(Self {
            bytes,
            extra: Extra::default(),
        })
    }

    /// An unsolicited datagram of queue pair 0.
    pub fn unasked(from: Lid, to: Lid, mad: &[u8; MAD_LEN]) -> Self {
        let mut message = Self {
            bytes: [0; DATA_LEN],
            extra: Extra::default(),
        };
        message.bytes[24..32].copy_from_slice(&(MAD_LEN as u64).to_be_bytes());
        message.set_lid(0, to);
        message.set_lid(4, from);
        message.bytes[MAD_AT..].copy_from_slice(mad);
        message
    }

    pub fn set_queue_pairs(&mut self, number: u32) {
        for at in [8, 12] {
            self.bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
        }
    }

    /// In bytes, at most 256.
    pub fn length(&self) -> usize {
        let mut length = [0; 8];
        length.copy_from_slice(&self.bytes[24..32]);
        (u64::from_be_bytes(length) as usize).min(MAD_LEN)
    }

    pub fn set_length(&mut self, length: usize) {
        self.bytes[24..32].copy_from_slice(&(length as u64).to_be_bytes());
    }

    pub fn source(&self) -> Lid {
        Lid::new(u16::from_be_bytes([self.bytes[4], self.bytes[5]]))
    }

    pub fn source_queue_pair(&self) -> [u8; 4] {
        [8, 9, 10, 11].map(|at| self.bytes[at + 4])
    }

    pub fn has_timed_out(&self) -> bool {
        self.bytes[16..20] == TIMED_OUT.to_be_bytes()
    }

    pub fn set_transaction_id(&mut self, id: u64) {
        self.bytes[MAD_AT + 8..MAD_AT + 16].copy_from_slice(&id.to_be_bytes());
    }

    pub fn destination(&self) -> Lid {
        Lid::new(u16::from_be_bytes([self.bytes[0], self.bytes[1]]))
    }

    fn set_lid(&mut self, at: usize, lid: Lid) {
        self.bytes[at..at + 4].fill(0);
        self.bytes[at..at + 2].copy_from_slice(&lid.as_u16().to_be_bytes());
    }

    pub fn set_source(&mut self, lid: Lid) {
        self.set_lid(4, lid);
    }

    pub fn mad(&mut self) -> &mut [u8; MAD_LEN] {
        let bytes: &mut [u8] = &mut self.bytes[MAD_AT..];
        bytes
            .try_into()
            .expect("what follows the header is as long as a datagram")
    }

    pub fn owner(&self) -> u16 {
        u16::from_be_bytes([self.bytes[MAD_AT + 8], self.bytes[MAD_AT + 9]])
    }

    pub fn set_owner(&mut self, client: u16) {
        self.bytes[MAD_AT + 8..MAD_AT + 10].copy_from_slice(&client.to_be_bytes());
    }

    pub fn transaction(&self) -> u64 {
        let bytes = &self.bytes[MAD_AT + 10..MAD_AT + 16];
        bytes
            .iter()
            .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
    }

    pub fn turn_round(&mut self) {
        for at in [0, 8] {
            let (first, second) = self.bytes[at..at + 8].split_at_mut(4);
            first.swap_with_slice(second);
        }
        self.bytes[16..20].fill(0);
        self.bytes[24..32].copy_from_slice(&(MAD_LEN as u64).to_be_bytes());
    }

    pub fn timed_out(mut self) -> Self {
        self.bytes[16..20].copy_from_slice(&TIMED_OUT.to_be_bytes());
        self
    }
}
