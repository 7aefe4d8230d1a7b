use silvan_core::{Guid, Lid};
use winnow::Parser;
use winnow::ascii::{dec_uint, hex_digit1, space0};
use winnow::combinator::{delimited, preceded};
use winnow::error::ContextError;
use winnow::token::take_till;

use crate::import::ImportWarning;
use crate::{Speed, Width};

pub(crate) type Piece<T> = winnow::Result<T, ContextError>;

/// Numbered from 1, without trailing `\r` and spaces.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_end()))
}

/// A message of stderr in the file: `src/query_smp.c:195; ...` of libibnetdisc, `ibwarn: [123] ...` and `ibpanic: [123]
/// ...` of libibmad.
pub(crate) fn is_message(line: &str) -> bool {
    let line = line.trim_start();
    let of_mad = ["ibwarn: [", "ibpanic: [", "ibdebug: ["];
    let of_source = || {
        let (file, rest) = line.split_once(':')?;
        let (number, _) = rest.split_once([';', ':'])?;
        let is_path = file.ends_with(".c") && !file.contains([' ', '"']);
        Some(is_path && number.parse::<u32>().is_ok())
    };
    of_mad.iter().any(|start| line.starts_with(start)) || of_source() == Some(true)
}

pub(crate) fn known_rates() -> String {
    let speeds: Vec<&str> = Speed::ALL.iter().map(|speed| speed.name()).collect();
    let widths: Vec<&str> = Width::ALL.iter().map(|width| width.name()).collect();
    format!(
        "known speeds are {}, widths {}",
        speeds.join(", "),
        widths.join(", ")
    )
}

/// `"text"`, without a quote inside.
pub(crate) fn quoted<'s>(input: &mut &'s str) -> Piece<&'s str> {
    delimited('"', take_till(0.., '"'), '"').parse_next(input)
}

/// `[7]`.
pub(crate) fn bracketed_number(input: &mut &str) -> Piece<u8> {
    delimited('[', preceded(space0, dec_uint::<_, u8, _>), (space0, ']')).parse_next(input)
}

/// `(2c90200423e70)`.
pub(crate) fn bracketed_guid(input: &mut &str) -> Piece<Guid> {
    delimited('(', hex_guid, ')').parse_next(input)
}

/// Without `0x`.
pub(crate) fn hex_guid(input: &mut &str) -> Piece<Guid> {
    hex_digit1
        .try_map(|digits| u64::from_str_radix(digits, 16))
        .map(Guid::new)
        .parse_next(input)
}

/// With `0x`.
pub(crate) fn prefixed_guid(input: &mut &str) -> Piece<Guid> {
    preceded("0x", hex_guid).parse_next(input)
}

#[derive(Debug, Default)]
pub(crate) struct InvalidLids {
    first: Option<(usize, String)>,
    count: usize,
}

impl InvalidLids {
    /// Other invalid values than 0 are counted.
    pub fn unicast(&mut self, word: &str, line: usize) -> Option<Lid> {
        let lid = word.parse().ok().map(Lid::new);
        if let Some(lid) = lid.filter(|lid| lid.is_unicast()) {
            return Some(lid);
        }
        if lid != Some(Lid::new(0)) {
            self.count += 1;
            self.first.get_or_insert_with(|| (line, word.to_owned()));
        }
        None
    }

    pub fn read(&mut self, comment: &str, line: usize) -> Option<Lid> {
        let mut words = comment.split_whitespace();
        words.by_ref().find(|&word| word == "lid")?;
        // Without a number, the next word follows: `lid  lmc 0`.
        let word = words.next().filter(|&word| word != "lmc");
        self.unicast(word.unwrap_or(""), line)
    }

    pub fn warning(self) -> Option<ImportWarning> {
        let (line, first) = self.first?;
        let message = match self.count {
            1 => format!("{first:?} is no unicast LID: the port gets the smallest free LID"),
            count => format!(
                "{first:?} is no unicast LID, and {} more LIDs are not: these ports get the smallest free LIDs",
                count - 1
            ),
        };
        Some(ImportWarning { line, message })
    }
}

/// `4xFDR`, or `4x???`, `??FDR`, `?????` for unknown values. `None` if it is something else.
pub(crate) fn stated_rate(text: &str) -> Option<(Option<Width>, Option<Speed>)> {
    if let Some((width, speed)) = rate(text) {
        return Some((Some(width), Some(speed)));
    }
    let (width, speed) = match text.find('x') {
        Some(at) => text.split_at(at + 1),
        None => ("?", text.trim_start_matches('?')),
    };
    let unknown = |part: &str| part.trim_matches(['?', 'x']).is_empty();
    let (known_width, known_speed) = (width.parse().ok(), speed.parse().ok());
    let is_rate = text.contains('?')
        && (known_width.is_some() || unknown(width))
        && (known_speed.is_some() || unknown(speed));
    is_rate.then_some((known_width, known_speed))
}

/// `4xFDR`.
pub(crate) fn rate(text: &str) -> Option<(Width, Speed)> {
    let lanes = text.find('x')? + 1;
    Some((text[..lanes].parse().ok()?, text[lanes..].parse().ok()?))
}

/// Between the first and last quote: a description may contain quotes.
pub(crate) fn description(comment: &str) -> Option<&str> {
    let start = comment.find('"')? + 1;
    let end = comment.rfind('"')?;
    (start <= end).then(|| comment[start..end].trim())
}
