use silvan_core::Span;
use thiserror::Error;

/// Of `window` cycles in a row `count` must have c beyond the threshold (pft2021, Algorithm 2); windows repeat every
/// `window` + 1 cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spell {
    /// Te or Ts of the paper, in clock cycles.
    pub window: u32,
    /// Te' or Ts', in clock cycles.
    pub count: u32,
}

/// Detection of congestion at the interface (pft2021, section III-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// Fixed threshold (FT, Algorithm 1): by the credits taken now.
    Fixed,
    /// Average threshold (AT, Algorithm 2): by how long they have been beyond it.
    Average {
        /// Spell that makes a normal interface congested.
        enter: Spell,
        /// Spell that makes a congested interface normal.
        escape: Spell,
    },
}

/// The function f(c) = 2^(m - n) c + k, as shifts in hardware (pft2021, section III-C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    /// Bits to the left, at most 31.
    pub m: u8,
    /// Bits to the right, at most 31.
    pub n: u8,
    /// The added constant.
    pub k: u32,
}

impl Shift {
    /// f(c), what falls off on the right cut off.
    #[inline]
    pub fn of(self, used: u32) -> u64 {
        ((u64::from(used) << self.m) >> self.n) + u64::from(self.k)
    }
}

/// Sending of a congested interface (pft2021, section III-C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Fixed interval (FI): f(c) idle cycles between two flits.
    Interval,
    /// Random interval (RI): in a cycle in which a random number of this many bits is at least f(c).
    Random {
        /// Bits of the random number, 1 to 32.
        bits: u8,
    },
}

/// All parameters of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PftParameters {
    /// Detection of congestion.
    pub threshold: Threshold,
    /// te: with more credits taken than that a normal interface finds congestion.
    pub enter: u32,
    /// ts: with fewer credits taken than that a congested interface finds that it is over.
    pub escape: u32,
    /// f(c).
    pub shift: Shift,
    /// Sending of a congested interface.
    pub sending: Sending,
    /// The clock: time of a flit on the host's link.
    pub flit_time: Span,
    /// Buffer space of a credit, in bytes.
    pub credit_bytes: u32,
}

impl PftParameters {
    /// Checks the parameters. Errors: [`PftError`] for the first at fault.
    pub fn validate(&self) -> Result<(), PftError> {
        let Shift { m, n, .. } = self.shift;
        if m > 31 || n > 31 {
            return Err(PftError::Shift(m.max(n)));
        }
        if let Sending::Random { bits } = self.sending {
            if !(1..=32).contains(&bits) {
                return Err(PftError::RandomBits(bits));
            }
        }
        match self.threshold {
            Threshold::Fixed if self.escape > self.enter => Err(PftError::EscapeAboveEnter {
                enter: self.enter,
                escape: self.escape,
            }),
            Threshold::Fixed => Ok(()),
            Threshold::Average { enter, escape } => {
                [enter, escape].into_iter().try_for_each(|spell| {
                    if spell.count == 0 || spell.count > spell.window {
                        return Err(PftError::Spell(spell));
                    }
                    Ok(())
                })
            }
        }?;
        if self.flit_time == Span::ZERO {
            return Err(PftError::NoFlitTime);
        }
        if self.credit_bytes == 0 {
            return Err(PftError::NoCredit);
        }
        Ok(())
    }
}

/// A parameter that has no meaning. Nothing has been built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PftError {
    /// More bits than a register has.
    #[error("a shift by {0} bits; it must be at most 31")]
    Shift(u8),
    /// A random number of no bits, or of more than there are.
    #[error("a random number of {0} bits; it must have 1 to 32")]
    RandomBits(u8),
    /// A fixed threshold would change the state in every cycle.
    #[error("left below {escape} used credits but entered only above {enter}")]
    EscapeAboveEnter {
        /// te.
        enter: u32,
        /// ts.
        escape: u32,
    },
    /// A count that no window reaches.
    #[error("{} cycles in a window of {}; it must be at least 1 and no more than the window", .0.count, .0.window)]
    Spell(Spell),
    /// A clock that stands still.
    #[error("a flit takes no time on the link")]
    NoFlitTime,
    /// A credit for nothing.
    #[error("credit size is 0")]
    NoCredit,
}
