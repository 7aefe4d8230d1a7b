use std::cell::RefCell;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use silvan_cc::schemes::ecn::conditions::check;
use silvan_cc::schemes::ecn::{
    Aimd, EcnError, Fimd, Lipd, RATES, RateTables, Response as Builtin, ResponseFunction,
};

/// The paper's, or two functions of a caller.
#[pyclass(frozen, module = "silvan._silvan")]
pub struct Response(ResponseKind);

enum ResponseKind {
    Builtin(Builtin),
    Given {
        increase: Py<PyAny>,
        decrease: Py<PyAny>,
        min_rate: f64,
    },
}

/// Condition, meaning, true if it holds, worst rate, value and bound.
type Diagnosis = (&'static str, &'static str, bool, f64, f64, f64);

/// Packets and next delay for increase, next delays for decrease.
type Tables = (Vec<(u16, u8)>, Vec<u8>);

fn refused(error: EcnError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Response {
    #[staticmethod]
    fn aimd(factor: f64, min_rate: f64) -> PyResult<Self> {
        let function = Aimd::new(factor, min_rate).map_err(refused)?;
        Ok(Self(ResponseKind::Builtin(Builtin::Aimd(function))))
    }

    #[staticmethod]
    fn fimd(factor: f64, min_rate: f64) -> PyResult<Self> {
        let function = Fimd::new(factor, min_rate).map_err(refused)?;
        Ok(Self(ResponseKind::Builtin(Builtin::Fimd(function))))
    }

    #[staticmethod]
    fn lipd(min_rate: f64) -> PyResult<Self> {
        let function = Lipd::new(min_rate).map_err(refused)?;
        Ok(Self(ResponseKind::Builtin(Builtin::Lipd(function))))
    }

    #[staticmethod]
    fn given(increase: Py<PyAny>, decrease: Py<PyAny>, min_rate: f64) -> PyResult<Self> {
        // The check of the built-in functions applies here, too.
        Lipd::new(min_rate).map_err(refused)?;
        Ok(Self(ResponseKind::Given {
            increase,
            decrease,
            min_rate,
        }))
    }

    fn increase(&self, py: Python<'_>, rate: f64) -> PyResult<f64> {
        self.with(py, |function| function.increase(rate))
    }

    fn decrease(&self, py: Python<'_>, rate: f64) -> PyResult<f64> {
        self.with(py, |function| function.decrease(rate))
    }

    /// The rate a time after Rmin without marks, in packet times; `None` without a closed form.
    fn rate_after(&self, py: Python<'_>, elapsed: f64) -> PyResult<Option<f64>> {
        self.with(py, |function| function.rate_after(elapsed))
    }

    /// Returns the time of the rate from Rmin to this rate, in packet times; `None` without a closed form.
    fn time_to(&self, py: Python<'_>, rate: f64) -> PyResult<Option<f64>> {
        self.with(py, |function| function.time_to(rate))
    }

    fn check(&self, py: Python<'_>) -> PyResult<Vec<Diagnosis>> {
        let diagnoses = self.with(py, |function| check(&function))?;
        Ok(diagnoses
            .into_iter()
            .map(|found| {
                let condition = found.condition;
                let (name, meaning) = (condition.name(), condition.meaning());
                (
                    name,
                    meaning,
                    found.holds,
                    found.rate,
                    found.value,
                    found.bound,
                )
            })
            .collect())
    }

    fn tables(&self, py: Python<'_>) -> PyResult<Tables> {
        let tables = self.with(py, |function| RateTables::compute(&function))?;
        let delays = || (0..RATES).map(|ipd| ipd as u8);
        let increase = delays().map(|ipd| tables.increase(ipd));
        Ok((
            increase.map(|step| (step.packets, step.next)).collect(),
            delays().map(|ipd| tables.decrease(ipd)).collect(),
        ))
    }
}

impl Response {
    /// An exception makes the value no number, and is raised in the end.
    fn with<T>(&self, py: Python<'_>, ask: impl FnOnce(Called<'_, '_>) -> T) -> PyResult<T> {
        let raised = RefCell::new(None);
        let answer = ask(Called {
            py,
            kind: &self.0,
            raised: &raised,
        });
        match raised.into_inner() {
            Some(error) => Err(error),
            None => Ok(answer),
        }
    }
}

struct Called<'a, 'py> {
    py: Python<'py>,
    kind: &'a ResponseKind,
    raised: &'a RefCell<Option<PyErr>>,
}

impl Called<'_, '_> {
    fn call(&self, function: &Py<PyAny>, rate: f64) -> f64 {
        if self.raised.borrow().is_some() {
            return f64::NAN;
        }
        let answer = function.bind(self.py).call1((rate,));
        answer
            .and_then(|value| value.extract())
            .unwrap_or_else(|error| {
                *self.raised.borrow_mut() = Some(error);
                f64::NAN
            })
    }
}

impl ResponseFunction for Called<'_, '_> {
    fn min_rate(&self) -> f64 {
        match self.kind {
            ResponseKind::Builtin(function) => function.min_rate(),
            ResponseKind::Given { min_rate, .. } => *min_rate,
        }
    }

    fn increase(&self, rate: f64) -> f64 {
        match self.kind {
            ResponseKind::Builtin(function) => function.increase(rate),
            ResponseKind::Given { increase, .. } => self.call(increase, rate),
        }
    }

    fn decrease(&self, rate: f64) -> f64 {
        match self.kind {
            ResponseKind::Builtin(function) => function.decrease(rate),
            ResponseKind::Given { decrease, .. } => self.call(decrease, rate),
        }
    }

    fn rate_after(&self, elapsed: f64) -> Option<f64> {
        match self.kind {
            ResponseKind::Builtin(function) => function.rate_after(elapsed),
            ResponseKind::Given { .. } => None,
        }
    }

    fn time_to(&self, rate: f64) -> Option<f64> {
        match self.kind {
            ResponseKind::Builtin(function) => function.time_to(rate),
            ResponseKind::Given { .. } => None,
        }
    }
}
