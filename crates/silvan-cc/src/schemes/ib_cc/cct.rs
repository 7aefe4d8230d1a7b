//! The Congestion Control Table: a flow's index (CCTI) gives its next packet's delay, relative to the last packet's
//! length (IBA volume 1, annex A10; gran2012, section II.2).

use silvan_core::Span;

use super::error::ParameterError;

/// An entry of the table in a datagram: bits 15 and 14 are the shift, bits 13 to 0 the multiplier.
///
/// The delay is `packet time * multiplier / 2^shift`: steps of 1/8 packet time up to 2047 7/8 at shift 3, whole ones up
/// to 16383 at 0. Linux's hfi1 driver, `set_link_ipg`, shifts first, which rounds to its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct CctEntry(u16);

impl CctEntry {
    /// No delay at all.
    pub const ZERO: Self = Self(0);
    /// The largest shift, 2 bits.
    pub const MAX_SHIFT: u8 = 3;
    /// The largest multiplier, 14 bits.
    pub const MAX_MULTIPLIER: u16 = 0x3fff;

    const MULTIPLIER_BITS: u32 = 14;

    /// The entry of this shift and multiplier; [`ParameterError::OutOfRange`] if one does not fit.
    pub const fn try_new(shift: u8, multiplier: u16) -> Result<Self, ParameterError> {
        if shift > Self::MAX_SHIFT {
            return Err(ParameterError::OutOfRange {
                parameter: "CCT_Shift",
                value: shift as u64,
                min: 0,
                max: Self::MAX_SHIFT as u64,
            });
        }
        if multiplier > Self::MAX_MULTIPLIER {
            return Err(ParameterError::OutOfRange {
                parameter: "CCT_Multiplier",
                value: multiplier as u64,
                min: 0,
                max: Self::MAX_MULTIPLIER as u64,
            });
        }
        Ok(Self((shift as u16) << Self::MULTIPLIER_BITS | multiplier))
    }

    /// The entry with these 16 bits; every value is legal.
    pub const fn from_raw(raw: u16) -> Self {
        Self(raw)
    }

    /// The 16 bits of the entry.
    pub const fn as_raw(self) -> u16 {
        self.0
    }

    /// CCT_Shift, 0 to 3.
    #[inline]
    pub const fn shift(self) -> u8 {
        (self.0 >> Self::MULTIPLIER_BITS) as u8
    }

    /// CCT_Multiplier, 0 to 16383.
    #[inline]
    pub const fn multiplier(self) -> u16 {
        self.0 & Self::MAX_MULTIPLIER
    }

    /// The delay in packet times; exact.
    pub fn packet_times(self) -> f64 {
        f64::from(self.multiplier()) / f64::from(1u16 << self.shift())
    }

    /// The entry nearest to this number of packet times, at the finest sufficient step; `None` if negative, not finite
    /// or above 16383.
    ///
    /// The error is at most 1/16 packet time below 2048, else half a packet time.
    pub fn nearest(packet_times: f64) -> Option<Self> {
        if !(packet_times >= 0.0 && packet_times.is_finite()) {
            return None;
        }
        for shift in (0..=Self::MAX_SHIFT).rev() {
            let multiplier = (packet_times * f64::from(1u16 << shift)).round();
            if multiplier == 0.0 {
                return Some(Self::ZERO);
            }
            if multiplier <= f64::from(Self::MAX_MULTIPLIER) {
                return Self::try_new(shift, multiplier as u16).ok();
            }
        }
        None
    }

    /// The delay behind a packet of `packet_time` on the link, rounded down to a picosecond, at most [`Span::MAX`].
    #[inline]
    pub const fn delay(self, packet_time: Span) -> Span {
        let multiplier = self.multiplier() as u64;
        match packet_time.as_ps().checked_mul(multiplier) {
            Some(product) => Span::from_ps(product >> self.shift()),
            None => {
                let delay = (packet_time.as_ps() as u128 * multiplier as u128) >> self.shift();
                if delay > u64::MAX as u128 {
                    Span::MAX
                } else {
                    Span::from_ps(delay as u64)
                }
            }
        }
    }
}

/// The table and the largest index that may be used of it.
///
/// ```
/// use silvan_cc::schemes::ib_cc::CongestionControlTable;
/// use silvan_core::Span;
///
/// // Each step of the index adds 0.95 packet times, to the nearest 1/8.
/// let table = CongestionControlTable::linear(0.95, 127)?;
/// let packet_time = Span::from_ns(1_024);
/// assert_eq!(table.delay(0, packet_time), Span::ZERO);
/// assert_eq!(table.delay(1, packet_time), packet_time);
/// assert_eq!(table.delay(127, packet_time), Span::from_ps(1_024_000 * 965 / 8));
/// assert!(table.quantisation_error() <= 1.0 / 16.0);
/// # Ok::<(), silvan_cc::schemes::ib_cc::ParameterError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CongestionControlTable {
    entries: Box<[CctEntry]>,
    limit: u16,
    quantisation_error: f64,
}

