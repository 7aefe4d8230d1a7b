use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::Time;

use crate::engine::Engine;
use crate::events::{Event, phase};
use crate::plane::time;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Skips an event that is no longer waited for.
    pub(crate) fn traffic_change(&mut self, now: u64) {
        let (changes, fires) = (self.change_at == now, self.timer_at == now);
        if changes {
            self.change_at = u64::MAX;
            self.workload.apply_change(time(now), &mut self.woken);
        }
        if fires && !F::LOOKAHEAD {
            self.timer_at = u64::MAX;
            self.workload.on_timer(time(now), &mut self.woken);
        }
        if changes || fires {
            self.wake_all(now);
            self.check_pause();
        }
    }

    /// Wakes hosts of this part only.
    pub(crate) fn wake_all(&mut self, now: u64) {
        let mut woken = std::mem::take(&mut self.woken);
        for host in woken.drain(..) {
            let number = self.plane.known_host(host);
            if !F::LOOKAHEAD || !self.plane.remote.has_host(number) {
                self.workload.on_woken(host, time(now));
                self.wake_host(number, now);
            }
        }
        self.woken = woken;
        self.schedule_change();
    }

    pub(crate) fn schedule_change(&mut self) {
        let at = |next: Option<Time>| next.map_or(u64::MAX, Time::as_ps);
        let change = at(self.workload.next_change(time(self.now)));
        let timer = at(self.workload.next_timer());
        for (next, known) in [(change, &mut self.change_at), (timer, &mut self.timer_at)] {
            if next < *known {
                *known = next;
                if !F::LOOKAHEAD {
                    self.plane
                        .events
                        .push(Event::new(next, phase::CHANGE, 0, 0));
                }
            }
        }
    }
}
