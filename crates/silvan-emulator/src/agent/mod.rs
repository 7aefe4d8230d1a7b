pub(crate) mod congestion;
mod log;
mod performance;
mod port_info;
mod subnet;

use silvan_mad::{ATTRIBUTE_BYTE, Class, MAD_LEN, Method, Packet, Status};

use crate::subnet::{Arrival, Subnet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    Answered,
    /// The client must conclude that the request was lost.
    Silent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Status(Status),
    Silent,
}

pub(crate) type AgentResult = Result<(), Refusal>;

pub(crate) const UNSUPPORTED_ATTRIBUTE: Refusal = Refusal::Status(Status::UNSUPPORTED_ATTRIBUTE);
pub(crate) const UNSUPPORTED_METHOD: Refusal = Refusal::Status(Status::UNSUPPORTED_METHOD);
pub(crate) const INVALID_VALUE: Refusal = Refusal::Status(Status::INVALID_VALUE);

pub(crate) struct Exchange<'a> {
    pub bytes: &'a mut [u8; MAD_LEN],
    pub at: Arrival,
    pub set: bool,
    pub attribute: u16,
    pub modifier: u32,
    pub key: u64,
}

impl Exchange<'_> {
    pub fn data<const N: usize>(&self) -> [u8; N] {
        std::array::from_fn(|index| self.bytes[ATTRIBUTE_BYTE + index])
    }

    pub fn put<const N: usize>(&mut self, attribute: &[u8; N], room: usize) {
        let data = &mut self.bytes[ATTRIBUTE_BYTE..ATTRIBUTE_BYTE + room];
        data[..N].copy_from_slice(attribute);
        data[N..].fill(0);
    }
}

impl Subnet {
    pub fn react(&mut self, at: Arrival, bytes: &mut [u8; MAD_LEN]) -> Reaction {
        let packet = Packet::new(&*bytes);
        let method = packet.method();
        let class = packet.class();
        let version = packet.class_version();
        let set = method == Method::SET;
        let supported = set || method == Method::GET;
        let mut exchange = Exchange {
            set,
            attribute: packet.attribute_id(),
            modifier: packet.attribute_modifier(),
            key: packet.key(),
            at,
            bytes,
        };
        let outcome = match (class, version) {
            _ if exchange.bytes[0] != 1 => Err(Refusal::Status(Status::BAD_VERSION)),
            (Class::SUBNET_LID | Class::SUBNET_DIRECTED, 1) if supported => {
                self.subnet_agent(&mut exchange)
            }
            (Class::PERFORMANCE, 1) if supported => self.performance_agent(&mut exchange),
            (Class::CONGESTION_CONTROL, 2) if supported => self.congestion_agent(&mut exchange),
            (Class::SUBNET_LID | Class::SUBNET_DIRECTED | Class::PERFORMANCE, 1)
            | (Class::CONGESTION_CONTROL, 2) => Err(UNSUPPORTED_METHOD),
            _ => Err(Refusal::Status(Status::BAD_VERSION)),
        };
        let status = match outcome {
            Ok(()) => Status::OK,
            Err(Refusal::Status(status)) => status,
            Err(Refusal::Silent) => return Reaction::Silent,
        };
        Packet::new(&mut *exchange.bytes).answer(status);
        Reaction::Answered
    }
}
