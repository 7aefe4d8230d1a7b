//! A cumulative distribution given by points. Two points of one size are a step.

use rand_core::RngCore;
use silvan_core::Bytes;

use super::{CdfPoint, LARGEST, SizeUnit};
use crate::traffic::rng::Stream;

/// Points that are no cumulative distribution.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CdfError {
    /// The point at fault, from 0; in a text its line.
    pub place: usize,
    /// The fault.
    pub message: String,
    /// The remedy.
    pub hint: &'static str,
}

const WHOLE: u64 = 1 << 32;

/// Sizes, and probability of at most each in units of 2^-32, up to [`WHOLE`].
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
        let step = (u128::from(high - low) * (2 * part + 1) / width).div_ceil(2) as u64;
        (low + step.min(high - low)).max(1)
    }
}

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
        if bytes < below {
            let message = format!("the size {bytes} is less than the one before, {below}");
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

/// Tolerance of a Homa file's mean, relative to its points.
const MEAN_TOLERANCE: f64 = 0.01;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Steps,
    Packets,
}

impl Form {
    fn unit(self) -> SizeUnit {
        match self {
            Self::Plain | Self::Steps => SizeUnit::Bytes,
            Self::Packets => SizeUnit::Packets,
        }
    }
}

type Line<'a> = (usize, Vec<&'a str>);

fn wrong(place: usize, message: String, hint: &'static str) -> CdfError {
    CdfError {
        place,
        message,
        hint,
    }
}

fn number(word: &str) -> Option<f64> {
    let value = word.trim().parse::<f64>().ok();
    value.filter(|value| value.is_finite())
}

/// Reads sizes in bytes and shares, in per cent, or fractions if the last is 1; `#` starts a comment. Files of Homa and
/// YAPS, too; `unit` is that of the sizes.
pub fn read_cdf(text: &str, unit: Option<SizeUnit>) -> Result<Vec<CdfPoint>, CdfError> {
    let lines = (1..).zip(text.lines()).map(|(line, content)| {
        let content = content.split('#').next().unwrap_or_default();
        let words = content.split([' ', '\t', ',']);
        (line, words.filter(|word| !word.is_empty()).collect())
    });
    let lines: Vec<Line<'_>> = lines
        .filter(|(_, words): &Line<'_>| !words.is_empty())
        .collect();
    let form = match lines.first().map(|(_, words)| words.len()) {
        Some(1) => Form::Steps,
        Some(3) => Form::Packets,
        _ => Form::Plain,
    };
    let unit = unit.unwrap_or(form.unit()).bytes();
    let (head, lines) = lines.split_at(usize::from(form == Form::Steps).min(lines.len()));
    let mut points = Vec::with_capacity(lines.len());
    for line in lines {
        points.push(point(line, form, unit)?);
    }
    if points.last().is_some_and(|point: &CdfPoint| point.1 == 1.0) {
        points.iter_mut().for_each(|point| point.1 *= 100.0);
    }
    let at_line = |error: CdfError| {
        let place = lines.get(error.place).or(lines.last()).or(head.last());
        CdfError {
            place: place.map_or(1, |(line, _)| *line),
            ..error
        }
    };
    if form != Form::Steps {
        return check(&points).map(|()| points).map_err(at_line);
    }
    level(&mut points);
    let points = check(&points).map(|()| steps(&points)).map_err(at_line)?;
    let mean = Cdf::new(&points).map_err(at_line)?.mean();
    let given = head.first().and_then(|(_, words)| number(words[0]));
    match given.is_some_and(|given| (given * unit - mean).abs() <= MEAN_TOLERANCE * mean) {
        true => Ok(points),
        false => {
            let (line, words) = &head[0];
            let message = format!(
                "the first line is {:?}, but the mean of the sizes is {:.2}",
                words[0],
                mean / unit
            );
            let hint =
                "correct it, or leave it out: straight lines are then drawn between the sizes";
            Err(wrong(*line, message, hint))
        }
    }
}

/// Raises decreasing shares: Homa never draws such sizes, which its DCTCP file has.
fn level(points: &mut [CdfPoint]) {
    let mut most: f64 = 0.0;
    for point in points {
        most = most.max(point.1);
        point.1 = most;
    }
}

/// Each size gets its share less the one before, with no flow in between.
fn steps(points: &[CdfPoint]) -> Vec<CdfPoint> {
    let mut steps: Vec<CdfPoint> = Vec::with_capacity(2 * points.len());
    for point in points {
        let before = steps.last().map(|last| CdfPoint(point.0, last.1));
        for next in before.into_iter().chain([*point]) {
            if steps.last() != Some(&next) {
                steps.push(next);
            }
        }
    }
    steps
}

fn point((line, words): &Line<'_>, form: Form, unit: f64) -> Result<CdfPoint, CdfError> {
    let pair = match (form, &words[..]) {
        (Form::Packets, [size, _, share]) | (Form::Plain | Form::Steps, [size, share]) => {
            number(size).zip(number(share))
        }
        _ => None,
    };
    let pair = pair.map(|(size, share)| (size * unit, share));
    let Some((size, share)) = pair.filter(|(size, _)| (0.0..=LARGEST as f64).contains(size)) else {
        let message = format!("{:?} is not a size and a share", words.join(" "));
        let hint = match form {
            Form::Plain => "write a size in bytes and a percentage, e.g. 10000 15",
            Form::Steps => "after the mean, write a size in bytes and a share, e.g. 10000 0.15",
            Form::Packets => "write a size in packets, 1 and a share, e.g. 6 1 0.15",
        };
        return Err(wrong(*line, message, hint));
    };
    Ok(CdfPoint(Bytes::from_bytes(libm::round(size) as u64), share))
}
