use silvan_core::{IdVec, PortId};

use super::spread::Turns;
use super::{Flows, WORK};
use crate::evidence::Marks;

const MOST_ITERATIONS: usize = 300;
/// Largest relative error of a load at which the iteration ends.
const TOLERANCE: f64 = 0.005;

impl Flows {
    /// Multiplicative iteration: scales flows by the geometric mean of their sums' lack.
    pub(super) fn fit(
        &mut self,
        rates: &IdVec<PortId, Option<f64>>,
        open: &[bool],
        marks: Option<&Marks<'_>>,
        turns: Option<&Turns>,
    ) {
        if !open.contains(&true) {
            return;
        }
        let sources = self.flows.iter().map(|flow| flow.source.index() + 1).max();
        let mut known: Vec<Option<f64>> = vec![None; sources.unwrap_or(0)];
        let is_marked: Vec<bool> = match marks {
            None => vec![false; self.flows.len()],
            Some(marks) => {
                let flows = self.flows.iter();
                let is_marked = |flow| self.path(flow).iter().any(|&port| (marks.is_marking)(port));
                flows.map(is_marked).collect()
            }
        };
        if let Some(marks) = marks.filter(|marks| marks.are_complete && marks.seen.is_empty()) {
            for flow in &self.flows {
                known[flow.source.index()] = marks.known(flow.source);
            }
        }
        let iterations = (WORK / self.steps.len().max(1)).clamp(8, MOST_ITERATIONS);
        let mut sums = IdVec::filled(0.0_f64, rates.len());
        let mut marked_sums = vec![0.0_f64; known.len()];
        let mut factors = IdVec::filled(0.0_f64, rates.len());
        let mut marked_factors = vec![0.0_f64; known.len()];
        for _ in 0..iterations {
            sums.iter_mut().for_each(|sum| *sum = 0.0);
            marked_sums.fill(0.0);
            let all = self.flows.iter().zip(&is_marked).zip(open);
            for ((flow, &is_marked), _) in all.filter(|(_, open)| **open) {
                for &port in &self.steps[flow.start as usize..flow.end as usize] {
                    sums[port] += flow.bits_per_s;
                }
                if is_marked {
                    marked_sums[flow.source.index()] += flow.bits_per_s;
                }
            }
            let mut worst = 0.0_f64;
            let mut lack = |wanted: Option<f64>, sum: f64| match wanted {
                Some(wanted) if sum > 0.0 => {
                    let lack = (wanted.max(1.0) / sum).ln().clamp(-3.0, 3.0);
                    // Unreachable loads do not prevent the end of the iteration.
                    if wanted > 1.0 {
                        worst = worst.max(lack.abs());
                    }
                    lack
                }
                _ => 0.0,
            };
            for (port, factor) in factors.iter_mut_enumerated() {
                let is_complete = self.complete.as_ref().is_none_or(|complete| complete[port]);
                *factor = match (is_complete, rates[port]) {
                    (true, rate) => lack(rate, sums[port]),
                    // Flows that are left out may be the rest of the load.
                    (false, Some(rate)) if rate < sums[port] => lack(Some(rate), sums[port]),
                    (false, _) => 0.0,
                };
            }
            for ((factor, &rate), &sum) in marked_factors.iter_mut().zip(&known).zip(&marked_sums) {
                *factor = lack(rate, sum);
            }
            let turn_factors = turns.map(|turns| turns.factors(self, open));
            let of_turns = turn_factors.as_ref().map_or(&[][..], |factors| factors);
            let worst = of_turns
                .iter()
                .map(|factor| factor.abs())
                .fold(worst, f64::max);
            if worst < TOLERANCE {
                break;
            }
            let all = self.flows.iter_mut().zip(&is_marked).zip(open).enumerate();
            for (number, ((flow, &is_marked), _)) in all.filter(|(_, (_, open))| **open) {
                let path = &self.steps[flow.start as usize..flow.end as usize];
                let mut exponent: f64 = path.iter().map(|&port| factors[port]).sum();
                let mut count = path.len();
                if is_marked && known[flow.source.index()].is_some() {
                    exponent += 2.0 * marked_factors[flow.source.index()];
                    count += 2;
                }
                for &turn in turns.map_or(&[][..], |turns| turns.of(number)) {
                    exponent += of_turns[turn as usize];
                    count += usize::from(of_turns[turn as usize] != 0.0);
                }
                flow.bits_per_s *= (exponent / count as f64).exp();
            }
        }
    }
}
