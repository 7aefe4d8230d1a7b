//! A cumulative distribution given by points.

use rand_core::RngCore;
use silvan_core::Bytes;

use super::{CdfPoint, LARGEST};
use crate::traffic::rng::Stream;

/// Points that are no cumulative distribution.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CdfError {
    /// The point at fault, from 0; in a text its line.
    pub place: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: &'static str,
}

/// All probability, as the shares of points count it.
const WHOLE: u64 = 1 << 32;

/// Sizes, and the probability of at most each in units of 2^-32, which rises to [`WHOLE`].
#[derive(Clone, Debug)]
pub(crate) struct Cdf {
    points: Vec<(u64, u64)>,
}

impl Cdf {
    pub(super) fn new(points: &[CdfPoint]) -> Result<Self, CdfError> {
        check(points)?;
        let share = |percent: f64| libm::round(percent / 100.0 * WHOLE as f64) as u64;
        let points = points.iter();
        Ok(Self {
            points: points
                .map(|&CdfPoint(bytes, percent)| (bytes.as_u64(), share(percent)))
                .collect(),
        })
    }

    /// What is below the first point is of its size.
    pub(super) fn mean(&self) -> f64 {
        let (first, share) = self.points[0];
        let lines = self.points.windows(2).map(|pair| {
            let ((low, from), (high, to)) = (pair[0], pair[1]);
            (to - from) as f64 * (low + high) as f64 / 2.0
        });
        let sum: f64 = share as f64 * first as f64 + lines.sum::<f64>();
        (sum / WHOLE as f64).max(1.0)
    }

    pub(super) fn draw(&self, stream: &mut Stream) -> u64 {
        let drawn = u64::from(stream.next_u32());
        let above = self.points.partition_point(|&(_, share)| share <= drawn);
        let (high, to) = self.points[above.min(self.points.len() - 1)];
        let Some(&(low, from)) = above.checked_sub(1).and_then(|at| self.points.get(at)) else {
            return high.max(1);
        };
        let (width, part) = (u128::from(to - from), u128::from(drawn - from));
        // To the nearest, so that the mean is that of the lines.
        let step = (u128::from(high - low) * (2 * part + 1) / width).div_ceil(2) as u64;
        (low + step.min(high - low)).max(1)
    }
}

/// Refuses points that fall, or do not end with all flows.
fn check(points: &[CdfPoint]) -> Result<(), CdfError> {
    let fail = |place, message, hint| {
        Err(CdfError {
            place,
            message,
            hint,
        })
    };
    if points.len() < 2 {
        let message = format!("{} points make no distribution", points.len());
        return fail(0, message, "give the sizes of at least two points");
    }
    for (place, &CdfPoint(bytes, percent)) in points.iter().enumerate() {
        if !(0.0..=100.0).contains(&percent) {
            let message = format!("{percent} is not between 0 and 100 percent");
            return fail(place, message, "give the share of flows up to each size");
        }
        if bytes.as_u64() > LARGEST {
            let message = format!("{bytes} is more than {}", Bytes::from_bytes(LARGEST));
            return fail(place, message, "sizes are in bytes");
        }
        let Some(&CdfPoint(below, before)) = place.checked_sub(1).map(|last| &points[last]) else {
            continue;
        };
        if bytes <= below {
            let message = format!("the size {bytes} does not exceed the one before, {below}");
            return fail(place, message, "list the points by rising size");
        }
        if percent < before {
            let message = format!("the distribution falls from {before} to {percent} percent");
            return fail(place, message, "each share includes those of smaller sizes");
        }
    }
    let last = points.len() - 1;
    match points[last].1 {
        100.0 => Ok(()),
        percent => fail(
            last,
            format!("the distribution ends at {percent} percent"),
            "the largest size has 100 percent of the flows up to it",
        ),
    }
}

/// Reads a text with a size in bytes and a share in each line, in percent, or as fractions if the last is 1. What follows a `#` is
/// a comment.
///
/// # Errors
///
/// The first line at fault, from 1.
pub fn read_cdf(text: &str) -> Result<Vec<CdfPoint>, CdfError> {
    let (mut points, mut lines) = (Vec::new(), Vec::new());
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.split('#').next().unwrap_or_default();
        let words: Vec<&str> = content
            .split([' ', '\t', ','])
            .filter(|word| !word.is_empty())
            .collect();
        if words.is_empty() {
            continue;
        }
        let number = |word: &str| {
            word.trim()
                .parse::<f64>()
                .ok()
                .filter(|value| value.is_finite())
        };
        let pair = match words[..] {
            [size, share] => number(size).zip(number(share)),
            _ => None,
        };
        let pair = pair.filter(|(size, _)| (0.0..=LARGEST as f64).contains(size));
        let Some((size, share)) = pair else {
            return Err(CdfError {
                place: line,
                message: format!("{:?} is not a size and a share", content.trim()),
                hint: "write a size in bytes and a percentage, e.g. 10000 15",
            });
        };
        points.push(CdfPoint(Bytes::from_bytes(libm::round(size) as u64), share));
        lines.push(line);
    }
    if points.last().is_some_and(|point| point.1 == 1.0) {
        points.iter_mut().for_each(|point| point.1 *= 100.0);
    }
    match check(&points) {
        Ok(()) => Ok(points),
        Err(error) => Err(CdfError {
            place: lines.get(error.place).copied().unwrap_or(1),
            ..error
        }),
    }
}
