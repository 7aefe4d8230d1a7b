//! Unmarked eligible packets between marks. [`MarkingMode::Dithered`] has random marking's gaps without draws: the n-th
//! is quantile `n + start` of a shuffled table, so a cycle's mean is Marking_Rate.

use silvan_core::stream::SplitMix64;

use crate::schemes::ib_cc::settings::MarkingMode;

/// A power of two.
const QUANTILES: usize = 1_024;
/// Fraction bits of a quantile, at most 7.6.
const QUANTILE_BITS: u32 = 28;
/// Fraction bits of a scale, at most 65,535.5.
const SCALE_BITS: u32 = 16;
const ORDER: u64 = 1_024;

#[derive(Clone, Debug)]
pub(super) struct Gaps {
    mode: MarkingMode,
    port_vls: Vec<PortVlGaps>,
    /// Shuffled quantiles of the exponential distribution with mean 1; empty in other modes.
    quantiles: Vec<u32>,
    /// By Port VL in random mode, else empty.
    streams: Vec<SplitMix64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct PortVlGaps {
    marking_rate: u16,
    /// Place in the table before the first mark.
    start: u16,
    /// Mean of the exponential distribution whose whole parts are geometric with mean Marking_Rate.
    scale: u32,
}

impl Gaps {
    pub(super) fn new(mode: MarkingMode, port_vls: usize, seed: u64) -> Self {
        let streams = (0..port_vls as u64).map(|stream| SplitMix64::for_stream(seed, stream));
        let mut gaps = Self {
            mode,
            port_vls: vec![PortVlGaps::default(); port_vls],
            quantiles: Vec::new(),
            streams: Vec::new(),
        };
        match mode {
            MarkingMode::Counter => {}
            MarkingMode::Random => gaps.streams = streams.collect(),
            MarkingMode::Dithered => {
                gaps.quantiles = quantiles();
                for (port_vl, mut stream) in gaps.port_vls.iter_mut().zip(streams) {
                    port_vl.start = stream.next() as u16;
                }
            }
        }
        gaps
    }

    pub(super) fn set_rate(&mut self, index: usize, marks: u64, rate: u16, left: u32) -> u32 {
        let port_vl = &mut self.port_vls[index];
        if port_vl.marking_rate == rate {
            return left;
        }
        port_vl.marking_rate = rate;
        port_vl.scale = scale(rate);
        match self.mode {
            MarkingMode::Counter => left.min(u32::from(rate)),
            // Geometric gaps have no memory: the next gap replaces this one.
            MarkingMode::Dithered => self.after(index, marks),
            MarkingMode::Random => left,
        }
    }

    pub(super) fn after(&self, index: usize, marks: u64) -> u32 {
        let port_vl = &self.port_vls[index];
        if self.quantiles.is_empty() {
            return u32::from(port_vl.marking_rate);
        }
        let place = (marks as usize).wrapping_add(usize::from(port_vl.start)) % QUANTILES;
        let scaled = u64::from(self.quantiles[place]) * u64::from(port_vl.scale);
        (scaled >> (QUANTILE_BITS + SCALE_BITS)) as u32
    }

    #[inline]
    pub(super) fn draw(&mut self, index: usize) -> Option<bool> {
        let stream = self.streams.get_mut(index)?;
        Some(stream.one_in(u32::from(self.port_vls[index].marking_rate) + 1))
    }
}

fn quantiles() -> Vec<u32> {
    let one = f64::from(1 << QUANTILE_BITS);
    let mut quantiles: Vec<u32> = (0..QUANTILES)
        .map(|part| (part as f64 + 0.5) / QUANTILES as f64)
        .map(|below| (-libm::log(1.0 - below) * one) as u32)
        .collect();
    let mut order = SplitMix64::new(ORDER);
    for last in (1..QUANTILES).rev() {
        quantiles.swap(last, (order.next() % (last as u64 + 1)) as usize);
    }
    quantiles
}

/// 1 / ln(1 + 1 / rate): an exponential gap of this mean is at least n with the probability of n unmarked packets.
fn scale(rate: u16) -> u32 {
    if rate == 0 {
        return 0;
    }
    let mean = 1.0 / libm::log1p(1.0 / f64::from(rate));
    (mean * f64::from(1 << SCALE_BITS)) as u32
}
