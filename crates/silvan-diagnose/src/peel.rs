//! Flows that the loads determine, found one after the other.
//!
//! A port with a single possible flow gives its size; a host that sends as much, to a thousandth, as exactly one
//! receives sends to it. Known flows are subtracted. Then random flows that explain most loads are guessed; flows on
//! which the best guesses agree are certain.

use std::rc::Rc;

use silvan_core::{IdVec, PortId};

/// Load below this part of the largest link is none.
const IDLE: f64 = 0.003;
/// Loads within this part are equal.
const SAME: f64 = 0.0015;

/// A guess explains the loads of at least so many ports in full.
const LEAST_TIGHT: usize = 2;

#[derive(Clone)]
pub(crate) struct Peeling<'a> {
    /// Unexplained part of the loads, in bit/s; `None` if unknown.
    pub residual: IdVec<PortId, Option<f64>>,
    paths: &'a dyn Fn(usize) -> &'a [PortId],
    pub open: Vec<bool>,
    pub known: Vec<(usize, f64)>,
    /// Possible flows of each port, one port after the other.
    index: Rc<(Vec<u32>, Vec<u32>)>,
    counts: Vec<u32>,
    sums: Vec<u64>,
    idle: f64,
}

impl<'a> Peeling<'a> {
    pub fn new(
        residual: IdVec<PortId, Option<f64>>,
        count: usize,
        paths: &'a dyn Fn(usize) -> &'a [PortId],
        excluded: impl Fn(usize) -> bool,
    ) -> Self {
        let ports = residual.len();
        let open: Vec<bool> = (0..count).map(|flow| !excluded(flow)).collect();
        let mut counts = vec![0_u32; ports];
        let mut sums = vec![0_u64; ports];
        for flow in (0..count).filter(|&flow| open[flow]) {
            for port in paths(flow) {
                counts[port.index()] += 1;
                sums[port.index()] += flow as u64;
            }
        }
        let mut starts = vec![0_u32; ports + 1];
        for port in 0..ports {
            starts[port + 1] = starts[port] + counts[port];
        }
        let mut next = starts.clone();
        let mut flows = vec![0_u32; starts[ports] as usize];
        for flow in (0..count).filter(|&flow| open[flow]) {
            for port in paths(flow) {
                flows[next[port.index()] as usize] = flow as u32;
                next[port.index()] += 1;
            }
        }
        let largest = residual.iter().flatten().copied().fold(0.0, f64::max);
        Self {
            residual,
            paths,
            open,
            known: Vec::new(),
            index: Rc::new((flows, starts)),
            counts,
            sums,
            idle: IDLE * largest,
        }
    }

    fn close(&mut self, flow: usize) {
        if !std::mem::replace(&mut self.open[flow], false) {
            return;
        }
        for port in (self.paths)(flow) {
            self.counts[port.index()] -= 1;
            self.sums[port.index()] -= flow as u64;
        }
    }

    fn assign(&mut self, flow: usize, bits_per_s: f64) {
        self.close(flow);
        self.known.push((flow, bits_per_s));
        for &port in (self.paths)(flow) {
            if let Some(left) = &mut self.residual[port] {
                *left = (*left - bits_per_s).max(0.0);
            }
        }
    }

    pub fn run(&mut self) {
        loop {
            self.close_idle();
            if !self.assign_single() && !self.assign_equal() {
                break;
            }
        }
    }

    fn close_idle(&mut self) {
        for port in 0..self.counts.len() {
            let left = self.residual[PortId::new(port)];
            if self.counts[port] == 0 || left.is_none_or(|left| left > self.idle) {
                continue;
            }
            let index = Rc::clone(&self.index);
            let (flows, starts) = &*index;
            for &flow in &flows[starts[port] as usize..starts[port + 1] as usize] {
                self.close(flow as usize);
            }
        }
    }

