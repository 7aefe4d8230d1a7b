//! Simulated time that follows programs: it stands still while they work or data are copied.

use std::time::{Duration, Instant};

use silvan_core::{Span, Time};

use super::clock::{Clock, Course};
use super::{Server, TICK};
use crate::error::EmulatorError;
use crate::verbs::Exchange;

const STEP: Span = Span::from_us(20);
const WORK_TICK: Duration = Duration::from_micros(50);
/// A program that has just acted may act again soon: its next steps take little simulated time. Then it may compare its
/// clocks with each other, which the machine's scheduling disturbs.
const SLOWDOWNS: [(Duration, f64); 2] = [
    (Duration::from_millis(50), 200.0),
    (Duration::from_secs(3), 4.0),
];
const LAG: Duration = Duration::from_millis(20);

impl Exchange {
    fn goes_on(&mut self, now: Instant, simulated: Span) {
        if let Some(since) = self.since.replace(now) {
            self.wall_s += now.duration_since(since).as_secs_f64();
        }
        self.simulated_s += simulated.as_secs_f64();
    }
}

impl Server {
    /// Holds the clock, or runs to the next arrival, and returns the time to wait; `None` if no program exchanges data.
    pub(super) fn follow_programs(
        &mut self,
        now: Instant,
        simulated: Time,
    ) -> Result<Option<Duration>, EmulatorError> {
        let (Some(rdma), Some(clock)) = (&mut self.rdma, &mut self.clock) else {
            return Ok(None);
        };
        if self.pace.is_paused() {
            clock.show(Course::Stopped(simulated));
            return Ok(None);
        }
        let is_copying = rdma.is_copying();
        if rdma.work(now) || is_copying {
            self.exchange.goes_on(now, Span::ZERO);
            hold(&mut self.pace, clock, simulated);
            return Ok(Some(if is_copying { TICK } else { WORK_TICK }));
        }
        if rdma.waits() {
            let mut until = simulated.saturating_add(STEP);
            let timers = [self.faults.next(), rdma.next_timer()];
            for time in timers.into_iter().flatten() {
                until = until.min(time.max(simulated));
            }
            let subnet = &mut self.clients.subnet;
            subnet.step(until)?;
            rdma.collect_fates(subnet)?;
            let reached = subnet.now();
            self.exchange.goes_on(now, reached.since(simulated));
            hold(&mut self.pace, clock, reached);
            return Ok(Some(Duration::ZERO));
        }
        self.exchange.since = None;
        let acted = rdma.acted().map(|at| now.duration_since(at));
        let slowdown = SLOWDOWNS
            .iter()
            .find(|(span, _)| acted.is_some_and(|ago| ago < *span));
        self.pace
            .slow_down(slowdown.map_or(1.0, |&(_, factor)| factor), now);
        self.pace.limit_lag(now, simulated, LAG);
        let course = Course::Runs(self.pace.target(now), self.pace.scale_now(), LAG);
        clock.show(course);
        Ok(None)
    }
}

fn hold(pace: &mut crate::pace::Pace, clock: &mut Clock, simulated: Time) {
    pace.hold(Instant::now(), simulated);
    clock.show(Course::Stopped(simulated));
}
