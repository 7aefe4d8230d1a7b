use super::detector::Detector;
use super::draws::Draws;
use super::parameters::{PftParameters, Sending};

const LOOKAHEAD: u64 = 1 << 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Interface {
    detector: Detector,
    used: u32,
    next: u64,
    after_flit: u64,
    /// Flits of the started packet that have not been sent.
    owed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    At(u64),
    NotBefore(u64),
    Never,
}

impl Interface {
    pub(super) fn is_congested(&self) -> bool {
        self.detector.is_congested()
    }

    /// Part of the link's rate in the congested state at constant credits: one flit in 1 + f(c) cycles, or the part of
    /// random numbers of at least f(c) (pft2021, figure 1).
    pub(super) fn limit(&self, parameters: &PftParameters) -> Option<f64> {
        let value = parameters.shift.of(self.used) as f64;
        self.is_congested().then(|| match parameters.sending {
            Sending::Interval => 1.0 / (1.0 + value),
            Sending::Random { bits } => (1.0 - value / 2f64.powi(bits.into())).max(0.0),
        })
    }

    pub(super) fn owed(&self) -> u64 {
        self.owed
    }

    pub(super) fn set_used(
        &mut self,
        parameters: &PftParameters,
        draws: &Draws,
        cycle: u64,
        used: u32,
    ) {
        self.play(parameters, draws, cycle);
        self.used = used;
    }

    pub(super) fn start_packet(
        &mut self,
        parameters: &PftParameters,
        draws: &Draws,
        cycle: u64,
        flits: u64,
    ) {
        self.play(parameters, draws, cycle);
        if self.next == cycle {
            self.pass(parameters, 1);
        }
        self.after_flit = cycle + 1;
        self.owed = flits.saturating_sub(1);
    }

    pub(super) fn play(&mut self, parameters: &PftParameters, draws: &Draws, until: u64) {
        while self.next < until {
            let end = until.min(self.segment_end(parameters));
            if self.owed == 0 {
                self.pass(parameters, end - self.next);
            } else {
                self.release_packet(parameters, draws, end);
            }
        }
    }

    pub(super) fn ready(&self, parameters: &PftParameters, draws: &Draws) -> Ready {
        let mut ahead = *self;
        let horizon = self.next.saturating_add(LOOKAHEAD);
        while ahead.next < horizon {
            let end = horizon.min(ahead.segment_end(parameters));
            if ahead.owed > 0 {
                ahead.release_packet(parameters, draws, end);
            } else if let Some(cycle) = ahead.first_open(parameters, draws, end) {
                return Ready::At(cycle);
            } else {
                ahead.pass(parameters, end - ahead.next);
            }
        }
        let shut = match parameters.sending {
            Sending::Interval => false,
            Sending::Random { bits } => parameters.shift.of(self.used) >> bits != 0,
        };
        let change = ahead.detector.until_change(parameters, self.used);
        if shut && ahead.is_congested() && change.is_none() {
            Ready::Never
        } else {
            Ready::NotBefore(horizon)
        }
    }

    #[inline]
    fn segment_end(&self, parameters: &PftParameters) -> u64 {
        match self.detector.until_change(parameters, self.used) {
            Some(cycles) => self.next.saturating_add(cycles),
            None => u64::MAX,
        }
    }

    #[inline]
    fn pass(&mut self, parameters: &PftParameters, cycles: u64) {
        self.detector.skip(parameters, self.used, cycles);
        self.next += cycles;
    }

    /// Sends owed flits before `end` while the state stays; with random intervals at most a group of cycles.
    fn release_packet(&mut self, parameters: &PftParameters, draws: &Draws, end: u64) {
        let reached = if !self.is_congested() {
            let flits = self.owed.min(end - self.next);
            self.owed -= flits;
            self.after_flit = self.next + flits;
            self.after_flit
        } else {
            match parameters.sending {
                Sending::Interval => {
                    let gap = parameters.shift.of(self.used);
                    let first = self.next.max(self.after_flit.saturating_add(gap));
                    if first >= end {
                        end
                    } else {
                        let flits = self.owed.min((end - 1 - first) / (gap + 1) + 1);
                        self.owed -= flits;
                        self.after_flit = first + (flits - 1) * (gap + 1) + 1;
                        if self.owed == 0 { self.after_flit } else { end }
                    }
                }
                Sending::Random { bits } => {
                    let bound = parameters.shift.of(self.used);
                    let (open, group_end) = self.open_cycles(draws, bits, bound, end);
                    let flits = u64::from(open.count_ones());
                    let open = if flits > self.owed {
                        lowest(open, self.owed)
                    } else {
                        open
                    };
                    if open != 0 {
                        self.after_flit =
                            self.next / 64 * 64 + 64 - u64::from(open.leading_zeros());
                    }
                    self.owed -= flits.min(self.owed);
                    if self.owed == 0 {
                        self.after_flit
                    } else {
                        group_end
                    }
                }
            }
        };
        self.pass(parameters, reached - self.next);
    }

    fn first_open(&self, parameters: &PftParameters, draws: &Draws, end: u64) -> Option<u64> {
        if !self.is_congested() {
            return Some(self.next);
        }
        let bound = parameters.shift.of(self.used);
        match parameters.sending {
            Sending::Interval => {
                let first = self.next.max(self.after_flit.saturating_add(bound));
                (first < end).then_some(first)
            }
            Sending::Random { bits } => {
                if bound >> bits != 0 {
                    return None;
                }
                let mut at = *self;
                while at.next < end {
                    let (open, group_end) = at.open_cycles(draws, bits, bound, end);
                    if open != 0 {
                        return Some(at.next / 64 * 64 + u64::from(open.trailing_zeros()));
                    }
                    at.next = group_end;
                }
                None
            }
        }
    }

    #[inline]
    fn open_cycles(&self, draws: &Draws, bits: u8, bound: u64, end: u64) -> (u64, u64) {
        if bound >> bits != 0 {
            return (0, end);
        }
        let group = self.next / 64;
        let group_end = end.min((group + 1).saturating_mul(64));
        let from = u64::MAX << (self.next % 64);
        let to = match group_end - group * 64 {
            64 => u64::MAX,
            cycles => (1 << cycles) - 1,
        };
        (draws.at_least(group, bits, bound) & from & to, group_end)
    }
}

#[inline]
fn lowest(word: u64, count: u64) -> u64 {
    let mut rest = word;
    for _ in 0..count {
        rest &= rest - 1;
    }
    word & !rest
}
