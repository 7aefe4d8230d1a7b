use silvan_core::{HostId, Sl, Span, Time};

use super::draws::Draws;
use super::interface::{Interface, Ready};
use super::parameters::{PftError, PftParameters};
use crate::hooks::{
    Feedback, Flow, FlowLimit, PerHost, SettingChange, Settings, SourceControl, UnknownSetting,
};

const BLOCK_BYTES: u64 = 64;

/// Proactive flow throttling at all hosts.
#[derive(Clone, Debug)]
pub struct PftSource {
    parameters: PftParameters,
    interfaces: Vec<Interface>,
    draws: Vec<Draws>,
}

impl PftSource {
    /// The interfaces of `hosts` hosts, with random numbers from `seed`; errors of [`PftParameters::validate`].
    pub fn new(parameters: PftParameters, hosts: usize, seed: u64) -> Result<Self, PftError> {
        parameters.validate()?;
        Ok(Self {
            parameters,
            interfaces: vec![Interface::default(); hosts],
            draws: (0..hosts as u64)
                .map(|host| Draws::new(seed, host))
                .collect(),
        })
    }

    /// Returns true if the interface of a host was in the congested state at its last event.
    pub fn is_congested(&self, host: HostId) -> bool {
        self.interfaces[host.index()].is_congested()
    }

    #[inline]
    fn cycle(&self, now: Time) -> u64 {
        now.as_ps() / self.parameters.flit_time.as_ps()
    }
}

impl SourceControl for PftSource {
    #[inline]
    fn needs_credit(&self) -> bool {
        true
    }

    #[inline]
    fn release(&mut self, now: Time, _: Flow) -> Time {
        now
    }

    fn host_release(&mut self, now: Time, host: HostId) -> Time {
        let cycle = self.cycle(now);
        let draws = &self.draws[host.index()];
        let interface = &mut self.interfaces[host.index()];
        interface.play(&self.parameters, draws, cycle);
        match interface.ready(&self.parameters, draws) {
            Ready::At(at) if at <= cycle => now,
            Ready::At(at) | Ready::NotBefore(at) => {
                let ps = at.checked_mul(self.parameters.flit_time.as_ps());
                ps.map_or(Time::MAX, Time::from_ps)
            }
            Ready::Never => Time::MAX,
        }
    }

    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, _: u32) {
        let cycle = self.cycle(now);
        let host = flow.source.index();
        // Whole flits, so that a link never waits for an interface that does not throttle.
        let flits = (wire_time.as_ps() / self.parameters.flit_time.as_ps()).max(1);
        self.interfaces[host].start_packet(&self.parameters, &self.draws[host], cycle, flits);
    }

    fn on_feedback(&mut self, _: Time, _: Flow, _: Feedback) -> bool {
        false
    }

    fn on_credit(&mut self, now: Time, host: HostId, used: u32, _: u32) {
        let cycle = self.cycle(now);
        let host = host.index();
        let credits = u64::from(used) * BLOCK_BYTES / u64::from(self.parameters.credit_bytes);
        let credits = u32::try_from(credits).unwrap_or(u32::MAX);
        self.interfaces[host].set_used(&self.parameters, &self.draws[host], cycle, credits);
    }

    fn flow_limits(&self, now: Time, host: HostId) -> Vec<FlowLimit> {
        let host = host.index();
        let mut interface = self.interfaces[host];
        interface.play(&self.parameters, &self.draws[host], self.cycle(now));
        let rate = interface.limit(&self.parameters);
        let limited = rate.filter(|&rate| rate < 1.0).map(|rate| FlowLimit {
            destination: None,
            sl: Sl::ZERO,
            ccti: 0,
            rate,
        });
        limited.into_iter().collect()
    }
}

impl PerHost for PftSource {}

impl Settings for PftSource {
    fn apply(&mut self, _: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        Err(UnknownSetting(change.clone()))
    }
}

/// The injection rate of a permanently congested interface as a fraction of its link's, with `used` credits over
/// `cycles` clock cycles and random numbers from `seed` (pft2021, figure 1).
pub fn injection_rate(parameters: &PftParameters, used: u32, cycles: u64, seed: u64) -> f64 {
    let congested = PftParameters {
        threshold: super::Threshold::Fixed,
        enter: 0,
        escape: 0,
        ..*parameters
    };
    let draws = Draws::new(seed, 0);
    let mut interface = Interface::default();
    interface.set_used(&congested, &draws, 0, 1);
    interface.play(&congested, &draws, 1);
    interface.set_used(&congested, &draws, 1, used);
    interface.start_packet(&congested, &draws, 1, u64::MAX);
    interface.play(&congested, &draws, 1 + cycles);
    (u64::MAX - interface.owed()) as f64 / cycles as f64
}
