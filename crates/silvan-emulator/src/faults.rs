mod schedule;

use std::time::Duration;

use silvan_fabric::CableLimit;
use silvan_scenario::faults::Fault;

use crate::clients::Clients;

pub use schedule::FaultSchedule;
pub(crate) use schedule::Timetable;

impl Clients {
    pub(crate) fn bring_about(&mut self, fault: Fault, span: Duration) -> Result<(), String> {
        let subnet = &mut self.subnet;
        match fault {
            Fault::Cut(port) => {
                subnet.set_cable(port, true);
            }
            Fault::Degrade(port, limit) => subnet.limit_cable(port, limit),
            Fault::SymbolErrors(port, rate) => subnet.set_symbol_errors(port, rate),
            Fault::BitErrors(port, errors) => {
                subnet.plane.engine.set_bit_errors(port, Some(&errors));
            }
            Fault::Slow(host, rate) => subnet.plane.engine.set_sink_rate(host, rate),
            Fault::Reboot(switch) => {
                if !subnet.power_off(switch, span) {
                    let name = &subnet.fabric.nodes[subnet.fabric.node_of_switch(switch)].name;
                    return Err(format!("{name} is off already"));
                }
                self.come_due();
            }
            Fault::Lose(share, seed) => self.loss.set(share, seed),
        }
        self.flush_traps();
        Ok(())
    }

    pub(crate) fn repair(&mut self, fault: Fault) {
        let subnet = &mut self.subnet;
        match fault {
            Fault::Cut(port) => {
                subnet.set_cable(port, false);
            }
            Fault::Degrade(port, _) => subnet.limit_cable(port, CableLimit::default()),
            Fault::SymbolErrors(port, _) => subnet.set_symbol_errors(port, 0.0),
            Fault::BitErrors(port, _) => subnet.plane.engine.set_bit_errors(port, None),
            Fault::Slow(host, _) => subnet.plane.engine.set_sink_rate(host, None),
            Fault::Reboot(_) => {}
            Fault::Lose(..) => self.loss.set(0.0, 0),
        }
        self.flush_traps();
    }
}
