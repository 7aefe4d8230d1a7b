use silvan_core::{HostId, Span, Time};

use crate::traffic::rng::{Purpose, distinct, stream};

/// One hotspot per subset of contributors, in slots of one lifetime. Hotspots are a function of the placement seed and
/// the slot's number.
#[derive(Clone, Debug)]
pub(crate) struct HotspotTable {
    first: Vec<u32>,
    current: Vec<u32>,
    slot_end: Time,
    lifetime: Option<Span>,
    hosts: usize,
    seed: u64,
}

impl HotspotTable {
    pub(crate) fn random(
        count: usize,
        lifetime: Option<Span>,
        hosts: usize,
        placement_seed: u64,
    ) -> Self {
        let first = draw(placement_seed, 0, count, hosts);
        Self::given(first, lifetime, hosts, placement_seed)
    }

    pub(crate) fn given(
        first: Vec<u32>,
        lifetime: Option<Span>,
        hosts: usize,
        placement_seed: u64,
    ) -> Self {
        Self {
            current: first.clone(),
            first,
            slot_end: lifetime.map_or(Time::MAX, |span| Time::ZERO + span),
            lifetime,
            hosts,
            seed: placement_seed,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.first.len()
    }

    pub(crate) fn at(&self, time: Time) -> Vec<u32> {
        match self.slot(time) {
            0 => self.first.clone(),
            slot => draw(self.seed, slot, self.count(), self.hosts),
        }
    }

    pub(crate) fn next_move(&self, now: Time) -> Option<Time> {
        let lifetime = self.lifetime?;
        let slot = self.slot(now).checked_add(1)?;
        Some(Time::ZERO.saturating_add(lifetime.checked_mul(slot)?))
    }

    /// Instants must not decrease.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time) {
        if now >= self.slot_end {
            self.current = self.at(now);
            self.slot_end = self.next_move(now).unwrap_or(Time::MAX);
        }
    }

    #[inline]
    pub(crate) fn target(&self, host: HostId, subset: u32) -> Option<HostId> {
        let subset = subset as usize;
        let own = self.current[subset] as usize;
        if own != host.index() {
            return Some(HostId::new(own));
        }
        let next = self.current[(subset + 1) % self.current.len()] as usize;
        (next != host.index()).then(|| HostId::new(next))
    }

    fn slot(&self, time: Time) -> u64 {
        self.lifetime
            .map_or(0, |lifetime| time.as_ps() / lifetime.as_ps())
    }
}

fn draw(seed: u64, slot: u64, count: usize, hosts: usize) -> Vec<u32> {
    distinct(&mut stream(seed, Purpose::Hotspots, slot), count, hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_slot_agrees_with_the_function_of_time() {
        let lifetime = Span::from_ms(1);
        let mut table = HotspotTable::random(8, Some(lifetime), 648, 5);
        let mut moves = 0;
        let mut before = table.at(Time::ZERO);
        for step in 0..40 {
            let now = Time::ZERO + Span::from_us(250) * step;
            table.advance(now);
            assert_eq!(table.current, table.at(now));
            moves += u32::from(table.current != before);
            before.clone_from(&table.current);
        }
        assert_eq!(moves, 9, "ten slots of four steps each");
    }

    #[test]
    fn next_move_is_strictly_later() {
        let table = HotspotTable::random(2, Some(Span::from_us(10)), 16, 5);
        let ms = Time::ZERO + Span::from_us(10);
        assert_eq!(table.next_move(Time::ZERO), Some(ms));
        assert_eq!(table.next_move(ms), Some(Time::ZERO + Span::from_us(20)));
        let still = HotspotTable::random(2, None, 16, 5);
        assert_eq!(still.next_move(Time::ZERO), None);
    }

    #[test]
    fn nobody_is_its_own_target() {
        let table = HotspotTable::given(vec![3, 5], None, 8, 0);
        assert_eq!(table.target(HostId::new(0), 0), Some(HostId::new(3)));
        assert_eq!(table.target(HostId::new(3), 0), Some(HostId::new(5)));
        assert_eq!(table.target(HostId::new(5), 1), Some(HostId::new(3)));
        let alone = HotspotTable::given(vec![3], None, 8, 0);
        assert_eq!(alone.target(HostId::new(3), 0), None);
    }
}
