//! Hooks in another language: a function gets the addresses of its `float64` state and its `int64` arguments.
//!
//! Times are in picoseconds; rows come after all numbers. It returns its value's bitwise complement; 0 means an
//! exception, a positive number an invalid value.

use silvan_core::{HostId, PortId, Span, Time, Vl};

use super::{
    Ack, Arrival, Candidate, Feedback, Flow, Grant, Grants, Hop, LaneView, LinkView, PacketView,
    PortVl, QueueView,
};

/// A hook as a function of another language has it.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Name of the hook.
    pub name: &'static str,
    /// Documentation of the hook, in Markdown.
    pub about: &'static str,
    /// Each argument's name in Rust, and what a function gets for it.
    pub arguments: &'static [(&'static str, &'static [Field])],
    /// Kind of the returned value.
    pub answer: AnswerKind,
}

/// Representation of an argument, or of a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A number; an empty name means that of the argument.
    Number(&'static str),
    /// Rows to read, with the names of their columns.
    Rows(&'static str, &'static [&'static str]),
    /// [`OUTPUT_ROWS`] rows to fill in. Rows that stay 0 do not count.
    Output(&'static str, &'static [&'static str]),
}

/// Rows that a function may fill in.
pub const OUTPUT_ROWS: usize = 16;

/// Kind of a function's returned value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// Nothing.
    None,
    /// True or false.
    Flag,
    /// Picoseconds; the largest number means never.
    Time,
    /// A number up to this one; the largest number of 64 bits means no choice.
    Choice(u64),
}

/// The numbers of a call.
#[derive(Clone, Debug, Default)]
pub struct Words {
    numbers: Vec<i64>,
    rows: Vec<i64>,
    first_row: usize,
}

impl Words {
    /// Removes everything.
    #[inline]
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.rows.clear();
    }

    #[inline]
    fn push(&mut self, number: impl Into<i64>) {
        self.numbers.push(number.into());
    }

    #[inline]
    fn push_large(&mut self, number: u64) {
        self.push(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// All numbers and rows, in one piece.
    #[inline]
    pub fn assemble(&mut self) -> &mut [i64] {
        self.first_row = self.numbers.len();
        if !self.rows.is_empty() {
            self.numbers.extend_from_slice(&self.rows);
        }
        &mut self.numbers
    }
}

/// An argument of a hook.
pub trait Argument {
    /// Representation of the argument.
    const FIELDS: &'static [Field];

    /// Appends its numbers.
    fn write(&self, words: &mut Words);

    /// Reads what the function has filled in.
    #[inline]
    fn read_back(self, words: &Words)
    where
        Self: Sized,
    {
        let _ = words;
    }
}

impl Argument for Time {
    const FIELDS: &'static [Field] = &[Field::Number("")];
    #[inline]
    fn write(&self, words: &mut Words) {
        words.push_large(self.as_ps());
    }
}

impl Argument for Span {
    const FIELDS: &'static [Field] = &[Field::Number("")];
    #[inline]
    fn write(&self, words: &mut Words) {
        words.push_large(self.as_ps());
    }
}

impl Argument for u32 {
    const FIELDS: &'static [Field] = &[Field::Number("")];
    #[inline]
    fn write(&self, words: &mut Words) {
        words.push(*self);
    }
}

impl Argument for bool {
    const FIELDS: &'static [Field] = &[Field::Number("")];
    #[inline]
    fn write(&self, words: &mut Words) {
        words.push(*self);
    }
}

impl Argument for HostId {
    const FIELDS: &'static [Field] = &[Field::Number("")];
    #[inline]
    fn write(&self, words: &mut Words) {
        words.push(self.index() as u32);
    }
}

impl Argument for PortId {
    const FIELDS: &'static [Field] = &[Field::Number("")];
    #[inline]
    fn write(&self, words: &mut Words) {
        words.push(self.index() as u32);
    }
}

impl Argument for Vl {
    const FIELDS: &'static [Field] = &[Field::Number("")];
    #[inline]
    fn write(&self, words: &mut Words) {
        words.push(self.as_u8());
    }
}

impl Argument for PortVl {
    const FIELDS: &'static [Field] = &[Field::Number("port_vl")];
    #[inline]
    fn write(&self, words: &mut Words) {
        words.push(self.0);
    }
}

impl Argument for Flow {
    const FIELDS: &'static [Field] = &[
        Field::Number("source"),
        Field::Number("destination"),
        Field::Number("sl"),
    ];
    #[inline]
    fn write(&self, words: &mut Words) {
        self.source.write(words);
        self.destination.write(words);
        words.push(self.sl.as_u8());
    }
}

impl Argument for QueueView {
    const FIELDS: &'static [Field] = &[Field::Number("queued_bytes"), Field::Number("has_credit")];
    #[inline]
    fn write(&self, words: &mut Words) {
        words.push(self.queued_bytes);
        words.push(self.has_credit);
    }
}

impl Argument for PacketView {
    const FIELDS: &'static [Field] = &[
        Field::Number("wire_bytes"),
        Field::Number("marked"),
        Field::Number("input_port"),
    ];
    #[inline]
    fn write(&self, words: &mut Words) {
        words.push(self.wire_bytes);
        words.push(self.marked);
        self.input.write(words);
    }
}

impl Argument for LinkView {
    const FIELDS: &'static [Field] = &[
        Field::Number("source"),
        Field::Number("destination"),
        Field::Number("sl"),
        Field::Number("wire_bytes"),
        Field::Number("fecn"),
        Field::Number("becn"),
        Field::Number("marked_here"),
        Field::Number("waited"),
    ];
    #[inline]
    fn write(&self, words: &mut Words) {
        self.source.write(words);
        self.destination.write(words);
        words.push(self.sl.as_u8());
        words.push(self.wire_bytes);
        words.push(self.fecn);
        words.push(self.becn);
        words.push(self.marked_here);
        self.waited.write(words);
    }
}

impl Argument for Feedback {
    const FIELDS: &'static [Field] = &[Field::Number("acknowledged"), Field::Number("marked")];
    #[inline]
    fn write(&self, words: &mut Words) {
        let (bytes, becn) = match *self {
            Self::Cnp => (0, true),
            Self::Ack { bytes, becn } => (bytes, becn),
        };
        words.push(bytes);
        words.push(becn);
    }
}

impl Argument for Ack<'_> {
    const FIELDS: &'static [Field] = &[
        Field::Number("acknowledged"),
        Field::Number("marked"),
        Field::Number("sent"),
        Field::Number("endpoint"),
        Field::Number("path"),
        Field::Rows(
            "hops",
            &["port_vl", "at", "queued_bytes", "xmit_bytes", "rate"],
        ),
    ];
    fn write(&self, words: &mut Words) {
        words.push(self.bytes);
        words.push(self.becn);
        self.sent.write(words);
        self.endpoint.write(words);
        words.push(self.path.map_or(-1, i64::from));
        words.push(self.hops.len() as u32);
        for hop in self.hops {
            let Hop {
                output,
                at,
                queued_bytes,
                xmit_bytes,
                rate,
            } = *hop;
            let large = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            words.rows.extend([
                i64::from(output.0),
                large(at.as_ps()),
                i64::from(queued_bytes),
                large(xmit_bytes),
                large(rate.bits_per_sec()),
            ]);
        }
    }
}