impl CongestionControlTable {
    /// The most entries of a table: 256 blocks of 64, by the attribute's 8-bit block number.
    pub const MAX_ENTRIES: usize = 16_384;

    /// A table of given entries: [`ParameterError::OutOfRange`] without any or beyond
    /// [`MAX_ENTRIES`](Self::MAX_ENTRIES), [`ParameterError::LimitBeyondTable`], [`ParameterError::FirstEntryDelays`]
    /// unless entry 0 is zero.
    pub fn from_entries(
        entries: impl Into<Box<[CctEntry]>>,
        limit: u16,
    ) -> Result<Self, ParameterError> {
        let table = Self::from_device(entries, limit)?;
        if table.entries[0].multiplier() != 0 {
            return Err(ParameterError::FirstEntryDelays {
                packet_times: table.entries[0].packet_times(),
            });
        }
        Ok(table)
    }

    /// As [`from_entries`](Self::from_entries), but entry 0 may delay, as in a real adapter.
    pub fn from_device(
        entries: impl Into<Box<[CctEntry]>>,
        limit: u16,
    ) -> Result<Self, ParameterError> {
        let entries = entries.into();
        if entries.is_empty() || entries.len() > Self::MAX_ENTRIES {
            return Err(ParameterError::OutOfRange {
                parameter: "number of congestion control table entries",
                value: entries.len() as u64,
                min: 1,
                max: Self::MAX_ENTRIES as u64,
            });
        }
        if usize::from(limit) >= entries.len() {
            return Err(ParameterError::LimitBeyondTable {
                limit,
                entries: entries.len(),
            });
        }
        Ok(Self {
            entries,
            limit,
            quantisation_error: 0.0,
        })
    }

    /// `limit + 1` entries that delay by `slope * i` packet times; [`ParameterError::DelayNotRepresentable`] or
    /// [`ParameterError::OutOfRange`].
    pub fn linear(slope: f64, limit: u16) -> Result<Self, ParameterError> {
        Self::quantised((0..=limit).map(|i| slope * f64::from(i)), limit)
    }

    /// `limit + 1` entries: entry 1 delays by `first` packet times, each further one by `ratio` times more. Errors as
    /// [`linear`](Self::linear).
    pub fn geometric(first: f64, ratio: f64, limit: u16) -> Result<Self, ParameterError> {
        // Products one by one: IEEE 754 fixes their value on every machine, unlike that of `powf`.
        let delays = std::iter::successors(Some(first), |delay| Some(delay * ratio));
        let delays = std::iter::once(0.0).chain(delays);
        Self::quantised(delays.take(usize::from(limit) + 1), limit)
    }

    fn quantised(delays: impl Iterator<Item = f64>, limit: u16) -> Result<Self, ParameterError> {
        let mut entries = Vec::new();
        let mut error: f64 = 0.0;
        for (index, packet_times) in delays.enumerate() {
            let entry =
                CctEntry::nearest(packet_times).ok_or(ParameterError::DelayNotRepresentable {
                    index,
                    packet_times,
                })?;
            error = error.max((entry.packet_times() - packet_times).abs());
            entries.push(entry);
        }
        let mut table = Self::from_entries(entries, limit)?;
        table.quantisation_error = error;
        Ok(table)
    }

    /// CCTI_Limit, the largest index in use.
    #[inline]
    pub const fn limit(&self) -> u16 {
        self.limit
    }

    /// All entries, those behind the limit included.
    pub fn entries(&self) -> &[CctEntry] {
        &self.entries
    }

    /// The largest rounding error of a constructor's delays in packet times; 0 for given entries.
    pub const fn quantisation_error(&self) -> f64 {
        self.quantisation_error
    }

    /// The entry at this index. Panics if there is none; indices up to [`limit`](Self::limit) always exist.
    #[inline]
    pub fn entry(&self, ccti: u16) -> CctEntry {
        self.entries[usize::from(ccti)]
    }

    /// A flow's delay at `ccti` behind a packet of `packet_time`; panics as [`entry`](Self::entry).
    #[inline]
    pub fn delay(&self, ccti: u16, packet_time: Span) -> Span {
        self.entry(ccti).delay(packet_time)
    }
}

#[cfg(test)]
mod tests;
