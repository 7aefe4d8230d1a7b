use silvan_core::{Credits, Vl};

use crate::params::VlArbitration;

const BLOCKS_PER_LIMIT_UNIT: u64 = 4096 / Credits::BLOCK_BYTES;
const LIMIT_UNBOUNDED: u8 = 255;

/// The two tables and the Limit of High Priority; only grants change the state.
#[derive(Debug)]
pub(crate) struct VlArbiter {
    high: WeightedTable,
    low: WeightedTable,
    limit: u8,
    /// Blocks that the high-priority table may still start sending before a turn of the low one.
    high_left: u64,
}

impl VlArbiter {
    pub(crate) fn new(tables: &VlArbitration) -> Self {
        let mut arbiter = Self {
            high: WeightedTable::new(&tables.high),
            low: WeightedTable::new(&tables.low),
            limit: tables.limit_high,
            high_left: 0,
        };
        arbiter.reset_limit();
        arbiter
    }

    pub(crate) fn choose(&mut self, available: &[Option<Credits>]) -> Option<Vl> {
        let high = self.high.find(available);
        let low = self.low.find(available);
        match (high, low) {
            (Some(entry), low) if self.high_left > 0 || low.is_none() => {
                if self.high_left == 0 {
                    self.reset_limit();
                }
                let (vl, size) = self.high.take(entry, available);
                if self.limit != LIMIT_UNBOUNDED {
                    self.high_left = self.high_left.saturating_sub(u64::from(size.as_u32()));
                }
                Some(vl)
            }
            (_, Some(entry)) => {
                self.reset_limit();
                Some(self.low.take(entry, available).0)
            }
            (_, None) => None,
        }
    }

    /// 0 passes one packet of any size, like one block.
    fn reset_limit(&mut self) {
        self.high_left = (u64::from(self.limit) * BLOCKS_PER_LIMIT_UNIT).max(1);
    }
}

#[derive(Debug)]
struct WeightedTable {
    entries: Vec<(Vl, u8)>,
    current: usize,
    left: u32,
}

impl WeightedTable {
    fn new(entries: &[(Vl, u8)]) -> Self {
        Self {
            entries: entries.to_vec(),
            current: 0,
            left: entries.first().map_or(0, |&(_, weight)| u32::from(weight)),
        }
    }

    fn find(&self, available: &[Option<Credits>]) -> Option<usize> {
        let serves = |index: usize| {
            let (vl, weight) = self.entries[index];
            weight > 0 && available[vl.index()].is_some()
        };
        let count = self.entries.len();
        if count == 0 {
            return None;
        }
        if self.left > 0 && serves(self.current) {
            return Some(self.current);
        }
        (1..=count)
            .map(|step| (self.current + step) % count)
            .find(|&index| serves(index))
    }

    fn take(&mut self, entry: usize, available: &[Option<Credits>]) -> (Vl, Credits) {
        let (vl, weight) = self.entries[entry];
        let size =
            available[vl.index()].expect("an entry is found only when its lane is available");
        if entry != self.current || self.left == 0 {
            self.current = entry;
            self.left = u32::from(weight);
        }
        self.left = self.left.saturating_sub(size.as_u32());
        (vl, size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queries `rounds` times with every lane available, each with packets of the given blocks.
    fn sequence(tables: &VlArbitration, blocks: &[u32], rounds: usize) -> Vec<usize> {
        let mut arbiter = VlArbiter::new(tables);
        let available: Vec<_> = blocks.iter().map(|&b| Some(Credits::new(b))).collect();
        (0..rounds)
            .map(|_| arbiter.choose(&available).expect("available").index())
            .collect()
    }

    fn vl(index: u8) -> Vl {
        Vl::try_from(index).expect("data VL")
    }

    #[test]
    fn weights_count_blocks_and_the_last_packet_may_exceed_them() {
        // Weight 3 with packets of 2 blocks: 2 left 1, then one more; weight 2: exactly one.
        let tables = VlArbitration {
            high: vec![],
            low: vec![(vl(0), 3), (vl(1), 2)],
            limit_high: 0,
        };
        assert_eq!(sequence(&tables, &[2, 2], 6), [0, 0, 1, 0, 0, 1]);
    }

    #[test]
    fn limit_of_zero_alternates_one_high_packet_with_one_low() {
        let tables = VlArbitration {
            high: vec![(vl(1), 255)],
            low: vec![(vl(0), 255)],
            limit_high: 0,
        };
        assert_eq!(sequence(&tables, &[9, 9], 4), [1, 0, 1, 0]);
    }

    #[test]
    fn limit_counts_4096_bytes() {
        // 2 units = 128 blocks = four packets of 33 blocks, the last one over the limit.
        let tables = VlArbitration {
            high: vec![(vl(1), 1)],
            low: vec![(vl(0), 1)],
            limit_high: 2,
        };
        assert_eq!(
            sequence(&tables, &[33, 33], 10),
            [1, 1, 1, 1, 0, 1, 1, 1, 1, 0]
        );
    }

    #[test]
    fn unbounded_limit_starves_the_low_table_only_while_high_is_available() {
        let tables = VlArbitration {
            high: vec![(vl(1), 1)],
            low: vec![(vl(0), 1)],
            limit_high: 255,
        };
        let mut arbiter = VlArbiter::new(&tables);
        let packet = Some(Credits::new(33));
        for _ in 0..100 {
            assert_eq!(arbiter.choose(&[packet, packet]), Some(vl(1)));
        }
        assert_eq!(arbiter.choose(&[packet, None]), Some(vl(0)));
    }

    #[test]
    fn unavailable_lane_loses_its_turn_and_the_rest_of_its_weight() {
        let tables = VlArbitration::equal(2, 4);
        let mut arbiter = VlArbiter::new(&tables);
        let packet = Some(Credits::new(1));
        assert_eq!(arbiter.choose(&[packet, packet]), Some(vl(0)));
        assert_eq!(arbiter.choose(&[None, packet]), Some(vl(1)));
        // Lane 1 keeps the turn for the other three blocks of its weight.
        for _ in 0..3 {
            assert_eq!(arbiter.choose(&[packet, packet]), Some(vl(1)));
        }
        assert_eq!(arbiter.choose(&[packet, packet]), Some(vl(0)));
    }

    #[test]
    fn nothing_available_changes_nothing() {
        let tables = VlArbitration::equal(2, 1);
        let mut arbiter = VlArbiter::new(&tables);
        assert_eq!(arbiter.choose(&[None, None]), None);
        let packet = Some(Credits::new(1));
        assert_eq!(arbiter.choose(&[packet, packet]), Some(vl(0)));
    }
}
