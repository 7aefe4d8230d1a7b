use silvan_core::{Guid, NodeId, PortNumber};
use silvan_mad::smp::{
    GuidInfo, MulticastBlock, MulticastForwardingTable, NodeDescription, NodeInfo, PKeyBlock,
    PKeyTable, PortInfo, PortPair, SlToVlMappingTable, SmpAttribute, SwitchInfo,
    VlArbitrationBlock, VlArbitrationTable,
};
use silvan_mad::{Bits, smp::LinearForwardingTable};

use super::{
    AgentResult, Exchange, INVALID_VALUE, Refusal, UNSUPPORTED_ATTRIBUTE, UNSUPPORTED_METHOD,
};
use crate::subnet::{Subnet, SwitchRecord};

pub(super) const ROOM: usize = SmpAttribute::DATA_LEN;

impl Subnet {
    pub(super) fn subnet_agent(&mut self, exchange: &mut Exchange) -> AgentResult {
        self.check_m_key(exchange)?;
        match exchange.attribute {
            NodeDescription::ID | NodeInfo::ID if exchange.set => Err(UNSUPPORTED_METHOD),
            NodeDescription::ID => {
                let text = self.state(exchange.at.node).description.emit();
                exchange.put(&text, ROOM);
                Ok(())
            }
            NodeInfo::ID => {
                let mut info = self.state(exchange.at.node).info;
                info.local_port = exchange.at.port;
                exchange.put(&info.emit(), ROOM);
                Ok(())
            }
            SwitchInfo::ID => self.switch_info(exchange),
            GuidInfo::ID => self.guid_info(exchange),
            PortInfo::ID => self.port_info(exchange),
            PKeyTable::ID => self.p_key_table(exchange),
            SlToVlMappingTable::ID => self.sl_to_vl(exchange),
            VlArbitrationTable::ID => self.vl_arbitration(exchange),
            LinearForwardingTable::ID => self.linear_table(exchange),
            MulticastForwardingTable::ID => self.multicast_table(exchange),
            _ => Err(UNSUPPORTED_ATTRIBUTE),
        }
    }

    /// Only requests with the M_Key are answered; with protect bits 0 and 1, everybody may read (14.2.4).
    fn check_m_key(&mut self, exchange: &Exchange) -> AgentResult {
        let info = self.own(exchange.at.node).info;
        if info.m_key == 0 || info.m_key == exchange.key {
            return Ok(());
        }
        if !exchange.set && info.m_key_protect.get() < 2 {
            return Ok(());
        }
        let own = usize::from(self.own_port(exchange.at.node).as_u8());
        let info = &mut self.state_mut(exchange.at.node).ports[own].info;
        info.m_key_violations = info.m_key_violations.saturating_add(1);
        Err(Refusal::Silent)
    }

    fn switch_record(&mut self, exchange: &Exchange) -> Result<&mut SwitchRecord, Refusal> {
        let state = self.state_mut(exchange.at.node);
        state.switch.as_deref_mut().ok_or(UNSUPPORTED_ATTRIBUTE)
    }

    fn switch_info(&mut self, exchange: &mut Exchange) -> AgentResult {
        let before = self.switch_record(exchange)?.info;
        if exchange.set {
            let wanted = SwitchInfo::parse(&exchange.data());
            if wanted.linear_fdb_top > before.linear_fdb_cap {
                return Err(INVALID_VALUE);
            }
            let info = &mut self.switch_record(exchange)?.info;
            info.linear_fdb_top = wanted.linear_fdb_top;
            info.default_port = wanted.default_port;
            info.default_multicast_primary_port = wanted.default_multicast_primary_port;
            info.default_multicast_not_primary_port = wanted.default_multicast_not_primary_port;
            info.life_time = wanted.life_time;
            info.multicast_fdb_top = wanted.multicast_fdb_top;
            info.port_state_change &= !wanted.port_state_change;
            self.set_linear_top(
                exchange.at.node,
                before.linear_fdb_top,
                wanted.linear_fdb_top,
            );
        }
        let info = self.switch_record(exchange)?.info;
        exchange.put(&info.emit(), ROOM);
        Ok(())
    }

    fn guid_info(&mut self, exchange: &mut Exchange) -> AgentResult {
        let mut table = GuidInfo::default();
        if exchange.modifier == 0 {
            table.guids[0] = self.state(exchange.at.node).info.port_guid;
        } else if exchange.modifier > 3 {
            return Err(INVALID_VALUE);
        } else {
            table.guids.fill(Guid::new(0));
        }
        exchange.put(&table.emit(), ROOM);
        Ok(())
    }

    /// The port of a modifier, 0 being an adapter's addressed port, and the node with its record.
    pub(super) fn named_port(
        &self,
        exchange: &Exchange,
        number: PortNumber,
    ) -> Result<(NodeId, usize), Refusal> {
        let state = self.state(exchange.at.node);
        let number = match (&state.switch, number.as_u8()) {
            (None, 0) => exchange.at.port.as_u8(),
            (_, number) => number,
        };
        if number > state.info.num_ports {
            return Err(INVALID_VALUE);
        }
        let node = self.node_with_port(exchange.at.node, PortNumber::new(number));
        Ok((node, usize::from(number)))
    }

