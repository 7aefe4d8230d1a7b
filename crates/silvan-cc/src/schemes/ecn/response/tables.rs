use super::ResponseFunction;
use crate::schemes::ecn::EcnError;

/// Number of discrete rates: inter-packet delays of 0 to 255 packet times.
pub const RATES: usize = 256;

/// Step of a rate without marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Increase {
    /// Acknowledged packets of MTU size until the step.
    pub packets: u16,
    /// Inter-packet delay after it.
    pub next: u8,
}

/// The functions as tables over the inter-packet delay ipd, for the rates Rmax/(1 + ipd) (santos2003, sections V-D and
/// VI-B.1).
///
/// A step takes the highest discrete rate below the continuous one, or several acknowledgements (LIPD at ipd i: 256/(1
/// + i)); a mark starts the count again. The paper does not state its rounding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTables {
    increase: Box<[Increase; RATES]>,
    decrease: Box<[u8; RATES]>,
}

/// More packets than a step of the paper's functions needs: AIMD with m = 2 from Rmax/2 to Rmax needs about 16,000.
const MOST_PACKETS: u16 = u16::MAX;

/// Rounding errors of a rate's inverse, in packet times.
const TINY: f64 = 1e-9;

impl RateTables {
    /// Computes the tables of a response function whose smallest rate is not below Rmax/256.
    pub fn compute(function: &impl ResponseFunction) -> Self {
        let mut increase = [Increase {
            packets: MOST_PACKETS,
            next: 0,
        }; RATES];
        let mut decrease = [0; RATES];
        for ipd in 0..=u8::MAX {
            let index = usize::from(ipd);
            increase[index] = increase_at(function, ipd);
            let lowered = delay_of(function.decrease(rate_of(ipd)));
            decrease[index] = (lowered - TINY).ceil().clamp(f64::from(ipd), 255.0) as u8;
        }
        Self {
            increase: Box::new(increase),
            decrease: Box::new(decrease),
        }
    }

    /// Given tables; [`EcnError::TableLength`] unless 256 entries, [`EcnError::TableEntry`] for an increase that lowers
    /// or takes no packet, or a decrease that raises.
    pub fn from_entries(increase: &[Increase], decrease: &[u8]) -> Result<Self, EcnError> {
        let entries = <[Increase; RATES]>::try_from(increase);
        let increase = entries.map_err(|_| EcnError::TableLength {
            table: "increase",
            found: increase.len(),
        })?;
        let entries = <[u8; RATES]>::try_from(decrease);
        let decrease = entries.map_err(|_| EcnError::TableLength {
            table: "decrease",
            found: decrease.len(),
        })?;
        for (ipd, (up, &down)) in (0..=u8::MAX).zip(increase.iter().zip(&decrease)) {
            let wrong = |table, next, fault| {
                Err(EcnError::TableEntry {
                    table,
                    ipd,
                    next,
                    fault,
                })
            };
            if up.next > ipd {
                return wrong("increase", up.next, "longer");
            }
            if up.packets == 0 {
                return wrong("increase", up.next, "reached after no packet at all");
            }
            if down < ipd {
                return wrong("decrease", down, "shorter");
            }
        }
        Ok(Self {
            increase: Box::new(increase),
            decrease: Box::new(decrease),
        })
    }

    /// Returns the step of this inter-packet delay without marks.
    #[inline]
    pub fn increase(&self, ipd: u8) -> Increase {
        self.increase[usize::from(ipd)]
    }

    /// Returns the inter-packet delay after a mark.
    #[inline]
    pub fn decrease(&self, ipd: u8) -> u8 {
        self.decrease[usize::from(ipd)]
    }
}

fn rate_of(ipd: u8) -> f64 {
    1.0 / (1.0 + f64::from(ipd))
}

fn delay_of(rate: f64) -> f64 {
    1.0 / rate - 1.0
}

fn increase_at(function: &impl ResponseFunction, ipd: u8) -> Increase {
    let Some(faster) = ipd.checked_sub(1) else {
        return Increase {
            packets: 1,
            next: 0,
        };
    };
    let start = rate_of(ipd);
    let target = rate_of(faster);
    let first = function.increase(start);
    if delay_of(first) <= f64::from(faster) + TINY {
        let next = (delay_of(first) - TINY)
            .ceil()
            .clamp(0.0, f64::from(faster)) as u8;
        return Increase { packets: 1, next };
    }
    let (mut rate, mut time) = (start, 0.0);
    while time * start < f64::from(MOST_PACKETS) {
        let raised = function.increase(rate);
        if raised <= rate {
            break;
        }
        if raised >= target {
            time += (target - rate) / (raised - rate) / rate;
            return Increase {
                packets: (time * start).round().clamp(1.0, f64::from(MOST_PACKETS)) as u16,
                next: faster,
            };
        }
        time += 1.0 / rate;
        rate = raised;
    }
    Increase {
        packets: MOST_PACKETS,
        next: ipd,
    }
}
