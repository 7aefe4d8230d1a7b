//! Capture files that Wireshark and tshark open: classic pcap with nanosecond timestamps and link type 197 (Endace
//! ERF).
//!
//! A file is [`FILE_HEADER`], then one [`record`] per datagram, each an InfiniBand packet from its local route header
//! on. tshark 4.0 does not know link type 247, which has no ERF header. Check sums (ICRC and VCRC) are zero.

use silvan_core::{Lid, Sl, Time};

use crate::{Bits, MAD_LEN};

/// Addresses of a datagram, which are in the packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Source LID; 0xffff without LID routing.
    pub source_lid: Lid,
    /// Destination LID; 0xffff without LID routing.
    pub destination_lid: Lid,
    /// The queue pair that sent it: 0 for subnet management, 1 for the other classes.
    pub source_qp: Bits<24>,
    /// The queue pair that it goes to.
    pub destination_qp: Bits<24>,
    /// The service level; management datagrams to queue pair 0 have none and travel on lane 15.
    pub sl: Sl,
}

const HEADERS_LEN: usize = 8 + 12 + 8;
const CRC_LEN: usize = 4 + 2;
const PACKET_LEN: usize = HEADERS_LEN + MAD_LEN + CRC_LEN;
const ERF_LEN: usize = 16;
const CAPTURED_LEN: usize = ERF_LEN + PACKET_LEN;
const RECORD_HEADER_LEN: usize = 16;

/// The length of a [`record`] in bytes.
pub const RECORD_LEN: usize = RECORD_HEADER_LEN + CAPTURED_LEN;

/// The first bytes of a capture file.
pub const FILE_HEADER: [u8; 24] = {
    let mut header = [0; 24];
    // Magic number of nanosecond captures, version 2.4, longest packet, link type; all big-endian.
    let fields: [(usize, u32); 4] = [
        (0, 0xa1b2_3c4d),
        (4, 2 << 16 | 4),
        (16, CAPTURED_LEN as u32),
        (20, 197),
    ];
    let mut index = 0;
    while index < fields.len() {
        let (at, value) = fields[index];
        let bytes = value.to_be_bytes();
        let mut byte = 0;
        while byte < 4 {
            header[at + byte] = bytes[byte];
            byte += 1;
        }
        index += 1;
    }
    header
};

/// The bytes of one datagram in a capture file; `time` is rounded down to nanoseconds and wraps after 136 years.
pub fn record(time: Time, addresses: &Addresses, datagram: &[u8; MAD_LEN]) -> [u8; RECORD_LEN] {
    const PS_PER_NS: u64 = 1_000;
    const NS_PER_S: u64 = 1_000_000_000;
    let nanoseconds = time.as_ps() / PS_PER_NS;
    let seconds = (nanoseconds / NS_PER_S) as u32;
    let rest = (nanoseconds % NS_PER_S) as u32;
    let mut record = [0; RECORD_LEN];
    let (header, captured) = record.split_at_mut(RECORD_HEADER_LEN);
    header[..4].copy_from_slice(&seconds.to_be_bytes());
    header[4..8].copy_from_slice(&rest.to_be_bytes());
    header[8..12].copy_from_slice(&(CAPTURED_LEN as u32).to_be_bytes());
    header[12..].copy_from_slice(&(CAPTURED_LEN as u32).to_be_bytes());
    let (erf, packet) = captured.split_at_mut(ERF_LEN);
    erf.copy_from_slice(&erf_header(seconds, rest));
    packet[..HEADERS_LEN].copy_from_slice(&headers(addresses));
    packet[HEADERS_LEN..HEADERS_LEN + MAD_LEN].copy_from_slice(datagram);
    record
}

/// ERF's header: timestamp in units of 2^-32 s (little-endian), type, flags, length, lost packets, length of the
/// packet.
fn erf_header(seconds: u32, nanoseconds: u32) -> [u8; ERF_LEN] {
    const TYPE_INFINIBAND: u8 = 21;
    /// Records may differ in length.
    const VARYING_LENGTH: u8 = 4;
    let fraction = (u64::from(nanoseconds) << 32).div_ceil(1_000_000_000);
    let mut erf = [0; ERF_LEN];
    erf[..8].copy_from_slice(&(u64::from(seconds) << 32 | fraction).to_le_bytes());
    erf[8] = TYPE_INFINIBAND;
    erf[9] = VARYING_LENGTH;
    erf[10..12].copy_from_slice(&(CAPTURED_LEN as u16).to_be_bytes());
    erf[14..16].copy_from_slice(&(PACKET_LEN as u16).to_be_bytes());
    erf
}

/// The headers before the datagram (volume 1, sections 7.7, 9.2 and 9.3.1).
fn headers(addresses: &Addresses) -> [u8; HEADERS_LEN] {
    const LOCAL_TRANSPORT: u8 = 2;
    const UD_SEND_ONLY: u8 = 0x64;
    /// The partition that every port is in.
    const DEFAULT_P_KEY: u16 = 0xffff;
    const GENERAL_Q_KEY: u32 = 0x8001_0000;
    /// PktLen: words of four bytes from the local route header to the ICRC.
    const LENGTH_WORDS: u16 = ((PACKET_LEN - 2) / 4) as u16;

    let subnet_management = addresses.destination_qp.get() == 0;
    let vl = if subnet_management { 15 } else { 0 };
    let q_key = if subnet_management { 0 } else { GENERAL_Q_KEY };
    let mut headers = [0; HEADERS_LEN];
    headers[0] = vl << 4;
    headers[1] = addresses.sl.as_u8() << 4 | LOCAL_TRANSPORT;
    headers[2..4].copy_from_slice(&addresses.destination_lid.as_u16().to_be_bytes());
    headers[4..6].copy_from_slice(&LENGTH_WORDS.to_be_bytes());
    headers[6..8].copy_from_slice(&addresses.source_lid.as_u16().to_be_bytes());
    headers[8] = UD_SEND_ONLY;
    headers[10..12].copy_from_slice(&DEFAULT_P_KEY.to_be_bytes());
    headers[12..16].copy_from_slice(&addresses.destination_qp.get().to_be_bytes());
    headers[20..24].copy_from_slice(&q_key.to_be_bytes());
    headers[24..28].copy_from_slice(&addresses.source_qp.get().to_be_bytes());
    headers
}
