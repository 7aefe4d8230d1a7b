//! Virtual-lane arbitration: two weighted round-robin tables and the Limit of High Priority (IBA 7.6.9).

use silvan_core::Vl;

use silvan_model::VlArbitration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VlTables {
    high: Vec<Entry>,
    low: Vec<Entry>,
    /// Bytes of high priority before low priority may send; `None` for no limit.
    limit: Option<i64>,
    high_lanes: u16,
    low_lanes: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    vl: u8,
    weight: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct VlState {
    high: Pointer,
    low: Pointer,
    budget: i64,
    pub table: u16,
    last: u8,
}

impl VlState {
    pub fn words(&self) -> [u64; 4] {
        let Self {
            high,
            low,
            budget,
            table: _,
            last,
        } = *self;
        let entries = u64::from(high.entry) << 16 | u64::from(low.entry) << 8 | u64::from(last);
        [high.left as u64, low.left as u64, budget as u64, entries]
    }

    #[inline(always)]
    pub fn probable(&self, waiting: u16) -> usize {
        match waiting >> self.last & 1 {
            1 => usize::from(self.last),
            _ => (waiting.trailing_zeros() & 15) as usize,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Pointer {
    entry: u8,
    left: i64,
}

impl VlTables {
    /// Two empty tables give every data VL the same weight at low priority.
    pub fn new(config: &VlArbitration, data_vls: u8) -> Self {
        let entries = |table: &[(Vl, u8)]| {
            table
                .iter()
                .filter(|(_, weight)| *weight > 0)
                .map(|&(vl, weight)| Entry {
                    vl: vl.as_u8(),
                    weight: i64::from(weight) * 64,
                })
                .collect::<Vec<_>>()
        };
        let high = entries(&config.high);
        let mut low = entries(&config.low);
        if high.is_empty() && low.is_empty() {
            low = (0..data_vls)
                .map(|vl| Entry {
                    vl,
                    weight: 255 * 64,
                })
                .collect();
        }
        let lanes = |table: &[Entry]| table.iter().fold(0, |mask, entry| mask | 1 << entry.vl);
        Self {
            high_lanes: lanes(&high),
            low_lanes: lanes(&low),
            limit: match config.limit_high {
                255 => None,
                0 => Some(1),
                units => Some(i64::from(units) * 4096),
            },
            high,
            low,
        }
    }

    pub fn start(&self, table: u16) -> VlState {
        let pointer = |table: &[Entry]| Pointer {
            entry: 0,
            left: table.first().map_or(0, |entry| entry.weight),
        };
        VlState {
            high: pointer(&self.high),
            low: pointer(&self.low),
            budget: self.limit.unwrap_or(0),
            table,
            last: 0,
        }
    }

    /// Chooses a lane of `ready` (one bit each) without charging; `None` if no ready lane is in a table.
    pub fn choose(&self, state: &mut VlState, ready: u16) -> Option<Choice> {
        let high = ready & self.high_lanes != 0;
        let low = ready & self.low_lanes != 0;
        let high_first = high && (self.limit.is_none() || state.budget > 0 || !low);
        if high_first && state.budget <= 0 {
            // Low priority has nothing to send: the budget starts again.
            state.budget = self.limit.unwrap_or(0);
        }
        let (table, pointer) = if high_first {
            (&self.high, &mut state.high)
        } else if low {
            (&self.low, &mut state.low)
        } else {
            return None;
        };
        // The entry stays while its lane is ready and has weight left. One more step than entries, to return to the
        // first.
        for _ in 0..=table.len() {
            let entry = table[usize::from(pointer.entry)];
            if pointer.left > 0 && ready & (1 << entry.vl) != 0 {
                return Some(Choice {
                    vl: entry.vl,
                    high: high_first,
                });
            }
            let next = usize::from(pointer.entry) + 1;
            pointer.entry = if next < table.len() { next as u8 } else { 0 };
            pointer.left = table[usize::from(pointer.entry)].weight;
        }
        None
    }

    pub fn charge(&self, state: &mut VlState, choice: Choice, wire_bytes: u16) {
        let bytes = i64::from(wire_bytes.div_ceil(64)) * 64;
        state.last = choice.vl;
        if choice.high {
            state.high.left -= bytes;
            state.budget -= bytes;
        } else {
            state.low.left -= bytes;
            state.budget = self.limit.unwrap_or(0);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub vl: u8,
    pub high: bool,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn vl(number: u8) -> Vl {
        Vl::try_new(number).unwrap()
    }

    /// Sends `packets` packets of 1024 bytes with all of `ready` always ready; counts per lane.
    fn shares(tables: &VlTables, ready: u16, packets: usize) -> [usize; 4] {
        let mut state = tables.start(0);
        let mut counts = [0; 4];
        for _ in 0..packets {
            let choice = tables.choose(&mut state, ready).unwrap();
            tables.charge(&mut state, choice, 1024);
            counts[usize::from(choice.vl)] += 1;
        }
        counts
    }

    #[test]
    fn weights_divide_the_link() {
        let tables = VlTables::new(
            &VlArbitration {
                high: vec![],
                low: vec![(vl(0), 16), (vl(1), 48)],
                limit_high: 0,
            },
            2,
        );
        // 16 * 64 bytes are one packet per visit, 48 * 64 bytes are three.
        assert_eq!(shares(&tables, 0b11, 400), [100, 300, 0, 0]);
        assert_eq!(shares(&tables, 0b01, 10), [10, 0, 0, 0]);
    }

    #[test]
    fn the_limit_of_high_priority_lets_low_through() {
        let table = |limit_high| {
            VlTables::new(
                &VlArbitration {
                    high: vec![(vl(1), 255)],
                    low: vec![(vl(0), 255)],
                    limit_high,
                },
                2,
            )
        };
        // Limit 0: packet by packet alternately. Limit 1: 4096 bytes are four packets, then one low.
        assert_eq!(shares(&table(0), 0b11, 100), [50, 50, 0, 0]);
        assert_eq!(shares(&table(1), 0b11, 100), [20, 80, 0, 0]);
        assert_eq!(shares(&table(255), 0b11, 100), [0, 100, 0, 0]);
    }

    #[test]
    fn lanes_without_an_entry_are_never_chosen() {
        let tables = VlTables::new(
            &VlArbitration {
                high: vec![],
                low: vec![(vl(0), 1)],
                limit_high: 0,
            },
            2,
        );
        assert_eq!(tables.choose(&mut tables.start(0), 0b10), None);
    }
}