    fn p_key_table(&mut self, exchange: &mut Exchange) -> AgentResult {
        let PKeyBlock { port, block } = PKeyBlock::from_modifier(exchange.modifier);
        let (node, port) = self.named_port(exchange, port)?;
        let first = usize::from(block) * 32;
        if first >= self.state(node).p_keys_of(port) {
            return Err(INVALID_VALUE);
        }
        let keys = &mut self.state_mut(node).ports[port].p_keys;
        if exchange.set {
            let wanted = PKeyTable::parse(&exchange.data());
            if keys.len() < first + 32 {
                keys.resize(first + 32, 0);
            }
            keys[first..first + 32].copy_from_slice(&wanted.p_keys);
        }
        let mut table = PKeyTable::default();
        if let Some(keys) = keys.get(first..first + 32) {
            table.p_keys.copy_from_slice(keys);
        }
        exchange.put(&table.emit(), ROOM);
        Ok(())
    }

    fn sl_to_vl(&mut self, exchange: &mut Exchange) -> AgentResult {
        let PortPair { input, output } = PortPair::from_modifier(exchange.modifier);
        let node = exchange.at.node;
        let wanted = exchange.set.then(|| {
            let table = SlToVlMappingTable::parse(&exchange.data());
            table.vls.map(|vl| vl.get() as u8)
        });
        let table = if self.state(node).switch.is_some() {
            let (_, input) = self.named_port(exchange, input)?;
            let (_, output) = self.named_port(exchange, output)?;
            self.switch_lanes(node, (input as u8, output as u8), wanted)
        } else {
            let (_, port) = self.named_port(exchange, PortNumber::new(0))?;
            if let (Some(wanted), Some(host)) = (wanted, self.fabric.nodes[node].as_host()) {
                self.state_mut(node).ports[port].sl_to_vl = wanted;
                self.plane.engine.set_host_sl_to_vl(host, &wanted);
            }
            self.state(node).ports[port].sl_to_vl
        };
        let vls = table.map(|vl| Bits::saturating(u64::from(vl)));
        exchange.put(&SlToVlMappingTable { vls }.emit(), ROOM);
        Ok(())
    }

    /// Returns the lanes behind a pair of ports, after setting them if given.
    fn switch_lanes(
        &mut self,
        node: NodeId,
        (input, output): (u8, u8),
        wanted: Option<[u8; 16]>,
    ) -> [u8; 16] {
        let (from, to) = (PortNumber::new(input), PortNumber::new(output));
        if let Some(before) = self.plane.engine.sl_to_vl(node, from, to) {
            let (Some(wanted), Some(record)) = (wanted, &mut self.state_mut(node).switch) else {
                return before;
            };
            record.first_sl_to_vl.entry((from, to)).or_insert(before);
            if wanted != before {
                self.note_changed_ways();
            }
            self.plane.engine.set_sl_to_vl(node, from, to, &wanted);
            return self.plane.engine.sl_to_vl(node, from, to).unwrap_or(wanted);
        }
        let state = self.state_mut(node);
        let start = state.ports[usize::from(output)].sl_to_vl;
        match (&mut state.switch, wanted) {
            (Some(record), Some(wanted)) => {
                record.own_sl_to_vl.insert((input, output), wanted);
                wanted
            }
            (Some(record), None) => {
                let own = record.own_sl_to_vl.get(&(input, output));
                own.copied().unwrap_or(start)
            }
            (None, _) => start,
        }
    }

    fn vl_arbitration(&mut self, exchange: &mut Exchange) -> AgentResult {
        let VlArbitrationBlock { block, port } =
            VlArbitrationBlock::from_modifier(exchange.modifier);
        if !(1..=4).contains(&block) {
            return Err(INVALID_VALUE);
        }
        let (node, number) = self.named_port(exchange, port)?;
        let record = &mut self.state_mut(node).ports[number];
        if exchange.set {
            let table = VlArbitrationTable::parse(&exchange.data());
            record.vl_arbitration.insert(block, table);
        }
        let table = record.vl_arbitration.get(&block).copied();
        exchange.put(&table.unwrap_or_default().emit(), ROOM);
        if exchange.set {
            self.sync_arbitration(node, number);
        }
        Ok(())
    }

    fn linear_table(&mut self, exchange: &mut Exchange) -> AgentResult {
        let record = self.switch_record(exchange)?;
        let block = exchange.modifier as usize;
        if block > usize::from(record.info.linear_fdb_cap) / 64 {
            return Err(INVALID_VALUE);
        }
        if exchange.set {
            let data: [u8; 64] = exchange.data();
            self.set_linear(exchange.at.node, block, &data);
            return Ok(());
        }
        let mut data = [u8::MAX; 64];
        if let Some(entries) = record.linear.get(block * 64..block * 64 + 64) {
            data.copy_from_slice(entries);
        }
        exchange.put(&data, ROOM);
        Ok(())
    }

    fn multicast_table(&mut self, exchange: &mut Exchange) -> AgentResult {
        let MulticastBlock { position, block } = MulticastBlock::from_modifier(exchange.modifier);
        let key = (position.get(), block.get());
        let record = self.switch_record(exchange)?;
        if key.1 >= u32::from(record.info.multicast_fdb_cap) / 32 {
            return Err(INVALID_VALUE);
        }
        if exchange.set {
            let table = MulticastForwardingTable::parse(&exchange.data());
            record.multicast.insert(key, table.port_masks);
        }
        let port_masks = record.multicast.get(&key).copied().unwrap_or_default();
        exchange.put(&MulticastForwardingTable { port_masks }.emit(), ROOM);
        Ok(())
    }
}
