use silvan_core::{DeviceId, Guid, Lid, PortNumber};
use silvan_mad::congestion::{
    CongestionAttribute, CongestionKeyInfo, ManagementAttribute, SwitchCongestionSetting,
    SwitchPortCongestionElement, SwitchPortCongestionSetting, switch_control_map,
};
use silvan_mad::performance::{PerformanceAttribute, PortCountersExtended, PortXmitConCtrl};
use silvan_mad::smp::{
    NodeDescription, NodeInfo, NodeType, PortInfo, PortState, SmInfo, SmState, SmpAttribute,
    link_speed, link_width,
};
use silvan_mad::{Bits, Body, ClassPortInfo, Mad, Method, Status, performance_capability};

/// Difference between the PortGUID and the NodeGUID of a host.
const PORT_GUIDS: u64 = 0x1_0000;

/// Growth of counters per second.
#[derive(Clone, Copy, Debug)]
pub struct CounterRates {
    /// PortXmitData, in words of four bytes.
    pub data: f64,
    /// PortXmitWait, in ticks.
    pub wait: f64,
    /// PortXmitTimeCong, in ticks.
    pub cong: f64,
}

impl CounterRates {
    /// Creates rates of data alone, without waiting and congestion.
    pub fn data(data: f64) -> Self {
        Self {
            data,
            wait: 0.0,
            cong: 0.0,
        }
    }
}

/// A port.
#[derive(Clone, Debug, Default)]
pub struct FakePort {
    /// The node and port at the other end of its cable.
    pub peer: Option<(usize, u8)>,
    /// LinkDownedCounter.
    pub link_downed: u8,
    data: f64,
    wait: f64,
    cong: f64,
    /// PortXmitData at the last reset of its 32-bit counter, which is separate from the 64-bit one.
    narrow_base: f64,
    /// The port's own congestion-control setting.
    pub own: SwitchPortCongestionElement,
}

impl FakePort {
    /// Lets the counters grow for this time.
    pub fn grow(&mut self, rates: CounterRates, seconds: f64) {
        self.data += rates.data * seconds;
        self.wait += rates.wait * seconds;
        self.cong += rates.cong * seconds;
    }

    /// Sets its counters to 0.
    pub fn clear(&mut self) {
        (self.data, self.wait, self.cong, self.narrow_base) = (0.0, 0.0, 0.0, 0.0);
        self.link_downed = 0;
    }
}

/// A switch or a host.
#[derive(Clone, Debug)]
pub struct FakeNode {
    /// NodeDescription.
    pub name: String,
    /// NodeGUID.
    pub guid: Guid,
    /// LID of the node.
    pub lid: Lid,
    /// True for a switch.
    pub is_switch: bool,
    /// True for a router.
    pub is_router: bool,
    /// Vendor and device.
    pub device: DeviceId,
    /// True if the node is on.
    pub alive: bool,
    /// Ports by number, from port 0.
    pub ports: Vec<FakePort>,
    /// The setting of congestion control of the whole switch.
    pub whole: SwitchCongestionSetting,
    /// True if the node has SwitchPortCongestionSetting.
    pub has_port_settings: bool,
    /// Key that a Set must have.
    pub key: u64,
    /// True if the node answers requests of congestion control.
    pub has_congestion_agent: bool,
    /// True if the switch ignores invalid elements; else it removes their settings.
    pub ignores_invalid: bool,
}

impl FakeNode {
    /// A switch with a Marking_Rate of 128.
    pub fn switch(name: &str, lid: u16, ports: usize) -> Self {
        let whole = SwitchCongestionSetting {
            threshold: Bits::saturating(15),
            packet_size: 3,
            marking_rate: 128,
            ..SwitchCongestionSetting::default()
        };
        Self {
            name: name.to_owned(),
            guid: Guid::new(0x5000_0000 + u64::from(lid)),
            lid: Lid::new(lid),
            is_switch: true,
            is_router: false,
            device: DeviceId {
                vendor: 0,
                device: 0,
            },
            alive: true,
            ports: vec![FakePort::default(); ports + 1],
            whole,
            has_port_settings: true,
            key: 0,
            has_congestion_agent: true,
            ignores_invalid: false,
        }
    }

