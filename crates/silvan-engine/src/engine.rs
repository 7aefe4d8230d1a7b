use std::marker::PhantomData;

use silvan_cc::hooks::{Candidate, Grants, PerHost, PerPortVl, SourceControl, SwitchControl};
use silvan_core::{HostId, Time};
use silvan_fabric::Fabric;
use silvan_fabric::routing::Routes;

use crate::deadlock::DeadlockChecks;
use crate::events::{Event, Head, NextEvent, phase};
use crate::feedback::Notifications;
use crate::leap::{Leaps, Starts};
use crate::needs::Needs;
use crate::ordered::SwitchEvents;
use crate::packet::NONE;
use crate::partition::Whole;
use crate::plane::LATEST;
use crate::plane::Plane;
use crate::prefetching::WorkingSet;
use crate::speculation::Discarded;
use crate::stats::Statistics;
use crate::tracer::Tracer;
use crate::variant::{CompiledFabric, EngineVariant, General, GeneralLookahead, Lookahead, Traced};
use crate::workload::{Offer, Workload};
use silvan_model::{BuildError, EngineConfig, EngineError, InvariantError, PacketFilter};

/// The data plane of a fabric with its congestion control and traffic.
///
/// Simultaneous events are ordered by phase, then port or host, so that a run is a function of its inputs.
#[derive(Debug)]
pub struct Engine<S, C, W, F = General> {
    pub(crate) plane: Plane,
    pub(crate) switch: S,
    pub(crate) source: C,
    pub(crate) workload: W,
    pub(crate) needs: Needs,
    pub(crate) whole_messages: bool,
    pub(crate) stats: Statistics,
    pub(crate) notifications: Notifications,
    pub(crate) held: Vec<Option<Offer>>,
    /// By host, the version of the lanes of its flows that it knows; empty if switches do not choose them.
    pub(crate) host_vl_versions: Vec<Option<u64>>,
    /// Discarded packets that each source has to send again, if the scheme discards packets.
    pub(crate) discarded: Vec<Vec<Discarded>>,
    pub(crate) grants: Grants,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) switch_events: SwitchEvents,
    pub(crate) now: u64,
    pub(crate) events: u64,
    pub(crate) fault: Option<EngineError>,
    deadlock_checks: DeadlockChecks,
    pub(crate) change_at: u64,
    pub(crate) timer_at: u64,
    pub(crate) woken: Vec<HostId>,
    pub(crate) tracer: Option<Box<Tracer>>,
    pub(crate) leaps: Option<Box<Leaps>>,
    /// Part of `events`.
    pub(crate) leapt_events: u64,
    /// Senders and receivers, if the run may leap.
    pub(crate) delivered_messages: Option<Vec<(u32, u32, u64)>>,
    pub(crate) watched: u32,
    pub(crate) starts: Starts,
    variant: PhantomData<F>,
}

