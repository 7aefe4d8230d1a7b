#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Inputs([u64; 4]);

impl Inputs {
    #[inline]
    pub fn insert(&mut self, input: u8) -> bool {
        let (word, bit) = Self::place(input);
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    pub fn remove(&mut self, input: u8) {
        let (word, bit) = Self::place(input);
        self.0[word] &= !bit;
    }

    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |&input| {
            let (word, bit) = Self::place(input);
            self.0[word] & bit != 0
        })
    }

    fn place(input: u8) -> (usize, u64) {
        (usize::from(input / 64), 1 << (input % 64))
    }
}
