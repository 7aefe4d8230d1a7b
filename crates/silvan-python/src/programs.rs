//! Collective operations as the operations of one rank.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use silvan_workload::programs::{Group, Op, Pattern};

/// What the rank `me` of `ranks` does in a collective operation: `("send", to, bytes, tag)`,
/// `("recv", from, bytes, tag)`, and `("wait", 0, 0, 0)` for all that it has started.
#[pyfunction]
pub fn collective(
    pattern: &str,
    ranks: u32,
    me: u32,
    size: u64,
) -> PyResult<Vec<(&'static str, u32, u64, u32)>> {
    let unknown = || PyValueError::new_err(format!("no collective operation {pattern:?}"));
    let pattern = Pattern::named(pattern).ok_or_else(unknown)?;
    if me >= ranks {
        let message = format!("rank {me} is out of range: there are {ranks} ranks");
        return Err(PyValueError::new_err(message));
    }
    let mut ops = Vec::new();
    pattern.append(&mut ops, Group::all(ranks), me, size);
    let plain = |op| match op {
        Op::Send { to, bytes, tag } => Some(("send", to, bytes, tag)),
        Op::Receive {
            from: Some(from),
            bytes,
            tag: Some(tag),
        } => Some(("recv", from, bytes, tag)),
        Op::Wait => Some(("wait", 0, 0, 0)),
        // Collective operations consist of the three above.
        _ => None,
    };
    Ok(ops.into_iter().filter_map(plain).collect())
}
