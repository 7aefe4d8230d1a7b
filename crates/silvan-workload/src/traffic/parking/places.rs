const BITS: usize = u64::BITS as usize;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places(Vec<u64>);

impl Places {
    pub fn contains(&self, place: usize) -> bool {
        let word = self.0.get(place / BITS).copied().unwrap_or(0);
        word >> (place % BITS) & 1 != 0
    }

    pub fn insert(&mut self, place: usize) {
        let word = place / BITS;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (place % BITS);
    }

    pub fn remove(&mut self, place: usize) {
        if let Some(word) = self.0.get_mut(place / BITS) {
            *word &= !(1 << (place % BITS));
        }
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn fill(&mut self, end: usize) {
        self.0.clear();
        self.0.resize(end / BITS, u64::MAX);
        if end % BITS > 0 {
            self.0.push((1 << (end % BITS)) - 1);
        }
    }

    pub fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    pub fn transfer(&mut self, to: &mut Self, chosen: &Self, end: usize) {
        if to.0.len() < self.0.len() {
            to.0.resize(self.0.len(), 0);
        }
        for (number, (word, &chosen)) in self.0.iter_mut().zip(&chosen.0).enumerate() {
            let moved = *word & chosen & before(end, number);
            *word &= !moved;
            to.0[number] |= moved;
        }
    }

    pub fn next(&self, from: usize) -> Option<usize> {
        self.first(from, |_| 0)
    }

    pub fn next_outside(&self, other: &Self, from: usize) -> Option<usize> {
        self.first(from, |number| other.0.get(number).copied().unwrap_or(0))
    }

    #[inline]
    fn first(&self, from: usize, without: impl Fn(usize) -> u64) -> Option<usize> {
        let mut least = from;
        for number in from / BITS..self.0.len() {
            let word = self.0[number] & !before(least, number) & !without(number);
            if word != 0 {
                return Some(number * BITS + word.trailing_zeros() as usize);
            }
            least = 0;
        }
        None
    }

    pub fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, &other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    pub fn close(&mut self, place: usize) {
        let number = place / BITS;
        for at in number..self.0.len() {
            let word = self.0[at];
            let kept = word & before(place, at);
            let moved = word >> 1 & !before(place, at);
            let next = self.0.get(at + 1).copied().unwrap_or(0);
            self.0[at] = kept | moved | next << (BITS - 1);
        }
    }
}

#[inline]
fn before(end: usize, number: usize) -> u64 {
    match end.saturating_sub(number * BITS) {
        within if within < BITS => (1 << within) - 1,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(places: &[bool]) -> Places {
        let mut set = Places::default();
        for (place, _) in places.iter().enumerate().filter(|(_, is_in)| **is_in) {
            set.insert(place);
        }
        set
    }

    fn places(set: &Places, end: usize) -> Vec<bool> {
        (0..end).map(|place| set.contains(place)).collect()
    }

    proptest! {
        #[test]
        fn a_set_is_a_list_of_booleans(
            (a, b) in (1_usize..200).prop_flat_map(|end| (
                proptest::collection::vec(any::<bool>(), end),
                proptest::collection::vec(any::<bool>(), end),
            )),
            at in any::<prop::sample::Index>(),
        ) {
            let (end, place) = (a.len(), at.index(a.len()));
            let (one, other) = (of(&a), of(&b));
            let both: Vec<bool> = a.iter().zip(&b).map(|(a, b)| *a && *b).collect();
            prop_assert_eq!(one.meets(&other), both.contains(&true));
            let outside = (place..end).find(|&place| a[place] && !b[place]);
            prop_assert_eq!(one.next_outside(&other, place), outside);
            prop_assert_eq!(one.next(place), (place..end).find(|&place| a[place]));

            let mut closed = one.clone();
            closed.close(place);
            let mut left = a.clone();
            left.remove(place);
            prop_assert_eq!(places(&closed, end - 1), left);
            prop_assert!(!closed.contains(end - 1));

            let (mut from, mut to) = (one.clone(), Places::default());
            from.transfer(&mut to, &other, place);
            let moved: Vec<bool> = (0..end).map(|at| at < place && both[at]).collect();
            prop_assert_eq!(places(&to, end), moved.clone());
            let stayed: Vec<bool> = a.iter().zip(&moved).map(|(a, moved)| *a && !moved).collect();
            prop_assert_eq!(places(&from, end), stayed);

            let mut sum = one.clone();
            sum.add(&other);
            let either: Vec<bool> = a.iter().zip(&b).map(|(a, b)| *a || *b).collect();
            prop_assert_eq!(places(&sum, end), either);
            let mut filled = Places::default();
            filled.fill(place);
            let first: Vec<bool> = (0..end).map(|at| at < place).collect();
            prop_assert_eq!(places(&filled, end), first);
        }
    }
}
