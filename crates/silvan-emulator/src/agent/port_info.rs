use silvan_core::{NodeId, PortNumber, Vl};
use silvan_mad::Bits;
use silvan_mad::smp::{PhysicalState, PortInfo, PortState, capability};
use silvan_model::{OnWire, VlArbitration};

use super::subnet::ROOM;
use super::{AgentResult, Exchange, INVALID_VALUE, Refusal};
use crate::subnet::Subnet;

#[derive(Clone, Copy)]
struct Codes {
    all: u32,
    none: Option<u32>,
}

const WIDTHS: Codes = Codes {
    all: 0xff,
    none: None,
};
const SPEEDS: Codes = Codes {
    all: 0xf,
    none: None,
};
const EXTENDED_SPEEDS: Codes = Codes {
    all: 0x1f,
    none: Some(0x1e),
};
const EXTENDED_SPEEDS2: Codes = Codes {
    all: 0x7,
    none: Some(0x6),
};

fn enabled(before: u32, wanted: u32, codes: Codes, supported: u32) -> Result<u32, Refusal> {
    match wanted {
        0 => Ok(before),
        _ if wanted == codes.all => Ok(supported),
        _ if Some(wanted) == codes.none => Ok(0),
        _ if wanted & supported == 0 => Err(INVALID_VALUE),
        _ => Ok(wanted & supported),
    }
}

fn enable(info: &mut PortInfo, wanted: &PortInfo) -> AgentResult {
    let mut outcome = Ok(());
    let mut set = |before: u32, wanted: u32, codes, supported: u32| {
        enabled(before, wanted, codes, supported).unwrap_or_else(|refusal| {
            outcome = Err(refusal);
            before
        })
    };
    info.link_width_enabled = set(
        info.link_width_enabled.into(),
        wanted.link_width_enabled.into(),
        WIDTHS,
        info.link_width_supported.into(),
    ) as u8;
    info.link_speed_enabled = Bits::saturating(u64::from(set(
        info.link_speed_enabled.get(),
        wanted.link_speed_enabled.get(),
        SPEEDS,
        info.link_speed_supported.get(),
    )));
    info.link_speed_ext_enabled = Bits::saturating(u64::from(set(
        info.link_speed_ext_enabled.get(),
        wanted.link_speed_ext_enabled.get(),
        EXTENDED_SPEEDS,
        info.link_speed_ext_supported.get(),
    )));
    info.link_speed_ext2_enabled = Bits::saturating(u64::from(set(
        info.link_speed_ext2_enabled.get(),
        wanted.link_speed_ext2_enabled.get(),
        EXTENDED_SPEEDS2,
        info.link_speed_ext2_supported.get(),
    )));
    outcome
}

impl Subnet {
    pub(super) fn port_info(&mut self, exchange: &mut Exchange) -> AgentResult {
        // Bit 31 asks for extended speeds, which are always included.
        let named = exchange.modifier & 0x7fff_ffff;
        let named = u8::try_from(named).map_err(|_| INVALID_VALUE)?;
        let (node, number) = self.named_port(exchange, PortNumber::new(named))?;
        let outcome = if exchange.set {
            let wanted = PortInfo::parse(&exchange.data());
            self.set_port_info(node, number, &wanted)
        } else {
            Ok(())
        };
        let record = &self.state(node).ports[number];
        let mut info = record.info;
        info.local_port = exchange.at.port;
        if record.is_sm {
            info.capability_mask |= capability::IS_SM;
        }
        // With protect bit 0 set, a request without the key does not see the key.
        let key = self.own(node).info;
        if key.m_key_protect.get() & 1 == 1 && key.m_key != exchange.key {
            info.m_key = 0;
        }
        exchange.put(&info.emit(), ROOM);
        outcome
    }

    /// An impossible change of state is refused after all other fields have been set.
    fn set_port_info(&mut self, node: NodeId, number: usize, wanted: &PortInfo) -> AgentResult {
        let own = usize::from(self.own_port(node).as_u8());
        if number == own {
            self.set_own(node, number, wanted);
        }
        let info = &mut self.state_mut(node).ports[number].info;
        let outcome = enable(info, wanted);
        if wanted.neighbor_mtu.code() != 0 {
            info.neighbor_mtu = wanted.neighbor_mtu.min(info.mtu_cap);
        }
        if wanted.operational_vls.get() != 0 {
            info.operational_vls = wanted.operational_vls.min(info.vl_cap);
        }
        if wanted.link_down_default_state != PhysicalState::NO_CHANGE {
            info.link_down_default_state = wanted.link_down_default_state;
        }
        info.vl_high_limit = wanted.vl_high_limit;
        info.vl_stall_count = wanted.vl_stall_count;
        info.hoq_life = wanted.hoq_life;
        info.partition_enforcement_inbound = wanted.partition_enforcement_inbound;
        info.partition_enforcement_outbound = wanted.partition_enforcement_outbound;
        info.filter_raw_inbound = wanted.filter_raw_inbound;
        info.filter_raw_outbound = wanted.filter_raw_outbound;
        info.local_phy_errors = wanted.local_phy_errors;
        info.overrun_errors = wanted.overrun_errors;
        if !self.state(node).ports[number].vl_arbitration.is_empty() {
            self.sync_arbitration(node, number);
        }
        self.set_state(node, number, wanted)?;
        outcome
    }

