use silvan_core::{Bytes, Span, Time};
use silvan_fabric::Fabric;
use silvan_model::{Engines, Forest, InvariantError};
use silvan_scenario::Scenario;
use silvan_scenario::faults::Fault;
use silvan_workload::programs::{Driver, Request};

use crate::clients::{Clients, ControlAction};
use crate::error::EmulatorError;
use crate::subnet::{Setup, Subnet};
use crate::wire::{CONTROL_LEN, DATA_LEN};

/// An emulated fabric that is handed the bytes of its clients, for tests that play the tools.
#[derive(Debug)]
pub struct ManagementPlane {
    clients: Clients,
}

/// The answer to a control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlAnswer {
    /// A reply to send.
    Reply([u8; CONTROL_LEN]),
    /// A reply to send to a new client, with its number.
    Connected(u16, [u8; CONTROL_LEN]),
    /// A reply to send; the client has gone.
    Disconnected(u16, [u8; CONTROL_LEN]),
}

impl ManagementPlane {
    /// The fabric of a scenario, at time zero. Errors: [`EmulatorError`] if it cannot be built.
    pub fn new(
        engines: &dyn Engines,
        scenario: &Scenario,
        setup: impl Into<Setup>,
    ) -> Result<Self, EmulatorError> {
        Self::build(engines, scenario, setup.into(), None)
    }

    /// A scenario's fabric at time zero, with a driver next to its load. Errors as [`new`](Self::new).
    pub fn driven(
        engines: &dyn Engines,
        scenario: &Scenario,
        setup: impl Into<Setup>,
        driver: Box<dyn Driver>,
    ) -> Result<Self, EmulatorError> {
        Self::build(engines, scenario, setup.into(), Some(driver))
    }

    fn build(
        engines: &dyn Engines,
        scenario: &Scenario,
        setup: Setup,
        driver: Option<Box<dyn Driver>>,
    ) -> Result<Self, EmulatorError> {
        let subnet = Subnet::new(engines, scenario, setup, driver)?;
        let clients = Clients::new(subnet, None)?;
        Ok(Self { clients })
    }

    /// Takes the driver's requests; an [`EmulatorError`] for a timer beyond the clock leaves all undone.
    pub fn request(&mut self, requests: &mut Vec<Request>) -> Result<(), EmulatorError> {
        self.clients.subnet.plane.request(requests)
    }

    /// Simulated time.
    pub fn now(&self) -> Time {
        self.clients.subnet.now()
    }

    /// Takes a control message; `None` if it is none and gets no answer.
    pub fn control(&mut self, bytes: &[u8]) -> Option<ControlAnswer> {
        match self.clients.control(bytes) {
            ControlAction::Reply(reply) => Some(ControlAnswer::Reply(reply)),
            ControlAction::Connect { client, reply, .. } => {
                Some(ControlAnswer::Connected(client, reply))
            }
            ControlAction::Disconnect { client, reply } => {
                self.clients.disconnect(client);
                Some(ControlAnswer::Disconnected(client, reply))
            }
            ControlAction::Nothing => None,
        }
    }

    /// Takes a data message of a client.
    pub fn datagram(&mut self, client: u16, bytes: &[u8]) {
        self.clients.datagram(client, bytes);
    }

    /// A client has been killed.
    pub fn kill(&mut self, client: u16) {
        self.clients.disconnect(client);
    }

    /// The messages to be sent, in order, with the clients that they are for.
    pub fn take_messages(&mut self) -> Vec<(u16, [u8; DATA_LEN])> {
        let messages = std::mem::take(&mut self.clients.outbox);
        let bytes = messages.into_iter();
        bytes.map(|(to, message)| (to, message.bytes)).collect()
    }

    /// Lets both clocks pass until the end or a driver's stop; an [`EmulatorError`] if the data plane cannot go on.
    pub fn pass(&mut self, span: Span) -> Result<(), EmulatorError> {
        let subnet = &mut self.clients.subnet;
        subnet.uptime += std::time::Duration::from_nanos(span.as_ps() / 1000);
        let end = subnet.now() + span;
        subnet.step(end)?;
        self.clients.come_due();
        self.clients.expire();
        self.clients.flush_traps();
        Ok(())
    }

    /// Begins a fault now; it lasts until the end.
    ///
    /// # Errors
    /// The reason why the fault has no effect.
    pub fn begin_fault(&mut self, fault: Fault) -> Result<(), String> {
        self.clients.bring_about(fault, std::time::Duration::MAX)
    }

    /// Loses this part of all datagrams from now on, 0 to 1.
    pub fn lose(&mut self, share: f64, seed: u64) {
        self.clients.loss.set(share, seed);
    }

    /// Nodes and cables.
    pub fn fabric(&self) -> &Fabric {
        &self.clients.subnet.fabric
    }

    /// The congestion trees of this instant, with roots for which at least `threshold` bytes wait.
    pub fn forest(&self, threshold: Bytes) -> Forest {
        self.clients.subnet.plane.engine.forest(threshold)
    }

    /// Payload in bytes that the flows and other classes of traffic have delivered, by name.
    pub fn delivered(&self) -> Vec<(String, u64)> {
        let senders = self.clients.subnet.plane.senders().into_iter();
        senders
            .map(|sender| (sender.name, sender.delivered_bytes))
            .collect()
    }

    /// Checks that bytes, credits and queues of the data plane add up. Errors: [`InvariantError`] says what does not.
    pub fn audit(&self) -> Result<(), InvariantError> {
        self.clients.subnet.plane.engine.audit()
    }
}
