use silvan_core::Span;
use winnow::ascii::{dec_uint, space0, space1};
use winnow::combinator::{alt, cut_err, eof, opt, preceded, terminated};
use winnow::error::{ContextError, ErrMode, StrContext, StrContextValue};
use winnow::prelude::*;
use winnow::token::take_while;

use crate::programs::schedule::Action;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Ranks(u32),
    Rank(u32),
    End,
    Op {
        label: Option<&'a str>,
        action: Action,
        cpu: u32,
        nic: u32,
    },
    Requires {
        later: &'a str,
        earlier: &'a str,
        start_only: bool,
    },
}

const LONGEST_NS: u64 = 20 * 3_600 * 1_000_000_000;

const MOST_BYTES: u64 = 1 << 40;

type Piece<T> = Result<T, ErrMode<ContextError>>;

/// `text` has no spaces around it. An error says what was expected.
pub(super) fn statement(text: &str) -> Result<Line<'_>, String> {
    let mut line = terminated(
        alt((ranks, rank, '}'.value(Line::End), op, requires)),
        cut_err((space0, eof)).context(expected("the end of the line")),
    );
    line.parse(text).map_err(|error| {
        let expected: Vec<String> = error
            .inner()
            .context()
            .filter_map(|context| match context {
                StrContext::Expected(value) => Some(value.to_string()),
                _ => None,
            })
            .collect();
        match expected.first() {
            Some(first) => first.clone(),
            None => "num_ranks, rank, calc, send, recv, requires or }".to_owned(),
        }
    })
}

fn expected(what: &'static str) -> StrContext {
    StrContext::Expected(StrContextValue::Description(what))
}

fn number(input: &mut &str) -> Piece<u32> {
    dec_uint.context(expected("a number")).parse_next(input)
}

fn ranks<'a>(input: &mut &'a str) -> Piece<Line<'a>> {
    preceded(("num_ranks", space1), cut_err(number))
        .map(Line::Ranks)
        .parse_next(input)
}

fn rank<'a>(input: &mut &'a str) -> Piece<Line<'a>> {
    let open = cut_err((space0, '{')).context(expected("{"));
    preceded(
        ("rank", space1),
        cut_err((dec_uint.context(expected("a number")), open)),
    )
    .map(|(rank, _)| Line::Rank(rank))
    .parse_next(input)
}

fn word<'a>(input: &mut &'a str) -> Piece<&'a str> {
    (
        take_while(1, |c: char| c.is_ascii_alphabetic()),
        take_while(0.., |c: char| c.is_ascii_alphanumeric() || c == '_'),
    )
        .take()
        .parse_next(input)
}

fn op<'a>(input: &mut &'a str) -> Piece<Line<'a>> {
    let label = opt(terminated(word, (space0, ':', space0))).parse_next(input)?;
    let mut action = alt((calc, send, receive));
    let (action, cpu, nic) = match label {
        Some(_) => cut_err(action)
            .context(expected("calc, send or recv"))
            .parse_next(input)?,
        None => action.parse_next(input)?,
    };
    Ok(Line::Op {
        label,
        action,
        cpu,
        nic,
    })
}

fn option<'a, T>(
    key: &'static str,
    value: impl Parser<&'a str, T, ErrMode<ContextError>>,
) -> impl Parser<&'a str, Option<T>, ErrMode<ContextError>> {
    let value = cut_err(preceded(space1, value)).context(expected("a number"));
    opt(preceded((space1, key), value))
}

type Placed = (Action, u32, u32);

fn calc(input: &mut &str) -> Piece<Placed> {
    let nanoseconds = dec_uint.verify_map(|ns: u64| (ns <= LONGEST_NS).then(|| Span::from_ns(ns)));
    let nanoseconds = cut_err(nanoseconds).context(expected("nanoseconds, 20 hours at most"));
    let rest = (nanoseconds, option("cpu", dec_uint), nic);
    let (span, cpu, nic) = preceded(("calc", space1), rest).parse_next(input)?;
    Ok((Action::Calc(span), cpu.unwrap_or(0), nic.unwrap_or(0)))
}

fn bytes(input: &mut &str) -> Piece<u64> {
    let size = dec_uint.verify(|bytes: &u64| *bytes <= MOST_BYTES);
    let bytes = (size, space0, 'b').map(|(bytes, _, _)| bytes);
    cut_err(bytes)
        .context(expected("a size such as 10b, 1 TiB at most"))
        .parse_next(input)
}

fn nic(input: &mut &str) -> Piece<Option<u32>> {
    option("nic", dec_uint).parse_next(input)
}

