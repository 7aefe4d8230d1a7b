//! The engine compiled for combinations of control and workload; results do not depend on the choice.
//!
//! With lookahead windows, no control has engines for traffic alone and with programs, InfiniBand's control for traffic
//! alone. Other separate schemes share one with windows. The live fabric has its own; all else shares one for an enum
//! of all schemes, at a predictable branch per call.

mod compiled;

use silvan_cc::hooks::{NoControl, PerHost, PerPortVl, Settings, SourceControl, SwitchControl};
use silvan_cc::schemes::{
    AnySource, AnySwitch, Control, EngineChoice, SeparateSource, SeparateSwitch,
};
use silvan_engine::{BuildError, CompiledFabric};
use silvan_model::meter::{MeteredAdapter, MeteredSwitch};
use silvan_model::{Engines, LiveSimulation, Network, Simulation};
use silvan_workload::programs::Load;

use compiled::{Compiled, Divided, HostLoad};

fn compile(network: Network<'_>) -> Result<CompiledFabric, BuildError> {
    let mut fabric = CompiledFabric::new(network.fabric, network.routes, network.config)?;
    if network.may_delay_credits {
        fabric.count_buffers();
    }
    if network.loses_packets {
        fabric.follow_messages();
    }
    Ok(fabric)
}

/// Some more than one: the same run may be simulated on machines with more.
const PARTS_PER_PROCESSOR: usize = 4;

/// The fastest engine for these settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fastest;

impl Engines for Fastest {
    fn start(
        &self,
        network: Network<'_>,
        control: Control,
        load: Load,
    ) -> Result<Box<dyn Simulation>, BuildError> {
        let mut fabric = compile(network)?;
        fabric.check_scheme(&control.switch, &control.source)?;
        fabric.serve(&control.switch);
        if let Some(filter) = network.trace {
            let how = (filter, network.discards_unroutable);
            return Ok(Compiled::traced(
                fabric,
                control.switch,
                control.source,
                load,
                how,
            ));
        }
        let acts = !matches!(
            (&control.switch, &control.source),
            (AnySwitch::None(_), AnySource::None(_))
        );
        let independent = match acts {
            true => {
                fabric.knows_feedback()
                    && fabric.knows_grants(&control.source)
                    && fabric.knows_messages(&control.switch)
                    && fabric.knows_discards(&control.switch)
                    && fabric.knows_buffers(&control.switch)
            }
            false => !fabric.acknowledges(),
        };
        let has_windows =
            fabric.has_windows() && independent && load.fits_windows(fabric.restores_order());
        let pays = fabric.gains_on_one_thread(&control.switch)
            || network.threads > 1 && fabric.is_divisible();
        let needs_order = network.discards_unroutable || network.changes_fabric;
        if needs_order || !has_windows || !pays {
            let engine = Compiled::general(fabric, control.switch, control.source, load);
            return Ok(engine.discarding(network.discards_unroutable));
        }
        Ok(control.with_engine(Fast {
            fabric,
            load,
            threads: network.threads,
        }))
    }

    fn start_live(
        &self,
        network: Network<'_>,
        switch: MeteredSwitch,
        adapter: MeteredAdapter,
        load: Load,
    ) -> Result<Box<dyn LiveSimulation>, BuildError> {
        let mut fabric = compile(network)?;
        // Queue pairs of a live fabric have their own retries.
        fabric.forget_retries();
        if load.programs().is_some() {
            fabric.number_packets();
        }
        fabric.check_scheme(&switch, &adapter)?;
        fabric.serve(&switch);
        let engine = Compiled::general(fabric, switch, adapter, load);
        Ok(engine.discarding(network.discards_unroutable))
    }
}

struct Fast {
    fabric: CompiledFabric,
    load: Load,
    threads: usize,
}

impl Fast {
    /// One thread if the fabric cannot be divided; else shares programs. More parts than processors cost time.
    fn divided(mut self) -> Self {
        if self.threads > 1 && self.fabric.is_divisible() {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            self.threads = self.threads.min(PARTS_PER_PROCESSOR * processors.max(2));
            self.load = self.load.shared();
        } else {
            self.threads = 1;
        }
        self
    }
}

