use std::time::Duration;

use silvan_cc::hooks::SettingChange;
use silvan_cc::schemes::ib_cc::{
    CctEntry, CongestionControlTable as Table, CongestionEntry, ControlLevel, IbAdapter, IbSwitch,
};
use silvan_core::{HostId, NodeId, PortNumber, Sl, SwitchId};
use silvan_mad::congestion::{
    CaCongestionEntry, CaCongestionSetting, CongestionControlTable, CongestionControlTableEntry,
    CongestionInfo, CongestionKeyInfo, CongestionLog, ManagementAttribute, SwitchCongestionSetting,
    SwitchPortCongestionElement, SwitchPortCongestionSetting, TimeStamp, switch_control_map,
};
use silvan_mad::{Bits, ClassPortInfo};

use super::{
    AgentResult, Exchange, INVALID_VALUE, Refusal, UNSUPPORTED_ATTRIBUTE, UNSUPPORTED_METHOD,
};
use crate::subnet::Subnet;
use silvan_model::meter::MarkLog;

mod wire;

use wire::Wire;

const ROOM: usize = ManagementAttribute::DATA_LEN;
const BLOCK_PORTS: usize = SwitchPortCongestionSetting::location("ports").elements;
const BLOCK_ENTRIES: usize = CongestionControlTable::location("entries").elements;
/// Smallest table of an adapter, in blocks.
const LEAST_BLOCKS: usize = 4;
const BY_SERVICE_LEVEL: u16 = 1;
const WHOLE_MAP: u32 = switch_control_map::VICTIM_MASK
    | switch_control_map::CREDIT_MASK
    | switch_control_map::THRESHOLD
    | switch_control_map::CREDIT_STARVATION
    | switch_control_map::MARKING_RATE;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyState {
    key: u64,
    protect: bool,
    lease: u16,
    violations: u16,
    expires: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(crate) struct SwitchSetting {
    whole: SwitchCongestionSetting,
    ports: Vec<SwitchPortCongestionElement>,
}

#[derive(Clone, Debug)]
pub(crate) struct AdapterSetting {
    port_control: u16,
    control_map: u16,
    entries: [CaCongestionEntry; Sl::COUNT],
    limit: u16,
    table: Vec<CongestionControlTableEntry>,
}

impl SwitchSetting {
    pub fn of(subnet: &Subnet, switch: SwitchId) -> Self {
        let control = &subnet.plane.engine.switch().inner.0;
        let setting = control.switch_setting(switch).copied().unwrap_or_default();
        let node = subnet.fabric.switch(switch);
        let mut ports = vec![SwitchPortCongestionElement::default()];
        ports.extend(node.ports().map(|port| {
            let own = control.port_marking(port);
            own.map_or_else(Default::default, |own| wire::marking_element(&own))
        }));
        let mut whole = SwitchCongestionSetting {
            control_map: WHOLE_MAP,
            ..wire::switch_to_wire(&setting)
        };
        let is_here = |port: &PortNumber| (1..=node.port_count).contains(&port.as_u8());
        whole.victim_mask = whole.victim_mask.iter().filter(is_here).collect();
        whole.credit_mask = whole.credit_mask.iter().filter(is_here).collect();
        Self { whole, ports }
    }
}

fn set_switch(control: &mut IbSwitch, switch: SwitchId, whole: &SwitchCongestionSetting) {
    let mut setting = control.switch_setting(switch).copied().unwrap_or_default();
    wire::switch_from_wire(&mut setting, whole);
    // Cannot be refused: the switch is one of the fabric's.
    let _ = control.set_switch(switch, setting);
}

impl AdapterSetting {
    fn of(subnet: &Subnet, host: HostId) -> Self {
        let control = &subnet.plane.engine.adapter().inner.0;
        let entry = |sl| wire::entry_to_wire(&control.entry(host, sl).unwrap_or_default());
        let mut entries = [CaCongestionEntry::default(); Sl::COUNT];
        for sl in Sl::all() {
            entries[sl.index()] = entry(sl);
        }
        let table = control.table();
        let given = table.entries().iter().map(|&entry| entry.to_wire());
        let mut wire: Vec<_> = given.collect();
        wire.resize(table_blocks(subnet) * BLOCK_ENTRIES, Default::default());
        Self {
            port_control: u16::from(control.level(host) == ControlLevel::ServiceLevel),
            control_map: u16::MAX,
            entries,
            limit: table.limit(),
            table: wire,
        }
    }
}

/// Room of adapters for the Congestion Control Table, in blocks.
fn table_blocks(subnet: &Subnet) -> usize {
    let table = subnet.plane.engine.adapter().inner.0.table();
    table
        .entries()
        .len()
        .div_ceil(BLOCK_ENTRIES)
        .max(LEAST_BLOCKS)
}

impl Subnet {
    pub(super) fn congestion_agent(&mut self, exchange: &mut Exchange) -> AgentResult {
        self.check_key(exchange)?;
        let node = exchange.at.node;
        let switch = self.fabric.nodes[node].as_switch();
        let host = self.fabric.nodes[node].as_host();
        match (exchange.attribute, exchange.set) {
            (ClassPortInfo::ID | CongestionInfo::ID | CongestionLog::ID | TimeStamp::ID, true) => {
                Err(UNSUPPORTED_METHOD)
            }
            (ClassPortInfo::ID, _) => {
                let info = ClassPortInfo {
                    base_version: 1,
                    class_version: 2,
                    response_time: Bits::saturating(16),
                    ..ClassPortInfo::default()
                };
                exchange.put(&info.emit(), ROOM);
                Ok(())
            }
            (CongestionInfo::ID, _) => {
                let info = CongestionInfo {
                    flags: u16::from(switch.is_some()),
                    control_table_cap: match host {
                        Some(_) => table_blocks(self) as u8,
                        None => 0,
                    },
                };
                exchange.put(&info.emit(), ROOM);
                Ok(())
            }
            (CongestionKeyInfo::ID, _) => self.key_info(exchange),
            (CongestionLog::ID, _) => {
                self.congestion_log(exchange);
                Ok(())
            }
            (TimeStamp::ID, _) => {
                let time_stamp = self.time_stamp();
                exchange.put(&TimeStamp { time_stamp }.emit(), ROOM);
                Ok(())
            }
            (SwitchCongestionSetting::ID, _) => {
                let switch = switch.ok_or(UNSUPPORTED_ATTRIBUTE)?;
                self.switch_setting(exchange, switch);
                Ok(())
            }
            (SwitchPortCongestionSetting::ID, _) => {
                let switch = switch.ok_or(UNSUPPORTED_ATTRIBUTE)?;
                self.port_settings(exchange, switch)
            }
            (CaCongestionSetting::ID, _) => {
                let host = host.ok_or(UNSUPPORTED_ATTRIBUTE)?;
                self.adapter_setting(exchange, host);
                Ok(())
            }
            (CongestionControlTable::ID, _) => {
                let host = host.ok_or(UNSUPPORTED_ATTRIBUTE)?;
                self.control_table(exchange, host)
            }
            _ => Err(UNSUPPORTED_ATTRIBUTE),
        }
    }

    fn check_key(&mut self, exchange: &Exchange) -> AgentResult {
        let uptime = self.uptime;
        let state = &mut self.state_mut(exchange.at.node).key;
        if state.expires.is_some_and(|expires| expires <= uptime) {
            *state = KeyState {
                violations: state.violations,
                ..KeyState::default()
            };
        }
        if state.key == 0 {
            return Ok(());
        }
        if state.key == exchange.key {
            state.expires = None;
            return Ok(());
        }
        if !exchange.set {
            return Ok(());
        }
        state.violations = state.violations.saturating_add(1);
        if state.lease > 0 && state.expires.is_none() {
            state.expires = Some(uptime + Duration::from_secs(u64::from(state.lease)));
        }
        Err(Refusal::Silent)
    }

    fn key_info(&mut self, exchange: &mut Exchange) -> AgentResult {
        let wanted = CongestionKeyInfo::parse(&exchange.data());
        let state = &mut self.state_mut(exchange.at.node).key;
        if exchange.set {
            *state = KeyState {
                key: wanted.cc_key,
                protect: wanted.protect,
                lease: wanted.lease_period,
                violations: wanted.violations.min(state.violations),
                expires: None,
            };
        }
        let hidden = state.protect && exchange.key != state.key && !exchange.set;
        let info = CongestionKeyInfo {
            cc_key: if hidden { 0 } else { state.key },
            protect: state.protect,
            lease_period: state.lease,
            violations: state.violations,
        };
        exchange.put(&info.emit(), ROOM);
        Ok(())
    }

    /// Changes the parts that Control_Map selects. The answer to a Set has the sent values.
    fn switch_setting(&mut self, exchange: &mut Exchange, switch: SwitchId) {
        let setting = &mut self.switch_settings[switch.index()];
        if !exchange.set {
            exchange.put(&setting.whole.emit(), ROOM);
            return;
        }
        let wanted = SwitchCongestionSetting::parse(&exchange.data());
        wire::take_selected(&mut setting.whole, &wanted);
        let whole = setting.whole;
        let control = &mut self.plane.engine.switch_mut().inner.0;
        set_switch(control, switch, &whole);
    }

    fn port_settings(&mut self, exchange: &mut Exchange, switch: SwitchId) -> AgentResult {
        let first = exchange.modifier as usize * BLOCK_PORTS;
        let node = exchange.at.node;
        let known = self.switch_settings[switch.index()].ports.len();
        if exchange.modifier > u32::from(u8::MAX) || first >= known {
            return Err(INVALID_VALUE);
        }
        if exchange.set {
            let wanted = SwitchPortCongestionSetting::parse(&exchange.data());
            for (number, element) in (first..known).zip(wanted.ports) {
                self.switch_settings[switch.index()].ports[number] = element;
                self.set_port(node, number, element);
            }
            return Ok(());
        }
        let mut answer = SwitchPortCongestionSetting::default();
        let ports = &self.switch_settings[switch.index()].ports[first..];
        for (to, from) in answer.ports.iter_mut().zip(ports) {
            *to = *from;
        }
        exchange.put(&answer.emit(), ROOM);
        Ok(())
    }

    fn set_port(&mut self, node: NodeId, number: usize, element: SwitchPortCongestionElement) {
        let Some(port) = self.port_id(node, PortNumber::new(number as u8)) else {
            return;
        };
        let control = &mut self.plane.engine.switch_mut().inner.0;
        let Some(effective) = control.effective(port) else {
            return;
        };
        let (marking, starvation) = wire::element_settings(&effective, &element);
        let (valid, credits) = (element.valid, element.credit_starvation);
        // Cannot be refused: the port is a switch's.
        let _ = control.set_port_marking(port, (valid && !credits).then_some(marking));
        let _ = control.set_port_starvation(port, (valid && credits).then_some(starvation));
    }

    pub fn reset_switch_setting(&mut self, switch: SwitchId) {
        let first = self.first_switch_settings[switch.index()].clone();
        let node = self.fabric.node_of_switch(switch);
        let control = self.plane.engine.switch_mut();
        control.meter.logs[switch.index()] = MarkLog::default();
        set_switch(&mut control.inner.0, switch, &first.whole);
        for (number, &element) in first.ports.iter().enumerate() {
            self.set_port(node, number, element);
        }
        self.switch_settings[switch.index()] = first;
    }

    pub fn read_setting(&mut self, change: &SettingChange) {
        match *change {
            SettingChange::Port { port, .. } => {
                let (node, number) = self.location(port);
                let Some(switch) = self.fabric.nodes[node].as_switch() else {
                    return;
                };
                let held = SwitchSetting::of(self, switch);
                let number = usize::from(number.as_u8());
                let setting = &mut self.switch_settings[switch.index()];
                setting.whole = held.whole;
                if held.ports[number].valid && !change.concerns_credits() {
                    setting.ports[number] = held.ports[number];
                }
            }
            SettingChange::Adapter { sl, .. } => {
                let control = &self.plane.engine.adapter().inner.0;
                for (&host, setting) in &mut self.adapter_settings {
                    let entry = control.entry(host, sl).unwrap_or_default();
                    setting.entries[sl.index()] = wire::entry_to_wire(&entry);
                }
            }
        }
    }

    fn adapter_record(&mut self, host: HostId) -> &mut AdapterSetting {
        if !self.adapter_settings.contains_key(&host) {
            let setting = AdapterSetting::of(self, host);
            self.adapter_settings.insert(host, setting);
        }
        self.adapter_settings
            .get_mut(&host)
            .expect("inserted above if it was not there")
    }

    fn adapter_setting(&mut self, exchange: &mut Exchange, host: HostId) {
        if !exchange.set {
            let setting = self.adapter_record(host);
            let answer = CaCongestionSetting {
                port_control: setting.port_control,
                control_map: setting.control_map,
                entries: setting.entries,
            };
            exchange.put(&answer.emit(), ROOM);
            return;
        }
        let wanted = CaCongestionSetting::parse(&exchange.data());
        let setting = self.adapter_record(host);
        setting.port_control = wanted.port_control;
        setting.control_map = wanted.control_map;
        for sl in Sl::all() {
            if wanted.control_map >> sl.as_u8() & 1 == 1 {
                setting.entries[sl.index()] = wanted.entries[sl.index()];
            }
        }
        self.sync_adapter(host);
    }

    fn control_table(&mut self, exchange: &mut Exchange, host: HostId) -> AgentResult {
        let first = exchange.modifier as usize * BLOCK_ENTRIES;
        let setting = self.adapter_record(host);
        let room = setting.table.len();
        if exchange.modifier > u32::from(u8::MAX) || first >= room {
            return Err(INVALID_VALUE);
        }
        if exchange.set {
            let wanted = CongestionControlTable::parse(&exchange.data());
            if usize::from(wanted.ccti_limit) >= room {
                return Err(INVALID_VALUE);
            }
            setting.limit = wanted.ccti_limit;
            setting.table[first..first + BLOCK_ENTRIES].copy_from_slice(&wanted.entries);
            self.sync_adapter(host);
            return Ok(());
        }
        let mut answer = CongestionControlTable {
            ccti_limit: setting.limit,
            ..CongestionControlTable::default()
        };
        answer
            .entries
            .copy_from_slice(&setting.table[first..first + BLOCK_ENTRIES]);
        exchange.put(&answer.emit(), ROOM);
        Ok(())
    }

    /// CCTI_Min may exceed CCTI_Limit between two requests that set both; it then counts as CCTI_Limit.
    fn sync_adapter(&mut self, host: HostId) {
        let now = self.now();
        let setting = self.adapter_record(host).clone();
        let control = &mut self.plane.engine.adapter_mut().inner.0;
        let raw: Vec<CctEntry> = setting
            .table
            .iter()
            .map(|&entry| CctEntry::from_wire(entry))
            .collect();
        let entry = |control: &IbAdapter, sl: Sl| {
            let mut entry = control.entry(host, sl).unwrap_or_default();
            wire::entry_from_wire(&mut entry, &setting.entries[sl.index()]);
            let limit = u8::try_from(setting.limit).unwrap_or(u8::MAX);
            entry.ccti_min = entry.ccti_min.min(limit);
            entry
        };
        // CCTI_Min must never exceed the limit, so all go to 0 while the table changes. These changes cannot be
        // refused.
        for sl in Sl::all() {
            let lowest = CongestionEntry {
                ccti_min: 0,
                ..entry(control, sl)
            };
            let _ = control.set_entry(now, host, sl, lowest);
        }
        if let Ok(table) = Table::from_device(raw, setting.limit) {
            let _ = control.set_table(now, host, table);
        }
        for sl in Sl::all() {
            let entry = entry(control, sl);
            let _ = control.set_entry(now, host, sl, entry);
        }
        let level = match setting.port_control & BY_SERVICE_LEVEL {
            0 => ControlLevel::QueuePair,
            _ => ControlLevel::ServiceLevel,
        };
        let _ = control.set_level(host, level);
    }
}