impl<S: SwitchControl, C: SourceControl, W: Workload> Engine<S, C, W> {
    /// Compiles a fabric and its routes, and polls every host at time zero; a [`BuildError`](silvan_model::BuildError)
    /// names an impossible value or host.
    ///
    /// If lanes change along the path, the header's service level is the workload's above the bits of the path. With
    /// alternatives, a message's last packet may not arrive last.
    pub fn new<'a>(
        fabric: &Fabric,
        routes: impl Into<Routes<'a>>,
        config: &EngineConfig,
        switch: S,
        source: C,
        workload: W,
    ) -> Result<Self, BuildError> {
        let fabric = CompiledFabric::new(fabric, routes, config)?;
        Ok(Self::general(fabric, switch, source, workload))
    }

    /// An engine for a compiled fabric, as [`new`](Self::new) makes it.
    pub fn general(fabric: CompiledFabric, switch: S, source: C, workload: W) -> Self {
        Self::assemble(fabric, switch, source, workload)
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload> Engine<S, C, W, Traced> {
    /// An engine that records the packets of a filter hop by hop. Its results are those of a general one.
    pub fn traced(
        fabric: CompiledFabric,
        switch: S,
        source: C,
        workload: W,
        filter: &PacketFilter,
    ) -> Self {
        let mut engine = Self::assemble(fabric, switch, source, workload);
        engine.trace(filter);
        engine
    }
}

impl<S: PerPortVl, C: PerHost, W: Workload> Engine<S, C, W, Lookahead> {
    /// An engine by lookahead windows, with equal results. Panics if fabric, scheme or workload do not fit.
    pub fn lookahead(mut fabric: CompiledFabric, switch: S, source: C, workload: W) -> Self {
        fabric.serve(&switch);
        assert!(fabric.has_lookahead(), "the fabric has no lookahead");
        Self::with_windows(fabric, switch, source, workload)
    }
}

impl<S: PerPortVl, C: PerHost, W: Workload> Engine<S, C, W, GeneralLookahead> {
    /// A lookahead engine for any fabric that [has windows](CompiledFabric::has_windows). Panics if it has none, or the
    /// workload needs deliveries without [linking hosts](Workload::LINKS_HOSTS).
    pub fn general_lookahead(fabric: CompiledFabric, switch: S, source: C, workload: W) -> Self {
        Self::with_windows(fabric, switch, source, workload)
    }
}

impl<S: PerPortVl, C: PerHost, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    fn with_windows(fabric: CompiledFabric, switch: S, source: C, workload: W) -> Self {
        check_independence(&fabric, &switch, &source, &workload);
        Self::of_plane(fabric.0, switch, source, workload)
    }

    pub(crate) fn of_plane(mut plane: Plane, switch: S, source: C, workload: W) -> Self {
        plane.make_windows();
        Self::assemble(CompiledFabric(plane), switch, source, workload)
    }
}

/// Panics as [`Engine::lookahead`].
pub(crate) fn check_independence<S: SwitchControl, C: SourceControl, W: Workload>(
    fabric: &CompiledFabric,
    switch: &S,
    source: &C,
    workload: &W,
) {
    let acts = S::ACTIVE || C::ACTIVE;
    let fits = fabric.has_windows()
        && match acts {
            true => fabric.knows_feedback(),
            false => !fabric.acknowledges(),
        };
    assert!(fits, "the fabric has no windows");
    let needs = Needs::of(switch, source, fabric.0.vls);
    let alone = !needs.link
        && fabric.knows_grants(source)
        && fabric.knows_discards(switch)
        && fabric.knows_messages(switch)
        && fabric.knows_buffers(switch)
        && (W::LINKS_HOSTS || !workload.needs_delivery());
    assert!(alone, "hosts and ports depend on each other at once");
}