    fn assign_single(&mut self) -> bool {
        let mut any = false;
        for port in 0..self.counts.len() {
            if self.counts[port] != 1 {
                continue;
            }
            let Some(left) = self.residual[PortId::new(port)] else {
                continue;
            };
            let flow = self.sums[port] as usize;
            // No port of the path can carry less.
            let most = (self.paths)(flow)
                .iter()
                .filter_map(|&port| self.residual[port]);
            let most = most.fold(left, f64::min);
            self.assign(flow, most);
            any = true;
        }
        any
    }

    /// Flows with equal load at first and last port, alone in that at both.
    fn assign_equal(&mut self) -> bool {
        let mut at_port = vec![0_u32; self.counts.len()];
        let mut equal = Vec::new();
        for flow in (0..self.open.len()).filter(|&flow| self.open[flow]) {
            let path = (self.paths)(flow);
            let (Some(&first), Some(&last)) = (path.first(), path.last()) else {
                continue;
            };
            let (Some(sent), Some(received)) = (self.residual[first], self.residual[last]) else {
                continue;
            };
            let least = sent.min(received);
            let fits = |port: &PortId| {
                self.residual[*port].is_none_or(|left| left >= least * (1.0 - 2.0 * SAME))
            };
            if (sent - received).abs() > SAME * sent.max(received) || !path.iter().all(fits) {
                continue;
            }
            at_port[first.index()] += 1;
            at_port[last.index()] += 1;
            equal.push((flow, least));
        }
        let mut any = false;
        for (flow, bits_per_s) in equal {
            let path = (self.paths)(flow);
            let ends = [path.first(), path.last()];
            let is_only = ends
                .into_iter()
                .flatten()
                .all(|port| at_port[port.index()] == 1);
            if is_only && self.open[flow] {
                self.assign(flow, bits_per_s);
                any = true;
            }
        }
        any
    }

    /// Assigns flows that explain most ports, in random order among equals; `false` if none explains enough.
    pub fn guess(
        &mut self,
        likelihood: impl Fn(usize) -> u32,
        random: &mut impl FnMut() -> u64,
    ) -> bool {
        let mut best = (0, Vec::new());
        for flow in (0..self.open.len()).filter(|&flow| self.open[flow]) {
            let Some((_, tight)) = self.largest(flow) else {
                continue;
            };
            let tight = tight * 64 / (self.paths)(flow).len() + 64 * likelihood(flow) as usize;
            if tight > best.0 {
                best = (tight, Vec::new());
            }
            if tight == best.0 {
                best.1.push(flow);
            }
        }
        let mut candidates = best.1;
        let mut any = false;
        // One at a time if there are few, so that each guess can decide the next.
        let most = 1 + candidates.len() / 256;
        for _ in 0..most {
            if candidates.is_empty() {
                break;
            }
            let flow = candidates.swap_remove((random() % candidates.len() as u64) as usize);
            let Some((bits_per_s, tight)) = self.largest(flow).filter(|_| self.open[flow]) else {
                continue;
            };
            if tight >= LEAST_TIGHT {
                self.assign(flow, bits_per_s);
                any = true;
            }
        }
        any
    }

    /// The largest rate that a flow can have, and how many ports of its path it explains then.
    fn largest(&self, flow: usize) -> Option<(f64, usize)> {
        let loads = || {
            (self.paths)(flow)
                .iter()
                .filter_map(|&port| self.residual[port])
        };
        let least = loads().fold(f64::INFINITY, f64::min);
        if !least.is_finite() || least <= self.idle {
            return None;
        }
        Some((
            least,
            loads().filter(|load| *load <= least * (1.0 + SAME)).count(),
        ))
    }

    /// Unexplained load; ports with possible flows count at a discount.
    pub fn unexplained(&self) -> f64 {
        let left = self.residual.iter().zip(&self.counts);
        left.filter_map(|(left, &count)| Some(left.as_ref()? * if count == 0 { 1.0 } else { 0.3 }))
            .sum()
    }
}
