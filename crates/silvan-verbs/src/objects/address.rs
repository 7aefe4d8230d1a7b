use silvan_core::{Lid, Sl};

use super::PdKey;
use crate::abi::structures::{AhAttributes, GlobalRoute, QpDestination};
use crate::device::PortAttributes;
use crate::errno::Errno;
use crate::message::Destination;
use crate::verbs::ContextId;

pub(crate) const FIRST_MULTICAST: u16 = 0xc000;

pub(crate) const MULTICAST_QP: u32 = 0xff_ffff;

#[derive(Debug)]
pub(crate) struct AddressHandle {
    pub(crate) context: ContextId,
    pub(crate) pd: PdKey,
    pub(crate) address: Address,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    dlid: u16,
    sl: Sl,
    path_bits: u8,
    pub(crate) route: Option<GlobalRoute>,
}

impl Address {
    /// Connected queue pairs have no multicast address.
    pub(crate) fn new(
        attributes: &AhAttributes,
        port: &PortAttributes,
        accepts_multicast: bool,
    ) -> Result<Self, Errno> {
        let sl = Sl::try_new(attributes.sl).map_err(|_| Errno::Invalid)?;
        let dlid = attributes.dlid;
        let is_global = attributes.is_global != 0;
        let has_lid = match dlid {
            0 => false,
            FIRST_MULTICAST..0xffff => accepts_multicast,
            0xffff => false,
            _ => true,
        };
        if !has_lid || attributes.port_num != 1 {
            return Err(Errno::Invalid);
        }
        if is_global && usize::from(attributes.grh.sgid_index) >= port.gids.len() {
            return Err(Errno::Invalid);
        }
        Ok(Self {
            dlid,
            sl,
            path_bits: attributes.src_path_bits & 0x7f,
            route: is_global.then_some(attributes.grh),
        })
    }

    pub(crate) fn of_queue_pair(
        path: &QpDestination,
        port: &PortAttributes,
    ) -> Result<Self, Errno> {
        let attributes = AhAttributes {
            grh: GlobalRoute {
                dgid: path.dgid,
                flow_label: path.flow_label,
                sgid_index: path.sgid_index,
                hop_limit: path.hop_limit,
                traffic_class: path.traffic_class,
                reserved: 0,
            },
            dlid: path.dlid,
            sl: path.sl,
            src_path_bits: path.src_path_bits,
            static_rate: path.static_rate,
            is_global: path.is_global,
            port_num: path.port_num,
            reserved: 0,
        };
        Self::new(&attributes, port, false)
    }

    pub(crate) fn destination(&self) -> Destination {
        let lid = Lid::new(self.dlid);
        match self.dlid >= FIRST_MULTICAST {
            true => Destination::Multicast(lid),
            false => Destination::Unicast(lid),
        }
    }

    pub(crate) fn sl(&self) -> Sl {
        self.sl
    }

    pub(crate) fn source_lid(&self, port: &PortAttributes) -> Lid {
        let bits = u16::from(self.path_bits) & ((1 << port.lmc.min(7)) - 1);
        Lid::new(port.lid.as_u16() | bits)
    }

    pub(crate) fn route_header(&self, port: &PortAttributes, payload: u64) -> Option<[u8; 40]> {
        let route = self.route?;
        // Behind the header: BTH, DETH, padded data, ICRC.
        let behind = 12 + 8 + payload.next_multiple_of(4) + 4;
        let first = 6 << 28 | u32::from(route.traffic_class) << 20 | route.flow_label & 0xf_ffff;
        let mut header = [0; 40];
        header[..4].copy_from_slice(&first.to_be_bytes());
        header[4..6].copy_from_slice(&(behind as u16).to_be_bytes());
        header[6] = 0x1b;
        header[7] = route.hop_limit;
        let own = port.gids.get(usize::from(route.sgid_index))?;
        header[8..24].copy_from_slice(own);
        header[24..].copy_from_slice(&route.dgid);
        Some(header)
    }
}