/// After a call that processes events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtEnd {
    Checks,
    Settles,
    Lags,
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    fn assemble(mut fabric: CompiledFabric, mut switch: S, source: C, workload: W) -> Self {
        fabric.serve(&switch);
        let mut plane = fabric.0;
        // A part has the tables of some switches only; its scheme knows all routes.
        if !plane.remote.is_part() {
            plane.notify_routes(&mut switch);
        }
        let hosts = plane.hosts.len();
        let needs = Needs::of(&switch, &source, plane.vls);
        if needs.select_next_vl {
            plane.routing.leave_lanes_to_scheme();
        }
        let mut engine = Self {
            stats: Statistics::new(plane.config.latency, hosts),
            notifications: Notifications::new(
                plane.config.feedback,
                hosts,
                needs.receive || needs.answer_grant,
            ),
            held: match needs.select_vl {
                true => vec![None; hosts],
                false => Vec::new(),
            },
            host_vl_versions: match needs.host_vl {
                true => vec![None; hosts],
                false => Vec::new(),
            },
            discarded: match needs.select_discard {
                true => vec![Vec::new(); hosts],
                false => Vec::new(),
            },
            whole_messages: !needs.select_path
                && !needs.select_discard
                && !needs.select_vl
                && !plane.routing.has_choices()
                && plane.reordering.is_none()
                // The last packet of a message arrives, and one before it may be lost.
                && !plane.numbers
                && (plane.bad_links.is_empty() || plane.transport.is_some())
                && !workload.needs_packets(),
            needs,
            grants: Grants::default(),
            candidates: Vec::new(),
            switch_events: SwitchEvents::default(),
            plane,
            switch,
            source,
            workload,
            now: 0,
            events: 0,
            fault: None,
            deadlock_checks: DeadlockChecks::default(),
            change_at: u64::MAX,
            timer_at: u64::MAX,
            woken: Vec::new(),
            tracer: None,
            leaps: None,
            leapt_events: 0,
            delivered_messages: None,
            watched: NONE,
            starts: Starts::default(),
            variant: PhantomData,
        };
        engine.prepare_leaps();
        for host in 0..hosts as u32 {
            if !engine.plane.remote.has_host(host) {
                let id = HostId::new(host as usize);
                engine.workload.on_woken(id, Time::ZERO);
                engine.wake_host(host, 0);
            }
        }
        engine.schedule_change();
        engine
    }

    /// Processes events before `end`, or until the workload pauses; an [`EngineError`] returns on each further call.
    pub fn run_until(&mut self, end: Time) -> Result<(), EngineError> {
        self.run_to(end, AtEnd::Checks)
    }

    /// As [`run_until`](Self::run_until) for many short steps, without the checks for deadlock and losses at `end`;
    /// longer runs check once per simulated millisecond.
    pub fn step_until(&mut self, end: Time) -> Result<(), EngineError> {
        self.run_to(end, AtEnd::Settles)
    }

    /// As [`step_until`](Self::step_until), but parts of the fabric may lag until [`settle`](Self::settle).
    pub fn advance_until(&mut self, end: Time) -> Result<(), EngineError> {
        self.run_to(end, AtEnd::Lags)
    }

    fn run_to(&mut self, end: Time, at_end: AtEnd) -> Result<(), EngineError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let end_ps = end.as_ps();
        if end_ps >= LATEST {
            return Err(EngineError::TooLate(end));
        }
        self.plane.redirect_heads();
        self.stats.set_boundary(end_ps, &mut self.plane.hosts);
        let lags = at_end == AtEnd::Lags;
        while self.now < end_ps {
            let collected = self.plane.collect_credits(self.now);
            let until = end_ps.min(self.deadlock_checks.next).min(collected);
            if let Some(leaps) = self.leaps.take_if(|_| Self::has_leaps()) {
                let lags = lags && until != collected && until != self.deadlock_checks.next;
                self.run_windows_with_leaps(leaps, until, lags);
            } else if F::LOOKAHEAD {
                self.run_windows(until);
            } else {
                self.run_events(until);
            }
            if self.fault == Some(EngineError::Paused) {
                self.fault = None;
                return Ok(());
            }
            if let Some(fault) = &self.fault {
                return Err(fault.clone());
            }
            self.now = until;
            let at_end = at_end == AtEnd::Checks && until == end_ps;
            if self.plane.pauses.is_some() && (at_end || self.deadlock_checks.next == until) {
                self.check_losses(until);
                if let Some(fault) = &self.fault {
                    return Err(fault.clone());
                }
            }
            let checks = &mut self.deadlock_checks;
            if checks.is_due(until, at_end, lags, self.events) {
                if let Some(deadlock) = self.whole().find_deadlock(self.now) {
                    self.fault = Some(deadlock.clone().into());
                    return Err(deadlock.into());
                }
                self.deadlock_checks.found_none(self.events);
            }
        }
        self.stats.count_batch();
        Ok(())
    }

    pub(crate) fn whole(&self) -> Whole<'_> {
        std::iter::once(&self.plane).collect()
    }

    #[cold]
    pub(crate) fn broken(&mut self, now: u64, error: InvariantError) {
        let at = Time::from_ps(now);
        self.note_fault(EngineError::Invariant { at, error });
    }

    /// Makes [`run_to`](Self::run_to) return if the workload pauses the run.
    #[inline]
    pub(crate) fn check_pause(&mut self) {
        if self.workload.pauses() {
            self.note_fault(EngineError::Paused);
        }
    }

    /// Ends the run. A lookahead window is processed to its end; of several errors the earliest counts.
    #[cold]
    pub(crate) fn note_fault(&mut self, error: EngineError) {
        self.fault = earliest([self.fault.take(), Some(error)]);
    }

    fn run_events(&mut self, end: u64) {
        let prefetches = self.plane.working_set != WorkingSet::FitsFirstCache;
        while self.fault.is_none() {
            match self.plane.events.next(end) {
                NextEvent::Head(lane) => {
                    let head = self.plane.events.pop_head(lane);
                    if prefetches {
                        self.prefetch_heads(lane);
                    }
                    self.now = head.time;
                    self.events += 1;
                    self.head(head);
                }
                NextEvent::Outputs => {
                    let (time, output) = self.plane.events.pop_output();
                    if prefetches {
                        self.prefetch_outputs();
                    }
                    self.now = time;
                    self.events += 1;
                    self.output_event(time, output);
                }
                NextEvent::Hosts => {
                    let (time, host) = self.plane.events.pop_host();
                    if prefetches {
                        self.prefetch_hosts();
                    }
                    self.now = time;
                    self.events += 1;
                    self.host_event(time, host);
                }
                NextEvent::Wheel => {
                    if let Some(event) = self.plane.events.pop_event() {
                        if prefetches {
                            self.prefetch_wheel();
                        }
                        self.now = event.time;
                        self.events += 1;
                        self.event(event);
                    }
                }
                NextEvent::None => return,
            }
        }
    }

    #[inline]
    pub(crate) fn output_event(&mut self, now: u64, output: u32) {
        let out = &mut self.plane.outs[output as usize];
        if out.wake_at == now {
            out.wake_at = u64::MAX;
            self.arbitrate(now, output);
        }
    }

    #[inline]
    pub(crate) fn host_event(&mut self, now: u64, host: u32) {
        let record = &mut self.plane.hosts[host as usize];
        if record.wake_at == now {
            record.wake_at = u64::MAX;
            self.inject(now, host);
        }
    }

    #[inline]
    fn event(&mut self, event: Event) {
        let (now, id) = (event.time, event.id());
        match event.phase() {
            phase::ARBITRATE => self.output_event(now, id),
            phase::HOST => self.host_event(now, id),
            phase::HEAD => {
                let packet = self.plane.events.remove_packet(event.argument());
                let output = self
                    .plane
                    .output_of(self.plane.ins[id as usize].element, packet.destination());
                self.head(Head {
                    time: now,
                    port: id,
                    output,
                    packet,
                });
            }
            phase::READ_END => self.read_end(now, id),
            phase::DELIVERED => self.delivered(now, id, event.argument()),
            phase::FEEDBACK => self.feedback(now, id, event),
            phase::CREDIT => self.host_credit(now, id),
            phase::RETRY => self.time_out(now, event.argument()),
            _ => self.traffic_change(now),
        }
    }
}

pub(crate) fn earliest(
    errors: impl IntoIterator<Item = Option<EngineError>>,
) -> Option<EngineError> {
    let instant = |error: &EngineError| match error {
        EngineError::NoRoute { at, .. } | EngineError::Invariant { at, .. } => *at,
        EngineError::Deadlock(deadlock) => deadlock.at,
        EngineError::Loss(loss) => loss.at,
        _ => Time::MAX,
    };
    let errors = errors.into_iter().flatten();
    errors.min_by_key(|error| (instant(error), error.to_string()))
}
