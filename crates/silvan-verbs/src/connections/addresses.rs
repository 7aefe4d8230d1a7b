//! Addresses in a `sockaddr_in6`, which may hold a `sockaddr_in`.

use crate::errno::Errno;

const IP: u16 = 2;
const IP6: u16 = 10;
/// Network of the hosts, 10.0.0.0/8.
const HOSTS: u32 = 10 << 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address([u8; 28]);

impl Address {
    pub fn parse(bytes: &[u8; 28]) -> Result<Self, Errno> {
        match u16::from_ne_bytes([bytes[0], bytes[1]]) {
            IP | IP6 => Ok(Self(*bytes)),
            _ => Err(Errno::Invalid),
        }
    }

    pub fn any(port: u16) -> Self {
        let mut bytes = [0; 28];
        bytes[..2].copy_from_slice(&IP.to_ne_bytes());
        Self(bytes).with_port(port)
    }

    pub fn of_host(host: u32, port: u16) -> Self {
        let mut address = Self::any(port);
        address.0[4..8].copy_from_slice(&(HOSTS + host + 1).to_be_bytes());
        address
    }

    pub fn with_port(mut self, port: u16) -> Self {
        self.0[2..4].copy_from_slice(&port.to_be_bytes());
        self
    }

    pub fn port(self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    pub fn bytes(self) -> [u8; 28] {
        self.0
    }

    fn is_ip6(self) -> bool {
        u16::from_ne_bytes([self.0[0], self.0[1]]) == IP6
    }

    pub fn is_any(self) -> bool {
        let place = if self.is_ip6() { 8..24 } else { 4..8 };
        self.0[place].iter().all(|&byte| byte == 0)
    }

    /// The group of a multicast address, formed as for IP (RFC 4391) with the signature of the connection manager.
    pub fn group(self) -> Option<[u8; 16]> {
        let [_, _, _, _, first, second, third, last, ..] = self.0;
        let signature = [0xff, 0x12, 0x40, 0x01, 0xff, 0xff];
        let mut group = [0; 16];
        group[..6].copy_from_slice(&signature);
        if self.is_ip6() {
            group[6..].copy_from_slice(&self.0[14..24]);
            return (self.0[8] == 0xff).then_some(group);
        }
        group[12..].copy_from_slice(&[first & 0x0f, second, third, last]);
        (first & 0xf0 == 0xe0).then_some(group)
    }

    /// The host that the address names.
    pub fn host(self) -> Option<u32> {
        let [_, _, _, _, a, b, c, d, ..] = self.0;
        let number = u32::from_be_bytes([a, b, c, d]).checked_sub(HOSTS + 1)?;
        (!self.is_ip6() && number < 1 << 24).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_host_names_it() {
        let address = Address::of_host(300, 7471);
        assert_eq!((address.host(), address.port()), (Some(300), 7471));
        assert_eq!(&address.bytes()[4..8], [10, 0, 1, 45]);
        assert!(!address.is_any() && Address::any(1).is_any());
        assert_eq!(Address::any(1).host(), None);
        assert!(Address::parse(&[0; 28]).is_err());
    }
}
