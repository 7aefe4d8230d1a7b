use super::parameters::{PftParameters, Spell, Threshold};

/// The state of an interface, and the counters of Algorithm 2, reset as the state changes.
///
/// "c > Te" and "c < Ts" are read with the thresholds te and ts; Te' and Ts' count in their own states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detector {
    congested: bool,
    cycle_count: u32,
    congested_count: u32,
}

impl Detector {
    /// Returns true if the interface is congested.
    #[inline]
    pub fn is_congested(&self) -> bool {
        self.congested
    }

    /// Runs a clock cycle with `used` credits taken, step by step as in the paper.
    pub fn cycle(&mut self, parameters: &PftParameters, used: u32) {
        let beyond = self.is_beyond(parameters, used);
        let Some(spell) = self.spell(parameters) else {
            self.congested ^= beyond;
            return;
        };
        if self.cycle_count == spell.window {
            self.cycle_count = 0;
        } else {
            self.cycle_count += 1;
        }
        if self.cycle_count == spell.window {
            self.congested_count = 0;
        } else if beyond {
            self.congested_count += 1;
        }
        if self.congested_count == spell.count {
            self.turn();
        }
    }

    /// Clock cycles until the state has changed, at least one, if `used` stays; `None` if it never will.
    #[inline]
    pub fn until_change(&self, parameters: &PftParameters, used: u32) -> Option<u64> {
        if !self.is_beyond(parameters, used) {
            return None;
        }
        let Some(spell) = self.spell(parameters) else {
            return Some(1);
        };
        let missing = u64::from(spell.count - self.congested_count);
        let until_reset = self.until_reset(spell);
        Some(if missing < until_reset {
            missing
        } else {
            until_reset + u64::from(spell.count)
        })
    }

    /// Many clock cycles with `used` credits, at most [`until_change`](Self::until_change).
    #[inline]
    pub fn skip(&mut self, parameters: &PftParameters, used: u32, cycles: u64) {
        debug_assert!(
            self.until_change(parameters, used)
                .is_none_or(|limit| cycles <= limit)
        );
        if cycles == 0 {
            return;
        }
        let beyond = self.is_beyond(parameters, used);
        let Some(spell) = self.spell(parameters) else {
            self.congested ^= beyond;
            return;
        };
        let until_reset = self.until_reset(spell);
        let counted = |cycles: u64| if beyond { cycles as u32 } else { 0 };
        let period = u64::from(spell.window) + 1;
        self.congested_count = if cycles < until_reset {
            self.congested_count + counted(cycles)
        } else {
            counted((cycles - until_reset) % period)
        };
        self.cycle_count = ((u64::from(self.cycle_count) + cycles) % period) as u32;
        if self.congested_count == spell.count {
            self.turn();
        }
    }

    #[inline]
    fn until_reset(&self, spell: Spell) -> u64 {
        match spell.window - self.cycle_count {
            0 => u64::from(spell.window) + 1,
            left => u64::from(left),
        }
    }

    fn turn(&mut self) {
        *self = Self {
            congested: !self.congested,
            ..Self::default()
        };
    }

    /// Returns true if this credit count argues for switching state.
    #[inline]
    fn is_beyond(&self, parameters: &PftParameters, used: u32) -> bool {
        if self.congested {
            used < parameters.escape
        } else {
            used > parameters.enter
        }
    }

    #[inline]
    fn spell(&self, parameters: &PftParameters) -> Option<Spell> {
        match parameters.threshold {
            Threshold::Fixed => None,
            Threshold::Average { enter, escape } => {
                Some(if self.congested { escape } else { enter })
            }
        }
    }
}
