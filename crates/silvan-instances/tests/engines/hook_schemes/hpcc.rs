//! HPCC (Y. Li et al., SIGCOMM 2019, algorithm 1): a window by the load of the busiest hop.

use super::{PerFlow, ps};
use silvan_cc::hooks::{Ack, Flow, PortVl, Settings, SourceControl, SwitchControl};
use silvan_core::{Span, Time};

const RTT: f64 = 3e6;
pub const LINK: f64 = 100e9 / 8e12 * RTT;

/// Window, reference window, load, stage, round, bytes in flight, next start; time, queue and bytes sent by hop.
#[derive(Clone)]
pub struct Hpcc(pub PerFlow<13>);

impl Settings for Hpcc {}
impl SwitchControl for Hpcc {
    fn needs_stamps(&self) -> bool {
        true
    }
    fn stamps(&mut self, _: Time, _: PortVl) -> bool {
        true
    }
}
impl SourceControl for Hpcc {
    fn needs_ack(&self) -> bool {
        true
    }
    fn release(&mut self, _: Time, flow: Flow) -> Time {
        let [window, _, _, _, _, flight, next, ..] = self.0[flow];
        let open = flight == 0.0 || flight + 2048.0 <= window;
        Time::from_ps(if open { next as u64 } else { u64::MAX })
    }
    fn on_send(&mut self, now: Time, flow: Flow, _: Span, payload: u32) {
        let [window, _, _, _, _, flight, next, ..] = &mut self.0[flow];
        *flight += f64::from(payload);
        *next = ps(now) + (f64::from(payload) * RTT / *window).trunc();
    }
    fn on_ack(&mut self, now: Time, flow: Flow, ack: Ack<'_>) -> bool {
        let [window, base, load, stage, round, flight, _, hops @ ..] = &mut self.0[flow];
        let (mut most, mut span) = (0.0, 0.0);
        for (hop, last) in ack.hops.iter().zip(hops.chunks_exact_mut(3)) {
            let (rate, passed) = (hop.rate.bits_per_sec() as f64 / 8e12, ps(hop.at) - last[0]);
            let queued = f64::from(hop.queued_bytes).min(last[1]) / (rate * RTT);
            let found = queued + (hop.xmit_bytes as f64 - last[2]) / passed / rate;
            if found > most {
                (most, span) = (found, passed.min(RTT));
            }
            last.copy_from_slice(&[ps(hop.at), hop.queued_bytes.into(), hop.xmit_bytes as f64]);
        }
        *flight -= f64::from(ack.bytes);
        *load = (1.0 - span / RTT) * *load + span / RTT * most;
        let raise = *load < 0.95 && *stage < 5.0;
        let factor = if raise { 1.0 } else { 0.95 / *load };
        *window = (*base * factor + 80.0).clamp(256.0, LINK);
        if ps(ack.sent) >= *round {
            *stage = if raise { *stage + 1.0 } else { 0.0 };
            (*base, *round) = (*window, ps(now));
        }
        true
    }
}