    /// A host with one port.
    pub fn host(name: &str, lid: u16) -> Self {
        Self {
            is_switch: false,
            guid: Guid::new(0x7000_0000 + u64::from(lid)),
            ..Self::switch(name, lid, 1)
        }
    }

    /// Resets all settings to their defaults.
    pub fn reboot(&mut self) {
        self.whole.marking_rate = 200;
        for port in &mut self.ports {
            port.clear();
            port.own = SwitchPortCongestionElement::default();
        }
    }

    /// The Marking_Rate in force at a port.
    pub fn rate(&self, port: u8) -> u16 {
        let own = &self.ports[usize::from(port)].own;
        match own.valid {
            true => own.marking_rate,
            false => self.whole.marking_rate,
        }
    }

    /// Turns a request into its answer and returns the status; `None` if the request is ignored.
    pub fn answer(
        &mut self,
        mad: &mut Mad,
        arrival: u8,
        is_sm: bool,
        sm_lid: Lid,
        sets: &mut Vec<(String, Option<u8>, u16)>,
    ) -> Option<Status> {
        let modifier = mad.modifier;
        let is_set = mad.method == Method::SET;
        match &mut mad.body {
            Body::Smp(smp) => self.subnet(&mut smp.attribute, modifier, arrival, is_sm, sm_lid),
            Body::Performance(attribute) => Some(self.performance(attribute, is_set)),
            Body::CongestionControl(control) => {
                let is_known = control.cc_key == self.key;
                let is_allowed = self.key == 0 || is_known || !is_set;
                if !is_allowed || !self.has_congestion_agent {
                    return None;
                }
                let CongestionAttribute::Management(attribute) = &mut control.attribute else {
                    return Some(Status::UNSUPPORTED_ATTRIBUTE);
                };
                if let ManagementAttribute::CongestionKeyInfo(info) = attribute {
                    *info = CongestionKeyInfo {
                        cc_key: if is_known { self.key } else { 0 },
                        protect: self.key != 0,
                        ..CongestionKeyInfo::default()
                    };
                    return Some(Status::OK);
                }
                Some(self.congestion(attribute, modifier, is_set, sets))
            }
            _ => None,
        }
    }

    fn subnet(
        &self,
        attribute: &mut SmpAttribute,
        modifier: u32,
        arrival: u8,
        is_sm: bool,
        sm_lid: Lid,
    ) -> Option<Status> {
        *attribute = match attribute {
            SmpAttribute::NodeInfo(_) => NodeInfo {
                node_type: match (self.is_switch, self.is_router) {
                    (true, _) => NodeType::SWITCH,
                    (false, true) => NodeType::ROUTER,
                    (false, false) => NodeType::CHANNEL_ADAPTER,
                },
                vendor_id: Bits::saturating(self.device.vendor.into()),
                device_id: self.device.device as u16,
                num_ports: (self.ports.len() - 1) as u8,
                node_guid: self.guid,
                port_guid: match self.is_switch {
                    true => self.guid,
                    false => Guid::new(self.guid.as_u64() + PORT_GUIDS),
                },
                local_port: PortNumber::new(arrival),
                ..NodeInfo::default()
            }
            .into(),
            SmpAttribute::NodeDescription(_) => NodeDescription::new(&self.name).unwrap().into(),
            SmpAttribute::PortInfo(_) => {
                let port = self.ports.get(modifier as usize)?;
                let is_up = port.peer.is_some() || modifier == 0;
                PortInfo {
                    lid: self.lid,
                    master_sm_lid: sm_lid,
                    port_state: match is_up {
                        true => PortState::ACTIVE,
                        false => PortState::DOWN,
                    },
                    link_width_active: link_width::X4,
                    link_speed_active: Bits::saturating(u64::from(link_speed::QDR)),
                    ..PortInfo::default()
                }
                .into()
            }
            SmpAttribute::SmInfo(_) if is_sm => SmInfo {
                state: SmState::MASTER,
                ..SmInfo::default()
            }
            .into(),
            SmpAttribute::SmInfo(_) => return None,
            _ => return Some(Status::UNSUPPORTED_ATTRIBUTE),
        };
        Some(Status::OK)
    }

