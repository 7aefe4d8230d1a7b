use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyType;
use silvan_cc::schemes::callbacks::Failure;
use silvan_core::ParseQuantityError;
#[cfg(target_os = "linux")]
use silvan_emulator::EmulatorError;
use silvan_scenario::ScenarioError;
use silvan_sim::RunError;

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    let found = py.import("silvan.errors")?.getattr(name)?;
    Ok(found.downcast_into::<PyType>()?)
}

pub fn scenario_error(py: Python<'_>, error: &ScenarioError) -> PyErr {
    let source = Some(error.source_name()).filter(|name| !name.is_empty());
    let arguments = (
        error.message().to_owned(),
        source.map(str::to_owned),
        error.line(),
        error.hint().map(str::to_owned),
        Some(error.key())
            .filter(|key| !key.is_empty())
            .map(ToString::to_string),
        error.column(),
    );
    match class(py, "ScenarioError") {
        Ok(class) => PyErr::from_type(class, arguments),
        Err(error) => error,
    }
}

pub fn quantity_error(py: Python<'_>, error: &ParseQuantityError) -> PyErr {
    let no_place: (Option<String>, Option<usize>) = (None, None);
    let arguments = (
        error.message(),
        no_place.0,
        no_place.1,
        error.hint().to_owned(),
    );
    match class(py, "ScenarioError") {
        Ok(class) => PyErr::from_type(class, arguments),
        Err(error) => error,
    }
}

/// Names nothing of the fabric, or is out of bounds.
pub fn argument_error(py: Python<'_>, message: &str) -> PyErr {
    match class(py, "SimulationError") {
        Ok(class) => PyErr::from_type(class, (message.to_owned(),)),
        Err(error) => error,
    }
}

fn hook_failure(py: Python<'_>, failure: &Failure) -> PyErr {
    let raise = || -> PyResult<PyErr> {
        let class = py.import("silvan.hook_failure")?.getattr("HookFailure")?;
        let class = class.downcast_into::<PyType>()?;
        let arguments = (failure.hook, failure.arguments.clone(), failure.raised);
        Ok(PyErr::from_type(class, arguments))
    };
    raise().unwrap_or_else(|error| error)
}

pub fn run_error(py: Python<'_>, error: &RunError) -> PyErr {
    let (cycle, hint) = match error {
        RunError::Interrupted { .. } => return PyKeyboardInterrupt::new_err(()),
        RunError::Scheme(failure) => return hook_failure(py, failure),
        RunError::Deadlock { cycle, .. } => (
            cycle.clone(),
            Some("route without the cycle, or give it more virtual lanes".to_owned()),
        ),
        RunError::Loss { hint, .. } => (Vec::new(), Some(hint.clone())),
        RunError::Program(fault) => (Vec::new(), Some(fault.hint().to_owned())),
        _ => (Vec::new(), None),
    };
    let name = match error {
        RunError::Program(_) => "ProgramError",
        _ => "SimulationError",
    };
    match class(py, name) {
        Ok(class) => PyErr::from_type(class, (error.to_string(), cycle, hint)),
        Err(error) => error,
    }
}

#[cfg(target_os = "linux")]
pub fn emulator_error(py: Python<'_>, error: &EmulatorError) -> PyErr {
    let hint = match error {
        EmulatorError::Scenario(error) | EmulatorError::Faults(error) => {
            return scenario_error(py, error);
        }
        EmulatorError::Run(error) => return run_error(py, error),
        EmulatorError::AddressInUse(_) => Some("choose another --sockname or --udp port"),
        EmulatorError::Devices(_) => Some("give --devices by-speed for the device of each speed"),
        EmulatorError::NoSuchNode(_) => Some("silvan show prints the scenario with its names"),
        _ => None,
    };
    match class(py, "EmulationError") {
        Ok(class) => PyErr::from_type(class, (error.to_string(), hint)),
        Err(error) => error,
    }
}

pub fn diagnosis_error(py: Python<'_>, message: &str, hint: Option<&str>) -> PyErr {
    match class(py, "DiagnosisError") {
        Ok(class) => PyErr::from_type(class, (message.to_owned(), hint.map(str::to_owned))),
        Err(error) => error,
    }
}

#[cfg(target_os = "linux")]
pub fn manager_error(py: Python<'_>, error: &impl std::fmt::Display, hint: &str) -> PyErr {
    match class(py, "ManagerError") {
        Ok(class) => PyErr::from_type(class, (error.to_string(), hint.to_owned())),
        Err(error) => error,
    }
}
