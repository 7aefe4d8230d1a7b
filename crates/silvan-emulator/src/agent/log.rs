use silvan_core::{HostId, SwitchId, Time};
use silvan_mad::LOG_BYTE;
use silvan_mad::congestion::{
    CaLog, CaLogEvent, CongestionLog, PortBits, SwitchLog, SwitchLogEvent,
};

use super::Exchange;
use crate::subnet::Subnet;

const UNIT_PS: u64 = 1_024_000;

fn stamp(at: Time) -> u32 {
    // The 32-bit clock wraps around after 73 minutes.
    (at.as_ps() / UNIT_PS) as u32
}

impl Subnet {
    pub(super) fn time_stamp(&self) -> u32 {
        stamp(self.now())
    }

    pub(super) fn congestion_log(&mut self, exchange: &mut Exchange) {
        let node = &self.fabric.nodes[exchange.at.node];
        let log: CongestionLog = match (node.as_switch(), node.as_host()) {
            (Some(switch), _) => CongestionLog::Switch(self.switch_log(switch)),
            (_, Some(host)) => CongestionLog::Ca(self.adapter_log(host)),
            (None, None) => return,
        };
        exchange.bytes[LOG_BYTE..].copy_from_slice(&log.emit());
    }

    fn switch_log(&mut self, switch: SwitchId) -> SwitchLog {
        let log = &self.plane.engine.switch().meter.logs[switch.index()];
        let mut answer = SwitchLog {
            events: u16::try_from(log.count).unwrap_or(u16::MAX),
            current_timestamp: self.time_stamp(),
            port_map: log
                .ports
                .iter()
                .map(|&port| self.fabric.ports[port].number)
                .collect::<PortBits>(),
            ..SwitchLog::default()
        };
        for (to, event) in answer.entries.iter_mut().zip(log.events.iter().rev()) {
            *to = SwitchLogEvent {
                source_lid: self.host_lid(event.source),
                destination_lid: self.host_lid(event.destination),
                sl: event.sl,
                timestamp: stamp(event.at),
            };
        }
        let log = &mut self.plane.engine.switch_mut().meter.logs[switch.index()];
        log.count = 0;
        log.ports.clear();
        answer
    }

    /// Newest first. A flow is identified by its LIDs and service level, because the model has no queue pair numbers.
    fn adapter_log(&mut self, host: HostId) -> CaLog {
        let log = self.plane.engine.adapter().inner.0.log(host);
        let mut answer = CaLog {
            events: u16::try_from(log.count()).unwrap_or(u16::MAX),
            event_map: log.sl_map(),
            current_timestamp: self.time_stamp(),
            ..CaLog::default()
        };
        for (to, event) in answer.entries.iter_mut().zip(log.newest_first()) {
            *to = CaLogEvent {
                sl: event.sl,
                local_lid: self.host_lid(host),
                remote_lid: self.host_lid(event.destination),
                timestamp: stamp(event.at),
                ..CaLogEvent::default()
            };
        }
        answer
    }
}