fn windows<S, C, W>(
    fabric: CompiledFabric,
    switch: S,
    source: C,
    load: W,
    threads: usize,
) -> Box<dyn Simulation>
where
    S: PerPortVl + Settings + 'static,
    C: PerHost + Settings + 'static,
    W: HostLoad + Clone + Send + 'static,
{
    match (fabric.has_lookahead(), threads) {
        (true, 1) => Compiled::lookahead(fabric, switch, source, load),
        (false, 1) => Compiled::general_lookahead(fabric, switch, source, load),
        (true, _) => Divided::new(fabric, switch, source, load, threads),
        (false, _) => Divided::general_lookahead(fabric, switch, source, load, threads),
    }
}

impl EngineChoice for Fast {
    type Engine = Box<dyn Simulation>;

    fn none(self) -> Self::Engine {
        let is_unaware = self.load.is_unaware();
        let Self {
            fabric,
            load,
            threads,
        } = self.divided();
        match is_unaware {
            true => windows(fabric, NoControl, NoControl, load.into_traffic(), threads),
            false => windows(fabric, NoControl, NoControl, load, threads),
        }
    }

    fn own<S, C>(self, switch: S, source: C) -> Self::Engine
    where
        S: PerPortVl + Settings + Into<SeparateSwitch> + 'static,
        C: PerHost + Settings + Into<SeparateSource> + 'static,
    {
        if !self.load.is_unaware() {
            return self.separate(switch.into(), source.into());
        }
        let Self {
            fabric,
            load,
            threads,
        } = self.divided();
        windows(fabric, switch, source, load.into_traffic(), threads)
    }

    fn separate(self, switch: SeparateSwitch, source: SeparateSource) -> Self::Engine {
        let Self {
            fabric,
            load,
            threads,
        } = self.divided();
        windows(fabric, switch, source, load, threads)
    }

    fn shared(self, switch: AnySwitch, source: AnySource) -> Self::Engine {
        Compiled::general(self.fabric, switch, source, self.load)
    }
}

/// The engine that serves everything, also where there is a faster one: what that one is compared with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shared;

impl Engines for Shared {
    fn start(
        &self,
        network: Network<'_>,
        control: Control,
        load: Load,
    ) -> Result<Box<dyn Simulation>, BuildError> {
        let fabric = compile(network)?;
        fabric.check_scheme(&control.switch, &control.source)?;
        let engine = Compiled::general(fabric, control.switch, control.source, load);
        Ok(engine.discarding(network.discards_unroutable))
    }

    fn start_live(
        &self,
        network: Network<'_>,
        switch: MeteredSwitch,
        adapter: MeteredAdapter,
        load: Load,
    ) -> Result<Box<dyn LiveSimulation>, BuildError> {
        Fastest.start_live(network, switch, adapter, load)
    }
}

/// An engine compiled for one scheme, for those outside `silvan-cc`, such as in tests.
#[derive(Clone, Debug)]
pub struct Custom<S, C> {
    /// Control of the switches.
    pub switch: S,
    /// Control of the hosts.
    pub source: C,
}

impl<S, C> Engines for Custom<S, C>
where
    S: SwitchControl + Settings + Clone + 'static,
    C: SourceControl + Settings + Clone + 'static,
{
    fn start(
        &self,
        network: Network<'_>,
        _: Control,
        load: Load,
    ) -> Result<Box<dyn Simulation>, BuildError> {
        let (switch, source) = (self.switch.clone(), self.source.clone());
        let engine = Compiled::general(compile(network)?, switch, source, load);
        Ok(engine.discarding(network.discards_unroutable))
    }

    fn start_live(
        &self,
        network: Network<'_>,
        switch: MeteredSwitch,
        adapter: MeteredAdapter,
        load: Load,
    ) -> Result<Box<dyn LiveSimulation>, BuildError> {
        Fastest.start_live(network, switch, adapter, load)
    }
}
