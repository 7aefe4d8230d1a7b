use silvan_core::{PortNumber, SwitchId};

/// A grid with one or several cables between all switches of a row.
///
/// Hosts are on ports 1 to h, then come the first row's switches in order, then the second's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullRows {
    /// Switches along each dimension.
    pub sizes: Vec<usize>,
    /// Cables between two switches of a row, by dimension; 1 where there is no entry.
    pub cables: Vec<usize>,
    /// Hosts at each switch.
    pub hosts_per_switch: usize,
}

impl FullRows {
    pub(crate) fn coordinate(&self, switch: SwitchId, dimension: usize) -> usize {
        let stride: usize = self.sizes[..dimension].iter().product();
        switch.index() / stride % self.sizes[dimension]
    }

    pub(super) fn cables_along(&self, dimension: usize) -> usize {
        self.cables.get(dimension).copied().unwrap_or(1)
    }

    pub(crate) fn port_towards(
        &self,
        from: SwitchId,
        to: SwitchId,
        destination: usize,
    ) -> Option<PortNumber> {
        let (mut here, mut there) = (from.index(), to.index());
        let mut before = self.hosts_per_switch;
        for (dimension, size) in self.sizes.iter().enumerate() {
            let cables = self.cables_along(dimension);
            let (at, end) = (here % size, there % size);
            if at != end {
                let row = if end > at { end - 1 } else { end };
                let port = before + row * cables + destination % cables + 1;
                return u8::try_from(port).ok().map(PortNumber::new);
            }
            before += (size - 1) * cables;
            here /= size;
            there /= size;
        }
        None
    }
}
