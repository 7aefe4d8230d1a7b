use pyo3::prelude::*;
use silvan_cc::hooks::foreign::{AnswerKind, Field, OUTPUT_ROWS};
use silvan_cc::hooks::{SOURCE_HOOKS, SWITCH_HOOKS};

/// Name, documentation, arguments, result, and the largest choice.
type Hook = (&'static str, &'static str, Vec<Argument>, &'static str, u64);

/// Name, columns if it has rows, and rows that a function may fill in (0: read-only).
type Argument = (&'static str, Vec<&'static str>, usize);

#[pyfunction]
pub fn scheme_hooks() -> Vec<Hook> {
    let hooks = SWITCH_HOOKS.iter().chain(SOURCE_HOOKS);
    hooks
        .map(|hook| {
            let fields = |&(name, fields): &(&'static str, &'static [Field])| {
                fields.iter().map(move |&field| argument(name, field))
            };
            let (kind, most) = match hook.answer {
                AnswerKind::None => ("none", 0),
                AnswerKind::Flag => ("flag", 1),
                AnswerKind::Time => ("time", i64::MAX.unsigned_abs()),
                AnswerKind::Choice(most) => ("choice", most),
            };
            let arguments = hook.arguments.iter().flat_map(fields).collect();
            (hook.name, hook.about, arguments, kind, most)
        })
        .collect()
}

fn argument(name: &'static str, field: Field) -> Argument {
    match field {
        Field::Number("") => (name, Vec::new(), 0),
        Field::Number(own) => (own, Vec::new(), 0),
        Field::Rows(own, columns) => (own, columns.to_vec(), 0),
        Field::Output(own, columns) => (own, columns.to_vec(), OUTPUT_ROWS),
    }
}