    fn performance(&mut self, attribute: &mut PerformanceAttribute, is_set: bool) -> Status {
        let end = |value: f64| value.min(f64::from(u32::MAX)) as u32;
        match attribute {
            PerformanceAttribute::ClassPortInfo(info) => {
                *info = ClassPortInfo {
                    capability_mask: performance_capability::EXTENDED_WIDTH
                        | performance_capability::XMIT_WAIT,
                    ..ClassPortInfo::default()
                };
            }
            PerformanceAttribute::PortCounters(counters) => {
                let Some(port) = self
                    .ports
                    .get_mut(usize::from(counters.port_select.as_u8()))
                else {
                    return Status::INVALID_VALUE;
                };
                if is_set && counters.counter_select2 & 1 == 1 {
                    port.wait = 0.0;
                }
                if is_set && counters.counter_select >> 12 & 1 == 1 {
                    port.narrow_base = port.data;
                }
                counters.xmit_data = end(port.data - port.narrow_base);
                counters.xmit_wait = end(port.wait);
                counters.link_downed = port.link_downed;
            }
            PerformanceAttribute::PortCountersExtended(counters) => {
                let Some(port) = self.ports.get(usize::from(counters.port_select.as_u8())) else {
                    return Status::INVALID_VALUE;
                };
                *counters = PortCountersExtended {
                    port_select: counters.port_select,
                    xmit_data: port.data as u64,
                    ..PortCountersExtended::default()
                };
            }
            PerformanceAttribute::PortXmitConCtrl(control) => {
                let Some(port) = self.ports.get_mut(usize::from(control.port_select.as_u8()))
                else {
                    return Status::INVALID_VALUE;
                };
                if is_set && control.counter_select & 1 == 1 {
                    port.cong = 0.0;
                }
                *control = PortXmitConCtrl {
                    port_select: control.port_select,
                    time_cong: end(port.cong),
                    ..PortXmitConCtrl::default()
                };
            }
            _ => return Status::UNSUPPORTED_ATTRIBUTE,
        }
        Status::OK
    }

    fn congestion(
        &mut self,
        attribute: &mut ManagementAttribute,
        modifier: u32,
        is_set: bool,
        sets: &mut Vec<(String, Option<u8>, u16)>,
    ) -> Status {
        if !self.is_switch {
            return Status::UNSUPPORTED_ATTRIBUTE;
        }
        match attribute {
            ManagementAttribute::SwitchCongestionSetting(setting) => {
                if is_set && setting.control_map & switch_control_map::MARKING_RATE != 0 {
                    self.whole.marking_rate = setting.marking_rate;
                    sets.push((self.name.clone(), None, setting.marking_rate));
                }
                *setting = self.whole;
            }
            ManagementAttribute::SwitchPortCongestionSetting(setting)
                if self.has_port_settings && modifier == 0 =>
            {
                if is_set {
                    self.take_ports(setting, sets);
                }
                for (element, port) in setting.ports.iter_mut().zip(&self.ports) {
                    *element = port.own;
                }
            }
            _ => return Status::UNSUPPORTED_ATTRIBUTE,
        }
        Status::OK
    }

    fn take_ports(
        &mut self,
        setting: &SwitchPortCongestionSetting,
        sets: &mut Vec<(String, Option<u8>, u16)>,
    ) {
        for ((number, port), element) in (0..).zip(&mut self.ports).zip(&setting.ports) {
            if port.own == *element || self.ignores_invalid && !element.valid {
                continue;
            }
            port.own = *element;
            sets.push((self.name.clone(), Some(number), element.marking_rate));
        }
    }
}
