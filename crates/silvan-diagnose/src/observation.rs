//! The load of each port, and the part of the time for which it waited.

use silvan_core::counters::DATA_WORD;
use silvan_core::{IdVec, PortId, Rate, Span};
use silvan_fabric::Fabric;

use crate::counters::{TrafficGrowth, TrafficReading};
use crate::logs::Logs;

/// A port as a sender between two sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortLoad {
    /// Data sent, as a part of what the link can carry; `None` if neither end has counted it.
    pub load: Option<f64>,
    /// Part of the time with data to send and none sent, for lack of credits or turns.
    pub wait: Option<f64>,
    /// Part of the time in the congestion state.
    pub congested: Option<f64>,
    /// Packets with FECN received per second.
    pub fecn_per_s: Option<f64>,
    /// Packets with BECN received per second.
    pub becn_per_s: Option<f64>,
}

/// Bit errors of a link between two sweeps, at its receiving port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkErrors {
    /// Growth of SymbolErrorCounter per second.
    pub symbol_errors_per_s: f64,
    /// Growth of PortRcvErrors per second, in packets.
    pub rcv_errors_per_s: f64,
    /// Growth of LinkErrorRecoveryCounter.
    pub recoveries: u64,
}

/// Bit errors of a link that works as it should are fewer, as a part of all bits (IBA, volume 2).
const USUAL_ERRORS: f64 = 1e-12;

/// Probability with which a good cable is taken for a bad one, at most.
const BY_CHANCE: f64 = 1e-6;

/// Returns true if so many random errors are too many for this mean, by Chernoff's bound of the Poisson distribution.
fn are_too_many(errors: u64, mean: f64) -> bool {
    let errors = errors as f64;
    errors > mean && errors - mean - errors * (errors / mean).ln() < BY_CHANCE.ln()
}

/// Two sweeps compared.
#[derive(Clone, Debug)]
pub struct Observation {
    /// By port.
    pub ports: IdVec<PortId, PortLoad>,
    /// Growth by port, for reports of what is missing.
    pub growth: IdVec<PortId, TrafficGrowth>,
    /// Mean time between the readings of a port.
    pub span: Span,
    /// Logs of switches; empty if they were not read.
    pub logs: Logs,
    /// The tick of PortXmitWait and PortXmitTimeCong by port; `None` if it is not known.
    pub ticks: IdVec<PortId, Option<Span>>,
}

/// The rate of a port's link, `None` without a cable.
pub fn data_rate(fabric: &Fabric, port: PortId) -> Option<Rate> {
    let link = fabric.ports[port].link?;
    Some(fabric.links[link].data_rate())
}

impl Observation {
    /// Compares two sweeps; a wait without a tick in `ticks` is unknown. Panics unless all have the fabric's ports.
    pub fn new(
        fabric: &Fabric,
        before: &IdVec<PortId, TrafficReading>,
        now: &IdVec<PortId, TrafficReading>,
        ticks: IdVec<PortId, Option<Span>>,
    ) -> Self {
        let growth: IdVec<PortId, TrafficGrowth> = fabric
            .ports
            .ids()
            .map(|port| {
                let Some(link) = fabric.ports[port].link else {
                    return TrafficGrowth::UNREAD;
                };
                let words = fabric.links[link].signalling_rate().bits_per_sec() / (8 * DATA_WORD);
                // Without a tick, any growth is possible.
                let tick = ticks[port].unwrap_or(Span::from_ps(1));
                TrafficGrowth::between(&before[port], &now[port], words, tick)
            })
            .collect();
        let ports = fabric
            .ports
            .ids()
            .map(|port| load(fabric, &growth, port, ticks[port]));
        let spans = growth
            .iter()
            .map(|grown| grown.span)
            .filter(|span| !span.is_zero());
        let (sum, count) = spans.fold((0_u128, 0_u128), |(sum, count), span| {
            (sum + u128::from(span.as_ps()), count + 1)
        });
        Self {
            ports: ports.collect(),
            span: Span::from_ps((sum / count.max(1)) as u64),
            growth,
            logs: Logs::default(),
            ticks,
        }
    }

    /// The bit errors of what a port receives, if they are more than a good cable has.
    pub fn link_errors(&self, fabric: &Fabric, port: PortId) -> Option<LinkErrors> {
        let rate = data_rate(fabric, port)?;
        let grown = &self.growth[port];
        let seconds = grown.span.as_secs_f64();
        let count = |counter: Result<u64, _>| counter.unwrap_or(0);
        if seconds == 0.0 {
            return None;
        }
        let errors = LinkErrors {
            symbol_errors_per_s: count(grown.symbol_errors) as f64 / seconds,
            rcv_errors_per_s: count(grown.rcv_errors) as f64 / seconds,
            recoveries: count(grown.link_error_recovery),
        };
        let usual = USUAL_ERRORS * rate.bits_per_sec() as f64 * seconds;
        // Packets are bad for other reasons, too, such as a cable that was cut.
        let is_bad = are_too_many(count(grown.symbol_errors), usual) || errors.recoveries > 0;
        is_bad.then_some(errors)
    }

    /// Cabled ports of which the load or the waiting time is not known.
    pub fn unknown_ports<'a>(&'a self, fabric: &'a Fabric) -> impl Iterator<Item = PortId> + 'a {
        let cabled = fabric
            .ports
            .ids()
            .filter(|&port| fabric.ports[port].link.is_some());
        cabled.filter(|&port| self.ports[port].load.is_none() || self.ports[port].wait.is_none())
    }
}

fn load(
    fabric: &Fabric,
    growth: &IdVec<PortId, TrafficGrowth>,
    port: PortId,
    tick: Option<Span>,
) -> PortLoad {
    let Some(rate) = data_rate(fabric, port) else {
        return PortLoad::default();
    };
    let own = &growth[port];
    let seconds = |span: Span| span.as_ps() as f64 / 1e12;
    let share = |words: u64, span: Span| {
        (words * DATA_WORD * 8) as f64 / (rate.bits_per_sec() as f64 * seconds(span))
    };
    let part = |ticks: u64| match ticks {
        0 => Some(0.0),
        _ => Some(ticks as f64 * seconds(tick?) / seconds(own.span)),
    };
    let sent = own.xmit_data.ok().map(|words| share(words, own.span));
    // The far end has received what this end has sent.
    let received = || {
        let peer = &growth[fabric.ports[port].peer?];
        peer.rcv_data.ok().map(|words| share(words, peer.span))
    };
    PortLoad {
        load: sent.or_else(received),
        wait: own.xmit_wait.ok().and_then(part),
        congested: own.xmit_cong.ok().and_then(part),
        fecn_per_s: own.fecn.ok().map(|count| count as f64 / seconds(own.span)),
        becn_per_s: own.becn.ok().map(|count| count as f64 / seconds(own.span)),
    }
}

#[cfg(test)]
mod tests {
    use super::are_too_many;

    /// Oracle: the Poisson distribution, summed up.
    #[test]
    fn errors_of_good_cables_are_not_too_many() {
        for mean in [0.004, 0.2, 1.0, 12.0, 100.0] {
            let mut probability = f64::exp(-mean);
            let mut terms = Vec::new();
            for errors in 1..1_000 {
                terms.push(probability);
                probability *= mean / f64::from(errors);
            }
            for errors in 0..400 {
                let at_least: f64 = terms[errors..].iter().rev().sum();
                let is_bad = are_too_many(errors as u64, mean);
                assert!(!is_bad || at_least < 1e-6, "{errors} of {mean}");
                assert!(is_bad || at_least > 1e-9, "{errors} of {mean}");
            }
        }
    }
}
