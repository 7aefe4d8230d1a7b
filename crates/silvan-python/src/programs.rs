use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use silvan_workload::programs::collective::{Algorithm, Collective, Operation};
use silvan_workload::programs::{Group, Op};

/// Rank `me`'s operations: `("send", to, bytes, tag)`, `("recv", from, bytes, tag)`, and `("wait", 0, 0, 0)` for all.
#[pyfunction]
#[pyo3(signature = (operation, algorithm, ranks, me, size))]
pub fn collective(
    operation: &str,
    algorithm: Option<&str>,
    ranks: u32,
    me: u32,
    size: u64,
) -> PyResult<Vec<(&'static str, u32, u64, u32)>> {
    let unknown = || PyValueError::new_err((format!("no collective operation {operation:?}"), ""));
    let mut collective = Collective::new(Operation::named(operation).ok_or_else(unknown)?, size);
    if let Some(name) = algorithm {
        // The operations of these follow from a scenario: its switches, or NCCL's rules.
        let is_alone =
            |algorithm: &Algorithm| !matches!(algorithm, Algorithm::Sharp | Algorithm::Nccl);
        let operation_is_done = |algorithm: &Algorithm| collective.operation.is_done_by(*algorithm);
        let named = Algorithm::named(name).filter(operation_is_done);
        let named = named.filter(is_alone);
        let unknown = || {
            let known = collective.operation.algorithms();
            let known = known.iter().filter(|one| is_alone(one));
            let names: Vec<&str> = known.map(|one| one.name()).collect();
            let message = format!("no algorithm {name:?} of {operation:?}");
            PyValueError::new_err((message, names.join(", ")))
        };
        collective.algorithm = named.ok_or_else(unknown)?;
    }
    if me >= ranks {
        let message = format!("rank {me} is out of range: there are {ranks} ranks");
        return Err(PyValueError::new_err((message, "")));
    }
    let mut ops = Vec::new();
    collective.append(&mut ops, Group::all(ranks), me);
    let plain = |op| match op {
        Op::Send { to, bytes, tag } => Some(("send", to, bytes, tag)),
        Op::Receive {
            from: Some(from),
            bytes,
            tag: Some(tag),
        } => Some(("recv", from, bytes, tag)),
        Op::Wait => Some(("wait", 0, 0, 0)),
        _ => None,
    };
    Ok(ops.into_iter().filter_map(plain).collect())
}