fn send(input: &mut &str) -> Piece<Placed> {
    let to = cut_err(preceded((space1, "to", space1), dec_uint)).context(expected("to and a rank"));
    let options = (option("tag", dec_uint), option("cpu", dec_uint), nic);
    let (bytes, to, (tag, cpu, nic)) =
        preceded(("send", space1), (bytes, to, options)).parse_next(input)?;
    let tag = tag.unwrap_or(0);
    let action = Action::Send { to, bytes, tag };
    Ok((action, cpu.unwrap_or(0), nic.unwrap_or(0)))
}

fn number_or_any(input: &mut &str) -> Piece<Option<u32>> {
    alt(("-1".value(None), dec_uint.map(Some))).parse_next(input)
}

fn receive(input: &mut &str) -> Piece<Placed> {
    let from = preceded((space1, "from", space1), number_or_any);
    let from = cut_err(from).context(expected("from and a rank, or -1 for any"));
    let options = (option("tag", number_or_any), option("cpu", dec_uint), nic);
    let (bytes, from, (tag, cpu, nic)) =
        preceded(("recv", space1), (bytes, from, options)).parse_next(input)?;
    let tag = tag.unwrap_or(Some(0));
    let action = Action::Receive { from, bytes, tag };
    Ok((action, cpu.unwrap_or(0), nic.unwrap_or(0)))
}

fn requires<'a>(input: &mut &'a str) -> Piece<Line<'a>> {
    let start_only = alt(("requires".value(false), "irequires".value(true)));
    let start_only = cut_err(start_only).context(expected("requires, irequires or :"));
    let earlier = cut_err(preceded(space1, word)).context(expected("a label"));
    let (later, _, start_only, earlier) = (word, space1, start_only, earlier).parse_next(input)?;
    Ok(Line::Requires {
        later,
        earlier,
        start_only,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use super::*;

    /// Oracle: the grammar of `txt2bin`, statement by statement.
    #[test]
    fn every_statement_is_understood() {
        let on = |label, action, cpu, nic| Line::Op {
            label,
            action,
            cpu,
            nic,
        };
        let op = |label, action, cpu| on(label, action, cpu, 0);
        let receive = |from, tag| Action::Receive {
            from,
            bytes: 10,
            tag,
        };
        let send = |tag| Action::Send {
            to: 3,
            bytes: 10,
            tag,
        };
        let cases = [
            ("num_ranks 12", Line::Ranks(12)),
            ("rank 3 {", Line::Rank(3)),
            ("rank 3{", Line::Rank(3)),
            ("}", Line::End),
            ("calc 100", op(None, Action::Calc(Span::from_ns(100)), 0)),
            (
                "l1: calc 0 cpu 2",
                op(Some("l1"), Action::Calc(Span::ZERO), 2),
            ),
            ("l_2 : send 10b to 3", op(Some("l_2"), send(0), 0)),
            (
                "a: send 10b to 3 tag 7 cpu 1 nic 1",
                on(Some("a"), send(7), 1, 1),
            ),
            (
                "recv 10b from 3 tag 7",
                op(None, receive(Some(3), Some(7)), 0),
            ),
            ("recv 10 b from -1 tag -1", op(None, receive(None, None), 0)),
            (
                "sendx requires calc1",
                Line::Requires {
                    later: "sendx",
                    earlier: "calc1",
                    start_only: false,
                },
            ),
            (
                "a irequires b",
                Line::Requires {
                    later: "a",
                    earlier: "b",
                    start_only: true,
                },
            ),
        ];
        for (text, line) in cases {
            assert_eq!(statement(text), Ok(line), "{text}");
        }
    }

    #[test]
    fn what_was_expected_is_told() {
        let cases = [
            ("num_ranks x", "a number"),
            ("rank 3", "{"),
            ("l1: wait 3", "calc, send or recv"),
            ("send 10 to 3", "a size such as 10b, 1 TiB at most"),
            ("send 10b from 3", "to and a rank"),
            ("send 10b to 3 tag -1", "a number"),
            ("send 10b to 99999999999", "to and a rank"),
            ("recv 10b to 3", "from and a rank, or -1 for any"),
            ("a needs b", "requires, irequires or :"),
            ("a requires 7", "a label"),
            ("calc 99999999999999999999", "nanoseconds, 20 hours at most"),
            ("calc 3 4", "the end of the line"),
            ("3", "num_ranks, rank, calc, send, recv, requires or }"),
        ];
        for (text, expected) in cases {
            assert_eq!(statement(text), Err(expected.to_owned()), "{text}");
        }
    }
}