impl Argument for Arrival {
    const FIELDS: &'static [Field] = &[
        Field::Number("payload"),
        Field::Number("marked"),
        Field::Number("last"),
        Field::Number("sent"),
        Field::Number("behind"),
        Field::Number("takes"),
    ];
    fn write(&self, words: &mut Words) {
        words.push(self.payload);
        words.push(self.marked);
        words.push(self.last);
        self.sent.write(words);
        words.push(self.behind);
        self.takes.write(words);
    }
}

impl Argument for LaneView {
    const FIELDS: &'static [Field] = &[
        Field::Number("input_port"),
        Field::Number("output_port"),
        Field::Number("next_input_port"),
        Field::Number("next_output_port"),
    ];
    fn write(&self, words: &mut Words) {
        let ports = [
            self.input,
            Some(self.output),
            self.next_input,
            self.next_output,
        ];
        for port in ports {
            words.push(port.map_or(-1, |port| port.index() as i64));
        }
    }
}

impl Argument for &[Candidate] {
    const FIELDS: &'static [Field] = &[Field::Rows("candidates", &["port", "bytes_ahead"])];
    fn write(&self, words: &mut Words) {
        words.push(self.len() as u32);
        for candidate in *self {
            words.rows.push(candidate.output.index() as i64);
            words
                .rows
                .push(i64::try_from(candidate.bytes_ahead).unwrap_or(i64::MAX));
        }
    }
}

impl Argument for &mut Grants {
    const FIELDS: &'static [Field] = &[Field::Output("grants", &["source", "sl", "bytes", "at"])];
    fn write(&self, words: &mut Words) {
        words.push(OUTPUT_ROWS as u32);
        words.rows.extend([0; OUTPUT_ROWS * 4]);
    }
    fn read_back(self, words: &Words) {
        let rows = words.numbers[words.first_row..].chunks_exact(4);
        for row in rows.filter(|row| row[2] > 0) {
            let Ok(sl) = u8::try_from(row[1]) else {
                continue;
            };
            let Ok(sl) = sl.try_into() else {
                continue;
            };
            self.send(Grant {
                source: HostId::new(row[0].unsigned_abs() as usize),
                sl,
                bytes: u32::try_from(row[2]).unwrap_or(u32::MAX),
                at: Time::from_ps(row[3].max(0).unsigned_abs()),
            });
        }
    }
}

/// Return value of a hook.
pub trait Answer: Sized {
    /// Representation of the return value in another language.
    const KIND: AnswerKind;

    /// The answer for a valid value of a function.
    fn from_value(value: i64) -> Self;

    /// The answer when no function is called any more.
    fn stopped() -> Self;

    /// True if the value differs from the value of a scheme without the hook.
    const WITHHELD: bool = false;
}

impl Answer for () {
    const KIND: AnswerKind = AnswerKind::None;
    #[inline]
    fn from_value(_: i64) {}
    #[inline]
    fn stopped() {}
}

impl Answer for bool {
    const KIND: AnswerKind = AnswerKind::Flag;
    #[inline]
    fn from_value(value: i64) -> Self {
        value != 0
    }
    #[inline]
    fn stopped() -> Self {
        false
    }
}

impl Answer for Time {
    const KIND: AnswerKind = AnswerKind::Time;
    #[inline]
    fn from_value(value: i64) -> Self {
        match value {
            i64::MAX => Self::MAX,
            _ => Self::from_ps(value.unsigned_abs()),
        }
    }
    #[inline]
    fn stopped() -> Self {
        Self::MAX
    }
    const WITHHELD: bool = true;
}

impl Answer for Option<u32> {
    const KIND: AnswerKind = AnswerKind::Choice(u32::MAX as u64);
    #[inline]
    fn from_value(value: i64) -> Self {
        u32::try_from(value).ok()
    }
    #[inline]
    fn stopped() -> Self {
        None
    }
}

impl Answer for Option<Vl> {
    const KIND: AnswerKind = AnswerKind::Choice(14);
    #[inline]
    fn from_value(value: i64) -> Self {
        Vl::try_new(u8::try_from(value).ok()?).ok()
    }
    #[inline]
    fn stopped() -> Self {
        None
    }
}
