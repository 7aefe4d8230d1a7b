//! The engine compiled for what simulations choose.
//!
//! Nothing but this crate is generic over control and workload all the way down to the hot loop. What is
//! used most, no control and InfiniBand's with ordinary traffic, has an engine of its own, and so has
//! the live fabric. Everything else shares one, which is compiled for an enum of all schemes
//! and for traffic with or without programs: each call of a scheme costs it a predictable branch.
//! Results do not depend on which engine it is.

mod compiled;

use silvan_engine::BuildError;
use silvan_programs::Load;
use silvan_simulation::meter::{MeteredAdapter, MeteredSwitch};
use silvan_simulation::{AnySource, AnySwitch, Engines, LiveSimulation, Network, Simulation};
use silvan_traffic::Traffic;

use compiled::Compiled;

/// The fastest engine that there is for what is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fastest;

impl Engines for Fastest {
    fn start(
        &self,
        network: Network<'_>,
        switch: AnySwitch,
        source: AnySource,
        load: Load,
    ) -> Result<Box<dyn Simulation>, BuildError> {
        if load.programs().is_some() {
            return Shared.start(network, switch, source, load);
        }
        Ok(match (switch, source) {
            (AnySwitch::None(switch), AnySource::None(source)) => {
                Compiled::start(network, switch, source, load.into_traffic())?
            }
            (AnySwitch::Ib(switch), AnySource::Ib(source)) => {
                Compiled::start(network, switch, source, load.into_traffic())?
            }
            (switch, source) => Shared.start(network, switch, source, load)?,
        })
    }

    fn start_live(
        &self,
        network: Network<'_>,
        switch: MeteredSwitch,
        adapter: MeteredAdapter,
        traffic: Traffic,
    ) -> Result<Box<dyn LiveSimulation>, BuildError> {
        Ok(Compiled::start(network, switch, adapter, traffic)?)
    }
}

/// The engine that serves everything, also where there is a faster one: what that one is compared with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shared;

impl Engines for Shared {
    fn start(
        &self,
        network: Network<'_>,
        switch: AnySwitch,
        source: AnySource,
        load: Load,
    ) -> Result<Box<dyn Simulation>, BuildError> {
        Ok(Compiled::start(network, switch, source, load)?)
    }

    fn start_live(
        &self,
        network: Network<'_>,
        switch: MeteredSwitch,
        adapter: MeteredAdapter,
        traffic: Traffic,
    ) -> Result<Box<dyn LiveSimulation>, BuildError> {
        Fastest.start_live(network, switch, adapter, traffic)
    }
}
