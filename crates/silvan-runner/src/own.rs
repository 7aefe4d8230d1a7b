//! Runs of schemes that come through the extension point.

use std::ops::ControlFlow;

use silvan_control::seam::{Controller, Settings, SourceControl};
use silvan_scenario::{Scenario, switch_ports};
use silvan_schemes::callbacks::Callbacks;
use silvan_schemes::{Scheme, Setup, Visitor};

use super::load::run_load;
use super::{ADAPTER_STREAM, Marks, Progress, RunError, RunOutput, SWITCH_STREAM};

/// A run for which only the scheme is missing.
pub(crate) struct Start<'s, 'c, 'o> {
    pub scenario: &'s Scenario,
    pub seed: u64,
    pub controller: Option<&'c mut dyn Controller>,
    pub observer: &'o mut dyn FnMut(Progress) -> ControlFlow<()>,
}

/// Runs a scenario with functions in place of its own scheme.
///
/// # Errors
///
/// As [`run`](crate::run).
pub fn run_callbacks(
    scenario: &Scenario,
    seed: u64,
    callbacks: Callbacks,
    observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RunOutput, RunError> {
    let start = Start {
        scenario,
        seed,
        controller: None,
        observer,
    };
    start.with(callbacks, callbacks)
}

impl Start<'_, '_, '_> {
    fn with<S: Marks, C: SourceControl + Settings>(
        self,
        switch: S,
        source: C,
    ) -> Result<RunOutput, RunError> {
        let Self {
            scenario,
            seed,
            controller,
            observer,
        } = self;
        run_load(scenario, seed, switch, source, controller, observer)
    }
}

impl Visitor for Start<'_, '_, '_> {
    type Output = Result<RunOutput, RunError>;

    fn visit<S: Scheme>(self, scheme: &S) -> Self::Output {
        let file = self.scenario.file();
        let ports = switch_ports(self.scenario.fabric());
        let (switch, source) = scheme.build(&Setup {
            ports: &ports,
            data_vls: usize::from(self.scenario.engine_config().data_vls),
            hosts: self.scenario.fabric().host_count(),
            link_rate: file.link.kind().data_rate(),
            // The engine has checked that it is at most 4 KiB.
            mtu: file.packet.mtu.as_u64() as u32,
            switch_seed: self.seed ^ SWITCH_STREAM,
            host_seed: self.seed ^ ADAPTER_STREAM,
        });
        self.with(switch, source)
    }
}
