use std::collections::HashMap;
use std::sync::Arc;

use silvan_core::{PortId, Time};
use silvan_fabric::{CableLimit, Fabric};
use silvan_model::{FabricChange, Simulation};
use silvan_scenario::Scenario;
use silvan_scenario::faults::{Fault, FaultTimes};

#[derive(Debug)]
pub(crate) struct RunFaults {
    times: FaultTimes,
    end: Time,
    fabric: Arc<Fabric>,
    down: HashMap<PortId, u32>,
}

impl RunFaults {
    pub fn of(scenario: &Scenario) -> Self {
        let faults = scenario.faults().iter();
        let faults = faults.filter(|planned| planned.fault.changes_fabric());
        Self {
            times: FaultTimes::new(faults.cloned().collect()),
            end: Time::MAX,
            fabric: Arc::clone(scenario.fabric()),
            down: HashMap::new(),
        }
    }

    pub fn until(mut self, end: Time) -> Self {
        self.end = end;
        self
    }

    /// [`Time::MAX`] if there is none.
    pub fn next(&self) -> Time {
        let next = self.times.next().filter(|next| *next < self.end);
        next.unwrap_or(Time::MAX)
    }

    pub fn apply<S: Simulation + ?Sized>(&mut self, simulation: &mut S) {
        let now = simulation.now();
        while self.next() <= now {
            let Some((_, begins, planned)) = self.times.take(now) else {
                return;
            };
            let (fault, lasts) = (planned.fault, planned.lasts);
            match fault {
                Fault::Cut(port) => self.set_cable(simulation, port, begins),
                Fault::Degrade(port, limit) => {
                    let limit = if begins { limit } else { CableLimit::default() };
                    self.limit_cable(simulation, port, limit);
                }
                Fault::Slow(host, rate) => {
                    let rate = rate.filter(|_| begins);
                    simulation.change_fabric(FabricChange::SinkRate(host, rate));
                }
                Fault::Reboot(switch) => {
                    let fabric = Arc::clone(&self.fabric);
                    for port in fabric.switch(switch).ports() {
                        self.set_cable(simulation, port, begins);
                        // Without a duration, the switch is on again at once.
                        if begins && lasts.is_none() {
                            self.set_cable(simulation, port, false);
                        }
                    }
                }
                // The engine has the bit errors from the start.
                Fault::BitErrors(..) | Fault::SymbolErrors(..) | Fault::Lose(..) => {}
            }
        }
    }

    fn ends(&self, port: PortId) -> impl Iterator<Item = PortId> + use<> {
        let peer = self.fabric.ports[port].peer;
        peer.map(|peer| [port, peer]).into_iter().flatten()
    }

    fn set_cable<S: Simulation + ?Sized>(
        &mut self,
        simulation: &mut S,
        port: PortId,
        is_cut: bool,
    ) {
        for end in self.ends(port) {
            let down = self.down.entry(end).or_insert(0);
            let was_down = *down > 0;
            *down = if is_cut { *down + 1 } else { *down - 1 };
            match (was_down, *down > 0) {
                (false, true) => simulation.change_fabric(FabricChange::LinkDown(end)),
                (true, false) => simulation.change_fabric(FabricChange::LinkUp(end)),
                _ => {}
            }
        }
    }

    fn limit_cable<S: Simulation + ?Sized>(
        &mut self,
        simulation: &mut S,
        port: PortId,
        limit: CableLimit,
    ) {
        let Some(link) = self.fabric.ports[port].link else {
            return;
        };
        let rate = limit.of(self.fabric.links[link].kind).data_rate();
        self.set_cable(simulation, port, true);
        for end in self.ends(port) {
            simulation.change_fabric(FabricChange::LinkRate(end, rate));
        }
        self.set_cable(simulation, port, false);
    }
}