    fn set_own(&mut self, node: NodeId, number: usize, wanted: &PortInfo) {
        let info = &mut self.state_mut(node).ports[number].info;
        let before = (info.lid, info.lmc.get());
        info.m_key = wanted.m_key;
        info.m_key_protect = wanted.m_key_protect;
        info.m_key_lease_period = wanted.m_key_lease_period;
        info.gid_prefix = wanted.gid_prefix;
        info.master_sm_lid = wanted.master_sm_lid;
        info.master_sm_sl = wanted.master_sm_sl;
        info.subnet_timeout = wanted.subnet_timeout;
        info.m_key_violations = wanted.m_key_violations.min(info.m_key_violations);
        info.p_key_violations = wanted.p_key_violations.min(info.p_key_violations);
        info.q_key_violations = wanted.q_key_violations.min(info.q_key_violations);
        if wanted.lid.is_unicast() {
            info.lid = wanted.lid;
            info.lmc = wanted.lmc;
        }
        self.move_lid(node, before);
        if let (true, Some(host)) = (wanted.client_reregister, self.fabric.nodes[node].as_host()) {
            self.plane.mark_paths_stale(host);
            self.reregistered.insert(node);
        }
    }

    fn set_state(&mut self, node: NodeId, number: usize, wanted: &PortInfo) -> AgentResult {
        let Some(port) = self.port_id(node, PortNumber::new(number as u8)) else {
            return Ok(());
        };
        match wanted.physical_state {
            PhysicalState::DISABLED if !self.record(port).disabled => {
                self.record_mut(port).disabled = true;
                self.train(port);
                return Ok(());
            }
            PhysicalState::POLLING if self.record(port).disabled => {
                self.record_mut(port).disabled = false;
                self.train(port);
                return Ok(());
            }
            PhysicalState::POLLING => self.retrain(port),
            _ => {}
        }
        let info = &mut self.record_mut(port).info;
        let state = info.port_state;
        info.port_state = match (state, wanted.port_state) {
            (_, PortState::NO_CHANGE) => return Ok(()),
            (PortState::DOWN, PortState::DOWN) => return Ok(()),
            (_, PortState::DOWN) => {
                self.retrain(port);
                return Ok(());
            }
            (PortState::INITIALIZE | PortState::ARMED, PortState::ARMED) => PortState::ARMED,
            (PortState::ARMED | PortState::ACTIVE, PortState::ACTIVE) => PortState::ACTIVE,
            _ => return Err(INVALID_VALUE),
        };
        match (state, info.port_state) {
            (PortState::INITIALIZE, _) => self.sync_neighbour(port),
            (PortState::ARMED, PortState::ACTIVE) => {
                if let Some(host) = self.fabric.nodes[node].as_host() {
                    self.invalidate_paths(host);
                }
                self.sync_port(port, OnWire::Arrive);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn sync_arbitration(&mut self, node: NodeId, number: usize) {
        let Some(port) = self.port_id(node, PortNumber::new(number as u8)) else {
            return;
        };
        let record = &self.state(node).ports[number];
        let lanes = self.plane.data_vls();
        let table = |blocks: [u8; 2]| {
            let entries = blocks
                .iter()
                .filter_map(|block| record.vl_arbitration.get(block))
                .flat_map(|table| table.entries);
            entries
                .filter(|entry| entry.weight > 0)
                .filter_map(|entry| Some((Vl::try_new(entry.vl.get() as u8).ok()?, entry.weight)))
                .filter(|(vl, _)| vl.index() < lanes)
                .collect::<Vec<_>>()
        };
        let tables = VlArbitration {
            low: table([1, 2]),
            high: table([3, 4]),
            limit_high: record.info.vl_high_limit,
        };
        // Cannot be refused: missing lanes are omitted above.
        let _ = self.plane.engine.set_vl_arbitration(port, &tables);
    }
}
