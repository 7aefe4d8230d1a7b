use super::error::ParameterError;

/// A threshold weight (gran2012, section II.1; annex A10, Threshold and CS_Threshold): 0 is off, 15 reacts soonest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThresholdWeight(u8);

impl ThresholdWeight {
    /// No threshold.
    pub const OFF: Self = Self(0);
    /// The lowest threshold.
    pub const MAX: Self = Self(15);

    /// The weight of this value. Errors: [`ParameterError::OutOfRange`] above 15.
    pub const fn try_new(weight: u8) -> Result<Self, ParameterError> {
        if weight <= Self::MAX.0 {
            Ok(Self(weight))
        } else {
            Err(ParameterError::OutOfRange {
                parameter: "Threshold",
                value: weight as u64,
                min: 0,
                max: Self::MAX.0 as u64,
            })
        }
    }

    /// The value.
    pub const fn as_u8(self) -> u8 {
        self.0
    }
}

/// Queued bytes of each weight: "uniformly decreasing" by the specification, values by the switch's designer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThresholdMap {
    /// Equal steps of `(highest_bytes - lowest_bytes) / 14` from weight 1 down to weight 15.
    Linear {
        /// Bytes at weight 15.
        lowest_bytes: u32,
        /// Bytes at weight 1.
        highest_bytes: u32,
    },
    /// Any values: the bytes of weight `w` at position `w - 1`.
    Table([u32; 15]),
}

/// A threshold that no queue reaches.
pub(super) const NEVER: u32 = u32::MAX;

impl ThresholdMap {
    /// The bytes of this weight, `None` for weight 0.
    pub fn bytes(&self, weight: ThresholdWeight) -> Option<u32> {
        let steps = weight.0.checked_sub(1)?;
        Some(match self {
            Self::Linear {
                lowest_bytes,
                highest_bytes,
            } => {
                let range = u64::from(highest_bytes.saturating_sub(*lowest_bytes));
                highest_bytes - (range * u64::from(steps) / 14) as u32
            }
            Self::Table(bytes) => bytes[usize::from(steps)],
        })
    }

    /// Checks positive, falling steps: [`ParameterError::ThresholdZero`], [`ParameterError::ThresholdsIncrease`].
    pub fn validate(&self) -> Result<(), ParameterError> {
        if let Self::Linear {
            lowest_bytes,
            highest_bytes,
        } = *self
        {
            if lowest_bytes > highest_bytes {
                return Err(ParameterError::ThresholdsIncrease {
                    weight: ThresholdWeight::MAX.0,
                    bytes: lowest_bytes,
                });
            }
        }
        let mut above = u32::MAX;
        for weight in 1..=ThresholdWeight::MAX.0 {
            let bytes = self.bytes(ThresholdWeight(weight)).unwrap_or(NEVER);
            if bytes == 0 {
                return Err(ParameterError::ThresholdZero { weight });
            }
            if bytes > above {
                return Err(ParameterError::ThresholdsIncrease { weight, bytes });
            }
            above = bytes;
        }
        Ok(())
    }

    pub(super) fn limit(&self, weight: ThresholdWeight) -> u32 {
        self.bytes(weight).unwrap_or(NEVER)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use super::*;

    fn bytes(map: &ThresholdMap, weight: u8) -> Option<u32> {
        map.bytes(ThresholdWeight::try_new(weight).unwrap())
    }

    /// gran2012, section II.1: 0 marks nothing, 1 is high, 15 low, equal steps between: here
    /// 15 - w packets of 1000 bytes, and 1.
    #[test]
    fn linear_decreases_uniformly() {
        let map = ThresholdMap::Linear {
            lowest_bytes: 1_000,
            highest_bytes: 15_000,
        };
        assert_eq!(bytes(&map, 0), None);
        for weight in 1u8..=15 {
            assert_eq!(bytes(&map, weight), Some((16 - u32::from(weight)) * 1_000));
        }
        map.validate().unwrap();
    }

    #[test]
    fn linear_hits_both_ends_when_steps_do_not_divide() {
        let map = ThresholdMap::Linear {
            lowest_bytes: 6_222,
            highest_bytes: u32::MAX - 1,
        };
        assert_eq!(bytes(&map, 1), Some(u32::MAX - 1));
        assert_eq!(bytes(&map, 15), Some(6_222));
        map.validate().unwrap();
    }

    #[test]
    fn tables_are_checked() {
        let mut values: [u32; 15] = std::array::from_fn(|i| 1_500 - 100 * i as u32);
        let map = ThresholdMap::Table(values);
        map.validate().unwrap();
        assert_eq!(bytes(&map, 15), Some(100));

        values[14] = 0;
        assert_eq!(
            ThresholdMap::Table(values)
                .validate()
                .unwrap_err()
                .to_string(),
            "threshold weight 15 is 0 bytes, write at least 1"
        );
        values[14] = 201;
        assert_eq!(
            ThresholdMap::Table(values)
                .validate()
                .unwrap_err()
                .to_string(),
            "threshold weight 15 is 201 bytes, more than weight 14"
        );
        let upside_down = ThresholdMap::Linear {
            lowest_bytes: 2,
            highest_bytes: 1,
        };
        assert!(upside_down.validate().is_err());
    }

    #[test]
    fn weights_end_at_15() {
        assert_eq!(
            ThresholdWeight::try_new(16).unwrap_err().to_string(),
            "Threshold is 16, it must be 0 to 15"
        );
    }
}
